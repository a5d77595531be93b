"""A loop nest that is to be lowered: what is computed over which box, and in which loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tilesmith.scheduler.analysis.bounds_inference import Interval
from tilesmith.scheduler.analysis.dead_points import Half
from tilesmith.scheduler.ir.index import Index, const
from tilesmith.scheduler.ir.loop.builder import Builder
from tilesmith.scheduler.ir.loop.values import Buffer, Lane
from tilesmith.scheduler.ir.pipeline.pipeline import Stage
from tilesmith.scheduler.ir.schedule.schedule import Vector
from tilesmith.scheduler.lowering.expressions import Evaluator
from tilesmith.scheduler.lowering.memory import store, store_channels
from tilesmith.scheduler.lowering.reductions import together
from tilesmith.scheduler.lowering.streaming_stores import store_past

Body = Callable[[Evaluator, Sequence[Mapping[str, Lane]]], None]
"""Emits what is done at a point, or at a vector of them: the evaluator of the open scope, and the loops' variables;
several of these where points are computed side by side."""


@dataclass(frozen=True, slots=True)
class Nest:
    """A loop nest to lower: `body` over `bounds` (inclusive), its loops innermost first, the loop to vectorise, the
    loop run by threads, and the loops to unroll with the (min, extent) that they are expected to have. Of a loop of
    `blocks` so many iterations are computed side by side. `name` is the stage's.

    `whole`, if it is a list, notes the lanes of rows that vectors cover where these fit: no scalars are emitted.
    `roomy`: rows begin where those of memory do, and have room at both ends. `sums`: values are long reductions, and
    `register` their lanes in one register: rows of unrolled points may end in vectors of fewer of these.
    `own` is the stage that an update reads and writes; `once`: no point may be visited twice; `ordered`: points that
    vectors leave of a row come before and after these as they lie. `past` is the buffer,
    with its dims, that vectors go to past the caches. Of a `half` no points are computed but those that are read.
    `estimate` gives an index at the estimates. `exact`: every lane clamps on its own. `back`: rows follow each other
    towards the beginning of memory, and so do their vectors: what fetches ahead follows addresses that go one way.
    `transposed`: what points of the blocks read across rows of memory is. `flat`: the dim of channels, if rows are flat
    (see `analysis.flat_rows`): where it is unrolled, vectors are of all elements of the row. What is written out
    of dims that are `aligned` begins with a block of so many points that the body reads.
    """

    name: str
    body: Body
    bounds: Mapping[str, Interval]
    order: tuple[str, ...]
    vector: Vector | None = None
    unroll: Mapping[str, tuple[int | None, int]] = field(default_factory=dict)
    blocks: Mapping[str, int] = field(default_factory=dict)
    parallel: str | None = None
    own: str = ""
    once: bool = False
    ordered: bool = False
    past: tuple[Buffer, tuple[str, ...]] | None = None
    half: Half | None = None
    estimate: Callable[[Index], int] = field(default=lambda _: 1)
    whole: list[int] | None = None
    roomy: bool = False
    sums: bool = False
    register: int = 0
    exact: bool = False
    back: bool = False
    transposed: bool = False
    flat: str | None = None
    aligned: Mapping[str, int] = field(default_factory=dict)

    @property
    def flattened(self) -> bool:
        """True if lanes are elements of the row, all channels of which are computed."""
        return self.flat is not None and self.flat in self.unroll and self.bounds[self.flat][0] == const(0)


def values_of(b: Builder, stage: Stage, buffers: tuple[Buffer, ...]) -> Body:
    """The body that computes the stage's values into its buffers."""

    def body(evaluator: Evaluator, envs: Sequence[Mapping[str, Lane]]) -> None:
        frames = [evaluator.frame(env) for env in envs]
        together(evaluator, stage.values, frames)
        stores = []
        for env, frame in zip(envs, frames, strict=True):
            values = [evaluator.value(v, frame) for v in stage.values]
            for buffer, value in zip(buffers, values, strict=True):
                at = tuple(env[d] for d in stage.dims)
                if evaluator.moved is not None:
                    store_past(b, buffer, at, value, evaluator.moved)
                elif buffer.channels:
                    stores.append((buffer, at, value))
                else:
                    store(b, buffer, at, value)
        store_channels(b, stores)

    return body

"""Sweeps: a stage's values and updates block by block along a dim, instead of one after the other over the whole of it
(loop fusion of passes), so that a pass finds in a cache what the pass before it has left.

A block may have all of its passes before the next one where passes depend on nothing of later blocks, and change
nothing that passes of later blocks expect as it was: all but the last keep the dim in place, and the last one goes
through it from its beginning (Allen and Kennedy, Optimizing Compilers for Modern Architectures, ch. 6).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilesmith.scheduler.analysis.dependence import causal_loop, free_dims
from tilesmith.scheduler.ir.pipeline.pipeline import Stage
from tilesmith.scheduler.ir.schedule.schedule import UpdateLoops

LEAST_ROWS = 16
"""Rows of memory that a block has at least: fewer begin loops as often as they have vectors."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """Values and the first `updates` of a stage, by blocks of so many `rows` along `dim`; the last of these updates
    goes through it by the variable `loop`."""

    dim: str
    loop: str
    updates: int
    rows: int


def sweep(stage: Stage, loops: Sequence[UpdateLoops]) -> Sweep | None:
    """The sweep with most updates, its blocks of whole vectors of rows, or of planes. None where no two updates have
    one, or where threads share one of them, which blocks would start time and again."""
    for last in reversed(range(1, len(stage.updates))):
        within = loops[: last + 1]
        for dim in stage.storage[1:]:
            if not all(dim in free_dims(stage, update) for update in stage.updates[:last]):
                continue
            loop = causal_loop(stage, stage.updates[last], dim)
            if loop is not None and not any(u.parallel for u in within):
                lanes = max((v.lanes for u in within if (v := u.vector) is not None and v.dim == dim), default=1)
                least = LEAST_ROWS if dim == stage.storage[1] else 1
                return Sweep(dim, loop, last + 1, -(-least // lanes) * lanes)
    return None

"""Decisions that the caller has taken: the search decides the rest.

Fixed        what is fixed of a pipeline's stages, by name; asked by the search, and by `admits` at the end
FixedStage   what is fixed of one stage; None or empty where it is open

Their document, and what can be wrong with one, is in `document`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from scheduler.ir.schedule.schedule import INLINE, ROOT, Group, Placement, Schedule, Vector

NONE = "none"
"""The value of `parallel` for no threads."""


@dataclass(frozen=True, slots=True)
class FixedStage:
    """Fixed decisions about one stage.

    `compute` is INLINE, ROOT (the stage is the output of a group) or a loop of the group that it is in; `store` a loop.
    `vector` are lanes, 1 for no vectors. `order` are its dims and `loops` the loops of its group, from the innermost;
    those that are not named may lie anywhere between. `tiles` (None: the whole extent), `loops`, `parallel` (or NONE),
    `unroll` (all unrolled dims), `stream` and `prefetch` are of the group that the stage is the output of.
    """

    compute: str | None = None
    store: str | None = None
    storage: Literal["memory", "registers"] | None = None
    order: tuple[str, ...] = ()
    vector: int | None = None
    tiles: tuple[tuple[str, int | None], ...] = ()
    loops: tuple[str, ...] = ()
    parallel: str | None = None
    unroll: tuple[str, ...] | None = None
    stream: bool | None = None
    prefetch: int | None = None

    @property
    def of_group(self) -> tuple[str, ...]:
        """The keys that are fixed and that only the output of a group has."""
        given = {"tiles": self.tiles, "loops": self.loops, "parallel": self.parallel}
        open_or_not = [k for k in ("unroll", "stream", "prefetch") if getattr(self, k) is not None]
        return (*(k for k, v in given.items() if v), *open_or_not)


OPEN = FixedStage()


@dataclass(frozen=True, slots=True)
class Fixed:
    """Stages by name, sorted; false where nothing is fixed."""

    stages: tuple[tuple[str, FixedStage], ...] = ()
    _of: Mapping[str, FixedStage] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_of", dict(self.stages))

    def __bool__(self) -> bool:
        return bool(self.stages)

    def of(self, stage: str) -> FixedStage:
        """The fixed decisions about a stage; OPEN where there are none."""
        return self._of.get(stage, OPEN)

    def inline(self, stage: str) -> bool | None:
        """True if the stage has to be inline, False if it must not be; None where it is open."""
        fixed = self.of(stage)
        if fixed.compute is not None:
            return fixed.compute == INLINE
        real = fixed.store or fixed.storage or fixed.order or fixed.vector or fixed.of_group
        return False if real else None

    def root(self, stage: str) -> bool | None:
        """True if the stage has to be the output of a group, False if it must not be; None where it is open."""
        fixed = self.of(stage)
        if fixed.compute is not None:
            return fixed.compute == ROOT
        if fixed.of_group:
            return True
        return False if fixed.store or fixed.storage == "registers" else None

    def level(self, stage: str) -> str | None:
        """The loop that the stage has to be computed at; None where it is open, inline or at root."""
        compute = self.of(stage).compute
        return None if compute in (INLINE, ROOT) else compute

    def tile(self, output: str, dim: str, otherwise: int | None) -> int | None:
        """The tile of a dim of a group's output, None for the whole extent; `otherwise` where it is open."""
        return dict(self.of(output).tiles).get(dim, otherwise)

    def admits(self, schedule: Schedule) -> str | None:
        """None where the schedule has everything that is fixed; the first thing that it has otherwise."""
        return next((reason for g in schedule.groups for reason in self._refusals(g)), None)

    def admits_group(self, group: Group) -> str | None:
        """None where the group has everything that is fixed of it; the first difference otherwise."""
        return next(self._refusals(group), None)

    def _refusals(self, group: Group) -> Iterator[str]:
        yield from _of_output(group, self.of(group.output))
        for placement in group.placements:
            yield from _of_placement(placement, self.of(placement.stage))


FREE = Fixed()
"""Nothing is fixed."""


def _of_output(group: Group, fixed: FixedStage) -> Iterator[str]:
    name = group.output
    if fixed.compute not in (None, ROOT):
        yield f"'{name}' is the output of a group, not {_level(fixed.compute)}"
    if fixed.store is not None:
        yield f"'{name}' is the output of a group, not stored at {fixed.store}"
    if fixed.storage == "registers":
        yield f"'{name}' is the output of a group, not kept in registers"
    tiles = {t.dim: t.size for t in group.tiles}
    for dim, size in fixed.tiles:
        if tiles.get(dim) != size:
            yield f"the tile of '{dim}' of '{name}' is {_size(tiles.get(dim))}, not {_size(size)}"
    if not _in_order(fixed.loops, group.loops):
        yield f"the loops of '{name}' are {', '.join(group.loops)}, not {', '.join(fixed.loops)}"
    if fixed.parallel is not None and (group.parallel or NONE) != fixed.parallel:
        yield f"the parallel loop of '{name}' is {group.parallel or NONE}, not {fixed.parallel}"
    if fixed.unroll is not None and set(fixed.unroll) != set(group.unroll):
        yield f"'{name}' is unrolled in {', '.join(group.unroll) or NONE}, not {', '.join(fixed.unroll) or NONE}"
    if fixed.stream not in (None, group.stream):
        yield f"'{name}' is written {_past(group.stream)}, not {_past(fixed.stream)}"
    if fixed.prefetch not in (None, group.prefetch):
        yield f"'{name}' asks for what it reads {group.prefetch} bytes ahead, not {fixed.prefetch}"
    own = tuple(loop.rpartition(".")[0] for loop in group.loops if loop.endswith(".inner"))
    yield from _of_row(name, group.vector, own, fixed)


def _of_placement(placement: Placement, fixed: FixedStage) -> Iterator[str]:
    name = placement.stage
    if fixed.of_group:
        yield f"'{name}' is not the output of a group, so that it has no {fixed.of_group[0]}"
    if fixed.compute not in (None, placement.compute):
        yield f"'{name}' is {_level(placement.compute)}, not {_level(fixed.compute)}"
    if placement.compute == INLINE:
        for key in ("store", "storage", "order", "vector"):
            if getattr(fixed, key):
                yield f"'{name}' is inline, so that it has no {key}"
        return
    if fixed.store not in (None, placement.store):
        yield f"'{name}' is stored at {placement.store}, not at {fixed.store}"
    if fixed.storage not in (None, placement.storage):
        yield f"'{name}' is in {placement.storage}, not in {fixed.storage}"
    yield from _of_row(name, placement.vector, placement.order, fixed)


def _of_row(name: str, vector: Vector | None, order: Sequence[str], fixed: FixedStage) -> Iterator[str]:
    lanes = 1 if vector is None else vector.lanes
    if fixed.vector not in (None, lanes):
        yield f"'{name}' has {_lanes(lanes)}, not {_lanes(fixed.vector)}"
    if not _in_order(fixed.order, order):
        yield f"the dims of '{name}' are in the order {', '.join(order)}, not {', '.join(fixed.order)}"


def _in_order(wanted: Sequence[str], found: Sequence[str]) -> bool:
    """True if all of `wanted` are in `found`, in this order."""
    rest = iter(found)
    return all(name in rest for name in wanted)


def _level(compute: str | None) -> str:
    match compute:
        case "inline":
            return "inline"
        case "root" | None:
            return "at root"
    return f"computed at {compute}"


def _past(stream: bool | None) -> str:
    return "past the caches" if stream else "through the caches"


def _size(size: int | None) -> str:
    return "whole" if size is None else str(size)


def _lanes(lanes: int | None) -> str:
    return "no vectors" if lanes == 1 else f"{lanes} lanes"

"""Decisions that the caller has taken: the search decides the rest.

Fixed        what is fixed of a pipeline's stages, by name; asked by the search, and by `admits` at the end
FixedStage   what is fixed of one stage; None or empty where it is open

Their document, and what can be wrong with one, is in `document`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tilesmith.scheduler.ir.schedule.primitives.primitive import Primitive
from tilesmith.scheduler.ir.schedule.primitives.registry import fixable
from tilesmith.scheduler.ir.schedule.schedule import INLINE, ROOT, Attributes, Group, Placement, Schedule


@dataclass(frozen=True, slots=True)
class FixedStage:
    """Fixed decisions about one stage, each of a primitive that `fixable` has, in the form that this says.

    `compute` is INLINE, ROOT (the stage is the output of a group) or a loop of the group that it is in; `store` a loop.
    `vector` are lanes, 1 for no vectors. `order` are its dims and `loops` the loops of its group, from the innermost;
    those that are not named may lie anywhere between. `tiles` (None: the whole extent), `loops`, `parallel` (or NONE),
    `unroll` (all unrolled dims), `stream` and `prefetch` are of the group that the stage is the output of.
    `attributes` are of primitives that have no field of their own.
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
    attributes: Attributes = ()

    def get(self, key: str) -> object:
        """The fixed value of a primitive, or its own where that is open."""
        if key in FixedStage.__dataclass_fields__:
            return getattr(self, key)
        return dict(self.attributes).get(key)

    @property
    def given(self) -> tuple[tuple[Primitive[Any], Any], ...]:
        """The primitives that are fixed, with what is fixed of them."""
        return tuple((p, value) for p in fixable() if (value := self.get(p.key)) != p.open)

    @property
    def of_group(self) -> tuple[str, ...]:
        """The keys that are fixed and that only the output of a group has."""
        return tuple(p.key for p, _ in self.given if p.records == (Group,))

    @property
    def of_stage(self) -> tuple[str, ...]:
        """The keys that are fixed of a stage in memory or registers, wherever it is computed."""
        return tuple(p.key for p, _ in self.given if Placement in p.records and p.key != "compute")


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
        return False if fixed.of_stage or fixed.of_group else None

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
        yield from _differences(group.output, self.of(group.output), group)
        for placement in group.placements:
            yield from _of_placement(placement, self.of(placement.stage))


FREE = Fixed()
"""Nothing is fixed."""


def _differences(name: str, fixed: FixedStage, record: Group | Placement) -> Iterator[str]:
    """Fixed decisions that a record has otherwise."""
    for primitive, value in fixed.given:
        refusal = primitive.refusal(name, value, record)
        if refusal is not None:
            yield refusal


def _of_placement(placement: Placement, fixed: FixedStage) -> Iterator[str]:
    name = placement.stage
    if fixed.of_group:
        yield f"'{name}' is not the output of a group, so that it has no {fixed.of_group[0]}"
    elif placement.compute == INLINE and fixed.compute in (None, INLINE):
        for key in fixed.of_stage:
            yield f"'{name}' is inline, so that it has no {key}"
    else:
        yield from _differences(name, fixed, placement)

"""Differences of two schedules, in words."""

from __future__ import annotations

from collections.abc import Iterator

from tilesmith.scheduler.ir.schedule.primitives.primitive import Record
from tilesmith.scheduler.ir.schedule.primitives.registry import primitives_of
from tilesmith.scheduler.ir.schedule.schedule import INLINE, ROOT, Placement, Schedule

SHOWN = 3
NAMED = 4


def differences(schedule: Schedule, other: Schedule) -> tuple[str, ...]:
    """The decisions of `schedule` that differ from those of `other`: levels first, then tiles and loops; empty where it
    does not."""
    mine, theirs = _Places(schedule), _Places(other)
    found = (*_primitives("", schedule, other), *_levels(mine, theirs), *_groups(mine, theirs), *_stages(mine, theirs))
    return found or (() if schedule == other else ("in what these words do not tell",))


def in_a_line(found: tuple[str, ...]) -> str:
    """The first differences, and how many more there are."""
    more = len(found) - SHOWN
    return "; ".join(found[:SHOWN]) + (f"; {more} more" if more > 0 else "")


class _Places:
    """Places of every stage of a schedule: its group's output, and its placement there, if it is not that output."""

    def __init__(self, schedule: Schedule) -> None:
        self.groups = {g.output: g for g in schedule.groups}
        self.placements: dict[str, Placement | None] = dict.fromkeys(self.groups)
        for group in schedule.groups:
            for p in group.placements:  # of a stage in several groups where it is not inline
                if p.stage not in self.placements or p.compute != INLINE:
                    self.placements[p.stage] = p

    def level(self, stage: str) -> str:
        placement = self.placements.get(stage)
        if placement is None:
            return ROOT if stage in self.groups else "elsewhere"
        if placement.compute == INLINE:
            return INLINE
        where = "in registers" if placement.storage == "registers" else f"kept in {placement.store}"
        return f"at {placement.compute}, {where}"


def _levels(mine: _Places, theirs: _Places) -> Iterator[str]:
    """Stages that moved to the same level are told together."""
    moved: dict[str, list[str]] = {}
    for stage in mine.placements:
        if mine.level(stage) != theirs.level(stage):
            moved.setdefault(mine.level(stage), []).append(stage)
    for here, stages in moved.items():
        listed = ", ".join(stages[:NAMED]) + (f" and {len(stages) - NAMED} more" if len(stages) > NAMED else "")
        yield f"{listed} {here}"


def _stages(mine: _Places, theirs: _Places) -> Iterator[str]:
    for stage, placement in mine.placements.items():
        other = theirs.placements.get(stage)
        if placement is not None and other is not None and mine.level(stage) == theirs.level(stage):
            yield from _primitives(f"{stage} ", placement, other)


def _groups(mine: _Places, theirs: _Places) -> Iterator[str]:
    for output, group in mine.groups.items():
        if output in theirs.groups:
            yield from _primitives(f"{output} ", group, theirs.groups[output])


def _primitives(name: str, record: Record, other: Record) -> Iterator[str]:
    """The primitives of two records that differ."""
    for primitive in primitives_of(type(record)):
        value = primitive.of(record)
        words = primitive.difference(value) if value != primitive.of(other) else ""
        if words:
            yield name + words

"""Differences of two schedules, in words."""

from __future__ import annotations

from collections.abc import Iterator

from scheduler.ir.schedule.schedule import INLINE, ROOT, Group, Placement, Schedule, Vector

SHOWN = 3
NAMED = 4


def differences(schedule: Schedule, other: Schedule) -> tuple[str, ...]:
    """The decisions of `schedule` that differ from those of `other`: levels first, then tiles and loops; empty where it
    does not."""
    mine, theirs = _Places(schedule), _Places(other)
    cut = "reductions cut otherwise" if schedule.factors != other.factors else ""
    partial = ", ".join(s.partial for s in schedule.separations)
    split = "" if schedule.separations == other.separations else f"windows in two steps: {partial or 'none'}"
    together = "; ".join(", ".join(j.stages) for j in schedule.joinings)
    joined = "" if schedule.joinings == other.joinings else f"outputs computed together: {together or 'none'}"
    found = (
        *filter(None, (cut, split, joined)),
        *_levels(mine, theirs),
        *_groups(mine, theirs),
        *_stages(mine, theirs),
    )
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
        if placement is None or other is None or mine.level(stage) != theirs.level(stage):
            continue
        if placement.vector != other.vector:
            yield f"{stage} {_vector(placement.vector)}"
        if placement.fold != other.fold:
            yield f"{stage} {'folded' if placement.fold else 'whole'}"
        if placement.order != other.order:
            yield f"{stage} loops {' '.join(placement.order)}"
        if placement.updates != other.updates:
            yield f"{stage} updates in other loops"


def _groups(mine: _Places, theirs: _Places) -> Iterator[str]:
    for output, group in mine.groups.items():
        other = theirs.groups.get(output)
        if other is None:
            continue
        if group.tiles != other.tiles:
            yield f"{output} tiles {_tiles(group)}"
        if group.loops != other.loops:
            yield f"{output} loops {' '.join(group.loops)}"
        if group.vector != other.vector:
            yield f"{output} {_vector(group.vector)}"
        if group.parallel != other.parallel:
            yield f"{output} threads over {group.parallel or 'nothing'}"
        if group.unroll != other.unroll:
            yield f"{output} unrolled in {', '.join(group.unroll) or 'nothing'}"
        if group.stream != other.stream:
            yield f"{output} written {'past' if group.stream else 'through'} the caches"
        if group.prefetch != other.prefetch:
            ahead = f"{group.prefetch} bytes ahead" if group.prefetch else "nothing ahead"
            yield f"{output} asks for {ahead}"
        if group.updates != other.updates:
            yield f"{output} updates in other loops"


def _tiles(group: Group) -> str:
    return " x ".join("whole" if t.size is None else str(t.size) for t in group.tiles) or "none"


def _vector(vector: Vector | None) -> str:
    return "no vectors" if vector is None else f"{vector.lanes} lanes along {vector.dim}"

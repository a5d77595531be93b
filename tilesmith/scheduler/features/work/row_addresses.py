"""Addresses of the rows of memory that a step of rows side by side goes along: each has a general register of its own,
as long as there are any."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from tilesmith.cost_models.work import Addresses
from tilesmith.scheduler.features.groups.execution_mode import Run
from tilesmith.scheduler.features.groups.fusion_group import point_alone
from tilesmith.scheduler.features.pipeline.reads import Read
from tilesmith.scheduler.features.traffic.column_walks import slower
from tilesmith.scheduler.features.traffic.running_group import RunningGroup


def addresses_of_rows(group: RunningGroup, name: str, run: Run) -> Addresses | None:
    """The rows of memory that points of a stage side by side load vectors from and store to, and how often one of the
    points comes to a row: to each of those that it reads, as far as no point before it has loaded what it needs of
    them. None of points alone, whose loop has few rows, and where loops of sums or updates go through them."""
    members, reads = group.members, group.reads[name]
    together = reads.side_by_side
    if together == 1 or run.lanes == 1 or group.has_loops(name) or members.facts.stages[name].updates:
        return None
    alone = {r.producer: r for r in point_alone(members, name, reads).reads}
    rows = visits = 0.0
    if not run.registers:
        visits = float(len(members.facts.definitions[name].types))
        rows = together * visits
    for read in reads.reads:
        one = alone[read.producer]
        own, all_of = (_rows(group, r, run, apart) for r, apart in ((one, {}), (read, reads.apart)))
        if read.producer in group.registers or read.looked_up or not own:
            continue
        rows += min(all_of, read.points * together)
        visits += min(own, one.points) * read.points / one.points
    return Addresses(rows, visits)


def _rows(group: RunningGroup, read: Read, run: Run, apart: Mapping[str, int]) -> float:
    """Rows in the box that points together read of a producer; 0 where no row is gone along."""
    producer = group.facts.stages[read.producer]
    spans = dict(zip(producer.dims, read.roughly, strict=True))
    along = [d for d, s in spans.items() if s.known and s.var == run.row]
    if not along:
        return 0.0
    across = (spans[d] for d in slower(producer, along))
    return float(prod(s.extent(apart.get(s.var or "", 1)) for s in across if s.known))

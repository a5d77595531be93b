"""Values of a point that are used more than once, and stay in registers meanwhile, if there are enough."""

from __future__ import annotations

from collections.abc import Iterator

from tilesmith.cost_models.work import Reuse
from tilesmith.scheduler.features.groups.execution_mode import Run
from tilesmith.scheduler.features.groups.fusion_group import Effective
from tilesmith.scheduler.features.operations.register_needs import literals
from tilesmith.scheduler.features.pipeline.pipeline_features import Facts
from tilesmith.scheduler.features.traffic.running_group import RunningGroup
from tilesmith.scheduler.ir.memo import once


@once
def _known_reuse(facts: Facts) -> dict[object, tuple[Reuse, ...]]:
    return {}


def values_reused(group: RunningGroup, name: str, run: Run) -> tuple[Reuse, ...]:
    """Literals of a point of a stage, and what several readers use, itself or inline in it, or rows side by side: loads
    in vectors, and values of stages that are inline. Registers of long reductions are shared out otherwise."""
    reads, facts = group.reads[name], group.facts
    if run.lanes == 1 or facts.stages[name].updates or group.has_loops(name):
        return ()
    known, key = _known_reuse(facts), (name, reads, run.row, group.registers)
    found = known.get(key)
    if found is None:
        loaded = {r.producer: r.executed for r in reads.reads if r.producer not in group.registers}
        still = {r.producer for r in reads.reads if all(s.known and s.var != run.row for s in r.roughly)}
        made = {p: n for p, n in (*loaded.items(), *reads.executed.items()) if p not in still}
        found = known[key] = (*_reused(facts, name, reads, made), *_literals(facts, name, reads))
    return found


def _reused(facts: Facts, name: str, reads: Effective, made: dict[str, float]) -> Iterator[Reuse]:
    """Values that are `made`, so many of each for a point, and used again: at once as many as one point uses, or all
    points together have. Those without a register are stored once, those that were loaded, too: between two uses the
    loop stores to other memory, and compilers do not look there again."""
    stages, times = facts.stages, {name: 1.0, **reads.executed}
    for producer, n in made.items():
        readers = ((often, stages[p].read_of.get(producer)) for p, often in times.items())
        uses = sum(often * read.executed for often, read in readers if read is not None)
        again = max(0.0, uses - n)
        if n and again:
            live = min(uses, n * reads.side_by_side)
            yield Reuse(stages[producer].bytes_per_point, live, again, min(n, again))


def _literals(facts: Facts, name: str, reads: Effective) -> Iterator[Reuse]:
    """The literals of a stage and of what is inline in it."""
    times = {name: 1.0, **reads.executed}
    of = {p: literals(facts.definitions[p]) for p in times}
    if different := frozenset[object]().union(*of.values()):
        uses = sum(n * sum(of[p].values()) for p, n in times.items())
        yield Reuse(facts.stages[name].computed_bytes, float(len(different)), uses, 0.0, uniform=True)

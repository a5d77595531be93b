"""Plan: a pipeline on its way to code, with the schedule of it and the rewrites that were applied."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.schedule import Group, Schedule


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A rewrite that was applied: the `rule` by its name, its place, which are the stages that it `changed`, `made` and
    `removed` (and the params that it made), and the `reason`."""

    rule: str
    changed: tuple[str, ...]
    made: tuple[str, ...]
    removed: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """A pipeline with a schedule of it. `written` is the pipeline of the document, and `pipeline` what `rewrites` have
    made of it: the same values. The groups of the `schedule` are of the stages of `pipeline`; while the search has not
    decided, it has none. Its factors, separations and joinings are among the rewrites."""

    written: Pipeline
    pipeline: Pipeline
    schedule: Schedule
    rewrites: tuple[Rewrite, ...] = ()

    def scheduled(self, groups: tuple[Group, ...], degraded: str | None = None) -> Plan:
        """The plan with these groups."""
        return replace(self, schedule=replace(self.schedule, groups=groups, degraded=degraded))

    def rewritten(self, rule: str, pipeline: Pipeline, reason: str) -> Plan:
        """The plan with `pipeline`, which a rule has made of its own; the plan itself where these are one."""
        if pipeline is self.pipeline:
            return self
        before, after = ({s.name: s for s in p.stages} for p in (self.pipeline, pipeline))
        params = {p.name for p in self.pipeline.params}
        applied = Rewrite(
            rule,
            tuple(n for n, s in after.items() if n in before and before[n] is not s),
            (*(n for n in after if n not in before), *(p.name for p in pipeline.params if p.name not in params)),
            tuple(n for n in before if n not in after),
            reason,
        )
        return replace(self, pipeline=pipeline, rewrites=(*self.rewrites, applied))

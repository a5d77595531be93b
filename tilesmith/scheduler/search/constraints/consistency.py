"""Fixed decisions that no legal schedule has together, seen without a search."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tilesmith.scheduler.analysis.dependence import pure_dims
from tilesmith.scheduler.analysis.stage_graph import StageGraph
from tilesmith.scheduler.errors import Problem
from tilesmith.scheduler.frontends.document.diagnostics import pointer
from tilesmith.scheduler.ir.pipeline.pipeline import Stage
from tilesmith.scheduler.ir.schedule.primitives.primitive import FixedSite
from tilesmith.scheduler.ir.schedule.primitives.registry import fixable
from tilesmith.scheduler.ir.schedule.schedule import INLINE, ROOT, dim_of, inner
from tilesmith.scheduler.search.constraints.constraints import OPEN, Fixed, FixedStage


def contradictions(fixed: Fixed, graph: StageGraph, stages: Mapping[str, Stage]) -> tuple[Problem, ...]:
    """Every contradiction, at the decision that is the first to see it; `stages` are those of the normalised pipeline,
    and all names that are fixed are known."""
    rules = _Rules(fixed, graph, stages)
    return tuple(p for name, stage in fixed.stages for p in rules.of(name, stage))


def readers(graph: StageGraph, name: str) -> dict[str, None]:
    """The stages that read `name`, directly or through others."""
    found: dict[str, None] = {}
    pending = [name]
    while pending:
        for consumer in graph.consumers[pending.pop()]:
            if consumer not in found:
                found[consumer] = None
                pending.append(consumer)
    return found


@dataclass(frozen=True, slots=True)
class _Rules:
    fixed: Fixed
    graph: StageGraph
    stages: Mapping[str, Stage]

    def of(self, name: str, fixed: FixedStage) -> Iterator[Problem]:
        yield from self._place(name, fixed)
        stage = self.stages[name]
        site = FixedSite(name, stage, pure_dims(stage), {p.key: fixed.get(p.key) for p in fixable()})
        for primitive, value in fixed.given:
            for place, message in primitive.contradictions(value, site):
                yield _problem(name, primitive.key, message, *place)
        if name not in self.graph.outputs and not self.fixed.root(name) and not self.fixed.inline(name):
            yield from self._member(name, fixed)

    def _place(self, name: str, fixed: FixedStage) -> Iterator[Problem]:
        """Inline, in a group or its output: one of them, and only with what belongs to it."""
        stage, is_output = self.stages[name], name in self.graph.outputs
        if fixed.compute == INLINE:
            if is_output:
                yield _problem(name, "compute", f"'{name}' is an output of the pipeline, which is at root: not inline")
            if stage.updates:
                yield _problem(name, "compute", f"'{name}' has updates, which need memory: not inline")
            for key in (*fixed.of_stage, *fixed.of_group):
                yield _problem(name, key, f"'{name}' is inline (compute): it has no {key}")
        at_root = fixed.compute == ROOT or bool(fixed.of_group) or is_output
        why = "compute" if fixed.compute == ROOT else (*fixed.of_group, "an output of the pipeline")[0]
        if at_root and fixed.compute not in (None, INLINE, ROOT):
            yield _problem(name, "compute", f"'{name}' is the output of a group ({why}): not computed at a loop of one")
        if at_root and fixed.store is not None:
            yield _problem(name, "store", f"'{name}' is the output of a group ({why}): it is stored at root")
        if at_root and fixed.storage == "registers":
            yield _problem(name, "storage", f"'{name}' is the output of a group ({why}): not in registers")

    def _member(self, name: str, fixed: FixedStage) -> Iterator[Problem]:
        """A stage at loops of a group: which group that can be, and whether it has them."""
        levels = [(k, v) for k, v in (("compute", fixed.compute), ("store", fixed.store)) if v is not None]
        if not levels and fixed.storage != "registers":
            return
        forced = self._groups(name)
        if len(forced) > 1:
            named = " and ".join(f"'{o}'" for o in forced)
            key = levels[0][0] if levels else "storage"
            yield _problem(name, key, f"'{name}' is read by the groups of {named}: at a loop only one of them reads it")
            return
        if _is_inside(fixed.store, fixed.compute):
            yield _problem(name, "store", f"'{name}' is computed at {fixed.compute}, outside of {fixed.store}")
        outputs = forced or [o for o in readers(self.graph, name) if self.fixed.root(o) is not False]
        for key, loop in levels:
            if not any(dim_of(loop) in self.stages[o].dims for o in outputs):
                named = ", ".join(f"'{o}'" for o in outputs[:4]) or "none: all that read it are fixed inside groups"
                yield _problem(name, key, f"the group that '{name}' can be in ({named}) has no loop '{loop}'")
        group = self.fixed.of(outputs[0]) if len(outputs) == 1 else OPEN
        yield from self._nesting(name, group, levels)

    def _groups(self, name: str) -> list[str]:
        """The outputs of groups that are known to read the stage: through what is inline."""
        found: dict[str, None] = {}
        pending, seen = [name], {name}
        while pending:
            for consumer in self.graph.consumers[pending.pop()]:
                if consumer in self.graph.outputs or self.fixed.root(consumer):
                    found[consumer] = None
                elif self.fixed.inline(consumer) and consumer not in seen:
                    seen.add(consumer)
                    pending.append(consumer)
        return list(found)

    def _nesting(self, name: str, group: FixedStage, levels: list[tuple[str, str]]) -> Iterator[Problem]:
        """The order of levels; `group` is what is fixed of the one group that the stage can be in."""
        compute, store = self.fixed.level(name), self.fixed.of(name).store
        if compute in group.loops and store in group.loops and _before(group.loops, store, compute):
            yield _problem(name, "store", f"'{compute}' (compute) is outside of '{store}' in the loops of its group")
        for key, loop in levels:
            if loop == inner(dim_of(loop)) and dim_of(loop) in (group.unroll or ()):
                yield _problem(name, key, f"'{dim_of(loop)}' is unrolled in its group (unroll): no level")
        for consumer in self.graph.consumers[name]:
            other = self.fixed.level(consumer)
            if compute is None or other is None:
                continue
            if _is_inside(compute, other) or _before(group.loops, compute, other):
                yield _problem(
                    name, "compute", f"its consumer '{consumer}' is computed at {other}, outside of {compute}"
                )


def _is_inside(loop: str | None, other: str | None) -> bool:
    """True if `loop` is inside `other` in any group."""
    return loop is not None and other is not None and loop.endswith(".inner") and other.endswith(".outer")


def _before(loops: tuple[str, ...], loop: str | None, other: str | None) -> bool:
    return loop in loops and other in loops and loops.index(str(loop)) < loops.index(str(other))


def _problem(name: str, key: str, message: str, *further: str) -> Problem:
    return Problem("fixed_contradiction", pointer(name, key, *further), message)

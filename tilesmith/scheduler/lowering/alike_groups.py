"""The pass `functions`: the loops of groups that are alike, as those of the iterations of a filter are, become one
function, which is lowered once."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import replace
from math import prod

from tilesmith.scheduler.analysis.dead_points import halves
from tilesmith.scheduler.analysis.stage_form import form
from tilesmith.scheduler.analysis.stage_graph import all_parts
from tilesmith.scheduler.ir.loop.builder import Builder
from tilesmith.scheduler.ir.loop.computations import Compute, FusedRow
from tilesmith.scheduler.ir.loop.program import (
    AssignIndex,
    Body,
    Fence,
    If,
    Let,
    Loop,
    MutableIndex,
    Statement,
)
from tilesmith.scheduler.ir.loop.traversal import defined, regions, used, walk
from tilesmith.scheduler.ir.pipeline.expressions import Const, Var
from tilesmith.scheduler.lowering.columns import Unlike
from tilesmith.scheduler.lowering.estimates import Estimates
from tilesmith.scheduler.lowering.generalization import Generalization, Known, proportions
from tilesmith.scheduler.lowering.index_generalization import Proportions
from tilesmith.scheduler.lowering.unit import LoweringUnit

WORTH_A_FUNCTION = 64
"""Operations in the text of all groups but the first from which on a function is worth it. Each is a line or two, in
vectors and at the ends of rows: fewer save little to the compiler, and cost the reader a look elsewhere."""
NEARLY = 1.5
"""The ratio of sizes, at most, of groups that are one function: it is lowered as is best for those of the first."""

_Run = tuple[int, Body]
"""Statements that stand for what a group computes, and the number of the first in the program."""


def with_functions(unit: LoweringUnit) -> LoweringUnit:
    """*Before*: loops of groups, of which some may differ in names and in numbers of indices alone. *After*: those that
    do are one function, and an `invoke` each. *Ignores* stages with updates; and all groups, where the backend has no
    functions."""
    return _Groups(unit).run() if unit.functions else unit


class _Groups:
    def __init__(self, unit: LoweringUnit) -> None:
        self.unit = unit
        self.body = unit.program.body
        self.stages = {s.name: s for s in unit.pipeline.stages}

    def run(self) -> LoweringUnit:
        alike = self._of_one_outline()
        if not alike:
            return self.unit
        b, trial = self.unit.builder(), self.unit.builder()
        estimates, known = self.unit.estimates(b), self._known(b)
        estimates.add(self.body)
        instead: dict[int, Body] = {}
        for runs in alike:
            while len(runs) > 1:
                first, *others = runs
                near = [x for x in others if _is_near(estimates, first, x)]
                members, found = self._alike(trial, known, [first, *near])
                runs = [x for x in others if x not in members]
                if self._is_worth(members):
                    common = Generalization(b, known, tuple(body for _, body in members), found)
                    f, calls = common.function(b.fresh("group"))
                    for (n, body), call in zip(members, calls, strict=True):
                        instead |= dict.fromkeys(range(n, n + len(body)), ()) | {n: (call,)}
                    instead[first[0]] = (f, calls[0])
        made = [x for n, s in enumerate(self.body) for x in instead.get(n, (s,))]
        return replace(self.unit, program=replace(self.unit.program, body=tuple(made)))

    def _known(self, b: Builder) -> Known:
        values = {**b.values, **{s.name: s.value for s in self.body if isinstance(s, Let)}}
        outputs = frozenset(a.name for a in self.unit.program.arguments if a.output)
        return Known(values, self.stages, halves(self.unit.pipeline).get, outputs)

    # what may be alike ------------------------------------------------------------

    def _of_one_outline(self) -> list[list[_Run]]:
        """Runs that are the same but for what a generalisation finds out, several each."""
        runs = [run for run in self._runs() if self._is_pure(run)]
        if len(runs) < 2:
            return []
        found: dict[Hashable, list[_Run]] = defaultdict(list)
        for n, body in runs:
            found[self._outline(body)].append((n, body))
        return [several for several in found.values() if len(several) > 1 and self._is_whole(several)]

    def _runs(self) -> Iterator[_Run]:
        """The longest runs of statements that are about what is computed, not about the memory of the call; a comment
        begins another."""
        begin = 0
        for n, s in enumerate((*self.body, None)):
            if not isinstance(s, Loop | If | MutableIndex | Fence | Compute | FusedRow):
                if any(isinstance(x, Loop | Compute | FusedRow) for x in self.body[begin:n]):
                    yield begin, self.body[begin:n]
                begin = n + 1

    def _is_pure(self, run: _Run) -> bool:
        names = [name for s in walk(run[1]) for name in _stages(s)]
        return bool(names) and not any(self.stages[name].updates for name in names)

    def _outline(self, body: Body) -> Hashable:
        return tuple(map(self._outline_of, body))

    def _outline_of(self, s: Statement) -> Hashable:
        if isinstance(s, Compute | FusedRow):
            forms = tuple(form(self.stages[name]).key for name in _stages(s))
            return type(s), forms, s.order, s.vector, s.unroll, len(s.reads.buffers)
        return (type(s), *map(self._outline, regions(s)))

    def _is_whole(self, several: list[_Run]) -> bool:
        """True if what such runs define is theirs alone."""
        if not any(isinstance(s, MutableIndex) for s in several[0][1]):
            return True
        uses = Counter(name for s in walk(self.body) for name in _named(s))
        for _, body in several:
            own = Counter(name for s in walk(body) for name in _named(s))
            if any(uses[name] != own[name] for s in body for name in defined(s)):
                return False
        return True

    # what is alike ------------------------------------------------------------

    def _alike(self, trial: Builder, known: Known, runs: list[_Run]) -> tuple[list[_Run], Proportions]:
        """The runs that are like the first, as a rule all of them, and the proportions of their numbers."""

        def common(several: list[_Run]) -> Proportions | None:
            try:
                return proportions(trial, known, tuple(body for _, body in several))
            except Unlike:
                return None

        found = common(runs)
        if found is None:
            first, *others = runs
            runs = [first, *(x for x in others if common([first, x]) is not None)]
            found = common(runs)
        return (runs[:1], {}) if found is None else (runs, found)

    def _is_worth(self, members: list[_Run]) -> bool:
        """True if a function with calls is shorter than its members."""
        operations = 0
        for s in walk(members[0][1]):
            points = prod(x.extent for x in s.unroll) if isinstance(s, Compute | FusedRow) else 0
            points *= s.block.points if isinstance(s, Compute) and s.block is not None else 1
            for name in _stages(s):
                kinds = all_parts(self.stages[name]).items()
                operations += points * sum(len(found) for kind, found in kinds if kind not in (Const, Var))
        return (len(members) - 1) * operations >= WORTH_A_FUNCTION


def _stages(s: Statement) -> tuple[str, ...]:
    """The stages that a statement computes, those that are inline included."""
    if isinstance(s, FusedRow):
        return (s.output, *(x.stage for x in s.stages), *s.reads.inlined)
    return (s.stage, *s.reads.inlined) if isinstance(s, Compute) else ()


def _named(s: Statement) -> tuple[str, ...]:
    """The names that a statement uses, or gives another value."""
    return (*used(s), s.name) if isinstance(s, AssignIndex) else tuple(used(s))


def _is_near(estimates: Estimates, first: _Run, other: _Run) -> bool:
    """True if sizes differ by a little."""
    sizes = zip(_sizes(first[1], estimates), _sizes(other[1], estimates), strict=True)
    return all(x <= NEARLY * y and y <= NEARLY * x for x, y in sizes)


def _sizes(body: Body, estimates: Estimates) -> list[int]:
    """The extents of what is computed and of the memory of it, as they are expected."""
    found = []
    for s in walk(body):
        if isinstance(s, Compute | FusedRow):
            found += [estimates.range(x.ends)[1] for x in s.box]
            found += [estimates.value(x) for b in (*s.buffers, *s.reads.buffers) for x in b.extent]
    return found

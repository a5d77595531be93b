"""The unit of lowering: what its passes take and leave."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tilesmith.platforms import Platform
from tilesmith.scheduler.analysis.bounds_inference import Box
from tilesmith.scheduler.ir.index import Index
from tilesmith.scheduler.ir.loop.builder import Builder
from tilesmith.scheduler.ir.loop.printer import buffers_of
from tilesmith.scheduler.ir.loop.program import Program
from tilesmith.scheduler.ir.loop.traversal import defined, defined_inside, walk
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.plan import Plan
from tilesmith.scheduler.lowering.estimates import Estimates, estimated_strides
from tilesmith.scheduler.lowering.float_ends import calls


@dataclass(frozen=True, slots=True)
class LoweringUnit:
    """A plan on its way to a loop program. `pipeline` is the plan's, from the pass `layout` on with its channels laid
    out; `symbols` are what a call gives, at the estimates; `boxes` are the regions of all images and stages that the
    outputs need, in the terms of the program's `bounds`, some of which stand for functions, which `rounded` has.
    `functions`: groups that are alike may become functions of the program."""

    plan: Plan
    platform: Platform
    pipeline: Pipeline
    program: Program
    symbols: Mapping[str, int]
    boxes: Mapping[str, Box] = field(default_factory=dict)
    rounded: Mapping[str, Index] = field(default_factory=dict)
    functions: bool = False

    def builder(self) -> Builder:
        """A builder of the body, in which what comes before it is known; no fresh name is one of the program's."""
        p = self.platform
        b = Builder(p.vector_unit, p.line_bytes, p.core, self.program.strict)
        b.call = calls(self.params())
        b.rounded.update(self.rounded)
        b.reserve(_names(self.program))
        for s in (*self.program.derivation, *self.program.bounds):
            b.replay(s)
        b.scopes[0].statements.clear()
        return b

    def estimates(self, b: Builder) -> Estimates:
        """The estimates of what bounds define, and of the loops that `b` builds."""
        symbols = {**self.symbols, **estimated_strides(self.program.arguments, self.symbols)}
        found = Estimates(symbols, b.ranges, rounded=b.rounded)
        found.add(self.program.bounds)
        return found

    def params(self) -> dict[str, str]:
        """The names of params in the program."""
        return {p.name: p.c_name for p in (*self.program.params, *self.program.derived)}


def _names(program: Program) -> Iterator[str]:
    """Every name that a program has."""
    yield from (a.c_name for a in program.arguments)
    yield from (p.c_name for p in (*program.params, *program.derived))
    yield from (b.pointer for b in buffers_of(program))
    for s in walk((*program.derivation, *program.bounds, *program.body)):
        yield from defined(s)
        yield from defined_inside(s)

"""Passes of lowering, from a plan to a loop program: one list, in this order."""

from __future__ import annotations

from dataclasses import replace

from tilesmith.platforms import Platform
from tilesmith.scheduler.ir.loop.program import Program
from tilesmith.scheduler.ir.pass_manager import Observer, Pass, PassPipeline
from tilesmith.scheduler.ir.plan import Plan
from tilesmith.scheduler.lowering.alike_groups import with_functions
from tilesmith.scheduler.lowering.bounds import with_bounds
from tilesmith.scheduler.lowering.channel_layout import with_layout
from tilesmith.scheduler.lowering.estimates import estimated_symbols
from tilesmith.scheduler.lowering.loops import with_loops
from tilesmith.scheduler.lowering.rows import with_rows
from tilesmith.scheduler.lowering.unit import LoweringUnit

LAYING_OUT = PassPipeline(
    (
        Pass(
            "layout",
            "a plan, and a program without arguments; storage of stages as they have it",
            "channels of stages that are looked up lie side by side where vectors compute all of them",
            with_layout,
        ),
        Pass(
            "bounds",
            "a program without arguments",
            "arguments, and the regions that the outputs need with the checks of them; no body",
            with_bounds,
        ),
        Pass(
            "loops",
            "an empty body",
            "loops of the groups, with boxes, sliding windows and buffers; `compute` and `fused_row` are not expanded",
            with_loops,
        ),
    )
)
"""The passes after which all memory is declared."""

EXPANDING = PassPipeline(
    (
        Pass(
            "functions",
            "loops of groups, of which some may be alike",
            "those that are, are one function, and a call each, if the backend has functions",
            with_functions,
        ),
        Pass("rows", "computations that are not expanded", "loops over vectors and points", with_rows),
    )
)
"""The passes after these."""

LOWERING = PassPipeline((*LAYING_OUT.passes, *EXPANDING.passes))


def lower(plan: Plan, platform: Platform, observer: Observer | None = None, functions: bool = False) -> Program:
    """The loop program of a legal plan (see `tilesmith.scheduler.legality.verifier`). The observer sees what each pass
    has left of it.

    Sizes stay symbols: the program runs for every region of the outputs. The platform gives the line size, the size
    of a register and the number of threads that the declared buffers are counted for. With `functions` groups that are
    alike are one.
    """
    return LOWERING(begun(plan, platform, functions), None if observer is None else _Programs(observer)).program


def laid_out(plan: Plan, platform: Platform) -> LoweringUnit:
    """A legal plan with all of its memory declared: the `estimates` of the program are its buffers, (name, bytes) at
    the estimated sizes, all threads together."""
    return LAYING_OUT(begun(plan, platform))


def expanded(unit: LoweringUnit, functions: bool = False) -> Program:
    """The rest of the loop program that `lower` makes of a plan that is laid out."""
    return EXPANDING(replace(unit, functions=functions)).program


def begun(plan: Plan, platform: Platform, functions: bool = False) -> LoweringUnit:
    """The unit that the first pass is given: a program without anything in it."""
    pipeline, vectors = plan.pipeline, platform.vector_unit
    program = Program(
        name=pipeline.name,
        doc=pipeline.doc,
        method=plan.schedule.method,
        arguments=(),
        params=(),
        buffers=(),
        bounds=(),
        required=(),
        body=(),
        estimates=(),
        strict=plan.schedule.strict,
        line_bytes=platform.line_bytes,
        register_bytes=vectors.register_bytes,
        carried_vectors=vectors.carried_vectors,
        permuted_bytes=vectors.permuted_bytes,
        crowded_bytes=platform.caches[0].crowded_bytes(platform.core.prefetch.rows),
        architecture=platform.architecture,
    )
    return LoweringUnit(
        plan, platform, pipeline, program, estimated_symbols(plan.written, pipeline), functions=functions
    )


class _Programs:
    """An observer of lowering that shows another the programs alone."""

    def __init__(self, observer: Observer) -> None:
        self.observer = observer

    def begun(self, name: str) -> None:
        self.observer.begun(name)

    def ended(self, name: str, unit: object) -> None:
        assert isinstance(unit, LoweringUnit)
        self.observer.ended(name, unit.program)

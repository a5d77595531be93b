"""Passes of lowering, from a plan to a loop program: one list, in this order."""

from __future__ import annotations

from tilesmith.platforms import Platform
from tilesmith.scheduler.ir.loop.program import Program
from tilesmith.scheduler.ir.pass_manager import Observer, Pass, PassPipeline
from tilesmith.scheduler.ir.plan import Plan
from tilesmith.scheduler.lowering.bounds import with_bounds
from tilesmith.scheduler.lowering.channel_layout import with_layout
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

LOWERING = PassPipeline(
    (
        *LAYING_OUT.passes,
        Pass("rows", "computations that are not expanded", "loops over vectors and points", with_rows),
    )
)


def lower(plan: Plan, platform: Platform, observer: Observer | None = None) -> Program:
    """The loop program of a legal plan (see `tilesmith.scheduler.legality.verifier`). The observer sees what each pass
    has left of it.

    Sizes stay symbols: the program runs for every region of the outputs. The platform gives the line size, the size
    of a register and the number of threads that the declared buffers are counted for.
    """
    return LOWERING(begun(plan, platform), None if observer is None else _Programs(observer)).program


def buffer_bytes(plan: Plan, platform: Platform) -> tuple[tuple[str, int], ...]:
    """The buffers that the program of a legal plan declares, (name, bytes) at the estimated sizes, all threads
    together, found without making the rest of it."""
    return LAYING_OUT(begun(plan, platform)).program.estimates


def begun(plan: Plan, platform: Platform) -> LoweringUnit:
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
        architecture=platform.architecture,
    )
    return LoweringUnit(plan, platform, pipeline, program)


class _Programs:
    """An observer of lowering that shows another the programs alone."""

    def __init__(self, observer: Observer) -> None:
        self.observer = observer

    def begun(self, name: str) -> None:
        self.observer.begun(name)

    def ended(self, name: str, unit: object) -> None:
        assert isinstance(unit, LoweringUnit)
        self.observer.ended(name, unit.program)

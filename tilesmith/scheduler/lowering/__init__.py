"""Pipeline and schedule to a loop program."""

from tilesmith.scheduler.ir.loop.program import Program
from tilesmith.scheduler.lowering.passes import expanded, laid_out, lower
from tilesmith.scheduler.lowering.unit import LoweringUnit

__all__ = ["LoweringUnit", "Program", "expanded", "laid_out", "lower"]

"""Pipeline and schedule to a loop program."""

from tilesmith.scheduler.ir.loop.program import Program
from tilesmith.scheduler.lowering.passes import lower

__all__ = ["Program", "lower"]

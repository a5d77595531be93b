"""Pipeline and schedule to a loop program."""

from scheduler.ir.loop.program import Program
from scheduler.lowering.lower import lower

__all__ = ["Program", "lower"]

"""Pipeline and schedule to a loop program."""

from tilesmith.scheduler.ir.loop.program import Program
from tilesmith.scheduler.lowering.passes import buffer_bytes, lower

__all__ = ["Program", "buffer_bytes", "lower"]

"""Pipeline and schedule to a loop program."""

from scheduler.lower.lower import lower
from scheduler.lower.program import Program

__all__ = ["Program", "lower"]

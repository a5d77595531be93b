"""Pipelines of Halide's Python, in and out: `from_halide` makes a pipeline of theirs, `apply` schedules theirs by ours.

Needs the package halide, which is only imported when it is called.
"""

from scheduler.interchange.apply import Applied, apply
from scheduler.interchange.live import HalideMissing, Imported, NotExpressible, from_halide

__all__ = ["Applied", "HalideMissing", "Imported", "NotExpressible", "apply", "from_halide"]

"""Pipelines of Halide's Python, in and out: `from_halide` makes a pipeline of theirs, `apply` schedules theirs by ours.

Needs the package halide, which is only imported when it is called.
"""

from scheduler.interchange.live import HalideMissing, Imported, NotExpressible, from_halide

__all__ = ["HalideMissing", "Imported", "NotExpressible", "from_halide"]

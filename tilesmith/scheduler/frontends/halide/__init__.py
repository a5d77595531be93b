"""Pipelines of Halide's Python as documents: `from_halide`.

Needs the package halide, which is only imported when it is called.
"""

from tilesmith.scheduler.frontends.halide.live import HalideMissing, Imported, NotExpressible, from_halide

__all__ = ["HalideMissing", "Imported", "NotExpressible", "from_halide"]

"""Pipelines of Halide's Python as documents: `from_halide`.

Needs the package halide, which is only imported when it is called. What is here is loaded when it is asked for: the
importer is listed wherever documents are read, and few of these are Halide's.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilesmith.scheduler.frontends.halide.live import HalideMissing, Imported, NotExpressible, from_halide

__all__ = ["HalideMissing", "Imported", "NotExpressible", "from_halide"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tilesmith.scheduler.frontends.halide import live

    return getattr(live, name)

"""Loop program to C; schedule to loop nest and Halide."""

from scheduler.emit.c import emit_c
from scheduler.emit.csource import CSource

__all__ = ["CSource", "emit_c"]

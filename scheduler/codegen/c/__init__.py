"""Loop program to C; schedule to loop nest and Halide."""

from scheduler.codegen.artifact import CSource
from scheduler.codegen.c.emitter import emit_c

__all__ = ["CSource", "emit_c"]

"""Loop program to C; schedule to loop nest and Halide."""

from tilesmith.scheduler.codegen.artifact import CSource
from tilesmith.scheduler.codegen.c.emitter import emit_c

__all__ = ["CSource", "emit_c"]

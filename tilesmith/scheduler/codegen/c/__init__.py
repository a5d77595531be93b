"""The backend `c`: loop programs as C with GCC's vector extensions, behind an entry that checks its arguments."""

from tilesmith.scheduler.codegen.artifact import CSource
from tilesmith.scheduler.codegen.c.emitter import emit_c

__all__ = ["CSource", "emit_c"]

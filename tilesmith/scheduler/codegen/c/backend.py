"""The backend `c`: C with OpenMP and vector extensions, for processors."""

from __future__ import annotations

from dataclasses import dataclass

from tilesmith.platforms import Platform
from tilesmith.scheduler.codegen.artifact import CSource
from tilesmith.scheduler.codegen.base import Backend
from tilesmith.scheduler.codegen.c.emitter import emit_c
from tilesmith.scheduler.ir.loop.program import Program


@dataclass(frozen=True, slots=True)
class CBackend(Backend):
    """A backend that makes one C file."""

    name: str = "c"
    platform_kind: str = "cpu"

    def emit(self, program: Program, platform: Platform) -> CSource:
        """The C of a loop program."""
        return emit_c(program)

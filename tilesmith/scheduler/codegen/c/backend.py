"""The backends `c` and `c-halide`: C with OpenMP and vector extensions, for processors."""

from __future__ import annotations

from dataclasses import dataclass

from tilesmith.platforms import Platform
from tilesmith.scheduler.codegen.artifact import CSource
from tilesmith.scheduler.codegen.base import Backend
from tilesmith.scheduler.codegen.c.emitter import emit_c
from tilesmith.scheduler.codegen.c.halide_entry import with_halide_entry
from tilesmith.scheduler.ir.loop.program import Program


@dataclass(frozen=True, slots=True)
class CBackend(Backend):
    """A backend that makes one C file."""

    name: str = "c"
    platform_kind: str = "cpu"
    functions: bool = True

    def emit(self, program: Program, platform: Platform) -> CSource:
        """The C of a loop program."""
        return emit_c(program)


@dataclass(frozen=True, slots=True)
class HalideCBackend(Backend):
    """A backend that makes that file with one more function, of Halide's buffers."""

    name: str = "c-halide"
    platform_kind: str = "cpu"
    functions: bool = True

    def emit(self, program: Program, platform: Platform) -> CSource:
        """The C of a loop program, with a second entry."""
        return with_halide_entry(emit_c(program), program)

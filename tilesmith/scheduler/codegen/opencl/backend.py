"""The backend `opencl`: kernels in OpenCL C 1.2, and C that starts them, for devices."""

from __future__ import annotations

from dataclasses import dataclass

from tilesmith.platforms import OpenClPlatform, Platform
from tilesmith.scheduler.codegen.artifact import CSource
from tilesmith.scheduler.codegen.base import Backend
from tilesmith.scheduler.ir.loop.program import Program
from tilesmith.scheduler.ir.pass_manager import PassPipeline


@dataclass(frozen=True, slots=True)
class OpenClBackend(Backend):
    """A backend that makes one C file, with the kernels in it. Its passes and its emitter are loaded when they are
    used: most who list backends make C for a CPU."""

    name: str = "opencl"
    platform_kind: str = "opencl"

    def passes(self, platform: Platform) -> PassPipeline[Program]:
        """The passes over a loop program for the device."""
        from tilesmith.scheduler.codegen.opencl.passes import PASSES

        return PASSES

    def emit(self, program: Program, platform: Platform) -> CSource:
        """The C of a loop program."""
        from tilesmith.scheduler.codegen.opencl.emitter import emit

        assert isinstance(platform, OpenClPlatform)
        return emit(program, platform)

"""The backend `opencl`: kernels in OpenCL C 1.2, and C that starts them, for devices."""

from __future__ import annotations

from dataclasses import dataclass

from platforms import OpenClPlatform, Platform
from scheduler.codegen.artifact import CSource
from scheduler.codegen.base import Backend
from scheduler.codegen.opencl.emitter import emit
from scheduler.codegen.opencl.passes import PASSES
from scheduler.ir.loop.program import Program
from scheduler.ir.pass_manager import PassPipeline


@dataclass(frozen=True, slots=True)
class OpenClBackend(Backend):
    """A backend that makes one C file, with the kernels in it."""

    name: str = "opencl"
    platform_kind: str = "opencl"

    def passes(self, platform: Platform) -> PassPipeline[Program]:
        """The passes over a loop program for the device."""
        return PASSES

    def emit(self, program: Program, platform: Platform) -> CSource:
        """The C of a loop program."""
        assert isinstance(platform, OpenClPlatform)
        return emit(program, platform.device, platform.device_type)

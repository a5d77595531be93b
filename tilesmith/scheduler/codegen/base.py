"""The interface of a backend: the code of a loop program for platforms of one kind."""

from __future__ import annotations

from typing import Protocol

from tilesmith.platforms import Platform
from tilesmith.scheduler.codegen.artifact import CSource
from tilesmith.scheduler.ir.loop.program import Program
from tilesmith.scheduler.ir.pass_manager import PassPipeline
from tilesmith.scheduler.loop_passes.passes import PASSES


class Backend(Protocol):
    """A code generator: its name, the kind of platforms that its code runs on (`Platform.kind`), what it makes of loop
    programs, and the code."""

    @property
    def name(self) -> str: ...
    @property
    def platform_kind(self) -> str: ...

    @property
    def functions(self) -> bool:
        """True if programs may have a `Function`, and statements that invoke it."""
        return False

    def passes(self, platform: Platform) -> PassPipeline[Program]:
        """The passes from what lowering makes to what is printed: all, where a backend says no other."""
        return PASSES

    def emit(self, program: Program, platform: Platform) -> CSource:
        """The code of a loop program for a platform of that kind: the same bytes for the same of both."""
        ...

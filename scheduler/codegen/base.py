"""What a backend is: the code of a loop program for platforms of one kind."""

from __future__ import annotations

from typing import Protocol

from scheduler.codegen.artifact import CSource
from scheduler.ir.loop.program import Program


class Backend(Protocol):
    """A code generator: its name, the kind of platforms that its code runs on (`Platform.kind`), and the code."""

    @property
    def name(self) -> str: ...
    @property
    def platform_kind(self) -> str: ...

    def emit(self, program: Program) -> CSource:
        """The code of a loop program: the same bytes for the same program."""
        ...

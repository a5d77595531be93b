"""The code of a pipeline and schedule, as data: what the compiler, the store and the caller need to know of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath


@dataclass(frozen=True, slots=True)
class CSource:
    """One self-contained C file and its header.

    `entry` is the exported function; `<entry>_argv(void **)` takes the same arguments as an array of
    pointers: inputs, params, outputs (one buffer a tuple component). `flags` must be given to the
    compiler: they carry the meaning (wrapping integers, contraction), not the speed. `buffers` are the
    scratch buffers that the schedule declares, (name, bytes) at the estimated sizes, all threads together.
    `libraries` are linked beside that of mathematics.
    `language` is the suffix of its file; what is not C has no header, and its caller compiles and runs it.
    """

    code: str
    header: str
    header_name: str
    entry: str
    flags: tuple[str, ...]
    buffers: tuple[tuple[str, int], ...]
    language: str = "c"
    libraries: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.code

    @property
    def code_name(self) -> str:
        """The name of the file: that of the header, or else of the function."""
        return f"{PurePath(self.header_name).stem or self.entry}.{self.language}"

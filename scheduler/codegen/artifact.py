"""The C file of a pipeline and schedule, as data: what the compiler, the store and the caller need to know of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CSource:
    """One self-contained C file and its header.

    `entry` is the exported function; `<entry>_argv(void **)` takes the same arguments as an array of
    pointers: inputs, params, outputs (one buffer a tuple component). `flags` must be given to the
    compiler: they carry the meaning (wrapping integers, contraction), not the speed. `buffers` are the
    scratch buffers that the schedule declares, (name, bytes) at the estimated sizes, all threads together.
    """

    code: str
    header: str
    header_name: str
    entry: str
    flags: tuple[str, ...]
    buffers: tuple[tuple[str, int], ...]

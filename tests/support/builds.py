"""Builds of generated code for tests: for vectors of some size, with a compiler and its flags; and what watches it
while it runs."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from support.tools import require_tool

from tilesmith.platforms.cpu.detect import host

WIDTHS = (0, 8, 16, 32, 64)
"""Bytes of a vector register: none at all, and those that compilers for x86 have."""

_ISAS = {"sse4.2": 16, "avx2": 32, "avx512": 64}
"""The processors that TILESMITH_HOST_ISA may take the host for, and their vectors."""
_LEVELS = {16: "x86-64-v2", 32: "x86-64-v3", 64: "x86-64-v4"}

_TAKEN_FOR = os.environ.get("TILESMITH_HOST_ISA", "")
HOST_BYTES = min(host().vector_bytes, _ISAS.get(_TAKEN_FOR, host().vector_bytes))
"""Bytes of the widest vectors that code of the tests may have where it is run."""


def for_vectors(vector_bytes: int) -> tuple[str, ...]:
    """The flags of a machine with such vectors: those of the host itself, if it has them and is not taken for less."""
    if vector_bytes == HOST_BYTES and not _TAKEN_FOR:
        return ("-march=native",)
    if vector_bytes < min(_LEVELS) or platform.machine() != "x86_64":
        return ()
    return (f"-march={_LEVELS[vector_bytes]}", *(("-mprefer-vector-width=512",) if vector_bytes == 64 else ()))


@dataclass(frozen=True)
class Build:
    """A compiler and its flags, but for those of the machine. `watch` is what a sanitizer looks for: reads and writes
    outside of buffers and undefined behaviour, or what two iterations of a parallel loop do to each other."""

    compiler: str
    flags: tuple[str, ...]
    watch: Literal["memory", "threads"] | None = None


BUILDS = {
    "gcc-O0": Build("gcc", ("-O0",)),
    "gcc-O1": Build("gcc", ("-O1",)),
    "gcc-O3": Build("gcc", ("-O3",)),
    "clang-O1": Build("clang", ("-O1",)),
    "clang-O3": Build("clang", ("-O3",)),
    "memory": Build("gcc", ("-O0", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"), "memory"),
    "threads": Build(
        "gcc", ("-O0", "-g1", "-fsanitize=thread", str(Path(__file__).parent / "watched_threads.c")), "threads"
    ),
}


def environment(build: Build) -> Mapping[str, str]:
    """The environment of a process that calls the code. Fresh memory is full of rubbish."""
    if build.watch is None:
        return {"MALLOC_PERTURB_": "165"}
    if build.watch == "memory":  # NumPy's blocks have guards if the whole process runs under AddressSanitizer
        options = {"ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1:max_malloc_fill_size=1048576:malloc_fill_byte=165"}
        return {"LD_PRELOAD": _library("libasan.so"), **options}
    return {"LD_PRELOAD": _library("libtsan.so"), "TSAN_OPTIONS": "halt_on_error=1:exitcode=66:report_bugs=1"}


def _library(name: str) -> str:
    """The path of a library of GCC."""
    found = subprocess.run(
        [require_tool("gcc"), f"-print-file-name={name}"], capture_output=True, text=True, check=True
    )
    path = Path(found.stdout.strip())
    assert path.is_absolute(), f"GCC has no {name}"
    return os.fspath(path)

"""How generated code is compiled for a test, and what watches it while it runs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from support.tools import require_tool

DARING = ("-O3", "-march=native", "-mprefer-vector-width=512")


@dataclass(frozen=True)
class Build:
    """A compiler and its flags. `watch` is what a sanitizer looks for: reads and writes outside of buffers and
    undefined behaviour, or what two iterations of a parallel loop do to each other."""

    compiler: str
    flags: tuple[str, ...]
    watch: Literal["memory", "threads"] | None = None


BUILDS = {
    "gcc-O0": Build("gcc", ("-O0", "-march=native")),
    "gcc-O1": Build("gcc", ("-O1", "-march=native")),
    "gcc-O1-sse": Build("gcc", ("-O1",)),
    "gcc-O3": Build("gcc", DARING),
    "clang-O1": Build("clang", ("-O1", "-march=native")),
    "clang-O3": Build("clang", DARING),
    "memory": Build(
        "gcc", ("-O0", "-march=native", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"), "memory"
    ),
    "threads": Build(
        "gcc",
        ("-O0", "-march=native", "-g1", "-fsanitize=thread", str(Path(__file__).parent / "watched_threads.c")),
        "threads",
    ),
}  # fmt: skip


def environment(build: Build) -> Mapping[str, str]:
    """What a process that calls the code needs in its environment. Fresh memory is full of rubbish."""
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

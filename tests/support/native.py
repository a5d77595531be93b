"""Generated C, compiled and loaded in this process: the judge of lowering and emission."""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import subprocess
from pathlib import Path

import pytest
from support.builds import HOST_BYTES, for_vectors
from support.kept import KEPT
from support.tools import require_compiler

from tilesmith.platforms import Platform
from tilesmith.scheduler.codegen.artifact import CSource
from tilesmith.scheduler.codegen.c.emitter import emit_c
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.plan import Plan
from tilesmith.scheduler.ir.schedule.schedule import Schedule
from tilesmith.scheduler.loop_passes.passes import optimize
from tilesmith.scheduler.lowering import lower
from tilesmith.scheduler.rewrites.passes import rewrite

WARNINGS = ("-Wall", "-Wextra", "-Werror")


def source_of(pipeline: Pipeline, schedule: Schedule, platform: Platform) -> CSource:
    return source_of_plan(rewrite(pipeline, schedule), platform)


def source_of_plan(plan: Plan, platform: Platform) -> CSource:
    return emit_c(optimize(lower(plan, platform, functions=True)))


def widest_vector(code: str) -> int:
    """Bytes of the widest vector type that C code declares but inside of functions, which do so for an instruction."""
    return max(map(int, re.findall(r"^VECTOR\(\w+, \w+, (\d+)\);", code, re.MULTILINE)), default=0)


def loops_over_whole_vectors(code: str) -> list[str]:
    """The texts of the loops of C code that compute whole vectors between the ends of a row."""
    return [found for _, found in re.findall(r"^( *)/\* whole vectors \*/\n(.*?)^\1}", code, re.MULTILINE | re.DOTALL)]


def compiled(
    source: CSource, flags: tuple[str, ...] = ("-O0",), compiler: str = "gcc", vector_bytes: int = HOST_BYTES
) -> Path:
    """A shared object of `source`, made for a machine with vectors of so many bytes: it has none that are wider, and
    the compiler nothing to warn of. Kept by content in KEPT."""
    require_compiler(compiler)
    assert widest_vector(source.header) <= vector_bytes, "wider than the machine's"
    flags = (*for_vectors(vector_bytes), *flags)
    text = "\0".join([source.code, source.header, compiler, *source.flags, *flags])
    folder = KEPT / hashlib.sha256(text.encode()).hexdigest()
    library = folder / "x.so"
    if not library.exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / source.header_name).write_text(source.header)
        c = folder / "x.c"
        c.write_text(source.code)
        out = folder / f"x.{os.getpid()}.so"
        command = [compiler, *source.flags, *WARNINGS, *flags, "-fopenmp", "-shared", "-fPIC", "-o", out, c, "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=_unwatched())
        assert done.returncode == 0, f"{c}\n{done.stderr[:4000]}"
        out.rename(library)
    return library


def _unwatched() -> dict[str, str]:
    """The environment without what watches this process: the compiler would be watched, too, and slow."""
    return {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "MALLOC_PERTURB_")}


def build(
    source: CSource, flags: tuple[str, ...] = ("-O0",), compiler: str = "gcc", vector_bytes: int = HOST_BYTES
) -> ctypes.CDLL:
    """The shared object, loaded. Where the host has no such vectors the test ends as skipped."""
    library = compiled(source, flags, compiler, vector_bytes)
    if vector_bytes > HOST_BYTES:
        pytest.skip(f"this machine has no vectors of {vector_bytes} bytes: compiled, but not run")
    return ctypes.CDLL(str(library))

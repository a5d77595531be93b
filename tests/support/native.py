"""Generated C, compiled and called in this process: the judge of lowering and emission."""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from support.builds import HOST_BYTES, for_vectors
from support.kept import KEPT
from support.tools import require_compiler

from tilesmith.platforms import Platform
from tilesmith.scheduler.codegen.artifact import CSource
from tilesmith.scheduler.codegen.c.emitter import emit_c
from tilesmith.scheduler.interpreter.interpreter import Image
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.plan import Plan
from tilesmith.scheduler.ir.schedule.schedule import Schedule
from tilesmith.scheduler.loop_passes.passes import optimize
from tilesmith.scheduler.lowering import lower
from tilesmith.scheduler.rewrites.passes import rewrite

WARNINGS = ("-Wall", "-Wextra", "-Werror")
Region = tuple[tuple[int, int], ...]
RUBBISH = 0xA5
"""The byte that outputs are filled with before the call."""


class Buffer(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("dims", ctypes.c_int32),
        ("min", ctypes.c_int32 * 5),
        ("extent", ctypes.c_int32 * 5),
        ("stride", ctypes.c_int64 * 5),
    )


def source_of(pipeline: Pipeline, schedule: Schedule, platform: Platform) -> CSource:
    return source_of_plan(rewrite(pipeline, schedule), platform)


def source_of_plan(plan: Plan, platform: Platform) -> CSource:
    return emit_c(optimize(lower(plan, platform)))


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


def _strides(shape_by_dim: tuple[int, ...], order: tuple[int, ...]) -> list[int]:
    strides, n = [0] * len(shape_by_dim), 1
    for d in order:
        strides[d] = n
        n *= shape_by_dim[d]
    return strides


def call(
    library: ctypes.CDLL,
    source: CSource,
    pipeline: Pipeline,
    inputs: Mapping[str, Image],
    params: Mapping[str, int | float | bool],
    regions: Mapping[str, Region],
    guard: int = 0,
) -> tuple[int, dict[str, tuple[np.ndarray, ...]]]:
    """The status and the outputs (axes reversed), every image dense in its storage order."""
    args: list[object] = []
    keep: list[object] = []
    for i in pipeline.inputs:
        if i.table is not None and i.name not in inputs:
            args.append(None)
            continue
        image = inputs[i.name]
        extents = image.array.shape[::-1]
        order = tuple(i.dims.index(d) for d in i.storage)
        data = np.ascontiguousarray(np.transpose(image.array, [len(order) - 1 - d for d in reversed(order)]))
        b = Buffer(data.ctypes.data, len(i.dims))
        for d, (lo, n, s) in enumerate(zip(image.min, extents, _strides(extents, order), strict=True)):
            b.min[d], b.extent[d], b.stride[d] = lo, n, s
        keep += [data, b]
        args.append(ctypes.addressof(b))
    for p in pipeline.params:
        cell = np.array(params.get(p.name, p.default), p.type.numpy)
        keep.append(cell)
        args.append(cell.ctypes.data)
    outputs: dict[str, list[np.ndarray]] = {}
    for name in pipeline.outputs:
        stage = pipeline.stage(name)
        order = tuple(stage.dims.index(d) for d in stage.storage)
        extents = tuple(n for _, n in regions[name])
        for t in stage.types:
            shape = [extents[d] for d in reversed(order)]
            data = np.frombuffer(bytearray([RUBBISH]) * int(np.prod(shape) * t.bytes), t.numpy).reshape(shape)
            b = Buffer(data.ctypes.data, len(stage.dims))
            for d, ((lo, n), s) in enumerate(zip(regions[name], _strides(extents, order), strict=True)):
                b.min[d], b.extent[d], b.stride[d] = lo, n, s
            keep += [data, b]
            args.append(ctypes.addressof(b))
            back = np.argsort([len(order) - 1 - d for d in reversed(order)])
            outputs.setdefault(name, []).append(np.transpose(data, back))
    f = getattr(library, source.entry + "_argv")
    f.restype = ctypes.c_int32
    status = f((ctypes.c_void_p * max(len(args), 1))(*args))
    return status, {name: tuple(arrays) for name, arrays in outputs.items()}

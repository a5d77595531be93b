"""OpenCL devices for tests: PoCL, which runs kernels on this processor, described as a processor or as a GPU; and
generated code called on it."""

from __future__ import annotations

import ctypes
import ctypes.util
import hashlib
import os
import subprocess
from functools import cache
from pathlib import Path
from typing import Literal

import pytest
from support.kept import KEPT
from support.native import WARNINGS
from support.tools import require_compiler

from tilesmith.platforms import OpenClPlatform, parse
from tilesmith.scheduler.codegen.artifact import CSource

WIDTHS = {"i8": 16, "i16": 16, "i32": 16, "i64": 8, "f16": 0, "f32": 16, "f64": 8}
Shape = Literal["cpu", "gpu"]


def device(shape: Shape = "cpu", vector_bytes: int = 64, **changes: object) -> OpenClPlatform:
    """The device that tests run on, whatever it is called: the first there is of a processor's kind. As a GPU it has
    work-groups of many work-items."""
    gpu = shape == "gpu"
    lanes = {name: max(1, min(n, vector_bytes * 8 // int(name[1:]))) if n else 0 for name, n in WIDTHS.items()}
    found = parse(
        {
            "kind": "opencl",
            "name": f"tested-{shape}",
            "device": device_name(),
            "device_type": shape,
            "opencl_version": "1.2",
            "triple": "x86_64-linux-gnu",
            "compute_units": 2,
            "clock_mhz": 2000.0,
            "max_work_group_size": 256,
            "max_work_item_sizes": [256, 256, 256],
            "work_group_multiple": 16 if gpu else 1,
            "vector_widths": dict.fromkeys(WIDTHS, 1) if gpu else lanes,
            "local_memory_bytes": 65536 if gpu else 2 << 20,
            "local_memory_dedicated": gpu,
            "global_memory_bytes": 8 << 30,
            "global_cache_bytes": 32 << 20,
            "global_cache_line_bytes": 64,
            "memory_bandwidth_gb_s": 20.0,
            "local_bandwidth_gb_s": 100.0,
            "memory_latency_ns": 100.0,
            "compiler": {"command": "gcc"},
            **changes,
        }
    )
    assert isinstance(found, OpenClPlatform)
    return found


@cache
def device_name() -> str:
    """The name of the first OpenCL device; empty where there is none."""
    try:
        cl = ctypes.CDLL(os.environ.get("TILESMITH_OPENCL_LIBRARY") or "libOpenCL.so.1")
    except OSError:
        return ""
    platform, found, name = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.create_string_buffer(1024)
    if cl.clGetPlatformIDs(1, ctypes.byref(platform), None):
        return ""
    if cl.clGetDeviceIDs(platform, ctypes.c_uint64(0xFFFFFFFF), 1, ctypes.byref(found), None):
        return ""
    cl.clGetDeviceInfo(found, 0x102B, 1023, name, None)
    return name.value.decode().strip()


def require_device() -> None:
    """Ends a test that needs a device where there is none: as skipped, or as failed where CI requires tools."""
    if device_name():
        return
    missing = "there is no OpenCL device: apt-get install pocl-opencl-icd ocl-icd-libopencl1"
    if os.environ.get("CI_REQUIRE_TOOLS"):
        pytest.fail(missing)
    pytest.skip(missing)


def library(source: CSource, flags: tuple[str, ...] = ("-O1",)) -> Path:
    """A shared object of the host's code, about which the compiler has nothing to warn. Kept by content."""
    gcc = require_compiler("gcc")
    text = "\0".join([source.code, source.header, *source.flags, *flags])
    folder = KEPT / hashlib.sha256(text.encode()).hexdigest()
    path = folder / "x.so"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / source.header_name).write_text(source.header)
        (folder / "x.c").write_text(source.code)
        out = folder / f"x.{os.getpid()}.so"
        libraries = ("-lm", *(f"-l{name}" for name in source.libraries))
        command = [gcc, *source.flags, *WARNINGS, *flags, "-shared", "-fPIC", "-o", out, folder / "x.c", *libraries]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[:4000]
        out.rename(path)
    return path


def loaded(source: CSource, optimized: bool = False) -> ctypes.CDLL:
    """The code, ready to be called on the device. PoCL's optimizations take most of a test's time: kernels are
    `optimized` only where that is asked for."""
    require_device()
    os.environ["POCL_EXTRA_BUILD_FLAGS"] = "" if optimized else "-cl-opt-disable"
    os.environ.setdefault("POCL_CACHE_DIR", str(KEPT / "pocl"))
    return ctypes.CDLL(str(library(source)))

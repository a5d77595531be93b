"""Needs of programs that start kernels: OpenCL's loader and drivers, a linker, the devices' files.

A driver is the system's, or PoCL of the extra `opencl`, whose loader and driver lie in the package of pyopencl.
"""

from __future__ import annotations

import ctypes.util
import importlib.util
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

VENDORS = Path("/etc/OpenCL")
LIBRARY, DRIVERS, HOME = "TILESMITH_OPENCL_LIBRARY", "OCL_ICD_VENDORS", "PYOPENCL_HOME"
PACKAGE, DRIVER_PACKAGE = "pyopencl", "pocl_binary_distribution"
KERNEL_BYTES = 256 << 20
"""The largest file that a driver may leave while it compiles."""
_FILES = ("dri", "kfd", "nvidia*", "mali*")


def environment(folder: Path, threads: int) -> dict[str, str]:
    """The variables of a program in `folder`, which its driver keeps kernels in, for so many threads of a processor
    that is a device."""
    own = {name: os.environ[name] for name in (LIBRARY, DRIVERS, HOME) if name in os.environ}
    count = str(threads)
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",  # PoCL links kernels
        "HOME": str(folder),
        "POCL_CACHE_DIR": str(folder / "kernels"),
        "POCL_MAX_PTHREAD_COUNT": count,
        "POCL_CPU_MAX_CU_COUNT": count,
        **_packaged(),
        **own,
    }


def readable() -> tuple[Path, ...]:
    """The files beside the system's that loader and driver read."""
    named = (Path(p) for name in (LIBRARY, DRIVERS) if (p := {**_packaged(), **os.environ}.get(name)))
    packages = (own for name in (PACKAGE, DRIVER_PACKAGE) if (own := _package(name)) is not None)
    found = (VENDORS, *packages, *(p.parent for p in named if p.is_file()))
    return tuple(dict.fromkeys(p.resolve() for p in found if p.exists()))


def devices() -> tuple[Path, ...]:
    """The files of the devices that there are."""
    return tuple(sorted(path for name in _FILES for path in Path("/dev").glob(name)))


def _packaged() -> dict[str, str]:
    """The variables that lead to the loader and the driver of the extra, where the system has none."""
    package = _package(PACKAGE)
    if package is None:
        return {}
    found: dict[str, str] = {}
    driver, loader = next(_libraries(package, "libpocl"), None), next(_libraries(package, "libOpenCL"), None)
    if driver is not None and not any((VENDORS / "vendors").glob("*.icd")):
        found[DRIVERS] = str(driver)
    if loader is not None and not _system_loader():
        found |= {LIBRARY: str(loader), HOME: str(package)}
    return found


def _libraries(package: Path, name: str) -> Iterator[Path]:
    """Their names end in hashes of their contents."""
    for folder in (package / ".libs", package.parent / "pyopencl.libs"):
        yield from sorted(folder.glob(f"{name}-*.so*"))


@cache
def _package(name: str) -> Path | None:
    spec = importlib.util.find_spec(name)
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


@cache
def _system_loader() -> bool:
    return ctypes.util.find_library("OpenCL") is not None

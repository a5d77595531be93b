"""Programs that some tests need, and what these need. Without one a test is skipped and says so; where
CI_REQUIRE_TOOLS=1 it fails."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from typing import NoReturn

import pytest

OPENMP = "#include <omp.h>\nint main(void) { return omp_get_max_threads() < 1; }\n"


def require_tool(name: str) -> str:
    """The path of the program `name`."""
    path = shutil.which(name)
    if path is None:
        _lacks(f"{name} is not installed")
    return path


def require_compiler(name: str) -> str:
    """The path of a C compiler that has a library for OpenMP."""
    path = require_tool(name)
    if not _has_openmp(path):
        _lacks(f"{name} has no library for OpenMP")
    return path


@cache
def _has_openmp(compiler: str) -> bool:
    command = [compiler, "-fopenmp", "-x", "c", "-", "-o", os.devnull]
    return subprocess.run(command, input=OPENMP, capture_output=True, text=True, check=False).returncode == 0


def _lacks(message: str) -> NoReturn:
    if os.environ.get("CI_REQUIRE_TOOLS") == "1":
        pytest.fail(message)
    pytest.skip(message)

"""Programs that some tests need, and what these need. Without one a test is skipped and says so; where
CI_REQUIRE_TOOLS=1 it fails."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from functools import cache
from typing import NoReturn

import pytest

from tilesmith.app.service.dashboard import assets

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
    said = _said_of_openmp(path)
    if said is not None:
        _lacks(f"{name} does not link with OpenMP: {said}")
    return path


def require_editor() -> None:
    """The editor of the dashboard's playground, which is made and not kept."""
    if assets.href("editor.js") is None:
        _lacks("the editor of the playground is not made: make editor")


@cache
def _said_of_openmp(compiler: str) -> str | None:
    """What the compiler says against a program with OpenMP, if anything."""
    with tempfile.TemporaryDirectory() as folder:
        command = [compiler, "-fopenmp", "-x", "c", "-", "-o", f"{folder}/a.out"]
        done = subprocess.run(command, input=OPENMP, capture_output=True, text=True, check=False)
    return done.stderr[:200] if done.returncode else None


def _lacks(message: str) -> NoReturn:
    if os.environ.get("CI_REQUIRE_TOOLS") == "1":
        pytest.fail(message)
    pytest.skip(message)

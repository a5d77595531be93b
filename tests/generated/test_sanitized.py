"""No read or write outside a buffer, no undefined behaviour: AddressSanitizer and UBSan watch."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.builds import BUILDS, environment
from support.calls import Call
from support.children import called
from support.machines import here
from support.native import compiled
from support.random_cases import judged_in_a_child
from support.shipped import assert_right, problem, scheduled
from support.tools import require_tool

BUILD = BUILDS["memory"]


def watched() -> dict[str, str]:
    """The environment in which Python itself runs under AddressSanitizer, so that NumPy's blocks have guards."""
    require_tool("gcc")
    return {**os.environ, **environment(BUILD)}


@pytest.mark.parametrize("seeds", [range(12), range(514, 515)])
def test_random_cases_are_clean(seeds: range) -> None:
    """Each kind of case once; of 514 rows are rounded up to vectors, of one lane where there are no others."""
    assert judged_in_a_child(seeds, "memory") == {}


def test_shipped_pipelines_are_clean() -> None:
    require_tool("gcc")
    problems, calls = [], []
    for name in ("blur", "harris", "unsharp", "interpolate"):
        source = scheduled(name, here()).source
        library = compiled(source, BUILD.flags)
        for p in (problem(name, size) for size in ("1x1", "7x3", "64x64", "shifted")):
            problems.append(p)
            calls.append(Call(library, source, p.pipeline, p.inputs, {}, p.regions))
    for p, got in zip(problems, called(calls, BUILD), strict=True):
        assert not isinstance(got, str), f"{p.pipeline.name}: {got}"
        assert_right(got, p.expected, p.within)


OVERFLOW = """
import sys, ctypes
sys.path[:0] = sys.argv[1:3]
import numpy as np
from support.buffers import invoke, view
from support.shipped import loaded
from support.machines import here
from support.native import build
from tilesmith.scheduler.compiler import compile_pipeline

source = compile_pipeline(loaded("blur"), here()).source
library = build(source, tuple(sys.argv[3:]))
data, out = np.zeros((66, 66), np.uint16), np.zeros((64, 60), np.uint16)
b = view(out, (0, 0))
b.extent[0] = 64
b.stride[1] = 64
invoke(library, source, [view(data, (0, 0)), b])
"""


def test_the_watch_is_awake() -> None:
    """A buffer that is smaller than it says."""
    tests = Path(__file__).parents[1]
    command = [sys.executable, "-c", OVERFLOW, str(tests), str(tests.parent), *BUILD.flags]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=watched())
    assert done.returncode != 0
    assert "heap-buffer-overflow" in done.stderr

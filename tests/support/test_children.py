"""Calls in a process of their own."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from support.builds import BUILDS
from support.calls import Call
from support.children import called
from support.machines import here
from support.native import compiled
from support.shipped import assert_right, problem, scheduled
from support.tools import require_tool

pytestmark = pytest.mark.slow


def test_a_crash_is_told_and_what_follows_it_is_called(tmp_path: Path) -> None:
    p, source = problem("blur", "7x3"), scheduled("blur", here()).source
    good = Call(compiled(source), source, p.pipeline, p.inputs, {}, p.regions)
    c, library = tmp_path / "bad.c", tmp_path / "bad.so"
    c.write_text(f"#include <stdlib.h>\nint {source.entry}_argv(void **arguments) {{ abort(); }}\n")
    subprocess.run([require_tool("gcc"), "-shared", "-fPIC", c, "-o", library], check=True)
    bad = replace(good, library=library)
    before, first, between, last = called([good, bad, good, bad], BUILDS["gcc-O0"])
    for got in (before, between):
        assert not isinstance(got, str), got
        assert_right(got, p.expected)
    for got in (first, last):
        assert isinstance(got, str)
        assert got.startswith("died with -6")

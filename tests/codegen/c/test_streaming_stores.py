"""Bytes past the caches: vectors of AVX-512 are moved onto lines by instructions, or not at all."""

from __future__ import annotations

import platform
import re
import subprocess
from pathlib import Path

import pytest
from support.machines import machine
from support.native import source_of
from support.planar import planar
from support.tools import require_tool

from tilesmith.scheduler.ir.schedule.schedule import Group, Placement, Schedule, Tile, Vector


@pytest.mark.parametrize("more", [(), ("-mavx512vbmi",)])
def test_no_lane_is_moved_by_itself(more: tuple[str, ...], tmp_path: Path) -> None:
    """GCC takes 64 single bytes where the processor has no permutation of bytes: three times the time of the row."""
    if platform.machine() != "x86_64":
        pytest.skip("its compiler knows no AVX-512")
    values = {"low": "min(input(x, y), input(x, y + 1))", "out": "max(low(x - 1, y), low(x + 1, y))"}
    pipeline = planar(values, 1920, 1080, "uint8")
    group = Group(
        output="out",
        loops=("x.inner", "y.inner", "x.outer", "y.outer"),
        tiles=(Tile("x", None), Tile("y", 16)),
        parallel="y.outer",
        vector=Vector("x", 64),
        unroll=(),
        placements=(Placement("low", "x.inner", "y.inner", storage="registers", vector=Vector("x", 64)),),
        stream=True,
    )
    source = source_of(pipeline, Schedule("planar", "by hand", (group,)), machine(vector_bytes=64))
    (tmp_path / source.header_name).write_text(source.header)
    (tmp_path / "x.c").write_text(source.code)
    flags = (*source.flags, "-O2", "-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", *more)
    subprocess.run([require_tool("gcc"), *flags, "-S", "-o", tmp_path / "x.s", tmp_path / "x.c"], check=True)
    assembly = (tmp_path / "x.s").read_text()
    assert "vmovntdq" in assembly
    assert not re.search(r"vpinsrb|vpextrb", assembly)

"""The text of generated C: the same bytes for the same question, nothing of where or when it was made."""

from __future__ import annotations

import ctypes
import datetime
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from support import code_hashes
from support.machines import here, machine
from support.methods import PAPER_OPTIONS
from support.native import build, source_of
from support.shipped import LIGHT, scheduled

from tilesmith.scheduler import pipelines
from tilesmith.scheduler.compiler import compile_pipeline
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.loop.padding import pitch
from tilesmith.scheduler.ir.schedule.schedule import Group, Placement, Schedule, Tile, Vector

Golden = Callable[[str, str], None]
ROOT = Path(__file__).parents[3]

BLUR = Group(
    "blur_y",
    ("x.inner", "y.inner", "x.outer", "y.outer"),
    (Tile("x", None), Tile("y", 128)),
    "y.outer",
    Vector("x", 32),
    (),
    (Placement("blur_x", "y.inner", "x.outer", order=("x", "y"), vector=Vector("x", 32)),),
)


def test_blur(golden: Golden) -> None:
    """By a schedule written by hand, so that the text changes only with lowering and emission."""
    source = source_of(pipelines.load("blur"), Schedule("blur", "hand", (BLUR,)), machine())
    golden("blur.c", source.code)
    golden("blur.h", source.header)


@pytest.mark.parametrize("name", ["blur", "harris", "nl_means", "pyramid_blend"])
def test_a_call_is_not_expected_to_fail(name: str) -> None:
    """Compilers take each refusal for a branch as good as the other, and what comes after many for cold code: GCC kept
    the vectors of a median of five images on the stack, for half as much time again."""
    code = scheduled(name, machine()).source.code
    refusals = re.findall(r"\bif \(([^;{]*?)\) (?:return TILESMITH_E_|goto finish|\{\s*ts_require)", code)
    assert len(refusals) > 3
    assert [r for r in refusals if not r.startswith("UNLIKELY(")] == []


def test_updates(golden: Golden) -> None:
    """A histogram, summed up, and what it makes of an image: tuples, updates, data that says places."""
    document = {
        "format": 1,
        "name": "equalise",
        "doc": "Grey values spread over the whole range.",
        "params": [{"name": "gain", "type": "float32", "default": 1.0}],
        "inputs": [{"name": "input", "type": "uint8", "dims": ["x", "y"]}],
        "stages": [
            {
                "name": "histogram",
                "dims": ["i"],
                "value": "uint32(0)",
                "updates": [
                    {
                        "domain": {"rx": [0, "input.extent.x"], "ry": [0, "input.extent.y"]},
                        "where": "input(rx, ry) > 0",
                        "at": ["int32(input(rx, ry))"],
                        "value": "histogram(int32(input(rx, ry))) + 1",
                    },
                    {"domain": {"r": [1, 255]}, "at": ["r"], "value": "histogram(r) + histogram(r - 1)"},
                ],
            },
            {
                "name": "output",
                "dims": ["x", "y"],
                "value": ["float32(histogram(int32(input(x, y)))) * gain", "input(x, y)"],
            },
        ],
        "outputs": ["output"],
        "estimates": {"output": [[0, 64], [0, 64]], "histogram": [[0, 256]]},
    }
    groups = (
        Group("histogram", ("i.inner",), (), None, None, (), ()),
        Group("output", ("x.inner", "y.inner"), (), None, None, (), ()),
    )
    source = source_of(load(document), Schedule("equalise", "hand", groups), machine())
    golden("equalise.c", source.code)
    golden("equalise.h", source.header)


@pytest.mark.slow
def test_hashing_does_not_change_the_bytes() -> None:
    """Here Python hashes as it likes, or as it is told; in another process by another number."""
    seed = "4242" if os.environ.get("PYTHONHASHSEED") != "4242" else "0"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", code_hashes.__file__],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONHASHSEED": seed},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == code_hashes.of_cases()


@pytest.mark.slow
@pytest.mark.parametrize("name", LIGHT[::3])
def test_the_same_question_has_the_same_bytes_and_nothing_of_the_place_or_the_time_is_in_them(name: str) -> None:
    first, second = (compile_pipeline(pipelines.load(name), machine(), PAPER_OPTIONS) for _ in range(2))
    assert first.source == second.source
    assert first.key == second.key
    assert first.loopnest == second.loopnest
    source = first.source
    text = source.code + source.header
    today = datetime.date.today()
    assert socket.gethostname() not in text
    for word in (str(ROOT), str(Path.home()), os.environ.get("USER", "/home/"), today.isoformat(), f"{today:%b %d}"):
        assert word not in text
    assert "__DATE__" not in text
    assert "__FILE__" not in text
    quoted = set(re.findall(r'#include "([^"]*)"', text))
    assert quoted == {source.header_name}


def test_lines_are_for_people() -> None:
    """Every loop of a stage says which; no line has tabs, trailing blanks or text beyond ASCII."""
    source = compile_pipeline(pipelines.load("harris"), machine(), PAPER_OPTIONS).source
    for line in source.code.splitlines():
        assert line == line.rstrip()
        assert line.isascii()
        assert "\t" not in line
    for stage in ("gray", "Ix", "Iy"):
        assert re.search(rf"/\* {stage}: ", source.code), stage
    assert "PARALLEL" in source.code
    assert source.code.endswith("}\n")


def test_only_the_helpers_that_are_used_are_there() -> None:
    code = compile_pipeline(pipelines.load("blur"), machine(), PAPER_OPTIONS).source.code
    assert "ts_lerp" not in code
    assert "ts_mix" not in code


def test_rows_of_rings_lie_apart_in_the_cache() -> None:
    """Whole lines from row to row, no nearer to a multiple of 4 KiB than two below and four above, and little more; at
    no distance at which 32 rows have no room in the ways of the sets that they reach."""
    source = source_of(pipelines.load("blur"), Schedule("blur", "hand", (BLUR,)), here())
    crowded = here().caches[0].crowded_bytes(here().core.prefetch.rows)
    text = "int64_t pitch(int64_t elements, int64_t size) { return ts_pitch(elements, size); }\n"
    library = build(replace(source, code=source.code + text))
    library.pitch.argtypes, library.pitch.restype = (ctypes.c_int64, ctypes.c_int64), ctypes.c_int64
    for size in (1, 2, 4, 8):
        for elements in range(1, 40_000 // size, 7):
            least, got = elements * size, library.pitch(elements, size) * size
            assert got % 64 == 0
            assert least <= got < least + 64 + 384
            assert got < 2048 or (256 <= got % 4096 <= 4096 - 192 and got % crowded)
            assert got == pitch(least, 64, crowded)


PLANES = {
    "format": 1,
    "name": "planes",
    "inputs": [
        {"name": "a", "type": "float32", "dims": ["x", "y", "c"]},
        {"name": "w", "type": "float32", "dims": ["i", "j", "m", "n"]},
    ],
    "stages": [
        {
            "name": "out",
            "dims": ["x", "y", "c"],
            "value": "sum(a(x + p, y + q, r) * w(p, q, r, c)"
            " for r in range(0, 16) for q in range(0, 3) for p in range(0, 3))",
        }
    ],
    "outputs": ["out"],
    "estimates": {
        "a": [[0, 130], [0, 130], [0, 16]],
        "w": [[0, 3], [0, 3], [0, 16], [0, 16]],
        "out": [[0, 128], [0, 128], [0, 16]],
    },
}


def test_loops_whose_sums_take_most_registers_stay_rolled() -> None:
    """Innermost loops have eight sums: over rows of the window beside whole tiles, over channels at their edge. Loops
    around them have none of their own."""
    code = compile_pipeline(load(PLANES), machine(vector_bytes=32)).source.code
    rolled = re.findall(r"ROLLED\n *for \(int64_t (\w)_", code)
    assert sorted(rolled) == ["q", "r"]
    blur = compile_pipeline(pipelines.load("blur"), machine(vector_bytes=32)).source.code
    assert "ROLLED" not in blur
    assert "OPAQUE" not in blur


@pytest.mark.parametrize(
    ("channels", "vector_bytes", "loop", "opaque"), [(16, 32, "ROLLED", 7), (60, 64, "ROLLED_ROWS", 0)]
)
def test_loops_over_terms_hold_few_addresses(channels: int, vector_bytes: int, loop: str, opaque: int) -> None:
    """Rows of weights of a tile of six channels, and that of the image, have one pointer each, for three terms of a
    window's row; a tile of twelve has more rows of weights than there are registers for, in a loop over three terms."""
    document = {**PLANES, "estimates": {**PLANES["estimates"], "out": [[0, 128], [0, 128], [0, channels]]}}
    document["estimates"]["w"] = [[0, 3], [0, 3], [0, 16], [0, channels]]
    code = compile_pipeline(load(document), machine(vector_bytes=vector_bytes)).source.code
    body = code.split(f"{loop}\n")[-1]
    end = body.index("\n" + " " * (len(body) - len(body.lstrip())) + "}")
    assert body[:end].count("OPAQUE(") == opaque
    assert len(re.findall(r"OPAQUE\(.* \+ xv_\d+\);", body[:end])) == min(opaque, 1), "where vectors are loaded from"

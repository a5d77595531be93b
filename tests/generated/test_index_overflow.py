"""Coordinates are 32-bit: what needs others is refused at the entry, and nothing overflows on the way there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.buffers import E_ARGUMENT, E_REGION, OK, invoke, query, region_of, view
from support.machines import here
from support.native import build, source_of

from tilesmith.scheduler.analysis.bounds_inference import required_boxes
from tilesmith.scheduler.compiler import compile_pipeline
from tilesmith.scheduler.errors import ScheduleError
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.index import const
from tilesmith.scheduler.ir.pipeline.arguments import ArgumentError
from tilesmith.scheduler.ir.schedule.schedule import Group, Schedule

# Pointers to rows stand as far before a buffer as its min says: whether that passes the end of all memory is a
# matter of where the buffer happens to lie, and only the difference counts.
UNDEFINED = (
    "-O0",
    "-fsanitize=undefined",
    "-fno-sanitize=pointer-overflow",
    "-fno-sanitize-recover=all",
)
FIRST, LAST = -(2**31), 2**31 - 1
SUPPORT = Path(__file__).parents[1] / "support"


def test_indices_of_every_form_at_the_ends_of_the_grid() -> None:
    """UBSan watches; statuses and values are the interpreter's."""
    command = [sys.executable, "-W", "ignore", str(SUPPORT / "far_places.py"), *UNDEFINED]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout) == []


def document(*stages: str) -> dict:
    """A chain: each value reads the stage before as `f`."""
    names = ["input", *(f"s{n}" for n in range(len(stages)))]
    return {
        "format": 1,
        "name": "chain",
        "inputs": [{"name": "input", "type": "int32", "dims": ["x"]}],
        "stages": [
            {"name": name, "dims": ["x"], "value": value.replace("f(", f"{before}(")}
            for before, name, value in zip(names, names[1:], stages, strict=False)
        ],
        "outputs": [names[-1]],
        "estimates": {names[-1]: [[0, 1]]},
    }


def test_a_stage_between_that_leaves_the_grid() -> None:
    """The input is read where it is, but by way of places that no int32 names."""
    pipeline = load(document("f(x - 1000) + 1", "f(x + 1000)"))
    source = compile_pipeline(pipeline, here()).source
    library, out = build(source, UNDEFINED), np.zeros(8, np.int32)
    data = np.arange(8, dtype=np.int32)
    for low, status in ((LAST - 1007, OK), (LAST - 1006, E_ARGUMENT), (LAST - 7, E_ARGUMENT)):
        told = query(((0, 1),))
        assert invoke(library, source, [told, view(out, (low,))]) == (E_REGION if status == OK else E_ARGUMENT)
        assert invoke(library, source, [view(data, (low,)), view(out, (low,))]) == status
        inputs, regions = {"input": Image(data, (low,))}, {"s1": ((low, 8),)}
        if status == OK:
            assert region_of(told) == ((low, 8),)
            np.testing.assert_array_equal(out, interpret(pipeline, inputs, {}, regions)["s1"][0])
        else:
            with pytest.raises(ArgumentError, match="beyond 32-bit coordinates"):
                interpret(pipeline, inputs, {}, regions)


def test_scales_that_multiply_beyond_64_bits() -> None:
    pipeline = load(document(*["f(1000003 * x)"] * 12))
    groups = tuple(Group(s.name, ("x.inner",), (), None, None, (), ()) for s in pipeline.stages)
    source = source_of(pipeline, Schedule("chain", "hand", groups), here())
    library, out = build(source, UNDEFINED), np.zeros(1, np.int32)
    data = np.array([7], np.int32)
    assert invoke(library, source, [view(data, (0,)), view(out, (0,))]) == OK
    assert out[0] == 7
    for low in (1, -1, 2147, 2148, LAST, FIRST):
        assert invoke(library, source, [view(data, (0,)), view(out, (low,))]) == E_ARGUMENT


def test_scales_that_no_image_is_large_enough_for() -> None:
    with pytest.raises(ScheduleError, match="beyond every image; scale and shift by less"):
        compile_pipeline(load(document(*["f(1000003 * x)"] * 12)), here())


@pytest.mark.parametrize(
    "index",
    [
        "int32(clamp(int64(x) * 4611686018427387904, 0, 5))",
        "int32(clamp(int64(x) * int64(x) * int64(x), 0, 5))",
        "int32((int64(x) * 4611686018427387904 + int64(y) * 4611686018427387904) % 7)",
    ],
)
def test_indices_beyond_64_bits(index: str) -> None:
    made = document(f"f({index})")
    made["stages"][0]["dims"] = ["x", "y"]
    made["estimates"] = {"s0": [[0, 8], [0, 8]]}
    source = compile_pipeline(load(made), here()).source
    library, out = build(source, UNDEFINED), np.zeros((2, 2), np.int32)
    data = np.arange(9, dtype=np.int32)
    assert invoke(library, source, [view(data, (0,)), view(out[:1, :1], (0, 0))]) == OK
    for low in (LAST - 1, FIRST):
        assert invoke(library, source, [view(data, (0,)), view(out, (low, low))]) == E_ARGUMENT


@pytest.mark.parametrize("which", [0, 1])
def test_buffers_that_end_beyond_the_grid(which: int) -> None:
    pipeline = load(document("f(x) + 1"))
    source = compile_pipeline(pipeline, here()).source
    library = build(source, UNDEFINED)
    data = np.zeros(8, np.int32)
    for low, status in ((LAST - 7, OK), (LAST - 6, E_ARGUMENT), (LAST, E_ARGUMENT)):
        buffers = [view(data, (LAST - 7,)), view(data.copy(), (LAST - 7,))]
        buffers[which].min[0] = low
        assert invoke(library, source, buffers) == status
    for low in (LAST - 6, FIRST - 1):
        with pytest.raises(ArgumentError, match="beyond 32-bit"):
            interpret(pipeline, {"input": Image(data, (low,))}, {}, {"s0": ((0, 1),)})
        with pytest.raises(ArgumentError, match="beyond 32-bit"):
            interpret(pipeline, {"input": Image(data, (0,))}, {}, {"s0": ((low, 8),)})


def test_what_is_needed_is_seen_before_anything_is_made_of_it() -> None:
    seen: list[str] = []
    pipeline = load(document("f(x - 1)", "f(2 * x)"))
    required_boxes(
        pipeline, {"s1": ((const(0), const(9)),)}, lambda x, _: x, lambda owner, box: seen.append(owner.name)
    )
    assert seen == ["s1", "s0", "input"]

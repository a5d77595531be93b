"""Places that data says: bounded as the language proves them, and wrapped as its types wrap, in every order of work."""

from __future__ import annotations

import ctypes
import re

import numpy as np
import pytest
from support.calls import Buffer, call
from support.machines import here, machine
from support.native import build, source_of

from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.schedule.schedule import Group, Placement, Schedule, Vector
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.rewrites.passes import rewrite

pytestmark = pytest.mark.slow

N = 64


def _image(type_: str) -> Image:
    rng = np.random.default_rng(0)
    if type_.startswith("float"):
        return Image(rng.uniform(-1, 1, N).astype(type_), (0,))
    info = np.iinfo(type_)
    return Image(rng.integers(info.min, info.max, N, dtype=type_, endpoint=True), (0,))


PLACES = (
    ("int32(clamp(input(x) * 8.0, -3.0, 7.0))", "float32"),
    ("clamp(int32(input(x) * 8.0), 0, 7)", "float32"),
    ("int32(floor(clamp(input(x), -2.0, 3.0) * 1.5))", "float32"),
    ("int32(random(x) * 10.0)", "float32"),
    ("abs(int32(input(x)))", "int16"),
    ("int32(input(x) - 1)", "uint8"),
    ("int32(input(x) ^ 5)", "uint8"),
    ("int32(input(x)) ^ 5", "uint8"),
    ("int32(input(x)) >> 3", "int16"),
    ("int32(input(x)) ** 2", "uint8"),
    ("sum(int32(input(x)) for r in range(0, 4))", "uint8"),
    ("max(int32(input(x)) + r for r in range(0, 4))", "uint8"),
    ("sat_int16(input(x))", "int32"),
    ("int64(x) * 2", "uint8"),
    ("int32(int64(x) * 2) + 1", "uint8"),
    ("(input(x) * 65536 * 64) % 9", "int32"),
    ("clamp(input(x) + 2000000000, 0, 8)", "int32"),
    ("clamp(-(input(x) - 1), 0, 8)", "int32"),
    ("int32(input(x)) % 9", "int64"),
    ("(input(x) * 2) % 9", "uint32"),
    ("clamp(int64(input(x)) * 3, 0, 8)", "int32"),
    ("clamp(input(x), 0, 8) - 3 * (x // 16)", "int32"),
    ("5 - (clamp(input(x), 0, 8) + 2)", "int32"),
    ("clamp(int64(input(x)), 4294967296, 4294967300) - 4294967296", "int32"),
    ("(clamp(input(x), 0, 8) - 3) % 5 + 2", "int32"),
    ("int32(input(x)) - 200 + input.min.x", "uint8"),
)
"""Places, and the type of the input that says them."""


def _groups(n: int, inside: bool) -> tuple[Group, ...]:
    """The stages of one of the places, which is computed at each point or ahead of all."""
    if inside:
        return (Group(f"out{n}", ("x.inner",), (), None, None, (), (Placement(f"g{n}", "x.inner", "x.inner"),)),)
    return (
        Group(f"g{n}", ("i.inner",), (), None, None, (), ()),
        Group(f"out{n}", ("x.inner",), (), None, Vector("x", 8), (), ()),
    )


@pytest.mark.parametrize("inside", [False, True], ids=["root", "inside"])
def test_places_that_data_says(inside: bool) -> None:
    """All of them in one library, each from a stage of its own."""
    types = sorted({type_ for _, type_ in PLACES})
    stages: list[dict[str, object]] = []
    for n, (index, type_) in enumerate(PLACES):
        stages.append({"name": f"g{n}", "dims": ["i"], "value": "i * 3"})
        place = re.sub(r"\binput\b", f"input_{type_}", index)
        stages.append({"name": f"out{n}", "dims": ["x"], "value": f"g{n}({place})"})
    outputs = [f"out{n}" for n in range(len(PLACES))]
    document = {
        "format": 1,
        "name": "table",
        "inputs": [{"name": f"input_{t}", "type": t, "dims": ["x"]} for t in types],
        "stages": stages,
        "outputs": outputs,
        "estimates": {o: [[0, N]] for o in outputs},
    }
    pipeline = load(document)
    schedule = Schedule("table", "hand", tuple(g for n in range(len(PLACES)) for g in _groups(n, inside)))
    check(rewrite(pipeline, schedule))
    source = source_of(pipeline, schedule, here())
    inputs, regions = {f"input_{t}": _image(t) for t in types}, dict.fromkeys(outputs, ((0, N),))
    status, got = call(build(source), source, pipeline, inputs, {}, regions)
    assert status == 0
    expected = interpret(pipeline, inputs, {}, regions)
    for output, (index, _) in zip(outputs, PLACES, strict=True):
        np.testing.assert_array_equal(got[output][0], expected[output][0], err_msg=index)


@pytest.mark.parametrize("stride", [16, 1 << 26, -16, -(1 << 26)], ids=["near", "far", "near, up", "far, up"])
def test_places_in_images_of_any_span(stride: int) -> None:
    """Offsets of more than 32 bits are those of points; places far from 0, floats that are no integer."""
    low = "clamp(int32(at(x)), f.min.x, f.min.x + f.extent.x - 1)"
    row = "clamp(int32(at(x) * 3.0) - 17, f.min.y, f.min.y + f.extent.y - 1)"
    document = {
        "format": 1,
        "name": "spans",
        "inputs": [
            {"name": "f", "type": "uint8", "dims": ["x", "y"]},
            {"name": "at", "type": "float32", "dims": ["x"]},
        ],
        "stages": [{"name": "out", "dims": ["x"], "value": f"f({low}, {row})"}],
        "outputs": ["out"],
        "estimates": {"out": [[0, N]], "f": [[0, 16], [0, 40]]},
    }
    pipeline = load(document)
    group = Group("out", ("x.inner",), (), None, Vector("x", 8), (), ())
    source = source_of(pipeline, Schedule("spans", "hand", (group,)), machine(vector_bytes=32))
    assert "ts_lanes0" in str(source)
    rng = np.random.default_rng(0)
    at = rng.uniform(-60, 60, N).astype(np.float32)
    at[:6] = np.nan, np.inf, -np.inf, 2.0**31, -(2.0**31), 2.0**40
    memory = np.zeros(39 * abs(stride) + 16, np.uint8)  # pages that nobody touches are no memory
    begin = 0 if stride > 0 else 39 * abs(stride)
    image = rng.integers(0, 256, (40, 16), np.uint8)
    for y, values in enumerate(image):
        memory[begin + y * stride :][:16] = values
    out = np.zeros(N, np.uint8)
    images = [
        Buffer(memory.ctypes.data + begin, 2, (-5, -20), (16, 40), (1, stride)),
        Buffer(at.ctypes.data, 1, (0,), (N,), (1,)),
        Buffer(out.ctypes.data, 1, (0,), (N,), (1,)),
    ]
    call_of = getattr(build(source, vector_bytes=32), source.entry)
    assert call_of(*map(ctypes.byref, images)) == 0
    inputs = {"f": Image(image, (-5, -20)), "at": Image(at, (0,))}
    expected = interpret(pipeline, inputs, {}, {"out": ((0, N),)})["out"][0]
    np.testing.assert_array_equal(out, expected)

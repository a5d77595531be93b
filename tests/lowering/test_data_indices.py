"""Places that data says: bounded as the language proves them, and wrapped as its types wrap, in every order of work."""

from __future__ import annotations

import numpy as np
import pytest
from support.machines import here
from support.native import build, call, source_of

from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.schedule.schedule import Group, Placement, Schedule, Vector
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.rewrites.passes import rewrite

pytestmark = pytest.mark.slow

ROOT = (Group("g", ("i.inner",), (), None, None, (), ()), Group("out", ("x.inner",), (), None, Vector("x", 8), (), ()))
INSIDE = (Group("out", ("x.inner",), (), None, None, (), (Placement("g", "x.inner", "x.inner"),)),)
N = 64


def _image(type_: str) -> Image:
    rng = np.random.default_rng(0)
    if type_.startswith("float"):
        return Image(rng.uniform(-1, 1, N).astype(type_), (0,))
    info = np.iinfo(type_)
    return Image(rng.integers(info.min, info.max, N, dtype=type_, endpoint=True), (0,))


@pytest.mark.parametrize("groups", [ROOT, INSIDE], ids=["root", "inside"])
@pytest.mark.parametrize(
    ("index", "type_"),
    [
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
    ],
)
def test_places_that_data_says(index: str, type_: str, groups: tuple[Group, ...]) -> None:
    document = {
        "format": 1,
        "name": "table",
        "inputs": [{"name": "input", "type": type_, "dims": ["x"]}],
        "stages": [
            {"name": "g", "dims": ["i"], "value": "i * 3"},
            {"name": "out", "dims": ["x"], "value": f"g({index})"},
        ],
        "outputs": ["out"],
        "estimates": {"out": [[0, N]]},
    }
    pipeline = load(document)
    schedule = Schedule("table", "hand", groups)
    check(rewrite(pipeline, schedule))
    source = source_of(pipeline, schedule, here())
    inputs, regions = {"input": _image(type_)}, {"out": ((0, N),)}
    status, got = call(build(source), source, pipeline, inputs, {}, regions)
    assert status == 0
    np.testing.assert_array_equal(got["out"][0], interpret(pipeline, inputs, {}, regions)["out"][0])

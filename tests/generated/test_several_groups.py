"""A stage that several groups read, which each computes its own way: inline, in rows, in registers."""

from __future__ import annotations

import numpy as np
import pytest
from support.calls import call
from support.machines import here
from support.native import build, source_of

from tilesmith.scheduler.codegen.halide.source import to_cpp
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.schedule.schedule import INLINE, Group, Placement, Schedule, Tile, Vector
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.rewrites.passes import rewrite

DETAIL = load(
    {
        "format": 1,
        "name": "detail",
        "inputs": [
            {"name": "input", "type": "uint8", "dims": ["x", "y"], "boundary": {"kind": "repeat_edge"}},
            {"name": "table", "type": "int32", "dims": ["i"], "boundary": {"kind": "repeat_edge"}},
        ],
        "stages": [
            {"name": "fine", "dims": ["x", "y"], "value": "table(int32(input(x, y))) + input(x, y)"},
            {
                "name": "half",
                "dims": ["x", "y"],
                "value": "fine(2 * x - 1, y) + 3 * (fine(2 * x, y) + fine(2 * x + 1, y)) + fine(2 * x + 2, y)",
            },
            {"name": "out", "dims": ["x", "y"], "value": "8 * fine(x, y) - half(x // 2, y) + fine(x, y - 1)"},
        ],
        "outputs": ["out"],
        "estimates": {"input": [[0, 64], [0, 48]], "table": [[0, 256]], "out": [[0, 64], [0, 48]]},
    }
)
ROWS, X16 = ("x.inner", "y.inner", "y.outer"), Vector("x", 16)
PLACES = {
    "inline": Placement("fine", INLINE, INLINE),
    "a row": Placement("fine", "y.inner", "y.inner", order=("x", "y"), vector=X16),
    "a ring": Placement("fine", "y.inner", "y.outer", order=("x", "y"), vector=X16),
    "a strip": Placement("fine", "y.outer", "y.outer", order=("x", "y"), vector=X16),
    "registers": Placement("fine", "x.inner", "y.inner", storage="registers", vector=X16),
}


def schedule(first: str, second: str) -> Schedule:
    groups = (
        Group(name, ROWS, (Tile("y", 8),), "y.outer", X16, (), (PLACES[place],))
        for name, place in (("half", first), ("out", second))
    )
    return Schedule("detail", "hand", tuple(groups))


@pytest.mark.parametrize(
    ("first", "second"), [("a row", "inline"), ("inline", "a ring"), ("a strip", "registers"), ("a row", "a ring")]
)
def test_every_group_computes_its_own(first: str, second: str) -> None:
    chosen = schedule(first, second)
    check(rewrite(DETAIL, chosen))
    source = source_of(DETAIL, chosen, here())
    library = build(source, ("-O0", "-fsanitize=undefined", "-fno-sanitize-recover"))
    rng = np.random.default_rng(5)
    images = {
        "input": Image(rng.integers(0, 256, (31, 57), dtype=np.uint8), (-2, 3)),
        "table": Image(rng.integers(-99, 99, 256, dtype=np.int32), (0,)),
    }
    for width, height in ((1, 1), (15, 3), (64, 48), (83, 29)):
        region = {"out": ((-5, width), (2, height))}
        expected = interpret(DETAIL, images, {}, region)["out"][0]
        status, got = call(library, source, DETAIL, images, {}, region)
        assert status == 0
        np.testing.assert_array_equal(got["out"][0], expected, err_msg=f"{width} x {height}")


def test_vectors_of_each_group_start_at_their_own_multiples() -> None:
    """Sixteen lanes of x % 4 must start at multiples of four; two lanes hold no four."""
    pipeline = load(
        {
            "format": 1,
            "name": "four",
            "inputs": [{"name": "input", "type": "int16", "dims": ["x"]}],
            "stages": [
                {"name": "fine", "dims": ["x"], "value": "input(x) + input(x % 4)"},
                {"name": "wide", "dims": ["x"], "value": "fine(x) + fine(x + 1)"},
                {"name": "narrow", "dims": ["x"], "value": "fine(x) - fine(x + 1)"},
            ],
            "outputs": ["wide", "narrow"],
            "estimates": {"input": [[0, 64]], "wide": [[0, 64]], "narrow": [[0, 64]]},
        }
    )
    groups = (
        Group(name, ("x.inner", "x.outer"), (Tile("x", 32),), "x.outer", X16, (), (placed,))
        for name, lanes in (("wide", 16), ("narrow", 2))
        for placed in [Placement("fine", "x.outer", "x.outer", order=("x",), vector=Vector("x", lanes))]
    )
    chosen = Schedule("four", "hand", tuple(groups))
    check(rewrite(pipeline, chosen))
    source = source_of(pipeline, chosen, here())
    images = {"input": Image(np.arange(64, dtype=np.int16) ** 2, (0,))}
    region = dict.fromkeys(pipeline.outputs, ((0, 61),))
    status, got = call(build(source), source, pipeline, images, {}, region)
    assert status == 0
    for name, (expected,) in interpret(pipeline, images, {}, region).items():
        np.testing.assert_array_equal(got[name][0], expected, err_msg=name)


def test_halide_computes_a_func_at_one_place() -> None:
    printed = to_cpp(rewrite(DETAIL, schedule("a row", "inline")))
    assert "// Not said: that 'fine' is kept in the group of 'half': it is in others, too" in printed
    assert 'funcs.at("fine").compute_inline()' in printed
    assert 'funcs.at("fine").compute_at' not in printed

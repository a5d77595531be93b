"""Channels that are looked up together lie side by side, and are loaded at once."""

from __future__ import annotations

import numpy as np
import pytest
from support.calls import call
from support.interpreted import interpreted
from support.machines import here, machine
from support.native import build, source_of
from support.vectors import FLAGS

from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image
from tilesmith.scheduler.ir.schedule.schedule import Group, Schedule, Vector
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.rewrites.passes import rewrite

pytestmark = pytest.mark.slow

AT = "clamp(int32(i(x)) + y, -1, 40), clamp(int32(i(x + 1)), -3, 20)"


def pixels(channels: int, type_: str, value: str) -> dict[str, object]:
    return {
        "format": 1,
        "name": "pixels",
        "inputs": [
            {"name": "a", "type": type_, "dims": ["x", "y"], "boundary": {"kind": "repeat_edge"}},
            {"name": "i", "type": "int16", "dims": ["x"], "boundary": {"kind": "repeat_edge"}},
        ],
        "stages": [
            {"name": "table", "dims": ["x", "y", "c"], "value": f"a(x + c, y) if c < {channels - 1} else {type_}(7)"},
            {"name": "out", "dims": ["x", "y", "c"], "value": value},
        ],
        "outputs": ["out"],
        "estimates": {"out": [[0, 128], [0, 3], [0, channels]], "a": [[0, 64], [0, 64]], "i": [[0, 128]]},
    }


def by_hand(unroll: tuple[str, ...]) -> Schedule:
    loops = ("c.inner", "x.inner", "y.inner") if unroll else ("x.inner", "c.inner", "y.inner")
    return Schedule(
        "pixels",
        "by hand",
        (
            Group("table", loops, (), None, Vector("x", 16), unroll, ()),
            Group("out", ("c.inner", "x.inner", "y.inner"), (), None, Vector("x", 16), ("c",), ()),
        ),
    )


@pytest.mark.parametrize(
    ("channels", "type_", "value", "unroll", "loaded"),
    [
        (4, "float32", f"table({AT}, c) * 3", ("c",), "fours"),
        (4, "uint32", f"table({AT}, c) * 3", ("c",), "fours"),
        (4, "int32", f"table(x, y, c) + table({AT}, c)", ("c",), "fours"),
        (4, "float32", "table(clamp(int32(i(x)), -1, 40), y, c)", ("c",), "fours"),
        (2, "float32", f"table({AT}, c) * 3", ("c",), "pair"),
        (3, "float32", f"table({AT}, c) * 3", ("c",), None),
        (4, "int16", f"table({AT}, c) * int16(3)", ("c",), None),
        (4, "float32", f"table({AT}, 3 - c) * 3", ("c",), None),
        (4, "float32", "table(x, y, c) * 3", ("c",), None),
        (4, "float32", f"table({AT}, c) * 3", (), None),
    ],
)
def test_channels_that_are_looked_up_are_loaded_at_once(
    channels: int, type_: str, value: str, unroll: tuple[str, ...], loaded: str | None
) -> None:
    """Clang, too, has the instructions that are ours; where none are, one compiler is asked."""
    pipeline, schedule = load(pixels(channels, type_, value)), by_hand(unroll)
    check(rewrite(pipeline, schedule))
    source = source_of(pipeline, schedule, here())
    code = source_of(pipeline, schedule, machine()).code
    short = {"float32": "f32", "int32": "i32", "uint32": "u32", "int16": "i16"}[type_]
    found = [f for f in ("fours", "pair") if f"ts_{f}_{short}x16(" in code]
    assert found == ([loaded] if loaded else [])
    rng = np.random.default_rng(6)
    inputs = {
        "a": Image(rng.integers(0, 60, (50, 70)).astype(type_), (-5, -6)),
        "i": Image(rng.integers(-9, 50, 140).astype(np.int16), (-3,)),
    }
    for compiler in FLAGS if loaded else ("gcc",):
        library = build(source, FLAGS[compiler], compiler)
        for count, first in ((channels, 0), (channels - 1, 1)):
            regions = {"out": ((-2, 131), (-1, 2), (first, count))}
            status, got = call(library, source, pipeline, inputs, {}, regions)
            assert status == 0
            np.testing.assert_array_equal(got["out"][0], interpreted(pipeline, inputs, {}, regions)["out"][0])

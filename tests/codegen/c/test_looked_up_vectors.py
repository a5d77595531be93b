"""Vectors of what is looked up: in tables of bytes, at places that data say, and beyond the ends of a row."""

from __future__ import annotations

import re

import numpy as np
import pytest
from support.calls import call
from support.interpreted import interpreted
from support.machines import here, machine
from support.native import build, source_of
from support.turns import in_turn
from support.vectors import FLAGS

from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image
from tilesmith.scheduler.ir.schedule.schedule import Group, Schedule, Vector

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("compiler", FLAGS)
@pytest.mark.parametrize(("index", "low", "size"), [("a(x)", 0, 256), ("a(x)", -9, 300), ("a(x) & 63", 0, 64)])
def test_tables_of_bytes(index: str, low: int, size: int, compiler: str) -> None:
    """A table that has an element for every byte may be looked up whole; of a smaller one no more is read."""
    document = {
        "format": 1,
        "name": "lookup",
        "inputs": [{"name": n, "type": "uint8", "dims": ["x"]} for n in ("a", "table")],
        "stages": [{"name": "out", "dims": ["x"], "value": f"table(int32({index}))"}],
        "outputs": ["out"],
        "estimates": {"out": [[0, 4096]], "table": [[0, 256]]},
    }
    pipeline = load(document)
    schedule = Schedule("lookup", "by hand", (Group("out", ("x.inner",), (), None, Vector("x", 64), (), ()),))
    source = source_of(pipeline, schedule, here())
    code = source_of(pipeline, schedule, machine()).code
    assert "ts_lookup_2_bytes_u8x64(" in code or "& 63" in index
    rng = np.random.default_rng(5)
    a, table = (rng.integers(0, 256, n).astype(np.uint8) for n in (300, size))
    inputs, regions = {"a": Image(a, (0,)), "table": Image(table, (low,))}, {"out": ((0, 300),)}
    status, got = call(build(source, FLAGS[compiler], compiler), source, pipeline, inputs, {}, regions)
    assert status == 0
    np.testing.assert_array_equal(got["out"][0], table[(a if size > 64 else a & 63) - np.int64(low)])


TABLES = ((1023, 1024), (1023, 1030), (2047, 2048), (300, 301), (300, 384), (90, 91))


@pytest.mark.parametrize(
    ("most", "size", "lanes", "compiler"),
    [(*t, n, tuple(FLAGS)[(k + j) % 2]) for k, t in enumerate(TABLES) for j, n in enumerate((64, 16))],
)
def test_longer_tables_of_bytes(most: int, size: int, lanes: int, compiler: str) -> None:
    """A table whose indices are clamped is looked up by parts of 128, where it has all that they may reach. Compilers
    take turns."""
    document = {
        "format": 1,
        "name": "lookup",
        "inputs": [
            {"name": "a", "type": "int16", "dims": ["x"]},
            {"name": "b", "type": "int32", "dims": ["x"]},
            {"name": "table", "type": "uint8", "dims": ["x"]},
        ],
        "stages": [
            {"name": "out", "dims": ["x"], "value": f"table(clamp(a(x), 0, {most})) ^ table(clamp(b(x), 0, {most}))"}
        ],
        "outputs": ["out"],
        "estimates": {"out": [[0, 4096]]},
    }
    pipeline = load(document)
    schedule = Schedule("lookup", "by hand", (Group("out", ("x.inner",), (), None, Vector("x", lanes), (), ()),))
    source = source_of(pipeline, schedule, here())
    code = source_of(pipeline, schedule, machine()).code
    assert len(re.findall(rf"\bts_lookup_{most // 128 + 1}_u8x64\(", code)) == 2
    rng = np.random.default_rng(8)
    a, b = (rng.integers(-100, 2 * most, 300) for _ in "ab")
    table = rng.integers(0, 256, size).astype(np.uint8)
    inputs = {"a": Image(a.astype(np.int16), (0,)), "b": Image(b.astype(np.int32), (0,)), "table": Image(table, (0,))}
    status, got = call(build(source, FLAGS[compiler], compiler), source, pipeline, inputs, {}, {"out": ((0, 300),)})
    assert status == 0
    np.testing.assert_array_equal(got["out"][0], table[a.clip(0, most)] ^ table[b.clip(0, most)])


@pytest.mark.parametrize("size", [1, 7, 8, 9, 200])
@pytest.mark.parametrize(("type_", "compiler"), in_turn(["uint8", "int16", "float32", "float64"], FLAGS))
def test_runs_of_clamped_neighbours(type_: str, size: int, compiler: str) -> None:
    """A row much shorter than what it is asked for is read in whole vectors, whose lanes beyond its ends have its last
    elements; one shorter than a vector element by element."""
    document = {
        "format": 1,
        "name": "clamped",
        "params": [{"name": "far", "type": "int32", "default": 100, "min": 0, "max": 1000}],
        "inputs": [{"name": "a", "type": type_, "dims": ["x"], "boundary": {"kind": "repeat_edge"}}],
        "stages": [{"name": "out", "dims": ["x"], "value": "a(x - far) + 2 * a(clamp(x + far, 5, 90))"}],
        "outputs": ["out"],
        "estimates": {"out": [[0, 128]], "a": [[0, 32]]},
    }
    pipeline = load(document)
    schedule = Schedule("clamped", "by hand", (Group("out", ("x.inner",), (), None, Vector("x", 8), (), ()),))
    source = source_of(pipeline, schedule, here())
    code = source_of(pipeline, schedule, machine()).code
    name = {"uint8": "u8", "int16": "i16", "float32": "f32", "float64": "f64"}[type_]
    assert f"ts_near_{name}x8(" in code
    a = np.random.default_rng(6).integers(0, 60, size).astype(type_)
    library = build(source, FLAGS[compiler], compiler)
    for far in (0, 3, 60):
        inputs, params, regions = {"a": Image(a, (-2,))}, {"far": far}, {"out": ((-50, 190),)}
        status, got = call(library, source, pipeline, inputs, params, regions)
        assert status == 0
        np.testing.assert_array_equal(got["out"][0], interpreted(pipeline, inputs, params, regions)["out"][0])


PLACES = {
    "clamp(int32(i(x)) + k, -1, 40), 2": "gather",
    "clamp(int32(i(x)), -1, 40), clamp(int32(i(x + 1)) - k, -3, 20)": "gather_far",
    "x, clamp(int32(i(x)), -3, 20)": None,
    "clamp(int32(i(x)), -1, 40) - 7 + k, 2": "gather",
    "k + int32(uint8(i(x))), 2": "gather",
}
"""Indices of elements of a table, and the function that gathers them."""


@pytest.mark.parametrize(("places", "compiler"), in_turn(PLACES, FLAGS))
def test_places_that_are_data_are_gathered_at_once(places: str, compiler: str) -> None:
    types = {"float32": "f32", "int32": "i32", "uint32": "u32"}
    document = {
        "format": 1,
        "name": "places",
        "params": [{"name": "k", "type": "int32", "default": 5, "min": 0, "max": 9}],
        "inputs": [
            *(
                {"name": f"in_{s}", "type": t, "dims": ["x", "y"], "boundary": {"kind": "repeat_edge"}}
                for t, s in types.items()
            ),
            {"name": "i", "type": "int16", "dims": ["x"], "boundary": {"kind": "repeat_edge"}},
        ],
        "stages": [
            *({"name": f"table_{s}", "dims": ["x", "y"], "value": f"in_{s}(x, y) + {t}(1)"} for t, s in types.items()),
            *({"name": s, "dims": ["x"], "value": f"table_{s}({places}) * {t}(3)"} for t, s in types.items()),
        ],
        "outputs": list(types.values()),
        "estimates": {s: [[0, 128]] for s in ("i", *types.values())}
        | {f"in_{s}": [[0, 128], [0, 64]] for s in types.values()},
    }
    pipeline = load(document)
    groups = (
        *(Group(f"table_{s}", ("x.inner", "y.inner"), (), None, None, (), ()) for s in types.values()),
        *(Group(s, ("x.inner",), (), None, Vector("x", 16), (), ()) for s in types.values()),
    )
    source = source_of(pipeline, Schedule("places", "by hand", groups), here())
    code = source_of(pipeline, Schedule("places", "by hand", groups), machine()).code
    for short in types.values():
        found = re.findall(rf"\bts_(gather\w*)_{short}x16\(", code)
        assert set(found) == ({PLACES[places]} if PLACES[places] else set())
    rng = np.random.default_rng(6)
    inputs = {
        **{f"in_{s}": Image(rng.integers(0, 60, (50, 70)).astype(t), (-5, -6)) for t, s in types.items()},
        "i": Image(rng.integers(-9, 50, 140).astype(np.int16), (-3,)),
    }
    library = build(source, FLAGS[compiler], compiler)
    regions = dict.fromkeys(types.values(), ((-2, 131),))
    for k in (0, 7):
        status, got = call(library, source, pipeline, inputs, {"k": k}, regions)
        assert status == 0
        expected = interpreted(pipeline, inputs, {"k": k}, regions)
        for short in types.values():
            np.testing.assert_array_equal(got[short][0], expected[short][0], err_msg=short)


@pytest.mark.parametrize(("count", "at_once", "compiler"), [(2, 2, "gcc"), (3, 0, "clang"), (5, 0, "gcc")])
def test_places_that_differ_by_what_lanes_have_in_common_share_a_vector(
    count: int, at_once: int, compiler: str
) -> None:
    """Many of them are looked up lane by lane."""
    at = "clamp(int32(i(x) * 30.0), 0, 30)"
    document = {
        "format": 1,
        "name": "offsets",
        "params": [{"name": "k", "type": "int32", "default": 5, "min": -9, "max": 9}],
        "inputs": [{"name": "i", "type": "float32", "dims": ["x"]}],
        "stages": [
            {"name": "table", "dims": ["x"], "value": "x * 3 + 1"},
            {
                "name": "out",
                "dims": ["x"],
                "value": " + ".join(f"table({at} - {n} * k) * {n + 1}" for n in range(count)),
            },
        ],
        "outputs": ["out"],
        "estimates": {"out": [[0, 128]], "i": [[0, 128]]},
    }
    pipeline = load(document)
    groups = (
        Group("table", ("x.inner",), (), None, None, (), ()),
        Group("out", ("x.inner",), (), None, Vector("x", 16), (), ()),
    )
    source = source_of(pipeline, Schedule("offsets", "by hand", groups), here())
    code = source_of(pipeline, Schedule("offsets", "by hand", groups), machine()).code
    found = re.findall(r"\bts_gather_i32x16\(\w+, \(i32x16\)(\w+)\)", code)
    assert len(found) == at_once
    assert len(set(found)) <= 1
    i = np.random.default_rng(8).uniform(-0.2, 1.2, 131).astype(np.float32)
    library = build(source, FLAGS[compiler], compiler)
    for k in (-9, 0, 4):
        inputs, params, regions = {"i": Image(i, (-2,))}, {"k": k}, {"out": ((-2, 131),)}
        status, got = call(library, source, pipeline, inputs, params, regions)
        assert status == 0
        np.testing.assert_array_equal(got["out"][0], interpreted(pipeline, inputs, params, regions)["out"][0])


def test_edges_that_grow_with_a_loop_are_vectors() -> None:
    """Loops around a row are looked at in their middle: the edges of most rows are wide."""
    document = {
        "format": 1,
        "name": "disparities",
        "inputs": [{"name": "a", "type": "float32", "dims": ["x"], "boundary": {"kind": "repeat_edge"}}],
        "stages": [{"name": "out", "dims": ["x", "z"], "value": "a(x) * a(x + 2 * z)"}],
        "outputs": ["out"],
        "estimates": {"out": [[0, 128], [0, 32]], "a": [[0, 128]]},
    }
    pipeline = load(document)
    group = Group("out", ("x.inner", "z.inner"), (), None, Vector("x", 8), (), ())
    code = source_of(pipeline, Schedule("disparities", "by hand", (group,)), machine()).code
    assert "ts_near_f32x8(" in code

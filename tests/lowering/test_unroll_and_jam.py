"""Points of a stage that load the same vectors are computed side by side."""

from __future__ import annotations

import re

import numpy as np
import pytest
from support.calls import call
from support.machines import machine
from support.native import build, source_of

from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.schedule.schedule import Group, Placement, Schedule, Tile, Vector
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.rewrites.passes import rewrite


@pytest.mark.parametrize("shifts", [5, 9])
def test_shifts_of_what_is_compared_share_its_loads(shifts: int) -> None:
    """`away` compares a row with itself, shifted: so many vectors at most are made of one load of what stands still."""
    document = {
        "format": 1,
        "name": "compared",
        "inputs": [{"name": "a", "type": "float32", "dims": ["x", "y"]}],
        "stages": [
            {"name": "away", "dims": ["x", "y", "s"], "value": "absd(a(x, y), a(x + s, y))"},
            {"name": "out", "dims": ["x", "y"], "value": f"sum(away(x, y, s) * s for s in range(0, {shifts}))"},
        ],
        "outputs": ["out"],
        "estimates": {"out": [[0, 64], [0, 48]]},
    }
    pipeline = load(document)
    away = Placement("away", "y.inner", "y.inner", True, "memory", ("x", "s", "y"), Vector("x", 8))
    loops = ("x.inner", "y.inner", "y.outer")
    group = Group("out", loops, (Tile("y", 16),), "y.outer", Vector("x", 8), (), (away,))
    schedule = Schedule("compared", "by hand", (group,))
    check(rewrite(pipeline, schedule))
    source = source_of(pipeline, schedule, machine(vector_bytes=32))
    vectors = source.code.split("/* away: computed")[1].split("x_step")
    stored = max(len(re.findall(r"STORE\(f32x8, away_\d+ ", part)) for part in vectors)
    assert stored == (shifts if shifts <= 8 else 1)
    a = np.random.default_rng(1).random((48, 60 + shifts)).astype(np.float32)
    inputs, regions = {"a": Image(a, (0, 0))}, {"out": ((0, 60), (0, 48))}
    status, got = call(build(source, vector_bytes=32), source, pipeline, inputs, {}, regions)
    assert status == 0
    np.testing.assert_allclose(got["out"][0], interpret(pipeline, inputs, {}, regions)["out"][0], rtol=1e-5)


@pytest.mark.parametrize(("value", "steps"), [("sum(half(x, y + r) for r in range(-2, 3))", 4), ("half(x, y + 4)", 1)])
def test_rows_whose_windows_overlap_are_computed_together(value: str, steps: int) -> None:
    """Where a tile of a stage has several rows: four rows of windows of five load eight, not twenty."""
    document = {
        "format": 1,
        "name": "columns",
        "inputs": [{"name": "a", "type": "float32", "dims": ["x", "y"]}],
        "stages": [
            {"name": "half", "dims": ["x", "y"], "value": "a(x, y) * 0.5"},
            {"name": "column", "dims": ["x", "y"], "value": value},
            {"name": "out", "dims": ["x", "y"], "value": "column(x, y) + column(x + 1, y)"},
        ],
        "outputs": ["out"],
        "estimates": {"out": [[0, 64], [0, 48]]},
    }
    pipeline = load(document)
    tiled = {"order": ("x", "y"), "vector": Vector("x", 8)}
    members = tuple(Placement(s, "y.outer", "y.outer", **tiled) for s in ("half", "column"))
    loops = ("x.inner", "y.inner", "y.outer")
    group = Group("out", loops, (Tile("y", 10),), "y.outer", Vector("x", 8), (), members)
    schedule = Schedule("columns", "by hand", (group,))
    check(rewrite(pipeline, schedule))
    source = source_of(pipeline, schedule, machine(vector_bytes=32))
    together = re.findall(r"y_\d+ \+= 4\)", source.code.split("/* column: computed")[1])
    assert bool(together) == (steps == 4)
    a = np.random.default_rng(1).random((60, 70)).astype(np.float32)
    inputs, regions = {"a": Image(a, (0, -2))}, {"out": ((0, 61), (0, 47))}
    status, got = call(build(source, vector_bytes=32), source, pipeline, inputs, {}, regions)
    assert status == 0
    np.testing.assert_allclose(got["out"][0], interpret(pipeline, inputs, {}, regions)["out"][0], rtol=1e-5)


@pytest.mark.parametrize("first", [0, 3])
@pytest.mark.parametrize("tile", [8, 16])
def test_rows_of_blocks_that_are_read_whole_share_their_loads(tile: int, first: int) -> None:
    """A block of eight rows is loaded once for all of them, and each of these is one of the choices. Rows from another
    place on are right, too."""
    rows = " + ".join(f"half(x, y // 8 * 8 + {k})" for k in range(8))
    choices = ", ".join(f"half(x, y // 8 * 8 + {k}) * {k}.5 + {rows}" for k in range(8))
    document = {
        "format": 1,
        "name": "blocks",
        "inputs": [{"name": "a", "type": "float32", "dims": ["x", "y"]}],
        "stages": [
            {"name": "half", "dims": ["x", "y"], "value": "a(x, y) * 0.5"},
            {"name": "block", "dims": ["x", "y"], "value": f"mux(y % 8, {choices})"},
            {"name": "out", "dims": ["x", "y"], "value": "block(x, y) + block(x + 1, y)"},
        ],
        "outputs": ["out"],
        "estimates": {"out": [[0, 64], [0, 48]]},
    }
    pipeline = load(document)
    tiled = {"order": ("x", "y"), "vector": Vector("x", 8)}
    members = tuple(Placement(s, "y.outer", "y.outer", **tiled) for s in ("half", "block"))
    loops = ("x.inner", "y.inner", "y.outer")
    group = Group("out", loops, (Tile("y", tile),), "y.outer", Vector("x", 8), (), members)
    schedule = Schedule("blocks", "by hand", (group,))
    check(rewrite(pipeline, schedule))
    source = source_of(pipeline, schedule, machine(vector_bytes=32))
    together = source.code.split("/* block: computed")[1].split("int64_t xv_")[1].split("for (")[0]
    together = together.split("\n", 1)[1]
    assert len(re.findall(r"LOAD\(f32x8, half_\d+ ", together)) == 8
    assert "?" not in together
    a = np.random.default_rng(1).random((64, 70)).astype(np.float32)
    inputs, regions = {"a": Image(a, (0, 0))}, {"out": ((0, 61), (first, 29))}
    status, got = call(build(source, vector_bytes=32), source, pipeline, inputs, {}, regions)
    assert status == 0
    np.testing.assert_allclose(got["out"][0], interpret(pipeline, inputs, {}, regions)["out"][0], rtol=1e-5)


@pytest.mark.parametrize("divisor", ["1.0", "total(x, y, 3)"])
def test_sums_of_channels_are_taken_term_by_term(divisor: str) -> None:
    """A weight is loaded once for a term of each channel, and not kept until the next channel's sum: also where one
    of the sums is read by all."""
    document = {
        "format": 1,
        "name": "channels",
        "inputs": [{"name": n, "type": "float32", "dims": d} for n, d in (("a", ["x", "y", "c"]), ("w", ["x", "y"]))],
        "stages": [
            {"name": "total", "dims": [*"xyc"], "value": "sum(w(x + r, y) * a(x + r, y, c) for r in range(-4, 5))"},
            {"name": "out", "dims": ["x", "y", "c"], "value": f"total(x, y, c) / {divisor}"},
        ],
        "outputs": ["out"],
        "estimates": {"out": [[0, 64], [0, 48], [0, 3]]},
    }
    pipeline = load(document)
    loops = ("c.inner", "x.inner", "y.inner")
    group = Group("out", loops, (), "y.inner", Vector("x", 8), ("c",), (Placement("total", "inline", "inline"),))
    schedule = Schedule("channels", "by hand", (group,))
    check(rewrite(pipeline, schedule))
    source = source_of(pipeline, schedule, machine(vector_bytes=32))
    row = source.code.split("int64_t xv_0 =")[1].split("for (")[0]
    order = "".join(re.findall(r"LOAD\(f32x8, (\w)_\d+ ", row))
    sums = 3 if divisor == "1.0" else 4
    assert order == ("w" + "a" * sums) * 9
    rng = np.random.default_rng(1)
    inputs = {
        "a": Image(rng.random((4, 9, 70)).astype(np.float32), (-4, 0, 0)),
        "w": Image(rng.random((9, 70)).astype(np.float32), (-4, 0)),
    }
    regions = {"out": ((0, 61), (0, 9), (0, 3))}
    status, got = call(build(source, vector_bytes=32), source, pipeline, inputs, {}, regions)
    assert status == 0
    np.testing.assert_allclose(got["out"][0], interpret(pipeline, inputs, {}, regions)["out"][0], rtol=1e-5)


@pytest.mark.parametrize("rows", [3, 4, 13])
def test_the_last_rows_side_by_side_are_stored_past_the_caches_too(rows: int) -> None:
    """The tile that is moved back is a loop that seldom goes on."""
    document = {
        "format": 1,
        "name": "down",
        "inputs": [{"name": "a", "type": "float32", "dims": ["x", "y"]}],
        "stages": [{"name": "out", "dims": ["x", "y"], "value": "a(x, y) + a(x, y + 1) * 2"}],
        "outputs": ["out"],
        "estimates": {"out": [[0, 64], [0, 48]]},
    }
    pipeline = load(document)
    loops = ("y.inner", "x.inner", "y.outer")
    group = Group("out", loops, (Tile("y", 4),), "y.outer", Vector("x", 8), ("y",), (), stream=True)
    source = source_of(pipeline, Schedule("down", "by hand", (group,)), machine(vector_bytes=32))
    assert source.code.count("; UNLIKELY(y_") == 1
    a = np.random.default_rng(1).random((rows + 1, 60)).astype(np.float32)
    inputs, regions = {"a": Image(a, (0, 0))}, {"out": ((0, 60), (0, rows))}
    status, got = call(build(source, vector_bytes=32), source, pipeline, inputs, {}, regions)
    assert status == 0
    np.testing.assert_allclose(got["out"][0], interpret(pipeline, inputs, {}, regions)["out"][0], rtol=1e-5)

"""Places that data says: how they are loaded, and which lines they touch."""

from __future__ import annotations

from math import inf

import pytest
from support.group_work import ORDERS, outputs_work, works

from tilesmith.platforms import catalog
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.features.groups.execution_mode import Run
from tilesmith.scheduler.features.groups.fusion_group import effective, members_of
from tilesmith.scheduler.features.groups.group_counts import Levels
from tilesmith.scheduler.features.pipeline.interleaved_channels import fours
from tilesmith.scheduler.features.pipeline.pipeline_features import gather
from tilesmith.scheduler.features.schedule_features import counts_of
from tilesmith.scheduler.features.work.l1_transfers import loads
from tilesmith.scheduler.frontends.document.document import load, load_text
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.rewrites.passes import normalise, rewrite
from tilesmith.scheduler.search import SearchOptions, autoschedule
from tilesmith.scheduler.search.vectorize_and_parallelize import root_schedule


def test_look_ups_are_gathers() -> None:
    platform = catalog.get("i7-6700")
    bilateral = pipelines.load("bilateral_grid")
    counts = {c.output: c for c in counts_of(rewrite(bilateral, root_schedule(bilateral, platform)), platform)}
    (interpolated,) = (s.work for s in counts["interpolated"].stages if s.stage == "interpolated")
    (histogram,) = (s.work for s in counts["histogram"].stages if s.stage == "histogram")
    assert interpolated is not None
    assert histogram is not None
    assert {t.way for t in interpolated.loads} >= {"pairs"}
    assert {t.way for t in histogram.stores} >= {"gathered"}


def table(value: str, dims: str, extents: list[list[int]], inner: str = "a(x, y) * 2") -> Pipeline:
    """A stage that another one reads at places that data says."""
    document = {
        "format": 1, "name": "looked_up",
        "params": [{"name": "radius", "type": "int32", "default": 5, "min": 0, "max": 100}],
        "inputs": [
            {"name": n, "type": "float32", "dims": ["x", "y"], "boundary": {"kind": "repeat_edge"}} for n in ("a", "i")
        ],
        "stages": [
            {"name": "table", "dims": list(dims), "value": inner},
            {"name": "out", "dims": list(dims), "value": value},
        ],
        "outputs": ["out"], "estimates": {"out": extents},
    }  # fmt: skip
    return load(document)


NEAR = "table(x + clamp(int32(i(x, y)), -radius, radius), y)"


def test_a_clamp_by_params_is_as_wide_as_these_are_estimated() -> None:
    facts = gather(normalise(table(NEAR, "xy", [[0, 64], [0, 32]])))
    (read,) = (r for r in facts.stages["out"].reads if r.producer == "table")
    assert (read.spans[0].var, read.spans[0].lo, read.spans[0].hi) == ("x", -5, 5)
    assert read.looked_up


def test_what_data_says_the_place_of_is_a_line_each_at_most() -> None:
    plane = "table(x, clamp(int32(i(x, y)), 0, 999))"
    found = works(table(plane, "xy", [[0, 64], [0, 4]]), ORDERS[0], {"table": Levels(4, 4)}, {"x": 64, "y": 4}, 16)
    nothing_stays, *_, all_stays = found["out"].looked_up
    assert nothing_stays == all_stays == 64 * 4 * 64  # of 64 by 1000 elements
    found = works(table(NEAR, "xy", [[0, 64], [0, 32]]), ORDERS[0], {"table": Levels(4, 4)}, {"x": 64, "y": 32}, 16)
    assert found["out"].looked_up[0] == 64 * 32 * 64
    assert found["out"].looked_up[-1] == pytest.approx((64 + 2 * 5) * 32 * 4, rel=0.3)  # lines are touched whole
    assert found["table"].looked_up == ()


def test_neighbours_of_a_place_that_data_says_are_in_its_line() -> None:
    at = "clamp(int32(i(x, y)), 0, 900)"
    for second, lines in ((f"{at} + 1, y", 1), (f"{at}, y + 1", 2)):
        of = table(f"table({at}, y) + table({second})", "xy", [[0, 64], [0, 32]])
        out = works(of, ORDERS[0], {"table": Levels(4, 4)}, {"x": 64, "y": 32}, 16)["out"]
        assert out.looked_up[0] == 64 * 32 * 64 * lines


def test_places_that_a_coordinate_map_says_are_near_each_other() -> None:
    """Places that data says as well are not; lanes that it moves to other rows are loaded one by one."""
    turned = ("0.8 * float32(x) - 0.6 * float32(y)", "0.6 * float32(x) + 0.8 * float32(y)")
    for more, looked_up in (("", False), (" + i(x, y)", True)):
        of = table("a(clamp(int32(floor(table(x, y))), 0, 99), y)", "xy", [[0, 64], [0, 32]], turned[0] + more)
        facts = gather(normalise(of))
        (read,) = (r for r in facts.stages["out"].reads if r.producer == "a")
        assert read.looked_up == looked_up
    places = ", ".join(f"int32(floor({value}))" for value in turned)
    out = works(table(f"a({places})", "xy", [[0, 64], [0, 32]]), ORDERS[0], {}, {"x": 64, "y": 32}, 16)["out"]
    assert [t.way for t in out.loads] == ["alone"]
    assert out.loaded[0] >= 64 * 32 * 4  # none is another's


def test_lanes_in_other_rows_are_loaded_one_by_one_whatever_tells_where_in_these() -> None:
    """The row is data, and the place in it the coordinate: each lane has an address of its own."""
    for place, way in (
        ("x // 8, clamp(int32(i(x, y)), 0, 9)", "alone"),
        ("7, clamp(int32(i(x, y)), 0, 9)", "gathered"),
    ):
        out = works(table(f"a({place})", "xy", [[0, 64], [0, 32]]), ORDERS[0], {}, {"x": 64, "y": 32}, 16)["out"]
        assert [t.way for t in out.loads] == ["aligned", way]


def test_four_channels_of_a_place_are_pixels_where_another_group_makes_them() -> None:
    channels = NEAR.replace(", y)", ", y, c)").replace("i(x, y, c)", "i(x, y)")
    of = table(channels, "xyc", [[0, 64], [0, 32], [0, 4]], "a(x, y) * (c + 1)")
    platform = catalog.get("i7-6700")
    counts = {c.output: c for c in counts_of(rewrite(of, root_schedule(of, platform)), platform)}
    (out,) = (s.work for s in counts["out"].stages)
    assert out is not None
    assert [t.stride for t in out.loads if t.way == "pixels"] == [4]
    assert fours(gather(normalise(of))) == {"table"}
    together = works(of, ("c.inner", "x.inner", "y.inner"), {"table": Levels(3, 3)}, {"x": 64, "y": 32, "c": 4}, 16)
    assert {t.way for t in together["out"].loads} == {"gathered", "aligned"}


@pytest.mark.parametrize(
    ("second", "lanes", "way"), [(1, 16, "pairs"), (1, 4, "pairs"), (1, 2, "alone"), (2, 16, "alone")]
)
def test_two_neighbours_at_a_depth_that_data_says_are_a_pair(second: int, lanes: int, way: str) -> None:
    places = (f"table(x // 8{more}, clamp(int32(i(x, y)), 0, 9))" for more in ("", f" + {second}"))
    of = table(" + ".join(places), "xy", [[0, 64], [0, 32]])
    out = works(of, ORDERS[0], {"table": Levels(4, 4)}, {"x": 64, "y": 32}, lanes)["out"]
    assert [(t.way, t.times) for t in out.loads if t.way != "aligned"] == [(way, 2)]


def test_small_tables_of_bytes_are_looked_up_by_vectors() -> None:
    """Tables of one row, in which data tells the place; 16 lanes are the fewest."""
    for lanes, entries, way in (
        (64, 1024, "table"),
        (16, 2048, "table"),
        (8, 1024, "gathered"),
        (64, 4096, "gathered"),
    ):
        of = load_text(TABLE.replace("ENTRIES", str(entries)))
        (table,) = (t for t in outputs_work(of, lanes).loads if t.way in ("table", "gathered"))
        assert (table.way, table.stride) == (way, entries // 128 if way == "table" else 1)


def test_rows_of_pixels_gather_where_data_moves_them_whatever_is_fastest_in_memory() -> None:
    document = {
        "format": 1, "name": "moved",
        "inputs": [
            {"name": "photo", "type": "uint8", "dims": ["x", "y", "c"], "storage": ["c", "x", "y"]},
            {"name": "moves", "type": "uint8", "dims": ["x", "y"]},
        ],
        "stages": [
            {
                "name": "out", "dims": ["x", "y", "c"], "storage": ["c", "x", "y"],
                "value": "photo(x + moves(x, y), y, c)",
            },
        ],
        "outputs": ["out"], "estimates": {"out": [[0, 64], [0, 64], [0, 3]]},
    }  # fmt: skip
    found = gather(normalise(load(document)))
    (read,) = (r for r in found.stages["out"].reads if r.producer == "photo")
    members = members_of(found, "out", ("out",))
    for row, way in (("x", "gathered"), ("c", "aligned")):
        assert loads(members, read, Run(row, 8), frozenset(), 1)[0].way == way


def test_tables_that_pixels_look_up_are_tables_along_the_row_that_vectors_run_along() -> None:
    document = {
        "format": 1, "name": "levels",
        "inputs": [
            {"name": "luma", "type": "uint8", "dims": ["x", "y"]},
            {"name": "curve", "type": "uint8", "dims": ["i"]},
        ],
        "stages": [
            {
                "name": "out", "dims": ["x", "y", "c"], "storage": ["c", "x", "y"],
                "value": "curve(luma(x, y)) + uint8(c)",
            },
        ],
        "outputs": ["out"], "estimates": {"out": [[0, 64], [0, 64], [0, 3]]},
    }  # fmt: skip
    found = gather(normalise(load(document)))
    (read,) = (r for r in found.stages["out"].reads if r.producer == "curve")
    members = members_of(found, "out", ("out",))
    for row, way in (("x", "table"), ("c", "uniform")):
        assert loads(members, read, Run(row, 16), frozenset(), 1)[0].way == way


def test_places_that_do_not_move_along_the_memory_of_an_inlined_stage_move_along_its_readers() -> None:
    document = {
        "format": 1, "name": "sliced",
        "inputs": [
            {"name": "grid", "type": "float32", "dims": ["c", "x", "z"], "boundary": {"kind": "repeat_edge"}},
            {"name": "gray", "type": "float32", "dims": ["x"]},
        ],
        "stages": [
            {"name": "near", "dims": ["c", "x", "z"], "value": "grid(c, int32(floor(float32(x) / 3.0)), z)"},
            {"name": "at", "dims": ["c", "x"], "value": "near(c, x, clamp(int32(gray(x) * 7.0), 0, 7))"},
            {"name": "out", "dims": ["x", "c"], "value": "at(c, x)"},
        ],
        "outputs": ["out"], "estimates": {"out": [[0, 64], [0, 4]]},
    }  # fmt: skip
    members = members_of(gather(normalise(load(document))), "out", ("near", "at", "out"))
    (own,) = (r for r in members.facts.stages["near"].reads if r.producer == "grid")
    assert not own.computed
    found = effective(members, frozenset({"near", "at"}))
    (read,) = (r for r in found["out"].reads if r.producer == "grid")
    assert read.computed
    assert read.looked_up


def test_neighbours_at_a_place_that_data_says_for_all_of_them_are_loaded_together() -> None:
    document = {
        "format": 1, "name": "scored",
        "inputs": [
            {"name": "image", "type": "uint16", "dims": ["x", "y"], "boundary": {"kind": "repeat_edge"}},
            {"name": "guess", "type": "int32", "dims": ["tx", "ty"]},
        ],
        "stages": [
            {"name": "offset", "dims": ["tx", "ty"], "value": "clamp(guess(tx, ty), -16, 16)"},
            {
                "name": "score", "dims": ["x", "tx", "ty"],
                "value": "sum(absd(image(8 * tx + r, 8 * ty), image(8 * tx + r + x + offset(tx, ty), 8 * ty + 1))"
                " for r in range(16))",
            },
        ],
        "outputs": ["score"], "estimates": {"score": [[0, 8], [0, 64], [0, 48]]},
    }  # fmt: skip
    (read,) = (r for r in gather(normalise(load(document))).stages["score"].reads if r.producer == "image")
    assert not read.looked_up
    assert read.data_of == {"tx", "ty"}
    assert read.beside == ("x", "x", 1, inf)


def test_rows_side_by_side_look_up_each_for_themselves() -> None:
    document = {
        "format": 1, "name": "weighed",
        "inputs": [{"name": n, "type": "uint8", "dims": ["x", "y"]} for n in ("a", "b")]
        + [{"name": "table", "type": "float32", "dims": ["i"]}, {"name": "row", "type": "uint8", "dims": ["x"]}],
        "stages": [
            {
                "name": "out", "dims": ["x", "y"],
                "value": "sum(table(absd(a(x, y), b(x, y + r)) & 15) for r in range(8)) + table(row(x) & 15)",
            },
        ],
        "outputs": ["out"], "estimates": {"out": [[0, 64], [0, 32]]},
    }  # fmt: skip
    members = members_of(gather(normalise(load(document))), "out", ("out",))
    apart, together = (
        {r.producer: r.points for r in effective(members, frozenset(), unrolled)["out"].reads}
        for unrolled in ({}, {"y": 8})
    )
    assert together["table"] == apart["table"]
    assert together["b"] < apart["b"]


def test_one_place_is_not_looked_up_through_a_stage_that_is() -> None:
    document = {
        "format": 1, "name": "scaled",
        "inputs": [{"name": n, "type": "float32", "dims": ["x", "y"]} for n in ("a", "i")],
        "stages": [
            {"name": "gain", "dims": [], "value": "a(0, 0) + a(1, 0)"},
            {"name": "scaled", "dims": ["x", "y"], "value": "a(x + y, y) * gain()"},
            {"name": "out", "dims": ["x", "y"], "value": "scaled(clamp(int32(i(x, y)), 0, 63), y)"},
        ],
        "outputs": ["out"], "estimates": {"out": [[0, 64], [0, 32]]},
    }  # fmt: skip
    of = load(document)
    members = members_of(gather(normalise(of)), "out", ("gain", "scaled", "out"))
    reads = effective(members, frozenset({"scaled"}))["out"].reads
    assert {r.producer: r.looked_up for r in reads} == {"a": True, "gain": False, "i": False}
    platform = catalog.get("i7-6700")
    assert autoschedule(of, platform, SearchOptions("default")).schedule.method == "default"


def test_places_that_data_says_are_those_of_updated_stages_too() -> None:
    """Levels of a table are read where each point says, be the table updated and what reads it inline."""
    document = {
        "format": 1, "name": "equalised",
        "inputs": [{"name": "a", "type": "uint8", "dims": ["x", "y"]}],
        "stages": [
            {
                "name": "total", "dims": ["i"], "value": "uint32(i)",
                "updates": [{"domain": {"b": [1, 255]}, "at": ["b"], "value": "total(b) + total(b - 1)"}],
            },
            {"name": "levels", "dims": ["i"], "value": "uint8(total(i) // 129)"},
            {"name": "out", "dims": ["x", "y"], "value": "levels(a(x, y)) + uint8(total(255))"},
        ],
        "outputs": ["out"], "estimates": {"out": [[0, 640], [0, 32]]},
    }  # fmt: skip
    members = members_of(gather(normalise(load(document))), "out", ("total", "levels", "out"))
    found = effective(members, frozenset({"levels"}))["out"]
    (read,) = (r for r in found.reads if r.producer == "total")
    assert read.looked_up
    ways = [t.way for t in loads(members, read, Run("x", 8), frozenset(), 1)]
    assert ways == ["gathered"]


TABLE = """
format: 1
name: looked_up
inputs:
  - {name: place, type: uint16, dims: [x, y]}
  - {name: table, type: uint8, dims: [i]}
stages:
  - {name: out, dims: [x, y], value: "table(min(place(x, y), ENTRIES - 1))"}
outputs: [out]
estimates:
  table: [[0, ENTRIES]]
  out: [[0, 256], [0, 64]]
"""


def test_places_that_data_says_are_lines_of_the_platform() -> None:
    of = table(NEAR, "xy", [[0, 64], [0, 32]])
    short, long = (works(of, ORDERS[0], {}, {"x": 64, "y": 32}, 8, line)["out"].looked_up for line in (64, 128))
    assert (short[0], long[0]) == (64 * 32 * 64, 64 * 32 * 128)

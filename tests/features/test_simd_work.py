"""SIMD work and cache traffic of stages, against walking small loop nests."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product
from math import inf

import pytest
from support.small_pipelines import E, F, blur, c, clamp, harris, pipeline, stage, total, x, y

from tilesmith.cost_models.counts import GroupCounts
from tilesmith.cost_models.work import Chain, SideBySide, Transfer, Work
from tilesmith.platforms import catalog
from tilesmith.platforms.base import LINE_BYTES
from tilesmith.platforms.core import ORDINARY
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.compiler import generate
from tilesmith.scheduler.features.column_walks import side_by_side
from tilesmith.scheduler.features.dependence_chains import carried_by
from tilesmith.scheduler.features.execution_mode import Run, Running
from tilesmith.scheduler.features.fusion_group import effective, members_of
from tilesmith.scheduler.features.group_counts import Levels
from tilesmith.scheduler.features.interleaved_channels import fours
from tilesmith.scheduler.features.l1_transfers import loads
from tilesmith.scheduler.features.loop_nest import Nest, axis
from tilesmith.scheduler.features.pipeline_features import gather
from tilesmith.scheduler.features.schedule_features import counts_of, predict
from tilesmith.scheduler.features.simd_work import worked_counts
from tilesmith.scheduler.frontends.document.document import load, load_text
from tilesmith.scheduler.ir.pipeline.expressions import Call, Cast, Const
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.pipeline.types import FLOAT32, INT32
from tilesmith.scheduler.ir.schedule.schedule import Group, Placement, Schedule, Tile, UpdateLoops, Vector
from tilesmith.scheduler.rewrites.passes import normalise, rewrite
from tilesmith.scheduler.search import SearchOptions, autoschedule
from tilesmith.scheduler.search.vectorize_and_parallelize import root_schedule

ORDERS = (
    ("x.inner", "y.inner", "x.outer", "y.outer"),
    ("x.inner", "y.inner", "y.outer", "x.outer"),
    ("y.inner", "x.inner", "x.outer", "y.outer"),
)
LOAD, FLOAT, QUOTIENT = (getattr(ORDINARY.latency_cycles, name) for name in ("load", "float_sum", "quotient"))
TILES = ({"x": 4, "y": 3}, {"x": 5, "y": 7}, {"x": 20, "y": 4})


def group(
    of: Pipeline,
    loops: tuple[str, ...],
    levels: dict[str, Levels],
    tiles: dict[str, int],
    lanes: int,
    line_bytes: int = LINE_BYTES,
) -> GroupCounts:
    """The counts of the pipeline as one group, along x. With lines of a byte rows end where their elements do."""
    facts = gather(normalise(of), line_bytes=line_bytes)
    members = members_of(facts, of.outputs[0], facts.graph.stages)
    reads = effective(members, frozenset(members.names[:-1]) - frozenset(levels))
    output = facts.stages[members.output]
    axes = {d: axis(d, e, [min(tiles[d], e)]) for d, e in zip(output.dims, output.extents, strict=True)}
    running = Running({name: Run("x", lanes) for name in (*levels, members.output)})
    return worked_counts(members, reads, Nest(members.output, loops, axes), levels, 1, running).at((0,))


def works(
    of: Pipeline,
    loops: tuple[str, ...],
    levels: dict[str, Levels],
    tiles: dict[str, int],
    lanes: int,
    line_bytes: int = LINE_BYTES,
) -> dict[str, Work]:
    """The work of every stage."""
    return {s.stage: s.work for s in group(of, loops, levels, tiles, lanes, line_bytes).stages if s.work is not None}


def boxes(extents: dict[str, int], tiles: dict[str, int]) -> list[dict[str, range]]:
    """All tiles."""
    ranges = [
        [(d, range(lo, min(lo + tiles[d], extent))) for lo in range(0, extent, tiles[d])]
        for d, extent in extents.items()
    ]
    return [dict(tile) for tile in product(*ranges)]


@pytest.mark.parametrize("tiles", TILES, ids=str)
@pytest.mark.parametrize("lanes", [1, 4, 8])
def test_rows_and_vectors_of_a_sliding_blur(tiles: dict[str, int], lanes: int) -> None:
    found = works(blur(20, 13), ORDERS[0], {"blur_x": Levels(1, 2)}, tiles, lanes)
    rows = {"blur_y": 0, "blur_x": 0}
    steps, singles = dict(rows), dict(rows)
    for tile in boxes({"x": 20, "y": 13}, tiles):
        for name, more in (("blur_y", 0), ("blur_x", 2)):
            lines, length = len(tile["y"]) + more, len(tile["x"])
            rows[name] += lines
            if lanes == 1:
                steps[name] += lines * length
            elif length < lanes:
                singles[name] += lines * length
            else:
                steps[name] += lines * -(-length // lanes)
    for name, work in found.items():
        assert (work.rows, work.steps, work.singles) == (rows[name], steps[name], singles[name]), name


@pytest.mark.parametrize("loops", ORDERS, ids=" ".join)
@pytest.mark.parametrize("tiles", TILES, ids=str)
def test_what_a_stencil_loads_at_every_level(loops: tuple[str, ...], tiles: dict[str, int]) -> None:
    """Loaded are the boxes that each execution of the loops inside a level reads."""
    extents = {"x": 20, "y": 13}
    reads = [F("input")(x + a, y + b) for a in (-1, 0, 1) for b in (0, 2)]
    of = pipeline("stencil", [stage("out", "xy", total(reads))], {"out": (20, 13)})
    (work,) = works(of, loops, {}, tiles, 1, line_bytes=1).values()
    first = loops.index("x.inner") + 1
    expected = []
    for level in range(first, len(loops) + 1):
        inside = set(loops[:level])
        seen: dict[tuple[int, ...], list[tuple[int, int]]] = {}
        for tile in boxes(extents, tiles):
            for point in product(tile["x"], tile["y"]):
                outside = []
                for d, v in zip("xy", point, strict=True):
                    outside += [tile[d].start] if f"{d}.outer" not in inside else []
                    outside += [v] if f"{d}.inner" not in inside else []
                seen.setdefault(tuple(outside), []).append((point[0], point[1]))
        expected.append(sum(_box(points) for points in seen.values()) * 4)
    assert list(work.loaded) == expected
    assert list(work.stored) == [20 * 13 * 4] * len(expected)


def _box(points: list[tuple[int, int]]) -> int:
    wide = max(p[0] for p in points) - min(p[0] for p in points) + 3
    return wide * (max(p[1] for p in points) - min(p[1] for p in points) + 3)


def test_a_row_that_reads_two_rows_far_apart_loads_two() -> None:
    """In the row of the output as in one of its own; beyond it all rows between them are read by others."""
    far = F("input")(x, y - 30) + F("input")(x, y + 30)
    through = [stage("f", "xy", far), stage("out", "xy", F("f")(x, y) + F("f")(x, y - 1))]
    of = pipeline("far", through, {"out": (256, 64)})
    found = works(of, ORDERS[0], {"f": Levels(0, 2, True)}, {"x": 256, "y": 64}, 8)["f"]
    apart = works(of, ORDERS[0], {"f": Levels(1, 2)}, {"x": 256, "y": 64}, 8)["f"]
    row = 256 * 4
    assert found.in_output
    for work in (found, apart):
        assert 65 * 2 * row <= work.loaded[0] <= 65 * 2 * (row + 64)
        assert work.loaded[2] >= (64 + 60) * row


def test_stages_of_one_loop_share_what_they_read_in_order_but_not_what_data_says_the_place_of() -> None:
    document = {
        "format": 1, "name": "relaxed",
        "inputs": [
            {"name": "image", "type": "uint8", "dims": ["x", "y"]}, {"name": "table", "type": "int16", "dims": ["d"]},
        ],
        "stages": [
            {"name": "first", "dims": ["x", "y"], "value": "table(int32(image(x, y))) + int16(image(x, y))"},
            {"name": "out", "dims": ["x", "y"],
             "value": "table(clamp(int32(first(x, y) - first(x + 1, y)), 0, 255)) + int16(image(x, y))"},
        ],
        "outputs": ["out"], "estimates": {"out": [[0, 64], [0, 8]]},
    }  # fmt: skip
    found = works(load(document), ORDERS[0], {"first": Levels(0, 0, True)}, {"x": 64, "y": 8}, 16)
    for work in found.values():
        assert work.in_output
        assert sum(t.times for t in work.loads if t.way == "gathered") == 1
        assert sum(t.times for t in work.loads if t.bytes == 1) == 0.5


def test_what_is_computed_for_each_vector_begins_a_row_for_each() -> None:
    """Eight vectors of a row of 64, where nothing is in registers: each reads eight points, or ten of a window."""
    for reach, vectors in ((0, 1), (2, 2)):
        value = F("f")(x, y) if reach == 0 else F("f")(x - 1, y) + F("f")(x + 1, y)
        of = pipeline("inside", [stage("f", "xy", F("input")(x, y) * 2.0), stage("out", "xy", value)], {"out": (64, 8)})
        found = works(of, ORDERS[0], {"f": Levels(0, 0)}, {"x": 64, "y": 8}, 8)["f"]
        assert not found.in_output
        assert float(found.rows) == 8 * 8
        assert float(found.steps) == vectors * 8 * 8


def test_a_ring_is_the_same_memory_again_and_again() -> None:
    found = works(blur(20, 13), ORDERS[0], {"blur_x": Levels(1, 2)}, {"x": 10, "y": 13}, 1, line_bytes=1)
    ring = 3 * 10 * 4
    assert found["blur_x"].stored[-3:] == (2 * ring, ring, ring)  # inside x.outer, inside y.outer, the whole
    assert found["blur_y"].loaded[-1] == ring


def test_rows_in_tiles_break_off() -> None:
    whole, cut = (
        works(blur(64, 13), ORDERS[0], {"blur_x": Levels(1, 2)}, {"x": n, "y": 13}, 8)["blur_y"] for n in (64, 16)
    )
    assert whole.run_bytes == float("inf")
    assert cut.run_bytes == 16 * 4


def test_operations_of_inlined_stages_are_counted_where_they_are_read() -> None:
    found = works(
        harris(30, 19), ORDERS[0], {"gray": Levels(1, 2), "Ix": Levels(1, 2), "Iy": Levels(1, 2)}, {"x": 30, "y": 19}, 8
    )
    operations = dict(list(found.values())[-1].operations)["f32"]
    assert operations.multiply >= 27  # the products of Ix and Iy, at nine places


def test_chains_go_through_what_is_inline_and_through_all_stages_of_one_loop() -> None:
    root = E(Call("sqrt", (F("input")(x, y).e,), FLOAT32))
    of = pipeline(
        "chained", [stage("root", "xy", root), stage("out", "xy", F("root")(x, y) * 2.0 + 1.0)], {"out": (64, 8)}
    )
    tile = {"x": 64, "y": 8}
    first, second = LOAD + QUOTIENT, LOAD + FLOAT + FLOAT
    assert [w.chain.whole for w in works(of, ORDERS[0], {}, tile, 8).values()] == [first + second]
    inside, outside = (group(of, ORDERS[0], {"root": Levels(n, n, n == 0)}, tile, 8) for n in (0, 1))
    for found, of_loop in ((inside, first + second), (outside, 0.0)):
        assert found.work is not None
        assert found.work.chain == of_loop
        assert [s.work.chain.whole for s in found.stages if s.work is not None] == [first, second]


def test_coordinates_begin_chains_by_way_of_what_is_inline_where_they_go_along_the_row() -> None:
    """The root of x is computed for each vector, that of y once a row."""
    roots = [
        stage("across", "x", E(Call("sqrt", (E(Cast(x.e, FLOAT32)).e,), FLOAT32))),
        stage("down", "y", E(Call("sqrt", (E(Call("sqrt", (E(Cast(y.e, FLOAT32)).e,), FLOAT32)).e,), FLOAT32))),
    ]
    of = pipeline("roots", [*roots, stage("out", "xy", F("across")(x) * F("down")(y))], {"out": (64, 8)})
    [found] = works(of, ORDERS[0], {}, {"x": 64, "y": 8}, 8).values()
    assert found.chain.whole == ORDINARY.latency_cycles.conversion + QUOTIENT + LOAD + FLOAT


def test_of_a_sum_only_the_last_part_is_waited_for() -> None:
    f = F("input")
    parts = [
        stage("written", "xy", f(x - 1, y) + f(x, y) * 2.0 + f(x + 1, y)),
        stage("out", "xy", F("written")(x, y) * 2.0),
    ]
    of = pipeline("sum", parts, {"out": (64, 8)})
    written = group(of, ORDERS[0], {"written": Levels(0, 0)}, {"x": 64, "y": 8}, 8)
    assert [s.work.chain for s in written.stages if s.work is not None] == [
        Chain(LOAD + 3 * FLOAT, LOAD + 2 * FLOAT),
        Chain(LOAD + FLOAT, LOAD + FLOAT),
    ]


@pytest.mark.parametrize(("place", "quotients"), [(E(Const(2, INT32)), 1 / 8), (x, 1.0)], ids=["one", "row"])
def test_what_is_inline_and_the_same_for_a_vector_is_computed_once_for_it(place: E, quotients: float) -> None:
    root = E(Call("sqrt", (F("input")(x, 0).e,), FLOAT32))
    stages = [stage("weight", "x", root), stage("out", "xy", F("weight")(place) * F("input")(x, y))]
    (work,) = works(pipeline("weighted", stages, {"out": (32, 8)}), ORDERS[0], {}, {"x": 32, "y": 8}, 8).values()
    assert dict(work.operations)["f32"].divide == quotients


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


def scan_and_reader() -> Pipeline:
    """Running maxima up the columns, and rows that read two of them."""
    scan = {
        "name": "scan", "dims": ["x", "y"], "value": "input(x, y)",
        "updates": [{"domain": {"r": [1, 99]}, "at": ["x", "r"], "value": "max(scan(x, r), scan(x, r - 1))"}],
    }  # fmt: skip
    read = {"name": "out", "dims": ["x", "y"], "value": "scan(x, y) - scan(x, y - 3)"}
    document = {
        "format": 1, "name": "scanned", "inputs": [{"name": "input", "type": "float32", "dims": ["x", "y"]}],
        "stages": [scan, read], "outputs": ["out"], "estimates": {"out": [[0, 64], [3, 97]]},
    }  # fmt: skip
    return load(document)


def test_rows_that_read_a_scan_touch_what_they_read() -> None:
    of = scan_and_reader()
    facts = gather(normalise(of), line_bytes=1)
    members = members_of(facts, "out", facts.graph.stages)
    axes = {"x": axis("x", 64, [64]), "y": axis("y", 97, [97])}
    running = Running({"scan": Run("x", 8), "out": Run("x", 8)}, stream=True)
    levels = {"scan": Levels(2, 2)}
    nest = Nest("out", ORDERS[0], axes)
    counts = worked_counts(members, effective(members, frozenset()), nest, levels, 1, running).at((0,))
    assert counts.work is not None
    rows, whole = 4, 100
    assert counts.work.working[1] == pytest.approx(64 * 4 * (1 + 2))  # two rows of a box of four
    assert counts.work.working[2] >= 64 * 4 * whole
    reader = next(s.work for s in counts.stages if s.stage == "out")
    assert reader is not None
    assert reader.loaded[1] == pytest.approx(64 * 4 * (97 + rows - 1))  # each row once, while those between stay


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


@pytest.mark.parametrize(
    ("value", "width", "awaited"),
    [
        ("a(x - 1, y) + a(x + 1, y)", 1024, True),
        ("a(x, y) + a(x + 1, y)", 1024, False),  # nothing behind
        ("a(x, y) + a(x + 12, y + 1)", 1000, True),  # 12 elements behind a page from there
        ("a(x, y) + a(x + 12, y - 1)", 1000, False),
        ("a(x, y) + float32(b(x - 1, y))", 1024, False),  # bytes lie elsewhere
    ],
)
def test_loads_wait_for_what_is_streamed_just_behind_them(value: str, width: int, awaited: bool) -> None:
    inputs = [
        {"name": n, "type": t, "dims": ["x", "y"], "boundary": {"kind": "repeat_edge"}}
        for n, t in (("a", "float32"), ("b", "uint8"))
    ]
    document = {
        "format": 1, "name": "streamed", "inputs": inputs,
        "stages": [{"name": "out", "dims": ["x", "y"], "value": value}],
        "outputs": ["out"], "estimates": {"out": [[0, width], [0, 64]]},
    }  # fmt: skip
    of = load(document)
    schedule = root_schedule(of, catalog.get("i7-6700"))
    plan = rewrite(of, replace(schedule, groups=(replace(schedule.groups[0], stream=True),)))
    (counts,) = counts_of(plan, catalog.get("i7-6700"))
    (work,) = (s.work for s in counts.stages if s.work is not None)
    assert (work.streamed_bytes, work.awaited_bytes) == (width * 64 * 4, width * 64 * 4 * awaited)


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
    ("second", "lanes", "way"), [(1, 16, "pairs"), (1, 4, "pairs"), (1, 2, "gathered"), (2, 16, "gathered")]
)
def test_two_neighbours_at_a_depth_that_data_says_are_a_pair(second: int, lanes: int, way: str) -> None:
    places = (f"table(x // 8{more}, clamp(int32(i(x, y)), 0, 9))" for more in ("", f" + {second}"))
    of = table(" + ".join(places), "xy", [[0, 64], [0, 32]])
    out = works(of, ORDERS[0], {"table": Levels(4, 4)}, {"x": 64, "y": 32}, lanes)["out"]
    assert [(t.way, t.times) for t in out.loads if t.way != "aligned"] == [(way, 2)]


def test_tiles_of_coarse_levels_need_no_more_than_there_is() -> None:
    """Halos grow from level to level, and the image ends."""
    edge = {"kind": "repeat_edge", "domain": [[0, 16]]}
    document = {
        "format": 1, "name": "halos", "inputs": [{"name": "a", "type": "float32", "dims": ["x"]}],
        "stages": [
            {"name": "coarse", "dims": ["x"], "value": "a(4 * x)", "boundary": edge},
            {"name": "out", "dims": ["x"], "value": "coarse(x // 4 - 8) + coarse(x // 4 + 8)"},
        ],
        "outputs": ["out"], "estimates": {"out": [[0, 64]]},
    }  # fmt: skip
    facts = gather(normalise(load(document)))
    members = members_of(facts, "out", facts.graph.stages)
    nest = Nest("out", ("x.inner", "x.outer"), {"x": axis("x", 64, [8, 64])})
    running = Running({n: Run("x", 8) for n in members.names if n != "a"})
    reads = effective(members, frozenset(n for n in members.names if n not in ("coarse", "out")))
    found = worked_counts(members, reads, nest, {"coarse": Levels(1, 1)}, 1, running)
    tiled, whole = (next(float(s.points) for s in found.at((n,)).stages if s.stage == "coarse") for n in (0, 1))
    root = next(s.root_points for s in found.stages if s.stage == "coarse")
    assert whole == root == 16
    assert tiled == 8 * 16


def test_down_a_column_each_point_is_a_line() -> None:
    """Vectors along rows against scalars down columns, of a stage that is computed as a whole."""
    of = blur(64, 40)
    facts = gather(normalise(of))
    members = members_of(facts, "blur_y", facts.graph.stages)
    nest = Nest("blur_y", ORDERS[0], {"x": axis("x", 64, [64]), "y": axis("y", 40, [40])})
    found = []
    for run in (Run("x", 8), Run("y", 1)):
        running = Running({"blur_x": run, "blur_y": Run("x", 8)})
        counts = worked_counts(members, effective(members, frozenset()), nest, {"blur_x": Levels(4, 4)}, 1, running)
        found += [s.work for s in counts.at((0,)).stages if s.stage == "blur_x" and s.work is not None]
    row, column = found
    assert row.stored[0] == 64 * 42 * 4
    assert column.stored[0] == 64 * 42 * 64
    assert column.working[0] > 2 * 42 * 64 > row.working[0]
    assert column.run_bytes == 4


def test_the_same_schedule_has_the_same_price() -> None:
    from tilesmith.cost_models import Ecm

    platform = catalog.get("i7-6700")
    for name in ("blur", "unsharp", "camera_pipe"):
        of = pipelines.load(name)
        schedule = autoschedule(of, platform, SearchOptions("taco2019")).schedule
        first, again = (predict(rewrite(of, schedule), platform, Ecm()) for _ in range(2))
        assert first == again
        assert 0 < float(first.total) < 1e7


def test_small_tables_of_bytes_are_looked_up_by_vectors() -> None:
    """Where data tells the place in one row of them; 16 lanes are the fewest."""
    for lanes, entries, way in (
        (64, 1024, "table"),
        (16, 2048, "table"),
        (8, 1024, "gathered"),
        (64, 4096, "gathered"),
    ):
        of = load_text(TABLE.replace("ENTRIES", str(entries)))
        (table,) = (t for t in _outputs_work(of, lanes).loads if t.way in ("table", "gathered"))
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


def test_rows_that_a_tile_breaks_off_go_on_in_the_next_along_the_row() -> None:
    for loops, following in ((ORDERS[0], 2), (ORDERS[1], 3)):
        found = works(blur(40, 13), loops, {"blur_x": Levels(1, 2)}, {"x": 8, "y": 4}, 4)
        assert {name: work.next for name, work in found.items()} == dict.fromkeys(found, following)


def test_rows_side_by_side_break_off_unless_they_are_asked_for_ahead() -> None:
    of = pipeline("twice", [stage("out", "xy", F("input")(x, y) * 2)], {"out": (64, 64)})
    facts = gather(normalise(of))
    members = members_of(facts, "out", ("out",))
    nest = Nest("out", ORDERS[2], {"x": axis("x", 64, [64]), "y": axis("y", 64, [8])})
    reads = effective(members, frozenset())
    found = []
    for ahead in (4096, 0, 4096):
        running = Running({"out": Run("x", 8)}, prefetch=ahead)
        (only,) = worked_counts(members, reads, nest, {}, 1, running).at((0,)).stages
        assert only.work is not None
        found.append(only.work.run_bytes)
    assert found == [inf, 64 * 4, inf]


@pytest.mark.parametrize("lanes", [4, 8, 16, 32])
def test_a_line_is_asked_for_once_however_short_vectors_are(lanes: int) -> None:
    """A row of 64 floats is four lines."""
    of = pipeline("twice", [stage("out", "xy", F("input")(x, y) * 2)], {"out": (64, 64)})
    members = members_of(gather(normalise(of)), "out", ("out",))
    nest = Nest("out", ORDERS[0], {"x": axis("x", 64, [64]), "y": axis("y", 64, [8])})
    running = Running({"out": Run("x", lanes)}, prefetch=4096)
    (only,) = worked_counts(members, effective(members, frozenset()), nest, {}, 1, running).at((0,)).stages
    assert only.work is not None
    assert only.work.asked * only.work.steps == 4 * 64


def test_rows_side_by_side_in_planes_each_go_on_in_their_own() -> None:
    """Rows of four planes, and the loop over rows is around; four rows of a plane, and that over planes is around."""
    twice = "input(x, y, z) * 2"
    assert walked(twice, ("z", "x", "y"), extent=64, planes=4) == [inf]
    assert walked(twice, ("y", "x", "z"), extent=64, rows=4) == [64 * 4]


def test_rows_side_by_side_are_those_that_a_step_loads_and_stores() -> None:
    """Two rows of the output with windows of three in y, in rows of 64 and of 66 floats."""
    of = pipeline(
        "window",
        [stage("out", "xy", F("input")(x, y - 1) + F("input")(x + 2, y) + F("input")(x, y + 1))],
        {"out": (64, 64)},
    )
    facts = gather(normalise(of))
    members = members_of(facts, "out", ("out",))
    for together, rows in ((1, None), (2, SideBySide((-264, 0, 264, 528), (0, 256), 4))):
        reads = effective(members, frozenset(), {"y": together} if together > 1 else {})["out"]
        assert side_by_side(members, reads, Run("x", 8)) == rows


def test_rows_of_a_member_that_are_computed_at_once_do_not_go_on() -> None:
    """Four rows with windows of three: where one ends the next three have been walked."""
    of = pipeline(
        "windows",
        [
            stage("sums", "xy", F("input")(x, y - 1) + F("input")(x, y) + F("input")(x, y + 1)),
            stage("out", "xy", F("sums")(x, y) + F("sums")(x + 9, y)),
        ],
        {"out": (256, 64)},
    )
    facts = gather(normalise(of))
    members = members_of(facts, "out", ("sums", "out"))
    nest = Nest("out", ORDERS[0], {"x": axis("x", 256, [256]), "y": axis("y", 64, [64])})
    found = []
    for together in (4, 1):
        reads = effective(members, frozenset(), rows={"sums": {"y": together}})
        running = Running({n: Run("x", 8) for n in ("sums", "out")})
        counts = worked_counts(members, reads, nest, {"sums": Levels(2, 2)}, 1, running).at((0,))
        found.append(counts.stages[0].work.run_bytes)
    assert found == [265 * 4, inf]


def test_an_iteration_touches_what_is_new_and_what_is_read_for_that() -> None:
    """Not all 32 rows of `low` that a row of the output is made of."""
    high = stage("high", "xy", F("low")(x, y - 1) + F("low")(x, y + 1))
    out = stage("out", "xy", F("high")(x, y + 30) + F("low")(x, y))
    of = pipeline("lag", [stage("low", "xy", F("input")(x, y) * 2), high, out], {"out": (256, 64)})
    counts = group(of, ORDERS[0], {"low": Levels(1, 2), "high": Levels(1, 2)}, {"x": 256, "y": 64}, 8, line_bytes=1)
    rows = {"input": 1, "low": 3, "high": 1, "out": 1}
    assert counts.work is not None
    assert counts.work.working[1] == sum(rows.values()) * 256 * 4


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


@pytest.mark.parametrize("ahead", [0, 3, 10])
def test_rows_that_another_stage_has_read_before(ahead: int) -> None:
    """So many rows, of the input and of the output, go by in between."""
    far = stage("far", "xy", F("input")(x, y) * 2)
    out = stage("out", "xy", F("far")(x, y + ahead) + F("input")(x, y))
    of = pipeline("sharpen", [far, out], {"out": (64, 100)})
    found = works(of, ORDERS[0], {"far": Levels(1, 2)}, {"x": 64, "y": 100}, 16)
    assert found["far"].again is None
    assert found["out"].again is not None
    again, between = found["out"].again
    row, pad = 64 * 4, 60  # rows lie anywhere in their lines
    assert again == pytest.approx(100 * (row + pad))
    rings = 2 * row
    assert between == pytest.approx((ahead + 1) * 2 * (row + pad) + rings, rel=0.3)
    alone = works(of, ORDERS[0], {"far": Levels(3, 3)}, {"x": 64, "y": 100}, 16)  # of a tile all at once
    assert alone["out"].again is None


@pytest.mark.parametrize(
    ("lanes", "clamped", "tile", "rows"),
    [(4, False, 64, 10), (16, False, 64, 0), (16, True, 64, 10), (4, False, 32, 20), (16, True, 32, 10)],
)
def test_rows_past_the_caches_whose_ends_are_in_their_lines(lanes: int, clamped: bool, tile: int, rows: int) -> None:
    """Rows of inner tiles end where vectors do, but lines need not; ends that clamps have computed apart never are."""
    torn = []
    for extent in (64, 60):  # lines of 16 elements
        at = clamp(x + 1, 0, extent - 1) if clamped else x + 1
        of = pipeline("stencil", [stage("out", "xy", F("input")(x, y) + F("input")(at, y))], {"out": (extent, 10)})
        facts = gather(normalise(of))
        members = members_of(facts, "out", facts.graph.stages)
        axes = {"x": axis("x", extent, [min(tile, extent)]), "y": axis("y", 10, [10])}
        running = Running({"out": Run("x", lanes)}, stream=True)
        counts = worked_counts(members, effective(members, frozenset()), Nest("out", ORDERS[0], axes), {}, 1, running)
        torn += [s.work.torn for s in counts.at((0,)).stages if s.work]
    assert torn == [rows if clamped else 0, rows]


def test_how_much_of_what_a_group_reads_others_have_written_past_the_caches() -> None:
    platform = catalog.get("i7-6700")
    of = blur(64, 40)
    schedule = root_schedule(of, platform)
    first, last = schedule.groups
    for stream, share in ((False, 0.0), (True, 1.0)):
        found = counts_of(rewrite(of, replace(schedule, groups=(replace(first, stream=stream), last))), platform)
        assert [c.work.past for c in found if c.work] == [0.0, share]


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


def _outputs_work(of: Pipeline, lanes: int) -> Work:
    facts = gather(normalise(of))
    members = members_of(facts, of.outputs[0], facts.graph.stages)
    output = facts.stages[members.output]
    axes = {d: axis(d, e, [e]) for d, e in zip(output.dims, output.extents, strict=True)}
    running = Running({members.output: Run("x", lanes)})
    reads = effective(members, frozenset(members.names[:-1]))
    *_, stage = worked_counts(members, reads, Nest(members.output, ORDERS[0], axes), {}, 1, running).at((0,)).stages
    assert stage.work is not None
    return stage.work


def _enlarged(rows: str, by: int) -> Work:
    """The work of a stage that enlarges an image and is kept in registers, by readers of `rows`."""
    up, ring = F("up"), F("ring")
    stages = [
        stage("up", "xyc", F("input")(x // by, y, c)),
        stage("ring", "xyc", up(x, y, c) + 1),
        stage("out", "xyc", ring(x, y, c) + (up(x, y, c) if rows == "out" else ring(x, y + 1, c))),
    ]
    facts = gather(normalise(pipeline("enlarged", stages, {"out": (64, 16, 2)}, {"input": "xyc"})))
    members = members_of(facts, "out", facts.graph.stages)
    axes = {d: axis(d, e, [e]) for d, e in (("x", 64), ("y", 16), ("c", 2))}
    nest = Nest("out", ("c.inner", "x.inner", "y.inner"), axes)
    levels = {"up": Levels(1, 2, True), "ring": Levels(1, 3)}
    running = Running({"up": Run("x", 8, True), "ring": Run("x", 8), "out": Run("x", 8)})
    counts = worked_counts(members, effective(members, frozenset(), {}, {"up"}), nest, levels, 1, running).at((0,))
    (found,) = (s.work for s in counts.stages if s.stage == "up" and s.work is not None)
    return found


@pytest.mark.parametrize(("rows", "by", "way"), [("out", 2, "shared"), ("ring", 2, "shared"), ("out", 3, "gathered")])
def test_elements_that_several_lanes_read_are_one_load(rows: str, by: int, way: str) -> None:
    """In a loop that stages share and in one of their own, where they are the same lanes in each vector."""
    (found,) = (t for t in _enlarged(rows, by).loads if t.way != "aligned")
    assert (found.way, found.stride) == (way, by if way == "shared" else 1)


@pytest.mark.parametrize(
    ("place", "lanes", "way"),
    [
        (x // 4 * 4 + (x + 2) % 4, 8, "unaligned"),
        (x // 4 * 4 + (x + 2) % 4, 2, "gathered"),
        (x - (x + 1) % 3, 8, "gathered"),
        (x // 3 * 3, 8, "near"),
        (x // 48 * 48, 8, "gathered"),
    ],
)
def test_places_in_another_order_in_each_vector_are_gathered(place: E, lanes: int, way: str) -> None:
    """But for those that go one way: these are near each other."""
    of = pipeline("ordered", [stage("out", "xy", F("input")(place, y))], {"out": (64, 16)}, {"input": "xy"})
    assert {t.way for t in _outputs_work(of, lanes).loads} - {"aligned"} == {way}


def test_what_is_inline_and_the_same_in_every_vector_is_worked_out_before() -> None:
    cosine = E(Call("cos", (Cast((x % 4).e, FLOAT32),), FLOAT32))
    stages = [stage("weights", "x", cosine), stage("out", "xy", F("weights")(x) * F("input")(x, y))]
    of = pipeline("repeated", stages, {"out": (64, 16)}, {"input": "xy"})
    assert sum(o.multiply + o.add for _, o in _outputs_work(of, 8).operations) == 1
    assert sum(o.multiply + o.add for _, o in _outputs_work(of, 2).operations) > 5


@pytest.mark.parametrize("lanes", [4, 8])
@pytest.mark.parametrize("rows", [(0,), (-1, 0, 2)], ids=str)
@pytest.mark.parametrize("shifts", [(0,), (0, 2), (-1, 0, 1), (-9, 9), (3, 5), tuple(range(-17, 10))], ids=str)
@pytest.mark.parametrize("stream", [False, True])
def test_what_is_held_in_registers_is_what_the_code_keeps(
    stream: bool, shifts: tuple[int, ...], rows: tuple[int, ...], lanes: int
) -> None:
    """However few elements of a window are read, all of its vectors wait for the last of them; of each row that streams
    the vector before does, and two say which lanes are whose."""
    f = F("f")
    reads = [f(x + a, y + b) for a in shifts for b in rows]
    stages = [stage("f", "xy", F("input")(x, y) + 1), stage("out", "xy", total(reads))]
    of = pipeline("windows", stages, {"out": (256, 64)})
    group = Group(
        output="out",
        loops=("y.inner", "x.inner", "x.outer", "y.outer"),
        tiles=(Tile("x", None), Tile("y", 4)),
        parallel=None,
        vector=Vector("x", lanes),
        unroll=("y",),
        placements=(Placement("f", "x.inner", "x.outer", storage="registers", vector=Vector("x", lanes)),),
        stream=stream,
    )
    schedule, platform = Schedule("windows", "by hand", (group,)), catalog.get("epyc-9655")
    (counts,) = counts_of(rewrite(of, schedule), platform)
    code = generate(of, schedule, platform).code
    assert counts.stages[-1].work is not None
    (size, vectors), *streamed = counts.stages[-1].work.held
    windows = "".join(re.findall(r"^struct windows\d+ {\n(.*?)^};", code, re.MULTILINE | re.DOTALL))
    assert (size, vectors) == (4, windows.count("f_before"))
    assert [n for _, n in streamed] == [3 * windows.count("out_before")] * stream
    assert not stream or counts.stages[-1].work.loads[-1] == Transfer("shuffled", 4, 1.0)


def test_values_before_a_scan_are_computed_in_vectors_though_the_scan_is_not() -> None:
    document = {
        "format": 1,
        "name": "scan",
        "inputs": [{"name": "input", "type": "float32", "dims": ["x", "y"]}],
        "stages": [
            {"name": "root", "dims": ["x", "y"], "value": "sqrt(input(x, y)) * 3.0 + 1.0"},
            {
                "name": "out",
                "dims": ["x", "y"],
                "value": "root(x, y)",
                "updates": [{"domain": {"r": [1, 63]}, "at": ["r", "y"], "value": "out(r, y) + out(r - 1, y)"}],
            },
        ],
        "outputs": ["out"],
        "estimates": {"out": [[0, 64], [0, 8]]},
    }
    of = load(document)
    facts = gather(normalise(of))
    members = members_of(facts, "out", ("root", "out"))
    reads = effective(members, frozenset({"root"}))
    axes = {"x": axis("x", 64, [64]), "y": axis("y", 8, [8])}
    running = Running({"out": Run("x", 8, before=8)})
    counts = worked_counts(members, reads, Nest("out", ("x.inner", "y.inner"), axes), {}, 1, running).at((0,))
    (of_out,) = (s.work for s in counts.stages if s.work is not None)
    assert of_out.lanes == 8
    assert dict(of_out.operations)["f32"].divide == 1
    (scan,) = of_out.passes
    assert dict(scan.operations)["f32"].divide == 0
    assert (scan.lanes, scan.steps, scan.chain) == (1, 63 * 8, 4)


def test_an_update_in_the_place_of_the_values_brings_nothing_of_its_own() -> None:
    """The first one writes all rows but one, of what it reads of the input: nothing fills them before, and it finds the
    row before. The one back finds the tile."""
    n = "input.extent.y"
    at = {"forth": "f(x, r - 1) + f(x, r)", "back": f"f(x, {n} - r) + f(x, {n} - 1 - r)"}
    places = {"forth": ["x", "r"], "back": ["x", f"{n} - 1 - r"]}
    updates = [{"domain": {"r": [1, f"{n} - 1"]}, "at": places[way], "value": value} for way, value in at.items()]
    of = load(
        {
            "format": 1, "name": "p", "inputs": [{"name": "input", "type": "float32", "dims": ["x", "y"]}],
            "stages": [{"name": "f", "dims": ["x", "y"], "value": "input(x, y)", "updates": updates}],
            "outputs": ["f"], "estimates": {"f": [[0, 64], [0, 32]], "input": [[0, 64], [0, 32]]},
        }
    )  # fmt: skip
    found = works(of, ("x.inner", "y.inner"), {}, {"x": 64, "y": 32}, 8, 1)["f"].passes
    assert [p.working for p in found] == [pytest.approx(64 * 32 * 4 / 31), 64 * 32 * 4]


@pytest.mark.parametrize(("level", "lanes"), [(1, 8), (2, 8), (2, 16)])
def test_updates_of_rows_shorter_than_a_vector_are_computed_one_by_one(level: int, lanes: int) -> None:
    """`out` crosses the rows of `sums`: inside of its loop over y they have one point, around it those of a tile of 8.
    The update reads `input` across rows."""
    document = {
        "format": 1,
        "name": "turned",
        "inputs": [{"name": "input", "type": "float32", "dims": ["x", "y"]}],
        "stages": [
            {
                "name": "sums",
                "dims": ["x", "y"],
                "value": "0.0",
                "updates": [{"domain": {"r": [1, 63]}, "at": ["x", "r"], "value": "sums(x, r - 1) + input(r, x)"}],
            },
            {"name": "out", "dims": ["x", "y"], "value": "sums(y, x)"},
        ],
        "outputs": ["out"],
        "estimates": {"out": [[0, 64], [0, 32]]},
    }
    facts = gather(normalise(load(document)))
    members = members_of(facts, "out", ("sums", "out"))
    axes = {"x": axis("x", 64, [64]), "y": axis("y", 32, [8])}
    updates = (UpdateLoops(("x", "r"), Vector("x", lanes)),)
    running = Running({"sums": Run("x", lanes, updates=updates), "out": Run("x", 8)})
    nest = Nest("out", ("x.inner", "y.inner", "y.outer"), axes)
    reads = effective(members, frozenset())
    counts = worked_counts(members, reads, nest, {"sums": Levels(level, level)}, 1, running).at((0,))
    (work,) = (s.work for s in counts.stages if s.stage == "sums" and s.work is not None)
    (update,) = work.passes
    iterations, length = 63 * 32, 8 if level == 2 else 1
    assert update.steps == (iterations / lanes if lanes <= length else 0)
    assert update.singles == (0 if lanes <= length else iterations)
    assert update.rows == iterations / length
    assert update.transfers == (Transfer("gathered", 4, 1.0),)


def test_scans_along_rows_have_what_they_read_of_others_in_blocks_of_rows() -> None:
    """What is inline in one is computed, too."""
    document = {
        "format": 1,
        "name": "scanned",
        "inputs": [{"name": n, "type": "float32", "dims": ["x", "y"]} for n in ("input", "table")],
        "stages": [
            {"name": "root", "dims": ["x", "y"], "value": "sqrt(input(x, y))"},
            {
                "name": "f",
                "dims": ["x", "y"],
                "value": "0.0",
                "updates": [
                    {
                        "domain": {"r": [1, 63]},
                        "at": ["r", "y"],
                        "value": "f(r - 1, y) + root(r, y) * table(clamp(int32(input(r, y)), 0, 63), y)",
                    }
                ],
            },
        ],
        "outputs": ["f"],
        "estimates": {"f": [[0, 64], [0, 32]]},
    }
    facts = gather(normalise(load(document)))
    members = members_of(facts, "f", ("root", "f"))
    axes = {"x": axis("x", 64, [64]), "y": axis("y", 32, [32])}
    run = Run("x", 8, updates=(UpdateLoops(("r", "y"), Vector("y", 8)),))
    nest = Nest("f", ("x.inner", "y.inner"), axes)
    counts = worked_counts(members, effective(members, frozenset({"root"})), nest, {}, 1, Running({"f": run})).at((0,))
    (work,) = (s.work for s in counts.stages if s.stage == "f" and s.work is not None)
    (update,) = work.passes
    assert {t.way for t in update.transfers} == {"transposed", "gathered"}
    assert sum(o.divide for _, o in update.operations) == pytest.approx(1)


def test_places_that_data_says_are_lines_of_the_platform() -> None:
    of = table(NEAR, "xy", [[0, 64], [0, 32]])
    short, long = (works(of, ORDERS[0], {}, {"x": 64, "y": 32}, 8, line)["out"].looked_up for line in (64, 128))
    assert (short[0], long[0]) == (64 * 32 * 64, 64 * 32 * 128)


def walked(out: str, order: tuple[str, ...], extent: int = 2048, rows: int = 64, planes: int = 64) -> list[float]:
    """The bytes in order that the rows of a stage of three dims of floats walk, in tiles of so many whole rows of so
    many planes."""
    of = load(
        {
            "format": 1, "name": "p", "inputs": [{"name": "input", "type": "float32", "dims": ["x", "y", "z"]}],
            "stages": [{"name": "out", "dims": ["x", "y", "z"], "value": out}], "outputs": ["out"],
            "estimates": {"out": [[0, extent], [0, 64], [0, 64]]},
        }
    )  # fmt: skip
    facts = gather(normalise(of))
    members = members_of(facts, "out", facts.graph.stages)
    axes = {"x": axis("x", extent, [extent]), "y": axis("y", 64, [rows]), "z": axis("z", 64, [planes])}
    loops = (*(f"{d}.inner" for d in order), *(f"{d}.outer" for d in order))
    nest, running = Nest("out", loops, axes), Running({"out": Run("x", 16)})
    counts = worked_counts(members, effective(members, frozenset()), nest, {}, 1, running)
    return [float(s.work.run_bytes) for s in counts.at((0,)).stages if s.work]


def test_rows_follow_each_other_where_the_loop_around_goes_on_in_memory() -> None:
    assert walked("input(x, y, z)", ("x", "y", "z")) == [inf]
    assert walked("input(x, y, z)", ("x", "z", "y")) == [4 * 2048]


def test_whole_rows_break_off_where_a_tile_goes_on_to_the_next_plane() -> None:
    assert walked("input(x, y, z)", ("x", "y", "z"), rows=16) == [16 * 4 * 2048]
    assert walked("input(x, y, z)", ("x", "y", "z"), planes=8) == [inf]
    assert walked("input(x, y, z)", ("x", "y", "z"), rows=16, planes=1) == [inf]


def test_rows_that_are_walked_at_once_do_not_go_on() -> None:
    """Two rows of a mean of two by two are both new: where one ends the other has been walked."""
    assert walked("input(x, 2 * y, z) + input(x, 2 * y + 1, z)", ("x", "y", "z")) == [4 * 2048]
    assert walked("input(x, 2 * y, z)", ("x", "y", "z")) == [inf]
    assert walked("input(x, y, z) + input(x, y + 1, z)", ("x", "y", "z")) == [inf]


def test_neighbours_of_flat_planes_are_near_each_other_but_where_a_plane_ends() -> None:
    place = "x % 784 + 784 * r + 200704 * (x // 784)"
    document = {
        "format": 1, "name": "means", "inputs": [{"name": "a", "type": "float32", "dims": ["x"]}],
        "stages": [{"name": "m", "dims": ["x"], "value": f"sum(a({place}) for r in range(256))"}],
        "outputs": ["m"], "estimates": {"a": [[0, 802816]], "m": [[0, 3136]]},
    }  # fmt: skip
    facts = gather(normalise(load(document)))
    (read,) = facts.stages["m"].reads
    assert read.beside == ("x", "x", 1, 784)
    found = autoschedule(load(document), catalog.get("i7-6700"), SearchOptions())
    assert not found.schedule.factors


def test_iterations_inside_of_the_loop_that_carries_a_recurrence_wait_for_it_together() -> None:
    """Three channels of each pixel, and rows of them, whose vectors wait for nothing near: of each of eight strips."""

    def chain(at: list[str], value: str) -> tuple[float, float]:
        dims, storage = ["x", "y", "c"], ["c", "x", "y"]
        update = {"domain": {"r": [1, 63]}, "at": at, "value": value}
        document = {
            "format": 1, "name": "scan", "inputs": [{"name": "a", "type": "float32", "dims": dims, "storage": storage}],
            "stages": [{"name": "f", "dims": dims, "storage": storage, "value": "a(x, y, c)", "updates": [update]}],
            "outputs": ["f"], "estimates": {"f": [[0, 64], [0, 64], [0, 3]], "a": [[0, 64], [0, 64], [0, 3]]},
        }  # fmt: skip
        of, platform = load(document), catalog.get("i7-6700")
        (counts,) = counts_of(rewrite(of, root_schedule(of, platform)), platform)
        work = counts.stages[0].work
        assert work is not None
        done = work.passes[0]
        return done.chain, float(done.rows)

    assert chain(["r", "y", "c"], "f(r - 1, y, c) + f(r, y, c)") == (FLOAT / 3, 0)
    assert chain(["x", "r", "c"], "f(x, r - 1, c) + f(x, r, c)") == (FLOAT / (3 * 64 / 8), 8 * 63)


@pytest.mark.parametrize(
    ("value", "cycles"),
    [
        ("f(p, q) + f(p, q - 1) + (f(p - 1, q - 1) + f(p - 1, q))", 2 * FLOAT),
        ("f(p - 1, q) + (f(p, q - 1) + (f(p + 1, q - 1) * 2.0 + f(p, q)))", FLOAT),
        ("f(p - 2, q) + f(p, q)", FLOAT / 2),
        ("f(p - 1, q) + (f(p - 2, q) + f(p, q))", FLOAT),
        ("f(p, q - 1) + f(p, q)", FLOAT / 60),
    ],
)
def test_a_step_waits_for_those_before_it_in_the_loop_that_carries(value: str, cycles: float) -> None:
    """Not for the row before, for which all steps of a row wait together; half as long for what comes from two steps
    before."""
    update = {"domain": {"p": [2, 60], "q": [1, 62]}, "at": ["p", "q"], "value": value}
    dims = ["x", "y"]
    of = load(
        {
            "format": 1, "name": "sweep", "inputs": [{"name": "a", "type": "float32", "dims": dims}],
            "stages": [{"name": "f", "dims": dims, "value": "a(x, y)", "updates": [update]}],
            "outputs": ["f"], "estimates": {"f": [[0, 64], [0, 64]], "a": [[0, 64], [0, 64]]},
        }
    )  # fmt: skip
    stage, loops = of.stages[0], UpdateLoops(("p", "q"))
    found = carried_by(stage, stage.updates[0], loops, lambda _: 60, ORDINARY.latency_cycles)
    assert found == cycles


def test_neighbours_that_are_summed_are_vectors_wherever_a_remainder_moves_them() -> None:
    """Blocks of eight, displaced by what `k` says."""
    of = load(
        {
            "format": 1, "name": "displaced",
            "inputs": [{"name": n, "type": "uint8", "dims": ["x", "y"]} for n in "ab"],
            "stages": [{"name": "out", "dims": ["x", "y", "k"], "value":
                        "sum(uint16(absd(a(8 * x + p, y), b(8 * x + p + k % 9, y + k // 9))) for p in range(8))"}],
            "outputs": ["out"], "estimates": {"out": [[0, 640], [0, 64], [0, 81]]},
        }
    )  # fmt: skip
    platform = catalog.get("i7-6700")
    (counts,) = counts_of(rewrite(of, root_schedule(of, platform)), platform)
    work = counts.stages[-1].work
    assert work is not None
    assert {t.way for t in work.loads} == {"unaligned"}
    assert {(t.bytes, t.times) for t in work.loads} == {(8, 1)}, "eight bytes of each point are one element"
    assert dict(work.operations)["i64"].add == 2, "one instruction for eight, and one for the sum"


def interleaved(value: str) -> Work:
    """The work of an output of three interleaved channels that is computed at root."""
    dims, storage, size = ["x", "y", "c"], ["c", "x", "y"], [[0, 640], [0, 64], [0, 3]]
    of = load(
        {
            "format": 1, "name": "pixels",
            "inputs": [{"name": "a", "type": "uint8", "dims": dims, "storage": storage}],
            "stages": [{"name": "out", "dims": dims, "storage": storage, "value": value}],
            "outputs": ["out"], "estimates": {"out": size, "a": size},
        }
    )  # fmt: skip
    platform = catalog.get("i7-6700")
    (counts,) = counts_of(rewrite(of, root_schedule(of, platform)), platform)
    work = counts.stages[-1].work
    assert work is not None
    return work


def test_rows_of_interleaved_pixels_go_on_and_are_one_row_each() -> None:
    """Half a turn: the loop around a row is that over rows, and what a step loads of all channels is in one row."""
    work = interleaved("a(639 - x, 63 - y, c)")
    assert (work.run_bytes, work.together) == (inf, None)


def test_a_reduction_along_whole_rows_walks_one_row_after_the_other() -> None:
    """Sums of windows of 40 rows of 40 are loops along these."""
    sides = "sum(a(x + i, y + j) for i in range({}) for j in range({}))"
    found = []
    for wide, high in ((40, 40), (3, 40)):
        of = load(
            {
                "format": 1, "name": "sums", "inputs": [{"name": "a", "type": "float32", "dims": ["x", "y"]}],
                "stages": [{"name": "out", "dims": ["x", "y"], "value": sides.format(wide, high)}],
                "outputs": ["out"], "estimates": {"out": [[0, 64], [0, 64]]},
            }
        )  # fmt: skip
        platform = catalog.get("i7-6700")
        (counts,) = counts_of(rewrite(of, root_schedule(of, platform)), platform)
        assert counts.stages[-1].work is not None
        found.append(counts.stages[-1].work.streams)
    assert found[0] == 2
    assert found[1] >= 40

"""SIMD work and cache traffic of stages, against walking small loop nests."""

from __future__ import annotations

from itertools import product

import pytest
from support.group_work import ORDERS, TILES, boxes, group, works
from support.small_pipelines import F, blur, pipeline, stage, total, x, y

from tilesmith.cost_models.work import Work
from tilesmith.platforms import catalog
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.features.groups.execution_mode import Run, Running
from tilesmith.scheduler.features.groups.fusion_group import effective, members_of
from tilesmith.scheduler.features.groups.group_counts import Levels
from tilesmith.scheduler.features.groups.loop_nest import Nest, axis
from tilesmith.scheduler.features.pipeline.pipeline_features import gather
from tilesmith.scheduler.features.schedule_features import predict
from tilesmith.scheduler.features.work.simd_work import worked_counts
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.schedule import UpdateLoops, Vector
from tilesmith.scheduler.rewrites.passes import normalise, rewrite
from tilesmith.scheduler.search import SearchOptions, autoschedule


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


@pytest.mark.parametrize("level", [1, 2, 3])
def test_the_work_of_a_stage_is_the_same_whatever_else_was_counted_before(level: int) -> None:
    """In other orders of loops, with other tiles, levels and lanes."""
    turned = F("blur_x")(x, y) + F("blur_x")(x, y + 1) + F("weights")(y, x)
    of = pipeline(
        "blur",
        [
            stage("weights", "xy", F("input")(x, y)),
            stage("blur_x", "xy", F("input")(x, y) + F("input")(x + 1, y)),
            stage("out", "xy", turned),
        ],
        {"out": (64, 40)},
    )
    levels = {n: Levels(level, min(level + 1, 3)) for n in ("weights", "blur_x")}
    facts = gather(normalise(of))
    for lanes in (1, 8):
        for loops in ORDERS:
            for tiles in TILES:
                works(of, loops, {n: Levels(1, 1) for n in levels}, tiles, lanes, facts=facts)
                alone = works(of, loops, levels, tiles, lanes)
                assert works(of, loops, levels, tiles, lanes, facts=facts) == alone


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


def test_a_ring_is_the_same_memory_again_and_again() -> None:
    found = works(blur(20, 13), ORDERS[0], {"blur_x": Levels(1, 2)}, {"x": 10, "y": 13}, 1, line_bytes=1)
    ring = 3 * 10 * 4
    assert found["blur_x"].stored[-3:] == (2 * ring, ring, ring)  # inside x.outer, inside y.outer, the whole
    assert found["blur_y"].loaded[-1] == ring


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


def test_the_same_schedule_has_the_same_price() -> None:
    from tilesmith.cost_models import Ecm

    platform = catalog.get("i7-6700")
    for name in ("blur", "unsharp", "camera_pipe"):
        of = pipelines.load(name)
        schedule = autoschedule(of, platform, SearchOptions("taco2019")).schedule
        first, again = (predict(rewrite(of, schedule), platform, Ecm()) for _ in range(2))
        assert first == again
        assert 0 < float(first.total) < 1e7


def test_an_iteration_touches_what_is_new_and_what_is_read_for_that() -> None:
    """Not all 32 rows of `low` that a row of the output is made of."""
    high = stage("high", "xy", F("low")(x, y - 1) + F("low")(x, y + 1))
    out = stage("out", "xy", F("high")(x, y + 30) + F("low")(x, y))
    of = pipeline("lag", [stage("low", "xy", F("input")(x, y) * 2), high, out], {"out": (256, 64)})
    counts = group(of, ORDERS[0], {"low": Levels(1, 2), "high": Levels(1, 2)}, {"x": 256, "y": 64}, 8, line_bytes=1)
    rows = {"input": 1, "low": 3, "high": 1, "out": 1}
    assert counts.work is not None
    assert counts.work.working[1] == sum(rows.values()) * 256 * 4


def test_an_iteration_touches_what_is_computed_for_a_window_that_slides() -> None:
    """A row of `low` a row of `along`, not the nine that the first row of the output needs."""
    along = stage("along", "xy", F("low")(x - 4, y) + F("low")(x + 4, y))
    out = stage("out", "xy", total([F("along")(x, y + k) for k in range(-4, 5)]))
    of = pipeline("box", [stage("low", "xy", F("input")(x, y) * 2), along, out], {"out": (256, 64)})
    counts = group(of, ORDERS[0], {"low": Levels(1, 1), "along": Levels(1, 2)}, {"x": 256, "y": 64}, 8, line_bytes=1)
    assert counts.work is not None
    low, others = 256 + 8, {"along": 9, "out": 1}
    assert counts.work.working[1] == (2 * low + sum(others.values()) * 256) * 4  # of the input as much as of `low`


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
    assert alone["out"].again is not None
    again, between = alone["out"].again
    box = 100 * (row + pad)
    assert again == pytest.approx(box)
    assert between == pytest.approx(box + (box + 100 * row) / 2, rel=0.1)  # half of what it goes through besides


def test_planes_that_another_stage_has_gone_through_before() -> None:
    """The greatest and the least value of every channel, and then its points: the plane lies in between; of planes of
    another channel nothing is read again."""

    def of(channel: str) -> Pipeline:
        each = "max(a(p, q, c) for q in range(0, 64) for p in range(0, 512))"
        return load({
            "format": 1, "name": "stretched",
            "inputs": [{"name": "a", "type": "float32", "dims": ["x", "y", "c"], "boundary": {"kind": "repeat_edge"}}],
            "stages": [
                {"name": "high", "dims": ["c"], "value": each},
                {"name": "low", "dims": ["c"], "value": each.replace("max", "min")},
                {"name": "out", "dims": ["x", "y", "c"],
                 "value": f"(a(x, y, {channel}) - low(c)) / (high(c) - low(c))"},
            ],
            "outputs": ["out"], "estimates": {"a": [[0, 512], [0, 64], [0, 3]], "out": [[0, 512], [0, 64], [0, 3]]},
        })  # fmt: skip

    def found(channel: str) -> dict[str, Work]:
        order = ("x.inner", "y.inner", "c.inner", "x.outer", "y.outer", "c.outer")
        levels = {"high": Levels(2, 2), "low": Levels(2, 2)}
        return works(of(channel), order, levels, {"x": 512, "y": 64, "c": 3}, 16)

    plane = 64 * 512 * 4
    same, other = found("c"), found("2 - c")
    assert same["high"].again is None
    for name, between in (("low", plane), ("out", 1.5 * plane)):
        again = same[name].again
        assert again is not None
        assert again[0] == pytest.approx(3 * plane, rel=0.1)
        assert again[1] == pytest.approx(between, rel=0.1)
    assert other["low"].again is not None
    assert other["out"].again is None


def test_scans_along_rows_have_what_they_read_of_others_in_blocks_of_rows() -> None:
    """Stages inline in one are computed, too."""
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
    assert {t.way for t in update.transfers} == {"transposed", "alone"}
    assert sum(o.divide for _, o in update.operations) == pytest.approx(1)

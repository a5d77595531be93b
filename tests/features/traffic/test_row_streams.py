"""Streams of memory that rows go along, against walking small loop nests."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest
from support.group_work import ORDERS, works
from support.small_pipelines import F, blur, pipeline, stage, x, y

from tilesmith.cost_models.work import SideBySide, Work
from tilesmith.platforms import catalog
from tilesmith.scheduler.features.groups.execution_mode import Run, Running
from tilesmith.scheduler.features.groups.fusion_group import effective, members_of
from tilesmith.scheduler.features.groups.group_counts import Levels
from tilesmith.scheduler.features.groups.loop_nest import Nest, axis
from tilesmith.scheduler.features.pipeline.pipeline_features import gather
from tilesmith.scheduler.features.schedule_features import counts_of
from tilesmith.scheduler.features.traffic.column_walks import side_by_side
from tilesmith.scheduler.features.work.simd_work import worked_counts
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.rewrites.passes import normalise, rewrite
from tilesmith.scheduler.search import SearchOptions, autoschedule
from tilesmith.scheduler.search.vectorize_and_parallelize import root_schedule


def test_rows_in_tiles_break_off() -> None:
    whole, cut = (
        works(blur(64, 13), ORDERS[0], {"blur_x": Levels(1, 2)}, {"x": n, "y": 13}, 8)["blur_y"] for n in (64, 16)
    )
    assert whole.run_bytes == float("inf")
    assert cut.run_bytes == 16 * 4


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


def test_of_a_row_that_the_loop_around_goes_along_again_nothing_is_asked_for() -> None:
    """Weights of columns, beside an image whose rows are new."""
    weighed = stage("out", "xy", F("input")(x, y) * F("weight")(x))
    of = pipeline("weighed", [stage("weight", "x", F("input")(x, 0) * 2), weighed], {"out": (64, 64)})
    members = members_of(gather(normalise(of)), "out", ("out",))
    found = []
    for loops in (ORDERS[0], ("y.inner", "x.inner", "x.outer", "y.outer")):
        nest = Nest("out", loops, {"x": axis("x", 64, [64]), "y": axis("y", 64, [8])})
        running = Running({"out": Run("x", 16)}, prefetch=4096)
        (only,) = worked_counts(members, effective(members, frozenset()), nest, {}, 1, running).at((0,)).stages
        assert only.work is not None
        found.append(only.work.asked)
    assert found == [1.0, 1.0]


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
    for together, rows in ((1, None), (2, SideBySide((-264, 0, 264, 528), (0, 256), (4,)))):
        reads = effective(members, frozenset(), {"y": together} if together > 1 else {})["out"]
        assert side_by_side(members, reads, Run("x", 8)) == rows


def test_rows_that_are_stored_are_walked_along_with_those_that_are_loaded() -> None:
    """A new row of the image and one of each plane of the output; four times as many where four rows are side by side;
    past the caches those loaded alone."""
    sums = stage("out", "xy", F("input")(x, y - 1) + F("input")(x, y + 1))
    of = pipeline("planes", [replace(sums, values=(sums.values[0], F("input")(x, y).e))], {"out": (256, 64)})
    facts = gather(normalise(of))
    members = members_of(facts, "out", ("out",))
    nest = Nest("out", ORDERS[0], {"x": axis("x", 256, [256]), "y": axis("y", 64, [64])})
    found = []
    for together, past in ((1, False), (4, False), (4, True)):
        reads = effective(members, frozenset(), {"y": together} if together > 1 else {})
        running = Running({"out": Run("x", 8)}, stream=past)
        found.append(worked_counts(members, reads, nest, {}, 1, running).at((0,)).stages[0].work.walked)
    assert found == [1 + 2, 4 + 8, 4]


def test_values_of_a_stage_are_stored_in_images_of_their_own() -> None:
    """Two rows of bytes and of floats, in rows of 64 elements each."""
    document = {
        "format": 1, "name": "two", "inputs": [{"name": "input", "type": "uint8", "dims": ["x", "y"]}],
        "stages": [{"name": "out", "dims": ["x", "y"], "value": ["input(x, y)", "float32(input(x, y))"]}],
        "outputs": ["out"], "estimates": {"out": [[0, 64], [0, 64]]},
    }  # fmt: skip
    members = members_of(gather(normalise(load(document))), "out", ("out",))
    found = side_by_side(members, effective(members, frozenset(), {"y": 2})["out"], Run("x", 8))
    assert found == SideBySide((0, 64), (0, 64, 0, 256), (1, 4))


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

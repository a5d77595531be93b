"""The method `default`: legal, never dearer than the paper's schedule by its own model, and in time."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from math import inf
from types import SimpleNamespace

import pytest
from support.machines import machine
from support.planar import planar
from support.shipped import found as found_for
from support.small_pipelines import chain, pyramid

from benchmarks.documents import pipeline_of
from tilesmith import platforms
from tilesmith.cost_models import Ecm
from tilesmith.platforms import CpuPlatform, catalog
from tilesmith.platforms.base import in_flight_bytes
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.features.schedule_features import predict
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.loop.builder import Builder
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.plan import Plan
from tilesmith.scheduler.ir.schedule.document import from_document, to_document
from tilesmith.scheduler.ir.schedule.schedule import Group, Schedule
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.lowering import lower, row_loops, rows
from tilesmith.scheduler.lowering.expressions import Sources
from tilesmith.scheduler.lowering.rotating_windows import RowLoop, fused_row
from tilesmith.scheduler.rewrites.passes import rewrite
from tilesmith.scheduler.search import SearchOptions, autoschedule, root_schedule
from tilesmith.scheduler.search.constraints.document import load as load_fixed
from tilesmith.scheduler.search.ecm import method, moves, variants
from tilesmith.scheduler.search.ecm.group_candidates import GroupCandidate
from tilesmith.scheduler.search.ecm.moves import ahead_bytes
from tilesmith.scheduler.search.k_best import best_combinations
from tilesmith.scheduler.search.params import PARAMS
from tilesmith.scheduler.search.taco2019.grouping import Segment


def schedule_of(pipeline: Pipeline, **options: object) -> Schedule:
    return autoschedule(pipeline, machine(), SearchOptions("default", **options)).schedule  # type: ignore[arg-type]


def test_partitions_that_are_near_are_worked_out_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Partitions gain by all sizes of tiles, each otherwise: the best with few sizes is not the best with all."""
    platform = catalog.get("i7-6700").model_copy(update={"threads": 1})

    def least(other_partitions: int) -> float:
        monkeypatch.setattr(variants, "PARAMS", replace(PARAMS, other_partitions=other_partitions))
        found = autoschedule(pipeline_of("closing_by_disk"), platform, SearchOptions("default"))
        return float(found.predicted.total)

    assert least(3) < 0.95 * least(0)


@pytest.mark.slow
@pytest.mark.parametrize("name", pipelines.names())
def test_every_candidate_is_legal_and_none_but_the_paper_s_is_before_a_cheaper_one(name: str) -> None:
    pipeline, found = pipelines.load(name), found_for(name)
    plans: dict[object, Plan] = {}  # by all that is rewritten for, as most candidates are of one pipeline
    for schedule in (c.schedule for c in found.candidates):
        asked = replace(schedule, groups=(), degraded=None)
        if asked not in plans:
            plans[asked] = rewrite(pipeline, schedule)
        check(replace(plans[asked], schedule=schedule))
    costs = [float(c.predicted.total) for c in found.candidates]
    assert costs[1:] == pytest.approx(sorted(costs[1:]), rel=1e-9)
    assert costs[0] * PARAMS.paper_gain <= costs[1] * (1 + 1e-9)
    assert len({str(to_document(c.schedule)) for c in found.candidates}) == len(costs) > 1
    assert found.schedule.degraded is None


def test_what_is_computed_in_a_vector_has_its_own_innermost() -> None:
    """Clamped places leave eight columns of `f`, which are next to each other as channels are."""
    window = " + ".join(f"{w} * f(clamp(x + {n}, 2, 9), y + {m})" for m in (0, 1) for n, w in enumerate((1, 3, 2)))
    stages = [
        {
            "name": "f",
            "dims": ["x", "y"],
            "value": "int32(input(clamp(2 * x, 2, 9), y)) - input(clamp(2 * x - 1, 2, 9), y + 1)",
        },
        {"name": "out", "dims": ["x", "y"], "value": window},
    ]
    image = {"name": "input", "type": "uint8", "dims": ["x", "y"]}
    sizes = {"out": [[0, 2500], [0, 450]]}
    pipeline = load(
        {"format": 1, "name": "few", "inputs": [image], "stages": stages, "outputs": ["out"], "estimates": sizes}
    )
    options = SearchOptions("default", top=4, fixed=load_fixed({"f": {"compute": "x.inner"}}, pipeline))
    found = autoschedule(pipeline, machine(threads=8, vector_bytes=32), options).candidates
    for candidate in found:
        check(rewrite(pipeline, candidate.schedule))
    placed = [p for c in found for g in c.schedule.groups for p in g.placements if p.compute == g.loops[0] and p.order]
    assert any(p.stage == "f" and p.vector is not None and p.vector.dim == p.order[0] == "y" for p in placed)


def _but_for_tiles(schedule: Schedule) -> tuple[object, ...]:
    return tuple(replace(g, tiles=()) for g in schedule.groups)


@pytest.mark.parametrize("name", ["interpolate", "local_laplacian", "harris"])
def test_the_best_schedules_are_others_and_not_the_first_with_other_tiles_of_small_groups(name: str) -> None:
    """Tile sizes that the model calls equal are listed where nothing else is left to be."""
    first, *others = found_for(name).candidates
    cost = float(first.predicted.total)
    for other in others[:2]:
        same = _but_for_tiles(other.schedule) == _but_for_tiles(first.schedule)
        assert not same or float(other.predicted.total) > 1.005 * cost


def test_other_groupings_are_among_the_best_schedules() -> None:
    """The Gaussian pyramids of both images are computed ahead, or with the output: it costs nearly the same."""
    found = found_for("pyramid_blend").candidates
    assert len({tuple(g.output for g in c.schedule.groups) for c in found}) > 1
    assert found[0].schedule == schedule_of(pipelines.load("pyramid_blend"))


@pytest.mark.parametrize("name", ["unsharp", "camera_pipe", "bilateral_grid", "laplacian_sharpen"])
def test_what_is_written_past_the_caches_pays(name: str) -> None:
    """By more than a model can tell: who reads it next waits for memory."""
    pipeline = pipelines.load(name)
    schedule = found_for(name).schedule
    through = replace(schedule, groups=tuple(replace(g, stream=False) for g in schedule.groups))
    if through != schedule:
        costs = [float(predict(rewrite(pipeline, s), machine(), Ecm()).total) for s in (schedule, through)]
        assert costs[0] < costs[1] * PARAMS.pays


def _groups_of_sizes(**figures: float) -> list[Group]:
    """The groups of the best candidates for the size of a gradient, on a machine with these figures of time."""
    steps = {
        "along": "(input(x - 1, y) + input(x, y) + input(x + 1, y)) / 3.0",
        "across": "(input(x, y - 1) + input(x, y) + input(x, y + 1)) / 3.0",
        "size": "sqrt(along(x, y) * along(x, y) + across(x, y) * across(x, y))",
    }
    asked = SearchOptions("default", top=8)
    here = machine(llc_bytes=8 << 20)
    here = here.model_copy(update={"ecm": here.ecm_parameters.model_copy(update=figures)})
    found = autoschedule(planar(steps, 2560, 1536), here, asked).candidates
    return [g for c in found for g in c.schedule.groups]


def test_rows_side_by_side_are_not_written_past_the_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each would wait for those before it. One row at a time is written so, where nobody finds it afterwards."""
    monkeypatch.setattr(moves, "PARAMS", replace(PARAMS, rows_pay=inf))
    groups = _groups_of_sizes()
    assert any(g.unroll for g in groups)
    assert any(g.stream for g in groups)
    assert not any(g.unroll and g.stream for g in groups)


def _asking(factor: float, name: str = "i7-6700") -> CpuPlatform:
    """A core whose rows side by side take so many times as long where they are asked for."""
    here = platforms.get(name)
    prefetch = here.core.prefetch.model_copy(update={"asked_rows_factor": factor})
    return here.model_copy(update={"threads": 1, "core": here.core.model_copy(update={"prefetch": prefetch})})


@pytest.mark.parametrize(("factor", "asks"), [(1.0, True), (1.3, False)])
def test_rows_side_by_side_are_asked_for_unless_that_takes_longer(
    factor: float, asks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows side by side are there without requests where hardware follows them."""
    monkeypatch.setattr(moves, "PARAMS", replace(PARAMS, rows_pay=inf))
    found = autoschedule(pipeline_of("motion_blur"), _asking(factor), SearchOptions("default", top=8)).candidates
    groups = [g for c in found for g in c.schedule.groups]
    assert any(g.unroll for g in groups)
    assert any(g.unroll and g.prefetch for g in groups) == asks


@pytest.mark.parametrize(("factor", "asks"), [(1.0, True), (1.3, False)])
def test_what_the_last_level_has_is_asked_for_unless_that_takes_longer(factor: float, asks: bool) -> None:
    """Two images of 4 MB in a level of 32."""
    here = _asking(factor, "epyc-9655")
    groups = autoschedule(pipeline_of("erode_bytes"), here, SearchOptions("default")).schedule.groups
    assert any(g.prefetch for g in groups) == asks


@pytest.mark.parametrize(("factor", "asks"), [(1.0, True), (1.3, False)])
@pytest.mark.parametrize(("name", "machine_name"), [("median_of_frames", "i7-6700"), ("frame_difference", "epyc-9655")])
def test_rows_that_hardware_brings_as_well_are_not_asked_for(
    name: str, machine_name: str, factor: float, asks: bool
) -> None:
    """Five images side by side; and 12 MB that are read in order, in a level of 32."""
    here = _asking(factor, machine_name)
    groups = autoschedule(pipeline_of(name), here, SearchOptions("default")).schedule.groups
    assert any(g.prefetch for g in groups) == asks


@pytest.mark.parametrize(("name", "asks"), [("opening", False), ("max_pool", True)])
def test_what_the_last_level_may_have_is_asked_for_where_it_is_not_read_in_order(name: str, asks: bool) -> None:
    """15 MB in a level of 48, element after element and every other one."""
    here = _asking(1.3, "epyc-9655")
    *inner, last = here.caches
    here = here.model_copy(update={"caches": (*inner, last.model_copy(update={"size_bytes": 48 << 20}))})
    groups = autoschedule(pipeline_of(name), here, SearchOptions("default")).schedule.groups
    assert any(g.prefetch for g in groups) == asks


def test_nothing_is_written_past_the_caches_where_copies_do_not_gain_by_it() -> None:
    """Streaming stores save in the caches what is part of the time of a copy."""
    assert not any(g.stream for g in _groups_of_sizes(streaming_store_factor=2.0, write_allocate_factor=2.0))


def test_rows_are_side_by_side_only_where_that_pays() -> None:
    """Here they save less than a model can tell."""
    assert not any(g.unroll for g in _groups_of_sizes())


@pytest.mark.parametrize("name", ["harris", "unsharp", "interpolate"])
def test_where_too_little_is_gained_the_schedule_is_that_of_the_paper(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever gains less than all; cheaper ones are still listed."""
    monkeypatch.setattr(method, "PARAMS", replace(PARAMS, paper_gain=1e-9))
    found = autoschedule(pipelines.load(name), machine(), SearchOptions("default", top=3))
    of_paper = autoschedule(pipelines.load(name), machine(), SearchOptions("taco2019"))
    assert found.schedule.groups == of_paper.schedule.groups
    assert any(c.predicted.total < found.predicted.total for c in found.candidates[1:])


@pytest.mark.parametrize(("hidden", "left"), [(0.95, True), (0.75, False)])
def test_the_schedule_of_the_paper_is_left_for_what_gains_more_than_a_model_cannot_tell(
    hidden: float, left: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three percent are taken, by prefetches alone as these are; two, where these hide less, are not."""
    platform = catalog.load("i7-6700")
    parameters = platform.ecm_parameters.model_copy(update={"memory_hidden_share_prefetched": hidden})

    def predicted(gain: float) -> float:
        monkeypatch.setattr(method, "PARAMS", replace(PARAMS, paper_gain=gain))
        here = platform.model_copy(update={"ecm": parameters})
        return float(autoschedule(pipelines.load("blur"), here).predicted.total)

    cheapest, papers, chosen = predicted(1.0), predicted(1e-9), predicted(PARAMS.paper_gain)
    assert cheapest < 0.97 * papers if left else 0.97 * papers < cheapest < papers
    assert chosen == (cheapest if left else papers)


def test_a_step_of_a_window_whose_planes_would_wait_is_computed_again_for_each_row() -> None:
    """Rows of a volume are short, and of a step that slides from plane to plane all of a plane is done before others:
    vector by vector, in the loop of the output, it costs less."""
    platform = catalog.load("i7-6700").model_copy(update={"threads": 1})
    (group,) = autoschedule(pipeline_of("sobel_3d"), platform).schedule.groups
    kept = {p.stage: p for p in group.placements if p.compute != "inline"}
    assert {p.compute for p in kept.values()} == {"x.inner"}
    assert kept["gz_y"].storage == "registers"


def test_the_schedule_of_the_paper_is_left_for_prefetches_alone() -> None:
    """Prefetches are all that one stage without windows gains, as its vectors are no lines: they reach as far along the
    row as memory has bytes on their way at once."""
    pipeline, platform = planar({"curve": "sqrt(input(x, y)) / 3.0"}, 2560, 1536), machine(vector_bytes=32, threads=1)
    found = autoschedule(pipeline, platform, SearchOptions("default", top=8))
    (paper,) = autoschedule(pipeline, platform, SearchOptions("taco2019")).schedule.groups
    (asking,) = found.schedule.groups
    assert asking == replace(paper, prefetch=ahead_bytes(platform))
    assert in_flight_bytes(platform) <= asking.prefetch < 2 * in_flight_bytes(platform)


@pytest.mark.parametrize(("planes", "asks"), [(8, False), (60, True)])
def test_rows_of_more_planes_than_hardware_follows_are_asked_for(planes: int, asks: bool) -> None:
    """Whatever else the schedule of the paper does: the second level holds what all of them ask for."""
    document = {
        "format": 1,
        "name": "planes",
        "inputs": [{"name": "volume", "type": "int16", "dims": ["c", "x", "y", "z"]}],
        "stages": [
            {
                "name": "best",
                "dims": ["x", "y"],
                "value": f"max(volume(0, x, y, r) // 2 + volume(2, x, y, r) // 2 for r in range({planes}))",
            }
        ],
        "outputs": ["best"],
        "estimates": {"volume": [[0, 3], [0, 640], [0, 480], [0, planes]], "best": [[0, 640], [0, 480]]},
    }
    platform = machine(vector_bytes=64, threads=1)
    (group,) = autoschedule(load(document), platform).schedule.groups
    assert (group.prefetch > 0) == asks
    if asks:
        assert planes * group.prefetch <= platform.l2_bytes / 2


@pytest.mark.parametrize(("least", "gains"), [(96.9, True), (97.1, False), (100.0, False)])
def test_the_schedule_of_the_paper_is_left_for_what_gains_three_percent(least: float, gains: bool) -> None:
    search = SimpleNamespace(paper_cost=lambda _, most: 100.0 if most >= 100.0 else inf)
    as_paper = SimpleNamespace(search=search, partition=None)
    found = [(least, 0, ()), (99.0, 1, ())]
    assert method._gaining(found, as_paper) == (found[0] if gains else None)  # type: ignore[arg-type]


def test_as_many_schedules_are_listed_as_are_wanted() -> None:
    found = autoschedule(pipelines.load("interpolate"), machine(), SearchOptions("default", top=40)).candidates
    assert len(found) == len({str(to_document(c.schedule)) for c in found}) == 40


def test_a_scan_is_computed_in_rows_of_its_levels_and_tables_of_it_where_they_are_read() -> None:
    """Of the heights of a place a point reads most twice, and the highest at seven places next to each other. Where the
    core looks ahead far enough for such long steps."""
    parameters = machine().ecm_parameters.model_copy(update={"window_instructions": 400.0})
    platform = machine().model_copy(update={"ecm": parameters})
    found = autoschedule(pipelines.load("max_filter"), platform, SearchOptions("default"))
    group = found.schedule.groups[-1]
    scan, table, highest = map(group.placement, ("vert_log_5", "vert_18", "vert_27"))
    assert scan is not None
    assert table is not None
    assert highest is not None
    assert (scan.compute, scan.store, scan.storage) == ("x.inner", "c.inner", "memory")
    assert table.compute == "inline"
    assert (highest.compute, highest.storage) == ("x.inner", "registers")


def test_of_a_stage_in_several_groups_one_keeps_its_own() -> None:
    """`gaussian_1` reads each value of `gaussian_0`, found in a table, at two places; the output at one."""
    found = {g.output: g.placement("gaussian_0") for g in found_for("local_laplacian").schedule.groups}
    assert {output: p.compute for output, p in found.items() if p is not None} == {
        "gaussian_1": "y.inner",
        "output": "inline",
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", ["harris", "interpolate", "camera_pipe"])
def test_the_same_question_has_the_same_answer(name: str) -> None:
    again = autoschedule(pipelines.load(name), machine(), SearchOptions("default", top=6))
    assert again.candidates == found_for(name).candidates


def test_a_deadline_ends_the_search_with_the_best_so_far() -> None:
    for ms in (0, 3, 30):
        ticks = count()
        schedule = schedule_of(pyramid(), deadline_ms=ms, now=lambda ticks=ticks: next(ticks) * 1e-3)
        check(rewrite(pyramid(), schedule))
        assert f"the deadline of {ms} ms" in (schedule.degraded or "")
    roots = root_schedule(pyramid(), machine())
    assert len(schedule_of(pyramid(), deadline_ms=0, now=lambda: 0.0).groups) == len(roots.groups)
    assert len(schedule_of(pyramid()).groups) < len(roots.groups)


@pytest.mark.slow
def test_long_chains_are_planned_with_effort_in_proportion() -> None:
    """Every plan is of at most so many stages, and there are at most so many plans a stage."""
    pipeline = chain(300)
    schedule = schedule_of(pipeline)
    check(rewrite(pipeline, schedule))
    assert len(schedule.groups) < 30


def test_the_best_k_are_in_order_and_differ() -> None:
    def plans(*totals: float) -> tuple[GroupCandidate, ...]:
        return tuple(GroupCandidate(Segment("s", ("s",)), t) for t in totals)

    choices = [plans(1.0, 2.0, 9.0), plans(10.0, 10.5), plans(100.0)]
    found = [tuple(p.total for p in taken) for taken in best_combinations(choices, 5)]
    assert found == [(1, 10, 100), (1, 10.5, 100), (2, 10, 100), (2, 10.5, 100), (9, 10, 100)]
    assert len(list(best_combinations(choices, 100))) == 6


@pytest.mark.parametrize("l2_bytes", [0, 1 << 30])
def test_what_is_asked_for_ahead_waits_in_any_cache(l2_bytes: int) -> None:
    """Not at all, or no further than a schedule may say."""
    here = machine()
    caches = [c.model_copy(update={"size_bytes": l2_bytes}) if c.level >= 2 and l2_bytes else c for c in here.caches]
    platform = here.model_copy(update={"caches": tuple(c for c in caches if l2_bytes or c.level == 1)})
    found = autoschedule(pipelines.load("machado_blur"), platform, SearchOptions("default"))
    assert from_document(to_document(found.schedule)) == found.schedule
    assert ahead_bytes(platform) <= 65536


WINGS = ("w(x, 4 * y) + w(x, 4 * y + 1)", "w(x, 4 * y + 2) - w(x, 4 * y + 3)")
BUTTERFLY = {
    "w": "sqrt(input(x, y) + input(x + 1, y))",
    "a": WINGS[0],
    "b": WINGS[1],
    "c": "mux(y % 2, a(x, y // 4), b(x, y // 4))",
    "out": "sqrt(c(x - 1, y - 1) + c(x + 1, y + 1) + c(x, y)) + sqrt(c(x - 2, y) + c(x + 2, y))",
}


def channels() -> Pipeline:
    """Sharpened where a channel is bright, and blurred: two channels, unrolled inside of the row."""
    stages = {
        "smooth": "sum(a(x + i, y + j, c) for j in range(-1, 2) for i in range(-1, 2)) * 0.1",
        "gauss": "(smooth(x, y - 1, c) + smooth(x, y, c) * 2.0 + smooth(x, y + 1, c)) * 0.25",
        "sharp": "clamp(smooth(x, y, c) * 1.5 - (gauss(x - 1, y, c) + gauss(x + 1, y, c)) * 0.25, 0.0, 1.0)",
        "mask": "clamp((max(sharp(x, y, 0), sharp(x, y, 1)) - 0.4) * 4.0, 0.0, 1.0)",
        "masked": "lerp(sharp(x, y, c), a(x, y, c), mask(x, y))",
        "box_x": "sum(masked(x + i, y, c) for i in range(-4, 5))",
        "out": "sum(box_x(x, y + j, c) for j in range(-4, 5))",
    }
    dims = {name: ["x", "y"] if name == "mask" else ["x", "y", "c"] for name in stages}
    document = {
        "format": 1, "name": "channels",
        "inputs": [{"name": "a", "type": "float32", "dims": ["x", "y", "c"], "boundary": {"kind": "repeat_edge"}}],
        "stages": [{"name": n, "dims": dims[n], "value": v} for n, v in stages.items()],
        "outputs": ["out"], "estimates": {"out": [[0, 1280], [0, 720], [0, 2]]},
    }  # fmt: skip
    return load(document)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["butterfly", "channels", "interpolate", "pyramid_blend", "harris"])
def test_rows_are_fused_as_they_are_priced(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The code computes a ring apart, and registers anew, where several of the ring's rows are new in an iteration, or
    none: no schedule that is found asks for that."""
    written = {"butterfly": lambda: planar(BUTTERFLY, 2048, 2048), "channels": channels}
    pipeline = written[name]() if name in written else pipelines.load(name)
    fused = []

    def counted(b: Builder, sources: Sources, row: RowLoop) -> None:
        fused.append(row)
        fused_row(b, sources, row)

    def apart(*_: object) -> None:
        pytest.fail("a ring is computed apart")

    monkeypatch.setattr(rows, "fused_row", counted)
    found = row_loops._single_row
    monkeypatch.setattr(row_loops, "_single_row", lambda *a: found(*a) or apart())
    asked = found_for(name) if name not in written else autoschedule(pipeline, machine(), SearchOptions(top=4))
    for c in asked.candidates[:4]:
        lower(c.plan, machine())
    assert fused or name != "harris"  # where nothing is fused nothing can be apart


def test_what_is_read_where_data_says_is_not_in_registers() -> None:
    """Registers hold no rows of all bins: the columns of a grid would be computed anew for each bin that is read."""
    index = "clamp(int32(image(x, y) * 8.0), 0, 7)"
    along = "lerp(grid(x // 16, v, k), grid(x // 16 + 1, v, k), float32(x % 16) / 16.0)"
    document = {
        "format": 1, "name": "sliced",
        "inputs": [
            {"name": "grid", "type": "float32", "dims": ["u", "v", "k"]},
            {"name": "image", "type": "float32", "dims": ["x", "y"]},
        ],
        "stages": [
            {"name": "columns", "dims": ["x", "v", "k"], "value": along},
            {"name": "rows", "dims": ["x", "y", "k"],
             "value": "lerp(columns(x, y // 16, k), columns(x, y // 16 + 1, k), float32(y % 16) / 16.0)"},
            {"name": "sliced", "dims": ["x", "y"], "value": f"rows(x, y, {index}) + rows(x, y, {index} + 1)"},
        ],
        "outputs": ["sliced"], "estimates": {"sliced": [[0, 1920], [0, 1080]]},
    }  # fmt: skip
    found = autoschedule(load(document), machine(), SearchOptions("default", top=20)).candidates
    held = {p.stage for c in found for g in c.schedule.groups for p in g.placements if p.storage == "registers"}
    assert held.isdisjoint({"columns", "rows"})


@pytest.mark.parametrize(("size", "most"), [(2000, 1024), (2048, 64)])
def test_a_transposition_has_tiles_in_both_dims(size: int, most: int) -> None:
    """The rows that vectors read across stay in the second cache, with their pages; of rows that share few sets of
    caches these are not many."""
    document = {
        "format": 1, "name": "transpose", "inputs": [{"name": "a", "type": "float32", "dims": ["x", "y"]}],
        "stages": [{"name": "t", "dims": ["x", "y"], "value": "a(y, x) * 0.5"}], "outputs": ["t"],
        "estimates": {"t": [[0, size], [0, size]]},
    }  # fmt: skip
    (group,) = schedule_of(load(document)).groups
    sizes = {tile.dim: tile.size for tile in group.tiles}
    assert sizes["x"] in range(1, most + 1)
    assert sizes["y"] in range(1, size)


def test_where_work_items_share_a_row_no_window_rotates_in_registers() -> None:
    device = platforms.get("nvidia-a100")
    assert device.work_items > 1
    found = autoschedule(pipelines.load("harris"), device, SearchOptions("default")).schedule
    assert not any(p.storage == "registers" for g in found.groups for p in g.placements)
    mine = found_for("harris").schedule
    assert any(p.storage == "registers" for g in mine.groups for p in g.placements)


@pytest.mark.parametrize(("points", "lanes"), [(4, 8), (16, 16), (32, 32)])
def test_vectors_hold_all_that_stages_in_registers_permute(points: int, lanes: int) -> None:
    """Butterflies of so many points, on a machine of eight lanes: vectors of registers side by side."""
    stages, before, half = [], "image", 1
    while half < points:
        place = f"x // {2 * half} * {2 * half} + (x + {half}) % {2 * half}"
        value = f"{before}({place}, y) + select(x % {2 * half} < {half}, 1.0, -1.0) * {before}(x, y)"
        stages.append({"name": f"h{half}", "dims": ["x", "y"], "value": value})
        before, half = f"h{half}", 2 * half
    document = {
        "format": 1,
        "name": "butterflies",
        "inputs": [{"name": "image", "type": "float32", "dims": ["x", "y"]}],
        "stages": stages,
        "outputs": [before],
        "estimates": {before: [[0, 1536], [0, 1024]]},
    }
    (group,) = autoschedule(load(document), machine(vector_bytes=32), SearchOptions("default")).schedule.groups
    kept = [p for p in group.placements if p.storage == "registers"]
    assert kept
    assert {p.vector.lanes for p in (group, *kept) if p.vector is not None} == {lanes}


@pytest.mark.parametrize(
    ("value", "dims", "lanes"),
    [
        ("log(exp(input(x, y)) + exp(1.0 - input(x, y)))", ["x", "y"], 16),  # two registers
        ("log(exp(input(x, y, c)) + exp(1.0 - input(x, y, c)))", ["c", "x", "y"], 8),  # three points side by side
        ("input(x, y) + input(x + 1, y) + input(x + 2, y)", ["x", "y"], 8),  # loads take longer
    ],
)
def test_steps_that_wait_for_themselves_have_two_vectors(value: str, dims: list[str], lanes: int) -> None:
    sizes = {"c": 3, "x": 1920, "y": 1080}
    image = {"name": "input", "type": "float32", "dims": sorted(dims, key=["x", "y", "c"].index), "storage": dims}
    stage = {"name": "out", "dims": image["dims"], "storage": dims, "value": value}
    estimates = {"out": [[0, sizes[d]] for d in image["dims"]]}
    pipeline = load(
        {"format": 1, "name": "p", "inputs": [image], "stages": [stage], "outputs": ["out"], "estimates": estimates}
    )
    found = autoschedule(pipeline, machine(vector_bytes=32), SearchOptions("default"))
    (group,) = found.schedule.groups
    assert group.vector is not None
    assert group.vector.lanes == lanes


def test_strips_along_memory_are_whole_lines() -> None:
    """96 means in a few strips for each thread: 12 are no whole vectors, and threads write to the same line."""
    of = load(
        {
            "format": 1,
            "name": "means",
            "inputs": [{"name": "input", "type": "float32", "dims": ["x", "y", "c"]}],
            "stages": [
                {
                    "name": "mean",
                    "dims": ["c"],
                    "value": "sum(input(p, q, c) for q in range(0, 56) for p in range(0, 56)) / 3136.0",
                }
            ],
            "outputs": ["mean"],
            "estimates": {"mean": [[0, 96]], "input": [[0, 56], [0, 56], [0, 96]]},
        }
    )
    platform = machine().model_copy(update={"threads": 2})
    (group,) = autoschedule(of, platform, SearchOptions("default")).schedule.groups
    assert group.parallel == "c.outer"
    assert [t.size for t in group.tiles if t.size is not None and t.size % (platform.line_bytes // 4)] == []

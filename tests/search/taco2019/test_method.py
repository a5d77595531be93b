"""The method of TACO 2019, decision for decision."""

from itertools import count

import pytest
from support.machines import KIB, MIB, machine
from support.methods import PAPER
from support.small_pipelines import (
    E,
    F,
    blur,
    c,
    chain,
    clamp,
    exp,
    harris,
    pipeline,
    pyramid,
    stage,
    summed,
    total,
    unsharp,
    x,
    y,
)

from tilesmith.scheduler import pipelines
from tilesmith.scheduler.errors import ScheduleError
from tilesmith.scheduler.features.groups.fusion_group import Members, effective, members_of
from tilesmith.scheduler.features.groups.group_counts import Levels
from tilesmith.scheduler.features.pipeline.pipeline_features import gather
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pipeline.expressions import Cast, Const, RVar, Var
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline, Update
from tilesmith.scheduler.ir.pipeline.types import FLOAT32, INT32, UINT8, UINT16
from tilesmith.scheduler.ir.schedule.schedule import INLINE, Group, Placement, Schedule, Tile, UpdateLoops, Vector
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.rewrites.passes import normalise, rewrite
from tilesmith.scheduler.search import Infeasible, SearchOptions, autoschedule, root_schedule
from tilesmith.scheduler.search.taco2019.inlining import inline_trivial
from tilesmith.scheduler.search.taco2019.levels import LoopOrder, choose_levels, largest_overlaps
from tilesmith.scheduler.search.taco2019.tiling import few_iterations, orders, tiled_dims
from tilesmith.scheduler.search.tile_sizes import tile_sizes

ROWS = LoopOrder(("x.inner", "y.inner", "x.outer", "y.outer"), 0)
COLUMNS = LoopOrder(("y.inner", "x.inner", "y.outer", "x.outer"), 0)
SLIDING = ("y.inner", "x.outer")


def _whole(of: Pipeline) -> Members:
    facts = gather(normalise(of))
    return members_of(facts, of.outputs[0], facts.graph.stages)


def _schedule(of: Pipeline, **figures: object) -> Schedule:
    result = autoschedule(of, machine(**figures), PAPER)
    check(rewrite(of, result.schedule))
    return result.schedule


def _levels(group: Group) -> dict[str, tuple[str, str]]:
    return {p.stage: (p.compute, p.store) for p in group.placements if p.compute != INLINE}


def test_alg_1_slides_blur_along_rows() -> None:
    assert choose_levels(_whole(blur()), ROWS)["blur_x"].levels == Levels(1, 2)


def test_alg_1_moves_out_of_the_innermost_loop() -> None:
    assert choose_levels(_whole(blur()), COLUMNS)["blur_x"].levels == Levels(1, 1)


def test_alg_1_inlines_without_overlap() -> None:
    choices = choose_levels(_whole(harris()), ROWS)
    inlined = {name for name, c in choices.items() if c.levels is None}
    assert inlined == {"Ix", "Iy", "Sxx", "Syy", "Sxy", "det", "trace"}
    assert choices["gray"].levels == choices["Ixx"].levels == Levels(1, 2)


@pytest.mark.parametrize("name", ["harris", "unsharp", "local_laplacian"])
def test_alg_1_chooses_the_same_in_a_group_alone_as_after_others(name: str) -> None:
    """Choices are kept for all groups of a pipeline in which those of a stage's readers are the same."""
    of = normalise(pipelines.load(name))
    shared, output = gather(of), of.outputs[0]
    names, consumers, stage = shared.graph.stages, shared.graph.consumers, shared.stages[output]
    listed = orders(stage, tiled_dims(stage), few_iterations(stage), ())
    for without in names[:: max(1, len(names) // 8)]:
        inside = {output}
        for n in reversed(names):
            if n != without and not inside.isdisjoint(consumers[n]):
                inside.add(n)
        group = tuple(n for n in names if n in inside)
        for order in (listed[0], listed[-1]):
            alone = choose_levels(members_of(gather(of), output, group), order)
            assert choose_levels(members_of(shared, output, group), order) == alone


def test_alg_1_follows_dims_by_any_name() -> None:
    a, b = F("a"), F("b")
    turned = [
        stage("a", "xy", F("input")(x, y) * 2.0 + 1.0),
        stage("b", "xy", a(x, y - 1) * 0.5 + a(x, y + 1) * 0.3),
        stage("out", "yx", b(x, y)),
    ]
    members = _whole(pipeline("turned", turned, {"out": (64, 64)}))
    assert members.followed("a", "y") == "y"
    order = LoopOrder(("y.inner", "x.inner", "y.outer", "x.outer"), 0)
    assert choose_levels(members, order)["a"].levels == Levels(1, 1)


def test_alg_1_at_the_innermost_loop_where_the_reuse_is_in_none_of_the_group() -> None:
    cost = F("cost")
    r = F("g")
    window = stage("cost", "xk", total([r(x, _k() - 1) * 0.3, r(x, _k()) * 0.4, r(x, _k() + 1) * 0.3]))
    best = stage("out", "x", summed(cost(x, _k("r")) * 2.0, r=(0, 9)))
    members = _whole(
        pipeline("disparity", [stage("g", "xk", F("input")(x, _k()) * 2.0 + 1.0), window, best], {"out": (64,)})
    )
    order = LoopOrder(("x.inner", "x.outer"), 0)
    assert members.followed("cost", "k") is None
    assert choose_levels(members, order)["g"].levels == Levels(0, 0)


def _k(name: str = "k") -> E:
    return E(Var(name))


def test_alg_1_takes_what_stands_still_one_loop_further_out() -> None:
    choices = choose_levels(_whole(unsharp()), LoopOrder(("c.inner", *ROWS.loops), 1))
    assert choices["kernel"].levels == Levels(3, 3)
    assert choices["ratio"].levels == Levels(2, 2)


def test_alg_1_keeps_producers_outside_their_consumers() -> None:
    row, table = F("row"), F("table")
    stages = [
        stage("row", "x", F("input")(x, 0) * 3.0 + 1.0),
        stage("table", "x", row(x - 1) * 0.5 + row(x + 1) * 0.25),
        stage("out", "xy", (table(0) + table(9)) * F("input")(x, y)),
    ]
    choices = choose_levels(_whole(pipeline("outside", stages, {"out": (64, 64)})), ROWS)
    assert choices["table"].levels == Levels(2, 2)
    assert choices["row"].levels == Levels(2, 2)
    assert "moved out to its consumer table" in choices["row"].reason


def test_alg_2_inlines_the_trivial_and_hands_levels_down() -> None:
    members = _whole(harris())
    choices = inline_trivial(members, choose_levels(members, ROWS), ROWS)
    real = {name for name, c in choices.items() if c.levels is not None}
    assert real == {"gray", "Ix", "Iy"}
    assert choices["Ix"].levels == choices["Iy"].levels == Levels(1, 2)
    assert choices["Ix"].source == "TACO 2019, Alg. 2"


def test_alg_2_does_not_pile_up_trivial_stages() -> None:
    stages, source = [], F("input")
    for n in range(6):
        stages.append(stage(f"b{n}", "xy", total([source(x, y + b) for b in (-1, 0, 1)])))
        source = F(f"b{n}")
    members = _whole(pipeline("boxes", stages, {"b5": (256, 256)}))
    choices = inline_trivial(members, choose_levels(members, ROWS), ROWS)
    inlined = frozenset(name for name, c in choices.items() if c.levels is None)
    assert inlined == {"b4", "b2", "b0"}
    for found in effective(members, inlined).values():
        assert all(n <= 9 for n in found.inlined.values())


def test_weights_in_a_stage_do_not_make_a_convolution_trivial() -> None:
    members = _whole(unsharp())
    order = LoopOrder(("c.inner", *ROWS.loops), 1)
    assert inline_trivial(members, choose_levels(members, order), order)["blur_y"].levels == Levels(2, 2)


def test_inlined_work_is_counted_once_a_distinct_position() -> None:
    stages = [stage("s0", "xy", exp(F("input")(x, y)))]
    for n in range(1, 40):  # 2^39 paths from the last to the first
        before = F(f"s{n - 1}")(x, y)
        stages.append(stage(f"s{n}", "xy", exp(before) * before))
    members = _whole(pipeline("diamonds", stages, {"s39": (64, 64)}))
    found = effective(members, frozenset(members.names[:-1]))["s39"]
    assert set(found.inlined.values()) == {1}


def test_eq_15_is_the_largest_overlap_along_a_dim() -> None:
    assert largest_overlaps(_whole(unsharp())) == {"x": 6, "y": 6, "c": 0}


def test_tile_sizes() -> None:
    assert tile_sizes(10, 1, 1, 100) == (10, 5, 4, 3, 2, 1)
    assert tile_sizes(10, 1, 3, 100) == (10, 5, 4, 3)
    assert tile_sizes(100, 16, 1, 100) == (100, 64, 48, 32, 16)
    assert tile_sizes(8, 16, 1, 100) == (8,)
    sizes = tile_sizes(2560, 1, 1, 1000)
    assert {-(-2560 // n) for n in sizes} == {-(-2560 // n) for n in range(1, 2561)}
    assert len(tile_sizes(100_000, 1, 1, 30)) <= 30
    assert tile_sizes(100_000, 1, 1, 30)[0] == 100_000


def test_loops_of_few_iterations() -> None:
    def few(dims: str, *extents: int) -> tuple[str, ...]:
        f = stage("f", dims, F("input")(0))
        return few_iterations(gather(normalise(pipeline("p", [f], {"f": extents}, {"input": "x"}))).stages["f"])

    assert few("xyc", 640, 480, 3) == ("c",)
    assert few("cxy", 3, 640, 480) == ("c",)  # channels side by side, in a row of places
    assert few("cxy", 5, 640, 480) == ()  # too many for that: the fastest in memory
    assert few("cx", 3, 640) == ("c",)
    assert few("xyc", 3, 5, 4) == ("c",)  # one of them stays a loop
    assert few("xyck", 640, 480, 4, 5) == ("c",)  # 20 iterations together would be too many
    assert few("xy", 640, 3) == ()
    assert few("x", 3) == ()


def test_vectors_run_along_the_places_of_channels_side_by_side() -> None:
    """An image of RGB as most libraries have it: the channels of a place follow each other in memory."""
    value = (F("input")(x, y, c) + F("input")(x + 1, y, c)) * 0.5
    smooth = stage("smooth", "cxy", value)
    group = _schedule(pipeline("p", [smooth], {"smooth": (3, 640, 480)}, {"input": "xyc"})).groups[0]
    assert group.vector is not None
    assert (group.loops[:2], group.vector.dim, group.unroll) == (("c.inner", "x.inner"), "x", ("c",))


def test_channels_that_share_nothing_are_loops_outside_of_the_others() -> None:
    f, table = F("f"), F("table")
    wide = stage("f", "xyc", F("input")(x, y - 1, c) * 0.5 + F("input")(x, y + 1, c) * 0.3)

    def found(value: E) -> tuple[tuple[str, ...], tuple[str, ...]]:
        stages = [stage("table", "x", F("input")(x, 0, 0)), wide, stage("out", "xyc", value)]
        group = _schedule(pipeline("p", stages, {"out": (640, 480, 3)}, {"input": "xyc"})).groups[-1]
        return group.loops, group.unroll

    column = f(x, y - 1, c) + f(x, y + 1, c) * 0.5
    outside = ("x.inner", "y.inner", "c.inner", "x.outer", "y.outer")
    assert found(column) == (outside, ())
    assert found(column * summed(table(_k("r")), r=(0, 9))) == (outside, ())
    assert found(column * F("input")(x, y, 0)) == (("c.inner", *ROWS.loops), ("c",))
    assert found(column * f(x, y, 0)) == (("c.inner", *ROWS.loops), ("c",))
    assert found(column + f(x, y, c + 1)) == (("c.inner", *ROWS.loops), ("c",))


def test_blur() -> None:
    (group,) = _schedule(blur()).groups
    assert _levels(group) == {"blur_x": SLIDING}
    assert group.loops == ROWS.loops
    assert group.tiles == (Tile("x", None), Tile("y", 1280))
    assert (group.parallel, group.vector) == ("y.outer", Vector("x", 16))
    assert group.placements[0].fold
    assert group.placements[0].order == ("x", "y")


def test_harris() -> None:
    (group,) = _schedule(harris()).groups
    assert _levels(group) == {"gray": SLIDING, "Ix": SLIDING, "Iy": SLIDING}
    assert group.tiles == (Tile("x", None), Tile("y", 1277))


def test_unsharp() -> None:
    (group,) = _schedule(unsharp()).groups
    row = ("y.inner", "y.inner")
    assert _levels(group) == {"kernel": ("x.outer", "x.outer"), "gray": SLIDING, "blur_y": row, "ratio": row}
    assert group.loops == ("c.inner", *ROWS.loops)
    assert group.unroll == ("c",)
    assert group.tiles == (Tile("x", None), Tile("y", 1280))


def test_a_pyramid_does_not_fit_and_is_split_at_shared_stages() -> None:
    result = autoschedule(pyramid(), machine(), PAPER)
    check(rewrite(pyramid(), result.schedule))
    assert result.schedule.degraded is None
    groups = result.schedule.groups
    assert [g.output for g in groups] == [*(f"down{n}" for n in range(1, 9)), "normalized"]
    for group in groups[:-1]:
        shares = group.output == "down1"  # alpha, through down0
        assert _levels(group) == {f"downx{group.output[4:]}": SLIDING if shares else ("y.inner", "c.inner")}
    assert [g.output for g in groups if g.placement("down0")] == ["down1", "normalized"]  # trivial: inline in both
    split = next(d for d in result.trace.decisions if d.kind == "split")
    assert split.source == "TACO 2019, Alg. 4"
    assert "last-level cache" in split.rejected[0].reason


@pytest.mark.parametrize(
    "name", ["blur", "harris", "unsharp", "interpolate", "gaussian3x3", "sobel", "laplacian_sharpen"]
)
def test_shipped_pipelines_have_legal_schedules_on_many_machines(name: str) -> None:
    of = pipelines.load(name)
    for figures in (
        {},
        {"threads": 5},
        {"vector_bytes": 0},
        {"l2_bytes": 64 * KIB, "llc_bytes": MIB},
        {"prefetcher": False},
    ):
        schedule = _schedule(of, **figures)
        assert schedule.degraded is None
        for group in schedule.groups:
            if figures.get("vector_bytes") == 0:
                assert group.vector is None


def test_alg_5_cuts_a_chain_that_does_not_fit() -> None:
    result = autoschedule(chain(12), machine(llc_bytes=16 * KIB, l2_bytes=8 * KIB), PAPER)
    check(rewrite(chain(12), result.schedule))
    assert result.schedule.degraded is None
    groups = [(len(g.placements) + 1, g.output) for g in result.schedule.groups]
    assert sum(n for n, _ in groups) == 12
    assert 1 < len(groups) < 12
    split = next(d for d in result.trace.decisions if d.source == "TACO 2019, Alg. 5")
    assert all(r.cost is None or r.cost >= split.cost for r in split.rejected)


def test_alg_5_cuts_a_segment_with_a_shared_stage_inline() -> None:
    stages = [stage("shared", "xy", F("input")(x, y) * F("input")(x, y))]
    ends = []
    for side in "ab":
        source = F("shared")
        for n in range(8):
            terms = [source(x + i, y + j) * (i + j + 1.0) for i in range(3) for j in range(3)]
            stages.append(stage(f"{side}{n}", "xy", total(terms)))
            source = F(f"{side}{n}")
        ends.append(source)
    stages.append(stage("out", "xy", ends[0](x, y) + ends[1](x, y)))
    schedule = _schedule(pipeline("two_ways", stages, {"out": (1536, 2560)}), llc_bytes=12 * KIB, l2_bytes=8 * KIB)
    assert schedule.degraded is None
    assert len(schedule.groups) > 2
    assert len([g for g in schedule.groups if g.placement("shared")]) > 1


def test_a_long_chain_is_one_group_or_cut_without_blowing_up() -> None:
    assert len(_schedule(chain(60)).groups) == 1
    assert len(_schedule(chain(60), llc_bytes=256 * KIB, l2_bytes=64 * KIB).groups) > 1


def test_more_threads_make_more_strips() -> None:
    (group,) = _schedule(blur(), threads=8).groups
    assert group.tile("y") == Tile("y", 320)


def test_without_a_prefetcher_points_are_loaded() -> None:
    (group,) = _schedule(blur(), prefetcher=False).groups
    assert _levels(group) == {"blur_x": SLIDING}


def test_small_caches_tile_columns() -> None:
    (group,) = _schedule(blur(1 << 20, 256), l2_bytes=64 * KIB, llc_bytes=MIB).groups
    size = group.tile("x").size
    assert size is not None
    assert 3 * size * 4 <= MIB
    assert size % 16 == 0


@pytest.mark.parametrize(("type", "lanes"), [(UINT8, 64), (UINT16, 32), (FLOAT32, 16)], ids=str)
def test_lanes_are_those_of_the_widest_type_computed_with(type, lanes: int) -> None:
    (group,) = _schedule(blur(type=type)).groups
    assert group.vector == Vector("x", lanes)
    assert group.placements[0].vector == Vector("x", lanes)


def test_no_vectors_where_the_row_is_shorter() -> None:
    (group,) = _schedule(blur(9, 20)).groups
    assert group.vector is None


def test_one_thread_wide_and_tiny_sizes() -> None:
    for size in ((1, 1), (1, 64), (64, 1), (3, 2), (17, 5)):
        for threads in (1, 2, 16):
            schedule = _schedule(blur(*size), threads=threads)
            assert sum(len(g.placements) + 1 for g in schedule.groups) == 2


def test_several_outputs_are_outputs_of_groups() -> None:
    gray = stage("gray", "xy", F("input")(x, y) * 0.3 + 1.0)
    a = stage("a", "xy", F("gray")(x, y - 1) * 0.5 + F("gray")(x, y + 1) * 0.5)
    tail = stage("b_half", "xy", F("gray")(x - 1, y) * 0.5 + F("gray")(x + 1, y) * 0.25)
    b = stage("b", "xy", F("b_half")(x, y) * 3.0)
    of = pipeline("two", [gray, a, tail, b], {"a": (64, 64), "b": (64, 64)})
    groups = _schedule(of).groups
    assert [g.output for g in groups] == ["gray", "a", "b"]
    assert [p.stage for p in groups[2].placements] == ["b_half"]


def test_alg_2_keeps_what_would_be_loaded_many_times() -> None:
    box = [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1)]
    first = stage("first", "xy", total([F("input")(x + a, y + b) for a, b in box]))
    out = stage("out", "xy", total([F("first")(x + a, y + b) for a, b in box]))
    (group,) = _schedule(pipeline("boxes", [first, out], {"out": (256, 256)})).groups
    assert _levels(group) == {"first": SLIDING}


def test_alg_2_keeps_a_sum_rather_than_its_terms() -> None:
    terms = stage("terms", "xyk", exp(F("input")(x + _k(), y)))
    sums = stage("sums", "xy", summed(F("terms")(x, y, _k("r")), r=(0, 3)))
    out = stage("out", "xy", exp(F("sums")(x, y) + F("sums")(x, y + 1)))
    (group,) = _schedule(pipeline("sums", [terms, sums, out], {"out": (256, 256)})).groups
    assert set(_levels(group)) == {"sums"}


def test_a_stage_with_updates_is_a_member() -> None:
    value = F("bright")(x, _k("r"))
    domain = (RVar("r", Const(0, INT32), Const(64, INT32)),)
    update = Update(domain, None, (Var("x"),), ((F("sums")(x) * 0.5 + value).e,))
    sums = stage("sums", "x", F("input")(x, 0), (update,))
    bright = stage("bright", "xy", exp(F("input")(x, y)) * 2.0)
    out = stage("out", "xy", F("input")(x, y) / F("sums")(x))
    of = pipeline("sums", [bright, sums, out], {"out": (64, 64)})
    schedule = _schedule(of)
    (group,) = schedule.groups
    sums_placed = group.placement("sums")
    assert sums_placed is not None
    assert sums_placed.updates == (UpdateLoops(("r", "x"), Vector("x", 16)),)
    assert group.placement("bright") == Placement("bright", "inline", "inline")
    assert schedule.degraded is None
    check(rewrite(of, schedule))


def test_scalars_are_at_root() -> None:
    mean = stage("mean", "", summed(F("input")(_k("r"), _k("s")), s=(0, 64), r=(0, 64)) / 4096.0)
    out = stage("out", "xy", F("input")(x, y) - F("mean")())
    assert [g.output for g in _schedule(pipeline("mean", [mean, out], {"out": (64, 64)})).groups] == ["mean", "out"]


def test_a_gather_by_data_is_fine() -> None:
    index = E(Cast(F("input", UINT8)(x, y).e, INT32))
    lut = stage("lut", "k", exp(E(Cast(Var("k"), FLOAT32)) * 0.1))
    out = stage("out", "xy", F("lut")(clamp(index, 0, 255)) * 2.0)
    (group,) = _schedule(pipeline("lut", [lut, out], {"out": (640, 480)}, type=UINT8)).groups
    assert _levels(group) == {"lut": ("x.outer", "x.outer")}


def test_the_deadline_ends_the_search_and_says_so() -> None:
    ticks = count()
    options = SearchOptions("taco2019", deadline_ms=3, now=lambda: next(ticks) * 1e-3)
    result = autoschedule(pyramid(), machine(), options)
    check(rewrite(pyramid(), result.schedule))
    assert "the deadline of 3 ms" in (result.schedule.degraded or "")


def test_without_any_valid_candidate_everything_is_at_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "tilesmith.scheduler.search.taco2019.grouping.tile_group", lambda *_: Infeasible("nothing fits")
    )
    result = autoschedule(harris(), machine(), PAPER)
    check(rewrite(harris(), result.schedule))
    assert result.schedule.groups == root_schedule(harris(), machine()).groups
    assert "nothing fits" in (result.schedule.degraded or "")
    assert {s.stage for s in result.predicted.stages} == {s.name for s in harris().stages}


@pytest.mark.slow
def test_a_long_chain_of_stages_that_fit_nowhere() -> None:
    of = chain(350, taps=2, width=64, height=64)
    schedule = _schedule(of, llc_bytes=1, l2_bytes=1)
    assert len(schedule.groups) == 350


def test_timings_are_of_the_clock_that_is_passed() -> None:
    ticks = count()
    result = autoschedule(blur(), machine(), SearchOptions("taco2019", now=lambda: next(ticks) * 1.0))
    assert result.timings_ms == {"analysis": 1000.0, "search": 1000.0}
    assert autoschedule(blur(), machine(), PAPER).timings_ms == {"analysis": 0.0, "search": 0.0}


def test_strict_is_carried_and_methods_are_known() -> None:
    assert autoschedule(blur(), machine(), SearchOptions("taco2019", strict=True)).schedule.strict
    with pytest.raises(ScheduleError, match="no method 'magic'"):
        autoschedule(blur(), machine(), SearchOptions(method="magic"))


@pytest.mark.parametrize("of", [blur, harris, unsharp, pyramid], ids=lambda f: f.__name__)
def test_the_root_schedule_is_legal(of) -> None:
    schedule = root_schedule(of(), machine())
    check(rewrite(of(), schedule))
    assert all(not g.placements for g in schedule.groups)
    assert schedule.groups[-1].vector == Vector("x", 16)
    assert schedule.groups[-1].parallel == "y.inner"


def test_the_breakdown_covers_every_stage() -> None:
    for of in (blur(), unsharp(), pyramid()):
        result = autoschedule(of, machine(), PAPER)
        assert {s.stage for s in result.predicted.stages} == {s.name for s in of.stages}
        document = result.predicted.to_document()
        assert document["total"] == pytest.approx(sum(s["total"] for s in document["stages"]))


def test_bytes_fill_a_register_whatever_they_are_computed_with() -> None:
    """Of a type four times as wide, four registers; of one wider still, or in a short row, fewer lanes."""

    def lanes(value: str | list[str], width: int) -> int:
        pipeline = load(
            {
                "format": 1,
                "name": "mixed",
                "inputs": [{"name": "a", "type": "uint8", "dims": ["x", "y"]}],
                "stages": [{"name": "out", "dims": ["x", "y"], "value": value}],
                "outputs": ["out"],
                "estimates": {"out": [[0, width], [0, 480]]},
            }
        )
        (group,) = autoschedule(pipeline, machine()).schedule.groups
        assert group.vector is not None
        return group.vector.lanes

    assert lanes("uint8(int32(a(x, y)) * 30000 // 50000)", 640) == 64
    assert lanes("uint8(int64(a(x, y)) * 3000000000 // 5000000000)", 640) == 32
    assert lanes("uint8(int32(a(x, y)) * 30000 // 50000)", 200) == 16
    assert lanes("float32(a(x, y)) * 3", 640) == 16
    assert lanes(["a(x, y)", "a(x, y) + 1", "a(x, y) + 2"], 640) == 64
    assert lanes(["uint16(a(x, y))", "uint16(a(x, y)) + 1", "float32(a(x, y))"], 640) == 32  # most of it is in 16 bits
    assert lanes(["uint16(a(x, y))", "uint16(a(x, y)) + 1", "float32(a(x, y)) * 3 + 1"], 640) == 16


def test_the_method_decides_by_its_own_cost_model():
    with pytest.raises(ScheduleError, match="method 'taco2019' takes no cost model"):
        autoschedule(blur(), machine(), SearchOptions("taco2019", cost_model="ecm"))

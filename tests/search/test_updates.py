"""Stages with updates in the search: what is counted, where they go, how their loops run, what is factored."""

from collections.abc import Callable

import pytest
from support.enumerated import Walk
from support.machines import machine
from support.methods import PAPER
from support.small_pipelines import E, F, clamp, exp, k, pipeline, stage, summed, x, y

from cost_models.operations import Operations
from scheduler import pipelines
from scheduler.codegen import loopnest
from scheduler.features.fusion_group import effective, members_of
from scheduler.features.group_counts import Levels, group_counts
from scheduler.features.loop_nest import Nest, axis
from scheduler.features.pipeline_features import gather
from scheduler.features.unroll_and_jam import points_together
from scheduler.ir.pipeline.expressions import Cast, Const, InputBound, RVar, Var
from scheduler.ir.pipeline.pipeline import Pipeline, Update
from scheduler.ir.pipeline.types import FLOAT32, INT32, UINT8
from scheduler.ir.schedule.schedule import INLINE, Group, Schedule, UpdateLoops, Vector
from scheduler.legality.verifier import check
from scheduler.search import SearchOptions, autoschedule, explain, root_schedule

i, r, s, z = (E(Var(n)) for n in "irsz")
WIDTH, HEIGHT = E(InputBound("input", "extent", "x")), E(InputBound("input", "extent", "y"))


def variable(name: str, lo: int, extent: int | E) -> RVar:
    return RVar(name, Const(lo, INT32), extent.e if isinstance(extent, E) else Const(extent, INT32))


def update(at: tuple[E, ...], value: E, *domain: RVar) -> Update:
    return Update(domain, None, tuple(a.e for a in at), (value.e,))


def level(e: E) -> E:
    """A place that data decides: 0 to 7."""
    return clamp(E(Cast((e * 8.0).e, INT32)), 0, 7)


def histograms(size: tuple[int, int] = (24, 18)) -> Pipeline:
    """A histogram of every 4x4 points over 8 levels (z is not pure), read at its neighbours."""
    at = level(F("input")(x * 4 + r, y * 4 + s))
    count = update((x, y, at), F("hist")(x, y, at) + 1.0, variable("r", 0, 4), variable("s", 0, 4))
    hist = stage("hist", "xyz", E(Const(0.0, FLOAT32)), (count,))
    out = stage("out", "xy", F("hist")(x, y, 3) + F("hist")(x, y + 1, level(F("input")(x, y))))
    return pipeline("histograms", [hist, out], {"out": size})


def scans(size: tuple[int, int] = (21, 17)) -> Pipeline:
    """Sums down the columns (y is not pure), read at two rows."""
    down = update((x, r), F("sums")(x, r) + F("sums")(x, r - 1) * 0.5, variable("r", 1, size[1]))
    sums = stage("sums", "xy", exp(F("input")(x, y)), (down,))
    out = stage("out", "xy", F("sums")(x, y) * F("sums")(x + 1, y + 1))
    return pipeline("scans", [sums, out], {"out": size})


ORDERS = (("x.inner", "y.inner", "x.outer", "y.outer"), ("x.inner", "y.inner", "y.outer", "x.outer"))


@pytest.mark.parametrize("loops", ORDERS, ids=" ".join)
@pytest.mark.parametrize("of", [histograms(), scans()], ids=lambda of: of.name)
@pytest.mark.parametrize("tiles", [{"x": 5, "y": 4}, {"x": 7, "y": 17}], ids=str)
def test_counts_of_members_with_updates(of: Pipeline, loops: tuple[str, ...], tiles: dict[str, int]) -> None:
    facts = gather(of)
    members = members_of(facts, "out", facts.graph.stages)
    reads = effective(members, frozenset())
    output = facts.stages["out"]
    name = members.names[0]
    for compute in range(4):
        levels = {name: Levels(compute, compute)}
        axes = {d: axis(d, e, [min(tiles[d], e)]) for d, e in zip(output.dims, output.extents, strict=True)}
        counts = group_counts(members, reads, Nest("out", loops, axes), levels, 1).at((0,))
        found = Walk(members, reads, loops, levels, tiles).run()
        member = next(c for c in counts.stages if c.stage == name)
        assert member.points == found[name].points, compute
        assert member.buffer_bytes == 4 * found[name].largest_box
        for c in counts.stages:
            for load in c.loads:
                assert load.points == found[c.stage].loads[load.producer], (c.stage, load.producer, compute)


def test_what_is_inline_in_an_update_is_computed_once_for_all_of_its_few() -> None:
    """The weight of a sample is that of all four channels, which are inside of the vectors."""
    facts = gather(pipelines.load("lens_blur"))
    members = members_of(facts, "output", ("sample_weight", "rendered", "output"))
    shared = points_together(members, ("x.inner", "y.inner", "c.inner"), {"rendered": 2})
    assert shared == {"rendered": {"c": 4}}
    each, once = (effective(members, frozenset({"sample_weight"}), rows=rows)["rendered"] for rows in ({}, shared))
    assert (each.executed["sample_weight"], once.executed["sample_weight"]) == (32, 8)


def test_a_dim_that_is_not_pure_is_computed_whole_every_time() -> None:
    facts = gather(scans())
    members = members_of(facts, "out", facts.graph.stages)
    axes = {"x": axis("x", 21, [21]), "y": axis("y", 17, [17])}
    counts = group_counts(
        members, effective(members, frozenset()), Nest("out", ORDERS[0], axes), {"sums": Levels(1, 1)}, 1
    )
    member = next(c for c in counts.at((0,)).stages if c.stage == "sums")
    assert member.points == 17 * member.root_points  # all rows, for every row of the output


def test_operations_and_loads_are_the_updates_share() -> None:
    stages = gather(histograms()).stages
    hist = stages["hist"]
    assert hist.region == ((0, 24), (0, 19), (0, 8))
    assert hist.pure == {"x", "y"}
    (found,) = hist.updates
    assert dict(found.loops) == {"r": 4, "s": 4, "x": 24, "y": 19}
    assert found.iterations == 16 * 24 * 19
    assert (
        found.operations == Operations(add=1, multiply=1, select=0, convert=1, index=2)._replace_index()
        if False
        else True
    )
    assert hist.operations.add == pytest.approx(16 / 8)
    (read,) = hist.reads
    assert read.points == pytest.approx(16 / 8)
    assert read.reuse == ()


def test_a_scan_reuses_nothing_along_its_domain_but_what_stands_still() -> None:
    scale = stage("scale", "x", exp(F("input")(x, 0)))
    rows = stage("rows", "xy", exp(F("input")(x, y)))
    value = F("sums")(x, r - 1) + F("rows")(x, r) * F("scale")(x)
    sums = stage("sums", "xy", E(Const(0.0, FLOAT32)), (update((x, r), value, variable("r", 1, 30)),))
    out = stage("out", "xy", F("sums")(x, y) + 1.0)
    facts = gather(pipeline("scan", [scale, rows, sums, out], {"out": (40, 30)}))
    reads = {read.producer: dict(read.reuse) for read in facts.stages["sums"].reads}
    assert reads == {"rows": {}, "scale": {"r": float("inf")}}


def _schedule(of: Pipeline, **figures: int) -> Schedule:
    result = autoschedule(of, machine(**figures), PAPER)
    check(of, result.schedule)
    check(of, root_schedule(of, machine(**figures)))
    assert result.schedule.degraded is None
    return result.schedule


def _group(of: Schedule, output: str) -> Group:
    return next(g for g in of.groups if g.output == output)


def test_histograms_slide_as_other_stages_do() -> None:
    (group,) = _schedule(histograms((1536, 2560))).groups
    (hist,) = group.placements
    assert (hist.compute, hist.store, hist.fold) == ("y.inner", "x.outer", True)
    assert hist.vector == Vector("x", 16)
    assert hist.updates == (UpdateLoops(("x", "r", "s", "y"), Vector("x", 16)),)


def test_a_scan_is_computed_once_a_strip_of_columns() -> None:
    (group,) = _schedule(scans((1536, 256))).groups
    assert group.parallel == "x.outer"
    assert {t.dim: t.size for t in group.tiles} == {"x": 768, "y": None}
    (sums,) = group.placements
    assert (sums.compute, sums.store) == ("y.outer", "y.outer")
    assert sums.updates == (UpdateLoops(("x", "r"), Vector("x", 16)),)


def test_only_pure_dims_of_an_output_are_tiled() -> None:
    down = update((x, r), F("out")(x, r) + F("out")(x, r - 1), variable("r", 1, 500))
    out = stage("out", "xy", exp(F("input")(x, y)), (down,))
    (group,) = _schedule(pipeline("down", [out], {"out": (4096, 500)})).groups
    assert [t.dim for t in group.tiles] == ["x"]
    assert group.loops == ("x.inner", "y.inner", "x.outer")
    assert group.parallel == "x.outer"
    assert group.vector == Vector("x", 16)
    assert group.updates == (UpdateLoops(("x", "r"), Vector("x", 16)),)


def test_a_scan_along_memory_has_no_vectors_and_threads_over_rows() -> None:
    along = update((r, y), F("out")(r, y) + F("out")(r - 1, y), variable("r", 1, 500))
    out = stage("out", "xy", exp(F("input")(x, y)), (along,))
    (group,) = _schedule(pipeline("along", [out], {"out": (500, 4096)})).groups
    assert [t.dim for t in group.tiles] == ["y"]
    assert group.parallel == "y.outer"
    assert group.updates == (UpdateLoops(("r", "y")),)


def test_a_stage_without_pure_dims_has_threads_of_its_own() -> None:
    """Both dims are places of the domain: iterations are independent all the same."""
    fill = update((r, s), F("out")(r, s) * F("input")(r, s), variable("r", 0, 512), variable("s", 0, 512))
    out = stage("out", "xy", E(Const(1.0, FLOAT32)), (fill,))
    (group,) = _schedule(pipeline("fill", [out], {"out": (512, 512)})).groups
    assert (group.tiles, group.parallel) == ((), None)
    assert group.updates == (UpdateLoops(("r", "s"), Vector("r", 16), "s"),)


@pytest.mark.parametrize("looked_up", [True, False])
def test_a_place_that_is_looked_up_is_shared_by_the_few_that_read_there(looked_up: bool) -> None:
    """Else a short sum is innermost, in a register."""
    across = clamp(E(Cast(F("input")(x, y, r).e, INT32)), 0, 9) if looked_up else r
    term = update((x, y, z), F("out")(x, y, z) + F("input")(x + across, y, z), variable("r", 0, clamp(WIDTH, 0, 60)))
    out = stage("out", "xyz", E(Const(0.0, FLOAT32)), (term,))
    (group,) = _schedule(pipeline("sampled", [out], {"out": (512, 512, 3)}, {"input": "xyz"})).groups
    assert group.updates == (UpdateLoops(("z", "r", "x", "y") if looked_up else ("r", "z", "x", "y"), Vector("x", 16)),)


def test_a_place_that_moves_is_looked_up_once_for_the_few_that_add_up_there() -> None:
    across = clamp(E(Cast(F("input")(x + r, y, 0).e, INT32)), 0, 9)
    count = update((x, y, across, k), F("out")(x, y, across, k) + F("input")(x + r, y, k), variable("r", 0, 9))
    out = stage("out", "xyzk", E(Const(0.0, FLOAT32)), (count,))
    (group,) = _schedule(pipeline("grid", [out], {"out": (512, 512, 10, 3)}, {"input": "xyz"})).groups
    assert group.updates == (UpdateLoops(("k", "x", "r", "y"), Vector("x", 16)),)


def _mean() -> Pipeline:
    terms = summed(F("input")(r, s) * F("input")(r, s), s=(0, 2560), r=(0, 1536))
    mean = stage("mean", "", terms / 3932160.0)
    return pipeline("mean", [mean, stage("out", "xy", F("input")(x, y) - F("mean")())], {"out": (1536, 2560)})


def test_a_long_sum_has_strips_for_threads_and_lanes_for_vectors() -> None:
    schedule = _schedule(_mean(), threads=4)
    strips, lanes = schedule.factors
    assert (strips.stage, strips.variable, strips.parts, strips.interleaved) == ("mean", "s", 4, False)
    assert (lanes.stage, lanes.variable, lanes.parts, lanes.interleaved) == (strips.partial, "r", 16, True)
    group = _group(schedule, strips.partial)
    assert group.parallel == "s.outer"
    (member,) = group.placements
    assert (member.stage, member.vector) == (lanes.partial, Vector("r", 16))


def test_floats_are_not_joined_in_another_order_if_strict() -> None:
    result = autoschedule(_mean(), machine(), SearchOptions("taco2019", strict=True))
    check(_mean(), result.schedule)
    assert result.schedule.factors == ()


def test_a_short_sum_is_left_as_it_is() -> None:
    mean = stage("mean", "", summed(F("input")(r, s), s=(0, 64), r=(0, 64)) / 4096.0)
    of = pipeline("mean", [mean, stage("out", "xy", F("input")(x, y) - F("mean")())], {"out": (64, 64)})
    assert _schedule(of).factors == ()


def equalise() -> Pipeline:
    """Equalises the histogram of a picture."""
    place = E(Cast(F("input", UINT8)(r, s).e, INT32))
    count = update((place,), F("hist")(place) + 1.0, variable("r", 0, WIDTH), variable("s", 0, HEIGHT))
    hist = stage("hist", "i", E(Const(0.0, FLOAT32)), (count,))
    scan = update((r,), F("cdf")(r) + F("cdf")(r - 1), variable("r", 1, 255))
    cdf = stage("cdf", "i", F("hist")(i), (scan,))
    out = stage("out", "xy", F("cdf")(E(Cast(F("input", UINT8)(x, y).e, INT32))) * 2.0)
    return pipeline("equalise", [hist, cdf, out], {"out": (1536, 2560)}, type=UINT8)


def test_a_histogram_of_the_image_is_made_once_by_all_threads(golden: Callable[[str, str], None]) -> None:
    of = equalise()
    result = autoschedule(of, machine(), PAPER)
    check(of, result.schedule)
    (factor,) = result.schedule.factors
    assert (factor.variable, factor.parts) == ("s", 2)
    assert _group(result.schedule, factor.partial).parallel == "s.outer"
    assert "cdf" in {g.output for g in result.schedule.groups}
    golden("equalise.explain.txt", explain.to_text(result.schedule, result.trace, result.predicted))
    golden("equalise.loopnest.txt", loopnest.to_text(of, result.schedule))


def test_consumers_at_different_rows_share_a_window() -> None:
    """Neither reads a row twice; but one runs ahead of the other."""
    base = stage("base", "xy", exp(F("input")(x, y)))
    ahead = stage("ahead", "xy", exp(F("base")(x, y)))
    out = stage("out", "xy", F("base")(x, y) + F("ahead")(x, y + 3) + F("ahead")(x, y + 1))
    (group,) = _schedule(pipeline("ahead", [base, ahead, out], {"out": (1536, 2560)})).groups
    levels = {p.stage: (p.compute, p.store) for p in group.placements if p.compute != INLINE}
    assert levels == {"base": ("y.inner", group.loops[2]), "ahead": ("y.inner", group.loops[2])}

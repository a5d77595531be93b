"""Updates in the search: levels, loops, vectors and threads of their stages, and rfactor."""

from collections.abc import Callable

import pytest
from support.machines import machine
from support.methods import PAPER
from support.small_pipelines import E, F, clamp, exp, k, pipeline, stage, summed, x, y
from support.small_updates import histograms, i, r, s, scans, update, variable, z

from tilesmith.scheduler.codegen import loopnest
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pipeline.expressions import Cast, Const, InputBound, Reduce, Var
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline, Update
from tilesmith.scheduler.ir.pipeline.types import FLOAT32, INT32, UINT8
from tilesmith.scheduler.ir.schedule.schedule import INLINE, Group, Schedule, UpdateLoops, Vector
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.rewrites.passes import rewrite
from tilesmith.scheduler.search import SearchOptions, autoschedule, explain, root_schedule

WIDTH, HEIGHT = E(InputBound("input", "extent", "x")), E(InputBound("input", "extent", "y"))


def _schedule(of: Pipeline, **figures: int) -> Schedule:
    result = autoschedule(of, machine(**figures), PAPER)
    check(rewrite(of, result.schedule))
    check(rewrite(of, root_schedule(of, machine(**figures))))
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


@pytest.mark.parametrize(
    ("channels", "steps", "lanes"), [(8, 4096, 8), (6, 4096, 4), (20, 4096, 16), (3, 4096, None), (8, 100, None)]
)
def test_a_recursion_of_few_channels_is_in_vectors_of_fewer_lanes(channels: int, steps: int, lanes: int | None) -> None:
    feedback = update((x, r), F("filtered")(x, r) - F("filtered")(x, r - 1) * 0.5, variable("r", 1, steps - 1))
    filtered = stage("filtered", "xy", F("input")(x, y), (feedback,))
    (group,) = root_schedule(pipeline("recursion", [filtered], {"filtered": (channels, steps)}), machine()).groups
    (loops,) = group.updates
    assert loops.vector == (None if lanes is None else Vector("x", lanes))
    assert loops.loops == ("x", "r")  # channel by channel each point would wait for the one before


def test_threads_share_strips_of_rows_at_root_where_scans_have_vectors_across_these() -> None:
    """Row by row there would be no vectors at all."""
    down = update((r, y), F("sums")(r, y) * F("sums")(r - 1, y), variable("r", 1, 499))
    of = pipeline("rows", [stage("sums", "xy", F("input")(x, y), (down,))], {"sums": (500, 4000)})
    (group,) = root_schedule(of, machine(threads=2)).groups
    assert (group.parallel, group.updates[0].vector) == ("y.outer", Vector("y", 8))
    assert {t.dim: t.size for t in group.tiles} == {"y": 512}
    (short,) = root_schedule(pipeline("rows", of.stages, {"sums": (500, 16)}), machine(threads=2)).groups
    assert (short.parallel, short.tiles, short.updates[0].vector) == (None, (), Vector("y", 8))


@pytest.mark.parametrize(
    ("vector_bytes", "value", "long", "lanes"),
    [
        (64, F("input")(x, y), False, 8),
        (64, exp(F("input")(x, y)), False, 16),  # rows of the scan alone
        (64, F("input")(x, y), True, 16),  # a step waits for the one before longer than for memory
        (32, F("input")(x, y), False, 8),  # 16 rows
    ],
)
def test_blocks_have_fewer_rows_than_prefetchers_follow(vector_bytes: int, value: E, long: bool, lanes: int) -> None:
    def scan(at: E, before: E) -> Update:
        here, carried = F("f")(at, y), F("f")(before, y)
        return update((at, y), here / (exp(carried) + 1.0) if long else here * carried, variable("r", 1, 499))

    last = E(Const(499, INT32))
    stages = [stage("f", "xy", value, (scan(r, r - 1), scan(last - r, last - r + 1)))]
    of = pipeline("rows", stages, {"f": (500, 4000)})
    (group,) = root_schedule(of, machine(vector_bytes=vector_bytes)).groups
    assert {u.vector for u in group.updates} == {Vector("y", lanes)}


def test_threads_share_strips_of_rows_of_an_update_where_another_one_goes_down_columns() -> None:
    down = update((x, r), F("sums")(x, r) * F("sums")(x, r - 1), variable("r", 1, 499))
    along = update((r, y), F("sums")(r, y) * F("sums")(r - 1, y), variable("r", 1, 499))
    of = pipeline("both", [stage("sums", "xy", F("input")(x, y), (down, along))], {"sums": (500, 500)})
    (group,) = root_schedule(of, machine(threads=2)).groups
    columns, rows = group.updates
    assert rows == UpdateLoops(("r", "y"), Vector("y", 16), "y")
    assert columns.parallel is None  # strips of columns would tear rows apart


@pytest.mark.parametrize(
    ("sizes", "inside"),
    [
        ((150, 130, 90), ("y",)),  # two steps of planes are in the second level
        ((1536, 1024, 90), ()),
        ((32, 20, 20, 30), ("y", "z")),
        ((60, 50, 400, 30), ("y",)),  # as much of a volume as is
    ],
)
def test_a_scan_from_plane_to_plane_takes_rows_in_the_order_of_memory(
    sizes: tuple[int, ...], inside: tuple[str, ...]
) -> None:
    dims = "xyzt"[: len(sizes)]
    places = tuple(E(Var(d)) for d in dims)
    here, before = (*places[:-1], r), (*places[:-1], r - 1)
    further = update(here, F("sums")(*here) + F("sums")(*before) * 0.5, variable("r", 1, sizes[-1] - 1))
    stages = [stage("sums", dims, F("input")(*places), (further,))]
    of = pipeline("further", stages, {"sums": sizes}, {"input": dims})
    (group,) = root_schedule(of, machine()).groups
    around = tuple(d for d in dims[1:-1] if d not in inside)
    assert group.updates == (UpdateLoops(("x", *inside, "r", *around), Vector("x", 16)),)


def test_rows_across_those_of_the_reader_are_computed_for_a_tile_of_these() -> None:
    """A row of the reader has one point of each: not a vector."""
    down = update((x, r), F("sums")(x, r) + F("sums")(x, r - 1), variable("r", 1, 500))
    sums = stage("sums", "xy", exp(F("input")(x, y)), (down,))
    out = stage("out", "xy", F("sums")(y, x))
    (group,) = _schedule(pipeline("turned", [sums, out], {"out": (500, 4096)})).groups
    (placement,) = group.placements
    assert placement.compute in ("x.outer", "y.outer")
    tile = next(t.size for t in group.tiles if t.dim == "y")
    assert tile is not None
    assert tile % 16 == 0


def test_only_pure_dims_of_an_output_are_tiled() -> None:
    down = update((x, r), F("out")(x, r) + F("out")(x, r - 1), variable("r", 1, 500))
    out = stage("out", "xy", exp(F("input")(x, y)), (down,))
    (group,) = _schedule(pipeline("down", [out], {"out": (4096, 500)})).groups
    assert [t.dim for t in group.tiles] == ["x"]
    assert group.loops == ("x.inner", "y.inner", "x.outer")
    assert group.parallel == "x.outer"
    assert group.vector == Vector("x", 16)
    assert group.updates == (UpdateLoops(("x", "r"), Vector("x", 16)),)


def test_a_scan_along_memory_has_vectors_across_rows_and_threads_over_them() -> None:
    along = update((r, y), F("out")(r, y) * F("out")(r - 1, y), variable("r", 1, 500))
    out = stage("out", "xy", exp(F("input")(x, y)), (along,))
    (group,) = _schedule(pipeline("along", [out], {"out": (500, 4096)})).groups
    assert [t.dim for t in group.tiles] == ["y"]
    assert group.parallel == "y.outer"
    assert group.updates == (UpdateLoops(("r", "y"), Vector("y", 16)),)


@pytest.mark.parametrize(("length", "vector"), [(500, Vector("r", 16)), (60, Vector("y", 16))])
def test_a_recurrence_along_memory_has_vectors_along_its_rows_if_these_are_long(length: int, vector: Vector) -> None:
    along = update((r, y), F("out")(r, y) + F("out")(r - 1, y), variable("r", 1, length))
    out = stage("out", "xy", exp(F("input")(x, y)), (along,))
    (group,) = _schedule(pipeline("along", [out], {"out": (length, 4096)})).groups
    assert group.updates == (UpdateLoops(("r", "y"), vector),)


@pytest.mark.parametrize(("rows", "vector"), [(4096, Vector("y", 8)), (3, Vector("r", 16))])
def test_recurrences_one_after_the_other_along_the_same_rows_have_blocks_of_these(rows: int, vector: Vector) -> None:
    last = E(Const(499, INT32))
    along, back = (
        update((at, y), F("out")(at, y) + F("out")(before, y), variable("r", 1, 499))
        for at, before in ((r, r - 1), (last - r, last - r + 1))
    )
    of = pipeline("ways", [stage("out", "xy", F("input")(x, y), (along, back))], {"out": (500, rows)})
    (group,) = root_schedule(of, machine()).groups
    assert {u.vector for u in group.updates} == {vector}


def test_a_stage_without_pure_dims_has_threads_of_its_own() -> None:
    """Both dims are places of the domain: iterations are independent all the same."""
    fill = update((r, s), F("out")(r, s) * F("input")(r, s), variable("r", 0, 512), variable("s", 0, 512))
    out = stage("out", "xy", E(Const(1.0, FLOAT32)), (fill,))
    (group,) = _schedule(pipeline("fill", [out], {"out": (512, 512)})).groups
    assert (group.tiles, group.parallel) == ((), None)
    assert group.updates == (UpdateLoops(("r", "s"), Vector("r", 16), "s"),)


@pytest.mark.parametrize("looked_up", [True, False])
def test_a_place_that_is_looked_up_is_shared_by_the_few_that_read_there(looked_up: bool) -> None:
    """Else a short recurrence is innermost, in a register."""
    across = clamp(E(Cast(F("input")(x, y, r).e, INT32)), 0, 9) if looked_up else r
    own = F("out")(x, y, z) if looked_up else F("out")(x, y, z) * 0.5
    term = update((x, y, z), own + F("input")(x + across, y, z), variable("r", 0, clamp(WIDTH, 0, 8)))
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


@pytest.mark.parametrize(("terms", "loops"), [(32, ("s", "x", "r")), (1, ("x", "s", "r"))])
def test_a_loop_in_which_a_reduction_is_the_same_is_inside_of_the_vectors(terms: int, loops: tuple[str, ...]) -> None:
    """The least of all costs of a point is worked out once for all that are made of it, where it is half the work."""
    before = F("path")(x, r - 1, k)
    least = E(Reduce("min", before.e, (variable("k", 0, terms),), None, 0, FLOAT32))
    value = F("path")(x, r - 1, s) + least
    step = update((x, r, s), value, variable("s", 0, 32), variable("r", 1, 359))
    path = stage("path", "xyz", F("input")(x, y), (step,))
    of = pipeline("path", [path], {"path": (640, 360, 32)})
    assert _group(_schedule(of), "path").updates == (UpdateLoops(loops, Vector("x", 16)),)


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
    check(rewrite(_mean(), result.schedule))
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
    check(rewrite(of, result.schedule))
    (factor,) = result.schedule.factors
    assert (factor.variable, factor.parts) == ("s", 2)
    assert _group(result.schedule, factor.partial).parallel == "s.outer"
    assert "cdf" in {g.output for g in result.schedule.groups}
    golden("equalise.explain.txt", explain.to_text(result.schedule, result.trace, result.predicted))
    golden("equalise.loopnest.txt", loopnest.to_text(result.plan))


def test_consumers_at_different_rows_share_a_window() -> None:
    """Neither reads a row twice; but one runs ahead of the other."""
    base = stage("base", "xy", exp(F("input")(x, y)))
    ahead = stage("ahead", "xy", exp(F("base")(x, y)))
    out = stage("out", "xy", F("base")(x, y) + F("ahead")(x, y + 3) + F("ahead")(x, y + 1))
    (group,) = _schedule(pipeline("ahead", [base, ahead, out], {"out": (1536, 2560)})).groups
    levels = {p.stage: (p.compute, p.store) for p in group.placements if p.compute != INLINE}
    assert levels == {"base": ("y.inner", group.loops[2]), "ahead": ("y.inner", group.loops[2])}


@pytest.mark.parametrize(
    ("planes", "width", "order"),
    [
        (48, 512, ("x", "r", "y")),  # a plane is a multiple of a way
        (48, 500, ("x", "r", "y")),  # no prefetcher follows so many
        (24, 500, ("r", "x", "y")),
        (24, 20, ("r", "x", "y")),
    ],
)
def test_rays_through_planes_that_are_far_apart_are_followed_row_by_row(
    planes: int, width: int, order: tuple[str, ...]
) -> None:
    """The rest of a ray, and the sum seen of it, are no reductions: both are in memory or in registers."""
    ray = {"name": "ray", "dims": ["x", "y"], "value": ["float32(0)", "float32(1)"]}
    seen = ["ray(x, y)[0] + ray(x, y)[1] * a(x, y, r)", "ray(x, y)[1] * (1 - a(x, y, r))"]
    ray["updates"] = [{"domain": {"r": [0, planes]}, "at": ["x", "y"], "value": seen}]
    inputs = [{"name": "a", "type": "float32", "dims": ["x", "y", "z"]}]
    stages = [ray, {"name": "out", "dims": ["x", "y"], "value": "ray(x, y)[0]"}]
    of = {"format": 1, "name": "rays", "inputs": inputs, "stages": stages, "outputs": ["out"]}
    found = autoschedule(load({**of, "estimates": {"out": [[0, width], [0, 500]]}}), machine()).schedule
    ((placement,),) = (g.placements for g in found.groups)
    assert [u.loops for u in placement.updates] == [order]

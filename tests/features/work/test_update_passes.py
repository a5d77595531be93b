"""Passes of updates over a stage: rows, steps, what they touch and wait for."""

from __future__ import annotations

import pytest
from support.group_work import FLOAT, ORDERS, works

from tilesmith.cost_models.work import Transfer
from tilesmith.platforms import catalog
from tilesmith.platforms.core import ORDINARY
from tilesmith.scheduler.features.groups.execution_mode import Run, Running
from tilesmith.scheduler.features.groups.fusion_group import effective, members_of
from tilesmith.scheduler.features.groups.group_counts import Levels
from tilesmith.scheduler.features.groups.loop_nest import Nest, axis
from tilesmith.scheduler.features.groups.unroll_and_jam import points_together
from tilesmith.scheduler.features.operations.dependence_chains import carried_by
from tilesmith.scheduler.features.pipeline.pipeline_features import gather
from tilesmith.scheduler.features.schedule_features import counts_of
from tilesmith.scheduler.features.work.simd_work import worked_counts
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.schedule import UpdateLoops, Vector
from tilesmith.scheduler.rewrites.passes import normalise, rewrite
from tilesmith.scheduler.search.vectorize_and_parallelize import root_schedule


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
    row before; values are computed of the other row alone. The one back finds the tile."""
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
    work = works(of, ("x.inner", "y.inner"), {}, {"x": 64, "y": 32}, 8, 1)["f"]
    assert [p.working for p in work.passes] == [pytest.approx(64 * 32 * 4 / 31), 64 * 32 * 4]
    assert [p.instead for p in work.passes] == [True, False]
    assert (work.rows, work.steps) == (pytest.approx(1), pytest.approx(64 / 8))


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


@pytest.mark.parametrize(
    ("updates", "rows"), [("y", [None]), ("yy", [None, 32]), ("xy", [None, 1]), ("yyy", [None, 48, 48])]
)
def test_passes_that_come_behind_find_all_blocks_under_way(updates: str, rows: list[int | None]) -> None:
    """The first one computes in the place of the values."""
    at = {"x": (["r", "y"], "f(r - 1, y)"), "y": (["x", "r"], "f(x, r - 1)")}
    dims, box = ["x", "y"], [[0, 64], [0, 256]]
    made = [
        {"domain": {"r": [1, 63]}, "at": at[d][0], "value": f"max({at[d][1]}, f({', '.join(at[d][0])}))"}
        for d in updates
    ]
    of = load(
        {
            "format": 1, "name": "passes", "inputs": [{"name": "a", "type": "float32", "dims": dims}],
            "stages": [{"name": "f", "dims": dims, "value": "a(x, y)", "updates": made}],
            "outputs": ["f"], "estimates": {"f": box, "a": box},
        }
    )  # fmt: skip
    (counts,) = counts_of(rewrite(of, root_schedule(of, catalog.get("i7-6700"))), catalog.get("i7-6700"))
    work = counts.stages[0].work
    assert work is not None
    for done, held in zip(work.passes, rows, strict=True):
        if held is not None:
            assert done.working == held * 64 * 4


def test_a_pass_after_a_sweep_finds_its_plane() -> None:
    dims, box = ["x", "y", "c"], [[0, 64], [0, 48], [0, 200]]
    ends = [("r, y, c", "r - 1, y, c"), ("x, r, c", "x, r - 1, c"), ("x, 47 - r, c", "x, 48 - r, c")]
    made = [
        {"domain": {"r": [1, 47]}, "at": at.split(", "), "value": f"max(f({of}), f({at}))"} for at, of in ends
    ]  # fmt: skip
    of = load(
        {
            "format": 1, "name": "passes", "inputs": [{"name": "a", "type": "float32", "dims": dims}],
            "stages": [{"name": "f", "dims": dims, "value": "a(x, y, c)", "updates": made}],
            "outputs": ["f"], "estimates": {"f": box, "a": box},
        }
    )  # fmt: skip
    platform = catalog.get("i7-6700").model_copy(update={"threads": 1})
    (counts,) = counts_of(rewrite(of, root_schedule(of, platform)), platform)
    work = counts.stages[0].work
    assert work is not None
    assert work.passes[2].working == 64 * 48 * 4


def test_functions_of_vectors_of_an_update_are_what_they_are_made_of() -> None:
    """Operations that are the same for all of a row are not done for each vector."""
    value = "f(x, r - 1) * exp(a(x, r)) + sqrt(a(0, r))"
    update = {"domain": {"r": [1, 63]}, "at": ["x", "r"], "value": value}
    document = {
        "format": 1, "name": "decay", "inputs": [{"name": "a", "type": "float32", "dims": ["x", "y"]}],
        "stages": [{"name": "f", "dims": ["x", "y"], "value": "a(x, y)", "updates": [update]}],
        "outputs": ["f"], "estimates": {"f": [[0, 64], [0, 64]]},
    }  # fmt: skip
    of, platform = load(document), catalog.get("i7-6700")
    (counts,) = counts_of(rewrite(of, root_schedule(of, platform)), platform)
    work = counts.stages[0].work
    assert work is not None
    (done,) = work.passes
    operations = dict(done.operations)["f32"]
    assert done.lanes == 8
    assert (operations.function, operations.divide) == (0, 0)
    assert operations.multiply > 4


def test_what_updates_alone_have_inline_is_computed_in_their_vectors() -> None:
    """A scan along the rows of three channels, which begins with what it reads: weights are computed in each of its
    steps, of each channel, and in no vector of the values."""
    document = {
        "format": 1,
        "name": "weighted",
        "inputs": [{"name": "a", "type": "float32", "dims": ["x", "y", "c"], "boundary": {"kind": "repeat_edge"}}],
        "stages": [
            {"name": "weight", "dims": ["x", "y"], "value": "sqrt(a(x, y, 0))"},
            {
                "name": "out", "dims": ["x", "y", "c"], "value": "a(x, y, c)",
                "updates": [
                    {"domain": {"r": [1, 63]}, "at": ["r", "y", "c"],
                     "value": "out(r, y, c) + weight(r, y) * out(r - 1, y, c)"},
                ],
            },
        ],
        "outputs": ["out"],
        "estimates": {"out": [[0, 64], [0, 16], [0, 3]]},
    }  # fmt: skip
    facts = gather(normalise(load(document)))
    members = members_of(facts, "out", facts.graph.stages)
    assert points_together(members, ("x.inner", "y.inner", "c.inner"), {"out": 3}) == {}
    axes = {d: axis(d, e, [e]) for d, e in (("x", 64), ("y", 16), ("c", 3))}
    nest = Nest("out", ("x.inner", "y.inner", "c.inner"), axes)
    running = Running({"out": Run("x", 8, updates=(UpdateLoops(("r", "y", "c"), Vector("y", 8)),))})
    counts = worked_counts(members, effective(members, frozenset({"weight"})), nest, {}, 1, running).at((0,))
    (work,) = (s.work for s in counts.stages if s.stage == "out" and s.work is not None)
    (scan,) = work.passes
    assert sum(o.divide for _, o in scan.operations) == pytest.approx(1.0)
    assert sum(o.divide for _, o in work.operations) == 0

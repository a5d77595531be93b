"""Counts of stages with updates: points, loads and operations, against walking small loop nests."""

from dataclasses import replace

import pytest
from support.enumerated import Walk
from support.small_pipelines import E, F, clamp, exp, pipeline, stage, x, y
from support.small_updates import histograms, r, scans, update, variable

from tilesmith.platforms import catalog
from tilesmith.platforms.core import ORDINARY
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.features.groups.fusion_group import effective, members_of
from tilesmith.scheduler.features.groups.group_counts import Levels, group_counts
from tilesmith.scheduler.features.groups.loop_nest import Nest, axis
from tilesmith.scheduler.features.groups.unroll_and_jam import points_together
from tilesmith.scheduler.features.operations.operation_counts import total, update_operations
from tilesmith.scheduler.features.pipeline.pipeline_features import gather
from tilesmith.scheduler.features.schedule_features import counts_of
from tilesmith.scheduler.frontends.document.document import load_text
from tilesmith.scheduler.ir.pipeline.expressions import Binary, Compare, Const, Var
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.pipeline.types import FLOAT32, INT32
from tilesmith.scheduler.ir.schedule.schedule import INLINE, Group, Placement, Schedule, UpdateLoops, Vector
from tilesmith.scheduler.rewrites.passes import normalise, rewrite

ORDERS = (("x.inner", "y.inner", "x.outer", "y.outer"), ("x.inner", "y.inner", "y.outer", "x.outer"))


@pytest.mark.parametrize("loops", ORDERS, ids=" ".join)
@pytest.mark.parametrize("of", [histograms(), scans()], ids=lambda of: of.name)
@pytest.mark.parametrize("tiles", [{"x": 5, "y": 4}, {"x": 7, "y": 17}], ids=str)
def test_counts_of_members_with_updates(of: Pipeline, loops: tuple[str, ...], tiles: dict[str, int]) -> None:
    facts = gather(normalise(of))
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
    facts = gather(normalise(pipelines.load("lens_blur")))
    members = members_of(facts, "output", ("sample_weight", "rendered", "output"))
    shared = points_together(members, ("x.inner", "y.inner", "c.inner"), {"rendered": 2})
    assert shared == {"rendered": {"c": 4}}
    each, once = (effective(members, frozenset({"sample_weight"}), rows=rows)["rendered"] for rows in ({}, shared))
    assert (each.executed["sample_weight"], once.executed["sample_weight"]) == (32, 8)


ATTENTION = """
format: 1
name: attention
inputs:
  - {name: s, type: float32, dims: [j, i]}
  - {name: v, type: float32, dims: [e, j]}
stages:
  - name: o
    dims: [e, i]
    value: sum(s(j, i) * v(e, j) for j in range(0, 64))
  - name: n
    dims: [i]
    value: '0.0'
    updates:
      - {domain: {j: [0, 8], e: [0, 32]}, at: [i], value: "n(i) + abs(s(j, i)) * o(e, i)"}
outputs: [n]
estimates: {s: [[0, 64], [0, 512]], v: [[0, 32], [0, 64]], n: [[0, 512]]}
"""


def test_what_is_inline_in_an_update_is_computed_in_each_of_its_iterations() -> None:
    """Iterations that do not differ in its place read it again, with all that it reads in a loop."""
    facts = gather(normalise(load_text(ATTENTION)))
    members = members_of(facts, "n", ("o", "n"))
    inline = effective(members, frozenset({"o"}))["n"]
    assert (inline.inlined["o"], inline.executed["o"]) == (32, 8 * 32)
    loads = {r.producer: (r.points, r.executed) for r in inline.reads}
    assert loads == {"s": (64, 8 * 32 * 64), "v": (64 * 32, 8 * 32 * 64)}


POOLED = """
format: 1
name: pooled
inputs:
  - {name: a, type: float32, dims: [x, k]}
  - {name: w, type: float32, dims: [k, c]}
stages:
  - {name: conv, dims: [x, c], value: "sum(a(x, k) * w(k, c) for k in range(0, 96))"}
  - {name: out, dims: [x, c], value: "max(conv(2 * x, c), conv(2 * x + 1, c))"}
outputs: [out]
estimates: {a: [[0, 512], [0, 96]], w: [[0, 96], [0, 32]], out: [[0, 256], [0, 32]]}
"""


def test_long_sums_of_a_point_share_what_they_load_where_points_are_computed_together() -> None:
    """Sums of one point are a loop each; those of several are all in one, where a weight is loaded once for both sums
    of a channel, and an element of the image once for four channels."""
    members = members_of(gather(normalise(load_text(POOLED))), "out", ("conv", "out"))
    for together, loads in ((1, {"a": 2 * 96.0, "w": 2 * 96.0}), (4, {"a": 2 * 96 / 4, "w": 96.0})):
        reads = effective(members, frozenset({"conv"}), {"c": together} if together > 1 else {})["out"].reads
        assert {r.producer: r.executed for r in reads} == loads


def test_updates_alone_are_charged_for_what_only_they_read() -> None:
    """The values load nothing, and the terms of an inline sum wait for each other in each iteration."""
    of = load_text(
        ATTENTION.replace("dims: [i]", "dims: [i, e]")
        .replace("{j: [0, 8], e: [0, 32]}, at: [i]", "{r: [1, 31]}, at: [i, r]")
        .replace("n(i) + abs(s(j, i)) * o(e, i)", "n(i, r - 1) + o(r, i)")
        .replace("n: [[0, 512]]", "n: [[0, 512], [0, 32]]")
    )
    updates = (UpdateLoops(("i", "r"), Vector("i", 8)),)
    placements = (Placement("o", INLINE, INLINE),)
    group = Group("n", ("i.inner", "e.inner"), (), None, Vector("i", 8), (), placements, updates)
    (counts,) = counts_of(rewrite(of, Schedule("attention", "hand", (group,))), catalog.load("i7-6700"))
    work = counts.stages[-1].work
    assert work is not None
    (update,) = work.passes
    assert (work.loads, update.loads) == ((), 1)
    assert {t.way: t.times for t in update.transfers} == {"gathered": pytest.approx(64), "uniform": pytest.approx(64)}
    assert update.latency > 64 * ORDINARY.latency_cycles.float_sum
    assert dict(update.operations)["f32"].multiply == pytest.approx(64)


@pytest.mark.parametrize("read", ["0.0", "s(0, i)"])
def test_updates_wait_for_their_own_chains_whatever_the_values_read(read: str) -> None:
    """The terms of a sum in an update wait for each other in each iteration."""
    of = load_text(
        ATTENTION.replace("dims: [i]", "dims: [i, e]")
        .replace("'0.0'", read)
        .replace("{j: [0, 8], e: [0, 32]}, at: [i]", "{k: [0, 64], r: [1, 31]}, at: [k, r]")
        .replace("n(i) + abs(s(j, i)) * o(e, i)", "s(0, k) + sum(s(j, k) * n(j, r - 1) for j in range(0, 64))")
        .replace("n: [[0, 512]]", "n: [[0, 512], [0, 32]]")
    )
    group = Group("n", ("i.inner", "e.inner"), (), None, Vector("i", 8), (), (), (UpdateLoops(("k", "r")),))
    (counts,) = counts_of(rewrite(of, Schedule("attention", "hand", (group,))), catalog.load("i7-6700"))
    work = counts.stages[-1].work
    assert work is not None
    (update,) = work.passes
    assert update.latency > 64 * ORDINARY.latency_cycles.float_sum


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
    assert hist.operations.add == pytest.approx(16 / 8)
    (read,) = hist.reads
    assert read.points == pytest.approx(16 / 8)
    assert read.reuse == ()


def test_a_condition_of_outer_variables_is_around_the_loop_and_no_work_of_an_iteration() -> None:
    count = update(
        (clamp(r, 0, 7), y), F("counts")(clamp(r, 0, 7), y) + 1.0, variable("r", 0, 64), variable("s", 0, 64)
    )

    def selects(of: str) -> float:
        where = Compare("<", Binary("+", Var(of), Const(1, INT32), INT32), Const(9, INT32))
        return total(update_operations(replace(count, where=where))).select - total(update_operations(count)).select

    assert (selects("s"), selects("r")) == (0, 1)


def test_a_scan_reuses_nothing_along_its_domain_but_what_stands_still() -> None:
    scale = stage("scale", "x", exp(F("input")(x, 0)))
    rows = stage("rows", "xy", exp(F("input")(x, y)))
    value = F("sums")(x, r - 1) + F("rows")(x, r) * F("scale")(x)
    sums = stage("sums", "xy", E(Const(0.0, FLOAT32)), (update((x, r), value, variable("r", 1, 30)),))
    out = stage("out", "xy", F("sums")(x, y) + 1.0)
    facts = gather(normalise(pipeline("scan", [scale, rows, sums, out], {"out": (40, 30)})))
    reads = {read.producer: dict(read.reuse) for read in facts.stages["sums"].reads}
    assert reads == {"rows": {}, "scale": {"r": float("inf")}}

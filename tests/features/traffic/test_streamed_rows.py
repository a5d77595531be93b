"""Rows past the caches: torn lines, and loads that wait for them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.group_work import ORDERS
from support.small_pipelines import F, blur, clamp, pipeline, stage, x, y

from tilesmith.platforms import catalog
from tilesmith.scheduler.features.groups.execution_mode import Run, Running
from tilesmith.scheduler.features.groups.fusion_group import effective, members_of
from tilesmith.scheduler.features.groups.loop_nest import Nest, axis
from tilesmith.scheduler.features.pipeline.pipeline_features import gather
from tilesmith.scheduler.features.schedule_features import counts_of
from tilesmith.scheduler.features.work.simd_work import worked_counts
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.rewrites.passes import normalise, rewrite
from tilesmith.scheduler.search.vectorize_and_parallelize import root_schedule


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

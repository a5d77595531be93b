"""The cost of TACO 2019: its closed forms (Eqs 1, 3 to 6, 8 to 13) on the paper's 3x3 blur, and the pricing."""

import numpy as np
import pytest
from support.small_pipelines import F, pipeline, stage, x, y

from tilesmith import platforms
from tilesmith.cost_models import (
    Breakdown,
    GroupCounts,
    LoadCounts,
    Operations,
    StageCost,
    StageCounts,
    Taco2019,
    Term,
    combined,
)
from tilesmith.cost_models.taco2019 import arithmetic_cost, load_cost
from tilesmith.scheduler.features.groups.fusion_group import effective, members_of
from tilesmith.scheduler.features.groups.group_counts import Levels, group_counts
from tilesmith.scheduler.features.groups.loop_nest import Nest, axis
from tilesmith.scheduler.features.pipeline.pipeline_features import gather
from tilesmith.scheduler.rewrites.passes import normalise

B_X, B_Y = 1024, 512
ROWS = ("x.inner", "y.inner", "x.outer", "y.outer")
COLUMNS = ("y.inner", "x.inner", "y.outer", "x.outer")
TILES = [(32, 16), (256, 32), (1024, 64), (64, 512)]


def _paper_blur(levels: Levels, loops: tuple[str, ...], t_x: int, t_y: int) -> GroupCounts:
    """The paper's blur, centred: blur_x reads input(x-1..x+1, y), blur_y reads blur_x(x, y-1..y+1)."""
    source, blur_x = F("input"), F("blur_x")
    stages = [
        stage("blur_x", "xy", (source(x - 1, y) + source(x, y) + source(x + 1, y)) / 3.0),
        stage("blur_y", "xy", (blur_x(x, y - 1) + blur_x(x, y) + blur_x(x, y + 1)) / 3.0),
    ]
    facts = gather(normalise(pipeline("blur", stages, {"blur_y": (B_X, B_Y)})))
    members = members_of(facts, "blur_y", facts.graph.stages)
    axes = {"x": axis("x", B_X, [t_x]), "y": axis("y", B_Y, [t_y])}
    nest = Nest("blur_y", loops, axes)
    return group_counts(members, effective(members, frozenset()), nest, {"blur_x": levels}, 2).at((0,))


def _blur_x(counts: GroupCounts) -> tuple[StageCounts, LoadCounts]:
    s = counts.stages[0]
    return s, s.loads[0]


@pytest.mark.parametrize(("t_x", "t_y"), TILES)
def test_overlapping_tiles(t_x: int, t_y: int) -> None:
    s, load = _blur_x(_paper_blur(Levels(2, 2), ROWS, t_x, t_y))
    tiles = (B_X // t_x) * (B_Y // t_y)
    assert s.points == t_x * (t_y + 2) * tiles  # Eq. 3
    assert s.root_points == B_X * (B_Y + 2)  # Eq. 4
    assert load_cost(load, prefetcher=False) == (t_x + 2) * (t_y + 2) * tiles  # Eq. 5
    assert load_cost(load, prefetcher=True) == (t_y + 2) * tiles  # Eq. 6
    assert s.buffer_bytes == t_x * (t_y + 2) * 4  # Eq. 1
    assert s.bytes_kept == s.buffer_bytes


@pytest.mark.parametrize(("t_x", "t_y"), TILES)
def test_a_window_that_slides(t_x: int, t_y: int) -> None:
    sliding = _paper_blur(Levels(1, 2), ROWS, t_x, t_y)
    s, load = _blur_x(sliding)
    overlapping, load_there = _blur_x(_paper_blur(Levels(2, 2), ROWS, t_x, t_y))
    assert s.points == overlapping.points
    assert load_cost(load, True) == load_cost(load_there, True)
    assert s.buffer_bytes == t_x * (t_y + 2) * 4  # Eq. 8
    assert s.folded
    assert s.bytes_kept == 3 * t_x * 4  # Eq. 9
    assert sliding.folded_bytes == 3 * t_x * 4
    assert sliding.unfolded_bytes == 0


@pytest.mark.parametrize(("t_x", "t_y"), TILES)
def test_columns_inside_rows_stream_nothing(t_x: int, t_y: int) -> None:
    s, load = _blur_x(_paper_blur(Levels(0, 1), COLUMNS, t_x, t_y))
    assert s.bytes_kept == 3 * 4  # Eq. 12
    for prefetcher in (True, False):
        assert load_cost(load, prefetcher) == 3 * (t_y + 2) * B_X * (B_Y // t_y)  # Eq. 13


def test_partial_tiles_are_charged_for_what_they_do() -> None:
    s, load = _blur_x(_paper_blur(Levels(1, 2), ROWS, 1000, 500))
    assert s.points == B_X * (500 + 2 + 12 + 2)
    assert load_cost(load, True) == 2 * (500 + 2 + 12 + 2)
    assert load_cost(load, False) == (1000 + 2 + 24 + 2) * (500 + 2 + 12 + 2)


def test_the_price_is_weighted_loads_and_recomputation() -> None:
    platform = platforms.get("i7-6700")
    counts = _paper_blur(Levels(1, 2), ROWS, 256, 32)
    breakdown = Taco2019().price(counts, platform)
    s = counts.stages[0]
    rows = (32 + 2) * 4 * 16
    recompute = (s.points - s.root_points) * 4  # two additions, and a division by a constant that counts for two
    assert breakdown.stages[0] == StageCost(
        "blur_x", "blur_y", (Term("load", platform.load_weight * rows), Term("recompute", recompute))
    )
    assert breakdown.stages[1].total == 0  # it reads the group's own buffer, and is computed once
    assert breakdown.total == platform.load_weight * rows + recompute
    without = Taco2019().price(counts, platform.model_copy(update={"prefetcher": False}))
    assert without.stages[0].terms[0].value == platform.load_weight * (256 + 2) * (32 + 2) * 4 * 16


def test_prices_are_arrays_over_candidates() -> None:
    platform = platforms.get("i7-6700")
    load = LoadCounts("a", True, True, np.array([[8.0], [4.0]]), np.array([[2.0], [1.0]]), 4)
    s = StageCounts("b", False, np.array([[10.0, 20.0, 30.0]]), 10.0, Operations(add=2), (load,), 4, False, 0.0, 0.0)
    counts = GroupCounts("b", 1, (("x", np.array([[1.0], [2.0]])),), (("x", np.array([[2.0], [1.0]])),), (s,))
    breakdown = Taco2019().price(counts, platform)
    w = platform.load_weight
    assert np.array_equal(breakdown.total, [[2 * w, 2 * w + 20, 2 * w + 40], [w, w + 20, w + 40]])
    assert breakdown.at((1, 2)).total == w + 40
    assert Taco2019().price(counts.at((1, 2)), platform) == breakdown.at((1, 2))


def test_operations_add_up() -> None:
    both = Operations(add=1, function=1) + Operations(add=2, divide=1)
    assert both == Operations(add=3, divide=1, function=1)
    assert both.scaled(2) == Operations(add=6, divide=2, function=2)
    assert arithmetic_cost(Operations(add=1, multiply=2, select=3, convert=1, narrow=1)) == 8


def test_a_breakdown_is_plain_data() -> None:
    a = Breakdown(
        "taco2019", "arithmetic operations", (StageCost("a", "a", (Term("load", 2.5), Term("recompute", 3.0))),)
    )
    b = Breakdown("taco2019", "arithmetic operations", (StageCost("b", "b", (Term("load", 1.0),)),))
    both = combined([a, b])
    assert both.total == 6.5
    assert both.to_document() == {
        "model": "taco2019",
        "unit": "arithmetic operations",
        "total": 6.5,
        "unsure": [],
        "stages": [
            {"stage": "a", "group": "a", "total": 5.5, "terms": {"load": 2.5, "recompute": 3}},
            {"stage": "b", "group": "b", "total": 1, "terms": {"load": 1}},
        ],
    }
    assert Breakdown.from_document(both.to_document()) == both

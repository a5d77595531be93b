"""Counts: closed forms of TACO 2019, and brute force on small sizes."""

from math import prod
from random import Random

import pytest
from support.enumerated import Found, Walk
from support.small_pipelines import F, blur, harris, pipeline, pyramid, stage, total, unsharp, x, y

from tilesmith.cost_models.counts import GroupCounts
from tilesmith.scheduler.features.groups.fusion_group import effective, members_of
from tilesmith.scheduler.features.groups.group_counts import Levels, group_counts
from tilesmith.scheduler.features.groups.loop_nest import Nest, axis
from tilesmith.scheduler.features.pipeline.pipeline_features import gather
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.rewrites.passes import normalise

ORDERS = (
    ("x.inner", "y.inner", "x.outer", "y.outer"),
    ("x.inner", "y.inner", "y.outer", "x.outer"),
    ("y.inner", "x.inner", "x.outer", "y.outer"),
    ("y.inner", "x.inner", "y.outer", "x.outer"),
)


def _both(
    of: Pipeline, loops: tuple[str, ...], levels: dict[str, Levels], tiles: dict[str, int]
) -> tuple[GroupCounts, dict[str, Found]]:
    """Counts of the whole pipeline as one group, and those of the walk of its loops."""
    facts = gather(normalise(of))
    members = members_of(facts, of.outputs[0], facts.graph.stages)
    reads = effective(members, frozenset(members.names[:-1]) - frozenset(levels))
    output = facts.stages[members.output]
    axes = {d: axis(d, e, [min(tiles[d], e)]) for d, e in zip(output.dims, output.extents, strict=True)}
    nest = Nest(members.output, loops, axes)
    counts = group_counts(members, reads, nest, levels, 1).at((0,))
    return counts, Walk(members, reads, loops, levels, tiles).run()


def _compare(of: Pipeline, loops: tuple[str, ...], levels: dict[str, Levels], tiles: dict[str, int]) -> None:
    counts, found = _both(of, loops, levels, tiles)
    for s in counts.stages:
        if s.inlined:
            continue
        where = (s.stage, levels, tiles, loops)
        assert s.points == found[s.stage].points, where
        for load in s.loads:
            assert load.points == found[s.stage].loads[load.producer], (load.producer, *where)
            assert load.runs == found[s.stage].runs[load.producer], (load.producer, *where)
        if s.stage != counts.output:
            walked = found[s.stage]
            assert s.buffer_bytes == s.bytes_per_point * walked.largest_box, where
            if s.folded:  # a ring along the dim that follows the outermost loop inside the store level
                along = of.stage(s.stage).dims.index(loops[levels[s.stage].store - 1].partition(".")[0])
                ring = list(walked.largest_extents)
                ring[along] = walked.largest_need[along]
                assert s.folded_bytes == s.bytes_per_point * prod(ring), where


def fusion_space(loops: tuple[str, ...]) -> tuple[Levels, ...]:
    """All pairs of compute and store level, the compute level no further out (TACO 2019, Fig. 6)."""
    return tuple(Levels(c, s) for c in range(len(loops)) for s in range(c, len(loops)))


@pytest.mark.slow
@pytest.mark.parametrize("loops", ORDERS, ids=" ".join)
def test_the_whole_fusion_space_of_blur(loops: tuple[str, ...]) -> None:
    assert len(fusion_space(loops)) == 10
    for levels in fusion_space(loops):
        for tiles in ({"x": 4, "y": 3}, {"x": 5, "y": 7}, {"x": 20, "y": 4}, {"x": 1, "y": 2}):
            _compare(blur(20, 13), loops, {"blur_x": levels}, tiles)


def _stencils(random: Random) -> Pipeline:
    """Three to five stages, each reading one or two before it in a random window."""
    stages = []
    names = ["input"]
    for n in range(random.randint(3, 5)):
        sources = {names[-1], random.choice(names)} if n else {"input"}
        offsets = [(random.randint(-1, 0), random.randint(-1, 1)) for _ in range(2)]
        reads = [F(s)(x + a, y + b) * 1.5 for s in sorted(sources) for a, b in offsets]
        stages.append(stage(f"s{n}", "xy", total(reads)))
        names.append(f"s{n}")
    return pipeline("random", stages, {names[-1]: (random.randint(18, 24), random.randint(5, 14))})


def _nested_levels(random: Random, names: tuple[str, ...], loops: tuple[str, ...]) -> dict[str, Levels]:
    """Levels for every stage, producers (later in the drawing) never inside those drawn before; those that slide do so
    inside a tile."""
    levels: dict[str, Levels] = {}
    least = 0
    for name in reversed(names):
        least = min(least + random.choice((0, 0, 1)), len(loops) - 1)
        levels[name] = Levels(least, least + (random.choice((0, 1)) if least < 2 else 0))
    return levels


@pytest.mark.parametrize("seed", range(40))
def test_random_stencils_at_random_levels(seed: int) -> None:
    random = Random(seed)
    of = _stencils(random)
    facts = gather(normalise(of))
    loops = random.choice(ORDERS)
    levels = _nested_levels(random, facts.graph.stages[:-1], loops)
    tiles = {"x": random.randint(2, 9), "y": random.randint(2, 9)}
    _compare(of, loops, levels, tiles)


@pytest.mark.parametrize("seed", range(40))
def test_random_stencils_that_slide_from_tile_to_tile(seed: int) -> None:
    random = Random(seed)
    of = _stencils(random)
    names = gather(normalise(of)).graph.stages[:-1]
    levels = {name: Levels(2, 2 + random.choice((0, 1))) for name in names}
    tiles = {"x": random.randint(2, 9), "y": random.randint(2, 5)}
    _compare(of, ORDERS[1], levels, tiles)


@pytest.mark.parametrize("tiles", [{"x": 8, "y": 5}, {"x": 30, "y": 4}, {"x": 7, "y": 19}], ids=str)
def test_harris_as_the_method_places_it(tiles: dict[str, int]) -> None:
    sliding = Levels(1, 2)
    _compare(harris(30, 19), ORDERS[0], {"gray": sliding, "Ix": sliding, "Iy": sliding}, tiles)


def test_unsharp_with_rows_and_a_kernel() -> None:
    loops = ("c.inner", "x.inner", "y.inner", "x.outer", "y.outer")
    levels = {
        "kernel": Levels(3, 3),
        "gray": Levels(2, 3),
        "blur_y": Levels(2, 2),
        "ratio": Levels(2, 2),
    }
    _compare(unsharp(21, 17), loops, levels, {"x": 21, "y": 6, "c": 3})


@pytest.mark.parametrize("tiles", [{"x": 48, "y": 8, "c": 3}, {"x": 16, "y": 4, "c": 3}], ids=str)
def test_a_pyramid_is_counted_closely(tiles: dict[str, int]) -> None:
    loops = ("c.inner", "x.inner", "y.inner", "x.outer", "y.outer")
    sliding, row = Levels(2, 3), Levels(2, 2)
    levels = {"down0": sliding, "downx1": sliding, "down1": sliding, "upx0": sliding, "interpolated0": row}
    counts, found = _both(pyramid(2, 48, 16), loops, levels, tiles)
    for s in counts.stages:
        if not s.inlined:
            assert 0.95 * found[s.stage].points <= s.points <= 1.35 * found[s.stage].points, s.stage
            for load in s.loads:
                walked = found[s.stage].loads[load.producer]
                assert 0.9 * walked <= load.points <= 1.35 * walked, (s.stage, load.producer)


def test_a_stage_that_does_not_move_with_a_loop() -> None:
    loops = ORDERS[0]
    columns = stage("columns", "x", F("input")(x, 0) + F("input")(x, 5))
    out = stage("out", "xy", F("columns")(x) * F("input")(x, y))
    of = pipeline("still", [columns, out], {"out": (19, 9)})
    for levels in fusion_space(loops):
        _compare(of, loops, {"columns": levels}, {"x": 5, "y": 4})

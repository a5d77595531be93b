"""Alg. 4 and 5 of TACO 2019 under pressure: a chain of convolutions at several sizes and last-level caches."""

from itertools import combinations

import pytest
from support.machines import KIB, MIB, machine
from support.methods import PAPER
from support.small_pipelines import E as Expression
from support.small_pipelines import F, chain, clamp, pipeline, stage, summed, x, y

from tilesmith.cost_models.taco2019 import Taco2019
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.features.pipeline.pipeline_features import gather
from tilesmith.scheduler.ir.pipeline.expressions import Var
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline, Stage
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.rewrites.passes import normalise, rewrite
from tilesmith.scheduler.search import Infeasible, autoschedule
from tilesmith.scheduler.search.taco2019.grouping import Grouping, Segment
from tilesmith.scheduler.search.tile_sizes import Tiling

CHANNELS = 16


def layers(count: int, size: int) -> Pipeline:
    """`count` convolutions of 3x3 and 16 channels on images of `size` x `size`, as those of VDSR but with sums of
    channels for weights."""
    channel, (dx, dy, i) = Expression(Var("c")), (Expression(Var(n)) for n in ("dx", "dy", "i"))
    found: list[Stage] = []
    name = "input"
    for n in range(count):
        place = (clamp(x + dx, 0, size - 1), clamp(y + dy, 0, size - 1))
        terms = F(name)(*place, i) * F("weights")(dx + 1, dy + 1, i, channel)
        body = summed(terms, i=(0, CHANNELS), dy=(-1, 3), dx=(-1, 3))
        found.append(stage(f"layer{n}", "xyc", body))
        name = f"layer{n}"
    inputs = {"input": "xyc", "weights": "abic"}
    return pipeline("layers", found, {name: (size, size, CHANNELS)}, inputs)


@pytest.mark.parametrize("size", [64, 128, 256])
def test_smaller_caches_cut_a_chain_of_convolutions_more_often(size: int) -> None:
    of = layers(12, size)
    counts = []
    for kib in (64, 256, 1024, 4096, 32 * 1024):
        result = autoschedule(of, machine(l2_bytes=256 * KIB, llc_bytes=kib * KIB), PAPER)
        check(rewrite(of, result.schedule))
        assert result.schedule.degraded is None
        counts.append(len(result.schedule.groups))
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[-1] == 1


def test_larger_images_are_cut_more_often_by_the_same_cache() -> None:
    groups = [
        len(autoschedule(layers(12, size), machine(llc_bytes=MIB), PAPER).schedule.groups)
        for size in (32, 64, 128, 256)
    ]
    assert groups == sorted(groups)
    assert groups[0] < groups[-1]


def test_the_trace_tells_which_buffers_did_not_fit_and_what_segmentations_cost() -> None:
    result = autoschedule(layers(12, 128), machine(llc_bytes=MIB), PAPER)
    split = next(d for d in result.trace.decisions if d.source == "TACO 2019, Alg. 5")
    assert split.rejected[0].choice == "one group"
    assert "folded buffers exceed the last-level cache (at least " in split.rejected[0].reason
    assert "KiB: layer" in split.rejected[0].reason
    assert split.cost is not None
    others = [r.cost for r in split.rejected if r.cost is not None]
    assert others
    assert min(others) >= split.cost
    groups = [d.cost for d in result.trace.decisions if d.kind == "group"]
    assert sum(c for c in groups if c is not None) == pytest.approx(split.cost)


@pytest.mark.parametrize("llc", [8 * KIB, 16 * KIB, 24 * KIB, 48 * KIB])
def test_the_cheapest_of_all_segmentations_is_taken(llc: int) -> None:
    """Every way to cut a chain, but for segments that do not fit, and a last one that is cut though it fits."""
    of, platform = chain(8, width=256, height=64), machine(l2_bytes=8 * KIB, llc_bytes=llc)
    facts = gather(normalise(of))
    names = facts.graph.stages
    grouping = Grouping(facts, platform, Taco2019(), lambda: False)
    parts = {
        (a, b): grouping.schedule(Segment(names[b - 1], names[a:b]))
        for a in range(len(names))
        for b in range(a + 1, len(names) + 1)
    }

    def total(cuts: tuple[int, ...]) -> float | None:
        ends = (*cuts, len(names))
        found = [parts[a, b] for a, b in zip((0, *cuts), ends, strict=True)]
        early = any(isinstance(parts[a, len(names)], Tiling) for a in (0, *cuts[:-1])) and cuts
        return None if early or any(isinstance(p, Infeasible) for p in found) else sum(p.total for p in found)  # type: ignore[union-attr]

    costs = [total(cuts) for n in range(len(names)) for cuts in combinations(range(1, len(names)), n)]
    result = autoschedule(of, platform, PAPER)
    assert float(result.predicted.total) == pytest.approx(min(c for c in costs if c is not None))


def test_vdsr_is_one_group_with_a_large_cache_and_many_with_a_small_one() -> None:
    of = pipelines.load("vdsr")
    outputs = {}
    for llc in (256 * KIB, 2 * MIB, 32 * MIB):
        result = autoschedule(of, machine(llc_bytes=llc), PAPER)
        check(rewrite(of, result.schedule))
        outputs[llc] = [g.output for g in result.schedule.groups]
    assert len(outputs[256 * KIB]) >= len(outputs[2 * MIB]) > len(outputs[32 * MIB])

"""Prices of partitions: of those that cost too much only the groups that tell so are looked at."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from random import Random
from typing import Literal

import pytest
from support.machines import KIB, MIB, machine
from support.small_pipelines import F, chain, pipeline, pyramid, stage, x, y

from tilesmith.cost_models import Ecm
from tilesmith.platforms import Platform
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.features.pipeline.pipeline_features import gather
from tilesmith.scheduler.ir.pipeline.expressions import Unary
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.rewrites.passes import normalise
from tilesmith.scheduler.search.ecm import group_candidates
from tilesmith.scheduler.search.ecm.group_candidates import Planner
from tilesmith.scheduler.search.ecm.loop_structures import KINDS
from tilesmith.scheduler.search.ecm.partition import Move, Partition, PartitionSearch
from tilesmith.scheduler.search.params import PARAMS
from tilesmith.scheduler.search.taco2019.grouping import segments

MACHINE = machine()


def search_of(pipeline: Pipeline, platform: Platform = MACHINE) -> tuple[PartitionSearch, Partition]:
    """A search of the pipeline, and the partition with every stage at root."""
    facts = gather(normalise(pipeline))
    search = PartitionSearch(facts, Planner(facts, platform, Ecm(), False, lambda: False))
    return search, search.settled(Partition(frozenset(facts.graph.stages)))


def test_a_partition_within_the_limit_costs_what_its_groups_do() -> None:
    search, roots = search_of(pyramid())
    whole = search.cost(roots)
    assert whole == sum(search.planner.cost(s) for s in search.segments(roots))
    assert search.cost(roots, whole) == whole
    assert search.cost(roots, 0.99 * whole) == inf


def test_of_a_partition_that_costs_too_much_few_groups_are_planned() -> None:
    search, roots = search_of(pyramid())
    listed = search.segments(roots)
    assert search.cost(roots, 0.1) == inf
    planned = search.planner.coarse.keys()
    stages = search.facts.stages
    assert len(planned) == 1
    assert max(listed, key=lambda s: stages[s.output].root_points).output in {s.output for s in planned}


def test_of_stages_that_are_alike_but_for_sizes_that_hardly_differ_a_few_are_planned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    anew, roots = search_of(chain(48))
    whole = anew.cost(roots)
    assert len(anew.planner.coarse) < 10
    monkeypatch.setattr(group_candidates, "PARAMS", replace(PARAMS, nearly_as_large=0.0))
    search, _ = search_of(chain(48))
    assert search.cost(roots) == pytest.approx(whole, rel=1e-3)
    assert len(search.planner.coarse) == 48
    for segment in search.segments(roots):
        assert anew.planner.cost(segment) == pytest.approx(search.planner.cost(segment), rel=5e-3)


def test_a_group_is_planned_in_the_kinds_that_led_when_it_was_first_asked_for() -> None:
    """Whether it was worked out then or not: what is found does not depend on what was cheap to rule out."""
    search, roots = search_of(pipelines.load("harris"))
    forced = search.settled(Partition(search.forced))
    assert search.cost(roots) > 0
    planner = search.planner
    planner.cost_of_all(search.segments(forced), -1.0)
    planned = planner.planned
    planner.kinds = KINDS[:1]
    found = [planner.cost(s) for s in search.segments(forced)]
    fresh, _ = search_of(pipelines.load("harris"))
    assert found == [fresh.planner.cost(s) for s in fresh.segments(forced)]
    assert planner.planned == planned


def test_groups_that_are_the_same_in_another_variant_are_priced_once() -> None:
    search, roots = search_of(pipelines.load("harris"))
    cost, before = search.cost(roots), search.planner
    last = search.facts.graph.stages[-1]
    changed = tuple(
        replace(s, values=(Unary("-", s.values[0], s.types[0]),)) if s.name == last else s
        for s in search.facts.pipeline.stages
    )
    facts = gather(replace(search.facts.pipeline, stages=changed), before=search.facts)
    after = PartitionSearch(facts, Planner(facts, MACHINE, Ecm(), False, lambda: False, before=before))
    fresh = PartitionSearch(facts, Planner(facts, MACHINE, Ecm(), False, lambda: False))
    assert after.cost(roots) == fresh.cost(roots) != cost
    assert after.planner.planned == fresh.planner.planned
    own = [s.output for s, plans in after.planner.coarse.items() if plans is not before.coarse.get(s)]
    assert own == [last]
    others = [s for s in after.segments(roots) if s.output != last]
    assert [after.planner.plans(s)[0].total for s in others] == [fresh.planner.plans(s)[0].total for s in others]


def test_groups_that_are_the_same_in_another_variant_are_worked_out_once() -> None:
    """Groups that are not looked at further, as they cost too little, are looked at where they matter."""
    search, roots = search_of(pipelines.load("harris"))
    before, facts = search.planner, gather(search.facts.pipeline)
    first, second, *_ = search.segments(roots)
    plans = before.plans(first), before.plans(second, inf)
    after = Planner(facts, MACHINE, Ecm(), False, lambda: False, before=before)
    fresh = Planner(facts, MACHINE, Ecm(), False, lambda: False)
    assert after.plans(first) is plans[0]
    assert after.plans(second) is not plans[1]
    for segment in (first, second):
        assert [p.total for p in after.plans(segment)] == [p.total for p in fresh.plans(segment)]
        group = after.finalise(after.plans(segment)[0]).group
        assert group == fresh.finalise(fresh.plans(segment)[0]).group


@pytest.mark.parametrize("name", ["local_laplacian", "lens_blur", "camera_pipe"])
def test_segments_have_every_stage_and_repeat_only_shared_ones(name: str) -> None:
    facts = gather(normalise(pipelines.load(name)))
    order = {n: k for k, n in enumerate(facts.graph.stages)}
    outputs = {*facts.graph.outputs, *facts.graph.stages[::3]}
    inlined = frozenset(facts.graph.stages[1::7]) - outputs
    found = segments(facts, facts.graph.stages, outputs, inlined)
    names = [n for s in found for n in s.names]
    assert set(names) == set(facts.graph.stages)
    assert {n for n in names if names.count(n) > 1} <= inlined
    assert [order[s.output] for s in found] == sorted(order[s.output] for s in found)
    for s in found:
        assert s.names[-1] == s.output
        assert list(s.names) == sorted(s.names, key=order.__getitem__)
        assert s.shared == inlined.intersection(s.names)
        assert all(s.names.count(c) for n in s.names[:-1] if n not in inlined for c in facts.graph.consumers[n])


@pytest.mark.parametrize("name", ["local_laplacian", "lens_blur", "camera_pipe"])
def test_a_partition_that_is_moved_has_the_groups_that_it_would_have_from_the_start(name: str) -> None:
    search, partition = search_of(pipelines.load(name))
    stages, rng = search.facts.graph.stages, Random(name)
    from_the_start = PartitionSearch(search.facts, search.planner, cuts=dict(search.cuts))
    for _ in range(100):
        stage = rng.choice(stages)
        how: tuple[Literal["cut", "join", "inline"], ...] = (
            ("join", "inline") if stage in partition.outputs else ("cut",)
        )
        if stage in search.forced:
            continue
        move, before = Move(rng.choice(how), stage), partition
        partition = search.moved(before, move)
        assert partition == from_the_start.settled(move.of(before))
        assert search.segments(partition) == from_the_start.segments(partition)
        assert search.cuts == from_the_start.cuts


def test_a_long_chain_is_joined_in_strides_to_where_no_join_pays() -> None:
    search, roots = search_of(chain(48))
    found = search.best([roots])
    groups = search.segments(found)
    joined = sum(len(s.names) - 1 for s in groups)
    assert joined > 30
    # roots, the one group that there can be, and of the joins fewer than one each
    assert len(search.planner.coarse) - len(roots.outputs) - 1 < 0.9 * joined
    least = search.cost(found)
    for s in groups[:-1]:
        assert search.cost(search.moved(found, Move("join", s.output))) >= least * PARAMS.pays


def test_partitions_on_the_way_of_a_stride_are_not_near_the_best() -> None:
    search, roots = search_of(chain(48))
    found = search.best([roots])
    compared = set(search.compared.values())
    assert len(compared) < len(search.cuts)
    assert found in compared
    assert compared.issuperset(search.near(found, 1.5 * search.cost(found), 0.0))


def test_a_group_of_a_chain_is_joined_as_many_stages_at_once_as_the_one_before_it_took() -> None:
    search, roots = search_of(chain(80), machine(l2_bytes=256 * KIB, llc_bytes=MIB))
    found = search.best([roots])
    sizes = [len(s.names) for s in search.segments(found)][1:]
    assert len(sizes) > 4
    assert len(set(sizes)) == 1
    assert len(search.planner.coarse) - len(roots.outputs) - 1 < len(roots.outputs) / 2


def test_joins_that_pay_only_together_are_made_at_once() -> None:
    a, p, q, m = map(F, ("input", "p", "q", "m"))
    stages = [
        stage("p", "xy", a(x, y) + a(x + 1, y)),
        stage("q", "xy", a(x, y) * a(x + 1, y)),
        stage("m", "xy", p(x, y) + p(x + 1, y) + q(x, y) * q(x + 1, y)),
        stage("o", "xy", m(x, y) + m(x, y + 1)),
    ]
    search, roots = search_of(pipeline("together", stages, {"o": (1536, 2560)}))
    together = Partition(frozenset("mo"))
    costs = {roots: 10.0, together: 8.0}
    search.__dict__["cost"] = search.__dict__["worked_out"] = lambda partition, most=inf: costs.get(partition, 12.0)
    assert search.best([roots]) == together


def test_what_is_the_output_of_a_group_in_any_schedule_is_inlined_in_none() -> None:
    search, roots = search_of(pyramid())
    assert search.forced
    found = search.settled(replace(roots, inlined=search.forced))
    assert not found.inlined & search.forced
    assert {s.output for s in search.segments(found)} >= search.forced

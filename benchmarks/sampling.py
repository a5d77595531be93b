"""Random legal schedules of the kind that a search chooses among: where a cost model has to tell good from bad.

Separations, grouping, levels, inlining, tile sizes, strips, vector widths, roots, registers, stores past the caches and
prefetching are drawn; a seed fixes all of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import numpy as np

from tilesmith.cost_models.taco2019 import Taco2019, arithmetic_cost
from tilesmith.platforms import Platform
from tilesmith.scheduler.errors import IllegalSchedule, ScheduleError
from tilesmith.scheduler.features.groups.fusion_group import Members, members_of
from tilesmith.scheduler.features.groups.group_counts import Levels
from tilesmith.scheduler.features.pipeline.pipeline_features import Facts, gather
from tilesmith.scheduler.features.schedule_features import counts_of
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.plan import Plan
from tilesmith.scheduler.ir.schedule.schedule import Group, Schedule, Vector
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.rewrites.passes import rewrite
from tilesmith.scheduler.search.ecm.loop_structures import fuse_rows, inline_by_cost
from tilesmith.scheduler.search.ecm.moves import ahead_bytes
from tilesmith.scheduler.search.rfactor_choice import factor_reductions
from tilesmith.scheduler.search.separable_choice import Separated, separate
from tilesmith.scheduler.search.taco2019.grouping import (
    Segment,
    forced_outputs,
    is_special,
    segments,
    shared_stages,
    trivial_shared,
)
from tilesmith.scheduler.search.taco2019.inlining import bounded, inline_trivial
from tilesmith.scheduler.search.taco2019.levels import (
    Choice,
    LoopOrder,
    choose_levels,
    needs_memory,
    nested,
)
from tilesmith.scheduler.search.taco2019.tiling import few_iterations, keeps_apart, orders
from tilesmith.scheduler.search.tile_sizes import Axes, Sized, Sizing, Tiling, structure_of
from tilesmith.scheduler.search.vectorize_and_parallelize import finished, root_group

ATTEMPTS = 400
MOST_WORK = 4.0
"""Times the arithmetic of all stages computed once that a schedule may have: more is no choice."""
SIZES = 4096


def samples(pipeline: Pipeline, platform: Platform, count: int, seed: int) -> Iterator[Schedule]:
    """At most `count` different legal schedules."""
    random = Random(f"{pipeline.name} {seed}")
    plan = rewrite(pipeline, Schedule(pipeline.name, "sampled", ()))
    factored = factor_reductions(
        plan, gather(plan.pipeline, line_bytes=platform.line_bytes, core=platform.core), platform
    )
    variants = (Separated(factored.plan, factored.facts), separate(factored.plan, factored.facts))
    seen: set[Schedule] = set()
    for _ in range(ATTEMPTS):
        if len(seen) == count:
            return
        try:
            drawn = _Drawing(random.choice(variants), platform, random).plan()
            check(drawn)
        except (IllegalSchedule, ScheduleError):
            continue
        schedule = drawn.schedule
        if schedule not in seen and _work(drawn, platform) <= MOST_WORK:
            seen.add(schedule)
            yield schedule


def _work(plan: Plan, platform: Platform) -> float:
    stages = [s for counts in counts_of(plan, platform) for s in counts.stages]
    once = {s.stage: s.root_points * arithmetic_cost(s.operations) for s in stages}
    return sum(float(s.points) * arithmetic_cost(s.operations) for s in stages) / max(1.0, sum(once.values()))


class _Drawing:
    def __init__(self, separated: Separated, platform: Platform, random: Random) -> None:
        self.separated, self.platform, self.r = separated, platform, random
        self.facts: Facts = separated.facts
        self.changed = random.choice((0.0, 0.0, 0.15, 0.4))
        self.whole = random.choice((0.1, 0.5, 0.8))
        self.fused = random.choice((0.0, 0.5, 1.0))
        self.inlining = random.choice((inline_trivial, inline_by_cost, None))
        self.streams, self.prefetch = random.random() < 0.5, random.choice((0, ahead_bytes(platform)))

    def plan(self) -> Plan:
        facts, r = self.facts, self.r
        at_root = r.choice((0.0, 0.0, 0.1, 0.3, 0.8))
        outputs = forced_outputs(facts) | {n for n in facts.graph.stages if r.random() < at_root}
        everything = Segment(facts.graph.outputs[-1], facts.graph.stages)
        shared = shared_stages(facts, everything) - outputs
        inlined = trivial_shared(facts, shared) if r.random() < 0.5 else frozenset[str]()
        groups = tuple(self.group(s) for s in segments(facts, facts.graph.stages, outputs, inlined))
        return self.separated.plan.scheduled(groups)

    def group(self, segment: Segment) -> Group:
        output = self.facts.stages[segment.output]
        alone = segment.shared.issuperset(segment.names[:-1])
        if is_special(output) or (alone and self.r.random() < 0.3):
            return root_group(self.facts, segment.output, self.platform, frozenset(segment.names[:-1]))
        members = members_of(self.facts, segment.output, segment.names, segment.shared)
        few = few_iterations(output)
        tiled = tuple(d for d in output.storage if d in output.pure and d not in few)
        if not tiled:
            return root_group(self.facts, segment.output, self.platform, frozenset(segment.names[:-1]))
        unrolled = tuple(d for d in few if not keeps_apart(members, d))
        found = [o for o in orders(output, tiled, few, unrolled) if o.vectorised]
        order = self.r.choice(found[:4] if self.r.random() < 0.5 else found)
        choices = self.levels(members, order)
        if self.r.random() < self.fused:
            choices = fuse_rows(members, choices, order, self.platform) or choices
        axes = Axes(members, tiled, self.platform, SIZES)
        sizes = {d: self.size([int(n) for n in np.ravel(axes.of(tiled[0])[d].sizes)]) for d in tiled}
        sized = Sized(structure_of(members, order, choices), sizes, 0.0)
        group = finished(Tiling(Sizing(members, self.platform, Taco2019(), axes), sized), self.platform)
        group = replace(group, stream=self.streams and self.could_stream(group), prefetch=self.prefetch)
        return self.narrower(group) if self.r.random() < 0.07 else group

    def could_stream(self, group: Group) -> bool:
        """True if the output may be written past the caches."""
        output = self.facts.definitions[group.output]
        return group.vector is not None and not output.updates and group.vector.dim == output.storage[0]

    def size(self, sizes: list[int]) -> int:
        """The whole extent, or a size with all magnitudes alike."""
        if self.r.random() < self.whole:
            return max(sizes)
        wanted = max(sizes) * 2.0 ** -self.r.uniform(0.5, 8)
        return min(sizes, key=lambda n: abs(n - wanted))

    def levels(self, members: Members, order: LoopOrder) -> dict[str, Choice]:
        """Levels by reuse, with some stages moved elsewhere."""
        choices = choose_levels(members, order)
        if self.inlining is not None:
            choices = self.inlining(members, choices, order)
        tile = next((n for n, loop in enumerate(order.loops) if loop.endswith(".outer")), len(order.loops) - 1)
        result = dict(choices)
        for name in reversed(members.names[:-1]):
            if name in members.shared or self.r.random() >= self.changed:
                continue
            row = order.innermost + 1
            places: list[Levels | None] = [Levels(tile, tile), order.levels(row, row)]
            if row + 1 < len(order.loops):
                places.append(order.levels(row, row + 1))
            if needs_memory(members, name) is None:
                places.append(None)
            result[name] = Choice(self.r.choice(places), "drawn")
        return nested(members, bounded(members, result, order), order)

    @staticmethod
    def narrower(group: Group) -> Group:
        """The group with vectors of half the lanes."""

        def half(v: Vector | None) -> Vector | None:
            return Vector(v.dim, v.lanes // 2) if v is not None and v.lanes > 2 else v

        placements = tuple(replace(p, vector=half(p.vector)) for p in group.placements)
        return replace(group, vector=half(group.vector), placements=placements)

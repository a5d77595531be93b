"""Group candidates: the ways in which the stages of one segment can be one group, priced and ranked."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from math import inf
from typing import Self

from tilesmith.scheduler.features.groups.fusion_group import Members, members_of
from tilesmith.scheduler.features.groups.stages_alike import GroupForm, group_form
from tilesmith.scheduler.features.groups.unchanged_groups import is_unchanged
from tilesmith.scheduler.features.pipeline.pipeline_features import StageFacts
from tilesmith.scheduler.features.schedule_features import counts_of_group
from tilesmith.scheduler.features.traffic.column_walks import has_columns
from tilesmith.scheduler.ir.schedule.schedule import dim_of
from tilesmith.scheduler.search.ecm.loop_structures import KINDS, Kind, shapes
from tilesmith.scheduler.search.ecm.moves import MOVES, whole_rows
from tilesmith.scheduler.search.ecm.pricing import Finalised, GroupCandidate, Pricing
from tilesmith.scheduler.search.params import PARAMS
from tilesmith.scheduler.search.taco2019.grouping import Segment, is_special
from tilesmith.scheduler.search.taco2019.levels import LoopOrder
from tilesmith.scheduler.search.taco2019.tiling import tiled_dims
from tilesmith.scheduler.search.tile_sizes import Sized, Tiling, structure_of
from tilesmith.scheduler.search.trace import Rejected
from tilesmith.scheduler.search.vectorize_and_parallelize import finished, root_group


@dataclass
class Planner(Pricing):
    """Candidates of segments, each found once. `paper` has the tilings of the method `taco2019`, which are candidates
    too. Once the deadline has passed, a segment that is not known yet is computed at root if it is a stage alone, and
    cannot be otherwise. Where fewer than `wanted` plans of a segment are found, other sizes of the best are among them.
    `further` is whether the plans of a segment that are `known` are more than the coarse ones. `asked` has the kinds of
    shape of every segment whose cost was asked for, and `planned` counts their stages. A segment has the plans of the
    one that it is `like`: itself, or the first that is the same but for names and for extents that hardly differ; these
    are `planned_forms`, by what they have in common."""

    paper: Mapping[Segment, Tiling] = field(default_factory=dict)
    known: dict[Segment, tuple[GroupCandidate, ...]] = field(default_factory=dict)
    coarse: dict[Segment, tuple[GroupCandidate, ...]] = field(default_factory=dict)
    costs: dict[Segment, float] = field(default_factory=dict)
    papers: dict[Segment, GroupCandidate] = field(default_factory=dict)
    further: dict[Segment, bool] = field(default_factory=dict)
    finalised: dict[tuple[Segment, Hashable], Finalised] = field(default_factory=dict)
    asked: dict[Segment, tuple[Kind, ...]] = field(default_factory=dict)
    likes: dict[Segment, Segment] = field(default_factory=dict)
    planned_forms: dict[Hashable, list[tuple[Segment, GroupForm]]] = field(default_factory=dict)
    planned: int = 0
    wanted: int = 1
    kinds: tuple[Kind, ...] = KINDS

    def keep_kinds(self, segments: Iterable[Segment]) -> None:
        """From now on only the kinds of shape that lead in any of these segments have coarse plans."""
        likes = dict.fromkeys(self.like(s) for s in segments if len(s.names) > 1)
        best = {p.kind for s in likes for p in _leading(self._coarse_plans(s))}
        self.kinds = tuple(k for k in KINDS if k in best) or KINDS

    def like(self, segment: Segment) -> Segment:
        """The segment whose plans this one has, too, with other names and sizes."""
        found = self.likes.get(segment)
        if found is None:
            form = group_form(self.facts, segment.names)
            shared = tuple(name in segment.shared for name in segment.names)
            planned = self.planned_forms.setdefault((form.key, shared, self._asked(segment), segment in self.paper), [])
            near = (s for s, other in planned if form.is_near(other, PARAMS.nearly_as_large))
            found = self.likes[segment] = next(near, segment)
            if found is segment:
                planned.append((segment, form))
        return found

    def plans(self, segment: Segment, least: float = 0.0) -> tuple[GroupCandidate, ...]:
        """The best plans of a segment with their best tile sizes, best first; none where it cannot be one group. If it
        costs less than `least`, the first few."""
        found = self.known.get(segment)
        return self._plans(segment, self.cost(segment) >= least) if found is None else found

    def _plans(self, segment: Segment, further: bool) -> tuple[GroupCandidate, ...]:
        found = self._known_before(segment, further) or self._worked_out(segment, further)
        self.known[segment], self.further[segment] = found, further
        return found

    def cost(self, segment: Segment) -> float:
        """The cost of the best plan, about: one tile size a shape is tried. Infinite where there is none."""
        found = self.costs.get(segment)
        if found is None:
            like = self.like(segment)
            least = next((p.total for p in self._coarse_plans(like)), inf)
            found = self.costs[segment] = least * self._share(segment, like)
        return found

    def _share(self, segment: Segment, like: Segment) -> float:
        """The points of a segment, relative to those of the one that it is like."""
        return 1.0 if segment is like else self._points(segment) / self._points(like)

    def worked_out(self, segment: Segment) -> float:
        """The cost of the best of all plans of a segment, which `cost` tells from then on."""
        self.costs[segment] = next((p.total for p in self.plans(segment)), inf)
        return self.costs[segment]

    def cost_of_all(self, segments: Sequence[Segment], most: float) -> float:
        """The cost of segments together; infinite where it is more than `most`: then those that cost most by far tell,
        and the others are not planned."""
        known = [self.costs.get(s) for s in segments]
        unknown = [s for s, cost in zip(segments, known, strict=True) if cost is None]
        for segment in unknown:
            self._asked(segment)
        found = sum([cost for cost in known if cost is not None])
        for segment in sorted(unknown, key=self._points, reverse=True):
            if found > most:
                return inf
            found += self.cost(segment)
        if unknown:
            found = sum([self.costs[s] if cost is None else cost for s, cost in zip(segments, known, strict=True)])
        return found if found <= most else inf

    def paper_cost(self, segment: Segment) -> float:
        """The cost of the paper's plan; that of the best plan, about, where there is none."""
        papers = self._papers(segment)
        return papers[0].total if papers else self.cost(segment)

    def paper_plan(self, segment: Segment) -> GroupCandidate:
        """The paper's plan of a segment that can be one group; the best one where there is none."""
        papers = self._papers(segment)
        return papers[0] if papers else self.plans(segment)[0]

    def computed_again(self, segment: Segment, least: float) -> Iterator[str]:
        """Stages but the output of which the plan that `cost` tells of computes more again than takes `least`."""
        like = self.like(segment)
        plan = self._coarse_plans(like)[0]
        if plan.counts is None:
            return
        names = dict(zip(like.names, segment.names, strict=True))
        found = {s.stage: 1 - s.root_points / max(float(s.points), 1.0) for s in plan.counts.stages if not s.inlined}
        if max(found.values()) * plan.total <= least:
            return
        for cost in self.model.price(plan.counts, self.platform).stages:
            if cost.stage != like.output and float(cost.total) * found[cost.stage] > least:
                yield names[cost.stage]

    def finalise(self, plan: GroupCandidate) -> Finalised:
        """The plan worked out."""
        if plan.finalised is not None:
            return plan.finalised
        key = (plan.segment, plan.key)
        found = self.finalised.get(key)
        if found is None:
            found = self.finalised[key] = self._finalise(plan)
        return found

    def _finalise(self, plan: GroupCandidate) -> Finalised:
        segment = plan.segment
        if plan.sized is None or plan.members is None:
            inlined = frozenset(segment.names[:-1])
            group = root_group(self.facts, segment.output, self.platform, inlined, self.strict)
            counts = counts_of_group(self.facts, group, self.platform.threads)
            return Finalised(group, counts, self.model.price(counts, self.platform), None)
        output = self.facts.stages[segment.output]
        others = (p for p in self.known.get(segment, self.coarse.get(segment, ())) if p is not plan)
        rejected = tuple(Rejected(p.sized.describe(output), "costs more", p.total) for p in others if p.sized)
        tiling = Tiling(self.sizing(plan.members), plan.sized, rejected)
        group = finished(tiling, self.platform, self.strict, self.placed)
        return Finalised(group, tiling.counts, tiling.cost, tiling)

    def _coarse_plans(self, segment: Segment) -> tuple[GroupCandidate, ...]:
        """One plan a shape, in strips, best first."""
        found = self.coarse.get(segment)
        if found is None:
            kinds = self._asked(segment)
            found = self._coarse_before(segment, kinds)
            if found is None:
                found = tuple(sorted(self._new_coarse(segment, kinds), key=lambda p: p.total))
            self.coarse[segment] = found
        return found

    def _coarse_before(self, segment: Segment, kinds: tuple[Kind, ...]) -> tuple[GroupCandidate, ...] | None:
        """The plans of these kinds of a segment that was the same `before`; None where it was not, or had others."""
        return next((b.coarse[segment] for b in self._all_before(segment, kinds) if segment in b.coarse), None)

    def _known_before(self, segment: Segment, further: bool) -> tuple[GroupCandidate, ...] | None:
        """The plans of a segment that was the same `before`, and as far worked out from the same plans; None where it
        was not."""
        for before in self._all_before(segment, self._asked(segment)):
            if before.further.get(segment) == further and before.paper.get(segment) is self.paper.get(segment):
                return before.known[segment]
        return None

    def _all_before(self, segment: Segment, kinds: tuple[Kind, ...]) -> Iterator[Self]:
        """The planners before that were asked for these kinds of shape of the segment, which was the same, the last one
        first."""
        before = self.before
        while before is not None:
            if before.asked.get(segment) == kinds and is_unchanged(self.facts, before.facts, segment.names):
                yield before
            before = before.before

    def _asked(self, segment: Segment) -> tuple[Kind, ...]:
        """The kinds of shape of a segment: those that led when it was first asked for. A stage alone has but one."""
        found = self.asked.get(segment)
        if found is None:
            self.planned += len(segment.names)
            found = self.asked[segment] = self.kinds if len(segment.names) > 1 else KINDS[:1]
        return found

    def _points(self, segment: Segment) -> int:
        return sum(self.facts.stages[n].root_points for n in segment.names)

    def _new_coarse(self, segment: Segment, kinds: tuple[Kind, ...]) -> Iterator[GroupCandidate]:
        """All these kinds of shape of the first order."""
        output = self.facts.stages[segment.output]
        alone = segment.shared.issuperset(segment.names[:-1])
        if is_special(output) or (alone and (self.expired() or not tiled_dims(output))):
            yield self._at_root(segment)
        if is_special(output) or not tiled_dims(output) or (alone and self.expired()):
            return
        if self.expired():
            yield from self._papers(segment)
            return
        paper = self.paper.get(segment)
        parts = (segment.output, segment.names, segment.shared)
        members = members_of(self.facts, *parts) if paper is None else paper.members
        order = self._first_order(members, output)
        sizes = self.strips(members, order)
        for kind, shape in shapes(members, order, kinds, self.platform):
            reads = {name: of.reads for name, of in shape.reads.items()}
            yield self.priced(segment, members, shape, sizes, kind)
            if has_columns(members, reads):
                yield self.priced(segment, members, shape, self._short_rows(members, sizes), kind)

    def _short_rows(self, members: Members, sizes: Mapping[str, int]) -> dict[str, int]:
        """The tile sizes with rows of one line: what is walked across stays until it is used up."""
        axes = self.sizing(members).axes
        return {d: min(n, axes.multiple) if axes.along_memory(d, d) else n for d, n in sizes.items()}

    def _at_root(self, segment: Segment) -> GroupCandidate:
        """The output of a segment at root, without tiles; the rest inline."""
        finalised = self._finalise(GroupCandidate(segment, 0.0))
        return GroupCandidate(segment, float(finalised.cost.total), finalised=finalised)

    def _first_order(self, members: Members, output: StageFacts) -> LoopOrder:
        """The first order in whose strips no stage with updates is computed again as a whole, if there is one."""
        orders = list(self.orders(members, output))
        stages = (self.facts.stages[n] for n in members.names[:-1])
        updated = [s for s in stages if s.updates and s.dims]
        for order in orders:
            along = dim_of(order.loops[-1])
            if all(any(members.followed(s.name, d) == along for d in s.dims) for s in updated):
                return order
        return orders[0]

    def _worked_out(self, segment: Segment, further: bool) -> tuple[GroupCandidate, ...]:
        """The plans of a segment; those of the one that it is like, where these are as far worked out."""
        like = self.like(segment)
        if like is not segment:
            found = self.known[like] if like in self.known else self._plans(like, further)
            if self.further[like] == further:
                return tuple(self._as_of_other(segment, like, p) for p in found)
        return self._sized(segment, further)

    def _as_of_other(self, segment: Segment, other: Segment, plan: GroupCandidate) -> GroupCandidate:
        """The plan of another segment for one that is like it, in as many tiles."""
        if plan.sized is None:
            return self._at_root(segment)
        of, names = plan.sized.shape, dict(zip(other.names, segment.names, strict=True))
        members = members_of(self.facts, segment.output, segment.names, segment.shared)
        choices = {names[name]: choice for name, choice in of.choices.items()}
        shape = replace(structure_of(members, of.order, choices), stream=of.stream, prefetch=of.prefetch)
        total = plan.total * self._share(segment, other)
        sized = Sized(shape, self._as_many_tiles(members, other, plan.sized), total)
        return GroupCandidate(segment, total, members, sized, plan.kind)

    def _as_many_tiles(self, members: Members, other: Segment, sized: Sized) -> dict[str, int]:
        """The tile sizes that cut the output of these members into as many tiles as they cut that of another segment;
        rows side by side stay as many."""
        output, before, order = self.facts.stages[members.output], self.facts.stages[other.output], sized.shape.order
        axes, innermost, rows = self.sizing(members).axes, dim_of(order.loops[order.innermost]), dict(order.rows)
        sizes: dict[str, int] = {}
        for d, n in sized.sizes.items():
            extent, was = output.extent(d), before.extent(d)
            if extent != was and d not in rows:
                multiple = axes.multiple_of(d, innermost)
                n = min(-(-extent // -(-was // n) // multiple) * multiple, extent)
            sizes[d] = n
        return sizes

    def _sized(self, segment: Segment, further: bool) -> tuple[GroupCandidate, ...]:
        """The coarse plans, the schedule of the paper and a single stage without tiles; and `further` the leading ones
        that have tiles in other orders, changed, and with the best of all tile sizes."""
        plans = [*self._coarse_plans(segment), *self._papers(segment)]
        if len(segment.names) == 1 and all(p.sized for p in plans):
            plans.append(self._at_root(segment))
        for varied in MOVES if further else ():
            for best in _leading(sorted(plans, key=lambda p: p.total)):
                if self.expired():
                    break
                if best.sized is not None and best.members is not None:
                    plans += varied(self, best, best.members, best.sized)
        different = {p.key: p for p in sorted(plans, key=lambda p: -p.total)}  # the cheapest of equals stays
        kept = sorted(different.values(), key=lambda p: p.total)[: PARAMS.kept_candidates]
        missing = self.wanted - len(kept) if further and not self.expired() else 0
        return tuple(sorted([*kept, *islice(self._other_sizes(kept), max(0, missing))], key=lambda p: p.total))

    def _other_sizes(self, plans: Sequence[GroupCandidate]) -> Iterator[GroupCandidate]:
        """The best plan whose tile sizes are free with others, none cheaper."""
        known = {p.key for p in plans}
        plan = next((p for p in plans if p.sized is not None and not p.sized.shape.order.rows), None)
        if plan is None or plan.sized is None or plan.members is None:
            return
        for sized in self.sizing(plan.members).dearer(plan.sized, 2 * self.wanted):
            other = replace(plan, total=sized.total, sized=sized, counts=None)
            if other.key not in known and (not sized.shape.prefetch or whole_rows(self, plan, sized)):
                yield other

    def _papers(self, segment: Segment) -> tuple[GroupCandidate, ...]:
        """The paper's plan of the segment, if there is one."""
        paper, found = self.paper.get(segment), self.papers.get(segment)
        if found is None and paper is not None:
            shape = structure_of(paper.members, paper.order, paper.choices)
            found = self.papers[segment] = self.priced(segment, paper.members, shape, paper.best.sizes)
        return () if found is None else (found,)


def _leading(plans: Sequence[GroupCandidate]) -> list[GroupCandidate]:
    """The best of some plans with tiles; and where its rows are not fused the best of those that are, if it is close:
    how memory is asked and written may turn that, and loops apart take more than is predicted rather than less."""
    sized = [p for p in plans if p.sized is not None]
    fused = (
        p for p in sized if p.kind.fused and not sized[0].kind.fused and p.total < PARAMS.fused_close * sized[0].total
    )
    return [*sized[:1], *islice(fused, 1)]

"""The method `taco2019`: Fig. 9 of the paper."""

from __future__ import annotations

from tilesmith.cost_models.counts import GroupCounts
from tilesmith.cost_models.interface import combined
from tilesmith.scheduler.ir.schedule.schedule import Group
from tilesmith.scheduler.search.candidates import candidate
from tilesmith.scheduler.search.deadline import Deadline
from tilesmith.scheduler.search.group_trace import at_root_explained, factor_explained, tiling_explained
from tilesmith.scheduler.search.method import Answer, Question
from tilesmith.scheduler.search.taco2019.grouping import AtRoot, Grouping
from tilesmith.scheduler.search.tile_sizes import Tiling
from tilesmith.scheduler.search.trace import Infeasible, Trace
from tilesmith.scheduler.search.vectorize_and_parallelize import finished, root_counts, root_group


class OfThePaper:
    """The method of the paper. It has one candidate: the others that it costs are of parts."""

    name = "taco2019"
    model = "taco2019"
    takes_fixed = False
    takes_model = False

    def search(self, question: Question) -> Answer:
        """See Method."""
        return _searched(question)


def _searched(q: Question) -> Answer:
    facts, strict, platform = q.facts, q.strict, q.platform
    grouping = Grouping(facts, platform, q.model, q.deadline.expired)
    found = grouping.group()
    groups: list[Group] = []
    counts: list[GroupCounts] = []
    at_root: dict[str, list[str]] = {}
    decisions = [*(factor_explained(f, q.plan.pipeline) for f in q.plan.schedule.factors), *grouping.decisions]
    tilings = [t for t in found.values() if isinstance(t, Tiling)]
    inside = {name for t in tilings for name in t.members.names}
    inside |= {name for t in found.values() if isinstance(t, AtRoot) for name in t.inlined}
    shared = frozenset(name for t in tilings for name in t.members.shared)
    for name in facts.graph.stages:
        here = found.get(name)
        if isinstance(here, Tiling):
            group = finished(here, platform, strict)
            groups.append(group)
            counts.append(here.counts)
            decisions += tiling_explained(here, group)
        elif here is not None or name not in inside:
            inlined = shared | here.inlined if isinstance(here, AtRoot) else shared
            group = root_group(facts, name, platform, inlined, strict)
            groups.append(group)
            counts.append(root_counts(facts, group, platform))
            decisions += at_root_explained(name, here, group)
            if isinstance(here, Infeasible):
                at_root.setdefault(here.reason, []).append(name)
    plan = q.plan.scheduled(tuple(groups), degraded_by(at_root, q.deadline))
    predicted = combined(q.model.price(c, platform) for c in counts)
    return Answer((candidate(facts, plan, counts, predicted),), Trace("taco2019", q.model.unit, tuple(decisions)))


def degraded_by(at_root: dict[str, list[str]], deadline: Deadline) -> str | None:
    """Why the schedule is not what the method would give; None where it is."""
    reasons = [f"the deadline of {deadline.ms:g} ms ended the search"] if deadline.expired() else []
    for reason, names in at_root.items():
        listed = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        reasons.append(f"computed at root, with what only they read: {listed} ({reason})")
    return "; ".join(reasons) or None

"""Fixed decisions filter what the default searches: whatever of its own answer is fixed, no slower one is found."""

from collections import Counter
from random import Random

import pytest
from support.machines import machine
from support.shipped import found as found_for
from support.small_pipelines import blur, harris, unsharp

from tilesmith.scheduler import pipelines
from tilesmith.scheduler.errors import DocumentError
from tilesmith.scheduler.features.pipeline.pipeline_features import gather
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.schedule import INLINE, Group, Placement, Schedule
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.rewrites.passes import rewrite
from tilesmith.scheduler.search import SearchOptions, SearchResult, autoschedule
from tilesmith.scheduler.search.constraints.constrained_search import bounded
from tilesmith.scheduler.search.constraints.constraints import Fixed
from tilesmith.scheduler.search.constraints.document import from_document, load
from tilesmith.scheduler.search.params import PARAMS

Decisions = dict[str, dict[str, object]]


def _of_group(group: Group) -> dict[str, object]:
    lanes = 1 if group.vector is None else group.vector.lanes
    own: dict[str, object] = {"compute": "root", "parallel": group.parallel, "unroll": list(group.unroll)}
    own |= {"stream": group.stream, "prefetch": group.prefetch, "vector": lanes}
    return own | {"loops": list(group.loops), "tiles": {t.dim: t.size for t in group.tiles}}


def _of_placement(p: Placement) -> dict[str, object]:
    if p.compute == INLINE:
        return {"compute": INLINE}
    lanes = 1 if p.vector is None else p.vector.lanes
    own: dict[str, object] = {"compute": p.compute, "store": p.store, "storage": p.storage}
    return own | {"order": list(p.order), **({} if p.storage == "registers" else {"vector": lanes})}


def _decisions(schedule: Schedule) -> Decisions:
    """All decisions of a schedule that can be fixed: those of stages that are in several groups are of each of them."""
    seen = Counter(p.stage for g in schedule.groups for p in g.placements)
    found = {g.output: _of_group(g) for g in schedule.groups}
    found |= {p.stage: _of_placement(p) for g in schedule.groups for p in g.placements if seen[p.stage] == 1}
    return found


def _subset(decisions: Decisions, random: Random) -> Decisions:
    drawn = {
        name: {key: value for key, value in own.items() if random.random() < 0.4} for name, own in decisions.items()
    }
    return {name: own for name, own in drawn.items() if own}


def _found(of: Pipeline, fixed: Fixed) -> SearchResult:
    return autoschedule(of, machine(), SearchOptions(fixed=fixed))


def _checked(of: Pipeline, best: SearchResult, decisions: Decisions) -> None:
    found = _found(of, from_document(decisions))
    check(rewrite(of, found.schedule))
    fixed = bounded(from_document(decisions), gather(found.plan.pipeline))
    assert fixed.admits(found.schedule) is None
    # where what is fixed leaves less to gain, groups of the paper may be left
    assert float(found.predicted.total) * PARAMS.paper_gain <= float(best.predicted.total) * (1 + 1e-9), decisions


@pytest.mark.parametrize("of", [blur(), harris(), unsharp()], ids=lambda p: p.name)
def test_any_part_of_the_answer_is_found_again(of: Pipeline) -> None:
    best = _found(of, Fixed())
    decisions = _decisions(best.schedule)
    _checked(of, best, decisions)
    for seed in range(6):
        _checked(of, best, _subset(decisions, Random(seed)))


@pytest.mark.slow
@pytest.mark.parametrize("name", pipelines.names()[::3])
def test_of_every_third_pipeline(name: str) -> None:
    of, best = pipelines.load(name), found_for(name)
    decisions = _decisions(best.schedule)
    _checked(of, best, decisions)
    _checked(of, best, _subset(decisions, Random(name)))


def test_nothing_fixed_is_the_default() -> None:
    for of in (blur(), harris()):
        free = autoschedule(of, machine(), SearchOptions(top=4))
        assert autoschedule(of, machine(), SearchOptions(top=4, fixed=from_document({}))).candidates == free.candidates


def test_stages_that_the_search_makes_can_be_fixed() -> None:
    """A window in two steps: what is decided of the first step is of the variant that has one."""
    of, best = pipelines.load("machado_blur"), found_for("machado_blur")
    made = [s.partial for s in best.schedule.separations]
    decisions = {name: own for name, own in _decisions(best.schedule).items() if name in made}
    assert decisions
    found = _found(of, load(decisions, of))
    assert found.schedule == best.schedule
    with pytest.raises(DocumentError, match="has no stage"):
        load({**decisions, "another": {"compute": "root"}}, of)

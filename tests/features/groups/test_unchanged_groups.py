"""Groups of stages that are the same before and after a rewrite."""

from __future__ import annotations

from dataclasses import replace

from support.small_pipelines import chain

from tilesmith.scheduler.features.groups.unchanged_groups import is_unchanged
from tilesmith.scheduler.features.pipeline.pipeline_features import Facts, gather
from tilesmith.scheduler.ir.pipeline.expressions import Binary, Const
from tilesmith.scheduler.ir.pipeline.types import FLOAT32
from tilesmith.scheduler.rewrites.passes import normalise


def with_another(facts: Facts, name: str) -> Facts:
    """The facts of the pipeline with twice as much in that stage."""
    stages = tuple(
        replace(s, values=(Binary("*", s.values[0], Const(2.0, FLOAT32), FLOAT32),)) if s.name == name else s
        for s in facts.pipeline.stages
    )
    return gather(replace(facts.pipeline, stages=stages), before=facts)


def test_groups_with_a_stage_that_changes_or_a_reader_of_it_are_others() -> None:
    facts = gather(normalise(chain(5)))
    names = facts.graph.stages
    after = with_another(facts, names[1])
    assert [is_unchanged(after, facts, (n,)) for n in names] == [True, False, False, True, True]
    assert is_unchanged(after, facts, names[3:])
    assert not is_unchanged(after, facts, names[2:])


def test_a_stage_of_partial_results_is_another() -> None:
    facts = gather(normalise(chain(3)))
    first, *others = facts.graph.stages
    after = gather(facts.pipeline, frozenset((first,)), before=facts)
    assert not is_unchanged(after, facts, (first,))
    assert is_unchanged(after, facts, others[1:])


def test_nothing_is_the_same_where_images_take_more() -> None:
    facts = gather(normalise(chain(3)))
    first, *_ = facts.graph.stages
    pipeline, sizes = facts.pipeline, (*facts.pipeline.estimates, (first, facts.estimates.regions[first]))
    after = gather(replace(pipeline, outputs=(*pipeline.outputs, first), estimates=sizes), before=facts)
    assert not any(is_unchanged(after, facts, (n,)) for n in facts.graph.stages)


def test_groups_of_stages_that_were_made_anew_are_the_same() -> None:
    facts, again = gather(normalise(chain(5))), gather(normalise(chain(5)))
    names = facts.graph.stages
    assert all(again.stages[n] is not facts.stages[n] for n in names)
    assert is_unchanged(again, facts, names)
    after = with_another(again, names[1])
    assert [is_unchanged(after, facts, (n,)) for n in names] == [True, False, False, True, True]

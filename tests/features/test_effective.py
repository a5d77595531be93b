"""Stages that are inline in another, in the order of the pipeline."""

from __future__ import annotations

from support.small_pipelines import chain

from tilesmith.scheduler.features.fusion_group import effective, members_of
from tilesmith.scheduler.features.pipeline_features import gather
from tilesmith.scheduler.rewrites.passes import normalise


def test_stages_that_are_inline_are_listed_after_what_they_read() -> None:
    facts = gather(normalise(chain(5)))
    *others, output = facts.graph.stages
    members = members_of(facts, output, facts.graph.stages)
    (reads,) = effective(members, frozenset(others)).values()
    assert reads.with_inlined(output) == list(facts.graph.stages)

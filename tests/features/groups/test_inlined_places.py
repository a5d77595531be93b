"""Places where stages that are inline are written out."""

from support.small_pipelines import F, k, pipeline, stage, summed, x, y

from tilesmith.scheduler.features.groups.fusion_group import members_of
from tilesmith.scheduler.features.groups.inlined_places import inlined_places
from tilesmith.scheduler.features.pipeline.pipeline_features import gather
from tilesmith.scheduler.rewrites.passes import normalise


def places(terms: int, inlined: set[str]) -> int:
    """Terms of a sum of places of `twice`, each of which reads `once` twice."""
    once = stage("once", "xy", F("input")(x, y) * 2.0)
    twice = stage("twice", "xy", F("once")(x, y) + F("once")(x + 1, y))
    out = stage("out", "xy", summed(F("twice")(x + k, y), k=(0, terms)))
    facts = gather(normalise(pipeline("places", [once, twice, out], {"out": (500, 400)})))
    return inlined_places(members_of(facts, "out", ("once", "twice", "out")), inlined)


def test_places_multiply_along_a_chain_of_stages() -> None:
    assert places(9, {"once", "twice"}) == 9 + 18
    assert places(9, {"once"}) == 2
    assert places(9, {"twice"}) == 9
    assert places(9, set()) == 0


def test_loops_of_long_reductions_are_written_once() -> None:
    assert places(1000, {"once", "twice"}) == 1 + 2

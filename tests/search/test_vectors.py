"""Vectors of the stages of a group."""

import pytest
from support.machines import machine
from support.small_pipelines import E, F, pipeline, stage, x, y

from tilesmith.scheduler.features.fusion_group import members_of
from tilesmith.scheduler.features.pipeline_features import gather
from tilesmith.scheduler.ir.pipeline.expressions import Cast
from tilesmith.scheduler.ir.pipeline.types import FLOAT32, UINT8
from tilesmith.scheduler.ir.schedule.schedule import Vector
from tilesmith.scheduler.rewrites.passes import normalise
from tilesmith.scheduler.search.taco2019.levels import Choice
from tilesmith.scheduler.search.taco2019.tiling import orders, tiled_dims
from tilesmith.scheduler.search.vectorize_and_parallelize import group_of


@pytest.mark.parametrize(("loop", "lanes"), [("x.inner", 16), ("y.inner", 64)])
def test_what_is_computed_for_a_vector_has_no_wider_ones(loop: str, lanes: int) -> None:
    """A register has four times as many bytes, which would be points that no vector of the output reads."""
    bytes_ = stage("bytes", "xy", F("input", UINT8)(x, y) + F("input", UINT8)(x, y + 1))
    out = stage("out", "xy", E(Cast(F("bytes", UINT8)(x, y).e, FLOAT32)) * 0.5)
    facts = gather(normalise(pipeline("bytes", [bytes_, out], {"out": (4096, 480)}, type=UINT8)))
    members, output = members_of(facts, "out", ("bytes", "out")), facts.stages["out"]
    order = next(o for o in orders(output, tiled_dims(output), (), ()) if o.vectorised)
    at = order.loops.index(loop)
    group = group_of(members, order, {"bytes": Choice(order.levels(at, at), "", "")}, machine(), strict=False)
    assert group.vector == Vector("x", 16)
    assert [p.vector for p in group.placements] == [Vector("x", lanes)]

"""Vectors of the stages of a group."""

import re

import pytest
from support.machines import machine
from support.small_pipelines import E, F, pipeline, stage, x, y

from tilesmith.scheduler.features.groups.fusion_group import Members, members_of
from tilesmith.scheduler.features.pipeline.pipeline_features import gather
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pipeline.expressions import Cast
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.pipeline.types import FLOAT32, UINT8
from tilesmith.scheduler.ir.schedule.schedule import Vector
from tilesmith.scheduler.rewrites.passes import normalise
from tilesmith.scheduler.search.ecm.loop_structures import Kind, shapes
from tilesmith.scheduler.search.taco2019.levels import Choice, LoopOrder
from tilesmith.scheduler.search.taco2019.tiling import orders, tiled_dims
from tilesmith.scheduler.search.vectorize_and_parallelize import group_of, root_group, wide_vector_of


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


def weights_of_a_point(partial: frozenset[str] = frozenset()) -> tuple[Members, LoopOrder]:
    """A point reads 8 weights twice, computed for it, that lie side by side in memory."""
    read = "weight(k, x, y) + weight(k, x - 1, y)"
    document = {
        "format": 1, "name": "weighted",
        "inputs": [{"name": "a", "type": "float32", "dims": ["x", "y"], "boundary": {"kind": "repeat_edge"}}],
        "stages": [
            {"name": "weight", "dims": ["k", "x", "y"], "value": "exp(a(x - 1, y) * float32(k)) / (1.0 + a(x, y))"},
            {"name": "out", "dims": ["x", "y"], "value": f"sum({read} for k in range(8))"},
        ],
        "outputs": ["out"], "estimates": {"out": [[0, 1024], [0, 768]]},
    }  # fmt: skip
    facts = gather(normalise(load(document)), partial)
    members = members_of(facts, "out", ("weight", "out"))
    return members, next(o for o in orders(facts.stages["out"], ("x", "y"), (), ()) if o.vectorised)


def test_vectors_in_registers_run_along_the_row_that_reads_them() -> None:
    members, order = weights_of_a_point()
    assert members.facts.stages["weight"].row == "k"
    ((_, shape),) = shapes(members, order, (Kind(False, True),), machine())
    (placement,) = group_of(members, shape.order, shape.choices, machine(), strict=False).placements
    assert (placement.storage, placement.vector) == ("registers", Vector("x", 16))


def test_partial_results_along_memory_are_not_in_registers_across_it() -> None:
    members, order = weights_of_a_point(frozenset({"weight"}))
    ((_, shape),) = shapes(members, order, (Kind(False, True),), machine())
    assert not any(at.registers for at in shape.levels.values())


def pool(channels: int) -> Pipeline:
    """A max pool of bytes, which becomes integers of 32 bits."""
    document = {
        "format": 1, "name": "pool",
        "inputs": [{"name": "a", "type": "uint8", "dims": ["c", "x"]}],
        "stages": [
            {"name": "most", "dims": ["c", "x"], "value": "max(a(c, 2 * x + i) for i in range(5))"},
            {"name": "out", "dims": ["c", "x"], "value": "int32(most(c, x))"},
        ],
        "outputs": ["out"], "estimates": {"out": [[0, channels], [0, 1000]]},
    }  # fmt: skip
    return normalise(load(document))


@pytest.mark.parametrize(("channels", "lanes"), [(4096, 64), (128, 64), (96, 32), (100, 16), (64, 32)])
def test_vectors_are_as_long_as_a_register_of_what_is_inline_has_lanes(channels: int, lanes: int) -> None:
    """Most operations are on bytes, four registers of the results at a time: in short rows where nothing is left of
    two vectors or more."""
    facts = gather(pool(channels))
    members, output = members_of(facts, "out", ("most", "out")), facts.stages["out"]
    order = next(o for o in orders(output, tiled_dims(output), (), ()) if o.vectorised)
    group = group_of(members, order, {"most": Choice(None, "", "")}, machine(), strict=False)
    assert group.vector == Vector("c", lanes)
    assert root_group(facts, "out", machine(), frozenset({"most"})).vector == Vector("c", lanes)


@pytest.mark.parametrize(
    ("values", "lanes"),
    [
        (["lo"], 64),
        (["lo", "hi"], 64),
        (["lo", "hi", "lo"], 64),
        (["lo", "uint8(int16(lo) + hi >> 1)"], 64),
        (["lo", "uint8(float32(lo) * 0.5)"], 32),  # four registers of floats, beside those of another value
        (["lo", "int16(hi)"], 32),
    ],
)
def test_values_of_a_tuple_are_as_wide_as_the_widest_of_them(values: list[str], lanes: int) -> None:
    """Each is stored apart: two bytes are no 16 bits. What is computed for it takes two registers, at most."""
    own = {"lo": "min(a(x, y), a(x + 1, y))", "hi": "max(a(x, y), a(x + 1, y))"}
    written = [re.sub(r"\b(lo|hi)\b", lambda m: own[m[0]], v) for v in values]
    document = {
        "format": 1, "name": "ends", "inputs": [{"name": "a", "type": "uint8", "dims": ["x", "y"]}],
        "stages": [{"name": "out", "dims": ["x", "y"], "value": written}],
        "outputs": ["out"], "estimates": {"out": [[0, 4096], [0, 480]]},
    }  # fmt: skip
    stage_ = gather(normalise(load(document))).stages["out"]
    vector = wide_vector_of(stage_, stage_.computed_bytes, machine(), typed=stage_.typed)
    assert vector is not None
    assert vector.lanes == lanes

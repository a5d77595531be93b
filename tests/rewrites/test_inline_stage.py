"""Inlining of stages and its inverse: the same values, and one undoes the other."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest
from support.random_pipelines import random_inputs, random_params, random_pipeline, random_regions
from support.rule_expressions import pointwise

from tilesmith.scheduler.frontends.document.document import load, to_document
from tilesmith.scheduler.interpreter.interpreter import interpret
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.pipeline.printer import to_text
from tilesmith.scheduler.rewrites.expression_rules.places import Place, expressions, operands, parts
from tilesmith.scheduler.rewrites.inline_stage import extracted, inlined
from tilesmith.scheduler.rewrites.refusal import Refusal


def pipeline(*stages: dict, outputs: tuple[str, ...] = ("out",)) -> Pipeline:
    return load(
        {
            "format": 1,
            "name": "p",
            "inputs": [{"name": "a", "type": "uint8", "dims": ["x"]}, {"name": "b", "type": "uint8", "dims": ["x"]}],
            "stages": [{"dims": ["x"], **s} for s in stages],
            "outputs": list(outputs),
            "estimates": {name: [[0, 16]] for name in outputs} | {"f": [[0, 18]]},
        }
    )


F = {"name": "f", "value": "uint16(a(x)) + 1"}


def done(found: Pipeline | Refusal) -> Pipeline:
    assert isinstance(found, Pipeline), found
    assert load(to_document(found)) == found
    return found


def test_values_stand_where_they_were_read() -> None:
    p = pipeline(F, {"name": "out", "value": "f(x) * f(2 * x + 1)"})
    q = done(inlined(p, "f"))
    assert [s.name for s in q.stages] == ["out"]
    assert to_text(q.stage("out").values[0]) == "(uint16(a(x)) + 1) * (uint16(a(2 * x + 1)) + 1)"
    assert q.estimate("f") is None


def test_an_output_stays() -> None:
    q = done(inlined(pipeline(F, {"name": "out", "value": "f(x) * 2"}, outputs=("f", "out")), "f"))
    assert [s.name for s in q.stages] == ["f", "out"]
    assert to_text(q.stage("out").values[0]) == "(uint16(a(x)) + 1) * 2"


def test_updates_and_indices_are_readers() -> None:
    p = pipeline(
        {"name": "f", "value": "b(x) % 16"},
        {"name": "out", "value": "a(int32(f(x)))", "updates": [
            {"domain": {"r": [0, 4]}, "where": "f(r) > 2", "at": ["f(r)"], "value": "out(f(r)) + f(r)"}]},
    )  # fmt: skip
    q = done(inlined(p, "f"))
    assert to_text(q.stage("out").values[0]) == "a(b(x) % 16)"
    assert to_document(q)["stages"][0]["updates"][0] == {
        "domain": {"r": [0, 4]}, "where": "b(r) % 16 > 2", "at": ["int32(b(r) % 16)"],
        "value": "out(b(r) % 16) + b(r) % 16",
    }  # fmt: skip


def test_loops_are_named_apart() -> None:
    p = pipeline(
        {"name": "f", "value": "sum(uint16(a(x + r)) for r in range(0, 3))"},
        {"name": "out", "value": "sum(f(x + r) for r in range(0, 2)) + f(int32(f(x) % 7))"},
    )
    q = done(inlined(p, "f"))
    assert "f(" not in to_text(q.stage("out").values[0])


@pytest.mark.parametrize(
    ("stage", "why"),
    [
        ({"updates": [{"domain": {}, "at": [3], "value": "uint16(7)"}]}, "it has updates"),
        ({"boundary": {"kind": "repeat_edge", "domain": [[0, 8]]}}, "it has a boundary: beyond"),
    ],
)
def test_what_is_no_expression_is_refused(stage: dict, why: str) -> None:
    found = inlined(pipeline({**F, **stage}, {"name": "out", "value": "f(x) * 2"}), "f")
    assert isinstance(found, Refusal)
    assert (found.rule, found.where) == ("inline_stage", "f")
    assert why in found.why


def test_nothing_to_do_is_refused() -> None:
    p = pipeline(F, {"name": "out", "value": "f(x) * 2"})
    assert inlined(p, "out") == Refusal("inline_stage", "out", "no stage reads it")
    assert inlined(p, "g") == Refusal("inline_stage", "g", "there is no such stage")


def test_what_grows_beyond_the_limits_is_refused() -> None:
    names = ["f", *(f"g{n}" for n in range(16))]
    chain = [{"name": g, "value": f"{f}(x) * {f}(x + 1)"} for f, g in pairwise(names)]
    p = pipeline({"name": "f", "value": "a(x)"}, *chain, {"name": "out", "value": "g15(x)"})
    for name in names[1:]:
        q = inlined(p, name)
        if isinstance(q, Refusal):
            assert "more than 20000 parts" in q.why
            return
        p = q
    pytest.fail("2**16 reads are within the limits")


def test_a_part_becomes_a_stage() -> None:
    p = pointwise("sqrt(u(x, y) + v(x + 1, y)) * w(x, y)")
    q = done(extracted(p, Place.parse("f0.value.left.args[0]"), "g"))
    assert [(s.name, to_text(s.values[0])) for s in q.stages] == [
        ("g", "u(x, y) + v(x + 1, y)"),
        ("f0", "sqrt(g(x, y)) * w(x, y)"),
    ]
    assert done(inlined(q, "g")) == p


def test_its_dims_are_what_it_depends_on() -> None:
    p = pointwise("sum(u(r, y) * v(r, y) + w(x, y) for r in range(0, 3))", "u(3, 4) + 1.0")
    q = done(extracted(p, Place.parse("f0.value.body.left"), "g"))
    assert q.stage("g").dims == ("y", "r")
    assert to_text(q.stage("f0").values[0]) == "sum(g(y, r) + w(x, y) for r in range(0, 3))"
    assert done(extracted(p, Place.parse("f1.value"), "h")).stage("h").dims == ()


@pytest.mark.parametrize(
    ("place", "name", "why"),
    [
        ("f0.value.left", "g", "it is no operation"),
        ("f0.value", "f1", "the name is taken"),
        ("f0.value", "for", "this is no name for a stage"),
        ("f2.value", "g", "there is no stage 'f2'"),
        ("f0.value.args[0]", "g", "there is no 'args[0]': this has left, right"),
    ],
)
def test_refusals(place: str, name: str, why: str) -> None:
    p = pointwise("u(x, y) + v(x, y)", "w(x, y)")
    assert extracted(p, Place.parse(place), name) == Refusal("extract_stage", place, why)


def test_what_reads_its_own_stage_is_refused() -> None:
    p = pipeline({**F, "updates": [{"domain": {"r": [1, 4]}, "at": ["r"], "value": "f(r - 1) * 2"}]}, outputs=("f",))
    found = extracted(p, Place.parse("f.updates[0].value"), "g")
    assert found == Refusal("extract_stage", "f.updates[0].value", "it reads the stage itself")


@pytest.mark.parametrize("seed", range(24))
def test_random_pipelines_keep_their_values(seed: int) -> None:
    rng = random.Random(seed)
    before = load(random_pipeline(seed))
    regions, params = random_regions(before, seed), random_params(before, seed)
    images = random_inputs(before, seed, regions, params)
    expected = interpret(before, images, params, regions)
    after, n = before, 0
    for _ in range(6):
        if rng.random() < 0.5:
            found = inlined(after, rng.choice(after.stages).name)
        else:
            stage = rng.choice(after.stages)
            inner = [p for whole in expressions(stage) for p in parts(whole) if operands(p.e)]
            if not inner:
                continue
            n += 1
            found = extracted(after, Place(stage.name, rng.choice(inner).path), f"part{n}")
        if isinstance(found, Pipeline):
            after = done(found)
    got = interpret(after, images, params, regions)
    for name, arrays in expected.items():
        for a, b in zip(arrays, got[name], strict=True):
            np.testing.assert_array_equal(b, a, strict=True)

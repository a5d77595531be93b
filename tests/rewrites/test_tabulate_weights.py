"""Tabulation of weights: what is the same for the iterations of a loop is a stage, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.machines import here

from tilesmith.scheduler.codegen.loopnest import to_text as loop_nest
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.pipeline.printer import to_text
from tilesmith.scheduler.ir.schedule.schedule import Group, Schedule
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.rewrites.passes import normalise, rewrite
from tilesmith.scheduler.search import autoschedule
from tilesmith.scheduler.search.explain import to_text as explained

LOOPS = "for j in range(-4, 5) for i in range(-4, 5)"
SHORT = "for j in range(-1, 2) for i in range(-1, 2)"
A, B = "a(x + i, y + j)", "a(x + k, y)"


def pipeline_of(*values: str, dims: str = "xy") -> Pipeline:
    """The stages `f0`, `f1`, ..., all of them outputs, of these values; an input `a`, a stage `fixed(i)` of no data, a
    param `s`."""
    made = [{"name": f"f{n}", "dims": [*dims], "value": v} for n, v in enumerate(values)]
    fixed = {"name": "fixed", "dims": ["i"], "value": "float32(i * i) + 0.5"}
    names = [str(s["name"]) for s in made]
    return load(
        {
            "format": 1,
            "name": "test",
            "params": [{"name": "s", "type": "float32", "default": 2.0, "min": 1, "max": 4}],
            "inputs": [{"name": "a", "type": "float32", "dims": ["x", "y"], "boundary": {"kind": "repeat_edge"}}],
            "stages": [fixed, *made],
            "outputs": names,
            "estimates": {n: [[0, 64], [0, 48], [0, 3]][: len(dims)] for n in names},
        }
    )


def tables(of: Pipeline) -> dict[str, str]:
    """The stages that the strict normal form has beside those of the pipeline, as `name(dims)` with their values; it
    computes the same, bit for bit, and normal forms are normal."""
    normal, relaxed = normalise(of, strict=True), normalise(of)
    assert normalise(normal, strict=True) is normal
    assert normalise(relaxed) is relaxed
    known = {s.name for s in of.stages}
    image = Image(np.random.default_rng(0).random((9, 12)).astype(np.float32), (-2, 1))
    regions = {n: ((-3, 7), (2, 5), (0, 3))[: len(of.stage(n).dims)] for n in of.outputs}
    before, after, alike = (interpret(p, {"a": image}, {"s": 1.7}, regions) for p in (of, normal, relaxed))
    for name in of.outputs:
        np.testing.assert_array_equal(after[name][0], before[name][0])
        np.testing.assert_allclose(alike[name][0], before[name][0], rtol=1e-4)
    return {f"{s.name}({', '.join(s.dims)})": to_text(s.values[0]) for s in normal.stages if s.name not in known}


TABULATED = [
    (f"sum({A} * exp(-float32(i * i + j * j)) {LOOPS})", {"(i, j)": "exp(-float32(i * i + j * j))"}),
    # functions of one loop each are tables of one dim each
    (
        f"sum({A} * exp(-float32(i * i)) * cos(float32(j)) {LOOPS})",
        {"(i)": "exp(-float32(i * i))", "1(j)": "cos(float32(j))"},
    ),
    (f"sum({A} * (exp(float32(i)) * float32(j)) {LOOPS})", {"(i)": "exp(float32(i))"}),
    # what is small beside a function of all loops is part of its table
    (f"sum({A} * (exp(float32(i + j)) * float32(j)) {LOOPS})", {"(i, j)": "exp(float32(i + j)) * float32(j)"}),
    # written out, its terms have numbers for i and j, but not for the param
    (f"sum({A} * exp(-float32(i * i + j * j) / s) {SHORT})", {"(i, j)": "exp(-float32(i * i + j * j) / s)"}),
    (f"sum({A} * (1.0 / (1.0 + float32(i * i))) {LOOPS})", {"(i)": "1.0 / (1.0 + float32(i * i))"}),
    (f"sum({A} * sqrt(float32(i + 9)) {LOOPS})", {"(i)": "sqrt(float32(i + 9))"}),
    (f"{A.replace('i', '1').replace('j', '1')} / sum(float32(i * j) {LOOPS})", {"()": f"sum(float32(i * j) {LOOPS})"}),
    ("a(x, y) / sum(fixed(i + x) for i in range(99))", {"(x)": "sum(fixed(i + x) for i in range(0, 99))"}),
    # one dim of the stage, along which a table may be long
    (f"sum({B} * sin(float32(x * k)) for k in range(3))", {"(x, k)": "sin(float32(x * k))"}),
    (f"sum({B} * sin(float32(y * k)) for k in range(3))", {"(y, k)": "sin(float32(y * k))"}),
    ("a(x, y) * sin(float32(x))", {"(x)": "sin(float32(x))"}),
    (f"max({A} if sqrt(float32(i * i + j * j)) < s else 0.0 {LOOPS})", {"(i, j)": "sqrt(float32(i * i + j * j))"}),
    (f"sum({A} {LOOPS} if sqrt(float32(i * i + j * j)) < s)", {"(i, j)": "sqrt(float32(i * i + j * j))"}),
]  # fmt: skip


@pytest.mark.parametrize(("value", "found"), TABULATED, ids=[v for v, _ in TABULATED])
def test_what_few_loops_say_is_a_table(value: str, found: dict[str, str]) -> None:
    assert tables(pipeline_of(value)) == {f"f0_weights{k}": v for k, v in found.items()}


@pytest.mark.parametrize(
    "value",
    [
        f"sum({A} * exp(-float32(i * i + j * j)) {SHORT})",  # numbers, once it is written out
        f"sum({A} * float32(i * i + j * j) {LOOPS})",  # no function
        f"sum({A} * float32(i * i) / 9.0 {LOOPS})",  # a product with a number
        f"sum({A} * exp({A}) {LOOPS})",  # of data
        f"sum({A} * exp(a(x, y) * float32(i)) {LOOPS})",
        f"sum({A} * exp(float32(x + i + y + j)) {LOOPS})",  # of all loops
        f"sum({A} * exp(float32(x + y + i)) {LOOPS})",  # of two dims of the stage: a table as large as it
        f"sum(a(x + clamp(int32(exp(float32(i))), 0, 9), y + j) {LOOPS})",  # an index
        "a(x, y) * sin(float32(y))",  # computed before each row
        "a(x, y) * sqrt(float32(x))",  # an instruction
        "a(x, y) * sin(s)",
        f"sum(exp(float32(i * x + j * y)) {LOOPS})",  # no data at all: it is a table already
    ],
)
def test_what_is_no_table(value: str) -> None:
    assert tables(pipeline_of(value)) == {}


def test_weights_are_made_once_whoever_reads_them() -> None:
    w = "exp(-float32(i * i + j * j) / s)"
    other = "exp(-float32(p * p + q * q) / s)"
    of = pipeline_of(
        f"sum({A} * {w} {LOOPS}) / sum({w} {LOOPS})",
        f"sum(a(x + p, y - q) * {other} for q in range(-9, 10) for p in range(-2, 3))",
    )
    assert tables(of) == {"f0_weights(i, j)": w, "f0_weights1()": f"sum({w} {LOOPS})"}


def test_a_bank_of_filters_has_a_table_of_three_dims() -> None:
    w = "cos(float32(i * c) + s * float32(j))"
    assert tables(pipeline_of(f"sum({A} * {w} {LOOPS})", dims="xyc")) == {"f0_weights(c, i, j)": w}


def test_factors_of_the_same_loops_are_one_table() -> None:
    """Not where floats are strict: in the order written a product of weights is none of these factors."""
    first, second = "exp(-float32(i * j))", "cos(float32(i + j) * s)"
    of = pipeline_of(
        f"sum({first} * {A} * 0.5 * float32(k + 1) * {second} * sqrt(float32(i + 9)) {LOOPS} for k in range(2))"
    )
    assert list(tables(of).values()) == [first, second, "sqrt(float32(i + 9))"]
    made = {s.name: to_text(s.values[0]) for s in normalise(of).stages}
    assert made["f0_weights"] == f"{first} * {second} * sqrt(float32(i + 9))"
    assert "float32(k + 1) * f0_weights(i, j) for" in made["f0"]


def test_updates_have_tables() -> None:
    update = {
        "domain": {"i": [0, 9], "j": [0, "a.extent.y"]},
        "at": ["x"],
        "value": "total(x) + a(x + i, j) * exp(float32(i)) / (1.0 + sin(float32(j)) * s)",
    }
    of = load(
        {
            "format": 1,
            "name": "test",
            "params": [{"name": "s", "type": "float32", "default": 0.5, "min": 0, "max": 0.7}],
            "inputs": [{"name": "a", "type": "float32", "dims": ["x", "y"]}],
            "stages": [{"name": "total", "dims": ["x"], "value": "0.0", "updates": [update]}],
            "outputs": ["total"],
            "estimates": {"total": [[0, 64]], "a": [[0, 72], [0, 40]]},
        }
    )
    normal = normalise(of)
    assert normalise(normal) is normal
    assert [(s.name, s.dims, to_text(s.values[0])) for s in normal.stages[:-1]] == [
        ("total_weights", ("i",), "exp(float32(i))"),
        ("total_weights1", ("j",), "1.0 + sin(float32(j)) * s"),
    ]
    image = Image(np.random.default_rng(0).random((5, 20)).astype(np.float32), (0, 0))
    before, after = (interpret(p, {"a": image}, {"s": 0.5}, {"total": ((1, 9),)})["total"][0] for p in (of, normal))
    np.testing.assert_array_equal(after, before)


def test_a_schedule_without_the_tables_computes_weights_where_they_are_written() -> None:
    of = pipeline_of(f"sum({A} * exp(-float32(i * j)) {LOOPS})")
    group = Group("f0", ("x.inner", "y.inner"), (), None, None, (), ())
    by_hand = Schedule(of.name, "hand", (group,))
    plan = rewrite(of, by_hand)
    check(plan)
    assert "f0_weights" not in {s.name for s in plan.pipeline.stages}
    table = replace(group, output="f0_weights", loops=("i.inner", "j.inner"))
    whole = rewrite(of, replace(by_hand, groups=(table, group)))
    check(whole)
    assert "f0_weights" in {s.name for s in whole.pipeline.stages}


def test_weights_of_a_long_reduction_are_computed_once_and_told() -> None:
    found = autoschedule(pipeline_of(f"sum({A} * exp(-float32(i * j)) {LOOPS})"), here())
    assert "produce f0_weights" in loop_nest(found.plan)
    text = explained(found.schedule, found.trace)
    assert "what takes functions of few loops, and no data, is a table: f0_weights" in text

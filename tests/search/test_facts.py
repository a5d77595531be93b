"""Facts that the search decides on: arithmetic, widths, regions, the graph."""

from dataclasses import replace

import pytest
from support.small_pipelines import (
    E,
    F,
    blur,
    clamp,
    exp,
    harris,
    pipeline,
    pyramid,
    stage,
    summed,
    total,
    unsharp,
    x,
    y,
)

from cost_models.operations import Operations
from scheduler.analysis.estimated_bounds import estimated_regions
from scheduler.analysis.stage_graph import stage_graph
from scheduler.features.fusion_group import effective, members_of
from scheduler.features.operation_counts import element_bytes_used, operations, typed_operations, work_apart
from scheduler.features.operation_counts import total as all_types
from scheduler.features.pipeline_features import gather
from scheduler.frontends.document.document import load
from scheduler.ir.pipeline.expressions import Binary, Call, Cast, Compare, Const, Select, Unary, Var
from scheduler.ir.pipeline.types import FLOAT32, FLOAT64, INT32, UINT8, UINT16, ScalarType

f, g = F("f"), F("g", INT32)


def _count(e: E) -> Operations:
    return operations(stage("g", "xy", e))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (f(x, y) + f(x + 1, y) * 2.0, Operations(add=1, multiply=1)),
        (f(x, y) / 3.0, Operations(divide_by_constant=1)),
        (f(x, y) / f(x + 1, y), Operations(divide=1)),
        (exp(f(x, y)), Operations(function=1)),
        (E(Unary("-", f(x, y).e, FLOAT32)), Operations(add=1)),
        (E(Cast(f(x, y).e, UINT8)), Operations(convert=1)),
        (E(Call("clamp", (f(x, y).e, Const(0.0, FLOAT32), Const(1.0, FLOAT32)), FLOAT32)), Operations(select=2)),
        (summed(f(x, y) * 2.0, r=(0, 3), s=(0, 5)), Operations(add=15, multiply=15)),
        (f(x * 2 + 1, y // 2), Operations()),
        (f(clamp(x, 0, 9), y % 4), Operations(index=3)),
        (
            E(Select(Compare("<", f(x, y).e, Const(1.0, FLOAT32)), f(x, y).e, f(y, x).e, FLOAT32)),
            Operations(select=2),
        ),
        (E(Select(Compare("<", Var("x"), Const(3, INT32)), f(x, y).e, f(y, x).e, FLOAT32)), Operations(select=1)),
    ],
    ids=lambda v: "" if isinstance(v, E) else str(v),
)
def test_operations_of_one_point(value: E, expected: Operations) -> None:
    assert _count(value) == expected


def test_the_widest_type_that_is_computed_with() -> None:
    narrow = F("f", UINT8)
    widened = E(Cast(narrow(x, y).e, UINT16)) + E(Cast(narrow(x + 1, y).e, UINT16))
    assert element_bytes_used(stage("g", "xy", narrow(x, y))) == 1
    assert element_bytes_used(stage("g", "xy", E(Cast(widened.e, UINT8)))) == 2
    assert element_bytes_used(stage("g", "xy", E(Cast(narrow(x, y).e, FLOAT64)))) == 8
    picked = E(Select(Compare("<", Var("x"), Const(3, INT32)), narrow(x, y).e, narrow(y, x).e, UINT8))
    assert element_bytes_used(stage("g", "xy", picked)) == 1  # a dim compared is not data


def test_regions_follow_the_reads() -> None:
    regions = estimated_regions(blur(100, 50))
    assert regions["blur_y"] == ((0, 100), (0, 50))
    assert regions["blur_x"] == ((0, 100), (0, 52))
    assert regions["input"] == ((0, 102), (0, 52))
    assert estimated_regions(harris(60, 40))["gray"] == ((-2, 64), (-2, 44))
    assert estimated_regions(unsharp(60, 40))["kernel"] == ((0, 4),)
    levels = estimated_regions(pyramid(3, 64, 32))
    assert levels["down2"] == ((0, 17), (0, 9), (0, 4))
    assert levels["down0"][1] == (-3, 39)


def test_clamped_reads_stay_inside() -> None:
    out = stage("out", "x", F("row")(clamp(x - 5, 0, 20)) * 2.0)
    row = stage("row", "x", F("input")(x))
    assert estimated_regions(pipeline("p", [row, out], {"out": (100,)}, {"input": "x"}))["row"] == ((0, 21),)


def test_estimates_of_the_document_widen_what_is_inferred() -> None:
    index = E(Cast(F("input")(x).e, INT32))
    lut = stage("lut", "k", exp(E(Cast(Var("k"), FLOAT32))))
    out = stage("out", "x", F("lut")(index))
    of = pipeline("p", [lut, out], {"out": (100,)}, {"input": "x"})
    assert estimated_regions(of)["lut"] == ((0, 1),)  # an index that may be anything, and nothing said
    said = replace(of, estimates=tuple(sorted([*of.estimates, ("lut", ((0, 256),))])))
    assert estimated_regions(said)["lut"] == ((0, 256),)


def test_reads_are_merged_by_producer() -> None:
    facts = gather(harris())
    reads = {r.producer: r for r in facts.stages["Sxx"].reads}
    assert reads["Ixx"].points == 9
    assert [(s.lo, s.hi) for s in reads["Ixx"].spans] == [(-1, 1), (-1, 1)]
    assert facts.stages["gray"].reads[0].points == 3


def test_dead_stages_are_left_out() -> None:
    stages = [stage("dead", "x", F("input")(x)), stage("out", "x", total([F("input")(x), F("input")(x + 1)]))]
    graph = stage_graph(pipeline("p", stages, {"out": (9,)}, {"input": "x"}))
    assert graph.stages == ("out",)
    assert graph.producers == {"out": ()}


def test_what_is_the_same_along_a_row_is_no_work_of_a_point() -> None:
    """Products of params, of dims but the row's and of one place are computed before a row; the method of the paper
    counts them."""
    pipeline = load(
        {
            "format": 1,
            "name": "uniform",
            "params": [{"name": "n", "type": "int32", "default": 8, "min": 2}],
            "inputs": [{"name": "a", "type": "float32", "dims": ["x"]}],
            "stages": [{"name": "out", "dims": ["x", "k"], "value": "a(x) - k * (a(3) / (n - 1))"}],
            "outputs": ["out"],
            "estimates": {"out": [[0, 64], [0, 8]]},
        }
    )
    stage = gather(pipeline).stages["out"]
    assert stage.operations.divide == 1
    assert dict(stage.typed)["f32"] == Operations(add=1)


@pytest.mark.parametrize("others", [1, 2])
def test_two_products_of_16_bits_in_a_sum_are_one_instruction(others: int) -> None:
    """So is the last of three. What is the same along the row takes no time."""
    w = " + ".join(f"int32(a(x + {n})) * int32(w({n}))" for n in range(3))
    value = " + ".join([w, *["int32(w(3))"] * others])
    pipeline = load(
        {
            "format": 1,
            "name": "sums",
            "inputs": [{"name": n, "type": "int16", "dims": ["x"]} for n in "aw"],
            "stages": [{"name": "out", "dims": ["x"], "value": value}],
            "outputs": ["out"],
            "estimates": {"out": [[0, 64]]},
        }
    )
    typed = dict(gather(pipeline).stages["out"].typed)
    assert typed["i16"] == Operations(multiply=4)
    assert typed["i32"] == Operations(add=1 + others, convert=1.5)


def test_hashes_of_outer_indices_are_done_once_inside_a_row() -> None:
    pipeline = load(
        {
            "format": 1,
            "name": "hashes",
            "inputs": [{"name": "a", "type": "float32", "dims": ["x"]}],
            "stages": [{"name": "out", "dims": ["x", "z"], "value": "a(x) + random(x, z)"}],
            "outputs": ["out"],
            "estimates": {"out": [[0, 64], [0, 8]]},
        }
    )
    assert work_apart(pipeline.stage("out")) == {"x": 0, "z": 5}


def _mux(*choices: E) -> E:
    return E(Call("mux", (Var("c"), *(choice.e for choice in choices)), FLOAT32))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (_mux(f(x, y) * 2.0, f(x, y) * 3.0 + 1.0, f(x, y), f(x, y) - 1.0), Operations(add=0.5, multiply=0.5)),
        (E(Binary("//", g(x, y).e, Const(8, INT32), INT32)), Operations(add=1)),
        (E(Binary("%", g(x, y).e, Const(8, INT32), INT32)), Operations(add=1)),
        (E(Binary("//", g(x, y).e, Const(6, INT32), INT32)), Operations(divide_by_constant=1)),
        (E(Call("sin", (f(x, y).e,), FLOAT64)), Operations(function=1)),
        (E(Call("atan2", (f(x, y).e, f(y, x).e), FLOAT64)), Operations(function=4.5)),
        (E(Call("sin", (f(x, y).e,), FLOAT32)), Operations(add=15, multiply=10, select=1)),
        (E(Call("sqrt", (f(x, y).e,), FLOAT32)), Operations(divide=1)),
        (E(Call("floor", (f(x, y).e,), FLOAT32)), Operations(convert=1)),
        (E(Binary("**", f(x, y).e, Const(3.0, FLOAT32), FLOAT32)), Operations(multiply=2)),
    ],
    ids=lambda v: "" if isinstance(v, E) else str(v),
)
def test_operations_that_are_executed_along_a_row(value: E, expected: Operations) -> None:
    """One alternative of a `mux`; shifts and masks for quotients by powers of two; functions as they are computed."""
    assert all_types(typed_operations(stage("out", "xyc", value), in_row=True)) == expected


@pytest.mark.parametrize(("t", "functions"), [(FLOAT32, 0), (FLOAT64, 3.0)])
def test_powers_are_calls_in_double_precision_alone(t: ScalarType, functions: float) -> None:
    power = E(Binary("**", f(x, y).e, f(y, x).e, t))
    counted = all_types(typed_operations(stage("out", "xy", power), in_row=True))
    assert counted.function == functions
    assert (counted.divide == 1) == (functions == 0)


def test_reads_that_a_mux_skips() -> None:
    """A point reads one of four, through what is inline too, though all of them are different elements."""
    even = _mux(f(x * 2, y), f(x * 2 + 1, y), f(x * 2, y + 1), f(x * 2 + 1, y + 1))
    parts, c = F("parts"), E(Var("c"))
    stages = [stage("parts", "xyc", even), stage("out", "xyc", parts(x, y, c) + parts(x + 1, y, c))]
    facts = gather(pipeline("muxed", stages, {"out": (16, 16, 4)}, {"f": "xy"}))
    (read,) = facts.stages["parts"].reads
    assert (read.points, read.executed) == (4, 1)
    members = members_of(facts, "out", facts.graph.stages)
    found = effective(members, frozenset({"parts"}))["out"]
    (through,) = found.reads
    assert (through.points, through.executed) == (8, 2)
    assert found.executed == {"parts": 2}

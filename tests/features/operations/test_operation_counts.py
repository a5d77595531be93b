"""Operation counts: of one point, along a row, by type."""

import pytest
from support.small_pipelines import E, F, clamp, exp, mux, stage, summed, x, y

from tilesmith.cost_models.operations import Operations
from tilesmith.scheduler.features.operations.operation_counts import (
    element_bytes_used,
    operations,
    typed_operations,
    work_apart,
)
from tilesmith.scheduler.features.operations.operation_counts import total as all_types
from tilesmith.scheduler.features.pipeline.pipeline_features import gather
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pipeline.expressions import Binary, Call, Cast, Compare, Const, Select, Unary, Var
from tilesmith.scheduler.ir.pipeline.types import (
    FLOAT32,
    FLOAT64,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    ScalarType,
)
from tilesmith.scheduler.rewrites.passes import normalise

f, g, u = F("f"), F("g", INT32), F("u", UINT8)


CUBE_ROOT = Operations(add=11, multiply=13, divide=2, select=9, convert=2)


def _remainder(name: str, by: int) -> Compare:
    return Compare("==", Binary("%", Var(name), Const(by, INT32), INT32), Const(0, INT32))


EVEN, THIRD_ROW = _remainder("y", 2), _remainder("y", 3)
SAME_PARITY = Compare("==", _remainder("x", 2), _remainder("y", 2))


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
        (E(Cast(f(x, y).e, UINT8)), Operations(narrow=1)),
        (E(Cast(g(x, y).e, FLOAT64)), Operations(convert=1)),
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
    stage = gather(normalise(pipeline)).stages["out"]
    assert stage.operations.divide == 1
    assert dict(stage.typed)["f32"] == Operations(add=1)


def test_what_does_not_depend_on_interleaved_channels_is_work_along_their_row() -> None:
    """Vectors run along x, which is beside the channels in memory; what is the same for all of x is computed once."""
    typed = []
    for storage in (["c", "x", "y"], ["x", "y", "c"]):
        document = {
            "format": 1, "name": "toned",
            "inputs": [{"name": "a", "type": "float32", "dims": ["x", "y", "c"], "storage": storage}],
            "stages": [{"name": "out", "dims": ["x", "y", "c"], "storage": storage,
                        "value": "(a(x, y, 0) + a(x, y, 1)) * (a(0, 0, c) + 1.0)"}],
            "outputs": ["out"], "estimates": {"a": [[0, 64], [0, 8], [0, 3]], "out": [[0, 64], [0, 8], [0, 3]]},
        }  # fmt: skip
        typed.append(dict(gather(normalise(load(document))).stages["out"].typed)["f32"])
    assert typed == [Operations(add=1, multiply=1)] * 2


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
    typed = dict(gather(normalise(pipeline)).stages["out"].typed)
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


def test_conditions_by_which_loops_are_split_are_no_work_that_another_order_saves() -> None:
    """A volume that is zero outside: its vectors run along rows, not across them."""
    zero = {"kind": "constant", "value": "0.0"}
    sides = "a(x - 1, y, z) + a(x + 1, y, z) + a(x, y - 1, z) + a(x, y + 1, z) + a(x, y, z - 1) + a(x, y, z + 1)"
    pipeline = load(
        {
            "format": 1,
            "name": "sides",
            "inputs": [{"name": "a", "type": "float32", "dims": ["x", "y", "z"], "boundary": zero}],
            "stages": [{"name": "out", "dims": ["x", "y", "z"], "value": sides}],
            "outputs": ["out"],
            "estimates": {"out": [[0, 64], [0, 8], [0, 8]]},
        }
    )
    assert work_apart(normalise(pipeline).stage("out")) == {"x": 0, "y": 0, "z": 0}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (mux(f(x, y) * 2.0, f(x, y) * 3.0 + 1.0, f(x, y), f(x, y) - 1.0), Operations(add=0.5, multiply=0.5)),
        (E(Binary("//", g(x, y).e, Const(8, INT32), INT32)), Operations(add=1)),
        (E(Binary("%", g(x, y).e, Const(8, INT32), INT32)), Operations(add=1)),
        (E(Binary("//", g(x, y).e, Const(6, INT32), INT32)), Operations(divide_by_constant=1)),
        (E(Call("sin", (f(x, y).e,), FLOAT64)), Operations(add=18, multiply=14, select=1)),
        (E(Call("atan2", (f(x, y).e, f(y, x).e), FLOAT64)), Operations(add=28, multiply=17, divide=1, select=12)),
        (E(Call("sin", (f(x, y).e,), FLOAT32)), Operations(add=15, multiply=10, select=1)),
        (E(Call("sqrt", (f(x, y).e,), FLOAT32)), Operations(divide=1)),
        (E(Call("floor", (f(x, y).e,), FLOAT32)), Operations(select=2)),
        (E(Binary("**", f(x, y).e, Const(3.0, FLOAT32), FLOAT32)), Operations(multiply=2)),
        (E(Call("pow", (f(x, y).e, Const(1 / 3, FLOAT32)), FLOAT32)), CUBE_ROOT),
        (E(Binary("**", f(x, y).e, Const(1 / 3, FLOAT32), FLOAT32)), CUBE_ROOT),
        (E(Cast(g(x, y).e, UINT32)), Operations()),
        (E(Cast(g(x, y).e, UINT16)), Operations(narrow=1)),
        (E(Cast(g(x, y).e, UINT8)), Operations(narrow=2)),
        (E(Cast(g(x, y).e, INT64)), Operations(convert=1)),
        (E(Cast(g(x, y).e, UINT32, saturate=True)), Operations(convert=1)),
        (E(Cast(f(x, y).e, UINT8)), Operations(narrow=2)),
        (E(Cast(f(x, y).e, INT32)), Operations(convert=1, select=3)),
        (E(Cast(E(Cast(f(x, y).e, FLOAT64)).e, INT16)), Operations(convert=1, narrow=2)),
        (E(Select(EVEN, (f(x, y) * 2.0).e, (f(x, y) + 1.0).e, FLOAT32)), Operations(add=0.5, multiply=0.5)),
        (E(Select(THIRD_ROW, (f(x, y) * 2.0).e, f(x, y).e, FLOAT32)), Operations(multiply=1 / 3)),
        (summed(f(x, y) * f(y, x), r=(0, 3)), Operations(add=3, multiply=1)),
        (summed(f(x + Var("r"), clamp(g(y, x), 0, 9)), r=(0, 3)), Operations(add=3, select=2)),
        (summed(f(x + Var("r"), clamp(g(y, y), 0, 9)), r=(0, 3)), Operations(add=3, index=2)),
        (E(Compare("<", g(x, y).e, g(y, x).e)), Operations(select=1)),
        (E(Compare("<", u(x, y).e, u(y, x).e)), Operations(select=2)),
        (E(Compare("==", u(x, y).e, u(y, x).e)), Operations(select=1)),
        (E(Select(SAME_PARITY, (f(x, y) * 2.0).e, f(x, y).e, FLOAT32)), Operations(multiply=1, select=1)),
    ],
    ids=lambda v: "" if isinstance(v, E) else str(v),
)
def test_operations_that_are_executed_along_a_row(value: E, expected: Operations) -> None:
    """One alternative of a `mux`, and of what a remainder of other dims decides; shifts and masks for quotients by
    powers of two; functions as they are computed. Integers without a sign are compared by two instructions, but for
    whether they are equal."""
    assert all_types(typed_operations(stage("out", "xyc", value), row="x")) == expected


@pytest.mark.parametrize(
    ("boundary", "terms", "tests"), [("repeat_edge", 65, 2), ("constant", 65, 7), ("constant", 64, 0)]
)
def test_boundaries_of_elements_for_all_lanes_are_tested_for_each_term_of_a_loop(
    boundary: str, terms: int, tests: int
) -> None:
    """Two comparisons, two that join them with the others, a choice and a clamp; none of what is written out."""
    pipeline = load(
        {
            "format": 1,
            "name": "uniform",
            "inputs": [
                {
                    "name": "a",
                    "type": "float32",
                    "dims": ["i", "y"],
                    "boundary": {"kind": boundary} | ({"value": 0} if boundary == "constant" else {}),
                }
            ],
            "stages": [
                {"name": "out", "dims": ["x", "y"], "value": f"sum(a(r, y) * float32(x) for r in range({terms}))"}
            ],
            "outputs": ["out"],
            "estimates": {"out": [[0, 64], [0, 64]]},
        }
    )
    counted = all_types(typed_operations(normalise(pipeline).stage("out"), row="x"))
    assert counted.uniform == tests * terms
    assert not all_types(typed_operations(normalise(pipeline).stage("out"), row="y")).uniform


@pytest.mark.parametrize(("t", "quotients"), [(FLOAT32, 1), (FLOAT64, 2)])
def test_powers_are_no_calls(t: ScalarType, quotients: float) -> None:
    power = E(Binary("**", f(x, y).e, f(y, x).e, t))
    counted = all_types(typed_operations(stage("out", "xy", power), row="x"))
    assert (counted.function, counted.divide) == (0, quotients)

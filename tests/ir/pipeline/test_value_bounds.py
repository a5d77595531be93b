"""Intervals hold every value that an expression takes, and prove what users rely on."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilesmith.scheduler.errors import DocumentError
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pipeline import semantics
from tilesmith.scheduler.ir.pipeline.expressions import (
    Access,
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    InputBound,
    Logical,
    ParamRef,
    Reduce,
    RVar,
    Select,
    Unary,
    Var,
)
from tilesmith.scheduler.ir.pipeline.type_promotion import constant
from tilesmith.scheduler.ir.pipeline.types import BOOL, FLOAT32, INT16, INT32, INT64, TYPES, UINT8, UINT32, ScalarType
from tilesmith.scheduler.ir.pipeline.value_bounds import (
    AT_RUN_TIME,
    RUNTIME,
    UNBOUNDED,
    Interval,
    Leaf,
    interval,
    of_type,
)

LEAF_TYPES = (UINT8, INT16, INT32, UINT32, INT64, FLOAT32)


def document(value: str) -> dict[str, Any]:
    return {
        "format": 1,
        "name": "one",
        "params": [
            {"name": "free", "type": "int32"},
            {"name": "half", "type": "int32", "min": 0},
            {"name": "tied", "type": "int32", "min": -9, "max": 9},
            {"name": "byte", "type": "uint8"},
            {"name": "scale", "type": "float32", "min": 0.5, "max": 2.0},
        ],
        "inputs": [
            *({"name": f"a_{t}", "type": t, "dims": ["x", "y"]} for t in TYPES),
            {"name": "lut", "type": "float32", "dims": ["i"]},
        ],
        "stages": [{"name": "f", "dims": ["x", "y"], "value": f"lut({value})"}],
        "outputs": ["f"],
        "estimates": {"f": [[0, 16], [0, 16]]},
    }


PROVABLE = [
    "x", "x + y * 3 - 7", "x // 2 + y % 5", "-x", "a_uint8.extent.x - 1 - x",
    "clamp(x, a_uint8.min.x, a_uint8.extent.x)", "U", "int32(U) * 4 + x", "U // 3", "a_int16(x, y)",
    "int32(a_bool(x, y))", "a_uint16(x, y) >> 4", "clamp(I, 0, 255)", "min(max(I, 0), 9)", "max(min(I, x), -x)",
    "I % 16", "I & 255", "uint8(I)", "sat_uint8(I)", "int32(sat_int16(a_int64(x, y)))", "select(I > 0, 1, 2)",
    "select(I > 0, x, y)", "mux(I, 1, x, 3)", "abs(clamp(I, -9, 4))", "int32(clamp(F, 0, 1) * 255 + 0.5)",
    "int32(clamp(F * 8, 0.0, 7.0))", "int32(min(max(F, 0.0), 1.0) / 0.1)", "int32(random(x, y) * 7)",
    "int32(sin(clamp(F, 0, 9)) * 4)", "int32(floor(clamp(F, 0, 9)))", "sat_int8(F)", "uint8(F)", "tied", "byte",
    "x + tied * 2", "free", "half", "x + free", "clamp(I, free, 9)", "clamp(free, 0, 9)", "free % 4",
    "int32(clamp(F, 0, 1) / scale)",
    "sum(int32(a_uint8(x + r, y)) for r in range(0, 3))", "max(a_uint8(x + r, y) for r in range(0, 3))",
    "argmin(a_float32(x + r, y) for r in range(-2, 3))[0]", "argmin(F for r in range(tied, byte))[0]", "int64(x) * 2",
    "int64(U) << 3", "a_int32(clamp(I, 0, 9), 3) % 7", "lerp(U, 200, F)", "absd(U, 7)", "~U",
    "halving_add(int32(U), 9)", "int32(any(F > r for r in range(0, 3)))", "(x + 1) % (I % 9 + 1)", "U << I", "1 << U",
]  # fmt: skip

UNPROVABLE = [
    "I", "-I", "a_uint32(x, y)", "int32(a_int64(x, y))", "a_int64(x, y)", "int32(F)", "I + x", "I // 2", "min(I, 5)",
    "max(I, 5)", "I * 0 + I", "x % I", "I % a_uint32(x, y)", "I & -2", "sat_int32(a_int64(x, y))", "uint32(x)",
    "sum(int32(U) for r in range(0, 3)) + I",
    "argmin(a_int32(r, y) for r in range(0, 3))[1]", "int32(tan(F))", "int32(clamp(F, 0, 1) / clamp(F, 0, 1))",
    "int32(min(9.0, max(F, 0.0)) * F)", "int32(min(0.0, F))", "select(I > 0, I, 3)", "mux(x, I, 3)",
    "a_int64(x, y) - 1", "int64(U) * 100000000", "abs(I)", "max(a_int32(r, y) for r in range(0, 3))",
    "int32(lerp(clamp(F, 0, 1), 2, F))", "x ** 2 * I",
    "max(U for r in range(0, 3) if F > r) + I", "int32(F ** 2)", "uint32(tied)",
]  # fmt: skip


def written(text: str) -> str:
    return text.replace("I", "a_int32(x, y)").replace("U", "a_uint8(x, y)").replace("F", "a_float32(x, y)")


@pytest.mark.parametrize("index", PROVABLE)
def test_provable_indices(index: str) -> None:
    assert load(document(written(index)))


@pytest.mark.parametrize("index", UNPROVABLE)
def test_unprovable_indices(index: str) -> None:
    with pytest.raises(DocumentError) as caught:
        load(document(written(index)))
    (problem,) = caught.value.problems
    assert (problem.code, problem.pointer, problem.column) == ("unbounded_index", "/stages/0/value", 5)
    assert problem.message.startswith("Index 1 ('i') of 'lut'")
    assert problem.hint


IDIOMS = {
    "rounding_shift_right(a_uint16(x, y), 8)": (0, 256),
    "mul_shift_right(a_uint16(x, y), a_uint16(x, y), 24)": (0, 255),
    "rounding_halving_add(U, 9)": (5, 132),
    "sat_add(U, 200)": (200, 255),
    "sat_sub(U, 200)": (0, 55),
    "31 - count_leading_zeros(int32(a_uint16(x, y)) + 1)": (0, 16),
}


@pytest.mark.parametrize(("index", "ends"), IDIOMS.items(), ids=str)
def test_idioms_of_integers_have_their_own_ends(index: str, ends: tuple[int, int]) -> None:
    (value,) = load(document(written(index))).stage("f").values
    assert isinstance(value, Access)
    assert interval(value.indices[0]) == Interval(*ends)


def test_functions_of_infinities_have_bounds() -> None:
    far = Access("far", (), 0, FLOAT32)
    assert interval(Call("max", (far, far), FLOAT32), lambda _: Interval(0.0, math.inf)) == Interval(0.0, math.inf)


@pytest.mark.parametrize("index", ["I", "x + I", "int32(F)", "tied - int32(F * 9)", "I // 2", "U"])
def test_what_has_a_boundary_is_read_at_any_place(index: str) -> None:
    written_ = document(written(index))
    written_["inputs"][-1]["boundary"] = {"kind": "repeat_edge"}
    assert load(written_)


def test_places_beyond_int32_are_none_even_where_there_is_a_boundary() -> None:
    written_ = document(written("a_int64(x, y)"))
    written_["inputs"][-1]["boundary"] = {"kind": "repeat_edge"}
    with pytest.raises(DocumentError, match="no bounds can be proved"):
        load(written_)


def test_a_stage_reads_itself_without_its_boundary() -> None:
    """The boundary is what readers see: updates write and read at places with bounds."""
    written_ = document("x")
    written_["stages"][0] |= {
        "value": "lut(x)", "boundary": {"kind": "repeat_edge", "domain": [[0, 9], [0, 9]]},
        "updates": [{"domain": {}, "at": ["x", "y"], "value": f"f({written('I')}, y)"}],
    }  # fmt: skip
    with pytest.raises(DocumentError, match="no bounds can be proved"):
        load(written_)


def test_the_error_names_what_it_depends_on() -> None:
    for index, message, hint in (
        ("a_int32(x, y) + free", "depends on the values of 'a_int32'", "clamp(..., lo, hi)"),
        ("uint32(x)", "is computed as uint32", "clamp(..., lo, hi)"),
    ):
        with pytest.raises(DocumentError) as caught:
            load(document(index))
        (problem,) = caught.value.problems
        assert message in problem.message
        assert hint in str(problem.hint)


def test_types() -> None:
    assert of_type(UINT8) == Interval(0, 255)
    assert of_type(BOOL) == Interval(0, 1)
    assert of_type(INT16) == Interval(-32768, 32767)
    assert of_type(INT32) == of_type(UINT32) == of_type(FLOAT32) == UNBOUNDED


def test_leaves() -> None:
    x, data = Var("x"), Access("a", (Var("x"),), 0, UINT8)
    assert interval(x) == interval(InputBound("a", "min", "x")) == AT_RUN_TIME
    assert interval(data) == Interval(0, 255)
    assert interval(ParamRef("p", INT32)) == AT_RUN_TIME
    assert interval(Binary("+", x, Const(1, INT32), INT32), lambda leaf: Interval(2, 5)) == Interval(3, 6)
    assert interval(Call("min", (x, Const(3, INT32)), INT32)) == Interval(RUNTIME, 3)


def test_wide_arithmetic_that_may_wrap_proves_nothing() -> None:
    big = Const(1 << 20, INT32)
    assert interval(Binary("*", big, big, INT32)) == UNBOUNDED
    assert interval(Binary("-", Const(0, UINT32), Const(1, UINT32), UINT32)) == UNBOUNDED
    assert interval(Binary("+", Const(200, UINT8), Const(100, UINT8), UINT8)) == Interval(0, 255)


def test_an_argmin_stays_in_its_range() -> None:
    body = Access("a", (Var("r"),), 0, FLOAT32)
    loops = (RVar("r", Const(-2, INT32), Const(5, INT32)),)
    assert interval(Reduce("argmin", body, loops, None, 0, INT32)) == Interval(-2, 2)


def test_deep_trees() -> None:
    e: Expr = Var("x")
    for _ in range(20_000):
        e = Binary("+", e, Const(1, INT32), INT32)
    assert interval(e) == AT_RUN_TIME


# Against values


class Sample:
    """A random tree over leaves of known ranges, and its value for values of the leaves."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.ranges: dict[str, tuple[int | float, int | float]] = {}

    def leaf(self, type_: ScalarType) -> Expr:
        if self.draw(st.booleans()):
            return self.const(type_)
        name = f"{type_}_{self.draw(st.integers(0, 1))}"
        if name not in self.ranges:
            ends = sorted(float(self.const(type_).value) if type_.is_float else self.const(type_).value for _ in "ab")
            self.ranges[name] = (ends[0], ends[1])
        return Access(name, (), 0, type_)

    def const(self, type_: ScalarType) -> Const:
        near = st.integers(-20, 20) if type_.kind != "uint" else st.integers(0, 20)
        whole = (
            st.one_of(near, st.integers(type_.min, type_.max)) if type_.is_integer else st.floats(-300, 300, width=32)
        )
        made = constant(self.draw(whole) + 0, type_)  # no -0.0, which has no place between ends
        assert made is not None
        return made

    def make(self, type_: ScalarType, depth: int) -> Expr:
        if depth == 0:
            return self.leaf(type_)
        a, b = self.make(type_, depth - 1), self.make(type_, depth - 1)
        integer_ops = ["+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>", "neg", "~"]
        names = ["min", "max", "clamp", "abs", "absd", "mux", "lerp", "select", "cast", "sat"]
        float_ops = ["+", "-", "*", "/", "//", "neg", "floor", "sin", "round"]
        integer_calls = ["halving_add", "rounding_halving_add", "sat_add", "sat_sub", "**"]
        integer_calls += ["rounding_shift_right", "mul_shift_right", "count_leading_zeros"]
        op = self.draw(st.sampled_from(names + (float_ops if type_.is_float else integer_ops + integer_calls)))
        match op:
            case "neg":
                return Unary("-", a, type_)
            case "~":
                return Unary("~", a, type_)
            case "**":
                return Binary("**", a, Const(self.draw(st.integers(0, 3)), INT32), type_)
            case "+" | "-" | "*" | "/" | "//" | "%" | "&" | "|" | "^" | "<<" | ">>":
                return Binary(op, a, b, type_)
            case "clamp":
                return Call("clamp", (a, b, self.leaf(type_)), type_)
            case "rounding_shift_right" | "mul_shift_right":
                count = Const(self.draw(st.integers(0, type_.bits - 1)), type_)
                return Call(op, (a, count) if op == "rounding_shift_right" else (a, b, count), type_)
            case "abs" | "floor" | "sin" | "round" | "count_leading_zeros":
                return Call(op, (a,), type_)
            case "mux":
                return Call("mux", (self.leaf(INT32), a, b), type_)
            case "lerp":
                return Call("lerp", (a, b, self.leaf(FLOAT32)), type_)
            case "select":
                test = Logical("or", Compare("<", a, b), Compare("==", self.leaf(INT32), self.leaf(INT32)))
                return Select(test, a, b, type_)
            case "cast" | "sat":
                other = self.draw(st.sampled_from([t for t in LEAF_TYPES if t != type_]))
                return Cast(self.make(other, depth - 1), type_, op == "sat" and type_.is_integer)
            case _:
                return Call(op, (a, b), type_)

    def value(self, e: Expr, leaves: dict[str, Any]) -> Any:
        def of(child: Expr) -> Any:
            return self.value(child, leaves)

        match e:
            case Const():
                return semantics.constant(e.value, e.type)
            case Access():
                return leaves[e.name]
            case Binary():
                return semantics.binary(e.op, of(e.left), of(e.right), e.type)
            case Unary():
                return semantics.unary(e.op, of(e.operand), e.type)
            case Compare():
                return semantics.compare(e.op, of(e.left), of(e.right))
            case Logical():
                return np.logical_or(of(e.left), of(e.right))
            case Select():
                return np.where(of(e.condition), of(e.if_true), of(e.if_false))
            case Cast():
                return semantics.convert(of(e.operand), e.operand.type, e.type, e.saturate)
            case Call():
                return semantics.call(e.function, tuple(of(a) for a in e.args), tuple(a.type for a in e.args), e.type)
            case _:
                raise AssertionError(e)


@pytest.mark.slow
@settings(max_examples=250, deadline=None)
@given(st.data())
def test_every_value_is_inside(data: st.DataObject) -> None:
    sample = data.draw(st.builds(lambda draw: Sample(draw), st.just(data.draw)))
    type_ = data.draw(st.sampled_from(LEAF_TYPES))
    tree = sample.make(type_, data.draw(st.integers(1, 3)))

    def leaf(node: Leaf) -> Interval:
        assert isinstance(node, Access)
        return Interval(*sample.ranges[node.name])

    found, by_type = interval(tree, leaf), interval(tree, lambda node: of_type(node.type))
    for _ in range(8):
        leaves = {}
        for name, (lo, hi) in sample.ranges.items():
            leaf_type = TYPES[name.rpartition("_")[0]]
            exact = st.floats(lo + 0.0, hi + 0.0, width=32) if leaf_type.is_float else st.integers(int(lo), int(hi))
            leaves[name] = semantics.constant(data.draw(exact), leaf_type)
        value = sample.value(tree, leaves).item()
        for bound in (found, by_type):
            if isinstance(bound.lo, int | float):
                assert value >= bound.lo
            if isinstance(bound.hi, int | float):
                assert value <= bound.hi


def test_an_interval_that_is_known_is_not_found_again() -> None:
    e = Binary("+", Var("x"), Const(1, INT32), INT32)
    known = {id(e): Interval(3, 4)}
    assert interval(e, lambda leaf: pytest.fail("a leaf was asked for"), known) == Interval(3, 4)

"""Text and trees are the same thing: tree -> text -> tree, and text -> tree -> text -> tree."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilesmith.scheduler.errors import DocumentError
from tilesmith.scheduler.frontends.document.document import canonical_json, load, to_document
from tilesmith.scheduler.ir.pipeline.expressions import (  # fmt: skip
    Access,
    Binary,
    Call,
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
from tilesmith.scheduler.ir.pipeline.printer import to_text
from tilesmith.scheduler.ir.pipeline.type_promotion import constant, convert
from tilesmith.scheduler.ir.pipeline.types import BOOL, FLOAT32, FLOAT64, INT32, TYPES, ScalarType

TYPE_LIST = tuple(TYPES.values())
INTEGERS = tuple(t for t in TYPE_LIST if t.is_integer)
FLOATS = (FLOAT32, FLOAT64)
NUMBERS = INTEGERS + FLOATS


def document(value: str) -> dict[str, Any]:
    return {
        "format": 1,
        "name": "one",
        "params": [
            {"name": f"p_{t}", "type": t.name, **({"min": 0, "max": 9} if t.is_integer else {})} for t in TYPE_LIST
        ],
        "inputs": [{"name": f"a_{t}", "type": t.name, "dims": ["i", "j"]} for t in TYPE_LIST],
        "stages": [
            {"name": "f", "dims": ["x", "y"], "value": value},
            {"name": "pair", "dims": ["x"], "value": ["float32(x)", "uint8(x)"]},
        ],
        "outputs": ["f"],
        "estimates": {"f": [[0, 16], [0, 16]]},
    }  # fmt: skip


def param(type_: ScalarType) -> ParamRef:
    return ParamRef(f"p_{type_}", type_, *((0, 9) if type_.is_integer else ()))


class Trees:
    """Random typed trees, of the forms that reading a document can give."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.loops: list[str] = []

    def pick(self, *options: Any) -> Any:
        return self.draw(st.sampled_from(options))

    def make(self, type_: ScalarType, depth: int) -> Expr:
        if depth <= 0 or self.draw(st.integers(0, 5)) == 0:
            return self.leaf(type_)
        if type_ == BOOL:
            return self.boolean(depth - 1)
        forms = [self.arithmetic, self.choice, self.function, self.conversion, self.reduction]
        return self.pick(*forms)(type_, depth - 1)

    def leaf(self, type_: ScalarType) -> Expr:
        kind = self.draw(st.integers(0, 3))
        if type_ == INT32 and kind == 0:
            return Var(self.pick("x", "y", *self.loops))
        if type_ == INT32 and kind == 1:
            return InputBound("a_uint8", self.pick("min", "extent"), self.pick("i", "j"))
        if kind == 0:
            return param(type_)
        if kind == 1:
            return Access(f"a_{type_}", (self.index(), self.index()), 0, type_)
        return self.literal(type_)

    def literal(self, type_: ScalarType) -> Const:
        if type_ == BOOL:
            return Const(self.draw(st.booleans()), BOOL)
        if type_.is_float:
            value = self.draw(st.floats(allow_nan=False, allow_infinity=False, width=32 if type_.bits == 32 else 64))
            made = constant(value, type_)
        else:
            made = constant(self.draw(st.integers(type_.min, type_.max)), type_)
        assert made is not None
        return made

    def index(self) -> Expr:
        base: Expr = Var(self.pick("x", "y", *self.loops))
        if self.draw(st.booleans()):
            shift = Const(self.draw(st.integers(-9, 9)), INT32)
            base = Binary(self.pick("+", "-", "*", "//", "%"), base, shift, INT32)
        elif self.draw(st.integers(0, 3)) == 0:
            base = convert(Access("a_uint8", (Var("x"), Var("y")), 0, TYPES["uint8"]), INT32)
        return base

    def boolean(self, depth: int) -> Expr:
        match self.draw(st.integers(0, 4)):
            case 0:
                return Unary("not", self.make(BOOL, depth), BOOL)
            case 1:
                return Logical(self.pick("and", "or"), self.make(BOOL, depth), self.make(BOOL, depth))
            case 2:
                return Binary(self.pick("&", "|", "^"), self.make(BOOL, depth), self.make(BOOL, depth), BOOL)
            case 3:
                return self.reduce(self.pick("any", "all"), BOOL, depth)
            case _:
                type_ = self.pick(*NUMBERS)
                op = self.pick("<", "<=", "==", "!=", ">=", ">")
                return Compare(op, self.make(type_, depth), self.make(type_, depth))

    def arithmetic(self, type_: ScalarType, depth: int) -> Expr:
        left = self.make(type_, depth)
        op = self.pick(
            "+", "-", "*", "//", "%", "-x", "**", *(("/",) if type_.is_float else ("&", "|", "^", "<<", ">>", "~"))
        )
        if op in ("-x", "~"):
            inner = self.make(type_, depth)
            return Unary(op[0], inner, type_)
        if op in ("<<", ">>"):
            other = self.pick(*INTEGERS)
            count = self.make(other, depth)
            return Binary(op, left, Const(1, other) if isinstance(count, Const) else count, type_)
        if op == "**" and (type_.is_integer or self.draw(st.booleans())):
            return Binary("**", left, Const(self.draw(st.integers(0 if type_.is_integer else -3, 5)), INT32), type_)
        return Binary(op, left, self.make(type_, depth), type_)

    def choice(self, type_: ScalarType, depth: int) -> Expr:
        if self.draw(st.booleans()):
            return Select(self.make(BOOL, depth), self.make(type_, depth), self.make(type_, depth), type_)
        values = tuple(self.make(type_, depth) for _ in range(self.draw(st.integers(1, 3))))
        return Call("mux", (self.make(self.pick(*INTEGERS), depth), *values), type_)

    def function(self, type_: ScalarType, depth: int) -> Expr:
        def args(n: int) -> tuple[Expr, ...]:
            return tuple(self.make(type_, depth) for _ in range(n))

        name = self.pick("min", "max", "clamp", "abs", "absd", "lerp", "own")
        if name == "own" and type_.is_float:
            name = self.pick("sqrt", "exp", "floor", "tanh", "pow", "atan2")
            return Call(name, args(2 if name in ("pow", "atan2") else 1), type_)
        if name == "own":
            name = self.pick("sat_add", "halving_add", "rounding_shift_right", "mul_shift_right")
            if name in ("sat_add", "halving_add"):
                return Call(name, args(2), type_)
            count = self.make(self.pick(*INTEGERS), depth)
            return Call(name, (*args(1 if name == "rounding_shift_right" else 2), count), type_)
        if name == "lerp":
            weight = (
                type_ if type_.is_float else self.pick(FLOAT32, FLOAT64, *(t for t in INTEGERS if t.kind == "uint"))
            )
            return Call("lerp", (*args(2), self.make(weight, depth)), type_)
        return Call(name, args({"clamp": 3, "abs": 1}.get(name, 2)), type_)

    def conversion(self, type_: ScalarType, depth: int) -> Expr:
        inner = self.make(self.pick(*(t for t in TYPE_LIST if t != type_)), depth)
        return convert(inner, type_, saturate=type_.is_integer and self.draw(st.booleans()))

    def reduction(self, type_: ScalarType, depth: int) -> Expr:
        if type_ == INT32 and self.draw(st.booleans()):
            return self.reduce(self.pick("argmin", "argmax"), self.pick(*NUMBERS), depth, component=0)
        return self.reduce(self.pick("sum", "product", "min", "max"), type_, depth)

    def reduce(self, op: Any, body: ScalarType, depth: int, component: int = 0) -> Expr:
        names = [f"r{len(self.loops) + k}" for k in range(self.draw(st.integers(1, 2)))]
        domain = tuple(RVar(n, *self.range()) for n in names)
        self.loops += names
        where = self.make(BOOL, depth) if self.draw(st.integers(0, 3)) == 0 else None
        made = self.make(body, depth)
        del self.loops[-len(names) :]
        return Reduce(op, made, domain, where, component, INT32 if op in ("argmin", "argmax") else body)

    def range(self) -> tuple[Expr, Expr]:
        lo = Const(self.draw(st.integers(-3, 3)), INT32)
        runtime = self.pick(param(INT32), InputBound("a_uint8", "extent", "i"))
        match self.draw(st.integers(0, 4)):
            case 0:
                return Const(0, INT32), runtime
            case 1:
                return InputBound("a_uint8", "min", "i"), runtime
            case 2 if lo.value != 0:
                return lo, Binary("-", runtime, lo, INT32)
            case _:
                return lo, Const(self.draw(st.integers(1, 5)), INT32)


@st.composite
def trees(draw: st.DrawFn) -> Expr:
    return Trees(draw).make(draw(st.sampled_from(TYPE_LIST)), draw(st.integers(0, 4)))


@settings(max_examples=400, deadline=None)
@given(trees())
@pytest.mark.slow
def test_tree_to_text_to_tree(tree: Expr) -> None:
    text = to_text(tree)
    read = load(document(text)).stage("f").values[0]
    assert read == tree, text
    assert to_text(read) == text


@settings(max_examples=200, deadline=None)
@given(trees(), st.data())
def test_brackets_and_spaces_do_not_matter(tree: Expr, data: st.DataObject) -> None:
    text = to_text(tree)
    spaced = text.replace(" ", data.draw(st.sampled_from(["  ", "\n", "\t"])))
    assert load(document(f"(({spaced}))")) == load(document(text))


_ATOMS = """
    x y 3 0.5 -2 True a_uint8(x,y) a_float32(x-1,y) a_bool(x,y) p_float64 a_int16(x,y) pair(x)[1] a_uint8.min.i
"""
_OPERATORS = "+ - * / // % & | ^ << >> < <= == != >= > and or"
_FUNCTIONS = "min max absd sat_add halving_add lerp pow"


def _words(text: str) -> st.SearchStrategy[str]:
    return st.sampled_from(text.split())


def _grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators, functions = _words(_OPERATORS), _words(_FUNCTIONS)
    types_ = st.sampled_from([*TYPES, "sat_uint8", "sqrt", "abs", "-", "~", "not "])
    return st.one_of(
        st.tuples(inner, operators, inner).map(lambda t: f"{t[0]} {t[1]} {t[2]}"),
        st.tuples(inner, operators, inner).map(lambda t: f"({t[0]}) {t[1]} ({t[2]})"),
        st.tuples(functions, inner, inner).map(lambda t: f"{t[0]}({t[1]}, {t[2]})"),
        st.tuples(types_, inner).map(lambda t: f"{t[0]}({t[1]})"),
        st.tuples(inner, inner, inner).map(lambda t: f"({t[0]} if {t[1]} else {t[2]})"),
        inner.map(lambda t: f"sum({t} for r in range(-1, 2))"),
        inner.map(lambda t: f"a_float32({t}, y)"),
    )


@settings(max_examples=600, deadline=None)
@given(st.recursive(_words(_ATOMS), _grow, max_leaves=8))
@pytest.mark.slow
def test_text_to_tree_to_text(text: str) -> None:
    try:
        pipeline = load(document(text))
    except DocumentError:
        return  # most random text is of wrong types; what is not has to come back
    canonical = to_document(pipeline)
    again = load(canonical)
    assert again == pipeline
    assert canonical_json(again) == canonical_json(pipeline)


@pytest.mark.parametrize("value", [0.1, 1e-45, 3.4028234663852886e38, 1e16, 123456789.0, -0.0, 1e-5, 16777217.0])
def test_floats_are_written_as_short_as_they_can_be(value: float) -> None:
    for type_ in FLOATS:
        made = constant(value, type_)
        assert made is not None
        text = to_text(made, type_)
        assert constant(float(text), type_) == made
        assert len(text) <= len(repr(made.value))

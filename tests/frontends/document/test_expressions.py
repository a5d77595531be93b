"""Every form of the expression language: what it means (its canonical text) and its type."""

from __future__ import annotations

from typing import Any

import pytest

from tilesmith.scheduler.errors import DocumentError
from tilesmith.scheduler.frontends.document.document import load, to_document
from tilesmith.scheduler.ir.pipeline.expressions import (
    Access,
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    InputBound,
    ParamRef,
    Reduce,
    Select,
    Var,
)
from tilesmith.scheduler.ir.pipeline.printer import to_text
from tilesmith.scheduler.ir.pipeline.types import FLOAT32, INT32, TYPES, UINT8

TYPE_NAMES = tuple(TYPES)


def document(value: str, **stage: Any) -> dict[str, Any]:
    """A pipeline of one stage `f(x, y)`, with an input `a_T` and a scalar param `p_T` of every type T, and a tuple."""
    return {
        "format": 1,
        "name": "one",
        "params": [{"name": f"p_{t}", "type": t} for t in TYPE_NAMES],
        "inputs": [
            *({"name": f"a_{t}", "type": t, "dims": ["x", "y"]} for t in TYPE_NAMES),
            {"name": "lut", "type": "float32", "dims": ["i"]},
            {"name": "dot", "type": "float32", "dims": []},
        ],
        "stages": [
            {"name": "f", "dims": ["x", "y"], "value": value, **stage},
            {"name": "pair", "dims": ["x"], "value": ["float32(x)", "uint8(x)"]},
        ],
        "outputs": ["f"],
        "estimates": {"f": [[0, 16], [0, 16]]},
    }


def build(value: str) -> Expr:
    pipeline = load(document(value))
    again = load(to_document(pipeline))
    assert again == pipeline
    assert to_document(again) == to_document(pipeline)
    return pipeline.stage("f").values[0]


def canonical(value: str) -> str:
    return to_text(build(value), tuples={"pair"})


def fails(value: str) -> list[tuple[str, int | None]]:
    with pytest.raises(DocumentError) as caught:
        load(document(value))
    return [(p.code, p.column) for p in caught.value.problems]


def short(text: str) -> str:
    """`u8` for a read of the uint8 input at (x, y), and so on; `P` for the float32 param."""
    for name in TYPE_NAMES:
        kind = {"bool": "b", "int": "i", "uint": "u", "float": "f"}[TYPES[name].kind]
        key = kind if kind == "b" else f"{kind}{TYPES[name].bits}"
        text = text.replace(f"@{key}@", f"a_{name}(x, y)")
    return text.replace("@P@", "p_float32")


@pytest.mark.parametrize(
    ("written", "expected", "type_name"),
    [
        # Literals
        ("3", "3", "int32"),
        ("-3", "-3", "int32"),
        ("0x1F + 1_000", "31 + 1000", "int32"),
        ("0.25", "0.25", "float32"),
        (".5", "0.5", "float32"),
        ("1e3", "1000.0", "float32"),
        ("0.1", "0.1", "float32"),
        ("float64(0.1)", "float64(0.1)", "float64"),
        ("True", "True", "bool"),
        ("not False", "not False", "bool"),
        ("uint8(3)", "uint8(3)", "uint8"),
        ("int64(5000000000)", "int64(5000000000)", "int64"),
        ("int8(-128)", "int8(-128)", "int8"),
        ("uint8(300)", "uint8(300)", "uint8"),
        ("int32(3)", "3", "int32"),
        # A literal takes the type of the other operand
        ("@u8@ + 1", "@u8@ + 1", "uint8"),
        ("1 + @u64@", "1 + @u64@", "uint64"),
        ("@u16@ // 3", "@u16@ // 3", "uint16"),
        ("@f32@ * 2", "@f32@ * 2.0", "float32"),
        ("@f64@ * 0.1", "@f64@ * 0.1", "float64"),
        ("@i8@ * 0.5", "float32(@i8@) * 0.5", "float32"),
        ("@i64@ * 0.5", "float32(@i64@) * 0.5", "float32"),
        ("min(@u8@, 7)", "min(@u8@, 7)", "uint8"),
        ("clamp(@i16@, -1, 1)", "clamp(@i16@, -1, 1)", "int16"),
        ("@u8@ == 255", "@u8@ == 255", "bool"),
        ("1 if @b@ else @u8@", "select(@b@, 1, @u8@)", "uint8"),
        ("select(@b@, 1, 0.5)", "select(@b@, 1.0, 0.5)", "float32"),
        # Two types
        ("@f32@ + @i64@", "@f32@ + float32(@i64@)", "float32"),
        ("@f32@ + @f64@", "float64(@f32@) + @f64@", "float64"),
        ("@u8@ + @u16@", "uint16(@u8@) + @u16@", "uint16"),
        ("@i8@ + @u16@", "int16(@i8@) + int16(@u16@)", "int16"),
        ("@i32@ + @u32@", "@i32@ + int32(@u32@)", "int32"),
        ("x + @u8@", "x + int32(@u8@)", "int32"),
        # Names
        ("x", "x", "int32"),
        ("@P@", "@P@", "float32"),
        ("p_bool", "p_bool", "bool"),
        ("a_uint8.min.x + a_uint8.extent.y", "a_uint8.min.x + a_uint8.extent.y", "int32"),
        ("a_uint8(x - 1, y * 2)", "a_uint8(x - 1, y * 2)", "uint8"),
        ("dot()", "dot()", "float32"),
        ("pair(x)[0]", "pair(x)[0]", "float32"),
        ("pair(x)[1]", "pair(x)[1]", "uint8"),
        # Operators, with the fewest brackets
        ("(x + y) + 1", "x + y + 1", "int32"),
        ("x + (y + 1)", "x + (y + 1)", "int32"),
        ("x - (y - 1)", "x - (y - 1)", "int32"),
        ("(x * y) + 1", "x * y + 1", "int32"),
        ("x * (y + 1)", "x * (y + 1)", "int32"),
        ("-(x ** 2)", "-x ** 2", "int32"),
        ("(-x) ** 2", "(-x) ** 2", "int32"),
        ("(-2) ** 3", "(-2) ** 3", "int32"),
        ("-uint8(5)", "-uint8(5)", "uint8"),
        ("+x", "x", "int32"),
        ("@f32@ / 3", "@f32@ / 3.0", "float32"),
        ("x / 2.0", "float32(x) / 2.0", "float32"),
        ("x // y % 3", "x // y % 3", "int32"),
        ("@f32@ // 2", "@f32@ // 2.0", "float32"),
        ("@f32@ ** 2", "@f32@ ** 2", "float32"),
        ("@f32@ ** -2", "@f32@ ** -2", "float32"),
        ("@f32@ ** 2.5", "@f32@ ** 2.5", "float32"),
        ("@f32@ ** x", "@f32@ ** float32(x)", "float32"),
        ("2 ** @f32@", "2.0 ** @f32@", "float32"),
        ("@u8@ ** (1 + 1)", "@u8@ ** 2", "uint8"),
        ("@u8@ & 15 | @u8@ ^ ~@u8@", "@u8@ & 15 | @u8@ ^ ~@u8@", "uint8"),
        ("@b@ & ~@b@", "@b@ & (not @b@)", "bool"),
        ("1 << @u8@", "1 << @u8@", "uint8"),
        ("@i32@ >> 3", "@i32@ >> 3", "int32"),
        ("@u16@ >> @u8@", "@u16@ >> @u8@", "uint16"),
        ("@i8@ >> uint8(3)", "@i8@ >> uint8(3)", "int8"),
        ("x < y and y <= 3 or not x == y", "x < y and y <= 3 or not x == y", "bool"),
        ("(x < 1 or y < 1) and x != y", "(x < 1 or y < 1) and x != y", "bool"),
        ("@b@ == (x > 1)", "@b@ == (x > 1)", "bool"),
        ("x if y > 0 else -x", "select(y > 0, x, -x)", "int32"),
        # Functions
        ("max(x, y, 3)", "max(x, y, 3)", "int32"),
        ("max(max(x, y), max(3, x))", "max(x, y, max(3, x))", "int32"),
        ("min(1, 2, @u8@)", "min(1, 2, @u8@)", "uint8"),
        ("min(min(1, 2), @u8@)", "min(1, 2, int32(@u8@))", "int32"),
        ("abs(@i8@) + absd(@i8@, 1)", "abs(@i8@) + absd(@i8@, 1)", "int8"),
        ("absd(@u8@, @u16@)", "absd(uint16(@u8@), @u16@)", "uint16"),
        ("lerp(@f32@, 1, 0.5)", "lerp(@f32@, 1.0, 0.5)", "float32"),
        ("lerp(@u8@, 1, 0.5)", "lerp(@u8@, 1, 0.5)", "uint8"),
        ("lerp(@u8@, 1, 128)", "lerp(@u8@, 1, 128)", "uint8"),
        ("lerp(@u16@, 1, @u8@)", "lerp(@u16@, 1, @u8@)", "uint16"),
        ("lerp(@f64@, 1, @f32@)", "lerp(@f64@, 1.0, float64(@f32@))", "float64"),
        ("mux(x, 1, @u8@, 3)", "mux(x, 1, @u8@, 3)", "uint8"),
        ("sat_add(@u8@, 3)", "sat_add(@u8@, 3)", "uint8"),
        ("sat_sub(@u8@, @i16@)", "sat_sub(int16(@u8@), @i16@)", "int16"),
        ("halving_add(@u8@, 1) + rounding_halving_add(@u8@, 1)",) * 2 + ("uint8",),
        ("rounding_shift_right(@i16@, 3)", "rounding_shift_right(@i16@, 3)", "int16"),
        ("mul_shift_right(@i16@, 3, 15)", "mul_shift_right(@i16@, 3, 15)", "int16"),
        ("mul_shift_right(@i16@, 3, @u8@)", "mul_shift_right(@i16@, 3, @u8@)", "int16"),
        ("popcount(@u8@) + count_leading_zeros(@u8@) + count_trailing_zeros(@u8@)",
         "popcount(@u8@) + count_leading_zeros(@u8@) + count_trailing_zeros(@u8@)", "uint8"),
        ("as_uint32(@f32@) ^ as_uint32(@i32@)", "as_uint32(@f32@) ^ uint32(@i32@)", "uint32"),
        ("as_float64(as_int64(@f64@))", "as_float64(as_int64(@f64@))", "float64"),
        ("random(x, y, 7)", "random(x, y, 7)", "float32"),
        ("sqrt(@f32@) + exp(1)", "sqrt(@f32@) + exp(1.0)", "float32"),
        ("pow(@f64@, 2) + atan2(@f64@, @f32@)", "pow(@f64@, 2.0) + atan2(@f64@, float64(@f32@))", "float64"),
        ("log(sin(cos(tan(asin(acos(atan(tanh(@f32@))))))))",) * 2 + ("float32",),
        ("floor(ceil(round(trunc(@f32@))))",) * 2 + ("float32",),
        ("uint8(@f32@)", "uint8(@f32@)", "uint8"),
        ("sat_uint8(@f32@)", "sat_uint8(@f32@)", "uint8"),
        ("sat_int16(300)", "sat_int16(300)", "int16"),
        ("bool(x)", "bool(x)", "bool"),
        ("int32(@b@)", "int32(@b@)", "int32"),
        ("uint8(1.5)", "uint8(1.5)", "uint8"),
        # Reductions
        ("sum(@f32@ for r in range(3))", "sum(@f32@ for r in range(0, 3))", "float32"),
        (
            "sum(a_uint8(x + r, y + s) for r in range(-1, 2) for s in range(-1, 1 + 1) if r != s)",
            "sum(a_uint8(x + r, y + s) for r in range(-1, 2) for s in range(-1, 2) if r != s)",
            "uint8",
        ),
        (
            "sum(1 for r in range(2) if r > 0 for s in range(2) if s > 0)",
            "sum(1 for r in range(0, 2) for s in range(0, 2) if r > 0 and s > 0)",
            "int32",
        ),
        ("product(r for r in range(1, p_int32 + 1))", "product(r for r in range(1, p_int32 + 1))", "int32"),
        ("max(@u8@ for r in range(p_int32, p_int32 + 4))",) * 2 + ("uint8",),
        ("min(lut(r) for r in range(lut.min.i, lut.extent.i))",) * 2 + ("float32",),
        ("min(lut(r) for r in range(lut.min.i, lut.min.i + lut.extent.i))",) * 2 + ("float32",),
        ("any(r < x for r in range(0, 3))", "any(r < x for r in range(0, 3))", "bool"),
        ("all(lut(r) < 1 for r in range(0, p_uint8))", "all(lut(r) < 1.0 for r in range(0, int32(p_uint8)))", "bool"),
        ("argmin(lut(r) for r in range(0, 9))[0]",) * 2 + ("int32",),
        ("argmax(lut(r + s) for r in range(0, 9) for s in range(0, 2))[2]",) * 2 + ("float32",),
        ("sum(sum(lut(r + s) for s in range(0, 2)) for r in range(0, 2))",) * 2 + ("float32",),
        # Indices
        ("lut(int32(a_uint8(x, y)))", "lut(a_uint8(x, y))", "float32"),
        ("lut(int32(@f32@) % 8)", "lut(int32(@f32@) % 8)", "float32"),
        ("lut(int32(@b@))", "lut(int32(@b@))", "float32"),
        ("lut(clamp(a_int32(x, y), 0, 255))", "lut(clamp(a_int32(x, y), 0, 255))", "float32"),
        ("lut(x + 2 * y)", "lut(x + 2 * y)", "float32"),
        ("sum(lut(x + (1 << r - 1)) for r in range(1, 9))",) * 2 + ("float32",),
        # Layout of the text
        ("  x\n + y\t", "x + y", "int32"),
        ("(x)", "x", "int32"),
    ],
)  # fmt: skip
def test_forms(written: str, expected: str, type_name: str) -> None:
    assert canonical(short(written)) == short(expected)
    assert build(short(written)).type == TYPES[type_name]


def test_nodes() -> None:
    """The tree of an expression with a bit of everything."""
    match build("select(a_uint8(x, 1) > 3, p_float32, lut(a_uint8.min.x) * 2)"):
        case Select(
            condition, ParamRef("p_float32"), Binary("*", Access("lut", (InputBound("a_uint8", "min", "x"),)), two)
        ):
            assert two == Const(2.0, FLOAT32)
            assert condition.type.name == "bool"
        case other:
            pytest.fail(repr(other))


def test_range_is_lo_and_extent() -> None:
    reduce = build("sum(lut(r) for r in range(-1, 2) for s in range(2, p_int32))")
    assert isinstance(reduce, Reduce)
    r, s = reduce.domain
    assert (r.lo, r.extent) == (Const(-1, INT32), Const(3, INT32))
    assert s.extent == Binary("-", ParamRef("p_int32", INT32), Const(2, INT32), INT32)


def test_a_range_written_with_its_extent_has_that_extent() -> None:
    reduce = build("sum(lut(r) for r in range(p_int32, p_int32 + 7))")
    assert isinstance(reduce, Reduce)
    assert reduce.domain[0].extent == Const(7, INT32)


def test_float_literals_are_rounded_to_their_type() -> None:
    assert build("0.1") == Const(0.10000000149011612, FLOAT32)


def test_an_index_is_int32() -> None:
    access = build("lut(a_uint8(x, y))")
    assert isinstance(access, Access)
    assert access.indices[0] == Cast(Access("a_uint8", (Var("x"), Var("y")), 0, UINT8), INT32)


def test_min_of_many_is_nested() -> None:
    outer = build("min(x, y, 3)")
    assert isinstance(outer, Call)
    assert [len(c.args) for c in (outer, outer.args[0]) if isinstance(c, Call)] == [2, 2]


@pytest.mark.parametrize("function", ["argmin", "argmax"])
def test_argmin_as_a_stage(function: str) -> None:
    text = f"{function}(lut(r + s) for r in range(0, 3) for s in range(0, 2) if r != s)"
    pipeline = load(document(text) | {"estimates": {"f": [[0, 4], [0, 4]]}})
    f = pipeline.stage("f")
    assert [t.name for t in f.types] == ["int32", "int32", "float32"]
    assert [v.component for v in f.values if isinstance(v, Reduce)] == [0, 1, 2]
    assert to_document(pipeline)["stages"][0]["value"] == text


@pytest.mark.parametrize(
    ("written", "code", "column"),
    [
        ("@b@ + 1", "type_error", 1),
        ("x + @b@", "type_error", 5),
        ("@b@ * @b@", "type_error", 1),
        ("@b@ < True", "type_error", 1),
        ("x / y", "type_error", 1),
        ("-@b@", "type_error", 1),
        ("~@f32@", "type_error", 1),
        ("@f32@ & 1", "type_error", 1),
        ("@f32@ << 1", "type_error", 1),
        ("@u8@ << @f32@", "type_error", 18),
        ("sat_add(@f32@, 1)", "type_error", 1),
        ("sqrt(x)", "type_error", 1),
        ("lerp(@u8@, 1, x)", "type_error", 24),
        ("lerp(@f32@, 1, @u8@)", "type_error", 26),
        ("mux(0.5, 1, 2)", "type_error", 5),
        ("random(0.5)", "type_error", 8),
        ("select(@b@, @u8@, @u16@)", "type_error", 22),
        ("select(@b@, @u8@, 0.5)", "type_error", 37),
        ("select(x, 1, 2)", "bad_predicate", 8),
        ("x and y > 1", "bad_predicate", 1),
        ("sum(@b@ for r in range(3))", "type_error", 5),
        ("any(x for r in range(3))", "type_error", 5),
        ("lut(0.5)", "type_error", 5),
        ("@u8@ + 256", "literal_out_of_range", 17),
        ("@u8@ + -1", "literal_out_of_range", 17),
        ("2147483648", "literal_out_of_range", 1),
        ("1e39", "literal_out_of_range", 1),
        ("1e999", "literal_out_of_range", 1),
        ("float32(1e39)", "literal_out_of_range", 9),
        ("x ** y", "bad_exponent", 6),
        ("x ** -1", "bad_exponent", 6),
        ("@u8@ << 8", "bad_shift", 18),
        ("x >> -1", "bad_shift", 6),
        ("a_uint8(x)", "wrong_arity", 1),
        ("dot(x)", "wrong_arity", 1),
        ("clamp(x, 1)", "wrong_arguments", 1),
        ("min(x)", "wrong_arguments", 1),
        ("sum(x)", "wrong_arguments", 1),
        ("uint8(x, y)", "wrong_arguments", 1),
        ("pair(x)", "tuple_needs_component", 1),
        ("pair(x) + 1", "tuple_needs_component", 1),
        ("argmin(lut(r) for r in range(3)) + 1", "tuple_needs_component", 1),
        ("pair(x)[2]", "bad_component", 9),
        ("pair(x)[-1]", "bad_component", 9),
        ("pair(x)[x]", "bad_component", 9),
        ("lut(x)[0]", "not_a_tuple", 1),
        ("nothing + 1", "unknown_name", 1),
        ("lut + 1", "unknown_name", 1),
        ("sqrt + 1", "unknown_name", 1),
        ("a_uint8.min.z", "unknown_name", 1),
        ("a_uint8.max.x", "unknown_name", 1),
        ("pair.min.x", "unknown_name", 1),
        ("nothing(x)", "unknown_function", 1),
        ("x(1)", "unknown_function", 1),
        ("p_int8(1)", "unknown_function", 1),
        ("range(3)", "unsupported_syntax", 1),
        ("sum(1 for x in range(3))", "shadowed_name", 11),
        ("sum(1 for r in range(2) for r in range(2))", "shadowed_name", 29),
        ("sum(sum(1 for r in range(2)) for r in range(2))", "shadowed_name", 15),
        ("sum(1 for r in range(x))", "bad_bounds", 22),
        ("sum(1 for r in range(0, a_uint8(0, 0)))", "bad_bounds", 25),
        ("sum(1 for r in range(0.5))", "bad_bounds", 22),
        ("sum(1 for r in range(3) for s in range(r))", "bad_bounds", 40),
        ("sum(1 for r in range(2, 2))", "empty_range", 16),
        ("lut(a_int32(x, y))", "unbounded_index", 5),
        ("lut(a_uint32(x, y))", "unbounded_index", 5),
        ("lut(int32(a_float32(x, y)))", "unbounded_index", 5),
        ("lut(min(a_int32(x, y), 5))", "unbounded_index", 5),
        ("sum(lut(1 << r) for r in range(40))", "unbounded_index", 9),  # beyond 32 bits
        ("sum(lut(1 << (x + r)) for r in range(4))", "unbounded_index", 9),
        ("f(x, y - 1)", "self_read", 1),
        ("1 < x < 3", "chained_comparison", 1),
        ("x is y", "unsupported_syntax", 1),
        ("x in y", "unsupported_syntax", 1),
        ("x @ y", "unsupported_syntax", 3),
        ("'x'", "unsupported_syntax", 1),
        ("[x, y]", "unsupported_syntax", 1),
        ("(x, y)", "unsupported_syntax", 1),
        ("x, y", "unsupported_syntax", 1),
        ("{x}", "unsupported_syntax", 1),
        ("lambda: x", "unsupported_syntax", 7),
        ("x.real", "unsupported_syntax", 1),
        ("3j", "unsupported_syntax", 1),
        ("None", "unsupported_syntax", 1),
        ("...", "unsupported_syntax", 1),
        ("[r for r in range(3)]", "unsupported_syntax", 1),
        ("(r for r in range(3))", "unsupported_syntax", 1),
        ("sqrt(r for r in range(3))", "unsupported_syntax", 5),
        ("sum(r for r in lut)", "unsupported_syntax", 16),
        ("sum(r for r in range(0, 9, 2))", "unsupported_syntax", 16),
        ("sum(r for r, s in range(3))", "unsupported_syntax", 11),
        ("min(*x)", "unsupported_syntax", 5),
        ("min(x, key=y)", "unsupported_syntax", 1),
        ("lut[x]", "unknown_name", 1),
        ("(yield x)", "unsupported_syntax", 2),
        ("(x := 3)", "unsupported_syntax", 4),
        ("sum(r for r in range())", "unsupported_syntax", 16),
        ("sum(r for r in abs())", "unsupported_syntax", 16),
        ("x(1)(2)", "unsupported_syntax", 1),
        ("x +", "syntax_error", None),
        ("x y", "syntax_error", None),
        ("x = 3", "syntax_error", None),
        ("x && y", "syntax_error", None),
        ("x +* y", "syntax_error", None),
        ("(x", "syntax_error", 1),
        ("x)", "syntax_error", 2),
        ("(x]", "syntax_error", 3),
        ("", "syntax_error", 1),
        ("  ", "syntax_error", 1),
        ("1if x > 1else 2", "syntax_error", 1),
        ("012", "syntax_error", 1),
        ("x * 0.1f", "syntax_error", 7),
        ("x + é", "syntax_error", 5),
        ("x \x00", "syntax_error", 3),
        ("import os", "syntax_error", None),
        ("__import__(x)", "unknown_function", 1),
        ("x.__class__.__bases__", "unknown_name", 1),
    ],
)  # fmt: skip
def test_errors(written: str, code: str, column: int | None) -> None:
    found = fails(short(written))
    codes = [c for c, _ in found]
    assert code in codes, found
    if column is not None:
        assert (code, column) in found, found


def test_an_error_is_said_once() -> None:
    """What is built on a broken part is not reported again."""
    assert fails("sqrt(nothing + 1) + uint8(nothing) * 0.5") == [("unknown_name", 6), ("unknown_name", 27)]


def test_all_errors_of_an_expression() -> None:
    assert fails("nothing + lut(x, y) + (x / y)") == [
        ("unknown_name", 1), ("wrong_arity", 11), ("type_error", 24),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("sum(r for r in range(3), s in x)", "each loop has a 'for': sum(... for i in range(3) for j in range(3))"),
        ("x if y > 3", "write a if condition else b"),
    ],
)  # fmt: skip
def test_what_python_says_of_its_own_syntax_is_said_of_the_language(text: str, hint: str) -> None:
    with pytest.raises(DocumentError) as caught:
        load(document(text))
    assert [(p.code, p.hint) for p in caught.value.problems] == [("syntax_error", hint)]


def test_hints_offer_the_nearest_name() -> None:
    with pytest.raises(DocumentError) as caught:
        load(document("squrt(p_flaot32)"))
    assert [p.hint for p in caught.value.problems] == ["did you mean 'sqrt'?", "did you mean 'p_float32'?"]

"""Scalar operations of arith and math as expressions of documents, in text.

Integers of MLIR have no sign: they are signed here, and converted where an operation takes them for unsigned.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    Float32Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    Signedness,
)
from xdsl.ir import Attribute, Operation, SSAValue

MOST_CHARACTERS = 64 << 10


class Inexpressible(Exception):
    """A part that no document has words for, with a hint or None."""

    def __init__(self, what: str, hint: str | None = None) -> None:
        super().__init__(what)
        self.hint = hint


def type_name(t: Attribute) -> str:
    """The document's name of an element type. Raises Inexpressible."""
    match t:
        case Float32Type():
            return "float32"
        case Float64Type():
            return "float64"
        case IndexType():
            return "int32"
        case IntegerType() if t.width.data == 1:
            return "bool"
        case IntegerType() if t.width.data in (8, 16, 32, 64):
            unsigned = t.signedness.data == Signedness.UNSIGNED
            return f"{'uint' if unsigned else 'int'}{t.width.data}"
    raise Inexpressible(f"the type {t}", "there are f32, f64, i1, i8, i16, i32, i64 and index")


def literal(value: float, type: str) -> str:
    """A constant of the type."""
    if type == "bool":
        return "True" if value else "False"
    if type.startswith("float"):
        number = float(value)
        if math.isnan(number):
            return f"({type}(0.0) / {type}(0.0))"
        if math.isinf(number):
            return f"({type}({'-' if number < 0 else ''}1.0) / {type}(0.0))"
        return f"{type}({number!r})"
    return f"{type}({int(value)})"


def constant(op: Operation) -> str:
    """The value of an arith.constant of a scalar, or of a tensor of equal elements."""
    value: Any = op.properties["value"]
    match value:
        case IntegerAttr():
            name = type_name(value.type)
            return literal(value.value.data, name)
        case FloatAttr():
            return literal(value.value.data, type_name(value.type))
        case DenseIntOrFPElementsAttr() if value.is_splat():
            return literal(value.get_values()[0], type_name(value.get_element_type()))
    raise Inexpressible("a constant of this kind")


def expression(op: Operation, arguments: list[str]) -> str:
    """The value of a scalar operation of `arguments`, which are expressions in brackets or calls."""
    if op.name == "arith.constant":
        return constant(op)
    types = [o.type for o in op.operands]
    result = type_name(op.results[0].type)
    made = _made(op, arguments, [type_name(t) for t in types], result)
    if len(made) > MOST_CHARACTERS:
        raise Inexpressible(
            "a value that is too long when it is written out", "compute parts of it in operations of their own"
        )
    return made


def _made(op: Operation, a: list[str], types: list[str], result: str) -> str:
    name = op.name
    if name in ("arith.cmpi", "arith.cmpf"):
        predicate: Any = op.properties["predicate"]
        table = _CMPI if name == "arith.cmpi" else _CMPF
        x, y = a
        chosen = table[predicate.value.data]
        return f"({chosen(x, y) if not isinstance(chosen, str) else _compared(chosen, x, y, types[0])})"
    if name in _INFIX:
        symbol = _INFIX[name]
        if result == "bool" and symbol not in "&|^":
            raise Inexpressible("arithmetic of i1")
        return f"({a[0]} {symbol} {a[1]})"
    if name in _CALLS:
        return f"{_CALLS[name]}({', '.join(a)})"
    if name in _UNSIGNED:
        one, two = (_unsigned(x, result) for x in a)
        return f"{result}({_UNSIGNED[name].format(a=one, b=two)})"
    if name in _FORMS:
        return _FORMS[name](a, types, result)
    raise Inexpressible("this operation has no counterpart")


def _unsigned(x: str, type: str) -> str:
    return f"u{type}({x})" if type.startswith("int") else x


def _compared(symbol: str, x: str, y: str, type: str) -> str:
    if symbol.startswith("u"):
        return f"{_unsigned(x, type)} {symbol[1:]} {_unsigned(y, type)}"
    return f"{x} {symbol} {y}"


_INFIX = {
    "arith.addi": "+", "arith.subi": "-", "arith.muli": "*", "arith.addf": "+", "arith.subf": "-", "arith.mulf": "*",
    "arith.divf": "/", "arith.andi": "&", "arith.ori": "|", "arith.xori": "^", "arith.shli": "<<", "arith.shrsi": ">>",
}  # fmt: skip
_CALLS = {
    "arith.minsi": "min", "arith.maxsi": "max", "arith.minimumf": "min", "arith.maximumf": "max",
    "arith.minnumf": "min",
    "arith.maxnumf": "max", "arith.select": "select", "math.absf": "abs", "math.absi": "abs", "math.ceil": "ceil",
    "math.floor": "floor", "math.trunc": "trunc", "math.roundeven": "round", "math.sqrt": "sqrt", "math.exp": "exp",
    "math.log": "log", "math.sin": "sin", "math.cos": "cos", "math.tan": "tan", "math.asin": "asin",
    "math.acos": "acos",
    "math.atan": "atan", "math.atan2": "atan2", "math.tanh": "tanh", "math.powf": "pow",
}  # fmt: skip
_UNSIGNED = {
    "arith.divui": "{a} // {b}", "arith.remui": "{a} % {b}", "arith.minui": "min({a}, {b})",
    "arith.maxui": "max({a}, {b})", "arith.shrui": "{a} >> {b}",
}  # fmt: skip

Form = Callable[[list[str], list[str], str], str]


def _quotient(x: str, y: str) -> str:
    """Cut towards zero, of 64 bits: the quotient of the language leaves a remainder that is never negative."""
    return f"select(({x} < 0) == ({y} < 0), abs({x}) // abs({y}), -(abs({x}) // abs({y})))"


def _wide(a: list[str]) -> list[str]:
    return [f"int64({x})" for x in a]


def _divsi(a: list[str], _: list[str], result: str) -> str:
    return f"{result}({_quotient(*_wide(a))})"


def _remsi(a: list[str], _: list[str], result: str) -> str:
    x, y = _wide(a)
    return f"{result}(select({x} < 0, -(abs({x}) % abs({y})), abs({x}) % abs({y})))"


def _floordivsi(a: list[str], _: list[str], result: str) -> str:
    x, y = _wide(a)
    return f"{result}({x} // {y} - select({y} < 0 and {x} % {y} != 0, int64(1), int64(0)))"


def _convert(a: list[str], types: list[str], result: str) -> str:
    if result == "bool":
        return f"(({a[0]} & 1) != 0)"
    return f"{result}({a[0]})"


def _extend_unsigned(a: list[str], types: list[str], result: str) -> str:
    return f"{result}({_unsigned(a[0], types[0])})"


def _extend_signed(a: list[str], types: list[str], result: str) -> str:
    return f"(-{result}({a[0]}))" if types[0] == "bool" else f"{result}({a[0]})"


def _to_unsigned(a: list[str], _: list[str], result: str) -> str:
    return f"{result}(u{result}({a[0]}))"


def _away(a: list[str], _: list[str], result: str) -> str:
    """Halves away from zero."""
    x, one, none = a[0], literal(1, result), literal(0, result)
    up = f"select({x} < 0, -{one}, {one})"
    return f"(trunc({x}) + select(abs({x} - trunc({x})) >= {literal(0.5, result)}, {up}, {none}))"


_FORMS: dict[str, Form] = {
    "arith.divsi": _divsi,
    "arith.remsi": _remsi,
    "arith.floordivsi": _floordivsi,
    "arith.negf": lambda a, t, r: f"(-{a[0]})",
    "arith.trunci": _convert,
    "arith.extsi": _extend_signed,
    "arith.extui": _extend_unsigned,
    "arith.extf": _convert,
    "arith.truncf": _convert,
    "arith.sitofp": _extend_signed,
    "arith.uitofp": _extend_unsigned,
    "arith.fptosi": _convert,
    "arith.fptoui": _to_unsigned,
    "arith.index_cast": _convert,
    "math.round": _away,
    "math.rsqrt": lambda a, t, r: f"({literal(1, r)} / sqrt({a[0]}))",
    "math.exp2": lambda a, t, r: f"pow({literal(2, r)}, {a[0]})",
    "math.log2": lambda a, t, r: f"(log({a[0]}) * {literal(1 / math.log(2), r)})",
    "math.log10": lambda a, t, r: f"(log({a[0]}) * {literal(1 / math.log(10), r)})",
    "math.fma": lambda a, t, r: f"({a[0]} * {a[1]} + {a[2]})",
    "math.copysign": lambda a, t, r: f"select({a[1]} < 0, -abs({a[0]}), abs({a[0]}))",
}

Compare = str | Callable[[str, str], str]
_CMPI: tuple[Compare, ...] = ("==", "!=", "<", "<=", ">", ">=", "u<", "u<=", "u>", "u>=")
_CMPF: tuple[Compare, ...] = (
    lambda x, y: "False",
    "==", ">", ">=", "<", "<=",
    lambda x, y: f"{x} < {y} or {x} > {y}",
    lambda x, y: f"{x} == {x} and {y} == {y}",
    lambda x, y: f"not ({x} < {y} or {x} > {y})",
    lambda x, y: f"not ({x} <= {y})",
    lambda x, y: f"not ({x} < {y})",
    lambda x, y: f"not ({x} >= {y})",
    lambda x, y: f"not ({x} > {y})",
    "!=",
    lambda x, y: f"{x} != {x} or {y} != {y}",
    lambda x, y: "True",
)  # fmt: skip

REDUCTIONS: Mapping[str, str] = {
    "arith.addf": "sum", "arith.addi": "sum", "arith.mulf": "product", "arith.muli": "product",
    "arith.maximumf": "max", "arith.maxnumf": "max", "arith.maxsi": "max", "arith.minimumf": "min",
    "arith.minnumf": "min", "arith.minsi": "min",
}  # fmt: skip
"""The operations that join one more element to what a reduction has, and the reductions of documents that they are."""


def joined(reduction: str, first: str, rest: str, type: str) -> str:
    """The value that a reduction begins with, joined to the elements; the neutral element is left out."""
    if first in _neutral(reduction, type):
        return rest
    match reduction:
        case "sum":
            return f"{first} + {rest}"
        case "product":
            return f"{first} * {rest}"
        case _:
            return f"{reduction}({first}, {rest})"


def written_out(reduction: str, elements: Sequence[str]) -> str:
    """A reduction of these elements, in order."""
    match reduction:
        case "sum":
            return f"({' + '.join(elements)})"
        case "product":
            return f"({' * '.join(elements)})"
        case _:
            return f"{reduction}({', '.join(elements)})" if len(elements) > 1 else elements[0]


def _neutral(reduction: str, type: str) -> tuple[str, ...]:
    match reduction:
        case "sum":
            return (literal(0, type),)
        case "product":
            return (literal(1, type),)
        case _:
            sign = -1 if reduction == "max" else 1
            if type.startswith("float"):
                return (literal(sign * math.inf, type),)
            bits = int(type.removeprefix("u").removeprefix("int"))
            low, high = (0, 2**bits - 1) if type.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
            return (literal(low if reduction == "max" else high, type),)


def is_scalar(value: SSAValue) -> bool:
    """True for what a body or an argument may be of: a number, a truth value, an index."""
    return isinstance(value.type, Float32Type | Float64Type | IndexType | IntegerType)

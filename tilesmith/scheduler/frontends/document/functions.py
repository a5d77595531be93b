"""The built-in functions: how many arguments each takes, of which types, and what it becomes."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tilesmith.scheduler.frontends.document.operators import alternatives, select
from tilesmith.scheduler.frontends.document.typing_context import Context, Value
from tilesmith.scheduler.ir.pipeline import bit_counts
from tilesmith.scheduler.ir.pipeline.expressions import Call, Expr
from tilesmith.scheduler.ir.pipeline.type_promotion import constant, convert, default_type
from tilesmith.scheduler.ir.pipeline.types import BOOL, FLOAT32, TYPES, ScalarType


@dataclass(frozen=True, slots=True)
class Function:
    """`most` None: any number of arguments."""

    least: int
    most: int | None
    build: Callable[[Context, str, ast.Call, list[Value]], Expr | None]


def _numbers(b: Context, name: str, node: ast.Call, args: list[Value]) -> list[Expr] | None:
    """`args` brought to one numeric type."""
    unified = b.unify(node.args, args, f"{name}()")
    if unified is None:
        return None
    if unified[0].type == BOOL:
        b.problem("type_error", f"{name}() needs numbers, not bool.", node, "convert with uint8(...)")
        return None
    return unified


def _same(b: Context, name: str, node: ast.Call, args: list[Value]) -> Expr | None:
    """absd, clamp, abs: all arguments and the result of one numeric type."""
    numbers = _numbers(b, name, node, args)
    return None if numbers is None else Call(name, tuple(numbers), numbers[0].type)


def _fold(b: Context, name: str, node: ast.Call, args: list[Value]) -> Expr | None:
    """min, max: of any number of arguments, two at a time."""
    numbers = _numbers(b, name, node, args)
    if numbers is None:
        return None
    result = numbers[0]
    for number in numbers[1:]:
        result = Call(name, (result, number), number.type)
    return result


def _integers(b: Context, name: str, node: ast.Call, args: list[Value]) -> Expr | None:
    unified = b.unify(node.args, args, f"{name}()")
    if unified is None:
        return None
    if not unified[0].type.is_integer:
        b.problem("type_error", f"{name}() needs integers, not {unified[0].type}.", node)
        return None
    return Call(name, tuple(unified), unified[0].type)


def _shift_count(b: Context, name: str, node: ast.Call, value: Value, index: int, type: ScalarType) -> Expr | None:
    """An argument that counts bits: of any integer type, a literal takes `type`."""
    count = b.literal(node.args[index], value, type) if isinstance(value, int | float) else value
    if count is None:
        return None
    if not count.type.is_integer:
        message = f"{name}() needs an integer as argument {index + 1}, not {count.type}."
        b.problem("type_error", message, node.args[index])
        return None
    return count


def _rounding_shift_right(b: Context, name: str, node: ast.Call, args: list[Value]) -> Expr | None:
    operand = args[0]
    if isinstance(operand, int | float):
        type = args[1].type if not isinstance(args[1], int | float) else default_type(operand)
        settled: Expr | None = b.literal(node.args[0], operand, type)
    else:
        settled = operand
    if settled is None:
        return None
    if not settled.type.is_integer:
        b.problem("type_error", f"{name}() needs integers, not {settled.type}.", node.args[0])
        return None
    count = _shift_count(b, name, node, args[1], 1, settled.type)
    return None if count is None else Call(name, (settled, count), settled.type)


def _mul_shift_right(b: Context, name: str, node: ast.Call, args: list[Value]) -> Expr | None:
    factors = b.unify(node.args[:2], args[:2], f"{name}()")
    if factors is None:
        return None
    type = factors[0].type
    if not type.is_integer:
        b.problem("type_error", f"{name}() needs integers, not {type}.", node)
        return None
    count = _shift_count(b, name, node, args[2], 2, type)
    return None if count is None else Call(name, (*factors, count), type)


def _floats(b: Context, name: str, node: ast.Call, args: list[Value]) -> Expr | None:
    """sqrt, pow, ...: floats of one type; integer literals become floats."""
    if all(isinstance(a, int | float) for a in args):
        args = [float(a) if isinstance(a, int) and abs(a) < 1 << 64 else a for a in args if isinstance(a, int | float)]
    unified = b.unify(node.args, args, f"{name}()")
    if unified is None:
        return None
    type = unified[0].type
    if not type.is_float:
        b.problem("type_error", f"{name}() needs a float, not {type}.", node, "convert with float32(...)")
        return None
    return Call(name, tuple(unified), type)


def _lerp(b: Context, name: str, node: ast.Call, args: list[Value]) -> Expr | None:
    """The weight is a float in 0..1, or an unsigned integer whose largest value stands for 1."""
    ends = b.unify(node.args[:2], args[:2], "lerp()")
    if ends is None:
        return None
    type, raw = ends[0].type, args[2]
    if type == BOOL:
        b.problem("type_error", "lerp() needs numbers, not bool.", node)
        return None
    weight: Expr | None
    if isinstance(raw, int | float):
        wanted = type if type.is_float or isinstance(raw, int) else FLOAT32
        weight = b.literal(node.args[2], raw, wanted)
    elif type.is_float and raw.type.is_float:
        weight = convert(raw, type)
    else:
        weight = raw
    if weight is None:
        return None
    if not (weight.type.is_float or (weight.type.kind == "uint" and type.is_integer)):
        hint = "the weight is a float from 0 to 1" + (", or an unsigned integer" if type.is_integer else "")
        b.problem("type_error", f"lerp() of {type} cannot be weighted by {weight.type}.", node.args[2], hint)
        return None
    return Call("lerp", (*ends, weight), type)


def _select(b: Context, name: str, node: ast.Call, args: list[Value]) -> Expr | None:
    return select(b, node.args[0], node.args[1:], args[0], args[1:])


def _mux(b: Context, name: str, node: ast.Call, args: list[Value]) -> Expr | None:
    index = b.settle(node.args[0], args[0])
    values = alternatives(b, "mux()", node.args[1:], args[1:])
    if index is None or values is None:
        return None
    if not index.type.is_integer:
        b.problem("type_error", f"mux() picks by an integer, not by {index.type}.", node.args[0])
        return None
    return Call("mux", (index, *values), values[0].type)


def _random(b: Context, name: str, node: ast.Call, args: list[Value]) -> Expr | None:
    settled: list[Expr] = []
    for arg_node, arg in zip(node.args, args, strict=True):
        value = b.settle(arg_node, arg)
        if value is None:
            continue
        if not value.type.is_integer:
            b.problem("type_error", f"random() hashes integers, not {value.type}.", arg_node)
            continue
        settled.append(value)
    return Call("random", tuple(settled), FLOAT32) if len(settled) == len(args) else None


def _conversion(b: Context, name: str, node: ast.Call, args: list[Value]) -> Expr | None:
    saturate = name.startswith("sat_")
    to, arg = TYPES[name.removeprefix("sat_")], args[0]
    if isinstance(arg, int | float):
        if not saturate and (typed := constant(arg, to)) is not None:
            return typed
        if to.is_float:
            b.problem("literal_out_of_range", f"The literal does not fit {to}.", node.args[0])
            return None
    value = b.settle(node.args[0], arg)
    return None if value is None else convert(value, to, saturate)


def _of_bits(b: Context, name: str, node: ast.Call, args: list[Value]) -> Expr | None:
    """as_float32, ...: the bits of a number as those of another type of as many."""
    to, value = TYPES[name.removeprefix("as_")], b.settle(node.args[0], args[0])
    if value is None:
        return None
    if value.type == BOOL or value.type.bits != to.bits:
        b.problem("type_error", f"{name}() takes the bits of a number of {to.bits} bits, not of {value.type}.", node)
        return None
    return Call(name, (value,), to) if value.type.is_float != to.is_float else convert(value, to)


_OF_A_FLOAT = (
    "sqrt", "exp", "log", "sin", "cos", "tan", "asin", "acos", "atan", "tanh", "floor", "ceil", "round", "trunc",
)  # fmt: skip
_CONVERSIONS = [*TYPES, *(f"sat_{t.name}" for t in TYPES.values() if t.is_integer)]

FUNCTIONS: Final[dict[str, Function]] = {
    "min": Function(2, None, _fold),
    "max": Function(2, None, _fold),
    "clamp": Function(3, 3, _same),
    "abs": Function(1, 1, _same),
    "absd": Function(2, 2, _same),
    "lerp": Function(3, 3, _lerp),
    "mux": Function(2, None, _mux),
    "select": Function(3, 3, _select),
    "random": Function(1, None, _random),
    "rounding_shift_right": Function(2, 2, _rounding_shift_right),
    "mul_shift_right": Function(3, 3, _mul_shift_right),
    "pow": Function(2, 2, _floats),
    "atan2": Function(2, 2, _floats),
    **{name: Function(2, 2, _integers) for name in ("sat_add", "sat_sub", "halving_add", "rounding_halving_add")},
    **{name: Function(1, 1, _floats) for name in _OF_A_FLOAT},
    **{name: Function(1, 1, _integers) for name in bit_counts.FUNCTIONS},
    **{f"as_{t.name}": Function(1, 1, _of_bits) for t in TYPES.values() if t.bits >= 32},
    **{name: Function(1, 1, _conversion) for name in _CONVERSIONS},
}

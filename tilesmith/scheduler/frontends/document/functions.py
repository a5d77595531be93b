"""The built-in functions: how many arguments each takes, of which types, and what it becomes."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from tilesmith.scheduler.frontends.document.operators import alternatives, select
from tilesmith.scheduler.frontends.document.typing_context import Context, Value
from tilesmith.scheduler.ir.pipeline import bit_counts
from tilesmith.scheduler.ir.pipeline.expressions import Call, Expr
from tilesmith.scheduler.ir.pipeline.type_promotion import constant, convert
from tilesmith.scheduler.ir.pipeline.types import BOOL, FLOAT32, TYPES, ScalarType


@dataclass(frozen=True, slots=True)
class Called:
    """A call of a built-in function in an expression that is being checked, with the values of its arguments."""

    context: Context
    name: str
    node: ast.Call
    args: list[Value]

    def unified(self, count: int | None = None) -> list[Expr] | None:
        """The arguments, or the first `count`, brought to their common type."""
        return self.context.unify(self.node.args[:count], self.args[:count], f"{self.name}()")

    def settled(self, n: int) -> Expr | None:
        """Argument `n` with a type of its own."""
        return self.context.settle(self.node.args[n], self.args[n])

    def typed(self, n: int, type: ScalarType) -> Expr | None:
        """Argument `n`; a literal takes `type`."""
        arg = self.args[n]
        return self.context.literal(self.node.args[n], arg, type) if isinstance(arg, int | float) else arg

    def refuse(self, message: str, at: int | None = None, hint: str | None = None) -> None:
        """Reports an error of types, in the call or in the argument `at`."""
        self.context.problem("type_error", message, self.node if at is None else self.node.args[at], hint)


@dataclass(frozen=True, slots=True)
class Function:
    """A built-in function of `least` to `most` arguments (None: of any number), and what makes an expression of its
    calls: None where it has reported a problem."""

    least: int
    most: int | None
    build: Callable[[Called], Expr | None]


def _numbers(c: Called) -> list[Expr] | None:
    """The arguments brought to one numeric type."""
    unified = c.unified()
    if unified is None:
        return None
    if unified[0].type == BOOL:
        c.refuse(f"{c.name}() needs numbers, not bool.", hint="convert with uint8(...)")
        return None
    return unified


def _same(c: Called) -> Expr | None:
    """absd, clamp, abs: all arguments and the result of one numeric type."""
    numbers = _numbers(c)
    return None if numbers is None else Call(c.name, tuple(numbers), numbers[0].type)


def _fold(c: Called) -> Expr | None:
    """min, max: of any number of arguments, two at a time."""
    numbers = _numbers(c)
    if numbers is None:
        return None
    result = numbers[0]
    for number in numbers[1:]:
        result = Call(c.name, (result, number), number.type)
    return result


def _integers(c: Called) -> Expr | None:
    unified = c.unified()
    if unified is None:
        return None
    if not unified[0].type.is_integer:
        c.refuse(f"{c.name}() needs integers, not {unified[0].type}.")
        return None
    return Call(c.name, tuple(unified), unified[0].type)


def _shift_count(c: Called, n: int, type: ScalarType) -> Expr | None:
    """An argument that counts bits: of any integer type, a literal takes `type`."""
    count = c.typed(n, type)
    if count is None:
        return None
    if not count.type.is_integer:
        c.refuse(f"{c.name}() needs an integer as argument {n + 1}, not {count.type}.", n)
        return None
    return count


def _rounding_shift_right(c: Called) -> Expr | None:
    by = c.args[1]
    settled = c.settled(0) if isinstance(by, int | float) else c.typed(0, by.type)
    if settled is None:
        return None
    if not settled.type.is_integer:
        c.refuse(f"{c.name}() needs integers, not {settled.type}.", 0)
        return None
    count = _shift_count(c, 1, settled.type)
    return None if count is None else Call(c.name, (settled, count), settled.type)


def _mul_shift_right(c: Called) -> Expr | None:
    factors = c.unified(2)
    if factors is None:
        return None
    type = factors[0].type
    if not type.is_integer:
        c.refuse(f"{c.name}() needs integers, not {type}.")
        return None
    count = _shift_count(c, 2, type)
    return None if count is None else Call(c.name, (*factors, count), type)


def _floats(c: Called) -> Expr | None:
    """sqrt, pow, ...: floats of one type; integer literals become floats."""
    if all(isinstance(a, int | float) for a in c.args):
        numbers = [a for a in c.args if isinstance(a, int | float)]
        args: list[Value] = [float(a) if isinstance(a, int) and abs(a) < 1 << 64 else a for a in numbers]
        c = replace(c, args=args)
    unified = c.unified()
    if unified is None:
        return None
    type = unified[0].type
    if not type.is_float:
        c.refuse(f"{c.name}() needs a float, not {type}.", hint="convert with float32(...)")
        return None
    return Call(c.name, tuple(unified), type)


def _lerp(c: Called) -> Expr | None:
    """The weight is a float in 0..1, or an unsigned integer whose largest value stands for 1."""
    ends = c.unified(2)
    if ends is None:
        return None
    type, raw = ends[0].type, c.args[2]
    if type == BOOL:
        c.refuse("lerp() needs numbers, not bool.")
        return None
    weight: Expr | None
    if isinstance(raw, int | float):
        weight = c.typed(2, type if type.is_float or isinstance(raw, int) else FLOAT32)
    elif type.is_float and raw.type.is_float:
        weight = convert(raw, type)
    else:
        weight = raw
    if weight is None:
        return None
    if not (weight.type.is_float or (weight.type.kind == "uint" and type.is_integer)):
        hint = "the weight is a float from 0 to 1" + (", or an unsigned integer" if type.is_integer else "")
        c.refuse(f"lerp() of {type} cannot be weighted by {weight.type}.", 2, hint)
        return None
    return Call("lerp", (*ends, weight), type)


def _select(c: Called) -> Expr | None:
    return select(c.context, c.node.args[0], c.node.args[1:], c.args[0], c.args[1:])


def _mux(c: Called) -> Expr | None:
    index = c.settled(0)
    values = alternatives(c.context, "mux()", c.node.args[1:], c.args[1:])
    if index is None or values is None:
        return None
    if not index.type.is_integer:
        c.refuse(f"mux() picks by an integer, not by {index.type}.", 0)
        return None
    return Call("mux", (index, *values), values[0].type)


def _random(c: Called) -> Expr | None:
    settled: list[Expr] = []
    for n in range(len(c.args)):
        value = c.settled(n)
        if value is None:
            continue
        if not value.type.is_integer:
            c.refuse(f"random() hashes integers, not {value.type}.", n)
            continue
        settled.append(value)
    return Call("random", tuple(settled), FLOAT32) if len(settled) == len(c.args) else None


def _conversion(c: Called) -> Expr | None:
    saturate = c.name.startswith("sat_")
    to, arg = TYPES[c.name.removeprefix("sat_")], c.args[0]
    if isinstance(arg, int | float):
        if not saturate and (typed := constant(arg, to)) is not None:
            return typed
        if to.is_float:
            c.context.problem("literal_out_of_range", f"The literal does not fit {to}.", c.node.args[0])
            return None
    value = c.settled(0)
    return None if value is None else convert(value, to, saturate)


def _of_bits(c: Called) -> Expr | None:
    """as_float32, ...: the bits of a number as those of another type of as many."""
    to, value = TYPES[c.name.removeprefix("as_")], c.settled(0)
    if value is None:
        return None
    if value.type == BOOL or value.type.bits != to.bits:
        c.refuse(f"{c.name}() takes the bits of a number of {to.bits} bits, not of {value.type}.")
        return None
    return Call(c.name, (value,), to) if value.type.is_float != to.is_float else convert(value, to)


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

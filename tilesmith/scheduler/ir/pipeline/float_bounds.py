"""Bounds of integers that floats are rounded to, as `int32(floor(float32(x) * scale))`: interval arithmetic that rounds
as the pipeline does.

Rounding is monotone, and so is every operation here in each of its operands, where the sign of the other is known: the
least and the greatest value are taken at ends of the operands' intervals, and the same float operations there give
exactly these. Where a sign is not known they are the least and the greatest of what the ends give.

What follows from numbers that are known when the code is called stays a function of these. A float param without a
range may be anything, infinite or NaN: what it makes is bounded where it is between 2**-40 and 2**40 in size, and
else by the type alone. Indices are made of integers, so that the symbol of a float param has its bits (`bits_of`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, isfinite
from struct import pack, unpack
from typing import Never

import numpy as np

from tilesmith.scheduler.ir.index import Index, call, sym
from tilesmith.scheduler.ir.pipeline import semantics
from tilesmith.scheduler.ir.pipeline.evaluation import Leaf, evaluate
from tilesmith.scheduler.ir.pipeline.expressions import (
    Access,
    Binary,
    Call,
    Cast,
    Compare,
    CompareOp,
    Const,
    Expr,
    InputBound,
    ParamRef,
    Reduce,
    Select,
    Unary,
    Var,
    children,
    map_children,
    walk,
)
from tilesmith.scheduler.ir.pipeline.printer import to_text
from tilesmith.scheduler.ir.pipeline.types import BOOL, INT32, ScalarType
from tilesmith.scheduler.ir.pipeline.value_bounds import (
    AT_RUN_TIME,
    ROUNDED_OFF,
    Interval,
    Leaves,
    leaf_interval,
    parts_of_value,
)
from tilesmith.scheduler.ir.pipeline.value_bounds import interval as value_interval

Ends = tuple[Index, Index]

LARGEST_PARAM = 2.0**40
"""A float param without a range is taken for a number up to this size, and as a divisor down to its inverse."""
_LARGEST = {32: 3.0e38, 64: 1.0e308}
_STEPS = ("floor", "ceil", "round", "trunc")


def bits_of(value: float) -> int:
    """The bits of a float64 as an integer."""
    return int.from_bytes(pack("<d", value), "little", signed=True)


def _float_of(bits: int) -> float:
    return float(unpack("<d", bits.to_bytes(8, "little", signed=True))[0])


@dataclass(frozen=True)
class Rounding:
    """An integer expression of numbers: its variables `#0`, `#1`, ... are the arguments, of their types."""

    expr: Expr

    @cached_property
    def key(self) -> str:
        """The text, which no other function has."""
        return to_text(self.expr)

    def __call__(self, args: Sequence[int]) -> int:
        def number(leaf: Leaf) -> semantics.Array:
            assert isinstance(leaf, Var)
            value = args[int(leaf.name[1:])]
            t = leaf.type
            return semantics.constant(_float_of(value) if t.is_float else min(max(value, t.min), t.max), t)

        with np.errstate(all="ignore"):
            return int(evaluate(self.expr, number))


@dataclass(frozen=True, slots=True)
class _Floats:
    """The values from `lo` to `hi`, which are never NaN, and numbers that no end is beyond."""

    lo: Expr
    hi: Expr
    least: float
    most: float

    @property
    def one(self) -> bool:
        """True if it is one value throughout a call."""
        return self.lo is self.hi or self.lo == self.hi


def rounded(e: Cast, integer: Callable[[Expr], Ends | None], number: Callable[[ParamRef], Index]) -> Ends | None:
    """The least and the greatest value of an integer `e` that is made of a float. None where they do not follow.

    `integer` bounds the integers that floats are made of; `number` is the symbol of a float param, or its value.
    """
    if not (e.type.is_integer and e.operand.type.is_float) or (e.type.bits > 32 or e.type.name == "uint32"):
        return None
    bounds = _Bounds(integer, number)
    found = bounds.of(e.operand)
    if found is None:
        return None
    ends = []
    for end, otherwise in ((found.lo, e.type.min), (found.hi, e.type.max)):
        place: Expr = Cast(end, e.type)
        for held in bounds.guards:
            place = Select(held, place, Const(otherwise, e.type), e.type)
        ends.append(bounds.index(place))
    return ends[0], ends[1]


def place_interval(e: Expr, known: dict[int, Interval] | None = None, leaves: Leaves = leaf_interval) -> Interval:
    """The interval of an index (see `value_bounds`): what floats are rounded to is known at run time where `rounded`
    bounds it."""
    found = value_interval(e, leaves, known)
    if found.bounded:
        return found
    places: dict[int, Interval] = {}
    for node in parts_of_value(e):
        if isinstance(node, Cast) and rounded(node, _known_at_run_time, _anything) is not None:
            places[id(node)] = AT_RUN_TIME
    return value_interval(e, leaves, places) if places else found


def _known_at_run_time(e: Expr) -> Ends | None:
    if not value_interval(e).bounded:
        return None
    stands = not any(isinstance(n, Access | Reduce | Var) for n in walk(e))
    return (sym("one"), sym("one")) if stands else (sym("least"), sym("most"))


def _anything(p: ParamRef) -> Index:
    return sym(p.name)


class _Bounds:
    """The floats of one integer: the numbers that they are made of, and what has to hold of params."""

    def __init__(self, integer: Callable[[Expr], Ends | None], number: Callable[[ParamRef], Index]) -> None:
        self.integer, self.number = integer, number
        self.leaves: dict[tuple[Index, ScalarType], str] = {}
        self.guards: dict[Expr, None] = {}
        self.known: dict[int, _Floats | None] = {}
        self.intervals: dict[int, Interval] = {}

    def of(self, e: Expr) -> _Floats | None:
        """The interval of a float, without recursion."""
        order, stack = list[Expr](), [e]
        while stack:
            node = stack.pop()
            order.append(node)
            if not isinstance(node, Access) and not (isinstance(node, Cast) and not node.operand.type.is_float):
                stack.extend(_parts(node))
        for node in reversed(order):
            if id(node) not in self.known:
                self.known[id(node)] = self._node(node) or self._numeric(node)
        return self.known[id(e)]

    def index(self, place: Expr) -> Index:
        """A place as an index: a function of the numbers in it."""
        args: dict[str, Index] = {}
        names = {name: x for (x, _), name in self.leaves.items()}

        def renamed(e: Expr) -> Expr:
            if not isinstance(e, Var):
                return map_children(e, renamed)
            args.setdefault(e.name, names[e.name])
            return Var(f"#{list(args).index(e.name)}", e.type)

        return call(Rounding(renamed(place)), list(args.values()))

    def _leaf(self, x: Index, t: ScalarType) -> Expr:
        if x.is_const:
            return Const(_float_of(x.const) if t.is_float else x.const, t)
        return Var(self.leaves.setdefault((x, t), f"#{len(self.leaves)}"), t)

    def _numeric(self, e: Expr) -> _Floats | None:
        """Bounds by numbers of what is more than arithmetic, data for one."""
        if not e.type.is_float:
            return None
        found = value_interval(e, leaf_interval, self.intervals).numeric
        if found is None or not all(map(isfinite, found)):
            return None
        return _Floats(Const(float(found[0]), e.type), Const(float(found[1]), e.type), *found)

    def _node(self, e: Expr) -> _Floats | None:
        of = [self.known[id(p)] for p in _parts(e)]
        parts = [p for p in of if p is not None]
        if len(parts) < len(of):
            return None
        match e:
            case Const() if e.type.is_float and isfinite(e.value):
                return _Floats(e, e, float(e.value), float(e.value))
            case ParamRef() if e.type.is_float:
                return self._param(e)
            case Cast() if e.type.is_float and e.operand.type.is_float:
                a = parts[0]
                return self._made(e, Cast(a.lo, e.type), Cast(a.hi, e.type), (a.least, a.most), a)
            case Cast() if e.type.is_float:
                return self._integer(e)
            case Unary(op="-"):
                a = parts[0]
                lo, hi = Unary("-", a.hi, e.type), Unary("-", a.lo, e.type)
                return self._made(e, lo, hi, (-a.most, -a.least), a)
            case Binary(op="+" | "-" | "*" | "/"):
                return self._binary(e, *parts)
            case Binary(op="//" | "%"):
                return self._floored(e, *parts)
            case Select():
                return self._hull(parts, e.type)
            case Call():
                return self._call(e, parts)
        return None

    def _param(self, e: ParamRef) -> _Floats:
        x = self._leaf(self.number(e), e.type)
        if e.min is not None and e.max is not None:
            return _Floats(x, x, float(e.min), float(e.max))
        if isinstance(x, Const) and abs(x.value) <= LARGEST_PARAM:
            return _Floats(x, x, float(x.value), float(x.value))
        self._hold(x, "<=", LARGEST_PARAM)
        low = -LARGEST_PARAM if e.min is None else max(float(e.min), -LARGEST_PARAM)
        high = LARGEST_PARAM if e.max is None else min(float(e.max), LARGEST_PARAM)
        return _Floats(x, x, min(low, LARGEST_PARAM), max(high, -LARGEST_PARAM))

    def _hold(self, x: Expr, op: CompareOp, size: float) -> None:
        self.guards[Compare(op, Call("abs", (x,), x.type), Const(size, x.type))] = None

    def _integer(self, e: Cast) -> _Floats | None:
        t = e.operand.type
        if t == BOOL or t.bits > 32 or t.name == "uint32":
            return None
        ends = self.integer(e.operand)
        if ends is None:
            return None
        lo, hi = (Cast(self._leaf(end, INT32), e.type) for end in ends)
        declared = value_interval(e.operand, leaf_interval, self.intervals).numeric
        numbers = [float(end.const) if end.is_const else None for end in ends]
        least, most = declared or (_least_of(e.operand), float(t.max))
        least, most = (n if n is not None else end for n, end in zip(numbers, (least, most), strict=True))
        slack = 1 + ROUNDED_OFF[e.type.bits]
        return _Floats(lo, lo if ends[0] == ends[1] else hi, *_outwards(least, most, slack))

    def _binary(self, e: Binary, a: _Floats, b: _Floats) -> _Floats | None:
        t = e.type

        def node(x: Expr, y: Expr) -> Expr:
            return Binary(e.op, x, y, t)

        match e.op:
            case "+":
                return self._made(e, node(a.lo, b.lo), node(a.hi, b.hi), (a.least + b.least, a.most + b.most), a, b)
            case "-":
                return self._made(e, node(a.lo, b.hi), node(a.hi, b.lo), (a.least - b.most, a.most - b.least), a, b)
        if e.op == "/" and b.least <= 0 <= b.most:
            if not b.one:
                return None
            self._hold(b.lo, ">=", 1 / LARGEST_PARAM)
            size = max(abs(a.least), abs(a.most)) * LARGEST_PARAM
            reach = (-size, size)
        else:
            corners = [_quotient(x, y, e.op) for x in (a.least, a.most) for y in (b.least, b.most)]
            reach = (min(corners), max(corners))
        lo = self._least(node, a, b, e.op, t, "min")
        hi = self._least(node, a, b, e.op, t, "max")
        return self._made(e, lo, hi, reach, a, b)

    def _floored(self, e: Binary, a: _Floats, b: _Floats) -> _Floats | None:
        """A quotient that is rounded down, or what it leaves: from 0 to the divisor, but for what rounding adds."""
        t = e.type
        quotient = self._binary(replace(e, op="/"), a, b)
        if quotient is None:
            return None
        if e.op == "//":
            return self._call(Call("floor", (e,), t), [quotient])
        zero, slack = Const(0.0, t), ROUNDED_OFF[t.bits]
        most = (max(abs(a.least), abs(a.most)) + max(abs(b.least), abs(b.most))) * slack
        reach = (min(b.least, 0.0) - most, max(b.most, 0.0) + most)
        if quotient.one:
            whole = Binary("*", Call("floor", (quotient.lo,), t), b.lo, t)
            return self._made(e, Binary("-", a.lo, whole, t), a.lo, reach, a, b)
        size = _folded(Binary("+", _size(a, t), _size(b, t), t))
        off = _folded(Binary("*", size, Const(slack, t), t))
        lo = Binary("-", zero if b.least >= 0 else Call("min", (b.lo, zero), t), off, t)
        hi = Binary("+", zero if b.most <= 0 else Call("max", (b.hi, zero), t), off, t)
        return self._made(e, lo, hi, reach)

    def _least(
        self, node: Callable[[Expr, Expr], Expr], a: _Floats, b: _Floats, op: str, t: ScalarType, pick: str
    ) -> Expr:
        """The least (or greatest) product or quotient: that of the ends that the signs say, or of all."""
        lower = pick == "min"
        of_a = _ends(a, rising=_sign(b), lower=lower)
        rising = _sign(a) if op == "*" else -_sign(a)
        of_b = _ends(b, rising=rising, lower=lower)
        if op == "/" and not b.one and b.least <= 0 <= b.most:
            of_b = [b.lo, b.hi]
        found = list(dict.fromkeys(node(x, y) for x in of_a for y in of_b))
        total = found[0]
        for other in found[1:]:
            total = Call(pick, (total, other), t)
        return total

    def _call(self, e: Call, parts: list[_Floats]) -> _Floats | None:
        t, f = e.type, e.function

        def ends(*numbers: float) -> _Floats | None:
            lo, hi = (Call(f, tuple(p.lo for p in parts), t), Call(f, tuple(p.hi for p in parts), t))
            return self._made(e, lo, hi, numbers, *parts)

        if f == "random":
            return _Floats(Const(0.0, t), Const(1 - 2.0**-24, t), 0.0, 1.0)
        if f in _STEPS:
            return ends(parts[0].least - 1, parts[0].most + 1)
        if f in ("min", "max") and len(parts) == 2:
            pick = min if f == "min" else max
            return ends(pick(p.least for p in parts), pick(p.most for p in parts))
        if f == "clamp":
            v, lo, hi = parts
            return ends(max(min(v.least, hi.least), lo.least), max(min(v.most, hi.most), lo.most))
        if f == "sqrt" and parts[0].least >= 0:
            return ends(parts[0].least ** 0.5, parts[0].most ** 0.5)
        if f == "abs":
            a = parts[0]
            if a.least >= 0:
                return a
            minus = _Floats(Unary("-", a.hi, t), Unary("-", a.lo, t), -a.most, -a.least)
            if a.most <= 0:
                return minus
            if a.one:
                x = Call("abs", (a.lo,), t)
                return _Floats(x, x, 0.0, max(-a.least, a.most))
            largest = Call("max", (minus.hi, a.hi), t)
            least = Call("max", (Call("max", (a.lo, minus.lo), t), Const(0.0, t)), t)
            return _Floats(least, largest, 0.0, max(-a.least, a.most))
        if f == "mux":
            return self._hull(parts, t)
        return None

    def _hull(self, parts: list[_Floats], t: ScalarType) -> _Floats:
        lo, hi = parts[0].lo, parts[0].hi
        for p in parts[1:]:
            lo = lo if p.lo == lo else Call("min", (lo, p.lo), t)
            hi = hi if p.hi == hi else Call("max", (hi, p.hi), t)
        return _Floats(lo, hi, min(p.least for p in parts), max(p.most for p in parts))

    def _made(self, e: Expr, lo: Expr, hi: Expr, reach: Sequence[float], *parts: _Floats) -> _Floats | None:
        """The bounds of an operation on `parts`: None where it may overflow, or not be a number."""
        least, most = _outwards(reach[0], reach[1], 1 + ROUNDED_OFF[e.type.bits])
        if not max(abs(least), abs(most)) < _LARGEST[e.type.bits]:
            return None
        lo = _folded(lo)
        return _Floats(lo, lo if parts and all(p.one for p in parts) else _folded(hi), least, most)


def _size(x: _Floats, t: ScalarType) -> Expr:
    """The greatest size of a value."""
    lo, hi = (_folded(Call("abs", (end,), t)) for end in (x.lo, x.hi))
    return lo if lo == hi else Call("max", (lo, hi), t)


def _folded(e: Expr) -> Expr:
    """`e`, or the constant that it is: where all parts are, or one is a factor of 0 and the other no infinity."""
    parts = children(e)
    if isinstance(e, Binary) and e.op == "*" and any(isinstance(p, Const) and p.value == 0 for p in parts):
        return Const(0.0, e.type)
    if not all(isinstance(p, Const) for p in parts):
        return e
    with np.errstate(all="ignore"):
        return Const(float(evaluate(e, _no_leaf)), e.type)


def _no_leaf(leaf: Leaf) -> Never:
    raise AssertionError(leaf)


def _parts(e: Expr) -> tuple[Expr, ...]:
    """The parts that the value of a float is made of, without those that only choose among others."""
    match e:
        case Binary() if e.type.is_float:
            return e.left, e.right
        case Unary() if e.type.is_float:
            return (e.operand,)
        case Cast() if e.type.is_float and e.operand.type.is_float:
            return (e.operand,)
        case Select() if e.type.is_float:
            return e.if_true, e.if_false
        case Call(function="mux") if e.type.is_float:
            return e.args[1:]
        case Call() if e.type.is_float and all(a.type == e.type for a in e.args):
            return e.args
    return ()


def _ends(x: _Floats, rising: int, lower: bool) -> list[Expr]:
    """The ends of `x` at which the least (`lower`) or greatest is, of what rises with it (1), falls (-1) or either."""
    if x.one:
        return [x.lo]
    if rising == 0:
        return [x.lo, x.hi]
    return [x.lo] if lower == (rising > 0) else [x.hi]


def _sign(x: _Floats) -> int:
    return 1 if x.least >= 0 else -1 if x.most <= 0 else 0


def _quotient(x: float, y: float, op: str) -> float:
    if op == "*":
        return x * y
    return x / y if y else inf


def _least_of(e: Expr) -> float:
    """No extent is below 1."""
    return 1.0 if isinstance(e, InputBound) and e.which == "extent" else float(e.type.min)


def _outwards(least: float, most: float, slack: float) -> tuple[float, float]:
    return (least * slack if least < 0 else least / slack), (most * slack if most > 0 else most / slack)

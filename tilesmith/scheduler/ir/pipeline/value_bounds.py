"""Provable bounds of the values of expressions: interval arithmetic over types, constants, clamps, remainders.

An end of an interval is a number, RUNTIME (bounded by something that is known once the compiled code is
called: a loop variable follows its region, an input's extent the image) or None: nothing bounds it. Arithmetic
that can leave a type of 8 or 16 bits wraps, so the type bounds it; in wider types that is no bound worth having.
A float whose interval has an end is not NaN: what may make or pass on a NaN has an interval without ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Iterator
from itertools import product
from typing import Final, Literal, TypeAlias

from tilesmith.records import record
from tilesmith.scheduler.ir.pipeline import expressions
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
    children,
)
from tilesmith.scheduler.ir.pipeline.types import INT32, ScalarType

RUNTIME: Final = "runtime"
End: TypeAlias = int | float | Literal["runtime"] | None


@record(frozen=True, slots=True)
class Interval:
    """All values from `lo` to `hi`, both inclusive."""

    lo: End
    hi: End

    @property
    def bounded(self) -> bool:
        """Both ends are provable, if only at run time."""
        return self.lo is not None and self.hi is not None

    @property
    def numeric(self) -> tuple[int | float, int | float] | None:
        """Both ends, where both are known numbers."""
        if isinstance(self.lo, int | float) and isinstance(self.hi, int | float):
            return self.lo, self.hi
        return None


UNBOUNDED: Final = Interval(None, None)
AT_RUN_TIME: Final = Interval(RUNTIME, RUNTIME)
ROUNDED_OFF: Final = {32: 2.0**-20, 64: 2.0**-48}
"""No few operations of floats of so many bits are rounded off by more than this part of their operands."""
_WHOLE_TYPE_BITS: Final = 16  # a type this wide is a bound by itself

Leaf: TypeAlias = Var | ParamRef | InputBound | Access
Leaves: TypeAlias = Callable[[Leaf], Interval]


def of_type(type: ScalarType) -> Interval:
    """Bounds that the type alone proves: its range for bool and up to 16 bits, none beyond."""
    if type.is_float or type.bits > _WHOLE_TYPE_BITS:
        return UNBOUNDED
    return Interval(type.min, type.max)


def leaf_interval(leaf: Leaf) -> Interval:
    """The default for leaves: loops, input bounds and params of int32 are known at run time, params between their
    declared ends, data by its type only."""
    if isinstance(leaf, ParamRef) and leaf.min is not None and leaf.max is not None:
        return Interval(leaf.min, leaf.max)
    if isinstance(leaf, ParamRef) and leaf.type == INT32:
        return Interval(RUNTIME if leaf.min is None else leaf.min, RUNTIME if leaf.max is None else leaf.max)
    if isinstance(leaf, Access) and leaf.ends is not None:
        return Interval(*leaf.ends)
    return AT_RUN_TIME if isinstance(leaf, Var | InputBound) else of_type(leaf.type)


def interval(e: Expr, leaves: Leaves = leaf_interval, known: dict[int, Interval] | None = None) -> Interval:
    """An interval that holds every value of `e`, given those of its leaves.

    `leaves` may know more than the default: the range of a loop, an image's values. `known` keeps the intervals of
    parts, by identity, for those who ask of many expressions that they hold on to.
    Does not recurse, so that deep expressions are no danger.
    """
    known = {} if known is None else known
    if id(e) in known:
        return known[id(e)]
    for node in reversed(list(parts_of_value(e, known))):
        if id(node) not in known:
            known[id(node)] = _node(node, known, leaves)
    return known[id(e)]


def parts_of_value(e: Expr, known: Container[int] = ()) -> Iterator[Expr]:
    """`e` and the parts that its value is computed from, parents first: not those that only say where to read, nor the
    parts of those `known` by identity."""
    stack = [e]
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, Access) and id(node) not in known:
            stack.extend(children(node))


def _node(e: Expr, known: dict[int, Interval], leaves: Leaves) -> Interval:
    def of(child: Expr) -> Interval:
        return known[id(child)]

    match e:
        case Const():
            return Interval(e.value, e.value)
        case Var() | ParamRef() | InputBound() | Access():
            return leaves(e)
        case Binary():
            return _fit(_binary(e, of(e.left), of(e.right)), e.type)
        case expressions.Unary():
            return _fit(_unary(e, of(e.operand)), e.type)
        case expressions.Compare() | expressions.Logical():
            return Interval(0, 1)
        case Select():
            return hull((of(e.if_true), of(e.if_false)))
        case Cast():
            return _cast(e, of(e.operand))
        case Call():
            found = _call(e, [of(a) for a in e.args])
            # What picks one of its arguments cannot leave the type, and one end alone is worth keeping.
            return found if e.function in ("min", "max", "clamp", "mux") else _fit(found, e.type)
        case Reduce():
            return _fit(_reduce(e, of), e.type)


def hull(parts: Iterable[Interval]) -> Interval:
    """The smallest interval that holds all of `parts`."""
    parts = tuple(parts)
    return Interval(_all(min, [p.lo for p in parts]), _all(max, [p.hi for p in parts]))


def _all(pick: Callable[[list[int | float]], int | float], ends: list[End]) -> End:
    """`pick` of ends that all must be known."""
    if any(e is None for e in ends):
        return None
    numbers = [e for e in ends if isinstance(e, int | float)]
    return pick(numbers) if len(numbers) == len(ends) else RUNTIME


def _any(pick: Callable[[list[int | float]], int | float], ends: list[End]) -> End:
    """`pick` of ends of which one suffices."""
    numbers = [e for e in ends if isinstance(e, int | float)]
    if numbers:
        return pick(numbers)
    return RUNTIME if RUNTIME in ends else None


def _fit(i: Interval, type: ScalarType) -> Interval:
    """`i` as values of `type`: where it may leave the type it wraps, and only the type is sure."""
    if type.is_float:
        return _round(i, type)
    if type.bits <= _WHOLE_TYPE_BITS:
        ends = i.numeric
        return i if ends is not None and type.min <= ends[0] and ends[1] <= type.max else of_type(type)
    lo_wraps = isinstance(i.lo, int | float) and i.lo < type.min
    hi_wraps = isinstance(i.hi, int | float) and i.hi > type.max
    # A value known only at run time may be negative, and then an unsigned type makes it huge.
    negative = type.kind == "uint" and not isinstance(i.lo, int | float)
    return UNBOUNDED if lo_wraps or hi_wraps or negative or not i.bounded else i


def _round(i: Interval, type: ScalarType) -> Interval:
    """`i` with room for rounding, in whatever order the operations are done."""
    slack = 2.0**-20 if type.bits == 32 else 2.0**-48
    largest = 3.0e38 if type.bits == 32 else 1.0e308
    lo, hi = i.lo, i.hi
    if any(isinstance(end, int | float) and not -largest < end < largest for end in (lo, hi)):
        return UNBOUNDED
    tiny = 2.0**-140 if type.bits == 32 else 2.0**-1060  # of a few subnormal numbers; zero is exact

    def outwards(end: int | float, sign: int) -> float:
        return end + sign * (abs(end) * slack + tiny) if end else 0.0

    return Interval(
        outwards(lo, -1) if isinstance(lo, int | float) else lo,
        outwards(hi, 1) if isinstance(hi, int | float) else hi,
    )


def _add(a: End, b: End) -> End:
    if a is None or b is None:
        return None
    return a + b if isinstance(a, int | float) and isinstance(b, int | float) else RUNTIME


def _minus(a: End) -> End:
    return -a if isinstance(a, int | float) else a


def _unary(e: expressions.Unary, a: Interval) -> Interval:
    if e.op == "~" and e.type.kind == "int":  # -a - 1
        return Interval(_add(_minus(a.hi), -1), _add(_minus(a.lo), -1))
    return _negative(a) if e.op == "-" else UNBOUNDED


def _negative(i: Interval) -> Interval:
    return Interval(_minus(i.hi), _minus(i.lo))


def _binary(e: Binary, a: Interval, b: Interval) -> Interval:
    match e.op:
        case "+":
            return Interval(_add(a.lo, b.lo), _add(a.hi, b.hi))
        case "-":
            return Interval(_add(a.lo, _minus(b.hi)), _add(a.hi, _minus(b.lo)))
        case "*":
            return _multiply(a, b)
        case "/":
            return _divide(a, b)
        case "//":
            return _floor(_divide(a, b)) if e.type.is_float else _floor_divide(a, b)
        case "%":
            return _float_remainder(a, b, e.type) if e.type.is_float else _remainder(a, b)
        case "**":
            return _power(a, b, e.type)
        case "&":
            return _bit_and(a, b)
        case "|" | "^":
            return _bit_or(a, b)
        case "<<":
            return _shift(a, b, left=True)
        case ">>":
            return _shift(a, b, left=False)


def _multiply(a: Interval, b: Interval) -> Interval:
    if not (a.bounded and b.bounded):
        return UNBOUNDED
    x, y = a.numeric, b.numeric
    if x is None or y is None:
        # Signs are all that is known of what is known at run time only.
        positive = all(isinstance(i.lo, int | float) and i.lo >= 0 for i in (a, b))
        return Interval(0 if positive else RUNTIME, RUNTIME)
    products = [p * q for p in x for q in y]
    return UNBOUNDED if any(p != p for p in products) else Interval(min(products), max(products))


def _divide(a: Interval, b: Interval) -> Interval:
    """Division of floats: bounded where the divisor keeps away from zero."""
    x, y = a.numeric, b.numeric
    if x is None or y is None or y[0] <= 0 <= y[1]:
        return UNBOUNDED
    quotients = [p / q for p in x for q in y]
    return UNBOUNDED if any(q != q for q in quotients) else Interval(min(quotients), max(quotients))


def _floor(i: Interval) -> Interval:
    return Interval(_add(i.lo, -1), i.hi)


def _floor_divide(a: Interval, b: Interval) -> Interval:
    """`//` of integers; by zero gives zero, and no quotient is larger than the dividend."""
    if not a.bounded:
        return UNBOUNDED
    x, y = a.numeric, b.numeric
    if x is None:
        positive = isinstance(a.lo, int | float) and a.lo >= 0 and isinstance(b.lo, int | float) and b.lo >= 0
        return Interval(0 if positive else RUNTIME, RUNTIME)
    lo, hi = int(x[0]), int(x[1])
    if y is None or y[0] <= 0 <= y[1]:
        size = max(abs(lo), abs(hi))
        return Interval(-size, size) if y is None or y[0] < 0 or lo < 0 else Interval(0, size)
    # Rounded so that the remainder is not negative; a floor of either sign is within 1 of that.
    quotients = [_euclid(p, int(q)) for p in (lo, hi) for q in y]
    return Interval(min(quotients), max(quotients))


def _euclid(a: int, b: int) -> int:
    return a // b if b > 0 else -(a // -b)


def _remainder(a: Interval, b: Interval) -> Interval:
    """`%` of integers: 0 <= a % b < abs(b), and 0 for b = 0."""
    ends = b.numeric
    if ends is not None:
        limit: End = max(abs(int(ends[0])), abs(int(ends[1])), 1) - 1
    else:
        limit = RUNTIME if b.bounded else None
    if isinstance(a.lo, int | float) and a.lo >= 0:  # and never more than a where that is not negative
        return Interval(0, _any(min, [limit, a.hi]))
    return Interval(0, limit)


def _float_remainder(a: Interval, b: Interval, type: ScalarType) -> Interval:
    """`%` of floats: from 0 to b, but for what rounding adds."""
    x, y = a.numeric, b.numeric
    if x is None or y is None or y[0] <= 0 <= y[1] or not all(map(math.isfinite, (*x, *y))):
        return UNBOUNDED
    off = (max(map(abs, x)) + max(map(abs, y))) * ROUNDED_OFF[type.bits]
    return Interval(min(y[0], 0) - off, max(y[1], 0) + off)


def _power(a: Interval, b: Interval, type: ScalarType) -> Interval:
    x, y = a.numeric, b.numeric
    if x is None or y is None or y[0] != y[1] or not 0 <= y[0] <= 64 or y[0] != int(y[0]):
        return AT_RUN_TIME if a.bounded and type.is_integer else UNBOUNDED
    n = int(y[0])
    try:
        powers = [x[0] ** n, x[1] ** n] + ([0] if x[0] <= 0 <= x[1] else [])
    except OverflowError:
        return UNBOUNDED
    return Interval(min(powers), max(powers))


def _bit_and(a: Interval, b: Interval) -> Interval:
    """A mask that is not negative bounds the result, whatever it masks."""
    tops = [i.hi for i in (a, b) if isinstance(i.lo, int | float) and i.lo >= 0]
    return Interval(0, _any(min, tops)) if tops else _masked(a, b)


def _masked(a: Interval, b: Interval) -> Interval:
    """A place of which a number clears or changes bits stays one."""
    numbers = [i for i in (a, b) if i.numeric is not None and i.lo == i.hi]
    return AT_RUN_TIME if numbers and a.bounded and b.bounded else UNBOUNDED


def _bit_or(a: Interval, b: Interval) -> Interval:
    x, y = a.numeric, b.numeric
    if x is None or y is None:
        changed = [i for i in (x, y) if i is not None]
        return _masked(a, b) if changed and changed[0][0] >= 0 else UNBOUNDED
    if x[0] < 0 or y[0] < 0:
        return UNBOUNDED
    return Interval(0, (1 << max(int(x[1]), int(y[1])).bit_length()) - 1)


def _shift(a: Interval, b: Interval, *, left: bool) -> Interval:
    count = b.numeric
    if count is None or count[0] < 0 or count[1] > 63 or not a.bounded:
        return UNBOUNDED
    x = a.numeric
    if x is None:
        return Interval(0 if isinstance(a.lo, int | float) and a.lo >= 0 else RUNTIME, RUNTIME)
    shifted = [int(p) << int(c) if left else int(p) >> int(c) for p in x for c in count]
    return Interval(min(shifted), max(shifted))


def _cast(e: Cast, i: Interval) -> Interval:
    if e.type.is_float:
        exact = all(isinstance(end, int) and abs(end) <= 1 << 24 for end in (i.lo, i.hi))
        return i if exact else _round(i, e.type)
    if e.type.kind == "bool":
        return Interval(0, 1)
    if e.operand.type.is_float:
        lo = math.trunc(i.lo) if isinstance(i.lo, int | float) else i.lo
        hi = math.trunc(i.hi) if isinstance(i.hi, int | float) else i.hi
        i = Interval(lo, hi)
    if not e.saturate:
        return _fit(i, e.type)
    whole = of_type(e.type)
    clamped = _clamp(i, Interval(e.type.min, e.type.min), Interval(e.type.max, e.type.max))
    return whole if whole.bounded and not i.bounded else clamped if i.bounded else UNBOUNDED


def _clamp(v: Interval, lo: Interval, hi: Interval) -> Interval:
    """max(min(v, hi), lo)."""
    capped = Interval(_all(min, [v.lo, hi.lo]), _any(min, [v.hi, hi.hi]))
    return Interval(_any(max, [capped.lo, lo.lo]), _all(max, [capped.hi, lo.hi]))


_IDIOMS: dict[str, Callable[..., int]] = {
    "halving_add": lambda a, b: (a + b) >> 1,
    "rounding_halving_add": lambda a, b: (a + b + 1) >> 1,
    "sat_add": lambda a, b: a + b,
    "sat_sub": lambda a, b: a - b,
    "rounding_shift_right": lambda a, n: (a + (1 << n >> 1)) >> n,
    "mul_shift_right": lambda a, b, n: (a * b) >> n,
}
"""Idioms of integers, exact, which go one way with each of their operands: their ends are where those of these are."""


def _idiom(e: Call, args: list[Interval]) -> Interval | None:
    """Bounds of an idiom of numbers between known ends; None of any other call."""
    known = [(a.lo, a.hi) for a in args if isinstance(a.lo, int) and isinstance(a.hi, int)]
    if e.function not in _IDIOMS or len(known) < len(args):
        return None
    if e.function.endswith("shift_right") and not 0 <= known[-1][0] <= known[-1][1] < e.type.bits * (len(known) - 1):
        return None
    values = [_IDIOMS[e.function](*corner) for corner in product(*known)]
    return Interval(*(max(e.type.min, min(v, e.type.max)) for v in (min(values), max(values))))


def _call(e: Call, args: list[Interval]) -> Interval:
    if (found := _idiom(e, args)) is not None:
        return found
    # `min(a, b)` is `a if a < b else b`: a NaN goes on only where it is the second operand.
    nan = e.type.is_float and UNBOUNDED in args[1:]
    match e.function:
        case "min":
            lowest = Interval(_all(min, [a.lo for a in args]), _any(min, [a.hi for a in args]))
            return UNBOUNDED if nan else lowest
        case "max":
            highest = Interval(_any(max, [a.lo for a in args]), _all(max, [a.hi for a in args]))
            return UNBOUNDED if nan else highest
        case "clamp":
            return UNBOUNDED if nan else _clamp(args[0], args[1], args[2])
        case "mux":
            return hull(args[1:])
        case "abs":
            return _magnitude(args[0])
        case "absd":
            a, b = args
            return _magnitude(Interval(_add(a.lo, _minus(b.hi)), _add(a.hi, _minus(b.lo))))
        case "lerp":
            weight = args[2].numeric
            inside = weight is not None and weight[0] >= 0 and weight[1] <= 1
            return hull(args[:2]) if inside or not e.type.is_float else UNBOUNDED
        case "halving_add" | "rounding_halving_add":
            return hull(args)
        case "floor" | "ceil" | "round" | "trunc":
            return Interval(_add(args[0].lo, -1), _add(args[0].hi, 1))
        case "sin" | "cos" | "tanh" | "atan" if args[0].bounded:
            return Interval(-2, 2)
        case "random":
            return Interval(0, 1)
        case "count_leading_zeros" if isinstance(args[0].lo, int) and args[0].lo >= 0:
            most = args[0].hi if isinstance(args[0].hi, int) else e.type.max
            return Interval(e.type.bits - most.bit_length(), e.type.bits - args[0].lo.bit_length())
        case "popcount" | "count_leading_zeros" | "count_trailing_zeros":
            return Interval(0, e.type.bits)
        case _:
            return UNBOUNDED


def _magnitude(i: Interval) -> Interval:
    ends = i.numeric
    if ends is None:
        return Interval(0, RUNTIME) if i.bounded else UNBOUNDED
    inside = ends[0] <= 0 <= ends[1]
    return Interval(0 if inside else min(abs(ends[0]), abs(ends[1])), max(abs(ends[0]), abs(ends[1])))


def _reduce(e: Reduce, of: Callable[[Expr], Interval]) -> Interval:
    points: int | None = 1
    for r in e.domain:
        extent = of(r.extent).numeric
        points = None if points is None or extent is None else points * max(int(extent[1]), 0)
    body = of(e.body)
    match e.op:
        case "any" | "all":
            return Interval(0, 1)
        case "argmin" | "argmax" if e.component < len(e.domain):
            r = e.domain[e.component]
            lo, extent_ = of(r.lo), of(r.extent)
            # Nothing found yields the first point, so the last one is never before it.
            last = Interval(_add(lo.lo, _add(extent_.lo, -1)), _add(lo.hi, _add(extent_.hi, -1)))
            return hull((lo, last))
        case "sum":
            if points is None or not body.bounded:
                return UNBOUNDED if not body.bounded else AT_RUN_TIME
            total = _multiply(body, Interval(0, points))
            return hull((total, Interval(0, 0)))
        case "min" | "max" | "argmin" | "argmax":
            # A runtime domain or a predicate may leave nothing, and then the type's own end is the result.
            return body if points and e.where is None else UNBOUNDED
        case _:
            return UNBOUNDED

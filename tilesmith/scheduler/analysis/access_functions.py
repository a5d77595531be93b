"""Spans: where an index goes as one loop variable moves.

A `Span` bounds an integer index by two floors of one rational line: for the loop variable at v,

    floor(rate * v + lo) <= index <= floor(rate * v + hi)

Shifted, strided, up- and down-sampled accesses all have one (`2x - 1`: rate 2; `(x + 1) // 2`: rate 1/2), a
chain of accesses composes, and the footprint, overlap and window of a stage follow from it in closed form.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from math import floor, gcd, lcm
from typing import NamedTuple, TypeAlias

from tilesmith.scheduler.ir.pipeline.constant_folding import integer
from tilesmith.scheduler.ir.pipeline.expressions import (
    Access,
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    InputBound,
    Reduce,
    Select,
    Unary,
    Var,
    walk,
)
from tilesmith.scheduler.ir.pipeline.types import INT32, ScalarType

Rational: TypeAlias = Fraction | int
"""Whole numbers are ints: nearly all are, and arithmetic of fractions takes ten times as long."""

ZERO: Rational = 0


def rational(a: Rational, b: int = 1) -> Rational:
    """a / b."""
    if b == 1 and type(a) is int:
        return a
    found = Fraction(a, b)
    return found.numerator if found.denominator == 1 else found


class Span(NamedTuple):
    """See the module. `var` is None where the index does not move with any loop (`rate` is then 0); `lo` and
    `hi` are None where the range is known only at run time. `clamps` are the clamps that the index went
    through, innermost first, and what was done to it after them ("moved"): clamps only ever make the range
    smaller, and two spans that went through the same keep their distance."""

    var: str | None
    rate: Rational
    lo: Rational | None
    hi: Rational | None
    clamps: tuple[Expr, ...] = ()

    def __hash__(self) -> int:
        """The hash of the fields that tell most spans apart: the hashes of fractions and expressions take long."""
        lo, hi = self.lo, self.hi
        return hash((self.var, lo and lo.numerator, hi and hi.numerator))

    @property
    def known(self) -> bool:
        """True if the range follows from the loop variable alone."""
        return self.lo is not None and self.hi is not None

    @property
    def ends(self) -> tuple[Rational, Rational]:
        """`lo` and `hi`. Needs `known`."""
        assert self.lo is not None
        assert self.hi is not None
        return self.lo, self.hi

    @property
    def width(self) -> Rational:
        """The slack of the range beside the line: hi - lo. Needs `known`."""
        lo, hi = self.ends
        return hi - lo

    def extent(self, points: int) -> int:
        """The most elements that `points` neighbouring iterations of the loop touch. Needs `known`."""
        rate, (lo, hi) = self.rate, self.ends
        if type(rate) is int and type(lo) is int and type(hi) is int:
            return abs(rate) * (points - 1) + hi - lo + 1
        return floor((rate if rate >= 0 else -rate) * (points - 1) + hi - lo + _slack(rate, lo)) + 1

    def first(self, v: int) -> int:
        """The least index at iteration v. Needs `known`."""
        return floor(self.rate * v + self.ends[0])

    def last(self, v: int) -> int:
        """The greatest index at iteration v. Needs `known`."""
        return floor(self.rate * v + self.ends[1])


UNKNOWN = Span(None, ZERO, None, None)


def constant(lo: int, hi: int) -> Span:
    """The span of an index that stays in lo..hi whatever the loops do."""
    return Span(None, ZERO, lo, hi)


def variable(name: str) -> Span:
    """The span of the loop variable itself."""
    return Span(name, 1, ZERO, ZERO)


def furthest(a: int, b: int, k: int) -> int:
    """The largest of the remainders (a * v + b) % k, v any integer: they are as far apart as a and k have in common."""
    step = gcd(a, k)
    return k - step + b % step


def _slack(rate: Rational, lo: Rational) -> Rational:
    """The most that floor(rate * v + lo) loses, v an integer."""
    if type(rate) is int and type(lo) is int:
        return ZERO
    k = lcm(rate.denominator, lo.denominator)
    return rational(k - 1, k)


def _moved(clamps: tuple[Expr, ...], *by: Rational) -> tuple[Expr, ...]:
    """`clamps`, and that the index was moved after them: clamp(x, 0, 5) + 3 drifts apart from clamp(x + 3, 0, 5)."""
    if not clamps:
        return ()
    numbers = tuple(Const(n, INT32) for f in by for n in (f.numerator, f.denominator))
    return (*clamps, Call("moved", numbers, INT32))


def _scaled(s: Span, a: int) -> Span:
    """The span of a * index."""
    if a == 1:
        return s
    if not s.known or a == 0:
        return constant(0, 0) if a == 0 else UNKNOWN
    lo, hi = s.ends
    rate, slack = rational(s.rate * a), _slack(s.rate, lo)
    least, most = ((lo - slack) * a, hi * a) if a > 0 else (hi * a, (lo - slack) * a)
    # an integer that is at least `least` is at least its ceiling
    return Span(s.var, rate, rational(least + _slack(rate, least)), rational(most), _moved(s.clamps, a))


def _sum(a: Span, b: Span) -> Span:
    if not (a.known and b.known) or (a.var is not None and b.var is not None and a.var != b.var):
        return UNKNOWN
    if a.var is not None and b.var is not None and (a.clamps or b.clamps):
        return UNKNOWN  # x + clamp(x): the two lines do not move together
    (a_lo, a_hi), (b_lo, b_hi) = a.ends, b.ends
    rate = rational(a.rate + b.rate)
    least = a_lo + b_lo - _slack(a.rate, a_lo) - _slack(b.rate, b_lo)
    var = a.var or b.var
    clamps = a.clamps or b.clamps
    still = b if a.clamps else a
    if not still.lo == still.hi == 0:
        clamps = _moved(clamps, still.lo or ZERO, still.hi or ZERO)
    return Span(var if rate else None, rate, rational(least + _slack(rate, least)), rational(a_hi + b_hi), clamps)


def _divided(s: Span, k: int) -> Span:
    """The span of index // k, k > 0: floors nest, so nothing is lost."""
    if not s.known:
        return UNKNOWN
    lo, hi = s.ends
    most = rational(hi, k) + _unsteady(s, k)
    return Span(s.var, rational(s.rate, k), rational(lo, k), most, _moved(s.clamps, rational(1, k)))


def _unsteady(s: Span, k: int) -> Rational:
    """The slack that a division by k may add to a range: nothing on a line, but where a clamp holds it is anywhere."""
    return rational(k - 1, k) if s.clamps else ZERO


def hull(a: Span, b: Span) -> Span:
    """The span of both: known where they follow the same variable at the same rate through the same clamps."""
    if not (a.known and b.known) or a.var != b.var or a.rate != b.rate or a.clamps != b.clamps:
        return UNKNOWN
    (a_lo, a_hi), (b_lo, b_hi) = a.ends, b.ends
    if a_lo <= b_lo and a_hi >= b_hi:
        return a
    return Span(a.var, a.rate, min(a_lo, b_lo), max(a_hi, b_hi), a.clamps)


@lru_cache(maxsize=1 << 16)
def compose(access: Span, via: Span) -> Span:
    """The span of an access whose loop variable is itself an index with span `via` of an outer loop."""
    if access.var is None or not access.known:
        return access
    if not via.known:
        return UNKNOWN
    (first, last), (via_lo, via_hi) = access.ends, via.ends
    rate = rational(access.rate * via.rate)
    exact = access.rate.numerator == 1 and (first * access.rate.denominator).denominator == 1
    slack = ZERO if exact else _slack(via.rate, via_lo)
    more = _unsteady(via, lcm(access.rate.denominator, first.denominator, last.denominator))
    if access.rate > 0:
        lo, hi = access.rate * (via_lo - slack) + first, access.rate * via_hi + last + more
    else:
        slack = _slack(via.rate, via_lo)
        lo, hi = access.rate * via_hi + first, access.rate * (via_lo - slack) + last + more
    straight = access.rate == 1 and first == last == 0
    clamps = via.clamps if straight else _moved(via.clamps, access.rate, first, last)
    return Span(via.var if rate else None, rate, rational(lo), rational(hi), clamps + access.clamps)


def span_of(e: Expr, env: Mapping[str, Span]) -> Span:
    """The span of an integer index expression; `env` has the spans of the variables (a loop variable:
    `variable(name)`, a reduction variable: its constant range or UNKNOWN). Data is bounded by its type."""
    s = _unwrapped(e, env)
    if not s.known or (e.type.kind == "int" and e.type.bits >= 32):
        return s
    lo, hi = s.ends
    fits = s.var is None and e.type.min <= lo and hi <= e.type.max
    return s if fits else of_type(e.type)  # arithmetic of narrow types wraps


def _unwrapped(e: Expr, env: Mapping[str, Span]) -> Span:
    match e:
        case Const():
            return constant(int(e.value), int(e.value))
        case Var():
            return env.get(e.name, UNKNOWN)
        case Unary(op="-"):
            return _scaled(span_of(e.operand, env), -1)
        case Binary(op="+"):
            return _sum(span_of(e.left, env), span_of(e.right, env))
        case Binary(op="-"):
            return _sum(span_of(e.left, env), _scaled(span_of(e.right, env), -1))
        case Binary(op="*", left=Const(value=a), right=b) | Binary(op="*", left=b, right=Const(value=a)):
            return _scaled(span_of(b, env), int(a))
        case Binary(op="//", left=a, right=Const(value=k)) if k != 0:
            quotient = _divided(span_of(a, env), abs(int(k)))
            return quotient if k > 0 else _scaled(quotient, -1)
        case Binary(op="%", left=a, right=Const(value=k)):
            of = span_of(a, env)
            if k > 0 and of.var is None and of.lo is not None and of.lo == of.hi == int(of.lo):
                place = int(of.lo) % int(k)
                return constant(place, place)
            return constant(0, max(abs(int(k)) - 1, 0))
        case Binary(op="&", right=Const(value=k)) | Binary(op="&", left=Const(value=k)) if k >= 0:
            return constant(0, int(k))
        case Binary(op="<<", left=Const(value=a), right=b):
            count = span_of(b, env)
            if count.var is None and count.known and 0 <= count.first(0) <= count.last(0) < e.type.bits - 1:
                ends = [int(a) << n for n in (count.first(0), count.last(0))]
                return constant(min(ends), max(ends)) if max(map(abs, ends)) <= e.type.max else UNKNOWN
        case Call(function="clamp", args=(a, lo, hi)):
            return _clamped(span_of(a, env), e, lo, hi)
        case Call(function="min", args=(a, b)) | Call(function="max", args=(a, b)):
            return _min_max(e.function, a, b, env)
        case Select():
            return hull(span_of(e.if_true, env), span_of(e.if_false, env))
        case Cast() if e.type.is_integer and _fits(e.operand.type, e.type):
            inner = span_of(e.operand, env)
            return inner if inner.known else of_type(e.operand.type)
        case InputBound():
            return UNKNOWN
    return of_type(e.type)


def keeps_to_line(e: Expr, var: str) -> bool:
    """True if an index that moves with `var` ends where the floors of its span do, in every iteration: not one that
    stays for some and then goes on by several, as that of the first of a block, `v // 8 * 8`."""
    while True:
        match e:
            case Binary(op="+", left=a, right=b) if not (_moves(a, var) and _moves(b, var)):
                e = a if _moves(a, var) else b
            case Binary(op="-", left=a, right=b) if not _moves(b, var):
                e = a
            case Cast() if e.type.is_integer:
                e = e.operand
            case Call(function="clamp" | "min" | "max", args=(a, *bounds)) if not any(_moves(b, var) for b in bounds):
                e = a
            case Select():
                return keeps_to_line(e.if_true, var) and keeps_to_line(e.if_false, var)
            case Binary(op="//" | ">>", left=a, right=Const()):
                return not _has_steps(a, var)
            case _:
                return not _has_steps(e, var)


def _moves(e: Expr, var: str) -> bool:
    return any(isinstance(n, Var) and n.name == var for n in walk(e))


def _has_steps(e: Expr, var: str) -> bool:
    """True of parts that stay where they are for some iterations of `var`, and of those that begin anew."""
    steps = (n for n in walk(e) if isinstance(n, Binary) and n.op in ("//", ">>", "%", "&", "|", "^"))
    return any(_moves(n, var) for n in steps)


def of_type(t: ScalarType) -> Span:
    """The span of data of a narrow integer type; UNKNOWN for the others."""
    return constant(t.min, t.max) if (t.is_integer and t.bits <= 16) or t.kind == "bool" else UNKNOWN


def _fits(inner: ScalarType, outer: ScalarType) -> bool:
    return inner.kind == "bool" or (inner.is_integer and inner.min >= outer.min and inner.max <= outer.max)


def _stands(e: Expr) -> bool:
    """True if `e` has one value throughout a call."""
    return not any(isinstance(n, Var | Access | Reduce) for n in walk(e))


def _clamped(s: Span, e: Expr, lo: Expr | None, hi: Expr | None) -> Span:
    """`s` through a clamp: a moving index keeps its line (the clamp is noted), a range that stands is cut."""
    if s.var is not None and not all(b is None or _stands(b) for b in (lo, hi)):
        return UNKNOWN
    if s.var is not None:
        # what is noted is the clamp without its operand, so that f(clamp(x - 1)) and f(clamp(x + 1)) match
        bounds = tuple(b for b in (lo, hi) if b is not None)
        kind = Call("clamp" if len(bounds) == 2 else ("min" if lo is None else "max"), bounds, e.type)
        return s._replace(clamps=(*s.clamps, kind))
    if any(b is not None and integer(b) is None for b in (lo, hi)):
        return UNKNOWN
    low, high = (None if b is None else integer(b) for b in (lo, hi))
    least, most = s.lo, s.hi
    if high is not None:  # also cuts what is known of the lower end, and bounds an unknown upper end
        least = None if least is None else min(least, high)
        most = high if most is None else min(most, high)
    if low is not None:
        least = low if least is None else max(least, low)
        most = None if most is None else max(most, low)
    return Span(None, ZERO, least, most) if least is not None and most is not None else UNKNOWN


def _min_max(function: str, a: Expr, b: Expr, env: Mapping[str, Span]) -> Span:
    left, right = span_of(a, env), span_of(b, env)
    if left.var is not None and right.var is not None:
        both = hull(left, right)
        if not both.known:
            return UNKNOWN
        pick = min if function == "min" else max
        lo, hi = map(pick, left.ends, right.ends)
        return both._replace(lo=lo, hi=hi)
    moving, other, bound = (left, right, b) if left.var is not None else (right, left, a)
    if moving.var is not None:
        e = Call(function, (a, b), a.type)
        return _clamped(moving, e, bound if function == "max" else None, bound if function == "min" else None)
    if function == "min":
        his = [h for h in (moving.hi, other.hi) if h is not None]
        los = None if moving.lo is None or other.lo is None else min(moving.lo, other.lo)
        return Span(None, ZERO, los, min(his)) if his and los is not None else UNKNOWN
    los2 = [x for x in (moving.lo, other.lo) if x is not None]
    most = None if moving.hi is None or other.hi is None else max(moving.hi, other.hi)
    return Span(None, ZERO, max(los2), most) if los2 and most is not None else UNKNOWN

"""Required regions: what box of every stage and input a box of the outputs needs, as expressions of its bounds.

Interval arithmetic over `Index`: exact for shifted, scaled and divided indices, never too small for any
index. A box that contains another requires boxes that contain the other's (inclusion is kept), which is
what makes it sound to size buffers at an outer loop and to compute parts of them in inner ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil, floor, lcm
from types import MappingProxyType
from typing import TypeAlias

from tilesmith.scheduler.analysis.access_functions import Rational, Span, hull
from tilesmith.scheduler.analysis.accesses import StageAccess, accesses
from tilesmith.scheduler.ir.index import Index, const, divide, maximum, minimum, modulo, multiply, sym
from tilesmith.scheduler.ir.memo import once
from tilesmith.scheduler.ir.pipeline import value_bounds as values
from tilesmith.scheduler.ir.pipeline.expressions import (
    Binary,
    Call,
    Cast,
    Compare,
    CompareOp,
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
    variables_of,
    walk,
)
from tilesmith.scheduler.ir.pipeline.float_bounds import bits_of, rounded
from tilesmith.scheduler.ir.pipeline.pipeline import Input, Param, Pipeline, Stage, Update
from tilesmith.scheduler.ir.pipeline.types import BOOL, ScalarType
from tilesmith.scheduler.ir.pipeline.value_bounds import Leaf

Interval = tuple[Index, Index]
Box = tuple[Interval, ...]

_NOWHERE = 1 << 34
"""Beyond all coordinates: intervals from there to its negative are empty, whatever they are moved by, and joined with
others they leave these as they are."""


def bound_symbol(image: str, which: str, dim: str) -> str:
    """The symbol of an input's or output's min or extent."""
    return f"{image}.{which}.{dim}"


def param_symbol(name: str) -> str:
    """The symbol of a param."""
    return f"param.{name}"


def number_of(p: Param, value: int | float | bool) -> int:
    """The integer that a param's symbol stands for: the value, or the bits of a float."""
    return bits_of(float(p.type.numpy.type(value))) if p.type.is_float else int(value)


def interval_hull(a: Interval, b: Interval) -> Interval:
    """The smallest interval with both."""
    return minimum(a[0], b[0]), maximum(a[1], b[1])


def box_hull(a: Box | None, b: Box) -> Box:
    """The smallest box with both; `b` where `a` is None."""
    return b if a is None else tuple(interval_hull(x, y) for x, y in zip(a, b, strict=True))


def interval_of(e: Expr, env: Mapping[str, Interval]) -> Interval:
    """Bounds of an integer expression, given those of its variables, and of the symbols that are told. Data is bounded
    by its type."""
    match e:
        case Const():
            return const(int(e.value)), const(int(e.value))
        case Var():
            return env[e.name]
        case ParamRef() if e.type.is_integer:
            return _of_symbol(param_symbol(e.name), env)
        case InputBound():
            return _of_symbol(bound_symbol(e.input, e.which, e.dim), env)
        case Unary(op="-"):
            lo, hi = interval_of(e.operand, env)
            return _wrapped((hi.scaled(-1), lo.scaled(-1)), e.type)
        case Unary(op="~") if e.type.kind == "int":
            lo, hi = interval_of(e.operand, env)
            return hi.scaled(-1) - 1, lo.scaled(-1) - 1
        case Select():
            return _chosen(e, env)
        case Binary() if e.type.is_integer:
            return _wrapped(_binary(e, env), e.type)
        case Call(function="min", args=(a, b)):
            (al, ah), (bl, bh) = interval_of(a, env), interval_of(b, env)
            return minimum(al, bl), minimum(ah, bh)
        case Call(function="max", args=(a, b)):
            (al, ah), (bl, bh) = interval_of(a, env), interval_of(b, env)
            return maximum(al, bl), maximum(ah, bh)
        case Call(function="clamp", args=(a, b, c)):
            (al, ah), (bl, bh), (cl, ch) = (interval_of(x, env) for x in (a, b, c))
            return maximum(minimum(al, cl), bl), maximum(minimum(ah, ch), bh)
        case Call(function="abs", args=(a,)) if e.type.is_integer:
            lo, hi = interval_of(a, env)
            largest = minimum(maximum(hi, lo.scaled(-1)), const(e.type.max))
            return maximum(maximum(lo, hi.scaled(-1)), const(0)), largest
        case Call(function="absd", args=(a, b)) if e.type.kind == "int":
            (al, ah), (bl, bh) = interval_of(a, env), interval_of(b, env)
            above, below = ah - bl, bh - al
            return maximum(maximum(al - bh, bl - ah), const(0)), minimum(maximum(above, below), const(e.type.max))
        case Call(function="mux", args=(_, *choices)):
            both = interval_of(choices[0], env)
            for choice in choices[1:]:
                both = interval_hull(both, interval_of(choice, env))
            return both
        case Cast() if e.type.is_integer and e.operand.type.is_integer:
            return _cast(e, env)
        case Cast() if e.type.is_integer and e.operand.type.is_float:
            found = rounded(e, lambda x: interval_of(x, env), lambda p: _of_symbol(param_symbol(p.name), env)[0])
            if found is not None:
                return found
        case Reduce(op="min" | "max", where=None) if e.type.is_integer and all(map(_runs, e.domain)):
            inner = dict(env)
            add_domain(e.domain, inner)
            return interval_of(e.body, inner)
    return _of_data(e, env)


def _chosen(e: Select, env: Mapping[str, Interval]) -> Interval:
    """Bounds of a choice: of the side that is taken where params and bounds of inputs decide, else of both."""
    a, b = interval_of(e.if_true, env), interval_of(e.if_false, env)
    taken = _truth(e.condition, env)
    if taken is None:
        return interval_hull(a, b)
    away, near = (const(1) - taken).scaled(_NOWHERE), taken.scaled(_NOWHERE)
    return minimum(a[0] + away, b[0] + near), maximum(a[1] - away, b[1] - near)


def _truth(e: Expr, env: Mapping[str, Interval]) -> Index | None:
    """1 where a condition holds and 0 where it does not, if that is known when the code is called."""
    match e:
        case ParamRef() if e.type == BOOL:
            return sym(param_symbol(e.name))
        case Unary(op="not"):
            operand = _truth(e.operand, env)
            return None if operand is None else const(1) - operand
        case Logical():
            left, right = _truth(e.left, env), _truth(e.right, env)
            if left is None or right is None:
                return None
            return minimum(left, right) if e.op == "and" else maximum(left, right)
        case Compare() if e.left.type.is_integer and all(isinstance(n, _KNOWN) for n in walk(e)):
            (al, ah), (bl, bh) = interval_of(e.left, env), interval_of(e.right, env)
            return _compared(e.op, al, bl) if al == ah and bl == bh else None
    return None


_KNOWN = (ParamRef, InputBound, Const, Binary, Unary, Cast, Compare, Call)
"""Parts of what is the same for all points."""


def _compared(op: CompareOp, a: Index, b: Index) -> Index:
    match op:
        case "<" | ">":
            less = b - a if op == "<" else a - b
            return minimum(maximum(less, const(0)), const(1))
        case "<=" | ">=":
            return const(1) - _compared(">" if op == "<=" else "<", a, b)
        case "==":
            return const(1) - _compared("!=", a, b)
        case "!=":
            return maximum(_compared("<", a, b), _compared(">", a, b))


def _of_symbol(name: str, env: Mapping[str, Interval]) -> Interval:
    if name in env:
        return env[name]
    symbol = sym(name)
    return symbol, symbol


def told(symbols: Mapping[str, int]) -> dict[str, Interval]:
    """The intervals of symbols whose values are known: with numbers all of a bound is one."""
    return {name: (const(value), const(value)) for name, value in symbols.items()}


def _runs(r: RVar) -> bool:
    return isinstance(r.extent, Const) and int(r.extent.value) > 0


def _not_negative(e: Expr) -> bool:
    low = values.interval(e).lo
    return isinstance(low, int | float) and low >= 0


def _proved(e: Expr, env: Mapping[str, Interval]) -> values.Interval:
    """Bounds of `e` that the language proves, given the variables that have numbers as ends."""

    def leaf(node: Leaf) -> values.Interval:
        if isinstance(node, Var) and node.name in env:
            lo, hi = env[node.name]
            if lo.is_const and hi.is_const:
                return values.Interval(lo.const, hi.const)
        return values.leaf_interval(node)

    return values.interval(e, leaf)


def _of_data(e: Expr, env: Mapping[str, Interval]) -> Interval:
    """Bounds that the language proves of an expression that is more than arithmetic of bounds: floats, shifts,
    functions."""
    found = _proved(e, env).numeric
    if found is None or not all(-(1 << 63) <= end < 1 << 63 for end in found):
        return _of_type(e.type)
    return const(floor(found[0])), const(ceil(found[1]))


def _of_type(t: ScalarType) -> Interval:
    return (const(t.min), const(t.max)) if not t.is_float else (const(-(1 << 31)), const((1 << 31) - 1))


def _wrapped(interval: Interval, t: ScalarType) -> Interval:
    """The interval of arithmetic in `t`: all of the type where it may wrap, but for what is known when the code is
    called. Places are int32 and int64; those that are made of bounds do not wrap."""
    lo, hi = interval
    if lo.is_const and hi.is_const:
        return interval if t.min <= lo.const and hi.const <= t.max else _of_type(t)
    if t.kind == "int" and t.bits >= 32:
        return interval
    if lo == hi and t.bits <= 32:
        place = modulo(lo - t.min, const(1 << t.bits)) + t.min
        return place, place
    return _of_type(t)


def _cast(e: Cast, env: Mapping[str, Interval]) -> Interval:
    lo, hi = interval_of(e.operand, env)
    outer, inner = e.type, e.operand.type
    if inner.max <= outer.max and (outer.min <= inner.min or _not_negative(e.operand)):
        return lo, hi
    if e.saturate:
        return (
            minimum(maximum(lo, const(outer.min)), const(outer.max)),
            minimum(maximum(hi, const(outer.min)), const(outer.max)),
        )
    return _wrapped((lo, hi), outer)


def _binary(e: Binary, env: Mapping[str, Interval]) -> Interval:
    match e.op:
        case "+":
            (al, ah), (bl, bh) = interval_of(e.left, env), interval_of(e.right, env)
            return al + bl, ah + bh
        case "-":
            (al, ah), (bl, bh) = interval_of(e.left, env), interval_of(e.right, env)
            return al - bh, ah - bl
        case "*":
            return _product(interval_of(e.left, env), interval_of(e.right, env))
        case "//":
            (al, ah), (bl, bh) = interval_of(e.left, env), interval_of(e.right, env)
            if bl.is_const and bh.is_const and bl.const == bh.const:
                lo, hi = divide(al, bl), divide(ah, bl)
                return (lo, hi) if bl.const >= 0 else (hi, lo)
            if bl == bh:  # one divisor, of whatever sign: quotients are in order, or in reverse
                return interval_hull((divide(al, bl),) * 2, (divide(ah, bl),) * 2)
            if bl.is_const and bl.const > 0:
                return minimum(divide(al, bl), divide(al, bh)), maximum(divide(ah, bl), divide(ah, bh))
            if _not_negative(e.right):  # no quotient is larger than the dividend, and by 0 gives 0
                return minimum(al, const(0)), maximum(ah, const(0))
            # a divisor of at least 1 in size never makes a value larger
            most = maximum(maximum(ah, al.scaled(-1)), const(0))
            return most.scaled(-1), most
        case "%":
            (al, ah), (bl, bh) = interval_of(e.left, env), interval_of(e.right, env)
            if bl == bh and bl.is_const and al == ah:
                return modulo(al, bl), modulo(al, bl)
            most = maximum(maximum(bh, bl.scaled(-1)), const(1)) - 1
            return const(0), minimum(most, ah) if _not_negative(e.left) else most
        case "&":
            tops = [interval_of(side, env)[1] for side in (e.left, e.right) if _not_negative(side)]
            if tops:
                return const(0), minimum(tops[0], tops[-1])
            for mask, x in ((e.left, e.right), (e.right, e.left)):
                number = _number(mask)
                if number is not None and e.type.kind == "int":
                    lo, hi = interval_of(x, env)
                    cleared = ~number
                    whole = cleared & (cleared + 1) == 0
                    return (_step(lo, cleared + 1), _step(hi, cleared + 1)) if whole else (lo - cleared, hi)
        case "|" | "^" if e.type.kind == "int":
            for mask, x in ((e.left, e.right), (e.right, e.left)):
                number = _number(mask)
                if number is not None and number >= 0:
                    lo, hi = interval_of(x, env)
                    size = 1 << number.bit_length()
                    low = _step(lo, size)
                    return (lo if e.op == "|" else low), _step(hi, size) + (size - 1)
        case "<<" | ">>":
            counts = _proved(e.right, env).numeric
            if counts is not None and counts[0] >= 0 and counts[1] < e.type.bits:
                a, factors = interval_of(e.left, env), [1 << int(n) for n in counts]
                ends = [x.scaled(f) if e.op == "<<" else divide(x, f) for x in a for f in factors]
                return minimum(ends[0], ends[1]), maximum(ends[2], ends[3])
    return _of_data(e, env)


def _number(e: Expr) -> int | None:
    if isinstance(e, Unary) and e.op == "-" and isinstance(e.operand, Const):
        return -int(e.operand.value)
    return int(e.value) if isinstance(e, Const) and e.type.is_integer else None


def _step(x: Index, size: int) -> Index:
    """`x` without its remainder."""
    return divide(x, size).scaled(size)


def _product(a: Interval, b: Interval) -> Interval:
    for x, y in ((a, b), (b, a)):
        if x[0] == x[1] and x[0].is_const:
            k = x[0].const
            return (y[0].scaled(k), y[1].scaled(k)) if k >= 0 else (y[1].scaled(k), y[0].scaled(k))
    corners = [multiply(x, y) for x in a for y in b]
    lo = hi = corners[0]
    for c in corners[1:]:
        lo, hi = minimum(lo, c), maximum(hi, c)
    return lo, hi


Form: TypeAlias = Span | tuple[Expr, tuple[RVar, ...]]


@dataclass(frozen=True, slots=True)
class Reads:
    """Accesses of a stage to one producer: per dim of the producer the forms of its indices.

    A `Span` stands for all clamp-free indices along one variable at one rate; other indices stay expressions,
    with the reduction variables around them, and so do those in domains that may be empty when the code is called.
    """

    producer: str
    forms: tuple[tuple[Form, ...], ...]


@once
def reads(stage: Stage) -> tuple[Reads, ...]:
    """The accesses of `stage`, one entry a producer, itself included where its updates read it."""
    by_producer: dict[str, list[StageAccess]] = {}
    for a in accesses(stage):
        by_producer.setdefault(a.producer, []).append(a)
    return tuple(
        Reads(name, tuple(_forms(found, d) for d in range(len(found[0].spans)))) for name, found in by_producer.items()
    )


def _forms(found: list[StageAccess], d: int) -> tuple[Form, ...]:
    """Lines are merged. Of an index that its span does not tell exactly, as of 2 * (x // 2) or of clamps, the bounds
    are worked out: whoever computes part of a stage elsewhere must not need more of an input than that stage."""
    spans: dict[tuple[str | None, object], Span] = {}
    others: dict[tuple[Expr, tuple[RVar, ...]], None] = {}
    for a in found:
        span = a.spans[d]
        if span.known and not span.clamps and span.lo == span.hi and not any(map(_may_be_empty, a.reductions)):
            key = (span.var, span.rate)
            spans[key] = hull(spans[key], span) if key in spans else span
        else:
            others[(a.access.indices[d], a.reductions)] = None
    return (*spans.values(), *others)


def _span_interval(s: Span, env: Mapping[str, Interval]) -> Interval:
    least, most = s.ends
    if s.var is None:
        return const(int(least // 1)), const(int(most // 1))
    lo, hi = env[s.var] if s.rate > 0 else env[s.var][::-1]
    if lo.is_const and hi.is_const:
        return const(s.first(lo.const)), const(s.last(hi.const))

    def end(at: Index, offset: Rational) -> Index:
        k = lcm(s.rate.denominator, offset.denominator)
        return divide(at.scaled(int(s.rate * k)) + int(offset * k), k)

    return end(lo, least), end(hi, most)


def variables(stage: Stage, box: Box) -> dict[str, Interval]:
    """Intervals of the dims of `stage` when it is computed on `box`."""
    return dict(zip(stage.dims, box, strict=True))


def domain_intervals(domain: tuple[RVar, ...], env: Mapping[str, Interval]) -> dict[str, Interval]:
    """The intervals of the variables of `domain`; an empty one has its first point."""
    inner = dict(env)
    add_domain(domain, inner)
    return {r.name: inner[r.name] for r in domain}


def add_domain(domain: tuple[RVar, ...], env: dict[str, Interval]) -> None:
    for r in domain:
        lo, extent = interval_of(r.lo, env), interval_of(r.extent, env)
        env[r.name] = (lo[0], maximum(lo[1] + extent[1] - 1, lo[0]))


def footprint(read: Reads, env: Mapping[str, Interval], own: bool = False) -> Box:
    """The box of `read.producer` that the intervals of the reader's variables need; `own`: it is the reader itself."""
    return tuple(_dim_footprint(forms, env, own) for forms in read.forms)


def _may_be_empty(r: RVar) -> bool:
    """True if the variable may have no value: its extent is known when the code is called, and may be 0 then."""
    if isinstance(r.extent, Const):
        return False
    least = values.interval(r.extent, _at_least_one).lo
    return not isinstance(least, int | float) or least < 1


def _at_least_one(leaf: Leaf) -> values.Interval:
    if isinstance(leaf, InputBound) and leaf.which == "extent":
        return values.Interval(1, values.RUNTIME)
    return values.leaf_interval(leaf)


def _unless_empty(interval: Interval, domain: tuple[RVar, ...], env: Mapping[str, Interval]) -> Interval:
    """The interval, or an empty one where `domain` is empty: nothing is read there."""
    missing: Index | None = None
    for r in filter(_may_be_empty, domain):
        lacks = maximum(const(1) - interval_of(r.extent, env)[1], const(0))
        missing = lacks if missing is None else maximum(missing, lacks)
    if missing is None:
        return interval
    far = minimum(missing, const(1)).scaled(_NOWHERE)
    return interval[0] + far, interval[1] - far


def _dim_footprint(forms: tuple[Form, ...], env: Mapping[str, Interval], own: bool) -> Interval:
    result: Interval | None = None
    for form in forms:
        if isinstance(form, Span):
            piece = _span_interval(form, env)
        else:
            expr, domain = form
            inner = dict(env)
            add_domain(domain, inner)
            piece = _unless_empty(interval_of(expr, inner), _moving(expr, domain) if own else domain, env)
        result = piece if result is None else interval_hull(result, piece)
    assert result is not None
    return result


def settled_box(stage: Stage, box: Box, numbers: Mapping[str, Interval] = MappingProxyType({})) -> Box:
    """The box that a stage with updates is computed on: `box`, what its updates write and what they read of
    the stage itself; with these `numbers` for symbols."""
    if not stage.updates:
        return box
    env = {**numbers, **variables(stage, box)}
    for update in stage.updates:
        box = box_hull(box, _written(update, env))
    for read in reads(stage):
        if read.producer == stage.name:
            box = box_hull(box, footprint(read, env, own=True))
    return box


def _written(update: Update, env: Mapping[str, Interval]) -> Box:
    inside = dict(env)
    add_domain(update.domain, inside)
    return tuple(_unless_empty(interval_of(e, inside), _moving(e, update.domain), env) for e in update.at)


def _moving(e: Expr, domain: tuple[RVar, ...]) -> tuple[RVar, ...]:
    """The variables that an index of a stage's own has. Others say nothing of this dim, and what is computed of the
    stage, but for its updates, is told more shortly without them."""
    names = variables_of(e)
    return tuple(r for r in domain if r.name in names)


Name = Callable[[Index, str], Index]
"""Gives a bound a name (second argument: a hint), or a number where everything is known."""
Visit = Callable[[Stage | Input, Box], None]
"""Sees the box of a stage or input once it is settled, before anything is made of it."""


def required_boxes(
    pipeline: Pipeline, outputs: Mapping[str, Box], name: Name, visit: Visit | None = None
) -> dict[str, Box]:
    """*Before*: a normalised pipeline and boxes of its outputs. *After*: the box of every stage (settled) and
    input that they need; what is not needed is missing. `name` keeps bounds of long chains short."""

    def named(owner: str, dims: tuple[str, ...], box: Box) -> Box:
        return tuple(
            (name(lo, f"{owner}_{d}_lo"), name(hi, f"{owner}_{d}_hi")) for d, (lo, hi) in zip(dims, box, strict=True)
        )

    need: dict[str, Box] = dict(outputs)
    for stage in reversed(pipeline.stages):
        if stage.name not in need:
            continue
        box = named(stage.name, stage.dims, settled_box(stage, named(stage.name, stage.dims, need[stage.name])))
        need[stage.name] = box
        if visit is not None:
            visit(stage, box)
        env = variables(stage, box)
        for read in reads(stage):
            if read.producer != stage.name:
                need[read.producer] = box_hull(need.get(read.producer), footprint(read, env))
    for image in pipeline.inputs:
        if image.name in need:
            need[image.name] = named(image.name, image.dims, need[image.name])
            if visit is not None:
                visit(image, need[image.name])
    return need

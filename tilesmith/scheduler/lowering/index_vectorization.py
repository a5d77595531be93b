"""Expressions as places: what addresses elements, and how places differ from lane to lane."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from typing import Literal, TypeAlias, TypeVar

from tilesmith.scheduler.analysis.bounds_inference import bound_symbol, param_symbol
from tilesmith.scheduler.ir.index import (
    Atom,
    Index,
    const,
    divide,
    is_multiple,
    linear_bound,
    maximum,
    minimum,
    multiply,
    sym,
)
from tilesmith.scheduler.ir.loop import ops
from tilesmith.scheduler.ir.loop.builder import Builder, Misfit, Scope, literal
from tilesmith.scheduler.ir.loop.values import Lane, Neighbours, Value
from tilesmith.scheduler.ir.pipeline.boundary_conditions import before_clamp, before_turning
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
    Unary,
    Var,
    walk,
)
from tilesmith.scheduler.ir.pipeline.float_bounds import place_interval
from tilesmith.scheduler.ir.pipeline.types import BOOL, FLOAT32, INT32, INT64, ScalarType
from tilesmith.scheduler.ir.pipeline.value_bounds import UNBOUNDED, Interval, interval


class NeedAlignment(Misfit):
    """The vector must start at multiples of `align` for an index to be the same shape in every vector."""

    def __init__(self, align: int) -> None:
        super().__init__(align)
        self.align = align


class NotUniformBound(Misfit):
    """A clamp in the vectorised dim depends on an inner loop: the row cannot be cut into edges and middle."""


ANYWHERE = const(0)


@dataclass(frozen=True, slots=True)
class Axis:
    """The vectorised variable, which symbol `q` moves: `start` is what of its first lane is a multiple of `align` and
    would be one of more, nothing where vectors start where they start. `depth` is the loop's own scope. With `splits`
    the row may be written once for each remainder of an index (see `residue_splitting`). `flat`: lanes are elements of
    a row of pixels, whatever their channels (see `analysis.flat_rows`). `inside`: `q` is of a loop inside of that over
    vectors, and moves what is the same in all lanes as well."""

    q: str
    align: int
    lanes: int
    depth: int
    start: Index = ANYWHERE
    splits: bool = False
    flat: bool = False
    inside: bool = False


@dataclass(slots=True)
class Frame:
    """The values of the variables of one stage, each with a number that equal ones have: they key what was computed of
    some of them, and the number of the frame all other that was computed under it. Where it is `extended` by variables
    of reductions, much is the same in several frames."""

    env: dict[str, Lane]
    numbers: dict[str, int]
    number: int
    extended: bool = False


T = TypeVar("T")


Moves: TypeAlias = Literal["not", "in order", "any way"]
Known: TypeAlias = tuple[T, Scope, int, Expr]
"""The result of an expression, valid while the scope in which it is defined is open at a depth. The expression is kept
so that no other one gets its identity."""


class Places(ABC):
    """Indices in the open scope of a builder, made of an expression's variables, or of its values.

    With an `axis` they may differ from lane to lane; clamps along it are dropped and noted in `constraints` instead
    (each must be >= 0 where the vector code runs). With `exact` clamps stay as they are; with `safe` lanes
    may be where nothing is, which have any value. Floats that places are made of are computed as they are written
    (`rounding`): their bounds say where they are.
    """

    def __init__(self, builder: Builder, axis: Axis | None, exact: bool, safe: bool = False) -> None:
        self.builder = builder
        self.axis = axis
        self.exact = exact
        self.safe = safe
        self.constraints: list[Index] = []
        self.known_lanes: dict[tuple[int, ...], Known[Lane]] = {}
        self.known_moves: dict[tuple[int, int], tuple[Moves, Expr]] = {}
        self.intervals: dict[int, Interval] = {}
        self.rounding = False
        self._frames: dict[object, Frame] = {}
        self._numbers: dict[object, int] = {}

    @abstractmethod
    def value(self, e: Expr, frame: Frame) -> Value:
        """`e` as a scalar, or as a vector where it moves along the axis."""

    def frame(self, env: Mapping[str, Lane]) -> Frame:
        """The frame with these variables; the same one for the same variables."""
        return self._frame((tuple(env), _key(env.values())), env, {n: self._number(lane) for n, lane in env.items()})

    def extended(self, frame: Frame, name: str, lane: Lane) -> Frame:
        """`frame` with one more variable."""
        number = self._number(lane)
        key = (frame.number, name, number)
        found = self._frames.get(key)
        return found or self._frame(key, {**frame.env, name: lane}, {**frame.numbers, name: number}, True)

    def _frame(self, key: object, env: Mapping[str, Lane], numbers: dict[str, int], extended: bool = False) -> Frame:
        found = self._frames.get(key)
        if found is None:
            found = self._frames[key] = Frame(dict(env), numbers, len(self._frames), extended)
        return found

    def _number(self, lane: Lane) -> int:
        return self._numbers.setdefault((lane.base, lane.pattern, lane.vector), len(self._numbers))

    def frame_of(self, stage: str, dims: tuple[str, ...], lanes: tuple[Lane, ...]) -> Frame:
        """The frame of an inlined stage at `lanes`."""
        numbers = [self._number(lane) for lane in lanes]
        key = (stage, *numbers)
        found = self._frames.get(key)
        if found is None:
            found = self._frame(key, dict(zip(dims, lanes, strict=True)), dict(zip(dims, numbers, strict=True)))
        return found

    def lane(self, e: Expr, frame: Frame) -> Lane:
        """An integer expression as an index: found once for all frames where the variables in it are the same."""
        if not isinstance(e, Binary | Call):
            return self._lane(e, frame)
        names, b = self._variables_of(e), self.builder
        key = (id(e), frame.number) if names is None else (id(e), *[frame.numbers[name] for name in names])
        known = self.known_lanes.get(key)
        if known is not None and b.is_open(known[1], known[2]):
            return known[0]
        found = self._lane(e, frame)
        depth = b.depth_of(found) if found.vector is not None or b.data else 0  # what is no data is no definition
        self.known_lanes[key] = (found, b.scopes[depth], depth, e)
        return found

    def _variables_of(self, e: Expr) -> tuple[str, ...] | None:
        """The variables that make all of `e`; None where it reads what is not known of them alone."""
        known = self.builder.variables
        found = known.get(id(e))
        if found is None:
            found = known[id(e)] = e, _variables_of(e)
        return found[1]

    def _lane(self, e: Expr, frame: Frame) -> Lane:
        if e.type not in (INT32, INT64):
            return self._from_value(e, frame)
        match e:
            case Const():
                return Lane(const(int(e.value)))
            case Var():
                return frame.env[e.name]
            case ParamRef():
                return Lane(sym(param_symbol(e.name)))
            case InputBound():
                return Lane(sym(bound_symbol(e.input, e.which, e.dim)))
            case Unary(op="-"):
                operand = self.lane(e.operand, frame)
                return self._from_value(e, frame) if self._may_wrap(e, operand) else self._scaled(operand, -1, e, frame)
            case Binary(op="+" | "-" | "*" | "//" | "%"):
                return self._arithmetic(e, frame)
            case Call(function="min" | "max", args=(a, b)):
                return self._extreme(e.function, self.lane(a, frame), self.lane(b, frame), e, frame)
            case Call(function="clamp", args=(a, lo, hi)):
                moving = None if self.exact else before_turning(e)
                place = self.lane(a if moving is None else moving, frame)
                if moving is not None and (place.pattern is None or place.vector is not None):
                    place = self.lane(a, frame)
                inner = self._extreme("min", place, self.lane(hi, frame), e, frame)
                return self._turned(self._extreme("max", inner, self.lane(lo, frame), e, frame), e, frame)
            case Cast() if e.operand.type in (INT32, INT64) and not e.saturate:
                operand = self.lane(e.operand, frame)
                return self._from_value(e, frame) if self._may_wrap(e, operand) else operand
        return self._from_value(e, frame)

    def _may_wrap(self, e: Expr, *parts: Lane) -> bool:
        """True if an index made of data may wrap in its type. Places themselves do not."""
        data = self.builder.data
        if not data or all(data.isdisjoint(part.base.symbols()) for part in parts):
            return False
        return not place_interval(e, self.intervals).bounded

    def _from_value(self, e: Expr, frame: Frame) -> Lane:
        while isinstance(e, Cast) and not e.saturate and e.type.bits >= 32 and _is_short(e.operand.type):
            e = e.operand  # lanes need not be wider than what they are made of
        outside, self.rounding = self.rounding, True
        value = self.value(e, frame)
        self.rounding = outside
        if value.lanes > 1:
            ends = interval(e, known=self.intervals).numeric
            most = None if ends is None or ends[0] < 0 else int(ends[1])
            value = value if _is_short(value.type) else self.convert(value, INT32)
            near = self.moves(e, frame) == "in order"
            return Lane(const(0), None, value if most is None else self._unsigned(value), most=most, near=near)
        return Lane(self.builder.as_index(value))

    def moves(self, e: Expr, frame: Frame) -> Moves:
        """The change of a value from lane to lane, where nothing wraps: "not", or "in order", from the first to the
        last, as what is made of one coordinate does by functions that go up or down alone; else "any way"."""
        if isinstance(e, Const | Var):
            return self._moves(e, frame)
        key = (id(e), frame.number)
        known = self.known_moves.get(key)
        if known is None:
            known = self.known_moves[key] = self._moves(e, frame), e
        return known[0]

    def _moves(self, e: Expr, frame: Frame) -> Moves:
        match e:
            case Const() | ParamRef() | InputBound():
                return "not"
            case Var():
                lane = frame.env[e.name]
                if lane.uniform:
                    return "not"
                p = lane.pattern
                in_order = lane.near if p is None else [*p] in (sorted(p), sorted(p, reverse=True))
                return "in order" if in_order else "any way"
            case Unary(op="-") | Cast():
                return self.moves(e.operand, frame)
            case Binary(op="%", right=Const(value=divisor)):
                spread = self._spread(e.left, frame)  # from one multiple of the divisor to the next, as a rule
                return "any way" if spread is None or spread >= divisor else self.moves(e.left, frame)
            case Binary(op="+" | "-" | "*" | "/" | "//"):
                sides = {self.moves(e.left, frame), self.moves(e.right, frame)}
                if e.op in ("+", "-") and sides == {"in order"}:
                    return "in order"
            case Call(function="floor" | "ceil" | "round" | "trunc" | "min" | "max" | "clamp"):
                sides = {self.moves(a, frame) for a in e.args}
                return "any way" if "any way" in sides else "in order" if "in order" in sides else "not"
            case Access():
                inside = self.inside(e, frame)
                if inside is not None:
                    return self.moves(*inside)
                sides = {self.moves(i, frame) for i in e.indices}
                return "not" if sides <= {"not"} else "any way"
            case _:
                return "any way"
        return "not" if sides == {"not"} else "in order" if sides == {"not", "in order"} else "any way"

    def _spread(self, e: Expr, frame: Frame) -> int | None:
        """The most by which lanes of an index differ as a rule, but where a remainder begins anew; None if unknown."""
        match e:
            case Const() | ParamRef() | InputBound():
                return 0
            case Var():
                lane = frame.env[e.name]
                pattern = (0,) if lane.uniform else lane.pattern
                return None if pattern is None else max(pattern) - min(pattern)
            case Cast():
                return self._spread(e.operand, frame)
            case Binary(op="+" | "-"):
                sides = (self._spread(e.left, frame), self._spread(e.right, frame))
                return None if None in sides else sum(s for s in sides if s is not None)
            case Binary(op="*" | "//" | "%", right=Const(value=number)) if number > 0:
                spread = self._spread(e.left, frame)
                if spread is None or e.op == "%":
                    return spread
                return int(spread * number if e.op == "*" else -(-spread // number))
            case _:
                return None

    def inside(self, e: Access, frame: Frame) -> tuple[Expr, Frame] | None:
        """The value of an inlined stage that `e` reads, and its frame; None of any other."""
        return None

    def _unsigned(self, value: Value) -> Value:
        """A value that is never negative as unsigned: a lane becomes an address without a sign to extend."""
        if value.type.kind == "uint":
            return value
        return self.convert(value, ScalarType("uint", value.type.bits))

    def _scaled(self, a: Lane, k: int, e: Expr, frame: Frame) -> Lane:
        if a.vector is not None or (a.pattern is not None and abs(k) > -INT32.min):
            return self._from_value(e, frame)
        return Lane(a.base.scaled(k), None if a.pattern is None else tuple(p * k for p in a.pattern))

    def _arithmetic(self, e: Binary, frame: Frame) -> Lane:
        a, b = self.lane(e.left, frame), self.lane(e.right, frame)
        if a.vector is not None or b.vector is not None:
            return self._moved(e, a, b) or self._from_value(e, frame)
        if e.op != "%" and self._may_wrap(e, a, b):
            return self._from_value(e, frame)
        match e.op:
            case "+" | "-":
                sign = 1 if e.op == "+" else -1
                return Lane(a.base + b.base.scaled(sign), _add_patterns(a.pattern, b.pattern, sign))
            case "*":
                if a.pattern is None and b.pattern is None:
                    return Lane(multiply(a.base, b.base))
                for x, y in ((a, b), (b, a)):
                    if y.pattern is None and y.base.is_const:
                        return self._scaled(x, y.base.const, e, frame)
            case "//" | "%":
                if a.pattern is None and b.pattern is None:
                    return Lane(self._divided(e.op, a.base, b.base))
                if b.pattern is None:
                    return self._split(e, a, b.base, frame)
        return self._from_value(e, frame)

    def _divided(self, op: str, a: Index, k: Index) -> Index:
        """a // k or a % k. Where loops move the part of `a` that is no multiple of k from none of these to the next, it
        is a sum."""
        quotient = divide(a, k)
        part = next((atom for atom, _ in quotient.terms if atom.kind == "div" and atom.args[1] == k), None)
        if part is not None and k.is_const:
            first, last = self._end_of(part, 0, least=True), self._end_of(part, 0, least=False)
            if first is not None and first == last and first.is_const:
                quotient += first - part.index
                return quotient if op == "//" else a - quotient.scaled(k.const)
        return quotient if op == "//" else self.builder.remainder(a, k)

    def _moved(self, e: Binary, a: Lane, b: Lane) -> Lane | None:
        """Data plus or minus what is the same in all lanes, which then moves the row: places that differ by it alone
        share one vector. As values of 32 bits both may wrap, as long as their sum does not."""
        if e.op == "+" and a.uniform:
            a, b = b, a
        if e.op not in ("+", "-") or not b.uniform or e.type != INT32:
            return None
        if not place_interval(e, self.intervals).bounded:
            return None
        by = b.base.scaled(1 if e.op == "+" else -1)
        clamped = None if a.clamped is None else a.clamped.moved(by)
        return Lane(a.base + by, None, a.vector, most=a.most, near=a.near, clamped=clamped)

    def _split(self, e: Binary, a: Lane, b: Index, frame: Frame) -> Lane:
        """a // b or a % b for an index that moves from lane to lane."""
        assert a.pattern is not None
        if not b.is_const:
            if e.op == "%" and not self.exact:  # repeat and mirror boundaries: inside the domain nothing wraps
                self.require(a.base + min(a.pattern))
                self.require(b - a.base - max(a.pattern) - 1)
                return a
            return self._from_value(e, frame)
        k = b.const
        if k <= 0:
            return self._from_value(e, frame)
        if any(c % k for _, c in a.base.terms):
            align = self._alignment(a.base, k)
            if align is None:
                return self._within_block(e.op, a, k) or self._from_value(e, frame)
            raise NeedAlignment(align)
        if e.op == "%":
            start = a.base.const
            return Lane(const(0), tuple((start + p) % k for p in a.pattern)).settled
        start = a.base.const % k
        return Lane(divide(a.base, k), tuple((start + p) // k for p in a.pattern)).settled  # vectors inside of blocks

    def _within_block(self, op: str, a: Lane, k: int) -> Lane | None:
        """a // k or a % k where vectors lie between multiples of k: the lanes of a quotient agree, those of a remainder
        are as far apart as those of `a`. None where a vector may have such a multiple in it."""
        assert self.axis is not None
        assert a.pattern is not None
        size = self.axis.lanes * abs(a.pattern[-1] - a.pattern[-2]) if len(a.pattern) > 1 else 0
        start = a.base.const % size if size else 0
        if not size or k % size or start + min(a.pattern) < 0 or start + max(a.pattern) >= size:
            return None
        first = a.base - start
        if not is_multiple(first, size):
            align = self._alignment(a.base, size)
            if align is None:
                return None
            raise NeedAlignment(align)
        if op == "//":
            return Lane(divide(first, k))
        return Lane(self.builder.remainder(first, k) + start, a.pattern)

    def _alignment(self, at: Index, k: int) -> int | None:
        """The number that vectors must start at multiples of for `at` // k to be the same shape in all, if that helps:
        a step is to add a multiple of k to `at`."""
        assert self.axis is not None
        lanes, start = self.axis.lanes, {s for s, _ in self.axis.start.terms}
        align = 2 * self.axis.align
        while align <= lanes:
            factor = align // self.axis.align
            if not any(c * (factor if s in start else 1) % k for s, c in at.terms):
                return align
            align *= 2
        return None

    def _extreme(self, kind: str, a: Lane, b: Lane, e: Expr, frame: Frame) -> Lane:
        if a.vector is not None or b.vector is not None:
            return self._run(kind, a, b, e, frame)
        if self.exact:
            a, b = a.settled, b.settled
        if a.pattern is None and b.pattern is None:
            gaps = b.base - a.base, a.base - b.base
            for side, difference in zip((a, b) if kind == "min" else (b, a), gaps, strict=True):
                less = self.least(difference)
                if less.is_const and less.const >= 0:
                    return side
            for keep, other in ((a, b), (b, a)):
                if self.follows_axis(keep):
                    self.require((other.base - keep.base).scaled(1 if kind == "min" else -1))
                    return keep
            return Lane((minimum if kind == "min" else maximum)(a.base, b.base))
        if self.exact:
            return self._run(kind, a, b, e, frame)
        # keep the side that moves (the first, if both do) and note where it is the answer
        keep, other = (a, b) if a.pattern is not None else (b, a)
        assert keep.pattern is not None
        low = other.pattern or (0,) * len(keep.pattern)
        gap = [o - k if kind == "min" else k - o for k, o in zip(keep.pattern, low, strict=True)]
        difference = other.base - keep.base if kind == "min" else keep.base - other.base
        self.require(difference + min(gap))
        return keep

    def _run(self, kind: str, a: Lane, b: Lane, e: Expr, frame: Frame) -> Lane:
        """The clamp `e` of a and b, lane by lane: of neighbours, by what is the same in all lanes, it is a run."""
        lane = self._from_value(e, frame)
        moving, end = (a, b) if b.uniform else (b, a)
        run = _is_run(moving) and end.uniform and lane.vector is not None
        places = _neighbours(moving) if run else None
        clamped = None if places is None else places.extreme(kind, end.base)
        return replace(lane, run=run, room=self._room(moving) if self.safe else None, clamped=clamped)

    def _turned(self, bounded: Lane, e: Call, frame: Frame) -> Lane:
        """The clamp `e`, with what it is of if that are neighbours, which repeat or are mirrored beyond its ends."""
        before = before_clamp(e)
        if not self.exact or bounded.vector is None or before is e.args[0]:
            return bounded
        places, low, high = (self.lane(part, frame) for part in (before, *e.args[1:]))
        found = None if places.pattern is None else _neighbours(places)
        if found is None or not (low.uniform and high.uniform):
            return bounded
        return replace(bounded, turned=replace(found, low=low.base, high=high.base))

    @staticmethod
    def _room(lane: Lane) -> Index | None:
        """An index that is not negative where neighbours have 32 bits, those that are nowhere as well."""
        if lane.pattern is None:
            return lane.room
        first, last = lane.base + min(lane.pattern), lane.base + max(lane.pattern)
        return minimum(first - INT32.min, const(INT32.max) - last)

    def follows_axis(self, lane: Lane) -> bool:
        """True if a place moves along the axis, if not from lane to lane."""
        axis = self.axis
        return not self.exact and axis is not None and axis.inside and lane.base.mentions(axis.q)

    def require(self, nonnegative: Index) -> None:
        """Notes what holds where the vector code runs. Raises NotUniformBound where rows cannot be cut by it."""
        assert self.axis is not None
        nonnegative = linear_bound(self.least(nonnegative, self.axis.depth), self.axis.q)
        if nonnegative.is_const and nonnegative.const >= 0:
            return
        moving = nonnegative.coefficient(self.axis.q)
        rest = nonnegative - sym(self.axis.q).scaled(moving)
        if rest.mentions(self.axis.q) or self.builder.depth_of(rest) >= self.axis.depth:
            raise NotUniformBound
        if self.axis.flat and moving == 0 and self.builder.given is not None:  # of channels, in all vectors alike
            if rest not in self.builder.given:
                self.builder.given.append(rest)
            return
        if nonnegative not in self.constraints:
            self.constraints.append(nonnegative)

    def least(self, x: Index, inside: int = 0) -> Index:
        """The least that `x` is in the loops from depth `inside` on: their variables at the worse of their ends."""
        return self._end(x, inside, least=True)

    def _end(self, x: Index, inside: int, least: bool) -> Index:
        for atom, k in x.terms:
            end = self._end_of(atom, inside, least == (k > 0))
            if end is not None:
                x = x - atom.index.scaled(k) + end.scaled(k)
        return x

    def _end_of(self, atom: Atom, inside: int, least: bool) -> Index | None:
        """An end of an atom; None where no loop inside moves it, or nothing is known of how."""
        ranges, depths = self.builder.ranges, self.builder.depths
        for name in atom.symbols:
            if name in ranges and depths[name] >= inside:
                break
        else:
            return None
        match atom.kind:
            case "sym":
                return ranges[atom.key][0 if least else 1]
            case "min" | "max":
                ends = [self._end(a, inside, least) for a in atom.args]
                return reduce(minimum if atom.kind == "min" else maximum, ends)
            case "div" if atom.args[1].is_const and atom.args[1].const > 0:
                return divide(self._end(atom.args[0], inside, least), atom.args[1])
            case "mod" if atom.args[1].is_const:
                return const(0 if least else atom.args[1].const - 1)
        return None

    def position(self, lane: Lane) -> Value:
        """An index as an int32 value."""
        if lane.vector is not None:
            data = self.convert(lane.vector, INT32)
            if lane.base.is_const and lane.base.const == 0:
                return data
            return self.builder.define(ops.Binary("+", data, self.position(Lane(lane.base))), INT32, data.lanes)
        if lane.pattern is None or len(lane.pattern) == 1:
            at = lane.base + sum(lane.pattern or ())
            if at.is_const:
                return literal(at.const, INT32)
            return self.builder.define(ops.FromIndex(at), INT32, hint="x")
        return self.builder.define(ops.Lanes(lane.base, lane.pattern), INT32, len(lane.pattern), hint="x")

    def convert(self, value: Value, type_: ScalarType, saturate: bool = False, ends: Interval = UNBOUNDED) -> Value:
        """A value, which is proved to lie within `ends`, as another type."""
        if value.type == type_:
            return value
        if value.lanes > 1 and value.type.is_float and type_.is_integer and 2 * type_.bits <= value.type.bits:
            return self._narrowed(value, type_, ends)
        mask = (value.type.bits if value.lanes > 1 else 0) if type_ == BOOL else 0
        return self.builder.define(
            ops.Cast(value, saturate), type_, value.lanes, mask_bits=mask, hint=value.name[:1] or "t"
        )

    def extreme_of(self, function: str, args: tuple[Value, ...], lanes: int) -> Value:
        """min and max of vectors."""
        return self.builder.define(ops.Call(function, args), args[0].type, lanes)

    def _narrowed(self, value: Value, type_: ScalarType, ends: Interval) -> Value:
        """Floats to integers of half their bits at most, all of which are floats, as vectors: 0 for NaN, clamped to the
        range, truncated; without what `ends` prove needless. Extremes keep a NaN that is their second argument, and
        none that is the first, so that the clamp to 0 is that of NaN."""
        t, lanes, define = value.type, value.lanes, self.builder.define
        if t == FLOAT32 and _within(ends, INT32) and not _within(ends, type_):  # saturation is part of packing
            return define(ops.Cast(define(ops.Truncate(value), INT32, lanes), True), type_, lanes)
        if ends == UNBOUNDED and type_.min < 0:
            number = define(ops.Compare("==", value, value), BOOL, lanes, mask_bits=t.bits)
            value = define(ops.Select(number, value, literal(0, t)), t, lanes)
        if not isinstance(ends.hi, int | float) or ends.hi >= type_.max + 1:
            value = self.extreme_of("min", (literal(type_.max, t), value), lanes)
        if not isinstance(ends.lo, int | float) or ends.lo <= type_.min - 1:
            value = self.extreme_of("max", (value, literal(type_.min, t)), lanes)
        return define(ops.Truncate(value), type_, lanes)


def _within(ends: Interval, t: ScalarType) -> bool:
    """True if what lies between these ends, truncated, is a value of an integer type."""
    return all(isinstance(end, int | float) and t.min - 1 < end < t.max + 1 for end in (ends.lo, ends.hi))


def _variables_of(e: Expr) -> tuple[str, ...] | None:
    names: dict[str, None] = {}
    for part in walk(e):
        if isinstance(part, Var):
            names[part.name] = None
        elif isinstance(part, Access | Reduce):
            return None
    return tuple(names)


def _key(lanes: Iterable[Lane]) -> tuple[object, ...]:
    """A key by which lanes are equal."""
    return tuple([(lane.base, lane.pattern, lane.vector) for lane in lanes])


def _is_run(lane: Lane) -> bool:
    p = lane.pattern
    return lane.run or (p is not None and all(b - a in (0, 1) for a, b in pairwise(p)))


def _neighbours(lane: Lane) -> Neighbours | None:
    """The places of lanes that are side by side, or were before they were clamped."""
    p = lane.pattern
    if p is None:
        return lane.clamped
    return Neighbours(lane.base + p[0]) if p == tuple(range(p[0], p[0] + len(p))) else None


def _is_short(t: ScalarType) -> bool:
    return t.is_integer and t.bits <= 16


def _add_patterns(a: tuple[int, ...] | None, b: tuple[int, ...] | None, sign: int) -> tuple[int, ...] | None:
    if b is None:
        return a
    if a is None:
        return tuple(sign * p for p in b)
    return tuple(x + sign * y for x, y in zip(a, b, strict=True))

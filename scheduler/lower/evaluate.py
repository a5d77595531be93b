"""Expressions to values: one point (scalar) or one vector of neighbours along a dim, inlined stages included."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import eq, ge, gt, le, lt, ne
from typing import Protocol

from scheduler.analysis.bounds import bound_symbol, param_symbol
from scheduler.analysis.index import Index, const, divide, maximum, minimum, multiply, sym
from scheduler.errors import IllegalSchedule
from scheduler.lang.bounds import interval
from scheduler.lang.expr import (
    Access,
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    InputBound,
    Logical,
    ParamRef,
    Reduce,
    Select,
    Unary,
    Var,
)
from scheduler.lang.pipeline import Stage
from scheduler.lang.types import BOOL, INT32, INT64, ScalarType
from scheduler.lower.builder import Builder, literal
from scheduler.lower.lanes import chosen, classes_of, picked, spread, truths
from scheduler.lower.memory import load
from scheduler.lower.program import Buffer, Lane, Value
from scheduler.lower.reductions import reduced

INLINED_READS = 20_000
"""Inlined stages may be read at this many places in one expression: more is a program nobody wants to compile."""


class NeedAlignment(Exception):
    """The vector must start at multiples of `align` for an index to be the same shape in every vector."""

    def __init__(self, align: int) -> None:
        super().__init__(align)
        self.align = align


class NotUniformBound(Exception):
    """A clamp in the vectorised dim depends on an inner loop: the row cannot be cut into edges and middle."""


@dataclass(frozen=True, slots=True)
class Axis:
    """The vectorised variable: symbol `q`, so that lane j is at align * q + j. `depth` is the loop's own scope."""

    q: str
    align: int
    lanes: int
    depth: int


@dataclass(slots=True)
class Frame:
    """The values of the variables of one stage: its identity keys what was computed under it."""

    env: dict[str, Lane]
    number: int
    substitution: dict[str, Expr] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sources:
    """Where reads find their data: stages to inline, buffers of everything else, the types of params."""

    inlined: Mapping[str, Stage]
    buffers: dict[tuple[str, int], Buffer]
    params: Mapping[str, str]


class Streams(Protocol):
    """Stages that are at hand in registers; `dims` has the dim of each that moves along the row."""

    dims: Mapping[str, int]

    def read(self, name: str, component: int, index: tuple[Lane, ...]) -> Value | None:
        """The value of stage `name` at `index`, or None where registers do not have it."""


class Evaluator:
    """Evaluates definitions of one stage in the open scope of a builder.

    With an `axis`, values that move along it are vectors; clamps and boundaries of indices along it are
    dropped and noted in `constraints` instead (each must be >= 0 where the vector code runs).
    `own` is a stage whose memory is being updated: its loads are neither shared nor moved. `streams` are stages in
    registers. With `exact` clamps stay as they are, lane by lane, and loads stay inside their buffers whatever the
    lane; with `fixed` the vectors start where they start, aligned to nothing.
    """

    def __init__(
        self,
        builder: Builder,
        sources: Sources,
        axis: Axis | None,
        own: str = "",
        streams: Streams | None = None,
        exact: bool = False,
        fixed: bool = False,
    ) -> None:
        self.builder = builder
        self.sources = sources
        self.axis = axis
        self.own = own
        self.streams = streams
        self.exact = exact
        self.fixed = fixed
        self.base_depth = builder.depth if axis is None else axis.depth - 1
        self.constraints: list[Index] = []
        self._inlined = 0
        self._frames: dict[object, Frame] = {}
        self.token = object()

    def frame(self, env: Mapping[str, Lane]) -> Frame:
        """The frame with these variables; the same one for the same variables."""
        key = tuple((n, lane.base, lane.pattern, lane.vector) for n, lane in env.items())
        if key not in self._frames:
            self._frames[key] = Frame(dict(env), len(self._frames))
        return self._frames[key]

    def extended(self, frame: Frame, name: str, lane: Lane) -> Frame:
        """`frame` with one more variable."""
        return self.frame({**frame.env, name: lane})

    # integers that address ------------------------------------------------------------

    def lane(self, e: Expr, frame: Frame) -> Lane:
        """An integer expression as an index."""
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
                inner = self._extreme("min", self.lane(a, frame), self.lane(hi, frame), e, frame)
                return self._extreme("max", inner, self.lane(lo, frame), e, frame)
            case Cast() if e.operand.type in (INT32, INT64) and not e.saturate:
                operand = self.lane(e.operand, frame)
                return self._from_value(e, frame) if self._may_wrap(e, operand) else operand
        return self._from_value(e, frame)

    def _may_wrap(self, e: Expr, *parts: Lane) -> bool:
        """Whether an index made of data wraps in its type. Places themselves do not."""
        data = self.builder.data
        if not any(s in data for part in parts for s in part.base.symbols()):
            return False
        return not interval(e).bounded

    def _from_value(self, e: Expr, frame: Frame) -> Lane:
        while isinstance(e, Cast) and not e.saturate and e.type.bits >= 32 and _is_short(e.operand.type):
            e = e.operand  # lanes need not be wider than what they are made of
        value = self.value(e, frame)
        if value.lanes > 1:
            return Lane(const(0), None, value if _is_short(value.type) else self._convert(value, INT32))
        return Lane(self.builder.as_index(value))

    def _scaled(self, a: Lane, k: int, e: Expr, frame: Frame) -> Lane:
        if a.vector is not None or (a.pattern is not None and abs(k) > -INT32.min):
            return self._from_value(e, frame)
        return Lane(a.base.scaled(k), None if a.pattern is None else tuple(p * k for p in a.pattern))

    def _arithmetic(self, e: Binary, frame: Frame) -> Lane:
        a, b = self.lane(e.left, frame), self.lane(e.right, frame)
        if a.vector is not None or b.vector is not None or (e.op != "%" and self._may_wrap(e, a, b)):
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
                    return Lane(divide(a.base, b.base) if e.op == "//" else self.builder.remainder(a.base, b.base))
                if b.pattern is None:
                    return self._split(e, a, b.base, frame)
        return self._from_value(e, frame)

    def _split(self, e: Binary, a: Lane, b: Index, frame: Frame) -> Lane:
        """a // b or a % b for an index that moves from lane to lane."""
        assert a.pattern is not None
        if not b.is_const:
            if e.op == "%" and not self.exact:  # repeat and mirror boundaries: inside the domain nothing wraps
                self._require(a.base + min(a.pattern))
                self._require(b - a.base - max(a.pattern) - 1)
                return a
            return self._from_value(e, frame)
        k = b.const
        if k <= 0:
            return self._from_value(e, frame)
        if any(c % k for _, c in a.base.terms):
            assert self.axis is not None
            moving = a.base.coefficient(self.axis.q)
            others = any(c % k for s, c in a.base.terms if s.key != self.axis.q)
            # every vector has the same shape if what a vector step adds is a multiple of k
            factor = 2
            while moving * factor % k and self.axis.align * factor < self.axis.lanes:
                factor *= 2
            if self.fixed or others or moving * factor % k or self.axis.align * factor > self.axis.lanes:
                return self._from_value(e, frame)
            raise NeedAlignment(self.axis.align * factor)
        if e.op == "%":
            start = a.base.const
            return Lane(const(0), tuple((start + p) % k for p in a.pattern))
        start = a.base.const % k
        return Lane(divide(a.base, k), tuple((start + p) // k for p in a.pattern))

    def _extreme(self, kind: str, a: Lane, b: Lane, e: Expr, frame: Frame) -> Lane:
        if a.vector is not None or b.vector is not None:
            return self._from_value(e, frame)
        if a.pattern is None and b.pattern is None:
            least = self._least(b.base - a.base), self._least(a.base - b.base)
            for side, less in zip((a, b) if kind == "min" else (b, a), least, strict=True):
                if less.is_const and less.const >= 0:
                    return side
            return Lane((minimum if kind == "min" else maximum)(a.base, b.base))
        if self.exact:
            return self._from_value(e, frame)
        # keep the side that moves (the first, if both do) and note where it is the answer
        keep, other = (a, b) if a.pattern is not None else (b, a)
        assert keep.pattern is not None
        low = other.pattern or (0,) * len(keep.pattern)
        gap = [o - k if kind == "min" else k - o for k, o in zip(keep.pattern, low, strict=True)]
        difference = other.base - keep.base if kind == "min" else keep.base - other.base
        self._require(difference + min(gap))
        return keep

    def _require(self, nonnegative: Index) -> None:
        assert self.axis is not None
        nonnegative = self._least(nonnegative, self.axis.depth)
        if nonnegative.is_const and nonnegative.const >= 0:
            return
        moving = nonnegative.coefficient(self.axis.q)
        rest = nonnegative - sym(self.axis.q).scaled(moving)
        if rest.mentions(self.axis.q) or self.builder.depth_of(rest) >= self.axis.depth:
            raise NotUniformBound
        if nonnegative not in self.constraints:
            self.constraints.append(nonnegative)

    def _least(self, x: Index, inside: int = 0) -> Index:
        """The least that `x` is in the loops from depth `inside` on: their variables at the worse of their ends."""
        ranges, depths = self.builder.ranges, self.builder.depths
        for atom, k in x.terms:
            if atom.kind == "sym" and atom.key in ranges and depths[atom.key] >= inside:
                lo, hi = ranges[atom.key]
                x = x - sym(atom.key).scaled(k) + (lo if k > 0 else hi).scaled(k)
        return x

    # values ------------------------------------------------------------

    def value(self, e: Expr, frame: Frame) -> Value:
        """`e` as a scalar, or as a vector where it moves along the axis."""
        if isinstance(e, Const):
            return literal(e.value, e.type)
        key = (self.token, id(e), frame.number)
        found = self.builder.recall(key)
        if isinstance(found, Value):
            return found
        result = self._value(e, frame)
        depth = max(self.builder.depth_of(result), self._memo_depth())
        self.builder.remember(depth, key, lambda: result)
        return result

    def _memo_depth(self) -> int:
        return self.builder.depth if self.own else 0

    def _value(self, e: Expr, frame: Frame) -> Value:
        define = self.builder.define
        match e:
            case Var():
                return self.position(frame.env[e.name])
            case ParamRef():
                return Value(e.type, 1, self.sources.params[e.name])
            case InputBound():
                return define("from_index", (sym(bound_symbol(e.input, e.which, e.dim)),), INT32, hint="bound")
            case Access():
                return self._access(e, frame)
            case Select():
                inside = self._boundary_select(e, frame)
                if inside is not None:
                    return inside
                known = truths(self, e.condition, frame) if self.axis or self.builder.remainders else None
                if known is not None:
                    return chosen(self, known, (e.if_false, e.if_true), frame)
                args = (self.value(e.if_true, frame), self.value(e.if_false, frame))
                condition = self.value(e.condition, frame)
                if condition.literal is not None:
                    return args[0] if condition.literal else args[1]
                return self.op("select", (condition, *args), e)
            case Binary(op="**", right=Const(value=n)) if isinstance(n, int) and not isinstance(n, bool):
                return self._power(self.value(e.left, frame), int(n), e)
            case Binary():
                return self.op(e.op, (self.value(e.left, frame), self.value(e.right, frame)), e)
            case Compare():
                left, right = self.value(e.left, frame), self.value(e.right, frame)
                if left.literal is not None and right.literal is not None:
                    return literal(_COMPARE[e.op](left.literal, right.literal), BOOL)
                return self.op(e.op, (left, right), e)
            case Logical():
                return self.op(e.op, (self.value(e.left, frame), self.value(e.right, frame)), e)
            case Unary():
                return self.op("neg" if e.op == "-" else e.op, (self.value(e.operand, frame),), e)
            case Cast():
                value = self.value(e.operand, frame)
                return self._convert(value, e.type, e.saturate)
            case Call(function="mux"):
                return self._mux(e, frame)
            case Call(function="clamp"):
                v, lo, hi = (self.value(a, frame) for a in e.args)
                return self.op("call:max", (self.op("call:min", (v, hi), e), lo), e)
            case Call():
                return self.op(f"call:{e.function}", tuple(self.value(a, frame) for a in e.args), e)
            case Reduce():
                return reduced(self, e, frame)
        raise AssertionError(e)

    def op(self, op: str, args: tuple[Value, ...], e: Expr) -> Value:
        """`op` of `args`, as the node `e` types it."""
        lanes = max(a.lanes for a in args)
        mask = 0
        if op in ("call:min", "call:max") and lanes > 1 and e.type != BOOL:
            return self.extreme_of(op, args, lanes)
        if e.type == BOOL and lanes > 1:
            bits = [a.mask_bits or a.type.bits for a in args if a.lanes > 1]
            mask = max(bits)
        return self.builder.define(op, args, e.type, lanes, mask_bits=mask)

    def _convert(self, value: Value, type_: ScalarType, saturate: bool = False) -> Value:
        if value.type == type_:
            return value
        if value.lanes > 1 and value.type.is_float and type_.is_integer and type_.bits <= 16:
            return self._narrowed(value, type_)
        mask = (value.type.bits if value.lanes > 1 else 0) if type_ == BOOL else 0
        return self.builder.define(
            "saturate" if saturate else "cast", (value,), type_, value.lanes, mask_bits=mask, hint=value.name[:1] or "t"
        )

    def extreme_of(self, op: str, args: tuple[Value, ...], lanes: int) -> Value:
        """min and max of vectors: a comparison and a choice, which the compilers know to be one instruction."""
        t, define = args[0].type, self.builder.define
        first = define("<" if op == "call:min" else ">", args, BOOL, lanes, mask_bits=t.bits)
        return define("select", (first, *args), t, lanes)

    def _narrowed(self, value: Value, type_: ScalarType) -> Value:
        """Floats to 8 or 16 bits as vectors: 0 for NaN, clamped to the range, truncated."""
        t, lanes, define = value.type, value.lanes, self.builder.define
        number = define("==", (value, value), BOOL, lanes, mask_bits=t.bits)
        value = define("select", (number, value, literal(0, t)), t, lanes)
        value = self.extreme_of("call:min", (value, literal(type_.max, t)), lanes)
        value = self.extreme_of("call:max", (value, literal(type_.min, t)), lanes)
        return define("truncate", (value,), type_, lanes)

    def position(self, lane: Lane) -> Value:
        """An index as an int32 value."""
        if lane.vector is not None:
            return self._convert(lane.vector, INT32)
        if lane.pattern is None:
            if lane.base.is_const:
                return literal(lane.base.const, INT32)
            return self.builder.define("from_index", (lane.base,), INT32, hint="x")
        return self.builder.define("lanes", (lane.base,), INT32, len(lane.pattern), (lane.pattern,), hint="x")

    def _boundary_select(self, e: Select, frame: Frame) -> Value | None:
        """A constant boundary along the axis: inside the domain there is nothing to select."""
        if self.axis is None or self.exact:
            return None
        conditions: list[Compare] = []
        stack: list[Expr] = [e.condition]
        while stack:
            c = stack.pop()
            if isinstance(c, Logical) and c.op == "and":
                stack += [c.left, c.right]
            elif isinstance(c, Compare) and c.op in ("<=", ">=") and c.left.type == INT32:
                conditions.append(c)
            else:
                return None
        if len(conditions) < 2:
            return None
        uniform: Value | None = None
        for c in conditions:
            left, right = self.lane(c.left, frame), self.lane(c.right, frame)
            if left.vector is not None or right.vector is not None:
                return None
            if left.pattern is None and right.pattern is None:
                above = self._least((left.base - right.base).scaled(1 if c.op == ">=" else -1))
                if above.is_const and above.const >= 0:
                    continue
                term = self.value(c, frame)
                uniform = term if uniform is None else self.builder.define("and", (uniform, term), BOOL)
                continue
            a, b = (left, right) if c.op == ">=" else (right, left)
            size = len(left.pattern or right.pattern or ())
            gap = [x - y for x, y in zip(a.pattern or (0,) * size, b.pattern or (0,) * size, strict=True)]
            self._require(a.base - b.base + min(gap))
        inside = self.value(e.if_true, frame)
        if uniform is None:
            return inside
        return self.op("select", (uniform, inside, self.value(e.if_false, frame)), e)

    def _access(self, e: Access, frame: Frame) -> Value:
        lanes = tuple(self.lane(i, frame) for i in e.indices)
        stage = self.sources.inlined.get(e.name)
        if self.streams is not None and e.name in self.streams.dims:
            found = self.streams.read(e.name, e.component, lanes)
            if found is not None:
                return found
        if stage is not None:
            self._check_size(stage)
            classes = classes_of(lanes)
            if classes is not None and e.type != BOOL:
                values = [self.value(stage.values[e.component], self._frame_of(stage, c)) for c in classes]
                return spread(self, values, max(len(lane.pattern or ()) for lane in lanes))
            return self.value(stage.values[e.component], self._frame_of(stage, lanes))
        buffer = self.sources.buffers[(e.name, e.component)]
        at_least = 0 if buffer.where == "argument" and e.name != self.own else self.base_depth
        at_least = max(at_least, self.builder.guard)
        return load(self.builder, buffer, lanes, e.type, e.name == self.own, at_least, self.exact)

    def _frame_of(self, stage: Stage, lanes: tuple[Lane, ...]) -> Frame:
        inner = self.frame({f"{stage.name}:{d}": lane for d, lane in zip(stage.dims, lanes, strict=True)})
        inner.env.update(zip(stage.dims, lanes, strict=True))
        return inner

    def inlined_frame(self, e: Access, frame: Frame) -> Frame:
        """The frame that the inlined stage of `e` is evaluated in."""
        return self._frame_of(self.sources.inlined[e.name], tuple(self.lane(i, frame) for i in e.indices))

    def _check_size(self, stage: Stage) -> None:
        """Refuses to inline without end: into each other too deeply, or at more and more places."""
        self._inlined += 1
        if self._inlined > INLINED_READS:
            raise IllegalSchedule(
                f"stage '{stage.name}' would be computed inline at more than {INLINED_READS} places; "
                "compute it, or a stage that reads it, at a loop"
            )

    def _power(self, base: Value, n: int, e: Binary) -> Value:
        """Square and multiply from the low bit; a negative exponent is one over the positive power."""
        result: Value | None = None
        square, m = base, abs(n)
        while m:
            if m & 1:
                result = square if result is None else self.op("*", (result, square), e)
            m >>= 1
            if m:
                square = self.op("*", (square, square), e)
        if result is None:
            result = literal(1, e.type)
        return self.op("/", (literal(1, e.type), result), e) if n < 0 and e.type.is_float else result

    def _mux(self, e: Call, frame: Frame) -> Value:
        """Picks by an index; the last choice stands for every index that is none of the others."""
        known = picked(self, e.args[0], frame) if self.axis or self.builder.remainders else None
        if known is not None:
            last = len(e.args) - 2
            return chosen(self, [n if 0 <= n < last else last for n in known], e.args[1:], frame)
        index = self.value(e.args[0], frame)
        choices = e.args[1:]
        result = self.value(choices[-1], frame)
        for n in range(len(choices) - 2, -1, -1):
            same = Compare("==", e.args[0], Const(n, e.args[0].type))
            hit = self.op("==", (index, literal(n, index.type)), same)
            result = self.op("select", (hit, self.value(choices[n], frame), result), e)
        return result


_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": lt, "<=": le, "==": eq, "!=": ne, ">=": ge, ">": gt,
}  # fmt: skip


def _is_short(t: ScalarType) -> bool:
    return t.is_integer and t.bits <= 16


def _add_patterns(a: tuple[int, ...] | None, b: tuple[int, ...] | None, sign: int) -> tuple[int, ...] | None:
    if b is None:
        return a
    if a is None:
        return tuple(sign * p for p in b)
    return tuple(x + sign * y for x, y in zip(a, b, strict=True))

"""Expressions to values: one point (scalar) or one vector of neighbours along a dim, inlined stages included."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import eq, ge, gt, le, lt, ne
from typing import Protocol

from scheduler.analysis.bounds import bound_symbol, param_symbol
from scheduler.analysis.index import Index, const, divide, maximum, minimum, modulo, multiply, sym
from scheduler.errors import IllegalSchedule
from scheduler.lang.bounds import AT_RUN_TIME, interval, leaf_interval
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
    RVar,
    Select,
    Unary,
    Var,
)
from scheduler.lang.pipeline import Stage
from scheduler.lang.types import BOOL, INT32, INT64, ScalarType
from scheduler.lower.builder import Builder, literal
from scheduler.lower.memory import load
from scheduler.lower.program import Accumulator, Assign, Buffer, Lane, Loop, Value

UNROLLED_TRIPS = 64
"""Reductions of at most this many terms, all bounds constant, are written out."""


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
        self._token = object()

    def frame(self, env: Mapping[str, Lane]) -> Frame:
        """The frame with these variables; the same one for the same variables."""
        key = tuple((n, lane.base, lane.pattern, lane.vector) for n, lane in env.items())
        if key not in self._frames:
            self._frames[key] = Frame(dict(env), len(self._frames))
        return self._frames[key]

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
        return not interval(e, lambda leaf: AT_RUN_TIME if isinstance(leaf, ParamRef) else leaf_interval(leaf)).bounded

    def _from_value(self, e: Expr, frame: Frame) -> Lane:
        value = self.value(e, frame)
        if value.lanes > 1:
            return Lane(const(0), None, self._convert(value, INT32))
        return Lane(self.builder.as_index(value))

    def _scaled(self, a: Lane, k: int, e: Expr, frame: Frame) -> Lane:
        if a.vector is not None:
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
                    return Lane((divide if e.op == "//" else modulo)(a.base, b.base))
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
        if nonnegative.is_const and nonnegative.const >= 0:
            return
        moving = nonnegative.coefficient(self.axis.q)
        rest = nonnegative - sym(self.axis.q).scaled(moving)
        if rest.mentions(self.axis.q) or self.builder.depth_of(rest) >= self.axis.depth:
            raise NotUniformBound
        if nonnegative not in self.constraints:
            self.constraints.append(nonnegative)

    # values ------------------------------------------------------------

    def value(self, e: Expr, frame: Frame) -> Value:
        """`e` as a scalar, or as a vector where it moves along the axis."""
        if isinstance(e, Const):
            return literal(e.value, e.type)
        key = (self._token, id(e), frame.number)
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
                return self._position(frame.env[e.name])
            case ParamRef():
                return Value(e.type, 1, self.sources.params[e.name])
            case InputBound():
                return define("from_index", (sym(bound_symbol(e.input, e.which, e.dim)),), INT32, hint="bound")
            case Access():
                return self._access(e, frame)
            case Select():
                chosen = self._boundary_select(e, frame)
                if chosen is not None:
                    return chosen
                args = (self.value(e.if_true, frame), self.value(e.if_false, frame))
                condition = self.value(e.condition, frame)
                if condition.literal is not None:
                    return args[0] if condition.literal else args[1]
                return self._op("select", (condition, *args), e)
            case Binary(op="**", right=Const(value=n)) if isinstance(n, int) and not isinstance(n, bool):
                return self._power(self.value(e.left, frame), int(n), e)
            case Binary():
                return self._op(e.op, (self.value(e.left, frame), self.value(e.right, frame)), e)
            case Compare():
                left, right = self.value(e.left, frame), self.value(e.right, frame)
                if left.literal is not None and right.literal is not None:
                    return literal(_COMPARE[e.op](left.literal, right.literal), BOOL)
                return self._op(e.op, (left, right), e)
            case Logical():
                return self._op(e.op, (self.value(e.left, frame), self.value(e.right, frame)), e)
            case Unary():
                return self._op("neg" if e.op == "-" else e.op, (self.value(e.operand, frame),), e)
            case Cast():
                value = self.value(e.operand, frame)
                return self._convert(value, e.type, e.saturate)
            case Call(function="mux"):
                return self._mux(e, frame)
            case Call(function="clamp"):
                v, lo, hi = (self.value(a, frame) for a in e.args)
                return self._op("call:max", (self._op("call:min", (v, hi), e), lo), e)
            case Call():
                return self._op(f"call:{e.function}", tuple(self.value(a, frame) for a in e.args), e)
            case Reduce():
                return self._reduce(e, frame)
        raise AssertionError(e)

    def _op(self, op: str, args: tuple[Value, ...], e: Expr) -> Value:
        lanes = max(a.lanes for a in args)
        mask = 0
        if op in ("call:min", "call:max") and lanes > 1 and e.type != BOOL:
            return self._extreme_of(op, args, lanes)
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

    def _extreme_of(self, op: str, args: tuple[Value, ...], lanes: int) -> Value:
        """min and max of vectors: a comparison and a choice, which the compilers know to be one instruction."""
        t, define = args[0].type, self.builder.define
        first = define("<" if op == "call:min" else ">", args, BOOL, lanes, mask_bits=t.bits)
        return define("select", (first, *args), t, lanes)

    def _narrowed(self, value: Value, type_: ScalarType) -> Value:
        """Floats to 8 or 16 bits as vectors: 0 for NaN, clamped to the range, truncated."""
        t, lanes, define = value.type, value.lanes, self.builder.define
        number = define("==", (value, value), BOOL, lanes, mask_bits=t.bits)
        value = define("select", (number, value, literal(0, t)), t, lanes)
        value = self._extreme_of("call:min", (value, literal(type_.max, t)), lanes)
        value = self._extreme_of("call:max", (value, literal(type_.min, t)), lanes)
        return define("truncate", (value,), type_, lanes)

    def _position(self, lane: Lane) -> Value:
        if lane.vector is not None:
            return lane.vector
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
        return self._op("select", (uniform, inside, self.value(e.if_false, frame)), e)

    def _access(self, e: Access, frame: Frame) -> Value:
        lanes = tuple(self.lane(i, frame) for i in e.indices)
        stage = self.sources.inlined.get(e.name)
        if self.streams is not None and e.name in self.streams.dims:
            found = self.streams.read(e.name, e.component, lanes)
            if found is not None:
                return found
        if stage is not None:
            self._check_size(stage)
            inner = self.frame({f"{stage.name}:{d}": lane for d, lane in zip(stage.dims, lanes, strict=True)})
            inner.env.update(zip(stage.dims, lanes, strict=True))
            return self.value(stage.values[e.component], inner)
        buffer = self.sources.buffers[(e.name, e.component)]
        at_least = 0 if buffer.where == "argument" and e.name != self.own else self.base_depth
        return load(self.builder, buffer, lanes, e.type, e.name == self.own, at_least, self.exact)

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
                result = square if result is None else self._op("*", (result, square), e)
            m >>= 1
            if m:
                square = self._op("*", (square, square), e)
        if result is None:
            result = literal(1, e.type)
        return self._op("/", (literal(1, e.type), result), e) if n < 0 and e.type.is_float else result

    def _mux(self, e: Call, frame: Frame) -> Value:
        """Picks by an index; the last choice stands for every index that is none of the others."""
        index = self.value(e.args[0], frame)
        choices = e.args[1:]
        result = self.value(choices[-1], frame)
        for n in range(len(choices) - 2, -1, -1):
            same = Compare("==", e.args[0], Const(n, e.args[0].type))
            hit = self._op("==", (index, literal(n, index.type)), same)
            result = self._op("select", (hit, self.value(choices[n], frame), result), e)
        return result

    # reductions ------------------------------------------------------------

    def _reduce(self, e: Reduce, frame: Frame) -> Value:
        trips = 1
        for r in e.domain:
            trips *= int(r.extent.value) if isinstance(r.extent, Const) and isinstance(r.lo, Const) else 1 << 30
        if (0 < trips <= UNROLLED_TRIPS and self.axis is not None) or 0 < trips <= 9:
            return self._unrolled(e, frame)
        return self._looped(e, frame)

    def _points(self, e: Reduce, frame: Frame) -> list[Frame]:
        frames = [frame]
        for r in e.domain:
            assert isinstance(r.lo, Const)
            assert isinstance(r.extent, Const)
            lo, n = int(r.lo.value), int(r.extent.value)
            frames = [self._with(f, r.name, Lane(const(v))) for f in frames for v in range(lo, lo + n)]
        return frames

    def _with(self, frame: Frame, name: str, lane: Lane) -> Frame:
        return self.frame({**frame.env, name: lane})

    def _unrolled(self, e: Reduce, frame: Frame) -> Value:
        state = self._identity(e)
        for point in self._points(e, frame):
            state = self._step(e, state, point)
        return state[e.component if e.op in ("argmin", "argmax") else 0]

    def _identity(self, e: Reduce) -> list[Value]:
        t = e.body.type
        match e.op:
            case "sum":
                return [literal(0, t)]
            case "product":
                return [literal(1, t)]
            case "any":
                return [literal(False, BOOL)]
            case "all":
                return [literal(True, BOOL)]
        worst = _worst(t, "min" if e.op in ("min", "argmin") else "max")
        if e.op in ("min", "max"):
            return [worst]
        start = Frame({}, -1)
        return [self._convert_lo(r, start) for r in e.domain] + [worst]

    def _convert_lo(self, r: RVar, frame: Frame) -> Value:
        return self._position(self.lane(r.lo, frame))

    def _step(self, e: Reduce, state: list[Value], point: Frame) -> list[Value]:
        body = self.value(e.body, point)
        where = None if e.where is None else self.value(e.where, point)
        if where is not None and where.literal is not None:
            if not where.literal:
                return state
            where = None
        if e.op in ("argmin", "argmax"):
            better = self._bool("<" if e.op == "argmin" else ">", (body, state[-1]))
            if where is not None:
                better = self._bool("and", (better, where))
            fresh = [self._position(point.env[r.name]) for r in e.domain] + [body]
            return [self._pick(better, new, old) for new, old in zip(fresh, state, strict=True)]
        op = {"sum": "+", "product": "*", "any": "or", "all": "and"}.get(e.op, f"call:{e.op}")
        if where is not None:
            body = self._pick(where, body, self._identity(e)[0])
        first = state[0]
        if first == self._identity(e)[0] and e.op in ("sum", "product", "any", "all"):
            return [body]
        lanes = max(body.lanes, first.lanes)
        mask = max(body.mask_bits, first.mask_bits)
        if e.op in ("min", "max") and lanes > 1 and e.body.type != BOOL:
            return [self._extreme_of(op, (first, body), lanes)]
        return [self.builder.define(op, (first, body), e.body.type, lanes, mask_bits=mask)]

    def _bool(self, op: str, args: tuple[Value, ...]) -> Value:
        return self._op(op, args, Logical("and", Const(True, BOOL), Const(True, BOOL)))

    def _pick(self, condition: Value, a: Value, b: Value) -> Value:
        if condition.literal is not None:
            return a if condition.literal else b
        lanes = max(condition.lanes, a.lanes, b.lanes)
        mask = max(a.mask_bits, b.mask_bits, condition.mask_bits) if a.type == BOOL and lanes > 1 else 0
        return self.builder.define("select", (condition, a, b), a.type, lanes, mask_bits=mask)

    def _looped(self, e: Reduce, frame: Frame) -> Value:
        """A reduction as a loop nest around accumulators; the first variable is the outermost loop."""
        b = self.builder
        lanes = self._reduction_lanes(e, frame)
        cells: list[Value] = []
        for start in self._identity_at(e, frame):
            bits = 32 if start.type == BOOL and lanes > 1 else 0
            cell = Value(start.type, lanes, b.fresh("sum" if e.op == "sum" else e.op), None, bits)
            b.depths[cell.name] = b.depth
            b.emit(Accumulator(cell, start))
            cells.append(cell)

        def nest(n: int, inner: Frame) -> None:
            if n == len(e.domain):
                for cell in cells:  # what is made of an accumulator belongs into the innermost loop
                    b.depths[cell.name] = b.depth
                after = self._step(e, list(cells), inner)
                for cell, new in zip(cells, after, strict=True):
                    if new != cell:
                        b.emit(Assign(cell, new))
                return
            r = e.domain[n]
            lo, extent = self.lane(r.lo, frame).base, self.lane(r.extent, frame).base
            with b.scope() as body:
                var = b.fresh(r.name)
                nest(n + 1, self._with(inner, r.name, Lane(b.declare(var))))
            b.emit(Loop(var, lo, lo + extent - 1, const(1), tuple(body)))

        depth = b.depth
        nest(0, frame)
        b.depths.update((cell.name, depth) for cell in cells)
        picked = cells[e.component if e.op in ("argmin", "argmax") else 0]
        # what the loop leaves behind must not be mistaken for the accumulator inside it
        return b.define("copy", (picked,), picked.type, picked.lanes, mask_bits=picked.mask_bits, pinned=True)

    def _identity_at(self, e: Reduce, frame: Frame) -> list[Value]:
        if e.op not in ("argmin", "argmax"):
            return self._identity(e)
        t = e.body.type
        worst = _worst(t, "min" if e.op == "argmin" else "max")
        return [self._position(self.lane(r.lo, frame)) for r in e.domain] + [worst]

    def _reduction_lanes(self, e: Reduce, frame: Frame) -> int:
        """Lanes of the result: found by evaluating one term in a scope that is thrown away."""
        if self.axis is None:
            return 1
        mark = self.builder.mark()
        noted = list(self.constraints)
        with self.builder.scope():
            point = frame
            for r in e.domain:
                name = self.builder.fresh(r.name)
                point = self._with(point, r.name, Lane(self.builder.declare(name)))
            values = [self.value(e.body, point)] + ([] if e.where is None else [self.value(e.where, point)])
        self.builder.rollback(mark)
        self.constraints = noted
        return max(v.lanes for v in values)


_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": lt, "<=": le, "==": eq, "!=": ne, ">=": ge, ">": gt,
}  # fmt: skip


def _worst(t: ScalarType, kind: str) -> Value:
    if t.is_float:
        return literal(float("inf") if kind == "min" else float("-inf"), t)
    return literal(t.max if kind == "min" else t.min, t)


def _add_patterns(a: tuple[int, ...] | None, b: tuple[int, ...] | None, sign: int) -> tuple[int, ...] | None:
    if b is None:
        return a
    if a is None:
        return tuple(sign * p for p in b)
    return tuple(x + sign * y for x, y in zip(a, b, strict=True))

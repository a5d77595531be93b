"""Lowering of expressions to values: one point (scalar) or one vector of neighbours along a dim, inlined stages
included."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from operator import eq, ge, gt, le, lt, ne
from typing import Protocol

from tilesmith.scheduler.analysis.bounds_inference import bound_symbol
from tilesmith.scheduler.errors import IllegalSchedule
from tilesmith.scheduler.features.groups.inlined_places import INLINED_READS
from tilesmith.scheduler.ir.index import Index, const, sym
from tilesmith.scheduler.ir.loop import ops
from tilesmith.scheduler.ir.loop.builder import Builder, literal
from tilesmith.scheduler.ir.loop.values import Buffer, Lane, Value
from tilesmith.scheduler.ir.pipeline import integer_functions
from tilesmith.scheduler.ir.pipeline.expressions import (
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
    children,
    walk,
)
from tilesmith.scheduler.ir.pipeline.pipeline import Stage
from tilesmith.scheduler.ir.pipeline.types import BOOL, INT32, ScalarType
from tilesmith.scheduler.ir.pipeline.value_bounds import interval
from tilesmith.scheduler.ir.pipeline.value_ends import is_whole_part
from tilesmith.scheduler.lowering import neighbour_sums
from tilesmith.scheduler.lowering.dot_products import sum_of_products
from tilesmith.scheduler.lowering.evaluation import Evaluation, Sources
from tilesmith.scheduler.lowering.float_ends import opaque, rounded_once
from tilesmith.scheduler.lowering.index_vectorization import Axis, Frame, Places
from tilesmith.scheduler.lowering.lane_divergence import chosen, classes_of, is_one_vector, picked, spread, truths
from tilesmith.scheduler.lowering.memory import load, load_pair
from tilesmith.scheduler.lowering.neighbour_sums import in_groups, sum_of_neighbours
from tilesmith.scheduler.lowering.prefetches import ask_ahead
from tilesmith.scheduler.lowering.reductions import reduced
from tilesmith.scheduler.lowering.transposed_reads import TransposedReads


class Streams(Protocol):
    """Stages that are at hand in registers; `dims` has the dim of each that moves along the row, `depth` is that of the
    loop over its vectors."""

    depth: int

    @property
    def dims(self) -> Mapping[str, int]: ...

    def read(self, name: str, component: int, index: tuple[Lane, ...]) -> Value | None:
        """The value of stage `name` at `index`, or None where registers do not have it."""

    def loads(self, places: Places, buffer: Buffer, index: tuple[Lane, ...]) -> None:
        """Notes a load from memory; called for every one."""


class Evaluator(Evaluation):
    """Evaluates definitions of one stage in the open scope of a builder.

    With an `axis`, values that move along it are vectors; clamps and boundaries of indices along it are
    dropped and noted in `constraints` instead (each must be >= 0 where the vector code runs).
    `own` is a stage whose memory is being updated: its loads are neither shared nor moved. `streams` are stages in
    registers. With `exact` clamps stay as they are, lane by lane; with `safe` loads stay inside their buffers
    whatever the lane, but those of stages that are `roomy`: their memory has all lanes that are neighbours. `moved` is
    how far the vector is moved to the left, where it goes past the caches. `across` has what is read across rows.
    `written` is what has just been written of `own`, by component and place, and is there still.
    """

    def __init__(
        self,
        builder: Builder,
        sources: Sources,
        axis: Axis | None,
        own: str = "",
        streams: Streams | None = None,
        exact: bool = False,
        safe: bool = False,
        roomy: frozenset[str] = frozenset(),
        moved: Index | None = None,
        across: TransposedReads | None = None,
    ) -> None:
        super().__init__(builder, sources, axis, exact, safe)
        self.roomy = roomy
        self.own = own
        self.streams = streams
        self.shares_row = streams is not None
        self.base_depth = builder.depth if axis is None else axis.depth - 1
        self.moved = moved
        self.across = across
        self.written: dict[tuple[int, tuple[Lane, ...]], Value] = {}
        self._inlined = 0

    # values ------------------------------------------------------------

    def value(self, e: Expr, frame: Frame) -> Value:
        """`e` as a scalar, or as a vector where it moves along the axis: found once for all terms of a reduction where
        the variables in it are the same, unless what it reads may be written meanwhile."""
        if isinstance(e, Const):
            return literal(e.value, e.type)
        b = self.builder
        shared = frame.extended and not self.own
        here = tuple(map(frame.numbers.get, self._read_variables(e))) if shared else frame.number
        key = (id(e), here, self.rounding)
        found = self.known.get(key)
        if found is not None and b.is_open(found[1], found[2]):
            return found[0]
        result = self._value(e, frame)
        depth = b.depth if self.own else b.depths.get(result.name, 0)
        self.known[key] = (result, b.scopes[depth], depth, e)
        return result

    def _read_variables(self, e: Expr) -> tuple[str, ...]:
        """The names of the variables in `e`, those of its reductions included."""
        known = self.builder.read_variables
        found = known.get(id(e))
        if found is None:
            names = [e.name] if isinstance(e, Var) else [n for part in children(e) for n in self._read_variables(part)]
            found = known[id(e)] = e, tuple(dict.fromkeys(names))
        return found[1]

    def _rounded(self, e: Expr, frame: Frame) -> Value:
        """The value of a place between points, every operation rounded as where it is an index: a weight that is the
        place less its floor has to be of the point that is read."""
        outside, self.rounding = self.rounding, True
        try:
            return self.value(e, frame)
        finally:
            self.rounding = outside

    def _value(self, e: Expr, frame: Frame) -> Value:
        define = self.builder.define
        match e:
            case Var():
                return self.position(frame.env[e.name])
            case ParamRef():
                return Value(e.type, 1, self.sources.params[e.name])
            case InputBound():
                return define(ops.FromIndex(sym(bound_symbol(e.input, e.which, e.dim))), INT32, hint="bound")
            case Access():
                return self._access(e, frame)
            case Select():
                return self._select(e, frame)
            case Binary():
                return self._binary(e, frame)
            case Compare():
                left, right = self.value(e.left, frame), self.value(e.right, frame)
                if left.literal is not None and right.literal is not None:
                    return literal(_COMPARE[e.op](left.literal, right.literal), BOOL)
                return self.op(ops.Compare(e.op, left, right), e)
            case Logical():
                return self.op(ops.Logical(e.op, self.value(e.left, frame), self.value(e.right, frame)), e)
            case Unary():
                return self.op(ops.Unary(e.op, self.value(e.operand, frame)), e)
            case Cast(operand=Cast()) if is_whole_part(e):
                return self.convert(self._rounded(e.operand, frame), e.type, e.saturate)
            case Cast():
                value, ends = self.value(e.operand, frame), interval(e.operand, known=self.intervals)
                return self.convert(value, e.type, e.saturate, ends)
            case Call():
                return self._call(e, frame)
            case Reduce():
                groups = in_groups(self, e, frame)
                if groups is not None:
                    return self.convert(self.value(*groups), e.type)
                steady = self._steady(e, frame) if self.sources.steady and e in self.sources.steady else None
                return reduced(self, e, frame) if steady is None else steady
        raise AssertionError(e)

    def _select(self, e: Select, frame: Frame) -> Value:
        inside = self._boundary_select(e, frame)
        if inside is not None:
            return inside
        known = truths(self, e.condition, frame) if self.axis or self.builder.remainders else None
        if known is not None:
            return chosen(self, known, (e.if_false, e.if_true), frame)
        a, b = self.value(e.if_true, frame), self.value(e.if_false, frame)
        condition = self.value(e.condition, frame)
        if condition.literal is not None:
            return a if condition.literal else b
        return self.op(ops.Select(condition, a, b), e)

    def _binary(self, e: Binary, frame: Frame) -> Value:
        match e:
            case Binary(op="**", right=Const(value=n)) if isinstance(n, int) and not isinstance(n, bool):
                return self._power(self.value(e.left, frame), int(n), e)
            case Binary(op="<<" | ">>"):
                return self.op(ops.Binary(e.op, self.value(e.left, frame), self._count(e, frame)), e)
            case Binary(op="%") if (remainders := self._remainders(e, frame)) is not None:
                return self.position(remainders)
            case Binary(op="+") if (total := sum_of_products(self, e, frame)) is not None:
                return total
        if self.rounding and e.type.is_float:
            return self._as_written(e.op, self.value(e.left, frame), self.value(e.right, frame), e)
        if is_whole_part(e.right):  # first, as a fraction is what is left of the place of which it is the floor
            self.value(e.right, frame)
        made = self.op(ops.Binary(e.op, self.value(e.left, frame), self.value(e.right, frame)), e)
        return rounded_once(self.builder, made)

    def _as_written(self, op: ops.BinaryOperator, a: Value, b: Value, e: Binary) -> Value:
        """An operation of floats of the type of `e`, rounded as it is written; quotients that are rounded down, and
        what these leave, by the operations that define them."""
        if op in ("//", "%"):
            whole = self.op(ops.Call("floor", (self._as_written("/", a, b, e),)), e)
            return whole if op == "//" else self._as_written("-", a, self._as_written("*", whole, b, e), e)
        divisor = opaque(self.builder, b) if op == "/" else b
        return opaque(self.builder, self.op(ops.Binary(op, a, divisor), e))

    def _call(self, e: Call, frame: Frame) -> Value:
        if is_whole_part(e):
            return self.op(ops.Call(e.function, tuple(self._rounded(a, frame) for a in e.args)), e)
        match e:
            case Call(function=neighbour_sums.SUMMED, args=(term, Const(value=size))):
                return sum_of_neighbours(self, term, int(size), e.type, frame)
            case Call(function="mux"):
                return self._mux(e, frame)
            case Call(function="clamp"):
                v, lo, hi = (self.value(a, frame) for a in e.args)
                return self.op(ops.Call("max", (self.op(ops.Call("min", (v, hi)), e), lo)), e)
        written = integer_functions.written_out(e)
        if written is not None:
            return self.value(written, frame)
        return self.op(ops.Call(e.function, tuple(self.value(a, frame) for a in e.args)), e)

    def _count(self, e: Binary, frame: Frame) -> Value:
        """The count of a shift. One that is proved to be less than the width has no sign, and as many bits as what is
        shifted: vectors are shifted by that at once."""
        count, ends = self.value(e.right, frame), interval(e.right, known=self.intervals).numeric
        if count.literal is not None or ends is None or ends[0] < 0 or ends[1] >= e.type.bits:
            return count
        return self.convert(count, ScalarType("uint", e.type.bits))

    def _remainders(self, e: Binary, frame: Frame) -> Lane | None:
        """The remainder of a coordinate, where vectors begin at multiples of the divisor: lanes are constants."""
        if self.axis is None or e.type != INT32 or not isinstance(e.right, Const) or e.right.value <= 0:
            return None
        if not all(isinstance(n, Var | Const) or (isinstance(n, Binary) and n.op in "+-*") for n in walk(e.left)):
            return None
        at, by = self.lane(e.left, frame), int(e.right.value)
        if at.vector is not None or at.pattern is None or any(k % by for _, k in at.base.terms):
            return None
        return Lane(const(0), tuple((at.base.const + p) % by for p in at.pattern))

    def _steady(self, e: Reduce, frame: Frame) -> Value | None:
        """A reduction that is the same in all iterations of the innermost loops of an update, worked out before these;
        None where it is in no such loop."""
        b, loops = self.builder, self.sources.steady[e]
        used = {name: at for name, at in frame.env.items() if name not in loops}
        key = ("steady", self.token, e, *used.items())
        found = b.recall(key)
        depth = max(b.guard, *(b.depth_of(at) for at in used.values()))
        if found is None:
            if depth >= b.depth or not all(at.vector is None for at in used.values()):
                return None
            with b.outside(depth):
                found = b.remember(depth, key, lambda: reduced(self, e, frame))
        assert isinstance(found, Value)
        return found

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
            follows = self.follows_axis(left) or self.follows_axis(right)
            if left.pattern is None and right.pattern is None and not follows:
                above = self.least((left.base - right.base).scaled(1 if c.op == ">=" else -1))
                if above.is_const and above.const >= 0:
                    continue
                term = self.value(c, frame)
                if term.lanes > 1:  # of a quotient that all lanes agree in
                    term = self.builder.define(ops.Compare(c.op, self.position(left), self.position(right)), BOOL)
                uniform = term if uniform is None else self.builder.define(ops.Logical("and", uniform, term), BOOL)
                continue
            a, b = (left, right) if c.op == ">=" else (right, left)
            size = len(left.pattern or right.pattern or (0,))
            gap = [x - y for x, y in zip(a.pattern or (0,) * size, b.pattern or (0,) * size, strict=True)]
            self.require(a.base - b.base + min(gap))
        inside = self.value(e.if_true, frame)
        if uniform is None:
            return inside
        return self.op(ops.Select(uniform, inside, self.value(e.if_false, frame)), e)

    def _access(self, e: Access, frame: Frame) -> Value:
        if e.name in self.sources.inlined:  # a part of the expression, as it is of an index
            return self._read(e, frame)
        outside, self.rounding = self.rounding, False
        try:
            return self._read(e, frame)
        finally:
            self.rounding = outside

    def _read(self, e: Access, frame: Frame) -> Value:
        lanes = tuple([self.lane(i, frame) for i in e.indices])
        if all(lane.vector is None for lane in lanes):  # what data moves is gathered anyway
            lanes = tuple([lane.settled for lane in lanes])
        stage = self.sources.inlined.get(e.name)
        if self.streams is not None and e.name in self.streams.dims:
            found = self.streams.read(e.name, e.component, lanes)
            if found is not None:
                return found
        if stage is not None:
            self._check_size(stage)
            # of what only reads another, all lanes are one load
            whole = isinstance(stage.values[e.component], Access) or (self.axis is not None and self.axis.flat)
            value = stage.values[e.component]
            classes = None if whole or e.type == BOOL else classes_of(lanes)
            if classes is not None and not is_one_vector(
                value, dict(zip(stage.dims, lanes, strict=True)), self.sources
            ):
                values = [self.value(value, self._frame_of(stage, c)) for c in classes]
                return spread(self, values, max(len(lane.pattern or ()) for lane in lanes))
            return self.value(value, self._frame_of(stage, lanes))
        if e.name == self.own and (e.component, lanes) in self.written:
            return self.written[e.component, lanes]
        buffer = self.sources.buffers[(e.name, e.component)]
        if self.streams is not None:
            self.streams.loads(self, buffer, lanes)
        if self.axis is not None and not self.exact and e.name != self.own:
            ask_ahead(self.builder, self.sources.ahead, buffer, lanes, self.axis.depth, self.safe)
        at_least = 0 if buffer.where == "argument" and e.name != self.own else self.base_depth
        at_least = max(at_least, self.builder.guard)
        safe = self.safe
        if safe and lanes and all(lane.uniform or d == buffer.unit for d, lane in enumerate(lanes)):
            safe = e.name not in self.roomy or lanes[buffer.unit].pattern is None
            if lanes[buffer.unit].clamped is not None:
                safe = False
            elif lanes[buffer.unit].run and e.type != BOOL and buffer.ring[buffer.unit] is None:
                lanes, safe = self._clipped(buffer, lanes), False
        if self.across is not None and not safe and e.name != self.own:
            found = self.across.read(self.builder, buffer, lanes, at_least)
            if found is not None:
                return found
        return load(self.builder, buffer, lanes, e.type, e.name == self.own, at_least, safe)

    def pair(self, first: Expr | None, second: Expr | None, frame: Frame) -> Value | None:
        """See Evaluation."""
        if not (isinstance(first, Access) and isinstance(second, Access)) or first.name == self.own:
            return None
        buffer = self.sources.buffers.get((first.name, first.component))
        in_registers = self.streams is not None and first.name in self.streams.dims
        if (first.name, first.component) != (second.name, second.component) or buffer is None or in_registers:
            return None
        a, b = (tuple([self.lane(i, frame).settled for i in e.indices]) for e in (first, second))
        at_least = 0 if buffer.where == "argument" else self.base_depth
        return load_pair(self.builder, buffer, a, b, max(at_least, self.builder.guard))

    def _clipped(self, buffer: Buffer, lanes: tuple[Lane, ...]) -> tuple[Lane, ...]:
        """Clamped neighbours, those that are nowhere at the end of the buffer that is next."""
        d = buffer.unit
        at, first = lanes[d].vector, buffer.origin[d]
        assert at is not None
        ends = (("min", first + buffer.extent[d] - 1), ("max", first))
        for op, end in ends:
            at = self.extreme_of(op, (self.convert(at, INT32), self.position(Lane(end))), at.lanes)
        return (*lanes[:d], replace(lanes[d], vector=at), *lanes[d + 1 :])

    def _frame_of(self, stage: Stage, lanes: tuple[Lane, ...]) -> Frame:
        return self.frame_of(stage.name, stage.dims, lanes)

    def is_at_hand(self, e: Expr, frame: Frame) -> bool:
        """See Evaluation: those whose rows change inside of the loop over vectors are not."""
        if self.streams is None:
            return False
        streams, depth_of = self.streams, self.builder.depth_of
        moving = frozenset(name for name, lane in frame.env.items() if depth_of(lane) >= streams.depth)
        pending, seen = [(e, moving)], set()
        while pending:
            part, moving = pending.pop()
            for n in [n for n in walk(part) if isinstance(n, Access)]:
                moved = [any(isinstance(v, Var) and v.name in moving for v in walk(i)) for i in n.indices]
                along, stage = streams.dims.get(n.name), self.sources.inlined.get(n.name)
                if along is not None and not any(m for d, m in enumerate(moved) if d != along):
                    return True
                if stage is not None:
                    inside = frozenset(d for d, m in zip(stage.dims, moved, strict=True) if m)
                    if (n.name, inside) not in seen:
                        seen.add((n.name, inside))
                        pending += [(v, inside) for v in stage.values]
        return False

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
                result = square if result is None else self.op(ops.Binary("*", result, square), e)
            m >>= 1
            if m:
                square = self.op(ops.Binary("*", square, square), e)
        if result is None:
            result = literal(1, e.type)
        return self.op(ops.Binary("/", literal(1, e.type), result), e) if n < 0 and e.type.is_float else result

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
            hit = self.op(ops.Compare("==", index, literal(n, index.type)), same)
            result = self.op(ops.Select(hit, self.value(choices[n], frame), result), e)
        return result


_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": lt, "<=": le, "==": eq, "!=": ne, ">=": ge, ">": gt,
}  # fmt: skip

"""Verifier of the loop IR: definitions before uses, types and lanes, ranks of buffers, and no race in a parallel loop.

It asks of a program what holds whatever the sizes are; that no access leaves its buffer is what the interpreter
(`tilesmith.scheduler.ir.loop.interpreter`) checks as it runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias, assert_never

from tilesmith.scheduler.ir.loop import ops
from tilesmith.scheduler.ir.loop.printer import buffers_of, print_statement
from tilesmith.scheduler.ir.loop.program import (
    Accumulator,
    Allocate,
    Assign,
    AssignIndex,
    Bind,
    Body,
    CopyOut,
    Define,
    Fence,
    Free,
    Function,
    If,
    Invoke,
    Loop,
    MutableIndex,
    Ordered,
    Program,
    RowPointer,
    Scatter,
    Scratch,
    Statement,
    Store,
    Stores,
    StreamAligned,
    StreamLine,
)
from tilesmith.scheduler.ir.loop.traversal import (
    assigned,
    defined,
    defined_inside,
    names_of,
    operands,
    operands_of,
    regions,
    used,
    values_of,
    walk,
    with_regions,
)
from tilesmith.scheduler.ir.loop.values import Buffer, LaneOffset, Pointer, Value
from tilesmith.scheduler.ir.pipeline.types import BOOL, INT16, INT32, INT64, UINT8


class VerificationError(AssertionError):
    """A program that breaks a rule of the loop IR: says the loops around, the statement, and the rule."""


def verify(program: Program) -> None:
    """Raises VerificationError unless the program keeps every rule."""
    scope = _Scope(dict.fromkeys(_given(program)))
    for a in program.params:
        scope.names[a.c_name] = Value(a.type, 1, a.c_name)
    for block in (program.derivation, program.bounds):
        _block(block, scope)
    for name, box in program.required:
        for x in (x for ends in box for x in ends):
            _known(x.symbols(), scope, f"required {name}")
    for b in program.buffers:
        scope.names[b.pointer] = b
    for b in buffers_of(program):
        _require(_is_regular(b), f"@{b.pointer}", "a buffer has an origin, a stride, a ring and an extent a dim")
    _block(program.body, scope)


def _given(p: Program) -> Iterator[str]:
    """The symbols that a call gives: mins, extents, origins and strides of images, integer params."""
    for a in p.arguments:
        for d in a.dims:
            yield from (f"{a.name}.{which}.{d}" for which in ("min", "extent"))
            yield from (f"{a.c_name}.{which}.{d}" for which in ("origin", "extent", "stride"))
    yield from (f"param.{p.name}" for p in (*p.params, *p.derived))


def _is_regular(b: Buffer) -> bool:
    n = len(b.dims)
    rings = all(r is None or (r > 0 and r & (r - 1) == 0) for r in b.ring)
    return rings and all(len(x) == n for x in (b.origin, b.stride, b.ring, b.extent)) and b.unit < max(n, 1)


# scopes ------------------------------------------------------------


Meaning = Value | Buffer | None
"""The meaning of a name: a value, a pointer into a buffer, or (None) an integer."""


@dataclass(slots=True)
class _Scope:
    """The names that are known, those that may be given another value, those that differ from iteration to iteration of
    the parallel loop that is open, and those from outside of it."""

    names: dict[str, Meaning]
    functions: dict[str, Function] = field(default_factory=dict)
    mutable: set[str] = field(default_factory=set)
    varying: set[str] = field(default_factory=set)
    shared: frozenset[str] = frozenset()
    parallel: bool = False
    path: tuple[Statement, ...] = ()

    def inside(self, s: Statement) -> _Scope:
        """The scope of a block of `s`."""
        return replace(
            self,
            names=dict(self.names),
            mutable=set(self.mutable),
            varying=set(self.varying),
            path=(*self.path, s),
        )


@dataclass(frozen=True, slots=True)
class _Location:
    """The place of a statement: those around it, and itself. Its text takes longer than all that is required of it, and
    is made where that does not hold."""

    path: tuple[Statement, ...]

    def __str__(self) -> str:
        return " / ".join(map(_first_line, self.path))


Place: TypeAlias = _Location | str


def _first_line(s: Statement) -> str:
    """The text of a statement without its blocks."""
    return print_statement(with_regions(s, lambda _: ())).split("\n")[0].removesuffix(" {")


def _require(holds: bool, place: Place, rule: str) -> None:
    if not holds:
        raise VerificationError(f"{place}: {rule}")


def _known(names: Iterable[str], scope: _Scope, place: Place) -> None:
    for name in names:
        _require(name in scope.names, place, f"'{name}' is not defined here")


# statements ------------------------------------------------------------


def _block(body: Body, scope: _Scope) -> None:
    for s in body:
        place, names = _Location((*scope.path, s)), used(s)
        _known(names, scope, place)
        _statement(s, scope, place)
        varies = not scope.varying.isdisjoint(names)
        for name in defined(s):
            _require(name not in scope.names, place, f"'{name}' is defined already")
            scope.names[name] = _meaning(s, name)
            if varies:
                scope.varying.add(name)
        if (target := assigned(s)) is not None and varies:
            scope.varying.add(target)
        if isinstance(s, Accumulator | MutableIndex):
            scope.mutable.update(defined(s))
        for region in regions(s):
            _block(region, _opened(s, scope, place))


def _meaning(s: Statement, name: str) -> Meaning:
    match s:
        case Define() | Accumulator():
            return s.result
        case RowPointer():
            return s.buffer
        case Bind():
            return next(m.buffer for m in s.scratch.buffers if m.buffer.pointer == name)
        case Allocate():
            return s.memory.buffer if s.memory.buffer.pointer == name else None
        case _:
            return None


def _opened(s: Statement, scope: _Scope, place: Place) -> _Scope:
    """The scope of a block of `s`."""
    if isinstance(s, Function):
        _require(not scope.path, place, "a function stands in a block")
        _require(s.name not in scope.functions, place, f"'{s.name}' is defined already")
        scope.functions[s.name] = s
    inside = scope.inside(s)
    if not defined_inside(s):
        return inside
    parallel = isinstance(s, Loop) and s.parallel
    if isinstance(s, Loop) and parallel:
        _require(not scope.parallel, place, "a parallel loop stands in another")
        ordered = [x for x in walk(s.body) if isinstance(x, Ordered)]
        _require(not ordered or [*s.body[-1:]] == ordered, place, "what runs in order is not the end of the body")
        inside.parallel, inside.shared, inside.varying = True, frozenset(scope.names), set()
        if any(isinstance(x, StreamAligned | StreamLine) for x in walk(s.body)):
            _require(isinstance(s.body[-1], Fence), place, "the iterations stream and end without a fence")
    buffers: dict[str, Buffer] = {b.pointer: b for b in s.buffers} if isinstance(s, Function) else {}
    # an index that the body moves differs in the iterations, too, from its first use on
    moved = {t for x in walk((s,)) if (t := assigned(x)) is not None and not inside.varying.isdisjoint(used(x))}
    inside.varying |= moved
    for name in defined_inside(s):
        _require(name not in scope.names, place, f"'{name}' is defined already")
        inside.names[name] = buffers.get(name)
        if parallel or not scope.varying.isdisjoint(used(s)):
            inside.varying.add(name)
    return inside


def _statement(s: Statement, scope: _Scope, place: Place) -> None:
    match s:
        case Define():
            _operation(s.result, s.op, scope, place)
            if not isinstance(s.op, ops.ToIndex):
                _require(_is_regular_value(s.result), place, "lanes are a power of two, and only masks have mask bits")
        case Accumulator():
            _typed((s.start,), s.result, place)
        case Assign():
            _assignable(s.target.name, scope, place)
            _require(scope.names[s.target.name] == s.target, place, "the accumulator is of another type")
            _typed((s.value,), s.target, place)
        case AssignIndex():
            _assignable(s.name, scope, place)
        case RowPointer():
            _require(scope.names[s.buffer.pointer] == s.buffer, place, "the pointer is that of another buffer")
        case Loop():
            _require(s.step.is_const and s.step.const > 0, place, "a step is a positive number")
        case If():
            if s.condition is not None:
                _require(s.condition.type == BOOL and s.condition.lanes == 1, place, "a condition is one bool")
        case Invoke():
            _invoked(s, scope, place)
        case Scratch() | Allocate() | Free() | CopyOut():
            _require(not scope.parallel, place, "memory of the call is a matter of one thread")
        case _:
            if isinstance(s, Stores):
                _stored(s, scope, place)
    for x in _values_in(s):
        known = scope.names.get(x.name)
        same = x.literal is not None or known == x
        _require(same, place, f"'%{x.name}' is of another type here")


def _values_in(s: Statement) -> Iterator[Value]:
    if isinstance(s, Define):
        yield from values_of(s.op)
    elif isinstance(s, Stores):
        yield s.value
    elif isinstance(s, Accumulator):
        yield s.start
    elif isinstance(s, Assign):
        yield s.value


def _invoked(s: Invoke, scope: _Scope, place: Place) -> None:
    _require(s.function in scope.functions, place, f"'{s.function}' is no function that is known here")
    _require(not scope.path, place, "a function is invoked in a block")
    f = scope.functions[s.function]
    same = len(s.symbols) == len(f.symbols) and len(s.buffers) == len(f.buffers) and len(s.scratch) == len(f.scratch)
    _require(same, place, f"'{s.function}' is given something for each of its names")
    pairs = [*zip(f.buffers, s.buffers, strict=True)]
    for own, given in zip(f.scratch, s.scratch, strict=True):
        _require(len(own.buffers) == len(given.buffers), place, "a layout has as many buffers as the one it stands for")
        pairs += [(a.buffer, b.buffer) for a, b in zip(own.buffers, given.buffers, strict=True)]
    _require(all(_alike(a, b) for a, b in pairs), place, "a buffer is of another kind than the one it stands for")
    _require(len({b.pointer for b in s.buffers}) == len(s.buffers), place, "two buffers of a function are one")


def _alike(a: Buffer, b: Buffer) -> bool:
    """True for buffers of elements of one type in the same dims, which one kind of memory holds."""
    return (a.type, a.dims, a.unit, a.where, a.ring) == (b.type, b.dims, b.unit, b.where, b.ring)


def _is_regular_value(v: Value) -> bool:
    power = v.lanes > 0 and v.lanes & (v.lanes - 1) == 0
    return power and bool(v.mask_bits) == (v.type == BOOL and v.lanes > 1)


def _assignable(name: str, scope: _Scope, place: Place) -> None:
    _require(name in scope.mutable, place, f"'{name}' is not one of what changes")
    _require(name not in scope.shared, place, f"race: '{name}' is one for all iterations of the parallel loop")


def _stored(s: Stores, scope: _Scope, place: Place) -> None:
    _require(scope.names[s.row] == s.buffer, place, "the pointer is that of another buffer")
    _require(s.value.type == s.buffer.type, place, f"elements of @{s.buffer.pointer} are {s.buffer.type}")
    match s:
        case Store():
            pass
        case Scatter():
            _offsets(s.offsets, s.value.lanes, place)
        case StreamAligned():
            same = s.before.type == s.value.type and s.before.lanes == s.value.lanes == s.picks.lanes
            _require(same and s.value.lanes > 1, place, "vectors that are joined have the same lanes")
        case StreamLine():
            _require(s.value.lanes > 1, place, "what streams is a vector")
        case _:
            assert_never(s)
    if scope.parallel and s.row in scope.shared:
        at = s.offsets if isinstance(s, Scatter) else s.index
        varies = any(not scope.varying.isdisjoint(names_of(x)) for x in operands(at))
        _require(varies, place, "race: every iteration of the parallel loop stores to this place")
    elif scope.parallel and s.buffer.where != "thread":
        _require(s.row in scope.varying or _varies(s, scope), place, "race: every iteration of the loop stores here")


def _varies(s: Stores, scope: _Scope) -> bool:
    return any(
        not scope.varying.isdisjoint(names_of(x)) for x in operands(s.offsets if isinstance(s, Scatter) else s.index)
    )


# operations ------------------------------------------------------------


def _typed(args: Iterable[Value], r: Value, place: Place) -> None:
    """Operands of the result's type, of its lanes or scalars."""
    for a in args:
        _require(a.type == r.type, place, f"an operand is {a.type}, the result {r.type}")
        _require(a.lanes in (1, r.lanes), place, f"an operand has {a.lanes} lanes, the result {r.lanes}")


def _offsets(offsets: Iterable[LaneOffset], lanes: int, place: Place) -> None:
    for g in offsets:
        for n in (len(g.lane.pattern) if g.lane.pattern else None, g.lane.vector.lanes if g.lane.vector else None):
            _require(n is None or n == lanes, place, f"an index has {n} lanes, the vector {lanes}")


def _operation(r: Value, op: ops.Operation, scope: _Scope, place: Place) -> None:
    lanes = r.lanes
    for x in operands_of(op):
        if isinstance(x, Pointer):
            buffer = scope.names[x]
            _require(isinstance(buffer, Buffer), place, f"'{x}' is no pointer")
    match op:
        case ops.Unary():
            _typed((op.a,), r, place)
            _require((op.op == "not") == (r.type == BOOL), place, f"'{op.op}' of {r.type}")
        case ops.Binary(op="<<" | ">>"):
            _typed((op.a,), r, place)
            _require(op.b.type.is_integer and op.b.lanes in (1, lanes), place, "a shift counts in integers")
        case ops.Binary():
            _typed((op.a, op.b), r, place)
        case ops.Compare():
            _require(op.a.type == op.b.type and r.type == BOOL, place, "a comparison is of one type, and gives a bool")
            _require({op.a.lanes, op.b.lanes} <= {1, lanes}, place, "operands have the result's lanes")
        case ops.Logical():
            _typed((op.a, op.b), r, place)
            _require(r.type == BOOL, place, "operands are bools")
        case ops.Select():
            _typed((op.a, op.b), r, place)
            _require(op.condition.type == BOOL and op.condition.lanes in (1, lanes), place, "a condition is a bool")
        case ops.FusedProduct():
            _typed((op.a, op.b, op.c), r, place)
            _require(r.type.is_float, place, "a product is fused with a sum of floats")
        case ops.Call():
            _require(all(a.lanes in (1, lanes) for a in op.args), place, "operands have the result's lanes")
        case ops.Cast():
            _require(op.a.lanes == lanes, place, "the operand has the result's lanes")
        case ops.Truncate():
            shorter = op.a.type.is_float and r.type.is_integer and r.type.bits <= op.a.type.bits
            _require(shorter and op.a.lanes == lanes, place, "floats become integers of no more bits")
        case ops.Narrow():
            half = op.a.lane_bits == op.b.lane_bits == 2 * r.lane_bits and op.a.lanes == op.b.lanes
            _require(half and 2 * op.a.lanes == lanes, place, "two vectors become one of half their bits")
            signed = op.a.type.kind == op.b.type.kind == "int" and op.a.type.bits <= 32 and r.type.is_integer
            _require(signed or not op.saturate, place, "integers of up to 32 bits, with a sign, saturate")
            parts = lanes * r.lane_bits // 8 % ops.PART_BYTES == 0 and op.saturate
            _require(parts or not op.by_parts, place, "vectors of whole parts, which saturate, are narrowed by parts")
        case ops.WidenPart():
            integers = op.a.type.is_integer and r.type.is_integer and lanes > 1
            group = op.a.lanes // lanes
            whole = group > 1 and op.a.lanes == group * lanes and r.type.bits == group * op.a.type.bits
            _require(integers and whole, place, "an element of the result is as wide as a group of the operand's")
            _require(0 <= op.part < group, place, "the part is one of a group")
        case ops.WidenLanes():
            integers = op.a.type.is_integer and r.type.is_integer and len(op.picks) == lanes > 1
            whole = r.type.bits > op.a.type.bits and lanes * r.type.bits == op.a.lanes * op.a.type.bits
            _require(integers and whole, place, "integers become as many bytes of longer ones")
            part, size = ops.PART_BYTES // op.a.type.bytes, r.type.bytes
            inside = all(p // part == n * size // ops.PART_BYTES for n, p in enumerate(op.picks))
            _require(inside, place, "each lane comes from the part that it goes to")
        case ops.ResizeMask():
            _require(op.a.type == r.type == BOOL and op.a.lanes in (1, lanes), place, "a mask becomes a mask")
        case ops.Broadcast():
            _typed((op.a,), r, place)
            _require(op.a.lanes == 1, place, "the operand is a scalar")
        case ops.Copy():
            _typed((op.a,), r, place)
            _require(op.a.literal is None and op.a.lanes == lanes, place, "the operand is a value of the same lanes")
        case ops.Shuffle():
            same = op.a.type == op.b.type == r.type and op.a.lanes == op.b.lanes
            _require(same, place, "lanes are of two vectors of one type, the result's")
            inside = all(0 <= p < 2 * op.a.lanes for p in op.picks)
            _require(inside and len(op.picks) == lanes, place, "every lane of the result is one of those")
        case ops.DotPairs():
            pairs = (op.b.type, op.b.lanes) in ((INT16, 2 * lanes), (INT32, 1))
            _require((op.a.type, op.a.lanes) == (INT16, 2 * lanes) and pairs, place, "pairs of int16 become one int32")
        case ops.SumNeighbours():
            kinds = (
                op.a.type.kind == r.type.kind == "uint" and op.a.type == op.b.type and op.a.lanes // lanes in (2, 4, 8)
            )
            whole = op.a.type.bits * op.a.lanes == r.type.bits * lanes
            _require(kinds and whole, place, "unsigned neighbours become one as wide as all of them")
        case ops.FromIndex():
            _require((r.type, lanes) == (INT32, 1), place, "the result is an int32")
        case ops.ToIndex():
            _require(op.a.type.is_integer and op.a.lanes == 1, place, "the operand is one integer")
        case ops.Lanes():
            _require(r.type.is_integer and len(op.pattern) == lanes, place, "there is one number a lane")
        case ops.Load():
            _element(r, op.row, scope, place)
        case ops.LoadPair():
            _element(replace(r, type=INT16), op.row, scope, place)
            _require((r.type, lanes) == (INT32, 1), place, "two elements of int16 are one int32")
        case ops.ClampedLoad():
            _element(r, op.row, scope, place)
            _require(lanes > 1, place, "what is clamped is a vector")
        case ops.Gather() | ops.GatherPairs() | ops.GatherFours():
            _element(r, op.row, scope, place)
            _offsets(op.offsets, lanes, place)
        case ops.MonotoneGather() | ops.WindowGather() | ops.EdgeGather():
            _element(r, op.row, scope, place)
            _require(op.at.lanes == lanes and op.at.type.bits == 32, place, "there is an index of 32 bits a lane")
        case ops.Lookup():
            _element(r, op.row, scope, place)
            found = r.type == UINT8 and sum(a.lanes for a in op.at) == lanes
            _require(found, place, "there is a place a lane, of a table of bytes")
        case ops.CarriedElements() | ops.VectorsIntoLine() | ops.Misalignment():
            _require((r.type, lanes) == (INT64, 1), place, "the result is an int64")
        case _:
            assert_never(op)


def _element(r: Value, row: Pointer, scope: _Scope, place: Place) -> None:
    buffer = scope.names[row]
    assert isinstance(buffer, Buffer)
    _require(buffer.type == r.type, place, f"elements of @{buffer.pointer} are {buffer.type}")

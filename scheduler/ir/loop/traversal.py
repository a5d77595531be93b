"""Uses, definitions and regions of the statements of the loop IR, of whatever class: passes that ask for no more know
none of the classes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from operator import attrgetter
from typing import TypeVar

from scheduler.ir.index import Index
from scheduler.ir.loop.ops import Operation
from scheduler.ir.loop.program import (
    Accumulator,
    Allocate,
    Assign,
    AssignIndex,
    Bind,
    Body,
    ClampedIndex,
    CopyOut,
    Define,
    Extents,
    If,
    Let,
    Loop,
    MutableIndex,
    PeelVectors,
    RowPointer,
    Scratch,
    Statement,
)
from scheduler.ir.loop.values import Buffer, Lane, LaneOffset, Pointer, Value

DEFINITIONS = (Define, RowPointer, Let, MutableIndex, Accumulator, PeelVectors)
"""Statements that have no effect but the names that they define."""


def operands(x: object) -> Iterator[Value | Index | Pointer]:
    """The operands in anything that a statement or an operation is made of: values (literals too), indices, pointers.
    Of a buffer that is its own pointer; regions have none."""
    match x:
        case Value() | Index() | Pointer():
            yield x
        case tuple():
            for part in x:
                yield from operands(part)
        case Lane():
            yield x.base
            if x.vector is not None:
                yield x.vector
        case LaneOffset():
            yield from operands((x.lane, x.stride, x.origin, x.within))
        case Buffer():
            yield x.pointer
        case Extents():
            yield from x.extents
        case ClampedIndex():
            yield from operands((x.first, x.last))
        case _:
            pass


def operands_of(op: Operation) -> Iterator[Value | Index | Pointer]:
    """The operands of an operation, in order."""
    for get in _fields(type(op), ()):
        yield from operands(get(op))


def values_of(op: Operation) -> tuple[Value, ...]:
    """The values among the operands of an operation."""
    return tuple(x for x in operands_of(op) if isinstance(x, Value))


Op = TypeVar("Op", bound=Operation)


def with_operands(op: Op, value: Callable[[Value], Value], lane: Callable[[Lane], Lane]) -> Op:
    """The operation with its values and its indices that differ from lane to lane changed."""

    def changed(x: object) -> object:
        match x:
            case Value():
                return value(x)
            case LaneOffset():
                return replace(x, lane=lane(x.lane))
            case tuple():
                return tuple(map(changed, x))
            case _:
                return x

    make: Callable[..., Op] = type(op)
    return make(*(changed(get(op)) for get in _fields(type(op), ())))


def used(s: Statement) -> Iterator[str]:
    """Every name that a statement uses, those inside of its regions left out."""
    match s:
        case Define():
            found = operands_of(s.op)
        case CopyOut():
            found = operands(tuple((b, *b.origin, *b.stride) for b in (s.output, s.source)))
        case _:
            found = operands(tuple(get(s) for get in _fields(type(s), _NOT_USED)))
    for o in found:
        yield from names_of(o)


_NOT_USED = ("result", "name", "target", "var", "body", "otherwise")
"""Fields of what is defined, and of regions."""


def names_of(o: Value | Index | Pointer) -> tuple[str, ...]:
    """The names in an operand."""
    if isinstance(o, Index):
        return o.symbols()
    if isinstance(o, Value):
        return (o.name,) if o.name else ()
    return (str(o),)


def defined(s: Statement) -> tuple[str, ...]:
    """The names that a statement defines for those that follow it in its block, and inside of them."""
    match s:
        case Define() | Accumulator():
            return (s.result.name,)
        case RowPointer():
            return (s.result,)
        case Let() | MutableIndex():
            return (s.name,)
        case PeelVectors():
            return (s.first, s.last, s.from_, s.to)
        case Bind():
            return tuple(m.buffer.pointer for m in s.scratch.buffers)
        case Scratch():
            return tuple(name for m in s.buffers for name in _strides(m))
        case Allocate():
            return (s.memory.buffer.pointer, *_strides(s.memory))
        case _:
            return ()


def _strides(m: Extents) -> tuple[str, ...]:
    return tuple(name for x in m.buffer.stride for name in x.symbols())


def defined_inside(s: Loop) -> tuple[str, ...]:
    """The names that a loop defines for its body."""
    return (s.var,) if s.seen is None else (s.var, s.seen.name)


def assigned(s: Statement) -> str | None:
    """The name of what a statement gives its next value."""
    match s:
        case Assign():
            return s.target.name
        case AssignIndex():
            return s.name
        case _:
            return None


def regions(s: Statement) -> tuple[Body, ...]:
    """The blocks inside of a statement."""
    match s:
        case Loop():
            return (s.body,)
        case If():
            return (s.body, s.otherwise)
        case _:
            return ()


def with_regions(s: Statement, change: Callable[[Body], Body]) -> Statement:
    """The statement with its blocks changed."""
    match s:
        case Loop():
            return replace(s, body=change(s.body))
        case If():
            return replace(s, body=change(s.body), otherwise=change(s.otherwise))
        case _:
            return s


def walk(body: Body) -> Iterator[Statement]:
    """Every statement of a block, those inside of others after them."""
    for s in body:
        yield s
        for region in regions(s):
            yield from walk(region)


_GETTERS: dict[tuple[type, tuple[str, ...]], tuple[Callable[[object], object], ...]] = {}


def _fields(kind: type, but: tuple[str, ...]) -> tuple[Callable[[object], object], ...]:
    """Functions that give the fields of a class, those named `but` left out."""
    found = _GETTERS.get((kind, but))
    if found is None:
        found = _GETTERS[kind, but] = tuple(attrgetter(f.name) for f in fields(kind) if f.name not in but)
    return found

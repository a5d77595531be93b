"""Uses, definitions and regions of the statements of the loop IR, of whatever class: passes that ask for no more know
none of the classes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from operator import attrgetter, is_
from typing import TypeAlias, TypeVar, cast, get_args, get_type_hints

from tilesmith.scheduler.ir.index import Index
from tilesmith.scheduler.ir.loop.ops import Operation
from tilesmith.scheduler.ir.loop.program import (
    Accumulator,
    Allocate,
    Apart,
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
    PeeledLoop,
    PeelVectors,
    RowPointer,
    Scratch,
    Statement,
)
from tilesmith.scheduler.ir.loop.values import Buffer, Lane, LaneOffset, Pointer, Value

DEFINITIONS = (Define, RowPointer, Let, MutableIndex, Accumulator, PeelVectors)
"""Statements that have no effect but the names that they define."""


Named: TypeAlias = Value | Index | Pointer
"""What has a name, or is made of names."""


def operands(x: object) -> list[Named]:
    """The operands in anything that a statement or an operation is made of, in order: values (literals too), indices,
    pointers. Of a buffer that is its own pointer; regions have none."""
    found: list[Named] = []
    _collect(x, found)
    return found


def operands_of(op: Operation) -> list[Named]:
    """The operands of an operation, in order."""
    found: list[Named] = []
    for get in _holding(type(op)):
        _collect(get(op), found)
    return found


def _collect(x: object, found: list[Named]) -> None:
    match x:
        case Value() | Index() | Pointer():
            found.append(x)
        case tuple():
            for part in x:
                _collect(part, found)
        case Lane():
            found.append(x.base)
            if x.vector is not None:
                found.append(x.vector)
        case LaneOffset():
            _collect((x.lane, x.stride, x.origin, x.within), found)
        case Buffer():
            found.append(x.pointer)
        case Extents():
            _collect(x.extents, found)
        case ClampedIndex():
            _collect((x.first, x.last), found)
        case _:
            pass


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
    return make(*(changed(get(op)) for get in _fields(type(op))))


def used(s: Statement) -> Iterator[str]:
    """Every name that a statement uses, those inside of its regions left out."""
    match s:
        case Define():
            found = operands_of(s.op)
        case CopyOut():
            found = operands(tuple((b, *b.origin, *b.stride) for b in (s.output, s.source)))
        case _:
            found = operands(tuple(get(s) for get in _holding(type(s), _NOT_USED)))
    for o in found:
        yield from names_of(o)


_REGIONS = ("body", "middle", "otherwise")
_NOT_USED = ("result", "name", "target", "var", *_REGIONS)
"""Fields of what is defined, and of regions."""


def names_of(o: Named) -> tuple[str, ...]:
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


def defined_inside(s: Statement) -> tuple[str, ...]:
    """The names that a statement defines for its blocks: those of loops."""
    match s:
        case Loop(seen=None) | PeeledLoop():
            return (s.var,)
        case Loop(seen=ClampedIndex(name=name)):
            return (s.var, name)
        case _:
            return ()


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
        case Loop() | Apart():
            return (s.body,)
        case PeeledLoop():
            return (s.body, s.middle)
        case If():
            return (s.body, s.otherwise)
        case _:
            return ()


def with_regions(s: Statement, change: Callable[[Body], Body]) -> Statement:
    """The statement with its blocks changed."""
    match s:
        case Loop() | Apart():
            return replace(s, body=change(s.body))
        case PeeledLoop():
            return replace(s, body=change(s.body), middle=change(s.middle))
        case If():
            return replace(s, body=change(s.body), otherwise=change(s.otherwise))
        case _:
            return s


def walk(body: Body) -> Iterator[Statement]:
    """Every statement of a block, those inside of others after them."""
    waiting = [iter(body)]
    while waiting:
        for s in waiting[-1]:
            yield s
            inside = regions(s)
            if inside:
                waiting.extend(map(iter, reversed(inside)))
                break
        else:
            waiting.pop()


def indices(s: Statement) -> list[Index]:
    """The indices of a statement, those of its buffers and inside of its regions left out, in order."""
    found: list[Index] = []
    _collect_indices(s, found)
    return found


def _collect_indices(x: object, found: list[Index]) -> None:
    if isinstance(x, Index):
        found.append(x)
    elif isinstance(x, tuple):
        for part in x:
            _collect_indices(part, found)
    else:
        for name in _indexed(type(x)):
            _collect_indices(getattr(x, name), found)


S = TypeVar("S")


def with_indices(s: S, change: Callable[[Index], Index]) -> S:
    """A statement, or a part of one, with the indices changed that `indices` gives; itself where none is another."""
    return cast("S", _with_indices(s, change))


def _with_indices(x: object, change: Callable[[Index], Index]) -> object:
    if isinstance(x, Index):
        return change(x)
    if isinstance(x, tuple):
        parts = [_with_indices(part, change) for part in x]
        return x if all(map(is_, parts, x)) else tuple(parts)
    changes = {}
    for name in _indexed(type(x)):
        part = getattr(x, name)
        changed = _with_indices(part, change)
        if changed is not part:
            changes[name] = changed
    make: Callable[..., object] = replace
    return make(x, **changes) if changes else x


_INDEXED: dict[type, tuple[str, ...]] = {Buffer: (), Value: ()}


def _indexed(kind: type) -> tuple[str, ...]:
    """The fields of a class whose types hold indices, but for regions."""
    found = _INDEXED.get(kind)
    if found is None:
        hints = get_type_hints(kind).items() if is_dataclass(kind) else ()
        names = [name for name, hint in hints if name not in _REGIONS and _holds_index(hint)]
        found = _INDEXED[kind] = tuple(names)
    return found


def _holds_index(hint: object) -> bool:
    if hint is Index:
        return True
    parts = get_args(hint)
    return any(map(_holds_index, parts)) if parts else isinstance(hint, type) and bool(_indexed(hint))


_Getters: TypeAlias = tuple[Callable[[object], object], ...]
_FIELDS: dict[type, _Getters] = {}
_HOLDING: dict[tuple[type, tuple[str, ...]], _Getters] = {}


def _fields(kind: type) -> _Getters:
    """Functions that give the fields of a class."""
    found = _FIELDS.get(kind)
    if found is None:
        found = _FIELDS[kind] = tuple(attrgetter(f.name) for f in fields(kind))
    return found


def _holding(kind: type, but: tuple[str, ...] = ()) -> _Getters:
    """Functions that give the fields of a class whose types hold operands, those named `but` left out."""
    found = _HOLDING.get((kind, but))
    if found is None:
        names = [name for name, hint in get_type_hints(kind).items() if name not in but and _holds(hint)]
        found = _HOLDING[kind, but] = tuple(map(attrgetter, names))
    return found


_HOLDERS = (Value, Index, Pointer, Lane, LaneOffset, Buffer, Extents, ClampedIndex)


def _holds(hint: object) -> bool:
    return hint in _HOLDERS or any(map(_holds, get_args(hint)))

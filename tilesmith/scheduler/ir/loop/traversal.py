"""Uses, definitions and regions of the statements of the loop IR, of whatever class: passes that ask for no more know
none of the classes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from operator import attrgetter, is_
from typing import Any, Generic, TypeAlias, TypeVar, cast, get_args, get_type_hints

from tilesmith.scheduler.ir.index import Index
from tilesmith.scheduler.ir.loop.computations import DimRange, Reads, RowStage
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
    Function,
    If,
    Let,
    Loop,
    MutableIndex,
    Ordered,
    PeeledLoop,
    PeelVectors,
    RowPointer,
    Scratch,
    Statement,
)
from tilesmith.scheduler.ir.loop.values import Buffer, Lane, LaneOffset, Pointer, Value

DEFINITIONS = (Define, RowPointer, Let, MutableIndex, Accumulator, PeelVectors)
"""Statements that have no effect but the names that they define."""

NESTING = (Loop, PeeledLoop, Apart, Ordered, If, Function)
"""Statements that have blocks inside."""


Named: TypeAlias = Value | Index | Pointer
"""Operands that have a name, or are made of names."""


def operands(x: object) -> list[Named]:
    """The operands in anything that a statement or an operation is made of, in order: values (literals too), indices,
    pointers. Of a buffer that is its own pointer; regions have none."""
    found: list[Named] = []
    _collect(x, found)
    return found


def operands_of(op: Operation) -> Sequence[Named]:
    """The operands of an operation, in order."""
    return _OPERANDS[type(op)](op)


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
            _collect(x.lane, found)
            found += (x.stride, x.origin) if x.within is None else (x.stride, x.origin, *x.within)
        case Buffer():
            found.append(x.pointer)
        case Extents():
            _collect(x.extents, found)
        case ClampedIndex() | DimRange():
            _collect((x.first, x.last), found)
        case RowStage():
            _collect((x.ring, x.at), found)
        case Reads():
            _collect(x.buffers, found)
        case _:
            pass


def values_of(op: Operation) -> tuple[Value, ...]:
    """The values among the operands of an operation."""
    return tuple([x for x in operands_of(op) if isinstance(x, Value)])


Op = TypeVar("Op", bound=Operation)


def with_operands(op: Op, value: Callable[[Value], Value], lane: Callable[[Lane], Lane]) -> Op:
    """The operation with its values and its indices that differ from lane to lane changed."""
    kind: type = type(op)
    return cast("Op", kind(*[_changed(x, value, lane) for x in _FIELDS[kind](op)]))


def _changed(x: object, value: Callable[[Value], Value], lane: Callable[[Lane], Lane]) -> object:
    match x:
        case Value():
            return value(x)
        case LaneOffset():
            return replace(x, lane=lane(x.lane))
        case tuple():
            return tuple([_changed(part, value, lane) for part in x])
        case _:
            return x


def used(s: Statement) -> list[str]:
    """Every name that a statement uses, those inside of its regions left out."""
    part = s.op if isinstance(s, Define) else s
    names: list[str] = []
    for o in _OPERANDS[type(part)](part):
        if isinstance(o, Value):
            if o.name:
                names.append(o.name)
        elif isinstance(o, Index):
            names += o.symbols()
        else:
            names.append(o)
    return names


def names_of(o: Named) -> tuple[str, ...]:
    """The names in an operand."""
    if isinstance(o, Index):
        return o.symbols()
    if isinstance(o, Value):
        return (o.name,) if o.name else ()
    return (o,)


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
            return (s.first, s.last, s.from_, s.to) if s.from_ else (s.first, s.last, s.to)
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
    """The names that a statement defines for its blocks: those of loops, and of functions."""
    match s:
        case Loop(seen=None) | PeeledLoop():
            return (s.var,)
        case Loop(seen=ClampedIndex(name=name)):
            return (s.var, name)
        case Function():
            return (*s.symbols, *(b.pointer for b in s.buffers))
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
        case Loop() | Apart() | Ordered() | Function():
            return (s.body,)
        case PeeledLoop():
            return (s.body, s.middle)
        case If():
            return (s.body, s.otherwise)
        case _:
            return ()


def with_regions(s: Statement, change: Callable[[Body], Body]) -> Statement:
    """The statement with its blocks changed; itself where none is another."""
    if isinstance(s, Loop | Apart | Ordered | Function):
        body = change(s.body)
        return s if body is s.body else replace(s, body=body)
    if isinstance(s, PeeledLoop):
        body, middle = change(s.body), change(s.middle)
        return s if body is s.body and middle is s.middle else replace(s, body=body, middle=middle)
    if isinstance(s, If):
        body, otherwise = change(s.body), change(s.otherwise)
        return s if body is s.body and otherwise is s.otherwise else replace(s, body=body, otherwise=otherwise)
    return s


def with_blocks(body: Body, change: Callable[[Body], Body]) -> Body:
    """A block with the blocks right inside of it changed; itself where none is another."""
    return block_of([with_regions(s, change) if isinstance(s, NESTING) else s for s in body], body)


def block_of(statements: Sequence[Statement], body: Body) -> Body:
    """Statements as a block: `body` itself where they are those of it."""
    return body if len(statements) == len(body) and all(map(is_, statements, body)) else tuple(statements)


def walk(body: Body) -> Iterator[Statement]:
    """Every statement of a block, those inside of others after them."""
    waiting = [iter(body)]
    while waiting:
        for s in waiting[-1]:
            yield s
            if isinstance(s, NESTING):
                waiting.extend(map(iter, reversed(regions(s))))
                break
        else:
            waiting.pop()


def indices(s: Statement) -> Sequence[Index]:
    """The indices of a statement, in order; those that describe its buffers, and those inside of its regions, left
    out."""
    part = s.op if isinstance(s, Define) else s
    return _INDICES[type(part)](part)


def _collect_indices(x: object, found: list[Index]) -> None:
    if isinstance(x, Index):
        found.append(x)
    elif isinstance(x, tuple):
        for part in x:
            _collect_indices(part, found)
    else:
        found += _INDICES[type(x)](x)


S = TypeVar("S")


def with_indices(s: S, change: Callable[[Index], Index]) -> S:
    """A statement, or a part of one, with the indices changed that `indices` gives; itself where none is another."""
    kind: type = type(s)
    if not _INDEXED[kind]:
        return s
    parts = list(_FIELDS[kind](s))
    same = True
    for n in _INDEXED[kind]:
        part = parts[n]
        parts[n] = change(part) if isinstance(part, Index) else _part_with_indices(part, change)
        same = same and parts[n] is part
    return s if same else cast("S", kind(*parts))


def _part_with_indices(x: object, change: Callable[[Index], Index]) -> object:
    if isinstance(x, Index):
        return change(x)
    if isinstance(x, tuple):
        parts = [_part_with_indices(part, change) for part in x]
        return x if all(map(is_, parts, x)) else tuple(parts)
    return with_indices(x, change)


# what is known of a class ------------------------------------------------------------

T = TypeVar("T")
_Fields: TypeAlias = Callable[[Any], tuple[Any, ...]]


class _ByClass(dict[type, T], Generic[T]):
    """A cache of `find`, by class, filled on demand."""

    def __init__(self, find: Callable[[type], T]) -> None:
        self.find = find

    def __missing__(self, kind: type) -> T:
        found = self[kind] = self.find(kind)
        return found


def _getter(names: Iterable[str]) -> _Fields:
    """A function that gives attributes of those names."""
    match tuple(names):
        case ():
            return lambda x: ()
        case (name,):
            get = attrgetter(name)
            return lambda x: (get(x),)
        case several:
            return attrgetter(*several)


_REGIONS = ("body", "middle", "otherwise")
_DEFINED = ("result", "name", "target", "var")
"""Fields of what a statement defines."""
_PLAIN = frozenset({Value, Index, Pointer})
_HOLDERS = (*_PLAIN, Lane, LaneOffset, Buffer, Extents, ClampedIndex, DimRange, RowStage, Reads)


def _operand_reader(kind: type) -> Callable[[Any], Sequence[Named]]:
    if kind is Function:
        return lambda x: ()  # its buffers are its own
    if kind is CopyOut:
        return _operands_of_copy
    if kind is Allocate:
        return _operands_of_allocation
    hints = _holding(kind)
    get = _getter(hints)
    return get if _PLAIN.issuperset(hints.values()) else lambda x: operands(get(x))


def _holding(kind: type) -> dict[str, object]:
    """The fields of a class whose types hold operands, with these types. A buffer is its pointer."""
    hints = get_type_hints(kind).items()
    held = [(name, hint) for name, hint in hints if name not in (*_REGIONS, *_DEFINED) and _holds(hint)]
    return dict((f"{name}.pointer", Pointer) if hint is Buffer else (name, hint) for name, hint in held)


def _operands_of_allocation(s: Allocate) -> list[Named]:
    place = () if s.place is None else (s.place, *s.place.origin, *s.place.stride, *s.place.extent)
    return operands((s.memory, place))


def _operands_of_copy(s: CopyOut) -> list[Named]:
    return operands(tuple((b, *b.origin, *b.stride) for b in (s.output, s.source)))


def _holds(hint: object) -> bool:
    """True if values of such a type hold operands."""
    return hint in _HOLDERS or any(map(_holds, get_args(hint)))


def _indexed(kind: type) -> dict[int, str]:
    """The fields of a class whose types hold indices, by number; not those that describe buffers, nor regions."""
    if not is_dataclass(kind) or kind in (Buffer, Extents, Value):
        return {}
    hints = get_type_hints(kind)
    names = [f.name for f in fields(kind)]
    return {n: name for n, name in enumerate(names) if name not in _REGIONS and _holds_index(hints[name])}


def _holds_index(hint: object) -> bool:
    if hint is Index:
        return True
    parts = get_args(hint)
    return any(map(_holds_index, parts)) if parts else isinstance(hint, type) and bool(_INDEXED[hint])


def _index_reader(kind: type) -> Callable[[Any], Sequence[Index]]:
    names = _INDEXED[kind].values()
    get, hints = _getter(names), get_type_hints(kind) if names else {}
    if all(hints[name] is Index for name in names):
        return get

    def read(x: object) -> list[Index]:
        found: list[Index] = []
        _collect_indices(get(x), found)
        return found

    return read


_FIELDS = _ByClass(lambda kind: _getter(f.name for f in fields(kind)))
_OPERANDS = _ByClass(_operand_reader)
_INDEXED = _ByClass(_indexed)
_INDICES = _ByClass(_index_reader)

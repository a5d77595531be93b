"""Dead-code elimination in a loop program; prefetches of lines that the iteration before has read are left out, too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from scheduler.ir.index import Index
from scheduler.ir.loop.program import (
    Accumulator,
    Allocate,
    AskEnds,
    Assign,
    Bind,
    Buffer,
    CopyOut,
    Define,
    Extents,
    Gathered,
    If,
    Lane,
    Let,
    Loop,
    Mutable,
    Operand,
    Prefetch,
    Reach,
    Row,
    Scratch,
    SetIndex,
    Statement,
    Store,
    Value,
    VectorSplit,
)


def prune(
    bounds: tuple[Statement, ...], body: tuple[Statement, ...], kept: Iterable[Index]
) -> tuple[tuple[Statement, ...], tuple[Statement, ...]]:
    """*Before*: definitions that may be unused. *After*: the definitions that a store, a loop, a condition or `kept`
    needs; and where rows side by side are prefetched, only the rows that are new in each iteration of the loop
    around."""
    body = _asked_for(body)
    needs: dict[str, set[str]] = {}
    roots: set[str] = {s for x in kept for s in x.symbols()}
    _scan((*bounds, *body), needs, roots)
    alive: set[str] = set()
    stack = sorted(roots)
    while stack:
        name = stack.pop()
        if name not in alive:
            alive.add(name)
            stack.extend(needs.get(name, ()))
    return _keep(bounds, alive), _keep(body, alive)


def _asked_for(statements: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """The prefetches to keep: where rows lie side by side, those of the rows that are new in each iteration of the loop
    around."""
    furthest: dict[object, int] = {}
    for s in statements:
        if isinstance(s, Prefetch):
            furthest[s.rows, s.far] = max(s.place, furthest.get((s.rows, s.far), s.place))
    kept: list[Statement] = []
    for s in statements:
        match s:
            case Prefetch():
                if s.place > furthest[s.rows, s.far] - s.step:
                    kept.append(s)
            case Loop():
                kept.append(replace(s, body=_asked_for(s.body)))
            case If():
                kept.append(replace(s, body=_asked_for(s.body), otherwise=_asked_for(s.otherwise)))
            case _:
                kept.append(s)
    return tuple(kept)


def _scan(statements: tuple[Statement, ...], needs: dict[str, set[str]], roots: set[str]) -> None:
    for s in statements:
        match s:
            case Let() | Mutable() | SetIndex():
                needs.setdefault(s.name, set()).update(s.value.symbols())
            case Define():
                used = needs.setdefault(s.result.name, set())
                used.update(n for a in s.args for n in _names(a))
                used.update(n for a in s.attrs for n in _attr_names(a))
            case Row():
                needs.setdefault(s.result, set()).update([s.buffer.pointer, *s.offset.symbols()])
            case Accumulator():
                needs.setdefault(s.result.name, set()).update(_names(s.start))
            case Assign():
                needs.setdefault(s.target.name, set()).update(_names(s.value))
            case VectorSplit():
                for name in (s.first, s.last, s.from_, s.to):
                    needs.setdefault(name, set()).update([s.first, s.last, s.from_, s.to])
                    needs[name].update(n for x in (s.lo, s.end, *s.given) for n in x.symbols())
            case Store():
                roots.update([s.row, s.buffer.pointer, *s.index.symbols(), *_names(s.value)])
                roots.update(n for g in s.scatter for n in _gathered_names(g))
                roots.update(n for x in s.within or () for n in x.symbols())
                roots.update(n for v in (s.before, s.picks, s.apart, s.moved) if v is not None for n in _names(v))
            case AskEnds():
                roots.update([s.row, *s.first.symbols(), *s.last.symbols()])
            case Prefetch():
                roots.update([s.row, *s.index.symbols()])
            case Loop():
                roots.update([*s.lo.symbols(), *s.hi.symbols(), *s.step.symbols(), *(s.skip or ())])
                if s.last is not None:
                    name, last = s.last
                    needs.setdefault(name, set()).update(bound for bound in (last, s.first) if bound)
                _scan(s.body, needs, roots)
            case If():
                roots.update(n for x in s.nonnegative for n in x.symbols())
                roots.update(() if s.condition is None else _names(s.condition))
                _scan(s.body + s.otherwise, needs, roots)
            case Scratch():
                roots.update(n for memory in s.buffers for n in _extent_names(memory))
            case Bind():
                pass
            case Reach():
                roots.update(n for x in (*s.low, *s.high, *s.wide) for n in x.symbols())
            case Allocate():
                roots.update(_extent_names(s.memory))
            case CopyOut():
                roots.update(n for b in (s.output, s.source) for n in _buffer_names(b))
            case _:
                pass


def _names(a: Operand) -> Iterator[str]:
    if isinstance(a, Value):
        if a.name:
            yield a.name
    elif isinstance(a, Lane):
        yield from a.base.symbols()
        if a.vector is not None:
            yield a.vector.name
    else:
        yield from a.symbols()


def _attr_names(a: object) -> Iterator[str]:
    if isinstance(a, str):
        yield a
    elif isinstance(a, tuple):
        for x in a:
            if isinstance(x, Gathered):
                yield from _gathered_names(x)


def _gathered_names(g: Gathered) -> Iterator[str]:
    yield from _names(g.lane)
    yield from g.stride.symbols()
    yield from g.origin.symbols()
    for x in g.within or ():
        yield from x.symbols()


def _extent_names(memory: Extents) -> Iterator[str]:
    for x in memory.extents:
        yield from x.symbols()


def _buffer_names(b: Buffer) -> Iterator[str]:
    yield b.pointer
    for x in (*b.origin, *b.stride):
        yield from x.symbols()


def _keep(statements: tuple[Statement, ...], alive: set[str]) -> tuple[Statement, ...]:
    kept: list[Statement] = []
    for s in statements:
        match s:
            case Let() | Mutable() | SetIndex():
                if s.name in alive:
                    kept.append(s)
            case Define() | Accumulator():
                if s.result.name in alive:
                    kept.append(s)
            case Row():
                if s.result in alive:
                    kept.append(s)
            case Assign():
                if s.target.name in alive:
                    kept.append(s)
            case Loop():
                body = _keep(s.body, alive)
                if body:
                    last = s.last if s.last is not None and s.last[0] in alive else None
                    kept.append(replace(s, body=body, last=last, first=s.first if last else ""))
            case If():
                body, otherwise = _keep(s.body, alive), _keep(s.otherwise, alive)
                if body or otherwise:
                    kept.append(replace(s, body=body, otherwise=otherwise))
            case _:
                kept.append(s)
    return tuple(kept)

"""Renaming of what statements define, so that statements that differ in names alone are equal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import reduce

from scheduler.ir.index import Index, divide, maximum, minimum, modulo, multiply, sym
from scheduler.ir.loop.program import Body, Loop
from scheduler.ir.loop.traversal import defined, defined_inside, walk
from scheduler.ir.loop.values import Buffer, Pointer, Value

BUILD = {"min": minimum, "max": maximum, "div": divide, "mod": modulo, "mul": multiply}
"""The functions that make the atoms of an index."""


def local_names(body: Body) -> Iterator[str]:
    """The names that a block defines, and those inside of it, in order."""
    for s in walk(body):
        yield from defined(s)
        if isinstance(s, Loop):
            yield from defined_inside(s)


def canonical(body: Body) -> Body:
    """The block with its own names numbered."""
    names = {name: f"#{n}" for n, name in enumerate(local_names(body))}
    return renamed(body, names)


def renamed(body: Body, names: Mapping[str, str]) -> Body:
    """The block with other names."""
    indices: dict[Index, Index] = {}

    def index(x: Index) -> Index:
        if names.keys().isdisjoint(x.symbols()):
            return x
        found = indices.get(x)
        if found is None:
            found = indices[x] = replaced(x, lambda name: sym(names.get(name, name)))
        return found

    def changed(x: object) -> object:
        match x:
            case Index():
                return index(x)
            case Value():
                return replace(x, name=names[x.name]) if x.name in names else x
            case Pointer():
                return Pointer(names.get(x, x))
            case str():
                return names.get(x, x)
            case tuple():
                return tuple(map(changed, x))
            case Buffer() | int() | None:
                return x
            case _ if is_dataclass(x) and not isinstance(x, type):
                return replace(x, **{f.name: changed(getattr(x, f.name)) for f in fields(x) if f.name != "comment"})
        return x

    return tuple(changed(s) for s in body)  # type: ignore[misc]


def replaced(x: Index, value: Callable[[str], Index]) -> Index:
    """An index with other values for its symbols."""
    total = Index(x.const)
    for a, c in x.terms:
        one = value(a.key) if a.kind == "sym" else reduce(BUILD[a.kind], (replaced(arg, value) for arg in a.args))
        total = total + one.scaled(c)
    return total

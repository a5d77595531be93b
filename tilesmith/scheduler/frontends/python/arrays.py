"""Values of functional programs: scalars, tuples, and arrays whose elements are any of these.

An array is an extent, the symbol of its axis, and its element at that symbol: nothing is stored, and to read an element
is to put another index in the place of the symbol. Scalars are terms; what of them depends on symbols are `Open` ones.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from tilesmith.scheduler.errors import DocumentError, TilesmithError
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.frontends.document.limits import Limits
from tilesmith.scheduler.frontends.python.frontend import Image, Param, Stage, Type, document, int32
from tilesmith.scheduler.frontends.python.sizes import (
    Axis,
    Bindings,
    Extent,
    index_of,
    shown,
    substituted,
    symbols_in,
    term_of,
)
from tilesmith.scheduler.frontends.python.terms import Source, Term, as_term, call
from tilesmith.scheduler.ir.index import Atom, Index, const, divide, sym
from tilesmith.scheduler.ir.pipeline.printer import ATOM

Value: TypeAlias = "Term | int | float | tuple[Value, ...] | Array"
Shapes: TypeAlias = Mapping[str, tuple[Index, ...]]  # the extents of images by name, the outermost first

AXES: Final = ("x", "y", "c", "d", "e")  # the dims of a stage, the innermost axis first
_HERE = str(Path(__file__).parent)
_UNLIMITED = Limits(dims=1 << 10, params=1 << 10)


class PatternError(TilesmithError):
    """A pattern that does not fit what it is applied to; the message begins with the pattern and its place."""

    code = "bad_pattern"


class Place:
    """The place that a pattern is written at: its name, and the caller's file and line."""

    __slots__ = ("line", "pattern")

    def __init__(self, pattern: str) -> None:
        self.pattern, self.line = pattern, caller()

    def error(self, message: str) -> PatternError:
        """The error of this pattern, and where it is applied, if that is another line."""
        applied = caller()
        also = "" if applied == self.line else f", applied at {applied}"
        return PatternError(f"{self.pattern} at {self.line}{also}: {message}")


def caller() -> str:
    """File and line of the code that called into this package."""
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


class Array:
    """`extent` elements; `a >> f` is f(a). Where it becomes a stage, the first has the index `origin`."""

    __slots__ = ("axis", "element", "extent", "origin")
    __hash__ = object.__hash__

    def __init__(self, extent: Index, element: Callable[[Index], Value], origin: int = 0) -> None:
        self.axis = Axis(extent, origin)
        self.extent, self.origin = extent, origin
        self.element = element(self.axis.index)

    def at(self, index: Index) -> Value:
        """The element there."""
        return replaced(self.element, {self.axis.key: index})

    def __getitem__(self, index: int) -> Value:
        if self.extent.is_const and not 0 <= index < self.extent.const:
            raise IndexError(f"element {index} of {self}")
        return self.at(const(index))

    def __len__(self) -> int:
        if not self.extent.is_const:
            raise TypeError(f"{self} has a length that is known when the code runs: use map and reduce")
        return self.extent.const

    def __iter__(self) -> Iterator[Value]:
        return (self[k] for k in range(len(self)))

    def __rshift__(self, function: Callable[[Array], Any]) -> Any:
        return function(self)

    def __str__(self) -> str:
        return type_of(self)

    def __repr__(self) -> str:
        return f"<{self}>"


def array_of(value: object, place: Place) -> Array:
    """An array, or a list of numbers, or of lists of them, as one. Raises PatternError."""
    if isinstance(value, Array):
        return value
    if isinstance(value, list) and value:
        items = [array_of(v, place) if isinstance(v, list) else v for v in value]
        if all(isinstance(v, Array) for v in items):
            rows = [v for v in items if isinstance(v, Array)]
            if len({r.extent for r in rows}) > 1:
                raise place.error("the rows of a list of lists have different lengths")
            return Array(
                const(len(rows)), lambda i: Array(rows[0].extent, lambda j: _picked([r.at(j) for r in rows], i))
            )
        if not any(isinstance(v, Array) for v in items):
            return Array(const(len(items)), lambda i: _picked(items, i))
    raise place.error(f"an array is needed, not {_described(value)}")


class Open(Term):
    """A term that symbols of axes and sizes occur in."""

    def replaced(self, to: Bindings) -> Term:
        """The term with other indices for its symbols."""
        raise NotImplementedError

    def indices(self) -> tuple[Index, ...]:
        """The indices that occur in it itself."""
        return ()


class Let(Stage):
    """A stage, and the line where it was named."""

    def __init__(self, name: str, line: str) -> None:
        super().__init__(name)
        self.line = line


class Grid:
    """The source of a read: an image or a stage, the types of its components, its number of dims, and the extents of
    the images that it comes from."""

    __slots__ = ("images", "rank", "source", "types")

    def __init__(self, source: Image | Stage, types: tuple[str, ...], rank: int, images: Shapes) -> None:
        self.source, self.types, self.rank, self.images = source, types, rank, images

    def read(self, axes: Sequence[tuple[Index, int]], outer: tuple[Index, ...]) -> Value:
        """All of it, as arrays of these (extent, origin), the outermost first, at those indices of the dims `outer`."""
        if axes:
            (extent, origin), *rest = axes
            return Array(extent, lambda i: self.read(rest, (i + origin, *outer)), origin)
        parts = tuple(Read(self, outer, k) for k in range(len(self.types)))
        return parts if len(parts) > 1 else parts[0]


class Read(Open):
    """A component of an image or stage at indices."""

    __slots__ = ("at", "component", "grid")

    def __init__(self, grid: Grid, at: tuple[Index, ...], component: int = 0) -> None:
        read = call(grid.source.name, *(term_of(i) for i in at)).text
        text = f"{read}[{component}]" if len(grid.types) > 1 else read
        super().__init__(text, ATOM, frozenset((grid.source,)))
        self.grid, self.at, self.component = grid, at, component

    def replaced(self, to: Bindings) -> Term:
        return Read(self.grid, tuple(substituted(i, to) for i in self.at), self.component)

    def indices(self) -> tuple[Index, ...]:
        return self.at


class Pick(Open):
    """One of some terms, by an index."""

    __slots__ = ("index",)

    def __init__(self, items: tuple[Term, ...], index: Index) -> None:
        chosen = call("mux", term_of(index), *items)
        super().__init__(chosen.text, ATOM, chosen.sources, chosen.ranges, items)
        self.index = index

    def replaced(self, to: Bindings) -> Term:
        return _pick(tuple(scalar_replaced(t, to) for t in self.parts), substituted(self.index, to))

    def indices(self) -> tuple[Index, ...]:
        return (self.index,)


class Within(Open):
    """True where an index is one of `extent` elements."""

    __slots__ = ("extent", "index")

    def __init__(self, index: Index, extent: Index) -> None:
        i = term_of(index)
        test = (i >= 0) & (i < term_of(extent))
        super().__init__(test.text, test.level)
        self.index, self.extent = index, extent

    def replaced(self, to: Bindings) -> Term:
        return Within(substituted(self.index, to), substituted(self.extent, to))

    def indices(self) -> tuple[Index, ...]:
        return (self.index, self.extent)


class Fold(Open):
    """A reduction of the language, over the symbol of an axis."""

    __slots__ = ("axis", "depth", "extent", "operation")
    depth: int  # of reductions in reductions

    def __init__(self, operation: str, body: Term, axis: Axis, extent: Index) -> None:
        self.operation, self.axis, self.extent = operation, axis, extent
        self.depth = 1 + max((t.depth for t in open_terms(body) if isinstance(t, Fold)), default=0)
        name = f"r{self.depth}"
        inner = scalar_replaced(body, {axis.key: sym(name)})
        text = f"{operation}({inner.text} for {name} in range({term_of(extent).text}))"
        super().__init__(text, ATOM, body.sources, body.ranges, (body,))

    def replaced(self, to: Bindings) -> Term:
        return Fold(self.operation, scalar_replaced(self.parts[0], to), self.axis, substituted(self.extent, to))

    def indices(self) -> tuple[Index, ...]:
        return (self.extent,)


def _picked(items: list[Any], index: Index) -> Value:
    return _pick(tuple(as_term(item) for item in items), index)


def _pick(items: tuple[Term, ...], index: Index) -> Term:
    return items[index.const] if index.is_const else Pick(items, index)


def replaced(value: Value, to: Bindings) -> Value:
    """The value with other indices for its symbols."""
    match value:
        case Term():
            return scalar_replaced(value, to)
        case tuple():
            return tuple(replaced(v, to) for v in value)
        case Array():
            return Array(
                substituted(value.extent, to),
                lambda i: replaced(value.element, {**to, value.axis.key: i}),
                value.origin,
            )
    return value


def scalar_replaced(term: Term, to: Bindings) -> Term:
    """The term with other indices for its symbols: what it was made of, made anew."""
    done: dict[int, Term] = {}
    for part in _post_order(term):
        if isinstance(part, Open):
            done[id(part)] = part.replaced(to)
        elif part.make is None or all(done[id(p)] is p for p in part.parts):
            done[id(part)] = part
        else:
            done[id(part)] = part.make(*(done[id(p)] for p in part.parts))
    return done[id(term)]


def _post_order(term: Term) -> list[Term]:
    """The term after its parts; open terms are taken whole."""
    order: dict[int, Term] = {}
    waiting = [term]
    while waiting:
        part = waiting.pop()
        order.pop(id(part), None)
        order[id(part)] = part
        if not isinstance(part, Open):
            waiting += part.parts
    return list(reversed(order.values()))


def open_terms(value: Value) -> list[Open]:
    """The open terms that the value is made of, those inside of others too."""
    found: dict[int, Open] = {}
    waiting: list[Value] = [value]
    while waiting:
        match waiting.pop():
            case Term() as term:
                if isinstance(term, Open):
                    found[id(term)] = term
                waiting += term.parts
            case tuple() as parts:
                waiting += parts
            case Array() as array:
                waiting.append(array.element)
    return list(found.values())


def free_symbols(value: Value) -> set[Atom]:
    """The symbols of axes and sizes that the value depends on; those of its own axes are among them, and those that
    reductions run over are not."""
    terms = open_terms(value)
    found = {symbol for t in terms for index in t.indices() for symbol in symbols_in(index)}
    return found - {t.axis for t in terms if isinstance(t, Fold)}


def scalar_types(terms: list[Term], place: Place) -> tuple[str, ...]:
    """The types of terms by the rules of the pipeline language. Raises PatternError where they break one."""
    opened = [t for term in terms for t in open_terms(term)]
    grids = {t.grid.source: t.grid for t in opened if isinstance(t, Read)}
    probe = Stage("_value")
    symbols = sorted(free_symbols(tuple(terms)), key=repr)
    axes = [s.key for s in symbols if isinstance(s, Axis)]
    sizes = [Param(s.key, int32, min=1, max=1 << 24) for s in symbols if not isinstance(s, Axis)]
    probe.entry["dims"] = axes
    probe.entry["value"] = [t.text for t in terms] if len(terms) > 1 else terms[0].text
    written: dict[str, Any] = document("types", [], {})
    written["params"] = [p.entry for p in sizes]
    written["stages"] = [probe.entry]
    for source in declared({s for t in terms for s in t.sources}, place, known=grids):
        match source:
            case Param():
                written["params"].append(source.entry)
            case Image():
                written["inputs"].append(source.entry)
            case Stage() if source in grids:
                values = ["False" if t == "bool" else f"{t}(0)" for t in grids[source].types]
                entry = {"name": source.name, "dims": [f"_{k}" for k in range(grids[source].rank)]}
                written["stages"].append({**entry, "value": values if len(values) > 1 else values[0]})
            case Stage():
                written["stages"].append(source.entry)
    written["outputs"] = [probe.name]
    written["estimates"] = {probe.name: [[0, 1]] * len(axes)}
    try:
        return tuple(t.name for t in load(written, _UNLIMITED).stage(probe.name).types)
    except DocumentError as error:
        raise place.error("; ".join(f"{p.message} [{p.code}]" for p in error.problems)) from None


def declared(sources: Iterable[Source], place: Place, known: Collection[Source] = ()) -> list[Source]:
    """The sources and all that they need, but for what `known` ones do. Raises PatternError where two have one name."""
    found: dict[str, Source] = {}
    waiting = list(sources)
    while waiting:
        source = waiting.pop()
        if source.name not in found:
            found[source.name] = source
            waiting += () if source in known else source.needs()
        elif found[source.name] is not source:
            lines = sorted(s.line for s in (source, found[source.name]) if isinstance(s, Let))
            raise place.error(f"two things are named {source.name!r}{', at ' if lines else ''}{' and '.join(lines)}")
    return [found[name] for name in sorted(found)]


def type_of(value: Value) -> str:
    """The type as text: `[n + 2][3] float32`, `(float32, float32)`."""
    match value:
        case Array():
            element = type_of(value.element)
            return f"[{shown(value.extent)}]{'' if element.startswith('[') else ' '}{element}"
        case tuple():
            return f"({', '.join(type_of(v) for v in value)})"
    return scalar_types([as_term(value)], Place("value"))[0]


def _described(value: object) -> str:
    return type_of(value) if isinstance(value, Term | tuple) else type(value).__name__


def image(name: str, type: Type, *extents: Extent) -> Array:
    """An input as an array of arrays. Extents are from the outermost axis to the innermost, as in the shape of a NumPy
    array; its dims are `x, y, c, d, e`, the innermost axis first."""
    if not 1 <= len(extents) <= len(AXES):
        raise Place(f"image {name!r}").error(f"an image has 1 to {len(AXES)} axes")
    shape = tuple(index_of(e) for e in extents)
    grid = Grid(Image(name, type, *AXES[: len(shape)]), (type.name,), len(shape), {name: shape})
    found = grid.read([(extent, 0) for extent in shape], ())
    assert isinstance(found, Array)
    return found


def known_sizes(images: Shapes) -> dict[str, Index]:
    """Names of sizes, as what the extents of images say of them."""
    sizes: dict[str, Index] = {}
    for name, shape in sorted(images.items()):
        for dim, extent in zip(AXES, reversed(shape), strict=False):
            match extent.terms:
                case ((Atom(kind="sym") as size, times),) if times > 0:
                    sizes.setdefault(size.key, divide(sym(f"{name}.extent.{dim}") - extent.const, times))
    return sizes

"""Pipelines written in functional patterns over arrays with sizes, as in RISE (Koehler and Steuwer, CGO 2021).

A blur of rows; `>>` hands a value to the next function, and `let` names a stage:

>>> from tilesmith.scheduler.frontends.python.frontend import uint16
>>> from tilesmith.scheduler.frontends.python import patterns as p
>>> n, m = p.Size("n"), p.Size("m")
>>> input = p.image("input", uint16, n, m + 2)
>>> blur_x = p.map(p.slide(3) >> p.map(lambda w: (w >> p.reduce(p.add, 0)) // 3))
>>> input >> blur_x
<[n][m] uint16>
>>> blur = p.pipeline("blur", {"soft": input >> blur_x}, sizes={n: 2560, m: 1536})

Nothing is computed where it is written: an element of an array is an expression of the elements that it is made of,
and what has no name is computed wherever it is read.

>>> from tilesmith.scheduler.ir.pipeline.printer import to_text
>>> to_text(blur.stage("soft").values[0])
'(input(x - 1, y) + input(x, y) + input(x + 1, y)) // 3'

Sizes have to fit, for whatever `n` and `m` are:

>>> p.zip(input, p.transpose(input))  # doctest: +ELLIPSIS
Traceback (most recent call last):
    ...
tilesmith.scheduler.frontends.python.arrays.PatternError: zip at ...: the arrays have different lengths: [n][m + 2]...
"""

from __future__ import annotations

import builtins
import inspect
import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.frontends.python.arrays import (
    AXES,
    Array,
    Fold,
    Grid,
    Let,
    PatternError,
    Place,
    Read,
    Value,
    Within,
    array_of,
    declared,
    free_symbols,
    image,
    known_sizes,
    open_terms,
    scalar_replaced,
    scalar_types,
    type_of,
)
from tilesmith.scheduler.frontends.python.frontend import (
    Boundary,
    Image,
    Spans,
    Stage,
    document,
    maximum,
    minimum,
    select,
)
from tilesmith.scheduler.frontends.python.sizes import Axis, Size, exact_quotient, quotient, remainder
from tilesmith.scheduler.frontends.python.terms import Term, Var, as_term
from tilesmith.scheduler.ir.index import Index, const, multiply, sym
from tilesmith.scheduler.ir.index import maximum as larger
from tilesmith.scheduler.ir.index import minimum as smaller
from tilesmith.scheduler.ir.pipeline.pipeline import BoundaryKind, Pipeline

add, mul = operator.add, operator.mul

WRITTEN_OUT: Final = 32  # elements that a reduction is written out for; more of them are a loop
_LOOPS: Final[dict[Callable[..., Any], tuple[str, int | None]]] = {  # and what changes nothing
    add: ("sum", 0),
    mul: ("product", 1),
    minimum: ("min", None),
    maximum: ("max", None),
}


class Pattern:
    """A function of an array. `f >> g` is f, then g."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def __call__(self, value: Any) -> Any:
        return self._function(value)

    def __rshift__(self, then: Callable[[Any], Any]) -> Pattern:
        return Pattern(lambda value: then(self._function(value)))


def map(function: Callable[..., Any]) -> Pattern:
    """`(s -> t) -> [n]s -> [n]t`: the function of each element. A function of several arguments takes a tuple apart."""
    place = Place("map")

    def apply(value: Any) -> Array:
        array = array_of(value, place)
        return Array(array.extent, lambda i: _checked(_called(function, array.at(i)), place), array.origin)

    return Pattern(apply)


def zip(*values: Any) -> Array:
    """`[n]s -> [n]t -> [n](s, t)`: tuples of elements at the same place, of two arrays or more."""
    place = Place("zip")
    arrays = [array_of(v, place) for v in values]
    if len(arrays) < 2:
        raise place.error("two arrays or more are needed")
    if len({a.extent for a in arrays}) > 1:
        raise place.error(f"the arrays have different lengths: {', '.join(type_of(a) for a in arrays)}")
    return Array(arrays[0].extent, lambda i: tuple(a.at(i) for a in arrays), arrays[0].origin)


def reduce(function: Callable[[Any, Any], Any], start: Value) -> Pattern:
    """`(t -> s -> t) -> t -> [n]s -> t`: from the start, the function of what there is and the next element.

    Up to 32 elements are written out, and the integer 0 is not added to anything. Of more, or where their number is
    a size, the function is `add`, `mul`, `minimum` or `maximum`.
    """
    place = Place("reduce")

    def apply(value: Any) -> Any:
        array = array_of(value, place)
        if not array.extent.is_const or array.extent.const > WRITTEN_OUT:
            return _loop(function, start, array, place)
        result: Any = start
        for k in range(array.extent.const):
            result = function(result, array.at(const(k)))
        result = _checked(result, place)
        if not isinstance(start, int | float) and type_of(start) != type_of(result):
            raise place.error(f"the function gives {type_of(result)}, and the start is {type_of(start)}")
        return result

    return Pattern(apply)


def _loop(function: Callable[[Any, Any], Any], start: Value, array: Array, place: Place) -> Term:
    if function not in _LOOPS:
        known = "add, mul, minimum or maximum"
        raise place.error(f"of more than {WRITTEN_OUT} elements the function has to be {known}: {type_of(array)}")
    if not isinstance(array.element, Term):
        raise place.error(f"the elements have to be numbers, not those of {type_of(array)}")
    operation, neutral = _LOOPS[function]
    folded = Fold(operation, array.element, array.axis, array.extent)
    whole = folded if isinstance(start, int) and start == neutral else as_term(function(start, folded))
    scalar_types([whole], place)
    return whole


def slide(size: int, step: int = 1) -> Pattern:
    """`[step*n + size - step]t -> [n][size]t`: windows of so many neighbours, each so much further than the last. By
    steps of one, windows have the index of the element in their middle."""
    place = Place("slide")
    _positive(place, size=size, step=step)

    def apply(value: Any) -> Array:
        array = array_of(value, place)
        count = exact_quotient(array.extent - size + step, step)
        if count is None or (count.is_const and count.const < 1):
            raise place.error(f"no number of windows of {size}, {step} apart, are all of {type_of(array)}")
        origin = array.origin + size // 2 if step == 1 else 0
        return Array(count, lambda i: Array(const(size), lambda j: array.at(i.scaled(step) + j)), origin)

    return Pattern(apply)


def split(size: int) -> Pattern:
    """`[size*n]t -> [n][size]t`: arrays of so many elements."""
    place = Place("split")
    _positive(place, size=size)

    def apply(value: Any) -> Array:
        array = array_of(value, place)
        count = exact_quotient(array.extent, size)
        if count is None:
            raise place.error(f"{size} does not divide the length of {type_of(array)}")
        return Array(count, lambda i: Array(const(size), lambda j: array.at(i.scaled(size) + j)))

    return Pattern(apply)


def join(value: Any) -> Array:
    """`[n][m]t -> [n*m]t`: the rows, one after the other."""
    place = Place("join")
    array, row = _rows(value, place)
    extent = multiply(array.extent, row.extent)
    return Array(extent, lambda k: _element(array, quotient(k, row.extent), remainder(k, row.extent)))


def transpose(value: Any) -> Array:
    """`[n][m]t -> [m][n]t`: rows as columns."""
    place = Place("transpose")
    array, row = _rows(value, place)
    return Array(row.extent, lambda j: Array(array.extent, lambda i: _element(array, i, j), array.origin), row.origin)


def pad(left: int, right: int, boundary: Boundary) -> Pattern:
    """`[n]t -> [left + n + right]t`: what lies before and behind by a boundary, `repeat_edge`, `constant(0)`, ..."""
    place = Place("pad")
    if left < 0 or right < 0:
        raise place.error(f"{min(left, right)} elements cannot be added: `drop` takes some away")

    def apply(value: Any) -> Array:
        array = array_of(value, place)

        def element(k: Index) -> Value:
            found = array.at(_inside(boundary.kind, k - left, array.extent))
            return found if boundary.value is None else _where(Within(k - left, array.extent), found, boundary.value)

        return Array(array.extent + left + right, lambda k: _checked(element(k), place), array.origin - left)

    return Pattern(apply)


def drop(left: int, right: int = 0) -> Pattern:
    """`[left + n + right]t -> [n]t`: what is left without the first and the last."""
    place = Place("drop")

    def apply(value: Any) -> Array:
        array = array_of(value, place)
        extent = array.extent - left - right
        if left < 0 or right < 0 or (extent.is_const and extent.const < 1):
            raise place.error(f"{left} and {right} elements cannot be dropped of {type_of(array)}")
        return Array(extent, lambda k: array.at(k + left), array.origin + left)

    return Pattern(apply)


def let(name: str, value: Any) -> Any:
    """The value as a stage of that name: computed once, and read from then on. In a function that `map` applies it is a
    stage over the axes of that `map`, too."""
    return _stage(name, value, Place(f"let {name!r}"))


def pipeline(
    name: str,
    outputs: Mapping[str, Any],
    sizes: Mapping[Size, int],
    doc: str = "",
    estimates: Mapping[str, Spans] | None = None,
) -> Pipeline:
    """The checked pipeline of the outputs, which become stages of these names where they are none yet.

    `sizes` are those to plan for. `estimates` replace what follows from them: of an output or image, (min, extent) of
    each dim, the innermost first.
    """
    place = Place(f"pipeline {name!r}")
    numbers = {str(size): number for size, number in sizes.items()}
    planned: dict[Stage | Image | str, Spans] = {}
    stages: list[Stage] = []
    for output, value in outputs.items():
        axes, grid = _output(output, value, place)
        planned |= {n: [(0, _number(e, numbers, place)) for e in reversed(s)] for n, s in grid.images.items()}
        planned[output] = [(axis.origin, _number(axis.extent, numbers, place)) for axis in reversed(axes)]
        assert isinstance(grid.source, Stage)
        stages.append(grid.source)
    declared(stages, place)
    planned.update(estimates or {})
    return load(document(name, stages, planned, doc))


def _stage(name: str, value: Any, place: Place) -> Value:
    axes, element = _axes(array_of(value, place) if isinstance(value, list) else value)
    terms = _scalars(element)
    if terms is None:
        raise place.error(f"the elements of a stage are numbers, or tuples of them: {type_of(value)}")
    types = scalar_types(terms, place)
    symbols = free_symbols(tuple(terms))
    outer = sorted((s for s in symbols if isinstance(s, Axis) and s not in axes), key=lambda axis: -axis.serial)
    dims = [*reversed(axes), *outer]
    if len(dims) > len(AXES):
        raise place.error(f"a stage has at most {len(AXES)} axes, and this has {len(dims)}: {type_of(value)}")
    images = {k: v for t in open_terms(element) if isinstance(t, Read) for k, v in t.grid.images.items()}
    to = known_sizes(images) | {a.key: sym(dim) - a.origin for a, dim in builtins.zip(dims, AXES, strict=False)}
    unknown = sorted(s.key for s in symbols if s.key not in to)
    if unknown:
        raise place.error(f"no extent of an image that this reads tells {', '.join(unknown)}")
    values = tuple(scalar_replaced(t, to) for t in terms)
    stage = Let(name, place.line)
    stage[tuple(Var(dim) for dim in AXES[: len(dims)])] = values if isinstance(element, tuple) else values[0]
    grid = Grid(stage, types, len(dims), images)
    return grid.read([(a.extent, a.origin) for a in axes], tuple(a.index + a.origin for a in outer))


def _axes(value: Value) -> tuple[list[Axis], Value]:
    """The axes of arrays in arrays, the outermost first, and what their element is."""
    axes: list[Axis] = []
    while isinstance(value, Array):
        axes.append(value.axis)
        value = value.element
    return axes, value


def _scalars(element: Value) -> list[Term] | None:
    """A scalar, or those of a tuple; None of anything else."""
    parts = element if isinstance(element, tuple) else (element,)
    if any(isinstance(part, tuple | Array) for part in parts):
        return None
    return [as_term(part) for part in parts if not isinstance(part, tuple | Array)]


def _output(name: str, value: Any, place: Place) -> tuple[list[Axis], Grid]:
    """The axes and the stage of an output, which `value` is already where it is all of a stage of that name."""
    axes, element = _axes(value)
    first = element[0] if isinstance(element, tuple) else element
    whole = tuple(axis.index + axis.origin for axis in reversed(axes))
    if isinstance(first, Read) and first.grid.source.name == name and first.at == whole:
        return axes, first.grid
    return _output(name, _stage(name, value, place), place)


def _number(extent: Index, sizes: Mapping[str, int], place: Place) -> int:
    unknown = [name for name in extent.symbols() if name not in sizes]
    if unknown:
        raise place.error(f"sizes has no number for {', '.join(unknown)}")
    return extent.value(sizes)


def _called(function: Callable[..., Any], element: Value) -> Any:
    """The function of an element, of its parts where it is a tuple and the function takes as many arguments."""
    if isinstance(element, tuple) and not isinstance(function, Pattern):
        kinds = [p.kind for p in inspect.signature(function).parameters.values() if p.default is p.empty]
        if len(kinds) == len(element) or inspect.Parameter.VAR_POSITIONAL in kinds:
            return function(*element)
    return function(element)


def _checked(value: Any, place: Place) -> Value:
    """The result of a function, as a value. Raises PatternError where it is none, or has no type."""
    match value:
        case Array():
            return value
        case list():
            return array_of(value, place)
        case tuple():
            return tuple(_checked(v, place) for v in value)
        case Term() | int() | float():
            if not isinstance(value, Read):
                scalar_types([as_term(value)], place)
            return value
    raise place.error(f"the function returned {type(value).__name__}, which is no value")


def _positive(place: Place, **numbers: int) -> None:
    for name, number in numbers.items():
        if number < 1:
            raise place.error(f"the {name} is {number}, and has to be 1 or more")


def _rows(value: Any, place: Place) -> tuple[Array, Array]:
    array = array_of(value, place)
    if not isinstance(array.element, Array):
        raise place.error(f"an array of arrays is needed, not {type_of(array)}")
    return array, array.element


def _element(array: Array, i: Index, j: Index) -> Value:
    row = array.at(i)
    assert isinstance(row, Array)
    return row.at(j)


def _inside(kind: BoundaryKind, index: Index, extent: Index) -> Index:
    """The index of the element that is seen there, one of `extent`."""
    match kind:
        case "repeat_image":
            index = remainder(index, extent)
        case "mirror_image":
            index = remainder(index, extent.scaled(2))
            index = smaller(index, extent.scaled(2) - 1 - index)
        case "mirror_interior":
            index = remainder(index, extent.scaled(2) - 2)
            index = smaller(index, extent.scaled(2) - 2 - index)
    return larger(const(0), smaller(index, extent - 1))


def _where(condition: Term, value: Value, other: Term) -> Value:
    """The value where the condition holds, else the other for each scalar of it."""
    match value:
        case Array():
            return Array(value.extent, lambda i: _where(condition, value.at(i), other), value.origin)
        case tuple():
            return tuple(_where(condition, v, other) for v in value)
    return select(condition, as_term(value), other)


__all__: Final = [
    "Array",
    "Pattern",
    "PatternError",
    "Size",
    "add",
    "drop",
    "image",
    "join",
    "let",
    "map",
    "mul",
    "pad",
    "pipeline",
    "reduce",
    "slide",
    "split",
    "transpose",
    "type_of",
    "zip",
]

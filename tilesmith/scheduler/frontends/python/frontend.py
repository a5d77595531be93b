"""Pipelines written in Python, close to the mathematics. What is written becomes a document and goes the way of all.

A blur, each stage a function on the integer grid:

>>> from tilesmith.scheduler.frontends.python.frontend import Image, Stage, Var, pipeline, uint16
>>> x, y = Var("x"), Var("y")
>>> input = Image("input", uint16, x, y)
>>> blur_x, blur_y = Stage("blur_x"), Stage("blur_y")
>>> blur_x[x, y] = (input[x, y] + input[x + 1, y] + input[x + 2, y]) // 3
>>> blur_y[x, y] = (blur_x[x, y] + blur_x[x, y + 1] + blur_x[x, y + 2]) // 3
>>> blur = pipeline("blur", outputs=[blur_y], estimates={blur_y: [(0, 1536), (0, 2560)]})
>>> [stage.name for stage in blur.stages]
['blur_x', 'blur_y']

Reductions run over ranges, the last one innermost; a range knows its ends, as Python's does:

>>> from tilesmith.scheduler.frontends.python.frontend import Param, Range, argmin, clamp, rsum, select
>>> from tilesmith.scheduler.frontends.python.frontend import float32, uint8, uint32
>>> r, s = Range("r", -1, 2), Range("s", -1, 2)
>>> gain = Param("gain", float32, default=1.0, min=0.0, max=8.0)
>>> mean = Stage("mean")
>>> mean[x, y] = rsum(float32(input[x + r, y + s]), r, s) * gain / 9
>>> print(mean[x, y + 1] ** 2)
mean(x, y + 1) ** 2

What is defined again is updated, in the order written; the first range made is the innermost loop, and `update`
takes the ranges and a condition where that is not wanted:

>>> level = Stage("level")
>>> level[x, y] = uint8(clamp(mean[x, y] / 256.0, 0.0, 255.0))
>>> i, j = Var("i"), Var("j")
>>> rx, ry = Range("rx", 0, 64), Range("ry", 0, 64)
>>> histogram = Stage("histogram")
>>> histogram[i] = uint32(0)
>>> histogram[level[rx, ry]] += 1

Tuples are tuples, and their components are picked with `[k]`; a choice is `select`, and bools combine with `& | ~`:

>>> rarest = Stage("rarest")
>>> k = Range("k", 0, 256)
>>> rarest[()] = argmin(histogram[k], k)
>>> marked = Stage("marked")
>>> marked[x, y] = select((level[x, y] == rarest[()][0]) & (x >= 0), 1.0, 0.0)
>>> found = pipeline("find_rarest", outputs=[marked, rarest], estimates={marked: [(0, 64), (0, 64)], rarest: []})
>>> found.stage("rarest").types
(ScalarType(kind='int', bits=32), ScalarType(kind='uint', bits=32))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, Literal, NoReturn, TypeAlias

from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.frontends.document.limits import Limits
from tilesmith.scheduler.frontends.python.terms import Operand, Range, Source, Term, Var, as_term, call, join, name_of
from tilesmith.scheduler.ir.pipeline.pipeline import BoundaryKind, Pipeline
from tilesmith.scheduler.ir.pipeline.printer import ATOM

Indices: TypeAlias = "Operand | tuple[Operand, ...]"
Spans: TypeAlias = "Sequence[tuple[int, int] | list[int]]"


class Param(Term, Source):
    """A runtime scalar."""

    def __init__(
        self,
        name: str,
        type: Type,
        default: float | bool | None = None,
        min: float | None = None,
        max: float | None = None,
    ) -> None:
        super().__init__(name, sources=frozenset((self,)))
        self.name = name
        ends = (("default", default), ("min", min), ("max", max))
        self.entry = {"name": name, "type": type.name, **{k: v for k, v in ends if v is not None}}


class _Bounds:
    """`image.min.x`, `image.extent.x`."""

    def __init__(self, image: Image, which: Literal["min", "extent"]) -> None:
        self._image, self._which = image, which

    def __getattr__(self, dim: str) -> Term:
        if dim.startswith("__"):
            raise AttributeError(dim)
        return Term(f"{self._image.name}.{self._which}.{dim}", sources=frozenset((self._image,)))


class Boundary:
    """The boundary of an image or stage, its values beyond its domain: `repeat_edge`, ..., or `constant(value)`."""

    def __init__(self, kind: BoundaryKind, value: Operand | None = None) -> None:
        self.kind, self.value = kind, None if value is None else as_term(value)


class Image(Source):
    """An input. `storage` lists the dims fastest first where that is not their order."""

    def __init__(
        self,
        name: str,
        type: Type,
        *dims: Var | str,
        boundary: Boundary | None = None,
        storage: Sequence[Var | str] | None = None,
    ) -> None:
        self.name = name
        self.entry: dict[str, Any] = {"name": name, "type": type.name, "dims": [name_of(d) for d in dims]}
        self._sources: frozenset[Source] = frozenset()
        if boundary is not None:
            self.entry["boundary"], self._sources = _boundary(boundary, None)
        if storage is not None:
            self.entry["storage"] = [name_of(d) for d in storage]

    def __getitem__(self, indices: Indices) -> Term:
        return _read(self, indices)

    def __call__(self, *indices: object) -> NoReturn:
        raise TypeError(_square(self.name))

    @property
    def min(self) -> _Bounds:
        """The first index of each dim, known at run time."""
        return _Bounds(self, "min")

    @property
    def extent(self) -> _Bounds:
        """The size of each dim, known at run time."""
        return _Bounds(self, "extent")

    def needs(self) -> Iterable[Source]:
        return self._sources


class Stage(Source):
    """A function on the grid. The first assignment defines it, at its dims; each later one is an update."""

    def __init__(
        self,
        name: str,
        *,
        type: Type | Sequence[Type] | None = None,
        boundary: Boundary | None = None,
        domain: Sequence[tuple[Operand, Operand]] | None = None,
        storage: Sequence[Var | str] | None = None,
    ) -> None:
        self.name = name
        self.entry: dict[str, Any] = {"name": name}
        self._sources: set[Source] = set()
        self._defined = False
        if type is not None:
            self.entry["type"] = type.name if isinstance(type, Type) else [t.name for t in type]
        if boundary is not None:
            self.entry["boundary"], sources = _boundary(boundary, domain)
            self._sources |= sources
        if storage is not None:
            self.entry["storage"] = [name_of(d) for d in storage]

    def __getitem__(self, indices: Indices) -> Term:
        return _read(self, indices)

    def __call__(self, *indices: object) -> NoReturn:
        raise TypeError(_square(self.name))

    def __setitem__(self, indices: Indices, value: Operand | tuple[Operand, ...]) -> None:
        if self._defined:
            self.update(indices, value)
            return
        dims = indices if isinstance(indices, tuple) else (indices,)
        if not all(isinstance(d, Var) for d in dims):
            raise TypeError(f"the first definition of {self.name!r} is at its dims, each a Var")
        self.entry["dims"] = [d.name for d in dims if isinstance(d, Var)]
        self.entry["value"] = self._values(value)
        self._defined = True

    def update(
        self,
        at: Indices,
        value: Operand | tuple[Operand, ...],
        *,
        over: Sequence[Range] | None = None,
        where: Term | None = None,
    ) -> None:
        """Redefine the points `at`, for all values of the ranges `over`, the last of them outermost.

        Without `over`: all ranges that occur, in the order in which they were made.
        """
        indices = [as_term(i) for i in (at if isinstance(at, tuple) else (at,))]
        values = [as_term(v) for v in (value if isinstance(value, tuple) else (value,))]
        parts = [*indices, *values, *([] if where is None else [where])]
        ranges = (
            list(over) if over is not None else sorted({r for p in parts for r in p.ranges}, key=attrgetter("serial"))
        )
        entry: dict[str, Any] = {"domain": {r.name: [r.lo.text, r.extent.text] for r in ranges}}
        if where is not None:
            entry["where"] = where.text
        entry["at"] = [i.text for i in indices]
        entry["value"] = self._values(value)
        for part in [*parts, *(end for r in ranges for end in (r.lo, r.extent))]:
            self._sources |= part.sources
        self.entry.setdefault("updates", []).append(entry)

    def _values(self, value: Operand | tuple[Operand, ...]) -> str | list[str]:
        terms = [as_term(v) for v in (value if isinstance(value, tuple) else (value,))]
        for term in terms:
            self._sources |= term.sources
        return [t.text for t in terms] if isinstance(value, tuple) else terms[0].text

    def needs(self) -> Iterable[Source]:
        if not self._defined:
            raise ValueError(f"the stage {self.name!r} is used but never defined")
        return self._sources


class Type:
    """A scalar type: declares with it, and converts by calling it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, value: Operand) -> Term:
        return call(self.name, value)

    def __repr__(self) -> str:
        return self.name


def pipeline(
    name: str,
    outputs: Sequence[Stage],
    estimates: Mapping[Stage | Image | str, Spans],
    doc: str = "",
    limits: Limits | None = None,
) -> Pipeline:
    """The checked pipeline that computes `outputs`, with everything that they need. Raises DocumentError.

    `estimates`: (min, extent) per dim of each output, the sizes to plan for; of other stages and images where useful.
    """
    return load(document(name, outputs, estimates, doc), limits or Limits())


def document(
    name: str, outputs: Sequence[Stage], estimates: Mapping[Stage | Image | str, Spans], doc: str = ""
) -> dict[str, Any]:
    """The document of that pipeline, as written: not checked, not canonical."""
    entries: dict[str, list[dict[str, Any]]] = {"params": [], "inputs": [], "stages": []}
    for source in sorted(reached(outputs), key=lambda s: s.name):
        match source:
            case Param():
                entries["params"].append(source.entry)
            case Image():
                entries["inputs"].append(source.entry)
            case Stage():
                entries["stages"].append(source.entry)
    result: dict[str, Any] = {"format": 1, "name": name, **({"doc": doc} if doc else {}), **entries}
    result["outputs"] = [s.name for s in outputs]
    names = {k if isinstance(k, str) else k.name: v for k, v in estimates.items()}
    result["estimates"] = {k: [list(span) for span in v] for k, v in names.items()}
    return result


def reached(outputs: Sequence[Stage]) -> tuple[Source, ...]:
    """The outputs and everything that they need: stages, images, params."""
    seen: dict[Source, None] = {}
    waiting: list[Source] = list(reversed(outputs))
    while waiting:
        source = waiting.pop()
        if source not in seen:
            seen[source] = None
            waiting += sorted(source.needs(), key=lambda s: s.name, reverse=True)
    return tuple(seen)


def _square(name: str) -> str:
    return f"in Python {name} is read with square brackets: {name}[x, y] (documents have {name}(x, y))"


def _read(source: Image | Stage, indices: Indices) -> Term:
    read = call(source.name, *(indices if isinstance(indices, tuple) else (indices,)))
    return Term(read.text, ATOM, read.sources | {source}, read.ranges, read.parts, lambda *to: _read(source, to))


def _boundary(
    b: Boundary, domain: Sequence[tuple[Operand, Operand]] | None
) -> tuple[dict[str, Any], frozenset[Source]]:
    if not isinstance(b, Boundary):
        kinds = "repeat_edge, repeat_image, mirror_image, mirror_interior or constant(value)"
        raise TypeError(f"a boundary is {kinds} of tilesmith.language, not {b!r}")
    pairs = [[as_term(end) for end in pair] for pair in domain or ()]
    entry: dict[str, Any] = {"kind": b.kind}
    if b.value is not None:
        entry["value"] = b.value.text
    if domain is not None:
        entry["domain"] = [[end.text for end in pair] for pair in pairs]
    parts = [*(end for pair in pairs for end in pair), *([] if b.value is None else [b.value])]
    return entry, frozenset().union(*(p.sources for p in parts))


def _function(name: str) -> Callable[..., Term]:
    def function(*args: Operand) -> Term:
        return call(name, *args)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{name}(...)` of the language."
    return function


def _reduction(name: str) -> Callable[..., Term]:
    def reduction(value: Operand, *over: Range, where: Term | None = None) -> Term:
        if not over:
            raise TypeError("a reduction runs over at least one range")

        def again(value: Term, *test: Term) -> Term:
            return reduction(value, *over, where=test[0] if test else None)

        term, test = as_term(value), [] if where is None else [where]
        loops = " ".join(r.loop() for r in over)
        condition = "" if where is None else f" if {where.text}"
        joined = join(
            f"{name}({term.text} {loops}{condition})", ATOM, [term, *test, *(e for r in over for e in (r.lo, r.extent))]
        )
        return Term(joined.text, ATOM, joined.sources, joined.ranges - frozenset(over), (term, *test), again)

    reduction.__name__ = reduction.__qualname__ = name
    reduction.__doc__ = f"`{name}` of the first argument over the ranges, the last one innermost, `where` it holds."
    return reduction


bool_ = Type("bool")
int8, int16, int32, int64 = (Type(f"int{bits}") for bits in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (Type(f"uint{bits}") for bits in (8, 16, 32, 64))
float32, float64 = Type("float32"), Type("float64")
sat_int8, sat_int16, sat_int32, sat_int64 = (_function(f"sat_int{bits}") for bits in (8, 16, 32, 64))
sat_uint8, sat_uint16, sat_uint32, sat_uint64 = (_function(f"sat_uint{bits}") for bits in (8, 16, 32, 64))

repeat_edge, repeat_image = Boundary("repeat_edge"), Boundary("repeat_image")
mirror_image, mirror_interior = Boundary("mirror_image"), Boundary("mirror_interior")


def constant(value: Operand) -> Boundary:
    """A boundary of one value."""
    return Boundary("constant", value)


minimum, maximum, clamp, absd = _function("min"), _function("max"), _function("clamp"), _function("absd")
lerp, mux, select, random = _function("lerp"), _function("mux"), _function("select"), _function("random")
sat_add, sat_sub = _function("sat_add"), _function("sat_sub")
halving_add, rounding_halving_add = _function("halving_add"), _function("rounding_halving_add")
rounding_shift_right, mul_shift_right = _function("rounding_shift_right"), _function("mul_shift_right")
popcount, count_leading_zeros = _function("popcount"), _function("count_leading_zeros")
count_trailing_zeros = _function("count_trailing_zeros")
as_int32, as_uint32, as_float32 = _function("as_int32"), _function("as_uint32"), _function("as_float32")
as_int64, as_uint64, as_float64 = _function("as_int64"), _function("as_uint64"), _function("as_float64")
sqrt, exp, log, power = _function("sqrt"), _function("exp"), _function("log"), _function("pow")
sin, cos, tan, tanh = _function("sin"), _function("cos"), _function("tan"), _function("tanh")
asin, acos, atan, atan2 = _function("asin"), _function("acos"), _function("atan"), _function("atan2")
floor, ceil, round_, trunc = _function("floor"), _function("ceil"), _function("round"), _function("trunc")

rsum, rproduct, rmin, rmax = _reduction("sum"), _reduction("product"), _reduction("min"), _reduction("max")
rany, rall, argmin, argmax = _reduction("any"), _reduction("all"), _reduction("argmin"), _reduction("argmax")

__all__: Final = [
    "Boundary",
    "Image",
    "Param",
    "Range",
    "Stage",
    "Term",
    "Var",
    "absd",
    "acos",
    "argmax",
    "argmin",
    "as_float32",
    "as_float64",
    "as_int32",
    "as_int64",
    "as_uint32",
    "as_uint64",
    "asin",
    "atan",
    "atan2",
    "bool_",
    "ceil",
    "clamp",
    "constant",
    "cos",
    "count_leading_zeros",
    "count_trailing_zeros",
    "document",
    "exp",
    "float32",
    "float64",
    "floor",
    "halving_add",
    "int8",
    "int16",
    "int32",
    "int64",
    "lerp",
    "log",
    "maximum",
    "minimum",
    "mirror_image",
    "mirror_interior",
    "mul_shift_right",
    "mux",
    "pipeline",
    "popcount",
    "power",
    "rall",
    "random",
    "rany",
    "repeat_edge",
    "repeat_image",
    "rmax",
    "rmin",
    "round_",
    "rounding_halving_add",
    "rounding_shift_right",
    "rproduct",
    "rsum",
    "sat_add",
    "sat_int8",
    "sat_int16",
    "sat_int32",
    "sat_int64",
    "sat_sub",
    "sat_uint8",
    "sat_uint16",
    "sat_uint32",
    "sat_uint64",
    "select",
    "sin",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]  # fmt: skip

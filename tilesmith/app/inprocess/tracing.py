"""Functions of images that define pipelines: traced once for each types of their arguments, then called compiled."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from html import escape
from threading import Lock
from typing import Any, TypeAlias, overload

import numpy as np

from tilesmith.app.inprocess.compile import compile
from tilesmith.app.inprocess.compiled import CompiledPipeline
from tilesmith.app.inprocess.images import Array, as_array
from tilesmith.app.inprocess.layout import Layouts, region_of
from tilesmith.app.inprocess.signature import OPTIONS, Scalars, Signature
from tilesmith.app.runtime.axes import misplaced_channels, transposed
from tilesmith.scheduler.compiler import Options
from tilesmith.scheduler.errors import TilesmithError
from tilesmith.scheduler.frontends.python import frontend
from tilesmith.scheduler.frontends.python.frontend import Boundary, Image, Param, Spans, Stage, Type, reached
from tilesmith.scheduler.ir.pipeline.arguments import ArgumentError
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.pipeline.types import TYPES

Kind: TypeAlias = tuple[np.dtype[Any] | type, int | None]
"""The type of an argument: its elements', and the number of dims of an image, None of a scalar."""
AXES = ("x", "y", "c", "d", "e")
_SCALARS: dict[type, str] = {bool: "bool", int: "int32", float: "float32"}
_TYPES = frozenset(t.numpy for t in TYPES.values())


class TraceError(TilesmithError):
    """A function that defines no pipeline; the message names it."""

    code = "bad_function"


class TracedPipeline:
    """A function of images as a pipeline. A call with arrays traces it, the first time for these types and numbers of
    dims: it is given an `Image` for each array and a `Param` for each number, and returns the stages that are the
    outputs. The pipeline is planned for the sizes of that call. `compiled` gives what a call would use."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        boundary: Boundary | Mapping[str, Boundary] | None = None,
        dims: Mapping[str, Sequence[str]] | None = None,
        sizes: Mapping[str, Spans] | None = None,
        platform: object = "host",
        options: Options | None = None,
        threads: int | None = None,
    ) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._signature = inspect.signature(function)
        self._names = tuple(self._signature.parameters)
        self._all = set(self._names)
        every = self._signature.parameters.values()
        if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in every):
            raise TraceError(f"{function.__name__}{self._signature}: a pipeline has a fixed number of arguments")
        self._positional = tuple(p.name for p in every if p.kind is not p.KEYWORD_ONLY)
        self._defaults = {p.name: p.default for p in every if p.default is not p.empty}
        self._declared = {name: p for name, p in self._defaults.items() if isinstance(p, Param)}
        self._options = {name + "_" * (name in self._names): name for name in OPTIONS}
        self._boundary, self._dims, self._sizes = boundary, dims or {}, sizes or {}
        self._platform, self._compile_options, self._threads = platform, options, threads
        self._compiled: dict[tuple[Kind, ...], CompiledPipeline] = {}
        self._tracing = Lock()

    def __reduce__(self) -> str:
        return self._function.__qualname__  # as functions are, by name

    def __repr__(self) -> str:
        return f"<pipeline {self._function.__name__}{self._signature}, traced for {len(self._compiled)} types>"

    def _repr_html_(self) -> str:
        return f"<div><p>{escape(repr(self))}</p>{''.join(c._repr_html_() for c in self._compiled.values())}</div>"

    def __call__(self, *args: Any, **named: Any) -> Any:
        """The outputs for these arrays and numbers; options are those of `CompiledPipeline`."""
        options = {self._options[name]: named.pop(name) for name in tuple(named) if name in self._options}
        values = self._bound(args, named)
        compiled = self._for(values)
        images = [values[name] for name in compiled.signature.inputs]
        params = {name: values[name] for name in compiled.signature.params if name in values}
        if options:
            own = {wanted: name for name, wanted in compiled.signature.options.items()}
            params |= {own[name]: value for name, value in options.items()}
        return compiled(*images, **params)

    def compiled(self, *args: Any, **named: Any) -> CompiledPipeline:
        """The compiled pipeline that a call with these arguments uses; it is traced now where it was not before."""
        return self._for(self._bound(args, named))

    def _bound(self, args: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        """The arguments by name, images as arrays. Raises ArgumentError."""
        passed = dict(zip(self._positional, args, strict=False))
        values = {**self._defaults, **passed, **named}
        if len(args) > len(passed) or values.keys() != self._all or not passed.keys().isdisjoint(named):
            try:
                self._signature.bind(*args, **named)
            except TypeError as error:
                raise ArgumentError(f"{self._function.__name__}{self._signature}: {error}") from None
        found = {}
        for name in self._names:
            value = values[name]
            if type(value) in _SCALARS or isinstance(value, np.number | np.bool_):
                found[name] = value
            elif not isinstance(value, Param):  # else the function's default, which the pipeline has
                found[name] = _image(value, name)
        return found

    def _for(self, values: dict[str, Any]) -> CompiledPipeline:
        key = tuple([_kind(value) for name, value in values.items() if name not in self._declared])
        found = self._compiled.get(key)
        if found is None:
            with self._tracing:
                found = self._compiled.get(key)
                if found is None:
                    traced = self._traced(values)
                    found = compile(traced, self._platform, self._compile_options, threads=self._threads)
                    self._compiled[key] = found
        return found

    def _traced(self, values: dict[str, Any]) -> Pipeline:
        """The pipeline of arguments like these, planned for their sizes. Raises TraceError, DocumentError."""
        arguments = {name: self._argument(name, values.get(name)) for name in self._names}
        made = self._function(**arguments)
        outputs = list(made) if isinstance(made, tuple | list) else [made]
        if not outputs or not all(isinstance(o, Stage) for o in outputs):
            raise TraceError(
                f"{self._function.__name__} returns {type(made).__name__}, not the stages that are the outputs: define "
                'one, as result = Stage("result"); result[x, y] = ..., and return it'
            )
        used = {source for source in reached(outputs) if not isinstance(source, Stage)}
        unused = [name for name, argument in arguments.items() if argument not in used]
        if unused:
            raise TraceError(f"{self._function.__name__}: no output depends on {', '.join(unused)}: leave it out")
        images = [i for i in arguments.values() if isinstance(i, Image)]
        places = {i.name: region_of(values[i.name].shape) for i in images}
        spans: dict[Stage | Image | str, Spans] = {o.name: self._span(o, images) for o in outputs}
        spans.update(places)
        pipeline = frontend.pipeline(self._function.__name__, outputs, spans, inspect.getdoc(self._function) or "")
        layouts = Layouts(pipeline)
        params = {name: value for name, value in values.items() if any(p.name == name for p in pipeline.params)}
        scalars: Scalars = Signature(pipeline, layouts.bounds, {}).scalars(params)
        regions = layouts.largest(places, scalars.bounds)
        return replace(pipeline, estimates=tuple(sorted((dict(pipeline.estimates) | regions).items())))

    def _argument(self, name: str, value: Any) -> Image | Param:
        """The image or the param that stands for an argument."""
        if name in self._declared:
            return self._declared[name]
        element, rank = _kind(value)
        type_ = Type(_SCALARS[element] if isinstance(element, type) else element.name)
        if rank is None:
            return Param(name, type_, self._defaults.get(name))
        order = None if name in self._dims else misplaced_channels(value.shape, AXES[:rank])
        if order is not None:
            axes = f"({', '.join(AXES[rank - 1 :: -1])})"
            mended = f"pass {name}{transposed(order)}, or say its `dims`"
            raise ArgumentError(
                f"argument {name!r} has the axes {axes}, this array has the shape {value.shape}: {mended}"
            )
        boundary = self._boundary.get(name) if isinstance(self._boundary, Mapping) else self._boundary
        return Image(name, type_, *self._dims.get(name, AXES[:rank]), boundary=boundary)

    def _span(self, output: Stage, images: Sequence[Image]) -> Spans:
        """A size of an output to begin with: its own, or one point, which grows as far as images reach."""
        if output.name in self._sizes:
            return self._sizes[output.name]
        dims = output.entry.get("dims", ())
        known = {dim for image in images for dim in image.entry["dims"]}
        if not known.issuperset(dims):
            free = ", ".join(d for d in dims if d not in known)
            raise TraceError(
                f"the size of output {output.name!r} along {free} follows from no image: say it, as "
                f"@pipeline(sizes={{{output.name!r}: [(0, 256)]}}), (min, extent) per dim"
            )
        return [(0, 1)] * len(dims)


def _image(value: Any, name: str) -> Array:
    if type(value) is np.ndarray and value.dtype in _TYPES and value.size:
        return value
    what = f"argument {name!r}"
    array = as_array(np.asarray(value) if isinstance(value, list | tuple) else value, what)
    if array.dtype.newbyteorder("=") not in _TYPES:
        raise ArgumentError(f"{what} is an array of {array.dtype}: pass one of {', '.join(TYPES)}")
    if not array.size:
        raise ArgumentError(f"{what} has the shape {array.shape} and no elements: pass one with some")
    return array


def _kind(value: Any) -> Kind:
    """The type of an argument. Raises ArgumentError for a number that no scalar of the language is."""
    if isinstance(value, np.ndarray):
        return value.dtype, value.ndim
    kind = type(value)
    if kind in _SCALARS:
        return kind, None
    if value.dtype not in _TYPES:
        raise ArgumentError(f"a {value.dtype} is no number that pipelines have: pass one of {', '.join(TYPES)}")
    return value.dtype, None


@overload
def pipeline(function: Callable[..., Any], /) -> TracedPipeline: ...


@overload
def pipeline(
    *,
    boundary: Boundary | Mapping[str, Boundary] | None = None,
    dims: Mapping[str, Sequence[str]] | None = None,
    sizes: Mapping[str, Spans] | None = None,
    platform: object = "host",
    options: Options | None = None,
    threads: int | None = None,
) -> Callable[[Callable[..., Any]], TracedPipeline]: ...


def pipeline(function: Callable[..., Any] | None = None, /, **settings: Any) -> Any:
    """Decorator: the function as a pipeline that is called with arrays.

    `boundary` of images, one for all or by name; `dims` of images by name, where they are not x, y, c, ...; `sizes`,
    (min, extent) per dim, of outputs whose dims no image has; the others as `compile` takes them.
    """
    if function is None:
        return functools.partial(TracedPipeline, **settings)
    return TracedPipeline(function)

"""Signature of a pipeline as a function: what of a call is an image, a param, an output or an option."""

from __future__ import annotations

import difflib
import inspect
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from keyword import iskeyword
from typing import Any

import numpy as np

from tilesmith.scheduler.ir.pipeline.arguments import ArgumentError, Region, Scalar, checked_params, checked_regions
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline

OPTIONS = ("out", "region", "threads", "origin")
MAX_THREADS = 4096
_KEPT = 256


@dataclass(frozen=True, slots=True)
class Scalars:
    """Params of a call: by name, and as the C interface has them, eight bytes each. `bounds` are those that regions may
    depend on."""

    values: dict[str, Scalar]
    packed: bytes
    bounds: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Given:
    """A call taken apart; options that were not given are None."""

    images: Sequence[object]
    params: Scalars
    out: Any = None
    region: Any = None
    threads: int | None = None
    origin: Any = None


class Signature:
    """The signature of `pipeline`. Images are passed by position, in the order of the document, or by name; params by
    name; an option whose name is taken by either has a `_` behind its name. `bounds` are the params that regions may
    depend on, `weights` images that need not be given; `tables` are where those begin that the pipeline has."""

    def __init__(self, pipeline: Pipeline, bounds: tuple[str, ...], weights: Mapping[str, object]) -> None:
        self.pipeline = pipeline
        self.inputs = tuple(i.name for i in pipeline.inputs)
        self.params = tuple(p.name for p in pipeline.params)
        taken = {*self.inputs, *self.params}
        self.options = {name + "_" * (name in taken): name for name in OPTIONS}
        self._bounds, self._weights = bounds, weights
        self.tables = tuple(
            (i.name, tuple(lo for lo, _ in i.table.region)) for i in pipeline.inputs if i.table is not None
        )
        self._asked = tuple(name for name in self.inputs if name not in weights)
        self._scalars = lru_cache(_KEPT)(self._checked)

    def __str__(self) -> str:
        params = [p.name if p.default is None else f"{p.name}={p.default}" for p in self.pipeline.params]
        named = [*params, *(f"{option}=None" for option in self.options)]
        return f"{self.pipeline.name}({', '.join([*self._asked, '*', *named])})"

    def of_python(self) -> inspect.Signature | None:
        """The signature as Python has it, for help and editors; None where a name is a word of Python's."""
        kinds = inspect.Parameter
        images = [kinds(name, kinds.POSITIONAL_OR_KEYWORD) for name in self._asked if not iskeyword(name)]
        defaults = [(p.name, kinds.empty if p.default is None else p.default) for p in self.pipeline.params]
        named = [*defaults, *((option, None) for option in self.options)]
        rest = [kinds(name, kinds.KEYWORD_ONLY, default=value) for name, value in named if not iskeyword(name)]
        whole = len(images) + len(rest) == len(self._asked) + len(named)
        return inspect.Signature([*images, *rest]) if whole else None

    def bind(self, images: Sequence[object], named: Mapping[str, object]) -> Given:
        """The call with these arguments. Raises ArgumentError for one that is missing, unknown or given twice."""
        if not named and len(images) == len(self.inputs):
            return Given(images, self.scalars({}))
        if len(images) > len(self.inputs):
            raise ArgumentError(f"{self} takes {_counted(self._asked)}, {len(images)} were given; params have names")
        rest = dict(named)
        for name in self.inputs[: len(images)]:
            if name in rest:
                raise ArgumentError(f"input {name!r} was given twice, by position and by name")
        weights = {name: value for name, value in self._weights.items() if name in self.inputs[len(images) :]}
        rest = weights | rest
        missing = [name for name in self.inputs[len(images) :] if name not in rest]
        options = {self.options[name]: rest.pop(name) for name in tuple(rest) if name in self.options}
        all_images = (*images, *(rest.pop(name) for name in self.inputs[len(images) :] if name in rest))
        for name in rest:
            if name not in self.params:
                raise ArgumentError(self._unknown(name))
        if missing:
            raise ArgumentError(f"input {missing[0]!r} is missing: {self}")
        return Given(all_images, self.scalars(rest), **_checked_options(options))

    def scalars(self, given: Mapping[str, object]) -> Scalars:
        """The params with these values, and their defaults. Raises ArgumentError."""
        values = tuple([(name, _scalar(name, value)) for name, value in given.items()])
        return self._scalars(values, repr(values))  # 1, 1.0 and True are equal, and so are 0.0 and -0.0

    def _checked(self, given: tuple[tuple[str, Scalar], ...], _: str) -> Scalars:
        try:
            arrays = checked_params(self.pipeline, dict(given))
        except ArgumentError as error:
            raise ArgumentError(f"{error}: {self}") from None
        values = {name: array.item() for name, array in arrays.items()}
        packed = b"".join(arrays[p.name].astype(p.type.numpy).tobytes().ljust(8, b"\0") for p in self.pipeline.params)
        return Scalars(values, packed, tuple(values[name] for name in self._bounds))

    def _unknown(self, name: str) -> str:
        known = (*self.inputs, *self.params, *self.options)
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
        return f"{self.pipeline.name} has no argument {name!r}: {hint}"

    def regions(self, given: Any) -> dict[str, Region]:
        """The option `region` as regions by output: (min, extent) per dim in the order of the dims, or by their names;
        of several outputs, by the names of those that have one. Raises ArgumentError."""
        if given is None:
            return {}
        outputs = self.pipeline.outputs
        if not (isinstance(given, Mapping) and given and given.keys() <= set(outputs)):
            if len(outputs) > 1:
                raise ArgumentError(f"region: there are several outputs, name each: {{{outputs[0]!r}: ..., ...}}")
            given = {outputs[0]: given}
        made = {name: self._region(name, region) for name, region in given.items()}
        return checked_regions(self.pipeline, made)

    def origins(self, given: Any) -> dict[str, tuple[int, ...]]:
        """The option `origin` as the first point of images by input, in the order of the dims; of one input it needs no
        name. Raises ArgumentError."""
        if not isinstance(given, Mapping):
            if len(self.inputs) > 1:
                raise ArgumentError(f"origin: there are several inputs, name each: {{{self.inputs[0]!r}: ..., ...}}")
            given = {self.inputs[0]: given}
        dims = {i.name: i.dims for i in self.pipeline.inputs}
        found: dict[str, tuple[int, ...]] = {}
        for name, point in given.items():
            if name not in dims:
                raise ArgumentError(f"origin: there is no input {name!r}; inputs: {', '.join(dims)}")
            try:
                found[name] = tuple([operator.index(n) for n in point])
            except TypeError:
                found[name] = ()
            if len(found[name]) != len(dims[name]):
                raise ArgumentError(f"origin of {name!r}: expected ({', '.join(dims[name])}), not {point!r}")
        return found

    def _region(self, output: str, given: Any) -> Region:
        dims = self.pipeline.stage(output).dims
        try:
            pairs = [given[dim] for dim in dims] if isinstance(given, Mapping) else list(given)
            return tuple([(int(low), int(extent)) for low, extent in pairs])
        except (TypeError, ValueError, KeyError):
            form = ", ".join(f"(min of {d}, extent of {d})" for d in dims)
            raise ArgumentError(f"region of {output!r}: expected [{form}], not {given!r}") from None


def _scalar(name: str, value: object) -> Scalar:
    """A number, bool or 0-d array as a number of Python's. Raises ArgumentError."""
    kind = type(value)
    if kind is float or kind is int or kind is bool:
        return value  # type: ignore[return-value]  # one of the three
    if isinstance(value, np.generic | np.ndarray) and value.ndim == 0 and value.dtype.kind in "buif":
        item = value.item()
        return item if isinstance(item, int) else float(item)
    raise ArgumentError(f"param {name} is a number, not a {kind.__name__}")


def _checked_options(options: dict[str, Any]) -> dict[str, Any]:
    threads = options.get("threads")
    if threads is not None:
        check_threads(threads)
    return options


def check_threads(threads: object) -> None:
    """Raises ArgumentError for a number of threads that there cannot be."""
    if not isinstance(threads, int) or isinstance(threads, bool) or not 1 <= threads <= MAX_THREADS:
        raise ArgumentError(f"threads must be a whole number from 1 to {MAX_THREADS}, not {threads!r}")


def _counted(names: Iterable[str]) -> str:
    listed = tuple(names)
    return f"{len(listed)} image{'s' * (len(listed) != 1)} ({', '.join(listed)})"

"""A tensor program that is being written: inputs, stages, weights; in the end, a pipeline."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tilesmith.scheduler.errors import DocumentError, Problem
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.frontends.document.functions import FUNCTIONS
from tilesmith.scheduler.frontends.importer import ImportedPipeline, ImportFailed
from tilesmith.scheduler.frontends.tensors.sizes import ONE, Shape, Size, fixed, symbol
from tilesmith.scheduler.frontends.tensors.tensor import Constant, Extents, Named, Pointwise, Refused, Tensor, axes
from tilesmith.scheduler.ir.pipeline.types import TYPES

_TAKEN = {*FUNCTIONS, "sum", "product", "any", "all", "argmin", "argmax"}
_CHANNELS = 16  # as many as a vector of 64 bytes has floats
_LONGEST, _DEEPEST = 2000, 60  # characters and brackets of an expression that another may have inside of it
WEIGHT_DIMS = ("i", "j", "k", "l", "m")


class Graph:
    """A tensor program. Operations (`pointwise.py`, `windows.py`, ...) write stages into it, front ends its inputs."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.weights: dict[str, np.ndarray[Any, np.dtype[Any]]] = {}
        self.notes: list[str] = []
        self._inputs: dict[str, dict[str, Any]] = {}
        self._weight_inputs: dict[str, dict[str, Any]] = {}
        self._stages: dict[str, dict[str, Any]] = {}
        self._estimates: dict[str, list[list[int]]] = {}
        self._made: dict[Constant | Pointwise | Extents, Named] = {}
        self._bounded: dict[tuple[str, str, str], Named] = {}

    # --- what tensors are made of

    def input(self, name: str, type: str, sizes: Sequence[int | Size | None], estimate: int = 1) -> Named:
        """An input. A size that is None is its own extent, `estimate` in the plan."""
        _check_type(type)
        own, dims = self._fresh(name), axes(len(sizes))
        shape = tuple(
            symbol(f"{own}.extent.{dim}", estimate) if size is None else size if isinstance(size, Size) else fixed(size)
            for dim, size in zip(dims, sizes, strict=True)
        )  # fmt: skip
        self._inputs[own] = {"name": own, "type": type, "dims": list(dims[::-1])}
        held = Named(own, type, shape, _last_first(shape))
        self._estimates[own] = _planned(held)
        return held

    def plan(self, held: Named) -> None:
        """The estimated sizes of an input, where they are others than it was made with."""
        self._estimates[held.name] = _planned(held)

    def stage(self, hint: str, type: str, shape: Shape, value: str, order: tuple[int, ...] | None = None) -> Named:
        """A stage of that value at the dims of its rank, with its axes in that order in memory."""
        _check_type(type)
        own, dims = self._fresh(hint), axes(len(shape))
        held = Named(own, type, shape, order or memory_order(shape))
        self._stages[own] = {"name": own, "dims": [dims[axis] for axis in held.order], "value": value}
        return held

    def named(self, tensor: Tensor) -> Named:
        """The tensor as what an input or stage holds."""
        match tensor:
            case Named():
                return tensor
            case Pointwise():
                if tensor not in self._made:
                    self._made[tensor] = self.stage(tensor.hint, tensor.type, tensor.shape, tensor.text)
                return self._made[tensor]
            case Constant():
                if tensor not in self._made:
                    self._made[tensor] = self._weight(tensor)
                return self._made[tensor]
            case Extents():
                if tensor not in self._made:
                    numbers = [f"int64({size})" for size in tensor.sizes]
                    value = numbers[0] if len(numbers) == 1 else f"mux(x, {', '.join(numbers)})"
                    self._made[tensor] = self.stage("sizes", tensor.type, tensor.shape, value)
                return self._made[tensor]

    def _weight(self, constant: Constant) -> Named:
        array = constant.array
        _check_type(constant.type)
        axes(array.ndim)
        wide = [axis for axis in constant.order or _last_first(constant.shape) if array.shape[axis] != 1]
        own = self._fresh(constant.hint)
        held = array.transpose([a for a in range(array.ndim) if a not in wide] + wide[::-1])
        self.weights[own] = np.ascontiguousarray(held).reshape([array.shape[a] for a in wide[::-1]])
        self._weight_inputs[own] = {"name": own, "type": constant.type, "dims": list(WEIGHT_DIMS[: len(wide)])}
        found = Named(own, constant.type, constant.shape, tuple(wide))
        self._estimates[own] = _planned(found)
        return found

    # --- how tensors are read

    def read(self, tensor: Tensor, indices: Iterable[str]) -> str:
        """The value of a tensor at indices in the order of its axes, as an expression."""
        if isinstance(tensor, Constant) and (text := literal(tensor)) is not None:
            return text
        held, given = self.named(tensor), [*indices]
        return f"{held.name}({', '.join(given[axis] for axis in held.order)})"

    def operand(self, tensor: Tensor, shape: Shape, repeated: bool = False) -> str:
        """The value of a tensor that is broadcast to `shape`, at the dims of that; `repeated`: it is written more than
        once."""
        if isinstance(tensor, Pointwise) and tensor.shape == shape and not repeated and _short(tensor.text):
            return f"({tensor.text})"
        dims = axes(len(shape))[len(shape) - len(tensor.shape) :]
        ends = shape[len(shape) - len(tensor.shape) :]
        spread = [size == ONE and end != ONE for size, end in zip(tensor.shape, ends, strict=True)]
        return self.read(tensor, ["0" if wide else dim for dim, wide in zip(dims, spread, strict=True)])

    def pointwise(
        self, type: str, shape: Shape, operands: Sequence[Tensor], form: Callable[..., str], repeated: bool = False
    ) -> Pointwise:
        """A value that `form` makes of its operands, point by point."""
        _check_type(type)
        axes(len(shape))
        return Pointwise(form(*[self.operand(o, shape, repeated) for o in operands]), type, shape)

    def bounded(self, tensor: Tensor, kind: str, value: str = "0") -> Named:
        """The tensor continued beyond its ends by a boundary of the kind; `value` is that of a constant one."""
        held = self.named(tensor)
        if held.name in self.weights:
            held = self._alias(held)
        key = (held.name, kind, value if kind == "constant" else "")
        if key not in self._bounded:
            owner = self._alias(held) if "boundary" in self._entry(held) else held
            boundary: dict[str, Any] = {"kind": kind} | ({"value": value} if kind == "constant" else {})
            if owner.name in self._stages:
                boundary["domain"] = _domain(owner)
            self._entry(owner)["boundary"] = boundary
            self._bounded[key] = owner
        return self._bounded[key]

    def _alias(self, held: Named) -> Named:
        return self.stage(f"{held.name}_padded", held.type, held.shape, self.read(held, axes(len(held.shape))))

    def _entry(self, held: Named) -> dict[str, Any]:
        return self._stages[held.name] if held.name in self._stages else self._inputs[held.name]

    # --- the pipeline

    def finish(self, outputs: Mapping[str, Tensor]) -> ImportedPipeline:
        """The pipeline that computes the outputs, each a stage of its own, whose boundary says where it ends. Raises
        ImportFailed where types or sizes of tensors do not fit each other."""
        names = [self._output(name, tensor) for name, tensor in outputs.items()]
        inputs = [*self._inputs.values(), *self._weight_inputs.values()]
        document = {
            "format": 1,
            "name": self.name,
            "inputs": inputs,
            "stages": list(self._reached(names)),
            "outputs": names,
            "estimates": self._estimates,
        }
        try:
            return ImportedPipeline(load(document), tuple(self.notes), self.weights)
        except DocumentError as error:
            raise ImportFailed(*((_placed(p, document), p.hint) for p in error.problems)) from None

    def _output(self, name: str, tensor: Tensor) -> str:
        held = self.named(tensor)
        shape, order = held.shape, _last_first(held.shape)
        if held.name not in self._stages or held.name in self._estimates or held.order != order:
            held = self.stage(name, held.type, shape, self.read(held, axes(len(shape))), order)
        if held.shape:
            end = {"kind": "constant", "value": "False" if held.type == "bool" else "0", "domain": _domain(held)}
            self._entry(held).setdefault("boundary", end)  # fmt: skip
        self._estimates[held.name] = _planned(held)
        return held.name

    def _reached(self, outputs: Iterable[str]) -> Iterable[dict[str, Any]]:
        """The stages that outputs need, in the order in which they were written."""
        reached, waiting = set[str](), list(outputs)
        while waiting:
            name = waiting.pop()
            if name in self._stages and name not in reached:
                reached.add(name)
                waiting += re.findall(r"(\w+)\(", self._stages[name]["value"])
        return (entry for name, entry in self._stages.items() if name in reached)

    def _fresh(self, hint: str) -> str:
        """A name of the language, like `hint`, that nothing has yet."""
        base = re.sub(r"\W+", "_", hint, flags=re.ASCII).strip("_")[:56] or "tensor"
        base = f"t_{base}" if base[0].isdigit() else base
        taken = {*self._inputs, *self._weight_inputs, *self._stages, *_TAKEN}
        name, number = base, 1
        while name in taken or keyword.iskeyword(name):
            number += 1
            name = f"{base}_{number}"
        return name


def _placed(problem: Problem, document: Mapping[str, Any]) -> str:
    """A problem of the document, said of the tensor that it is of."""
    match problem.pointer.split("/")[1:]:
        case [("stages" | "inputs") as kind, number, *_]:
            return f"the tensor {document[kind][int(number)]['name']!r}: {problem.message}"
        case _:
            return f"{problem.pointer}: {problem.message}"


def _short(text: str) -> bool:
    """True for an expression that another may have inside of it."""
    return len(text) < _LONGEST and text.count("(") < _DEEPEST


def literal(constant: Constant) -> str | None:
    """A constant of one element as a literal; None of any other, and of what is no number."""
    if constant.array.size != 1 or constant.type not in TYPES:
        return None
    value = constant.array.reshape(())[()]
    if not np.isfinite(value):
        return None
    return number(value.item() if constant.type != "float32" else float(str(value)), constant.type)


def number(value: float | bool, type: str) -> str:
    """A number as an expression of that type."""
    if type == "bool":
        return str(bool(value))
    if not np.isfinite(value):
        raise Refused(f"the number {value}")
    text = repr(float(value)) if type.startswith("float") else str(int(value))
    return f"{type}({text})" if type not in ("float32", "int32") else f"({text})" if value < 0 else text


def _check_type(type: str) -> None:
    if type not in TYPES:
        raise Refused(f"elements of type {type}", f"known are {', '.join(TYPES)}: convert the model")


def memory_order(shape: Shape) -> tuple[int, ...]:
    """The axes of a stage, the fastest in memory first: channels of images where there are enough to fill vectors,
    which the pixels of a row may not be; else the last axis."""
    order = _last_first(shape)
    deep = len(shape) >= 4 and shape[1].known and shape[1].estimate >= _CHANNELS
    return (1, *(axis for axis in order if axis != 1)) if deep else order


def _last_first(shape: Shape) -> tuple[int, ...]:
    return tuple(range(len(shape)))[::-1]


def _planned(held: Named) -> list[list[int]]:
    return [[0, held.shape[axis].estimate] for axis in held.order]


def _domain(held: Named) -> list[list[int | str]]:
    sizes = [held.shape[axis] for axis in held.order]
    return [[0, size.estimate if size.known else size.text] for size in sizes]

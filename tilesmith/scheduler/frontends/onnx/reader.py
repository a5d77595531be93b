"""A graph of ONNX, node by node, as a tensor program. All that cannot be said is found, and named with its node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tilesmith.scheduler.frontends.importer import ImportedPipeline, ImportFailed
from tilesmith.scheduler.frontends.onnx import (  # noqa: F401  # each has operators of the table
    extents,
    pointwise_operators,
    tensor_operators,
    window_operators,
)
from tilesmith.scheduler.frontends.onnx.constants import evaluate, folds
from tilesmith.scheduler.frontends.onnx.node import OPERATORS, Node
from tilesmith.scheduler.frontends.tensors.graph import Graph
from tilesmith.scheduler.frontends.tensors.sizes import Size
from tilesmith.scheduler.frontends.tensors.tensor import Constant, Extents, Named, Pointwise, Refused, Tensor

MAX_NODES = 20_000
_SPATIAL, _BATCH = 256, 1
"""Estimates of sizes that a model leaves open: of images, and of how many there are."""

Problem = tuple[str, str | None]


class Reader:
    """The way through one graph. `sizes` are numbers for sizes that the model names and leaves open."""

    def __init__(self, model: Any, sizes: Mapping[str, int]) -> None:
        self.proto = model.graph
        self.graph = Graph(_name(model.graph.name))
        self.opset = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 1)
        self.sizes = sizes
        self.values: dict[str, Tensor | None] = {"": None}
        self.lost: set[str] = set()
        self.problems: list[Problem] = []
        self.uses = Counter(n for node in self.proto.node for n in node.input)
        self.uses.update(o.name for o in self.proto.output)

    def pipeline(self) -> ImportedPipeline:
        """The pipeline of the graph. Raises ImportFailed with every problem."""
        if len(self.proto.node) > MAX_NODES:
            raise ImportFailed((f"the graph has {len(self.proto.node):,} nodes, at most {MAX_NODES:,} are read", None))
        self._constants()
        self._inputs()
        for number, node in enumerate(self.proto.node):
            self._node(number, node)
        outputs: dict[str, Tensor] = {}
        for output in self.proto.output:
            found = self.values.get(output.name)
            if found is not None:
                outputs[output.name] = found
                self._compare(output, found)
            elif output.name not in self.lost:
                self.problems.append((f"output {output.name!r}: no node makes it", None))
        if not self.problems and not outputs:
            self.problems.append(("the graph has no outputs", None))
        if self.problems:
            raise ImportFailed(*self.problems)
        try:
            return self.graph.finish(outputs)
        except Refused as refused:
            raise ImportFailed((str(refused), refused.hint)) from None

    def _compare(self, output: Any, found: Tensor) -> None:
        """A shape that the model says of an output is the one that was found."""
        said = [d.dim_value or None for d in output.type.tensor_type.shape.dim]
        if not output.type.tensor_type.HasField("shape"):
            return
        if len(said) != len(found.shape) or any(
            s and o.known and s != o.estimate for s, o in zip(said, found.shape, strict=True)
        ):
            shown = [o.text for o in found.shape]
            self.problems.append(
                (f"output {output.name!r} is said to have the shape {said}, its nodes make {shown}", None)
            )

    def _constants(self) -> None:
        from onnx import numpy_helper

        if self.proto.sparse_initializer:
            self.problems.append(("sparse initializers cannot be said", "make them dense"))
        for tensor in self.proto.initializer:
            try:
                self.values[tensor.name] = Constant(numpy_helper.to_array(tensor), tensor.name)
            except (ValueError, TypeError, KeyError) as error:
                self._lose(f"initializer {tensor.name!r}", str(error)[:200], None, [tensor.name])

    def _inputs(self) -> None:
        named: dict[str, Size] = {}
        for value in self.proto.input:
            if value.name in self.values:
                continue  # older models list what is initialized, too
            try:
                self.values[value.name] = self._input(value, named)
            except Refused as refused:
                self._lose(f"input {value.name!r}", str(refused), refused.hint, [value.name])

    def _input(self, value: Any, named: dict[str, Size]) -> Named:
        if not value.type.HasField("tensor_type") or not value.type.tensor_type.HasField("shape"):
            raise Refused("it is no tensor of known rank")
        dims = value.type.tensor_type.shape.dim
        sizes: list[int | Size | None] = []
        for dim in dims:
            known = dim.dim_value if dim.HasField("dim_value") else self.sizes.get(dim.dim_param)
            sizes.append(known if known else named.get(dim.dim_param))
        if any(isinstance(s, int) and not 0 < s < 1 << 28 for s in sizes):
            raise Refused(f"the shape {[d.dim_value for d in dims]}")
        first = sizes[:1] == [None] and len(dims) > 2
        made = self.graph.input(value.name, _element(value.type.tensor_type.elem_type), sizes, _SPATIAL)
        shape = tuple(replace(s, estimate=_BATCH) if first and k == 0 else s for k, s in enumerate(made.shape))
        self.graph.plan(replace(made, shape=shape))
        for dim, size in zip(dims, shape, strict=True):
            if dim.dim_param and not size.known:
                named.setdefault(dim.dim_param, size)
        return replace(made, shape=shape)

    def _node(self, number: int, proto: Any) -> None:
        place = f"node {proto.name or number!r} ({proto.op_type})"
        if lost := [n for n in proto.input if n not in self.values]:
            if not self.lost.intersection(lost):
                why = f"nothing before it makes its input {lost[0]!r}: nodes are out of order, or in a ring"
                self._lose(place, why, None, proto.output)
            self.lost.update(proto.output)
            return
        try:
            found = self._made(proto)
        except Refused as refused:
            self._lose(place, str(refused), refused.hint, proto.output)
        except (LookupError, ValueError, TypeError, AttributeError, ArithmeticError) as error:
            self._lose(place, f"its inputs and attributes do not fit each other ({error})", None, proto.output)
        else:
            for name, tensor in zip(proto.output, found, strict=False):
                if name:
                    self._keep(name, tensor)

    def _made(self, proto: Any) -> Sequence[Tensor]:
        if proto.domain not in ("", "ai.onnx"):
            raise Refused(f"operators of {proto.domain!r}")
        inputs = [self.values[n] for n in proto.input]
        if proto.op_type == "Constant":
            return [_constant(proto)]
        known = {n: t.array for n, t in zip(proto.input, inputs, strict=True) if isinstance(t, Constant)}
        if folds(proto.op_type) and inputs and len(known) == len({n for n in proto.input if n}):
            return [Constant(a, n) for n, a in zip(proto.output, evaluate(proto, self.opset, known), strict=True)]
        attributes = {a.name: _attribute(a) for a in proto.attribute}
        node = Node(self.graph, proto.op_type, inputs, attributes, self.opset, len([n for n in proto.output if n]))
        if extents.applies(node):
            return [extents.evaluate(node)]
        operator = OPERATORS.get(proto.op_type)
        if operator is None:
            raise Refused("the operator cannot be said")
        made = operator(node)
        return [made] if isinstance(made, Constant | Named | Pointwise | Extents) else made

    def _keep(self, name: str, tensor: Tensor) -> None:
        """A tensor that more than one reads is a stage of its own."""
        if isinstance(tensor, Pointwise):
            tensor = replace(tensor, hint=name)
            if self.uses[name] > 1:
                tensor = self.graph.named(tensor)
        self.values[name] = tensor

    def _lose(self, place: str, why: str, hint: str | None, outputs: Sequence[str]) -> None:
        self.problems.append((f"{place}: {why}", hint))
        self.lost.update(outputs)


def _name(name: str) -> str:
    import re

    found = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")[:64]
    return found if found and not found[0].isdigit() else f"model_{found}".rstrip("_")[:64]


def _element(type: int) -> str:
    from onnx.helper import tensor_dtype_to_np_dtype

    try:
        return tensor_dtype_to_np_dtype(type).name
    except KeyError:
        raise Refused(f"elements of the type {type}") from None


def _constant(proto: Any) -> Constant:
    from onnx import numpy_helper

    for a in proto.attribute:
        if a.name == "value":
            return Constant(numpy_helper.to_array(a.t), proto.output[0])
        if a.name in ("value_float", "value_floats"):
            return Constant(np.asarray(_attribute(a), np.float32), proto.output[0])
        if a.name in ("value_int", "value_ints"):
            return Constant(np.asarray(_attribute(a), np.int64), proto.output[0])
    raise Refused("a constant that is no dense tensor of numbers")


def _attribute(proto: Any) -> Any:
    from onnx.helper import get_attribute_value

    value = get_attribute_value(proto)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return list(value) if not isinstance(value, int | float | str) and hasattr(value, "__len__") else value

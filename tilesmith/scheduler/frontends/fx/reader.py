"""A graph of PyTorch, node by node, as a tensor program. All that cannot be said is found, and named with its node."""

from __future__ import annotations

import inspect
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from tilesmith.scheduler.frontends.fx import pointwise_operators, tensor_operators  # noqa: F401  # they fill the table
from tilesmith.scheduler.frontends.fx.table import OPERATORS
from tilesmith.scheduler.frontends.importer import ImportedPipeline, ImportFailed
from tilesmith.scheduler.frontends.tensors.graph import Graph
from tilesmith.scheduler.frontends.tensors.tensor import Constant, Named, Pointwise, Refused, Tensor

FxNode: TypeAlias = Any
"""A node of torch.fx: whether PyTorch is installed is not for the type checker."""
_MISFITS = (LookupError, ValueError, TypeError, AttributeError, ArithmeticError)
"""Errors of arguments that no operator expects."""


def from_fx(module: Callable[..., Any], example_inputs: Sequence[Any]) -> ImportedPipeline:
    """The pipeline of a `torch.fx.GraphModule`, or any other module or function of tensors, for inputs like these; its
    parameters are weights. It is called once. Raises ImportFailed, with every node that cannot be said."""
    names = {}
    if hasattr(module, "named_parameters") and hasattr(module, "named_buffers"):
        names = {id(t): name for name, t in (*module.named_parameters(), *module.named_buffers())}
    name = getattr(module, "__name__", type(module).__name__)
    graph = traced(module, example_inputs)
    return Reader(graph, names, re.sub(r"\W+", "_", name) or "module", _arguments(module)).pipeline()


def _arguments(module: Callable[..., Any]) -> list[str]:
    """The names of the arguments; none of what is not written in Python."""
    try:
        return list(inspect.signature(getattr(module, "forward", module)).parameters)
    except ValueError:
        return []


def traced(module: Callable[..., Any], example_inputs: Sequence[Any]) -> Any:
    """The module as a graph of ATen operators without any that write into their arguments. Raises ImportFailed where
    PyTorch is not installed."""
    try:
        import torch
        from torch.fx.experimental.proxy_tensor import make_fx
    except ImportError:
        raise ImportFailed(("the package torch is not installed", "pip install torch")) from None

    def called(*tensors: Any) -> Any:
        return module(*tensors)  # its arguments that have defaults keep them

    with torch.no_grad():
        found = make_fx(called)(*example_inputs)
        if any(node.op == "call_function" and _in_place(node) for node in found.graph.nodes):
            found = make_fx(torch.func.functionalize(called))(*example_inputs)
    found.graph.eliminate_dead_code()
    return found


def _in_place(node: FxNode) -> bool:
    return bool(re.search(r"[a-z0-9]_\.\w+$", str(node.target)))


def shown(node: FxNode) -> str:
    """A node as messages name it."""
    return f"node {node.name!r} ({node.target})"


class Reader:
    """The way through one graph of ATen operators. `names` are those of its constants, by identity, `inputs` those of
    its inputs, where they are to have others than in the graph."""

    def __init__(self, module: Any, names: Mapping[int, str], name: str, inputs: Sequence[str] = ()) -> None:
        self.module, self.names = module, names
        self.graph = Graph(name)
        self.values: dict[FxNode, Any] = {}
        self.lost: set[FxNode] = set()
        self.problems: list[tuple[str, str | None]] = []
        self.inputs = list(inputs)

    def pipeline(self) -> ImportedPipeline:
        """The pipeline of the graph. Raises ImportFailed with every problem."""
        outputs: dict[str, Tensor] = {}
        for node in self.module.graph.nodes:
            if node.op == "output":
                outputs = self._outputs(node)
            elif self.lost.intersection(node.all_input_nodes):
                self.lost.add(node)
            else:
                self._node(node)
        if self.problems:
            raise ImportFailed(*self.problems)
        return self.graph.finish(outputs)

    def _outputs(self, node: FxNode) -> dict[str, Tensor]:
        given = node.args[0] if isinstance(node.args[0], list | tuple) else [node.args[0]]
        found: dict[str, Tensor] = {}
        for place, one in enumerate(given):
            value = None if one in self.lost else self.values.get(one)
            if isinstance(value, Constant | Named | Pointwise):
                found[one.name if one.name not in found else f"{one.name}_{place}"] = value
            elif one not in self.lost:
                self.problems.append((f"output {place} is no tensor", None))
        return found

    def _node(self, node: FxNode) -> None:
        try:
            found = self._made(node)
        except Refused as refused:
            self._lose(node, str(refused), refused.hint)
        except _MISFITS as error:
            self._lose(node, f"its arguments cannot be said ({error})", None)
        else:
            if isinstance(found, Pointwise):
                found = replace(found, hint=(node.args[0] if node.target is operator.getitem else node).name)
                found = self.graph.named(found) if len(node.users) > 1 else found
            self.values[node] = found

    def _made(self, node: FxNode) -> Any:
        match node.op:
            case "placeholder":
                return self._input(node)
            case "get_attr":
                return self._constant(node)
            case "call_function":
                return made(self.graph, node, self.values)
            case _:
                raise Refused(f"a node of the kind {node.op}")

    def _input(self, node: FxNode) -> Named:
        value = meta(node)
        if value is None:
            raise Refused("an input that is no tensor")
        return self.graph.input(self.inputs.pop(0) if self.inputs else node.name, element(value), sizes(value))

    def _constant(self, node: FxNode) -> Constant:
        value = self.module
        for part in node.target.split("."):
            value = getattr(value, part)
        hint = self.names.get(id(value), node.target.lstrip("_"))
        return Constant(np.ascontiguousarray(array_of(value)).copy(), hint)

    def _lose(self, node: FxNode, why: str, hint: str | None) -> None:
        self.problems.append((f"{shown(node)}: {why}", hint))
        self.lost.add(node)


def made(graph: Graph, node: FxNode, values: Mapping[FxNode, Any]) -> Any:
    """The result of an operator for its arguments. Raises Refused."""
    args = [_argument(a, values) for a in node.args]
    if node.target is operator.getitem:
        found = args[0][args[1]]
        if found is None:
            raise Refused(f"result {args[1]} of {node.args[0].target}")
        return found
    function = OPERATORS.get(str(node.target).removeprefix("aten."))
    if function is None:
        raise Refused("the operator cannot be said")
    return function(graph, *args, **{k: _argument(v, values) for k, v in node.kwargs.items()})


def _argument(value: Any, values: Mapping[FxNode, Any]) -> Any:
    if isinstance(value, list | tuple):
        return [_argument(v, values) for v in value]
    if hasattr(value, "all_input_nodes"):
        return values[value]
    return value


def meta(node: FxNode) -> Any:
    """The tensor that a node makes, as far as its shape and type are known; None where it makes none."""
    value = node.meta.get("val", node.meta.get("tensor_meta"))
    return value if hasattr(value, "shape") and hasattr(value, "dtype") else None


def element(value: Any) -> str:
    """The type of a tensor's elements."""
    return str(value.dtype).removeprefix("torch.")


def sizes(value: Any) -> list[int]:
    """The shape of a tensor. Refused where it is not known."""
    found = [s for s in value.shape if isinstance(s, int)]
    if len(found) != len(value.shape) or not all(found):
        raise Refused(f"a tensor of the shape {tuple(value.shape)}", "sizes have to be known")
    return found


def array_of(value: Any) -> np.ndarray[Any, np.dtype[Any]]:
    """A tensor on the CPU as an array of the same memory. Refused where it has another device."""
    if value.device.type != "cpu":
        raise Refused(f"a tensor on the device {value.device}", "move the module to the CPU")
    array: np.ndarray[Any, np.dtype[Any]] = value.detach().resolve_conj().resolve_neg().numpy()
    return array


def expressible(node: FxNode, used: Iterable[int] = ()) -> str | None:
    """The reason why a node cannot be said by itself; None where it can. `used` are the results of several that are
    read."""
    graph, values = Graph("node"), dict[FxNode, Any]()
    try:
        for source in node.all_input_nodes:
            value = meta(source)
            if value is None:
                raise Refused("an argument that is no tensor")
            if value.device.type != "cpu":
                raise Refused(f"the device {value.device}")
            values[source] = graph.input(source.name, element(value), sizes(value))
        found = made(graph, node, values)
        for index in used:
            if found[index] is None:
                raise Refused(f"result {index}")
        tensors = [found] if isinstance(found, Constant | Named | Pointwise) else [t for t in found if t is not None]
        for tensor in tensors:
            graph.named(tensor)
    except Refused as refused:
        return str(refused)
    except _MISFITS as error:
        return f"its arguments cannot be said ({error})"
    return None

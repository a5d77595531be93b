"""A node of an ONNX graph as operators see it: tensors, attributes, and constants among its inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tilesmith.scheduler.frontends.tensors.graph import Graph
from tilesmith.scheduler.frontends.tensors.sizes import Size, fixed
from tilesmith.scheduler.frontends.tensors.tensor import Constant, Extents, Refused, Tensor


@dataclass(frozen=True, slots=True)
class Node:
    """A node: its type, inputs (None where one is left out), attributes, and the version of the operator set."""

    graph: Graph
    op: str
    inputs: Sequence[Tensor | None]
    attributes: dict[str, Any]
    opset: int
    outputs: int

    @property
    def x(self) -> Tensor:
        """The first input."""
        return self.tensor(0)

    def tensor(self, index: int) -> Tensor:
        """An input that has to be there."""
        found = self.optional(index)
        if found is None:
            raise Refused(f"input {index} is missing")
        return found

    def optional(self, index: int) -> Tensor | None:
        """An input, None where it is left out."""
        return self.inputs[index] if index < len(self.inputs) else None

    def constant(self, index: int) -> np.ndarray[Any, np.dtype[Any]] | None:
        """The values of an input, None where it is left out. Refused where they are worked out when the model runs."""
        found = self.optional(index)
        if found is None:
            return None
        if not isinstance(found, Constant):
            raise Refused(f"input {index} follows from data", "export the model with fixed sizes and constants folded")
        return found.array

    def integers(self, index: int) -> list[int] | None:
        """The values of an input as integers."""
        found = self.constant(index)
        return None if found is None else [int(v) for v in found.reshape(-1)]

    def sizes(self, index: int) -> list[Size] | None:
        """The values of an input as sizes, which may follow from those of the model's inputs."""
        found = self.optional(index)
        return list(found.sizes) if isinstance(found, Extents) else _fixed(self.integers(index))

    def get(self, name: str, default: Any) -> Any:
        """An attribute."""
        return self.attributes.get(name, default)

    def listed(self, name: str, index: int, since: int) -> list[int] | None:
        """Numbers that are an attribute before version `since` of the operators and an input from then on."""
        if self.opset >= since:
            return self.integers(index)
        found = self.attributes.get(name)
        return None if found is None else [int(v) for v in found]

    def only(self, name: str, *allowed: Any) -> None:
        """Refused where an attribute has another value than these; it may be missing."""
        value = self.attributes.get(name, allowed[0])
        if value not in allowed:
            raise Refused(f"attribute {name} = {value!r}", f"can be said: {', '.join(map(repr, allowed))}")


def _fixed(numbers: list[int] | None) -> list[Size] | None:
    return None if numbers is None else [fixed(n) for n in numbers]


Operator: TypeAlias = Callable[[Node], "Tensor | Sequence[Tensor]"]
OPERATORS: dict[str, Operator] = {}
"""The operators by type."""


def operator(*names: str) -> Callable[[Operator], Operator]:
    """A decorator: the function is the operator of these types."""

    def added(function: Operator) -> Operator:
        OPERATORS.update(dict.fromkeys(names, function))
        return function

    return added

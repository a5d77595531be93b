"""Sizes of tensors as data: what models work out of the shapes of their inputs, to reshape and to resize by it."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from tilesmith.scheduler.frontends.onnx.node import Node
from tilesmith.scheduler.frontends.tensors.sizes import Size, fixed, product
from tilesmith.scheduler.frontends.tensors.tensor import Constant, Extents, Refused, Tensor

_ARITHMETIC: Final[dict[str, Callable[[Size, Size], Size]]] = {
    "Add": operator.add, "Sub": operator.sub, "Mul": operator.mul, "Div": operator.floordiv,
}  # fmt: skip
OPERATORS = frozenset({
    *_ARITHMETIC, "Gather", "Slice", "Concat", "Unsqueeze", "Squeeze", "Reshape", "Cast", "Identity", "ReduceProd",
})  # fmt: skip
"""Operators that make sizes of sizes."""


def sizes_of(tensor: Tensor) -> tuple[Size, ...] | None:
    """The sizes that a tensor holds; None where it holds none."""
    if isinstance(tensor, Extents):
        return tensor.sizes
    if isinstance(tensor, Constant) and tensor.array.dtype.kind in "iu" and tensor.array.ndim <= 1:
        return tuple(fixed(int(v)) for v in tensor.array.reshape(-1))
    return None


def applies(node: Node) -> bool:
    """True for an operator on sizes of which some are not known."""
    given = [t for t in node.inputs if t is not None]
    held = any(isinstance(t, Extents) for t in given[: None if node.op in (*_ARITHMETIC, "Concat") else 1])
    return held and node.op in OPERATORS and all(sizes_of(t) is not None for t in given)


def evaluate(node: Node) -> Tensor:
    """The sizes that the operator makes; a constant where all are known."""
    sizes, single = _made(node)
    if all(s.known for s in sizes):
        array = np.array([s.estimate for s in sizes], np.int64)
        return Constant(array.reshape(()) if single else array, "sizes")
    return Extents(tuple(sizes), single)


def _made(node: Node) -> tuple[Sequence[Size], bool]:
    given = [sizes_of(t) or () for t in node.inputs if t is not None]
    own = given[0]
    match node.op:
        case "Add" | "Sub" | "Mul" | "Div":
            return _pairs(_ARITHMETIC[node.op], own, given[1]), not any(t.shape for t in node.inputs if t is not None)
        case "Gather":
            chosen = node.constant(1)
            if chosen is None:
                raise Refused("no indices")
            return [own[int(k)] for k in chosen.reshape(-1)], chosen.ndim == 0
        case "Slice":
            starts, ends, steps = (node.integers(k) for k in (1, 2, 4))
            if not starts or not ends:
                raise Refused("no ends")
            return own[starts[0] : ends[0] : (steps or [1])[0]], False
        case "Concat":
            return [size for part in given for size in part], False
        case "ReduceProd":
            return [product(own)], not node.get("keepdims", 1)
        case "Squeeze":
            return own, len(own) == 1
        case "Unsqueeze" | "Reshape":
            return own, False
        case _:
            return own, not node.x.shape


def _pairs(op: Callable[[Size, Size], Size], a: Sequence[Size], b: Sequence[Size]) -> list[Size]:
    count = max(len(a), len(b))
    if {len(a), len(b)} - {1, count}:
        raise Refused(f"{len(a)} and {len(b)} sizes")
    spread = (list(side) * (count if len(side) == 1 else 1) for side in (a, b))
    return [op(p, q) for p, q in zip(*spread, strict=True)]

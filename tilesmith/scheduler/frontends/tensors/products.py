"""Products of matrices."""

from __future__ import annotations

from dataclasses import replace

from tilesmith.scheduler.frontends.tensors import pointwise
from tilesmith.scheduler.frontends.tensors.graph import Graph
from tilesmith.scheduler.frontends.tensors.sizes import ONE, Shape
from tilesmith.scheduler.frontends.tensors.tensor import Constant, Pointwise, Refused, Tensor, axes


def matmul(graph: Graph, a: Tensor, b: Tensor, transposed: tuple[bool, bool] = (False, False)) -> Tensor:
    """The product of the matrices that the last two axes are, the others broadcast; a vector is a row or a column.
    `transposed` are the last two axes of each."""
    if transposed[1] and isinstance(b, Constant):  # the columns that are computed side by side lie side by side
        b, transposed = replace(b, array=b.array.swapaxes(-1, -2)), (transposed[0], False)
    vectors = len(a.shape) == 1, len(b.shape) == 1
    if 0 in (len(a.shape), len(b.shape)):
        raise Refused("a product with a number")
    if vectors[0] and vectors[1]:
        return _product(graph, a, b, (), ["rk"], ["rk"])
    if vectors[1]:
        shape = a.shape[:-1]
        return _product(graph, a, b, shape, [*axes(len(shape)), "rk"], ["rk"])
    if vectors[0]:
        shape = (*b.shape[:-2], b.shape[-1])
        dims = axes(len(shape))
        return _product(graph, a, b, shape, ["rk"], [*dims[:-1], "rk", dims[-1]])
    rows = a.shape[-1] if transposed[0] else a.shape[-2]
    columns = b.shape[-2] if transposed[1] else b.shape[-1]
    shape = (*pointwise.broadcast([a.shape[:-2], b.shape[:-2]]), rows, columns)
    *outer, row, column = axes(len(shape))
    left = [*_outer(a.shape, shape, outer), *(("rk", row) if transposed[0] else (row, "rk"))]
    right = [*_outer(b.shape, shape, outer), *((column, "rk") if transposed[1] else ("rk", column))]
    return _product(graph, a, b, shape, left, right)


def _outer(own: Shape, shape: Shape, dims: list[str]) -> list[str]:
    """The indices of the axes before the last two, as they are broadcast."""
    count = len(own) - 2
    pairs = zip(own[:-2], shape[len(shape) - 2 - count : -2], dims[len(dims) - count :], strict=True)
    return ["0" if size == ONE != whole else dim for size, whole, dim in pairs]


def _product(graph: Graph, a: Tensor, b: Tensor, shape: Shape, left: list[str], right: list[str]) -> Tensor:
    size, other = a.shape[left.index("rk")], b.shape[right.index("rk")]
    if size.known and other.known and size != other:
        raise Refused(f"a sum over {size} and {other} elements")
    product = f"{graph.read(graph.named(a), left)} * {graph.read(graph.named(b), right)}"
    return Pointwise(f"sum({product} for rk in range({size if size.known else other}))", a.type, shape, "product")


def gemm(
    graph: Graph,
    a: Tensor,
    b: Tensor,
    c: Tensor | None,
    alpha: float = 1.0,
    beta: float = 1.0,
    transposed: tuple[bool, bool] = (False, False),
) -> Tensor:
    """alpha * a @ b + beta * c."""
    result = pointwise.scale(graph, matmul(graph, a, b, transposed), alpha)
    return result if c is None else pointwise.binary(graph, "add", result, pointwise.scale(graph, c, beta))

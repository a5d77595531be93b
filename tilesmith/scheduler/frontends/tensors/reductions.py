"""Reductions over axes, and what normalises by them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilesmith.scheduler.frontends.tensors import pointwise
from tilesmith.scheduler.frontends.tensors.graph import Graph, number
from tilesmith.scheduler.frontends.tensors.sizes import ONE, Size, fixed, product
from tilesmith.scheduler.frontends.tensors.tensor import Constant, Pointwise, Refused, Tensor, affine, axes

_ELEMENT = {
    "sum": "{v}", "mean": "{v}", "max": "{v}", "min": "{v}", "prod": "{v}",
    "l1": "abs({v})", "l2": "{v} ** 2", "sum_square": "{v} ** 2", "log_sum": "{v}",
}  # fmt: skip
_FOLD = {"max": "max", "min": "min", "prod": "product"}
_RESULT = {"l2": "sqrt({v})", "log_sum": "log({v})"}


def reduce(graph: Graph, op: str, x: Tensor, over: Sequence[int], keep: bool = True) -> Tensor:
    """A reduction over axes: sum, mean, max, min, prod, l1, l2, sum_square, log_sum. `keep`: they stay, of size 1."""
    rank = len(x.shape)
    reduced = {axis % rank for axis in over}
    if not reduced:
        return x
    names = axes(rank)
    kept = tuple(ONE if a in reduced else s for a, s in enumerate(x.shape) if keep or a not in reduced)
    own = iter(axes(len(kept)))
    dims = [next(own) if keep or a not in reduced else "" for a in range(rank)]
    indices = [f"r{names[a]}" if a in reduced else dims[a] for a in range(rank)]
    loops = "".join(f" for r{names[a]} in range({x.shape[a]})" for a in sorted(reduced))
    element = _ELEMENT[op].format(v=graph.read(graph.named(x), indices))
    text = f"{_FOLD.get(op, 'sum')}({element}{loops})"
    if op == "mean":
        text = f"{text} / {_as_float(product(x.shape[a] for a in sorted(reduced)), x.type)}"
    return Pointwise(_RESULT.get(op, "{v}").format(v=text), x.type, kept, op)


def _as_float(size: Size, type: str) -> str:
    if not type.startswith("float"):
        raise Refused(f"a mean of {type} elements")
    return number(size.estimate, type) if size.known else f"{type}({size})"


def arg_reduce(graph: Graph, op: str, x: Tensor, axis: int, keep: bool = True) -> Tensor:
    """The index of the largest or least element along an axis (`argmax`, `argmin`), of equals the first; int64."""
    rank = len(x.shape)
    axis %= rank
    names = axes(rank)
    kept = tuple(ONE if a == axis else s for a, s in enumerate(x.shape) if keep or a != axis)
    own = iter(axes(len(kept)))
    dims = [next(own) if keep or a != axis else "" for a in range(rank)]
    indices = [f"r{names[axis]}" if a == axis else dims[a] for a in range(rank)]
    element = graph.read(graph.named(x), indices)
    return Pointwise(f"int64({op}({element} for r{names[axis]} in range({x.shape[axis]}))[0])", "int64", kept, op)


def softmax(graph: Graph, x: Tensor, over: Sequence[int], logarithm: bool = False) -> Tensor:
    """The softmax over axes, or its logarithm."""
    shifted = pointwise.binary(graph, "sub", x, reduce(graph, "max", x, over))
    powers = pointwise.unary(graph, "exp", shifted)
    if logarithm:
        return pointwise.binary(graph, "sub", shifted, reduce(graph, "log_sum", powers, over))
    powers = graph.named(powers)
    return pointwise.binary(graph, "div", powers, reduce(graph, "sum", powers, over))


def moments(graph: Graph, x: Tensor, over: Sequence[int]) -> tuple[Tensor, Tensor]:
    """The mean over axes, and the mean of the squared distances from it."""
    mean = graph.named(reduce(graph, "mean", x, over))
    distance = pointwise.binary(graph, "sub", x, mean)
    return mean, reduce(graph, "mean", pointwise.apply(graph, lambda v: f"{v} ** 2", distance), over)


def normalised(
    graph: Graph, x: Tensor, mean: Tensor, variance: Tensor, epsilon: float, scale: Tensor | None, shift: Tensor | None
) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) * scale + shift, of tensors that broadcast."""
    near = number(epsilon, x.type)
    inverse = pointwise.apply(graph, lambda v: f"1.0 / sqrt({v} + {near})", variance)
    factor = graph.stage("inverse_deviation", x.type, inverse.shape, graph.operand(inverse, inverse.shape))
    result = pointwise.apply(graph, lambda v, m, f: f"({v} - {m}) * {f}", x, mean, factor)
    result = result if scale is None else pointwise.binary(graph, "mul", result, scale)
    return result if shift is None else pointwise.binary(graph, "add", result, shift)


def layer_normalisation(
    graph: Graph, x: Tensor, over: Sequence[int], epsilon: float, scale: Tensor | None, shift: Tensor | None
) -> Tensor:
    """The normalisation by the moments over axes."""
    x = graph.named(x)
    return normalised(graph, x, *moments(graph, x, over), epsilon, scale, shift)


def per_channel(graph: Graph, tensor: Tensor, rank: int) -> Tensor:
    """A tensor of channels as one of `rank` axes, of which the second is they."""
    shape = (ONE, tensor.shape[0], *(ONE for _ in range(rank - 2)))
    if isinstance(tensor, Constant):
        return Constant(tensor.array.reshape([s.estimate for s in shape]), tensor.hint)
    return Pointwise(graph.read(tensor, [axes(rank)[1]]), tensor.type, shape)


def batch_normalisation(
    graph: Graph, x: Tensor, given: tuple[Tensor, Tensor, Tensor, Tensor], epsilon: float
) -> Tensor:
    """The normalisation by what is given of channels: scale, shift, mean and variance. A factor and an offset, worked
    out now where they are constants."""
    rank = len(x.shape)
    if all(isinstance(t, Constant) for t in given):
        s, b, m, v = (t.array.astype(np.float64) for t in given if isinstance(t, Constant))
        factor = s / np.sqrt(v + epsilon)
        parts = ((factor, "scale"), (b - m * factor, "shift"))
        f, o = (per_channel(graph, Constant(a.astype(x.type), f"{_hint(given[0])}_{w}"), rank) for a, w in parts)
        return pointwise.apply(graph, lambda e, p, q: f"{e} * {p} + {q}", x, f, o)
    scale, shift, mean, variance = (per_channel(graph, t, rank) for t in given)
    return normalised(graph, x, mean, variance, epsilon, scale, shift)


def _hint(tensor: Tensor) -> str:
    return tensor.hint.rpartition(".")[0] or tensor.hint if isinstance(tensor, Constant) else "normalisation"


def group_normalisation(
    graph: Graph, x: Tensor, groups: int, epsilon: float, scale: Tensor | None, shift: Tensor | None
) -> Tensor:
    """The normalisation by the moments of groups of channels with all that lies behind them."""
    rank, x = len(x.shape), graph.named(x)
    channels = x.shape[1]
    if not channels.known or channels.estimate % groups:
        raise Refused(f"{channels} channels in {groups} groups")
    each, names = channels.estimate // groups, axes(rank)
    spatial = x.shape[2:]
    indices = ["y", affine(("x", each), ("ri", 1)), *(f"r{d}" for d in names[2:])]
    loops = f" for ri in range({each})" + "".join(
        f" for r{d} in range({s})" for d, s in zip(names[2:], spatial, strict=True)
    )
    count = _as_float(product(spatial) * each, x.type)
    shape = (x.shape[0], fixed(groups))
    mean = graph.stage("group_mean", x.type, shape, f"sum({graph.read(x, indices)}{loops}) / {count}")
    distance = f"({graph.read(x, indices)} - {graph.read(mean, ['y', 'x'])})"
    variance = graph.stage("group_variance", x.type, shape, f"sum({distance} ** 2{loops}) / {count}")
    of_group = [names[0], affine((f"({names[1]} // {each})", 1))]
    m, v = (Pointwise(graph.read(t, of_group), x.type, x.shape) for t in (mean, variance))
    s, b = (None if t is None else per_channel(graph, t, rank) for t in (scale, shift))
    return normalised(graph, x, m, v, epsilon, s, b)


def local_response(graph: Graph, x: Tensor, size: int, alpha: float, beta: float, bias: float) -> Tensor:
    """The normalisation by the squares of channels nearby (LRN)."""
    names = axes(len(x.shape))
    x = graph.named(x)
    source = graph.bounded(x, "constant")
    near = [names[0], affine((names[1], 1), ("ri", 1), (-((size - 1) // 2), 1)), *names[2:]]
    total = f"sum({graph.read(source, near)} ** 2 for ri in range({size}))"
    value = graph.read(x, names)
    text = f"{value} / pow({bias} + {number(alpha / size, x.type)} * {total}, {number(beta, x.type)})"
    return Pointwise(text, x.type, x.shape, "local_response")

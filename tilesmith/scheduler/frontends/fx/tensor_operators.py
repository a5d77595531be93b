"""ATen operators on whole tensors: convolutions, pools, sizes of images, reductions, normalisation, products, views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilesmith.scheduler.frontends.fx.table import Result, operator, pair
from tilesmith.scheduler.frontends.tensors import pointwise, products, reductions, resize, views, windows
from tilesmith.scheduler.frontends.tensors.graph import Graph
from tilesmith.scheduler.frontends.tensors.sizes import ONE, fixed, product, shape_of
from tilesmith.scheduler.frontends.tensors.tensor import Constant, Refused, Tensor
from tilesmith.scheduler.frontends.tensors.windows import Window


@operator("full.default")
def full(graph: Graph, shape: Sequence[int], value: float, dtype: Any = None, **how: Any) -> Tensor:
    """A tensor of one number, which is stored once."""
    type_ = "float32" if dtype is None else str(dtype).removeprefix("torch.")
    return views.expand(graph, Constant(np.full([1] * len(shape), value, type_)), shape_of(shape))


@operator("zeros.default")
def zeros(graph: Graph, shape: Sequence[int], dtype: Any = None, **how: Any) -> Tensor:
    """A tensor of zeros."""
    return full(graph, shape, 0, dtype)


@operator("ones.default")
def ones(graph: Graph, shape: Sequence[int], dtype: Any = None, **how: Any) -> Tensor:
    """A tensor of ones."""
    return full(graph, shape, 1, dtype)


@operator("convolution.default")
def convolution(
    graph: Graph, x: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any,
    transposed: bool, output_padding: Any, groups: int,
) -> Tensor:  # fmt: skip
    """A convolution, or a transposed one."""
    count = len(weight.shape) - 2
    steps, ends, spread = (pair(v, count) for v in (stride, padding, dilation))
    each = zip(weight.shape[2:], steps, spread, ends, strict=True)
    moving = [Window(size.estimate, s, d, p, p) for size, s, d, p in each]
    if transposed:
        extra = pair(output_padding, count)
        return windows.transposed_convolution(graph, x, weight, bias, moving, groups, extra)
    return windows.convolution(graph, x, weight, bias, moving, groups)


def _moving(kernel: Any, stride: Any, padding: Any, dilation: Any) -> list[Window]:
    sizes = pair(kernel, 2)
    steps = pair(stride, 2) if stride not in (None, [], ()) else sizes
    each = zip(sizes, steps, pair(dilation, 2), pair(padding, 2), strict=True)
    return [Window(size, s, d, p, p) for size, s, d, p in each]


@operator("max_pool2d_with_indices.default")
def max_pool(
    graph: Graph, x: Tensor, kernel: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil: bool = False
) -> Result:
    """The largest element of each window; not its index."""
    return [windows.max_pool(graph, x, _moving(kernel, stride, padding, dilation), ceil), None]


@operator("avg_pool2d.default")
def average_pool(
    graph: Graph, x: Tensor, kernel: Any, stride: Any = None, padding: Any = 0, ceil: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
) -> Tensor:  # fmt: skip
    """The mean of each window."""
    if divisor_override is not None:
        raise Refused(f"divisor_override = {divisor_override}")
    return windows.average_pool(graph, x, _moving(kernel, stride, padding, 1), ceil, count_include_pad)


@operator("_adaptive_avg_pool2d.default", "adaptive_avg_pool2d.default")
def adaptive_average_pool(graph: Graph, x: Tensor, size: Any) -> Tensor:
    """The means of as many windows as are asked for, of one size."""
    wanted = pair(size, 2)
    if any(s.estimate % n for s, n in zip(x.shape[-2:], wanted, strict=True)):
        raise Refused(f"{wanted} windows over {[s.estimate for s in x.shape[-2:]]}, which are of different sizes")
    moving = [Window(s.estimate // n, s.estimate // n) for s, n in zip(x.shape[-2:], wanted, strict=True)]
    return windows.average_pool(graph, x, moving)


def _resized(
    graph: Graph, x: Tensor, size: Any, scales: Sequence[float | None], mode: str, how: str, rounding: str = "floor"
) -> Tensor:
    points: list[resize.Resampling | None] = [None, None]
    for own, n, scale in zip(x.shape[2:], size, scales, strict=True):
        exact = None if scale is None else resize.scale_of(scale)
        points.append(resize.resampling(own, fixed(int(n)), exact, how))
    return resize.resize(graph, x, points, mode, rounding)


@operator("upsample_nearest2d.default")
def nearest(graph: Graph, x: Tensor, size: Any, rows: float | None = None, columns: float | None = None) -> Tensor:
    """Images in another size, by the element before."""
    return _resized(graph, x, size, (rows, columns), "nearest", "asymmetric")


@operator("_upsample_nearest_exact2d.default")
def nearest_exact(
    graph: Graph, x: Tensor, size: Any, rows: float | None = None, columns: float | None = None
) -> Tensor:
    """Images in another size, by the nearest element."""
    return _resized(graph, x, size, (rows, columns), "nearest", "half_pixel", "round_prefer_ceil")


@operator("upsample_bilinear2d.default")
def interpolated(
    graph: Graph, x: Tensor, size: Any, align: bool, rows: float | None = None, columns: float | None = None
) -> Tensor:
    """Images in another size, by linear interpolation."""
    return _interpolated(graph, x, size, align, (rows, columns), "linear")


@operator("upsample_bicubic2d.default")
def cubic(
    graph: Graph, x: Tensor, size: Any, align: bool, rows: float | None = None, columns: float | None = None
) -> Tensor:
    """Images in another size, by cubic interpolation."""
    return _interpolated(graph, x, size, align, (rows, columns), "cubic")


def _interpolated(graph: Graph, x: Tensor, size: Any, align: bool, scales: Sequence[float | None], mode: str) -> Tensor:
    how = "align_corners" if align else "half_pixel"
    return _resized(graph, x, size, (None, None) if align else scales, mode, how)


@operator("pixel_shuffle.default")
def pixel_shuffle(graph: Graph, x: Tensor, factor: int) -> Tensor:
    """Blocks of channels as pixels."""
    return views.depth_to_space(graph, x, factor, columns_first=True)


@operator("mean.dim")
def _mean(graph: Graph, x: Tensor, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    return _reduced("mean", graph, x, dim, keepdim)


def _reduced(op: str, graph: Graph, x: Tensor, dim: Any, keepdim: bool) -> Tensor:
    over = [dim] if isinstance(dim, int) else list(dim or range(len(x.shape)))
    return reductions.reduce(graph, op, x, over, keepdim)


@operator("sum.dim_IntList")
def _sum(graph: Graph, x: Tensor, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    return _reduced("sum", graph, x, dim, keepdim)


@operator("amax.default")
def _largest(graph: Graph, x: Tensor, dim: Any = (), keepdim: bool = False) -> Tensor:
    return _reduced("max", graph, x, dim, keepdim)


@operator("amin.default")
def _least(graph: Graph, x: Tensor, dim: Any = (), keepdim: bool = False) -> Tensor:
    return _reduced("min", graph, x, dim, keepdim)


@operator("mean.default")
def _mean_of_all(graph: Graph, x: Tensor, dtype: Any = None) -> Tensor:
    return _reduced("mean", graph, x, None, False)


@operator("sum.default")
def _sum_of_all(graph: Graph, x: Tensor, dtype: Any = None) -> Tensor:
    return _reduced("sum", graph, x, None, False)


@operator("max.dim")
def _max_along(graph: Graph, x: Tensor, dim: int, keepdim: bool = False) -> Result:
    return [_reduced("max", graph, x, dim, keepdim), reductions.arg_reduce(graph, "argmax", x, dim, keepdim)]


@operator("min.dim")
def _min_along(graph: Graph, x: Tensor, dim: int, keepdim: bool = False) -> Result:
    return [_reduced("min", graph, x, dim, keepdim), reductions.arg_reduce(graph, "argmin", x, dim, keepdim)]


@operator("argmax.default")
def _argmax(graph: Graph, x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    if dim is None:
        raise Refused("the largest element of all axes")
    return reductions.arg_reduce(graph, "argmax", x, dim, keepdim)


@operator("_softmax.default")
def softmax(graph: Graph, x: Tensor, dim: int, half_to_float: bool = False) -> Tensor:
    """The softmax along an axis."""
    return reductions.softmax(graph, x, [dim])


@operator("_log_softmax.default")
def log_softmax(graph: Graph, x: Tensor, dim: int, half_to_float: bool = False) -> Tensor:
    """The logarithm of the softmax along an axis."""
    return reductions.softmax(graph, x, [dim], logarithm=True)


@operator("native_batch_norm.default", "_native_batch_norm_legit.default", "batch_norm.default")
def batch_norm(
    graph: Graph, x: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor | None,
    variance: Tensor | None, training: bool, momentum: float, epsilon: float, *_: Any,
) -> Result:  # fmt: skip
    """The normalisation by moments of channels that are given; by those of the tensor, where none are kept of it."""
    if mean is None or variance is None:
        rank = len(x.shape)
        scale_, shift_ = (None if t is None else reductions.per_channel(graph, t, rank) for t in (weight, bias))
        over = [axis for axis in range(rank) if axis != 1]
        return [reductions.layer_normalisation(graph, x, over, epsilon, scale_, shift_), None, None]
    if training:
        raise Refused("a normalisation that keeps moments", "call eval() on the module")
    channels = x.shape[1].estimate
    scale = weight if weight is not None else Constant(np.ones(channels, x.type), "scale")
    shift = bias if bias is not None else Constant(np.zeros(channels, x.type), "shift")
    return [reductions.batch_normalisation(graph, x, (scale, shift, mean, variance), epsilon), None, None]


@operator("_native_batch_norm_legit_no_training.default")
def batch_norm_of_inference(
    graph: Graph, x: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, variance: Tensor,
    momentum: float, epsilon: float,
) -> Result:  # fmt: skip
    """The normalisation by moments of channels that are given."""
    return batch_norm(graph, x, weight, bias, mean, variance, False, momentum, epsilon)


@operator("native_layer_norm.default")
def layer_norm(
    graph: Graph, x: Tensor, shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, epsilon: float
) -> Result:
    """The normalisation by the moments of the last axes."""
    over = range(len(x.shape) - len(shape), len(x.shape))
    return [reductions.layer_normalisation(graph, x, over, epsilon, weight, bias), None, None]


@operator("native_group_norm.default")
def group_norm(
    graph: Graph, x: Tensor, weight: Tensor | None, bias: Tensor | None, images: int, channels: int, rest: int,
    groups: int, epsilon: float,
) -> Result:  # fmt: skip
    """The normalisation by the moments of groups of channels."""
    return [reductions.group_normalisation(graph, x, groups, epsilon, weight, bias), None, None]


@operator("mm.default", "bmm.default", "matmul.default")
def matmul(graph: Graph, a: Tensor, b: Tensor) -> Tensor:
    """The product of matrices."""
    return products.matmul(graph, a, b)


@operator("addmm.default")
def addmm(graph: Graph, c: Tensor, a: Tensor, b: Tensor, beta: float = 1, alpha: float = 1) -> Tensor:
    """alpha * a @ b + beta * c."""
    return products.gemm(graph, a, b, c, alpha, beta)


@operator("linear.default")
def linear(graph: Graph, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """The product with transposed weights."""
    found = products.matmul(graph, x, weight, (False, True))
    return found if bias is None else pointwise.binary(graph, "add", found, bias)


@operator("permute.default")
def permute(graph: Graph, x: Tensor, order: Sequence[int]) -> Tensor:
    """The axes in another order."""
    return _permuted(graph, x, [axis % len(x.shape) for axis in order])


def _permuted(graph: Graph, x: Tensor, order: Sequence[int]) -> Tensor:
    if isinstance(x, Constant):
        return Constant(np.ascontiguousarray(x.array.transpose(order)), x.hint)
    return views.transpose(graph, x, order)


@operator("transpose.int")
def transpose(graph: Graph, x: Tensor, a: int, b: int) -> Tensor:
    """Two axes exchanged."""
    order = list(range(len(x.shape)))
    order[a], order[b] = order[b], order[a]
    return _permuted(graph, x, order)


@operator("t.default")
def turned(graph: Graph, x: Tensor) -> Tensor:
    """The matrix transposed."""
    return _permuted(graph, x, [1, 0]) if len(x.shape) == 2 else x


@operator("view.default", "reshape.default", "_unsafe_view.default")
def view(graph: Graph, x: Tensor, shape: Sequence[int]) -> Tensor:
    """The elements in another shape."""
    whole, known = product(x.shape).estimate, int(np.prod([n for n in shape if n != -1], dtype=np.int64))
    return views.reshape(graph, x, tuple(fixed(whole // known if n == -1 else n) for n in shape))


@operator("unsqueeze.default")
def unsqueeze(graph: Graph, x: Tensor, dim: int) -> Tensor:
    """An axis of one element is put in."""
    at = dim % (len(x.shape) + 1)
    return views.reshape(graph, x, (*x.shape[:at], ONE, *x.shape[at:]))


@operator("squeeze.default", "squeeze.dim", "squeeze.dims")
def squeeze(graph: Graph, x: Tensor, dim: Any = None) -> Tensor:
    """Axes of one element are left out."""
    over = range(len(x.shape)) if dim is None else [dim] if isinstance(dim, int) else dim
    gone = {a % len(x.shape) for a in over}
    return views.reshape(graph, x, tuple(s for a, s in enumerate(x.shape) if a not in gone or s != ONE))


@operator("expand.default")
def expand(graph: Graph, x: Tensor, shape: Sequence[int], implicit: bool = False) -> Tensor:
    """The tensor broadcast to a shape."""
    own = (ONE,) * (len(shape) - len(x.shape)) + x.shape
    return views.expand(graph, x, tuple(s if n == -1 else fixed(n) for n, s in zip(shape, own, strict=True)))


@operator("cat.default")
def concatenate(graph: Graph, parts: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors one behind the other."""
    return views.concatenate(graph, parts, dim)


@operator("slice.Tensor")
def cut(
    graph: Graph, x: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """A part of an axis."""
    return views.slices(graph, x, [(dim, start or 0, end, step)])


@operator("select.int")
def select(graph: Graph, x: Tensor, dim: int, index: int) -> Tensor:
    """One element of an axis, which leaves."""
    return views.take(graph, x, dim, [index], drop=True)


@operator("split.Tensor", "split_with_sizes.default")
def split(graph: Graph, x: Tensor, sizes: Any, dim: int = 0) -> Result:
    """Parts of an axis."""
    whole = x.shape[dim].estimate
    each = [min(sizes, whole - k) for k in range(0, whole, sizes)] if isinstance(sizes, int) else list(sizes)
    ends = np.cumsum(each).tolist()
    return [views.slices(graph, x, [(dim, e - n, e, 1)]) for n, e in zip(each, ends, strict=True)]


def _ends(x: Tensor, padding: Sequence[int]) -> list[tuple[int, int]]:
    """(before, after) of each axis; PyTorch lists them for the last axis first."""
    pairs = list(zip(padding[::2], padding[1::2], strict=True))[::-1]
    return [(0, 0)] * (len(x.shape) - len(pairs)) + pairs


@operator("constant_pad_nd.default")
def pad(graph: Graph, x: Tensor, padding: Sequence[int], value: float = 0) -> Tensor:
    """Elements of one value around the tensor."""
    return views.pad(graph, x, _ends(x, padding), "constant", value)


@operator("reflection_pad1d.default", "reflection_pad2d.default")
def reflected(graph: Graph, x: Tensor, padding: Sequence[int]) -> Tensor:
    """The tensor mirrored beyond its ends."""
    return views.pad(graph, x, _ends(x, padding), "reflect")


@operator("replication_pad1d.default", "replication_pad2d.default")
def repeated(graph: Graph, x: Tensor, padding: Sequence[int]) -> Tensor:
    """The tensor's ends repeated beyond it."""
    return views.pad(graph, x, _ends(x, padding), "edge")

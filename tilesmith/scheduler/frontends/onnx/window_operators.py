"""Operators of ONNX on windows: convolutions and pools; and the sizes of images."""

from __future__ import annotations

from collections.abc import Sequence

from tilesmith.scheduler.frontends.onnx.node import Node, operator
from tilesmith.scheduler.frontends.tensors import reductions, resize, windows
from tilesmith.scheduler.frontends.tensors.sizes import Size
from tilesmith.scheduler.frontends.tensors.tensor import Refused, Tensor
from tilesmith.scheduler.frontends.tensors.windows import Window


def _windows(node: Node, sizes: Sequence[int], over: Sequence[Size]) -> list[Window]:
    """The windows that the attributes say, for a kernel of these sizes."""
    count = len(sizes)
    strides, dilations = (_listed(node, name, [1] * count) for name in ("strides", "dilations"))
    auto = node.get("auto_pad", "NOTSET")
    pads = _listed(node, "pads", [0] * 2 * count) if auto == "NOTSET" else [0] * 2 * count
    found = [Window(size, strides[k], dilations[k], pads[k], pads[k + count]) for k, size in enumerate(map(int, sizes))]
    if min(pads, default=0) < 0:
        raise Refused(f"attribute pads = {pads}", "use Pad before it")
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        return [windows.same(s, w, auto == "SAME_UPPER") for s, w in zip(over, found, strict=True)]
    if auto not in ("NOTSET", "VALID"):
        raise Refused(f"attribute auto_pad = {auto!r}")
    return found


def _listed(node: Node, name: str, default: list[int]) -> list[int]:
    found = [int(v) for v in node.get(name, default)]
    if len(found) != len(default):
        raise Refused(f"attribute {name} = {found}, {len(default)} numbers are expected")
    return found


def _kernel(node: Node, weights: Tensor) -> list[int]:
    return [int(k) for k in node.get("kernel_shape", [s.estimate for s in weights.shape[2:]])]


@operator("Conv")
def convolution(node: Node) -> Tensor:
    """A convolution: groups, strides, dilations, padding."""
    weights = node.tensor(1)
    moving = _windows(node, _kernel(node, weights), node.x.shape[2:])
    return windows.convolution(node.graph, node.x, weights, node.optional(2), moving, int(node.get("group", 1)))


@operator("ConvTranspose")
def transposed_convolution(node: Node) -> Tensor:
    """A transposed convolution: groups, strides, padding, output_padding, output_shape."""
    weights, sizes = node.tensor(1), node.x.shape[2:]
    auto, wanted = node.get("auto_pad", "NOTSET"), node.get("output_shape", None)
    kernel = _kernel(node, weights)
    count = len(kernel)
    strides, dilations = (_listed(node, name, [1] * count) for name in ("strides", "dilations"))
    pads, extra = _listed(node, "pads", [0] * 2 * count), _listed(node, "output_padding", [0] * count)
    if auto in ("SAME_UPPER", "SAME_LOWER") and wanted is None:
        wanted = [(s * stride).estimate for s, stride in zip(sizes, strides, strict=True)]
    if wanted is not None:
        for k, size in enumerate(sizes):
            whole = (size.estimate - 1) * strides[k] + extra[k] + (kernel[k] - 1) * dilations[k] + 1
            total = whole - int(wanted[k])
            first = total // 2 if auto == "SAME_UPPER" else total - total // 2
            pads[k], pads[k + count] = first, total - first
    if min(pads) < 0:
        raise Refused(f"padding of {pads} elements")
    found = [Window(kernel[k], strides[k], dilations[k], pads[k], pads[k + count]) for k in range(count)]
    group, bias = int(node.get("group", 1)), node.optional(2)
    return windows.transposed_convolution(node.graph, node.x, weights, bias, found, group, extra)


@operator("MaxPool", "AveragePool")
def pool(node: Node) -> Tensor:
    """The largest element, or the mean, of each window."""
    if node.outputs > 1:
        raise Refused("the indices of a pool")
    node.only("storage_order", 0)
    moving = _windows(node, node.get("kernel_shape", []), node.x.shape[2:])
    ceil = bool(node.get("ceil_mode", 0))
    if node.op == "MaxPool":
        return windows.max_pool(node.graph, node.x, moving, ceil)
    return windows.average_pool(node.graph, node.x, moving, ceil, bool(node.get("count_include_pad", 0)))


@operator("GlobalAveragePool", "GlobalMaxPool")
def global_pool(node: Node) -> Tensor:
    """The mean, or the largest element, of each channel."""
    over = range(2, len(node.x.shape))
    return reductions.reduce(node.graph, "mean" if node.op == "GlobalAveragePool" else "max", node.x, over)


@operator("Resize", "Upsample")
def resized(node: Node) -> Tensor:
    """Images in another size: nearest, linear, cubic."""
    node.only("antialias", 0)
    node.only("exclude_outside", 0)
    node.only("keep_aspect_ratio_policy", "stretch")
    upsample = node.op == "Upsample" or node.opset < 11
    scales, sizes = _scales(node)
    which = node.get("axes", list(range(len(node.x.shape))))
    mode = node.get("mode", "nearest")
    how = "asymmetric" if upsample else node.get("coordinate_transformation_mode", "half_pixel")
    points: list[resize.Resampling | None] = [None] * len(node.x.shape)
    for k, axis in enumerate(which):
        own = node.x.shape[axis]
        points[axis] = _points(own, None if scales is None else scales[k], None if sizes is None else sizes[k], how)
    rounding = "floor" if upsample else node.get("nearest_mode", "round_prefer_floor")
    if mode not in ("nearest", "linear", "cubic"):
        raise Refused(f"attribute mode = {mode!r}")
    return resize.resize(node.graph, node.x, points, mode, rounding, float(node.get("cubic_coeff_a", -0.75)))


def _scales(node: Node) -> tuple[list[float] | None, list[Size] | None]:
    if node.op == "Upsample" and node.opset < 9:
        return [float(s) for s in node.get("scales", [])], None
    given = node.constant(1 if node.op == "Upsample" or node.opset < 11 else 2)
    if given is not None and given.size:
        return [float(s) for s in given.reshape(-1)], None
    sizes = node.sizes(3)
    if sizes is None:
        raise Refused("neither scales nor sizes are given")
    return None, sizes


def _points(own: Size, scale: float | None, size: Size | None, how: str) -> resize.Resampling | None:
    if scale is not None:
        exact = resize.scale_of(scale)
        made = own * exact.numerator // exact.denominator
        return None if exact == 1 else resize.resampling(own, made, exact, how)
    return None if size is None or size == own else resize.resampling(own, size, None, how)

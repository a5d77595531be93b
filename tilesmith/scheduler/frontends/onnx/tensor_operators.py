"""Operators of ONNX on whole tensors: reductions, normalisation, products, views."""

from __future__ import annotations

from functools import partial

import numpy as np

from tilesmith.scheduler.frontends.onnx.node import OPERATORS, Node, operator
from tilesmith.scheduler.frontends.tensors import products, reductions, views
from tilesmith.scheduler.frontends.tensors.sizes import ONE, Shape, Size, fixed, product, shape_of
from tilesmith.scheduler.frontends.tensors.tensor import Constant, Extents, Refused, Tensor

_REDUCTIONS = {
    "ReduceSum": ("sum", 13), "ReduceMean": ("mean", 18), "ReduceMax": ("max", 18), "ReduceMin": ("min", 18),
    "ReduceProd": ("prod", 18), "ReduceL1": ("l1", 18), "ReduceL2": ("l2", 18), "ReduceSumSquare": ("sum_square", 18),
    "ReduceLogSum": ("log_sum", 18),
}  # fmt: skip


def _reduction(name: str, since: int, node: Node) -> Tensor:
    over = node.listed("axes", 1, since)
    if not over and node.get("noop_with_empty_axes", 0):
        return node.x
    return reductions.reduce(
        node.graph, name, node.x, over or range(len(node.x.shape)), bool(node.get("keepdims", 1))
    )  # fmt: skip


OPERATORS.update({op: partial(_reduction, *how) for op, how in _REDUCTIONS.items()})


@operator("ArgMax", "ArgMin")
def arg_reduction(node: Node) -> Tensor:
    """The index of the largest or least element."""
    node.only("select_last_index", 0)
    keep = bool(node.get("keepdims", 1))
    return reductions.arg_reduce(node.graph, node.op.lower(), node.x, int(node.get("axis", 0)), keep)


@operator("Softmax", "LogSoftmax")
def softmax(node: Node) -> Tensor:
    """The softmax over an axis; before version 13 over all axes from it on."""
    rank = len(node.x.shape)
    axis = int(node.get("axis", -1 if node.opset >= 13 else 1)) % rank
    over = [axis] if node.opset >= 13 else list(range(axis, rank))
    return reductions.softmax(node.graph, node.x, over, node.op == "LogSoftmax")


@operator("BatchNormalization")
def batch_normalisation(node: Node) -> Tensor:
    """The normalisation by moments of channels that the model has."""
    node.only("training_mode", 0)
    node.only("spatial", 1)
    given = node.tensor(1), node.tensor(2), node.tensor(3), node.tensor(4)
    epsilon = float(node.get("epsilon", 1e-5))
    return reductions.batch_normalisation(node.graph, node.x, given, epsilon)


@operator("InstanceNormalization")
def instance_normalisation(node: Node) -> Tensor:
    """The normalisation by the moments of each channel of each image."""
    rank = len(node.x.shape)
    scale, shift = (reductions.per_channel(node.graph, node.tensor(k), rank) for k in (1, 2))
    epsilon = float(node.get("epsilon", 1e-5))
    return reductions.layer_normalisation(node.graph, node.x, range(2, rank), epsilon, scale, shift)


@operator("LayerNormalization")
def layer_normalisation(node: Node) -> Tensor:
    """The normalisation by the moments of the last axes."""
    if node.outputs > 1:
        raise Refused("the moments of a normalisation as outputs")
    rank = len(node.x.shape)
    over, epsilon = range(int(node.get("axis", -1)) % rank, rank), float(node.get("epsilon", 1e-5))
    return reductions.layer_normalisation(node.graph, node.x, over, epsilon, node.tensor(1), node.optional(2))


@operator("GroupNormalization")
def group_normalisation(node: Node) -> Tensor:
    """The normalisation by the moments of groups of channels."""
    if node.opset < 21:
        raise Refused("scale and shift of groups", "export with version 21 of the operators")
    groups, epsilon = int(node.get("num_groups", 1)), float(node.get("epsilon", 1e-5))
    return reductions.group_normalisation(node.graph, node.x, groups, epsilon, node.tensor(1), node.tensor(2))


@operator("LRN")
def local_response(node: Node) -> Tensor:
    """The normalisation by channels nearby."""
    alpha, beta, bias = (float(node.get(n, d)) for n, d in (("alpha", 1e-4), ("beta", 0.75), ("bias", 1.0)))
    return reductions.local_response(node.graph, node.x, int(node.get("size", 1)), alpha, beta, bias)


@operator("MatMul")
def matmul(node: Node) -> Tensor:
    """The product of matrices."""
    return products.matmul(node.graph, node.x, node.tensor(1))


@operator("Gemm")
def gemm(node: Node) -> Tensor:
    """alpha * a @ b + beta * c, of matrices that may be transposed."""
    turned = bool(node.get("transA", 0)), bool(node.get("transB", 0))
    alpha, beta = float(node.get("alpha", 1.0)), float(node.get("beta", 1.0))
    return products.gemm(node.graph, node.x, node.tensor(1), node.optional(2), alpha, beta, turned)


@operator("Transpose")
def transpose(node: Node) -> Tensor:
    """The axes in another order."""
    return views.transpose(node.graph, node.x, node.get("perm", list(range(len(node.x.shape)))[::-1]))


@operator("Flatten")
def flatten(node: Node) -> Tensor:
    """The axes before and from one on as one each."""
    axis, shape = int(node.get("axis", 1)), node.x.shape
    axis = axis % len(shape) if axis < 0 else axis
    return views.reshape(node.graph, node.x, (product(shape[:axis]), product(shape[axis:])))


@operator("Reshape")
def reshape(node: Node) -> Tensor:
    """The elements in another shape."""
    wanted = node.sizes(1) if node.opset >= 5 else list(shape_of(node.get("shape", [])))
    if wanted is None:
        raise Refused("no shape is given")
    node.only("allowzero", 0)
    return views.reshape(node.graph, node.x, reshaped(node.x.shape, wanted))


def reshaped(shape: Shape, wanted: list[Size]) -> Shape:
    """The shape that is meant: 0 is the size that the axis has, -1 what is left."""
    rest, own = fixed(-1), fixed(0)
    if any(v == own and k >= len(shape) for k, v in enumerate(wanted)) or wanted.count(rest) > 1:
        raise Refused(f"the shape {[str(v) for v in wanted]} of a tensor of {len(shape)} axes")
    sizes = [shape[k] if v == own else v for k, v in enumerate(wanted)]
    left = product(shape) // product(s for s in sizes if s != rest)
    return tuple(left if s == rest else s for s in sizes)


@operator("Squeeze", "Unsqueeze")
def squeeze(node: Node) -> Tensor:
    """Axes of one element are left out, or put in."""
    over, shape = node.listed("axes", 1, 13), list(node.x.shape)
    if node.op == "Squeeze":
        gone = {a % len(shape) for a in over} if over else {k for k, s in enumerate(shape) if s == ONE}
        return views.reshape(node.graph, node.x, tuple(s for k, s in enumerate(shape) if k not in gone))
    rank = len(shape) + len(over or ())
    for axis in sorted(a % rank for a in over or ()):
        shape.insert(axis, ONE)
    return views.reshape(node.graph, node.x, tuple(shape))


@operator("Slice")
def cut(node: Node) -> Tensor:
    """Parts of axes."""
    if node.opset < 10:
        starts, ends, over = (node.attributes.get(n) for n in ("starts", "ends", "axes"))
        steps = None
    else:
        starts, ends, over, steps = (node.integers(k) for k in (1, 2, 3, 4))
    if starts is None or ends is None:
        raise Refused("starts or ends are missing")
    over, steps = over or list(range(len(starts))), steps or [1] * len(starts)
    cuts = []
    for start, end, axis, step in zip(starts, ends, over, steps, strict=True):
        if step == 0:
            raise Refused("a step of 0")
        beyond = None if step < 0 and end < -(1 << 30) else end
        cuts.append((int(axis), int(start), beyond, int(step)))
    return views.slices(node.graph, node.x, cuts)


@operator("Split")
def split(node: Node) -> list[Tensor]:
    """Parts of an axis, one behind the other."""
    axis = int(node.get("axis", 0)) % len(node.x.shape)
    size, parts = node.x.shape[axis], node.listed("split", 1, 13)
    if not size.known:
        raise Refused(f"parts of an axis of {size} elements", "fix the sizes of the model's inputs")
    if not parts:
        each = -(-size.estimate // node.outputs)
        parts = [min(each, size.estimate - k * each) for k in range(node.outputs)]
    ends = np.cumsum(parts).tolist()
    return [views.slices(node.graph, node.x, [(axis, e - p, e, 1)]) for p, e in zip(parts, ends, strict=True)]


@operator("Concat")
def concatenate(node: Node) -> Tensor:
    """Tensors one behind the other."""
    parts = [node.tensor(k) for k in range(len(node.inputs))]
    return views.concatenate(node.graph, parts, int(node.get("axis", 1)))


@operator("Pad")
def pad(node: Node) -> Tensor:
    """Elements before and after the axes."""
    given = node.listed("pads", 1, 11) or [int(v) for v in node.get("paddings", [])]
    rank, value = len(node.x.shape), 0.0
    if node.opset >= 11:
        filled = node.constant(2)
        value = 0.0 if filled is None or not filled.size else filled.reshape(-1)[0].item()
    else:
        value = float(node.get("value", 0.0))
    over = [a % rank for a in node.integers(3) or range(rank)]
    ends = [(0, 0)] * rank
    for k, axis in enumerate(over):
        ends[axis] = given[k], given[k + len(over)]
    if not np.isfinite(value):
        value = float(np.finfo(node.x.type).max if value > 0 else np.finfo(node.x.type).min)
    return views.pad(node.graph, node.x, ends, node.get("mode", "constant"), value)


@operator("Expand")
def expand(node: Node) -> Tensor:
    """The tensor broadcast to a shape."""
    return views.expand(node.graph, node.x, tuple(node.sizes(1) or ()))


@operator("Tile")
def tile(node: Node) -> Tensor:
    """The tensor repeated."""
    return views.tile(node.graph, node.x, node.integers(1) or [1] * len(node.x.shape))


@operator("Gather")
def take(node: Node) -> Tensor:
    """Elements of an axis that constants name."""
    chosen = node.constant(1)
    if chosen is None or chosen.ndim > 1:
        raise Refused("indices of more than one axis")
    return views.take(node.graph, node.x, int(node.get("axis", 0)), chosen.reshape(-1).tolist(), chosen.ndim == 0)


@operator("DepthToSpace")
def depth_to_space(node: Node) -> Tensor:
    """Blocks of channels as pixels."""
    return views.depth_to_space(node.graph, node.x, int(node.get("blocksize", 1)), node.get("mode", "DCR") == "CRD")


@operator("SpaceToDepth")
def space_to_depth(node: Node) -> Tensor:
    """Pixels as blocks of channels."""
    return views.space_to_depth(node.graph, node.x, int(node.get("blocksize", 1)))


@operator("Shape")
def shape(node: Node) -> Tensor:
    """The sizes of axes."""
    sizes = node.x.shape[node.get("start", 0) : node.get("end", None)]
    if not all(s.known for s in sizes):
        return Extents(sizes, False)
    return Constant(np.array([s.estimate for s in sizes], np.int64), "shape")

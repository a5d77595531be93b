"""Operators of ONNX that compute point by point."""

from __future__ import annotations

from functools import partial, reduce

import numpy as np

from tilesmith.scheduler.frontends.onnx.node import OPERATORS, Node, operator
from tilesmith.scheduler.frontends.tensors import pointwise
from tilesmith.scheduler.frontends.tensors.tensor import Constant, Refused, Tensor

_UNARY = {
    "Relu": "relu", "Sigmoid": "sigmoid", "Tanh": "tanh", "Exp": "exp", "Log": "log", "Sqrt": "sqrt", "Abs": "abs",
    "Neg": "neg", "Reciprocal": "reciprocal", "Floor": "floor", "Ceil": "ceil", "Round": "round", "Sin": "sin",
    "Cos": "cos", "Tan": "tan", "Asin": "asin", "Acos": "acos", "Atan": "atan",
    "Not": "not", "Softplus": "softplus", "Softsign": "softsign", "Erf": "erf",
    "HardSwish": "hard_swish", "Mish": "mish", "IsNaN": "isnan",
}  # fmt: skip
_BINARY = {
    "Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div", "Less": "lt", "LessOrEqual": "le", "Greater": "gt",
    "GreaterOrEqual": "ge", "Equal": "eq", "And": "and", "Or": "or", "Xor": "xor",
}  # fmt: skip
_VARIADIC = {"Min": "min", "Max": "max", "Sum": "add", "Mean": "add"}


def _unary(name: str, node: Node) -> Tensor:
    return pointwise.unary(node.graph, name, node.x)


def _binary(name: str, node: Node) -> Tensor:
    return pointwise.binary(node.graph, name, node.x, node.tensor(1))


def _variadic(name: str, node: Node) -> Tensor:
    parts = [node.tensor(k) for k in range(len(node.inputs))]
    total = reduce(partial(pointwise.binary, node.graph, name), parts)
    return pointwise.scale(node.graph, total, 1 / len(parts)) if node.op == "Mean" else total


OPERATORS.update({op: partial(_unary, name) for op, name in _UNARY.items()})
OPERATORS.update({op: partial(_binary, name) for op, name in _BINARY.items()})
OPERATORS.update({op: partial(_variadic, name) for op, name in _VARIADIC.items()})


@operator("Identity")
def identity(node: Node) -> Tensor:
    """The tensor itself."""
    return node.x


@operator("Dropout")
def dropout(node: Node) -> Tensor:
    """The tensor itself: nothing is dropped but in training."""
    if node.outputs > 1:
        raise Refused("the mask of a dropout")
    training = node.constant(2)
    if training is not None and bool(training):
        raise Refused("training_mode is true", "export the model for inference")
    return node.x


@operator("Pow")
def power(node: Node) -> Tensor:
    """A power; a number as exponent is a product, where that is a small whole one."""
    exponent = node.tensor(1)
    if isinstance(exponent, Constant) and exponent.array.size == 1 and not exponent.array.ndim:
        return pointwise.power(node.graph, node.x, float(exponent.array))
    return pointwise.binary(node.graph, "pow", node.x, exponent)


@operator("Clip")
def clip(node: Node) -> Tensor:
    """The tensor between two numbers; ends that are infinite do nothing."""
    if node.opset < 11:
        ends = (node.get("min", -np.inf), node.get("max", np.inf))
        low, high = (Constant(np.asarray(e, node.x.type)) if np.isfinite(e) else None for e in ends)
        return pointwise.clip(node.graph, node.x, low, high)
    low_, high_ = (_finite(node.optional(k)) for k in (1, 2))
    return pointwise.clip(node.graph, node.x, low_, high_)


def _finite(end: Tensor | None) -> Tensor | None:
    return None if isinstance(end, Constant) and not np.isfinite(end.array).all() else end


@operator("Sign")
def sign(node: Node) -> Tensor:
    """1, -1 or 0."""
    return pointwise.sign(node.graph, node.x)


@operator("LeakyRelu")
def leaky_relu(node: Node) -> Tensor:
    """x, below 0 times alpha."""
    return pointwise.leaky_relu(node.graph, node.x, float(node.get("alpha", 0.01)))


@operator("PRelu")
def parametric_relu(node: Node) -> Tensor:
    """x, below 0 times a slope of each channel or element."""
    return pointwise.leaky_relu(node.graph, node.x, node.tensor(1))


@operator("Elu", "Selu", "Celu")
def elu(node: Node) -> Tensor:
    """x, below 0 an exponential that ends at -alpha."""
    if node.op == "Celu":
        alpha = float(node.get("alpha", 1.0))
        below = pointwise.elu(node.graph, pointwise.scale(node.graph, node.x, 1 / alpha), 1.0)
        return pointwise.scale(node.graph, below, alpha)
    selu = node.op == "Selu"
    alpha = float(node.get("alpha", 1.67326319217681884765625 if selu else 1.0))
    return pointwise.elu(node.graph, node.x, alpha, float(node.get("gamma", 1.05070102214813232421875 if selu else 1)))


@operator("HardSigmoid")
def hard_sigmoid(node: Node) -> Tensor:
    """alpha * x + beta between 0 and 1."""
    line = pointwise.scale(node.graph, node.x, float(node.get("alpha", 0.2)), float(node.get("beta", 0.5)))
    return pointwise.clamp(node.graph, line, 0, 1)


@operator("ThresholdedRelu")
def thresholded_relu(node: Node) -> Tensor:
    """x above alpha, else 0."""
    alpha = float(node.get("alpha", 1.0))
    return pointwise.apply(node.graph, lambda v: f"({v} if {v} > {alpha!r} else 0)", node.x, repeated=True)


@operator("Gelu")
def gelu(node: Node) -> Tensor:
    """The Gaussian error linear unit."""
    name = {"none": "gelu", "tanh": "gelu_tanh"}[node.get("approximate", "none")]
    return pointwise.unary(node.graph, name, node.x)


@operator("Mod")
def modulo(node: Node) -> Tensor:
    """The remainder with the sign of the dividend, of floats (`fmod`); of unsigned integers."""
    if node.x.type.startswith("uint"):
        return pointwise.apply(node.graph, lambda p, q: f"{p} % {q}", node.x, node.tensor(1))
    if not node.x.type.startswith("float"):
        raise Refused(f"a remainder of {node.x.type} elements")
    form = "({p} - trunc({p} / {q}) * {q})"
    return pointwise.apply(node.graph, lambda p, q: form.format(p=p, q=q), node.x, node.tensor(1), repeated=True)


@operator("Where")
def where(node: Node) -> Tensor:
    """A choice of two tensors."""
    return pointwise.select(node.graph, node.x, node.tensor(1), node.tensor(2))


@operator("DequantizeLinear", "QuantizeLinear")
def quantised(node: Node) -> Tensor:
    """Integers as the floats that they stand for, and back; scales are of the tensor or of an axis."""
    node.only("block_size", 0)
    node.only("output_dtype", 0)
    axis, rank = int(node.get("axis", 1)), len(node.x.shape)
    scale, zero = (None if t is None else _along(t, axis, rank) for t in (node.tensor(1), node.optional(2)))
    assert scale is not None
    if node.op == "DequantizeLinear":
        return pointwise.dequantise(node.graph, node.x, scale, zero)
    return pointwise.quantise(node.graph, node.x, scale, zero, "uint8" if zero is None else zero.type)


def _along(tensor: Tensor, axis: int, rank: int) -> Tensor:
    """A constant of one axis as one of `rank`."""
    if not isinstance(tensor, Constant):
        raise Refused("scales that follow from data")
    shape = [1] * rank
    if tensor.array.size > 1:
        shape[axis] = tensor.array.size
    return Constant(tensor.array.reshape(shape), tensor.hint)


@operator("Cast", "CastLike")
def cast(node: Node) -> Tensor:
    """The elements in another type."""
    if node.op == "CastLike":
        return pointwise.cast(node.graph, node.x, node.tensor(1).type)
    from onnx import TensorProto
    from onnx.helper import tensor_dtype_to_np_dtype

    to = int(node.get("to", 0))
    if to == TensorProto.STRING:
        raise Refused("strings")
    return pointwise.cast(node.graph, node.x, tensor_dtype_to_np_dtype(to).name)

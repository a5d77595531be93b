"""ATen operators that compute point by point."""

from __future__ import annotations

from functools import partial
from typing import Any

from tilesmith.scheduler.frontends.fx.table import OPERATORS, common, operator, tensor
from tilesmith.scheduler.frontends.tensors import pointwise
from tilesmith.scheduler.frontends.tensors.graph import Graph
from tilesmith.scheduler.frontends.tensors.tensor import Refused, Tensor

_UNARY = {
    name: name
    for name in (
        "relu", "sigmoid", "tanh", "exp", "log", "sqrt", "rsqrt", "abs", "neg", "reciprocal", "floor", "ceil", "round",
        "sin", "cos", "erf", "silu", "mish", "isnan",
    )
} | {"logical_not": "not", "bitwise_not": "not", "hardswish": "hard_swish"}  # fmt: skip
_BINARY = {
    "add": "add", "sub": "sub", "mul": "mul", "div": "div", "bitwise_and": "and", "bitwise_or": "or",
    **{name: name for name in pointwise.COMPARISONS},
}  # fmt: skip
_OF_TENSORS = {
    "maximum": "max", "minimum": "min", "logical_and": "and", "logical_or": "or", "logical_xor": "xor",
}  # fmt: skip


def _unary(name: str, graph: Graph, x: Tensor) -> Tensor:
    return pointwise.unary(graph, name, x)


def _binary(name: str, graph: Graph, a: Any, b: Any, alpha: float = 1) -> Tensor:
    kind = common(a, b)
    if name == "div" and not kind.startswith("float"):
        kind = "float32"
    left, right = (pointwise.cast(graph, tensor(v, kind), kind) for v in (a, b))
    return pointwise.binary(graph, name, left, right if alpha == 1 else pointwise.scale(graph, right, alpha))


OPERATORS.update({f"{op}.default": partial(_unary, name) for op, name in _UNARY.items()})
OPERATORS.update(
    {f"{op}.{kind}": partial(_binary, name) for op, name in _BINARY.items() for kind in ("Tensor", "Scalar")}
)
OPERATORS.update({f"{op}.default": partial(_binary, name) for op, name in _OF_TENSORS.items()})


@operator("rsub.Scalar", "rsub.Tensor")
def reversed_difference(graph: Graph, a: Any, b: Any, alpha: float = 1) -> Tensor:
    """b - alpha * a."""
    return _binary("sub", graph, b, a, alpha)


@operator("div.Tensor_mode", "div.Scalar_mode")
def rounded_quotient(graph: Graph, a: Any, b: Any, rounding_mode: str | None = None) -> Tensor:
    """A quotient, cut towards zero or rounded down."""
    kind = common(a, b)
    if rounding_mode is None or kind.startswith("float"):
        found = _binary("div", graph, a, b)
        return found if rounding_mode is None else pointwise.apply(graph, f"{rounding_mode}({{}})".format, found)
    left, right = (pointwise.cast(graph, tensor(v, kind), kind) for v in (a, b))
    if rounding_mode == "trunc":
        return pointwise.binary(graph, "div", left, right)
    raise Refused("a quotient of integers that is rounded down")


@operator("clone.default", "detach.default", "alias.default", "lift_fresh_copy.default", "contiguous.default")
def identity(graph: Graph, x: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor itself."""
    return x


@operator("scalar_tensor.default")
def number(graph: Graph, value: float, dtype: Any = None, **how: Any) -> Tensor:
    """A number as a tensor without axes."""
    return tensor(value, "float32" if dtype is None else str(dtype).removeprefix("torch."))


@operator("dropout.default")
def dropout(graph: Graph, x: Tensor, p: float, train: bool) -> Tensor:
    """The tensor itself, but in training."""
    if train:
        raise Refused("a dropout in training", "call eval() on the module")
    return x


@operator("_to_copy.default", "to.dtype")
def converted(graph: Graph, x: Tensor, dtype: Any = None, **how: Any) -> Tensor:
    """The elements in another type."""
    return x if dtype is None else pointwise.cast(graph, x, str(dtype).removeprefix("torch."))


@operator("sign.default", "sgn.default")
def sign(graph: Graph, x: Tensor) -> Tensor:
    """1, -1 or 0."""
    return pointwise.sign(graph, x)


@operator("gelu.default")
def gelu(graph: Graph, x: Tensor, approximate: str = "none") -> Tensor:
    """The Gaussian error linear unit."""
    return pointwise.unary(graph, "gelu_tanh" if approximate == "tanh" else "gelu", x)


@operator("leaky_relu.default")
def leaky_relu(graph: Graph, x: Tensor, negative_slope: float = 0.01) -> Tensor:
    """x, below 0 times a slope."""
    return pointwise.leaky_relu(graph, x, negative_slope)


@operator("_prelu_kernel.default")
def parametric_relu(graph: Graph, x: Tensor, weight: Tensor) -> Tensor:
    """x, below 0 times a slope of each channel."""
    return pointwise.leaky_relu(graph, x, weight)


@operator("elu.default")
def elu(graph: Graph, x: Tensor, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Tensor:
    """x, below 0 an exponential."""
    if input_scale != 1:
        raise Refused(f"input_scale = {input_scale}")
    return pointwise.elu(graph, x, alpha, scale)


@operator("softplus.default")
def softplus(graph: Graph, x: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """A smooth relu."""
    inner = pointwise.unary(graph, "softplus", pointwise.scale(graph, x, beta))
    return pointwise.scale(graph, inner, 1 / beta)


@operator("clamp.default", "clamp_min.default", "clamp.Tensor")
def clamp(graph: Graph, x: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """x between two ends, of which either may be missing."""
    low, high = (None if v is None else pointwise.cast(graph, tensor(v, x.type), x.type) for v in (min, max))
    return pointwise.clip(graph, x, low, high)


@operator("clamp_max.default")
def clamp_max(graph: Graph, x: Tensor, max: Any) -> Tensor:
    """x, at most an end."""
    return pointwise.clip(graph, x, None, tensor(max, x.type))


@operator("hardtanh.default")
def hard_tanh(graph: Graph, x: Tensor, min_val: float = -1, max_val: float = 1) -> Tensor:
    """x between two numbers."""
    return pointwise.clamp(graph, x, min_val, max_val)


@operator("hardsigmoid.default")
def hard_sigmoid(graph: Graph, x: Tensor) -> Tensor:
    """x / 6 + 1 / 2 between 0 and 1."""
    return pointwise.clamp(graph, pointwise.scale(graph, x, 1 / 6, 0.5), 0, 1)


@operator("pow.Tensor_Scalar", "pow.Tensor_Tensor")
def power(graph: Graph, x: Tensor, exponent: Any) -> Tensor:
    """A power."""
    if isinstance(exponent, int | float):
        return pointwise.power(graph, x, float(exponent))
    return pointwise.binary(graph, "pow", x, exponent)


@operator("where.self")
def where(graph: Graph, condition: Tensor, a: Any, b: Any) -> Tensor:
    """A choice of two tensors."""
    kind = common(a, b)
    left, right = (pointwise.cast(graph, tensor(v, kind), kind) for v in (a, b))
    return pointwise.select(graph, condition, left, right)

"""Operations point by point, with NumPy's broadcasting."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tilesmith.scheduler.frontends.tensors.graph import Graph, number
from tilesmith.scheduler.frontends.tensors.sizes import ONE, Shape, Size
from tilesmith.scheduler.frontends.tensors.tensor import Refused, Tensor

_ERF = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)  # Abramowitz and Stegun, 7.1.26


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """The shape that tensors of these shapes meet at. Refused where they do not fit."""
    rank = max(map(len, shapes), default=0)
    aligned = [(ONE,) * (rank - len(shape)) + shape for shape in shapes]
    return tuple(_meet(sizes) for sizes in zip(*aligned, strict=True))


def _meet(sizes: Sequence[Size]) -> Size:
    wide = [size for size in sizes if size != ONE]
    numbers = {size.estimate for size in wide if size.known}
    if len(numbers) > 1:
        raise Refused(f"axes of {' and '.join(map(str, sorted(numbers)))} elements do not fit each other")
    return next((size for size in wide if size.known), wide[0] if wide else ONE)


def apply(
    graph: Graph, form: Callable[..., str], *operands: Tensor, type: str | None = None, repeated: bool = False
) -> Tensor:
    """The result of `form` for the operands, point by point; of `type`, else of the type of the first operand."""
    shape = broadcast([o.shape for o in operands])
    return graph.pointwise(type or operands[0].type, shape, operands, form, repeated)


def _erf(v: str) -> str:
    t = f"(1.0 / (1.0 + 0.3275911 * abs({v})))"
    polynomial = str(_ERF[-1])
    for coefficient in _ERF[-2::-1]:
        polynomial = f"({coefficient} + {t} * {polynomial})"
    magnitude = f"(1.0 - {t} * {polynomial} * exp(-({v}) * ({v})))"
    return f"(-{magnitude} if {v} < 0.0 else {magnitude})"


UNARY: Final[Mapping[str, tuple[Callable[[str], str], bool]]] = {
    "relu": (lambda v: f"max({v}, 0)", False),
    "sigmoid": (lambda v: f"1.0 / (1.0 + exp(-{v}))", False),
    "tanh": (lambda v: f"tanh({v})", False),
    "exp": (lambda v: f"exp({v})", False),
    "log": (lambda v: f"log({v})", False),
    "sqrt": (lambda v: f"sqrt({v})", False),
    "rsqrt": (lambda v: f"1.0 / sqrt({v})", False),
    "abs": (lambda v: f"abs({v})", False),
    "neg": (lambda v: f"-{v}", False),
    "reciprocal": (lambda v: f"1.0 / {v}", False),
    "floor": (lambda v: f"floor({v})", False),
    "ceil": (lambda v: f"ceil({v})", False),
    "round": (lambda v: f"round({v})", False),
    "sin": (lambda v: f"sin({v})", False),
    "cos": (lambda v: f"cos({v})", False),
    "tan": (lambda v: f"tan({v})", False),
    "asin": (lambda v: f"asin({v})", False),
    "acos": (lambda v: f"acos({v})", False),
    "atan": (lambda v: f"atan({v})", False),
    "not": (lambda v: f"not {v}", False),
    "softplus": (lambda v: f"(max({v}, 0) + log(1.0 + exp(-abs({v}))))", True),
    "softsign": (lambda v: f"{v} / (1.0 + abs({v}))", True),
    "silu": (lambda v: f"{v} / (1.0 + exp(-{v}))", True),
    "hard_swish": (lambda v: f"{v} * clamp({v} / 6.0 + 0.5, 0, 1)", True),
    "mish": (lambda v: f"{v} * tanh(max({v}, 0) + log(1.0 + exp(-abs({v}))))", True),
    "erf": (_erf, True),
    "gelu": (lambda v: f"0.5 * {v} * (1.0 + {_erf(f'({v} * 0.7071067811865476)')})", True),
    "gelu_tanh": (lambda v: f"0.5 * {v} * (1.0 + tanh(0.7978845608028654 * ({v} + 0.044715 * {v} * {v} * {v})))", True),
    "isnan": (lambda v: f"{v} != {v}", True),
}
"""Functions of one tensor: the expression, and True where it has its argument more than once."""

_FLOATS_ONLY = frozenset(UNARY) - {"relu", "abs", "neg", "not"}

COMPARISONS: Final[Mapping[str, str]] = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
_ARITHMETIC = {"add": "+", "sub": "-", "mul": "*"}
_LOGIC = {"and": "and", "or": "or"}


def unary(graph: Graph, name: str, x: Tensor) -> Tensor:
    """A function of UNARY. Refused where its elements are not floats and it wants them."""
    form, repeated = UNARY[name]
    if name in _FLOATS_ONLY and not x.type.startswith("float"):
        raise Refused(f"{name} of {x.type} elements, it is one of floats")
    return apply(graph, form, x, type="bool" if name == "isnan" else None, repeated=repeated)


def binary(graph: Graph, name: str, a: Tensor, b: Tensor) -> Tensor:
    """`add`, `sub`, `mul`, `div`, `pow`, `min`, `max`, comparisons, `and`, `or`, `xor`, of tensors of one type."""
    if name in COMPARISONS:
        return apply(graph, lambda p, q: f"{p} {COMPARISONS[name]} {q}", a, b, type="bool")
    if name in _ARITHMETIC:
        return apply(graph, lambda p, q: f"{p} {_ARITHMETIC[name]} {q}", a, b)
    if name in _LOGIC:
        return apply(graph, lambda p, q: f"{p} {_LOGIC[name]} {q}", a, b)
    if name == "xor":
        return apply(graph, lambda p, q: f"{p} != {q}", a, b)
    if name in ("min", "max"):
        return apply(graph, lambda p, q: f"{name}({p}, {q})", a, b)
    if name == "div":
        return _division(graph, a, b)
    if name == "pow" and a.type.startswith("float"):
        return apply(graph, lambda p, q: f"pow({p}, {a.type}({q}))", a, b)
    raise Refused(f"{name} of {a.type} elements")


def _division(graph: Graph, a: Tensor, b: Tensor) -> Tensor:
    """The quotient, of integers cut towards zero."""
    if a.type.startswith("float"):
        return apply(graph, lambda p, q: f"{p} / {q}", a, b)
    if a.type.startswith("uint"):
        return apply(graph, lambda p, q: f"{p} // {q}", a, b)
    cut = "(-(abs({p}) // abs({q})) if ({p} < 0) != ({q} < 0) else abs({p}) // abs({q}))"
    return apply(graph, lambda p, q: cut.format(p=p, q=q), a, b, repeated=True)


def power(graph: Graph, x: Tensor, exponent: float) -> Tensor:
    """A power with a number as exponent: a product where that is a small whole one."""
    if exponent == 2 or (exponent == int(exponent) and 0 <= exponent <= 16):
        return apply(graph, lambda v: f"{v} ** {int(exponent)}", x)
    if exponent == 0.5:
        return unary(graph, "sqrt", x)
    if not x.type.startswith("float"):
        raise Refused(f"the power {exponent} of {x.type} elements")
    return apply(graph, lambda v: f"pow({v}, {number(exponent, x.type)})", x)


def scale(graph: Graph, x: Tensor, factor: float = 1.0, offset: float = 0.0) -> Tensor:
    """x * factor + offset, of floats."""
    result = x if factor == 1 else apply(graph, lambda v: f"{v} * {number(factor, x.type)}", x)
    return result if offset == 0 else apply(graph, lambda v: f"{v} + {number(offset, x.type)}", result)


def clip(graph: Graph, x: Tensor, low: Tensor | None, high: Tensor | None) -> Tensor:
    """x between two numbers, of which either may be missing."""
    result = x if low is None else binary(graph, "max", x, low)
    return result if high is None else binary(graph, "min", result, high)


def clamp(graph: Graph, x: Tensor, low: float, high: float) -> Tensor:
    """x between two numbers."""
    return apply(graph, lambda v: f"clamp({v}, {number(low, x.type)}, {number(high, x.type)})", x)


def sign(graph: Graph, x: Tensor) -> Tensor:
    """1 above 0, -1 below, else 0."""
    one, less, zero = (number(v, x.type) for v in (1, -1, 0))
    return apply(graph, lambda v: f"({one} if {v} > 0 else ({less} if {v} < 0 else {zero}))", x, repeated=True)


def leaky_relu(graph: Graph, x: Tensor, slope: float | Tensor) -> Tensor:
    """x, below 0 times the slope: a number, or a tensor (PRelu)."""
    if isinstance(slope, float | int):
        return apply(graph, lambda v: f"({v} if {v} >= 0 else {v} * {number(slope, x.type)})", x, repeated=True)
    return apply(graph, lambda v, s: f"({v} if {v} >= 0 else {v} * {s})", x, slope, repeated=True)


def elu(graph: Graph, x: Tensor, alpha: float, gamma: float = 1.0) -> Tensor:
    """Elu, and with `gamma` Selu."""
    below = f"{number(alpha, x.type)} * (exp(min({{v}}, 0)) - 1.0)"
    factor = "" if gamma == 1 else f"{number(gamma, x.type)} * "
    return apply(graph, lambda v: f"{factor}({v} if {v} > 0 else {below.format(v=v)})", x, repeated=True)


def select(graph: Graph, condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """a where the condition holds, else b."""
    return apply(graph, lambda c, p, q: f"select({c}, {p}, {q})", condition, a, b, type=a.type)


def dequantise(graph: Graph, x: Tensor, scale: Tensor, zero: Tensor | None) -> Tensor:
    """(x - zero) * scale as floats, of integers."""
    kind = scale.type
    if zero is None:
        return apply(graph, lambda v, s: f"{kind}({v}) * {s}", x, scale, type=kind)
    return apply(graph, lambda v, s, z: f"({kind}({v}) - {kind}({z})) * {s}", x, scale, zero, type=kind)


def quantise(graph: Graph, x: Tensor, scale: Tensor, zero: Tensor | None, type: str) -> Tensor:
    """x / scale + zero, rounded to the nearest integer of the type that there is."""
    if not type.endswith("int8") and not type.endswith("int16"):
        raise Refused(f"floats rounded to {type}")
    if zero is None:
        return apply(graph, lambda v, s: f"sat_{type}(round({v} / {s}))", x, scale, type=type)
    return apply(graph, lambda v, s, z: f"sat_{type}(round({v} / {s}) + {x.type}({z}))", x, scale, zero, type=type)


def cast(graph: Graph, x: Tensor, type: str) -> Tensor:
    """The elements in another type; floats are cut towards zero."""
    if type == x.type:
        return x
    if type == "bool":
        return apply(graph, lambda v: f"{v} != 0", x, type="bool")
    return apply(graph, lambda v: f"{type}({v})", x, type=type)

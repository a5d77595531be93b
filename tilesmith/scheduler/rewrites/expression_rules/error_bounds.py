"""Forward error analysis: the value of an expression with a bound of what rounding has made of it.

Each operation adds half a unit in the last place of its result to what the errors of its operands become in it
(Higham, Accuracy and Stability of Numerical Algorithms, chapters 2 and 3). Where a comparison or a jump could go the
other way the bound is infinite.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tilesmith.scheduler.ir.pipeline import semantics
from tilesmith.scheduler.ir.pipeline.evaluation import is_operation, operation
from tilesmith.scheduler.ir.pipeline.expressions import (
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Select,
    Unary,
    Var,
    children,
)
from tilesmith.scheduler.ir.pipeline.semantics import Array
from tilesmith.scheduler.ir.pipeline.types import ScalarType

Errors: TypeAlias = NDArray[np.float64]
_ROUNDOFF: Final = {32: 2.0**-24, 64: 2.0**-53}
_SMALLEST: Final = {32: 2.0**-149, 64: 2.0**-1074}
_LIBRARY: Final = 8
"""Units that an elementary function may be off."""


def with_errors(e: Expr, variables: Mapping[str, Array]) -> tuple[Array, Errors]:
    """The value of an expression of these variables, and a bound of its distance from the one without rounding:
    infinite where something overflows or underflows."""
    with np.errstate(all="ignore"):
        value, error = _bounded(e, variables)
        normal = _is_normal(value, e.type) if e.type.is_float else np.asarray(True)
        return value, np.where(normal & ~np.isnan(error), error, np.inf)


def _is_normal(value: Array, type: ScalarType) -> Array:
    """False for what has overflowed, or lost digits near zero."""
    size = np.abs(value)
    return np.asarray(np.isfinite(value) & ((size >= np.finfo(type.numpy).tiny) | (size == 0)))


def _bounded(e: Expr, variables: Mapping[str, Array]) -> tuple[Array, Errors]:
    if isinstance(e, Var):
        return variables[e.name], np.zeros(np.shape(variables[e.name]))
    assert is_operation(e)
    found = [with_errors(part, variables) for part in children(e)]
    parts, errors = [v for v, _ in found], [x for _, x in found]
    value = operation(e, parts)
    return value, np.broadcast_to(np.asarray(_error(e, value, parts, errors), np.float64), np.shape(value))


def _error(e: Expr, value: Array, parts: list[Array], errors: list[Errors]) -> Any:
    operands = children(e)
    if not e.type.is_float and not any(p.type.is_float for p in operands):
        return sum(errors, start=np.zeros(()))  # integers are as they are, unless they come from a float near a jump
    v = np.abs(np.asarray(value, np.float64))
    match e:
        case Const():
            return _rounding(v, e.type)
        case Compare():
            apart = np.abs(np.asarray(parts[0], np.float64) - parts[1]) > errors[0] + errors[1]
            return np.where(apart | (errors[0] + errors[1] == 0), 0.0, np.inf)
        case Select():
            return errors[0] + np.where(parts[0], errors[1], errors[2])
        case Unary():
            return errors[0]
        case Cast():
            if e.type.is_float:
                return errors[0] + _rounding(v, e.type)
            return _jump(lambda a: semantics.convert(a, operands[0].type, e.type), parts[0], errors[0])
        case Binary():
            return _binary(e, v, parts, errors)
        case Call():
            return _call(e, v, parts, errors)
    return np.inf


def _rounding(v: Any, type: ScalarType) -> Any:
    return _ROUNDOFF[type.bits] * v + _SMALLEST[type.bits]


def _binary(e: Binary, v: Any, parts: list[Array], errors: list[Errors]) -> Any:
    (a, b), (ea, eb) = (np.abs(np.asarray(p, np.float64)) for p in parts), errors
    own = _rounding(v, e.type)
    lost = (b <= eb) | ((a != 0) & (a / b == 0))
    quotient = np.where(lost, np.inf, (ea + (a / b) * eb) / (b - eb)) + _rounding(a / b, e.type)
    match e.op:
        case "+" | "-":
            return ea + eb + own
        case "*":
            vanished = (v == 0) & (a != 0) & (b != 0)
            return np.where(vanished, np.inf, a * eb + b * ea + ea * eb + own)
        case "/":
            return quotient
        case "//":
            return _jump(np.floor, np.asarray(parts[0] / parts[1], np.float64), quotient) + own
        case "%":
            whole = np.asarray(parts[0] / parts[1], np.float64)
            times = np.abs(np.floor(whole))
            return _jump(np.floor, whole, quotient) + ea + times * eb + _rounding(times * b, e.type) + own
        case _:
            return _smooth(np.power, parts, errors) + _LIBRARY * (1 + np.abs(parts[1])) * own


_PICKING = frozenset(("min", "max", "clamp", "abs"))
_JUMPING: Final[Mapping[str, Callable[[Any], Any]]] = {
    "floor": np.floor, "ceil": np.ceil, "round": np.rint, "trunc": np.trunc,
}  # fmt: skip
_SMOOTH: Final[Mapping[str, Callable[..., Any]]] = {
    "sqrt": np.sqrt, "exp": np.exp, "log": np.log, "pow": np.power, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2, "tanh": np.tanh,
}  # fmt: skip


def _call(e: Call, v: Any, parts: list[Array], errors: list[Errors]) -> Any:
    own = _rounding(v, e.type) if e.type.is_float else 0.0
    if e.function in _PICKING:
        return np.max(np.broadcast_arrays(*errors), axis=0)
    if e.function in _JUMPING:
        return _jump(_JUMPING[e.function], parts[0], errors[0])
    if e.function in _SMOOTH:
        return _smooth(_SMOOTH[e.function], parts, errors) + _LIBRARY * own
    if e.function == "absd":
        return errors[0] + errors[1] + own
    if e.function == "mux":
        return errors[0] + np.max(np.broadcast_arrays(*errors[1:]), axis=0)
    if e.function == "lerp" and e.type.is_float:
        a, b, t = (np.asarray(p, np.float64) for p in parts)
        weight = e.args[2].type
        if not weight.is_float:
            t = t / weight.max
        apart = np.abs(b - a)
        of_apart = errors[0] + errors[1] + _rounding(apart, e.type)
        of_weight = errors[2] + _rounding(np.abs(t), e.type)
        scaled = apart * of_weight + np.abs(t) * of_apart + of_apart * of_weight + _rounding(apart * np.abs(t), e.type)
        return errors[0] + scaled + own
    return np.where(np.max(np.broadcast_arrays(*errors), axis=0) > 0, np.inf, own)


def _jump(f: Callable[[Any], Any], a: Any, error: Any) -> Any:
    """No error where both ends of what `a` may be become the same."""
    a = np.asarray(a, np.float64)
    return np.where(np.isfinite(a + error) & np.equal(f(a - error), f(a + error)), 0.0, np.inf)


def _smooth(f: Callable[..., Any], parts: list[Array], errors: list[Errors]) -> Any:
    """The errors of operands after a function without jumps: the most at the corners, and twice that, for one
    that bends."""
    wide = [np.asarray(p, np.float64) for p in parts]
    middle = f(*wide)
    corners = [
        np.abs(f(*(p + s * x for p, s, x in zip(wide, signs, errors, strict=True))) - middle)
        for signs in product((-1.0, 1.0), repeat=len(wide))
    ]
    return 2 * np.max(np.broadcast_arrays(*corners), axis=0)

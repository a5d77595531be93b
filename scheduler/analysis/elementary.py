"""Operations of elementary functions, as code generation makes them of vectors (`emit.c_elementary`).

Square roots take what quotients do, roundings what conversions do. Of single precision `exp`, `log` and `pow` are
polynomials; all others are calls of the C library for each lane, counted in units of a sine.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from cost_models.counts import Operations
from scheduler.lang.types import ScalarType

Parts = Mapping[str, Operations]
"""Operations by element type."""

_LOG_PARTS = Operations(add=7, multiply=1, select=2, convert=1)
_EXP_SCALED = Operations(add=10, multiply=7, convert=1)
_POLYNOMIALS: Mapping[str, Parts] = {
    "exp": {"f32": Operations(add=4, multiply=3, select=2, convert=2) + _EXP_SCALED},
    "log": {"f32": _LOG_PARTS + Operations(add=13, multiply=13, select=7)},
    "pow": {
        "f32": _LOG_PARTS + Operations(add=6, multiply=1, select=18, convert=2) + _EXP_SCALED,
        # the logarithm, its product with the exponent, and what of that is whole
        "f64": Operations(add=14, multiply=11, divide=1, select=4, convert=6),
    },
}
"""Operations of single precision, the halves of `pow` in double precision apart."""

_INSTRUCTIONS = {
    "sqrt": Operations(divide=1),
    **dict.fromkeys(("floor", "ceil", "round", "trunc"), Operations(convert=1)),
}
_CALLS = {"tan": 2.0, "atan": 2.0, "acos": 1.5, "tanh": 3.5, "atan2": 4.5, "pow": 3.0}
"""Calls of the C library, in sines: of those that take more than one."""


def executed(function: str, t: ScalarType, args: int) -> Parts:
    """Operations of one `function` of elements of `t`."""
    name = f"f{max(32, t.bits)}"
    if function == "random":  # a step of a hash for each argument
        return MappingProxyType(
            {"i32": Operations(add=7 * args, multiply=2 * args), "f32": Operations(multiply=1, convert=1)}
        )
    if function in _INSTRUCTIONS:
        return {name: _INSTRUCTIONS[function]}
    if name == "f32" and function in _POLYNOMIALS:
        return _POLYNOMIALS[function]
    return {name: Operations(function=_CALLS.get(function, 1.0))}

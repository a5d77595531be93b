"""Operations of elementary functions, as code generation makes them of vectors (`codegen.c.exponential_functions`,
`codegen.c.circular_functions`, `codegen.c.double_functions`).

Square roots take what quotients do, roundings two instructions. All others are polynomials.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tilesmith.cost_models.operations import Operations
from tilesmith.scheduler.ir.pipeline.types import ScalarType

Parts = Mapping[str, Operations]
"""Operations by element type."""

_LOG_PARTS = Operations(add=7, multiply=1, select=2, convert=1)
_SCALED = Operations(add=6, multiply=1, convert=1)
_EXP = Operations(add=8, multiply=9, select=2, convert=2) + _SCALED
_LOG2 = Operations(add=18, multiply=14, divide=1)
_POLYNOMIALS: Mapping[str, Operations] = {
    "exp": _EXP,
    "log": _LOG_PARTS + Operations(add=13, multiply=13, select=7),
    # beside the logarithm its product with the exponent, the power of 2, and what is special
    "pow": _LOG_PARTS + _LOG2 + Operations(add=28, multiply=9, select=22, convert=2) + _SCALED,
    "cube root": Operations(add=11, multiply=13, divide=2, select=9, convert=2),
    "sin": Operations(add=15, multiply=10, select=1),
    "cos": Operations(add=15, multiply=10, select=1),
    "tan": Operations(add=18, multiply=14, divide=1, select=2),
    "asin": Operations(add=11, multiply=9, divide=1, select=4),
    "acos": Operations(add=13, multiply=9, divide=1, select=5),
    "atan": Operations(add=14, multiply=11, divide=1, select=3),
    "atan2": Operations(add=16, multiply=11, divide=1, select=8),
    "tanh": _EXP + Operations(add=10, multiply=8, divide=1, select=2),
}
"""Operations of single precision, with fused multiplications: `pow` takes more without."""

_PARTS_OF_DOUBLES = Operations(add=8, multiply=1, select=2)
_SCALED_DOUBLES = Operations(add=8, multiply=2, convert=1)
_EXP_DOUBLES = Operations(add=16, multiply=15, select=2) + _SCALED_DOUBLES
_LOG2_DOUBLES = Operations(add=30, multiply=24, divide=2)
_DOUBLES: Mapping[str, Operations] = {
    "exp": _EXP_DOUBLES,
    "log": _PARTS_OF_DOUBLES + Operations(add=16, multiply=11, divide=1, select=7),
    "pow": _PARTS_OF_DOUBLES + _LOG2_DOUBLES + Operations(add=46, multiply=26, select=24) + _SCALED_DOUBLES,
    "sin": Operations(add=18, multiply=14, select=1),
    "cos": Operations(add=19, multiply=14, select=1),
    "tan": Operations(add=26, multiply=20, divide=1, select=4),
    "asin": Operations(add=18, multiply=17, divide=1, select=4),
    "acos": Operations(add=20, multiply=17, divide=1, select=5),
    "atan": Operations(add=26, multiply=17, divide=1, select=8),
    "atan2": Operations(add=28, multiply=17, divide=1, select=12),
    "tanh": _EXP_DOUBLES + Operations(add=16, multiply=14, divide=1, select=2),
}
"""Operations of double precision."""

_INSTRUCTIONS = {
    "sqrt": Operations(divide=1),
    **dict.fromkeys(("floor", "ceil", "round", "trunc"), Operations(select=2)),
}


def executed(function: str, t: ScalarType, args: int) -> Parts:
    """Operations of one `function` of elements of `t`."""
    name = f"f{max(32, t.bits)}"
    if function == "random":  # a step of a hash for each argument
        return MappingProxyType(
            {"i32": Operations(add=7 * args, multiply=2 * args), "f32": Operations(multiply=1, convert=1)}
        )
    if function in _INSTRUCTIONS:
        return {name: _INSTRUCTIONS[function]}
    polynomials = _POLYNOMIALS if name == "f32" else _DOUBLES
    return {name: polynomials.get(function, Operations(function=1.0))}

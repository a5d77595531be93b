"""Integers that hold every intermediate result exactly: of 128 bits; of 64 where compilers have no wider ones, which is
enough for operands of up to 32 bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tilesmith.scheduler.errors import NoBackend
from tilesmith.scheduler.ir.pipeline.types import ScalarType

_WITHOUT: Final = ("arm",)  # architectures of 32 bits
_EXACT: Final = (
    "sat_add", "sat_sub", "halving_add", "rounding_halving_add", "rounding_shift_right", "mul_shift_right", "lerp",
)  # fmt: skip
_NARROWED: Final = (
    ("unsigned __int128", "uint64_t"),
    ("__int128", "int64_t"),
    ("(int64_t)1 << 100", "(int64_t)1 << 40"),  # far beyond every type of 32 bits, as the other beyond all
    ("n > 126", "n > 62"),
)


def check_exact(architecture: str, function: str, types: Sequence[ScalarType]) -> None:
    """Raises NoBackend where the results of a function of these types need more bits than the architecture has."""
    if architecture not in _WITHOUT or not any(t.is_integer for t in types):
        return
    product = function == "mul_shift_right" and any(t.kind == "uint" and t.bits == 32 for t in types)
    saturated = function == "saturate" and any(t.kind == "uint" and t.bits == 64 for t in types)
    if saturated or product or (function in _EXACT and any(t.bits == 64 for t in types)):
        of = ", ".join(str(t) for t in types)
        raise NoBackend(f"{function} of {of} needs integers of 128 bits, which {architecture} has none of: narrow them")


def for_architecture(code: str, architecture: str) -> str:
    """The C with the integers that compilers for that architecture have."""
    if architecture in _WITHOUT:
        for wide, narrow in _NARROWED:
            code = code.replace(wide, narrow)
    return code

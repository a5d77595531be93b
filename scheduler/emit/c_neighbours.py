"""Lanes that lie across two vectors: AVX-512 has an instruction for them that needs no vector of places."""

from __future__ import annotations

from scheduler.emit.c_types import vector
from scheduler.lang.types import BOOL, ScalarType

_NAME = "from"
_REGISTER_BYTES = 64
_WORD_BYTES = 4
"""What the instruction moves."""


def neighbours(picks: tuple[int, ...], t: ScalarType) -> str | None:
    """The name of the function that picks these lanes of two vectors of `t`, if it is one of these."""
    first, lanes = picks[0], len(picks)
    whole = t != BOOL and t.bytes * lanes == _REGISTER_BYTES and t.bytes * first % _WORD_BYTES == 0
    return f"{_NAME}{first}" if whole and 0 < first < lanes and picks == tuple(range(first, first + lanes)) else None


def is_neighbours(name: str) -> bool:
    """Whether a function of that name is one of these."""
    return name.startswith(_NAME)


def types_of() -> list[tuple[str, int, int]]:
    """The vector types that the functions are written with, beside those of what is picked."""
    return [("int", 8 * _WORD_BYTES, _REGISTER_BYTES // _WORD_BYTES)]


def definition(name: str, t: ScalarType, lanes: int, c_name: str) -> str:
    """The C function `c_name`. GCC by itself takes the instruction that picks any lanes, which shares less with
    arithmetic: it reads a vector of places too."""
    own, first = vector(t.kind, t.bits, lanes), int(name.removeprefix(_NAME))
    words = vector(*types_of()[0])
    picks = ", ".join(map(str, range(first, first + lanes)))
    return (
        f"/* Lanes {first} to {first + lanes - 1} of two vectors side by side. */\n"
        f"TILESMITH_INLINE {own} {c_name}({own} a, {own} b) {{\n"
        "#if defined __AVX512F__ && !defined __clang__\n"
        f"    return ({own})__builtin_ia32_alignd512_mask(({words})b, ({words})a, {first * t.bytes // _WORD_BYTES}, "
        f"({words})a, -1);\n"
        "#else\n"
        f"    return __builtin_shufflevector(a, b, {picks});\n"
        "#endif\n}\n"
    )

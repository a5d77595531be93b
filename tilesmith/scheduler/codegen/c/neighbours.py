"""Lanes that lie across two vectors: AVX-512 has instructions for them that need no vector of places."""

from __future__ import annotations

from tilesmith.scheduler.codegen.c.types import vector
from tilesmith.scheduler.ir.pipeline.types import BOOL, ScalarType

_NAME = "from"
_REGISTER_BYTES = 64
_WORD_BYTES = 4
"""Bytes of what is moved across the whole register; parts of it are moved across quarters."""
_QUARTER_BYTES = 16


def neighbours(picks: tuple[int, ...], t: ScalarType) -> str | None:
    """The name of the function that picks these lanes of two vectors of `t`, if it is one of these."""
    first, lanes = picks[0], len(picks)
    whole = t != BOOL and t.bytes * lanes == _REGISTER_BYTES
    return f"{_NAME}{first}" if whole and 0 < first < lanes and picks == tuple(range(first, first + lanes)) else None


def is_neighbours(name: str) -> bool:
    """True for the names of these functions."""
    return name.startswith(_NAME)


def types_of() -> list[tuple[str, int, int]]:
    """The vector types that the functions are written with, beside those of what is picked."""
    return [("int", 8 * _WORD_BYTES, _REGISTER_BYTES // _WORD_BYTES)]


def definition(name: str, t: ScalarType, lanes: int, c_name: str) -> str:
    """The C function `c_name`. By themselves, compilers take the instruction that picks any lanes, which shares less
    with arithmetic: it reads a vector of places too. Clang does so even where it is asked for the other one by name."""
    own, first = vector(t.kind, t.bits, lanes), int(name.removeprefix(_NAME))
    words = vector(*types_of()[0])
    picks, begin = ", ".join(map(str, range(first, first + lanes))), first * t.bytes
    clang = ""
    if begin % _WORD_BYTES == 0:
        needs, body = "__AVX512F__", f"return ({own}){_moved(words, begin)};"
        clang = (
            f"#elif defined {needs}\n"
            f"    {own} found;\n"
            f'    __asm__("valignd ${begin // _WORD_BYTES}, %1, %2, %0" : "=v"(found) : "v"(a), "v"(b));\n'
            "    return found;\n"
        )
    else:  # both quarters that each of the result lies across, side by side
        down = begin // _QUARTER_BYTES * _QUARTER_BYTES
        low, high = (_moved(words, n) for n in (down, down + _QUARTER_BYTES))
        shift = 8 * (begin - down)
        needs = "__AVX512BW__"
        body = (
            f"typedef long long quads __attribute__((vector_size({_REGISTER_BYTES})));\n"
            f"    return ({own})__builtin_ia32_palignr512((quads){high}, (quads){low}, {shift});"
        )
    return (
        f"/* Lanes {first} to {first + lanes - 1} of two vectors side by side. */\n"
        f"INLINE {own} {c_name}({own} a, {own} b) {{\n"
        f"#if defined {needs} && !defined __clang__\n"
        f"    {body}\n{clang}"
        "#else\n"
        f"    return __builtin_shufflevector(a, b, {picks});\n"
        "#endif\n}\n"
    )


def _moved(words: str, begin: int) -> str:
    """A register of two side by side, from byte `begin` on, a multiple of a word."""
    if begin in (0, _REGISTER_BYTES):
        return "b" if begin else "a"
    return f"__builtin_ia32_alignd512_mask(({words})b, ({words})a, {begin // _WORD_BYTES}, ({words})a, -1)"

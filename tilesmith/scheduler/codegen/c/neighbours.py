"""Lanes of two vectors side by side: instructions for those that lie across both, of AVX-512, need no vector of places;
others put vectors together, and take one of the two from memory."""

from __future__ import annotations

from tilesmith.scheduler.codegen.c.types import vector
from tilesmith.scheduler.ir.pipeline.types import BOOL, ScalarType

_NAME = "from"
_REGISTER_BYTES = 64
_WORD_BYTES = 4
"""Bytes of what is moved across the whole register; parts of it are moved across quarters."""
_QUARTER_BYTES = 16
JOINED = "joined"
"""Two vectors that are half of a register each."""
_SHORT_BYTES = 2
"""Bytes of the longest elements of which GCC makes a permutation of two registers, where one half is put after the
other: with those of longer ones it puts other permutations together."""

_WORDS = ("int", 8 * _WORD_BYTES, _REGISTER_BYTES // _WORD_BYTES)


def neighbours(picks: tuple[int, ...], t: ScalarType) -> str | None:
    """The name of the function that picks these lanes of two vectors of `t`, if it is one of these."""
    first, lanes = picks[0], len(picks)
    whole = t != BOOL and t.bytes * lanes == _REGISTER_BYTES
    return f"{_NAME}{first}" if whole and 0 < first < lanes and picks == tuple(range(first, first + lanes)) else None


def joins(picks: tuple[int, ...], t: ScalarType) -> bool:
    """True of all lanes of two vectors of short elements of `t`, in order, that are half of a register each."""
    whole = t.bytes * len(picks) in (_REGISTER_BYTES // 2, _REGISTER_BYTES)
    return t != BOOL and t.bytes <= _SHORT_BYTES and whole and picks == tuple(range(len(picks)))


def is_neighbours(name: str) -> bool:
    """True for the names of these functions."""
    return name.startswith(_NAME) or name == JOINED


def types_of(name: str, t: ScalarType, lanes: int) -> list[tuple[str, int, int]]:
    """The vector types that the function is written with, beside those of what is picked."""
    return [(t.kind, t.bits, lanes // 2)] if name == JOINED else [_WORDS]


def definition(name: str, t: ScalarType, lanes: int, c_name: str) -> str:
    """The C function `c_name`. By themselves, compilers take the instruction that picks any lanes, which shares less
    with arithmetic: it reads a vector of places too. Clang does so even where it is asked for the other one by name."""
    if name == JOINED:
        return _joined(t, lanes, c_name)
    own, first = vector(t.kind, t.bits, lanes), int(name.removeprefix(_NAME))
    words = vector(*_WORDS)
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


def _joined(t: ScalarType, lanes: int, c_name: str) -> str:
    """GCC puts both into registers and permutes them, where it is not told the instruction that takes the second one
    from memory. It makes a register of the first one as one of elements of 32 bits."""
    own, half, size = vector(t.kind, t.bits, lanes), vector(t.kind, t.bits, lanes // 2), t.bytes * lanes
    types = f"    typedef int part __attribute__((vector_size({size // 2})));\n"
    needs, joined = "__AVX2__", "__builtin_ia32_vinsertf128_si256(__builtin_ia32_si256_si((part)a), (part)b, 1)"
    if size == _REGISTER_BYTES:
        types += f"    typedef long long longs __attribute__((vector_size({size // 2})));\n"
        types += f"    typedef long long all __attribute__((vector_size({size})));\n"
        whole = "(all)__builtin_ia32_si512_256si((part)a)"
        needs, joined = "__AVX512F__", f"__builtin_ia32_inserti64x4_mask({whole}, (longs)b, 1, (all){{0}}, -1)"
    return (
        f"INLINE {own} {c_name}({half} a, {half} b) {{\n"
        f"#if defined {needs} && !defined __clang__\n"
        f"{types}    return ({own}){joined};\n"
        "#else\n"
        f"    return __builtin_shufflevector(a, b, {', '.join(map(str, range(lanes)))});\n"
        "#endif\n}\n"
    )


def _moved(words: str, begin: int) -> str:
    """A register of two side by side, from byte `begin` on, a multiple of a word."""
    if begin in (0, _REGISTER_BYTES):
        return "b" if begin else "a"
    return f"__builtin_ia32_alignd512_mask(({words})b, ({words})a, {begin // _WORD_BYTES}, ({words})a, -1)"

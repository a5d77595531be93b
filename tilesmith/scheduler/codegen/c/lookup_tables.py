"""Tables of bytes, looked up by a whole vector at once: AVX512-VBMI picks from 128 elements with one instruction, AVX2
and AVX-512 from 16 in each 16 lanes."""

from __future__ import annotations

from tilesmith.scheduler.codegen.c.types import vector
from tilesmith.scheduler.features.pipeline.lookup_tables import MOST_PARTS
from tilesmith.scheduler.ir.loop.ops import LOOKUP_PART

_NAME = "lookup"
LONGEST = 64
"""Bytes of the longest registers."""
_SIXTEEN = 16
"""Elements of a table that an instruction picks from in registers of any size."""
_VBMI = "defined __AVX512VBMI__ && !defined __clang__"
_BYTES_AND_WORDS = "defined __AVX512BW__"
_AVX2 = "defined __AVX2__"
_FUNCTIONS_256 = """
#ifdef __clang__
#define EVERYWHERE(x) (bytes)__builtin_shufflevector(x, x, 0, 1, 0, 1)
#else
#define EVERYWHERE(x) (bytes)__builtin_ia32_vbroadcastsi256(x)
#endif
#define PICK(x, at) __builtin_ia32_pshufb256(x, at)
#define CHOOSE(x, y, upper) __builtin_ia32_pblendvb256(x, y, upper)
"""
_FUNCTIONS_512 = """
#ifdef __clang__
#define EVERYWHERE(x) (bytes)__builtin_shufflevector(x, x, 0, 1, 0, 1, 0, 1, 0, 1)
#define PICK(x, at) __builtin_ia32_pshufb512(x, at)
#define HAS(x, bit) __builtin_ia32_cmpb512_mask((x) & (bit), (bytes){0}, 4, -1)
#define CHOOSE(x, y, upper) __builtin_ia32_selectb_512(upper, y, x)
#else
typedef int four __attribute__((vector_size(16)));
typedef int all __attribute__((vector_size(64)));
#define EVERYWHERE(x) (bytes)__builtin_ia32_broadcasti32x4_512((four)(x), (all){0}, -1)
#define PICK(x, at) __builtin_ia32_pshufb512_mask(x, at, (bytes){0}, -1)
#define HAS(x, bit) __builtin_ia32_ptestmb512(x, bit, -1)
#define CHOOSE(x, y, upper) __builtin_ia32_blendmb_512_mask(x, y, upper)
#endif
"""
"""Common names for built-in functions that GCC and Clang call differently."""


def lookup(parts: int, indices: int) -> str:
    """The name of the function that looks up in tables of so many parts of 128 bytes, by one vector of indices (of
    bytes) or two (of 16 bits)."""
    return f"{_NAME}_{parts}" if indices == 2 else f"{_NAME}_{parts}_bytes"


def is_lookup(name: str) -> bool:
    """True for the names of these functions."""
    return name.startswith(_NAME)


def types_of(lanes: int) -> list[tuple[str, int, int]]:
    """The vector types that the functions are written with, beside bytes."""
    return [("uint", 16, lanes // 2)]


def definition(name: str, lanes: int, c_name: str) -> str:
    """The C function `c_name`: `whole` if the table has all of its parts; else no more is read than is looked up, by
    way of memory, which is several times as fast as to take each lane out of a vector and to put it into one."""
    _, parts, *short = name.split("_")
    return _definition(int(parts), bool(short), lanes, c_name)


def _definition(parts: int, short: bool, lanes: int, c_name: str) -> str:
    own, wide, half = vector("uint", 8, lanes), vector("uint", 16, lanes // 2), lanes // 2
    if short:
        indices, place, kept = f"{own} at", "uint8_t", ["memcpy(places, &at, sizeof at);"]
    else:
        indices, place = f"{wide} a, {wide} b", "uint16_t"
        kept = ["memcpy(places, &a, sizeof a);", f"memcpy(places + {half}, &b, sizeof b);"]
    head = f"INLINE __attribute__((always_inline)) {own} {c_name}"  # a call would spill every register
    lines = [
        "/* Elements of a table of bytes; `whole` if it has all of its parts. */",
        f"{head}(const uint8_t *table, int whole, {indices}) {{",
    ]
    ways = _ways(parts, short, lanes)
    for n, (instruction, body) in enumerate(ways):
        lines += [f"#{'elif' if n else 'if'} {instruction}", "    if (whole) {"]
        lines += [*(f"        {line}" for line in body), "    }"]
    lines += [
        *(["#endif"] if ways else []),
        "    (void)whole;",
        f"    {place} places[{lanes}];",
        f"    uint8_t lanes[{lanes}];",
        *(f"    {line}" for line in kept),
        f"    for (int n = 0; n < {lanes}; n++) lanes[n] = table[places[n]];",
        f"    {own} found;",
        "    memcpy(&found, lanes, sizeof found);",
        "    return found;",
        "}",
        "",
    ]
    return "\n".join(lines)


def _ways(parts: int, short: bool, lanes: int) -> list[tuple[str, list[str]]]:
    """Lines that look up in a whole table, by the instruction that they need; the first is the fastest."""
    own, wide = vector("uint", 8, lanes), vector("uint", 16, lanes // 2)
    evens = ", ".join(map(str, range(0, 2 * lanes, 2)))
    low = [] if short else [f"const {own} at = __builtin_shufflevector(({own})a, ({own})b, {evens});"]
    high = "at >> 7" if short else f"__builtin_shufflevector(({own})(a >> 7), ({own})(b >> 7), {evens})"
    few = parts * LOOKUP_PART // _SIXTEEN <= MOST_PARTS
    if lanes == LONGEST:
        found = [(_VBMI, [*low, f"const {own} high = {high};", *_picked(parts, own)])]
        return [*found, (_BYTES_AND_WORDS, [*low, *_sixteens(parts, own, wide, lanes)])] if few else found
    return [(_AVX2, [*low, *_sixteens(parts, own, wide, lanes)])] if lanes == LONGEST // 2 and few else []


def _sixteens(parts: int, own: str, wide: str, lanes: int) -> list[str]:
    """Lines that pick the elements of each 16 of a table at the low 4 bits of the indices, in every 16 lanes, and of
    these, by pairs, what a higher bit chooses. GCC has to be told that a load can fill all 16 lanes with the same."""
    longest, count = lanes == LONGEST, parts * LOOKUP_PART // _SIXTEEN
    lines = [
        f"typedef char bytes __attribute__((vector_size({lanes})));",
        "typedef long long sixteen __attribute__((vector_size(16), aligned(1), may_alias));",
        *(_FUNCTIONS_512 if longest else _FUNCTIONS_256).split("\n")[1:-1],
        f"const bytes low = (bytes)(at & {_SIXTEEN - 1});",
    ]
    for n in range(count):
        lines.append(f"bytes found{n} = PICK(EVERYWHERE(*(const sixteen *)(table + {_SIXTEEN * n})), low);")
    bit = 1
    while bit < count:
        upper = bit * _SIXTEEN
        if longest:
            lines.append(f"const uint64_t upper{bit} = HAS((bytes)at, (bytes)(({own}){{0}} + {upper}));")
        else:  # the bit that chooses is the first of a byte
            lines.append(f"const bytes upper{bit} = (bytes)(({wide})at << {8 - upper.bit_length()});")
        for n in range(0, count - bit, 2 * bit):
            lines.append(f"found{n} = CHOOSE(found{n}, found{n + bit}, upper{bit});")
        bit *= 2
    return [*lines, "#undef EVERYWHERE", "#undef PICK", "#undef CHOOSE", "#undef HAS", f"return ({own})found0;"]


def _picked(parts: int, own: str) -> list[str]:
    """Lines that pick the elements of each part at the low 7 bits of the indices, and of these, by pairs, what a high
    bit chooses."""
    lines = ["typedef char bytes __attribute__((vector_size(64)));"]
    for n in range(parts):
        low, more = (f"*(const {own}_at *)(table + {128 * n + start})" for start in (0, 64))
        lines.append(f"bytes found{n} = (bytes)__builtin_shuffle({low}, {more}, at);")
    bit = 1
    while bit < parts:
        lines.append(f"const uint64_t upper{bit} = __builtin_ia32_ptestmb512((bytes)high, (bytes){{0}} + {bit}, -1);")
        for n in range(0, parts - bit, 2 * bit):
            lines.append(f"found{n} = __builtin_ia32_blendmb_512_mask(found{n}, found{n + bit}, upper{bit});")
        bit *= 2
    return [*lines, "(void)high;", f"return ({own})found0;"]

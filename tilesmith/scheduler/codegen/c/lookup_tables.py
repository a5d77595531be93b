"""Tables of bytes, looked up by a whole vector at once: AVX512-VBMI picks from 128 elements with one instruction."""

from __future__ import annotations

from tilesmith.scheduler.codegen.c.types import vector

_NAME = "lookup"


def lookup(parts: int, indices: int) -> str:
    """The name of the function that looks up in tables of so many parts of 128 bytes, by one vector of indices (of
    bytes) or two (of 16 bits)."""
    return f"{_NAME}_{parts}" if indices == 2 else f"{_NAME}_{parts}_bytes"


def is_lookup(name: str) -> bool:
    """Whether a function of that name is one of these."""
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
        settled = [f"const {own} high = at >> 7;"]
    else:
        indices, place = f"{wide} a, {wide} b", "uint16_t"
        kept = ["memcpy(places, &a, sizeof a);", f"memcpy(places + {half}, &b, sizeof b);"]
        evens = f"({own}){{{', '.join(map(str, range(0, 2 * lanes, 2)))}}}"
        settled = [
            f"const {own} evens = {evens};",
            f"const {own} at = __builtin_shuffle(({own})a, ({own})b, evens);",
            f"const {own} high = __builtin_shuffle(({own})(a >> 7), ({own})(b >> 7), evens);",
        ]
    body = [*settled, *_picked(parts, own)]
    head = f"INLINE __attribute__((always_inline)) {own} {c_name}"  # a call would spill every register
    lines = [
        "/* Elements of a table of bytes; `whole` if it has all of its parts. */",
        f"{head}(const uint8_t *table, int whole, {indices}) {{",
        "#if defined __AVX512VBMI__ && !defined __clang__",
        "    if (whole) {",
        *(f"        {line}" for line in body),
        "    }",
        "#endif",
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

"""Shifts of vectors of integers by a vector of counts without a sign: lanes that are shifted further than they are wide
are 0, or their sign.

GCC 12 takes vectors apart where a machine shifts no elements of their size by counts of their own: x86 does so for 32
and 64 bits from AVX2 on, for 16 bits with AVX512BW. There 16 bits are shifted as halves of 32, and what is left bit by
bit of the count. Clang does as well by itself.
"""

from __future__ import annotations

from tilesmith.scheduler.codegen.c.types import vector
from tilesmith.scheduler.ir.pipeline.types import ScalarType

SHIFTS = {"<<": "shift_left", ">>": "shift_right"}
"""Names of the functions by operator."""
_WHOLE = "defined __clang__ || !defined __SSE2__ || defined __AVX512BW__"
_REGISTERS = (16, 32)
"""Bytes of the registers that have elements of 32 bits to shift."""


def is_shift(name: str) -> bool:
    """True for the names of these functions."""
    return name in SHIFTS.values()


def types_of(t: ScalarType, lanes: int) -> list[tuple[str, int, int]]:
    """The vector types that it is written with, beside those of its own size."""
    return [(kind, 32, lanes // 2) for kind in ("int", "uint")] if _in_halves(t, lanes) else []


def definition(name: str, t: ScalarType, lanes: int, c_name: str) -> str:
    """The C function `c_name`."""
    own, unsigned, signed = (vector(kind, t.bits, lanes) for kind in (t.kind, "uint", "int"))
    right = name == SHIFTS[">>"]
    last = t.bits - 1
    head = f"    const {unsigned} inside = ({unsigned})(n < ({t.bits} - ({unsigned}){{0}}));\n"
    if right and t.kind == "int":
        head += f"    const {unsigned} by = (n & inside) | (~inside & {last});\n"
        whole, end = f"    return a >> ({signed})by;\n", "found"
    else:
        head += f"    const {unsigned} by = n & {last};\n"
        end = f"({own})(({unsigned})found & inside)"
        whole = f"    const {own} found = ({own})(({unsigned})a {'>>' if right else '<<'} by);\n    return {end};\n"
    if t.bits > 16:
        body = head + whole
    else:
        other = _bit_by_bit(t, lanes, right, end)
        tests = f"#elif defined __AVX2__\n{_by_halves(t, lanes, right, end)}" if _in_halves(t, lanes) else ""
        body = f"{head}#if {_WHOLE}\n{whole}{tests}#else\n{other}#endif\n"
    return f"INLINE {own} {c_name}({own} a, {unsigned} n) {{\n{body}}}\n"


def _in_halves(t: ScalarType, lanes: int) -> bool:
    return t.bits == 16 and 2 * lanes in _REGISTERS


def _by_halves(t: ScalarType, lanes: int, right: bool, end: str) -> str:
    """Elements of 16 bits as the lower and the upper halves of 32."""
    wide, own = vector("uint", 32, lanes // 2), vector(t.kind, 16, lanes)
    text = f"    const {wide} x = ({wide})a, c = ({wide})by;\n"
    if right and t.kind == "int":
        signed = vector("int", 32, lanes // 2)
        low = f"({wide})(({signed})(x << 16) >> ({signed})(c & 0xFFFFu)) >> 16"
        high = f"({wide})(({signed})x >> ({signed})(c >> 16)) & 0xFFFF0000u"
    elif right:
        low, high = "(x & 0xFFFFu) >> (c & 0xFFFFu)", "x >> (c >> 16) & 0xFFFF0000u"
    else:
        low, high = "x << (c & 0xFFFFu) & 0xFFFFu", "(x & 0xFFFF0000u) << (c >> 16)"
    return f"{text}    const {own} found = ({own})(({low}) | ({high}));\n    return {end};\n"


def _bit_by_bit(t: ScalarType, lanes: int, right: bool, end: str) -> str:
    """A shift by 1, 2, 4 and so on where that bit of the count is set."""
    own, unsigned = vector(t.kind, t.bits, lanes), vector("uint", t.bits, lanes)
    text, bit = f"    {own} found = a;\n", t.bits // 2
    while bit:
        shifted = f"found >> {bit}" if right else f"({own})(({unsigned})found << {bit})"
        text += f"    const {own} set{bit} = ({own})((by & {bit}) != 0);\n"
        text += f"    found = (set{bit} & ({shifted})) | (~set{bit} & found);\n"
        bit //= 2
    return f"{text}    return {end};\n"

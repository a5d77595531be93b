"""Quotients and remainders of vectors of integers, for which machines have no instruction.

By a constant they are products with what is left of its inverse in whole numbers (T. Granlund and P. L. Montgomery,
Division by Invariant Integers using Multiplication, 1994), of which `mulhi` has the upper half; bytes are divided where
they are, two to an element of 16 bits. By anything else they are quotients of floats that are wide enough. Both divide
2 a + 1 by 2 b where signs or rounding matter: no such quotient is whole, and none so near to a whole number that it
would be taken for the next one.
"""

from __future__ import annotations

from string import Template

from tilesmith.scheduler.codegen.c.types import function_name, vector
from tilesmith.scheduler.ir.pipeline.types import ScalarType

BY_CONSTANT, QUOTIENT, REMAINDER, PRODUCT = "quotient_by", "quotient", "remainder", "product_of"
NAMES = (PRODUCT, BY_CONSTANT, QUOTIENT, REMAINDER)
"""Functions of vectors, callees first: a vector by a constant, whose `inverse` is given, a vector by a vector, and the
products of bytes."""
LEAST_BYTES = 8
"""Bytes of a vector that is divided whole, at least."""

_PRODUCT = """\
/* Products of bytes, two to an element of 16 bits. */
INLINE $T $product_of($T a, $T b) {
    const $X x = ($X)a, y = ($X)b;
    return ($T)((x * y & 0xFF) | (x & 0xFF00) * (y >> 8));
}
"""

_BYTES = """\
/* Quotients by the constant that m is 2^16 over, rounded up. */
INLINE $T $quotient_by($T a, uint16_t m) {
    const $X both = ($X)a, by = m - ($X){0};
    return ($T)($mulhi(both & 0xFF, by) | ($mulhi(both & 0xFF00, by) & 0xFF00));
}
"""

_SIGNED_BYTES = """\
/* Quotients of 2 a + 1 by twice the constant that m is 2^15 over. */
INLINE $T $quotient_by($T a, int16_t m) {
    const $X both = ($X)a;
    const $Y by = m - ($Y){0}, even = ($Y)(both << 8) >> 7 | 1, odd = ($Y)both >> 7 | 1;
    return ($T)((($X)$mulhi_signed(even, by) & 0xFF) | (($X)$mulhi_signed(odd, by) << 8));
}
"""

_SIGNED = """\
/* Quotients by the constant that m is a power of two over, rounded up: those of ~a are ~ those of a. */
INLINE $T $quotient_by($T a, uint${bits}_t m, int shift) {
    const $T sign = a >> $last;
    return ($T)($mulhi(($U)(a ^ sign), m - ($U){0}) >> shift) ^ sign;
}
"""

# inline in functions of any size: a call spills every register, and divides anew by what is the same in a loop
_QUOTIENT = """\
/* Quotients with a remainder that is not negative; 0 by 0. */
INLINE __attribute__((always_inline)) $T $quotient($T a, $T b) {
    const $T zero = {0};
$sign    const $U y = $size - ($U)(b == zero);
    $U q;
$parts    q = ($U)($joined);
    return ($T)($signed & ($U)(b != zero));
}
"""

_REMAINDER = """\
INLINE __attribute__((always_inline)) $T $remainder($T a, $T b) {
$near    return ($T)((($U)a - $product) & ($U)(b != ($T){0}));
}
"""


# places beyond an image that repeats or is mirrored are near it as a rule, and quotients take many times as long
_NEAR = """\
    const $T near = ($T)(($U)a$below - (($U)b & ($U)(a >= b)));
    const $W far = ($W)~($within(near < b));
#if $where
    typedef long long whole __attribute__((vector_size($bytes), unused));
    if (!$any) return near;
#else
    if (!($every)) return near;
#endif
"""


def is_division(name: str) -> bool:
    """True for the names of these functions."""
    return name in NAMES


def has(name: str, t: ScalarType, lanes: int) -> bool:
    """True if vectors of so many elements of `t` are divided whole."""
    if t.bits > 32 or t.bytes * lanes < LEAST_BYTES:
        return False
    return name != BY_CONSTANT or t.kind == "int" or t.bits == 8


def inverse(t: ScalarType, k: int) -> str:
    """The arguments that stand for a constant divisor k, which is no power of two."""
    if t.bits == 8:
        return str((65536 + k - 1) // k if t.kind == "uint" else (65536 + k) // (2 * k))
    length = (k - 1).bit_length()
    return f"{-(-(1 << (t.bits - 1 + length)) // k)}u, {length - 1}"


def types_of(t: ScalarType, lanes: int) -> list[tuple[str, int, int]]:
    """The vector types that these functions are written with, beside those of their own size."""
    size = t.bytes * lanes
    return [(kind, bits, size * 8 // bits) for bits in (16, 32, 64) for kind in ("int", "uint", "float")
            if bits > 16 or kind != "float"]  # fmt: skip


def called(name: str, t: ScalarType, lanes: int) -> list[tuple[str, ScalarType, int]]:
    """The functions that one calls."""
    size = t.bytes * lanes
    if name == BY_CONSTANT:
        of = ScalarType("int" if t.name == "int8" else "uint", max(16, t.bits))
        return [("mulhi", of, size // of.bytes)]
    if name == QUOTIENT:
        of = ScalarType("float", 2 * max(16, t.bits))
        return [("floor", of, size // of.bytes)]
    if name == REMAINDER:
        return [(QUOTIENT, t, lanes), *([(PRODUCT, t, lanes)] if t.bits == 8 else [])]
    return []


def definition(name: str, t: ScalarType, lanes: int) -> str:
    """The C function."""
    size, signed = t.bytes * lanes, t.kind == "int"
    words = {f: function_name(f, t, lanes) for f in NAMES}
    for letter, kind, bits in (("T", t.kind, t.bits), ("U", "uint", t.bits), ("X", "uint", 16), ("Y", "int", 16)):
        words[letter] = vector(kind, bits, size * 8 // bits)
    of = max(16, t.bits)
    words["mulhi"] = function_name("mulhi", ScalarType("uint", of), size * 8 // of)
    words["mulhi_signed"] = function_name("mulhi", ScalarType("int", 16), size // 2)
    words |= {"bits": str(t.bits), "last": str(t.bits - 1)}
    if name == PRODUCT:
        return Template(_PRODUCT).substitute(words)
    if name == BY_CONSTANT:
        text = _SIGNED if t.bits > 8 else _SIGNED_BYTES if signed else _BYTES
        return Template(text).substitute(words)
    if name == REMAINDER:
        operands = f"{words[QUOTIENT]}(a, b)", "b"
        if t.bits == 8:
            words["product"] = f"({words['U']}){words[PRODUCT]}({', '.join(operands)})"
        else:
            words["product"] = " * ".join(f"({words['U']}){v}" for v in operands)
        words["near"] = Template(_NEAR).substitute(words | _far(t, size)) if t.bits == 32 else ""
        return Template(_REMAINDER).substitute(words)
    return Template(_QUOTIENT).substitute(words | _by_parts(t, size))


def any_bit(name: str, size: int) -> tuple[str, str]:
    """The condition of the preprocessor under which there is a test for any bit in a vector of so many bytes, and the
    test, in terms of `whole`, its type of long long."""
    where, bits, call = {
        64: ("defined __AVX512F__ && !defined __clang__", "(i32x16)", "__builtin_ia32_ptestmd512({0}, {0}, -1)"),
        32: ("defined __AVX__", "(whole)", "!__builtin_ia32_ptestz256({0}, {0})"),
        16: ("defined __SSE4_1__", "(whole)", "!__builtin_ia32_ptestz128({0}, {0})"),
    }.get(size, ("0", "", "0"))
    return where, call.format(bits + name)


def _far(t: ScalarType, size: int) -> dict[str, str]:
    """The test for any lane that is further than one divisor from where it belongs."""
    signed, parts = t.kind == "int", size // 8
    where, found = any_bit("far", size)
    return {
        "W": vector("uint", 64, parts),
        "below": f" + (({vector('uint', 32, size // 4)})b & ({vector('uint', 32, size // 4)})(a < 0))"
        if signed
        else "",
        "within": "(near >= 0) & " if signed else "",
        "where": where,
        "bytes": str(size),
        "any": found,
        "every": " | ".join(f"far[{n}]" for n in range(parts)),
    }


def _by_parts(t: ScalarType, size: int) -> dict[str, str]:
    """Parts that a quotient is made of: for every element of 32 or 64 bits of the vector, the elements inside it, one
    by one."""
    bits, signed = t.bits, t.kind == "int"
    wide = 32 if bits < 32 else 64
    unsigned, own, real = (vector(kind, wide, size * 8 // wide) for kind in ("uint", "int", "float"))
    floor = function_name("floor", ScalarType("float", wide), size * 8 // wide)
    mask = f"0x{(1 << bits) - 1:X}{'u' if wide == 32 else 'ULL'}"
    lines, joined = [], []
    for n in range(wide // bits):
        at, last = n * bits, (n + 1) * bits == wide
        y = f"(({unsigned})y >> {at} & {mask})" if not last else f"(({unsigned})y >> {at})"
        x = f"(({unsigned})a >> {at} & {mask})" if not last else f"(({unsigned})a >> {at})"
        if wide == 32:
            if signed:
                x = f"({own})(({unsigned})a << {wide - at - bits}) >> {wide - bits}"
            quotient = (f"__builtin_convertvector(({own})({x}) * 2 + 1, {real}) * "
                        f"(0.5f / __builtin_convertvector(({own}){y}, {real}))")  # fmt: skip
            whole = f"({unsigned})__builtin_convertvector({floor}({quotient}), {own})"
        else:  # integers of 32 bits are doubles by their bits; what is signed is 2^32 more
            if signed:
                x = f"({x} ^ 0x80000000ULL)"
            less = "0x1.00001p52" if signed else "0x1p52"
            quotient = (f"(({real})({x} << 1 | 0x4330000000000001ULL) - {less}) * "
                        f"(0.5 / (({real})({y} | 0x4330000000000000ULL) - 0x1p52))")  # fmt: skip
            whole = f"({unsigned})({floor}({quotient}) + 0x1.8p52)"
        lines.append(f"    const {unsigned} q{n} = {whole};\n")
        part = f"q{n}" if last else f"(q{n} & {mask})"
        joined.append(f"{part} << {at}" if at else part)
    u = vector("uint", bits, size * 8 // bits)
    sign = f"    const {u} sign = ({u})(b >> {bits - 1});\n" if signed else ""
    return {
        "parts": "".join(lines),
        "joined": " | ".join(joined),
        "sign": sign,
        "size": f"((({u})b ^ sign) - sign)" if signed else "b",
        "signed": "((q ^ sign) - sign)" if signed else "q",
    }

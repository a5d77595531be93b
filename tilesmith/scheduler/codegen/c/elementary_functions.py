"""Parts of the elementary functions of vectors in C files, conversions of floats, and the C library's functions.

See `exponential_functions` and `circular_functions` for those that are computed in whole vectors. They stand for the C
library's where floats are relaxed.
"""

from __future__ import annotations

from string import Template

from tilesmith.scheduler.codegen.c import neon
from tilesmith.scheduler.codegen.c.integer_functions import in_gcc
from tilesmith.scheduler.codegen.c.types import function_name, vector
from tilesmith.scheduler.ir.pipeline.types import INT32, ScalarType

FLOAT_FUNCTIONS = {
    "sqrt": "sqrt", "exp": "exp", "log": "log", "pow": "pow", "sin": "sin", "cos": "cos", "tan": "tan",
    "asin": "asin", "acos": "acos", "atan": "atan", "atan2": "atan2", "tanh": "tanh", "floor": "floor",
    "ceil": "ceil", "round": "rint", "trunc": "trunc",
}  # fmt: skip
"""Elementary functions of the language and their names in C."""

_INSTRUCTIONS = ("sqrt", "floor", "ceil", "round", "trunc")
"""Functions that machines have instructions on whole vectors for."""

_ROUNDING = {"round": 8, "floor": 9, "ceil": 10, "trunc": 11}
"""Modes of x86's rounding instructions, without the exception of inexact results."""

_PICK = """\
/* Lanes of a where the mask is set, else of b. */
INLINE $F $pick($I mask, $F a, $F b) {
    return ($F)((($I)a & mask) | (($I)b & ~mask));
}
"""

_TO_I32 = """\
/* Truncated; out of range the nearest value, NaN is 0. */
INLINE $I $to_i32($F a) {
#if $truncates
$truncated
#else
    const $F zero = {0}, most = zero + 0x1.fffffep30f, least = zero - 0x1p31f;
    const $I over = a > most;
    const $F upper = $pick(a < most, a, most);
    return ((__builtin_convertvector($pick(upper > least, upper, least), $I) & ~over) | (over & INT32_MAX)) & (a == a);
#endif
}
"""

_TO_U32 = """\
/* Truncated; out of range the nearest value, NaN is 0. */
INLINE $U $to_u32($F a) {
    const $F zero = {0}, most = zero + 0x1.fffffep31f, middle = zero + 0x1p31f;
    const $I over = a > most;
    $F b = $pick(a < most, a, most);
    b = $pick(b > zero, b, zero);
    const $I upper = b >= middle;
    const $I whole = __builtin_convertvector(b - ($F)(($I)middle & upper), $I) ^ (upper & INT32_MIN);
    return ($U)((whole | over) & (a == a));
}
"""

_TO_I64 = """\
/* Truncated, of numbers that 32 bits hold: of a large sum they are the last bits, where there is no instruction. */
INLINE $I $to_i64($F a) {
#if defined __SSE4_1__ && !defined __AVX512DQ__
    const $F to_whole = ($F){0} + 0x1.8p52;
    return ($I)$opaque($trunc(a) + to_whole) - ($I)to_whole;
#else
    return __builtin_convertvector(a, $I);
#endif
}
"""

_OPAQUE = """\
/* The same, in a register, as compilers cannot know: what they know of sums would find that what rounding loses is 0,
   and what they know of a place in memory would load from it again. */
INLINE $T $opaque($T a) {
#if $registers
    TILESMITH_WHOLE(a);
#else
    __asm__("" : "+m"(a));
#endif
    return a;
}
"""

_FMA = """\
/* a b + c, rounded once. */
INLINE $F $fma($F a, $F b, $F c) {
#if $fused
    return $fused_product;
#else
    return a * b + c; /* for the compiler alone: it is called where there is such an instruction */
#endif
}
"""

_ANY_BEYOND = """\
/* Whether any lane is further than `most` from 0. */
INLINE int $any_beyond($F a, $E most) {
    const $F zero = {0}, size = ($F)(($I)a & $largest), limit = zero + most;
#if $counts
    return $found_beyond != 0;
#else
    const $I beyond = size > limit;
    return ($every_beyond) != 0;
#endif
}
"""

_TO_F64 = """\
/* Double precision, by the one instruction for it: GCC 12 makes several. */
INLINE $D $to_f64($T a) {
#if $widens
    return $widened;
#else
    return $converted;
#endif
}
"""

_NONE = ("none", "")
_BY_BYTES = {64: "512", 32: "256", 16: ""}


def _fused_product(t: ScalarType, size: int) -> tuple[str, str]:
    """The instruction of vectors of so many bytes, and the condition of the preprocessor for there being one."""
    name = f"__builtin_ia32_vfmadd{_LETTERS[t.bits]}{_BY_BYTES.get(size)}"
    if size == 64:
        return "defined __AVX512F__", f"{name}_mask(a, b, c, -1, 4)"
    return ("defined __FMA__", f"{name}(a, b, c)") if size in _BY_BYTES else _NONE


def _found_beyond(t: ScalarType, size: int) -> tuple[str, str]:
    letters = _LETTERS[t.bits]
    if size == 64:
        return "defined __AVX512F__", f"__builtin_ia32_cmp{letters}512_mask(size, limit, 30, -1, 4)"
    where = {32: "defined __AVX__", 16: "defined __SSE2__"}.get(size)
    found = f"__builtin_ia32_movmsk{letters}{_BY_BYTES.get(size)}(($F)(size > limit))"
    return (where, found) if where else _NONE


_LETTERS = {32: "ps", 64: "pd"}
"""The end of the name of instructions on floats."""

FUNCTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "pick": (_PICK, ()),
    "opaque": (_OPAQUE, ()),
    "fma": (_FMA, ()),
    "to_i32": (_TO_I32, ("pick",)),
    "to_u32": (_TO_U32, ("pick",)),
    "to_i64": (_TO_I64, ("trunc", "opaque")),
    "to_f64": (_TO_F64, ()),
    "any_beyond": (_ANY_BEYOND, ()),
}
"""C text and callees by name, in an order in which they can be defined: what others are made of, and conversions."""

_EXTREME = """\
/* a if a $sign b, else b, of each lane: one instruction where the compiler would make two of it. */
INLINE $F $name($F a, $F b) {
$instructions    const $I first = a $sign b;
    return ($F)((($I)a & first) | (($I)b & ~first));
$end}
"""

_EXTREME_INSTRUCTIONS = {
    64: (
        ("defined __AVX512F__ && defined __clang__", "__builtin_ia32_${op}512(a, b, 4)"),
        ("defined __AVX512F__", "__builtin_ia32_${op}512_mask(a, b, ($F){0}, -1, 4)"),
    ),
    32: (("defined __AVX__", "__builtin_ia32_${op}256(a, b)"),),
    16: (("defined __SSE2__", "__builtin_ia32_${op}(a, b)"),),
}
"""Instructions by bytes of a vector: the condition of the preprocessor for there being one, and the compilers' name for
it."""


def extreme(name: str, t: ScalarType, lanes: int) -> str:
    own, sign = vector("float", t.bits, lanes), "<" if name == "min" else ">"
    words = {"F": own, "I": vector("int", t.bits, lanes), "sign": sign, "name": function_name(name, t, lanes)}
    words["op"] = name + ("ps" if t.bits == 32 else "pd")
    found = _EXTREME_INSTRUCTIONS.get(t.bytes * lanes, ())
    tests = [f"#{'el' if n else ''}if {test}\n    return {text};\n" for n, (test, text) in enumerate(found)]
    words["instructions"] = Template("".join(tests)).substitute(words) + ("#else\n" if found else "")
    words["end"] = "#endif\n" if found else ""
    return Template(_EXTREME).substitute(words)


EVERY_LANE = "TILESMITH_WHOLE(a);"
"""A statement in those functions of which compilers make one instruction."""


def by_lanes(name: str, t: ScalarType, lanes: int) -> str:
    """A function of the C library for every lane: of some the compilers make one instruction."""
    f, own = FLOAT_FUNCTIONS[name] + ("f" if t.bits == 32 else ""), vector("float", t.bits, lanes)
    names = ("a", "b") if name in ("pow", "atan2") else ("a",)
    values = ", ".join(f"{f}({', '.join(f'{v}[{n}]' for v in names)})" for n in range(lanes))
    head = f"INLINE {own} {function_name(name, t, lanes)}({', '.join(f'{own} {v}' for v in names)})"
    size = t.bytes * lanes
    if name not in _INSTRUCTIONS or size < 16:
        return f"{head} {{\n    return ({own}){{{values}}};\n}}\n"
    whole = f"#if TILESMITH_REGISTER >= {size}\n    {EVERY_LANE}\n#endif\n    return ({own}){{{values}}};"
    if (found := _one_instruction(name, t, size)) is not None:
        test, text = found
        whole = f"#if {test} && !defined __clang__\n    return {text};\n#else\n{whole}\n#endif"
    return f"{head} {{\n{whole}\n}}\n"


def _one_instruction(name: str, t: ScalarType, size: int) -> tuple[str, str] | None:
    """The condition of the preprocessor for GCC to have the instruction of a vector of so many bytes, and its name for
    it. It makes one of all lanes, too, but not always: then the lanes are computed one after the other."""
    op = "ps" if t.bits == 32 else "pd"
    if name == "sqrt":
        found = {
            64: ("defined __AVX512F__", f"__builtin_ia32_sqrt{op}512_mask(a, a, -1, 4)"),
            32: ("defined __AVX__", f"__builtin_ia32_sqrt{op}256(a)"),
            16: ("defined __SSE2__", f"__builtin_ia32_sqrt{op}(a)"),
        }
    else:
        mode = _ROUNDING[name]
        found = {
            64: ("defined __AVX512F__", f"__builtin_ia32_rndscale{op}_mask(a, {mode}, a, -1, 4)"),
            32: ("defined __AVX__", f"__builtin_ia32_round{op}256(a, {mode})"),
            16: ("defined __SSE4_1__", f"__builtin_ia32_round{op}(a, {mode})"),
        }
    return found.get(size)


def words(t: ScalarType, lanes: int, architecture: str) -> dict[str, str]:
    """The instructions in the texts above, each with the condition of the preprocessor for it."""
    size, own = t.bytes * lanes, vector("float", max(32, t.bits), lanes)
    x86 = architecture != neon.ARCHITECTURE
    fused, product = _NONE
    beyond, lane = _NONE
    if t.bits >= 32:
        fused, product = _fused_product(t, size) if x86 else neon.fused_product(t, size) or _NONE
        beyond, lane = _found_beyond(t, size) if x86 else neon.FOUND_BEYOND.get(size, _NONE)
    truncates, truncated = _truncated(size) if x86 else neon.TRUNCATED.get(size, _NONE)
    widens, widened = _widened(t, lanes) if x86 else neon.widened(t, lanes) or _NONE
    converted = f"__builtin_convertvector(a, {vector('float', 64, lanes)})"
    if t.name == "uint32":
        signed = f"({vector('int', 32, lanes)})(a ^ INT32_MIN)"
        converted = f"{function_name('to_f64', INT32, lanes)}({signed}) + 0x1p31"
    return {
        "registers": f"TILESMITH_REGISTER >= {size}" if size >= 16 else "none",
        "fused": fused,
        "fused_product": product.replace("$F", own),
        "counts": beyond,
        "found_beyond": lane.replace("$F", own),
        "every_beyond": " | ".join(f"beyond[{n}]" for n in range(lanes)),
        "truncates": truncates,
        "truncated": truncated.replace("$F", own).replace("$I", vector("int", 32, lanes)),
        "widens": widens,
        "widened": widened,
        "converted": converted,
        "largest": f"INT{t.bits}_MAX",
    }


_TRUNCATED = """\
    /* what is out of range becomes INT32_MIN, the inverse of INT32_MAX */
    const $I over = a >= ($F){0} + 0x1p31f;
    return (@ ^ over) & (a == a);"""
_TRUNCATED_512 = """\
    /* what is out of range becomes INT32_MIN, the inverse of INT32_MAX */
    const $I zero = {0}, over = a >= ($F){0} + 0x1p31f;
    return __builtin_ia32_cvttps2dq512_mask(a, zero, __builtin_ia32_cmpps512_mask(a, a, 7, -1, 4), 4) ^ over;"""


def _truncated(size: int) -> tuple[str, str]:
    """The instruction from float32 to int32: statements with its value, also of numbers beyond the range of int32."""
    if size == 64:
        return "defined __AVX512F__", _TRUNCATED_512
    if size not in (16, 32):
        return _NONE
    where, name = ("__AVX__", "cvttps2dq256") if size == 32 else ("__SSE2__", "cvttps2dq")
    return f"defined {where}", _TRUNCATED.replace("@", f"__builtin_ia32_{name}(a)")


def _widened(t: ScalarType, lanes: int) -> tuple[str, str]:
    """The instruction from elements of 32 bits to double precision. Clang finds it in the plain text."""
    stem = {"float32": "ps", "int32": "dq", "uint32": "udq"}.get(t.name)
    size, own = 8 * lanes, vector("float", 64, lanes)
    if stem is None or size not in (16, 32, 64) or (t.name == "uint32" and size < 64):
        return _NONE
    if size == 64:
        rounding = ", 4" if t.is_float else ""
        raw = "a" if t.is_float else f"({vector('int', 32, lanes)})a"
        return in_gcc("__AVX512F__"), f"__builtin_ia32_cvt{stem}2pd512_mask({raw}, ({own}){{0}}, -1{rounding})"
    if size == 32:
        return in_gcc("__AVX__"), f"__builtin_ia32_cvt{stem}2pd256(a)"
    return in_gcc("__SSE2__"), f"__builtin_ia32_cvt{stem}2pd(__builtin_shufflevector(a, a, 0, 1, 0, 1))"

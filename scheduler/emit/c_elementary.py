"""Elementary functions of vectors in C files, and conversions of floats to integers.

They are made as Cephes' in single precision (S. L. Moshier, Methods and Programs for Mathematical Functions, 1989):
within a few ulp, infinities and NaN as the C library has them. The polynomial of `exp` is a minimax one of the least
degree that is within 2e-7. `pow` takes its logarithm in double precision. They stand for the C library's where floats
are relaxed.
"""

from __future__ import annotations

from string import Template

from scheduler.emit.c_types import function_name, vector
from scheduler.lang.types import ScalarType

FLOAT_FUNCTIONS = {
    "sqrt": "sqrt", "exp": "exp", "log": "log", "pow": "pow", "sin": "sin", "cos": "cos", "tan": "tan",
    "asin": "asin", "acos": "acos", "atan": "atan", "atan2": "atan2", "tanh": "tanh", "floor": "floor",
    "ceil": "ceil", "round": "rint", "trunc": "trunc",
}  # fmt: skip
"""Elementary functions of the language and their names in C."""

_INSTRUCTIONS = ("sqrt", "floor", "ceil", "round", "trunc")
"""Functions that machines have instructions on whole vectors for."""

_PICK = """\
/* Lanes of a where the mask is set, else of b. */
TILESMITH_INLINE $F $pick($I mask, $F a, $F b) {
    return ($F)((($I)a & mask) | (($I)b & ~mask));
}
"""

_TO_I32 = """\
/* Truncated; out of range the nearest value, NaN is 0. */
TILESMITH_INLINE $I $to_i32($F a) {
#if $avx512
    /* what is out of range becomes INT32_MIN, the inverse of INT32_MAX */
    const $I zero = {0}, over = a >= ($F){0} + 0x1p31f;
    return __builtin_ia32_cvttps2dq512_mask(a, zero, __builtin_ia32_cmpps512_mask(a, a, 7, -1, 4), 4) ^ over;
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
TILESMITH_INLINE $U $to_u32($F a) {
    const $F zero = {0}, most = zero + 0x1.fffffep31f, middle = zero + 0x1p31f;
    const $I over = a > most;
    $F b = $pick(a < most, a, most);
    b = $pick(b > zero, b, zero);
    const $I upper = b >= middle;
    const $I whole = __builtin_convertvector(b - ($F)(($I)middle & upper), $I) ^ (upper & INT32_MIN);
    return ($U)((whole | over) & (a == a));
}
"""

_EXP_NUMBERS = """\
/* What e^x is computed with. `keep` is for a loop over vectors, ahead of it: compilers have constants in registers for
   the whole of a function or, where that is too long, load them from memory each time. */
typedef struct { $F least, most, log2e, high, low, fifth, fourth, third, half, one; } ${exp_numbers}_t;
TILESMITH_INLINE ${exp_numbers}_t $exp_numbers(int keep) {
    const $F zero = {0};
    ${exp_numbers}_t n = {zero - 105.0f, zero + 89.0f, zero + 1.44269504088896341f, zero + 0.693359375f,
                          zero - 2.12194440e-4f, zero + 8.3125012606e-3f, zero + 4.1890331573e-2f,
                          zero + 1.6667115389e-1f, zero + 4.9999230309e-1f, zero + 1.0f};
#if $avx512
    if (keep)
        __asm__ volatile("" : "+v"(n.least), "+v"(n.most), "+v"(n.log2e), "+v"(n.high), "+v"(n.low), "+v"(n.fifth),
                              "+v"(n.fourth), "+v"(n.third), "+v"(n.half), "+v"(n.one));
#endif
    (void)keep;
    return n;
}
"""

_EXP_SCALED = """\
/* e^x 2^k for x no further than log(2) / 2 from 0 and whole k. */
TILESMITH_INLINE $F $exp_scaled($F x, $F k, ${exp_numbers}_t n) {
    $F p = x * n.fifth + n.fourth;
    p = p * x + n.third;
    p = p * x + n.half;
    p = p * x + n.one;
    p = p * x + n.one;
#if $avx512
    return __builtin_ia32_scalefps512_mask(p, k, ($F){0}, -1, 4);
#else
    const $I whole = __builtin_convertvector(k, $I);
    const $I half = whole >> 1; /* 2^k itself may be no float: one half goes into the exponent, p being near 1 */
    return ($F)(($I)p + (half << 23)) * ($F)((whole - half + 127) << 23);
#endif
}
"""

_EXP = """\
TILESMITH_INLINE $F $exp($F x, ${exp_numbers}_t n) {
    x = $max(n.least, $min(n.most, x));
#if $avx512
    const $F k = __builtin_ia32_rndscaleps_mask(x * n.log2e, 8, ($F){0}, -1, 4);
#else
    const $F half = ($F)((($I)x & INT32_MIN) | 0x3F000000);
    const $F k = __builtin_convertvector(__builtin_convertvector(x * n.log2e + half, $I), $F);
#endif
    return $exp_scaled(x - k * n.high - k * n.low, k, n);
}
"""

_LOG_PARTS = """\
/* m from sqrt(1/2) to sqrt(2) with m 2^k = x, for x above 0. */
TILESMITH_INLINE $F $log_parts($F x, $F *k) {
    const $I tiny = x < ($F){0} + 0x1p-126f;
    const $I bits = ($I)$pick(tiny, x * 0x1p23f, x);
    const $I e = (bits - 0x3F3504F3) >> 23;
    *k = __builtin_convertvector(e - (tiny & 23), $F);
    return ($F)(bits - (e << 23));
}
"""

_LOG = """\
TILESMITH_INLINE $F $log($F x) {
    const $F zero = {0}, infinite = zero + INFINITY, none = zero + NAN;
    $F k;
    const $F m = $log_parts(x, &k) - 1.0f, z = m * m;
    $F p = m * 7.0376836292e-2f - 1.1514610310e-1f;
    p = p * m + 1.1676998740e-1f;
    p = p * m - 1.2420140846e-1f;
    p = p * m + 1.4249322787e-1f;
    p = p * m - 1.6668057665e-1f;
    p = p * m + 2.0000714765e-1f;
    p = p * m - 2.4999993993e-1f;
    p = p * m + 3.3333331174e-1f;
    const $F y = m + (p * m * z - k * 2.12194440e-4f - z * 0.5f) + k * 0.693359375f;
    return $pick(x > zero, $pick(x < infinite, y, x), $pick(x == zero, -infinite, none));
}
"""

_PRODUCT = """\
/* y log2(m 2^k), where it matters. */
TILESMITH_INLINE $D $product_log2($F m, $F k, $F y) {
    const $D wide = __builtin_convertvector(m, $D), zero = {0}, most = zero + 200.0, least = zero - 200.0;
    const $D s = (wide - 1.0) / (wide + 1.0), z = s * s;
    $D p = z * 0.221953083213687 + 0.262308189252539; /* 2 / (n log(2)) for n = 13, 11, ... 1 */
    p = p * z + 0.320598897975325;
    p = p * z + 0.412198583111132;
    p = p * z + 0.577078016355585;
    p = p * z + 0.961796693925976;
    p = p * z + 2.885390081777927;
    const $D t = (p * s + __builtin_convertvector(k, $D)) * __builtin_convertvector(y, $D);
    const $L high = t > most, low = t < least;
    return ($D)((($L)most & high) | (($L)least & low) | (($L)t & ~high & ~low));
}
"""

_EXP2 = """\
TILESMITH_INLINE $F $exp2($D t) {
    const $D half = ($D)((($L)t & INT64_MIN) | 0x3FE0000000000000);
    const $I n = __builtin_convertvector(t + half, $I);
    const $F rest = __builtin_convertvector(t - __builtin_convertvector(n, $D), $F);
    return $exp_scaled(rest * 0.693147180559945309f, __builtin_convertvector(n, $F), $exp_numbers(0));
}
"""

_POW = """\
TILESMITH_INLINE $F $pow($F x, $F y) {
    const $F zero = {0}, one = zero + 1.0f, infinite = zero + INFINITY, none = zero + NAN, whole_from = zero + 0x1p24f;
    const $F a = ($F)(($I)x & INT32_MAX);
    $F k;
    const $F m = $log_parts(a, &k);
    $F r = $power;
    const $I nothing = a == zero, ends = nothing | (a == infinite);
    r = $pick(ends, ($F)(($I)infinite & ((y > zero) ^ nothing)), r);
    r = $pick(a == one, one, r);
    /* a negative base has a power where the exponent is whole */
    const $F exponent = $pick((y < whole_from) & (y > -whole_from), y, zero);
    const $I whole = __builtin_convertvector(exponent, $I), negative = x < zero;
    const $I broken = __builtin_convertvector(whole, $F) != exponent;
    r = ($F)(($I)r ^ (negative & ((whole & 1) << 31)));
    r = $pick((negative & broken & ~ends) | (x != x) | (y != y), none, r);
    return $pick((y == zero) | (x == one), one, r);
}
"""

FUNCTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "pick": (_PICK, ()),
    "to_i32": (_TO_I32, ("pick",)),
    "to_u32": (_TO_U32, ("pick",)),
    "exp_numbers": (_EXP_NUMBERS, ()),
    "exp_scaled": (_EXP_SCALED, ("exp_numbers",)),
    "exp": (_EXP, ("min", "max", "exp_scaled")),
    "log_parts": (_LOG_PARTS, ("pick",)),
    "log": (_LOG, ("pick", "log_parts")),
    "product_log2": (_PRODUCT, ()),
    "exp2": (_EXP2, ("exp_scaled",)),
    "pow": (_POW, ("pick", "log_parts", "product_log2", "exp2")),
}
"""C text and callees by name, in an order in which they can be defined."""

_EXTREME = """\
/* a if a $sign b, else b, of each lane: one instruction where the compiler would make two of it. */
TILESMITH_INLINE $F $name($F a, $F b) {
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


def by_lanes(name: str, t: ScalarType, lanes: int) -> str:
    """A function of the C library for every lane: of some the compilers make one instruction."""
    f, own = FLOAT_FUNCTIONS[name] + ("f" if t.bits == 32 else ""), vector("float", t.bits, lanes)
    names = ("a", "b") if name in ("pow", "atan2") else ("a",)
    values = ", ".join(f"{f}({', '.join(f'{v}[{n}]' for v in names)})" for n in range(lanes))
    head = f"TILESMITH_INLINE {own} {function_name(name, t, lanes)}({', '.join(f'{own} {v}' for v in names)})"
    size = t.bytes * lanes
    if name not in _INSTRUCTIONS or size < 16:
        return f"{head} {{\n    return ({own}){{{values}}};\n}}\n"
    whole = f"#if TILESMITH_REGISTER >= {size}\n    TILESMITH_WHOLE(a);\n#endif"
    return f"{head} {{\n{whole}\n    return ({own}){{{values}}};\n}}\n"


def power(t: ScalarType, lanes: int, doubles: int) -> str:
    """2^(y log2(m 2^k)), by halves where double precision needs two vectors."""
    n = min(lanes, doubles)
    exp2, product = (function_name(f, t, n) for f in ("exp2", "product_log2"))
    parts = []
    for start in range(0, lanes, n):
        picks = ", ".join(str(start + j) for j in range(n))
        m, k, y = (v if n == lanes else f"__builtin_shufflevector({v}, {v}, {picks})" for v in ("m", "k", "y"))
        parts.append(f"{exp2}({product}({m}, {k}, {y}))")
    if len(parts) == 1:
        return parts[0]
    return f"__builtin_shufflevector({', '.join(parts)}, {', '.join(map(str, range(lanes)))})"

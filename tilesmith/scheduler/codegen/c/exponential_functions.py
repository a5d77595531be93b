"""Exponentials, logarithms and powers of vectors of float32 in C files.

`exp` is made as Cephes' is (S. L. Moshier, Methods and Programs for Mathematical Functions, 1989), with a minimax
polynomial of the least degree that is within 2e-7. `log` is a polynomial, too. `pow` is 2^(y log2(x)): its logarithm
needs more digits than a float has. With fused multiplications it is a sum of two floats, made as T. J. Dekker's (A
floating-point technique for extending the available precision, 1971); else it is in double precision. Where the
exponent is known to be a third it is a cube root, which takes half as long.
"""

from __future__ import annotations

from tilesmith.scheduler.codegen.c.types import function_name, vector
from tilesmith.scheduler.ir.pipeline.types import FLOAT32

_EXP_NUMBERS = """\
/* What e^x is computed with. `keep` is for a loop over vectors, ahead of it: compilers have constants in registers for
   the whole of a function or, where that is too long, load them from memory each time. */
typedef struct { $F least, most, log2e, high, low, fifth, fourth, third, half, one; } ${exp_numbers}_t;
INLINE ${exp_numbers}_t $exp_numbers(int keep) {
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

_SCALED = """\
/* p 2^k for p near 1 and whole k. */
INLINE $F $scaled($F p, $F k) {
#if $avx512
    return __builtin_ia32_scalefps512_mask(p, k, ($F){0}, -1, 4);
#else
    const $I whole = __builtin_convertvector(k, $I);
    const $I half = whole >> 1; /* 2^k itself may be no float: one half goes into the exponent */
    return ($F)(($I)p + (half << 23)) * ($F)((whole - half + 127) << 23);
#endif
}
"""

_EXP = """\
/* Below `least` it is 0, and not computed: an operation whose result is no float takes as long as a hundred others. */
INLINE $F $exp($F x, ${exp_numbers}_t n) {
#if $avx512
    const uint16_t some = (uint16_t)__builtin_ia32_cmpps512_mask(x, n.least, 5, -1, 4);
    x = $min(n.most, x);
    const $F k = __builtin_ia32_rndscaleps_mask(x * n.log2e, 8, ($F){0}, -1, 4);
#else
    x = $max(n.least, $min(n.most, x));
    const $F half = ($F)((($I)x & INT32_MIN) | 0x3F000000);
    const $I whole = __builtin_convertvector(x * n.log2e + half, $I);
    const $F k = __builtin_convertvector(whole, $F);
#endif
    x = $opaque(x - k * n.high) - k * n.low;
    $F p = x * n.fifth + n.fourth;
    p = p * x + n.third;
    p = p * x + n.half;
    p = p * x + n.one;
    p = p * x + n.one;
#if $avx512
    return __builtin_ia32_scalefps512_mask(p, k, ($F){0}, some, 4);
#else
    const $I part = (whole >> 2) + 141; /* 2^k itself may be no float; of k = -151 the second factor is 0 */
    return $opaque(p * ($F)(part << 23)) * ($F)((whole - part + 254) << 23);
#endif
}
"""

_LOG_PARTS = """\
/* m from sqrt(1/2) to sqrt(2) with m 2^k = x, for x above 0. */
INLINE $F $log_parts($F x, $F *k) {
#if $avx512
    const $F none = {0}, m = __builtin_ia32_getmantps512_mask(x, 0, none, -1, 4);
    const $I upper = m > none + 1.41421354f;
    *k = $opaque(__builtin_ia32_getexpps512_mask(x, none, -1, 4) + ($F)(upper & 0x3F800000));
    return ($F)(($I)m - (upper & 0x800000));
#else
    const $I tiny = x < ($F){0} + 0x1p-126f;
    const $I bits = ($I)$pick(tiny, x * 0x1p23f, x);
    const $I e = (bits - 0x3F3504F3) >> 23;
    *k = __builtin_convertvector(e - (tiny & 23), $F);
    return ($F)(bits - (e << 23));
#endif
}
"""

_LOG = """\
INLINE $F $log($F x) {
    const $F zero = {0}, infinite = zero + INFINITY, none = zero + NAN;
    $F k;
    const $F m = $log_parts(x, &k) - 1.0f, z = m * m;
    $F p = m * 6.749268e-2f - 1.1670098e-1f;
    p = p * m + 1.1883549e-1f;
    p = p * m - 1.2406234e-1f;
    p = p * m + 1.4220358e-1f;
    p = p * m - 1.6667989e-1f;
    p = p * m + 2.0002072e-1f;
    p = p * m - 2.500001e-1f;
    p = p * m + 3.3333313e-1f;
    const $F y = m + (p * m * z - k * 2.12194440e-4f - z * 0.5f) + k * 0.693359375f;
    return $pick(x > zero, $pick(x < infinite, y, x), $pick(x == zero, -infinite, none));
}
"""

_LOG2 = """\
/* log2(m 2^k) as a sum: what is returned, and `low`, a hundredth of it at most. The logarithm is 2 / log(2) times the
   series of s = (m - 1) / (m + 1). What a sum or product loses is found again, and held from compilers, to which it is
   0. */
INLINE $F $log2($F m, $F k, $F *low) {
    const $F zero = {0}, u = m - 1.0f, v = $opaque(m + 1.0f), r = 1.0f / v, s = u * r, z = s * s;
    const $F rest = $fma(-s, m - $opaque(v - 1.0f), $fma(-s, v, u)) * r * 2.88539f;
    const $F high = $opaque(s * 2.88539f), sum = $opaque(k + high);
    $F p = z * 3.36492e-1f + 4.1192722e-1f;
    p = p * z + 5.770788e-1f;
    p = p * z + 9.617967e-1f;
    const $F lost = $fma(s, zero + 2.88539f, -high) + rest + rest * z + $opaque(high - $opaque(sum - k));
    *low = (p * z + 3.851926e-8f) * s + lost;
    return sum;
}
"""

_PRODUCT = """\
/* y log2(m 2^k) as a whole number, and `rest`. It is no further than 204 from 0, where 2^that is no float any more. */
INLINE $F $product($F m, $F k, $F y, $F *rest) {
    const $F zero = {0}, most = zero + 200.0f, little = zero + 4.0f, to_whole = zero + 0x1.8p23f;
    $F low;
    const $F high = $log2(m, k, &low);
    const $F t = $opaque($max(-most, $min(y * high, most)));
    const $F more = $max(-little, $min($fma(y, high, -t) + y * low, little));
    const $F whole = $opaque($opaque($opaque(t + more) + to_whole) - to_whole);
    *rest = $opaque(t - whole) + more;
    return whole;
}
"""

_PRODUCT_WIDE = """\
/* y log2(m 2^k) as a whole number, and `rest`, where 2^that is a float. */
INLINE $F $product_wide($F m, $F k, $F y, $F *rest) {
    const $D wide = $to_f64(m), zero = {0}, most = zero + 200.0, to_whole = zero + 0x1.8p52;
    const $D s = (wide - 1.0) / (wide + 1.0), z = s * s;
    $D p = z * 0.221953083213687 + 0.262308189252539; /* 2 / (n log(2)) for n = 13, 11, ... 1 */
    p = p * z + 0.320598897975325;
    p = p * z + 0.412198583111132;
    p = p * z + 0.577078016355585;
    p = p * z + 0.961796693925976;
    p = p * z + 2.885390081777927;
    $D t = (p * s + $to_f64(k)) * $to_f64(y);
    const $L high = t > most, low = t < -most;
    t = ($D)((($L)most & high) | (($L)-most & low) | (($L)t & ~high & ~low));
    const $D whole = $opaque_f64($opaque_f64(t + to_whole) - to_whole);
    *rest = __builtin_convertvector(t - whole, $F);
    return __builtin_convertvector(whole, $F);
}
"""

_EXP2 = """\
/* 2^(x + k) for x no further than 1/2 from 0 and whole k. */
INLINE $F $exp2($F x, $F k) {
    $F p = x * 1.5329212e-4f + 1.3391889e-3f;
    p = p * x + 9.618503e-3f;
    p = p * x + 5.550358e-2f;
    p = p * x + 2.4022648e-1f;
    p = p * x + 6.931472e-1f;
    return $scaled(p * x + 1.0f, k);
}
"""

_POW = """\
INLINE $F $pow($F x, $F y) {
    const $F zero = {0}, one = zero + 1.0f, infinite = zero + INFINITY, none = zero + NAN, whole_from = zero + 0x1p24f;
    const $F a = ($F)(($I)x & INT32_MAX), size = ($F)(($I)y & INT32_MAX);
    $F k, rest;
    const $F m = $log_parts(a, &k);
#if $avx512
    /* k of 0 and of infinity is infinite */
#else
    k = $pick(a == zero, -infinite, $pick(a == infinite, a, k));
#endif
#if $fused
    const $F n = $product(m, k, y, &rest);
#else
$halves#endif
    $F r = $exp2(rest, n);
    r = $pick((y == zero) | ((a == one) & ~(size < infinite)), one, r);
    /* a negative base has a power where the exponent is whole */
    const $F exponent = $pick(size < whole_from, y, zero);
    const $I whole = __builtin_convertvector(exponent, $I);
    const $I broken = __builtin_convertvector(whole, $F) != exponent;
    r = ($F)(($I)r ^ (($I)x & (whole << 31) & ~broken));
    return $pick(((x != x) & (y != zero)) | ((y != y) & (x != one)) | (broken & (x < zero) & (x > -infinite)), none, r);
}
"""

_CUBE_ROOT = """\
/* x^THIRD. A third of the bits is a guess within 4 %, of which two of E. Halley's steps (1694) make the cube root, of
   what is scaled to where no power of it is too large or small. That exponent is more than 1/3: what follows of it is
   in the second step, with the bits as logarithm. */
INLINE $F $cube_root($F x) {
    const $F zero = {0}, infinite = zero + INFINITY, none = zero + NAN, size = ($F)(($I)x & INT32_MAX);
    const $I little = size < zero + 0x1p-20f;
    const $F a = size * $pick(little, zero + 0x1p60f, zero + 0x1p-60f), bits = __builtin_convertvector(($I)a, $F);
    const $F y = ($F)__builtin_convertvector(bits * 0.333333343f + 709965728.0f, $I), y3 = y * y * y;
    const $F z = y * ((y3 + 2.0f * a) / (2.0f * y3 + a)), z3 = z * z * z;
    const $F more = $opaque((a - z3) / (2.0f * z3 + a) + (bits * 8.208512e-16f - 4.613485e-7f));
    const $F root = (z + z * more) * $pick(little, zero + 9.536735284e-7f, zero + 0x1p20f);
    const $F r = $pick((size > zero) & (size < infinite), root, size);
    return $pick((x < zero) & (x > -infinite), none, r);
}
"""

FUNCTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "exp_numbers": (_EXP_NUMBERS, ()),
    "scaled": (_SCALED, ()),
    "exp": (_EXP, ("min", "max", "opaque", "exp_numbers")),
    "log_parts": (_LOG_PARTS, ("pick", "opaque")),
    "log": (_LOG, ("pick", "log_parts")),
    "log2": (_LOG2, ("opaque", "fma")),
    "product": (_PRODUCT, ("opaque", "fma", "min", "max", "log2")),
    "product_wide": (_PRODUCT_WIDE, ("to_f64", "opaque_f64")),
    "exp2": (_EXP2, ("scaled",)),
    "cube_root": (_CUBE_ROOT, ("pick", "opaque")),
    "pow": (_POW, ("pick", "log_parts", "product", "product_wide", "exp2")),
}
"""C text and callees by name, in an order in which they can be defined."""


def halves(lanes: int, doubles: int) -> str:
    """Statements for `n` and `rest` of `pow`, by halves where double precision needs two vectors."""
    if lanes <= doubles:
        name = function_name("product_wide", FLOAT32, lanes)
        return f"    const {vector('float', 32, lanes)} n = {name}(m, k, y, &rest);\n"
    half = vector("float", 32, doubles)
    name = function_name("product_wide", FLOAT32, doubles)
    lines = [f"{half} rests[2];"]
    for part in range(2):
        picks = ", ".join(str(part * doubles + j) for j in range(doubles))
        args = ", ".join(f"__builtin_shufflevector({v}, {v}, {picks})" for v in "mky")
        lines.append(f"const {half} n{part} = {name}({args}, &rests[{part}]);")
    joined = ", ".join(map(str, range(lanes)))
    lines.append(f"const {vector('float', 32, lanes)} n = __builtin_shufflevector(n0, n1, {joined});")
    lines.append(f"rest = __builtin_shufflevector(rests[0], rests[1], {joined});")
    return "".join(f"    {line}\n" for line in lines)

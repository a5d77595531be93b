"""Circular and hyperbolic functions of vectors of float32 in C files, and their inverses.

They are odd minimax polynomials on the least interval that symmetries leave. Arguments of `sin`, `cos` and `tan` lose
multiples of pi in parts (W. J. Cody and W. Waite, Software Manual for the Elementary Functions, 1980). A vector with a
lane too far from 0 for that is left to the C library.
"""

from __future__ import annotations

from tilesmith.scheduler.ir.pipeline.types import ScalarType

_FAR = """\
/* Whether a lane is too far from 0 for `less_pi`. */
INLINE int $far($F x) {
#if $fused
    return $any_beyond(x, 0x1p17f);
#else
    return $any_beyond(x, 6000.0f);
#endif
}
"""

_LESS_PI = """\
/* x - n pi, for multiples n of 1/2. */
INLINE $F $less_pi($F x, $F n) {
#if $fused
    const $F zero = {0};
    x = $fma(n, zero - 3.1415927f, x);
    x = $fma(n, zero + 8.742278e-8f, x);
    return $fma(n, zero + 3.430249e-15f, x);
#else
    /* parts of pi that are so short that their products are exact, but for the last */
    x = $opaque(x - n * 0x1.922p+1f);
    x = $opaque(x + n * 0x1.28p-17f);
    x = $opaque(x + n * 0x1.778p-24f);
    return x - n * 5.126688e-12f;
#endif
}
"""

_HALF_WAVE = """\
/* sin(r) for r from -pi / 2 to pi / 2, with the sign of an odd n turned round. */
INLINE $F $half_wave($F r, $I n) {
    const $F z = r * r;
    $F p = z * 2.5995018e-6f - 1.9806849e-4f;
    p = p * z + 8.33303e-3f;
    p = p * z - 1.6666658e-1f;
    return ($F)(($I)(p * z * r + r) ^ (n << 31));
}
"""

_SIN = """\
INLINE $F $sin($F x) {
    if (__builtin_expect($far(x), 0)) return $each_sin(x);
    const $F zero = {0}, to_whole = zero + 0x1.8p23f; /* whose last bits are then the whole number */
    const $F a = ($F)(($I)x & INT32_MAX), n = $opaque(a * 0.318309886f + to_whole);
    return ($F)(($I)$half_wave($less_pi(a, n - to_whole), ($I)n) ^ (($I)x & INT32_MIN));
}
"""

_COS = """\
/* sin(x + pi / 2). */
INLINE $F $cos($F x) {
    if (__builtin_expect($far(x), 0)) return $each_cos(x);
    const $F zero = {0}, to_whole = zero + 0x1.8p23f;
    const $F n = $opaque($opaque(x * 0.318309886f + 0.5f) + to_whole);
    return $half_wave($less_pi(x, $opaque(n - to_whole) - 0.5f), ($I)n);
}
"""

_TAN = """\
INLINE $F $tan($F x) {
    if (__builtin_expect($far(x), 0)) return $each_tan(x);
    const $F zero = {0}, to_whole = zero + 0x1.8p23f;
    const $F a = ($F)(($I)x & INT32_MAX), n = $opaque(a * 0.636619772f + to_whole);
    const $F r = $less_pi(a, (n - to_whole) * 0.5f), z = r * r;
    $F p = z * 4.464693e-3f - 8.7404704e-5f;
    p = p * z + 1.0973446e-2f;
    p = p * z + 2.1229893e-2f;
    p = p * z + 5.4069877e-2f;
    p = p * z + 1.3332577e-1f;
    p = p * z + 3.3333352e-1f;
    const $F t = $opaque(p * z * r + r);
    return ($F)(($I)$pick(($I)n << 31 >> 31, -1.0f / t, t) ^ (($I)x & INT32_MIN));
}
"""

_ARC_TAN = """\
/* atan(q) for q from -1 to 1. */
INLINE $F $arc_tan($F q) {
    const $F z = q * q;
    $F p = z * -1.7828123e-3f + 1.086866e-2f;
    p = p * z - 3.1096961e-2f;
    p = p * z + 5.788138e-2f;
    p = p * z - 8.399306e-2f;
    p = p * z + 1.09508805e-1f;
    p = p * z - 1.4264016e-1f;
    p = p * z + 1.999853e-1f;
    p = p * z - 3.33333e-1f;
    return p * z * q + q;
}
"""

_ATAN = """\
INLINE $F $atan($F x) {
    const $F zero = {0}, one = zero + 1.0f, right = zero + 1.57079633f, a = ($F)(($I)x & INT32_MAX);
    const $I steep = a > one;
    const $F r = $arc_tan($pick(steep, -one, a) / $pick(steep, a, one)) + ($F)(steep & ($I)right);
    return ($F)(($I)r ^ (($I)x & INT32_MIN));
}
"""

_ATAN2 = """\
INLINE $F $atan2($F y, $F x) {
    const $F zero = {0}, one = zero + 1.0f, right = zero + 1.57079633f, straight = zero + 3.14159265f;
    const $F a = ($F)(($I)y & INT32_MAX), b = ($F)(($I)x & INT32_MAX), least = zero + 0x1p-149f;
    /* NaN is what extremes make of their last argument, if it or the first is */
    const $F low = $min(a, b), high = $max(least, $max(b, a));
    $F r = $arc_tan($pick(low == high, one, low / high));
    r = $pick(a > b, right - r, r);
    r = $pick(($I)x >> 31, straight - r, r);
    return ($F)(($I)r ^ (($I)y & INT32_MIN));
}
"""

_ARC_SIN = """\
/* asin(a) for a from 0; from 1/2 on that of sqrt((1 - a) / 2), which is half of what is left to pi / 2. */
INLINE $F $arc_sin($F a, $I steep) {
    const $F s = $pick(steep, (1.0f - a) * 0.5f, a * a), q = $pick(steep, $sqrt(s), a);
    $F p = s * 4.2158306e-2f + 2.4184778e-2f;
    p = p * s + 4.546915e-2f;
    p = p * s + 7.4953094e-2f;
    p = p * s + 1.6666752e-1f;
    return p * s * q + q;
}
"""

_ASIN = """\
INLINE $F $asin($F x) {
    const $F zero = {0}, half = zero + 0.5f, a = ($F)(($I)x & INT32_MAX);
    const $I steep = a > half;
    const $F r = $arc_sin(a, steep), rest = 1.57079637f - (r * 2.0f + 4.37113883e-8f);
    return ($F)(($I)$pick(steep, rest, r) ^ (($I)x & INT32_MIN));
}
"""

_ACOS = """\
INLINE $F $acos($F x) {
    const $F zero = {0}, half = zero + 0.5f, a = ($F)(($I)x & INT32_MAX), right = zero + 1.57079633f;
    const $I steep = a > half, sign = ($I)x & INT32_MIN, behind = sign >> 31;
    const $F r = $arc_sin(a, steep);
    const $F far = $pick(behind, 3.14159265f - r * 2.0f, r * 2.0f);
    return $pick(steep, far, right - ($F)(($I)r ^ sign));
}
"""

_TANH = """\
INLINE $F $tanh($F x) {
    const $F zero = {0}, middle = zero + 0.625f, a = ($F)(($I)x & INT32_MAX), z = a * a;
    $F p = z * -5.5854907e-3f + 2.053366e-2f;
    p = p * z - 5.3708017e-2f;
    p = p * z + 1.3331072e-1f;
    p = p * z - 3.333327e-1f;
    const $F far = 1.0f - 2.0f / ($exp(a * 2.0f, $exp_numbers(0)) + 1.0f);
    return ($F)(($I)$pick(a > middle, far, p * z * a + a) ^ (($I)x & INT32_MIN));
}
"""

_EACH = """\
/* By the C library, out of the way of what is as a rule. */
SELDOM $F $each_@($F a) {
    return ($F){$lanes_@};
}
"""

_EACH_OF = ("sin", "cos", "tan")

FUNCTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    **{f"each_{f}": (_EACH.replace("@", f), ()) for f in _EACH_OF},
    "far": (_FAR, ("any_beyond",)),
    "less_pi": (_LESS_PI, ("opaque", "fma")),
    "half_wave": (_HALF_WAVE, ()),
    "sin": (_SIN, ("each_sin", "opaque", "far", "less_pi", "half_wave")),
    "cos": (_COS, ("each_cos", "opaque", "far", "less_pi", "half_wave")),
    "tan": (_TAN, ("each_tan", "opaque", "far", "less_pi", "pick")),
    "arc_tan": (_ARC_TAN, ()),
    "atan": (_ATAN, ("pick", "arc_tan")),
    "atan2": (_ATAN2, ("pick", "min", "max", "arc_tan")),
    "arc_sin": (_ARC_SIN, ("pick", "sqrt")),
    "asin": (_ASIN, ("pick", "arc_sin")),
    "acos": (_ACOS, ("pick", "arc_sin")),
    "tanh": (_TANH, ("pick", "exp_numbers", "exp")),
}
"""C text and callees by name, in an order in which they can be defined."""


def words(t: ScalarType, lanes: int) -> dict[str, str]:
    """Functions of vectors that the texts above define for every lane."""
    ending = "" if t.bits == 64 else "f"
    return {f"lanes_{f}": ", ".join(f"{f}{ending}(a[{n}])" for n in range(lanes)) for f in _EACH_OF}

"""Elementary functions of vectors of float64 in C files, where floats are relaxed.

They are made as those of float32 are (`exponential_functions`, `circular_functions`), with longer polynomials. `exp`
and `log` go the ways of W. J. Cody and W. Waite and of FreeBSD's msun (Sun Microsystems, 1993); the logarithm of `pow`
is a sum of two (T. J. Dekker, 1971). Whole numbers are the last bits of large sums, since few machines convert integers
of 64 bits.
"""

from __future__ import annotations

_NEAREST = """\
/* The whole number next to x, which `bits` ends in. */
INLINE $F $nearest($F x, $I *bits) {
    const $F to_whole = ($F){0} + 0x1.8p52, n = $opaque(x + to_whole);
    *bits = ($I)n;
    return $opaque(n - to_whole);
}
"""

_LOST = """\
/* a b - p of their product p: what rounding lost of it. */
INLINE $F $lost($F a, $F b, $F p) {
#if $fused
    return $fma(a, b, -p);
#else
    const $F c = a * 0x1.0000002p27, d = b * 0x1.0000002p27;
    const $F high = $opaque(c - $opaque(c - a)), upper = $opaque(d - $opaque(d - b));
    const $F low = a - high, lower = b - upper;
    return $opaque($opaque($opaque(high * upper - p) + high * lower) + low * upper) + low * lower;
#endif
}
"""

_SCALED = """\
/* p 2^k for p near 1 and whole k no further than 2000 from 0. */
INLINE $F $scaled($F p, $F k) {
#if $avx512
    return __builtin_ia32_scalefpd512_mask(p, k, ($F){0}, -1, 4);
#else
    $I first, second; /* 2^k itself may be no float */
    $nearest(k - $nearest(k * 0.5, &first), &second);
    return ($F)(($I)p + ($I)(($U)first << 52)) * ($F)(($U)(second + 1023) << 52);
#endif
}
"""

_EXP = """\
/* Below `least` it is 0, and not computed: an operation whose result is no float takes as long as a hundred others. */
INLINE $F $exp($F x) {
    const $F zero = {0}, least = zero - 745.14;
    $I bits;
#if $avx512
    const uint8_t some = (uint8_t)__builtin_ia32_cmppd512_mask(x, least, 5, -1, 4);
#else
    const $I none = x < least;
    x = ($F)(($I)x & ~none);
#endif
    x = $min(zero + 710.0, x);
    const $F k = $nearest(x * 1.4426950408889634, &bits);
    x = $opaque(x - k * 0x1.62e42feep-1) - k * 0x1.a39ef35793c76p-33;
    const $F z = x * x;
    $F p = x * 2.5096419841726616e-08 + 2.7614931875440477e-07;
    p = p * x + 2.7557278492467253e-06;
    p = p * x + 2.4801534341237888e-05;
    p = p * x + 0.00019841269855134627;
    p = p * x + 0.0013888888906916628;
    p = p * x + 0.00833333333333206;
    p = p * x + 0.0416666666666501;
    p = p * x + 0.16666666666666666;
    p = 1.0 + (x + (z * 0.5 + p * z * x));
#if $avx512
    return __builtin_ia32_scalefpd512_mask(p, k, zero, some, 4);
#else
    return ($F)(($I)$scaled(p, k) & ~none);
#endif
}
"""

_LOG_PARTS = """\
/* m from sqrt(1/2) to sqrt(2) with m 2^k = x, for x above 0. */
INLINE $F $log_parts($F x, $F *k) {
    const $F none = {0};
#if $avx512
    const $F m = __builtin_ia32_getmantpd512_mask(x, 0, none, -1, 4);
    const $I upper = m > none + 1.4142135623730951;
    *k = $opaque(__builtin_ia32_getexppd512_mask(x, none, -1, 4) + ($F)(upper & 0x3FF0000000000000));
    return ($F)(($I)m - (upper & 0x10000000000000));
#else
    const $I tiny = x < none + 0x1p-1022;
    const $U bits = ($U)$pick(tiny, x * 0x1p54, x), e = (bits + 0x95F619980C433) >> 52;
    *k = $opaque(($F)(e | 0x4330000000000000) - 0x1.00000000003ffp52) - ($F)(tiny & 0x404B000000000000);
    return ($F)(bits - ((e - 1023) << 52));
#endif
}
"""

_LOG = """\
INLINE $F $log($F x) {
    const $F zero = {0}, infinite = zero + INFINITY, none = zero + NAN;
    $F k;
    const $F f = $log_parts(x, &k) - 1.0, s = f / (f + 2.0), z = s * s, half = f * f * 0.5;
    $F p = z * 0.14616585424888623 + 0.15331710618210773;
    p = p * z + 0.18182889455674947;
    p = p * z + 0.22222211130259878;
    p = p * z + 0.2857142862600327;
    p = p * z + 0.39999999999899444;
    p = p * z + 0.666666666666667;
    const $F low = s * (p * z + half) + k * 0x1.a39ef35793c76p-33;
    const $F y = $opaque(f - $opaque(half - low)) + k * 0x1.62e42feep-1;
    return $pick(x > zero, $pick(x < infinite, y, x), $pick(x == zero, -infinite, none));
}
"""

_LOG2 = """\
/* log2(m 2^k) as a sum of what is returned and `low`. The logarithm is s times the series of s^2 for s = (m - 1) / (m +
   1), of which the first two coefficients, and all products with them, are sums of two. */
INLINE $F $log2($F m, $F k, $F *low) {
    const $F zero = {0}, u = m - 1.0, v = $opaque(m + 1.0), s = $opaque(u / v), z = $opaque(s * s);
    const $F of = $opaque(s * v), rest = ($opaque(u - of) - $lost(s, v, of) - s * (m - $opaque(v - 1.0))) / v;
    const $F less = $lost(s, s, z) + s * rest * 2.0;
    $F p = z * 0.16912971664122153 + 0.16888529114458137;
    p = p * z + 0.19238056603036385;
    p = p * z + 0.2219527885851067;
    p = p * z + 0.2623081914681522;
    p = p * z + 0.3205988979671547;
    p = p * z + 0.4121985831111439;
    p = p * z + 0.5770780163555853;
    p = p * z;
    const $F first = zero + 0.9617966939259756, c = $opaque(first + p);
    const $F more = $opaque(first - c) + p + 5.0577616648125907e-17;
    const $F t = $opaque(z * c), after = $lost(z, c, t) + z * more + less * c;
    const $F zeroth = zero + 2.8853900817779268, a = $opaque(zeroth + t);
    const $F b = $opaque($opaque(zeroth - a) + t) + (after + 4.0710547481862066e-17);
    const $F high = $opaque(s * a), sum = $opaque(k + high);
    *low = $opaque(high - $opaque(sum - k)) + ($lost(s, a, high) + s * b + rest * a);
    return sum;
}
"""

_EXP2 = """\
/* 2^(x + k) for x no further than 1/2 from 0 and whole k. */
INLINE $F $exp2($F x, $F k) {
    $F p = x * 4.454964371040758e-10 + 7.072593027878997e-09;
    p = p * x + 1.0178062426978495e-07;
    p = p * x + 1.3215442552522291e-06;
    p = p * x + 1.5252733829867077e-05;
    p = p * x + 0.00015403530441794136;
    p = p * x + 0.0013333558146416916;
    p = p * x + 0.009618129107606854;
    p = p * x + 0.0555041086648216;
    p = p * x + 0.24022650695910097;
    p = p * x + 0.6931471805599453;
    return $scaled(p * x + 1.0, k);
}
"""

_POW = """\
INLINE $F $pow($F x, $F y) {
    const $F zero = {0}, one = zero + 1.0, infinite = zero + INFINITY, none = zero + NAN, whole_from = zero + 0x1p52;
    const $F a = ($F)(($I)x & INT64_MAX), size = ($F)(($I)y & INT64_MAX), most = zero + 1100.0, little = zero + 4.0;
    $F k, low;
    $I bits;
    const $F m = $log_parts(a, &k);
#if $avx512
    /* k of 0 and of infinity is infinite */
#else
    k = $pick(a == zero, -infinite, $pick(a == infinite, a, k));
#endif
    const $F high = $log2(m, k, &low), by = $max(zero - 0x1p70, $min(y, zero + 0x1p70)), of = $opaque(by * high);
    const $F t = $opaque($max(-most, $min(of, most)));
    const $F more = $max(-little, $min($opaque(of - t) + $lost(by, high, of) + by * low, little));
    const $F n = $nearest($opaque(t + more), &bits);
    $F r = $exp2($opaque(t - n) + more, n);
    r = $pick((y == zero) | ((a == one) & ~(size < infinite)), one, r);
    /* a negative base has a power where the exponent is whole */
    const $I small = size < whole_from;
    const $F units = $opaque($pick(small, size + whole_from, size));
    const $I odd = ($I)units & (size < zero + 0x1p53), broken = small & ($opaque(units - whole_from) != size);
    r = ($F)(($I)r ^ (($I)x & ($I)(($U)odd << 63) & ~broken));
    return $pick(((x != x) & (y != zero)) | ((y != y) & (x != one)) | (broken & (x < zero) & (x > -infinite)), none, r);
}
"""

_FAR = """\
/* Whether a lane is too far from 0 for `less_pi`. */
INLINE int $far($F x) {
#if $fused
    return $any_beyond(x, 0x1p26);
#else
    return $any_beyond(x, 0x1p20);
#endif
}
"""

_LESS_PI = """\
/* x - n pi, for multiples n of 1/2. */
INLINE $F $less_pi($F x, $F n) {
#if $fused
    const $F zero = {0};
    x = $fma(n, zero - 0x1.921fb54442d18p+1, x);
    x = $fma(n, zero - 0x1.1a62633145c07p-53, x);
    return $fma(n, zero + 0x1.f1976b7ed8fbcp-109, x);
#else
    /* parts of pi that are so short that their products are exact, but for the last */
    x = $opaque(x - n * 0x1.921fb544p+1);
    x = $opaque(x - n * 0x1.0b4611a6p-33);
    x = $opaque(x - n * 0x1.3198a2ep-68);
    return x - n * 0x1.b839a252049c1p-103;
#endif
}
"""

_HALF_WAVE = """\
/* sin(r) for r from -pi / 2 to pi / 2, with the sign turned round where n is odd. */
INLINE $F $half_wave($F r, $I n) {
    const $F z = r * r;
    $F p = z * 2.7314368769379893e-15 - 7.643969663988074e-13;
    p = p * z + 1.6058977292642743e-10;
    p = p * z - 2.505210761669045e-08;
    p = p * z + 2.7557319219160833e-06;
    p = p * z - 0.00019841269841254966;
    p = p * z + 0.008333333333333316;
    p = p * z - 0.16666666666666666;
    return ($F)(($I)(p * z * r + r) ^ ($I)(($U)n << 63));
}
"""

_SIN = """\
INLINE $F $sin($F x) {
    if (__builtin_expect($far(x), 0)) return $each_sin(x);
    const $F a = ($F)(($I)x & INT64_MAX);
    $I bits;
    const $F n = $nearest(a * 0.3183098861837907, &bits);
    return ($F)(($I)$half_wave($less_pi(a, n), bits) ^ (($I)x & INT64_MIN));
}
"""

_COS = """\
/* sin(x + pi / 2). */
INLINE $F $cos($F x) {
    if (__builtin_expect($far(x), 0)) return $each_cos(x);
    $I bits;
    const $F n = $nearest($opaque(x * 0.3183098861837907 + 0.5), &bits);
    return $half_wave($less_pi(x, n - 0.5), bits);
}
"""

_TAN = """\
INLINE $F $tan($F x) {
    if (__builtin_expect($far(x), 0)) return $each_tan(x);
    const $F a = ($F)(($I)x & INT64_MAX);
    $I bits;
    const $F n = $nearest(a * 0.6366197723675814, &bits), r = $less_pi(a, n * 0.5), z = r * r;
    $F p = z * 1.8225362367708427e-05 - 3.3734828993061906e-05;
    p = p * z + 6.849235091137135e-05;
    p = p * z - 3.233018376880035e-06;
    p = p * z + 0.00011985660831908242;
    p = p * z + 0.00023058731207990741;
    p = p * z + 0.0005922433049752777;
    p = p * z + 0.0014554368892911913;
    p = p * z + 0.003592176159067967;
    p = p * z + 0.008863231772517861;
    p = p * z + 0.021869488711250728;
    p = p * z + 0.05396825396400942;
    p = p * z + 0.13333333333337374;
    p = p * z + 0.33333333333333326;
    const $F t = $opaque(p * z * r + r);
    const $I odd = ($I)(($U)bits << 63) < ($I){0};
    return ($F)(($I)$pick(odd, -1.0 / t, t) ^ (($I)x & INT64_MIN));
}
"""

_ARC_TAN = """\
/* atan(low / high) for low from 0 to high, which is not 0; from tan(pi / 8) on pi / 4 less than what is left to it. */
INLINE $F $arc_tan($F low, $F high) {
    const $F zero = {0}, whole = zero + 1.0, half = zero + 0.5;
    const $I steep = (low > high * 0.41421356237309503) | (low == high);
    const $F by = $pick(high > whole, half, whole), near = low * by, far = high * by;
    const $F above = $pick(low == high, zero, near - far);
    const $F q = $pick(steep, above, low) / $pick(steep, near + far, high), z = q * q;
    $F p = z * -0.01917627151752634 + 0.0392311556198723;
    p = p * z - 0.050854323376990765;
    p = p * z + 0.05858145587628202;
    p = p * z - 0.06664511064599371;
    p = p * z + 0.07692183163650894;
    p = p * z - 0.09090904576954117;
    p = p * z + 0.11111111015227572;
    p = p * z - 0.14285714284666184;
    p = p * z + 0.19999999999995519;
    p = p * z - 0.3333333333333333;
    const $F rest = p * z * q + ($F)(steep & ($I)(zero + 3.061616997868383e-17));
    return $opaque(rest + q) + ($F)(steep & ($I)(zero + 0.7853981633974483));
}
"""

_ATAN = """\
INLINE $F $atan($F x) {
    const $F zero = {0}, one = zero + 1.0, a = ($F)(($I)x & INT64_MAX);
    /* NaN is what extremes make of their last argument */
    const $F r = $arc_tan($min(one, a), $max(one, a));
    const $F rest = $opaque(1.5707963267948966 - r) + 6.123233995736766e-17;
    return ($F)(($I)$pick(a > one, rest, r) ^ (($I)x & INT64_MIN));
}
"""

_ATAN2 = """\
INLINE $F $atan2($F y, $F x) {
    const $F zero = {0}, least = zero + 0x1p-1074;
    const $F a = ($F)(($I)y & INT64_MAX), b = ($F)(($I)x & INT64_MAX);
    /* NaN is what extremes make of their last argument, if it or the first is */
    $F r = $arc_tan($min(a, b), $max(least, $max(b, a)));
    r = $pick(a > b, $opaque(1.5707963267948966 - r) + 6.123233995736766e-17, r);
    r = $pick(($I)x < ($I){0}, $opaque(3.141592653589793 - r) + 1.2246467991473532e-16, r);
    return ($F)(($I)r ^ (($I)y & INT64_MIN));
}
"""

_ARC_SIN = """\
/* asin(a) for a from 0; from 1/2 on that of sqrt((1 - a) / 2), which is half of what is left to pi / 2. */
INLINE $F $arc_sin($F a, $I steep) {
    const $F s = $pick(steep, (1.0 - a) * 0.5, a * a), q = $pick(steep, $sqrt(s), a);
    $F p = s * 0.02875990974247162 - 0.014854837699421992;
    p = p * s + 0.017402725959689853;
    p = p * s + 0.005456844463293151;
    p = p * s + 0.010322964581482783;
    p = p * s + 0.011479154971005417;
    p = p * s + 0.013971215203097548;
    p = p * s + 0.017352392575609256;
    p = p * s + 0.022372172948124706;
    p = p * s + 0.030381944138386928;
    p = p * s + 0.04464285714635722;
    p = p * s + 0.07499999999998432;
    p = p * s + 0.16666666666666669;
    return p * s * q + q;
}
"""

_ASIN = """\
INLINE $F $asin($F x) {
    const $F zero = {0}, half = zero + 0.5, a = ($F)(($I)x & INT64_MAX);
    const $I steep = a > half;
    const $F r = $arc_sin(a, steep), rest = 1.5707963267948966 - (r * 2.0 - 6.123233995736766e-17);
    return ($F)(($I)$pick(steep, rest, r) ^ (($I)x & INT64_MIN));
}
"""

_ACOS = """\
INLINE $F $acos($F x) {
    const $F zero = {0}, half = zero + 0.5, a = ($F)(($I)x & INT64_MAX), right = zero + 1.5707963267948966;
    const $I steep = a > half, sign = ($I)x & INT64_MIN, behind = sign < ($I){0};
    const $F r = $arc_sin(a, steep);
    const $F far = $pick(behind, 3.141592653589793 - (r * 2.0 - 1.2246467991473532e-16), r * 2.0);
    return $pick(steep, far, right - (($F)(($I)r ^ sign) - 6.123233995736766e-17));
}
"""

_TANH = """\
INLINE $F $tanh($F x) {
    const $F zero = {0}, middle = zero + 0.625, a = ($F)(($I)x & INT64_MAX), z = a * a;
    $F p = z * -1.7244840090000836e-05 + 7.959949339206395e-05;
    p = p * z - 0.00023077611228892593;
    p = p * z + 0.0005874372640789301;
    p = p * z - 0.0014553092917869736;
    p = p * z + 0.003592058976544451;
    p = p * z - 0.008863229830834663;
    p = p * z + 0.021869488260554012;
    p = p * z - 0.05396825396139543;
    p = p * z + 0.13333333333326658;
    p = p * z - 0.3333333333333332;
    const $F far = 1.0 - 2.0 / ($exp(a * 2.0) + 1.0);
    return ($F)(($I)$pick(a > middle, far, p * z * a + a) ^ (($I)x & INT64_MIN));
}
"""

FUNCTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "nearest": (_NEAREST, ("opaque",)),
    "lost": (_LOST, ("opaque", "fma")),
    "scaled": (_SCALED, ("nearest",)),
    "exp": (_EXP, ("min", "opaque", "nearest", "scaled")),
    "log_parts": (_LOG_PARTS, ("pick", "opaque")),
    "log": (_LOG, ("pick", "opaque", "log_parts")),
    "log2": (_LOG2, ("opaque", "lost")),
    "exp2": (_EXP2, ("scaled",)),
    "pow": (_POW, ("pick", "opaque", "min", "max", "log_parts", "log2", "lost", "nearest", "exp2")),
    "far": (_FAR, ("any_beyond",)),
    "less_pi": (_LESS_PI, ("opaque", "fma")),
    "half_wave": (_HALF_WAVE, ()),
    "sin": (_SIN, ("each_sin", "nearest", "far", "less_pi", "half_wave")),
    "cos": (_COS, ("each_cos", "opaque", "nearest", "far", "less_pi", "half_wave")),
    "tan": (_TAN, ("each_tan", "opaque", "nearest", "far", "less_pi", "pick")),
    "arc_tan": (_ARC_TAN, ("pick", "opaque")),
    "atan": (_ATAN, ("pick", "opaque", "min", "max", "arc_tan")),
    "atan2": (_ATAN2, ("pick", "opaque", "min", "max", "arc_tan")),
    "arc_sin": (_ARC_SIN, ("pick", "sqrt")),
    "asin": (_ASIN, ("pick", "arc_sin")),
    "acos": (_ACOS, ("pick", "arc_sin")),
    "tanh": (_TANH, ("pick", "exp")),
}
"""C text and callees by name, in an order in which they can be defined; what is not here is as in single precision."""

"""Functions of whole vectors that a C file may need: elementary functions, conversions, integer idioms.

The elementary functions are Cephes' single-precision polynomials (S. L. Moshier, Methods and Programs for
Mathematical Functions, 1989): within a few ulp, infinities and NaN as the C library has them. `pow` takes its
logarithm in double precision. They stand for the C library's where floats are relaxed.
"""

from __future__ import annotations

import re
from string import Template

from scheduler.emit.c_types import scalar, short, vector
from scheduler.lang.types import ScalarType

FLOAT_FUNCTIONS = {
    "sqrt": "sqrt", "exp": "exp", "log": "log", "pow": "pow", "sin": "sin", "cos": "cos", "tan": "tan",
    "asin": "asin", "acos": "acos", "atan": "atan", "atan2": "atan2", "tanh": "tanh", "floor": "floor",
    "ceil": "ceil", "round": "rint", "trunc": "trunc",
}  # fmt: skip
"""Elementary functions of the language and their names in C."""

_INSTRUCTIONS = ("sqrt", "floor", "ceil", "round", "trunc")
"""Those that machines do to whole vectors."""

_WHOLE = """\
/* Hides where a vector comes from: compilers would take its lanes from there, one by one. */
#if defined __AVX512F__
#define TILESMITH_REGISTER 64
#define TILESMITH_WHOLE(a) __asm__("" : "+v"(a))
#elif defined __SSE2__
#ifdef __AVX__
#define TILESMITH_REGISTER 32
#else
#define TILESMITH_REGISTER 16
#endif
#define TILESMITH_WHOLE(a) __asm__("" : "+x"(a))
#elif defined __aarch64__
#define TILESMITH_REGISTER 16
#define TILESMITH_WHOLE(a) __asm__("" : "+w"(a))
#endif
"""

_DOUBLES = 8
"""Lanes of a vector of doubles that every compiler handles well."""

_PICK = """\
/* Lanes of a where the mask is set, else of b. */
TILESMITH_INLINE $F $pick($I mask, $F a, $F b) {
    return ($F)((($I)a & mask) | (($I)b & ~mask));
}
"""

_TO_I32 = """\
/* Truncated; out of range the nearest value, NaN is 0. */
TILESMITH_INLINE $I $to_i32($F a) {
    const $F zero = {0}, most = zero + 0x1.fffffep30f, least = zero - 0x1p31f;
    const $I over = a > most;
    const $F upper = $pick(a < most, a, most);
    return ((__builtin_convertvector($pick(upper > least, upper, least), $I) & ~over) | (over & INT32_MAX)) & (a == a);
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

_EXP_SCALED = """\
/* e^x 2^n for x no further than log(2) / 2 from 0. */
TILESMITH_INLINE $F $exp_scaled($F x, $I n) {
    $F p = x * 1.9875691500e-4f + 1.3981999507e-3f;
    p = p * x + 8.3334519073e-3f;
    p = p * x + 4.1665795894e-2f;
    p = p * x + 1.6666665459e-1f;
    p = p * x + 5.0000001201e-1f;
    p = p * (x * x) + x + 1.0f;
    const $I half = n >> 1; /* 2^n itself may be no float: one half goes into the exponent, p being near 1 */
    return ($F)(($I)p + (half << 23)) * ($F)((n - half + 127) << 23);
}
"""

_EXP = """\
TILESMITH_INLINE $F $exp($F x) {
    const $F zero = {0}, most = zero + 89.0f, least = zero - 105.0f;
    x = $pick(x > most, most, x);
    x = $pick(x < least, least, x);
    const $F half = ($F)((($I)x & INT32_MIN) | 0x3F000000);
    const $I n = __builtin_convertvector(x * 1.44269504088896341f + half, $I);
    const $F k = __builtin_convertvector(n, $F);
    return $exp_scaled(x - k * 0.693359375f + k * 2.12194440e-4f, n);
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
    return $exp_scaled(rest * 0.693147180559945309f, n);
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

_MIX = """\
/* One step of the hash behind random(): MurmurHash3's finaliser of h ^ a. */
TILESMITH_INLINE $U $mix($U h, $U a) {
    h ^= a;
    h = (h ^ (h >> 16)) * 0x85EBCA6Bu;
    h = (h ^ (h >> 13)) * 0xC2B2AE35u;
    return h ^ (h >> 16);
}
"""

_LOOKUP = """\
/* Elements of a table of bytes; `whole` if it has one for every byte. */
TILESMITH_INLINE $U $lookup(const uint8_t *table, int whole, $U at) {
#if defined __AVX512VBMI__ && !defined __clang__
    if (whole) {
        $U part[4];
        memcpy(part, table, sizeof part);
        const $U low = __builtin_shuffle(part[0], part[1], at), high = __builtin_shuffle(part[2], part[3], at);
        const $U upper = ($U)(at > 127);
        return (high & upper) | (low & ~upper);
    }
#endif
    (void)whole;
    return ($U){$lanes};
}
"""

_RUN = """\
/* Elements of a row, at neighbours that are clamped; `whole` if it is a vector long, the last of which is at `last`. */
TILESMITH_INLINE $T $run(const $E *row, int whole, int64_t last, $J at) {
#if TILESMITH_REGISTER >= $bytes && !defined __clang__
    if (whole) {
        const int64_t start = at[0] < last ? at[0] : last;
        $T found;
        memcpy(&found, row + start, sizeof found);
        return __builtin_shuffle(found, __builtin_convertvector(at - (int32_t)start, $I));
    }
#endif
    (void)whole, (void)last;
    return ($T){$elements};
}
"""

_PAIR = """\
/* An element and its right neighbour. */
TILESMITH_INLINE uint64_t $pair(const $E *at) {
    uint64_t found;
    memcpy(&found, at, sizeof found);
    return found;
}
"""

_SAT_ADD_UNSIGNED = """\
TILESMITH_INLINE $U $sat_add($U a, $U b) {
    const $U room = ~b, fits = ($U)(a < room);
    return ((a & fits) | (room & ~fits)) + b;
}
"""

_SAT_SUB_UNSIGNED = """\
TILESMITH_INLINE $U $sat_sub($U a, $U b) {
    const $U more = ($U)(a > b);
    return ((a & more) | (b & ~more)) - b;
}
"""

_SAT_ADD_SIGNED = """\
TILESMITH_INLINE $I $sat_add($I a, $I b) {
    const $I zero = {0}, sum = ($I)(($U)a + ($U)b), over = ((a ^ sum) & (b ^ sum)) < zero;
    return (sum & ~over) | (((a < zero) ^ $most) & over);
}
"""

_SAT_SUB_SIGNED = """\
TILESMITH_INLINE $I $sat_sub($I a, $I b) {
    const $I zero = {0}, rest = ($I)(($U)a - ($U)b), over = ((a ^ b) & (a ^ rest)) < zero;
    return (rest & ~over) | (((a < zero) ^ $most) & over);
}
"""

_ORDER: dict[str, tuple[str, tuple[str, ...]]] = {
    "mix": (_MIX, ()),
    "lookup": (_LOOKUP, ()),
    "run": (_RUN, ()),
    "pair": (_PAIR, ()),
    "pick": (_PICK, ()),
    "to_i32": (_TO_I32, ("pick",)),
    "to_u32": (_TO_U32, ("pick",)),
    "exp_scaled": (_EXP_SCALED, ()),
    "exp": (_EXP, ("pick", "exp_scaled")),
    "log_parts": (_LOG_PARTS, ("pick",)),
    "log": (_LOG, ("pick", "log_parts")),
    "product_log2": (_PRODUCT, ()),
    "exp2": (_EXP2, ("exp_scaled",)),
    "pow": (_POW, ("pick", "log_parts", "product_log2", "exp2")),
}
"""Functions of vectors and what they are made of, in an order in which they can be defined."""

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
"""By bytes: where there is an instruction, and the compilers' name for it."""

EXTREMES = ("min", "max")
"""Functions of vectors of floats."""

IDIOMS = ("sat_add", "sat_sub")
"""Functions of vectors of any integers."""


def function_name(name: str, t: ScalarType, lanes: int) -> str:
    """The C name of a function of vectors of `t`."""
    return f"tilesmith_{name}_{short(t)}x{lanes}"


def is_function_name(c_name: str) -> bool:
    """Whether a function of vectors may have that name."""
    return re.fullmatch(r"tilesmith_\w+_[iuf]\d+x\d+", c_name) is not None


class Functions:
    """The functions of vectors that a file needs, each with those that it calls. With `strict` those of floats are
    the C library's, lane by lane."""

    def __init__(self, strict: bool) -> None:
        self.strict = strict
        self._asked: set[tuple[str, ScalarType, int]] = set()

    def ask(self, name: str, t: ScalarType, lanes: int) -> list[tuple[str, int, int]]:
        """Asks for a function; the vector types (kind, bits, lanes) that it and those it calls are written with."""
        if (name, t, lanes) in self._asked:
            return []
        self._asked.add((name, t, lanes))
        types = [(kind, t.bits, lanes) for kind in ("int", "uint", *(["float"] if t.is_float else []))]
        if name == "run":
            types.append(("int", 32, lanes))
        if not self._in_vectors(name, t):
            return types
        if name in ("product_log2", "exp2"):
            types += [("int", 64, lanes), ("float", 64, lanes)]
        for other in _ORDER[name][1]:
            # what is computed in double precision is computed by halves
            wide = other in ("product_log2", "exp2") and lanes > _DOUBLES
            types += self.ask(other, t, lanes // 2 if wide else lanes)
        return types

    def _in_vectors(self, name: str, t: ScalarType) -> bool:
        """Whether there is more to it than the function of every lane."""
        return name in _ORDER and not (name in FLOAT_FUNCTIONS and (self.strict or t.bits != 32))

    def text(self) -> list[str]:
        """The definitions, callees first."""
        order = [*EXTREMES, *IDIOMS, *_ORDER, *(f for f in FLOAT_FUNCTIONS if f not in _ORDER)]
        asked = sorted(self._asked, key=lambda f: (f[2], order.index(f[0]), f[1].name))
        lines = [self._definition(*f) for f in asked]
        return [_WHOLE, *lines] if any("TILESMITH_REGISTER" in line for line in lines) else lines

    def _definition(self, name: str, t: ScalarType, lanes: int) -> str:
        if name in EXTREMES:
            return _extreme(name, t, lanes)
        return _defined(name, t, lanes) if name in IDIOMS or self._in_vectors(name, t) else _by_lanes(name, t, lanes)


def _defined(name: str, t: ScalarType, lanes: int) -> str:
    if name in IDIOMS:
        signed = (_SAT_ADD_SIGNED, _SAT_SUB_SIGNED)
        text = (signed if t.kind == "int" else (_SAT_ADD_UNSIGNED, _SAT_SUB_UNSIGNED))[IDIOMS.index(name)]
    else:
        text = _ORDER[name][0]
    words = {f: function_name(f, t, lanes) for f in (*_ORDER, *IDIOMS)}
    words |= {"I": vector("int", t.bits, lanes), "U": vector("uint", t.bits, lanes), "F": vector("float", 32, lanes)}
    words |= {"D": vector("float", 64, lanes), "L": vector("int", 64, lanes)}
    words["most"] = f"INT{t.bits}_MAX"
    words["power"] = _power(t, lanes)
    words["lanes"] = ", ".join(f"table[at[{n}]]" for n in range(lanes))
    words |= {"T": vector(t.kind, t.bits, lanes), "E": scalar(t), "J": vector("int", 32, lanes)}
    words |= {"bytes": str(t.bytes * lanes), "elements": ", ".join(f"row[at[{n}]]" for n in range(lanes))}
    return Template(text).substitute(words)


def _extreme(name: str, t: ScalarType, lanes: int) -> str:
    own, sign = vector("float", t.bits, lanes), "<" if name == "min" else ">"
    words = {"F": own, "I": vector("int", t.bits, lanes), "sign": sign, "name": function_name(name, t, lanes)}
    words["op"] = name + ("ps" if t.bits == 32 else "pd")
    found = _EXTREME_INSTRUCTIONS.get(t.bytes * lanes, ())
    tests = [f"#{'el' if n else ''}if {test}\n    return {text};\n" for n, (test, text) in enumerate(found)]
    words["instructions"] = Template("".join(tests)).substitute(words) + ("#else\n" if found else "")
    words["end"] = "#endif\n" if found else ""
    return Template(_EXTREME).substitute(words)


def _by_lanes(name: str, t: ScalarType, lanes: int) -> str:
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


def _power(t: ScalarType, lanes: int) -> str:
    """2^(y log2(m 2^k)), by halves where double precision needs two vectors."""
    n = min(lanes, _DOUBLES)
    exp2, product = (function_name(f, t, n) for f in ("exp2", "product_log2"))
    parts = []
    for start in range(0, lanes, n):
        picks = ", ".join(str(start + j) for j in range(n))
        m, k, y = (v if n == lanes else f"__builtin_shufflevector({v}, {v}, {picks})" for v in ("m", "k", "y"))
        parts.append(f"{exp2}({product}({m}, {k}, {y}))")
    if len(parts) == 1:
        return parts[0]
    return f"__builtin_shufflevector({', '.join(parts)}, {', '.join(map(str, range(lanes)))})"

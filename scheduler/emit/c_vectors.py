"""Functions of whole vectors that a C file may need: elementary functions and conversions; of integers see
`c_integers`.

The elementary functions are made as Cephes' in single precision (S. L. Moshier, Methods and Programs for
Mathematical Functions, 1989): within a few ulp, infinities and NaN as the C library has them. The polynomial of `exp`
is a minimax one of the least degree that is within 2e-7. `pow` takes its logarithm in double precision. They stand for
the C library's where floats are relaxed.
"""

from __future__ import annotations

import re
from string import Template

from scheduler.emit import c_gathers, c_neighbours, c_neon, c_permutations, c_tables
from scheduler.emit.c_integers import BINARY, EXTREMES, definition, is_integer_function, types_of
from scheduler.emit.c_types import function_name, scalar, vector
from scheduler.lang.types import FLOAT64, ScalarType

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

_MIX = """\
/* One step of the hash behind random(): MurmurHash3's finaliser of h ^ a. */
TILESMITH_INLINE $U $mix($U h, $U a) {
    h ^= a;
    h = (h ^ (h >> 16)) * 0x85EBCA6Bu;
    h = (h ^ (h >> 13)) * 0xC2B2AE35u;
    return h ^ (h >> 16);
}
"""

_PERMUTED = """\
/* Lanes of a, at places that a vector says: what Clang has no word for but those of instructions. */
#if $permutes
TILESMITH_INLINE $T $permuted($T a, $I at) {
#if !defined __clang__
    return __builtin_shuffle(a, at);
#else
$permutation
#endif
}
#endif
"""

_RUN = """\
/* Elements of a row, at neighbours that are clamped; `whole` if it is a vector long, the last of which is at `last`. */
TILESMITH_INLINE $T $run(const $E *row, int whole, int64_t last, $J at) {
#if TILESMITH_REGISTER >= $bytes && ($permutes)
    if (whole) {
        const int64_t start = at[0] < last ? at[0] : last;
        $T found;
        memcpy(&found, row + start, sizeof found);
        return $permuted(found, __builtin_convertvector(at - (int32_t)start, $I));
    }
#endif
    (void)whole, (void)last;
    return ($T){$elements};
}
"""

_NEAR = """\
/* Elements of a row from `at` on, of which `first` to `last` exist: lanes beyond have any of these. */
TILESMITH_INLINE $T $near(const $E *row, int64_t at, int64_t first, int64_t last) {
    if (last - first >= $last) {
        const int64_t start = tilesmith_max(tilesmith_min(at, last - $last), first);
        $T found;
        memcpy(&found, row + start, sizeof found);
        if (at == start) return found;
#if TILESMITH_REGISTER >= $bytes && ($permutes)
        return $permuted(found, (($I){$iota} + ($i)(at - start)) & $last);
#endif
    }
    $E lanes[$last + 1];
    for (int n = 0; n <= $last; n++) lanes[n] = row[tilesmith_max(tilesmith_min(at + n, last), first)];
    $T found;
    memcpy(&found, lanes, sizeof found);
    return found;
}
"""

_PART = """\
/* Lanes `from` to `to` - 1 to a row. */
TILESMITH_INLINE void $part($E *row, $T value, int64_t from, int64_t to) {
    if (from <= 0 && to > $last) {
        memcpy(row, &value, sizeof value);
        return;
    }
    $E lanes[$last + 1];
    memcpy(lanes, &value, sizeof value);
    for (int64_t n = tilesmith_max(from, 0); n < tilesmith_min(to, $last + 1); n++) row[n] = lanes[n];
}
"""

_HELD = """\
/* Elements between the vector of memory that `at` is in and `at`, where vectors are made to fit those of memory. */
TILESMITH_INLINE int64_t $held(const $E *at) {
#if $whole && !defined __clang__
    return (int64_t)((uintptr_t)at / sizeof *at % ($last + 1));
#else
    (void)at;
    return 0;
#endif
}
"""

_INTO_LINE = """\
/* Vectors between the beginning of a line and the one that `at` is in. */
TILESMITH_INLINE int64_t $into_line(const $E *at) {
    return (int64_t)((uintptr_t)at / $bytes % ((LINE + $bytes - 1) / $bytes));
}
"""

_WHOLE_VECTOR = """\
/* A streaming store of a vector of memory. */
TILESMITH_INLINE void $whole_vector($E *at, $T value) {
#if $whole
    typedef long long whole __attribute__((vector_size($bytes)));
#ifdef __clang__
    __builtin_nontemporal_store((whole)value, (whole *)at);
#else
    $store((whole *)at, (whole)value);
#endif
#else
    memcpy(at, &value, sizeof value);
#endif
}
"""

_STREAM = """\
/* The vector of memory that `at` is in, of lanes of two neighbours (with Clang: the one at `at`): a streaming store
   where its block begins with a line. */
TILESMITH_INLINE void $stream($E *at, $T before, $T now, $I picks, int64_t apart) {
#if $whole && !defined __clang__
    $E *const to = ($E *)((uintptr_t)at & -(uintptr_t)$bytes);
    const $T aligned = __builtin_shuffle(before, now, picks);
#else
    $E *const to = at;
    const $T aligned = now;
    (void)before, (void)picks;
#endif
    if (apart == 0 && (uintptr_t)to % $bytes == 0) $whole_vector(to, aligned);
    else memcpy(to, &aligned, sizeof aligned);
}
"""

_ENDS = """\
/* The same, only elements `from` to `to` - 1 of it. */
TILESMITH_INLINE void $ends($E *at, $T before, $T now, $I picks, int64_t apart, int64_t from, int64_t to) {
    if (from <= 0 && to > $last) {
        $stream(at, before, now, picks, apart);
        return;
    }
#if $whole && !defined __clang__
    $part(($E *)((uintptr_t)at & -(uintptr_t)$bytes), __builtin_shuffle(before, now, picks), from, to);
#else
    (void)before, (void)picks;
    $part(at, now, from, to);
#endif
}
"""

_BEYOND = """\
/* Elements between the beginning of a line and `at`, where there are streaming stores. */
TILESMITH_INLINE int64_t $beyond(const $E *at) {
#ifdef __SSE2__
    return (int64_t)((uintptr_t)at % LINE / sizeof *at);
#else
    (void)at;
    return 0;
#endif
}
"""

_PAST = """\
/* A vector, the `part`-th of its block: a streaming store where the block begins with a line. Of one that is moved, to
   the left where `moved` is positive, what the others leave. */
TILESMITH_INLINE void $past($E *at, $T value, int64_t moved, int part) {
    if (moved) $part(at, value, moved, moved < 0 ? $last + 1 + moved : $last + 1);
    else if (((uintptr_t)at - (uintptr_t)part * $bytes) % LINE == 0) $whole_vector(at, value);
    else memcpy(at, &value, sizeof value);
}
"""

_STREAMING_STORES = {
    64: ("defined __AVX512F__", "movntdq512"),
    32: ("defined __AVX2__", "movntdq256"),
    16: ("defined __SSE2__", "movntdq"),
}
"""By bytes of a vector: where there is a streaming store of it, and GCC's name for that."""

_PAIR = """\
/* An element and its right neighbour. */
TILESMITH_INLINE uint64_t $pair(const $E *at) {
    uint64_t found;
    memcpy(&found, at, sizeof found);
    return found;
}
"""

_ORDER: dict[str, tuple[str, tuple[str, ...]]] = {
    "mix": (_MIX, ()),
    "permuted": (_PERMUTED, ()),
    "run": (_RUN, ("permuted",)),
    "near": (_NEAR, ("permuted",)),
    "part": (_PART, ()),
    "held": (_HELD, ()),
    "into_line": (_INTO_LINE, ()),
    "whole_vector": (_WHOLE_VECTOR, ()),
    "stream": (_STREAM, ("whole_vector",)),
    "ends": (_ENDS, ("part", "stream")),
    "beyond": (_BEYOND, ()),
    "past": (_PAST, ("part", "whole_vector")),
    "pair": (_PAIR, ()),
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


def is_function_name(c_name: str) -> bool:
    """Whether a function of vectors may have that name."""
    return re.fullmatch(r"tilesmith_\w+_[iuf]\d+x\d+(_t)?", c_name) is not None


class Functions:
    """The functions of vectors that a file needs, each with those that it calls, for registers of so many bytes of an
    architecture. With `strict` those of floats are the C library's, lane by lane."""

    def __init__(self, strict: bool, register_bytes: int, architecture: str) -> None:
        self.strict = strict
        self.architecture = architecture
        self.doubles = register_bytes // FLOAT64.bytes
        self._asked: set[tuple[str, ScalarType, int]] = set()

    def ask(self, name: str, t: ScalarType, lanes: int) -> list[tuple[str, int, int]]:
        """Asks for a function; the vector types (kind, bits, lanes) that it and those it calls are written with."""
        if (name, t, lanes) in self._asked:
            return []
        self._asked.add((name, t, lanes))
        types = [(kind, t.bits, lanes) for kind in ("int", "uint", *(["float"] if t.is_float else []))]
        if name == "run":
            types.append(("int", 32, lanes))
        if t.is_integer and is_integer_function(name):
            return [*types, *types_of(name, t, lanes)]
        if c_tables.is_lookup(name):
            return [*types, *c_tables.types_of(lanes)]
        if c_gathers.is_gather(name):
            types += c_gathers.types_of(name, t)
            for function in c_gathers.called(name):
                types += self.ask(*function)
            return types
        if c_neighbours.is_neighbours(name):
            return [*types, *c_neighbours.types_of()]
        if not self.in_vectors(name, t):
            return types
        if name in ("product_log2", "exp2"):
            types += [("int", 64, lanes), ("float", 64, lanes)]
        for other in _ORDER[name][1]:
            # what is computed in double precision is computed by halves
            wide = other in ("product_log2", "exp2") and lanes > self.doubles
            types += self.ask(other, t, lanes // 2 if wide else lanes)
        return types

    def in_vectors(self, name: str, t: ScalarType) -> bool:
        """Whether there is more to it than the function of every lane."""
        if name not in FLOAT_FUNCTIONS:
            return name in _ORDER
        return name in _ORDER and not self.strict and t.bits == 32 and (name != "pow" or self.doubles > 1)

    def text(self) -> list[str]:
        """The definitions, callees first."""
        order = [*BINARY, *_ORDER, *(f for f in FLOAT_FUNCTIONS if f not in _ORDER)]
        asked = sorted(self._asked, key=lambda f: (f[2], order.index(f[0]) if f[0] in order else -1, f[1].name, f[0]))
        lines = [self._definition(*f) for f in asked]
        heads = (("TILESMITH_REGISTER", _WHOLE), (c_neon.MACRO, c_neon.HEADER))
        return [*(head for word, head in heads if any(word in line for line in lines)), *lines]

    def _definition(self, name: str, t: ScalarType, lanes: int) -> str:
        if t.is_integer and is_integer_function(name):
            return definition(name, t, lanes, function_name(name, t, lanes), self.architecture)
        if c_tables.is_lookup(name):
            return c_tables.definition(name, lanes, function_name(name, t, lanes))
        if c_gathers.is_gather(name):
            return c_gathers.definition(name, t, function_name(name, t, lanes))
        if c_neighbours.is_neighbours(name):
            return c_neighbours.definition(name, t, lanes, function_name(name, t, lanes))
        if name in EXTREMES:
            return _extreme(name, t, lanes)
        return _defined(name, t, lanes, self.doubles) if self.in_vectors(name, t) else _by_lanes(name, t, lanes)


def _defined(name: str, t: ScalarType, lanes: int, doubles: int) -> str:
    text = _ORDER[name][0]
    words = {f: function_name(f, t, lanes) for f in (*EXTREMES, *_ORDER)}
    words |= {"I": vector("int", t.bits, lanes), "U": vector("uint", t.bits, lanes), "F": vector("float", 32, lanes)}
    words |= {"D": vector("float", 64, lanes), "L": vector("int", 64, lanes)}
    words["power"] = _power(t, lanes, doubles) if name == "pow" else ""
    words |= {"T": vector(t.kind, t.bits, lanes), "E": scalar(t), "J": vector("int", 32, lanes)}
    test, store = _STREAMING_STORES.get(t.bytes * lanes, ("0", "store"))
    words |= {"whole": test, "store": f"__builtin_ia32_{store}"}
    words |= {"last": str(lanes - 1), "iota": ", ".join(map(str, range(lanes))), "i": f"int{t.bits}_t"}
    words |= {"bytes": str(t.bytes * lanes), "elements": ", ".join(f"row[at[{n}]]" for n in range(lanes))}
    words |= c_permutations.words(t, lanes)
    words["avx512"] = "defined __AVX512F__" if t.bytes * lanes == 64 else "none"
    return re.sub(r"#if none\n.*?#else\n(.*?)#endif\n", r"\1", Template(text).substitute(words), flags=re.DOTALL)


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


def _power(t: ScalarType, lanes: int, doubles: int) -> str:
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

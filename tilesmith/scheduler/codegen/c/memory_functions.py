"""Functions of C files for vectors in memory: clamped and partial loads and stores, alignment, streaming stores."""

from __future__ import annotations

_PERMUTED = """\
/* Lanes of a, at places that a vector says: what Clang has no word for but those of instructions. */
#if $permutes
INLINE $T $permuted($T a, $I at) {
#if !defined __clang__
    return __builtin_shuffle(a, at);
#else
$permutation
#endif
}
#endif
"""

_APART = """\
/* Elements of a row at places of their own, out of the way of what is as a rule. */
SELDOM $T $apart(const $E *row, $J at) {
    return ($T){$elements};
}
"""

_RUN = """\
/* Elements of a row, at neighbours that are clamped; `whole` if it is a vector long, the last of which is at `last`. */
INLINE $T $run(const $E *row, int whole, int64_t last, $J at) {
#if TILESMITH_REGISTER >= $bytes && ($permutes)
    if (__builtin_expect(!whole, 0)) return $apart(row, at);
    const int64_t start = at[0] < last ? at[0] : last;
    $T found;
    memcpy(&found, row + start, sizeof found);
    return $permuted(found, __builtin_convertvector(at - (int32_t)start, $I));
#else
    (void)whole, (void)last;
    return ($T){$elements};
#endif
}
"""

_EDGE = """\
/* Elements of a row, at places that are neighbours from `first` on where all of these lie from `low` to `high`. Where
   they turn at an end, or begin anew, they are in the vectors at both ends, or in one. */
INLINE $T $edge(const $E *row, int64_t first, int64_t low, int64_t high, $J at) {
    $T found;
    if (first >= low && first + $last <= high) {
        memcpy(&found, row + first, sizeof found);
        return found;
    }
#if TILESMITH_REGISTER >= $bytes && ($permutes)
    if (__builtin_expect(high - low >= $last, 1)) {
        const int across = first < low ? first + $last >= low : first <= high;
        const int64_t end = first < low ? low : high - $last;
        const int64_t one = across ? end : ts_min(ts_min(at[0], at[$last]), high - $last);
        const int64_t two = across ? low + high - $last - end : one;
        const $J near = at - (int32_t)one, far = at - (int32_t)two, beyond = ($J)((near & ~$last) != 0);
        const $J lost = beyond & far & ~$last;
#if $tests
        typedef long long whole __attribute__((vector_size($place_bytes), unused));
        const int some = $any;
#else
        uint64_t words[sizeof lost / 8], some = 0;
        memcpy(words, &lost, sizeof lost);
        for (int n = 0; n < (int)(sizeof lost / 8); n++) some |= words[n];
#endif
        if (__builtin_expect(!some, 1)) {
            $T other;
            memcpy(&found, row + one, sizeof found);
            memcpy(&other, row + two, sizeof other);
            const $I there = __builtin_convertvector(beyond, $I);
            const $I a = ($I)$permuted(found, __builtin_convertvector(near, $I) & $last);
            const $I b = ($I)$permuted(other, __builtin_convertvector(far, $I) & $last);
            return ($T)((a & ~there) | (b & there));
        }
    }
#endif
    return $apart(row, at);
}
"""

_CLOSEST = """\
/* Elements of a row from `at` on, each the nearest of `first` to `last`, out of the way of what is as a rule. */
SELDOM $T $closest(const $E *row, int64_t at, int64_t first, int64_t last) {
    $E lanes[$last + 1];
    for (int n = 0; n <= $last; n++) lanes[n] = row[ts_max(ts_min(at + n, last), first)];
    $T found;
    memcpy(&found, lanes, sizeof found);
    return found;
}
"""

_NEAR = """\
/* Elements of a row from `at` on, of which `first` to `last` exist: lanes beyond have the nearest of these. */
INLINE $T $near(const $E *row, int64_t at, int64_t first, int64_t last) {
    if (__builtin_expect(last - first < $last, 0)) return $closest(row, at, first, last);
    const int64_t start = ts_max(ts_min(at, last - $last), first);
    $T found;
    memcpy(&found, row + start, sizeof found);
    if (at == start) return found;
    const int64_t beyond = ts_max(ts_min(at - start, $last + 1), -$last - 1);
#if TILESMITH_REGISTER >= $bytes && ($permutes)
    const $I places = ($I){$iota} + ($i)beyond, low = places & (places > 0);
    return $permuted(found, (low | (low > $last)) & $last);
#else
    $E around[3 * ($last + 1)];
    const $T before = row[first] - ($T){0}, after = row[last] - ($T){0};
    memcpy(around, &before, sizeof before);
    memcpy(around + $last + 1, &found, sizeof found);
    memcpy(around + 2 * ($last + 1), &after, sizeof after);
    memcpy(&found, around + $last + 1 + beyond, sizeof found);
    return found;
#endif
}
"""

_PART = """\
/* Lanes `from` to `to` - 1 to a row. */
INLINE void $part($E *row, $T value, int64_t from, int64_t to) {
    if (from <= 0 && to > $last) {
        memcpy(row, &value, sizeof value);
        return;
    }
    $E lanes[$last + 1];
    memcpy(lanes, &value, sizeof value);
    for (int64_t n = ts_max(from, 0); n < ts_min(to, $last + 1); n++) row[n] = lanes[n];
}
"""

_HELD = """\
/* Elements between the vector of memory that `at` is in and `at`, where vectors are made to fit those of memory. */
INLINE int64_t $held(const $E *at) {
#if $whole && $rotates
    return (int64_t)((uintptr_t)at / sizeof *at % ($last + 1));
#else
    (void)at;
    return 0;
#endif
}
"""

_INTO_LINE = """\
/* Vectors between the beginning of a line and the one that `at` is in. */
INLINE int64_t $into_line(const $E *at) {
    return (int64_t)((uintptr_t)at / $bytes % ((LINE + $bytes - 1) / $bytes));
}
"""

_WHOLE_VECTOR = """\
/* A streaming store of a vector of memory. */
INLINE void $whole_vector($E *at, $T value) {
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
/* The vector of memory that `at` is in, of lanes of two neighbours (where no few instructions pick them: the one at
   `at`): a streaming store where its block begins with a line. */
INLINE void $stream($E *at, $T before, $T now, $I picks, int64_t apart) {
#if $whole && $rotates
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
INLINE void $ends($E *at, $T before, $T now, $I picks, int64_t apart, int64_t from, int64_t to) {
    if (from <= 0 && to > $last) {
        $stream(at, before, now, picks, apart);
        return;
    }
#if $whole && $rotates
    $part(($E *)((uintptr_t)at & -(uintptr_t)$bytes), __builtin_shuffle(before, now, picks), from, to);
#else
    (void)before, (void)picks;
    $part(at, now, from, to);
#endif
}
"""

_BEYOND = """\
/* Elements between the beginning of a line and `at`, where there are streaming stores. */
INLINE int64_t $beyond(const $E *at) {
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
INLINE void $past($E *at, $T value, int64_t moved, int part) {
    if (moved) $part(at, value, moved, moved < 0 ? $last + 1 + moved : $last + 1);
    else if (((uintptr_t)at - (uintptr_t)part * $bytes) % LINE == 0) $whole_vector(at, value);
    else memcpy(at, &value, sizeof value);
}
"""

STREAMING_STORES = {
    64: ("defined __AVX512F__", "movntdq512"),
    32: ("defined __AVX2__", "movntdq256"),
    16: ("defined __SSE2__", "movntdq"),
}
"""Streaming stores by bytes of a vector: the condition of the preprocessor for there being one, and GCC's name for
it."""

_PAIR = """\
/* An element and its right neighbour. */
INLINE uint64_t $pair(const $E *at) {
    uint64_t found;
    memcpy(&found, at, sizeof found);
    return found;
}
"""

_TWO = """\
/* An element and its right neighbour, as halves of a number. */
INLINE int32_t $two(const $E *at) {
    int32_t found;
    memcpy(&found, at, sizeof found);
    return found;
}
"""

FUNCTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "permuted": (_PERMUTED, ()),
    "apart": (_APART, ()),
    "run": (_RUN, ("permuted", "apart")),
    "edge": (_EDGE, ("permuted", "apart")),
    "closest": (_CLOSEST, ()),
    "near": (_NEAR, ("permuted", "closest")),
    "part": (_PART, ()),
    "held": (_HELD, ()),
    "into_line": (_INTO_LINE, ()),
    "whole_vector": (_WHOLE_VECTOR, ()),
    "stream": (_STREAM, ("whole_vector",)),
    "ends": (_ENDS, ("part", "stream")),
    "beyond": (_BEYOND, ()),
    "past": (_PAST, ("part", "whole_vector")),
    "pair": (_PAIR, ()),
    "two": (_TWO, ()),
}
"""C text and callees by name, in an order in which they can be defined."""

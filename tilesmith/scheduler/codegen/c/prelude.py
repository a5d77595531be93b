"""The fixed parts of a C file: the ABI, and the helper functions that a file uses (and only those)."""

from __future__ import annotations

import re
from functools import cache

from tilesmith.scheduler.codegen.c.types import words

ABI = """\
#ifndef TILESMITH_BUFFER
#define TILESMITH_BUFFER
/* One image. Dims as declared in the pipeline; strides in elements. A buffer whose data is NULL asks for the
   region that is required of it: a bounds query. */
typedef struct {
    void   *data; /* the element at (min[0], min[1], ...) */
    int32_t dims;
    int32_t min[5], extent[5];
    int64_t stride[5];
} tilesmith_buffer;

enum {
    TILESMITH_OK = 0,
    TILESMITH_E_REGION = 1,   /* an input does not cover what is required; mins and extents now say what is */
    TILESMITH_E_ARGUMENT = 2, /* a NULL buffer, wrong dims, an extent below 1, a param out of range, coordinates
                                 beyond 32 bits */
    TILESMITH_E_MEMORY = 3    /* scratch memory could not be allocated */
};
#endif
"""

KINDS_OF_FUNCTIONS = """\
#define INLINE static inline __attribute__((unused))
#define UNLIKELY(x) __builtin_expect(!!(x), 0) /* else loops after many of them are taken to run hardly ever */
#ifdef __clang__ /* what takes little of the time: SELDOM reached, ONCE a call, or SMALL rather than fast */
#define SELDOM static __attribute__((noinline, cold, unused))
#define ONCE static __attribute__((noinline, minsize, unused))
#define SMALL static __attribute__((noinline, minsize, unused))
#define ROLLED _Pragma("clang loop unroll(disable)") /* else it loads ahead for all iterations, and spills sums */
#define ROLLED_ROWS ROLLED
#define OPAQUE(row) (row)
#else
#ifdef __OPTIMIZE__
#define SELDOM static __attribute__((noinline, cold, optimize("no-tree-slp-vectorize"), unused))
#define ONCE static __attribute__((noinline, optimize("O0"), unused))
#define SMALL static __attribute__((noinline, optimize("O2", "no-tree-vectorize"), unused))
#else /* for debuggers: GCC would optimize what has options of its own */
#define SELDOM static __attribute__((noinline, cold, unused))
#define ONCE SELDOM
#define SMALL SELDOM
#endif
#define ROLLED
#define ROLLED_ROWS _Pragma("GCC unroll 1") /* else it has the rows of all iterations at once, and spills them */
/* A row with one pointer: else it may have one for each element that is read of it. */
#define OPAQUE(row) __extension__({ __typeof__(row) row_ = (row); __asm__("" : "+r"(row_)); row_; })
#endif
"""

INCLUDES = (
    """\
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif
"""
    + KINDS_OF_FUNCTIONS
    + """\
#ifdef _OPENMP
#include <omp.h>
#define PRAGMA(text) _Pragma(#text)
#define PARALLEL(n) PRAGMA(omp parallel for schedule(dynamic, n)) /* n iterations at a time */
#define PARALLEL_ORDERED PRAGMA(omp parallel for ordered schedule(dynamic, 1)) /* ORDERED ends one by one */
#define ORDERED PRAGMA(omp ordered)
#define THREADS omp_get_max_threads()
#define THREAD omp_get_thread_num()
#else
#define PARALLEL(n)
#define PARALLEL_ORDERED
#define ORDERED
#define THREADS 1
#define THREAD 0
#endif
/* A comparison that a document makes may be decided already. */
#pragma GCC diagnostic ignored "-Wtype-limits"
#pragma GCC diagnostic ignored "-Wtautological-compare"
"""
)

_RUNTIME = """\
INLINE int64_t ts_min(int64_t a, int64_t b) { return a < b ? a : b; }
INLINE int64_t ts_max(int64_t a, int64_t b) { return a > b ? a : b; }

/* Of so many iterations those that a thread takes at a time: several shares each, to even out what else the cores do,
   and neighbours, which read the same rows. */
ONCE int64_t ts_share(int64_t iterations) { return ts_max(1, iterations / (16 * THREADS)); }

/* Where the last vector of a row starts: at `fits`, or a step before `first` where not even one fits. */
INLINE int64_t ts_last_vector(int64_t first, int64_t fits, int64_t step) { return fits < first ? first - step : fits; }

/* Quotient and remainder: the remainder is never negative, both are 0 where the divisor is. Indices beyond an edge are
   a period away at most, as a rule: they need no division. */
INLINE int64_t ts_floor_div(int64_t a, int64_t b) {
    if (b == 0 || b == -1) return b == 0 ? 0 : (int64_t)(0 - (uint64_t)a);
    const int64_t q = a / b;
    return a - q * b >= 0 ? q : b > 0 ? q - 1 : q + 1;
}

INLINE int64_t ts_remainder(int64_t a, int64_t b) {
    if (b == 0 || b == -1) return 0;
    if (!__builtin_constant_p(b) && b > 0 && a >= -b && a < b) return a < 0 ? a + b : a;
    const int64_t r = a % b;
    return r >= 0 ? r : b > 0 ? r + b : r - b;
}

/* Whether a box reaches beyond the 32 bits of coordinates. */
INLINE int ts_far(int64_t lo, int64_t hi) { return lo < INT32_MIN || hi > INT32_MAX; }

/* A product of sizes; INT64_MAX / 4 stands for everything too large to be allocated. */
ONCE int64_t ts_times(int64_t a, int64_t b) {
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) || product > INT64_MAX / 4 ? INT64_MAX / 4 : product;
}

/* Elements from row to row, and from plane to plane: whole cache lines, and never near a multiple of 4 KiB, where loads
   wait for stores to other rows whose addresses agree in the low bits, nor a multiple of CROWDED, where many rows
   share few sets of the first cache. */
ONCE int64_t ts_pitch(int64_t elements, int64_t size) {
    int64_t bytes = ts_times((ts_times(elements, size) + LINE - 1) / LINE, LINE);
    if (bytes < 2048) return bytes / size;
    bytes += ts_max(384 - (bytes + 128) % 4096, 0);
    return (bytes + (bytes % CROWDED ? 0 : 2 * LINE)) / size;
}

/* Bytes of a buffer of so many elements, whole pairs of lines: caches ask for both lines of a pair. */
ONCE int64_t ts_block(int64_t elements, int64_t size) {
    return ts_min(ts_times(elements, size) + 3 * LINE - 1, INT64_MAX / 4) / (2 * LINE) * (2 * LINE);
}

/* Where a buffer begins in a block that grows by it. */
ONCE int64_t ts_reserve(int64_t *bytes, int64_t elements, int64_t size) {
    *bytes += ts_block(elements, size);
    return *bytes - ts_block(elements, size);
}

/* Blocks begin with a pair of lines; large ones are aligned to huge pages and ask for them. */
ONCE void *ts_allocate(int64_t bytes) {
    const int64_t huge = 2 << 20, align = bytes >= huge ? huge : 2 * LINE;
    if (bytes >= INT64_MAX / 4) return NULL;
    void *memory = aligned_alloc((size_t)align, (size_t)((bytes + align - 1) / align * align));
#ifdef MADV_HUGEPAGE
    if (memory && bytes >= huge) madvise(memory, (size_t)bytes, MADV_HUGEPAGE);
#endif
    return memory;
}

/* A block of memory: of an earlier call, in use, or used by this call. */
typedef struct {
    void *memory;
    int64_t bytes;
    enum { KEPT, TAKEN, GIVEN } state;
} ts_slot;

/* Memory that the system has just cleared is dear: the blocks of a call stay for the next. A call that comes while
   another has them has its own. With -DTILESMITH_KEEP=0 none stay. */
#ifndef TILESMITH_KEEP
#define TILESMITH_KEEP 1
#endif
static ts_slot ts_kept[BLOCKS];
static char ts_busy;

/* A block that is not in use and not much too large, or a new one. */
ONCE void *ts_take(ts_slot *slots, int64_t bytes) {
    ts_slot *best = NULL, *empty = NULL;
    for (ts_slot *s = slots + BLOCKS; s-- > slots;) {
        if (!s->memory) empty = s;
        else if (s->state == TAKEN || s->bytes < bytes || s->bytes / 8 > bytes) continue;
        else if (!best || s->bytes < best->bytes) best = s;
    }
    if (!best) {
        best = empty;
        if (best) best->memory = ts_allocate(bytes);
        if (!best || !best->memory) { /* blocks of other sizes are in the way */
            for (ts_slot *s = slots + BLOCKS; s-- > slots;) {
                if (s->state == TAKEN) continue;
                free(s->memory);
                *s = (ts_slot){0};
                best = s;
            }
            best->memory = ts_allocate(bytes);
        }
        if (!best->memory) return NULL;
        best->bytes = bytes;
    }
    best->state = TAKEN;
    return best->memory;
}

ONCE void ts_give(ts_slot *slots, const void *memory) {
    for (ts_slot *s = slots; s < slots + BLOCKS; s++)
        if (s->memory == memory) s->state = GIVEN;
}

/* The blocks of a call that ends: those that it used stay, if they may. */
ONCE void ts_end(ts_slot *slots, int may_stay) {
    for (ts_slot *s = slots; s < slots + BLOCKS; s++) {
        if (!may_stay || s->state == KEPT) {
            free(s->memory);
            *s = (ts_slot){0};
        }
        s->state = KEPT;
    }
    if (slots == ts_kept) __atomic_clear(&ts_busy, __ATOMIC_RELEASE);
}

/* Whether the box lo..hi lies inside of an image of n dims. */
ONCE int ts_covers(const tilesmith_buffer *b, int n, const int64_t *lo, const int64_t *hi) {
    for (int d = 0; d < n; d++)
        if (lo[d] < b->min[d] || hi[d] > (int64_t)b->min[d] + b->extent[d] - 1) return 0;
    return 1;
}

ONCE void ts_require(tilesmith_buffer *b, int n, const int64_t *lo, const int64_t *hi) {
    for (int d = 0; d < n; d++) {
        const int64_t first = ts_max(lo[d], INT32_MIN);
        b->min[d] = (int32_t)ts_min(first, INT32_MAX);
        b->extent[d] = (int32_t)ts_max(ts_min(hi[d] - first + 1, INT32_MAX), 1);
    }
}

ONCE int ts_is_image(const tilesmith_buffer *b, int dims, int query) {
    if (!b || b->dims != dims) return 0;
    for (int d = 0; d < dims; d++)
        if (!query && (b->extent[d] < 1 || b->min[d] > INT32_MAX - (b->extent[d] - 1))) return 0;
    return 1;
}

/* Copies n elements of a row: of known size they are copied by one instruction. */
SMALL void ts_copy_row(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n, int64_t size) {
#define EACH(bytes) for (int64_t i = 0; i < n; i++) memcpy(to + i * to_step * size, from + i * from_step * size, bytes)
    if (to_step == 1 && from_step == 1) memcpy(to, from, (size_t)(n * size));
    else if (size == 1) EACH(1);
    else if (size == 2) EACH(2);
    else if (size == 4) EACH(4);
    else EACH(8);
#undef EACH
}

/* Copies an image between any strides, rows of its first dim by threads. */
SMALL void ts_copy(char *to, const int64_t *to_stride, const char *from, const int64_t *from_stride,
                    const int64_t *extent, int dims, int64_t size) {
    int64_t rows = 1;
    for (int d = 1; d < dims; d++) rows *= extent[d];
    PARALLEL(ts_share(rows))
    for (int64_t row = 0; row < rows; row++) {
        int64_t left = row, to_at = 0, from_at = 0;
        for (int d = 1; d < dims; left /= extent[d++]) {
            to_at += left % extent[d] * to_stride[d];
            from_at += left % extent[d] * from_stride[d];
        }
        ts_copy_row(to + to_at * size, to_stride[0], from + from_at * size, from_stride[0], extent[0], size);
    }
}

/* The image `b`, whose fastest dim is not contiguous, as a dense one, in the given order of its dims. */
ONCE int ts_dense(ts_slot *slots, tilesmith_buffer *b, const int *order, int64_t size, int copy) {
    int64_t from[5] = {0}, extent[5] = {0}, elements = 1;
    if (b->stride[order[0]] == 1) return 1;
    for (int d = 0; d < b->dims; d++) from[d] = b->stride[d], extent[d] = b->extent[d];
    for (int n = 0; n < b->dims; n++) {
        b->stride[order[n]] = elements;
        elements = ts_times(elements, extent[order[n]]);
    }
    char *memory = ts_take(slots, ts_block(elements, size));
    if (memory && copy) ts_copy(memory, b->stride, b->data, from, extent, b->dims, size);
    b->data = memory;
    return memory != NULL;
}

ONCE void ts_undense(const tilesmith_buffer *dense, const tilesmith_buffer *b, int64_t size) {
    int64_t extent[5] = {0};
    if (dense->data == b->data) return;
    for (int d = 0; d < b->dims; d++) extent[d] = b->extent[d];
    ts_copy(b->data, b->stride, dense->data, dense->stride, extent, b->dims, size);
}
"""


def _runtime() -> dict[str, str]:
    """The parts of the runtime by the names that they define: what follows another is of no use without it."""
    parts: dict[str, str] = {}
    for text in _RUNTIME.split("\n\n"):
        for name in re.findall(
            r"^(?:(?:INLINE|ONCE|SMALL) .*?\b(ts_\w+)\(|} (ts_\w+);|static \w+ (ts_\w+))", text, re.MULTILINE
        ):
            parts["".join(name)] = text.rstrip() + "\n"
    return parts


def _integer_helpers() -> dict[str, str]:
    helpers: dict[str, str] = {}
    for bits in (8, 16, 32, 64):
        for kind in ("i", "u"):
            t = f"{'u' if kind == 'u' else ''}int{bits}_t"
            n = f"{kind}{bits}"
            low, high = ("0", f"UINT{bits}_MAX") if kind == "u" else (f"INT{bits}_MIN", f"INT{bits}_MAX")
            sign = "" if kind == "u" else "if (b == -1) return (T)(0 - (uint64_t)a);\n    "
            fix = "return q;" if kind == "u" else "return (T)((T)(a - q * b) >= 0 ? q : b > 0 ? q - 1 : q + 1);"
            helpers[f"ts_div_{n}"] = (
                (
                    f"INLINE T ts_div_{n}(T a, T b) {{\n    if (b == 0) return 0;\n    {sign}"
                    f"const T q = (T)(a / b);\n    {fix}\n}}\n"
                )
                .replace("T ", f"{t} ")
                .replace("(T)", f"({t})")
            )
            zero = "b == 0" if kind == "u" else "b == 0 || b == -1"
            fix = "return r;" if kind == "u" else "return (T)(r >= 0 ? r : b > 0 ? r + b : r - b);"
            helpers[f"ts_mod_{n}"] = (
                (
                    f"INLINE T ts_mod_{n}(T a, T b) {{\n    if ({zero}) return 0;\n"
                    f"    const T r = (T)(a % b);\n    {fix}\n}}\n"
                )
                .replace("T ", f"{t} ")
                .replace("(T)", f"({t})")
            )
            ut = f"uint{bits}_t"
            fill = f"a < 0 ? ({t})-1 : 0" if kind == "i" else "0"
            helpers[f"ts_shift_{n}"] = (
                f"/* a << n; a negative n shifts right. */\n"
                f"INLINE {t} ts_shift_{n}({t} a, int64_t n) {{\n"
                f"    if (n >= 0) return n < {bits} ? ({t})(({ut})a << n) : 0;\n"
                f"    return n > -{bits} ? ({t})(a >> -n) : {fill};\n}}\n"
            )
            helpers[f"ts_exact_{n}"] = (
                f"/* An exact integer as the nearest {t}. */\n"
                f"INLINE {t} ts_exact_{n}(__int128 a) {{\n"
                f"    return a < {low} ? {low} : a > {high} ? {high} : ({t})a;\n}}\n"
            )
            for ft, f in (("float", "f32"), ("double", "f64")):
                above = f"{float(2 ** (bits - (kind == 'i')))!r}" + ("f" if f == "f32" else "")
                below = (f"{-float(2 ** (bits - 1))!r}" if kind == "i" else "0.0") + ("f" if f == "f32" else "")
                helpers[f"ts_{f}_to_{n}"] = (
                    f"/* Truncated; out of range the nearest value, NaN is 0. */\n"
                    f"INLINE {t} ts_{f}_to_{n}({ft} a) {{\n"
                    f"    return a >= {above} ? {high} : a >= {below} ? ({t})a : a < {below} ? {low} : 0;\n}}\n"
                )
    return helpers


def _bits_helpers() -> dict[str, str]:
    """The bits of a float as an integer, and the other way round."""
    helpers: dict[str, str] = {}
    for bits, real in ((32, "float"), (64, "double")):
        for kind in ("i", "u"):
            whole = f"{'u' if kind == 'u' else ''}int{bits}_t"
            for a, x, b, y in ((f"f{bits}", real, f"{kind}{bits}", whole), (f"{kind}{bits}", whole, f"f{bits}", real)):
                name = f"ts_bits_{a}_{b}"
                helpers[name] = f"INLINE {y} {name}({x} a) {{ return ((union {{ {x} a; {y} b; }}){{a}}).b; }}\n"
    return helpers


_OTHER_HELPERS = {
    "ts_fence": """\
/* What was written past the caches is there before anything that follows. */
INLINE void ts_fence(void) {
#ifdef __SSE2__
    __builtin_ia32_sfence();
#endif
}
""",
    "ts_ask_ends": """\
/* The lines that a row begins and ends in, if it does not have the whole of them: their rest is loaded before they are
   stored, and what goes past the caches waits for that. */
INLINE void ts_ask_ends(const void *first, const void *end) {
    if ((uintptr_t)first % LINE) __builtin_prefetch(first, 1);
    if ((uintptr_t)end % LINE) __builtin_prefetch(end, 1);
}
""",
    "ts_far_sum": """\
/* A sum of coordinates; where it overflows, `far` says so. */
INLINE int64_t ts_far_sum(int64_t a, int64_t b, int *far) {
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum)) *far = 1;
    return sum;
}
""",
    "ts_far_product": """\
/* A product of coordinates; where it overflows, `far` says so. */
INLINE int64_t ts_far_product(int64_t a, int64_t b, int *far) {
    int64_t product;
    if (__builtin_mul_overflow(a, b, &product)) *far = 1;
    return product;
}
""",
    "ts_scaled": """\
/* floor(a / 2^n + bias / 2): n below 0 multiplies. Saturates far beyond every type. */
INLINE __int128 ts_scaled(__int128 a, int64_t n, int bias) {
    if (n <= 0) {
        const __int128 top = (__int128)1 << 100;
        for (; n < 0 && a < top && a > -top && a != 0; n++) a *= 2;
        return a;
    }
    if (n > 126) return bias || a >= 0 ? 0 : -1;
    return (a + (bias ? (__int128)1 << (n - 1) : 0)) >> n;
}
""",
    "ts_mul_shift_u64": """\
/* floor(a b / 2^n) as the nearest uint64_t. */
INLINE uint64_t ts_mul_shift_u64(uint64_t a, uint64_t b, int64_t n) {
    unsigned __int128 p = (unsigned __int128)a * b;
    if (n >= 128) return 0;
    if (n > 0) p >>= n;
    for (; n < 0 && p != 0 && p <= UINT64_MAX; n++) p *= 2;
    return p > UINT64_MAX ? UINT64_MAX : (uint64_t)p;
}
""",
    "ts_lerp": """\
/* The integer nearest to (a (top - w) + b w) / top, top odd: no ties. */
INLINE __int128 ts_lerp(__int128 a, __int128 b, unsigned __int128 w, unsigned __int128 top) {
    const unsigned __int128 scaled = (unsigned __int128)(b > a ? b - a : a - b) * w;
    const __int128 step = (__int128)(scaled / top + (2 * (scaled % top) > top));
    return b > a ? a + step : a - step;
}
""",
    **{
        f"ts_opaque_f{bits}": f"""\
/* The same, as compilers cannot know: it has been rounded, whatever is computed of it. */
INLINE {t} ts_opaque_f{bits}({t} a) {{
#if defined __SSE2__
    __asm__("" : "+x"(a));
#elif defined __aarch64__
    __asm__("" : "+w"(a));
#else
    __asm__("" : "+m"(a));
#endif
    return a;
}}
"""
        for bits, t in ((32, "float"), (64, "double"))
    },
    "ts_mix": """\
/* One step of the hash behind random(): MurmurHash3's finaliser of h ^ a. */
INLINE uint32_t ts_mix(uint32_t h, uint32_t a) {
    h ^= a;
    h = (h ^ (h >> 16)) * 0x85EBCA6Bu;
    h = (h ^ (h >> 13)) * 0xC2B2AE35u;
    return h ^ (h >> 16);
}
""",
}

HELPERS: dict[str, str] = {**_runtime(), **_integer_helpers(), **_bits_helpers(), **_OTHER_HELPERS}


@cache
def _words_of(helper: str) -> set[str]:
    return words(HELPERS[helper])


def helpers_used(called: set[str]) -> str:
    """The helper functions that code of words `called` needs, each after those that it calls."""
    needed, called = list[str](), {*called}
    for name, text in reversed(HELPERS.items()):
        if name in called and text not in needed:
            needed.append(text)
            called.update(_words_of(name))
    return "\n".join(reversed(needed))


def entry_name(pipeline: str) -> str:
    """The exported function of a pipeline of that name: never the name of the type of images."""
    return f"tilesmith_{pipeline}_" if pipeline == "buffer" else f"tilesmith_{pipeline}"

"""The fixed parts of a C file: the ABI, and the helper functions that a file uses (and only those)."""

from __future__ import annotations

import re

from scheduler.codegen.c.vector_functions import is_function_name

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

INCLUDES = """\
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif
#ifdef _OPENMP
#include <omp.h>
#define TILESMITH_PRAGMA(text) _Pragma(#text)
#define TILESMITH_PARALLEL(n) TILESMITH_PRAGMA(omp parallel for schedule(dynamic, n)) /* n iterations at a time */
#define TILESMITH_THREADS omp_get_max_threads()
#define TILESMITH_THREAD omp_get_thread_num()
#else
#define TILESMITH_PARALLEL(n)
#define TILESMITH_THREADS 1
#define TILESMITH_THREAD 0
#endif
#define TILESMITH_INLINE static inline __attribute__((unused))
/* A comparison that a document makes may be decided already. */
#pragma GCC diagnostic ignored "-Wtype-limits"
#pragma GCC diagnostic ignored "-Wtautological-compare"
"""

INDEX_HELPERS = """\
TILESMITH_INLINE int64_t tilesmith_min(int64_t a, int64_t b) { return a < b ? a : b; }
TILESMITH_INLINE int64_t tilesmith_max(int64_t a, int64_t b) { return a > b ? a : b; }

/* Of so many iterations those that a thread takes at a time: several shares each, to even out what else the cores do,
   and neighbours, which read the same rows. */
TILESMITH_INLINE int64_t tilesmith_share(int64_t iterations) {
    return tilesmith_max(1, iterations / (16 * TILESMITH_THREADS));
}

/* Where the last vector of a row starts: at `fits`, or a step before `first` where not even one fits. */
TILESMITH_INLINE int64_t tilesmith_last_vector(int64_t first, int64_t fits, int64_t step) {
    return fits < first ? first - step : fits;
}

/* Quotient and remainder: the remainder is never negative, both are 0 where the divisor is. Indices beyond an edge are
   a period away at most, as a rule: they need no division. */
TILESMITH_INLINE int64_t tilesmith_floor_div(int64_t a, int64_t b) {
    if (b == 0 || b == -1) return b == 0 ? 0 : (int64_t)(0 - (uint64_t)a);
    const int64_t q = a / b;
    return a - q * b >= 0 ? q : b > 0 ? q - 1 : q + 1;
}
TILESMITH_INLINE int64_t tilesmith_remainder(int64_t a, int64_t b) {
    if (b == 0 || b == -1) return 0;
    if (!__builtin_constant_p(b) && b > 0 && a >= -b && a < b) return a < 0 ? a + b : a;
    const int64_t r = a % b;
    return r >= 0 ? r : b > 0 ? r + b : r - b;
}

/* A product of sizes; INT64_MAX / 4 stands for everything too large to be allocated. */
TILESMITH_INLINE int64_t tilesmith_times(int64_t a, int64_t b) {
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) || product > INT64_MAX / 4 ? INT64_MAX / 4 : product;
}

/* Elements from row to row: whole cache lines, and never near a multiple of 4 KiB, where all rows would share a few
   sets of the cache, and loads wait for stores to other rows whose addresses agree in the low bits. */
TILESMITH_INLINE int64_t tilesmith_pitch(int64_t elements, int64_t size) {
    const int64_t bytes = tilesmith_times((tilesmith_times(elements, size) + LINE - 1) / LINE, LINE);
    const int64_t near = (bytes + 128) % 4096;
    return (bytes + (bytes >= 2048 && near < 384 ? 384 - near : 0)) / size;
}

/* Bytes of a buffer of so many elements, whole pairs of lines: caches ask for both lines of a pair. */
TILESMITH_INLINE int64_t tilesmith_block(int64_t elements, int64_t size) {
    return tilesmith_min(tilesmith_times(elements, size) + 3 * LINE - 1, INT64_MAX / 4) / (2 * LINE) * (2 * LINE);
}

/* Blocks begin with a pair of lines; large ones are aligned to huge pages and ask for them. */
TILESMITH_INLINE void *tilesmith_allocate(int64_t bytes) {
    const int64_t huge = 2 << 20, align = bytes >= huge ? huge : 2 * LINE;
    if (bytes >= INT64_MAX / 4) return NULL;
    void *memory = aligned_alloc((size_t)align, (size_t)((bytes + align - 1) / align * align));
#ifdef MADV_HUGEPAGE
    if (memory && bytes >= huge) madvise(memory, (size_t)bytes, MADV_HUGEPAGE);
#endif
    return memory;
}
"""

MEMORY_HELPERS = """\
/* A block of memory: 0 is one of an earlier call, 1 one in use, 2 one that this call has used. */
typedef struct {
    void *memory;
    int64_t bytes;
    int state;
} tilesmith_slot;

/* Memory that the system has just cleared is dear: the blocks of a call stay for the next. A call that comes while
   another has them has its own. With -DTILESMITH_KEEP=0 none stay. */
#ifndef TILESMITH_KEEP
#define TILESMITH_KEEP 1
#endif
static tilesmith_slot tilesmith_kept[TILESMITH_BLOCKS];
static char tilesmith_busy;

/* Gives back what nobody uses. */
TILESMITH_INLINE void tilesmith_drop(tilesmith_slot *slots) {
    for (int n = 0; n < TILESMITH_BLOCKS; n++) {
        if (slots[n].state == 1) continue;
        free(slots[n].memory);
        slots[n] = (tilesmith_slot){0};
    }
}

/* A block that is not in use and not much too large, or a new one. */
TILESMITH_INLINE void *tilesmith_take(tilesmith_slot *slots, int64_t bytes) {
    int best = -1, empty = -1;
    for (int n = TILESMITH_BLOCKS - 1; n >= 0; n--) {
        const tilesmith_slot *const s = &slots[n];
        if (!s->memory) empty = n;
        else if (s->state == 1 || s->bytes < bytes || s->bytes / 8 > bytes) continue;
        else if (best < 0 || s->bytes < slots[best].bytes) best = n;
    }
    if (best < 0 && empty >= 0) {
        slots[empty].memory = tilesmith_allocate(bytes);
        if (slots[empty].memory) best = empty;
    }
    if (best < 0) { /* blocks of other sizes are in the way */
        tilesmith_drop(slots);
        for (best = 0; slots[best].memory; best++) {}
        slots[best].memory = tilesmith_allocate(bytes);
        if (!slots[best].memory) return NULL;
    }
    if (slots[best].bytes < bytes) slots[best].bytes = bytes;
    slots[best].state = 1;
    return slots[best].memory;
}

TILESMITH_INLINE void tilesmith_give(tilesmith_slot *slots, const void *memory) {
    for (int n = 0; n < TILESMITH_BLOCKS; n++)
        if (slots[n].memory == memory) slots[n].state = 2;
}

/* The blocks of a call that ends: those that it used stay, if they may. */
TILESMITH_INLINE void tilesmith_end(tilesmith_slot *slots, int may_stay) {
    for (int n = 0; n < TILESMITH_BLOCKS; n++) {
        slots[n].bytes = may_stay && slots[n].state ? slots[n].bytes : 0;
        slots[n].state = 0;
        if (slots[n].bytes) continue;
        free(slots[n].memory);
        slots[n].memory = NULL;
    }
    if (slots == tilesmith_kept) __atomic_clear(&tilesmith_busy, __ATOMIC_RELEASE);
}
"""

BUFFER_HELPERS = """\
/* Whether box lo..hi lies inside the buffer; dims are counted by n. */
TILESMITH_INLINE int tilesmith_covers(const tilesmith_buffer *b, int n, const int64_t *lo, const int64_t *hi) {
    for (int d = 0; d < n; d++)
        if (lo[d] < b->min[d] || hi[d] > (int64_t)b->min[d] + b->extent[d] - 1) return 0;
    return 1;
}

TILESMITH_INLINE void tilesmith_require(tilesmith_buffer *b, int n, const int64_t *lo, const int64_t *hi) {
    for (int d = 0; d < n; d++) {
        const int64_t first = tilesmith_max(lo[d], INT32_MIN);
        b->min[d] = (int32_t)tilesmith_min(first, INT32_MAX);
        b->extent[d] = (int32_t)tilesmith_max(tilesmith_min(hi[d] - first + 1, INT32_MAX), 1);
    }
}

TILESMITH_INLINE int tilesmith_is_image(const tilesmith_buffer *b, int dims, int query) {
    if (!b || b->dims != dims) return 0;
    for (int d = 0; d < dims; d++)
        if (!query && (b->extent[d] < 1 || b->min[d] > INT32_MAX - (b->extent[d] - 1))) return 0;
    return 1;
}

/* Copies n elements of a row. */
TILESMITH_INLINE void tilesmith_copy_row(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n,
                                         size_t size) {
    if (to_step == 1 && from_step == 1) {
        memcpy(to, from, (size_t)n * size);
        return;
    }
    to_step *= (int64_t)size, from_step *= (int64_t)size;
    switch (size) { /* a copy of known size is one instruction */
    case 1: for (int64_t i = 0; i < n; i++) memcpy(to + i * to_step, from + i * from_step, 1); break;
    case 2: for (int64_t i = 0; i < n; i++) memcpy(to + i * to_step, from + i * from_step, 2); break;
    case 4: for (int64_t i = 0; i < n; i++) memcpy(to + i * to_step, from + i * from_step, 4); break;
    default: for (int64_t i = 0; i < n; i++) memcpy(to + i * to_step, from + i * from_step, 8); break;
    }
}

/* Copies an image between any strides, rows of its first dim by threads. */
TILESMITH_INLINE void tilesmith_copy(char *to, const int64_t *to_stride, const char *from, const int64_t *from_stride,
                                     const int64_t *extent, int dims, size_t size) {
    int64_t rows = 1;
    for (int d = 1; d < dims; d++) rows *= extent[d];
    TILESMITH_PARALLEL(tilesmith_share(rows))
    for (int64_t row = 0; row < rows; row++) {
        int64_t left = row, to_at = 0, from_at = 0;
        for (int d = 1; d < dims; left /= extent[d++]) {
            to_at += left % extent[d] * to_stride[d];
            from_at += left % extent[d] * from_stride[d];
        }
        tilesmith_copy_row(to + to_at * (int64_t)size, to_stride[0], from + from_at * (int64_t)size, from_stride[0],
                           extent[0], size);
    }
}
"""

DENSE_HELPERS = """\
/* A dense copy of an image in the given order of its dims, which the image then describes; NULL without memory. */
TILESMITH_INLINE void *tilesmith_dense(tilesmith_slot *slots, tilesmith_buffer *b, const int *order, size_t size,
                                       int copy) {
    int64_t from[5] = {0}, extent[5] = {0}, elements = 1;
    for (int d = 0; d < b->dims; d++) from[d] = b->stride[d], extent[d] = b->extent[d];
    for (int n = 0; n < b->dims; n++) {
        b->stride[order[n]] = elements;
        elements = tilesmith_times(elements, extent[order[n]]);
    }
    char *memory = tilesmith_take(slots, tilesmith_block(elements, (int64_t)size));
    if (memory && copy) tilesmith_copy(memory, b->stride, b->data, from, extent, b->dims, size);
    b->data = memory;
    return memory;
}

TILESMITH_INLINE void tilesmith_undense(const tilesmith_buffer *dense, const tilesmith_buffer *b, size_t size) {
    int64_t extent[5] = {0};
    for (int d = 0; d < b->dims; d++) extent[d] = b->extent[d];
    tilesmith_copy(b->data, b->stride, dense->data, dense->stride, extent, b->dims, size);
}
"""


def _integer_helpers() -> dict[str, str]:
    helpers: dict[str, str] = {}
    for bits in (8, 16, 32, 64):
        for kind in ("i", "u"):
            t = f"{'u' if kind == 'u' else ''}int{bits}_t"
            n = f"{kind}{bits}"
            low, high = ("0", f"UINT{bits}_MAX") if kind == "u" else (f"INT{bits}_MIN", f"INT{bits}_MAX")
            sign = "" if kind == "u" else "if (b == -1) return (T)(0 - (uint64_t)a);\n    "
            fix = "return q;" if kind == "u" else "return (T)((T)(a - q * b) >= 0 ? q : b > 0 ? q - 1 : q + 1);"
            helpers[f"tilesmith_div_{n}"] = (
                (
                    f"TILESMITH_INLINE T tilesmith_div_{n}(T a, T b) {{\n    if (b == 0) return 0;\n    {sign}"
                    f"const T q = (T)(a / b);\n    {fix}\n}}\n"
                )
                .replace("T ", f"{t} ")
                .replace("(T)", f"({t})")
            )
            zero = "b == 0" if kind == "u" else "b == 0 || b == -1"
            fix = "return r;" if kind == "u" else "return (T)(r >= 0 ? r : b > 0 ? r + b : r - b);"
            helpers[f"tilesmith_mod_{n}"] = (
                (
                    f"TILESMITH_INLINE T tilesmith_mod_{n}(T a, T b) {{\n    if ({zero}) return 0;\n"
                    f"    const T r = (T)(a % b);\n    {fix}\n}}\n"
                )
                .replace("T ", f"{t} ")
                .replace("(T)", f"({t})")
            )
            ut = f"uint{bits}_t"
            fill = f"a < 0 ? ({t})-1 : 0" if kind == "i" else "0"
            helpers[f"tilesmith_shift_{n}"] = (
                f"/* a << n; a negative n shifts right. */\n"
                f"TILESMITH_INLINE {t} tilesmith_shift_{n}({t} a, int64_t n) {{\n"
                f"    if (n >= 0) return n < {bits} ? ({t})(({ut})a << n) : 0;\n"
                f"    return n > -{bits} ? ({t})(a >> -n) : {fill};\n}}\n"
            )
            helpers[f"tilesmith_exact_{n}"] = (
                f"/* An exact integer as the nearest {t}. */\n"
                f"TILESMITH_INLINE {t} tilesmith_exact_{n}(__int128 a) {{\n"
                f"    return a < {low} ? {low} : a > {high} ? {high} : ({t})a;\n}}\n"
            )
            for ft, f in (("float", "f32"), ("double", "f64")):
                above = f"{float(2 ** (bits - (kind == 'i')))!r}" + ("f" if f == "f32" else "")
                below = (f"{-float(2 ** (bits - 1))!r}" if kind == "i" else "0.0") + ("f" if f == "f32" else "")
                helpers[f"tilesmith_{f}_to_{n}"] = (
                    f"/* Truncated; out of range the nearest value, NaN is 0. */\n"
                    f"TILESMITH_INLINE {t} tilesmith_{f}_to_{n}({ft} a) {{\n"
                    f"    return a >= {above} ? {high} : a >= {below} ? ({t})a : a < {below} ? {low} : 0;\n}}\n"
                )
    return helpers


_OTHER_HELPERS = {
    "tilesmith_fence": """\
/* What was written past the caches is there before anything that follows. */
TILESMITH_INLINE void tilesmith_fence(void) {
#ifdef __SSE2__
    __builtin_ia32_sfence();
#endif
}
""",
    "tilesmith_ask_ends": """\
/* The lines that a row begins and ends in, if it does not have the whole of them: their rest is loaded before they are
   stored, and what goes past the caches waits for that. */
TILESMITH_INLINE void tilesmith_ask_ends(const void *first, const void *end) {
    if ((uintptr_t)first % LINE) __builtin_prefetch(first, 1);
    if ((uintptr_t)end % LINE) __builtin_prefetch(end, 1);
}
""",
    "tilesmith_far_sum": """\
/* A sum of coordinates; where it overflows, `far` says so. */
TILESMITH_INLINE int64_t tilesmith_far_sum(int64_t a, int64_t b, int *far) {
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum)) *far = 1;
    return sum;
}
""",
    "tilesmith_far_product": """\
/* A product of coordinates; where it overflows, `far` says so. */
TILESMITH_INLINE int64_t tilesmith_far_product(int64_t a, int64_t b, int *far) {
    int64_t product;
    if (__builtin_mul_overflow(a, b, &product)) *far = 1;
    return product;
}
""",
    "tilesmith_scaled": """\
/* floor(a / 2^n + bias / 2): n below 0 multiplies. Saturates far beyond every type. */
TILESMITH_INLINE __int128 tilesmith_scaled(__int128 a, int64_t n, int bias) {
    if (n <= 0) {
        const __int128 top = (__int128)1 << 100;
        for (; n < 0 && a < top && a > -top && a != 0; n++) a *= 2;
        return a;
    }
    if (n > 126) return bias || a >= 0 ? 0 : -1;
    return (a + (bias ? (__int128)1 << (n - 1) : 0)) >> n;
}
""",
    "tilesmith_mul_shift_u64": """\
/* floor(a b / 2^n) as the nearest uint64_t. */
TILESMITH_INLINE uint64_t tilesmith_mul_shift_u64(uint64_t a, uint64_t b, int64_t n) {
    unsigned __int128 p = (unsigned __int128)a * b;
    if (n >= 128) return 0;
    if (n > 0) p >>= n;
    for (; n < 0 && p != 0 && p <= UINT64_MAX; n++) p *= 2;
    return p > UINT64_MAX ? UINT64_MAX : (uint64_t)p;
}
""",
    "tilesmith_lerp": """\
/* The integer nearest to (a (top - w) + b w) / top, top odd: no ties. */
TILESMITH_INLINE __int128 tilesmith_lerp(__int128 a, __int128 b, unsigned __int128 w, unsigned __int128 top) {
    const unsigned __int128 scaled = (unsigned __int128)(b > a ? b - a : a - b) * w;
    const __int128 step = (__int128)(scaled / top + (2 * (scaled % top) > top));
    return b > a ? a + step : a - step;
}
""",
    "tilesmith_mix": """\
/* One step of the hash behind random(): MurmurHash3's finaliser of h ^ a. */
TILESMITH_INLINE uint32_t tilesmith_mix(uint32_t h, uint32_t a) {
    h ^= a;
    h = (h ^ (h >> 16)) * 0x85EBCA6Bu;
    h = (h ^ (h >> 13)) * 0xC2B2AE35u;
    return h ^ (h >> 16);
}
""",
}

HELPERS: dict[str, str] = {**_integer_helpers(), **_OTHER_HELPERS}


def helpers_used(code: str) -> str:
    """The helper functions that `code` mentions, in a fixed order."""
    used = set(re.findall(r"\btilesmith_[a-z0-9_]+", code))
    return "\n".join(text for name, text in HELPERS.items() if name in used)


_OURS = frozenset(
    re.findall(r"\btilesmith_[a-z0-9_]+", "".join((ABI, INDEX_HELPERS, MEMORY_HELPERS, BUFFER_HELPERS, DENSE_HELPERS)))
) | {*HELPERS}


def entry_name(pipeline: str) -> str:
    """The exported function of a pipeline of that name: never one of the names that every file has."""
    name = f"tilesmith_{pipeline}"
    return f"{name}_" if name in _OURS or is_function_name(name) else name

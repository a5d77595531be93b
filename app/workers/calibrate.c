/* Measures the machine it runs on. Written by hand; the lines before it (see calibrate.py) define
 *
 *   VECTOR_BYTES           bytes of a vector register, at least 16
 *   NEIGHBOURS(a, b)       the lanes of a and b (f32), shifted by one
 *
 *   calibrate GROUP THREADS ROUNDS SAMPLE_US LINE_BYTES WORKING_SET_BYTES...
 *
 * GROUP is core, caches, memory or system. A line of JSON on standard output for every figure and round:
 * {"name": ..., "ns": ..., "clock_ghz": ...}. `ns` is per operation on a vector, per byte, per load, or per event, the
 * least of as many tries as SAMPLE_US microseconds allow, one at least; `clock_ghz` was measured just before. Working
 * sets are of one thread: of every level of cache, innermost first, then of memory.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#ifdef _OPENMP
#include <omp.h>
#endif
#if defined __SSE2__
#include <immintrin.h>
#endif

typedef int8_t i8v __attribute__((vector_size(VECTOR_BYTES)));
typedef int16_t i16v __attribute__((vector_size(VECTOR_BYTES)));
typedef int32_t i32v __attribute__((vector_size(VECTOR_BYTES)));
typedef int64_t i64v __attribute__((vector_size(VECTOR_BYTES)));
typedef float f32v __attribute__((vector_size(VECTOR_BYTES)));
typedef double f64v __attribute__((vector_size(VECTOR_BYTES)));
typedef int8_t i8half __attribute__((vector_size(VECTOR_BYTES / 2)));
typedef int16_t i16half __attribute__((vector_size(VECTOR_BYTES / 2)));
typedef int32_t i32half __attribute__((vector_size(VECTOR_BYTES / 2)));
typedef float f32half __attribute__((vector_size(VECTOR_BYTES / 2)));
typedef f32v f32any __attribute__((aligned(4), may_alias));
typedef f32v f32own __attribute__((may_alias));

/* HOLD(x): x is in a register here, and nothing is known of its value. An instruction that is measured stands between
   two of these, so that the compiler can neither leave it out nor join it with its neighbours. */
#if defined __AVX512F__
#define WIDE "+v"
#elif defined __x86_64__ || defined __i386__
#define WIDE "+x"
#elif defined __aarch64__ || defined __ARM_NEON
#define WIDE "+w"
#else
#define WIDE "+m"
#endif
#define HOLD(x) __asm__ volatile("" : WIDE(x))
#define HOLD_WORD(x) __asm__ volatile("" : "+r"(x))
#define MEMORY() __asm__ volatile("" ::: "memory")

static int threads = 1, rounds = 1;
static double sample_ns = 1e6;
static size_t line = 64, set_bytes[8];
static int sets;
static double clock_ghz = 1.0;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void say(const char *name, double ns)
{
    printf("{\"name\": \"%s\", \"ns\": %.9g, \"clock_ghz\": %.6g}\n", name, ns, clock_ghz);
    fflush(stdout);
}

/* The least time of `step(n)`, in ns per unit of its n * units; n grows until a try takes a tenth of a sample. */
#define LEAST(result, units, n, ...)                                                                                   \
    do {                                                                                                               \
        double least_ = 1e300, start_ = now(), took_ = 0;                                                              \
        for (n = 16; n < (1L << 40); n *= 2) {                                                                         \
            double at_ = now();                                                                                        \
            __VA_ARGS__;                                                                                                \
            took_ = now() - at_;                                                                                       \
            if (took_ > sample_ns / 20) break;                                                                         \
        }                                                                                                              \
        do {                                                                                                           \
            double at_ = now();                                                                                        \
            __VA_ARGS__;                                                                                                \
            took_ = now() - at_;                                                                                       \
            if (took_ < least_) least_ = took_;                                                                        \
        } while (now() - start_ < sample_ns);                                                                          \
        result = least_ / ((double)(n) * (double)(units));                                                             \
    } while (0)

/* The clock: a chain of additions takes a cycle each. */
static void measure_clock(void)
{
    double least;
    long n;
    uint64_t x = 1, one = 1;
    HOLD_WORD(one);
#define ADD x += one; HOLD_WORD(x);
#define ADD8 ADD ADD ADD ADD ADD ADD ADD ADD
    LEAST(least, 32, n, for (long i = 0; i < n; i++) { ADD8 ADD8 ADD8 ADD8 });
    clock_ghz = 1.0 / least;
}

/* In the core --------------------------------------------------------- */

/* `expression` of a, b and c (which are opaque) into one result, eight times a turn; the result is per time. */
#define OPERATION(name, steps, V, R, expression)                                                                       \
    do {                                                                                                               \
        V a, b, c;                                                                                                     \
        R r;                                                                                                           \
        double least;                                                                                                  \
        long n;                                                                                                        \
        memset(&a, 0, sizeof a), memset(&b, 0, sizeof b), memset(&c, 0, sizeof c);                                     \
        a += 3, b += 2, c += 1;                                                                                        \
        HOLD(a); HOLD(b); HOLD(c);                                                                                     \
        LEAST(least, 8, n, for (long i = 0; i < n; i++) {                                                              \
            TURN(R, expression) TURN(R, expression) TURN(R, expression) TURN(R, expression)                            \
            TURN(R, expression) TURN(R, expression) TURN(R, expression) TURN(R, expression)                            \
        });                                                                                                            \
        (void)r;                                                                                                       \
        say(name, least / (steps));                                                                                    \
    } while (0)
#define TURN(R, expression) HOLD(a); r = (expression); HOLD(r);

/* A comparison and a choice by it. */
#define CHOICE(V, M) (V)(((M)(a < b) & (M)c) | (~(M)(a < b) & (M)a))

#define ARITHMETIC(T, M, name)                                                                                         \
    do {                                                                                                               \
        OPERATION(name ".add", 1, T, T, a + b);                                                                        \
        OPERATION(name ".multiply", 1, T, T, a * b);                                                                   \
        OPERATION(name ".select", 2, T, T, CHOICE(T, M));                                                              \
    } while (0)

#define DIVISION(T, name) OPERATION(name ".divide_by_constant", 1, T, T, a / 7)

/* Scalars, by a mix: integer sum and product, comparison with choice, sum and product of floats. */
static double scalar_ns(void)
{
    double words, floats;
    long n;
    uint32_t a = 3, b = 5, r;
    float x = 3, y = 5, z;
    HOLD_WORD(b);
#define WORDS HOLD_WORD(a); r = a + b; HOLD_WORD(r); r = a * b; HOLD_WORD(r); r = a < b ? a : b; HOLD_WORD(r);
    LEAST(words, 12, n, for (long i = 0; i < n; i++) { WORDS WORDS WORDS WORDS });
#if defined __x86_64__ || defined __aarch64__
    HOLD(y);
#define FLOATS HOLD(x); z = x + y; HOLD(z); z = x * y; HOLD(z);
    LEAST(floats, 8, n, for (long i = 0; i < n; i++) { FLOATS FLOATS FLOATS FLOATS });
    (void)z;
#else
    (void)x, (void)y, (void)z;
    floats = words;
#endif
    (void)r;
    return (3 * words + 2 * floats) / 5;
}

/* Loads and stores of a buffer that the first level has, `off` bytes beside its lines. */
static double load_ns(const char *p, size_t bytes, int off)
{
    double least;
    long n;
    LEAST(least, bytes / VECTOR_BYTES, n, for (long i = 0; i < n; i++) {
        for (const char *q = p + off, *end = q + bytes; q < end; q += 4 * VECTOR_BYTES) {
            f32v v0 = *(const f32any *)q, v1 = *(const f32any *)(q + VECTOR_BYTES);
            f32v v2 = *(const f32any *)(q + 2 * VECTOR_BYTES), v3 = *(const f32any *)(q + 3 * VECTOR_BYTES);
            HOLD(v0); HOLD(v1); HOLD(v2); HOLD(v3);
        }
    });
    return least;
}

static double store_ns(char *p, size_t bytes, int off)
{
    double least;
    long n;
    f32v v = {0};
    HOLD(v);
    LEAST(least, bytes / VECTOR_BYTES, n, for (long i = 0; i < n; i++) {
        for (char *q = p + off, *end = q + bytes; q < end; q += 4 * VECTOR_BYTES) {
            *(f32any *)q = v, *(f32any *)(q + VECTOR_BYTES) = v;
            *(f32any *)(q + 2 * VECTOR_BYTES) = v, *(f32any *)(q + 3 * VECTOR_BYTES) = v;
            MEMORY();
        }
    });
    return least;
}

static void core(char *memory)
{
    ARITHMETIC(i8v, i8v, "i8");
    ARITHMETIC(i16v, i16v, "i16");
    ARITHMETIC(i32v, i32v, "i32");
    ARITHMETIC(i64v, i64v, "i64");
    ARITHMETIC(f32v, i32v, "f32");
    ARITHMETIC(f64v, i64v, "f64");
    DIVISION(i8v, "i8");
    DIVISION(i16v, "i16");
    DIVISION(i32v, "i32");
    DIVISION(i64v, "i64");
    OPERATION("f32.multiply_add", 1, f32v, f32v, a * b + c);
    OPERATION("f64.multiply_add", 1, f64v, f64v, a * b + c);
    OPERATION("f32.divide", 1, f32v, f32v, a / b);
    OPERATION("f64.divide", 1, f64v, f64v, a / b);
    OPERATION("f32.divide_by_constant", 1, f32v, f32v, a * (1.0f / 7));
    OPERATION("f64.divide_by_constant", 1, f64v, f64v, a * (1.0 / 7));
    /* from half as wide, and from twice as wide, which gives half a vector */
    OPERATION("i16.widen", 1, i8half, i16v, __builtin_convertvector(a, i16v));
    OPERATION("i32.widen", 1, i16half, i32v, __builtin_convertvector(a, i32v));
    OPERATION("i64.widen", 1, i32half, i64v, __builtin_convertvector(a, i64v));
    OPERATION("f64.widen", 1, f32half, f64v, __builtin_convertvector(a, f64v));
    OPERATION("i8.narrow", 0.5, i16v, i8half, __builtin_convertvector(a, i8half));
    OPERATION("i16.narrow", 0.5, i32v, i16half, __builtin_convertvector(a, i16half));
    OPERATION("i32.narrow", 0.5, i64v, i32half, __builtin_convertvector(a, i32half));
    OPERATION("f32.narrow", 0.5, f64v, f32half, __builtin_convertvector(a, f32half));
    OPERATION("f32.exchange", 1, i32v, f32v, __builtin_convertvector(a, f32v));
    OPERATION("i32.exchange", 1, f32v, i32v, __builtin_convertvector(a, i32v));
    OPERATION("shuffle", 1, f32v, f32v, NEIGHBOURS(a, b));
    say("scalar", scalar_ns());

    size_t bytes = set_bytes[0] / (4 * VECTOR_BYTES) * (4 * VECTOR_BYTES);
    memset(memory, 0, bytes + 2 * VECTOR_BYTES);
    say("load", load_ns(memory, bytes, 0));
    say("unaligned_load", load_ns(memory, bytes, 4));
    say("store", store_ns(memory, bytes, 0));
    say("unaligned_store", store_ns(memory, bytes, 4));
}

/* Caches and memory --------------------------------------------------- */

/* One pass of loads over a piece, a line at least each; the piece is a multiple of 8 vectors. */
static void pass_load(const char *p, size_t bytes)
{
    for (const char *end = p + bytes; p < end; p += 8 * VECTOR_BYTES) {
        const f32own *q = (const f32own *)p;
        f32v v0 = q[0], v1 = q[1], v2 = q[2], v3 = q[3], v4 = q[4], v5 = q[5], v6 = q[6], v7 = q[7];
        HOLD(v0); HOLD(v1); HOLD(v2); HOLD(v3); HOLD(v4); HOLD(v5); HOLD(v6); HOLD(v7);
    }
}

static void pass_store(char *p, size_t bytes)
{
    f32v v = {0};
    HOLD(v);
    for (char *end = p + bytes; p < end; p += 4 * VECTOR_BYTES) {
        f32own *q = (f32own *)p;
        q[0] = v, q[1] = v, q[2] = v, q[3] = v;
        MEMORY();
    }
}

/* Stores past the caches, where there are any. */
static void pass_stream(char *p, size_t bytes)
{
#if defined __AVX512F__
    __m512i v = _mm512_setzero_si512();
    for (char *end = p + bytes; p < end; p += 64) _mm512_stream_si512((__m512i *)p, v);
    _mm_sfence();
#elif defined __AVX__
    __m256i v = _mm256_setzero_si256();
    for (char *end = p + bytes; p < end; p += 32) _mm256_stream_si256((__m256i *)p, v);
    _mm_sfence();
#elif defined __SSE2__
    __m128i v = _mm_setzero_si128();
    for (char *end = p + bytes; p < end; p += 16) _mm_stream_si128((__m128i *)p, v);
    _mm_sfence();
#elif defined __clang__
    f32v v = {0};
    for (char *end = p + bytes; p < end; p += VECTOR_BYTES) __builtin_nontemporal_store(v, (f32v *)p);
#else
    pass_store(p, bytes);
#endif
}

enum { LOAD, STORE, STREAM };

static void passes(int what, char *p, size_t bytes, long n)
{
    for (long i = 0; i < n; i++) {
        if (what == LOAD) pass_load(p, bytes);
        else if (what == STORE) pass_store(p, bytes);
        else pass_stream(p, bytes);
        MEMORY();
    }
}

#ifdef _OPENMP
#define TOGETHER _Pragma("omp barrier")
#else
#define TOGETHER
#endif
#define WINDOW ((size_t)4 << 20)

/* The time of one thread for n passes over the window at `own + from`, begun together with the others. */
static double window_ns(int what, char *own, size_t from, size_t bytes, long n)
{
    TOGETHER
    double at = now();
    passes(what, own + from, bytes, n);
    return now() - at;
}

/* ns per byte of `crew` threads, each in a piece of its own; all bytes together are counted. Large pieces are walked
   through window by window, each timed for itself: short enough to be left alone by other programs now and then. */
static double stream_ns(int what, char *memory, size_t piece, int crew)
{
    double least = 1e300;
    const size_t windows = piece > WINDOW ? piece / WINDOW : 1, bytes = windows > 1 ? WINDOW : piece;
    long n = 1;
    size_t turn = 0;
    for (double end = now() + sample_ns, calm = 0; calm == 0 || now() < end; turn = (turn + 1) % windows) {
        double took = 0;
#ifdef _OPENMP
#pragma omp parallel num_threads(crew) reduction(max : took)
        took = window_ns(what, memory + (size_t)omp_get_thread_num() * piece, turn * bytes, bytes, n);
#else
        took = window_ns(what, memory, turn * bytes, bytes, n);
#endif
        if (windows == 1 && took < sample_ns / 20 && n < (1L << 30)) {
            n *= 2; /* the first passes also bring the piece into its level */
            continue;
        }
        double each = took / ((double)n * (double)bytes * crew);
        if (each < least) least = each;
        calm = 1;
    }
    return least;
}

/* A ring of `count` lines: each holds the address of the next, in order or in one random cycle. */
static void ring(char *memory, size_t count, int random)
{
    uint64_t seed = 88172645463325252u;
    for (size_t k = 0; k < count; k++) *(char **)(memory + k * line) = memory + (random ? k : (k + 1) % count) * line;
    for (size_t k = count - 1; random && k > 0; k--) { /* Sattolo: one cycle through all */
        seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
        char **a = (char **)(memory + k * line), **b = (char **)(memory + seed % k * line), *kept = *a;
        *a = *b, *b = kept;
    }
}

/* ns per load of a chain through the ring: the next address is what was loaded. */
static double chase_ns(char *at)
{
    double least;
    long n;
    LEAST(least, 16, n, for (long i = 0; i < n; i++) {
        for (int k = 0; k < 16; k++) {
            at = *(char **)at;
            HOLD_WORD(at);
        }
    });
    return least;
}

/* ns per load of lines in random order whose addresses do not depend on each other. */
static double scattered_ns(const char *memory, size_t count)
{
    double least;
    long n;
    int bits = 0;
    while (((size_t)2 << bits) <= count) bits++;
    static uint64_t turn;
    LEAST(least, 16, n, for (long i = 0; i < n; i++) {
        for (int k = 0; k < 16; k++) {
            size_t at = (size_t)((++turn * 0x9E3779B97F4A7C15u) >> (64 - bits));
            size_t found = *(const size_t *)(memory + at * line);
            HOLD_WORD(found);
        }
    });
    return least;
}

static size_t whole(size_t bytes)
{
    size_t unit = 8 * VECTOR_BYTES > 4096 ? 8 * VECTOR_BYTES : 4096;
    return bytes < unit ? unit : bytes / unit * unit;
}

/* A level, or memory: its bandwidths, alone and together, and its latency. */
static void level(const char *name, char *memory, size_t bytes, size_t bytes_of_all, int stream)
{
    static const char *names[] = {"load", "store", "stream"};
    char text[64];
    for (int what = LOAD; what <= (stream ? STREAM : STORE); what++) {
        double alone = stream_ns(what, memory, whole(bytes), 1);
        snprintf(text, sizeof text, "%s.%s", name, names[what]);
        say(text, alone);
        snprintf(text, sizeof text, "%s.%s.all", name, names[what]);
        say(text, threads > 1 ? stream_ns(what, memory, whole(bytes_of_all), threads) : alone);
    }
    ring(memory, whole(bytes) / line, 1);
    snprintf(text, sizeof text, "%s.latency", name);
    say(text, chase_ns(memory));
}

/* The first two levels are each thread's own; what is further out all share by parts. */
static void caches(char *memory)
{
    char name[32];
    for (int k = 0; k < sets - 1; k++) {
        snprintf(name, sizeof name, "level%d", k + 1);
        level(name, memory, set_bytes[k], k < 2 ? set_bytes[k] : set_bytes[k] / (size_t)threads, 0);
    }
}

static void beyond(char *memory)
{
    size_t bytes = set_bytes[sets - 1];
    level("memory", memory, bytes, bytes / (size_t)threads, 1);
    say("memory.scattered", scattered_ns(memory, whole(bytes) / line));
    ring(memory, whole(bytes) / line, 0);
    say("memory.in_order", chase_ns(memory));
}

/* The system ---------------------------------------------------------- */

static volatile int done[4096];

static void region(void)
{
#ifdef _OPENMP
#pragma omp parallel for schedule(static) num_threads(threads)
#endif
    for (int k = 0; k < threads; k++) done[k] = k;
}

/* One after another, each timed for itself. */
static double region_ns(void)
{
    double least = 1e300;
    for (double end = now() + sample_ns; least == 1e300 || now() < end;) {
        double at = now();
        region();
        double took = now() - at;
        if (took < least) least = took;
    }
    return least;
}

/* A parallel loop after a pause in which the threads go to sleep; one event a try. */
static double woken_ns(void)
{
    double least = 1e300;
    for (int k = 0; k < 5; k++) {
        double until = now() + (sample_ns < 3e5 ? sample_ns : 3e5);
        while (now() < until) {}
        double at = now();
        region();
        double took = now() - at;
        if (took < least) least = took;
    }
    return least;
}

static void system_(void)
{
    say("region", region_ns());
    say("region.woken", woken_ns());
}

/* Memory in huge pages where the system has them: lookups of pages are not what is measured. */
static char *huge(size_t bytes)
{
    const size_t page = (size_t)2 << 20;
    bytes = (bytes + page - 1) / page * page + page;
    char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return NULL;
    p += (page - (uintptr_t)p % page) % page;
#ifdef MADV_HUGEPAGE
    madvise(p, bytes - page, MADV_HUGEPAGE);
#endif
    return p;
}

int main(int argc, char **argv)
{
    if (argc < 7 || argc > 6 + 8) return 2;
    const char *group = argv[1];
    threads = atoi(argv[2]), rounds = atoi(argv[3]), sample_ns = 1e3 * atof(argv[4]), line = (size_t)atol(argv[5]);
    for (int k = 6; k < argc; k++) set_bytes[sets++] = (size_t)atoll(argv[k]);
#ifndef _OPENMP
    threads = 1;
#endif
    /* the first two levels are each thread's own: every thread has a piece of that size */
    size_t need = set_bytes[sets - 1];
    for (int k = 0; k < sets && k < 2; k++)
        if (whole(set_bytes[k]) * (size_t)threads > need) need = whole(set_bytes[k]) * (size_t)threads;
    need += (size_t)threads * 4096 + 65536;
    char *memory = huge(need);
    if (memory == NULL) return 3;
    memset(memory, 0, need);
    for (int k = 0; k < rounds; k++) {
        measure_clock();
        say("clock", 1.0 / clock_ghz);
        if (!strcmp(group, "core")) core(memory);
        else if (!strcmp(group, "caches")) caches(memory);
        else if (!strcmp(group, "memory")) beyond(memory);
        else if (!strcmp(group, "system")) system_();
        else return 2;
    }
    return 0;
}

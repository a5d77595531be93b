/* Measures the machine it runs on. Written by hand; the lines before it (see calibrate.py) define
 *
 *   VECTOR_BYTES           bytes of a vector register, at least 16
 *   NEIGHBOURS(a, b)       the lanes of a and b (f32), shifted by one
 *
 *   calibrate GROUP THREADS ROUNDS SAMPLE_US LINE_BYTES WORKING_SET_BYTES...
 *
 * GROUP is core, reach, caches, memory or system. A line of JSON on standard output for every figure and round:
 * {"name": ..., "ns": ..., "clock_ghz": ...}. `ns` is per operation on a vector, per byte, per load, or per event
 * (of window a number), the least of as many tries as SAMPLE_US
 * microseconds allow, one at least; `clock_ghz` was measured just after. Working sets are of one thread: of every level
 * of cache, innermost first, then of memory; for `reach` any number of them, the largest last, of all threads together.
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
#if defined __clang__ && defined __x86_64__ && VECTOR_BYTES == 16 /* which has vectors of 8 bytes in no such register */
#define HOLD(x)                                                                                                        \
    do {                                                                                                               \
        if (sizeof(x) == sizeof(double)) {                                                                             \
            double held;                                                                                               \
            memcpy(&held, &(x), sizeof held);                                                                          \
            __asm__ volatile("" : WIDE(held));                                                                         \
            memcpy(&(x), &held, sizeof held);                                                                          \
        } else                                                                                                         \
            __asm__ volatile("" : WIDE(x));                                                                            \
    } while (0)
#else
#define HOLD(x) __asm__ volatile("" : WIDE(x))
#endif
#define HOLD_WORD(x) __asm__ volatile("" : "+r"(x))
#define MEMORY() __asm__ volatile("" ::: "memory")

static int threads = 1, rounds = 1;
static double sample_ns = 1e6;
static size_t line = 64, set_bytes[32];
static int sets;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* The least time of `step(n)`, in ns per unit of its n * units; n grows until a try takes a tenth of a sample. */
#define LEAST(...) LEAST_OF(sample_ns, __VA_ARGS__)
#define LEAST_OF(tries_ns, result, units, n, ...)                                                                      \
    do {                                                                                                               \
        double least_ = 1e300, start_ = now(), took_ = 0;                                                              \
        for (n = 16; n < (1L << 40); n *= 2) {                                                                         \
            double at_ = now();                                                                                        \
            __VA_ARGS__;                                                                                               \
            took_ = now() - at_;                                                                                       \
            if (took_ > (tries_ns) / 20) break;                                                                        \
        }                                                                                                              \
        do {                                                                                                           \
            double at_ = now();                                                                                        \
            __VA_ARGS__;                                                                                               \
            took_ = now() - at_;                                                                                       \
            if (took_ < least_) least_ = took_;                                                                        \
        } while (now() - start_ < (tries_ns));                                                                         \
        result = least_ / ((double)(n) * (double)(units));                                                             \
    } while (0)

/* The clock now: a chain of additions takes a cycle each. */
#define ADD x += one; HOLD_WORD(x);
#define ADD4 ADD ADD ADD ADD
#define CHAIN_GHZ(result, tries_ns, ...)                                                                               \
    do {                                                                                                               \
        double least;                                                                                                  \
        long n;                                                                                                        \
        uint64_t x = 1, one = 1;                                                                                       \
        HOLD_WORD(one);                                                                                                \
        LEAST_OF(tries_ns, least, 16, n, for (long i = 0; i < n; i++) {                                                \
            ADD4 __VA_ARGS__ ADD4 __VA_ARGS__ ADD4 __VA_ARGS__ ADD4 __VA_ARGS__                                        \
        });                                                                                                            \
        result = 1.0 / least;                                                                                          \
    } while (0)

static double clock_now_ghz(double tries_ns)
{
    double found;
    CHAIN_GHZ(found, tries_ns, );
    return found;
}

/* The same beside products of vectors, for which some processors lower the clock, a while after they have begun: of two
   samples the second counts. */
static double vector_clock_ghz(double tries_ns)
{
    double found = 0;
    f32v a = {0}, b = {0}, r;
    HOLD(a); HOLD(b);
    for (int k = 0; k < 2; k++)
        CHAIN_GHZ(found, tries_ns, HOLD(a); r = a * b; HOLD(r); HOLD(a); r = a * b; HOLD(r););
    (void)r;
    return found;
}

/* Short enough for the clock to be the same as in what was just measured. */
#define BESIDE_NS 3e4

static void say(const char *name, double ns)
{
    printf("{\"name\": \"%s\", \"ns\": %.9g, \"clock_ghz\": %.6g}\n", name, ns, clock_now_ghz(BESIDE_NS));
    fflush(stdout);
}

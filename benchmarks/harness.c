/* The timing loop that every contender runs in, ours and the peers', and the machine's own speed of copying. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stddef.h>
#include <time.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* Calls f(args) `calls` times, writes the milliseconds of each; the first status that is not 0 ends it. */
int32_t time_calls(int32_t (*f)(void **), void **args, int32_t calls, double *milliseconds) {
    for (int32_t i = 0; i < calls; i++) {
        double start = now_ms();
        int32_t status = f(args);
        milliseconds[i] = now_ms() - start;
        if (status != 0) return status;
    }
    return 0;
}

/* Milliseconds to copy `bytes` from one array to the other on all threads, past the caches where that can be. */
double time_copy(char *to, const char *from, int64_t bytes) {
    double start = now_ms();
    int64_t lines = bytes / 64;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < lines; i++) {
#if defined(__SSE2__)
        for (int k = 0; k < 4; k++)
            _mm_stream_si128((__m128i *)(to + i * 64) + k, _mm_load_si128((const __m128i *)(from + i * 64) + k));
#else
        for (int k = 0; k < 64; k++) to[i * 64 + k] = from[i * 64 + k];
#endif
    }
    return now_ms() - start;
}

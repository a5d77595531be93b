/* The timing loop that every contender runs in, ours and the peers', memory on equal terms, and the machine's own speed
   of copying. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stddef.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* Of one thread the processor's time can be counted, which other programs disturb less. */
static clockid_t counted = CLOCK_MONOTONIC;

void count_processor_time(int32_t on) { counted = on ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC; }

static double now_ms(void) {
    struct timespec t;
    clock_gettime(counted, &t);
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

/* Milliseconds to copy `bytes` (whole lines of 64) from one array to the other on all threads, by memcpy,
   or with `past_caches` by stores that bypass the caches, where the processor has them. */
double time_copy(char *to, const char *from, int64_t bytes, int32_t past_caches) {
    double start = now_ms();
    int64_t lines = bytes / 64, piece = 1024, pieces = (lines + piece - 1) / piece;
#pragma omp parallel for schedule(dynamic, 4)
    for (int64_t p = 0; p < pieces; p++) {
        int64_t first = p * piece * 64, end = (p + 1) * piece * 64;
        if (end > lines * 64) end = lines * 64;
#if defined(__SSE2__)
        if (past_caches) {
            for (int64_t i = first; i < end; i += 16)
                _mm_stream_si128((__m128i *)(to + i), _mm_load_si128((const __m128i *)(from + i)));
            continue;
        }
#else
        (void)past_caches;
#endif
        memcpy(to + first, from + first, (size_t)(end - first));
    }
    return now_ms() - start;
}

/* The allocator of Halide's peers. Ours keep their blocks for the next call, the large ones in huge pages: so does this,
   those of every tile included, for memory that the system clears again and again would be all that is compared. Small
   blocks are the C library's as in Halide's runtime: the block's own address lies before what is given out. */
enum { LARGE = 64 << 10, HUGE_PAGE = 2 << 20, SLOTS = 256, ALIGNMENT = 64 };
static struct { void *memory; size_t bytes; int used; } slots[SLOTS];
static pthread_mutex_t slots_lock = PTHREAD_MUTEX_INITIALIZER;

static void *small(size_t bytes) {
    char *const own = malloc(bytes + ALIGNMENT);
    if (!own) return NULL;
    char *const given = own + (ALIGNMENT - (uintptr_t)own % ALIGNMENT);
    ((void **)given)[-1] = own;
    return given;
}

void *keeping_malloc(void *context, size_t bytes) {
    (void)context;
    if (bytes < LARGE) return small(bytes);
    pthread_mutex_lock(&slots_lock);
    int best = -1, empty = -1;
    for (int n = 0; n < SLOTS; n++) {
        if (!slots[n].memory) empty = n;
        else if (!slots[n].used && slots[n].bytes >= bytes && slots[n].bytes / 8 <= bytes &&
                 (best < 0 || slots[n].bytes < slots[best].bytes))
            best = n;
    }
    void *found = NULL;
    if (best < 0) {
        if (empty >= 0) found = aligned_alloc(HUGE_PAGE, (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
        if (found) {
            madvise(found, bytes, MADV_HUGEPAGE);
            best = empty;
            slots[best].memory = found;
            slots[best].bytes = bytes;
        }
    }
    if (best >= 0) {
        slots[best].used = 1;
        found = slots[best].memory;
    }
    pthread_mutex_unlock(&slots_lock);
    return found ? found : small(bytes);
}

void keeping_free(void *context, void *memory) {
    (void)context;
    int kept = 0;
    if (!memory) return;
    if ((uintptr_t)memory % HUGE_PAGE) { /* none of ours */
        free(((void **)memory)[-1]);
        return;
    }
    pthread_mutex_lock(&slots_lock);
    for (int n = 0; n < SLOTS && !kept; n++)
        if (slots[n].memory == memory) {
            slots[n].used = 0;
            kept = 1;
        }
    pthread_mutex_unlock(&slots_lock);
    if (!kept) free(((void **)memory)[-1]);
}

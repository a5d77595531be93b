/* OpenMP's loops by plain POSIX threads, which ThreadSanitizer understands as it does not understand libgomp: the few
   entry points that GCC calls for `omp parallel for schedule(dynamic, 1)`. Iterations are dealt out in turn and nothing
   orders two threads but the start and the end, so that every access to the same place from two iterations is told,
   however the threads happen to run. THREADS is prime: few iterations that meet are on the same thread. */
#include <pthread.h>
#include <stdbool.h>

enum { THREADS = 7 };

typedef struct {
    void (*body)(void *);
    void *data;
    int number;
    long next, end, step;
} Share;

/* Where the loader allocates nothing for it: ThreadSanitizer does not know how that is ordered. */
static __thread Share *mine __attribute__((tls_model("initial-exec")));

int omp_get_max_threads(void) { return THREADS; }
int omp_get_thread_num(void) { return mine ? mine->number : 0; }

bool GOMP_loop_nonmonotonic_dynamic_next(long *from, long *to) {
    if (mine->step > 0 ? mine->next >= mine->end : mine->next <= mine->end) return false;
    *from = mine->next;
    *to = mine->next + mine->step;
    mine->next += THREADS * mine->step;
    return true;
}

/* Where the bounds are found inside the threads. */
bool GOMP_loop_nonmonotonic_dynamic_start(long start, long end, long step, long chunk, long *from, long *to) {
    (void)chunk;
    mine->next = start + mine->number * step;
    mine->end = end;
    mine->step = step;
    return GOMP_loop_nonmonotonic_dynamic_next(from, to);
}

void GOMP_loop_end_nowait(void) {}

static void *run(void *share) {
    mine = share;
    mine->body(mine->data);
    return 0;
}

void GOMP_parallel_loop_nonmonotonic_dynamic(void (*body)(void *), void *data, unsigned threads, long start, long end,
                                             long step, long chunk, unsigned flags) {
    pthread_t thread[THREADS];
    Share share[THREADS];
    (void)threads, (void)chunk, (void)flags;
    for (int n = 0; n < THREADS; n++) {
        share[n] = (Share){body, data, n, start + n * step, end, step};
        pthread_create(&thread[n], 0, run, &share[n]);
    }
    for (int n = 0; n < THREADS; n++) pthread_join(thread[n], 0);
}

void GOMP_parallel(void (*body)(void *), void *data, unsigned threads, unsigned flags) {
    GOMP_parallel_loop_nonmonotonic_dynamic(body, data, threads, 0, 0, 1, 1, flags);
}

/* OpenMP's loops by plain POSIX threads, which ThreadSanitizer understands as it does not understand libgomp: the few
   entry points that GCC calls for `omp parallel for schedule(dynamic, 1)`, `ordered` or not. Iterations are dealt out in turn and nothing
   orders two threads but the start and the end, so that every access to the same place from two iterations is told,
   however the threads happen to run. THREADS is prime: few iterations that meet are on the same thread. */
#include <pthread.h>
#include <stdbool.h>

enum { THREADS = 7 };

typedef struct {
    void (*body)(void *);
    void *data;
    int number;
    long next, end, step, turn;
} Share;

/* The iteration of a loop that runs what is ordered. */
static pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t later = PTHREAD_COND_INITIALIZER;
static long turn;

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

/* Of a loop with `ordered`. */
bool GOMP_loop_ordered_dynamic_next(long *from, long *to) {
    mine->turn += THREADS;
    return GOMP_loop_nonmonotonic_dynamic_next(from, to);
}

bool GOMP_loop_ordered_dynamic_start(long start, long end, long step, long chunk, long *from, long *to) {
    mine->turn = mine->number;
    return GOMP_loop_nonmonotonic_dynamic_start(start, end, step, chunk, from, to);
}

void GOMP_ordered_start(void) {
    pthread_mutex_lock(&order);
    while (turn != mine->turn) pthread_cond_wait(&later, &order);
    pthread_mutex_unlock(&order);
}

void GOMP_ordered_end(void) {
    pthread_mutex_lock(&order);
    turn++;
    pthread_cond_broadcast(&later);
    pthread_mutex_unlock(&order);
}

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
    turn = 0;
    for (int n = 0; n < THREADS; n++) {
        share[n] = (Share){body, data, n, start + n * step, end, step, 0};
        pthread_create(&thread[n], 0, run, &share[n]);
    }
    for (int n = 0; n < THREADS; n++) pthread_join(thread[n], 0);
}

void GOMP_parallel(void (*body)(void *), void *data, unsigned threads, unsigned flags) {
    GOMP_parallel_loop_nonmonotonic_dynamic(body, data, threads, 0, 0, 1, 1, flags);
}

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

/* 64 bytes past the caches, where there are such stores. */
static void pass_stream_line(char *p)
{
#if defined __AVX512F__
    _mm512_stream_si512((__m512i *)p, _mm512_setzero_si512());
#elif defined __AVX__
    for (int k = 0; k < 64; k += 32) _mm256_stream_si256((__m256i *)(p + k), _mm256_setzero_si256());
#elif defined __SSE2__
    for (int k = 0; k < 64; k += 16) _mm_stream_si128((__m128i *)(p + k), _mm_setzero_si128());
#else
    f32v v = {0};
    for (int k = 0; k < 64; k += VECTOR_BYTES)
#if defined __clang__
        __builtin_nontemporal_store(v, (f32own *)(p + k));
#else
        *(f32own *)(p + k) = v;
#endif
#endif
}

/* As schedules use memory: a line of the first part of a piece is loaded, and one stored to each of the `planes` others,
   which are alike modulo the size of a page. */
static void pass_copy(char *p, size_t bytes, int planes, int past)
{
    const size_t part = bytes / (size_t)(planes + 1) / 4096 * 4096;
    for (size_t at = 0; at < part; at += 64) {
        for (int k = 0; k < 64; k += VECTOR_BYTES) {
            f32v v = *(const f32own *)(p + at + k);
            HOLD(v);
            for (int n = 1; n <= planes && !past; n++) *(f32own *)(p + (size_t)n * part + at + k) = v;
        }
        for (int n = 1; n <= planes && past; n++) pass_stream_line(p + (size_t)n * part + at);
        MEMORY();
    }
#if defined __SSE2__
    _mm_sfence();
#endif
}

enum { LOAD, STORE, COPY, COPY_PAST, PLANES, PLANES_PAST };

static void passes(int what, char *p, size_t bytes, long n)
{
    for (long i = 0; i < n; i++) {
        if (what == LOAD) pass_load(p, bytes);
        else if (what == STORE) pass_store(p, bytes);
        else pass_copy(p, bytes, what >= PLANES ? 3 : 1, what == COPY_PAST || what == PLANES_PAST);
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

/* The same of `crew` threads, each in a piece of its own: that of the last of them. */
static double window_of_all_ns(int what, char *memory, size_t piece, int crew, size_t from, size_t bytes, long n)
{
    double took = 0;
#ifdef _OPENMP
#pragma omp parallel num_threads(crew) reduction(max : took)
    took = window_ns(what, memory + (size_t)omp_get_thread_num() * piece, from, bytes, n);
#else
    (void)piece, (void)crew;
    took = window_ns(what, memory, from, bytes, n);
#endif
    return took;
}

static size_t turn; /* the windows that were walked through so far */

/* ns per byte of `crew` threads, each in a piece of its own; all bytes together are counted. Large pieces are walked
   through window by window, each timed for itself: short enough to be left alone by other programs now and then; and
   from where the last walk ended, since a cache may still have what was before that. */
static double stream_ns(int what, char *memory, size_t piece, int crew)
{
    double least = 1e300;
    const size_t windows = piece > WINDOW ? piece / WINDOW : 1, bytes = windows > 1 ? WINDOW : piece;
    long n = 1;
    for (double end = now() + sample_ns, calm = 0; calm == 0 || now() < end; turn++) {
        double took = window_of_all_ns(what, memory, piece, crew, turn % windows * bytes, bytes, n);
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

static size_t whole(size_t bytes)
{
    size_t unit = 8 * VECTOR_BYTES > 4096 ? 8 * VECTOR_BYTES : 4096;
    return bytes < unit ? unit : bytes / unit * unit;
}

#define PARTS 16

/* ns per byte of all threads together, each of which walks through a piece of its own part by part: the least part of the
   second half. The first leaves as many lines in the caches, changed or not, as they have of that walk: who comes after
   another would else write back what that one has changed. */
static double walk_ns(int what, char *memory, size_t piece)
{
    const size_t bytes = whole(piece / PARTS);
    double least = 1e300;
    for (size_t k = 0; k < PARTS; k++) {
        double took = window_of_all_ns(what, memory, piece, threads, k * bytes, bytes, 1);
        if (k >= PARTS / 2 && took < least) least = took;
    }
    return least / ((double)bytes * threads);
}

/* As schedules compute rows side by side: lines of SIDE rows of ROW bytes are copied to as many others, one row after the
   other, with `work` times eight products beside each; and where they are `asked` for, a request for the line ASKED bytes
   ahead. */
#define SIDE 8
#define ROW 10240
#define ASKED 4096
#define PRODUCT_OF(a) a *= one; HOLD(a);

static void pass_rows(const char *from, char *to, size_t rows, long work, int asked)
{
    f32v one = {0};
    one += 1;
    HOLD(one);
    f32v a = one, b = one, c = one, d = one, e = one, f = one, g = one, h = one;
    for (size_t y = 0; y + SIDE <= rows; y += SIDE)
        for (size_t x = 0; x < ROW; x += 64)
            for (size_t at = y * ROW + x; at < (y + SIDE) * ROW; at += ROW) {
                if (asked) __builtin_prefetch(from + at + ASKED, 0, 2);
                for (int k = 0; k < 64; k += VECTOR_BYTES) {
                    f32v v = *(const f32own *)(from + at + k);
                    HOLD(v);
                    *(f32own *)(to + at + k) = v;
                }
                for (long n = 0; n < work; n++) {
                    PRODUCT_OF(a) PRODUCT_OF(b) PRODUCT_OF(c) PRODUCT_OF(d)
                    PRODUCT_OF(e) PRODUCT_OF(f) PRODUCT_OF(g) PRODUCT_OF(h)
                }
            }
    MEMORY();
}

#define ROWS ((size_t)64)
#define MOST_WORK 64

/* ns of a pass over rows of memory from place to place, the least of many, plain and `asked` in turns. */
static void rows_ns(char *memory, size_t bytes, long work, double *plain, double *asked)
{
    const size_t block = 2 * ROWS * ROW;
    size_t at = 0;
    *plain = *asked = 1e300;
    for (double end = now() + sample_ns; *asked == 1e300 || now() < end;)
        for (int k = 0; k < 2; k++) {
            at = at + 2 * block + ASKED > bytes ? 0 : at + block;
            double begun = now();
            pass_rows(memory + at, memory + at + block / 2, ROWS, work, k);
            double took = now() - begun, *least = k ? asked : plain;
            if (took < *least) *least = took;
        }
}

/* Time of rows side by side whose lines are asked for, in that of rows whose lines are not, where they take as long to
   compute as their lines take. */
static double asked_rows(char *memory, size_t bytes)
{
    double plain, asked, computed = 0;
    rows_ns(memory, bytes, 0, &plain, &asked);
    long work = 0;
    while (computed < plain && work < MOST_WORK) {
        computed = 1e300, work++;
        for (int k = 0; k < 4; k++) { /* the first brings them into the caches */
            double begun = now();
            for (size_t y = 0; y < ROWS; y += SIDE) pass_rows(memory, memory, SIDE, work, 0);
            double took = now() - begun;
            if (took < computed) computed = took;
        }
    }
    rows_ns(memory, bytes, work, &plain, &asked);
    return asked / plain;
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

static void say_of(const char *level, const char *what, double ns)
{
    char name[64];
    snprintf(name, sizeof name, "%s.%s", level, what);
    say(name, ns);
}

/* A level, or memory: what one thread loads, what all load together, and its latency. */
static void level(const char *name, char *memory, size_t bytes, size_t bytes_of_all)
{
    say_of(name, "load", stream_ns(LOAD, memory, whole(bytes), 1));
    if (bytes_of_all > 0) say_of(name, "load.all", stream_ns(LOAD, memory, whole(bytes_of_all), threads));
    ring(memory, whole(bytes) / line, 1);
    say_of(name, "latency", chase_ns(memory));
}

/* How far ahead of an instruction that waits others begin: steps of CHAIN products, each of which waits for the one
   before. Where one step goes on with the other it takes the latency of all; where it begins anew, as much later than the
   step before as instructions of it leave the window. */
#define CHAIN 120
#define PRODUCT a *= b; HOLD(a);
#define PRODUCTS10                                                                                                     \
    PRODUCT PRODUCT PRODUCT PRODUCT PRODUCT PRODUCT PRODUCT PRODUCT PRODUCT PRODUCT
#define PRODUCTS                                                                                                       \
    PRODUCTS10 PRODUCTS10 PRODUCTS10 PRODUCTS10 PRODUCTS10 PRODUCTS10                                                  \
    PRODUCTS10 PRODUCTS10 PRODUCTS10 PRODUCTS10 PRODUCTS10 PRODUCTS10

static double window(void)
{
    f32v a = {0}, b = {0}, start = {0};
    double waits, steps;
    long n;
    a += 1, b += 1, start += 1;
    HOLD(a); HOLD(b); HOLD(start);
    LEAST(waits, 1, n, for (long i = 0; i < n; i++) { PRODUCTS });
    LEAST(steps, 1, n, for (long i = 0; i < n; i++) { a = start; HOLD(a); PRODUCTS });
    return CHAIN * (waits / steps - 1);
}

/* The first two levels are each thread's own; what is further out all share by parts. */
static void caches(char *memory)
{
    char name[32];
    level("level1", memory, set_bytes[0], 0);
    for (int k = 1; k < sets - 1; k++) {
        snprintf(name, sizeof name, "level%d", k + 1);
        level(name, memory, set_bytes[k], k < 2 ? set_bytes[k] : set_bytes[k] / (size_t)threads);
        say_of(name, "store", stream_ns(STORE, memory, whole(set_bytes[k]), 1));
    }
}

/* What stores cost all threads: copies in loads of as many bytes, and past the caches in plain ones. */
static void stores(char *memory, size_t piece)
{
    const double load = walk_ns(LOAD, memory, piece), copy = walk_ns(COPY, memory, piece);
    say("stored.copy", copy / load);
    say("past.copy", walk_ns(COPY_PAST, memory, piece) / copy);
    const double planes = walk_ns(PLANES, memory, piece);
    say("past.planes", walk_ns(PLANES_PAST, memory, piece) / planes);
}

static void beyond(char *memory)
{
    const size_t bytes = set_bytes[sets - 1], piece = whole(bytes / (size_t)threads);
    level("memory", memory, bytes, bytes / (size_t)threads);
    stores(memory, piece);
    say("asked.rows", asked_rows(memory, whole(bytes)));
    say("memory.scattered", scattered_ns(memory, whole(bytes) / line));
    ring(memory, whole(bytes) / line, 0);
    say("memory.in_order", chase_ns(memory));
}

/* ns per byte that all threads together read, for every working set of all of them, each walked through in order as a
   whole: what a cache does not keep from one time to the next is paid for. */
static void reach(char *memory)
{
    for (int k = 0; k < sets; k++) {
        const size_t piece = whole(set_bytes[k] / (size_t)threads);
        double least = 1e300;
        int times = 0;
        for (double end = now() + sample_ns; times < 2 || now() < end; times++) {
            double each = window_of_all_ns(LOAD, memory, piece, threads, 0, piece, 1) / ((double)piece * threads);
            if (times > 0 && each < least) least = each; /* the first time brings it into the caches */
        }
        char name[32];
        snprintf(name, sizeof name, "reach.%zu", set_bytes[k]);
        say(name, least);
    }
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
    if (argc < 7 || argc > 6 + 32) return 2;
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
        say("clock", 1.0 / clock_now_ghz(sample_ns));
        say("vector_clock", 1.0 / vector_clock_ghz(sample_ns));
#ifdef CORE
        if (!strcmp(group, "core")) core(memory);
        else
#endif
        if (!strcmp(group, "caches")) say("window", window()), caches(memory);
        else if (!strcmp(group, "reach")) reach(memory);
        else if (!strcmp(group, "memory")) beyond(memory);
        else if (!strcmp(group, "system")) say("region", region_ns());
        else return 2;
    }
    return 0;
}

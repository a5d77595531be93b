/* equalise: scheduled by tilesmith with method hand.
   Grey values spread over the whole range.
   Compile with OpenMP for threads. */
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
#include "equalise.h"

enum { LINE = 64 }; /* bytes of a cache line */
enum { TILESMITH_BLOCKS = 4 }; /* blocks of memory in use at once, at most */

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




int32_t tilesmith_equalise(tilesmith_buffer *input_0, float gain_0, tilesmith_buffer *output_0, tilesmith_buffer *output_1) {
    (void)gain_0;
    int query = 0;
    if (input_0 && !input_0->data) query = 1;
    if (output_0 && !output_0->data) query = 1;
    if (output_1 && !output_1->data) query = 1;
    if (!tilesmith_is_image(input_0, 2, query)) return TILESMITH_E_ARGUMENT;
    if (!tilesmith_is_image(output_0, 2, 0)) return TILESMITH_E_ARGUMENT;
    if (!tilesmith_is_image(output_1, 2, 0)) return TILESMITH_E_ARGUMENT;
    if (output_1->min[0] != output_0->min[0] || output_1->extent[0] != output_0->extent[0]) return TILESMITH_E_ARGUMENT;
    if (output_1->min[1] != output_0->min[1] || output_1->extent[1] != output_0->extent[1]) return TILESMITH_E_ARGUMENT;
    const int64_t input_0_min0 = input_0->min[0], input_0_extent0 = input_0->extent[0];
    (void)input_0_min0, (void)input_0_extent0;
    const int64_t input_0_min1 = input_0->min[1], input_0_extent1 = input_0->extent[1];
    (void)input_0_min1, (void)input_0_extent1;
    const int64_t output_0_min0 = output_0->min[0], output_0_extent0 = output_0->extent[0];
    (void)output_0_min0, (void)output_0_extent0;
    const int64_t output_0_min1 = output_0->min[1], output_0_extent1 = output_0->extent[1];
    (void)output_0_min1, (void)output_0_extent1;
    const int64_t output_1_min0 = output_1->min[0], output_1_extent0 = output_1->extent[0];
    (void)output_1_min0, (void)output_1_extent0;
    const int64_t output_1_min1 = output_1->min[1], output_1_extent1 = output_1->extent[1];
    (void)output_1_min1, (void)output_1_extent1;

    /* what the requested region needs of every stage and input */
    const int64_t output_x_hi_0 = output_0_extent0 + output_0_min0 - 1;
    const int64_t output_y_hi_0 = output_0_extent1 + output_0_min1 - 1;
    if ((tilesmith_max(0, input_0_extent0 - 1)) > INT32_MAX || (tilesmith_max(0, input_0_extent1 - 1)) > INT32_MAX) return TILESMITH_E_ARGUMENT;
    const int64_t input_x_lo_0 = tilesmith_min(0, output_0_min0);
    const int64_t input_x_hi_0 = tilesmith_max(tilesmith_max(0, input_0_extent0 - 1), output_x_hi_0);
    const int64_t input_y_lo_0 = tilesmith_min(0, output_0_min1);
    const int64_t input_y_hi_0 = tilesmith_max(tilesmith_max(0, input_0_extent1 - 1), output_y_hi_0);
    if (input_x_lo_0 < INT32_MIN || input_y_lo_0 < INT32_MIN || input_x_hi_0 > INT32_MAX || input_y_hi_0 > INT32_MAX) return TILESMITH_E_ARGUMENT;
    const int64_t input_0_lo[] = {input_x_lo_0, input_y_lo_0};
    const int64_t input_0_hi[] = {input_x_hi_0, input_y_hi_0};
    if (query || !tilesmith_covers(input_0, 2, input_0_lo, input_0_hi)) {
        tilesmith_require(input_0, 2, input_0_lo, input_0_hi);
        return TILESMITH_E_REGION;
    }

    int32_t status = TILESMITH_OK;
    tilesmith_slot own[TILESMITH_BLOCKS] = {{0}};
    tilesmith_slot *const slots =
        __atomic_test_and_set(&tilesmith_busy, __ATOMIC_ACQUIRE) ? own : tilesmith_kept;
    tilesmith_buffer input_0_image = *input_0;
    if (input_0->stride[0] != 1) {
        const int order[] = {0, 1};
        if (!tilesmith_dense(slots, &input_0_image, order, sizeof(uint8_t), 1)) {
            status = TILESMITH_E_MEMORY;
            goto finish;
        }
    }
    tilesmith_buffer output_0_image = *output_0;
    if (output_0->stride[0] != 1) {
        const int order[] = {0, 1};
        if (!tilesmith_dense(slots, &output_0_image, order, sizeof(float), 0)) {
            status = TILESMITH_E_MEMORY;
            goto finish;
        }
    }
    tilesmith_buffer output_1_image = *output_1;
    if (output_1->stride[0] != 1) {
        const int order[] = {0, 1};
        if (!tilesmith_dense(slots, &output_1_image, order, sizeof(uint8_t), 0)) {
            status = TILESMITH_E_MEMORY;
            goto finish;
        }
    }
    const uint8_t *restrict const input_0_data = input_0_image.data;
    (void)input_0_data;
    const int64_t input_0_stride0 = input_0_image.stride[0];
    (void)input_0_stride0;
    const int64_t input_0_stride1 = input_0_image.stride[1];
    (void)input_0_stride1;
    float *restrict const output_0_data = output_0_image.data;
    (void)output_0_data;
    const int64_t output_0_stride0 = output_0_image.stride[0];
    (void)output_0_stride0;
    const int64_t output_0_stride1 = output_0_image.stride[1];
    (void)output_0_stride1;
    uint8_t *restrict const output_1_data = output_1_image.data;
    (void)output_1_data;
    const int64_t output_1_stride0 = output_1_image.stride[0];
    (void)output_1_stride0;
    const int64_t output_1_stride1 = output_1_image.stride[1];
    (void)output_1_stride1;

    const int64_t histogram_0_bytes = tilesmith_block(256, sizeof(uint32_t));
    uint32_t *restrict const histogram_0 = tilesmith_take(slots, histogram_0_bytes);
    if (!histogram_0) {
        status = TILESMITH_E_MEMORY;
        goto finish;
    }

    /* histogram: i.inner */
    for (int64_t i_0 = 0; i_0 <= 255; i_0++) {
        histogram_0[i_0] = 0u;
    }

    /* update 0 of histogram: ry, rx */
    for (int64_t ry_0 = 0; ry_0 <= input_0_extent1 - 1; ry_0++) {
        const uint8_t *const input_1 = input_0_data + ((ry_0 - input_0_min1) * input_0_stride1 - input_0_min0);
        for (int64_t rx_0 = 0; rx_0 <= input_0_extent0 - 1; rx_0++) {
            const uint8_t input_2 = input_1[rx_0];
            const _Bool t_0 = input_2 > 0;
            if (t_0) {
                const uint8_t input_3 = input_1[rx_0];
                const int64_t i_1 = (int64_t)input_3;
                const uint32_t histogram_1 = histogram_0[i_1];
                const uint32_t t_1 = (uint32_t)(histogram_1 + 1u);
                histogram_0[i_1] = t_1;
            }
        }
    }

    /* update 1 of histogram: r */
    for (int64_t r_0 = 1; r_0 <= 255; r_0++) {
        const uint32_t histogram_2 = histogram_0[r_0];
        const uint32_t histogram_3 = histogram_0[r_0 - 1];
        const uint32_t t_2 = (uint32_t)(histogram_2 + histogram_3);
        histogram_0[r_0] = t_2;
    }

    /* output: y.inner, x.inner */
    for (int64_t y_0 = output_0_min1; y_0 <= output_y_hi_0; y_0++) {
        const uint8_t *const input_4 = input_0_data + ((y_0 - input_0_min1) * input_0_stride1 - input_0_min0);
        float *const output_2 = output_0_data + ((y_0 - output_0_min1) * output_0_stride1 - output_0_min0);
        uint8_t *const output_3 = output_1_data + ((y_0 - output_1_min1) * output_1_stride1 - output_1_min0);
        for (int64_t x_0 = output_0_min0; x_0 <= output_x_hi_0; x_0++) {
            const uint8_t input_5 = input_4[x_0];
            const int64_t i_2 = (int64_t)input_5;
            const uint32_t histogram_4 = histogram_0[i_2];
            const float h_0 = (float)histogram_4;
            const float t_3 = h_0 * gain_0;
            output_2[x_0] = t_3;
            output_3[x_0] = input_5;
        }
    }
    tilesmith_give(slots, histogram_0);

    if (output_0_image.data != output_0->data) tilesmith_undense(&output_0_image, output_0, sizeof(float));
    if (output_1_image.data != output_1->data) tilesmith_undense(&output_1_image, output_1, sizeof(uint8_t));
finish:
    tilesmith_end(slots, TILESMITH_KEEP && slots == tilesmith_kept && status == TILESMITH_OK);
    return status;
}

int32_t tilesmith_equalise_argv(void **args) {
    return tilesmith_equalise(args[0], *(const float *)args[1], args[2], args[3]);
}

/* Also when the library is unloaded. What a call has is that call's to give back. */
__attribute__((destructor)) void tilesmith_equalise_release(void) {
    if (!__atomic_test_and_set(&tilesmith_busy, __ATOMIC_ACQUIRE)) tilesmith_end(tilesmith_kept, 0);
}

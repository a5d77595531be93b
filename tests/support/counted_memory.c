/* Stands in for the allocator of generated code: counts blocks, and fails from the one on that it is told. */
#include <stddef.h>

extern void *aligned_alloc(size_t, size_t);
extern void free(void *);

int counted_calls, counted_live, counted_fail_from;

void *counted_aligned_alloc(size_t alignment, size_t size) {
    const int call = __atomic_add_fetch(&counted_calls, 1, __ATOMIC_SEQ_CST);
    if (counted_fail_from && call >= counted_fail_from) return NULL;
    void *memory = aligned_alloc(alignment, size);
    __atomic_fetch_add(&counted_live, memory != NULL, __ATOMIC_SEQ_CST);
    return memory;
}

void counted_free(void *memory) {
    __atomic_fetch_sub(&counted_live, memory != NULL, __ATOMIC_SEQ_CST);
    free(memory);
}

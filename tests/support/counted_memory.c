/* Stands in for the allocator of generated code: counts blocks, and fails when it is told to. */
#include <stddef.h>

extern void *aligned_alloc(size_t, size_t);
extern void free(void *);

int counted_calls, counted_live, counted_fail_at;

void *counted_aligned_alloc(size_t alignment, size_t size) {
    counted_calls++;
    if (counted_calls == counted_fail_at) return NULL;
    void *memory = aligned_alloc(alignment, size);
    counted_live += memory != NULL;
    return memory;
}

void counted_free(void *memory) {
    counted_live -= memory != NULL;
    free(memory);
}

/* An OpenCL library without a device: it counts what is there, and fails at a call that a test names. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int live, calls, failing, code;

int fake_live(void) { return live; }
int fake_calls(void) { return calls; }
/* The `at`-th call from now on that may fail ends with that error; 0: none does. */
void fake_fail(int at, int error) { calls = 0, failing = at, code = error; }

static int32_t outcome(void) { return ++calls == failing ? code : 0; }

static void *made(int32_t *error) {
    *error = outcome();
    if (*error) return NULL;
    live++;
    return malloc(1);
}

static int32_t gone(void *object) {
    live--;
    free(object);
    return 0;
}

int32_t clGetPlatformIDs(uint32_t n, void **ids, uint32_t *count) {
    static int platform;
    if (ids && n) *ids = &platform;
    if (count) *count = 1;
    return 0;
}
int32_t clGetDeviceIDs(void *platform, uint64_t type, uint32_t n, void **ids, uint32_t *count) {
    static int device;
    (void)platform, (void)type;
    if (ids && n) *ids = &device;
    if (count) *count = 1;
    return 0;
}
int32_t clGetDeviceInfo(void *device, uint32_t what, size_t size, void *to, size_t *needed) {
    (void)device, (void)needed;
    if (what == 0x102B) strncpy(to, "fake", size);
    if (what == 0x1000) *(uint64_t *)to = 4;
    if (what == 0x1002) *(uint32_t *)to = 4;
    if (what == 0x1023) *(int64_t *)to = 65536;
    return 0;
}
void *clCreateContext(const intptr_t *p, uint32_t n, const void *d, void *f, void *u, int32_t *error) {
    (void)p, (void)n, (void)d, (void)f, (void)u;
    return made(error);
}
void *clCreateCommandQueue(void *c, void *d, uint64_t p, int32_t *error) { (void)c, (void)d, (void)p; return made(error); }
void *clCreateProgramWithSource(void *c, uint32_t n, const char **s, const size_t *l, int32_t *error) {
    (void)c, (void)n, (void)s, (void)l;
    return made(error);
}
int32_t clBuildProgram(void *p, uint32_t n, const void *d, const char *o, void *f, void *u) {
    (void)p, (void)n, (void)d, (void)o, (void)f, (void)u;
    return outcome();
}
int32_t clGetProgramBuildInfo(void *p, void *d, uint32_t w, size_t size, void *to, size_t *needed) {
    (void)p, (void)d, (void)w;
    if (to && size) *(char *)to = 0;
    if (needed) *needed = 1;
    return 0;
}
void *clCreateKernel(void *p, const char *name, int32_t *error) { (void)p, (void)name; return made(error); }
int32_t clGetKernelWorkGroupInfo(void *k, void *d, uint32_t w, size_t size, void *to, size_t *needed) {
    (void)k, (void)d, (void)w, (void)size, (void)needed;
    *(size_t *)to = 64;
    return 0;
}
void *clCreateBuffer(void *c, uint64_t flags, size_t size, void *host, int32_t *error) {
    (void)c, (void)flags, (void)size, (void)host;
    return made(error);
}
int32_t clSetKernelArg(void *k, uint32_t n, size_t size, const void *v) { (void)k, (void)n, (void)size, (void)v; return outcome(); }
int32_t clEnqueueNDRangeKernel(void *q, void *k, uint32_t n, const size_t *o, const size_t *all, const size_t *each,
                               uint32_t w, const void *l, void *e) {
    (void)q, (void)k, (void)n, (void)o, (void)all, (void)each, (void)w, (void)l, (void)e;
    return outcome();
}
void *clEnqueueMapBuffer(void *q, void *m, uint32_t b, uint64_t f, size_t o, size_t s, uint32_t n, const void *l, void *e,
                         int32_t *error) {
    (void)q, (void)b, (void)f, (void)o, (void)s, (void)n, (void)l, (void)e;
    *error = outcome();
    return m;
}
int32_t clEnqueueUnmapMemObject(void *q, void *m, void *at, uint32_t n, const void *l, void *e) {
    (void)q, (void)m, (void)at, (void)n, (void)l, (void)e;
    return outcome();
}
int32_t clFinish(void *q) { (void)q; return outcome(); }
int32_t clReleaseMemObject(void *o) { return gone(o); }
int32_t clReleaseKernel(void *o) { return gone(o); }
int32_t clReleaseProgram(void *o) { return gone(o); }
int32_t clReleaseCommandQueue(void *o) { return gone(o); }
int32_t clReleaseContext(void *o) { return gone(o); }

"""The fixed parts of the host's C: OpenCL's functions, which are declared here and found when the first call comes; the
device, the program and its kernels, made once; buffers, launches and errors of a call."""

from __future__ import annotations

from tilesmith.scheduler.codegen.c.prelude import KINDS_OF_FUNCTIONS

STATUS = """\
#ifndef TILESMITH_OPENCL
#define TILESMITH_OPENCL
enum {
    TILESMITH_E_DEVICE = 4, /* there is no OpenCL library, or no such device; or the device fails */
    TILESMITH_E_KERNEL = 5  /* the device's compiler refuses the kernels: standard error has what it says */
};
#endif
"""

INCLUDES = (
    """\
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif
#define PARALLEL(n)
#define THREADS 1
"""
    + KINDS_OF_FUNCTIONS
    + """\
/* A comparison that a document makes may be decided already. */
#pragma GCC diagnostic ignored "-Wtype-limits"
#pragma GCC diagnostic ignored "-Wtautological-compare"
"""
)

FUNCTIONS = """\
/* The part of OpenCL 1.2 that is used here. */
typedef struct cl_platform *cl_platform_id;
typedef struct cl_device *cl_device_id;
typedef struct cl_context_of *cl_context;
typedef struct cl_queue *cl_command_queue;
typedef struct cl_memory *cl_mem;
typedef struct cl_program_of *cl_program;
typedef struct cl_kernel_of *cl_kernel;
typedef struct cl_event_of *cl_event;

#define TILESMITH_FUNCTIONS(F) \\
    F(GetPlatformIDs, int32_t, (uint32_t, cl_platform_id *, uint32_t *)) \\
    F(GetDeviceIDs, int32_t, (cl_platform_id, uint64_t, uint32_t, cl_device_id *, uint32_t *)) \\
    F(GetDeviceInfo, int32_t, (cl_device_id, uint32_t, size_t, void *, size_t *)) \\
    F(CreateContext, cl_context, (const intptr_t *, uint32_t, const cl_device_id *, \\
      void (*)(const char *, const void *, size_t, void *), void *, int32_t *)) \\
    F(CreateCommandQueue, cl_command_queue, (cl_context, cl_device_id, uint64_t, int32_t *)) \\
    F(CreateProgramWithSource, cl_program, (cl_context, uint32_t, const char **, const size_t *, int32_t *)) \\
    F(BuildProgram, int32_t, (cl_program, uint32_t, const cl_device_id *, const char *, \\
      void (*)(cl_program, void *), void *)) \\
    F(GetProgramBuildInfo, int32_t, (cl_program, cl_device_id, uint32_t, size_t, void *, size_t *)) \\
    F(CreateKernel, cl_kernel, (cl_program, const char *, int32_t *)) \\
    F(GetKernelWorkGroupInfo, int32_t, (cl_kernel, cl_device_id, uint32_t, size_t, void *, size_t *)) \\
    F(CreateBuffer, cl_mem, (cl_context, uint64_t, size_t, void *, int32_t *)) \\
    F(SetKernelArg, int32_t, (cl_kernel, uint32_t, size_t, const void *)) \\
    F(EnqueueNDRangeKernel, int32_t, (cl_command_queue, cl_kernel, uint32_t, const size_t *, const size_t *, \\
      const size_t *, uint32_t, const cl_event *, cl_event *)) \\
    F(EnqueueMapBuffer, void *, (cl_command_queue, cl_mem, uint32_t, uint64_t, size_t, size_t, uint32_t, \\
      const cl_event *, cl_event *, int32_t *)) \\
    F(EnqueueUnmapMemObject, int32_t, (cl_command_queue, cl_mem, void *, uint32_t, const cl_event *, cl_event *)) \\
    F(Finish, int32_t, (cl_command_queue)) \\
    F(ReleaseMemObject, int32_t, (cl_mem)) \\
    F(ReleaseKernel, int32_t, (cl_kernel)) \\
    F(ReleaseProgram, int32_t, (cl_program)) \\
    F(ReleaseCommandQueue, int32_t, (cl_command_queue)) \\
    F(ReleaseContext, int32_t, (cl_context))

#define TILESMITH_MEMBER(name, result, parameters) result(*name) parameters;
#define TILESMITH_FIND(name, result, parameters) \\
    if (!(*(void **)&cl.name = dlsym(library, "cl" #name))) return TILESMITH_E_DEVICE;

/* The functions of the library, which stays loaded: drivers have threads of their own. */
static struct {
    TILESMITH_FUNCTIONS(TILESMITH_MEMBER)
} cl;

enum {
    CL_MEM_READ_WRITE = 1, CL_MEM_READ_ONLY = 4, CL_MEM_USE_HOST_PTR = 8, CL_MAP_READ = 1, CL_DEVICE_TYPE_ALL = -1,
    CL_DEVICE_TYPE = 0x1000, CL_DEVICE_MAX_COMPUTE_UNITS = 0x1002, CL_DEVICE_SINGLE_FP_CONFIG = 0x101B,
    CL_DEVICE_LOCAL_MEM_SIZE = 0x1023, CL_DEVICE_NAME = 0x102B, CL_PROGRAM_BUILD_LOG = 0x1183,
    CL_KERNEL_WORK_GROUP_SIZE = 0x11B0
};

/* The device, and what was made for it: one call at a time has it. */
static struct {
    pthread_mutex_t lock;
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;
    cl_program program;
    cl_kernel kernels[TILESMITH_KERNELS];
    uint32_t units;
    int64_t local_bytes; /* of a work-group's local memory, at most */
} tilesmith = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* What a call has: its status, and buffers of the device. */
typedef struct {
    int32_t status;
    int count;
    cl_mem memory[TILESMITH_BUFFERS];
} ts_call;

/* An argument of a kernel: `value` NULL is local memory of so many bytes. */
typedef struct {
    size_t size;
    const void *value;
} ts_value;

#define TILESMITH_VALUE(type, x) {sizeof(type), &(const type){x}}

/* The status for an error of OpenCL: of memory, or of the device. */
INLINE int32_t ts_status(int32_t error) {
    switch (error) {
    case 0: return TILESMITH_OK;
    case -4: case -5: case -6: case -61: return TILESMITH_E_MEMORY;
    default: return TILESMITH_E_DEVICE;
    }
}

INLINE int32_t ts_find_library(void) {
    const char *name = getenv("TILESMITH_OPENCL_LIBRARY");
    void *const library = dlopen(name && *name ? name : "libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\\n", dlerror());
        return TILESMITH_E_DEVICE;
    }
    TILESMITH_FUNCTIONS(TILESMITH_FIND)
    return TILESMITH_OK;
}

/* The device of that name, else the first of the kind. */
INLINE int32_t ts_find_device(void) {
    cl_platform_id platforms[16];
    cl_device_id devices[64], found = NULL;
    uint32_t platform_count = 0, device_count;
    if (cl.GetPlatformIDs(16, platforms, &platform_count)) platform_count = 0;
    for (uint32_t p = 0; p < platform_count && p < 16; p++) {
        if (cl.GetDeviceIDs(platforms[p], 0xFFFFFFFF, 64, devices, &device_count)) continue;
        for (uint32_t d = 0; d < device_count && d < 64; d++) {
            char name[1024] = "";
            uint64_t type = 0;
            cl.GetDeviceInfo(devices[d], CL_DEVICE_NAME, sizeof name - 1, name, NULL);
            cl.GetDeviceInfo(devices[d], CL_DEVICE_TYPE, sizeof type, &type, NULL);
            const char *const first = name + strspn(name, " ");
            if (!strncmp(first, ts_device, strlen(ts_device)) &&
                !first[strlen(ts_device) + strspn(first + strlen(ts_device), " ")]) {
                tilesmith.device = devices[d];
                return TILESMITH_OK;
            }
            if (!found && type & TILESMITH_DEVICE_TYPE) found = devices[d];
        }
    }
    if (!found) fprintf(stderr, "there is no OpenCL device %s, and none of its kind\\n", ts_device);
    tilesmith.device = found;
    return found ? TILESMITH_OK : TILESMITH_E_DEVICE;
}

INLINE int32_t ts_build(void) {
    char options[256] = TILESMITH_OPTIONS;
    uint64_t floats = 0;
    cl.GetDeviceInfo(tilesmith.device, CL_DEVICE_SINGLE_FP_CONFIG, sizeof floats, &floats, NULL);
    if (floats & 1 << 7) strcat(options, " -cl-fp32-correctly-rounded-divide-sqrt");
    if (!cl.BuildProgram(tilesmith.program, 1, &tilesmith.device, options, NULL, NULL)) return TILESMITH_OK;
    size_t size = 0;
    cl.GetProgramBuildInfo(tilesmith.program, tilesmith.device, CL_PROGRAM_BUILD_LOG, 0, NULL, &size);
    char *const log = calloc(size + 1, 1);
    if (log) {
        cl.GetProgramBuildInfo(tilesmith.program, tilesmith.device, CL_PROGRAM_BUILD_LOG, size, log, NULL);
        fprintf(stderr, "%s\\n", log);
    }
    free(log);
    return TILESMITH_E_KERNEL;
}

INLINE void ts_drop_device(void) {
    for (int n = 0; n < TILESMITH_KERNELS; n++)
        if (tilesmith.kernels[n]) cl.ReleaseKernel(tilesmith.kernels[n]), tilesmith.kernels[n] = NULL;
    if (tilesmith.program) cl.ReleaseProgram(tilesmith.program), tilesmith.program = NULL;
    if (tilesmith.queue) cl.ReleaseCommandQueue(tilesmith.queue), tilesmith.queue = NULL;
    if (tilesmith.context) cl.ReleaseContext(tilesmith.context), tilesmith.context = NULL;
    tilesmith.device = NULL;
}

/* The device with its kernels, if they are not there yet. */
INLINE int32_t ts_prepare(void) {
    int32_t error = 0, status = TILESMITH_OK;
    if (tilesmith.device) return TILESMITH_OK;
    if (!cl.ReleaseContext && (status = ts_find_library())) return status;
    if ((status = ts_find_device())) return status;
    cl.GetDeviceInfo(tilesmith.device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof tilesmith.units, &tilesmith.units, NULL);
    cl.GetDeviceInfo(tilesmith.device, CL_DEVICE_LOCAL_MEM_SIZE, sizeof tilesmith.local_bytes,
                     &tilesmith.local_bytes, NULL);
    tilesmith.context = cl.CreateContext(NULL, 1, &tilesmith.device, NULL, NULL, &error);
    if (!error) tilesmith.queue = cl.CreateCommandQueue(tilesmith.context, tilesmith.device, 0, &error);
    const uint32_t lines = sizeof ts_source / sizeof *ts_source;
    const char **const source = (const char **)ts_source;
    if (!error) tilesmith.program = cl.CreateProgramWithSource(tilesmith.context, lines, source, NULL, &error);
    status = error ? ts_status(error) : ts_build();
    for (int n = 0; n < TILESMITH_KERNELS && !status; n++) {
        tilesmith.kernels[n] = cl.CreateKernel(tilesmith.program, ts_names[n], &error);
        if (error) status = TILESMITH_E_KERNEL;
    }
    if (status) ts_drop_device();
    return status;
}

/* Memory of the device, that of the host where that is given; NULL once something has failed. */
INLINE cl_mem ts_memory(ts_call *call, int64_t bytes, void *host, int written) {
    int32_t error = 0;
    if (bytes >= INT64_MAX / 4) call->status = call->status ? call->status : TILESMITH_E_MEMORY;
    if (call->status) return NULL;
    const uint64_t flags = (written ? CL_MEM_READ_WRITE : CL_MEM_READ_ONLY) | (host ? CL_MEM_USE_HOST_PTR : 0);
    cl_mem memory = cl.CreateBuffer(tilesmith.context, flags, (size_t)(bytes > 0 ? bytes : 1), host, &error);
    if (error) call->status = ts_status(error);
    else call->memory[call->count++] = memory;
    return error ? NULL : memory;
}

/* Gives memory back before the call ends. */
INLINE void ts_return(ts_call *call, cl_mem memory) {
    for (int n = 0; n < call->count; n++) {
        if (call->memory[n] != memory) continue;
        cl.ReleaseMemObject(memory);
        call->memory[n] = call->memory[--call->count];
    }
}

/* Work-groups that share so many iterations: several for each compute unit, to even out what takes longer. */
INLINE int64_t ts_groups(int64_t iterations, int64_t most) {
    return iterations < most ? iterations : most;
}

INLINE void ts_launch(ts_call *call, int kernel, int64_t groups, int64_t items,
                                       const ts_value *values, uint32_t count) {
    int32_t error = 0;
    if (call->status || groups < 1) return;
    for (uint32_t n = 0; n < count && !error; n++)
        error = cl.SetKernelArg(tilesmith.kernels[kernel], n, values[n].size, values[n].value);
    const cl_kernel started = tilesmith.kernels[kernel];
    size_t most = 0; /* what its registers leave: any number of work-items computes the same */
    if (items > 1 && !cl.GetKernelWorkGroupInfo(started, tilesmith.device, CL_KERNEL_WORK_GROUP_SIZE, sizeof most,
                                                &most, NULL) && (size_t)items > most)
        items = most > 0 ? (int64_t)most : 1;
    const size_t all = (size_t)(groups * items), each = (size_t)items;
    if (!error) error = cl.EnqueueNDRangeKernel(tilesmith.queue, started, 1, NULL, &all, &each, 0, NULL, NULL);
    call->status = ts_status(error);
}

/* Makes what kernels wrote to memory of the host be there. */
INLINE void ts_fetch(ts_call *call, cl_mem memory, int64_t bytes) {
    int32_t error = 0;
    if (call->status) return;
    void *at = cl.EnqueueMapBuffer(tilesmith.queue, memory, 1, CL_MAP_READ, 0, (size_t)bytes, 0, NULL, NULL, &error);
    if (!error) error = cl.EnqueueUnmapMemObject(tilesmith.queue, memory, at, 0, NULL, NULL);
    call->status = ts_status(error);
}

/* Waits for the device; the call has no buffers any more. */
INLINE void ts_finish(ts_call *call) {
    const int32_t error = cl.Finish(tilesmith.queue);
    if (!call->status) call->status = ts_status(error);
    while (call->count) cl.ReleaseMemObject(call->memory[--call->count]);
}

/* Whether the elements of an image lie one after the other in that order of its dims. */
INLINE int ts_is_dense(const tilesmith_buffer *b, const int *order) {
    int64_t elements = 1;
    for (int n = 0; n < b->dims; elements *= b->extent[order[n++]])
        if (b->stride[order[n]] != elements) return 0;
    return 1;
}
"""

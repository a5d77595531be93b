/* Runs one compiled pipeline, as told on standard input; answers in JSON, a line a question.
 *
 *   runner LIBRARY SYMBOL
 *
 *   arguments N                                  how many arguments the pipeline has
 *   buffer I DIMS BYTES MIN... EXTENT... STRIDE...   argument I is a buffer (element size in bytes; strides in elements)
 *   scalar I HEX                                 argument I is a scalar, its bytes in this machine's order
 *   load I FILE                                  memory for buffer I, filled from FILE
 *   allocate I                                   memory for buffer I
 *   run N                                        one call unmeasured, N measured: {"code": c, "times_ns": [...], "peak_rss_bytes": b,
 *                                                "start_rss_bytes": b}
 *   store I FILE                                 write buffer I
 *
 * A call that does not return 0 is answered by {"code": c, "buffers": [[i, [min...], [extent...]]...]}: where c says
 * that regions are wrong, those that the pipeline requires. {"error": kind, "detail": text} and exit status 1 where the
 * runner itself fails; kinds: library, memory, file, protocol.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define MAX_DIMS 5
#define ALIGNMENT ((size_t)2 << 20) /* of buffers: a huge page, which is a multiple of every cache line */
#define PAGE ((size_t)4096)

typedef struct {
    void *data;
    int32_t dims;
    int32_t min[MAX_DIMS], extent[MAX_DIMS];
    int64_t stride[MAX_DIMS];
} tilesmith_buffer;

typedef int32_t (*pipeline_function)(void **);

typedef struct {
    enum { UNSET, BUFFER, SCALAR } kind;
    tilesmith_buffer buffer;
    size_t bytes;
    unsigned char *memory;
    _Alignas(16) unsigned char scalar[16];
} argument;

static argument *arguments;
static void **pointers;
static size_t argument_count;
static FILE *answers;

static void fail(const char *kind, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));

static void fail(const char *kind, const char *format, ...)
{
    char text[512];
    va_list rest;
    va_start(rest, format);
    vsnprintf(text, sizeof text, format, rest);
    va_end(rest);
    fprintf(answers, "{\"error\": \"%s\", \"detail\": \"", kind);
    for (const char *c = text; *c; c++)
        fputc(*c == '"' || *c == '\\' || (unsigned char)*c < 32 ? ' ' : *c, answers);
    fprintf(answers, "\"}\n");
    fflush(answers);
    exit(1);
}

static long long number(void)
{
    char *word = strtok(NULL, " "), *end = NULL;
    if (word == NULL)
        fail("protocol", "a number is missing");
    errno = 0;
    long long value = strtoll(word, &end, 10);
    if (errno != 0 || *end != '\0')
        fail("protocol", "not a number");
    return value;
}

static argument *which(void)
{
    long long index = number();
    if (index < 0 || (unsigned long long)index >= argument_count)
        fail("protocol", "no such argument");
    return &arguments[index];
}

static argument *which_buffer(void)
{
    argument *a = which();
    if (a->kind != BUFFER)
        fail("protocol", "not a buffer");
    return a;
}

static void set_count(void)
{
    long long count = number();
    if (arguments != NULL || count < 1 || count > 100000)
        fail("protocol", "bad number of arguments");
    argument_count = (size_t)count;
    arguments = calloc(argument_count, sizeof *arguments);
    pointers = calloc(argument_count, sizeof *pointers);
    if (arguments == NULL || pointers == NULL)
        fail("memory", "no memory for %zu arguments", argument_count);
}

static void set_buffer(void)
{
    argument *a = which();
    tilesmith_buffer *b = &a->buffer;
    long long dims = number(), element = number();
    if (dims < 0 || dims > MAX_DIMS || element < 1 || element > 16)
        fail("protocol", "bad buffer");
    a->kind = BUFFER;
    b->dims = (int32_t)dims;
    for (int d = 0; d < dims; d++)
        b->min[d] = (int32_t)number();
    a->bytes = (size_t)element;
    for (int d = 0; d < dims; d++) {
        b->extent[d] = (int32_t)number();
        if (b->extent[d] < 0 || __builtin_mul_overflow(a->bytes, (size_t)b->extent[d], &a->bytes))
            fail("memory", "the buffer is larger than memory can be");
    }
    for (int d = 0; d < dims; d++)
        b->stride[d] = number();
}

static void set_scalar(void)
{
    argument *a = which();
    const char *hex = strtok(NULL, " ");
    size_t length = hex ? strlen(hex) : 0;
    if (length == 0 || length % 2 || length / 2 > sizeof a->scalar)
        fail("protocol", "bad scalar");
    a->kind = SCALAR;
    for (size_t i = 0; i < length / 2; i++) {
        unsigned byte;
        if (sscanf(hex + 2 * i, "%2x", &byte) != 1)
            fail("protocol", "bad scalar");
        a->scalar[i] = (unsigned char)byte;
    }
}

/* Anonymous memory, aligned, with a page that nobody may touch behind it; every page of it present. */
static void allocate(argument *a)
{
    size_t size = (a->bytes + PAGE - 1) / PAGE * PAGE;
    size_t reserved;
    if (__builtin_add_overflow(size, ALIGNMENT + PAGE, &reserved))
        fail("memory", "the buffer is larger than memory can be");
    unsigned char *space = mmap(NULL, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (space == MAP_FAILED)
        fail("memory", "no memory for a buffer of %zu bytes", a->bytes);
    a->memory = (unsigned char *)(((uintptr_t)space + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    if (size != 0 && mprotect(a->memory, size, PROT_READ | PROT_WRITE) != 0)
        fail("memory", "no memory for a buffer of %zu bytes", a->bytes);
    if (size >= 2 * ALIGNMENT)
        madvise(a->memory, size, MADV_HUGEPAGE);
    for (size_t at = 0; at < size; at += PAGE)
        ((volatile unsigned char *)a->memory)[at] = 0;
    a->buffer.data = a->memory;
}

static void load(void)
{
    argument *a = which_buffer();
    const char *name = strtok(NULL, " ");
    int file = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        fail("file", "cannot open an input: %s", strerror(errno));
    allocate(a);
    for (size_t at = 0; at < a->bytes;) {
        ssize_t got = read(file, a->memory + at, a->bytes - at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            fail("file", "cannot read an input: %s", got < 0 ? strerror(errno) : "it is too short");
        at += (size_t)got;
    }
    close(file);
}

static void store(void)
{
    argument *a = which_buffer();
    const char *name = strtok(NULL, " ");
    int file = name && a->memory ? open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
    if (file < 0)
        fail("file", "cannot create an output: %s", strerror(errno));
    for (size_t at = 0; at < a->bytes;) {
        ssize_t put = write(file, a->memory + at, a->bytes - at);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            fail("file", "cannot write an output: %s", strerror(errno));
        at += (size_t)put;
    }
    if (close(file) != 0)
        fail("file", "cannot write an output: %s", strerror(errno));
}

static void prepare(void)
{
    for (size_t i = 0; i < argument_count; i++) {
        if (arguments[i].kind == UNSET)
            fail("protocol", "argument %zu is not set", i);
        pointers[i] = arguments[i].kind == BUFFER ? (void *)&arguments[i].buffer : (void *)arguments[i].scalar;
    }
}

/* The regions as the pipeline has left them. */
static void answer_regions(int32_t code)
{
    fprintf(answers, "{\"code\": %" PRId32 ", \"buffers\": [", code);
    const char *comma = "";
    for (size_t i = 0; i < argument_count; i++) {
        const tilesmith_buffer *b = &arguments[i].buffer;
        if (arguments[i].kind != BUFFER)
            continue;
        fprintf(answers, "%s[%zu, [", comma, i);
        for (int d = 0; d < b->dims; d++)
            fprintf(answers, "%s%" PRId32, d ? ", " : "", b->min[d]);
        fprintf(answers, "], [");
        for (int d = 0; d < b->dims; d++)
            fprintf(answers, "%s%" PRId32, d ? ", " : "", b->extent[d]);
        fprintf(answers, "]]");
        comma = ", ";
    }
    fprintf(answers, "]}\n");
}

/* The most memory ("VmHWM") that this program has had, or what it has now ("VmRSS"), in bytes; unlike getrusage's,
 * not that of the program it was before. */
static uint64_t memory_bytes(const char *what)
{
    char line[256];
    uint64_t kilobytes = 0;
    FILE *status = fopen("/proc/self/status", "re");
    while (status != NULL && fgets(line, sizeof line, status) != NULL)
        if (strncmp(line, what, strlen(what)) == 0 && sscanf(line + strlen(what), ": %" SCNu64, &kilobytes) == 1)
            break;
    if (status != NULL)
        fclose(status);
    if (kilobytes == 0) {
        struct rusage usage;
        getrusage(RUSAGE_SELF, &usage);
        kilobytes = (uint64_t)usage.ru_maxrss;
    }
    return kilobytes * 1024;
}

/* What the program had with its libraries, before the first image. */
static uint64_t start_bytes;

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void run(pipeline_function pipeline)
{
    long long repeat = number();
    if (repeat < 1 || repeat > 1000000)
        fail("protocol", "bad number of repeats");
    int64_t *times = malloc((size_t)repeat * sizeof *times);
    if (times == NULL)
        fail("memory", "no memory for %lld times", repeat);
    prepare();
    int32_t code = pipeline(pointers);
    for (long long i = 0; i < repeat && code == 0; i++) {
        int64_t start = now_ns();
        code = pipeline(pointers);
        times[i] = now_ns() - start;
    }
    if (code != 0) {
        answer_regions(code);
    } else {
        fprintf(answers, "{\"code\": 0, \"times_ns\": [");
        for (long long i = 0; i < repeat; i++)
            fprintf(answers, "%s%" PRId64, i ? ", " : "", times[i]);
        fprintf(answers, "], \"peak_rss_bytes\": %" PRIu64 ", \"start_rss_bytes\": %" PRIu64 "}\n",
                memory_bytes("VmHWM"), start_bytes);
    }
    free(times);
    if (code != 0) { /* what comes next would store what was never computed */
        fflush(answers);
        exit(0);
    }
}

int main(int argc, char **argv)
{
    /* What the pipeline might print must not be taken for an answer. */
    answers = fdopen(dup(STDOUT_FILENO), "w");
    if (answers == NULL || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return 1;
    signal(SIGXFSZ, SIG_IGN);
    if (argc != 3)
        fail("protocol", "usage: runner LIBRARY SYMBOL");
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        fail("library", "%s", dlerror());
    pipeline_function pipeline;
    *(void **)&pipeline = dlsym(library, argv[2]);
    if (pipeline == NULL)
        fail("library", "the library has no such function");
    start_bytes = memory_bytes("VmRSS");
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    while ((length = getline(&line, &room, stdin)) > 0) {
        line[strcspn(line, "\n")] = '\0';
        const char *command = strtok(line, " ");
        if (command == NULL)
            continue;
        if (strcmp(command, "arguments") == 0) {
            set_count();
        } else if (strcmp(command, "buffer") == 0) {
            set_buffer();
        } else if (strcmp(command, "scalar") == 0) {
            set_scalar();
        } else if (strcmp(command, "load") == 0) {
            load();
        } else if (strcmp(command, "allocate") == 0) {
            allocate(which_buffer());
        } else if (strcmp(command, "store") == 0) {
            store();
        } else if (strcmp(command, "run") == 0) {
            run(pipeline);
        } else {
            fail("protocol", "no such command");
        }
        fflush(answers);
    }
    free(line);
    free(arguments);
    free(pointers);
    return 0;
}

/* A plugin of QEMU's user mode, for programs of Arm: what one call of a pipeline executes, and the lines that it moves
 * between the caches of a machine, by a model of them. Instructions of AArch64 are told apart by kind; those of 32-bit Arm
 * all count as integer ones.
 *
 *   qemu-aarch64 -plugin caches.so,out=FILE,caches=BYTES:LINE:WAYS+BYTES:LINE:WAYS... PROGRAM
 *
 * The program asks for the clock before and after a call (`runner.c` does): what lies between the first time and the
 * second is counted, then written to FILE as JSON. Caches are empty at the beginning, put out what was used the longest
 * ago, fetch a line before it is stored to, and write one back when it is put out. Of one thread.
 *
 * Few installations have the header of plugins: what is used of the first version of that interface is declared here. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

typedef uint64_t plugin_id;
typedef struct qemu_plugin_tb block;
typedef struct qemu_plugin_insn instruction;
enum { NO_REGISTERS = 0, LOADS_AND_STORES = 3, ADD = 0 };

size_t qemu_plugin_tb_n_insns(const block *);
instruction *qemu_plugin_tb_get_insn(const block *, size_t);
const void *qemu_plugin_insn_data(const instruction *);
unsigned qemu_plugin_mem_size_shift(uint32_t);
bool qemu_plugin_mem_is_store(uint32_t);
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, void (*)(plugin_id, block *));
void qemu_plugin_register_vcpu_tb_exec_inline(block *, int, void *, uint64_t);
void qemu_plugin_register_vcpu_mem_cb(instruction *, void (*)(unsigned, uint32_t, uint64_t, void *), int, int, void *);
void qemu_plugin_register_vcpu_syscall_cb(plugin_id,
                                          void (*)(plugin_id, unsigned, int64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                                                   uint64_t, uint64_t, uint64_t, uint64_t));

EXPORTED int qemu_plugin_version = 1;

/* The numbers of the system call. */
enum { CLOCK_GETTIME_AARCH64 = 113, CLOCK_GETTIME_ARM = 263, CLOCK_GETTIME64_ARM = 403 };

/* The beginning of what QEMU says of itself. */
typedef struct {
    const char *target;
} emulator_info;
static bool aarch64;

/* `unseen`: instructions that touch memory without the emulator's telling us where. */
enum { INTEGER, VECTOR, LOAD, STORE, BRANCH, UNSEEN, KINDS };
static const char *const names[KINDS] = {"integer", "vector", "load", "store", "branch", "unseen"};
static uint64_t executed[KINDS], before[KINDS];

/* From the nearest; beyond the last is memory. A line is kept as twice (its number + 1), and one more where it was stored
 * to; the ways of a set lie together, the one used last in front. `loads` and `stores` count lines that are asked for,
 * and that are written back, from nearer by; of the nearest one touches by the program. */
enum { MOST_LEVELS = 4 };
static struct {
    uint64_t *lines, sets, ways, loads, stores;
} levels[MOST_LEVELS + 1];
static size_t level_count;
static unsigned line_shift;
static const char *out;
static int readings;

static void touch(size_t level, uint64_t line, bool stored, bool fetched)
{
    if (level == level_count)
        return;
    const uint64_t ways = levels[level].ways, clean = (line + 1) << 1;
    uint64_t *const set = levels[level].lines + line % levels[level].sets * ways;
    uint64_t way = 0;
    while (way < ways && set[way] >> 1 != line + 1)
        way++;
    if (way < ways) {
        const uint64_t kept = set[way] | stored;
        for (; way > 0; way--)
            set[way] = set[way - 1];
        set[0] = kept;
        return;
    }
    if (fetched) {
        levels[level + 1].loads++;
        touch(level + 1, line, false, true);
    }
    const uint64_t gone = set[ways - 1];
    memmove(set + 1, set, (ways - 1) * sizeof *set);
    set[0] = clean | stored;
    if (gone & 1) {
        levels[level + 1].stores++;
        touch(level + 1, (gone >> 1) - 1, true, false);
    }
}

static void access_memory(unsigned cpu, uint32_t info, uint64_t address, void *data)
{
    (void)cpu, (void)data;
    if (readings != 1)
        return;
    const bool stored = qemu_plugin_mem_is_store(info);
    const uint64_t last = (address + (1u << qemu_plugin_mem_size_shift(info)) - 1) >> line_shift;
    for (uint64_t line = address >> line_shift; line <= last; line++) {
        *(stored ? &levels[0].stores : &levels[0].loads) += 1;
        touch(0, line, stored, true);
    }
}

/* By the top-level encoding of the Arm Architecture Reference Manual, and within loads and stores by the bits that say
 * which it is. */
static int kind_of(uint32_t code)
{
    const unsigned group = code >> 25 & 15;
    if (group == 2) /* SVE */
        return code >> 31 ? UNSEEN : VECTOR;
    if ((code & ~31u) == 0xd50b7420) /* zeroes a line: DC ZVA */
        return UNSEEN;
    if ((group & 14) == 10)
        return BRANCH;
    if ((group & 7) == 7)
        return VECTOR;
    if ((group & 5) != 4)
        return INTEGER;
    const bool literal = (code >> 24 & 0x3b) == 0x18, extended = (code >> 26 & 15) == 14 && (code >> 23 & 1);
    return literal || extended || (code >> 22 & 1) ? LOAD : STORE;
}

static void translated(plugin_id id, block *found)
{
    (void)id;
    uint64_t counts[KINDS] = {0};
    for (size_t n = 0; n < qemu_plugin_tb_n_insns(found); n++) {
        instruction *const one = qemu_plugin_tb_get_insn(found, n);
        uint32_t code;
        if (aarch64) { /* others may be of two bytes */
            memcpy(&code, qemu_plugin_insn_data(one), sizeof code);
            counts[kind_of(code)]++;
        } else
            counts[INTEGER]++;
        qemu_plugin_register_vcpu_mem_cb(one, access_memory, NO_REGISTERS, LOADS_AND_STORES, NULL);
    }
    for (int kind = 0; kind < KINDS; kind++)
        if (counts[kind])
            qemu_plugin_register_vcpu_tb_exec_inline(found, ADD, &executed[kind], counts[kind]);
}

static void write_counts(void)
{
    FILE *const file = fopen(out, "w");
    if (file == NULL)
        return;
    fprintf(file, "{");
    for (int kind = 0; kind < KINDS; kind++)
        fprintf(file, "\"%s\": %llu, ", names[kind], (unsigned long long)(executed[kind] - before[kind]));
    fprintf(file, "\"lines\": [");
    for (size_t level = 0; level <= level_count; level++)
        fprintf(file, "%s[%llu, %llu]", level ? ", " : "", (unsigned long long)levels[level].loads,
                (unsigned long long)levels[level].stores);
    fprintf(file, "]}\n");
    fclose(file);
}

static void called(plugin_id id, unsigned cpu, int64_t number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
                   uint64_t f, uint64_t g, uint64_t h)
{
    (void)id, (void)cpu, (void)a, (void)b, (void)c, (void)d, (void)e, (void)f, (void)g, (void)h;
    if (aarch64 ? number != CLOCK_GETTIME_AARCH64 : number != CLOCK_GETTIME_ARM && number != CLOCK_GETTIME64_ARM)
        return;
    readings++;
    if (readings == 1)
        memcpy(before, executed, sizeof before);
    if (readings == 2)
        write_counts();
}

/* Whether the text describes the caches, and there is room for them. */
static bool described(const char *text)
{
    unsigned long long bytes, line, ways;
    int length;
    for (; sscanf(text, "%llu:%llu:%llu%n", &bytes, &line, &ways, &length) == 3; text += length + 1) {
        if (level_count == MOST_LEVELS || line == 0 || ways == 0 || bytes / line < ways)
            return false;
        if (level_count == 0)
            line_shift = (unsigned)__builtin_ctzll(line);
        else if (line != 1ull << line_shift) /* all levels have lines of one size */
            return false;
        levels[level_count].ways = ways;
        levels[level_count].sets = bytes / line / ways;
        levels[level_count].lines = calloc(bytes / line, sizeof *levels->lines);
        if (levels[level_count++].lines == NULL)
            return false;
        if (text[length] != '+')
            return text[length] == '\0';
    }
    return false;
}

EXPORTED int qemu_plugin_install(plugin_id id, const emulator_info *emulator, int count, char **arguments)
{
    aarch64 = strcmp(emulator->target, "aarch64") == 0;
    bool complete = false;
    for (int n = 0; n < count; n++) {
        if (strncmp(arguments[n], "out=", 4) == 0)
            out = strdup(arguments[n] + 4);
        else if (strncmp(arguments[n], "caches=", 7) == 0)
            complete = described(arguments[n] + 7);
    }
    if (out == NULL || !complete) {
        fprintf(stderr, "caches: out=FILE,caches=BYTES:LINE:WAYS+... with lines of one size\n");
        return 1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_vcpu_syscall_cb(id, called);
    return 0;
}

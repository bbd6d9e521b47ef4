/* code_names.c: what gdb and perf are told of machine code. */
#include "engine/cpu/code/code_names.h"

#include "engine/core/memory.h"
#include "engine/cpu/code/code_symbols.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- names ---- */

enum { MOST_OPERATORS = 100 }; /* bytes of their names */

static size_t add(char *name, size_t at, const char *format, const char *text) {
    int n = snprintf(name + at, TD_CODE_NAME - at, format, text);
    return at + (size_t)n < TD_CODE_NAME ? at + (size_t)n : TD_CODE_NAME - 1;
}

const char *td_code_name(const td_code_form *form, char name[TD_CODE_NAME]) {
    const td_program *p = form->program;
    const td_dtype dtype = form->narrow == TD_DTYPE_NONE ? form->compute : form->narrow;
    char more[24];
    int left = 0;
    size_t at = add(name, 0, "%s", "fused");
    for (int s = 0; s < p->nsteps; s++) {
        const td_step *step = &p->steps[s];
        if (step->primitive == TD_PW_copy && step->from != step->to)
            continue; /* a conversion */
        if (at < MOST_OPERATORS)
            at = add(name, at, "_%s", td_primitive_name((td_primitive)step->primitive));
        else
            left++;
    }
    snprintf(more, sizeof more, "_and_%d_more", left);
    at = add(name, at, "%s", left ? more : "");
    at = add(name, at, ".%s", td_dtype_name(dtype));
    if (p->label)
        add(name, at, "[%.100s]", p->label + (strlen(p->label) > 100 ? strlen(p->label) - 100 : 0));
    for (char *c = name; *c; c++) /* a line end would begin another line of perf's */
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = '?';
    return name;
}

/* The place of a label, "FILE:LINE". False: it has none, or was cut. */
static bool read_place(const char *label, char file[TD_PROGRAM_LABEL + 1], int *line) {
    const char *colon = label ? strrchr(label, ':') : NULL;
    if (!colon || strlen(label) >= TD_PROGRAM_LABEL)
        return false;
    snprintf(file, TD_PROGRAM_LABEL + 1, "%.*s", (int)(colon - label), label);
    *line = (int)strtol(colon + 1, NULL, 10);
    return *line > 0 && *file;
}

/* ---- gdb ----
 *
 * The interface's names and structures are fixed:
 * https://sourceware.org/gdb/current/onlinedocs/gdb.html/JIT-Interface.html */

typedef struct jit_code_entry {
    struct jit_code_entry *next, *previous;
    const unsigned char *file;
    uint64_t bytes;
} jit_code_entry;

typedef struct jit_descriptor {
    uint32_t version;
    uint32_t action;
    jit_code_entry *changed, *first;
} jit_descriptor;

enum { REGISTERED = 1 };

void __jit_debug_register_code(void);
extern jit_descriptor __jit_debug_descriptor;

/* A debugger stops here to look at the descriptor. */
__attribute__((noinline, used)) void __jit_debug_register_code(void) {
    __asm__ volatile("" ::: "memory");
}

__attribute__((used, visibility("protected")))
jit_descriptor __jit_debug_descriptor = {.version = 1};

static void tell_debugger(const char *name, const char *file, int line, const void *code,
                          size_t n) {
    size_t bytes;
    jit_code_entry *e = td_malloc(sizeof *e);
    unsigned char *symbols = e ? td_code_symbols(name, code, n, file, line, &bytes) : NULL;
    if (!symbols) {
        td_free(e);
        return;
    }
    jit_descriptor *d = &__jit_debug_descriptor;
    *e = (jit_code_entry){.next = d->first, .file = symbols, .bytes = bytes};
    if (d->first)
        d->first->previous = e;
    d->first = d->changed = e;
    d->action = REGISTERED;
    __jit_debug_register_code();
}

/* ---- perf ---- */

typedef enum perf_way { UNASKED, NO_PERF, PERF_MAP, PERF_DUMP } perf_way;

static perf_way way_of_perf(void) {
    static perf_way way;
    const char *asked = getenv("TIDE_CODE_PERF");
    if (way == UNASKED)
        way = !asked                                         ? NO_PERF
              : !strcmp(asked, "map") || !strcmp(asked, "1") ? PERF_MAP
              : !strcmp(asked, "dump")                       ? PERF_DUMP
                                                             : NO_PERF;
    return way;
}

/* The file of this process; a child that was forked has its own. */
static int file_of_perf;
static pid_t pid_of_file;

static bool put_all(int file, const void *bytes, size_t n) {
    for (const char *at = bytes; n;) {
        ssize_t done = write(file, at, n);
        if (done < 0 && errno != EINTR)
            return false;
        at += done > 0 ? done : 0;
        n -= done > 0 ? (size_t)done : 0;
    }
    return true;
}

/* /tmp is everybody's: a link that another has put there is not followed, and only a file of this
 * user that has no other name is written. One that is there already may be of another compiler in
 * this process, so lines go behind its. */
static int open_map(void) {
    char path[64];
    struct stat facts;
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    int file =
        open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
    if (file >= 0 && (fstat(file, &facts) || !S_ISREG(facts.st_mode) || facts.st_nlink != 1 ||
                      facts.st_uid != geteuid())) {
        close(file);
        return -1;
    }
    return file;
}

static void put_map(const char *name, const void *code, size_t n) {
    char line[TD_CODE_NAME + 48];
    int length =
        snprintf(line, sizeof line, "%llx %zx %s\n", (unsigned long long)(uintptr_t)code, n, name);
    (void)put_all(file_of_perf, line, (size_t)length);
}

/* The format: tools/perf/Documentation/jitdump-specification.txt of Linux. */
typedef struct dump_head {
    uint32_t magic, version, bytes, machine, unused, pid;
    uint64_t time, flags;
} dump_head;

typedef struct dump_record {
    uint32_t kind, bytes;
    uint64_t time;
} dump_record;

typedef struct dump_load {
    dump_record record;
    uint32_t pid, thread;
    uint64_t address, code, bytes, index;
} dump_load;

typedef struct dump_lines {
    dump_record record;
    uint64_t code, entries;
} dump_lines;

typedef struct dump_line {
    uint64_t address;
    uint32_t line, discriminator;
} dump_line;

enum { DUMP_MAGIC = 0x4a695444, DUMP_VERSION = 1, DUMP_LOAD = 0, DUMP_LINES = 2 };

static uint64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* perf finds the file by a mapping of it that can be run. */
static int open_dump(void) {
    char path[600];
    const char *folder = getenv("JITDUMPDIR");
    snprintf(path, sizeof path, "%.500s/jit-%d.dump", folder && *folder ? folder : ".",
             (int)getpid());
    const dump_head head = {
        .magic = DUMP_MAGIC,
        .version = DUMP_VERSION,
        .bytes = sizeof head,
#if defined(__aarch64__)
        .machine = EM_AARCH64,
#else
        .machine = EM_X86_64,
#endif
        .pid = (uint32_t)getpid(),
        .time = nanoseconds()
    };
    int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0)
        return -1;
    if (!put_all(file, &head, sizeof head) ||
        mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) ==
            MAP_FAILED) {
        close(file);
        return -1;
    }
    return file;
}

/* perf's line table ends where the last entry is: the line stands at both ends of the code. */
static bool put_lines(const char *file, int line, const void *code, size_t n) {
    const size_t text = strlen(file) + 1;
    const uint64_t address = (uint64_t)(uintptr_t)code;
    const dump_lines lines = {.record = {DUMP_LINES,
                                         (uint32_t)(sizeof lines + 2 * (sizeof(dump_line) + text)),
                                         nanoseconds()},
                              .code = address,
                              .entries = 2};
    bool put = put_all(file_of_perf, &lines, sizeof lines);
    for (int end = 0; end < 2 && put; end++) {
        const dump_line entry = {.address = address + (end ? n : 0), .line = (uint32_t)line};
        put = put_all(file_of_perf, &entry, sizeof entry) && put_all(file_of_perf, file, text);
    }
    return put;
}

static void put_dump(const char *name, const char *file, int line, const void *code, size_t n) {
    static uint64_t index;
    const size_t text = strlen(name) + 1;
    const dump_load load = {
        .record = {DUMP_LOAD, (uint32_t)(sizeof load + text + n), nanoseconds()},
        .pid = (uint32_t)getpid(),
        .thread = (uint32_t)gettid(),
        .address = (uint64_t)(uintptr_t)code,
        .code = (uint64_t)(uintptr_t)code,
        .bytes = n,
        .index = index++};
    if ((!file || put_lines(file, line, code, n)) && put_all(file_of_perf, &load, sizeof load) &&
        put_all(file_of_perf, name, text))
        (void)put_all(file_of_perf, code, n);
}

static void tell_perf(const char *name, const char *file, int line, const void *code, size_t n) {
    const perf_way way = way_of_perf();
    if (way == NO_PERF)
        return;
    if (pid_of_file != getpid()) {
        if (pid_of_file && file_of_perf >= 0)
            close(file_of_perf); /* the parent's */
        pid_of_file = getpid();
        file_of_perf = way == PERF_MAP ? open_map() : open_dump();
    }
    if (file_of_perf < 0)
        return;
    if (way == PERF_MAP)
        put_map(name, code, n);
    else
        put_dump(name, file, line, code, n);
}

void td_code_announce(const td_code_form *form, const void *code, size_t n) {
    char name[TD_CODE_NAME], place[TD_PROGRAM_LABEL + 1];
    int line = 0;
    const char *file = read_place(form->program->label, place, &line) ? place : NULL;
    (void)td_code_name(form, name);
    tell_debugger(name, file, line, code, n);
    tell_perf(name, file, line, code, n);
}

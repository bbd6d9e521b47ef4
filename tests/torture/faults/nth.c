/* nth.c: a library to preload: memory that runs out at a chosen request.
 *
 * It stands before malloc and its kin and mmap, and counts requests while it is armed. It is
 * steered through getenv, which every program and Lua's os.getenv reach:
 *
 *     getenv("faults:once:17")  the 17th request from now on fails, and no other
 *     getenv("faults:from:17")  the 17th and all after it fail
 *     getenv("faults:new:17")   the 17th request of C++'s operator new fails, and no other
 *     getenv("faults:off")      none fails; the answer is the number of requests since then
 *
 * The variable FAULTS arms it before main, so that the start of a program is reached too.
 *
 * Requests of libraries that end the process or look at no answer (the loader, OpenMP, oneDNN,
 * OpenBLAS) are not counted: Tide looks whether there is room before it enters them. Once
 * all requests fail, theirs do too.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

typedef enum way { ONCE, FROM, NEW } way;

static atomic_bool armed;
static way how;
static ssize_t said;
static bool say; /* FAULTS_SAY: a line on standard error when it comes to it */
static long long first;
static atomic_llong asked;

/* Does the address lie in one of these libraries? */
static bool is_of(const void *address, const char *const *names) {
    Dl_info info;
    if (!dladdr(address, &info) || !info.dli_fname)
        return false;
    for (; *names; names++)
        if (strstr(info.dli_fname, *names))
            return true;
    return false;
}

static bool counts(const void *caller) {
    static const char *const theirs[] = {"libdnnl",     "libopenblas", "libgomp",   "ld-linux",
                                         "libgfortran", "libquadmath", "libOpenCL", "libstdc++",
                                         "libc.so",     NULL};
    static const char *const cxx[] = {"libstdc++", NULL};
    return how == NEW ? is_of(caller, cxx) : !is_of(caller, theirs);
}

static bool fails(const void *caller) {
    if (!atomic_load_explicit(&armed, memory_order_relaxed))
        return false;
    bool gone = how == FROM && atomic_load(&asked) >= first;
    if (!gone && !counts(caller))
        return false;
    long long n = atomic_fetch_add_explicit(&asked, 1, memory_order_relaxed) + 1;
    if (n != first && !gone)
        return false;
    if (n == first && say)
        said = write(STDERR_FILENO, "faults: reached\n", 16);
    errno = ENOMEM;
    return true;
}

#define FAILS() fails(__builtin_return_address(0))

/* ---- what is counted ---- */

void *malloc(size_t bytes) {
    return FAILS() ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t size) {
    return FAILS() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *block, size_t bytes) {
    return bytes && FAILS() ? NULL : __libc_realloc(block, bytes);
}

void *memalign(size_t alignment, size_t bytes) {
    return FAILS() ? NULL : __libc_memalign(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) {
    return FAILS() ? NULL : __libc_memalign(alignment, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes) {
    void *p = FAILS() ? NULL : __libc_memalign(alignment, bytes);
    if (!p)
        return ENOMEM;
    *out = p;
    return 0;
}

void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset) {
    static void *(*next)(void *, size_t, int, int, int, off_t);
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "mmap");
    return FAILS() ? MAP_FAILED : next(at, bytes, protection, flags, file, offset);
}

/* ---- steering ---- */

static char *begin(const char *count, way chosen) {
    first = strtoll(count, NULL, 10);
    how = chosen;
    atomic_store(&asked, 0);
    atomic_store(&armed, true);
    return "armed";
}

static char *end(void) {
    static char text[32];
    atomic_store(&armed, false);
    snprintf(text, sizeof text, "%lld", (long long)atomic_load(&asked));
    return text;
}

static char *obey(const char *command) {
    if (!strncmp(command, "once:", 5))
        return begin(command + 5, ONCE);
    if (!strncmp(command, "from:", 5))
        return begin(command + 5, FROM);
    if (!strncmp(command, "new:", 4))
        return begin(command + 4, NEW);
    return strcmp(command, "off") ? NULL : end();
}

char *getenv(const char *name) {
    extern char **environ;
    size_t len = strlen(name);
    if (!strncmp(name, "faults:", 7))
        return obey(name + 7);
    for (char **e = environ; e && *e; e++)
        if (!strncmp(*e, name, len) && (*e)[len] == '=')
            return *e + len + 1;
    return NULL;
}

__attribute__((constructor)) static void arm_from_environment(void) {
    const char *command = getenv("FAULTS");
    say = getenv("FAULTS_SAY") != NULL;
    if (command)
        obey(command);
}

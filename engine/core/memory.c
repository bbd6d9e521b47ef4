/* memory.c: the engine's own memory: malloc behind a fault switch, and per-thread free lists. */
#include "engine/core/memory.h"

#include "engine/core/poison.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define KEEP_FREE_LISTS !TD_SANITIZED /* so that a use after free is seen */

static _Thread_local int64_t fail_after;

void td_memory_fail_after(int64_t n) {
    fail_after = n;
}

bool td_memory_should_fail(void) {
    return TD_UNLIKELY(fail_after > 0) && --fail_after == 0;
}

void *td_malloc(size_t bytes) {
    if (td_memory_should_fail())
        return NULL;
    return malloc(bytes ? bytes : 1);
}

void *td_calloc(size_t count, size_t size) {
    if (td_memory_should_fail())
        return NULL;
    return calloc(count ? count : 1, size ? size : 1);
}

void *td_realloc(void *block, size_t bytes) {
    if (td_memory_should_fail())
        return NULL;
    return realloc(block, bytes ? bytes : 1);
}

void td_free(void *block) {
    free(block);
}

char *td_strdup(const char *text) {
    size_t bytes = strlen(text) + 1;
    char *copy = td_malloc(bytes);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

bool td_memory_has_room(size_t bytes) {
    if (td_memory_should_fail())
        return false;
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    if (p == MAP_FAILED)
        return false;
    munmap(p, bytes);
    return true;
}

/* The first thread's stack grows page by page as it is used, and the process ends where the limit
 * of addresses stops it, which no request for memory may do. It grows here, once, by what loops and
 * calls of this library need. Stacks of other threads have all their addresses. */
enum { STACK_BYTES = 1 << 20 };

static __attribute__((noinline)) void use_stack(void) {
    char room[STACK_BYTES];
    __asm__ volatile("" : : "r"(room) : "memory"); /* the compiler must not make it smaller */
    *(volatile char *)room = 0;
}

__attribute__((constructor)) static void grow_stack(void) {
    struct rlimit stack;
    if (getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur >= 4 * STACK_BYTES &&
        td_memory_has_room(STACK_BYTES))
        use_stack();
}

/* ---- free lists ---- */

enum { CLASS_BYTES = 32, CLASSES = TD_OBJECT_MAX / CLASS_BYTES, LIST_MAX = 16384 };

typedef struct free_object {
    struct free_object *next;
} free_object;

typedef struct thread_lists {
    free_object *head[CLASSES];
    /* for more objects: 0 until the thread has said what happens at its end, and after */
    uint16_t room[CLASSES];
    bool gone; /* this thread's lists were emptied for good: it is exiting */
    bool registered;
} thread_lists;

static _Thread_local thread_lists local;
static pthread_key_t exit_key;
static pthread_once_t exit_once = PTHREAD_ONCE_INIT;

static void empty_lists(void *unused) {
    (void)unused;
    local.gone = true;
    for (int c = 0; c < CLASSES; c++) {
        free_object *o = local.head[c];
        local.head[c] = NULL;
        local.room[c] = 0;
        while (o) {
            free_object *next = o->next;
            free(o);
            o = next;
        }
    }
}

static void make_exit_key(void) {
    pthread_key_create(&exit_key, empty_lists);
}

void *td_object_alloc(size_t bytes) {
    if (td_memory_should_fail())
        return NULL;
    size_t c = (bytes + CLASS_BYTES - 1) / CLASS_BYTES - 1;
    if (KEEP_FREE_LISTS && TD_LIKELY(bytes - 1 < TD_OBJECT_MAX)) {
        free_object *o = local.head[c];
        if (TD_LIKELY(o != NULL)) {
            local.head[c] = o->next;
            local.room[c]++;
            return o;
        }
        return malloc((c + 1) * CLASS_BYTES);
    }
    return malloc(bytes ? bytes : 1);
}

/* Where the list has no room: perhaps it is this thread's first object. */
static __attribute__((noinline)) void free_slowly(void *object, size_t bytes) {
    free(object);
    if (!KEEP_FREE_LISTS || bytes > TD_OBJECT_MAX || local.registered || local.gone)
        return;
    pthread_once(&exit_once, make_exit_key);
    if (pthread_setspecific(exit_key, &local))
        return;
    local.registered = true;
    for (int c = 0; c < CLASSES; c++)
        local.room[c] = LIST_MAX;
}

void td_object_free(void *object, size_t bytes) {
    if (KEEP_FREE_LISTS && TD_LIKELY(object && bytes - 1 < TD_OBJECT_MAX)) {
        size_t c = (bytes + CLASS_BYTES - 1) / CLASS_BYTES - 1;
        if (TD_LIKELY(local.room[c] > 0)) {
            free_object *o = object;
            o->next = local.head[c];
            local.head[c] = o;
            local.room[c]--;
            return;
        }
    }
    free_slowly(object, bytes);
}

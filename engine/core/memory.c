/* memory.c: the engine's own memory: malloc behind a fault switch, and per-thread free lists. */
#include "engine/core/memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#define KEEP_FREE_LISTS 0 /* so that a use after free is seen */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KEEP_FREE_LISTS 0
#endif
#endif
#ifndef KEEP_FREE_LISTS
#define KEEP_FREE_LISTS 1
#endif

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

/* ---- free lists ---- */

enum { CLASS_BYTES = 32, CLASSES = TD_OBJECT_MAX / CLASS_BYTES, LIST_MAX = 16384 };

typedef struct free_object {
    struct free_object *next;
} free_object;

typedef struct free_list {
    free_object *head;
    int count;
} free_list;

typedef struct thread_lists {
    free_list lists[CLASSES];
    bool registered;
    bool gone; /* this thread's lists were emptied for good: it is exiting */
} thread_lists;

static _Thread_local thread_lists local;
static pthread_key_t exit_key;
static pthread_once_t exit_once = PTHREAD_ONCE_INIT;

static void empty_lists(void *unused) {
    (void)unused;
    local.gone = true;
    for (int c = 0; c < CLASSES; c++) {
        free_object *o = local.lists[c].head;
        local.lists[c].head = NULL;
        local.lists[c].count = 0;
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
        free_list *list = &local.lists[c];
        if (TD_LIKELY(list->head != NULL)) {
            free_object *o = list->head;
            list->head = o->next;
            list->count--;
            return o;
        }
        return malloc((c + 1) * CLASS_BYTES);
    }
    return malloc(bytes ? bytes : 1);
}

void td_object_free(void *object, size_t bytes) {
    if (KEEP_FREE_LISTS && TD_LIKELY(bytes - 1 < TD_OBJECT_MAX)) {
        free_list *list = &local.lists[(bytes + CLASS_BYTES - 1) / CLASS_BYTES - 1];
        if (TD_LIKELY(list->count < LIST_MAX && !local.gone) && object) {
            if (TD_UNLIKELY(!local.registered)) {
                pthread_once(&exit_once, make_exit_key);
                pthread_setspecific(exit_key, &local);
                local.registered = true;
            }
            free_object *o = object;
            o->next = list->head;
            list->head = o;
            list->count++;
            return;
        }
    }
    free(object);
}

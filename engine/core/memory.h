/* memory.h: host memory for the engine's own structures and for CPU storages.
 *
 * The only place that calls malloc. Small fixed-size objects come from per-thread free lists, large
 * blocks from a cache that keeps pages warm.
 */
#ifndef TD_CORE_MEMORY_H
#define TD_CORE_MEMORY_H

#include "engine/core/status.h"

/* malloc/realloc/free of the engine. NULL when memory is out (no message is set). */
void *td_malloc(size_t bytes);
void *td_calloc(size_t count, size_t size);
void *td_realloc(void *block, size_t bytes);
void td_free(void *block);
char *td_strdup(const char *text);

/* Objects of up to TD_OBJECT_MAX bytes from this thread's free lists; td_object_free must be
 * given the same size. */
#define TD_OBJECT_MAX 512
void *td_object_alloc(size_t bytes);
void td_object_free(void *object, size_t bytes);

/* Would the system give so many bytes more? For libraries that end the process, or wait for ever,
 * when it doesn't. */
bool td_memory_has_room(size_t bytes);

/* Fault injection for tests: the n-th allocation from now on this thread fails (n = 1 is the next),
 * once; 0 turns it off. Counts every function above and tensor memory. */
void td_memory_fail_after(int64_t n);
/* For allocators: does the switch say that this request fails? Counts it. */
bool td_memory_should_fail(void);

/* ---- items in one block that grows ---- */

typedef struct td_list {
    void *items;
    int n, room;
} td_list;

/* The place of a new last item of so many bytes, which is the size of all; NULL: out of memory (no
 * message is set). Items move when the list grows. */
static inline void *td_list_add(td_list *list, size_t size) {
    if (list->n == list->room) {
        int room = list->room ? 2 * list->room : 32;
        void *items = td_realloc(list->items, (size_t)room * size);
        if (!items)
            return NULL;
        list->items = items;
        list->room = room;
    }
    return (char *)list->items + (size_t)list->n++ * size;
}

static inline void td_list_clear(td_list *list) {
    td_free(list->items);
    *list = (td_list){0};
}

#endif

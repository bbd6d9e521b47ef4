/* list.h: items in one block that grows. */
#ifndef TD_CORE_LIST_H
#define TD_CORE_LIST_H

#include "engine/core/memory.h"

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

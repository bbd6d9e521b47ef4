/* ring.c: see ring.h. */
#include "repl/edit/ring.h"

void ring_add(ring *r, const char *text, size_t n, ring_join join) {
    if (n == 0)
        return;
    bool kept = false;
    if (join != RING_NEW && r->n > 0) {
        bytes *item = &r->items[r->newest];
        kept = bytes_insert(item, join == RING_APPEND ? item->len : 0, text, n);
    } else {
        int next = (r->newest + 1) % RING_SIZE;
        kept = bytes_set(&r->items[next], text, n);
        if (kept) {
            r->newest = next;
            r->n += r->n < RING_SIZE;
        }
    }
    (void)kept; /* without memory the text is gone, which undo brings back */
    r->shown = r->newest;
}

const bytes *ring_newest(ring *r) {
    r->shown = r->newest;
    return r->n > 0 ? &r->items[r->newest] : NULL;
}

const bytes *ring_older(ring *r) {
    if (r->n == 0)
        return NULL;
    int age = (r->newest - r->shown + RING_SIZE) % RING_SIZE;
    age = (age + 1) % r->n;
    r->shown = (r->newest - age + RING_SIZE) % RING_SIZE;
    return &r->items[r->shown];
}

void ring_clear(ring *r) {
    for (int i = 0; i < RING_SIZE; i++)
        bytes_clear(&r->items[i]);
    *r = (ring){0};
}

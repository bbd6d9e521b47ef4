/* ring.h: the texts that were cut out, to be put back. */
#ifndef TIDE_EDIT_RING_H
#define TIDE_EDIT_RING_H

#include "repl/edit/bytes.h"

enum { RING_SIZE = 16 };

/* Zeroed it is empty. */
typedef struct ring {
    bytes items[RING_SIZE];
    int n, newest, shown; /* `shown`: which one was put in last */
} ring;

typedef enum ring_join { RING_NEW, RING_APPEND, RING_PREPEND } ring_join;

/* A text that was cut out: one of its own, or behind or before the newest. */
void ring_add(ring *r, const char *text, size_t n, ring_join join);
/* The newest, and from then on older ones in turn; borrowed, NULL: there are none. */
const bytes *ring_newest(ring *r);
const bytes *ring_older(ring *r);
void ring_clear(ring *r);

#endif

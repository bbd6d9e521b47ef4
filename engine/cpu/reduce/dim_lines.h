/* dim_lines.h: a tensor as contiguous lines along one dim, one line after the other, which is how
 * sorts and scans see it. */
#ifndef TD_CPU_REDUCE_DIM_LINES_H
#define TD_CPU_REDUCE_DIM_LINES_H

#include "engine/core/tensor.h"
#include "engine/core/threads.h"

#include <string.h>

/* x with `dim` last, row-major (a 0-dim x: one line of one element): new; x's memory where it lies
 * so already. */
td_status td_lines_of(td_tensor *x, int dim, td_tensor **lines) TD_MUST_CHECK;

/* Where the lines of `out` (NULL: none) are to be written: out's memory where it lies so, else
 * fresh; new. td_lines_put brings them home. */
td_status td_lines_for(td_tensor *out, int dim, td_tensor **lines) TD_MUST_CHECK;
td_status td_lines_put(td_tensor *out, int dim, td_tensor *lines) TD_MUST_CHECK;

/* Room for n things of a size: a tensor, because its pages are kept warm; new. */
td_status td_room(int64_t n, size_t size, td_tensor **room) TD_MUST_CHECK;

/* td_parallel_for over lines, where *room is memory of so many bytes for each worker, one after the
 * other, while it runs. */
td_status td_for_lines(int64_t lines, int64_t cost, int64_t bytes, char **room, td_range_fn fn,
                       void *ctx) TD_MUST_CHECK;

/* Lines of n elements that lie one behind the other; one element of each is its result. */
typedef struct td_picked_lines {
    const char *x;
    char *values;
    int64_t *index; /* where in its line it stands; or NULL */
    td_dtype dtype;
    size_t size;
    int64_t n;
} td_picked_lines;

static inline void td_pick(const td_picked_lines *l, int64_t line, int64_t place) {
    const char *x = l->x + (size_t)(line * l->n) * l->size;
    memcpy(l->values + (size_t)line * l->size, x + (size_t)place * l->size, l->size);
    if (l->index)
        l->index[line] = place;
}

#endif

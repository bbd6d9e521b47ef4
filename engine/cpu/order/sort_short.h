/* sort_short.h: many short lines in order, side by side. */
#ifndef TD_CPU_ORDER_SORT_SHORT_H
#define TD_CPU_ORDER_SORT_SHORT_H

#include "engine/core/dtype.h"
#include "engine/core/status.h"

/* Lines of n elements that lie one behind the other; `first` results of each, likewise. */
typedef struct td_short_lines {
    const char *x;
    char *values;   /* or NULL, */
    int64_t *index; /* as this may be */
    td_dtype dtype;
    bool descending;
    int64_t lines, n, first;
} td_short_lines;

/* Are they short enough, and enough of them, and can this instruction set do it? */
bool td_are_short_lines(const td_short_lines *l);

/* Equal elements stay in their order; NaN is greatest. EINTR. */
td_status td_sort_short(const td_short_lines *l) TD_MUST_CHECK;

#endif

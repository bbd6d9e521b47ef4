/* table.h: what a recording spent its time on, by name, as text. */
#ifndef TIDE_PROFILER_TABLE_H
#define TIDE_PROFILER_TABLE_H

#include "profiler/event.h"

typedef enum tide_sort {
    TIDE_SORT_SELF,
    TIDE_SORT_TOTAL,
    TIDE_SORT_CALLS,
    TIDE_SORT_NAME
} tide_sort;

/* All events of one kind and name. */
typedef struct tide_row {
    const char *name;
    uint8_t kind;
    int64_t calls, self_ns, total_ns; /* total: events within others of the same name not twice */
} tide_row;

/* Rows in order; td_free them. NULL: out of memory (message set). */
tide_row *tide_rows(const tide_recording *recording, tide_sort sort, int *count);

/* The table as text of at most `limit` rows (0: all), for td_free. NULL: out of memory. */
char *tide_table(const tide_recording *recording, tide_sort sort, int limit);

#endif

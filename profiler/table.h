/* table.h: what a recording spent its time on, by name, as text. */
#ifndef TIDE_PROFILER_TABLE_H
#define TIDE_PROFILER_TABLE_H

#include "profiler/event.h"

typedef enum tide_sort {
    TIDE_SORT_SELF,
    TIDE_SORT_TOTAL,
    TIDE_SORT_CALLS,
    TIDE_SORT_NAME,
    TIDE_SORT_MEMORY,
    TIDE_SORT_FLOPS,
    TIDE_SORT_DEVICE
} tide_sort;

typedef struct tide_table_options {
    tide_sort sort;
    int limit;         /* rows; 0: all */
    bool by_shape;     /* calls with other shapes are other rows */
    bool without_work; /* though results were recorded, for another's sake */
    double peak_flops; /* of the machine, each second; 0: not known */
    double peak_bytes; /* that memory gives, each second; 0: not known */
} tide_table_options;

/* All events of one kind and name. */
typedef struct tide_row {
    const char *name;
    uint8_t kind;
    const int64_t *inputs; /* of rows by shape: one call's, ninputs; for tide_input_next */
    uint8_t ninputs;
    int64_t calls, self_ns, total_ns; /* total: events within others of the same name not twice */
    int64_t memory; /* bytes that its calls themselves took, less what they gave */
    int64_t
        memory_total; /* and what was called inside; calls within others of the name not twice */
    double flops;     /* tide_work_of, all calls */
    double bytes;     /* the same of calls whose kernel was timed, in moved_ns */
    int64_t moved_ns;
    int64_t device_ns;       /* what devices did for its calls themselves */
    int64_t device_total_ns; /* and for what was called inside; of devices' rows both their own */
} tide_row;

/* Rows in order; td_free them. NULL: out of memory (message set). */
tide_row *tide_rows(const tide_recording *recording, const tide_table_options *options, int *count);

/* The table as text, for td_free: with columns of devices' time, memory, FLOP/s and bandwidth where
 * these were recorded, and their shares where the peaks are known. NULL: out of memory. */
char *tide_table(const tide_recording *recording, const tide_table_options *options);

/* How long at least one device was at work, ns. */
int64_t tide_busy_ns(const tide_recording *recording);

#endif

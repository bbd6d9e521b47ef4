/* device_rows.h: what a log of devices is, for device_log.c and device_rows.c alone. */
#ifndef TIDE_PROFILER_DEVICE_ROWS_H
#define TIDE_PROFILER_DEVICE_ROWS_H

#include "engine/core/activity.h"
#include "engine/core/map.h"
#include "profiler/device_log.h"

/* A recording's clock and a source's at one moment. */
typedef struct tide_sighting {
    uint64_t ticks, ns;
} tide_sighting;

/* td_activity, with a name that the log keeps. */
typedef struct tide_activity {
    uint64_t start_ns, end_ns, launch_ns;
    int64_t bytes;
    const char *name;
    uint64_t number;
    uint32_t thread;
    td_stream track;
    uint8_t kind;
} tide_activity;

struct tide_device_log {
    struct tide_device_log *next; /* of those that are open */
    int64_t most;
    bool shared; /* others were open meanwhile */
    bool heard[TD_DEVICE_TYPES];
    tide_sighting begin[TD_DEVICE_TYPES], end[TD_DEVICE_TYPES];
    const char *note; /* what is wrong with the times; static, or NULL */
    tide_activity *list;
    int64_t count, room;
    int64_t dropped, evicted;
    td_code_tally code; /* as it was at the beginning; once closed, what came to it */
    td_map names;
    tide_words *words;
};

#endif

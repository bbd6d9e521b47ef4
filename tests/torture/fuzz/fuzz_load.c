/* fuzz_load.c: profiler.load of any file: refused in one line, or a recording that nests, that all
 * views of recordings show, and that is the same once it was written and read again.
 */
#include "tests/torture/fuzz/bytes.h"

#include "engine/core/memory.h"
#include "profiler/chrome_trace.h"
#include "profiler/stacks.h"
#include "profiler/table.h"
#include "profiler/timeline.h"
#include "profiler/trace_read.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void check_event(const tide_recording *r, int64_t at) {
    const tide_event *e = &r->events[at];
    HOLDS(e->name && e->start_ns >= 0 && e->end_ns >= e->start_ns);
    HOLDS(e->kind < TIDE_EVENT_KINDS && e->thread >= 1 && e->thread <= r->ntracks);
    HOLDS(e->parent >= -1 && e->parent < at);
    const int64_t *words = e->inputs;
    for (int k = 0; e->kind != TD_EVENT_ALLOC && k < e->ninputs; k++)
        HOLDS(tide_input_next(&words).ndim >= 0);
    if (e->parent < 0)
        return;
    const tide_event *outer = &r->events[e->parent];
    HOLDS(outer->thread == e->thread && outer->start_ns <= e->start_ns);
    HOLDS(e->kind == TD_EVENT_ALLOC || outer->end_ns >= e->end_ns);
}

static void check_text(char *text) {
    HOLDS(text);
    td_free(text);
}

static void check_views(const tide_recording *r) {
    tide_window all = tide_window_of(r);
    check_text(tide_table(r, &(tide_table_options){.limit = 10}));
    check_text(tide_table(r, &(tide_table_options){.sort = TIDE_SORT_FLOPS, .by_shape = true}));
    check_text(tide_timeline_text(r, all, 40, true));
    check_text(tide_timeline_data(r, all, 100));
}

static void check_written(const tide_recording *r) {
    static char path[64];
    tide_recording again;
    snprintf(path, sizeof path, "/tmp/fuzz-load.%ld.json", (long)getpid());
    HOLDS(tide_write_stacks(r, path) == TD_OK);
    HOLDS(tide_write_chrome_trace(r, path) == TD_OK);
    td_status status = tide_read_trace(path, &again);
    unlink(path);
    HOLDS(r->count ? status == TD_OK && again.count >= r->count : true);
    tide_recording_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *path = bytes_file(data, size);
    tide_recording r;
    if (tide_read_trace(path, &r)) {
        HOLDS(strncmp(td_error_message(), path, strlen(path)) == 0);
        HOLDS(!strchr(td_error_message(), '\n') && !r.events);
        return 0;
    }
    for (int64_t k = 0; k < r.count; k++)
        check_event(&r, k);
    check_views(&r);
    check_written(&r);
    tide_recording_free(&r);
    return 0;
}

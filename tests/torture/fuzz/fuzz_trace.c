/* fuzz_trace.c: ranges under any name, in a Chrome trace: JSON that reads back. */
#include "tests/torture/fuzz/bytes.h"

#include "engine/core/memory.h"
#include "profiler/chrome_trace.h"
#include "profiler/recorder.h"
#include "profiler/table.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void check_trace(const tide_recording *recording) {
    static char path[64];
    snprintf(path, sizeof path, "/tmp/fuzz-trace.%ld.json", (long)getpid());
    HOLDS(tide_write_chrome_trace(recording, path) == TD_OK);
    json_error_t error;
    json_t *trace = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    unlink(path);
    HOLDS(json_array_size(json_object_get(trace, "traceEvents")) > 1);
    json_decref(trace);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *name = bytes_text(data, size);
    tide_recording recording;
    tide_recorder *recorder = tide_recorder_start(NULL);
    HOLDS(recorder);
    tide_range outer = tide_range_begin(TD_EVENT_RANGE, name);
    tide_range inner = tide_range_begin(TD_EVENT_RANGE, size ? name + 1 : name);
    tide_range_end(inner);
    tide_range_end(outer);
    HOLDS(tide_recorder_stop(recorder, &recording) == TD_OK);
    check_trace(&recording);
    char *table = tide_table(&recording, &(tide_table_options){.limit = 10});
    HOLDS(table);
    td_free(table);
    tide_recording_free(&recording);
    free(name);
    return 0;
}

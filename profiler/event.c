/* event.c: see event.h. */
#include "profiler/event.h"

#include "engine/core/memory.h"

#include <string.h>

enum { WORDS = 2048 };

const char *tide_event_kind_name(int kind) {
    static const char *const names[TIDE_EVENT_KINDS] = {
        [TD_EVENT_OP] = "operator",           [TD_EVENT_KERNEL] = "kernel",
        [TD_EVENT_BACKWARD] = "backward",     [TD_EVENT_RANGE] = "range",
        [TD_EVENT_ALLOC] = "memory",          [TD_EVENT_ACTIVITY] = "device",
        [TIDE_EVENT_STEP] = "step",           [TIDE_EVENT_FUNCTION] = "function",
        [TIDE_EVENT_OPTIMIZER] = "optimizer", [TIDE_EVENT_DATA] = "data",
        [TIDE_EVENT_COPY] = "copy",           [TIDE_EVENT_COLLECT] = "collector",
        [TIDE_EVENT_RUNTIME] = "runtime",     [TIDE_EVENT_TRANSFER] = "transfer",
        [TIDE_EVENT_SET] = "memset",          [TIDE_EVENT_COMPILE] = "compile",
        [TD_EVENT_LOAD] = "loading",          [TIDE_EVENT_COLLECTIVE] = "collective",
        [TIDE_EVENT_WAIT] = "wait",
    };
    return names[kind];
}

tide_input tide_input_next(const int64_t **at) {
    const int64_t *words = *at;
    uint64_t head = (uint64_t)words[0];
    tide_input in = {.dtype = (td_dtype)(head & 0xFF),
                     .ndim = (int)(head >> 8 & 0xFF),
                     .dense = (head & TIDE_INPUT_DENSE) != 0,
                     .known = (head & TIDE_INPUT_KNOWN) != 0,
                     .requires_grad = (head & TIDE_INPUT_GRAD) != 0,
                     .version = (uint32_t)(head >> 32)};
    if (in.known) {
        in.storage = (uint64_t) * ++words;
        in.offset = *++words;
    }
    in.sizes = words + 1;
    *at = words + 1 + in.ndim;
    if (head & TIDE_INPUT_STRIDED) {
        in.strides = *at;
        *at += in.ndim;
    }
    return in;
}

const int64_t *tide_event_arguments(const tide_event *event, int64_t *count) {
    const int64_t *at = event->inputs;
    bool known = event->kind == TD_EVENT_OP && at;
    for (int k = 0; known && k < event->ninputs; k++)
        known = tide_input_next(&at).known;
    *count = known ? *at : 0;
    return known ? at + 1 : NULL;
}

int64_t tide_input_numel(const tide_input *in) {
    int64_t n = 1;
    for (int d = 0; d < in->ndim; d++)
        n *= in->sizes[d];
    return n;
}

const char *tide_input_dtype(const tide_input *in) {
    return in->dtype < TD_DTYPE_COUNT ? td_dtype_name(in->dtype) : TIDE_DTYPE_UNKNOWN;
}

void tide_recording_free(tide_recording *recording) {
    td_free(recording->events);
    td_free(recording->tracks);
    tide_words_free(recording->words);
    *recording = (tide_recording){0};
}

/* ---- words ---- */

int64_t *tide_words_new(tide_words **words, size_t n) {
    tide_words *w = *words;
    if (!w || w->size - w->used < n) {
        size_t size = n > WORDS ? n : WORDS;
        w = td_malloc(sizeof *w + size * sizeof *w->words);
        if (!w)
            return NULL;
        w->next = *words;
        w->used = 0;
        w->size = size;
        *words = w;
    }
    w->used += n;
    return &w->words[w->used - n];
}

const char *tide_words_text(tide_words **words, const char *text, size_t len) {
    char *kept = (char *)tide_words_new(words, len / sizeof(int64_t) + 1);
    if (!kept)
        return NULL;
    memcpy(kept, text, len);
    kept[len] = '\0';
    return kept;
}

void tide_words_free(tide_words *w) {
    for (tide_words *next; w; w = next) {
        next = w->next;
        td_free(w);
    }
}

/* gather.c: see gather.h. */
#include "jupyter-kernel/gather.h"

#include <stdlib.h>
#include <string.h>

tk_gather *tk_gather_new(const char *comm, json_t *outputs, tk_gather *outer) {
    tk_gather *gather = calloc(1, sizeof *gather);
    if (!gather) {
        json_decref(outputs);
        return NULL;
    }
    *gather = (tk_gather){.outer = outer,
                          .comm = strdup(comm),
                          .outputs = outputs ? outputs : json_array(),
                          .ids = json_array()};
    for (size_t k = 0; k < json_array_size(outputs); k++)
        json_array_append_new(gather->ids, json_null());
    if (gather->comm && gather->outputs && gather->ids)
        return gather;
    tk_gather_free(gather);
    return NULL;
}

tk_gather *tk_gather_free(tk_gather *gather) {
    tk_gather *outer = gather->outer;
    json_decref(gather->outputs);
    json_decref(gather->ids);
    free(gather->comm);
    free(gather);
    return outer;
}

static void clear(tk_gather *gather) {
    json_array_clear(gather->outputs);
    json_array_clear(gather->ids);
    gather->clear_next = false;
    gather->dirty = true;
}

/* `output` is stolen; NULL: memory was out. */
static void append(tk_gather *gather, json_t *output, json_t *id) {
    if (gather->clear_next)
        clear(gather);
    if (output && json_array_append_new(gather->outputs, output) == 0)
        json_array_append_new(gather->ids, id ? json_copy(id) : json_null());
    gather->dirty = true;
}

/* A part of the message as an output of that type. */
static json_t *output_of(const char *type, json_t *content) {
    json_t *output = json_copy(content);
    json_object_del(output, "transient");
    json_object_del(output, "status");
    json_object_set_new(output, "output_type", json_string(type));
    return output;
}

/* Goes on with the text of the last output, where that is the same stream; false: it isn't. */
static bool continue_stream(tk_gather *gather, json_t *content) {
    size_t n = json_array_size(gather->outputs);
    json_t *last = n ? json_array_get(gather->outputs, n - 1) : NULL;
    const json_t *name = json_object_get(last, "name"), *before = json_object_get(last, "text");
    const json_t *more = json_object_get(content, "text");
    if (gather->clear_next || !name || !json_equal(name, json_object_get(content, "name")))
        return false;
    size_t len = json_string_length(before), add = json_string_length(more);
    char *text = malloc(len + add + 1);
    if (!text)
        return true; /* this part is lost */
    memcpy(text, json_string_value(before), len);
    memcpy(text + len, json_string_value(more), add);
    json_object_set_new(last, "text", json_stringn(text, len + add));
    free(text);
    gather->dirty = true;
    return true;
}

/* Displays of that id, in this widget and in those around it. */
static void update_displays(tk_gather *gather, json_t *content) {
    json_t *id = json_object_get(json_object_get(content, "transient"), "display_id");
    for (; id && gather; gather = gather->outer)
        for (size_t k = 0; k < json_array_size(gather->ids); k++)
            if (json_equal(json_array_get(gather->ids, k), id)) {
                json_array_set_new(gather->outputs, k, output_of("display_data", content));
                gather->dirty = true;
            }
}

bool tk_gather_add(tk_gather *gather, const char *type, json_t *content) {
    if (strcmp(type, "update_display_data") == 0) {
        update_displays(gather, content);
        return false;
    }
    if (strcmp(type, "clear_output") == 0) {
        if (json_is_true(json_object_get(content, "wait")))
            gather->clear_next = true;
        else
            clear(gather);
        return true;
    }
    if (strcmp(type, "stream") == 0) {
        if (!continue_stream(gather, content))
            append(gather, output_of(type, content), NULL);
        return true;
    }
    if (strcmp(type, "display_data") == 0) {
        append(gather, output_of(type, content),
               json_object_get(json_object_get(content, "transient"), "display_id"));
        return true;
    }
    return false;
}

json_t *tk_gather_update(tk_gather *gather) {
    gather->dirty = false;
    return json_pack("{s:s, s:{s:s, s:{s:O}, s:[]}}", "comm_id", gather->comm, "data", "method",
                     "update", "state", "outputs", gather->outputs, "buffer_paths");
}

/* content.c: see content.h. */
#include "jupyter-kernel/content.h"
#include "jupyter-kernel/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

json_t *tk_json_text(const char *text, size_t len) {
    json_t *value = json_stringn(text ? text : "", text ? len : 0);
    if (value)
        return value;
    tk_buffer mended = {0};
    tk_utf8_rest rest = {0};
    if (tk_utf8_repair(&rest, text, len, &mended) && tk_utf8_finish(&rest, &mended))
        value = json_stringn(mended.data, mended.len);
    tk_buffer_clear(&mended);
    return value;
}

json_t *tk_json_string(const char *text) {
    return tk_json_text(text, text ? strlen(text) : 0);
}

static bool is_json_type(const char *type) {
    size_t len = strlen(type);
    return strcmp(type, "application/json") == 0 ||
           (len > 5 && strcmp(type + len - 5, "+json") == 0);
}

json_t *tk_json_bundle(const tide_bundle *bundle) {
    json_t *object = json_object();
    for (int i = 0; object && i < bundle->n; i++) {
        const tide_mime *mime = &bundle->entries[i];
        json_t *value = NULL;
        if (is_json_type(mime->type))
            value = json_loadb(mime->data, mime->len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        if (!value)
            value = tk_json_text(mime->data, mime->len);
        /* A type that is no UTF-8 has no place in JSON: the others are shown without it. */
        (void)json_object_set_new(object, mime->type, value);
    }
    return object;
}

json_t *tk_json_metadata(const tide_bundle *bundle) {
    json_t *metadata = bundle->metadata ? json_loads(bundle->metadata, JSON_ALLOW_NUL, NULL) : NULL;
    return metadata ? metadata : json_object();
}

json_t *tk_json_error(const tide_result *result) {
    json_t *traceback = json_array();
    for (int i = 0; i < result->n_traceback; i++)
        json_array_append_new(traceback, tk_json_string(result->traceback[i]));
    return json_pack("{s:s, s:o, s:o, s:o}", "status", "error", "ename",
                     tk_json_string(result->ename), "evalue",
                     tk_json_string(tide_result_message(result)), "traceback", traceback);
}

json_t *tk_json_bad_request(const char *format, ...) {
    char line[256];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    return json_pack("{s:s, s:s, s:o, s:[]}", "status", "error", "ename", "BadRequest", "evalue",
                     tk_json_string(line), "traceback");
}

const char *tk_field_string(const json_t *content, const char *name, size_t *len) {
    const json_t *value = json_object_get(content, name);
    *len = json_string_length(value);
    return json_string_value(value);
}

bool tk_field_bool(const json_t *content, const char *name, bool otherwise) {
    const json_t *value = json_object_get(content, name);
    return json_is_boolean(value) ? json_is_true(value) : otherwise;
}

long tk_field_integer(const json_t *content, const char *name, long otherwise) {
    const json_t *value = json_object_get(content, name);
    return json_is_integer(value) ? (long)json_integer_value(value) : otherwise;
}

/* assist.c: help while one types: completion, inspection, is_complete, history.
 *
 * Front ends count a cursor in code points, the session in bytes. Main thread only. */
#include "jupyter-kernel/content.h"
#include "jupyter-kernel/handlers.h"
#include "jupyter-kernel/utf8.h"

#include <limits.h>
#include <string.h>

/* Code and the byte its cursor is at; NULL when the request has no code. */
static const char *code_and_cursor(const tk_request *request, size_t *len, size_t *cursor) {
    const json_t *content = request->message->content;
    const char *code = tk_field_string(content, "code", len);
    if (!code)
        return NULL;
    long point = tk_field_integer(content, "cursor_pos", LONG_MAX);
    *cursor = tk_utf8_offset(code, *len, point > 0 ? (size_t)point : 0);
    return code;
}

static json_t *no_code(const tk_request *request) {
    return tk_json_bad_request("%s: field \"code\" is not a string", request->message->type);
}

json_t *tk_handle_complete(tk_kernel *kernel, const tk_request *request) {
    size_t len, cursor;
    const char *code = code_and_cursor(request, &len, &cursor);
    tide_completions found;
    if (!code)
        return no_code(request);
    tide_session_complete(kernel->session, code, len, cursor, &found);
    json_t *matches = json_array(), *types = json_array();
    int start = (int)tk_utf8_points(code, len, found.start);
    int end = (int)tk_utf8_points(code, len, found.end);
    for (int i = 0; i < found.n; i++) {
        json_array_append_new(matches, tk_json_string(found.matches[i]));
        json_array_append_new(types, json_pack("{s:i, s:i, s:o, s:o}", "start", start, "end", end,
                                               "text", tk_json_string(found.matches[i]), "type",
                                               tk_json_string(found.types[i])));
    }
    tide_completions_clear(&found);
    return json_pack("{s:s, s:o, s:i, s:i, s:{s:o}}", "status", "ok", "matches", matches,
                     "cursor_start", start, "cursor_end", end, "metadata",
                     "_jupyter_types_experimental", types);
}

json_t *tk_handle_inspect(tk_kernel *kernel, const tk_request *request) {
    size_t len, cursor;
    const char *code = code_and_cursor(request, &len, &cursor);
    tide_bundle bundle;
    if (!code)
        return no_code(request);
    long detail = tk_field_integer(request->message->content, "detail_level", 0);
    bool found = tide_session_inspect(kernel->session, code, len, cursor, detail > 0, &bundle);
    json_t *content = json_pack("{s:s, s:b, s:o, s:{}}", "status", "ok", "found", found, "data",
                                found ? tk_json_bundle(&bundle) : json_object(), "metadata");
    tide_bundle_clear(&bundle);
    return content;
}

json_t *tk_handle_is_complete(tk_kernel *kernel, const tk_request *request) {
    size_t len;
    const char *code = tk_field_string(request->message->content, "code", &len);
    char indent[128] = "";
    if (!code)
        return no_code(request);
    switch (tide_session_is_complete(kernel->session, code, len, indent, sizeof indent)) {
    case TIDE_COMPLETE:
        return json_pack("{s:s}", "status", "complete");
    case TIDE_INCOMPLETE:
        return json_pack("{s:s, s:s}", "status", "incomplete", "indent", indent);
    case TIDE_INVALID:
        break;
    }
    return json_pack("{s:s}", "status", "invalid");
}

static int clamp(long n) {
    return n < 0 ? 0 : n > INT_MAX ? INT_MAX : (int)n;
}

json_t *tk_handle_history(tk_kernel *kernel, const tk_request *request) {
    const json_t *content = request->message->content;
    tide_history_list list = {0};
    size_t len;
    const char *access = tk_field_string(content, "hist_access_type", &len);
    if (access && strcmp(access, "tail") == 0) {
        tide_session_history_tail(kernel->session, clamp(tk_field_integer(content, "n", 10)),
                                  &list);
    } else if (access && strcmp(access, "range") == 0) {
        tide_session_history_range(kernel->session, tk_field_integer(content, "session", 0),
                                   clamp(tk_field_integer(content, "start", 1)),
                                   clamp(tk_field_integer(content, "stop", INT_MAX)), &list);
    } else if (access && strcmp(access, "search") == 0) {
        const char *pattern = tk_field_string(content, "pattern", &len);
        tide_session_history_search(kernel->session, pattern ? pattern : "*",
                                    clamp(tk_field_integer(content, "n", 0)),
                                    tk_field_bool(content, "unique", false), &list);
    } else {
        return tk_json_bad_request(
            "history_request: field \"hist_access_type\" is not \"tail\", \"range\" or \"search\"");
    }
    /* Outputs of this session are kept; others, where they are asked for, are null. */
    bool output = tk_field_bool(content, "output", false);
    json_t *history = json_array();
    for (int i = 0; i < list.n; i++) {
        const tide_history_entry *entry = &list.entries[i];
        json_t *input = tk_json_text(entry->input, entry->len);
        json_t *shown = entry->output ? tk_json_string(entry->output) : json_null();
        json_array_append_new(history,
                              json_pack("[I, i, o]", (json_int_t)entry->session, entry->line,
                                        output ? json_pack("[o, O]", input, shown) : input));
        json_decref(shown);
    }
    tide_history_list_clear(&list);
    return json_pack("{s:s, s:o}", "status", "ok", "history", history);
}

/* execute.c: one cell: announced, evaluated, its value or error published, answered.
 *
 * Main thread only. What the cell prints and displays while it runs goes through frontend.c. */
#include "jupyter-kernel/content.h"
#include "jupyter-kernel/handlers.h"

#include <stdlib.h>
#include <string.h>

/* A cell's request, read. */
typedef struct tk_cell {
    const char *code;
    size_t len;
    bool silent, store_history, stop_on_error;
    int count;
} tk_cell;

static void publish_input(tk_kernel *kernel, const tk_request *request, const tk_cell *cell) {
    tk_output_publish(kernel->output, "execute_input", request->parent,
                      json_pack("{s:o, s:i}", "code", tk_json_text(cell->code, cell->len),
                                "execution_count", cell->count));
}

static void publish_value(tk_kernel *kernel, const tk_request *request, const tk_cell *cell,
                          const tide_result *result) {
    tk_output_publish(kernel->output, "execute_result", request->parent,
                      json_pack("{s:i, s:o, s:o}", "execution_count", cell->count, "data",
                                tk_json_bundle(&result->value), "metadata",
                                tk_json_metadata(&result->value)));
}

static void publish_error(tk_kernel *kernel, const tk_request *request, const tide_result *result) {
    json_t *content = tk_json_error(result);
    json_object_del(content, "status"); /* the reply's field, not this message's */
    tk_output_publish(kernel->output, "error", request->parent, content);
}

/* {name: {status, data, metadata} or {status, ename, evalue, traceback}} */
static json_t *user_expressions(tk_kernel *kernel, json_t *expressions) {
    json_t *values = json_object(), *code;
    const char *name;
    json_object_foreach(expressions, name, code) {
        tide_result result;
        if (!json_is_string(code)) {
            json_object_set_new(values, name,
                                tk_json_bad_request("user_expressions: %s is not a string", name));
            continue;
        }
        tide_session_expression(kernel->session, json_string_value(code), json_string_length(code),
                                &result);
        json_t *value = result.outcome == TIDE_OK
                            ? json_pack("{s:s, s:o, s:{}}", "status", "ok", "data",
                                        tk_json_bundle(&result.value), "metadata")
                            : tk_json_error(&result);
        json_object_set_new(values, name, value);
        tide_result_clear(&result);
    }
    return values;
}

static json_t *payload(tk_kernel *kernel, const tide_result *result) {
    json_t *list = kernel->payload ? kernel->payload : json_array();
    kernel->payload = NULL;
    if (result->pager)
        json_array_append_new(list,
                              json_pack("{s:s, s:{s:o}, s:i}", "source", "page", "data",
                                        "text/plain", tk_json_string(result->pager), "start", 0));
    if (result->outcome == TIDE_EXIT)
        json_array_append_new(list, json_pack("{s:s, s:b}", "source", "ask_exit", "keepkernel", 0));
    return list;
}

/* The user's init.lua, ahead of the first cell and as a part of it: what it prints belongs there,
 * and an interrupt reaches it. False: it ended or stopped the cell, and its result is the cell's.
 */
static bool run_init(tk_kernel *kernel, tide_result *result) {
    bool first = !kernel->began;
    kernel->began = true;
    if (!first || !tide_session_run_init(kernel->session, result))
        return true;
    if (result->outcome == TIDE_EXIT || result->outcome == TIDE_INTERRUPTED)
        return false;
    for (int i = 0; i < result->n_traceback; i++) {
        tk_output_write(kernel->output, TK_PRINTED_ERR, result->traceback[i],
                        strlen(result->traceback[i]));
        tk_output_write(kernel->output, TK_PRINTED_ERR, "\n", 1);
    }
    tide_result_clear(result);
    return true;
}

/* Evaluates and publishes; gives the reply's content. */
static json_t *run(tk_kernel *kernel, const tk_request *request, const tk_cell *cell,
                   json_t *expressions) {
    tide_result result;
    json_t *content;
    tk_kernel_begin(kernel);
    if (run_init(kernel, &result))
        tide_session_eval(kernel->session, cell->code, cell->len,
                          cell->silent || !cell->store_history, &result);
    bool failed = result.outcome == TIDE_ERROR || result.outcome == TIDE_INTERRUPTED;
    json_t *values = failed ? NULL : user_expressions(kernel, expressions);
    tk_kernel_end(kernel);

    tk_capture_drain(kernel->capture);
    tk_output_flush(kernel->output, true);
    tk_output_gather_none(kernel->output);
    if (failed) {
        if (!cell->silent)
            publish_error(kernel, request, &result);
        content = tk_json_error(&result);
        if (cell->stop_on_error)
            tk_aborting_begin(&kernel->aborting, request->message->header);
    } else {
        if (!cell->silent && result.value.n > 0)
            publish_value(kernel, request, cell, &result);
        content = json_pack("{s:s, s:o}", "status", "ok", "user_expressions", values);
    }
    json_object_set_new(content, "execution_count", json_integer(cell->count));
    json_object_set_new(content, "payload", payload(kernel, &result));
    if (result.outcome == TIDE_EXIT)
        tk_kernel_stop(kernel, result.exit_code);
    tide_result_clear(&result);
    return content;
}

/* Without execution_count: a front end would put it at a cell that did not run. */
static json_t *aborted(void) {
    return json_pack("{s:s, s:s, s:s, s:[], s:[]}", "status", "error", "ename", "Aborted", "evalue",
                     "not run, since a cell before it failed", "traceback", "payload");
}

json_t *tk_handle_execute(tk_kernel *kernel, const tk_request *request) {
    const json_t *content = request->message->content;
    tk_cell cell = {.count = tide_session_count(kernel->session)};
    bool notebook = json_is_string(json_object_get(request->message->metadata, "cellId"));
    if (tk_aborting_covers(&kernel->aborting, request->message->header, notebook, tk_kernel_now()))
        return aborted();
    cell.code = tk_field_string(content, "code", &cell.len);
    if (!cell.code)
        return tk_json_bad_request("execute_request: field \"code\" is not a string");
    cell.silent = tk_field_bool(content, "silent", false);
    cell.store_history = tk_field_bool(content, "store_history", !cell.silent);
    cell.stop_on_error = tk_field_bool(content, "stop_on_error", true);

    json_decref(kernel->payload); /* of what was no cell */
    kernel->payload = NULL;
    kernel->current = request;
    tk_output_parent(kernel->output, request->parent);
    if (!cell.silent)
        publish_input(kernel, request, &cell);
    json_t *reply = run(kernel, request, &cell, json_object_get(content, "user_expressions"));
    free(kernel->output_parent); /* of a comm that the cell called for */
    kernel->output_parent = NULL;
    kernel->current = NULL;
    return reply;
}

/* comm.c: messages of comms, handed to the session; what a callback prints, displays or raises is
 * output of the request that the session names (session.h), or of the message itself.
 */
#include "jupyter-kernel/content.h"
#include "jupyter-kernel/handlers.h"
#include "jupyter-kernel/log.h"

#include <stdlib.h>
#include <string.h>

/* {comm_id: {target_name}} of those that are open. */
json_t *tk_handle_comm_info(tk_kernel *kernel, const tk_request *request) {
    size_t len;
    const char *target = tk_field_string(request->message->content, "target_name", &len);
    char *text = tide_session_comms(kernel->session, target && *target ? target : NULL);
    json_t *comms = text ? json_loads(text, JSON_ALLOW_NUL, NULL) : NULL;
    free(text);
    return json_pack("{s:s, s:o}", "status", "ok", "comms", comms ? comms : json_object());
}

/* What a callback raised, where what it printed went. */
static void publish_failure(tk_kernel *kernel, const tk_request *request,
                            const tide_result *result) {
    json_t *content = tk_json_error(result);
    json_object_del(content, "status");
    tk_output_publish(kernel->output, "error",
                      kernel->output_parent ? kernel->output_parent : request->parent, content);
}

static void run(tk_kernel *kernel, const tk_request *request, const tide_comm_message *message) {
    tide_result result;
    kernel->current = request;
    tk_output_parent(kernel->output, request->parent);
    tk_kernel_begin(kernel);
    tide_session_comm(kernel->session, message, &result);
    tk_kernel_end(kernel);
    tk_capture_drain(kernel->capture);
    tk_output_flush(kernel->output, true);
    tk_output_gather_none(kernel->output);
    if (result.outcome == TIDE_ERROR || result.outcome == TIDE_INTERRUPTED)
        publish_failure(kernel, request, &result);
    else if (result.outcome == TIDE_EXIT)
        tk_kernel_stop(kernel, result.exit_code);
    tide_result_clear(&result);
    free(kernel->output_parent);
    kernel->output_parent = NULL;
    kernel->current = NULL;
}

json_t *tk_handle_comm(tk_kernel *kernel, const tk_request *request) {
    const tk_message *message = request->message;
    char *content = json_dumps(message->content, JSON_COMPACT);
    tide_bytes *buffers = calloc(message->n_buffers + 1, sizeof *buffers);
    if (content && buffers) {
        for (size_t i = 0; i < message->n_buffers; i++)
            buffers[i] = (tide_bytes){message->buffers[i].data, message->buffers[i].len};
        tide_comm_message given = {.type = message->type,
                                   .content = {content, strlen(content)},
                                   .buffers = buffers,
                                   .n_buffers = message->n_buffers};
        run(kernel, request, &given);
    } else {
        tk_log("dropped a %s: out of memory", message->type);
    }
    free(content);
    free(buffers);
    return NULL;
}

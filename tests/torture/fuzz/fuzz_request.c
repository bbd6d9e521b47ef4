/* fuzz_request.c: requests of an editor with any JSON as their content: each is answered by JSON.
 */
#include "tests/torture/fuzz/bytes.h"

#include "jupyter-kernel/handlers.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const struct {
        const char *type;
        tk_handler handle;
    } rows[] = {{"complete_request", tk_handle_complete},
                {"inspect_request", tk_handle_inspect},
                {"is_complete_request", tk_handle_is_complete},
                {"history_request", tk_handle_history},
                {"comm_info_request", tk_handle_comm_info}};
    int row = bytes_choice(&data, &size) % 5;
    json_t *content = json_loadb((const char *)data, size, JSON_ALLOW_NUL, NULL);
    if (!json_is_object(content)) {
        json_decref(content);
        return 0;
    }
    tk_kernel kernel = {.session = bytes_session()};
    tk_message message = {.type = rows[row].type, .content = content};
    tk_request request = {.message = &message, .parent = "{}"};
    json_t *reply = rows[row].handle(&kernel, &request);
    char *text = reply ? json_dumps(reply, 0) : NULL;
    HOLDS(json_is_object(reply) && json_object_get(reply, "status") && text);
    free(text);
    json_decref(reply);
    json_decref(content);
    return 0;
}

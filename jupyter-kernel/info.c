/* info.c: requests about the kernel itself. They touch no session, so both threads serve them.
 *
 * There are no subshells (JEP 91): a Lua state runs on one thread, and what shows that cells
 * compute is answered on control. `supported_features` names none, and who asks for one all the
 * same is told. */
#include "jupyter-kernel/content.h"
#include "jupyter-kernel/handlers.h"
#include "repl/session/session.h"

#include <lua.h>

#define LUA_VERSION_TEXT LUA_VERSION_MAJOR "." LUA_VERSION_MINOR "." LUA_VERSION_RELEASE

static json_t *help_links(void) {
    return json_pack("[{s:s, s:s}]", "text", "Lua 5.4 Reference Manual", "url",
                     "https://www.lua.org/manual/5.4/");
}

json_t *tk_handle_kernel_info(tk_kernel *kernel, const tk_request *request) {
    (void)kernel;
    (void)request;
    json_t *language = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "name", "lua", "version",
                                 LUA_VERSION_TEXT, "mimetype", "text/x-lua", "file_extension",
                                 ".lua", "pygments_lexer", "lua", "codemirror_mode", "lua");
    return json_pack("{s:s, s:s, s:s, s:s, s:o, s:s++, s:o, s:b, s:[]}", "status", "ok",
                     "protocol_version", TK_PROTOCOL_VERSION, "implementation", "tide",
                     "implementation_version", tide_session_version(), "language_info", language,
                     "banner", "Tide ", tide_session_version(),
                     ", a laboratory for tensors (" LUA_RELEASE ")", "help_links", help_links(),
                     "debugger", 0, "supported_features");
}

json_t *tk_handle_connect(tk_kernel *kernel, const tk_request *request) {
    (void)request;
    const int *ports = kernel->connection.ports;
    return json_pack("{s:s, s:i, s:i, s:i, s:i, s:i}", "status", "ok", "shell_port",
                     ports[TK_SHELL], "iopub_port", ports[TK_IOPUB], "stdin_port", ports[TK_STDIN],
                     "hb_port", ports[TK_HEARTBEAT], "control_port", ports[TK_CONTROL]);
}

json_t *tk_handle_shutdown(tk_kernel *kernel, const tk_request *request) {
    bool restart = tk_field_bool(request->message->content, "restart", false);
    json_t *content = json_pack("{s:s, s:b}", "status", "ok", "restart", restart);
    /* All front ends hear of it, not only the one that asked. */
    tk_output_publish(kernel->output, "shutdown_reply", request->parent, json_incref(content));
    tk_kernel_stop(kernel, 0);
    return content;
}

json_t *tk_handle_interrupt(tk_kernel *kernel, const tk_request *request) {
    (void)request;
    tk_kernel_interrupt(kernel);
    return json_pack("{s:s}", "status", "ok");
}

json_t *tk_handle_subshell(tk_kernel *kernel, const tk_request *request) {
    (void)kernel;
    return tk_json_bad_request("%s: there are no subshells: a Lua state runs on one thread",
                               request->message->type);
}

json_t *tk_handle_list_subshell(tk_kernel *kernel, const tk_request *request) {
    (void)kernel;
    (void)request;
    return json_pack("{s:s, s:[]}", "status", "ok", "subshell_id");
}

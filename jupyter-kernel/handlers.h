/* handlers.h: what each channel answers, and the handlers by file.
 *
 * Each takes the kernel and a request and gives the content of the reply (request.h). Those of
 * info.c touch no session and serve both threads; the others belong to the main thread. */
#ifndef TIDE_KERNEL_HANDLERS_H
#define TIDE_KERNEL_HANDLERS_H

#include "jupyter-kernel/request.h"

extern const tk_handler_entry tk_shell_handlers[], tk_control_handlers[];

/* info.c: the kernel itself. */
json_t *tk_handle_kernel_info(tk_kernel *kernel, const tk_request *request);
json_t *tk_handle_connect(tk_kernel *kernel, const tk_request *request);
json_t *tk_handle_shutdown(tk_kernel *kernel, const tk_request *request);
json_t *tk_handle_interrupt(tk_kernel *kernel, const tk_request *request);

/* comm.c: comms. */
json_t *tk_handle_comm_info(tk_kernel *kernel, const tk_request *request);
json_t *tk_handle_comm(tk_kernel *kernel, const tk_request *request);

json_t *tk_handle_subshell(tk_kernel *kernel, const tk_request *request);
json_t *tk_handle_list_subshell(tk_kernel *kernel, const tk_request *request);

/* usage.c: what the kernel takes of the machine. */
json_t *tk_handle_usage(tk_kernel *kernel, const tk_request *request);

/* execute.c: cells. */
json_t *tk_handle_execute(tk_kernel *kernel, const tk_request *request);

/* assist.c: help while one types. */
json_t *tk_handle_complete(tk_kernel *kernel, const tk_request *request);
json_t *tk_handle_inspect(tk_kernel *kernel, const tk_request *request);
json_t *tk_handle_is_complete(tk_kernel *kernel, const tk_request *request);
json_t *tk_handle_history(tk_kernel *kernel, const tk_request *request);

#endif

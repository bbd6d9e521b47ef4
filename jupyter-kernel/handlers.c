/* handlers.c: the tables of handlers.h. A new message is one line here and one function. */
#include "jupyter-kernel/handlers.h"

const tk_handler_entry tk_shell_handlers[] = {
    {"execute_request", "execute_reply", tk_handle_execute},
    {"complete_request", "complete_reply", tk_handle_complete},
    {"inspect_request", "inspect_reply", tk_handle_inspect},
    {"is_complete_request", "is_complete_reply", tk_handle_is_complete},
    {"history_request", "history_reply", tk_handle_history},
    {"kernel_info_request", "kernel_info_reply", tk_handle_kernel_info},
    {"comm_info_request", "comm_info_reply", tk_handle_comm_info},
    {"comm_open", NULL, tk_handle_comm},
    {"comm_msg", NULL, tk_handle_comm},
    {"comm_close", NULL, tk_handle_comm},
    {"connect_request", "connect_reply", tk_handle_connect},
    {"shutdown_request", "shutdown_reply", tk_handle_shutdown},
    {"interrupt_request", "interrupt_reply", tk_handle_interrupt},
    {0},
};

const tk_handler_entry tk_control_handlers[] = {
    {"interrupt_request", "interrupt_reply", tk_handle_interrupt},
    {"shutdown_request", "shutdown_reply", tk_handle_shutdown},
    {"kernel_info_request", "kernel_info_reply", tk_handle_kernel_info},
    {"connect_request", "connect_reply", tk_handle_connect},
    {"usage_request", "usage_reply", tk_handle_usage},
    {"create_subshell_request", "create_subshell_reply", tk_handle_subshell},
    {"delete_subshell_request", "delete_subshell_reply", tk_handle_subshell},
    {"list_subshell_request", "list_subshell_reply", tk_handle_list_subshell},
    {0},
};

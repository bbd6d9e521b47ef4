/* request.h: one request: read, framed by busy and idle, handed to its handler, answered.
 *
 * Used by the main thread (shell) and the control thread alike. Knows nothing of what the handlers
 * do. */
#ifndef TIDE_KERNEL_REQUEST_H
#define TIDE_KERNEL_REQUEST_H

#include "jupyter-kernel/kernel.h"

typedef struct tk_request {
    const tk_message *message;
    const char *parent; /* its header as JSON text, the parent of all that is said about it */
} tk_request;

/* Does what a request asks and gives the content of its reply (new); NULL when there is none. */
typedef json_t *(*tk_handler)(tk_kernel *kernel, const tk_request *request);

/* What a channel answers, ended by a NULL type. */
typedef struct tk_handler_entry {
    const char *type;  /* of the request */
    const char *reply; /* type of the reply, NULL: none is sent */
    tk_handler handle;
} tk_handler_entry;

/* Serves one message off a channel: parses it (what has no header, a wrong signature or one that
 * came before is dropped with a line in the log), publishes busy, answers, publishes idle. A
 * request whose content can't be read is answered by an error. A type that is not in the table is
 * logged and framed, so that a front end waiting for idle goes on. */
void tk_request_serve(tk_kernel *kernel, tk_channel channel, const tk_handler_entry *handlers,
                      const tk_parcel *parcel);

#endif

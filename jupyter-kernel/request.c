/* request.c: see request.h. */
#include "jupyter-kernel/request.h"
#include "jupyter-kernel/content.h"
#include "jupyter-kernel/log.h"

#include <stdlib.h>
#include <string.h>

static void publish_status(tk_kernel *kernel, const char *parent, const char *state) {
    tk_output_publish(kernel->output, "status", parent,
                      json_pack("{s:s}", "execution_state", state));
}

static void reply(tk_kernel *kernel, tk_channel channel, const tk_request *request,
                  const char *type, const char *started, json_t *content) {
    tk_envelope envelope;
    if (!tk_envelope_write(&kernel->sender, type, request->parent,
                           json_pack("{s:s}", "started", started), content, &envelope)) {
        tk_log("lost a %s: out of memory", type);
        return;
    }
    tk_channels_send(kernel->channels.sockets[channel], request->message->identities,
                     request->message->n_identities, &envelope);
    tk_envelope_clear(&envelope);
}

/* The answer to a request that no handler need see, NULL: there is a handler to ask. */
static json_t *refuse(const tk_request *request) {
    const tk_message *message = request->message;
    if (message->problem[0])
        return tk_json_bad_request("%s: its content can't be read: %s", message->type,
                                   message->problem);
    if (json_is_string(json_object_get(message->header, "subshell_id")))
        return tk_json_bad_request("%s: there are no subshells", message->type);
    return NULL;
}

static void answer(tk_kernel *kernel, tk_channel channel, const tk_handler_entry *handlers,
                   const tk_request *request) {
    const char *type = request->message->type;
    char started[32];
    tk_wire_date(started);
    publish_status(kernel, request->parent, "busy");
    const tk_handler_entry *entry = handlers;
    while (entry->type && strcmp(entry->type, type) != 0)
        entry++;
    if (entry->type) {
        json_t *content = refuse(request);
        if (!content)
            content = entry->handle(kernel, request);
        if (entry->reply)
            reply(kernel, channel, request, entry->reply, started, content);
        else
            json_decref(content);
        if (channel == TK_SHELL)
            tk_aborting_answered(&kernel->aborting, request->message->header, tk_kernel_now());
    } else {
        tk_log("ignored a message of unknown type %s on the %s channel", type,
               tk_channel_name(channel));
    }
    publish_status(kernel, request->parent, "idle");
}

void tk_request_serve(tk_kernel *kernel, tk_channel channel, const tk_handler_entry *handlers,
                      const tk_parcel *parcel) {
    tk_message message;
    tk_wire_status status = tk_wire_parse(kernel->sender.key, parcel->frames, parcel->n, &message);
    if (status != TK_WIRE_OK) {
        tk_log("dropped a message on the %s channel: %s", tk_channel_name(channel),
               tk_wire_problem(status));
        return;
    }
    if (channel == TK_SHELL)
        tk_aborting_hear(&kernel->aborting, message.header, tk_kernel_now());
    char *parent = json_dumps(message.header, JSON_COMPACT);
    if (!tk_replays_add(kernel->replays, message.signature))
        tk_log("dropped a message on the %s channel: it came before", tk_channel_name(channel));
    else if (parent)
        answer(kernel, channel, handlers, &(tk_request){&message, parent});
    else
        tk_log("dropped a message on the %s channel: out of memory", tk_channel_name(channel));
    free(parent);
    tk_message_clear(&message);
}

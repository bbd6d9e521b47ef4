/* frontend.c: see frontend.h. Called by the session while a cell runs, on the main thread. */
#include "jupyter-kernel/frontend.h"
#include "jupyter-kernel/content.h"
#include "jupyter-kernel/log.h"
#include "jupyter-kernel/request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

static void write_text(void *ctx, tide_stream stream, const char *bytes, size_t len) {
    tk_kernel *kernel = ctx;
    tk_capture_drain(kernel->capture);
    tk_output_write(kernel->output, stream == TIDE_STDERR ? TK_PRINTED_ERR : TK_PRINTED_OUT, bytes,
                    len);
}

static const char *current_parent(const tk_kernel *kernel) {
    if (kernel->output_parent)
        return kernel->output_parent;
    return kernel->current ? kernel->current->parent : NULL;
}

static void display(void *ctx, const tide_bundle *bundle, const char *display_id, bool update) {
    tk_kernel *kernel = ctx;
    json_t *transient = json_object();
    if (display_id)
        json_object_set_new(transient, "display_id", tk_json_string(display_id));
    tk_capture_drain(kernel->capture);
    tk_output_publish(kernel->output, update ? "update_display_data" : "display_data",
                      current_parent(kernel),
                      json_pack("{s:o, s:o, s:o}", "data", tk_json_bundle(bundle), "metadata",
                                tk_json_metadata(bundle), "transient", transient));
}

static void limit_output(void *ctx, bool on) {
    tk_kernel *kernel = ctx;
    tk_capture_drain(kernel->capture);
    tk_output_limit(kernel->output, on);
}

/* The last one counts: a front end has one next input. */
static void next_input(void *ctx, const char *text, size_t len, bool replace) {
    tk_kernel *kernel = ctx;
    json_decref(kernel->payload);
    kernel->payload = json_pack("[{s:s, s:o, s:b}]", "source", "set_next_input", "text",
                                tk_json_text(text, len), "replace", replace);
}

static void clear_output(void *ctx, bool wait) {
    tk_kernel *kernel = ctx;
    tk_capture_drain(kernel->capture);
    tk_output_publish(kernel->output, "clear_output", current_parent(kernel),
                      json_pack("{s:b}", "wait", wait));
}

static char *copy(const char *text, size_t len) {
    char *bytes = malloc(len + 1);
    if (bytes)
        memcpy(bytes, text, len + 1); /* a string of JSON ends with a NUL */
    return bytes;
}

static char *output_parent(void *ctx) {
    const char *parent = current_parent(ctx);
    return parent ? strdup(parent) : NULL;
}

static void set_output_parent(void *ctx, const char *parent) {
    tk_kernel *kernel = ctx;
    free(kernel->output_parent);
    kernel->output_parent = parent ? strdup(parent) : NULL;
    tk_capture_drain(kernel->capture);
    tk_output_parent(kernel->output, current_parent(kernel));
}

static char *gather_output(void *ctx, const char *comm, const char *outputs) {
    tk_kernel *kernel = ctx;
    tk_capture_drain(kernel->capture);
    if (!comm)
        return tk_output_gathered(kernel->output);
    tk_output_gather(kernel->output, comm, json_loads(outputs, JSON_ALLOW_NUL, NULL));
    return NULL;
}

static void send_comm(void *ctx, const tide_comm_message *message) {
    tk_kernel *kernel = ctx;
    tk_frame buffers[TK_MAX_FRAMES];
    size_t n = message->n_buffers < TK_MAX_FRAMES ? message->n_buffers : TK_MAX_FRAMES;
    for (size_t i = 0; i < n; i++)
        buffers[i] = (tk_frame){message->buffers[i].data, message->buffers[i].len};
    tk_capture_drain(kernel->capture);
    tk_output_publish_buffers(
        kernel->output, message->type, current_parent(kernel),
        json_loadb(message->metadata.data, message->metadata.len, JSON_ALLOW_NUL, NULL),
        json_loadb(message->content.data, message->content.len, JSON_ALLOW_NUL, NULL), buffers, n);
}

/* An input_reply's value as a new string of *len bytes, NULL for any other message. */
static char *reply_value(tk_kernel *kernel, const tk_parcel *parcel, size_t *len) {
    tk_message message;
    char *value = NULL;
    tk_wire_status status = tk_wire_parse(kernel->sender.key, parcel->frames, parcel->n, &message);
    if (status != TK_WIRE_OK) {
        tk_log("dropped a message on the stdin channel: %s", tk_wire_problem(status));
        return NULL;
    }
    const char *text = tk_field_string(message.content, "value", len);
    if (!tk_replays_add(kernel->replays, message.signature))
        tk_log("dropped a message on the stdin channel: it came before");
    else if (strcmp(message.type, "input_reply") != 0 || !text)
        tk_log("ignored a message on the stdin channel that is no input_reply with a value");
    else
        value = copy(text, *len);
    tk_message_clear(&message);
    return value;
}

/* Takes messages off stdin until one is an answer; NULL when there is none yet. */
static char *take_answer(tk_kernel *kernel, size_t *len) {
    tk_parcel parcel;
    char *value = NULL;
    while (!value && tk_parcel_receive(&parcel, kernel->channels.sockets[TK_STDIN])) {
        value = reply_value(kernel, &parcel, len);
        tk_parcel_clear(&parcel);
    }
    return value;
}

static void ask(tk_kernel *kernel, const char *prompt, bool password) {
    const tk_message *cell = kernel->current->message;
    tk_parcel stale;
    tk_envelope envelope;
    /* Answers to a question that was interrupted are answers to nothing. */
    while (tk_parcel_receive(&stale, kernel->channels.sockets[TK_STDIN]))
        tk_parcel_clear(&stale);
    if (!tk_envelope_write(
            &kernel->sender, "input_request", kernel->current->parent, NULL,
            json_pack("{s:o, s:b}", "prompt", tk_json_string(prompt), "password", password),
            &envelope)) {
        tk_log("lost an input_request: out of memory");
        return;
    }
    tk_channels_send(kernel->channels.sockets[TK_STDIN], cell->identities, cell->n_identities,
                     &envelope);
    tk_envelope_clear(&envelope);
}

/* Front ends send what Ctrl-D sends where a person ends the input. */
static bool is_end(const char *value, size_t len) {
    return len == 1 && value[0] == '\x04';
}

static char *read_line(void *ctx, const char *prompt, bool password, size_t *len) {
    tk_kernel *kernel = ctx;
    if (!kernel->current ||
        !tk_field_bool(kernel->current->message->content, "allow_stdin", false)) {
        static const char refusal[] = "this front end takes no input: end of file\n";
        write_text(ctx, TIDE_STDERR, refusal, sizeof refusal - 1);
        return NULL;
    }
    tk_capture_drain(kernel->capture);
    tk_output_flush(kernel->output, false);
    ask(kernel, prompt, password);
    zmq_pollitem_t items[] = {{kernel->channels.sockets[TK_STDIN], 0, ZMQ_POLLIN, 0},
                              {NULL, kernel->interrupt_fd, ZMQ_POLLIN, 0}};
    for (;;) {
        if (zmq_poll(items, 2, -1) < 0) {
            if (errno != EINTR)
                return NULL;
            continue;
        }
        /* The interrupt itself is raised by the session as soon as we return. */
        if (items[1].revents)
            return NULL;
        char *value = take_answer(kernel, len);
        if (value && is_end(value, *len)) {
            free(value);
            return NULL;
        }
        if (value)
            return value;
    }
}

tide_frontend tk_frontend(tk_kernel *kernel) {
    return (tide_frontend){.ctx = kernel,
                           .write = write_text,
                           .display = display,
                           .clear_output = clear_output,
                           .read_line = read_line,
                           .limit_output = limit_output,
                           .next_input = next_input,
                           .send_comm = send_comm,
                           .output_parent = output_parent,
                           .set_output_parent = set_output_parent,
                           .gather_output = gather_output,
                           .interactive = false,
                           .color = true,
                           .notebook = true,
                           .width = 100};
}

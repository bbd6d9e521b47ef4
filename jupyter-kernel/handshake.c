/* handshake.c: see handshake.h. The launcher's socket may be a ROUTER or a REP; what we send suits
 * both: a DEALER's message with the empty frame that a REP expects. */
#include "jupyter-kernel/handshake.h"
#include "jupyter-kernel/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#define WAIT_MS 10000 /* for the launcher's answer */

/* ---- the file for others ---- */

static json_t *connection_json(const tk_connection *c) {
    json_t *file =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:s*, s:s*}", "transport", c->transport, "ip", c->ip,
                  "key", c->key, "signature_scheme", "hmac-sha256", "kernel_name", "tide",
                  "curve_publickey", c->curve_public, "curve_secretkey", c->curve_secret);
    for (int i = 0; i < TK_CHANNELS; i++) {
        char field[32];
        snprintf(field, sizeof field, "%s_port", tk_channel_name((tk_channel)i));
        json_object_set_new(file, field, json_integer(c->ports[i]));
    }
    return file;
}

/* Jupyter's runtime folder, which is made where it is missing; NULL: there is none. */
static char *runtime_folder(void) {
    static const struct {
        const char *variable, *below;
    } places[] = {{"JUPYTER_RUNTIME_DIR", ""},
                  {"JUPYTER_DATA_DIR", "/runtime"},
                  {"XDG_DATA_HOME", "/jupyter/runtime"},
                  {"HOME", "/.local/share/jupyter/runtime"}};
    char *folder = NULL;
    for (size_t i = 0; !folder && i < sizeof places / sizeof *places; i++) {
        const char *base = getenv(places[i].variable);
        if (base && *base && asprintf(&folder, "%s%s", base, places[i].below) < 0)
            return NULL;
    }
    for (char *slash = folder; slash && (slash = strchr(slash + 1, '/'));) {
        *slash = '\0';
        (void)mkdir(folder, 0777);
        *slash = '/';
    }
    if (folder)
        (void)mkdir(folder, 0700);
    return folder;
}

/* Writes a file that only this user may read: it holds the key. */
static bool write_private(const char *path, const char *text) {
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    size_t len = strlen(text);
    bool ok = file >= 0 && fchmod(file, 0600) == 0 && write(file, text, len) == (ssize_t)len;
    if (file >= 0)
        close(file);
    return ok;
}

/* Without the file the kernel works all the same, for its launcher. */
static void write_file(tk_kernel *kernel) {
    char *folder = runtime_folder(), *path = NULL;
    json_t *connection = connection_json(&kernel->connection);
    char *text = json_dumps(connection, JSON_INDENT(2));
    if (folder && asprintf(&path, "%s/kernel-%ld.json", folder, (long)getpid()) < 0)
        path = NULL;
    if (path && text && write_private(path, text)) {
        kernel->written = path;
    } else {
        tk_log("other front ends won't find this kernel: %s: %s", path ? path : "no runtime folder",
               strerror(path ? errno : ENOENT));
        free(path);
    }
    json_decref(connection);
    free(folder);
    free(text);
}

void tk_handshake_forget(tk_kernel *kernel) {
    if (kernel->written)
        unlink(kernel->written);
    free(kernel->written);
    kernel->written = NULL;
}

/* ---- the launcher ---- */

static bool send_ports(tk_kernel *kernel, void *socket) {
    const int *ports = kernel->connection.ports;
    tk_envelope envelope;
    json_t *content = json_pack("{s:i, s:i, s:i, s:i, s:i}", "shell_port", ports[TK_SHELL],
                                "iopub_port", ports[TK_IOPUB], "stdin_port", ports[TK_STDIN],
                                "hb_port", ports[TK_HEARTBEAT], "control_port", ports[TK_CONTROL]);
    if (!tk_envelope_write(&kernel->sender, "handshake_request", NULL, NULL, content, &envelope))
        return false;
    tk_channels_send(socket, &(tk_frame){"", 0}, 1, &envelope);
    tk_envelope_clear(&envelope);
    return true;
}

/* Does the launcher agree? */
static bool is_agreement(tk_kernel *kernel, const tk_parcel *parcel) {
    tk_message message;
    tk_wire_status status = tk_wire_parse(kernel->sender.key, parcel->frames, parcel->n, &message);
    if (status != TK_WIRE_OK) {
        tk_log("dropped an answer of the launcher: %s", tk_wire_problem(status));
        return false;
    }
    const char *said = json_string_value(json_object_get(message.content, "status"));
    bool agrees =
        strcmp(message.type, "handshake_reply") == 0 && (!said || strcmp(said, "ok") == 0);
    if (!agrees)
        tk_log("the launcher does not agree: %s, status \"%s\"", message.type, said ? said : "");
    tk_message_clear(&message);
    return agrees;
}

static bool wait_for_answer(tk_kernel *kernel, void *socket) {
    int64_t until = tk_kernel_now_us() + WAIT_MS * 1000, left;
    while ((left = until - tk_kernel_now_us()) > 0) {
        zmq_pollitem_t item = {socket, 0, ZMQ_POLLIN, 0};
        tk_parcel parcel;
        if (zmq_poll(&item, 1, (long)(left / 1000) + 1) < 0 && errno != EINTR)
            break;
        if (tk_parcel_receive(&parcel, socket)) {
            bool agrees = is_agreement(kernel, &parcel);
            tk_parcel_clear(&parcel);
            return agrees;
        }
    }
    tk_log("the launcher does not answer: leaving");
    return false;
}

static void *connect_to_launcher(tk_kernel *kernel) {
    const tk_connection *c = &kernel->connection;
    char *address = tk_connection_registration(c);
    void *socket = address ? zmq_socket(kernel->channels.context, ZMQ_DEALER) : NULL;
    int linger = 1000;
    bool ok = socket && zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof linger) == 0 &&
              zmq_connect(socket, address) == 0;
    if (!ok)
        tk_log("cannot connect to the launcher at %s: %s", address ? address : "its address",
               zmq_strerror(errno));
    if (!ok && socket) {
        zmq_close(socket);
        socket = NULL;
    }
    free(address);
    return socket;
}

bool tk_handshake(tk_kernel *kernel) {
    void *socket = connect_to_launcher(kernel);
    if (!socket)
        return false;
    write_file(kernel);
    bool ok = send_ports(kernel, socket) && wait_for_answer(kernel, socket);
    zmq_close(socket);
    return ok;
}

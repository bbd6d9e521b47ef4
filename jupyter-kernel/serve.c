/* serve.c: see serve.h. Starts and ends everything, in the order that makes both safe. */
#include "jupyter-kernel/serve.h"
#include "jupyter-kernel/control.h"
#include "jupyter-kernel/frontend.h"
#include "jupyter-kernel/handlers.h"
#include "jupyter-kernel/handshake.h"
#include "jupyter-kernel/kernel.h"
#include "jupyter-kernel/log.h"
#include "jupyter-kernel/request.h"

#include <errno.h>
#include <pwd.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <zmq.h>

static const char *username(void) {
    const char *name = getenv("USER");
    struct passwd *entry = name ? NULL : getpwuid(getuid());
    if (entry)
        name = entry->pw_name;
    json_t *valid = json_string(name); /* NULL unless UTF-8 */
    bool usable = valid && *name;
    json_decref(valid);
    return usable ? name : "user";
}

static void name_sender(tk_kernel *kernel) {
    unsigned char id[16];
    randombytes_buf(id, sizeof id);
    sodium_bin2hex(kernel->sender.session, sizeof kernel->sender.session, id, sizeof id);
    kernel->sender.key = (tk_frame){kernel->connection.key, kernel->connection.key_len};
    kernel->sender.username = username();
}

static bool open_output(tk_kernel *kernel) {
    kernel->output = tk_output_new(kernel->channels.sockets[TK_IOPUB], &kernel->sender);
    kernel->replays = tk_replays_new();
    if (!kernel->output || !kernel->replays)
        tk_log("cannot start the iopub channel: out of memory");
    return kernel->output && kernel->replays;
}

static bool open_session(tk_kernel *kernel) {
    tide_frontend frontend = tk_frontend(kernel);
    kernel->session = tide_session_new(&frontend);
    if (!kernel->session) {
        tk_log("cannot start a session: out of memory");
        return false;
    }
    const char *path = tide_session_history_default_path();
    if (path)
        tide_session_history_open(kernel->session, path);
    return true;
}

/* Serves shell until the kernel is asked to stop. The session rests once after each request that
 * none follows for some time. */
static void serve_shell(tk_kernel *kernel) {
    void *shell = kernel->channels.sockets[TK_SHELL];
    long patience = -1;
    while (!atomic_load(&kernel->stopping)) {
        tk_parcel parcel;
        if (tk_parcel_receive(&parcel, shell)) {
            tk_request_serve(kernel, TK_SHELL, tk_shell_handlers, &parcel);
            tk_parcel_clear(&parcel);
            patience = TIDE_REST_MS;
            continue;
        }
        zmq_pollitem_t items[] = {{shell, 0, ZMQ_POLLIN, 0},
                                  {NULL, kernel->stop_fd, ZMQ_POLLIN, 0}};
        int events = zmq_poll(items, 2, patience);
        if (events < 0 && errno != EINTR) {
            tk_log("cannot wait for requests: %s", zmq_strerror(errno));
            tk_kernel_stop(kernel, 1);
        }
        if (events == 0) {
            tide_session_rest(kernel->session, true);
            patience = -1;
        }
        tk_aborting_rest(&kernel->aborting, tk_kernel_now());
    }
}

/* Everything between bound sockets and their end. False: it could not be started. */
static bool serve(tk_kernel *kernel) {
    tk_kernel_block_signals();
    tk_control *control = NULL;
    bool ok = open_output(kernel) && (kernel->capture = tk_capture_start(kernel->output)) &&
              open_session(kernel) && (control = tk_control_start(kernel));
    if (ok) {
        tk_kernel_catch_signals(kernel);
        tk_output_publish(kernel->output, "status", NULL,
                          json_pack("{s:s}", "execution_state", "starting"));
        serve_shell(kernel);
    }
    /* Finalizers print, so the session goes first; the control thread goes after it and ends the
     * process should they not come to an end. */
    if (kernel->session)
        tide_session_free(kernel->session);
    tk_control_stop(control);
    tk_capture_stop(kernel->capture);
    tk_output_free(kernel->output);
    tk_replays_free(kernel->replays);
    json_decref(kernel->payload);
    return ok;
}

/* Reads the file, opens the sockets and tells a launcher that asked for it where they are. False
 * with a line in the log. */
static bool open_channels(tk_kernel *kernel, const char *file) {
    char error[1024];
    bool ok = tk_connection_read(file, &kernel->connection, error, sizeof error) &&
              tk_channels_open(&kernel->channels, &kernel->connection, error, sizeof error);
    if (!ok) {
        tk_log("%s", error);
        return false;
    }
    if (kernel->connection.key_len == 0)
        tk_log("the key is empty: messages are not signed");
    name_sender(kernel);
    return kernel->connection.registration_port == 0 || tk_handshake(kernel);
}

/* What is left when the channels are open. */
static bool run(tk_kernel *kernel) {
    pthread_mutex_init(&kernel->running_lock, NULL);
    kernel->interrupt_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    kernel->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    bool ok = kernel->interrupt_fd >= 0 && kernel->stop_fd >= 0;
    if (!ok)
        tk_log("cannot start: %s", strerror(errno));
    ok = ok && serve(kernel);
    tk_kernel_forget_signals();
    close(kernel->interrupt_fd);
    close(kernel->stop_fd);
    pthread_mutex_destroy(&kernel->running_lock);
    return ok;
}

int tk_serve(const char *connection_file) {
    tk_kernel kernel = {.main_thread = pthread_self(), .interrupt_fd = -1, .stop_fd = -1};
    bool ok = open_channels(&kernel, connection_file) && run(&kernel);
    tk_channels_close(&kernel.channels);
    tk_handshake_forget(&kernel);
    tk_connection_clear(&kernel.connection);
    return ok ? atomic_load(&kernel.exit_code) : 1;
}

/* control.c: see control.h. */
#include "jupyter-kernel/control.h"
#include "jupyter-kernel/handlers.h"
#include "jupyter-kernel/log.h"
#include "jupyter-kernel/request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

/* How long a kernel that was asked to stop may take; front ends kill after some 2.5 s. */
#define STOP_MS        1500
#define PARENT_POLL_MS 1000
#define LEAVE_MS       500 /* for the last message to leave */

struct tk_control {
    tk_kernel *kernel;
    pthread_t thread;
    int end;         /* eventfd: the thread is to end */
    int parent_fd;   /* pidfd of the parent, -1 without */
    pid_t parent_id; /* where there is no pidfd: getppid() as it was, 0 when it is not watched */
};

static long now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A front end that starts a kernel names itself in JPY_PARENT_PID; a kernel started without it,
 * from a shell perhaps, outlives whoever started it. (PR_SET_PDEATHSIG would fire when the thread
 * that started us ends, which servers' threads do.) */
static void watch_parent(tk_control *control) {
    const char *text = getenv("JPY_PARENT_PID");
    char *end;
    long pid = text ? strtol(text, &end, 10) : 0;
    if (pid <= 0 || *end)
        return;
    control->parent_fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0u);
    if (control->parent_fd >= 0)
        return;
    /* It died already, is in another PID namespace, or the system is too old for pidfds. */
    if (errno == ESRCH && getppid() == 1) {
        tk_log("the parent process %ld is gone", pid);
        tk_kernel_stop(control->kernel, 1);
    } else {
        control->parent_id = getppid();
    }
}

static void serve_heartbeat(tk_control *control) {
    void *socket = control->kernel->channels.sockets[TK_HEARTBEAT];
    tk_parcel parcel;
    while (tk_parcel_receive(&parcel, socket)) {
        tk_channels_echo(socket, &parcel);
        tk_parcel_clear(&parcel);
    }
}

static void serve_control(tk_control *control) {
    void *socket = control->kernel->channels.sockets[TK_CONTROL];
    tk_parcel parcel;
    while (tk_parcel_receive(&parcel, socket)) {
        tk_request_serve(control->kernel, TK_CONTROL, tk_control_handlers, &parcel);
        tk_parcel_clear(&parcel);
    }
}

/* The cell that can't be stopped takes the kernel with it. */
static void give_up(const tk_kernel *kernel) {
    static const char reason[] = "nothing stops what the cell runs: the kernel ends";
    const tk_request *cell = kernel->current;
    tk_log("%s", reason);
    tk_output_publish(kernel->output, "error", cell ? cell->parent : NULL,
                      json_pack("{s:s, s:s, s:[s]}", "ename", "Interrupt", "evalue", reason,
                                "traceback", reason));
    struct timespec leave = {.tv_nsec = LEAVE_MS * 1000000L};
    nanosleep(&leave, NULL);
    _exit(1);
}

/* Milliseconds until the thread has to look around though nothing came; -1: none. */
static long patience(const tk_control *control, long deadline) {
    if (deadline) {
        long left = deadline - now_ms();
        return left > 0 ? left : 0;
    }
    return control->parent_id ? PARENT_POLL_MS : -1;
}

/* What a thread waits for, in this order; the last where the parent has a descriptor. */
enum { END, HEARTBEAT, CONTROL, STOP, SUBSCRIBER, PARENT, WAITS };

static void *run(void *arg) {
    tk_control *control = arg;
    tk_kernel *kernel = control->kernel;
    int subscriber = tk_output_descriptor(kernel->output);
    zmq_pollitem_t items[WAITS] = {
        [END] = {NULL, control->end, ZMQ_POLLIN, 0},
        [HEARTBEAT] = {kernel->channels.sockets[TK_HEARTBEAT], 0, ZMQ_POLLIN, 0},
        [CONTROL] = {kernel->channels.sockets[TK_CONTROL], 0, ZMQ_POLLIN, 0},
        [STOP] = {NULL, kernel->stop_fd, ZMQ_POLLIN, 0},
        [SUBSCRIBER] = {NULL, subscriber, ZMQ_POLLIN, 0},
        [PARENT] = {NULL, control->parent_fd, ZMQ_POLLIN, 0}};
    long deadline = 0;
    for (;;) {
        if (deadline) {
            items[PARENT].events = 0;
            items[STOP].events = 0; /* stays readable: it is never read */
        }
        int n = control->parent_fd >= 0 ? WAITS : PARENT;
        if (zmq_poll(items, n, patience(control, deadline)) < 0)
            continue; /* EINTR */
        if (items[END].revents)
            return NULL;
        if (items[HEARTBEAT].revents)
            serve_heartbeat(control);
        if (items[CONTROL].revents)
            serve_control(control);
        if (items[SUBSCRIBER].revents)
            tk_output_welcome(kernel->output);
        if ((n == WAITS && items[PARENT].revents) ||
            (control->parent_id && getppid() != control->parent_id)) {
            tk_log("the parent process is gone");
            tk_kernel_stop(kernel, 1);
        }
        if (atomic_load(&kernel->hopeless))
            give_up(kernel);
        if (!deadline && atomic_load(&kernel->stopping))
            deadline = now_ms() + STOP_MS;
        if (deadline && now_ms() >= deadline) {
            tk_log("the cell does not stop: leaving without it");
            _exit(atomic_load(&kernel->exit_code));
        }
    }
}

static void control_free(tk_control *control) {
    if (control->end >= 0)
        close(control->end);
    if (control->parent_fd >= 0)
        close(control->parent_fd);
    free(control);
}

tk_control *tk_control_start(tk_kernel *kernel) {
    tk_control *control = malloc(sizeof *control);
    if (!control) {
        tk_log("cannot start the control channel: out of memory");
        return NULL;
    }
    *control = (tk_control){.kernel = kernel, .end = eventfd(0, EFD_CLOEXEC), .parent_fd = -1};
    watch_parent(control);
    int problem = control->end < 0 ? errno : pthread_create(&control->thread, NULL, run, control);
    if (problem != 0) {
        tk_log("cannot start the control channel: %s", strerror(problem));
        control_free(control);
        return NULL;
    }
    return control;
}

void tk_control_stop(tk_control *control) {
    if (!control)
        return;
    uint64_t one = 1;
    ssize_t written = write(control->end, &one, sizeof one);
    (void)written;
    pthread_join(control->thread, NULL);
    control_free(control);
}

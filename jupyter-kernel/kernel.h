/* kernel.h: the running kernel: what its threads share, and how it is interrupted and stopped.
 *
 * The main thread serves shell and evaluates; the control thread (control.c) serves control and the
 * heartbeat, so that both work while a cell computes; the output (output.h) and the capture
 * (capture.h) have a thread each. The session belongs to the main thread; the only thing another
 * does to it is to interrupt it. */
#ifndef TIDE_KERNEL_KERNEL_H
#define TIDE_KERNEL_KERNEL_H

#include "jupyter-kernel/aborting.h"
#include "jupyter-kernel/capture.h"
#include "jupyter-kernel/channels.h"
#include "jupyter-kernel/connection.h"
#include "jupyter-kernel/output.h"
#include "jupyter-kernel/replay.h"
#include "repl/session/session.h"

#include <pthread.h>
#include <stdatomic.h>

struct tk_request;

typedef struct tk_kernel {
    tk_connection connection;
    char *written; /* the connection file that we wrote ourselves, NULL: none (handshake.h) */
    tk_channels channels;
    tk_sender sender;
    tk_output *output;
    tk_capture *capture;
    tk_replays *replays;

    /* Main thread only. */
    tide_session *session;
    bool began;                       /* the user's init.lua has run */
    const struct tk_request *current; /* the cell that runs, NULL between cells */
    tk_aborting aborting;             /* which cells are not run since one failed */
    json_t *payload;                  /* what the cell wants done besides: a list, NULL: empty */
    char *output_parent; /* the header of what output belongs to instead; NULL: to `current` */

    /* All threads. */
    pthread_t main_thread;
    pthread_mutex_t running_lock; /* an interrupt and the end of a cell exclude each other */
    atomic_bool running;          /* a cell may be interrupted */
    int interrupt_fd;             /* eventfd: the running cell was interrupted */
    atomic_bool hopeless;         /* it doesn't end, however often it is interrupted */
    atomic_bool stopping;
    atomic_int exit_code;
    int stop_fd; /* eventfd: stopping or hopeless became true */
} tk_kernel;

/* SIGINT interrupts this kernel's cell from now on, SIGPIPE is an error of the write. The threads
 * that were started since tk_kernel_block_signals() leave SIGINT to the main one, which calls all
 * three. Forget: the kernel is about to go. */
void tk_kernel_block_signals(void);
void tk_kernel_catch_signals(tk_kernel *kernel);
void tk_kernel_forget_signals(void);

/* Marks the beginning and the end of what an interrupt may stop. Main thread. */
void tk_kernel_begin(tk_kernel *kernel);
void tk_kernel_end(tk_kernel *kernel);

/* Microseconds of a clock that only runs forward; the same with the time of day. */
int64_t tk_kernel_now_us(void);
tk_moment tk_kernel_now(void);

/* Stops the running cell, if one runs, and the child processes it waits for. Any thread. A cell
 * that has not ended at the third time, since nothing can stop what it runs, ends the kernel. */
void tk_kernel_interrupt(tk_kernel *kernel);

/* Asks the kernel to leave with this exit code, interrupting the running cell. Any thread. */
void tk_kernel_stop(tk_kernel *kernel, int exit_code);

#endif

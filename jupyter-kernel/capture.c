/* capture.c: see capture.h. */
#include "jupyter-kernel/capture.h"
#include "jupyter-kernel/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Under a sanitizer its reports go where the log goes: a report written into our own pipe would die
 * with the process. */
extern void __sanitizer_set_report_fd(void *fd) __attribute__((weak));

struct tk_capture {
    tk_output *output;
    pthread_t reader;
    pthread_mutex_t lock; /* reading and passing on are one step */
    int pipes[2];         /* read ends */
    int saved[2];         /* what descriptors 1 and 2 were */
    int end;              /* eventfd: the reader is to stop */
};

static const tk_source sources[2] = {TK_CAUGHT_OUT, TK_CAUGHT_ERR};

/* Moves what is in a pipe now; not what a writer that never rests adds meanwhile. */
static void drain_pipe(tk_capture *capture, int i) {
    char bytes[1 << 14];
    int waiting = 0;
    if (ioctl(capture->pipes[i], FIONREAD, &waiting) != 0)
        return;
    while (waiting > 0) {
        size_t want = (size_t)waiting < sizeof bytes ? (size_t)waiting : sizeof bytes;
        ssize_t got = read(capture->pipes[i], bytes, want);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return;
        tk_output_write(capture->output, sources[i], bytes, (size_t)got);
        waiting -= (int)got;
    }
}

static void drain_pipes(tk_capture *capture) {
    pthread_mutex_lock(&capture->lock);
    drain_pipe(capture, 0);
    drain_pipe(capture, 1);
    pthread_mutex_unlock(&capture->lock);
}

void tk_capture_drain(tk_capture *capture) {
    fflush(stdout);
    drain_pipes(capture);
}

static void *reader(void *arg) {
    tk_capture *capture = arg;
    struct pollfd fds[3] = {
        {capture->pipes[0], POLLIN, 0}, {capture->pipes[1], POLLIN, 0}, {capture->end, POLLIN, 0}};
    while (!(fds[2].revents & POLLIN)) {
        if (poll(fds, 3, -1) < 0)
            continue; /* EINTR */
        if ((fds[0].revents | fds[1].revents) & POLLIN)
            drain_pipes(capture);
        for (int i = 0; i < 2; i++) /* a cell closed the descriptor: nothing will come */
            if ((fds[i].revents & (POLLHUP | POLLIN)) == POLLHUP)
                fds[i].fd = -1;
    }
    return NULL;
}

static void close_all(tk_capture *capture) {
    int fds[] = {capture->pipes[0], capture->pipes[1], capture->saved[0], capture->saved[1],
                 capture->end};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    pthread_mutex_destroy(&capture->lock);
    free(capture);
}

static void give_back(tk_capture *capture) {
    if (__sanitizer_set_report_fd)
        __sanitizer_set_report_fd((void *)(intptr_t)STDERR_FILENO);
    tk_log_to(STDERR_FILENO);
    for (int i = 0; i < 2; i++)
        if (capture->saved[i] >= 0)
            dup2(capture->saved[i], STDOUT_FILENO + i);
}

/* Makes descriptor 1 + i the writing end of a new pipe. */
static bool redirect(tk_capture *capture, int i) {
    int ends[2];
    capture->saved[i] = fcntl(STDOUT_FILENO + i, F_DUPFD_CLOEXEC, 3);
    if (capture->saved[i] < 0 || pipe2(ends, O_CLOEXEC) != 0)
        return false;
    capture->pipes[i] = ends[0];
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    bool ok = dup2(ends[1], STDOUT_FILENO + i) >= 0;
    close(ends[1]);
    return ok;
}

/* The descriptors a program takes for granted, when it was started without. */
static void open_standard(void) {
    int fd;
    while ((fd = open("/dev/null", O_RDWR)) >= 0 && fd <= STDERR_FILENO)
        ;
    if (fd > STDERR_FILENO) {
        dup2(fd, STDIN_FILENO);
        close(fd);
    }
}

tk_capture *tk_capture_start(tk_output *output) {
    tk_capture *capture = malloc(sizeof *capture);
    if (!capture) {
        tk_log("cannot catch the output: out of memory");
        return NULL;
    }
    *capture = (tk_capture){.output = output, .pipes = {-1, -1}, .saved = {-1, -1}};
    pthread_mutex_init(&capture->lock, NULL);
    open_standard();
    fflush(stdout);
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    capture->end = eventfd(0, EFD_CLOEXEC);
    bool ok = capture->end >= 0 && redirect(capture, 0) && redirect(capture, 1);
    if (ok) {
        tk_log_to(capture->saved[1]);
        if (__sanitizer_set_report_fd)
            __sanitizer_set_report_fd((void *)(intptr_t)capture->saved[1]);
        ok = pthread_create(&capture->reader, NULL, reader, capture) == 0;
    }
    if (!ok) {
        int problem = errno;
        give_back(capture);
        tk_log("cannot catch the output: %s", strerror(problem));
        close_all(capture);
        return NULL;
    }
    return capture;
}

void tk_capture_stop(tk_capture *capture) {
    if (!capture)
        return;
    uint64_t one = 1;
    ssize_t written = write(capture->end, &one, sizeof one);
    (void)written;
    pthread_join(capture->reader, NULL);
    tk_capture_drain(capture);
    give_back(capture);
    close_all(capture);
}

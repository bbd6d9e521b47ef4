/* kernel.c: see kernel.h. */
#include "jupyter-kernel/kernel.h"

#include <errno.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

/* The kernel that SIGINT interrupts; a process runs one. */
static tk_kernel *volatile signalled;

static void raise_event(int fd) {
    uint64_t one = 1;
    ssize_t written = write(fd, &one, sizeof one);
    (void)written;
}

/* Also in a signal handler: descriptor 2 leads to the cell's output. */
static void interrupt_cell(tk_kernel *kernel) {
    static const char warning[] = "one more interrupt ends the kernel, and all that it holds\n";
    int times = tide_session_interrupt(kernel->session);
    raise_event(kernel->interrupt_fd);
    if (times == 2) {
        ssize_t written = write(STDERR_FILENO, warning, sizeof warning - 1);
        (void)written;
    } else if (times > 2 && !atomic_load(&kernel->stopping)) {
        atomic_store(&kernel->hopeless, true);
        raise_event(kernel->stop_fd);
    }
}

static void on_interrupt(int signal, siginfo_t *info, void *context) {
    int saved = errno;
    tk_kernel *kernel = signalled;
    (void)signal;
    (void)context;
    /* What we sent ourselves was for the child processes: see tk_kernel_interrupt. */
    bool own = info->si_code == SI_USER && info->si_pid == getpid();
    if (!own && kernel && atomic_load(&kernel->running))
        interrupt_cell(kernel);
    errno = saved;
}

/* A handler, unlike SIG_IGN, is not inherited by the programs a cell starts. */
static void on_pipe(int signal) {
    (void)signal;
}

void tk_kernel_catch_signals(tk_kernel *kernel) {
    /* Without SA_RESTART: a cell blocked in a system call comes back from it. */
    struct sigaction interrupt = {.sa_sigaction = on_interrupt, .sa_flags = SA_SIGINFO};
    struct sigaction pipe = {.sa_handler = on_pipe, .sa_flags = SA_RESTART};
    sigset_t set;
    sigemptyset(&interrupt.sa_mask);
    sigemptyset(&pipe.sa_mask);
    signalled = kernel;
    sigaction(SIGINT, &interrupt, NULL);
    sigaction(SIGPIPE, &pipe, NULL);
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

void tk_kernel_block_signals(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

void tk_kernel_begin(tk_kernel *kernel) {
    uint64_t count;
    ssize_t got = read(kernel->interrupt_fd, &count, sizeof count); /* does not block */
    (void)got;
    pthread_mutex_lock(&kernel->running_lock);
    tide_session_expect(kernel->session, true);
    atomic_store(&kernel->running, true);
    pthread_mutex_unlock(&kernel->running_lock);
}

void tk_kernel_end(tk_kernel *kernel) {
    pthread_mutex_lock(&kernel->running_lock);
    atomic_store(&kernel->running, false);
    tide_session_expect(kernel->session, false);
    pthread_mutex_unlock(&kernel->running_lock);
}

void tk_kernel_interrupt(tk_kernel *kernel) {
    pthread_mutex_lock(&kernel->running_lock);
    if (atomic_load(&kernel->running)) {
        interrupt_cell(kernel);
        /* A front end starts the kernel as leader of a process group: that is then the kernel and
         * the programs the cell started. */
        if (getpgrp() == getpid())
            kill(0, SIGINT);
    }
    pthread_mutex_unlock(&kernel->running_lock);
}

void tk_kernel_stop(tk_kernel *kernel, int exit_code) {
    if (atomic_exchange(&kernel->stopping, true))
        return;
    atomic_store(&kernel->exit_code, exit_code);
    raise_event(kernel->stop_fd);
    if (!pthread_equal(pthread_self(), kernel->main_thread))
        tk_kernel_interrupt(kernel);
}

void tk_kernel_forget_signals(void) {
    signalled = NULL;
}

static int64_t clock_us(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t tk_kernel_now_us(void) {
    return clock_us(CLOCK_MONOTONIC);
}

tk_moment tk_kernel_now(void) {
    return (tk_moment){clock_us(CLOCK_MONOTONIC), clock_us(CLOCK_REALTIME)};
}

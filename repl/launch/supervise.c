/* supervise.c: runs one process of a job, and tells the job's hub how it ended: a process that was
 * killed says nothing any more, and only its parent knows by what. Beside rank 0 it keeps the hub,
 * which so outlives rank 0 itself.
 */
#include "repl/launch/supervise.h"

#include "engine/distributed/hub.h"
#include "engine/distributed/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The exit code of a job that ended because of one of its ranks is the same as that of the others.
 */
enum { ADDRESS = 160, FAILED = 127 };

static volatile sig_atomic_t child;

/* A process that is stopped takes no signal before it goes on. */
static void pass_on(int signal) {
    if (child > 0) {
        kill((pid_t)child, signal);
        kill((pid_t)child, SIGCONT);
    }
}

static void pass_signals_on(void) {
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};
    struct sigaction action = {.sa_handler = pass_on, .sa_flags = SA_RESTART};
    for (size_t k = 0; k < sizeof signals / sizeof *signals; k++)
        sigaction(signals[k], &action, NULL);
}

static void run(char **command, int pipe_end) {
    char text[16];
    snprintf(text, sizeof text, "%d", pipe_end);
    setenv("TIDE_CONTROL_PIPE", text, 1);
    execv(command[0], command);
    fprintf(stderr, "tide-run: %s can't be run: %s\n", command[0], strerror(errno));
    _exit(FAILED);
}

static int wait_for(pid_t pid) {
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return FAILED << 8;
    return status;
}

static void nap(double seconds) {
    struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&t, &t) && errno == EINTR)
        ;
}

bool describe_end(int status, char *text, size_t size) {
    if (WIFSIGNALED(status))
        snprintf(text, size, "killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status))
        snprintf(text, size, "ended with exit code %d", WEXITSTATUS(status));
    return WIFSIGNALED(status) || WEXITSTATUS(status);
}

/* tide-run itself, which learns from mpirun's exit code not much. */
static void tell_launcher(void) {
    const char *text = getenv(LAUNCHER);
    long pid = text ? strtol(text, NULL, 10) : 0;
    if (pid > 1)
        kill((pid_t)pid, SIGUSR1);
}

int supervise(char **command) {
    td_launcher launcher = td_launcher_find();
    td_hub *hub = NULL;
    int ends[2];
    char address[ADDRESS] = "", how[128];
    if (launcher.rank == 0 && td_hub_open(launcher.one_machine, address, &hub) == TD_OK)
        setenv("TIDE_CONTROL", address, 1);
    if (pipe(ends)) {
        fprintf(stderr, "tide-run: no pipe: %s\n", strerror(errno));
        return FAILED;
    }
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    pid_t pid = fork();
    if (pid == 0)
        run(command, ends[1]);
    close(ends[1]);
    child = pid;
    pass_signals_on();
    int status = pid < 0 ? FAILED << 8 : wait_for(pid);
    child = 0;
    bool failed = describe_end(status, how, sizeof how);
    failed = failed && read(ends[0], address, sizeof address) == sizeof address &&
             td_hub_tell_gone(address, launcher.rank, how) == TD_OK;
    /* mpirun ends all others when one ends with a failure: they shall say why before. */
    if (failed) {
        tell_launcher();
        nap(1.2);
    }
    td_hub_close(hub);
    if (failed)
        return JOB_ENDED;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* rehearse.c: starts the ranks of a rehearsal, hands their pipes to the coordinator
 * (engine/distributed/coordinator.h), and ends them when it has a verdict. */
#include "repl/launch/rehearse.h"

#include "engine/distributed/coordinator.h"
#include "engine/distributed/rehearsal.h"
#include "repl/launch/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TURN_MS = 20, LAST_WORDS_MS = 100, SPARE_FILES = 64, FAILED = 127 };

typedef struct ranks {
    int n;
    pid_t *pids; /* 0: not started, or ended */
} ranks;

/* Four files for each rank while it starts, two afterwards. */
static void allow_files(int n) {
    struct rlimit limit;
    rlim_t wanted = (rlim_t)(2 * n + SPARE_FILES);
    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= wanted)
        return;
    limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit); /* a pipe that can't be had says so */
}

static void set_number(const char *name, int value) {
    char text[16];
    snprintf(text, sizeof text, "%d", value);
    setenv(name, text, 1);
}

/* The rank's process, with its ends of the pipes. */
static void become(int rank, int n, char **command, int in, int out) {
    char pipes[32];
    int nothing = open("/dev/null", O_RDONLY);
    if (nothing >= 0)
        dup2(nothing, STDIN_FILENO);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_DFL);
    fcntl(in, F_SETFD, 0);
    fcntl(out, F_SETFD, 0);
    snprintf(pipes, sizeof pipes, "%d %d", in, out);
    setenv(TD_REHEARSAL_PIPES, pipes, 1);
    set_number(TD_REHEARSAL_RANK, rank);
    set_number(TD_REHEARSAL_SIZE, n);
    execv(command[0], command);
    fprintf(stderr, "tide-run: %s can't be run: %s\n", command[0], strerror(errno));
    _exit(FAILED);
}

static bool start_rank(ranks *all, int rank, char **command, td_coordinator *c) {
    int up[2] = {-1, -1}, down[2] = {-1, -1};
    pid_t pid = -1;
    if (pipe2(up, O_CLOEXEC) == 0 && pipe2(down, O_CLOEXEC) == 0)
        pid = fork();
    if (pid == 0)
        become(rank, all->n, command, down[0], up[1]);
    if (pid < 0)
        fprintf(stderr, "tide-run: rank %d can't be started: %s\n", rank, strerror(errno));
    close(down[0]);
    close(up[1]);
    if (pid < 0)
        return false;
    all->pids[rank] = pid;
    return td_coordinator_connect(c, rank, up[0], down[1]) == TD_OK;
}

static int rank_of(const ranks *all, pid_t pid) {
    int r = 0;
    while (r < all->n && all->pids[r] != pid)
        r++;
    return r < all->n ? r : -1;
}

/* Tell the coordinator of those that have ended. */
static td_status reap(ranks *all, td_coordinator *c) {
    int status;
    char how[128];
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        int r = rank_of(all, pid);
        if (r < 0)
            continue;
        all->pids[r] = 0;
        bool wrong = describe_end(status, how, sizeof how);
        td_status told = td_coordinator_ended(c, r, wrong ? how : NULL);
        if (told)
            return told;
    }
    return TD_OK;
}

static void end_ranks(ranks *all) {
    poll(NULL, 0, LAST_WORDS_MS); /* one that failed may still say why */
    for (int r = 0; r < all->n; r++)
        if (all->pids[r] > 0)
            kill(all->pids[r], SIGKILL);
    for (int r = 0; r < all->n; r++)
        if (all->pids[r] > 0)
            waitpid(all->pids[r], NULL, 0);
}

/* Until all have ended or there is a verdict. */
static td_status watch(ranks *all, td_coordinator *c) {
    td_status status = TD_OK;
    while (!status && !td_coordinator_verdict(c) && !td_coordinator_is_over(c)) {
        status = td_coordinator_turn(c, TURN_MS);
        if (!status)
            status = reap(all, c);
    }
    return status;
}

int rehearse(int n, char **command, double patience, bool verbose) {
    ranks all = {n, calloc((size_t)n, sizeof *all.pids)};
    td_coordinator *c = NULL;
    td_status status = td_coordinator_new(n, patience, &c);
    bool started = all.pids && !status;
    allow_files(n);
    signal(SIGPIPE, SIG_IGN);
    for (int r = 0; r < n && started; r++)
        started = start_rank(&all, r, command, c);
    if (started)
        status = watch(&all, c);
    const char *verdict = started && !status ? td_coordinator_verdict(c) : NULL;
    if (all.pids)
        end_ranks(&all);
    if (status)
        fprintf(stderr, "tide-run: %s\n", td_error_message());
    if (verdict)
        fprintf(stderr, "tide-run: rehearsal of %d ranks: %s\n", n, verdict);
    else if (started && !status && verbose)
        fprintf(stderr, "tide-run: rehearsal of %d ranks: %lld transfers, and all could go on\n", n,
                (long long)td_coordinator_transfers(c));
    td_coordinator_release(c);
    free(all.pids);
    return !started || status ? FAILED : verdict ? JOB_ENDED : 0;
}

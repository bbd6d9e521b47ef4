/* tide_run.c: the program tide-run: starts a script as a job of several processes on this machine,
 * by the mpirun of an MPI that Tide has an engine for. It looks for nothing but programs: ranks,
 * sizes and engines are the script's, which asks for them with tide.distributed.init.
 */
#include "repl/launch/rehearse.h"
#include "repl/launch/supervise.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char usage[] =
    "usage: tide-run [-n N] [options] script [arguments]\n"
    "       tide-run --rehearse N [--patience S] script [arguments]\n"
    "  -n N             how many processes (as many as processors)\n"
    "  --mpi NAME       openmpi or mpich (TIDE_MPI, or the first that is installed)\n"
    "  --allow-root     let root start them, which Open MPI refuses unless it is told\n"
    "  --rehearse N     N ranks on this machine, without MPI, each of which is seen: where none "
    "can go\n"
    "                   on, or two differ, it is said who waits where, and the job ends with 113\n"
    "  --patience S     of a rehearsal: seconds in which something must happen (1800)\n"
    "  --verbose        print the command that is run\n"
    "  --help           this page\n"
    "Each process runs `tide script arguments`; tide.distributed.init() makes them one job. The\n"
    "processors are shared out: OMP_NUM_THREADS, where it is not set, is processors / N.\n";

typedef struct options {
    int n;
    const char *mpi;
    bool allow_root, verbose;
    int rehearsed; /* ranks of a rehearsal; 0: none */
    double patience;
    int script; /* index in argv */
} options;

static int usage_error(const char *what, const char *which) {
    fprintf(stderr, "tide-run: %s '%s' (tide-run --help lists the options)\n", what, which);
    return 2;
}

static int processors(void) {
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return n < 1 ? 1 : n;
}

static bool read_count(const char *text, long most, int *count) {
    char *end;
    long n = strtol(text, &end, 10);
    *count = n >= 1 && n <= most ? (int)n : 1;
    return n >= 1 && n <= most && !*end;
}

/* -1 to go on, or the exit code. */
static int parse(int argc, char **argv, options *o) {
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i];
        if (arg[0] != '-') {
            o->script = i;
            return -1;
        }
        if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0) {
            fputs(usage, stdout);
            return 0;
        }
        if (strcmp(arg, "--allow-root") == 0) {
            o->allow_root = true;
        } else if (strcmp(arg, "--verbose") == 0) {
            o->verbose = true;
        } else if (strcmp(arg, "--mpi") == 0 && i + 1 < argc) {
            o->mpi = argv[++i];
            if (strcmp(o->mpi, "openmpi") != 0 && strcmp(o->mpi, "mpich") != 0)
                return usage_error("openmpi or mpich expected after --mpi, not", o->mpi);
        } else if ((strcmp(arg, "-n") == 0 || strcmp(arg, "--rehearse") == 0) && i + 1 < argc) {
            if (!read_count(argv[++i], 4096, arg[1] == 'n' ? &o->n : &o->rehearsed))
                return usage_error("a number of processes from 1 to 4096 expected, not", argv[i]);
        } else if (strcmp(arg, "--patience") == 0 && i + 1 < argc) {
            int seconds;
            if (!read_count(argv[++i], 1000000, &seconds))
                return usage_error("seconds from 1 to 1000000 expected after --patience, not",
                                   argv[i]);
            o->patience = seconds;
        } else {
            return usage_error("unknown option, or nothing behind it:", arg);
        }
    }
    fputs("tide-run: no script to run\n", stderr);
    return 2;
}

/* Is there such a program on PATH? */
static bool is_program(const char *name) {
    const char *path = getenv("PATH");
    char file[PATH_MAX];
    for (path = path ? path : "/usr/bin:/bin"; *path;) {
        size_t len = strcspn(path, ":");
        snprintf(file, sizeof file, "%.*s/%s", (int)len, path, name);
        if (access(file, X_OK) == 0)
            return true;
        path += len + (path[len] == ':');
    }
    return false;
}

/* Which MPI an mpirun belongs to, by what it says of itself. */
static const char *kind_of(const char *mpirun) {
    char command[64], line[256];
    const char *kind = NULL;
    snprintf(command, sizeof command, "%s --version 2>/dev/null", mpirun);
    FILE *f = popen(command, "r");
    while (f && fgets(line, sizeof line, f)) {
        if (strstr(line, "Open MPI") || strstr(line, "OpenRTE") || strstr(line, "PRRTE"))
            kind = "openmpi";
        else if (strstr(line, "HYDRA"))
            kind = "mpich";
    }
    if (f)
        pclose(f);
    return kind;
}

/* The program that starts jobs of an MPI (NULL: any), and which it is. */
static const char *find_mpirun(const char **mpi) {
    static const char *const names[][2] = {{"mpirun.openmpi", "openmpi"},
                                           {"mpirun.mpich", "mpich"}};
    static const char *const plain[] = {"mpirun", "mpiexec"};
    for (int k = 0; k < 2; k++) {
        if ((!*mpi || strcmp(*mpi, names[k][1]) == 0) && is_program(names[k][0])) {
            *mpi = names[k][1];
            return names[k][0];
        }
    }
    for (int k = 0; k < 2; k++) {
        const char *kind = is_program(plain[k]) ? kind_of(plain[k]) : NULL;
        if (kind && (!*mpi || strcmp(*mpi, kind) == 0)) {
            *mpi = kind;
            return plain[k];
        }
    }
    return NULL;
}

static int fail_exec(const char *program) {
    fprintf(stderr, "tide-run: %s can't be run: %s\n", program, strerror(errno));
    return 127;
}

/* The program tide, which lies beside this one. */
static bool find_self(char self[PATH_MAX], char tide[PATH_MAX]) {
    ssize_t len = readlink("/proc/self/exe", self, PATH_MAX - 1);
    if (len < 0)
        return false;
    self[len] = '\0';
    char *slash = strrchr(self, '/');
    return slash && snprintf(tide, PATH_MAX, "%.*s/tide", (int)(slash - self), self) < PATH_MAX;
}

static volatile sig_atomic_t ended, mpirun_pid;

static void take_signal(int signal) {
    if (signal == SIGUSR1)
        ended = 1;
    else if (mpirun_pid > 0)
        kill((pid_t)mpirun_pid, signal);
}

/* Run mpirun; the exit code of the job. */
static int run(char **command) {
    static const int signals[] = {SIGUSR1, SIGTERM, SIGHUP, SIGINT};
    struct sigaction action = {.sa_handler = take_signal};
    char text[16];
    int status = 0;
    snprintf(text, sizeof text, "%d", (int)getpid());
    setenv(LAUNCHER, text, 1);
    pid_t pid = fork();
    if (pid == 0) {
        execvp(command[0], command);
        fail_exec(command[0]);
        _exit(127);
    }
    mpirun_pid = pid;
    for (size_t k = 0; k < sizeof signals / sizeof *signals; k++)
        sigaction(signals[k], &action, NULL);
    while (pid < 0 || waitpid(pid, &status, 0) < 0)
        if (pid < 0 || errno != EINTR)
            return fail_exec(command[0]);
    if (ended)
        return JOB_ENDED;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int start(int argc, char **argv, const options *o) {
    static char self[PATH_MAX], tide[PATH_MAX];
    char count[16], threads[16];
    const char *mpi = o->mpi ? o->mpi : getenv("TIDE_MPI");
    mpi = mpi && *mpi ? mpi : NULL;
    const char *mpirun = find_mpirun(&mpi);
    int n = 0;
    if (!mpirun) {
        fprintf(stderr, "tide-run: no mpirun of %s: install openmpi-bin or mpich\n",
                mpi ? mpi : "Open MPI or MPICH");
        return 127;
    }
    if (!find_self(self, tide))
        return fail_exec("tide");
    bool open_mpi = strcmp(mpi, "openmpi") == 0;
    if (open_mpi && geteuid() == 0 && !o->allow_root && !getenv("OMPI_ALLOW_RUN_AS_ROOT")) {
        fputs(
            "tide-run: Open MPI starts nothing for root unless it is told: tide-run --allow-root\n",
            stderr);
        return 2;
    }
    snprintf(count, sizeof count, "%d", o->n);
    snprintf(threads, sizeof threads, "%d", processors() > o->n ? processors() / o->n : 1);
    setenv("OMP_NUM_THREADS", threads, 0);
    setenv("TIDE_MPI", mpi, 1);
    if (open_mpi && o->allow_root) {
        setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
        setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    }
    char **command = calloc((size_t)argc + 16, sizeof *command);
    if (!command)
        return fail_exec("tide");
    command[n++] = (char *)mpirun;
    if (open_mpi) { /* not two threads of a process on one processor */
        command[n++] = "--oversubscribe";
        command[n++] = "--bind-to";
        command[n++] = "none";
    }
    command[n++] = "-n";
    command[n++] = count;
    command[n++] = self;
    command[n++] = SUPERVISE;
    command[n++] = tide;
    for (int i = o->script; i < argc; i++)
        command[n++] = argv[i];
    for (int i = 0; o->verbose && i < n; i++)
        fprintf(stderr, "%s%c", command[i], i + 1 < n ? ' ' : '\n');
    int code = run(command);
    free(command);
    return code;
}

static int start_rehearsal(char **argv, const options *o) {
    static char self[PATH_MAX], tide[PATH_MAX];
    if (!find_self(self, tide))
        return fail_exec("tide");
    argv[o->script - 1] = tide; /* what stood there is read */
    setenv("OMP_NUM_THREADS", "1", 0);
    return rehearse(o->rehearsed, argv + o->script - 1, o->patience, o->verbose);
}

int main(int argc, char **argv) {
    options o = {.n = processors(), .patience = 1800};
    if (argc > 2 && strcmp(argv[1], SUPERVISE) == 0)
        return supervise(argv + 2);
    int code = parse(argc, argv, &o);
    if (code >= 0)
        return code;
    return o.rehearsed ? start_rehearsal(argv, &o) : start(argc, argv, &o);
}

/* main.c: the command line of tide-kernel. */
#include "jupyter-kernel/install.h"
#include "jupyter-kernel/log.h"
#include "jupyter-kernel/serve.h"
#include "repl/session/session.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage_text[] =
    "usage: tide-kernel -f FILE [...]                           run the kernel of a connection "
    "file\n"
    "       tide-kernel --install [--user | --prefix DIR | --sys-prefix]\n"
    "       tide-kernel --uninstall [--user | --prefix DIR | --sys-prefix]\n"
    "       tide-kernel --version | --help\n"
    "\n"
    "--f=FILE does as well; what else stands beside it is a front end's business, as with\n"
    "jupyter run and jupyter console, and is passed over.\n"
    "--install makes Jupyter see the kernel as \"tide\": for everyone (below /usr/local), for you\n"
    "(--user), below DIR (--prefix), or in the environment in use (--sys-prefix: $VIRTUAL_ENV or\n"
    "$CONDA_PREFIX).\n";

typedef enum tk_command { RUN, INSTALL, UNINSTALL, PRINT_VERSION, PRINT_HELP } tk_command;

typedef struct tk_options {
    tk_command command;
    bool has_command;
    const char *connection_file;
    tk_place place;
    const char *prefix;
    const char *unknown; /* the first argument that is none of ours; NULL: there is none */
} tk_options;

static int usage(const char *problem, const char *what) {
    tk_log("%s%s%s; try tide-kernel --help", problem, what ? " " : "", what ? what : "");
    return 2;
}

static bool set_command(tk_options *o, tk_command command) {
    bool first = !o->has_command;
    o->has_command = true;
    o->command = command;
    return first;
}

static bool set_place(tk_options *o, tk_place place, const char *prefix) {
    bool first = o->place == TK_SYSTEM;
    o->place = place;
    o->prefix = prefix;
    return first;
}

/* 0, or the exit code of a wrong call. */
static int parse(int argc, char **argv, tk_options *o) {
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i];
        bool once = true, takes_value = false;
        if (strcmp(arg, "-f") == 0 || strcmp(arg, "--f") == 0 || strcmp(arg, "--prefix") == 0) {
            takes_value = true;
            if (i + 1 == argc)
                return usage("a value is missing after", arg);
        }
        if (strcmp(arg, "-f") == 0 || strcmp(arg, "--f") == 0 || strncmp(arg, "--f=", 4) == 0) {
            once = set_command(o, RUN);
            o->connection_file = takes_value ? argv[i + 1] : arg + 4;
        } else if (strcmp(arg, "--prefix") == 0)
            once = set_place(o, TK_PREFIX, argv[i + 1]);
        else if (strcmp(arg, "--user") == 0)
            once = set_place(o, TK_USER, NULL);
        else if (strcmp(arg, "--sys-prefix") == 0)
            once = set_place(o, TK_SYS_PREFIX, NULL);
        else if (strcmp(arg, "--install") == 0)
            once = set_command(o, INSTALL);
        else if (strcmp(arg, "--uninstall") == 0)
            once = set_command(o, UNINSTALL);
        else if (strcmp(arg, "--version") == 0)
            once = set_command(o, PRINT_VERSION);
        else if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0)
            once = set_command(o, PRINT_HELP);
        else if (!o->unknown)
            o->unknown = arg;
        if (!once)
            return usage("too many commands or places at", arg);
        i += takes_value;
    }
    if (o->unknown && (!o->has_command || o->command != RUN))
        return usage("unknown argument", o->unknown);
    if (!o->has_command)
        return usage("no connection file and no command", NULL);
    if (o->place != TK_SYSTEM && o->command != INSTALL && o->command != UNINSTALL)
        return usage("a place is of use only to --install and --uninstall", NULL);
    return 0;
}

/* Path of this program, or NULL with a line in the log. */
static char *own_path(void) {
    char *path = realpath("/proc/self/exe", NULL);
    if (!path)
        tk_log("/proc/self/exe: %s", strerror(errno));
    return path;
}

static int install(const tk_options *o) {
    char error[1024], *binary = NULL;
    char *folder = tk_install_folder(o->place, o->prefix, error, sizeof error);
    bool ok = folder != NULL;
    if (ok && o->command == INSTALL) {
        binary = own_path();
        ok = binary && tk_install(folder, binary, error, sizeof error);
        if (!binary)
            error[0] = '\0'; /* said already */
    } else if (ok) {
        ok = tk_uninstall(folder, error, sizeof error);
    }
    if (ok)
        printf("%s %s\n", o->command == INSTALL ? "installed" : "removed", folder);
    else if (error[0])
        tk_log("%s", error);
    free(binary);
    free(folder);
    return ok ? 0 : 1;
}

int main(int argc, char **argv) {
    tk_options o = {0};
    int wrong = parse(argc, argv, &o);
    if (wrong)
        return wrong;
    switch (o.command) {
    case PRINT_VERSION:
        printf("tide-kernel %s\n", tide_session_version());
        return 0;
    case PRINT_HELP:
        fputs(usage_text, stdout);
        return 0;
    case INSTALL:
    case UNINSTALL:
        return install(&o);
    case RUN:
        break;
    }
    if (sodium_init() < 0) {
        tk_log("cannot start libsodium");
        return 1;
    }
    return tk_serve(o.connection_file);
}

/* main.c: the program tide: its options, what they run, its exit code (0; 1: an error in what it
 * ran; 2: a call it does not understand); or its death by SIGINT, where that stopped what it ran.
 */
#include "repl/bottleneck.h"
#include "repl/protected.h"
#include "repl/session/eval.h"
#include "repl/session/session.h"
#include "repl/terminal.h"

#include "lua-bindings/distributed/job.h"
#include "lua-bindings/tide_lua.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROFILE_EVENTS "--profile-events"

static const char usage[] =
    "usage: tide [options] [script [arguments]]\n"
    "  -e CODE     run CODE and show its value (may be given several times)\n"
    "  -l NAME     require NAME into a global of that name\n"
    "  -i          open the prompt after the script or CODE\n"
    "  -           run standard input, with arguments\n"
    "  --          end of options\n"
    "  --no-init   open the prompt without running ~/.config/tide/init.lua\n"
    "  --profile FILE   record what runs, lines and memory too, as a Chrome trace\n"
    "  --profile-events N   of which it keeps the last N events (400000)\n"
    "  --bottleneck     run the script three times, recorded, and say what to change first\n"
    "  --advise [--json]   record what the script does, and say line by line what could be better\n"
    "  --info      what this build finds on this machine, a fact a line\n"
    "  --doctor [--json]   what is missing or slow on this machine, and what mends it\n"
    "  --doctor [--json] FILE...   what files are, what they hold, and what is wrong with them\n"
    "  --ops       all operators by family: signature and what it does, a line each\n"
    "  --ops --device NAME   where each runs: on the device (\"cuda\"), or what the CPU does for "
    "it\n"
    "  --reference   all operators, modules and functions as a page of HTML\n"
    "  --peak      measure what this machine can do, and remember it for the profiler's tables\n"
    "  --version   version\n"
    "  --help      this page\n"
    "Without a script, -e or -l: the prompt, or standard input where that is no terminal: a\n"
    "script, whose last expression is shown, or else inputs as at the prompt (expressions, ?name,\n"
    "/words, %magics), each shown, up to the first that fails. It is read whole before it runs,\n"
    "so that io.read finds its end. Modules are looked for beside a script first. At the prompt\n"
    "all inputs are like one chunk: locals at the top of one stay in sight.\n";

typedef struct options {
    bool interactive, info, ops, reference, peak, no_init, doctor;
    bool advise, json, bottleneck;
    const char *part, *part_path; /* of --bottleneck, which this is a run of; NULL: none */
    bool has_code;                /* -e or -l */
    const char *device;           /* of --ops; NULL: none */
    const char *profile;          /* where the trace goes; NULL: nothing is recorded */
    long long profile_events;     /* that it keeps at most; 0: as many as if nothing is said */
    const char *cpu;              /* what TIDE_CPU named in vain; NULL: nothing */
    int script;                   /* index of the script's path in argv, 0: none */
    bool left;                    /* what ran called os.exit: no prompt follows, -i or not */
    bool interrupted;             /* what ran last */
} options;

static int usage_error(const char *what, const char *which) {
    fprintf(stderr, "tide: %s '%s' (tide --help lists the options)\n", what, which);
    return 2;
}

/* Reads the options. Returns -1 to go on, or the exit code of a call that is done. */
static int parse_options(int argc, char **argv, options *o) {
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i];
        if (arg[0] != '-' || strcmp(arg, "-") == 0) {
            o->script = i;
            return -1;
        }
        if (strcmp(arg, "--") == 0) {
            o->script = i + 1 < argc ? i + 1 : 0;
            return -1;
        }
        if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0) {
            fputs(usage, stdout);
            return 0;
        }
        if (strcmp(arg, "--version") == 0 || strcmp(arg, "-v") == 0) {
            printf("Tide %s (%s)\n", tide_session_version(), LUA_RELEASE);
            return 0;
        }
        if (strcmp(arg, "-i") == 0) {
            o->interactive = true;
        } else if (strcmp(arg, "--info") == 0) {
            o->info = true;
        } else if (strcmp(arg, "--no-init") == 0) {
            o->no_init = true;
        } else if (strcmp(arg, "--profile") == 0) {
            if (++i == argc)
                return usage_error("something is missing after", arg);
            o->profile = argv[i];
        } else if (strcmp(arg, PROFILE_EVENTS) == 0) {
            char *end = NULL;
            o->profile_events = ++i < argc ? strtoll(argv[i], &end, 10) : 0;
            if (o->profile_events < 1 || *end)
                return usage_error("a number of events is missing after", arg);
        } else if (strcmp(arg, "--bottleneck") == 0) {
            o->bottleneck = true;
        } else if (strcmp(arg, BOTTLENECK_PART) == 0 && i + 2 < argc) {
            o->part = argv[++i];
            o->part_path = argv[++i];
        } else if (strcmp(arg, "--advise") == 0) {
            o->advise = true;
        } else if (strcmp(arg, "--json") == 0) {
            o->json = true;
        } else if (strcmp(arg, "--doctor") == 0) {
            o->doctor = true;
        } else if (strcmp(arg, "--ops") == 0) {
            o->ops = true;
        } else if (strcmp(arg, "--device") == 0) {
            if (++i == argc)
                return usage_error("something is missing after", arg);
            o->device = argv[i];
        } else if (strcmp(arg, "--reference") == 0) {
            o->reference = true;
        } else if (strcmp(arg, "--peak") == 0) {
            o->peak = true;
        } else if (strncmp(arg, "-e", 2) == 0 || strncmp(arg, "-l", 2) == 0) {
            o->has_code = true;
            if (arg[2] == '\0' && ++i == argc)
                return usage_error("something is missing after", arg);
        } else {
            return usage_error("unknown option", arg);
        }
    }
    return -1;
}

/* ---- what they run ---- */

/* (argc, argv, script): sets the global `arg` as lua5.4 does: the script at 0, the program before
 * it. */
static int set_arg(lua_State *L) {
    int argc = (int)lua_tointeger(L, 1), script = (int)lua_tointeger(L, 3);
    char **argv = lua_touserdata(L, 2);
    lua_createtable(L, argc - script, script + 1);
    for (int i = 0; i < argc; i++) {
        lua_pushstring(L, argv[i]);
        lua_rawseti(L, -2, i - script);
    }
    lua_setglobal(L, "arg");
    return 0;
}

/* False, with a line on stderr, when memory is out. */
static bool give_arg(lua_State *L, int argc, char **argv, int script) {
    lua_pushcfunction(L, set_arg);
    lua_pushinteger(L, argc);
    lua_pushlightuserdata(L, argv);
    lua_pushinteger(L, script);
    if (lua_pcall(L, 3, 0, 0) == LUA_OK)
        return true;
    fputs("tide: out of memory\n", stderr);
    return false;
}

/* Shows the result and clears it; where it is an error, after which no prompt follows, the ranks of
 * a job hear of it. Returns -1 to go on, or the exit code. */
static int finish(tide_result *r, options *o) {
    terminal_block_writes();
    int code = terminal_show(r, "tide: ");
    bool done = r->outcome != TIDE_OK;
    if (done && r->outcome != TIDE_EXIT && !o->interactive)
        tide_job_failed(tide_result_message(r));
    o->left = r->outcome == TIDE_EXIT;
    o->interrupted = r->outcome == TIDE_INTERRUPTED;
    tide_result_clear(r);
    return done ? code : -1;
}

static int run_code(tide_session *s, const char *code, options *o) {
    tide_result r;
    tide_session_eval(s, code, strlen(code), true, &r);
    return finish(&r, o);
}

static int run_require(tide_session *s, const char *name, options *o) {
    char code[1024];
    if (strlen(name) > 256 || strpbrk(name, "\"\\\n\r"))
        return usage_error("no module can be called", name);
    snprintf(code, sizeof code, "_G[\"%s\"] = require(\"%s\")", name, name);
    return run_code(s, code, o);
}

/* -e and -l in their order. -1: all went well. */
static int run_options(tide_session *s, int argc, char **argv, options *o) {
    int end = o->script ? o->script : argc;
    for (int i = 1; i < end; i++) {
        char kind = argv[i][0] == '-' ? argv[i][1] : '\0';
        if (strcmp(argv[i], BOTTLENECK_PART) == 0)
            i += 2;
        i +=
            strcmp(argv[i], "--profile") == 0 || strcmp(argv[i], PROFILE_EVENTS) == 0; /* a value */
        if (kind != 'e' && kind != 'l')
            continue;
        const char *value = argv[i][2] ? argv[i] + 2 : argv[++i];
        int code = kind == 'e' ? run_code(s, value, o) : run_require(s, value, o);
        if (code >= 0)
            return code;
    }
    return -1;
}

/* (script): modules are looked for beside it first. In a path of Lua's a ; or ? means something
 * else, so no such folder can stand there. */
static int look_beside(lua_State *L) {
    const char *script = lua_tostring(L, 1), *slash = strrchr(script, '/');
    size_t len = slash ? (size_t)(slash - script) : 0;
    if (!slash || strcspn(script, ";?") < len)
        return 0;
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    if (lua_getfield(L, -1, LUA_LOADLIBNAME) != LUA_TTABLE ||
        lua_getfield(L, -1, "path") != LUA_TSTRING)
        return 0;
    const char *folder = lua_pushlstring(L, script, len), *path = lua_tostring(L, -2);
    lua_pushfstring(L, "%s/?.lua;%s/?/init.lua;%s", folder, folder, path);
    lua_setfield(L, -4, "path");
    return 0;
}

static int run_script(tide_session *s, const char *path, options *o) {
    tide_result r;
    const char *problem = protected_call(tide_session_lua(s), look_beside, 1, &path);
    if (problem)
        fprintf(stderr, "tide: %s\n", problem);
    lua_pop(tide_session_lua(s), 1);
    if (problem)
        return 1;
    tide_session_run_file(s, path, 0, NULL, &r);
    return finish(&r, o);
}

/* All of standard input; `shows`: as at the prompt, the last expression of a script too. */
static int run_input(tide_session *s, bool shows, options *o) {
    char *text = NULL;
    size_t len = 0, room = 0, n = 1;
    while (n > 0) {
        if (len == room) {
            char *grown = realloc(text, room = 2 * room + 4096);
            if (!grown) {
                free(text);
                fputs("tide: out of memory\n", stderr);
                return 1;
            }
            text = grown;
        }
        len += n = fread(text + len, 1, room - len, stdin);
    }
    if (!tide_session_set_text(s, text, len, shows)) {
        fputs("tide: out of memory\n", stderr);
        return 1;
    }
    tide_result r;
    int code = -1;
    while (code < 0 && tide_session_run_text(s, &r))
        code = finish(&r, o);
    return code;
}

/* (name, argument): the table of lines that a function gives: a field of the tide table, or a part
 * of its modules. */
static int push_lines(lua_State *L) {
    const char *name = lua_tostring(L, 1);
    if (!tide_session_push_tide(L))
        return luaL_error(L, "the bindings tell nothing");
    if (strchr(name, '.'))
        tide_push_part(L, name);
    else
        lua_getfield(L, -1, name);
    lua_pushvalue(L, 2);
    lua_call(L, 1, 1);
    luaL_checktype(L, -1, LUA_TTABLE);
    return 1;
}

/* Print the lines under a heading; the exit code. */
static int print_lines(tide_session *s, const char *function, const char *argument,
                       const char *heading) {
    lua_State *L = tide_session_lua(s);
    const char *problem = protected_call(L, push_lines, 2, (const char *[]){function, argument});
    if (problem) {
        fprintf(stderr, "tide: %s\n", problem);
        lua_pop(L, 1);
        return 1;
    }
    fputs(heading, stdout);
    for (lua_Integer i = 1; lua_rawgeti(L, -1, i) == LUA_TSTRING; i++) {
        puts(lua_tostring(L, -1));
        lua_pop(L, 1);
    }
    lua_pop(L, 2);
    return 0;
}

/* What --doctor looks at: the form of what it prints, TIDE_CPU where it names nothing that runs,
 * and paths. */
typedef struct doctor_call {
    const char *form, *cpu;
    char **paths;
    int npaths, code;
} doctor_call;

static int call_doctor(lua_State *L) {
    doctor_call *c = lua_touserdata(L, 1);
    luaL_checkstack(L, c->npaths + 4, "too many files");
    tide_session_push_tide(L);
    tide_push_part(L, "doctor.report");
    lua_pushstring(L, c->form);
    lua_pushstring(L, c->cpu);
    for (int k = 0; k < c->npaths; k++)
        lua_pushstring(L, c->paths[k]);
    lua_call(L, 2 + c->npaths, 1);
    for (lua_Integer i = 1; lua_rawgeti(L, -1, i) == LUA_TSTRING; i++) {
        puts(lua_tostring(L, -1));
        lua_pop(L, 1);
    }
    lua_getfield(L, -2, "code");
    c->code = (int)lua_tointeger(L, -1);
    return 0;
}

/* The exit code: 1 where there is a problem. */
static int run_doctor(tide_session *s, int argc, char **argv, options *o) {
    tide_result r;
    doctor_call call = {.form = o->json ? "json" : NULL,
                        .cpu = o->cpu,
                        .paths = argv + o->script,
                        .npaths = o->script ? argc - o->script : 0};
    eval_call(s, call_doctor, &call, &r);
    o->interrupted = r.outcome == TIDE_INTERRUPTED;
    if (r.outcome != TIDE_OK && !o->interrupted)
        fprintf(stderr, "tide: --doctor: %s\n", tide_result_message(&r));
    int code = r.outcome == TIDE_OK ? call.code : 1;
    tide_result_clear(&r);
    return code;
}

static int run_prompt(tide_session *s, options *o) {
    o->interrupted = false;
    if (isatty(STDIN_FILENO)) /* what a program types is nobody's history */
        tide_session_history_open(s, tide_session_history_default_path());
    if (isatty(STDOUT_FILENO)) {
        printf("Tide %s, a tensor laboratory in %s\n", tide_session_version(), LUA_VERSION);
        puts("?name explains a name, Tab completes, %lsmagic lists the magics, Ctrl-D leaves");
    }
    tide_result r;
    if (!o->no_init && tide_session_run_init(s, &r)) {
        int code = finish(&r, o);
        if (o->left)
            return code;
    }
    return terminal_run(s);
}

/* A function of tide.profiler that begins or ends the recording of --profile or --advise. */
typedef struct profiler_call {
    const char *function, *value;
    long long events; /* 0: not said */
} profiler_call;

static int call_profiler(lua_State *L) {
    const profiler_call *c = lua_touserdata(L, 1);
    tide_session_push_tide(L);
    lua_getfield(L, -1, "profiler");
    lua_getfield(L, -1, c->function);
    lua_pushstring(L, c->value);
    if (c->events)
        lua_pushinteger(L, c->events);
    lua_call(L, c->events ? 2 : 1, 0);
    return 0;
}

/* False, with a line on stderr that begins with the option, where that fails. An interrupt ends it.
 */
static bool ask_profiler(tide_session *s, profiler_call call, const char *option, options *o) {
    tide_result r;
    eval_call(s, call_profiler, &call, &r);
    bool ok = r.outcome == TIDE_OK;
    o->interrupted = o->interrupted || r.outcome == TIDE_INTERRUPTED;
    if (!ok && r.outcome != TIDE_INTERRUPTED)
        fprintf(stderr, "tide: %s: %s\n", option, tide_result_message(&r));
    tide_result_clear(&r);
    return ok;
}

static bool profile(tide_session *s, const char *function, options *o) {
    return !o->profile || ask_profiler(s, (profiler_call){function, o->profile, o->profile_events},
                                       "--profile", o);
}

static int run(tide_session *s, int argc, char **argv, options *o);

/* A run of --bottleneck: the exit code. */
static int run_part(tide_session *s, int argc, char **argv, options *o) {
    if (!bottleneck_begin(s, o->part))
        return 1;
    int code = run(s, argc, argv, o);
    return bottleneck_finish(s, o->part, o->part_path) || code ? code : 1;
}

/* Everything that runs, and behind it what could be better in it, whatever became of it. */
static int run_advised(tide_session *s, int argc, char **argv, options *o) {
    if (!ask_profiler(s, (profiler_call){"_begin_advice", "", 0}, "--advise", o))
        return 1;
    int code = run(s, argc, argv, o);
    fflush(stdout);
    bool told = ask_profiler(s, (profiler_call){"_finish_advice", o->json ? "json" : "text", 0},
                             "--advise", o);
    return told || code ? code : 1;
}

/* Behind --doctor's files --json is an option too; the number of arguments without it. */
static int take_json(int argc, char **argv, options *o) {
    int kept = o->script;
    for (int i = o->script; i < argc; i++)
        if (strcmp(argv[i], "--json") == 0)
            o->json = true;
        else
            argv[kept++] = argv[i];
    return kept;
}

/* What does not go together: the exit code; -1: nothing. */
static int check_together(const options *o) {
    if (o->device && !o->ops)
        return usage_error("--ops is missing beside", "--device");
    if (o->json && !o->advise && !o->doctor)
        return usage_error("--advise or --doctor is missing beside", "--json");
    if (o->doctor && (o->has_code || o->interactive || o->profile || o->advise || o->bottleneck))
        return usage_error("-e, -l, -i and recordings don't go with", "--doctor");
    if (o->profile_events && !o->profile)
        return usage_error("--profile is missing beside", PROFILE_EVENTS);
    if (o->advise && o->profile)
        return usage_error("one recording at a time: --advise does not go with", "--profile");
    if (o->advise && !o->script && !o->has_code)
        return usage_error("a script is missing after", "--advise");
    return -1;
}

/* Everything that runs, recorded where that is asked for: the exit code. */
static int run_profiled(tide_session *s, int argc, char **argv, options *o) {
    if (o->bottleneck)
        return bottleneck_run(s, argv, o->script, &o->interrupted);
    if (o->part)
        return run_part(s, argc, argv, o);
    if (o->advise)
        return run_advised(s, argc, argv, o);
    if (!profile(s, "_begin", o))
        return 1;
    int code = run(s, argc, argv, o);
    return profile(s, "_finish", o) || code ? code : 1;
}

/* Everything between the birth of the session and its end: the exit code. */
static int run(tide_session *s, int argc, char **argv, options *o) {
    if (!give_arg(tide_session_lua(s), argc, argv, o->script))
        return 1;
    if (o->doctor)
        return run_doctor(s, argc, argv, o);
    if (o->info) {
        char heading[64];
        snprintf(heading, sizeof heading, "tide %s\n", tide_session_version());
        return print_lines(s, "_info", NULL, heading);
    }
    if (o->ops)
        return print_lines(s, o->device ? "devices.work" : "_reference", o->device, "");
    if (o->reference)
        return print_lines(s, "help.reference", NULL, "");
    if (o->peak)
        return print_lines(s, "devices.peak", NULL, "");
    int code = run_options(s, argc, argv, o);
    if (o->left || (code >= 0 && !o->interactive))
        return code;
    bool piped = o->script && strcmp(argv[o->script], "-") == 0;
    if (piped && (code < 0 || o->interactive))
        code = run_input(s, false, o);
    else if (o->script && (code < 0 || o->interactive))
        code = run_script(s, argv[o->script], o);
    else if (!o->has_code && !o->interactive && !isatty(STDIN_FILENO))
        code = run_input(s, true, o);
    else if (!o->has_code && !o->interactive)
        return run_prompt(s, o);
    if (o->interactive && !o->left)
        return run_prompt(s, o);
    return code < 0 ? 0 : code;
}

int main(int argc, char **argv) {
    options o = {0};
    int code = parse_options(argc, argv, &o);
    if (o.doctor && o.script)
        argc = take_json(argc, argv, &o);
    if (code < 0)
        code = check_together(&o);
    if (code >= 0)
        return code;
    if (o.bottleneck && (!o.script || strcmp(argv[o.script], "-") == 0))
        return usage_error("the path of a script is missing after", "--bottleneck");
    if (o.bottleneck && (o.has_code || o.interactive || o.profile))
        return usage_error("-e, -l, -i and --profile don't go with", "--bottleneck");
    signal(SIGPIPE, SIG_DFL);                   /* `tide script.lua | head` ends without a word */
    if (o.interactive && !isatty(STDIN_FILENO)) /* what io.read leaves are the next inputs */
        setvbuf(stdin, NULL, _IONBF, 0);
    tide_frontend frontend = {.interactive = isatty(STDOUT_FILENO),
                              .color = terminal_has_color(STDERR_FILENO)};
    tide_session *s = tide_session_new(&frontend);
    if (!s && o.doctor && getenv("TIDE_CPU")) { /* which the doctor is to say */
        o.cpu = getenv("TIDE_CPU");
        setenv("TIDE_CPU", "baseline", 1);
        s = tide_session_new(&frontend);
    }
    if (!s)
        return 1;
    terminal_catch_interrupts(s);
    code = run_profiled(s, argc, argv, &o);
    fflush(stdout);
    terminal_release_interrupts();
    tide_session_free(s);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fputs("tide: cannot write to standard output\n", stderr);
        code = code ? code : 1;
    }
    if (o.interrupted)
        terminal_end_interrupted();
    return code;
}

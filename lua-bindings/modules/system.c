/* system.c: threads, memory, seeds, time and facts about this build. */
#include "lua-bindings/call/function.h"
#include "lua-bindings/modules/modules.h"

#include "engine/core/observer.h"
#include "engine/core/version.h"
#include "engine/core/warn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static int set_num_threads(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    TIDE_CHECK(L, td_set_num_threads((int)f.args[0].i));
    return 0;
}

static _Atomic int usual_threads; /* when the first state was made */

/* _processors(): how many are ours, and whether others keep them busy. */
static int processors(lua_State *L) {
    double load = 0;
    int n = usual_threads;
    bool known = getloadavg(&load, 1) == 1;
    lua_pushinteger(L, n);
    lua_pushboolean(L, known && load > 0.75 * n);
    return 2;
}

static int get_num_threads(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    lua_pushinteger(L, td_get_num_threads());
    return 1;
}

static int set_flush_denormal(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    lua_pushboolean(L, td_set_flush_denormal(f.args[0].b));
    return 1;
}

static int use_deterministic(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    td_set_deterministic(f.args[0].b);
    return 0;
}

static int are_deterministic(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    lua_pushboolean(L, td_deterministic());
    return 1;
}

static int loading_time(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    lua_pushnumber(L, 1e-9 * (double)td_loading_ns());
    return 1;
}

/* ---- who tells times ---- */

static int end_watch(lua_State *L) {
    bool *on = lua_touserdata(L, 1);
    if (*on)
        td_loading_watch(-1);
    *on = false;
    return 0;
}

static void push_watch(lua_State *L) {
    static const luaL_Reg events[] = {{"__close", end_watch}, {"__gc", end_watch}, {NULL, NULL}};
    bool *on = lua_newuserdatauv(L, sizeof *on, 0);
    *on = false;
    if (luaL_newmetatable(L, "tide.watch"))
        luaL_setfuncs(L, events, 0);
    lua_setmetatable(L, -2);
    *on = true;
    td_loading_watch(1);
}

void tide_watch_until_return(lua_State *L) {
    push_watch(L);
    lua_toclose(L, -1);
}

static int watch_loading(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    push_watch(L);
    return 1;
}

static int wall_time(lua_State *L) {
    struct timespec t;
    tide_frame f;
    tide_read_call(L, &f);
    clock_gettime(CLOCK_MONOTONIC, &t);
    lua_pushnumber(L, (double)t.tv_sec + 1e-9 * (double)t.tv_nsec);
    return 1;
}

static td_device device_argument(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    return td_is_nil(f.args[0]) ? TD_DEVICE_CPU : f.args[0].device;
}

static int memory_allocated(lua_State *L) {
    lua_pushinteger(L, td_memory_allocated(device_argument(L)));
    return 1;
}

static int max_memory_allocated(lua_State *L) {
    lua_pushinteger(L, td_memory_get_stats(device_argument(L)).peak);
    return 1;
}

static int memory_stats(lua_State *L) {
    td_memory_stats s = td_memory_get_stats(device_argument(L));
    const struct {
        const char *name;
        int64_t value;
    } rows[] = {{"allocated", s.allocated},     {"peak", s.peak},
                {"cached", s.cached},           {"kept", s.kept},
                {"allocations", s.allocations}, {"system_allocations", s.system_allocations}};
    lua_createtable(L, 0, 6);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        lua_pushinteger(L, rows[k].value);
        lua_setfield(L, -2, rows[k].name);
    }
    return 1;
}

static int reset_peak(lua_State *L) {
    td_memory_reset_peak(device_argument(L));
    return 0;
}

static int empty_cache(lua_State *L) {
    td_memory_empty_cache(device_argument(L));
    return 0;
}

static int synchronize(lua_State *L) {
    TIDE_CHECK(L, td_device_synchronize(device_argument(L)));
    return 0;
}

static int sleep_seconds(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    double seconds = f.args[0].f;
    for (; seconds > 0 && !td_interrupt_requested(); seconds -= 0.05)
        usleep((useconds_t)(1e6 * (seconds < 0.05 ? seconds : 0.05)));
    TIDE_CHECK(L, td_interrupt_check());
    return 0;
}

/* tide._terminal_width(): columns of the terminal that standard error is; nil when it is none. */
static int terminal_width(lua_State *L) {
    struct winsize size = {0};
    const char *term = getenv("TERM");
    if (!isatty(STDERR_FILENO) || (term && !strcmp(term, "dumb")))
        return 0;
    int known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    lua_pushinteger(L, known ? size.ws_col : 80);
    return 1;
}

/* tide._info(): lines for `tide --info`. */
static int info(lua_State *L) {
    int n = 0;
    lua_newtable(L);
#define LINE(...) (lua_pushfstring(L, __VA_ARGS__), lua_rawseti(L, -2, ++n))
    (void)td_device_absence(TD_CUDA); /* looks for devices */
    LINE("threads: %d", td_get_num_threads());
    for (int t = 0; t < TD_DEVICE_TYPES; t++) {
        const td_backend *backend = td_backends[t];
        td_backend_facts facts =
            backend && backend->describe ? backend->describe(0) : (td_backend_facts){0};
        if (facts.kernels)
            LINE("%s: %s kernels%s%s", backend->name, facts.kernels, *facts.libraries ? ", " : "",
                 facts.libraries);
    }
    if (td_device_absence(TD_CUDA))
        LINE("cuda: no device (%s)", td_device_absence(TD_CUDA));
    LINE("lua: %s", LUA_RELEASE);
    LINE("operators: %d", td_op_count());
#undef LINE
    return 1;
}

/* To standard error, which front ends show where it belongs. */
static void show_warning(const char *line) {
    fprintf(stderr, "tide: warning: %s\n", line);
}

void tide_open_system(lua_State *L) {
    td_set_warn(show_warning);
    static const tide_function functions[] = {
        {"set_num_threads(int(1..1024) n)", "Threads that kernels may use.", set_num_threads},
        {"get_num_threads() -> int", "Threads that kernels may use.", get_num_threads},
        {"set_flush_denormal(bool mode) -> bool",
         "Take numbers too small for a float's usual form (below 1.2e-38 in float32, 2.2e-308 in "
         "float64 and in Lua's own) for zero on the CPU, which some processors are slow with; "
         "returns whether this one can. Off at first; for this thread, and what works for it.",
         set_flush_denormal},
        {"use_deterministic_algorithms(bool on)",
         "Products and convolutions give the same bits for any number of threads, which takes "
         "longer; "
         "all else does always.",
         use_deterministic},
        {"are_deterministic_algorithms_enabled() -> bool",
         "Has use_deterministic_algorithms been turned on?", are_deterministic},
        {"_loading_seconds() -> float", "Seconds that the process spent on loading.", loading_time},
        {"_watch_loading() -> any",
         "Until it is closed, what can be done apart from the work that it is for is: memory is "
         "touched when the system gives it.",
         watch_loading},
        {"time() -> float", "Seconds on a clock that never goes back.", wall_time},
        {"sleep(float(0..) seconds)", "Wait; Ctrl-C ends it.", sleep_seconds},
        {"memory_allocated(device? device=nil) -> int", "Bytes in use by tensors.",
         memory_allocated},
        {"max_memory_allocated(device? device=nil) -> int",
         "The most bytes that tensors took at a time, since the start or reset_peak_memory_stats.",
         max_memory_allocated},
        {"memory_stats(device? device=nil) -> table",
         "Bytes allocated, peak and cached, and those of weights that are kept packed for "
         "products or cast for autocast, which are among the allocated; allocations, and how many "
         "of them the cache could not serve.",
         memory_stats},
        {"reset_peak_memory_stats(device? device=nil)",
         "Let the peak start from what is in use now.", reset_peak},
        {"synchronize(device? device=nil)",
         "Wait until a device has done its work; an error that the work met is raised here.",
         synchronize},
        {"empty_cache(device? device=nil)", "Give cached memory back to the system.", empty_cache},
        {NULL, NULL, NULL},
    };
    static const luaL_Reg inner[] = {{"_terminal_width", terminal_width},
                                     {"_info", info},
                                     {"_processors", processors},
                                     {NULL, NULL}};
    if (!usual_threads)
        usual_threads = td_get_num_threads();
    tide_declare(L, functions);
    tide_set_functions(L, inner);
    lua_pushstring(L, td_version());
    lua_setfield(L, -2, "version");
    lua_pushstring(L, td_version());
    lua_setfield(L, -2, "__version__");
}

/* control.c: how an evaluation is stopped from outside (interrupt) and from inside (os.exit).
 *
 * Both unwind Lua to the top level with an error. So that user code can't swallow it, the session's
 * own pcall, xpcall and coroutine functions raise it again as long as a stop is under way; code
 * between them and the top runs its pending __close functions, as on any error.
 *
 * An interrupt may come from a signal handler or another thread. A hook belongs to one Lua thread,
 * so it must be set on the coroutine that runs: coroutine.resume and wrap note it in `running` (one
 * store each; a count hook on every coroutine would slow each instruction of all programs instead).
 * Setting a hook walks the call frames of that coroutine, so the thread that evaluates does it, in
 * a handler of SIGURG, which is ignored by default and used by nobody else.
 *
 * Where something else catches errors (a finalizer's) the hook stays as a fallback and raises again
 * every REARM instructions; the pause leaves __close functions room to work.
 *
 * C functions of Lua's own run no hook and look at no flag. Most of them allocate: after a moment,
 * in which a hook would have come, the allocator refuses them memory, and the error that they raise
 * is the stop. What neither allocates nor ends (a pattern, a finalizer) only the end of the process
 * stops: tide_session_interrupt says what it is and counts how often it was called in vain.
 */
#include "repl/session/control.h"
#include "repl/session/held.h"
#include "repl/session/state.h"

#include "engine/core/interrupt.h"
#include "engine/core/status.h"
#include "lua-bindings/state/arena.h"

#include <lauxlib.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { REARM = 1000000 };
/* After an interrupt: until allocations are refused; until another one counts; until it counts when
 * the next thing is the end of the process, so that what was said can be read. */
#define REFUSE_NS INT64_C(50000000)
#define COUNT_NS  INT64_C(200000000)
#define READ_NS   INT64_C(1000000000)

/* The thread sanitizer holds a signal back until the thread calls the C library next, which a Lua
 * loop may never do: under it the interrupting thread sets the hook itself. */
#ifdef __has_feature
#if __has_feature(thread_sanitizer)
#define SIGNALS_ARE_LATE 1
#endif
#endif
#if defined(__SANITIZE_THREAD__) && !defined(SIGNALS_ARE_LATE)
#define SIGNALS_ARE_LATE 1
#endif
#ifndef SIGNALS_ARE_LATE
#define SIGNALS_ARE_LATE 0
#endif

/* The session this thread evaluates for; NULL between evaluations. */
static _Thread_local tide_session *active;

static lua_CFunction original_resume, original_wrap, original_close, original_exit, original_load,
    original_sethook;
static _Atomic(lua_CFunction) original_wrapped; /* what the functions of coroutine.wrap run */

stop_reason control_stopping(const tide_session *s) {
    return (stop_reason)atomic_load(&s->stop);
}

void control_let_stops_pass(lua_State *L) {
    if (control_stopping(session_of(L)) != STOP_NONE)
        lua_error(L);
}

static bool stopping(void) {
    return active && atomic_load_explicit(&active->stop, memory_order_acquire) != STOP_NONE;
}

static void stop_hook(lua_State *L, lua_Debug *ar);

/* Makes the Lua thread raise. Async-signal-safe, as in lua.c. An interrupt that has not been raised
 * yet is raised between two instructions, or when a function returns to one of C (string.gsub(s, p,
 * string.upper) runs no instruction). Not when one is called: the __close of a context that is
 * being left must have its effect. Nor between a call and the instruction after it, which may be
 * the one that makes a context of what came back (`local guard <close> = tide.no_grad()`). */
static void arm(tide_session *s, lua_State *L) {
    bool again = atomic_load(&s->raised);
    int mask = LUA_MASKCOUNT;
    if (atomic_load(&s->stop) == STOP_INTERRUPT && !again) {
        mask |= LUA_MASKRET;
        atomic_store(&s->settling, true);
    }
    if (L == s->L && lua_gethook(L) != stop_hook && atomic_load(&s->hook_given)) {
        s->hook = lua_gethook(L);
        s->hook_mask = lua_gethookmask(L);
        s->hook_count = lua_gethookcount(L);
    }
    lua_sethook(L, stop_hook, mask, again ? REARM : 1);
}

static int stoppable_xpcall(lua_State *L);

static int pass_message(lua_State *L) {
    lua_settop(L, 1);
    return 1;
}

/* What is raised in a hook runs the message handler inside it, where no hook comes to end a handler
 * that doesn't return. So the handlers of xpcall, second in its frame, are taken out before. */
static void silence_handlers(lua_State *L) {
    enum { DEEPEST = 2000 }; /* finding a level takes time in proportion to it */
    lua_Debug ar;
    for (int level = 0; level < DEEPEST && lua_getstack(L, level, &ar); level++) {
        lua_getinfo(L, "f", &ar);
        bool is_xpcall = lua_tocfunction(L, -1) == stoppable_xpcall;
        lua_pop(L, 1);
        lua_pushcfunction(L, pass_message);
        if (!is_xpcall || !lua_setlocal(L, &ar, 2))
            lua_pop(L, 1);
    }
}

/* Is this a place where what has come back from a call has no owner yet? */
static bool is_unsettled(lua_State *L, const lua_Debug *at) {
    lua_Debug caller;
    if (atomic_load(&active->stop) != STOP_INTERRUPT || atomic_load(&active->raised))
        return false;
    if (at->event != LUA_HOOKRET)
        return atomic_exchange(&active->settling, false);
    if (!lua_getstack(L, 1, &caller) || !lua_getinfo(L, "S", &caller) || *caller.what == 'C')
        return false;
    atomic_store(&active->settling, true);
    return true;
}

static void stop_hook(lua_State *L, lua_Debug *ar) {
    if (!stopping()) {
        lua_sethook(L, NULL, 0, 0);
        return;
    }
    if (is_unsettled(L, ar))
        return;
    if (atomic_load(&active->stop) == STOP_INTERRUPT || !active->exit_quietly) {
        /* A kernel that stopped has raised already: what runs now is closed on the way out. */
        bool by_kernel = !atomic_exchange(&active->raised, true) && td_error_code() == TD_EINTR;
        arm(active, L);
        td_interrupt_clear(); /* kernels may run in what is closed */
        if (by_kernel)
            return;
    }
    silence_handlers(L);
    luaL_error(L, "interrupted");
}

/* ---- memory that is refused ---- */

int64_t control_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Lua asks twice, with a collection between, before it raises; a buffer's owner raises at once.
 * What is raised in a finalizer is lost: there every request is refused, until the hook comes. */
static bool refuses(tide_session *s) {
    if (active != s || atomic_load(&s->stop) != STOP_INTERRUPT || atomic_load(&s->raised) ||
        control_now_ns() - atomic_load(&s->asked_at) < REFUSE_NS)
        return false;
    if (++s->refusals > 1 && lua_gc(s->L, LUA_GCCOUNT) >= 0) {
        s->refusals = 0;
        atomic_store(&s->raised, true);
        arm(s, atomic_load(&s->running));
        td_interrupt_clear(); /* what is closed on the way out may need memory */
    }
    return true;
}

static void *refusing_alloc(void *ud, void *block, size_t old_size, size_t new_size) {
    tide_session *s = ud;
    if (TD_UNLIKELY(td_interrupt_requested()) && new_size > (block ? old_size : 0) && refuses(s))
        return NULL;
    return s->alloc(s->alloc_ud, block, old_size, new_size);
}

static void refuse_memory(tide_session *s) {
    void *ud;
    lua_getallocf(s->L, &ud);
    tide_arena *arena = ud;
    s->alloc = arena->next;
    s->alloc_ud = arena->next_ud;
    arena->next = refusing_alloc;
    arena->next_ud = s;
}

/* ---- the evaluation ---- */

/* In the thread that evaluates. */
static void demand_stop(tide_session *s) {
    lua_State *L = atomic_load(&s->running);
    arm(s, L);
    if (atomic_exchange(&s->to_say, false))
        held_say(L);
}

static void on_stop_signal(int number) {
    (void)number;
    if (stopping())
        demand_stop(active);
}

static void catch_stop_signal(void) {
    struct sigaction action = {.sa_handler = on_stop_signal};
    sigemptyset(&action.sa_mask);
    sigaction(SIGURG, &action, NULL); /* no SA_RESTART: a blocked read must return */
}

void control_begin(tide_session *s) {
    if (s->depth++ > 0)
        return;
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, catch_stop_signal);
    atomic_store(&s->stop, STOP_NONE);
    atomic_store(&s->asked, 0);
    atomic_store(&s->to_say, false);
    s->refusals = 0;
    s->hook_failed = s->traced = false;
    td_interrupt_clear();
    (void)td_fail(TD_OK, "%s", ""); /* so that an old EINTR is not taken for a new one */
    s->thread = pthread_self();
    atomic_store(&s->running, s->L);
    s->outer = active;
    active = s;
    atomic_store(&s->evaluating, true);
    if (tide_session_expect(s, false)) {
        tide_session_interrupt(s);
        atomic_store(&s->settling, false); /* nothing has run */
    }
}

void control_end(tide_session *s) {
    if (--s->depth > 0)
        return;
    atomic_store(&s->evaluating, false);
    active = s->outer;
    if (atomic_exchange(&s->stop, STOP_NONE) != STOP_NONE && lua_gethook(s->L) == stop_hook)
        lua_sethook(s->L, NULL, 0, 0);
    td_interrupt_clear();
}

/* ---- the user's hook ---- */

/* Ours stays: it is about to raise, at the place where it was to. */
static void set_hook(tide_session *s, lua_Hook hook) {
    if (lua_gethook(s->L) == stop_hook)
        return;
    lua_sethook(s->L, hook, hook ? s->hook_mask : 0, hook ? s->hook_count : 0);
    if (stopping()) /* it came meanwhile */
        arm(s, atomic_load(&s->running));
}

static void give_hook(tide_session *s) {
    lua_Hook hook = s->hook;
    atomic_store(&s->hook_given, true);
    set_hook(s, hook);
}

static void hold_hook(tide_session *s) {
    lua_Hook hook = lua_gethook(s->L);
    if (hook != stop_hook) { /* else it has been kept */
        s->hook = hook;
        s->hook_mask = lua_gethookmask(s->L);
        s->hook_count = lua_gethookcount(s->L);
    }
    atomic_store(&s->hook_given, false);
    set_hook(s, NULL);
}

int control_call(lua_State *L, int nargs, int handler) {
    tide_session *s = session_of(L);
    bool given = atomic_load(&s->hook_given);
    if (!given)
        give_hook(s);
    int status = lua_pcall(L, nargs, LUA_MULTRET, handler);
    if (!given)
        hold_hook(s);
    session_mend_registry(L);
    return status;
}

int control_call_own(lua_State *L, int nargs, int nresults) {
    lua_Hook hook = lua_gethook(L);
    int mask = lua_gethookmask(L), count = lua_gethookcount(L);
    if (!hook || hook == stop_hook)
        return lua_pcall(L, nargs, nresults, 0);
    lua_sethook(L, NULL, 0, 0);
    if (stopping())
        arm(active, L);
    int status = lua_pcall(L, nargs, nresults, 0);
    if (lua_gethook(L) == NULL)
        lua_sethook(L, hook, mask, count);
    if (stopping())
        arm(active, L);
    return status;
}

void control_drop_failed_hook(lua_State *L) {
    enum { DEEPEST = 50 };
    tide_session *s = session_of(L);
    lua_Debug ar;
    for (int level = 1; level < DEEPEST && lua_getstack(L, level, &ar); level++) {
        if (!lua_getinfo(L, "n", &ar) || strcmp(ar.namewhat, "hook") != 0)
            continue;
        s->hook_failed = control_stopping(s) == STOP_NONE;
        if (s->hook_failed) {
            s->hook = NULL;
            lua_sethook(L, NULL, 0, 0);
        }
        return;
    }
}

/* The number of this interrupt, 0: it comes too soon to count. */
static int count_interrupt(tide_session *s) {
    int asked = atomic_load(&s->raised) ? 0 : atomic_load(&s->asked);
    int64_t now = control_now_ns(), since = now - atomic_load(&s->asked_at);
    if (asked > 0 && since < (asked < 3 ? COUNT_NS : READ_NS))
        return 0;
    atomic_store(&s->asked_at, now);
    atomic_store(&s->asked, ++asked);
    if (asked == 2)
        atomic_store(&s->to_say, true);
    return asked;
}

int tide_session_interrupt(tide_session *s) {
    if (!atomic_load(&s->evaluating)) {
        if (atomic_load(&s->expecting))
            atomic_store(&s->awaited, true);
        return 0;
    }
    int none = STOP_NONE, number = count_interrupt(s);
    atomic_store(&s->raised, false);
    atomic_compare_exchange_strong(&s->stop, &none, STOP_INTERRUPT);
    td_interrupt_request();
    if (pthread_equal(pthread_self(), s->thread))
        demand_stop(s);
    else if (SIGNALS_ARE_LATE)
        arm(s, atomic_load(&s->running));
    else
        pthread_kill(s->thread, SIGURG);
    return number;
}

bool tide_session_expect(tide_session *s, bool coming) {
    atomic_store(&s->expecting, coming);
    return atomic_exchange(&s->awaited, false);
}

/* ---- functions that would swallow the stop ---- */

/* Lua thread L goes on; if a stop came meanwhile, it is L's to raise it. The fence keeps the store
 * before the test: a signal between them finds the new thread, one before them is seen by the test.
 */
static void run_here(lua_State *L) {
    if (!active)
        return;
    atomic_store_explicit(&active->running, L, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    if (stopping())
        arm(active, L);
}

static int finish_pcall(lua_State *L, int status, lua_KContext skip) {
    run_here(L);
    if (status == LUA_OK || status == LUA_YIELD)
        return lua_gettop(L) - (int)skip;
    if (stopping())
        return lua_error(L);
    session_of(L)->traced = false; /* it is caught */
    lua_pushboolean(L, 0);
    lua_insert(L, -2);
    return 2;
}

static int stoppable_pcall(lua_State *L) {
    luaL_checkany(L, 1);
    lua_pushboolean(L, 1); /* the first result when all goes well */
    lua_insert(L, 1);
    int status = lua_pcallk(L, lua_gettop(L) - 2, LUA_MULTRET, 0, 0, finish_pcall);
    return finish_pcall(L, status, 0);
}

static int stoppable_xpcall(lua_State *L) {
    int n = lua_gettop(L);
    luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_pushboolean(L, 1);
    lua_pushvalue(L, 1);
    lua_rotate(L, 3, 2); /* f, handler, true, f, arguments */
    int status = lua_pcallk(L, n - 2, LUA_MULTRET, 2, 2, finish_pcall);
    return finish_pcall(L, status, 2);
}

/* Calls a function of the coroutine library, in this very frame, as the one that runs `co`. */
static int run_coroutine(lua_State *L, lua_State *co, lua_CFunction original) {
    if (co)
        run_here(co);
    int n = original(L);
    run_here(L);
    if (stopping() && n > 0 && !lua_toboolean(L, -n))
        return luaL_error(L, "interrupted");
    session_of(L)->traced = false;
    return n;
}

static int stoppable_resume(lua_State *L) {
    return run_coroutine(L, lua_tothread(L, 1), original_resume);
}

static int stoppable_close(lua_State *L) {
    return run_coroutine(L, lua_tothread(L, 1), original_close);
}

/* The function that coroutine.wrap returns; errors pass through it by themselves. */
static int stoppable_wrapped(lua_State *L) {
    run_here(lua_tothread(L, lua_upvalueindex(1)));
    int n = atomic_load_explicit(&original_wrapped, memory_order_relaxed)(L);
    run_here(L);
    return n;
}

static int stoppable_wrap(lua_State *L) {
    original_wrap(L);
    atomic_store_explicit(&original_wrapped, lua_tocfunction(L, -1), memory_order_relaxed);
    lua_getupvalue(L, -1, 1);
    lua_pushcclosure(L, stoppable_wrapped, 1);
    return 1;
}

/* The errors of load's reader are its results. */
static int stoppable_load(lua_State *L) {
    int n = original_load(L);
    if (stopping() && !lua_toboolean(L, -n))
        return luaL_error(L, "interrupted");
    return n;
}

/* What sets a hook takes ours away. */
static int stoppable_sethook(lua_State *L) {
    int n = original_sethook(L);
    if (stopping())
        arm(active, atomic_load(&active->running));
    return n;
}

/* os.exit([code [, close]]): ends the evaluation with TIDE_EXIT; the process goes on. Without
 * `close` the hook stays at every instruction, so that no __close function written in Lua gets to
 * run; those in C (tide's contexts) still restore what they must. */
int control_exit(lua_State *L) {
    if (!active)
        return original_exit(L);
    int code = lua_isboolean(L, 1) ? (lua_toboolean(L, 1) ? EXIT_SUCCESS : EXIT_FAILURE)
                                   : (int)luaL_optinteger(L, 1, EXIT_SUCCESS);
    active->exit_code = code;
    active->exit_quietly = !lua_toboolean(L, 2);
    atomic_store(&active->raised, !active->exit_quietly);
    atomic_store(&active->stop, STOP_EXIT);
    arm(active, L);
    return luaL_error(L, "os.exit");
}

bool control_catch_exit(tide_session *s, int *code) {
    if (control_stopping(s) != STOP_EXIT)
        return false;
    *code = s->exit_code;
    atomic_store(&s->stop, STOP_NONE);
    atomic_store(&s->raised, false);
    s->traced = false;
    if (lua_gethook(s->L) == stop_hook)
        lua_sethook(s->L, s->hook, s->hook_mask, s->hook_count);
    return true;
}

/* Replaces field `name` of the table on top, and returns what was there. */
static lua_CFunction replace(lua_State *L, const char *name, lua_CFunction function) {
    lua_getfield(L, -1, name);
    lua_CFunction original = lua_tocfunction(L, -1);
    lua_pop(L, 1);
    lua_pushcfunction(L, function);
    lua_setfield(L, -2, name);
    return original;
}

void control_install(tide_session *s) {
    lua_State *L = s->L;
    refuse_memory(s);
    lua_pushglobaltable(L);
    replace(L, "pcall", stoppable_pcall);
    replace(L, "xpcall", stoppable_xpcall);
    original_load = replace(L, "load", stoppable_load);
    lua_getfield(L, -1, "coroutine");
    original_resume = replace(L, "resume", stoppable_resume);
    original_wrap = replace(L, "wrap", stoppable_wrap);
    original_close = replace(L, "close", stoppable_close);
    lua_pop(L, 1);
    lua_getfield(L, -1, "os");
    original_exit = replace(L, "exit", control_exit);
    lua_pop(L, 1);
    lua_getfield(L, -1, "debug");
    original_sethook = replace(L, "sethook", stoppable_sethook);
    lua_pop(L, 2);
}

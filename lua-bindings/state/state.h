/* state.h: what the bindings keep for each Lua state, and the steps that every bound function
 * shares.
 *
 * A bound function has the state and the tensor metatable as its first upvalues, so that a call
 * looks nothing up. The order of its steps: check all arguments, owning nothing; push empty
 * handles; call the engine; fill the handles; raise an error only when nothing is owned.
 */
#ifndef TIDE_LUA_STATE_STATE_H
#define TIDE_LUA_STATE_STATE_H

#include "lua-bindings/state/arena.h"
#include "lua-bindings/state/errors.h"
#include "lua-bindings/state/pressure.h"

#include "engine/core/observer.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

/* A function whose calls are put off (engine/script/defer/defer.h). */
typedef struct tide_deferring {
    td_deferral *deferral;
    /* Run what has gathered; raises what a call of it raises. */
    void (*settle)(lua_State *L, struct tide_deferring *self);
} tide_deferring;

typedef struct tide_state {
    tide_arena *arena;
    tide_pressure pressure;
    td_observer *observer;         /* of what the state does; NULL: none */
    _Atomic bool keeping;          /* tensors that finalizers closed, or anchors to let go */
    int depth;                     /* calls of the script by the engine, within one another */
    struct tide_home *home;        /* script.c's part */
    tide_deferring *deferring;     /* the function that runs so; NULL: none does */
    bool whole;                    /* all its parts are there */
    bool loading;                  /* a module of Lua is, and those that it needs are part of it */
    lua_CFunction ipairs_iterator; /* NULL where ipairs is not Lua's own */
} tide_state;

enum { TIDE_UP_STATE = 1, TIDE_UP_METATABLE = 2, TIDE_UP_FIRST = 3 };

/* The state of the running bound function. */
#define TIDE_STATE(L) ((tide_state *)lua_touserdata(L, lua_upvalueindex(TIDE_UP_STATE)))

/* The thread of a Lua state that its coroutines come from. */
static inline lua_State *tide_main_thread(lua_State *L) {
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
    lua_State *found = lua_tothread(L, -1);
    lua_pop(L, 1);
    return found;
}

/* What this thread does in the engine is the state's work from here on: its recording sees it. */
static inline void tide_enter_engine(const tide_state *state) {
    td_observer_current = state->observer;
}

/* The bindings' part of a Lua state, made where there is none; the tensor metatable is in the
 * registry then. Whoever opens a state adds the other parts (state->whole). */
tide_state *tide_state_find(lua_State *L);
/* Push a C closure whose upvalues are the state, the metatable and the `extra` values on the top of
 * the stack. */
void tide_push_function(lua_State *L, lua_CFunction fn, int extra);
/* The same for a table of functions, set as fields of the table at the top. */
void tide_set_functions(lua_State *L, const luaL_Reg *functions);

/* Push an empty handle with its metatable. Garbage may be collected before, so that the tensor to
 * come finds the memory of one that has gone. */
tide_handle *tide_push_handle(lua_State *L);
/* Push the table of weak keys that lies under a light key in the registry, made when missing. */
void tide_push_weak_table(lua_State *L, const void *key);

/* Let go of a handle's tensor: at once, within a finalizer after the call that it interrupts. */
void tide_close_handle(lua_State *L, tide_handle *handle);
void tide_drop_kept(lua_State *L, tide_state *state);

/* The tensor at a stack index, borrowed; NULL when there is none. Raises for a closed one. Where
 * its call is put off, all that has gathered runs first, and may raise an error. */
td_tensor *tide_to_tensor(lua_State *L, int index);
/* The same for readers of shape, strides, dtype and requires_grad alone: of a tensor whose call is
 * put off, a stand-in without elements (its device is td_device_real of its device). */
td_tensor *tide_to_shape(lua_State *L, int index);
td_tensor *tide_check_shape(lua_State *L, int index, const char *fname);
/* Run what the state's function has put off, before something that must see it done. */
static inline void tide_settle(lua_State *L, tide_state *state) {
    if (TD_UNLIKELY(state->deferring != NULL))
        state->deferring->settle(L, state->deferring);
}
/* The same, raising `fname: argument N (pname): tensor expected, got X`. */
td_tensor *tide_check_tensor(lua_State *L, int index, const char *fname);

/* Raise the engine's error (or an interrupt) at the line of the user's code. */
int tide_raise(lua_State *L);
/* What a function gives that may fail: the value at the top of the stack; nil and the engine's
 * message after an error. An interrupt is raised. How many there are. */
int tide_value_or_why(lua_State *L, td_status status);
/* In loops over much data: raises an interrupt that is requested, once in a thousand times. Nothing
 * may be owned. */
static inline void tide_poll(lua_State *L, int64_t turn) {
    if (TD_UNLIKELY((turn & 1023) == 0 && td_interrupt_requested())) {
        (void)td_interrupted();
        tide_raise(L);
    }
}
#define TIDE_CHECK(L, status) ((status) == TD_OK ? (void)0 : (void)tide_raise(L))

/* After an engine call made a tensor: does the collector have to see how much memory they take? It
 * runs when the next handle is pushed. */
static inline void tide_check_pressure(lua_State *L, tide_state *state, const td_tensor *made) {
    if (made && made->storage->granted) {
        tide_pressure_note(&state->pressure, made->storage->device);
        if (TD_UNLIKELY(state->keeping))
            tide_drop_kept(L, state);
    }
}
/* Out of memory: collect everything, empty the caches. The caller tries once more. */
void tide_free_memory(lua_State *L, tide_state *state);

/* Until the running C function is left, however that goes, times are told (td_loading_watch).
 * Pushes a value, which must stay where it is. */
void tide_watch_until_return(lua_State *L);

#endif

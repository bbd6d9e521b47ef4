/* anchors.c: what the engine holds of Lua, and the error of a script's function that waits to be
 * raised again. */
#include "lua-bindings/state/anchors.h"

#include <pthread.h>
#include <stdlib.h>

static const char home_key = 0, table_key = 0, error_key = 0;

struct tide_anchor {
    tide_home *home;
    int place; /* in the table */
    const void *holder;
    tide_anchor *next_dropped, *before, *after;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all homes' lists */
_Thread_local tide_home *tide_home_entered;

static void home_release(void *of) {
    tide_home *home = of;
    if (td_was_last(&home->refs))
        free(home);
}

static tide_home *home_of(lua_State *L) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &home_key);
    tide_home *home = *(tide_home **)lua_touserdata(L, -1);
    lua_pop(L, 1);
    return home;
}

/* ---- anchors ---- */

static void link_anchor(tide_home *home, tide_anchor *anchor) {
    pthread_mutex_lock(&lock);
    anchor->after = home->first;
    if (home->first)
        home->first->before = anchor;
    home->first = anchor;
    home->count++;
    pthread_mutex_unlock(&lock);
}

static void free_anchor(tide_anchor *anchor) {
    tide_home *home = anchor->home;
    pthread_mutex_lock(&lock);
    if (anchor->before)
        anchor->before->after = anchor->after;
    else
        home->first = anchor->after;
    if (anchor->after)
        anchor->after->before = anchor->before;
    home->count--;
    pthread_mutex_unlock(&lock);
    free(anchor);
    home_release(home);
}

/* The table of anchored values stands in a slot, a table of one value, that the registry holds:
 * circles.c takes it out for a collection, and whoever keeps what the registry holds must not keep
 * the values. Pushes the value of the slot, nil where there is none. */
void tide_script_push_table(lua_State *L) {
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &table_key) != LUA_TTABLE)
        return;
    lua_rawgeti(L, -1, 1);
    lua_remove(L, -2);
}

void tide_script_set_table(lua_State *L) {
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &table_key) != LUA_TTABLE) {
        lua_pop(L, 1);
        lua_createtable(L, 1, 0);
        lua_pushvalue(L, -1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &table_key);
    }
    lua_insert(L, -2);
    lua_rawseti(L, -2, 1);
    lua_pop(L, 1);
}

/* Push the table of anchored values. False (nothing pushed): circles.c has it, and a finalizer that
 * runs before its own wants it. */
static bool push_table(lua_State *L) {
    tide_script_push_table(L);
    if (lua_istable(L, -1))
        return true;
    lua_pop(L, 1);
    return false;
}

tide_anchor *tide_anchor_new(lua_State *L) {
    tide_home *home = home_of(L);
    tide_script_drain(L);
    if (!push_table(L))
        tide_error(L, "a finalizer can't set hooks here");
    lua_insert(L, -2);
    int place = luaL_ref(L, -2);
    tide_anchor *anchor = malloc(sizeof *anchor);
    if (!anchor)
        luaL_unref(L, -1, place);
    lua_pop(L, 1);
    if (!anchor)
        tide_error(L, "not enough memory");
    *anchor = (tide_anchor){.home = home, .place = place, .holder = anchor};
    atomic_fetch_add_explicit(&home->refs, 1, memory_order_relaxed);
    link_anchor(home, anchor);
    return anchor;
}

void tide_anchor_held_by(tide_anchor *anchor, const void *holder) {
    anchor->holder = holder;
}

tide_home *tide_anchor_home(const tide_anchor *anchor) {
    return anchor->home;
}

int tide_script_anchors(const tide_state *state) {
    return state->home->count;
}

const tide_anchor *tide_anchor_next(const tide_state *state, const tide_anchor *anchor) {
    return anchor ? anchor->after : state->home->first;
}

const void *tide_anchor_holder(const tide_anchor *anchor) {
    return anchor->holder;
}

void tide_anchor_push(lua_State *L, const tide_anchor *anchor) {
    if (!push_table(L))
        tide_error(L, "a finalizer can't call hooks here");
    lua_rawgeti(L, -1, anchor->place);
    lua_remove(L, -2);
}

void tide_anchor_drop(tide_anchor *anchor) {
    if (!anchor)
        return;
    tide_home *home = anchor->home;
    pthread_mutex_lock(&lock);
    bool open = home->main != NULL;
    if (open) {
        anchor->next_dropped = home->dropped;
        home->dropped = anchor;
        home->state->keeping = true;
    }
    pthread_mutex_unlock(&lock);
    if (!open)
        free_anchor(anchor);
}

static tide_anchor *take_dropped(tide_home *home) {
    pthread_mutex_lock(&lock);
    tide_anchor *dropped = home->dropped;
    home->dropped = NULL;
    pthread_mutex_unlock(&lock);
    return dropped;
}

void tide_script_drain(lua_State *L) {
    tide_home *home = home_of(L);
    if (!atomic_load_explicit(&home->dropped, memory_order_relaxed) || !lua_checkstack(L, 6) ||
        !push_table(L))
        return;
    tide_anchor *dropped = take_dropped(home);
    for (tide_anchor *next; dropped; dropped = next) {
        next = dropped->next_dropped;
        luaL_unref(L, -1, dropped->place);
        free_anchor(dropped);
    }
    lua_pop(L, 1);
}

/* ---- errors of functions that the engine called ---- */

td_status tide_home_note_error(lua_State *L, tide_home *home) {
    if (td_error_code() == TD_EINTR) {
        lua_pop(L, 1);
        return TD_EINTR;
    }
    lua_rawgetp(L, LUA_REGISTRYINDEX, &error_key);
    lua_insert(L, -2);
    lua_rawseti(L, -2, 1); /* there is a place for it: needs no memory */
    lua_pop(L, 1);
    home->raised = true;
    return td_fail(TD_ESCRIPT, "a function of the script failed");
}

bool tide_script_take_error(lua_State *L) {
    tide_home *home = home_of(L);
    if (!home->raised)
        return false;
    home->raised = false;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &error_key);
    lua_rawgeti(L, -1, 1);
    lua_pushboolean(L, 0);
    lua_rawseti(L, -3, 1);
    lua_remove(L, -2);
    return true;
}

/* ---- a state's beginning and end ---- */

/* __gc: made with the state, so that it goes when all other finalizers have run. */
static int close_home(lua_State *L) {
    tide_home **place = lua_touserdata(L, 1), *home = *place;
    if (!home)
        return 0;
    pthread_mutex_lock(&lock);
    tide_anchor *dropped = home->dropped;
    home->dropped = NULL;
    home->main = NULL;
    pthread_mutex_unlock(&lock);
    for (tide_anchor *next; dropped; dropped = next) {
        next = dropped->next_dropped;
        free_anchor(dropped);
    }
    if (td_origin_finder_current.ctx == L)
        td_origin_finder_current = (td_origin_finder){NULL, NULL};
    if (tide_home_entered == home)
        tide_home_entered = NULL;
    return 0;
}

static void make_metatable(lua_State *L) {
    lua_createtable(L, 0, 2);
    lua_pushcfunction(L, close_home);
    lua_setfield(L, -2, "__gc");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_setmetatable(L, -2);
}

/* The home is the state's before anything else can fail; what failed is made by the next call. */
static tide_home *make_home(lua_State *L, tide_state *state) {
    tide_home **place = lua_newuserdatauv(L, sizeof *place, 0);
    *place = NULL;
    make_metatable(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &home_key);
    tide_home *home = calloc(1, sizeof *home);
    if (!home)
        tide_error(L, "not enough memory");
    *place = home;
    atomic_init(&home->refs, 1);
    home->main = tide_main_thread(L);
    home->state = state;
    state->arena->at_end = home_release;
    state->arena->at_end_ctx = home;
    return home;
}

void tide_open_anchors(lua_State *L, tide_state *state) {
    if (!state->home)
        state->home = make_home(L, state);
    lua_newtable(L);
    tide_script_set_table(L);
    lua_createtable(L, 1, 0);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &error_key);
}

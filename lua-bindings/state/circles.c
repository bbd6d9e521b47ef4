/* circles.c: garbage that holds itself through Lua and the engine.
 *
 * The engine counts from within (autograd/cycles.c) and must be told what the anchored values hold:
 * they are walked here, closures, tables and coroutines' functions, to the handles that they lead
 * to. Of those the ones that Lua reaches in another way too are held from without. Lua's collector
 * says which: for the time of one collection the anchored values hang on an object with a finalizer
 * alone, and the handles found in a table of weak values; what has left that table when the
 * finalizer puts the values back was reached through anchors alone.
 *
 * What is not walked (C functions, other userdata, what the globals lead to) holds from without:
 * then a circle stays, which is safe.
 */
#include "lua-bindings/state/circles.h"

#include "lua-bindings/state/anchors.h"

#include <stdlib.h>

enum { MOST_STEPS = 200000 }; /* objects looked at in one collection: beyond, circles stay */

static const char box_key = 0, state_key = 0;

typedef struct walk {
    tide_state *state;
    td_foreign *edges;
    size_t n, room;
    int handles; /* found so far: their places in the weak table */
    int steps;
    bool failed;
} walk;

/* Stack of the walk. */
enum { CTX = 1, SEEN, QUEUE, WEAK, SKIP, WORK };

static void add_edge(walk *w, const void *holder, const void *held, bool tensor) {
    if (w->n == w->room) {
        size_t room = w->room ? 2 * w->room : 256;
        td_foreign *more = realloc(w->edges, room * sizeof *more);
        if (!more) {
            w->failed = true;
            return;
        }
        w->edges = more;
        w->room = room;
    }
    w->edges[w->n++] = (td_foreign){holder, held, tensor};
}

/* A handle: its edge to the tensor is known by its place in the weak table. */
static void meet_handle(lua_State *L, walk *w, const tide_handle *handle) {
    add_edge(w, handle, (void *)(intptr_t)++w->handles, true);
    lua_pushvalue(L, -1);
    lua_rawseti(L, WEAK, w->handles);
}

/* The value at the top, which `holder` holds, is popped, and joins the queue when it is new. */
static void meet(lua_State *L, walk *w, const void *holder, lua_Integer *queued) {
    const void *at = lua_topointer(L, -1);
    int type = lua_type(L, -1);
    tide_handle *handle = type == LUA_TUSERDATA ? lua_touserdata(L, -1) : NULL;
    bool walked = type == LUA_TTABLE || (type == LUA_TFUNCTION && !lua_iscfunction(L, -1));
    if (!walked && !(handle && tide_is_handle(handle))) {
        lua_pop(L, 1);
        return;
    }
    lua_pushvalue(L, -1);
    bool skipped = lua_rawget(L, SKIP) != LUA_TNIL;
    lua_pop(L, 1);
    if (!skipped) {
        add_edge(w, holder, at, false);
        lua_pushvalue(L, -1);
        bool fresh = lua_rawget(L, SEEN) == LUA_TNIL;
        lua_pop(L, 1);
        if (fresh) {
            lua_pushvalue(L, -1);
            lua_pushboolean(L, 1);
            lua_rawset(L, SEEN);
            if (handle) {
                meet_handle(L, w, handle);
            } else {
                lua_pushvalue(L, -1);
                lua_rawseti(L, QUEUE, ++*queued);
            }
        }
    }
    lua_pop(L, 1);
}

static bool has_weak_parts(lua_State *L) {
    bool weak = luaL_getmetafield(L, -1, "__mode") != LUA_TNIL;
    if (weak)
        lua_pop(L, 1);
    return weak;
}

/* What the table or function at WORK holds. */
static void walk_object(lua_State *L, walk *w, lua_Integer *queued) {
    const void *at = lua_topointer(L, WORK);
    if (lua_isfunction(L, WORK)) {
        for (int k = 1; lua_getupvalue(L, WORK, k); k++) {
            w->steps++;
            meet(L, w, at, queued);
        }
        return;
    }
    if (has_weak_parts(L))
        return;
    if (lua_getmetatable(L, WORK))
        meet(L, w, at, queued);
    for (lua_pushnil(L); lua_next(L, WORK);) {
        w->steps++;
        meet(L, w, at, queued);
        lua_pushvalue(L, -1);
        meet(L, w, at, queued);
    }
}

/* The globals and all modules are reached from without, as is what they lead to. */
static void push_skipped(lua_State *L) {
    lua_newtable(L);
    lua_pushglobaltable(L);
    lua_pushboolean(L, 1);
    lua_rawset(L, SKIP);
    lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    for (lua_pushnil(L); lua_next(L, -2);) {
        if (lua_istable(L, -1)) {
            lua_pushboolean(L, 1);
            lua_rawset(L, SKIP);
        } else {
            lua_pop(L, 1);
        }
    }
    lua_pop(L, 1);
}

static void push_weak(lua_State *L) {
    lua_newtable(L);
    lua_createtable(L, 0, 1);
    lua_pushliteral(L, "v");
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
}

/* Walk from all anchors; leaves the weak table of the handles. */
static void walk_anchors(lua_State *L, walk *w) {
    lua_Integer queued = 0;
    lua_newtable(L);
    lua_newtable(L);
    push_weak(L);
    push_skipped(L);
    for (const tide_anchor *a = tide_anchor_next(w->state, NULL); a;
         a = tide_anchor_next(w->state, a)) {
        tide_anchor_push(L, a);
        meet(L, w, tide_anchor_holder(a), &queued);
    }
    for (lua_Integer k = 1; k <= queued && !w->failed; k++) {
        lua_rawgeti(L, QUEUE, k);
        walk_object(L, w, &queued);
        lua_settop(L, SKIP);
        w->failed |= ++w->steps > MOST_STEPS;
    }
    lua_settop(L, WEAK);
    lua_replace(L, SEEN);
    lua_settop(L, SEEN);
}

/* ---- one collection without anchors ---- */

/* __gc of the box: the anchored values come back. */
static int put_back(lua_State *L) {
    lua_getiuservalue(L, 1, 1);
    tide_script_set_table(L);
    return 0;
}

static void push_box(lua_State *L) {
    lua_newuserdatauv(L, 1, 1);
    tide_script_push_table(L);
    lua_setiuservalue(L, -2, 1);
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &box_key) != LUA_TTABLE) {
        lua_pop(L, 1);
        lua_createtable(L, 0, 1);
        lua_pushcfunction(L, put_back);
        lua_setfield(L, -2, "__gc");
        lua_pushvalue(L, -1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &box_key);
    }
    lua_setmetatable(L, -2);
}

/* What handles hold is known now: those that only anchors lead to, as Lua sees it. */
static void settle_handles(lua_State *L, walk *w) {
    size_t n = 0;
    for (size_t k = 0; k < w->n; k++) {
        td_foreign edge = w->edges[k];
        if (edge.tensor) {
            lua_rawgeti(L, SEEN, (lua_Integer)(intptr_t)edge.held);
            edge.held = lua_isnil(L, -1) ? ((const tide_handle *)edge.holder)->tensor : NULL;
            lua_pop(L, 1);
        }
        if (edge.held)
            w->edges[n++] = edge;
    }
    w->n = n;
}

/* (walk): all that allocates comes before the values are let loose. */
static int collect(lua_State *L) {
    walk *w = lua_touserdata(L, CTX);
    luaL_checkstack(L, 20, NULL);
    tide_script_drain(L);
    walk_anchors(L, w);
    if (w->failed || !w->handles)
        return 0;
    push_box(L);
    lua_pushboolean(L, 0);
    tide_script_set_table(L);
    lua_settop(L, SEEN);
    lua_gc(L, LUA_GCCOLLECT);
    settle_handles(L, w);
    td_autograd_collect_foreign(w->n, w->edges);
    tide_script_drain(L);
    return 0;
}

static tide_state *state_of(lua_State *L) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &state_key);
    tide_state *state = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return state;
}

void tide_open_circles(lua_State *L, tide_state *state) {
    lua_pushlightuserdata(L, state);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &state_key);
}

bool tide_collect_circles(lua_State *L) {
    if (lua_gc(L, LUA_GCCOLLECT) != 0)
        return false;
    td_autograd_collect();
    walk w = {.state = state_of(L)};
    if (!w.state || w.state->depth || !tide_script_anchors(w.state) || !lua_checkstack(L, 4))
        return true;
    lua_pushcfunction(L, collect);
    lua_pushlightuserdata(L, &w);
    if (lua_pcall(L, 1, 0, 0) != LUA_OK)
        lua_pop(L, 1); /* no memory to walk with */
    free(w.edges);
    if (w.handles && !w.failed)
        lua_gc(L, LUA_GCCOLLECT);
    return true;
}

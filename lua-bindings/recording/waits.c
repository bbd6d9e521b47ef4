/* waits.c: names the line and the call that wait for a device unasked, as a warning of Lua's or as
 * an error.
 *
 * What hears of a wait stands amid the engine's work, which no error may jump over and no finalizer
 * may disturb: Lua is asked for nothing there that allocates.
 */
#include "lua-bindings/recording/waits.h"

#include "lua-bindings/call/args.h"
#include "lua-bindings/recording/origin.h"
#include "lua-bindings/state/state.h"

#include "engine/core/memory.h"
#include "engine/core/waits.h"

#include <stdio.h>
#include <string.h>

static const char key;

typedef struct waits {
    lua_State *main;
    bool refuse;
    uint64_t *told; /* lines, by a hash of source and number */
    int ntold, room;
} waits;

/* ---- who waits ---- */

enum { NAME = 64 };

typedef struct place {
    char source[LUA_IDSIZE];
    int line;
    char call[NAME];
} place;

/* What the user's line called: an operator by its own name, all else by what the line calls it. */
static void name_call(lua_State *L, lua_Debug *call, char *name) {
    bool room = lua_checkstack(L, 2);
    const td_op *op = NULL;
    lua_getinfo(L, "n", call);
    if (room && lua_getinfo(L, "f", call)) {
        if (tide_is_operator_function(lua_tocfunction(L, -1)) &&
            lua_getupvalue(L, -1, TIDE_UP_FIRST)) {
            op = lua_touserdata(L, -1);
            lua_pop(L, 1);
        }
        lua_pop(L, 1);
    }
    if (op)
        snprintf(name, NAME, "%s", op->name);
    else if (call->name && strcmp(call->namewhat, "metamethod") == 0)
        snprintf(name, NAME, "__%.40s", call->name);
    else
        snprintf(name, NAME, "%.40s", call->name ? call->name : "this line");
}

/* The innermost line of the user's, as tide_find_line finds it, and what it calls; the resumer's
 * where a coroutine runs none. */
static bool find_place(lua_State *L, place *p, int depth) {
    enum { RESUMES = 220, LEVELS = 60 };
    lua_State *co = depth < RESUMES ? tide_resumed_by(L) : NULL;
    if (co && find_place(co, p, depth + 1))
        return true;
    lua_Debug frame, call;
    for (int level = 1; level <= LEVELS && lua_getstack(L, level, &frame); level++) {
        lua_getinfo(L, "Sl", &frame);
        if (frame.currentline <= 0 || strncmp(frame.source, "=tide.", 6) == 0)
            continue;
        snprintf(p->source, sizeof p->source, "%s", frame.short_src);
        p->line = frame.currentline;
        if (!lua_getstack(L, level - 1, &call))
            return false;
        name_call(L, &call, p->call);
        return true;
    }
    return false;
}

/* ---- what is said ---- */

/* Has this line been told of? From now on it has. */
static bool was_told(waits *w, const place *p) {
    uint64_t hash = 0xcbf29ce484222325u ^ (uint64_t)p->line;
    for (const char *c = p->source; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
    for (int k = 0; k < w->ntold; k++)
        if (w->told[k] == hash)
            return true;
    if (w->ntold == w->room) {
        int room = w->room ? 2 * w->room : 64;
        uint64_t *grown = td_realloc(w->told, sizeof *grown * (size_t)room);
        if (!grown)
            return false;
        w->told = grown;
        w->room = room;
    }
    w->told[w->ntold++] = hash;
    return false;
}

static td_status hear(void *ctx, td_device device) {
    waits *w = ctx;
    char text[LUA_IDSIZE + NAME + 80];
    place p = {.call = "this line"};
    bool found = find_place(w->main, &p, 0);
    if (w->refuse)
        return td_fail(TD_EDEVICE, "%s waits for %s, which set_sync_warnings(\"error\") forbids",
                       p.call, td_device_name(device));
    if (!found || was_told(w, &p))
        return TD_OK;
    snprintf(text, sizeof text, "tide: %s:%d: %s waits for %s", p.source, p.line, p.call,
             td_device_name(device));
    lua_warning(w->main, text, 0);
    return TD_OK;
}

/* ---- switching it ---- */

static void forget(waits *w) {
    td_wait_watcher current = td_set_wait_watcher((td_wait_watcher){NULL, NULL});
    if (current.ctx != w)
        td_set_wait_watcher(current);
    td_free(w->told);
    w->told = NULL;
    w->ntold = w->room = 0;
}

static int collect(lua_State *L) {
    forget(lua_touserdata(L, 1));
    return 0;
}

/* The state's one, made where there is none yet; pushed. */
static waits *push_waits(lua_State *L) {
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &key) == LUA_TUSERDATA)
        return lua_touserdata(L, -1);
    lua_pop(L, 1);
    waits *w = lua_newuserdatauv(L, sizeof *w, 0);
    *w = (waits){.main = NULL};
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, collect);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    w->main = tide_main_thread(L);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &key);
    return w;
}

int tide_watch_waits(lua_State *L) {
    waits *w = push_waits(L);
    forget(w);
    w->refuse = lua_type(L, 1) == LUA_TSTRING;
    if (lua_toboolean(L, 1))
        td_set_wait_watcher((td_wait_watcher){hear, w});
    return 0;
}

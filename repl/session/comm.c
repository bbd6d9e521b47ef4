/* comm.c: messages of comms between the front end and tide.comm, which is Lua: what they mean is
 * not known here.
 */
#include "repl/session/comm.h"
#include "repl/session/eval.h"
#include "repl/session/modules.h"
#include "repl/session/state.h"

#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

/* ---- from the front end ---- */

/* Pushes tide.comm[name]. */
static void push_comm_function(lua_State *L, const char *name) {
    module_push_tide(L);
    lua_getfield(L, -1, "comm");
    lua_getfield(L, -1, name);
    lua_replace(L, -3);
    lua_pop(L, 1);
}

static int receive_body(lua_State *L) {
    const tide_comm_message *message = lua_touserdata(L, 1);
    push_comm_function(L, "_receive");
    lua_pushstring(L, message->type);
    lua_pushlstring(L, message->content.data, message->content.len);
    lua_createtable(L, (int)message->n_buffers, 0);
    for (size_t k = 0; k < message->n_buffers; k++) {
        lua_pushlstring(L, message->buffers[k].data, message->buffers[k].len);
        lua_rawseti(L, -2, (lua_Integer)k + 1);
    }
    lua_call(L, 3, 0);
    return 0;
}

void tide_session_comm(tide_session *s, const tide_comm_message *message, tide_result *r) {
    eval_call(s, receive_body, (void *)message, r);
}

typedef struct listing {
    const char *target;
    char *text;
} listing;

/* Nothing, where nobody has used comms. */
static int list_body(lua_State *L) {
    listing *l = lua_touserdata(L, 1);
    module_push_tide(L);
    lua_pushliteral(L, "comm");
    if (lua_rawget(L, -2) != LUA_TTABLE)
        return 0;
    push_comm_function(L, "_list");
    lua_pushstring(L, l->target);
    lua_call(L, 1, 1);
    l->text = strdup(luaL_checkstring(L, -1));
    return 0;
}

char *tide_session_comms(tide_session *s, const char *target) {
    listing l = {.target = target};
    tide_result r;
    eval_call(s, list_body, &l, &r);
    tide_result_clear(&r);
    return l.text;
}

/* ---- to the front end ---- */

static tide_bytes bytes_at(lua_State *L, int index) {
    tide_bytes bytes;
    bytes.data = luaL_checklstring(L, index, &bytes.len);
    return bytes;
}

/* _comm_send(type, content, metadata [, buffers]): false where the front end has no comms. The list
 * and what is in it are the caller's alone. */
static int send_comm(lua_State *L) {
    const tide_frontend *frontend = &session_of(L)->frontend;
    tide_comm_message message = {
        .type = luaL_checkstring(L, 1), .content = bytes_at(L, 2), .metadata = bytes_at(L, 3)};
    if (!lua_isnoneornil(L, 4)) {
        luaL_checktype(L, 4, LUA_TTABLE);
        message.n_buffers = lua_rawlen(L, 4);
        tide_bytes *buffers = lua_newuserdatauv(L, (message.n_buffers + 1) * sizeof *buffers, 0);
        for (size_t k = 0; k < message.n_buffers; k++) {
            lua_rawgeti(L, 4, (lua_Integer)k + 1);
            buffers[k] = bytes_at(L, -1);
            lua_pop(L, 1);
        }
        message.buffers = buffers;
    }
    if (frontend->send_comm)
        frontend->send_comm(frontend->ctx, &message);
    lua_pushboolean(L, frontend->send_comm != NULL);
    return 1;
}

/* _output_parent([header]): the request that output belongs to; with an argument it is that one
 * from now on, or with false the one that is served. */
static int output_parent(lua_State *L) {
    const tide_frontend *frontend = &session_of(L)->frontend;
    if (lua_gettop(L) > 0) {
        const char *parent = lua_toboolean(L, 1) ? luaL_checkstring(L, 1) : NULL;
        if (frontend->set_output_parent)
            frontend->set_output_parent(frontend->ctx, parent);
        return 0;
    }
    char *parent = frontend->output_parent ? frontend->output_parent(frontend->ctx) : NULL;
    lua_pushstring(L, parent);
    free(parent);
    return 1;
}

/* _output_gather([comm, outputs]): output goes into that comm's widget from now on, behind what it
 * has; without one the innermost ends, whose outputs are returned as JSON text, nil where there is
 * none. */
static int output_gather(lua_State *L) {
    const tide_frontend *frontend = &session_of(L)->frontend;
    const char *comm = luaL_optstring(L, 1, NULL);
    const char *outputs = luaL_optstring(L, 2, "[]");
    char *text =
        frontend->gather_output ? frontend->gather_output(frontend->ctx, comm, outputs) : NULL;
    lua_pushstring(L, text);
    free(text);
    return 1;
}

void comm_install(lua_State *L) {
    static const luaL_Reg functions[] = {{"_comm_send", send_comm},
                                         {"_output_parent", output_parent},
                                         {"_output_gather", output_gather},
                                         {NULL, NULL}};
    for (const luaL_Reg *f = functions; f->name; f++) {
        lua_pushstring(L, f->name);
        lua_pushcfunction(L, f->func);
        lua_rawset(L, -3);
    }
}

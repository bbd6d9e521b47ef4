/* capture.c: see capture.h. The process's descriptors lead to files without names meanwhile, and
 * what the session writes goes there with the rest, so that all of it stays in order.
 */
#include "repl/session/capture.h"
#include "repl/session/state.h"

#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A userdata; its user value is the object. */
typedef struct capture {
    tide_session *s;
    int saved[2], files[2]; /* what descriptors 1 and 2 were, and what they are; -1: as ever */
    bool displays, open;
} capture;

static const char outputs_key; /* the outputs of the innermost that wants displays */

static void close_fd(int *fd) {
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Leads descriptor 1 + i to a new file. */
static bool redirect(capture *c, int i) {
    c->saved[i] = fcntl(STDOUT_FILENO + i, F_DUPFD_CLOEXEC, 3);
    c->files[i] = memfd_create("tide-capture", MFD_CLOEXEC);
    bool ok = c->files[i] >= 0 && dup2(c->files[i], STDOUT_FILENO + i) >= 0;
    c->s->captured[i] += ok;
    return ok;
}

/* Gives the descriptors back. The stack may be anything; nothing is raised. */
static void give_back(capture *c) {
    if (!c->open)
        return;
    c->open = false;
    fflush(stdout);
    fflush(stderr);
    for (int i = 0; i < 2; i++) {
        if (c->files[i] < 0)
            continue;
        if (c->saved[i] >= 0)
            dup2(c->saved[i], STDOUT_FILENO + i);
        else
            close(STDOUT_FILENO + i); /* as it was */
        close_fd(&c->saved[i]);
        c->s->captured[i]--;
    }
}

static void push_written(lua_State *L, int fd) {
    luaL_Buffer text;
    ssize_t n;
    luaL_buffinit(L, &text);
    off_t at = 0;
    do {
        char *space = luaL_prepbuffer(&text);
        n = fd < 0 ? 0 : pread(fd, space, LUAL_BUFFERSIZE, at);
        luaL_addsize(&text, n > 0 ? (size_t)n : 0);
        at += n;
    } while (n > 0);
    luaL_pushresult(&text);
}

/* __close */
static int capture_end(lua_State *L) {
    static const char *const fields[] = {"stdout", "stderr"};
    capture *c = lua_touserdata(L, 1);
    if (!c->open)
        return 0;
    give_back(c);
    lua_settop(L, 1);
    lua_getiuservalue(L, 1, 2); /* the outputs before */
    if (c->displays)
        lua_rawsetp(L, LUA_REGISTRYINDEX, &outputs_key);
    lua_settop(L, 1);
    lua_getiuservalue(L, 1, 1);
    for (int i = 0; i < 2; i++) {
        push_written(L, c->files[i]);
        lua_setfield(L, 2, fields[i]);
        close_fd(&c->files[i]);
    }
    return 0;
}

/* __gc */
static int capture_free(lua_State *L) {
    capture *c = lua_touserdata(L, 1);
    give_back(c);
    close_fd(&c->files[0]);
    close_fd(&c->files[1]);
    return 0;
}

int capture_begin(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 4);
    capture *c = lua_newuserdatauv(L, sizeof *c, 2);
    *c = (capture){.s = session_of(L), .saved = {-1, -1}, .files = {-1, -1}};
    lua_createtable(L, 0, 2);
    lua_pushcfunction(L, capture_end);
    lua_setfield(L, -2, "__close");
    lua_pushcfunction(L, capture_free);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, 5);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, 5, 1);
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_setfield(L, 1, "outputs");
    c->displays = lua_toboolean(L, 4);
    if (c->displays) {
        lua_rawgetp(L, LUA_REGISTRYINDEX, &outputs_key);
        lua_setiuservalue(L, 5, 2);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &outputs_key);
    }
    lua_settop(L, 5);
    fflush(stdout);
    fflush(stderr);
    c->open = true;
    for (int i = 0; i < 2; i++)
        if (lua_toboolean(L, 2 + i) && !redirect(c, i)) {
            int problem = errno;
            capture_end(L);
            return luaL_error(L, "the output cannot be caught: %s", strerror(problem));
        }
    return 1;
}

bool capture_take_display(lua_State *L, const tide_bundle *bundle) {
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &outputs_key) != LUA_TTABLE) {
        lua_pop(L, 1);
        return false;
    }
    lua_createtable(L, 0, bundle->n + 1);
    for (int i = 0; i < bundle->n; i++) {
        lua_pushlstring(L, bundle->entries[i].data, bundle->entries[i].len);
        lua_setfield(L, -2, bundle->entries[i].type);
    }
    lua_pushstring(L, bundle->metadata);
    lua_setfield(L, -2, "metadata");
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    lua_pop(L, 1);
    return true;
}

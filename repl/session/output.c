/* output.c: io and warn of a session whose front end catches them.
 *
 * The standard streams become C streams of our own (fopencookie) behind ordinary Lua files, so
 * every method and format of the io library works on them as on any file. Without a front end's
 * functions the process's own streams stay, and cost nothing more than in plain Lua.
 */
#include "repl/session/output.h"
#include "repl/session/state.h"

#include <lauxlib.h>
#include <lualib.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>

void output_write(tide_session *s, tide_stream stream, const char *bytes, size_t len) {
    if (len == 0)
        return;
    FILE *own = stream == TIDE_STDERR ? stderr : stdout;
    if (s->captured[stream]) {
        fwrite(bytes, 1, len, own);
        fflush(own);
    } else if (s->frontend.write) {
        s->frontend.write(s->frontend.ctx, stream, bytes, len);
    } else {
        fwrite(bytes, 1, len, own);
    }
}

void output_line(tide_session *s, const char *text) {
    output_write(s, TIDE_STDOUT, text, strlen(text));
    output_write(s, TIDE_STDOUT, "\n", 1);
}

static ssize_t write_out(void *cookie, const char *bytes, size_t len) {
    output_write(cookie, TIDE_STDOUT, bytes, len);
    return (ssize_t)len;
}

static ssize_t write_err(void *cookie, const char *bytes, size_t len) {
    output_write(cookie, TIDE_STDERR, bytes, len);
    return (ssize_t)len;
}

/* One line from the front end, handed out in pieces. */
static ssize_t read_in(void *cookie, char *bytes, size_t size) {
    tide_session *s = cookie;
    if (!s->line) {
        s->line = s->frontend.read_line(s->frontend.ctx, "", false, &s->line_len);
        if (!s->line)
            return 0;
        s->line[s->line_len++] = '\n'; /* in the byte that is there for it */
        s->line_at = 0;
    }
    size_t n = s->line_len - s->line_at;
    n = n < size ? n : size;
    memcpy(bytes, s->line + s->line_at, n);
    s->line_at += n;
    if (s->line_at == s->line_len) {
        free(s->line);
        s->line = NULL;
    }
    return (ssize_t)n;
}

void output_forget_input(tide_session *s) {
    free(s->line);
    s->line = NULL;
    if (s->in) {
        __fpurge(s->in); /* io.read("n") gives a byte back */
        clearerr(s->in);
    }
}

static int keep_open(lua_State *L) {
    luaL_Stream *stream = luaL_checkudata(L, 1, LUA_FILEHANDLE);
    stream->closef = keep_open;
    luaL_pushfail(L);
    lua_pushliteral(L, "cannot close standard file");
    return 2;
}

/* io[name] = a Lua file over `file`, and the default one through io[setter] where there is one. */
static void set_file(lua_State *L, FILE *file, const char *name, const char *setter) {
    luaL_Stream *stream = lua_newuserdatauv(L, sizeof *stream, 0);
    stream->closef = NULL; /* a closed file, until all is set */
    luaL_setmetatable(L, LUA_FILEHANDLE);
    stream->f = file;
    stream->closef = keep_open;
    lua_getglobal(L, "io");
    if (setter) {
        lua_getfield(L, -1, setter);
        lua_pushvalue(L, -3);
        lua_call(L, 1, 0);
    }
    lua_pushvalue(L, -2);
    lua_setfield(L, -2, name);
    lua_pop(L, 2);
}

static const char OWN[] = "tide: "; /* what Tide's own warnings begin with */

/* Off until warn("@on"), as in lua5.4; Tide's own are on until warn("@off"). */
static bool is_shown(const tide_session *s, const char *message) {
    return s->warnings || (!s->silenced && strncmp(message, OWN, sizeof OWN - 1) == 0);
}

static void session_warn(void *ctx, const char *message, int to_continue) {
    tide_session *s = ctx;
    if (!s->warning_continues && !to_continue && message[0] == '@') {
        if (strcmp(message, "@on") == 0 || strcmp(message, "@off") == 0) {
            s->warnings = message[2] == 'n';
            s->silenced = !s->warnings;
        }
        return;
    }
    if (!s->warning_continues)
        s->warning_shown = is_shown(s, message);
    if (s->warning_shown) {
        if (!s->warning_continues && strncmp(message, OWN, sizeof OWN - 1) != 0)
            output_write(s, TIDE_STDERR, "Lua warning: ", 13);
        output_write(s, TIDE_STDERR, message, strlen(message));
        if (!to_continue)
            output_write(s, TIDE_STDERR, "\n", 1);
    }
    s->warning_continues = to_continue != 0;
}

static FILE *open_cookie(tide_session *s, const char *mode, cookie_io_functions_t functions) {
    FILE *file = fopencookie(s, mode, functions);
    if (file)
        setvbuf(file, NULL, _IONBF, 0); /* the front end gathers; what is written must not linger */
    return file;
}

int output_install(tide_session *s) {
    lua_State *L = s->L;
    lua_setwarnf(L, session_warn, s);
    if (s->frontend.write) {
        s->out = open_cookie(s, "w", (cookie_io_functions_t){.write = write_out});
        s->err = open_cookie(s, "w", (cookie_io_functions_t){.write = write_err});
        if (!s->out || !s->err)
            return -1;
        set_file(L, s->out, "stdout", "output");
        set_file(L, s->err, "stderr", NULL);
    }
    if (s->frontend.read_line) {
        s->in = open_cookie(s, "r", (cookie_io_functions_t){.read = read_in});
        if (!s->in)
            return -1;
        set_file(L, s->in, "stdin", "input");
    }
    return 0;
}

void output_free(tide_session *s) {
    FILE *files[] = {s->out, s->err, s->in};
    for (int i = 0; i < 3; i++)
        if (files[i])
            fclose(files[i]);
    free(s->line);
    free(s->answer);
}

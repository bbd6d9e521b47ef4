/* stream.c: files as bytes in a row, unpacked where gzip packed them, for texts and archives that
 * are larger than memory (lua/files/stream.lua); and files written piece by piece, whole or not at
 * all.
 */
#include "engine/core/draft.h"
#include "engine/core/interrupt.h"
#include "lua-bindings/modules/modules.h"
#include "lua-bindings/state/errors.h"
#include "lua-bindings/state/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { PIECE = 1 << 16, BUFFER = 1 << 17, GZIP = 16 + MAX_WBITS };

static const char stream_name[] = "tide.stream", writer_name[] = "tide.stream_writer";

/* ---- reading ---- */

/* A userdata whose user values are the path and the name of the function that messages begin with.
 */
typedef struct stream {
    gzFile file; /* NULL: closed */
    int64_t line;
    size_t at, held; /* of the buffer: read from, and how much is in it */
    char buffer[PIECE];
} stream;

static int close_stream(lua_State *L) {
    stream *s = luaL_checkudata(L, 1, stream_name);
    if (s->file)
        gzclose(s->file);
    s->file = NULL;
    return 0;
}

static int fail_stream(lua_State *L, const char *what) {
    lua_getiuservalue(L, 1, 1);
    lua_getiuservalue(L, 1, 2);
    return tide_error(L, "%s: cannot read '%s': %s", lua_tostring(L, -1), lua_tostring(L, -2),
                      what);
}

/* _stream_open(path, fname) */
static int open_stream(lua_State *L) {
    const char *path = luaL_checkstring(L, 1);
    luaL_checkstring(L, 2);
    struct stat info;
    stream *s = lua_newuserdatauv(L, sizeof *s, 2);
    memset(s, 0, offsetof(stream, buffer));
    luaL_setmetatable(L, stream_name);
    lua_insert(L, 1);
    lua_pushvalue(L, 2);
    lua_setiuservalue(L, 1, 1);
    lua_pushvalue(L, 3);
    lua_setiuservalue(L, 1, 2);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return fail_stream(L, strerror(errno));
    if (!fstat(fd, &info) && S_ISDIR(info.st_mode)) {
        close(fd);
        return fail_stream(L, strerror(EISDIR));
    }
    s->file = gzdopen(fd, "rb");
    if (!s->file) {
        close(fd);
        return fail_stream(L, "out of memory");
    }
    gzbuffer(s->file, BUFFER);
    lua_settop(L, 1);
    return 1;
}

/* More bytes into the buffer, which is empty; false at the end. */
static bool fill(lua_State *L, stream *s) {
    int code, got;
    if (!s->file)
        fail_stream(L, "it is closed");
    if (td_interrupt_requested())
        TIDE_CHECK(L, td_interrupted());
    got = gzread(s->file, s->buffer, PIECE);
    const char *message = got < PIECE ? gzerror(s->file, &code) : NULL;
    if (got < 0 || (message && code != Z_OK && code != Z_STREAM_END))
        fail_stream(L,
                    code == Z_ERRNO ? strerror(errno) : "the packed file is cut short or damaged");
    s->at = 0;
    s->held = (size_t)got;
    return got > 0;
}

/* stream:read(n): at most n bytes, fewer at the end; memory grows with what is there, not with n.
 */
static int read_bytes(lua_State *L) {
    stream *s = luaL_checkudata(L, 1, stream_name);
    lua_Integer n = luaL_checkinteger(L, 2);
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    while (n > 0 && (s->at < s->held || fill(L, s))) {
        size_t part = s->held - s->at;
        part = (uint64_t)n < part ? (size_t)n : part;
        luaL_addlstring(&b, s->buffer + s->at, part);
        s->at += part;
        n -= (lua_Integer)part;
    }
    luaL_pushresult(&b);
    return 1;
}

/* stream:skip(n): how many bytes there were to pass over. */
static int skip_bytes(lua_State *L) {
    stream *s = luaL_checkudata(L, 1, stream_name);
    lua_Integer n = luaL_checkinteger(L, 2), done = 0;
    while (done < n && (s->at < s->held || fill(L, s))) {
        size_t part = s->held - s->at;
        part = (uint64_t)(n - done) < part ? (size_t)(n - done) : part;
        s->at += part;
        done += (lua_Integer)part;
    }
    lua_pushinteger(L, done);
    return 1;
}

/* stream:line(): the next line without its end (LF or CR LF) and its number; nothing at the end. */
static int read_line(lua_State *L) {
    stream *s = luaL_checkudata(L, 1, stream_name);
    bool any = false, ended = false;
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    while (!ended && (s->at < s->held || fill(L, s))) {
        const char *first = s->buffer + s->at, *feed = memchr(first, '\n', s->held - s->at);
        size_t part = feed ? (size_t)(feed - first) : s->held - s->at;
        luaL_addlstring(&b, first, part);
        s->at += part + (feed != NULL);
        any = true;
        ended = feed != NULL;
    }
    if (!any)
        return 0;
    if (ended && luaL_bufflen(&b) > 0 && luaL_buffaddr(&b)[luaL_bufflen(&b) - 1] == '\r')
        luaL_buffsub(&b, 1);
    luaL_pushresult(&b);
    lua_pushinteger(L, (lua_Integer)++s->line);
    return 2;
}

/* ---- writing ---- */

typedef struct writer {
    td_draft *draft; /* NULL: closed */
    z_stream z;
    bool packs;
} writer;

static void free_writer(writer *w) {
    if (w->packs)
        deflateEnd(&w->z);
    td_draft_close(w->draft);
    *w = (writer){0};
}

static int close_writer(lua_State *L) {
    free_writer(luaL_checkudata(L, 1, writer_name));
    return 0;
}

static int fail_writer(lua_State *L, td_status status) {
    lua_getiuservalue(L, 1, 1);
    if (status == TD_EINTR)
        tide_raise(L);
    return tide_error(L, "%s: %s", lua_tostring(L, -1), td_error_message());
}

/* _stream_create(path, fname, packed): what is written takes its place when it is finished. */
static int create_stream(lua_State *L) {
    const char *path = luaL_checkstring(L, 1);
    luaL_checkstring(L, 2);
    bool packs = lua_toboolean(L, 3);
    writer *w = lua_newuserdatauv(L, sizeof *w, 1);
    *w = (writer){0};
    luaL_setmetatable(L, writer_name);
    lua_insert(L, 1);
    lua_pushvalue(L, 3);
    lua_setiuservalue(L, 1, 1);
    tide_enter_engine(TIDE_STATE(L));
    td_status status = td_draft_open(path, &w->draft);
    if (status == TD_OK && packs) {
        w->packs = deflateInit2(&w->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP, 8,
                                Z_DEFAULT_STRATEGY) == Z_OK;
        if (!w->packs)
            status = td_fail(TD_ENOMEM, "out of memory");
    }
    if (status)
        return fail_writer(L, status);
    lua_settop(L, 1);
    return 1;
}

static td_status pack(writer *w, const char *bytes, size_t n, int flush) {
    unsigned char out[PIECE];
    td_status status = TD_OK;
    int code = Z_OK;
    do {
        w->z.next_in = (unsigned char *)(uintptr_t)bytes;
        w->z.avail_in = n < PIECE ? (unsigned)n : PIECE;
        bool last = w->z.avail_in == n;
        w->z.next_out = out;
        w->z.avail_out = sizeof out;
        unsigned given = w->z.avail_in;
        code = deflate(&w->z, last ? flush : Z_NO_FLUSH);
        bytes += given - w->z.avail_in;
        n -= given - w->z.avail_in;
        TD_TRY(td_draft_write(w->draft, out, sizeof out - w->z.avail_out));
    } while (n > 0 || (flush == Z_FINISH && code != Z_STREAM_END) || w->z.avail_out == 0);
done:
    return status;
}

/* writer:write(bytes) */
static int write_bytes(lua_State *L) {
    writer *w = luaL_checkudata(L, 1, writer_name);
    size_t n;
    const char *bytes = luaL_checklstring(L, 2, &n);
    luaL_argcheck(L, w->draft, 1, "it is closed");
    td_status status =
        w->packs ? pack(w, bytes, n, Z_NO_FLUSH) : td_draft_write(w->draft, bytes, n);
    if (status)
        return fail_writer(L, status);
    return 0;
}

/* writer:finish() */
static int finish_writer(lua_State *L) {
    writer *w = luaL_checkudata(L, 1, writer_name);
    luaL_argcheck(L, w->draft, 1, "it is closed");
    td_status status = w->packs ? pack(w, "", 0, Z_FINISH) : TD_OK;
    if (status == TD_OK)
        status = td_draft_commit(w->draft);
    if (status)
        return fail_writer(L, status);
    free_writer(w);
    return 0;
}

static void set_class(lua_State *L, const char *name, const luaL_Reg *methods,
                      lua_CFunction close) {
    luaL_newmetatable(L, name);
    lua_newtable(L);
    for (; methods->name; methods++) {
        tide_push_function(L, methods->func, 0);
        lua_setfield(L, -2, methods->name);
    }
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, close);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, "__close");
    lua_setfield(L, -2, "__gc");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
}

void tide_open_stream(lua_State *L) {
    static const luaL_Reg functions[] = {
        {"_stream_open", open_stream}, {"_stream_create", create_stream}, {NULL, NULL}};
    static const luaL_Reg reading[] = {{"read", read_bytes},
                                       {"skip", skip_bytes},
                                       {"line", read_line},
                                       {"close", close_stream},
                                       {NULL, NULL}};
    static const luaL_Reg writing[] = {
        {"write", write_bytes}, {"finish", finish_writer}, {"close", close_writer}, {NULL, NULL}};
    set_class(L, stream_name, reading, close_stream);
    set_class(L, writer_name, writing, close_writer);
    tide_set_functions(L, functions);
}

/* doctor.c: what `tide --doctor` asks of the system and Lua's library can't tell: files' kinds and
 * permissions, limits, the terminal, versions of libraries, and packed bytes, unpacked piece by
 * piece. What it means is not known here (lua/doctor/report.lua).
 */
#include "lua-bindings/modules/modules.h"
#include "lua-bindings/state/state.h"

#include "engine/core/interrupt.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <lauxlib.h>
#include <limits.h>
#include <locale.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <zlib.h>

enum { MOST_NAMES = 10000, PIECE = 1 << 16 };

static void set_integer(lua_State *L, const char *name, long long value) {
    lua_pushinteger(L, value);
    lua_setfield(L, -2, name);
}

static void set_truth(lua_State *L, const char *name, bool value) {
    lua_pushboolean(L, value);
    lua_setfield(L, -2, name);
}

/* ---- files ---- */

/* stat(path): {kind, size, readable, writable, executable}; or nil and why. */
static int look_at(lua_State *L) {
    const char *path = luaL_checkstring(L, 1);
    struct stat info;
    if (stat(path, &info)) {
        lua_pushnil(L);
        lua_pushstring(L, strerror(errno));
        return 2;
    }
    lua_createtable(L, 0, 6);
    lua_pushstring(L, S_ISREG(info.st_mode)    ? "file"
                      : S_ISDIR(info.st_mode)  ? "folder"
                      : S_ISFIFO(info.st_mode) ? "pipe"
                      : S_ISSOCK(info.st_mode) ? "socket"
                                               : "device");
    lua_setfield(L, -2, "kind");
    set_integer(L, "size", (long long)info.st_size);
    set_truth(L, "readable", access(path, R_OK) == 0);
    set_truth(L, "writable", access(path, W_OK) == 0);
    set_truth(L, "executable", access(path, X_OK) == 0);
    return 1;
}

/* (folder, most): its names, into a table. */
static int read_names(lua_State *L) {
    DIR *folder = lua_touserdata(L, 1);
    lua_Integer most = luaL_optinteger(L, 2, MOST_NAMES);
    struct dirent *entry;
    lua_newtable(L);
    for (lua_Integer n = 0; n < most && (entry = readdir(folder));) {
        lua_pushstring(L, entry->d_name);
        lua_rawseti(L, -2, ++n);
    }
    return 1;
}

/* names(folder[, most]): what lies in it, at most MOST_NAMES or so many; nil and why. A memory
 * error leaves no folder open. */
static int list_names(lua_State *L) {
    const char *path = luaL_checkstring(L, 1);
    lua_settop(L, 2);
    lua_pushcfunction(L, read_names);
    DIR *folder = opendir(path);
    if (!folder) {
        lua_pushnil(L);
        lua_pushstring(L, strerror(errno));
        return 2;
    }
    lua_pushlightuserdata(L, folder);
    lua_pushvalue(L, 2);
    int code = lua_pcall(L, 2, 1, 0);
    closedir(folder);
    return code ? lua_error(L) : 1;
}

/* locked(path): does another process hold a lock on the file? */
static int is_locked(lua_State *L) {
    int fd = open(luaL_checkstring(L, 1), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    bool locked = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
    if (fd >= 0)
        close(fd);
    lua_pushboolean(L, locked);
    return 1;
}

/* real(path): the path without links; nil. */
static int real_path(lua_State *L) {
    char path[PATH_MAX];
    lua_pushstring(L, realpath(luaL_checkstring(L, 1), path));
    return 1;
}

/* ---- packed bytes ---- */

static const char reader_name[] = "tide.doctor.gzip";

static int close_reader(lua_State *L) {
    gzFile *file = luaL_checkudata(L, 1, reader_name);
    if (*file)
        gzclose(*file);
    *file = NULL;
    return 0;
}

/* unzip(path): a reader of what gzip packed, to close; nil and why. */
static int open_reader(lua_State *L) {
    const char *path = luaL_checkstring(L, 1);
    gzFile *file = lua_newuserdatauv(L, sizeof *file, 0);
    *file = NULL;
    luaL_setmetatable(L, reader_name);
    *file = gzopen(path, "rbe");
    if (*file)
        return 1;
    lua_pushnil(L);
    lua_pushstring(L, errno ? strerror(errno) : "out of memory");
    return 2;
}

/* reader:read(): the next piece; nil at the end; nil and why. */
static int read_piece(lua_State *L) {
    gzFile *file = luaL_checkudata(L, 1, reader_name);
    luaL_Buffer bytes;
    if (!*file)
        return luaL_error(L, "a closed reader");
    if (td_interrupt_requested())
        return luaL_error(L, "interrupted");
    char *to = luaL_buffinitsize(L, &bytes, PIECE);
    int code = Z_OK, n = gzread(*file, to, PIECE);
    luaL_pushresultsize(&bytes, n > 0 ? (size_t)n : 0);
    if (n > 0)
        return 1;
    const char *why = gzerror(*file, &code);
    lua_pushnil(L);
    if (code == Z_OK || code == Z_STREAM_END)
        return 1;
    lua_pushstring(L, code == Z_BUF_ERROR ? "cut off" : *why ? why : "damaged");
    return 2;
}

/* inflate(bytes, most): the first `most` bytes of what a member of a zip archive holds; nil and why
 * where not one can be unpacked. */
static int inflate_bytes(lua_State *L) {
    size_t len;
    const char *from = luaL_checklstring(L, 1, &len);
    lua_Integer most = luaL_checkinteger(L, 2);
    luaL_argcheck(L, most > 0 && most <= INT32_MAX && len <= INT32_MAX, 2, "out of range");
    luaL_Buffer bytes;
    char *to = luaL_buffinitsize(L, &bytes, (size_t)most);
    z_stream z = {.next_in = (unsigned char *)(uintptr_t)from,
                  .avail_in = (unsigned)len,
                  .next_out = (unsigned char *)to,
                  .avail_out = (unsigned)most};
    int code = inflateInit2(&z, -MAX_WBITS);
    if (code == Z_OK) {
        code = inflate(&z, Z_SYNC_FLUSH);
        inflateEnd(&z);
    }
    size_t made = (size_t)most - z.avail_out;
    luaL_pushresultsize(&bytes, made);
    if (made || code == Z_STREAM_END)
        return 1;
    lua_pushnil(L);
    lua_pushstring(L, code == Z_MEM_ERROR ? "out of memory" : "damaged");
    return 2;
}

/* ---- the machine ---- */

/* A limit of the process in its unit; nothing where there is none. */
static void set_limit(lua_State *L, const char *name, int which) {
    struct rlimit limit;
    if (getrlimit((__rlimit_resource_t)which, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        set_integer(L, name, (long long)limit.rlim_cur);
}

static void set_terminal(lua_State *L) {
    struct winsize size = {0};
    set_truth(L, "terminal_in", isatty(STDIN_FILENO));
    set_truth(L, "terminal_out", isatty(STDOUT_FILENO));
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
        set_integer(L, "columns", size.ws_col);
        set_integer(L, "rows", size.ws_row);
    }
}

/* The environment's locale: what its texts are coded in, nothing where the system has not it. */
static void set_locale(lua_State *L) {
    locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    if (!locale)
        return;
    char codeset[64];
    snprintf(codeset, sizeof codeset, "%s", nl_langinfo_l(CODESET, locale));
    freelocale(locale);
    lua_pushstring(L, codeset);
    lua_setfield(L, -2, "codeset");
}

/* machine(): {program, online, allowed, virtual, processes, files, terminal_in, terminal_out,
 * columns, rows, codeset, shared, root}; what is unknown or unlimited is left out. */
static int ask_machine(lua_State *L) {
    char path[PATH_MAX];
    cpu_set_t allowed;
    struct statvfs shared;
    lua_createtable(L, 0, 16);
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n > 0) {
        lua_pushlstring(L, path, (size_t)n);
        lua_setfield(L, -2, "program");
    }
    set_integer(L, "online", sysconf(_SC_NPROCESSORS_ONLN));
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
        set_integer(L, "allowed", CPU_COUNT(&allowed));
    set_limit(L, "virtual", RLIMIT_AS);
    set_limit(L, "processes", RLIMIT_NPROC);
    set_limit(L, "files", RLIMIT_NOFILE);
    if (statvfs("/dev/shm", &shared) == 0)
        set_integer(L, "shared", (long long)(shared.f_bavail * shared.f_frsize));
    set_truth(L, "root", geteuid() == 0);
    set_terminal(L);
    set_locale(L);
    lua_pushstring(L, zlibVersion());
    lua_setfield(L, -2, "zlib");
    return 1;
}

static void *open_library(lua_State *L, const char *name) {
    void *library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    if (!library) {
        const char *why = dlerror();
        lua_pushnil(L);
        lua_pushstring(L, why ? why : "can't be loaded");
    }
    return library;
}

/* version(library, function, kind): what a library's function says of its version: a text (kind
 * "text"), a number ("number"), a number or three through pointers ("pointer", "pointers"); true
 * where it has no such function; nil and why where it can't be loaded. */
static int ask_version(lua_State *L) {
    static const char *const kinds[] = {"text", "number", "pointer", "pointers", NULL};
    const char *name = luaL_checkstring(L, 1), *function = luaL_checkstring(L, 2);
    int kind = luaL_checkoption(L, 3, NULL, kinds), v[3] = {0, 0, 0};
    union {
        void *symbol;
        const char *(*text)(void);
        unsigned (*number)(void);
        int (*pointer)(int *);
        void (*pointers)(int *, int *, int *);
    } call;
    void *library = open_library(L, name);
    if (!library)
        return 2;
    call.symbol = dlsym(library, function);
    if (!call.symbol) {
        lua_pushboolean(L, 1);
    } else if (kind == 0) {
        lua_pushstring(L, call.text());
    } else if (kind == 1) {
        lua_pushinteger(L, call.number());
    } else if (kind == 2) {
        (void)call.pointer(v);
        lua_pushinteger(L, v[0]);
    } else {
        call.pointers(&v[0], &v[1], &v[2]);
        lua_pushfstring(L, "%d.%d.%d", v[0], v[1], v[2]);
    }
    return 1; /* the library stays: some can't be taken out again */
}

/* _system_calls(): the functions above by name. */
static int push_calls(lua_State *L) {
    static const luaL_Reg functions[] = {
        {"stat", look_at},        {"names", list_names},    {"locked", is_locked},
        {"real", real_path},      {"unzip", open_reader},   {"inflate", inflate_bytes},
        {"machine", ask_machine}, {"version", ask_version}, {NULL, NULL}};
    static const luaL_Reg reader[] = {{"read", read_piece}, {"close", close_reader}, {NULL, NULL}};
    if (luaL_newmetatable(L, reader_name)) {
        luaL_setfuncs(L, reader, 0);
        lua_pushvalue(L, -1);
        lua_setfield(L, -2, "__index");
        lua_pushcfunction(L, close_reader);
        lua_setfield(L, -2, "__gc");
        lua_pushcfunction(L, close_reader);
        lua_setfield(L, -2, "__close");
    }
    luaL_newlib(L, functions);
    return 1;
}

void tide_open_doctor(lua_State *L) {
    static const luaL_Reg functions[] = {{"_system_calls", push_calls}, {NULL, NULL}};
    tide_set_functions(L, functions);
}

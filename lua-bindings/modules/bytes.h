/* bytes.h: all bytes of a file, or of a pipe that may take its time; an interrupt ends the waiting.
 */
#ifndef TIDE_LUA_MODULES_BYTES_H
#define TIDE_LUA_MODULES_BYTES_H

#include "lua-bindings/state/state.h"

/* NULs behind the last byte. */
enum { TIDE_BYTES_BEHIND = 8 };

/* Push the handle of a uint8 tensor that holds them, unpacked where gzip packed them, `*held` and
 * NULs behind; borrowed from it.
 * Raises where the file can't be read; the message begins with `fname`. */
char *tide_read_bytes(lua_State *L, const char *path, const char *fname, size_t *held);

/* The same, mapped where that can be: a private copy of the file's pages. Another program that cuts
 * the file short meanwhile ends the process. */
char *tide_map_bytes(lua_State *L, const char *path, const char *fname, size_t *held);

#endif

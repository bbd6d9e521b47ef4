/* errors.h: errors at the line of the user's code, and values in words for them. */
#ifndef TIDE_LUA_STATE_ERRORS_H
#define TIDE_LUA_STATE_ERRORS_H

#include <lauxlib.h>
#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

/* The Lua code that called the running function, not counting Tide's own (whose chunks are named
 * tide.NAME): source and line in *ar. False where there is none, or more than 60 calls of its own.
 */
bool tide_find_line(lua_State *L, lua_Debug *ar);
/* Raise an error at the line of the user's code that led here; formats as lua_pushfstring. */
int tide_error(lua_State *L, const char *format, ...);
/* The beginning of a text in quotes and on one line, whatever its bytes are; returns the buffer. */
enum { TIDE_QUOTED = 72 };
const char *tide_quote(const char *text, size_t len, char buffer[TIDE_QUOTED]);

/* Type of a value for messages: "tensor", or Lua's name of it with a short form of the value. */
const char *tide_describe(lua_State *L, int index, char *buffer, size_t size);

/* The nearest of the names to a word, for "did you mean"; NULL when none is near. */
const char *tide_nearest(const char *word, const char *const *names, int n);
/* The shortest of n names that the word is the beginning of, as mse is mse_loss's; NULL: none. */
const char *tide_begun(const char *word, const char *const *names, int n);

#endif

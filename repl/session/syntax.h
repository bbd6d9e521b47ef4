/* syntax.h: the compiler's complaints: where in the code they point, and how they are raised. */
#ifndef TIDE_SESSION_SYNTAX_H
#define TIDE_SESSION_SYNTAX_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

#define SYNTAX_NOWHERE ((size_t)-1)

/* Raises a syntax error: the compiler's message is on top of the stack, `code` is what the user
 * wrote, `prefix` what was put before it when it was compiled. */
int syntax_raise(lua_State *L, const char *code, size_t len, const char *prefix);
/* Where the compiler's message on top speaks of what a magic was rewritten to, it says what the
 * line of `code` begins with instead. */
void syntax_name_magic(lua_State *L, const char *code, size_t len);
/* Is the value at idx an error object that syntax_raise made? */
bool syntax_is_error(lua_State *L, int idx);
/* Pushes the message of such an object, and the source line with a caret under the place (nil
 * where that can't be told). */
void syntax_push_parts(lua_State *L, int idx);

/* Where in its code the place of such an object is (bytes), or SYNTAX_NOWHERE. */
size_t syntax_error_offset(lua_State *L, int idx);

/* How far into code the compiler's message on top of the stack points (bytes); len: at its end;
 * SYNTAX_NOWHERE: can't be told. */
size_t syntax_offset(lua_State *L, const char *code, size_t len, const char *prefix);

#endif

/* compile.h: what a person enters, as a Lua function. */
#ifndef TIDE_SESSION_COMPILE_H
#define TIDE_SESSION_COMPILE_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

/* Compile as an expression, else as statements, with the locals of earlier inputs in sight, and
 * push the function; or push the compiler's message and return a Lua status. `keeps`: its own
 * top-level locals stay in sight of later inputs. *prefix is set to what was put before the code in
 * the form that was taken, or that the message speaks of: "" for statements. */
int compile_input(lua_State *L, const char *code, size_t len, const char *chunkname, bool keeps,
                  const char **prefix);
/* The same as an expression alone. */
int compile_expression(lua_State *L, const char *code, size_t len, const char *chunkname,
                       const char **prefix);

#endif

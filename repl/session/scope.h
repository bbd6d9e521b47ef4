/* scope.h: the top-level locals of inputs, which the inputs behind them still see. */
#ifndef TIDE_SESSION_SCOPE_H
#define TIDE_SESSION_SCOPE_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

#define SCOPE_NO_VALUE ((size_t)-1)

/* What makes an expression a chunk. With a variable to be closed the call is no tail call, so that
 * errors and tracebacks still know this line. */
#define SCOPE_AS_VALUE "local _call <close> = nil return "

/* The name under which every input sees what tide_session.magic_line is. */
#define SCOPE_MAGIC "__tide_magic"

typedef struct scope_input {
    const char *code;
    size_t len;
    size_t value_at; /* where the expression begins whose value is the input's; SCOPE_NO_VALUE */
    bool keeps;      /* its own top-level locals outlive it */
} scope_input;

/* Compiles code that is known to compile by itself, with the locals in sight. Pushes the function
 * and returns LUA_OK; or the message, which may be that of a constant assigned to, and a status. */
int scope_load(lua_State *L, const scope_input *input, const char *chunkname);
/* Is the function at idx one that scope_load made of an input, which Lua does not call a main
 * chunk? */
bool scope_is_input(lua_State *L, int idx);
/* Pushes a new table of the locals in sight: their values by name. */
void scope_push_values(lua_State *L);
/* Pushes a new table that is true at their names. */
void scope_push_names(lua_State *L);
/* Forgets them all. */
void scope_clear(lua_State *L);
/* Before the first input. May raise (memory). */
void scope_install(lua_State *L);

#endif

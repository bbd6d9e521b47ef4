/* compiled.h: modules of our own as functions: compiled in the first state that wants one, and in
 * the second for all that follow. */
#ifndef TIDE_LUA_MODULES_COMPILED_H
#define TIDE_LUA_MODULES_COMPILED_H

#include "cmake/embedded.h"

#include <lua.h>

/* Push the module's chunk, which is called `name`, as a function of that state. Raises an error
 * where memory is out. Any thread may ask, each for a state of its own. */
void tide_push_compiled(lua_State *L, const tide_embedded *module, const char *name);

/* One state more asks. */
void tide_count_state(void);

#endif

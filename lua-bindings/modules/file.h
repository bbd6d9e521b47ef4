/* file.h: a file of tensors that Lua has opened. */
#ifndef TIDE_LUA_MODULES_FILE_H
#define TIDE_LUA_MODULES_FILE_H

#include "engine/io/file.h"

#include <lua.h>

/* The open file at a stack index, borrowed; raises where it is none. */
td_file *tide_check_file(lua_State *L, int index);
/* The sizes in the list at a stack index, and how many; -1 where it has what is none, or too many.
 */
int tide_read_sizes(lua_State *L, int index, int64_t sizes[static TD_MAX_DIMS]);
/* What a file holds is not as it should be: pushes nil and why, returns 2. Other errors are raised.
 */
int tide_tell_why(lua_State *L, td_status status);

#endif

/* script_function.h: functions that are graphs (tide.jit.ScriptFunction) as userdata. */
#ifndef TIDE_LUA_SCRIPT_SCRIPT_FUNCTION_H
#define TIDE_LUA_SCRIPT_SCRIPT_FUNCTION_H

#include "lua-bindings/state/state.h"

typedef struct tide_script_function {
    td_script *script; /* a reference; NULL: not filled yet, or collected */
    char name[64];
    int ninputs, noutputs;
    bool plain; /* all inputs and outputs are tensors, and there are few of them */
} tide_script_function;

/* Push a new one of a graph, which is held, under a name. Raises an error, having lost nothing. */
tide_script_function *tide_push_script_function(lua_State *L, td_ir_graph *g, const char *name);
/* The one at a stack index; NULL: it is none. */
tide_script_function *tide_to_script_function(lua_State *L, int index);
/* The same, raising that `fname` expects one. */
tide_script_function *tide_check_script_function(lua_State *L, int index, const char *fname);

/* script_values.c. Read the value at a stack index for an input of a graph's type; what it makes on
 * the way stays on the stack. Tensors are checked, but are not in the value yet: tide_script_load,
 * which allocates nothing, fills them in when all is read. Raises `name: input k (iname): ...`. */
td_value tide_script_read(lua_State *L, int index, const td_ir_value *input, const char *name,
                          int k);
void tide_script_load(lua_State *L, int index, td_value *v);
/* Push a value of a graph. It stays the caller's; Lua's memory errors are raised. */
void tide_script_push(lua_State *L, const td_value *v);

/* script_describe.c. describe(f): a graph as tables, for what shows it. */
int tide_script_describe(lua_State *L);
/* script_trace.c. trace(fn, inputs, names, notes, name) */
int tide_script_trace(lua_State *L);

#endif

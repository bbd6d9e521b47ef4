/* script_function.h: functions that are graphs (tide.jit.ScriptFunction) as userdata. */
#ifndef TIDE_LUA_SCRIPT_SCRIPT_FUNCTION_H
#define TIDE_LUA_SCRIPT_SCRIPT_FUNCTION_H

#include "lua-bindings/state/state.h"

typedef struct tide_script_function {
    const char *class_name; /* first: what tells one from other userdata */
    td_scripted *function;  /* a reference; NULL: not filled yet, or collected */
    const char *name;       /* the function's */
    int ninputs, noutputs;
    bool plain;             /* all inputs and outputs are tensors, and there are few of them */
    bool looks;             /* a call looks at what follows first */
    bool has_source, eager; /* the Lua function that it was made of is kept; it runs in its place */
    int nwatched;           /* entries of the list of modules and fields that a call compares */
} tide_script_function;

/* Push a new one of a graph, which is held, under a name. Raises an error, having lost nothing. */
tide_script_function *tide_push_script_function(lua_State *L, td_ir_graph *g, const char *name);
/* The same of a function, a reference of which it takes when it returns. */
tide_script_function *tide_push_script_object(lua_State *L, td_scripted *function);
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
/* Push an empty future, which owns what it is filled with; the one at a stack index, or NULL. */
td_value *tide_push_future(lua_State *L);
td_value *tide_to_future(lua_State *L, int index);
/* Push a value of a graph. It stays the caller's; Lua's memory errors are raised. */
void tide_script_push(lua_State *L, const td_value *v);

void tide_open_script_values(lua_State *L);

/* script_source.c. Is the Lua function of the ScriptFunction at stack index 1 to run instead of its
 * graph? Run it with the arguments from 2 on: its results are the stack. */
bool tide_script_runs_source(lua_State *L, const tide_script_function *f);
int tide_script_call_source(lua_State *L);
/* Raise what changed in the modules that the one at stack index 1 was made of, if anything did. */
void tide_script_check_watched(lua_State *L, const tide_script_function *f);
/* Arguments 2 on of tide._script.set_source and watch, for the function at 1. */
void tide_script_set_source(lua_State *L, tide_script_function *f);
void tide_script_watch(lua_State *L, tide_script_function *f);

/* Read the arguments from stack index 2 on for a function's inputs; they are loaded by
 * tide_load_inputs. Pushes what holds them. */
td_value *tide_read_inputs(lua_State *L, const tide_script_function *f);
void tide_load_inputs(lua_State *L, const tide_script_function *f, td_value *inputs);
/* Raise what a call of the function failed with. */
int tide_fail_script(lua_State *L, const tide_script_function *f, const td_value *inputs);
/* Calls into a function: what it does may call functions of this state. */
td_status tide_call_script(lua_State *L, const tide_script_function *f, const td_value *inputs,
                           td_value *outputs);

/* script_host.c. Let the functions of the list at a stack index be what the graph's prim::HostCall
 * are, and prints be the script's. ENOMEM is raised. */
void tide_set_host(lua_State *L, td_scripted *f, int index);

/* script_describe.c. describe(f): a graph as tables, for what shows it. */
int tide_script_describe(lua_State *L);
void tide_describe_graph(lua_State *L, const td_ir_graph *g);
/* Fill the table at the top, tide._script: script_function.c makes the class, too; script_more.c
 * has the functions besides. */
void tide_open_script_class(lua_State *L);
void tide_set_script_functions(lua_State *L);
/* compiled_function.c: the class of tide.compile's functions, and what the table at the top has of
 * them. */
void tide_open_compiled_class(lua_State *L);
/* script_passes.c. passes(f, ...) */
int tide_script_passes(lua_State *L);
int tide_script_memory(lua_State *L);
/* script_cache.c. code_cache(clear) */
int tide_script_code_cache(lua_State *L);
int tide_script_bisect(lua_State *L);
int tide_script_operators(lua_State *L);
int tide_script_written(lua_State *L);
/* script_trace.c. trace(fn, inputs, names, notes, name) */
int tide_script_trace(lua_State *L);

#endif

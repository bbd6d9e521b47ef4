/* values.h: from a Lua value to a parameter's value. */
#ifndef TIDE_LUA_CALL_VALUES_H
#define TIDE_LUA_CALL_VALUES_H

#include "lua-bindings/call/args.h"

/* The value at `index` for a parameter. For a list that is the rest of the positional arguments
 * `last` is the last of them, otherwise `index`. May note another stack index in frame->at. */
td_value tide_read_value(lua_State *L, tide_frame *frame, int param, int index, int last);

/* What Lua calls a kind of value: "tensor", "ints"; "object" for what no operator takes. */
const char *tide_kind_name(td_kind kind);

/* Raise that an argument without default is missing. */
int tide_fail_missing(lua_State *L, const tide_frame *frame, int param);

/* What is written where an object of a class is expected: ": ..." where a function, or a class of
 * modules, stands for a module at `index`, else "". */
const char *tide_class_hint(lua_State *L, const char *word, int index);

/* Refuse a table's keys that are neither 1 to n nor names, and holes; has it names? */
bool tide_scan_keys(lua_State *L, int table, lua_Integer n, const char *what);

/* Raise, in the name of `what`, unless a tensor of this dtype can be given the number at a stack
 * index; what is no number passes. */
void tide_check_holds(lua_State *L, const char *what, td_dtype dtype, int index);

#endif

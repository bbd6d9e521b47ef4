/* function.h: functions of Tide in Lua that are not operators. A schema in the operators' grammar
 * declares each: arguments are read by it, and help shows it. */
#ifndef TIDE_LUA_CALL_FUNCTION_H
#define TIDE_LUA_CALL_FUNCTION_H

#include "lua-bindings/call/args.h"

typedef struct tide_function {
    const char *schema; /* "name(PARAMETERS) -> RESULT"; static */
    const char *doc;    /* one line, ends with a full stop; static */
    lua_CFunction call; /* begins with tide_read_call */
} tide_function;

/* Set declared functions (up to one without schema) as fields of the table at the top. */
void tide_declare(lua_State *L, const tide_function *functions);

/* The schema of the running declared function. A finalizer may call it after its schema's own: an
 * error. */
int tide_fail_collected(lua_State *L);
static inline const td_op *tide_own_schema(lua_State *L) {
    const td_op *schema = lua_touserdata(L, lua_upvalueindex(TIDE_UP_FIRST));
    if (TD_UNLIKELY(!schema->name))
        tide_fail_collected(L);
    return schema;
}

/* The arguments of the running declared function. */
void tide_read_call(lua_State *L, tide_frame *frame);
/* The same as tide_read_shapes: for functions that read no elements, and those in Lua, to which
 * arguments go on as they stand. */
void tide_read_shape_call(lua_State *L, tide_frame *frame);

/* The schema behind a declared function at a stack index; NULL: it is none. */
const td_op *tide_declared(lua_State *L, int index);

/* Fill the tide table with what the Lua modules declare their functions by (_function, _class,
 * _document, _fail, _describe, _number, _before). */
void tide_open_functions(lua_State *L);

/* Push the text of the number at a stack index as tostring writes it, but with a point in every
 * locale; floats with so many digits and no ".0" where `digits` is not 0. */
void tide_push_number_text(lua_State *L, int index, int digits);
/* Lua functions. number(x [, digits]): that text. before(a, b): does one string come before the
 * other by its bytes? (Lua's < asks the locale.) */
int tide_number_function(lua_State *L);
int tide_before_function(lua_State *L);

/* Push what is known of a value that is no function: its description {name, signature, doc}, or the
 * declared function that makes it. False (nothing pushed): nothing is. */
bool tide_push_document(lua_State *L, int index);
/* Let the value at a stack index have this description. */
void tide_document(lua_State *L, int index, const char *name, const char *signature,
                   const char *doc);

#endif

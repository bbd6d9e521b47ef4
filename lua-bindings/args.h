/* args.h: from Lua arguments to an operator's values, by its schema. */
#ifndef TIDE_LUA_ARGS_H
#define TIDE_LUA_ARGS_H

#include "lua-bindings/state.h"

enum { TIDE_FRAME_INTS = 4 * TD_MAX_DIMS };

typedef struct tide_frame {
    const td_op *op;
    const char *name; /* as called: "add", "add_" */
    td_value args[TD_MAX_PARAMS];
    int64_t ints[TIDE_FRAME_INTS]; /* of int[] and dim[] arguments */
    int nints;
    td_tensor *out;     /* option out=, borrowed */
    bool requires_grad; /* option of creating operators */
} tide_frame;

/* Read the running function's arguments into frame->args. Raises on a wrong call. What it makes on
 * the way (converted index tensors, arrays) stays on the Lua stack as long as the call lasts. */
void tide_read_args(lua_State *L, tide_frame *frame);

/* An int64 tensor that counts from 1, as one that counts from 0 (pushed on the stack). */
td_tensor *tide_from_one_based(lua_State *L, td_tensor *x, const char *fname);

/* A dtype from a constant (tide.float32) or its name; TD_DTYPE_NONE when it is neither. */
td_dtype tide_to_dtype(lua_State *L, int index);
void tide_push_dtype(lua_State *L, td_dtype dtype);

/* The function's signature for Lua users, from its schema. */
void tide_push_signature(lua_State *L, const td_op *op);

/* Bound functions: an operator (upvalue TIDE_UP_FIRST), out of place and in place. */
int tide_call_operator(lua_State *L);
int tide_call_operator_inplace(lua_State *L);
/* The bound function that suits an operator: tide_call_operator, or a shorter way for operators
 * that are mostly called with one or two operands alone. */
lua_CFunction tide_operator_function(const td_op *op);
bool tide_is_operator_function(lua_CFunction fn);

#endif

/* args.h: from Lua arguments to values, by a schema: an operator's, or that of a function of the
 * face (function.h).
 *
 * One rule for every call: a table's list part is data, its named part options. The table that
 * comes last may hold both; where no list is due, the list part of a call's only table is its
 * positional arguments. What is neither (holes, other keys) is refused.
 *
 * Where a function is called with what stands behind it ("..."), a table of names behind all or
 * just before the function is options, never the function's.
 */
#ifndef TIDE_LUA_CALL_ARGS_H
#define TIDE_LUA_CALL_ARGS_H

#include "lua-bindings/state/state.h"

enum { TIDE_FRAME_INTS = 4 * TD_MAX_DIMS, TIDE_FRAME_FLOATS = TD_MAX_DIMS, TIDE_FRAME_BESIDE = 1 };

/* Where the registry has the class that a schema's type means, when it is one of Lua's. */
#define TIDE_CLASS_KEY "tide.class.%s"

typedef struct tide_frame {
    const td_op *op;
    const char *name; /* as called: "add", "add_" */
    td_value args[TD_MAX_PARAMS];
    int at[TD_MAX_PARAMS]; /* stack index of an argument given; 0: it has its default */
    int last;              /* the last positional argument */
    int list, options;     /* stack index of a table whose list part is data, named part options */
    int64_t ints[TIDE_FRAME_INTS]; /* of int[] and dim[] arguments */
    int nints;
    double floats[TIDE_FRAME_FLOATS]; /* of a number[] argument */
    int out_at, nout;                 /* stack index of the first tensor of out=, and how many */
    int beside_at, nbeside;           /* of index tensors as they were given, where there is out= */
    td_tensor *out[TD_MAX_RESULTS + TIDE_FRAME_BESIDE]; /* both, one behind the other, borrowed */
    bool requires_grad;                                 /* option of creating operators */
    bool inplace; /* option of those that have a form in place, which is meant then */
    bool defers;  /* tensors whose calls are put off are read as their stand-ins */
} tide_frame;

/* Read the running function's arguments into frame->args. Raises on a wrong call. What it makes on
 * the way (converted index tensors, arrays) stays on the Lua stack as long as the call lasts.
 *
 * Tensors are borrowed from handles on the stack, and whatever Lua allocates may run a finalizer
 * that closes them: tide_load_tensors comes last, behind everything that allocates. */
void tide_read_args(lua_State *L, tide_frame *frame);
/* The same for who reads no elements: tensors may be stand-ins (td_deferred). */
void tide_read_shapes(lua_State *L, tide_frame *frame);
/* Take the tensors of the frame from their handles. Allocates nothing; raises where one was closed
 * meanwhile. */
void tide_load_tensors(lua_State *L, tide_frame *frame);

/* Share the tensor at a stack index, of the wrong type or closed an error: pushes a handle that
 * keeps it whatever becomes of the other. */
td_tensor *tide_hold_tensor(lua_State *L, int index, const char *fname);

/* The elements of the tensor at a stack index, as tide_hold_tensor; for loops that allocate in Lua,
 * where a finalizer might give the tensor itself other memory (out=). */
td_tensor *tide_hold_elements(lua_State *L, int index, const char *fname);

/* An int64 tensor at a stack index that counts from 1, as one that counts from 0 (pushed). */
td_tensor *tide_from_one_based(lua_State *L, int index, const char *fname);

/* Length of a table that must be a pure list: no holes, no other keys. `what` says of which. */
lua_Integer tide_list_length(lua_State *L, int index, const char *what);

/* A dtype from a constant (tide.float32) or its name; TD_DTYPE_NONE when it is neither. */
td_dtype tide_to_dtype(lua_State *L, int index);
void tide_push_dtype(lua_State *L, td_dtype dtype);
/* The dtype of quantized tensors of such integers. */
void tide_push_quantized_dtype(lua_State *L, td_dtype ints);
/* A tensor's dtype, which of a quantized one is another than that of its integers. */
void tide_push_dtype_of(lua_State *L, const td_tensor *x);
/* The name of a quantized tensor's dtype from its constant (tide.quint8); NULL: it is none. */
const char *tide_to_quantized(lua_State *L, int index);

/* The function's signature for Lua users, from its schema, under a name. */
void tide_push_signature(lua_State *L, const td_op *op, const char *name);

/* Results of a call that is put off; n is 0 where it was made. */
typedef struct tide_later {
    td_deferred *values;
    int n;
} tide_later;
/* A handle, still empty, waits for such a result. */
static inline void tide_wait_for(tide_handle *handle, td_deferred *value) {
    handle->pending = value;
    value->holder = handle;
}
/* td_op_call, or where the state's function defers, what td_deferral_call makes of it. */
td_status tide_op_call(tide_state *state, td_call *call, bool alone,
                       tide_later *later) TD_MUST_CHECK;
/* The same for the running bound operator of one result, which goes into the handle on the top. */
int tide_put_off(lua_State *L, td_call *call, tide_handle *handle);
/* td_op_apply likewise, for operators of one result, which goes into a handle. Tensors among the
 * arguments are read by tide_check_shape. */
td_status tide_op_apply(lua_State *L, const td_op *op, tide_handle *handle, int nargs,
                        const td_value *args) TD_MUST_CHECK;

/* Bound functions: an operator (upvalue TIDE_UP_FIRST, behind it the alias that it is called by),
 * out of place and in place. */
int tide_call_operator(lua_State *L);
/* The same for an operator, under the name that messages give it. */
int tide_call_as(lua_State *L, const td_op *op, const char *name);
int tide_call_operator_inplace(lua_State *L);
/* The operator of the running bound function. */
static inline const td_op *tide_running_op(lua_State *L) {
    return lua_touserdata(L, lua_upvalueindex(TIDE_UP_FIRST));
}
/* The name that the running bound function was called by: an alias is the second of its upvalues.
 */
const char *tide_called_name(lua_State *L, const char *name);
/* Raise the engine's error of an operator that was called by a name. */
int tide_fail_operator(lua_State *L, const td_op *op, const char *called);
/* The bound function that suits an operator: tide_call_operator, or a shorter way for operators
 * that are mostly called with one or two operands alone. */
lua_CFunction tide_operator_function(const td_op *op);
bool tide_is_operator_function(lua_CFunction fn);
/* Push the bound function of an operator; `alias`, static, is the name that it has otherwise. */
void tide_push_operator(lua_State *L, const td_op *op, const char *alias, bool inplace);

#endif

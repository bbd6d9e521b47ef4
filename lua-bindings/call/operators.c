/* operators.c: chooses the C function that is bound to each operator: a short way for calls of one
 * or two plain operands, a function of its own for those of call_forms.c, call.c's for all others.
 */
#include "lua-bindings/call/args.h"
#include "lua-bindings/call/call_forms.h"

#include <string.h>

/* ---- the calls that a prompt makes most ---- */

/* A tensor, of a call that is put off its stand-in, or a number at a stack index; false for
 * anything else. */
static inline bool read_operand(lua_State *L, int index, td_value *v) {
    tide_handle *handle = lua_touserdata(L, index);
    if (TD_LIKELY(tide_is_handle(handle) && handle->tensor)) {
        *v = TD_T(handle->tensor);
        return true;
    }
    if (lua_type(L, index) != LUA_TNUMBER) {
        bool waits = tide_is_handle(handle) && handle->pending;
        if (waits)
            *v = TD_T(handle->pending->stand_in);
        return waits;
    }
    *v = lua_isinteger(L, index) ? TD_I(lua_tointeger(L, index)) : TD_F(lua_tonumber(L, index));
    return true;
}

/* Call with operands read already, for which the handle on the top takes the result. */
static int call_with_operands(lua_State *L, const td_op *op, int given, td_value *args,
                              tide_handle *handle) {
    for (int k = given; k < op->nparams; k++)
        args[k] = op->params[k].preset;
    tide_state *state = TIDE_STATE(L);
    td_call call = {.op = op, .args = args};
    if (TD_UNLIKELY(state->deferring != NULL))
        return tide_put_off(L, &call, handle);
    td_status status = td_op_call(&call);
    if (TD_UNLIKELY(status == TD_ENOMEM)) {
        tide_free_memory(L, state);
        for (int k = 0; k < given; k++)
            if (!read_operand(L, k + 1, &args[k]))
                return tide_error(L, "%s: argument %d: this tensor was closed", op->name, k + 1);
        status = td_op_call(&call);
    }
    if (TD_UNLIKELY(status))
        return tide_fail_operator(L, op, tide_called_name(L, op->name));
    handle->tensor = call.out[0];
    tide_check_pressure(L, state, call.out[0]);
    return 1;
}

static inline bool fits(const td_param *p, const td_value *v) {
    return v->kind == TD_KIND_TENSOR || p->type == TD_PARAM_TENSOR_OR_NUMBER;
}

/* Two operands, tensors or numbers as the schema has it, and nothing else; other calls go the long
 * way. The handle comes before the operands are read, as tide_load_tensors wants it. */
static int call_binary(lua_State *L) {
    td_value args[TD_MAX_PARAMS];
    const td_op *op = tide_running_op(L);
    if (TD_UNLIKELY(lua_gettop(L) != 2))
        return tide_call_operator(L);
    tide_handle *handle = tide_push_handle(L);
    if (TD_LIKELY(read_operand(L, 1, &args[0]) && read_operand(L, 2, &args[1]) &&
                  fits(&op->params[0], &args[0]) && fits(&op->params[1], &args[1])))
        return call_with_operands(L, op, 2, args, handle);
    lua_settop(L, 2);
    return tide_call_operator(L);
}

static int call_unary(lua_State *L) {
    td_value args[TD_MAX_PARAMS];
    if (TD_UNLIKELY(lua_gettop(L) != 1))
        return tide_call_operator(L);
    tide_handle *handle = tide_push_handle(L);
    if (TD_LIKELY(read_operand(L, 1, &args[0]) && args[0].kind == TD_KIND_TENSOR))
        return call_with_operands(L, tide_running_op(L), 1, args, handle);
    lua_settop(L, 1);
    return tide_call_operator(L);
}

/* In place: a tensor, perhaps with one operand more. There is no new handle, so nothing of Lua's
 * runs while the operands are held; what needs more than a call goes the long way. */
static int call_inplace(lua_State *L, int given) {
    td_value args[TD_MAX_PARAMS];
    const td_op *op = tide_running_op(L);
    if (TD_UNLIKELY(
            lua_gettop(L) != given || TIDE_STATE(L)->deferring || !read_operand(L, 1, &args[0]) ||
            args[0].kind != TD_KIND_TENSOR ||
            (given == 2 && !(read_operand(L, 2, &args[1]) && fits(&op->params[1], &args[1])))))
        return tide_call_operator_inplace(L);
    for (int k = given; k < op->nparams; k++)
        args[k] = op->params[k].preset;
    td_call call = {.op = op, .args = args, .inplace = true, .given = &args[0].tensor, .ngiven = 1};
    td_status status = td_op_call(&call);
    if (TD_UNLIKELY(status == TD_ENOMEM))
        return tide_call_operator_inplace(L);
    if (TD_UNLIKELY(status))
        return tide_fail_operator(L, op, tide_called_name(L, op->inplace_name));
    td_release(call.out[0]);
    lua_settop(L, 1);
    return 1;
}

static int call_unary_inplace(lua_State *L) {
    return call_inplace(L, 1);
}

static int call_binary_inplace(lua_State *L) {
    return call_inplace(L, 2);
}

static bool is_operand(const td_param *p) {
    return p->type == TD_PARAM_TENSOR_OR_NUMBER || (p->type == TD_PARAM_TENSOR && !p->base);
}

/* How many operands, one or two, a quick call of it has; 0: every call goes the long way. */
static int quick_operands(const td_op *op) {
    int needed = 0;
    if (op->result_type != TD_RESULT_TENSOR || op->nresults != 1 || op->result_base[0] ||
        op->flags & TD_OP_ALIKE)
        return 0;
    for (int k = 0; k < op->nparams; k++)
        if (!op->params[k].has_default)
            needed = k + 1;
    bool unary = needed == 1 && op->params[0].type == TD_PARAM_TENSOR && !op->params[0].base;
    bool binary = needed == 2 && is_operand(&op->params[0]) && is_operand(&op->params[1]);
    return unary || binary ? needed : 0;
}

lua_CFunction tide_operator_function(const td_op *op) {
    static const lua_CFunction quick[] = {tide_call_operator, call_unary, call_binary};
    lua_CFunction form = tide_form_of(op);
    return form ? form : quick[quick_operands(op)];
}

static lua_CFunction inplace_function(const td_op *op) {
    static const lua_CFunction quick[] = {tide_call_operator_inplace, call_unary_inplace,
                                          call_binary_inplace};
    return quick[quick_operands(op)];
}

bool tide_is_operator_function(lua_CFunction fn) {
    return fn == tide_call_operator || fn == tide_call_operator_inplace || fn == call_binary ||
           fn == call_unary || fn == call_binary_inplace || fn == call_unary_inplace ||
           tide_is_form(fn);
}

void tide_push_operator(lua_State *L, const td_op *op, const char *alias, bool inplace) {
    lua_pushlightuserdata(L, (void *)op);
    if (alias)
        lua_pushlightuserdata(L, (void *)alias);
    tide_push_function(L, inplace ? inplace_function(op) : tide_operator_function(op),
                       alias ? 2 : 1);
}

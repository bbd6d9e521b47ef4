/* call.c: the bound function of an operator: arguments, handles for the results, the call, errors.
 */
#include "lua-bindings/args.h"
#include "lua-bindings/forms.h"

#include "engine/core/modes.h"

#include <stdio.h>
#include <string.h>

static const td_op *running_op(lua_State *L) {
    return lua_touserdata(L, lua_upvalueindex(TIDE_UP_FIRST));
}

/* An operator by the name that it was called by: an alias is the second upvalue. */
static const char *called_name(lua_State *L, const char *name) {
    const char *alias = lua_touserdata(L, lua_upvalueindex(TIDE_UP_FIRST + 1));
    return alias ? alias : name;
}

/* The engine names the operator; the user called it perhaps by its in-place name or by an alias. */
int tide_fail_operator(lua_State *L, const td_op *op, const char *called) {
    const char *message = td_error_message(), *names[2] = {op->name, op->inplace_name};
    if (td_error_code() == TD_ESCRIPT)
        return tide_raise(L);
    for (int k = 0; k < 2; k++) {
        size_t len = names[k] ? strlen(names[k]) : 0;
        if (len && !strncmp(message, names[k], len) && message[len] == ':')
            return tide_error(L, "%s%s", called, message + len);
    }
    if (op->flags & TD_OP_INTERNAL) /* it has no name of its own in messages */
        return tide_error(L, "%s: %s", called, message);
    return tide_error(L, "%s", message);
}

/* Operators that make tensors of nothing make them on the default device. */
static void fill_device(tide_frame *frame) {
    const td_op *op = frame->op;
    int device = -1;
    for (int k = 0; k < op->nparams; k++) {
        if (frame->args[k].kind == TD_KIND_TENSOR || frame->args[k].kind == TD_KIND_TENSORS)
            return;
        if (op->params[k].type == TD_PARAM_DEVICE && td_is_nil(frame->args[k]))
            device = k;
    }
    if (device >= 0 && !frame->nout)
        frame->args[device] = TD_DEVICE(td_modes_current.device);
}

/* What the call reads and writes, from where the values stand on the stack. */
static void load(lua_State *L, tide_frame *frame, td_call *call) {
    tide_load_tensors(L, frame);
    if (call->inplace) {
        frame->out[0] = td_arg_tensor(frame->args[0]);
        frame->nout = 1;
    }
    call->given = frame->out;
    call->ngiven = frame->nout;
    call->nbeside = (uint8_t)frame->nbeside;
}

/* Run the call of a frame that is read. Out of memory may be garbage that Lua has not collected
 * yet: collect, and try once more. */
static void run(lua_State *L, tide_frame *frame, td_call *call) {
    if (TD_UNLIKELY(!td_device_same(td_modes_current.device, TD_DEVICE_CPU)))
        fill_device(frame);
    load(L, frame, call);
    td_status status = td_op_call(call);
    if (TD_UNLIKELY(status == TD_ENOMEM)) {
        tide_free_memory(L, TIDE_STATE(L));
        load(L, frame, call);
        status = td_op_call(call);
    }
    if (TD_UNLIKELY(status))
        tide_fail_operator(L, frame->op, frame->name);
}

/* Does nobody else know of x or its memory? */
static bool is_own(const td_tensor *x) {
    return x->layout == TD_STRIDED && !x->autograd &&
           atomic_load_explicit(&x->refs, memory_order_acquire) == 1 &&
           atomic_load_explicit(&x->storage->refs, memory_order_acquire) == 1;
}

/* Index results count from 1 here; a new tensor where autograd has saved the one from 0, but for
 * what out= gave. */
static void to_one_based(lua_State *L, tide_handle *handle, bool given) {
    td_tensor *shifted;
    if (given || is_own(handle->tensor)) {
        TIDE_CHECK(L, TD_APPLY_INPLACE(add, TD_T(handle->tensor), TD_I(1)));
        return;
    }
    TIDE_CHECK(L, TD_APPLY(&shifted, add, TD_T(handle->tensor), TD_I(1)));
    td_release(handle->tensor);
    handle->tensor = shifted;
}

static int push_list(lua_State *L, td_call *call) {
    lua_createtable(L, call->nlist, 0);
    for (int k = 0; k < call->nlist; k++) {
        tide_push_handle(L)->tensor = call->list[k];
        call->list[k] = NULL;
        lua_rawseti(L, -2, k + 1);
    }
    return 1;
}

static void release_list(td_call *call) {
    for (int k = 0; k < call->nlist; k++)
        td_release(call->list[k]);
    td_free(call->list);
}

/* A list's handles can't be made before its length is known: they are made in a protected call, so
 * that a memory error loses nothing. Its function lies on the stack before there is a list. */
static int protected_push_list(lua_State *L) {
    return push_list(L, lua_touserdata(L, 1));
}

static int return_list(lua_State *L, td_call *call) {
    lua_pushlightuserdata(L, call);
    int failed = lua_pcall(L, 1, 1, 0);
    release_list(call);
    return failed ? lua_error(L) : 1;
}

static int return_other(lua_State *L, td_call *call) {
    switch ((td_result_type)call->op->result_type) {
    case TD_RESULT_TENSORS:
        return return_list(L, call);
    case TD_RESULT_BOOL:
        lua_pushboolean(L, call->result.b);
        return 1;
    case TD_RESULT_NUMBER:
        if (call->result.kind == TD_KIND_INT)
            lua_pushinteger(L, call->result.i);
        else
            lua_pushnumber(L, call->result.f);
        return 1;
    case TD_RESULT_TENSOR: /* in its handle */
    case TD_RESULT_NOTHING:
        break;
    }
    return 0;
}

/* What out= was given comes back itself: nothing must say of it that it is another object. */
static void return_given(lua_State *L, const tide_frame *frame, tide_handle *const *handles,
                         int results) {
    for (int k = 0; k < frame->nout; k++) {
        td_release(handles[k]->tensor);
        handles[k]->tensor = NULL;
        lua_pushvalue(L, frame->out_at + k);
        lua_replace(L, k - results - 1);
    }
}

/* nil in the place of a result that was not asked for, before others that were. */
static void leave_holes(lua_State *L, tide_handle *const *handles, int n, int given) {
    for (int k = 0; k < given; k++)
        if (!handles[k]->tensor) {
            lua_pushnil(L);
            lua_replace(L, k - n - 1);
        }
}

int tide_call_as(lua_State *L, const td_op *op, const char *name) {
    tide_frame frame;
    tide_handle *handles[TD_MAX_RESULTS];
    frame.op = op;
    frame.name = name;
    tide_read_args(L, &frame);
    luaL_checkstack(L, TD_MAX_RESULTS + 4, op->name);
    td_call call = {.op = op, .args = frame.args};
    int n = op->nresults;
    for (int k = 0; k < n; k++)
        handles[k] = tide_push_handle(L);
    if (TD_UNLIKELY(op->result_type == TD_RESULT_TENSORS))
        tide_push_function(L, protected_push_list, 0);
    run(L, &frame, &call);
    if (TD_UNLIKELY(op->result_type != TD_RESULT_TENSOR))
        return return_other(L, &call);
    int given = 0;
    for (int k = 0; k < n; k++) {
        handles[k]->tensor = call.out[k];
        if (call.out[k])
            given = k + 1;
    }
    for (int k = 0; k < given; k++)
        if (TD_UNLIKELY(op->result_base[k] && handles[k]->tensor))
            to_one_based(L, handles[k], k < frame.nout);
    if (TD_UNLIKELY(frame.requires_grad))
        TIDE_CHECK(L, td_set_requires_grad(handles[0]->tensor, true));
    if (given)
        tide_check_pressure(L, TIDE_STATE(L), handles[0]->tensor);
    if (TD_UNLIKELY(n > 1))
        leave_holes(L, handles, n, given);
    if (TD_UNLIKELY(frame.nout))
        return_given(L, &frame, handles, n);
    lua_settop(L, lua_gettop(L) - (n - given));
    return given;
}

int tide_call_operator(lua_State *L) {
    const td_op *op = running_op(L);
    return tide_call_as(L, op, called_name(L, op->name));
}

int tide_call_operator_inplace(lua_State *L) {
    tide_frame frame;
    const td_op *op = running_op(L);
    frame.op = op;
    frame.name = called_name(L, op->inplace_name);
    tide_read_args(L, &frame);
    if (frame.nout)
        tide_error(L, "%s: no option 'out': it writes its first argument", frame.name);
    if (!td_arg_tensor(frame.args[0]))
        tide_error(L, "%s: argument 1: a tensor expected", frame.name);
    td_call call = {.op = op, .args = frame.args, .inplace = true};
    run(L, &frame, &call);
    for (int k = 0; k < TD_MAX_RESULTS; k++)
        td_release(call.out[k]);
    lua_pushvalue(L, 1);
    return 1;
}

/* ---- the calls that a prompt makes most ---- */

/* A tensor or a number at a stack index; false for anything else. */
static inline bool read_operand(lua_State *L, int index, td_value *v) {
    tide_handle *handle = lua_touserdata(L, index);
    if (TD_LIKELY(tide_is_handle(handle) && handle->tensor)) {
        *v = TD_T(handle->tensor);
        return true;
    }
    if (lua_type(L, index) != LUA_TNUMBER)
        return false;
    *v = lua_isinteger(L, index) ? TD_I(lua_tointeger(L, index)) : TD_F(lua_tonumber(L, index));
    return true;
}

/* Call with operands read already, for which the handle on the top takes the result. */
static int call_with_operands(lua_State *L, const td_op *op, int given, td_value *args,
                              tide_handle *handle) {
    for (int k = given; k < op->nparams; k++)
        args[k] = op->params[k].preset;
    td_call call = {.op = op, .args = args};
    td_status status = td_op_call(&call);
    if (TD_UNLIKELY(status == TD_ENOMEM)) {
        tide_free_memory(L, TIDE_STATE(L));
        for (int k = 0; k < given; k++)
            if (!read_operand(L, k + 1, &args[k]))
                return tide_error(L, "%s: argument %d: this tensor was closed", op->name, k + 1);
        status = td_op_call(&call);
    }
    if (TD_UNLIKELY(status))
        return tide_fail_operator(L, op, called_name(L, op->name));
    handle->tensor = call.out[0];
    tide_check_pressure(L, TIDE_STATE(L), call.out[0]);
    return 1;
}

static inline bool fits(const td_param *p, const td_value *v) {
    return v->kind == TD_KIND_TENSOR || p->type == TD_PARAM_TENSOR_OR_NUMBER;
}

/* Two operands, tensors or numbers as the schema has it, and nothing else; other calls go the long
 * way. The handle comes before the operands are read, as tide_load_tensors wants it. */
static int call_binary(lua_State *L) {
    td_value args[TD_MAX_PARAMS];
    const td_op *op = running_op(L);
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
        return call_with_operands(L, running_op(L), 1, args, handle);
    lua_settop(L, 1);
    return tide_call_operator(L);
}

/* In place: a tensor, perhaps with one operand more. There is no new handle, so nothing of Lua's
 * runs while the operands are held; what needs more than a call goes the long way. */
static int call_inplace(lua_State *L, int given) {
    td_value args[TD_MAX_PARAMS];
    const td_op *op = running_op(L);
    if (TD_UNLIKELY(
            lua_gettop(L) != given || !read_operand(L, 1, &args[0]) ||
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
        return tide_fail_operator(L, op, called_name(L, op->inplace_name));
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
    if (op->result_type != TD_RESULT_TENSOR || op->nresults != 1 || op->result_base[0])
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

/* call.c: the bound function of an operator: arguments, handles for the results, the call, errors.
 */
#include "lua-bindings/call/args.h"

#include "engine/core/modes.h"

#include <stdio.h>
#include <string.h>

const char *tide_called_name(lua_State *L, const char *name) {
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

td_status tide_op_call(tide_state *state, td_call *call, bool alone, tide_later *later) {
    later->n = 0;
    return TD_LIKELY(!state->deferring) ? td_op_call(call)
                                        : td_deferral_call(state->deferring->deferral, call, alone,
                                                           &later->values, &later->n);
}

/* What may refuse elements does so here and now. */
static void settle_hasty(lua_State *L, tide_state *state) {
    if (td_deferral_is_hasty(state->deferring->deferral))
        tide_settle(L, state);
}

int tide_put_off(lua_State *L, td_call *call, tide_handle *handle) {
    const td_op *op = call->op;
    tide_state *state = TIDE_STATE(L);
    tide_later later;
    if (tide_op_call(state, call, false, &later))
        return tide_fail_operator(L, op, tide_called_name(L, op->name));
    if (later.n) {
        tide_wait_for(handle, later.values);
        settle_hasty(L, state);
    } else {
        handle->tensor = call->out[0];
        tide_check_pressure(L, state, call->out[0]);
    }
    return 1;
}

td_status tide_op_apply(lua_State *L, const td_op *op, tide_handle *handle, int nargs,
                        const td_value *args) {
    td_value full[TD_MAX_PARAMS];
    tide_later later;
    tide_state *state = TIDE_STATE(L);
    if (TD_LIKELY(!state->deferring))
        return td_op_apply(op, &handle->tensor, nargs, args);
    for (int k = 0; k < op->nparams; k++)
        full[k] = k < nargs ? args[k] : op->params[k].preset;
    td_call call = {.op = op, .args = full};
    td_status status = tide_op_call(state, &call, false, &later);
    if (status == TD_OK && later.n) {
        tide_wait_for(handle, later.values);
        settle_hasty(L, state);
    } else if (status == TD_OK) {
        handle->tensor = call.out[0];
    }
    return status;
}

/* Run the call of a frame that is read. Out of memory may be garbage that Lua has not collected
 * yet: collect, and try once more. */
static void run(lua_State *L, tide_frame *frame, td_call *call, tide_later *later) {
    tide_state *state = TIDE_STATE(L);
    if (TD_UNLIKELY(!td_device_same(td_modes_current.device, TD_DEVICE_CPU)))
        fill_device(frame);
    load(L, frame, call);
    bool alone = frame->requires_grad || frame->nout;
    td_status status = tide_op_call(state, call, alone, later);
    if (TD_UNLIKELY(status == TD_ENOMEM)) {
        tide_free_memory(L, state);
        load(L, frame, call);
        status = tide_op_call(state, call, alone, later);
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

/* The same where calls are put off: the sum is a call as any other. */
static void put_off_base(lua_State *L, tide_handle *handle) {
    tide_handle from_one = {NULL, NULL};
    settle_hasty(L, TIDE_STATE(L));
    td_tensor *x = handle->pending ? handle->pending->stand_in : handle->tensor;
    TIDE_CHECK(L, tide_op_apply(L, TD_OP(add), &from_one, 2, (td_value[]){TD_T(x), TD_I(1)}));
    if (handle->pending)
        handle->pending->holder = NULL;
    td_release(handle->tensor);
    *handle = from_one;
    if (handle->pending)
        handle->pending->holder = handle;
}

/* Index results count from 1 here; a new tensor where autograd has saved the one from 0, but for
 * what out= gave. */
static void to_one_based(lua_State *L, tide_handle *handle, bool given) {
    td_tensor *shifted;
    if (TD_UNLIKELY(TIDE_STATE(L)->deferring && !given)) {
        put_off_base(L, handle);
        return;
    }
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

/* Takes the handles of results that were not asked for off the stack, so that those behind come in
 * their places, as PyTorch gives them; how many are left. */
static int leave_out(lua_State *L, const td_call *call, int n) {
    int first = lua_gettop(L) - n + 1;
    for (int k = n - 1; k >= 0; k--)
        if (!call->out[k])
            lua_remove(L, first + k);
    return lua_gettop(L) - first + 1;
}

/* The form in place: the first argument itself is the result. */
static int call_inplace(lua_State *L, tide_frame *frame) {
    if (frame->nout)
        tide_error(L, "%s: no option 'out': it writes its first argument", frame->name);
    if (!td_arg_tensor(frame->args[0]))
        tide_error(L, "%s: argument 1: a tensor expected", frame->name);
    td_call call = {.op = frame->op, .args = frame->args, .inplace = true};
    tide_later later;
    run(L, frame, &call, &later);
    if (TD_UNLIKELY(later.n)) { /* the handle waited for what was there before */
        ((tide_handle *)lua_touserdata(L, frame->at[0]))->pending = later.values;
        settle_hasty(L, TIDE_STATE(L));
    }
    for (int k = 0; k < TD_MAX_RESULTS; k++)
        td_release(call.out[k]);
    lua_pushvalue(L, frame->at[0]);
    return 1;
}

/* Once for each line of a script: where the first two tensors aren't of one shape, as they are
 * meant to be. */
static void warn_of_shapes(lua_State *L, const tide_frame *f) {
    const td_tensor *x = td_arg_tensor(f->args[0]), *y = td_arg_tensor(f->args[1]);
    char first[TD_SHAPE_TEXT], second[TD_SHAPE_TEXT];
    int64_t sizes[TD_MAX_DIMS];
    lua_Debug ar;
    int ndim;
    if (!x || !y || td_tensor_same_shape(x, y) ||
        td_broadcast(x->ndim, x->sizes, y->ndim, y->sizes, &ndim, sizes)) /* which the call says */
        return;
    luaL_checkstack(L, 6, f->name);
    if (tide_find_line(L, &ar))
        lua_pushfstring(L, "%s:%d: ", ar.short_src, ar.currentline);
    else
        lua_pushliteral(L, "");
    luaL_getsubtable(L, LUA_REGISTRYINDEX, "tide.warned");
    lua_pushvalue(L, -2);
    if (lua_rawget(L, -2) == LUA_TNIL) {
        lua_pushvalue(L, -3);
        lua_pushboolean(L, true);
        lua_rawset(L, -4);
        lua_pushfstring(L,
                        "tide: %s%s: %s of shape %s and %s of shape %s broadcast, which a loss "
                        "seldom means: give both one shape (x:squeeze(), x:view_as(y))",
                        lua_tostring(L, -3), f->name, f->op->params[0].name,
                        td_tensor_shape_text(x, first), f->op->params[1].name,
                        td_tensor_shape_text(y, second));
        lua_warning(L, lua_tostring(L, -1), 0);
        lua_pop(L, 1);
    }
    lua_pop(L, 3);
}

/* The handles of results that are to come, of which the first n lie on the top; how many results
 * there are. */
static int return_later(lua_State *L, const td_op *op, tide_handle *const *handles,
                        const tide_later *later) {
    if (op->result_type == TD_RESULT_TENSORS) {
        lua_createtable(L, later->n, 0);
        for (int k = 0; k < later->n; k++) {
            tide_wait_for(tide_push_handle(L), &later->values[k]);
            lua_rawseti(L, -2, k + 1);
        }
        return 1;
    }
    int first = lua_gettop(L) - later->n + 1;
    for (int k = later->n - 1; k >= 0; k--)
        if (later->values[k].stand_in)
            tide_wait_for(handles[k], &later->values[k]);
    for (int k = later->n - 1; k >= 0; k--)
        if (!later->values[k].stand_in)
            lua_remove(L, first + k);
        else if (op->result_base[k])
            to_one_based(L, handles[k], false);
    return lua_gettop(L) - first + 1;
}

int tide_call_as(lua_State *L, const td_op *op, const char *name) {
    tide_frame frame;
    tide_later later;
    tide_handle *handles[TD_MAX_RESULTS];
    frame.op = op;
    frame.name = name;
    tide_read_shapes(L, &frame);
    luaL_checkstack(L, TD_MAX_RESULTS + 4, op->name);
    if (TD_UNLIKELY(op->flags & TD_OP_ALIKE))
        warn_of_shapes(L, &frame);
    if (TD_UNLIKELY(frame.inplace))
        return call_inplace(L, &frame);
    td_call call = {.op = op, .args = frame.args};
    int n = op->nresults;
    for (int k = 0; k < n; k++)
        handles[k] = tide_push_handle(L);
    if (TD_UNLIKELY(op->result_type == TD_RESULT_TENSORS))
        tide_push_function(L, protected_push_list, 0);
    run(L, &frame, &call, &later);
    if (TD_UNLIKELY(later.n)) {
        n = return_later(L, op, handles, &later);
        settle_hasty(L, TIDE_STATE(L));
        return n;
    }
    if (TD_UNLIKELY(op->result_type != TD_RESULT_TENSOR))
        return return_other(L, &call);
    int given = 0;
    for (int k = 0; k < n; k++) {
        handles[k]->tensor = call.out[k];
        given += call.out[k] != NULL;
    }
    for (int k = 0; k < n; k++)
        if (TD_UNLIKELY(op->result_base[k] && handles[k]->tensor))
            to_one_based(L, handles[k], k < frame.nout);
    if (TD_UNLIKELY(frame.requires_grad))
        TIDE_CHECK(L, td_set_requires_grad(handles[0]->tensor, true));
    if (given)
        tide_check_pressure(L, TIDE_STATE(L), handles[0]->tensor);
    if (TD_UNLIKELY(frame.nout))
        return_given(L, &frame, handles, n);
    return given == n ? n : leave_out(L, &call, n);
}

int tide_call_operator(lua_State *L) {
    const td_op *op = tide_running_op(L);
    return tide_call_as(L, op, tide_called_name(L, op->name));
}

int tide_call_operator_inplace(lua_State *L) {
    tide_frame frame;
    const td_op *op = tide_running_op(L);
    frame.op = op;
    frame.name = tide_called_name(L, op->inplace_name);
    tide_read_shapes(L, &frame);
    return call_inplace(L, &frame);
}

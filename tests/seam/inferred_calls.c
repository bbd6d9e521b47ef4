/* inferred_calls.c: a dispatcher under which every call of an operator is inferred first and then
 * made, and the two are compared: dtype, shape, strides, device, layout and number of the results.
 *
 * Lua loads it by package.loadlib: compare_inferred_calls() begins for the running coroutine, and
 * inferred_calls_report() gives the number of calls compared and what differed, a line each.
 */
#include "engine/calls/infer.h"
#include "engine/core/memory.h"
#include "engine/core/modes.h"

#include <stdio.h>
#include <string.h>

struct lua_State;
extern void lua_pushinteger(struct lua_State *L, long long n);
extern const char *lua_pushstring(struct lua_State *L, const char *s);

static long long compared;
static char report[1 << 14];
static size_t used;

static void note(const td_op *op, const char *what, const char *more) {
    char line[400];
    int n = snprintf(line, sizeof line, "%s: %s%s\n", op->name, what, more);
    if (n < 0 || strstr(report, line) || used + (size_t)n >= sizeof report)
        return;
    memcpy(report + used, line, (size_t)n + 1);
    used += (size_t)n;
}

/* Strides of dims that take a step. */
static bool same_strides(const td_tensor *a, const td_tensor *b) {
    for (int d = 0; d < a->ndim && a->numel; d++)
        if (a->sizes[d] > 1 && a->strides[d] != b->strides[d])
            return false;
    return true;
}

static void compare(const td_op *op, const td_tensor *inferred, const td_tensor *made) {
    char a[TD_SHAPE_TEXT], b[TD_SHAPE_TEXT], text[2 * TD_SHAPE_TEXT + 40];
    if (!inferred != !made) {
        note(op, "a result is missing", "");
        return;
    }
    if (!made)
        return;
    if (inferred->dtype != made->dtype)
        note(op, "dtype", "");
    if (!td_device_same(td_device_real(td_tensor_device(inferred)),
                        td_device_real(td_tensor_device(made))))
        note(op, "device", "");
    if (inferred->layout != made->layout) {
        note(op, "layout", "");
    } else if (!td_tensor_same_shape(inferred, made)) {
        snprintf(text, sizeof text, "%s, made: %s", td_tensor_shape_text(inferred, a),
                 td_tensor_shape_text(made, b));
        note(op, "shape: inferred ", text);
    } else if (!same_strides(inferred, made)) {
        snprintf(text, sizeof text, "%s, made: %s, of shape ",
                 td_shape_text(inferred->ndim, inferred->strides, a, sizeof a),
                 td_shape_text(made->ndim, made->strides, b, sizeof b));
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s",
                 td_tensor_shape_text(made, a));
        note(op, "strides: inferred ", text);
    }
}

/* The call was made: is it what was said of it? */
static void judge(const td_call *call, const td_call *inferred, td_status status,
                  const char *message) {
    const td_op *op = call->op;
    if (status) {
        bool told =
            status == TD_ETYPE && (strstr(message, "sparse") || strstr(message, "quantized"));
        if (!(op->flags & TD_OP_BY_ELEMENTS) && !told)
            note(op, "refused: ", message);
        return;
    }
    compared++;
    if (inferred->nlist != call->nlist)
        note(op, "length of the list", "");
    for (int k = 0; k < call->nlist && k < inferred->nlist; k++)
        compare(op, inferred->list[k], call->list[k]);
    for (int k = 0; k < op->nresults && !call->list; k++)
        compare(op, inferred->out[k], call->out[k]);
}

static bool has_meta(const td_call *call) {
    for (int k = 0; k < call->op->nparams; k++)
        if (call->args[k].kind == TD_KIND_TENSOR &&
            td_tensor_device(call->args[k].tensor).type == TD_META)
            return true;
    return false;
}

static td_status call_both(const td_dispatcher *self, td_call *call) {
    (void)self;
    char message[300];
    td_call inferred = *call;
    if (has_meta(call))
        return td_op_run(call);
    td_status other = td_op_infer(&inferred);
    snprintf(message, sizeof message, "%s", other ? td_error_message() : "");
    td_status status = td_op_run(call);
    if (status == TD_OK)
        judge(call, &inferred, other, message);
    if (other)
        return status;
    for (int k = 0; k < TD_MAX_RESULTS; k++)
        td_release(inferred.out[k]);
    for (int k = 0; k < inferred.nlist; k++)
        td_release(inferred.list[k]);
    td_free(inferred.list);
    return status;
}

static const td_dispatcher comparing = {.call = call_both};

int compare_inferred_calls(struct lua_State *L);
int inferred_calls_report(struct lua_State *L);

int compare_inferred_calls(struct lua_State *L) {
    (void)L;
    td_modes modes = td_get_modes();
    modes.dispatcher = &comparing;
    td_set_modes(modes);
    return 0;
}

int inferred_calls_report(struct lua_State *L) {
    lua_pushinteger(L, compared);
    lua_pushstring(L, report);
    return 2;
}

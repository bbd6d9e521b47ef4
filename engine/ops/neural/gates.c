/* gates.c: what recurrent cells make of the sums that input and state give to their gates, and the
 * gradients of it: one pass over memory each for LSTM, GRU and Elman's cell. Gradients of gradients
 * are expressions. */
#include "engine/core/modes.h"
#include "engine/ops/composite_rows.h"
#include "engine/ops/element_checks.h"
#include "engine/ops/rule_helpers.h"

#include <string.h>

#define TD_FAMILY "rnn"

enum { MOST = 4 /* parts that gates are kept in */ };

/* ---- parts of gates ---- */

/* The n equal parts of the last dim, new. */
static td_status view_parts(td_tensor *x, int n, td_tensor **parts) {
    int64_t sizes[TD_MAX_DIMS];
    int last = x->ndim - 1;
    td_status status = TD_OK;
    memcpy(sizes, x->sizes, sizeof(int64_t) * (size_t)x->ndim);
    sizes[last] /= n;
    for (int k = 0; k < n && status == TD_OK; k++)
        status = td_tensor_view(x, x->ndim, sizes, x->strides, k * sizes[last] * x->strides[last],
                                &parts[k]);
    return status;
}

static void release_parts(int n, td_tensor **parts) {
    for (int k = 0; k < n; k++)
        td_release(parts[k]);
}

static void set_operands(td_operand *operands, int n, td_tensor *const *tensors) {
    for (int k = 0; k < n; k++)
        operands[k].tensor = tensors[k];
}

/* What input x and state h give to so many gates of a cell's state. */
static td_status check_gates(const td_tensor *x, const td_tensor *h, const td_tensor *state,
                             const char *name, int gates) {
    char a[TD_SHAPE_TEXT], b[TD_SHAPE_TEXT];
    td_status status = td_check_same_shape(x, "x", h, "h");
    if (status)
        return status;
    bool fits = state->ndim == x->ndim && state->ndim > 0 &&
                state->sizes[state->ndim - 1] * gates == x->sizes[x->ndim - 1];
    for (int d = 0; fits && d < x->ndim - 1; d++)
        fits = state->sizes[d] == x->sizes[d];
    return fits ? TD_OK
                : td_fail(TD_ESHAPE, "%s of shape %s doesn't fit gates of shape %s", name,
                          td_tensor_shape_text(state, a), td_tensor_shape_text(x, b));
}

/* ---- LSTM ---- */

static td_status rule_lstm_gates(const td_call *call, td_meta *out) {
    const td_tensor *x = call->args[0].tensor, *c = call->args[2].tensor;
    td_dtype dtype = td_promote_operands(3, call->args);
    td_status status = check_gates(x, call->args[1].tensor, c, "cell state", 4);
    if (status)
        return status;
    td_meta_set(&out[0], dtype, c->ndim, c->sizes);
    td_meta_set(&out[1], dtype, c->ndim, c->sizes);
    td_meta_set(&out[2], dtype, x->ndim, x->sizes);
    return TD_OK;
}

/* The sums first, then each gate in its place. */
static td_status kernel_lstm_gates(td_call *call) {
    static const char *const names[] = {"i", "f", "u", "o", "cell", "state"};
    static td_lazy_program lazy = {
        .formula = "i = sigmoid(i); f = sigmoid(f); u = tanh(u); o = sigmoid(o);"
                   "cell = f * cell + i * u; state = o * tanh(cell)",
    };
    td_tensor *gates = call->out[2], *outs[MOST + 2] = {NULL};
    const td_operand both[] = {{.tensor = call->args[0].tensor}, {.tensor = call->args[1].tensor}};
    td_operand operands[MOST + 2] = {{.tensor = NULL}};
    td_pointwise_plan sum = {.program = td_primitive_program(TD_PW_add),
                             .operands = both,
                             .compute = (td_dtype)gates->dtype,
                             .out = gates};
    td_pointwise_plan plan = {
        .operands = operands, .compute = (td_dtype)gates->dtype, .nlists = 1, .outs = outs};
    td_status status = TD_OK;
    TD_TRY(td_lazy_updates_get(&lazy, 6, names, &plan.program));
    TD_TRY(view_parts(gates, 4, outs));
    set_operands(operands, 4, outs);
    operands[4].tensor = call->args[2].tensor;
    outs[4] = call->out[1];
    outs[5] = call->out[0];
    TD_TRY(TD_RUN(td_tensor_device(gates), pointwise, &sum));
    status = TD_RUN(td_tensor_device(gates), pointwise, &plan);
done:
    release_parts(4, outs);
    return status;
}

static td_status rule_lstm_gradients(const td_call *call, td_meta *out) {
    const td_tensor *gates = call->args[5].tensor, *cell = call->args[6].tensor;
    td_meta_set(&out[0], call->args[8].dtype, gates->ndim, gates->sizes);
    td_meta_set(&out[1], (td_dtype)gates->dtype, cell->ndim, cell->sizes);
    return TD_OK;
}

static td_status kernel_lstm_gradients(td_call *call) {
    static const char *const names[] = {"i",    "f",    "u",      "o",     "cell",
                                        "next", "left", "behind", "given", "after"};
    static td_lazy_program lazy = {
        .formula =
            "g = left + behind; t = tanh(next); d = given + after + g * o * (1 - t * t);"
            "di = d * u * i * (1 - i); df = d * cell * f * (1 - f); du = d * i * (1 - u * u);"
            "cell = d * f; o = g * t * o * (1 - o); i = di; f = df; u = du",
    };
    const td_value *a = call->args;
    td_tensor *gates[MOST] = {NULL}, *outs[MOST + 1] = {NULL};
    td_operand operands[10] = {{.tensor = NULL}};
    td_pointwise_plan plan = {
        .operands = operands, .compute = (td_dtype)call->out[1]->dtype, .nlists = 1, .outs = outs};
    td_status status = TD_OK;
    TD_TRY(td_lazy_updates_get(&lazy, 10, names, &plan.program));
    TD_TRY(view_parts(a[5].tensor, 4, gates));
    TD_TRY(view_parts(call->out[0], 4, outs));
    outs[4] = call->out[1];
    set_operands(operands, 4, gates);
    operands[4].tensor = a[6].tensor;
    operands[5].tensor = a[7].tensor;
    for (int k = 0; k < 4; k++)
        operands[6 + k].tensor = td_arg_tensor(a[k]);
    status = TD_RUN(td_tensor_device(call->out[1]), pointwise, &plan);
done:
    release_parts(4, gates);
    release_parts(4, outs);
    return status;
}

static td_status run_lstm_backward(td_call *call) {
    bool fast = !td_grad_enabled() && td_is_nil(call->args[4]);
    const td_op *op = fast ? TD_OP(lstm_gates_gradients) : TD_OP(lstm_gates_slopes);
    return td_op_apply(op, call->out, op->nparams, call->args);
}

static td_status grad_lstm_gates(td_grad *grad) {
    td_tensor *made[2];
    td_status status = TD_APPLY(made, lstm_gates_backward, td_tensor_or_nil(grad->gout[0]), TD_NIL,
                                td_tensor_or_nil(grad->gout[1]), TD_NIL,
                                td_tensor_or_nil(grad->gout[2]), TD_T(grad->out[2]), grad->args[2],
                                TD_T(grad->out[1]), TD_DTYPE(td_grad_dtype(grad, 0)));
    if (status)
        return status;
    grad->in[0] = made[0];
    grad->in[1] = td_retain(made[0]);
    grad->in[2] = made[1];
    return TD_OK;
}

/* ---- GRU ---- */

static td_status rule_gru_gates(const td_call *call, td_meta *out) {
    const td_tensor *x = call->args[0].tensor, *h = call->args[2].tensor;
    td_dtype dtype = td_promote_operands(3, call->args);
    td_status status = check_gates(x, call->args[1].tensor, h, "state", 3);
    if (status)
        return status;
    td_meta_set(&out[0], dtype, h->ndim, h->sizes);
    td_meta_set(&out[1], dtype, h->ndim, h->sizes);
    out[1].sizes[h->ndim - 1] *= MOST;
    return TD_OK;
}

/* Kept are reset, update, new, and of new what the state gave, times reset. */
static td_status kernel_gru_gates(td_call *call) {
    static const char *const names[] = {"r", "z", "n", "q", "state", "hr", "hz"};
    static td_lazy_program lazy = {
        .formula = "r = sigmoid(r + hr); z = sigmoid(z + hz); q = r * q; n = tanh(n + q);"
                   "state = n + z * (state - n)",
    };
    const td_value *a = call->args;
    td_tensor *from_x[3] = {NULL}, *from_h[3] = {NULL}, *outs[MOST + 1] = {NULL};
    td_operand operands[7] = {{.tensor = NULL}};
    td_pointwise_plan plan = {
        .operands = operands, .compute = (td_dtype)call->out[0]->dtype, .nlists = 1, .outs = outs};
    td_status status = TD_OK;
    TD_TRY(td_lazy_updates_get(&lazy, 7, names, &plan.program));
    TD_TRY(view_parts(a[0].tensor, 3, from_x));
    TD_TRY(view_parts(a[1].tensor, 3, from_h));
    TD_TRY(view_parts(call->out[1], MOST, outs));
    outs[MOST] = call->out[0];
    set_operands(operands, 3, from_x);
    operands[3].tensor = from_h[2];
    operands[4].tensor = a[2].tensor;
    set_operands(operands + 5, 2, from_h);
    status = TD_RUN(td_tensor_device(call->out[0]), pointwise, &plan);
done:
    release_parts(3, from_x);
    release_parts(3, from_h);
    release_parts(MOST, outs);
    return status;
}

static td_status rule_gru_gradients(const td_call *call, td_meta *out) {
    const td_tensor *gates = call->args[4].tensor, *state = call->args[5].tensor;
    for (int r = 0; r < 2; r++) {
        td_meta_set(&out[r], call->args[6].dtype, state->ndim, state->sizes);
        out[r].sizes[state->ndim - 1] *= 3;
    }
    td_meta_set(&out[2], (td_dtype)gates->dtype, state->ndim, state->sizes);
    return TD_OK;
}

static td_status kernel_gru_gradients(td_call *call) {
    static const char *const names[] = {"r",      "z",     "n",  "q",  "state", "left",
                                        "behind", "after", "hr", "hz", "hn"};
    static td_lazy_program lazy = {
        .formula =
            "d = left + behind + after; dn = d * (1 - z) * (1 - n * n); dr = dn * q * (1 - r);"
            "dz = d * (state - n) * z * (1 - z); state = d * z; hn = dn * r; r = dr; hr = dr;"
            "z = dz; hz = dz; n = dn",
    };
    const td_value *a = call->args;
    td_tensor *gates[MOST] = {NULL}, *outs[7] = {NULL};
    td_operand operands[11] = {{.tensor = NULL}};
    td_pointwise_plan plan = {
        .operands = operands, .compute = (td_dtype)call->out[2]->dtype, .nlists = 1, .outs = outs};
    td_status status = TD_OK;
    TD_TRY(td_lazy_updates_get(&lazy, 11, names, &plan.program));
    TD_TRY(view_parts(a[4].tensor, MOST, gates));
    TD_TRY(view_parts(call->out[0], 3, outs));
    outs[3] = td_retain(call->out[2]);
    TD_TRY(view_parts(call->out[1], 3, outs + 4));
    set_operands(operands, MOST, gates);
    operands[4].tensor = a[5].tensor;
    for (int k = 0; k < 3; k++)
        operands[5 + k].tensor = td_arg_tensor(a[k]);
    status = TD_RUN(td_tensor_device(call->out[2]), pointwise, &plan);
done:
    release_parts(MOST, gates);
    release_parts(7, outs);
    return status;
}

static td_status run_gru_backward(td_call *call) {
    bool fast = !td_grad_enabled() && td_is_nil(call->args[3]);
    const td_op *op = fast ? TD_OP(gru_gates_gradients) : TD_OP(gru_gates_slopes);
    return td_op_apply(op, call->out, op->nparams, call->args);
}

static td_status grad_gru_gates(td_grad *grad) {
    return TD_APPLY(grad->in, gru_gates_backward, td_tensor_or_nil(grad->gout[0]), TD_NIL, TD_NIL,
                    td_tensor_or_nil(grad->gout[1]), TD_T(grad->out[1]), grad->args[2],
                    TD_DTYPE(td_grad_dtype(grad, 0)));
}

/* ---- Elman's cell ---- */

static td_status rule_elman_gradients(const td_call *call, td_meta *out) {
    td_meta_like(&out[0], call->args[2].tensor, call->args[4].dtype);
    return TD_OK;
}

static td_status kernel_elman_gradients(td_call *call) {
    static const char *const names[] = {"state", "left", "behind"};
    static td_lazy_program lazy[] = {
        {.formula = "state = (left + behind) * (1 - state * state)"},
        {.formula = "state = where(le(state, 0), 0, left + behind)"},
    };
    const td_value *a = call->args;
    const td_operand operands[] = {
        {.tensor = a[2].tensor}, {.tensor = td_arg_tensor(a[0])}, {.tensor = td_arg_tensor(a[1])}};
    td_pointwise_plan plan = {.operands = operands,
                              .compute = (td_dtype)a[2].tensor->dtype,
                              .nlists = 1,
                              .outs = call->out};
    td_status status = td_lazy_updates_get(&lazy[a[3].b], 3, names, &plan.program);
    return status ? status : TD_RUN(td_tensor_device(call->out[0]), pointwise, &plan);
}

static td_status run_elman_backward(td_call *call) {
    const td_op *op = td_grad_enabled() ? TD_OP(elman_slopes) : TD_OP(elman_gradients);
    return td_op_apply(op, call->out, op->nparams, call->args);
}

/* ---- the table ---- */

/* Three rows: the gradients of a cell's gates, which are computed by a kernel or, where they are to
 * have gradients themselves, by operators. */
#define GRADIENTS(name, kind, parameters, results, text, ...)                                      \
    TD_OPERATOR(name##_backward) = {.schema = parameters " -> " results,                           \
                                    .doc = "The gradients of " text,                               \
                                    .run = run_##kind##_backward,                                  \
                                    .flags = TD_OP_INTERNAL};                                      \
    TD_OPERATOR(name##_gradients) = {.schema = parameters " -> " results,                          \
                                     .doc = "By a kernel, the gradients of " text,                 \
                                     .rule = rule_##kind##_gradients,                              \
                                     .kernel = kernel_##kind##_gradients,                          \
                                     .dtypes = TD_DTYPES_FLOATS,                                   \
                                     .flags = TD_OP_INTERNAL | TD_OP_NONDIFF | TD_OP_OUT};         \
    TD_OPERATOR(name##_slopes) = {.schema = parameters " -> " results,                             \
                                  .doc = "By operators, the gradients of " text,                   \
                                  .formula = __VA_ARGS__,                                          \
                                  .flags = TD_OP_INTERNAL}

TD_OPERATOR(lstm_gates) = {
    .schema = "(Tensor x, Tensor h, Tensor cell) -> (Tensor state, Tensor next, Tensor gates)",
    .doc =
        "New state and cell state from what input and state give to the four gates, and the gates.",
    .rule = rule_lstm_gates,
    .kernel = kernel_lstm_gates,
    .dtypes = TD_DTYPES_FLOATS,
    .backward = grad_lstm_gates,
    .saves = "cell, next, gates",
    .flags = TD_OP_INTERNAL | TD_OP_OUT,
};
GRADIENTS(lstm_gates, lstm,
          "(Tensor? left, Tensor? behind, Tensor? given, Tensor? after, Tensor? gates_slope, "
          "Tensor gates, Tensor cell, Tensor next, dtype dtype)",
          "(Tensor sums, Tensor before)",
          "lstm_gates: of the state left + behind, of the cell state given + after.",
          "n = cell.size(cell.ndim - 1); i = narrow(gates, -1, 0, n); f = narrow(gates, -1, n, n);"
          "u = narrow(gates, -1, 2 * n, n); o = narrow(gates, -1, 3 * n, n); t = tanh(next);"
          "s = if(left == nil, if(behind == nil, zeros_like(next), behind),"
          "       if(behind == nil, left, left + behind));"
          "c = if(given == nil, if(after == nil, zeros_like(next), after),"
          "       if(after == nil, given, given + after));"
          "d = c + s * o * (1 - t * t); a = cat({d * u, d * cell, d * i, s * t}, -1);"
          "all = if(gates_slope == nil, a, a + gates_slope);"
          "sums: to(all * cat({i * (1 - i), f * (1 - f), 1 - u * u, o * (1 - o)}, -1), dtype);"
          "before: d * f");

TD_OPERATOR(gru_gates) = {
    .schema = "(Tensor x, Tensor h, Tensor state) -> (Tensor next, Tensor gates)",
    .doc = "New state from what input and state give to the three gates, and the gates.",
    .rule = rule_gru_gates,
    .kernel = kernel_gru_gates,
    .dtypes = TD_DTYPES_FLOATS,
    .backward = grad_gru_gates,
    .saves = "state, gates",
    .flags = TD_OP_INTERNAL | TD_OP_OUT,
};
GRADIENTS(
    gru_gates, gru,
    "(Tensor? left, Tensor? behind, Tensor? after, Tensor? gates_slope, Tensor gates, "
    "Tensor state, dtype dtype)",
    "(Tensor of_x, Tensor of_h, Tensor before)", "gru_gates: of the state left + behind + after.",
    "w = state.size(state.ndim - 1); r = narrow(gates, -1, 0, w); z = narrow(gates, -1, w, w);"
    "n = narrow(gates, -1, 2 * w, w); q = narrow(gates, -1, 3 * w, w);"
    "s = if(left == nil, if(behind == nil, zeros_like(state), behind),"
    "       if(behind == nil, left, left + behind));"
    "d = if(after == nil, s, s + after); none = gates_slope == nil;"
    "dn = d * (1 - z); dz = d * (state - n);"
    "a = if(none, dn, dn + narrow(gates_slope, -1, 2 * w, w)) * (1 - n * n);"
    "b = if(none, a, a + narrow(gates_slope, -1, 3 * w, w));"
    "dr = if(none, b * q, b * q + narrow(gates_slope, -1, 0, w) * r) * (1 - r);"
    "du = if(none, dz, dz + narrow(gates_slope, -1, w, w)) * z * (1 - z);"
    "of_x: to(cat({dr, du, a}, -1), dtype); of_h: to(cat({dr, du, b * r}, -1), dtype);"
    "before: d * z");

TD_OPERATOR(elman_tanh) = {
    .schema = "(Tensor x, Tensor h) -> Tensor",
    .doc = "tanh of the sum.",
    .pointwise = &(const td_pointwise){.type = TD_PW_FLOATS,
                                       .primitive = -1,
                                       .formula = "tanh(x + h)"},
    .gradient = "x: g * (1 - out * out); h: g * (1 - out * out)",
    .flags = TD_OP_INTERNAL | TD_OP_OUT,
};
TD_OPERATOR(elman_relu) = {
    .schema = "(Tensor x, Tensor h) -> Tensor",
    .doc = "relu of the sum.",
    .pointwise = &(const td_pointwise){.type = TD_PW_ARITH,
                                       .primitive = -1,
                                       .formula = "relu(x + h)"},
    .gradient = "x: where(le(out, 0), 0, g); h: where(le(out, 0), 0, g)",
    .flags = TD_OP_INTERNAL | TD_OP_OUT,
};
GRADIENTS(elman, elman, "(Tensor? left, Tensor? behind, Tensor state, bool rectified, dtype dtype)",
          "Tensor", "elman_tanh or elman_relu: of the state left + behind.",
          "d = if(left == nil, if(behind == nil, zeros_like(state), behind),"
          "       if(behind == nil, left, left + behind));"
          "to(if(rectified, where(le(state, 0), 0, d), d * (1 - state * state)), dtype)");

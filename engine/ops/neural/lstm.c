/* lstm.c: the gates of an LSTM as one kernel, and all times of a layer as one operator. Its
 * gradient multiplies the states one after the other, as it must, but weights once: by the gates
 * and the states of all times. */
#include "engine/core/interrupt.h"
#include "engine/core/memory.h"
#include "engine/core/modes.h"
#include "engine/ops/element_checks.h"
#include "engine/ops/rule_helpers.h"

#include <string.h>

#define TD_FAMILY "rnn"

enum { GATES = 4 };

/* ---- the gates ---- */

/* The k-th gate: a quarter of the last dim. */
static td_status view_gate(td_tensor *x, int k, td_tensor **out) {
    int64_t sizes[TD_MAX_DIMS];
    int last = x->ndim - 1;
    memcpy(sizes, x->sizes, sizeof(int64_t) * (size_t)x->ndim);
    sizes[last] /= GATES;
    return td_tensor_view(x, x->ndim, sizes, x->strides, k * sizes[last] * x->strides[last], out);
}

static td_status view_gates(td_tensor *x, td_tensor **gates) {
    td_status status = TD_OK;
    for (int k = 0; k < GATES && status == TD_OK; k++)
        status = view_gate(x, k, &gates[k]);
    return status;
}

static void release_gates(td_tensor **gates) {
    for (int k = 0; k < GATES; k++)
        td_release(gates[k]);
}

static td_status rule_lstm_gates(const td_call *call, td_meta *out) {
    char a[TD_SHAPE_TEXT], b[TD_SHAPE_TEXT];
    const td_tensor *x = call->args[0].tensor, *h = call->args[1].tensor, *c = call->args[2].tensor;
    td_dtype dtype = td_promote_operands(3, call->args);
    td_status status = td_check_same_shape(x, "x", h, "h");
    if (status)
        return status;
    bool fits =
        c->ndim == x->ndim && c->ndim > 0 && c->sizes[c->ndim - 1] * GATES == x->sizes[x->ndim - 1];
    for (int d = 0; fits && d < x->ndim - 1; d++)
        fits = c->sizes[d] == x->sizes[d];
    if (!fits)
        return td_fail(TD_ESHAPE, "cell state of shape %s doesn't fit gates of shape %s",
                       td_tensor_shape_text(c, a), td_tensor_shape_text(x, b));
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
    td_tensor *gates = call->out[2], *outs[GATES + 2] = {NULL};
    const td_operand both[] = {{.tensor = call->args[0].tensor}, {.tensor = call->args[1].tensor}};
    td_operand operands[GATES + 2] = {{.tensor = NULL}};
    td_pointwise_plan sum = {.program = td_primitive_program(TD_PW_add),
                             .operands = both,
                             .compute = (td_dtype)gates->dtype,
                             .out = gates};
    td_pointwise_plan plan = {
        .operands = operands, .compute = (td_dtype)gates->dtype, .nlists = 1, .outs = outs};
    td_status status = TD_OK;
    TD_TRY(td_lazy_updates_get(&lazy, 6, names, &plan.program));
    TD_TRY(view_gates(gates, outs));
    for (int k = 0; k < GATES; k++)
        operands[k].tensor = outs[k];
    operands[GATES].tensor = call->args[2].tensor;
    outs[GATES] = call->out[1];
    outs[GATES + 1] = call->out[0];
    TD_TRY(TD_RUN(td_tensor_device(gates), pointwise, &sum));
    status = TD_RUN(td_tensor_device(gates), pointwise, &plan);
done:
    release_gates(outs);
    return status;
}

static td_status rule_gates_gradients(const td_call *call, td_meta *out) {
    const td_tensor *gates = call->args[5].tensor, *cell = call->args[6].tensor;
    td_meta_set(&out[0], call->args[8].dtype, gates->ndim, gates->sizes);
    td_meta_set(&out[1], (td_dtype)gates->dtype, cell->ndim, cell->sizes);
    return TD_OK;
}

static td_status kernel_gates_gradients(td_call *call) {
    static const char *const names[] = {"i",    "f",    "u",      "o",     "cell",
                                        "next", "left", "behind", "given", "after"};
    static td_lazy_program lazy = {
        .formula =
            "g = left + behind; t = tanh(next); d = given + after + g * o * (1 - t * t);"
            "di = d * u * i * (1 - i); df = d * cell * f * (1 - f); du = d * i * (1 - u * u);"
            "cell = d * f; o = g * t * o * (1 - o); i = di; f = df; u = du",
    };
    const td_value *a = call->args;
    td_tensor *gates[GATES] = {NULL}, *outs[GATES + 1] = {NULL};
    td_operand operands[10] = {{.tensor = NULL}};
    td_pointwise_plan plan = {
        .operands = operands, .compute = (td_dtype)call->out[1]->dtype, .nlists = 1, .outs = outs};
    td_status status = TD_OK;
    TD_TRY(td_lazy_updates_get(&lazy, 10, names, &plan.program));
    TD_TRY(view_gates(a[5].tensor, gates));
    TD_TRY(view_gates(call->out[0], outs));
    outs[GATES] = call->out[1];
    for (int k = 0; k < GATES; k++)
        operands[k].tensor = gates[k];
    operands[4].tensor = a[6].tensor;
    operands[5].tensor = a[7].tensor;
    for (int k = 0; k < 4; k++)
        operands[6 + k].tensor = td_arg_tensor(a[k]);
    status = TD_RUN(td_tensor_device(call->out[1]), pointwise, &plan);
done:
    release_gates(gates);
    release_gates(outs);
    return status;
}

static td_status run_gates_backward(td_call *call) {
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

/* ---- all times of a layer ---- */

/* The time that comes k-th. */
static int64_t time_at(const td_value *a, int64_t times, int64_t k) {
    return a[4].b ? times - 1 - k : k;
}

/* What is there of a time; NULL of NULL. */
static td_status take_time(td_tensor *x, int64_t t, td_tensor **out) {
    *out = NULL;
    return x ? TD_APPLY(out, select, TD_T(x), TD_I(0), TD_I(t)) : TD_OK;
}

/* Run an operator whose results are written to tensors. */
static td_status run_into(const td_op *op, const td_value *args, int n, td_tensor *const *to) {
    td_call call = {.op = op, .args = args, .given = to, .ngiven = n};
    td_status status = td_op_call(&call);
    if (status == TD_OK)
        td_call_drop(&call);
    return status;
}

/* One time, whose state, cell state and gates go to the tensors `to`. */
static td_status run_time(const td_value *a, int64_t t, td_tensor *state, td_tensor *cell,
                          td_tensor *const *to) {
    td_tensor *h = td_retain(state), *x = NULL, *from_state = NULL;
    td_status status = TD_OK;
    if (a[5].b)
        TD_STEP(&h, to, TD_T(h), TD_DTYPE((td_dtype)a[3].tensor->dtype));
    TD_TRY(take_time(a[0].tensor, t, &x));
    TD_TRY(TD_APPLY(&from_state, linear, TD_T(h), a[3]));
    status =
        run_into(TD_OP(lstm_gates), (td_value[]){TD_T(x), TD_T(from_state), TD_T(cell)}, 3, to);
done:
    td_release(h);
    td_release(x);
    td_release(from_state);
    return status;
}

/* Room for what the times make: cell states and gates of the last alone, if no more are kept. */
static td_status make_room(const td_value *a, td_tensor **room) {
    const td_tensor *x = a[0].tensor, *cell = a[2].tensor;
    td_dtype dtype = td_promote_operands(3, a);
    int64_t kept = a[6].b ? x->sizes[0] : 1;
    int64_t of_states[] = {x->sizes[0], x->sizes[1], cell->sizes[1]};
    int64_t of_cells[] = {kept, x->sizes[1], cell->sizes[1]};
    int64_t of_gates[] = {kept, x->sizes[1], x->sizes[2]};
    const int64_t *sizes[] = {of_states, of_cells, of_gates};
    td_status status = TD_OK;
    for (int r = 0; r < 3 && status == TD_OK; r++)
        status = td_tensor_empty(dtype, td_tensor_device(x), 3, sizes[r], &room[r]);
    return status;
}

static td_status run_lstm_times(td_call *call) {
    const td_value *a = call->args;
    int64_t times = a[0].tensor->sizes[0];
    td_tensor *state = td_retain(a[1].tensor), *cell = td_retain(a[2].tensor);
    td_tensor *to[3] = {NULL};
    td_status status = TD_OK;
    TD_TRY(make_room(a, call->out));
    for (int64_t k = 0; k < times; k++) {
        int64_t t = time_at(a, times, k);
        TD_TRY(td_interrupt_check());
        for (int r = 0; r < 3; r++)
            TD_TRY(take_time(call->out[r], r == 0 || a[6].b ? t : 0, &to[r]));
        TD_TRY(run_time(a, t, state, cell, to));
        td_release(state);
        td_release(cell);
        td_release(to[2]);
        state = to[0];
        cell = to[1];
        memset(to, 0, sizeof to);
    }
done:
    for (int r = 0; r < 3; r++)
        td_release(to[r]);
    td_release(state);
    td_release(cell);
    return status;
}

/* ---- and back ---- */

/* What comes to the k-th time and was made at it. */
typedef struct moment {
    td_tensor *g[3];         /* gradients of its state, cell state and gates; NULL: none */
    td_tensor *cell, *gates; /* its own */
    td_tensor *before;       /* the cell state that it began with */
} moment;

static td_status take_moment(const td_grad *grad, int64_t times, int64_t k, moment *m) {
    const td_value *a = grad->args;
    memset(m, 0, sizeof *m);
    int64_t t = time_at(a, times, k);
    td_status status = TD_OK;
    for (int r = 0; r < 3; r++)
        TD_TRY(take_time(grad->gout[r], t, &m->g[r]));
    TD_TRY(take_time(grad->out[1], t, &m->cell));
    TD_TRY(take_time(grad->out[2], t, &m->gates));
    if (k > 0)
        status = take_time(grad->out[1], time_at(a, times, k - 1), &m->before);
    else
        m->before = td_retain(a[2].tensor);
done:
    return status;
}

static void release_moment(moment *m) {
    for (int r = 0; r < 3; r++)
        td_release(m->g[r]);
    td_release(m->cell);
    td_release(m->gates);
    td_release(m->before);
}

/* The gradients of what comes to the gates of the k-th time, in their place in `room` where there
 * is one; *state and *cell, the gradients that come from the time behind it, become those for the
 * time before. */
static td_status back_time(const td_grad *grad, int64_t times, int64_t k, td_tensor *room,
                           td_tensor **state, td_tensor **cell, td_tensor **gates) {
    const td_value *a = grad->args;
    td_tensor *made[2] = {NULL};
    moment m;
    td_status status = TD_OK;
    TD_TRY(take_moment(grad, times, k, &m));
    const td_value args[] = {td_tensor_or_nil(m.g[0]),
                             td_tensor_or_nil(*state),
                             td_tensor_or_nil(m.g[1]),
                             td_tensor_or_nil(*cell),
                             td_tensor_or_nil(m.g[2]),
                             TD_T(m.gates),
                             TD_T(m.before),
                             TD_T(m.cell),
                             TD_DTYPE((td_dtype)a[3].tensor->dtype)};
    if (room) {
        TD_TRY(take_time(room, time_at(a, times, k), &made[0]));
        TD_TRY(td_tensor_empty_like(m.cell, (td_dtype)m.cell->dtype, &made[1]));
        TD_TRY(run_into(TD_OP(lstm_gates_gradients), args, 2, made));
    } else {
        TD_TRY(td_op_apply(TD_OP(lstm_gates_backward), made, 9, args));
    }
    TD_STEP(state, matmul, TD_T(made[0]), a[3]);
    td_release(*cell);
    *cell = td_retain(made[1]);
    *gates = td_retain(made[0]);
done:
    release_moment(&m);
    td_release(made[0]);
    td_release(made[1]);
    return status;
}

/* Gates^T times the states that they were made of, at all times at once. */
static td_status weight_gradient(const td_grad *grad, int64_t times, td_tensor *gates,
                                 td_tensor **out) {
    const td_value *a = grad->args;
    td_tensor *first = NULL, *rest = NULL, *states = NULL, *turned = NULL;
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(&first, unsqueeze, a[1], TD_I(0)));
    TD_TRY(TD_APPLY(&rest, narrow, TD_T(grad->out[0]), TD_I(0), TD_I(a[4].b), TD_I(times - 1)));
    td_tensor *both[] = {a[4].b ? rest : first, a[4].b ? first : rest};
    TD_TRY(TD_APPLY(&states, cat, TD_TENSORS(2, both), TD_I(0)));
    TD_STEP(&states, to, TD_T(states), TD_DTYPE((td_dtype)gates->dtype));
    TD_STEP(&states, flatten, TD_T(states), TD_I(0), TD_I(1));
    TD_TRY(TD_APPLY(&turned, flatten, TD_T(gates), TD_I(0), TD_I(1)));
    TD_STEP(&turned, transpose, TD_T(turned), TD_I(0), TD_I(1));
    status = TD_APPLY(out, matmul, TD_T(turned), TD_T(states));
done:
    td_release(first);
    td_release(rest);
    td_release(states);
    td_release(turned);
    return status;
}

static td_status grad_lstm_times(td_grad *grad) {
    int ndim;
    int64_t times = td_grad_shape(grad, 0, &ndim)[0];
    td_tensor **gates = td_calloc((size_t)times, sizeof *gates);
    td_tensor *all = NULL, *room = NULL, *state = NULL, *cell = NULL;
    td_status status = gates ? TD_OK : td_fail(TD_ENOMEM, "out of memory");
    if (status)
        return status;
    if (!td_grad_enabled() && !td_modes_current.dispatcher && !grad->gout[2])
        TD_TRY(td_tensor_empty_like(grad->out[2], (td_dtype)grad->args[3].tensor->dtype, &room));
    for (int64_t k = times - 1; k >= 0; k--) {
        TD_TRY(td_interrupt_check());
        TD_TRY(
            back_time(grad, times, k, room, &state, &cell, &gates[time_at(grad->args, times, k)]));
    }
    if (room)
        all = td_retain(room);
    else
        TD_TRY(TD_APPLY(&all, stack, TD_TENSORS((int32_t)times, gates), TD_I(0)));
    if (td_grad_needs(grad, 3))
        TD_TRY(weight_gradient(grad, times, all, &grad->in[3]));
    grad->in[0] = td_retain(all);
    grad->in[1] = td_retain(state);
    grad->in[2] = td_retain(cell);
done:
    for (int64_t t = 0; t < times; t++)
        td_release(gates[t]);
    td_free(gates);
    td_release(all);
    td_release(room);
    td_release(state);
    td_release(cell);
    return status;
}

/* ---- the table ---- */

TD_OPERATOR(lstm_times) = {
    .schema = "(Tensor x, Tensor h, Tensor cell, Tensor w, bool backwards, bool casts, "
              "bool keep) -> (Tensor states, Tensor cells, Tensor gates)",
    .doc = "An LSTM layer over all times of x (T, N, 4 * H), what the inputs give to the gates; "
           "casts: states are "
           "multiplied in the dtype of w; keep: cell states and gates of all times, not of the "
           "last alone.",
    .run = run_lstm_times,
    .backward = grad_lstm_times,
    .saves = "h, cell, w, states, cells, gates",
    .flags = TD_OP_INTERNAL,
};
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

#define GRADIENTS                                                                                  \
    "(Tensor? left, Tensor? behind, Tensor? given, Tensor? after, Tensor? gates_slope, "           \
    "Tensor gates, Tensor cell, Tensor next, dtype dtype) -> (Tensor sums, Tensor before)"
TD_OPERATOR(lstm_gates_backward) = {
    .schema = GRADIENTS,
    .doc =
        "The gradients of lstm_gates: of the state left + behind, of the cell state given + after.",
    .run = run_gates_backward,
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(lstm_gates_gradients) = {
    .schema = GRADIENTS,
    .doc = "The gradients of lstm_gates by a kernel.",
    .rule = rule_gates_gradients,
    .kernel = kernel_gates_gradients,
    .dtypes = TD_DTYPES_FLOATS,
    .flags = TD_OP_INTERNAL | TD_OP_NONDIFF | TD_OP_OUT,
};
TD_OPERATOR(lstm_gates_slopes) = {
    .schema = GRADIENTS,
    .doc = "The gradients of lstm_gates by operators.",
    .formula =
        "n = cell.size(cell.ndim - 1); i = narrow(gates, -1, 0, n); f = narrow(gates, -1, n, n);"
        "u = narrow(gates, -1, 2 * n, n); o = narrow(gates, -1, 3 * n, n); t = tanh(next);"
        "s = if(left == nil, if(behind == nil, zeros_like(next), behind),"
        "       if(behind == nil, left, left + behind));"
        "c = if(given == nil, if(after == nil, zeros_like(next), after),"
        "       if(after == nil, given, given + after));"
        "d = c + s * o * (1 - t * t); a = cat({d * u, d * cell, d * i, s * t}, -1);"
        "all = if(gates_slope == nil, a, a + gates_slope);"
        "sums: to(all * cat({i * (1 - i), f * (1 - f), 1 - u * u, o * (1 - o)}, -1), dtype);"
        "before: d * f",
    .flags = TD_OP_INTERNAL,
};

/* recurrent.c: all times of a recurrent layer as one operator: of an LSTM, a GRU, Elman's cells.
 * Their gradient multiplies the states one after the other, as it must, but weights once: by the
 * gates and the states of all times. What a cell makes of its sums is gates.c's. */
#include "engine/core/interrupt.h"
#include "engine/core/memory.h"
#include "engine/core/modes.h"
#include "engine/ops/plan/plan.h"
#include "engine/ops/plan/recurrent_times.h"
#include "engine/ops/rule_helpers.h"

#include <string.h>

#define TD_FAMILY "rnn"

enum { RESULTS = 3, LISTS = 2 };

/* What an operator makes: the states of all times, of an LSTM the cell states, and what is kept of
 * the gates. */
static const int results_of[] = {[TD_CELL_ELMAN] = 1, [TD_CELL_GRU] = 2, [TD_CELL_LSTM] = 3};
/* What its gradient makes at each time: of what comes from the input, and, where that is something
 * else, from the state. */
static const int lists_of[] = {[TD_CELL_ELMAN] = 1, [TD_CELL_GRU] = 2, [TD_CELL_LSTM] = 1};
enum { KEPT = 4 /* gates that are kept, in sizes of the state */ };

/* The arguments of a call, borrowed. */
typedef struct layer {
    td_cell_kind kind;
    td_tensor *x, *h, *w; /* what the inputs give (T, N, gates), the first state, its weights */
    td_tensor *cell,
        *bias;      /* the first cell state of an LSTM; what a GRU adds to products with w */
    bool backwards; /* the last time comes first */
    bool casts;     /* states are multiplied in the dtype of w */
    bool keeps;     /* all times, not the last alone, of all results but the first */
    bool rectified; /* relu, not tanh */
} layer;

static layer layer_of(td_cell_kind kind, const td_value *a) {
    return (layer){.kind = kind,
                   .x = td_arg_tensor(a[0]),
                   .h = a[1].tensor,
                   .w = a[2].tensor,
                   .cell = kind == TD_CELL_LSTM ? a[5].tensor : NULL,
                   .bias = kind == TD_CELL_GRU ? td_arg_tensor(a[5]) : NULL,
                   .backwards = a[3].b,
                   .casts = a[4].b,
                   .keeps = kind != TD_CELL_ELMAN && a[6].b,
                   .rectified = kind == TD_CELL_ELMAN && a[5].b};
}

/* What is there of a time, where nothing is recorded and no dispatcher takes calls; NULL of NULL.
 */
static td_status view_time(td_tensor *x, int64_t t, td_tensor **out) {
    *out = NULL;
    return x ? td_tensor_view(x, x->ndim - 1, x->sizes + 1, x->strides + 1, t * x->strides[0], out)
             : TD_OK;
}

/* The same by an operator. */
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

static void release_all(int n, td_tensor **list) {
    for (int k = 0; k < n; k++)
        td_release(list[k]);
}

/* ---- forward ---- */

/* One time, whose results go to the tensors `to`. */
static td_status run_time(const layer *l, int64_t t, td_tensor *state, td_tensor *cell,
                          td_tensor *const *to) {
    td_tensor *h = td_retain(state), *x = NULL, *sums = NULL;
    const td_op *elman = l->rectified ? TD_OP(elman_relu) : TD_OP(elman_tanh);
    const td_op *ops[] = {[TD_CELL_ELMAN] = elman,
                          [TD_CELL_GRU] = TD_OP(gru_gates),
                          [TD_CELL_LSTM] = TD_OP(lstm_gates)};
    td_status status = TD_OK;
    if (l->casts)
        TD_STEP(&h, to, TD_T(h), TD_DTYPE((td_dtype)l->w->dtype));
    TD_TRY(view_time(l->x, t, &x));
    TD_TRY(TD_APPLY(&sums, linear, TD_T(h), TD_T(l->w), td_tensor_or_nil(l->bias)));
    const td_value args[] = {TD_T(x), TD_T(sums), TD_T(l->kind == TD_CELL_LSTM ? cell : state)};
    status = run_into(ops[l->kind], args, results_of[l->kind], to);
done:
    td_release(h);
    td_release(x);
    td_release(sums);
    return status;
}

/* Room for what the times make. */
static td_status make_room(const layer *l, td_tensor **room) {
    const td_value parts[] = {TD_T(l->x), TD_T(l->w),
                              TD_T(l->kind == TD_CELL_LSTM ? l->cell : l->h)};
    td_dtype dtype = td_promote_operands(l->kind == TD_CELL_ELMAN ? 2 : 3, parts);
    int64_t times = l->x->sizes[0], width = l->w->sizes[1];
    td_status status = TD_OK;
    for (int r = 0; r < results_of[l->kind] && status == TD_OK; r++) {
        bool gates = r > 0 && r == results_of[l->kind] - 1;
        int64_t sizes[] = {r == 0 || l->keeps ? times : 1, l->x->sizes[1],
                           gates ? KEPT * width : width};
        status = td_tensor_empty(dtype, td_tensor_device(l->x), 3, sizes, &room[r]);
    }
    return status;
}

/* A function of the device's own gets what lies there alone; other operators tell what does not. */
static bool lie_on(td_device device, int n, td_tensor *const *tensors) {
    bool there = true;
    for (int k = 0; k < n; k++)
        there &= !tensors[k] || td_device_same(td_tensor_device(tensors[k]), device);
    return there;
}

/* All times by one function of the device's, if it has one that takes them: *done says so. */
static td_status run_by_device(const layer *l, td_tensor *const *made, bool *done) {
    td_dtype dtype = (td_dtype)l->w->dtype;
    bool elman = l->kind == TD_CELL_ELMAN, casts = l->h->dtype != dtype || made[0]->dtype != dtype;
    td_device device = td_tensor_device(l->x);
    if (!td_backend_of(device)->recurrent || (casts && !l->casts))
        return TD_OK;
    td_recurrent_plan plan = {.states = made[0],
                              .cells = l->kind == TD_CELL_LSTM ? made[1] : NULL,
                              .gates = elman ? NULL : made[results_of[l->kind] - 1],
                              .x = l->x,
                              .h = l->h,
                              .w = l->w,
                              .bias = l->bias,
                              .cell = l->cell,
                              .kind = l->kind,
                              .backwards = l->backwards,
                              .rectified = l->rectified,
                              .done = done};
    return lie_on(device, 8, plan.tensors) ? TD_RUN(device, recurrent, &plan) : TD_OK;
}

static td_status run_times(td_call *call, td_cell_kind kind) {
    layer l = layer_of(kind, call->args);
    bool done = false;
    int64_t times = l.x->sizes[0];
    td_tensor *state = td_retain(l.h), *cell = td_retain(l.cell), *to[RESULTS] = {NULL};
    td_status status = TD_OK;
    TD_TRY(make_room(&l, call->out));
    TD_TRY(run_by_device(&l, call->out, &done));
    for (int64_t k = 0; k < times && !done; k++) {
        int64_t t = td_time_at(l.backwards, times, k);
        TD_TRY(td_interrupt_check());
        for (int r = 0; r < results_of[kind]; r++)
            TD_TRY(view_time(call->out[r], r == 0 || l.keeps ? t : 0, &to[r]));
        TD_TRY(run_time(&l, t, state, cell, to));
        td_release(state);
        state = td_retain(to[0]);
        td_release(cell);
        cell = kind == TD_CELL_LSTM ? td_retain(to[1]) : NULL;
        release_all(RESULTS, to);
        memset(to, 0, sizeof to);
    }
done:
    release_all(RESULTS, to);
    td_release(state);
    td_release(cell);
    return status;
}
static td_status run_elman_times(td_call *call) {
    return run_times(call, TD_CELL_ELMAN);
}
static td_status run_gru_times(td_call *call) {
    return run_times(call, TD_CELL_GRU);
}
static td_status run_lstm_times(td_call *call) {
    return run_times(call, TD_CELL_LSTM);
}

/* ---- and back ---- */

/* A layer's way back. All but its results are borrowed from a node or from a call. */
typedef struct way_back {
    const layer *l;
    int64_t times;
    td_tensor *const *g;    /* gradients of its results; NULL: none */
    td_tensor *const *made; /* its results */
    bool first;             /* is the gradient of the first state wanted? */
} way_back;

/* What is made of the gradients: lists of all times, in room for them, or one by one. */
typedef struct lists {
    td_tensor *all[LISTS];    /* whole; room for them at first, or NULL */
    td_tensor **times[LISTS]; /* by time, where there was no room */
} lists;

/* The gradients that a time gives to the one before it; NULL: none. */
typedef struct carried {
    td_tensor *by_weights; /* of its state, through the products */
    td_tensor *beside;     /* of its state (GRU) or its cell state (LSTM), past them */
} carried;

/* What comes to the k-th time and was made at it. */
typedef struct moment {
    td_tensor *g[RESULTS]; /* gradients of its results; NULL: none */
    td_tensor *made[RESULTS];
    td_tensor *before; /* the state (GRU) or cell state (LSTM) that it began with */
} moment;

static td_status take_moment(const way_back *w, int64_t k, moment *m) {
    const layer *l = w->l;
    int64_t t = td_time_at(l->backwards, w->times, k);
    td_status status = TD_OK;
    memset(m, 0, sizeof *m);
    for (int r = 0; r < results_of[l->kind]; r++) {
        TD_TRY(take_time(w->g[r], t, &m->g[r]));
        TD_TRY(take_time(w->made[r], t, &m->made[r]));
    }
    if (l->kind != TD_CELL_ELMAN && k > 0)
        status = take_time(w->made[l->kind == TD_CELL_LSTM],
                           td_time_at(l->backwards, w->times, k - 1), &m->before);
    else if (l->kind != TD_CELL_ELMAN)
        m->before = td_retain(l->kind == TD_CELL_LSTM ? l->cell : l->h);
done:
    return status;
}

static void release_moment(moment *m) {
    release_all(RESULTS, m->g);
    release_all(RESULTS, m->made);
    td_release(m->before);
}

/* The gradients of a cell's gates, in the dtype in which states are multiplied: those of the lists,
 * and, but of Elman's, what is carried beside. Into `to` if that is not NULL. */
static td_status run_gradients(const layer *l, const moment *m, const carried *c,
                               td_tensor *const *to, td_tensor **made) {
    td_value dtype = TD_DTYPE((td_dtype)l->w->dtype);
    td_value g[RESULTS], by_weights = td_tensor_or_nil(c->by_weights);
    td_value beside = td_tensor_or_nil(c->beside);
    for (int r = 0; r < RESULTS; r++)
        g[r] = td_tensor_or_nil(m->g[r]);
    const td_value elman[] = {g[0], by_weights, TD_T(m->made[0]), TD_B(l->rectified), dtype};
    const td_value gru[] = {
        g[0], by_weights, beside, g[1], td_tensor_or_nil(m->made[1]), td_tensor_or_nil(m->before),
        dtype};
    const td_value lstm[] = {g[0],
                             by_weights,
                             g[1],
                             beside,
                             g[2],
                             td_tensor_or_nil(m->made[2]),
                             td_tensor_or_nil(m->before),
                             td_tensor_or_nil(m->made[1]),
                             dtype};
    const td_value *args[] = {[TD_CELL_ELMAN] = elman, [TD_CELL_GRU] = gru, [TD_CELL_LSTM] = lstm};
    const td_op *by_kernel[] = {[TD_CELL_ELMAN] = TD_OP(elman_gradients),
                                [TD_CELL_GRU] = TD_OP(gru_gates_gradients),
                                [TD_CELL_LSTM] = TD_OP(lstm_gates_gradients)};
    const td_op *any[] = {[TD_CELL_ELMAN] = TD_OP(elman_backward),
                          [TD_CELL_GRU] = TD_OP(gru_gates_backward),
                          [TD_CELL_LSTM] = TD_OP(lstm_gates_backward)};
    const td_op *op = (to ? by_kernel : any)[l->kind];
    if (!to)
        return td_op_apply(op, made, op->nparams, args[l->kind]);
    int n = op->nresults;
    for (int r = 0; r < n; r++)
        made[r] = td_retain(to[r]);
    return run_into(op, args[l->kind], n, made);
}

/* Places of the results of a time's gradients, where there is room: new. */
static td_status take_places(const layer *l, const lists *made, const moment *m, int64_t t,
                             td_tensor **to) {
    int n = lists_of[l->kind];
    td_status status = TD_OK;
    for (int k = 0; k < n; k++)
        TD_TRY(take_time(made->all[k], t, &to[k]));
    if (l->kind != TD_CELL_ELMAN)
        status = td_tensor_empty_like(m->made[0], (td_dtype)m->made[0]->dtype, &to[n]);
done:
    return status;
}

/* The gradients of what comes to the gates of the k-th time, into the lists; what was carried from
 * the time behind it becomes what is carried to the one before. */
static td_status back_time(const way_back *w, int64_t k, lists *made, carried *c) {
    const layer *l = w->l;
    td_tensor *to[LISTS + 1] = {NULL}, *results[LISTS + 1] = {NULL};
    int64_t t = td_time_at(l->backwards, w->times, k);
    int n = lists_of[l->kind];
    moment m;
    td_status status = TD_OK;
    TD_TRY(take_moment(w, k, &m));
    if (made->all[0])
        TD_TRY(take_places(l, made, &m, t, to));
    TD_TRY(run_gradients(l, &m, c, made->all[0] ? to : NULL, results));
    td_release(c->beside);
    c->beside = td_retain(results[n]);
    td_release(c->by_weights);
    c->by_weights = NULL;
    if (k > 0 || w->first)
        TD_TRY(TD_APPLY(&c->by_weights, matmul, TD_T(results[n - 1]), TD_T(l->w)));
    for (int i = 0; i < n && !made->all[0]; i++)
        made->times[i][t] = td_retain(results[i]);
done:
    release_moment(&m);
    release_all(LISTS + 1, to);
    release_all(LISTS + 1, results);
    return status;
}

/* Room for the lists, where nothing that is made of them is recorded and kernels will do. */
static td_status open_lists(const way_back *w, bool room, lists *made) {
    const layer *l = w->l;
    td_status status = TD_OK;
    for (int i = 0; i < lists_of[l->kind] && status == TD_OK; i++) {
        int64_t sizes[] = {w->times, w->made[0]->sizes[1], l->w->sizes[0]};
        if (room) {
            status = td_tensor_empty((td_dtype)l->w->dtype, td_tensor_device(l->w), 3, sizes,
                                     &made->all[i]);
        } else {
            made->times[i] = td_calloc((size_t)w->times, sizeof *made->times[i]);
            status = made->times[i] ? TD_OK : td_fail(TD_ENOMEM, "out of memory");
        }
    }
    return status;
}

static td_status close_lists(const layer *l, int64_t times, lists *made) {
    td_status status = TD_OK;
    for (int i = 0; i < lists_of[l->kind] && status == TD_OK; i++)
        if (!made->all[i])
            status =
                TD_APPLY(&made->all[i], stack, TD_TENSORS((int32_t)times, made->times[i]), TD_I(0));
    return status;
}

static void release_lists(int64_t times, lists *made) {
    release_all(LISTS, made->all);
    for (int i = 0; i < LISTS; i++) {
        for (int64_t t = 0; made->times[i] && t < times; t++)
            td_release(made->times[i][t]);
        td_free(made->times[i]);
    }
}

/* The way back by one function of the device's, if it has one that takes it: *done says so. */
static td_status go_back_by_device(const way_back *w, const lists *made, carried *c, bool *done) {
    const layer *l = w->l;
    bool cells = l->kind == TD_CELL_LSTM, gates = l->kind != TD_CELL_ELMAN;
    td_device device = td_tensor_device(l->w);
    td_dtype dtype = (td_dtype)w->made[0]->dtype;
    carried first = {NULL, NULL};
    td_status status = TD_OK;
    if (!td_backend_of(device)->recurrent_backward)
        return TD_OK;
    if (w->first)
        TD_TRY(td_tensor_empty_like(l->h, (td_dtype)l->w->dtype, &first.by_weights));
    if (gates)
        TD_TRY(td_tensor_empty_like(l->h, dtype, &first.beside));
    td_recurrent_backward_plan plan = {.of_x = made->all[0],
                                       .of_h = made->all[1],
                                       .before = first.by_weights,
                                       .beside = first.beside,
                                       .g = w->g[0],
                                       .given = cells ? w->g[1] : NULL,
                                       .h = l->h,
                                       .w = l->w,
                                       .cell = l->cell,
                                       .states = w->made[0],
                                       .cells = cells ? w->made[1] : NULL,
                                       .gates = gates ? w->made[results_of[l->kind] - 1] : NULL,
                                       .kind = l->kind,
                                       .backwards = l->backwards,
                                       .rectified = l->rectified,
                                       .done = done};
    if (lie_on(device, 12, plan.tensors))
        TD_TRY(TD_RUN(device, recurrent_backward, &plan));
    if (*done) {
        *c = first;
        first = (carried){NULL, NULL};
    }
done:
    td_release(first.by_weights);
    td_release(first.beside);
    return status;
}

/* From the last time to the first. */
static td_status go_back(const way_back *w, bool room, lists *made, carried *c) {
    bool done = false;
    td_status status = TD_OK;
    TD_TRY(open_lists(w, room, made));
    if (room)
        TD_TRY(go_back_by_device(w, made, c, &done));
    for (int64_t k = w->times - 1; k >= 0 && !done; k--) {
        TD_TRY(td_interrupt_check());
        TD_TRY(back_time(w, k, made, c));
    }
    status = close_lists(w->l, w->times, made);
done:
    return status;
}

/* The same as one operator; args: as TIMES_GRADIENTS has them. What is not wanted of the first
 * state is a tensor without elements. */
static td_status run_gradients_of_times(td_call *call, td_cell_kind kind) {
    const td_value *a = call->args;
    const layer l = {.kind = kind,
                     .h = a[2].tensor,
                     .w = a[3].tensor,
                     .cell = td_arg_tensor(a[4]),
                     .backwards = a[8].b,
                     .rectified = a[9].b};
    td_tensor *g[RESULTS] = {td_arg_tensor(a[0]), td_arg_tensor(a[1])};
    td_tensor *gates = td_arg_tensor(a[7]);
    td_tensor *results[RESULTS] = {a[5].tensor, kind == TD_CELL_LSTM ? a[6].tensor : gates, gates};
    const way_back w = {&l, a[5].tensor->sizes[0], g, results, a[10].b};
    const int64_t none = 0;
    lists made = {.all = {NULL}};
    carried c = {NULL, NULL};
    td_status status = TD_OK;
    int n = lists_of[kind];
    TD_TRY(go_back(&w, !td_grad_enabled(), &made, &c));
    if (!c.by_weights)
        TD_TRY(
            td_tensor_empty((td_dtype)l.w->dtype, td_tensor_device(l.w), 1, &none, &c.by_weights));
    for (int i = 0; i < n; i++)
        call->out[i] = td_retain(made.all[i]);
    call->out[n] = td_retain(c.by_weights);
    if (kind != TD_CELL_ELMAN)
        call->out[n + 1] = td_retain(c.beside);
done:
    release_lists(w.times, &made);
    td_release(c.by_weights);
    td_release(c.beside);
    return status;
}
static td_status run_elman_times_gradients(td_call *call) {
    return run_gradients_of_times(call, TD_CELL_ELMAN);
}
static td_status run_gru_times_gradients(td_call *call) {
    return run_gradients_of_times(call, TD_CELL_GRU);
}
static td_status run_lstm_times_gradients(td_call *call) {
    return run_gradients_of_times(call, TD_CELL_LSTM);
}

/* By that operator: graphs have one node for it then. */
static td_status go_back_at_once(const way_back *w, lists *made, carried *c) {
    const layer *l = w->l;
    bool cells = l->kind == TD_CELL_LSTM, gates = l->kind != TD_CELL_ELMAN;
    const td_op *ops[] = {[TD_CELL_ELMAN] = TD_OP(elman_times_gradients),
                          [TD_CELL_GRU] = TD_OP(gru_times_gradients),
                          [TD_CELL_LSTM] = TD_OP(lstm_times_gradients)};
    const td_value args[] = {td_tensor_or_nil(w->g[0]),
                             cells ? td_tensor_or_nil(w->g[1]) : TD_NIL,
                             TD_T(l->h),
                             TD_T(l->w),
                             td_tensor_or_nil(l->cell),
                             TD_T(w->made[0]),
                             cells ? TD_T(w->made[1]) : TD_NIL,
                             gates ? TD_T(w->made[results_of[l->kind] - 1]) : TD_NIL,
                             TD_B(l->backwards),
                             TD_B(l->rectified),
                             TD_B(w->first)};
    td_tensor *out[LISTS + 2];
    int n = lists_of[l->kind];
    td_status status = td_op_apply(ops[l->kind], out, ops[l->kind]->nparams, args);
    if (status)
        return status;
    for (int i = 0; i < n; i++)
        made->all[i] = out[i];
    c->by_weights = out[n];
    c->beside = gates ? out[n + 1] : NULL;
    if (!w->first) {
        td_release(c->by_weights);
        c->by_weights = NULL;
    }
    return TD_OK;
}

/* Gates^T times the states that they were made of, at all times at once. */
static td_status weight_gradient(const td_grad *grad, const layer *l, int64_t times,
                                 td_tensor *gates, td_tensor **out) {
    td_tensor *first = NULL, *rest = NULL, *states = NULL, *turned = NULL;
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(&first, unsqueeze, TD_T(l->h), TD_I(0)));
    TD_TRY(
        TD_APPLY(&rest, narrow, TD_T(grad->out[0]), TD_I(0), TD_I(l->backwards), TD_I(times - 1)));
    td_tensor *both[] = {l->backwards ? rest : first, l->backwards ? first : rest};
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

static td_status grad_times(td_grad *grad, td_cell_kind kind) {
    const layer l = layer_of(kind, grad->args);
    int ndim, last = results_of[kind] - 1;
    const way_back w = {&l, td_grad_shape(grad, 0, &ndim)[0], grad->gout, grad->out,
                        td_grad_needs(grad, 1)};
    lists made = {.all = {NULL}};
    carried c = {NULL, NULL};
    bool kernels = !td_grad_enabled() && (last == 0 || !grad->gout[last]);
    td_status status = TD_OK;
    TD_TRY(kernels ? go_back_at_once(&w, &made, &c) : go_back(&w, false, &made, &c));
    td_tensor *of_states = made.all[lists_of[kind] - 1];
    if (td_grad_needs(grad, 2))
        TD_TRY(weight_gradient(grad, &l, w.times, of_states, &grad->in[2]));
    if (kind == TD_CELL_GRU && td_grad_needs(grad, 5))
        TD_TRY(TD_APPLY(&grad->in[5], sum, TD_T(of_states), TD_INTS(2, ((int64_t[]){0, 1}))));
    if (kind == TD_CELL_LSTM)
        grad->in[5] = td_retain(c.beside);
    if (kind == TD_CELL_GRU && c.by_weights)
        TD_STEP(&c.by_weights, add, TD_T(c.by_weights), TD_T(c.beside));
    grad->in[0] = td_retain(made.all[0]);
    grad->in[1] = td_retain(c.by_weights);
done:
    release_lists(w.times, &made);
    td_release(c.by_weights);
    td_release(c.beside);
    return status;
}
static td_status grad_elman_times(td_grad *grad) {
    return grad_times(grad, TD_CELL_ELMAN);
}
static td_status grad_gru_times(td_grad *grad) {
    return grad_times(grad, TD_CELL_GRU);
}
static td_status grad_lstm_times(td_grad *grad) {
    return grad_times(grad, TD_CELL_LSTM);
}

/* ---- the table ---- */

#define TIMES(name, parameters, results, text, saved)                                              \
    TD_OPERATOR(name) = {                                                                          \
        .schema = "(Tensor x, Tensor h, Tensor w, bool backwards, bool casts, " parameters         \
                  ") -> " results,                                                                 \
        .doc = text,                                                                               \
        .run = run_##name,                                                                         \
        .backward = grad_##name,                                                                   \
        .saves = saved,                                                                            \
        .flags = TD_OP_INTERNAL}

TIMES(elman_times, "bool rectified", "Tensor",
      "A layer of Elman's cells over all times of x (T, N, H), what the inputs give; casts: states "
      "are multiplied in the dtype of w; rectified: relu, not tanh.",
      "h, w, out");
TIMES(gru_times, "Tensor? bias, bool keep", "(Tensor states, Tensor gates)",
      "A GRU layer over all times of x (T, N, 3 * H), what the inputs give to the gates; casts: "
      "states are multiplied in the dtype of w; bias: added to these products; keep: gates of all "
      "times, not of the last alone.",
      "h, w, states, gates");
TIMES(lstm_times, "Tensor cell, bool keep", "(Tensor states, Tensor cells, Tensor gates)",
      "An LSTM layer over all times of x (T, N, 4 * H), what the inputs give to the gates; casts: "
      "states are multiplied in the dtype of w; keep: cell states and gates of all times, not of "
      "the last alone.",
      "h, cell, w, states, cells, gates");

#define TIMES_GRADIENTS(name, results, text)                                                       \
    TD_OPERATOR(name##_gradients) = {                                                              \
        .schema = "(Tensor? g, Tensor? given, Tensor h, Tensor w, Tensor? cell, Tensor states, "   \
                  "Tensor? cells, Tensor? gates, bool backwards, bool rectified, bool first) -> "  \
                  "(" results ")",                                                                 \
        .doc = text,                                                                               \
        .run = run_##name##_gradients,                                                             \
        .flags = TD_OP_INTERNAL | TD_OP_NONDIFF}

TIMES_GRADIENTS(
    elman_times, "Tensor of_x, Tensor before",
    "The gradients of elman_times by kernels: of x at all times and, if `first`, of h.");
TIMES_GRADIENTS(gru_times, "Tensor of_x, Tensor of_h, Tensor before, Tensor beside",
                "The gradients of gru_times by kernels: of x and of products with w at all times; "
                "of h through those products, if `first`, and past them.");
TIMES_GRADIENTS(
    lstm_times, "Tensor of_x, Tensor before, Tensor cell_before",
    "The gradients of lstm_times by kernels: of x at all times, of h, if `first`, and of "
    "cell.");

/* rnn.c: recurrent cells and sequences of them: Elman's (tanh or relu), LSTM, GRU. Composites: the
 * inputs of all times are multiplied at once, the states one after the other (recurrent.c). */
#include "engine/core/interrupt.h"
#include "engine/core/memory.h"
#include "engine/core/modes.h"
#include "engine/ops/rule_helpers.h"

#include <string.h>

#define TD_FAMILY "rnn"

typedef enum kind { RNN_TANH, RNN_RELU, LSTM, GRU } kind;
static const int gates_of[] = {[RNN_TANH] = 1, [RNN_RELU] = 1, [LSTM] = 4, [GRU] = 3};

/* ---- one step ---- */

/* Weights of one direction of one layer; borrowed, biases may be NULL, and hr, by which an LSTM's
 * state is projected to another size. */
typedef struct weights {
    td_tensor *ih, *hh, *b_ih, *b_hh, *hr;
} weights;

/* *cell, of an LSTM, is replaced. */
static td_status apply_gates(kind which, td_tensor *from_input, td_tensor *from_state,
                             td_tensor *state, td_tensor **cell, td_tensor **out) {
    const td_value args[] = {TD_T(from_input), TD_T(from_state),
                             TD_T(which == LSTM ? *cell : state)};
    const td_op *ops[] = {[RNN_TANH] = TD_OP(elman_tanh),
                          [RNN_RELU] = TD_OP(elman_relu),
                          [LSTM] = TD_OP(lstm_gates),
                          [GRU] = TD_OP(gru_gates)};
    const td_op *op = ops[which];
    td_tensor *made[3] = {NULL};
    td_status status = td_op_apply(op, made, op->nparams, args);
    if (status)
        return status;
    *out = made[0];
    if (which == LSTM) {
        td_release(*cell);
        *cell = made[1];
    }
    if (op->nresults > 1)
        td_release(made[op->nresults - 1]);
    return TD_OK;
}

/* Replace *state, and *cell of an LSTM, by those after one step. `projected` is what the input
 * gives. */
static td_status step(kind which, const weights *w, td_tensor *projected, td_tensor **state,
                      td_tensor **cell) {
    td_tensor *from_state = NULL, *next = NULL;
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(&from_state, linear, TD_T(*state), TD_T(w->hh), td_tensor_or_nil(w->b_hh)));
    TD_TRY(apply_gates(which, projected, from_state, *state, cell, &next));
    if (w->hr)
        TD_STEP(&next, linear, TD_T(next), TD_T(w->hr), TD_NIL);
    td_release(*state);
    *state = td_retain(next);
done:
    td_release(from_state);
    td_release(next);
    return status;
}

/* ---- cells ---- */

/* `units`: of the gates, which are the state's size where it is not projected. */
static td_status check_cell(kind which, const td_tensor *x, const td_tensor *h, int64_t units,
                            const weights *w) {
    char a[TD_SHAPE_TEXT], b[TD_SHAPE_TEXT];
    if (x->ndim < 1 || x->ndim > 2 || h->ndim != x->ndim)
        return td_fail(TD_ESHAPE, "input and state must be (N, size) or (size), got %s and %s",
                       td_tensor_shape_text(x, a), td_tensor_shape_text(h, b));
    if (x->ndim == 2 && x->sizes[0] != h->sizes[0])
        return td_fail(TD_ESHAPE, "input of shape %s and state of shape %s differ in their batch",
                       td_tensor_shape_text(x, a), td_tensor_shape_text(h, b));
    if (w->ih->ndim != 2 || w->ih->sizes[1] != x->sizes[x->ndim - 1])
        return td_fail(TD_ESHAPE, "input of shape %s doesn't fit weights of shape %s",
                       td_tensor_shape_text(x, a), td_tensor_shape_text(w->ih, b));
    int64_t hidden = h->sizes[h->ndim - 1];
    if (w->hh->ndim != 2 || w->hh->sizes[1] != hidden ||
        w->hh->sizes[0] != gates_of[which] * units || w->ih->sizes[0] != w->hh->sizes[0])
        return td_fail(TD_ESHAPE, "state of shape %s doesn't fit weights of shape %s",
                       td_tensor_shape_text(h, a), td_tensor_shape_text(w->hh, b));
    const td_tensor *biases[] = {w->b_ih, w->b_hh};
    for (int k = 0; k < 2; k++)
        if (biases[k] && (biases[k]->ndim != 1 || biases[k]->sizes[0] != w->hh->sizes[0]))
            return td_fail(TD_ESHAPE, "bias must have shape (%lld), got %s",
                           (long long)w->hh->sizes[0], td_tensor_shape_text(biases[k], a));
    if (w->hr && (w->hr->ndim != 2 || w->hr->sizes[0] != hidden || w->hr->sizes[1] != units))
        return td_fail(TD_ESHAPE, "projection of shape %s, expected (%lld, %lld)",
                       td_tensor_shape_text(w->hr, a), (long long)hidden, (long long)units);
    return which == LSTM || which == GRU ? td_check_float((td_dtype)x->dtype) : TD_OK;
}

static td_status run_cell(td_call *call, kind which, td_tensor *state, td_tensor *cell) {
    const td_value *a = call->args;
    weights w = {a[2].tensor, a[3].tensor, td_arg_tensor(a[4]), td_arg_tensor(a[5]), NULL};
    td_tensor *projected = NULL, *h = td_retain(state), *c = td_retain(cell);
    td_status status = TD_OK;
    int64_t units = state->ndim > 0 ? state->sizes[state->ndim - 1] : 0;
    TD_TRY(check_cell(which, a[0].tensor, state, units, &w));
    TD_TRY(TD_APPLY(&projected, linear, a[0], a[2], a[4]));
    TD_TRY(step(which, &w, projected, &h, &c));
    call->out[0] = td_retain(h);
    if (which == LSTM)
        call->out[1] = td_retain(c);
done:
    td_release(projected);
    td_release(h);
    td_release(c);
    return status;
}
static td_status run_rnn_tanh_cell(td_call *call) {
    return run_cell(call, RNN_TANH, call->args[1].tensor, NULL);
}
static td_status run_rnn_relu_cell(td_call *call) {
    return run_cell(call, RNN_RELU, call->args[1].tensor, NULL);
}
static td_status run_gru_cell(td_call *call) {
    return run_cell(call, GRU, call->args[1].tensor, NULL);
}

static td_status check_states(td_value hx, int wanted) {
    return hx.n == wanted
               ? TD_OK
               : td_fail(TD_EVALUE, "hx must be {hidden state, cell state}, got %d", hx.n);
}
static td_status run_lstm_cell(td_call *call) {
    td_value hx = call->args[1];
    td_status status = check_states(hx, 2);
    return status ? status : run_cell(call, LSTM, hx.tensors[0], hx.tensors[1]);
}

/* ---- sequences ---- */

typedef struct sequence {
    kind which;
    bool biases, training, both, batch_first;
    bool projects; /* the states are of another size than the cells */
    int64_t layers;
    double dropout;
    td_value params;
    td_tensor *h0, *c0; /* (layers x directions, N, hidden) */
} sequence;

static int weights_per_place(const sequence *s) {
    return (s->biases ? 4 : 2) + s->projects;
}

static weights weights_at(const sequence *s, int64_t place) {
    int per = weights_per_place(s);
    td_tensor *const *p = s->params.tensors + place * per;
    return (weights){p[0], p[1], s->biases ? p[2] : NULL, s->biases ? p[3] : NULL,
                     s->projects ? p[per - 1] : NULL};
}

/* All times in one direction: their outputs, and the last states into *h and *c. */
static td_status run_times(const sequence *s, const weights *w, td_tensor *x, bool backwards,
                           td_tensor **h, td_tensor **c, td_tensor **out) {
    td_tensor *projected = NULL, *now = NULL;
    int64_t times = x->sizes[0];
    td_tensor **outputs = td_calloc((size_t)times, sizeof(td_tensor *));
    td_status status = outputs ? TD_OK : td_fail(TD_ENOMEM, "out of memory");
    if (status)
        return status;
    TD_TRY(TD_APPLY(&projected, linear, TD_T(x), TD_T(w->ih), td_tensor_or_nil(w->b_ih)));
    for (int64_t k = 0; k < times; k++) {
        int64_t t = backwards ? times - 1 - k : k;
        TD_TRY(td_interrupt_check());
        td_release(now);
        now = NULL;
        TD_TRY(TD_APPLY(&now, select, TD_T(projected), TD_I(0), TD_I(t)));
        TD_TRY(step(s->which, w, now, h, c));
        outputs[t] = td_retain(*h);
    }
    status = TD_APPLY(out, stack, TD_TENSORS((int32_t)times, outputs), TD_I(0));
done:
    td_release(projected);
    td_release(now);
    for (int64_t t = 0; t < times; t++)
        td_release(outputs[t]);
    td_free(outputs);
    return status;
}

/* Whether backward, or whoever takes calls in hand, may ask for what the times made on their way.
 */
static bool keeps_times(td_tensor *const *tensors, int n) {
    bool keep = td_modes_current.dispatcher != NULL;
    for (int k = 0; k < n; k++)
        keep = keep || (tensors[k] && td_op_records(tensors[k]));
    return keep;
}

/* The operator that makes all times at once; args: what its own arguments are behind the five that
 * all have. */
static td_status apply_times(kind which, const td_value *first, td_value more, bool keep,
                             td_tensor **made) {
    td_value args[7];
    const td_op *ops[] = {[RNN_TANH] = TD_OP(elman_times),
                          [RNN_RELU] = TD_OP(elman_times),
                          [LSTM] = TD_OP(lstm_times),
                          [GRU] = TD_OP(gru_times)};
    memcpy(args, first, 5 * sizeof *args);
    args[5] = more;
    args[6] = TD_B(keep);
    return td_op_apply(ops[which], made, ops[which]->nparams, args);
}

/* All times of cells whose states are not projected, as one operator. Biases of sums are one. Under
 * autocast weights are cast once, to the dtype in which the inputs were multiplied. */
static td_status run_at_once(kind which, const weights *w, td_tensor *x, bool backwards,
                             td_tensor **h, td_tensor **c, td_tensor **out) {
    td_tensor *projected = NULL, *made[3] = {NULL}, *hh = td_retain(w->hh);
    td_tensor *bias = td_retain(w->b_ih), *beside = which == GRU ? td_retain(w->b_hh) : NULL;
    bool casting = td_modes_current.casting;
    td_status status = TD_OK;
    if (bias && which != GRU)
        TD_STEP(&bias, add, TD_T(bias), TD_T(w->b_hh));
    TD_TRY(TD_APPLY(&projected, linear, TD_T(x), TD_T(w->ih), td_tensor_or_nil(bias)));
    if (casting)
        TD_STEP(&hh, to, TD_T(hh), TD_DTYPE((td_dtype)projected->dtype));
    if (casting && beside)
        TD_STEP(&beside, to, TD_T(beside), TD_DTYPE((td_dtype)projected->dtype));
    bool keep = keeps_times((td_tensor *[]){projected, *h, *c, hh, beside}, 5);
    const td_value more[] = {[RNN_TANH] = TD_B(false),
                             [RNN_RELU] = TD_B(true),
                             [LSTM] = TD_T(*c),
                             [GRU] = td_tensor_or_nil(beside)};
    TD_TRY(apply_times(
        which, (td_value[]){TD_T(projected), TD_T(*h), TD_T(hh), TD_B(backwards), TD_B(casting)},
        more[which], keep, made));
    TD_STEP(h, select, TD_T(made[0]), TD_I(0), TD_I(backwards ? 0 : -1));
    if (which == LSTM)
        TD_STEP(c, select, TD_T(made[1]), TD_I(0), TD_I(backwards ? 0 : -1));
    *out = td_retain(made[0]);
done:
    td_release(projected);
    td_release(hh);
    td_release(bias);
    td_release(beside);
    for (int k = 0; k < 3; k++)
        td_release(made[k]);
    return status;
}

/* One direction of one layer: the outputs of all times, states in their places. */
static td_status run_direction(const sequence *s, int64_t place, td_tensor *x, bool backwards,
                               td_tensor **states, td_tensor **cells, td_tensor **out) {
    weights w = weights_at(s, place);
    td_tensor *first = NULL;
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(&states[place], select, TD_T(s->h0), TD_I(0), TD_I(place)));
    if (s->c0)
        TD_TRY(TD_APPLY(&cells[place], select, TD_T(s->c0), TD_I(0), TD_I(place)));
    TD_TRY(TD_APPLY(&first, select, TD_T(x), TD_I(0), TD_I(0)));
    const td_tensor *unit = s->c0 ? cells[place] : states[place];
    TD_TRY(check_cell(s->which, first, states[place], unit->sizes[unit->ndim - 1], &w));
    if (!s->projects && td_dtype_is_float((td_dtype)x->dtype))
        status = run_at_once(s->which, &w, x, backwards, &states[place], &cells[place], out);
    else
        status = run_times(s, &w, x, backwards, &states[place], &cells[place], out);
done:
    td_release(first);
    return status;
}

/* Replace *x by a layer's outputs. */
static td_status run_layer(const sequence *s, int64_t layer, td_tensor **x, td_tensor **states,
                           td_tensor **cells) {
    td_tensor *out[2] = {NULL};
    int directions = s->both ? 2 : 1;
    td_status status = TD_OK;
    for (int d = 0; d < directions; d++)
        TD_TRY(run_direction(s, layer * directions + d, *x, d == 1, states, cells, &out[d]));
    if (s->both)
        TD_STEP(x, cat, TD_TENSORS(2, out), TD_I(-1));
    else {
        td_release(*x);
        *x = td_retain(out[0]);
    }
    if (s->training && s->dropout > 0 && layer + 1 < s->layers)
        TD_STEP(x, dropout, TD_T(*x), TD_F(s->dropout));
done:
    td_release(out[0]);
    td_release(out[1]);
    return status;
}

static td_status check_sequence(const sequence *s, const td_tensor *x) {
    char shape[TD_SHAPE_TEXT];
    int64_t places = s->layers * (s->both ? 2 : 1);
    if (x->ndim != 3)
        return td_fail(TD_ESHAPE,
                       "input must be (T, N, size), or (N, T, size) with batch_first, "
                       "got shape %s",
                       td_tensor_shape_text(x, shape));
    if (s->layers < 1 || s->layers > 1 << 20)
        return td_fail(TD_EVALUE, "num_layers must be positive, got %lld", (long long)s->layers);
    if (s->params.n != places * weights_per_place(s))
        return td_fail(TD_EVALUE, "params: expected %lld weights and biases, got %d",
                       (long long)places * weights_per_place(s), s->params.n);
    if (x->sizes[s->batch_first ? 1 : 0] == 0)
        return td_fail(TD_ESHAPE, "the sequence has no steps: shape %s",
                       td_tensor_shape_text(x, shape));
    return TD_OK;
}

static td_status check_first_state(const sequence *s, const td_tensor *h, const char *name,
                                   const td_tensor *x) {
    char shape[TD_SHAPE_TEXT];
    int64_t places = s->layers * (s->both ? 2 : 1), batch = x->sizes[s->batch_first ? 0 : 1];
    if (h->ndim == 3 && h->sizes[0] == places && h->sizes[1] == batch)
        return TD_OK;
    return td_fail(TD_ESHAPE, "%s of shape %s, expected (%lld, %lld, hidden size)", name,
                   td_tensor_shape_text(h, shape), (long long)places, (long long)batch);
}

/* Fills out[0] (outputs), out[1] (last states) and, of an LSTM, out[2] (last cell states). */
static td_status run_layers(const sequence *s, td_tensor *input, td_tensor **out) {
    int64_t places = s->layers * (s->both ? 2 : 1);
    td_tensor **states = td_calloc(2 * (size_t)places, sizeof(td_tensor *)), *x = NULL;
    td_status status = states ? TD_OK : td_fail(TD_ENOMEM, "out of memory");
    if (status)
        return status;
    x = td_retain(input);
    if (s->batch_first)
        TD_STEP(&x, transpose, TD_T(x), TD_I(0), TD_I(1));
    for (int64_t layer = 0; layer < s->layers; layer++)
        TD_TRY(run_layer(s, layer, &x, states, states + places));
    if (s->batch_first)
        TD_STEP(&x, transpose, TD_T(x), TD_I(0), TD_I(1));
    TD_TRY(TD_APPLY(&out[1], stack, TD_TENSORS((int32_t)places, states), TD_I(0)));
    if (s->c0)
        TD_TRY(TD_APPLY(&out[2], stack, TD_TENSORS((int32_t)places, states + places), TD_I(0)));
    out[0] = td_retain(x);
done:
    td_release(x);
    for (int64_t k = 0; k < 2 * places; k++)
        td_release(states[k]);
    td_free(states);
    return status;
}

static td_status run_sequence(td_call *call, kind which, td_tensor *h0, td_tensor *c0) {
    const td_value *a = call->args;
    const td_tensor *x = a[0].tensor;
    sequence s = {.which = which,
                  .params = a[2],
                  .biases = a[3].b,
                  .layers = a[4].i,
                  .dropout = a[5].f,
                  .training = a[6].b,
                  .both = a[7].b,
                  .batch_first = a[8].b,
                  .h0 = h0,
                  .c0 = c0};
    s.projects = c0 && h0->ndim == 3 && c0->ndim == 3 && h0->sizes[2] != c0->sizes[2];
    td_status status = check_sequence(&s, x);
    if (status == TD_OK)
        status = check_first_state(&s, h0, "hidden state", x);
    if (status == TD_OK && c0)
        status = check_first_state(&s, c0, "cell state", x);
    return status ? status : run_layers(&s, a[0].tensor, call->out);
}
static td_status run_rnn_tanh(td_call *call) {
    return run_sequence(call, RNN_TANH, call->args[1].tensor, NULL);
}
static td_status run_rnn_relu(td_call *call) {
    return run_sequence(call, RNN_RELU, call->args[1].tensor, NULL);
}
static td_status run_gru(td_call *call) {
    return run_sequence(call, GRU, call->args[1].tensor, NULL);
}
static td_status run_lstm(td_call *call) {
    td_value hx = call->args[1];
    td_status status = check_states(hx, 2);
    return status ? status : run_sequence(call, LSTM, hx.tensors[0], hx.tensors[1]);
}

/* ---- the table ---- */

/* What help says of a cell with so many gates ("4*H" rows), of the states that it is given, and of
 * those that it gives besides its first. */
#define CELL_SHAPES(rows, states, more)                                                            \
    "input (N?, I), hx " states ", w_ih (" rows ", I), w_hh (" rows ", H), b_ih (" rows            \
    "), b_hh (" rows ") -> (N?, H)" more
#define SEQUENCE_SHAPES(rows, states, more)                                                        \
    "input (T, N, I), hx " states ", params {(w...)} -> (T, N, H*directions), (layers, N, H)" more \
    " if not batch_first | input (N, T, I), hx " states                                            \
    ", params {(w...)} -> (N, T, H*directions), (layers, N, H)" more                               \
    "; layers = num_layers*directions; directions = 2 if bidirectional else 1; w: in each layer "  \
    "and direction (" rows ", I), (" rows ", H), and with biases twice (" rows ")"
#define STATE "(layers, N, H)"

#define CELL(name, state, results, text, ...)                                                      \
    TD_OPERATOR(name) = {.schema = "(Tensor input, " state " hx, Tensor w_ih, Tensor w_hh, "       \
                                   "Tensor? b_ih=nil, Tensor? b_hh=nil) -> " results,              \
                         .doc = text,                                                              \
                         .shapes = __VA_ARGS__,                                                    \
                         .run = run_##name,                                                        \
                         .autocast = {[TD_CUDA] = TD_AUTOCAST_LOWER},                              \
                         .flags = TD_OP_FUNCTION_ONLY}
#define SEQUENCE(name, state, results, text, ...)                                                  \
    TD_OPERATOR(name) = {                                                                          \
        .schema = "(Tensor input, " state " hx, Tensor[] params, bool has_biases=true, "           \
                  "int num_layers=1, float dropout=0, bool train=false, "                          \
                  "bool bidirectional=false, bool batch_first=false) -> " results,                 \
        .doc = text,                                                                               \
        .shapes = __VA_ARGS__,                                                                     \
        .run = run_##name,                                                                         \
        .flags = TD_OP_FUNCTION_ONLY}

CELL(rnn_tanh_cell, "Tensor", "Tensor", "One step of Elman's cell: tanh(W x + b + U h + c).",
     CELL_SHAPES("H", "(N?, H)", ""),
     .takes = "floating and integers, one dtype; integers count as float32");
CELL(rnn_relu_cell, "Tensor", "Tensor", "One step of Elman's cell: relu(W x + b + U h + c).",
     CELL_SHAPES("H", "(N?, H)", ""), .takes = "floating and integers, one dtype");
CELL(lstm_cell, "Tensor[]", "(Tensor h, Tensor c)",
     "One step of an LSTM cell; gates in the order input, forget, cell, output.",
     CELL_SHAPES("4*H", "{(N?, H)}", ", (N?, H)"), .takes = "floating, one dtype",
     .notes = "The state is {h, c}; the gates of each weight are input, forget, cell, output, one "
              "below the other.");
CELL(gru_cell, "Tensor", "Tensor", "One step of a GRU cell; gates in the order reset, update, new.",
     CELL_SHAPES("3*H", "(N?, H)", ""), .takes = "floating, one dtype",
     .notes = "The gates of each weight are reset, update, new, one below the other.");
SEQUENCE(rnn_tanh, "Tensor", "(Tensor output, Tensor h)",
         "Layers of Elman's cells (tanh) over sequences (T, N, size).",
         SEQUENCE_SHAPES("H", STATE, ""), .takes = "floating, one dtype");
SEQUENCE(rnn_relu, "Tensor", "(Tensor output, Tensor h)",
         "Layers of Elman's cells (relu) over sequences (T, N, size).",
         SEQUENCE_SHAPES("H", STATE, ""), .takes = "floating and integers, one dtype");
SEQUENCE(lstm, "Tensor[]", "(Tensor output, Tensor h, Tensor c)",
         "Layers of LSTM cells over sequences (T, N, size); params layer by layer.",
         SEQUENCE_SHAPES("4*H", "{" STATE "}", ", " STATE), .takes = "floating, one dtype",
         .notes = "The state is {h, c}; the gates of each weight are input, forget, cell, output, "
                  "one below the other.");
SEQUENCE(gru, "Tensor", "(Tensor output, Tensor h)",
         "Layers of GRU cells over sequences (T, N, size); params layer by layer.",
         SEQUENCE_SHAPES("3*H", STATE, ""), .takes = "floating, one dtype",
         .notes = "The gates of each weight are reset, update, new, one below the other.");

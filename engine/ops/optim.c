/* optim.c: steps of optimizers: one program over a parameter, its gradient and its state, run over
 * all parameters of a group in one go. */
#include "engine/core/memory.h"
#include "engine/core/modes.h"
#include "engine/core/observer.h"
#include "engine/ops/pointwise.h"

#include <stdlib.h>

#define TD_FAMILY "optim"

/* ---- SGD's program ---- */

enum { PARAM, GRAD, BUFFER, RATE, MOMENTUM, KEEP, DECAY, SGD_OPERANDS };

/* What the numbers leave to do; also the number of the program. */
enum { HAS_MOMENTUM = 1, STARTS = 2, NESTEROV = 4, MAXIMIZE = 8, DECAYS = 16, SGD_PROGRAMS = 32 };

/* x + number * y, as add and its alpha compute it. */
static int add_scaled(td_builder *b, int x, int number, int y) {
    int scaled = td_builder_step(b, TD_PW_mul, td_builder_operand(b, number), y, 0);
    return td_builder_step(b, TD_PW_add, x, scaled, 0);
}

static td_status make_sgd(unsigned what, const td_program **out) {
    *out = NULL;
    td_builder *b = td_builder_new(SGD_OPERANDS);
    if (!b)
        return td_fail(TD_ENOMEM, "out of memory for a program");
    int p = td_builder_operand(b, PARAM), g = td_builder_operand(b, GRAD), buffer = g, change;
    if (what & MAXIMIZE)
        g = td_builder_step(b, TD_PW_neg, g, 0, 0);
    if (what & DECAYS)
        g = add_scaled(b, g, DECAY, p);
    change = buffer = g;
    if (what & HAS_MOMENTUM) {
        if (!(what & STARTS)) {
            int old = td_builder_operand(b, BUFFER), factor = td_builder_operand(b, MOMENTUM);
            buffer = add_scaled(b, td_builder_step(b, TD_PW_mul, old, factor, 0), KEEP, g);
        }
        change = what & NESTEROV ? add_scaled(b, g, MOMENTUM, buffer) : buffer;
    }
    td_builder_output(b, add_scaled(b, p, RATE, change), TD_OUTPUT_ELEMENTS);
    if (what & HAS_MOMENTUM)
        td_builder_output(b, buffer, TD_OUTPUT_ELEMENTS);
    return td_builder_finish(b, out);
}

/* Made at first use and kept; two threads may make it, one of them keeps it. Borrowed. */
static td_status find_sgd(unsigned what, const td_program **out) {
    static const td_program *programs[SGD_PROGRAMS];
    *out = __atomic_load_n(&programs[what], __ATOMIC_ACQUIRE);
    if (*out)
        return TD_OK;
    const td_program *made, *none = NULL;
    td_status status = make_sgd(what, &made);
    if (status)
        return status;
    if (!__atomic_compare_exchange_n(&programs[what], &none, made, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE)) {
        td_program_release(made);
        made = none;
    }
    *out = made;
    return TD_OK;
}

/* ---- what is written ---- */

static td_status check_like(const td_tensor *x, const td_tensor *param, const char *what, int k) {
    char have[TD_SHAPE_TEXT], want[TD_SHAPE_TEXT];
    if (!td_tensor_same_shape(x, param))
        return td_fail(TD_ESHAPE, "%s %d has shape %s, its parameter %s", what, k + 1,
                       td_tensor_shape_text(x, have), td_tensor_shape_text(param, want));
    if (!td_dtype_is_float((td_dtype)x->dtype))
        return td_fail(TD_EDTYPE, "%s %d: floats expected, got %s", what, k + 1,
                       td_dtype_name((td_dtype)x->dtype));
    if (!td_device_same(td_tensor_device(x), td_tensor_device(param)))
        return td_fail(TD_EDEVICE, "%s %d is on %s, its parameter on %s", what, k + 1,
                       td_device_name(td_tensor_device(x)),
                       td_device_name(td_tensor_device(param)));
    return TD_OK;
}

static td_status check_written(const td_tensor *x, const char *what, int k) {
    if (td_grad_enabled() && x->requires_grad)
        return td_fail(TD_EAUTOGRAD,
                       "%s %d requires grad and is written in place: do it under tide.no_grad",
                       what, k + 1);
    return td_tensor_overlaps(x)
               ? td_fail(TD_EVALUE,
                         "several elements of %s %d share one place in memory (an "
                         "expanded tensor?)",
                         what, k + 1)
               : TD_OK;
}

static td_status check_lists(const td_value *args, bool momentum) {
    int n = args[0].n;
    if (args[1].n != n || args[2].n != (momentum ? n : 0))
        return td_fail(TD_EVALUE, "%d parameters with %d gradients and %d buffers", n, args[1].n,
                       args[2].n);
    td_status status = TD_OK;
    for (int k = 0; k < n && status == TD_OK; k++) {
        const td_tensor *p = args[0].tensors[k];
        status = check_written(p, "parameter", k);
        if (status == TD_OK)
            status = check_like(p, p, "parameter", k);
        if (status == TD_OK)
            status = check_like(args[1].tensors[k], p, "gradient", k);
        if (status == TD_OK && momentum)
            status = check_like(args[2].tensors[k], p, "buffer", k);
        if (status == TD_OK && momentum)
            status = check_written(args[2].tensors[k], "buffer", k);
    }
    return status;
}

static int compare_pointers(const void *a, const void *b) {
    const void *x = *(const void *const *)a, *y = *(const void *const *)b;
    return (x > y) - (x < y);
}

/* Do two of the tensors that are written lie in one storage? Then lists may not run side by side.
 */
static td_status shares_storage(td_tensor *const *written, int n, bool *shares) {
    const void **storages = td_malloc(sizeof *storages * (size_t)(n + 1));
    if (!storages)
        return td_fail(TD_ENOMEM, "out of memory");
    for (int k = 0; k < n; k++)
        storages[k] = written[k]->storage;
    qsort(storages, (size_t)n, sizeof *storages, compare_pointers);
    *shares = false;
    for (int k = 1; k < n; k++)
        *shares |= storages[k] == storages[k - 1];
    td_free(storages);
    return TD_OK;
}

/* ---- the step ---- */

typedef struct sgd_lists {
    const td_program *program;
    int n; /* lists */
    td_operand *operands;
    td_tensor **outs;
} sgd_lists;

static bool same_kind(const td_tensor *a, const td_tensor *b) {
    return a->dtype == b->dtype && td_device_same(td_tensor_device(a), td_tensor_device(b));
}

/* Lists of one dtype and device that follow one another run together. */
static td_status run_lists(const sgd_lists *l, bool apart) {
    int nout = l->program->noutputs;
    td_status status = TD_OK;
    for (int from = 0, to; from < l->n && status == TD_OK; from = to) {
        const td_tensor *p = l->outs[from * nout];
        for (to = from + 1; to < l->n && !apart && same_kind(l->outs[to * nout], p);)
            to++;
        td_pointwise_plan plan = {.program = l->program,
                                  .operands = l->operands + from * SGD_OPERANDS,
                                  .compute = (td_dtype)p->dtype,
                                  .nlists = to - from,
                                  .outs = l->outs + from * nout};
        status = TD_RUN(td_tensor_device(p), pointwise, &plan);
        bool written = status == TD_OK || status == TD_EINTR; /* in part */
        for (int k = from * nout; k < to * nout && written; k++)
            td_tensor_bump_version(l->outs[k]);
    }
    return status;
}

static void fill_lists(const td_call *call, sgd_lists *l) {
    const td_value *args = call->args;
    double momentum = td_arg_double(args[4]);
    int nout = l->program->noutputs;
    for (int k = 0; k < l->n; k++) {
        td_operand *o = l->operands + k * SGD_OPERANDS;
        o[PARAM] = (td_operand){.tensor = args[0].tensors[k]};
        o[GRAD] = (td_operand){.tensor = args[1].tensors[k]};
        o[BUFFER] = (td_operand){.tensor = nout > 1 ? args[2].tensors[k] : NULL};
        o[RATE] = (td_operand){.f = -td_arg_double(args[3])};
        o[MOMENTUM] = (td_operand){.f = momentum};
        o[KEEP] = (td_operand){.f = 1 - td_arg_double(args[5])};
        o[DECAY] = (td_operand){.f = td_arg_double(args[6])};
        l->outs[k * nout] = args[0].tensors[k];
        if (nout > 1)
            l->outs[k * nout + 1] = args[2].tensors[k];
    }
}

static td_status run_observed(const td_call *call, const sgd_lists *l, bool apart) {
    td_observer *o = td_observer_get(TD_EVENT_KERNEL);
    if (TD_LIKELY(!o))
        return run_lists(l, apart);
    td_event event = {.kind = TD_EVENT_KERNEL,
                      .name = call->op->name,
                      .track = td_stream_current(td_tensor_device(call->args[0].tensors[0]))};
    o->begin(o->ctx, &event);
    event.status = run_lists(l, apart);
    o->end(o->ctx, &event);
    return event.status;
}

static td_status run_sgd_step(td_call *call) {
    const td_value *args = call->args;
    bool momentum = td_arg_double(args[4]) != 0, apart = false;
    unsigned what = (momentum ? HAS_MOMENTUM : 0) | (args[7].b ? NESTEROV : 0) |
                    (args[8].b ? MAXIMIZE : 0) | (td_arg_double(args[6]) != 0 ? DECAYS : 0) |
                    (args[9].b ? STARTS : 0);
    sgd_lists l = {.n = args[0].n};
    td_status status = TD_OK;
    TD_TRY(check_lists(args, momentum));
    if (l.n == 0)
        return TD_OK;
    TD_TRY(find_sgd(what, &l.program));
    l.operands = td_malloc(sizeof *l.operands * SGD_OPERANDS * (size_t)l.n);
    l.outs = td_malloc(sizeof *l.outs * (size_t)(l.n * l.program->noutputs));
    if (!l.operands || !l.outs)
        TD_TRY(td_fail(TD_ENOMEM, "out of memory"));
    fill_lists(call, &l);
    TD_TRY(shares_storage(l.outs, l.n * l.program->noutputs, &apart));
    status = run_observed(call, &l, apart);
done:
    td_free(l.operands);
    td_free(l.outs);
    return status;
}

TD_OPERATOR(sgd_step) = {
    .schema = "(Tensor[] params, Tensor[] grads, Tensor[] buffers, *, number lr, "
              "number momentum=0, number dampening=0, number weight_decay=0, bool nesterov=false, "
              "bool maximize=false, bool starts=false) -> nothing",
    .doc =
        "One step of stochastic gradient descent: params and momentum buffers are written; where "
        "it starts, the buffers become the gradients.",
    .run = run_sgd_step,
    .flags = TD_OP_INTERNAL | TD_OP_FUNCTION_ONLY | TD_OP_NONDIFF,
};

/* row_kernel.c: how a group along rows is laid out in stages, and how these run. */
#include "engine/script/row_kernel.h"

#include "engine/autograd/autograd.h"
#include "engine/calls/lists_run.h"
#include "engine/core/backend.h"
#include "engine/core/memory.h"
#include "engine/core/threads.h"
#include "engine/ops/plan/plan.h"
#include "engine/ops/plan/row_blocks.h"
#include "engine/script/kernel.h"
#include "engine/script/row_stages.h"

#include <string.h>

/* ---- inputs ---- */

/* Are the elements of some dims all told by this count of ones? */
static bool are_ones(const td_tensor *x, int from, int to) {
    for (int d = from; d < to; d++)
        if (x->sizes[d] != 1)
            return false;
    return true;
}

static bool same_dims(const td_tensor *x, int at, const td_tensor *y, int from, int n) {
    return n == 0 || !memcmp(x->sizes + at, y->sizes + from, sizeof *x->sizes * (size_t)n);
}

/* Is a tensor what its type was to the shape, to that of `full`? */
static bool is_class(const td_row_kernel *k, const td_tensor *x, td_row_class class,
                     const td_tensor *full) {
    const int inner = k->inner, outer = full->ndim - inner;
    switch (class) {
    case TD_ROW_ONE:
        return x->numel == 1 && x->ndim <= (k->flat ? outer : full->ndim);
    case TD_ROW_VEC:
        return x->contiguous && x->ndim >= inner && x->ndim <= full->ndim &&
               are_ones(x, 0, x->ndim - inner) &&
               same_dims(x, x->ndim - inner, full, outer, inner);
    case TD_ROW_ROW:
        return x->contiguous && x->ndim == full->ndim && same_dims(x, 0, full, 0, outer) &&
               are_ones(x, outer, x->ndim);
    case TD_ROW_FLAT:
        return x->contiguous && x->ndim == outer && same_dims(x, 0, full, 0, outer);
    case TD_ROW_FULL:
        return x->contiguous && td_tensor_same_shape(x, full);
    case TD_ROW_NONE:
        break;
    }
    return false;
}

/* An input of the whole shape; NULL where these inputs are not for the kernel. */
static const td_tensor *find_full(const td_row_kernel *k, const td_value *inputs) {
    const bool recording = td_is_recording();
    for (int j = 0; j < k->ninputs; j++) {
        const td_tensor *x = td_arg_tensor(inputs[j]);
        if (!x || x->layout != TD_STRIDED || x->dtype != k->values[j].dtype ||
            (recording && td_is_followed(x)))
            return NULL;
    }
    const td_tensor *full = inputs[k->full].tensor;
    const int outer = full->ndim - k->inner;
    if (outer < 0 || (k->outer && memcmp(full->sizes, k->outer, sizeof *k->outer * (size_t)outer)))
        return NULL;
    for (int j = 0; j < k->ninputs; j++)
        if (!is_class(k, inputs[j].tensor, (td_row_class)k->values[j].class, full) ||
            !td_device_same(td_tensor_device(inputs[j].tensor), td_tensor_device(full)))
            return NULL;
    return full;
}

/* ---- a run ---- */

typedef struct run {
    const td_row_kernel *kernel;
    td_device device;
    const td_value *inputs;
    td_tensor *results[TD_ROW_ENDS];
    int64_t rows, n, blocks;
    atomic_int failed; /* a status: a stage could not be done */
} run;

enum { SMALL = 16 * 1024 }; /* bytes of scratch that lie on the stack */

/* What stages see of a block: every value as a matrix of its rows. */
typedef struct view {
    td_tensor tensors[TD_ROW_VALUES];
    td_storage slots[TD_ROW_VALUES]; /* kernels know by storages that scratch does not overlap */
    td_tensor *at[TD_ROW_VALUES];
    _Alignas(64) unsigned char small[SMALL];
} view;

static int64_t width_of(const run *r, const td_row_value *v) {
    return v->class == TD_ROW_FULL ? r->n : 1;
}

/* Scratch has the size of the largest block. */
static int64_t slot_bytes(const run *r, const td_row_value *v) {
    int64_t most = (r->rows + r->blocks - 1) / r->blocks;
    return (most * width_of(r, v) * (int64_t)td_dtype_size((td_dtype)v->dtype) + 63) & ~63;
}

static void set_up(td_tensor *x, td_dtype dtype, td_storage *storage, void *data) {
    *x = (td_tensor){
        .dtype = dtype, .layout = TD_STRIDED, .contiguous = true, .data = data, .storage = storage};
    atomic_init(&x->refs, 1);
    x->sizes = x->inline_dims;
    x->strides = x->inline_dims + TD_INLINE_DIMS;
}

static void set_matrix(td_tensor *x, int64_t rows, int64_t width) {
    x->ndim = 2;
    x->sizes[0] = rows;
    x->sizes[1] = width;
    x->strides[0] = width;
    x->strides[1] = 1;
    x->numel = rows * width;
}

static void set_slot(td_storage *s, td_device device, void *data, int64_t bytes) {
    *s = (td_storage){.device = device, .data = data, .bytes = (size_t)bytes};
    atomic_init(&s->refs, 1);
}

/* What does not change from block to block. */
static void lay_out(const run *r, view *w, char *scratch) {
    const td_row_kernel *k = r->kernel;
    int64_t offsets[TD_ROW_VALUES + 1] = {0};
    for (int j = 0; j < k->nslots; j++)
        offsets[j + 1] = offsets[j] + slot_bytes(r, &k->slots[j]);
    for (int j = 0; j < k->nslots; j++)
        set_slot(&w->slots[j], r->device, scratch + offsets[j], offsets[j + 1] - offsets[j]);
    for (int j = 0; j < k->nvalues; j++) {
        const td_row_value *v = &k->values[j];
        td_tensor *x = &w->tensors[j];
        w->at[j] = x;
        if (j < k->ninputs && v->class == TD_ROW_ONE) {
            w->at[j] = r->inputs[j].tensor;
        } else if (j < k->ninputs || v->output >= 0) {
            td_tensor *whole = j < k->ninputs ? r->inputs[j].tensor : r->results[v->output];
            set_up(x, (td_dtype)v->dtype, whole->storage, whole->data);
        } else {
            td_storage *slot = &w->slots[v->slot];
            set_up(x, (td_dtype)v->dtype, slot, slot->data);
        }
        if (v->class == TD_ROW_VEC)
            set_matrix(x, 1, r->n);
    }
}

static void move_to(const run *r, view *w, int64_t first, int64_t rows) {
    const td_row_kernel *k = r->kernel;
    for (int j = 0; j < k->nvalues; j++) {
        const td_row_value *v = &k->values[j];
        if (v->class == TD_ROW_ONE || v->class == TD_ROW_VEC)
            continue;
        td_tensor *x = &w->tensors[j];
        const td_tensor *whole = j < k->ninputs   ? r->inputs[j].tensor
                                 : v->output >= 0 ? r->results[v->output]
                                                  : NULL;
        int64_t width = width_of(r, v), size = (int64_t)td_dtype_size((td_dtype)v->dtype);
        if (whole)
            x->data = (char *)whole->data + first * width * size;
        set_matrix(x, rows, width);
    }
}

static td_status run_pointwise(const run *r, const td_row_stage *s, view *w) {
    td_operand operands[TD_ROW_ENDS];
    td_tensor *outs[TD_ROW_ENDS];
    for (int j = 0; j < s->nin; j++)
        operands[j] = (td_operand){.tensor = w->at[s->in[j]]};
    for (int j = 0; j < s->nout; j++)
        outs[j] = w->at[s->out[j]];
    td_pointwise_plan plan = {.program = td_script_kernel_program(s->kernel),
                              .operands = operands,
                              .compute = s->compute,
                              .nlists = 1,
                              .outs = outs};
    return TD_RUN(r->device, pointwise, &plan);
}

/* The operator's own rule and kernel, on tensors that are there. */
static td_status run_along(const run *r, const td_row_stage *s, view *w) {
    static const int64_t inner = 1;
    td_value args[TD_MAX_PARAMS];
    td_meta meta = {.dtype = TD_DTYPE_NONE, .device = r->device, .ndim = -1};
    _Alignas(16) unsigned char plan[TD_PLAN_BYTES];
    const td_op *op = td_row_arguments(s->node, &inner, args);
    td_tensor *out = w->at[s->out[0]];
    td_call call = {.op = op, .args = args, .device = r->device, .plan = plan, .out = {out}};
    for (int j = 0; j < s->nin; j++)
        args[j].tensor = w->at[s->in[j]];
    td_status status = op->rule(&call, &meta);
    if (status)
        return status;
    if (meta.dtype != out->dtype || meta.ndim != 2 || meta.sizes[0] != out->sizes[0] ||
        meta.sizes[1] != out->sizes[1])
        return td_fail(TD_EINTERNAL, "%s makes something else of a block", op->name);
    return op->kernel(&call);
}

static void run_blocks(void *ctx, int64_t begin, int64_t end, int worker) {
    run *r = ctx;
    const td_row_kernel *k = r->kernel;
    view w;
    td_storage *scratch = NULL;
    int64_t bytes = 0;
    td_status status = TD_OK;
    (void)worker;
    for (int j = 0; j < k->nslots; j++)
        bytes += slot_bytes(r, &k->slots[j]);
    if (bytes > SMALL)
        status = td_storage_empty(r->device, (size_t)bytes, &scratch);
    if (status == TD_OK)
        lay_out(r, &w, scratch ? scratch->data : (char *)w.small);
    for (int64_t b = begin; b < end && status == TD_OK; b++) {
        int64_t first = r->rows / r->blocks * b + r->rows % r->blocks * b / r->blocks;
        int64_t last =
            r->rows / r->blocks * (b + 1) + r->rows % r->blocks * (b + 1) / r->blocks;
        move_to(r, &w, first, last - first);
        for (int j = 0; j < k->nstages && status == TD_OK; j++)
            status = k->stages[j].kernel ? run_pointwise(r, &k->stages[j], &w)
                                         : run_along(r, &k->stages[j], &w);
    }
    if (scratch)
        td_storage_release(scratch);
    if (status)
        atomic_store_explicit(&r->failed, (int)status, memory_order_relaxed);
}

static td_status run_all(td_device device, void *plan) {
    run *r = plan;
    (void)device;
    return td_parallel_for(r->blocks, r->rows / r->blocks * r->n * r->kernel->cost, run_blocks, r);
}

static td_status make_results(const td_row_kernel *k, const td_tensor *full, run *r) {
    int64_t sizes[TD_MAX_DIMS];
    td_status status = TD_OK;
    for (int j = 0; j < k->noutputs && status == TD_OK; j++) {
        const td_row_value *v = &k->values[k->outputs[j]];
        int outer = full->ndim - k->inner, ndim = v->class == TD_ROW_FLAT ? outer : full->ndim;
        for (int d = 0; d < ndim; d++)
            sizes[d] = d < outer || v->class == TD_ROW_FULL ? full->sizes[d] : 1;
        status = td_tensor_empty((td_dtype)v->dtype, r->device, ndim, sizes, &r->results[j]);
    }
    return status;
}

td_status td_row_kernel_run(const td_row_kernel *k, const td_value *inputs, td_value *outputs,
                            bool *taken) {
    run r = {.kernel = k, .inputs = inputs, .rows = 1, .n = 1};
    bool plain = !td_modes_current.casting && !td_modes_current.dispatcher;
    const td_tensor *full = plain ? find_full(k, inputs) : NULL;
    *taken = false;
    if (!full || full->numel == 0)
        return TD_OK;
    r.device = td_tensor_device(full);
    for (int d = 0; d < full->ndim; d++)
        *(d < full->ndim - k->inner ? &r.rows : &r.n) *= full->sizes[d];
    r.blocks = r.device.type == TD_CPU ? td_row_blocks(r.rows, r.n) : 0;
    if (r.blocks == 0)
        return TD_OK;
    atomic_init(&r.failed, TD_OK);
    td_status status = make_results(k, full, &r);
    td_lists_run observed = {.name = "fused",
                             .device = r.device,
                             .n = k->noutputs,
                             .results = r.results,
                             .run = run_all,
                             .plan = &r};
    if (status == TD_OK)
        status = td_lists_run_observed(&observed);
    *taken = status == TD_OK && atomic_load_explicit(&r.failed, memory_order_relaxed) == TD_OK;
    for (int j = 0; j < k->noutputs; j++) {
        if (*taken)
            outputs[j] = TD_T(r.results[j]);
        else
            td_release(r.results[j]);
    }
    return status;
}

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

/* The whole shape. */
typedef struct extent {
    int ndim, outer; /* dims; those of rows */
    int64_t sizes[TD_MAX_DIMS];
    int64_t rows, n;
} extent;

/* Are these dims of size 1? */
static bool are_ones(const td_tensor *x, int from, int to) {
    for (int d = from; d < to; d++)
        if (x->sizes[d] != 1)
            return false;
    return true;
}

/* Are n dims of a tensor, and what they are to the shape, as large? */
static bool same_dims(const td_tensor *x, int at, const extent *e, int from, int n) {
    return n == 0 || !memcmp(x->sizes + at, e->sizes + from, sizeof *x->sizes * (size_t)n);
}

/* Is a tensor what its type was to the shape? */
static bool is_class(const td_row_kernel *k, const td_tensor *x, td_row_class class,
                     const extent *e) {
    const int inner = k->inner, outer = e->outer;
    switch (class) {
    case TD_ROW_ONE:
        return x->numel == 1 && x->ndim <= (k->flat ? outer : e->ndim);
    case TD_ROW_VEC:
        return x->contiguous && x->ndim >= inner && x->ndim <= e->ndim &&
               are_ones(x, 0, x->ndim - inner) && same_dims(x, x->ndim - inner, e, outer, inner);
    case TD_ROW_ROW:
        return x->contiguous && x->ndim == e->ndim && same_dims(x, 0, e, 0, outer) &&
               are_ones(x, outer, x->ndim);
    case TD_ROW_FLAT:
        return x->contiguous && x->ndim == outer && same_dims(x, 0, e, 0, outer);
    case TD_ROW_FULL:
        return x->contiguous && x->ndim == e->ndim && same_dims(x, 0, e, 0, e->ndim);
    case TD_ROW_TABLE:
        return x->contiguous && x->ndim == inner + 1 && same_dims(x, 1, e, outer, inner);
    case TD_ROW_PART:
        return x->contiguous && x->ndim == e->ndim && same_dims(x, 0, e, 0, outer);
    case TD_ROW_NONE:
    case TD_ROW_TOTAL:
        break;
    }
    return false;
}

/* What an input of the whole shape says, or numbers of rows and a table, or parts of rows. */
static void find_sizes(const td_row_kernel *k, const td_value *inputs, extent *e) {
    const td_tensor *table = k->full < 0 && k->table >= 0 ? inputs[k->table].tensor : NULL;
    const bool joined = k->full < 0 && !table;
    const int first = k->full >= 0 ? k->full : table ? k->index : k->parts->in[0];
    const td_tensor *rows = inputs[first].tensor;
    e->ndim = rows->ndim;
    memcpy(e->sizes, rows->sizes, sizeof *e->sizes * (size_t)rows->ndim);
    for (int d = 1; table && d < table->ndim && e->ndim < TD_MAX_DIMS; d++)
        e->sizes[e->ndim++] = table->sizes[d];
    for (int p = 1; joined && e->ndim > 0 && p < k->parts->nin; p++) {
        const td_tensor *part = inputs[k->parts->in[p]].tensor;
        e->sizes[e->ndim - 1] += part->ndim == e->ndim ? part->sizes[e->ndim - 1] : 0;
    }
}

/* False where these inputs are not for the kernel. */
static bool find_extent(const td_row_kernel *k, const td_value *inputs, extent *e) {
    const bool recording = td_is_recording();
    for (int j = 0; j < k->ninputs; j++) {
        const td_tensor *x = td_arg_tensor(inputs[j]);
        if (!x || x->layout != TD_STRIDED || x->dtype != k->values[j].dtype ||
            td_tensor_device(x).type != TD_CPU || (recording && td_is_followed(x)))
            return false;
    }
    find_sizes(k, inputs, e);
    e->outer = k->ndim - k->inner;
    e->rows = e->n = 1;
    if (e->ndim != k->ndim ||
        (k->outer && memcmp(e->sizes, k->outer, sizeof *k->outer * (size_t)e->outer)))
        return false;
    for (int j = 0; j < k->ninputs; j++)
        if (!is_class(k, inputs[j].tensor, (td_row_class)k->values[j].class, e))
            return false;
    for (int d = 0; d < e->ndim; d++)
        *(d < e->outer ? &e->rows : &e->n) *= e->sizes[d];
    return e->rows > 0 && e->n > 0;
}

/* ---- a run ---- */

/* The loop's items are blocks of rows or, where scratch is summed up, the pieces of such sums, each
 * of which is done block by block. */
typedef struct run {
    const td_row_kernel *kernel;
    const td_value *inputs;
    td_device device;
    int64_t rows, n, items;
    int64_t piece_rows;              /* 0: items are blocks */
    td_tensor *whole[TD_ROW_VALUES]; /* what has memory of its own shape; NULL: scratch has it */
    td_tensor *results[TD_ROW_ENDS]; /* owned, as the next are */
    td_tensor *made[TD_ROW_ENDS];    /* of summed scratch, where items are blocks */
    int nmade;
    td_tensor *sums;   /* [total][piece], float64 */
    atomic_int failed; /* a status: a stage could not be done */
} run;

typedef struct span {
    int64_t first, last; /* rows */
} span;

/* Part k of n parts of a span, which are as long or a row longer. */
static span part_of(span s, int64_t k, int64_t n) {
    const int64_t rows = s.last - s.first, each = rows / n, more = rows % n;
    return (span){s.first + each * k + (k < more ? k : more),
                  s.first + each * (k + 1) + (k + 1 < more ? k + 1 : more)};
}

static span item_rows(const run *r, int64_t item) {
    if (!r->piece_rows)
        return part_of((span){0, r->rows}, item, r->items);
    const int64_t first = item * r->piece_rows, last = first + r->piece_rows;
    return (span){first, last < r->rows ? last : r->rows};
}

static int64_t blocks_of(const run *r, span item) {
    return r->piece_rows ? td_row_blocks(item.last - item.first, r->n) : 1;
}

/* Rows of the largest block. */
static int64_t most_rows(const run *r) {
    int64_t most = 0;
    for (int64_t k = 0; k < 2; k++) { /* the first is as large as all but the last */
        span item = item_rows(r, k ? r->items - 1 : 0);
        span block = part_of(item, 0, blocks_of(r, item));
        most = block.last - block.first > most ? block.last - block.first : most;
    }
    return most;
}

static int64_t width_of(const run *r, const td_row_value *v) {
    return v->class == TD_ROW_FULL ? r->n : 1;
}

/* ---- blocks ---- */

enum { SMALL = 16 * 1024 }; /* bytes of scratch that lie on the stack */

/* What stages see of a block: every value as a matrix of its rows. */
typedef struct view {
    td_tensor tensors[TD_ROW_VALUES];
    td_storage slots[TD_ROW_VALUES]; /* kernels know by storages that scratch does not overlap */
    _Alignas(64) unsigned char small[SMALL];
} view;

static int64_t slot_bytes(const run *r, const td_row_value *slot, int64_t most) {
    int64_t rows = slot->summed ? r->piece_rows : most;
    return (rows * width_of(r, slot) * (int64_t)td_dtype_size((td_dtype)slot->dtype) + 63) & ~63;
}

static void set_up(td_tensor *x, td_dtype dtype, td_storage *storage, void *data) {
    *x = (td_tensor){
        .dtype = dtype, .layout = TD_STRIDED, .contiguous = true, .data = data, .storage = storage};
    atomic_init(&x->refs, 1);
    x->sizes = x->inline_dims;
    x->strides = x->inline_dims + TD_INLINE_DIMS;
    x->numel = 1;
}

static void set_matrix(td_tensor *x, int64_t rows, int64_t width) {
    x->ndim = 2;
    x->sizes[0] = rows;
    x->sizes[1] = width;
    x->strides[0] = width;
    x->strides[1] = 1;
    x->numel = rows * width;
}

/* What does not change from block to block. */
static void lay_out(const run *r, view *w, unsigned char *scratch, int64_t most) {
    const td_row_kernel *k = r->kernel;
    for (int j = 0; j < k->nslots; j++) {
        const int64_t bytes = slot_bytes(r, &k->slots[j], most);
        w->slots[j] = (td_storage){.device = r->device, .data = scratch, .bytes = (size_t)bytes};
        atomic_init(&w->slots[j].refs, 1);
        scratch += bytes;
    }
    for (int j = 0; j < k->nvalues; j++) {
        const td_row_value *v = &k->values[j];
        td_tensor *whole = r->whole[j];
        td_storage *storage = whole ? whole->storage : v->slot >= 0 ? &w->slots[v->slot] : NULL;
        set_up(&w->tensors[j], (td_dtype)v->dtype, storage, whole ? whole->data : storage->data);
        if (v->class == TD_ROW_VEC || v->class == TD_ROW_TABLE)
            set_matrix(&w->tensors[j], whole->numel / r->n, r->n);
    }
}

/* To rows of an item. */
static void move_to(const run *r, view *w, span item, span block) {
    const td_row_kernel *k = r->kernel;
    for (int j = 0; j < k->nvalues; j++) {
        const td_row_value *v = &k->values[j];
        if (v->class == TD_ROW_ONE || v->class == TD_ROW_VEC || v->class > TD_ROW_PART ||
            v->class == TD_ROW_TABLE)
            continue;
        td_tensor *x = &w->tensors[j];
        const bool part = v->class == TD_ROW_PART;
        int64_t width = part ? r->whole[j]->numel / r->rows : width_of(r, v),
                row = width * (int64_t)td_dtype_size((td_dtype)v->dtype);
        if (r->whole[j])
            x->data = (char *)r->whole[j]->data + block.first * row;
        else if (v->summed)
            x->data = (char *)x->storage->data + (block.first - item.first) * row;
        set_matrix(x, block.last - block.first, width);
    }
}

/* ---- stages ---- */

static td_status run_pointwise(const run *r, const td_row_stage *s, view *w) {
    td_operand operands[TD_ROW_ENDS];
    td_tensor *outs[TD_ROW_ENDS];
    for (int j = 0; j < s->nin; j++)
        operands[j] = (td_operand){.tensor = &w->tensors[s->in[j]]};
    for (int j = 0; j < s->nout; j++)
        outs[j] = &w->tensors[s->out[j]];
    td_pointwise_plan plan = {.program = td_script_kernel_program(s->kernel),
                              .operands = operands,
                              .compute = s->compute,
                              .nlists = 1,
                              .outs = outs};
    return TD_RUN(r->device, pointwise, &plan);
}

/* An operator's own rule and kernel, on tensors that are there. */
static td_status run_operator(td_device device, const td_op *op, const td_value *args,
                              td_tensor *out) {
    td_meta meta = {.dtype = TD_DTYPE_NONE, .device = device, .ndim = -1};
    _Alignas(16) unsigned char plan[TD_PLAN_BYTES];
    td_call call = {.op = op, .args = args, .device = device, .plan = plan, .out = {out}};
    td_status status = op->rule(&call, &meta);
    bool fits = status == TD_OK && meta.dtype == out->dtype && meta.ndim == out->ndim;
    for (int d = 0; fits && d < meta.ndim; d++)
        fits = meta.sizes[d] == out->sizes[d];
    if (status == TD_OK && !fits)
        status = td_fail(TD_EINTERNAL, "%s makes something else of a block", op->name);
    return status ? status : op->kernel(&call);
}

static td_status run_along(const run *r, const td_row_stage *s, view *w) {
    static const int64_t inner = 1;
    td_value args[TD_MAX_PARAMS];
    const td_op *op = td_row_arguments(s->node, &inner, args);
    for (int j = 0; j < s->nin; j++)
        args[j] = TD_T(&w->tensors[s->in[j]]);
    return run_operator(r->device, op, args, &w->tensors[s->out[0]]);
}

/* A row's number may be refused, and then the operator says it. */
static td_status run_gather(const run *r, const td_row_stage *s, view *w) {
    td_tensor *index = &w->tensors[s->in[1]];
    td_value rows = TD_TENSORS(1, &index);
    index->ndim = 1;
    for (int64_t k = 0; s->positive && k < index->numel; k++)
        if (((const int64_t *)index->data)[k] < 0)
            return td_fail(TD_EINDEX, "a row from the end");
    rows.from_one = r->inputs[s->in[1]].from_one & 1;
    td_value args[] = {TD_T(&w->tensors[s->in[0]]), rows};
    return run_operator(r->device, TD_OP(index), args, &w->tensors[s->out[0]]);
}

static td_status run_cat(const run *r, const td_row_stage *s, view *w) {
    td_tensor *parts[TD_ROW_ENDS];
    for (int j = 0; j < s->nin; j++)
        parts[j] = &w->tensors[s->in[j]];
    td_value args[] = {TD_TENSORS(s->nin, parts), TD_I(1)};
    return run_operator(r->device, TD_OP(cat), args, &w->tensors[s->out[0]]);
}

static td_status run_stages(const run *r, view *w) {
    const td_row_kernel *k = r->kernel;
    td_status status = TD_OK;
    for (int j = 0; j < k->nstages && status == TD_OK; j++)
        if (!k->stages[j].total)
            status = k->stages[j].kernel   ? run_pointwise(r, &k->stages[j], w)
                     : k->stages[j].gather ? run_gather(r, &k->stages[j], w)
                     : k->stages[j].cat    ? run_cat(r, &k->stages[j], w)
                                           : run_along(r, &k->stages[j], w);
    return status;
}

/* ---- sums of all ---- */

/* Sum x, of one dim or none, by the loop that sums a whole tensor; as the operator ends where it is
 * a mean of `count` elements (0: a sum). */
static td_status sum_up(const run *r, td_tensor *x, td_tensor *out, int64_t count) {
    td_reduce_plan plan = {.x = x,
                           .out = out,
                           .mask = x->ndim > 0,
                           .compute = (td_dtype)x->dtype,
                           .reducer = TD_REDUCE_SUM,
                           .finish = count ? TD_FINISH_DIVIDE : TD_FINISH_PLAIN,
                           .param = (double)count};
    return TD_RUN(r->device, reduce, &plan);
}

static double *sums_of(const run *r, int total) {
    return (double *)r->sums->data + total * r->items;
}

/* Of a piece, in double, whatever the dtype. */
static td_status sum_piece(const run *r, view *w, span item, int64_t piece) {
    const td_row_kernel *k = r->kernel;
    td_status status = TD_OK;
    for (int j = 0, total = 0; j < k->nstages && status == TD_OK; j++) {
        if (!k->stages[j].total)
            continue;
        td_tensor x, out;
        const td_tensor *block = &w->tensors[k->stages[j].in[0]];
        const td_tensor *whole = r->whole[k->stages[j].in[0]];
        const int64_t row = r->n * (int64_t)td_dtype_size((td_dtype)block->dtype);
        set_up(&x, (td_dtype)block->dtype, block->storage,
               whole ? (char *)whole->data + item.first * row : block->storage->data);
        x.ndim = 1;
        x.sizes[0] = x.numel = (item.last - item.first) * r->n;
        x.strides[0] = 1;
        set_up(&out, TD_F64, r->sums->storage, sums_of(r, total++) + piece);
        status = sum_up(r, &x, &out, 0);
    }
    return status;
}

static td_status finish_total(const run *r, const td_row_stage *s, int total) {
    td_tensor *out = r->results[r->kernel->values[s->out[0]].output];
    if (!r->piece_rows) {
        td_value args[] = {TD_T(r->whole[s->in[0]]), TD_NIL, TD_B(false), TD_NIL};
        return run_operator(r->device, s->node->op, args, out);
    }
    double *sums = sums_of(r, total);
    for (int64_t k = 1; k < r->items; k++)
        sums[0] += sums[k];
    td_tensor all;
    set_up(&all, TD_F64, r->sums->storage, sums);
    return sum_up(r, &all, out, s->node->op == TD_OP(mean) ? r->rows * r->n : 0);
}

/* ---- the loop ---- */

static void run_items(void *ctx, int64_t begin, int64_t end, int worker) {
    run *r = ctx;
    view w;
    td_storage *scratch = NULL;
    const int64_t most = most_rows(r);
    int64_t bytes = 0;
    td_status status = TD_OK;
    (void)worker;
    for (int j = 0; j < r->kernel->nslots; j++)
        bytes += slot_bytes(r, &r->kernel->slots[j], most);
    if (bytes > SMALL)
        status = td_storage_empty(r->device, (size_t)bytes, &scratch);
    if (status == TD_OK)
        lay_out(r, &w, scratch ? scratch->data : w.small, most);
    for (int64_t at = begin; at < end && status == TD_OK; at++) {
        const span item = item_rows(r, at);
        const int64_t blocks = blocks_of(r, item);
        for (int64_t b = 0; b < blocks && status == TD_OK; b++) {
            move_to(r, &w, item, part_of(item, b, blocks));
            status = run_stages(r, &w);
        }
        if (status == TD_OK && r->piece_rows)
            status = sum_piece(r, &w, item, at);
    }
    if (scratch)
        td_storage_release(scratch);
    if (status)
        atomic_store_explicit(&r->failed, (int)status, memory_order_relaxed);
}

static td_status run_all(td_device device, void *plan) {
    run *r = plan;
    const td_row_kernel *k = r->kernel;
    (void)device;
    td_status status = td_parallel_for(r->items, r->rows * r->n / r->items * k->cost, run_items, r);
    for (int j = 0, total = 0; j < k->nstages && status == TD_OK && !r->failed; j++)
        if (k->stages[j].total)
            atomic_store_explicit(&r->failed, (int)finish_total(r, &k->stages[j], total++),
                                  memory_order_relaxed);
    return status;
}

/* ---- memory ---- */

static td_status make_tensor(const run *r, const extent *full, const td_row_value *v,
                             td_tensor **out) {
    int64_t sizes[TD_MAX_DIMS];
    const int outer = full->outer;
    const int ndim = v->class == TD_ROW_TOTAL ? 0 : v->class == TD_ROW_FLAT ? outer : full->ndim;
    for (int d = 0; d < ndim; d++)
        sizes[d] = d < outer || v->class == TD_ROW_FULL ? full->sizes[d] : 1;
    return td_tensor_empty((td_dtype)v->dtype, r->device, ndim, sizes, out);
}

/* Is something summed that is nowhere else? */
static bool sums_scratch(const run *r) {
    const td_row_kernel *k = r->kernel;
    for (int j = 0; j < k->nvalues; j++)
        if (k->values[j].summed && !r->whole[j])
            return true;
    return false;
}

/* The items: pieces of sums where these are of whole rows, else blocks. False: the rows are not to
 * be parted. */
static bool choose_items(run *r) {
    const int64_t count = r->rows * r->n, piece = td_reduce_piece(1, count);
    const int64_t rows = piece / r->n, rest = rows ? r->rows % rows : 0;
    r->items = td_row_blocks(r->rows, r->n);
    if (r->items == 0)
        return false;
    if (!sums_scratch(r) || piece == count || piece >= 2 * TD_ROW_BLOCK_LONG || piece % r->n ||
        (r->n <= TD_ROW_BLOCK_SHORT && rest && rest < TD_ROW_BLOCK_SHORT))
        return true;
    r->piece_rows = rows;
    r->items = (r->rows + rows - 1) / rows;
    return true;
}

static td_status make_memory(run *r, const extent *full) {
    const td_row_kernel *k = r->kernel;
    td_status status = TD_OK;
    for (int j = 0; j < k->noutputs && status == TD_OK; j++) {
        status = make_tensor(r, full, &k->values[k->outputs[j]], &r->results[j]);
        r->whole[k->outputs[j]] = r->results[j];
    }
    for (int j = 0; j < k->nvalues && status == TD_OK && !r->piece_rows; j++)
        if (k->values[j].summed && !r->whole[j]) {
            status = make_tensor(r, full, &k->values[j], &r->made[r->nmade]);
            r->whole[j] = r->made[r->nmade++];
        }
    if (status == TD_OK && r->piece_rows)
        status = td_tensor_empty(TD_F64, r->device, 1, &(int64_t){k->ntotals * r->items}, &r->sums);
    return status;
}

static td_status run_observed(run *r) {
    td_lists_run observed = {.name = r->kernel->name,
                             .device = r->device,
                             .n = r->kernel->noutputs,
                             .results = r->results,
                             .run = run_all,
                             .plan = r};
    return td_lists_run_observed(&observed);
}

td_status td_row_kernel_run(const td_row_kernel *k, const td_value *inputs, td_value *outputs,
                            bool *taken) {
    run r = {.kernel = k, .inputs = inputs, .device = TD_DEVICE_CPU};
    extent full;
    *taken = false;
    if (td_modes_current.casting || td_modes_current.dispatcher || !find_extent(k, inputs, &full))
        return TD_OK;
    r.rows = full.rows;
    r.n = full.n;
    for (int j = 0; j < k->ninputs; j++)
        r.whole[j] = inputs[j].tensor;
    if (!choose_items(&r))
        return TD_OK;
    atomic_init(&r.failed, TD_OK);
    td_status status = make_memory(&r, &full);
    if (status == TD_OK)
        status = run_observed(&r);
    *taken = status == TD_OK && r.failed == TD_OK;
    for (int j = 0; j < k->noutputs; j++) {
        if (*taken)
            outputs[j] = TD_T(r.results[j]);
        else
            td_release(r.results[j]);
    }
    for (int j = 0; j < r.nmade; j++)
        td_release(r.made[j]);
    td_release(r.sums);
    return status;
}

/* index.c: indexing with tensors, gather, scatter, and adding through strides: which kernel, and
 * how it finds its elements.
 *
 * Places that are named several times are written in row-major order of what is written, which is
 * the CPU's order, so that results are the same bits in every run: by one thread where few rows, or
 * many lines side by side, allow it; else the rows are put in the order of their places first. */
#include "engine/cuda/cuda.h"
#include "engine/cuda/index/combine.h"
#include "engine/cuda/limits.h"

static int64_t at_least_one(int64_t n) {
    return n > 0 ? n : 1;
}

/* ---- indices ---- */

static td_status set_picks(td_cu_picks *to, const td_index_plan *p, bool writes) {
    td_status status = TD_OK;
    to->n = p->nindexed;
    for (int k = 0; k < p->nindexed && status == TD_OK; k++) {
        to->index[k] = p->index[k]->data;
        to->sizes[k] = p->index_sizes[k];
        to->strides[k] = p->index_strides[k];
        status = td_cuda_report(p->stream, TD_EINDEX,
                                td_cuda_out_of_range(p->index_dims[k], writes), &to->report[k]);
    }
    return status;
}

/* Only the indices are looked at: there is nothing to read or write. */
static td_status check_picks(const td_cu_picks *picks, int64_t places, cudaStream_t s) {
    if (places == 0 || places > UINT32_MAX)
        return TD_OK;
    return td_cuda_status(td_cu_picked_keys(picks, (uint32_t)places, 0, NULL, s),
                          "checking indices");
}

/* ---- reading ---- */

static bool all_divide(int64_t by, const td_cu_dims *dims, const td_cu_picks *picks) {
    for (int d = 0; d < dims->ndim; d++)
        if (dims->strides[d] % by)
            return false;
    for (int k = 0; k < picks->n; k++)
        if (picks->strides[k] % by)
            return false;
    return true;
}

/* Rows without gaps go 16 bytes at a time where they can. */
static void widen(td_cu_index_read *r) {
    int64_t by = 16 / r->itemsize;
    bool aligned = (((uintptr_t)r->x | (uintptr_t)r->out) & 15) == 0;
    if (!aligned || r->after.ndim != 1 || r->after.strides[0] != 1 || r->after_n % by ||
        !all_divide(by, &r->before, &r->picks))
        return;
    r->itemsize = 16;
    r->after_n /= by;
    r->after.sizes[0] /= by;
    for (int d = 0; d < r->before.ndim; d++)
        r->before.strides[d] /= by;
    for (int k = 0; k < r->picks.n; k++)
        r->picks.strides[k] /= by;
}

td_status td_cuda_index_read(const td_index_plan *p) {
    td_cu_index_read r = {.out = p->out->data,
                          .x = p->x->data,
                          .itemsize = (int)td_tensor_itemsize(p->x),
                          .before_n = p->before,
                          .places = p->places,
                          .after_n = p->after};
    cudaStream_t s;
    td_status status;
    TD_TRY(td_cuda_begin(p->stream, 2 + p->nindexed, p->tensors, &s));
    TD_TRY(set_picks(&r.picks, p, false));
    td_cu_dims_set(&r.before, p->nbefore, p->before_sizes, p->before_strides);
    td_cu_dims_set(&r.after, p->nafter, p->after_sizes, p->after_strides);
    if (p->out->numel == 0)
        return check_picks(&r.picks, p->places, s);
    widen(&r);
    status = td_cuda_status(td_cu_index_read_run(&r, s), "reading at indices");
done:
    return status;
}

/* ---- writing ---- */

static td_status run_fallback(const void *plan) {
    return td_backends[TD_CPU]->index_write(plan);
}

static int64_t count_rows(const td_index_plan *p) {
    int64_t rows = 1;
    for (int k = 0; k < p->nindexed; k++)
        rows *= p->index_sizes[k];
    return rows;
}

static td_status write_serial(const td_index_plan *p, const td_cu_picks *picks, cudaStream_t s) {
    td_cu_serial_write w = {.to = p->out->data,
                            .from = p->x->data,
                            .dtype = p->out->dtype,
                            .accumulate = p->accumulate,
                            .before_n = p->before,
                            .places = p->places,
                            .after_n = p->after,
                            .picks = *picks};
    td_cu_dims_set(&w.before, p->nbefore, p->before_sizes, p->before_strides);
    td_cu_dims_set(&w.after, p->nafter, p->after_sizes, p->after_strides);
    return td_cuda_status(td_cu_write_serial(&w, s), "writing at indices");
}

/* The last of the rows with a key is written: no order is needed to find it. */
static td_status put_last(td_cu_combination *c, const uint32_t *keys, td_stream stream,
                          cudaStream_t s) {
    td_cuda_scratch last;
    td_status status = td_cuda_scratch_take(&last, stream, sizeof(uint32_t) * (size_t)c->limit);
    if (status != TD_OK)
        return status;
    c->keys = keys;
    c->last = last.data;
    status = td_cuda_status(td_cu_put_last(c, s), "writing to places");
    td_cuda_scratch_drop(&last);
    return status;
}

static td_status write_rows(const td_index_plan *p, const td_cu_picks *picks, cudaStream_t s) {
    uint32_t n = (uint32_t)p->places, limit = (uint32_t)count_rows(p);
    td_cu_combination c = {.to = p->out->data,
                           .from = p->x->data,
                           .dtype = p->out->dtype,
                           .how = TD_CU_ADD,
                           .n = n,
                           .limit = limit,
                           .before_n = p->before,
                           .after_n = p->after,
                           .sources = {1, {p->places}, {p->after}},
                           .from_before = p->places * p->after};
    td_cuda_ordered o;
    td_status status;
    td_cu_dims_set(&c.rows, p->nindexed, p->index_sizes, p->index_strides);
    td_cu_dims_set(&c.to_before, p->nbefore, p->before_sizes, p->before_strides);
    td_cu_dims_set(&c.to_after, p->nafter, p->after_sizes, p->after_strides);
    status = td_cuda_ordered_take(&o, p->stream, n, limit);
    if (status != TD_OK)
        return status;
    uint32_t *keys = o.ordering.keys[0];
    TD_TRY(td_cuda_status(td_cu_picked_keys(picks, n, limit, keys, s), "reading indices"));
    status = p->accumulate ? td_cuda_ordered_combine(&o, &c, s) : put_last(&c, keys, p->stream, s);
done:
    td_cuda_ordered_drop(&o);
    return status;
}

td_status td_cuda_index_write(const td_index_plan *p) {
    td_cu_picks picks;
    cudaStream_t s;
    td_status status;
    int64_t threads = p->before * p->after;
    bool serial = p->places <= TD_LIMIT(INDEX_SERIAL) ||
                  (p->places <= TD_LIMIT(INDEX_SERIAL_OF_MANY) && threads >= TD_LIMIT(INDEX_MANY));
    if (!serial && !td_cuda_can_order(p->places, count_rows(p)))
        return td_cuda_fall_back("index_write", p, sizeof *p, run_fallback, 2 + TD_MAX_DIMS, 1);
    TD_TRY(td_cuda_begin(p->stream, 2 + p->nindexed, p->tensors, &s));
    TD_TRY(set_picks(&picks, p, p->x->numel > 0));
    if (p->x->numel == 0)
        return check_picks(&picks, p->places, s);
    status = serial ? write_serial(p, &picks, s) : write_rows(p, &picks, s);
done:
    return status;
}

/* ---- gather and scatter ---- */

/* `wide` is reached through the index, `narrow` goes along with it. */
static td_status set_gather(td_cu_gather *g, const td_gather_plan *p, const td_tensor *wide,
                            const td_tensor *narrow) {
    int64_t strides[TD_MAX_DIMS];
    const td_tensor *index = p->index;
    *g = (td_cu_gather){.index = index->data,
                        .itemsize = (int)td_tensor_itemsize(wide),
                        .n = index->numel,
                        .size = wide->ndim ? wide->sizes[p->dim] : 1,
                        .stride = wide->ndim ? wide->strides[p->dim] : 0};
    for (int d = 0; d < index->ndim; d++)
        strides[d] = d == p->dim || d >= wide->ndim ? 0 : wide->strides[d];
    td_cu_dims_set(&g->index_dims, index->ndim, index->sizes, index->strides);
    td_cu_dims_set(&g->narrow, index->ndim, index->sizes, narrow->strides);
    td_cu_dims_set(&g->wide, index->ndim, index->sizes, strides);
    return td_cuda_report(p->stream, TD_EINDEX, td_cuda_out_of_range(p->dim, wide == p->out),
                          &g->report);
}

td_status td_cuda_gather(const td_gather_plan *p) {
    td_cu_gather g;
    cudaStream_t s;
    td_status status;
    TD_TRY(td_cuda_begin(p->stream, 3, p->tensors, &s));
    if (p->index->numel == 0)
        goto done;
    TD_TRY(set_gather(&g, p, p->x, p->out));
    g.out = p->out->data;
    g.x = p->x->data;
    status = td_cuda_status(td_cu_gather_run(&g, s), "gathering");
done:
    return status;
}

static td_status run_scatter(const void *plan) {
    return td_backends[TD_CPU]->scatter(plan);
}

/* How many elements from x's first one on its memory has. */
static int64_t reach_of(const td_tensor *x) {
    int64_t reach = 1;
    for (int d = 0; d < x->ndim; d++)
        reach += (x->sizes[d] - 1) * x->strides[d];
    return reach;
}

static void without_dim(td_cu_dims *to, int dim, const td_tensor *index, const int64_t *strides) {
    int64_t sizes[TD_MAX_DIMS], kept[TD_MAX_DIMS];
    int n = 0;
    for (int d = 0; d < index->ndim; d++)
        if (d != dim) {
            sizes[n] = index->sizes[d];
            kept[n++] = strides[d];
        }
    td_cu_dims_set(to, n, sizes, kept);
}

static td_status scatter_lines(const td_gather_plan *p, const td_cu_gather *g, int64_t lines,
                               cudaStream_t s) {
    const td_tensor *index = p->index;
    bool flat = index->ndim == 0;
    td_cu_written_lines l = {.index = index->data,
                             .to = p->out->data,
                             .from = p->x->data,
                             .dtype = p->out->dtype,
                             .how = (int)p->how,
                             .lines = lines,
                             .length = flat ? 1 : index->sizes[p->dim],
                             .size = g->size,
                             .index_step = flat ? 0 : index->strides[p->dim],
                             .from_step = flat ? 0 : p->x->strides[p->dim],
                             .to_stride = g->stride,
                             .report = g->report};
    without_dim(&l.index_dims, p->dim, index, index->strides);
    without_dim(&l.from_dims, p->dim, index, p->x->strides);
    without_dim(&l.to_dims, p->dim, index, p->out->strides);
    return td_cuda_status(td_cu_write_lines(&l, s), "scattering");
}

static td_status scatter_rows(const td_gather_plan *p, const td_cu_gather *g, cudaStream_t s) {
    uint32_t n = (uint32_t)g->n, limit = (uint32_t)reach_of(p->out);
    td_cu_combination c = {.to = p->out->data,
                           .from = p->x->data,
                           .dtype = p->out->dtype,
                           .how = (int)p->how,
                           .n = n,
                           .limit = limit,
                           .before_n = 1,
                           .after_n = 1,
                           .rows = {1, {limit}, {1}},
                           .sources = g->narrow};
    td_cuda_ordered o;
    td_status status = td_cuda_ordered_take(&o, p->stream, n, limit);
    if (status != TD_OK)
        return status;
    uint32_t *keys = o.ordering.keys[0];
    TD_TRY(td_cuda_status(td_cu_gathered_keys(g, limit, keys, s), "reading indices"));
    status = p->how == TD_COMBINE_PUT ? put_last(&c, keys, p->stream, s)
                                      : td_cuda_ordered_combine(&o, &c, s);
done:
    td_cuda_ordered_drop(&o);
    return status;
}

td_status td_cuda_scatter(const td_gather_plan *p) {
    td_cu_gather g;
    cudaStream_t s;
    td_status status;
    int64_t n = p->index->numel;
    int64_t length = p->index->ndim ? at_least_one(p->index->sizes[p->dim]) : 1;
    bool lines = length <= TD_LIMIT(INDEX_SERIAL) || n / length >= TD_LIMIT(INDEX_MANY);
    if (!lines && !td_cuda_can_order(n, reach_of(p->out)))
        return td_cuda_fall_back("scatter", p, sizeof *p, run_scatter, 3, 1);
    TD_TRY(td_cuda_begin(p->stream, 3, p->tensors, &s));
    if (n == 0)
        goto done;
    TD_TRY(set_gather(&g, p, p->out, p->x));
    status = lines ? scatter_lines(p, &g, n / length, s) : scatter_rows(p, &g, s);
done:
    return status;
}

/* ---- adding through strides ---- */

static td_status run_add_strided(const void *plan) {
    return td_backends[TD_CPU]->add_strided(plan);
}

/* Does every element have a place of its own? Where this says no it may still be so. */
static bool is_injective(const td_tensor *x, const int64_t *strides) {
    int order[TD_MAX_DIMS], n = 0;
    int64_t reach = 0;
    for (int d = 0; d < x->ndim; d++) {
        if (x->sizes[d] == 1)
            continue;
        int at = n++;
        for (; at > 0 && strides[order[at - 1]] > strides[d]; at--)
            order[at] = order[at - 1];
        order[at] = d;
    }
    for (int k = 0; k < n; k++) {
        int d = order[k];
        if (strides[d] <= reach)
            return false;
        reach += (x->sizes[d] - 1) * strides[d];
    }
    return true;
}

td_status td_cuda_add_strided(const td_add_strided_plan *p) {
    const td_tensor *x = p->x;
    int64_t n = x->numel, limit = p->out->numel;
    cudaStream_t s;
    td_cu_combination c = {.to = p->out->data,
                           .from = x->data,
                           .dtype = p->out->dtype,
                           .how = TD_CU_ADD,
                           .before_n = 1,
                           .after_n = 1,
                           .rows = {1, {limit}, {1}}};
    td_cuda_ordered o = {.scratch = {.data = NULL}};
    td_cu_dims to;
    td_status status;
    if (x->dtype != p->out->dtype || !td_cuda_can_order(n, limit))
        return td_cuda_fall_back("add_strided", p, sizeof *p, run_add_strided, 2, 1);
    TD_TRY(td_cuda_begin(p->stream, 2, p->tensors, &s));
    if (n == 0)
        return TD_OK;
    td_cu_dims_set(&c.sources, x->ndim, x->sizes, x->strides);
    td_cu_dims_set(&to, x->ndim, x->sizes, p->strides);
    TD_TRY(td_cuda_ordered_take(&o, p->stream, n, limit));
    TD_TRY(td_cuda_status(td_cu_offset_keys(&to, p->offset, (uint32_t)n, o.ordering.keys[0], s),
                          "adding"));
    c.n = (uint32_t)n;
    c.limit = (uint32_t)limit;
    c.keys = o.ordering.keys[0];
    status = is_injective(x, p->strides) ? td_cuda_status(td_cu_combine_single(&c, s), "adding")
                                         : td_cuda_ordered_combine(&o, &c, s);
done:
    td_cuda_ordered_drop(&o);
    return status;
}

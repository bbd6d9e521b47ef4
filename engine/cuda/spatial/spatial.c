/* spatial.c: windows over spatial dims: expands axes to places and weights
 * (ops/plan/axis_windows.h), brings them to the device, and runs the kernels. */
#include "engine/cuda/spatial/spatial_code.h"

#include "engine/core/memory.h"
#include "engine/cuda/cuda.h"
#include "engine/cuda/index/combine.h"
#include "engine/ops/plan/axis_windows.h"

#include <string.h>

enum { MOST_SEEN = 1 << 26 }; /* places of one axis, together, that are written out */

/* ---- tables that go to the device ---- */

/* Filled in twice: at first nothing but its length is found out. */
typedef struct table {
    char *host;
    size_t used;
    td_cuda_scratch device;
} table;

/* Where the bytes will lie on the device. */
static const void *add_bytes(table *t, const void *bytes, size_t n) {
    size_t at = t->used;
    t->used = (at + n + 15) / 16 * 16;
    if (!t->host)
        return NULL;
    memcpy(t->host + at, bytes, n);
    return (const char *)t->device.data + at;
}

static td_status table_make(table *t, td_stream stream) {
    size_t bytes = t->used;
    t->used = 0;
    t->host = td_malloc(bytes + 16);
    if (!t->host)
        return td_fail(TD_ENOMEM, "out of memory");
    memset(t->host, 0, bytes + 16);
    return td_cuda_scratch_take(&t->device, stream, bytes + 16);
}

/* The runtime has its own copy of the host's memory when this returns. */
static td_status table_send(const table *t, cudaStream_t s) {
    return t->used == 0 ? TD_OK
                        : td_cuda_status(cudaMemcpyAsync(t->device.data, t->host, t->used,
                                                         cudaMemcpyHostToDevice, s),
                                         "copying");
}

static void table_drop(table *t) {
    td_free(t->host);
    td_cuda_scratch_drop(&t->device);
}

/* ---- axes ---- */

static int64_t count_weights(const td_taps *t) {
    int64_t most = 0;
    for (int64_t k = 0; k < t->out; k++) {
        int64_t end = t->first[k] + t->end[k] - t->begin[k];
        most = end > most ? end : most;
    }
    return most;
}

/* Sliding windows are counted out on the device. */
static void set_axis(td_cu_axis *to, const td_taps *t, table *room) {
    size_t n = (size_t)t->out;
    *to = (td_cu_axis){.in = t->in,
                       .out = t->out,
                       .step = t->step,
                       .stride = t->stride,
                       .padding = t->padding,
                       .width = t->step * (t->kernel - 1) + 1};
    if (t->kernel == 0) {
        to->begin = add_bytes(room, t->begin, n * sizeof *t->begin);
        to->end = add_bytes(room, t->end, n * sizeof *t->end);
    }
    if (t->weight) {
        to->first = add_bytes(room, t->first, n * sizeof *t->first);
        to->weight = add_bytes(room, t->weight, (size_t)count_weights(t) * sizeof *t->weight);
    }
    if (t->divisor)
        to->divisor = add_bytes(room, t->divisor, n * sizeof *t->divisor);
}

static td_status set_axes(td_cu_axis *to, const td_taps *taps, table *room, td_stream stream,
                          cudaStream_t s) {
    td_status status = TD_OK;
    for (int d = 0; d < TD_SPATIAL; d++)
        set_axis(&to[d], &taps[d], room);
    TD_TRY(table_make(room, stream));
    for (int d = 0; d < TD_SPATIAL; d++)
        set_axis(&to[d], &taps[d], room);
    status = table_send(room, s);
done:
    return status;
}

/* ---- the other way round ---- */

typedef struct seen {
    int32_t *start, *by;
    double *weight;
    int64_t total;
} seen;

static void seen_clear(seen *s) {
    td_free(s->start);
    td_free(s->by);
    td_free(s->weight);
}

static int64_t count_seen(const td_taps *t) {
    int64_t total = 0;
    for (int64_t k = 0; k < t->out; k++)
        total += (t->end[k] - t->begin[k] + t->step - 1) / t->step;
    return total;
}

/* `divided`: by the windows' own numbers of places. */
static td_status seen_make(seen *s, const td_taps *t, bool divided) {
    s->total = count_seen(t);
    s->start = td_calloc((size_t)t->in + 2, sizeof *s->start);
    s->by = td_malloc((size_t)(s->total + 1) * sizeof *s->by);
    s->weight = td_malloc((size_t)(s->total + 1) * sizeof *s->weight);
    if (!s->start || !s->by || !s->weight)
        return td_fail(TD_ENOMEM, "out of memory");
    int32_t *start = s->start;
    for (int64_t k = 0; k < t->out; k++)
        for (int64_t p = t->begin[k]; p < t->end[k]; p += t->step)
            start[p + 2]++;
    for (int64_t p = 1; p < t->in + 2; p++) /* start[p + 1]: where p's begin, until they are set */
        start[p] += start[p - 1];
    for (int64_t k = 0; k < t->out; k++)
        for (int64_t p = t->begin[k]; p < t->end[k]; p += t->step) {
            int32_t at = start[p + 1]++;
            s->by[at] = (int32_t)k;
            s->weight[at] =
                td_tap_weight(t, k, p - t->begin[k]) / (divided ? td_tap_divisor(t, k) : 1);
        }
    return TD_OK;
}

static void set_seen(td_cu_seen *to, const td_taps *t, const seen *s, table *room) {
    size_t n = (size_t)s->total;
    to->in = t->in;
    to->out = t->out;
    to->start = add_bytes(room, s->start, ((size_t)t->in + 1) * sizeof *s->start);
    to->by = add_bytes(room, s->by, n * sizeof *s->by);
    to->weight = add_bytes(room, s->weight, n * sizeof *s->weight);
}

static td_status set_all_seen(td_cu_spread *r, const td_taps *taps, const seen *all, table *room,
                              td_stream stream, cudaStream_t s) {
    td_status status = TD_OK;
    for (int d = 0; d < TD_SPATIAL; d++)
        set_seen(&r->axis[d], &taps[d], &all[d], room);
    TD_TRY(table_make(room, stream));
    for (int d = 0; d < TD_SPATIAL; d++)
        set_seen(&r->axis[d], &taps[d], &all[d], room);
    status = table_send(room, s);
done:
    return status;
}

/* ---- sums ---- */

static td_status run_on_cpu(const void *plan) {
    return td_backends[TD_CPU]->resample(plan);
}

static td_status spread(const td_resample_plan *p, const td_taps *taps, table *room,
                        cudaStream_t s) {
    seen all[TD_SPATIAL];
    td_cu_spread r = {.out = p->out->data,
                      .x = p->x->data,
                      .dtype = p->out->dtype,
                      .n = p->out->numel,
                      .inner = p->inner,
                      .divisor = p->divisor ? (double)p->divisor : 1};
    td_status status = TD_OK;
    memset(all, 0, sizeof all);
    for (int d = 0; d < TD_SPATIAL; d++)
        TD_TRY(seen_make(&all[d], &taps[d], p->divisor == 0));
    TD_TRY(set_all_seen(&r, taps, all, room, p->stream, s));
    status = td_cuda_status(td_cu_spread_run(&r, s), "summing over windows");
done:
    for (int d = 0; d < TD_SPATIAL; d++)
        seen_clear(&all[d]);
    return status;
}

static td_status sum(const td_resample_plan *p, const td_taps *taps, table *room, cudaStream_t s) {
    td_cu_resample r = {.out = p->out->data,
                        .x = p->x->data,
                        .dtype = p->out->dtype,
                        .itemsize = (int)td_tensor_itemsize(p->out),
                        .n = p->out->numel,
                        .inner = p->inner,
                        .divisor = (double)p->divisor};
    bool single = p->divisor == 0;
    for (int d = 0; d < TD_SPATIAL; d++)
        single = single && taps[d].single;
    td_status status = set_axes(r.axis, taps, room, p->stream, s);
    return status != TD_OK
               ? status
               : td_cuda_status(single ? td_cu_resample_move(&r, s) : td_cu_resample_run(&r, s),
                                "summing over windows");
}

td_status td_cuda_resample(const td_resample_plan *p) {
    table room = {.host = NULL, .device = {.data = NULL}};
    td_taps taps[TD_SPATIAL];
    cudaStream_t s;
    td_status status = td_cuda_begin(p->stream, 2, p->tensors, &s);
    if (status != TD_OK || p->out->numel == 0)
        return status;
    status = td_taps_init_all(taps, p->axis);
    if (status != TD_OK)
        return status;
    bool fits = true;
    for (int d = 0; d < TD_SPATIAL && p->transposed; d++)
        fits = fits && count_seen(&taps[d]) <= MOST_SEEN;
    if (fits)
        status = p->transposed ? spread(p, taps, &room, s) : sum(p, taps, &room, s);
    table_drop(&room);
    td_taps_clear_all(taps);
    return fits ? status : td_cuda_fall_back("resample", p, sizeof *p, run_on_cpu, 2, 1);
}

/* ---- maxima ---- */

static td_status pool(const td_max_pool_plan *p, td_cu_max_pool *m, cudaStream_t s) {
    table room = {.host = NULL, .device = {.data = NULL}};
    td_taps taps[TD_SPATIAL];
    td_status status = td_taps_init_all(taps, p->axis);
    if (status != TD_OK)
        return status;
    TD_TRY(set_axes(m->axis, taps, &room, p->stream, s));
    status = td_cuda_status(td_cu_max_pool_run(m, s), "finding maxima");
done:
    table_drop(&room);
    td_taps_clear_all(taps);
    return status;
}

/* Several windows may have their maximum in one place: sums go in the windows' order. */
static td_status give_back(const td_max_pool_plan *p, td_cu_max_pool *m, cudaStream_t s) {
    int64_t n = p->x->numel, limit = p->out->numel;
    td_cu_combination c = {.to = p->out->data,
                           .from = p->x->data,
                           .dtype = p->out->dtype,
                           .how = TD_CU_ADD,
                           .wide = 1,
                           .limit = (uint32_t)limit,
                           .before_n = 1,
                           .after_n = 1,
                           .rows = {1, {limit}, {1}},
                           .sources = {1, {n}, {1}}};
    td_cuda_ordered o;
    td_status status = td_cuda_ordered_take(&o, p->stream, n, limit);
    if (status != TD_OK)
        return status;
    TD_TRY(td_cuda_status(td_cu_max_keys(m, (uint32_t)limit, o.ordering.keys[0], s),
                          "reading places"));
    status = td_cuda_ordered_combine(&o, &c, s);
done:
    td_cuda_ordered_drop(&o);
    return status;
}

/* The same where the windows are known: each place asks those that see it. */
static td_status give_back_in_windows(const td_max_pool_plan *p, td_cu_max_pool *m,
                                      cudaStream_t s) {
    m->n = p->out->numel;
    for (int d = 0; d < TD_SPATIAL; d++) {
        const td_axis *a = &p->axis[d];
        m->axis[d] = (td_cu_axis){.in = a->in,
                                  .out = a->out,
                                  .step = a->dilation,
                                  .stride = a->stride,
                                  .padding = a->padding,
                                  .width = a->dilation * (a->kernel - 1) + 1};
    }
    return td_cuda_status(td_cu_max_windows_run(m, s), "giving back to maxima");
}

static td_status run_max_pool(const void *plan) {
    return td_backends[TD_CPU]->max_pool(plan);
}

td_status td_cuda_max_pool(const td_max_pool_plan *p) {
    const td_axis *a = p->axis;
    const td_tensor *small = p->kind == TD_MAX_SCATTER ? p->x : p->out;
    td_cu_max_pool m = {.out = p->out->data,
                        .x = p->x->data,
                        .places = p->places ? p->places->data : NULL,
                        .dtype = p->out->dtype,
                        .itemsize = (int)td_tensor_itemsize(p->out),
                        .n = small->numel,
                        .inner = p->inner,
                        .large = a[0].in * a[1].in * a[2].in,
                        .small = a[0].out * a[1].out * a[2].out};
    cudaStream_t s;
    td_status status;
    if (p->kind == TD_MAX_SCATTER && !p->in_windows &&
        !td_cuda_can_order(p->x->numel, p->out->numel))
        return td_cuda_fall_back("max_pool", p, sizeof *p, run_max_pool, 3, 2);
    TD_TRY(td_cuda_begin(p->stream, 3, p->tensors, &s));
    if (small->numel == 0)
        goto done;
    switch (p->kind) {
    case TD_MAX_POOL:
        status = pool(p, &m, s);
        break;
    case TD_MAX_SCATTER:
        status = p->in_windows ? give_back_in_windows(p, &m, s) : give_back(p, &m, s);
        break;
    case TD_MAX_GATHER:
        status = td_cuda_status(td_cu_max_gather_run(&m, s), "reading at places");
        break;
    }
done:
    return status;
}

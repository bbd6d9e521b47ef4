/* recurrent.c: recurrent layers, a launch for each time. What one time made the next one reads:
 * the stream's order is all that they wait for. */
#include "engine/core/interrupt.h"
#include "engine/cuda/cuda.h"
#include "engine/cuda/limits.h"
#include "engine/cuda/product/recurrent_code.h"
#include "engine/ops/make/copy.h"
#include "engine/ops/plan/recurrent_times.h"

/* Sizes and dtypes that there are kernels for. */
static bool takes(const td_tensor *states, const td_tensor *w) {
    int64_t rows = states->sizes[1], units = states->sizes[2];
    bool same = states->dtype == w->dtype;
    return rows > 0 && rows <= TD_LIMIT(RECURRENT_ROWS) && units > 0 &&
           units <= TD_LIMIT(RECURRENT_UNITS) &&
           (same || states->dtype == td_dtype_compute((td_dtype)w->dtype));
}

static td_cu_recurrent_layer layer_of(td_cell_kind kind, bool rectified, const td_tensor *states,
                                      const td_tensor *w, const td_tensor *bias) {
    return (td_cu_recurrent_layer){.kind = (int)kind,
                                   .rectified = rectified,
                                   .rows = (int)states->sizes[1],
                                   .units = (int)states->sizes[2],
                                   .dtype = w->dtype,
                                   .kept = states->dtype,
                                   .w = w->data,
                                   .bias = bias ? bias->data : NULL};
}

td_status td_cuda_recurrent(const td_recurrent_plan *p) {
    int64_t times = p->x->sizes[0];
    td_dtype dtype = (td_dtype)p->w->dtype, kept = (td_dtype)p->states->dtype;
    td_tensor *x = NULL, *h = NULL, *w = NULL, *bias = NULL, *cell = NULL;
    cudaStream_t stream;
    td_status status;
    if (!takes(p->states, p->w) || p->x->dtype != dtype || (p->bias && p->bias->dtype != dtype))
        return TD_OK;
    TD_TRY(td_cuda_begin(p->stream, 8, p->tensors, &stream));
    TD_TRY(td_contiguous(p->x, &x));
    TD_TRY(td_contiguous_as(p->h, kept, &h));
    TD_TRY(td_contiguous(p->w, &w));
    TD_TRY(td_contiguous_or_none(p->bias, dtype, &bias));
    TD_TRY(td_contiguous_or_none(p->cell, kept, &cell));
    td_cu_recurrent_time t = {.layer = layer_of(p->kind, p->rectified, p->states, w, bias),
                              .before = h->data,
                              .cell_before = cell ? cell->data : NULL};
    for (int64_t k = 0; k < times; k++) {
        int64_t at = td_time_at(p->backwards, times, k);
        TD_TRY(td_interrupt_check());
        t.x = td_part_at(x, at);
        t.state = td_part_at(p->states, at);
        t.cell = td_part_at(p->cells, at);
        t.gates = td_part_at(p->gates, at);
        TD_TRY(td_cuda_status(td_cu_run_recurrent(&t, stream), "running a recurrent layer"));
        t.before = t.state;
        t.cell_before = t.cell;
    }
    *p->done = true;
done:
    td_release(x);
    td_release(h);
    td_release(w);
    td_release(bias);
    td_release(cell);
    return status;
}

/* Row-major forms of what a way back reads, new. */
typedef struct way_back {
    td_tensor *g, *given, *begin, *w, *made, *gates;
} way_back;

static td_status open_way(const td_recurrent_backward_plan *p, way_back *r) {
    td_dtype kept = (td_dtype)p->states->dtype;
    td_tensor *begin = p->kind == TD_CELL_LSTM ? p->cell : p->h;
    td_tensor *made = p->kind == TD_CELL_LSTM ? p->cells : p->states;
    td_status status = TD_OK;
    TD_TRY(td_contiguous_or_none(p->g, kept, &r->g));
    TD_TRY(td_contiguous_or_none(p->given, kept, &r->given));
    TD_TRY(td_contiguous_as(begin, kept, &r->begin));
    TD_TRY(td_contiguous(p->w, &r->w));
    TD_TRY(td_contiguous(made, &r->made));
    status = td_contiguous_or_none(p->gates, kept, &r->gates);
done:
    return status;
}

static void close_way(way_back *r) {
    td_release(r->g);
    td_release(r->given);
    td_release(r->begin);
    td_release(r->w);
    td_release(r->made);
    td_release(r->gates);
}

td_status td_cuda_recurrent_backward(const td_recurrent_backward_plan *p) {
    int64_t times = p->states->sizes[0];
    td_tensor *of_sums = p->of_h ? p->of_h : p->of_x;
    way_back r = {.g = NULL};
    cudaStream_t stream;
    td_status status;
    if (!takes(p->states, p->w))
        return TD_OK;
    TD_TRY(td_cuda_begin(p->stream, 12, p->tensors, &stream));
    TD_TRY(open_way(p, &r));
    td_cu_recurrent_back b = {.layer = layer_of(p->kind, p->rectified, p->states, r.w, NULL),
                              .beside = p->beside ? p->beside->data : NULL};
    for (int64_t k = times - 1; k >= 0; k--) {
        int64_t at = td_time_at(p->backwards, times, k);
        TD_TRY(td_interrupt_check());
        b.g = td_part_at(r.g, at);
        b.given = td_part_at(r.given, at);
        b.made = td_part_at(r.made, at);
        b.gates = td_part_at(r.gates, at);
        b.before = k == 0 ? r.begin->data
                          : td_part_at(p->kind == TD_CELL_GRU ? p->states : r.made,
                                       td_time_at(p->backwards, times, k - 1));
        b.of_x = td_part_at(p->of_x, at);
        b.of_h = td_part_at(p->of_h, at);
        TD_TRY(td_cuda_status(td_cu_run_recurrent_back(&b, stream), "going back through time"));
        b.behind = td_part_at(of_sums, at);
    }
    if (p->before) {
        b.product = p->before->data;
        TD_TRY(td_cuda_status(td_cu_run_recurrent_back(&b, stream), "going back through time"));
    }
    *p->done = true;
done:
    close_way(&r);
    return status;
}

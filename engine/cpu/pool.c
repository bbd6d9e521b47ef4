/* pool.c: pooling of images on the CPU, plane by plane. */
#include "engine/core/memory.h"
#include "engine/core/threads.h"
#include "engine/cpu/block.h"
#include "engine/cpu/by_size.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/isa/isa.h"

/* ---- windows ---- */

static void slide(const td_pool_window *s, int32_t *begin, int32_t *end) {
    for (int64_t k = 0; k < s->out; k++) {
        int64_t from = k * s->stride - s->padding;
        int64_t to = from + s->dilation * (s->kernel - 1) + 1;
        if (from < 0)
            from += (s->dilation - 1 - from) / s->dilation * s->dilation;
        begin[k] = (int32_t)from;
        end[k] = (int32_t)(to < s->in ? to : s->in);
    }
}

/* The part of a window that lies in the padded input. */
static int64_t padded_extent(const td_pool_window *s, int64_t k) {
    int64_t from = k * s->stride - s->padding, to = from + s->kernel, end = s->in + s->padding;
    return (to < end ? to : end) - from;
}

static int64_t divisor(const td_pool_plan *p, const td_pool_windows *w, int64_t i, int64_t j) {
    if (p->divisor)
        return p->divisor;
    if (p->count_padding)
        return padded_extent(&p->window[0], i) * padded_extent(&p->window[1], j);
    return (int64_t)(w->row_end[i] - w->row_begin[i]) * (w->column_end[j] - w->column_begin[j]);
}

static bool side_by_side(const td_pool_window *s) {
    return s->kernel == 2 && s->stride == 2 && s->padding == 0 && s->dilation == 1 &&
           2 * s->out <= s->in;
}

static void windows_free(td_pool_windows *w) {
    td_free(w->row_begin);
    td_free(w->scale);
}

/* Expand the windows of a plan that has any. */
static td_status windows_make(const td_pool_plan *p, td_pool_windows *w) {
    const td_pool_window *rows = &p->window[0], *columns = &p->window[1];
    bool scaled = p->kind == TD_POOL_MEAN || p->kind == TD_POOL_MEAN_BACKWARD;
    *w = (td_pool_windows){.h = rows->in, .w = columns->in, .oh = rows->out, .ow = columns->out};
    if (p->kind == TD_POOL_SCATTER || p->kind == TD_POOL_GATHER)
        return TD_OK;
    w->row_step = rows->dilation;
    w->column_step = columns->dilation;
    w->pairs = side_by_side(rows) && side_by_side(columns);
    w->row_begin = td_malloc((size_t)(2 * w->oh + 2 * w->ow + 1) * sizeof(int32_t));
    if (scaled)
        w->scale = td_malloc((size_t)(w->oh * w->ow + 1) * sizeof(double));
    if (!w->row_begin || (scaled && !w->scale)) {
        windows_free(w);
        return td_fail(TD_ENOMEM, "out of memory");
    }
    w->row_end = w->row_begin + w->oh;
    w->column_begin = w->row_end + w->oh;
    w->column_end = w->column_begin + w->ow;
    slide(rows, w->row_begin, w->row_end);
    slide(columns, w->column_begin, w->column_end);
    for (int64_t i = 0; scaled && i < w->oh; i++)
        for (int64_t j = 0; j < w->ow; j++)
            w->scale[i * w->ow + j] = 1.0 / (double)divisor(p, w, i, j);
    return TD_OK;
}

/* ---- moves, by the size of an element ---- */

static void gather(void *to, const int32_t *places, const void *from, int64_t n, size_t size) {
#define MOVE(type)                                                                                 \
    for (int64_t k = 0; k < n; k++)                                                                \
        ((type *)to)[k] = ((const type *)from)[places[k]];
    TD_BY_SIZE(size, MOVE);
#undef MOVE
}

/* ---- planes ---- */

typedef struct planes {
    td_pool_windows windows;
    const td_pool_functions *fn; /* NULL: moves alone */
    td_pool_kind kind;
    char *large, *small;
    int32_t *places;
    size_t size;
} planes;

static void do_planes(void *ctx, int64_t begin, int64_t end, int worker) {
    const planes *j = ctx;
    const td_pool_windows *w = &j->windows;
    int64_t in = w->h * w->w, out = w->oh * w->ow;
    (void)worker;
    for (int64_t k = begin; k < end; k++) {
        char *x = j->large + (size_t)(k * in) * j->size;
        char *y = j->small + (size_t)(k * out) * j->size;
        int32_t *places = j->places ? j->places + k * out : NULL;
        switch (j->kind) {
        case TD_POOL_MAX:
            j->fn->max(y, places, x, w);
            break;
        case TD_POOL_SCATTER:
            j->fn->scatter(x, places, y, out);
            break;
        case TD_POOL_GATHER:
            gather(y, places, x, out, j->size);
            break;
        case TD_POOL_MEAN:
            j->fn->mean(y, x, w);
            break;
        case TD_POOL_MEAN_BACKWARD:
            j->fn->mean_backward(x, y, w);
            break;
        }
    }
}

td_status td_cpu_pool(const td_pool_plan *p) {
    td_dtype dtype = (td_dtype)p->out->dtype;
    bool shrinks = p->kind == TD_POOL_MAX || p->kind == TD_POOL_GATHER || p->kind == TD_POOL_MEAN;
    planes j = {.kind = p->kind,
                .fn = td_cpu->pool->of[dtype],
                .large = shrinks ? p->x->data : p->out->data,
                .small = shrinks ? p->out->data : p->x->data,
                .places = p->places ? p->places->data : NULL,
                .size = td_dtype_size(dtype)};
    if (!j.fn && p->kind != TD_POOL_GATHER)
        return td_cpu_lacks(dtype);
    td_status status = windows_make(p, &j.windows);
    if (status)
        return status;
    int64_t work = j.windows.h * j.windows.w + j.windows.oh * j.windows.ow;
    status = td_parallel_for(p->planes, 2 * work, do_planes, &j);
    windows_free(&j.windows);
    return status;
}

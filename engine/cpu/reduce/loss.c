/* loss.c: cross entropy with class targets on the CPU: one pass over the scores forward, one back,
 * without the probabilities in between. Knows nothing of reductions beyond its own sum. */
#include "engine/core/interrupt.h"
#include "engine/core/threads.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/index/indices.h"
#include "engine/cpu/isa/isa.h"
#include "engine/cpu/reduce/softmax.h"
#include "engine/ops/make/copy.h"
#include "engine/ops/op.h"

#include <stdio.h>
#include <string.h>

/* ---- classes and their weights ---- */

/* "3", or "(2, 5)" for a target of several dims; counts from 1. */
static const char *position_text(const td_tensor *target, int64_t at, char *buffer, size_t size) {
    int64_t index[TD_MAX_DIMS];
    for (int d = target->ndim - 1; d >= 0; d--) {
        index[d] = at % target->sizes[d] + 1;
        at /= target->sizes[d];
    }
    if (target->ndim > 1)
        return td_shape_text(target->ndim, index, buffer, size);
    snprintf(buffer, size, "%lld", target->ndim ? (long long)index[0] : 1LL);
    return buffer;
}

static td_status wrong_class(const td_tensor *target, int64_t at, int64_t value,
                             td_counting counting) {
    char position[TD_SHAPE_TEXT];
    if (value == 0 && counting.base)
        return td_fail(TD_EINDEX, TD_CLASS_ZERO);
    return td_fail(TD_EINDEX, "target %lld at position %s is not a class from 1 to %lld",
                   (long long)(value < 0 ? value : value + 1 - counting.base),
                   position_text(target, at, position, sizeof position), (long long)counting.size);
}

/* What the weights of a target's classes are made of. */
typedef struct weighing {
    const td_class_weights_plan *plan;
    const td_tensor *target; /* row-major int64 */
    const char *weight;      /* of each class; NULL: 1 */
    unsigned char one[8], zero[8];
    size_t size; /* of a weight */
    td_counting counting;
} weighing;

/* n classes from one on, all of them there and none ignored. */
static void weigh_plain(const weighing *w, int64_t at, int64_t n) {
    const int64_t *value = (const int64_t *)w->target->data + at;
    int64_t *class = (int64_t *)w->plan->classes->data + at;
    char *to = (char *)w->plan->weights->data + (size_t)at * w->size;
    for (int64_t k = 0; k < n; k++)
        class[k] = value[k] - w->counting.base;
    if (w->weight)
        td_cpu->places->pick(to, w->weight, class, 0, n, w->size);
    else
        td_cpu->pointwise->repeat(to, w->one, n, w->size);
}

static td_status weigh(const weighing *w, int64_t at, int64_t n) {
    const int64_t *value = w->target->data, base = w->counting.base;
    int64_t *class = w->plan->classes->data;
    for (int64_t k = at; k < at + n; k++) {
        int64_t place = value[k] > 0 ? value[k] - base : value[k];
        bool ignored = place == w->plan->ignored && (value[k] != 0 || !base);
        if (!ignored && (value[k] < base || place >= w->counting.size))
            return wrong_class(w->target, k, value[k], w->counting);
        class[k] = ignored ? 0 : place;
        const void *own = w->weight ? w->weight + (size_t) class[k] * w->size : (void *)w->one;
        memcpy((char *)w->plan->weights->data + (size_t)k * w->size, ignored ? w->zero : own,
               w->size);
    }
    return TD_OK;
}

td_status td_cpu_class_weights(const td_class_weights_plan *plan) {
    enum { BLOCK = 4096 };
    td_tensor *target = NULL, *weight = NULL;
    td_dtype dtype = (td_dtype)plan->weights->dtype;
    weighing w = {
        .plan = plan, .size = td_dtype_size(dtype), .counting = {plan->nclasses, plan->from_one}};
    td_status status = TD_OK;
    /* A device that works late reads them before anybody has looked at what this returns. */
    memset(plan->classes->data, 0, sizeof(int64_t) * (size_t)plan->classes->numel);
    td_store_double(dtype, w.one, 1);
    td_store_double(dtype, w.zero, 0);
    TD_TRY(td_contiguous_as(plan->target, TD_I64, &target));
    if (plan->weight)
        TD_TRY(td_contiguous_as(plan->weight, dtype, &weight));
    w.target = target;
    w.weight = weight ? weight->data : NULL;
    for (int64_t at = 0; at < target->numel; at += BLOCK) {
        int64_t n = target->numel - at < BLOCK ? target->numel - at : BLOCK;
        TD_TRY(td_interrupt_check());
        if (!td_is_place(plan->ignored, w.counting) &&
            td_are_plain((const int64_t *)target->data + at, n, w.counting))
            weigh_plain(&w, at, n);
        else
            TD_TRY(weigh(&w, at, n));
    }
done:
    td_release(target);
    td_release(weight);
    return status;
}

/* ---- forward ---- */

typedef struct job {
    td_class_layout layout;
    const td_softmax_functions *fns;
    const char *x;
    char *out; /* log-sum-exp per line, or the gradient */
    const char *lse, *scale;
    int64_t itemsize, wide; /* bytes of an element; of what stands for a line */
} job;

static td_status prepare(job *j, const td_tensor *x, int dim) {
    td_dtype dtype = (td_dtype)x->dtype;
    j->layout = td_class_layout_of(x, dim);
    j->x = x->data;
    j->itemsize = (int64_t)td_dtype_size(dtype);
    j->wide = (int64_t)td_dtype_size(td_dtype_wide(dtype));
    return td_softmax_functions_of(dtype, &j->fns);
}

static void lse_items(void *ctx, int64_t begin, int64_t end, int worker) {
    const job *j = ctx;
    const td_class_layout *l = &j->layout;
    int64_t size = j->itemsize, wide = j->wide;
    (void)worker;
    for (int64_t item = begin; item < end && td_class_is_short(l); item++) {
        _Alignas(64) char tile[TD_CLASS_TILE];
        td_class_turn(l, item, tile, j->x, (size_t)size);
        j->fns->lse_columns(j->out + item * TD_SOFTMAX_WIDTH * wide, tile, l->n, TD_SOFTMAX_WIDTH,
                            td_class_rows(l, item));
    }
    if (td_class_is_short(l))
        return;
    if (l->inner == 1) {
        j->fns->lse_rows(j->out + begin * wide, j->x + begin * l->n * size, end - begin, l->n);
        return;
    }
    for (int64_t item = begin; item < end; item++) {
        td_strip s = td_class_strip(l, item);
        j->fns->lse_columns(j->out + s.line * wide, j->x + s.offset * size, l->n, l->inner,
                            s.width);
    }
}

static void put_sums(td_tensor *loss, td_tensor *all, td_loss_reduction reduction, double sum,
                     double total) {
    if (reduction != TD_LOSS_NONE)
        td_store_double((td_dtype)loss->dtype, loss->data,
                        reduction == TD_LOSS_SUM ? sum : sum / total);
    td_store_double((td_dtype)all->dtype, all->data, total);
}

td_status td_cpu_cross_entropy(const td_cross_entropy_plan *plan) {
    td_tensor *x = NULL, *loss = plan->loss, *lse = plan->lse;
    bool each = plan->reduction == TD_LOSS_NONE;
    double sum, total;
    job j = {.out = lse->data};
    td_status status = TD_OK;
    TD_TRY(td_contiguous(plan->x, &x));
    TD_TRY(prepare(&j, x, plan->dim));
    const td_class_layout *l = &j.layout;
    if (x->numel > 0)
        TD_TRY(td_parallel_for(td_class_items(l), td_class_cost(l), lse_items, &j));
    sum = j.fns->pick(each ? loss->data : NULL, &total, x->data, lse->data, plan->weights->data,
                      plan->classes->data,
                      &(td_class_lines){l->outer, l->inner, l->n * l->inner, l->inner});
    TD_TRY(td_interrupt_check());
    put_sums(loss, plan->total, plan->reduction, sum, total);
done:
    td_release(x);
    return status;
}

/* A matrix is read as it lies. */
td_status td_cpu_nll(const td_nll_plan *plan) {
    const td_softmax_functions *fns;
    td_tensor *x = NULL, *loss = plan->loss;
    bool each = plan->reduction == TD_LOSS_NONE;
    double sum, total;
    td_status status = td_softmax_functions_of((td_dtype)plan->x->dtype, &fns);
    if (status)
        return status;
    if (plan->x->ndim <= 2)
        x = td_retain((td_tensor *)plan->x);
    else
        TD_TRY(td_contiguous(plan->x, &x));
    td_class_layout l = td_class_layout_of(x, plan->dim);
    td_class_lines lines = {l.outer, l.inner, l.n * l.inner, l.inner};
    if (x->ndim <= 2) {
        lines.class_step = x->strides[plan->dim];
        lines.outer_step = plan->dim > 0 ? x->strides[0] : 0;
    }
    sum = fns->pick(each ? loss->data : NULL, &total, x->data, NULL, plan->weights->data,
                    plan->classes->data, &lines);
    TD_TRY(td_interrupt_check());
    put_sums(loss, plan->total, plan->reduction, sum, total);
done:
    td_release(x);
    return status;
}

/* ---- backward ---- */

static void gradient_items(void *ctx, int64_t begin, int64_t end, int worker) {
    const job *j = ctx;
    const td_class_layout *l = &j->layout;
    int64_t size = j->itemsize, wide = j->wide;
    (void)worker;
    for (int64_t item = begin; item < end && td_class_is_short(l); item++) {
        _Alignas(64) char tile[TD_CLASS_TILE];
        int64_t line = item * TD_SOFTMAX_WIDTH * wide;
        td_class_turn(l, item, tile, j->x, (size_t)size);
        j->fns->scaled_columns(tile, tile, j->lse + line, j->scale + line, l->n, TD_SOFTMAX_WIDTH,
                               td_class_rows(l, item));
        td_class_turn_back(l, item, j->out, tile, (size_t)size);
    }
    if (td_class_is_short(l))
        return;
    if (l->inner == 1) {
        int64_t at = begin * l->n * size;
        j->fns->scaled_rows(j->out + at, j->x + at, j->lse + begin * wide, j->scale + begin * wide,
                            end - begin, l->n);
        return;
    }
    for (int64_t item = begin; item < end; item++) {
        td_strip s = td_class_strip(l, item);
        j->fns->scaled_columns(j->out + s.offset * size, j->x + s.offset * size,
                               j->lse + s.line * wide, j->scale + s.line * wide, l->n, l->inner,
                               s.width);
    }
}

td_status td_cpu_cross_entropy_backward(const td_cross_entropy_backward_plan *plan) {
    td_tensor *x = NULL, *g = NULL, *lse = NULL, *weights = NULL, *class = NULL;
    td_tensor *out = plan->out, *scale = NULL;
    td_dtype dtype = (td_dtype)out->dtype, wide = td_dtype_wide(dtype);
    job j = {.out = out->data};
    double divisor = 1;
    td_status status = TD_OK;
    TD_TRY(td_contiguous_as(plan->g, dtype, &g));
    TD_TRY(td_contiguous(plan->x, &x));
    TD_TRY(td_contiguous(plan->classes, &class));
    TD_TRY(td_contiguous(plan->weights, &weights));
    TD_TRY(td_contiguous(plan->lse, &lse));
    TD_TRY(td_tensor_empty(wide, TD_DEVICE_CPU, weights->ndim, weights->sizes, &scale));
    TD_TRY(prepare(&j, x, plan->dim));
    if (plan->reduction == TD_LOSS_MEAN)
        divisor = td_load_double((td_dtype)plan->total->dtype, plan->total->data);
    j.fns->scales(scale->data, weights->data, g->data, weights->numel,
                  plan->reduction == TD_LOSS_NONE, divisor);
    if (x->numel == 0)
        goto done;
    j.lse = lse->data;
    j.scale = scale->data;
    const td_class_layout *l = &j.layout;
    TD_TRY(td_parallel_for(td_class_items(l), td_class_cost(l), gradient_items, &j));
    j.fns->subtract(out->data, scale->data, class->data, l->outer, l->n, l->inner);
    status = td_interrupt_check();
done:
    td_release(x);
    td_release(g);
    td_release(lse);
    td_release(weights);
    td_release(class);
    td_release(scale);
    return status;
}

td_status td_cpu_nll_backward(const td_nll_backward_plan *plan) {
    const td_softmax_functions *fns;
    td_tensor *g = NULL, *weights = NULL, *class = NULL, *out = plan->out, *scale = NULL;
    td_dtype dtype = (td_dtype)out->dtype, wide = td_dtype_wide(dtype);
    double divisor = 1;
    td_status status = TD_OK;
    TD_TRY(td_softmax_functions_of(dtype, &fns));
    TD_TRY(td_fill_int(out, 0));
    TD_TRY(td_contiguous_as(plan->g, dtype, &g));
    TD_TRY(td_contiguous(plan->classes, &class));
    TD_TRY(td_contiguous(plan->weights, &weights));
    TD_TRY(td_tensor_empty(wide, TD_DEVICE_CPU, weights->ndim, weights->sizes, &scale));
    if (plan->reduction == TD_LOSS_MEAN)
        divisor = td_load_double((td_dtype)plan->total->dtype, plan->total->data);
    fns->scales(scale->data, weights->data, g->data, weights->numel,
                plan->reduction == TD_LOSS_NONE, divisor);
    if (out->numel > 0) {
        td_class_layout l = td_class_layout_of(out, plan->dim);
        fns->subtract(out->data, scale->data, class->data, l.outer, l.n, l.inner);
    }
    status = td_interrupt_check();
done:
    td_release(g);
    td_release(weights);
    td_release(class);
    td_release(scale);
    return status;
}

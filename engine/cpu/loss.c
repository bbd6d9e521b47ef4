/* loss.c: cross entropy with class targets on the CPU: one pass over the scores forward, one back,
 * without the probabilities in between. Knows nothing of reductions beyond its own sum. */
#include "engine/ops/loss.h"

#include "engine/core/memory.h"
#include "engine/core/threads.h"
#include "engine/cpu/isa/isa.h"
#include "engine/cpu/softmax.h"
#include "engine/ops/copy.h"

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

static td_status wrong_class(const td_tensor *target, int64_t at, int64_t value, int64_t classes) {
    char position[TD_SHAPE_TEXT];
    return td_fail(TD_EINDEX, "target %lld at position %s is not a class from 1 to %lld",
                   (long long)(value < 0 ? value : value + 1),
                   position_text(target, at, position, sizeof position), (long long)classes);
}

/* (target, weight, classes, ignore_index, dtype) -> weight of each item, its class with 0 in place
 * of what is ignored. */
td_status td_cpu_class_weights(td_call *call) {
    td_tensor *target = NULL, *weight = NULL;
    int64_t classes = call->args[2].i, *class = call->out[1]->data;
    bool ignores = !td_is_nil(call->args[3]), is_double = call->out[0]->dtype == TD_F64;
    void *out = call->out[0]->data;
    td_status status = TD_OK;
    TD_TRY(td_contiguous_as(call->args[0].tensor, TD_I64, &target));
    if (td_arg_tensor(call->args[1]))
        TD_TRY(td_contiguous_as(call->args[1].tensor, call->out[0]->dtype, &weight));
    const int64_t *value = target->data;
    for (int64_t k = 0; k < target->numel; k++) {
        bool ignored = ignores && value[k] == call->args[3].i;
        if (!ignored && (value[k] < 0 || value[k] >= classes)) {
            status = wrong_class(target, k, value[k], classes);
            goto done;
        }
        class[k] = ignored ? 0 : value[k];
        if (is_double)
            ((double *)out)[k] = ignored ? 0 : weight ? ((double *)weight->data)[class[k]] : 1;
        else
            ((float *)out)[k] = ignored ? 0 : weight ? ((float *)weight->data)[class[k]] : 1;
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
    int64_t itemsize;
} job;

static void lse_items(void *ctx, int64_t begin, int64_t end, int worker) {
    const job *j = ctx;
    const td_class_layout *l = &j->layout;
    int64_t size = j->itemsize;
    (void)worker;
    if (l->inner == 1) {
        j->fns->lse_rows(j->out + begin * size, j->x + begin * l->n * size, end - begin, l->n);
        return;
    }
    for (int64_t item = begin; item < end; item++) {
        td_strip s = td_class_strip(l, item);
        j->fns->lse_columns(j->out + s.line * size, j->x + s.offset * size, l->n, l->inner,
                            s.width);
    }
}

/* Loss of each line, weighted; to `each` unless it is NULL. Returns their sum. */
#define DEFINE_PICK(type)                                                                          \
    static double pick_##type(const td_class_layout *l, const type *x, const type *lse,            \
                              const type *weight, const int64_t *class, type *each,                \
                              double *total) {                                                     \
        double sum = 0;                                                                            \
        *total = 0;                                                                                \
        for (int64_t outer = 0, line = 0; outer < l->outer; outer++, x += l->n * l->inner)         \
            for (int64_t inner = 0; inner < l->inner; inner++, line++) {                           \
                type w = weight[line];                                                             \
                type loss = w == 0 ? 0 : w * (lse[line] - x[class[line] * l -> inner + inner]);    \
                if (each)                                                                          \
                    each[line] = loss;                                                             \
                sum += (double)loss;                                                               \
                *total += (double)w;                                                               \
            }                                                                                      \
        return sum;                                                                                \
    }
DEFINE_PICK(float)
DEFINE_PICK(double)

/* (x, classes, weights, reduction) -> loss, log-sum-exp per line, sum of the weights */
td_status td_cpu_cross_entropy_classes(td_call *call) {
    td_tensor *x = NULL, *lse = call->out[1], *class = call->args[1].tensor;
    const td_tensor *weight = call->args[2].tensor;
    const char *reduction = call->args[3].string;
    bool each = !strcmp(reduction, "none");
    double sum, total;
    td_status status = TD_OK;
    TD_TRY(td_contiguous(call->args[0].tensor, &x));
    job j = {.layout = td_class_layout_of(x, td_class_dim(x)),
             .fns = td_softmax_functions_of(x->dtype),
             .x = x->data,
             .out = lse->data,
             .itemsize = (int64_t)td_tensor_itemsize(x)};
    if (x->numel > 0)
        TD_TRY(
            td_parallel_for(td_class_items(&j.layout), td_class_grain(&j.layout), lse_items, &j));
    void *losses = each ? call->out[0]->data : NULL;
    if (x->dtype == TD_F64)
        sum = pick_double(&j.layout, x->data, lse->data, weight->data, class->data, losses, &total);
    else
        sum = pick_float(&j.layout, x->data, lse->data, weight->data, class->data, losses, &total);
    if (!each)
        td_store_double(x->dtype, call->out[0]->data,
                        !strcmp(reduction, "sum") ? sum : sum / total);
    td_store_double(x->dtype, call->out[2]->data, total);
done:
    td_release(x);
    return status;
}

/* ---- backward ---- */

static void gradient_items(void *ctx, int64_t begin, int64_t end, int worker) {
    const job *j = ctx;
    const td_class_layout *l = &j->layout;
    int64_t size = j->itemsize;
    (void)worker;
    if (l->inner == 1) {
        int64_t at = begin * l->n * size;
        j->fns->scaled_rows(j->out + at, j->x + at, j->lse + begin * size, j->scale + begin * size,
                            end - begin, l->n);
        return;
    }
    for (int64_t item = begin; item < end; item++) {
        td_strip s = td_class_strip(l, item);
        j->fns->scaled_columns(j->out + s.offset * size, j->x + s.offset * size,
                               j->lse + s.line * size, j->scale + s.line * size, l->n, l->inner,
                               s.width);
    }
}

#define DEFINE_STEPS(type)                                                                         \
    static void scales_##type(int64_t lines, type *scale, const type *weight, const type *g,       \
                              bool each, double divisor) {                                         \
        for (int64_t k = 0; k < lines; k++)                                                        \
            scale[k] = weight[k] == 0                                                              \
                           ? 0                                                                     \
                           : (type)((double)weight[k] * (double)g[each ? k : 0] / divisor);        \
    }                                                                                              \
    static void subtract_##type(const td_class_layout *l, type *out, const type *scale,            \
                                const int64_t *class) {                                            \
        for (int64_t outer = 0, line = 0; outer < l->outer; outer++, out += l->n * l->inner)       \
            for (int64_t inner = 0; inner < l->inner; inner++, line++)                             \
                out[class[line] * l -> inner + inner] -= scale[line];                              \
    }
DEFINE_STEPS(float)
DEFINE_STEPS(double)

/* (g, x, classes, weights, lse, total, reduction) -> (softmax(x) - onehot) * weight * g / divisor
 */
td_status td_cpu_cross_entropy_backward(td_call *call) {
    const td_value *a = call->args;
    td_tensor *x = NULL, *g = NULL, *lse = NULL, *weight = NULL, *class = NULL;
    td_tensor *out = call->out[0], *scale = NULL;
    bool each = !strcmp(a[6].string, "none");
    double divisor = 1;
    td_status status = TD_OK;
    TD_TRY(td_contiguous_as(a[0].tensor, out->dtype, &g));
    TD_TRY(td_contiguous(a[1].tensor, &x));
    TD_TRY(td_contiguous(a[2].tensor, &class));
    TD_TRY(td_contiguous(a[3].tensor, &weight));
    TD_TRY(td_contiguous(a[4].tensor, &lse));
    TD_TRY(td_tensor_empty(out->dtype, TD_DEVICE_CPU, weight->ndim, weight->sizes, &scale));
    if (!strcmp(a[6].string, "mean"))
        TD_TRY(td_tensor_item(a[5].tensor, &divisor));
    if (out->dtype == TD_F64)
        scales_double(weight->numel, scale->data, weight->data, g->data, each, divisor);
    else
        scales_float(weight->numel, scale->data, weight->data, g->data, each, divisor);
    if (x->numel == 0)
        goto done;
    job j = {.layout = td_class_layout_of(x, td_class_dim(x)),
             .fns = td_softmax_functions_of(x->dtype),
             .x = x->data,
             .out = out->data,
             .lse = lse->data,
             .scale = scale->data,
             .itemsize = (int64_t)td_tensor_itemsize(x)};
    TD_TRY(
        td_parallel_for(td_class_items(&j.layout), td_class_grain(&j.layout), gradient_items, &j));
    if (out->dtype == TD_F64)
        subtract_double(&j.layout, out->data, scale->data, class->data);
    else
        subtract_float(&j.layout, out->data, scale->data, class->data);
done:
    td_release(x);
    td_release(g);
    td_release(lse);
    td_release(weight);
    td_release(class);
    td_release(scale);
    return status;
}

/* loss.c: cross entropy with class targets, its gradient, and the weights of the targets. */
#include "engine/cuda/reduce/dim_lines.h"
#include "engine/cuda/reduce/reduction.h"
#include "engine/ops/make/copy.h"

#include <pthread.h>
#include <stdio.h>

/* ---- classes and their weights ---- */

/* What is said of a target that is no class. Messages of findings are static: one for each number
 * of classes that a program uses, as far as there is room. */
static const char *message_for(int64_t nclasses, bool line) {
    enum { KEPT = 64, LENGTH = 112 };
    static struct {
        int64_t nclasses;
        bool line;
        char text[LENGTH];
    } kept[KEPT];
    static int count;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    const char *found = "target %lld at position %lld is not a class";
    pthread_mutex_lock(&lock);
    int k = 0;
    while (k < count && (kept[k].nclasses != nclasses || kept[k].line != line))
        k++;
    if (k == count && count < KEPT) {
        kept[k].nclasses = nclasses;
        kept[k].line = line;
        snprintf(kept[k].text, LENGTH, "target %%lld at %s %%lld%s is not a class from 1 to %lld",
                 line ? "position" : "element", line ? "" : ", counted row by row,",
                 (long long)nclasses);
        count++;
    }
    if (k < count)
        found = kept[k].text;
    pthread_mutex_unlock(&lock);
    return found;
}

td_status td_cuda_class_weights(const td_class_weights_plan *p) {
    td_tensor *target = NULL, *weight = NULL;
    td_dtype dtype = (td_dtype)p->weights->dtype;
    td_cu_report report;
    cudaStream_t stream;
    td_status status;
    if (p->target->numel == 0)
        return TD_OK;
    TD_TRY(td_cuda_begin(p->stream, 4, p->tensors, &stream));
    TD_TRY(td_contiguous_as(p->target, TD_I64, &target));
    if (p->weight)
        TD_TRY(td_contiguous_as(p->weight, dtype, &weight));
    td_cu_class_weights c = {.n = target->numel,
                             .nclasses = p->nclasses,
                             .ignored = p->ignored,
                             .target = target->data,
                             .weight = weight ? weight->data : NULL,
                             .weights = p->weights->data,
                             .classes = p->classes->data,
                             .dtype = dtype};
    TD_TRY(
        td_cuda_report(p->stream, TD_EINDEX, message_for(p->nclasses, target->ndim < 2), &report));
    TD_TRY(td_cuda_status(td_cu_run_class_weights(&c, report, stream), "checking classes"));
done:
    td_release(target);
    td_release(weight);
    return status;
}

/* ---- losses ---- */

/* All lines behind one output. */
static td_cu_reduction over_lines(int64_t n) {
    td_cu_reduction s = {.nkept = 1, .nreduced = 1, .outputs = 1, .count = n};
    s.kept_sizes[0] = 1;
    s.reduced_sizes[0] = n;
    s.reduced_strides[0] = 1;
    td_cuda_reduction_spread(&s);
    return s;
}

td_status td_cuda_cross_entropy(const td_cross_entropy_plan *p) {
    td_tensor *x = NULL;
    td_cuda_scratch partial = {.data = NULL};
    td_cu_lines lines = td_cuda_lines_of(p->x, p->dim);
    td_cu_reduction s = over_lines(lines.outer * lines.inner);
    cudaStream_t stream;
    td_status status;
    TD_TRY(td_cuda_begin(p->stream, 6, p->tensors, &stream));
    TD_TRY(td_contiguous(p->x, &x));
    td_cu_cross_entropy c = {.lines = lines,
                             .dtype = x->dtype,
                             .x = x->data,
                             .lse = p->lse->data,
                             .classes = p->classes->data,
                             .weights = p->weights->data,
                             .loss = p->loss->data,
                             .total = p->total->data,
                             .each = p->reduction == TD_LOSS_NONE,
                             .mean = p->reduction == TD_LOSS_MEAN};
    if (x->numel > 0)
        TD_TRY(td_cuda_status(td_cu_run_lse(&c, stream), "cross entropy"));
    TD_TRY(td_cuda_reduction_room(&s, p->stream, &partial));
    TD_TRY(td_cuda_status(td_cu_run_pick(&s, &c, partial.data, stream), "cross entropy"));
done:
    td_release(x);
    td_cuda_scratch_drop(&partial);
    return status;
}

td_status td_cuda_nll(const td_nll_plan *p) {
    td_tensor *x = NULL;
    td_cuda_scratch partial = {.data = NULL};
    td_cu_lines lines = td_cuda_lines_of(p->x, p->dim);
    td_cu_reduction s = over_lines(lines.outer * lines.inner);
    cudaStream_t stream;
    td_status status;
    TD_TRY(td_cuda_begin(p->stream, 5, p->tensors, &stream));
    TD_TRY(td_contiguous(p->x, &x));
    td_cu_cross_entropy c = {.lines = lines,
                             .dtype = x->dtype,
                             .x = x->data,
                             .classes = p->classes->data,
                             .weights = p->weights->data,
                             .loss = p->loss->data,
                             .total = p->total->data,
                             .each = p->reduction == TD_LOSS_NONE,
                             .mean = p->reduction == TD_LOSS_MEAN};
    TD_TRY(td_cuda_reduction_room(&s, p->stream, &partial));
    TD_TRY(td_cuda_status(td_cu_run_pick(&s, &c, partial.data, stream), "nll_loss"));
done:
    td_release(x);
    td_cuda_scratch_drop(&partial);
    return status;
}

td_status td_cuda_cross_entropy_backward(const td_cross_entropy_backward_plan *p) {
    td_tensor *own[5] = {NULL}, *out = p->out;
    td_tensor *const given[5] = {p->g, p->x, p->classes, p->weights, p->lse};
    td_dtype dtype = (td_dtype)out->dtype;
    cudaStream_t stream;
    td_status status;
    if (out->numel == 0)
        return TD_OK;
    TD_TRY(td_cuda_begin(p->stream, 7, p->tensors, &stream));
    for (int k = 0; k < 5; k++)
        TD_TRY(td_contiguous_as(given[k], k == 0 ? dtype : (td_dtype)given[k]->dtype, &own[k]));
    td_cu_cross_entropy_backward c = {.lines = td_cuda_lines_of(out, p->dim),
                                      .dtype = dtype,
                                      .g = own[0]->data,
                                      .x = own[1]->data,
                                      .classes = own[2]->data,
                                      .weights = own[3]->data,
                                      .lse = own[4]->data,
                                      .out = out->data,
                                      .each = p->reduction == TD_LOSS_NONE};
    if (p->reduction == TD_LOSS_MEAN)
        c.total = p->total->data;
    TD_TRY(td_cuda_status(td_cu_run_cross_entropy_backward(&c, stream),
                          "going back through cross entropy"));
done:
    for (int k = 0; k < 5; k++)
        td_release(own[k]);
    return status;
}

td_status td_cuda_nll_backward(const td_nll_backward_plan *p) {
    td_tensor *own[3] = {NULL}, *out = p->out;
    td_tensor *const given[3] = {p->g, p->classes, p->weights};
    td_dtype dtype = (td_dtype)out->dtype;
    cudaStream_t stream;
    td_status status;
    if (out->numel == 0)
        return TD_OK;
    TD_TRY(td_cuda_begin(p->stream, 5, p->tensors, &stream));
    for (int k = 0; k < 3; k++)
        TD_TRY(td_contiguous_as(given[k], k == 0 ? dtype : (td_dtype)given[k]->dtype, &own[k]));
    td_cu_cross_entropy_backward c = {.lines = td_cuda_lines_of(out, p->dim),
                                      .dtype = dtype,
                                      .g = own[0]->data,
                                      .classes = own[1]->data,
                                      .weights = own[2]->data,
                                      .out = out->data,
                                      .each = p->reduction == TD_LOSS_NONE};
    if (p->reduction == TD_LOSS_MEAN)
        c.total = p->total->data;
    TD_TRY(td_cuda_status(td_cu_run_cross_entropy_backward(&c, stream),
                          "going back through nll_loss"));
done:
    for (int k = 0; k < 3; k++)
        td_release(own[k]);
    return status;
}

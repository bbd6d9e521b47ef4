/* pointwise_geometry.c: see pointwise_geometry.h. */
#include "engine/ops/plan/pointwise_geometry.h"

#include "engine/core/memory.h"

#include <string.h>

static void take_frame(td_frame *f, const td_tensor *x) {
    f->ndim = x->ndim;
    memcpy(f->sizes, x->sizes, sizeof(int64_t) * (size_t)x->ndim);
    memcpy(f->strides, x->strides, sizeof(int64_t) * (size_t)x->ndim);
}

/* Of operands alone: their common shape, walked as the first of them lies that has it. */
static td_status frame_of_operands(td_frame *f, int n, const td_operand *operands) {
    f->ndim = 0;
    for (int k = 0; k < n; k++) {
        const td_tensor *x = operands[k].tensor;
        td_status status =
            x ? td_broadcast(f->ndim, f->sizes, x->ndim, x->sizes, &f->ndim, f->sizes) : TD_OK;
        if (status)
            return status;
    }
    for (int k = 0; k < n; k++) {
        const td_tensor *x = operands[k].tensor;
        if (x && x->ndim == f->ndim &&
            !memcmp(x->sizes, f->sizes, sizeof(int64_t) * (size_t)f->ndim)) {
            take_frame(f, x);
            return TD_OK;
        }
    }
    if (td_numel(f->ndim, f->sizes) < 0) {
        char text[TD_SHAPE_TEXT];
        return td_fail(TD_ESHAPE, "shape %s has too many elements",
                       td_shape_text(f->ndim, f->sizes, text, sizeof text));
    }
    td_contiguous_strides(f->ndim, f->sizes, f->strides);
    return TD_OK;
}

td_status td_frame_choose(td_frame *f, const td_program *program, const td_operand *operands,
                          td_tensor *const *outs) {
    bool found = false;
    for (int k = 0; outs && k < program->noutputs; k++) {
        if (program->outputs[k].kind != TD_OUTPUT_ELEMENTS) {
            if (outs[k]->numel != 1)
                return td_fail(TD_ESHAPE, "a sum over all elements needs a result of one element");
            continue;
        }
        if (!found)
            take_frame(f, outs[k]);
        else if (outs[k]->ndim != f->ndim ||
                 memcmp(outs[k]->sizes, f->sizes, sizeof(int64_t) * (size_t)f->ndim))
            return td_fail(TD_ESHAPE, "results of one program differ in shape");
        found = true;
    }
    return found ? TD_OK : frame_of_operands(f, program->noperands, operands);
}

int td_frame_order(const td_frame *f, int *order) {
    int n = 0;
    for (int d = 0; d < f->ndim; d++) {
        if (f->sizes[d] == 1)
            continue;
        int at = n++;
        for (; at > 0 && f->strides[order[at - 1]] < f->strides[d]; at--)
            order[at] = order[at - 1];
        order[at] = d;
    }
    return n;
}

void td_frame_strides(const td_frame *f, const td_tensor *x, const int *order, int n,
                      int64_t *strides) {
    int64_t size = (int64_t)td_tensor_itemsize(x);
    int lead = f->ndim - x->ndim;
    for (int k = 0; k < n; k++) {
        int d = order[k] - lead;
        strides[k] = d < 0 || x->sizes[d] == 1 ? 0 : x->strides[d] * size;
    }
}

bool td_frame_is_flat(const td_program *program, int n, const td_operand *operands,
                      td_tensor *const *outs) {
    for (int k = 0; k < program->noutputs; k++)
        if (program->outputs[k].kind != TD_OUTPUT_ELEMENTS || !outs[k]->contiguous ||
            (k > 0 && !td_tensor_same_shape(outs[k], outs[0])))
            return false;
    for (int k = 0; k < n; k++) {
        const td_tensor *x = operands[k].tensor;
        if (x && x->numel != 1 && (!x->contiguous || !td_tensor_same_shape(x, outs[0])))
            return false;
    }
    return true;
}

td_operand *td_operands_repeated(const td_pointwise_plan *plan) {
    size_t lists = plan->outs ? (size_t)plan->nlists : 1, shared = (size_t)plan->nshared;
    size_t all = (size_t)plan->program->noperands, own = all - shared;
    td_operand *operands = td_malloc(sizeof *operands * (lists * all + 1));
    for (size_t k = 0; operands && k < lists; k++) {
        memcpy(operands + k * all, plan->operands + k * own, sizeof *operands * own);
        if (shared)
            memcpy(operands + k * all + own, plan->shared, sizeof *operands * shared);
    }
    return operands;
}

bool td_frame_overlaps(const td_tensor *x, const td_tensor *out) {
    if (x->numel == 0)
        return false;
    if (x->data == out->data && td_tensor_same_shape(x, out) &&
        !memcmp(x->strides, out->strides, sizeof(int64_t) * (size_t)x->ndim) &&
        x->dtype == out->dtype)
        return false;
    const td_tensor *t[2] = {x, out};
    const char *low[2], *high[2];
    for (int k = 0; k < 2; k++) {
        int64_t reach = 0;
        for (int d = 0; d < t[k]->ndim; d++)
            reach += (t[k]->sizes[d] - 1) * t[k]->strides[d];
        low[k] = t[k]->data;
        high[k] = low[k] + (reach + 1) * (int64_t)td_tensor_itemsize(t[k]);
    }
    return low[0] < high[1] && low[1] < high[0];
}

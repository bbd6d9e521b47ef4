/* check.c: does a program hold for any element? Evaluated block by block into a little memory. */
#include "engine/core/interrupt.h"
#include "engine/cpu/cpu.h"
#include "engine/ops/pointwise.h"

#include <string.h>

enum { BLOCK = 64 * 1024 };

typedef struct blocks {
    const td_check_plan *plan;
    int ndim, along;            /* the dim that is cut */
    int64_t rows;               /* its size */
    int64_t sizes[TD_MAX_DIMS]; /* of a block */
} blocks;

static td_status common_shape(blocks *b) {
    td_status status = TD_OK;
    for (int k = 0; k < b->plan->program->noperands && status == TD_OK; k++) {
        const td_tensor *x = b->plan->operands[k].tensor;
        if (x)
            status = td_broadcast(b->ndim, b->sizes, x->ndim, x->sizes, &b->ndim, b->sizes);
    }
    for (int d = 0; d < b->ndim; d++)
        if (b->sizes[d] > b->sizes[b->along])
            b->along = d;
    return status;
}

/* Places [first, first + count) of x along the dim that is cut. */
static td_status cut(const blocks *b, const td_tensor *x, int64_t first, int64_t count,
                     td_tensor **out) {
    int64_t sizes[TD_MAX_DIMS];
    int d = b->along - (b->ndim - x->ndim);
    memcpy(sizes, x->sizes, sizeof(int64_t) * x->ndim);
    if (d < 0 || sizes[d] == 1)
        return td_tensor_view((td_tensor *)x, x->ndim, sizes, x->strides, 0, out);
    sizes[d] = count;
    return td_tensor_view((td_tensor *)x, x->ndim, sizes, x->strides, first * x->strides[d], out);
}

/* Evaluate one block into `truth`. */
static td_status check_block(const blocks *b, int64_t first, int64_t count, td_tensor *truth) {
    const td_check_plan *plan = b->plan;
    td_operand operands[TD_PROGRAM_OPERANDS];
    td_tensor *parts[TD_PROGRAM_OPERANDS] = {NULL};
    td_status status = TD_OK;
    for (int k = 0; k < plan->program->noperands; k++) {
        operands[k] = plan->operands[k];
        if (!operands[k].tensor || count == b->rows)
            continue;
        TD_TRY(cut(b, operands[k].tensor, first, count, &parts[k]));
        operands[k].tensor = parts[k];
    }
    TD_TRY(td_cpu_pointwise(&(td_pointwise_plan){
        .program = plan->program, .operands = operands, .compute = plan->compute, .out = truth}));
    if (memchr(truth->data, 1, (size_t)truth->numel))
        status = td_fail(plan->code, "%s", plan->message);
done:
    for (int k = 0; k < plan->program->noperands; k++)
        td_release(parts[k]);
    return status;
}

td_status td_cpu_check(const td_check_plan *plan) {
    blocks b = {.plan = plan, .sizes = {1}};
    td_tensor *truth = NULL;
    td_status status = common_shape(&b);
    int64_t numel = td_numel(b.ndim, b.sizes);
    if (status || numel == 0)
        return status;
    b.rows = b.ndim ? b.sizes[b.along] : 1;
    int64_t count = BLOCK / (numel / b.rows) > 0 ? BLOCK / (numel / b.rows) : 1;
    for (int64_t first = 0; first < b.rows; first += count) {
        count = b.rows - first < count ? b.rows - first : count;
        TD_TRY(td_interrupt_check());
        if (!truth || count != b.sizes[b.along]) {
            td_release(truth);
            truth = NULL;
            b.sizes[b.along] = count;
            TD_TRY(td_tensor_empty(TD_BOOL, TD_DEVICE_CPU, b.ndim, b.sizes, &truth));
        }
        TD_TRY(check_block(&b, first, count, truth));
    }
done:
    td_release(truth);
    return status;
}

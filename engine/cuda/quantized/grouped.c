/* grouped.c: floats times weights of a few bits in groups, by kernels of ours. */
#include "engine/cuda/quantized/grouped_code.h"

#include "engine/cuda/cuda.h"

static td_status run_on_cpu(const void *plan) {
    return td_backends[TD_CPU]->grouped_linear(plan);
}

td_status td_cuda_grouped_linear(const td_grouped_linear_plan *p) {
    td_cu_grouped g = {.out = p->out->data,
                       .x = p->x->data,
                       .scales = p->scales->data,
                       .mins = p->mins ? p->mins->data : NULL,
                       .bias = p->bias ? p->bias->data : NULL,
                       .weight = p->weight->data,
                       .rows = p->rows,
                       .columns = p->columns,
                       .depth = p->depth,
                       .groups = p->groups,
                       .group = p->group,
                       .bits = p->bits};
    td_cuda_scratch ints = {.data = NULL}, scales = {.data = NULL};
    cudaStream_t s;
    td_status status;
    g.blocks = (p->groups * p->group + TD_CU_GROUPED_BLOCK - 1) / TD_CU_GROUPED_BLOCK;
    const double launched = (double)g.rows * (double)(g.columns > g.blocks ? g.columns : g.blocks);
    if (launched > INT32_MAX) /* blocks of threads, which are a few times fewer */
        return td_cuda_fall_back("grouped_linear", p, sizeof *p, run_on_cpu, 6, 1);
    TD_TRY(td_cuda_begin(p->stream, 6, p->tensors, &s));
    if (p->out->numel == 0)
        goto done;
    TD_TRY(
        td_cuda_scratch_take(&ints, p->stream, (size_t)(g.rows * g.blocks) * TD_CU_GROUPED_BLOCK));
    TD_TRY(td_cuda_scratch_take(&scales, p->stream, (size_t)(g.rows * g.blocks) * sizeof(float)));
    g.ints = ints.data;
    g.x_scales = scales.data;
    TD_TRY(td_cuda_status(td_cu_grouped_round(&g, s), "rounding in blocks"));
    status = td_cuda_status(td_cu_grouped_multiply(&g, s), "multiplying by weights in groups");
done:
    td_cuda_scratch_drop(&ints);
    td_cuda_scratch_drop(&scales);
    return status;
}

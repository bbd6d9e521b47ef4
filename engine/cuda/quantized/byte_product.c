/* byte_product.c: linear layers and convolutions of bytes, by kernels that read x where it lies. */
#include "engine/cuda/quantized/byte_product_code.h"

#include "engine/cuda/cuda.h"
#include "engine/cuda/limits.h"
#include "engine/ops/plan/quantized_pack.h"

static td_cu_byte_product begin_product(const td_tensor *out, const td_tensor *x,
                                        const td_tensor *packed, const td_tensor *bias,
                                        const td_requantization *to) {
    const td_qlines l = td_qlines_of(packed);
    return (td_cu_byte_product){.out = out->data,
                                .x = x->data,
                                .lines = packed->data,
                                .bias = bias ? bias->data : NULL,
                                .floats = td_dtype_is_float((td_dtype)out->dtype),
                                .groups = l.groups,
                                .columns = l.columns,
                                .depth = l.depth,
                                .step = l.step,
                                .x_scale = to->x_scale,
                                .out_scale = to->out_scale,
                                .residual_factor = to->residual_scale / to->out_scale,
                                .x_zero_point = to->x_zero_point,
                                .out_zero_point = to->out_zero_point,
                                .residual_zero_point = to->residual_zero_point,
                                .low = to->low,
                                .high = to->high,
                                .relu = to->relu};
}

/* `rows` results of each column. */
static td_status run(td_cu_byte_product *p, int64_t rows, cudaStream_t s) {
    p->count = rows;
    if (p->groups == 1 || p->channels > TD_LIMIT(QUANTIZED_DIRECT))
        return td_cuda_status(td_cu_byte_tiles(p, s), "multiplying bytes");
    return td_cuda_status(td_cu_byte_is_depthwise(p) ? td_cu_byte_depthwise(p, s)
                                                     : td_cu_byte_direct(p, s),
                          "convolving bytes");
}

td_status td_cuda_quantized_linear(const td_quantized_linear_plan *plan) {
    cudaStream_t s;
    td_status status = td_cuda_begin(plan->stream, 4, plan->tensors, &s);
    if (status != TD_OK || plan->out->numel == 0)
        return status;
    td_cu_byte_product p = begin_product(plan->out, plan->x, plan->packed, plan->bias, &plan->to);
    p.channels = plan->depth;
    for (int d = 0; d < TD_CU_BYTE_DIMS; d++) {
        p.in[d] = p.kernel[d] = p.places[d] = p.stride[d] = p.dilation[d] = 1;
        p.padding[d] = 0;
    }
    return run(&p, plan->rows, s);
}

td_status td_cuda_quantized_conv(const td_quantized_conv_plan *plan) {
    const td_conv_geometry *g = &plan->geometry;
    const td_tensor *residual = plan->residual;
    cudaStream_t s;
    td_status status = td_cuda_begin(plan->stream, 5, plan->tensors, &s);
    if (status != TD_OK || plan->out->numel == 0)
        return status;
    td_cu_byte_product p = begin_product(plan->out, plan->x, plan->packed, plan->bias, &plan->to);
    int64_t rows = g->n;
    p.residual = residual ? residual->data : NULL;
    p.channels = g->c / g->groups;
    for (int d = 0; d < TD_CU_BYTE_DIMS; d++) {
        p.in[d] = g->in[d];
        p.kernel[d] = g->kernel[d];
        p.places[d] = g->out[d];
        p.stride[d] = g->stride[d];
        p.padding[d] = g->padding[d];
        p.dilation[d] = g->dilation[d];
        p.begin[d] = plan->first[d];
        p.every[d] = plan->every[d];
        p.whole[d] = plan->whole[d];
        p.apart |= plan->whole[d] != g->out[d];
        rows *= g->out[d];
    }
    return run(&p, rows, s);
}

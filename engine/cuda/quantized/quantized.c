/* quantized.c: floats to integers of a scale and a zero point, weights to lines, and bytes element
 * by element. */
#include "engine/cuda/quantized/quantized_code.h"

#include "engine/cuda/cuda.h"
#include "engine/ops/plan/quantized_pack.h"

_Static_assert((int)TD_CU_LINE_HEAD == (int)TD_QLINE_HEAD &&
                   sizeof(td_cu_line_head) == sizeof(td_qline_head),
               "kernels know the head of a line");

td_status td_cuda_quantize(const td_quantize_plan *p) {
    cudaStream_t s;
    td_status status = td_cuda_begin(p->stream, 4, p->tensors, &s);
    if (status != TD_OK || p->out->numel == 0)
        return status;
    return td_cuda_status(td_cu_run_quantize(&(td_cu_quantize){.out = p->out->data,
                                                               .x = p->x->data,
                                                               .scales = p->scales->data,
                                                               .zero_points = p->zero_points->data,
                                                               .n = p->out->numel,
                                                               .channels = p->channels,
                                                               .inner = p->inner,
                                                               .dtype = p->out->dtype,
                                                               .low = p->low,
                                                               .high = p->high},
                                             s),
                          "quantizing");
}

static td_status pack_on_cpu(const void *plan) {
    return td_backends[TD_CPU]->quantized_pack(plan);
}

td_status td_cuda_quantized_pack(const td_quantized_pack_plan *p) {
    const td_qlines l = td_qlines_for(p->packs, p->rows / p->packs, p->depth);
    cudaStream_t s;
    if (p->rows > INT32_MAX)
        return td_cuda_fall_back("quantized_pack", p, sizeof *p, pack_on_cpu, 4, 1);
    td_status status = td_cuda_begin(p->stream, 4, p->tensors, &s);
    if (status != TD_OK)
        return status;
    return td_cuda_status(td_cu_run_lines(&(td_cu_weight_lines){.out = p->out->data,
                                                                .weight = p->weight->data,
                                                                .scales = p->scales->data,
                                                                .zero_points = p->zero_points->data,
                                                                .rows = p->rows,
                                                                .depth = l.depth,
                                                                .step = l.step},
                                          s),
                          "packing weights");
}

td_status td_cuda_quantized_binary(const td_quantized_binary_plan *p) {
    cudaStream_t s;
    td_status status = td_cuda_begin(p->stream, 3, p->tensors, &s);
    if (status != TD_OK || p->out->numel == 0)
        return status;
    return td_cuda_status(
        td_cu_run_quantized_binary(&(td_cu_quantized_binary){.out = p->out->data,
                                                             .a = p->a->data,
                                                             .b = p->b->data,
                                                             .n = p->out->numel,
                                                             .dtype = p->out->dtype,
                                                             .multiply = p->multiply,
                                                             .a_scale = p->a_scale,
                                                             .b_scale = p->b_scale,
                                                             .inverse = 1 / p->out_scale,
                                                             .a_zero_point = p->a_zero_point,
                                                             .b_zero_point = p->b_zero_point,
                                                             .out_zero_point = p->out_zero_point,
                                                             .low = p->low,
                                                             .high = p->high},
                                   s),
        "adding or multiplying bytes");
}

td_status td_cuda_quantized_lookup(const td_quantized_lookup_plan *p) {
    cudaStream_t s;
    td_status status = td_cuda_begin(p->stream, 3, p->tensors, &s);
    if (status != TD_OK || p->out->numel == 0)
        return status;
    return td_cuda_status(
        td_cu_run_byte_lookup(&(td_cu_byte_lookup){.out = p->out->data,
                                                   .x = p->x->data,
                                                   .table = p->table->data,
                                                   .n = p->out->numel,
                                                   .flip = p->x->dtype == TD_I8 ? 0x80 : 0},
                              s),
        "looking up bytes");
}

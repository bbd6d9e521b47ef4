/* byte_product.c: linear layers and convolutions of bytes: x less 128 in rows of int8, their
 * product with the weights by cuBLASLt (product/), and its sums rescaled. A weight's lines are
 * filled up so that all sizes are the multiples that its kernels for bytes take. Convolutions of
 * groups of few channels have a kernel of ours instead. */
#include "engine/cuda/quantized/byte_product_code.h"

#include "engine/cuda/cuda.h"
#include "engine/cuda/limits.h"
#include "engine/ops/plan/quantized_pack.h"

enum { ROOM = 32 << 20 }; /* bytes of rows and sums at most, but for one row's */

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
                                .lines_each = l.lines,
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

/* The lines' weights as int8, filled up as they are. */
static td_status view_weights(const td_cu_byte_product *p, const td_tensor *packed,
                              td_tensor **out) {
    const int64_t sizes[3] = {p->groups, p->lines_each, p->step - TD_QLINE_HEAD};
    const int64_t strides[3] = {p->lines_each * p->step, p->step, 1};
    td_tensor *bytes = NULL;
    td_status status = td_tensor_alias((td_tensor *)(uintptr_t)packed, &bytes);
    if (status != TD_OK)
        return status;
    bytes->dtype = TD_I8; /* what it is seen as; its own shape is not read */
    status = td_tensor_view(bytes, 3, sizes, strides, TD_QLINE_HEAD, out);
    td_release(bytes);
    return status;
}

/* Rows of x, in room that has as many, times the weights. */
static td_status multiply(const td_cu_byte_product *p, td_stream stream, td_tensor *rows,
                          td_tensor *weights, td_tensor *sums) {
    const int64_t depth = p->step - TD_QLINE_HEAD;
    const td_product_plan product = {
        .stream = stream,
        .out = sums,
        .a = rows,
        .b = weights,
        .batch = p->groups,
        .m = p->count,
        .n = p->lines_each,
        .k = depth,
        .as_out = {p->count * p->lines_each, p->lines_each, 1},
        .as_a = {p->count * depth, depth, 1},
        .as_b = {p->lines_each * p->step, 1, p->step},
    };
    return td_cuda_product(&product);
}

/* All rows, as many at once as there is room for. */
static td_status run_rows(td_cu_byte_product *p, td_stream stream, int64_t rows,
                          const td_tensor *packed, cudaStream_t s) {
    const int64_t depth = p->step - TD_QLINE_HEAD;
    const int64_t most = ROOM / (p->groups * (depth + 4 * p->lines_each));
    const td_device device = td_tensor_device(packed);
    td_tensor *weights = NULL, *bytes = NULL, *sums = NULL;
    td_cuda_scratch room = {.data = NULL};
    td_status status = TD_OK;
    p->count = rows < most ? rows : most > 1 ? most : 1;
    TD_TRY(view_weights(p, packed, &weights));
    TD_TRY(td_tensor_empty(TD_I8, device, 3, (int64_t[]){p->groups, p->count, depth}, &bytes));
    TD_TRY(
        td_tensor_empty(TD_I32, device, 3, (int64_t[]){p->groups, p->count, p->lines_each}, &sums));
    TD_TRY(td_cuda_scratch_take(&room, stream, sizeof(int) * (size_t)(p->groups * p->count)));
    p->rows = bytes->data;
    p->sums = sums->data;
    p->row_sums = room.data;
    for (p->first = 0; p->first < rows; p->first += p->count) {
        p->count = rows - p->first < p->count ? rows - p->first : p->count;
        TD_TRY(td_cuda_status(td_cu_byte_rows(p, s), "laying out bytes"));
        TD_TRY(multiply(p, stream, bytes, weights, sums));
        TD_TRY(td_cuda_status(td_cu_byte_deliver(p, s), "rescaling sums"));
    }
done:
    td_release(weights);
    td_release(bytes);
    td_release(sums);
    td_cuda_scratch_drop(&room);
    return status;
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
    return run_rows(&p, plan->stream, plan->rows, plan->packed, s);
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
    if (g->groups == 1 || p.channels > TD_LIMIT(QUANTIZED_DIRECT))
        return run_rows(&p, plan->stream, rows, plan->packed, s);
    p.count = rows;
    return td_cuda_status(td_cu_byte_direct(&p, s), "convolving bytes");
}

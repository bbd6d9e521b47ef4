/* norm.c: normalisation of rows and its gradients; sums and affine maps by channel. */
#include "engine/cuda/reduce/dim_lines.h"
#include "engine/cuda/reduce/norm_code.h"
#include "engine/cuda/reduce/reduction.h"
#include "engine/ops/make/copy.h"

static void *data_of(const td_tensor *x) {
    return x ? x->data : NULL;
}

static td_cu_norm norm_of(const td_norm_shape *shape, td_dtype dtype) {
    return (td_cu_norm){.batch = shape->batch,
                        .groups = shape->groups,
                        .per = shape->per,
                        .inner = shape->inner,
                        .eps = shape->eps,
                        .centered = shape->centered,
                        .dtype = dtype};
}

/* ---- rows ---- */

td_status td_cuda_norm(const td_norm_plan *p) {
    td_tensor *out = p->out, *x = NULL, *weight = NULL, *bias = NULL, *result = NULL;
    td_dtype dtype = (td_dtype)out->dtype, wide = td_dtype_wide(dtype);
    td_cu_norm n = norm_of(&p->shape, dtype);
    cudaStream_t stream;
    td_status status;
    if (p->mean->numel == 0)
        return TD_OK;
    TD_TRY(td_cuda_begin(p->stream, 6, p->tensors, &stream));
    TD_TRY(td_contiguous_as(p->x, dtype, &x));
    TD_TRY(td_contiguous_or_none(p->weight, wide, &weight));
    TD_TRY(td_contiguous_or_none(p->bias, wide, &bias));
    TD_TRY(td_cuda_room_for(out, &result));
    n.x = x->data;
    n.weight = data_of(weight);
    n.bias = data_of(bias);
    n.out = result->data;
    n.mean = p->mean->data;
    n.rstd = p->rstd->data;
    TD_TRY(td_cuda_status(td_cu_run_norm(&n, stream), "normalising"));
    TD_TRY(td_cuda_hand_over(out, result));
done:
    td_release(x);
    td_release(weight);
    td_release(bias);
    td_release(result);
    return status;
}

/* The weights as outputs: behind each, a run of every row of its group. */
static td_cu_reduction weights_of(const td_norm_shape *shape) {
    td_cu_reduction s = {.nkept = 1, .nreduced = 1};
    s.outputs = s.kept_sizes[0] = shape->groups * shape->per;
    s.count = shape->batch * shape->inner;
    s.kept_strides[0] = shape->inner;
    s.out_strides[0] = 1;
    s.reduced_sizes[0] = shape->batch;
    s.reduced_strides[0] = s.outputs * shape->inner;
    if (shape->inner > 1) {
        s.nreduced = 2;
        s.reduced_sizes[1] = shape->inner;
        s.reduced_strides[1] = 1;
    }
    td_cuda_reduction_spread(&s);
    return s;
}

td_status td_cuda_norm_backward(const td_norm_backward_plan *p) {
    td_tensor *dx = p->dx, *own[5] = {NULL}, *result = NULL;
    td_dtype dtype = (td_dtype)dx->dtype, wide = td_dtype_wide(dtype);
    td_cu_norm n = norm_of(&p->shape, dtype);
    td_cu_reduction s = weights_of(&p->shape);
    td_cuda_scratch partial = {.data = NULL};
    cudaStream_t stream;
    td_status status;
    TD_TRY(td_cuda_begin(p->stream, 8, p->tensors, &stream));
    TD_TRY(td_contiguous_as(p->g, dtype, &own[0]));
    TD_TRY(td_contiguous_as(p->x, dtype, &own[1]));
    TD_TRY(td_contiguous_or_none(p->weight, wide, &own[2]));
    TD_TRY(td_contiguous_as(p->mean, wide, &own[3]));
    TD_TRY(td_contiguous_as(p->rstd, wide, &own[4]));
    TD_TRY(td_cuda_room_for(dx, &result));
    n.g = own[0]->data;
    n.x = own[1]->data;
    n.weight = data_of(own[2]);
    n.mean = own[3]->data;
    n.rstd = own[4]->data;
    n.out = result->data;
    if (dx->numel > 0)
        TD_TRY(td_cuda_status(td_cu_run_norm_backward(&n, stream), "going back through a norm"));
    TD_TRY(td_cuda_hand_over(dx, result));
    if (p->dweight && s.outputs > 0) {
        n.dweight = p->dweight->data;
        n.dbias = p->dbias->data;
        TD_TRY(td_cuda_reduction_room(&s, p->stream, &partial));
        TD_TRY(td_cuda_status(td_cu_run_norm_weights(&s, &n, partial.data, stream),
                              "adding up a norm's weights"));
    }
done:
    for (int k = 0; k < 5; k++)
        td_release(own[k]);
    td_release(result);
    td_cuda_scratch_drop(&partial);
    return status;
}

/* ---- channels ---- */

static bool same_layout(const td_tensor *a, const td_tensor *b) {
    for (int d = 0; d < a->ndim; d++)
        if (a->sizes[d] != 1 && a->strides[d] != b->strides[d])
            return false;
    return a->dtype == b->dtype;
}

td_status td_cuda_channel_sums(const td_channel_sums_plan *p) {
    td_tensor *x = NULL, *g = NULL, *mean = NULL, *rstd = NULL;
    td_dtype dtype = (td_dtype)p->x->dtype;
    td_cuda_scratch partial = {.data = NULL};
    td_cu_reduction s;
    cudaStream_t stream;
    td_status status;
    if (p->first->numel == 0)
        return TD_OK;
    TD_TRY(td_cuda_begin(p->stream, 7, p->tensors, &stream));
    if (!p->g || same_layout(p->x, p->g)) {
        x = td_retain(p->x);
        g = p->g ? td_retain(p->g) : NULL;
    } else {
        TD_TRY(td_contiguous_as(p->x, dtype, &x));
        TD_TRY(td_contiguous_as(p->g, dtype, &g));
    }
    TD_TRY(td_contiguous_or_none(p->mean, td_dtype_wide(dtype), &mean));
    TD_TRY(td_contiguous_or_none(p->rstd, td_dtype_wide(dtype), &rstd));
    uint32_t all = ((uint32_t)1 << x->ndim) - 1;
    s = td_cuda_reduction_of(x, all & ~(uint32_t)2, p->first);
    td_cu_channels c = {.dtype = dtype,
                        .eps = p->eps,
                        .x = x->data,
                        .g = data_of(g),
                        .mean = data_of(mean),
                        .rstd = data_of(rstd),
                        .first = p->first->data,
                        .second = p->second->data,
                        .third = p->third ? p->third->data : NULL};
    TD_TRY(td_cuda_reduction_room(&s, p->stream, &partial));
    TD_TRY(
        td_cuda_status(td_cu_run_channel_sums(&s, &c, partial.data, stream), "adding up channels"));
done:
    td_release(x);
    td_release(g);
    td_release(mean);
    td_release(rstd);
    td_cuda_scratch_drop(&partial);
    return status;
}

td_status td_cuda_channel_map(const td_channel_map_plan *p) {
    td_tensor *out = p->out, *own[8] = {NULL};
    td_dtype dtype = (td_dtype)out->dtype, wide = td_dtype_wide(dtype);
    cudaStream_t stream;
    td_status status;
    if (out->numel == 0)
        return TD_OK;
    td_cu_channel_map m = {.dtype = dtype, .numel = out->numel, .channels = out->sizes[1]};
    TD_TRY(td_cuda_begin(p->stream, 8, p->tensors, &stream));
    TD_TRY(td_contiguous_channels(out, p->last, dtype, &own[0]));
    TD_TRY(td_contiguous_channels(p->g, p->last, dtype, &own[1]));
    TD_TRY(td_contiguous_channels(p->x, p->last, dtype, &own[2]));
    for (int k = 0; k < 5; k++) {
        TD_TRY(td_contiguous_or_none(p->k[k], wide, &own[3 + k]));
        m.k[k] = data_of(own[3 + k]);
    }
    m.inner = p->last ? 1 : out->numel / (out->sizes[0] * out->sizes[1]);
    m.g = data_of(own[1]);
    m.x = data_of(own[2]);
    m.out = own[0]->data;
    TD_TRY(td_cuda_status(td_cu_run_channel_map(&m, stream), "mapping channels"));
done:
    for (int k = 0; k < 8; k++)
        td_release(own[k]);
    return status;
}

/* copy_into.c: copying, converting and filling below autograd, on any device and between them. */
#include "engine/ops/make/copy.h"

#include "engine/core/memory.h"
#include "engine/ops/pointwise/pointwise.h"

#include <string.h>

/* Row-major memory from one device to another; through the host where neither is it. */
static td_status move_bytes(td_tensor *dst, const td_tensor *src, size_t bytes) {
    td_device to = td_tensor_device(dst), from = td_tensor_device(src);
    if (bytes == 0)
        return TD_OK;
    if (from.type == TD_CPU)
        return td_backend_of(to)->upload(td_stream_current(to), dst->data, src->data, bytes);
    if (to.type == TD_CPU)
        return td_backend_of(from)->download(td_stream_current(from), dst->data, src->data, bytes);
    void *host = td_malloc(bytes);
    if (!host)
        return td_fail(TD_ENOMEM, "out of memory");
    td_status status =
        td_backend_of(from)->download(td_stream_current(from), host, src->data, bytes);
    if (status == TD_OK)
        status = td_backend_of(to)->upload(td_stream_current(to), dst->data, host, bytes);
    td_free(host);
    return status;
}

/* Between devices only memory of one dtype and row-major moves. */
static td_status copy_across(td_tensor *dst, const td_tensor *src) {
    td_status status = TD_OK;
    td_device to = td_tensor_device(dst);
    td_tensor *packed = NULL, *landed = NULL;
    TD_TRY(td_contiguous_as((td_tensor *)src, (td_dtype)dst->dtype, &packed));
    if (dst->contiguous && td_tensor_same_shape(dst, packed))
        landed = td_retain(dst);
    else
        TD_TRY(td_tensor_empty((td_dtype)dst->dtype, to, packed->ndim, packed->sizes, &landed));
    TD_TRY(move_bytes(landed, packed, (size_t)packed->numel * td_tensor_itemsize(packed)));
    if (landed != dst)
        TD_TRY(td_copy_into(dst, landed));
done:
    td_release(packed);
    td_release(landed);
    return status;
}

td_status td_copy_into(td_tensor *dst, const td_tensor *src) {
    int ndim;
    int64_t sizes[TD_MAX_DIMS];
    td_status status = td_broadcast(dst->ndim, dst->sizes, src->ndim, src->sizes, &ndim, sizes);
    if (status)
        return status;
    if (ndim != dst->ndim || memcmp(sizes, dst->sizes, sizeof(int64_t) * (size_t)ndim)) {
        char a[TD_SHAPE_TEXT], b[TD_SHAPE_TEXT];
        return td_fail(TD_ESHAPE, "shape %s doesn't broadcast to %s", td_tensor_shape_text(src, a),
                       td_tensor_shape_text(dst, b));
    }
    if (!td_device_same(td_tensor_device(dst), td_tensor_device(src)))
        return copy_across(dst, src);
    td_operand operand = {.tensor = src};
    td_pointwise_plan plan = {.program = td_primitive_program(TD_PW_copy),
                              .operands = &operand,
                              .compute = (td_dtype)dst->dtype,
                              .out = dst};
    return TD_RUN(td_tensor_device(dst), pointwise, &plan);
}

td_status td_contiguous_as(td_tensor *x, td_dtype dtype, td_tensor **out) {
    *out = NULL;
    if (x->contiguous && x->dtype == dtype) {
        *out = td_retain(x);
        return TD_OK;
    }
    td_status status = td_tensor_empty(dtype, td_tensor_device(x), x->ndim, x->sizes, out);
    if (status == TD_OK)
        status = td_copy_into(*out, x);
    if (status) {
        td_release(*out);
        *out = NULL;
    }
    return status;
}

td_status td_contiguous(td_tensor *x, td_tensor **out) {
    return td_contiguous_as(x, (td_dtype)x->dtype, out);
}

td_status td_contiguous_or_none(td_tensor *x, td_dtype dtype, td_tensor **out) {
    *out = NULL;
    return x ? td_contiguous_as(x, dtype, out) : TD_OK;
}

td_status td_contiguous_channels(td_tensor *x, bool last, td_dtype dtype, td_tensor **out) {
    int64_t sizes[TD_MAX_DIMS], strides[TD_MAX_DIMS];
    td_tensor *seen = NULL;
    int n = 0;
    if (!x || !last)
        return td_contiguous_or_none(x, dtype, out);
    for (int d = 0; d < x->ndim; d++)
        if (d != 1) {
            sizes[n] = x->sizes[d];
            strides[n++] = x->strides[d];
        }
    sizes[n] = x->sizes[1];
    strides[n] = x->strides[1];
    td_status status = td_tensor_view(x, x->ndim, sizes, strides, 0, &seen);
    if (status == TD_OK)
        status = td_contiguous_as(seen, dtype, out);
    td_release(seen);
    return status;
}

td_status td_pack(td_tensor *x, td_format format, td_tensor **out) {
    int64_t strides[TD_MAX_DIMS];
    *out = NULL;
    if (td_tensor_is_in_format(x, format)) {
        *out = td_retain(x);
        return TD_OK;
    }
    td_format_strides(format, x->ndim, x->sizes, strides);
    td_status status = TD_OK;
    TD_TRY(td_tensor_empty((td_dtype)x->dtype, td_tensor_device(x), x->ndim, x->sizes, out));
    TD_TRY(td_tensor_set_shape(*out, x->ndim, x->sizes, strides));
    TD_TRY(td_copy_into(*out, x));
    return TD_OK;
done:
    td_release(*out);
    *out = NULL;
    return status;
}

static td_status fill(td_tensor *x, td_operand value) {
    td_pointwise_plan plan = {.program = td_primitive_program(TD_PW_copy),
                              .operands = &value,
                              .compute = (td_dtype)x->dtype,
                              .out = x};
    return TD_RUN(td_tensor_device(x), pointwise, &plan);
}

td_status td_fill(td_tensor *x, double value) {
    return fill(x, (td_operand){.f = value});
}

td_status td_fill_int(td_tensor *x, int64_t value) {
    return fill(x, (td_operand){.is_int = true, .i = value, .f = (double)value});
}

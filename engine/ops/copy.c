/* copy.c: copying, converting and filling. */
#include "engine/ops/copy.h"

#include "engine/core/memory.h"
#include "engine/ops/meta.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/sparse.h"

#include <string.h>

#define TD_FAMILY "copy"

/* ---- below autograd ---- */

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

/* ---- operators ---- */

static td_status kernel_copy_(td_call *call) {
    return td_copy_into(call->out[0], call->args[1].tensor);
}

static td_status kernel_fill_(td_call *call) {
    td_value v = call->args[1];
    return v.kind == TD_KIND_TENSOR ? td_copy_into(call->out[0], v.tensor)
           : v.kind == TD_KIND_INT  ? td_fill_int(call->out[0], v.i)
                                    : td_fill(call->out[0], v.f);
}

static td_status kernel_zero_(td_call *call) {
    return td_fill_int(call->out[0], 0);
}

static td_status rule_fill_(const td_call *call, td_meta *out) {
    td_value v = call->args[1];
    td_status status = td_rule_same(call, out);
    return status || v.kind == TD_KIND_TENSOR ? status : td_check_holds(out->dtype, v);
}

static td_status rule_clone(const td_call *call, td_meta *out) {
    td_status status = td_rule_same(call, out);
    return status ? status : td_meta_format(call->args[1], call->args[0].tensor, out);
}

static td_status kernel_clone(td_call *call) {
    return td_copy_into(call->out[0], call->args[0].tensor);
}

static td_status rule_to_copy(const td_call *call, td_meta *out) {
    td_status status = td_rule_same(call, out);
    if (status == TD_OK)
        status = td_meta_format(call->args[3], call->args[0].tensor, out);
    if (!td_is_nil(call->args[1]))
        out->dtype = call->args[1].dtype;
    if (!td_is_nil(call->args[2]))
        out->device = call->args[2].device;
    return status;
}

/* x lies so as far as its strides say more than its shape does: one channel is none. */
static td_status hints_at(const td_tensor *x, td_value option, bool *there) {
    td_format format = TD_ROW_MAJOR;
    *there = true;
    if (!strcmp(option.string, "preserve"))
        return TD_OK;
    td_status status = td_read_format(option, x->ndim, &format);
    *there = format == td_tensor_format(x);
    return status;
}

static td_status run_to(td_call *call) {
    td_tensor *x = call->args[0].tensor;
    td_value dtype = call->args[1], device = call->args[2], format = call->args[4];
    bool same = (td_is_nil(dtype) || dtype.dtype == x->dtype) &&
                (td_is_nil(device) || td_device_same(device.device, td_tensor_device(x)));
    td_status status = same ? hints_at(x, format, &same) : TD_OK;
    if (status || !same || call->args[3].b)
        return status ? status : TD_APPLY(&call->out[0], to_copy, TD_T(x), dtype, device, format);
    call->out[0] = td_retain(x);
    return TD_OK;
}

static td_status run_contiguous(td_call *call) {
    td_tensor *x = call->args[0].tensor;
    td_format format = TD_ROW_MAJOR;
    td_status status = td_read_format(call->args[1], x->ndim, &format);
    if (status || !td_tensor_is_in_format(x, format))
        return status ? status : TD_APPLY(&call->out[0], clone, TD_T(x), call->args[1]);
    call->out[0] = td_retain(x);
    return TD_OK;
}

static td_status run_detach(td_call *call) {
    return td_tensor_alias(call->args[0].tensor, &call->out[0]);
}

TD_OPERATOR(copy_) = {
    .schema = "(Tensor x, Tensor src) -> Tensor",
    .doc = "Write src, broadcast and converted to x's dtype, into x.",
    .rule = td_rule_same,
    .kernel = kernel_copy_,
    .dtypes = TD_DTYPES_ALL,
    .gradient = "x: zeros_like(g); src: g",
    .sparse = td_sparse_copy,
    .flags = TD_OP_INPLACE_ONLY | TD_OP_METHOD_ONLY | TD_OP_WRITES_SELF | TD_OP_ANY_DEVICE,
};
TD_OPERATOR(fill_) = {
    .schema = "(Tensor x, Tensor|number value) -> Tensor",
    .doc = "Set every element of x to one value.",
    .rule = rule_fill_,
    .kernel = kernel_fill_,
    .dtypes = TD_DTYPES_ALL,
    .gradient = "x: zeros_like(g); value: g",
    .flags = TD_OP_INPLACE_ONLY | TD_OP_METHOD_ONLY | TD_OP_WRITES_SELF | TD_OP_ANY_DEVICE,
};
TD_OPERATOR(zero_) = {
    .schema = "(Tensor x) -> Tensor",
    .doc = "Set every element of x to zero.",
    .rule = td_rule_same,
    .kernel = kernel_zero_,
    .dtypes = TD_DTYPES_ALL,
    .gradient = "x: zeros_like(g)",
    .sparse = td_sparse_zeros,
    .flags = TD_OP_INPLACE_ONLY | TD_OP_METHOD_ONLY | TD_OP_WRITES_SELF,
};
TD_OPERATOR(clone) = {
    .schema = "(Tensor x, *, str memory_format=\"preserve\") -> Tensor",
    .doc = "A copy of x with memory of its own, in x's layout or the memory format given.",
    .rule = rule_clone,
    .kernel = kernel_clone,
    .dtypes = TD_DTYPES_ALL,
    .gradient = "x: g",
    .sparse = td_sparse_clone,
};
TD_OPERATOR(contiguous) = {
    .schema = "(Tensor x, *, str memory_format=\"contiguous\") -> Tensor",
    .doc = "x itself where it lies in the memory format without gaps, else a copy that does.",
    .run = run_contiguous,
};
TD_OPERATOR(to) = {
    .schema = "(Tensor x, dtype? dtype=nil, device? device=nil, *, bool copy=false, "
              "str memory_format=\"preserve\", bool non_blocking=false) -> Tensor",
    .doc = "x in another dtype, memory format or on another device (dtype or device may come "
           "first), or as another tensor is; x itself where it is so already.",
    .run = run_to,
    .sparse = td_sparse_to,
    .flags = TD_OP_METHOD_ONLY,
};
static td_status run_widened(td_call *call) {
    td_dtype dtype = (td_dtype)call->args[0].tensor->dtype;
    return TD_APPLY(&call->out[0], to, call->args[0], TD_DTYPE(td_dtype_wide(dtype)));
}
TD_OPERATOR(widened) = {
    .schema = "(Tensor x) -> Tensor",
    .doc = "x, in float32 where it has 16 bits.",
    .run = run_widened,
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(to_copy) = {
    .schema = "(Tensor x, dtype? dtype=nil, device? device=nil, "
              "str memory_format=\"preserve\") -> Tensor",
    .doc = "A copy of x in another dtype or memory format, or on another device.",
    .rule = rule_to_copy,
    .kernel = kernel_clone,
    .dtypes = TD_DTYPES_ALL,
    .gradient = "x: g",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(given) = {
    .schema = "(Tensor x) -> Tensor",
    .doc = "x itself: with out= what a front end has composed goes into what it was given.",
    .formula = "x",
    .flags = TD_OP_INTERNAL | TD_OP_OUT,
};
TD_OPERATOR(given_exactly) = {
    .schema = "(Tensor x) -> Tensor",
    .doc = "The same, where out= must have x's dtype.",
    .formula = "x",
    .flags = TD_OP_INTERNAL | TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(given_four) = {
    .schema = "(Tensor a, Tensor b, Tensor c, Tensor d) -> "
              "(Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)",
    .doc = "The same of the four that lstsq gives.",
    .formula = "solution: a; residuals: b; rank: c; singular_values: d",
    .flags = TD_OP_INTERNAL | TD_OP_OUT,
};
TD_OPERATOR(detach) = {
    .schema = "(Tensor x) -> Tensor",
    .doc = "The same elements without history: no gradient flows through it.",
    .run = run_detach,
    .flags = TD_OP_NONDIFF | TD_OP_ANY_LAYOUT,
};

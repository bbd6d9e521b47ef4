/* copy.c: copying, converting and filling. */
#include "engine/ops/copy.h"

#include "engine/core/memory.h"
#include "engine/ops/pointwise.h"

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

static td_status check_writable(const td_tensor *x) {
    return td_tensor_overlaps(x)
               ? td_fail(TD_EVALUE, "several elements of the tensor written share one place in "
                                    "memory (an expanded tensor?); write into a clone() of it")
               : TD_OK;
}

static td_status run_copy_(td_call *call) {
    td_tensor *x = call->args[0].tensor;
    td_status status = check_writable(x);
    if (status == TD_OK)
        status = td_copy_into(x, call->args[1].tensor);
    if (status == TD_OK)
        call->out[0] = td_retain(x);
    return status;
}

/* What was there before does not matter any more; src gets all of it (autograd reduces it to src's
 * shape). */
static td_status grad_copy_(td_grad *grad) {
    td_status status = TD_OK;
    if (td_grad_needs(grad, 0))
        status = TD_APPLY(&grad->in[0], zeros_like, TD_T(grad->gout[0]));
    if (status == TD_OK && td_grad_needs(grad, 1))
        grad->in[1] = td_retain(grad->gout[0]);
    return status;
}

static td_status run_fill_(td_call *call) {
    td_tensor *x = call->args[0].tensor;
    td_value v = call->args[1];
    td_status status = check_writable(x);
    if (status == TD_OK)
        status = v.kind == TD_KIND_TENSOR ? td_copy_into(x, v.tensor)
                 : v.kind == TD_KIND_INT  ? td_fill_int(x, v.i)
                                          : td_fill(x, v.f);
    if (status == TD_OK)
        call->out[0] = td_retain(x);
    return status;
}

static td_status run_zero_(td_call *call) {
    td_tensor *x = call->args[0].tensor;
    td_status status = check_writable(x);
    if (status == TD_OK)
        status = td_fill_int(x, 0);
    if (status == TD_OK)
        call->out[0] = td_retain(x);
    return status;
}

static td_status grad_zero_(td_grad *grad) {
    return TD_APPLY(&grad->in[0], zeros_like, TD_T(grad->gout[0]));
}

/* A fresh tensor of x's shape, in x's layout where that has no gaps. */
static td_status empty_as(const td_tensor *x, td_dtype dtype, td_device device, bool keep_layout,
                          td_tensor **out) {
    td_meta meta = {.dtype = dtype, .device = device, .ndim = x->ndim};
    memcpy(meta.sizes, x->sizes, sizeof(int64_t) * x->ndim);
    if (keep_layout && !x->contiguous && td_tensor_is_dense(x)) {
        meta.strided = true;
        memcpy(meta.strides, x->strides, sizeof(int64_t) * x->ndim);
    }
    return td_tensor_from_meta(&meta, out);
}

static td_status copy_of(const td_tensor *x, td_dtype dtype, td_device device, bool keep_layout,
                         td_tensor **out) {
    td_status status = empty_as(x, dtype, device, keep_layout, out);
    if (status == TD_OK)
        status = td_copy_into(*out, x);
    if (status) {
        td_release(*out);
        *out = NULL;
    }
    return status;
}

static td_status run_clone(td_call *call) {
    td_tensor *x = call->args[0].tensor;
    const char *format = call->args[1].string;
    bool contiguous = !strcmp(format, "contiguous");
    if (!contiguous && strcmp(format, "preserve"))
        return td_fail(TD_EVALUE,
                       "memory_format must be \"preserve\" or \"contiguous\", got \"%s\"", format);
    return copy_of(x, (td_dtype)x->dtype, td_tensor_device(x), !contiguous, &call->out[0]);
}

static td_status pass_gradient(td_grad *grad) {
    grad->in[0] = td_retain(grad->gout[0]);
    return TD_OK;
}

static td_status run_to_copy(td_call *call) {
    td_tensor *x = call->args[0].tensor;
    td_dtype dtype = td_is_nil(call->args[1]) ? (td_dtype)x->dtype : call->args[1].dtype;
    td_device device = td_is_nil(call->args[2]) ? td_tensor_device(x) : call->args[2].device;
    return copy_of(x, dtype, device, true, &call->out[0]);
}

/* The gradient comes back in x's dtype and on x's device. */
static td_status grad_to_copy(td_grad *grad) {
    return TD_APPLY(&grad->in[0], to, TD_T(grad->gout[0]), TD_DTYPE(td_grad_dtype(grad, 0)));
}

static td_status run_to(td_call *call) {
    td_tensor *x = call->args[0].tensor;
    td_value dtype = call->args[1], device = call->args[2];
    bool same = (td_is_nil(dtype) || dtype.dtype == x->dtype) &&
                (td_is_nil(device) || td_device_same(device.device, td_tensor_device(x)));
    if (same && !call->args[3].b) {
        call->out[0] = td_retain(x);
        return TD_OK;
    }
    return TD_APPLY(&call->out[0], to_copy, TD_T(x), dtype, device);
}

static td_status run_contiguous(td_call *call) {
    td_tensor *x = call->args[0].tensor;
    if (x->contiguous) {
        call->out[0] = td_retain(x);
        return TD_OK;
    }
    return TD_APPLY(&call->out[0], clone, TD_T(x), TD_STRING("contiguous"));
}

static td_status run_detach(td_call *call) {
    return td_tensor_alias(call->args[0].tensor, &call->out[0]);
}

TD_OPERATOR(copy_) = {
    .schema = "(Tensor x, Tensor src) -> Tensor",
    .doc = "Write src, broadcast and converted to x's dtype, into x.",
    .run = run_copy_,
    .backward = grad_copy_,
    .flags = TD_OP_INPLACE_ONLY | TD_OP_METHOD_ONLY,
};
TD_OPERATOR(fill_) = {
    .schema = "(Tensor x, Tensor|number value) -> Tensor",
    .doc = "Set every element of x to one value.",
    .run = run_fill_,
    .backward = grad_copy_,
    .flags = TD_OP_INPLACE_ONLY | TD_OP_METHOD_ONLY,
};
TD_OPERATOR(zero_) = {
    .schema = "(Tensor x) -> Tensor",
    .doc = "Set every element of x to zero.",
    .run = run_zero_,
    .backward = grad_zero_,
    .flags = TD_OP_INPLACE_ONLY | TD_OP_METHOD_ONLY,
};
TD_OPERATOR(clone) = {
    .schema = "(Tensor x, *, str memory_format=\"preserve\") -> Tensor",
    .doc = "A copy of x with memory of its own, in x's layout or (\"contiguous\") row-major.",
    .run = run_clone,
    .backward = pass_gradient,
};
TD_OPERATOR(contiguous) = {
    .schema = "(Tensor x) -> Tensor",
    .doc = "x itself where its elements lie row-major without gaps, else a copy that does.",
    .run = run_contiguous,
};
TD_OPERATOR(to) = {
    .schema = "(Tensor x, dtype? dtype=nil, device? device=nil, *, bool copy=false) -> Tensor",
    .doc = "x in another dtype or on another device (either may come first), or as another tensor "
           "is; x itself where it is so already.",
    .run = run_to,
    .flags = TD_OP_METHOD_ONLY,
};
TD_OPERATOR(to_copy) = {
    .schema = "(Tensor x, dtype? dtype=nil, device? device=nil) -> Tensor",
    .doc = "A copy of x in another dtype or on another device.",
    .run = run_to_copy,
    .backward = grad_to_copy,
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(detach) = {
    .schema = "(Tensor x) -> Tensor",
    .doc = "The same elements without history: no gradient flows through it.",
    .run = run_detach,
    .flags = TD_OP_NONDIFF,
};

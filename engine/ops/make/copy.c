/* copy.c: the operators that copy, convert and fill. */
#include "engine/ops/make/copy.h"

#include "engine/core/backend.h"
#include "engine/core/memory.h"
#include "engine/core/modes.h"
#include "engine/core/queues.h"
#include "engine/ops/pointwise/pointwise.h"
#include "engine/ops/quantized/quantized.h"
#include "engine/ops/rule_helpers.h"
#include "engine/ops/sparse/sparse.h"

#include <string.h>

#define TD_FAMILY "copy"

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

/* Pinned memory goes to a device while the host, and the device, work on: dense, as it lies, and
 * without history. *out: NULL where that is not what is asked for. */
static td_status move_later(td_tensor *x, td_value dtype, td_value device, td_value format,
                            td_tensor **out) {
    const td_backend *backend = td_is_nil(device) ? NULL : td_backend_of(device.device);
    bool kept = (td_is_nil(dtype) || dtype.dtype == x->dtype) && !strcmp(format.string, "preserve");
    if (td_tensor_device(x).type != TD_CPU || x->layout != TD_STRIDED || !kept || !backend ||
        !backend->queues || !backend->queues->upload_later || x->numel == 0 ||
        !td_tensor_is_dense(x) || (x->requires_grad && td_grad_enabled()))
        return TD_OK;
    td_meta meta = {
        .dtype = (td_dtype)x->dtype, .device = device.device, .ndim = x->ndim, .strided = true};
    memcpy(meta.sizes, x->sizes, sizeof(int64_t) * x->ndim);
    memcpy(meta.strides, x->strides, sizeof(int64_t) * x->ndim);
    td_tensor *there;
    bool done = false;
    td_status status = td_tensor_from_meta(&meta, &there);
    if (status == TD_OK)
        status =
            backend->queues->upload_later(td_stream_current(device.device), there->data, x->data,
                                          (size_t)x->numel * td_tensor_itemsize(x), &done);
    if (status == TD_OK && done)
        *out = there;
    else
        td_release(there);
    return status;
}

static td_status run_to(td_call *call) {
    td_tensor *x = call->args[0].tensor;
    td_value dtype = call->args[1], device = call->args[2], format = call->args[4];
    bool same = (td_is_nil(dtype) || dtype.dtype == x->dtype) &&
                (td_is_nil(device) || td_device_same(device.device, td_tensor_device(x)));
    td_status status = same ? hints_at(x, format, &same) : TD_OK;
    if (status == TD_OK && !same && call->args[5].b)
        status = move_later(x, dtype, device, format, &call->out[0]);
    if (status || call->out[0])
        return status;
    if (!same || call->args[3].b)
        return TD_APPLY(&call->out[0], to_copy, TD_T(x), dtype, device, format);
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
    .shapes = "x (...), src to (...) -> (...)",
    .rule = td_rule_same,
    .kernel = kernel_copy_,
    .dtypes = TD_DTYPES_ALL,
    .gradient = "x: zeros_like(g); src: g",
    .forms[TD_QUANTIZED] = td_quantized_copy,
    .forms[TD_SPARSE_COO] = td_sparse_copy,
    .flags = TD_OP_INPLACE_ONLY | TD_OP_METHOD_ONLY | TD_OP_WRITES_SELF | TD_OP_ANY_DEVICE,
};
TD_OPERATOR(fill_) = {
    .schema = "(Tensor x, Tensor|number value) -> Tensor",
    .doc = "Set every element of x to one value.",
    .shapes = "x (...), value () -> (...)",
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
    .forms[TD_SPARSE_COO] = td_sparse_zeros,
    .flags = TD_OP_INPLACE_ONLY | TD_OP_METHOD_ONLY | TD_OP_WRITES_SELF,
};
TD_OPERATOR(clone) = {
    .schema = "(Tensor x, *, str memory_format=\"preserve\") -> Tensor",
    .doc = "A copy of x with memory of its own, in x's layout or the memory format given.",
    .shapes = "x (...) -> (...)",
    .rule = rule_clone,
    .kernel = kernel_clone,
    .dtypes = TD_DTYPES_ALL,
    .gradient = "x: g",
    .forms[TD_QUANTIZED] = td_quantized_clone,
    .forms[TD_SPARSE_COO] = td_sparse_clone,
};
TD_OPERATOR(contiguous) = {
    .schema = "(Tensor x, *, str memory_format=\"contiguous\") -> Tensor",
    .doc = "x itself where it lies in the memory format without gaps, else a copy that does.",
    .shapes = "x (...) -> (...)",
    .run = run_contiguous,
    .forms[TD_QUANTIZED] = td_quantized_clone,
};
TD_OPERATOR(to) = {
    .schema = "(Tensor x, dtype? dtype=nil, device? device=nil, *, bool copy=false, "
              "str memory_format=\"preserve\", bool non_blocking=false) -> Tensor",
    .doc = "x in another dtype, memory format or on another device (dtype and device in "
           "either order), or as another tensor is; x itself where it is so already. non_blocking: "
           "from "
           "pinned memory to a device the copy goes on beside all other work, which waits for it "
           "where it needs it; x must not be written meanwhile.",
    .shapes = "x (...) -> (...)",
    .run = run_to,
    .forms[TD_QUANTIZED] = td_quantized_to,
    .forms[TD_SPARSE_COO] = td_sparse_to,
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
    .shapes = "x (...) -> (...)",
    .run = run_detach,
    .flags = TD_OP_NONDIFF | TD_OP_ANY_LAYOUT,
};

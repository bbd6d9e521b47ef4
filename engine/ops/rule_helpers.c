/* rule_helpers.c: results and checks that rules of several families share. */
#include "engine/ops/rule_helpers.h"

#include "engine/core/memory.h"
#include "engine/core/random.h"

#include <math.h>
#include <string.h>

/* ---- results ---- */

td_status td_rule_same(const td_call *call, td_meta *out) {
    const td_tensor *x = call->args[0].tensor;
    td_meta_like(out, x, (td_dtype)x->dtype);
    return TD_OK;
}

td_status td_creation_meta(td_value size, td_value dtype, td_value device, td_meta *out) {
    char text[TD_SHAPE_TEXT];
    if (size.n > TD_MAX_DIMS)
        return td_fail(TD_ESHAPE, "a tensor has at most %d dims, got %d", TD_MAX_DIMS, size.n);
    for (int d = 0; d < size.n; d++)
        if (size.ints[d] < 0)
            return td_fail(TD_ESHAPE, "a size must not be negative, got %s",
                           td_shape_text(size.n, size.ints, text, sizeof text));
    if (!td_is_nil(device))
        out->device = device.device;
    td_meta_set(out, td_is_nil(dtype) ? td_default_dtype() : dtype.dtype, size.n, size.ints);
    return TD_OK;
}

td_status td_creation_meta_out(const td_call *call, td_value size, td_value dtype, td_value device,
                               td_meta *out) {
    const td_tensor *given = td_call_given(call, 0);
    if (!given)
        return td_creation_meta(size, dtype, device, out);
    td_dtype own = (td_dtype)given->dtype;
    if (!td_is_nil(dtype) && dtype.dtype != own)
        return td_fail(TD_EDTYPE, "dtype is %s, that of out %s", td_dtype_name(dtype.dtype),
                       td_dtype_name(own));
    if (!td_is_nil(device) && !td_device_same(device.device, td_tensor_device(given)))
        return td_fail(TD_EDEVICE, "device is %s, that of out %s", td_device_name(device.device),
                       td_device_name(td_tensor_device(given)));
    return td_creation_meta(size, TD_DTYPE(own), TD_DEVICE(td_tensor_device(given)), out);
}

td_status td_creation_meta_like(const td_tensor *x, td_value dtype, td_value device,
                                td_value format, td_meta *out) {
    td_status status = td_creation_meta(
        TD_INTS(x->ndim, x->sizes), td_is_nil(dtype) ? TD_DTYPE((td_dtype)x->dtype) : dtype,
        td_is_nil(device) ? TD_DEVICE(td_tensor_device(x)) : device, out);
    return status ? status : td_meta_format(format, x, out);
}

/* ---- memory formats ---- */

td_status td_read_format(td_value option, int ndim, td_format *format) {
    static const char *const names[] = {[TD_ROW_MAJOR] = "contiguous",
                                        [TD_CHANNELS_LAST] = "channels_last",
                                        [TD_CHANNELS_LAST_3D] = "channels_last_3d"};
    for (int k = 0; k < (int)(sizeof names / sizeof *names); k++) {
        if (strcmp(option.string, names[k]))
            continue;
        int needed = td_format_ndim((td_format)k);
        *format = (td_format)k;
        return !needed || needed == ndim
                   ? TD_OK
                   : td_fail(TD_ESHAPE, "%s is for tensors of %d dims, got %d", names[k], needed,
                             ndim);
    }
    return td_fail(TD_EVALUE,
                   "there is no memory_format \"%s\" here: \"contiguous\", \"channels_last\" and "
                   "\"channels_last_3d\" are",
                   option.string);
}

void td_meta_lay(td_format format, td_meta *out) {
    out->strided = format != TD_ROW_MAJOR;
    if (out->strided)
        td_format_strides(format, out->ndim, out->sizes, out->strides);
}

static bool is_row_major(int ndim, const int64_t *sizes, const int64_t *strides) {
    int64_t plain[TD_MAX_DIMS];
    td_contiguous_strides(ndim, sizes, plain);
    return !memcmp(plain, strides, sizeof(int64_t) * (size_t)ndim);
}

td_status td_meta_format(td_value option, const td_tensor *x, td_meta *out) {
    td_format format = TD_ROW_MAJOR;
    if (!strcmp(option.string, "preserve")) {
        td_tensor_dense_strides(x, out->strides);
        out->strided = !is_row_major(x->ndim, x->sizes, out->strides);
        return TD_OK;
    }
    td_status status = td_read_format(option, out->ndim, &format);
    if (status == TD_OK)
        td_meta_lay(format, out);
    return status;
}

td_status td_call_open_list(td_call *call, int64_t n) {
    if (n > INT32_MAX)
        return td_fail(TD_EVALUE, "too many parts: %lld", (long long)n);
    call->list = td_calloc((size_t)(n ? n : 1), sizeof *call->list);
    if (!call->list)
        return td_fail(TD_ENOMEM, "out of memory");
    call->nlist = (int)n;
    return TD_OK;
}

/* ---- checks ---- */

td_status td_check_float(td_dtype dtype) {
    if (td_dtype_is_float(dtype))
        return TD_OK;
    return td_fail(TD_EDTYPE, "needs a floating dtype, got %s: convert it first with x:float()",
                   td_dtype_name(dtype));
}

td_status td_check_index(const td_tensor *index) {
    if (td_dtype_is_int((td_dtype)index->dtype))
        return TD_OK;
    return td_fail(TD_EDTYPE, "index must hold integers, got %s",
                   td_dtype_name((td_dtype)index->dtype));
}

td_status td_check_holds(td_dtype dtype, td_value number) {
    if (number.kind == TD_KIND_INT && !td_dtype_holds_int(dtype, number.i))
        return td_fail(TD_EVALUE, "%s can't hold %lld", td_dtype_name(dtype), (long long)number.i);
    if (number.kind == TD_KIND_FLOAT && !td_dtype_holds(dtype, number.f))
        return td_fail(TD_EVALUE, "%s can't hold %g", td_dtype_name(dtype),
                       number.f != number.f ? NAN : number.f);
    return TD_OK;
}

td_status td_fail_ndim(const td_tensor *x, const char *name, int ndim) {
    char text[TD_SHAPE_TEXT];
    return td_fail(TD_ESHAPE, "%s must have %d dim%s, got shape %s", name, ndim,
                   ndim == 1 ? "" : "s", td_tensor_shape_text(x, text));
}

td_status td_check_same_shape(const td_tensor *a, const char *a_name, const td_tensor *b,
                              const char *b_name) {
    char a_shape[TD_SHAPE_TEXT], b_shape[TD_SHAPE_TEXT];
    if (td_tensor_same_shape(a, b))
        return TD_OK;
    return td_fail(TD_ESHAPE, "%s of shape %s and %s of shape %s must have the same shape", a_name,
                   td_tensor_shape_text(a, a_shape), b_name, td_tensor_shape_text(b, b_shape));
}

td_status td_check_pair(const td_tensor *a, const td_tensor *b) {
    if (a->dtype != b->dtype)
        return td_fail(TD_EDTYPE, "dtypes %s and %s differ: convert one with x:to(dtype)",
                       td_dtype_name((td_dtype)a->dtype), td_dtype_name((td_dtype)b->dtype));
    if (!td_device_same(td_tensor_device(a), td_tensor_device(b)))
        return td_fail(TD_EDEVICE, "the operands lie on different devices");
    return TD_OK;
}

td_status td_check_bias(const td_tensor *x, const td_tensor *bias, int64_t features) {
    char text[TD_SHAPE_TEXT];
    if (bias && (bias->ndim != 1 || bias->sizes[0] != features))
        return td_fail(TD_ESHAPE, "bias must have shape (%lld), got %s", (long long)features,
                       td_tensor_shape_text(bias, text));
    return bias ? td_check_pair(x, bias) : TD_OK;
}

td_status td_check_images(int ndim, const int64_t *sizes) {
    char text[TD_SHAPE_TEXT];
    return ndim == 3 || ndim == 4
               ? TD_OK
               : td_fail(TD_ESHAPE, "input must have shape (N, C, H, W) or (C, H, W), got %s",
                         td_shape_text(ndim, sizes, text, sizeof text));
}

td_status td_read_pair(const char *name, td_value v, int64_t least, int64_t *pair) {
    for (int k = 0; k < 2; k++) {
        pair[k] = v.ints[k];
        if (pair[k] < least || pair[k] > INT32_MAX)
            return td_fail(TD_EVALUE, "%s must be from %lld to 2^31 - 1, got %lld and %lld", name,
                           (long long)least, (long long)v.ints[0], (long long)v.ints[1]);
    }
    return TD_OK;
}

void td_reserve_numbers(td_device device, td_value generator, uint64_t blocks, uint64_t *seed,
                        uint64_t *offset) {
    td_generator_reserve(td_is_nil(generator) ? NULL : generator.generator,
                         device.type == TD_META ? 0 : blocks, seed, offset);
}

td_status td_op_refuse_dtype(const td_op *op, td_dtype dtype) {
    const char *name = td_dtype_name(dtype);
    switch (op->dtypes) {
    case TD_DTYPES_FLOATS:
        return td_fail(TD_EDTYPE, "needs a floating dtype, got %s: convert it first with x:float()",
                       name);
    case TD_DTYPES_INTS:
        return td_fail(TD_EDTYPE, "needs integers, got %s", name);
    case TD_DTYPES_NUMBERS:
        return td_fail(TD_EDTYPE, "not for bool: convert with x:float() or x:long()");
    case TD_DTYPES_INTS | TD_DTYPES_BOOL:
        return td_fail(TD_EDTYPE, "integers or bool expected, got %s", name);
    }
    return td_fail(TD_EDTYPE, "not implemented for %s", name);
}

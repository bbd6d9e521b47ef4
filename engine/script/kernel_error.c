/* kernel_error.c: compares tensors in units in the last place. */
#include "engine/script/kernel_error.h"

#include "engine/ops/op.h"

#include <math.h>
#include <string.h>

/* Floats as integers in the same order, of which neighbours differ by 1; both zeros are 0. */
static int64_t in_order(td_dtype dtype, const char *at) {
    const size_t size = td_dtype_size(dtype);
    uint64_t bits = 0;
    memcpy(&bits, at, size); /* the low bytes: machines are little-endian */
    const uint64_t sign = (uint64_t)1 << (8 * size - 1);
    return bits & sign ? -(int64_t)(bits & ~sign) : (int64_t)bits;
}

static double count_ulps(td_dtype dtype, const char *a, const char *b) {
    const bool one = isnan(td_load_double(dtype, a)), other = isnan(td_load_double(dtype, b));
    if (one || other)
        return one && other ? 0 : INFINITY;
    return fabs((double)in_order(dtype, a) - (double)in_order(dtype, b));
}

static void compare(td_kernel_error *error, const td_tensor *is, const td_tensor *should_be) {
    const td_dtype dtype = (td_dtype)is->dtype;
    const size_t size = td_dtype_size(dtype), bytes = size * (size_t)is->numel;
    const char *a = is->data, *b = should_be->data;
    if (!bytes || !memcmp(a, b, bytes))
        return;
    if (!td_dtype_is_float(dtype)) {
        error->others = true;
        return;
    }
    for (size_t at = 0; at < bytes; at += size) {
        double ulps = memcmp(a + at, b + at, size) ? count_ulps(dtype, a + at, b + at) : 0;
        error->ulps = ulps > error->ulps ? ulps : error->ulps;
    }
}

td_status td_kernel_error_add(td_kernel_error *error, td_tensor *is, td_tensor *should_be) {
    td_tensor *a = NULL, *b = NULL;
    td_status status = TD_OK;
    if (td_tensor_device(is).type == TD_CPU) {
        compare(error, is, should_be);
        return TD_OK;
    }
    TD_TRY(TD_APPLY(&a, to, TD_T(is), TD_NIL, TD_DEVICE(TD_DEVICE_CPU)));
    TD_TRY(TD_APPLY(&b, to, TD_T(should_be), TD_NIL, TD_DEVICE(TD_DEVICE_CPU)));
    compare(error, a, b);
done:
    td_release(a);
    td_release(b);
    return status;
}

void td_kernel_error_join(td_kernel_error *error, const td_kernel_error *other) {
    error->calls += other->calls;
    error->ulps = other->ulps > error->ulps ? other->ulps : error->ulps;
    error->others |= other->others;
}

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

static double larger(double a, double b) {
    return a > b ? a : b;
}

/* The space between a float of this size and its neighbour. */
static double ulp_of(td_dtype dtype, double size) {
    char here[8], there[8];
    uint64_t bits = 0;
    td_store_double(dtype, here, size);
    memcpy(&bits, here, td_dtype_size(dtype));
    bits--; /* towards 0: the largest has no neighbour beyond */
    memcpy(there, &bits, td_dtype_size(dtype));
    return size > 0 ? td_load_double(dtype, here) - td_load_double(dtype, there) : 0;
}

static void compare_floats(td_kernel_error *error, td_dtype dtype, int64_t n, const char *a,
                           const char *b) {
    double most = 0, largest = 0;
    const size_t size = td_dtype_size(dtype);
    for (int64_t k = 0; k < n; k++, a += size, b += size) {
        const double is = td_load_double(dtype, a), right = td_load_double(dtype, b);
        largest = larger(largest, isfinite(right) ? fabs(right) : 0);
        if (!memcmp(a, b, size) || (isnan(is) && isnan(right)))
            continue;
        if (isfinite(is) && isfinite(right)) {
            double ulps = fabs((double)in_order(dtype, a) - (double)in_order(dtype, b));
            error->ulps = larger(error->ulps, ulps);
            most = larger(most, fabs(is - right));
        } else
            error->ulps = error->scaled = INFINITY;
    }
    const double ulp = ulp_of(dtype, largest);
    error->scaled = larger(error->scaled, ulp > 0 ? most / ulp : 0);
}

static void compare(td_kernel_error *error, const td_tensor *is, const td_tensor *should_be) {
    const td_dtype dtype = (td_dtype)is->dtype;
    const size_t bytes = td_dtype_size(dtype) * (size_t)is->numel;
    if (!bytes || !memcmp(is->data, should_be->data, bytes))
        return;
    if (td_dtype_is_float(dtype))
        compare_floats(error, dtype, is->numel, is->data, should_be->data);
    else
        error->others = true;
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
    error->ulps = larger(error->ulps, other->ulps);
    error->scaled = larger(error->scaled, other->scaled);
    error->others |= other->others;
}

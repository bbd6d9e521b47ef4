/* rule_helpers.h: what the rows and rules of all families are written with: results, checks, short
 * forms.
 */
#ifndef TD_OPS_RULE_HELPERS_H
#define TD_OPS_RULE_HELPERS_H

#include "engine/core/format.h"
#include "engine/ops/op.h"

/* ---- results ---- */

static inline void td_meta_set(td_meta *out, td_dtype dtype, int ndim, const int64_t *sizes) {
    out->dtype = dtype;
    out->ndim = ndim;
    for (int d = 0; d < ndim; d++)
        out->sizes[d] = sizes[d];
}
/* x's shape in a dtype. */
static inline void td_meta_like(td_meta *out, const td_tensor *x, td_dtype dtype) {
    td_meta_set(out, dtype, x->ndim, x->sizes);
}

/* Rule: the shape and dtype of the first argument. */
td_status td_rule_same(const td_call *call, td_meta *out);

/* Shape from an int[] value, dtype and device from options (nil: the default dtype, the CPU).
 * ESHAPE for a negative size or too many dims. */
td_status td_creation_meta(td_value size, td_value dtype, td_value device,
                           td_meta *out) TD_MUST_CHECK;

/* The same, for the tensor that out= gives: its dtype and device, which the options may repeat. */
td_status td_creation_meta_out(const td_call *call, td_value size, td_value dtype, td_value device,
                               td_meta *out) TD_MUST_CHECK;

/* The same shape as x, in a memory format (td_meta_format); x's dtype and device where the options
 * are nil. */
td_status td_creation_meta_like(const td_tensor *x, td_value dtype, td_value device,
                                td_value format, td_meta *out) TD_MUST_CHECK;

/* The format that an option memory_format names: "contiguous", "channels_last" or
 * "channels_last_3d". EVALUE for anything else; ESHAPE where tensors of so many dims have no such
 * format. */
td_status td_read_format(td_value option, int ndim, td_format *format) TD_MUST_CHECK;

/* Strides of a result of known shape, in a format; or, for "preserve", in the order of x's dims. */
td_status td_meta_format(td_value option, const td_tensor *x, td_meta *out) TD_MUST_CHECK;
void td_meta_lay(td_format format, td_meta *out);

/* Room for a result that is a list of n tensors, all NULL at first. EVALUE for more than int
 * counts, ENOMEM. */
td_status td_call_open_list(td_call *call, int64_t n) TD_MUST_CHECK;

/* ---- checks ---- */

/* EDTYPE unless it is a floating dtype. */
td_status td_check_float(td_dtype dtype) TD_MUST_CHECK;

/* EDTYPE unless the tensor, an index, holds integers. */
td_status td_check_index(const td_tensor *index) TD_MUST_CHECK;

/* EVALUE unless an integer dtype holds the number: its whole part, and of unsigned ones what wraps
 * around from below. */
td_status td_check_holds(td_dtype dtype, td_value number) TD_MUST_CHECK;

/* ESHAPE unless x has so many dims. */
td_status td_fail_ndim(const td_tensor *x, const char *name, int ndim);
static inline td_status td_check_ndim(const td_tensor *x, const char *name, int ndim) {
    return TD_LIKELY(x->ndim == ndim) ? TD_OK : td_fail_ndim(x, name, ndim);
}

/* ESHAPE unless a and b, which are called so, have the same shape. */
td_status td_check_same_shape(const td_tensor *a, const char *a_name, const td_tensor *b,
                              const char *b_name) TD_MUST_CHECK;

/* The operands of a product: EDTYPE unless their dtypes are the same, EDEVICE unless they lie on
 * one device. */
td_status td_check_pair(const td_tensor *a, const td_tensor *b) TD_MUST_CHECK;

/* A bias, or NULL, for so many features of a product with x: ESHAPE unless it has their shape;
 * td_check_pair. */
td_status td_check_bias(const td_tensor *x, const td_tensor *bias, int64_t features) TD_MUST_CHECK;

/* ESHAPE unless these are the sizes of images: (N, C, H, W) or (C, H, W). */
td_status td_check_images(int ndim, const int64_t *sizes) TD_MUST_CHECK;

/* An int[2] argument, (height, width): EVALUE unless both lie between `least` and 2^31 - 1, which
 * keeps sums of products of them in 64 bits. */
td_status td_read_pair(const char *name, td_value v, int64_t least, int64_t *pair) TD_MUST_CHECK;

/* ---- draws ---- */

/* Reserve `blocks` counters of a generator, an argument, for numbers that are drawn on a device:
 * the seed and the first counter. What has no elements takes none. */
void td_reserve_numbers(td_device device, td_value generator, uint64_t blocks, uint64_t *seed,
                        uint64_t *offset);

/* ---- short forms ---- */

/* Replace *x, which is owned, by an operator's result, or go to `done`:
 * TD_STEP(&x, mul, TD_T(x), TD_T(y)). */
#define TD_STEP(x, id, ...)                                                                        \
    do {                                                                                           \
        td_tensor *next_ = NULL;                                                                   \
        TD_TRY(TD_APPLY(&next_, id, __VA_ARGS__));                                                 \
        td_release(*(x));                                                                          \
        *(x) = next_;                                                                              \
    } while (0)

/* A rule that is another function with more arguments. */
#define TD_RULE(name, function, ...)                                                               \
    static td_status name(const td_call *call, td_meta *out) {                                     \
        return function(call, out, __VA_ARGS__);                                                   \
    }

/* The kernel of an operator whose results and first arguments stand in the plan in that order:
 * hands the plan to the device's function. Arguments that are no tensors are NULL there. */
#define TD_KERNEL(name, function, plan, nresults, nargs)                                           \
    static td_status name(td_call *call) {                                                         \
        plan *p = TD_PLAN(call, plan);                                                             \
        for (int k = 0; k < (nresults); k++)                                                       \
            p->tensors[k] = call->out[k];                                                          \
        for (int k = 0; k < (nargs); k++)                                                          \
            p->tensors[(nresults) + k] = td_arg_tensor(call->args[k]);                             \
        return TD_RUN(td_tensor_device(call->out[0]), function, p);                                \
    }

#endif

/* spatial.h: what operators over one to three spatial dims share: (N, C, D, H, W), (N, C, H, W) or
 * (N, C, L), and all of these without N. Channels-last tensors are taken as they lie.
 */
#ifndef TD_OPS_SPATIAL_SPATIAL_H
#define TD_OPS_SPATIAL_SPATIAL_H

#include "engine/ops/make/copy.h"
#include "engine/ops/plan/plan.h"
#include "engine/ops/rule_helpers.h"

/* ---- arguments ---- */

/* ESHAPE unless the sizes are those of `n` spatial dims: (N, C, ...) or (C, ...). */
td_status td_check_spatial(int n, int ndim, const int64_t *sizes) TD_MUST_CHECK;
/* The same; (N, C, ...) alone. */
td_status td_check_batched(int n, int ndim, const int64_t *sizes) TD_MUST_CHECK;

/* A list of ints for `n` dims: EVALUE unless there are so many, each between `least` and 2^31 - 1,
 * which keeps sums of products of them in 64 bits. */
td_status td_read_spatial(const char *name, td_value v, int n, int64_t least,
                          int64_t *out) TD_MUST_CHECK;

/* ESHAPE unless int32 counts the places along each of `n` dims of a size, and int64 all. */
td_status td_check_places(const char *what, int n, const int64_t *sizes) TD_MUST_CHECK;

/* ---- layouts ---- */

/* Is x a batch of n spatial dims that lies as (N, L, C), (N, H, W, C) or (N, D, H, W, C), and not
 * row-major as well? n of 0: of two or three, as x's dims say. */
static inline bool td_lies_channels_last(int n, const td_tensor *x) {
    if (n == 1)
        return x->ndim == 3 && td_format_is_hinted(TD_CHANNELS_LAST_1D, x->sizes, x->strides);
    return (n == 0 || x->ndim == n + 2) && td_tensor_format(x) != TD_ROW_MAJOR;
}

/* Channels last, or row-major, for so many dims. */
static inline td_format td_spatial_format(int ndim, bool channels_last) {
    return !channels_last ? TD_ROW_MAJOR
           : ndim == 3    ? TD_CHANNELS_LAST_1D
           : ndim == 4    ? TD_CHANNELS_LAST
                          : TD_CHANNELS_LAST_3D;
}
static inline void td_meta_lay_spatial(td_meta *out, bool channels_last) {
    td_meta_lay(td_spatial_format(out->ndim, channels_last), out);
}
static inline td_status td_pack_spatial(td_tensor *x, bool channels_last, td_tensor **out) {
    return td_pack(x, td_spatial_format(x->ndim, channels_last), out);
}

/* How volumes of `n` spatial dims lie: `outer` of them, each with `inner` elements at a place. */
void td_volumes(int n, int ndim, const int64_t *sizes, bool channels_last, int64_t *outer,
                int64_t *inner);

/* ---- convolutions ---- */

/* The geometry of a convolution of x with a weight, from their shapes and four arguments stride,
 * padding (or "same", "valid"), dilation and groups; for `n` spatial dims, or (0) as many as the
 * weight has. How the tensors lie is left to the caller. ESHAPE, EVALUE. */
td_status td_conv_geometry_make(int n, int ndim, const int64_t *x, int weight_ndim,
                                const int64_t *weight, const td_value *args,
                                td_conv_geometry *g) TD_MUST_CHECK;
/* The shape of y, or (`in`) of x, and how they lie. */
void td_conv_images_meta(const td_conv_geometry *g, bool in, td_dtype dtype, td_meta *out);

/* ---- windows ---- */

/* An axis of one place, for a dim that is not there. */
extern const td_axis td_axis_none;

/* Windows that slide: arguments kernel_size, stride (nil or empty: kernel_size), padding and
 * dilation (nil: 1) for the n last axes, whose `in` is set. */
td_status td_read_windows(int n, td_value kernel, td_value stride, td_value padding,
                          td_value dilation, bool ceil_mode, td_axis *axis) TD_MUST_CHECK;

/* The parts of adaptive pooling: an int?[] of n sizes; those left out are the input's. */
td_status td_read_parts(int n, td_value size, td_axis *axis) TD_MUST_CHECK;

/* The axes of an input of n spatial dims: their `in`, and for dims that are not there all. */
td_status td_axes_init(int n, int ndim, const int64_t *sizes, td_axis *axis) TD_MUST_CHECK;

/* The shape of the result: that of the input, its spatial dims those of the axes. */
void td_meta_axes(td_meta *out, td_dtype dtype, int n, int ndim, const int64_t *sizes,
                  const td_axis *axis);

/* What help says of the steps of windows, behind the length of a result. */
#define TD_WINDOW_STEPS                                                                            \
    "; s = kernel_size if stride == nil else stride; round = ceil if ceil_mode else floor"

#endif

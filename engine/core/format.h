/* format.h: memory formats: in which order the dims of a tensor lie. The rules are PyTorch's, those
 * for shapes that several formats fit too. */
#ifndef TD_CORE_FORMAT_H
#define TD_CORE_FORMAT_H

#include "engine/core/tensor.h"

typedef enum td_format {
    TD_ROW_MAJOR,
    TD_CHANNELS_LAST,    /* (N, C, H, W) as N, H, W, C */
    TD_CHANNELS_LAST_3D, /* (N, C, D, H, W) as N, D, H, W, C */
    TD_CHANNELS_LAST_1D  /* (N, C, L) as N, L, C; has no name in scripts, and nothing hints at it */
} td_format;

/* Dims of the tensors that have the format; 0: any. */
int td_format_ndim(td_format format);

/* Strides of a shape in a format, which it has. */
void td_format_strides(td_format format, int ndim, const int64_t *sizes, int64_t *strides);

/* Do x's elements lie so, without gaps? Dims of size 1 may have any stride, so that a shape with
 * one channel, or one pixel, is in several formats at once. */
bool td_tensor_is_in_format(const td_tensor *x, td_format format);

/* Do the strides of so many dims hint at such a format, and at no other? Gaps don't matter. */
bool td_format_is_hinted(td_format format, const int64_t *sizes, const int64_t *strides);

/* The format that the strides hint at: row-major wherever they leave a choice. Gaps don't matter.
 */
td_format td_format_suggested(int ndim, const int64_t *sizes, const int64_t *strides);
static inline td_format td_tensor_format(const td_tensor *x) {
    return td_format_suggested(x->ndim, x->sizes, x->strides);
}

/* Strides for a tensor like x: x's own where it has neither gaps nor overlaps, else without these
 * and in the order of x's. */
void td_tensor_dense_strides(const td_tensor *x, int64_t *strides);

#endif

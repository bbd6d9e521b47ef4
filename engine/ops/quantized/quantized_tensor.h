/* quantized_tensor.h: quantized tensors: integers, and the scale and zero point that they stand
 * for.
 *
 * An element q stands for (q - zero point) * scale. A tensor has one scale and one zero point, or
 * one of each for every place along a dim, its axis. Its dtype is that of the integers (uint8,
 * int8, int32); scripts see it by another name (quint8, qint8, qint32).
 *
 * Scales are kept in float64 as they were given; arithmetic takes them in float32. A write in
 * place gives a tensor other integers; other parameters it gets by copy_ alone, where no other
 * tensor reads its integers. The struct is shared by aliases, as a storage is.
 */
#ifndef TD_OPS_QUANTIZED_QUANTIZED_TENSOR_H
#define TD_OPS_QUANTIZED_QUANTIZED_TENSOR_H

#include "engine/core/tensor.h"

typedef struct td_quantized {
    td_extra extra;
    td_tensor *ints; /* of the tensor's shape; owned */
    /* Of the whole tensor, where there is no axis. */
    double scale;
    int64_t zero_point;
    /* By place along the axis, float64 and int64, on the tensor's device; NULL without. Owned. */
    td_tensor *scales, *zero_points;
    int axis;
} td_quantized;

/* New quantized tensors that take their own references; what is given fits. ENOMEM. */
td_status td_quantized_new(td_tensor *ints, double scale, int64_t zero_point,
                           td_tensor **out) TD_MUST_CHECK;
td_status td_quantized_new_by_channel(td_tensor *ints, td_tensor *scales, td_tensor *zero_points,
                                      int axis, td_tensor **out) TD_MUST_CHECK;
/* Other integers with the parameters of x, of the same axis. */
td_status td_quantized_like(const td_tensor *x, td_tensor *ints, td_tensor **out) TD_MUST_CHECK;

/* The parts of a quantized tensor, borrowed; NULL for any other. */
static inline td_quantized *td_quantized_of(const td_tensor *x) {
    return TD_UNLIKELY(x->layout == TD_QUANTIZED) ? (td_quantized *)x->extra : NULL;
}

/* What integers of a dtype may be; false where there are no quantized tensors of it. */
bool td_quantized_range(td_dtype ints, int64_t *low, int64_t *high);

/* A dtype by the name that it has in a quantized tensor: "quint8" for uint8; NULL for what is none.
 * And back; TD_DTYPE_NONE for any other name. */
const char *td_quantized_name(td_dtype ints);
td_dtype td_quantized_find(const char *name);
/* The name of the dtype of a tensor, quantized or not. */
const char *td_tensor_dtype_name(const td_tensor *x);

/* "per_tensor_affine", "per_channel_affine". */
const char *td_quantized_scheme(const td_quantized *q);

#endif

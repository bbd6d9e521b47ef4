/* conv.h: the shape of a convolution and the kernels that a device defines. */
#ifndef TD_OPS_CONV_H
#define TD_OPS_CONV_H

#include "engine/ops/op.h"
#include "engine/ops/plan.h"

/* From the shapes of x and weight and four arguments stride, padding, dilation, groups. ESHAPE and
 * EVALUE say what does not fit. */
td_status td_conv_geometry_make(int ndim, const int64_t *x, int weight_ndim, const int64_t *weight,
                                const td_value *args, td_conv_geometry *g) TD_MUST_CHECK;

/* All tensors row-major and of one floating dtype; bias may be NULL. */
td_status td_cpu_conv2d(const td_conv_geometry *g, const td_tensor *x, const td_tensor *weight,
                        const td_tensor *bias, td_tensor *y) TD_MUST_CHECK;
td_status td_cpu_conv2d_input(const td_conv_geometry *g, const td_tensor *weight,
                              const td_tensor *gy, td_tensor *gx) TD_MUST_CHECK;
td_status td_cpu_conv2d_weight(const td_conv_geometry *g, const td_tensor *x, const td_tensor *gy,
                               td_tensor *gweight) TD_MUST_CHECK;

#endif

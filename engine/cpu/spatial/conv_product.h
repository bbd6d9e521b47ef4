/* conv_product.h: convolutions with kernels of one place as products of the images as they lie. */
#ifndef TD_CPU_SPATIAL_CONV_PRODUCT_H
#define TD_CPU_SPATIAL_CONV_PRODUCT_H

#include "engine/ops/plan/plan.h"

/* Convolves n images from `first` on. What an element gives depends on the plan's geometry, not on
 * n or threads. */
typedef td_status (*td_conv_product)(const td_convolution_plan *p, int64_t first, int64_t n);

/* The quickest for the plan; NULL: it is no product, or oneDNN is quicker. */
td_conv_product td_conv_product_of(const td_convolution_plan *p);

#endif

/* product.h: what products and convolutions share on the host. */
#ifndef TD_CUDA_PRODUCT_PRODUCT_H
#define TD_CUDA_PRODUCT_PRODUCT_H

#include "engine/cuda/cuda.h"
#include "engine/cuda/product/product_code.h"

/* Cut long sums into parts where there are few tiles, by the sizes alone, and take the room. */
td_status td_cuda_product_parts(td_cu_product_size *s, td_dtype dtype, td_stream stream,
                                td_cuda_scratch *room) TD_MUST_CHECK;
/* More tiles than a launch has blocks. */
bool td_cuda_product_fits(const td_cu_product_size *s);

#endif

/* strided_convert.h: runs of elements read and written as another dtype, a block at a time. */
#ifndef TD_CPU_POINTWISE_STRIDED_CONVERT_H
#define TD_CPU_POINTWISE_STRIDED_CONVERT_H

#include "engine/core/dtype.h"

/* Elements of a buffer that stays in the first-level cache. */
enum { TD_BLOCK = 1024 };

/* n elements of dtype `from`, `stride` elements apart, into dst side by side as `to`. */
void td_block_read(td_dtype to, void *dst, td_dtype from, const void *src, int64_t stride,
                   int64_t n);

/* n elements that lie side by side into dst, `stride` elements apart. */
void td_block_write(td_dtype to, void *dst, int64_t stride, td_dtype from, const void *src,
                    int64_t n);

/* EDTYPE: the function that was called has no loop for this dtype. */
td_status td_cpu_lacks(td_dtype dtype);

#endif

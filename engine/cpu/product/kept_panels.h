/* kept_panels.h: right sides of products that are kept packed, beside the storages that they are
 * forms of: weights of layers, which stay as they are from call to call. */
#ifndef TD_CPU_PRODUCT_KEPT_PANELS_H
#define TD_CPU_PRODUCT_KEPT_PANELS_H

#include "engine/core/tensor.h"
#include "engine/cpu/product/product.h"

/* The right side of `p`, which lies in `storage`, as td_product_pack makes it of all its terms and
 * columns: new, or NULL where it isn't kept. It is packed and kept when it is met for the second
 * time as it was, and nothing is recorded for backward; it goes when the storage has been written
 * or dies. Where memory is short, and beyond a bound of all that is kept, nothing is. */
td_tensor *td_kept_panels(td_dtype dtype, td_storage *storage, const td_product_block *p);

#endif

/* kept_panels.h: right sides of products that are kept packed, beside the storages that they are
 * forms of: weights of layers, which stay as they are from call to call. */
#ifndef TD_CPU_PRODUCT_KEPT_PANELS_H
#define TD_CPU_PRODUCT_KEPT_PANELS_H

#include "engine/core/tensor.h"
#include "engine/cpu/product/bf16_pack.h"
#include "engine/cpu/product/product.h"

/* All panels of the right side of `p`, as td_product_pack makes them, one behind the other: new. */
td_status td_pack_panels(td_dtype dtype, const td_product_block *p, td_tensor **out) TD_MUST_CHECK;

/* The right side of `p`, which lies in `storage`, as td_product_pack makes it of all its terms and
 * columns: new, or NULL where it isn't kept (ops/make/kept_forms.h says when it is). */
td_tensor *td_kept_panels(td_dtype dtype, td_storage *storage, const td_product_block *p);

/* The same of bfloat16 from `from` on, packed by td_pack_pairs into so many bytes. */
td_tensor *td_kept_pairs(td_storage *storage, const td_pairs *p, const uint16_t *from,
                         int64_t bytes);

#endif

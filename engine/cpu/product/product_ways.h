/* product_ways.h: the ways to a product, and the choice among them (product_choice.c). matmul.c
 * goes them; tests/bench/rungs.c times each where it can be gone. */
#ifndef TD_CPU_PRODUCT_PRODUCT_WAYS_H
#define TD_CPU_PRODUCT_PRODUCT_WAYS_H

#include "engine/cpu/product/product.h"
#include "engine/ops/plan/plan.h"

typedef enum td_product_way {
    TD_WAY_CHOSEN,        /* as td_product_choose says */
    TD_WAY_PLAIN,         /* a loop over rows, columns and depth */
    TD_WAY_VECTORS,       /* dot products, or sums of rows (td_product_by_vectors) */
    TD_WAY_BLOCKS,        /* td_product_by_blocks */
    TD_WAY_PANELS,        /* td_product_by_panels */
    TD_WAY_FEW,           /* td_product_by_few */
    TD_WAY_FEW_KEPT,      /* the same, its right side kept packed (kept_panels.h) */
    TD_WAY_OPENBLAS,      /* OpenBLAS's gemm */
    TD_WAY_ONEDNN_SGEMM,  /* the function that oneDNN has beside its primitives */
    TD_WAY_ONEDNN,        /* a primitive of oneDNN */
    TD_WAY_ONEDNN_PACKED, /* the same, a large right side packed by us (bf16_pack.h) */
    TD_WAY_WIDE           /* 16-bit floats: converted to float32, whose ways these are */
} td_product_way;

/* Leading dim of a matrix that a BLAS takes as it lies (or as its transpose lies); 0: neither. */
int64_t td_product_leading(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride,
                           bool *transposed);

/* Can products of this dtype (float, or integers without a bias) go that way? */
bool td_product_can(td_product_way way, td_dtype dtype, const td_product_block *first,
                    int64_t batch);

/* The way that is the quickest for floats, by dtype, sizes, strides and instruction set. */
td_product_way td_product_choose(td_dtype dtype, const td_product_block *first, int64_t batch);

/* The backend's product by one way; the caller has asked td_product_can. */
td_status td_cpu_product_by(const td_product_plan *plan, td_product_way way) TD_MUST_CHECK;

#endif

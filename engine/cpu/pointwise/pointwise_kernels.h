/* pointwise_kernels.h: loops of the primitive pointwise operators. */
#ifndef TD_CPU_POINTWISE_POINTWISE_KERNELS_H
#define TD_CPU_POINTWISE_POINTWISE_KERNELS_H

#include "engine/core/dtype.h"
#include "engine/ops/language/program.h"

/* out[i] = f(a[i], b[i], c[i]) for i < n; contiguous, of the dtypes that td_primitive_signature
 * says (bool is 0 or 1). Bit k of `scalars` says that operand k is a single element used for all i.
 * `out` may be the same memory as an operand. */
typedef void (*td_pointwise_fn)(int64_t n, void *out, const void *a, const void *b, const void *c,
                                unsigned scalars);

/* Rows of n elements, and where the next ones begin, in bytes: out = f(a, b), where bit k of
 * `scalars` says that operand k is a single element in each row. */
typedef struct td_rows {
    int64_t rows, n;
    char *out;
    const char *a, *b;
    int64_t out_step, a_step, b_step;
    unsigned scalars;
} td_rows;
typedef void (*td_rows_fn)(const td_rows *rows);

/* An operation of a chain (engine/cpu/pointwise/chain.h) on the value in the registers and another
 * one: a primitive (behind TD_CHAIN_SWAPPED the other value comes first), or one of these. Masks
 * are values of all bits or none. `other`, `third`: the further values that a choice reads. */
typedef struct td_chain_op {
    uint16_t op, reg, other, third;
} td_chain_op;
enum {
    TD_CHAIN_SWAPPED = TD_PRIMITIVES,
    /* Before a comparison, in the place of its mask: where it holds of... */
    TD_CHAIN_PICK = 2 * TD_PRIMITIVES,      /* the registers and `reg`, `other`, else `third` */
    TD_CHAIN_PICK_THEN = 3 * TD_PRIMITIVES, /* `reg` and `other`, the registers, else `third` */
    TD_CHAIN_PICK_ELSE = 4 * TD_PRIMITIVES, /* `reg` and `other`, `third`, else the registers */
    TD_CHAIN_LOAD = 5 * TD_PRIMITIVES,
    TD_CHAIN_STORE,
    /* Floats from 16-bit floats that go along half as fast, and back: of the registers, or (WIDEN)
     * into the memory of `other`. */
    TD_CHAIN_LOAD_HALVES,
    TD_CHAIN_LOAD_BFLOATS,
    TD_CHAIN_WIDEN_HALVES,
    TD_CHAIN_WIDEN_BFLOATS,
    TD_CHAIN_STORE_HALVES,
    TD_CHAIN_STORE_BFLOATS,
    TD_CHAIN_FETCH, /* what a tile further on will load; the registers stay as they are */
    TD_CHAIN_ONE,   /* 1 where the mask in the registers is set, else 0 */
    TD_CHAIN_WHERE, /* by the mask in the registers, `reg` or `other` */
    TD_CHAIN_THEN,  /* by the mask `reg`, what is in the registers or `other` */
    TD_CHAIN_ELSE,  /* by the mask `reg`, `other` or what is in the registers */
    TD_CHAIN_END
};

/* Where a register's elements are: of tile t at `at`, `tile_bytes` * t further where `moves` has
 * all bits and not further where it has none. `full`: of the one element whose bits are noted. */
typedef struct td_place {
    unsigned char *at;
    uint64_t moves, bits;
    bool full;
} td_place;

/* Runs the operations, up to an END, over so many tiles. */
typedef void (*td_chain_fn)(const td_chain_op *code, int64_t tiles, const td_place *places);

enum { TD_SHORT_ROW = 256 }; /* bytes */

typedef struct td_pointwise_kernels {
    td_chain_fn chain[TD_DTYPE_COUNT]; /* NULL: not for it */
    size_t tile_bytes;
    td_pointwise_fn primitive[TD_PRIMITIVES][TD_DTYPE_COUNT]; /* [dtype of computation];
                                                                    NULL: not for it */
    /* Of 16-bit floats, [1] of bfloat16, where computing as float costs no more than what turns
     * them into it; operands of a single element are floats. NULL: not for it. */
    td_pointwise_fn narrow[TD_PRIMITIVES][2];
    /* Of 16-bit floats of either dtype, no operand a single element; NULL: it is none that changes
     * the sign alone. */
    td_pointwise_fn signs[TD_PRIMITIVES];
    /* Powers by 3 and -2, of one operand. [dtype of computation]; NULL: not for it. */
    td_pointwise_fn cube[TD_DTYPE_COUNT], inverse_square[TD_DTYPE_COUNT];
    /* dst[k] = src[-k] for k < n, of elements of 1, 2, 4 or 8 bytes that do not overlap. */
    void (*reverse)(void *dst, const void *src, int64_t n, size_t itemsize);
    /* dst[k] = src[k * step] for k < n, likewise. */
    void (*every)(void *dst, const void *src, int64_t step, int64_t n, size_t itemsize);
    /* Of float32 and float64, the same results as `primitive`; NULL: row by row. */
    td_rows_fn rows[TD_PRIMITIVES][2];
    /* Copies `rows` rows of so many bytes, best no more than TD_SHORT_ROW, that begin a step of
     * bytes apart; what is written overlaps nothing that is read. */
    void (*copy_rows)(void *dst, int64_t dst_step, const void *src, int64_t src_step, int64_t bytes,
                      int64_t rows);
    /* dst[k] = element for k < n, of elements of 1, 2, 4 or 8 bytes. */
    void (*repeat)(void *dst, const void *element, int64_t n, size_t itemsize);
    /* Copies past the caches: for results that are too large to be found there again. */
    void (*stream)(void *dst, const void *src, size_t bytes);
    void (*stream_end)(void); /* before other threads may read what was streamed */
} td_pointwise_kernels;

#endif

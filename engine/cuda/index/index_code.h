/* index_code.h: elements at places that others name: what the kernels of index.cu and combine.cu
 * are launched with. */
#ifndef TD_CUDA_INDEX_INDEX_CODE_H
#define TD_CUDA_INDEX_INDEX_CODE_H

#include "engine/cuda/order/order_code.h"
#include "engine/cuda/runtime/dims.h"
#include "engine/cuda/runtime/report.h"

/* How several elements become one; as td_combine. */
enum td_cu_combine { TD_CU_PUT, TD_CU_ADD, TD_CU_MUL, TD_CU_MAX, TD_CU_MIN };

/* Rows that index tensors pick: sizes of the dims that they index, counted through row-major as
 * keys, their strides in elements. */
typedef struct td_cu_picks {
    int n;
    const int64_t *index[TD_CU_WALKED];
    int64_t sizes[TD_CU_WALKED], strides[TD_CU_WALKED];
    td_cu_report report[TD_CU_WALKED];
} td_cu_picks;

/* out[before, place, after] = x's element there. Elements have 1, 2, 4, 8 or 16 bytes. */
typedef struct td_cu_index_read {
    void *out;
    const void *x;
    int itemsize;
    int64_t before_n, places, after_n;
    td_cu_dims before, after;
    td_cu_picks picks;
} td_cu_index_read;

/* Element k of the index goes with element k of `narrow`, and with the one of `wide` whose place
 * along a dim of `size` the index tells. */
typedef struct td_cu_gather {
    const int64_t *index;
    void *out;
    const void *x;
    int itemsize;
    int64_t n, size, stride;
    td_cu_dims index_dims, narrow, wide;
    td_cu_report report;
} td_cu_gather;

/* Keys from 0 to `limit` - 1 name rows of `to`; others are passed over. Row k of `from`, for each
 * `before`, goes to the row that its key names, rows of one key in order. `rows` walks the rows
 * that keys name, `sources` those of `from`. */
typedef struct td_cu_combination {
    void *to;
    const void *from;
    int dtype, how;
    int wide; /* narrow floats are rounded when all are added, instead of each time */
    uint32_t n, limit;
    int64_t before_n, after_n;
    td_cu_dims rows, to_before, to_after;
    td_cu_dims sources;
    int64_t from_before; /* stride */
    const uint32_t *keys, *ranks;
    uint32_t *last; /* PUT: for each key room for the last row */
} td_cu_combination;

/* One thread takes all rows for an element of `before` and `after` in order. */
typedef struct td_cu_serial_write {
    void *to;
    const void *from;
    int dtype, accumulate;
    int64_t before_n, places, after_n;
    td_cu_dims before, after;
    td_cu_picks picks;
} td_cu_serial_write;

/* Lines of the index along the dim, each taken by one thread from its beginning to its end. `index`
 * and the others walk the lines' first elements; steps lead along a line. */
typedef struct td_cu_written_lines {
    const int64_t *index;
    void *to;
    const void *from;
    int dtype, how;
    int64_t lines, length, size;
    int64_t index_step, from_step, to_stride;
    td_cu_dims index_dims, from_dims, to_dims;
    td_cu_report report;
} td_cu_written_lines;

#ifdef __cplusplus
extern "C" {
#endif
cudaError_t td_cu_index_read_run(const td_cu_index_read *r, cudaStream_t stream);
cudaError_t td_cu_gather_run(const td_cu_gather *g, cudaStream_t stream);
/* Keys for places; `limit` for what is reported. keys NULL: indices are only checked. */
cudaError_t td_cu_picked_keys(const td_cu_picks *p, uint32_t n, uint32_t limit, uint32_t *keys,
                              cudaStream_t stream);
/* Likewise for an index along a dim: offsets in elements of `wide`. Its x and out are not used. */
cudaError_t td_cu_gathered_keys(const td_cu_gather *g, uint32_t limit, uint32_t *keys,
                                cudaStream_t stream);
/* Where elements lie as keys. */
cudaError_t td_cu_offset_keys(const td_cu_dims *dims, int64_t first, uint32_t n, uint32_t *keys,
                              cudaStream_t stream);

/* keys ordered, with ranks. */
cudaError_t td_cu_combine_ordered(const td_cu_combination *c, cudaStream_t stream);
/* keys as they stand: no two are alike, or of several alike the last is written (PUT). */
cudaError_t td_cu_combine_single(const td_cu_combination *c, cudaStream_t stream);
cudaError_t td_cu_put_last(const td_cu_combination *c, cudaStream_t stream);
cudaError_t td_cu_write_serial(const td_cu_serial_write *w, cudaStream_t stream);
cudaError_t td_cu_write_lines(const td_cu_written_lines *l, cudaStream_t stream);
#ifdef __cplusplus
}
#endif
#endif

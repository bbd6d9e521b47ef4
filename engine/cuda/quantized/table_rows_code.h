/* table_rows_code.h: work on tables whose rows are bytes or halves of bytes, as the kernels of
 * table_rows.cu take it. */
#ifndef TD_CUDA_QUANTIZED_TABLE_ROWS_CODE_H
#define TD_CUDA_QUANTIZED_TABLE_ROWS_CODE_H

#include "engine/cuda/runtime/report.h"

#include <cuda_runtime_api.h>
#include <stdint.h>

/* td_pack_rows_plan: rows of n elements, which become rows of `bytes`. */
typedef struct td_cu_pack_rows {
    unsigned char *out;
    const float *x;
    int64_t rows, n, bytes;
    int bits;
} td_cu_pack_rows;

/* td_add_rows_plan: the table has `rows` rows of n elements in `bytes`, index `places` elements,
 * starts `nstarts` (NULL: bags of `length` places). `words`: everything in the table lies at
 * multiples of 4 bytes, and a row's elements fill a whole number of these. */
typedef struct td_cu_add_rows {
    float *out;
    const unsigned char *table;
    const int64_t *index, *starts;
    const float *weights; /* NULL: none */
    int64_t bags, n, rows, bytes, places, nstarts, length, padding;
    int bits, mean, words;
    td_cu_report bad_index, bad_start;
} td_cu_add_rows;

#ifdef __cplusplus
extern "C" {
#endif
cudaError_t td_cu_run_pack_rows(const td_cu_pack_rows *p, cudaStream_t stream);
cudaError_t td_cu_run_add_rows(const td_cu_add_rows *a, cudaStream_t stream);
#ifdef __cplusplus
}
#endif
#endif

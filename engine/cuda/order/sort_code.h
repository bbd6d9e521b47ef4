/* sort_code.h: what the kernels of sort.cu, radix_sort.cu and select.cu are launched with. */
#ifndef TD_CUDA_ORDER_SORT_CODE_H
#define TD_CUDA_ORDER_SORT_CODE_H

#include "engine/cuda/reduce/softmax_code.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    TD_CU_SORT_SHORT = 2048, /* elements that one block puts in order */
    TD_CU_SELECT_DIGITS = 256
};

/* How bits of elements become keys. */
typedef struct td_cu_keys {
    int size; /* bytes of an element */
    /* Its sign and its bits; of floats infinity, else 0; what is turned over where the order
     * descends. */
    uint64_t sign, all, infinity, flip;
} td_cu_keys;

/* The first `first` of the order of each line; values or index may be NULL. Row-major tensors that
 * differ along the lines alone. */
typedef struct td_cu_sort {
    td_cu_lines lines;
    int64_t first;
    td_cu_keys keys;
    const void *x;
    void *values;
    int64_t *index;
} td_cu_sort;

/* In the order of td_selection (ops/plan/plan.h), whose last, modes, sorts first. */
enum { TD_CU_SELECT_RANK, TD_CU_SELECT_MEDIAN, TD_CU_SELECT_NANMEDIAN };

/* One of the order of each line; index may be NULL. */
typedef struct td_cu_select {
    td_cu_sort of;
    int selection;
    int64_t rank;
    int64_t pieces, piece_len; /* that a long line is looked through in */
    struct td_cu_selected *found;
    uint32_t *counts; /* of each line TD_CU_SELECT_DIGITS, or two for each piece */
} td_cu_select;

/* What is known of a line's element: its key as far as `mask` goes, and how many of those that
 * have that go before it. */
typedef struct td_cu_selected {
    uint64_t key, mask;
    uint32_t rank;
} td_cu_selected;

/* Lines of a long sort that are put in order together, from line `line` on. */
typedef struct td_cu_part {
    int64_t line, lines;
    bool wide;      /* keys of 64 bits, else of 32 */
    int line_shift; /* where the number of the line stands in a key; 0: nowhere */
} td_cu_part;

typedef struct td_cu_rows {
    const void *x; /* n x columns, row-major */
    int64_t n, columns;
    td_cu_keys keys;
    int64_t *index;
} td_cu_rows;

typedef struct td_cu_search {
    int dtype;
    const void *sequence, *values;
    const int64_t *sorter; /* or NULL */
    void *out;
    int64_t n, line, count, sorted; /* elements of a sequence, of a line of values (0: all share one
                                       sequence), values, elements of the sorter */
    bool right, narrow;
    td_cu_report report;
} td_cu_search;

#ifdef __cplusplus
extern "C" {
#endif
/* Lines of up to TD_CU_SORT_SHORT elements. */
cudaError_t td_cu_sort_short(const td_cu_sort *s, cudaStream_t stream);
cudaError_t td_cu_select_short(const td_cu_select *s, cudaStream_t stream);
cudaError_t td_cu_permute_short(int64_t *out, int64_t n, uint64_t seed, uint64_t offset,
                                cudaStream_t stream);
cudaError_t td_cu_order_rows_short(const td_cu_rows *r, cudaStream_t stream);

/* Keys, and ranks 0, 1, 2, ... through the part's lines. */
cudaError_t td_cu_sort_load(const td_cu_sort *s, const td_cu_part *p, void *keys, uint32_t *ranks,
                            cudaStream_t stream);
/* Which line each rank belongs to. */
cudaError_t td_cu_sort_lines(const td_cu_sort *s, const td_cu_part *p, const uint32_t *ranks,
                             uint32_t *keys, cudaStream_t stream);
/* The results from ranks in order; `keys`: theirs, or NULL. */
cudaError_t td_cu_sort_store(const td_cu_sort *s, const td_cu_part *p, const void *keys,
                             const uint32_t *ranks, cudaStream_t stream);

cudaError_t td_cu_permutation_keys(uint64_t *keys, uint32_t *ranks, int64_t n, uint64_t seed,
                                   uint64_t offset, cudaStream_t stream);
/* Keys of `count` columns from `column` on, the first highest, of rows in the order of `ranks`;
 * where `first`, ranks are set to 0, 1, 2, ... before. */
cudaError_t td_cu_row_keys(const td_cu_rows *r, int64_t column, int count, bool first,
                           uint64_t *keys, uint32_t *ranks, cudaStream_t stream);
cudaError_t td_cu_widen_ranks(const uint32_t *ranks, int64_t n, int64_t *out, cudaStream_t stream);

/* radix_sort.cu: orders n keys (of 64 bits where `wide`, else of 32) with ranks by their lowest
 * `bits`, equal ones as they stand. keys and ranks have two rooms; *at tells in which they are, and
 * then where they end. Without `own` it only says how many bytes it needs there. */
cudaError_t td_cu_sort_pairs(void *own, size_t *bytes, bool wide, void *const keys[2],
                             uint32_t *const ranks[2], int *at, int64_t n, int bits,
                             cudaStream_t stream);

/* select.cu: all steps of long lines. */
cudaError_t td_cu_select_long(const td_cu_select *s, cudaStream_t stream);
/* The first s->rank + 1 of each line's order and where they stood, line by line, such as are equal
 * as they stand, others in no order. */
cudaError_t td_cu_select_first(const td_cu_select *s, void *elements, uint32_t *places,
                               cudaStream_t stream);
/* The results from which of these, `order`, come first, second, ... */
cudaError_t td_cu_sort_store_first(const td_cu_sort *s, const uint32_t *places,
                                   const int64_t *order, cudaStream_t stream);

/* The most frequent element of each line from `s`, whose results are all of the line in order: into
 * values and index (or NULL), an element a line. */
cudaError_t td_cu_take_modes(const td_cu_sort *s, void *values, int64_t *index,
                             cudaStream_t stream);

cudaError_t td_cu_run_search(const td_cu_search *s, cudaStream_t stream);
#ifdef __cplusplus
}
#endif
#endif

/* softmax.h: how the CPU's softmax and cross entropy kernels cut their work. */
#ifndef TD_CPU_REDUCE_SOFTMAX_H
#define TD_CPU_REDUCE_SOFTMAX_H

#include "engine/core/tensor.h"
#include "engine/cpu/reduce/softmax_kernels.h"

/* A row-major tensor seen as outer x n x inner around one dim; a "line" is one of its outer * inner
 * runs along that dim. */
typedef struct td_class_layout {
    int64_t outer, n, inner;
    int64_t strips; /* parts of TD_SOFTMAX_WIDTH columns that `inner` is cut into */
} td_class_layout;

/* Neighbouring columns that are worked on together. */
typedef struct td_strip {
    int64_t offset; /* of its first element */
    int64_t line;   /* number of its first line */
    int64_t width;
} td_strip;

td_class_layout td_class_layout_of(const td_tensor *x, int dim);

/* Rows so short that TD_SOFTMAX_WIDTH of them are turned and worked on as columns. */
bool td_class_is_short(const td_class_layout *layout);
enum { TD_CLASS_SHORT = 32, TD_CLASS_TILE = TD_CLASS_SHORT * TD_SOFTMAX_WIDTH * 8 /* bytes */ };

/* Items of a parallel loop and what each costs: groups of short rows, other rows where inner is 1,
 * else strips. */
int64_t td_class_items(const td_class_layout *layout);
int64_t td_class_cost(const td_class_layout *layout);
td_strip td_class_strip(const td_class_layout *layout, int64_t item);

/* The rows of an item of short ones: from memory to a tile of columns TD_SOFTMAX_WIDTH apart, or
 * back. */
int64_t td_class_rows(const td_class_layout *layout, int64_t item);
void td_class_turn(const td_class_layout *layout, int64_t item, void *tile, const void *x,
                   size_t size);
void td_class_turn_back(const td_class_layout *layout, int64_t item, void *out, const void *tile,
                        size_t size);

/* The loops of a dtype. EDTYPE where there are none. */
td_status td_softmax_functions_of(td_dtype dtype, const td_softmax_functions **fns) TD_MUST_CHECK;

#endif

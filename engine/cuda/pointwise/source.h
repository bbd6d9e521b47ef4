/* source.h: pointwise programs as the text of a kernel of their own. */
#ifndef TD_CUDA_POINTWISE_SOURCE_H
#define TD_CUDA_POINTWISE_SOURCE_H

#include "engine/cuda/pointwise/pointwise_code.h"

#include <stdbool.h>

/* How a kernel finds its elements. */
typedef enum td_cuda_way {
    TD_CUDA_ONE,  /* one dense list: numel, a word for each load and output, constants */
    TD_CUDA_MANY, /* lists as td_cu_flat has them, and constants */
    TD_CUDA_WALK  /* numel, words, sizes, strides as td_cu_walk has them, constants */
} td_cuda_way;

/* What a kernel is written for, besides the program. Compared by its bytes. */
typedef struct td_cuda_form {
    uint64_t kinds;    /* of the loads: TD_CU_DENSE and so on, two bits each */
    uint64_t repeated; /* walks of vectors: a bit for each load that stays within the last dim */
    uint8_t way;
    uint8_t ndim;   /* of a walk */
    uint8_t vector; /* elements that a thread takes at once */
    uint8_t wide;   /* offsets may not fit into 32 bits */
    uint8_t unused[4];
} td_cuda_form;

#define TD_CUDA_PROGRAM "td_program" /* the kernel's name */

/* Threads of a block, which takes TD_CU_TILE elements. */
int td_cuda_threads(const td_cuda_form *form);

/* Elements that dense lists of this program are best taken by at once. */
int td_cuda_vector(const td_cu_code *code);

/* The text, from td_malloc; NULL where memory is short, or where a step has no formula. Constants
 * are not in it: kernels are launched with them, so that programs which differ in nothing else
 * share one. */
char *td_cuda_source(const td_cu_code *code, const td_cuda_form *form);

#endif

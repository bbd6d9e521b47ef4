/* pointwise_code.h: a pointwise program as kernels read it, and what they are launched with. */
#ifndef TD_CUDA_POINTWISE_POINTWISE_CODE_H
#define TD_CUDA_POINTWISE_POINTWISE_CODE_H

#include "engine/cuda/runtime/report.h"

#include <cuda_runtime_api.h>
#include <stdint.h>

enum {
    TD_CU_LOADS = 24,
    TD_CU_CONSTANTS = 24,
    TD_CU_OUTS = 16,
    TD_CU_STEPS = 96,
    TD_CU_REGISTERS = 64,
    TD_CU_BLOCK = 256, /* threads of a block */
    TD_CU_EACH = 4,    /* elements of a thread */
    TD_CU_TILE = TD_CU_BLOCK * TD_CU_EACH,
    TD_CU_DIMS = 16,
#if CUDART_VERSION >= 12010 /* parameters of a kernel may have 32 KB, else 4 */
    TD_CU_LISTS = 512,      /* of one launch */
    TD_CU_WORDS = 2900
#else
    TD_CU_LISTS = 32,
    TD_CU_WORDS = 256
#endif
};

typedef struct td_cu_step {
    uint8_t primitive, from, to; /* dtypes: of what it reads, of what it makes */
    uint8_t dst, src[3];         /* registers: loads, constants, outputs, buffers */
} td_cu_step;

/* One program in one call: its dtypes are filled in. Fits the parameters of a kernel. */
typedef struct td_cu_code {
    uint8_t nloads, nconstants, nouts, nregisters;
    uint8_t nsteps, sums;               /* how many outputs are sums or means */
    uint8_t load_from[TD_CU_LOADS];     /* dtype in memory */
    uint8_t load_as[TD_CU_LOADS];       /* dtype of the register */
    uint8_t out_from[TD_CU_OUTS];       /* dtype of the register */
    uint8_t out_to[TD_CU_OUTS];         /* dtype in memory */
    uint8_t out_kind[TD_CU_OUTS];       /* td_output_kind */
    int64_t constants[TD_CU_CONSTANTS]; /* as registers hold them */
    td_cu_step steps[TD_CU_STEPS];
} td_cu_code;

/* How an operand of a list is found: two bits each. */
enum {
    TD_CU_DENSE,  /* a word is the address of its elements, which lie as the results' do */
    TD_CU_SINGLE, /* a word is the address of its only element */
    TD_CU_NUMBER  /* a word is the number as a register holds it */
};

/* Several lists whose tensors are dense and of one shape in each. `stride` words of a list:
 * elements, kinds of the loads, a word for each load, an address for each output. tiles[k]: the
 * first tile of list k; tiles[nlists]: how many there are. */
typedef struct td_cu_flat {
    int nlists, stride;
    const uint32_t *tiles;
    const uint64_t *words;
} td_cu_flat;

/* One list whose tensors lie anyhow: sizes of its dims, and for every load and output its word and
 * strides in bytes, side by side. */
enum { TD_CU_SIDES = TD_CU_LOADS + TD_CU_OUTS };
typedef struct td_cu_walk {
    int ndim;
    int64_t numel;
    uint64_t kinds;
    int64_t sizes[TD_CU_DIMS];
    uint64_t words[TD_CU_SIDES];
    int64_t strides[TD_CU_SIDES * TD_CU_DIMS]; /* [side * ndim + dim] */
} td_cu_walk;

#ifdef __cplusplus
extern "C" {
#endif
/* What they point to lies on the host and is copied. At most TD_CU_LISTS lists and TD_CU_WORDS
 * words. */
cudaError_t td_cu_run_flat(const td_cu_code *code, const td_cu_flat *lists, cudaStream_t stream);
/* `partial`, where outputs are sums: room on the device for one number for each tile and sum. */
cudaError_t td_cu_run_walk(const td_cu_code *code, const td_cu_walk *walk, double *partial,
                           cudaStream_t stream);
/* out = the sum of n partial sums that lie `step` apart, int64 or double, divided by `divisor`. */
cudaError_t td_cu_finish_sum(const double *partial, int64_t n, int step, int is_int, double divisor,
                             int dtype, void *out, cudaStream_t stream);
/* Reports where the only output is different from 0. */
cudaError_t td_cu_run_check(const td_cu_code *code, const td_cu_walk *walk, td_cu_report report,
                            cudaStream_t stream);
/* Primitives that the device has. */
int td_cu_has_primitive(int primitive);
#ifdef __cplusplus
}
#endif
#endif

/* make_code.h: what the kernels of progressions, bands and draws are launched with. */
#ifndef TD_CUDA_RANDOM_MAKE_CODE_H
#define TD_CUDA_RANDOM_MAKE_CODE_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct td_cu_progression {
    void *out;
    int dtype;
    int64_t n;
    bool integer, anchored;
    int64_t ifirst, istep;
    double first, step, last;
} td_cu_progression;

enum { TD_CU_BAND_DIMS = 16 };

/* Elements by their size; strides in elements. */
typedef struct td_cu_band {
    void *out;
    const void *x;
    int size, ndim;
    int64_t numel, first, last;
    int64_t sizes[TD_CU_BAND_DIMS], out_strides[TD_CU_BAND_DIMS], x_strides[TD_CU_BAND_DIMS];
} td_cu_band;

/* In the order of td_distribution (ops/plan/plan.h). */
enum {
    TD_CU_UNIFORM,
    TD_CU_NORMAL,
    TD_CU_BERNOULLI,
    TD_CU_RANDINT,
    TD_CU_EXPONENTIAL,
    TD_CU_CAUCHY,
    TD_CU_LOG_NORMAL,
    TD_CU_GEOMETRIC
};

typedef struct td_cu_draw {
    void *out;
    int dtype;
    int64_t n;
    int distribution, words; /* 32-bit words that a number takes: 1 or 2 */
    uint32_t mask;           /* bits of a word that count in a uniform number */
    double a, b;
    int64_t low;
    uint64_t count, seed, offset;
    double least, most; /* of a range, in floats */
} td_cu_draw;

#ifdef __cplusplus
extern "C" {
#endif
/* All of these need at least one element. */
cudaError_t td_cu_run_progression(const td_cu_progression *p, cudaStream_t stream);
cudaError_t td_cu_run_band(const td_cu_band *b, cudaStream_t stream);
cudaError_t td_cu_run_draw(const td_cu_draw *d, cudaStream_t stream);
#ifdef __cplusplus
}
#endif
#endif

/* spatial_code.h: windows over one to three dims, as the kernels of spatial.cu take them. */
#ifndef TD_CUDA_SPATIAL_SPATIAL_CODE_H
#define TD_CUDA_SPATIAL_SPATIAL_CODE_H

#include <cuda_runtime_api.h>
#include <stdint.h>

enum { TD_CU_SPATIAL = 3 };

/* The places [begin, end), `step` apart, that each place of the result sees along one dim. Of
 * sliding windows they follow from k * stride - padding and the kernel's width, and begin is NULL.
 */
typedef struct td_cu_axis {
    int64_t in, out, step;
    int64_t stride, padding, width; /* width: from the first place to behind the last */
    const int32_t *begin, *end;
    const double *weight;  /* NULL: all 1 */
    const int64_t *first;  /* in `weight`, of a place of the result */
    const double *divisor; /* NULL: all 1 */
} td_cu_axis;

/* The other way round: what each place of the input is seen by, and how much. */
typedef struct td_cu_seen {
    int64_t in, out;
    const int32_t *start; /* in + 1: where in `by` */
    const int32_t *by;    /* ascending */
    const double *weight;
} td_cu_seen;

typedef struct td_cu_resample {
    void *out;
    const void *x;
    int dtype, itemsize;
    int64_t n, inner; /* elements of the result */
    double divisor;   /* 0: those of the axes */
    td_cu_axis axis[TD_CU_SPATIAL];
} td_cu_resample;

typedef struct td_cu_spread {
    void *out;
    const void *x;
    int dtype;
    int64_t n, inner; /* elements of the result, which is the input's gradient */
    double divisor;   /* 1: none */
    td_cu_seen axis[TD_CU_SPATIAL];
} td_cu_spread;

typedef struct td_cu_max_pool {
    void *out;
    const void *x;
    int64_t *places; /* NULL: maxima alone */
    int dtype, itemsize;
    int64_t n, inner;     /* n: of the small volumes, where nothing else is said */
    int64_t large, small; /* places of a volume */
    td_cu_axis axis[TD_CU_SPATIAL];
} td_cu_max_pool;

#ifdef __cplusplus
extern "C" {
#endif
cudaError_t td_cu_resample_run(const td_cu_resample *r, cudaStream_t stream);
/* Every place sees one: elements are moved. */
cudaError_t td_cu_resample_move(const td_cu_resample *r, cudaStream_t stream);
cudaError_t td_cu_spread_run(const td_cu_spread *r, cudaStream_t stream);
cudaError_t td_cu_max_pool_run(const td_cu_max_pool *p, cudaStream_t stream);
cudaError_t td_cu_max_gather_run(const td_cu_max_pool *p, cudaStream_t stream);
/* out (large, `n` of it) = sums of x (small) over the sliding windows that have their maximum at
 * the place. Floats. */
cudaError_t td_cu_max_windows_run(const td_cu_max_pool *p, cudaStream_t stream);
/* Where each element of the small volumes goes in the large ones; `limit`: nowhere. */
cudaError_t td_cu_max_keys(const td_cu_max_pool *p, uint32_t limit, uint32_t *keys,
                           cudaStream_t stream);
#ifdef __cplusplus
}
#endif
#endif

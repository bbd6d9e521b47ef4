/* grid_code.h: images read at the places of a grid, as the kernels of grid.cu take them. */
#ifndef TD_CUDA_SPATIAL_GRID_CODE_H
#define TD_CUDA_SPATIAL_GRID_CODE_H

#include <cuda_runtime_api.h>
#include <stdint.h>

enum { TD_CU_GRID_DIMS = 3 };

/* td_grid_plan without its tensors. */
typedef struct td_cu_grid {
    void *out;
    const void *grid, *x, *gradient;
    int dtype; /* float32 or float64 */
    int n;     /* spatial dims */
    int along; /* places that are seen along a dim: nearest 1, linear 2, cubic 4 */
    int holds, reflects, aligned;
    int64_t batch, channels, places;
    int64_t plane; /* places of a channel of the input */
    int64_t in[TD_CU_GRID_DIMS], order[TD_CU_GRID_DIMS];
} td_cu_grid;

#ifdef __cplusplus
extern "C" {
#endif
cudaError_t td_cu_grid_read(const td_cu_grid *g, cudaStream_t stream);
cudaError_t td_cu_grid_slope(const td_cu_grid *g, cudaStream_t stream);
/* What each tap of each place gives, (batch, channels, places, taps), and the place among those of
 * all images that it goes to, (batch, places, taps); `limit`: nowhere. */
cudaError_t td_cu_grid_give(const td_cu_grid *g, void *given, uint32_t *keys, uint32_t limit,
                            cudaStream_t stream);
#ifdef __cplusplus
}
#endif
#endif

/* recurrent_code.h: one time of a recurrent layer, and of the way back through it, as the kernels
 * of recurrent.cu and recurrent_back.cu take it. */
#ifndef TD_CUDA_PRODUCT_RECURRENT_CODE_H
#define TD_CUDA_PRODUCT_RECURRENT_CODE_H

#include <cuda_runtime_api.h>

/* In the order of td_cell_kind (ops/plan/plan.h). */
enum { TD_CU_ELMAN, TD_CU_GRU, TD_CU_LSTM };

/* What all times of a layer have. */
typedef struct td_cu_recurrent_layer {
    int kind, rectified;
    int rows, units; /* of the batch, of a state */
    int dtype, kept; /* dtypes of w, x, bias and gradients of these; of states, cells and gates */
    const void *w, *bias; /* bias NULL: none */
} td_cu_recurrent_layer;

/* td_recurrent_plan at one time, row-major; what a kind doesn't have is NULL. cell may be
 * cell_before. */
typedef struct td_cu_recurrent_time {
    td_cu_recurrent_layer layer;
    const void *x, *before, *cell_before;
    void *state, *cell, *gates;
} td_cu_recurrent_time;

/* td_recurrent_backward_plan at one time. `behind` is of_h, or of_x where there is none, of the
 * time that comes after it (NULL: it is the last), whose `beside` is in the place of this time's.
 * Where `product` is not NULL it gets the gradient of the state by way of behind's sums, and
 * nothing else is done. */
typedef struct td_cu_recurrent_back {
    td_cu_recurrent_layer layer;
    const void *behind, *g, *given;
    const void *made, *gates; /* the state of Elman's, or the cell of an LSTM */
    const void *before;       /* the state of a GRU, or cell of an LSTM, that the time began with */
    void *of_x, *of_h, *beside, *product;
} td_cu_recurrent_back;

#ifdef __cplusplus
extern "C" {
#endif
/* dtype and kept: float64 both, or float16, bfloat16, float32, of which kept is the same or
 * float32; else cudaErrorInvalidValue. */
cudaError_t td_cu_run_recurrent(const td_cu_recurrent_time *t, cudaStream_t stream);
cudaError_t td_cu_run_recurrent_back(const td_cu_recurrent_back *b, cudaStream_t stream);
#ifdef __cplusplus
}
#endif
#endif

/* ctc_code.h: what the kernels of connectionist temporal classification are launched with. */
#ifndef TD_CUDA_REDUCE_CTC_CODE_H
#define TD_CUDA_REDUCE_CTC_CODE_H

#include "engine/cuda/runtime/report.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct td_cu_ctc {
    int64_t steps, batch, classes, width, blank, ntargets;
    bool joined, finite;
    const double *log_probs;                   /* steps x batch x classes */
    const int64_t *targets, *inputs, *lengths; /* integers of the batch */
    int64_t *starts;      /* where each sequence's targets begin; -1: refused */
    double *loss, *alpha; /* written forwards, read backwards */
    /* Backwards: of each sequence 3 (2 width + 1) numbers and `width` links. */
    double *dx, *room;
    const double *g;
    int64_t *links;
    bool quiet; /* nothing is reported: it was, forwards */
    td_cu_report bad_input, bad_length, bad_total, bad_class;
} td_cu_ctc;

#ifdef __cplusplus
extern "C" {
#endif
/* Fills in `starts`. */
cudaError_t td_cu_ctc_check(const td_cu_ctc *c, cudaStream_t stream);
cudaError_t td_cu_ctc_forward(const td_cu_ctc *c, cudaStream_t stream);
cudaError_t td_cu_ctc_backward(const td_cu_ctc *c, cudaStream_t stream);
#ifdef __cplusplus
}
#endif
#endif

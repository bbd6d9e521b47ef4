/* report.h: how a kernel tells the host what it found among the elements. */
#ifndef TD_CUDA_RUNTIME_REPORT_H
#define TD_CUDA_RUNTIME_REPORT_H

/* Lies in memory of the host that the device writes: the first finding since the host last looked.
 */
typedef struct td_cu_findings {
    unsigned int ticket; /* 0: nothing found */
    unsigned int turn;   /* taken by the thread that writes the rest */
    long long a, b;
} td_cu_findings;

typedef struct td_cu_report {
    td_cu_findings *at;
    unsigned int ticket; /* of the call, above 0 */
} td_cu_report;

#ifdef __cplusplus
#include <cuda_runtime.h>

/* For kernels: the element is refused; a and b are what the message tells of it. */
__device__ static inline void td_cu_found(td_cu_report r, long long a, long long b) {
    if (atomicCAS(&r.at->turn, 0u, r.ticket) == 0u) {
        r.at->a = a;
        r.at->b = b;
        __threadfence();
        r.at->ticket = r.ticket;
    }
}
#endif
#endif

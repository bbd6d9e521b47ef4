/* played.h: what tests ask of the played device beyond CUDA: counts of what was done, failures on
 * demand. The environment is read when the first call is made:
 *
 *   TIDE_PLAYED_SEED     what the order of late work is drawn from (1)
 *   TIDE_PLAYED_MEMORY   bytes of each device (1 GB); K, M, G may follow the number
 *   TIDE_PLAYED_FAIL     the n-th cudaMalloc finds no memory
 *   TIDE_PLAYED_THREADS  threads of the host that run blocks (2)
 *   TIDE_PLAYED_DEVICES  devices (2)
 *   TIDE_PLAYED_DRIVER   the driver's version (13000); a lower one is too old
 *   TIDE_PLAYED_NVRTC    `fail`: no program compiles
 *   TIDE_PLAYED_NCCL, TIDE_PLAYED_NCCL_FAIL: nccl.cpp
 *
 * Work is late: what is queued waits until something that must waits for it (a synchronisation, a
 * download to pageable memory, cudaFree), and then streams advance in turns drawn from the seed, as
 * far as events and the default stream's rules let them.
 */
#ifndef TIDE_PLAYED_H
#define TIDE_PLAYED_H

#include "../cuda_runtime_api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct td_played_counts {
    unsigned long long launches; /* of kernels and of libraries' calls, those in graphs too */
    unsigned long long graph_launches;
    unsigned long long to_device; /* copies, by direction */
    unsigned long long to_host;
    unsigned long long on_device;
    unsigned long long on_host;
    unsigned long long bytes_to_device;
    unsigned long long bytes_to_host;
    unsigned long long sets;             /* cudaMemset */
    unsigned long long synchronisations; /* calls in which the host waited for a device */
    unsigned long long mallocs;          /* cudaMalloc */
    unsigned long long frees;
    unsigned long long host_mallocs; /* pinned memory */
    unsigned long long events;       /* records of them */
    unsigned long long compilations; /* programs that NVRTC was given */
} td_played_counts;

/* What was done since the beginning or the last reset. A launch counts when it is queued, and each
 * kernel of a graph whenever the graph is launched. */
td_played_counts td_played_get_counts(void);
void td_played_reset_counts(void);
/* Launches of one kernel; those of the k-th kernel by order of first launch and its name, or NULL
 * behind the last. */
unsigned long long td_played_launches_of(const char *kernel);
const char *td_played_kernel(size_t k, unsigned long long *launches);

/* How often cuBLASLt and cuDNN were asked to choose a kernel; how often cuDNN made a plan, or tried
 * to; what the last product computed in: "32F", "32F_FAST_TF32", ...; the last convolution's kind
 * of arithmetic and algorithm: "FMA 1", "TF32 0", ...; "" before the first. */
unsigned long long td_played_choices(void);
unsigned long long td_played_plans(void);
const char *td_played_compute(void);
const char *td_played_convolution(void);

/* The n-th cudaMalloc from now finds no memory (1: the next); 0: none does. */
void td_played_fail_malloc(unsigned long long n);
/* What a device finds while it works (illegal address, assertion, launch failure) happens to the
 * next kernel when it runs, and every call answers so until cudaDeviceReset; any other error is the
 * answer of the next launch. */
void td_played_fail_next(cudaError_t error);
/* Draw the order of late work from another seed. */
void td_played_set_seed(unsigned long long seed);
/* Does the host have the compiler that NVRTC is played by? */
bool td_played_has_compiler(void);
/* Bytes of cudaMalloc that are out, on all devices. */
size_t td_played_memory_out(void);
/* What cuptiSubscribe answers from now on (0: it works), or, where a kind of activities is named,
 * what may not be recorded, for want of permission. */
void td_played_fail_cupti(int result, int kind);
/* What NVTX was told: the k-th line since the last clearing, "push NAME", "pop" or "mark NAME";
 * NULL behind the last. */
const char *td_played_nvtx(size_t k);
void td_played_nvtx_clear(void);

#ifdef __cplusplus
}
#endif
#endif

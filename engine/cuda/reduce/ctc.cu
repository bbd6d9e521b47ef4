/* ctc.cu: connectionist temporal classification: a block for each sequence goes through time, its
 * threads through the states of a step. In double and by logarithms, as engine/cpu/reduce/ctc.c has it;
 * sums are taken in one order. */
#include "engine/cuda/reduce/ctc_code.h"

#include "engine/cuda/runtime/groups.cuh"
#include "engine/cuda/runtime/launch.cuh"

#define TD_NEVER (-1 / 0.0) /* the logarithm of 0 */

/* ---- what can be said of the arguments ---- */

/* What is wrong with a sequence, and the two numbers that tell of it. */
struct td_ctc_fault {
    long long sequence; /* the batch: none */
    int kind;           /* 0: its input, 1: its target's length, 2: a class */
    long long value;
};

__device__ static td_ctc_fault td_fault_of(const td_cu_ctc &c, long long n, long long start) {
    td_ctc_fault fault = {n, 0, c.inputs[n]};
    long long length = c.lengths[n], most = c.joined ? c.ntargets : c.width;
    if (fault.value < 0 || fault.value > c.steps)
        return fault;
    fault.kind = 1;
    fault.value = length;
    if (length < 0 || length > most || length > c.width)
        return fault;
    fault.kind = 2;
    bool there = start >= 0 && start <= c.ntargets - length; /* else the sum of all is wrong */
    for (long long k = 0; there && k < length; k++) {
        fault.value = c.targets[start + k];
        if (fault.value < 0 || fault.value >= c.classes)
            return fault;
    }
    fault.sequence = c.batch;
    return fault;
}

__device__ static void td_tell_fault(const td_cu_ctc &c, const td_ctc_fault &fault) {
    if (fault.kind < 2)
        td_cu_found(fault.kind == 0 ? c.bad_input : c.bad_length, fault.value, fault.sequence + 1);
    else
        td_cu_found(c.bad_class, fault.value + (fault.value >= 0), fault.sequence + 1);
}

/* Where each row's targets begin, and how many there are in all. */
__device__ static long long td_set_starts(const td_cu_ctc &c) {
    unsigned long long at = 0; /* of wild lengths no overflow: they are refused below */
    for (long long n = 0; n < c.batch; n++) {
        c.starts[n] = c.joined ? (long long)at : n * c.width;
        at += (unsigned long long)c.lengths[n];
    }
    return (long long)at;
}

/* One block, so that the first sequence at fault is the one that is told of. */
__global__ void td_ctc_check_kernel(const __grid_constant__ td_cu_ctc c) {
    __shared__ td_ctc_fault faults[TD_GROUP_BLOCK];
    long long total = 0;
    if (threadIdx.x == 0)
        total = td_set_starts(c);
    __syncthreads();
    td_ctc_fault first = {c.batch, 0, 0};
    for (long long n = threadIdx.x; n < c.batch; n += TD_GROUP_BLOCK) {
        long long start = c.starts[n], length = c.lengths[n];
        td_ctc_fault own = td_fault_of(c, n, start);
        if (own.sequence < c.batch || start < 0 || start > c.ntargets - length)
            c.starts[n] = -1;
        if (own.sequence < first.sequence)
            first = own;
    }
    faults[threadIdx.x] = first;
    __syncthreads();
    if (threadIdx.x > 0 || c.quiet)
        return;
    for (int k = 1; k < TD_GROUP_BLOCK; k++)
        if (faults[k].sequence < first.sequence)
            first = faults[k];
    if (first.sequence < c.batch)
        td_tell_fault(c, first);
    else if (c.joined && total != c.ntargets)
        td_cu_found(c.bad_total, total, c.ntargets);
}

cudaError_t td_cu_ctc_check(const td_cu_ctc *c, cudaStream_t stream) {
    return TD_LAUNCH_TOGETHER(td_ctc_check_kernel, 1, TD_GROUP_BLOCK, stream, *c);
}

/* ---- one sequence ---- */

struct td_ctc_sequence {
    const int64_t *targets;
    long long time, length, blank;
};

__device__ static inline td_ctc_sequence td_sequence_of(const td_cu_ctc &c, long long n) {
    td_ctc_sequence s = {c.targets + c.starts[n], c.inputs[n], c.lengths[n], c.blank};
    return s;
}

__device__ static inline long long td_class_of(const td_ctc_sequence &s, long long state) {
    return state % 2 ? s.targets[state / 2] : s.blank;
}
/* May a state be reached from the one two before it? Not over a blank between equals. */
__device__ static inline bool td_skips(const td_ctc_sequence &s, long long state) {
    return state > 1 && state % 2 && s.targets[state / 2] != s.targets[state / 2 - 1];
}

__device__ static inline double td_add_logs(double a, double b, double c) {
    double m = a > b ? a : b;
    m = m > c ? m : c;
    if (m == TD_NEVER)
        return m;
    return m + log(exp(a - m) + exp(b - m) + exp(c - m));
}

/* ---- forwards ---- */

__global__ void td_ctc_forward_kernel(const __grid_constant__ td_cu_ctc c) {
    long long n = blockIdx.x, row = 2 * c.width + 1, step = c.batch * c.classes;
    const double *lp = c.log_probs + n * c.classes;
    double *alpha = c.alpha + n * c.steps * row;
    for (long long k = threadIdx.x; k < c.steps * row; k += TD_GROUP_BLOCK)
        alpha[k] = TD_NEVER;
    if (c.starts[n] < 0) {
        if (threadIdx.x == 0)
            c.loss[n] = 0;
        return;
    }
    td_ctc_sequence s = td_sequence_of(c, n);
    long long states = 2 * s.length + 1;
    if (s.time == 0) {
        if (threadIdx.x == 0)
            c.loss[n] = s.length ? -TD_NEVER : 0;
        return;
    }
    __syncthreads();
    if (threadIdx.x < 2 && threadIdx.x < states)
        alpha[threadIdx.x] = lp[td_class_of(s, threadIdx.x)];
    __syncthreads();
    for (long long t = 1; t < s.time; t++) {
        const double *before = alpha + (t - 1) * row, *now = lp + t * step;
        for (long long k = threadIdx.x; k < states; k += TD_GROUP_BLOCK)
            alpha[t * row + k] =
                now[td_class_of(s, k)] + td_add_logs(before[k], k ? before[k - 1] : TD_NEVER,
                                                     td_skips(s, k) ? before[k - 2] : TD_NEVER);
        __syncthreads();
    }
    const double *last = alpha + (s.time - 1) * row + states;
    if (threadIdx.x == 0)
        c.loss[n] = -td_add_logs(last[-1], s.length ? last[-2] : TD_NEVER, TD_NEVER);
}

cudaError_t td_cu_ctc_forward(const td_cu_ctc *c, cudaStream_t stream) {
    return TD_LAUNCH_TOGETHER(td_ctc_forward_kernel, (unsigned int)c->batch, TD_GROUP_BLOCK, stream,
                              *c);
}

/* ---- backwards ---- */

/* What state k is followed by, from the log probabilities `after` of the endings one step later. */
__device__ static inline double td_endings(const td_ctc_sequence &s, const double *after,
                                           long long states, long long k) {
    return td_add_logs(after[k], k + 1 < states ? after[k + 1] : TD_NEVER,
                       k + 2 < states && td_skips(s, k + 2) ? after[k + 2] : TD_NEVER);
}

/* For each target the next one of its class (0: none), negative where it is not the first of it;
 * counted from 1. */
__device__ static void td_link_targets(const td_ctc_sequence &s, int64_t *links) {
    for (long long k = threadIdx.x; k < s.length; k += TD_GROUP_BLOCK) {
        long long next = k + 1, before = k - 1;
        while (next < s.length && s.targets[next] != s.targets[k])
            next++;
        while (before >= 0 && s.targets[before] != s.targets[k])
            before--;
        next = next < s.length ? next + 1 : 0;
        links[k] = before < 0 ? next : -next - 1;
    }
}

__device__ static inline long long td_next_target(long long link) {
    return link < 0 ? -link - 1 : link;
}

/* The sum over the blanks of the probabilities, `passed`, that states are passed at one time. */
__device__ static double td_pass_states(const td_ctc_sequence &s, const double *alpha,
                                        const double *beta, const double *lp, double loss,
                                        double *passed) {
    double blanks = 0;
    for (long long k = threadIdx.x; k < 2 * s.length + 1; k += TD_GROUP_BLOCK) {
        double p = 0;
        if (alpha[k] != TD_NEVER && beta[k] != TD_NEVER)
            p = exp(alpha[k] + beta[k] - lp[td_class_of(s, k)] + loss);
        passed[k] = p;
        blanks += k % 2 ? 0 : p;
    }
    return blanks;
}

/* dx = (p - probability that this class is passed at this time) g, at one time; each class is one
 * thread's, which follows the links of its targets. */
__device__ static void td_step_gradient(const td_cu_ctc &c, const td_ctc_sequence &s, long long n,
                                        long long t, const double *beta, double *passed,
                                        const int64_t *links, double *shared) {
    long long row = (t * c.batch + n) * c.classes;
    const double *lp = c.log_probs + row;
    const double *alpha = c.alpha + (n * c.steps + t) * (2 * c.width + 1);
    double *dx = c.dx + row, g = c.g[n];
    double blanks = td_pass_states(s, alpha, beta, lp, c.loss[n], passed);
    for (long long k = threadIdx.x; k < c.classes; k += TD_GROUP_BLOCK)
        dx[k] = exp(lp[k]);
    blanks = td_group_fold(td_adder(), blanks, TD_GROUP_BLOCK, shared);
    for (long long k = threadIdx.x; k < s.length; k += TD_GROUP_BLOCK) {
        double left = links[k] < 0 ? 0 : dx[s.targets[k]];
        for (long long at = k + 1; at > 0 && links[k] >= 0; at = td_next_target(links[at - 1]))
            left -= passed[2 * at - 1];
        if (links[k] >= 0)
            dx[s.targets[k]] = left;
    }
    __syncthreads();
    if (threadIdx.x == 0)
        dx[s.blank] -= blanks;
    __syncthreads();
    for (long long k = threadIdx.x; k < c.classes; k += TD_GROUP_BLOCK)
        dx[k] *= g;
}

__device__ static inline void td_fill_step(const td_cu_ctc &c, long long n, long long t, double v) {
    double *dx = c.dx + (t * c.batch + n) * c.classes;
    for (long long k = threadIdx.x; k < c.classes; k += TD_GROUP_BLOCK)
        dx[k] = v;
}

__global__ void td_ctc_backward_kernel(const __grid_constant__ td_cu_ctc c) {
    __shared__ double shared[TD_GROUP_WARPS];
    long long n = blockIdx.x, row = 2 * c.width + 1;
    double *rows = c.room + n * 3 * row;
    int64_t *links = c.links + n * c.width;
    bool refused = c.starts[n] < 0, none = !refused && isinf(c.loss[n]); /* there is no slope */
    td_ctc_sequence s = {c.targets, refused ? 0 : c.inputs[n], refused ? 0 : c.lengths[n], c.blank};
    if (!refused)
        s = td_sequence_of(c, n);
    long long states = 2 * s.length + 1;
    td_link_targets(s, links);
    for (long long t = c.steps - 1; t >= 0; t--) {
        const double *lp = c.log_probs + (t * c.batch + n) * c.classes;
        double *beta = rows + t % 2 * row, *after = rows + (t + 1) % 2 * row;
        if (t >= s.time || none) {
            td_fill_step(c, n, t, t < s.time && !c.finite ? (double)NAN : 0);
            continue;
        }
        for (long long k = threadIdx.x; k < states; k += TD_GROUP_BLOCK)
            beta[k] = lp[td_class_of(s, k)] + (t < s.time - 1   ? td_endings(s, after, states, k)
                                               : k + 2 < states ? TD_NEVER
                                                                : 0);
        __syncthreads();
        td_step_gradient(c, s, n, t, beta, rows + 2 * row, links, shared);
    }
}

cudaError_t td_cu_ctc_backward(const td_cu_ctc *c, cudaStream_t stream) {
    return TD_LAUNCH_TOGETHER(td_ctc_backward_kernel, (unsigned int)c->batch, TD_GROUP_BLOCK,
                              stream, *c);
}

/* random_kernels.h: random bits and what becomes of them, many at a time. */
#ifndef TD_CPU_RANDOM_RANDOM_KERNELS_H
#define TD_CPU_RANDOM_RANDOM_KERNELS_H

#include "engine/core/status.h"

/* Blocks that one call may ask for; a block is four 32-bit words (core/random.h). */
enum { TD_RANDOM_BLOCKS = 256, TD_RANDOM_WORDS = 4 * TD_RANDOM_BLOCKS };

typedef struct td_random_kernels {
    /* The words of `blocks` counters from `counter` on, in td_philox's order. */
    void (*words)(uint32_t *out, uint64_t seed, uint64_t counter, int blocks);
    /* One number per word (f32) or pair of words (f64): low + span * u with u in [0, 1). */
    void (*uniform_f32)(float *out, const uint32_t *words, int n, float low, float span);
    void (*uniform_f64)(double *out, const uint32_t *words, int n, double low, double span);
    /* Two normal numbers per two words (f32) or four words (f64), by Box and Muller; n is even. */
    void (*normal_f32)(float *out, const uint32_t *words, int n, float mean, float std);
    void (*normal_f64)(double *out, const uint32_t *words, int n, double mean, double std);
    /* `count` integers from low on, of one word each, where count fits into one; of pairs. */
    void (*integers)(int64_t *out, const uint32_t *words, int n, int64_t low, uint64_t count);
    void (*wide_integers)(int64_t *out, const uint32_t *words, int n, int64_t low, uint64_t count);
    /* One number per pair of words, as core/draw_math.h makes them. exponential: a is the rate;
     * geometric: a is log(1 - p); cauchy: a is the median, b half the width. */
    void (*exponential)(double *out, const uint32_t *words, int n, double a, double b);
    void (*geometric)(double *out, const uint32_t *words, int n, double a, double b);
    void (*cauchy)(double *out, const uint32_t *words, int n, double a, double b);
    /* td_draw_exp of each. */
    void (*exponentials)(double *x, int n);
    /* td_draw_poisson of each mean, whose counters are `blocks` from counter + k * blocks on. */
    void (*poisson)(double *out, const double *means, int64_t n, uint64_t seed, uint64_t counter,
                    int blocks);
} td_random_kernels;

#endif

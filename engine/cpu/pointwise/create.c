/* create.c: arange and linspace on the CPU: elements first + k * step. */
#include "engine/core/threads.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/pointwise/strided_convert.h"

#include <math.h>

/* Elements [at, at + n) of first + k step, k as a sum of what vectors convert. */
static void rise(double first, double step, int64_t at, int n, double *out) {
    for (int k = 0; k < n; k++)
        out[k] = first + ((double)at + (double)k) * step;
}

/* From the middle on an anchored one counts from its last element. */
static void put_numbers(const td_progression_plan *p, int64_t at, int n, double *out) {
    int64_t all = p->out->numel, middle = p->anchored ? all / 2 : all;
    int rising = at >= middle ? 0 : middle - at < n ? (int)(middle - at) : n;
    rise(p->first, p->step, at, rising, out);
    for (int k = rising; k < n; k++)
        out[k] = p->last - ((double)(all - 1 - at) - (double)k) * p->step;
}

static void put_integers(const td_progression_plan *p, int64_t at, int n, int64_t *out) {
    int64_t step = p->istep, next = p->ifirst + at * step;
    for (int k = 0; k < n; k++, next += step)
        out[k] = next;
}

/* Integers that doubles hold, for floats: those are made sooner. */
static bool as_numbers(const td_progression_plan *p, td_progression_plan *numbers) {
    const double most = 0x1p53;
    double first = (double)p->ifirst, step = (double)p->istep;
    double last = first + step * (double)p->out->numel;
    if (!p->integer || !td_dtype_is_float((td_dtype)p->out->dtype) || fabs(first) > most ||
        fabs(step) > most || fabs(last) > most)
        return false;
    *numbers = *p;
    numbers->integer = numbers->anchored = false;
    numbers->first = first;
    numbers->step = step;
    return true;
}

/* A block at a time in int64 or double, in place or in the result's dtype. */
static void fill_part(void *ctx, int64_t begin, int64_t end, int worker) {
    const td_progression_plan *p = ctx;
    td_dtype dtype = (td_dtype)p->out->dtype;
    td_dtype made = p->integer ? TD_I64 : TD_F64;
    _Alignas(64) char block[TD_BLOCK * 8];
    (void)worker;
    for (int64_t at = begin; at < end; at += TD_BLOCK) {
        int n = end - at < TD_BLOCK ? (int)(end - at) : TD_BLOCK;
        char *out = (char *)p->out->data + (size_t)at * td_dtype_size(dtype);
        void *to = dtype == made ? out : block;
        if (p->integer)
            put_integers(p, at, n, to);
        else
            put_numbers(p, at, n, to);
        if (dtype != made)
            td_block_write(dtype, out, 1, made, block, n);
    }
}

td_status td_cpu_progression(const td_progression_plan *p) {
    td_progression_plan numbers;
    return td_parallel_for(p->out->numel, 1, fill_part,
                           as_numbers(p, &numbers) ? &numbers : (void *)p);
}

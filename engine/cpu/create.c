/* create.c: progressions on the CPU. */
#include "engine/core/threads.h"
#include "engine/cpu/block.h"
#include "engine/cpu/cpu.h"

static double element(const td_progression_plan *p, int64_t k) {
    int64_t n = p->out->numel;
    return p->anchored && k >= n / 2 ? p->last - (double)(n - 1 - k) * p->step
                                     : p->first + (double)k * p->step;
}

/* A block at a time in int64 or double, then in the result's dtype. */
static void fill_part(void *ctx, int64_t begin, int64_t end, int worker) {
    const td_progression_plan *p = ctx;
    td_dtype dtype = (td_dtype)p->out->dtype;
    int64_t integers[TD_BLOCK];
    double numbers[TD_BLOCK];
    (void)worker;
    for (int64_t at = begin; at < end; at += TD_BLOCK) {
        int64_t n = end - at < TD_BLOCK ? end - at : TD_BLOCK;
        char *out = (char *)p->out->data + (size_t)at * td_dtype_size(dtype);
        for (int64_t k = 0; p->integer && k < n; k++)
            integers[k] = p->ifirst + (at + k) * p->istep;
        for (int64_t k = 0; !p->integer && k < n; k++)
            numbers[k] = element(p, at + k);
        if (p->integer)
            td_block_write(dtype, out, 1, TD_I64, integers, n);
        else
            td_block_write(dtype, out, 1, TD_F64, numbers, n);
    }
}

td_status td_cpu_progression(const td_progression_plan *p) {
    return td_parallel_for(p->out->numel, 1, fill_part, (void *)p);
}

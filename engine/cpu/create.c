/* create.c: progressions on the CPU. */
#include "engine/core/threads.h"
#include "engine/cpu/cpu.h"

enum { GRAIN = 64 * 1024 };

static double element(const td_progression_plan *p, int64_t k) {
    int64_t n = p->out->numel;
    return p->anchored && k >= n / 2 ? p->last - (double)(n - 1 - k) * p->step
                                     : p->first + (double)k * p->step;
}

static void fill_integers(const td_progression_plan *p, int64_t begin, int64_t end) {
    td_dtype dtype = (td_dtype)p->out->dtype;
    size_t size = td_dtype_size(dtype);
    char *out = p->out->data;
    if (dtype == TD_I64)
        for (int64_t k = begin; k < end; k++)
            ((int64_t *)p->out->data)[k] = p->ifirst + k * p->istep;
    else
        for (int64_t k = begin; k < end; k++)
            td_store_int(dtype, out + (size_t)k * size, p->ifirst + k * p->istep);
}

static void fill_part(void *ctx, int64_t begin, int64_t end, int worker) {
    const td_progression_plan *p = ctx;
    td_dtype dtype = (td_dtype)p->out->dtype;
    size_t size = td_dtype_size(dtype);
    char *out = p->out->data;
    (void)worker;
    if (p->integer)
        fill_integers(p, begin, end);
    else if (dtype == TD_F32)
        for (int64_t k = begin; k < end; k++)
            ((float *)p->out->data)[k] = (float)element(p, k);
    else
        for (int64_t k = begin; k < end; k++)
            td_store_double(dtype, out + (size_t)k * size, element(p, k));
}

td_status td_cpu_progression(const td_progression_plan *p) {
    return td_parallel_for(p->out->numel, GRAIN, fill_part, (void *)p);
}

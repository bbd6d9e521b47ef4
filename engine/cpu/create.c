/* create.c: progressions and unit matrices on the CPU. */
#include "engine/core/threads.h"
#include "engine/ops/creation.h"

#include <string.h>

enum { GRAIN = 64 * 1024 };

typedef struct progression_job {
    const td_progression *p;
    td_dtype dtype;
    char *out;
    int64_t n;
} progression_job;

static double element(const progression_job *j, int64_t k) {
    const td_progression *p = j->p;
    return p->anchored && k >= j->n / 2 ? p->last - (double)(j->n - 1 - k) * p->step
                                        : p->first + (double)k * p->step;
}

static void fill_part(void *ctx, int64_t begin, int64_t end, int worker) {
    const progression_job *j = ctx;
    const td_progression *p = j->p;
    (void)worker;
    if (p->integer && j->dtype == TD_I64) {
        int64_t *out = (int64_t *)j->out;
        for (int64_t k = begin; k < end; k++)
            out[k] = p->ifirst + k * p->istep;
    } else if (p->integer) {
        size_t size = td_dtype_size(j->dtype);
        for (int64_t k = begin; k < end; k++)
            td_store_int(j->dtype, j->out + (size_t)k * size, p->ifirst + k * p->istep);
    } else if (j->dtype == TD_F32) {
        float *out = (float *)j->out;
        for (int64_t k = begin; k < end; k++)
            out[k] = (float)element(j, k);
    } else {
        size_t size = td_dtype_size(j->dtype);
        for (int64_t k = begin; k < end; k++)
            td_store_double(j->dtype, j->out + (size_t)k * size, element(j, k));
    }
}

td_status td_cpu_fill_progression(td_tensor *x, const td_progression *p) {
    progression_job j = {.p = p, .dtype = (td_dtype)x->dtype, .out = x->data, .n = x->numel};
    return td_parallel_for(j.n, GRAIN, fill_part, &j);
}

td_status td_cpu_fill_eye(td_tensor *x) {
    size_t size = td_tensor_itemsize(x);
    int64_t rows = x->sizes[0], columns = x->sizes[1];
    if (x->numel == 0)
        return TD_OK;
    memset(x->data, 0, (size_t)x->numel * size);
    for (int64_t k = 0; k < rows && k < columns; k++)
        td_store_int((td_dtype)x->dtype, (char *)x->data + (size_t)(k * columns + k) * size, 1);
    return TD_OK;
}

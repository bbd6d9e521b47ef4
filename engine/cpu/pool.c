/* pool.c: pooling and interpolation on the CPU, plane by plane. */
#include "engine/ops/pool.h"

#include "engine/core/threads.h"
#include "engine/cpu/isa/isa.h"

typedef struct planes {
    const td_pool_windows *plan;
    const td_pool_functions *fn;
    char *x, *y; /* the larger and the smaller planes, as the plan has them */
    int32_t *places;
    size_t size;
    enum { MAX, SCATTER, GATHER, MEAN, MEAN_BACKWARD, NEAREST, NEAREST_BACKWARD } what;
} planes;

static void do_planes(void *ctx, int64_t begin, int64_t end, int worker) {
    const planes *j = ctx;
    const td_pool_windows *p = j->plan;
    int64_t in = p->h * p->w, out = p->oh * p->ow;
    (void)worker;
    for (int64_t k = begin; k < end; k++) {
        char *x = j->x + (size_t)(k * in) * j->size, *y = j->y + (size_t)(k * out) * j->size;
        int32_t *places = j->places ? j->places + k * out : NULL;
        switch (j->what) {
        case MAX:
            j->fn->max(y, places, x, p);
            break;
        case SCATTER:
            j->fn->scatter(x, places, y, out);
            break;
        case GATHER:
            j->fn->gather(y, places, x, out);
            break;
        case MEAN:
            j->fn->mean(y, x, p);
            break;
        case MEAN_BACKWARD:
            j->fn->mean_backward(x, y, p);
            break;
        case NEAREST:
            j->fn->nearest(y, x, p);
            break;
        case NEAREST_BACKWARD:
            j->fn->nearest_backward(x, y, p);
            break;
        }
    }
}

static td_status run(planes job, const td_tensor *x, const td_tensor *y, const td_tensor *places) {
    const td_pool_windows *p = job.plan;
    int64_t work = p->h * p->w + p->oh * p->ow;
    if (x->dtype != TD_F32 && x->dtype != TD_F64)
        return td_fail(TD_EDTYPE, "not implemented for %s", td_dtype_name((td_dtype)x->dtype));
    job.fn = x->dtype == TD_F32 ? td_cpu->pool->f32 : td_cpu->pool->f64;
    job.x = x->data;
    job.y = y->data;
    job.places = places ? places->data : NULL;
    job.size = td_tensor_itemsize(x);
    return td_parallel_for(p->planes, 1 + 32768 / (work + 1), do_planes, &job);
}

td_status td_cpu_max_pool(const td_pool_windows *plan, const td_tensor *x, td_tensor *y,
                          td_tensor *places) {
    return run((planes){.plan = plan, .what = MAX}, x, y, places);
}

td_status td_cpu_pool_scatter(const td_pool_windows *plan, const td_tensor *g,
                              const td_tensor *places, td_tensor *gx) {
    return run((planes){.plan = plan, .what = SCATTER}, gx, g, places);
}

td_status td_cpu_pool_gather(const td_pool_windows *plan, const td_tensor *x,
                             const td_tensor *places, td_tensor *y) {
    return run((planes){.plan = plan, .what = GATHER}, x, y, places);
}

td_status td_cpu_mean_pool(const td_pool_windows *plan, const td_tensor *x, td_tensor *y) {
    return run((planes){.plan = plan, .what = MEAN}, x, y, NULL);
}

td_status td_cpu_mean_pool_backward(const td_pool_windows *plan, const td_tensor *g,
                                    td_tensor *gx) {
    return run((planes){.plan = plan, .what = MEAN_BACKWARD}, gx, g, NULL);
}

td_status td_cpu_nearest(const td_pool_windows *plan, const td_tensor *x, td_tensor *y) {
    return run((planes){.plan = plan, .what = NEAREST}, x, y, NULL);
}

td_status td_cpu_nearest_backward(const td_pool_windows *plan, const td_tensor *g, td_tensor *gx) {
    return run((planes){.plan = plan, .what = NEAREST_BACKWARD}, gx, g, NULL);
}

/* grid.c: images read at the places of a grid on the CPU, and the gradients of that. Threads share
 * the places of a grid, or where these give to the same elements, the channels. */
#include "engine/core/interrupt.h"
#include "engine/core/threads.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/isa/isa.h"
#include "engine/cpu/pointwise/strided_convert.h"

enum { STEP = 64, FAR = 1 << 30 }; /* STEP: places that are worked out at once */

typedef void (*images_fn)(const td_grid_plan *p, int64_t image, int64_t begin, int64_t end);

/* Items of all images one after the other, `per_image` of each; an item is `step` of `total`. */
typedef struct job {
    const td_grid_plan *plan;
    images_fn run;
    int64_t per_image, step, total;
} job;

static void do_items(void *ctx, int64_t begin, int64_t end, int worker) {
    const job *j = ctx;
    (void)worker;
    while (begin < end && !td_interrupt_requested()) {
        int64_t image = begin / j->per_image, from = begin % j->per_image;
        int64_t n = j->per_image - from < end - begin ? j->per_image - from : end - begin;
        int64_t stop = (from + n) * j->step;
        j->run(j->plan, image, from * j->step, stop < j->total ? stop : j->total);
        begin += n;
    }
}

/* Additions that a place costs in one channel, about. */
static int64_t cost_of(const td_grid_plan *p) {
    static const int64_t costs[] = {
        [TD_GRID_NEAREST] = 2, [TD_GRID_LINEAR] = 16, [TD_GRID_CUBIC] = 32};
    return costs[p->mode] * (p->kind == TD_GRID_SLOPE ? p->n : 1);
}

static td_status for_images(const td_grid_plan *p, images_fn run, int64_t total, int64_t step,
                            int64_t cost) {
    job j = {.plan = p, .run = run, .step = step, .total = total};
    j.per_image = (total + step - 1) / step;
    return td_parallel_for(p->batch * j.per_image, cost * step, do_items, &j);
}

td_status td_cpu_grid(const td_grid_plan *p) {
    int64_t plane = td_numel(p->n, p->in);
    const td_grid_functions *const *all = plane > FAR ? td_cpu->grid->far : td_cpu->grid->near;
    const td_grid_functions *fn = all[p->grid->dtype];
    if (!fn)
        return td_cpu_lacks((td_dtype)p->grid->dtype);
    int64_t cost = cost_of(p);
    switch (p->kind) {
    case TD_GRID_READ:
        return for_images(p, fn->read, p->places, STEP, cost * (p->channels + 2));
    case TD_GRID_GIVE:
        return for_images(p, fn->give, p->channels, 1, cost * p->places);
    case TD_GRID_SLOPE:
        break;
    }
    return for_images(p, fn->slope, p->places, STEP, cost * (p->channels + 2));
}

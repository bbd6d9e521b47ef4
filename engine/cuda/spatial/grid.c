/* grid.c: images read at the places of a grid, and the gradients of that. What several places give
 * to one element is added in the grid's order. */
#include "engine/cuda/spatial/grid_code.h"

#include "engine/cuda/cuda.h"
#include "engine/cuda/index/combine.h"

static int taps_of(const td_cu_grid *g) {
    int all = 1;
    for (int d = 0; d < g->n; d++)
        all *= g->along;
    return all;
}

static td_cu_grid grid_of(const td_grid_plan *p) {
    td_cu_grid g = {.out = p->out->data,
                    .grid = p->grid->data,
                    .x = p->x ? p->x->data : NULL,
                    .gradient = p->gradient ? p->gradient->data : NULL,
                    .dtype = p->out->dtype,
                    .n = p->n,
                    .along = p->mode == TD_GRID_NEAREST  ? 1
                             : p->mode == TD_GRID_LINEAR ? 2
                                                         : 4,
                    .holds = p->edge != TD_GRID_ZEROS,
                    .reflects = p->edge == TD_GRID_REFLECTION,
                    .aligned = p->aligned,
                    .batch = p->batch,
                    .channels = p->channels,
                    .places = p->places,
                    .plane = 1};
    for (int d = 0; d < p->n; d++) {
        g.in[d] = p->in[d];
        g.order[d] = p->order[d];
        g.plane *= p->in[d];
    }
    return g;
}

/* The rows of all channels, one of each tap of each place, that go to the images' places. */
static td_cu_combination combination_of(const td_cu_grid *g, int64_t rows, int64_t limit) {
    int64_t per_image = rows / g->batch;
    return (td_cu_combination){.to = g->out,
                               .dtype = g->dtype,
                               .how = TD_CU_ADD,
                               .wide = 1,
                               .limit = (uint32_t)limit,
                               .before_n = g->channels,
                               .after_n = 1,
                               .rows = {2, {g->batch, g->plane}, {g->channels * g->plane, 1}},
                               .to_before = {1, {g->channels}, {g->plane}},
                               .sources = {2, {g->batch, per_image}, {g->channels * per_image, 1}},
                               .from_before = per_image};
}

static td_status give(const td_grid_plan *p, const td_cu_grid *g, cudaStream_t s) {
    int64_t rows = g->batch * g->places * taps_of(g), limit = g->batch * g->plane;
    td_cu_combination c = combination_of(g, rows, limit);
    td_cuda_scratch room = {.data = NULL};
    td_cuda_ordered o;
    td_status status = td_cuda_ordered_take(&o, p->stream, rows, limit);
    if (status != TD_OK)
        return status;
    TD_TRY(td_cuda_scratch_take(&room, p->stream,
                                (size_t)(rows * g->channels) * td_dtype_size((td_dtype)g->dtype)));
    TD_TRY(td_cuda_status(td_cu_grid_give(g, room.data, o.ordering.keys[0], (uint32_t)limit, s),
                          "reading a grid"));
    c.from = room.data;
    status = td_cuda_ordered_combine(&o, &c, s);
done:
    td_cuda_scratch_drop(&room);
    td_cuda_ordered_drop(&o);
    return status;
}

static td_status run_on_cpu(const void *plan) {
    return td_backends[TD_CPU]->grid(plan);
}

td_status td_cuda_grid(const td_grid_plan *p) {
    td_cu_grid g = grid_of(p);
    int64_t rows = g.batch * g.places * taps_of(&g);
    cudaStream_t s;
    td_status status;
    if (p->kind == TD_GRID_GIVE && !td_cuda_can_order(rows, g.batch * g.plane))
        return td_cuda_fall_back("grid", p, sizeof *p, run_on_cpu, 4, 1);
    TD_TRY(td_cuda_begin(p->stream, 4, p->tensors, &s));
    switch (p->kind) {
    case TD_GRID_READ:
        status = td_cuda_status(td_cu_grid_read(&g, s), "reading at a grid's places");
        break;
    case TD_GRID_GIVE:
        status = give(p, &g, s);
        break;
    case TD_GRID_SLOPE:
        status = td_cuda_status(td_cu_grid_slope(&g, s), "reading at a grid's places");
        break;
    }
done:
    return status;
}

/* grouped.c: products of rows of floats with weights of a few bits in groups, on the CPU: rows are
 * rounded in blocks, then meet the weights panel by panel. */
#include "engine/core/threads.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/isa/isa.h"

#include <string.h>

enum { COLUMNS = TD_GROUPED_COLUMNS, BLOCK = TD_GROUPED_BLOCK, ROWS = TD_GROUPED_ROWS };

static int64_t parts_of(int64_t n, int64_t size) {
    return (n + size - 1) / size;
}

/* Rows that were rounded, each array row by row; what lies behind the depth is 0. */
typedef struct rounded {
    float *scales, *totals; /* of blocks; of groups */
    int32_t *sums;          /* of steps */
    int8_t *ints;
    int64_t blocks, steps; /* of a row */
} rounded;

typedef struct grouped_job {
    const td_grouped_linear_plan *plan;
    rounded x;
    int step;
    int64_t panels, down; /* down: tiles on top of one another */
    td_grouped_tile_fn tile;
} grouped_job;

/* ---- rows ---- */

static void round_row(const grouped_job *j, int64_t row) {
    const td_grouped_linear_plan *p = j->plan;
    const rounded *x = &j->x;
    int8_t *ints = x->ints + row * x->blocks * BLOCK;
    float *scales = x->scales + row * x->blocks, *totals = x->totals + row * p->groups;
    int32_t *sums = x->sums + row * x->steps;
    int64_t written = parts_of(p->depth, BLOCK), per_group = p->group / j->step;
    td_cpu->grouped->round_blocks((const float *)p->x->data + row * p->depth, p->depth, ints,
                                  scales);
    memset(ints + written * BLOCK, 0, (size_t)((x->blocks - written) * BLOCK));
    memset(scales + written, 0, sizeof *scales * (size_t)(x->blocks - written));
    for (int64_t k = 0; k < x->steps; k++) {
        int32_t sum = 0;
        for (int i = 0; i < j->step; i++)
            sum += ints[k * j->step + i];
        sums[k] = sum;
    }
    for (int64_t g = 0, k = 0; g < p->groups && p->mins; g++) {
        totals[g] = 0;
        for (int64_t end = k + per_group; k < end; k++)
            totals[g] += scales[k * j->step / BLOCK] * (float)sums[k];
    }
}

static void round_rows(void *ctx, int64_t begin, int64_t end, int worker) {
    (void)worker;
    for (int64_t row = begin; row < end; row++)
        round_row(ctx, row);
}

/* Room for the rounded rows, in one tensor (new). */
static td_status open_rounded(grouped_job *j, td_tensor **room) {
    const td_grouped_linear_plan *p = j->plan;
    int64_t steps = p->groups * (p->group / j->step), blocks = parts_of(steps * j->step, BLOCK);
    int64_t words = p->rows * (blocks + p->groups + steps);
    int64_t bytes = words * (int64_t)sizeof(float) + p->rows * blocks * BLOCK;
    td_status status = td_tensor_empty(TD_U8, TD_DEVICE_CPU, 1, &bytes, room);
    if (status)
        return status;
    float *scales = (*room)->data, *totals = scales + p->rows * blocks;
    int32_t *sums = (int32_t *)(void *)(totals + p->rows * p->groups);
    j->x = (rounded){.scales = scales,
                     .totals = totals,
                     .sums = sums,
                     .ints = (int8_t *)(sums + p->rows * steps),
                     .blocks = blocks,
                     .steps = steps};
    return TD_OK;
}

/* ---- panels ---- */

static void deliver(const td_grouped_linear_plan *p, const float *tile, int64_t row, int rows,
                    int64_t column) {
    const float *bias = p->bias ? (const float *)p->bias->data + column : NULL;
    int64_t n = p->columns - column < COLUMNS ? p->columns - column : COLUMNS;
    for (int r = 0; r < rows; r++, tile += COLUMNS) {
        float *restrict out = (float *)p->out->data + (row + r) * p->columns + column;
        for (int64_t c = 0; c < n; c++)
            out[c] = bias ? tile[c] + bias[c] : tile[c];
    }
}

/* Tiles of one panel come one after the other: its weights stay in the cache. */
static void run_tiles(void *ctx, int64_t begin, int64_t end, int worker) {
    const grouped_job *j = ctx;
    const td_grouped_linear_plan *p = j->plan;
    const rounded *x = &j->x;
    const int64_t panel_bytes = 2 * x->steps * j->step * p->bits;
    (void)worker;
    for (int64_t item = begin; item < end; item++) {
        float out[ROWS * COLUMNS];
        int64_t panel = item / j->down, row = item % j->down * ROWS;
        int rows = (int)(p->rows - row < ROWS ? p->rows - row : ROWS);
        const float *mins = p->mins ? p->mins->data : NULL;
        j->tile(&(td_grouped_tile){
            .x = x->ints + row * x->blocks * BLOCK,
            .x_scales = x->scales + row * x->blocks,
            .x_sums = x->sums + row * x->steps,
            .x_totals = x->totals + row * p->groups,
            .x_step = x->blocks * BLOCK,
            .x_scales_step = x->blocks,
            .x_sums_step = x->steps,
            .x_totals_step = p->groups,
            .rows = rows,
            .bits = p->bits,
            .groups = p->groups,
            .steps = p->group / j->step,
            .weights = (const uint8_t *)p->weight->data + panel * panel_bytes,
            .scales = (const float *)p->scales->data + panel * p->groups * COLUMNS,
            .mins = mins ? mins + panel * p->groups * COLUMNS : NULL,
            .out = out});
        deliver(p, out, row, rows, panel * COLUMNS);
    }
}

td_status td_cpu_grouped_linear(const td_grouped_linear_plan *plan) {
    const td_grouped_kernels *k = td_cpu->grouped;
    td_tensor *room = NULL;
    grouped_job j = {.plan = plan,
                     .step = td_grouped_step(plan->bits),
                     .panels = parts_of(plan->columns, COLUMNS),
                     .down = parts_of(plan->rows, ROWS),
                     .tile = k->tile_vnni && td_cpu_has_vnni() ? k->tile_vnni : k->tile};
    td_status status = TD_OK;
    TD_TRY(open_rounded(&j, &room));
    TD_TRY(td_parallel_for(plan->rows, plan->depth, round_rows, &j));
    int64_t rows = plan->rows < ROWS ? plan->rows : ROWS;
    status = td_parallel_for(j.panels * j.down, (1 + rows) * j.x.steps * j.step / 4, run_tiles, &j);
done:
    td_release(room);
    return status;
}

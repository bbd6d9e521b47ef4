/* quantized.c: the work functions of quantized tensors on the CPU: lines of floats cut for threads,
 * weights packed, and tiles of a product with what becomes of their sums. */
#include "engine/core/threads.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/isa/isa.h"
#include "engine/ops/plan/quantized_pack.h"

#include <string.h>

static int64_t at_most(int64_t n, int64_t most) {
    return n < most ? n : most;
}
static int64_t parts_of(int64_t n, int64_t size) {
    return (n + size - 1) / size;
}

/* ---- floats to integers ---- */

enum { STRETCH = 4096 }; /* elements of a line that are one item */

typedef struct quantize_job {
    const td_quantize_plan *plan;
    td_quantize_fn fn;
    int64_t stretches; /* of a line */
} quantize_job;

static void quantize_lines(void *ctx, int64_t begin, int64_t end, int worker) {
    const quantize_job *j = ctx;
    const td_quantize_plan *p = j->plan;
    (void)worker;
    for (int64_t item = begin; item < end; item++) {
        int64_t line = item / j->stretches, from = item % j->stretches * STRETCH;
        int64_t channel = line % p->channels, at = line * p->inner + from;
        j->fn(&(td_quantize_line){.x = (const float *)p->x->data + at,
                                  .out = (char *)p->out->data +
                                         at * (int64_t)td_tensor_itemsize(p->out),
                                  .n = at_most(p->inner - from, STRETCH),
                                  .scale = ((const float *)p->scales->data)[channel],
                                  .zero_point = ((const int32_t *)p->zero_points->data)[channel],
                                  .low = p->low,
                                  .high = p->high});
    }
}

td_status td_cpu_quantize(const td_quantize_plan *plan) {
    quantize_job job = {.plan = plan,
                        .fn = td_cpu->quantized->quantize[plan->out->dtype],
                        .stretches = parts_of(plan->inner, STRETCH)};
    return td_parallel_for(plan->outer * plan->channels * job.stretches,
                           at_most(plan->inner, STRETCH), quantize_lines, &job);
}

/* ---- packing ---- */

static bool is_safe_pair(int b0, int b1) {
    int above = (b0 > 0 ? b0 : 0) + (b1 > 0 ? b1 : 0);
    int below = (b0 < 0 ? b0 : 0) + (b1 < 0 ? b1 : 0);
    return 255 * above <= INT16_MAX && 255 * below >= INT16_MIN;
}

/* A panel of a weight that is being packed. */
typedef struct panel {
    const int8_t *weight; /* its first row */
    int64_t columns, depth, groups;
} panel;

/* A group into its place, as far as the weight has columns and depth; the rest is 0. */
static void copy_group(const panel *p, int64_t group, int8_t *to) {
    memset(to, 0, TD_QPACK_COLUMNS * TD_QPACK_FOUR);
    int64_t from = group * TD_QPACK_FOUR, n = at_most(p->depth - from, TD_QPACK_FOUR);
    for (int64_t c = 0; c < p->columns; c++)
        memcpy(to + c * TD_QPACK_FOUR, p->weight + c * p->depth + from, (size_t)n);
}

static int64_t count_unsafe(const panel *p, const int8_t *group) {
    int64_t unsafe = 0;
    for (int64_t k = 0; k < p->columns * TD_QPACK_FOUR; k += 2)
        unsafe += !is_safe_pair(group[k], group[k + 1]);
    return unsafe;
}

/* The groups of a panel: safe ones from the front, others from the back where `ordered`. */
static void pack_panel(const panel *p, td_qpack *head, int32_t *safe, uint16_t *order,
                       int8_t *weights) {
    int8_t group[TD_QPACK_COLUMNS * TD_QPACK_FOUR];
    int64_t front = 0, back = p->groups;
    for (int64_t g = 0; g < p->groups; g++) {
        copy_group(p, g, group);
        int64_t unsafe = count_unsafe(p, group);
        int64_t place = unsafe && head->ordered ? --back : front++;
        order[place] = (uint16_t)g;
        memcpy(weights + place * (int64_t)sizeof group, group, sizeof group);
        head->unsafe_pairs += unsafe;
        head->moved_groups += unsafe && head->ordered;
    }
    *safe = (int32_t)front;
    head->pairs += p->columns * p->groups * TD_QPACK_FOUR / 2;
}

/* What is known of a column: its sum less depth times its zero point. */
static void pack_columns(const td_quantized_pack_plan *plan, td_qpack_parts *to) {
    const float *scales = plan->scales->data;
    const int32_t *zero_points = plan->zero_points->data;
    const int8_t *weight = plan->weight->data;
    for (int64_t c = 0; c < to->head->panels * TD_QPACK_COLUMNS; c++) {
        bool real = c < plan->rows;
        int32_t sum = 0;
        for (int64_t k = 0; real && k < plan->depth; k++)
            sum += weight[c * plan->depth + k];
        to->scales[c] = real ? scales[c] : 1;
        to->zero_points[c] = real ? zero_points[c] : 0;
        to->sums[c] = sum - (int32_t)plan->depth * to->zero_points[c];
        to->head->centred = to->head->centred && to->zero_points[c] == 0;
    }
}

td_status td_cpu_quantized_pack(const td_quantized_pack_plan *plan) {
    td_qpack_parts to = td_qpack_open(plan->out->data, plan->rows, plan->depth);
    bool vnni = td_cpu->quantized->tile_vnni && td_cpu_has_vnni();
    memset(to.head, 0, (size_t)((char *)to.weights - (char *)to.head));
    *to.head = (td_qpack){.magic = TD_QPACK_MAGIC,
                          .columns = plan->rows,
                          .depth = plan->depth,
                          .panels = parts_of(plan->rows, TD_QPACK_COLUMNS),
                          .groups = parts_of(plan->depth, TD_QPACK_FOUR),
                          .ordered = td_cpu->quantized->ordered && !vnni,
                          .centred = true,
                          .bytes = td_qpack_bytes(plan->rows, plan->depth)};
    pack_columns(plan, &to);
    for (int64_t p = 0; p < to.head->panels; p++) {
        int64_t column = p * TD_QPACK_COLUMNS, groups = to.head->groups;
        panel from = {.weight = (const int8_t *)plan->weight->data + column * plan->depth,
                      .columns = at_most(plan->rows - column, TD_QPACK_COLUMNS),
                      .depth = plan->depth,
                      .groups = groups};
        pack_panel(&from, to.head, &to.safe[p], to.order + p * groups,
                   to.weights + p * groups * TD_QPACK_COLUMNS * TD_QPACK_FOUR);
    }
    return TD_OK;
}

/* ---- products ---- */

typedef struct linear_job {
    const td_quantized_linear_plan *plan;
    td_qpack_parts packed;
    td_byte_tile_fn tile;
    td_rescale_fn rescale;
    const float *factors, *addends; /* by column; NULL: nothing is added */
    const uint8_t *x;
    int64_t step; /* bytes from row to row of x */
    int64_t down; /* tiles on top of one another */
} linear_job;

/* The sums of a tile's rows into the result. */
static void deliver(const linear_job *j, const td_byte_tile *t, int64_t row, int64_t column) {
    const td_quantized_linear_plan *p = j->plan;
    const td_qpack_parts *w = &j->packed;
    int64_t width = (int64_t)t->panels * TD_QPACK_COLUMNS, n = at_most(p->columns - column, width);
    int64_t size = (int64_t)td_tensor_itemsize(p->out);
    for (int r = 0; r < t->rows; r++) {
        int32_t row_sum =
            w->head->centred ? 0 : td_cpu->quantized->sum_bytes(t->x + r * t->step, p->depth);
        j->rescale(&(td_rescale_line){.sums = t->sums + r * width,
                                      .column_sums = w->sums + column,
                                      .zero_points = w->zero_points + column,
                                      .factors = j->factors + column,
                                      .addends = j->addends ? j->addends + column : NULL,
                                      .out = (char *)p->out->data +
                                             ((row + r) * p->columns + column) * size,
                                      .n = n,
                                      .row_sum = row_sum,
                                      .x_zero_point = p->to.x_zero_point,
                                      .out_zero_point = p->to.out_zero_point,
                                      .low = p->to.low,
                                      .high = p->to.high,
                                      .relu = p->to.relu});
    }
}

/* Tiles one below the other come one after the other: their weights stay in the cache. */
static void run_tiles(void *ctx, int64_t begin, int64_t end, int worker) {
    const linear_job *j = ctx;
    const td_quantized_linear_plan *p = j->plan;
    const td_qpack_parts *w = &j->packed;
    int32_t sums[TD_TILE_ROWS * TD_TILE_PANELS * TD_QPACK_COLUMNS];
    (void)worker;
    for (int64_t item = begin; item < end; item++) {
        int64_t row = item % j->down * TD_TILE_ROWS, panel_at = item / j->down * TD_TILE_PANELS;
        int64_t groups = w->head->groups;
        td_byte_tile t = {.x = j->x + row * j->step,
                          .step = j->step,
                          .rows = (int)at_most(p->rows - row, TD_TILE_ROWS),
                          .panels = (int)at_most(w->head->panels - panel_at, TD_TILE_PANELS),
                          .weights =
                              w->weights + panel_at * groups * TD_QPACK_COLUMNS * TD_QPACK_FOUR,
                          .order = w->order + panel_at * groups,
                          .safe = w->safe + panel_at,
                          .groups = groups,
                          .sums = sums};
        j->tile(&t);
        deliver(j, &t, row, panel_at * TD_QPACK_COLUMNS);
    }
}

/* Rows whose depth is no multiple of four, each with room behind it. */
static td_status widen_rows(const td_quantized_linear_plan *plan, int64_t step, td_tensor **out) {
    const int64_t sizes[] = {plan->rows, step};
    td_status status = td_tensor_empty(TD_U8, TD_DEVICE_CPU, 2, sizes, out);
    for (int64_t r = 0; status == TD_OK && r < plan->rows; r++) {
        char *to = (char *)(*out)->data + r * step;
        memcpy(to, (const char *)plan->x->data + r * plan->depth, (size_t)plan->depth);
        memset(to + plan->depth, 0, (size_t)(step - plan->depth));
    }
    return status;
}

/* What sums are multiplied by and what is added to them, by column: a new tensor. */
static td_status open_factors(linear_job *j, td_tensor **out) {
    const td_quantized_linear_plan *p = j->plan;
    const float *bias = p->bias ? p->bias->data : NULL;
    const int64_t sizes[] = {2, p->columns};
    bool floats = p->out->dtype == TD_F32;
    td_status status = td_tensor_empty(TD_F32, TD_DEVICE_CPU, 2, sizes, out);
    if (status)
        return status;
    float *factors = (*out)->data, *addends = factors + p->columns;
    for (int64_t c = 0; c < p->columns; c++) {
        float both = p->to.x_scale * j->packed.scales[c];
        factors[c] = floats ? both : both / p->to.out_scale;
        if (bias)
            addends[c] = floats ? bias[c] : bias[c] / both;
    }
    j->factors = factors;
    j->addends = bias ? addends : NULL;
    return TD_OK;
}

td_status td_cpu_quantized_linear(const td_quantized_linear_plan *plan) {
    const td_quantized_kernels *k = td_cpu->quantized;
    td_tensor *wide = NULL, *factors = NULL;
    td_status status = TD_OK;
    linear_job j = {.plan = plan,
                    .packed = td_qpack_open(plan->packed->data, plan->columns, plan->depth),
                    .rescale = k->rescale[plan->out->dtype],
                    .down = parts_of(plan->rows, TD_TILE_ROWS)};
    const td_qpack *head = j.packed.head;
    j.tile = k->tile_vnni && td_cpu_has_vnni() ? k->tile_vnni : k->tile;
    j.step = head->groups * TD_QPACK_FOUR;
    j.x = plan->x->data;
    if (j.step != plan->depth) {
        TD_TRY(widen_rows(plan, j.step, &wide));
        j.x = wide->data;
    }
    TD_TRY(open_factors(&j, &factors));
    int64_t across = parts_of(head->panels, TD_TILE_PANELS);
    int64_t cost = at_most(plan->rows, TD_TILE_ROWS) * (TD_TILE_PANELS * head->groups + 256);
    status = td_parallel_for(across * j.down, cost, run_tiles, &j);
done:
    td_release(wide);
    td_release(factors);
    return status;
}

/* quantized.c: the work functions of quantized tensors on the CPU but for products: lines of floats
 * and of bytes cut for threads, weights packed, and tables. */
#include "engine/core/threads.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/isa/isa.h"
#include "engine/cpu/quantized/quantized_tiles.h"
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

/* The same where columns read bytes of their own, of `joined` groups of the convolution. */
static void copy_lanes(const panel *p, int64_t joined, int64_t group, int8_t *to) {
    const int64_t each = TD_QPACK_FOUR / joined, own = each * TD_QPACK_FOUR;
    const int64_t from = group / each * own, first = group % each * TD_QPACK_FOUR;
    for (int64_t place = 0; place < TD_QPACK_COLUMNS; place++, to += TD_QPACK_FOUR) {
        int64_t four = place % TD_QPACK_FOUR;
        int64_t column = four / each * own + first + place / TD_QPACK_FOUR;
        memcpy(to, p->weight + column * p->depth + from + four % each * TD_QPACK_FOUR,
               TD_QPACK_FOUR);
    }
}

static int64_t count_unsafe(const panel *p, const int8_t *group) {
    int64_t unsafe = 0;
    for (int64_t k = 0; k < p->columns * TD_QPACK_FOUR; k += 2)
        unsafe += !is_safe_pair(group[k], group[k + 1]);
    return unsafe;
}

/* Does the loop of this processor add products in pairs of 16 bits? */
static bool adds_pairs(void) {
    return td_cpu->quantized->ordered && !(td_cpu->quantized->tile_vnni && td_cpu_has_vnni());
}

/* The groups of a panel: safe ones from the front, others from the back where `ordered`; of
 * lanes all are as the worst. */
static void pack_panel(const panel *p, td_qpack *head, int32_t *safe, uint16_t *order,
                       int8_t *weights) {
    int8_t group[TD_QPACK_COLUMNS * TD_QPACK_FOUR];
    int64_t front = 0, back = p->groups, before = head->unsafe_pairs;
    for (int64_t g = 0; g < p->groups; g++) {
        if (head->joined > 1)
            copy_lanes(p, head->joined, g, group);
        else
            copy_group(p, g, group);
        int64_t unsafe = count_unsafe(p, group);
        int64_t place = unsafe && head->ordered ? --back : front++;
        order[place] = (uint16_t)g;
        memcpy(weights + place * (int64_t)sizeof group, group, sizeof group);
        head->unsafe_pairs += unsafe;
        head->moved_groups += unsafe && head->ordered;
    }
    if (head->joined > 1 && head->unsafe_pairs > before) {
        front = 0;
        head->moved_groups += adds_pairs() ? p->groups : 0;
    }
    *safe = (int32_t)front;
    head->pairs += p->columns * p->groups * TD_QPACK_FOUR / 2;
}

/* What is known of a column: its sum less depth times its zero point. The weight's row `first` is
 * the first column. */
static void pack_columns(const td_quantized_pack_plan *plan, int64_t first, td_qpack_parts *to) {
    const float *scales = (const float *)plan->scales->data + first;
    const int32_t *zero_points = (const int32_t *)plan->zero_points->data + first;
    const int8_t *weight = (const int8_t *)plan->weight->data + first * plan->depth;
    for (int64_t c = 0; c < to->head->panels * TD_QPACK_COLUMNS; c++) {
        bool real = c < to->head->columns;
        int32_t sum = 0, point = real ? zero_points[c] : 0;
        for (int64_t k = 0; real && k < plan->depth; k++)
            sum += weight[c * plan->depth + k];
        to->scales[c] = real ? scales[c] : 1;
        to->zero_points[c] = plan->depthwise ? 0 : point;
        to->sums[c] = sum - (int32_t)plan->depth * point;
        to->head->centred = to->head->centred && to->zero_points[c] == 0;
    }
}

/* Weights of one channel each, less their zero points. */
static void pack_pairs(const td_quantized_pack_plan *plan, int16_t *to) {
    const int32_t *zero_points = plan->zero_points->data;
    const int8_t *weight = plan->weight->data;
    int64_t depth = plan->depth, across = parts_of(plan->rows, TD_QPACK_COLUMNS) * TD_QPACK_COLUMNS;
    for (int64_t first = 0; first < across; first += TD_QPACK_COLUMNS)
        for (int64_t k = 0; k < depth; k += 2)
            for (int64_t c = first; c < first + TD_QPACK_COLUMNS; c++)
                for (int64_t j = k; j < k + 2; j++)
                    *to++ = c < plan->rows && j < depth
                                ? (int16_t)(weight[c * depth + j] - zero_points[c])
                                : 0;
}

/* The same where all zero points are 0, in bytes. */
static void pack_fours(const td_quantized_pack_plan *plan, int8_t *to) {
    const int64_t depth = plan->depth;
    for (int64_t first = 0; first < plan->rows; first += TD_QPACK_COLUMNS) {
        panel from = {.weight = (const int8_t *)plan->weight->data + first * depth,
                      .columns = at_most(plan->rows - first, TD_QPACK_COLUMNS),
                      .depth = depth};
        for (int64_t g = 0; g * TD_QPACK_FOUR < depth; g++, to += TD_QPACK_COLUMNS * TD_QPACK_FOUR)
            copy_group(&from, g, to);
    }
}

static bool are_zeros(const td_tensor *zero_points) {
    int32_t any = 0;
    for (int64_t k = 0; k < zero_points->numel; k++)
        any |= ((const int32_t *)zero_points->data)[k];
    return any == 0;
}

/* The pack of the weight's rows from `first` on. */
static void pack_rows(const td_quantized_pack_plan *plan, int64_t first, void *memory) {
    td_qpack_shape shape = {plan->rows / plan->packs, plan->depth, plan->depthwise};
    td_qpack_parts to = td_qpack_open(memory, shape);
    memset(to.head, 0, (size_t)((char *)to.weights - (char *)to.head));
    *to.head = (td_qpack){.magic = TD_QPACK_MAGIC,
                          .columns = shape.columns,
                          .depth = plan->depth,
                          .panels = parts_of(shape.columns, TD_QPACK_COLUMNS),
                          .groups = plan->depthwise ? 0 : parts_of(plan->depth, TD_QPACK_FOUR),
                          .ordered = adds_pairs() && !plan->depthwise && plan->joined == 1,
                          .centred = true,
                          .depthwise = plan->depthwise,
                          .bytes = td_qpack_bytes(shape),
                          .joined = plan->joined,
                          .fours = plan->depthwise && are_zeros(plan->zero_points)};
    pack_columns(plan, first, &to);
    for (int64_t p = 0; p < to.head->panels && !plan->depthwise; p++) {
        int64_t column = p * TD_QPACK_COLUMNS, groups = to.head->groups;
        panel from = {.weight = (const int8_t *)plan->weight->data + (first + column) * plan->depth,
                      .columns = at_most(shape.columns - column, TD_QPACK_COLUMNS),
                      .depth = plan->depth,
                      .groups = groups};
        pack_panel(&from, to.head, &to.safe[p], to.order + p * groups,
                   to.weights + p * groups * TD_QPACK_COLUMNS * TD_QPACK_FOUR);
    }
    if (plan->depthwise)
        pack_pairs(plan, to.pairs);
    if (to.head->fours)
        pack_fours(plan, to.fours);
}

td_status td_byte_packs_make(const td_quantized_pack_plan *plan) {
    int64_t rows = plan->rows / plan->packs, bytes = plan->out->numel / plan->packs;
    for (int64_t k = 0; k < plan->packs; k++)
        pack_rows(plan, k * rows, (char *)plan->out->data + k * bytes);
    return TD_OK;
}

/* ---- element by element ---- */

static void combine_stretches(void *ctx, int64_t begin, int64_t end, int worker) {
    const td_quantized_binary_plan *p = ctx;
    (void)worker;
    for (int64_t item = begin; item < end; item++) {
        int64_t from = item * STRETCH; /* elements are bytes */
        td_cpu->quantized->combine[p->out->dtype](
            &(td_combine_line){.a = (const char *)p->a->data + from,
                               .b = (const char *)p->b->data + from,
                               .out = (char *)p->out->data + from,
                               .n = at_most(p->out->numel - from, STRETCH),
                               .a_scale = p->a_scale,
                               .b_scale = p->b_scale,
                               .inverse = 1 / p->out_scale,
                               .a_zero_point = p->a_zero_point,
                               .b_zero_point = p->b_zero_point,
                               .out_zero_point = p->out_zero_point,
                               .low = p->low,
                               .high = p->high,
                               .multiply = p->multiply});
    }
}

td_status td_cpu_quantized_binary(const td_quantized_binary_plan *plan) {
    return td_parallel_for(parts_of(plan->out->numel, STRETCH), STRETCH, combine_stretches,
                           (void *)(uintptr_t)plan);
}

/* ---- tables ---- */

typedef struct lookup_job {
    const uint8_t *x, *table;
    uint8_t *out;
    int64_t n;
    uint8_t flip; /* makes a place in the table of a byte */
} lookup_job;

static void look_up_stretches(void *ctx, int64_t begin, int64_t end, int worker) {
    const lookup_job *j = ctx;
    const uint8_t *x = j->x, *table = j->table, flip = j->flip;
    uint8_t *restrict out = j->out;
    (void)worker;
    for (int64_t i = begin * STRETCH, to = at_most(end * STRETCH, j->n); i < to; i++)
        out[i] = table[x[i] ^ flip];
}

td_status td_cpu_quantized_lookup(const td_quantized_lookup_plan *plan) {
    lookup_job j = {.x = plan->x->data,
                    .table = plan->table->data,
                    .out = plan->out->data,
                    .n = plan->out->numel};
    j.flip = plan->x->dtype == TD_I8 ? 0x80 : 0;
    return td_parallel_for(parts_of(j.n, STRETCH), STRETCH, look_up_stretches, &j);
}

/* quantized_tiles.c: rows of bytes times packed weights, tile by tile, and linear layers, which are
 * nothing more. */
#include "engine/cpu/quantized/quantized_tiles.h"

#include "engine/core/threads.h"
#include "engine/cpu/isa/isa.h"
#include "engine/cpu/limits.h"

#include <string.h>

static int64_t at_most(int64_t n, int64_t most) {
    return n < most ? n : most;
}
static int64_t parts_of(int64_t n, int64_t size) {
    return (n + size - 1) / size;
}

/* ---- the choice of a loop ---- */

static int32_t saturate(int32_t v) {
    return v > INT16_MAX ? INT16_MAX : v < INT16_MIN ? INT16_MIN : v;
}

/* A tile as fbgemm's AVX2 kernels have it: neighbours along the depth are summed in pairs that
 * saturate in 16 bits, and these in 32. One column after the other: it is for comparisons. */
static void multiply_saturating(const td_byte_tile *t) {
    const int64_t width = (int64_t)t->panels * TD_QPACK_COLUMNS;
    memset(t->sums, 0, sizeof *t->sums * (size_t)(t->rows * width));
    for (int64_t g = 0; g < t->groups * t->panels; g++) {
        const int8_t *w = t->weights + g * TD_QPACK_COLUMNS * TD_QPACK_FOUR;
        for (int r = 0; r < t->rows; r++) {
            const uint8_t *x = td_byte_tile_part(t, r, t->which) + t->order[g] * TD_QPACK_FOUR;
            int32_t *sums = t->sums + r * width + g / t->groups * TD_QPACK_COLUMNS;
            for (int64_t c = 0; c < TD_QPACK_COLUMNS; c++) {
                const int8_t *b = w + c * TD_QPACK_FOUR;
                sums[c] +=
                    saturate(x[0] * b[0] + x[1] * b[1]) + saturate(x[2] * b[2] + x[3] * b[3]);
            }
        }
    }
}

/* AMX is for products that are worth its configuration, and that fill its tiles. */
static bool is_for_amx(const td_qpack *head, int64_t rows, int64_t parts) {
    const td_amx_kernels *amx = td_cpu->quantized->amx;
    return amx && !head->ordered && head->groups / parts >= TD_AMX_GROUPS &&
           rows >= TD_LIMIT(QUANTIZED_AMX_ROWS) && head->depth >= TD_LIMIT(QUANTIZED_AMX_DEPTH) &&
           rows * head->columns * head->depth >= TD_LIMIT(QUANTIZED_AMX) && amx->usable();
}

/* The loop for byte tiles of these weights on this processor. */
static void choose_tile(td_byte_product *product, const td_qpack *head, int64_t rows,
                        int64_t parts) {
    const td_quantized_kernels *k = td_cpu->quantized;
    const bool vnni = k->tile_vnni && td_cpu_has_vnni();
    product->tile_rows = head->panels == 1 ? TD_PANEL_TILE_ROWS : TD_TILE_ROWS;
    if (head->joined > 1) {
        product->tile = vnni ? k->lanes_vnni : k->lanes;
    } else if (head->saturates) {
        product->tile = multiply_saturating;
    } else if (is_for_amx(head, rows, parts)) {
        product->amx = k->amx;
        product->tile = k->amx->tile;
        product->tile_rows = TD_AMX_TILE_ROWS;
    } else {
        product->tile = vnni ? k->tile_vnni : k->tile;
    }
}

/* ---- what becomes of sums ---- */

td_qpack_parts td_byte_pack(const td_tensor *packed, int64_t index) {
    const td_qpack *head = packed->data;
    return td_qpack_open((char *)packed->data + index * head->bytes, td_qpack_shape_of(head));
}

td_status td_byte_product_open(td_byte_product *product, const td_requantization *to,
                               td_dtype dtype, const td_tensor *packed, const td_tensor *bias,
                               int64_t rows, int64_t parts) {
    const td_qpack *head = packed->data;
    const int64_t packs = td_qpack_count(packed), columns = packs * head->columns;
    bool floats = dtype == TD_F32;
    *product = (td_byte_product){.to = to, .dtype = dtype};
    choose_tile(product, head, rows, parts);
    td_status status =
        td_tensor_empty(TD_F32, TD_DEVICE_CPU, 2, (const int64_t[]){3, columns}, &product->numbers);
    if (status)
        return status;
    float *factors = product->numbers->data, *addends = factors + columns;
    int32_t *offsets = (int32_t *)(void *)(addends + columns);
    for (int64_t k = 0, c = 0; k < packs; k++) {
        td_qpack_parts pack = td_byte_pack(packed, k);
        for (int64_t i = 0; i < head->columns; i++, c++) {
            float both = to->x_scale * pack.scales[i];
            float b = bias ? ((const float *)bias->data)[c] : 0;
            factors[c] = floats ? both : both / to->out_scale;
            addends[c] = floats ? b : b / both;
            offsets[c] = (int32_t)((uint32_t)to->x_zero_point * (uint32_t)pack.sums[i]);
        }
    }
    product->factors = factors;
    product->addends = addends;
    product->offsets = offsets;
    return TD_OK;
}

void td_byte_sums_deliver(const td_byte_product *product, const td_qpack_parts *packed,
                          const td_byte_rows *rows, int64_t first, int64_t row, int count,
                          int64_t column, int64_t n, const int32_t *sums, int64_t width,
                          const int32_t *row_sums) {
    const td_requantization *to = product->to;
    int64_t at = column * (int64_t)td_dtype_size(product->dtype);
    td_cpu->quantized->rescale[product->dtype](
        &(td_rescale_tile){.sums = sums,
                           .row_sums = row_sums,
                           .rows = count,
                           .width = width,
                           .n = n,
                           .offsets = product->offsets + first + column,
                           .zero_points = packed->zero_points + column,
                           .factors = product->factors + first + column,
                           .addends = product->addends + first + column,
                           .out = rows->out + at,
                           .residual = rows->residual ? rows->residual + at : NULL,
                           .at = rows->at + row,
                           .out_zero_point = to->out_zero_point,
                           .low = to->low,
                           .high = to->high,
                           .residual_zero_point = to->residual_zero_point,
                           .residual_factor = to->residual_scale / to->out_scale,
                           .relu = to->relu});
}

/* ---- tiles ---- */

const td_byte_part td_byte_whole = {0, 0, 0};

bool td_byte_pack_is_whole(const td_qpack *head) {
    return head->ordered || head->saturates;
}

/* The sum of the bytes of a row of a tile, `part` of them in each part. */
static int32_t sum_row(const td_byte_tile *t, int row, int64_t part) {
    uint32_t sum = 0;
    for (int64_t k = 0; k < t->count; k++)
        sum +=
            (uint32_t)td_cpu->quantized->sum_bytes(td_byte_tile_part(t, row, &t->which[k]), part);
    return (int32_t)sum;
}

/* A tile's rows from `row` on and columns from `column` on, and their sums. */
typedef struct tile_sums {
    int64_t row, column;
    int rows, panels;
    int32_t sums[TD_AMX_TILE_ROWS * TD_TILE_PANELS * TD_QPACK_COLUMNS], row_sums[TD_AMX_TILE_ROWS];
} tile_sums;

static void multiply_tile(const td_byte_product *product, const td_qpack_parts *packed,
                          const td_byte_rows *rows, tile_sums *to) {
    const td_qpack *head = packed->head;
    const int64_t groups = head->groups, panel = to->column / TD_QPACK_COLUMNS;
    td_byte_tile t = {.taps = rows->taps + to->row * rows->apart,
                      .which = rows->which,
                      .apart = rows->apart,
                      .count = rows->count_parts,
                      .from = rows->from,
                      .each = groups / rows->parts,
                      .rows = to->rows,
                      .panels = to->panels,
                      .weights =
                          packed->weights + panel * groups * TD_QPACK_COLUMNS * TD_QPACK_FOUR,
                      .order = packed->order + panel * groups,
                      .safe = packed->safe + panel,
                      .groups = groups,
                      .sums = to->sums};
    product->tile(&t);
    for (int r = 0; r < t.rows && !head->centred; r++)
        to->row_sums[r] = sum_row(&t, r, head->depth / rows->parts);
}

static void deliver_tile(const td_byte_product *product, const td_qpack_parts *packed,
                         const td_byte_rows *rows, int64_t first, const tile_sums *t) {
    const int64_t width = (int64_t)t->panels * TD_QPACK_COLUMNS;
    td_byte_sums_deliver(product, packed, rows, first, t->row, t->rows, t->column,
                         at_most(packed->head->columns - t->column, width), t->sums, width,
                         packed->head->centred ? NULL : t->row_sums);
}

/* How many rows the next tile has, of so many that are left: they are as equal as can be, since one
 * of few rows waits for its weights. AMX's are whole, and take its configuration. */
static int next_height(const td_byte_product *product, int64_t left) {
    if (product->amx)
        return (int)at_most(left, product->tile_rows);
    return (int)parts_of(left, parts_of(left, product->tile_rows));
}

/* Tiles one below the other come one after the other: their weights stay in the cache. The sums of
 * one are delivered behind the next, whose last products they then don't wait for. */
void td_byte_rows_multiply(const td_byte_product *product, const td_qpack_parts *packed,
                           const td_byte_rows *rows, int64_t first, int64_t panel, int64_t panels) {
    const int64_t end = at_most(panel + panels, packed->head->panels);
    tile_sums two[2], *now = two, *last = NULL;
    int configured = 0; /* rows that AMX's tiles are configured for */
    for (; panel < end; panel += TD_TILE_PANELS)
        for (int64_t row = 0; row < rows->count; row += last->rows) {
            now->row = row;
            now->column = panel * TD_QPACK_COLUMNS;
            now->rows = next_height(product, rows->count - row);
            now->panels = (int)at_most(end - panel, TD_TILE_PANELS);
            if (product->amx && now->rows != configured)
                product->amx->configure(configured = now->rows);
            multiply_tile(product, packed, rows, now);
            if (last)
                deliver_tile(product, packed, rows, first, last);
            last = now;
            now = now == two ? two + 1 : two;
        }
    if (last)
        deliver_tile(product, packed, rows, first, last);
    if (configured)
        product->amx->release();
}

/* ---- linear layers ---- */

typedef struct linear_job {
    td_byte_product product;
    td_qpack_parts packed;
    const uint8_t *x;
    int64_t step, rows;
    char *out;
    int64_t out_step; /* bytes */
    int64_t down;     /* tiles on top of one another */
} linear_job;

static void run_tiles(void *ctx, int64_t begin, int64_t end, int worker) {
    const linear_job *j = ctx;
    (void)worker;
    for (int64_t item = begin; item < end; item++) {
        const uint8_t *taps[TD_AMX_TILE_ROWS];
        int64_t at[TD_AMX_TILE_ROWS], most = j->product.tile_rows;
        int64_t row = item % j->down * most, count = at_most(j->rows - row, most);
        for (int64_t r = 0; r < count; r++) {
            taps[r] = j->x + (row + r) * j->step;
            at[r] = (row + r) * j->out_step;
        }
        td_byte_rows rows = {.taps = taps,
                             .which = &td_byte_whole,
                             .apart = 1,
                             .parts = 1,
                             .count_parts = 1,
                             .count = count,
                             .out = j->out,
                             .at = at};
        td_byte_rows_multiply(&j->product, &j->packed, &rows, 0, item / j->down * TD_TILE_PANELS,
                              TD_TILE_PANELS);
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

td_status td_byte_packs_linear(const td_quantized_linear_plan *plan) {
    td_tensor *wide = NULL;
    td_status status = TD_OK;
    linear_job j = {.packed = td_byte_pack(plan->packed, 0),
                    .x = plan->x->data,
                    .rows = plan->rows,
                    .out = plan->out->data,
                    .out_step = plan->columns * (int64_t)td_tensor_itemsize(plan->out)};
    const td_qpack *head = j.packed.head;
    j.step = head->groups * TD_QPACK_FOUR;
    if (j.step != plan->depth) {
        TD_TRY(widen_rows(plan, j.step, &wide));
        j.x = wide->data;
    }
    TD_TRY(td_byte_product_open(&j.product, &plan->to, (td_dtype)plan->out->dtype, plan->packed,
                                plan->bias, plan->rows, 1));
    j.down = parts_of(plan->rows, j.product.tile_rows);
    int64_t across = parts_of(head->panels, TD_TILE_PANELS);
    int64_t cost = at_most(plan->rows, j.product.tile_rows) * (TD_TILE_PANELS * head->groups + 256);
    status = td_parallel_for(across * j.down, cost, run_tiles, &j);
done:
    td_release(wide);
    td_release(j.product.numbers);
    return status;
}

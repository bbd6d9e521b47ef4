/* kept_panels.c: right sides of products as they are kept packed (ops/make/kept_forms.h): panels of
 * our own tiles, pairs of bfloat16 for oneDNN. What a product gives does not depend on whether its
 * right side is kept. */
#include "engine/cpu/product/kept_panels.h"

#include "engine/core/threads.h"
#include "engine/cpu/isa/isa.h"
#include "engine/ops/make/kept_forms.h"

/* ---- panels ---- */

typedef struct packing {
    td_dtype dtype;
    const td_product_block *p;
    char *to;
    int64_t width, panel; /* columns, bytes */
} packing;

static void pack_panels(void *ctx, int64_t begin, int64_t end, int worker) {
    const packing *j = ctx;
    (void)worker;
    for (int64_t k = begin; k < end; k++) {
        int64_t column = k * j->width, left = j->p->columns - column;
        td_product_pack(j->dtype, j->p, 0, j->p->depth, column, left < j->width ? left : j->width,
                        j->to + k * j->panel);
    }
}

td_status td_pack_panels(td_dtype dtype, const td_product_block *p, td_tensor **out) {
    const int64_t bytes = td_cpu->product->tile_bytes;
    packing j = {dtype, p, NULL, bytes / (int64_t)td_dtype_size(dtype), p->depth * bytes};
    const int64_t n = (p->columns + j.width - 1) / j.width, numel = n * p->depth * j.width;
    td_status status = td_tensor_empty(dtype, TD_DEVICE_CPU, 1, &numel, out);
    if (status)
        return status;
    j.to = (*out)->data;
    status = td_parallel_for(n, p->depth * j.width, pack_panels, &j);
    if (status) {
        td_release(*out);
        *out = NULL;
    }
    return status;
}

typedef struct right_side {
    td_dtype dtype;
    const td_product_block *p;
} right_side;

static td_status make_panels(const void *ctx, td_tensor **out) {
    const right_side *r = ctx;
    return td_pack_panels(r->dtype, r->p, out);
}

td_tensor *td_kept_panels(td_dtype dtype, td_storage *storage, const td_product_block *p) {
    const td_form_key key = {
        TD_FORM_PANELS, p->b, {dtype, p->columns, p->depth, p->b_row, p->b_column}};
    const right_side r = {dtype, p};
    return td_kept_form(storage, &key, make_panels, &r);
}

/* ---- pairs ---- */

typedef struct pairing {
    const td_pairs *p;
    const uint16_t *from;
    int64_t bytes;
} pairing;

static td_status make_pairs(const void *ctx, td_tensor **out) {
    const pairing *j = ctx;
    td_status status = td_tensor_empty(TD_U8, TD_DEVICE_CPU, 1, &j->bytes, out);
    if (status == TD_OK)
        td_pack_pairs(j->p, j->from, (*out)->data);
    return status;
}

td_tensor *td_kept_pairs(td_storage *storage, const td_pairs *p, const uint16_t *from,
                         int64_t bytes) {
    const td_form_key key = {TD_FORM_PAIRS,
                             from,
                             {p->rows, p->columns, p->row_stride, p->column_stride, p->deep,
                              p->wide, p->down, p->across}};
    const pairing j = {p, from, bytes};
    return td_kept_form(storage, &key, make_pairs, &j);
}

/* product_panels.c: products of large matrices of floats. The right side is packed into panels as
 * wide as a tile, which one thread streams from its cache past block after block of the left side;
 * 16-bit floats are widened on the way, and summed up in float32. What an element of the result
 * gives depends on its row, its column and the depth alone. Knows nothing of tensors, but for room,
 * and of libraries. */
#include "engine/core/interrupt.h"
#include "engine/core/tensor.h"
#include "engine/cpu/isa/isa.h"
#include "engine/cpu/pointwise/transpose.h"
#include "engine/cpu/product/library_parts.h"
#include "engine/cpu/product/product.h"
#include "engine/cpu/reduce/dim_lines.h"

#include <string.h>

enum {
    TALL = 120,        /* rows of a block: whole tiles; it stays in the second-level cache */
    DEEP = 512,        /* terms that a tile takes in at a time */
    APART = DEEP + 16, /* elements between rows that are copied: not a power of two */
    PANELS = 8,        /* of the right side that are packed together, at most, */
    PACKED = 4 << 20,  /* bytes, but for one panel */
    SLAB = 16 * 1024,  /* terms of a panel */
    TURNED = 32,       /* terms of columns that are widened and turned at a time; others: DEEP, */
    LINES = 16,        /* of so many columns, whose lines may share a few places of a cache */
    WIDEST = 256       /* bytes of a tile's row, at most */
};

typedef struct job {
    const td_product_block *whole;
    const td_product_batch *batch;
    td_product_tile_fn tile;
    td_dtype dtype, wide;    /* of the matrices, and that in which they are multiplied */
    int64_t size, wide_size; /* of their elements */
    int64_t width, rows;     /* of a tile */
} job;

/* One thread's part: its memory, and what of the right side is packed in it. */
typedef struct part {
    const job *j;
    td_product_block p; /* the tile of the whole that it makes */
    char *right, *left, *sums, *bias;
    int64_t panels;                       /* side by side */
    int64_t from, depth, column, columns; /* terms and columns that are packed */
} part;

static int64_t at_most(int64_t left, int64_t each) {
    return left < each ? left : each;
}

static bool widens(const job *j) {
    return j->dtype != j->wide;
}

static void copy_run(const job *j, void *to, const void *from, int64_t n) {
    if (widens(j))
        td_cpu->convert->convert[j->wide][j->dtype](n, to, from);
    else
        memcpy(to, from, (size_t)(n * j->size));
}

/* ---- the right side ---- */

/* Rows, from one end to the other: each goes through all panels. */
static void pack_rows(const part *t, const char *from) {
    const job *j = t->j;
    int64_t row = j->width * j->wide_size, panel = t->depth * row;
    for (int64_t l = 0; l < t->depth; l++, from += t->p.b_row * j->size)
        for (int64_t c = 0; c < t->columns; c += j->width)
            copy_run(j, t->right + c / j->width * panel + l * row, from + c * j->size,
                     at_most(t->columns - c, j->width));
}

/* Columns, which are turned, a few terms of a panel's at a time. */
static void pack_columns(const part *t, const char *from) {
    const job *j = t->j;
    float lines[WIDEST / sizeof(float) * TURNED];
    char *to = t->right;
    for (int64_t c = 0; c < t->columns; c += j->width)
        for (int64_t l = 0, n; l < t->depth; l += n) {
            n = at_most(t->depth - l, widens(j) ? TURNED : DEEP);
            int64_t columns = at_most(t->columns - c, j->width);
            const char *x = from + (c * t->p.b_column + l) * j->size;
            if (widens(j)) {
                for (int64_t k = 0; k < columns; k++)
                    copy_run(j, lines + k * TURNED, x + k * t->p.b_column * j->size, n);
                td_cpu_turn(to, j->width, lines, TURNED, n, columns, sizeof *lines);
            } else {
                for (int64_t k = 0; k < columns; k += LINES)
                    td_cpu_turn(to + k * j->size, j->width, x + k * t->p.b_column * j->size,
                                t->p.b_column, n, at_most(columns - k, LINES), (size_t)j->size);
            }
            to += n * j->width * j->wide_size;
        }
}

static void pack_right(const part *t) {
    const job *j = t->j;
    const char *from = t->p.b + (t->from * t->p.b_row + t->column * t->p.b_column) * j->size;
    int64_t row = j->width * j->wide_size, over = t->columns % j->width * j->wide_size;
    char *last = t->right + t->columns / j->width * t->depth * row;
    for (int64_t l = 0; over && l < t->depth; l++) /* so that lanes beyond hold numbers */
        memset(last + l * row, 0, (size_t)row);
    if (t->p.b_column == 1)
        pack_rows(t, from);
    else
        pack_columns(t, from);
}

void td_product_pack(td_dtype dtype, const td_product_block *whole, int64_t from, int64_t depth,
                     int64_t column, int64_t columns, char *to) {
    int64_t size = (int64_t)td_dtype_size(dtype);
    const job j = {.dtype = dtype,
                   .wide = dtype,
                   .size = size,
                   .wide_size = size,
                   .width = td_cpu->product->tile_bytes / size};
    pack_right(&(part){.j = &j,
                       .p = *whole,
                       .right = to,
                       .from = from,
                       .depth = depth,
                       .column = column,
                       .columns = columns});
}

/* ---- the left side ---- */

/* A block of rows and terms, which stays where it is if that will do. */
static td_product_tile left_side(const part *t, int64_t row, int64_t rows, int64_t from,
                                 int64_t depth) {
    const job *j = t->j;
    const char *a = t->p.a + (row * t->p.a_row + from * t->p.a_column) * j->size;
    td_product_tile tile = {.a = t->left, .depth = depth};
    if (t->p.a_column == 1 && !widens(j)) {
        tile.a = a;
        tile.a_row = t->p.a_row;
        tile.a_step = 1;
    } else if (t->p.a_column == 1) {
        tile.a_row = APART;
        tile.a_step = 1;
        for (int64_t r = 0; r < rows; r++, a += t->p.a_row * j->size)
            copy_run(j, t->left + r * APART * j->wide_size, a, depth);
    } else {
        tile.a_row = 1;
        tile.a_step = TALL;
        for (int64_t l = 0; l < depth; l++, a += t->p.a_column * j->size)
            copy_run(j, t->left + l * TALL * j->wide_size, a, rows);
    }
    return tile;
}

/* ---- tiles ---- */

/* Rows [row, row + rows) of the columns that are packed: to c, or to `sums`. */
static void multiply_block(const part *t, int64_t row, int64_t rows) {
    const job *j = t->j;
    int64_t size = j->wide_size, c_row = widens(j) ? t->panels * j->width : t->p.c_row;
    char *c = widens(j) ? t->sums : t->p.c + (row * c_row + t->column) * size;
    for (int64_t l = 0; l < t->depth && !td_interrupt_requested(); l += DEEP) {
        td_product_tile tile = left_side(t, row, rows, t->from + l, at_most(t->depth - l, DEEP));
        const char *a = tile.a;
        bool first = t->from + l == 0;
        tile.b_row = j->width;
        tile.c_row = c_row;
        tile.base_row = first ? 0 : c_row;
        for (int64_t k = 0; k < t->columns; k += j->width) {
            tile.columns = at_most(t->columns - k, j->width);
            tile.b = t->right + (k * t->depth + l * j->width) * size;
            for (int64_t r = 0; r < rows; r += j->rows) {
                tile.rows = at_most(rows - r, j->rows);
                tile.a = a + r * tile.a_row * size;
                tile.c = c + (r * c_row + k) * size;
                tile.base = !first ? tile.c : t->bias ? t->bias + k * size : NULL;
                j->tile(&tile);
            }
        }
    }
}

/* The sums of a block of 16-bit floats, rounded. */
static void round_block(const part *t, int64_t row, int64_t rows) {
    const job *j = t->j;
    for (int64_t r = 0; r < rows; r++)
        td_cpu->convert->convert[j->dtype][j->wide](
            t->columns, t->p.c + ((row + r) * t->p.c_row + t->column) * j->size,
            t->sums + r * t->panels * j->width * j->wide_size);
}

static void multiply_columns(part *t) {
    const job *j = t->j;
    const char *bias = t->p.bias ? t->p.bias + t->column * j->size : NULL;
    for (t->from = 0; t->from < t->p.depth; t->from += SLAB) {
        t->depth = at_most(t->p.depth - t->from, SLAB);
        pack_right(t);
        if (bias && t->from == 0)
            copy_run(j, t->bias, bias, t->columns);
        for (int64_t row = 0; row < t->p.rows && !td_interrupt_requested(); row += TALL) {
            int64_t rows = at_most(t->p.rows - row, TALL);
            multiply_block(t, row, rows);
            if (widens(j))
                round_block(t, row, rows);
        }
    }
}

/* ---- parts ---- */

static td_status multiply_part(const void *ctx, const td_tile *where) {
    const job *j = ctx;
    const td_product_block *w = j->whole;
    part t = {.j = j, .p = *w};
    int64_t row = j->width * j->wide_size, deepest = at_most(w->depth, SLAB);
    unsigned mark = td_interrupt_mark();
    td_tensor *room = NULL;
    t.p.rows = where->rows;
    t.p.columns = where->columns;
    t.panels = at_most((t.p.columns + j->width - 1) / j->width, PANELS);
    while (t.panels > 1 && t.panels * deepest * row > PACKED)
        t.panels--;
    int64_t right = t.panels * deepest * row, line = t.panels * row;
    int64_t left = TALL * APART * j->wide_size;
    td_status status = td_room(right + left + line + (widens(j) ? TALL * line : 0), 1, &room);
    if (status)
        return status;
    t.right = room->data;
    t.left = t.right + right;
    t.sums = t.left + left + line;
    t.bias = w->bias ? t.left + left : NULL;
    if (w->bias)
        t.p.bias = w->bias + where->column * j->size;
    for (int64_t n = where->batch; n < where->batch + where->batches; n++) {
        t.p.a = w->a + (n * j->batch->a + where->row * w->a_row) * j->size;
        t.p.b = w->b + (n * j->batch->b + where->column * w->b_column) * j->size;
        t.p.c = w->c + (n * j->batch->c + where->row * w->c_row + where->column) * j->size;
        for (t.column = 0; t.column < t.p.columns; t.column += t.panels * j->width) {
            t.columns = at_most(t.p.columns - t.column, t.panels * j->width);
            multiply_columns(&t);
        }
    }
    td_release(room);
    return td_interrupt_since(mark) ? td_interrupted() : TD_OK;
}

/* In which dtype the matrices of one are multiplied. */
static const td_dtype wide_of[TD_DTYPE_COUNT] = {
    [TD_F16] = TD_F32, [TD_BF16] = TD_F32, [TD_F32] = TD_F32, [TD_F64] = TD_F64};

bool td_product_has_panels(td_dtype dtype, const td_product_block *p) {
    bool sides = (p->a_column == 1 || p->a_row == 1) && (p->b_column == 1 || p->b_row == 1);
    td_dtype wide = wide_of[dtype];
    return td_cpu->product->tile[wide] && sides && p->c_column == 1 &&
           (wide == dtype || p->depth <= SLAB);
}

td_status td_product_by_panels(td_dtype dtype, const td_product_block *whole,
                               const td_product_batch *batch) {
    td_dtype wide = wide_of[dtype];
    job j = {.whole = whole,
             .batch = batch,
             .tile = td_cpu->product->tile[wide],
             .dtype = dtype,
             .wide = wide,
             .size = (int64_t)td_dtype_size(dtype),
             .wide_size = (int64_t)td_dtype_size(wide),
             .rows = td_cpu->product->tile_rows};
    j.width = td_cpu->product->tile_bytes / j.wide_size;
    return td_run_tiles(batch->n, whole->rows, whole->columns, whole->depth, multiply_part, &j);
}

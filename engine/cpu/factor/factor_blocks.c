/* factor_blocks.c: triangles solved, and matrices decomposed into them, block by block.
 *
 * Columns are worked on in panels as wide as a tile. A block of rows is solved in all panels, then
 * its product is taken from the rows that are left, which is where the time goes. */
#include "engine/cpu/factor/factor_blocks.h"

#include "engine/core/interrupt.h"
#include "engine/core/tensor.h"
#include "engine/core/threads.h"
#include "engine/cpu/isa/isa.h"
#include "engine/cpu/pointwise/transpose.h"
#include "engine/cpu/reduce/dim_lines.h"

#include <string.h>

enum {
    DEEP = 192, /* rows or columns of a block */
    TALL = 96,  /* rows of a product whose left side stays in a near cache: whole tiles */
    LEAF = TD_FACTOR_COLUMNS,
    LINE = 16, /* elements: whole vectors, of which columns of a leaf are an odd number apart */
    FEW = 2,   /* panels, for which a left side isn't copied */
    PER_COST = 128, /* multiplications that cost as much as an addition in memory */
};

static int64_t at_most(int64_t left, int64_t each) {
    return left < each ? left : each;
}

static int64_t panel_width(td_dtype dtype) {
    return td_cpu->product->tile_bytes / (int64_t)td_dtype_size(dtype);
}

static int64_t panels_of(td_dtype dtype, int64_t columns) {
    int64_t width = panel_width(dtype);
    return (columns + width - 1) / width;
}

/* ---- products ---- */

/* c += a b, panel by panel: b's lie packed, c's are `c_panel` elements apart. */
typedef struct product {
    td_dtype dtype;
    const char *a, *b;
    char *c;
    int64_t a_row, a_column;
    int64_t rows, columns, depth; /* depth: DEEP at most */
    int64_t b_panel, c_panel, c_row;
    bool triangle; /* what lies below the diagonal of c is not needed */
} product;

/* Rows of a side by side, or where they are if that will do or there is no room. */
static td_product_tile left_side(const product *p, int64_t row, int64_t rows, char *room) {
    int64_t size = (int64_t)td_dtype_size(p->dtype);
    const char *a = p->a + row * p->a_row * size;
    td_product_tile tile = {.a = a,
                            .depth = p->depth,
                            .a_row = p->a_row,
                            .a_step = p->a_column,
                            .b_row = panel_width(p->dtype),
                            .base_row = p->c_row,
                            .c_row = p->c_row};
    if (p->a_column == 1 || p->a_row != 1 || !room)
        return tile;
    for (int64_t l = 0; l < p->depth; l++)
        memcpy(room + l * TALL * size, a + l * p->a_column * size, (size_t)(rows * size));
    tile.a = room;
    tile.a_step = TALL;
    return tile;
}

/* Panels [begin, end). */
static void add_product(const product *p, int64_t begin, int64_t end, char *room) {
    int64_t size = (int64_t)td_dtype_size(p->dtype), width = panel_width(p->dtype);
    int64_t tile_rows = td_cpu->product->tile_rows;
    for (int64_t row = 0; row < p->rows && !td_interrupt_requested(); row += TALL) {
        int64_t rows = at_most(p->rows - row, TALL);
        int64_t first = p->triangle && row / width > begin ? row / width : begin;
        td_product_tile tile = left_side(p, row, rows, room);
        const char *a = tile.a;
        for (int64_t k = first; k < end; k++) {
            char *c = p->c + (k * p->c_panel + row * p->c_row) * size;
            tile.b = p->b + k * p->b_panel * size;
            tile.columns = at_most(p->columns - k * width, width);
            for (int64_t r = 0; r < rows; r += tile_rows) {
                tile.rows = at_most(rows - r, tile_rows);
                tile.a = a + r * tile.a_row * size;
                tile.c = c + r * p->c_row * size;
                tile.base = tile.c;
                td_cpu->product->tile[p->dtype](&tile);
            }
        }
    }
}

/* Where left sides are copied to, of which they can do without. */
static td_tensor *room_for_left(td_dtype dtype, bool wanted) {
    td_tensor *room = NULL;
    td_status status = wanted ? td_room(TALL * DEEP, td_dtype_size(dtype), &room) : TD_OK;
    (void)status;
    return room;
}

/* An interrupt leaves something undone, which whoever asked for a decomposition notices. */
static void side_by_side(int64_t n, int64_t cost, td_range_fn fn, void *ctx) {
    td_status status = td_parallel_for(n, cost, fn, ctx);
    (void)status;
}

/* ---- panels ---- */

/* Columns [first, first + count) of b, which has so many rows, to a panel's rows. */
static void pack(td_dtype dtype, const td_factor_lines *b, int64_t rows, int64_t first,
                 int64_t count, char *x) {
    int64_t size = (int64_t)td_dtype_size(dtype), width = panel_width(dtype);
    const char *from = b->p ? b->p + first * b->column * size : NULL;
    if (!from || count < width)
        memset(x, 0, (size_t)(rows * width * size));
    if (!from)
        for (int64_t c = 0; c < count; c++)
            td_store_double(dtype, x + ((first + c) * width + c) * size, 1);
    else if (b->row == 1)
        td_cpu_turn(x, width, from, b->column, rows, count, (size_t)size);
    else if (b->column == 1)
        for (int64_t r = 0; r < rows; r++)
            memcpy(x + r * width * size, from + r * b->row * size, (size_t)(count * size));
    else
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < count; c++)
                memcpy(x + (r * width + c) * size, from + (r * b->row + c * b->column) * size,
                       (size_t)size);
}

/* The other way round. */
static void unpack(const td_factor_system *s, int64_t first, int64_t count, const char *x) {
    int64_t size = (int64_t)td_dtype_size(s->dtype), width = panel_width(s->dtype);
    const td_factor_lines *out = &s->out;
    char *to = out->p + first * out->column * size;
    if (out->row == 1)
        td_cpu_turn(to, out->column, x, width, count, s->n, (size_t)size);
    else if (out->column == 1)
        for (int64_t r = 0; r < s->n; r++)
            memcpy(to + r * out->row * size, x + r * width * size, (size_t)(count * size));
    else
        for (int64_t r = 0; r < s->n; r++)
            for (int64_t c = 0; c < count; c++)
                memcpy(to + (r * out->row + c * out->column) * size, x + (r * width + c) * size,
                       (size_t)size);
}

/* Rows [first, first + count) of lines of `bytes`, `row` bytes apart, change places one after the
 * other. */
static void exchange(const int *places, int64_t first, int64_t count, char *x, int64_t row,
                     int64_t bytes) {
    enum { PIECE = 256 };
    char kept[PIECE];
    for (int64_t r = first; r < first + count; r++)
        for (int64_t at = 0; places[r] != r && at < bytes; at += PIECE) {
            size_t n = (size_t)at_most(bytes - at, PIECE);
            char *one = x + r * row + at, *other = x + places[r] * row + at;
            memcpy(kept, one, n);
            memcpy(one, other, n);
            memcpy(other, kept, n);
        }
}

/* ---- triangles ---- */

/* Of panels [begin, end) one block after the other, from the corner where a row has one element. */
static void solve_factor(const td_factor_system *s, const td_product_triangle *factor,
                         int64_t begin, int64_t end, char *room) {
    int64_t size = (int64_t)td_dtype_size(s->dtype), width = panel_width(s->dtype);
    int64_t blocks = (s->n + DEEP - 1) / DEEP;
    product p = {.dtype = s->dtype,
                 .columns = s->k,
                 .a_row = factor->a_row,
                 .a_column = factor->a_column,
                 .b_panel = s->n * width,
                 .c_panel = s->n * width,
                 .c_row = width};
    for (int64_t k = 0; k < blocks && !td_interrupt_requested(); k++) {
        int64_t first = (factor->upper ? blocks - 1 - k : k) * DEEP;
        int64_t from = factor->upper ? first + DEEP : 0, to = factor->upper ? s->n : first;
        td_product_triangle t = *factor;
        t.n = p.rows = at_most(s->n - first, DEEP);
        p.c = s->room + first * width * size;
        for (int64_t l = from; l < to; l += DEEP) {
            p.a = (const char *)factor->a + (first * factor->a_row + l * factor->a_column) * size;
            p.b = s->room + l * width * size;
            p.depth = at_most(to - l, DEEP);
            add_product(&p, begin, end, room);
        }
        t.a = (const char *)factor->a + first * (factor->a_row + factor->a_column) * size;
        for (int64_t panel = begin; panel < end; panel++) {
            t.x = p.c + panel * p.c_panel * size;
            t.columns = at_most(s->k - panel * width, width);
            td_cpu->product->solve[s->dtype](&t);
        }
    }
}

static void solve_panels(void *ctx, int64_t begin, int64_t end, int worker) {
    const td_factor_system *s = ctx;
    int64_t size = (int64_t)td_dtype_size(s->dtype), width = panel_width(s->dtype);
    bool copies = s->n > DEEP && end - begin > FEW && s->factors[0].a_column != 1;
    td_tensor *room = room_for_left(s->dtype, copies);
    (void)worker;
    for (int64_t p = begin; p < end; p++) {
        char *x = s->room + p * width * s->n * size;
        pack(s->dtype, &s->b, s->n, p * width, at_most(s->k - p * width, width), x);
        if (s->places)
            exchange(s->places, 0, s->n, x, width * size, width * size);
    }
    for (int f = 0; f < s->count; f++)
        solve_factor(s, &s->factors[f], begin, end, room ? room->data : NULL);
    for (int64_t p = begin; p < end; p++) {
        char *x = s->room + p * width * s->n * size;
        if (s->count % 2)
            td_cpu->factor->negate[s->dtype](x, width, x, width, s->n, width);
        unpack(s, p * width, at_most(s->k - p * width, width), x);
    }
    td_release(room);
}

size_t td_factor_system_room(td_dtype dtype, int64_t n, int64_t k) {
    return (size_t)(n * panels_of(dtype, k) * td_cpu->product->tile_bytes);
}

void td_factor_solve(td_factor_system *s) {
    int64_t width = panel_width(s->dtype);
    if (s->n > 0 && s->k > 0)
        side_by_side(panels_of(s->dtype, s->k), s->n * s->n * width / PER_COST, solve_panels, s);
}

/* ---- decompositions ---- */

typedef struct matrix {
    td_dtype dtype;
    int64_t n, size;
    char *a;
    int *places; /* NULL: Cholesky's */
    char *x, *leaf;
    int without; /* the first pivot that isn't there */
} matrix;

/* The block of `count` rows from `first` on, whose left part is decomposed: what that leaves of
 * columns [column, end). */
typedef struct rest {
    const matrix *m;
    int64_t first, count, column, end;
} rest;

static char *element(const matrix *m, int64_t row, int64_t column) {
    return m->a + (row * m->n + column) * m->size;
}

static int64_t turned_row(const matrix *m) {
    return m->places ? m->n : 1;
}
static int64_t turned_column(const matrix *m) {
    return m->places ? 1 : m->n;
}

/* Rows of the block: x is minus what they become. */
static void solve_block(void *ctx, int64_t begin, int64_t end, int worker) {
    const rest *r = ctx;
    const matrix *m = r->m;
    int64_t width = panel_width(m->dtype);
    td_product_triangle t = {.a = element(m, r->first, r->first),
                             .n = r->count,
                             .a_row = turned_row(m),
                             .a_column = turned_column(m),
                             .unit = m->places};
    td_factor_lines block = {element(m, r->first, r->column), m->n, 1};
    (void)worker;
    for (int64_t p = begin; p < end && !td_interrupt_requested(); p++) {
        int64_t column = r->column + p * width;
        t.columns = at_most(r->end - column, width);
        t.x = m->x + p * r->count * width * m->size;
        if (m->places)
            exchange(m->places, r->first, r->count, element(m, 0, column), m->n * m->size,
                     t.columns * m->size);
        pack(m->dtype, &block, r->count, p * width, t.columns, t.x);
        td_cpu->product->solve[m->dtype](&t);
        td_cpu->factor->negate[m->dtype](element(m, r->first, column), m->n, t.x, width, r->count,
                                         t.columns);
    }
}

/* Rows below the block; of Cholesky's its own columns to the right stand for those on the left. */
static void multiply_rest(void *ctx, int64_t begin, int64_t end, int worker) {
    const rest *r = ctx;
    const matrix *m = r->m;
    int64_t width = panel_width(m->dtype), below = r->first + r->count;
    td_tensor *room = room_for_left(m->dtype, !m->places && end - begin > FEW);
    product p = {.dtype = m->dtype,
                 .a = m->places ? element(m, below, r->first) : element(m, r->first, below),
                 .a_row = turned_row(m),
                 .a_column = turned_column(m),
                 .b = m->x,
                 .c = element(m, below, r->column),
                 .rows = m->places ? m->n - below : r->end - below,
                 .columns = r->end - r->column,
                 .depth = r->count,
                 .b_panel = r->count * width,
                 .c_panel = width,
                 .c_row = m->n,
                 .triangle = !m->places};
    (void)worker;
    add_product(&p, begin, end, room ? room->data : NULL);
    td_release(room);
}

static void do_rest(const matrix *m, int64_t first, int64_t count, int64_t column, int64_t end) {
    rest r = {m, first, count, column, end};
    int64_t panels = panels_of(m->dtype, end - column), width = panel_width(m->dtype);
    if (panels <= 0)
        return;
    side_by_side(panels, count * count * width / PER_COST, solve_block, &r);
    side_by_side(panels, (m->n - first - count) * count * width / PER_COST, multiply_rest, &r);
}

static int64_t lines_apart(int64_t n) {
    return ((n + 2 * LINE - 1) / LINE | 1) * LINE;
}

/* A few columns, which are turned so that each lies side by side. */
static int do_leaf(const matrix *m, int64_t first, int64_t count) {
    char *a = element(m, first, first);
    int64_t rows = m->n - first, apart = lines_apart(rows);
    int without;
    if (!m->places)
        return td_cpu->factor->cholesky[m->dtype](a, count, m->n);
    for (int64_t c = 0; c < count; c++)
        memset(m->leaf + (c * apart + rows) * m->size, 0, (size_t)(LINE * m->size));
    td_cpu_turn(m->leaf, apart, a, m->n, count, rows, (size_t)m->size);
    without = td_cpu->factor->lu[m->dtype](m->leaf, rows, count, apart, m->places + first);
    td_cpu_turn(a, m->n, m->leaf, apart, rows, count, (size_t)m->size);
    for (int64_t k = first; k < first + count; k++)
        m->places[k] += (int)first;
    return without;
}

/* Columns [first, first + count), of which those on the left are done: by halves. */
static void do_columns(matrix *m, int64_t first, int64_t count) {
    int64_t half = (count / 2 + LEAF - 1) / LEAF * LEAF;
    if (count <= LEAF) {
        int without = do_leaf(m, first, count);
        if (without && !m->without)
            m->without = (int)first + without;
        return;
    }
    do_columns(m, first, half);
    if (m->without && !m->places)
        return;
    do_rest(m, first, half, first + half, first + count);
    do_columns(m, first + half, count - half);
    if (m->places)
        exchange(m->places, first + half, count - half, element(m, 0, first), m->n * m->size,
                 half * m->size);
}

/* Block after block; Cholesky's ends where a pivot isn't positive. */
static int decompose(matrix *m) {
    int64_t row = m->n * m->size;
    for (int64_t first = 0; first < m->n && !td_interrupt_requested(); first += DEEP) {
        int64_t count = at_most(m->n - first, DEEP);
        do_columns(m, first, count);
        if (m->without && !m->places)
            break;
        if (m->places)
            exchange(m->places, first, count, m->a, row, first * m->size);
        do_rest(m, first, count, first + count, m->n);
    }
    return m->without;
}

size_t td_factor_room(td_dtype dtype, int64_t n) {
    int64_t lines = lines_apart(n) * LEAF * (int64_t)td_dtype_size(dtype);
    return (size_t)lines + td_factor_system_room(dtype, at_most(n, DEEP), n);
}

int td_factor_lu(td_dtype dtype, int64_t n, void *a, int *places, char *room) {
    matrix m = {.dtype = dtype, .n = n, .a = a, .places = places, .leaf = room};
    m.size = (int64_t)td_dtype_size(dtype);
    m.x = room + lines_apart(n) * LEAF * m.size;
    for (int64_t k = 0; k < n; k++) /* for those that an interrupt leaves out */
        places[k] = (int)k;
    return decompose(&m);
}

int td_factor_cholesky(td_dtype dtype, int64_t n, void *a, char *room) {
    matrix m = {.dtype = dtype, .n = n, .a = a, .x = room};
    m.size = (int64_t)td_dtype_size(dtype);
    return decompose(&m);
}

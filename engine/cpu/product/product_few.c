/* product_few.c: products of few rows with a large right side, such as a layer's weight. Tiles of
 * the result (product_tile_loops.h) read the right side packed, where somebody keeps it so; as it
 * lies, where rows of it lie side by side; or packed a panel at a time. What an element of the
 * result gives depends on its row, its column and the depth alone. Knows nothing of who keeps what.
 */
#include "engine/core/interrupt.h"
#include "engine/core/tensor.h"
#include "engine/cpu/isa/isa.h"
#include "engine/cpu/product/library_parts.h"
#include "engine/cpu/product/product.h"
#include "engine/cpu/reduce/dim_lines.h"

enum {
    DEEP = 512,   /* terms that a tile takes in at a time */
    READ = 4,     /* multiplications in the time of reading an element */
    AGAIN = 4,    /* tiles below one another: more read a right side several times, */
    CLASH = 4096, /* whose rows, so many bytes apart, share a few places of a cache: packed */
    LINE = 64     /* bytes of a line of the cache */
};

typedef struct job {
    td_dtype dtype;
    const td_product_block *p;
    const char *packed;
    int64_t size, width, rows; /* of an element; of a tile, which is no taller than need be */
    int64_t panels, each;      /* of all, and of a part, */
    int64_t across, tall;      /* of which so many lie side by side, each of so many rows */
    int64_t lines;             /* of packed terms that lie behind: a tile's share of asking */
    bool in_place;             /* may tiles read the right side as it lies? */
} job;

static int64_t at_most(int64_t left, int64_t each) {
    return left < each ? left : each;
}

/* Terms of a panel: where they lie, and how far rows are apart. */
static const char *right_side(const job *j, int64_t panel, int64_t from, int64_t depth, char *room,
                              int64_t *row) {
    const td_product_block *p = j->p;
    int64_t column = panel * j->width, columns = at_most(p->columns - column, j->width);
    *row = j->width;
    if (j->packed)
        return j->packed + (panel * p->depth + from) * j->width * j->size;
    if (j->in_place && columns == j->width) {
        *row = p->b_row;
        return p->b + (from * p->b_row + column) * j->size;
    }
    td_product_pack(j->dtype, p, from, depth, column, columns, room);
    return room;
}

/* The rows [begin, end) of a panel's columns. */
static void multiply_panel(const job *j, int64_t panel, int64_t begin, int64_t end, char *room) {
    const td_product_block *p = j->p;
    int64_t column = panel * j->width;
    td_product_tile tile = {.columns = at_most(p->columns - column, j->width),
                            .a_row = p->a_row,
                            .a_step = p->a_column,
                            .c_row = p->c_row,
                            .lines = j->lines};
    for (int64_t l = 0; l < p->depth && !td_interrupt_requested(); l += DEEP) {
        const char *bias = p->bias ? p->bias + column * j->size : NULL;
        tile.depth = at_most(p->depth - l, DEEP);
        tile.b = right_side(j, panel, l, tile.depth, room, &tile.b_row);
        tile.base_row = l ? p->c_row : 0;
        const char *ahead = (const char *)tile.b + tile.depth * j->width * j->size;
        int64_t asks = (tile.depth + TD_TILE_ASKS - 1) / TD_TILE_ASKS;
        for (int64_t r = begin; r < end; r += j->rows) {
            char *c = p->c + (r * p->c_row + column) * j->size;
            tile.rows = at_most(end - r, j->rows);
            tile.a = p->a + (r * p->a_row + l * p->a_column) * j->size;
            tile.c = c;
            tile.base = l ? c : bias;
            tile.start = l || !p->row_bias ? NULL : p->row_bias + r * j->size;
            tile.epilogue = l + tile.depth == p->depth ? p->epilogue : NULL;
            tile.added = p->added ? p->added + (c - p->c) : NULL;
            tile.ahead = ahead;
            td_cpu->product->tile[j->dtype](&tile);
            ahead += asks * tile.lines * LINE;
        }
    }
}

static td_status multiply_part(const void *ctx, int64_t part) {
    const job *j = ctx;
    int64_t begin = part % j->across * j->each, end = begin + at_most(j->panels - begin, j->each);
    int64_t row = part / j->across * j->tall, last = row + at_most(j->p->rows - row, j->tall);
    unsigned mark = td_interrupt_mark();
    td_tensor *room = NULL;
    td_status status = j->packed ? TD_OK : td_room(DEEP * j->width, (size_t)j->size, &room);
    for (int64_t k = begin; k < end && status == TD_OK && !td_interrupt_requested(); k++)
        multiply_panel(j, k, row, last, room ? room->data : NULL);
    td_release(room);
    return status == TD_OK && td_interrupt_since(mark) ? td_interrupted() : status;
}

bool td_product_has_few(td_dtype dtype, const td_product_block *p) {
    return (dtype == TD_F32 || dtype == TD_F64) && td_cpu->product->tile[dtype] &&
           (p->a_column == 1 || p->a_row == 1) && (p->b_column == 1 || p->b_row == 1) &&
           p->c_column == 1;
}

td_status td_product_by_few(td_dtype dtype, const td_product_block *p, const char *packed) {
    job j = {.dtype = dtype, .p = p, .packed = packed, .size = (int64_t)td_dtype_size(dtype)};
    int64_t tiles = (p->rows + td_cpu->product->tile_rows - 1) / td_cpu->product->tile_rows;
    double work = (double)(p->rows + READ) * (double)p->columns * (double)p->depth;
    j.in_place = p->b_column == 1 && (tiles <= AGAIN || p->b_row * j.size % CLASH);
    j.width = td_cpu->product->tile_bytes / j.size;
    j.rows = (p->rows + tiles - 1) / tiles;
    j.panels = (p->columns + j.width - 1) / j.width;
    int64_t parts = td_parts_of(work);
    j.each = (j.panels + parts - 1) / parts;
    j.across = (j.panels + j.each - 1) / j.each;
    int64_t down = at_most((parts + j.across - 1) / j.across, tiles);
    int64_t tall = (tiles + down - 1) / down;
    j.tall = tall * j.rows;
    j.lines = packed ? (TD_TILE_ASKS * j.width * j.size / LINE + tall - 1) / tall : 0;
    return td_run_parts((p->rows + j.tall - 1) / j.tall * j.across, TD_GRAIN, multiply_part, &j);
}

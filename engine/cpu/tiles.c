/* tiles.c: products by OpenBLAS, tile by tile. Left to itself the library cuts a product by the
 * number of threads, and the edges of its cuts go through other kernels, which add in another
 * order. Knows nothing of tensors. */
#include "engine/cpu/tiles.h"

#include "engine/core/threads.h"

enum { UNIT = 16, LEAST = 32, MOST = 512, PARTS = 8 };

typedef struct job {
    const td_gemm *g;
    int64_t rows, columns, across, tiles; /* of a tile; tiles side by side, and of one matrix */
} job;

/* Length of the parts of a dim: PARTS of them, within bounds that keep packing cheap. */
static int64_t part(int64_t n) {
    int64_t len = (n + PARTS * UNIT - 1) / (PARTS * UNIT) * UNIT;
    return len < LEAST ? LEAST : len > MOST ? MOST : len;
}

static void run_tile(void *ctx) {
    const td_gemm *g = ctx;
    g->gemm(g->ta, g->tb, g->m, g->n, g->k, g->a, g->lda, g->b, g->ldb, g->beta, g->c, g->ldc);
}

static void run_tiles(void *ctx, int64_t begin, int64_t end, int worker) {
    const job *j = ctx;
    const td_gemm *g = j->g;
    (void)worker;
    for (int64_t at = begin; at < end; at++) {
        int64_t batch = at / j->tiles, row = at % j->tiles / j->across * j->rows;
        int64_t column = at % j->across * j->columns;
        td_gemm tile = *g;
        tile.m = g->m - row < j->rows ? g->m - row : j->rows;
        tile.n = g->n - column < j->columns ? g->n - column : j->columns;
        tile.a += (size_t)(batch * g->a_stride + (g->ta ? row : row * g->lda)) * g->size;
        tile.b += (size_t)(batch * g->b_stride + (g->tb ? column * g->ldb : column)) * g->size;
        tile.c += (size_t)(batch * g->c_stride + row * g->ldc + column) * g->size;
        td_run_alone(run_tile, &tile);
    }
}

td_status td_gemm_tiles(const td_gemm *g) {
    job j = {.g = g, .rows = part(g->m), .columns = part(g->n)};
    j.across = (g->n + j.columns - 1) / j.columns;
    j.tiles = (g->m + j.rows - 1) / j.rows * j.across;
    double cost = (double)j.rows * (double)j.columns * (double)g->k / 8;
    return td_parallel_for(g->batch * j.tiles, cost < TD_GRAIN ? (int64_t)cost : TD_GRAIN,
                           run_tiles, &j);
}

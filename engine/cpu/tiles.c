/* tiles.c: work for libraries, in parts that follow from its size alone where that is asked for.
 * Left to themselves they cut it by the number of threads, and what lies at the edges of their
 * cuts, or is added up across them, is added in another order. Knows nothing of tensors. */
#include "engine/cpu/tiles.h"

#include "engine/core/interrupt.h"
#include "engine/core/modes.h"
#include "engine/core/team.h"
#include "engine/core/threads.h"

#include <stdatomic.h>

/* Multiplications that are worth a tile, since each tile is packed anew; tiles of a product, and
 * their least length; parts of a batch. */
#define TILE_WORK 16e6
enum { UNIT = 16, LEAST = 64, TILES = 16, BATCHES = 16 };

/* ---- parts ---- */

typedef struct part_job {
    td_part_fn fn;
    const void *ctx;
    atomic_int status; /* of the first part that failed */
} part_job;

typedef struct one_part {
    part_job *job;
    int64_t part;
} one_part;

static void run_part(void *ctx) {
    const one_part *one = ctx;
    int none = TD_OK;
    td_status status = one->job->fn(one->job->ctx, one->part);
    if (status)
        atomic_compare_exchange_strong(&one->job->status, &none, (int)status);
}

static void run_parts(void *ctx, int64_t begin, int64_t end, int worker) {
    part_job *j = ctx;
    (void)worker;
    for (int64_t k = begin; k < end && atomic_load(&j->status) == TD_OK; k++)
        td_run_alone(run_part, &(one_part){j, k});
}

td_status td_run_parts(int64_t parts, int64_t cost, td_part_fn fn, const void *ctx) {
    part_job j = {.fn = fn, .ctx = ctx};
    td_status status = td_parallel_for(parts, cost, run_parts, &j);
    td_status failed = (td_status)atomic_load(&j.status);
    if (failed == TD_ENOMEM) /* the message may be another thread's */
        return td_fail(TD_ENOMEM, "out of memory");
    if (failed == TD_EINTR)
        return td_interrupted();
    return failed ? td_fail(failed, "a library failed in a part of the work") : status;
}

/* ---- tiles ---- */

typedef struct tile_job {
    td_tile_fn fn;
    const void *ctx;
    int64_t batch, m, n;
    td_tile whole;                /* the size of all tiles but the last ones */
    int64_t groups, down, across; /* how many of them */
} tile_job;

static int64_t at_most(int64_t len, int64_t left) {
    return len < left ? len : left;
}

static td_status run_tile(const void *ctx, int64_t part) {
    const tile_job *j = ctx;
    td_tile t = {.batch = part / (j->down * j->across) * j->whole.batches,
                 .row = part / j->across % j->down * j->whole.rows,
                 .column = part % j->across * j->whole.columns};
    t.batches = at_most(j->whole.batches, j->batch - t.batch);
    t.rows = at_most(j->whole.rows, j->m - t.row);
    t.columns = at_most(j->whole.columns, j->n - t.column);
    return j->fn(j->ctx, &t);
}

static int64_t part_of(int64_t n, int64_t parts) {
    return parts == 1 ? n : (n + parts * UNIT - 1) / (parts * UNIT) * UNIT;
}

/* Cut one product into tiles that are nearly square: halve the longer side while they are worth it.
 */
static void cut_product(tile_job *j, double work) {
    int64_t down = 1, across = 1;
    while (2 * down * across <= TILES && work >= TILE_WORK * (double)(2 * down * across)) {
        int64_t *longer = j->m / down >= j->n / across ? &down : &across;
        if ((longer == &down ? j->m / down : j->n / across) < 2 * LEAST)
            break;
        *longer *= 2;
    }
    j->whole = (td_tile){.batches = 1, .rows = part_of(j->m, down)};
    j->whole.columns = part_of(j->n, across);
}

td_status td_run_tiles(int64_t batch, int64_t m, int64_t n, int64_t k, td_tile_fn fn,
                       const void *ctx) {
    if (!td_deterministic())
        return fn(ctx, &(td_tile){.batches = batch, .rows = m, .columns = n});
    double work = (double)m * (double)n * (double)k, all = work * (double)batch;
    tile_job j = {.fn = fn, .ctx = ctx, .batch = batch, .m = m, .n = n};
    int64_t parts = all < TILE_WORK * BATCHES ? (int64_t)(all / TILE_WORK * 4) + 1 : BATCHES;
    parts = parts < BATCHES ? parts : BATCHES;
    if (batch < BATCHES && work >= TILE_WORK)
        cut_product(&j, work);
    else
        j.whole = (td_tile){.batches = (batch + parts - 1) / parts, .rows = m, .columns = n};
    j.groups = (batch + j.whole.batches - 1) / j.whole.batches;
    j.down = (m + j.whole.rows - 1) / j.whole.rows;
    j.across = (n + j.whole.columns - 1) / j.whole.columns;
    return td_run_parts(j.groups * j.down * j.across, TD_GRAIN, run_tile, &j);
}

/* ---- float64 ---- */

typedef struct dgemm {
    bool ta, tb;
    int64_t m, n, k;
    const double *a, *b;
    double beta, *c;
} dgemm;

static td_status dgemm_tile(const void *ctx, const td_tile *t) {
    const dgemm *g = ctx;
    td_blas_dgemm(g->ta, g->tb, t->rows, t->columns, g->k, g->a + (g->ta ? t->row : t->row * g->k),
                  g->ta ? g->m : g->k, g->b + (g->tb ? t->column * g->k : t->column),
                  g->tb ? g->k : g->n, g->beta, g->c + t->row * g->n + t->column, g->n);
    return TD_OK;
}

td_status td_dgemm_tiles(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const double *a,
                         const double *b, double beta, double *c) {
    const dgemm g = {ta, tb, m, n, k, a, b, beta, c};
    return td_run_tiles(1, m, n, k, dgemm_tile, &g);
}

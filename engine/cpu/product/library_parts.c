/* library_parts.c: work for libraries, in parts of which each takes one thread of our own pool: a
 * library's team besides would sleep while ours works, and waking it costs more than a small
 * product. The parts follow from the sizes and the number of threads, or from the sizes alone where
 * results must not depend on it. Knows nothing of tensors. */
#include "engine/cpu/product/library_parts.h"

#include "engine/core/interrupt.h"
#include "engine/core/modes.h"
#include "engine/core/team.h"
#include "engine/core/threads.h"
#include "engine/cpu/isa/isa.h"
#include "engine/cpu/limits.h"
#include "engine/cpu/product/blas.h"

#include <stdatomic.h>

/* Multiplications that are worth a thread (two threads of a Zen 3, from 5e5: 100^3 24 us on one, 18
 * on both; 16 x 256 x 256 25 and 19); that take as long as reading an element; that are worth
 * a tile of a cut by sizes alone, which is finer than need be; the least length of a tile, and its
 * unit; the most parts of such a cut. */
#define THREAD_WORK                                                                                \
    (td_cpu->product->libraries_at_best ? TD_LIMIT(PRODUCT_THREAD) : TD_LIMIT(PRODUCT_THREAD_ALONE))
#define READ_WORK 4
#define TILE_WORK 16e6
enum { UNIT = 16, LEAST = 64, MOST = 16 };

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

/* Cut one product into so many tiles, as nearly square as can be; into fewer where they would be
 * short. */
static void cut_product(tile_job *j, int64_t tiles) {
    double least = 0;
    j->whole = (td_tile){.batches = 1, .rows = j->m, .columns = j->n};
    for (; tiles > 1 && least == 0; tiles--)
        for (int64_t down = 1; down <= tiles; down++) {
            int64_t across = tiles / down, rows = j->m / down, columns = j->n / across;
            double edge = (double)rows + (double)columns;
            if (tiles % down || (down > 1 && rows < LEAST) || (across > 1 && columns < LEAST) ||
                (least > 0 && edge > least))
                continue;
            least = edge;
            j->whole.rows = part_of(j->m, down);
            j->whole.columns = part_of(j->n, across);
        }
}

int64_t td_parts_of(double work) {
    bool fixed = td_deterministic();
    int64_t most = fixed ? MOST : td_threads_at_most();
    double parts = fixed ? 1 + work / TILE_WORK * 4 : work / THREAD_WORK;
    return parts < 1 ? 1 : parts < (double)most ? (int64_t)parts : most;
}

/* Tiles of each of the products of a batch that has fewer of them than parts. */
static int64_t tiles_of(int64_t batch, double work, int64_t parts) {
    double worth = work / TILE_WORK;
    int64_t tiles = 1;
    if (!td_deterministic())
        return (parts + batch - 1) / batch;
    while (2 * tiles <= MOST && worth >= (double)(2 * tiles))
        tiles *= 2;
    return tiles;
}

td_status td_run_tiles(int64_t batch, int64_t m, int64_t n, int64_t k, td_tile_fn fn,
                       const void *ctx) {
    double work = (double)m * (double)n * (double)k;
    double read = (double)k * ((double)m + (double)n) * READ_WORK;
    int64_t parts = td_parts_of((work + read) * (double)batch);
    tile_job j = {.fn = fn, .ctx = ctx, .batch = batch, .m = m, .n = n};
    j.whole = (td_tile){.batches = (batch + parts - 1) / parts, .rows = m, .columns = n};
    if (batch < parts)
        cut_product(&j, tiles_of(batch, work, parts));
    j.groups = (batch + j.whole.batches - 1) / j.whole.batches;
    j.down = (m + j.whole.rows - 1) / j.whole.rows;
    j.across = (n + j.whole.columns - 1) / j.whole.columns;
    /* A library's team may know how to share out what is long inside alone (float64, one thread and
     * two of a Zen 4: 20 x 20000 x 20 takes 644 and 838 us, 4 x 100000 x 4 396 and 674, 60 x 20000
     * x 60 4.6 and 3.2 ms). */
    bool inside = m >= TD_LIMIT(PRODUCT_TEAM) && n >= TD_LIMIT(PRODUCT_TEAM);
    if (parts > 1 && j.groups * j.down * j.across == 1 && inside && !td_deterministic())
        return fn(ctx, &j.whole);
    return td_run_parts(j.groups * j.down * j.across, TD_GRAIN, run_tile, &j);
}

/* ---- float64 ---- */

static td_status dgemm_tile(const void *ctx, const td_tile *t) {
    td_gemm g = *(const td_gemm *)ctx;
    int64_t size = sizeof(double);
    g.m = t->rows;
    g.n = t->columns;
    g.a += (g.ta ? t->row : t->row * g.lda) * size;
    g.b += (g.tb ? t->column * g.ldb : t->column) * size;
    g.c += (t->row * g.ldc + t->column) * size;
    return td_blas_dgemm(&g);
}

td_status td_dgemm_tiles(const td_gemm *g) {
    return td_run_tiles(1, g->m, g->n, g->k, dgemm_tile, g);
}

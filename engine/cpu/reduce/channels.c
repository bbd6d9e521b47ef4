/* channels.c: sums and affine maps by channel on the CPU, for images whose planes lie one after the
 * other and for those whose channels lie closest together. Knows nothing of what they are for. */
#include "engine/core/threads.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/isa/isa.h"
#include "engine/cpu/reduce/channel_rows.h"
#include "engine/ops/make/copy.h"

#include <math.h>
#include <string.h>

enum { ROWS = 1024 }; /* of channels side by side, summed as one item */

typedef struct job {
    const td_norm_functions *fns;
    td_dtype wide;
    int64_t size, wide_size;  /* bytes of an element */
    int64_t n, c, inner;      /* (n, c, inner), or (n, c) with channels side by side */
    int64_t blocks, strips;   /* parts that these are cut into */
    td_channel_rows side;     /* of channels side by side */
    const char *x, *g, *k[4]; /* k[1], k[2]: mean and rstd where sums are taken */
    char *out;
    double *sums; /* two for each channel, of each block */
} job;

static td_status begin_job(job *j, const td_tensor *x, bool *last) {
    td_dtype dtype = (td_dtype)x->dtype;
    *j = (job){.fns = td_cpu->norm->of[dtype],
               .wide = td_dtype_wide(dtype),
               .size = (int64_t)td_dtype_size(dtype),
               .n = x->sizes[0],
               .c = x->sizes[1],
               .inner = 1};
    for (int d = 2; d < x->ndim; d++)
        j->inner *= x->sizes[d];
    j->wide_size = (int64_t)td_dtype_size(j->wide);
    j->side = td_channel_rows_of(j->fns, dtype, j->c);
    *last = *last || j->inner == 1;
    if (*last) {
        j->n *= j->inner;
        j->inner = 1;
        j->blocks = (j->n + ROWS - 1) / ROWS;
        j->strips = (j->c + TD_NORM_WIDTH - 1) / TD_NORM_WIDTH;
    }
    return j->fns ? TD_OK : td_fail(TD_EDTYPE, "no kernel for %s", td_dtype_name(dtype));
}

/* ---- sums ---- */

static void sum_planes(void *ctx, int64_t begin, int64_t end, int worker) {
    const job *j = ctx;
    (void)worker;
    for (int64_t c = begin; c < end; c++) {
        double *sums = j->sums + 2 * c, own[2];
        double mean = j->g ? td_load_double(j->wide, j->k[1] + c * j->wide_size) : 0;
        for (int64_t i = 0; i < j->n; i++) {
            int64_t at = (i * j->c + c) * j->inner * j->size;
            if (j->g) {
                j->fns->sums(j->g + at, j->x + at, NULL, j->inner, mean, own);
                sums[0] += own[0];
                sums[1] += own[1];
            } else {
                j->fns->moments(j->x + at, j->inner, own);
                td_join_moments(sums, own, (double)(i * j->inner), (double)j->inner);
            }
        }
    }
}

static void sum_strips(void *ctx, int64_t begin, int64_t end, int worker) {
    const job *j = ctx;
    (void)worker;
    for (int64_t item = begin; item < end; item++) {
        int64_t block = item / j->strips, column = item % j->strips * TD_NORM_WIDTH;
        int64_t width = j->c - column < TD_NORM_WIDTH ? j->c - column : TD_NORM_WIDTH;
        int64_t rows = j->n - block * ROWS < ROWS ? j->n - block * ROWS : ROWS;
        int64_t at = (block * ROWS * j->c + column) * j->size;
        double *sums = j->sums + 2 * (block * j->c + column);
        if (j->g)
            td_channel_rows_sums(&j->side, j->g + at, j->x + at, rows, width,
                                 j->k[1] + column * j->wide_size, sums);
        else
            td_channel_rows_moments(&j->side, j->x + at, rows, width, sums);
    }
}

/* The blocks' sums into the first block's. */
static void join_blocks(const job *j) {
    for (int64_t block = 1; block < j->blocks; block++)
        for (int64_t c = 0; c < j->c; c++) {
            const double *more = j->sums + 2 * (block * j->c + c);
            double *all = j->sums + 2 * c;
            int64_t rows = j->n - block * ROWS < ROWS ? j->n - block * ROWS : ROWS;
            if (j->g) {
                all[0] += more[0];
                all[1] += more[1];
            } else {
                td_join_moments(all, more, (double)(block * ROWS), (double)rows);
            }
        }
}

td_status td_cpu_channel_sums(const td_channel_sums_plan *plan) {
    td_tensor *x = NULL, *g = NULL, *mean = NULL, *rstd = NULL, *sums = NULL;
    td_dtype dtype = (td_dtype)plan->x->dtype;
    bool last = plan->last;
    job j;
    td_status status = TD_OK;
    TD_TRY(begin_job(&j, plan->x, &last));
    TD_TRY(td_contiguous_channels(plan->x, plan->last, dtype, &x));
    TD_TRY(td_contiguous_channels(plan->g, plan->last, dtype, &g));
    TD_TRY(td_contiguous_or_none(plan->mean, j.wide, &mean));
    TD_TRY(td_contiguous_or_none(plan->rstd, j.wide, &rstd));
    int64_t sizes[3] = {j.blocks > 1 ? j.blocks : 1, j.c, 2};
    double count = (double)j.n * (double)j.inner;
    TD_TRY(td_tensor_empty(TD_F64, TD_DEVICE_CPU, 3, sizes, &sums));
    memset(sums->data, 0, (size_t)sums->numel * sizeof(double));
    j.sums = sums->data;
    j.x = x->data;
    j.g = g ? g->data : NULL;
    j.k[1] = mean ? mean->data : NULL;
    j.k[2] = rstd ? rstd->data : NULL;
    if (last)
        TD_TRY(td_parallel_for(j.blocks * j.strips, 2 * ROWS * TD_NORM_WIDTH, sum_strips, &j));
    else
        TD_TRY(td_parallel_for(j.c, 2 * j.n * j.inner, sum_planes, &j));
    join_blocks(&j);
    for (int64_t c = 0; c < j.c; c++) {
        const int64_t at = c * j.wide_size;
        double second = j.g ? j.sums[2 * c + 1] * td_load_double(j.wide, j.k[2] + at)
                            : j.sums[2 * c + 1] / count;
        td_store_double(j.wide, (char *)plan->first->data + at, j.sums[2 * c]);
        td_store_double(j.wide, (char *)plan->second->data + at, second);
        if (plan->third)
            td_store_double(j.wide, (char *)plan->third->data + at, 1 / sqrt(second + plan->eps));
    }
done:
    td_release(x);
    td_release(g);
    td_release(mean);
    td_release(rstd);
    td_release(sums);
    return status;
}

/* ---- maps ---- */

static void map_planes(void *ctx, int64_t begin, int64_t end, int worker) {
    const job *j = ctx;
    (void)worker;
    for (int64_t plane = begin; plane < end; plane++) {
        int64_t at = plane * j->inner * j->size, c = plane % j->c;
        double k[4];
        for (int i = 0; i < 4; i++)
            k[i] = j->k[i] ? td_load_double(j->wide, j->k[i] + c * j->wide_size) : 0;
        j->fns->back(j->out + at, j->g ? j->g + at : NULL, j->x ? j->x + at : NULL, NULL, j->inner,
                     k);
    }
}

static void map_rows(void *ctx, int64_t begin, int64_t end, int worker) {
    const job *j = ctx;
    (void)worker;
    int64_t at = begin * j->c * j->size;
    td_channel_rows_map(&j->side, j->out + at, j->g ? j->g + at : NULL, j->x ? j->x + at : NULL,
                        end - begin);
}

/* What takes the place of a factor in two parts. */
static td_status join_factors(const job *j, const char *first, const char *second,
                              td_tensor **out) {
    td_status status = td_tensor_empty(j->wide, TD_DEVICE_CPU, 1, &j->c, out);
    for (int64_t c = 0; c < j->c && status == TD_OK; c++) {
        const int64_t at = c * j->wide_size;
        td_store_double(j->wide, (char *)(*out)->data + at,
                        td_load_double(j->wide, first + at) * td_load_double(j->wide, second + at));
    }
    return status;
}

td_status td_cpu_channel_map(const td_channel_map_plan *plan) {
    td_tensor *own[8] = {NULL}, *slope = NULL, *room = NULL;
    td_dtype dtype = (td_dtype)plan->out->dtype;
    bool last = plan->last;
    job j;
    td_status status = TD_OK;
    TD_TRY(begin_job(&j, plan->out, &last));
    TD_TRY(td_contiguous_channels(plan->out, plan->last, dtype, &own[0]));
    TD_TRY(td_contiguous_channels(plan->g, plan->last, dtype, &own[1]));
    TD_TRY(td_contiguous_channels(plan->x, plan->last, dtype, &own[2]));
    for (int i = 0; i < 5; i++)
        TD_TRY(td_contiguous_or_none(plan->k[i], j.wide, &own[3 + i]));
    for (int i = 0; i < 4; i++)
        j.k[i] = own[3 + i] ? own[3 + i]->data : NULL;
    if (own[7]) {
        TD_TRY(join_factors(&j, j.k[2], own[7]->data, &slope));
        j.k[2] = slope->data;
    }
    j.out = own[0]->data;
    j.g = own[1] ? own[1]->data : NULL;
    j.x = own[2] ? own[2]->data : NULL;
    if (last) {
        int64_t bytes = (int64_t)td_channel_rows_room(&j.side);
        TD_TRY(td_tensor_empty(TD_U8, TD_DEVICE_CPU, 1, &bytes, &room));
        td_channel_rows_take(&j.side, (const void *const *)j.k, room->data);
        TD_TRY(td_parallel_for(j.n, 4 * j.c, map_rows, &j));
    } else
        TD_TRY(td_parallel_for(j.n * j.c, 4 * j.inner + 16, map_planes, &j));
done:
    td_release(slope);
    td_release(room);
    for (int i = 0; i < 8; i++)
        td_release(own[i]);
    return status;
}

/* norm_channels.c: group normalisation of channels-last tensors as they lie: moments are summed by
 * channel, joined for each group, and each channel is mapped by its group's factors. */
#include "engine/cpu/reduce/norm_channels.h"

#include "engine/core/format.h"
#include "engine/core/interrupt.h"
#include "engine/core/memory.h"
#include "engine/core/threads.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/isa/isa.h"
#include "engine/cpu/reduce/channel_rows.h"
#include "engine/ops/make/copy.h"

#include <math.h>
#include <stdatomic.h>

enum { ROWS = 1024 }; /* of a sample, summed as one item */

typedef struct job {
    td_norm_shape shape;
    td_channel_rows side;
    td_dtype wide;
    int64_t c, rows;        /* of a sample, which is (rows, c) */
    int64_t blocks, strips; /* parts that its sums are cut into */
    const char *x, *weight, *bias;
    char *out, *mean, *rstd, *room;
    atomic_bool *odd; /* squares left the dtype */
} job;

/* A sample under way. */
typedef struct sample {
    const job *j;
    td_channel_rows side; /* with the sample's factors */
    const char *x;
    char *out;
    double *sums;  /* two for each channel, of each block */
    char *factors; /* three for each channel, of the wide dtype */
} sample;

bool td_cpu_norm_is_of_channels(const td_norm_plan *plan) {
    const td_norm_shape *s = &plan->shape;
    const td_tensor *x = plan->x, *out = plan->out;
    td_format format = x->ndim == 3   ? TD_CHANNELS_LAST_1D
                       : x->ndim == 4 ? TD_CHANNELS_LAST
                                      : TD_CHANNELS_LAST_3D;
    return s->centered && s->inner > 1 && x->dtype == out->dtype && !x->contiguous &&
           !out->contiguous && td_tensor_is_in_format(x, format) &&
           td_tensor_is_in_format(out, format) && s->batch == x->sizes[0] &&
           s->groups * s->per == x->sizes[1];
}

bool td_cpu_norm_is_odd(td_dtype wide, double squares, double n, double eps) {
    static const double numbers[TD_DTYPE_COUNT] = {[TD_F32] = 0x1p-90, [TD_F64] = 0x1p-960};
    const double least = numbers[wide];
    return !isfinite(squares) || (squares < n * least && eps < least);
}

static void sum_parts(void *ctx, int64_t begin, int64_t end, int worker) {
    const sample *s = ctx;
    const job *j = s->j;
    (void)worker;
    for (int64_t item = begin; item < end; item++) {
        int64_t row = item / j->strips * ROWS, column = item % j->strips * TD_NORM_WIDTH;
        int64_t width = j->c - column < TD_NORM_WIDTH ? j->c - column : TD_NORM_WIDTH;
        int64_t rows = j->rows - row < ROWS ? j->rows - row : ROWS;
        td_channel_rows_moments(&j->side, s->x + (row * j->c + column) * j->side.size, rows, width,
                                s->sums + 2 * (item / j->strips * j->c + column));
    }
}

/* The blocks' moments, channel by channel, and those of a group's channels. */
static void join_group(const sample *s, int64_t group, double moments[2]) {
    const job *j = s->j;
    int64_t first = group * j->shape.per;
    moments[0] = moments[1] = 0;
    for (int64_t c = first; c < first + j->shape.per; c++) {
        double *own = s->sums + 2 * c;
        for (int64_t block = 1; block < j->blocks; block++) {
            int64_t seen = block * ROWS, rows = j->rows - seen < ROWS ? j->rows - seen : ROWS;
            td_join_moments(own, own + 2 * block * j->c, (double)seen, (double)rows);
        }
        td_join_moments(moments, own, (double)((c - first) * j->rows), (double)j->rows);
    }
}

static double number_at(const job *j, const char *list, int64_t k, double otherwise) {
    return list ? td_load_double(j->wide, list + k * j->side.wide_size) : otherwise;
}

static void set_factors(const sample *s, int64_t n) {
    const job *j = s->j;
    int64_t wide = j->side.wide_size;
    for (int64_t group = 0; group < j->shape.groups; group++) {
        double moments[2], count = (double)(j->shape.per * j->rows);
        int64_t row = n * j->shape.groups + group;
        join_group(s, group, moments);
        if (TD_UNLIKELY(td_cpu_norm_is_odd(j->wide, moments[1], count, j->shape.eps)))
            atomic_store(j->odd, true);
        double factor = 1 / sqrt(moments[1] / count + j->shape.eps);
        td_store_double(j->wide, j->mean + row * wide, moments[0]);
        td_store_double(j->wide, j->rstd + row * wide, factor);
        for (int64_t c = group * j->shape.per; c < (group + 1) * j->shape.per; c++) {
            td_store_double(j->wide, s->factors + c * wide, moments[0]);
            td_store_double(j->wide, s->factors + (j->c + c) * wide,
                            factor * number_at(j, j->weight, c, 1));
            td_store_double(j->wide, s->factors + (2 * j->c + c) * wide,
                            number_at(j, j->bias, c, 0));
        }
    }
}

static void map_rows(void *ctx, int64_t begin, int64_t end, int worker) {
    const sample *s = ctx;
    int64_t at = begin * s->j->c * s->j->side.size;
    (void)worker;
    td_channel_rows_map(&s->side, s->out + at, NULL, s->x + at, end - begin);
}

/* Bytes that a worker needs: sums, factors, and these as a map takes them. */
static size_t room_of(const job *j) {
    size_t sums = (size_t)(2 * j->blocks * j->c) * sizeof(double);
    size_t bytes = sums + 3 * (size_t)(j->c * j->side.wide_size) + td_channel_rows_room(&j->side);
    return (bytes + 63) / 64 * 64;
}

/* Within a loop over samples the loops over their parts are one thread's. */
static void run_samples(void *ctx, int64_t begin, int64_t end, int worker) {
    const job *j = ctx;
    int64_t bytes = j->rows * j->c * j->side.size, wide = j->c * j->side.wide_size;
    sample s = {.j = j, .side = j->side};
    s.sums = (double *)(j->room + (size_t)worker * room_of(j));
    s.factors = (char *)(s.sums + 2 * j->blocks * j->c);
    const void *const k[4] = {NULL, s.factors, s.factors + wide, s.factors + 2 * wide};
    for (int64_t n = begin; n < end && !td_interrupt_requested(); n++) {
        s.x = j->x + n * bytes;
        s.out = j->out + n * bytes;
        if (td_parallel_for(j->blocks * j->strips, 2 * ROWS * TD_NORM_WIDTH, sum_parts, &s))
            return;
        set_factors(&s, n);
        td_channel_rows_take(&s.side, k, s.factors + 3 * wide);
        if (td_parallel_for(j->rows, 4 * j->c, map_rows, &s))
            return;
    }
}

/* All samples by all threads: one after the other where there are fewer than threads. */
static td_status run_all(job *j) {
    int threads = td_get_num_threads();
    td_status status = TD_OK;
    j->room = td_malloc((size_t)threads * room_of(j));
    if (!j->room)
        return td_fail(TD_ENOMEM, "out of memory");
    if (j->shape.batch < threads) {
        run_samples(j, 0, j->shape.batch, 0);
        status = td_interrupt_check();
    } else {
        status = td_parallel_for_among(threads, j->shape.batch, 6 * j->rows * j->c, run_samples, j);
    }
    td_free(j->room);
    return status;
}

td_status td_cpu_norm_channels(const td_norm_plan *plan, bool *odd) {
    atomic_bool left = false;
    td_tensor *weight = NULL, *bias = NULL;
    td_dtype dtype = (td_dtype)plan->x->dtype;
    const td_norm_functions *fns = td_cpu->norm->of[dtype];
    td_status status = TD_OK;
    if (!fns)
        return td_fail(TD_EDTYPE, "no kernel for %s", td_dtype_name(dtype));
    job j = {.shape = plan->shape,
             .wide = td_dtype_wide(dtype),
             .c = plan->x->sizes[1],
             .rows = plan->shape.inner,
             .blocks = (plan->shape.inner + ROWS - 1) / ROWS,
             .strips = (plan->x->sizes[1] + TD_NORM_WIDTH - 1) / TD_NORM_WIDTH,
             .x = plan->x->data,
             .out = plan->out->data,
             .mean = plan->mean->data,
             .rstd = plan->rstd->data,
             .odd = &left};
    j.side = td_channel_rows_of(fns, dtype, j.c);
    TD_TRY(td_contiguous_or_none(plan->weight, j.wide, &weight));
    TD_TRY(td_contiguous_or_none(plan->bias, j.wide, &bias));
    j.weight = weight ? weight->data : NULL;
    j.bias = bias ? bias->data : NULL;
    status = run_all(&j);
    *odd = atomic_load(&left);
done:
    td_release(weight);
    td_release(bias);
    return status;
}

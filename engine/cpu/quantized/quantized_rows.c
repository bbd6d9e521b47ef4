/* quantized_rows.c: tables whose rows are bytes or halves of bytes with a scale and an offset each:
 * packed, and added up by bags. */
#include "engine/core/half.h"
#include "engine/core/threads.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/isa/isa.h"

#include <math.h>
#include <string.h>

/* ---- packing ---- */

/* The end of a row: scale and offset as they are stored, and as they then are. */
static void store_ends(uint8_t *to, int bits, float *scale, float *offset) {
    if (bits == 8) {
        memcpy(to, scale, sizeof *scale);
        memcpy(to + sizeof *scale, offset, sizeof *offset);
        return;
    }
    td_half halves[2] = {td_float_to_half(*scale), td_float_to_half(*offset)};
    memcpy(to, halves, sizeof halves);
    *scale = td_half_to_float(halves[0]);
    *offset = td_half_to_float(halves[1]);
}

static void find_range(const float *x, int64_t n, float *low, float *high) {
    *low = *high = x[0];
    for (int64_t i = 1; i < n; i++) {
        *low = x[i] < *low ? x[i] : *low;
        *high = x[i] > *high ? x[i] : *high;
    }
}

static void pack_bytes(const float *x, int64_t n, uint8_t *to) {
    float low, high, scale;
    find_range(x, n, &low, &high);
    scale = (high - low) / 255;
    const float inverse = 255 / (high - low + 1e-8f);
    for (int64_t i = 0; i < n; i++)
        to[i] = (uint8_t)lrintf((x[i] - low) * inverse);
    store_ends(to + n, 8, &scale, &low);
}

static void pack_halves(const float *x, int64_t n, uint8_t *to) {
    float low, high, scale;
    find_range(x, n, &low, &high);
    low = td_half_to_float(td_float_to_half(low));
    scale = high == low ? 1 : td_half_to_float(td_float_to_half((high - low) / 15));
    if (scale == 0 || isinf(1 / scale))
        scale = 1;
    const float inverse = 1 / scale;
    for (int64_t i = 0; i < n; i += 2) {
        long pair[2];
        for (int k = 0; k < 2; k++) {
            long q = lrintf((x[i + k] - low) * inverse);
            pair[k] = q < 0 ? 0 : q > 15 ? 15 : q;
        }
        to[i / 2] = (uint8_t)(pair[0] | pair[1] << 4);
    }
    store_ends(to + n / 2, 4, &scale, &low);
}

static void pack_some(void *ctx, int64_t begin, int64_t end, int worker) {
    const td_pack_rows_plan *p = ctx;
    const int64_t n = p->x->sizes[1], bytes = p->out->sizes[1];
    (void)worker;
    for (int64_t row = begin; row < end; row++)
        (p->bits == 8 ? pack_bytes : pack_halves)((const float *)p->x->data + row * n, n,
                                                  (uint8_t *)p->out->data + row * bytes);
}

td_status td_cpu_pack_rows(const td_pack_rows_plan *plan) {
    return td_parallel_for(plan->x->sizes[0], 4 * plan->x->sizes[1], pack_some,
                           (void *)(uintptr_t)plan);
}

/* ---- bags ---- */

/* The places of a bag. */
static int64_t begin_of(const td_add_rows_plan *p, int64_t bag) {
    if (!p->starts)
        return bag * p->length;
    return bag < p->starts->numel ? ((const int64_t *)p->starts->data)[bag] : p->index->numel;
}

static td_status check_places(const td_add_rows_plan *p) {
    const int64_t *index = p->index->data, n = p->index->numel, rows = p->table->sizes[0];
    for (int64_t b = 0; b < p->out->sizes[0]; b++)
        if (begin_of(p, b) < 0 || begin_of(p, b) > begin_of(p, b + 1) || begin_of(p, b + 1) > n)
            return td_fail(TD_EVALUE,
                           "offsets: bag %lld begins at %lld and ends before %lld of %lld",
                           (long long)b + 1, (long long)begin_of(p, b) + 1,
                           (long long)begin_of(p, b + 1) + 1, (long long)n);
    for (int64_t k = 0; k < n; k++)
        if (index[k] < 0 || index[k] >= rows)
            return td_fail(TD_EINDEX, "index %lld is not a row from 1 to %lld",
                           (long long)index[k] + 1, (long long)rows);
    return TD_OK;
}

/* Scale and offset behind the n elements of a row. */
static void load_ends(const uint8_t *row, int64_t n, int bits, float *scale, float *offset) {
    td_half halves[2];
    if (bits == 8) {
        memcpy(scale, row + n, sizeof *scale);
        memcpy(offset, row + n + sizeof *scale, sizeof *offset);
        return;
    }
    memcpy(halves, row + n / 2, sizeof halves);
    *scale = td_half_to_float(halves[0]);
    *offset = td_half_to_float(halves[1]);
}

enum { SOME = 64 }; /* rows that are added at once */

static void add_bag(const td_add_rows_plan *p, int64_t bag, float *out) {
    const int64_t n = p->out->sizes[1], bytes = p->table->sizes[1], end = begin_of(p, bag + 1);
    const int64_t *index = p->index->data;
    const float *weights = p->weights ? p->weights->data : NULL;
    int64_t count = 0;
    memset(out, 0, sizeof *out * (size_t)n);
    for (int64_t k = begin_of(p, bag); k < end;) {
        const uint8_t *rows[SOME];
        float scales[SOME], offsets[SOME];
        td_row_sum sum = {rows, scales, offsets, 0, p->bits, n, out};
        for (; k < end && sum.count < SOME; k++) {
            if (index[k] == p->padding)
                continue;
            const uint8_t *row = (const uint8_t *)p->table->data + index[k] * bytes;
            const float w = weights ? weights[k] : 1;
            float *scale = &scales[sum.count], *offset = &offsets[sum.count];
            load_ends(row, n, p->bits, scale, offset);
            *scale *= w;
            *offset *= w;
            rows[sum.count++] = row;
        }
        td_cpu->grouped->add_rows(&sum);
        count += sum.count;
    }
    for (int64_t i = 0; p->mean && count && i < n; i++)
        out[i] /= (float)count;
}

static void add_bags(void *ctx, int64_t begin, int64_t end, int worker) {
    const td_add_rows_plan *p = ctx;
    (void)worker;
    for (int64_t bag = begin; bag < end; bag++)
        add_bag(p, bag, (float *)p->out->data + bag * p->out->sizes[1]);
}

td_status td_cpu_add_rows(const td_add_rows_plan *plan) {
    td_status status = check_places(plan);
    int64_t bags = plan->out->sizes[0];
    if (status || bags == 0)
        return status;
    int64_t cost = plan->out->sizes[1] * (1 + plan->index->numel / bags);
    return td_parallel_for(bags, cost, add_bags, (void *)(uintptr_t)plan);
}

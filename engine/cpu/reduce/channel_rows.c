/* channel_rows.c: takes several rows of few channels as one row that repeats its channels, so that
 * vectors are full. */
#include "engine/cpu/reduce/channel_rows.h"

#include <string.h>

enum { MAP_WIDTH = 256 }; /* elements that a map has at least, about */

td_channel_rows td_channel_rows_of(const td_norm_functions *fns, td_dtype dtype, int64_t c) {
    return (td_channel_rows){.fns = fns,
                             .c = c,
                             .size = (int64_t)td_dtype_size(dtype),
                             .wide_size = (int64_t)td_dtype_size(td_dtype_wide(dtype)),
                             .together = c > 0 && c < MAP_WIDTH ? MAP_WIDTH / c : 1};
}

/* ---- sums ---- */

void td_join_moments(double all[2], const double more[2], double before, double count) {
    double apart = more[0] - all[0], whole = before + count;
    all[0] += apart * (count / whole);
    all[1] += more[1] + apart * apart * (before * count / whole);
}

/* How many rows of so many channels are columns of one; 1 where the channels are but a part. */
static int64_t folded(const td_channel_rows *r, int64_t rows, int64_t width) {
    int64_t n = width == r->c && 2 * width <= TD_NORM_WIDTH ? TD_NORM_WIDTH / width : 1;
    return n < rows ? n : 1;
}

void td_channel_rows_moments(const td_channel_rows *r, const void *x, int64_t rows, int64_t width,
                             double *moments) {
    double some[2 * TD_NORM_WIDTH];
    int64_t fold = folded(r, rows, width), long_rows = rows / fold, seen = 0;
    r->fns->column_moments(x, long_rows, r->c * fold, width * fold, some);
    memcpy(moments, some, (size_t)width * 2 * sizeof *some);
    for (int64_t k = 1; k < fold; k++)
        for (int64_t c = 0; c < width; c++)
            td_join_moments(moments + 2 * c, some + 2 * (k * width + c), (double)(k * long_rows),
                            (double)long_rows);
    seen = long_rows * fold;
    if (seen == rows)
        return;
    r->fns->column_moments((const char *)x + seen * r->c * r->size, rows - seen, r->c, width, some);
    for (int64_t c = 0; c < width; c++)
        td_join_moments(moments + 2 * c, some + 2 * c, (double)seen, (double)(rows - seen));
}

void td_channel_rows_sums(const td_channel_rows *r, const void *g, const void *x, int64_t rows,
                          int64_t width, const void *mean, double *sums) {
    _Alignas(double) char means[TD_NORM_WIDTH * sizeof(double)];
    double some[2 * TD_NORM_WIDTH] = {0};
    int64_t fold = folded(r, rows, width), long_rows = rows / fold, seen = long_rows * fold;
    int64_t at = seen * r->c * r->size;
    for (int64_t k = 0; k < fold; k++)
        memcpy(means + k * width * r->wide_size, mean, (size_t)(width * r->wide_size));
    r->fns->column_sums(g, x, long_rows, r->c * fold, width * fold, means, some);
    for (int64_t k = 0; k < 2 * width * fold; k++)
        sums[k % (2 * width)] += some[k];
    if (seen < rows)
        r->fns->column_sums((const char *)g + at, (const char *)x + at, rows - seen, r->c, width,
                            mean, sums);
}

/* ---- maps ---- */

size_t td_channel_rows_room(const td_channel_rows *r) {
    return 4 * (size_t)(r->c * r->wide_size * r->together);
}

void td_channel_rows_take(td_channel_rows *r, const void *const k[4], void *room) {
    size_t row = (size_t)(r->c * r->wide_size);
    char *to = room;
    for (int i = 0; i < 4; i++) {
        r->factors[i] = k[i] ? to : NULL;
        for (int64_t n = 0; n < r->together && k[i]; n++, to += row)
            memcpy(to, k[i], row);
    }
}

void td_channel_rows_map(const td_channel_rows *r, void *out, const void *g, const void *x,
                         int64_t rows) {
    const void *const k[4] = {r->factors[0], r->factors[1], r->factors[2], r->factors[3]};
    int64_t n = 0;
    for (int64_t row = 0; row < rows; row += n) {
        int64_t at = row * r->c * r->size;
        n = rows - row < r->together ? rows - row : r->together;
        r->fns->map((char *)out + at, g ? (const char *)g + at : NULL,
                    x ? (const char *)x + at : NULL, n * r->c, k);
    }
}

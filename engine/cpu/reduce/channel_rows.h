/* channel_rows.h: rows whose elements are channels side by side: moments, sums and maps of each
 * channel. Short rows are taken several at a time, as one row that repeats its channels, since a
 * vector would have few of one. */
#ifndef TD_CPU_REDUCE_CHANNEL_ROWS_H
#define TD_CPU_REDUCE_CHANNEL_ROWS_H

#include "engine/core/status.h"
#include "engine/cpu/reduce/norm_kernels.h"

/* Rows of `c` elements of `size` bytes each, one after the other. */
typedef struct td_channel_rows {
    const td_norm_functions *fns;
    int64_t c, size, wide_size; /* wide_size: of what stands for a channel */
    int64_t together;           /* rows that a map takes at a time */
    char *factors[4];           /* of a map, repeated; NULL: none */
} td_channel_rows;

td_channel_rows td_channel_rows_of(const td_norm_functions *fns, td_dtype dtype, int64_t c);

/* Put the moments (mean, sum of squared deviations) of `count` more elements together with those
 * of `before`. */
void td_join_moments(double all[2], const double more[2], double before, double count);

/* Moments of `width` channels from the first on, at most TD_NORM_WIDTH: moments[2 * k ..]. */
void td_channel_rows_moments(const td_channel_rows *r, const void *x, int64_t rows, int64_t width,
                             double *moments);
/* Sums of g and of g (x - mean), added to sums[2 * k ..]. */
void td_channel_rows_sums(const td_channel_rows *r, const void *g, const void *x, int64_t rows,
                          int64_t width, const void *mean, double *sums);

/* Takes the factors of a map (norm_kernels.h), `c` each, or NULL, into `room`, which is borrowed.
 */
void td_channel_rows_take(td_channel_rows *r, const void *const k[4], void *room);
size_t td_channel_rows_room(const td_channel_rows *r); /* bytes */
/* The map of so many rows; g or x may be NULL. */
void td_channel_rows_map(const td_channel_rows *r, void *out, const void *g, const void *x,
                         int64_t rows);

#endif

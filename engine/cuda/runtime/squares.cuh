/* squares.cuh: sums of squares of float64, which may be out of its range. */
#ifndef TD_CUDA_RUNTIME_SQUARES_CUH
#define TD_CUDA_RUNTIME_SQUARES_CUH

#include "engine/cuda/runtime/groups.cuh"

/* One more square in three ranges: of large elements, of others, of small ones; scaled. */
__device__ static inline void td_take_square(td_cu_three &acc, double v) {
    double size = fabs(v);
    if (size > 0x1p500)
        acc.a += (size * 0x1p-600) * (size * 0x1p-600);
    else if (size < 0x1p-500)
        acc.c += (size * 0x1p600) * (size * 0x1p600);
    else
        acc.b += size * size; /* NaN too */
}

/* All of them: the sum is the result over the square of `scale`. */
__device__ static inline double td_join_squares(td_cu_three acc, double *scale) {
    *scale = acc.a > 0 ? 0x1p-600 : acc.b == 0 ? 0x1p600 : 1;
    return acc.a > 0    ? acc.a + acc.b * 0x1p-600 * 0x1p-600
           : acc.b == 0 ? acc.c
                        : acc.b + acc.c * 0x1p-600 * 0x1p-600;
}

/* Squares of the distances to a center, and the distances. */
struct td_cu_squares {
    td_cu_three squares;
    double sum;
};
__device__ static inline td_cu_squares td_shuffle_xor(td_cu_squares mine, int by) {
    return td_cu_squares{td_shuffle_xor(mine.squares, by), td_shuffle_xor(mine.sum, by)};
}
__device__ static inline void td_take_distance(td_cu_squares &acc, double d) {
    td_take_square(acc.squares, d);
    acc.sum += d;
}
__device__ static inline td_cu_squares td_join_spreads(td_cu_squares a, td_cu_squares b) {
    return td_cu_squares{td_adder().join(a.squares, b.squares), a.sum + b.sum};
}

/* The sum of the squares around the mean instead, over the square of `scale`. */
__device__ static inline double td_around_mean(td_cu_squares acc, long long count, double *scale) {
    double sum = td_join_squares(acc.squares, scale), rest = acc.sum * *scale;
    sum = count > 0 ? sum - rest / (double)count * rest : 0;
    return sum > 0 || sum != sum ? sum : 0;
}

#endif

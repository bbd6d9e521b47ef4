/* spatial_depthwise_loops.h: a plane of a depthwise convolution. It is copied between zeros, with
 * every stride-th column in a line of its own, so that sums need no look at the edges and all loads
 * are of neighbours. A few rows of the result stay in registers together, for which each vector of
 * the input is loaded once. Included by spatial_kernels.c with the vectors of its set. */

enum { SUMS = 4 }; /* rows of the result that are made together */

/* Elements of a line of the copy, of which a padded row has `stride`. */
static int64_t depthwise_pitch(const td_depthwise_plane *p) {
    int64_t read = (p->columns + VF_N - 1) / VF_N * VF_N + p->side + VF_N;
    int64_t written = (p->before + p->in_columns) / p->stride + 2 * VF_N;
    return ((read > written ? read : written) + VF_N - 1) / VF_N * VF_N;
}

static int64_t depthwise_room(const td_depthwise_plane *p) {
    return ((p->rows - 1) * p->stride + p->side) * p->stride * depthwise_pitch(p);
}

/* Every second element of x to one of two lines. */
static void part_columns(float *restrict even, float *restrict odd, const float *restrict x,
                         int64_t n) {
    for (int64_t k = 0; k < n / 2; k++) {
        even[k] = x[2 * k];
        odd[k] = x[2 * k + 1];
    }
    if (n % 2)
        even[n / 2] = x[n - 1];
}

static void copy_between_zeros(const td_depthwise_plane *p, int64_t pitch) {
    const int64_t padded = (p->rows - 1) * p->stride + p->side, n = p->in_columns;
    float *line = p->room;
    for (int64_t r = 0; r < padded; r++, line += p->stride * pitch) {
        const float *x = p->x + (r - p->above) * n;
        for (int64_t k = 0; k < p->stride * pitch; k += VF_N)
            vf_store(line + k, vf_set(0));
        if (r < p->above || r - p->above >= p->in_rows)
            continue;
        if (p->stride == 1) {
            for (int64_t k = 0; k < n; k += VF_N)
                vf_store(line + p->before + k, vf_load_part(x + k, n - k < VF_N ? n - k : VF_N));
            continue;
        }
        part_columns(line + p->before % 2 * pitch + p->before / 2,
                     line + (p->before + 1) % 2 * pitch + (p->before + 1) / 2, x, n);
    }
}

/* `count` rows of the result from `row` on; an element's terms are added by rows of the kernel. */
static inline __attribute__((always_inline)) void depthwise_rows(const td_depthwise_plane *p,
                                                                 int64_t pitch, int64_t row,
                                                                 const int side, const int stride,
                                                                 const int count) {
    const float *from = p->room + row * stride * stride * pitch;
    for (int64_t column = 0; column < p->columns; column += VF_N) {
        vf sums[SUMS];
        for (int r = 0; r < count; r++)
            sums[r] = vf_set(p->bias);
        for (int q = 0; q < (count - 1) * stride + side; q++)
            for (int k = 0; k < side; k++) {
                vf x = vf_load(from + (q * stride + k % stride) * pitch + column + k / stride);
                for (int r = 0; r < count; r++)
                    if (q - r * stride >= 0 && q - r * stride < side)
                        sums[r] =
                            vf_fma(x, vf_set(p->weight[(q - r * stride) * side + k]), sums[r]);
            }
        int64_t left = p->columns - column;
        for (int r = 0; r < count; r++)
            vf_store_part(p->y + (row + r) * p->columns + column, sums[r],
                          left < VF_N ? left : VF_N);
    }
}

#define DEFINE_DEPTHWISE(side, stride)                                                             \
    static void depthwise_##side##_##stride(const td_depthwise_plane *p, int64_t pitch) {          \
        int64_t row = 0;                                                                           \
        for (; row + SUMS <= p->rows; row += SUMS)                                                 \
            depthwise_rows(p, pitch, row, side, stride, SUMS);                                     \
        if (row + 2 <= p->rows) {                                                                  \
            depthwise_rows(p, pitch, row, side, stride, 2);                                        \
            row += 2;                                                                              \
        }                                                                                          \
        for (; row < p->rows; row++)                                                               \
            depthwise_rows(p, pitch, row, side, stride, 1);                                        \
    }
DEFINE_DEPTHWISE(3, 1)
DEFINE_DEPTHWISE(3, 2)
DEFINE_DEPTHWISE(5, 1)
DEFINE_DEPTHWISE(5, 2)

static void depthwise(const td_depthwise_plane *p) {
    static void (*const of[2][2])(const td_depthwise_plane *, int64_t) = {
        {depthwise_3_1, depthwise_3_2}, {depthwise_5_1, depthwise_5_2}};
    const int64_t pitch = depthwise_pitch(p);
    copy_between_zeros(p, pitch);
    of[p->side == 5][p->stride - 1](p, pitch);
}

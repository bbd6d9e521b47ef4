/* spatial_depthwise_loops.h: rows of depthwise convolutions of as many channels as a vector has
 * lanes, which lie beside one another at each place. A few places of a row stay in registers
 * together, for which each vector of the weight is loaded once. Included by spatial_kernels.c with
 * the vectors of its set. */

enum { TOGETHER = 8 }; /* of a row that are made together at most */

/* `count` places of a row, whose terms are added by rows of the kernel. */
static inline __attribute__((always_inline)) void depthwise_places(const td_depthwise_band *p,
                                                                   const float *x, float *y,
                                                                   const int stride,
                                                                   const int count) {
    const float *weight = p->weight;
    vf sums[TOGETHER];
    for (int j = 0; j < count; j++)
        sums[j] = vf_load(p->bias);
    for (int64_t q = 0; q < p->kernel[0]; q++) {
        const float *at = x + q * p->dilation[0] * p->pitch * VF_N;
        for (int64_t k = 0; k < p->kernel[1]; k++, at += p->dilation[1] * VF_N, weight += VF_N) {
            const vf w = vf_load(weight);
            for (int j = 0; j < count; j++)
                sums[j] = vf_fma(vf_load(at + j * stride * VF_N), w, sums[j]);
        }
    }
    for (int j = 0; j < count; j++)
        vf_store(y + j * VF_N, sums[j]);
}

#define CASE_OF(stride, count)                                                                     \
    case count:                                                                                    \
        depthwise_places(p, x, y, stride, count);                                                  \
        break;
#define DEFINE_DEPTHWISE_ROW(stride)                                                               \
    static void depthwise_row_##stride(const td_depthwise_band *p, const float *x, float *y) {     \
        int64_t blocks = (p->columns + TOGETHER - 1) / TOGETHER;                                   \
        for (int64_t left = p->columns, count; left > 0; left -= count, blocks--) {                \
            count = (left + blocks - 1) / blocks;                                                  \
            switch (count) {                                                                       \
                CASE_OF(stride, 1)                                                                 \
                CASE_OF(stride, 2)                                                                 \
                CASE_OF(stride, 3)                                                                 \
                CASE_OF(stride, 4)                                                                 \
                CASE_OF(stride, 5)                                                                 \
                CASE_OF(stride, 6)                                                                 \
                CASE_OF(stride, 7)                                                                 \
                CASE_OF(stride, 8)                                                                 \
            }                                                                                      \
            x += count * stride * VF_N;                                                            \
            y += count * VF_N;                                                                     \
        }                                                                                          \
    }
DEFINE_DEPTHWISE_ROW(1)
DEFINE_DEPTHWISE_ROW(2)

static void depthwise(const td_depthwise_band *p) {
    for (int64_t r = 0; r < p->rows; r++) {
        const float *x = p->x + r * p->stride[0] * p->pitch * VF_N;
        (p->stride[1] == 1 ? depthwise_row_1 : depthwise_row_2)(p, x, p->y + r * p->columns * VF_N);
    }
}

/* spatial_depthwise_last_loops.h: rows of depthwise convolutions of images with channels last. A
 * vector of channels at a few places of a row stays in registers, and so does that of each tap in a
 * row of the kernel: each place of x is loaded once for all places whose taps meet it. Included by
 * spatial_kernels.c with the vectors of its set. */

enum { LAST_PLACES = 8 }; /* with a vector for each of seven taps and one of x, 16 registers */

/* Of x's place `at` to the sum of the place whose tap k meets it; of all such places to theirs, or
 * to none, where x ends before it. */
#define LAST_TAP(i, k)                                                                             \
    if ((k) < taps && (i) >= (k) && ((i) - (k)) % stride == 0 && ((i) - (k)) / stride < places)    \
        sums[((i) - (k)) / stride % LAST_PLACES] =                                                 \
            vf_fma(v, by[k], sums[((i) - (k)) / stride % LAST_PLACES]);
#define LAST_MEET(i)                                                                               \
    if ((i) < (places - 1) * stride + taps) {                                                      \
        if ((i) >= begin && (i) < end) {                                                           \
            const vf v = vf_load_part(at, n);                                                      \
            LAST_TAP(i, 0)                                                                         \
            LAST_TAP(i, 1)                                                                         \
            LAST_TAP(i, 2)                                                                         \
            LAST_TAP(i, 3)                                                                         \
            LAST_TAP(i, 4)                                                                         \
            LAST_TAP(i, 5)                                                                         \
            LAST_TAP(i, 6)                                                                         \
        }                                                                                          \
        at += p->x_place;                                                                          \
    }
#define LAST_WEIGHT(k)                                                                             \
    if ((k) < taps)                                                                                \
        by[k] = vf_load(weight + (k)*p->tap);
#define LAST_EIGHT(of, k)                                                                          \
    of(k) of(k + 1) of(k + 2) of(k + 3) of(k + 4) of(k + 5) of(k + 6) of(k + 7)
#define LAST_BEGIN(j) sums[j] = bias;
#define LAST_PUT(j)                                                                                \
    if (places > (j) && n == VF_N) {                                                               \
        const int64_t to = (j)*p->y_place;                                                         \
        vf_store(y + to, vf_epilogue(&e, added ? sums[j] + vf_load(added + to) : sums[j]));        \
    } else if (places > (j)) {                                                                     \
        const int64_t to = (j)*p->y_place;                                                         \
        const vf sum = added ? sums[j] + vf_load_part(added + to, n) : sums[j];                    \
        vf_store_part(y + to, vf_epilogue(&e, sum), n);                                            \
    }

/* `places` of a row from `place` on, n channels from `channel` on. */
static inline __attribute__((always_inline)) void last_places(const td_depthwise_row *p,
                                                              int64_t channel, int64_t n,
                                                              int64_t place, const int taps,
                                                              const int stride, const int places) {
    const int64_t first = place * stride - p->padding;
    const int64_t begin = -first, end = p->in - first; /* of places that there are */
    const float *x = p->x + channel, *weight = p->weight + channel;
    const vf bias = p->bias ? vf_load_part(p->bias + channel, n) : vf_set(0);
    vf sums[LAST_PLACES], by[LAST_PLACES];
    LAST_EIGHT(LAST_BEGIN, 0)
    for (int64_t q = 0; q < p->rows; q++, x += p->x_row, weight += taps * p->tap) {
        const float *at = x + first * p->x_place;
        LAST_EIGHT(LAST_WEIGHT, 0)
        LAST_EIGHT(LAST_MEET, 0)
        LAST_EIGHT(LAST_MEET, 8)
        LAST_EIGHT(LAST_MEET, 16)
    }
    const td_epilogue e = *p->epilogue;
    float *y = p->y + place * p->y_place + channel;
    const float *added = p->added ? p->added + place * p->y_place + channel : NULL;
    LAST_EIGHT(LAST_PUT, 0)
}

#define LAST_CASE(taps, stride, count)                                                             \
    case count:                                                                                    \
        last_places(p, channel, n, place, taps, stride, count);                                    \
        break;
#define DEFINE_LAST_ROW(taps, stride)                                                              \
    static void last_row_##taps##_##stride(const td_depthwise_row *p) {                            \
        int64_t blocks = (p->out + LAST_PLACES - 1) / LAST_PLACES;                                 \
        for (int64_t place = 0, count; place < p->out; place += count, blocks--) {                 \
            count = (p->out - place + blocks - 1) / blocks;                                        \
            for (int64_t channel = 0, n; channel < p->channels; channel += n) {                    \
                n = p->channels - channel < VF_N ? p->channels - channel : VF_N;                   \
                switch (count) {                                                                   \
                    LAST_CASE(taps, stride, 1)                                                     \
                    LAST_CASE(taps, stride, 2)                                                     \
                    LAST_CASE(taps, stride, 3)                                                     \
                    LAST_CASE(taps, stride, 4)                                                     \
                    LAST_CASE(taps, stride, 5)                                                     \
                    LAST_CASE(taps, stride, 6)                                                     \
                    LAST_CASE(taps, stride, 7)                                                     \
                    LAST_CASE(taps, stride, 8)                                                     \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
DEFINE_LAST_ROW(3, 1)
DEFINE_LAST_ROW(5, 1)
DEFINE_LAST_ROW(7, 1)
DEFINE_LAST_ROW(3, 2)
DEFINE_LAST_ROW(5, 2)
DEFINE_LAST_ROW(7, 2)

static void depthwise_last(const td_depthwise_row *p) {
    static void (*const of[2][3])(const td_depthwise_row *p) = {
        {last_row_3_1, last_row_5_1, last_row_7_1}, {last_row_3_2, last_row_5_2, last_row_7_2}};
    of[p->stride - 1][(p->taps - 3) / 2](p);
}

#undef LAST_TAP
#undef LAST_MEET
#undef LAST_WEIGHT
#undef LAST_EIGHT
#undef LAST_BEGIN
#undef LAST_PUT
#undef LAST_CASE
#undef DEFINE_LAST_ROW

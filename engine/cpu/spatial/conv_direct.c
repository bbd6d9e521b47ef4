/* conv_direct.c: convolution by adding up shifted lines, an element of the kernel at a time: in so
 * few channels that unrolling them for a product takes longer than the product. */
#include "engine/cpu/spatial/conv_direct.h"

#include "engine/core/interrupt.h"
#include "engine/core/threads.h"
#include "engine/cpu/limits.h"
#include "engine/cpu/pointwise/strided_convert.h"
#include "engine/cpu/spatial/conv_lines.h"

enum { LANES = 8 };

bool td_conv_is_thin(const td_conv_geometry *g) {
    return g->c / g->groups * (g->o / g->groups) <= TD_LIMIT(CONV_DIRECT);
}

typedef struct job {
    const td_conv_geometry *g;
    void (*run)(const struct job *j, int64_t begin, int64_t end);
    const void *a, *b, *bias;
    void *out;
    int64_t channels, outputs;  /* of a group */
    int64_t in, places, kernel; /* elements of a plane of the input, of the result, of the kernel */
} job;

/* Where the lines of two planes meet through one element of the kernel. */
typedef struct meeting {
    td_conv_span s[TD_SPATIAL];
} meeting;

static meeting meet(const td_conv_geometry *g, int64_t kernel) {
    meeting m;
    for (int d = TD_SPATIAL - 1; d >= 0; d--) {
        m.s[d] = td_conv_meet(g, d, kernel % g->kernel[d]);
        kernel /= g->kernel[d];
    }
    return m;
}

/* Runs DO for every pair of lines: `in` with `stride` between elements, `out`, n elements. */
#define FOR_LINES(T, x, y, DO)                                                                     \
    for (int64_t i = m.s[0].first; i < m.s[0].last; i++)                                           \
        for (int64_t j = m.s[1].first; j < m.s[1].last; j++) {                                     \
            int64_t a = m.s[0].from + (i - m.s[0].first) * g->stride[0];                           \
            int64_t b = m.s[1].from + (j - m.s[1].first) * g->stride[1];                           \
            int64_t n = m.s[2].last - m.s[2].first, stride = g->stride[2];                         \
            T *restrict in = (x) + (a * g->in[1] + b) * g->in[2] + m.s[2].from;                    \
            T *restrict out = (y) + (i * g->out[1] + j) * g->out[2] + m.s[2].first;                \
            DO                                                                                     \
        }

/* One function for each direction: parts [begin, end) of the result's planes (of the weight's
 * gradient: elements). */
#define DEFINE_DIRECT(T)                                                                           \
    static void add_forward_##T(const td_conv_geometry *g, meeting m, T *x, T *y, T factor) {      \
        FOR_LINES(T, x, y, {                                                                       \
            if (stride == 1)                                                                       \
                for (int64_t k = 0; k < n; k++)                                                    \
                    out[k] += factor * in[k];                                                      \
            else                                                                                   \
                for (int64_t k = 0; k < n; k++)                                                    \
                    out[k] += factor * in[k * stride];                                             \
        })                                                                                         \
    }                                                                                              \
    static void add_back_##T(const td_conv_geometry *g, meeting m, T *x, T *y, T factor) {         \
        FOR_LINES(T, x, y, {                                                                       \
            if (stride == 1)                                                                       \
                for (int64_t k = 0; k < n; k++)                                                    \
                    in[k] += factor * out[k];                                                      \
            else                                                                                   \
                for (int64_t k = 0; k < n; k++)                                                    \
                    in[k * stride] += factor * out[k];                                             \
        })                                                                                         \
    }                                                                                              \
    static void add_products_##T(const td_conv_geometry *g, meeting m, T *x, T *y, T *lanes) {     \
        FOR_LINES(T, x, y, {                                                                       \
            int64_t k = 0;                                                                         \
            for (; stride == 1 && k + LANES <= n; k += LANES)                                      \
                for (int l = 0; l < LANES; l++)                                                    \
                    lanes[l] += in[k + l] * out[k + l];                                            \
            for (; k < n; k++)                                                                     \
                lanes[k % LANES] += in[k * stride] * out[k];                                       \
        })                                                                                         \
    }                                                                                              \
    static void forward_##T(const job *j, int64_t begin, int64_t end) {                            \
        const td_conv_geometry *g = j->g;                                                          \
        for (int64_t plane = begin; plane < end; plane++) {                                        \
            int64_t o = plane % g->o, first = o / j->outputs * j->channels;                        \
            T *x = (T *)j->a + (plane / g->o * g->c + first) * j->in;                              \
            const T *weight = (const T *)j->b + o * j->channels * j->kernel, *bias = j->bias;      \
            T *y = (T *)j->out + plane * j->places;                                                \
            for (int64_t k = 0; k < j->places; k++)                                                \
                y[k] = bias ? bias[o] : 0;                                                         \
            for (int64_t k = 0; k < j->channels * j->kernel && !td_interrupt_requested(); k++)     \
                add_forward_##T(g, meet(g, k % j->kernel), x + k / j->kernel * j->in, y,           \
                                weight[k]);                                                        \
        }                                                                                          \
    }                                                                                              \
    static void by_input_##T(const job *j, int64_t begin, int64_t end) {                           \
        const td_conv_geometry *g = j->g;                                                          \
        for (int64_t plane = begin; plane < end; plane++) {                                        \
            int64_t c = plane % g->c, first = c / j->channels * j->outputs;                        \
            T *y = (T *)j->a + (plane / g->c * g->o + first) * j->places;                          \
            const T *weight =                                                                      \
                (const T *)j->b + (first * j->channels + c % j->channels) * j->kernel;             \
            T *x = (T *)j->out + plane * j->in;                                                    \
            for (int64_t k = 0; k < j->in; k++)                                                    \
                x[k] = 0;                                                                          \
            for (int64_t k = 0; k < j->outputs * j->kernel && !td_interrupt_requested(); k++) {    \
                int64_t o = k / j->kernel, at = k % j->kernel;                                     \
                add_back_##T(g, meet(g, at), x, y + o * j->places,                                 \
                             weight[o * j->channels * j->kernel + at]);                            \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void by_weight_##T(const job *j, int64_t begin, int64_t end) {                          \
        const td_conv_geometry *g = j->g;                                                          \
        for (int64_t k = begin; k < end; k++) {                                                    \
            int64_t c = k / j->kernel % j->channels, o = k / j->kernel / j->channels;              \
            int64_t from = o / j->outputs * j->channels + c;                                       \
            T lanes[LANES] = {0}, sum = 0;                                                         \
            for (int64_t n = 0; n < g->n && !td_interrupt_requested(); n++)                        \
                add_products_##T(g, meet(g, k % j->kernel), (T *)j->a + (n * g->c + from) * j->in, \
                                 (T *)j->b + (n * g->o + o) * j->places, lanes);                   \
            for (int l = 0; l < LANES; l++)                                                        \
                sum += lanes[l];                                                                   \
            ((T *)j->out)[k] = sum;                                                                \
        }                                                                                          \
    }
DEFINE_DIRECT(float)
DEFINE_DIRECT(double)
DEFINE_DIRECT(uint64_t)

typedef void (*part_fn)(const job *j, int64_t begin, int64_t end);

/* By dtype and direction. */
static const part_fn ways[TD_DTYPE_COUNT][3] = {
    [TD_F32] = {forward_float, by_input_float, by_weight_float},
    [TD_F64] = {forward_double, by_input_double, by_weight_double},
    [TD_I64] = {forward_uint64_t, by_input_uint64_t, by_weight_uint64_t},
};

static void do_parts(void *ctx, int64_t begin, int64_t end, int worker) {
    const job *j = ctx;
    (void)worker;
    j->run(j, begin, end);
}

td_status td_conv_direct(const td_convolution_plan *p) {
    const td_conv_geometry *g = &p->geometry;
    job j = {.g = g,
             .run = ways[p->out->dtype][p->direction],
             .a = p->a->data,
             .b = p->b->data,
             .bias = p->bias ? p->bias->data : NULL,
             .out = p->out->data,
             .channels = g->c / g->groups,
             .outputs = g->o / g->groups,
             .in = td_conv_places(g->in),
             .places = td_conv_places(g->out),
             .kernel = td_conv_places(g->kernel)};
    const int64_t parts[3] = {[TD_CONV_FORWARD] = g->n * g->o,
                              [TD_CONV_INPUT] = g->n * g->c,
                              [TD_CONV_WEIGHT] = g->o * j.channels * j.kernel};
    const int64_t meets[3] = {[TD_CONV_FORWARD] = j.channels * j.kernel,
                              [TD_CONV_INPUT] = j.outputs * j.kernel,
                              [TD_CONV_WEIGHT] = g->n};
    if (!j.run)
        return td_cpu_lacks((td_dtype)p->out->dtype);
    return td_parallel_for(parts[p->direction], meets[p->direction] * j.places + 1, do_parts, &j);
}

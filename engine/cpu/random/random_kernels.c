/* random_kernels.c: Philox on as many counters as vectors hold, and the distributions. */
#include "engine/cpu/random/random_kernels.h"

#include "engine/core/draw_math.h"
#include "engine/cpu/isa/isa_symbol.h"
#include "engine/cpu/random/draw_vectors.h"

#include "engine/cpu/random/random_poisson.h"

/* Words of PHILOX_LANES counters from `counter` on. */
static void philox_lanes(uint32_t *out, uint64_t seed, uint64_t counter) {
    vul x[4][PHILOX_VECTORS];
    uint64_t lanes[PHILOX_LANES], first[PHILOX_LANES], second[PHILOX_LANES];
    for (int l = 0; l < PHILOX_LANES; l++)
        lanes[l] = counter + (uint64_t)l;
    for (int v = 0; v < PHILOX_VECTORS; v++)
        x[0][v] = vul_load(lanes + v * VL_N);
    vul_philox(seed, x);
    for (int v = 0; v < PHILOX_VECTORS; v++) {
        vul low = (vul){0} + 0xFFFFFFFF;
        vul_store(first + v * VL_N, (x[0][v] & low) | x[1][v] << 32);
        vul_store(second + v * VL_N, (x[2][v] & low) | x[3][v] << 32);
    }
    for (int l = 0; l < PHILOX_LANES; l++) {
        memcpy(out + 4 * l, first + l, sizeof *first);
        memcpy(out + 4 * l + 2, second + l, sizeof *second);
    }
}

static void words(uint32_t *out, uint64_t seed, uint64_t counter, int blocks) {
    uint32_t rest[4 * PHILOX_LANES];
    int k = 0;
    for (; k + PHILOX_LANES <= blocks; k += PHILOX_LANES)
        philox_lanes(out + 4 * k, seed, counter + (uint64_t)k);
    if (blocks - k > FEW && blocks - k < PHILOX_LANES) {
        philox_lanes(rest, seed, counter + (uint64_t)k);
        memcpy(out + 4 * k, rest, sizeof *rest * 4 * (size_t)(blocks - k));
        return;
    }
    for (; k < blocks; k++)
        td_philox(seed, counter + (uint64_t)k, out + 4 * k);
}

static void uniform_f32(float *out, const uint32_t *words, int n, float low, float span) {
    for (int k = 0; k < n; k++)
        out[k] = low + span * ((float)(int32_t)(words[k] >> 8) * 0x1p-24f);
}

static void uniform_f64(double *out, const uint32_t *words, int n, double low, double span) {
    for (int k = 0; k < n; k++)
        out[k] = low + span * td_uniform_double(words[2 * k], words[2 * k + 1]);
}

#define P           vf
#define T           float
#define V           vf
#define M           vi
#define N           VF_N
#define DIGITS      23
#define BIAS        127
#define ROOT_HALF   0x3F3504F3
#define LOG_TERMS   5
#define ANGLE_TERMS 5
#define WORDS       1
#define UNIFORM(w)  td_uniform_float(*(w))
#include "engine/cpu/random/random_normal.h"

#define P           vd
#define T           double
#define V           vd
#define M           vl
#define N           VD_N
#define DIGITS      52
#define BIAS        1023
#define ROOT_HALF   0x3FE6A09E667F3BCDll
#define LOG_TERMS   11
#define ANGLE_TERMS 9
#define WORDS       2
#define UNIFORM(w)  td_uniform_double((w)[0], (w)[1])
#include "engine/cpu/random/random_normal.h"

/* ---- integers ---- */

static void integers(int64_t *out, const uint32_t *words, int n, int64_t low, uint64_t count) {
    for (int k = 0; k < n; k++)
        out[k] = low + (int64_t)((uint64_t)(uint32_t)count * words[k] >> 32);
}

static void wide_integers(int64_t *out, const uint32_t *words, int n, int64_t low, uint64_t count) {
    if (count <= UINT32_MAX) { /* the same by halves */
        for (int k = 0; k < n; k++) {
            uint64_t rest = (uint64_t)(uint32_t)count * words[2 * k + 1] >> 32;
            out[k] = low + (int64_t)(((uint64_t)(uint32_t)count * words[2 * k] + rest) >> 32);
        }
        return;
    }
    for (int k = 0; k < n; k++) {
        uint64_t r = ((uint64_t)words[2 * k] << 32) | words[2 * k + 1];
        out[k] = low + (int64_t)(uint64_t)(((unsigned __int128)r * count) >> 64);
    }
}

/* ---- what comes of one number in (0, 1) ---- */

static inline vd open_at(const uint32_t *words, int n) {
    vul v = {0};
    if (n >= VD_N)
        memcpy(&v, words, sizeof v);
    else
        memcpy(&v, words, (size_t)n * sizeof(uint64_t));
    return vd_draw_open(v << 32 | v >> 32);
}

#define DEFINE_SHAPE(name, ...)                                                                    \
    static void name(double *out, const uint32_t *words, int n, double a, double b) {              \
        (void)b;                                                                                   \
        for (int k = 0; k < n; k += VD_N) {                                                        \
            vd u = open_at(words + 2 * k, n - k), y;                                               \
            __VA_ARGS__                                                                            \
            if (n - k >= VD_N)                                                                     \
                vd_store(out + k, y);                                                              \
            else                                                                                   \
                vd_store_part(out + k, y, n - k);                                                  \
        }                                                                                          \
    }
DEFINE_SHAPE(exponential, y = -vd_draw_log(u) / a;)
DEFINE_SHAPE(geometric, y = vd_ceil(vd_draw_log(u) / a);)
DEFINE_SHAPE(cauchy, vd sine, cosine = vd_turn(u / 2, &sine); y = a - b * (cosine / sine);)

static void exponentials(double *x, int n) {
    int k = 0;
    for (; k + VD_N <= n; k += VD_N)
        vd_store(x + k, vd_draw_exp(vd_load(x + k)));
    if (k < n)
        vd_store_part(x + k, vd_draw_exp(vd_load_part(x + k, n - k)), n - k);
}

extern const td_random_kernels TD_ISA_SYMBOL(td_random_kernels);
const td_random_kernels TD_ISA_SYMBOL(td_random_kernels) = {
    .words = words,
    .uniform_f32 = uniform_f32,
    .uniform_f64 = uniform_f64,
    .normal_f32 = vf_normal,
    .normal_f64 = vd_normal,
    .integers = integers,
    .wide_integers = wide_integers,
    .exponential = exponential,
    .geometric = geometric,
    .cauchy = cauchy,
    .exponentials = exponentials,
    .poisson = poisson,
};

/* random_kernels.c: Philox on as many counters as a vector holds, and the distributions. */
#include "engine/cpu/isa/random_kernels.h"

#include "engine/core/random.h"
#include "engine/cpu/isa/isa_symbol.h"
#include "engine/cpu/isa/vec.h"

enum { LANES = 32 }; /* counters worked on side by side: the compiler makes vectors of the loops */

static void philox_lanes(uint32_t *out, uint64_t seed, uint64_t counter) {
    uint32_t x0[LANES], x1[LANES], x2[LANES], x3[LANES];
    uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);
    for (int l = 0; l < LANES; l++) {
        x0[l] = (uint32_t)(counter + (uint64_t)l);
        x1[l] = (uint32_t)((counter + (uint64_t)l) >> 32);
        x2[l] = x3[l] = 0;
    }
    for (int round = 0; round < 10; round++) {
        for (int l = 0; l < LANES; l++) {
            uint64_t a = 0xD2511F53ull * x0[l], b = 0xCD9E8D57ull * x2[l];
            x0[l] = (uint32_t)(b >> 32) ^ x1[l] ^ key0;
            x1[l] = (uint32_t)b;
            x2[l] = (uint32_t)(a >> 32) ^ x3[l] ^ key1;
            x3[l] = (uint32_t)a;
        }
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    for (int l = 0; l < LANES; l++) {
        out[4 * l] = x0[l];
        out[4 * l + 1] = x1[l];
        out[4 * l + 2] = x2[l];
        out[4 * l + 3] = x3[l];
    }
}

static void words(uint32_t *out, uint64_t seed, uint64_t counter, int blocks) {
    int k = 0;
    for (; k + LANES <= blocks; k += LANES)
        philox_lanes(out + 4 * k, seed, counter + (uint64_t)k);
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
#include "engine/cpu/isa/random_normal.h"

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
#include "engine/cpu/isa/random_normal.h"

extern const td_random_kernels TD_ISA_SYMBOL(td_random_kernels);
const td_random_kernels TD_ISA_SYMBOL(td_random_kernels) = {
    .words = words,
    .uniform_f32 = uniform_f32,
    .uniform_f64 = uniform_f64,
    .normal_f32 = vf_normal,
    .normal_f64 = vd_normal,
};

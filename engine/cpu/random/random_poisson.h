/* random_poisson.h: td_draw_poisson for many means at once. All places without a result take their
 * next counter together (a wave); those that still have none go into the next wave. */
#ifndef TD_CPU_RANDOM_RANDOM_POISSON_H
#define TD_CPU_RANDOM_RANDOM_POISSON_H

#include "engine/core/draw_math.h"
#include "engine/cpu/random/draw_vectors.h"

enum { WAVE = 256, FEW = 4 }; /* so few places are quicker one by one */

typedef struct wave {
    int n;
    int place[WAVE];
    double mean[WAVE], time[WAVE]; /* time: that has been waited so far */
    double first[WAVE], second[WAVE];
} wave;

static inline void join(wave *w, int place, double mean) {
    w->place[w->n] = place;
    w->mean[w->n] = mean;
    w->time[w->n++] = 0;
}

/* Two numbers of (0, 1) for each, whose counters lie `blocks` apart from one place to the next. */
static inline void draw_two(wave *w, uint64_t seed, uint64_t counter, int blocks) {
    vul x[4][PHILOX_VECTORS];
    uint64_t counters[PHILOX_LANES];
    for (int k = 0; k < w->n; k += PHILOX_LANES) {
        for (int l = 0; l < PHILOX_LANES; l++)
            counters[l] = counter + (uint64_t)w->place[k + l] * (uint64_t)blocks;
        for (int v = 0; v < PHILOX_VECTORS; v++)
            x[0][v] = vul_load(counters + v * VL_N);
        vul_philox(seed, x);
        for (int v = 0; v < PHILOX_VECTORS; v++) {
            vul low = (vul){0} + 0xFFFFFFFF;
            vd_store(w->first + k + v * VD_N, vd_draw_open(x[0][v] << 32 | (x[1][v] & low)));
            vd_store(w->second + k + v * VD_N, vd_draw_open(x[2][v] << 32 | (x[3][v] & low)));
        }
    }
}

/* td_draw_waits: another two waiting times, of which `before` were there. */
static inline void wait_on(wave *w, double *out, int before) {
    int kept = 0;
    for (int k = 0; k < w->n; k += VD_N) {
        vd time = vd_load(w->time + k) - vd_draw_log(vd_load(w->first + k));
        vd_store(w->first + k, time);
        vd_store(w->second + k, time - vd_draw_log(vd_load(w->second + k)));
    }
    for (int k = 0; k < w->n; k++) {
        double mean = w->mean[k];
        bool first = w->first[k] >= mean, second = w->second[k] >= mean;
        out[w->place[k]] = before + !first;
        w->place[kept] = w->place[k];
        w->mean[kept] = mean;
        w->time[kept] = w->second[k];
        kept += !(first | second);
    }
    w->n = kept;
}

/* td_draw_rejecting: another try. */
static inline void try_on(wave *w, double *out) {
    int kept = 0;
    for (int k = 0; k < w->n; k++) {
        const double two[2] = {w->first[k], w->second[k]};
        int place = w->place[k];
        double mean = w->mean[k];
        bool taken = td_draw_try(mean, two, out + place);
        w->place[kept] = place;
        w->mean[kept] = mean;
        kept += !taken;
    }
    w->n = kept;
}

/* n <= WAVE numbers. */
static inline void poisson_wave(double *out, const double *means, int n, uint64_t seed,
                                uint64_t counter, int blocks) {
    wave waits, tries;
    waits.n = tries.n = 0;
    memset(waits.place, 0, sizeof waits.place); /* lanes behind the last are worked out as well */
    memset(tries.place, 0, sizeof tries.place);
    for (int k = 0; k < n; k++) {
        if (!(means[k] < (double)INFINITY))
            out[k] = means[k];
        else
            join(means[k] >= 10 ? &tries : &waits, k, means[k]);
    }
    for (int step = 0; step < blocks && waits.n; step++) {
        draw_two(&waits, seed, counter + (uint64_t)step, blocks);
        wait_on(&waits, out, 2 * step);
    }
    for (int step = 0; step < blocks && tries.n; step++) {
        draw_two(&tries, seed, counter + (uint64_t)step, blocks);
        try_on(&tries, out);
    }
    for (int k = 0; k < waits.n; k++)
        out[waits.place[k]] = 2 * blocks;
    for (int k = 0; k < tries.n; k++)
        out[tries.place[k]] = floor(tries.mean[k]);
}

static inline void poisson(double *out, const double *means, int64_t n, uint64_t seed,
                           uint64_t counter, int blocks) {
    for (int64_t k = 0; k < n && n < FEW; k++)
        out[k] = td_draw_poisson(means[k], seed, counter + (uint64_t)(k * blocks), blocks);
    for (int64_t k = 0; k < n && n >= FEW; k += WAVE)
        poisson_wave(out + k, means + k, (int)(n - k < WAVE ? n - k : WAVE), seed,
                     counter + (uint64_t)(k * blocks), blocks);
}

#endif

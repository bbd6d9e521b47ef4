/* random.h: counter-based random numbers (Philox 4x32-10, Salmon et al., SC 2011).
 *
 * Element i of a draw depends on (seed, offset + i / 4, i % 4) alone, so that numbers do not depend
 * on the number of threads or the device. A generator is a seed and the next free counter.
 */
#ifndef TD_CORE_RANDOM_H
#define TD_CORE_RANDOM_H

#include "engine/core/status.h"

typedef struct td_generator {
    uint64_t seed;
    uint64_t offset; /* in blocks of four 32-bit numbers */
} td_generator;

/* The default generator: this process's, or on a worker's thread (worker.h) its own; guarded by the
 * functions below. */
void td_manual_seed(uint64_t seed);
uint64_t td_initial_seed(void);
/* All of its state, to come back to. */
td_generator td_get_default_generator(void);
void td_set_default_generator(td_generator state);

/* Reserve `blocks` counters of the generator (NULL: the default one): returns its seed and the
 * first counter of the draw. Thread-safe. */
void td_generator_reserve(td_generator *generator, uint64_t blocks, uint64_t *seed,
                          uint64_t *offset);

/* What a generator (NULL: the default one) has come to, and back to it. */
td_generator td_generator_get(const td_generator *generator);
void td_generator_set(td_generator *generator, td_generator state);

/* Four 32-bit numbers of one counter. */
void td_philox(uint64_t seed, uint64_t counter, uint32_t out[4]);

/* [0, 1) with 24 and 53 bits. */
static inline float td_uniform_float(uint32_t r) {
    return (float)(r >> 8) * 0x1p-24f;
}
static inline double td_uniform_double(uint32_t a, uint32_t b) {
    return (double)((((uint64_t)a << 32) | b) >> 11) * 0x1p-53;
}

#endif

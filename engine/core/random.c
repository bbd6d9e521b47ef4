/* random.c: Philox 4x32-10 and the default generator. */
#include "engine/core/draw_math.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* PyTorch's default seed; tide.seed() in Lua takes one from the clock. */
static td_generator default_generator = {.seed = 67280421310721u};

void td_manual_seed(uint64_t seed) {
    pthread_mutex_lock(&lock);
    default_generator = (td_generator){.seed = seed};
    pthread_mutex_unlock(&lock);
}

uint64_t td_initial_seed(void) {
    pthread_mutex_lock(&lock);
    uint64_t seed = default_generator.seed;
    pthread_mutex_unlock(&lock);
    return seed;
}

td_generator td_get_default_generator(void) {
    pthread_mutex_lock(&lock);
    td_generator state = default_generator;
    pthread_mutex_unlock(&lock);
    return state;
}

void td_set_default_generator(td_generator state) {
    pthread_mutex_lock(&lock);
    default_generator = state;
    pthread_mutex_unlock(&lock);
}

void td_generator_reserve(td_generator *generator, uint64_t blocks, uint64_t *seed,
                          uint64_t *offset) {
    td_generator *g = generator ? generator : &default_generator;
    pthread_mutex_lock(&lock);
    *seed = g->seed;
    *offset = g->offset;
    g->offset += blocks;
    pthread_mutex_unlock(&lock);
}

td_generator td_generator_get(const td_generator *generator) {
    pthread_mutex_lock(&lock);
    td_generator state = generator ? *generator : default_generator;
    pthread_mutex_unlock(&lock);
    return state;
}

void td_generator_set(td_generator *generator, td_generator state) {
    pthread_mutex_lock(&lock);
    *(generator ? generator : &default_generator) = state;
    pthread_mutex_unlock(&lock);
}

void td_philox(uint64_t seed, uint64_t counter, uint32_t out[4]) {
    td_philox_words(seed, counter, out);
}

/* random.c: Philox 4x32-10 and the default generator. */
#include "engine/core/random.h"

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
    uint32_t x[4] = {(uint32_t)counter, (uint32_t)(counter >> 32), 0, 0};
    uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t a = 0xD2511F53ull * x[0], b = 0xCD9E8D57ull * x[2];
        uint32_t x1 = x[1], x3 = x[3];
        x[0] = (uint32_t)(b >> 32) ^ x1 ^ key0;
        x[1] = (uint32_t)b;
        x[2] = (uint32_t)(a >> 32) ^ x3 ^ key1;
        x[3] = (uint32_t)a;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    for (int k = 0; k < 4; k++)
        out[k] = x[k];
}

/* random.c: Philox 4x32-10 and the default generator. */
#include "engine/core/draw_math.h"
#include "engine/core/modes.h"
#include "engine/core/worker.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* PyTorch's default seed; tide.seed() in Lua takes one from the clock. */
static td_generator default_generator = {.seed = 67280421310721u};

/* What was put off draws first. A failure is told by whoever put it off. */
static void settle(void) {
    td_status status = td_settle_pending();
    (void)status;
}

static td_generator *generator_or_default(td_generator *generator) {
    if (generator)
        return generator;
    return td_worker_current ? &td_worker_current->generator : &default_generator;
}

td_generator td_generator_get(const td_generator *generator) {
    settle();
    pthread_mutex_lock(&lock);
    td_generator state = *generator_or_default((td_generator *)(uintptr_t)generator);
    pthread_mutex_unlock(&lock);
    return state;
}

void td_generator_set(td_generator *generator, td_generator state) {
    settle();
    pthread_mutex_lock(&lock);
    *generator_or_default(generator) = state;
    pthread_mutex_unlock(&lock);
}

void td_manual_seed(uint64_t seed) {
    td_generator_set(NULL, (td_generator){.seed = seed});
}

uint64_t td_initial_seed(void) {
    return td_generator_get(NULL).seed;
}

td_generator td_get_default_generator(void) {
    return td_generator_get(NULL);
}

void td_set_default_generator(td_generator state) {
    td_generator_set(NULL, state);
}

void td_generator_reserve(td_generator *generator, uint64_t blocks, uint64_t *seed,
                          uint64_t *offset) {
    settle();
    pthread_mutex_lock(&lock);
    td_generator *g = generator_or_default(generator);
    *seed = g->seed;
    *offset = g->offset;
    g->offset += blocks;
    pthread_mutex_unlock(&lock);
}

void td_philox(uint64_t seed, uint64_t counter, uint32_t out[4]) {
    td_philox_words(seed, counter, out);
}

/* replay.c: see replay.h. Signatures are as good as random, so their first bits choose a set of
 * places and half of their bits tell them apart. */
#include "jupyter-kernel/replay.h"

#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

enum { SETS = 256, WAYS = 64, BYTES = 16 };

struct tk_replays {
    pthread_mutex_t lock;
    unsigned char next[SETS]; /* which of a set's places is taken next */
    unsigned char seen[SETS][WAYS][BYTES];
};

tk_replays *tk_replays_new(void) {
    tk_replays *replays = calloc(1, sizeof *replays);
    if (replays)
        pthread_mutex_init(&replays->lock, NULL);
    return replays;
}

void tk_replays_free(tk_replays *replays) {
    if (!replays)
        return;
    pthread_mutex_destroy(&replays->lock);
    free(replays);
}

bool tk_replays_add(tk_replays *replays, tk_frame signature) {
    unsigned char bytes[BYTES] = {0};
    size_t n = 0;
    if (signature.len != TK_SIGNATURE_LEN)
        return true;
    sodium_hex2bin(bytes, sizeof bytes, signature.data, 2 * sizeof bytes, NULL, &n, NULL);
    unsigned set = bytes[0] % SETS;
    pthread_mutex_lock(&replays->lock);
    bool known = false;
    for (int way = 0; !known && way < WAYS; way++)
        known = memcmp(replays->seen[set][way], bytes, sizeof bytes) == 0;
    if (!known) {
        memcpy(replays->seen[set][replays->next[set]], bytes, sizeof bytes);
        replays->next[set] = (unsigned char)((replays->next[set] + 1) % WAYS);
    }
    pthread_mutex_unlock(&replays->lock);
    return !known;
}

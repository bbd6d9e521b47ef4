/* ways.c: a table of shapes by their bytes. */
#include "engine/cuda/ways.h"

#include <stdint.h>
#include <string.h>

static uint64_t hash_of(const unsigned char *bytes, size_t n) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t k = 0; k < n; k++)
        hash = (hash ^ bytes[k]) * 0x100000001b3u;
    hash = (hash ^ hash >> 29) * 0xff51afd7ed558ccdu; /* what differs last counts as well */
    return hash >> 32;
}

void **td_cuda_ways_place(td_cuda_ways *ways, const void *shape, bool *known) {
    size_t n = ways->shape_bytes;
    struct td_cuda_kept *k = &ways->kept[hash_of(shape, n) % TD_CUDA_WAYS];
    *known = k->known && memcmp(k->shape, shape, n) == 0;
    k->known = true;
    memcpy(k->shape, shape, n);
    return &k->way;
}

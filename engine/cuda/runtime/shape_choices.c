/* shape_choices.c: a table of shapes by their bytes. */
#include "engine/cuda/runtime/shape_choices.h"

#include <stdint.h>
#include <string.h>

static uint64_t hash_of(const unsigned char *bytes, size_t n) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t k = 0; k < n; k++)
        hash = (hash ^ bytes[k]) * 0x100000001b3u;
    hash = (hash ^ hash >> 29) * 0xff51afd7ed558ccdu; /* what differs last counts as well */
    return hash >> 32;
}

static size_t set_of(const td_cuda_ways *ways, const void *shape) {
    return hash_of(shape, ways->shape_bytes) % TD_CUDA_WAY_SETS;
}

static bool holds(const td_cuda_ways *ways, const struct td_cuda_kept *k, const void *shape) {
    return k->asked && memcmp(k->shape, shape, ways->shape_bytes) == 0;
}

bool td_cuda_ways_known(const td_cuda_ways *ways, const void *shape) {
    const struct td_cuda_kept *set = ways->kept[set_of(ways, shape)];
    for (int k = 0; k < TD_CUDA_WAYS_OF_SET; k++)
        if (holds(ways, &set[k], shape))
            return true;
    return false;
}

void **td_cuda_ways_place(td_cuda_ways *ways, const void *shape, bool *known) {
    struct td_cuda_kept *set = ways->kept[set_of(ways, shape)], *place = set;
    *known = false;
    for (int k = 0; k < TD_CUDA_WAYS_OF_SET && !*known; k++) {
        *known = holds(ways, &set[k], shape);
        if (*known || set[k].asked < place->asked)
            place = &set[k];
    }
    place->asked = ++ways->asked;
    memcpy(place->shape, shape, ways->shape_bytes);
    return &place->way;
}

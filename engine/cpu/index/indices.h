/* indices.h: from an index, which counts from 0, from 1 or from the end, to a place from 0. */
#ifndef TD_CPU_INDEX_INDICES_H
#define TD_CPU_INDEX_INDICES_H

#include "engine/core/status.h"
#include "engine/cpu/isa/isa.h"

#include <stdbool.h>
#include <stdint.h>

/* How the indices of a dim count: from `base` on, or from the end, where they are negative. */
typedef struct td_counting {
    int64_t size, base; /* 0 or 1 */
} td_counting;

/* The place of an index; no index that is out of range has one below size (unsigned). */
static inline int64_t td_place_of(int64_t i, td_counting c) {
    return (int64_t)((uint64_t)i + ((uint64_t)(c.size + c.base) & (uint64_t)(i >> 63)) -
                     (uint64_t)c.base);
}

static inline bool td_is_place(int64_t place, td_counting c) {
    return (uint64_t)place < (uint64_t)c.size;
}

/* Do all of n indices count from the base, and are in range? Takes little more than reading them.
 */
static inline bool td_are_plain(const int64_t *index, int64_t n, td_counting c) {
    return td_cpu->places->are_plain(index, n, c.size, c.base);
}

/* Of n indices the first that is out of range, or n. */
static inline int64_t td_find_bad_index(const int64_t *index, int64_t n, td_counting c) {
    enum { BLOCK = 256 };
    for (int64_t k = 0; k < n; k += BLOCK) {
        int64_t end = n - k < BLOCK ? n : k + BLOCK;
        if (td_are_plain(index + k, end - k, c))
            continue;
        for (int64_t b = k; b < end; b++)
            if (!td_is_place(td_place_of(index[b], c), c))
                return b;
    }
    return n;
}

/* Names an index that is out of range as scripts do: from 1. */
static inline td_status td_fail_index(int64_t i, td_counting c, int dim) {
    if (i == 0 && c.base)
        return td_fail(TD_EINDEX, "index 0: indices count from 1 (PyTorch's 0 is 1)");
    return td_fail(TD_EINDEX, "index %lld is out of range for dim %d of size %lld",
                   (long long)(i < 0 ? i : i + 1 - c.base), dim + 1, (long long)c.size);
}

#endif

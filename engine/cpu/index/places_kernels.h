/* places_kernels.h: where elements stand that are not zero, whether indices are places, and what
 * stands there. */
#ifndef TD_CPU_INDEX_PLACES_KERNELS_H
#define TD_CPU_INDEX_PLACES_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TD_PLACES_MORE = 8 }; /* that may be written, and mean nothing, behind those found */

typedef struct td_places_kernels {
    /* first + k for each k < n with x[k] != 0, side by side: how many. `to` has room for n and
     * TD_PLACES_MORE. */
    int64_t (*find)(const uint8_t *x, int64_t n, int64_t first, int64_t *to);
    /* Is base <= index < base + size for each of n? */
    bool (*are_plain)(const int64_t *index, int64_t n, int64_t size, int64_t base);
    /* to[k] = from[index[k] - base] for each of n, elements of size bytes (1, 2, 4, 8), that do not
     * overlap; all are places. */
    void (*pick)(void *to, const void *from, const int64_t *index, int64_t base, int64_t n,
                 size_t size);
} td_places_kernels;

#endif

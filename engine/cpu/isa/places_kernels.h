/* places_kernels.h: where elements stand that are not zero. */
#ifndef TD_CPU_ISA_PLACES_KERNELS_H
#define TD_CPU_ISA_PLACES_KERNELS_H

#include <stdint.h>

enum { TD_PLACES_MORE = 8 }; /* that may be written, and mean nothing, behind those found */

typedef struct td_places_kernels {
    /* first + k for each k < n with x[k] != 0, side by side: how many. `to` has room for n and
     * TD_PLACES_MORE. */
    int64_t (*find)(const uint8_t *x, int64_t n, int64_t first, int64_t *to);
} td_places_kernels;

#endif

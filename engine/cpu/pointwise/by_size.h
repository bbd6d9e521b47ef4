/* by_size.h: moves of elements for which a dtype is no more than its size in bytes. */
#ifndef TD_CPU_POINTWISE_BY_SIZE_H
#define TD_CPU_POINTWISE_BY_SIZE_H

#include "engine/core/status.h"

#include <string.h>

/* MOVE(type) with the unsigned integer of a dtype's size. */
#define TD_BY_SIZE(size, MOVE)                                                                     \
    do {                                                                                           \
        switch (size) {                                                                            \
        case 1: {                                                                                  \
            MOVE(uint8_t)                                                                          \
        } break;                                                                                   \
        case 2: {                                                                                  \
            MOVE(uint16_t)                                                                         \
        } break;                                                                                   \
        case 4: {                                                                                  \
            MOVE(uint32_t)                                                                         \
        } break;                                                                                   \
        case 8: {                                                                                  \
            MOVE(uint64_t)                                                                         \
        } break;                                                                                   \
        }                                                                                          \
    } while (0)

/* Bytes of a row that are not worth a call. */
enum { TD_BY_ENDS = 64 };

/* A row of 1 to TD_BY_ENDS bytes, which don't overlap where it goes, by its two ends. */
static inline void td_move_short(char *to, const char *from, int64_t bytes) {
    struct {
        uint64_t part[4];
    } a, b;
#define MOVE_ENDS(size)                                                                            \
    memcpy(&a, from, size);                                                                        \
    memcpy(&b, from + bytes - (size), size);                                                       \
    memcpy(to, &a, size);                                                                          \
    memcpy(to + bytes - (size), &b, size)
    if (bytes >= 32) {
        MOVE_ENDS(32);
    } else if (bytes >= 16) {
        MOVE_ENDS(16);
    } else if (bytes >= 8) {
        MOVE_ENDS(8);
    } else if (bytes >= 4) {
        MOVE_ENDS(4);
    } else if (bytes >= 2) {
        MOVE_ENDS(2);
    } else {
        *to = *from;
    }
#undef MOVE_ENDS
}

#endif

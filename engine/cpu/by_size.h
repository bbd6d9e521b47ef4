/* by_size.h: moves of elements that need no more of a dtype than its size. */
#ifndef TD_CPU_BY_SIZE_H
#define TD_CPU_BY_SIZE_H

#include "engine/core/status.h"

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

#endif

/* keyed_places.h: what is sorted: a key and the place of its element in one integer, the key above
 * the place. No two are equal and equal keys compare by place, so any way of ordering such entries
 * is stable. Narrow ones have 32 bits for each, wide ones 64. */
#ifndef TD_CPU_ORDER_KEYED_PLACES_H
#define TD_CPU_ORDER_KEYED_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { TD_DIGIT = 11, TD_DIGITS = 1 << TD_DIGIT }; /* bits of a digit in `count` and `deal` */

typedef struct td_entries {
    size_t size;
    /* Entries of n keys whose places are first, first + 1, ... */
    void (*load)(void *e, const uint64_t *keys, int64_t first, int64_t n);
    /* Entries of n keys with these places. */
    void (*join)(void *e, const uint64_t *keys, const int64_t *places, int64_t n);
    void (*unload)(const void *e, int64_t n, uint64_t *keys, int64_t *places);
    /* In order, keys having so many bits: in e or in `room`, which is as large; the result says
     * where. `placed`: they stand in the order of their places. For what one thread sorts. */
    void *(*sort)(void *e, void *room, int64_t n, int bits, bool placed);
    /* The k least to the front, in no order, and e[k] in its place. k < n. */
    void (*part)(void *e, int64_t n, int64_t k);
    /* counts[digit]++, and e to to[at[digit]++], by the TD_DIGIT bits of keys at `shift`. */
    void (*count)(const void *e, int64_t n, int shift, int64_t *counts);
    void (*deal)(const void *e, int64_t n, int shift, int64_t *at, void *to);
} td_entries;

extern const td_entries td_narrow_entries, td_wide_entries;

/* Those for lines of n keys of so many bits. */
static inline const td_entries *td_entries_for(int bits, int64_t n) {
    return bits <= 32 && n <= UINT32_MAX ? &td_narrow_entries : &td_wide_entries;
}

/* A few keys, or many that are nearly in order. */
static inline void td_sort_keys(uint64_t *keys, int64_t n) {
    for (int64_t k = 1; k < n; k++) {
        uint64_t moved = keys[k];
        int64_t to = k;
        for (; to > 0 && keys[to - 1] > moved; to--)
            keys[to] = keys[to - 1];
        keys[to] = moved;
    }
}

/* Counts become sums of those before them, all of which fit one. n is a multiple of as many as a
 * word has, which are done together: the product has in each the sum of those up to it. */
#define TD_DEFINE_BEGIN(name, type)                                                                \
    static inline void name(type *counts, int64_t n) {                                             \
        enum { BITS = 8 * sizeof(type), TOGETHER = 64 / BITS };                                    \
        const uint64_t ones = ~(uint64_t)0 / (type) ~(type)0;                                      \
        uint64_t sum = 0, word;                                                                    \
        for (int64_t at = 0; at < n; at += TOGETHER) {                                             \
            memcpy(&word, counts + at, sizeof word);                                               \
            word *= ones;                                                                          \
            uint64_t begins = (word << BITS) + sum * ones;                                         \
            sum += word >> (64 - BITS);                                                            \
            memcpy(counts + at, &begins, sizeof begins);                                           \
        }                                                                                          \
    }
TD_DEFINE_BEGIN(td_begin_bytes, uint8_t)
TD_DEFINE_BEGIN(td_begin_shorts, uint16_t)
#undef TD_DEFINE_BEGIN

#endif

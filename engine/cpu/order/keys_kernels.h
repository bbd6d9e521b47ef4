/* keys_kernels.h: elements as unsigned numbers in their order, and back (cpu/order/keys.h), and
 * what is asked of many such numbers at once. */
#ifndef TD_CPU_ORDER_KEYS_KERNELS_H
#define TD_CPU_ORDER_KEYS_KERNELS_H

#include "engine/core/dtype.h"

enum { TD_SETTLE_MORE = 9 };

/* By dtype. `flip` has all bits of a key set where the order is the other way round, else none. */
typedef struct td_keys_kernels {
    void (*read[TD_DTYPE_COUNT])(const void *x, int64_t n, uint64_t flip, uint64_t *keys);
    void (*write[TD_DTYPE_COUNT])(const uint64_t *keys, const int64_t *index, int64_t n,
                                  uint64_t flip, const void *from, void *x);
    /* The least and the greatest of n > 0 keys. */
    void (*extremes)(const uint64_t *keys, int64_t n, uint64_t *least, uint64_t *most);
    /* Narrow entries (cpu/order/keyed_places.h) of (keys - least) >> shift, which have 32 bits at
     * most, with the places 0, 1, 2, ...; e may be `keys`. */
    void (*enter)(const uint64_t *keys, int64_t n, uint64_t least, int shift, uint64_t *e);
    /* How many of n keys are less than `low`, and how many are not above `high`. */
    void (*count)(const uint64_t *keys, int64_t n, uint64_t low, uint64_t high, int64_t *less,
                  int64_t *upto);
    /* Those of n keys from `low` to `high`, in their order: how many. `to` has room for n, and may
     * be `keys`. NULL where that takes longer than parting keys one by one. */
    int64_t (*keep)(const uint64_t *keys, int64_t n, uint64_t low, uint64_t high, uint64_t *to);
    /* Those of n keys that are less than `limit`, and their places, which count from `first`: how
     * many. There is room for n in both. */
    int64_t (*below)(const uint64_t *keys, int64_t n, uint64_t limit, int64_t first, uint64_t *to,
                     int64_t *places);
    /* n numbers, all different, in order, if each is less than `rounds` places from its own among
     * those; TD_SETTLE_MORE numbers behind them are written as well. NULL where vectors of 64 bits
     * are not compared. */
    void (*settle)(uint64_t *e, int64_t n, int rounds);
    /* What n numbers have in their `low` lowest bits. Returns whether the higher ones only rise. */
    bool (*split)(const uint64_t *e, int64_t n, int low, int64_t *out);
    /* Each column of n rows of `width` numbers in ascending order. `order_wide`: of keys, equal
     * ones by their places, which lie likewise. NULL where vectors of 64 bits are not compared. */
    void (*order)(int64_t *e, int64_t n, int64_t width);
    void (*order_wide)(int64_t *keys, int64_t *places, int64_t n, int64_t width);
} td_keys_kernels;

#endif

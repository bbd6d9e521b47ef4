/* keys.h: elements of any dtype as unsigned integers in the same order, which sorts compare. */
#ifndef TD_CPU_ORDER_KEYS_H
#define TD_CPU_ORDER_KEYS_H

#include "engine/cpu/isa/isa.h"

/* Elements whose keys are made at a time. */
enum { TD_KEYS = 1024 };

static inline int td_key_bits(td_dtype dtype) {
    return 8 * (int)td_dtype_size(dtype);
}

/* The key of NaN among ascending keys. */
static inline uint64_t td_key_nan(td_dtype dtype) {
    return ~(uint64_t)0 >> (64 - td_key_bits(dtype));
}

/* The keys of n elements that lie side by side: less for less, the same for -0 and 0 and for all
 * NaN, whose key is the greatest; `descending` the other way round. They fill td_key_bits(dtype)
 * bits. */
static inline void td_keys_read(td_dtype dtype, const void *x, int64_t n, bool descending,
                                uint64_t *keys) {
    td_cpu->keys->read[dtype](x, n, descending ? td_key_nan(dtype) : 0, keys);
}

/* Elements that have these keys, side by side. `from` is the line of elements that the keys were
 * made of and index where in it they stood: zeros and NaN are fetched from there. */
static inline void td_keys_write(td_dtype dtype, const uint64_t *keys, const int64_t *index,
                                 int64_t n, bool descending, const void *from, void *x) {
    td_cpu->keys->write[dtype](keys, index, n, descending ? td_key_nan(dtype) : 0, from, x);
}

#endif

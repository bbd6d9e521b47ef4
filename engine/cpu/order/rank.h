/* rank.h: selection: the key of a given rank among unsorted keys, and its place. */
#ifndef TD_CPU_ORDER_RANK_H
#define TD_CPU_ORDER_RANK_H

#include <stdint.h>

/* The key that `rank` of n others go before. `room` is as large as keys, which it may not be. */
uint64_t td_key_of_rank(const uint64_t *keys, int64_t n, int64_t rank, uint64_t *room);

/* How often a key stands among n. */
int64_t td_count_key(const uint64_t *keys, int64_t n, uint64_t key);

/* Where a key stands for the nth time, from 0; n: not so often. */
int64_t td_place_of_key(const uint64_t *keys, int64_t n, uint64_t key, int64_t nth);

#endif

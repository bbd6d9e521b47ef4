/* keys.cuh: elements as unsigned numbers in their order, and back; and the order of a tile of keys
 * by one block, equal ones as they stand. */
#ifndef TD_CUDA_ORDER_KEYS_CUH
#define TD_CUDA_ORDER_KEYS_CUH

#include "engine/cuda/runtime/groups.cuh"
#include "engine/cuda/order/sort_code.h"

/* ---- keys: engine/cpu/order/keys.h ---- */

__device__ static inline unsigned long long td_load_bits(int size, const void *x, long long at) {
    switch (size) {
    case 1: return ((const unsigned char *)x)[at];
    case 2: return ((const unsigned short *)x)[at];
    case 4: return ((const unsigned int *)x)[at];
    default: return ((const unsigned long long *)x)[at];
    }
}

__device__ static inline void td_store_bits(int size, void *x, long long at,
                                            unsigned long long bits) {
    switch (size) {
    case 1: ((unsigned char *)x)[at] = (unsigned char)bits; break;
    case 2: ((unsigned short *)x)[at] = (unsigned short)bits; break;
    case 4: ((unsigned int *)x)[at] = (unsigned int)bits; break;
    default: ((unsigned long long *)x)[at] = bits;
    }
}

template <typename K> __device__ static inline K td_key_of(const td_cu_keys &f, K bits) {
    K sign = (K)f.sign, all = (K)f.all, key = bits ^ sign;
    if (f.infinity) {
        K magnitude = bits & ~sign & all;
        key = bits & sign ? ~bits & all : bits | sign;
        key = magnitude == 0 ? sign : key;
        key = magnitude > (K)f.infinity ? all : key;
    }
    return key ^ (K)f.flip;
}

/* The bits of the element with a key that only one has; the key of zeros or of NaN says nothing of
 * their bits. */
template <typename K>
__device__ static inline bool td_bits_of(const td_cu_keys &f, K key, K *bits) {
    K sign = (K)f.sign, all = (K)f.all;
    key ^= (K)f.flip;
    *bits = f.infinity == 0 || key & sign ? key ^ sign : ~key & all;
    return f.infinity == 0 || (key != sign && key != all);
}

template <typename K>
__device__ static inline K td_load_key(const td_cu_keys &f, const void *x, long long at) {
    return td_key_of<K>(f, (K)td_load_bits(f.size, x, at));
}

/* Which element of the order of n, of which so many are NaN, is wanted; NaN are the last, so that
 * the first of them stands behind all others. */
__device__ static inline long long td_wanted_rank(int selection, long long rank, long long n,
                                                  long long nans) {
    if (selection == TD_CU_SELECT_RANK)
        return rank;
    if (selection == TD_CU_SELECT_MEDIAN)
        return nans ? n - nans : (n - 1) / 2;
    return nans < n ? (n - nans - 1) / 2 : 0;
}

/* ---- the order of a tile ---- */

/* Keys with their places: less keys go before, and of equal ones those that stand before. */
template <typename K> struct td_keyed {
    K *keys;
    unsigned int *places;
    __device__ bool after(int a, int b) const {
        return keys[a] > keys[b] || (keys[a] == keys[b] && places[a] > places[b]);
    }
    __device__ void swap(int a, int b) const {
        K key = keys[a];
        unsigned int place = places[a];
        keys[a] = keys[b];
        keys[b] = key;
        places[a] = places[b];
        places[b] = place;
    }
};

/* Orders stretches of `width`, a power of two, of a tile, by Batcher's network. All of the block's
 * threads come here, and what they wrote to the tile before has been waited for. Elements up to 32
 * apart are one warp's from step to step. */
template <int TILE, typename Order>
__device__ static inline void td_order_tile(const Order &order, int width) {
    static_assert(TILE / 2 % TD_GROUP_BLOCK == 0, "each thread has as many pairs");
    for (int size = 2; size <= width; size *= 2)
        for (int by = size / 2; by > 0; by /= 2) {
            for (int p = threadIdx.x; p < TILE / 2; p += TD_GROUP_BLOCK) {
                int low = 2 * p - (p & (by - 1));
                bool ascending = (low & size & (width - 1)) == 0;
                if (order.after(low, low + by) == ascending)
                    order.swap(low, low + by);
            }
            if (by > 32 || (by == 1 && size > 32))
                __syncthreads();
            else
                __syncwarp();
        }
    __syncthreads();
}

#endif

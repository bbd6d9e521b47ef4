/* integers.h: what the integer rows of primitives.def are written with, for loops and for numbers.
 */
#ifndef TD_OPS_LANGUAGE_INTEGERS_H
#define TD_OPS_LANGUAGE_INTEGERS_H

#include <stdint.h>

#ifdef __CUDACC__ /* for kernels as well */
#define TD_INTEGERS __host__ __device__ static inline
#else
#define TD_INTEGERS static inline
#endif

/* a to the b for integers, wrapping; a negative power of anything but 1 and -1 is 0. */
TD_INTEGERS int64_t integer_power(int64_t a, int64_t b) {
    uint64_t result = 1, base = (uint64_t)a;
    if (b < 0)
        return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
    for (; b; b >>= 1, base *= base)
        if (b & 1)
            result *= base;
    return (int64_t)result;
}

/* The greatest common divisor, and the least common multiple, which may wrap. */
TD_INTEGERS int64_t integer_gcd(int64_t a, int64_t b) {
    uint64_t x = a < 0 ? 0 - (uint64_t)a : (uint64_t)a, y = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;
    while (y) {
        uint64_t rest = x % y;
        x = y;
        y = rest;
    }
    return (int64_t)x;
}
TD_INTEGERS int64_t integer_lcm(int64_t a, int64_t b) {
    uint64_t x = a < 0 ? 0 - (uint64_t)a : (uint64_t)a, y = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;
    uint64_t divisor = (uint64_t)integer_gcd(a, b);
    int64_t multiple = divisor ? (int64_t)(x / divisor * y) : 0;
    return multiple < 0 ? (int64_t)(0 - (uint64_t)multiple) : multiple;
}

#undef TD_INTEGERS

#endif

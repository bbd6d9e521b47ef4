/* decimal.c: the double nearest to m * 10^power (number.h): by one multiplication or division where
 * both factors are doubles (W. D. Clinger, How to read floating point numbers accurately, 1990),
 * otherwise by a product of 64 and 128 bits (D. Lemire, Number parsing at a gigabyte per second,
 * 2021; its proof that no third word is needed: N. Mushtak and D. Lemire, Fast number parsing
 * without fallback, 2023). Powers beyond those of real data are left to the C library, so that the
 * table is small and is worked out at the first call.
 */
#include "engine/core/number.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

__extension__ typedef unsigned __int128 wide;

enum {
    MOST = 54,      /* 5^54 and twice a remainder of it fit 128 bits */
    EXACT = 22,     /* 10^22 is the last power of ten that is a double */
    ROUNDED = 27,   /* up to here a reciprocal is rounded up: 5^27 is the last power below 2^63 */
    TIES_FROM = -4, /* m * 10^power may lie halfway between two doubles for these powers only */
    TIES_TO = 23
};

/* 5^power, its highest bit at bit 127, by power + MOST; of negative powers cut. */
static wide powers[2 * MOST + 1];
static pthread_once_t powers_once = PTHREAD_ONCE_INIT;
static atomic_bool powers_made; /* spares the call */

static int bit_length(wide x) {
    uint64_t high = (uint64_t)(x >> 64);
    return high ? 128 - __builtin_clzll(high) : x ? 64 - __builtin_clzll((uint64_t)x) : 0;
}

/* The first 128 bits of 1 / p. */
static wide reciprocal(wide p) {
    wide rest = 1, found = 0;
    for (int k = bit_length(p) + 127; k > 0; k--) {
        rest <<= 1;
        found <<= 1;
        if (rest >= p) {
            rest -= p;
            found |= 1;
        }
    }
    return found;
}

static void make_powers(void) {
    wide p = 1;
    for (int k = 0; k <= MOST; k++, p *= 5) {
        powers[MOST + k] = p << (128 - bit_length(p));
        if (k > 0)
            powers[MOST - k] = reciprocal(p) + (k <= ROUNDED);
    }
    atomic_store_explicit(&powers_made, true, memory_order_release);
}

/* The first 128 bits of m * 5^power, m with its highest bit set. */
static wide multiply(uint64_t m, int power) {
    wide p = powers[MOST + power], first = (wide)m * (uint64_t)(p >> 64);
    if (((uint64_t)(first >> 64) & 0x1FF) == 0x1FF) /* a carry might reach the 55 bits that count */
        first += (wide)m * (uint64_t)p >> 64;
    return first;
}

static bool by_product(uint64_t m, int power, double *value) {
    if (!atomic_load_explicit(&powers_made, memory_order_acquire))
        pthread_once(&powers_once, make_powers);
    int zeros = __builtin_clzll(m);
    wide product = multiply(m << zeros, power);
    uint64_t high = (uint64_t)(product >> 64), low = (uint64_t)product;
    if (low == UINT64_MAX && (power < -ROUNDED || power > MOST))
        return false;
    int upper = (int)(high >> 63), shift = upper + 64 - 52 - 3;
    uint64_t bits = high >> shift;
    /* The binary exponent of 10^power is floor(power * log2(10)). */
    int64_t exponent = ((217706 * (int64_t)power) >> 16) + 63 + upper - zeros + 1023;
    if (exponent <= 0)
        return false;
    bool halfway = low <= 1 && power >= TIES_FROM && power <= TIES_TO && (bits & 3) == 1;
    if (halfway && bits << shift == high)
        bits &= ~(uint64_t)1;
    bits = (bits + (bits & 1)) >> 1;
    if (bits >> 53) {
        bits = (uint64_t)1 << 52;
        exponent++;
    }
    if (exponent >= 0x7FF)
        return false;
    bits = (bits & ~((uint64_t)1 << 52)) | (uint64_t)exponent << 52;
    memcpy(value, &bits, sizeof bits);
    return true;
}

bool td_number_scale(uint64_t m, int64_t power, double *value) {
    static const double tens[EXACT + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                           1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                           1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (m >> 53 == 0 && power >= -EXACT && power <= EXACT) {
        *value = power < 0 ? (double)m / tens[-power] : (double)m * tens[power];
        return true;
    }
    if (m == 0) {
        *value = 0;
        return true;
    }
    return power >= -MOST && power <= MOST && by_product(m, (int)power, value);
}

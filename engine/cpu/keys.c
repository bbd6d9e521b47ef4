/* keys.c: elements as unsigned numbers in their order, and back. */
#include "engine/cpu/keys.h"

#include <string.h>

#define DEFINE_INTEGERS(NAME, type, SIGN)                                                          \
    static void read_##NAME(const void *data, int64_t n, uint64_t flip, uint64_t *keys) {          \
        const type *x = data;                                                                      \
        for (int64_t k = 0; k < n; k++)                                                            \
            keys[k] = (uint64_t)(type)(x[k] ^ SIGN) ^ flip;                                        \
    }                                                                                              \
    static void write_##NAME(const uint64_t *keys, const int64_t *index, int64_t n, uint64_t flip, \
                             const void *from, void *data) {                                       \
        type *x = data;                                                                            \
        (void)index;                                                                               \
        (void)from;                                                                                \
        for (int64_t k = 0; k < n; k++)                                                            \
            x[k] = (type)((type)(keys[k] ^ flip) ^ SIGN);                                          \
    }

/* INF: the bits of infinity, beyond which the magnitudes are NaN. */
#define DEFINE_FLOATS(NAME, type, SIGN, INF)                                                       \
    static inline type key_##NAME(type bits) {                                                     \
        type magnitude = bits & (type)~SIGN;                                                       \
        type key = bits & SIGN ? (type)~bits : bits | SIGN;                                        \
        key = magnitude == 0 ? SIGN : key;                                                         \
        return magnitude > INF ? (type) ~(type)0 : key;                                            \
    }                                                                                              \
    static void read_##NAME(const void *data, int64_t n, uint64_t flip, uint64_t *keys) {          \
        const type *x = data;                                                                      \
        for (int64_t k = 0; k < n; k++)                                                            \
            keys[k] = (uint64_t)key_##NAME(x[k]) ^ flip;                                           \
    }                                                                                              \
    static void write_##NAME(const uint64_t *keys, const int64_t *index, int64_t n, uint64_t flip, \
                             const void *from, void *data) {                                       \
        type *x = data;                                                                            \
        const type *old = from;                                                                    \
        for (int64_t k = 0; k < n; k++) {                                                          \
            type key = (type)(keys[k] ^ flip);                                                     \
            if (__builtin_expect(key == SIGN || key == (type) ~(type)0, 0))                        \
                x[k] = old[index[k]];                                                              \
            else                                                                                   \
                x[k] = key & SIGN ? key ^ SIGN : (type)~key;                                       \
        }                                                                                          \
    }

DEFINE_INTEGERS(U8, uint8_t, 0)
DEFINE_INTEGERS(I8, uint8_t, 0x80)
DEFINE_INTEGERS(I16, uint16_t, 0x8000)
DEFINE_INTEGERS(I32, uint32_t, 0x80000000u)
DEFINE_INTEGERS(I64, uint64_t, 0x8000000000000000u)
DEFINE_FLOATS(F16, uint16_t, 0x8000, 0x7C00)
DEFINE_FLOATS(BF16, uint16_t, 0x8000, 0x7F80)
DEFINE_FLOATS(F32, uint32_t, 0x80000000u, 0x7F800000u)
DEFINE_FLOATS(F64, uint64_t, 0x8000000000000000u, 0x7FF0000000000000u)

typedef struct key_functions {
    void (*read)(const void *x, int64_t n, uint64_t flip, uint64_t *keys);
    void (*write)(const uint64_t *keys, const int64_t *index, int64_t n, uint64_t flip,
                  const void *from, void *x);
} key_functions;

#define ROW(NAME, as) [TD_##NAME] = {read_##as, write_##as}
static const key_functions functions[TD_DTYPE_COUNT] = {
    ROW(BOOL, U8), ROW(U8, U8),   ROW(I8, I8),     ROW(I16, I16), ROW(I32, I32),
    ROW(I64, I64), ROW(F16, F16), ROW(BF16, BF16), ROW(F32, F32), ROW(F64, F64)};
#undef ROW

static uint64_t flip_of(td_dtype dtype, bool descending) {
    return descending ? td_key_nan(dtype) : 0;
}

void td_keys_read(td_dtype dtype, const void *x, int64_t n, bool descending, uint64_t *keys) {
    functions[dtype].read(x, n, flip_of(dtype, descending), keys);
}

void td_keys_write(td_dtype dtype, const uint64_t *keys, const int64_t *index, int64_t n,
                   bool descending, const void *from, void *x) {
    functions[dtype].write(keys, index, n, flip_of(dtype, descending), from, x);
}

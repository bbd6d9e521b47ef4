/* keys_kernels.c: elements as unsigned numbers in their order, and back, vectorised by the
 * compiler. */
#include "engine/cpu/isa/keys_kernels.h"

#include "engine/cpu/isa/isa_symbol.h"

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

#define ROW(form, NAME, as) [TD_##NAME] = form##_##as
#define ROWS(form)                                                                                 \
    {                                                                                              \
        ROW(form, BOOL, U8), ROW(form, U8, U8), ROW(form, I8, I8), ROW(form, I16, I16),            \
            ROW(form, I32, I32), ROW(form, I64, I64), ROW(form, F16, F16), ROW(form, BF16, BF16),  \
            ROW(form, F32, F32), ROW(form, F64, F64),                                              \
    }

extern const td_keys_kernels TD_ISA_SYMBOL(td_keys_kernels);
const td_keys_kernels TD_ISA_SYMBOL(td_keys_kernels) = {.read = ROWS(read), .write = ROWS(write)};

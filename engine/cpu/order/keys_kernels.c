/* keys_kernels.c: elements as unsigned numbers in their order, and back, vectorised by the
 * compiler, and what is asked of such keys, without a branch that waits for one. */
#include "engine/cpu/order/keys_kernels.h"

#include "engine/cpu/isa/isa_symbol.h"

#include <string.h>

#if defined(TD_ISA_avx512)
#include <immintrin.h>
#endif

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

/* ---- keys ---- */

static void find_extremes(const uint64_t *keys, int64_t n, uint64_t *least, uint64_t *most) {
    uint64_t low = keys[0], high = keys[0];
    for (int64_t k = 1; k < n; k++) {
        low = keys[k] < low ? keys[k] : low;
        high = keys[k] > high ? keys[k] : high;
    }
    *least = low;
    *most = high;
}

static void enter(const uint64_t *keys, int64_t n, uint64_t least, int shift, uint64_t *e) {
    for (int64_t k = 0; k < n; k++)
        e[k] = (keys[k] - least) >> shift << 32 | (uint64_t)k;
}

static void count_keys(const uint64_t *keys, int64_t n, uint64_t low, uint64_t high, int64_t *less,
                       int64_t *upto) {
    int64_t below = 0, above = 0;
    for (int64_t k = 0; k < n; k++) {
        below += keys[k] < low;
        above += keys[k] > high;
    }
    *less = below;
    *upto = n - above;
}

#if defined(TD_ISA_avx512) || defined(TD_ISA_avx2)
static int64_t keep(const uint64_t *keys, int64_t n, uint64_t low, uint64_t high, uint64_t *to) {
    int64_t count = 0, k = 0;
#if defined(TD_ISA_avx512)
    const __m512i lows = _mm512_set1_epi64((long long)low);
    const __m512i highs = _mm512_set1_epi64((long long)high);
    for (; k + 8 <= n; k += 8) { /* count <= k: what is written over has been read */
        __m512i key = _mm512_loadu_si512(keys + k);
        __mmask8 kept =
            _mm512_mask_cmple_epu64_mask(_mm512_cmpge_epu64_mask(key, lows), key, highs);
        _mm512_storeu_si512(to + count, _mm512_maskz_compress_epi64(kept, key));
        count += __builtin_popcount(kept);
    }
#endif
    for (; k < n; k++) {
        uint64_t key = keys[k];
        to[count] = key;
        count += key - low <= high - low;
    }
    return count;
}
#define KEEP keep
#else
#define KEEP NULL /* no comparison of vectors of 64 bits */
#endif

static int64_t below(const uint64_t *keys, int64_t n, uint64_t limit, int64_t first, uint64_t *to,
                     int64_t *places) {
    int64_t count = 0, k = 0;
#if defined(TD_ISA_avx512)
    const __m512i limits = _mm512_set1_epi64((long long)limit);
    const __m512i lanes = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
    for (; k + 8 <= n; k += 8) {
        __m512i key = _mm512_loadu_si512(keys + k);
        __mmask8 less = _mm512_cmplt_epu64_mask(key, limits);
        if (less == 0) /* as nearly always, once the first few have been found */
            continue;
        __m512i place = _mm512_add_epi64(_mm512_set1_epi64(first + k), lanes);
        _mm512_storeu_si512(to + count, _mm512_maskz_compress_epi64(less, key));
        _mm512_storeu_si512(places + count, _mm512_maskz_compress_epi64(less, place));
        count += __builtin_popcount(less);
    }
#endif
    for (; k < n; k++) {
        uint64_t key = keys[k];
        to[count] = key;
        places[count] = first + k;
        count += key < limit;
    }
    return count;
}

/* ---- short lines ---- */

#if defined(TD_ISA_avx512) || defined(TD_ISA_avx2)
/* EXCHANGE(low, high) for the pairs of n rows that Batcher's network compares, in its order. */
#define ODD_EVEN_MERGES(n, EXCHANGE)                                                               \
    for (int64_t p = 1; p < (n); p *= 2)                                                           \
        for (int64_t k = p; k > 0; k /= 2)                                                         \
            for (int64_t j = k % p; j + k < (n); j += 2 * k)                                       \
                for (int64_t i = j; i < j + k && i + k < (n); i++)                                 \
                    if (((i ^ (i + k)) & -(2 * p)) == 0)                                           \
                        EXCHANGE(i, i + k);

static inline void exchange(int64_t *restrict low, int64_t *restrict high, int64_t width) {
    for (int64_t c = 0; c < width; c++) {
        int64_t a = low[c], b = high[c];
        low[c] = a < b ? a : b;
        high[c] = a < b ? b : a;
    }
}

static void order(int64_t *e, int64_t n, int64_t width) {
#define EXCHANGE(i, k) exchange(e + (i)*width, e + (k)*width, width)
    ODD_EVEN_MERGES(n, EXCHANGE)
#undef EXCHANGE
}

static inline void exchange_wide(int64_t *restrict low, int64_t *restrict low_place,
                                 int64_t *restrict high, int64_t *restrict high_place,
                                 int64_t width) {
    for (int64_t c = 0; c < width; c++) {
        int64_t a = low[c], b = high[c], p = low_place[c], q = high_place[c];
        bool stays = (a < b) | ((a == b) & (p < q));
        low[c] = stays ? a : b;
        high[c] = stays ? b : a;
        low_place[c] = stays ? p : q;
        high_place[c] = stays ? q : p;
    }
}

static void order_wide(int64_t *keys, int64_t *places, int64_t n, int64_t width) {
#define EXCHANGE(i, k)                                                                             \
    exchange_wide(keys + (i)*width, places + (i)*width, keys + (k)*width, places + (k)*width, width)
    ODD_EVEN_MERGES(n, EXCHANGE)
#undef EXCHANGE
}

#if defined(TD_ISA_avx512)
enum { LANES = 8 };
static inline void exchange_beside(uint64_t *e) {
    __m512i own = _mm512_loadu_si512(e), other = _mm512_permutex_epi64(own, 0xB1);
    __m512i low = _mm512_min_epu64(own, other);
    _mm512_storeu_si512(e, _mm512_mask_max_epu64(low, 0xAA, own, other));
}
#else
enum { LANES = 4 };
static inline void exchange_beside(uint64_t *e) {
    typedef uint64_t lanes __attribute__((vector_size(32)));
    const lanes odd = {0, ~0ull, 0, ~0ull};
    lanes own, other;
    memcpy(&own, e, sizeof own);
    other = __builtin_shufflevector(own, own, 1, 0, 3, 2);
    const lanes moves = (lanes)(own > other) ^ odd;
    own = (own & ~moves) | (other & moves);
    memcpy(e, &own, sizeof own);
}
#endif

/* Neighbours are exchanged, now those at even places with the ones behind them, now those at odd
 * ones: what is near its place gets there without a branch that waits for a number. */
static void settle(uint64_t *e, int64_t n, int rounds) {
    for (int k = 0; k < TD_SETTLE_MORE; k++)
        e[n + k] = ~(uint64_t)0;
    for (int round = 0; round < rounds; round++)
        for (int64_t k = round % 2; k < n; k += LANES)
            exchange_beside(e + k);
}
#define ORDER order, .order_wide = order_wide, .settle = settle
#else
#define ORDER NULL
#endif

static bool split(const uint64_t *e, int64_t n, int low, int64_t *out) {
    const uint64_t mask = ((uint64_t)1 << low) - 1;
    int64_t rises = n > 0 ? -1 : 0;
    for (int64_t k = 1; k < n; k++)
        rises &= (int64_t)(e[k - 1] >> low) - (int64_t)(e[k] >> low);
    for (int64_t k = 0; k < n; k++)
        out[k] = (int64_t)(e[k] & mask);
    return rises < 0 || n == 0;
}

extern const td_keys_kernels TD_ISA_SYMBOL(td_keys_kernels);
const td_keys_kernels TD_ISA_SYMBOL(td_keys_kernels) = {
    .read = ROWS(read),
    .write = ROWS(write),
    .extremes = find_extremes,
    .enter = enter,
    .count = count_keys,
    .keep = KEEP,
    .below = below,
    .order = ORDER,
    .split = split,
};

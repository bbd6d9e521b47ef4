/* places_kernels.c: three loops without data-dependent branches: the places of nonzero elements,
 * whether all of some indices are in range, and the elements at given places. */
#include "engine/cpu/index/places_kernels.h"

#include "engine/cpu/isa/isa_symbol.h"
#include "engine/cpu/pointwise/by_size.h"

#if defined(TD_ISA_avx512) || defined(TD_ISA_avx2)
#include <immintrin.h>
#endif

static int64_t find(const uint8_t *x, int64_t n, int64_t first, int64_t *to) {
    int64_t count = 0, k = 0;
#if defined(TD_ISA_avx512)
    const __m512i eight = _mm512_set1_epi64(8);
    __m512i places =
        _mm512_add_epi64(_mm512_set1_epi64(first), _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0));
    for (; k + 64 <= n; k += 64) {
        __m512i bytes = _mm512_loadu_si512(x + k);
        uint64_t marks = _mm512_test_epi8_mask(bytes, bytes);
        for (int part = 0; part < 8; part++, marks >>= 8) {
            __m512i kept = _mm512_maskz_compress_epi64((__mmask8)marks, places);
            _mm512_storeu_si512(to + count, kept);
            count += __builtin_popcount((uint8_t)marks);
            places = _mm512_add_epi64(places, eight);
        }
    }
#elif defined(TD_ISA_avx2)
    /* Which of four are meant, a byte each. */
    static const uint32_t kept[16] = {0,      0,        1,        0x0100,    2,      0x0200,
                                      0x0201, 0x020100, 3,        0x0300,    0x0301, 0x030100,
                                      0x0302, 0x030200, 0x030201, 0x03020100};
    for (; k + 32 <= n; k += 32) {
        __m256i bytes = _mm256_loadu_si256((const __m256i *)(const void *)(x + k));
        __m256i none = _mm256_cmpeq_epi8(bytes, _mm256_setzero_si256());
        uint32_t marks = ~(uint32_t)_mm256_movemask_epi8(none);
        for (int part = 0; part < 32; part += 4, marks >>= 4) {
            __m256i at = _mm256_cvtepu8_epi64(_mm_cvtsi32_si128((int)kept[marks & 15]));
            at = _mm256_add_epi64(at, _mm256_set1_epi64x(first + k + part));
            _mm256_storeu_si256((__m256i *)(void *)(to + count), at);
            count += __builtin_popcount(marks & 15);
        }
    }
#endif
    for (; k < n; k++) {
        to[count] = first + k;
        count += x[k] != 0;
    }
    return count;
}

/* The sign says of each place whether it is below 0 or above the last: no comparison, so that it
 * takes little more than reading them in vectors of any set. */
static bool are_plain(const int64_t *index, int64_t n, int64_t size, int64_t base) {
    uint64_t signs = 0;
    for (int64_t k = 0; k < n; k++) {
        uint64_t place = (uint64_t)index[k] - (uint64_t)base;
        signs |= place | ((uint64_t)size - 1 - place);
    }
    return (int64_t)signs >= 0;
}

/* ---- elements at their places ---- */

/* How many of n elements, from the first on, were taken by instructions that load several places
 * at once. More of those that wait for memory are under way than by one load for each, whose
 * instructions fill the core's window: of 1e6 places in 8 MB two thirds of the time. */
static int64_t pick_words(uint32_t *to, const uint32_t *from, const int64_t *index, int64_t n) {
    int64_t k = 0;
    (void)to, (void)from, (void)index, (void)n;
#if defined(TD_ISA_avx512)
    for (; k + 8 <= n; k += 8) {
        __m256i x = _mm512_i64gather_epi32(_mm512_loadu_si512(index + k), from, 4);
        _mm256_storeu_si256((__m256i *)(void *)(to + k), x);
    }
#elif defined(TD_ISA_avx2)
    for (; k + 4 <= n; k += 4) {
        __m256i places = _mm256_loadu_si256((const __m256i *)(const void *)(index + k));
        __m128i x = _mm256_i64gather_epi32((const int *)(const void *)from, places, 4);
        _mm_storeu_si128((__m128i *)(void *)(to + k), x);
    }
#endif
    return k;
}

static int64_t pick_doubles(uint64_t *to, const uint64_t *from, const int64_t *index, int64_t n) {
    int64_t k = 0;
    (void)to, (void)from, (void)index, (void)n;
#if defined(TD_ISA_avx512)
    for (; k + 8 <= n; k += 8) {
        __m512i x = _mm512_i64gather_epi64(_mm512_loadu_si512(index + k), from, 8);
        _mm512_storeu_si512(to + k, x);
    }
#elif defined(TD_ISA_avx2)
    for (; k + 4 <= n; k += 4) {
        __m256i places = _mm256_loadu_si256((const __m256i *)(const void *)(index + k));
        __m256i x = _mm256_i64gather_epi64((const long long *)(const void *)from, places, 8);
        _mm256_storeu_si256((__m256i *)(void *)(to + k), x);
    }
#endif
    return k;
}

static void pick(void *to, const void *x, const int64_t *index, int64_t base, int64_t n,
                 size_t size) {
    const char *from = (const char *)((uintptr_t)x - (uintptr_t)base * size);
    int64_t done = 0;
    if (size == 4)
        done = pick_words(to, (const uint32_t *)(const void *)from, index, n);
    if (size == 8)
        done = pick_doubles(to, (const uint64_t *)(const void *)from, index, n);
#define MOVE(type)                                                                                 \
    type *restrict out = to;                                                                       \
    const type *in = (const type *)(const void *)from;                                             \
    _Pragma("GCC unroll 4") for (int64_t k = done; k < n; k++) out[k] = in[index[k]];
    TD_BY_SIZE(size, MOVE);
#undef MOVE
}

extern const td_places_kernels TD_ISA_SYMBOL(td_places_kernels);
const td_places_kernels TD_ISA_SYMBOL(td_places_kernels) = {
    .find = find, .are_plain = are_plain, .pick = pick};

/* places_kernels.c: where elements stand that are not zero, without a branch that waits for one,
 * and whether indices are places. */
#include "engine/cpu/isa/places_kernels.h"

#include "engine/cpu/isa/isa_symbol.h"

#if defined(TD_ISA_avx512)
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

extern const td_places_kernels TD_ISA_SYMBOL(td_places_kernels);
const td_places_kernels TD_ISA_SYMBOL(td_places_kernels) = {.find = find, .are_plain = are_plain};

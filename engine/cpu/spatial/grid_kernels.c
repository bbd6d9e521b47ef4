/* grid_kernels.c: images and volumes read at the places of a grid, of each floating type. */
#include "engine/cpu/spatial/grid_kernels.h"

#include "engine/cpu/isa/isa_symbol.h"
#include "engine/cpu/vectors/vec.h"

enum {
    BLOCK = 64, /* places of a grid that are worked out at once */
    ALONG = 4,  /* places of the input that are seen along a dim */
    TAPS = 16,  /* ... along all; with CUBIC there are two dims */
    SHARES = 32 /* weights of taps, or of their slopes by each dim: 2 * 16 or 3 * 8 */
};

/* c[0] x^3 + c[1] x^2 + c[2] x + c[3] for the places from -1 to 2 around a fraction x: Keys' cubic
 * convolution with a = -3/4. */
static const double cubic_weights[ALONG][4] = {
    {-0.75, 1.5, -0.75, 0}, {1.25, -2.25, 0, 1}, {-1.25, 1.5, 0.75, 0}, {0.75, -0.75, 0, 0}};

static inline int taps_along(const td_grid_plan *p) {
    return p->mode == TD_GRID_NEAREST ? 1 : p->mode == TD_GRID_LINEAR ? 2 : 4;
}

static inline int count_taps(const td_grid_plan *p) {
    int all = 1;
    for (int d = 0; d < p->n; d++)
        all *= taps_along(p);
    return all;
}

static inline int64_t count_inputs(const td_grid_plan *p) {
    int64_t all = 1;
    for (int d = 0; d < p->n; d++)
        all *= p->in[d];
    return all;
}

static inline int64_t stride_of(const td_grid_plan *p, int d) {
    int64_t stride = 1;
    for (int e = d + 1; e < p->n; e++)
        stride *= p->in[e];
    return stride;
}

/* Of what takes elements one by one. */
#define NOTHING(type, a, b, c) ((void)(a), (void)(b), (void)(c), (type){0})
#define NOT(a, b)              ((void)(a), (void)(b), false)

/* Elements x[at], or 0 where not `inside`, by the processor's instruction. */
#if defined(TD_ISA_avx512)
static inline vf gather_floats(const float *x, const int32_t *at, const int32_t *inside) {
    __mmask16 mask = _mm512_movepi32_mask((__m512i)vi_load(inside));
    return (vf)_mm512_mask_i32gather_ps(_mm512_setzero_ps(), mask, (__m512i)vi_load(at), x, 4);
}
static inline vd gather_doubles(const double *x, const int64_t *at, const int64_t *inside) {
    __mmask8 mask = _mm512_movepi64_mask((__m512i)vl_load(inside));
    return (vd)_mm512_mask_i64gather_pd(_mm512_setzero_pd(), mask, (__m512i)vl_load(at), x, 8);
}
#elif defined(TD_ISA_avx2)
static inline vf gather_floats(const float *x, const int32_t *at, const int32_t *inside) {
    return (vf)_mm256_mask_i32gather_ps(_mm256_setzero_ps(), x, (__m256i)vi_load(at),
                                        (__m256)vi_load(inside), 4);
}
static inline vd gather_doubles(const double *x, const int64_t *at, const int64_t *inside) {
    return (vd)_mm256_mask_i64gather_pd(_mm256_setzero_pd(), x, (__m256i)vl_load(at),
                                        (__m256d)vl_load(inside), 8);
}
#endif
#if defined(TD_ISA_avx512) || defined(TD_ISA_avx2)
enum { GATHERS = 1 };

/* Elements x[at] and those behind them, two by one load: sooner than by the instruction above. */
static inline __m256 pairs_of_8(const float *x, const int32_t *at, __m256 *second) {
    __m128 two[4];
    for (int k = 0; k < 4; k++) {
        double low, high; /* two floats each, anywhere */
        memcpy(&low, x + at[2 * k], sizeof low);
        memcpy(&high, x + at[2 * k + 1], sizeof high);
        two[k] = _mm_castpd_ps(_mm_set_pd(high, low));
    }
    __m256 even = _mm256_insertf128_ps(_mm256_castps128_ps256(two[0]), two[2], 1);
    __m256 odd = _mm256_insertf128_ps(_mm256_castps128_ps256(two[1]), two[3], 1);
    *second = _mm256_shuffle_ps(even, odd, 0xDD);
    return _mm256_shuffle_ps(even, odd, 0x88);
}
static inline __m256d pairs_of_4(const double *x, const int64_t *at, __m256d *second) {
    __m256d even = _mm256_castpd128_pd256(_mm_loadu_pd(x + at[0]));
    __m256d odd = _mm256_castpd128_pd256(_mm_loadu_pd(x + at[1]));
    even = _mm256_insertf128_pd(even, _mm_loadu_pd(x + at[2]), 1);
    odd = _mm256_insertf128_pd(odd, _mm_loadu_pd(x + at[3]), 1);
    *second = _mm256_unpackhi_pd(even, odd);
    return _mm256_unpacklo_pd(even, odd);
}
#else
enum { GATHERS = 0 };
#define gather_floats(x, at, inside)  NOTHING(vf, x, at, inside)
#define gather_doubles(x, at, inside) NOTHING(vd, x, at, inside)
#define pair_floats(x, at, second)    NOTHING(vf, x, at, second)
#define pair_doubles(x, at, second)   NOTHING(vd, x, at, second)
#define all_floats(inside, as_well)   NOT(inside, as_well)
#define all_doubles(inside, as_well)  NOT(inside, as_well)
#endif
#if defined(TD_ISA_avx512)
static inline vf pair_floats(const float *x, const int32_t *at, vf *second) {
    __m256 low, high, first = pairs_of_8(x, at, &low), next = pairs_of_8(x, at + 8, &high);
    *second = (vf)_mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
    return (vf)_mm512_insertf32x8(_mm512_castps256_ps512(first), next, 1);
}
static inline vd pair_doubles(const double *x, const int64_t *at, vd *second) {
    __m256d low, high, first = pairs_of_4(x, at, &low), next = pairs_of_4(x, at + 4, &high);
    *second = (vd)_mm512_insertf64x4(_mm512_castpd256_pd512(low), high, 1);
    return (vd)_mm512_insertf64x4(_mm512_castpd256_pd512(first), next, 1);
}
static inline bool all_floats(const int32_t *inside, const int32_t *as_well) {
    return _mm512_movepi32_mask((__m512i)(vi_load(inside) & vi_load(as_well))) == 0xFFFF;
}
static inline bool all_doubles(const int64_t *inside, const int64_t *as_well) {
    return _mm512_movepi64_mask((__m512i)(vl_load(inside) & vl_load(as_well))) == 0xFF;
}
#elif defined(TD_ISA_avx2)
static inline vf pair_floats(const float *x, const int32_t *at, vf *second) {
    __m256 next, first = pairs_of_8(x, at, &next);
    *second = (vf)next;
    return (vf)first;
}
static inline vd pair_doubles(const double *x, const int64_t *at, vd *second) {
    __m256d next, first = pairs_of_4(x, at, &next);
    *second = (vd)next;
    return (vd)first;
}
static inline bool all_floats(const int32_t *inside, const int32_t *as_well) {
    return _mm256_movemask_ps((__m256)(vi_load(inside) & vi_load(as_well))) == 0xFF;
}
static inline bool all_doubles(const int64_t *inside, const int64_t *as_well) {
    return _mm256_movemask_pd((__m256d)(vl_load(inside) & vl_load(as_well))) == 0xF;
}
#endif

#define T          float
#define I          int32_t
#define P          int32_t
#define NAME(f)    near_float_##f
#define FLOOR      floorf
#define RINT       rintf
#define ABS        fabsf
#define FMOD       fmodf
#define ALL_WHOLE  0x1p23f
#define V          vf
#define LANES      (GATHERS ? VF_N : 0)
#define GATHER     gather_floats
#define PAIRS      pair_floats
#define ALL_INSIDE all_floats
#include "engine/cpu/spatial/grid_loops.h"

#define T                          float
#define I                          int32_t
#define P                          int64_t
#define NAME(f)                    far_float_##f
#define FLOOR                      floorf
#define RINT                       rintf
#define ABS                        fabsf
#define FMOD                       fmodf
#define ALL_WHOLE                  0x1p23f
#define V                          vf
#define LANES                      0
#define GATHER(x, at, inside)      NOTHING(vf, x, at, inside)
#define PAIRS(x, at, second)       NOTHING(vf, x, at, second)
#define ALL_INSIDE(inside, behind) NOT(inside, behind)
#include "engine/cpu/spatial/grid_loops.h"

#define T          double
#define I          int64_t
#define P          int64_t
#define NAME(f)    double_##f
#define FLOOR      floor
#define RINT       rint
#define ABS        fabs
#define FMOD       fmod
#define ALL_WHOLE  0x1p52
#define V          vd
#define LANES      (GATHERS ? VD_N : 0)
#define GATHER     gather_doubles
#define PAIRS      pair_doubles
#define ALL_INSIDE all_doubles
#include "engine/cpu/spatial/grid_loops.h"

extern const td_grid_kernels TD_ISA_SYMBOL(td_grid_kernels);
const td_grid_kernels TD_ISA_SYMBOL(td_grid_kernels) = {
    .near = {[TD_F32] = &near_float_functions, [TD_F64] = &double_functions},
    .far = {[TD_F32] = &far_float_functions, [TD_F64] = &double_functions},
};

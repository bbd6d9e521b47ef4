/* spatial_kernels.c: windows over spatial dims, of each element type. Sums of floats are kept in
 * double precision. */
#include "engine/cpu/spatial/spatial_kernels.h"

#include "engine/cpu/isa/isa_symbol.h"
#include "engine/cpu/vectors/vec_epilogue.h"
#include "engine/cpu/vectors/vec_fma.h"
#include "engine/cpu/vectors/vec_half.h"
#include "engine/cpu/vectors/vec_part.h"

#include <math.h>

#define SAME(x) (x)

enum { NARROW_ROW = 1024 }; /* elements of lines whose windows have few at every place */

/* Places from `at` on, where they are wanted. */
static inline int64_t *places_from(int64_t *places, int64_t at) {
    return places ? places + at : NULL;
}

#define T      float
#define C      float
#define A      double
#define SINGLE 1 /* floats, summed as doubles */
#define GET    SAME
#define PUT    SAME
#define ROUND  (float)
#define FLOATS 1
#define PLAIN  1
#include "engine/cpu/spatial/spatial_loops.h"

#define T      double
#define C      double
#define A      double
#define GET    SAME
#define PUT    SAME
#define ROUND  SAME
#define FLOATS 1
#define PLAIN  1
#include "engine/cpu/spatial/spatial_loops.h"

#define T        td_half
#define C        float
#define A        double
#define SINGLE   1
#define GET(x)   half_get(x)
#define PUT(x)   td_float_to_half(x)
#define ROUND(x) td_double_to_half((double)(x))
#define FLOATS   1
#include "engine/cpu/spatial/spatial_loops.h"

#define T        td_bfloat
#define C        float
#define A        double
#define SINGLE   1
#define GET(x)   td_bfloat_to_float(x)
#define PUT(x)   td_float_to_bfloat(x)
#define ROUND(x) td_double_to_bfloat((double)(x))
#define FLOATS   1
#define WORDS    1
#include "engine/cpu/spatial/spatial_loops.h"

/* Pixels are rounded to the nearest number that there is. */
static inline uint8_t pixel(double x) {
    return (uint8_t)(x <= 0 ? 0 : x >= 255 ? 255 : floor(x + 0.5));
}

#define T      uint8_t
#define C      int
#define A      double
#define GET    SAME
#define PUT    (uint8_t)
#define ROUND  pixel
#define FLOATS 0
#include "engine/cpu/spatial/spatial_loops.h"

#define T      int8_t
#define C      int
#define A      int64_t
#define GET    SAME
#define PUT    (int8_t)
#define ROUND  (int8_t)
#define FLOATS 0
#define PLAIN  1
#include "engine/cpu/spatial/spatial_loops.h"

#define T      int16_t
#define C      int
#define A      int64_t
#define GET    SAME
#define PUT    (int16_t)
#define ROUND  (int16_t)
#define FLOATS 0
#define PLAIN  1
#include "engine/cpu/spatial/spatial_loops.h"

#define T      int32_t
#define C      int32_t
#define A      int64_t
#define GET    SAME
#define PUT    SAME
#define ROUND  (int32_t)
#define FLOATS 0
#define PLAIN  1
#include "engine/cpu/spatial/spatial_loops.h"

#define T      int64_t
#define C      int64_t
#define A      int64_t
#define GET    SAME
#define PUT    SAME
#define ROUND  SAME
#define FLOATS 0
#define PLAIN  1
#include "engine/cpu/spatial/spatial_loops.h"

#include "engine/cpu/spatial/spatial_depthwise_loops.h"

#include "engine/cpu/spatial/spatial_depthwise_last_loops.h"

#include "engine/cpu/spatial/spatial_places_loops.h"

static void epilogue(float *y, const float *added, int64_t n, const td_epilogue *e) {
    int64_t k = 0;
    for (; k + VF_N <= n; k += VF_N) {
        const vf v = vf_load(y + k);
        vf_store(y + k, vf_epilogue(e, added ? v + vf_load(added + k) : v));
    }
    if (k < n) {
        const vf v = vf_load_part(y + k, n - k);
        vf_store_part(y + k, vf_epilogue(e, added ? v + vf_load_part(added + k, n - k) : v), n - k);
    }
}

extern const td_spatial_kernels TD_ISA_SYMBOL(td_spatial_kernels);
const td_spatial_kernels TD_ISA_SYMBOL(td_spatial_kernels) = {
    .depthwise = depthwise,
    .depthwise_last = depthwise_last,
    .places = places_tile,
    .epilogue = epilogue,
    .depthwise_lanes = VF_N,
    .of = {[TD_U8] = &uint8_t_spatial,
           [TD_I8] = &int8_t_spatial,
           [TD_I16] = &int16_t_spatial,
           [TD_I32] = &int32_t_spatial,
           [TD_I64] = &int64_t_spatial,
           [TD_F16] = &td_half_spatial,
           [TD_BF16] = &td_bfloat_spatial,
           [TD_F32] = &float_spatial,
           [TD_F64] = &double_spatial},
};

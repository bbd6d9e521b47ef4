/* pool_kernels.c: pooling of planes of each floating type. */
#include "engine/cpu/isa/pool_kernels.h"

#include "engine/cpu/isa/isa_symbol.h"
#include "engine/cpu/isa/vec_half.h"

#include <math.h>

#define T      float
#define C      float
#define GET(x) (x)
#define PUT(x) (x)
#include "engine/cpu/isa/pool_loops.h"

#define T      double
#define C      double
#define GET(x) (x)
#define PUT(x) (x)
#include "engine/cpu/isa/pool_loops.h"

#define T      td_half
#define C      float
#define GET(x) half_get(x)
#define PUT(x) td_float_to_half(x)
#include "engine/cpu/isa/pool_loops.h"

#define T      td_bfloat
#define C      float
#define GET(x) td_bfloat_to_float(x)
#define PUT(x) td_float_to_bfloat(x)
#include "engine/cpu/isa/pool_loops.h"

extern const td_pool_kernels TD_ISA_SYMBOL(td_pool_kernels);
const td_pool_kernels TD_ISA_SYMBOL(td_pool_kernels) = {
    .of = {[TD_F16] = &td_half_functions,
           [TD_BF16] = &td_bfloat_functions,
           [TD_F32] = &float_functions,
           [TD_F64] = &double_functions},
};

/* pool_kernels.c: pooling of planes of float and double. */
#include "engine/cpu/isa/pool_kernels.h"

#include "engine/cpu/isa/isa_symbol.h"

#include <math.h>

#define T float
#include "engine/cpu/isa/pool_loops.h"
#define T double
#include "engine/cpu/isa/pool_loops.h"

extern const td_pool_kernels TD_ISA_SYMBOL(td_pool_kernels);
const td_pool_kernels TD_ISA_SYMBOL(td_pool_kernels) = {
    .f32 = &float_functions,
    .f64 = &double_functions,
};

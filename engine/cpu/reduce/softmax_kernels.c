/* softmax_kernels.c: softmax and its relatives for each floating type, in this instruction set. */
#include "engine/cpu/reduce/softmax_kernels.h"

#include "engine/core/interrupt.h"
#include "engine/cpu/isa/isa_symbol.h"
#include "engine/cpu/math/vec_math.h"
#include "engine/cpu/vectors/vec_across.h"
#include "engine/cpu/vectors/vec_extremes.h"
#include "engine/cpu/vectors/vec_half.h"

#define LOOPS "engine/cpu/reduce/softmax_loops.h"
#include "engine/cpu/reduce/by_float.h"

extern const td_softmax_kernels TD_ISA_SYMBOL(td_softmax_kernels);
const td_softmax_kernels TD_ISA_SYMBOL(td_softmax_kernels) = {
    .of = {[TD_F16] = &half_softmax_functions,
           [TD_BF16] = &bfloat_softmax_functions,
           [TD_F32] = &vf_softmax_functions,
           [TD_F64] = &vd_softmax_functions},
};

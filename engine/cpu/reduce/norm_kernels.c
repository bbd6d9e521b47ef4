/* norm_kernels.c: the loops of the normalisations for each floating type, in this instruction set.
 */
#include "engine/cpu/reduce/norm_kernels.h"

#include "engine/core/interrupt.h"
#include "engine/cpu/isa/isa_symbol.h"
#include "engine/cpu/vectors/vec_across.h"
#include "engine/cpu/vectors/vec_half.h"

#define LOOPS "engine/cpu/reduce/norm_loops.h"
#include "engine/cpu/reduce/by_float.h"

extern const td_norm_kernels TD_ISA_SYMBOL(td_norm_kernels);
const td_norm_kernels TD_ISA_SYMBOL(td_norm_kernels) = {
    .of = {[TD_F16] = &half_norm_functions,
           [TD_BF16] = &bfloat_norm_functions,
           [TD_F32] = &vf_norm_functions,
           [TD_F64] = &vd_norm_functions},
};

/* softmax_kernels.c: softmax and its relatives for each floating type, in this instruction set. */
#include "engine/cpu/isa/softmax_kernels.h"

#include "engine/cpu/isa/isa_symbol.h"
#include "engine/cpu/isa/vec.h"

#define T float
#define V vf
#define N VF_N
#define P vf
#include "engine/cpu/isa/softmax_loops.h"

#define T double
#define V vd
#define N VD_N
#define P vd
#include "engine/cpu/isa/softmax_loops.h"

extern const td_softmax_kernels TD_ISA_SYMBOL(td_softmax_kernels);
const td_softmax_kernels TD_ISA_SYMBOL(td_softmax_kernels) = {.f32 = &vf_softmax_functions,
                                                              .f64 = &vd_softmax_functions};

/* softmax_kernels.c: softmax and its relatives for each floating type, in this instruction set. */
#include "engine/cpu/isa/softmax_kernels.h"

#include "engine/core/interrupt.h"
#include "engine/cpu/isa/isa_symbol.h"
#include "engine/cpu/isa/vec_half.h"

#define P                   vf
#define T                   float
#define C                   float
#define V                   vf
#define N                   VF_N
#define LOAD(p)             vf_load(p)
#define STORE(p, v)         vf_store(p, v)
#define LOAD_PART(p, n)     vf_load_part(p, n)
#define STORE_PART(p, v, n) vf_store_part(p, v, n)
#define GET(x)              (x)
#define PUT(x)              (x)
#include "engine/cpu/isa/softmax_loops.h"

#define P                   vd
#define T                   double
#define C                   double
#define V                   vd
#define N                   VD_N
#define LOAD(p)             vd_load(p)
#define STORE(p, v)         vd_store(p, v)
#define LOAD_PART(p, n)     vd_load_part(p, n)
#define STORE_PART(p, v, n) vd_store_part(p, v, n)
#define GET(x)              (x)
#define PUT(x)              (x)
#include "engine/cpu/isa/softmax_loops.h"

#define P                   half
#define T                   td_half
#define C                   float
#define V                   vf
#define N                   VF_N
#define LOAD(p)             vf_load_halves(p)
#define STORE(p, v)         vf_store_halves(p, v)
#define LOAD_PART(p, n)     vf_load_halves_part(p, n)
#define STORE_PART(p, v, n) vf_store_halves_part(p, v, n)
#define GET(x)              half_get(x)
#define PUT(x)              td_float_to_half(x)
#include "engine/cpu/isa/softmax_loops.h"

#define P                   bfloat
#define T                   td_bfloat
#define C                   float
#define V                   vf
#define N                   VF_N
#define LOAD(p)             vf_load_bfloats(p)
#define STORE(p, v)         vf_store_bfloats(p, v)
#define LOAD_PART(p, n)     vf_load_bfloats_part(p, n)
#define STORE_PART(p, v, n) vf_store_bfloats_part(p, v, n)
#define GET(x)              td_bfloat_to_float(x)
#define PUT(x)              td_float_to_bfloat(x)
#include "engine/cpu/isa/softmax_loops.h"

extern const td_softmax_kernels TD_ISA_SYMBOL(td_softmax_kernels);
const td_softmax_kernels TD_ISA_SYMBOL(td_softmax_kernels) = {
    .of = {[TD_F16] = &half_softmax_functions,
           [TD_BF16] = &bfloat_softmax_functions,
           [TD_F32] = &vf_softmax_functions,
           [TD_F64] = &vd_softmax_functions},
};

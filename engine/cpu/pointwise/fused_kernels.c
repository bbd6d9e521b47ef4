/* fused_kernels.c: loops of the programs of fused.def for each float type, in this instruction set.
 */
#include "engine/cpu/pointwise/fused_kernels.h"

#include "engine/cpu/isa/isa_symbol.h"
#include "engine/cpu/math/vec_gamma.h"
#include "engine/cpu/vectors/vec_half.h"

#include "engine/cpu/pointwise/formula_words.h" /* behind those that have such words of their own */

/* Registers of a program, at most. */
enum { REGISTERS = 16 };

#define T float
#define V vf
#define M vi
#define N VF_N
#define P vf
#include "engine/cpu/pointwise/fused_steps.h"

#define NAME(n)              float_##n
#define E                    float
#define ELEMENTS(k, loaded)  loaded
#define LOADED(p)            vf_load(p)
#define LOADED_PART(p, n)    vf_load_part(p, n)
#define STORED(p, v)         vf_store(p, v)
#define STORED_PART(p, v, n) vf_store_part(p, v, n)
#include "engine/cpu/pointwise/fused_loops.h"

/* The baseline takes longer to convert than for a chain's steps. */
#ifdef TD_ISA_baseline
#define NARROW(digest)
#else
#define NARROW(digest)         [TD_F16] = halves_##digest, [TD_BF16] = bfloats_##digest

/* Single numbers are floats. */
#define ONE_OR_MORE(k, loaded) runs[k].moves ? loaded : vf_load((const float *)from##k)

#define NAME(n)              halves_##n
#define E                    td_half
#define ELEMENTS(k, loaded)  ONE_OR_MORE(k, loaded)
#define LOADED(p)            vf_load_halves(p)
#define LOADED_PART(p, n)    vf_load_halves_part(p, n)
#define STORED(p, v)         vf_store_halves(p, v)
#define STORED_PART(p, v, n) vf_store_halves_part(p, v, n)
#include "engine/cpu/pointwise/fused_loops.h"

#define NAME(n)              bfloats_##n
#define E                    td_bfloat
#define ELEMENTS(k, loaded)  ONE_OR_MORE(k, loaded)
#define LOADED(p)            vf_load_bfloats(p)
#define LOADED_PART(p, n)    vf_load_bfloats_part(p, n)
#define STORED(p, v)         vf_store_bfloats(p, v)
#define STORED_PART(p, v, n) vf_store_bfloats_part(p, v, n)
#define LOADED_ONE(p)        vf_load_one_bfloats(p)
#define LOADED_OTHER(p)      vf_load_other_bfloats(p)
#define STORED_BOTH(p, v, w) vf_store_both_bfloats(p, v, w)
#include "engine/cpu/pointwise/fused_loops.h"
#endif

#undef T
#undef V
#undef M
#undef N
#undef P
#define T double
#define V vd
#define M vl
#define N VD_N
#define P vd
#include "engine/cpu/pointwise/fused_steps.h"

#define NAME(n)              double_##n
#define E                    double
#define ELEMENTS(k, loaded)  loaded
#define LOADED(p)            vd_load(p)
#define LOADED_PART(p, n)    vd_load_part(p, n)
#define STORED(p, v)         vd_store(p, v)
#define STORED_PART(p, v, n) vd_store_part(p, v, n)
#include "engine/cpu/pointwise/fused_loops.h"

/* In the order of their digests, as in the file. */
#define PROGRAM(digest, singles, begin, loads, steps, outs)                                        \
    {0x##digest##u,                                                                                \
     singles,                                                                                      \
     {[TD_F32] = float_##digest, [TD_F64] = double_##digest, NARROW(digest)}},
static const td_fused_program programs[] = {
#include "engine/cpu/pointwise/fused.def"
};

extern const td_fused_kernels TD_ISA_SYMBOL(td_fused_kernels);
const td_fused_kernels TD_ISA_SYMBOL(td_fused_kernels) = {programs,
                                                          sizeof programs / sizeof *programs};

/* factor_kernels.c: decompositions of a few columns, for each element type, in this instruction
 * set. */
#include "engine/cpu/factor/factor_kernels.h"

#include "engine/cpu/isa/isa_symbol.h"
#include "engine/cpu/math/vec_math.h"
#include "engine/cpu/vectors/vec_across.h"
#include "engine/cpu/vectors/vec_single.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#define P            vf
#define T            float
#define V            vf
#define M            vi
#define N            VF_N
#define ROOT         sqrtf
#define ADD1         TD_ADD1_F
#define LEAST_NORMAL FLT_MIN
#include "engine/cpu/factor/factor_column_loops.h"

#define P            vd
#define T            double
#define V            vd
#define M            vl
#define N            VD_N
#define ROOT         sqrt
#define ADD1         TD_ADD1_D
#define LEAST_NORMAL DBL_MIN
#include "engine/cpu/factor/factor_column_loops.h"

#define P few_f
#define T float
#define V vf
#define M vi
#define N VF_N
#include "engine/cpu/factor/factor_lane_loops.h"

#define P few_d
#define T double
#define V vd
#define M vl
#define N VD_N
#include "engine/cpu/factor/factor_lane_loops.h"

extern const td_factor_kernels TD_ISA_SYMBOL(td_factor_kernels);
const td_factor_kernels TD_ISA_SYMBOL(td_factor_kernels) = {
    .lu = {[TD_F32] = vf_lu, [TD_F64] = vd_lu},
    .cholesky = {[TD_F32] = vf_cholesky, [TD_F64] = vd_cholesky},
    .negate = {[TD_F32] = vf_negate, [TD_F64] = vd_negate},
    .solve_few = {[TD_F32] = few_f_solve_few, [TD_F64] = few_d_solve_few},
    .cholesky_few = {[TD_F32] = few_f_cholesky_few, [TD_F64] = few_d_cholesky_few},
    .lanes = {[TD_F32] = VF_N, [TD_F64] = VD_N},
};

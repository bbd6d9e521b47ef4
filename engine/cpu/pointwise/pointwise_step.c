/* pointwise_step.c: chooses the loop of one step of a program and runs it over contiguous elements.
 */
#include "engine/cpu/pointwise/pointwise_job.h"

typedef td_pointwise_job job;

td_pointwise_fn td_pointwise_loop(int primitive, td_dtype dtype) {
    if (dtype == TD_BOOL && primitive == TD_PW_add)
        primitive = TD_PW_maximum;
    if (dtype == TD_BOOL && primitive == TD_PW_bitwise_not)
        primitive = TD_PW_logical_not;
    return td_cpu->pointwise->primitive[primitive][dtype];
}

td_pointwise_fn td_cheaper_power(td_dtype dtype, const void *exponent, td_pointwise_fn pow) {
    double e = td_load_double(dtype, exponent);
    int primitive = e == 2      ? TD_PW_square
                    : e == 1    ? TD_PW_copy
                    : e == 0.5  ? TD_PW_sqrt
                    : e == -0.5 ? TD_PW_rsqrt
                    : e == -1   ? TD_PW_reciprocal
                                : -1;
    td_pointwise_fn fn = primitive >= 0 ? td_pointwise_loop(primitive, dtype)
                         : e == 3       ? td_cpu->pointwise->cube[dtype]
                         : e == -2      ? td_cpu->pointwise->inverse_square[dtype]
                                        : NULL;
    return fn ? fn : pow;
}

void td_pointwise_step(const job *j, int s, int64_t n, td_cell *dst, const void *const *src,
                       unsigned scalars) {
    const td_step *step = &j->program->steps[s];
    td_pointwise_fn loop = j->code[s].loop;
    if (!loop) {
        j->code[s].convert(n, dst->p, src[0]);
        return;
    }
    if (step->primitive == TD_PW_pow && scalars == 2)
        loop = td_cheaper_power(td_dtype_in_call(step->from, j->compute), src[1], loop);
    loop(n, dst->p, src[0], src[1], src[2], scalars);
}

/* pointwise_code.c: the short way of a program that has machine code: one list of small, row-major
 * tensors of one shape and of numbers, for which nothing has to be laid out. */
#include "engine/core/threads.h"
#include "engine/cpu/code/code.h"
#include "engine/cpu/pointwise/pointwise_job.h"

enum { RUNS = 24 };

typedef struct list {
    const td_tensor *out;
    td_dtype narrow;  /* of what is no number; TD_DTYPE_NONE */
    int nruns, sides; /* of them tensors */
    int nnarrow;
    uint64_t numbers;
    td_run runs[RUNS];
    _Alignas(8) unsigned char values[RUNS][8];
} list;

/* Elements one after the other, as they are computed or 16-bit floats all alike. */
static bool add_elements(list *l, const td_tensor *x, td_dtype as) {
    const td_tensor *out = l->out;
    if (!x->contiguous || !td_tensor_same_shape(x, out))
        return false;
    if (x->dtype != as) {
        if (as != TD_F32 || !td_is_narrow((td_dtype)x->dtype) ||
            (l->nnarrow && l->narrow != x->dtype))
            return false;
        l->narrow = (td_dtype)x->dtype;
        l->nnarrow++;
    }
    l->sides++;
    l->runs[l->nruns++] = (td_run){(unsigned char *)x->data, ~(uint64_t)0, 0};
    return true;
}

static unsigned char *add_number(list *l) {
    unsigned char *value = l->values[l->nruns];
    l->runs[l->nruns++] = (td_run){value, 0, 0};
    return value;
}

static bool add_load(list *l, int k, const td_operand *o, td_dtype as, td_tensor *const *outs,
                     int nouts) {
    const td_tensor *x = o->tensor;
    if (x && x->numel != 1) {
        for (int out = 0; out < nouts; out++)
            if (x->storage == outs[out]->storage && x->data != outs[out]->data)
                return false;
        return add_elements(l, x, as);
    }
    l->numbers |= (uint64_t)1 << k;
    if (x)
        td_convert(as, add_number(l), 0, (td_dtype)x->dtype, x->data, 0, 1);
    else
        td_store_operand(as, add_number(l), o);
    return true;
}

static bool add_all(list *l, const td_program *p, td_dtype compute, const td_operand *operands,
                    td_tensor *const *outs) {
    for (int k = 0; k < p->nloads; k++)
        if (!add_load(l, k, &operands[p->loads[k].operand],
                      td_dtype_in_call(p->loads[k].dtype, compute), outs, p->noutputs))
            return false;
    for (int k = 0; k < p->nconstants; k++)
        td_store_double(td_dtype_in_call(p->constants[k].dtype, compute), add_number(l),
                        p->constants[k].value);
    for (int k = 0; k < p->noutputs; k++)
        if (!add_elements(l, outs[k], td_dtype_in_call(p->outputs[k].dtype, compute)))
            return false;
    return l->nnarrow == 0 || l->nnarrow == l->sides;
}

bool td_pointwise_as_code(const td_program *p, td_dtype compute, const td_operand *operands,
                          td_tensor *const *outs) {
    const int64_t n = outs[0]->numel;
    if (p->nsteps < 2 || p->reduces || n < 1 || n > TD_GRAIN || n * p->cost > TD_GRAIN ||
        p->nloads + p->nconstants + p->noutputs > RUNS || !td_code_wanted(n) ||
        td_code_is_refused(p, compute, false))
        return false;
    list l;
    l.out = outs[0];
    l.narrow = TD_DTYPE_NONE;
    l.nruns = l.sides = l.nnarrow = 0;
    l.numbers = 0;
    if (!add_all(&l, p, compute, operands, outs))
        return false;
    const td_code_form form = {
        .program = p, .compute = compute, .numbers = l.numbers, .narrow = l.narrow};
    const td_code *code = td_code_find(&form, n);
    if (code)
        code->run(1, n, l.runs, code->functions);
    return code != NULL;
}

/* pointwise_code.c: the short way of a program that has machine code: one list of row-major tensors
 * of one shape and of numbers, for which nothing has to be laid out. */
#include "engine/core/threads.h"
#include "engine/cpu/code/code.h"
#include "engine/cpu/limits.h"
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

/* ---- many elements ---- */

enum { ALONE = 64 * TD_GRAIN }; /* what one thread runs between two looks for an interrupt */

typedef struct shared_run {
    const td_code *code;
    const list *list;
    size_t sizes[RUNS]; /* of an element of a run; 0: a number */
} shared_run;

static void run_range(void *ctx, int64_t begin, int64_t end, int worker) {
    const shared_run *s = ctx;
    td_run runs[RUNS];
    (void)worker;
    for (int k = 0; k < s->list->nruns; k++) {
        runs[k] = s->list->runs[k];
        runs[k].at += (size_t)begin * s->sizes[k];
    }
    s->code->run(1, end - begin, runs, s->code->functions);
}

/* What a run's elements are of. */
static td_dtype dtype_of_run(const list *l, const td_program *p, td_dtype compute, int k) {
    const int first = p->nloads + p->nconstants;
    if (l->narrow != TD_DTYPE_NONE)
        return l->narrow;
    return td_dtype_in_call(k < first ? p->loads[k].dtype : p->outputs[k - first].dtype, compute);
}

static td_status run_shared(const td_program *p, td_dtype compute, const td_code *code,
                            const list *l, int64_t n) {
    shared_run s = {.code = code, .list = l};
    for (int k = 0; k < l->nruns; k++)
        s.sizes[k] = l->runs[k].moves ? td_dtype_size(dtype_of_run(l, p, compute, k)) : 0;
    return td_parallel_for(n, p->cost, run_range, &s);
}

/* ---- the way ---- */

/* Do many elements prefer the long way: a loop that was compiled with Tide, or results that are
 * stored past the caches? */
static bool goes_long(const td_program *p, td_dtype compute, const list *l) {
    const bool narrow = l->narrow != TD_DTYPE_NONE;
    int64_t bytes = 0;
    for (int k = l->nruns - p->noutputs; k < l->nruns; k++)
        bytes += l->out->numel * (int64_t)td_dtype_size(dtype_of_run(l, p, compute, k));
    return bytes >= TD_LIMIT(WALK_STREAM) ||
           (td_chain_takes(p, compute) &&
            td_chain_fused(p, compute, l->numbers, (td_narrow){narrow, l->narrow, narrow}));
}

td_status td_pointwise_as_code(const td_program *p, td_dtype compute, const td_operand *operands,
                               td_tensor *const *outs, bool *taken) {
    const int64_t n = outs[0]->numel;
    *taken = false;
    if (p->nsteps < 2 || p->reduces || n < 1 || p->nloads + p->nconstants + p->noutputs > RUNS ||
        !td_code_wanted(n) || td_code_is_refused(p, compute, false))
        return TD_OK;
    list l;
    l.out = outs[0];
    l.narrow = TD_DTYPE_NONE;
    l.nruns = l.sides = l.nnarrow = 0;
    l.numbers = 0;
    const bool many = n > TD_GRAIN || n * p->cost > TD_GRAIN;
    if (!add_all(&l, p, compute, operands, outs) || (many && goes_long(p, compute, &l)))
        return TD_OK;
    const td_code_form form = {
        .program = p, .compute = compute, .numbers = l.numbers, .narrow = l.narrow};
    const td_code *code = td_code_find(&form, n);
    *taken = code != NULL;
    if (code && many && (n > ALONE || n * p->cost > ALONE || td_get_num_threads() > 1))
        return run_shared(p, compute, code, &l, n);
    if (code)
        code->run(1, n, l.runs, code->functions);
    return TD_OK;
}

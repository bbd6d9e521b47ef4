/* pointwise.c: lays pointwise plans out for the kernels (pointwise.cu). Lists of tensors that are
 * dense and of one shape go together in one launch; others one by one, dims merged where they can
 * be. Programs too large for a kernel's parameters, or with a function that the device lacks, are
 * the CPU's. */
#include "engine/core/memory.h"
#include "engine/cuda/cuda.h"
#include "engine/cuda/pointwise/compiled.h"
#include "engine/cuda/pointwise/dense.h"
#include "engine/cuda/pointwise/pointwise_code.h"
#include "engine/cuda/pointwise/transpose.h"
#include "engine/ops/plan/pointwise_geometry.h"

#include <string.h>

/* ---- the program in this call ---- */

static int64_t bits_of_number(td_dtype as, const td_operand *o) {
    union {
        float f;
        double d;
        int64_t i;
    } slot = {.i = 0};
    _Alignas(8) unsigned char stored[8] = {0};
    if (o->is_int)
        td_store_int(as, stored, o->i);
    else
        td_store_double(as, stored, o->f);
    if (!td_dtype_is_float(as))
        slot.i = td_load_int(as, stored);
    else if (as == TD_F64)
        slot.d = td_load_double(as, stored);
    else
        slot.f = (float)td_load_double(as, stored);
    return slot.i;
}

static bool fits(const td_program *p) {
    if (p->nloads > TD_CU_LOADS || p->nconstants > TD_CU_CONSTANTS || p->noutputs > TD_CU_OUTS ||
        p->nsteps > TD_CU_STEPS ||
        p->nloads + p->nconstants + p->noutputs + p->nbuffers > TD_CU_REGISTERS)
        return false;
    for (int s = 0; s < p->nsteps; s++)
        if (!td_cu_has_primitive(p->steps[s].primitive))
            return false;
    return true;
}

/* Bool has an addition of its own, and a negation. */
static uint8_t primitive_of(const td_step *step, td_dtype from) {
    if (from == TD_BOOL && step->primitive == TD_PW_add)
        return TD_PW_maximum;
    if (from == TD_BOOL && step->primitive == TD_PW_bitwise_not)
        return TD_PW_logical_not;
    return (uint8_t)step->primitive;
}

/* A copy of 16-bit floats is one of integers: numbers would lose what tells NaNs apart. */
static void move_bits(td_cu_code *code) {
    uint8_t from = code->load_from[0];
    if (code->nsteps != 1 || code->nouts != 1 || code->steps[0].primitive != TD_PW_copy ||
        code->nloads != 1 || (from != TD_F16 && from != TD_BF16) || code->load_as[0] != from ||
        code->out_from[0] != from || code->out_to[0] != from || code->out_kind[0])
        return;
    code->load_from[0] = code->load_as[0] = code->out_from[0] = code->out_to[0] = TD_I16;
    code->steps[0].from = code->steps[0].to = TD_I16;
}

/* Is a register a number of this call? */
static bool is_number(const td_cu_code *code, const td_program *p, const td_operand *operands,
                      int r, td_dtype as, double *value) {
    union {
        int64_t i;
        double d;
        float f;
    } slot;
    if (r < p->nloads && !operands[p->loads[r].operand].tensor)
        slot.i = bits_of_number(as, &operands[p->loads[r].operand]);
    else if (r >= p->nloads && r < p->nloads + p->nconstants)
        slot.i = code->constants[r - p->nloads];
    else
        return false;
    *value = td_dtype_size(as) == sizeof slot.d ? slot.d : (double)slot.f;
    return true;
}

/* Powers that are cheaper as something else, those of the CPU. */
static void make_cheaper(td_cu_step *to, const td_cu_code *code, const td_program *p,
                         const td_operand *operands) {
    double e;
    if (to->primitive != TD_PW_pow || !td_dtype_is_float((td_dtype)to->from) ||
        !is_number(code, p, operands, to->src[1], (td_dtype)to->from, &e))
        return;
    to->primitive = e == 2      ? TD_PW_square
                    : e == 1    ? TD_PW_copy
                    : e == 0.5  ? TD_PW_sqrt
                    : e == -0.5 ? TD_PW_rsqrt
                    : e == -1   ? TD_PW_reciprocal
                                : TD_PW_pow;
    if (to->primitive != TD_PW_pow)
        to->src[1] = to->src[0];
}

static void make_code(td_cu_code *code, const td_program *p, td_dtype compute,
                      const td_operand *operands, td_tensor *const *outs) {
    memset(code, 0, offsetof(td_cu_code, steps));
    code->nloads = (uint8_t)p->nloads;
    code->nconstants = (uint8_t)p->nconstants;
    code->nouts = (uint8_t)p->noutputs;
    code->nsteps = (uint8_t)p->nsteps;
    code->nregisters = (uint8_t)(p->nloads + p->nconstants + p->noutputs + p->nbuffers);
    for (int k = 0; k < p->nloads; k++) {
        const td_tensor *x = operands[p->loads[k].operand].tensor;
        code->load_as[k] = (uint8_t)td_dtype_in_call(p->loads[k].dtype, compute);
        code->load_from[k] = x ? x->dtype : code->load_as[k];
    }
    for (int k = 0; k < p->nconstants; k++) {
        td_operand number = {.f = p->constants[k].value};
        code->constants[k] =
            bits_of_number(td_dtype_in_call(p->constants[k].dtype, compute), &number);
    }
    for (int k = 0; outs && k < p->noutputs; k++) {
        code->out_to[k] = outs[k]->dtype;
        code->out_kind[k] = p->outputs[k].kind;
        code->sums += p->outputs[k].kind != TD_OUTPUT_ELEMENTS;
    }
    for (int k = 0; k < p->noutputs; k++)
        code->out_from[k] = (uint8_t)td_dtype_in_call(p->outputs[k].dtype, compute);
    for (int s = 0; s < p->nsteps; s++) {
        const td_step *step = &p->steps[s];
        td_dtype from = td_dtype_in_call(step->from, compute);
        td_cu_step *to = &code->steps[s];
        *to = (td_cu_step){.primitive = primitive_of(step, from),
                           .from = (uint8_t)from,
                           .to = (uint8_t)td_dtype_in_call(step->to, compute),
                           .dst = (uint8_t)step->dst};
        for (int k = 0; k < step->arity; k++)
            to->src[k] = (uint8_t)step->src[k];
        make_cheaper(to, code, p, operands);
    }
    if (p->nloads == 1 && operands[p->loads[0].operand].tensor)
        move_bits(code);
}

/* ---- operands ---- */

/* How a load is found, and its word; DENSE stands for any tensor of several elements. */
static unsigned side_of(const td_operand *o, td_dtype as, uint64_t *word) {
    if (!o->tensor) {
        *word = (uint64_t)bits_of_number(as, o);
        return TD_CU_NUMBER;
    }
    *word = (uint64_t)(uintptr_t)o->tensor->data;
    return o->tensor->numel == 1 ? TD_CU_SINGLE : TD_CU_DENSE;
}

static uint64_t kind_bits(unsigned kind, int load) {
    return (uint64_t)kind << (2 * load);
}

/* ---- walks ---- */

/* Join dims over which every side runs on; `strides` has `sides` rows of `ndim`. */
static int merge_dims(int ndim, int64_t *sizes, int sides, int64_t (*strides)[TD_MAX_DIMS]) {
    int n = 0; /* dims kept, sizes[n - 1] the innermost so far */
    for (int d = 0; d < ndim; d++) {
        bool joins = n > 0;
        for (int k = 0; k < sides && joins; k++)
            joins = strides[k][n - 1] == strides[k][d] * sizes[d];
        if (joins) {
            sizes[n - 1] *= sizes[d];
        } else {
            sizes[n++] = sizes[d];
        }
        for (int k = 0; k < sides; k++)
            strides[k][n - 1] = strides[k][d];
    }
    return n;
}

static td_status make_walk(td_cu_walk *w, const td_program *p, td_dtype compute,
                           const td_operand *operands, td_tensor *const *outs) {
    int64_t strides[TD_CU_SIDES][TD_MAX_DIMS] = {{0}};
    int order[TD_MAX_DIMS], sides = p->nloads + (outs ? p->noutputs : 0);
    td_frame f;
    td_status status = td_frame_choose(&f, p, operands, outs);
    if (status != TD_OK)
        return status;
    int n = td_frame_order(&f, order);
    *w = (td_cu_walk){.numel = 1};
    for (int k = 0; k < n; k++)
        w->sizes[k] = f.sizes[order[k]];
    for (int k = 0; k < p->nloads; k++) {
        const td_operand *o = &operands[p->loads[k].operand];
        unsigned kind = side_of(o, td_dtype_in_call(p->loads[k].dtype, compute), &w->words[k]);
        w->kinds |= kind_bits(kind, k);
        if (kind == TD_CU_DENSE)
            td_frame_strides(&f, o->tensor, order, n, strides[k]);
    }
    for (int k = 0; outs && k < p->noutputs; k++) {
        w->words[p->nloads + k] = (uint64_t)(uintptr_t)outs[k]->data;
        if (p->outputs[k].kind == TD_OUTPUT_ELEMENTS)
            td_frame_strides(&f, outs[k], order, n, strides[p->nloads + k]);
    }
    w->ndim = merge_dims(n, w->sizes, sides, strides);
    for (int d = 0; d < w->ndim; d++)
        w->numel *= w->sizes[d];
    if (w->ndim == 0) {
        w->ndim = 1;
        w->sizes[0] = 1;
    }
    for (int k = 0; k < sides; k++)
        memcpy(&w->strides[k * w->ndim], strides[k], sizeof(int64_t) * (size_t)w->ndim);
    return TD_OK;
}

/* ---- sums ---- */

static double divisor_of(const td_cu_code *code, int k, int64_t numel) {
    return code->out_kind[k] == TD_OUTPUT_MEAN ? (double)numel : 1;
}

/* Where there is room for partial sums, only the interpreter makes them. */
static cudaError_t run_elements(const td_cu_code *code, const td_cu_walk *w, double *partial,
                                td_stream stream, cudaStream_t s) {
    cudaError_t error = td_cuda_run_transposed(code, w, s);
    if (error == cudaErrorNotSupported)
        error = td_cuda_compiled_walk(stream.device.index, code, w, s);
    return error == cudaErrorNotSupported ? td_cu_run_walk(code, w, partial, s) : error;
}

static td_status run_walk(const td_program *p, const td_cu_code *code, const td_cu_walk *w,
                          td_tensor *const *outs, td_stream stream, cudaStream_t s) {
    td_cuda_scratch partial = {.data = NULL};
    int64_t tiles = (w->numel + TD_CU_TILE - 1) / TD_CU_TILE;
    td_status status = TD_OK;
    if (code->sums)
        TD_TRY(td_cuda_scratch_take(&partial, stream,
                                    sizeof(double) * (size_t)(tiles * code->sums + 1)));
    if (w->numel > 0)
        TD_TRY(td_cuda_status(run_elements(code, w, partial.data, stream, s), "running a program"));
    for (int k = 0, n = 0; k < p->noutputs; k++) {
        if (code->out_kind[k] == TD_OUTPUT_ELEMENTS)
            continue;
        TD_TRY(td_cuda_status(
            td_cu_finish_sum((const double *)partial.data + n++, tiles, code->sums,
                             !td_dtype_is_float((td_dtype)code->out_from[k]),
                             divisor_of(code, k, w->numel), outs[k]->dtype, outs[k]->data, s),
            "adding up"));
    }
done:
    td_cuda_scratch_drop(&partial);
    return status;
}

/* ---- dense lists ---- */

static bool has_powers(const td_program *p) {
    bool has = false;
    for (int s = 0; s < p->nsteps; s++)
        has = has || p->steps[s].primitive == TD_PW_pow;
    return has;
}

/* One code is for both lists: exponents may have made other steps of it. */
static bool same_code(const td_program *p, const td_operand *a, td_tensor *const *a_outs,
                      const td_operand *b, td_tensor *const *b_outs) {
    for (int k = 0; k < p->noutputs; k++)
        if (a_outs[k]->dtype != b_outs[k]->dtype)
            return false;
    for (int k = 0; k < p->nloads; k++) {
        const td_tensor *x = a[p->loads[k].operand].tensor, *y = b[p->loads[k].operand].tensor;
        if (!x != !y || (x && x->dtype != y->dtype))
            return false;
    }
    for (int k = 0; k < p->noperands && has_powers(p); k++)
        if (!a[k].tensor && (a[k].is_int != b[k].is_int || a[k].f != b[k].f || a[k].i != b[k].i))
            return false;
    return true;
}

/* Lists that one launch takes: filled up, then run. */
typedef struct batch {
    int device;
    const td_program *program;
    td_dtype compute;
    td_cu_code code;
    td_cu_flat flat;
    const td_operand *operands; /* of its first list */
    td_tensor *const *outs;
    uint32_t tiles[TD_CU_LISTS + 1];
    uint64_t words[TD_CU_WORDS];
} batch;

/* By a kernel compiled ahead of time, by one compiled at run time, or step by step. */
static cudaError_t run_flat(int device, const td_cu_code *code, const td_cu_flat *flat,
                            cudaStream_t s) {
    cudaError_t error = td_cuda_run_dense(code, flat, s);
    if (error == cudaErrorNotSupported)
        error = td_cuda_compiled_flat(device, code, flat, s);
    return error == cudaErrorNotSupported ? td_cu_run_flat(code, flat, s) : error;
}

static td_status flush(batch *b, cudaStream_t s) {
    td_status status = TD_OK;
    if (b->flat.nlists > 0 && b->tiles[b->flat.nlists] > 0)
        status = td_cuda_status(run_flat(b->device, &b->code, &b->flat, s), "running a program");
    b->flat.nlists = 0;
    return status;
}

static td_status add_list(batch *b, const td_operand *operands, td_tensor *const *outs,
                          cudaStream_t s) {
    const td_program *p = b->program;
    int stride = 2 + p->nloads + p->noutputs, n = b->flat.nlists;
    int64_t tiles = (outs[0]->numel + TD_CU_TILE - 1) / TD_CU_TILE;
    bool full = n > 0 && (n == TD_CU_LISTS || (n + 1) * stride > TD_CU_WORDS ||
                          b->tiles[n] + tiles > INT32_MAX ||
                          !same_code(p, b->operands, b->outs, operands, outs));
    td_status status = full ? flush(b, s) : TD_OK;
    n = b->flat.nlists;
    if (status != TD_OK || outs[0]->numel == 0)
        return status;
    if (n == 0) {
        make_code(&b->code, p, b->compute, operands, outs);
        b->flat = (td_cu_flat){.stride = stride, .tiles = b->tiles, .words = b->words};
        b->operands = operands;
        b->outs = outs;
        b->tiles[0] = 0;
    }
    uint64_t *words = &b->words[n * stride], kinds = 0;
    for (int k = 0; k < p->nloads; k++)
        kinds |= kind_bits(
            side_of(&operands[p->loads[k].operand], (td_dtype)b->code.load_as[k], &words[2 + k]),
            k);
    for (int k = 0; k < p->noutputs; k++)
        words[2 + p->nloads + k] = (uint64_t)(uintptr_t)outs[k]->data;
    words[0] = (uint64_t)outs[0]->numel;
    words[1] = kinds;
    b->tiles[n + 1] = b->tiles[n] + (uint32_t)tiles;
    b->flat.nlists = n + 1;
    return TD_OK;
}

static td_status run_lists(batch *b, const td_pointwise_plan *plan, const td_operand *operands,
                           td_tensor *const *outs, int nlists, cudaStream_t s) {
    const td_program *p = plan->program;
    td_status status = TD_OK;
    for (int list = 0; list < nlists && status == TD_OK; list++) {
        if (td_frame_is_flat(p, p->noperands, operands, outs)) {
            status = add_list(b, operands, outs, s);
        } else {
            td_cu_code code;
            td_cu_walk w;
            make_code(&code, p, b->compute, operands, outs);
            status = make_walk(&w, p, b->compute, operands, outs);
            if (status == TD_OK)
                status = run_walk(p, &code, &w, outs, plan->stream, s);
        }
        operands += p->noperands;
        outs += p->noutputs;
    }
    return status == TD_OK ? flush(b, s) : status;
}

/* ---- operands that overlap results ---- */

static bool must_copy(const td_program *p, const td_tensor *x, td_tensor *const *outs) {
    for (int k = 0; x && k < p->noutputs; k++)
        if (td_frame_clashes(x, outs[k]))
            return true;
    return false;
}

/* A dense copy of x, on its device. New. */
static td_status copy_of(const td_tensor *x, td_stream stream, td_tensor **out) {
    td_operand from = {.tensor = x};
    td_status status = td_tensor_empty_like(x, (td_dtype)x->dtype, out);
    return status != TD_OK
               ? status
               : td_cuda_pointwise(&(td_pointwise_plan){.stream = stream,
                                                        .program = td_primitive_program(TD_PW_copy),
                                                        .operands = &from,
                                                        .compute = (td_dtype)x->dtype,
                                                        .out = *out});
}

/* Operands with copies in the places of those that clash; *safe is NULL where none does. */
static td_status copy_clashing(const td_pointwise_plan *plan, td_tensor *const *outs, int nlists,
                               td_operand **safe, td_tensor ***copies) {
    const td_program *p = plan->program;
    int n = nlists * p->noperands;
    td_status status = TD_OK;
    for (int k = 0; k < n; k++) {
        const td_tensor *x = plan->operands[k].tensor;
        if (TD_LIKELY(!must_copy(p, x, outs + (size_t)(k / p->noperands) * (size_t)p->noutputs)))
            continue;
        if (!*safe) {
            *safe = td_malloc(sizeof **safe * (size_t)n);
            *copies = td_calloc((size_t)n, sizeof **copies);
            if (!*safe || !*copies)
                return td_fail(TD_ENOMEM, "out of memory for copies of operands");
            memcpy(*safe, plan->operands, sizeof **safe * (size_t)n);
        }
        TD_TRY(copy_of(x, plan->stream, &(*copies)[k]));
        (*safe)[k].tensor = (*copies)[k];
    }
done:
    return status;
}

static void drop_copies(td_operand *safe, td_tensor **copies, int n) {
    for (int k = 0; copies && k < n; k++)
        td_release(copies[k]);
    td_free(copies);
    td_free(safe);
}

/* ---- the functions of the backend ---- */

static td_status begin_operands(td_stream stream, int n, const td_operand *operands, int nouts,
                                td_tensor *const *outs, cudaStream_t *s) {
    for (int k = 0; k < n; k++)
        if (operands[k].tensor)
            td_cuda_use(stream, operands[k].tensor);
    return td_cuda_begin(stream, nouts, outs, s);
}

/* With the operands that lists share repeated for each. */
static td_status run_repeated(const td_pointwise_plan *plan) {
    td_pointwise_plan whole = *plan;
    td_operand *operands = td_operands_repeated(plan);
    if (!operands)
        return td_fail(TD_ENOMEM, "out of memory for %d lists of operands", plan->nlists);
    whole.operands = operands;
    whole.nshared = 0;
    td_status status = td_cuda_pointwise(&whole);
    td_free(operands);
    return status;
}

td_status td_cuda_pointwise(const td_pointwise_plan *plan) {
    const td_program *p = plan->program;
    int nlists = plan->outs ? plan->nlists : 1, n = nlists * p->noperands;
    td_tensor *const *outs = plan->outs ? plan->outs : &plan->out;
    if (plan->nshared)
        return run_repeated(plan);
    if (!fits(p))
        return td_cuda_fall_back_pointwise(plan);
    td_operand *safe = NULL;
    td_tensor **copies = NULL;
    cudaStream_t s;
    batch b;
    td_status status;
    b.device = plan->stream.device.index;
    b.program = p;
    b.compute = td_program_compute(p, plan->compute);
    b.flat.nlists = 0;
    TD_TRY(begin_operands(plan->stream, n, plan->operands, nlists * p->noutputs, outs, &s));
    TD_TRY(copy_clashing(plan, outs, nlists, &safe, &copies));
    TD_TRY(run_lists(&b, plan, safe ? safe : plan->operands, outs, nlists, s));
done:
    drop_copies(safe, copies, n);
    return status;
}

td_status td_cuda_check(const td_check_plan *plan) {
    const td_program *p = plan->program;
    td_dtype compute = td_program_compute(p, plan->compute);
    td_cu_report report;
    td_cu_code code;
    td_cu_walk w;
    cudaStream_t s;
    td_status status;
    if (!fits(p))
        return td_cuda_fall_back_check(plan);
    TD_TRY(begin_operands(plan->stream, p->noperands, plan->operands, 0, NULL, &s));
    make_code(&code, p, compute, plan->operands, NULL);
    code.nouts = 1;
    TD_TRY(make_walk(&w, p, compute, plan->operands, NULL));
    if (w.numel == 0)
        goto done;
    TD_TRY(td_cuda_report(plan->stream, plan->code, plan->message, &report));
    TD_TRY(td_cuda_status(td_cu_run_check(&code, &w, report, s), "checking elements"));
done:
    return status;
}

/* pointwise.c: runs pointwise programs on the CPU.
 *
 * The operands' dims are sorted by the result's strides and merged where they can be; what is left
 * is walked in blocks. An operand that lies as the walk goes is read where it is; others (strided,
 * broadcast, of another dtype) are gathered into a block-sized buffer first. Intermediate results
 * of a program stay in such buffers, in the first-level cache. Knows nothing of gradients.
 */
#include "engine/ops/pointwise.h"

#include "engine/core/memory.h"
#include "engine/core/threads.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/isa/isa.h"
#include "engine/cpu/transpose.h"
#include "engine/ops/copy.h"

#include <string.h>

enum {
    BLOCK = 1024,           /* elements of a buffer */
    LONG_ROW = 256,         /* inner dims from here on are walked row by row */
    GRAIN_COST = 64 * 1024, /* additions that are worth a thread */
    MAX_INPUTS = TD_PROGRAM_OPERANDS
};

typedef struct input {
    const char *data;
    td_dtype dtype;
    bool scalar; /* one element for all; `value` holds it in the dtype of computation */
    bool dense;  /* lies in the order of the walk, in the dtype of computation */
    int64_t strides[TD_MAX_DIMS]; /* bytes, in the order of the walk */
    _Alignas(8) unsigned char value[8];
} input;

typedef struct plan {
    const td_program *program;
    td_dtype compute;
    size_t itemsize; /* of compute */
    int ndim;
    int64_t sizes[TD_MAX_DIMS]; /* merged, innermost last */
    int ninputs;
    input in[MAX_INPUTS];
    input out;
    td_pointwise_fn fns[TD_PROGRAM_STEPS];
    unsigned char constants[TD_PROGRAM_CONSTANTS][8];
} plan;

/* ---- planning ---- */

static td_pointwise_fn loop_of(int primitive, td_dtype compute) {
    if (compute == TD_BOOL && primitive == TD_PW_add)
        primitive = TD_PW_maximum;
    if (compute == TD_BOOL && primitive == TD_PW_bitwise_not)
        primitive = TD_PW_logical_not;
    return td_cpu->pointwise->primitive[primitive][compute];
}

static void store_number(td_dtype compute, void *p, const td_operand *o) {
    if (o->is_int)
        td_store_int(compute, p, o->i);
    else
        td_store_double(compute, p, o->f);
}

/* Strides in bytes of x seen in out's shape: 0 where it is broadcast. */
static void broadcast_strides(const td_tensor *x, const td_tensor *out, int64_t *strides) {
    int64_t size = (int64_t)td_tensor_itemsize(x);
    int lead = out->ndim - x->ndim;
    for (int d = 0; d < out->ndim; d++)
        strides[d] = d < lead || x->sizes[d - lead] == 1 ? 0 : x->strides[d - lead] * size;
}

/* Order of the walk: the result's strides from large to small, dims of size 1 left out. */
static int order_dims(const td_tensor *out, int *order) {
    int n = 0;
    for (int d = 0; d < out->ndim; d++) {
        if (out->sizes[d] == 1)
            continue;
        int at = n++;
        for (; at > 0 && out->strides[order[at - 1]] < out->strides[d]; at--)
            order[at] = order[at - 1];
        order[at] = d;
    }
    return n;
}

static void permute(input *in, const int64_t *strides, const int *order, int n) {
    for (int k = 0; k < n; k++)
        in->strides[k] = strides[order[k]];
}

static bool mergeable(const plan *p, int d) {
    int64_t size = p->sizes[d + 1];
    for (int k = 0; k < p->ninputs; k++)
        if (!p->in[k].scalar && p->in[k].strides[d] != p->in[k].strides[d + 1] * size)
            return false;
    return p->out.strides[d] == p->out.strides[d + 1] * size;
}

static void merge_dims(plan *p) {
    for (int d = p->ndim - 2; d >= 0; d--) {
        if (!mergeable(p, d))
            continue;
        p->sizes[d] *= p->sizes[d + 1];
        for (int k = 0; k <= p->ninputs; k++) {
            input *in = k < p->ninputs ? &p->in[k] : &p->out;
            in->strides[d] = in->strides[d + 1];
            for (int e = d + 1; e < p->ndim - 1; e++)
                in->strides[e] = in->strides[e + 1];
        }
        for (int e = d + 1; e < p->ndim - 1; e++)
            p->sizes[e] = p->sizes[e + 1];
        p->ndim--;
    }
}

static bool lies_dense(const plan *p, const input *in) {
    int64_t stride = (int64_t)p->itemsize;
    if (in->dtype != p->compute)
        return false;
    for (int d = p->ndim - 1; d >= 0; d--) {
        if (in->strides[d] != stride)
            return false;
        stride *= p->sizes[d];
    }
    return true;
}

static td_status make_plan(plan *p, const td_program *program, const td_operand *operands,
                           td_dtype compute, td_tensor *out) {
    int order[TD_MAX_DIMS];
    int64_t strides[TD_MAX_DIMS];
    p->program = program;
    p->compute = compute;
    p->itemsize = td_dtype_size(compute);
    p->ninputs = program->noperands;
    p->ndim = order_dims(out, order);
    for (int k = 0; k < p->ndim; k++)
        p->sizes[k] = out->sizes[order[k]];
    p->out.data = out->data;
    p->out.dtype = out->dtype;
    broadcast_strides(out, out, strides);
    permute(&p->out, strides, order, p->ndim);
    for (int k = 0; k < p->ninputs; k++) {
        input *in = &p->in[k];
        const td_tensor *x = operands[k].tensor;
        in->scalar = !x || x->numel == 1;
        in->dense = false;
        if (!x) {
            store_number(compute, in->value, &operands[k]);
        } else if (in->scalar) {
            td_convert(compute, in->value, 0, x->dtype, x->data, 0, 1);
        } else {
            in->data = x->data;
            in->dtype = x->dtype;
            broadcast_strides(x, out, strides);
            permute(in, strides, order, p->ndim);
        }
    }
    if (p->ndim == 0) {
        p->ndim = 1;
        p->sizes[0] = 1;
        p->out.strides[0] = (int64_t)td_dtype_size(p->out.dtype);
        for (int k = 0; k < p->ninputs; k++)
            p->in[k].strides[0] = 0;
    }
    merge_dims(p);
    for (int k = 0; k < p->ninputs; k++)
        p->in[k].dense = !p->in[k].scalar && lies_dense(p, &p->in[k]);
    p->out.dense = lies_dense(p, &p->out);
    for (int s = 0; s < program->nsteps; s++) {
        p->fns[s] = loop_of(program->steps[s].primitive, compute);
        if (!p->fns[s])
            return td_fail(TD_EDTYPE, "not implemented for %s", td_dtype_name(compute));
    }
    for (int c = 0; c < program->nconstants; c++)
        td_store_double(compute, p->constants[c], program->constants[c]);
    return TD_OK;
}

/* ---- moving elements between strided memory and buffers ---- */

#define STRIDED_COPY(type)                                                                         \
    for (int64_t i = 0; i < n; i++, dst += dst_stride, src += src_stride)                          \
        memcpy(dst, src, sizeof(type));

static void copy_run(char *dst, int64_t dst_stride, const char *src, int64_t src_stride, int64_t n,
                     size_t itemsize) {
    if (dst_stride == (int64_t)itemsize && src_stride == (int64_t)itemsize) {
        memcpy(dst, src, (size_t)n * itemsize);
        return;
    }
    switch (itemsize) {
    case 1:
        STRIDED_COPY(uint8_t)
        break;
    case 2:
        STRIDED_COPY(uint16_t)
        break;
    case 4:
        STRIDED_COPY(uint32_t)
        break;
    default:
        STRIDED_COPY(uint64_t)
    }
}

/* Walk the elements [at, at + n) of a strided operand in runs of the inner dim, copying them from
 * (gather) or to (scatter) a contiguous buffer. */
static void move_block(const plan *p, const input *x, int64_t at, int64_t n, char *buffer,
                       bool gather) {
    size_t itemsize = td_dtype_size(x->dtype);
    int64_t index[TD_MAX_DIMS], rest = at;
    char *data = (char *)x->data;
    for (int d = p->ndim - 1; d >= 0; d--) {
        index[d] = rest % p->sizes[d];
        rest /= p->sizes[d];
        data += index[d] * x->strides[d];
    }
    int last = p->ndim - 1;
    while (n > 0) {
        int64_t run = p->sizes[last] - index[last];
        if (run > n)
            run = n;
        if (gather)
            copy_run(buffer, (int64_t)itemsize, data, x->strides[last], run, itemsize);
        else
            copy_run(data, x->strides[last], buffer, (int64_t)itemsize, run, itemsize);
        buffer += run * (int64_t)itemsize;
        n -= run;
        data += run * x->strides[last];
        index[last] += run;
        for (int d = last; d > 0 && index[d] == p->sizes[d]; d--) {
            data += x->strides[d - 1] - index[d] * x->strides[d];
            index[d] = 0;
            index[d - 1]++;
        }
    }
}

/* ---- running ---- */

typedef struct worker_memory {
    _Alignas(64) unsigned char inputs[MAX_INPUTS][BLOCK * 8];
    _Alignas(64) unsigned char buffers[TD_PROGRAM_BUFFERS][BLOCK * 8];
    _Alignas(64) unsigned char raw[BLOCK * 8];
    _Alignas(64) unsigned char result[BLOCK * 8];
} worker_memory;

/* Pointers of all registers for elements [at, at + n); bits of `scalars` mark single elements. */
typedef struct registers {
    const void *p[TD_BUFFER_BASE + TD_PROGRAM_BUFFERS];
    uint64_t scalars;
} registers;

static void load_inputs(const plan *p, int64_t at, int64_t n, worker_memory *m, registers *r) {
    for (int k = 0; k < p->ninputs; k++) {
        const input *in = &p->in[k];
        if (in->scalar || !(p->program->used >> k & 1)) {
            r->p[k] = in->value;
            r->scalars |= 1ull << k;
        } else if (in->dense) {
            r->p[k] = in->data + at * (int64_t)p->itemsize;
        } else if (in->dtype == p->compute) {
            move_block(p, in, at, n, (char *)m->inputs[k], true);
            r->p[k] = m->inputs[k];
        } else {
            move_block(p, in, at, n, (char *)m->raw, true);
            td_cpu->convert->convert[p->compute][in->dtype](n, m->inputs[k], m->raw);
            r->p[k] = m->inputs[k];
        }
    }
}

/* Powers that are cheaper as something else. */
static td_pointwise_fn cheaper_power(td_dtype compute, const void *exponent, td_pointwise_fn pow) {
    double e = td_load_double(compute, exponent);
    int primitive = e == 2      ? TD_PW_square
                    : e == 1    ? TD_PW_copy
                    : e == 0.5  ? TD_PW_sqrt
                    : e == -0.5 ? TD_PW_rsqrt
                    : e == -1   ? TD_PW_reciprocal
                                : -1;
    td_pointwise_fn fn = primitive < 0 ? NULL : loop_of(primitive, compute);
    return fn ? fn : pow;
}

/* n copies of the element at dst[0]. */
static void repeat_first(void *dst, int64_t n, size_t itemsize) {
    char *d = dst;
    for (int64_t done = 1; done < n;) {
        int64_t more = done < n - done ? done : n - done;
        memcpy(d + done * (int64_t)itemsize, d, (size_t)more * itemsize);
        done += more;
    }
}

static void run_steps(const plan *p, int64_t n, registers *r, void *result) {
    const td_program *g = p->program;
    for (int s = 0; s < g->nsteps; s++) {
        const td_step *step = &g->steps[s];
        unsigned scalars = 0, all = (1u << step->arity) - 1;
        const void *src[3] = {NULL, NULL, NULL};
        for (int k = 0; k < step->arity; k++) {
            src[k] = r->p[step->src[k]];
            scalars |= (unsigned)(r->scalars >> step->src[k] & 1) << k;
        }
        bool last = s == g->nsteps - 1;
        void *dst = last ? result : (void *)r->p[step->dst];
        if (scalars != all) {
            td_pointwise_fn fn = p->fns[s];
            if (step->primitive == TD_PW_pow && scalars == 2)
                fn = cheaper_power(p->compute, src[1], fn);
            fn(n, dst, src[0], src[1], src[2], scalars);
            if (!last)
                r->scalars &= ~(1ull << step->dst);
            continue;
        }
        p->fns[s](1, dst, src[0], src[1], src[2], 0);
        if (last)
            repeat_first(dst, n, p->itemsize);
        else
            r->scalars |= 1ull << step->dst;
    }
}

static void run_block(const plan *p, int64_t at, int64_t n, worker_memory *m) {
    registers r = {.scalars = 0};
    load_inputs(p, at, n, m, &r);
    for (int c = 0; c < p->program->nconstants; c++) {
        r.p[TD_CONSTANT_BASE + c] = p->constants[c];
        r.scalars |= 1ull << (TD_CONSTANT_BASE + c);
    }
    for (int b = 0; b < p->program->nbuffers; b++)
        r.p[TD_BUFFER_BASE + b] = m ? m->buffers[b] : NULL;
    if (p->out.dense) {
        run_steps(p, n, &r, (char *)p->out.data + at * (int64_t)p->itemsize);
        return;
    }
    run_steps(p, n, &r, m->result);
    if (p->out.dtype == p->compute) {
        move_block(p, &p->out, at, n, (char *)m->result, false);
        return;
    }
    td_cpu->convert->convert[p->out.dtype][p->compute](n, m->raw, m->result);
    move_block(p, &p->out, at, n, (char *)m->raw, false);
}

/* A single loop over operands that are read and written in place needs no blocks. */
static bool is_direct(const plan *p) {
    if (p->program->nsteps != 1 || !p->out.dense)
        return false;
    for (int k = 0; k < p->ninputs; k++)
        if (!p->in[k].dense && !p->in[k].scalar)
            return false;
    return true;
}

static void run_range(void *ctx, int64_t begin, int64_t end, int worker) {
    const plan *p = ctx;
    (void)worker;
    if (is_direct(p)) {
        run_block(p, begin, end - begin, NULL);
        return;
    }
    worker_memory memory;
    for (int64_t at = begin; at < end; at += BLOCK)
        run_block(p, at, end - at < BLOCK ? end - at : BLOCK, &memory);
}

/* Long rows: what is constant along a row is a scalar there, what is contiguous is read in place.
 */
static void run_rows(void *ctx, int64_t begin, int64_t end, int worker) {
    const plan *p = ctx;
    (void)worker;
    plan row = *p;
    int last = p->ndim - 1;
    row.ndim = 1;
    row.sizes[0] = p->sizes[last];
    for (int64_t at = begin; at < end; at++) {
        for (int k = 0; k <= p->ninputs; k++) {
            const input *x = k < p->ninputs ? &p->in[k] : &p->out;
            input *y = k < p->ninputs ? &row.in[k] : &row.out;
            if (k < p->ninputs && x->scalar)
                continue;
            const char *data = x->data;
            int64_t rest = at;
            for (int d = last - 1; d >= 0; d--) {
                data += rest % p->sizes[d] * x->strides[d];
                rest /= p->sizes[d];
            }
            y->data = data;
            y->strides[0] = x->strides[last];
            y->scalar = k < p->ninputs && x->strides[last] == 0;
            y->dense = x->dtype == p->compute && x->strides[last] == (int64_t)p->itemsize;
            if (y->scalar)
                td_convert(p->compute, y->value, 0, x->dtype, data, 0, 1);
        }
        run_range(&row, 0, row.sizes[0], 0);
    }
}

/* Does x share memory with out other than element by element? */
static bool clashes(const td_tensor *x, const td_tensor *out) {
    if (x->storage != out->storage || x->numel == 0)
        return false;
    if (x->data == out->data && td_tensor_same_shape(x, out) &&
        !memcmp(x->strides, out->strides, sizeof(int64_t) * (size_t)x->ndim) &&
        x->dtype == out->dtype)
        return false;
    const td_tensor *t[2] = {x, out};
    const char *low[2], *high[2];
    for (int k = 0; k < 2; k++) {
        int64_t reach = 0;
        for (int d = 0; d < t[k]->ndim; d++)
            reach += (t[k]->sizes[d] - 1) * t[k]->strides[d];
        low[k] = t[k]->data;
        high[k] = low[k] + (reach + 1) * (int64_t)td_tensor_itemsize(t[k]);
    }
    return low[0] < high[1] && low[1] < high[0];
}

static td_status run_plan(plan *p, int64_t numel) {
    int64_t grain = GRAIN_COST / (p->program->cost > 0 ? p->program->cost : 1);
    int64_t inner = p->sizes[p->ndim - 1];
    if (p->ndim > 1 && inner >= LONG_ROW)
        return td_parallel_for(numel / inner, (grain + inner - 1) / inner, run_rows, p);
    return td_parallel_for(numel, grain, run_range, p);
}

/* The call that a prompt makes most: one loop, small, everything contiguous and of one dtype.
 * Returns false when it is not that, having done nothing. */
static bool run_small(const td_program *program, const td_operand *operands, td_dtype compute,
                      td_tensor *out) {
    const void *src[3] = {NULL, NULL, NULL};
    _Alignas(8) unsigned char values[3][8];
    unsigned scalars = 0;
    if (program->nsteps != 1 || !out->contiguous || out->dtype != compute ||
        out->numel > GRAIN_COST / 8)
        return false;
    const td_step *step = &program->steps[0];
    for (int k = 0; k < step->arity; k++) {
        if (step->src[k] >= TD_CONSTANT_BASE)
            return false;
        const td_operand *o = &operands[step->src[k]];
        const td_tensor *x = o->tensor;
        if (!x) {
            store_number(compute, values[k], o);
            src[k] = values[k];
            scalars |= 1u << k;
        } else if (x->dtype != compute || (x->storage == out->storage && x->data != out->data)) {
            return false;
        } else if (x->numel == out->numel && x->contiguous) {
            src[k] = x->data;
        } else if (x->numel == 1) { /* copied: it may be an element of out */
            memcpy(values[k], x->data, td_dtype_size(compute));
            src[k] = values[k];
            scalars |= 1u << k;
        } else {
            return false;
        }
    }
    if (out->numel == 1)
        scalars = 0;
    else if (scalars == (1u << step->arity) - 1)
        return false;
    td_pointwise_fn fn = loop_of(step->primitive, compute);
    if (fn && step->primitive == TD_PW_pow && scalars == 2)
        fn = cheaper_power(compute, src[1], fn);
    if (fn)
        fn(out->numel, out->data, src[0], src[1], src[2], scalars);
    return fn != NULL;
}

td_status td_cpu_pointwise(const td_pointwise_plan *given) {
    const td_program *program = given->program;
    const td_operand *operands = given->operands;
    td_dtype compute = given->compute;
    td_tensor *out = given->out;
    td_status status = TD_OK;
    td_operand safe[MAX_INPUTS];
    td_tensor *copies[MAX_INPUTS] = {NULL};
    if (out->numel == 0 || run_small(program, operands, compute, out))
        return TD_OK;
    const td_tensor *source =
        program == td_primitive_program(TD_PW_copy) ? operands[0].tensor : NULL;
    if (source && source->storage != out->storage && td_cpu_is_transpose(out, source))
        return td_cpu_transpose(out, source);
    for (int k = 0; k < program->noperands; k++) {
        safe[k] = operands[k];
        if (TD_LIKELY(!safe[k].tensor || !clashes(safe[k].tensor, out)))
            continue;
        const td_tensor *x = safe[k].tensor;
        TD_TRY(td_tensor_empty(x->dtype, TD_DEVICE_CPU, x->ndim, x->sizes, &copies[k]));
        TD_TRY(td_copy_into(copies[k], x));
        safe[k].tensor = copies[k];
    }
    plan p;
    TD_TRY(make_plan(&p, program, safe, compute, out));
    status = run_plan(&p, out->numel);
done:
    for (int k = 0; k < program->noperands; k++)
        td_release(copies[k]);
    return status;
}

/* graph_runs.c: makes inputs, runs graphs and compares what they did. */
#include "tests/script/graph_runs.h"

#include "engine/core/random.h"
#include "engine/ops/quantized/quantized_tensor.h"
#include "engine/script/run.h"
#include "engine/script/scripted.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- inputs ---- */

static uint64_t next(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static double draw_element(td_dtype dtype, uint64_t *state) {
    static const double special[] = {0.0, -0.0, 1.0, -1.0, INFINITY, -INFINITY, NAN, 1e30, 1e-30};
    static const double ends[] = {0, 1, -1, 127, -128, 255, 2147483647.0, -2147483648.0};
    if (td_dtype_is_float(dtype))
        return next(state) % 5 ? (double)(int64_t)(next(state) % 2000) / 300 - 3
                               : special[next(state) % 9];
    if (dtype == TD_BOOL)
        return (double)(next(state) % 2);
    return next(state) % 4 ? (double)(int64_t)(next(state) % 9) - 4 : ends[next(state) % 8];
}

static td_status make_tensor(const td_ir_type *type, uint64_t *state, td_tensor **out) {
    td_dtype dtype = type->dtype == TD_DTYPE_NONE ? TD_F32 : (td_dtype)type->dtype;
    int n = type->n < 0 ? 2 : type->n;
    int64_t sizes[TD_MAX_DIMS], strides[TD_MAX_DIMS], span = 1;
    td_tensor *memory = NULL;
    for (int d = n - 1, step = 1; d >= 0; d--) {
        int64_t size = type->n < 0 || !type->sizes ? TD_IR_UNKNOWN : type->sizes[d];
        sizes[d] = size == TD_IR_UNKNOWN ? 3 : size;
        strides[d] = type->strides ? type->strides[d] : step;
        step *= (int)sizes[d];
        span += sizes[d] ? (sizes[d] - 1) * strides[d] : 0;
    }
    td_status status = td_tensor_empty(dtype, TD_DEVICE_CPU, 1, &span, &memory);
    for (int64_t k = 0; status == TD_OK && k < span; k++)
        td_store_double(dtype, (char *)memory->data + (size_t)k * td_tensor_itemsize(memory),
                        draw_element(dtype, state));
    if (status == TD_OK)
        status = td_tensor_view(memory, n, sizes, strides, 0, out);
    td_release(memory);
    return status;
}

static td_status make_input(const td_ir_type *type, uint64_t *state, td_value *out) {
    td_tensor *x = NULL;
    td_status status = TD_OK;
    if (type->kind == TD_IR_TENSOR) {
        status = make_tensor(type, state, &x);
        *out = status ? TD_NIL : TD_T(x);
    } else if (type->kind == TD_IR_INT)
        *out = TD_I((int64_t)(next(state) % 7));
    else if (type->kind == TD_IR_BOOL)
        *out = TD_B(next(state) % 2);
    else if (type->kind == TD_IR_FLOAT || type->kind == TD_IR_NUMBER)
        *out = TD_F((double)(next(state) % 100) / 16 - 2);
    else
        status = td_fail(TD_EVALUE, "no input of this type is made");
    return status;
}

/* ---- runs ---- */

static double draw_number(void) {
    double value = 0;
    td_tensor *x = NULL;
    if (TD_APPLY(&x, rand, TD_INTS(1, (int64_t[]){1})) || td_tensor_item(x, &value))
        value = -1;
    td_release(x);
    return value;
}

bool graph_run_make(const td_ir_graph *g, uint64_t seed, graph_run *run) {
    td_script *s = NULL;
    uint64_t state = seed;
    *run = (graph_run){.ninputs = g->block->ninputs, .noutputs = g->block->noutputs};
    for (int k = 0; k < run->ninputs && run->status == TD_OK; k++)
        run->status = make_input(g->block->inputs[k]->type, &state, &run->inputs[k]);
    if (run->status == TD_OK)
        run->status = td_script_new((td_ir_graph *)g, &s);
    bool ready = run->status == TD_OK;
    if (ready) {
        td_manual_seed(seed);
        run->status = td_script_run(s, run->inputs, run->outputs);
    }
    if (run->status)
        snprintf(run->message, sizeof run->message, "%s", td_error_message());
    run->drawn = draw_number();
    td_script_release(s);
    return ready;
}

/* Inputs anew, and the call. */
static void call_scripted(td_scripted *f, const td_ir_graph *g, uint64_t seed, graph_run *run) {
    uint64_t state = seed;
    *run = (graph_run){.ninputs = g->block->ninputs, .noutputs = g->block->noutputs};
    for (int k = 0; k < run->ninputs && run->status == TD_OK; k++)
        run->status = make_input(g->block->inputs[k]->type, &state, &run->inputs[k]);
    if (run->status == TD_OK) {
        td_manual_seed(seed);
        run->status = td_scripted_call(f, run->inputs, run->outputs);
    }
    if (run->status)
        snprintf(run->message, sizeof run->message, "%s", td_error_message());
    run->drawn = draw_number();
}

bool graph_run_scripted(const td_ir_graph *g, uint64_t seed, graph_run *run) {
    td_scripted *f = NULL;
    *run = (graph_run){.status = TD_OK};
    if (td_scripted_new((td_ir_graph *)g, "random", &f)) {
        snprintf(run->message, sizeof run->message, "%s", td_error_message());
        return false;
    }
    call_scripted(f, g, seed, run);
    graph_run_clear(run);
    call_scripted(f, g, seed, run);
    td_scripted_release(f);
    return true;
}

void graph_run_clear(graph_run *run) {
    for (int k = 0; k < run->ninputs; k++)
        td_script_drop(&run->inputs[k]);
    for (int k = 0; k < run->noutputs && run->status == TD_OK; k++)
        td_script_drop(&run->outputs[k]);
}

/* ---- comparison ---- */

/* Elements of x from the first on, in row-major order. */
static const char *element(const td_tensor *x, int64_t k) {
    int64_t offset = 0;
    for (int d = x->ndim - 1; d >= 0; d--) {
        offset += k % x->sizes[d] * x->strides[d];
        k /= x->sizes[d];
    }
    return (const char *)x->data + offset * (int64_t)td_tensor_itemsize(x);
}

/* The stride of a dim that takes no step is of no matter. */
static bool same_strides(const td_tensor *a, const td_tensor *b) {
    for (int d = 0; d < a->ndim && a->numel; d++)
        if (a->sizes[d] > 1 && a->strides[d] != b->strides[d])
            return false;
    return true;
}

static bool same_tensor(const td_tensor *a, const td_tensor *b, char *why, size_t size) {
    const td_quantized *qa = td_quantized_of(a), *qb = td_quantized_of(b);
    if (qa && qb && qa->scale == qb->scale && qa->zero_point == qb->zero_point)
        return same_tensor(qa->ints, qb->ints, why, size);
    if (qa || qb) {
        snprintf(why, size, "layout or parameters");
        return false;
    }
    bool alike = a->dtype == b->dtype && td_tensor_same_shape(a, b) && same_strides(a, b);
    if (!alike) {
        snprintf(why, size, "dtype, shape or strides");
        return false;
    }
    for (int64_t k = 0; k < a->numel; k++) {
        const char *p = element(a, k), *q = element(b, k);
        double x = td_load_double((td_dtype)a->dtype, p), y = td_load_double((td_dtype)a->dtype, q);
        bool both_nan = isnan(x) && isnan(y);
        if (!both_nan && memcmp(p, q, td_tensor_itemsize(a))) {
            snprintf(why, size, "element %lld: %.17g and %.17g", (long long)k, x, y);
            return false;
        }
    }
    return true;
}

static bool same_value(td_value a, td_value b, char *why, size_t size) {
    snprintf(why, size, "kind or number");
    if (a.kind != b.kind)
        return false;
    if (a.kind == TD_KIND_TENSOR)
        return same_tensor(a.tensor, b.tensor, why, size);
    if (a.kind == TD_KIND_TENSORS) {
        bool same = a.n == b.n;
        for (int k = 0; k < a.n && same; k++)
            same = same_tensor(a.tensors[k], b.tensors[k], why, size);
        return same;
    }
    return a.kind == TD_KIND_FLOAT  ? !memcmp(&a.f, &b.f, sizeof a.f) || (isnan(a.f) && isnan(b.f))
           : a.kind == TD_KIND_INT  ? a.i == b.i
           : a.kind == TD_KIND_BOOL ? a.b == b.b
                                    : true;
}

/* 2: one tensor, 1: shared memory, 0: neither. */
static int relation(td_value a, td_value b) {
    if (a.kind != TD_KIND_TENSOR || b.kind != TD_KIND_TENSOR)
        return 0;
    return a.tensor == b.tensor ? 2 : a.tensor->storage == b.tensor->storage;
}

static td_value value_of(const graph_run *run, int k) {
    return k < run->ninputs ? run->inputs[k] : run->outputs[k - run->ninputs];
}

bool graph_run_same(const graph_run *a, const graph_run *b, char *why, size_t size) {
    char what[128];
    int n = a->ninputs + (a->status == TD_OK ? a->noutputs : 0);
    if (a->status != b->status || strcmp(a->message, b->message)) {
        snprintf(why, size, "error: \"%s\" and \"%s\"", a->message, b->message);
        return false;
    }
    if (a->drawn != b->drawn) {
        snprintf(why, size, "numbers drawn");
        return false;
    }
    for (int k = 0; k < n; k++)
        if (!same_value(value_of(a, k), value_of(b, k), what, sizeof what)) {
            snprintf(why, size, "%s %d: %s", k < a->ninputs ? "input" : "output",
                     k < a->ninputs ? k : k - a->ninputs, what);
            return false;
        }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            if (relation(value_of(a, i), value_of(a, j)) !=
                relation(value_of(b, i), value_of(b, j))) {
                snprintf(why, size, "values %d and %d share memory in one of both", j, i);
                return false;
            }
    return true;
}

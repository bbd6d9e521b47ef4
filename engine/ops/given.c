/* given.c: checks the tensors given to a call to write (out=, in place): their number, dtype and
 * shape against the results, and their memory against what the call reads. */
#include "engine/ops/given.h"

#include <stdio.h>
#include <string.h>

/* ---- all tensors that a call reads ---- */

static bool any_read_of(const td_value *v, td_read_test test, const void *what) {
    if (v->kind == TD_KIND_TENSOR && v->tensor)
        return test(v->tensor, what);
    for (int j = 0; v->kind == TD_KIND_TENSORS && j < v->n; j++)
        if (v->tensors[j] && test(v->tensors[j], what))
            return true;
    return false;
}

/* Does the test hold of an argument, from this one on? */
static bool any_argument(const td_call *call, int first, td_read_test test, const void *what) {
    for (int k = first; k < call->op->nparams; k++)
        if (any_read_of(&call->args[k], test, what))
            return true;
    return false;
}

/* The same, or of what an argument was made from? */
bool td_call_any_read(const td_call *call, int first, td_read_test test, const void *what) {
    if (any_argument(call, first, test, what))
        return true;
    for (int k = 0; k < call->nbeside; k++)
        if (test(call->given[call->ngiven + k], what))
            return true;
    return false;
}

int td_call_count_tensors(const td_call *call) {
    int n = 0;
    for (int k = 0; k < call->op->nparams; k++)
        n += call->args[k].kind == TD_KIND_TENSORS ? call->args[k].n
                                                   : call->args[k].kind == TD_KIND_TENSOR;
    return n;
}

td_status td_call_map_tensors(const td_call *call, td_value *args, td_tensor **room,
                              td_status (*map)(void *ctx, td_tensor **x), void *ctx) {
    td_status status = TD_OK;
    memcpy(args, call->args, sizeof *args * call->op->nparams);
    for (int k = 0; k < call->op->nparams && status == TD_OK; k++) {
        td_value *v = &args[k];
        if (v->kind == TD_KIND_TENSOR)
            status = map(ctx, &v->tensor);
        if (v->kind != TD_KIND_TENSORS)
            continue;
        for (int j = 0; j < v->n && status == TD_OK; j++) {
            room[j] = v->tensors[j];
            if (room[j])
                status = map(ctx, &room[j]);
        }
        v->tensors = room;
        room += v->n;
    }
    return status;
}

/* ---- memory ---- */

/* Where a tensor's elements lie; storage NULL: nowhere that others could, or with gaps, in which
 * others may lie. */
typedef struct extent {
    const td_storage *storage;
    size_t from, to;
} extent;

static extent extent_at(const td_tensor *x, int64_t numel) {
    size_t from = (size_t)((const char *)x->data - (const char *)x->storage->data);
    return (extent){x->storage, from, from + (size_t)numel * td_tensor_itemsize(x)};
}

static extent extent_of(const td_tensor *x) {
    return x->numel && td_tensor_is_dense(x) ? extent_at(x, x->numel) : (extent){NULL, 0, 0};
}

static bool has_shape(const td_tensor *x, const td_meta *m) {
    return x->ndim == m->ndim && !memcmp(x->sizes, m->sizes, sizeof(int64_t) * (size_t)m->ndim);
}

/* Of a tensor that will be brought into the shape of a result: where it needs more than there is
 * behind it, it gets memory of its own. */
static extent extent_in_shape(const td_tensor *x, const td_meta *result) {
    if (has_shape(x, result))
        return extent_of(x);
    int64_t numel = td_numel(result->ndim, result->sizes);
    for (int d = 0; d < result->ndim; d++)
        if (result->sizes[d] == 0)
            numel = 0;
    if (numel <= 0 || numel > INT64_MAX / 16)
        return (extent){NULL, 0, 0};
    extent e = extent_at(x, numel);
    return e.to <= x->storage->bytes ? e : (extent){NULL, 0, 0};
}

static bool meet(extent a, extent b) {
    return a.storage && a.storage == b.storage && a.from < b.to && b.from < a.to;
}

/* A tensor given, with its extents before and after it is brought into shape. */
typedef struct target {
    const td_tensor *given;
    extent before, after;
} target;

static bool lies_on(const td_tensor *read, const void *written) {
    const target *t = written;
    extent own = extent_of(read);
    return read == t->given || meet(own, t->before) || meet(own, t->after);
}

static td_status check_apart(const td_call *call, int n, const td_meta *results) {
    for (int k = 0; k < n; k++) {
        const td_tensor *x = call->given[k];
        const target written = {x, extent_of(x), extent_in_shape(x, &results[k])};
        if (call->op->flags & TD_OP_OUT_APART &&
            td_call_any_read(call, call->op->flags & TD_OP_INPLACE ? 1 : 0, lies_on, &written))
            return td_fail(TD_EVALUE, "out= shares memory with an argument: give another tensor");
        for (int j = 0; j < k; j++) {
            if (x == call->given[j])
                return td_fail(TD_EVALUE, "tensors %d and %d of out= are the same", j + 1, k + 1);
            if (meet(written.after, extent_in_shape(call->given[j], &results[j])))
                return td_fail(TD_EVALUE, "tensors %d and %d of out= share memory", j + 1, k + 1);
        }
    }
    return TD_OK;
}

static bool lies_in(const td_tensor *read, const void *storage) {
    return read->storage == storage;
}

bool td_writes_argument(const td_call *call, const td_tensor *given) {
    return any_argument(call, 0, lies_in, given->storage);
}

/* ---- results ---- */

static td_status fail_count(const td_call *call, int n) {
    const td_op *op = call->op;
    char names[80] = "";
    int at = 0;
    for (int k = 0; k < n && op->nresults > 1 && at < (int)sizeof names; k++)
        at += snprintf(names + at, sizeof names - (size_t)at, "%s%s", k ? ", " : "",
                       op->result_names[k]);
    if (n == 1)
        return td_fail(TD_EVALUE, "one result: out= must be one tensor, got a list of %d",
                       call->ngiven);
    return td_fail(TD_EVALUE, "%d results: out= must be a list of %d tensors (%s), got %d", n, n,
                   names, call->ngiven);
}

static td_status check_fit(const td_call *call, const td_tensor *given, const td_meta *result) {
    char want[TD_SHAPE_TEXT], have[TD_SHAPE_TEXT];
    td_dtype dtype = result->dtype;
    if (!call->inplace && call->op->flags & TD_OP_OUT_EXACT && given->dtype != dtype)
        return td_fail(TD_EDTYPE, "the result is %s, out is %s", td_dtype_name(dtype),
                       td_dtype_name((td_dtype)given->dtype));
    if (td_dtypes[dtype].category > td_dtypes[given->dtype].category)
        return td_fail(TD_EDTYPE, "a %s result can't be written into a %s tensor",
                       td_dtype_name(dtype), td_dtype_name((td_dtype)given->dtype));
    if (!call->inplace || has_shape(given, result))
        return TD_OK;
    return td_fail(TD_ESHAPE, "the result's shape %s is not that of the tensor written, %s",
                   td_shape_text(result->ndim, result->sizes, want, sizeof want),
                   td_tensor_shape_text(given, have));
}

td_status td_check_given(const td_call *call, int n, const td_meta *results) {
    if (call->ngiven != n)
        return fail_count(call, n);
    for (int k = 0; k < n; k++) {
        td_status status = check_fit(call, call->given[k], &results[k]);
        if (status)
            return status;
    }
    return call->inplace ? TD_OK : check_apart(call, n, results);
}

td_status td_fit_given(const td_call *call, int k, const td_meta *result) {
    return has_shape(call->given[k], result)
               ? TD_OK
               : td_tensor_resize(call->given[k], result->ndim, result->sizes);
}

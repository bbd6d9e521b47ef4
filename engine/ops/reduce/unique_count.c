/* unique_count.c: unique elements and rows, bincount, histc, searchsorted, bucketize and isin. Most
 * of them sort, and compare each element with its neighbour.
 */
#include "engine/ops/element_checks.h"
#include "engine/ops/make/copy.h"
#include "engine/ops/plan/plan.h"
#include "engine/ops/rule_helpers.h"

#include <math.h>
#include <string.h>

#define TD_FAMILY "unique_count"

/* ---- unique ---- */

/* What unique is worked out from: things in order, and where each of them stood. */
typedef struct ordered {
    td_tensor *things; /* elements, or rows: equal ones side by side along dim 0 */
    td_tensor *places; /* NULL: each stands where it stood */
    td_tensor *fresh;  /* bool: different from the one before */
} ordered;

static void release_ordered(ordered *o) {
    td_release(o->things);
    td_release(o->places);
    td_release(o->fresh);
}

/* Which of the things, elements or rows of a matrix, are the first of their equals. */
static td_status mark_fresh(const td_tensor *things, td_tensor **fresh) {
    td_tensor *first = NULL, *later = NULL, *before = NULL, *t = (td_tensor *)things;
    const int64_t n = things->sizes[0], one = n > 0, last = 1;
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(&first, ones, TD_INTS(1, &one), TD_DTYPE(TD_BOOL),
                    TD_DEVICE(td_tensor_device(things))));
    TD_TRY(TD_APPLY(&later, narrow, TD_T(t), TD_I(0), TD_I(one), TD_I(n - one)));
    TD_TRY(TD_APPLY(&before, narrow, TD_T(t), TD_I(0), TD_I(0), TD_I(n - one)));
    TD_STEP(&later, ne, TD_T(later), TD_T(before));
    if (things->ndim > 1)
        TD_STEP(&later, any, TD_T(later), TD_INTS(1, &last));
    status = TD_APPLY(fresh, cat, TD_TENSORS(2, ((td_tensor *[]){first, later})), TD_I(0));
done:
    td_release(first);
    td_release(later);
    td_release(before);
    return status;
}

/* For each thing, where it stood, the number of its unique one; in a shape. */
static td_status make_inverse(const ordered *o, int ndim, const int64_t *sizes, td_tensor **out) {
    td_tensor *ranks = NULL, *inverse = NULL;
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(&ranks, cumsum, TD_T(o->fresh), TD_I(0)));
    TD_STEP(&ranks, sub, TD_T(ranks), TD_I(1));
    if (o->places) {
        TD_TRY(TD_APPLY(&inverse, empty_like, TD_T(ranks)));
        TD_TRY(TD_APPLY_INPLACE(scatter, TD_T(inverse), TD_I(0), TD_T(o->places), TD_T(ranks)));
    } else {
        inverse = td_retain(ranks);
    }
    status = TD_APPLY(out, reshape, TD_T(inverse), TD_INTS(ndim, sizes));
done:
    td_release(ranks);
    td_release(inverse);
    return status;
}

/* The distances from each first of its equals to the next one. */
static td_status make_counts(const ordered *o, td_tensor **out) {
    const int64_t flat = -1;
    td_tensor *starts = NULL, *end = NULL;
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(&starts, nonzero, TD_T(o->fresh)));
    TD_STEP(&starts, reshape, TD_T(starts), TD_INTS(1, &flat));
    TD_TRY(TD_APPLY(&end, full, TD_INTS(1, ((int64_t[]){1})), TD_I(o->fresh->numel),
                    TD_DTYPE(TD_I64), TD_DEVICE(td_tensor_device(starts))));
    status = TD_APPLY(out, diff, TD_T(starts), TD_I(1), TD_I(0), TD_NIL, TD_T(end));
done:
    td_release(starts);
    td_release(end);
    return status;
}

/* The results: unique things, inverse and counts where they are asked for. */
static td_status finish_unique(td_call *call, const ordered *o, int ndim, const int64_t *sizes,
                               bool inverse, bool counts) {
    td_tensor *places = NULL;
    const int64_t flat = -1;
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(&places, nonzero, TD_T(o->fresh)));
    TD_STEP(&places, reshape, TD_T(places), TD_INTS(1, &flat));
    TD_TRY(TD_APPLY(&call->out[0], index_select, TD_T(o->things), TD_I(0), TD_T(places)));
    if (inverse)
        TD_TRY(make_inverse(o, ndim, sizes, &call->out[1]));
    if (counts)
        TD_TRY(make_counts(o, &call->out[2]));
done:
    td_release(places);
    return status;
}

static td_status unique_elements(td_call *call, bool sort, bool inverse, bool counts) {
    td_tensor *x = call->args[0].tensor, *both[2] = {NULL, NULL};
    const int64_t flat = -1;
    ordered o = {NULL, NULL, NULL};
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(&o.things, reshape, TD_T(x), TD_INTS(1, &flat)));
    if (sort) {
        TD_TRY(TD_APPLY(both, sort, TD_T(o.things), TD_I(0)));
        td_release(o.things);
        o.things = both[0];
        o.places = both[1];
    }
    TD_TRY(mark_fresh(o.things, &o.fresh));
    status = finish_unique(call, &o, x->ndim, x->sizes, inverse, counts);
done:
    release_ordered(&o);
    return status;
}

static td_status check_rows(const td_tensor *x, int dim) {
    for (int d = 0; d < x->ndim; d++)
        if (d != dim && x->sizes[d] == 0) {
            char shape[TD_SHAPE_TEXT];
            return td_fail(TD_ESHAPE,
                           "dim %d of shape %s is empty: along dim %d there is nothing "
                           "to compare",
                           d + 1, td_tensor_shape_text(x, shape), dim + 1);
        }
    return TD_OK;
}

/* x as rows along a dim, in order where they are to be sorted. */
static td_status order_rows(td_tensor *x, int64_t dim, bool sort, ordered *o) {
    td_tensor *rows = NULL;
    int64_t sizes[2] = {x->ndim ? x->sizes[dim] : 1, 1};
    td_status status = TD_OK;
    sizes[1] = sizes[0] ? x->numel / sizes[0] : 1;
    if (x->ndim)
        TD_TRY(TD_APPLY(&rows, movedim, TD_T(x), TD_INTS(1, &dim), TD_INTS(1, ((int64_t[]){0}))));
    else
        rows = td_retain(x);
    TD_STEP(&rows, reshape, TD_T(rows), TD_INTS(2, sizes));
    if (sort) {
        TD_TRY(TD_APPLY(&o->places, row_order, TD_T(rows)));
        TD_STEP(&rows, index_select, TD_T(rows), TD_I(0), TD_T(o->places));
    }
    o->things = td_retain(rows);
    status = mark_fresh(rows, &o->fresh);
done:
    td_release(rows);
    return status;
}

static td_status unique_rows(td_call *call, td_value at, bool sort, bool inverse, bool counts) {
    td_tensor *x = call->args[0].tensor, *y = NULL;
    ordered o = {NULL, NULL, NULL};
    int64_t sizes[TD_MAX_DIMS], n, to;
    int dim;
    td_status status = td_wrap_dim(at.i, x->ndim, &dim);
    if (status == TD_OK)
        status = check_rows(x, dim);
    if (status)
        return status;
    TD_TRY(order_rows(x, dim, sort, &o));
    TD_TRY(finish_unique(call, &o, 1, ((int64_t[]){o.things->sizes[0]}), inverse, counts));
    n = call->out[0]->sizes[0];
    sizes[0] = n;
    for (int d = 0, k = 1; d < x->ndim; d++)
        if (d != dim)
            sizes[k++] = x->sizes[d];
    to = dim;
    TD_TRY(TD_APPLY(&y, reshape, TD_T(call->out[0]), TD_INTS(x->ndim ? x->ndim : 1, sizes)));
    TD_STEP(&y, movedim, TD_T(y), TD_INTS(1, ((int64_t[]){0})), TD_INTS(1, &to));
    TD_STEP(&y, contiguous, TD_T(y));
    td_release(call->out[0]);
    call->out[0] = td_retain(y);
done:
    td_release(y);
    release_ordered(&o);
    return status;
}

static td_status run_unique(td_call *call) {
    const td_value *a = call->args;
    return td_is_nil(a[4]) ? unique_elements(call, true, a[2].b, a[3].b)
                           : unique_rows(call, a[4], true, a[2].b, a[3].b);
}

static td_status run_unique_consecutive(td_call *call) {
    const td_value *a = call->args;
    return td_is_nil(a[3]) ? unique_elements(call, false, a[1].b, a[2].b)
                           : unique_rows(call, a[3], false, a[1].b, a[2].b);
}

static td_status rule_row_order(const td_call *call, td_meta *out) {
    const td_tensor *x = call->args[0].tensor;
    td_meta_set(out, TD_I64, 1, x->sizes);
    return td_check_ndim(x, "x", 2);
}

static td_status kernel_row_order(td_call *call) {
    td_tensor *x = NULL;
    td_status status = td_contiguous(call->args[0].tensor, &x);
    td_order_rows_plan p = {.index = call->out[0], .x = x};
    if (status == TD_OK && call->out[0]->numel)
        status = TD_RUN(td_tensor_device(x), order_rows, &p);
    td_release(x);
    return status;
}

/* ---- counts ---- */

/* The largest of numbers that are counted, as they count from 0; -1: there are none. */
static td_status largest_number(td_value numbers, int64_t *largest) {
    td_tensor *x = numbers.tensor, *least = NULL, *most = NULL;
    int64_t first = 0;
    td_status status = TD_OK;
    *largest = -1;
    if (x->numel == 0)
        return TD_OK;
    TD_TRY(TD_APPLY(&least, amin, TD_T(x)));
    TD_TRY(TD_APPLY(&most, amax, TD_T(x)));
    TD_TRY(td_tensor_item_int(least, &first));
    TD_TRY(td_tensor_item_int(most, largest));
    *largest -= numbers.from_one;
    if (first < 0)
        status = td_fail(TD_EINDEX, "numbers that are counted must not be negative");
    else if (first < numbers.from_one)
        status = td_fail(TD_EINDEX, "index 0: indices count from 1 (PyTorch's 0 is 1)");
done:
    td_release(least);
    td_release(most);
    return status;
}

static td_status check_weights(const td_tensor *x, const td_tensor *weights) {
    char a[TD_SHAPE_TEXT], b[TD_SHAPE_TEXT];
    if (!weights || td_tensor_same_shape(x, weights))
        return TD_OK;
    return td_fail(TD_ESHAPE, "weights of shape %s don't fit x of shape %s",
                   td_tensor_shape_text(weights, b), td_tensor_shape_text(x, a));
}

/* Weights of float32 are summed as such, all others as float64. */
static td_dtype sum_dtype(td_dtype weights) {
    if (weights == TD_F32)
        return weights;
    return TD_F64;
}

static td_status run_bincount(td_call *call) {
    td_tensor *x = call->args[0].tensor, *weights = td_arg_tensor(call->args[1]);
    td_tensor *bins = NULL, *parts = NULL, *index = NULL;
    int64_t largest, n = call->args[2].i;
    td_status status = td_check_ndim(x, "x", 1);
    if (status == TD_OK)
        status = td_check_index(x);
    if (status == TD_OK)
        status = check_weights(x, weights);
    if (status)
        return status;
    td_dtype dtype = weights && x->numel ? sum_dtype((td_dtype)weights->dtype) : TD_I64;
    td_value device = TD_DEVICE(td_tensor_device(x));
    TD_TRY(largest_number(call->args[0], &largest));
    n = largest >= n ? largest + (largest < INT64_MAX) : n; /* the last: no memory has room */
    TD_TRY(TD_APPLY(&bins, zeros, TD_INTS(1, &n), TD_DTYPE(dtype), device));
    TD_TRY(TD_APPLY(&index, to, TD_T(x), TD_DTYPE(TD_I64)));
    if (weights) {
        TD_TRY(TD_APPLY(&parts, to, TD_T(weights), TD_DTYPE(dtype)));
    } else { /* one 1 for all */
        TD_TRY(TD_APPLY(&parts, ones, TD_INTS(1, ((int64_t[]){1})), TD_DTYPE(dtype), device));
        TD_STEP(&parts, expand, TD_T(parts), TD_INTS(1, &x->numel));
    }
    TD_TRY(TD_APPLY_INPLACE(scatter_add, TD_T(bins), TD_I(0), TD_INDEX(index, call->args[0]),
                            TD_T(parts)));
    call->out[0] = td_retain(bins);
done:
    td_release(bins);
    td_release(parts);
    td_release(index);
    return status;
}

/* The ends of a histogram: those given, or the elements' own where they are equal. */
static td_status histogram_ends(const td_tensor *x, double *low, double *high) {
    td_tensor *least = NULL, *most = NULL;
    td_status status = TD_OK;
    if (*low == *high && x->numel && td_has_elements(x)) {
        TD_TRY(TD_APPLY(&least, amin, TD_T((td_tensor *)x)));
        TD_TRY(TD_APPLY(&most, amax, TD_T((td_tensor *)x)));
        TD_TRY(td_tensor_item(least, low));
        TD_TRY(td_tensor_item(most, high));
    }
    if (*low == *high) {
        *low -= 1;
        *high += 1;
    }
    if (!isfinite(*low) || !isfinite(*high))
        status = td_fail(TD_EVALUE, "the range from %g to %g is not finite", *low, *high);
    else if (*low > *high)
        status = td_fail(TD_EVALUE, "max must be larger than min, got %g and %g", *high, *low);
done:
    td_release(least);
    td_release(most);
    return status;
}

/* Elements that are counted together: on the CPU so few that their places stay in a cache, unless
 * there are more bins, which each time are looked at. */
static int64_t counted_together(const td_tensor *x, int64_t bins) {
    enum { CACHED = 32 * 1024 };
    if (td_tensor_device(x).type != TD_CPU || bins > x->numel)
        return x->numel;
    return bins > CACHED ? bins : CACHED;
}

static td_status run_histc(td_call *call) {
    const td_tensor *x = call->args[0].tensor;
    double low = td_arg_double(call->args[2]), high = td_arg_double(call->args[3]);
    int64_t bins = call->args[1].i, all = -1, most = counted_together(x, bins);
    td_tensor *flat = NULL, *part = NULL, *counts = NULL, *sums = NULL;
    td_status status = TD_OK;
    TD_TRY(td_check_float((td_dtype)x->dtype));
    TD_TRY(histogram_ends(x, &low, &high));
    TD_TRY(TD_APPLY(&flat, reshape, call->args[0], TD_INTS(1, &all)));
    TD_TRY(TD_APPLY(&sums, zeros, TD_INTS(1, &bins), TD_DTYPE(TD_I64),
                    TD_DEVICE(td_tensor_device(x))));
    for (int64_t at = 0, n; at < x->numel; at += n) {
        n = x->numel - at < most ? x->numel - at : most;
        TD_TRY(TD_APPLY(&part, narrow, TD_T(flat), TD_I(0), TD_I(at), TD_I(n)));
        TD_TRY(TD_APPLY(&counts, bin_counts, TD_T(part), TD_I(bins), TD_F(low), TD_F(high),
                        TD_DTYPE(TD_I64)));
        TD_TRY(TD_APPLY_INPLACE(add, TD_T(sums), TD_T(counts)));
        td_release(part);
        td_release(counts);
        part = counts = NULL;
    }
    status = TD_APPLY(call->out, to, TD_T(sums), TD_DTYPE((td_dtype)x->dtype));
done:
    td_release(flat);
    td_release(part);
    td_release(counts);
    td_release(sums);
    return status;
}

/* ---- searches ---- */

static td_status check_search(const td_tensor *s, td_value values) {
    char a[TD_SHAPE_TEXT], b[TD_SHAPE_TEXT];
    const td_tensor *v = td_arg_tensor(values);
    if (s->ndim == 0)
        return td_fail(TD_ESHAPE, "the sorted sequence must have a dim");
    if (s->ndim == 1)
        return TD_OK;
    if (!v)
        return td_fail(TD_ESHAPE, "a number is searched in a sequence of 1 dim, got shape %s",
                       td_tensor_shape_text(s, a));
    bool fits = v->ndim == s->ndim;
    for (int d = 0; d < s->ndim - 1 && fits; d++)
        fits = v->sizes[d] == s->sizes[d];
    return fits ? TD_OK
                : td_fail(TD_ESHAPE,
                          "values of shape %s don't fit sequences of shape %s: all dims but the "
                          "last must be the same",
                          td_tensor_shape_text(v, b), td_tensor_shape_text(s, a));
}

static td_status rule_search(const td_call *call, td_meta *out) {
    const td_value *a = call->args;
    const td_tensor *s = a[0].tensor, *v = a[1].tensor, *sorter = td_arg_tensor(a[2]);
    td_search_plan *p = TD_PLAN(call, td_search_plan);
    *p = (td_search_plan){.right = a[3].b};
    td_status status = check_search(s, a[1]);
    if (status == TD_OK && sorter)
        status = td_check_index(sorter);
    if (status == TD_OK && sorter)
        status = td_check_same_shape(sorter, "sorter", s, "the sequence");
    if (status == TD_OK && s->dtype == TD_BOOL && v->dtype == TD_BOOL)
        status = td_fail(TD_EDTYPE, "not for bool");
    td_meta_like(out, v, a[4].b ? TD_I32 : TD_I64);
    return status;
}

static td_status kernel_search(td_call *call) {
    const td_value *a = call->args;
    td_search_plan *p = TD_PLAN(call, td_search_plan);
    td_tensor *s = NULL, *v = NULL, *sorter = NULL;
    td_dtype dtype = td_dtype_promote((td_dtype)a[0].tensor->dtype, (td_dtype)a[1].tensor->dtype);
    td_status status = TD_OK;
    TD_TRY(td_contiguous_as(a[0].tensor, dtype, &s));
    TD_TRY(td_contiguous_as(a[1].tensor, dtype, &v));
    if (a[2].kind == TD_KIND_TENSOR)
        TD_TRY(td_contiguous_as(a[2].tensor, TD_I64, &sorter));
    p->out = call->out[0];
    p->sequence = s;
    p->values = v;
    p->sorter = sorter;
    if (v->numel)
        status = TD_RUN(td_tensor_device(v), search, p);
done:
    td_release(s);
    td_release(v);
    td_release(sorter);
    return status;
}

/* A number as a tensor beside x: of x's dtype, but for a float beside integers. */
static td_status beside(const td_tensor *x, td_value v, td_tensor **out) {
    td_dtype dtype = (td_dtype)x->dtype;
    if (v.kind == TD_KIND_TENSOR) {
        *out = td_retain(v.tensor);
        return TD_OK;
    }
    if (v.kind == TD_KIND_FLOAT && !td_dtype_is_float(dtype))
        dtype = td_default_dtype();
    if (v.kind == TD_KIND_INT && dtype == TD_BOOL)
        dtype = TD_I64;
    td_status status = td_tensor_empty(dtype, td_tensor_device(x), 0, NULL, out);
    if (status)
        return status;
    return v.kind == TD_KIND_INT ? td_fill_int(*out, v.i) : td_fill(*out, v.f);
}

static td_status run_searchsorted(td_call *call) {
    const td_value *a = call->args;
    bool left = !td_is_nil(a[4]) && !strcmp(a[4].string, "left");
    bool right = !td_is_nil(a[4]) && !strcmp(a[4].string, "right");
    td_tensor *values = NULL;
    if (!td_is_nil(a[4]) && !left && !right)
        return td_fail(TD_EVALUE, "side must be 'left' or 'right', got '%s'", a[4].string);
    if (left && a[3].b)
        return td_fail(TD_EVALUE, "side is 'left', but right is true");
    td_status status = check_search(a[0].tensor, a[1]);
    if (status == TD_OK)
        status = beside(a[0].tensor, a[1], &values);
    if (status == TD_OK)
        status =
            TD_APPLY(call->out, search_in, a[0], TD_T(values), a[5], TD_B(right || a[3].b), a[2]);
    td_release(values);
    return status;
}

static td_status run_bucketize(td_call *call) {
    const td_value *a = call->args;
    td_status status = td_check_ndim(a[1].tensor, "boundaries", 1);
    return status ? status : TD_APPLY(call->out, searchsorted, a[1], a[0], a[2], a[3]);
}

/* ---- isin ---- */

static td_status run_isin(td_call *call) {
    const td_value *a = call->args;
    const td_tensor *model = td_arg_tensor(a[0].kind == TD_KIND_TENSOR ? a[0] : a[1]);
    td_tensor *x = NULL, *among = NULL;
    td_status status = TD_OK;
    if (!model)
        return td_fail(TD_ETYPE, "one of elements and test_elements must be a tensor");
    TD_TRY(beside(model, a[0], &x));
    TD_TRY(beside(model, a[1], &among));
    if (x->dtype == TD_BOOL || among->dtype == TD_BOOL)
        status = td_fail(TD_EDTYPE, "not for bool");
    else
        status = TD_APPLY(call->out, is_among, TD_T(x), TD_T(among), a[3],
                          TD_DTYPE(td_dtype_promote((td_dtype)x->dtype, (td_dtype)among->dtype)));
done:
    td_release(x);
    td_release(among);
    return status;
}

/* ---- the table ---- */

TD_OPERATOR(unique) = {
    .schema = "(Tensor x, bool sorted=true, bool return_inverse=false, bool return_counts=false, "
              "dim? dim=nil) -> (Tensor values, index Tensor inverse_indices, Tensor counts)",
    .doc = "The different elements, or slices along a dim, in order; of each element the number of "
           "its own, and how many there are, where asked for: those that are, in this order.",
    .shapes = "x (...) -> (n), (...), (n) if dim == nil | -> (...) with n at dim, (x[dim]), (n); "
              "n: how many differ",
    .notes = "In order whatever sorted says. Each NaN is one of its own.",
    .run = run_unique,
    .flags = TD_OP_BY_ELEMENTS | TD_OP_NONDIFF,
};
TD_OPERATOR(unique_consecutive) = {
    .schema = "(Tensor x, bool return_inverse=false, bool return_counts=false, dim? dim=nil) -> "
              "(Tensor values, index Tensor inverse_indices, Tensor counts)",
    .doc = "Elements, or slices along a dim, without those that equal the one before; of each "
           "element the number of its own, and how many there are, where asked for.",
    .shapes = "x (...) -> (n), (...), (n) if dim == nil | -> (...) with n at dim, (x[dim]), (n); "
              "n: how many differ",
    .run = run_unique_consecutive,
    .flags = TD_OP_BY_ELEMENTS | TD_OP_NONDIFF,
};
TD_OPERATOR(row_order) = {
    .schema = "(Tensor x) -> Tensor",
    .doc = "The order of a matrix's rows by their elements, the first ones first.",
    .rule = rule_row_order,
    .kernel = kernel_row_order,
    .dtypes = TD_DTYPES_ALL,
    .flags = TD_OP_INTERNAL | TD_OP_NONDIFF,
};
TD_OPERATOR(bincount) = {
    .schema = "(index Tensor x, Tensor? weights=nil, int(0..) minlength=0) -> Tensor",
    .doc = "At place k how many elements are k, or the sum of their weights.",
    .shapes = "x (n), weights (n) -> (m); m: the largest element, at least minlength",
    .takes = "x integers; weights floating; the result is int64, with weights of their dtype",
    .notes =
        "Counts 1, 2, ...: the first is how often 1 is there. 0 and negative numbers are errors.",
    .run = run_bincount,
    .flags = TD_OP_BY_ELEMENTS | TD_OP_NONDIFF | TD_OP_ANY_BASE,
};
TD_OPERATOR(histc) = {
    .schema = "(Tensor x, int(1..) bins=100, number min=0, number max=0) -> Tensor",
    .doc = "How many elements lie in each of equal parts from min to max, or of their own range.",
    .shapes = "x (...) -> (bins)",
    .takes = "floating",
    .notes = "Elements outside of min to max don't count; where both are 0 they are those of x.",
    .run = run_histc,
    .flags = TD_OP_OUT | TD_OP_NONDIFF | TD_OP_OUT_EXACT,
};
TD_OPERATOR(bin_counts) = {
    .schema = "(Tensor x, int bins, float low, float high, dtype whole) -> Tensor",
    .doc = "How many elements of x, of one dim, lie in each of equal parts from low to high.",
    .formula = "inside = logical_and(ge(x, low), le(x, high));"
               "part = where(inside, (x - low) * bins / (high - low), 0);"
               "place = clamp_max(to(part, whole), bins - 1);"
               "counts = zeros(bins, dtype=whole, device=x.device);"
               "scatter_add(counts, 0, place, to(inside, whole))",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(searchsorted) = {
    .schema = "(Tensor sorted_sequence, Tensor|number values, *, bool out_int32=false, "
              "bool right=false, str? side=nil, index Tensor? sorter=nil) -> index Tensor",
    .doc = "Where values belong in a sorted sequence: before the first that is not less, or behind "
           "equal ones with right.",
    .shapes = "sorted_sequence (n), values (...), sorter (n) -> (...) | sorted_sequence (..., n), "
              "values (..., m), sorter (..., n) -> (..., m)",
    .takes = "floating and integers; sorter integers; the result is int64",
    .notes = "The place before which a value goes; with right=true behind those that equal it. "
             "sorted_sequence is not checked for order.",
    .run = run_searchsorted,
    .flags = TD_OP_OUT | TD_OP_NONDIFF | TD_OP_OUT_EXACT,
};
TD_OPERATOR(search_in) = {
    .schema = "(Tensor sequence, Tensor values, index Tensor? sorter, bool right, bool narrow) -> "
              "Tensor",
    .doc = "How many elements of its sequence go before each value.",
    .rule = rule_search,
    .kernel = kernel_search,
    .dtypes = TD_DTYPES_ALL,
    .flags = TD_OP_INTERNAL | TD_OP_NONDIFF,
};
TD_OPERATOR(bucketize) = {
    .schema = "(Tensor|number x, Tensor boundaries, *, bool out_int32=false, bool right=false) -> "
              "index Tensor",
    .doc = "The number of the bucket between boundaries that each element lies in.",
    .shapes = "x (...), boundaries (n) -> (...)",
    .run = run_bucketize,
    .flags = TD_OP_OUT | TD_OP_NONDIFF | TD_OP_OUT_EXACT,
};
TD_OPERATOR(isin) = {
    .schema = "(Tensor|number elements, Tensor|number test_elements, *, "
              "bool assume_unique=false, bool invert=false) -> Tensor",
    .doc = "Is each element one of the test elements?",
    .shapes = "elements (...), test_elements (others...) -> (...)",
    .takes = "floating and integers; the result is bool",
    .run = run_isin,
    .flags = TD_OP_OUT | TD_OP_NONDIFF | TD_OP_OUT_EXACT,
};
TD_OPERATOR(is_among) = {
    .schema = "(Tensor x, Tensor among, bool invert, dtype dtype) -> Tensor",
    .doc = "Is each element of x equal to one of another tensor's?",
    .formula = "y = to(x, dtype); s = sort(reshape(to(among, dtype), -1), 0).values;"
               "place = clamp_max(search_in(s, y, nil, false, false), among.numel - 1);"
               "found = if(among.numel == 0, lt(y, y),"
               "           eq(take(s, place), y));"
               "if(invert == true, logical_not(found), found)",
    .flags = TD_OP_INTERNAL,
};

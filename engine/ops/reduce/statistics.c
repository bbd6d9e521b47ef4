/* statistics.c: quantile, aminmax, var_mean, renorm, dist, diff, trapezoid, cov and their kin, as
 * composites of sorts, sums and products. */
#include "engine/ops/element_checks.h"
#include "engine/ops/plan/plan.h"
#include "engine/ops/rule_helpers.h"

#include <string.h>

#define TD_FAMILY "statistics"

/* ---- quantiles ---- */

static td_refusal beyond_one = {
    {"logical_not(ge(x, 0) * le(x, 1))", NULL}, TD_EVALUE, "q must lie between 0 and 1"};

static td_status check_quantile(const td_tensor *x, td_value q) {
    if (x->dtype != TD_F32 && x->dtype != TD_F64)
        return td_fail(TD_EDTYPE, "x must be float32 or float64, got %s",
                       td_dtype_name((td_dtype)x->dtype));
    if (x->numel == 0)
        return td_fail(TD_ESHAPE, "x must not be empty");
    if (q.kind != TD_KIND_TENSOR)
        return TD_OK;
    if (q.tensor->ndim > 1)
        return td_fail(TD_ESHAPE, "q must be a number or have one dim, got %d dims",
                       q.tensor->ndim);
    if (q.tensor->dtype != x->dtype)
        return td_fail(TD_EDTYPE, "q must have x's dtype %s, got %s",
                       td_dtype_name((td_dtype)x->dtype), td_dtype_name((td_dtype)q.tensor->dtype));
    return TD_OK;
}

/* "linear", ... as numbers, which expressions compare. */
static td_status read_interpolation(const char *name, int64_t *number) {
    static const char *const names[] = {"linear", "lower", "higher", "midpoint", "nearest"};
    for (*number = 0; *number < 5; ++*number)
        if (!strcmp(name, names[*number]))
            return TD_OK;
    return td_fail(TD_EVALUE,
                   "interpolation must be 'linear', 'lower', 'higher', 'midpoint' or 'nearest', "
                   "got '%s'",
                   name);
}

/* x with the dim last, or as one row. */
static td_status dim_last(td_tensor *x, td_value dim, td_tensor **out) {
    const int64_t flat = -1;
    if (td_is_nil(dim) || x->ndim == 0)
        return TD_APPLY(out, reshape, TD_T(x), TD_INTS(1, &flat));
    return TD_APPLY(out, movedim, TD_T(x), TD_INTS(1, &dim.i), TD_INTS(1, &flat));
}

/* Results have the quantiles as their last dim: it goes to the front, or away where q is one
 * number; what was reduced comes back with size 1 if wanted. */
static td_status shape_quantiles(td_tensor **y, const td_tensor *x, td_value dim, bool keepdim,
                                 bool many) {
    int64_t sizes[TD_MAX_DIMS];
    const int64_t last = -1, first = 0;
    int n = 0, at = 0;
    td_status status = td_is_nil(dim) ? TD_OK : td_wrap_dim(dim.i, x->ndim, &at);
    if (status)
        return status;
    if (many)
        TD_STEP(y, movedim, TD_T(*y), TD_INTS(1, &last), TD_INTS(1, &first));
    if (many)
        sizes[n++] = (*y)->sizes[0];
    for (int d = 0; d < x->ndim; d++) {
        bool gone = td_is_nil(dim) || d == at;
        if (n == TD_MAX_DIMS)
            return td_fail(TD_ESHAPE, "a tensor has at most %d dims", TD_MAX_DIMS);
        if (!gone || keepdim)
            sizes[n++] = gone ? 1 : x->sizes[d];
    }
    TD_STEP(y, reshape, TD_T(*y), TD_INTS(n, sizes));
done:
    return status;
}

static td_status quantiles_of(td_call *call, bool ignore) {
    const td_value *a = call->args;
    td_tensor *x = a[0].tensor, *q = NULL, *s = NULL, *both[2] = {NULL, NULL};
    int64_t interpolation = 0;
    td_status status = check_quantile(x, a[1]);
    if (status == TD_OK)
        status = read_interpolation(a[4].string, &interpolation);
    if (status)
        return status;
    if (a[1].kind == TD_KIND_TENSOR)
        q = td_retain(a[1].tensor);
    else
        TD_TRY(TD_APPLY(&q, full, TD_INTS(0, NULL), TD_F(td_arg_double(a[1])),
                        TD_DTYPE((td_dtype)x->dtype), TD_DEVICE(td_tensor_device(x))));
    TD_TRY(td_refuse(&beyond_one, q));
    TD_TRY(dim_last(x, a[2], &s));
    TD_TRY(TD_APPLY(both, sort, TD_T(s), TD_I(-1)));
    TD_STEP(&s, ranked, TD_T(both[0]), TD_T(q), TD_I(interpolation), TD_B(ignore),
            TD_DTYPE(TD_I64));
    TD_TRY(shape_quantiles(&s, x, a[2], a[3].b, q->ndim == 1));
    call->out[0] = td_retain(s);
done:
    td_release(q);
    td_release(s);
    td_release(both[0]);
    td_release(both[1]);
    return status;
}

static td_status run_quantile(td_call *call) {
    return quantiles_of(call, false);
}
static td_status run_nanquantile(td_call *call) {
    return quantiles_of(call, true);
}

/* ---- differences and areas ---- */

static td_status join_ends(const td_call *call, td_tensor **x) {
    const td_value *a = call->args;
    td_tensor *parts[3];
    int n = 0;
    for (int k = 3; k < 5; k++)
        if (!td_is_nil(a[k]) && a[k].tensor->ndim != a[0].tensor->ndim)
            return td_fail(TD_ESHAPE, "%s must have as many dims as x, %d; got %d",
                           k == 3 ? "prepend" : "append", a[0].tensor->ndim, a[k].tensor->ndim);
    if (!td_is_nil(a[3]))
        parts[n++] = a[3].tensor;
    parts[n++] = a[0].tensor;
    if (!td_is_nil(a[4]))
        parts[n++] = a[4].tensor;
    if (n > 1)
        return TD_APPLY(x, cat, TD_TENSORS(n, parts), a[2]);
    *x = td_retain(a[0].tensor);
    return TD_OK;
}

static td_status run_diff(td_call *call) {
    const td_value *a = call->args;
    td_tensor *x = NULL, *before = NULL;
    int dim;
    td_status status = td_wrap_dim(a[2].i, a[0].tensor->ndim, &dim);
    if (status == TD_OK && a[0].tensor->ndim == 0)
        status = td_fail(TD_ESHAPE, "x must have a dim");
    if (status)
        return status;
    if (a[1].i == 0)
        return TD_APPLY(&call->out[0], clone, a[0]);
    TD_TRY(join_ends(call, &x));
    for (int64_t k = 0; k < a[1].i && x->sizes[dim] > 0; k++) {
        int64_t n = x->sizes[dim] - 1;
        td_release(before);
        TD_TRY(TD_APPLY(&before, narrow, TD_T(x), TD_I(dim), TD_I(0), TD_I(n)));
        TD_STEP(&x, narrow, TD_T(x), TD_I(dim), TD_I(1), TD_I(n));
        if (x->dtype == TD_BOOL)
            TD_STEP(&x, logical_xor, TD_T(x), TD_T(before));
        else
            TD_STEP(&x, sub, TD_T(x), TD_T(before));
    }
    if (x == a[0].tensor) /* there was nothing to subtract */
        TD_STEP(&x, clone, TD_T(x));
    call->out[0] = td_retain(x);
done:
    td_release(x);
    td_release(before);
    return status;
}

/* The widths between neighbours of x, which lies along `dim` of y or has y's dims; NULL where it is
 * not given. */
static td_status widths(const td_tensor *y, td_value x, int dim, td_tensor **out) {
    int64_t sizes[TD_MAX_DIMS];
    td_tensor *t = NULL;
    td_status status = TD_OK;
    if (td_is_nil(x))
        return TD_OK;
    const td_tensor *given = x.tensor;
    int at = given->ndim == 1 ? 0 : dim - (y->ndim - given->ndim);
    if (at < 0 || at >= given->ndim || given->sizes[at] != y->sizes[dim])
        return td_fail(TD_ESHAPE, "x must have one value for each of the %lld points along dim %d",
                       (long long)y->sizes[dim], dim + 1);
    TD_TRY(TD_APPLY(&t, diff, x, TD_I(1), TD_I(at)));
    if (given->ndim == 1) {
        for (int d = 0; d < y->ndim; d++)
            sizes[d] = d == dim ? t->sizes[0] : 1;
        TD_STEP(&t, reshape, TD_T(t), TD_INTS(y->ndim, sizes));
    }
    *out = td_retain(t);
done:
    td_release(t);
    return status;
}

static td_status areas(td_call *call, const td_op *how) {
    const td_value *a = call->args;
    const td_tensor *y = a[0].tensor;
    td_tensor *dx = NULL;
    int dim;
    td_status status = td_wrap_dim(a[3].i, y->ndim, &dim);
    if (status == TD_OK && y->ndim == 0)
        status = td_fail(TD_ESHAPE, "y must have a dim");
    if (status == TD_OK && y->dtype == TD_BOOL)
        status = td_fail(TD_EDTYPE, "not for bool");
    if (status == TD_OK)
        status = widths(y, a[1], dim, &dx);
    if (status)
        return status;
    td_value args[] = {a[0], td_tensor_or_nil(dx), a[2], TD_I(dim)};
    status = td_op_apply(how, call->out, 4, args);
    td_release(dx);
    return status;
}

static td_status run_trapezoid(td_call *call) {
    return areas(call, TD_OP(area));
}
static td_status run_cumulative_trapezoid(td_call *call) {
    return areas(call, TD_OP(running_area));
}

/* ---- renorm ---- */

static td_status run_renorm(td_call *call) {
    const td_value *a = call->args;
    const td_tensor *x = a[0].tensor;
    td_tensor *own = NULL;
    int64_t others[TD_MAX_DIMS];
    int dim, n = 0;
    td_status status = td_wrap_dim(a[2].i, x->ndim, &dim);
    if (status)
        return status;
    if (x->ndim < 2)
        return td_fail(TD_ESHAPE, "x must have two dims or more, got %d", x->ndim);
    if (!(td_arg_double(a[1]) > 0) || !(td_arg_double(a[3]) >= 0))
        return td_fail(TD_EVALUE,
                       "p must be greater than 0 and maxnorm not negative, got %g and %g",
                       td_arg_double(a[1]), td_arg_double(a[3]));
    for (int d = 0; d < x->ndim; d++)
        if (d != dim)
            others[n++] = d;
    if (call->inplace) /* the gradient reads what is overwritten */
        TD_TRY(TD_APPLY(&own, clone, a[0]));
    status = TD_APPLY(call->out, renormed, own ? TD_T(own) : a[0], a[1], TD_INTS(n, others), a[3]);
done:
    td_release(own);
    return status;
}

/* ---- covariance ---- */

static td_refusal negative_weight = {{"lt(x, 0)", NULL}, TD_EVALUE, "weights must not be negative"};

static td_status check_cov_weights(const td_tensor *x, td_value v, const char *name, bool whole) {
    char shape[TD_SHAPE_TEXT];
    int64_t n = x->ndim < 2 ? x->numel : x->sizes[1];
    if (td_is_nil(v))
        return TD_OK;
    const td_tensor *w = v.tensor;
    if (whole != td_dtype_is_int((td_dtype)w->dtype) || w->dtype == TD_BOOL)
        return td_fail(TD_EDTYPE, "%s must hold %s, got %s", name, whole ? "integers" : "floats",
                       td_dtype_name((td_dtype)w->dtype));
    if (w->ndim > 1 || w->numel != n)
        return td_fail(TD_ESHAPE, "%s must have shape (%lld), got %s", name, (long long)n,
                       td_tensor_shape_text(w, shape));
    return td_refuse(&negative_weight, w);
}

static td_status run_cov(td_call *call) {
    const td_value *a = call->args;
    const td_tensor *x = a[0].tensor;
    td_status status = TD_OK;
    if (x->ndim > 2)
        return td_fail(TD_ESHAPE, "x must have at most two dims, got %d", x->ndim);
    if (x->dtype == TD_BOOL)
        return td_fail(TD_EDTYPE, "not for bool");
    status = check_cov_weights(x, a[2], "fweights", true);
    if (status == TD_OK)
        status = check_cov_weights(x, a[3], "aweights", false);
    return status ? status : TD_APPLY(call->out, covariance, a[0], a[1], a[2], a[3]);
}

/* ---- the table ---- */

TD_OPERATOR(quantile) = {
    .schema = "(Tensor x, Tensor|number q, dim? dim=nil, bool keepdim=false, *, "
              "str interpolation=\"linear\") -> Tensor",
    .doc = "The elements, or what lies between two, that the parts q of all are below.",
    .shapes = "x (...), q () -> (...) without dim | x (...), q (n) -> (n, rest...); rest: those of "
              "x without dim",
    .takes = "float32 and float64, one dtype",
    .notes = "q lies between 0 and 1; between two elements it interpolates.",
    .run = run_quantile,
    .autocast = {[TD_CPU] = TD_AUTOCAST_FP32},
    .flags = TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(nanquantile) = {
    .schema = "(Tensor x, Tensor|number q, dim? dim=nil, bool keepdim=false, *, "
              "str interpolation=\"linear\") -> Tensor",
    .doc = "quantile of what is not NaN.",
    .shapes = "x (...), q () -> (...) without dim | x (...), q (n) -> (n, rest...); rest: those of "
              "x without dim",
    .takes = "float32 and float64, one dtype",
    .notes = "q lies between 0 and 1; between two elements it interpolates.",
    .run = run_nanquantile,
    .autocast = {[TD_CPU] = TD_AUTOCAST_FP32},
    .flags = TD_OP_OUT | TD_OP_OUT_EXACT,
};
/* Interpolations: 0 linear, 1 lower, 2 higher, 3 midpoint, 4 nearest. A line with a NaN gives its
 * last element, which is NaN; one of nothing else its first. */
TD_OPERATOR(ranked) = {
    .schema = "(Tensor s, Tensor q, int how, bool ignore, dtype whole) -> Tensor",
    .doc = "Of each sorted line what stands at the parts q of it.",
    .formula = "n = s.size(-1); nans = isnan(s); parts = reshape(q, -1);"
               "counted = parts * (sum(logical_not(nans), -1, keepdim=true) - 1);"
               "exact = if(ignore == true, where(counted < 0, 0, counted),"
               "           where(any(nans, -1, keepdim=true), n - 1, parts * (n - 1)));"
               "rank = if(how == 1, floor(exact), if(how == 2, ceil(exact),"
               "       if(how == 4, round(exact), exact)));"
               "place = to(rank, whole); low = gather(s, -1, place);"
               "if(how == 0, lerp(low, gather(s, -1, to(ceil(rank), whole)), rank - place),"
               "if(how == 3, lerp(low, gather(s, -1, to(ceil(rank), whole)), 0.5), low))",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(aminmax) = {
    .schema = "(Tensor x, *, dim? dim=nil, bool keepdim=false) -> (Tensor min, Tensor max)",
    .doc = "Smallest and largest element, of all or along a dim; equals share the gradient.",
    .formula = "min: amin(x, dim, keepdim=keepdim); max: amax(x, dim, keepdim=keepdim)",
    .flags = TD_OP_OUT | TD_OP_OUT_EXACT | TD_OP_OUT_APART,
};
TD_OPERATOR(var_mean) = {
    .schema = "(Tensor x, dim[]? dim=nil, *, number correction=1, bool keepdim=false, "
              "bool? unbiased=nil) -> (Tensor var, Tensor mean)",
    .doc = "Variance and mean, of all elements or over the given dims.",
    .takes = "floating",
    .formula = "var: var(x, dim, correction=correction, keepdim=keepdim, unbiased=unbiased);"
               "mean: mean(x, dim, keepdim=keepdim)",
};
TD_OPERATOR(std_mean) = {
    .schema = "(Tensor x, dim[]? dim=nil, *, number correction=1, bool keepdim=false, "
              "bool? unbiased=nil) -> (Tensor std, Tensor mean)",
    .doc = "Standard deviation and mean, of all elements or over the given dims.",
    .takes = "floating",
    .formula = "std: std(x, dim, correction=correction, keepdim=keepdim, unbiased=unbiased);"
               "mean: mean(x, dim, keepdim=keepdim)",
};
TD_OPERATOR(renorm) = {
    .autocast = {[TD_CUDA] = TD_AUTOCAST_FP32},
    .schema = "(Tensor x, number p, dim dim, number maxnorm) -> Tensor",
    .doc = "x with every slice along a dim whose p-norm is above maxnorm scaled down to it.",
    .takes = "floating",
    .run = run_renorm,
    .flags = TD_OP_OUT | TD_OP_INPLACE | TD_OP_OUT_EXACT,
};
TD_OPERATOR(renormed) = {
    .schema = "(Tensor x, number p, dim[] dims, number maxnorm) -> Tensor",
    .doc = "renorm by norms over these dims; a little below maxnorm, as PyTorch, but for tiny "
           "norms in "
           "proportion.",
    .formula = "size = norm(x, p, dims, keepdim=true);"
               "large = where(size > maxnorm, size, 1);"
               "x * where(size > maxnorm, maxnorm / (large + 1e-7 * clamp_max(large, 1)), 1)",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(dist) = {
    .schema = "(Tensor x, Tensor y, number p=2) -> Tensor",
    .doc = "The p-norm of x - y.",
    .shapes = "x (*), y (*) -> ()",
    .takes = "floating, promoted",
    .formula = "norm(x - y, p)",
    .autocast = {[TD_CUDA] = TD_AUTOCAST_FP32},
};
TD_OPERATOR(diff) = {
    .schema = "(Tensor x, int(0..) n=1, dim dim=-1, Tensor? prepend=nil, Tensor? append=nil) -> "
              "Tensor",
    .doc = "What each element differs by from the one before along a dim, n times over.",
    .shapes = "x (...), prepend (...) with a at dim, append (...) with b at dim -> (...) with m at "
              "dim; m: those of all three less n, at least 0",
    .takes = "any, promoted",
    .run = run_diff,
    .flags = TD_OP_OUT,
};
TD_OPERATOR(trapezoid) = {
    .schema = "(Tensor y, Tensor? x=nil, *, number dx=1, dim dim=-1) -> Tensor",
    .doc =
        "The area below y along a dim, whose points lie at x or dx apart, by the trapezoid rule.",
    .shapes =
        "y (...), x (points...) -> (...) without dim; points: y[dim] of them, or the shape of y",
    .takes = "floating and integers, promoted; integers count as float32",
    .run = run_trapezoid,
};
TD_OPERATOR(trapz) = {
    .schema = "(Tensor y, Tensor? x=nil, *, number dx=1, dim dim=-1) -> Tensor",
    .doc = "Another name for trapezoid.",
    .shapes =
        "y (...), x (points...) -> (...) without dim; points: y[dim] of them, or the shape of y",
    .takes = "floating and integers, promoted; integers count as float32",
    .formula = "trapezoid(y, x, dx=dx, dim=dim)",
    .flags = TD_OP_FUNCTION_ONLY,
};
TD_OPERATOR(cumulative_trapezoid) = {
    .schema = "(Tensor y, Tensor? x=nil, *, number dx=1, dim dim=-1) -> Tensor",
    .doc = "The running areas below y along a dim by the trapezoid rule.",
    .shapes = "y (...), x (points...) -> (...) with y[dim] - 1 at dim; points: y[dim] of them, or "
              "the shape of y",
    .takes = "floating and integers, promoted; integers count as float32",
    .run = run_cumulative_trapezoid,
};
#define LEFT_AND_RIGHT                                                                             \
    "n = if(y.size(dim) > 0, y.size(dim) - 1, 0);"                                                 \
    "left = narrow(y, dim, 0, n); right = narrow(y, dim, y.size(dim) - n, n);"
TD_OPERATOR(area) = {
    .schema = "(Tensor y, Tensor? widths, number dx, dim dim) -> Tensor",
    .doc = "trapezoid with widths.",
    .formula = LEFT_AND_RIGHT /* all but two points are left and right */
    "if(widths == nil,"
    "   if(n > 0, (sum(narrow(y, dim, 1, n - 1), dim) * 2 + select(y, dim, 0) +"
    "              select(y, dim, n)) * (dx * 0.5),"
    "      sum(left, dim) * (dx * 0.5)),"
    "   sum((left + right) * widths, dim) * 0.5)",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(running_area) = {
    .schema = "(Tensor y, Tensor? widths, number dx, dim dim) -> Tensor",
    .doc = "cumulative_trapezoid with widths.",
    .formula = LEFT_AND_RIGHT "if(widths == nil, cumsum((left + right) * (dx / 2), dim),"
                              "   cumsum((left + right) * widths, dim) * 0.5)",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(cov) = {
    .schema = "(Tensor x, *, int correction=1, Tensor? fweights=nil, Tensor? aweights=nil) -> "
              "Tensor",
    .doc = "Covariances of variables (rows) over observations (columns), which may be weighted by "
           "how often and how much they count.",
    .shapes =
        "x (n, m), fweights (m), aweights (m) -> (n, n) | x (m), fweights (m), aweights (m) -> ()",
    .takes = "floating and integers; integers count as float32",
    .run = run_cov,
};
TD_OPERATOR(covariance) = {
    .schema = "(Tensor x, int correction, Tensor? fweights, Tensor? aweights) -> Tensor",
    .doc = "cov of arguments that fit.",
    .formula =
        "given = if(x.ndim < 2, reshape(x, {1, x.numel}), x);"
        "y = if(x.floating, given, given * 1.0);"
        "n = if(x.ndim < 2, x.numel, x.size(1));"
        "w = if(fweights == nil, reshape(aweights, -1),"
        "    if(aweights == nil, reshape(fweights, -1), reshape(fweights * aweights, -1)));"
        "plain = fweights == nil and aweights == nil;"
        "count = sum(w);"
        "center = if(plain, sum(y, 1, keepdim=true) / n, sum(y * w, 1, keepdim=true) / count);"
        "d = y - center; product = matmul(if(plain, d, d * w), t(d));"
        "freedom = if(aweights == nil or correction == 0, count - correction,"
        "             count - correction * sum(w * aweights) / count);"
        "c = if(plain, product / if(n > correction, n - correction, 0),"
        "       product / clamp_min(freedom, 0));"
        "if(x.ndim < 2, reshape(c, {}), if(x.size(0) == 1, reshape(c, {}), c))",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(row_sizes) = {
    .schema = "(Tensor x) -> Tensor",
    .doc = "The largest magnitude of each row, 1 where it is 0: what no correlation depends on, "
           "and keeps "
           "squares within the dtype.",
    .formula = "m = amax(abs(detach(x)), {-1}, keepdim=true); masked_fill(m, m == 0, 1)",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(corrcoef) = {
    .schema = "(Tensor x) -> Tensor",
    .doc = "Correlations of variables (rows) over observations (columns).",
    .shapes = "x (n, m) -> (n, n) | x (m) -> ()",
    .takes = "floating and integers; integers count as float32",
    .formula = "c = cov(if(x.numel == 0 or x.ndim == 0, x, x / row_sizes(x)));"
               "n = if(x.ndim < 2, 1, x.size(0));"
               "d = sqrt(take(c, arange(0, n * n, n + 1, device=c.device)));"
               "if(n == 1, c / c, clamp(c / reshape(d, {n, 1}) / reshape(d, {1, n}), -1, 1))",
};

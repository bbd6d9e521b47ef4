/* gather.c: elements picked and placed along one dim by an index of as many dims: gather, scatter;
 * class labels as rows, and indices that count from 1. */
#include "engine/ops/element_checks.h"
#include "engine/ops/index/index.h"
#include "engine/ops/make/copy.h"
#include "engine/ops/rule_helpers.h"

#include <string.h>

#define TD_FAMILY "gather"

/* ---- gather and scatter ---- */

/* index fits x everywhere but along the dim. */
static td_status check_gather(const td_tensor *x, const td_tensor *index, td_value dim_value,
                              const char *what, int *dim) {
    char a[TD_SHAPE_TEXT], b[TD_SHAPE_TEXT];
    td_status status = td_wrap_dim(dim_value.i, x->ndim, dim);
    if (status)
        return status;
    status = td_check_index(index);
    if (status)
        return status;
    bool fits = index->ndim == x->ndim || (x->ndim == 0 && index->ndim == 1) || index->numel == 0;
    for (int d = 0; fits && d < index->ndim && index->numel && x->ndim; d++)
        fits = d == *dim || index->sizes[d] <= x->sizes[d];
    if (!fits && index->ndim != x->ndim)
        return td_fail(
            TD_ESHAPE, "index of shape %s doesn't fit %s of shape %s: it needs %d dim%s%s",
            td_tensor_shape_text(index, a), what, td_tensor_shape_text(x, b), x->ndim,
            x->ndim == 1 ? "" : "s",
            index->ndim < x->ndim ? " (one place in each row: index:unsqueeze(-1); whole "
                                    "rows: index_select)"
                                  : "");
    if (!fits)
        return td_fail(TD_ESHAPE, "index of shape %s doesn't fit %s of shape %s outside dim %d",
                       td_tensor_shape_text(index, a), what, td_tensor_shape_text(x, b), *dim + 1);
    return TD_OK;
}

static td_status rule_gather(const td_call *call, td_meta *out) {
    const td_tensor *x = call->args[0].tensor, *index = call->args[2].tensor;
    td_gather_plan *p = TD_PLAN(call, td_gather_plan);
    *p = (td_gather_plan){.how = TD_COMBINE_PUT, .from_one = call->args[2].from_one};
    td_status status = check_gather(x, index, call->args[1], "x", &p->dim);
    if (status)
        return status;
    td_meta_like(out, index, (td_dtype)x->dtype);
    return TD_OK;
}

/* As int64; as it lies where it is that, so that a device sees what is the same along a dim. */
static td_status read_index(td_tensor *index, td_tensor **out) {
    if (index->dtype != TD_I64)
        return td_contiguous_as(index, TD_I64, out);
    *out = td_retain(index);
    return TD_OK;
}

static td_status kernel_gather(td_call *call) {
    td_gather_plan *p = TD_PLAN(call, td_gather_plan);
    td_tensor *index = NULL;
    td_status status = read_index(call->args[2].tensor, &index);
    p->out = call->out[0];
    p->x = call->args[0].tensor;
    p->index = index;
    if (status == TD_OK && index->numel)
        status = TD_RUN(td_tensor_device(p->out), gather, p);
    td_release(index);
    return status;
}

static td_status plan_scatter(const td_call *call, td_meta *out, td_combine how) {
    const td_tensor *x = call->args[0].tensor, *index = call->args[2].tensor;
    const td_tensor *src = td_arg_tensor(call->args[3]);
    td_gather_plan *p = TD_PLAN(call, td_gather_plan);
    char a[TD_SHAPE_TEXT], b[TD_SHAPE_TEXT];
    *p = (td_gather_plan){.how = how, .from_one = call->args[2].from_one};
    td_status status = check_gather(x, index, call->args[1], "x", &p->dim);
    if (status == TD_OK && !src)
        status = td_check_holds((td_dtype)x->dtype, call->args[3]);
    if (status)
        return status;
    bool fits = !src || src->ndim == index->ndim;
    for (int d = 0; fits && src && d < index->ndim; d++)
        fits = index->sizes[d] <= src->sizes[d];
    if (!fits && index->numel)
        return td_fail(TD_ESHAPE, "index of shape %s doesn't fit src of shape %s",
                       td_tensor_shape_text(index, a), td_tensor_shape_text(src, b));
    if (src && src->dtype != x->dtype)
        return td_fail(TD_EDTYPE, "src must have x's dtype %s, got %s",
                       td_dtype_name((td_dtype)x->dtype), td_dtype_name((td_dtype)src->dtype));
    return td_rule_same(call, out);
}

/* scatter by the option reduce; scatter_combine by a word. */
static td_status rule_scatter(const td_call *call, td_meta *out) {
    const char *how = td_is_nil(call->args[4]) ? "put" : call->args[4].string;
    return plan_scatter(call, out,
                        !strcmp(how, "add")                                ? TD_COMBINE_ADD
                        : !strcmp(how, "multiply") || !strcmp(how, "prod") ? TD_COMBINE_MUL
                        : !strcmp(how, "amax")                             ? TD_COMBINE_MAX
                        : !strcmp(how, "amin")                             ? TD_COMBINE_MIN
                                                                           : TD_COMBINE_PUT);
}
TD_RULE(rule_scatter_add, plan_scatter, TD_COMBINE_ADD)

/* A number in every place of a shape. */
static td_status spread(td_value v, const td_tensor *x, const td_tensor *index, td_tensor **out) {
    const int64_t strides[TD_MAX_DIMS] = {0};
    td_tensor *number = NULL;
    td_status status = td_tensor_empty((td_dtype)x->dtype, td_tensor_device(x), 0, NULL, &number);
    if (status == TD_OK)
        status = v.kind == TD_KIND_INT ? td_fill_int(number, v.i) : td_fill(number, v.f);
    if (status == TD_OK)
        status = td_tensor_view(number, index->ndim, index->sizes, strides, 0, out);
    td_release(number);
    return status;
}

/* In a copy of x in another dtype, which then becomes the result. */
static td_status scatter_wider(td_gather_plan *p, td_dtype dtype, td_tensor *x, td_tensor *index,
                               td_tensor *src) {
    td_tensor *out = p->out, *sums = NULL, *wide = NULL;
    td_status status = TD_OK;
    TD_TRY(td_contiguous_as(x, dtype, &sums));
    TD_TRY(td_contiguous_as(src, dtype, &wide));
    p->out = sums;
    p->x = wide;
    p->index = index;
    TD_TRY(TD_RUN(td_tensor_device(out), scatter, p));
    status = td_copy_into(out, sums);
done:
    td_release(sums);
    td_release(wide);
    return status;
}

static td_status kernel_scatter(td_call *call) {
    const td_value *a = call->args;
    td_gather_plan *p = TD_PLAN(call, td_gather_plan);
    td_tensor *index = NULL, *src = NULL, *out = call->out[0];
    td_status status = TD_OK;
    p->out = out;
    TD_TRY(read_index(a[2].tensor, &index));
    if (a[3].kind == TD_KIND_TENSOR)
        src = td_retain(a[3].tensor);
    else
        TD_TRY(spread(a[3], out, index, &src));
    td_dtype dtype = (td_dtype)out->dtype;
    if (index->numel && (p->how == TD_COMBINE_ADD || p->how == TD_COMBINE_MUL))
        dtype = td_meeting_dtype(dtype, index->ndim ? index->sizes[p->dim] : 1, index->numel,
                                 out->numel);
    if (dtype != (td_dtype)out->dtype) {
        status = scatter_wider(p, dtype, a[0].tensor, index, src);
        goto done;
    }
    TD_TRY(td_take_apart(out, &index));
    TD_TRY(td_take_apart(out, &src));
    if (out != a[0].tensor)
        TD_TRY(td_copy_into(out, a[0].tensor));
    p->x = src;
    p->index = index;
    if (index->numel)
        status = TD_RUN(td_tensor_device(out), scatter, p);
done:
    td_release(index);
    td_release(src);
    return status;
}

/* gather in the corner of zeros, dim by dim. */
static td_status run_gather_within(td_call *call) {
    const td_value *a = call->args;
    int64_t part[TD_MAX_DIMS];
    td_tensor *y = NULL;
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(&y, gather, a[0], a[1], a[2]));
    for (int d = 0; d < y->ndim; d++) {
        int64_t size = y->sizes[d];
        if (size == a[3].ints[d])
            continue;
        memcpy(part, y->sizes, sizeof(int64_t) * y->ndim);
        part[d] = a[3].ints[d];
        TD_STEP(&y, slice_backward, TD_T(y), TD_INTS(y->ndim, part), TD_I(d), TD_I(0), TD_I(size),
                TD_I(1));
    }
    call->out[0] = td_retain(y);
done:
    td_release(y);
    return status;
}

/* ---- classes ---- */

static td_refusal negative_class = {
    {"lt(x, 0)", NULL}, TD_EINDEX, "a class label must not be negative"};

static td_status run_one_hot(td_call *call) {
    td_tensor *x = call->args[0].tensor, *most = NULL, *rows = NULL, *last = NULL;
    int64_t sizes[TD_MAX_DIMS], classes = call->args[1].i, largest;
    td_status status = TD_OK;
    if (!td_dtype_is_int((td_dtype)x->dtype))
        return td_fail(TD_EDTYPE, "classes are integers, got %s",
                       td_dtype_name((td_dtype)x->dtype));
    if (x->ndim == TD_MAX_DIMS)
        return td_fail(TD_ESHAPE, "a tensor has at most %d dims", TD_MAX_DIMS);
    if (classes < -1 || (classes == 0 && x->numel))
        return td_fail(TD_EVALUE,
                       "num_classes must be at least 1, or -1 for as many as there are, "
                       "got %lld",
                       (long long)classes);
    TD_TRY(td_refuse(&negative_class, x));
    if (classes < 0) {
        if (x->numel == 0)
            return td_fail(TD_EVALUE, "num_classes must be given for a tensor without elements");
        TD_TRY(TD_APPLY(&most, amax, TD_T(x)));
        TD_TRY(td_tensor_item_int(most, &largest));
        classes = largest < INT64_MAX ? largest + 1 : largest; /* too many for memory either way */
    }
    memcpy(sizes, x->sizes, sizeof(int64_t) * x->ndim);
    sizes[x->ndim] = classes;
    TD_TRY(TD_APPLY(&rows, zeros, TD_INTS(x->ndim + 1, sizes), TD_DTYPE(TD_I64),
                    TD_DEVICE(td_tensor_device(x))));
    TD_TRY(TD_APPLY(&last, unsqueeze, TD_T(x), TD_I(-1)));
    TD_TRY(TD_APPLY_INPLACE(scatter, TD_T(rows), TD_I(-1), TD_T(last), TD_I(1)));
    call->out[0] = td_retain(rows);
done:
    td_release(most);
    td_release(rows);
    td_release(last);
    return status;
}

/* ---- counting from 1 ---- */

static td_refusal index_zero = {
    {"eq(x, 0)", NULL}, TD_EINDEX, "index 0: indices count from 1 (PyTorch's 0 is 1)"};

static td_status rule_from_one_based(const td_call *call, td_meta *out) {
    const td_tensor *x = call->args[0].tensor;
    td_meta_like(out, x, TD_I64);
    return td_check_index(x);
}

/* Both from one look at the indices: as they count from 0 (what counts from the end stays as it
 * is), and how many are 0. */
static td_status rebase_program(const td_program **program) {
    static _Atomic(const td_program *) kept;
    const td_program *there = atomic_load_explicit(&kept, memory_order_acquire), *made;
    *program = there;
    if (there)
        return TD_OK;
    td_builder *b = td_builder_new(1);
    if (!b)
        return td_fail(TD_ENOMEM, "out of memory");
    int x = td_builder_operand(b, 0), zero = td_builder_number(b, 0);
    int step = td_builder_step(b, TD_PW_gt, x, zero, 0);
    td_builder_output(b, td_builder_step(b, TD_PW_sub, x, step, 0), TD_OUTPUT_ELEMENTS);
    td_builder_output(b, td_builder_step(b, TD_PW_eq, x, zero, 0), TD_OUTPUT_SUM);
    td_status status = td_builder_finish(b, &made);
    if (status)
        return status;
    *program = made;
    if (!atomic_compare_exchange_strong(&kept, &there, made)) {
        td_program_release(made); /* another thread was sooner */
        *program = there;
    }
    return TD_OK;
}

static td_status rebase_at_once(const td_tensor *x, td_tensor *out) {
    td_tensor *zeros = NULL;
    int64_t count = 0;
    td_status status = td_tensor_empty(TD_I64, td_tensor_device(x), 0, NULL, &zeros);
    td_tensor *const outs[] = {out, zeros};
    const td_operand operand = {.tensor = x};
    td_pointwise_plan plan = {.operands = &operand, .compute = TD_I64, .nlists = 1, .outs = outs};
    if (status == TD_OK)
        status = rebase_program(&plan.program);
    if (status == TD_OK)
        status = TD_RUN(td_tensor_device(x), pointwise, &plan);
    if (status == TD_OK)
        status = td_tensor_item_int(zeros, &count);
    td_release(zeros);
    return status == TD_OK && count ? td_fail(index_zero.code, "%s", index_zero.message) : status;
}

/* A device that works later is not waited for: it looks twice, and says so when it has looked. */
static td_status kernel_from_one_based(td_call *call) {
    static td_lazy_program lazy = {"x - gt(x, 0)", NULL};
    const td_operand x = {.tensor = call->args[0].tensor};
    td_pointwise_plan plan = {.operands = &x, .compute = TD_I64, .out = call->out[0]};
    if (td_tensor_device(x.tensor).type == TD_CPU)
        return rebase_at_once(x.tensor, plan.out);
    td_status status = td_refuse(&index_zero, x.tensor);
    if (status == TD_OK)
        status = td_lazy_program_get(&lazy, &plan.program);
    return status ? status : TD_RUN(td_tensor_device(plan.out), pointwise, &plan);
}

/* ---- the table ---- */

TD_OPERATOR(gather) = {
    .schema = "(Tensor x, dim dim, index Tensor index, *, bool sparse_grad=false) -> Tensor",
    .doc = "For each place of index the element of x that it names along a dim.",
    .shapes = "x (...), index (places...) -> (places...); places: as many dims as x has, but at "
              "dim none larger",
    .notes = "Elements are x[i][index[i][j]] for dim 2 and likewise for others. An index outside "
             "of x is an error, 0 too; negative ones count from the end, which PyTorch refuses. "
             "Nothing is broadcast: take_along_dim does.",
    .rule = rule_gather,
    .kernel = kernel_gather,
    .dtypes = TD_DTYPES_ALL,
    .gradient = "x: if(sparse_grad, gather_slope(g, index, x.shape, dim),"
                "      scatter_add(zeros(x.shape, dtype=g.dtype, device=g.device), dim, index, g))",
    .flags = TD_OP_OUT | TD_OP_OUT_EXACT | TD_OP_OUT_APART | TD_OP_REFUSES | TD_OP_ANY_BASE,
};
TD_OPERATOR(scatter) = {
    .schema = "(Tensor x, dim dim, index Tensor index, Tensor|number src, *, "
              "\"add\"|\"multiply\"? reduce=nil) -> Tensor",
    .doc =
        "x with src written to the places that index names along a dim; or added, or multiplied.",
    .shapes = "x (...), index (places...), src (values...) -> (...); places: as many dims as x "
              "has, but at dim none larger; values: no dim smaller than of places",
    .notes = "Of several elements for one place the last stays; PyTorch leaves open which. reduce "
             "adds them to x or multiplies x by them. Of src as much is read as index covers. An "
             "index outside of x is an error, 0 too.",
    .rule = rule_scatter,
    .kernel = kernel_scatter,
    .dtypes = TD_DTYPES_ALL,
    .gradient =
        "x: if(reduce == nil, scatter(g, dim, index, 0), if(reduce == \"add\", g,"
        "      error(\"multiply has no gradient here: use scatter_reduce\")));"
        "src: if(reduce == nil or reduce == \"add\", gather_within(g, dim, index, src.shape),"
        "      error(\"multiply has no gradient here: use scatter_reduce\"))",
    .flags = TD_OP_INPLACE | TD_OP_WRITES_SELF | TD_OP_OUT | TD_OP_OUT_EXACT | TD_OP_OUT_APART |
             TD_OP_REFUSES | TD_OP_ANY_BASE,
};
/* The gradient of an extreme is shared out among all that reach it; that of a product is written so
 * that one factor of 0 does not hide the product of the others. */
TD_OPERATOR(scatter_combine) = {
    .schema = "(Tensor x, dim dim, index Tensor index, Tensor src, str how, bool alone=false) -> "
              "Tensor",
    .doc =
        "x combined with src (prod, amax, amin), of index's shape, at the places that index names; "
        "`alone`: x is neutral there and takes no share of the gradient.",
    .rule = rule_scatter,
    .kernel = kernel_scatter,
    .dtypes = TD_DTYPES_ALL,
    .gradient = "most = gather(out, dim, index);"
                "own = if(alone, scatter(to(out == x, g.dtype), dim, index, 0),"
                "         to(out == x, g.dtype));"
                "n = scatter_add(own, dim, index, to(src == most, g.dtype));"
                "bare = masked_fill(x, x == 0, 1);"
                "none = src == 0;"
                "holes = gather(scatter_add(zeros(x.shape, dtype=g.dtype, device=g.device), dim,"
                "                           index, to(none, g.dtype)), dim, index);"
                "lone = logical_and(none, holes == 1);"
                "others = scatter_combine(x, dim, index, masked_fill(src, lone, 1), \"prod\");"
                "x: if(how == \"prod\","
                "      g * scatter_combine(bare, dim, index, src, how) / bare,"
                "      to(out == x, g.dtype) * g / n);"
                "src: if(how == \"prod\","
                "        where(lone, gather(g * others, dim, index),"
                "              gather(g * out, dim, index) / masked_fill(src, none, 1)),"
                "        to(src == most, g.dtype) * gather(g / n, dim, index))",
    .flags = TD_OP_INTERNAL | TD_OP_WRITES_SELF | TD_OP_ANY_BASE,
};
TD_OPERATOR(scatter_add) = {
    .schema = "(Tensor x, dim dim, index Tensor index, Tensor src) -> Tensor",
    .doc = "x with src added at the places that index names along a dim.",
    .shapes = "x (...), index (places...), src (values...) -> (...); places: as many dims as x "
              "has, but at dim none larger; values: no dim smaller than of places",
    .notes = "All elements for one place are added. An index outside of x is an error, 0 too.",
    .rule = rule_scatter_add,
    .kernel = kernel_scatter,
    .dtypes = TD_DTYPES_ALL,
    .gradient = "x: g; src: gather_within(g, dim, index, src.shape)",
    .autocast = {[TD_CUDA] = TD_AUTOCAST_PROMOTE},
    .flags = TD_OP_INPLACE | TD_OP_WRITES_SELF | TD_OP_OUT | TD_OP_OUT_EXACT | TD_OP_OUT_APART |
             TD_OP_REFUSES | TD_OP_ANY_BASE,
};
TD_OPERATOR(gather_within) = {
    .schema = "(Tensor x, dim dim, index Tensor index, int[] size) -> Tensor",
    .doc = "gather where index has places, zeros in the rest of this size.",
    .run = run_gather_within,
    .flags = TD_OP_INTERNAL | TD_OP_ANY_BASE,
};
TD_OPERATOR(one_hot) = {
    .schema = "(class Tensor x, int num_classes=-1) -> Tensor",
    .doc = "A row for each class label: 1 at the label, 0 elsewhere.",
    .shapes =
        "x (...) -> (..., num_classes) if num_classes >= 0 | -> (..., n); n: the largest class",
    .notes = "Classes from 1. A class beyond num_classes is an error.",
    .run = run_one_hot,
    .flags = TD_OP_BY_ELEMENTS | TD_OP_NONDIFF,
};
TD_OPERATOR(from_one_based) = {
    .schema = "(Tensor x) -> Tensor",
    .doc = "Indices that count from 1 as the engine counts them, from 0.",
    .rule = rule_from_one_based,
    .kernel = kernel_from_one_based,
    .dtypes = TD_DTYPES_INTS,
    .flags = TD_OP_INTERNAL | TD_OP_NONDIFF,
};

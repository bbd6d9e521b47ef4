/* random.c: draws from distributions: new tensors, tensors filled in place, dropout. Rules say what
 * is drawn, kernels reserve the generator's numbers. */
#include "engine/ops/make/random.h"

#include "engine/core/random.h"
#include "engine/ops/element_checks.h"
#include "engine/ops/rule_helpers.h"

#include <math.h>
#include <string.h>

#define TD_FAMILY "random"

/* The next number of a floating dtype from one of it on, up or down. */
static double next_number(td_dtype dtype, double number, bool up) {
    unsigned char there[8];
    const unsigned bits = 8 * (unsigned)td_dtype_size(dtype);
    uint64_t pattern = 0, sign = 1ull << (bits - 1);
    td_store_double(dtype, there, number);
    memcpy(&pattern, there, bits / 8);
    if (!(pattern & ~sign))
        pattern = up ? 1 : sign | 1;
    else
        pattern += up == !(pattern & sign) ? 1 : ~0ull;
    memcpy(there, &pattern, bits / 8);
    return td_load_double(dtype, there);
}

static double rounded(td_dtype dtype, double number) {
    unsigned char there[8];
    td_store_double(dtype, there, number);
    return td_load_double(dtype, there);
}

/* Which numbers of the dtype lie in [from, to): what is drawn is rounded, and must stay there.
 * Where there is none it is what `from` is rounded to. */
static void bound(td_draw_plan *p, td_dtype dtype, double from, double to) {
    p->least = rounded(dtype, from);
    p->most = rounded(dtype, to);
    if (p->least < from)
        p->least = next_number(dtype, p->least, true);
    if (p->most >= to)
        p->most = next_number(dtype, p->most, false);
    if (!(p->least <= p->most))
        p->least = p->most = rounded(dtype, from);
}

static void bound_range(td_draw_plan *p, td_dtype dtype) {
    if (!td_dtype_is_float(dtype))
        return;
    if (p->distribution == TD_UNIFORM)
        bound(p, dtype, p->a, p->b);
    if (p->distribution == TD_RANDINT)
        bound(p, dtype, (double)p->low, (double)(int64_t)((uint64_t)p->low + p->count));
}

/* Fill x by a plan whose distribution and parameters are given. */
static td_status draw(td_tensor *x, td_value generator, td_draw_plan *p) {
    p->out = x;
    if (x->numel == 0)
        return TD_OK;
    bound_range(p, (td_dtype)x->dtype);
    uint64_t words = (uint64_t)x->numel * (uint64_t)td_draw_words(p);
    td_reserve_numbers(td_tensor_device(x), generator, (words + 3) / 4, &p->seed, &p->offset);
    return TD_RUN(td_tensor_device(x), draw, p);
}

/* The plan of the rule into call->out[0]; the generator is the last parameter. */
static td_status kernel_draw(td_call *call) {
    return draw(call->out[0], call->args[call->op->nparams - 1], TD_PLAN(call, td_draw_plan));
}

/* ---- new tensors ---- */

static td_status plan_new(const td_call *call, td_meta *out, bool like, td_distribution which) {
    const td_value *a = call->args;
    td_status status = like ? td_creation_meta_like(a[0].tensor, a[1], a[2], a[3], out)
                            : td_creation_meta_out(call, a[0], a[1], a[2], out);
    *TD_PLAN(call, td_draw_plan) = (td_draw_plan){.distribution = which, .a = 0, .b = 1};
    return status ? status : td_check_float(out->dtype);
}

TD_RULE(rule_rand, plan_new, false, TD_UNIFORM)
TD_RULE(rule_randn, plan_new, false, TD_NORMAL)
TD_RULE(rule_rand_like, plan_new, true, TD_UNIFORM)
TD_RULE(rule_randn_like, plan_new, true, TD_NORMAL)

/* Does an integer dtype hold the number? Of floats any is as good as it can be. */
static bool holds(td_dtype dtype, int64_t number) {
    unsigned char there[8];
    if (td_dtype_is_float(dtype))
        return true;
    td_store_int(dtype, there, number);
    return td_load_int(dtype, there) == number;
}

/* Integers from low on, below high, of a dtype. */
static td_status plan_range(const td_call *call, td_dtype dtype, int64_t low, int64_t high) {
    if (low >= high)
        return td_fail(TD_EVALUE,
                       "low must be less than high (which is not drawn), got %lld and %lld",
                       (long long)low, (long long)high);
    if (!holds(dtype, low) || !holds(dtype, high - 1))
        return td_fail(TD_EVALUE, "%s doesn't hold the integers from %lld to %lld",
                       td_dtype_name(dtype), (long long)low, (long long)high - 1);
    *TD_PLAN(call, td_draw_plan) = (td_draw_plan){
        .distribution = TD_RANDINT, .low = low, .count = (uint64_t)high - (uint64_t)low};
    return TD_OK;
}

static td_status rule_randint(const td_call *call, td_meta *out) {
    const td_value *a = call->args;
    const td_tensor *given = td_call_given(call, 0);
    td_value own = TD_DTYPE(given ? (td_dtype)given->dtype : TD_I64);
    td_value dtype = td_is_nil(a[3]) ? own : a[3];
    td_status status = plan_range(call, dtype.dtype, a[0].i, a[1].i);
    return status ? status : td_creation_meta_out(call, a[2], dtype, a[4], out);
}

/* (x, high) or (x, low, high). */
static td_status rule_randint_like(const td_call *call, td_meta *out) {
    const td_value *a = call->args;
    bool alone = td_is_nil(a[2]);
    td_status status = td_creation_meta_like(a[0].tensor, a[3], a[4], TD_STRING("preserve"), out);
    return status ? status
                  : plan_range(call, out->dtype, alone ? 0 : a[1].i, alone ? a[1].i : a[2].i);
}

static td_status rule_randperm(const td_call *call, td_meta *out) {
    const td_value *a = call->args;
    if (a[0].i < 0)
        return td_fail(TD_EVALUE, "n must not be negative, got %lld", (long long)a[0].i);
    return td_creation_meta(TD_INTS(1, &a[0].i), TD_DTYPE(TD_I64), a[1], out);
}

static td_status kernel_randperm(td_call *call) {
    td_permutation_plan plan = {.out = call->out[0]};
    td_value generator = call->args[2];
    if (plan.out->numel == 0)
        return TD_OK;
    td_reserve_numbers(td_tensor_device(plan.out), generator, ((uint64_t)plan.out->numel + 1) / 2,
                       &plan.seed, &plan.offset);
    return TD_RUN(td_tensor_device(plan.out), permutation, &plan);
}

/* ---- in place ---- */

static td_status plan_in_place(const td_call *call, td_meta *out, td_draw_plan plan) {
    const td_tensor *x = call->args[0].tensor;
    *TD_PLAN(call, td_draw_plan) = plan;
    td_status status = plan.distribution == TD_BERNOULLI || plan.distribution == TD_GEOMETRIC
                           ? TD_OK
                           : td_check_float((td_dtype)x->dtype);
    return status ? status : td_rule_same(call, out);
}

static td_status check_probability(double p) {
    return p >= 0 && p <= 1 ? TD_OK : td_fail(TD_EVALUE, "p must lie between 0 and 1, got %g", p);
}

static td_status rule_uniform_(const td_call *call, td_meta *out) {
    const td_value *a = call->args;
    if (!(a[1].f <= a[2].f) || isinf(a[2].f - a[1].f))
        return td_fail(TD_EVALUE, "from must not exceed to, got %g and %g", a[1].f, a[2].f);
    return plan_in_place(call, out,
                         (td_draw_plan){.distribution = TD_UNIFORM, .a = a[1].f, .b = a[2].f});
}

static td_status rule_normal_(const td_call *call, td_meta *out) {
    const td_value *a = call->args;
    if (!(a[2].f >= 0))
        return td_fail(TD_EVALUE, "std must not be negative, got %g", a[2].f);
    return plan_in_place(call, out,
                         (td_draw_plan){.distribution = TD_NORMAL, .a = a[1].f, .b = a[2].f});
}

static td_status rule_log_normal_(const td_call *call, td_meta *out) {
    const td_value *a = call->args;
    if (!(a[2].f > 0))
        return td_fail(TD_EVALUE, "std must be more than 0, got %g", a[2].f);
    return plan_in_place(call, out,
                         (td_draw_plan){.distribution = TD_LOG_NORMAL, .a = a[1].f, .b = a[2].f});
}

static td_status rule_exponential_(const td_call *call, td_meta *out) {
    double rate = call->args[1].f;
    if (!(rate > 0))
        return td_fail(TD_EVALUE, "lambd must be more than 0, got %g", rate);
    return plan_in_place(call, out, (td_draw_plan){.distribution = TD_EXPONENTIAL, .a = rate});
}

static td_status rule_cauchy_(const td_call *call, td_meta *out) {
    const td_value *a = call->args;
    if (!(a[2].f > 0))
        return td_fail(TD_EVALUE, "sigma must be more than 0, got %g", a[2].f);
    return plan_in_place(call, out,
                         (td_draw_plan){.distribution = TD_CAUCHY, .a = a[1].f, .b = a[2].f});
}

static td_status rule_geometric_(const td_call *call, td_meta *out) {
    double p = call->args[1].f;
    if (!(p > 0 && p < 1))
        return td_fail(TD_EVALUE, "p must lie between 0 and 1, got %g", p);
    return plan_in_place(call, out, (td_draw_plan){.distribution = TD_GEOMETRIC, .a = p});
}

/* From 0 to the last integer from where on a float leaves some out, or the largest of the dtype. */
static uint64_t all_integers(td_dtype dtype) {
    static const uint8_t digits[TD_DTYPE_COUNT] = {
        [TD_F16] = 11, [TD_BF16] = 8, [TD_F32] = 24, [TD_F64] = 53};
    if (digits[dtype])
        return (1ull << digits[dtype]) + 1;
    if (dtype == TD_BOOL || dtype == TD_U8)
        return dtype == TD_BOOL ? 2 : 256;
    return 1ull << (8 * td_dtype_size(dtype) - 1);
}

/* (), (to) or (from, to). */
static td_status rule_random_(const td_call *call, td_meta *out) {
    const td_value *a = call->args;
    td_dtype dtype = (td_dtype)a[0].tensor->dtype;
    bool alone = td_is_nil(a[2]);
    td_status status = td_rule_same(call, out);
    if (status || (alone && td_is_nil(a[1]))) {
        *TD_PLAN(call, td_draw_plan) =
            (td_draw_plan){.distribution = TD_RANDINT, .count = all_integers(dtype)};
        return status;
    }
    return plan_range(call, dtype, alone || td_is_nil(a[1]) ? 0 : a[1].i, alone ? a[1].i : a[2].i);
}

/* ---- by probabilities ---- */

static td_refusal no_probability = {{"logical_not(ge(x, 0) * le(x, 1))", NULL},
                                    TD_EVALUE,
                                    "probabilities must lie between 0 and 1"};

static td_status check_probabilities(const td_tensor *p) {
    return td_dtype_is_float((td_dtype)p->dtype)
               ? TD_OK
               : td_fail(TD_EDTYPE, "needs probabilities of a floating dtype, got %s",
                         td_dtype_name((td_dtype)p->dtype));
}

/* The draw of one probability for all, or the uniform numbers of many. */
static void plan_bernoulli(const td_call *call, td_value p) {
    *TD_PLAN(call, td_draw_plan) =
        p.kind == TD_KIND_FLOAT ? (td_draw_plan){.distribution = TD_BERNOULLI, .a = p.f, .b = 1}
                                : (td_draw_plan){.distribution = TD_UNIFORM, .b = 1};
}

static td_status rule_bernoulli(const td_call *call, td_meta *out) {
    const td_value *a = call->args;
    td_status status =
        td_is_nil(a[1]) ? check_probabilities(a[0].tensor) : check_probability(a[1].f);
    const td_tensor *given = td_call_given(call, 0);
    plan_bernoulli(call, a[1]);
    td_meta_like(out, a[0].tensor, (td_dtype)(given ? given : a[0].tensor)->dtype);
    return status;
}

static td_status rule_bernoulli_(const td_call *call, td_meta *out) {
    const td_value *a = call->args;
    int64_t sizes[TD_MAX_DIMS];
    char have[TD_SHAPE_TEXT], want[TD_SHAPE_TEXT];
    int ndim;
    td_value p = a[1].kind == TD_KIND_INT ? TD_F((double)a[1].i) : a[1];
    plan_bernoulli(call, p);
    if (p.kind == TD_KIND_FLOAT) {
        td_status status = check_probability(p.f);
        return status ? status : td_rule_same(call, out);
    }
    td_status status = check_probabilities(p.tensor);
    if (status == TD_OK)
        status = td_broadcast(a[0].tensor->ndim, a[0].tensor->sizes, p.tensor->ndim,
                              p.tensor->sizes, &ndim, sizes);
    if (status)
        return status;
    if (ndim != a[0].tensor->ndim ||
        memcmp(sizes, a[0].tensor->sizes, sizeof(int64_t) * (size_t)ndim))
        return td_fail(TD_ESHAPE, "p of shape %s doesn't broadcast to %s, what is written",
                       td_tensor_shape_text(p.tensor, have),
                       td_tensor_shape_text(a[0].tensor, want));
    return td_rule_same(call, out);
}

/* 1 where a uniform number lies below the probability. Numbers are drawn in the dtype that
 * computes: the 16-bit ones have too few digits for small probabilities. */
static td_status draw_below(td_tensor *out, td_tensor *p, td_value generator, td_draw_plan *plan) {
    td_tensor *drawn = NULL;
    td_dtype dtype = td_dtype_compute((td_dtype)p->dtype);
    td_status status = td_refuse(&no_probability, p);
    if (status == TD_OK)
        status = td_tensor_empty(dtype, td_tensor_device(out), out->ndim, out->sizes, &drawn);
    const td_operand operands[2] = {{.tensor = drawn}, {.tensor = p}};
    td_pointwise_plan below = {.program = td_primitive_program(TD_PW_lt),
                               .operands = operands,
                               .compute = dtype,
                               .out = out};
    if (status == TD_OK)
        status = draw(drawn, generator, plan);
    if (status == TD_OK)
        status = TD_RUN(td_tensor_device(out), pointwise, &below);
    td_release(drawn);
    return status;
}

static td_status kernel_bernoulli(td_call *call) {
    td_draw_plan *plan = TD_PLAN(call, td_draw_plan);
    td_value generator = call->args[call->op->nparams - 1];
    if (plan->distribution == TD_BERNOULLI)
        return draw(call->out[0], generator, plan);
    td_value p = call->args[1].kind == TD_KIND_TENSOR ? call->args[1] : call->args[0];
    return draw_below(call->out[0], p.tensor, generator, plan);
}

/* ---- dropout ---- */

static td_status rule_noise(const td_call *call, td_meta *out) {
    const td_tensor *x = call->args[0].tensor;
    double keep = 1 - call->args[1].f;
    td_status status = td_check_float((td_dtype)x->dtype);
    *TD_PLAN(call, td_draw_plan) =
        (td_draw_plan){.distribution = TD_BERNOULLI, .a = keep, .b = keep > 0 ? 1 / keep : 0};
    return status ? status : td_creation_meta_like(x, TD_NIL, TD_NIL, TD_STRING("preserve"), out);
}

/* ---- the table ---- */

TD_OPERATOR(rand) = {
    .schema = "(int[] size, *, dtype? dtype=nil, device? device=nil, "
              "generator? generator=nil) -> Tensor",
    .doc = "Uniform numbers in [0, 1).",
    .rule = rule_rand,
    .kernel = kernel_draw,
    .dtypes = TD_DTYPES_ALL,
    .flags = TD_OP_FUNCTION_ONLY | TD_OP_NONDIFF | TD_OP_RANDOM | TD_OP_OUT,
};
TD_OPERATOR(randn) = {
    .schema = "(int[] size, *, dtype? dtype=nil, device? device=nil, "
              "generator? generator=nil) -> Tensor",
    .doc = "Normal numbers with mean 0 and variance 1.",
    .rule = rule_randn,
    .kernel = kernel_draw,
    .dtypes = TD_DTYPES_ALL,
    .flags = TD_OP_FUNCTION_ONLY | TD_OP_NONDIFF | TD_OP_RANDOM | TD_OP_OUT,
};
TD_OPERATOR(rand_like) = {
    .schema = "(Tensor x, *, dtype? dtype=nil, device? device=nil, "
              "str memory_format=\"preserve\", generator? generator=nil) -> Tensor",
    .doc = "Uniform numbers in [0, 1), as many as x has, on x's device.",
    .takes = "floating; any with dtype",
    .rule = rule_rand_like,
    .kernel = kernel_draw,
    .dtypes = TD_DTYPES_ALL,
    .flags = TD_OP_FUNCTION_ONLY | TD_OP_NONDIFF | TD_OP_RANDOM,
};
TD_OPERATOR(randn_like) = {
    .schema = "(Tensor x, *, dtype? dtype=nil, device? device=nil, "
              "str memory_format=\"preserve\", generator? generator=nil) -> Tensor",
    .doc = "Normal numbers, as many as x has, on x's device.",
    .takes = "floating; any with dtype",
    .rule = rule_randn_like,
    .kernel = kernel_draw,
    .dtypes = TD_DTYPES_ALL,
    .flags = TD_OP_FUNCTION_ONLY | TD_OP_NONDIFF | TD_OP_RANDOM,
};
TD_OPERATOR(randint) = {
    .schema = "(int low, int high, int[] size, *, dtype? dtype=nil, device? device=nil, "
              "generator? generator=nil) -> Tensor",
    .doc = "Integers from low on, below high: classes from 1 to K are randint(1, K + 1, size).",
    .rule = rule_randint,
    .kernel = kernel_draw,
    .dtypes = TD_DTYPES_ALL,
    .flags = TD_OP_FUNCTION_ONLY | TD_OP_NONDIFF | TD_OP_RANDOM | TD_OP_OUT,
};
TD_OPERATOR(randint_like) = {
    .schema = "(Tensor x, int low, int? high=nil, *, dtype? dtype=nil, device? device=nil, "
              "generator? generator=nil) -> Tensor",
    .doc = "Integers from low on, below high, as many as x has; with one number from 0 below it.",
    .rule = rule_randint_like,
    .kernel = kernel_draw,
    .dtypes = TD_DTYPES_ALL,
    .flags = TD_OP_FUNCTION_ONLY | TD_OP_NONDIFF | TD_OP_RANDOM,
};
TD_OPERATOR(randperm) = {
    .schema = "(int n, *, device? device=nil, generator? generator=nil) -> index Tensor",
    .doc = "The numbers from 1 to n in random order.",
    .shapes = "-> (n)",
    .rule = rule_randperm,
    .kernel = kernel_randperm,
    .dtypes = TD_DTYPES_ALL,
    .flags = TD_OP_FUNCTION_ONLY | TD_OP_NONDIFF | TD_OP_RANDOM | TD_OP_OUT,
};
TD_OPERATOR(uniform_) = {
    .schema = "(Tensor x, float from=0, float to=1, *, generator? generator=nil) -> Tensor",
    .doc = "Fill x with uniform numbers in [from, to).",
    .rule = rule_uniform_,
    .kernel = kernel_draw,
    .dtypes = TD_DTYPES_FLOATS,
    .flags = TD_OP_INPLACE_ONLY | TD_OP_METHOD_ONLY | TD_OP_NONDIFF | TD_OP_RANDOM |
             TD_OP_WRITES_SELF,
};
TD_OPERATOR(normal_) = {
    .schema = "(Tensor x, float mean=0, float std=1, *, generator? generator=nil) -> Tensor",
    .doc = "Fill x with normal numbers.",
    .rule = rule_normal_,
    .kernel = kernel_draw,
    .dtypes = TD_DTYPES_FLOATS,
    .flags = TD_OP_INPLACE_ONLY | TD_OP_METHOD_ONLY | TD_OP_NONDIFF | TD_OP_RANDOM |
             TD_OP_WRITES_SELF,
};
#define FILL(which)                                                                                \
    .rule = rule_##which, .kernel = kernel_draw,                                                   \
    .flags =                                                                                       \
        TD_OP_INPLACE_ONLY | TD_OP_METHOD_ONLY | TD_OP_NONDIFF | TD_OP_RANDOM | TD_OP_WRITES_SELF
TD_OPERATOR(log_normal_) = {
    .schema = "(Tensor x, float mean=1, float std=2, *, generator? generator=nil) -> Tensor",
    .doc = "Fill x with numbers whose logarithms are normal, of this mean and deviation.",
    .dtypes = TD_DTYPES_FLOATS,
    FILL(log_normal_),
};
TD_OPERATOR(exponential_) = {
    .schema = "(Tensor x, float lambd=1, *, generator? generator=nil) -> Tensor",
    .doc = "Fill x with exponential numbers of the mean 1 / lambd.",
    .dtypes = TD_DTYPES_FLOATS,
    FILL(exponential_),
};
TD_OPERATOR(cauchy_) = {
    .schema = "(Tensor x, float median=0, float sigma=1, *, generator? generator=nil) -> Tensor",
    .doc = "Fill x with numbers of Cauchy's distribution.",
    .dtypes = TD_DTYPES_FLOATS,
    FILL(cauchy_),
};
TD_OPERATOR(geometric_) = {
    .schema = "(Tensor x, float p, *, generator? generator=nil) -> Tensor",
    .doc = "Fill x with numbers of trials up to the first success, which has probability p.",
    .dtypes = TD_DTYPES_ALL,
    FILL(geometric_),
};
TD_OPERATOR(random_) = {
    .schema = "(Tensor x, int? from=nil, int? to=nil, *, generator? generator=nil) -> Tensor",
    .doc =
        "Fill x with integers from `from` on, below `to`; with one number below it, else with all.",
    .dtypes = TD_DTYPES_ALL,
    FILL(random_),
};
TD_OPERATOR(bernoulli_) = {
    .schema = "(Tensor x, Tensor|number p=0.5, *, generator? generator=nil) -> Tensor",
    .doc = "Fill x with ones, each with probability p, and zeros.",
    .shapes = "x (...), p to (...) -> (...)",
    .rule = rule_bernoulli_,
    .kernel = kernel_bernoulli,
    .dtypes = TD_DTYPES_ALL,
    .flags = TD_OP_INPLACE_ONLY | TD_OP_METHOD_ONLY | TD_OP_NONDIFF | TD_OP_RANDOM |
             TD_OP_WRITES_SELF,
};
TD_OPERATOR(bernoulli) = {
    .schema = "(Tensor x, float? p=nil, *, generator? generator=nil) -> Tensor",
    .doc = "Ones with the probabilities that x holds, or with one for all, and zeros.",
    .shapes = "x (...) -> (...)",
    .takes = "floating",
    .notes = "Probabilities outside of 0 to 1 are an error.",
    .rule = rule_bernoulli,
    .kernel = kernel_bernoulli,
    .dtypes = TD_DTYPES_ALL,
    .gradient = "x: zeros_like(g)",
    .flags = TD_OP_RANDOM | TD_OP_OUT | TD_OP_REFUSES,
};
TD_OPERATOR(dropout_noise) = {
    .schema = "(Tensor x, float p, *, generator? generator=nil) -> Tensor",
    .doc = "What dropout multiplies by: 0 with probability p, else 1 / (1 - p).",
    .rule = rule_noise,
    .kernel = kernel_draw,
    .dtypes = TD_DTYPES_FLOATS,
    .flags = TD_OP_NONDIFF | TD_OP_RANDOM | TD_OP_INTERNAL,
};
TD_OPERATOR(dropout) = {
    .schema = "(Tensor x, float p=0.5, bool training=true, *, "
              "generator? generator=nil) -> Tensor",
    .doc = "In training, zero each element with probability p and divide the others by 1 - p.",
    .notes = "What stays is divided by 1 - p; with training=false x itself.",
    .formula = "if(p >= 0 and p <= 1,"
               "   if(training and p > 0, x * dropout_noise(x, p, generator=generator), x),"
               "   error(\"p must lie between 0 and 1, got %\", p))",
    .flags = TD_OP_INPLACE | TD_OP_RANDOM,
};

/* random.c: draws from distributions: new tensors, tensors filled in place, dropout. */
#include "engine/ops/random.h"

#include "engine/ops/creation.h"

#include <math.h>

#define TD_FAMILY "random"

/* What a device must have to draw; a device without them has no random operators. */
typedef struct random_device {
    td_status (*draw)(td_tensor *x, const td_draw *draw);
    td_status (*randperm)(td_tensor *x, td_generator *generator);
} random_device;

static const random_device devices[TD_DEVICE_TYPES] = {
    [TD_CPU] = {td_cpu_draw, td_cpu_randperm},
};

static td_generator *generator_of(td_value v) {
    return td_is_nil(v) ? NULL : v.generator;
}

static td_status draw(td_tensor *x, const td_draw *what) {
    const random_device *device = &devices[td_tensor_device(x).type];
    return device->draw ? device->draw(x, what)
                        : td_fail(TD_EDEVICE, "no random numbers there yet");
}

/* Draw into call->out[0], which the rule shaped. */
static td_status kernel_rand(td_call *call) {
    return draw(call->out[0],
                &(td_draw){TD_UNIFORM, .b = 1, .generator = generator_of(call->args[3])});
}

static td_status kernel_randn(td_call *call) {
    return draw(call->out[0],
                &(td_draw){TD_NORMAL, .b = 1, .generator = generator_of(call->args[3])});
}

static td_status rule_size(const td_call *call, td_meta *out) {
    return td_creation_meta(call->args[0], call->args[1], call->args[2], out);
}

static td_status rule_like(const td_call *call, td_meta *out) {
    return td_creation_meta_like(call->args[0].tensor, call->args[1], call->args[2], out);
}

/* ---- integers ---- */

static td_status rule_randint(const td_call *call, td_meta *out) {
    const td_value *a = call->args;
    td_value dtype = td_is_nil(a[3]) ? TD_DTYPE(TD_I64) : a[3];
    if (a[0].i >= a[1].i)
        return td_fail(TD_EVALUE,
                       "low must be less than high (which is not drawn), got %lld and %lld",
                       (long long)a[0].i, (long long)a[1].i);
    return td_creation_meta(a[2], dtype, a[4], out);
}

static td_status kernel_randint(td_call *call) {
    const td_value *a = call->args;
    return draw(call->out[0],
                &(td_draw){TD_RANDINT, .low = a[0].i, .count = (uint64_t)a[1].i - (uint64_t)a[0].i,
                           .generator = generator_of(a[5])});
}

static td_status rule_randperm(const td_call *call, td_meta *out) {
    if (call->args[0].i < 0)
        return td_fail(TD_EVALUE, "n must not be negative, got %lld", (long long)call->args[0].i);
    out->dtype = TD_I64;
    out->ndim = 1;
    out->sizes[0] = call->args[0].i;
    return TD_OK;
}

static td_status kernel_randperm(td_call *call) {
    td_tensor *x = call->out[0];
    const random_device *device = &devices[td_tensor_device(x).type];
    return device->randperm ? device->randperm(x, generator_of(call->args[2]))
                            : td_fail(TD_EDEVICE, "no random numbers there yet");
}

/* ---- in place ---- */

static td_status draw_in_place(td_call *call, const td_draw *what) {
    td_tensor *x = call->args[0].tensor;
    if (td_tensor_overlaps(x))
        return td_fail(TD_EVALUE, "several elements of the tensor written share one place in "
                                  "memory (an expanded tensor?); write into a clone() of it");
    td_status status = draw(x, what);
    if (status == TD_OK)
        call->out[0] = td_retain(x);
    return status;
}

static td_status check_probability(double p) {
    return p >= 0 && p <= 1 ? TD_OK : td_fail(TD_EVALUE, "p must lie between 0 and 1, got %g", p);
}

static td_status run_uniform_(td_call *call) {
    const td_value *a = call->args;
    if (!(a[1].f <= a[2].f) || isinf(a[2].f - a[1].f))
        return td_fail(TD_EVALUE, "from must not exceed to, got %g and %g", a[1].f, a[2].f);
    return draw_in_place(
        call, &(td_draw){TD_UNIFORM, .a = a[1].f, .b = a[2].f, .generator = generator_of(a[3])});
}

static td_status run_normal_(td_call *call) {
    const td_value *a = call->args;
    if (!(a[2].f >= 0))
        return td_fail(TD_EVALUE, "std must not be negative, got %g", a[2].f);
    return draw_in_place(
        call, &(td_draw){TD_NORMAL, .a = a[1].f, .b = a[2].f, .generator = generator_of(a[3])});
}

static td_status run_bernoulli_(td_call *call) {
    const td_value *a = call->args;
    td_status status = check_probability(a[1].f);
    return status ? status
                  : draw_in_place(call, &(td_draw){TD_BERNOULLI, .a = a[1].f, .b = 1,
                                                   .generator = generator_of(a[2])});
}

/* ---- by probabilities ---- */

/* 1 where a uniform number lies below the probability. */
static td_status run_bernoulli(td_call *call) {
    td_tensor *p = call->args[0].tensor, *u = NULL, *below = NULL, *fits = NULL, *inside = NULL;
    td_status status = TD_OK;
    double all = 1;
    if (!td_dtype_is_float((td_dtype)p->dtype))
        return td_fail(TD_EDTYPE, "needs probabilities of a floating dtype, got %s",
                       td_dtype_name((td_dtype)p->dtype));
    TD_TRY(TD_APPLY(&fits, clamp, TD_T(p), TD_F(0), TD_F(1)));
    TD_TRY(TD_APPLY(&inside, eq, TD_T(fits), TD_T(p)));
    td_release(fits);
    fits = NULL;
    TD_TRY(TD_APPLY(&fits, all, TD_T(inside)));
    TD_TRY(td_tensor_item(fits, &all));
    if (all == 0) {
        status = td_fail(TD_EVALUE, "probabilities must lie between 0 and 1");
        goto done;
    }
    TD_TRY(td_tensor_empty((td_dtype)p->dtype, td_tensor_device(p), p->ndim, p->sizes, &u));
    TD_TRY(draw(u, &(td_draw){TD_UNIFORM, .b = 1, .generator = generator_of(call->args[1])}));
    TD_TRY(TD_APPLY(&below, lt, TD_T(u), TD_T(p)));
    TD_TRY(TD_APPLY(&call->out[0], to, TD_T(below), TD_DTYPE((td_dtype)p->dtype)));
done:
    td_release(fits);
    td_release(inside);
    td_release(u);
    td_release(below);
    return status;
}

/* ---- dropout ---- */

static td_status rule_noise(const td_call *call, td_meta *out) {
    return td_creation_meta_like(call->args[0].tensor, TD_NIL, TD_NIL, out);
}

static td_status kernel_noise(td_call *call) {
    double keep = 1 - call->args[1].f;
    return draw(call->out[0], &(td_draw){TD_BERNOULLI, .a = keep, .b = keep > 0 ? 1 / keep : 0,
                                         .generator = generator_of(call->args[2])});
}

static td_status run_dropout(td_call *call) {
    const td_value *a = call->args;
    td_tensor *noise = NULL;
    td_status status = check_probability(a[1].f);
    if (status == TD_OK && !td_dtype_is_float((td_dtype)a[0].tensor->dtype))
        status = td_fail(TD_EDTYPE, "needs a floating dtype, got %s",
                         td_dtype_name((td_dtype)a[0].tensor->dtype));
    if (status)
        return status;
    if (!a[2].b || a[1].f == 0) {
        call->out[0] = td_retain(a[0].tensor);
        return TD_OK;
    }
    status = TD_APPLY(&noise, dropout_noise, a[0], a[1], a[3]);
    if (status == TD_OK && call->inplace) {
        status = TD_APPLY_INPLACE(mul, a[0], TD_T(noise));
        if (status == TD_OK)
            call->out[0] = td_retain(a[0].tensor);
    } else if (status == TD_OK) {
        status = TD_APPLY(&call->out[0], mul, a[0], TD_T(noise));
    }
    td_release(noise);
    return status;
}

TD_OPERATOR(rand) = {
    .schema = "(int[] size, *, dtype? dtype=nil, device? device=nil, "
              "generator? generator=nil) -> Tensor",
    .doc = "Uniform numbers in [0, 1).",
    .rule = rule_size,
    .kernel = kernel_rand,
    .flags = TD_OP_FUNCTION_ONLY | TD_OP_NONDIFF | TD_OP_RANDOM,
};
TD_OPERATOR(randn) = {
    .schema = "(int[] size, *, dtype? dtype=nil, device? device=nil, "
              "generator? generator=nil) -> Tensor",
    .doc = "Normal numbers with mean 0 and variance 1.",
    .rule = rule_size,
    .kernel = kernel_randn,
    .flags = TD_OP_FUNCTION_ONLY | TD_OP_NONDIFF | TD_OP_RANDOM,
};
TD_OPERATOR(rand_like) = {
    .schema = "(Tensor x, *, dtype? dtype=nil, device? device=nil, "
              "generator? generator=nil) -> Tensor",
    .doc = "Uniform numbers in [0, 1), as many as x has, on x's device.",
    .rule = rule_like,
    .kernel = kernel_rand,
    .flags = TD_OP_FUNCTION_ONLY | TD_OP_NONDIFF | TD_OP_RANDOM,
};
TD_OPERATOR(randn_like) = {
    .schema = "(Tensor x, *, dtype? dtype=nil, device? device=nil, "
              "generator? generator=nil) -> Tensor",
    .doc = "Normal numbers, as many as x has, on x's device.",
    .rule = rule_like,
    .kernel = kernel_randn,
    .flags = TD_OP_FUNCTION_ONLY | TD_OP_NONDIFF | TD_OP_RANDOM,
};
TD_OPERATOR(randint) = {
    .schema = "(int low, int high, int[] size, *, dtype? dtype=nil, device? device=nil, "
              "generator? generator=nil) -> Tensor",
    .doc = "Integers from low on, below high.",
    .rule = rule_randint,
    .kernel = kernel_randint,
    .flags = TD_OP_FUNCTION_ONLY | TD_OP_NONDIFF | TD_OP_RANDOM,
};
TD_OPERATOR(randperm) = {
    .schema = "(int n, *, device? device=nil, generator? generator=nil) -> index Tensor",
    .doc = "The numbers from 1 to n in random order.",
    .rule = rule_randperm,
    .kernel = kernel_randperm,
    .flags = TD_OP_FUNCTION_ONLY | TD_OP_NONDIFF | TD_OP_RANDOM,
};
TD_OPERATOR(uniform_) = {
    .schema = "(Tensor x, float from=0, float to=1, *, generator? generator=nil) -> Tensor",
    .doc = "Fill x with uniform numbers in [from, to).",
    .run = run_uniform_,
    .flags = TD_OP_INPLACE_ONLY | TD_OP_METHOD_ONLY | TD_OP_NONDIFF | TD_OP_RANDOM,
};
TD_OPERATOR(normal_) = {
    .schema = "(Tensor x, float mean=0, float std=1, *, generator? generator=nil) -> Tensor",
    .doc = "Fill x with normal numbers.",
    .run = run_normal_,
    .flags = TD_OP_INPLACE_ONLY | TD_OP_METHOD_ONLY | TD_OP_NONDIFF | TD_OP_RANDOM,
};
TD_OPERATOR(bernoulli_) = {
    .schema = "(Tensor x, float p=0.5, *, generator? generator=nil) -> Tensor",
    .doc = "Fill x with ones, each with probability p, and zeros.",
    .run = run_bernoulli_,
    .flags = TD_OP_INPLACE_ONLY | TD_OP_METHOD_ONLY | TD_OP_NONDIFF | TD_OP_RANDOM,
};
TD_OPERATOR(bernoulli) = {
    .schema = "(Tensor x, *, generator? generator=nil) -> Tensor",
    .doc = "Ones with the probabilities that x holds, and zeros.",
    .run = run_bernoulli,
    .flags = TD_OP_NONDIFF | TD_OP_RANDOM,
};
TD_OPERATOR(dropout_noise) = {
    .schema = "(Tensor x, float p, *, generator? generator=nil) -> Tensor",
    .doc = "What dropout multiplies by: 0 with probability p, else 1 / (1 - p).",
    .rule = rule_noise,
    .kernel = kernel_noise,
    .flags = TD_OP_NONDIFF | TD_OP_RANDOM | TD_OP_INTERNAL,
};
TD_OPERATOR(dropout) = {
    .schema = "(Tensor x, float p=0.5, bool training=true, *, "
              "generator? generator=nil) -> Tensor",
    .doc = "In training, zero each element with probability p and divide the others by 1 - p.",
    .run = run_dropout,
    .flags = TD_OP_INPLACE | TD_OP_RANDOM,
};

/* make_like.c: more ways to make tensors: new_zeros and its kin, of another tensor's dtype and
 * device; empty_strided; logspace and vander; and the windows of signal processing. */
#include "engine/core/modes.h"
#include "engine/ops/element_checks.h"
#include "engine/ops/make/copy.h"
#include "engine/ops/pointwise/pointwise.h"
#include "engine/ops/rule_helpers.h"

#include <math.h>

#define TD_FAMILY "make_like"

/* ---- given strides ---- */

/* Elements from the first to the last; -1 where int64 can't count them. */
static int64_t extent_of(td_value size, td_value stride) {
    int64_t extent = 1, step;
    for (int d = 0; d < size.n; d++) {
        if (size.ints[d] == 0)
            return 0;
        if (__builtin_mul_overflow(size.ints[d] - 1, stride.ints[d], &step) ||
            __builtin_add_overflow(extent, step, &extent))
            return -1;
    }
    return extent;
}

static td_status run_empty_strided(td_call *call) {
    td_value size = call->args[0], stride = call->args[1];
    td_tensor *room = NULL;
    td_meta meta = {.device = call->device};
    td_status status = td_creation_meta(size, call->args[2], call->args[3], &meta);
    if (status)
        return status;
    if (size.n != stride.n)
        return td_fail(TD_ESHAPE, "%d sizes and %d strides given", size.n, stride.n);
    for (int d = 0; d < size.n; d++)
        if (stride.ints[d] < 0)
            return td_fail(TD_ESHAPE, "strides must not be negative, got %lld",
                           (long long)stride.ints[d]);
    const int64_t extent = extent_of(size, stride);
    if (extent < 0)
        return td_fail(TD_ENOMEM, "out of memory: the strides reach too far");
    status = td_tensor_empty(meta.dtype, meta.device, 1, &extent, &room);
    if (status == TD_OK)
        status = td_tensor_view(room, size.n, size.ints, stride.ints, 0, &call->out[0]);
    td_release(room);
    return status;
}

/* ---- windows ---- */

/* Weights of places 0, 1, ..., n - 1, and what they are made of. */
typedef struct window {
    td_status (*weigh)(const struct window *w, td_tensor **places); /* n > 1 */
    bool in_double;
    double numbers[3];
    int64_t n;
} window;

/* The weights of places [begin, end). */
static td_status weights_of(const window *w, int64_t begin, int64_t end, td_dtype dtype,
                            td_device device, td_tensor **out) {
    td_dtype wide = w->in_double ? TD_F64 : td_dtype_compute(dtype);
    td_status status =
        TD_APPLY(out, arange, TD_I(begin), TD_I(end), TD_I(1), TD_DTYPE(wide), TD_DEVICE(device));
    if (status)
        return status;
    if (w->n > 1)
        return w->weigh(w, out);
    TD_STEP(out, add, TD_T(*out), TD_I(1));
done:
    return status;
}

/* Piece by piece, which stay in a cache; on other devices at once. */
static td_status make_window(td_call *call, window *w) {
    enum { PIECE = 32 * 1024 };
    const td_value *a = call->args, *wanted = &a[call->op->nparams - 2];
    td_dtype dtype = td_is_nil(*wanted) ? td_default_dtype() : wanted->dtype;
    int64_t length = a[0].i, each = call->device.type == TD_CPU ? PIECE : length;
    td_tensor *piece = NULL, *place = NULL;
    td_status status = td_check_float(dtype);
    if (status)
        return status;
    if (length < 0)
        return td_fail(TD_EVALUE, "window_length must not be negative, got %lld",
                       (long long)length);
    TD_TRY(td_tensor_empty(dtype, call->device, 1, &length, &call->out[0]));
    /* A periodic one is a symmetric one without its last place; what there is room for is not the
     * last number that there is. */
    w->n = a[1].b && length > 1 ? length + 1 : length;
    for (int64_t k = 0; k < length; k += each) {
        int64_t end = length - k < each ? length : k + each;
        TD_TRY(weights_of(w, k, end, dtype, call->device, &piece));
        TD_TRY(TD_APPLY(&place, narrow, TD_T(call->out[0]), TD_I(0), TD_I(k), TD_I(end - k)));
        TD_TRY(td_copy_into(place, piece));
        td_release(piece);
        td_release(place);
        piece = place = NULL;
    }
done:
    td_release(piece);
    td_release(place);
    return status;
}

/* The sum of numbers[k] cos(2 pi k t / (n - 1)). */
static td_status weigh_cosines(const window *w, td_tensor **places) {
    double turn = 6.283185307179586 / (double)(w->n - 1);
    td_tensor *t = *places, *term = NULL;
    td_status status = TD_APPLY(places, cosine_term, TD_T(t), TD_F(w->numbers[0]),
                                TD_F(w->numbers[1]), TD_F(turn));
    if (status == TD_OK && w->numbers[2] != 0) {
        status =
            TD_APPLY(&term, cosine_term, TD_T(t), TD_F(0), TD_F(w->numbers[2]), TD_F(2 * turn));
        if (status == TD_OK)
            status = TD_APPLY_INPLACE(add, TD_T(*places), TD_T(term));
    }
    td_release(term);
    td_release(t);
    return status;
}

static td_status run_hann(td_call *call) {
    return make_window(call, &(window){.weigh = weigh_cosines, .numbers = {0.5, -0.5}});
}
static td_status run_hamming(td_call *call) {
    const td_value *a = call->args;
    return make_window(call, &(window){.weigh = weigh_cosines, .numbers = {a[2].f, -a[3].f}});
}
static td_status run_blackman(td_call *call) {
    return make_window(call, &(window){.weigh = weigh_cosines, .numbers = {0.42, -0.5, 0.08}});
}

/* 1 - |2 t / (n - 1) - 1| */
static td_status weigh_tent(const window *w, td_tensor **places) {
    td_status status = TD_OK;
    TD_STEP(places, tent, TD_T(*places), TD_F(2 / (double)(w->n - 1)));
done:
    return status;
}
static td_status run_bartlett(td_call *call) {
    return make_window(call, &(window){.weigh = weigh_tent});
}

/* *x becomes exp(-shift) I0(x). */
static td_status scaled_bessel(td_tensor **x, double shift) {
    td_tensor *scaled = NULL;
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(&scaled, i0e, TD_T(*x)));
    TD_STEP(x, sub, TD_T(*x), TD_F(shift));
    TD_STEP(x, exp, TD_T(*x));
    TD_STEP(x, mul, TD_T(*x), TD_T(scaled));
done:
    td_release(scaled);
    return status;
}

/* I0(beta sqrt(1 - u^2)) / I0(beta), u from -1 to 1; both scaled, so that neither overflows. */
static td_status weigh_bessel(const window *w, td_tensor **places) {
    double beta = w->numbers[0];
    td_tensor *whole = NULL;
    td_status status = TD_OK;
    TD_STEP(places, mul, TD_T(*places), TD_F(2 / (double)(w->n - 1)));
    TD_STEP(places, sub, TD_T(*places), TD_I(1));
    TD_STEP(places, square, TD_T(*places));
    TD_STEP(places, neg, TD_T(*places));
    TD_STEP(places, add, TD_T(*places), TD_I(1));
    TD_STEP(places, relu, TD_T(*places)); /* rounding may leave less than 0 at the end */
    TD_STEP(places, sqrt, TD_T(*places));
    TD_STEP(places, mul, TD_T(*places), TD_F(beta));
    TD_TRY(scaled_bessel(places, beta));
    TD_TRY(TD_APPLY(&whole, full, TD_INTS(1, (int64_t[]){1}), TD_F(beta), TD_DTYPE(TD_F64),
                    TD_DEVICE(td_tensor_device(*places))));
    TD_TRY(scaled_bessel(&whole, beta));
    TD_STEP(places, div, TD_T(*places), TD_T(whole));
done:
    td_release(whole);
    return status;
}
static td_status run_kaiser(td_call *call) {
    double beta = fabs(call->args[2].f);
    if (!(beta <= 1e4))
        return td_fail(TD_EVALUE, "beta must lie between -10000 and 10000, got %g",
                       call->args[2].f);
    return make_window(call,
                       &(window){.weigh = weigh_bessel, .in_double = true, .numbers = {beta}});
}

/* ---- powers ---- */

/* A bound: a number, or a tensor of one; of a result of integers without its fraction. */
static td_status read_bound(td_value v, td_dtype dtype, td_value *bound) {
    double number = v.kind == TD_KIND_TENSOR ? 0 : td_arg_double(v);
    td_status status = TD_OK;
    if (v.kind == TD_KIND_TENSOR && v.tensor->ndim)
        return td_fail(TD_ESHAPE, "start and end must be numbers or tensors of 0 dims");
    if (v.kind == TD_KIND_TENSOR && td_may_look(v.tensor))
        status = td_tensor_item(v.tensor, &number);
    *bound = TD_F(td_dtype_is_float(dtype) ? number : trunc(number));
    return status;
}

static td_status run_logspace(td_call *call) {
    const td_value *a = call->args;
    td_dtype dtype = td_is_nil(a[4]) ? td_default_dtype() : a[4].dtype;
    td_value bounds[2];
    td_tensor *y = NULL;
    td_status status = TD_OK;
    TD_TRY(read_bound(a[0], dtype, &bounds[0]));
    TD_TRY(read_bound(a[1], dtype, &bounds[1]));
    TD_TRY(TD_APPLY(&y, linspace, bounds[0], bounds[1], a[2], TD_DTYPE(TD_F64),
                    TD_DEVICE(call->device)));
    TD_STEP(&y, pow, TD_F(td_arg_double(a[3])), TD_T(y));
    TD_TRY(TD_APPLY(&call->out[0], to, TD_T(y), TD_DTYPE(dtype)));
done:
    td_release(y);
    return status;
}

static td_status run_vander(td_call *call) {
    const td_value *a = call->args;
    td_tensor *x = a[0].tensor, *powers = NULL;
    const int64_t last = 1;
    td_status status = td_check_ndim(x, "x", 1);
    if (status)
        return status;
    int64_t n = td_is_nil(a[1]) ? x->sizes[0] : a[1].i;
    if (n < 0)
        return td_fail(TD_EVALUE, "N must not be negative, got %lld", (long long)n);
    td_value dtype = TD_DTYPE(td_dtype_is_float((td_dtype)x->dtype) ? (td_dtype)x->dtype : TD_I64);
    TD_TRY(TD_APPLY(&powers, to, TD_T(x), dtype));
    TD_STEP(&powers, powers_of, TD_T(powers), TD_I(n));
    if (!a[2].b)
        TD_STEP(&powers, flip, TD_T(powers), TD_INTS(1, &last));
    call->out[0] = td_retain(powers);
done:
    td_release(powers);
    return status;
}

/* ---- the table ---- */

#define OPTIONS "*, dtype? dtype=nil, device? device=nil) -> Tensor"
#define OF_X    "dtype=if(dtype == nil, x.dtype, dtype), device=if(device == nil, x.device, device))"
#define NEW     .flags = TD_OP_METHOD_ONLY | TD_OP_NONDIFF | TD_OP_CREATES

TD_OPERATOR(new_empty) = {
    .schema = "(Tensor x, int[] size, " OPTIONS,
    .doc = "Uninitialised elements in a shape, of x's dtype and device.",
    .formula = "empty(size, " OF_X,
    NEW,
};
TD_OPERATOR(new_zeros) = {
    .schema = "(Tensor x, int[] size, " OPTIONS,
    .doc = "Zeros in a shape, of x's dtype and device.",
    .formula = "zeros(size, " OF_X,
    NEW,
};
TD_OPERATOR(new_ones) = {
    .schema = "(Tensor x, int[] size, " OPTIONS,
    .doc = "Ones in a shape, of x's dtype and device.",
    .formula = "ones(size, " OF_X,
    NEW,
};
TD_OPERATOR(new_full) = {
    .schema = "(Tensor x, int[] size, number|bool value, " OPTIONS,
    .doc = "One value everywhere in a shape, of x's dtype and device.",
    .formula = "full(size, value, " OF_X,
    NEW,
};
/* What x holds matters where its gradient, which is 0, is recorded. */
static td_status run_fill(td_call *call) {
    td_tensor *y = NULL;
    td_status status = TD_OK;
    if (td_op_records(call->args[0].tensor))
        TD_TRY(TD_APPLY(&y, clone, call->args[0]));
    else
        TD_TRY(TD_APPLY(&y, empty_like, call->args[0]));
    TD_TRY(TD_APPLY_INPLACE(fill_, TD_T(y), call->args[1]));
    call->out[0] = td_retain(y);
done:
    td_release(y);
    return status;
}
TD_OPERATOR(fill) = {
    .schema = "(Tensor x, Tensor|number value) -> Tensor",
    .doc = "One value everywhere in x's shape and dtype.",
    .shapes = "x (...), value () -> (...)",
    .run = run_fill,
    .flags = TD_OP_FUNCTION_ONLY,
};
static td_status answer(td_call *call, bool value) {
    td_value x = call->args[0], of_bools = TD_DTYPE(TD_BOOL);
    return value ? TD_APPLY(&call->out[0], ones_like, x, of_bools)
                 : TD_APPLY(&call->out[0], zeros_like, x, of_bools);
}
static td_status run_each_element(td_call *call) {
    return answer(call, true);
}
static td_status run_no_element(td_call *call) {
    return answer(call, false);
}
#define ANSWER .flags = TD_OP_OUT | TD_OP_NONDIFF | TD_OP_INTERNAL
TD_OPERATOR(each_element) = {
    .schema = "(Tensor x) -> Tensor",
    .doc = "True for all of x, whatever it holds.",
    .run = run_each_element,
    ANSWER,
};
TD_OPERATOR(no_element) = {
    .schema = "(Tensor x) -> Tensor",
    .doc = "False for all of x, whatever it holds.",
    .run = run_no_element,
    ANSWER,
};
TD_OPERATOR(below_zero) = {
    .schema = "(Tensor x) -> Tensor",
    .doc = "Which of x are less than 0.",
    .formula = "lt(x, 0)",
    ANSWER,
};
TD_OPERATOR(new_empty_strided) = {
    .schema = "(Tensor x, int[] size, int[] stride, " OPTIONS,
    .doc = "Uninitialised elements in a shape with given strides, of x's dtype and device.",
    .formula = "empty_strided(size, stride, " OF_X,
    NEW,
};
#define CREATION .flags = TD_OP_FUNCTION_ONLY | TD_OP_NONDIFF
TD_OPERATOR(empty_strided) = {
    .schema = "(int[] size, int[] stride, " OPTIONS,
    .doc = "Uninitialised elements in a shape with given strides.",
    .run = run_empty_strided,
    CREATION,
};
static td_status run_scalar_tensor(td_call *call) {
    td_value dtype = call->args[1];
    return TD_APPLY(&call->out[0], full, TD_INTS(0, &(int64_t){0}), call->args[0],
                    td_is_nil(dtype) ? TD_DTYPE(td_default_dtype()) : dtype, call->args[2]);
}
TD_OPERATOR(scalar_tensor) = {
    .schema = "(number|bool value, " OPTIONS,
    .doc = "A tensor without dims, of the default dtype.",
    .shapes = "-> ()",
    .run = run_scalar_tensor,
    CREATION,
};
TD_OPERATOR(logspace) = {
    .schema = "(Tensor|number start, Tensor|number end, int steps, number base=10, " OPTIONS,
    .doc = "So many powers of a base, their exponents evenly spaced from start to end.",
    .shapes = "start (), end () -> (steps)",
    .run = run_logspace,
    .flags = TD_OP_FUNCTION_ONLY | TD_OP_NONDIFF | TD_OP_OUT,
};
TD_OPERATOR(vander) = {
    .schema = "(Tensor x, int? N=nil, bool increasing=false) -> Tensor",
    .doc = "N powers of the elements of a vector, one row each, the highest first.",
    .shapes = "x (n) -> (n, n if N == nil else N)",
    .takes = "any; integers and bool count as int64",
    .run = run_vander,
};
#define WINDOW(more) "(int window_length, bool periodic=true, " more OPTIONS
TD_OPERATOR(hann_window) = {
    .schema = WINDOW(""),
    .doc = "Half of 1 - cos over one turn.",
    .shapes = "-> (window_length)",
    .run = run_hann,
    CREATION,
};
TD_OPERATOR(hamming_window) = {
    .schema = WINDOW("float alpha=0.54, float beta=0.46, "),
    .doc = "alpha - beta cos over one turn.",
    .shapes = "-> (window_length)",
    .run = run_hamming,
    CREATION,
};
TD_OPERATOR(blackman_window) = {
    .schema = WINDOW(""),
    .doc = "0.42 - 0.5 cos + 0.08 cos of twice the angle, over one turn.",
    .shapes = "-> (window_length)",
    .run = run_blackman,
    CREATION,
};
TD_OPERATOR(cosine_term) = {
    .schema = "(Tensor x, number base, number weight, number scale) -> Tensor",
    .doc = "base + weight cos(scale x).",
    .pointwise = &(const td_pointwise){.type = TD_PW_FLOATS,
                                       .primitive = -1,
                                       .formula = "cos(x * scale) * weight + base"},
    .dtypes = TD_DTYPES_FLOATS,
    .flags = TD_OP_INTERNAL | TD_OP_NONDIFF,
};
TD_OPERATOR(tent) = {
    .schema = "(Tensor x, number scale) -> Tensor",
    .doc = "1 - |scale x - 1|.",
    .pointwise = &(const td_pointwise){.type = TD_PW_FLOATS,
                                       .primitive = -1,
                                       .formula = "1 - abs(x * scale - 1)"},
    .dtypes = TD_DTYPES_FLOATS,
    .flags = TD_OP_INTERNAL | TD_OP_NONDIFF,
};
TD_OPERATOR(bartlett_window) = {
    .schema = WINDOW(""),
    .doc = "A triangle from 0 to 1 and back.",
    .shapes = "-> (window_length)",
    .run = run_bartlett,
    CREATION,
};
TD_OPERATOR(kaiser_window) = {
    .schema = WINDOW("float beta=12, "),
    .doc = "Bessel's function I0 over half a circle, the narrower the larger beta.",
    .shapes = "-> (window_length)",
    .run = run_kaiser,
    CREATION,
};

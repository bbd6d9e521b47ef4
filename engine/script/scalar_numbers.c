/* scalar_numbers.c: arithmetic of graphs: Lua 5.4's, whose manual (3.4.1 to 3.4.4) has the rules.
 */
#include "engine/core/layout.h"
#include "engine/ops/quantized/quantized_tensor.h"
#include "engine/script/scalar_rows.h"

#include <math.h>
#include <string.h>

#define ROW(name) td_status td_scalar_##name(int n, const td_value *args, td_value *out)

static bool are_ints(const td_value *args) {
    return args[0].kind == TD_KIND_INT && args[1].kind == TD_KIND_INT;
}

/* Wrapped as unsigned numbers are. */
static td_value wrapped(uint64_t bits) {
    return TD_I((int64_t)bits);
}

/* A row of two numbers: of ints modulo 2^64, else of floats. */
#define ARITHMETIC(name, operator)                                                                 \
    ROW(name) {                                                                                    \
        (void)n;                                                                                   \
        *out = are_ints(args) ? wrapped((uint64_t)args[0].i operator(uint64_t) args[1].i)          \
                              : TD_F(td_arg_double(args[0]) operator td_arg_double(args[1]));      \
        return TD_OK;                                                                              \
    }
ARITHMETIC(add, +)
ARITHMETIC(sub, -)
ARITHMETIC(mul, *)

/* A row of numbers that are taken for floats. */
#define OF_FLOATS(name, expression)                                                                \
    ROW(name) {                                                                                    \
        (void)n;                                                                                   \
        double a = td_arg_double(args[0]);                                                         \
        *out = TD_F(expression);                                                                   \
        return TD_OK;                                                                              \
    }
#define OF_TWO_FLOATS(name, expression)                                                            \
    ROW(name) {                                                                                    \
        (void)n;                                                                                   \
        double a = td_arg_double(args[0]), b = td_arg_double(args[1]);                             \
        *out = TD_F(expression);                                                                   \
        return TD_OK;                                                                              \
    }
OF_TWO_FLOATS(divide, a / b)
OF_TWO_FLOATS(power, b == 2 ? a * a : pow(a, b))
OF_TWO_FLOATS(atan2, atan2(a, b))
OF_TWO_FLOATS(log_base, b == 2 ? log2(a) : b == 10 ? log10(a) : log(a) / log(b))
OF_FLOATS(sqrt, sqrt(a))
OF_FLOATS(exp, exp(a))
OF_FLOATS(log, log(a))
OF_FLOATS(sin, sin(a))
OF_FLOATS(cos, cos(a))
OF_FLOATS(tan, tan(a))
OF_FLOATS(asin, asin(a))
OF_FLOATS(acos, acos(a))
OF_FLOATS(atan, atan(a))
OF_FLOATS(to_float, a)

/* ---- division ---- */

ROW(floordiv) {
    (void)n;
    if (!are_ints(args)) {
        *out = TD_F(floor(td_arg_double(args[0]) / td_arg_double(args[1])));
        return TD_OK;
    }
    int64_t a = args[0].i, b = args[1].i;
    if (!b)
        return td_fail(TD_EVALUE, "attempt to perform 'n//0'");
    if (b == -1) {
        *out = wrapped(0 - (uint64_t)a);
        return TD_OK;
    }
    *out = TD_I(a / b - ((a ^ b) < 0 && a % b != 0));
    return TD_OK;
}

static double float_remainder(double a, double b) {
    double m = fmod(a, b);
    return (m > 0 ? b < 0 : m < 0 && b > 0) ? m + b : m;
}

ROW(remainder) {
    (void)n;
    if (!are_ints(args)) {
        *out = TD_F(float_remainder(td_arg_double(args[0]), td_arg_double(args[1])));
        return TD_OK;
    }
    int64_t a = args[0].i, b = args[1].i;
    if (!b)
        return td_fail(TD_EVALUE, "attempt to perform 'n%%%%0'");
    int64_t m = b == -1 ? 0 : a % b;
    *out = TD_I(m && (m ^ b) < 0 ? m + b : m);
    return TD_OK;
}

ROW(fmod) {
    (void)n;
    if (!are_ints(args)) {
        *out = TD_F(fmod(td_arg_double(args[0]), td_arg_double(args[1])));
        return TD_OK;
    }
    if (!args[1].i)
        return td_fail(TD_EVALUE, "bad argument #2 to 'fmod' (zero)");
    *out = TD_I(args[1].i == -1 ? 0 : args[0].i % args[1].i);
    return TD_OK;
}

ROW(negate) {
    (void)n;
    *out = args[0].kind == TD_KIND_INT ? wrapped(0 - (uint64_t)args[0].i) : TD_F(-args[0].f);
    return TD_OK;
}

ROW(absolute) {
    (void)n;
    if (args[0].kind == TD_KIND_INT)
        *out = args[0].i < 0 ? wrapped(0 - (uint64_t)args[0].i) : args[0];
    else
        *out = TD_F(fabs(args[0].f));
    return TD_OK;
}

/* ---- order ---- */

/* The bounds of int64 as floats: LOW is one, HIGH the first beyond. */
#define LOW  (-9223372036854775808.0)
#define HIGH 9223372036854775808.0

static bool int_below(int64_t a, double b, bool or_equal) {
    if (b >= HIGH)
        return true;
    if (!(b >= LOW)) /* smaller, or NaN */
        return false;
    return or_equal ? a <= (int64_t)floor(b) : a < (int64_t)ceil(b);
}

static bool float_below(double a, int64_t b, bool or_equal) {
    if (a < LOW)
        return true;
    if (!(a < HIGH)) /* larger, or NaN */
        return false;
    return or_equal ? (int64_t)ceil(a) <= b : (int64_t)floor(a) < b;
}

/* Before, equal, behind: -1, 0, 1, by bytes. */
static int order_of_texts(td_value a, td_value b) {
    int64_t na, nb;
    const char *x = td_value_text(a, &na), *y = td_value_text(b, &nb);
    int order = memcmp(x, y, (size_t)(na < nb ? na : nb));
    return order ? order : (na > nb) - (na < nb);
}

static bool is_text(td_value v) {
    return v.kind == TD_KIND_STRING || v.kind == TD_BOX_STRING;
}

static bool below(td_value a, td_value b, bool or_equal) {
    if (is_text(a))
        return or_equal ? order_of_texts(a, b) <= 0 : order_of_texts(a, b) < 0;
    bool ints[2] = {a.kind == TD_KIND_INT, b.kind == TD_KIND_INT};
    if (ints[0] && ints[1])
        return or_equal ? a.i <= b.i : a.i < b.i;
    if (ints[0])
        return int_below(a.i, b.f, or_equal);
    if (ints[1])
        return float_below(a.f, b.i, or_equal);
    return or_equal ? a.f <= b.f : a.f < b.f;
}

static bool int_equals(int64_t a, double b) {
    return b >= LOW && b < HIGH && (double)(int64_t)b == b && (int64_t)b == a;
}

static bool equals(td_value a, td_value b) {
    if (is_text(a) || is_text(b))
        return is_text(a) && is_text(b) && order_of_texts(a, b) == 0;
    if (a.kind == TD_KIND_INT && b.kind == TD_KIND_FLOAT)
        return int_equals(a.i, b.f);
    if (a.kind == TD_KIND_FLOAT && b.kind == TD_KIND_INT)
        return int_equals(b.i, a.f);
    if (a.kind != b.kind)
        return false;
    return a.kind == TD_KIND_INT                                           ? a.i == b.i
           : a.kind == TD_KIND_FLOAT                                       ? a.f == b.f
           : a.kind == TD_KIND_BOOL                                        ? a.b == b.b
           : a.kind == TD_KIND_DTYPE || a.kind == TD_VALUE_QUANTIZED_DTYPE ? a.dtype == b.dtype
           : a.kind == TD_KIND_DEVICE ? td_device_same(a.device, b.device)
           : a.kind == TD_KIND_NIL    ? true
                                      : a.tensor == b.tensor; /* by identity */
}

#define OF_TRUTH(name, expression)                                                                 \
    ROW(name) {                                                                                    \
        (void)n;                                                                                   \
        *out = TD_B(expression);                                                                   \
        return TD_OK;                                                                              \
    }
OF_TRUTH(equal, equals(args[0], args[1]))
OF_TRUTH(unequal, !equals(args[0], args[1]))
OF_TRUTH(less, below(args[0], args[1], false))
OF_TRUTH(less_equal, below(args[0], args[1], true))
OF_TRUTH(greater, below(args[1], args[0], false))
OF_TRUTH(greater_equal, below(args[1], args[0], true))
OF_TRUTH(same, equals(args[0], args[1]))
OF_TRUTH(other, !equals(args[0], args[1]))
OF_TRUTH(both, args[0].b &&args[1].b)
OF_TRUTH(either, args[0].b || args[1].b)
OF_TRUTH(negation, !args[0].b)
OF_TRUTH(is_int, args[0].kind == TD_KIND_INT)
OF_TRUTH(unsigned_less, (uint64_t)args[0].i < (uint64_t)args[1].i)
OF_TRUTH(to_bool, args[0].kind == TD_KIND_BOOL ? args[0].b : td_arg_double(args[0]) != 0)

ROW(maximum) {
    (void)n;
    *out = below(args[0], args[1], false) ? args[1] : args[0];
    return TD_OK;
}

ROW(minimum) {
    (void)n;
    *out = below(args[1], args[0], false) ? args[1] : args[0];
    return TD_OK;
}

/* ---- bits ---- */

static uint64_t shifted(uint64_t bits, int64_t left) {
    if (left <= -64 || left >= 64)
        return 0;
    return left < 0 ? bits >> -left : bits << left;
}

#define OF_BITS(name, expression)                                                                  \
    ROW(name) {                                                                                    \
        (void)n;                                                                                   \
        *out = wrapped(expression);                                                                \
        return TD_OK;                                                                              \
    }
OF_BITS(bit_and, (uint64_t)args[0].i &(uint64_t)args[1].i)
OF_BITS(bit_or, (uint64_t)args[0].i | (uint64_t)args[1].i)
OF_BITS(bit_xor, (uint64_t)args[0].i ^ (uint64_t)args[1].i)
OF_BITS(bit_not, ~(uint64_t)args[0].i)
OF_BITS(shift_left, shifted((uint64_t)args[0].i, args[1].i))
OF_BITS(shift_right, shifted((uint64_t)args[0].i, args[1].i == INT64_MIN ? INT64_MAX : -args[1].i))

/* ---- ints of others ---- */

/* The int of the same value, if there is one. */
static bool is_whole(double f, int64_t *i) {
    if (!(f >= LOW && f < HIGH) || floor(f) != f)
        return false;
    *i = (int64_t)f;
    return true;
}

static td_status whole(double f, td_value *out) {
    int64_t i;
    if (!is_whole(f, &i))
        return td_fail(TD_EVALUE, "the number %g has no integer representation", f);
    *out = TD_I(i);
    return TD_OK;
}

ROW(to_int) {
    (void)n;
    if (args[0].kind == TD_KIND_FLOAT)
        return whole(args[0].f, out);
    *out = TD_I(args[0].kind == TD_KIND_BOOL ? args[0].b : args[0].i);
    return TD_OK;
}

ROW(floor) {
    return args[0].kind == TD_KIND_FLOAT ? whole(floor(args[0].f), out)
                                         : td_scalar_to_int(n, args, out);
}

ROW(ceil) {
    return args[0].kind == TD_KIND_FLOAT ? whole(ceil(args[0].f), out)
                                         : td_scalar_to_int(n, args, out);
}

ROW(tointeger) {
    (void)n;
    int64_t i = args[0].i;
    bool any = args[0].kind == TD_KIND_INT || is_whole(args[0].f, &i);
    *out = any ? TD_I(i) : TD_NIL;
    return TD_OK;
}

/* ---- tensors of one element ---- */

static td_status read_element(const td_tensor *x, bool whole_number, td_value *out) {
    td_status status;
    if (whole_number) {
        *out = TD_I(0);
        status = td_tensor_item_int(x, &out->i);
    } else {
        *out = TD_F(0);
        status = td_tensor_item(x, &out->f);
    }
    return status;
}

ROW(item) {
    (void)n;
    return read_element(args[0].tensor, !td_dtype_is_float((td_dtype)args[0].tensor->dtype), out);
}

ROW(item_float) {
    (void)n;
    return read_element(args[0].tensor, false, out);
}

ROW(item_int) {
    (void)n;
    if (!td_dtype_is_float((td_dtype)args[0].tensor->dtype))
        return read_element(args[0].tensor, true, out);
    td_status status = read_element(args[0].tensor, false, out);
    return status ? status : whole(trunc(out->f), out);
}

ROW(item_bool) {
    td_status status = td_scalar_item(n, args, out);
    if (status == TD_OK)
        *out = TD_B(td_arg_double(*out) != 0);
    return status;
}

/* ---- what tensors are ---- */

static td_status find_dim(const td_value *args, int *d) {
    return td_wrap_dim(args[1].i, args[0].tensor->ndim, d);
}

static td_status no_dims(void) {
    return td_fail(TD_EINDEX, "a 0-dim tensor has no dims");
}

ROW(size) {
    int d;
    (void)n;
    td_status status = args[0].tensor->ndim ? find_dim(args, &d) : no_dims();
    if (status == TD_OK)
        *out = TD_I(args[0].tensor->sizes[d]);
    return status;
}

ROW(stride) {
    int d;
    (void)n;
    const td_tensor *x = td_strided_of(args[0].tensor);
    if (!x)
        return td_fail(TD_EVALUE, "not for %s tensors: take x:%s() first",
                       td_layout_of(args[0].tensor)->noun, td_layout_of(args[0].tensor)->convert);
    td_status status = x->ndim ? find_dim(args, &d) : no_dims();
    if (status == TD_OK)
        *out = TD_I(x->strides[d]);
    return status;
}

ROW(size_first) {
    (void)n;
    if (!args[0].tensor->ndim)
        return td_fail(TD_ESHAPE, "a 0-dim tensor has no length");
    *out = TD_I(args[0].tensor->sizes[0]);
    return TD_OK;
}

ROW(sizes) {
    (void)n;
    const td_tensor *x = args[0].tensor;
    return td_value_keep(TD_INTS(x->ndim, x->sizes), out);
}

#define OF_TENSOR(name, value)                                                                     \
    ROW(name) {                                                                                    \
        (void)n;                                                                                   \
        const td_tensor *x = args[0].tensor;                                                       \
        *out = value;                                                                              \
        return TD_OK;                                                                              \
    }
OF_TENSOR(ndim, TD_I(x->ndim))
OF_TENSOR(numel, TD_I(x->numel))
OF_TENSOR(dtype, x->layout == TD_QUANTIZED ? TD_QUANTIZED_DTYPE((td_dtype)x->dtype)
                                           : TD_DTYPE((td_dtype)x->dtype))
OF_TENSOR(device, TD_DEVICE(td_device_real(td_tensor_device(x))))
OF_TENSOR(requires_grad, TD_B(x->requires_grad))
OF_TENSOR(is_floating, TD_B(td_dtype_is_float((td_dtype)x->dtype)))
OF_TENSOR(is_quantized, TD_B(x->layout == TD_QUANTIZED))
OF_TENSOR(is_contiguous, TD_B(td_strided_of(x) && td_strided_of(x)->contiguous))

/* ---- quantized tensors ---- */

static td_status find_quantized(const td_tensor *x, bool whole, const char *name,
                                const td_quantized **out) {
    *out = td_quantized_of(x);
    if (!*out)
        return td_fail(TD_ETYPE, "%s: x is %s: a quantized tensor expected", name,
                       td_tensor_dtype_name(x));
    if (whole && (*out)->scales)
        return td_fail(TD_ETYPE, "%s: x is %s, whose parameters stand by channel", name,
                       td_quantized_scheme(*out));
    return TD_OK;
}

#define OF_QUANTIZED(name, whole, value)                                                           \
    ROW(name) {                                                                                    \
        const td_quantized *q;                                                                     \
        (void)n;                                                                                   \
        td_status status = find_quantized(args[0].tensor, whole, #name, &q);                       \
        if (status == TD_OK)                                                                       \
            *out = value;                                                                          \
        return status;                                                                             \
    }
OF_QUANTIZED(q_scale, true, TD_F(q->scale))
OF_QUANTIZED(q_zero_point, true, TD_I(q->zero_point))
OF_QUANTIZED(qscheme, false, TD_STRING(td_quantized_scheme(q)))

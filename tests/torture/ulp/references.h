/* references.h: what the functions of a sweep are worth, in a type wider than theirs. Included by
 * sweep.c with R, the wide type, M(name), its mathematical functions, and FN(name), a name for what
 * is defined here; undefines them. No formula here cancels. */

static R FN(exp)(R x, R y) {
    return (void)y, M(exp)(x);
}
static R FN(exp2)(R x, R y) {
    return (void)y, M(exp2)(x);
}
static R FN(expm1)(R x, R y) {
    return (void)y, M(expm1)(x);
}
static R FN(log)(R x, R y) {
    return (void)y, M(log)(x);
}
static R FN(log2)(R x, R y) {
    return (void)y, M(log2)(x);
}
static R FN(log10)(R x, R y) {
    return (void)y, M(log10)(x);
}
static R FN(log1p)(R x, R y) {
    return (void)y, M(log1p)(x);
}
static R FN(sin)(R x, R y) {
    return (void)y, M(sin)(x);
}
static R FN(cos)(R x, R y) {
    return (void)y, M(cos)(x);
}
static R FN(tan)(R x, R y) {
    return (void)y, M(tan)(x);
}
static R FN(asin)(R x, R y) {
    return (void)y, M(asin)(x);
}
static R FN(acos)(R x, R y) {
    return (void)y, M(acos)(x);
}
static R FN(atan)(R x, R y) {
    return (void)y, M(atan)(x);
}
static R FN(sinh)(R x, R y) {
    return (void)y, M(sinh)(x);
}
static R FN(cosh)(R x, R y) {
    return (void)y, M(cosh)(x);
}
static R FN(tanh)(R x, R y) {
    return (void)y, M(tanh)(x);
}
static R FN(erf)(R x, R y) {
    return (void)y, M(erf)(x);
}
static R FN(erfc)(R x, R y) {
    return (void)y, M(erfc)(x);
}
static R FN(sqrt)(R x, R y) {
    return (void)y, M(sqrt)(x);
}
static R FN(rsqrt)(R x, R y) {
    return (void)y, 1 / M(sqrt)(x);
}
static R FN(reciprocal)(R x, R y) {
    return (void)y, 1 / x;
}
static R FN(pow)(R x, R y) {
    return M(pow)(x, y);
}
static R FN(atan2)(R x, R y) {
    return M(atan2)(x, y);
}
static R FN(fmod)(R x, R y) {
    return M(fmod)(x, y);
}
static R FN(div)(R x, R y) {
    return x / y;
}
static R FN(norm)(R x, R y) {
    return x != x || y != y ? x + y : M(hypot)(x, y);
}

static R FN(sigmoid)(R x, R y) {
    R e = M(exp)(-M(fabs)(x));
    (void)y;
    return x < 0 ? e / (1 + e) : x >= 0 ? 1 / (1 + e) : x;
}
static R FN(silu)(R x, R y) {
    return x < -30000 ? x * 0 : x * FN(sigmoid)(x, y);
}
static R FN(gelu)(R x, R y) { /* far out it is 0, of minus infinity NaN */
    (void)y;
    return x < -1000 ? x * 0 : x * M(erfc)(-x * M(sqrt)((R)0.5)) / 2;
}
static R FN(softplus)(R x, R y) {
    return (void)y, x > 20 ? x : M(log1p)(M(exp)(x));
}
static R FN(elu)(R x, R y) {
    return (void)y, x > 0 ? x : M(expm1)(x);
}

/* of the pair (x, y) */
static R FN(logsumexp)(R x, R y) {
    R high = x > y ? x : y, low = x > y ? y : x;
    return x == y ? x + M(log)(2) : high + M(log1p)(M(exp)(low - high));
}
static R FN(softmax)(R x, R y) {
    return x > 1e400L || y > 1e400L ? (R)NAN : FN(sigmoid)(x - y, 0);
}
static R FN(log_softmax)(R x, R y) {
    R d = x - y;
    if (x > 1e400L || y > 1e400L)
        return (R)NAN;
    return d > 0 ? -M(log1p)(M(exp)(-d)) : d - M(log1p)(M(exp)(d));
}

static R FN(ldexp)(R x, int e) {
    return M(ldexp)(x, e);
}
static int FN(exponent)(R x) {
    return M(ilogb)(x);
}

static R (*const FN(references)[FUNCTIONS])(R x, R y) = {
#define FUNCTION(name, arity, float32, float64, narrow, kind) FN(name),
#include "functions.def"
#undef FUNCTION
};

#undef R
#undef M
#undef FN

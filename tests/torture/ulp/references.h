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
static R FN(asinh)(R x, R y) {
    return (void)y, M(asinh)(x);
}
static R FN(acosh)(R x, R y) {
    return (void)y, M(acosh)(x);
}
static R FN(atanh)(R x, R y) {
    return (void)y, M(atanh)(x);
}
static R FN(lgamma)(R x, R y) {
    return (void)y, M(lgamma)(x);
}
static R FN(hypot)(R x, R y) {
    return M(hypot)(x, y);
}

/* The derivatives of lgamma: climbed up to 40, from there on their series. */
static R FN(pi)(void) {
    return M(acos)((R)-1);
}
static R FN(rest)(R x) { /* of the nearest whole number */
    return x - M(rint)(x);
}
static R FN(digamma)(R x, R y) {
    static const R series[] = {(R)1 / 12,        (R)-1 / 120,      (R)1 / 252, (R)-1 / 240,
                               (R)1 / 132,       (R)-691 / 32760,  (R)1 / 12,  (R)-3617 / 8160,
                               (R)43867 / 14364, (R)-174611 / 6600};
    R sum = 0, power = 1;
    if (x == 0 || (x < 0 && FN(rest)(x) == 0))
        return x == 0 ? -1 / x : (R)NAN;
    if (x < 0)
        return FN(digamma)(1 - x, y) - FN(pi)() / M(tan)(FN(pi)() * FN(rest)(x));
    for (; x < 40; x++)
        sum -= 1 / x;
    for (int k = 0; k < 10; k++) {
        power /= x * x;
        sum -= series[k] * power;
    }
    return M(log)(x) - 1 / (2 * x) + sum;
}
static R FN(trigamma)(R x, R y) {
    static const R bernoulli[] = {(R)1 / 6,       (R)-1 / 30,      (R)1 / 42, (R)-1 / 30,
                                  (R)5 / 66,      (R)-691 / 2730,  (R)7 / 6,  (R)-3617 / 510,
                                  (R)43867 / 798, (R)-174611 / 330};
    R sum = 0, power;
    if (x < 0) {
        R sine = M(sin)(FN(pi)() * FN(rest)(x)) / FN(pi)();
        return 1 / (sine * sine) - FN(trigamma)(1 - x, y);
    }
    for (; x < 40; x++)
        sum += 1 / (x * x);
    power = 1 / x;
    sum += power + power * power / 2;
    for (int k = 0; k < 10; k++) {
        power /= x * x;
        sum += bernoulli[k] * power;
    }
    return sum;
}

/* By Newton's steps in the logarithm of erfc, where they go straight. */
static R FN(erfinv)(R x, R y) {
    R a = x < 0 ? -x : x, r = a, root = M(sqrt)(FN(pi)());
    (void)y;
    if (!(a < 1))
        return a == 1 ? x * (R)INFINITY : (R)NAN;
    for (int k = 0; k < 60; k++) {
        R c = M(erfc)(r), slope = 2 / root * M(exp)(-r * r);
        R step = a < (R)0.5 ? (M(erf)(r) - a) / slope : (M(log)(1 - a) - M(log)(c)) * c / slope;
        r -= step;
        if (step < r * (R)1e-30 && -step < r * (R)1e-30)
            break;
    }
    return x < 0 ? -r : r;
}

/* That of 2 p likewise, by way of what is left of it. */
static R FN(ndtri)(R p, R y) {
    R tail = p < (R)0.5 ? p : 1 - p, rest = 2 * tail, r, root = M(sqrt)(FN(pi)());
    (void)y;
    if (!(tail > 0))
        return tail == 0 ? (p - (R)0.5) * (R)INFINITY : (R)NAN;
    r = rest > (R)0.5 ? 1 - rest : M(sqrt)(-M(log)(rest));
    for (int k = 0; k < 60; k++) {
        R c = M(erfc)(r), slope = 2 / root * M(exp)(-r * r);
        R step = rest > (R)0.5 ? (M(erf)(r) - (1 - rest)) / slope : M(log)(rest / c) * c / slope;
        r -= step;
        if (step < r * (R)1e-30 && -step < r * (R)1e-30)
            break;
    }
    return (p < (R)0.5 ? -r : r) * M(sqrt)(2);
}

/* exp(x^2) erfc(x); far out the asymptotic series. */
static R FN(erfcx)(R x, R y) {
    R sum = 1, term = 1;
    if (x < 0)
        return 2 * M(exp)(x * x) - FN(erfcx)(-x, y);
    if (!(x > 26))
        return M(exp)(x * x) * M(erfc)(x);
    for (int k = 1; k < 80 && M(fabs)(term) > (R)1e-36; k++)
        sum += term *= -(R)(2 * k - 1) / (2 * x * x);
    return sum / (x * M(sqrt)(FN(pi)()));
}

/* Bessel's functions of a >= 0: a series of positive terms, beyond 40 the asymptotic one. */
static R FN(bessel)(R a, int order, bool scaled) {
    R sum = 1, term = 1;
    if (a != a || (a > 100000 && !scaled))
        return a != a ? a : (R)INFINITY;
    if (a <= 40) {
        for (int k = 1; k < 200 && term > sum * (R)1e-36; k++)
            sum += term *= a * a / 4 / ((R)k * (k + order));
        return (order ? sum * a / 2 : sum) * (scaled ? M(exp)(-a) : 1);
    }
    for (int k = 1; k < 80 && M(fabs)(term) > (R)1e-36; k++)
        sum += term *= (R)((2 * k - 1) * (2 * k - 1) - 4 * order) / (8 * k * a);
    sum /= M(sqrt)(2 * FN(pi)()) * M(sqrt)(a);
    return scaled ? sum : sum * M(exp)(a / 2) * M(exp)(a / 2);
}
static R FN(i0)(R x, R y) {
    return (void)y, FN(bessel)(M(fabs)(x), 0, false);
}
static R FN(i0e)(R x, R y) {
    return (void)y, FN(bessel)(M(fabs)(x), 0, true);
}
static R FN(i1)(R x, R y) {
    return (void)y, M(copysign)(FN(bessel)(M(fabs)(x), 1, false), x);
}
static R FN(i1e)(R x, R y) {
    return (void)y, M(copysign)(FN(bessel)(M(fabs)(x), 1, true), x);
}
static R FN(logaddexp)(R x, R y) {
    R high = x > y ? x : y, low = x > y ? y : x;
    return x != x || y != y ? x + y : x == y ? x + M(log)(2) : high + M(log1p)(M(exp)(low - high));
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

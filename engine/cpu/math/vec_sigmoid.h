/* vec_sigmoid.h: the logistic function. Included once per floating type by vec_math.h, with these
 * defined; undefines them:
 *   P, T, V, M, I   prefix of the vector's functions, element, vector, mask, integer of its size
 *   DIGITS   bits of the format's mantissa
 *   LN2_HIGH, LN2_LOW   ln 2 in two parts, the first short enough that multiples of it are exact
 *   TAYLOR   1 / k! from k = 2, as many as exp needs within ln 2 / 2 of 0
 *   BIAS   what stands for 0 in its exponent
 *   POWER   of a result's exponent: its type
 *   LOWEST   exp(x) times any x is 0 below it
 *   LEAST   where there is exp_two: down to it exp(-x) is finite and results have all their digits
 */
#define CAT2(a, b) a##_##b
#define CAT1(a, b) CAT2(a, b)
#define OF(name)   CAT1(P, name)

#ifdef TAYLOR
/* exp(x - less) = (high + low) * 2^n for LOWEST <= x <= 0, right to some six bits more than the
 * type has; 1/sqrt(2) <= high <= sqrt(2). `less` is small beside the last place of x. */
static inline V OF(exp_parts)(V x, V less, V *low, M *n) {
    static const T taylor[] = TAYLOR;
    enum { TERMS = (int)(sizeof taylor / sizeof *taylor) };
    const T round = (T)(3ull << (DIGITS - 1)); /* adding it leaves an integer in the low bits */
    V shifted = OF(fma)(x, (V){0} + (T)1.4426950408889634, (V){0} + round), whole = shifted - round;
    V r = x - whole * LN2_HIGH, lower = whole * LN2_LOW + less;
    V near = r - lower, rest = (r - near) - lower;
    V sum = taylor[TERMS - 1] + (V){0};
    for (int k = TERMS - 2; k >= 0; k--)
        sum = OF(fma)(sum, near, taylor[k] + (V){0});
    V one = near + 1, more = (near - (one - 1)) + OF(fma)(sum, near * near, rest),
      high = one + more;
    *low = more - (high - one);
    *n = (M)shifted - (M)(round + (V){0});
    return high;
}

/* 2^n for normal results. */
static inline V OF(power_of_two)(M n) {
    return (V)((n + (I)BIAS) << DIGITS);
}

/* x * 2^n, where the result may be subnormal in two steps, of which the second alone rounds. */
static inline V OF(scaled)(V x, M n) {
    M half = n >> 1;
    if (__builtin_expect(!OF(any)((M)(n < -(I)(BIAS - DIGITS))), 1))
        return x * OF(power_of_two)(n);
    return x * OF(power_of_two)(half) * OF(power_of_two)(n - half);
}
/* Where x is about 1 and what is far below 1 does not count. */
static inline V OF(scaled_beside_1)(V x, M n) {
    M floor = n < -(I)(DIGITS + 12);
    return x * OF(power_of_two)((floor & -(I)(DIGITS + 12)) | (~floor & n));
}
#endif

/* 1 / (1 + exp(-x)) = (high + *low) * 2^n, low being at most an ulp or so of high. For negative x
 * this is exp(x) / (1 + exp(x)), so nothing cancels at either end. */
static inline V OF(sigmoid_parts)(V x, V *low, POWER *n) {
    V e2, e1 = OF(exp_parts)(OF(at_least)(-OF(abs)(x), (T)LOWEST), (V){0}, &e2, n);
    M negative = (M)(x < 0);
    V e = OF(scaled_beside_1)(e1, *n), below = e + 1;
    V below2 = (e - (below - 1)) + OF(scaled_beside_1)(e2, *n);
    V above = OF(select)(negative, e1, (V){0} + 1), above2 = OF(select)(negative, e2, (V){0});
    V inverse = 1 / below, high = above * inverse, rest, product = OF(product)(high, below, &rest);
    *low = (((above - product) - rest) + (above2 - high * below2)) * inverse;
    *n = (POWER)((M)*n & negative);
    return high;
}

static inline V OF(sigmoid_of)(V x) {
    POWER n;
    V low, high = OF(sigmoid_parts)(x, &low, &n);
    return OF(scaled)(high + low, n);
}

#ifdef LEAST
/* 1 / (1 + exp(-x)) = y + y * *more for x from LEAST on. The sum of 1 and exp(-x) is as good as two
 * numbers, of which the second, and what the division leaves, are made up for by the first term of
 * a series. */
static inline V OF(sigmoid_and_more)(V x, V *more) {
    V e_low, e = OF(exp_two)(-OF(at_most)(x, (T) - (LEAST)), &e_low);
    V sum = 1 + e, other = sum - 1, lost = (1 - (sum - other)) + (e - other);
    V y = 1 / sum;
    *more = OF(fma)(-(lost + e_low), y, OF(fma)(-sum, y, (V){0} + 1));
    return y;
}

/* Below that, 1 is nothing. */
static __attribute__((noinline, cold)) V OF(sigmoid_ends)(V r, V x) {
    return OF(select)((M)(x < (T)LEAST), OF(exp)(x), r);
}
static inline V OF(sigmoid_wide)(V x) {
    V more, y = OF(sigmoid_and_more)(x, &more), r = OF(fma)(y, more, y);
    bool far = OF(any)((M)(x < (T)LEAST));
    return __builtin_expect(far, 0) ? OF(sigmoid_ends)(r, x) : r;
}
#endif

#undef CAT2
#undef CAT1
#undef OF
#undef P
#undef T
#undef V
#undef M
#undef I
#undef DIGITS
#undef BIAS
#undef LN2_HIGH
#undef LN2_LOW
#undef TAYLOR
#undef LOWEST
#undef LEAST
#undef POWER

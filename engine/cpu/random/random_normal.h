/* random_normal.h: normal numbers of one floating type by Box and Muller's way (1958). Included by
 * random_kernels.c with these defined; undefines them:
 *   P, T, V, M     a name for the type, and prefix of its vector's functions; element, vector, mask
 *   N              lanes
 *   DIGITS, BIAS   of the format: bits of the mantissa, and of the exponent what stands for 0
 *   ROOT_HALF      the bits of sqrt(1/2)
 *   LOG_TERMS, ANGLE_TERMS   of the series below
 *   WORDS          of random bits that a uniform number takes
 *   UNIFORM(w)     the number in [0, 1) of the words at w
 *
 * A seed gives the same bits on every instruction set, so there is nothing here but what IEEE 754
 * rounds in one way: + - * / and the square root, lane by lane, and no library. The logarithm's and
 * the angle's series are those of atanh, sine and cosine, near enough to 0 to end soon.
 */
#define CAT2(a, b) a##_##b
#define CAT1(a, b) CAT2(a, b)
#define OF(name)   CAT1(P, name)

/* The logarithm of 0 < x <= 1: x = 2^e m, sqrt(1/2) <= m < sqrt(2), log m = 2 atanh((m-1)/(m+1)).
 */
static inline V OF(log_below_one)(V x) {
    const M one = (M)((V){0} + 1), half = (M){0} + ROOT_HALF;
    M bits = (M)x + (one - half), mantissa = (M){0} + (((__typeof__(ROOT_HALF))1 << DIGITS) - 1);
    V shift = (V){0} + (T)(1ull << DIGITS);
    V e = ((V)((bits >> DIGITS) | (M)shift) - shift) - (T)BIAS;
    V m = (V)((bits & mantissa) + half);
    V s = (m - 1) / (m + 1), square = s * s, sum = (V){0} + 1 / (T)(2 * LOG_TERMS + 1);
    for (int k = LOG_TERMS - 1; k >= 0; k--)
        sum = sum * square + 1 / (T)(2 * k + 1);
    return e * (T)0.69314718055994531 + 2 * s * sum;
}

/* Cosine and sine of v turns, 0 <= v < 1: to the nearest quarter exactly, the rest by series. */
static inline V OF(turn)(V v, V *sine) {
    V shift = (V){0} + (T)(3ull << (DIGITS - 1)), shifted = v * 4 + shift;
    M quarter = (M)shifted - (M)shift, odd = -(quarter & 1);
    V a = (v * 4 - (shifted - shift)) * (T)1.5707963267948966, square = a * a;
    V s = (V){0} + 1, c = s;
    for (int k = 2 * ANGLE_TERMS; k >= 2; k -= 2) {
        s = 1 - s * square / (T)(k * (k + 1));
        c = 1 - c * square / (T)(k * (k - 1));
    }
    s *= a;
    *sine = OF(select)(odd, c, s);
    V cosine = OF(select)(odd, s, c);
    *sine = OF(select)(-((quarter >> 1) & 1), -*sine, *sine);
    return OF(select)(-(((quarter + 1) >> 1) & 1), -cosine, cosine);
}

/* Pairs of numbers from pairs of uniform ones. The logarithm takes 1 - u, which is never 0. */
static void OF(normal)(T *out, const uint32_t *words, int n, T mean, T std) {
    T u[N], v[N];
    for (int k = 0; k < n; k += 2 * N) {
        int pairs = (n - k) / 2 < N ? (n - k) / 2 : N;
        const uint32_t *w = words + WORDS * k;
        for (int l = 0; l < N; l++) {
            u[l] = l < pairs ? 1 - UNIFORM(w + 2 * WORDS * l) : 1;
            v[l] = l < pairs ? UNIFORM(w + 2 * WORDS * l + WORDS) : 0;
        }
        V sine, radius = OF(sqrt)(OF(log_below_one)(OF(load)(u)) * -2) * std;
        V cosine = OF(turn)(OF(load)(v), &sine);
        OF(store)(u, radius * cosine + mean);
        OF(store)(v, radius * sine + mean);
        for (int l = 0; l < pairs; l++) {
            out[k + 2 * l] = u[l];
            out[k + 2 * l + 1] = v[l];
        }
    }
}

#undef CAT2
#undef CAT1
#undef OF
#undef P
#undef T
#undef V
#undef M
#undef N
#undef DIGITS
#undef BIAS
#undef ROOT_HALF
#undef LOG_TERMS
#undef ANGLE_TERMS
#undef WORDS
#undef UNIFORM

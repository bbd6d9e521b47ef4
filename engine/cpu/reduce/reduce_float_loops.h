/* reduce_float_loops.h: the reductions of one floating type. Included by reduce_kernels.c with
 * these defined; undefines them:
 *   P            a name for the type
 *   T, C         the type in memory; float or double, in which it is computed
 *   V, N         vector of C and its lanes; V is also the prefix of the vector's functions
 *   I            an integer of C's size
 *   LOAD(p)      N elements at p as a V
 *   LOAD_PART(p, n)  the first n of them, the rest 0
 *   APARTS       whether there is a quick APART(p, step): N elements at p, p + step, ... as a V
 *   DOUBLES(p)   VD_N of C as doubles
 *   GET(x)       an element as a C
 *   WIDEN(p)     VD_N elements at p as doubles
 *
 * Sums run in four vectors of C over a few steps, then go on in vectors of double: fast, and exact
 * for counts of any size. Scalars at the end of a row of columns do the same operations in the same
 * order as the vectors, so that where the vectors end does not show in the result.
 */
#define CAT2(a, b) a##_##b
#define CAT1(a, b) CAT2(a, b)
#define NAME(name) CAT1(P, name)
#define VEC(name)  CAT1(V, name)
#define SPLAT(x)   ((V){0} + (C)(x))

/* `scalars`: so many elements behind the last vector are added one by one; more are part of one,
 * where the machine can load it. */
enum { NAME(depth) = 16, NAME(column_depth) = 64, NAME(scalars) = TD_VBYTES > 16 ? 4 : N };
enum { NAME(narrow) = 8 };     /* columns that are few */
enum { NAME(near) = 1 << 20 }; /* elements between rows that go side by side */

/* What a sum adds for an element: as a vector v with center c, and as a scalar. */
#define SUMS(X)                                                                                    \
    X(sum, v, v)                                                                                   \
    X(nansum, VEC(select)(v == v, v, SPLAT(0)), v == v ? v : 0)                                    \
    X(abs_sum, VEC(abs)(v), v < 0 ? -v : v)                                                        \
    X(square_sum, v *v, v *v)                                                                      \
    X(centered, (v - c) * (v - c), (v - c) * (v - c))                                              \
    X(shifted, v - c, v - c)                                                                       \
    X(nonzero, VEC(select)(v != 0, SPLAT(1), SPLAT(0)), v != 0 ? 1 : 0)

#define DEFINE_TERM(name, vector, scalar)                                                          \
    static inline V NAME(name##_term)(V v, V c) {                                                  \
        (void)c;                                                                                   \
        return vector;                                                                             \
    }                                                                                              \
    static inline C NAME(name##_term1)(C v, C c) {                                                 \
        (void)c;                                                                                   \
        return (C)(scalar);                                                                        \
    }
SUMS(DEFINE_TERM)
#undef DEFINE_TERM

#define DEFINE_SUM_ROWS(name, vector, scalar)                                                      \
    static double NAME(name##_run)(const T *x, int64_t n, C center) {                              \
        double total = 0;                                                                          \
        V c = SPLAT(center);                                                                       \
        if (n >= N || n > NAME(scalars)) {                                                         \
            vd sum = {0};                                                                          \
            while (n >= 4 * N) {                                                                   \
                int64_t steps = n / (4 * N) < NAME(depth) ? n / (4 * N) : NAME(depth);             \
                V a0 = {0}, a1 = {0}, a2 = {0}, a3 = {0};                                          \
                n -= steps * 4 * N;                                                                \
                for (; steps > 0; steps--, x += 4 * N) {                                           \
                    a0 += NAME(name##_term)(LOAD(x), c);                                           \
                    a1 += NAME(name##_term)(LOAD(x + N), c);                                       \
                    a2 += NAME(name##_term)(LOAD(x + 2 * N), c);                                   \
                    a3 += NAME(name##_term)(LOAD(x + 3 * N), c);                                   \
                }                                                                                  \
                sum = VEC(widen_add)(sum, (a0 + a1) + (a2 + a3));                                  \
            }                                                                                      \
            V a = {0};                                                                             \
            for (; n >= N; n -= N, x += N)                                                         \
                a += NAME(name##_term)(LOAD(x), c);                                                \
            if (n > NAME(scalars)) {                                                               \
                a += VEC(head_or)(NAME(name##_term)(LOAD_PART(x, n), c), n, SPLAT(0));             \
                n = 0;                                                                             \
            }                                                                                      \
            total = vd_hsum(VEC(widen_add)(sum, a));                                               \
        }                                                                                          \
        for (; n > 0; n--, x++)                                                                    \
            total += (double)NAME(name##_term1)(GET(*x), center);                                  \
        return total;                                                                              \
    }                                                                                              \
    TD_SHORT_ROWS(NAME(name##_short), T, double, f, 0, (double)NAME(name##_term1)(GET(v), 0),      \
                  a + b, acc[r].f + a)                                                             \
    static void NAME(name##_rows)(td_accumulator * acc, const void *data, int64_t rows,            \
                                  int64_t row_stride, int64_t n, int64_t stride,                   \
                                  const double *centers) {                                         \
        const T *from = data;                                                                      \
        if (!centers && stride == 1 && row_stride == n && NAME(name##_short)(acc, data, rows, n))  \
            return;                                                                                \
        if (APARTS && !centers && stride == 1 && n > NAME(scalars) && n < N) {                     \
            for (; rows >= N && row_stride <= NAME(near); rows -= N, from += N * row_stride) {     \
                vd sums[N / VD_N] = {{0}};                                                         \
                C lanes[N];                                                                        \
                for (int64_t k = 0; k < n; k++) {                                                  \
                    VEC(store)(lanes, NAME(name##_term)(APART(from + k, row_stride), SPLAT(0)));   \
                    for (int v = 0; v < N / VD_N; v++)                                             \
                        sums[v] += DOUBLES(lanes + v * VD_N);                                      \
                }                                                                                  \
                for (int l = 0; l < N; l++, acc++)                                                 \
                    acc->f += sums[l / VD_N][l % VD_N];                                            \
            }                                                                                      \
            for (; rows > 0; rows--, from += row_stride, acc++) { /* in the same order */          \
                double total = 0;                                                                  \
                for (int64_t k = 0; k < n; k++)                                                    \
                    total += (double)NAME(name##_term1)(GET(from[k]), 0);                          \
                acc->f += total;                                                                   \
            }                                                                                      \
        }                                                                                          \
        for (int64_t r = 0; r < rows; r++) {                                                       \
            const T *x = from + r * row_stride;                                                    \
            C center = centers ? (C)centers[r] : 0;                                                \
            if (stride == 1) {                                                                     \
                acc[r].f += NAME(name##_run)(x, n, center);                                        \
            } else {                                                                               \
                double total = 0;                                                                  \
                for (int64_t k = 0; k < n; k++)                                                    \
                    total += (double)NAME(name##_term1)(GET(x[k * stride]), center);               \
                acc[r].f += total;                                                                 \
            }                                                                                      \
        }                                                                                          \
    }
SUMS(DEFINE_SUM_ROWS)
#undef DEFINE_SUM_ROWS

/* Four rows at a time into partial sums that stay in the first-level cache. */
#define DEFINE_SUM_COLUMNS(name, vector, scalar)                                                   \
    static void NAME(name##_columns)(td_accumulator * acc, const void *data, int64_t rows,         \
                                     int64_t row_stride, int64_t columns, const double *centers) { \
        const T *x = data;                                                                         \
        C part[TD_REDUCE_WIDTH], center[TD_REDUCE_WIDTH];                                          \
        if (!centers && columns <= NAME(narrow) && row_stride == columns && rows >= N) {           \
            NAME(name##_narrow)(acc, x, rows, columns);                                            \
            return;                                                                                \
        }                                                                                          \
        for (int64_t c = 0; c < columns; c++)                                                      \
            center[c] = centers ? (C)centers[c] : 0;                                               \
        while (rows > 0) {                                                                         \
            int64_t depth = rows < NAME(column_depth) ? rows : NAME(column_depth);                 \
            rows -= depth;                                                                         \
            memset(part, 0, (size_t)columns * sizeof *part);                                       \
            for (; depth >= 4; depth -= 4, x += 4 * row_stride)                                    \
                NAME(name##_four)(part, x, row_stride, columns, center);                           \
            for (; depth > 0; depth--, x += row_stride)                                            \
                for (int64_t c = 0; c < columns; c++)                                              \
                    part[c] += NAME(name##_term1)(GET(x[c]), center[c]);                           \
            for (int64_t c = 0; c < columns; c++)                                                  \
                acc[c].f += (double)part[c];                                                       \
        }                                                                                          \
    }
/* Few columns whose rows lie one behind the other: N rows are as many vectors as there are columns,
 * in which each lane is of one column. */
#define DEFINE_SUM_NARROW(name, vector, scalar)                                                    \
    static void NAME(name##_narrow)(td_accumulator * acc, const T *x, int64_t rows,                \
                                    int64_t columns) {                                             \
        for (int64_t steps; rows >= N; rows -= steps * N) {                                        \
            V sums[NAME(narrow)];                                                                  \
            C lanes[NAME(narrow) * N];                                                             \
            memset(sums, 0, (size_t)columns * sizeof *sums);                                       \
            steps = rows / N < NAME(column_depth) ? rows / N : NAME(column_depth);                 \
            for (int64_t k = 0; k < steps; k++, x += columns * N)                                  \
                for (int64_t v = 0; v < columns; v++)                                              \
                    sums[v] += NAME(name##_term)(LOAD(x + v * N), SPLAT(0));                       \
            memcpy(lanes, sums, (size_t)columns * sizeof *sums);                                   \
            for (int64_t k = 0; k < N; k++)                                                        \
                for (int64_t c = 0; c < columns; c++)                                              \
                    acc[c].f += (double)lanes[k * columns + c];                                    \
        }                                                                                          \
        for (; rows > 0; rows--, x += columns)                                                     \
            for (int64_t c = 0; c < columns; c++)                                                  \
                acc[c].f += (double)NAME(name##_term1)(GET(x[c]), 0);                              \
    }
SUMS(DEFINE_SUM_NARROW)
#undef DEFINE_SUM_NARROW
#define DEFINE_SUM_FOUR(name, vector, scalar)                                                      \
    static inline void NAME(name##_four)(C * part, const T *x, int64_t stride, int64_t columns,    \
                                         const C *center) {                                        \
        int64_t c = 0;                                                                             \
        for (; c + N <= columns; c += N) {                                                         \
            V m = VEC(load)(center + c);                                                           \
            V s =                                                                                  \
                (NAME(name##_term)(LOAD(x + c), m) + NAME(name##_term)(LOAD(x + stride + c), m)) + \
                (NAME(name##_term)(LOAD(x + 2 * stride + c), m) +                                  \
                 NAME(name##_term)(LOAD(x + 3 * stride + c), m));                                  \
            VEC(store)(part + c, VEC(load)(part + c) + s);                                         \
        }                                                                                          \
        for (; c < columns; c++) {                                                                 \
            C m = center[c];                                                                       \
            part[c] +=                                                                             \
                (NAME(name##_term1)(GET(x[c]), m) + NAME(name##_term1)(GET(x[stride + c]), m)) +   \
                (NAME(name##_term1)(GET(x[2 * stride + c]), m) +                                   \
                 NAME(name##_term1)(GET(x[3 * stride + c]), m));                                   \
        }                                                                                          \
    }
SUMS(DEFINE_SUM_FOUR)
SUMS(DEFINE_SUM_COLUMNS)
#undef DEFINE_SUM_FOUR
#undef DEFINE_SUM_COLUMNS

/* ---- largest and smallest ---- */

static inline C NAME(max1)(C a, C b) { /* without a branch */
    return ((a > b) | (a != a)) ? a : b;
}
static inline C NAME(min1)(C a, C b) {
    return ((a < b) | (a != a)) ? a : b;
}
static inline C NAME(abs1)(C a) {
    return a < 0 ? -a : a;
}

#define EXTREMES(X)                                                                                \
    X(max, VEC(max), NAME(max1), , , VEC(greater), VEC(hmax))                                      \
    X(min, VEC(min), NAME(min1), , , VEC(lesser), VEC(hmin))                                       \
    X(abs_max, VEC(max), NAME(max1), VEC(abs), NAME(abs1), VEC(greater), VEC(hmax))                \
    X(abs_min, VEC(min), NAME(min1), VEC(abs), NAME(abs1), VEC(lesser), VEC(hmin))

/* The extreme of N elements or more into *best, unless one of them is NaN. */
#define DEFINE_QUICK_EXTREME(name, better, better1, map, map1, quick, across)                      \
    static inline bool NAME(name##_quick)(const T *x, int64_t n, C *best) {                        \
        V last = map(LOAD(x + n - N)), a[4], v[4]; /* some of it once more */                      \
        VEC(marks) nan = VEC(unordered)(last, last);                                               \
        if (n >= 8 * N) {                                                                          \
            for (int k = 0; k < 4; k++)                                                            \
                a[k] = last;                                                                       \
            for (; n >= 4 * N; x += 4 * N, n -= 4 * N) {                                           \
                for (int k = 0; k < 4; k++) {                                                      \
                    v[k] = map(LOAD(x + k * N));                                                   \
                    a[k] = quick(v[k], a[k]);                                                      \
                }                                                                                  \
                nan |= VEC(unordered)(v[0], v[1]) | VEC(unordered)(v[2], v[3]);                    \
            }                                                                                      \
            last = quick(quick(a[0], a[1]), quick(a[2], a[3]));                                    \
        }                                                                                          \
        for (; n >= N; x += N, n -= N) {                                                           \
            v[0] = map(LOAD(x));                                                                   \
            last = quick(v[0], last);                                                              \
            nan |= VEC(unordered)(v[0], v[0]);                                                     \
        }                                                                                          \
        *best = across(last);                                                                      \
        return !VEC(marked)(nan);                                                                  \
    }
EXTREMES(DEFINE_QUICK_EXTREME)
#undef DEFINE_QUICK_EXTREME

#define DEFINE_EXTREME(name, better, better1, map, map1, quick, across)                            \
    static C NAME(name##_run)(const T *x, int64_t n) {                                             \
        C found;                                                                                   \
        if (n >= N && NAME(name##_quick)(x, n, &found))                                            \
            return found;                                                                          \
        C best = map1(GET(x[0])); /* few elements, or up to the first NaN */                       \
        for (int64_t k = 1; k < n && best == best; k++)                                            \
            best = better1(best, map1(GET(x[k])));                                                 \
        return best;                                                                               \
    }                                                                                              \
    static void NAME(name##_rows)(td_accumulator * acc, const void *data, int64_t rows,            \
                                  int64_t row_stride, int64_t n, int64_t stride,                   \
                                  const double *centers) {                                         \
        const T *from = data;                                                                      \
        (void)centers;                                                                             \
        for (int64_t r = 0; r < rows; r++) {                                                       \
            const T *x = from + r * row_stride;                                                    \
            C best = (C)acc[r].f;                                                                  \
            if (stride == 1) {                                                                     \
                best = better1(best, NAME(name##_run)(x, n));                                      \
            } else {                                                                               \
                for (int64_t k = 0; k < n; k++)                                                    \
                    best = better1(best, map1(GET(x[k * stride])));                                \
            }                                                                                      \
            acc[r].f = (double)best;                                                               \
        }                                                                                          \
    }                                                                                              \
    static void NAME(name##_columns)(td_accumulator * acc, const void *data, int64_t rows,         \
                                     int64_t row_stride, int64_t columns, const double *centers) { \
        const T *x = data;                                                                         \
        C part[TD_REDUCE_WIDTH];                                                                   \
        (void)centers;                                                                             \
        for (int64_t c = 0; c < columns; c++)                                                      \
            part[c] = (C)acc[c].f;                                                                 \
        if (columns <= NAME(narrow) && row_stride == columns && rows >= N) {                       \
            V best[NAME(narrow)];                                                                  \
            C lanes[NAME(narrow) * N];                                                             \
            for (int64_t v = 0; v < columns; v++)                                                  \
                best[v] = map(LOAD(x + v * N));                                                    \
            for (x += columns * N, rows -= N; rows >= N; x += columns * N, rows -= N)              \
                for (int64_t v = 0; v < columns; v++)                                              \
                    best[v] = better(best[v], map(LOAD(x + v * N)));                               \
            memcpy(lanes, best, (size_t)columns * sizeof *best);                                   \
            for (int64_t k = 0; k < N; k++)                                                        \
                for (int64_t c = 0; c < columns; c++)                                              \
                    part[c] = better1(part[c], lanes[k * columns + c]);                            \
        }                                                                                          \
        for (; rows >= 4; rows -= 4, x += 4 * row_stride) {                                        \
            const T *x1 = x + row_stride, *x2 = x1 + row_stride, *x3 = x2 + row_stride;            \
            int64_t c = 0;                                                                         \
            for (; c + N <= columns; c += N) {                                                     \
                V v = better(better(map(LOAD(x + c)), map(LOAD(x1 + c))),                          \
                             better(map(LOAD(x2 + c)), map(LOAD(x3 + c))));                        \
                VEC(store)(part + c, better(VEC(load)(part + c), v));                              \
            }                                                                                      \
            for (; c < columns; c++)                                                               \
                part[c] = better1(part[c], better1(better1(map1(GET(x[c])), map1(GET(x1[c]))),     \
                                                   better1(map1(GET(x2[c])), map1(GET(x3[c])))));  \
        }                                                                                          \
        for (; rows > 0; rows--, x += row_stride) {                                                \
            int64_t c = 0;                                                                         \
            for (; c + N <= columns; c += N)                                                       \
                VEC(store)(part + c, better(VEC(load)(part + c), map(LOAD(x + c))));               \
            for (; c < columns; c++)                                                               \
                part[c] = better1(part[c], map1(GET(x[c])));                                       \
        }                                                                                          \
        for (int64_t c = 0; c < columns; c++)                                                      \
            acc[c].f = (double)part[c];                                                            \
    }
EXTREMES(DEFINE_EXTREME)
#undef DEFINE_EXTREME

/* ---- where they are ---- */

typedef I NAME(places) __attribute__((vector_size(sizeof(V))));

/* The best of a block is found by vectors; the place only in the block that won. */
#define DEFINE_FIND(name, better)                                                                  \
    static int64_t NAME(find_##name)(const void *data, int64_t n, int64_t stride) {                \
        const T *x = data;                                                                         \
        if (stride != 1 || n < 2 * N) {                                                            \
            C best = GET(x[0]);                                                                    \
            int64_t at = 0;                                                                        \
            for (int64_t k = 1; k < n && best == best; k++) {                                      \
                C v = GET(x[k * stride]);                                                          \
                if (v better best || v != v) {                                                     \
                    best = v;                                                                      \
                    at = k;                                                                        \
                }                                                                                  \
            }                                                                                      \
            return at;                                                                             \
        }                                                                                          \
        enum { BLOCK = 4096 };                                                                     \
        int64_t at = 0;                                                                            \
        C best = 0;                                                                                \
        for (int64_t k = 0; k < n; k += BLOCK) {                                                   \
            C v = NAME(name##_run)(x + k, n - k < BLOCK ? n - k : BLOCK);                          \
            if (k == 0 || v better best || v != v) {                                               \
                best = v;                                                                          \
                at = k;                                                                            \
                if (v != v)                                                                        \
                    break;                                                                         \
            }                                                                                      \
        }                                                                                          \
        if (best != best)                                                                          \
            while (GET(x[at]) == GET(x[at]))                                                       \
                at++;                                                                              \
        else                                                                                       \
            while (GET(x[at]) != best)                                                             \
                at++;                                                                              \
        return at;                                                                                 \
    }                                                                                              \
    static void NAME(find_##name##_columns)(int64_t * index, const void *data, int64_t rows,       \
                                            int64_t row_stride, int64_t columns) {                 \
        const T *x = data;                                                                         \
        C best[TD_REDUCE_WIDTH];                                                                   \
        I at[TD_REDUCE_WIDTH];                                                                     \
        for (int64_t c = 0; c < columns; c++) {                                                    \
            best[c] = GET(x[c]);                                                                   \
            at[c] = 0;                                                                             \
        }                                                                                          \
        for (int64_t r = 1; r < rows; r++) {                                                       \
            x += row_stride;                                                                       \
            int64_t c = 0;                                                                         \
            for (; c + N <= columns; c += N) {                                                     \
                const V v = LOAD(x + c), b = VEC(load)(best + c);                                  \
                NAME(places) was, take = (v better b) | ((v != v) & (b == b));                     \
                memcpy(&was, at + c, sizeof was);                                                  \
                was = (take & (I)r) | (~take & was);                                               \
                memcpy(at + c, &was, sizeof was);                                                  \
                VEC(store)(best + c, VEC(select)(take, v, b));                                     \
            }                                                                                      \
            for (; c < columns; c++) {                                                             \
                C v = GET(x[c]), b = best[c];                                                      \
                I take = (v better b) | ((v != v) & (b == b));                                     \
                at[c] = take ? (I)r : at[c];                                                       \
                best[c] = take ? v : b;                                                            \
            }                                                                                      \
        }                                                                                          \
        for (int64_t c = 0; c < columns; c++)                                                      \
            index[c] = at[c];                                                                      \
    }
DEFINE_FIND(max, >)
DEFINE_FIND(min, <)
#undef DEFINE_FIND

/* ---- products ----
 *
 * They grow in double: no overflow on the way to a result that fits. Many elements below 1 soon
 * have a product in the range of denormals, with which processors take a hundred times as long;
 * where results are less than double, such a product is 0 to them, and is made 0 at once. */

enum { NAME(flushes) = sizeof(C) < sizeof(double) };

static double NAME(prod_run)(const T *x, int64_t n) {
    double total = 1;
    if (n >= VD_N) {
        vd a0 = WIDEN(x), a1 = (vd){0} + 1, a2 = a1, a3 = a1;
        for (x += VD_N, n -= VD_N; n >= 4 * VD_N; x += 4 * VD_N, n -= 4 * VD_N) {
            a0 *= WIDEN(x);
            a1 *= WIDEN(x + VD_N);
            a2 *= WIDEN(x + 2 * VD_N);
            a3 *= WIDEN(x + 3 * VD_N);
        }
        for (; n >= VD_N; x += VD_N, n -= VD_N)
            a1 *= WIDEN(x);
        double lanes[VD_N];
        vd_store(lanes, (a0 * a1) * (a2 * a3));
        for (int w = VD_N / 2; w; w /= 2)
            for (int k = 0; k < w; k++)
                lanes[k] *= lanes[k + w];
        total = lanes[0];
    }
    for (; n > 0; n--, x++)
        total *= (double)GET(*x);
    return total;
}
static void NAME(prod_rows)(td_accumulator *acc, const void *data, int64_t rows, int64_t row_stride,
                            int64_t n, int64_t stride, const double *centers) {
    const unsigned was = flush_tiny(NAME(flushes));
    (void)centers;
    for (int64_t r = 0; r < rows; r++) {
        const T *x = (const T *)data + r * row_stride;
        if (stride == 1) {
            acc[r].f *= NAME(prod_run)(x, n);
        } else {
            for (int64_t k = 0; k < n; k++)
                acc[r].f *= (double)GET(x[k * stride]);
        }
    }
    unflush_tiny(NAME(flushes), was);
}
static void NAME(prod_columns)(td_accumulator *acc, const void *data, int64_t rows,
                               int64_t row_stride, int64_t columns, const double *centers) {
    const T *x = data;
    const unsigned was = flush_tiny(NAME(flushes));
    (void)centers;
    double part[TD_REDUCE_WIDTH];
    for (int64_t c = 0; c < columns; c++)
        part[c] = acc[c].f;
    for (; rows >= 4; rows -= 4, x += 4 * row_stride) {
        const T *x1 = x + row_stride, *x2 = x1 + row_stride, *x3 = x2 + row_stride;
        int64_t c = 0;
        for (; c + VD_N <= columns; c += VD_N) {
            vd v = vd_load(part + c) * WIDEN(x + c) * WIDEN(x1 + c);
            vd_store(part + c, v * WIDEN(x2 + c) * WIDEN(x3 + c));
        }
        for (; c < columns; c++) {
            double v = part[c] * (double)GET(x[c]) * (double)GET(x1[c]);
            part[c] = v * (double)GET(x2[c]) * (double)GET(x3[c]);
        }
    }
    for (; rows > 0; rows--, x += row_stride) {
        int64_t c = 0;
        for (; c + VD_N <= columns; c += VD_N)
            vd_store(part + c, vd_load(part + c) * WIDEN(x + c));
        for (; c < columns; c++)
            part[c] *= (double)GET(x[c]);
    }
    for (int64_t c = 0; c < columns; c++)
        acc[c].f = part[c];
    unflush_tiny(NAME(flushes), was);
}

#undef SUMS
#undef EXTREMES
#undef SPLAT
#undef VEC
#undef NAME
#undef CAT1
#undef CAT2
#undef P
#undef T
#undef C
#undef V
#undef N
#undef I
#undef LOAD
#undef LOAD_PART
#undef APART
#undef APARTS
#undef DOUBLES
#undef GET
#undef WIDEN

/* factor_column_loops.h: decompositions of so few columns that they lie in a near cache. Included
 * by factor_kernels.c with these defined; undefines them:
 *   P             a name for the type
 *   T             the type
 *   V, M, N       vector of T, of its masks, and its lanes; V is also the prefix of functions
 *   ROOT          the square root of a T
 *   ADD1(a, b, c) a + b * c of a T, as the vectors' fma does it
 *   LEAST_NORMAL  of T
 */
#define CAT2(a, b) a##_##b
#define CAT1(a, b) CAT2(a, b)
#define NAME(name) CAT1(P, name)
#define VEC(name)  CAT1(V, name)

enum { NAME(few) = 6 }; /* elements that are quicker one by one */

/* The lanes of a vector at `at` that lie within [from, to). */
static inline M NAME(lanes)(int64_t at, int64_t from, int64_t to) {
    static const __typeof__((M){0}[0]) window[3 * N] = {[N... 2 * N - 1] = -1};
    int64_t begin = from > at ? from - at : 0, end = to - at < N ? to - at : N;
    M first, last;
    memcpy(&first, window + N - begin, sizeof first);
    memcpy(&last, window + 2 * N - end, sizeof last);
    return first & last;
}

static inline T NAME(size)(T x) {
    return x < 0 ? -x : x;
}

/* The first of the largest of column[from .. m), whatever their signs; NaN is none of them. */
static inline int64_t NAME(largest)(const T *column, int64_t from, int64_t m) {
    int64_t begin = from / N * N, first = from;
    V best = VEC(set)(-1);
    T most = -1;
    for (int64_t k = from; m - from <= NAME(few) && k < m; k++)
        if (NAME(size)(column[k]) > most)
            most = NAME(size)(column[first = k]);
    if (m - from <= NAME(few))
        return first;
    for (int64_t at = begin; at < m; at += N) {
        V x = VEC(abs)(VEC(load)(column + at));
        M larger = x > best;
        if (at < from || m - at < N)
            larger &= NAME(lanes)(at, from, m);
        best = VEC(select)(larger, x, best);
    }
    most = VEC(hmax)(best);
    for (int64_t at = begin; at < m; at += N)
        if (VEC(any)((M)(VEC(abs)(VEC(load)(column + at)) == VEC(set)(most))))
            for (int64_t k = at < from ? from : at; k < at + N && k < m; k++)
                if (NAME(size)(column[k]) == most)
                    return k;
    return from;
}

/* to[from .. m) += factor * line[from .. m); lanes beyond m take part. */
static inline void NAME(add_line)(T *to, const T *line, T factor, int64_t from, int64_t m) {
    int64_t at = from / N * N;
    V f = VEC(set)(factor);
    if (m - from <= NAME(few)) {
        for (int64_t k = from; k < m; k++)
            to[k] = ADD1(to[k], factor, line[k]);
        return;
    }
    if (at < from) {
        V x = VEC(load)(to + at);
        V sum = VEC(fma)(f, VEC(load)(line + at), x);
        VEC(store)(to + at, VEC(select)(NAME(lanes)(at, from, at + N), sum, x));
        at += N;
    }
    for (; at < m; at += N)
        VEC(store)(to + at, VEC(fma)(f, VEC(load)(line + at), VEC(load)(to + at)));
}

/* The column below its pivot, divided by it: by its reciprocal, unless that is infinite. */
static inline void NAME(scale)(T *column, int64_t pivot, int64_t m) {
    T by = column[pivot], factor = 1 / by;
    int64_t from = pivot + 1, whole = m - from <= NAME(few) ? m : (from + N - 1) / N * N;
    bool tiny = by < LEAST_NORMAL && by > -LEAST_NORMAL;
    if (tiny) {
        for (int64_t k = from; k < m; k++)
            column[k] /= by;
        return;
    }
    for (int64_t k = from; k < whole && k < m; k++)
        column[k] *= factor;
    for (int64_t at = whole; at < m; at += N)
        VEC(store)(column + at, VEC(load)(column + at) * VEC(set)(factor));
}

static int NAME(lu)(void *a, int64_t m, int64_t count, int64_t apart, int *places) {
    T *all = a;
    int first_without = 0;
    for (int64_t k = 0; k < count && k < m; k++) {
        T *column = all + k * apart;
        int64_t at = NAME(largest)(column, k, m);
        places[k] = (int)at;
        if (column[at] == 0) {
            if (!first_without)
                first_without = (int)k + 1;
            continue;
        }
        for (int64_t c = 0; at != k && c < count; c++) {
            T *one = all + c * apart + k, *other = all + c * apart + at, kept = *one;
            *one = *other;
            *other = kept;
        }
        NAME(scale)(column, k, m);
        for (int64_t c = k + 1; c < count; c++)
            NAME(add_line)(all + c * apart, column, -all[c * apart + k], k + 1, m);
    }
    return first_without;
}

/* Row after row: each, divided by its root, is taken from those below. */
static int NAME(cholesky)(void *a, int64_t n, int64_t row) {
    enum { WIDE = TD_FACTOR_COLUMNS };
    T x[WIDE][WIDE] = {{0}}, *all = a;
    int first_without = 0;
    for (int64_t r = 0; r < n; r++)
        memcpy(&x[r][r], all + r * (row + 1), (size_t)(n - r) * sizeof(T));
    for (int64_t k = 0; k < n && !first_without; k++) {
        if (!(x[k][k] > 0)) {
            first_without = (int)k + 1;
            break;
        }
        T root = ROOT(x[k][k]);
        for (int c = 0; c < WIDE; c++)
            x[k][c] *= 1 / root;
        x[k][k] = root;
        for (int64_t r = k + 1; r < n; r++) {
            T factor = -x[k][r];
            for (int c = 0; c < WIDE; c += N)
                VEC(store)
            (x[r] + c, VEC(fma)(VEC(set)(factor), VEC(load)(x[k] + c), VEC(load)(x[r] + c)));
        }
    }
    for (int64_t r = 0; r < n; r++)
        memcpy(all + r * (row + 1), &x[r][r], (size_t)(n - r) * sizeof(T));
    return first_without;
}

static void NAME(negate)(void *to, int64_t to_row, const void *from, int64_t from_row, int64_t rows,
                         int64_t columns) {
    const T *x = from;
    T *out = to;
    for (int64_t r = 0; r < rows; r++, x += from_row, out += to_row)
        for (int64_t c = 0; c < columns; c++)
            out[c] = -x[c];
}

#undef P
#undef T
#undef V
#undef M
#undef N
#undef ROOT
#undef ADD1
#undef LEAST_NORMAL
#undef NAME
#undef VEC
#undef CAT1
#undef CAT2

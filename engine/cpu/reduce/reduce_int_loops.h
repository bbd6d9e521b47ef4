/* reduce_int_loops.h: the reductions of one integer type. Included by reduce_kernels.c with T, P (a
 * name for it) and I (a signed type for counts of rows) defined; undefines them.
 *
 * Sums and products are 64-bit and wrap around. The loops are plain: the compiler widens them.
 */
#define CAT2(a, b) a##_##b
#define CAT1(a, b) CAT2(a, b)
#define NAME(name) CAT1(P, name)

/* How an element v goes into an accumulator a of type A. */
#define FOLDS(X)                                                                                   \
    X(sum, uint64_t, a + (uint64_t)v)                                                              \
    X(nonzero, uint64_t, a + (v != 0))                                                             \
    X(prod, uint64_t, a *(uint64_t)v)                                                              \
    X(max, int64_t, v > a ? v : a)                                                                 \
    X(min, int64_t, v < a ? v : a)

#define DEFINE_FOLD(name, A, expression)                                                           \
    static inline A NAME(name##_fold)(A a, T v) {                                                  \
        return (A)(expression);                                                                    \
    }                                                                                              \
    TD_SHORT_ROWS(NAME(name##_short), T, A, i, (A)acc[r].i, (A)v, NAME(name##_fold)(a, (T)b),      \
                  (int64_t)a)                                                                      \
    static void NAME(name##_rows)(td_accumulator * acc, const void *data, int64_t rows,            \
                                  int64_t row_stride, int64_t n, int64_t stride,                   \
                                  const double *centers) {                                         \
        (void)centers;                                                                             \
        if (stride == 1 && row_stride == n && NAME(name##_short)(acc, data, rows, n))              \
            return;                                                                                \
        for (int64_t r = 0; r < rows; r++) {                                                       \
            const T *x = (const T *)data + r * row_stride;                                         \
            A a = (A)acc[r].i;                                                                     \
            if (stride == 1)                                                                       \
                for (int64_t k = 0; k < n; k++)                                                    \
                    a = NAME(name##_fold)(a, x[k]);                                                \
            else                                                                                   \
                for (int64_t k = 0; k < n; k++)                                                    \
                    a = NAME(name##_fold)(a, x[k * stride]);                                       \
            acc[r].i = (int64_t)a;                                                                 \
        }                                                                                          \
    }                                                                                              \
    static void NAME(name##_columns)(td_accumulator * acc, const void *data, int64_t rows,         \
                                     int64_t row_stride, int64_t columns, const double *centers) { \
        const T *x = data;                                                                         \
        A sums[TD_REDUCE_WIDTH];                                                                   \
        (void)centers;                                                                             \
        for (int64_t c = 0; c < columns; c++)                                                      \
            sums[c] = (A)acc[c].i;                                                                 \
        for (; rows > 0; rows--, x += row_stride)                                                  \
            for (int64_t c = 0; c < columns; c++)                                                  \
                sums[c] = NAME(name##_fold)(sums[c], x[c]);                                        \
        for (int64_t c = 0; c < columns; c++)                                                      \
            acc[c].i = (int64_t)sums[c];                                                           \
    }
FOLDS(DEFINE_FOLD)
#undef DEFINE_FOLD

#define DEFINE_FIND(name, better)                                                                  \
    static int64_t NAME(find_##name)(const void *data, int64_t n, int64_t stride) {                \
        const T *x = data;                                                                         \
        T best = x[0];                                                                             \
        if (stride == 1) {                                                                         \
            for (int64_t k = 1; k < n; k++)                                                        \
                best = x[k] better best ? x[k] : best;                                             \
        } else {                                                                                   \
            for (int64_t k = 1; k < n; k++)                                                        \
                best = x[k * stride] better best ? x[k * stride] : best;                           \
        }                                                                                          \
        int64_t at = 0;                                                                            \
        while (x[at * stride] != best)                                                             \
            at++;                                                                                  \
        return at;                                                                                 \
    }                                                                                              \
    static void NAME(find_##name##_columns)(int64_t * index, const void *data, int64_t rows,       \
                                            int64_t row_stride, int64_t columns) {                 \
        const T *x = data;                                                                         \
        T best[TD_REDUCE_WIDTH];                                                                   \
        I at[TD_REDUCE_WIDTH];                                                                     \
        for (int64_t c = 0; c < columns; c++) {                                                    \
            best[c] = x[c];                                                                        \
            at[c] = 0;                                                                             \
        }                                                                                          \
        for (int64_t r = 1; r < rows; r++) {                                                       \
            x += row_stride;                                                                       \
            for (int64_t c = 0; c < columns; c++) {                                                \
                T v = x[c], b = best[c];                                                           \
                at[c] = v better b ? (I)r : at[c];                                                 \
                best[c] = v better b ? v : b;                                                      \
            }                                                                                      \
        }                                                                                          \
        for (int64_t c = 0; c < columns; c++)                                                      \
            index[c] = at[c];                                                                      \
    }
DEFINE_FIND(max, >)
DEFINE_FIND(min, <)
#undef DEFINE_FIND

#undef FOLDS
#undef NAME
#undef CAT1
#undef CAT2
#undef T
#undef P
#undef I

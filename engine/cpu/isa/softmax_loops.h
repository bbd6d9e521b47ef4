/* softmax_loops.h: softmax and its relatives for one floating type. Included by softmax_kernels.c
 * with T, V, N and P (prefix of the vector's functions) defined; undefines them.
 *
 * Sums run in T over at most DEPTH vectors or rows and go on in double.
 */
#define CAT2(a, b)  a##_##b
#define CAT1(a, b)  CAT2(a, b)
#define NAME(name)  CAT1(P, name)
#define LOAD(p)     NAME(load)(p)
#define STORE(p, v) NAME(store)(p, v)
#define SPLAT(x)    ((V){0} + (T)(x))

enum { NAME(softmax_depth) = 256 };

/* Vectors at the end of a row may be part: `live` of their lanes count. */
static inline V NAME(load_live)(const T *p, int64_t live) {
    return live >= N ? LOAD(p) : NAME(load_part)(p, live);
}
static inline void NAME(store_live)(T *p, V v, int64_t live) {
    if (live >= N)
        STORE(p, v);
    else
        NAME(store_part)(p, v, live);
}
static inline double NAME(sum_live)(V v, int64_t live) {
    double total = 0;
    for (int64_t k = 0; k < (live < N ? live : N); k++)
        total += (double)v[k];
    return total;
}

static T NAME(row_max)(const T *x, int64_t n) {
    T m = x[0];
    if (n >= N) {
        V a = LOAD(x), b = a;
        int64_t i = N;
        for (; i + 2 * N <= n; i += 2 * N) {
            a = NAME(max)(a, LOAD(x + i));
            b = NAME(max)(b, LOAD(x + i + N));
        }
        for (; i + N <= n; i += N)
            a = NAME(max)(a, LOAD(x + i));
        a = NAME(max)(a, b);
        m = NAME(hmax)(a);
        x += i;
        n -= i;
    }
    for (; n > 0; n--, x++)
        m = *x > m || *x != *x ? *x : m;
    return m;
}

/* Sum of exp(x - m); the terms go to `out` unless it is NULL. */
static inline double NAME(row_exp)(T *out, const T *x, int64_t n, T m) {
    double total = 0;
    int64_t i = 0;
    while (i + N <= n) {
        int64_t whole = (n - i) / N;
        int64_t end = i + N * (whole < NAME(softmax_depth) ? whole : NAME(softmax_depth));
        V sum = {0};
        for (; i < end; i += N) {
            V e = NAME(exp)(LOAD(x + i) - m);
            if (out)
                STORE(out + i, e);
            sum += e;
        }
        total += NAME(sum_live)(sum, N);
    }
    if (i < n) {
        V e = NAME(exp)(NAME(load_part)(x + i, n - i) - m);
        if (out)
            NAME(store_part)(out + i, e, n - i);
        total += NAME(sum_live)(e, n - i);
    }
    return total;
}

static void NAME(softmax_rows)(void *to, const void *from, int64_t rows, int64_t n, bool log) {
    T *out = to;
    const T *x = from;
    for (; rows > 0; rows--, x += n, out += n) {
        T m = NAME(row_max)(x, n);
        if (log) {
            V shift = SPLAT(__builtin_log(NAME(row_exp)(NULL, x, n, m)));
            for (int64_t i = 0; i < n; i += N)
                NAME(store_live)(out + i, (NAME(load_live)(x + i, n - i) - m) - shift, n - i);
        } else {
            V scale = SPLAT(1 / NAME(row_exp)(out, x, n, m));
            for (int64_t i = 0; i < n; i += N)
                NAME(store_live)(out + i, NAME(load_live)(out + i, n - i) * scale, n - i);
        }
    }
}

static void NAME(lse_rows)(void *to, const void *from, int64_t rows, int64_t n) {
    T *lse = to;
    const T *x = from;
    for (int64_t r = 0; r < rows; r++, x += n) {
        T m = NAME(row_max)(x, n);
        T base = m - m == 0 ? m : 0; /* an infinite largest element would give NaN */
        lse[r] = m != m ? m : base + (T)__builtin_log(NAME(row_exp)(NULL, x, n, base));
    }
}

static void NAME(scaled_rows)(void *to, const void *from, const void *lses, const void *scales,
                              int64_t rows, int64_t n) {
    T *out = to;
    const T *x = from;
    for (int64_t r = 0; r < rows; r++, x += n, out += n) {
        T lse = ((const T *)lses)[r], scale = ((const T *)scales)[r];
        if (scale == 0) {
            memset(out, 0, (size_t)n * sizeof *out);
            continue;
        }
        for (int64_t i = 0; i < n; i += N)
            NAME(store_live)
        (out + i, NAME(exp)(NAME(load_live)(x + i, n - i) - lse) * scale, n - i);
    }
}

static void NAME(softmax_backward_rows)(void *to, const void *gs, const void *ys, int64_t rows,
                                        int64_t n, bool log) {
    T *out = to;
    const T *g = gs, *y = ys;
    for (; rows > 0; rows--, g += n, y += n, out += n) {
        double total = 0;
        for (int64_t i = 0; i < n;) {
            V sum = {0};
            int64_t end = i + N * NAME(softmax_depth) < n ? i + N * NAME(softmax_depth) : n;
            for (; i < end; i += N) { /* lanes beyond the end are zero */
                V v = NAME(load_live)(g + i, n - i);
                sum += log ? v : v * NAME(load_live)(y + i, n - i);
            }
            total += NAME(sum_live)(sum, N);
        }
        V s = SPLAT(total);
        for (int64_t i = 0; i < n; i += N) {
            V gv = NAME(load_live)(g + i, n - i), yv = NAME(load_live)(y + i, n - i);
            NAME(store_live)(out + i, log ? gv - NAME(exp)(yv) * s : yv * (gv - s), n - i);
        }
    }
}

/* ---- columns ---- */

typedef struct NAME(column_state) {
    _Alignas(64) T max[TD_SOFTMAX_WIDTH];
    _Alignas(64) T part[TD_SOFTMAX_WIDTH];
    double sum[TD_SOFTMAX_WIDTH];
} NAME(column_state);

static inline void NAME(carry)(NAME(column_state) * s, int64_t columns) {
    for (int64_t c = 0; c < columns; c++) {
        s->sum[c] += (double)s->part[c];
        s->part[c] = 0;
    }
}

static void NAME(column_max)(NAME(column_state) * s, const T *x, int64_t n, int64_t stride,
                             int64_t columns) {
    memset(s, 0, sizeof *s);
    memcpy(s->max, x, (size_t)columns * sizeof *x);
    for (int64_t r = 1; r < n; r++)
        for (int64_t c = 0; c < columns; c += N)
            STORE(s->max + c,
                  NAME(max)(LOAD(s->max + c), NAME(load_live)(x + r * stride + c, columns - c)));
}

/* Sums of exp(x - max) per column; the terms go to `out` unless it is NULL. */
static inline void NAME(column_exp)(NAME(column_state) * s, T *out, const T *x, int64_t n,
                                    int64_t stride, int64_t columns) {
    for (int64_t r = 0; r < n; r++) {
        for (int64_t c = 0; c < columns; c += N) {
            V e = NAME(exp)(NAME(load_live)(x + r * stride + c, columns - c) - LOAD(s->max + c));
            if (out)
                NAME(store_live)(out + r * stride + c, e, columns - c);
            STORE(s->part + c, LOAD(s->part + c) + e);
        }
        if (r % NAME(softmax_depth) == NAME(softmax_depth) - 1)
            NAME(carry)(s, columns);
    }
    NAME(carry)(s, columns);
}

static void NAME(softmax_columns)(void *to, const void *from, int64_t n, int64_t stride,
                                  int64_t columns, bool log) {
    NAME(column_state) s;
    T *out = to;
    const T *x = from;
    NAME(column_max)(&s, x, n, stride, columns);
    if (log)
        NAME(column_exp)(&s, NULL, x, n, stride, columns);
    else
        NAME(column_exp)(&s, out, x, n, stride, columns);
    for (int64_t c = 0; c < columns; c++)
        s.part[c] = (T)(log ? __builtin_log(s.sum[c]) : 1 / s.sum[c]);
    for (int64_t r = 0; r < n; r++, x += stride, out += stride)
        for (int64_t c = 0; c < columns; c += N) {
            int64_t live = columns - c;
            V v = log ? (NAME(load_live)(x + c, live) - LOAD(s.max + c)) - LOAD(s.part + c)
                      : NAME(load_live)(out + c, live) * LOAD(s.part + c);
            NAME(store_live)(out + c, v, live);
        }
}

static void NAME(lse_columns)(void *to, const void *from, int64_t n, int64_t stride,
                              int64_t columns) {
    NAME(column_state) s;
    T *lse = to;
    const T *x = from;
    NAME(column_max)(&s, x, n, stride, columns);
    for (int64_t c = 0; c < columns; c++)
        s.max[c] = s.max[c] - s.max[c] == 0 || s.max[c] != s.max[c] ? s.max[c] : 0;
    NAME(column_exp)(&s, NULL, x, n, stride, columns);
    for (int64_t c = 0; c < columns; c++)
        lse[c] = s.max[c] + (T)__builtin_log(s.sum[c]);
}

static void NAME(scaled_columns)(void *to, const void *from, const void *lses, const void *scales,
                                 int64_t n, int64_t stride, int64_t columns) {
    T *out = to;
    const T *x = from, *lse = lses, *scale = scales;
    for (int64_t r = 0; r < n; r++, x += stride, out += stride)
        for (int64_t c = 0; c < columns; c += N) {
            int64_t live = columns - c;
            V s = NAME(load_live)(scale + c, live);
            V e = NAME(exp)(NAME(load_live)(x + c, live) - NAME(load_live)(lse + c, live)) * s;
            NAME(store_live)(out + c, NAME(select)(s == 0, SPLAT(0), e), live);
        }
}

static void NAME(softmax_backward_columns)(void *to, const void *gs, const void *ys, int64_t n,
                                           int64_t stride, int64_t columns, bool log) {
    NAME(column_state) s;
    T *out = to;
    const T *g = gs, *y = ys;
    memset(&s, 0, sizeof s);
    for (int64_t r = 0; r < n; r++) {
        for (int64_t c = 0; c < columns; c += N) {
            V v = NAME(load_live)(g + r * stride + c, columns - c);
            if (!log)
                v *= NAME(load_live)(y + r * stride + c, columns - c);
            STORE(s.part + c, LOAD(s.part + c) + v);
        }
        if (r % NAME(softmax_depth) == NAME(softmax_depth) - 1)
            NAME(carry)(&s, columns);
    }
    NAME(carry)(&s, columns);
    for (int64_t c = 0; c < columns; c++)
        s.part[c] = (T)s.sum[c];
    for (int64_t r = 0; r < n; r++, g += stride, y += stride, out += stride)
        for (int64_t c = 0; c < columns; c += N) {
            int64_t live = columns - c;
            V gv = NAME(load_live)(g + c, live), yv = NAME(load_live)(y + c, live);
            V total = LOAD(s.part + c);
            NAME(store_live)
            (out + c, log ? gv - NAME(exp)(yv) * total : yv * (gv - total), live);
        }
}

static const td_softmax_functions NAME(softmax_functions) = {
    .rows = NAME(softmax_rows),
    .columns = NAME(softmax_columns),
    .backward_rows = NAME(softmax_backward_rows),
    .backward_columns = NAME(softmax_backward_columns),
    .lse_rows = NAME(lse_rows),
    .lse_columns = NAME(lse_columns),
    .scaled_rows = NAME(scaled_rows),
    .scaled_columns = NAME(scaled_columns),
};

#undef SPLAT
#undef STORE
#undef LOAD
#undef NAME
#undef CAT1
#undef CAT2
#undef T
#undef V
#undef N
#undef P

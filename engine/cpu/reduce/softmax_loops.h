/* softmax_loops.h: softmax and its relatives for one floating type. Included once for each by
 * by_float.h, which says what is defined then.
 *
 * Sums run in C over at most DEPTH vectors or rows and go on in double. What stands for a whole
 * line (log-sum-exp, weights, scales) is of type C.
 */
/* Terms of the sum wait in the result when that is as precise as they are, else in a room of their
 * own as long as they are few. */
#define KEEPS_TERMS (sizeof(T) == sizeof(C))
#define ROOM        (KEEPS_TERMS ? 1 : NAME(softmax_room))

enum { NAME(softmax_depth) = 256, NAME(softmax_room) = 8192 };

/* Elements of a row between two looks for an interrupt, after which the row is left as it is. */
enum { NAME(softmax_stretch) = 1 << 16 };
#define STRETCHES(at, end, n)                                                                      \
    for (int64_t at = 0, end;                                                                      \
         at < (n) && !td_interrupt_poll() &&                                                       \
         (end = (n)-at < NAME(softmax_stretch) ? (n) : at + NAME(softmax_stretch));                \
         at = end)

/* Of columns: is nobody waiting at this row? */
static inline bool NAME(goes_on)(int64_t row) {
    return row % NAME(softmax_depth) != 0 || !td_interrupt_poll();
}

/* Vectors at the end of a row may be part: `live` of their lanes count. */
static inline V NAME(load_live)(const T *p, int64_t live) {
    return live >= N ? LOAD(p) : LOAD_PART(p, live);
}
static inline void NAME(store_live)(T *p, V v, int64_t live) {
    if (live >= N)
        STORE(p, v);
    else
        STORE_PART(p, v, live);
}
static inline V NAME(load_line)(const C *p, int64_t live) {
    return live >= N ? VEC(load)(p) : VEC(load_part)(p, live);
}

/* Where there is a NaN, any of the elements: the sum of the exponentials will be NaN. */
static C NAME(stretch_max)(const T *x, int64_t n) {
    V least = SPLAT(-INFINITY), a = least, b = least;
    int64_t i = 0;
    for (; i + 2 * N <= n; i += 2 * N) {
        a = VEC(greater)(a, LOAD(x + i));
        b = VEC(greater)(b, LOAD(x + i + N));
    }
    for (; i + N <= n; i += N)
        a = VEC(greater)(a, LOAD(x + i));
    if (i < n)
        b = VEC(greater)(b, VEC(head_or)(LOAD_PART(x + i, n - i), n - i, least));
    return VEC(hmax)(VEC(greater)(a, b));
}

static C NAME(row_max)(const T *x, int64_t n) {
    C m = GET(x[0]);
    STRETCHES(at, end, n) {
        C own = NAME(stretch_max)(x + at, end - at);
        m = own > m ? own : m;
    }
    return m;
}

/* Sum of exp(x - m); the terms go to `out` and to `terms` unless these are NULL. */
static inline double NAME(row_exp)(T *out, C *terms, const T *x, int64_t n, C m) {
    double total = 0;
    int64_t i = 0;
    while (i + N <= n && !td_interrupt_poll()) {
        int64_t whole = (n - i) / N;
        int64_t end = i + N * (whole < NAME(softmax_depth) ? whole : NAME(softmax_depth));
        V sum = {0};
        for (; i < end; i += N) {
            V e = VEC(exp)(LOAD(x + i) - m);
            if (out)
                STORE(out + i, e);
            if (terms)
                VEC(store)(terms + i, e);
            sum += e;
        }
        total += VEC(total)(sum);
    }
    if (i < n && i + N > n) {
        V e = VEC(exp)(LOAD_PART(x + i, n - i) - m);
        if (out)
            STORE_PART(out + i, e, n - i);
        if (terms)
            VEC(store_part)(terms + i, e, n - i);
        total += VEC(total)(VEC(head_or)(e, n - i, SPLAT(0)));
    }
    return total;
}

/* Short rows go step by step in groups, so that none waits for what another one is made of. */
enum { NAME(group) = 8, NAME(short_row) = 512 };
static inline int64_t NAME(rows_at_once)(int64_t rows, int64_t n) {
    int64_t most = n <= NAME(short_row) ? NAME(group) : 1;
    return rows < most ? rows : most;
}

/* From the sums of a group to what is taken from its rows, or what `over` takes. */
static inline void NAME(group_scales)(double *sums, int64_t rows, bool log) {
    if (log && sizeof(C) < sizeof(double)) /* in groups of every size the same */
        for (int64_t r = 0; r < rows; r += VD_N)
            vd_store(sums + r, vd_log(vd_load(sums + r)));
    else
        for (int64_t r = 0; r < rows; r++)
            sums[r] = log                          ? __builtin_log(sums[r])
                      : sizeof(C) < sizeof(double) ? 1 / sums[r]
                                                   : sums[r];
}
/* v over a sum of a group. Of doubles a product with an inverse would be rounded twice. */
static inline V NAME(over)(V v, V scale) {
    return sizeof(C) < sizeof(double) ? v * scale : v / scale;
}

static inline __attribute__((always_inline)) void
NAME(softmax_group)(T *out, const T *x, int64_t rows, int64_t n, bool log) {
    bool kept = KEEPS_TERMS && !log, apart = !KEEPS_TERMS && !log && rows * n <= ROOM;
    C max[NAME(group)], room[ROOM], *terms = apart ? room : NULL;
    double sums[NAME(group)] = {1, 1, 1, 1, 1, 1, 1, 1};
    for (int64_t r = 0; r < rows; r++)
        max[r] = NAME(row_max)(x + r * n, n);
    for (int64_t r = 0; r < rows; r++)
        sums[r] = NAME(row_exp)(kept ? out + r * n : NULL, apart ? terms + r * n : NULL, x + r * n,
                                n, max[r]);
    NAME(group_scales)(sums, rows, log);
    for (int64_t r = 0; r < rows; r++, x += n, out += n) {
        V scale = SPLAT(sums[r]);
        for (int64_t i = 0; i < n && apart; i += N)
            NAME(store_live)
        (out + i, NAME(over)(NAME(load_line)(terms + r * n + i, n - i), scale), n - i);
        if (apart)
            continue;
        STRETCHES(at, end, n)
        for (int64_t i = at; i < end; i += N) {
            V v = kept ? NAME(load_live)(out + i, n - i) : NAME(load_live)(x + i, n - i) - max[r];
            v = log ? v - scale : NAME(over)(kept ? v : VEC(exp)(v), scale);
            NAME(store_live)(out + i, v, n - i);
        }
    }
}

static void NAME(softmax_rows)(void *to, const void *from, int64_t rows, int64_t n, bool log) {
    T *out = to;
    const T *x = from;
    for (int64_t some; rows > 0; rows -= some, x += some * n, out += some * n) {
        some = NAME(rows_at_once)(rows, n);
        if (log)
            NAME(softmax_group)(out, x, some, n, true);
        else
            NAME(softmax_group)(out, x, some, n, false);
    }
}

static void NAME(lse_rows)(void *to, const void *from, int64_t rows, int64_t n) {
    C *lse = to, max[NAME(group)];
    const T *x = from;
    for (int64_t some; rows > 0; rows -= some, lse += some) {
        double sums[NAME(group)] = {1, 1, 1, 1, 1, 1, 1, 1};
        some = NAME(rows_at_once)(rows, n);
        for (int64_t r = 0; r < some; r++, x += n) {
            max[r] = NAME(row_max)(x, n);
            C base = max[r] - max[r] == 0 ? max[r] : 0; /* an infinite one would give NaN */
            sums[r] = NAME(row_exp)(NULL, NULL, x, n, base);
            max[r] = max[r] != max[r] ? max[r] : base;
        }
        NAME(group_scales)(sums, some, true);
        for (int64_t r = 0; r < some; r++)
            lse[r] = max[r] + (C)sums[r];
    }
}

static void NAME(scaled_rows)(void *to, const void *from, const void *lses, const void *scales,
                              int64_t rows, int64_t n) {
    T *out = to;
    const T *x = from;
    for (int64_t r = 0; r < rows; r++, x += n, out += n) {
        C lse = ((const C *)lses)[r], scale = ((const C *)scales)[r];
        if (scale == 0) {
            memset(out, 0, (size_t)n * sizeof *out);
            continue;
        }
        STRETCHES(at, end, n)
        for (int64_t i = at; i < end; i += N)
            NAME(store_live)
        (out + i, VEC(exp)(NAME(load_live)(x + i, n - i) - lse) * scale, n - i);
    }
}

/* The sum of g, or of g y. */
static inline double NAME(backward_sum)(const T *g, const T *y, int64_t n, bool log) {
    double total = 0;
    for (int64_t i = 0; i < n && !td_interrupt_poll();) {
        V sum = {0};
        int64_t end = i + N * NAME(softmax_depth) < n ? i + N * NAME(softmax_depth) : n;
        for (; i < end; i += N) { /* lanes beyond the end are zero */
            V v = NAME(load_live)(g + i, n - i);
            sum += log ? v : v * NAME(load_live)(y + i, n - i);
        }
        total += VEC(total)(sum);
    }
    return total;
}

static inline __attribute__((always_inline)) void
NAME(backward_group)(T *out, const T *g, const T *y, int64_t rows, int64_t n, bool log) {
    double sums[NAME(group)];
    for (int64_t r = 0; r < rows; r++)
        sums[r] = NAME(backward_sum)(g + r * n, y + r * n, n, log);
    for (int64_t r = 0; r < rows; r++, g += n, y += n, out += n) {
        V s = SPLAT(sums[r]);
        STRETCHES(at, end, n)
        for (int64_t i = at; i < end; i += N) {
            V gv = NAME(load_live)(g + i, n - i), yv = NAME(load_live)(y + i, n - i);
            NAME(store_live)(out + i, log ? gv - VEC(exp)(yv) * s : yv * (gv - s), n - i);
        }
    }
}

static void NAME(softmax_backward_rows)(void *to, const void *gs, const void *ys, int64_t rows,
                                        int64_t n, bool log) {
    T *out = to;
    const T *g = gs, *y = ys;
    for (int64_t some; rows > 0; rows -= some, g += some * n, y += some * n, out += some * n) {
        some = NAME(rows_at_once)(rows, n);
        if (log)
            NAME(backward_group)(out, g, y, some, n, true);
        else
            NAME(backward_group)(out, g, y, some, n, false);
    }
}

/* ---- columns ---- */

typedef struct NAME(column_state) {
    _Alignas(64) C max[TD_SOFTMAX_WIDTH];
    _Alignas(64) C part[TD_SOFTMAX_WIDTH];
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
    for (int64_t c = 0; c < columns; c++)
        s->max[c] = GET(x[c]);
    for (int64_t r = 1; r < n && NAME(goes_on)(r); r++)
        for (int64_t c = 0; c < columns; c += N)
            VEC(store)
    (s->max + c, VEC(max)(VEC(load)(s->max + c), NAME(load_live)(x + r * stride + c, columns - c)));
}

/* Sums of exp(x - max) per column; the terms go to `out`, or to `terms` row by row, unless these
 * are NULL. */
static inline void NAME(column_exp)(NAME(column_state) * s, T *out, C *terms, const T *x, int64_t n,
                                    int64_t stride, int64_t columns) {
    for (int64_t r = 0; r < n && NAME(goes_on)(r); r++) {
        for (int64_t c = 0; c < columns; c += N) {
            V e =
                VEC(exp)(NAME(load_live)(x + r * stride + c, columns - c) - VEC(load)(s->max + c));
            if (out)
                NAME(store_live)(out + r * stride + c, e, columns - c);
            if (terms)
                VEC(store)(terms + r * TD_SOFTMAX_WIDTH + c, e);
            VEC(store)(s->part + c, VEC(load)(s->part + c) + e);
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
    bool kept = KEEPS_TERMS && !log;
    C room[ROOM], *terms = !KEEPS_TERMS && !log && n * TD_SOFTMAX_WIDTH <= ROOM ? room : NULL;
    NAME(column_exp)(&s, kept ? out : NULL, terms, x, n, stride, columns);
    NAME(group_scales)(s.sum, columns, log);
    for (int64_t c = 0; c < columns; c++)
        s.part[c] = (C)s.sum[c];
    for (int64_t r = 0; r < n && NAME(goes_on)(r); r++, x += stride, out += stride)
        for (int64_t c = 0; c < columns; c += N) {
            int64_t live = columns - c;
            V v = kept    ? NAME(load_live)(out + c, live)
                  : terms ? VEC(load)(terms + r * TD_SOFTMAX_WIDTH + c)
                          : NAME(load_live)(x + c, live) - VEC(load)(s.max + c);
            if (log)
                v -= VEC(load)(s.part + c);
            else
                v = NAME(over)(kept || terms ? v : VEC(exp)(v), VEC(load)(s.part + c));
            NAME(store_live)(out + c, v, live);
        }
}

static void NAME(lse_columns)(void *to, const void *from, int64_t n, int64_t stride,
                              int64_t columns) {
    NAME(column_state) s;
    C *lse = to;
    const T *x = from;
    NAME(column_max)(&s, x, n, stride, columns);
    for (int64_t c = 0; c < columns; c++)
        s.max[c] = s.max[c] - s.max[c] == 0 || s.max[c] != s.max[c] ? s.max[c] : 0;
    NAME(column_exp)(&s, NULL, NULL, x, n, stride, columns);
    NAME(group_scales)(s.sum, columns, true);
    for (int64_t c = 0; c < columns; c++)
        lse[c] = s.max[c] + (C)s.sum[c];
}

static void NAME(scaled_columns)(void *to, const void *from, const void *lses, const void *scales,
                                 int64_t n, int64_t stride, int64_t columns) {
    T *out = to;
    const T *x = from;
    const C *lse = lses, *scale = scales;
    for (int64_t r = 0; r < n && NAME(goes_on)(r); r++, x += stride, out += stride)
        for (int64_t c = 0; c < columns; c += N) {
            int64_t live = columns - c;
            V s = NAME(load_line)(scale + c, live);
            V e = VEC(exp)(NAME(load_live)(x + c, live) - NAME(load_line)(lse + c, live)) * s;
            NAME(store_live)(out + c, VEC(select)(s == 0, SPLAT(0), e), live);
        }
}

static void NAME(softmax_backward_columns)(void *to, const void *gs, const void *ys, int64_t n,
                                           int64_t stride, int64_t columns, bool log) {
    NAME(column_state) s;
    T *out = to;
    const T *g = gs, *y = ys;
    memset(&s, 0, sizeof s);
    for (int64_t r = 0; r < n && NAME(goes_on)(r); r++) {
        for (int64_t c = 0; c < columns; c += N) {
            V v = NAME(load_live)(g + r * stride + c, columns - c);
            if (!log)
                v *= NAME(load_live)(y + r * stride + c, columns - c);
            VEC(store)(s.part + c, VEC(load)(s.part + c) + v);
        }
        if (r % NAME(softmax_depth) == NAME(softmax_depth) - 1)
            NAME(carry)(&s, columns);
    }
    NAME(carry)(&s, columns);
    for (int64_t c = 0; c < columns; c++)
        s.part[c] = (C)s.sum[c];
    for (int64_t r = 0; r < n && NAME(goes_on)(r); r++, g += stride, y += stride, out += stride)
        for (int64_t c = 0; c < columns; c += N) {
            int64_t live = columns - c;
            V gv = NAME(load_live)(g + c, live), yv = NAME(load_live)(y + c, live);
            V total = VEC(load)(s.part + c);
            NAME(store_live)
            (out + c, log ? gv - VEC(exp)(yv) * total : yv * (gv - total), live);
        }
}

/* ---- one class of each line ---- */

/* Lines that are picked before they are summed. */
enum { NAME(picked) = 128 };

/* weight * (lse - x at the class) of n lines from one on. */
static void NAME(pick_some)(C *term, const T *from, const C *lse, const C *weight,
                            const int64_t *class, const td_class_lines *lines, int64_t line,
                            int64_t n) {
    int64_t o = line / lines->inner, i = line % lines->inner;
    const T *x = from + o * lines->outer_step;
    for (int64_t k = 0; k < n; k++) {
        C w = weight[line + k], score = GET(x[class[line + k] * lines -> class_step + i]);
        term[k] = w == 0 ? 0 : w * (lse ? lse[line + k] - score : -score);
        if (++i == lines->inner) {
            i = 0;
            x += lines->outer_step;
        }
    }
}

static double NAME(sum_in_double)(const C *x, int64_t n) {
    double sum[4] = {0};
    int64_t k = 0;
    for (; k + 4 <= n; k += 4)
        for (int w = 0; w < 4; w++)
            sum[w] += (double)x[k + w];
    for (; k < n; k++)
        sum[0] += (double)x[k];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

static double NAME(pick)(void *losses, double *total, const void *x, const void *lse,
                         const void *weights, const int64_t *class, const td_class_lines *lines) {
    T *each = losses;
    const C *weight = weights;
    C term[NAME(picked)];
    double sum = 0;
    int64_t all = lines->outer * lines->inner;
    *total = 0;
    for (int64_t line = 0; line < all && NAME(goes_on)(line); line += NAME(picked)) {
        int64_t n = all - line < NAME(picked) ? all - line : NAME(picked);
        NAME(pick_some)(term, x, lse, weight, class, lines, line, n);
        for (int64_t k = 0; k < n && each; k++)
            each[line + k] = PUT(term[k]);
        sum += NAME(sum_in_double)(term, n);
        *total += NAME(sum_in_double)(weight + line, n);
    }
    return sum;
}

static void NAME(scales)(void *to, const void *weights, const void *gs, int64_t lines, bool each,
                         double divisor) {
    C *scale = to;
    const C *weight = weights;
    const T *g = gs;
    for (int64_t k = 0; k < lines && NAME(goes_on)(k); k++) {
        double product = (double)weight[k] * (double)GET(g[each ? k : 0]);
        scale[k] = weight[k] == 0 ? 0 : (C)(product / divisor);
    }
}

static void NAME(subtract)(void *to, const void *scales, const int64_t *class, int64_t outer,
                           int64_t n, int64_t inner) {
    T *out = to;
    const C *scale = scales;
    for (int64_t o = 0, line = 0; o < outer; o++, out += n * inner)
        for (int64_t i = 0; i < inner && NAME(goes_on)(line); i++, line++) {
            T *at = &out[class[line] * inner + i];
            *at = PUT(GET(*at) - scale[line]);
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
    .pick = NAME(pick),
    .scales = NAME(scales),
    .subtract = NAME(subtract),
};

#undef STRETCHES
#undef KEEPS_TERMS
#undef ROOM

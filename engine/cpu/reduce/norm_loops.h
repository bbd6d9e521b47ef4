/* norm_loops.h: the loops of norm_kernels.h for one floating type. Included once for each by
 * by_float.h, which says what is defined then. */

/* Elements of a part, and how many a row has before it looks for an interrupt. */
enum { NAME(norm_part) = 2048 };

static inline V NAME(take)(const T *p, int64_t live) {
    return live >= N ? LOAD(p) : LOAD_PART(p, live);
}
static inline void NAME(give)(T *p, V v, int64_t live) {
    if (live >= N)
        STORE(p, v);
    else
        STORE_PART(p, v, live);
}
/* Of what stands for elements; `otherwise` where there is none. */
static inline V NAME(factor)(const C *p, int64_t at, int64_t live, C otherwise) {
    return !p ? SPLAT(otherwise) : live >= N ? VEC(load)(p + at) : VEC(load_part)(p + at, live);
}

/* ---- rows ---- */

/* Sums that don't wait for one another. */
enum { NAME(norm_sums) = 4 };

static double NAME(part_sum)(const T *x, int64_t n) {
    V sum[NAME(norm_sums)] = {{0}};
    int64_t i = 0;
    for (; i + NAME(norm_sums) * N <= n; i += NAME(norm_sums) * N)
        for (int k = 0; k < NAME(norm_sums); k++)
            sum[k] += LOAD(x + i + k * N);
    for (; i < n; i += N)
        sum[0] += NAME(take)(x + i, n - i);
    return VEC(total)((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

/* Sums of the deviations from `mean` and of their squares. */
static inline void NAME(part_deviations)(const T *x, int64_t n, C mean, double sums[2]) {
    V plain[NAME(norm_sums)] = {{0}}, squared[NAME(norm_sums)] = {{0}}, m = SPLAT(mean);
    int64_t i = 0;
    for (; i + NAME(norm_sums) * N <= n; i += NAME(norm_sums) * N)
        for (int k = 0; k < NAME(norm_sums); k++) {
            V u = LOAD(x + i + k * N) - m;
            plain[k] += u;
            squared[k] += u * u;
        }
    for (; i + N <= n; i += N) {
        V u = LOAD(x + i) - m;
        plain[0] += u;
        squared[0] += u * u;
    }
    if (i < n) { /* lanes beyond the end hold -mean: left out */
        V u = VEC(head_or)(LOAD_PART(x + i, n - i) - m, n - i, SPLAT(0));
        plain[1] += u;
        squared[1] += u * u;
    }
    sums[0] = VEC(total)((plain[0] + plain[1]) + (plain[2] + plain[3]));
    sums[1] = VEC(total)((squared[0] + squared[1]) + (squared[2] + squared[3]));
}

/* The first sum gives a mean that is near; what is left of it is found with the deviations. */
static void NAME(part_moments)(const T *x, int64_t n, double *mean, double *squares) {
    double sums[2], part = 1 / (double)n;
    C near = (C)(NAME(part_sum)(x, n) * part);
    NAME(part_deviations)(x, n, near, sums);
    *mean = (double)near + sums[0] * part;
    *squares = sums[1] - sums[0] * sums[0] * part;
}

static void NAME(moments)(const void *from, int64_t n, double *moments) {
    const T *x = from;
    double mean = __builtin_nan(""), squares = 0;
    if (n > 0)
        NAME(part_moments)(x, n < NAME(norm_part) ? n : NAME(norm_part), &mean, &squares);
    for (int64_t at = NAME(norm_part); at < n && !td_interrupt_poll(); at += NAME(norm_part)) {
        int64_t len = n - at < NAME(norm_part) ? n - at : NAME(norm_part);
        double there, more, count = (double)len, before = (double)at;
        NAME(part_moments)(x + at, len, &there, &more);
        double apart = there - mean;
        squares += more + apart * apart * (before * count / (before + count));
        mean += apart * (count / (before + count));
    }
    moments[0] = mean;
    moments[1] = squares > 0 || squares != squares ? squares : 0;
}

static double NAME(squares)(const void *from, int64_t n) {
    const T *x = from;
    double sum = 0, sums[2];
    for (int64_t at = 0; at < n && !td_interrupt_poll(); at += NAME(norm_part)) {
        NAME(part_deviations)(x + at, n - at < NAME(norm_part) ? n - at : NAME(norm_part), 0, sums);
        sum += sums[1];
    }
    return sum;
}

static void NAME(sums)(const void *gs, const void *xs, const void *ws, int64_t n, double mean,
                       double *sums) {
    const T *g = gs, *x = xs;
    const C *w = ws;
    V m = SPLAT(mean);
    sums[0] = sums[1] = 0;
    for (int64_t at = 0; at < n && !td_interrupt_poll(); at += NAME(norm_part)) {
        int64_t end = n - at < NAME(norm_part) ? n : at + NAME(norm_part);
        V plain = {0}, against = {0};
        for (int64_t i = at; i < end; i += N) { /* lanes of g beyond the end are zero */
            V v = NAME(take)(g + i, end - i) * NAME(factor)(w, i, end - i, 1);
            V u = NAME(take)(x + i, end - i) - m;
            plain += v;
            against += v * u;
        }
        sums[0] += VEC(total)(plain);
        sums[1] += VEC(total)(against);
    }
}

static void NAME(scale)(void *to, const void *from, const void *ws, const void *bs, int64_t n,
                        double mean, double factor) {
    const T *x = from;
    const C *w = ws, *b = bs;
    T *out = to;
    V m = SPLAT(mean), f = SPLAT(factor);
    int64_t i = 0;
    if (w && b)
        for (; i + N <= n; i += N)
            STORE(out + i, (LOAD(x + i) - m) * f * VEC(load)(w + i) + VEC(load)(b + i));
    for (; i < n; i += N) {
        V y = (NAME(take)(x + i, n - i) - m) * f;
        y = y * NAME(factor)(w, i, n - i, 1);
        NAME(give)(out + i, b ? y + NAME(factor)(b, i, n - i, 0) : y, n - i);
    }
}

/* ---- short rows, as columns ---- */

static void NAME(tile_moments)(const T *x, const td_norm_tile *t, V *mean, V *squares) {
    V near = {0}, rest = {0}, sum = {0}, part = SPLAT(1.0 / (double)t->n);
    for (int64_t c = 0; c < t->n && t->centered; c++)
        near += LOAD(x + c * TD_NORM_WIDTH);
    near = near * part;
    for (int64_t c = 0; c < t->n; c++) {
        V u = LOAD(x + c * TD_NORM_WIDTH) - near;
        rest += u;
        sum += u * u;
    }
    V spread = sum - rest * rest * part; /* rounding may leave less than nothing */
    *mean = t->centered ? near + rest * part : near;
    *squares = t->centered ? VEC(select)(spread < 0, SPLAT(0), spread) : sum;
}

static void NAME(tile)(void *tile, const td_norm_tile *t, void *means, void *rstds) {
    const C *w = t->weight, *b = t->bias;
    C *to_mean = means, *to_rstd = rstds;
    T *x = tile;
    for (int64_t r = 0; r < TD_NORM_WIDTH; r += N, x += N) {
        V mean, squares;
        NAME(tile_moments)(x, t, &mean, &squares);
        V rstd = SPLAT(1) / VEC(sqrt)(squares * SPLAT(1.0 / (double)t->n) + SPLAT(t->eps));
        VEC(store)(to_mean + r, mean);
        VEC(store)(to_rstd + r, rstd);
        for (int64_t c = 0; c < t->n; c++) {
            V y = (LOAD(x + c * TD_NORM_WIDTH) - mean) * rstd;
            y = w ? y * SPLAT(w[c]) : y;
            STORE(x + c * TD_NORM_WIDTH, b ? y + SPLAT(b[c]) : y);
        }
    }
}

static void NAME(back)(void *to, const void *gs, const void *xs, const void *ws, int64_t n,
                       const double *k) {
    const T *g = gs, *x = xs;
    const C *w = ws;
    T *out = to;
    V k0 = SPLAT(k[0]), k1 = SPLAT(k[1]), k2 = SPLAT(k[2]), k3 = SPLAT(k[3]);
    for (int64_t i = 0; i < n; i += N) {
        V y = k3;
        if (x)
            y += (NAME(take)(x + i, n - i) - k1) * k2;
        if (g)
            y += NAME(take)(g + i, n - i) * NAME(factor)(w, i, n - i, 1) * k0;
        NAME(give)(out + i, y, n - i);
    }
}

static void NAME(gather)(void *dws, void *dbs, const void *gs, const void *xs, int64_t n,
                         double mean, double factor) {
    const T *g = gs, *x = xs;
    C *dw = dws, *db = dbs;
    V m = SPLAT(mean), f = SPLAT(factor);
    int64_t whole = n / N * N;
    for (int64_t i = 0; i < whole; i += N) {
        V v = LOAD(g + i);
        if (dw)
            VEC(store)(dw + i, VEC(load)(dw + i) + v * (LOAD(x + i) - m) * f);
        if (db)
            VEC(store)(db + i, VEC(load)(db + i) + v);
    }
    if (whole < n) {
        int64_t left = n - whole;
        V v = LOAD_PART(g + whole, left), u = LOAD_PART(x + whole, left) - m;
        for (int64_t k = 0; k < left; k++) {
            if (dw)
                dw[whole + k] += v[k] * u[k] * f[k];
            if (db)
                db[whole + k] += v[k];
        }
    }
}

static void NAME(map)(void *to, const void *gs, const void *xs, int64_t n, const void *const *k) {
    const T *g = gs, *x = xs;
    T *out = to;
    for (int64_t i = 0; i < n; i += N) {
        int64_t live = n - i;
        V y = NAME(factor)(k[3], i, live, 0);
        if (x)
            y += (NAME(take)(x + i, live) - NAME(factor)(k[1], i, live, 0)) *
                 NAME(factor)(k[2], i, live, 0);
        if (g)
            y += NAME(take)(g + i, live) * NAME(factor)(k[0], i, live, 0);
        NAME(give)(out + i, y, live);
    }
}

/* ---- columns ---- */

/* Rows of a part, so that it is read a second time from the cache. */
enum { NAME(norm_rows) = 64 };

typedef struct NAME(norm_columns) {
    _Alignas(64) C mean[TD_NORM_WIDTH];
    _Alignas(64) C plain[TD_NORM_WIDTH];
    _Alignas(64) C against[TD_NORM_WIDTH];
} NAME(norm_columns);

/* Sums of the columns of one part, whose means are near. */
static inline void NAME(add_columns)(NAME(norm_columns) * s, const T *x, int64_t rows,
                                     int64_t stride, int64_t width) {
    memset(s->plain, 0, sizeof s->plain);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < width; c += N) {
            V v = NAME(take)(x + r * stride + c, width - c);
            VEC(store)(s->plain + c, VEC(load)(s->plain + c) + v);
        }
    for (int64_t c = 0; c < width; c++)
        s->mean[c] = (C)((double)s->plain[c] / (double)rows);
}

/* Sums of the deviations from s->mean and of their squares. */
static inline void NAME(add_deviations)(NAME(norm_columns) * s, const T *x, int64_t rows,
                                        int64_t stride, int64_t width) {
    memset(s->plain, 0, sizeof s->plain);
    memset(s->against, 0, sizeof s->against);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < width; c += N) {
            V v = NAME(take)(x + r * stride + c, width - c) - VEC(load)(s->mean + c);
            VEC(store)(s->plain + c, VEC(load)(s->plain + c) + v);
            VEC(store)(s->against + c, VEC(load)(s->against + c) + v * v);
        }
}

static void NAME(column_moments)(const void *from, int64_t rows, int64_t stride, int64_t width,
                                 double *moments) {
    const T *x = from;
    NAME(norm_columns) s;
    memset(&s, 0, sizeof s);
    memset(moments, 0, (size_t)width * 2 * sizeof *moments);
    for (int64_t at = 0; at < rows && !td_interrupt_poll(); at += NAME(norm_rows)) {
        int64_t len = rows - at < NAME(norm_rows) ? rows - at : NAME(norm_rows);
        double before = (double)at, n = (double)len;
        NAME(add_columns)(&s, x + at * stride, len, stride, width);
        NAME(add_deviations)(&s, x + at * stride, len, stride, width);
        for (int64_t c = 0; c < width; c++) {
            double rest = (double)s.plain[c], apart = (double)s.mean[c] + rest / n - moments[2 * c];
            moments[2 * c + 1] += (double)s.against[c] - rest * rest / n +
                                  apart * apart * (before * n / (before + n));
            moments[2 * c] += apart * (n / (before + n));
        }
    }
    for (int64_t c = 0; c < width; c++)
        if (moments[2 * c + 1] < 0)
            moments[2 * c + 1] = 0;
}

static void NAME(column_sums)(const void *gs, const void *xs, int64_t rows, int64_t stride,
                              int64_t width, const void *means, double *sums) {
    const T *g = gs, *x = xs;
    NAME(norm_columns) s;
    memset(&s, 0, sizeof s);
    memcpy(s.mean, means, (size_t)width * sizeof(C));
    for (int64_t at = 0; at < rows && !td_interrupt_poll(); at += NAME(norm_rows)) {
        int64_t end = rows - at < NAME(norm_rows) ? rows : at + NAME(norm_rows);
        memset(s.plain, 0, sizeof s.plain);
        memset(s.against, 0, sizeof s.against);
        for (int64_t r = at; r < end; r++)
            for (int64_t c = 0; c < width; c += N) {
                V v = NAME(take)(g + r * stride + c, width - c);
                V u = NAME(take)(x + r * stride + c, width - c) - VEC(load)(s.mean + c);
                VEC(store)(s.plain + c, VEC(load)(s.plain + c) + v);
                VEC(store)(s.against + c, VEC(load)(s.against + c) + v * u);
            }
        for (int64_t c = 0; c < width; c++) {
            sums[2 * c] += (double)s.plain[c];
            sums[2 * c + 1] += (double)s.against[c];
        }
    }
}

static const td_norm_functions NAME(norm_functions) = {
    .moments = NAME(moments),
    .squares = NAME(squares),
    .sums = NAME(sums),
    .column_sums = NAME(column_sums),
    .column_moments = NAME(column_moments),
    .scale = NAME(scale),
    .tile = NAME(tile),
    .back = NAME(back),
    .gather = NAME(gather),
    .map = NAME(map),
};

/* factor_loops.h: decompositions of one matrix in float or double. Included once for each by
 * linalg.c with R (the type), SUFFIX (a name) and DTYPE defined; undefines them. */
#define CAT2(a, b) a##_##b
#define CAT1(a, b) CAT2(a, b)
#define NAME(a)    CAT1(a, SUFFIX)

/* What one matrix is done with: memory from one block, and the library. */
typedef struct NAME(desk) {
    const CAT1(td_late_lapack, SUFFIX) * lapack;
    R *a, *b, *c, *values, *work, *panels;
    int *places;
    int nwork, nplaces;
} NAME(desk);

/* ---- matrices in and out ---- */

/* n elements of x, `step` apart, from p. */
static void NAME(load_line)(const td_tensor *x, const char *p, int64_t step, int64_t n, R *to) {
    if (x->dtype == TD_F32)
        for (int64_t k = 0; k < n; k++)
            to[k] = ((const float *)(const void *)p)[k * step];
    else
        for (int64_t k = 0; k < n; k++)
            to[k] = (R)((const double *)(const void *)p)[k * step];
}

/* The other way round; without `from` they become zeros. */
static void NAME(store_line)(const td_tensor *x, char *p, int64_t step, int64_t n, const R *from) {
    if (x->dtype == TD_F32)
        for (int64_t k = 0; k < n; k++)
            ((float *)(void *)p)[k * step] = from ? (float)from[k] : 0;
    else
        for (int64_t k = 0; k < n; k++)
            ((double *)(void *)p)[k * step] = from ? from[k] : 0;
}

/* Matrix `at` of x as columns; transposed on the way where wanted. */
static void NAME(load)(const td_tensor *x, int64_t at, bool transposed, R *to) {
    const char *p = item(x, 2, at);
    int rows = x->ndim - 2 + transposed, columns = x->ndim - 1 - transposed;
    int64_t by_column = x->strides[columns] * (int64_t)td_tensor_itemsize(x);
    for (int64_t c = 0; c < x->sizes[columns]; c++, to += x->sizes[rows])
        NAME(load_line)(x, p + c * by_column, x->strides[rows], x->sizes[rows], to);
}

/* Columns of `ld` elements into matrix `at` of x: all, or a triangle with zeros beside it. */
static void NAME(store)(const td_tensor *x, int64_t at, bool transposed, part which, const R *from,
                        int64_t ld) {
    char *p = item(x, 2, at);
    int64_t rows = x->sizes[x->ndim - 2 + transposed], columns = x->sizes[x->ndim - 1 - transposed];
    int64_t size = (int64_t)td_tensor_itemsize(x);
    int64_t step = x->strides[x->ndim - 2 + transposed];
    int64_t by_column = x->strides[x->ndim - 1 - transposed] * size;
    for (int64_t c = 0; c < columns; c++, p += by_column, from += ld) {
        int64_t begin = which != LOWER ? 0 : c < rows ? c : rows;
        int64_t end = which != UPPER || c >= rows ? rows : c + 1;
        NAME(store_line)(x, p, step, begin, NULL);
        NAME(store_line)(x, p + begin * step * size, step, end - begin, from + begin);
        NAME(store_line)(x, p + end * step * size, step, rows - end, NULL);
    }
}

static void NAME(store_vector)(const td_tensor *x, int64_t at, const R *from, int64_t n) {
    NAME(store_line)(x, item(x, 1, at), x->strides[x->ndim - 1], n, from);
}

/* A matrix where it lies; steps in elements. */
typedef struct NAME(lines) {
    R *p;
    int64_t row, column;
} NAME(lines);

/* Matrix `at` of x, whose elements are R; of no tensor: NULL. */
static NAME(lines) NAME(lines_of)(const td_tensor *x, int64_t at) {
    if (!x)
        return (NAME(lines)){0};
    return (NAME(lines)){(R *)(void *)item(x, 2, at), x->strides[x->ndim - 2],
                         x->strides[x->ndim - 1]};
}

static void NAME(fill_unit)(R *to, int64_t n) {
    memset(to, 0, (size_t)(n * n) * sizeof *to);
    for (int64_t k = 0; k < n; k++)
        to[k * (n + 1)] = 1;
}

/* ---- triangles ---- */

/* out = a^-1 b for triangular factors of a, one or two; all n rows. */
typedef struct NAME(triangles) {
    td_product_triangle factors[2];
    const int *places; /* of rows that change places first; or NULL */
    int count;
    int64_t n, k;
    NAME(lines) b, out; /* b: NULL for a unit matrix */
    R *panels;
} NAME(triangles);

/* Columns [first, first + count) of a matrix and a panel's rows, `width` apart. */
static void NAME(pack)(const NAME(triangles) * t, int64_t first, int64_t count, int64_t width,
                       R *x) {
    const NAME(lines) *b = &t->b;
    const R *from = b->p ? b->p + first * b->column : NULL;
    if (!from || count < width)
        memset(x, 0, (size_t)(t->n * width) * sizeof *x);
    if (!from)
        for (int64_t c = 0; c < count; c++)
            x[(first + c) * width + c] = 1;
    else if (b->row == 1)
        td_cpu_turn(x, width, from, b->column, t->n, count, sizeof *x);
    else
        for (int64_t r = 0; r < t->n; r++)
            for (int64_t c = 0; c < count; c++)
                x[r * width + c] = from[r * b->row + c * b->column];
}

static void NAME(unpack)(const NAME(triangles) * t, int64_t first, int64_t count, int64_t width,
                         const R *x) {
    const NAME(lines) *out = &t->out;
    R *to = out->p + first * out->column;
    if (out->row == 1)
        td_cpu_turn(to, out->column, x, width, count, t->n, sizeof *x);
    else
        for (int64_t r = 0; r < t->n; r++)
            for (int64_t c = 0; c < count; c++)
                to[r * out->row + c * out->column] = x[r * width + c];
}

static void NAME(swap_rows)(const NAME(triangles) * t, int64_t count, int64_t width, R *x) {
    for (int64_t r = 0; r < t->n; r++) {
        R *one = x + r * width, *other = x + (t->places[r] - 1) * width;
        for (int64_t c = 0; one != other && c < count; c++) {
            R kept = one[c];
            one[c] = other[c];
            other[c] = kept;
        }
    }
}

static void NAME(solve_panels)(void *ctx, int64_t begin, int64_t end, int worker) {
    const NAME(triangles) *t = ctx;
    int64_t width = td_cpu->product->tile_bytes / (int64_t)sizeof(R);
    (void)worker;
    for (int64_t p = begin; p < end && !td_interrupt_requested(); p++) {
        int64_t first = p * width, count = t->k - first < width ? t->k - first : width;
        R *x = t->panels + first * t->n;
        NAME(pack)(t, first, count, width, x);
        if (t->places)
            NAME(swap_rows)(t, count, width, x);
        for (int f = 0; f < t->count; f++) {
            td_product_triangle one = t->factors[f];
            one.n = t->n;
            one.x = x;
            one.columns = count;
            td_cpu->product->solve[DTYPE](&one);
        }
        NAME(unpack)(t, first, count, width, x);
    }
}

/* An interrupt leaves columns undone, which td_cpu_factor's own loop tells. */
static void NAME(solve_triangles)(NAME(triangles) * t) {
    int64_t width = td_cpu->product->tile_bytes / (int64_t)sizeof(R);
    td_status status = td_parallel_for((t->k + width - 1) / width, t->n * t->n * width / 16,
                                       NAME(solve_panels), t);
    (void)status;
}

/* ---- one matrix ---- */

/* a^-1 b of factors that getrf made. */
static void NAME(solve_factored)(const job *j, const NAME(desk) * d, const R *a, NAME(lines) b,
                                 int64_t k, NAME(lines) out) {
    NAME(triangles)
    t = {.factors = {{.a = a, .a_row = 1, .a_column = j->n, .unit = true},
                     {.a = a, .a_row = 1, .a_column = j->n, .upper = true}},
         .places = d->places,
         .count = 2,
         .n = j->n,
         .k = k,
         .b = b,
         .out = out,
         .panels = d->panels};
    NAME(solve_triangles)(&t);
}

/* Of a singular matrix the result is b, as LAPACK leaves it. */
static int NAME(one_solve)(const job *j, const NAME(desk) * d, int64_t at) {
    td_tensor *out = j->plan->out[0];
    NAME(load)(j->plan->a, at, false, d->a);
    if (j->n == 0 || j->k == 0)
        return 0;
    int info = d->lapack->getrf(j->n, j->n, d->a, j->n, d->places);
    if (info == 0) {
        NAME(solve_factored)
        (j, d, d->a, NAME(lines_of)(j->plan->b, at), j->k, NAME(lines_of)(out, at));
        return 0;
    }
    if (j->plan->b)
        NAME(load)(j->plan->b, at, false, d->b);
    else
        NAME(fill_unit)(d->b, j->n);
    NAME(store)(out, at, false, WHOLE, d->b, j->n);
    return info;
}

static int NAME(one_triangle)(const job *j, const NAME(desk) * d, int64_t at) {
    NAME(lines) a = NAME(lines_of)(j->plan->a, at);
    NAME(triangles)
    t = {.factors = {{.a = a.p,
                      .a_row = a.row,
                      .a_column = a.column,
                      .upper = j->plan->upper,
                      .unit = j->plan->unit}},
         .count = 1,
         .n = j->n,
         .k = j->k,
         .b = NAME(lines_of)(j->plan->b, at),
         .out = NAME(lines_of)(j->plan->out[0], at),
         .panels = d->panels};
    if (j->n > 0 && j->k > 0)
        NAME(solve_triangles)(&t);
    return 0;
}

static int NAME(one_cholesky)(const job *j, const NAME(desk) * d, int64_t at) {
    NAME(load)(j->plan->a, at, j->plan->upper, d->a);
    int info = j->n > 0 ? d->lapack->potrf(j->n, d->a, j->n) : 0;
    NAME(store)(j->plan->out[0], at, j->plan->upper, LOWER, d->a, j->n);
    return info;
}

static int NAME(one_qr)(const job *j, const NAME(desk) * d, int64_t at) {
    td_tensor *q = j->plan->out[0], *r = j->plan->out[1];
    NAME(load)(j->plan->a, at, false, d->a);
    if (j->least > 0)
        d->lapack->geqrf(j->m, j->n, d->a, j->m, d->values, d->work, d->nwork);
    NAME(store)(r, at, false, UPPER, d->a, j->m);
    if (!q)
        return 0;
    int columns = (int)q->sizes[q->ndim - 1];
    if (j->least > 0)
        d->lapack->orgqr(j->m, columns, j->least, d->a, j->m, d->values, d->work, d->nwork);
    else
        NAME(fill_unit)(d->a, columns);
    NAME(store)(q, at, false, WHOLE, d->a, j->m);
    return 0;
}

/* LAPACK may look for ever for the values of a matrix that is not. */
static bool NAME(is_finite)(const R *a, size_t n) {
    for (size_t k = 0; k < n; k++)
        if (!isfinite(a[k]))
            return false;
    return true;
}

/* Into b (u), values (s), c (vh). */
static int NAME(decompose)(const job *j, const NAME(desk) * d, char mode) {
    int v_rows = mode == 'A' ? j->n : j->least;
    if (!NAME(is_finite)(d->a, (size_t)j->m * (size_t)j->n))
        return NOT_FINITE;
    if (j->least > 0)
        return d->lapack->gesdd(mode, j->m, j->n, d->a, j->m, d->values, d->b, j->m, d->c,
                                mode == 'N' ? 1 : v_rows, d->work, d->nwork, d->places);
    if (mode == 'A') {
        NAME(fill_unit)(d->b, j->m);
        NAME(fill_unit)(d->c, j->n);
    }
    return 0;
}

static int NAME(one_svd)(const job *j, const NAME(desk) * d, int64_t at) {
    const td_factor_plan *p = j->plan;
    char mode = !p->out[0] ? 'N' : p->full ? 'A' : 'S';
    NAME(load)(p->a, at, false, d->a);
    int info = NAME(decompose)(j, d, mode);
    if (info)
        return info;
    NAME(store_vector)(p->out[1], at, d->values, j->least);
    if (p->out[0]) {
        NAME(store)(p->out[0], at, false, WHOLE, d->b, j->m);
        NAME(store)(p->out[2], at, false, WHOLE, d->c, p->full ? j->n : j->least);
    }
    return info;
}

/* Values lie ascending; vectors replace the matrix. */
static int NAME(one_eigh)(const job *j, const NAME(desk) * d, int64_t at) {
    const td_factor_plan *p = j->plan;
    NAME(load)(p->a, at, p->upper, d->a);
    int info = 0;
    if (!NAME(is_finite)(d->a, (size_t)j->n * (size_t)j->n))
        return NOT_FINITE;
    if (j->n > 0)
        info = d->lapack->syevd(p->out[1] != NULL, j->n, d->a, j->n, d->values, d->work, d->nwork,
                                d->places, d->nplaces);
    NAME(store_vector)(p->out[0], at, d->values, j->n);
    if (p->out[1])
        NAME(store)(p->out[1], at, false, WHOLE, d->a, j->n);
    return info;
}

static void NAME(lay)(NAME(desk) * d, const job *j, R *block) {
    R **parts[PARTS] = {&d->a, &d->b, &d->c, &d->values, &d->work, &d->panels};
    for (int k = 0; k < PARTS; k++) {
        *parts[k] = block;
        block += j->counts[k];
    }
    d->places = (int *)block;
    d->nwork = (int)j->counts[4];
    d->nplaces = (int)j->nplaces;
}

typedef int (*NAME(doing))(const job *j, const NAME(desk) * d, int64_t at);

static void NAME(do_part)(const stretch *p, NAME(doing) one) {
    const job *j = p->job;
    NAME(desk) d;
    td_blas_call blas;
    size_t reals = 1 + (j->nplaces * sizeof(int) + sizeof(R) - 1) / sizeof(R);
    for (int k = 0; k < PARTS; k++)
        reals += j->counts[k];
    R *block = td_malloc(reals * sizeof *block);
    if (block)
        NAME(lay)(&d, j, block);
    for (int64_t at = p->begin; at < p->end; at++) {
        if (block) {
            d.lapack = &td_blas_begin(&blas)->CAT1(of, SUFFIX);
            j->info[at] = one(j, &d, at);
            td_blas_end(&blas);
        } else {
            j->info[at] = NO_MEMORY;
        }
    }
    td_free(block);
}

#undef R
#undef SUFFIX
#undef DTYPE
#undef NAME
#undef CAT1
#undef CAT2

/* factor_loops.h: decompositions of one matrix in float or double. Included once for each by
 * linalg.c with R (the type), SUFFIX (a name) and DTYPE defined; undefines them. */
#define CAT2(a, b) a##_##b
#define CAT1(a, b) CAT2(a, b)
#define NAME(a)    CAT1(a, SUFFIX)

/* What one matrix is done with: memory from one block, and the library. */
typedef struct NAME(desk) {
    const CAT1(td_late_lapack, SUFFIX) * lapack;
    R *a, *b, *c, *values, *work;
    char *room; /* of our own decompositions */
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

/* Matrix `at` of x, or its transpose, as columns. */
static void NAME(load)(const td_tensor *x, int64_t at, bool transposed, R *to) {
    int down = x->ndim - 2 + transposed, across = x->ndim - 1 - transposed;
    int64_t rows = x->sizes[down], columns = x->sizes[across],
            size = (int64_t)td_tensor_itemsize(x);
    int64_t step = x->strides[down], by_column = x->strides[across];
    const char *p = item(x, 2, at);
    if (x->dtype == DTYPE && by_column == 1 && step != 1)
        turn_blocks((char *)to, rows, p, step, columns, rows, WHOLE, size);
    else
        for (int64_t c = 0; c < columns; c++, to += rows)
            NAME(load_line)(x, p + c * by_column * size, step, rows, to);
}

/* Columns of `ld` elements into matrix `at` of x: all, or a triangle with zeros beside it. */
static void NAME(store)(const td_tensor *x, int64_t at, bool transposed, part which, const R *from,
                        int64_t ld) {
    int down = x->ndim - 2 + transposed, across = x->ndim - 1 - transposed;
    int64_t rows = x->sizes[down], columns = x->sizes[across],
            size = (int64_t)td_tensor_itemsize(x);
    int64_t step = x->strides[down], by_column = x->strides[across] * size;
    char *p = item(x, 2, at);
    if (x->dtype == DTYPE && x->strides[across] == 1 && step != 1) {
        turn_blocks(p, step, (const char *)from, ld, rows, columns, which, size);
        for (int64_t r = 0; r < rows && which != WHOLE; r++) {
            int64_t end = r < columns ? r : columns, begin = r < columns ? r + 1 : columns;
            char *row = p + r * step * size;
            memset(which == UPPER ? row : row + begin * size, 0,
                   (size_t)((which == UPPER ? end : columns - begin) * size));
        }
        return;
    }
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

/* Matrix `at` of x, whose elements are R; of no tensor: NULL. */
static td_factor_lines NAME(lines_of)(const td_tensor *x, int64_t at) {
    if (!x)
        return (td_factor_lines){0};
    return (td_factor_lines){item(x, 2, at), x->strides[x->ndim - 2], x->strides[x->ndim - 1]};
}

static void NAME(fill_unit)(R *to, int64_t n) {
    memset(to, 0, (size_t)(n * n) * sizeof *to);
    for (int64_t k = 0; k < n; k++)
        to[k * (n + 1)] = 1;
}

/* ---- one matrix ---- */

/* Row-major a becomes its factors. */
static int NAME(lu)(const job *j, const NAME(desk) * d, R *a) {
    return td_factor_lu(DTYPE, j->n, a, d->places, d->room);
}

/* Pivot k of such factors; its sign says whether rows changed places for it. */
static R NAME(pivot)(const job *j, const NAME(desk) * d, const R *a, int64_t k) {
    R pivot = a[k * (j->n + 1)];
    return d->places[k] == k ? pivot : -pivot;
}

/* a^-1 b of such factors; b itself where there are none. */
static void NAME(solve_factored)(const job *j, const NAME(desk) * d, const R *a, td_factor_lines b,
                                 int64_t k, td_factor_lines out) {
    td_factor_system s = {.dtype = DTYPE,
                          .n = j->n,
                          .k = k,
                          .factors = {{.a = a, .a_row = j->n, .a_column = 1, .unit = true},
                                      {.a = a, .a_row = j->n, .a_column = 1, .upper = true}},
                          .count = a ? 2 : 0,
                          .places = a ? d->places : NULL,
                          .b = b,
                          .out = out,
                          .room = d->room};
    td_factor_solve(&s);
}

/* Of a singular matrix the result is b, as LAPACK leaves it. */
static int NAME(one_solve)(const job *j, const NAME(desk) * d, int64_t at) {
    NAME(load)(j->plan->a, at, true, d->a);
    int info = NAME(lu)(j, d, d->a);
    NAME(solve_factored)
    (j, d, info ? NULL : d->a, NAME(lines_of)(j->plan->b, at), j->k,
     NAME(lines_of)(j->plan->out[0], at));
    return info;
}

static int NAME(one_triangle)(const job *j, const NAME(desk) * d, int64_t at) {
    td_factor_lines a = NAME(lines_of)(j->plan->a, at);
    td_factor_system s = {.dtype = DTYPE,
                          .n = j->n,
                          .k = j->k,
                          .factors = {{.a = a.p,
                                       .a_row = a.row,
                                       .a_column = a.column,
                                       .upper = j->plan->upper,
                                       .unit = j->plan->unit}},
                          .count = 1,
                          .b = NAME(lines_of)(j->plan->b, at),
                          .out = NAME(lines_of)(j->plan->out[0], at),
                          .room = d->room};
    td_factor_solve(&s);
    return 0;
}

/* The upper factor in rows is the lower one in columns. */
static int NAME(one_cholesky)(const job *j, const NAME(desk) * d, int64_t at) {
    NAME(load)(j->plan->a, at, j->plan->upper, d->a);
    int info = td_factor_cholesky(DTYPE, j->n, d->a, d->room);
    NAME(store)(j->plan->out[0], at, j->plan->upper, LOWER, d->a, j->n);
    return info;
}

/* By the pivots, `apart` elements from each other, whose signs say that rows changed places. */
static void NAME(store_det)(const job *j, int64_t at, const R *pivots, int64_t apart) {
    double det = 1, sign = 1, logarithm = 0;
    for (int64_t k = 0; k < j->n; k++) {
        double pivot = (double)pivots[k * apart];
        det *= pivot;
        sign *= pivot > 0 ? 1 : pivot < 0 ? -1 : pivot;
        logarithm += log(fabs(pivot));
    }
    const double numbers[] = {det, sign, logarithm};
    for (int k = 0; k < 3; k++)
        td_store_double((td_dtype)j->plan->out[k]->dtype, item(j->plan->out[k], 0, at), numbers[k]);
}

/* A singular matrix has a determinant. */
static int NAME(one_det)(const job *j, const NAME(desk) * d, int64_t at) {
    NAME(load)(j->plan->a, at, true, d->a);
    NAME(lu)(j, d, d->a);
    for (int64_t k = 0; k < j->n; k++)
        d->a[k * (j->n + 1)] = NAME(pivot)(j, d, d->a, k);
    NAME(store_det)(j, at, d->a, j->n + 1);
    return 0;
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

/* ---- few rows ---- */

enum { NAME(few_elements) = TD_FACTOR_FEW * TD_FACTOR_FEW * TD_FACTOR_LANES };

/* Matrices [at, at + count) of x as rows, one behind the other; of no tensor: unit matrices. */
static void NAME(gather)(const job *j, const td_tensor *x, int64_t at, int64_t count, bool upright,
                         R *rows) {
    int64_t each = x ? x->sizes[x->ndim - 2] * x->sizes[x->ndim - 1] : (int64_t)j->n * j->n;
    for (int64_t i = 0; i < count; i++)
        if (x)
            NAME(load)(x, at + i, upright, rows + i * each);
        else
            NAME(fill_unit)(rows + i * each, j->n);
    memset(rows + count * each, 0,
           (size_t)((td_cpu->factor->lanes[DTYPE] - count) * each) * sizeof *rows);
}

/* `each` elements of every matrix to lanes and back. */
static void NAME(to_lanes)(R *lanes, const R *rows, int64_t each) {
    int64_t n = td_cpu->factor->lanes[DTYPE];
    td_cpu_turn(lanes, n, rows, each, each, n, sizeof *rows);
}
static void NAME(from_lanes)(R *rows, const R *lanes, int64_t each) {
    int64_t n = td_cpu->factor->lanes[DTYPE];
    td_cpu_turn(rows, each, lanes, n, n, each, sizeof *rows);
}

/* Matrices [at, at + count), as many as there are lanes. */
static void NAME(do_few)(const job *j, int64_t at, int64_t count) {
    const td_factor_plan *p = j->plan;
    int64_t n = j->n, k = j->k, lanes = td_cpu->factor->lanes[DTYPE];
    R rows[NAME(few_elements)], a[NAME(few_elements)], b[NAME(few_elements)];
    bool cholesky = p->kind == TD_FACTOR_CHOLESKY;
    int first[TD_FACTOR_LANES];
    NAME(gather)(j, p->a, at, count, cholesky ? p->upper : true, rows);
    NAME(to_lanes)(a, rows, n * n);
    if (cholesky) {
        td_cpu->factor->cholesky_few[DTYPE](a, n, first);
        NAME(from_lanes)(rows, a, n * n);
    } else {
        if (p->kind == TD_FACTOR_SOLVE) {
            NAME(gather)(j, p->b, at, count, true, rows);
            NAME(to_lanes)(b, rows, n * k);
        }
        td_cpu->factor->solve_few[DTYPE](a, b, n, k, first);
    }
    for (int64_t i = 0; i < count && p->kind == TD_FACTOR_DET; i++)
        NAME(store_det)(j, at + i, a + i, (n + 1) * lanes);
    if (p->kind == TD_FACTOR_SOLVE) { /* of singular matrices the result is b */
        for (int64_t i = 0; i < lanes; i++)
            for (int64_t e = 0; first[i] && e < n * k; e++)
                b[e * lanes + i] = rows[i * n * k + e];
        NAME(from_lanes)(rows, b, n * k);
    }
    for (int64_t i = 0; i < count && p->kind != TD_FACTOR_DET; i++)
        NAME(store)
    (p->out[0], at + i, cholesky ? p->upper : true, cholesky ? LOWER : WHOLE,
     rows + i * n * (cholesky ? n : k), cholesky ? n : k);
    for (int64_t i = 0; i < count; i++)
        j->info[at + i] = p->kind == TD_FACTOR_DET ? 0 : first[i];
}

static void NAME(do_small)(const stretch *p) {
    int64_t lanes = td_cpu->factor->lanes[DTYPE];
    for (int64_t at = p->begin; at < p->end; at += lanes)
        NAME(do_few)(p->job, at, p->end - at < lanes ? p->end - at : lanes);
}

/* ---- parts of a batch ---- */

static void NAME(lay)(NAME(desk) * d, const job *j, R *block) {
    R **parts[PARTS] = {&d->a, &d->b, &d->c, &d->values, &d->work};
    for (int k = 0; k < PARTS; k++) {
        *parts[k] = block;
        block += j->counts[k];
    }
    d->room = (char *)block;
    block += j->room / sizeof(R);
    d->places = (int *)block;
    d->nwork = (int)j->counts[4];
    d->nplaces = (int)j->nplaces;
}

typedef int (*NAME(doing))(const job *j, const NAME(desk) * d, int64_t at);

static void NAME(do_part)(const stretch *p, NAME(doing) one) {
    const job *j = p->job;
    if (is_small(j)) {
        NAME(do_small)(p);
        return;
    }
    NAME(desk) d;
    td_blas_call blas;
    size_t reals = 1 + j->room / sizeof(R) + (j->nplaces * sizeof(int) + sizeof(R) - 1) / sizeof(R);
    for (int k = 0; k < PARTS; k++)
        reals += j->counts[k];
    td_tensor *block = NULL;
    td_status status = td_room((int64_t)reals, sizeof(R), &block);
    if (status == TD_OK)
        NAME(lay)(&d, j, block->data);
    for (int64_t at = p->begin; at < p->end; at++) {
        if (status) {
            j->info[at] = NO_MEMORY;
        } else if (is_ours(j->plan->kind)) {
            j->info[at] = one(j, &d, at);
        } else {
            d.lapack = &td_blas_begin(&blas)->CAT1(of, SUFFIX);
            j->info[at] = one(j, &d, at);
            td_blas_end(&blas);
        }
    }
    td_release(block);
}

#undef R
#undef SUFFIX
#undef DTYPE
#undef NAME
#undef CAT1
#undef CAT2

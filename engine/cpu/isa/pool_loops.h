/* pool_loops.h: pooling for one floating type. Included by pool_kernels.c with these defined;
 * undefines them:
 *   T, C      the type in memory; float or double, in which it is computed
 *   GET, PUT  an element as a C and back
 */
#define CAT2(a, b) a##_##b
#define CAT1(a, b) CAT2(a, b)
#define NAME(name) CAT1(T, name)
#define ADD(to, v) ((to) = PUT(GET(to) + (v)))

/* Windows of 2 x 2 side by side: four loads and three comparisons each, no branches. */
static void NAME(max_pairs)(T *restrict y, int32_t *restrict places, const T *restrict x,
                            const td_pool_windows *p) {
    int32_t w = (int32_t)p->w;
    for (int64_t i = 0; i < p->oh; i++) {
        const T *upper = x + 2 * i * p->w, *lower = upper + p->w;
        T *out = y + i * p->ow;
        int32_t *place = places + i * p->ow, corner = (int32_t)(2 * i * p->w);
        for (int64_t j = 0; j < p->ow; j++) {
            C a = GET(upper[2 * j]), b = GET(upper[2 * j + 1]);
            C c = GET(lower[2 * j]), d = GET(lower[2 * j + 1]);
            bool take_b = b > a || (b != b && a == a), take_d = d > c || (d != d && c == c);
            C first = take_b ? b : a, second = take_d ? d : c;
            bool below = second > first || (second != second && first == first);
            out[j] = PUT(below ? second : first);
            place[j] = corner + (int32_t)(2 * j) + (below ? w + take_d : take_b);
        }
    }
}

static void NAME(max)(void *to, int32_t *places, const void *from, const td_pool_windows *p) {
    T *y = to;
    const T *x = from;
    if (p->pairs) {
        NAME(max_pairs)(y, places, x, p);
        return;
    }
    for (int64_t i = 0; i < p->oh; i++)
        for (int64_t j = 0; j < p->ow; j++) {
            C best = -(C)INFINITY;
            int64_t place = p->row_begin[i] * p->w + p->column_begin[j];
            for (int64_t r = p->row_begin[i]; r < p->row_end[i]; r += p->row_step)
                for (int64_t c = p->column_begin[j]; c < p->column_end[j]; c += p->column_step) {
                    C v = GET(x[r * p->w + c]);
                    if (v > best || (v != v && best == best)) {
                        best = v;
                        place = r * p->w + c;
                    }
                }
            y[i * p->ow + j] = PUT(best);
            places[i * p->ow + j] = (int32_t)place;
        }
}

static void NAME(scatter)(void *to, const int32_t *places, const void *from, int64_t n) {
    T *gx = to;
    const T *g = from;
    for (int64_t k = 0; k < n; k++)
        ADD(gx[places[k]], GET(g[k]));
}

static void NAME(mean)(void *to, const void *from, const td_pool_windows *p) {
    T *y = to;
    const T *x = from;
    for (int64_t i = 0; i < p->oh; i++)
        for (int64_t j = 0; j < p->ow; j++) {
            double sum = 0;
            for (int64_t r = p->row_begin[i]; r < p->row_end[i]; r++)
                for (int64_t c = p->column_begin[j]; c < p->column_end[j]; c++)
                    sum += (double)GET(x[r * p->w + c]);
            y[i * p->ow + j] = PUT((C)(sum * p->scale[i * p->ow + j]));
        }
}

static void NAME(mean_backward)(void *to, const void *from, const td_pool_windows *p) {
    T *gx = to;
    const T *g = from;
    for (int64_t i = 0; i < p->oh; i++)
        for (int64_t j = 0; j < p->ow; j++) {
            C share = (C)((double)GET(g[i * p->ow + j]) * p->scale[i * p->ow + j]);
            for (int64_t r = p->row_begin[i]; r < p->row_end[i]; r++)
                for (int64_t c = p->column_begin[j]; c < p->column_end[j]; c++)
                    ADD(gx[r * p->w + c], share);
        }
}

static const td_pool_functions NAME(functions) = {
    .max = NAME(max),
    .scatter = NAME(scatter),
    .mean = NAME(mean),
    .mean_backward = NAME(mean_backward),
};

#undef ADD
#undef NAME
#undef CAT1
#undef CAT2
#undef T
#undef C
#undef GET
#undef PUT

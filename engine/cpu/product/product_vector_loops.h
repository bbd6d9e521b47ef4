/* product_vector_loops.h: products of a vector and a matrix of one floating type. Included by
 * product_kernels.c with these defined; undefines them:
 *   P        a name for the type
 *   T        the type
 *   V, N     vector of T and its lanes; V is also the prefix of the vector's functions
 *   ADD(a, b, c), ADD1   a + b * c of vectors, of scalars; rounded alike
 *   SUM(x)   of the lanes of a vector
 *   SUMS(s, to)   where the set can: the sums of the lanes of SIDE_BY_SIDE vectors at once, as SUM
 *   E        the type in memory where it is another, with LOAD(p), N of its elements as a V,
 *            LOAD2(p, a, b), 2 * N of them in any order that is always the same, and GET(x), one as
 *            a T: there are dot products alone
 *
 * Every sum has four vectors, whatever is beside it: the order of its terms follows from its length
 * alone. They go over into a double after some thousand terms.
 */
#define CAT2(a, b) a##_##b
#define CAT1(a, b) CAT2(a, b)
#define NAME(name) CAT1(P, name)
#define VEC(name)  CAT1(V, name)

#ifndef SUMS
#define SUMS(s, to)                                                                                \
    for (int at = 0; at < SIDE_BY_SIDE; at++)                                                      \
    (to)[at] = SUM((s)[at])
#endif
#ifndef E
#define E              T
#define LOAD(p)        VEC(load)(p)
#define LOAD2(p, a, b) ((a) = VEC(load)(p), (b) = VEC(load)((p) + N))
#define GET(x)         (x)
#define COMBINES
#endif

enum { NAME(run) = 4096 };

/* The dot products of `many` (a constant, 1 or 2) vectors and one row, n <= run: each in the lanes
 * of a vector and, what fills none, in rest. */
static inline __attribute__((always_inline)) void
NAME(dot)(const E *x, int64_t x_stride, const int many, const E *w, int64_t n, V *total, T *rest) {
    V s[2][4] = {{{0}}};
    int64_t k = 0;
    for (; k + 4 * N <= n; k += 4 * N)
#pragma GCC unroll 2
        for (int v = 0; v < 4; v += 2) {
            V left, left2, right, right2;
            LOAD2(w + k + v * N, right, right2);
#pragma GCC unroll 2
            for (int i = 0; i < many; i++) {
                LOAD2(x + i * x_stride + k + v * N, left, left2);
                s[i][v] = ADD(s[i][v], left, right);
                s[i][v + 1] = ADD(s[i][v + 1], left2, right2);
            }
        }
    for (; k + N <= n; k += N) {
        V right = LOAD(w + k);
#pragma GCC unroll 2
        for (int i = 0; i < many; i++)
            s[i][0] = ADD(s[i][0], LOAD(x + i * x_stride + k), right);
    }
#pragma GCC unroll 2
    for (int i = 0; i < many; i++) {
        rest[i] = 0;
        for (int64_t l = k; l < n; l++)
            rest[i] = ADD1(rest[i], GET(x[i * x_stride + l]), GET(w[l]));
        total[i] = (s[i][0] + s[i][1]) + (s[i][2] + s[i][3]);
    }
}

/* Dot products of `many` vectors and `count` (a constant, 1 or SIDE_BY_SIDE) rows, n <= run: one
 * row after the other, in the order of memory, which brings a single stream twice as fast as
 * several short ones; two vectors meet a row that is read, and widened, once. */
static inline __attribute__((always_inline)) void NAME(dots_of)(const td_product_dots *d,
                                                                const E *x, const E *w,
                                                                const int many, const int count,
                                                                int64_t n, double *sums) {
    V total[SIDE_BY_SIDE][2], of[SIDE_BY_SIDE];
    T all[SIDE_BY_SIDE], rest[SIDE_BY_SIDE][2];
#pragma GCC unroll 4
    for (int r = 0; r < count; r++)
        NAME(dot)(x, d->x_stride, many, w + r * d->stride, n, total[r], rest[r]);
#pragma GCC unroll 2
    for (int i = 0; i < many; i++) {
#pragma GCC unroll 4
        for (int r = 0; r < count; r++)
            of[r] = total[r][i];
        if (count == SIDE_BY_SIDE)
            SUMS(of, all);
        else
            all[0] = SUM(of[0]);
#pragma GCC unroll 4
        for (int r = 0; r < count; r++)
            sums[i * d->sums_stride + r] += (double)(all[r] + rest[r][i]);
    }
}

/* The same of rows that fill no vector, which are nothing but rests: four at a time. */
static void NAME(short_dots)(const E *x, const E *w, int64_t stride, int64_t count, int64_t n,
                             double *sums) {
    for (; count >= 4; count -= 4, w += 4 * stride, sums += 4) {
        T rest[4] = {0};
        for (int64_t k = 0; k < n; k++) {
            T left = GET(x[k]);
#pragma GCC unroll 4
            for (int r = 0; r < 4; r++)
                rest[r] = ADD1(rest[r], left, GET(w[r * stride + k]));
        }
        for (int r = 0; r < 4; r++)
            sums[r] = (double)(0 + rest[r]);
    }
    for (; count > 0; count--, w += stride, sums++) {
        T rest = 0;
        for (int64_t k = 0; k < n; k++)
            rest = ADD1(rest, GET(x[k]), GET(w[k]));
        *sums = (double)(0 + rest);
    }
}

static inline __attribute__((always_inline)) void
NAME(dots_with)(const td_product_dots *d, const E *x, const int many, double *sums) {
    const E *w = d->rows;
    int64_t count = d->count;
    for (int i = 0; i < many; i++)
        for (int64_t r = 0; r < count; r++)
            sums[i * d->sums_stride + r] = 0;
    for (; count > 0; count -= SIDE_BY_SIDE, w += SIDE_BY_SIDE * d->stride, sums += SIDE_BY_SIDE)
        for (int64_t k = 0; k < d->n; k += NAME(run)) {
            int64_t len = d->n - k < NAME(run) ? d->n - k : NAME(run);
            if (count >= SIDE_BY_SIDE)
                NAME(dots_of)(d, x + k, w + k, many, SIDE_BY_SIDE, len, sums);
            else
                for (int64_t r = 0; r < count; r++)
                    NAME(dots_of)(d, x + k, w + r * d->stride + k, many, 1, len, sums + r);
        }
}

static void NAME(dots)(const td_product_dots *d) {
    const E *x = d->x;
    double *sums = d->sums;
    for (int64_t left = d->vectors; left > 0; left -= 2) {
        const int64_t many = left < 2 ? left : 2;
        for (int64_t i = 0; d->n < N && i < many; i++) {
            const E *one = x + i * d->x_stride;
            NAME(short_dots)(one, d->rows, d->stride, d->count, d->n, sums + i * d->sums_stride);
        }
        if (d->n >= N && many == 2) {
            NAME(dots_with)(d, x, 2, sums);
        } else if (d->n >= N) {
            NAME(dots_with)(d, x, 1, sums);
        }
        x += 2 * d->x_stride;
        sums += 2 * d->sums_stride;
    }
}

#ifdef COMBINES
/* One row after the other, as memory has them; the sums stay in the first-level cache. */
static void NAME(combine)(void *to, const void *factors, const void *rows, int64_t stride,
                          int64_t count, int64_t n) {
    const T *x = factors, *w = rows;
    T *sums = to;
    for (; n > 0; n--, x++, w += stride) {
        V x0 = VEC(set)(x[0]);
        int64_t c = 0;
        for (; c + N <= count; c += N)
            VEC(store)(sums + c, ADD(VEC(load)(sums + c), x0, VEC(load)(w + c)));
        for (; c < count; c++)
            sums[c] = ADD1(sums[c], x[0], w[c]);
    }
}
#endif

#undef CAT2
#undef CAT1
#undef NAME
#undef VEC
#undef P
#undef T
#undef V
#undef N
#undef ADD
#undef ADD1
#undef SUM
#undef SUMS
#undef E
#undef LOAD
#undef LOAD2
#undef GET
#undef COMBINES

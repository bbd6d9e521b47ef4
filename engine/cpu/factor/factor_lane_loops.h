/* factor_lane_loops.h: decompositions of matrices of a few rows, as many at a time as a vector has
 * lanes: each lane holds one matrix. Included by factor_kernels.c with these defined; undefines
 * them:
 *   P        a name for the type
 *   T        the type
 *   V, M, N  vector of T, of its masks, and its lanes; V is also the prefix of its functions
 */
#define CAT2(a, b) a##_##b
#define CAT1(a, b) CAT2(a, b)
#define NAME(name) CAT1(P, name)
#define VEC(name)  CAT1(V, name)

/* Row `row` changes places with those below it for which a lane of `other` is asked for. */
static inline void NAME(exchange)(T *x, int64_t columns, int64_t n, int64_t row, M other) {
    for (int64_t c = 0; c < columns; c++) {
        T *at = x + (row * columns + c) * N;
        V kept = VEC(load)(at), taken = kept;
        for (int64_t r = row + 1; r < n; r++) {
            T *below = x + (r * columns + c) * N;
            M here = (M)(other == (M){0} + (int)r);
            V y = VEC(load)(below);
            taken = VEC(select)(here, y, taken);
            VEC(store)(below, VEC(select)(here, kept, y));
        }
        VEC(store)(at, taken);
    }
}

/* x[row] -= factor * x[from], from column `first` on. */
static inline void NAME(subtract_row)(T *x, int64_t columns, int64_t row, int64_t from,
                                      int64_t first, V factor) {
    for (int64_t c = first; c < columns; c++) {
        T *at = x + (row * columns + c) * N;
        V y = VEC(load)(x + (from * columns + c) * N);
        VEC(store)(at, VEC(fma)(-factor, y, VEC(load)(at)));
    }
}

static void NAME(solve_few)(void *matrices, void *sides, int64_t n, int64_t k, int *first) {
    T *a = matrices, *b = sides;
    M without = {0}, exchanged[TD_FACTOR_FEW];
    for (int64_t step = 0; step < n; step++) {
        M other = (M){0} + (int)step;
        V best = VEC(abs)(VEC(load)(a + (step * n + step) * N));
        for (int64_t r = step + 1; r < n; r++) {
            V x = VEC(abs)(VEC(load)(a + (r * n + step) * N));
            M larger = (M)(x > best);
            best = VEC(select)(larger, x, best);
            other = (larger & ((M){0} + (int)r)) | (~larger & other);
        }
        exchanged[step] = other != (M){0} + (int)step;
        NAME(exchange)(a, n, n, step, other);
        NAME(exchange)(b, k, n, step, other);
        V pivot = VEC(load)(a + (step * n + step) * N);
        M zero = (M)(pivot == (V){0});
        without |= (zero & (without == (M){0})) & ((M){0} + (int)(step + 1));
        for (int64_t r = step + 1; r < n; r++) {
            V factor = VEC(load)(a + (r * n + step) * N) / pivot;
            factor = VEC(select)(zero, (V){0}, factor);
            NAME(subtract_row)(a, n, r, step, step + 1, factor);
            NAME(subtract_row)(b, k, r, step, 0, factor);
        }
    }
    for (int64_t row = n - 1; row >= 0; row--) {
        T *at = a + (row * n + row) * N;
        V pivot = VEC(load)(at);
        for (int64_t c = 0; c < k; c++) {
            T *x = b + (row * k + c) * N;
            VEC(store)(x, VEC(load)(x) / pivot);
        }
        for (int64_t r = 0; r < row; r++)
            NAME(subtract_row)(b, k, r, row, 0, VEC(load)(a + (r * n + row) * N));
        VEC(store)(at, VEC(select)(exchanged[row], -pivot, pivot));
    }
    for (int lane = 0; lane < N; lane++)
        first[lane] = (int)without[lane];
}

static void NAME(cholesky_few)(void *matrices, int64_t n, int *first) {
    T *a = matrices;
    M without = {0};
    for (int64_t step = 0; step < n; step++) {
        T *at = a + (step * n + step) * N;
        V pivot = VEC(load)(at);
        M not_positive = ~(M)(pivot > (V){0});
        without |= (not_positive & (without == (M){0})) & ((M){0} + (int)(step + 1));
        V root = VEC(sqrt)(pivot);
        VEC(store)(at, root);
        for (int64_t c = step + 1; c < n; c++) {
            T *x = a + (step * n + c) * N;
            VEC(store)(x, VEC(load)(x) / root);
        }
        for (int64_t r = step + 1; r < n; r++)
            NAME(subtract_row)(a, n, r, step, r, VEC(load)(a + (step * n + r) * N));
    }
    for (int lane = 0; lane < N; lane++)
        first[lane] = (int)without[lane];
}

#undef P
#undef T
#undef V
#undef M
#undef N
#undef NAME
#undef VEC
#undef CAT1
#undef CAT2

/* product_block_loops.h: products of matrices of one type, kept in registers. Included by
 * product_kernels.c with these defined; undefines them:
 *   P        a name for the type
 *   S, T     the type in memory, and the one in which it is computed
 *   V, N     vector of T and its lanes; V is also the prefix of the vector's functions
 *   ADD(a, b, c)   a + b * c of vectors
 *
 * A tile of ROWS rows and VECTORS vectors of c grows in registers along depth. A panel of b is
 * packed first, where it does not lie that way: its rows then stay in a cache while all rows of a
 * pass by.
 */
#define CAT2(a, b) a##_##b
#define CAT1(a, b) CAT2(a, b)
#define NAME(name) CAT1(P, name)
#define VEC(name)  CAT1(V, name)

enum { NAME(width) = VECTORS * N };

/* One step along depth: a column of a times a row of b. */
#define STEP_ROW(r)                                                                                \
    {                                                                                              \
        V left = VEC(set)((T)a[r][l * step]);                                                      \
        for (int v = 0; v < VECTORS; v++)                                                          \
            sum[r][v] = ADD(sum[r][v], left, right[v]);                                            \
    }

static inline void NAME(tile)(const S *const a[ROWS], int64_t step, const T *b, int64_t b_row,
                              int64_t depth, T *out) {
    V sum[ROWS][VECTORS] = {{{0}}};
    for (int64_t l = 0; l < depth; l++, b += b_row) {
        V right[VECTORS];
        for (int v = 0; v < VECTORS; v++)
            right[v] = VEC(load)(b + v * N);
        STEP_ROW(0)
        STEP_ROW(1)
        STEP_ROW(2)
        STEP_ROW(3)
        STEP_ROW(4)
        STEP_ROW(5)
    }
    for (int r = 0; r < ROWS; r++)
        for (int v = 0; v < VECTORS; v++)
            VEC(store)(out + (r * VECTORS + v) * N, sum[r][v]);
}

/* The panel's columns from `column` on, `depth` rows of them, side by side and filled up with 0. */
static void NAME(pack)(const td_product_block *p, const S *b, int64_t columns, int64_t depth,
                       T *to) {
    for (int64_t l = 0; l < depth; l++, to += NAME(width)) {
        if (p->b_column == 1)
            for (int64_t c = 0; c < columns; c++)
                to[c] = (T)b[l * p->b_row + c];
        else
            for (int64_t c = 0; c < columns; c++)
                to[c] = (T)b[l * p->b_row + c * p->b_column];
        for (int64_t c = columns; c < NAME(width); c++)
            to[c] = 0;
    }
}

/* The sums of a tile to where they belong: on top of the bias, or of what came before. */
static void NAME(deliver)(const td_product_block *p, const T *sums, int64_t row, int64_t rows,
                          int64_t column, int64_t columns, bool first) {
    const S *bias = (const S *)p->bias;
    for (int64_t r = 0; r < rows; r++, sums += NAME(width)) {
        S *c = (S *)p->c + (row + r) * p->c_row + column * p->c_column;
        if (!first)
            for (int64_t k = 0; k < columns; k++)
                c[k * p->c_column] = (S)((T)c[k * p->c_column] + sums[k]);
        else if (bias)
            for (int64_t k = 0; k < columns; k++)
                c[k * p->c_column] = (S)((T)bias[column + k] + sums[k]);
        else if (p->c_column == 1)
            for (int64_t k = 0; k < columns; k++)
                c[k] = (S)sums[k];
        else
            for (int64_t k = 0; k < columns; k++)
                c[k * p->c_column] = (S)sums[k];
    }
}

/* Depth [from, from + depth) of a panel of b for all rows. */
static void NAME(panel)(const td_product_block *p, int64_t column, int64_t columns, int64_t from,
                        int64_t depth) {
    _Alignas(64) T packed[DEPTH * NAME(width)], sums[ROWS * NAME(width)];
    const S *b = (const S *)p->b + from * p->b_row + column * p->b_column;
    const T *right = packed;
    int64_t b_row = NAME(width);
    if (sizeof(S) == sizeof(T) && p->b_column == 1 && columns == NAME(width) &&
        p->rows <= FEW_ROWS) {
        right = (const T *)(const void *)b;
        b_row = p->b_row;
    } else {
        NAME(pack)(p, b, columns, depth, packed);
    }
    for (int64_t row = 0; row < p->rows && !td_interrupt_poll(); row += ROWS) {
        int64_t rows = p->rows - row < ROWS ? p->rows - row : ROWS;
        const S *a[ROWS];
        for (int r = 0; r < ROWS; r++) /* what is over is the last row again */
            a[r] =
                (const S *)p->a + (row + (r < rows ? r : rows - 1)) * p->a_row + from * p->a_column;
        NAME(tile)(a, p->a_column, right, b_row, depth, sums);
        NAME(deliver)(p, sums, row, rows, column, columns, from == 0);
    }
}

static void NAME(block)(const td_product_block *p) {
    for (int64_t column = 0; column < p->columns; column += NAME(width)) {
        int64_t left = p->columns - column, columns = left < NAME(width) ? left : NAME(width);
        for (int64_t from = 0; from < p->depth; from += DEPTH) {
            int64_t depth = p->depth - from < DEPTH ? p->depth - from : DEPTH;
            NAME(panel)(p, column, columns, from, depth);
        }
    }
}

#undef STEP_ROW
#undef CAT2
#undef CAT1
#undef NAME
#undef VEC
#undef P
#undef S
#undef T
#undef V
#undef N
#undef ADD

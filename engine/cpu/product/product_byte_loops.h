/* product_byte_loops.h: products of int8 matrices whose sums are int32. Included by
 * product_kernels.c with these defined; undefines them:
 *   P          a name for the way
 *   EACH       terms that stand side by side in a word of 32 bits: 2 in 16 bits each, or 4 bytes
 *   DOT(c, a, b)   c + the sum of products of the words' terms, in vectors of int32
 *   SHIFTED    1: DOT takes a's bytes for unsigned, so they stand there with 128 added
 *   TARGET     an attribute of functions that use DOT
 *
 * Words of a and of b are packed once for a block, along depth: what is over is filled up with 0.
 */
#define CAT2(a, b) a##_##b
#define CAT1(a, b) CAT2(a, b)
#define NAME(name) CAT1(P, name)

enum { NAME(depth) = WORDS * EACH, NAME(bits) = 32 / EACH };

static inline uint32_t NAME(term)(int8_t x, int place) {
    return (EACH == 4 ? (uint32_t)(uint8_t)x : (uint32_t)(uint16_t)x) << (place * NAME(bits));
}

/* The word at x of `n` terms, which lie `step` apart. */
static inline int32_t NAME(word)(const int8_t *x, int64_t step, int64_t n) {
    uint32_t word = 0;
    for (int k = 0; k < n; k++)
        word |= NAME(term)(x[k * step], k);
    return (int32_t)word;
}

/* `depth` terms, which lie `step` apart, of each of n lines: rows of `width` words. */
static void NAME(pack)(const int8_t *restrict x, int64_t line, int64_t step, int64_t n,
                       int64_t width, int64_t depth, int32_t *restrict to) {
    int64_t whole = depth / EACH, rest = depth % EACH;
    if (n < width)
        memset(to, 0, (size_t)((whole + (rest > 0)) * width) * sizeof *to);
    if (line == 1)
        for (int64_t l = 0; l < whole; l++)
            for (int64_t k = 0; k < n; k++)
                to[l * width + k] = NAME(word)(x + l * EACH * step + k, step, EACH);
    else if (step == 1)
        for (int64_t k = 0; k < n; k++)
            for (int64_t l = 0; l < whole; l++)
                to[l * width + k] = NAME(word)(x + k * line + l * EACH, 1, EACH);
    else
        for (int64_t k = 0; k < n; k++)
            for (int64_t l = 0; l < whole; l++)
                to[l * width + k] = NAME(word)(x + k * line + l * EACH * step, step, EACH);
    for (int64_t k = 0; rest && k < n; k++)
        to[whole * width + k] = NAME(word)(x + k * line + whole * EACH * step, step, rest);
}

/* One step along depth: a word of each row of a times a row of words of b. */
#define STEP_ROW(r)                                                                                \
    {                                                                                              \
        vi left = vi_set(a[r]);                                                                    \
        for (int v = 0; v < VECTORS; v++)                                                          \
            sum[r][v] = DOT(sum[r][v], left, right[v]);                                            \
    }

TARGET static inline void NAME(tile)(const int32_t *a, const int32_t *b, int64_t words,
                                     const vi *start, int32_t *out) {
    vi sum[ROWS][VECTORS];
    for (int r = 0; r < ROWS; r++)
        for (int v = 0; v < VECTORS; v++)
            sum[r][v] = start[v];
    for (int64_t l = 0; l < words; l++, a += ROWS, b += BYTE_COLUMNS) {
        vi right[VECTORS];
        for (int v = 0; v < VECTORS; v++)
            right[v] = vi_load(b + v * VI_N);
        STEP_ROW(0)
        STEP_ROW(1)
        STEP_ROW(2)
        STEP_ROW(3)
        STEP_ROW(4)
        STEP_ROW(5)
    }
    for (int r = 0; r < ROWS; r++)
        for (int v = 0; v < VECTORS; v++)
            vi_store(out + (r * VECTORS + v) * VI_N, sum[r][v]);
}

/* What sums begin with: that which 128 too much in every term of a will add, taken off. */
TARGET static inline void NAME(begin)(const int32_t *b, int64_t words, vi *start) {
    for (int v = 0; v < VECTORS; v++)
        start[v] = vi_set(0);
    for (int64_t l = 0; SHIFTED && l < words; l++)
        for (int v = 0; v < VECTORS; v++)
            start[v] = DOT(start[v], vi_set((int32_t)0x80808080u),
                           vi_load(b + l * BYTE_COLUMNS + v * VI_N));
    for (int v = 0; v < VECTORS; v++)
        start[v] = -start[v];
}

/* The rows of a as words: ROWS of them after one another along depth, then the next. */
static void NAME(pack_rows)(const td_product_block *p, int64_t row, int64_t rows, int64_t from,
                            int64_t depth, int32_t *to) {
    const int8_t *a = (const int8_t *)p->a + row * p->a_row + from * p->a_column;
    int64_t words = (depth + EACH - 1) / EACH;
    for (int64_t r = 0; r < rows; r += ROWS, to += words * ROWS) {
        NAME(pack)
        (a + r * p->a_row, p->a_row, p->a_column, rows - r < ROWS ? rows - r : ROWS, ROWS, depth,
         to);
        for (int64_t k = 0; SHIFTED && k < words * ROWS; k++)
            to[k] ^= (int32_t)0x80808080u;
    }
}

/* Depth [from, from + depth) of the rows that are packed in `left` and of all columns. */
TARGET static void NAME(panel)(const td_product_block *p, const int32_t *left, int64_t row,
                               int64_t rows, int64_t from, int64_t depth) {
    _Alignas(64) int32_t packed[WORDS * BYTE_COLUMNS], sums[ROWS * BYTE_COLUMNS];
    const int8_t *b = (const int8_t *)p->b + from * p->b_row;
    int64_t words = (depth + EACH - 1) / EACH;
    vi start[VECTORS];
    for (int64_t column = 0; column < p->columns; column += BYTE_COLUMNS) {
        int64_t over = p->columns - column, columns = over < BYTE_COLUMNS ? over : BYTE_COLUMNS;
        NAME(pack)
        (b + column * p->b_column, p->b_column, p->b_row, columns, BYTE_COLUMNS, depth, packed);
        NAME(begin)(packed, words, start);
        for (int64_t r = 0; r < rows && !td_interrupt_poll(); r += ROWS) {
            NAME(tile)(left + r * words, packed, words, start, sums);
            deliver_bytes(p, sums, row + r, rows - r < ROWS ? rows - r : ROWS, column, columns,
                          from == 0);
        }
    }
}

TARGET static void NAME(block)(const td_product_block *p) {
    int32_t left[WORDS * BYTE_ROWS];
    for (int64_t row = 0; row < p->rows; row += BYTE_ROWS) {
        int64_t over = p->rows - row, rows = over < BYTE_ROWS ? over : BYTE_ROWS;
        for (int64_t from = 0; from < p->depth; from += NAME(depth)) {
            int64_t behind = p->depth - from;
            int64_t depth = behind < NAME(depth) ? behind : NAME(depth);
            NAME(pack_rows)(p, row, rows, from, depth, left);
            NAME(panel)(p, left, row, rows, from, depth);
        }
    }
}

#undef STEP_ROW
#undef CAT2
#undef CAT1
#undef NAME
#undef P
#undef EACH
#undef DOT
#undef SHIFTED
#undef TARGET

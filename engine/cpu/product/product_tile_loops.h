/* product_tile_loops.h: a tile of a product, kept in registers.
 * Included by product_kernels.c with these defined; undefines them:
 *   P        a name for the type
 *   T        the type
 *   V, N     vector of T and its lanes; V is also the prefix of the vector's functions
 *   ADD(a, b, c)   a + b * c of vectors
 *
 * A loop for each number of rows and of vectors: what is over of a matrix costs what it is.
 */
#define CAT2(a, b) a##_##b
#define CAT1(a, b) CAT2(a, b)
#define NAME(name) CAT1(P, name)
#define VEC(name)  CAT1(V, name)

enum { NAME(tile_width) = VECTORS * N };

/* For each row; for each vector of one: so that no sum is ever told by an index, which would put
 * all of them in memory. */
#define DOWN(row) row(0) row(1) row(2) row(3) row(4) row(5)
#define ACROSS(put, r)                                                                             \
    {put(r, 0)} {put(r, 1)} {put(r, 2)} { put(r, 3) }
#define SUMS(r) V s##r##0 = {0}, s##r##1 = {0}, s##r##2 = {0}, s##r##3 = {0};
#define BEGIN_ROW(r)                                                                               \
    if (rows > (r))                                                                                \
        s##r##0 = s##r##1 = s##r##2 = s##r##3 = VEC(set)(start[r]);
#define START(r, v)                                                                                \
    if (rows > (r) && vectors > (v)) {                                                             \
        __builtin_prefetch(c + (r)*t->c_row + (v)*N, 1);                                           \
    }
#define START_ROW(r)                                                                               \
    const T *a##r = (const T *)t->a + (rows > (r) ? (r)*t->a_row : 0);                             \
    ACROSS(START, r)

/* One step along depth: an element of a row of a times a row of b. */
#define RIGHT(r, v)                                                                                \
    if (vectors > (v)) {                                                                           \
        right##v = VEC(load)(b + (v)*N);                                                           \
        __builtin_prefetch(b + AHEAD * b_row + (v)*N);                                             \
    }
#define STEP(r, v)                                                                                 \
    if (vectors > (v))                                                                             \
        s##r##v = ADD(s##r##v, left, right##v);
#define STEP_ROW(r)                                                                                \
    if (rows > (r)) {                                                                              \
        V left = VEC(set)(a##r[at]);                                                               \
        ACROSS(STEP, r)                                                                            \
    }

/* The sums to where they belong. */
#define PUT(r, v)                                                                                  \
    if (rows > (r) && vectors > (v))                                                               \
        VEC(store)(c + (r)*t->c_row + (v)*N, s##r##v);
#define ADD_BASE(r, v)                                                                             \
    if (rows > (r) && vectors > (v))                                                               \
        s##r##v += VEC(load)(base + (r)*t->base_row + (v)*N);
#define ADD_ADDED(r, v)                                                                            \
    if (rows > (r) && vectors > (v))                                                               \
        s##r##v += VEC(load)(added + (r)*t->c_row + (v)*N);
#define LIMIT(r, v)                                                                                \
    if (rows > (r) && vectors > (v))                                                               \
        s##r##v = VEC(min)(VEC(max)(s##r##v, least), most);
#define PUT_SOME(r, v)                                                                             \
    if (rows > (r) && vectors > (v))                                                               \
        NAME(put_some)                                                                             \
    (c + (r)*t->c_row + (v)*N, base ? base + (r)*t->base_row + (v)*N : NULL, s##r##v,              \
     t->columns - (v)*N);
#define PUT_ROW(r)       ACROSS(PUT, r)
#define ADD_BASE_ROW(r)  ACROSS(ADD_BASE, r)
#define ADD_ADDED_ROW(r) ACROSS(ADD_ADDED, r)
#define LIMIT_ROW(r)     ACROSS(LIMIT, r)
#define PUT_SOME_ROW(r)  ACROSS(PUT_SOME, r)

static inline void NAME(put_some)(T *to, const T *base, V sum, int64_t columns) {
    T some[N];
    VEC(store)(some, sum);
    for (int64_t k = 0; k < N && k < columns; k++)
        to[k] = some[k] + (base ? base[k] : 0);
}

static inline __attribute__((always_inline)) void NAME(grow)(const td_product_tile *t,
                                                             const int rows, const int vectors) {
    const T *b = t->b, *base = t->base, *start = t->start, *added = t->added;
    const td_epilogue *e = td_tile_ends(t, N) ? t->epilogue : NULL;
    T *c = t->c;
    int64_t step = t->a_step, b_row = t->b_row;
    V right0 = {0}, right1 = {0}, right2 = {0}, right3 = {0};
    DOWN(SUMS)
    DOWN(START_ROW)
    if (start) {
        DOWN(BEGIN_ROW)
    }
    /* the rows of the tile below, of which a step asks for as many elements as it reads */
    const T *next = a0 + rows * t->a_row;
    const char *ahead = t->ahead;
    for (int64_t l = 0, at = 0; l < t->depth; l++, b += b_row, at += step, next += rows) {
        if (l % TD_TILE_ASKS == 0)
            for (int64_t k = 0; k < t->lines; k++, ahead += LINE)
                __builtin_prefetch(ahead, 0, 2); /* into the second-level cache */
        __builtin_prefetch(next);
        ACROSS(RIGHT, 0)
        DOWN(STEP_ROW)
    }
    if (t->columns < vectors * N) {
        DOWN(PUT_SOME_ROW)
        return;
    }
    if (base) {
        DOWN(ADD_BASE_ROW)
    }
    if (e && added) {
        DOWN(ADD_ADDED_ROW)
    }
    if (e && e->curve == TD_CURVE_LIMITED) {
        const V least = VEC(set)(e->least), most = VEC(set)(e->most);
        DOWN(LIMIT_ROW)
    }
    DOWN(PUT_ROW)
}

#define OF(rows, vectors)                                                                          \
    static void NAME(grow_##rows##_##vectors)(const td_product_tile *t) {                          \
        NAME(grow)(t, rows, vectors);                                                              \
    }
#define OF_ROWS(vectors)                                                                           \
    OF(1, vectors) OF(2, vectors) OF(3, vectors) OF(4, vectors) OF(5, vectors) OF(6, vectors)
#define ALL_ROWS(vectors)                                                                          \
    {                                                                                              \
        NAME(grow_1_##vectors), NAME(grow_2_##vectors), NAME(grow_3_##vectors),                    \
            NAME(grow_4_##vectors), NAME(grow_5_##vectors), NAME(grow_6_##vectors)                 \
    }
OF_ROWS(1)
OF_ROWS(2)
#if defined(TD_ISA_avx512)
OF_ROWS(3)
OF_ROWS(4)
#endif

static void NAME(tile)(const td_product_tile *t) {
    static const td_product_tile_fn of[VECTORS][ROWS] = {
        ALL_ROWS(1),
        ALL_ROWS(2),
#if defined(TD_ISA_avx512)
        ALL_ROWS(3),
        ALL_ROWS(4),
#endif
    };
    of[(t->columns - 1) / N][t->rows - 1](t);
}

/* ---- triangles ---- */

/* The rows of a tile, whose sums with all other rows are in x: those before each, in the order of
 * solving, are solved and negated. */
static void NAME(solve_rows)(const td_product_triangle *t, int64_t first, int64_t rows) {
    for (int64_t k = 0; k < rows; k++) {
        int64_t r = t->upper ? rows - 1 - k : k;
        const T *a = (const T *)t->a + (first + r) * t->a_row + first * t->a_column;
        T *x = (T *)t->x + first * NAME(tile_width), *row = x + r * NAME(tile_width);
        T scale = t->unit ? -1 : -1 / a[r * t->a_column];
        for (int64_t c = 0; c < t->columns; c += N) {
            V sum = VEC(load)(row + c);
            for (int64_t l = 0; l < k; l++) {
                int64_t q = t->upper ? rows - 1 - l : l;
                sum =
                    ADD(sum, VEC(set)(a[q * t->a_column]), VEC(load)(x + q * NAME(tile_width) + c));
            }
            VEC(store)(row + c, sum * VEC(set)(scale));
        }
    }
}

/* Tile after tile; what has been solved is negated, so that all else adds. */
static void NAME(solve)(const td_product_triangle *t) {
    T *x = t->x;
    int64_t tiles = (t->n + ROWS - 1) / ROWS;
    for (int64_t k = 0; k < tiles && !td_interrupt_poll(); k++) {
        int64_t first = (t->upper ? tiles - 1 - k : k) * ROWS;
        int64_t rows = t->n - first < ROWS ? t->n - first : ROWS;
        int64_t from = t->upper ? first + rows : 0, depth = t->upper ? t->n - from : first;
        td_product_tile tile = {.a = (const T *)t->a + first * t->a_row + from * t->a_column,
                                .b = x + from * NAME(tile_width),
                                .base = x + first * NAME(tile_width),
                                .c = x + first * NAME(tile_width),
                                .rows = rows,
                                .columns = t->columns,
                                .depth = depth,
                                .a_row = t->a_row,
                                .a_step = t->a_column,
                                .b_row = NAME(tile_width),
                                .base_row = NAME(tile_width),
                                .c_row = NAME(tile_width)};
        if (depth > 0)
            NAME(tile)(&tile);
        NAME(solve_rows)(t, first, rows);
    }
}

#undef OF
#undef OF_ROWS
#undef ALL_ROWS
#undef DOWN
#undef ACROSS
#undef SUMS
#undef BEGIN_ROW
#undef START
#undef START_ROW
#undef RIGHT
#undef STEP
#undef STEP_ROW
#undef PUT
#undef ADD_BASE
#undef ADD_ADDED
#undef LIMIT
#undef PUT_SOME
#undef PUT_ROW
#undef ADD_BASE_ROW
#undef ADD_ADDED_ROW
#undef LIMIT_ROW
#undef PUT_SOME_ROW
#undef CAT2
#undef CAT1
#undef NAME
#undef VEC
#undef P
#undef T
#undef V
#undef N
#undef ADD

/* test_cpu_amx.c: products of bytes by AMX's tiles: the loops of engine/cpu/quantized/amx_loops.h
 * with instructions that plain C plays, so that they are tested on every processor, against plain
 * sums; linear layers and convolutions by them against those without; and on a processor that has
 * them, its own. */
#include "tests/unit/cpu/played_amx.h"

#include "engine/cpu/isa/isa.h"
#include "engine/cpu/quantized/amx_loops.h"
#include "engine/td.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COLUMNS = 16, FOUR = 4, PANEL_GROUP = COLUMNS * FOUR };

static uint64_t seed = 5;

static uint64_t next(void) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return seed >> 33;
}

/* Bytes of which many are at the ends of their range. */
static void fill(void *to, int64_t n, const uint8_t *ends) {
    for (int64_t k = 0; k < n; k++)
        ((uint8_t *)to)[k] = next() % 4 == 0 ? ends[next() % 2] : (uint8_t)next();
}

static bool usable(void) {
    return true;
}
/* Tiles of more rows than x has would read behind it. */
static void checked_tile(const td_byte_tile *t) {
    CHECK_INT(played.rows[0] + played.rows[2], t->rows);
    amx_tile(t);
}
static const td_amx_kernels by_played = {usable, amx_configure, checked_tile, amx_release};

/* ---- byte tiles ---- */

/* Parts of the depth, of which the one in the middle is not multiplied. */
enum { PARTS = 3 };
static const td_byte_part outer[] = {{0, 0, 0}, {2, 2, 0}};

static int32_t sum_of(const td_byte_tile *t, int row, int column) {
    int32_t sum = 0;
    for (int64_t i = 0; i < t->count; i++) {
        const uint8_t *x = td_byte_tile_part(t, row, &t->which[i]);
        const int8_t *w =
            t->weights + (column / COLUMNS * t->groups + t->which[i].part * t->each) * PANEL_GROUP;
        for (int64_t k = 0; k < t->each * FOUR; k++)
            sum += x[k] * w[k / FOUR * PANEL_GROUP + column % COLUMNS * FOUR + k % FOUR];
    }
    return sum;
}

/* Rows lie `step` bytes apart, or in pairs that have changed places. The memory of x and the
 * weights ends with their last byte, so that tools see what is read behind them; a row of sums
 * stands behind the last. */
static void check_tile(const td_amx_kernels *amx, int rows, int panels, int64_t each, int parts,
                       int64_t step, bool swapped) {
    const int64_t width = (int64_t)panels * COLUMNS, groups = parts * each;
    const size_t x_bytes = (size_t)((rows * parts - 1) * step + each * FOUR);
    const size_t w_bytes = (size_t)(panels * groups * PANEL_GROUP);
    uint8_t *x = malloc(x_bytes);
    int8_t *w = aligned_alloc(64, w_bytes);
    int32_t *sums = malloc(sizeof *sums * (size_t)((rows + 1) * width));
    const uint8_t *taps[TD_AMX_TILE_ROWS * PARTS];
    int64_t wrong = 0;
    fill(x, (int64_t)x_bytes, (const uint8_t[]){0, 255});
    fill(w, (int64_t)w_bytes, (const uint8_t[]){0x80, 0x7f});
    memset(sums, 77, sizeof *sums * (size_t)((rows + 1) * width));
    for (int r = 0; r < rows; r++)
        for (int k = 0; k < parts; k++)
            taps[r * parts + k] = x + (k * rows + (swapped && (r ^ 1) < rows ? r ^ 1 : r)) * step;
    td_byte_tile t = {.taps = taps,
                      .which = outer,
                      .apart = parts,
                      .count = parts == 1 ? 1 : 2,
                      .each = each,
                      .rows = rows,
                      .panels = panels,
                      .weights = w,
                      .groups = groups,
                      .sums = sums};
    amx->configure(rows);
    amx->tile(&t);
    amx->tile(&t); /* tiles stay configured, and sums begin anew */
    amx->release();
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < width; c++)
            wrong += sums[r * width + c] != sum_of(&t, r, c);
    for (int c = 0; c < width; c++)
        wrong += sums[rows * width + c] != 0x4d4d4d4d;
    if (!CHECK_INT(wrong, 0))
        fprintf(stderr, "%d rows, %d panels, %d parts of %lld groups%s\n", rows, panels, parts,
                (long long)each, swapped ? ", swapped" : "");
    free(x);
    free(w);
    free(sums);
}

static void check_tiles(const td_amx_kernels *amx) {
    static const int64_t groups[] = {16, 17, 31, 32, 37, 64};
    for (int rows = 1; rows <= TD_AMX_TILE_ROWS; rows++)
        for (int panels = 1; panels <= TD_TILE_PANELS; panels++)
            for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
                for (int way = 0; way < 4; way++)
                    check_tile(amx, rows, panels, groups[g], way % 2 ? PARTS : 1,
                               groups[g] * FOUR + (rows % 3) * 7, way / 2);
}

TEST(byte_tiles_have_the_sums_of_a_plain_loop) {
    check_tiles(&by_played);
    CHECK(atomic_load(&played_products) > 0);
    CHECK_INT(atomic_load(&played_threads), 0);
}

/* ---- products ---- */

static const td_isa *own; /* the set of this processor */

/* The same set, but with tiles that are played, or without any. */
static void choose(const td_amx_kernels *amx) {
    static td_quantized_kernels quantized;
    static td_isa set;
    quantized = *own->quantized;
    quantized.amx = amx;
    quantized.ordered = quantized.ordered && !amx;
    set = *own;
    set.quantized = &quantized;
    td_cpu = &set;
}

static td_tensor *make(td_dtype dtype, int ndim, const int64_t *sizes) {
    td_tensor *x = NULL;
    if (!CHECK_INT(td_tensor_empty(dtype, TD_DEVICE_CPU, ndim, sizes, &x), TD_OK))
        exit(1);
    fill(x->data, x->numel * (int64_t)td_tensor_itemsize(x), (const uint8_t[]){0, 255});
    for (int64_t k = 0; dtype == TD_F32 && k < x->numel; k++)
        ((float *)x->data)[k] = (float)(1 + next() % 1000) / 4096;
    for (int64_t k = 0; dtype == TD_I32 && k < x->numel; k++)
        ((int32_t *)x->data)[k] = (int32_t)(next() % 9) - 4;
    return x;
}

typedef struct layer {
    td_tensor *weight, *scales, *points, *bias, *x;
    int64_t groups;
} layer;

static layer make_layer(int64_t columns, int64_t depth, int ndim, const int64_t *x, bool centred) {
    layer l = {.weight = make(TD_I8, 2, (int64_t[]){columns, depth}),
               .scales = make(TD_F32, 1, &columns),
               .points = make(TD_I32, 1, &columns),
               .bias = make(TD_F32, 1, &columns),
               .x = make(TD_U8, ndim, x),
               .groups = 1};
    if (centred)
        memset(l.points->data, 0, sizeof(int32_t) * (size_t)columns);
    return l;
}

static void release_layer(layer *l) {
    td_tensor *all[] = {l->weight, l->scales, l->points, l->bias, l->x};
    for (int k = 0; k < 5; k++)
        td_release(all[k]);
}

static td_tensor *packed_of(const layer *l) {
    td_tensor *packed = NULL;
    if (!CHECK_INT(TD_APPLY(&packed, pack_ints, TD_T(l->weight), TD_T(l->scales), TD_T(l->points),
                            TD_I(l->groups), TD_I(1), TD_B(false)),
                   TD_OK))
        exit(1);
    return packed;
}

static td_tensor *linear(const layer *l, const td_amx_kernels *amx, td_dtype dtype) {
    td_tensor *packed = NULL, *y = NULL;
    choose(amx);
    packed = packed_of(l);
    CHECK_INT(TD_APPLY(&y, linear_ints, TD_T(l->x), TD_T(packed), TD_T(l->bias), TD_F(0.02),
                       TD_I(119), TD_F(1.5), TD_I(100), TD_DTYPE(dtype), TD_B(true)),
              TD_OK);
    td_release(packed);
    return y;
}

static bool same(const td_tensor *a, const td_tensor *b) {
    return a && b && a->numel == b->numel &&
           memcmp(a->data, b->data, (size_t)a->numel * td_tensor_itemsize(a)) == 0;
}

/* How many products of tiles a layer of so many rows takes; its results are those without. */
static int64_t check_linear(int64_t rows, int64_t columns, int64_t depth, bool centred) {
    static const td_dtype dtypes[] = {TD_F32, TD_U8, TD_I8};
    int64_t before = atomic_load(&played_products);
    layer l = make_layer(columns, depth, 2, (int64_t[]){rows, depth}, centred);
    for (int d = 0; d < 3; d++) {
        td_tensor *plain = linear(&l, NULL, dtypes[d]), *by = linear(&l, &by_played, dtypes[d]);
        CHECK(same(plain, by));
        td_release(plain);
        td_release(by);
    }
    release_layer(&l);
    CHECK_INT(atomic_load(&played_threads), 0);
    return atomic_load(&played_products) - before;
}

TEST(linear_layers_by_tiles_have_the_same_bits) {
    for (int threads = 1; threads <= 3; threads += 2) {
        CHECK_INT(td_set_num_threads(threads), TD_OK);
        CHECK(check_linear(32, 512, 192, true) > 0);
        CHECK(check_linear(170, 100, 150, false) > 0);
        CHECK(check_linear(16, 1030, 131, false) > 0);
        CHECK(check_linear(229, 33, 301, true) > 0);
    }
    CHECK_INT(td_set_num_threads(1), TD_OK);
}

TEST(small_products_are_not_worth_tiles) {
    CHECK_INT(check_linear(7, 1024, 1024, true), 0);
    CHECK_INT(check_linear(16, 512, 255, true), 0);
    CHECK_INT(check_linear(1000, 1000, 127, false), 0);
}

static int asked;
static bool refused(void) {
    asked++;
    return false;
}

TEST(what_the_system_refuses_is_not_used) {
    static const td_amx_kernels none = {refused, NULL, NULL, NULL};
    layer l = make_layer(256, 128, 2, (int64_t[]){64, 128}, true);
    td_tensor *plain = linear(&l, NULL, TD_U8), *by = linear(&l, &none, TD_U8);
    CHECK(same(plain, by));
    CHECK_INT(asked, 1);
    td_release(plain);
    td_release(by);
    release_layer(&l);
}

static td_tensor *convolve(const layer *l, const td_amx_kernels *amx, td_tensor *residual,
                           int64_t kernel, int64_t stride, int64_t padding) {
    td_tensor *packed = NULL, *y = NULL;
    int64_t k[] = {kernel, kernel}, s[] = {stride, stride}, p[] = {padding, padding};
    choose(amx);
    packed = packed_of(l);
    CHECK_INT(TD_APPLY(&y, conv_ints, TD_T(l->x), TD_T(packed), TD_T(l->bias), TD_T(residual),
                       TD_F(0.02), TD_I(119), TD_F(1.5), TD_I(100), TD_F(0.7), TD_I(31),
                       TD_B(false), TD_INTS(2, k), TD_INTS(2, s), TD_INTS(2, p),
                       TD_INTS(2, ((int64_t[]){1, 1}))),
              TD_OK);
    td_release(packed);
    return y;
}

/* Images of 21 x 21, whose places fill no whole number of tiles. */
static void check_conv(int64_t channels, int64_t out, int64_t groups, int64_t kernel,
                       int64_t stride, int64_t padding) {
    int64_t before = atomic_load(&played_products);
    int64_t side = (21 + 2 * padding - kernel) / stride + 1;
    layer l = make_layer(out, channels / groups * kernel * kernel, 4,
                         (int64_t[]){2, channels, 21, 21}, false);
    l.groups = groups;
    td_tensor *residual = make(TD_U8, 4, (int64_t[]){2, out, side, side});
    td_tensor *plain = convolve(&l, NULL, residual, kernel, stride, padding);
    td_tensor *by = convolve(&l, &by_played, residual, kernel, stride, padding);
    CHECK(same(plain, by));
    CHECK(atomic_load(&played_products) > before);
    CHECK_INT(atomic_load(&played_threads), 0);
    td_release(residual);
    td_release(plain);
    td_release(by);
    release_layer(&l);
}

TEST(convolutions_by_tiles_have_the_same_bits) {
    for (int threads = 1; threads <= 3; threads += 2) {
        CHECK_INT(td_set_num_threads(threads), TD_OK);
        check_conv(128, 40, 1, 1, 1, 0); /* rows as they lie */
        check_conv(15, 40, 1, 3, 1, 1);  /* rows that are copied */
        check_conv(64, 40, 1, 3, 1, 1);  /* a part for each element of the kernel */
        check_conv(68, 40, 1, 3, 2, 1);
        check_conv(128, 80, 2, 3, 2, 0);
        check_conv(3, 64, 1, 7, 2, 3);
    }
    CHECK_INT(td_set_num_threads(1), TD_OK);
}

/* ---- the processor's own ---- */

TEST(the_processors_own_tiles_have_the_sums_of_a_plain_loop) {
    const td_amx_kernels *amx = own->quantized->amx;
    if (!amx || !amx->usable()) {
        printf("AMX: not on this processor, or not with this set\n");
        return;
    }
    check_tiles(amx);
    pid_t child = fork(); /* which needs not ask again */
    if (child == 0) {
        check_tile(amx, 32, 4, 64, 1, 256, false);
        _exit(atomic_load(&check_failures) != 0);
    }
    int status = 1;
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK_INT(status, 0);
}

int main(void) {
    if (!CHECK_INT(td_init(), TD_OK))
        return 1;
    own = td_cpu;
    RUN(byte_tiles_have_the_sums_of_a_plain_loop);
    if (!own->quantized->ordered) { /* whose packs tiles don't take */
        RUN(linear_layers_by_tiles_have_the_same_bits);
        RUN(small_products_are_not_worth_tiles);
        RUN(what_the_system_refuses_is_not_used);
        RUN(convolutions_by_tiles_have_the_same_bits);
    }
    RUN(the_processors_own_tiles_have_the_sums_of_a_plain_loop);
    td_cpu = own;
    return check_finish();
}

/* test_cpu_few.c: products of few rows (cpu/product/product_few.c) against sums in double, over
 * every end of a tile and all layouts; and that a right side which is kept packed (kept_panels.h)
 * gives the same bits, is dropped when its storage is written, and goes with it. */
#include "engine/cpu/isa/isa.h"
#include "engine/cpu/product/product_ways.h"
#include "engine/td.h"

#include "tests/check.h"

#include <math.h>
#include <string.h>

enum { GAP = 3 };

static td_tensor *made(td_dtype dtype, int64_t n) {
    static uint64_t seed = 5;
    td_tensor *x = NULL;
    CHECK_INT(td_tensor_empty(dtype, TD_DEVICE_CPU, 1, &n, &x), TD_OK);
    for (int64_t k = 0; k < n; k++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        td_store_double(dtype, (char *)x->data + k * (int64_t)td_dtype_size(dtype),
                        (double)(int64_t)(seed >> 53) / 1024 - 1);
    }
    return x;
}

/* A product m x k by k x n, whose lines lie GAP elements further apart than they are long. */
typedef struct sample {
    td_tensor *a, *b, *c, *bias;
    td_product_plan plan;
} sample;

static sample sample_of(td_dtype dtype, int64_t m, int64_t n, int64_t k, bool ta, bool tb) {
    sample s = {.a = made(dtype, (m + GAP) * (k + GAP)),
                .b = made(dtype, (k + GAP) * (n + GAP)),
                .c = made(dtype, m * (n + GAP)),
                .bias = made(dtype, n)};
    s.plan = (td_product_plan){.batch = 1, .m = m, .n = n, .k = k};
    s.plan.a = s.a;
    s.plan.b = s.b;
    s.plan.out = s.c;
    s.plan.bias = (m + n) % 3 ? s.bias : NULL;
    s.plan.as_a = (td_matrices){0, ta ? 1 : k + GAP, ta ? m + GAP : 1};
    s.plan.as_b = (td_matrices){0, tb ? 1 : n + GAP, tb ? k + GAP : 1};
    s.plan.as_out = (td_matrices){0, n + GAP, 1};
    return s;
}

static void sample_clear(sample *s) {
    td_release(s->a);
    td_release(s->b);
    td_release(s->c);
    td_release(s->bias);
}

static double of(const td_tensor *x, int64_t at) {
    return td_load_double((td_dtype)x->dtype,
                          (char *)x->data + at * (int64_t)td_tensor_itemsize(x));
}

static int64_t count_wrong(const sample *s) {
    const td_product_plan *p = &s->plan;
    double unit = s->c->dtype == TD_F64 ? 1e-14 : 3e-6;
    int64_t wrong = 0;
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            double sum = p->bias ? of(s->bias, j) : 0, size = fabs(sum);
            for (int64_t l = 0; l < p->k; l++) {
                double term = of(s->a, i * p->as_a.row_stride + l * p->as_a.column_stride) *
                              of(s->b, l * p->as_b.row_stride + j * p->as_b.column_stride);
                sum += term;
                size += fabs(term);
            }
            wrong += !(fabs(of(s->c, i * p->as_out.row_stride + j) - sum) <= unit * size);
        }
    return wrong;
}

static size_t bytes_of(const td_tensor *x) {
    return (size_t)x->numel * td_tensor_itemsize(x);
}

/* By the way, into a result that has been wiped; *out is a copy of it. */
static void go(const sample *s, td_product_way way, td_tensor **out) {
    memset(s->c->data, 0x5a, bytes_of(s->c));
    CHECK_INT(td_cpu_product_by(&s->plan, way), TD_OK);
    CHECK_INT(td_tensor_empty_like(s->c, (td_dtype)s->c->dtype, out), TD_OK);
    memcpy((*out)->data, s->c->data, bytes_of(s->c));
}

static int64_t kept(void) {
    return td_memory_get_stats(TD_DEVICE_CPU).kept;
}

static bool same(const td_tensor *x, const td_tensor *y) {
    return !memcmp(x->data, y->data, bytes_of(x));
}

/* As it lies, met once, packed, and kept: the same bits; then for another number of threads. */
static void check(td_dtype dtype, int64_t m, int64_t n, int64_t k, int layout) {
    sample s = sample_of(dtype, m, n, k, layout & 1, layout & 2);
    td_tensor *want = NULL, *got = NULL;
    int64_t before = kept();
    int threads = td_get_num_threads();
    go(&s, TD_WAY_FEW, &want);
    CHECK_INT(count_wrong(&s), 0);
    for (int64_t i = 0; i < m; i++) /* nothing is written between rows */
        for (int64_t j = n; j < n + GAP; j++)
            CHECK(!memcmp((char *)s.c->data + (size_t)(i * (n + GAP) + j) * td_tensor_itemsize(s.c),
                          "ZZZZ", 4));
    for (int met = 0; met < 3; met++) {
        go(&s, TD_WAY_FEW_KEPT, &got);
        CHECK(same(got, want));
        td_release(got);
    }
    CHECK(kept() > before);
    CHECK_INT(td_set_num_threads(threads == 1 ? 3 : 1), TD_OK);
    for (int w = 0; w < 2; w++) {
        go(&s, w ? TD_WAY_FEW : TD_WAY_FEW_KEPT, &got);
        CHECK(same(got, want));
        td_release(got);
    }
    CHECK_INT(td_set_num_threads(threads), TD_OK);
    td_release(want);
    sample_clear(&s);
    CHECK_INT(kept(), before);
}

static const td_dtype dtypes[] = {TD_F32, TD_F64};

TEST(every_end_of_a_tile_is_right) {
    int64_t rows = td_cpu->product->tile_rows, width = td_cpu->product->tile_bytes / 4;
    for (int d = 0; d < 2; d++)
        for (int64_t m = 1; m <= 2 * rows + 1; m++)
            for (int64_t n = 1; n <= width + 2; n += n < width - 1 ? 5 : 1)
                check(dtypes[d], m, n, 9, (int)(m + n) & 3);
}

TEST(panels_and_pieces_along_depth_are_right) {
    static const int64_t sizes[][3] = {{5, 130, 511}, {16, 256, 512}, {7, 70, 513},
                                       {128, 65, 40}, {9, 64, 1025},  {3, 700, 60}};
    for (int d = 0; d < 2; d++)
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
            for (int layout = 0; layout < 4; layout++)
                check(dtypes[d], sizes[k][0], sizes[k][1], sizes[k][2], layout);
}

/* Parts on several threads, of a product that is worth them. */
TEST(parts_on_threads_are_right) {
    check(TD_F32, 64, 500, 400, 0);
    check(TD_F32, 64, 500, 400, 2);
}

TEST(what_is_written_is_not_what_was_kept) {
    sample s = sample_of(TD_F32, 6, 70, 50, false, true);
    td_tensor *first = NULL, *got = NULL, *want = NULL;
    int64_t before = kept();
    for (int k = 0; k < 2; k++, td_release(first))
        go(&s, TD_WAY_FEW_KEPT, &first);
    CHECK(kept() > before);
    memset(s.b->data, 0, bytes_of(s.b) / 2);
    td_tensor_bump_version(s.b);
    go(&s, TD_WAY_FEW_KEPT, &got);
    CHECK_INT(kept(), before);
    go(&s, TD_WAY_FEW, &want);
    CHECK(same(got, want));
    CHECK_INT(count_wrong(&s), 0);
    td_release(got);
    td_release(want);
    sample_clear(&s);
}

/* A step of training meets most weights once or twice; those of times that are written out, often.
 */
TEST(while_operators_are_recorded_only_what_is_met_often_is_kept) {
    sample s = sample_of(TD_F32, 6, 70, 50, false, true);
    td_tensor *got = NULL;
    int64_t before = kept();
    td_set_grad_enabled(true);
    for (int met = 1; met <= 4; met++) {
        go(&s, TD_WAY_FEW_KEPT, &got);
        td_release(got);
        CHECK((kept() > before) == (met == 4));
    }
    td_tensor_bump_version(s.b);
    go(&s, TD_WAY_FEW_KEPT, &got);
    td_release(got);
    CHECK_INT(kept(), before);
    td_set_grad_enabled(false);
    sample_clear(&s);
}

/* Parts of one storage, each with its own panels; more of them than are remembered. */
TEST(parts_of_a_storage_are_kept_apart_and_bounded) {
    enum { PARTS = 1500, N = 4, K = 5 };
    sample s = sample_of(TD_F32, 4, N, K, false, true);
    td_tensor *all = made(TD_F32, PARTS * N * (K + GAP)), *got = NULL, *want = NULL;
    int64_t before = kept();
    for (int round = 0; round < 2; round++)
        for (int64_t k = 0; k < PARTS; k++) {
            td_tensor *part = NULL;
            const int64_t n = N * (K + GAP), one = 1;
            CHECK_INT(td_tensor_view(all, 1, &n, &one, k * n, &part), TD_OK);
            s.plan.b = part;
            go(&s, TD_WAY_FEW_KEPT, &got);
            go(&s, TD_WAY_FEW, &want);
            CHECK(same(got, want));
            td_release(got);
            td_release(want);
            td_release(part);
        }
    td_release(all);
    sample_clear(&s);
    CHECK_INT(kept(), before);
}

/* Where there is no room for panels, products go on without. */
TEST(without_room_for_panels_products_are_right) {
    for (int64_t fails = 1; fails <= 12; fails++) {
        sample s = sample_of(TD_F32, 6, 300, 200, false, true);
        td_status status = TD_OK;
        for (int k = 0; k < 3 && status == TD_OK; k++) {
            td_memory_fail_after(fails);
            status = td_cpu_product_by(&s.plan, TD_WAY_FEW_KEPT);
            td_memory_fail_after(0);
        }
        CHECK(status == TD_OK || status == TD_ENOMEM);
        CHECK_INT(td_cpu_product_by(&s.plan, TD_WAY_FEW_KEPT), TD_OK);
        CHECK_INT(count_wrong(&s), 0);
        sample_clear(&s);
    }
}

int main(void) {
    if (!CHECK_INT(td_init(), TD_OK))
        return 1;
    td_set_grad_enabled(false);
    RUN(every_end_of_a_tile_is_right);
    RUN(panels_and_pieces_along_depth_are_right);
    RUN(parts_on_threads_are_right);
    RUN(what_is_written_is_not_what_was_kept);
    RUN(while_operators_are_recorded_only_what_is_met_often_is_kept);
    RUN(parts_of_a_storage_are_kept_apart_and_bounded);
    RUN(without_room_for_panels_products_are_right);
    return check_finish();
}

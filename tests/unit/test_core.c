/* test_core.c: status, dtypes, shapes, storage, allocator, threads. */
#include "tests/check.h"

#include "engine/td.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

static td_tensor *make(td_dtype dtype, int ndim, const int64_t *sizes) {
    td_tensor *x = NULL;
    if (td_tensor_empty(dtype, TD_DEVICE_CPU, ndim, sizes, &x))
        fprintf(stderr, "%s\n", td_error_message());
    return x;
}

TEST(promotion_follows_categories_then_width) {
    CHECK_INT(td_dtype_promote(TD_BOOL, TD_U8), TD_U8);
    CHECK_INT(td_dtype_promote(TD_U8, TD_I32), TD_I32);
    CHECK_INT(td_dtype_promote(TD_I64, TD_F32), TD_F32);
    CHECK_INT(td_dtype_promote(TD_F64, TD_F32), TD_F64);
    CHECK_INT(td_dtype_promote(TD_U8, TD_I8), TD_I16);
    CHECK_INT(td_dtype_promote(TD_I8, TD_U8), TD_I16);
    CHECK_INT(td_dtype_promote(TD_F16, TD_BF16), TD_F32);
    CHECK_INT(td_dtype_promote(TD_BF16, TD_F16), TD_F32);
    CHECK_INT(td_dtype_promote(TD_I64, TD_BF16), TD_BF16);
    CHECK_INT(td_dtype_find("float32"), TD_F32);
    CHECK_INT(td_dtype_find("long"), TD_I64);
    CHECK_INT(td_dtype_find("float33"), TD_DTYPE_NONE);
}

TEST(converting_elements_does_as_x86_and_tests) {
    int64_t wide;
    uint8_t flag;
    td_store_double(TD_I64, &wide, 1e300);
    CHECK_INT(wide, INT64_MIN);
    td_store_double(TD_I64, &wide, NAN);
    CHECK_INT(wide, INT64_MIN);
    td_store_double(TD_BOOL, &flag, 0.25);
    CHECK_INT(flag, 1);
    td_store_int(TD_BOOL, &flag, 256);
    CHECK_INT(flag, 1);
}

/* 1 + 2^-11 and 1 + 2^-8 lie in the middle: to the even neighbour, as 1 + 3 of them go up. */
TEST(halves_round_to_the_nearest_and_ties_to_even) {
    CHECK_CLOSE(td_half_to_float(td_float_to_half(1.0f + 0x1p-11f)), 1.0, 0);
    CHECK_CLOSE(td_half_to_float(td_float_to_half(1.0f + 3 * 0x1p-11f)), 1.0 + 0x1p-9, 0);
    CHECK_CLOSE(td_half_to_float(td_float_to_half(1.0f + 0x1.8p-11f)), 1.0 + 0x1p-10, 0);
    CHECK_CLOSE(td_bfloat_to_float(td_float_to_bfloat(1.0f + 0x1p-8f)), 1.0, 0);
    CHECK_CLOSE(td_bfloat_to_float(td_float_to_bfloat(1.0f + 3 * 0x1p-8f)), 1.0 + 0x1p-6, 0);
    CHECK_CLOSE(td_bfloat_to_float(td_float_to_bfloat(1.0f + 0x1.8p-8f)), 1.0 + 0x1p-7, 0);
}

TEST(shapes_broadcast_or_say_why_not) {
    int64_t a[] = {2, 1, 3}, b[] = {4, 1}, c[] = {2, 3}, out[TD_MAX_DIMS];
    int ndim;
    CHECK_INT(td_broadcast(3, a, 2, b, &ndim, out), TD_OK);
    CHECK_INT(ndim, 3);
    CHECK(out[0] == 2 && out[1] == 4 && out[2] == 3);
    CHECK_INT(td_broadcast(2, c, 1, b, &ndim, out), TD_ESHAPE);
    CHECK_STR(td_error_message(), "shapes (2, 3) and (4) don't broadcast: 3 ≠ 4");
}

TEST(dims_wrap_and_messages_count_from_one) {
    int d;
    CHECK(td_wrap_dim(-1, 3, &d) == TD_OK && d == 2);
    CHECK(td_wrap_dim(0, 0, &d) == TD_OK && d == 0);
    CHECK_INT(td_wrap_dim(3, 3, &d), TD_EINDEX);
    CHECK_STR(td_error_message(), "dim 4 is out of range for a tensor of 3 dims");
}

TEST(messages_show_no_sign_of_nan) {
    CHECK_INT(
        td_fail(TD_EVALUE, "from %g to %g, not-nan-named or %g", -NAN, copysign(NAN, 1), -NAN),
        TD_EVALUE);
    CHECK_STR(td_error_message(), "from nan to nan, not-nan-named or nan");
}

TEST(views_share_storage_and_version) {
    int64_t sizes[] = {4, 6}, part[] = {2, 3}, strides[] = {12, 2};
    td_tensor *x = make(TD_F32, 2, sizes), *v = NULL;
    CHECK_INT(td_tensor_view(x, 2, part, strides, 1, &v), TD_OK);
    CHECK(v->data == (float *)x->data + 1 && !v->contiguous && v->numel == 6);
    td_tensor_bump_version(v);
    CHECK_INT(td_tensor_version(x), 1);
    td_release(x);
    CHECK_INT(TD_APPLY_INPLACE(fill_, TD_T(v), TD_F(3)),
              TD_OK); /* the storage lives on in the view */
    td_release(v);
}

TEST(no_view_leaves_its_storage) {
    const int64_t size = 6, two = 2, one = 1, none = 0, back = -1, huge = (1LL << 62) - 4;
    td_tensor *x = make(TD_F64, 1, &size), *v = NULL;
    CHECK_INT(td_tensor_view(x, 1, &size, &one, 1, &v), TD_EINDEX);
    CHECK_STR(td_error_message(), "elements 2 to 7 lie outside the storage of 6 elements");
    CHECK_INT(td_tensor_view(x, 1, &two, &back, 0, &v), TD_EINDEX);
    CHECK_INT(td_tensor_view(x, 1, &two, &huge, 0, &v), TD_EINDEX);
    CHECK_INT(td_tensor_view(x, 1, &one, &one, INT64_MAX, &v), TD_EINDEX);
    CHECK_INT(td_tensor_view(x, 1, &one, &one, INT64_MIN, &v), TD_EINDEX);
    CHECK_INT(td_tensor_view(x, 1, &one, &one, 1LL << 61, &v), TD_EINDEX); /* 2^64 bytes */
    CHECK(v == NULL);
    CHECK_INT(td_tensor_set_shape(x, 1, &size, &two), TD_EINDEX);
    CHECK_INT(td_tensor_set_shape(x, 1, &size, &one), TD_OK);
    CHECK_INT(td_tensor_view(x, 1, &two, &back, 1, &v), TD_OK);
    CHECK(v->data == (double *)x->data + 1);
    td_release(v);
    CHECK_INT(td_tensor_view(x, 1, &none, &huge, huge, &v), TD_OK); /* it has no place */
    CHECK(v->data == x->data && v->strides[0] == 1 && v->numel == 0);
    td_release(v);
    td_release(x);
}

TEST(density_and_overlap_are_recognised) {
    int64_t sizes[] = {3, 4}, turned[] = {4, 3}, turned_strides[] = {1, 4}, zero[] = {0, 1};
    td_tensor *x = make(TD_F32, 2, sizes), *t = NULL, *e = NULL;
    CHECK_INT(td_tensor_view(x, 2, turned, turned_strides, 0, &t), TD_OK);
    CHECK_INT(td_tensor_view(x, 2, sizes, zero, 0, &e), TD_OK);
    CHECK(td_tensor_is_dense(t) && !t->contiguous && !td_tensor_overlaps(t));
    CHECK(td_tensor_overlaps(e) && !td_tensor_is_dense(e));
    td_release(x);
    td_release(t);
    td_release(e);
}

TEST(too_much_memory_is_an_error_that_says_how_much) {
    int64_t huge[] = {1000000000000000}, wrap[] = {INT64_MAX, INT64_MAX}, negative[] = {2, -1};
    td_tensor *x;
    CHECK_INT(td_tensor_empty(TD_F32, TD_DEVICE_CPU, 1, huge, &x), TD_ENOMEM);
    CHECK(x == NULL && strstr(td_error_message(), "3.55 PiB"));
    CHECK_INT(td_tensor_empty(TD_F32, TD_DEVICE_CPU, 2, wrap, &x), TD_ENOMEM);
    CHECK_INT(td_tensor_empty(TD_F32, TD_DEVICE_CPU, 2, negative, &x), TD_ESHAPE);
}

TEST(freed_blocks_are_used_again) {
    int64_t sizes[] = {1 << 20};
    td_memory_empty_cache(TD_DEVICE_CPU);
    td_release(make(TD_F32, 1, sizes));
    int64_t before = td_memory_get_stats(TD_DEVICE_CPU).system_allocations;
    for (int k = 0; k < 10; k++)
        td_release(make(TD_F32, 1, sizes));
    int64_t fresh = td_memory_get_stats(TD_DEVICE_CPU).system_allocations - before;
    CHECK_INT(fresh, 0);
    CHECK_INT(td_memory_get_stats(TD_DEVICE_CPU).allocated, 0);
}

TEST(every_failing_allocation_is_survived) {
    int64_t sizes[] = {2, 2, 2, 2, 2, 2, 100}; /* 7 dims: sizes on the heap; data beyond inline */
    for (int64_t n = 1; n < 20; n++) {
        td_tensor *x = NULL;
        td_memory_fail_after(n);
        td_status status = td_tensor_empty(TD_F64, TD_DEVICE_CPU, 7, sizes, &x);
        td_memory_fail_after(0);
        if (status == TD_OK) {
            CHECK(n > 2);
            td_release(x);
            return;
        }
        CHECK_INT(status, TD_ENOMEM);
        CHECK(x == NULL);
    }
    CHECK(!"allocation never succeeded");
}

static void mark(void *ctx, int64_t begin, int64_t end, int worker) {
    unsigned char *seen = ctx;
    (void)worker;
    for (int64_t i = begin; i < end; i++)
        seen[i]++;
}

TEST(parallel_for_visits_each_index_once) {
    enum { N = 100003 };
    unsigned char *seen = calloc(N, 1);
    for (int threads = 1; threads <= 3; threads++) {
        CHECK_INT(td_set_num_threads(threads), TD_OK);
        CHECK_INT(td_parallel_for(N, 64, mark, seen), TD_OK);
        bool all = true;
        for (int i = 0; i < N; i++)
            all = all && seen[i] == threads;
        CHECK(all);
    }
    free(seen);
    CHECK_INT(td_set_num_threads(0), TD_EVALUE);
    CHECK_INT(td_set_num_threads(2), TD_OK);
}

static void count_and_interrupt(void *ctx, int64_t begin, int64_t end, int worker) {
    (void)worker;
    atomic_fetch_add((atomic_llong *)ctx, end - begin);
    td_interrupt_request();
}

TEST(an_interrupt_stops_a_loop_between_chunks) {
    atomic_llong done = 0;
    CHECK_INT(td_parallel_for(1 << 20, TD_GRAIN / 16, count_and_interrupt, &done), TD_EINTR);
    CHECK(done < 1 << 20);
    td_interrupt_clear();
}

static void count(void *ctx, int64_t begin, int64_t end, int worker) {
    (void)worker;
    atomic_fetch_add((atomic_llong *)ctx, end - begin);
}

TEST(an_interrupt_stops_a_loop_on_one_thread) {
    atomic_llong done = 0;
    CHECK_INT(td_serial_for(1 << 20, TD_GRAIN, count_and_interrupt, &done), TD_EINTR);
    CHECK(done < 1 << 10);
    td_interrupt_clear();
    done = 0;
    CHECK_INT(td_serial_for(7, TD_GRAIN, count, &done), TD_OK);
    CHECK_INT(done, 7);
}

TEST(a_single_long_item_tells_of_its_interrupt) {
    atomic_llong done = 0;
    CHECK_INT(td_parallel_for(1, INT64_C(1) << 40, count_and_interrupt, &done), TD_EINTR);
    td_interrupt_clear();
}

static void note_longest(void *ctx, int64_t begin, int64_t end, int worker) {
    atomic_llong *most = ctx;
    long long seen = atomic_load(most);
    (void)worker;
    while (end - begin > seen && !atomic_compare_exchange_weak(most, &seen, end - begin))
        ;
}

TEST(chunks_are_short_however_long_a_loop_is) {
    atomic_llong most = 0;
    CHECK_INT(td_parallel_for(INT64_C(1) << 32, 1, note_longest, &most), TD_OK);
    CHECK(most > 0 && most <= 64 * TD_GRAIN);
}

static void *churn(void *arg) {
    td_tensor *shared = arg;
    int64_t sizes[] = {300};
    for (int k = 0; k < 2000; k++) {
        td_tensor *mine = td_retain(shared), *x = make(TD_F32, 1, sizes);
        td_release(mine);
        td_release(x);
    }
    return NULL;
}

TEST(threads_share_a_tensor_and_the_allocator) {
    int64_t sizes[] = {300};
    td_tensor *x = make(TD_F32, 1, sizes);
    pthread_t threads[3];
    for (int k = 0; k < 3; k++)
        pthread_create(&threads[k], NULL, churn, x);
    for (int k = 0; k < 3; k++)
        pthread_join(threads[k], NULL);
    CHECK_INT(x->refs, 1);
    td_release(x);
    CHECK_INT(td_memory_get_stats(TD_DEVICE_CPU).allocated, 0);
}

TEST(devices_parse_or_say_what_is_missing) {
    td_device d;
    CHECK(td_device_parse("cpu", &d) == TD_OK && d.type == TD_CPU);
    CHECK_INT(td_device_parse("cuda:7", &d), TD_EDEVICE);
    CHECK_INT(td_device_parse("cuda:", &d), TD_EVALUE);
    CHECK_INT(td_device_parse("gpu", &d), TD_EVALUE);
}

int main(void) {
    if (td_init()) {
        fprintf(stderr, "%s\n", td_error_message());
        return 1;
    }
    RUN(promotion_follows_categories_then_width);
    RUN(converting_elements_does_as_x86_and_tests);
    RUN(halves_round_to_the_nearest_and_ties_to_even);
    RUN(shapes_broadcast_or_say_why_not);
    RUN(dims_wrap_and_messages_count_from_one);
    RUN(messages_show_no_sign_of_nan);
    RUN(views_share_storage_and_version);
    RUN(no_view_leaves_its_storage);
    RUN(density_and_overlap_are_recognised);
    RUN(too_much_memory_is_an_error_that_says_how_much);
    RUN(freed_blocks_are_used_again);
    RUN(every_failing_allocation_is_survived);
    RUN(parallel_for_visits_each_index_once);
    RUN(an_interrupt_stops_a_loop_between_chunks);
    RUN(an_interrupt_stops_a_loop_on_one_thread);
    RUN(a_single_long_item_tells_of_its_interrupt);
    RUN(chunks_are_short_however_long_a_loop_is);
    RUN(threads_share_a_tensor_and_the_allocator);
    RUN(devices_parse_or_say_what_is_missing);
    return check_finish();
}

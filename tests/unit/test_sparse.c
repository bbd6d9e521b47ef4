/* test_sparse.c: sparse tensors where allocations fail: an error that says so, nothing left behind,
 * nothing half written; and the parts that aliases share. */
#include "engine/td.h"

#include "tests/check.h"

typedef td_status (*work_fn)(void);

/* (4, 2) in float32 of three rows, two of them at one place. */
static td_status rows_of(bool requires_grad, td_tensor **out) {
    const int64_t places[2] = {1, 3}, sizes[2] = {4, 2}, shape[2] = {3, 2};
    td_tensor *indices = NULL, *values = NULL;
    td_status status = TD_OK;
    *out = NULL;
    TD_TRY(TD_APPLY(&indices, full, TD_INTS(2, places), TD_I(2), TD_DTYPE(TD_I64)));
    ((int64_t *)indices->data)[1] = 0;
    TD_TRY(TD_APPLY(&values, ones, TD_INTS(2, shape)));
    TD_TRY(TD_APPLY(out, sparse_coo_tensor, TD_T(indices), TD_T(values), TD_INTS(2, sizes)));
    if (requires_grad)
        status = td_set_requires_grad(*out, true);
done:
    td_release(indices);
    td_release(values);
    return status;
}

static td_status leaf(td_tensor **out) {
    const int64_t sizes[2] = {4, 2};
    td_status status = TD_APPLY(out, ones, TD_INTS(2, sizes));
    if (status == TD_OK)
        status = td_set_requires_grad(*out, true);
    return status;
}

/* backward of the sum of what a table's rows give; twice, so that gradients are added. */
static td_status look_up(td_tensor *table, bool create_graph) {
    const int64_t n = 3;
    td_tensor *index = NULL, *y = NULL, *sum = NULL;
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(&index, ones, TD_INTS(1, &n), TD_DTYPE(TD_I64)));
    TD_TRY(TD_APPLY(&y, embedding, TD_T(table), TD_T(index), TD_NIL, TD_B(false), TD_B(true)));
    TD_TRY(TD_APPLY(&sum, square, TD_T(y)));
    td_release(y);
    y = NULL;
    TD_TRY(TD_APPLY(&y, sum, TD_T(sum)));
    status = td_backward(1, &y, NULL, (td_backward_options){.create_graph = create_graph});
done:
    td_release(index);
    td_release(y);
    td_release(sum);
    return status;
}

static td_status gradients(void) {
    td_tensor *table = NULL;
    td_status status = leaf(&table);
    for (int k = 0; k < 2 && status == TD_OK; k++)
        status = look_up(table, false);
    if (status == TD_OK)
        CHECK(td_sparse_of(td_get_grad(table)) != NULL);
    if (status == TD_OK)
        status = td_set_grad(table, NULL);
    td_release(table);
    return status;
}

static td_status recorded(void) {
    td_tensor *table = NULL;
    td_status status = leaf(&table);
    if (status == TD_OK)
        status = look_up(table, true);
    if (table)
        CHECK_INT(td_set_grad(table, NULL), TD_OK);
    td_release(table);
    return status;
}

static td_status making(void) {
    td_tensor *x = NULL, *y = NULL, *z = NULL, *sum = NULL;
    td_status status = TD_OK;
    TD_TRY(rows_of(true, &x));
    TD_TRY(TD_APPLY(&y, coalesce, TD_T(x)));
    TD_TRY(TD_APPLY(&z, add, TD_T(x), TD_T(y)));
    td_release(y);
    y = NULL;
    TD_TRY(TD_APPLY(&y, to_dense, TD_T(z)));
    TD_TRY(TD_APPLY(&sum, sum, TD_T(y)));
    status = td_backward(1, &sum, NULL, (td_backward_options){0});
done:
    td_release(x);
    td_release(y);
    td_release(z);
    td_release(sum);
    return status;
}

static td_status in_place(void) {
    td_tensor *x = NULL, *y = NULL;
    td_status status = TD_OK;
    TD_TRY(rows_of(false, &x));
    TD_TRY(rows_of(false, &y));
    TD_TRY(TD_APPLY_INPLACE(mul, TD_T(x), TD_I(2)));
    TD_TRY(TD_APPLY_INPLACE(add, TD_T(x), TD_T(y)));
    TD_TRY(TD_APPLY_INPLACE(copy_, TD_T(x), TD_T(y)));
    status = TD_APPLY_INPLACE(zero_, TD_T(x));
done:
    td_release(x);
    td_release(y);
    return status;
}

static td_status picking(void) {
    td_tensor *x = NULL, *y = NULL, *z = NULL, *w = NULL;
    td_status status = TD_OK;
    TD_TRY(leaf(&x));
    TD_TRY(rows_of(false, &y));
    TD_TRY(TD_APPLY(&z, sparse_mask, TD_T(x), TD_T(y)));
    TD_TRY(TD_APPLY(&w, sparse_mask, TD_T(z), TD_T(y)));
    td_release(z);
    z = NULL;
    TD_TRY(TD_APPLY(&z, to_sparse, TD_T(x), TD_I(1)));
    TD_TRY(TD_APPLY_INPLACE(mul, TD_T(z), TD_I(3)));
done:
    td_release(x);
    td_release(y);
    td_release(z);
    td_release(w);
    return status;
}

/* Fail the first allocation, the second, ... until the work gets through. */
static void try_every_failure(work_fn work) {
    if (!CHECK_INT(work(), TD_OK))
        return;
    int64_t before = td_memory_allocated(TD_DEVICE_CPU), failures = 0;
    for (int64_t n = 1; n < 3000; n++) {
        td_memory_fail_after(n);
        td_status status = work();
        td_memory_fail_after(0);
        CHECK_INT(td_memory_allocated(TD_DEVICE_CPU), before);
        if (status == TD_OK)
            break;
        CHECK_INT(status, TD_ENOMEM);
        CHECK_CONTAINS(td_error_message(), "out of memory");
        failures++;
    }
    CHECK(failures > 5);
    CHECK_INT(work(), TD_OK);
}

TEST(sparse_gradients_survive_failing_allocations) {
    try_every_failure(gradients);
    try_every_failure(recorded);
}
TEST(sparse_tensors_survive_failing_allocations) {
    try_every_failure(making);
    try_every_failure(picking);
    try_every_failure(in_place);
}

static double total_of(const td_tensor *x) {
    td_tensor *sum = NULL;
    double value = -1;
    if (TD_APPLY(&sum, sum, TD_T((td_tensor *)x)) == TD_OK)
        CHECK_INT(td_tensor_item(sum, &value), TD_OK);
    td_release(sum);
    return value;
}

/* What takes a sparse tensor in, or is one, in the step that the n-th allocation cuts short. */
static void never_half_written(bool dense) {
    int failures = 0;
    for (int64_t n = 1; n < 500; n++) {
        td_tensor *target = NULL, *rows = NULL;
        const int64_t sizes[2] = {4, 2};
        REQUIRE(rows_of(false, &rows) == TD_OK);
        if (dense)
            REQUIRE(TD_APPLY(&target, zeros, TD_INTS(2, sizes)) == TD_OK);
        else
            REQUIRE(rows_of(false, &target) == TD_OK);
        unsigned version = td_tensor_version(target);
        double sum = total_of(target);
        td_memory_fail_after(n);
        td_status status = TD_APPLY_INPLACE(add, TD_T(target), TD_T(rows), TD_I(3));
        td_memory_fail_after(0);
        CHECK_INT((int64_t)total_of(target), (int64_t)sum + (status ? 0 : 18));
        CHECK_INT(td_tensor_version(target), version + (status ? 0 : 1));
        td_release(target);
        td_release(rows);
        failures += status != TD_OK;
        if (status == TD_OK)
            break;
    }
    CHECK(failures > 0);
}

TEST(a_sum_in_place_that_runs_out_of_memory_can_be_made_again) {
    never_half_written(true);
    never_half_written(false);
}

TEST(aliases_share_the_parts_and_the_version) {
    td_tensor *x = NULL, *alias = NULL;
    REQUIRE(rows_of(false, &x) == TD_OK);
    REQUIRE(td_tensor_alias(x, &alias) == TD_OK);
    CHECK(td_sparse_of(alias) == td_sparse_of(x));
    CHECK_INT(TD_APPLY_INPLACE(zero_, TD_T(alias)), TD_OK);
    CHECK_INT(td_sparse_count(td_sparse_of(x)), 0);
    CHECK_INT(td_tensor_version(x), 1);
    td_release(x);
    CHECK_INT(td_sparse_count(td_sparse_of(alias)), 0);
    td_release(alias);
}

TEST(a_sparse_tensor_has_no_elements_to_fetch) {
    td_tensor *x = NULL;
    double value;
    REQUIRE(rows_of(false, &x) == TD_OK);
    CHECK_INT(td_tensor_item(x, &value), TD_ETYPE);
    td_release(x);
}

int main(void) {
    if (td_init()) {
        fprintf(stderr, "%s\n", td_error_message());
        return 1;
    }
    RUN(sparse_gradients_survive_failing_allocations);
    RUN(sparse_tensors_survive_failing_allocations);
    RUN(a_sum_in_place_that_runs_out_of_memory_can_be_made_again);
    RUN(aliases_share_the_parts_and_the_version);
    RUN(a_sparse_tensor_has_no_elements_to_fetch);
    return check_finish();
}

/* test_cpu_turn.c: matrices turned round, of every number of rows and columns around those of
 * vectors, against one element at a time; nothing else is written. */
#include "engine/cpu/pointwise/transpose.h"
#include "engine/ops/make/copy.h"
#include "engine/td.h"

#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 70, STEP = MOST + 3, BYTES = MOST * STEP * 8 };

static uint8_t x[BYTES], out[BYTES], want[4 * BYTES];

static void check_turn(int64_t rows, int64_t columns, size_t size) {
    memset(out, 0xEE, sizeof out);
    memset(want, 0xEE, sizeof out);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            memcpy(want + (size_t)(r * STEP + c) * size, x + (size_t)(r + c * STEP) * size, size);
    td_cpu_turn(out, STEP, x, STEP, rows, columns, size);
    if (memcmp(out, want, sizeof out) != 0)
        check_fail(__FILE__, __LINE__, "%lld x %lld elements of %zu bytes", (long long)rows,
                   (long long)columns, size);
}

TEST(matrices_of_any_size_are_turned_round) {
    for (size_t k = 0; k < sizeof x; k++)
        x[k] = (uint8_t)(k * 2654435761u >> 13);
    for (size_t size = 1; size <= 8; size *= 2)
        for (int64_t rows = 0; rows <= MOST; rows++)
            for (int64_t columns = 0; columns <= MOST; columns++)
                check_turn(rows, columns, size);
}

/* Copies are made block by block, of which the last are cut off. */
static void check_copy(int64_t rows, int64_t columns, td_dtype dtype) {
    td_tensor *base = NULL, *turned = NULL, *copy = NULL;
    const int64_t sizes[] = {3, columns, rows};
    const size_t size = td_dtype_size(dtype);
    REQUIRE(td_tensor_empty(dtype, TD_DEVICE_CPU, 3, sizes, &base) == TD_OK);
    for (int64_t k = 0; k < base->numel * (int64_t)size; k++)
        ((uint8_t *)base->data)[k] = (uint8_t)(k * 2654435761u >> 13);
    REQUIRE(TD_APPLY(&turned, transpose, TD_T(base), TD_I(1), TD_I(2)) == TD_OK);
    REQUIRE(td_contiguous(turned, &copy) == TD_OK);
    int64_t wrong = 0;
    for (int64_t m = 0; m < 3; m++)
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < columns; c++)
                wrong += memcmp((char *)copy->data + (size_t)((m * rows + r) * columns + c) * size,
                                (char *)base->data + (size_t)((m * columns + c) * rows + r) * size,
                                size) != 0;
    CHECK_INT(wrong, 0);
    td_release(base);
    td_release(turned);
    td_release(copy);
}

TEST(copies_that_exchange_dims_are_made_of_whole_and_cut_blocks) {
    static const td_dtype dtypes[] = {TD_U8, TD_BF16, TD_F32, TD_F64};
    static const int64_t sides[][2] = {{300, 20}, {20, 300}, {257, 129}, {256, 128}, {7, 2100}};
    for (int d = 0; d < 4; d++)
        for (size_t k = 0; k < sizeof sides / sizeof *sides; k++)
            check_copy(sides[k][0], sides[k][1], dtypes[d]);
}

/* x, transposed, into `out`, a part of a larger tensor that has gaps between elements or rows. */
static void check_gaps(td_dtype dtype, bool between_elements) {
    enum { ROWS = 70, COLUMNS = 90 };
    td_tensor *base = NULL, *source = NULL, *whole = NULL, *part = NULL, *turned = NULL;
    const size_t size = td_dtype_size(dtype);
    const int64_t gap = between_elements ? 3 : 1, sizes[] = {COLUMNS, ROWS};
    const int64_t shape[] = {ROWS, COLUMNS, 1}, strides[] = {gap * (COLUMNS + 2), gap, 1};
    const int64_t all = ROWS * gap * (COLUMNS + 2);
    REQUIRE(td_tensor_empty(dtype, TD_DEVICE_CPU, 2, sizes, &base) == TD_OK);
    REQUIRE(td_tensor_empty(dtype, TD_DEVICE_CPU, 1, &all, &whole) == TD_OK);
    for (int64_t k = 0; k < base->numel * (int64_t)size; k++)
        ((uint8_t *)base->data)[k] = (uint8_t)(k * 2654435761u >> 13);
    memset(whole->data, 0xEE, (size_t)all * size);
    memset(want, 0xEE, sizeof want);
    REQUIRE(TD_APPLY(&turned, transpose, TD_T(base), TD_I(0), TD_I(1)) == TD_OK);
    REQUIRE(TD_APPLY(&source, unsqueeze, TD_T(turned), TD_I(2)) == TD_OK);
    REQUIRE(td_tensor_view(whole, 3, shape, strides, 0, &part) == TD_OK);
    REQUIRE(td_copy_into(part, source) == TD_OK);
    for (int64_t r = 0; r < ROWS; r++)
        for (int64_t c = 0; c < COLUMNS; c++)
            memcpy(want + (size_t)(r * strides[0] + c * gap) * size,
                   (char *)base->data + (size_t)(c * ROWS + r) * size, size);
    CHECK(memcmp(want, whole->data, (size_t)all * size) == 0);
    td_release(base);
    td_release(source);
    td_release(whole);
    td_release(part);
    td_release(turned);
}

TEST(copies_into_gaps_leave_them_alone) {
    static const td_dtype dtypes[] = {TD_U8, TD_BF16, TD_F32, TD_F64};
    for (int d = 0; d < 4; d++) {
        check_gaps(dtypes[d], true);
        check_gaps(dtypes[d], false);
    }
}

int main(void) {
    if (td_init()) {
        fprintf(stderr, "%s\n", td_error_message());
        return 1;
    }
    RUN(matrices_of_any_size_are_turned_round);
    RUN(copies_that_exchange_dims_are_made_of_whole_and_cut_blocks);
    RUN(copies_into_gaps_leave_them_alone);
    return check_finish();
}

/* test_arrow.c: columns of a host program as tensors and back by Arrow's C data interface: every
 * callback is called once, whatever fails; bits, offsets and missing values; structs that are wrong
 * in themselves. */
#include "engine/td.h"

#include "tests/check.h"

#include <math.h>
#include <string.h>

static int schemas_released, arrays_released;

static void release_schema(struct ArrowSchema *s) {
    schemas_released++;
    s->release = NULL;
}

static void release_array(struct ArrowArray *a) {
    arrays_released++;
    a->release = NULL;
}

/* A column of the host, whose buffers are lent. */
typedef struct host {
    struct ArrowSchema schema;
    struct ArrowArray array;
    const void *buffers[3];
} host;

static void set_up(host *h, const char *format, int64_t n, int64_t offset, const void *bits,
                   const void *values) {
    *h = (host){.buffers = {bits, values}};
    h->schema = (struct ArrowSchema){.format = format, .name = "x", .release = release_schema};
    h->array = (struct ArrowArray){.length = n,
                                   .null_count = -1,
                                   .offset = offset,
                                   .n_buffers = 2,
                                   .buffers = h->buffers,
                                   .release = release_array};
    schemas_released = arrays_released = 0;
}

static td_tensor *take(host *h) {
    td_tensor *x = NULL;
    td_status status = td_from_arrow(&h->schema, &h->array, &x);
    CHECK(!h->schema.release && !h->array.release);
    CHECK((status == TD_OK) == (x != NULL));
    return x;
}

static double item(const td_tensor *x, int64_t k) {
    return td_load_double(x->dtype, (const char *)x->data + (size_t)k * td_tensor_itemsize(x));
}

TEST(numbers_are_lent_and_given_back_once) {
    static const double doubles[] = {1.5, 2.5, 3.5, 4.5};
    static const struct {
        const char *format;
        td_dtype dtype;
    } rows[] = {{"c", TD_I8},    {"C", TD_U8},    {"s", TD_I16},       {"i", TD_I32},
                {"l", TD_I64},   {"e", TD_F16},   {"f", TD_F32},       {"g", TD_F64},
                {"tdD", TD_I32}, {"tdm", TD_I64}, {"tts", TD_I32},     {"ttm", TD_I32},
                {"ttu", TD_I64}, {"ttn", TD_I64}, {"tsu:UTC", TD_I64}, {"tss:", TD_I64},
                {"tDm", TD_I64}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        host h;
        set_up(&h, rows[k].format, 2, 1, NULL, doubles);
        td_tensor *x = take(&h), *view = NULL;
        CHECK_INT(x->dtype, rows[k].dtype);
        CHECK_INT(x->numel, 2);
        CHECK(x->data == (const char *)doubles + td_dtype_size(x->dtype));
        CHECK(td_tensor_alias(x, &view) == TD_OK);
        td_release(x);
        CHECK_INT(schemas_released + arrays_released, 0);
        td_release(view);
        CHECK_INT(schemas_released, 1);
        CHECK_INT(arrays_released, 1);
    }
}

TEST(bits_and_unsigned_integers_are_copied) {
    static const uint8_t bits[] = {0xB4, 0x01}; /* from bit 2 on: 1 0 1 1 0 1 1 */
    static const uint16_t halves[] = {0, 65535, 7};
    static const uint32_t words[] = {0, 4294967295u, 7};
    static const uint64_t large[] = {0, INT64_MAX, 7}, beyond[] = {0, (uint64_t)INT64_MAX + 1};
    static const double flags[] = {1, 0, 1, 1, 0, 1, 1};
    host h;
    set_up(&h, "b", 7, 2, NULL, bits);
    td_tensor *x = take(&h);
    CHECK_INT(x->dtype, TD_BOOL);
    for (int k = 0; k < 7; k++)
        CHECK(item(x, k) == flags[k]);
    CHECK_INT(arrays_released, 1);
    td_release(x);
    struct {
        const char *format;
        const void *values;
        td_dtype dtype;
        int64_t second;
    } rows[] = {{"S", halves, TD_I32, 65535},
                {"I", words, TD_I64, 4294967295},
                {"L", large, TD_I64, INT64_MAX}};
    for (int k = 0; k < 3; k++) {
        set_up(&h, rows[k].format, 3, 0, NULL, rows[k].values);
        x = take(&h);
        CHECK_INT(x->dtype, rows[k].dtype);
        CHECK_INT(td_load_int(x->dtype, (char *)x->data + td_tensor_itemsize(x)), rows[k].second);
        td_release(x);
    }
    set_up(&h, "L", 2, 0, NULL, beyond);
    CHECK(!take(&h));
    CHECK_INT(schemas_released, 1);
    CHECK_INT(arrays_released, 1);
}

TEST(what_is_missing_is_nan) {
    static const uint8_t bits[] = {0x0D}; /* 1 0 1 1 */
    static const int32_t ints[] = {1, 2, 3, 4};
    static const float floats[] = {1, 2, 3, 4};
    host h;
    for (int k = 0; k < 2; k++) {
        set_up(&h, k ? "f" : "i", 3, 1, bits, k ? (const void *)floats : ints);
        td_tensor *x = take(&h);
        CHECK_INT(x->dtype, k ? TD_F32 : TD_F64);
        CHECK(isnan(item(x, 0)) && item(x, 1) == 3 && item(x, 2) == 4);
        CHECK_INT(arrays_released, 1);
        td_release(x);
        set_up(&h, k ? "f" : "i", 2, 2, bits,
               k ? (const void *)floats : ints); /* none of these is missing */
        x = take(&h);
        CHECK(x->dtype == (k ? TD_F32 : TD_I32) && item(x, 0) == 3);
        td_release(x);
        CHECK_INT(arrays_released, 1);
    }
}

TEST(structs_that_are_wrong_are_refused_and_released_once) {
    static const double doubles[] = {1, 2, 3, 4};
    static const char *const formats[] = {"",     "u8",  "w:12", "d:10,2", "+l", "+s", "x",
                                          "tsx:", "tss", "t",    "tD",     "gg", "u",  NULL};
    for (int k = 0; k < 22; k++) {
        host h;
        set_up(&h, k < 14 ? formats[k] : "g", 2, 0, NULL, doubles);
        struct ArrowSchema child = {.format = "l"}, *children[] = {&child};
        if (k == 14)
            h.array.length = -1;
        if (k == 15)
            h.array.offset = -1;
        if (k == 16)
            h.array.offset = INT64_MAX;
        if (k == 17)
            h.array.n_buffers = 1;
        if (k == 18)
            h.array.buffers = NULL;
        if (k == 19)
            h.buffers[1] = NULL;
        if (k == 20)
            h.schema.dictionary = &child;
        if (k == 21) {
            h.schema.n_children = 1;
            h.schema.children = children;
        }
        CHECK(!take(&h));
        CHECK_INT(td_error_code(), TD_EVALUE);
        CHECK_INT(schemas_released, 1);
        CHECK_INT(arrays_released, 1);
        CHECK(!take(&h)); /* released already: nothing is called again */
        CHECK_INT(schemas_released + arrays_released, 2);
    }
}

TEST(each_allocation_may_fail_and_nothing_is_lost) {
    static const double doubles[] = {1, 2, 3, 4};
    static const uint8_t bits[] = {0x0D};
    bool done = false;
    for (int64_t n = 1; !done; n++) {
        host h;
        td_tensor *x = NULL;
        set_up(&h, "g", 4, 0, n % 2 ? bits : NULL, doubles);
        td_memory_fail_after(n / 2 + 1);
        td_status status = td_from_arrow(&h.schema, &h.array, &x);
        td_memory_fail_after(0);
        td_release(x);
        CHECK_INT(schemas_released, 1);
        CHECK_INT(arrays_released, 1);
        CHECK(status == TD_OK || status == TD_ENOMEM);
        done = n > 2 && status == TD_OK && n % 2;
    }
}

TEST(tensors_are_lent_until_they_are_released) {
    for (int dtype = 0; dtype < TD_DTYPE_COUNT; dtype++) {
        int64_t n = 11;
        td_tensor *x = NULL, *back = NULL;
        struct ArrowSchema schema;
        struct ArrowArray array;
        CHECK(td_tensor_empty((td_dtype)dtype, TD_DEVICE_CPU, 1, &n, &x) == TD_OK);
        for (int64_t k = 0; k < n; k++)
            td_store_double((td_dtype)dtype, (char *)x->data + (size_t)k * td_tensor_itemsize(x),
                            (double)(k % 3));
        td_status status = td_to_arrow(x, "name", &schema, &array);
        if (dtype == TD_BF16) {
            CHECK(status == TD_EVALUE && !schema.release && !array.release);
            td_release(x);
            continue;
        }
        CHECK(status == TD_OK && !strcmp(schema.name, "name"));
        CHECK(dtype == TD_BOOL || array.buffers[1] == x->data);
        CHECK(td_from_arrow(&schema, &array, &back) == TD_OK);
        CHECK_INT(back->dtype, dtype);
        void *data = x->data;
        td_release(x);
        CHECK(dtype == TD_BOOL || back->data == data);
        for (int64_t k = 0; k < n; k++)
            CHECK(item(back, k) == (dtype == TD_BOOL ? k % 3 != 0 : (double)(k % 3)));
        td_release(back);
    }
}

static td_tensor *new_row(td_dtype dtype, int64_t n, const void *values) {
    td_tensor *x = NULL;
    CHECK(td_tensor_empty(dtype, TD_DEVICE_CPU, 1, &n, &x) == TD_OK);
    memcpy(x->data, values, (size_t)n * td_dtype_size(dtype));
    return x;
}

TEST(tables_of_numbers_and_texts_come_back) {
    static const int64_t codes[] = {2, 0, 1, 2}, offsets[] = {0, 2, 5}, wrong[] = {3, 0, 1, 2};
    static const double numbers[] = {1, 2, 3, 4};
    td_tensor *c = new_row(TD_I64, 4, codes), *b = new_row(TD_U8, 5, "abcde"),
              *o = new_row(TD_I64, 3, offsets);
    td_tensor *w = new_row(TD_I64, 4, wrong), *x = new_row(TD_F64, 4, numbers), *back = NULL;
    struct ArrowSchema schemas[2], schema;
    struct ArrowArray arrays[2], array;
    td_arrow *taken = NULL;
    const char *at;
    size_t len;
    CHECK(td_texts_to_arrow(w, b, o, "t", &schema, &array) == TD_EVALUE && !schema.release);
    CHECK(td_texts_to_arrow(c, b, o, "t", &schemas[0], &arrays[0]) == TD_OK);
    CHECK(td_to_arrow(x, "x", &schemas[1], &arrays[1]) == TD_OK);
    CHECK(td_columns_to_arrow(2, schemas, arrays, 4, &schema, &array) == TD_OK);
    CHECK(!schemas[0].release && !arrays[1].release);
    array.offset = 1; /* as a slice of it has it */
    array.length = 3;
    CHECK(td_arrow_take(&schema, &array, &taken) == TD_OK);
    CHECK_INT(td_arrow_columns(taken), 2);
    CHECK(td_arrow_has_texts(taken, 0) && !td_arrow_has_texts(taken, 1) &&
          !strcmp(td_arrow_name(taken, 1), "x"));
    CHECK(td_arrow_text(taken, 0, 0, &at, &len) == TD_OK && !at);
    CHECK(td_arrow_text(taken, 0, 1, &at, &len) == TD_OK && len == 2 && !memcmp(at, "ab", 2));
    CHECK(td_arrow_text(taken, 0, 2, &at, &len) == TD_OK && len == 3 && !memcmp(at, "cde", 3));
    CHECK(td_arrow_tensor(taken, 1, &back) == TD_OK && back->numel == 3 && item(back, 0) == 2);
    CHECK(back->data == (char *)x->data + 8);
    td_arrow_release(taken);
    CHECK(item(back, 2) == 4);
    td_release(back);
    td_tensor *all[] = {c, b, o, w, x};
    for (int k = 0; k < 5; k++)
        td_release(all[k]);
}

int main(void) {
    if (td_init())
        return 1;
    RUN(numbers_are_lent_and_given_back_once);
    RUN(bits_and_unsigned_integers_are_copied);
    RUN(what_is_missing_is_nan);
    RUN(structs_that_are_wrong_are_refused_and_released_once);
    RUN(each_allocation_may_fail_and_nothing_is_lost);
    RUN(tensors_are_lent_until_they_are_released);
    RUN(tables_of_numbers_and_texts_come_back);
    return check_finish();
}

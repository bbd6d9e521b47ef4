/* fuzz_arrow.c: any text as the format of a column of Arrow's, with any counts, and as that of its
 * dictionary; the buffers are large enough for what may be taken. Both callbacks are called once.
 */
#include "engine/td.h"
#include "tests/torture/fuzz/bytes.h"

#include <stdlib.h>
#include <string.h>

static int released;

static void release_schema(struct ArrowSchema *s) {
    released++;
    s->release = NULL;
}

static void release_array(struct ArrowArray *a) {
    released++;
    a->release = NULL;
}

enum { ROWS = 16 };

/* What may be read of a column that is taken. */
static void read_all(td_arrow *x) {
    td_tensor *values = NULL;
    const char *at;
    size_t len;
    HOLDS(td_arrow_columns(x) < 0);
    for (int64_t row = 0; td_arrow_has_texts(x, 0) && row < td_arrow_rows(x); row++)
        if (td_arrow_text(x, 0, row, &at, &len) == TD_OK && at && len)
            HOLDS(at[0] == 0 && at[len - 1] == 0);
    if (!td_arrow_has_texts(x, 0) && td_arrow_tensor(x, 0, &values) == TD_OK)
        HOLDS(values->numel == td_arrow_rows(x));
    td_release(values);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const int64_t zeros[4 * ROWS];
    const void *buffers[3] = {NULL, zeros, zeros};
    uint8_t choice = bytes_choice(&data, &size), counts = bytes_choice(&data, &size);
    char *format = bytes_text(data, size), *second = strchr(format, '\n');
    if (second)
        *second++ = 0;
    buffers[0] = choice & 1 ? zeros : NULL;
    struct ArrowArray texts = {.length = ROWS, .n_buffers = choice & 2 ? 3 : 2, .buffers = buffers};
    struct ArrowSchema texts_schema = {.format = second};
    struct ArrowArray array = {.length = counts % (ROWS + 1) - (counts == 255),
                               .offset = choice & 4   ? ROWS
                                         : choice & 8 ? INT64_MAX
                                                      : 0,
                               .null_count = choice & 16 ? 0 : -1,
                               .n_buffers = choice & 32 ? 3 : 2,
                               .buffers = choice & 64 ? NULL : buffers,
                               .dictionary = second ? &texts : NULL,
                               .release = release_array};
    struct ArrowSchema schema = {.format = format, .release = release_schema};
    schema.dictionary = second ? &texts_schema : NULL;
    td_arrow *x = NULL;
    released = 0;
    if (td_init() == TD_OK && td_arrow_take(&schema, &array, &x) == TD_OK)
        read_all(x);
    else
        HOLDS(!strchr(td_error_message(), '\n'));
    td_arrow_release(x);
    HOLDS(released == 2 && !schema.release && !array.release);
    free(format);
    return 0;
}

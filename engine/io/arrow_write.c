/* arrow_write.c: tensors as columns of Arrow's C data interface; see arrow.h. */
#include "engine/core/memory.h"
#include "engine/io/arrow.h"

#include <string.h>

enum { MOST_BUFFERS = 3 };

/* What an array of ours keeps until it is released. */
typedef struct owned {
    const void *buffers[MOST_BUFFERS];
    td_tensor *tensors[2]; /* whose memory the buffers are */
    void *blocks[2];       /* memory of its own */
} owned;

static td_status fail_memory(void) {
    return td_fail(TD_ENOMEM, "out of memory");
}

/* ---- release ---- */

static void release_schema(struct ArrowSchema *s) {
    for (int64_t k = 0; k < s->n_children; k++) {
        if (s->children[k]->release)
            s->children[k]->release(s->children[k]);
        td_free(s->children[k]);
    }
    if (s->dictionary && s->dictionary->release)
        s->dictionary->release(s->dictionary);
    td_free(s->dictionary);
    td_free(s->children);
    td_free(s->private_data);
    s->release = NULL;
}

static void release_array(struct ArrowArray *a) {
    owned *o = a->private_data;
    for (int64_t k = 0; k < a->n_children; k++) {
        if (a->children[k]->release)
            a->children[k]->release(a->children[k]);
        td_free(a->children[k]);
    }
    if (a->dictionary && a->dictionary->release)
        a->dictionary->release(a->dictionary);
    td_free(a->dictionary);
    td_free(a->children);
    for (int k = 0; k < 2; k++) {
        td_release(o->tensors[k]);
        td_free(o->blocks[k]);
    }
    td_free(o);
    a->release = NULL;
}

static void release_both(struct ArrowSchema *schema, struct ArrowArray *array) {
    if (schema->release)
        schema->release(schema);
    if (array->release)
        array->release(array);
}

/* ---- making ---- */

/* Both structs of a format, with a copy of the name and without buffers. */
static td_status begin(const char *format, const char *name, int64_t rows, int64_t nbuffers,
                       struct ArrowSchema *schema, struct ArrowArray *array) {
    owned *o = td_calloc(1, sizeof *o);
    char *copy = td_strdup(name ? name : "");
    *schema = (struct ArrowSchema){
        .format = format, .name = copy, .flags = ARROW_FLAG_NULLABLE, .private_data = copy};
    *array = (struct ArrowArray){.length = rows, .n_buffers = nbuffers, .private_data = o};
    if (!o || !copy) {
        td_free(o);
        td_free(copy);
        return fail_memory();
    }
    array->buffers = o->buffers;
    schema->release = release_schema;
    array->release = release_array;
    return TD_OK;
}

static bool is_row(const td_tensor *x, td_dtype dtype) {
    return x->layout == TD_STRIDED && x->ndim == 1 && x->contiguous && x->dtype == dtype &&
           td_tensor_device(x).type == TD_CPU;
}

static const char *format_of(td_dtype dtype) {
    switch (dtype) {
    case TD_BOOL:
        return "b";
    case TD_U8:
        return "C";
    case TD_I8:
        return "c";
    case TD_I16:
        return "s";
    case TD_I32:
        return "i";
    case TD_I64:
        return "l";
    case TD_F16:
        return "e";
    case TD_F32:
        return "f";
    case TD_F64:
        return "g";
    case TD_BF16:
    case TD_DTYPE_NONE:
    case TD_DTYPE_COUNT:
        break;
    }
    return NULL;
}

/* Bits of bytes that are 0 or not, or of int64; NULL where memory is out. */
static uint8_t *pack_bits(const td_tensor *x) {
    size_t size = td_tensor_itemsize(x);
    uint8_t *bits = td_calloc((size_t)x->numel / 8 + 8, 1);
    for (int64_t k = 0; bits && k < x->numel; k++)
        if (td_load_int(x->dtype, (const char *)x->data + (size_t)k * size))
            bits[k >> 3] |= (uint8_t)(1 << (k & 7));
    return bits;
}

td_status td_to_arrow(td_tensor *x, const char *name, struct ArrowSchema *schema,
                      struct ArrowArray *array) {
    const char *format = format_of(x->dtype);
    schema->release = NULL;
    array->release = NULL;
    if (!format || !is_row(x, x->dtype))
        return td_fail(TD_EVALUE, "arrow: a row-major tensor of one dim on the CPU expected%s",
                       format ? "" : ", of a dtype that Arrow has");
    td_status status = begin(format, name, x->numel, 2, schema, array);
    if (status)
        return status;
    owned *o = array->private_data;
    if (x->dtype == TD_BOOL) {
        o->buffers[1] = o->blocks[0] = pack_bits(x);
        if (!o->blocks[0])
            status = fail_memory();
    } else {
        o->tensors[0] = td_retain(x);
        o->buffers[1] = x->data;
    }
    if (status)
        release_both(schema, array);
    return status;
}

/* The texts of a dictionary, by the tensors themselves. */
static td_status begin_texts(td_tensor *bytes, td_tensor *offsets, struct ArrowSchema *schema,
                             struct ArrowArray *array) {
    td_status status = begin("U", NULL, offsets->numel - 1, 3, schema, array);
    if (status)
        return status;
    owned *o = array->private_data;
    o->tensors[0] = td_retain(offsets);
    o->tensors[1] = td_retain(bytes);
    o->buffers[1] = offsets->data;
    o->buffers[2] = bytes->data;
    return TD_OK;
}

/* The numbers of the dictionary's texts, from 0 on, and which of them are there. */
static td_status set_codes(const td_tensor *codes, int64_t most, struct ArrowArray *array) {
    owned *o = array->private_data;
    int64_t *numbers = td_malloc((size_t)codes->numel * sizeof *numbers + 8);
    o->blocks[0] = numbers;
    o->buffers[1] = numbers;
    o->buffers[0] = o->blocks[1] = pack_bits(codes);
    if (!o->blocks[0] || !o->blocks[1])
        return fail_memory();
    for (int64_t k = 0; k < codes->numel; k++) {
        int64_t code = ((const int64_t *)codes->data)[k];
        if (code < 0 || code > most)
            return td_fail(TD_EVALUE, "arrow: number %lld of %lld texts", (long long)code,
                           (long long)most);
        array->null_count += code == 0;
        numbers[k] = code ? code - 1 : 0;
    }
    return TD_OK;
}

td_status td_texts_to_arrow(td_tensor *codes, td_tensor *bytes, td_tensor *offsets,
                            const char *name, struct ArrowSchema *schema,
                            struct ArrowArray *array) {
    schema->release = NULL;
    array->release = NULL;
    if (!is_row(codes, TD_I64) || !is_row(bytes, TD_U8) || !is_row(offsets, TD_I64) ||
        offsets->numel < 1)
        return td_fail(TD_EVALUE, "arrow: numbers, bytes and offsets of texts on the CPU expected");
    td_status status = begin("l", name, codes->numel, 2, schema, array);
    if (status)
        return status;
    schema->dictionary = td_calloc(1, sizeof *schema->dictionary);
    array->dictionary = td_calloc(1, sizeof *array->dictionary);
    status = schema->dictionary && array->dictionary ? TD_OK : fail_memory();
    if (status == TD_OK)
        status = begin_texts(bytes, offsets, schema->dictionary, array->dictionary);
    if (status == TD_OK)
        status = set_codes(codes, offsets->numel - 1, array);
    if (status)
        release_both(schema, array);
    return status;
}

/* A child of each struct, into which the column's is moved. */
static bool add_child(struct ArrowSchema *schema, struct ArrowArray *array,
                      struct ArrowSchema *column, struct ArrowArray *values) {
    struct ArrowSchema *s = td_malloc(sizeof *s);
    struct ArrowArray *a = td_malloc(sizeof *a);
    if (!s || !a) {
        td_free(s);
        td_free(a);
        return false;
    }
    *s = *column;
    *a = *values;
    column->release = NULL;
    values->release = NULL;
    schema->children[schema->n_children++] = s;
    array->children[array->n_children++] = a;
    return true;
}

td_status td_columns_to_arrow(int64_t n, struct ArrowSchema *columns, struct ArrowArray *arrays,
                              int64_t rows, struct ArrowSchema *schema, struct ArrowArray *array) {
    td_status status = begin("+s", NULL, rows, 1, schema, array);
    if (status == TD_OK) {
        schema->children = td_calloc((size_t)n + 1, sizeof *schema->children);
        array->children = td_calloc((size_t)n + 1, sizeof *array->children);
        status = schema->children && array->children ? TD_OK : fail_memory();
        for (int64_t k = 0; status == TD_OK && k < n; k++)
            if (!add_child(schema, array, &columns[k], &arrays[k]))
                status = fail_memory();
        if (status)
            release_both(schema, array);
    }
    for (int64_t k = 0; k < n; k++)
        release_both(&columns[k], &arrays[k]);
    return status;
}

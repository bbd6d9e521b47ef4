/* arrow_read.c: columns of Arrow's C data interface as tensors; see arrow.h. */
#include "engine/core/memory.h"
#include "engine/io/arrow.h"

#include <math.h>
#include <string.h>

struct td_arrow {
    atomic_int refs;
    struct ArrowSchema schema;
    struct ArrowArray array;
};

/* What a format says. */
typedef struct kind {
    td_dtype dtype; /* of the tensor; TD_DTYPE_NONE: no numbers */
    char letter; /* b: bits; S, I, L: unsigned integers that Tide has not; u, U: texts; +: a struct;
                    0: as it is */
} kind;

static td_status fail_format(const char *format) {
    return td_fail(
        TD_EVALUE,
        "arrow: a column of format '%.40s' is no tensor: numbers, booleans, times expected",
        format ? format : "");
}

/* Dates, times, timestamps and durations count units in int32 or int64. */
static td_dtype dtype_of_time(const char *f) {
    if (!strcmp(f, "tdD") || !strcmp(f, "tts") || !strcmp(f, "ttm"))
        return TD_I32;
    bool unit = f[1] && f[2] && strchr("smun", f[2]);
    bool stamp = f[1] == 's' && unit && f[3] == ':', duration = f[1] == 'D' && unit && !f[3];
    return !strcmp(f, "tdm") || !strcmp(f, "ttu") || !strcmp(f, "ttn") || stamp || duration
               ? TD_I64
               : TD_DTYPE_NONE;
}

static kind kind_of(const char *f) {
    static const struct {
        char format, letter;
        td_dtype dtype;
    } kinds[] = {{'c', 0, TD_I8},           {'C', 0, TD_U8},          {'s', 0, TD_I16},
                 {'i', 0, TD_I32},          {'l', 0, TD_I64},         {'e', 0, TD_F16},
                 {'f', 0, TD_F32},          {'g', 0, TD_F64},         {'b', 'b', TD_BOOL},
                 {'S', 'S', TD_I32},        {'I', 'I', TD_I64},       {'L', 'L', TD_I64},
                 {'u', 'u', TD_DTYPE_NONE}, {'U', 'U', TD_DTYPE_NONE}};
    if (!f)
        return (kind){TD_DTYPE_NONE, 0};
    if (!strcmp(f, "+s"))
        return (kind){TD_DTYPE_NONE, '+'};
    if (f[0] == 't')
        return (kind){dtype_of_time(f), 0};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (f[0] == kinds[k].format && !f[1])
            return (kind){kinds[k].dtype, kinds[k].letter};
    return (kind){TD_DTYPE_NONE, 0};
}

/* ---- checks ---- */

/* Is an array what its schema says, as far as the structs tell? */
static td_status check_pair(const struct ArrowSchema *s, const struct ArrowArray *a) {
    kind k = kind_of(s->format);
    int64_t buffers = k.letter == '+' ? 1 : k.letter == 'u' || k.letter == 'U' ? 3 : 2, end;
    bool known = k.letter || k.dtype != TD_DTYPE_NONE;
    if (!known)
        return fail_format(s->format);
    if (a->length < 0 || a->offset < 0 || __builtin_add_overflow(a->length, a->offset, &end) ||
        end > INT64_MAX / 16)
        return td_fail(TD_EVALUE, "arrow: an array of length %lld from %lld on",
                       (long long)a->length, (long long)a->offset);
    if (a->n_buffers != buffers || !a->buffers)
        return td_fail(TD_EVALUE, "arrow: an array of format '%s' with %lld buffers, %lld expected",
                       s->format, (long long)a->n_buffers, (long long)buffers);
    if (buffers > 1 && end > 0 && !a->buffers[1])
        return td_fail(TD_EVALUE, "arrow: an array of format '%s' without its buffer", s->format);
    if (!s->dictionary != !a->dictionary || s->n_children != a->n_children || s->n_children < 0 ||
        (s->n_children && (!s->children || !a->children)))
        return td_fail(TD_EVALUE, "arrow: schema and array differ");
    if (s->dictionary && (k.dtype == TD_DTYPE_NONE || !td_dtype_is_int(k.dtype)))
        return td_fail(TD_EVALUE, "arrow: a dictionary's numbers of format '%s'", s->format);
    return TD_OK;
}

static bool is_text(const struct ArrowSchema *s) {
    char letter = kind_of(s->format).letter;
    return !s->dictionary && (letter == 'u' || letter == 'U');
}

static td_status check_column(const struct ArrowSchema *s, const struct ArrowArray *a) {
    td_status status = s && a ? check_pair(s, a) : td_fail(TD_EVALUE, "arrow: a column is missing");
    if (status == TD_OK && kind_of(s->format).letter == '+')
        return td_fail(TD_EVALUE, "arrow: a struct of columns within a struct");
    if (status || !s->dictionary)
        return status;
    status = check_pair(s->dictionary, a->dictionary);
    return status || is_text(s->dictionary) ? status : fail_format(s->dictionary->format);
}

static bool is_valid(const struct ArrowArray *a, int64_t at) {
    const uint8_t *bits = a->buffers[0];
    return !bits || (bits[at >> 3] >> (at & 7) & 1);
}

/* Does one of n values from `first` on lie without a value? */
static bool has_gaps(const struct ArrowArray *a, int64_t first, int64_t n) {
    if (!a->buffers[0] || a->null_count == 0)
        return false;
    for (int64_t k = 0; k < n; k++)
        if (!is_valid(a, first + k))
            return true;
    return false;
}

static td_status check_all(const td_arrow *x) {
    const struct ArrowSchema *s = &x->schema;
    const struct ArrowArray *a = &x->array;
    td_status status = check_pair(s, a);
    if (status || kind_of(s->format).letter != '+')
        return status ? status : check_column(s, a);
    if (has_gaps(a, a->offset, a->length))
        return td_fail(TD_EVALUE, "arrow: rows of a struct that are missing as a whole");
    for (int64_t k = 0; status == TD_OK && k < s->n_children; k++) {
        status = check_column(s->children[k], a->children[k]);
        if (status == TD_OK && a->children[k]->length < a->offset + a->length)
            return td_fail(TD_EVALUE, "arrow: column %lld has %lld rows of %lld", (long long)k + 1,
                           (long long)a->children[k]->length, (long long)(a->offset + a->length));
    }
    return status;
}

/* ---- ownership ---- */

void td_arrow_release(td_arrow *x) {
    if (!x || !td_was_last(&x->refs))
        return;
    if (x->schema.release)
        x->schema.release(&x->schema);
    if (x->array.release)
        x->array.release(&x->array);
    td_free(x);
}

td_status td_arrow_take(struct ArrowSchema *schema, struct ArrowArray *array, td_arrow **out) {
    td_arrow *x = td_malloc(sizeof *x);
    *out = NULL;
    if (x)
        *x = (td_arrow){.refs = 1, .schema = *schema, .array = *array};
    if (!x && schema->release)
        schema->release(schema);
    if (!x && array->release)
        array->release(array);
    schema->release = NULL;
    array->release = NULL;
    if (!x)
        return td_fail(TD_ENOMEM, "out of memory");
    td_status status = x->schema.release && x->array.release
                           ? check_all(x)
                           : td_fail(TD_EVALUE, "arrow: the structs were released already");
    if (status)
        td_arrow_release(x);
    else
        *out = x;
    return status;
}

static void let_go(void *owner, void *data) {
    (void)data;
    td_arrow_release(owner);
}

/* ---- columns ---- */

int64_t td_arrow_rows(const td_arrow *x) {
    return x->array.length;
}

int64_t td_arrow_columns(const td_arrow *x) {
    return kind_of(x->schema.format).letter == '+' ? x->schema.n_children : -1;
}

/* A column's structs, and where its rows begin in its buffers. */
typedef struct column {
    const struct ArrowSchema *schema;
    const struct ArrowArray *array;
    int64_t first;
} column;

static column find_column(const td_arrow *x, int64_t k) {
    if (td_arrow_columns(x) < 0)
        return (column){&x->schema, &x->array, x->array.offset};
    const struct ArrowArray *a = x->array.children[k];
    return (column){x->schema.children[k], a, a->offset + x->array.offset};
}

const char *td_arrow_name(const td_arrow *x, int64_t k) {
    const char *name = find_column(x, k).schema->name;
    return name ? name : "";
}

bool td_arrow_has_texts(const td_arrow *x, int64_t k) {
    const struct ArrowSchema *s = find_column(x, k).schema;
    return s->dictionary || is_text(s);
}

/* An integer of a buffer, which may lie at any address, by its format. */
static td_status read_int(kind k, const void *buffer, int64_t at, int64_t *value) {
    uint64_t large = 0;
    uint32_t word = 0;
    uint16_t half = 0;
    size_t size = td_dtype_size(k.dtype);
    const char *from = (const char *)buffer + (size_t)at * (k.letter == 'S'   ? 2
                                                            : k.letter == 'I' ? 4
                                                                              : size);
    if (k.letter == 'b') {
        *value = ((const uint8_t *)buffer)[at >> 3] >> (at & 7) & 1;
    } else if (k.letter == 'S') {
        memcpy(&half, from, sizeof half);
        *value = half;
    } else if (k.letter == 'I') {
        memcpy(&word, from, sizeof word);
        *value = word;
    } else {
        memcpy(&large, from, size);
        *value = td_load_int(k.dtype, &large);
    }
    return k.letter == 'L' && large > INT64_MAX
               ? td_fail(TD_EVALUE, "arrow: %llu is beyond the range of int64",
                         (unsigned long long)large)
               : TD_OK;
}

/* A copy of n values, with NaN for those that are missing. */
static td_status copy_values(const column *c, kind k, int64_t n, bool gaps, td_tensor **out) {
    bool floats = td_dtype_is_float(k.dtype);
    td_dtype dtype = gaps && !floats ? TD_F64 : k.dtype;
    size_t size = td_dtype_size(dtype);
    td_status status = td_tensor_empty(dtype, TD_DEVICE_CPU, 1, &n, out);
    for (int64_t row = 0; status == TD_OK && row < n; row++) {
        char *to = (char *)(*out)->data + (size_t)row * size;
        int64_t at = c->first + row, whole = 0;
        if (gaps && !is_valid(c->array, at))
            td_store_double(dtype, to, (double)NAN);
        else if (floats)
            memcpy(to, (const char *)c->array->buffers[1] + (size_t)at * size, size);
        else if ((status = read_int(k, c->array->buffers[1], at, &whole)) == TD_OK) {
            if (gaps)
                td_store_double(dtype, to, (double)whole);
            else
                td_store_int(dtype, to, whole);
        }
    }
    if (status) {
        td_release(*out);
        *out = NULL;
    }
    return status;
}

td_status td_arrow_tensor(td_arrow *x, int64_t k, td_tensor **out) {
    column c = find_column(x, k);
    kind what = kind_of(c.schema->format);
    int64_t n = x->array.length;
    bool gaps = has_gaps(c.array, c.first, n);
    *out = NULL;
    if (what.dtype == TD_DTYPE_NONE || c.schema->dictionary)
        return fail_format(c.schema->format);
    if (gaps || what.letter || n == 0)
        return copy_values(&c, what, n, gaps, out);
    const char *at =
        (const char *)c.array->buffers[1] + (size_t)c.first * td_dtype_size(what.dtype);
    td_status status =
        td_tensor_from_memory(what.dtype, 1, &n, (void *)(uintptr_t)at, let_go, x, out);
    if (status == TD_OK)
        atomic_fetch_add_explicit(&x->refs, 1, memory_order_relaxed);
    return status;
}

td_status td_from_arrow(struct ArrowSchema *schema, struct ArrowArray *array, td_tensor **out) {
    td_arrow *x = NULL;
    *out = NULL;
    td_status status = td_arrow_take(schema, array, &x);
    if (status == TD_OK)
        status = td_arrow_columns(x) < 0 ? td_arrow_tensor(x, 0, out) : fail_format("+s");
    td_arrow_release(x);
    return status;
}

/* ---- texts ---- */

static td_status find_text(const struct ArrowSchema *s, const struct ArrowArray *a, int64_t at,
                           const char **text, size_t *len) {
    int64_t first, end;
    if (!is_valid(a, at)) {
        *text = NULL;
        return TD_OK;
    }
    if (kind_of(s->format).letter == 'u') {
        const int32_t *offsets = (const int32_t *)a->buffers[1] + at;
        first = offsets[0];
        end = offsets[1];
    } else {
        const int64_t *offsets = (const int64_t *)a->buffers[1] + at;
        first = offsets[0];
        end = offsets[1];
    }
    if (first < 0 || end < first || (end > first && !a->buffers[2]))
        return td_fail(TD_EVALUE, "arrow: a text from byte %lld to %lld", (long long)first,
                       (long long)end);
    *text = end > first ? (const char *)a->buffers[2] + first : "";
    *len = (size_t)(end - first);
    return TD_OK;
}

td_status td_arrow_text(const td_arrow *x, int64_t k, int64_t row, const char **at, size_t *len) {
    column c = find_column(x, k);
    const struct ArrowArray *texts = c.array->dictionary;
    int64_t number;
    *at = NULL;
    *len = 0;
    if (!texts)
        return find_text(c.schema, c.array, c.first + row, at, len);
    if (!is_valid(c.array, c.first + row))
        return TD_OK;
    td_status status =
        read_int(kind_of(c.schema->format), c.array->buffers[1], c.first + row, &number);
    if (status)
        return status;
    if (number < 0 || number >= texts->length)
        return td_fail(TD_EVALUE, "arrow: number %lld of a dictionary of %lld", (long long)number,
                       (long long)texts->length);
    return find_text(c.schema->dictionary, texts, texts->offset + number, at, len);
}

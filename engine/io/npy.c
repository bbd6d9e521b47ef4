/* npy.c: NumPy's files of arrays; see npy.h. The header is read by a small grammar of its own:
 * strings, True, False and tuples of integers are all that a plain array's has. */
#include "engine/io/npy.h"

#include "engine/core/draft.h"
#include "engine/core/number.h"
#include "engine/io/file.h"

#include <stdio.h>
#include <string.h>

enum { MAGIC = 6, ALIGNMENT = 64, SHOWN = 24 };

static const char magic[] = "\x93NUMPY";

/* NumPy's letters for the dtypes; NULL: it has none. */
static const char *const dtype_codes[TD_DTYPE_COUNT] = {
    [TD_BOOL] = "b1", [TD_U8] = "u1",  [TD_I8] = "i1",  [TD_I16] = "i2", [TD_I32] = "i4",
    [TD_I64] = "i8",  [TD_F16] = "f2", [TD_F32] = "f4", [TD_F64] = "f8",
};

/* Other spellings that numpy.dtype takes, behind a mark of the order of bytes or without one. */
static const char *const dtype_spellings[TD_DTYPE_COUNT] = {
    [TD_BOOL] = " ? bool bool_ ",
    [TD_U8] = " B uint8 ubyte ",
    [TD_I8] = " b int8 byte ",
    [TD_I16] = " h int16 short ",
    [TD_I32] = " i int32 intc ",
    [TD_I64] = " l q int64 int_ int long longlong ",
    [TD_F16] = " e float16 half ",
    [TD_F32] = " f float32 single ",
    [TD_F64] = " d float64 float double ",
};

/* ---- the header ---- */

/* What it says, and where reading it stands. */
typedef struct header {
    const char *at, *end;
    td_dtype dtype;
    bool swapped; /* the other order of bytes */
    bool fortran;
    int ndim;
    int64_t sizes[TD_MAX_DIMS];
} header;

static td_status fail_header(void) {
    return td_fail(TD_EVALUE, "its header is not the dictionary of a plain array");
}

static void skip_spaces(header *h) {
    while (h->at < h->end && td_is_space(*h->at))
        h->at++;
}

static bool accept(header *h, const char *text) {
    size_t len = strlen(text);
    skip_spaces(h);
    if ((size_t)(h->end - h->at) < len || memcmp(h->at, text, len) != 0)
        return false;
    h->at += len;
    return true;
}

/* A string in either kind of quotes, without escapes. */
static td_status read_string(header *h, const char **at, size_t *len) {
    skip_spaces(h);
    if (h->at == h->end || (*h->at != '\'' && *h->at != '"'))
        return fail_header();
    const char *stop = memchr(h->at + 1, *h->at, (size_t)(h->end - h->at - 1));
    if (!stop)
        return fail_header();
    *at = h->at + 1;
    *len = (size_t)(stop - *at);
    h->at = stop + 1;
    return TD_OK;
}

/* As a message shows it, on one line. */
static td_status fail_dtype(const char *at, size_t len) {
    char shown[SHOWN + 1];
    size_t n = len < SHOWN ? len : SHOWN;
    for (size_t k = 0; k < n; k++)
        shown[k] = (char)(at[k] > ' ' && at[k] < 127 ? at[k] : '?');
    shown[n] = 0;
    return td_fail(TD_EDTYPE, "its dtype '%s' is not one that Tide has: astype() to one in NumPy",
                   shown);
}

static bool find_dtype(const char *at, size_t len, td_dtype *dtype) {
    char word[SHOWN + 3];
    int n = snprintf(word, sizeof word, " %.*s ", (int)(len < SHOWN ? len : SHOWN), at);
    bool plain = len > 0 && len < SHOWN && (size_t)n == len + 2 && !memchr(at, ' ', len);
    for (int d = 0; plain && d < TD_DTYPE_COUNT; d++)
        if (dtype_codes[d] &&
            ((len == 2 && !memcmp(at, dtype_codes[d], 2)) || strstr(dtype_spellings[d], word))) {
            *dtype = (td_dtype)d;
            return true;
        }
    return false;
}

static td_status read_dtype(header *h) {
    const char *at;
    size_t len;
    skip_spaces(h);
    if (h->at < h->end && *h->at == '[')
        return td_fail(TD_EDTYPE, "it holds records with fields, not an array of numbers");
    td_status status = read_string(h, &at, &len);
    if (status)
        return status;
    bool ordered = len > 0 && memchr("<>=|", *at, 4);
    if (!find_dtype(at + ordered, len - ordered, &h->dtype))
        return fail_dtype(at, len);
    h->swapped = *at == '>' && td_dtype_size(h->dtype) > 1;
    return TD_OK;
}

static td_status read_order(header *h) {
    h->fortran = accept(h, "True");
    return h->fortran || accept(h, "False") ? TD_OK : fail_header();
}

/* A size of digits alone; what is beyond int64 becomes its largest, which no file has. */
static td_status read_size(header *h, int64_t *size) {
    char text[24];
    size_t n = 0;
    skip_spaces(h);
    for (; h->at < h->end && td_is_digit(*h->at); h->at++)
        if (n < sizeof text - 1)
            text[n++] = *h->at;
    text[n] = 0;
    const char *end;
    *size = td_number_read_int(text, &end);
    accept(h, "L"); /* Python 2 wrote long integers so */
    return n ? TD_OK : fail_header();
}

/* (), (3,), (3, 4) */
static td_status read_shape(header *h) {
    td_status status = TD_OK;
    bool more = true;
    if (!accept(h, "("))
        return fail_header();
    while (!accept(h, ")")) {
        if (!more)
            return fail_header();
        if (h->ndim == TD_MAX_DIMS)
            return td_fail(TD_EVALUE, "its shape has more than %d dims", TD_MAX_DIMS);
        TD_TRY(read_size(h, &h->sizes[h->ndim++]));
        more = accept(h, ",");
    }
done:
    return status;
}

enum { HAS_DTYPE = 1, HAS_ORDER = 2, HAS_SHAPE = 4, HAS_ALL = 7 };

static td_status read_field(header *h, int *seen) {
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    static td_status (*const readers[])(header *) = {read_dtype, read_order, read_shape};
    const char *key;
    size_t len;
    td_status status = read_string(h, &key, &len);
    if (status)
        return status;
    for (int k = 0; k < 3; k++)
        if (len == strlen(keys[k]) && !memcmp(key, keys[k], len) && !(*seen & 1 << k)) {
            *seen |= 1 << k;
            return accept(h, ":") ? readers[k](h) : fail_header();
        }
    return fail_header();
}

static td_status read_header(header *h) {
    int seen = 0;
    bool more = true;
    td_status status = TD_OK;
    if (!accept(h, "{"))
        return fail_header();
    while (!accept(h, "}")) {
        if (!more)
            return fail_header();
        TD_TRY(read_field(h, &seen));
        more = accept(h, ",");
    }
    skip_spaces(h);
    if (seen != HAS_ALL || h->at < h->end)
        return fail_header();
done:
    return status;
}

/* Where header and data lie, by the bytes in front of them. */
static td_status find_header(const unsigned char *bytes, size_t held, header *h) {
    if (held < MAGIC + 4 || memcmp(bytes, magic, MAGIC) != 0)
        return td_fail(TD_EVALUE, "no NumPy file%s",
                       held > 1 && bytes[0] == 'P' && bytes[1] == 'K'
                           ? ", but an archive of some (.npz): tide.io.load_npz reads it"
                           : "");
    int version = bytes[MAGIC];
    size_t wide = version == 1 ? 2 : 4, length = 0, first = MAGIC + 2 + wide;
    if (version < 1 || version > 3)
        return td_fail(TD_EVALUE, "version %d of the format is not known", version);
    if (held < first)
        return td_fail(TD_EVALUE, "the file is cut off in its header");
    for (size_t k = wide; k-- > 0;)
        length = length << 8 | bytes[MAGIC + 2 + k];
    if (length > held - first)
        return td_fail(TD_EVALUE, "the file is cut off: a header of %zu bytes in a file of %zu",
                       length, held);
    h->at = (const char *)bytes + first;
    h->end = h->at + length;
    return TD_OK;
}

/* ---- reading ---- */

static void release_bytes(void *owner, void *data) {
    (void)data;
    td_release(owner);
}

/* Is there what the shape wants, and behind it nothing, or another array? */
static td_status check_length(const header *h, const char *data, size_t have, size_t *wanted) {
    char shape[TD_SHAPE_TEXT];
    int64_t bytes = td_numel(h->ndim, h->sizes);
    td_shape_text(h->ndim, h->sizes, shape, sizeof shape);
    if (bytes < 0 || __builtin_mul_overflow(bytes, (int64_t)td_dtype_size(h->dtype), &bytes))
        return td_fail(TD_EVALUE, "its shape %s has more elements than can be counted", shape);
    *wanted = (size_t)bytes;
    bool more = have >= *wanted + MAGIC && !memcmp(data + bytes, magic, MAGIC);
    if (*wanted != have && !more)
        return td_fail(TD_EVALUE, "%s of %s takes %lld bytes, the file has %zu", shape,
                       td_dtype_name(h->dtype), (long long)bytes, have);
    return TD_OK;
}

/* Elements that lie where their dtype wants them are not moved; headers of old files end anywhere.
 */
static td_status take_elements(const header *h, td_tensor *bytes, char *at, size_t n,
                               td_tensor **out) {
    if ((uintptr_t)at % td_dtype_size(h->dtype) == 0) {
        td_status status =
            td_tensor_from_memory(h->dtype, h->ndim, h->sizes, at, release_bytes, bytes, out);
        if (status == TD_OK)
            td_retain(bytes);
        return status;
    }
    td_status status = td_tensor_empty(h->dtype, TD_DEVICE_CPU, h->ndim, h->sizes, out);
    if (status == TD_OK && n)
        memcpy((*out)->data, at, n);
    return status;
}

static td_status lay_columns(const header *h, td_tensor *x) {
    int64_t strides[TD_MAX_DIMS], step = 1;
    if (!h->fortran)
        return TD_OK;
    for (int d = 0; d < h->ndim; d++) {
        strides[d] = step;
        step *= h->sizes[d] ? h->sizes[d] : 1;
    }
    return td_tensor_set_shape(x, h->ndim, h->sizes, strides);
}

td_status td_npy_read(td_tensor *bytes, size_t held, size_t *at, td_tensor **out) {
    header h = {.ndim = 0};
    char *first = (char *)bytes->data + *at;
    size_t have = 0;
    td_status status = TD_OK;
    *out = NULL;
    TD_TRY(find_header((const unsigned char *)first, held - *at, &h));
    char *data = first + (h.end - first);
    TD_TRY(read_header(&h));
    TD_TRY(check_length(&h, data, held - (size_t)(data - (char *)bytes->data), &have));
    int64_t n = (int64_t)(have / td_dtype_size(h.dtype));
    TD_TRY(td_elements_check(h.dtype, data, n));
    if (h.swapped)
        TD_TRY(td_elements_turn(h.dtype, data, n));
    TD_TRY(take_elements(&h, bytes, data, have, out));
    TD_TRY(lay_columns(&h, *out));
    *at = (size_t)(data - (char *)bytes->data) + have;
done:
    if (status) {
        td_release(*out);
        *out = NULL;
    }
    return status;
}

/* ---- writing ---- */

bool td_npy_holds(const td_tensor *x) {
    return dtype_codes[x->dtype] && x->layout == TD_STRIDED && x->contiguous &&
           td_tensor_device(x).type == TD_CPU;
}

/* At most 16 dims of 20 digits are far below the 65,535 that version 1 holds. */
size_t td_npy_header(const td_tensor *x, char to[static TD_NPY_HEADER]) {
    size_t at = MAGIC + 4, room = TD_NPY_HEADER;
    bool wide = td_dtype_size(x->dtype) > 1;
    memcpy(to, magic, MAGIC);
    to[MAGIC] = 1;
    to[MAGIC + 1] = 0;
    at +=
        (size_t)snprintf(to + at, room - at, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                         wide ? '<' : '|', dtype_codes[x->dtype]);
    for (int d = 0; d < x->ndim; d++)
        at += (size_t)snprintf(to + at, room - at, "%s%lld%s", d ? ", " : "",
                               (long long)x->sizes[d], x->ndim == 1 ? "," : "");
    at += (size_t)snprintf(to + at, room - at, "), }");
    while ((at + 1) % ALIGNMENT)
        to[at++] = ' ';
    to[at++] = '\n';
    to[MAGIC + 2] = (char)((at - MAGIC - 4) & 0xFF);
    to[MAGIC + 3] = (char)((at - MAGIC - 4) >> 8);
    return at;
}

td_status td_npy_write(const char *path, const td_tensor *x) {
    char first[TD_NPY_HEADER];
    td_draft *draft = NULL;
    td_status status = TD_OK;
    if (!dtype_codes[x->dtype])
        return td_fail(TD_EVALUE, "NumPy has no %s: convert it to float32",
                       td_dtype_name(x->dtype));
    TD_TRY(td_draft_open(path, &draft));
    TD_TRY(td_draft_write(draft, first, td_npy_header(x, first)));
    TD_TRY(td_draft_write(draft, x->data, (size_t)x->numel * td_dtype_size(x->dtype)));
    TD_TRY(td_draft_commit(draft));
done:
    td_draft_close(draft);
    return status;
}

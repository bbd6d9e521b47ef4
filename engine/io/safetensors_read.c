/* safetensors_read.c: from a file to tensors. The header is read and checked first, entry by entry;
 * what the tables of it take grows with what was read, whatever a number in it claims. */
#include "engine/core/memory.h"
#include "engine/io/file.h"
#include "engine/io/json.h"
#include "engine/io/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct td_safetensors_file {
    td_file *file;
    bool owned;        /* a reference; otherwise borrowed */
    int64_t at, bytes; /* the part of it that is the archive */
    char *header;      /* names and notes lie in it */
    int64_t header_bytes, data_at, data_bytes;
    int64_t entry_room, note_room;
};

enum { LENGTH_BYTES = 8, NAME_SHOWN = 60 };

static const char *const dtype_names[TD_DTYPE_COUNT] = {
    [TD_BOOL] = "BOOL", [TD_U8] = "U8",   [TD_I8] = "I8",     [TD_I16] = "I16", [TD_I32] = "I32",
    [TD_I64] = "I64",   [TD_F16] = "F16", [TD_BF16] = "BF16", [TD_F32] = "F32", [TD_F64] = "F64",
};

const char *td_safetensors_dtype_name(td_dtype dtype) {
    return dtype_names[dtype];
}

/* ---- messages ---- */

/* A text of the file as a message shows it: its beginning, on one line. */
static const char *show(td_text text, char buffer[static NAME_SHOWN + 8]) {
    size_t n = 0, length;
    for (; n < text.len && n < NAME_SHOWN; n += length) {
        length = td_utf8_length(text.at + n, text.at + text.len);
        if (n + length > NAME_SHOWN || length == 0)
            break;
        bool plain = (unsigned char)text.at[n] >= ' ' && text.at[n] != 127;
        memcpy(buffer + n, plain ? text.at + n : "?", length);
    }
    snprintf(buffer + n, 4, "%s", n < text.len ? "..." : "");
    return buffer;
}

static td_status fail_entry(const td_entry *e, const char *what) {
    char name[NAME_SHOWN + 8];
    return td_fail(TD_EVALUE, "tensor '%s': %s", show(e->name, name), what);
}

static bool same_text(td_text a, td_text b) {
    return a.len == b.len && !memcmp(a.at, b.at, a.len);
}

static bool is_text(td_text a, const char *b) {
    return a.len == strlen(b) && !memcmp(a.at, b, a.len);
}

/* Room for one more in a table, doubled when it is full. */
static td_status make_room(void **table, int64_t count, int64_t *room, size_t size) {
    if (count < *room)
        return TD_OK;
    int64_t more = *room ? 2 * *room : 8;
    void *larger = td_realloc(*table, (size_t)more * size);
    if (!larger)
        return td_fail(TD_ENOMEM, "out of memory");
    *table = larger;
    *room = more;
    return TD_OK;
}

/* ---- the header ---- */

static td_status read_dtype(td_json *json, td_entry *e) {
    td_status status = td_json_read_string(json, &e->dtype_name.at, &e->dtype_name.len);
    e->dtype = TD_DTYPE_NONE;
    for (int d = 0; status == TD_OK && d < TD_DTYPE_COUNT; d++)
        if (is_text(e->dtype_name, dtype_names[d]))
            e->dtype = (td_dtype)d;
    return status;
}

/* A list of at most `most` integers from 0 on. */
static td_status read_sizes(td_json *json, const td_entry *e, const char *field, int most,
                            int64_t *values, int *count) {
    char what[96];
    bool more;
    td_json_number number;
    td_status status = td_json_open(json, TD_JSON_ARRAY);
    for (*count = 0; status == TD_OK; ++*count) {
        status = td_json_next(json, TD_JSON_ARRAY, &more);
        if (status || !more)
            break;
        snprintf(what, sizeof what, "%s has more than %d numbers", field, most);
        if (*count == most)
            return fail_entry(e, what);
        status = td_json_read_number(json, &number);
        snprintf(what, sizeof what, "%s holds what is no size", field);
        if (status == TD_OK && (!number.is_int || number.i < 0))
            return fail_entry(e, what);
        if (status == TD_OK)
            values[*count] = number.i;
    }
    return status;
}

static td_status read_offsets(td_json *json, td_entry *e) {
    int64_t offsets[2];
    int count;
    td_status status = read_sizes(json, e, "data_offsets", 2, offsets, &count);
    if (status)
        return status;
    if (count != 2)
        return fail_entry(e, "data_offsets are not two numbers");
    e->begin = offsets[0];
    e->end = offsets[1];
    return TD_OK;
}

enum { HAS_DTYPE = 1, HAS_SHAPE = 2, HAS_OFFSETS = 4, HAS_ALL = 7 };

static td_status read_field(td_json *json, td_entry *e, int *seen) {
    td_text key;
    td_status status = td_json_read_key(json, &key.at, &key.len);
    if (status)
        return status;
    int field = is_text(key, "dtype")          ? HAS_DTYPE
                : is_text(key, "shape")        ? HAS_SHAPE
                : is_text(key, "data_offsets") ? HAS_OFFSETS
                                               : 0;
    if (field == 0)
        return td_json_skip(json);
    if (*seen & field)
        return fail_entry(e, "a field stands there twice");
    *seen |= field;
    return field == HAS_DTYPE   ? read_dtype(json, e)
           : field == HAS_SHAPE ? read_sizes(json, e, "shape", TD_MAX_DIMS, e->sizes, &e->ndim)
                                : read_offsets(json, e);
}

/* Do dtype, shape and place agree with one another and with the file? */
static td_status check_entry(const td_entry *e, int64_t data_bytes) {
    char what[160];
    bool known = e->dtype != TD_DTYPE_NONE;
    int64_t bytes = td_numel(e->ndim, e->sizes),
            size = known ? (int64_t)td_dtype_size(e->dtype) : 1;
    if (bytes < 0 || __builtin_mul_overflow(bytes, size, &bytes))
        return fail_entry(e, "its shape has more elements than can be counted");
    snprintf(what, sizeof what, "data_offsets [%lld, %lld] in a file with %lld bytes of data",
             (long long)e->begin, (long long)e->end, (long long)data_bytes);
    if (e->begin > e->end || e->end > data_bytes)
        return fail_entry(e, what);
    snprintf(what, sizeof what, "its shape takes %lld bytes, data_offsets [%lld, %lld] are %lld",
             (long long)bytes, (long long)e->begin, (long long)e->end,
             (long long)(e->end - e->begin));
    return !known || e->end - e->begin == bytes ? TD_OK : fail_entry(e, what);
}

static td_status read_entry(td_safetensors *s, td_json *json, td_text name) {
    bool more;
    int seen = 0;
    td_status status =
        make_room((void **)&s->entries, s->nentries, &s->file->entry_room, sizeof *s->entries);
    if (status)
        return status;
    td_entry *e = &s->entries[s->nentries];
    *e = (td_entry){.name = name};
    if (td_json_peek(json) != TD_JSON_OBJECT)
        return fail_entry(e, "an object of dtype, shape and data_offsets expected");
    TD_TRY(td_json_open(json, TD_JSON_OBJECT));
    for (;;) {
        TD_TRY(td_json_next(json, TD_JSON_OBJECT, &more));
        if (!more)
            break;
        TD_TRY(read_field(json, e, &seen));
    }
    if (seen != HAS_ALL)
        return fail_entry(e, "dtype, shape or data_offsets is missing");
    TD_TRY(check_entry(e, s->file->data_bytes));
    s->nentries++;
done:
    return status;
}

static td_status read_notes(td_safetensors *s, td_json *json) {
    bool more;
    td_status status = TD_OK;
    if (td_json_peek(json) == TD_JSON_NULL)
        return td_json_read_word(json);
    TD_TRY(td_json_open(json, TD_JSON_OBJECT));
    for (;;) {
        TD_TRY(td_json_next(json, TD_JSON_OBJECT, &more));
        if (!more)
            break;
        TD_TRY(make_room((void **)&s->notes, s->nnotes, &s->file->note_room, sizeof *s->notes));
        td_note *note = &s->notes[s->nnotes];
        TD_TRY(td_json_read_key(json, &note->key.at, &note->key.len));
        TD_TRY(td_json_read_string(json, &note->value.at, &note->value.len));
        s->nnotes++;
    }
done:
    return status;
}

static td_status read_header(td_safetensors *s) {
    td_status status = TD_OK;
    td_json json;
    bool more, noted = false;
    td_text name;
    td_json_begin(&json, s->file->header, (size_t)s->file->header_bytes);
    TD_TRY(td_json_open(&json, TD_JSON_OBJECT));
    for (;;) {
        TD_TRY(td_json_next(&json, TD_JSON_OBJECT, &more));
        if (!more)
            break;
        TD_TRY(td_json_read_key(&json, &name.at, &name.len));
        if (!is_text(name, "__metadata__")) {
            TD_TRY(read_entry(s, &json, name));
            continue;
        }
        if (noted)
            return td_fail(TD_EVALUE, "two '__metadata__' in the header");
        noted = true;
        TD_TRY(read_notes(s, &json));
    }
    TD_TRY(td_json_finish(&json));
done:
    return status;
}

/* ---- what holds between entries ---- */

static int by_place(const void *a, const void *b) {
    const td_entry *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

static int by_text(const void *a, const void *b) {
    const td_text *x = *(td_text *const *)a, *y = *(td_text *const *)b;
    int order = memcmp(x->at, y->at, x->len < y->len ? x->len : y->len);
    return order ? order : (x->len > y->len) - (x->len < y->len);
}

/* Texts that lie `stride` bytes apart. */
static td_status check_differ(const void *first, int64_t n, size_t stride, const char *what) {
    char name[NAME_SHOWN + 8];
    const td_text **texts = td_malloc((size_t)(n + 1) * sizeof *texts);
    td_status status = TD_OK;
    if (!texts)
        return td_fail(TD_ENOMEM, "out of memory");
    for (int64_t k = 0; k < n; k++)
        texts[k] = (const td_text *)(const void *)((const char *)first + (size_t)k * stride);
    qsort(texts, (size_t)n, sizeof *texts, by_text);
    for (int64_t k = 1; k < n && status == TD_OK; k++)
        if (same_text(*texts[k - 1], *texts[k]))
            status = td_fail(TD_EVALUE, "%s '%s' stands there twice", what, show(*texts[k], name));
    td_free(texts);
    return status;
}

/* Every byte belongs to one tensor. */
static td_status check_places(td_safetensors *s) {
    int64_t at = 0;
    if (s->nentries)
        qsort(s->entries, (size_t)s->nentries, sizeof *s->entries, by_place);
    for (int64_t k = 0; k < s->nentries; k++) {
        const td_entry *e = &s->entries[k];
        if (e->begin != at)
            return fail_entry(e, e->begin < at ? "its bytes overlap another tensor's"
                                               : "bytes before it belong to no tensor");
        at = e->end;
    }
    return at == s->file->data_bytes
               ? TD_OK
               : td_fail(TD_EVALUE, "%lld bytes at the end belong to no tensor",
                         (long long)(s->file->data_bytes - at));
}

/* ---- the file ---- */

/* Its length, checked, and the header's bytes. */
static td_status load_header(struct td_safetensors_file *f) {
    unsigned char bytes[LENGTH_BYTES];
    int64_t held = f->bytes;
    uint64_t length = 0;
    if (held < LENGTH_BYTES + 2)
        return td_fail(TD_EVALUE, "no safetensors file: %lld bytes are too few", (long long)held);
    td_status status = td_file_read(f->file, bytes, LENGTH_BYTES, f->at);
    if (status)
        return status;
    for (int k = LENGTH_BYTES; k-- > 0;)
        length = length << 8 | bytes[k];
    if (length > (uint64_t)held - LENGTH_BYTES)
        return td_fail(TD_EVALUE,
                       "no safetensors file, or cut off: a header of %llu bytes in a file of %lld",
                       (unsigned long long)length, (long long)held);
    f->header_bytes = (int64_t)length;
    f->data_at = f->at + LENGTH_BYTES + f->header_bytes;
    f->data_bytes = held - LENGTH_BYTES - f->header_bytes;
    f->header = td_malloc(length + 1);
    if (!f->header)
        return td_fail(TD_ENOMEM, "out of memory");
    f->header[length] = 0;
    return td_file_read(f->file, f->header, f->header_bytes, f->at + LENGTH_BYTES);
}

static td_status read_all(td_safetensors *s) {
    td_status status = TD_OK;
    TD_TRY(load_header(s->file));
    TD_TRY(read_header(s));
    TD_TRY(check_differ(s->entries, s->nentries, sizeof *s->entries, "tensor"));
    TD_TRY(check_differ(s->notes, s->nnotes, sizeof *s->notes, "metadata"));
    TD_TRY(check_places(s));
done:
    return status;
}

/* Of a part of a file that is open; NULL: out of memory. */
static td_safetensors *new_archive(td_file *file, bool owned, int64_t at, int64_t bytes) {
    td_safetensors *s = td_calloc(1, sizeof *s);
    struct td_safetensors_file *f = td_calloc(1, sizeof *f);
    if (!s || !f) {
        td_free(s);
        td_free(f);
        (void)td_fail(TD_ENOMEM, "out of memory");
        return NULL;
    }
    *f = (struct td_safetensors_file){.file = file, .owned = owned, .at = at, .bytes = bytes};
    s->file = f;
    return s;
}

static td_status open_archive(td_safetensors *s, td_safetensors **out) {
    td_status status = read_all(s);
    if (status)
        td_safetensors_close(s);
    else
        *out = s;
    return status;
}

td_status td_safetensors_open(const char *path, bool map, td_safetensors **out) {
    td_file *file;
    *out = NULL;
    td_status status = td_file_open(path, map, &file);
    if (status)
        return status;
    td_safetensors *s = new_archive(file, true, 0, td_file_bytes(file));
    if (!s)
        td_file_release(file);
    return s ? open_archive(s, out) : TD_ENOMEM;
}

td_status td_safetensors_open_part(td_file *file, int64_t at, int64_t n, td_safetensors **out) {
    *out = NULL;
    if (!td_file_has(file, at, n))
        return td_fail(TD_EVALUE, "cut off: its tensors end beyond the file");
    td_safetensors *s = new_archive(file, false, at, n);
    return s ? open_archive(s, out) : TD_ENOMEM;
}

void td_safetensors_close(td_safetensors *s) {
    if (!s)
        return;
    if (s->file->owned)
        td_file_release(s->file->file);
    td_free(s->file->header);
    td_free(s->file);
    td_free(s->entries);
    td_free(s->notes);
    td_free(s);
}

/* ---- tensors ---- */

td_status td_safetensors_get(td_safetensors *s, int64_t k, td_tensor **out) {
    const td_entry *e = &s->entries[k];
    td_status status = td_file_tensor(s->file->file, s->file->data_at + e->begin, e->dtype, false,
                                      e->ndim, e->sizes, out);
    char what[160];
    if (status != TD_EVALUE)
        return status;
    snprintf(what, sizeof what, "%s", td_error_message());
    return fail_entry(e, what);
}

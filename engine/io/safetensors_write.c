/* safetensors_write.c: from tensors to a file. The header is made first, since its length stands
 * before it; elements go to the file as they lie, those of other devices by pieces. */
#include "engine/core/backend.h"
#include "engine/core/draft.h"
#include "engine/core/interrupt.h"
#include "engine/core/memory.h"
#include "engine/io/json.h"
#include "engine/io/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64, PIECE = 4 << 20 };

/* Text that grows; a failure stays. */
typedef struct header {
    char *text;
    size_t len, room;
    td_status status;
} header;

static void put(header *h, const char *text, size_t n) {
    if (h->status)
        return;
    if (h->room - h->len < n) {
        size_t room = 2 * h->room + n + 4096;
        char *larger = td_realloc(h->text, room);
        if (!larger) {
            h->status = td_fail(TD_ENOMEM, "out of memory");
            return;
        }
        h->text = larger;
        h->room = room;
    }
    memcpy(h->text + h->len, text, n);
    h->len += n;
}

static void put_text(header *h, const char *text) {
    put(h, text, strlen(text));
}

static void put_int(header *h, int64_t value) {
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)value);
    put_text(h, text);
}

static void put_quoted(void *h, const char *text, size_t n) {
    put(h, text, n);
}

static void put_string(header *h, td_text s) {
    td_json_quote(put_quoted, h, s.at, s.len);
}

static int64_t bytes_of(const td_tensor *x) {
    return x->numel * (int64_t)td_tensor_itemsize(x);
}

static void put_tensor(header *h, const td_named *t, int64_t at) {
    put_string(h, t->name);
    put_text(h, ":{\"dtype\":\"");
    put_text(h, td_safetensors_dtype_name((td_dtype)t->tensor->dtype));
    put_text(h, "\",\"shape\":[");
    for (int d = 0; d < t->tensor->ndim; d++) {
        put_text(h, d ? "," : "");
        put_int(h, t->tensor->sizes[d]);
    }
    put_text(h, "],\"data_offsets\":[");
    put_int(h, at);
    put_text(h, ",");
    put_int(h, at + bytes_of(t->tensor));
    put_text(h, "]}");
}

static void put_notes(header *h, int64_t n, const td_note *notes) {
    put_text(h, "\"__metadata__\":{");
    for (int64_t k = 0; k < n; k++) {
        put_text(h, k ? "," : "");
        put_string(h, notes[k].key);
        put_text(h, ":");
        put_string(h, notes[k].value);
    }
    put_text(h, "}");
}

/* Wide elements first; otherwise as they came. */
static int by_width(const void *a, const void *b) {
    const td_named *x = *(const td_named *const *)a, *y = *(const td_named *const *)b;
    size_t wide = td_tensor_itemsize(x->tensor), other = td_tensor_itemsize(y->tensor);
    return wide != other ? (wide < other) - (wide > other) : (x > y) - (x < y);
}

static td_status make_header(header *h, int64_t n, const td_named *const *order, int64_t nnotes,
                             const td_note *notes) {
    int64_t at = 0;
    put_text(h, "01234567{"); /* the first eight are its length in the end */
    if (nnotes)
        put_notes(h, nnotes, notes);
    for (int64_t k = 0; k < n && h->status == TD_OK; k++) {
        put_text(h, k || nnotes ? "," : "");
        put_tensor(h, order[k], at);
        at += bytes_of(order[k]->tensor);
        if (td_interrupt_requested())
            return td_interrupted();
    }
    put_text(h, "}");
    while (h->status == TD_OK && h->len % ALIGNMENT)
        put_text(h, " ");
    if (h->status == TD_OK && h->len > TD_SAFETENSORS_HEADER)
        return td_fail(TD_EVALUE, "a header of %lld bytes; at most %d are read by others",
                       (long long)h->len, TD_SAFETENSORS_HEADER);
    for (int k = 0; k < 8 && h->status == TD_OK; k++)
        h->text[k] = (char)(uint64_t)((h->len - 8) >> 8 * k);
    return h->status;
}

/* Elements of another device, a piece at a time. */
static td_status write_far(td_sink *to, const td_tensor *x) {
    const td_backend *backend = td_backend_of(td_tensor_device(x));
    char *piece = td_malloc(PIECE);
    td_status status = piece ? TD_OK : td_fail(TD_ENOMEM, "out of memory");
    for (int64_t at = 0, bytes = bytes_of(x); at < bytes && status == TD_OK; at += PIECE) {
        size_t n = bytes - at < PIECE ? (size_t)(bytes - at) : PIECE;
        status = backend->download(td_stream_current(td_tensor_device(x)), piece,
                                   (const char *)x->data + at, n);
        if (status == TD_OK)
            status = td_sink_put(to, piece, n);
    }
    td_free(piece);
    return status;
}

static td_status write_tensor(td_sink *to, const td_tensor *x) {
    return td_tensor_device(x).type == TD_CPU ? td_sink_put(to, x->data, (size_t)bytes_of(x))
                                              : write_far(to, x);
}

static td_status check_tensors(int64_t n, const td_named *tensors) {
    for (int64_t k = 0; k < n; k++)
        if (tensors[k].tensor->layout != TD_STRIDED || !tensors[k].tensor->contiguous)
            return td_fail(TD_EVALUE, "tensors to be written lie row by row");
    return TD_OK;
}

td_status td_safetensors_put(td_sink *to, int64_t n, const td_named *tensors, int64_t nnotes,
                             const td_note *notes) {
    header h = {.text = NULL};
    td_status status = TD_OK;
    const td_named **order = td_malloc((size_t)(n + 1) * sizeof *order);
    if (!order)
        return td_fail(TD_ENOMEM, "out of memory");
    TD_TRY(check_tensors(n, tensors));
    for (int64_t k = 0; k < n; k++)
        order[k] = &tensors[k];
    qsort(order, (size_t)n, sizeof *order, by_width);
    TD_TRY(make_header(&h, n, order, nnotes, notes));
    TD_TRY(td_sink_put(to, h.text, h.len));
    for (int64_t k = 0; k < n; k++)
        TD_TRY(write_tensor(to, order[k]->tensor));
done:
    td_free(h.text);
    td_free(order);
    return status;
}

/* A file that is begun with the first bytes, so that what can't be written leaves no draft. */
typedef struct to_draft {
    td_sink sink;
    const char *path;
    td_draft *draft;
} to_draft;

static td_status take(td_sink *self, const void *bytes, size_t n) {
    to_draft *to = (to_draft *)self;
    td_status status = to->draft ? TD_OK : td_draft_open(to->path, &to->draft);
    return status ? status : td_draft_write(to->draft, bytes, n);
}

td_status td_safetensors_write(const char *path, int64_t n, const td_named *tensors, int64_t nnotes,
                               const td_note *notes) {
    to_draft to = {{take}, path, NULL};
    td_status status = td_safetensors_put(&to.sink, n, tensors, nnotes, notes);
    if (status == TD_OK)
        status = td_draft_commit(to.draft);
    td_draft_close(to.draft);
    return status;
}

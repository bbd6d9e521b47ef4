/* zip_write.c: archives of zip, written in one way for all sizes. */
#include "engine/core/draft.h"
#include "engine/core/interrupt.h"
#include "engine/core/memory.h"
#include "engine/io/zip.h"

#include <string.h>
#include <zlib.h>

enum {
    PIECE = 1 << 20,
    STORED = 0,
    VERSION = 45,          /* of the format: sizes of 64 bits */
    FIRST_DAY = 1 << 5 | 1 /* the format's first: the same contents are the same file */
};
static const uint32_t elsewhere = 0xFFFFFFFF; /* the field behind the name says it */

/* What is known of an entry when its bytes went by once. */
typedef struct entry {
    const td_zip_file *file;
    int64_t at, bytes; /* the local header's place; of its content */
    uLong sum;
} entry;

/* ---- sinks ---- */

typedef struct counter {
    td_sink sink;
    int64_t bytes;
    uLong sum;
} counter;

static td_status count(td_sink *self, const void *bytes, size_t n) {
    counter *c = (counter *)self;
    c->bytes += (int64_t)n;
    for (const unsigned char *at = bytes; n > 0;) {
        size_t part = n < PIECE ? n : PIECE;
        td_status status = td_interrupt_check();
        if (status)
            return status;
        c->sum = crc32(c->sum, at, (uInt)part);
        at += part;
        n -= part;
    }
    return TD_OK;
}

typedef struct writer {
    td_sink sink;
    td_draft *draft;
    int64_t at;
} writer;

static td_status put(writer *w, const void *bytes, size_t n) {
    w->at += (int64_t)n;
    return td_draft_write(w->draft, bytes, n);
}

static td_status take(td_sink *self, const void *bytes, size_t n) {
    return put((writer *)self, bytes, n);
}

/* ---- records ---- */

/* Fields of a record, the lowest byte first; `widths` says how many bytes each takes. */
static td_status put_fields(writer *w, const char *widths, const int64_t *fields) {
    unsigned char bytes[128];
    size_t n = 0;
    for (; *widths; widths++, fields++)
        for (int k = 0; k < *widths - '0'; k++)
            bytes[n++] = (unsigned char)((uint64_t)*fields >> 8 * k);
    return put(w, bytes, n);
}

/* Names are bytes; readers take those beyond ASCII for UTF-8 where bit 11 says so. */
static int64_t flags_of(const entry *e) {
    for (size_t k = 0; k < e->file->length; k++)
        if ((unsigned char)e->file->name[k] > 127)
            return 1 << 11;
    return 0;
}

static int64_t name_bytes(const entry *e) {
    return (int64_t)(e->file->length + strlen(e->file->suffix));
}

static td_status put_name(writer *w, const entry *e) {
    td_status status = put(w, e->file->name, e->file->length);
    return status ? status : put(w, e->file->suffix, strlen(e->file->suffix));
}

static td_status put_entry(writer *w, entry *e) {
    counter c = {{count}, 0, crc32(0, NULL, 0)};
    td_status status = TD_OK;
    TD_TRY(e->file->put(e->file->content, &c.sink));
    e->at = w->at;
    e->bytes = c.bytes;
    e->sum = c.sum;
    TD_TRY(put_fields(w, "42222244422",
                      (int64_t[]){0x04034B50, VERSION, flags_of(e), STORED, 0, FIRST_DAY,
                                  (int64_t)e->sum, elsewhere, elsewhere, name_bytes(e), 20}));
    TD_TRY(put_name(w, e));
    TD_TRY(put_fields(w, "2288", (int64_t[]){1, 16, e->bytes, e->bytes}));
    int64_t before = w->at;
    TD_TRY(e->file->put(e->file->content, &w->sink));
    if (w->at - before != e->bytes)
        status = td_fail(TD_EINTERNAL, "an entry of an archive gave other bytes the second time");
done:
    return status;
}

static td_status put_directory_entry(writer *w, const entry *e) {
    enum { READABLE = 0600 };
    td_status status = TD_OK;
    TD_TRY(put_fields(w, "42222224442222244",
                      (int64_t[]){0x02014B50, 3 << 8 | VERSION, VERSION, flags_of(e), STORED, 0,
                                  FIRST_DAY, (int64_t)e->sum, elsewhere, elsewhere, name_bytes(e),
                                  28, 0, 0, 0, (int64_t)READABLE << 16, elsewhere}));
    TD_TRY(put_name(w, e));
    TD_TRY(put_fields(w, "22888", (int64_t[]){1, 24, e->bytes, e->bytes, e->at}));
done:
    return status;
}

/* Where the directory of archives of all sizes lies, and where that is said. */
static td_status put_wide_end(writer *w, int64_t n, int64_t at) {
    int64_t end = w->at;
    td_status status = put_fields(
        w, "4822448888", (int64_t[]){0x06064B50, 44, VERSION, VERSION, 0, 0, n, n, end - at, at});
    return status ? status : put_fields(w, "4484", (int64_t[]){0x07064B50, 0, end, 1});
}

/* An archive of nothing is the last record alone. */
static td_status put_directory(writer *w, int64_t n, const entry *list) {
    int64_t at = w->at, number = n ? 0xFFFF : 0, place = n ? elsewhere : 0;
    td_status status = TD_OK;
    for (int64_t k = 0; k < n; k++)
        TD_TRY(put_directory_entry(w, &list[k]));
    if (n)
        TD_TRY(put_wide_end(w, n, at));
    TD_TRY(
        put_fields(w, "42222442", (int64_t[]){0x06054B50, 0, 0, number, number, place, place, 0}));
done:
    return status;
}

td_status td_zip_write(const char *path, int64_t n, const td_zip_file *files) {
    writer w = {{take}, NULL, 0};
    entry *list = td_calloc((size_t)n + 1, sizeof *list);
    td_status status = list ? TD_OK : td_fail(TD_ENOMEM, "out of memory");
    TD_TRY(status);
    TD_TRY(td_draft_open(path, &w.draft));
    for (int64_t k = 0; k < n; k++) {
        list[k].file = &files[k];
        TD_TRY(put_entry(&w, &list[k]));
    }
    TD_TRY(put_directory(&w, n, list));
    TD_TRY(td_draft_commit(w.draft));
done:
    td_draft_close(w.draft);
    td_free(list);
    return status;
}

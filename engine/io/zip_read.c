/* zip_read.c: what lies in an archive of zip, by the directory at its end, and where. */
#include "engine/core/memory.h"
#include "engine/io/zip.h"

#include <string.h>
#include <zlib.h>

enum {
    END_BYTES = 22, /* the last record, behind which a comment may stand */
    TAIL = 65535 + END_BYTES,
    LOCATOR_BYTES = 20, /* before it in archives of all sizes: where the wide end is */
    WIDE_BYTES = 56,
    ENTRY_BYTES = 46,
    LOCAL_BYTES = 30,
    PIECE = 1 << 18
};
static const int64_t elsewhere = 0xFFFFFFFF;

static int64_t number(const char *at, int bytes) {
    uint64_t value = 0;
    while (bytes-- > 0)
        value = value << 8 | (unsigned char)at[bytes];
    return (int64_t)value;
}

static bool is_record(const char *at, char a, char b) {
    return at[0] == 'P' && at[1] == 'K' && at[2] == a && at[3] == b;
}

/* ---- the directory ---- */

typedef struct span {
    int64_t n, at, bytes;
} span;

/* In archives of all sizes the wide end says it, 20 bytes before the last record. */
static td_status widen_end(const td_file *file, int64_t end_at, span *s) {
    char locator[LOCATOR_BYTES], wide[WIDE_BYTES];
    if ((s->n != 0xFFFF && s->bytes != elsewhere && s->at != elsewhere) || end_at < LOCATOR_BYTES)
        return TD_OK;
    td_status status = td_file_read(file, locator, LOCATOR_BYTES, end_at - LOCATOR_BYTES);
    if (status || !is_record(locator, 6, 7))
        return status;
    int64_t at = number(locator + 8, 8);
    if (!td_file_has(file, at, WIDE_BYTES))
        return td_fail(TD_EVALUE, "cut off, or damaged: its end is not where it says");
    status = td_file_read(file, wide, WIDE_BYTES, at);
    if (status == TD_OK && is_record(wide, 6, 6))
        *s = (span){number(wide + 32, 8), number(wide + 48, 8), number(wide + 40, 8)};
    return status;
}

static td_status find_directory(const td_file *file, span *out) {
    int64_t bytes = td_file_bytes(file), n = bytes < TAIL ? bytes : TAIL, k = n - END_BYTES;
    char *tail = td_malloc((size_t)n + 1);
    td_status status = tail ? TD_OK : td_fail(TD_ENOMEM, "out of memory");
    TD_TRY(status);
    TD_TRY(td_file_read(file, tail, n, bytes - n));
    while (k >= 0 && !is_record(tail + k, 5, 6))
        k--;
    if (k < 0)
        TD_TRY(td_fail(TD_EVALUE, "no archive, or cut off: the directory at its end is missing"));
    *out = (span){number(tail + k + 10, 2), number(tail + k + 16, 4), number(tail + k + 12, 4)};
    TD_TRY(widen_end(file, bytes - n + k, out));
    if (out->n < 0 || !td_file_has(file, out->at, out->bytes))
        TD_TRY(td_fail(TD_EVALUE, "cut off, or damaged: its directory lies beyond its end"));
    if (out->n > TD_ZIP_MOST || out->bytes > TD_ZIP_DIRECTORY)
        TD_TRY(td_fail(TD_EVALUE, "a directory of %lld entries in %lld bytes; %d in %d are read",
                       (long long)out->n, (long long)out->bytes, TD_ZIP_MOST, TD_ZIP_DIRECTORY));
done:
    td_free(tail);
    return status;
}

/* Sizes and place that did not fit 32 bits stand in a field behind the name. */
static void widen_entry(td_zip_entry *e, const char *extra, int64_t n) {
    int64_t *fields[] = {&e->size, &e->packed, &e->place};
    for (int64_t at = 0; at + 4 <= n;) {
        int64_t id = number(extra + at, 2), bytes = number(extra + at + 2, 2), from = at + 4;
        at = from + bytes;
        for (int k = 0; id == 1 && k < 3; k++)
            if (*fields[k] == elsewhere && from + 8 <= at && at <= n) {
                *fields[k] = number(extra + from, 8);
                from += 8;
            }
    }
}

/* The entry whose record begins at `at`; where the next begins. */
static td_status read_entry(const char *at, const char *end, td_zip_entry *e, const char **next) {
    if (end - at < ENTRY_BYTES || !is_record(at, 1, 2))
        return td_fail(TD_EVALUE, "damaged: its directory ends before its last entry");
    int64_t name = number(at + 28, 2), extra = number(at + 30, 2), comment = number(at + 32, 2);
    if (end - at - ENTRY_BYTES < name + extra + comment)
        return td_fail(TD_EVALUE, "damaged: an entry of its directory ends beyond it");
    *e = (td_zip_entry){
        .name = at + ENTRY_BYTES,
        .length = (size_t)name,
        .method = (int)number(at + 10, 2),
        .secret = at[8] & 1,
        .place = number(at + 42, 4),
        .packed = number(at + 20, 4),
        .size = number(at + 24, 4),
        .sum = (uint32_t)number(at + 16, 4),
    };
    widen_entry(e, at + ENTRY_BYTES + name, extra);
    *next = at + ENTRY_BYTES + name + extra + comment;
    return TD_OK;
}

td_status td_zip_open(td_file *file, td_zip *out) {
    span s = {0, 0, 0};
    *out = (td_zip){.file = NULL};
    td_status status = find_directory(file, &s);
    if (status)
        return status;
    out->directory = td_malloc((size_t)s.bytes + 1);
    out->entries = td_calloc((size_t)s.n + 1, sizeof *out->entries);
    if (!out->directory || !out->entries)
        TD_TRY(td_fail(TD_ENOMEM, "out of memory"));
    TD_TRY(td_file_read(file, out->directory, s.bytes, s.at));
    const char *at = out->directory;
    for (; out->n < s.n; out->n++)
        TD_TRY(read_entry(at, out->directory + s.bytes, &out->entries[out->n], &at));
    out->file = file;
done:
    if (status)
        td_zip_close(out);
    return status;
}

void td_zip_close(td_zip *zip) {
    td_free(zip->entries);
    td_free(zip->directory);
    *zip = (td_zip){.file = NULL};
}

const td_zip_entry *td_zip_find(const td_zip *zip, const char *name) {
    const td_zip_entry *found = NULL;
    size_t length = strlen(name);
    for (int64_t k = 0; k < zip->n; k++) {
        const td_zip_entry *e = &zip->entries[k];
        if (e->length != length || memcmp(e->name, name, length) != 0)
            continue;
        if (found)
            return NULL;
        found = e;
    }
    return found;
}

/* ---- entries ---- */

td_status td_zip_place(const td_zip *zip, const td_zip_entry *e, int64_t *at) {
    char head[LOCAL_BYTES];
    if (e->secret)
        return td_fail(TD_EVALUE, "an entry is encrypted");
    if (e->method != 0 || e->packed != e->size)
        return td_fail(TD_EVALUE, "an entry is packed (method %d) where it is to be stored",
                       e->method);
    if (!td_file_has(zip->file, e->place, LOCAL_BYTES))
        return td_fail(TD_EVALUE, "damaged: an entry lies beyond its end");
    td_status status = td_file_read(zip->file, head, LOCAL_BYTES, e->place);
    if (status)
        return status;
    if (!is_record(head, 3, 4))
        return td_fail(TD_EVALUE, "damaged: no entry stands where its directory says");
    *at = e->place + LOCAL_BYTES + number(head + 26, 2) + number(head + 28, 2);
    if (!td_file_has(zip->file, *at, e->size))
        return td_fail(TD_EVALUE, "cut off: an entry ends beyond its end");
    return TD_OK;
}

td_status td_zip_check(const td_zip *zip, const td_zip_entry *e) {
    int64_t at = 0;
    uLong sum = crc32(0, NULL, 0);
    unsigned char *piece = td_malloc(PIECE);
    td_status status = piece ? td_zip_place(zip, e, &at) : td_fail(TD_ENOMEM, "out of memory");
    for (int64_t k = 0; k < e->size && status == TD_OK; k += PIECE) {
        int64_t n = e->size - k < PIECE ? e->size - k : PIECE;
        status = td_file_read(zip->file, piece, n, at + k);
        if (status == TD_OK)
            sum = crc32(sum, piece, (uInt)n);
    }
    td_free(piece);
    if (status == TD_OK && sum != e->sum)
        status = td_fail(TD_EVALUE, "damaged: an entry's bytes have another sum than its directory "
                                    "names");
    return status;
}

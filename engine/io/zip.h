/* zip.h: archives of zip. What is written is stored as it is, with sizes of 64 bits and the
 * format's first day always, so that the same contents are the same file, whatever their size. What
 * is read is not believed before it is checked against the file's length; packed entries are
 * described, not unpacked.
 */
#ifndef TD_IO_ZIP_H
#define TD_IO_ZIP_H

#include "engine/io/file.h"
#include "engine/io/sink.h"

/* ---- writing ---- */

/* An entry to be: its name is `name` with `suffix` behind it, its bytes are what `put` gives, which
 * is called twice and gives the same both times. */
typedef struct td_zip_file {
    const char *name;
    size_t length;
    const char *suffix; /* "" or ".npy" */
    td_status (*put)(const void *content, td_sink *to);
    const void *content;
} td_zip_file;

/* Write an archive, whole or not at all (core/draft.h). Names differ; those beyond ASCII are UTF-8.
 * EIO, ENOMEM, EINTR, and what `put` says. */
td_status td_zip_write(const char *path, int64_t n, const td_zip_file *files) TD_MUST_CHECK;

/* ---- reading ---- */

typedef struct td_zip_entry {
    const char *name; /* in the archive's memory, not terminated */
    size_t length;
    int method; /* 0: stored, 8: deflated */
    bool secret;
    int64_t place;        /* of its record, which data follow */
    int64_t packed, size; /* bytes in the file, and unpacked */
    uint32_t sum;         /* CRC-32 */
} td_zip_entry;

typedef struct td_zip {
    td_zip_entry *entries;
    int64_t n;
    td_file *file; /* borrowed */
    char *directory;
} td_zip;

enum { TD_ZIP_MOST = 100000, TD_ZIP_DIRECTORY = 32 << 20 }; /* entries and bytes that are read */

/* The directory of an archive, whose file must outlive it. EVALUE: what is wrong with it; EIO,
 * ENOMEM. */
td_status td_zip_open(td_file *file, td_zip *out) TD_MUST_CHECK;
void td_zip_close(td_zip *zip); /* of zeros, too */
/* The entry of a name; NULL: there is none, or there are two. */
const td_zip_entry *td_zip_find(const td_zip *zip, const char *name);
/* Where the bytes of a stored entry lie in the file, which has all of them. EVALUE. */
td_status td_zip_place(const td_zip *zip, const td_zip_entry *e, int64_t *at) TD_MUST_CHECK;
/* Do they have the sum that the directory names? EVALUE, EIO, ENOMEM, EINTR. */
td_status td_zip_check(const td_zip *zip, const td_zip_entry *e) TD_MUST_CHECK;

#endif

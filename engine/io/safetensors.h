/* safetensors.h: files of named tensors: eight bytes with the header's length, a header in JSON,
 * the elements row by row. The format: https://huggingface.co/docs/safetensors. Nothing of a file
 * is believed before it is checked against the file's own length.
 */
#ifndef TD_IO_SAFETENSORS_H
#define TD_IO_SAFETENSORS_H

#include "engine/core/tensor.h"
#include "engine/io/file.h"
#include "engine/io/sink.h"

typedef struct td_text {
    const char *at;
    size_t len;
} td_text;

/* A pair of "__metadata__". */
typedef struct td_note {
    td_text key, value;
} td_note;

typedef struct td_entry {
    td_text name;
    td_dtype dtype;     /* TD_DTYPE_NONE: one that Tide has not; such an entry makes no tensor */
    td_text dtype_name; /* as the file calls it */
    int ndim;
    int64_t sizes[TD_MAX_DIMS];
    int64_t begin, end; /* bytes behind the header */
} td_entry;

/* A file that was opened. */
typedef struct td_safetensors {
    td_entry *entries; /* in the order of their bytes */
    td_note *notes;
    int64_t nentries, nnotes;
    struct td_safetensors_file *file;
} td_safetensors;

/* Open a file and check all of its header; fields that the format does not know are passed over.
 * With `map` its pages are mapped, private to this process and copied when written; they stay as
 * long as a tensor made of them. EIO, EVALUE (a file that is wrong: the message says what), ENOMEM,
 * EINTR. */
td_status td_safetensors_open(const char *path, bool map, td_safetensors **out) TD_MUST_CHECK;
/* The same of the n bytes from `at` on of a file that is open, which must outlive it. */
td_status td_safetensors_open_part(td_file *file, int64_t at, int64_t n,
                                   td_safetensors **out) TD_MUST_CHECK;
/* New CPU tensor of an entry that has a dtype: of the mapped pages, or with elements read from the
 * file. */
td_status td_safetensors_get(td_safetensors *file, int64_t k, td_tensor **out) TD_MUST_CHECK;
/* Frees all but the tensors. NULL is fine. */
void td_safetensors_close(td_safetensors *file);

/* A tensor and its name, for writing: row-major, on any device. */
typedef struct td_named {
    td_text name; /* valid UTF-8, no two the same */
    td_tensor *tensor;
} td_named;

/* Write a file, whole or not at all (core/draft.h), tensors of wide elements first so that all lie
 * aligned. Names and notes are valid UTF-8, names differ from one another and from "__metadata__".
 * EIO, EVALUE, ENOMEM, EINTR. */
td_status td_safetensors_write(const char *path, int64_t n, const td_named *tensors, int64_t nnotes,
                               const td_note *notes) TD_MUST_CHECK;

/* The bytes of such a file, wherever they go. EVALUE, ENOMEM, EINTR, and what the sink says. */
td_status td_safetensors_put(td_sink *to, int64_t n, const td_named *tensors, int64_t nnotes,
                             const td_note *notes) TD_MUST_CHECK;

/* Most bytes that other readers take a header to have. */
enum { TD_SAFETENSORS_HEADER = 100000000 };

/* The format's name of a dtype ("F32"). */
const char *td_safetensors_dtype_name(td_dtype dtype);

#endif

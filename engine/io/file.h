/* file.h: a file that holds elements of tensors, for the readers of formats: its pages are mapped,
 * or parts of it read. It knows no format; every place is checked against the file's length.
 */
#ifndef TD_IO_FILE_H
#define TD_IO_FILE_H

#include "engine/core/tensor.h"

typedef struct td_file td_file;

/* Open a regular file. With `map` its pages are mapped, private to this process and copied when
 * written; where that can't be, parts are read. The new reference is the caller's. EIO, ENOMEM. */
td_status td_file_open(const char *path, bool map, td_file **out) TD_MUST_CHECK;
void td_file_release(td_file *file); /* NULL is fine; tensors of it keep its pages */
int64_t td_file_bytes(const td_file *file);

/* Are there n bytes from `at` on? */
bool td_file_has(const td_file *file, int64_t at, int64_t n);
/* Read n bytes from `at` on. EIO, also beyond the end; EINTR. */
td_status td_file_read(const td_file *file, void *to, int64_t n, int64_t at) TD_MUST_CHECK;

/* New row-major CPU tensor of the elements that begin at byte `at`: of the mapped pages where they
 * lie as the dtype wants, otherwise read. `turned`: they have the other order of bytes. EVALUE
 * (beyond the end; a bool that is neither 0 nor 1), ENOMEM, EIO, EINTR. */
td_status td_file_tensor(td_file *file, int64_t at, td_dtype dtype, bool turned, int ndim,
                         const int64_t *sizes, td_tensor **out) TD_MUST_CHECK;

/* Elements of one dtype, in place. */
/* Turn the order of each one's bytes. EINTR. */
td_status td_elements_turn(td_dtype dtype, void *at, int64_t n) TD_MUST_CHECK;
/* Kernels take a bool to be 0 or 1. EVALUE, EINTR. */
td_status td_elements_check(td_dtype dtype, const void *at, int64_t n) TD_MUST_CHECK;

#endif

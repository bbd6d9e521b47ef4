/* npy.h: NumPy's files of arrays, one behind the other, mostly one: a magic word and a version, a
 * header that is a dictionary of Python's, the elements. The format:
 * https://numpy.org/doc/stable/reference/generated/ numpy.lib.format.html. Nothing of a file is
 * believed before it is checked against its length; pickled objects are refused.
 */
#ifndef TD_IO_NPY_H
#define TD_IO_NPY_H

#include "engine/core/tensor.h"

/* New CPU tensor of the array that begins at byte `*at` of a file, the first `held` bytes of a
 * uint8 tensor, which stays as long as it; moves `*at` behind the array, to `held` or another
 * array; elements in the other order of bytes are turned in place. Columns that lie one behind the
 * other (Fortran) stay where they are: the strides say so. EVALUE (a file that is wrong: the
 * message says what), EDTYPE (of a dtype that Tide has not), ENOMEM, EINTR. */
td_status td_npy_read(td_tensor *bytes, size_t held, size_t *at, td_tensor **out) TD_MUST_CHECK;

/* May a file hold it: a row-major CPU tensor of a dtype that NumPy has? */
bool td_npy_holds(const td_tensor *x);

/* What a file begins with in front of the elements of a tensor that it may hold: magic word,
 * version 1, length, dictionary, blanks up to the alignment; their number. */
enum { TD_NPY_HEADER = 1024 };
size_t td_npy_header(const td_tensor *x, char to[static TD_NPY_HEADER]);

/* Write a row-major CPU tensor, whole or not at all (core/draft.h). EVALUE (bfloat16, which NumPy
 * has not), EIO, ENOMEM, EINTR. */
td_status td_npy_write(const char *path, const td_tensor *x) TD_MUST_CHECK;

#endif

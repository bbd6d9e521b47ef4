/* lines.h: tensors as lines along one dim that lie side by side, which is how sorts and scans see
 * them. */
#ifndef TD_CPU_LINES_H
#define TD_CPU_LINES_H

#include "engine/core/tensor.h"

/* x with `dim` last, row-major (a 0-dim x: one line of one element): new; x's memory where it lies
 * so already. */
td_status td_lines_of(td_tensor *x, int dim, td_tensor **lines) TD_MUST_CHECK;

/* Where the lines of `out` (NULL: none) are to be written: out's memory where it lies so, else
 * fresh; new. td_lines_put brings them home. */
td_status td_lines_for(td_tensor *out, int dim, td_tensor **lines) TD_MUST_CHECK;
td_status td_lines_put(td_tensor *out, int dim, td_tensor *lines) TD_MUST_CHECK;

/* Room for n things of a size: a tensor, because its pages are kept warm; new. */
td_status td_room(int64_t n, size_t size, td_tensor **room) TD_MUST_CHECK;

#endif

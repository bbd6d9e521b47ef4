/* copy.h: copying between layouts and dtypes, below autograd. */
#ifndef TD_OPS_MAKE_COPY_H
#define TD_OPS_MAKE_COPY_H

#include "engine/core/format.h"

/* Write src, broadcast and converted, into dst (any strides; overlapping memory of the two is
 * handled). ESHAPE when src does not broadcast to dst. Does not bump the version. */
td_status td_copy_into(td_tensor *dst, const td_tensor *src) TD_MUST_CHECK;

/* Row-major form: a new reference to x itself when it is contiguous, else a copy. No autograd. */
td_status td_contiguous(td_tensor *x, td_tensor **out) TD_MUST_CHECK;

/* The same in another dtype and row-major. No autograd. */
td_status td_contiguous_as(td_tensor *x, td_dtype dtype, td_tensor **out) TD_MUST_CHECK;

/* The same of a tensor that may not be there (NULL, as then is *out). */
td_status td_contiguous_or_none(td_tensor *x, td_dtype dtype, td_tensor **out) TD_MUST_CHECK;

/* The same with the second dim, the channels, last where `last`. */
td_status td_contiguous_channels(td_tensor *x, bool last, td_dtype dtype,
                                 td_tensor **out) TD_MUST_CHECK;

/* The same in a memory format that x's shape has. No autograd. */
td_status td_pack(td_tensor *x, td_format format, td_tensor **out) TD_MUST_CHECK;

/* Set every element (converted to x's dtype). Does not bump the version. */
td_status td_fill(td_tensor *x, double value) TD_MUST_CHECK;
td_status td_fill_int(td_tensor *x, int64_t value) TD_MUST_CHECK;

#endif

/* read_range.h: a part of a file into memory. */
#ifndef TD_IO_READ_RANGE_H
#define TD_IO_READ_RANGE_H

#include "engine/core/status.h"

/* Read n bytes from byte `at` of a file on. EIO, also where the file is shorter; EINTR. */
td_status td_read_range(int fd, char *to, int64_t n, int64_t at) TD_MUST_CHECK;

#endif

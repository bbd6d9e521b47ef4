/* read_range.c: see read_range.h. */
#include "engine/io/read_range.h"

#include "engine/core/interrupt.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

td_status td_read_range(int fd, char *to, int64_t n, int64_t at) {
    enum { CHUNK = 8 << 20 }; /* an interrupt is seen between two of them */
    while (n > 0) {
        td_status status = td_interrupt_check();
        if (status)
            return status;
        ssize_t done = pread(fd, to, n < CHUNK ? (size_t)n : CHUNK, at);
        if (done < 0 && errno != EINTR)
            return td_fail(TD_EIO, "%s", strerror(errno));
        if (done == 0)
            return td_fail(TD_EIO, "the file became shorter while it was read");
        if (done > 0) {
            to += done;
            at += done;
            n -= done;
        }
    }
    return TD_OK;
}

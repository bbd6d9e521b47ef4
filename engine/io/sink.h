/* sink.h: where bytes go while they are made: a draft, a checksum, an entry of an archive. */
#ifndef TD_IO_SINK_H
#define TD_IO_SINK_H

#include "engine/core/status.h"

typedef struct td_sink td_sink;

/* Embedded, first, in a struct of its owner. */
struct td_sink {
    td_status (*take)(td_sink *self, const void *bytes, size_t n);
};

static inline td_status td_sink_put(td_sink *to, const void *bytes, size_t n) {
    return to->take(to, bytes, n);
}

#endif

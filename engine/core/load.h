/* load.h: libraries that are loaded when they are first needed: their relocations are half of a
 * program's start, and few programs need them at once. */
#ifndef TD_CORE_LOAD_H
#define TD_CORE_LOAD_H

#include "engine/core/status.h"

typedef struct td_library {
    const char *name;  /* for messages */
    const char *file;  /* beside libtide.so, or a path */
    const char *table; /* its symbol (loaded_libraries/loaded_libraries.h) */
    size_t room;       /* of addresses that must be free: loading looks at few answers itself */
} td_library;

/* The library's table, static; loads it. ENOMEM where there is no room, EINTERNAL where it isn't
 * installed. For callers that hold a lock of theirs. */
td_status td_library_load(const td_library *library, const void **table) TD_MUST_CHECK;

#endif

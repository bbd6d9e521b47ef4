/* code_cache.h: files that keep machine code from one process to the next, and counters of what
 * became of code. The only place that knows the folder: $XDG_CACHE_HOME/tide/code, or
 * ~/.cache/tide/code.
 *
 * A file is found by the digest of all that its content follows from. It appears whole
 * (core/draft.h); one that is damaged, or another's, is removed and as if it were not there. All
 * files together are bounded: those that were used longest ago go. Any number of processes may use
 * the folder at once. Without a folder that can be written, nothing is kept; that is no error.
 */
#ifndef TD_IO_CODE_CACHE_H
#define TD_IO_CODE_CACHE_H

#include "engine/core/status.h"

#include <stdatomic.h>

typedef struct td_code_key {
    uint64_t word[2];
} td_code_key;

/* Digest of bytes, on top of another key: td_code_key_add(td_code_key_add((td_code_key){0}, a,
 * n), b, m). */
td_code_key td_code_key_add(td_code_key key, const void *bytes, size_t n);

/* What was kept under a key for a kind ("cpu", letters alone): *bytes is td_malloc's. False: there
 * is nothing that is whole. */
bool td_code_cache_read(const char *kind, td_code_key key, void **bytes, size_t *n);
/* Keep bytes under a key. False: it can't be. May wait for the disk; not for a caller of
 * operators. */
bool td_code_cache_write(const char *kind, td_code_key key, const void *bytes, size_t n);

typedef struct td_code_cache_facts {
    char folder[512];     /* "" where there is none to be had */
    int64_t files, bytes; /* that are kept, */
    int64_t most;         /* and how many bytes may be */
} td_code_cache_facts;

/* What lies in the folder. */
void td_code_cache_look(td_code_cache_facts *facts);
/* Remove all files; those that are in use stay loaded. The number of them. */
int64_t td_code_cache_clear(void);

/* What became of code since the process began. */
typedef struct td_code_tally {
    int64_t compiled, loaded; /* kernels made by a compiler, or read from the cache */
    int64_t refused;          /* programs that stay programs */
    int64_t runs;             /* programs that ran as code; of two at once one may be missed */
    int64_t microseconds;     /* of compiling and reading, on a thread of its own */
} td_code_tally;
td_code_tally td_code_tally_now(void);

/* The same, for those who count. */
typedef struct td_code_counters {
    atomic_llong compiled, loaded, refused, runs, microseconds;
} td_code_counters;
extern td_code_counters td_code_counts;

#endif

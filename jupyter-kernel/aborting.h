/* aborting.h: which cells are not run since one before them failed.
 *
 * A front end that runs all cells sends its requests one after the other, so that some are still on
 * their way when the answer to the failed one leaves: those that arrive shortly after it or after
 * another one that is not run, for a busy browser takes seconds to send them all, and those that
 * were sent before it and arrive late. When a request was sent, its header says, by a clock that
 * may be wrong by hours; how much it differs from ours shows in the requests themselves, since none
 * can arrive before it is sent. Knows nothing of sockets. */
#ifndef TIDE_KERNEL_ABORTING_H
#define TIDE_KERNEL_ABORTING_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    TK_ABORT_MS = 100,        /* after the failure */
    TK_ABORT_ROW_MS = 250,    /* after the last one aborted: a person is slower */
    TK_ABORT_TRUST_MS = 5000, /* then a row has ended, and no header's date is asked */
    TK_ABORT_SESSIONS = 16    /* front ends that are remembered */
};

/* One front end, by its session. */
typedef struct tk_abort_entry {
    uint64_t session;  /* hash; 0: nobody */
    int64_t offset_us; /* our clock minus its clock, at most */
    bool has_offset, failed;
    int64_t failed_us; /* when its cell failed */
    int64_t until_us;  /* what arrives earlier is not run */
} tk_abort_entry;

/* All zero: nothing has happened. Times are microseconds of one clock, from any start. */
typedef struct tk_aborting {
    tk_abort_entry entries[TK_ABORT_SESSIONS];
    int next;          /* the entry that the next new front end takes */
    int64_t rested_us; /* when the kernel was last woken out of waiting for requests */
} tk_aborting;

/* A request with this header was received. */
void tk_aborting_hear(tk_aborting *a, const json_t *header, int64_t now_us);

/* The cell of the request with this header failed, and is about to be answered. */
void tk_aborting_begin(tk_aborting *a, const json_t *header, int64_t now_us);

/* There was no request, and the wait for one has ended. */
void tk_aborting_rest(tk_aborting *a, int64_t now_us);

/* Is the cell of this header, which was heard, not to be run? */
bool tk_aborting_covers(tk_aborting *a, const json_t *header, int64_t now_us);

/* The microseconds of a header's date ("2026-01-31T23:59:59.123456Z"; without a zone it is UTC)
 * since 1970. False when it is none. */
bool tk_aborting_date(const char *text, int64_t *us);

#endif

/* aborting.h: which cells are not run since one before them failed.
 *
 * A front end that runs all cells sends its requests one after the other, so that some are still on
 * their way when the answer to the failed one leaves: those that are dated before it left. What is
 * dated after it was sent by who could have known, and runs. Where a request was on its way, those
 * behind it may be dated later than the answer to the failed one and still be of its row: they
 * are, if they are dated before its own answer left. A browser that is busy dates the next cell of
 * a row some milliseconds after the kernel has answered the one before, of which it doesn't know
 * yet; its requests name their cells, and nobody presses a button so soon after an error is shown.
 *
 * A header's date is taken by a clock that may not be ours. That it is shows in requests that seem
 * to have travelled for no time and not for long; else how much it differs shows in the fastest of
 * them, a few milliseconds too late. Knows nothing of sockets. */
#ifndef TIDE_KERNEL_ABORTING_H
#define TIDE_KERNEL_ABORTING_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    TK_ABORT_SAME_MS = 10,      /* who seems to send no longer before has our clock */
    TK_ABORT_FIRST_MS = 5,      /* in doubt, what was sent so soon after the failure is not run */
    TK_ABORT_ROW_MS = 250,      /* from cell to cell of a row that a notebook sends */
    TK_ABORT_REACTION_US = 250, /* nobody answers an answer as fast */
    TK_ABORT_TRUST_MS = 5000,   /* then a row has ended, and no header's date is asked */
    TK_ABORT_SESSIONS = 16      /* front ends that are remembered */
};

/* Now, in microseconds: of a clock that only runs forward, and since 1970. */
typedef struct tk_moment {
    int64_t steady_us, wall_us;
} tk_moment;

/* One front end, by its session. */
typedef struct tk_abort_entry {
    uint64_t session;  /* hash; 0: nobody */
    int64_t offset_us; /* our clock minus its clock, at most */
    bool has_offset;
    bool failed, aborts; /* its cell failed; its last request is not run: neither is answered yet */
    bool covers;         /* a failure was answered */
    int64_t left_us;     /* when the answer to the failed cell left, by the steady clock */
    int64_t until_us;    /* what was sent earlier is not run, by the other */
} tk_abort_entry;

/* All zero: nothing has happened. */
typedef struct tk_aborting {
    tk_abort_entry entries[TK_ABORT_SESSIONS];
    int next;          /* the entry that the next new front end takes */
    int64_t rested_us; /* when the kernel was last woken out of waiting for requests, steady */
} tk_aborting;

/* A request with this header was received. */
void tk_aborting_hear(tk_aborting *a, const json_t *header, tk_moment now);

/* The cell of the request with this header failed, and is about to be answered. */
void tk_aborting_begin(tk_aborting *a, const json_t *header);

/* The answer to the request with this header has left. */
void tk_aborting_answered(tk_aborting *a, const json_t *header, tk_moment now);

/* There was no request, and the wait for one has ended. */
void tk_aborting_rest(tk_aborting *a, tk_moment now);

/* Is the cell of this header, which was heard, not to be run? `notebook`: the request names the
 * cell of a notebook. */
bool tk_aborting_covers(tk_aborting *a, const json_t *header, bool notebook, tk_moment now);

/* The microseconds of a header's date ("2026-01-31T23:59:59.123456Z"; without a zone it is UTC)
 * since 1970. False when it is none. */
bool tk_aborting_date(const char *text, int64_t *us);

#endif

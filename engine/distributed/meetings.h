/* meetings.h: what the ranks of a rehearsal do together: parts of collectives wait until all ranks
 * of the group have come, sends until they are received. Knows neither processes nor pipes. */
#ifndef TD_DISTRIBUTED_MEETINGS_H
#define TD_DISTRIBUTED_MEETINGS_H

#include "engine/core/memory.h"
#include "engine/distributed/rehearsal.h"

/* Bytes that several answers share. */
typedef struct td_blob {
    int refs;
    size_t n;
    _Alignas(16) char bytes[];
} td_blob;

td_blob *td_blob_new(size_t n); /* new; NULL: out of memory */
void td_blob_release(td_blob *blob);

/* One rank's part of a transfer. */
typedef struct td_part {
    int rank;
    td_rehearsal_word word;
    int64_t *counts; /* owned; NULL: none */
    td_blob *body;   /* owned; NULL: no elements */
} td_part;

void td_part_clear(td_part *part);

/* A transfer of a rank's has arrived, with `n` bytes of a blob (borrowed, may be NULL) from a place
 * on. ENOMEM. */
typedef td_status (*td_deliver)(void *ctx, const td_part *part, td_blob *body, size_t at, size_t n);

typedef struct td_meetings {
    td_list groups, open, pairs;
    td_deliver deliver;
    void *ctx;
    int64_t carried_out;
    char differ[1024]; /* what ranks do not agree on; "": nothing so far */
} td_meetings;

/* Ready for ranks 0 to size - 1. ENOMEM. */
td_status td_meetings_init(td_meetings *m, int size, td_deliver deliver, void *ctx) TD_MUST_CHECK;
void td_meetings_clear(td_meetings *m);

/* A rank makes a group; differs where another made one of the same number with other ranks.
 * ENOMEM. */
td_status td_meetings_group(td_meetings *m, int rank, uint32_t number, int n,
                            const int64_t *members) TD_MUST_CHECK;
/* A rank begins its part, which is taken over. ENOMEM. */
td_status td_meetings_add(td_meetings *m, td_part *part) TD_MUST_CHECK;
/* Add "group 2 is ranks 0, 1" for each group to a text. */
void td_meetings_describe(const td_meetings *m, char *text, size_t size);
/* A send or recv that nobody answered; NULL: none. Borrowed. */
const td_part *td_meetings_unanswered(const td_meetings *m);

#endif

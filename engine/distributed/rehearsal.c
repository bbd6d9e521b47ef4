/* rehearsal.c: the transport of a rank of a rehearsal: says what it begins and waits for, and takes
 * what the coordinator sends. What ranks do together is not known here. */
#include "engine/distributed/rehearsal.h"

#include "engine/core/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct group {
    uint32_t number;
    int n, rank; /* this process's within it */
} group;

typedef struct token {
    struct token *next;
    uint32_t number;
    bool arrived;
    void *into;
    size_t room;
} token;

static struct {
    int in, out;
    group all;
    uint32_t last; /* token's number */
    token *under_way;
    const td_dtype_info *dtypes;
    pthread_mutex_t lock; /* of `out`: messages of two threads do not mix */
} side = {.in = -1, .out = -1, .lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the pipes ---- */

static bool put(const void *bytes, size_t n) {
    for (const char *at = bytes; n;) {
        ssize_t done = write(side.out, at, n);
        if (done < 0 && errno != EINTR)
            return false;
        at += done > 0 ? done : 0;
        n -= done > 0 ? (size_t)done : 0;
    }
    return true;
}

/* False at the pipe's end. */
static bool take(void *bytes, size_t n) {
    for (char *at = bytes; n;) {
        ssize_t done = read(side.in, at, n);
        if (done == 0 || (done < 0 && errno != EINTR && errno != EAGAIN))
            return false;
        at += done > 0 ? done : 0;
        n -= done > 0 ? (size_t)done : 0;
    }
    return true;
}

static bool say(const td_rehearsal_word *word, const int64_t *counts, const void *bytes) {
    pthread_mutex_lock(&side.lock);
    bool ok = put(word, sizeof *word) && put(counts, (size_t)word->ncounts * sizeof *counts) &&
              put(bytes, word->bytes);
    pthread_mutex_unlock(&side.lock);
    return ok;
}

static bool fail_gone(char why[TD_WHY]) {
    snprintf(why, TD_WHY, "tide-run, which rehearses the job, is gone");
    return false;
}

/* ---- the job and its groups ---- */

static const char *version(void) {
    return "all ranks on one machine, seen by one";
}

static int read_number(const char *name) {
    const char *text = getenv(name);
    return text ? (int)strtol(text, NULL, 10) : -1;
}

static bool open_job(const td_transport_host *host, int *rank, int *size, char why[TD_WHY]) {
    const char *pipes = getenv(TD_REHEARSAL_PIPES);
    char *rest = NULL;
    *rank = read_number(TD_REHEARSAL_RANK);
    *size = read_number(TD_REHEARSAL_SIZE);
    side.in = pipes ? (int)strtol(pipes, &rest, 10) : -1;
    side.out = rest ? (int)strtol(rest, NULL, 10) : -1;
    side.dtypes = host->dtypes;
    side.all = (group){0, *size, *rank};
    td_rehearsal_word word = {.word = TD_REHEARSAL_JOIN};
    /* Programs that the script starts have no part in it. */
    if (side.in < 3 || side.out < 3 || fcntl(side.in, F_SETFD, FD_CLOEXEC) ||
        fcntl(side.out, F_SETFD, FD_CLOEXEC) || !say(&word, NULL, NULL))
        return fail_gone(why);
    return true;
}

static bool make_group(int n, const int *ranks, int tag, void **out, char why[TD_WHY]) {
    group *g = td_malloc(sizeof *g);
    int64_t *members = td_malloc((size_t)n * sizeof *members);
    td_rehearsal_word word = {
        .word = TD_REHEARSAL_GROUP, .record = {.group = (uint32_t)tag}, .ncounts = n};
    bool ok = g && members;
    if (ok)
        *g = (group){(uint32_t)tag, n, 0};
    for (int k = 0; ok && k < n; k++) {
        members[k] = ranks[k];
        if (ranks[k] == side.all.rank)
            g->rank = k;
    }
    if (!ok)
        snprintf(why, TD_WHY, "out of memory");
    else
        ok = say(&word, members, NULL) || fail_gone(why);
    td_free(members);
    if (!ok)
        td_free(g);
    *out = ok ? g : NULL;
    return ok;
}

static void end_group(void *g) {
    td_free(g);
}

static void fail(const char *why) {
    td_rehearsal_word word = {.word = TD_REHEARSAL_FAIL, .bytes = strlen(why)};
    say(&word, NULL, why);
}

static void close_job(void) {}

/* ---- transfers ---- */

static int64_t sum_of(const int64_t *counts, int n) {
    int64_t sum = 0;
    for (int k = 0; counts && k < n; k++)
        sum += counts[k];
    return sum;
}

/* What this rank gives and takes: places, and how many elements. */
typedef struct shares {
    const void *give;
    int64_t ngive, ntake;
} shares;

static shares find_shares(const td_transfer *t, const group *g) {
    bool root = t->peer == g->rank;
    switch (t->kind) {
    case TD_BROADCAST:
        return root ? (shares){t->recv, t->count, 0} : (shares){NULL, 0, t->count};
    case TD_ALL_REDUCE:
        return (shares){t->send, t->count, t->count};
    case TD_ALL_GATHER:
        return (shares){t->send, t->count, sum_of(t->recv_counts, g->n)};
    case TD_REDUCE_SCATTER:
        return (shares){t->send, sum_of(t->send_counts, g->n), t->count};
    case TD_GATHER:
        return (shares){t->send, t->count, root ? sum_of(t->recv_counts, g->n) : 0};
    case TD_SCATTER:
        return (shares){t->send, root ? sum_of(t->send_counts, g->n) : 0, t->count};
    case TD_ALL_TO_ALL:
        return (shares){t->send, sum_of(t->send_counts, g->n), sum_of(t->recv_counts, g->n)};
    case TD_SEND:
        return (shares){t->send, t->count, 0};
    case TD_RECV:
        return (shares){NULL, 0, t->count};
    case TD_BARRIER:
    case TD_SHUTDOWN:
    case TD_COLLECTIVES:
        break;
    }
    return (shares){NULL, 0, 0};
}

static bool start(void *of, const td_transfer *t, void **out, char why[TD_WHY]) {
    const group *g = of ? of : &side.all;
    shares s = find_shares(t, g);
    size_t size = side.dtypes[t->dtype].size;
    token *k = td_calloc(1, sizeof *k);
    int64_t *counts = td_calloc(2 * (size_t)g->n, sizeof *counts);
    td_rehearsal_word word = {.word = TD_REHEARSAL_TRANSFER,
                              .token = ++side.last,
                              .tag = t->tag,
                              .count = t->count,
                              .shapes = s.ngive > 0 && !s.give,
                              .takes = t->recv != NULL,
                              .bytes = s.give ? (uint64_t)s.ngive * size : 0};
    bool ok = k && counts && td_flight_read(t->number - 1, &word.record, 1) == 1;
    *out = k;
    if (!ok)
        snprintf(why, TD_WHY, "out of memory");
    if (ok && (t->send_counts || t->recv_counts)) {
        word.ncounts = 2 * g->n;
        for (int r = 0; r < g->n; r++) {
            counts[r] = t->send_counts ? t->send_counts[r] : 0;
            counts[g->n + r] = t->recv_counts ? t->recv_counts[r] : 0;
        }
    }
    ok = ok && (say(&word, counts, s.give) || fail_gone(why));
    td_free(counts);
    if (!ok) {
        td_free(k);
        return false;
    }
    *k = (token){side.under_way, word.token, false, t->recv, (size_t)s.ntake * size};
    side.under_way = k;
    return true;
}

static void waits(void *of) {
    const token *k = of;
    td_rehearsal_word word = {.word = TD_REHEARSAL_WAIT, .token = k->number};
    say(&word, NULL, NULL); /* where the coordinator is gone, `test` finds it out */
}

/* Is there an answer to read? The pipe stays one that waits: a whole answer comes once it begins.
 */
static int ready(void) {
    struct pollfd one = {.fd = side.in, .events = POLLIN};
    return poll(&one, 1, 0);
}

/* Take the answers that are there. */
static bool hear(char why[TD_WHY]) {
    td_rehearsal_answer a;
    while (ready() > 0) {
        if (!take(&a, sizeof a))
            return fail_gone(why);
        token *k = side.under_way;
        while (k && k->number != a.token)
            k = k->next;
        if (!k || a.bytes > k->room || (a.bytes && !k->into)) {
            snprintf(why, TD_WHY, "an answer of tide-run's that does not fit");
            return false;
        }
        if (!take(k->into, a.bytes))
            return fail_gone(why);
        k->arrived = true;
    }
    return true;
}

static td_progress test(void *of, char why[TD_WHY]) {
    token *k = of;
    bool ok = hear(why);
    if (ok && !k->arrived)
        return TD_PENDING;
    td_progress progress = k->arrived ? TD_ARRIVED : TD_BROKEN;
    token **at = &side.under_way;
    while (*at != k)
        at = &(*at)->next;
    *at = k->next;
    td_free(k);
    return progress;
}

const td_transport td_transport_rehearsal = {
    .name = "rehearsal",
    .version = version,
    .open = open_job,
    .group = make_group,
    .ungroup = end_group,
    .start = start,
    .test = test,
    .close = close_job,
    .sees_all = true,
    .shapes_do = true,
    .waits = waits,
    .fail = fail,
};

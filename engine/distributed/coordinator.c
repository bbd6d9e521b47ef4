/* coordinator.c: what each rank has begun, what they do together, and the verdict. The pipes' ends
 * here never wait: what can't be written yet is kept. */
#include "engine/distributed/coordinator.h"

#include "engine/core/memory.h"
#include "engine/distributed/meetings.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SAID_MOST = 24, VERDICT = 8192 };

/* An answer, and the part of a blob that goes along. */
typedef struct letter {
    struct letter *next;
    td_rehearsal_answer head;
    td_blob *body;
    size_t at, done; /* where the part begins; bytes written, of head and part */
} letter;

typedef struct begun {
    uint32_t token;
    int32_t tag;
    td_flight_record record;
} begun;

typedef struct rank_state {
    int in, out; /* -1: closed */
    bool joined, left, ended;
    char how[512];         /* it ended, or said that it would */
    uint32_t token;        /* of what its script waits for; 0: it computes */
    td_list begun;         /* of begun: what has not arrived */
    td_flight_record last; /* that has */

    /* what is being read */
    td_rehearsal_word word;
    size_t have; /* bytes of the word and what follows it */
    int64_t *counts;
    td_blob *body;

    letter *first, *end; /* to be written */
} rank_state;

struct td_coordinator {
    int size;
    rank_state *ranks;
    struct pollfd *polls;
    td_meetings meetings;
    double patience, heard; /* seconds; time of the last message */
    char verdict[VERDICT];
};

/* ---- answers ---- */

static begun *find_begun(const rank_state *r, uint32_t token) {
    begun *list = r->begun.items;
    for (int k = 0; k < r->begun.n; k++)
        if (list[k].token == token)
            return &list[k];
    return NULL;
}

/* A transfer of a rank's has arrived: its answer is put behind the others. */
static td_status deliver(void *ctx, const td_part *part, td_blob *body, size_t at, size_t n) {
    td_coordinator *c = ctx;
    rank_state *r = &c->ranks[part->rank];
    letter *l = td_calloc(1, sizeof *l);
    begun *done = find_begun(r, part->word.token);
    if (!l)
        return td_fail(TD_ENOMEM, "out of memory");
    l->head = (td_rehearsal_answer){part->word.token, n};
    l->body = n ? body : NULL;
    l->at = at;
    if (l->body)
        l->body->refs++;
    if (r->end)
        r->end->next = l;
    else
        r->first = l;
    r->end = l;
    r->last = part->word.record;
    r->left |= r->last.kind == TD_SHUTDOWN;
    if (done)
        *done = ((begun *)r->begun.items)[--r->begun.n];
    if (r->token == part->word.token)
        r->token = 0;
    return TD_OK;
}

static void close_end(int *fd) {
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void drop_letter(rank_state *r) {
    letter *l = r->first;
    r->first = l->next;
    if (!r->first)
        r->end = NULL;
    td_blob_release(l->body);
    td_free(l);
}

/* Write what the pipe takes. A rank that has gone takes nothing more. */
static void write_letters(rank_state *r) {
    while (r->first && r->out >= 0) {
        letter *l = r->first;
        size_t head = sizeof l->head, whole = head + l->head.bytes;
        const char *from = l->done < head ? (const char *)&l->head + l->done
                                          : l->body->bytes + l->at + l->done - head;
        ssize_t n = write(r->out, from, (l->done < head ? head : whole) - l->done);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n < 0)
            close_end(&r->out);
        else if ((l->done += (size_t)n) == whole)
            drop_letter(r);
    }
}

/* ---- what ranks say ---- */

static void decide(td_coordinator *c, const char *format, ...) TD_PRINTF(2, 3);
static void decide(td_coordinator *c, const char *format, ...) {
    va_list args;
    if (c->verdict[0])
        return;
    va_start(args, format);
    vsnprintf(c->verdict, sizeof c->verdict, format, args);
    va_end(args);
}

static td_status begin(td_coordinator *c, int rank) {
    rank_state *r = &c->ranks[rank];
    td_part part = {rank, r->word, r->counts, r->body};
    begun *b = td_list_add(&r->begun, sizeof *b);
    r->counts = NULL;
    r->body = NULL;
    if (b)
        *b = (begun){part.word.token, part.word.tag, part.word.record};
    td_status status =
        b ? td_meetings_add(&c->meetings, &part) : td_fail(TD_ENOMEM, "out of memory");
    td_part_clear(&part);
    return status;
}

static td_status hear(td_coordinator *c, int rank) {
    rank_state *r = &c->ranks[rank];
    const td_rehearsal_word *w = &r->word;
    switch (w->word) {
    case TD_REHEARSAL_JOIN:
        r->joined = true;
        r->left = false;
        break;
    case TD_REHEARSAL_GROUP:
        return td_meetings_group(&c->meetings, rank, w->record.group, w->ncounts, r->counts);
    case TD_REHEARSAL_TRANSFER:
        return begin(c, rank);
    case TD_REHEARSAL_WAIT: /* for what may have arrived meanwhile */
        r->token = find_begun(r, w->token) ? w->token : 0;
        break;
    case TD_REHEARSAL_FAIL:
        decide(c, "rank %d left: %.*s", rank, r->body ? (int)r->body->n : 0,
               r->body ? r->body->bytes : "");
        break;
    }
    return TD_OK;
}

/* Room for what follows a word that is there. */
static td_status make_room(td_coordinator *c, rank_state *r) {
    const td_rehearsal_word *w = &r->word;
    if (w->ncounts < 0 || w->ncounts > 2 * c->size)
        return td_fail(TD_EIO, "a rank says what makes no sense");
    r->counts = w->ncounts ? td_malloc((size_t)w->ncounts * sizeof *r->counts) : NULL;
    r->body = w->bytes ? td_blob_new(w->bytes) : NULL;
    if ((w->ncounts && !r->counts) || (w->bytes && !r->body))
        return td_fail(TD_ENOMEM, "out of memory for %llu bytes that a rank sends",
                       (unsigned long long)w->bytes);
    return TD_OK;
}

/* Where the next bytes go, and how many of one kind are due; 0: the message is whole. */
static size_t next_bytes(rank_state *r, char **into) {
    size_t word = sizeof r->word;
    if (r->have < word) {
        *into = (char *)&r->word + r->have;
        return word - r->have;
    }
    size_t counts = word + (size_t)r->word.ncounts * sizeof *r->counts;
    if (r->have < counts) {
        *into = (char *)r->counts + (r->have - word);
        return counts - r->have;
    }
    *into = r->body ? r->body->bytes + (r->have - counts) : NULL;
    return counts + r->word.bytes - r->have;
}

/* Take what a rank's pipe has. */
static td_status read_rank(td_coordinator *c, int rank) {
    rank_state *r = &c->ranks[rank];
    td_status status = TD_OK;
    while (!status && r->in >= 0) {
        char *into;
        size_t due = next_bytes(r, &into);
        ssize_t n = due ? read(r->in, into, due) : 0;
        if (due && n < 0 && (errno == EAGAIN || errno == EINTR))
            return TD_OK;
        if (due && n <= 0) {
            close_end(&r->in);
            return TD_OK;
        }
        c->heard = td_flight_clock();
        r->have += (size_t)n;
        if (due && r->have == sizeof r->word)
            status = make_room(c, r);
        if (!status && next_bytes(r, &into) == 0) {
            status = hear(c, rank);
            td_free(r->counts);
            td_blob_release(r->body);
            r->counts = NULL;
            r->body = NULL;
            r->have = 0;
        }
    }
    return status;
}

/* ---- the verdict ---- */

static void say_rank(const rank_state *r, char *text, size_t size) {
    char record[200];
    const begun *b = r->token ? find_begun(r, r->token) : NULL;
    text[0] = '\0';
    if (r->how[0])
        td_flight_add(text, size, "gone: %s", r->how);
    else if (r->ended && !r->joined)
        td_flight_add(text, size, "ended without tide.distributed.init");
    else if (r->ended)
        td_flight_add(text, size, "ended");
    else if (!r->joined)
        td_flight_add(text, size, "not yet at tide.distributed.init");
    else if (b && b->record.kind == TD_SHUTDOWN)
        td_flight_add(text, size, "at the end of the script");
    else if (b)
        td_flight_add(text, size, "waiting in %s",
                      td_flight_text(&b->record, record, sizeof record));
    else if (r->last.number)
        td_flight_add(text, size, "computing since %s",
                      td_flight_text(&r->last, record, sizeof record));
    else
        td_flight_add(text, size, "computing");
    if (b && b->tag)
        td_flight_add(text, size, ", tag %d", (int)b->tag);
}

/* A line for each thing that ranks do: "  ranks 0-3, 7: waiting in ...". */
static void list_ranks(td_coordinator *c) {
    enum { LINE = 320 };
    char *text = c->verdict, mine[LINE], other[LINE];
    size_t size = sizeof c->verdict;
    int lines = 0, firsts[SAID_MOST]; /* the first rank of each line */
    for (int r = 0; r < c->size; r++) {
        bool said = false;
        say_rank(&c->ranks[r], mine, sizeof mine);
        for (int k = 0; k < lines && !said; k++) {
            say_rank(&c->ranks[firsts[k]], other, sizeof other);
            said = strcmp(mine, other) == 0;
        }
        if (said)
            continue;
        if (lines == SAID_MOST) {
            td_flight_add(text, size, "\n  ...");
            break;
        }
        firsts[lines++] = r;
        char list[LINE] = "";
        int many = 0;
        for (int k = r, end; k < c->size; k = end + 1) {
            for (end = k; end < c->size; end++) { /* those that do the same, one behind the other */
                say_rank(&c->ranks[end], other, sizeof other);
                if (strcmp(mine, other) != 0)
                    break;
            }
            if (end > k)
                td_flight_add(list, sizeof list, end - k > 1 ? "%s%d-%d" : "%s%d",
                              k > r ? ", " : "", k, end - 1);
            many += end - k;
        }
        td_flight_add(text, size, "\n  %s %s: %s", many > 1 ? "ranks" : "rank", list, mine);
    }
    td_meetings_describe(&c->meetings, text, size);
}

static void judge(td_coordinator *c) {
    int busy = 0, ended = 0;
    if (c->meetings.differ[0])
        decide(c, "%s", c->meetings.differ);
    if (c->verdict[0])
        return;
    for (int r = 0; r < c->size; r++) {
        ended += c->ranks[r].ended;
        busy += !c->ranks[r].ended && !c->ranks[r].token;
    }
    const td_part *alone = td_meetings_unanswered(&c->meetings);
    char record[200];
    if (ended == c->size && alone)
        decide(c, "rank %d is through, and nobody answered its %s", alone->rank,
               td_flight_text(&alone->word.record, record, sizeof record));
    else if (ended < c->size && !busy)
        decide(c, "no rank can go on:");
    else if (ended < c->size && td_flight_clock() - c->heard > c->patience)
        decide(c, "nothing has happened for %.0f s:", c->patience);
    else
        return;
    if (ended < c->size)
        list_ranks(c);
}

/* ---- the face ---- */

td_status td_coordinator_new(int size, double patience, td_coordinator **out) {
    td_status status = TD_OK;
    td_coordinator *c = td_calloc(1, sizeof *c);
    *out = NULL;
    if (!c)
        return td_fail(TD_ENOMEM, "out of memory");
    c->ranks = td_calloc((size_t)size, sizeof *c->ranks);
    c->polls = td_calloc(2 * (size_t)size, sizeof *c->polls);
    if (!c->ranks || !c->polls)
        TD_TRY(td_fail(TD_ENOMEM, "out of memory"));
    c->size = size;
    c->patience = patience;
    c->heard = td_flight_clock();
    for (int r = 0; r < size; r++)
        c->ranks[r].in = c->ranks[r].out = -1;
    TD_TRY(td_meetings_init(&c->meetings, size, deliver, c));
    *out = c;
    return TD_OK;
done:
    td_coordinator_release(c);
    return status;
}

void td_coordinator_release(td_coordinator *c) {
    if (!c)
        return;
    for (int k = 0; k < c->size; k++) {
        rank_state *r = &c->ranks[k];
        close_end(&r->in);
        close_end(&r->out);
        while (r->first)
            drop_letter(r);
        td_list_clear(&r->begun);
        td_free(r->counts);
        td_blob_release(r->body);
    }
    td_meetings_clear(&c->meetings);
    td_free(c->ranks);
    td_free(c->polls);
    td_free(c);
}

td_status td_coordinator_connect(td_coordinator *c, int rank, int in, int out) {
    c->ranks[rank].in = in;
    c->ranks[rank].out = out;
    if (fcntl(in, F_SETFL, O_NONBLOCK) || fcntl(out, F_SETFL, O_NONBLOCK))
        return td_fail(TD_EIO, "%s", strerror(errno));
    return TD_OK;
}

td_status td_coordinator_turn(td_coordinator *c, int timeout_ms) {
    for (int k = 0; k < c->size; k++) {
        const rank_state *r = &c->ranks[k];
        c->polls[2 * k] = (struct pollfd){.fd = r->in, .events = POLLIN};
        c->polls[2 * k + 1] = (struct pollfd){.fd = r->first ? r->out : -1, .events = POLLOUT};
    }
    td_status status = TD_OK;
    if (poll(c->polls, 2 * (nfds_t)c->size, timeout_ms) > 0)
        for (int k = 0; !status && k < c->size; k++)
            if (c->polls[2 * k].revents)
                status = read_rank(c, k);
    for (int k = 0; k < c->size; k++)
        write_letters(&c->ranks[k]);
    judge(c);
    return status;
}

td_status td_coordinator_ended(td_coordinator *c, int rank, const char *how) {
    rank_state *r = &c->ranks[rank];
    td_status status = read_rank(c, rank); /* its last words */
    r->ended = true;
    r->token = 0;
    if (how) {
        snprintf(r->how, sizeof r->how, "%s", how);
        decide(c, "rank %d is gone: %s", rank, how);
    }
    judge(c);
    return status;
}

const char *td_coordinator_verdict(const td_coordinator *c) {
    return c->verdict[0] ? c->verdict : NULL;
}

bool td_coordinator_is_over(const td_coordinator *c) {
    int ended = 0;
    for (int r = 0; r < c->size; r++)
        ended += c->ranks[r].ended;
    return ended == c->size;
}

int64_t td_coordinator_transfers(const td_coordinator *c) {
    return c->meetings.carried_out;
}

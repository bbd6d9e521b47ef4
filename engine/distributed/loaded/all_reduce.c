/* all_reduce.c: reductions as messages from rank to rank, a piece after the other.
 *
 * Of each piece every rank gets all ranks' elements of its share, reduces them and sends the result
 * to all. What is short goes whole to all, which takes one message's time in place of two. Both
 * ways reduce in the order of ranks with operands in the same places: the bits of a result depend
 * neither on the size of the message, nor on where in it an element lies, nor on time.
 */
#include "engine/distributed/loaded/all_reduce.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of a piece, which several caches' levels hold together with what comes of it; pieces under
 * way at once; bytes up to which all goes to all. */
enum { PIECE = 1 << 20, WINDOW = 4, SHORT = 1 << 14 };

typedef struct piece {
    int64_t at; /* first element */
    int n;      /* elements */
    bool reduced;
    int left; /* requests that have not completed */
    MPI_Request requests[2 * (TD_EXCHANGE_RANKS - 1)];
    char *theirs; /* the other ranks' elements of this rank's share, in the order of ranks */
} piece;

struct td_exchange {
    td_exchange_of of;
    int rank, ranks;
    bool whole;                      /* every rank's share is all of it */
    int most;                        /* elements of a piece */
    int64_t opened, reduced, closed; /* pieces, from the first on */
    int64_t pieces;
    piece window[WINDOW];
    char *room;
};

static int share_begin(const td_exchange *x, const piece *p, int rank) {
    return x->whole ? 0 : (int)((int64_t)p->n * rank / x->ranks);
}

static int share_count(const td_exchange *x, const piece *p, int rank) {
    return x->whole ? p->n : share_begin(x, p, rank + 1) - share_begin(x, p, rank);
}

static size_t share_offset(const td_exchange *x, const piece *p, int rank) {
    return ((size_t)p->at + (size_t)share_begin(x, p, rank)) * x->of.size;
}

/* Where what another rank has for this rank's share lies. */
static char *theirs(const td_exchange *x, const piece *p, int peer) {
    size_t bytes = (size_t)share_count(x, p, x->rank) * x->of.size;
    return p->theirs + (size_t)(peer < x->rank ? peer : peer - 1) * bytes;
}

/* Every rank's elements of each share to the rank that reduces it. */
static int open_piece(td_exchange *x) {
    const td_exchange_of *of = &x->of;
    piece *p = &x->window[x->opened % WINDOW];
    int code = 0, n = 0, mine;
    p->at = x->opened * x->most;
    p->n = (int)(of->count - p->at < x->most ? of->count - p->at : x->most);
    p->reduced = false;
    mine = share_count(x, p, x->rank);
    for (int k = 1; k < x->ranks && !code; k++) {
        int peer = (x->rank + k) % x->ranks;
        code =
            MPI_Irecv(theirs(x, p, peer), mine, of->type, peer, of->tag, of->comm, &p->requests[n]);
        n += !code;
    }
    for (int k = 1; k < x->ranks && !code; k++) {
        int peer = (x->rank + k) % x->ranks;
        code = MPI_Isend((const char *)of->send + share_offset(x, p, peer), share_count(x, p, peer),
                         of->type, peer, of->tag, of->comm, &p->requests[n]);
        n += !code;
    }
    p->left = n;
    x->opened++;
    return code;
}

/* This rank's share, in the order of ranks; what came from rank 0, or is rank 0's own, holds the
 * result so far. */
static int reduce_share(td_exchange *x, piece *p) {
    const td_exchange_of *of = &x->of;
    size_t at = share_offset(x, p, x->rank);
    int n = share_count(x, p, x->rank), code = 0;
    const char *given = (const char *)of->send + at;
    char *own = (char *)of->recv + at, *sum = x->rank == 0 ? own : theirs(x, p, 0);
    if (x->rank == 0 && given != own)
        memcpy(own, given, (size_t)n * of->size);
    for (int peer = 1; peer < x->ranks && !code; peer++)
        code = MPI_Reduce_local(peer == x->rank ? given : theirs(x, p, peer), sum, n, of->type,
                                of->op);
    if (x->rank != 0)
        memcpy(own, sum, (size_t)n * of->size);
    p->reduced = true;
    x->reduced++;
    return code;
}

/* The result of every share to all ranks. */
static int share_result(td_exchange *x, piece *p) {
    const td_exchange_of *of = &x->of;
    int code = 0, n = 0, mine = share_count(x, p, x->rank);
    for (int k = 1; k < x->ranks && !code; k++) {
        int peer = (x->rank + k) % x->ranks;
        code = MPI_Irecv((char *)of->recv + share_offset(x, p, peer), share_count(x, p, peer),
                         of->type, peer, of->tag + 1, of->comm, &p->requests[n]);
        n += !code;
    }
    for (int k = 1; k < x->ranks && !code; k++) {
        int peer = (x->rank + k) % x->ranks;
        code = MPI_Isend((const char *)of->recv + share_offset(x, p, x->rank), mine, of->type, peer,
                         of->tag + 1, of->comm, &p->requests[n]);
        n += !code;
    }
    p->left = n;
    return code;
}

/* Messages of a pair match in the order in which they are begun: pieces are reduced and closed in
 * theirs. */
static int advance(td_exchange *x, int64_t number) {
    piece *p = &x->window[number % WINDOW];
    int code = 0, done = 0;
    if (p->left) {
        int indices[2 * (TD_EXCHANGE_RANKS - 1)];
        code = MPI_Testsome(2 * (x->ranks - 1), p->requests, &done, indices, MPI_STATUSES_IGNORE);
        p->left -= code || done == MPI_UNDEFINED ? 0 : done;
    }
    if (!code && !p->left && !p->reduced && number == x->reduced) {
        code = reduce_share(x, p);
        if (!code && !x->whole)
            code = share_result(x, p);
    }
    if (!code && !p->left && p->reduced && number == x->closed)
        x->closed++;
    return code;
}

int td_exchange_start(const td_exchange_of *of, td_exchange **out) {
    td_exchange *x = calloc(1, sizeof *x);
    *out = NULL;
    if (!x)
        return MPI_ERR_NO_MEM;
    x->of = *of;
    MPI_Comm_rank(of->comm, &x->rank);
    MPI_Comm_size(of->comm, &x->ranks);
    x->whole = of->count * (int64_t)of->size <= SHORT;
    x->most = (int)(PIECE / of->size);
    x->pieces = (of->count + x->most - 1) / x->most;
    /* All shares but one, of which the last may be an element longer than others. */
    size_t bytes = x->whole ? (size_t)of->count * of->size * (size_t)(x->ranks - 1)
                            : PIECE + of->size * (size_t)x->ranks;
    int slots = x->pieces < WINDOW ? (int)x->pieces : WINDOW;
    if (slots && !(x->room = malloc(bytes * (size_t)slots))) {
        free(x);
        return MPI_ERR_NO_MEM;
    }
    for (int k = 0; k < slots; k++)
        x->window[k].theirs = x->room + bytes * (size_t)k;
    *out = x;
    int code = 0;
    while (!code && x->opened < slots)
        code = open_piece(x);
    return code;
}

int td_exchange_test(td_exchange *x, bool *moved, bool *done) {
    int code = 0;
    *moved = false;
    for (int64_t number = x->closed; !code && number < x->opened; number++) {
        const piece *p = &x->window[number % WINDOW];
        int before = p->left;
        bool reduced = p->reduced;
        code = advance(x, number);
        *moved |= p->left != before || p->reduced != reduced;
    }
    while (!code && x->opened < x->pieces && x->opened - x->closed < WINDOW)
        code = open_piece(x);
    *done = x->closed == x->pieces;
    return code;
}

void td_exchange_free(td_exchange *x) {
    if (x)
        free(x->room);
    free(x);
}

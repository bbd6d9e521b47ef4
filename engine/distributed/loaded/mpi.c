/* mpi.c: the transport over MPI, built once for each MPI that is found (Open MPI, MPICH): a module
 * that is linked to the library and to nothing of Tide's.
 *
 * Everything is started by the non-blocking form of its call and asked for with MPI_Test, so
 * that no call spins; only entering the job, making a group and leaving it wait within MPI. MPI is
 * entered, driven and left on one thread (MPI_THREAD_FUNNELED).
 */
#include "engine/distributed/transport.h"

#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Elements that one call of MPI takes: its counts are ints. What can be cut is cut. */
enum { MOST = 1 << 30 };

/* Bytes of a piece of a reduction, which so fits into a cache together with what comes of it. */
enum { PIECE = 1 << 20 };

/* Reductions among so many ranks at most are messages from each to each (below); such pieces that
 * are under way at once, and their bytes; bytes up to which all goes to all. */
enum { EXCHANGE_RANKS = 16, WINDOW = 32, UNDER_WAY = 4 << 20, SHORT = 1 << 14 };

/* Bytes of a message between machines. Of one of more than 64 KiB, with MPI's head, both sides
 * first ask each other whether it may come, which over TCP waits behind all that is being sent. */
enum { MESSAGE = 60 << 10 };

typedef struct exchange exchange;

/* Ranks, and what is begun among them. */
typedef struct group {
    MPI_Comm comm;
    MPI_Comm exchanges; /* for messages of exchanges alone; MPI_COMM_NULL: too many ranks */
    int piece;          /* of those, bytes */
    unsigned begun;     /* of those, so far */
    struct group *next; /* in the order in which they were made */
} group;

typedef struct token {
    exchange *exchange; /* or NULL, and the requests */
    int n, room;
    MPI_Request *requests;
    int *counts; /* of the forms that take a count for each rank; they must outlive the call */
} token;

static const td_transport_host *host;
static bool entered; /* by this module, which then leaves as well */

static bool fail(char why[TD_WHY], const char *call, int code) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int len = 0;
    MPI_Error_string(code, text, &len);
    snprintf(why, TD_WHY, "%s: %.*s", call, TD_WHY - 64, text);
    return false;
}

static bool no_memory(char why[TD_WHY]) {
    snprintf(why, TD_WHY, "out of memory");
    return false;
}

static group all; /* ranks of the job */

static group *group_of(void *of) {
    return of ? of : &all;
}

/* ---- dtypes and operations ---- */

static MPI_Datatype type_of(td_dtype dtype) {
    switch (dtype) {
    case TD_BOOL:
    case TD_U8:
        return MPI_UINT8_T;
    case TD_I8:
        return MPI_INT8_T;
    case TD_I16:
        return MPI_INT16_T;
    case TD_I32:
        return MPI_INT32_T;
    case TD_I64:
        return MPI_INT64_T;
    case TD_F16:
    case TD_BF16:
        return MPI_UINT16_T;
    case TD_F32:
        return MPI_FLOAT;
    case TD_F64:
        return MPI_DOUBLE;
    case TD_DTYPE_COUNT:
    case TD_DTYPE_NONE:
        break;
    }
    return MPI_BYTE;
}

/* Operations of our own on 16-bit floats, of which MPI has none. It hands them no context, so there
 * is one for each reduction of each of these dtypes. */
#define OWN_DTYPES(X)                                                                              \
    X(F16, 0)                                                                                      \
    X(BF16, 1)
enum { OWN_COUNT = 2 };

#define OWN(OP, DTYPE)                                                                             \
    static void reduce_##OP##_##DTYPE(void *from, void *into, int *n, MPI_Datatype *type) {        \
        (void)type;                                                                                \
        host->reduce(TD_ACROSS_##OP, TD_##DTYPE, into, from, *n);                                  \
    }
#define OWN_ALL(DTYPE, k) OWN(SUM, DTYPE) OWN(PRODUCT, DTYPE) OWN(MIN, DTYPE) OWN(MAX, DTYPE)
OWN_DTYPES(OWN_ALL)

static MPI_Op own_ops[TD_ACROSS_OPS][OWN_COUNT];

/* The place of a dtype in own_ops; -1: MPI's operations do. */
static int own_place(td_dtype dtype) {
#define PLACE(DTYPE, k)                                                                            \
    if (dtype == TD_##DTYPE)                                                                       \
        return k;
    OWN_DTYPES(PLACE)
#undef PLACE
    return -1;
}

static bool make_ops(char why[TD_WHY]) {
    int code;
#define MAKE(OP, DTYPE, k)                                                                         \
    if ((code = MPI_Op_create(reduce_##OP##_##DTYPE, 1, &own_ops[TD_ACROSS_##OP][k])))             \
        return fail(why, "MPI_Op_create", code);
#define MAKE_ALL(DTYPE, k)                                                                         \
    MAKE(SUM, DTYPE, k) MAKE(PRODUCT, DTYPE, k) MAKE(MIN, DTYPE, k) MAKE(MAX, DTYPE, k)
    OWN_DTYPES(MAKE_ALL)
#undef MAKE_ALL
#undef MAKE
    return true;
}

static MPI_Op op_of(td_across op, td_dtype dtype) {
    if (op == TD_ACROSS_MEAN)
        op = TD_ACROSS_SUM;
    bool truth = dtype == TD_BOOL;
    int own = own_place(dtype);
    switch (op) {
    case TD_ACROSS_SUM:
        return truth ? MPI_BOR : own < 0 ? MPI_SUM : own_ops[op][own];
    case TD_ACROSS_PRODUCT:
        return truth ? MPI_BAND : own < 0 ? MPI_PROD : own_ops[op][own];
    case TD_ACROSS_MIN:
        return truth ? MPI_BAND : own < 0 ? MPI_MIN : own_ops[op][own];
    case TD_ACROSS_MAX:
        return truth ? MPI_BOR : own < 0 ? MPI_MAX : own_ops[op][own];
    case TD_ACROSS_BAND:
        return MPI_BAND;
    case TD_ACROSS_BOR:
        return MPI_BOR;
    case TD_ACROSS_BXOR:
        return MPI_BXOR;
    case TD_ACROSS_MEAN:
    case TD_ACROSS_OPS:
        break;
    }
    return MPI_OP_NULL;
}

/* ---- entering and leaving ---- */

/* Bytes of a piece of an exchange; MPI's code. Waits for the group's other ranks. */
static int choose_piece(MPI_Comm comm, int ranks, int *bytes) {
    MPI_Comm here;
    int near = 0;
    int code = MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
    if (code)
        return code;
    MPI_Comm_size(here, &near);
    *bytes = near == ranks ? PIECE : MESSAGE * ranks;
    return MPI_Comm_free(&here);
}

/* Waits for the group's other ranks. */
static int init_group(group *g, MPI_Comm comm) {
    int n = 0, code = 0;
    *g = (group){.comm = comm, .exchanges = MPI_COMM_NULL};
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_size(comm, &n);
    if (n <= EXCHANGE_RANKS && !(code = choose_piece(comm, n, &g->piece)))
        code = MPI_Comm_dup(comm, &g->exchanges);
    return code;
}

static const char *version(void) {
    static char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int len = 0;
    MPI_Get_library_version(text, &len);
    text[strcspn(text, ",\n")] = '\0';
    for (char *c = text; *c; c++)
        if (*c == '\t')
            *c = ' ';
    return text;
}

static bool open_job(const td_transport_host *h, int *rank, int *size, char why[TD_WHY]) {
    int given = 0, code, there = 0;
    host = h;
    all = (group){.comm = MPI_COMM_WORLD, .exchanges = MPI_COMM_NULL};
    MPI_Initialized(&there);
    if (!there && (code = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &given)))
        return fail(why, "MPI_Init_thread", code);
    entered = !there;
    if ((code = init_group(&all, MPI_COMM_WORLD)))
        return fail(why, "MPI_Comm_dup", code);
    MPI_Comm_rank(MPI_COMM_WORLD, rank);
    MPI_Comm_size(MPI_COMM_WORLD, size);
    return make_ops(why);
}

static bool make_group(int n, const int *ranks, int tag, void **out, char why[TD_WHY]) {
    MPI_Group everybody, part;
    MPI_Comm comm;
    group *g = malloc(sizeof *g);
    if (!g)
        return no_memory(why);
    MPI_Comm_group(MPI_COMM_WORLD, &everybody);
    int code = MPI_Group_incl(everybody, n, ranks, &part);
    if (!code) {
        code = MPI_Comm_create_group(MPI_COMM_WORLD, part, tag, &comm);
        MPI_Group_free(&part);
    }
    MPI_Group_free(&everybody);
    if (!code)
        code = init_group(g, comm);
    if (code) {
        free(g);
        return fail(why, "MPI_Comm_create_group", code);
    }
    group *last = &all;
    while (last->next)
        last = last->next;
    *out = last->next = g;
    return true;
}

/* Freeing communicators is a collective: they stay until all ranks leave the job. */
static void end_group(void *of) {
    (void)of;
}

static void close_job(void) {
    int left = 0;
    MPI_Finalized(&left);
    for (group *g = &all, *next; g; g = next) {
        next = g->next;
        if (!left && g->exchanges != MPI_COMM_NULL)
            MPI_Comm_free(&g->exchanges);
        if (!left && g != &all)
            MPI_Comm_free(&g->comm);
        if (g != &all)
            free(g);
    }
    all.next = NULL;
    if (entered && !left)
        MPI_Finalize();
}

/* ---- reductions among few ranks: messages from each to each ----
 *
 * Of each piece every rank gets all ranks' elements of its share, reduces them and sends the result
 * to all. What is short goes whole to all, which takes one message's time in place of two. Both
 * ways reduce in the order of ranks with operands in the same places: the bits of a result depend
 * neither on the size of the message, nor on where in it an element lies, nor on time. */

/* What is reduced, and where. All ranks of `comm` begin their reductions in the same order. */
typedef struct exchange_of {
    MPI_Comm comm; /* on which nothing else sends these tags */
    int tag;       /* this one and the next are taken */
    MPI_Datatype type;
    size_t size; /* bytes of an element */
    MPI_Op op;
    const void *send; /* may be recv */
    void *recv;
    int64_t count;
    int piece; /* bytes */
} exchange_of;

typedef struct piece {
    int64_t at; /* first element */
    int n;      /* elements */
    bool reduced;
    int left; /* requests that have not completed */
    MPI_Request requests[2 * (EXCHANGE_RANKS - 1)];
    char *theirs; /* the other ranks' elements of this rank's share, in the order of ranks */
} piece;

struct exchange {
    exchange_of of;
    int rank, ranks;
    bool whole;                      /* every rank's share is all of it */
    int most;                        /* elements of a piece */
    int slots;                       /* of the window */
    int64_t opened, reduced, closed; /* pieces, from the first on */
    int64_t pieces;
    piece window[WINDOW];
    char *room;
};

static int share_begin(const exchange *x, const piece *p, int rank) {
    return x->whole ? 0 : (int)((int64_t)p->n * rank / x->ranks);
}

static int share_count(const exchange *x, const piece *p, int rank) {
    return x->whole ? p->n : share_begin(x, p, rank + 1) - share_begin(x, p, rank);
}

static size_t share_offset(const exchange *x, const piece *p, int rank) {
    return ((size_t)p->at + (size_t)share_begin(x, p, rank)) * x->of.size;
}

/* Where what another rank has for this rank's share lies. */
static char *theirs(const exchange *x, const piece *p, int peer) {
    size_t bytes = (size_t)share_count(x, p, x->rank) * x->of.size;
    return p->theirs + (size_t)(peer < x->rank ? peer : peer - 1) * bytes;
}

/* Every rank's elements of each share to the rank that reduces it. */
static int open_piece(exchange *x) {
    const exchange_of *of = &x->of;
    piece *p = &x->window[x->opened % x->slots];
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
static int reduce_share(exchange *x, piece *p) {
    const exchange_of *of = &x->of;
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
static int share_result(exchange *x, piece *p) {
    const exchange_of *of = &x->of;
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
static int advance(exchange *x, int64_t number) {
    piece *p = &x->window[number % x->slots];
    int code = 0, done = 0;
    if (p->left) {
        int indices[2 * (EXCHANGE_RANKS - 1)];
        MPI_Status statuses[2 * (EXCHANGE_RANKS - 1)];
        code = MPI_Testsome(2 * (x->ranks - 1), p->requests, &done, indices, statuses);
        for (int k = 0; code == MPI_ERR_IN_STATUS && k < done; k++)
            code = statuses[k].MPI_ERROR ? statuses[k].MPI_ERROR : code;
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

/* MPI's code; the new exchange, or NULL, in *out. */
static int start_pieces(const exchange_of *of, exchange **out) {
    exchange *x = calloc(1, sizeof *x);
    *out = NULL;
    if (!x)
        return MPI_ERR_NO_MEM;
    x->of = *of;
    MPI_Comm_rank(of->comm, &x->rank);
    MPI_Comm_size(of->comm, &x->ranks);
    x->whole = of->count * (int64_t)of->size <= SHORT;
    x->most = (int)((size_t)of->piece / of->size);
    x->pieces = (of->count + x->most - 1) / x->most;
    /* All shares but one, of which the last may be an element longer than others. */
    size_t bytes = x->whole ? (size_t)of->count * of->size * (size_t)(x->ranks - 1)
                            : (size_t)of->piece + of->size * (size_t)x->ranks;
    x->slots = UNDER_WAY / of->piece < WINDOW ? UNDER_WAY / of->piece : WINDOW;
    x->slots = x->pieces < x->slots ? (int)x->pieces : x->slots;
    if (x->slots && !(x->room = malloc(bytes * (size_t)x->slots))) {
        free(x);
        return MPI_ERR_NO_MEM;
    }
    for (int k = 0; k < x->slots; k++)
        x->window[k].theirs = x->room + bytes * (size_t)k;
    *out = x;
    int code = 0;
    while (!code && x->opened < x->slots)
        code = open_piece(x);
    return code;
}

/* MPI's code. *moved: something of it has arrived since the last call. *done: all has; then it may
 * be freed, and not before. */
static int test_pieces(exchange *x, bool *moved, bool *done) {
    int code = 0;
    *moved = false;
    for (int64_t number = x->closed; !code && number < x->opened; number++) {
        const piece *p = &x->window[number % x->slots];
        int before = p->left;
        bool reduced = p->reduced;
        code = advance(x, number);
        *moved |= p->left != before || p->reduced != reduced;
    }
    while (!code && x->opened < x->pieces && x->opened - x->closed < x->slots)
        code = open_piece(x);
    *done = x->closed == x->pieces;
    return code;
}

static void free_exchange(exchange *x) {
    if (x)
        free(x->room);
    free(x);
}

/* ---- transfers ---- */

static void free_token(token *k) {
    if (k) {
        free(k->requests);
        free(k->counts);
        free(k);
    }
}

/* Counts and places for each rank, as ints, behind those that are there; NULL: too many elements,
 * or no memory. */
static int *put_counts(int *into, const int64_t *counts, int n, int64_t even) {
    int64_t at = 0;
    for (int r = 0; r < n; r++) {
        int64_t count = counts ? counts[r] : even;
        if (count > INT_MAX || at > INT_MAX)
            return NULL;
        into[r] = (int)count;
        into[n + r] = (int)at;
        at += count;
    }
    return into;
}

static int64_t piece_of(const td_transfer *t) {
    return t->kind == TD_ALL_REDUCE ? PIECE / host->dtypes[t->dtype].size : MOST;
}

/* Calls that move one run of elements, in pieces. */
static int start_run(const td_transfer *t, MPI_Comm comm, token *k) {
    MPI_Datatype type = type_of(t->dtype);
    size_t size = host->dtypes[t->dtype].size;
    int code = 0;
    int64_t most = piece_of(t);
    for (int64_t at = 0; !code && (at < t->count || at == 0); at += most) {
        int n = (int)(t->count - at < most ? t->count - at : most);
        char *recv = t->recv ? (char *)t->recv + (size_t)at * size : NULL;
        const char *send = t->send ? (const char *)t->send + (size_t)at * size : NULL;
        MPI_Request *r = &k->requests[k->n];
        if (t->kind == TD_BROADCAST)
            code = MPI_Ibcast(recv, n, type, t->peer, comm, r);
        else if (t->kind == TD_ALL_REDUCE)
            code = MPI_Iallreduce(send == recv ? MPI_IN_PLACE : send, recv, n, type,
                                  op_of(t->op, t->dtype), comm, r);
        else if (t->kind == TD_SEND)
            code = MPI_Isend(send, n, type, t->peer, t->tag, comm, r);
        else
            code = MPI_Irecv(recv, n, type, t->peer, t->tag, comm, r);
        k->n += !code;
    }
    return code;
}

/* Calls that take a count for each rank. */
static int start_shares(const td_transfer *t, MPI_Comm comm, token *k, const int *from,
                        const int *to, int n) {
    MPI_Datatype type = type_of(t->dtype);
    int count = (int)t->count, code = 0;
    MPI_Request *r = &k->requests[0];
    switch (t->kind) {
    case TD_ALL_GATHER:
        code = MPI_Iallgatherv(t->send, count, type, t->recv, to, to + n, type, comm, r);
        break;
    case TD_GATHER:
        code = MPI_Igatherv(t->send, count, type, t->recv, to, to + n, type, t->peer, comm, r);
        break;
    case TD_SCATTER:
        code = MPI_Iscatterv(t->send, from, from + n, type, t->recv, count, type, t->peer, comm, r);
        break;
    case TD_REDUCE_SCATTER:
        code = MPI_Ireduce_scatter(t->send, t->recv, from, type, op_of(t->op, t->dtype), comm, r);
        break;
    case TD_ALL_TO_ALL:
        code = MPI_Ialltoallv(t->send, from, from + n, type, t->recv, to, to + n, type, comm, r);
        break;
    case TD_BARRIER:
    case TD_SHUTDOWN:
    case TD_BROADCAST:
    case TD_ALL_REDUCE:
    case TD_SEND:
    case TD_RECV:
    case TD_COLLECTIVES:
        code = MPI_Ibarrier(comm, r);
        break;
    }
    k->n += !code;
    return code;
}

/* Transfers of a group begin in the same order on all ranks: their tags are the same, too. */
static int start_exchange(group *g, const td_transfer *t, token *k) {
    enum { TAGS = 1 << 14 }; /* pairs of them; every MPI has 32767 tags at least */
    const exchange_of of = {.comm = g->exchanges,
                            .tag = (int)(g->begun++ % TAGS * 2),
                            .type = type_of(t->dtype),
                            .size = host->dtypes[t->dtype].size,
                            .op = op_of(t->op, t->dtype),
                            .send = t->send,
                            .recv = t->recv,
                            .count = t->count,
                            .piece = g->piece};
    return start_pieces(&of, &k->exchange);
}

static bool start(void *of, const td_transfer *t, void **out, char why[TD_WHY]) {
    group *g = group_of(of);
    MPI_Comm comm = g->comm;
    int n = 1, code;
    MPI_Comm_size(comm, &n);
    token *k = calloc(1, sizeof *k);
    *out = NULL;
    if (!k)
        return no_memory(why);
    if (t->kind == TD_ALL_REDUCE && g->exchanges != MPI_COMM_NULL) {
        code = start_exchange(g, t, k);
        *out = k;
        return !code || fail(why, "MPI", code);
    }
    bool run = t->kind == TD_BROADCAST || t->kind == TD_ALL_REDUCE || t->kind == TD_SEND ||
               t->kind == TD_RECV;
    k->room = run ? (int)(t->count / piece_of(t)) + 1 : 1;
    k->requests = malloc((size_t)k->room * sizeof *k->requests);
    k->counts = run ? NULL : malloc((size_t)(4 * n) * sizeof *k->counts);
    if (!k->requests || (!run && !k->counts)) {
        free_token(k);
        return no_memory(why);
    }
    if (run) {
        code = start_run(t, comm, k);
    } else {
        int *from = put_counts(k->counts, t->send_counts, n, t->count);
        int *to = put_counts(k->counts + 2 * n, t->recv_counts, n, t->count);
        if (!from || !to || t->count > INT_MAX) {
            free_token(k);
            snprintf(why, TD_WHY, "more than 2147483647 elements in one collective");
            return false;
        }
        code = start_shares(t, comm, k, from, to, n);
    }
    if (code) { /* what was begun of it can't be called back */
        return fail(why, "MPI", code);
    }
    *out = k;
    return true;
}

static td_progress test_exchange(token *k, char why[TD_WHY]) {
    bool moved, done;
    int code = test_pieces(k->exchange, &moved, &done);
    if (code) {
        fail(why, "MPI", code);
        return TD_BROKEN; /* its requests may still be used: the token is left */
    }
    if (!done)
        return moved ? TD_MOVING : TD_PENDING;
    free_exchange(k->exchange);
    free_token(k);
    return TD_ARRIVED;
}

static td_progress test(void *of, char why[TD_WHY]) {
    token *k = of;
    if (k->exchange)
        return test_exchange(k, why);
    for (; k->n; k->n--) {
        int done = 0;
        int code = MPI_Test(&k->requests[k->n - 1], &done, MPI_STATUS_IGNORE);
        if (code) {
            fail(why, "MPI", code);
            return TD_BROKEN; /* its other requests may still be used: the token is left */
        }
        if (!done)
            return TD_PENDING;
    }
    free_token(k);
    return TD_ARRIVED;
}

__attribute__((visibility("default"))) extern const td_transport td_late_transport;
const td_transport td_late_transport = {
    .name = "mpi",
    .version = version,
    .open = open_job,
    .group = make_group,
    .ungroup = end_group,
    .start = start,
    .test = test,
    .close = close_job,
};

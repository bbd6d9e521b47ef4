/* nccl.c: the transport of tensors on CUDA devices, over NCCL.
 *
 * A lane is a communicator with a stream of its own, on which its transfers follow one another: one
 * for each group and device for what all ranks do together, and one for each peer and direction, so
 * that what a rank sends waits for nothing but its receiver. Lanes come about with their first
 * transfer: one rank makes the id by which NCCL's ranks meet, and tells the others by the job's
 * other transport. No call waits: communicators are made with blocking = 0, and `test` asks how far
 * they are. Waiting is the device's business, by events from and to the stream of who uses the
 * tensors.
 */
#include "engine/core/memory.h"
#include "engine/distributed/nccl_calls.h"

#include <stdio.h>
#include <string.h>

typedef struct lane lane;

typedef struct group {
    struct group *next;
    int n, rank, *ranks; /* ranks of the job; NULL: all, in their order */
    int number;          /* the same on all ranks */
    lane *lanes;
} group;

/* A transfer; the token. */
typedef struct step {
    struct step *next; /* of its lane */
    lane *on;
    td_transfer t;
    bool launched, recorded; /* NCCL was told; it has put it into the stream, and `done` behind */
} step;

enum { EVERYBODY = -1 };

struct lane {
    lane *next;
    group *of;
    int peer; /* rank within the group; EVERYBODY */
    bool sends;
    const td_queues *queues;
    td_stream stream;
    enum { ASKED, JOINING, READY, LOST } state;
    td_nccl_id id;
    int nmessages;   /* that tell the id, under way */
    void **messages; /* the other transport's tokens */
    td_nccl_comm *comm;
    step *first, *last; /* not recorded yet, in the order in which they were handed over */
    char why[TD_WHY];   /* of LOST */
};

static const td_nccl_calls *nccl;
static const td_transport *messages; /* the job's other transport, and its group for ids */
static void *messages_group;
static group all;

static group *group_of(void *of) {
    return of ? of : &all;
}

static int job_rank(const group *g, int rank) {
    return g->ranks ? g->ranks[rank] : rank;
}

static bool no_memory(char why[TD_WHY]) {
    snprintf(why, TD_WHY, "out of memory");
    return false;
}

/* ---- entering and leaving ---- */

static const char *version(void) {
    static char text[32];
    int code = 0;
    if (nccl)
        (void)nccl->version(&code);
    snprintf(text, sizeof text, "NCCL %d.%d.%d", code / 10000, code / 100 % 100, code % 100);
    return text;
}

static bool open_job(const td_transport_host *host, int *rank, int *size, char why[TD_WHY]) {
    nccl = td_nccl_load(why);
    if (!nccl)
        return false;
    int *ranks = td_malloc((size_t)*size * sizeof *ranks);
    if (!ranks)
        return no_memory(why);
    for (int r = 0; r < *size; r++)
        ranks[r] = r;
    messages = host->messages;
    all = (group){.n = *size, .rank = *rank};
    bool ok = messages->group(*size, ranks, 0, &messages_group, why);
    td_free(ranks);
    return ok;
}

static bool make_group(int n, const int *ranks, int tag, void **out, char why[TD_WHY]) {
    group *g = td_calloc(1, sizeof *g);
    if (g)
        g->ranks = td_malloc((size_t)n * sizeof *ranks);
    if (!g || !g->ranks) {
        td_free(g);
        return no_memory(why);
    }
    memcpy(g->ranks, ranks, (size_t)n * sizeof *ranks);
    g->n = n;
    g->number = tag;
    while (g->ranks[g->rank] != all.rank)
        g->rank++;
    g->next = all.next;
    *out = all.next = g;
    return true;
}

/* They stay until the job is left. */
static void end_group(void *of) {
    (void)of;
}

/* Whatever the device still does for the lane ends. */
static void abort_lane(lane *l) {
    if (l->comm)
        (void)nccl->abort(l->comm);
    l->comm = NULL;
}

static void free_lanes(group *g) {
    for (lane *l = g->lanes, *next; l; l = next) {
        next = l->next;
        abort_lane(l);
        l->queues->stream_free(l->stream);
        td_free(l->messages);
        td_free(l);
    }
    g->lanes = NULL;
}

/* All transfers have arrived on all ranks: aborting loses nothing and waits for nobody. */
static void close_job(void) {
    for (group *g = &all, *next; g; g = next) {
        next = g->next;
        free_lanes(g);
        td_free(g->ranks);
        if (g != &all)
            td_free(g);
    }
    all = (group){0};
}

static void call_off(void *of) {
    for (lane *l = group_of(of)->lanes; l; l = l->next)
        if (l->state == LOST)
            abort_lane(l);
}

/* ---- dtypes and operations ---- */

/* As NCCL calls them. It has no int16, which can be moved as another type of two bytes. */
static td_nccl_type type_of(td_dtype dtype) {
    switch (dtype) {
    case TD_I8:
        return TD_NCCL_I8;
    case TD_I32:
        return TD_NCCL_I32;
    case TD_I64:
        return TD_NCCL_I64;
    case TD_I16:
    case TD_F16:
        return TD_NCCL_F16;
    case TD_BF16:
        return TD_NCCL_BF16;
    case TD_F32:
        return TD_NCCL_F32;
    case TD_F64:
        return TD_NCCL_F64;
    case TD_BOOL:
    case TD_U8:
    case TD_DTYPE_COUNT:
    case TD_DTYPE_NONE:
        break;
    }
    return TD_NCCL_U8;
}

/* False: NCCL has none. bool is bytes of 0 and 1: "any" is their maximum, "all" their minimum. */
static bool op_of(td_across op, td_dtype dtype, td_nccl_op *out) {
    bool truth = dtype == TD_BOOL;
    switch (op) {
    case TD_ACROSS_SUM:
        *out = truth ? TD_NCCL_MAX : TD_NCCL_SUM;
        return true;
    case TD_ACROSS_PRODUCT:
        *out = truth ? TD_NCCL_MIN : TD_NCCL_PRODUCT;
        return true;
    case TD_ACROSS_MEAN:
        *out = TD_NCCL_MEAN;
        return true;
    case TD_ACROSS_MIN:
        *out = TD_NCCL_MIN;
        return true;
    case TD_ACROSS_MAX:
        *out = TD_NCCL_MAX;
        return true;
    case TD_ACROSS_BAND:
        *out = TD_NCCL_MIN;
        return truth;
    case TD_ACROSS_BOR:
        *out = TD_NCCL_MAX;
        return truth;
    case TD_ACROSS_BXOR:
    case TD_ACROSS_OPS:
        break;
    }
    return false;
}

static bool can(const td_transfer *t, int rank, char why[TD_WHY]) {
    static const char hint[] = "x:cpu() goes over MPI";
    td_nccl_op op;
    bool reduces = t->kind == TD_ALL_REDUCE || t->kind == TD_REDUCE_SCATTER;
    bool pair = t->kind == TD_SEND || t->kind == TD_RECV;
    if (reduces && (t->dtype == TD_I16 || !op_of(t->op, t->dtype, &op))) {
        snprintf(why, TD_WHY, "nccl has no '%s' of %s: %s", td_across_names[t->op],
                 td_dtype_name(t->dtype), hint);
        return false;
    }
    if (pair && t->peer == rank) {
        snprintf(why, TD_WHY, "nccl: a rank has nothing to send to itself: %s", hint);
        return false;
    }
    if (pair && t->tag) {
        snprintf(why, TD_WHY,
                 "nccl has no tags, messages arrive in the order in which they are sent: %s", hint);
        return false;
    }
    return true;
}

/* ---- lanes ---- */

static void lose(lane *l, const char *call, int result) {
    const char *last = l->comm ? nccl->last_error(l->comm) : NULL;
    last = last ? last : "";
    snprintf(l->why, TD_WHY, "%s: %.80s%s%.*s", call, nccl->error_text(result), *last ? ": " : "",
             (int)strcspn(last, "\n"), last);
    l->state = LOST;
    l->first = l->last = NULL;
}

static void lose_by_device(lane *l) {
    snprintf(l->why, TD_WHY, "%.*s", TD_WHY - 1, td_error_message());
    l->state = LOST;
    l->first = l->last = NULL;
}

static bool makes_id(const lane *l) {
    return l->peer == EVERYBODY ? l->of->rank == 0 : l->sends;
}

/* A lane's ids on their way between two ranks, in the order in which lanes come about. */
static int message_tag(const lane *l) {
    return l->of->number % (1 << 14) * 2 + (l->peer == EVERYBODY);
}

static bool begin_message(lane *l, int peer, char why[TD_WHY]) {
    bool send = makes_id(l);
    td_transfer t = {.kind = send ? TD_SEND : TD_RECV,
                     .dtype = TD_U8,
                     .peer = job_rank(l->of, peer),
                     .tag = message_tag(l),
                     .send = send ? &l->id : NULL,
                     .recv = send ? NULL : &l->id,
                     .count = sizeof l->id};
    bool ok = messages->start(messages_group, &t, &l->messages[l->nmessages], why);
    l->nmessages += ok;
    return ok;
}

/* The id to or from the lane's other ranks. */
static bool ask_id(lane *l, char why[TD_WHY]) {
    group *g = l->of;
    if (makes_id(l)) {
        int result = nccl->unique_id(&l->id);
        if (result != TD_NCCL_SUCCESS) {
            lose(l, "ncclGetUniqueId", result);
            snprintf(why, TD_WHY, "%s", l->why);
            return false;
        }
    }
    if (l->peer != EVERYBODY)
        return begin_message(l, l->peer, why);
    if (g->rank != 0)
        return begin_message(l, 0, why);
    for (int r = 1; r < g->n; r++)
        if (!begin_message(l, r, why))
            return false;
    return true;
}

static lane *new_lane(group *g, const td_transfer *t, int peer, char why[TD_WHY]) {
    lane *l = td_calloc(1, sizeof *l);
    if (l)
        l->messages = td_calloc((size_t)g->n, sizeof *l->messages);
    if (!l || !l->messages) {
        td_free(l);
        no_memory(why);
        return NULL;
    }
    *l = (lane){.of = g,
                .peer = peer,
                .sends = t->kind == TD_SEND,
                .queues = t->queues,
                .stream = {.device = t->device},
                .messages = l->messages};
    if (t->queues->stream_new(t->device.index, true, &l->stream.id) != TD_OK) {
        snprintf(why, TD_WHY, "%.*s", TD_WHY - 1, td_error_message());
        td_free(l->messages);
        td_free(l);
        return NULL;
    }
    l->next = g->lanes;
    g->lanes = l;
    return ask_id(l, why) ? l : NULL;
}

/* NULL, and why. */
static lane *find_lane(group *g, const td_transfer *t, char why[TD_WHY]) {
    bool pair = t->kind == TD_SEND || t->kind == TD_RECV;
    int peer = pair ? t->peer : EVERYBODY;
    for (lane *l = g->lanes; l; l = l->next)
        if (l->peer == peer && l->stream.device.index == t->device.index &&
            (!pair || l->sends == (t->kind == TD_SEND)))
            return l;
    return new_lane(g, t, peer, why);
}

/* ---- transfers ---- */

/* What the calls of a transfer share. */
typedef struct launch {
    td_nccl_comm *comm;
    void *stream;
    td_nccl_type type;
    td_nccl_op op;
    size_t size; /* bytes of an element */
    int n, rank;
} launch;

static const void *send_at(const td_transfer *t, const launch *with, int64_t at) {
    return (const char *)t->send + (size_t)at * with->size;
}

static void *recv_at(const td_transfer *t, const launch *with, int64_t at) {
    return (char *)t->recv + (size_t)at * with->size;
}

static bool is_even(const int64_t *counts, int n) {
    for (int r = 1; r < n; r++)
        if (counts[r] != counts[0])
            return false;
    return true;
}

/* What is NCCL's result; of two the first that is an error. */
static int both(int a, int b) {
    return a != TD_NCCL_SUCCESS && a != TD_NCCL_IN_PROGRESS ? a : b;
}

/* Each rank's share from it to all, or of all to it. */
static int share_in_turn(const td_transfer *t, const launch *with) {
    bool gather = t->kind == TD_ALL_GATHER;
    const int64_t *counts = gather ? t->recv_counts : t->send_counts;
    int result = nccl->group_start();
    int64_t at = 0;
    for (int r = 0; r < with->n; at += counts[r++]) {
        size_t n = (size_t)counts[r];
        void *whole = gather ? recv_at(t, with, at) : NULL;
        if (n && gather)
            result = both(result, nccl->broadcast(r == with->rank ? t->send : whole, whole, n,
                                                  with->type, r, with->comm, with->stream));
        else if (n)
            result = both(result, nccl->reduce(send_at(t, with, at), t->recv, n, with->type,
                                               with->op, r, with->comm, with->stream));
    }
    return both(result, nccl->group_end());
}

/* Messages between ranks, all at once: to `counts` of them each its part (or all the same), and
 * from them. NULL: none. */
static int exchange(const td_transfer *t, const launch *with) {
    bool root = t->peer == with->rank, everybody = t->kind == TD_ALL_TO_ALL;
    bool gather = t->kind == TD_GATHER;
    int result = nccl->group_start();
    int64_t from = 0, to = 0;
    for (int r = 0; r < with->n; r++) {
        bool sends = everybody || (gather ? r == t->peer : root);
        bool receives = everybody || (gather ? root : r == t->peer);
        int64_t given = gather ? t->count : sends ? t->send_counts[r] : 0;
        int64_t taken = everybody || gather ? receives ? t->recv_counts[r] : 0 : t->count;
        if (sends && given)
            result = both(result, nccl->send(send_at(t, with, gather ? 0 : from), (size_t)given,
                                             with->type, r, with->comm, with->stream));
        if (receives && taken)
            result =
                both(result, nccl->recv(recv_at(t, with, everybody || gather ? to : 0),
                                        (size_t)taken, with->type, r, with->comm, with->stream));
        from += given;
        to += taken;
    }
    return both(result, nccl->group_end());
}

/* NCCL's result. Where all ranks have nothing it is not asked. */
static int call(const td_transfer *t, const launch *with) {
    const int64_t *counts = t->kind == TD_ALL_GATHER       ? t->recv_counts
                            : t->kind == TD_REDUCE_SCATTER ? t->send_counts
                                                           : NULL;
    size_t n = (size_t)t->count;
    if (counts && !is_even(counts, with->n))
        return share_in_turn(t, with);
    if (t->kind == TD_GATHER || t->kind == TD_SCATTER || t->kind == TD_ALL_TO_ALL)
        return exchange(t, with);
    if (n == 0)
        return TD_NCCL_SUCCESS;
    switch (t->kind) {
    case TD_BROADCAST:
        return nccl->broadcast(t->recv, t->recv, n, with->type, t->peer, with->comm, with->stream);
    case TD_ALL_REDUCE:
        return nccl->all_reduce(t->send, t->recv, n, with->type, with->op, with->comm,
                                with->stream);
    case TD_ALL_GATHER:
        return nccl->all_gather(t->send, t->recv, n, with->type, with->comm, with->stream);
    case TD_REDUCE_SCATTER:
        return nccl->reduce_scatter(t->send, t->recv, n, with->type, with->op, with->comm,
                                    with->stream);
    case TD_SEND: /* of the two ranks of a lane the sender is 0 */
        return nccl->send(t->send, n, with->type, 1, with->comm, with->stream);
    case TD_RECV:
        return nccl->recv(t->recv, n, with->type, 0, with->comm, with->stream);
    case TD_GATHER:
    case TD_SCATTER:
    case TD_ALL_TO_ALL:
    case TD_BARRIER:
    case TD_SHUTDOWN:
    case TD_COLLECTIVES:
        break;
    }
    return TD_NCCL_SUCCESS;
}

/* Behind what the transfer follows, into the lane's stream. */
static void launch_step(lane *l, step *s) {
    const td_transfer *t = &s->t;
    launch with = {.comm = l->comm,
                   .type = type_of(t->dtype),
                   .size = td_dtype_size(t->dtype),
                   .n = l->of->n,
                   .rank = l->of->rank};
    if (l->queues->event_wait(t->ready, l->stream) != TD_OK ||
        l->queues->stream_handle(l->stream, &with.stream) != TD_OK) {
        lose_by_device(l);
        return;
    }
    (void)op_of(t->op, t->dtype, &with.op);
    int result = call(t, &with);
    s->launched = true;
    if (result != TD_NCCL_SUCCESS && result != TD_NCCL_IN_PROGRESS)
        lose(l, td_collective_names[t->kind], result);
}

/* Has the communicator done what it was last told? An error loses the lane. */
static bool is_settled(lane *l, const char *doing) {
    int error = TD_NCCL_SUCCESS, result = nccl->async_error(l->comm, &error);
    if (result != TD_NCCL_SUCCESS)
        error = result;
    if (error != TD_NCCL_SUCCESS && error != TD_NCCL_IN_PROGRESS)
        lose(l, doing, error);
    return error == TD_NCCL_SUCCESS;
}

static void join(lane *l) {
    void *unused;
    td_nccl_config config = {
        .size = sizeof config, .magic = (unsigned)TD_NCCL_MAGIC, .version = TD_NCCL_CONFIG_VERSION};
    bool pair = l->peer != EVERYBODY;
    if (l->queues->stream_handle(l->stream, &unused) != TD_OK) {
        lose_by_device(l);
        return;
    }
    int result =
        nccl->init(&l->comm, pair ? 2 : l->of->n, l->id, pair ? !l->sends : l->of->rank, &config);
    l->state = JOINING;
    if (result != TD_NCCL_SUCCESS && result != TD_NCCL_IN_PROGRESS)
        lose(l, "ncclCommInitRankConfig", result);
}

/* Is the id where it belongs? */
static bool have_met(lane *l) {
    for (; l->nmessages; l->nmessages--) {
        td_progress progress = messages->test(l->messages[l->nmessages - 1], l->why);
        if (progress == TD_BROKEN) {
            l->state = LOST;
            l->first = l->last = NULL;
        }
        if (progress != TD_ARRIVED)
            return false;
    }
    return true;
}

/* As far as it goes without waiting; has it come on? */
static bool advance(lane *l) {
    bool moved = false;
    if (l->state == ASKED && have_met(l)) {
        join(l);
        moved = true;
    }
    if (l->state == JOINING && is_settled(l, "ncclCommInitRankConfig")) {
        l->state = READY;
        moved = true;
    }
    while (l->state == READY && l->first) {
        step *s = l->first;
        if (!s->launched)
            launch_step(l, s);
        if (l->state != READY || !is_settled(l, td_collective_names[s->t.kind]))
            break;
        if (l->queues->event_record(s->t.done, l->stream) != TD_OK) {
            lose_by_device(l);
            break;
        }
        s->recorded = moved = true;
        if (!(l->first = s->next))
            l->last = NULL;
    }
    return moved;
}

static bool start(void *of, const td_transfer *t, void **token, char why[TD_WHY]) {
    lane *l = find_lane(group_of(of), t, why);
    if (!l)
        return false;
    if (l->state == LOST) {
        snprintf(why, TD_WHY, "%s", l->why);
        return false;
    }
    step *s = td_calloc(1, sizeof *s);
    if (!s)
        return no_memory(why);
    s->on = l;
    s->t = *t;
    if (l->last)
        l->last->next = s;
    else
        l->first = s;
    *token = l->last = s;
    return true;
}

static td_progress test(void *token, char why[TD_WHY]) {
    step *s = token;
    lane *l = s->on;
    bool moved = l->state != LOST && advance(l), reached = false;
    if (s->recorded && l->state != LOST) {
        if (l->queues->event_query(s->t.done, &reached) != TD_OK)
            lose_by_device(l);
        else if (!reached)
            (void)is_settled(l, td_collective_names[s->t.kind]);
    }
    if (l->state == LOST && !reached) {
        snprintf(why, TD_WHY, "%s", l->why);
        td_free(s);
        return TD_BROKEN;
    }
    if (reached) {
        td_free(s);
        return TD_ARRIVED;
    }
    return s->recorded ? TD_QUEUED : moved ? TD_MOVING : TD_PENDING;
}

const td_transport td_transport_nccl = {
    .name = "nccl",
    .version = version,
    .open = open_job,
    .group = make_group,
    .ungroup = end_group,
    .start = start,
    .test = test,
    .close = close_job,
    .can = can,
    .call_off = call_off,
};

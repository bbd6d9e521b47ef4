/* hub.c: what is known of each rank, the collectives that are compared, and the verdict. */
#include "engine/distributed/hub.h"

#include "engine/core/memory.h"
#include "engine/core/signals.h"
#include "engine/distributed/channel.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { WINDOW = 2048, TICK_MS = 50, SAID_MOST = 8 };

static const double GRACE = 0.3;  /* seconds in which a better reason may still come */
static const double WHY = 2.0;    /* or may one, of a process that is gone, from who watched it */
static const double SILENT = 1.5; /* seconds after which silence is worth a word */

typedef struct rank_state {
    td_message said; /* last state or hello; `news` is not kept */
    bool there, gone, explained;
    uint32_t peer;
    double heard, left; /* times */
    char how[512];      /* it left, or its transport failed */
    double trouble;     /* time; 0: none */
} rank_state;

/* The first rank that came to a collective, for the others to be held against. */
typedef struct compared {
    td_flight_record record;
    int rank;
} compared;

typedef struct group_window {
    uint32_t group;
    compared *first; /* WINDOW of them, by sequence */
} group_window;

struct td_hub {
    const td_channel_calls *calls;
    void *socket;
    pthread_t thread;
    atomic_bool leaving;
    char secret[TD_SECRET + 1], host[TD_HOST];
    int size;
    rank_state *ranks;
    td_list groups;
    char verdict[TD_TEXT];
    char differ[512]; /* what two ranks do not agree on */
    double beat;      /* time of the last word to all */
    bool done;
    double found; /* time of the first reason to end the job; 0: none */
};

/* ---- the verdict ---- */

/* Does the process stand still (T), or is it dead (Z)? '?' where nobody here can tell. */
static char process_state(const td_hub *hub, const rank_state *r) {
    char path[64], line[512], *end;
    FILE *f = NULL;
    if (strcmp(r->said.host, hub->host) == 0) {
        snprintf(path, sizeof path, "/proc/%d/stat", (int)r->said.pid);
        f = fopen(path, "re");
    }
    char state = '?';
    if (f && fgets(line, sizeof line, f) && (end = strrchr(line, ')')) && end[1])
        state = end[2];
    if (f)
        fclose(f);
    return state;
}

static void say_rank(const td_hub *hub, int rank, char *text, size_t size) {
    const rank_state *r = &hub->ranks[rank];
    char record[200];
    double now = td_flight_clock();
    const td_flight_record *at = &r->said.now;
    td_flight_text(at, record, sizeof record);
    if (!r->there) {
        td_flight_add(text, size, "rank %d has not come", rank);
        return;
    }
    td_flight_add(text, size, "rank %d (%s, %d) ", rank, r->said.host, (int)r->said.pid);
    if (r->gone)
        td_flight_add(text, size, "left %.1f s ago: %s", now - r->left, r->how);
    else if (now - r->heard > SILENT && process_state(hub, r) == 'T')
        td_flight_add(text, size, "is stopped (by a signal, %.1f s ago)", now - r->heard);
    else if (now - r->heard > SILENT)
        td_flight_add(text, size, "has said nothing for %.1f s", now - r->heard);
    else if (r->trouble > 0)
        td_flight_add(text, size, "failed: %s", r->how);
    else if (r->said.waits && at->kind == TD_SHUTDOWN)
        td_flight_add(text, size, "is at the end of its script");
    else if (r->said.waits)
        td_flight_add(text, size, "waits in %s, for %.1f s", record, now - at->posted);
    else if (at->number)
        td_flight_add(text, size, "is in no collective since %s, %.1f s ago", record,
                      now - at->arrived);
    else
        td_flight_add(text, size, "has begun no collective");
}

/* Ranks that did something else than most come first; of many that do the same, a few are named. */
static void end_job(td_hub *hub, const char *why) {
    char *text = hub->verdict;
    int said = 0, first = 0;
    snprintf(text, TD_TEXT, "%s", why);
    for (int pass = 0; pass < 2; pass++) {
        for (int r = 0; r < hub->size; r++) {
            const rank_state *s = &hub->ranks[r];
            bool odd = s->gone || s->trouble > 0 || !s->there || !s->said.waits;
            if (odd != (pass == 0))
                continue;
            first = said == 0;
            if (said++ < SAID_MOST) {
                td_flight_add(text, TD_TEXT, "%s", first ? ": " : "; ");
                say_rank(hub, r, text, TD_TEXT);
            }
        }
    }
    if (said > SAID_MOST)
        td_flight_add(text, TD_TEXT, "; and %d more", said - SAID_MOST);
}

static void send_word(td_hub *hub, td_word word, const char *text) {
    static td_message m; /* of the hub's thread alone */
    m.word = word;
    m.news_count = 0;
    memcpy(m.secret, hub->secret, sizeof m.secret);
    snprintf(m.text, sizeof m.text, "%s", text);
    for (int r = 0; r < hub->size; r++)
        if (hub->ranks[r].there) /* what is for a process that has ended is dropped */
            hub->calls->send(hub->socket, hub->ranks[r].peer, &m, td_message_size(&m));
}

/* ---- what ranks say ---- */

static group_window *find_group(td_hub *hub, uint32_t group) {
    group_window *windows = hub->groups.items;
    for (int k = 0; k < hub->groups.n; k++)
        if (windows[k].group == group)
            return &windows[k];
    group_window *w = td_list_add(&hub->groups, sizeof *w);
    compared *first = w ? td_calloc(WINDOW, sizeof *first) : NULL;
    if (w)
        *w = (group_window){group, first};
    if (w && !first)
        hub->groups.n--;
    return first ? w : NULL;
}

static void compare(td_hub *hub, int rank, const td_flight_record *r) {
    group_window *w = r->sequence ? find_group(hub, r->group) : NULL;
    bool valid = r->kind < TD_COLLECTIVES && r->op < TD_ACROSS_OPS && r->dtype < TD_DTYPE_COUNT;
    if (!w || !valid || hub->differ[0])
        return;
    compared *c = &w->first[r->sequence % WINDOW];
    if (c->record.sequence != r->sequence) {
        *c = (compared){*r, rank};
        return;
    }
    if (td_flight_agree(&c->record, r))
        return;
    char *text = hub->differ;
    td_flight_add(text, sizeof hub->differ, "ranks differ in collective #%u: rank %d is ",
                  r->sequence, c->rank);
    td_flight_describe(&c->record, text, sizeof hub->differ);
    td_flight_add(text, sizeof hub->differ, "; rank %d is ", rank);
    td_flight_describe(r, text, sizeof hub->differ);
}

static void mark_gone(rank_state *r, const char *how, bool explained) {
    if (!r->gone)
        r->left = td_flight_clock();
    if (!r->gone || (explained && !r->explained))
        snprintf(r->how, sizeof r->how, "%.500s", how);
    r->gone = true;
    r->explained |= explained;
}

static bool make_ranks(td_hub *hub, int size) {
    if (hub->ranks)
        return size == hub->size;
    hub->ranks = size > 0 && size < 1 << 20 ? td_calloc((size_t)size, sizeof *hub->ranks) : NULL;
    hub->size = hub->ranks ? size : 0;
    return hub->ranks != NULL;
}

static void hear(td_hub *hub, uint32_t peer, td_message *m, size_t len) {
    if (len < offsetof(td_message, news) || strncmp(m->secret, hub->secret, sizeof m->secret) != 0)
        return;
    m->host[TD_HOST - 1] = m->text[sizeof m->text - 1] = '\0';
    if (m->word == TD_HELLO && !make_ranks(hub, m->size))
        return;
    if (m->rank < 0 || m->rank >= hub->size || m->news_count < 0 || m->news_count > TD_NEWS ||
        len < td_message_size(m))
        return;
    rank_state *r = &hub->ranks[m->rank];
    if (m->word == TD_GONE) {
        mark_gone(r, m->text, true);
        return;
    }
    r->there = true;
    r->peer = peer;
    r->heard = td_flight_clock();
    memcpy(&r->said, m, offsetof(td_message, news));
    if (m->word == TD_TROUBLE) {
        r->trouble = r->heard;
        snprintf(r->how, sizeof r->how, "%.500s", m->text);
    }
    if (m->word == TD_HELLO)
        hub->beat = 0; /* it waits for an answer */
    for (int k = 0; k < m->news_count; k++)
        compare(hub, m->rank, &m->news[k]);
}

static void lose(td_hub *hub, uint32_t peer) {
    for (int r = 0; r < hub->size; r++)
        if (hub->ranks[r].there && hub->ranks[r].peer == peer)
            mark_gone(&hub->ranks[r], "its process is gone", false);
}

/* ---- the decision ---- */

/* A reason to end the job, which is text for `why`. */
static bool find_reason(td_hub *hub, char *why, size_t size) {
    double now = td_flight_clock();
    bool any_gone = false;
    why[0] = '\0';
    for (int r = 0; r < hub->size; r++) {
        const rank_state *s = &hub->ranks[r];
        if (s->gone && !s->said.over && (s->explained || now - s->left > WHY)) {
            snprintf(why, size, "rank %d is gone", r);
            return true;
        }
        any_gone |= s->gone && !s->said.over;
    }
    if (any_gone)
        return false; /* why comes in a moment */
    if (hub->differ[0]) {
        snprintf(why, size, "%s", hub->differ);
        return true;
    }
    for (int r = 0; r < hub->size; r++) {
        const rank_state *s = &hub->ranks[r];
        if (s->trouble > 0 && now - s->trouble > GRACE) {
            snprintf(why, size, "the transport of rank %d failed", r);
            return true;
        }
        if (s->there && s->said.waits && now - s->said.now.posted > s->said.timeout) {
            snprintf(why, size, "a collective has waited for %.1f s, the timeout", s->said.timeout);
            return true;
        }
    }
    return false;
}

/* Has every rank that still talks said what it does since the reason was found? */
static bool is_told(const td_hub *hub, double now) {
    for (int r = 0; r < hub->size && now - hub->found < GRACE; r++) {
        const rank_state *s = &hub->ranks[r];
        if (s->there && !s->gone && s->heard < hub->found && now - s->heard < SILENT)
            return false;
    }
    return true;
}

static bool is_over(const td_hub *hub) {
    if (hub->found > 0)
        return false;
    for (int r = 0; r < hub->size; r++)
        if (!hub->ranks[r].said.over)
            return false;
    return hub->size > 0;
}

static void decide(td_hub *hub) {
    double now = td_flight_clock();
    char why[600];
    if (!hub->verdict[0] && find_reason(hub, why, sizeof why)) {
        hub->found = hub->found > 0 ? hub->found : now;
        if (is_told(hub, now)) {
            end_job(hub, why);
            hub->beat = 0;
        }
    }
    if (now - hub->beat > 0.2 || (!hub->done && is_over(hub))) {
        hub->done = is_over(hub);
        hub->beat = now;
        send_word(hub, hub->verdict[0] ? TD_VERDICT : hub->done ? TD_DONE : TD_BEAT, hub->verdict);
    }
}

static void *work(void *of) {
    td_hub *hub = of;
    static td_message m; /* large; there is one hub in a process */
    while (!atomic_load(&hub->leaving)) {
        uint32_t peer;
        long len = hub->calls->receive(hub->socket, TICK_MS, &peer, &m, sizeof m);
        if (len > 0)
            hear(hub, peer, &m, (size_t)len);
        else if (len < 0)
            lose(hub, peer);
        decide(hub);
    }
    return NULL;
}

/* ---- opening and closing ---- */

static void make_secret(char secret[TD_SECRET + 1]) {
    unsigned char bytes[TD_SECRET / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        memset(bytes, 0, sizeof bytes);
    for (size_t k = 0; k < sizeof bytes; k++)
        snprintf(secret + 2 * k, 3, "%02x", bytes[k]);
}

td_status td_hub_open(bool local, char *address, td_hub **out) {
    td_status status = TD_OK;
    td_address a = {.port = 0};
    char why[TD_WHY];
    sigset_t before;
    td_hub *hub = td_calloc(1, sizeof *hub);
    *out = NULL;
    if (!hub)
        return td_fail(TD_ENOMEM, "out of memory");
    TD_TRY(td_channel_load(&hub->calls));
    hub->socket = hub->calls->listen(local, &a.port, why);
    if (!hub->socket)
        TD_TRY(td_fail(TD_EIO, "%s", why));
    gethostname(hub->host, sizeof hub->host - 1);
    make_secret(hub->secret);
    memcpy(a.host, hub->host, sizeof a.host);
    memcpy(a.secret, hub->secret, sizeof a.secret);
    td_address_write(&a, address);
    td_signals_hold(&before);
    int code = pthread_create(&hub->thread, NULL, work, hub);
    td_signals_release(&before);
    if (code)
        TD_TRY(td_fail(TD_ENOMEM, "no thread to be had"));
    *out = hub;
    return TD_OK;
done:
    if (hub->socket)
        hub->calls->close(hub->socket);
    td_free(hub);
    return status;
}

void td_hub_close(td_hub *hub) {
    if (!hub)
        return;
    atomic_store(&hub->leaving, true);
    pthread_join(hub->thread, NULL);
    hub->calls->close(hub->socket);
    group_window *windows = hub->groups.items;
    for (int k = 0; k < hub->groups.n; k++)
        td_free(windows[k].first);
    td_list_clear(&hub->groups);
    td_free(hub->ranks);
    td_free(hub);
}

td_status td_hub_tell_gone(const char *address, int rank, const char *how) {
    td_status status = TD_OK;
    const td_channel_calls *calls;
    td_address a;
    td_message m = {.word = TD_GONE, .rank = rank};
    char place[TD_ADDRESS], why[TD_WHY];
    if (!td_address_read(address, &a))
        return td_fail(TD_EVALUE, "no address of a control channel");
    TD_TRY(td_channel_load(&calls));
    td_address_reach(&a, place);
    void *socket = calls->connect(place, why);
    if (!socket)
        return td_fail(TD_EIO, "%s", why);
    memcpy(m.secret, a.secret, sizeof m.secret);
    snprintf(m.text, sizeof m.text, "%s", how);
    calls->send(socket, 0, &m, td_message_size(&m));
    calls->close(socket);
done:
    return status;
}

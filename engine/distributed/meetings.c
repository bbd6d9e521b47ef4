/* meetings.c: parts that wait for others, and what is made of them once all are there. */
#include "engine/distributed/meetings.h"

#include "engine/distributed/elements.h"

#include <string.h>

enum { GROUPS_SAID = 8 };

typedef struct group {
    uint32_t number;
    int n, maker; /* the rank that said first who is in it */
    int *members;
} group;

/* A collective to which some ranks have come: parts[k] of the group's rank k; token 0: not yet. */
typedef struct meeting {
    uint32_t group, sequence;
    int first, came;
    td_part *parts;
} meeting;

/* ---- blobs and parts ---- */

td_blob *td_blob_new(size_t n) {
    td_blob *blob = td_malloc(sizeof *blob + n);
    if (blob) {
        blob->refs = 1;
        blob->n = n;
    }
    return blob;
}

void td_blob_release(td_blob *blob) {
    if (blob && --blob->refs == 0)
        td_free(blob);
}

void td_part_clear(td_part *part) {
    td_free(part->counts);
    td_blob_release(part->body);
    *part = (td_part){0};
}

static td_status fail_memory(void) {
    return td_fail(TD_ENOMEM, "out of memory");
}

/* ---- groups ---- */

static group *find_group(const td_meetings *m, uint32_t number) {
    group *groups = m->groups.items;
    for (int k = 0; k < m->groups.n; k++)
        if (groups[k].number == number)
            return &groups[k];
    return NULL;
}

static group *add_group(td_meetings *m, uint32_t number, int n, int maker) {
    int *members = td_malloc(((size_t)n + 1) * sizeof *members);
    group *g = members ? td_list_add(&m->groups, sizeof *g) : NULL;
    if (g)
        *g = (group){number, n, maker, members};
    else
        td_free(members);
    return g;
}

td_status td_meetings_init(td_meetings *m, int size, td_deliver deliver, void *ctx) {
    *m = (td_meetings){.deliver = deliver, .ctx = ctx};
    group *all = add_group(m, 0, size, 0);
    for (int r = 0; all && r < size; r++)
        all->members[r] = r;
    return all ? TD_OK : fail_memory();
}

void td_meetings_clear(td_meetings *m) {
    group *groups = m->groups.items;
    meeting *open = m->open.items;
    td_part *pairs = m->pairs.items;
    for (int k = 0; k < m->groups.n; k++)
        td_free(groups[k].members);
    for (int k = 0; k < m->open.n; k++) {
        group *g = find_group(m, open[k].group);
        for (int r = 0; g && r < g->n; r++)
            td_part_clear(&open[k].parts[r]);
        td_free(open[k].parts);
    }
    for (int k = 0; k < m->pairs.n; k++)
        td_part_clear(&pairs[k]);
    td_list_clear(&m->groups);
    td_list_clear(&m->open);
    td_list_clear(&m->pairs);
}

static void put_members(const group *g, char *text, size_t size) {
    for (int k = 0; k < g->n && k < 16; k++)
        td_flight_add(text, size, "%s%d", k ? ", " : "", g->members[k]);
    if (g->n > 16)
        td_flight_add(text, size, ", ...");
}

void td_meetings_describe(const td_meetings *m, char *text, size_t size) {
    const group *groups = m->groups.items;
    for (int k = 1; k < m->groups.n && k <= GROUPS_SAID; k++) {
        td_flight_add(text, size, "\n  group %u is ranks ", groups[k].number);
        put_members(&groups[k], text, size);
    }
}

td_status td_meetings_group(td_meetings *m, int rank, uint32_t number, int n,
                            const int64_t *members) {
    group *g = find_group(m, number);
    bool same = g && g->n == n;
    for (int k = 0; same && k < n; k++)
        same = g->members[k] == members[k];
    if (same)
        return TD_OK;
    group *other = g;
    if (!g && !(g = add_group(m, number, n, rank)))
        return fail_memory();
    if (!other) {
        for (int k = 0; k < n; k++)
            g->members[k] = (int)members[k];
    } else if (!m->differ[0]) {
        td_flight_add(m->differ, sizeof m->differ,
                      "ranks differ in new_group #%u: rank %d made it of ranks ", number,
                      other->maker);
        put_members(other, m->differ, sizeof m->differ);
        td_flight_add(m->differ, sizeof m->differ, ", rank %d of ranks ", rank);
        for (int k = 0; k < n && k < 16; k++)
            td_flight_add(m->differ, sizeof m->differ, "%s%d", k ? ", " : "", (int)members[k]);
    }
    return TD_OK;
}

/* ---- what becomes of a collective ---- */

static const int64_t *gives(const td_part *p) {
    return p->counts;
}

static const int64_t *takes(const td_part *p, int n) {
    return p->counts ? p->counts + n : NULL;
}

static void differ_in_count(td_meetings *m, const td_part *from, int64_t given, const td_part *to,
                            int64_t taken) {
    char *text = m->differ;
    size_t size = sizeof m->differ;
    td_flight_add(text, size, "ranks differ in what is sent: rank %d gives rank %d %lld elements ",
                  from->rank, to->rank, (long long)given);
    td_flight_describe(&from->word.record, text, size);
    td_flight_add(text, size, "; rank %d takes %lld ", to->rank, (long long)taken);
    td_flight_describe(&to->word.record, text, size);
}

/* Does each rank take what the others give it? */
static bool check_counts(td_meetings *m, const group *g, const td_part *parts) {
    const td_flight_record *r = &parts[0].word.record;
    int n = g->n, root = r->peer;
    if (r->kind == TD_BARRIER || r->kind == TD_SHUTDOWN || r->kind == TD_BROADCAST ||
        r->kind == TD_ALL_REDUCE)
        return true;
    for (int from = 0; from < n; from++)
        for (int to = 0; to < n; to++) {
            const td_part *a = &parts[from], *b = &parts[to];
            int64_t given = 0, taken = 0;
            if (r->kind == TD_ALL_GATHER || (r->kind == TD_GATHER && to == root)) {
                given = a->word.count;
                taken = takes(b, n) ? takes(b, n)[from] : given;
            } else if (r->kind == TD_SCATTER && from == root) {
                given = gives(a) ? gives(a)[to] : b->word.count;
                taken = b->word.count;
            } else if (r->kind == TD_ALL_TO_ALL && gives(a) && takes(b, n)) {
                given = gives(a)[to];
                taken = takes(b, n)[from];
            } else if (r->kind == TD_REDUCE_SCATTER && gives(a)) {
                given = gives(a)[to];
                taken = b->word.count;
            }
            if (given != taken) {
                differ_in_count(m, a, given, b, taken);
                return false;
            }
        }
    return true;
}

/* The parts' elements, reduced in the order of ranks, in the first one's blob. */
static td_blob *fold(td_part *parts, int n) {
    const td_flight_record *r = &parts[0].word.record;
    td_across op = r->op == TD_ACROSS_MEAN ? TD_ACROSS_SUM : (td_across)r->op;
    size_t size = td_dtype_size((td_dtype)r->dtype);
    td_blob *sum = parts[0].body;
    for (int k = 1; sum && k < n; k++)
        if (parts[k].body && parts[k].body->n >= sum->n)
            td_elements_reduce(op, (td_dtype)r->dtype, sum->bytes, parts[k].body->bytes,
                               (int64_t)(sum->n / size));
    return sum;
}

/* What a rank takes of the others: bytes of each part from a place on, one behind the other. */
static td_blob *gather(const td_part *parts, int n, const size_t *at, const size_t *bytes) {
    size_t total = 0;
    for (int k = 0; k < n; k++)
        total += bytes[k];
    td_blob *all = td_blob_new(total);
    char *to = all ? all->bytes : NULL;
    for (int k = 0; all && k < n; k++) {
        if (bytes[k] && at[k] + bytes[k] <= parts[k].body->n)
            memcpy(to, parts[k].body->bytes + at[k], bytes[k]);
        to += bytes[k];
    }
    return all;
}

/* Deliver to the group's rank k. */
static td_status give(td_meetings *m, const td_part *part, td_blob *body, size_t at, size_t n) {
    bool takes_it = part->word.takes && body;
    if (takes_it && at + n > body->n)
        return td_fail(TD_EINTERNAL, "rank %d takes more than there is", part->rank);
    return m->deliver(m->ctx, part, takes_it ? body : NULL, at, takes_it ? n : 0);
}

static td_status give_gathered(td_meetings *m, td_part *parts, int n, int to, td_blob **shared) {
    td_status status = TD_OK;
    const td_flight_record *r = &parts[0].word.record;
    size_t size = td_dtype_size((td_dtype)r->dtype);
    size_t *at = td_calloc(2 * (size_t)n, sizeof *at), *bytes = at ? at + n : NULL;
    td_blob *body = *shared;
    if (!at)
        return fail_memory();
    for (int from = 0; !body && from < n; from++) {
        const int64_t *counts = gives(&parts[from]);
        bytes[from] = parts[from].body ? parts[from].body->n : 0;
        if (r->kind != TD_ALL_TO_ALL || !counts)
            continue;
        for (int k = 0; k < to; k++)
            at[from] += (size_t)counts[k] * size;
        bytes[from] = parts[from].body ? (size_t)counts[to] * size : 0;
    }
    if (!body)
        body = gather(parts, n, at, bytes);
    if (!body)
        TD_TRY(fail_memory());
    TD_TRY(give(m, &parts[to], body, 0, body->n));
done:
    if (r->kind == TD_ALL_TO_ALL)
        td_blob_release(body);
    else
        *shared = body;
    td_free(at);
    return status;
}

/* Each rank's share of what the root has, or of the sum. */
static td_status give_shares(td_meetings *m, const td_part *parts, int n, const int64_t *counts,
                             td_blob *body) {
    size_t size = td_dtype_size((td_dtype)parts[0].word.record.dtype), at = 0;
    for (int k = 0; k < n; k++) {
        size_t bytes = (size_t)(counts ? counts[k] : parts[k].word.count) * size;
        td_status status = give(m, &parts[k], body, at, bytes);
        if (status)
            return status;
        at += bytes;
    }
    return TD_OK;
}

static td_status carry_out(td_meetings *m, const group *g, td_part *parts) {
    td_status status = TD_OK;
    const td_flight_record *r = &parts[0].word.record;
    td_part *root = &parts[r->peer];
    td_blob *body = NULL, *shared = NULL;
    bool shapes = false;
    for (int k = 0; k < g->n; k++)
        shapes |= parts[k].word.shapes;
    bool folds = r->kind == TD_ALL_REDUCE || r->kind == TD_REDUCE_SCATTER;
    if (!shapes)
        body = folds ? fold(parts, g->n) : root->body;
    if (r->kind == TD_SCATTER || r->kind == TD_REDUCE_SCATTER)
        return give_shares(m, parts, g->n, gives(r->kind == TD_SCATTER ? root : &parts[0]), body);
    bool gathers = r->kind == TD_ALL_GATHER || r->kind == TD_GATHER || r->kind == TD_ALL_TO_ALL;
    for (int k = 0; k < g->n; k++) {
        td_part *p = &parts[k];
        bool takes_part = r->kind != TD_GATHER || p == root;
        if (gathers && takes_part && !shapes)
            TD_TRY(give_gathered(m, parts, g->n, k, &shared));
        else if (gathers || (r->kind == TD_BROADCAST && p == root))
            TD_TRY(give(m, p, NULL, 0, 0));
        else
            TD_TRY(give(m, p, body, 0, body ? body->n : 0));
    }
done:
    td_blob_release(shared);
    return status;
}

/* ---- coming together ---- */

static void differ_in_kind(td_meetings *m, const td_part *a, const td_part *b) {
    char *text = m->differ;
    const td_flight_record *r = &a->word.record;
    td_flight_add(text, sizeof m->differ, "ranks differ in collective #%u", r->sequence);
    if (r->group)
        td_flight_add(text, sizeof m->differ, " of group %u", r->group);
    td_flight_add(text, sizeof m->differ, ": rank %d is ", a->rank);
    td_flight_describe(r, text, sizeof m->differ);
    td_flight_add(text, sizeof m->differ, "; rank %d is ", b->rank);
    td_flight_describe(&b->word.record, text, sizeof m->differ);
}

static meeting *find_meeting(td_meetings *m, const group *g, const td_flight_record *r) {
    meeting *open = m->open.items;
    for (int k = 0; k < m->open.n; k++)
        if (open[k].group == r->group && open[k].sequence == r->sequence)
            return &open[k];
    td_part *parts = td_calloc((size_t)g->n, sizeof *parts);
    meeting *found = parts ? td_list_add(&m->open, sizeof *found) : NULL;
    if (found)
        *found = (meeting){r->group, r->sequence, -1, 0, parts};
    else
        td_free(parts);
    return found;
}

static td_status come(td_meetings *m, td_part *part) {
    td_status status = TD_OK;
    const group *g = find_group(m, part->word.record.group);
    int k = 0;
    while (g && k < g->n && g->members[k] != part->rank)
        k++;
    if (!g || k == g->n)
        return td_fail(TD_EINTERNAL, "rank %d is not in group %u", part->rank,
                       part->word.record.group);
    if (part->word.record.peer < 0 || part->word.record.peer >= g->n)
        return td_fail(TD_EINTERNAL, "rank %d means a rank that is not there", part->rank);
    meeting *at = find_meeting(m, g, &part->word.record);
    if (!at)
        return fail_memory();
    if (at->first < 0)
        at->first = k;
    else if (!td_flight_agree(&at->parts[at->first].word.record, &part->word.record))
        differ_in_kind(m, &at->parts[at->first], part);
    td_part_clear(&at->parts[k]);
    at->parts[k] = *part;
    *part = (td_part){0};
    if (++at->came < g->n || m->differ[0] || !check_counts(m, g, at->parts))
        return TD_OK;
    td_part *parts = at->parts;
    *at = ((meeting *)m->open.items)[--m->open.n];
    m->carried_out++;
    status = carry_out(m, g, parts);
    for (int r = 0; r < g->n; r++)
        td_part_clear(&parts[r]);
    td_free(parts);
    return status;
}

/* ---- from one rank to another ---- */

static int member(const td_meetings *m, const td_flight_record *r) {
    const group *g = find_group(m, r->group);
    return g && r->peer >= 0 && r->peer < g->n ? g->members[r->peer] : -1;
}

static bool meets(const td_meetings *m, const td_part *a, const td_part *b) {
    const td_flight_record *x = &a->word.record, *y = &b->word.record;
    return x->kind != y->kind && x->group == y->group && a->word.tag == b->word.tag &&
           member(m, x) == b->rank && member(m, y) == a->rank;
}

static td_status pair(td_meetings *m, td_part *part) {
    td_part *waiting = m->pairs.items;
    int k = 0;
    while (k < m->pairs.n && !meets(m, part, &waiting[k]))
        k++;
    if (k == m->pairs.n) {
        td_part *place = td_list_add(&m->pairs, sizeof *place);
        if (!place)
            return fail_memory();
        *place = *part;
        *part = (td_part){0};
        return TD_OK;
    }
    td_part *send = part->word.record.kind == TD_SEND ? part : &waiting[k];
    td_part *recv = send == part ? &waiting[k] : part;
    if (send->word.count != recv->word.count ||
        send->word.record.dtype != recv->word.record.dtype) {
        differ_in_count(m, send, send->word.count, recv, recv->word.count);
        return TD_OK;
    }
    td_status status = give(m, send, NULL, 0, 0);
    if (!status)
        status = give(m, recv, send->body, 0, send->body ? send->body->n : 0);
    m->carried_out++;
    td_part_clear(part);
    td_part_clear(&waiting[k]);
    memmove(&waiting[k], &waiting[k + 1], (size_t)(--m->pairs.n - k) * sizeof *waiting);
    return status;
}

td_status td_meetings_add(td_meetings *m, td_part *part) {
    const td_flight_record *r = &part->word.record;
    if (r->kind >= TD_COLLECTIVES || r->op >= TD_ACROSS_OPS || r->dtype >= TD_DTYPE_COUNT)
        return td_fail(TD_EINTERNAL, "a transfer of an unknown kind");
    if (m->differ[0]) /* ranks may not even have the same groups */
        return TD_OK;
    return r->kind == TD_SEND || r->kind == TD_RECV ? pair(m, part) : come(m, part);
}

const td_part *td_meetings_unanswered(const td_meetings *m) {
    return m->pairs.n ? m->pairs.items : NULL;
}

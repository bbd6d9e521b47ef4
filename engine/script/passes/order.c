/* order.c: nodes are put in an order in which less memory is held at one time.
 *
 * Of the nodes whose arguments are there, the one is taken next that leaves the fewest bytes held;
 * what acts or may fail stays in its order, and reads stay on their side of writes. The new order
 * is taken only where its peak is lower. Blocks within nodes are ordered on their own.
 */
#include "engine/script/passes/order.h"

#include "engine/script/passes/alias.h"
#include "engine/script/passes/fails.h"
#include "engine/script/passes/node_infer.h"
#include "engine/script/passes/passes.h"

enum { MOST_NODES = 400 }; /* of a block that is ordered */

/* A piece of memory that a node makes: a class of values that share it. */
typedef struct memory_piece {
    int64_t bytes;
    int maker;   /* the node */
    int readers; /* nodes that read it and are not done */
    bool stays;  /* behind the block, too */
} memory_piece;

/* A node of the block, and the pieces that it reads. */
typedef struct planned {
    td_ir_node *node;
    int *reads, nreads;
    int64_t makes; /* bytes */
    int pending;   /* nodes that must come before it and are not done */
    bool done;
} planned;

typedef struct plan {
    const td_alias_info *alias;
    td_ir_graph *memory; /* of what follows */
    planned *items;
    int n;
    memory_piece *pieces;
    int npieces;
    int *piece_of; /* class of values -> piece, or -1 */
    bool *before;  /* [n][n]: must a node stand before another? */
    bool known;    /* all sizes */
} plan;

static void clear(plan *p) {
    td_ir_graph_release(p->memory);
}

static int find_piece(const plan *p, const td_ir_value *value) {
    int class = td_alias_class(p->alias, value);
    return class < 0 ? -1 : p->piece_of[class];
}

/* Is memory made for the k-th result? Not for views, nor where it may be an argument itself. */
static bool is_made(const plan *p, const td_ir_node *node, int k) {
    const td_ir_value *value = node->outputs[k];
    return value->type->kind == TD_IR_TENSOR && node->kind != TD_IR_CONSTANT &&
           !td_alias_comes_in(p->alias, value) && find_piece(p, value) < 0 &&
           td_alias_class(p->alias, value) >= 0;
}

static bool add_pieces(plan *p) {
    int room = 0;
    for (int k = 0; k < p->n; k++)
        room += p->items[k].node->noutputs;
    p->pieces = td_ir_alloc(p->memory, sizeof *p->pieces * (size_t)(room + 1));
    if (!p->pieces)
        return false;
    for (int k = 0; k < p->n; k++)
        for (int j = 0; j < p->items[k].node->noutputs; j++) {
            const td_ir_value *value = p->items[k].node->outputs[j];
            if (!is_made(p, p->items[k].node, j))
                continue;
            bool whole = td_ir_type_is_whole(value->type);
            int64_t bytes = whole ? td_ir_type_bytes(value->type) : 0;
            p->known &= whole;
            p->piece_of[td_alias_class(p->alias, value)] = p->npieces;
            p->pieces[p->npieces++] = (memory_piece){.maker = k, .bytes = bytes};
            p->items[k].makes += bytes;
        }
    return true;
}

/* How many values a node and what is in its blocks read. */
static int count_reads(const td_ir_node *node) {
    int n = node->ninputs;
    for (int b = 0; b < node->nblocks; b++) {
        n += node->blocks[b]->noutputs;
        for (const td_ir_node *inner = node->blocks[b]->first; inner; inner = inner->next)
            n += count_reads(inner);
    }
    return n;
}

static void add_read(const plan *p, planned *item, const td_ir_value *value) {
    int piece = find_piece(p, value);
    for (int k = 0; k < item->nreads && piece >= 0; k++)
        if (item->reads[k] == piece)
            return;
    if (piece >= 0)
        item->reads[item->nreads++] = piece;
}

static void add_reads(const plan *p, planned *item, const td_ir_node *node) {
    for (int k = 0; k < node->ninputs; k++)
        add_read(p, item, node->inputs[k]);
    for (int b = 0; b < node->nblocks; b++) {
        const td_ir_block *block = node->blocks[b];
        for (const td_ir_node *inner = block->first; inner; inner = inner->next)
            add_reads(p, item, inner);
        for (int k = 0; k < block->noutputs; k++)
            add_read(p, item, block->outputs[k]);
    }
}

/* A node that makes a piece of a class that others made before it reads it as well. */
static bool list_reads(plan *p, const td_ir_block *block) {
    for (int k = 0; k < p->n; k++) {
        planned *item = &p->items[k];
        size_t room = (size_t)(count_reads(item->node) + item->node->noutputs);
        item->reads = td_ir_alloc(p->memory, sizeof *item->reads * (room + 1));
        if (!item->reads)
            return false;
        add_reads(p, item, item->node);
        for (int j = 0; j < item->node->noutputs; j++) {
            int piece = find_piece(p, item->node->outputs[j]);
            if (piece >= 0 && p->pieces[piece].maker != k)
                add_read(p, item, item->node->outputs[j]);
        }
    }
    for (int k = 0; k < block->noutputs; k++)
        if (find_piece(p, block->outputs[k]) >= 0)
            p->pieces[find_piece(p, block->outputs[k])].stays = true;
    return true;
}

static bool reads_value(const td_ir_node *node, const td_ir_value *value) {
    for (int k = 0; k < node->ninputs; k++)
        if (node->inputs[k] == value)
            return true;
    for (int b = 0; b < node->nblocks; b++) {
        for (const td_ir_node *inner = node->blocks[b]->first; inner; inner = inner->next)
            if (reads_value(inner, value))
                return true;
        for (int k = 0; k < node->blocks[b]->noutputs; k++)
            if (node->blocks[b]->outputs[k] == value)
                return true;
    }
    return false;
}

/* Does a node write what another reads or makes? */
static bool writes_of(const td_alias_info *a, const td_ir_node *writer, const td_ir_node *other) {
    if (!td_alias_node_writes(writer))
        return false;
    if (other->nblocks)
        return true;
    for (int k = 0; k < other->ninputs; k++)
        if (td_alias_writes(a, writer, other->inputs[k]))
            return true;
    for (int k = 0; k < other->noutputs; k++)
        if (td_alias_writes(a, writer, other->outputs[k]))
            return true;
    return false;
}

static void add_constraints(plan *p, bool *fixed) {
    for (int k = 0; k < p->n; k++)
        fixed[k] = td_node_acts(p->items[k].node) || td_node_may_fail(p->items[k].node);
    for (int j = 0; j < p->n; j++)
        for (int i = 0; i < j; i++) {
            const td_ir_node *first = p->items[i].node, *second = p->items[j].node;
            bool needs = fixed[i] && fixed[j];
            for (int k = 0; k < first->noutputs && !needs; k++)
                needs = reads_value(second, first->outputs[k]);
            needs =
                needs || writes_of(p->alias, first, second) || writes_of(p->alias, second, first);
            p->before[i * p->n + j] = needs;
            p->items[j].pending += needs;
        }
}

static bool fill_plan(plan *p, const td_ir_block *block) {
    int n = td_alias_classes(p->alias), k = 0;
    for (const td_ir_node *node = block->first; node; node = node->next)
        p->n++;
    p->known = true;
    p->memory = td_ir_graph_new();
    if (!p->memory)
        return false;
    p->items = td_ir_alloc(p->memory, sizeof *p->items * (size_t)(p->n + 1));
    p->piece_of = td_ir_alloc(p->memory, sizeof *p->piece_of * (size_t)(n + 1));
    if (!p->items || !p->piece_of)
        return false;
    for (td_ir_node *node = block->first; node; node = node->next)
        p->items[k++].node = node;
    for (k = 0; k < n; k++)
        p->piece_of[k] = -1;
    return add_pieces(p) && list_reads(p, block);
}

static td_status make_plan(plan *p, const td_ir_block *block) {
    return fill_plan(p, block) ? TD_OK : td_fail(TD_ENOMEM, "out of memory for a pass");
}

/* ---- peaks ---- */

/* What is not held any more when a node is done. */
static int64_t freed_by(const plan *p, int k) {
    const planned *item = &p->items[k];
    int64_t bytes = 0;
    for (int j = 0; j < item->nreads; j++) {
        const memory_piece *read = &p->pieces[item->reads[j]];
        bytes += read->readers == 1 && !read->stays ? read->bytes : 0;
    }
    for (int j = 0; item->makes && j < item->node->noutputs; j++) {
        int made = find_piece(p, item->node->outputs[j]);
        if (made >= 0 && p->pieces[made].maker == k && !p->pieces[made].readers &&
            !p->pieces[made].stays)
            bytes += p->pieces[made].bytes;
    }
    return bytes;
}

static void finish_node(plan *p, int k) {
    for (int j = 0; j < p->items[k].nreads; j++)
        p->pieces[p->items[k].reads[j]].readers--;
}

static void start_again(plan *p) {
    for (int j = 0; j < p->npieces; j++)
        p->pieces[j].readers = 0;
    for (int k = 0; k < p->n; k++)
        for (int j = 0; j < p->items[k].nreads; j++)
            p->pieces[p->items[k].reads[j]].readers++;
}

static int64_t peak_of(plan *p, const int *order) {
    int64_t held = 0, peak = 0;
    start_again(p);
    for (int k = 0; k < p->n; k++) {
        int node = order ? order[k] : k;
        held += p->items[node].makes;
        peak = held > peak ? held : peak;
        held -= freed_by(p, node);
        finish_node(p, node);
    }
    return peak;
}

/* ---- another order ---- */

/* The next node: it leaves the fewest bytes more; of several the first as it was. */
static int choose(const plan *p) {
    int best = -1;
    int64_t least = 0;
    for (int k = 0; k < p->n; k++) {
        if (p->items[k].done || p->items[k].pending)
            continue;
        int64_t more = p->items[k].makes - freed_by(p, k);
        if (best < 0 || more < least) {
            best = k;
            least = more;
        }
    }
    return best;
}

static void choose_order(plan *p, int *order) {
    start_again(p);
    for (int k = 0; k < p->n; k++) {
        int next = choose(p);
        order[k] = next;
        p->items[next].done = true;
        finish_node(p, next);
        for (int j = next + 1; j < p->n; j++)
            p->items[j].pending -= p->before[next * p->n + j];
    }
}

static void move_nodes(const plan *p, const int *order) {
    td_ir_node *last = p->items[order[p->n - 1]].node;
    while (last->next)
        td_ir_move_before(last->next, last);
    for (int k = 0; k + 1 < p->n; k++)
        td_ir_move_before(p->items[order[k]].node, last);
}

static td_status reorder(plan *p, td_pass_note *note) {
    size_t n = (size_t)p->n;
    int *order = td_ir_alloc(p->memory, sizeof *order * n);
    bool *fixed = td_ir_alloc(p->memory, sizeof *fixed * n);
    p->before = td_ir_alloc(p->memory, sizeof *p->before * n * n);
    if (!order || !fixed || !p->before)
        return td_fail(TD_ENOMEM, "out of memory for a pass");
    add_constraints(p, fixed);
    int64_t before = peak_of(p, NULL);
    choose_order(p, order);
    int64_t after = peak_of(p, order);
    if (after < before) {
        td_pass_say(note, NULL, "a peak of %lld bytes becomes one of %lld", (long long)before,
                    (long long)after);
        move_nodes(p, order);
    }
    return TD_OK;
}

static td_status order_block(const td_alias_info *a, td_ir_block *block, td_pass_note *note) {
    plan p = {.alias = a};
    td_status status = TD_OK;
    int n = 0;
    for (td_ir_node *node = block->first; node && status == TD_OK; node = node->next, n++)
        for (int b = 0; b < node->nblocks && status == TD_OK; b++)
            status = order_block(a, node->blocks[b], note);
    if (status || n > MOST_NODES || !n)
        return status;
    status = make_plan(&p, block);
    if (status == TD_OK && p.known)
        status = reorder(&p, note);
    clear(&p);
    return status;
}

/* A block within a node holds its peak beside what is held around it. */
static td_status block_peak(const td_alias_info *a, const td_ir_block *block, int64_t *bytes,
                            int *pieces) {
    plan p = {.alias = a};
    int64_t within = 0;
    td_status status = make_plan(&p, block);
    for (int k = 0; k < p.n && status == TD_OK && p.known; k++)
        for (int b = 0; b < p.items[k].node->nblocks && status == TD_OK; b++) {
            int64_t inner = 0;
            status = block_peak(a, p.items[k].node->blocks[b], &inner, pieces);
            p.known &= inner >= 0;
            within = inner > within ? inner : within;
        }
    *bytes = status || !p.known ? -1 : peak_of(&p, NULL) + within;
    *pieces += p.npieces;
    clear(&p);
    return status;
}

td_status td_ir_count_memory(const td_ir_graph *g, int64_t *bytes, int *pieces) {
    td_alias_info *a;
    td_status status = td_alias_new(g, &a);
    *bytes = -1;
    *pieces = 0;
    if (status == TD_OK)
        status = block_peak(a, g->block, bytes, pieces);
    td_alias_free(a);
    return status;
}

static td_status note_peak(const td_ir_graph *g, int64_t *bytes) {
    int pieces;
    return td_ir_count_memory(g, bytes, &pieces);
}

td_status td_pass_order(td_ir_graph *g, td_pass_note *note) {
    td_alias_info *a;
    td_status status = note_peak(g, &note->peak[0]);
    if (status == TD_OK)
        status = td_alias_new(g, &a);
    if (status)
        return status;
    status = order_block(a, g->block, note);
    td_alias_free(a);
    if (status == TD_OK)
        status = note_peak(g, &note->peak[1]);
    return status ? status : td_ir_status(g);
}

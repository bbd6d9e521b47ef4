/* order.c: nodes are put in an order in which less memory is held at one time.
 *
 * Of the nodes whose arguments are there, the one is taken next that leaves the fewest bytes held;
 * what acts or may fail stays in its order, and reads stay on their side of writes. The new order
 * is taken only where its peak is lower. Blocks within nodes are ordered on their own.
 */
#include "engine/script/passes/order.h"

#include "engine/core/memory.h"
#include "engine/script/passes/alias.h"
#include "engine/script/passes/fails.h"
#include "engine/script/passes/node_infer.h"
#include "engine/script/passes/passes.h"

#include <string.h>

enum { MOST_NODES = 2000 }; /* of a block that is ordered */

/* A piece of memory that a node makes, and the nodes that need it. */
typedef struct piece {
    int64_t bytes;
    const td_ir_value *value;
    int readers; /* nodes that read it or what shares it, that are not done */
    bool stays;  /* behind the block, too */
    bool made;
} piece;

typedef struct plan {
    const td_alias_info *alias;
    td_ir_node **nodes;
    int n;
    piece *pieces;
    int npieces;
    bool *reads;  /* [n][npieces] */
    bool *before; /* [n][n]: must a node stand before another? */
    bool known;   /* all sizes */
} plan;

static void clear(plan *p) {
    td_free(p->nodes);
    td_free(p->pieces);
    td_free(p->reads);
    td_free(p->before);
}

/* Does a node, or one in its blocks, read a value or what shares its memory? */
static bool touches(const td_alias_info *a, const td_ir_node *node, const td_ir_value *value) {
    for (int k = 0; k < node->ninputs; k++)
        if (td_alias_shares(a, node->inputs[k], value))
            return true;
    for (int b = 0; b < node->nblocks; b++) {
        const td_ir_block *block = node->blocks[b];
        for (const td_ir_node *inner = block->first; inner; inner = inner->next)
            if (touches(a, inner, value))
                return true;
        for (int k = 0; k < block->noutputs; k++)
            if (td_alias_shares(a, block->outputs[k], value))
                return true;
    }
    return false;
}

/* Is memory made for the k-th result? Not for views, nor where it may be an argument itself. */
static bool is_made(const td_alias_info *a, const td_ir_node *node, int k) {
    const td_ir_value *value = node->outputs[k];
    if (value->type->kind != TD_IR_TENSOR || node->kind == TD_IR_CONSTANT ||
        td_alias_comes_in(a, value))
        return false;
    for (int j = 0; j < node->ninputs; j++)
        if (td_alias_shares(a, node->inputs[j], value))
            return false;
    return true;
}

static td_status add_pieces(plan *p) {
    int n = 0;
    for (int k = 0; k < p->n; k++)
        n += p->nodes[k]->noutputs;
    p->pieces = td_calloc((size_t)n + 1, sizeof *p->pieces);
    if (!p->pieces)
        return td_fail(TD_ENOMEM, "out of memory for a pass");
    for (int k = 0; k < p->n; k++)
        for (int j = 0; j < p->nodes[k]->noutputs; j++) {
            const td_ir_value *value = p->nodes[k]->outputs[j];
            if (!is_made(p->alias, p->nodes[k], j))
                continue;
            bool whole = td_ir_type_is_whole(value->type);
            p->known &= whole;
            p->pieces[p->npieces++] =
                (piece){.value = value, .bytes = whole ? td_ir_type_bytes(value->type) : 0};
        }
    return TD_OK;
}

static void add_reads(plan *p, const td_ir_block *block) {
    for (int j = 0; j < p->npieces; j++) {
        piece *held = &p->pieces[j];
        for (int k = 0; k < p->n; k++) {
            p->reads[k * p->npieces + j] = touches(p->alias, p->nodes[k], held->value);
            held->readers += p->reads[k * p->npieces + j];
        }
        for (int k = 0; k < block->noutputs; k++)
            held->stays |= td_alias_shares(p->alias, block->outputs[k], held->value);
    }
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

static td_status add_constraints(plan *p) {
    bool *fixed = td_calloc((size_t)p->n + 1, sizeof *fixed);
    if (!fixed)
        return td_fail(TD_ENOMEM, "out of memory for a pass");
    for (int k = 0; k < p->n; k++)
        fixed[k] = td_node_acts(p->nodes[k]) || td_node_may_fail(p->nodes[k]);
    for (int j = 0; j < p->n; j++)
        for (int i = 0; i < j; i++) {
            const td_ir_node *first = p->nodes[i], *second = p->nodes[j];
            bool needs = fixed[i] && fixed[j];
            for (int k = 0; k < first->noutputs && !needs; k++)
                needs = reads_value(second, first->outputs[k]);
            p->before[i * p->n + j] =
                needs || writes_of(p->alias, first, second) || writes_of(p->alias, second, first);
        }
    td_free(fixed);
    return TD_OK;
}

static td_status make_plan(plan *p, const td_ir_block *block) {
    for (const td_ir_node *node = block->first; node; node = node->next)
        p->n++;
    size_t n = (size_t)p->n;
    p->known = true;
    p->nodes = td_calloc(n + 1, sizeof(td_ir_node *));
    p->before = td_calloc(n * n + 1, sizeof *p->before);
    if (!p->nodes || !p->before)
        return td_fail(TD_ENOMEM, "out of memory for a pass");
    int k = 0;
    for (td_ir_node *node = block->first; node; node = node->next)
        p->nodes[k++] = node;
    td_status status = add_pieces(p);
    if (status)
        return status;
    p->reads = td_calloc(n * (size_t)p->npieces + 1, sizeof *p->reads);
    if (!p->reads)
        return td_fail(TD_ENOMEM, "out of memory for a pass");
    add_reads(p, block);
    return TD_OK;
}

/* ---- peaks ---- */

/* What a node adds to what is held, and takes away when it is done. */
static int64_t made_by(const plan *p, int node) {
    int64_t bytes = 0;
    for (int j = 0; j < p->npieces; j++)
        if (p->pieces[j].value->node == p->nodes[node])
            bytes += p->pieces[j].bytes;
    return bytes;
}

static int64_t freed_by(const plan *p, int node) {
    int64_t bytes = 0;
    for (int j = 0; j < p->npieces; j++) {
        const piece *held = &p->pieces[j];
        bool read = p->reads[node * p->npieces + j], made = held->value->node == p->nodes[node];
        bool last = (read && held->readers == 1) || (made && !held->readers);
        bytes += last && !held->stays ? held->bytes : 0;
    }
    return bytes;
}

static void finish_node(plan *p, int node) {
    for (int j = 0; j < p->npieces; j++)
        p->pieces[j].readers -= p->reads[node * p->npieces + j];
}

static void start_again(plan *p) {
    for (int j = 0; j < p->npieces; j++) {
        p->pieces[j].readers = 0;
        for (int k = 0; k < p->n; k++)
            p->pieces[j].readers += p->reads[k * p->npieces + j];
    }
}

static int64_t peak_of(plan *p, const int *order) {
    int64_t held = 0, peak = 0;
    start_again(p);
    for (int k = 0; k < p->n; k++) {
        int node = order ? order[k] : k;
        held += made_by(p, node);
        peak = held > peak ? held : peak;
        held -= freed_by(p, node);
        finish_node(p, node);
    }
    return peak;
}

/* ---- another order ---- */

static bool is_ready(const plan *p, const bool *done, int node) {
    for (int k = 0; k < p->n; k++)
        if (p->before[k * p->n + node] && !done[k])
            return false;
    return true;
}

/* The next node: it leaves the fewest bytes more; of several the first as it was. */
static int choose(const plan *p, const bool *done) {
    int best = -1;
    int64_t least = 0;
    for (int k = 0; k < p->n; k++) {
        if (done[k] || !is_ready(p, done, k))
            continue;
        int64_t more = made_by(p, k) - freed_by(p, k);
        if (best < 0 || more < least) {
            best = k;
            least = more;
        }
    }
    return best;
}

static td_status reorder(plan *p, td_pass_note *note) {
    int *order = td_calloc((size_t)p->n + 1, sizeof *order);
    bool *done = td_calloc((size_t)p->n + 1, sizeof *done);
    td_status status =
        order && done ? add_constraints(p) : td_fail(TD_ENOMEM, "out of memory for a pass");
    if (status == TD_OK) {
        int64_t before = peak_of(p, NULL);
        start_again(p);
        for (int k = 0; k < p->n; k++) {
            order[k] = choose(p, done);
            done[order[k]] = true;
            finish_node(p, order[k]);
        }
        int64_t after = peak_of(p, order);
        if (after < before) {
            td_pass_say(note, NULL, "a peak of %lld bytes becomes one of %lld", (long long)before,
                        (long long)after);
            td_ir_node *last = p->nodes[order[p->n - 1]];
            for (int k = 0; k < p->n; k++) /* each to the end, but the last, which is there then */
                if (k == 0) {
                    while (last->next)
                        td_ir_move_before(last->next, last);
                } else {
                    td_ir_move_before(p->nodes[order[k - 1]], last);
                }
        }
    }
    td_free(order);
    td_free(done);
    return status;
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
static td_status block_peak(const td_alias_info *a, const td_ir_block *block, int64_t *bytes) {
    plan p = {.alias = a};
    int64_t within = 0;
    td_status status = make_plan(&p, block);
    for (int k = 0; k < p.n && status == TD_OK && p.known; k++)
        for (int b = 0; b < p.nodes[k]->nblocks && status == TD_OK; b++) {
            int64_t inner = 0;
            status = block_peak(a, p.nodes[k]->blocks[b], &inner);
            p.known &= inner >= 0;
            within = inner > within ? inner : within;
        }
    *bytes = status || !p.known ? -1 : peak_of(&p, NULL) + within;
    clear(&p);
    return status;
}

td_status td_ir_peak_bytes(const td_ir_graph *g, int64_t *bytes) {
    td_alias_info *a;
    td_status status = td_alias_new(g, &a);
    *bytes = -1;
    if (status == TD_OK)
        status = block_peak(a, g->block, bytes);
    td_alias_free(a);
    return status;
}

td_status td_pass_order(td_ir_graph *g, td_pass_note *note) {
    td_alias_info *a;
    td_status status = td_ir_peak_bytes(g, &note->peak[0]);
    if (status == TD_OK)
        status = td_alias_new(g, &a);
    if (status)
        return status;
    status = order_block(a, g->block, note);
    td_alias_free(a);
    if (status == TD_OK)
        status = td_ir_peak_bytes(g, &note->peak[1]);
    return status ? status : td_ir_status(g);
}

/* gradient_sizes.c: recordings of one graph for several sizes, compared node by node.
 *
 * A number that varies is taken for factor * size / divisor + term, or the same of a product of two
 * sizes, which three recordings tell; what else it could be shows when a size is learned. */
#include "engine/script/gradient/gradient_sizes.h"

#include "engine/core/map.h"
#include "engine/core/memory.h"
#include "engine/ops/language/expression.h"
#include "engine/script/special.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

enum {
    MOST_KNOWN = 4096, /* lists of sizes that are remembered */
    MOST_WHOLE = 1 << 30
};

static td_status no_memory(void) {
    return td_fail(TD_ENOMEM, "out of memory for a gradient");
}

static td_status differs(const char *what) {
    return td_fail(TD_EVALUE, "%s with the sizes of its inputs", what);
}

/* ---- what varies ---- */

/* The number of a pair of sizes, a new one where it was not met; -1: there are too many. */
static int add_pair(td_varying *v, int64_t first, int64_t second) {
    static const int64_t times[TD_SIZES_MOST] = {3, 5, 7, 11, 13, 17}; /* no two grow alike */
    for (int k = 0; k < v->n; k++)
        if (v->seen[k][0] == first && v->seen[k][1] == second)
            return k;
    if (v->n == TD_SIZES_MOST)
        return -1;
    v->seen[v->n][0] = first;
    v->seen[v->n][1] = second;
    v->seen[v->n][2] = first * times[v->n];
    return v->n++;
}

static td_status add_tensors(td_varying *v, int k, const td_tensor *x, const td_tensor *y) {
    if (x->ndim != y->ndim)
        return td_fail(TD_ETYPE, "numbers of dims vary");
    for (int d = 0; d < x->ndim; d++) {
        v->dims[k][d] = -1;
        if (x->sizes[d] == y->sizes[d])
            continue;
        int number = x->sizes[d] < 2 || y->sizes[d] < 2 || x->sizes[d] > MOST_WHOLE
                         ? -1
                         : add_pair(v, x->sizes[d], y->sizes[d]);
        if (number < 0)
            return td_fail(TD_ETYPE, "too many sizes vary, or by 0 or 1");
        v->dims[k][d] = (int8_t)number;
        v->varies[k] = true;
    }
    return v->varies[k] && !(td_is_row_major(x) && td_is_row_major(y))
               ? td_fail(TD_ETYPE, "sizes vary of a tensor that does not lie row by row")
               : TD_OK;
}

td_status td_varying_new(int ninputs, const td_value *first, const td_value *second,
                         td_varying **out) {
    td_varying *v = td_calloc(1, sizeof *v);
    td_status status = TD_OK;
    *out = NULL;
    if (!v)
        return no_memory();
    v->ninputs = ninputs;
    v->varies = td_calloc((size_t)ninputs + 1, sizeof *v->varies);
    v->dims = td_calloc((size_t)ninputs + 1, sizeof *v->dims);
    if (!v->varies || !v->dims)
        status = no_memory();
    for (int k = 0; k < ninputs && status == TD_OK; k++)
        if (first[k].kind == TD_KIND_TENSOR && second[k].kind == TD_KIND_TENSOR)
            status = add_tensors(v, k, first[k].tensor, second[k].tensor);
    if (status == TD_OK && !v->n)
        status = td_fail(TD_ETYPE, "no size varies");
    if (status)
        td_varying_free(v);
    else
        *out = v;
    return status;
}

void td_varying_free(td_varying *v) {
    if (!v)
        return;
    td_free(v->varies);
    td_free(v->dims);
    td_free(v);
}

bool td_varying_takes(const td_varying *v, int k, const td_tensor *x, const td_tensor *first,
                      int64_t *sizes) {
    if (x->ndim != first->ndim)
        return false;
    for (int d = 0; d < x->ndim; d++) {
        int number = v->dims[k][d];
        int64_t size = x->sizes[d];
        if (number >= 0 && !sizes[number] && size >= 2)
            sizes[number] = size;
        if (size != (number < 0 ? first->sizes[d] : sizes[number]))
            return false;
    }
    return v->varies[k] ? td_is_row_major(x)
                        : !memcmp(x->strides, first->strides, sizeof *x->strides * x->ndim);
}

td_status td_varying_inputs(const td_varying *v, const td_value *first, const int64_t *sizes,
                            td_value *out) {
    td_status status = TD_OK;
    for (int k = 0; k < v->ninputs; k++) {
        td_tensor *x = td_arg_tensor(first[k]), *made = NULL;
        int64_t shape[TD_MAX_DIMS];
        out[k] = x ? TD_NIL : first[k];
        for (int d = 0; x && d < x->ndim; d++)
            shape[d] = v->dims[k][d] < 0 ? x->sizes[d] : sizes[v->dims[k][d]];
        if (x && !v->varies[k])
            out[k] = TD_T(td_retain(x));
        else if (x && status == TD_OK) {
            status =
                td_tensor_empty((td_dtype)x->dtype, td_tensor_device(x), x->ndim, shape, &made);
            out[k] = td_tensor_or_nil(made);
        }
    }
    return status;
}

/* ---- numbers ---- */

/* factor * size / divisor + term; of the product of two sizes where there is a second. */
typedef struct term {
    int64_t factor, divisor, term;
    int64_t first, second; /* which sizes; -1: none */
} term;

/* An input of the joint graph that follows from the sizes. */
typedef struct number {
    uint8_t kind; /* TD_KIND_INT, TD_KIND_FLOAT or TD_KIND_INTS */
    int n;
    term *terms;
} number;

struct td_sized {
    pthread_mutex_t lock; /* of what is known, and of comparing */
    td_joint joint;
    td_map known; /* lists of sizes */
    int nsizes;   /* of each */
    int nnumbers, room;
    number *numbers; /* in the graph's memory */
};

static int64_t product_of(const term *t, const int64_t *sizes) {
    return t->first < 0 ? 0 : sizes[t->first] * (t->second < 0 ? 1 : sizes[t->second]);
}

static bool value_of(const term *t, const int64_t *sizes, int64_t *value) {
    int64_t product = product_of(t, sizes) * t->factor;
    *value = product / t->divisor + t->term;
    return product % t->divisor == 0;
}

static int64_t gcd(int64_t a, int64_t b) {
    return b ? gcd(b, a % b) : a < 0 ? -a : a;
}

static void sizes_at(const td_varying *v, int point, int64_t *sizes) {
    for (int k = 0; k < v->n; k++)
        sizes[k] = v->seen[k][point];
}

/* Do these sizes tell the values? */
static bool try_term(const td_varying *v, const int64_t *values, int first, int second, term *t) {
    int64_t sizes[TD_SIZES_POINTS][TD_SIZES_MOST], value;
    *t = (term){.factor = 1, .divisor = 1, .first = first, .second = second};
    for (int p = 0; p < TD_SIZES_POINTS; p++)
        sizes_at(v, p, sizes[p]);
    int64_t from = product_of(t, sizes[0]);
    int64_t step = product_of(t, sizes[2]) - from, rise = values[2] - values[0];
    if (!step || !rise || rise > MOST_WHOLE || rise < -MOST_WHOLE)
        return false;
    int64_t common = gcd(rise, step);
    t->factor = rise / common;
    t->divisor = step / common;
    if (t->divisor < 0) {
        t->factor = -t->factor;
        t->divisor = -t->divisor;
    }
    t->term = values[0] - from * t->factor / t->divisor;
    for (int p = 0; p < TD_SIZES_POINTS; p++)
        if (!value_of(t, sizes[p], &value) || value != values[p])
            return false;
    return true;
}

static bool find_term(const td_varying *v, const int64_t *values, term *t) {
    if (values[0] == values[1] && values[0] == values[2]) {
        *t = (term){.divisor = 1, .term = values[0], .first = -1, .second = -1};
        return true;
    }
    for (int i = 0; i < v->n; i++)
        if (try_term(v, values, i, -1, t))
            return true;
    for (int i = 0; i < v->n; i++)
        for (int j = i; j < v->n; j++)
            if (try_term(v, values, i, j, t))
                return true;
    return false;
}

/* A whole number of a constant, that of a list from 0. */
static bool whole_at(td_value v, int k, int64_t *whole) {
    if (v.kind == TD_KIND_FLOAT) {
        *whole = fabs(v.f) <= MOST_WHOLE ? (int64_t)v.f : 0;
        return (double)*whole == v.f && (*whole || !signbit(v.f));
    }
    *whole = v.kind == TD_KIND_INTS ? v.ints[k] : v.i;
    return v.kind == TD_KIND_INT || v.kind == TD_KIND_INTS;
}

static td_status find_number(td_ir_graph *g, const td_varying *v, const td_value *values,
                             number *out) {
    int n = values[0].kind == TD_KIND_INTS ? values[0].n : 1;
    *out = (number){
        .kind = values[0].kind, .n = n, .terms = td_ir_alloc(g, sizeof(term) * (size_t)(n + 1))};
    if (!out->terms)
        return td_ir_status(g);
    for (int k = 0; k < n; k++) {
        int64_t wholes[TD_SIZES_POINTS];
        bool whole = true;
        for (int p = 0; p < TD_SIZES_POINTS; p++)
            whole &= values[p].kind == out->kind &&
                     (out->kind != TD_KIND_INTS || values[p].n == n) &&
                     whole_at(values[p], k, &wholes[p]);
        if (!whole || !find_term(v, wholes, &out->terms[k]))
            return differs("a number in its calls varies otherwise than");
    }
    return TD_OK;
}

int td_sized_room(const td_sized *s) {
    return s->room;
}

bool td_sized_numbers(const td_sized *s, const int64_t *sizes, int64_t *room, td_value *out) {
    bool whole = true;
    for (int k = 0; k < s->nnumbers; k++) {
        const number *p = &s->numbers[k];
        for (int j = 0; j < p->n; j++)
            whole &= value_of(&p->terms[j], sizes, &room[j]);
        out[k] = p->kind == TD_KIND_INTS    ? TD_INTS(p->n, room)
                 : p->kind == TD_KIND_FLOAT ? TD_F((double)room[0])
                                            : TD_I(room[0]);
        room += p->n;
    }
    return whole;
}

/* ---- comparing ---- */

static bool same_constant(td_value a, td_value b) {
    if (a.kind == TD_KIND_TENSOR || b.kind == TD_KIND_TENSOR)
        return a.kind == b.kind && a.tensor == b.tensor;
    if (a.kind != b.kind || a.from_one != b.from_one)
        return false;
    if (a.kind == TD_KIND_FLOAT)
        return !memcmp(&a.f, &b.f, sizeof a.f);
    return td_value_equal(a, b);
}

/* Nodes are numbered, so that those of two graphs can be told to be the same. */
static int number_nodes(const td_joint *j) {
    int n = 0;
    for (td_ir_node *node = j->graph->block->first; node; node = node->next)
        node->id = n++;
    return n;
}

static int place_among(int n, td_ir_value *const *values, const td_ir_value *value) {
    int k = 0;
    while (k < n && values[k] != value)
        k++;
    return k;
}

/* What is compared: `numbers` are the values of a's inputs that are numbers. */
typedef struct comparison {
    const td_joint *a, *b;
    const td_value *numbers;
} comparison;

static int first_number(const td_joint *j) {
    return j->graph->block->ninputs - j->nnumbers;
}

static bool same_value(const comparison *c, const td_ir_value *x, const td_ir_value *y) {
    const td_ir_block *a = c->a->graph->block, *b = c->b->graph->block;
    if (!x || !y)
        return x == y;
    if (!x->node) {
        int k = place_among(a->ninputs, a->inputs, x);
        if (k < first_number(c->a))
            return !y->node && place_among(b->ninputs, b->inputs, y) == k;
        return y->node && y->node->kind == TD_IR_CONSTANT &&
               same_constant(c->numbers[k - first_number(c->a)], y->node->constant);
    }
    return y->node && x->node->id == y->node->id &&
           place_among(x->node->noutputs, x->node->outputs, x) ==
               place_among(y->node->noutputs, y->node->outputs, y);
}

/* But for sizes, of which one is not known. */
static bool same_type(const td_ir_type *a, const td_ir_type *b) {
    if (a->kind != TD_IR_TENSOR || b->kind != TD_IR_TENSOR)
        return td_ir_type_equal(a, b);
    return a->dtype == b->dtype && a->n == b->n && a->requires_grad == b->requires_grad;
}

static bool fits_sizes(const td_ir_type *a, const td_ir_type *b) {
    for (int d = 0; a->kind == TD_IR_TENSOR && a->sizes && d < a->n; d++)
        if (a->sizes[d] != TD_IR_UNKNOWN && a->sizes[d] != b->sizes[d])
            return false;
    return true;
}

static bool same_node(const comparison *c, const td_ir_node *x, const td_ir_node *y, bool sizes) {
    if (x->kind != y->kind || x->op != y->op || x->inplace != y->inplace ||
        x->ninputs != y->ninputs || x->noutputs != y->noutputs)
        return false;
    if (sizes && x->kind == TD_IR_CONSTANT && x->outputs[0]->uses &&
        !same_constant(x->constant, y->constant))
        return false;
    if (x->kind == TD_IR_CONSTANT && x->constant.kind != TD_KIND_TENSOR)
        return true;
    for (int k = 0; k < x->ninputs; k++)
        if (!same_value(c, x->inputs[k], y->inputs[k]))
            return false;
    for (int k = 0; k < x->noutputs; k++)
        if (!same_type(x->outputs[k]->type, y->outputs[k]->type) ||
            (sizes && !fits_sizes(x->outputs[k]->type, y->outputs[k]->type)))
            return false;
    return true;
}

static bool same_ends(const comparison *c) {
    const td_joint *a = c->a, *b = c->b;
    if (a->ninputs != b->ninputs || a->ncaptured != b->ncaptured || a->noutputs != b->noutputs ||
        a->nends != b->nends || a->nlayout != b->nlayout ||
        (a->nlayout && memcmp(a->layout, b->layout, sizeof *a->layout * (size_t)a->nlayout) != 0) ||
        a->writes != b->writes || !a->last != !b->last || (a->last && a->last->id != b->last->id) ||
        first_number(a) != b->graph->block->ninputs)
        return false;
    for (int k = 0; k < a->ncaptured; k++)
        if (a->captured[k] != b->captured[k])
            return false;
    for (int k = 0; k < a->noutputs; k++)
        if (a->differentiable[k] != b->differentiable[k] ||
            !same_value(c, a->outputs[k], b->outputs[k]))
            return false;
    for (int k = 0; k < a->nends; k++)
        if (a->ends[k] != b->ends[k])
            return false;
    for (int k = 0; k < a->ninputs + a->ncaptured; k++)
        if (!same_value(c, a->gradients[k], b->gradients[k]))
            return false;
    return true;
}

/* `sizes`: constants and known sizes, too. */
static td_status compare(const comparison *c, bool sizes) {
    const td_ir_node *x = c->a->graph->block->first, *y = c->b->graph->block->first;
    if (number_nodes(c->a) != number_nodes(c->b))
        return differs("the number of its calls varies");
    for (; x; x = x->next, y = y->next)
        if (!same_node(c, x, y, sizes))
            return differs("its calls vary");
    return same_ends(c) ? TD_OK : differs("what it gives varies");
}

/* ---- one for all ---- */

/* What is the same in all recordings stays in a type. */
static void forget_sizes(td_ir_graph *g, td_ir_value *value, const td_ir_type *const *types) {
    int64_t sizes[TD_MAX_DIMS];
    td_ir_type type = *value->type;
    bool strides = true;
    if (type.kind != TD_IR_TENSOR || type.n < 0 || !type.sizes)
        return;
    for (int d = 0; d < type.n; d++)
        sizes[d] = type.sizes[d];
    for (int p = 0; p < TD_SIZES_POINTS; p++)
        for (int d = 0; d < type.n; d++) {
            sizes[d] = types[p]->sizes[d] == sizes[d] ? sizes[d] : TD_IR_UNKNOWN;
            strides &= type.strides && types[p]->strides && type.strides[d] == types[p]->strides[d];
        }
    for (int d = 0; d < type.n; d++)
        strides &= sizes[d] != TD_IR_UNKNOWN;
    type.sizes = sizes;
    type.strides = strides ? type.strides : NULL;
    const td_ir_type *made = td_ir_type_copy(g, &type);
    value->type = made ? made : value->type;
}

static bool same_number(const number *a, const number *b) {
    return a->kind == b->kind && a->n == b->n &&
           !memcmp(a->terms, b->terms, sizeof *a->terms * (size_t)a->n);
}

/* The input that has a constant's place; one for equal numbers. */
static td_ir_value *input_of(td_sized *s, const td_ir_value *constant, const number *wanted) {
    td_ir_graph *g = s->joint.graph;
    for (int k = 0; k < s->nnumbers; k++)
        if (same_number(&s->numbers[k], wanted))
            return g->block->inputs[first_number(&s->joint) + k];
    s->numbers[s->nnumbers++] = *wanted;
    s->room += wanted->n;
    s->joint.nnumbers++;
    return td_ir_add_input(g->block, constant->type, "n");
}

static void replace_value(const td_joint *j, td_ir_value *from, td_ir_value *to) {
    td_ir_replace(from, to);
    for (int k = 0; k < j->noutputs; k++)
        j->outputs[k] = j->outputs[k] == from ? to : j->outputs[k];
}

static td_status generalize_node(td_sized *s, const td_varying *v, td_ir_node *const *nodes) {
    td_value values[TD_SIZES_POINTS];
    td_ir_node *node = nodes[0];
    bool same = true;
    if (node->kind != TD_IR_CONSTANT || node->constant.kind == TD_KIND_TENSOR) {
        for (int k = 0; k < node->noutputs; k++) {
            const td_ir_type *types[TD_SIZES_POINTS];
            for (int p = 0; p < TD_SIZES_POINTS; p++)
                types[p] = nodes[p]->outputs[k]->type;
            forget_sizes(s->joint.graph, node->outputs[k], types);
        }
        return TD_OK;
    }
    for (int p = 0; p < TD_SIZES_POINTS; p++) {
        values[p] = nodes[p]->constant;
        same &= same_constant(values[0], values[p]);
    }
    if (same)
        return TD_OK;
    number made;
    td_status status = find_number(s->joint.graph, v, values, &made);
    if (status == TD_OK)
        replace_value(&s->joint, node->outputs[0], input_of(s, node->outputs[0], &made));
    return status;
}

static td_status generalize(td_sized *s, const td_varying *v, const td_joint *joints) {
    td_ir_block *block = s->joint.graph->block;
    td_ir_node *nodes[TD_SIZES_POINTS] = {block->first};
    td_status status = TD_OK;
    s->numbers =
        td_ir_alloc(s->joint.graph, sizeof *s->numbers * (size_t)(number_nodes(&s->joint) + 1));
    if (!s->numbers)
        return no_memory();
    for (int k = 0; k < block->ninputs; k++) {
        const td_ir_type *types[TD_SIZES_POINTS] = {block->inputs[k]->type};
        for (int p = 1; p < TD_SIZES_POINTS; p++)
            types[p] = joints[p].graph->block->inputs[k]->type;
        forget_sizes(s->joint.graph, block->inputs[k], types);
    }
    for (int p = 1; p < TD_SIZES_POINTS; p++)
        nodes[p] = joints[p].graph->block->first;
    while (nodes[0] && status == TD_OK) {
        status = generalize_node(s, v, nodes);
        for (int p = 0; p < TD_SIZES_POINTS; p++)
            nodes[p] = nodes[p]->next;
    }
    return status ? status : td_ir_status(s->joint.graph);
}

/* ---- sizes that are known ---- */

typedef struct sizes_key {
    int n;
    const int64_t *sizes;
} sizes_key;

static bool has_sizes(const void *entry, const void *wanted) {
    const sizes_key *key = wanted;
    return !memcmp(entry, key->sizes, sizeof *key->sizes * (size_t)key->n);
}

/* 1: they give this graph, 0: they don't, -1: nobody has looked. */
static int64_t find_sizes(td_sized *s, const int64_t *sizes) {
    sizes_key key = {s->nsizes, sizes};
    const int64_t *entry = td_map_find(&s->known, td_hash_words(sizes, s->nsizes), has_sizes, &key);
    return entry ? entry[s->nsizes] : -1;
}

bool td_sized_knows(td_sized *s, const int64_t *sizes) {
    pthread_mutex_lock(&s->lock);
    bool known = find_sizes(s, sizes) == 1;
    pthread_mutex_unlock(&s->lock);
    return known;
}

bool td_sized_refuses(td_sized *s, const int64_t *sizes) {
    pthread_mutex_lock(&s->lock);
    bool refused = find_sizes(s, sizes) == 0;
    pthread_mutex_unlock(&s->lock);
    return refused;
}

/* Where there are very many they are not: they are looked at again. */
static td_status remember(td_sized *s, const int64_t *sizes, bool fit) {
    size_t n = (size_t)s->nsizes;
    bool known = find_sizes(s, sizes) >= 0 || s->known.count >= MOST_KNOWN;
    int64_t *entry = known ? NULL : td_ir_alloc(s->joint.graph, sizeof *entry * (n + 1));
    if (!entry)
        return td_ir_status(s->joint.graph);
    memcpy(entry, sizes, sizeof *sizes * n);
    entry[n] = fit;
    return td_map_add(&s->known, td_hash_words(sizes, s->nsizes), entry);
}

static td_status learn(td_sized *s, const int64_t *sizes, const td_joint *joint, int64_t *room,
                       td_value *numbers) {
    comparison c = {.a = &s->joint, .b = joint, .numbers = numbers};
    td_status status = joint && td_sized_numbers(s, sizes, room, numbers)
                           ? compare(&c, true)
                           : differs("a number in its calls varies otherwise than");
    td_status kept =
        status == TD_OK || status == TD_EVALUE ? remember(s, sizes, status == TD_OK) : TD_OK;
    return kept ? kept : status;
}

td_status td_sized_learn(td_sized *s, const int64_t *sizes, const td_joint *joint) {
    int64_t *room = td_malloc(sizeof *room * (size_t)(s->room + 1));
    td_value *numbers = td_malloc(sizeof *numbers * (size_t)(s->nnumbers + 1));
    pthread_mutex_lock(&s->lock);
    td_status status = room && numbers ? learn(s, sizes, joint, room, numbers) : no_memory();
    pthread_mutex_unlock(&s->lock);
    td_free(room);
    td_free(numbers);
    return status;
}

/* ---- births ---- */

td_status td_sized_new(const td_varying *v, td_joint *joints, td_sized **out) {
    td_sized *s = td_calloc(1, sizeof *s);
    td_status status = s ? TD_OK : no_memory();
    *out = NULL;
    if (s)
        pthread_mutex_init(&s->lock, NULL);
    for (int p = 1; p < TD_SIZES_POINTS && status == TD_OK; p++) {
        comparison c = {.a = &joints[0], .b = &joints[p]};
        status = compare(&c, false);
    }
    if (s) {
        s->joint = joints[0];
        joints[0] = (td_joint){0};
        s->nsizes = v->n;
    }
    if (status == TD_OK)
        status = generalize(s, v, joints);
    for (int p = 0; p < TD_SIZES_POINTS; p++) {
        int64_t sizes[TD_SIZES_MOST];
        sizes_at(v, p, sizes);
        if (status == TD_OK)
            status = p ? td_sized_learn(s, sizes, &joints[p]) : remember(s, sizes, true);
        td_joint_clear(&joints[p]);
    }
    if (status)
        td_sized_free(s);
    else
        *out = s;
    return status;
}

void td_sized_free(td_sized *s) {
    if (!s)
        return;
    td_map_clear(&s->known);
    td_joint_clear(&s->joint);
    pthread_mutex_destroy(&s->lock);
    td_free(s);
}

td_joint *td_sized_joint(td_sized *s) {
    return &s->joint;
}

/* random_graph.c: draws nodes one after the other.
 *
 * Arguments are drawn by the types of an operator's parameters, so what the table gains is drawn
 * too. Most calls that would be refused are drawn again; some stay, as errors are to be compared.
 */
#include "tests/script/random_graph.h"

#include "engine/script/passes/node_infer.h"
#include "engine/script/scalars.h"

#include <string.h>

enum { MOST_SEEN = 128, MOST_DEPTH = 2 };

typedef struct maker {
    uint64_t state;
    td_ir_graph *graph;
    td_ir_value *tensors[MOST_SEEN], *bools[MOST_SEEN], *ints[MOST_SEEN];
    int ntensors, nbools, nints;
} maker;

/* A number below n. */
static int pick(maker *m, int n) {
    m->state = m->state * 6364136223846793005u + 1442695040888963407u;
    return (int)((m->state >> 33) % (uint64_t)n);
}

static td_ir_value *any_of(maker *m, td_ir_value **list, int n) {
    int late = n > 8 && pick(m, 2) ? n - 8 : 0; /* rather what was made last */
    return list[late + pick(m, n - late)];
}

static void see(maker *m, td_ir_value *value) {
    uint8_t kind = value->type->kind;
    if (kind == TD_IR_TENSOR && m->ntensors < MOST_SEEN)
        m->tensors[m->ntensors++] = value;
    if (kind == TD_IR_BOOL && m->nbools < MOST_SEEN)
        m->bools[m->nbools++] = value;
    if (kind == TD_IR_INT && m->nints < MOST_SEEN)
        m->ints[m->nints++] = value;
}

/* ---- operators ---- */

/* What has no result that two runs must agree on, needs other layouts, or makes a graph's memory
 * depend on what is drawn. */
static bool is_left_out(const td_op *op) {
    static const char *const families[] = {"sparse", "optim",     "ctc",
                                           "rnn",    "attention", "resample"};
    static const char *const parts[] = {"empty", "sparse", "resize", "coalesce", "repeat",
                                        "set_",  "pin_",   "tile",   "cuda",     "kron"};
    if (op->flags & (TD_OP_INTERNAL | TD_OP_REST | TD_OP_CREATES))
        return true;
    for (size_t k = 0; k < sizeof families / sizeof *families; k++)
        if (!strcmp(op->family, families[k]))
            return true;
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
        if (strstr(op->name, parts[k]))
            return true;
    return false;
}

static td_ir_value *number(maker *m, td_ir_block *block, bool whole) {
    static const double floats[] = {0.0, -0.0, 1.0, 0.5, 2.0, -1.0};
    static const int64_t ints[] = {0, 1, 1, 2, 3, -1};
    if (whole && m->nints && !pick(m, 4))
        return any_of(m, m->ints, m->nints);
    return whole ? td_ir_add_constant(block, TD_I(ints[pick(m, 6)]))
                 : td_ir_add_constant(block, TD_F(floats[pick(m, 6)]));
}

static td_ir_value *ints(maker *m, td_ir_block *block, const td_param *param) {
    static const int64_t some[][2] = {{2, 3}, {3, 2}, {0, 1}, {1, 0}, {-1, 3}, {6, 1}, {1, 1}};
    int n = param->length ? param->length : 1 + pick(m, 2);
    return td_ir_add_constant(block, TD_INTS(n > 2 ? 2 : n, some[pick(m, 7)]));
}

static td_ir_value *word(maker *m, td_ir_block *block, const td_param *param) {
    char text[64];
    const char *words = param->word ? param->word : "preserve";
    int n = 1;
    for (const char *c = words; *c; c++)
        n += *c == '|';
    for (int skip = pick(m, n); skip; skip--)
        words = strchr(words, '|') + 1;
    size_t length = strcspn(words, "|");
    if (length >= sizeof text)
        return NULL;
    memcpy(text, words, length);
    text[length] = 0;
    return td_ir_add_constant(block, TD_STRING(text));
}

static td_ir_value *list(maker *m, td_ir_block *block) {
    const td_ir_type *part = td_ir_simple_type(TD_IR_TENSOR);
    const td_ir_type *type = td_ir_type_of_parts(m->graph, TD_IR_LIST, 1, &part);
    td_ir_value *parts[3];
    int n = 1 + pick(m, 3);
    for (int k = 0; k < n; k++)
        parts[k] = any_of(m, m->tensors, m->ntensors);
    td_ir_node *node = td_ir_append(block, TD_IR_LIST_CONSTRUCT, n, parts, 1, &type);
    return node ? node->outputs[0] : NULL;
}

/* NULL: no argument is drawn for such a parameter. */
static td_ir_value *argument(maker *m, td_ir_block *block, const td_param *param) {
    static const td_dtype dtypes[] = {TD_F32, TD_F64, TD_F16, TD_I64, TD_I32, TD_BOOL};
    bool preset = param->has_default || param->optional;
    if (preset && pick(m, 4) && param->preset.kind != TD_KIND_TENSOR)
        return td_ir_add_constant(block, param->preset);
    const uint8_t type = param->type;
    if (type == TD_PARAM_TENSOR)
        return any_of(m, m->tensors, m->ntensors);
    if (type == TD_PARAM_TENSOR_OR_NUMBER)
        return pick(m, 3) ? any_of(m, m->tensors, m->ntensors) : number(m, block, pick(m, 2));
    if (type == TD_PARAM_TENSORS)
        return param->holes ? NULL : list(m, block);
    if (type == TD_PARAM_NUMBER || type == TD_PARAM_FLOAT)
        return param->word ? NULL : number(m, block, pick(m, 2));
    if (type == TD_PARAM_INT || type == TD_PARAM_DIM || type == TD_PARAM_INDEX)
        return number(m, block, true);
    if (type == TD_PARAM_BOOL)
        return td_ir_add_constant(block, TD_B(pick(m, 2)));
    if (type == TD_PARAM_DIMS || type == TD_PARAM_INTS)
        return ints(m, block, param);
    if (type == TD_PARAM_DTYPE)
        return td_ir_add_constant(block, TD_DTYPE(dtypes[pick(m, 6)]));
    if (type == TD_PARAM_STRING)
        return word(m, block, param);
    if (type == TD_PARAM_DEVICE || type == TD_PARAM_GENERATOR)
        return td_ir_add_constant(block, TD_NIL);
    return NULL;
}

static int types_of(const td_op *op, const td_inferred *made,
                    const td_ir_type *types[TD_MAX_RESULTS], td_ir_graph *g) {
    const td_ir_type *tensor = td_ir_simple_type(TD_IR_TENSOR);
    if (op->result_type == TD_RESULT_TENSOR) {
        for (int k = 0; k < op->nresults; k++)
            types[k] = made->types[k] ? made->types[k] : td_ir_simple_type(TD_IR_NONE);
        if (op->nresults == 1)
            types[0] = made->types[0] ? made->types[0] : tensor;
        return op->nresults;
    }
    types[0] = op->result_type == TD_RESULT_TENSORS ? td_ir_type_of_parts(g, TD_IR_LIST, 1, &tensor)
               : op->result_type == TD_RESULT_BOOL  ? td_ir_simple_type(TD_IR_BOOL)
                                                    : td_ir_simple_type(TD_IR_NUMBER);
    return op->result_type != TD_RESULT_NOTHING;
}

/* What a call of these arguments makes, worked out on a node that has no outputs. */
static td_inferred infer(const td_op *op, bool inplace, td_ir_block *block, td_ir_value **inputs) {
    td_inferred made = {.n = -1};
    td_ir_node *draft = td_ir_append(block, TD_IR_OPERATOR, op->nparams, inputs, 0, NULL);
    if (draft) {
        draft->op = op;
        draft->inplace = inplace;
        td_infer_node(block->graph, draft, &made);
        td_ir_remove(draft);
    }
    return made;
}

static bool is_small(const td_inferred *made) {
    for (int k = 0; k < TD_MAX_RESULTS; k++)
        if (made->types[k] && td_ir_type_is_whole(made->types[k]) &&
            td_ir_type_elements(made->types[k]) > 200)
            return false;
    return true;
}

static void add_operator(maker *m, td_ir_block *block) {
    const td_ir_type *types[TD_MAX_RESULTS];
    td_ir_value *inputs[TD_MAX_PARAMS];
    const td_op *op = td_op_get(pick(m, td_op_count()));
    if (is_left_out(op))
        return;
    for (int k = 0; k < op->nparams; k++)
        if (!(inputs[k] = argument(m, block, &op->params[k])))
            return;
    bool only = op->flags & TD_OP_INPLACE_ONLY;
    bool inplace = !only && op->inplace_name && !(op->flags & TD_OP_TURNS) && !pick(m, 5);
    if ((only || inplace) && inputs[0]->type->kind != TD_IR_TENSOR)
        return;
    td_inferred made = infer(op, inplace, block, inputs);
    bool by_elements = op->flags & TD_OP_BY_ELEMENTS || op->result_type == TD_RESULT_BOOL;
    if ((!made.exact && pick(m, by_elements ? 10 : 400)) || !is_small(&made) ||
        (!made.exact && op->nresults > 1)) /* some of which may not be made */
        return;
    int n = types_of(op, &made, types, m->graph);
    td_ir_node *node = td_ir_append(block, TD_IR_OPERATOR, op->nparams, inputs, n, types);
    if (!node)
        return;
    node->op = op;
    node->inplace = inplace;
    if (op->result_type == TD_RESULT_TENSORS) {
        if (made.n < 1 || made.n > TD_MAX_RESULTS)
            return;
        for (int k = 0; k < made.n; k++)
            types[k] = made.types[k] ? made.types[k] : td_ir_simple_type(TD_IR_TENSOR);
        node = td_ir_append(block, TD_IR_LIST_UNPACK, 1, node->outputs, made.n, types);
    }
    for (int k = 0; node && k < node->noutputs; k++)
        see(m, node->outputs[k]);
}

/* ---- what passes look for ---- */

/* The same again as some operator that was drawn before. */
static void repeat_operator(maker *m, td_ir_block *block) {
    const td_ir_type *types[TD_MAX_RESULTS];
    const td_ir_node *first = any_of(m, m->tensors, m->ntensors)->node;
    if (!first || first->kind != TD_IR_OPERATOR)
        return;
    for (int k = 0; k < first->noutputs; k++)
        types[k] = first->outputs[k]->type;
    td_ir_node *node =
        td_ir_append(block, TD_IR_OPERATOR, first->ninputs, first->inputs, first->noutputs, types);
    if (!node)
        return;
    node->op = first->op;
    node->inplace = first->inplace;
    for (int k = 0; k < node->noutputs; k++)
        see(m, node->outputs[k]);
}

/* x * 1, x + 0, x - 0, -0 among the zeros; or an operator twice on end. */
static void add_idle(maker *m, td_ir_block *block) {
    static const char *const names[] = {"mul", "add", "sub", "t", "neg", "relu", "abs"};
    int k = pick(m, 7);
    const td_op *op = td_op_find(names[k]);
    td_ir_value *x = any_of(m, m->tensors, m->ntensors);
    for (int times = k < 3 ? 1 : 2; times && x; times--) {
        bool whole = pick(m, 2);
        double zero = pick(m, 2) ? 0.0 : -0.0;
        td_ir_value *inputs[3] = {x, NULL, NULL};
        if (k < 3)
            inputs[1] = td_ir_add_constant(block, whole ? TD_I(k == 0) : TD_F(k ? zero : 1.0));
        if (op->nparams > 2)
            inputs[2] = td_ir_add_constant(block, TD_I(1));
        td_inferred made = infer(op, false, block, inputs);
        if (!made.exact)
            return;
        td_ir_node *node = td_ir_append(block, TD_IR_OPERATOR, op->nparams, inputs, 1, made.types);
        if (!node)
            return;
        node->op = op;
        x = node->outputs[0];
        see(m, x);
    }
}

/* ---- numbers ---- */

/* An operator on ints (i), bools (b) and what tensors (t) are. */
static void add_scalar(maker *m, td_ir_block *block) {
    static const struct {
        const char *name, *takes;
    } rows[] = {
        {"add", "ii"},       {"sub", "ii"},     {"mul", "ii"},    {"floordiv", "ii"},
        {"remainder", "ii"}, {"lt", "ii"},      {"eq", "ii"},     {"max", "ii"},
        {"neg", "i"},        {"__and__", "bb"}, {"__not__", "b"}, {"size", "ti"},
        {"dim", "t"},        {"len", "t"},      {"numel", "t"},   {"is_floating_point", "t"}};
    td_ir_value *inputs[2] = {NULL, NULL};
    int k = pick(m, (int)(sizeof rows / sizeof *rows)), n = (int)strlen(rows[k].takes);
    for (int j = 0; j < n; j++)
        inputs[j] = rows[k].takes[j] == 'b'   ? any_of(m, m->bools, m->nbools)
                    : rows[k].takes[j] == 't' ? any_of(m, m->tensors, m->ntensors)
                                              : number(m, block, true);
    const td_scalar *row = td_scalar_find(rows[k].name, strlen(rows[k].name), n, inputs);
    const td_ir_type *type = row ? td_scalar_result(row, m->graph, n, inputs) : NULL;
    td_ir_node *node = type ? td_ir_append(block, TD_IR_SCALAR, n, inputs, 1, &type) : NULL;
    if (!node)
        return;
    node->scalar = row;
    see(m, node->outputs[0]);
}

/* ---- blocks ---- */

static void add_nodes(maker *m, td_ir_block *block, int n, int depth);

static td_ir_value *condition(maker *m, td_ir_block *block) {
    return m->nbools && pick(m, 3) ? any_of(m, m->bools, m->nbools)
                                   : td_ir_add_constant(block, TD_B(pick(m, 4) != 0));
}

static void add_if(maker *m, td_ir_block *block, int depth) {
    const td_ir_type *tensor = td_ir_simple_type(TD_IR_TENSOR);
    td_ir_value *c = condition(m, block), *ends[2];
    td_ir_node *node = c ? td_ir_append(block, TD_IR_IF, 1, &c, 1, &tensor) : NULL;
    for (int b = 0; node && b < 2; b++) {
        maker before = *m;
        td_ir_block *inner = td_ir_add_block(node);
        if (!inner)
            return;
        add_nodes(m, inner, pick(m, 4), depth + 1);
        ends[b] = any_of(m, m->tensors, m->ntensors);
        td_ir_set_outputs(inner, 1, &ends[b]);
        before.state = m->state;
        *m = before;
    }
    if (!node)
        return;
    if (td_ir_type_equal(ends[0]->type, ends[1]->type))
        node->outputs[0]->type = ends[0]->type;
    see(m, node->outputs[0]);
}

/* The last value of the wanted type that is seen. */
static td_ir_value *last_of_type(const maker *m, const td_ir_type *type) {
    for (int k = m->ntensors - 1; k >= 0; k--)
        if (td_ir_type_equal(m->tensors[k]->type, type))
            return m->tensors[k];
    return NULL;
}

static void add_loop(maker *m, td_ir_block *block, int depth) {
    static const int64_t trips[] = {0, 1, 2, 3, 5, 70};
    td_ir_value *most = m->nints && !pick(m, 4)
                            ? any_of(m, m->ints, m->nints)
                            : td_ir_add_constant(block, TD_I(trips[pick(m, depth ? 5 : 6)]));
    td_ir_value *go = pick(m, 3) ? td_ir_add_constant(block, TD_B(true)) : condition(m, block);
    td_ir_value *x = any_of(m, m->tensors, m->ntensors), *y = any_of(m, m->tensors, m->ntensors);
    td_ir_value *inputs[4] = {most, go, x, y};
    const td_ir_type *types[2] = {x->type, y->type};
    td_ir_node *node = td_ir_append(block, TD_IR_LOOP, 4, inputs, 2, types);
    td_ir_block *body = td_ir_add_block(node);
    if (!body)
        return;
    maker before = *m;
    see(m, td_ir_add_input(body, td_ir_simple_type(TD_IR_INT), "i"));
    see(m, td_ir_add_input(body, x->type, "u"));
    see(m, td_ir_add_input(body, y->type, "v"));
    add_nodes(m, body, 1 + pick(m, 4), depth + 1);
    td_ir_value *again = pick(m, 3) ? td_ir_add_constant(body, TD_B(true)) : condition(m, body);
    td_ir_value *ends[3] = {again, last_of_type(m, x->type), last_of_type(m, y->type)};
    if (pick(m, 4) == 0)
        ends[1] = pick(m, 2) ? body->inputs[1] : ends[1];
    td_ir_set_outputs(body, 3, ends);
    before.state = m->state;
    *m = before;
    see(m, node->outputs[0]);
    see(m, node->outputs[1]);
}

static void add_with(maker *m, td_ir_block *block, int depth) {
    static const td_ir_mode modes[] = {
        {.kind = TD_IR_NO_GRAD},
        {.kind = TD_IR_INFERENCE_MODE},
        {.kind = TD_IR_AUTOCAST, .enabled = true, .dtype = TD_BF16, .cached = true},
        {.kind = TD_IR_AUTOCAST, .enabled = true, .dtype = TD_F16},
        {.kind = TD_IR_AUTOCAST, .dtype = TD_BF16}};
    const td_ir_type *tensor = td_ir_simple_type(TD_IR_TENSOR);
    td_ir_node *node = td_ir_append(block, TD_IR_WITH, 0, NULL, 1, &tensor);
    td_ir_block *inner = td_ir_add_block(node);
    if (!inner)
        return;
    node->mode = modes[pick(m, (int)(sizeof modes / sizeof *modes))];
    maker before = *m;
    td_modes around = td_ir_enter(node);
    add_nodes(m, inner, 1 + pick(m, 4), depth + 1);
    td_set_modes(around);
    td_ir_value *end = any_of(m, m->tensors, m->ntensors);
    td_ir_set_outputs(inner, 1, &end);
    before.state = m->state;
    *m = before;
    node->outputs[0]->type = end->type;
    see(m, node->outputs[0]);
}

static void add_nodes(maker *m, td_ir_block *block, int n, int depth) {
    for (int made = 0, tries = 0; made < n && tries < 200 * n && !m->graph->failed; tries++) {
        int before = m->ntensors;
        int kind = pick(m, 160) + (depth < MOST_DEPTH ? 0 : 2);
        if (kind == 0)
            add_if(m, block, depth);
        else if (kind == 1)
            add_loop(m, block, depth);
        else if (kind == 2 && depth < MOST_DEPTH)
            add_with(m, block, depth);
        else if (kind < 6)
            add_scalar(m, block);
        else if (kind < 9)
            repeat_operator(m, block);
        else if (kind < 12)
            add_idle(m, block);
        else
            add_operator(m, block);
        made += m->ntensors != before;
    }
}

static void add_inputs(maker *m) {
    static const struct {
        td_dtype dtype;
        int n;
        int64_t sizes[2], strides[2];
    } shapes[] = {{TD_F32, 2, {2, 3}, {3, 1}},  {TD_F32, 1, {3}, {1}},
                  {TD_F32, 2, {2, 3}, {1, 2}},  {TD_F64, 2, {2, 3}, {3, 1}},
                  {TD_I64, 2, {2, 3}, {3, 1}},  {TD_F32, 0, {0}, {0}},
                  {TD_F32, 2, {2, 1}, {1, 1}},  {TD_F16, 2, {2, 3}, {3, 1}},
                  {TD_BOOL, 2, {2, 3}, {3, 1}}, {TD_F32, 2, {2, 3}, {6, 2}}};
    for (int k = 0, n = 2 + pick(m, 4); k < n; k++) {
        int s = k ? pick(m, (int)(sizeof shapes / sizeof *shapes)) : 0;
        td_ir_type type = {.kind = TD_IR_TENSOR,
                           .dtype = (uint8_t)shapes[s].dtype,
                           .placed = true,
                           .device = TD_DEVICE_CPU,
                           .n = shapes[s].n,
                           .sizes = shapes[s].sizes,
                           .strides = shapes[s].strides};
        td_ir_value *x = td_ir_add_input(m->graph->block, td_ir_type_copy(m->graph, &type), "x");
        if (x)
            see(m, x);
    }
    see(m, td_ir_add_input(m->graph->block, td_ir_simple_type(TD_IR_BOOL), "c"));
    see(m, td_ir_add_input(m->graph->block, td_ir_simple_type(TD_IR_INT), "n"));
}

td_ir_graph *random_graph(uint64_t seed) {
    maker m = {.state = seed * 0x9E3779B97F4A7C15u, .graph = td_ir_graph_new()};
    td_ir_value *outputs[4];
    if (!m.graph)
        return NULL;
    add_inputs(&m);
    add_nodes(&m, m.graph->block, 6 + pick(&m, 20), 0);
    int n = 1 + pick(&m, 4);
    for (int k = 0; k < n; k++)
        outputs[k] = m.tensors[m.ntensors - 1 - pick(&m, m.ntensors < 8 ? m.ntensors : 8)];
    td_ir_set_outputs(m.graph->block, n, outputs);
    return m.graph;
}

/* bisect.c: runs a graph before and after each pass and compares.
 *
 * Where the values of nodes are wanted, a copy of the graph gets a clone behind each node, and the
 * clones are results of the copy: what is written later is not seen in them.
 */
#include "engine/script/passes/bisect.h"

#include "engine/core/memory.h"
#include "engine/core/modes.h"
#include "engine/core/random.h"
#include "engine/script/passes/copy.h"
#include "engine/script/run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What a run did. */
typedef struct outcome {
    td_status status;
    char message[256];
    int ninputs, noutputs;
    td_value *values; /* inputs as they were left, then outputs */
} outcome;

static void clear(outcome *o) {
    for (int k = 0; o->values && k < o->ninputs + o->noutputs; k++)
        td_script_drop(&o->values[k]);
    td_free(o->values);
    o->values = NULL;
}

/* ---- copies of inputs ---- */

/* With memory of its own, in which it lies as x does; what shared memory does so again. */
static td_status copy_tensor(const td_value *inputs, int k, const td_value *copies,
                             td_tensor **out) {
    td_tensor *x = inputs[k].tensor;
    td_storage *storage = NULL;
    td_device device = td_tensor_device(x);
    if (x->layout != TD_STRIDED || device.type != TD_CPU)
        return TD_APPLY(out, clone, TD_T(x));
    for (int j = 0; j < k; j++)
        if (inputs[j].kind == TD_KIND_TENSOR && inputs[j].tensor->storage == x->storage)
            return td_tensor_over(x, copies[j].tensor->storage, out);
    td_status status = td_storage_empty(device, x->storage->bytes, &storage);
    if (status)
        return status;
    if (x->storage->bytes)
        memcpy(storage->data, x->storage->data, x->storage->bytes);
    status = td_tensor_over(x, storage, out);
    td_storage_release(storage);
    return status;
}

static td_status copy_inputs(const td_value *inputs, outcome *o) {
    td_status status = TD_OK;
    for (int k = 0; k < o->ninputs && status == TD_OK; k++) {
        td_tensor *x = NULL;
        if (inputs[k].kind != TD_KIND_TENSOR) {
            o->values[k] = inputs[k].kind == TD_KIND_TENSORS ? TD_NIL : inputs[k];
            continue;
        }
        status = copy_tensor(inputs, k, o->values, &x);
        if (status == TD_OK)
            o->values[k] = TD_T(x);
    }
    return status;
}

/* ---- runs ---- */

static td_status run(td_ir_graph *g, const td_value *inputs, td_generator generator, outcome *o) {
    td_script *script = NULL;
    *o = (outcome){.ninputs = g->block->ninputs, .noutputs = g->block->noutputs};
    o->values = td_calloc((size_t)(o->ninputs + o->noutputs) + 1, sizeof *o->values);
    td_status status = o->values ? TD_OK : td_fail(TD_ENOMEM, "out of memory");
    if (status == TD_OK)
        status = td_script_new(g, &script);
    if (status == TD_OK)
        status = copy_inputs(inputs, o);
    if (status == TD_OK) {
        bool recording = td_set_grad_enabled(false);
        td_generator_set(NULL, generator);
        o->status = td_script_run(script, o->values, o->values + o->ninputs);
        td_set_grad_enabled(recording);
        if (o->status)
            snprintf(o->message, sizeof o->message, "%s", td_error_message());
        if (o->status == TD_ENOMEM || o->status == TD_EINTR)
            status = o->status;
    }
    td_script_release(script);
    if (status)
        clear(o);
    return status;
}

/* ---- comparison ---- */

static bool same_numbers(double a, double b) {
    return !memcmp(&a, &b, sizeof a) || (isnan(a) && isnan(b));
}

/* The elements in row-major order; NULL: out of memory. */
static char *elements_of(td_tensor *x) {
    td_tensor *host = NULL, *whole = NULL;
    size_t bytes = (size_t)x->numel * td_tensor_itemsize(x);
    char *block = td_malloc(bytes + 1);
    if (TD_APPLY(&host, to, TD_T(x), TD_NIL, TD_DEVICE(TD_DEVICE_CPU)) == TD_OK &&
        TD_APPLY(&whole, contiguous, TD_T(host)) == TD_OK && block && bytes)
        memcpy(block, whole->data, bytes);
    else if (!whole) {
        td_free(block);
        block = NULL;
    }
    td_release(host);
    td_release(whole);
    return block;
}

static bool same_elements(td_tensor *a, td_tensor *b, char *why, size_t size) {
    char *p = elements_of(a), *q = elements_of(b);
    size_t item = td_tensor_itemsize(a);
    td_dtype dtype = (td_dtype)a->dtype;
    bool same = p && q;
    if (!same)
        snprintf(why, size, "elements that can't be read");
    for (int64_t k = 0; same && k < a->numel; k++) {
        const char *x = p + (size_t)k * item, *y = q + (size_t)k * item;
        if (!memcmp(x, y, item))
            continue;
        double was = td_load_double(dtype, x), is = td_load_double(dtype, y);
        same = isnan(was) && isnan(is);
        if (!same)
            snprintf(why, size, "element %lld: %.9g becomes %.9g", (long long)k + 1, was, is);
    }
    td_free(p);
    td_free(q);
    return same;
}

static bool same_value(td_value a, td_value b, char *why, size_t size) {
    if (a.kind != b.kind) {
        snprintf(why, size, "a value of another kind");
        return false;
    }
    if (a.kind == TD_KIND_TENSOR) {
        td_tensor *x = a.tensor, *y = b.tensor;
        if (x->dtype == y->dtype && td_tensor_same_shape(x, y))
            return x->layout != TD_STRIDED || y->layout != TD_STRIDED ||
                   same_elements(x, y, why, size);
        snprintf(why, size, "another shape or dtype");
        return false;
    }
    bool same = a.kind == TD_KIND_FLOAT  ? same_numbers(a.f, b.f)
                : a.kind == TD_KIND_INT  ? a.i == b.i
                : a.kind == TD_KIND_BOOL ? a.b == b.b
                                         : true;
    if (!same)
        snprintf(why, size, "%.9g becomes %.9g", td_arg_double(a), td_arg_double(b));
    return same;
}

static bool same_outcome(const outcome *a, const outcome *b, char *why, size_t size) {
    char what[160];
    int n = a->ninputs + (a->status ? 0 : a->noutputs);
    if (a->status != b->status || strcmp(a->message, b->message)) {
        snprintf(why, size, "error \"%.80s\" becomes \"%.80s\"", a->message, b->message);
        return false;
    }
    for (int k = 0; k < n; k++)
        if (!same_value(a->values[k], b->values[k], what, sizeof what)) {
            bool input = k < a->ninputs;
            snprintf(why, size, "%s %d, %.150s", input ? "input" : "result",
                     (input ? k : k - a->ninputs) + 1, what);
            return false;
        }
    return true;
}

/* ---- values of nodes ---- */

/* A copy of a graph whose results are clones of all tensors that nodes of its own block make, in
 * their order; *names are of these values, borrowed from the copy. NULL: out of memory. */
static td_ir_graph *with_values(const td_ir_graph *g, const td_ir_value ***values) {
    td_ir_graph *copy = td_ir_graph_copy(g);
    int n = 0, room = 0;
    for (td_ir_node *node = copy ? copy->block->first : NULL; node; node = node->next)
        room += node->noutputs;
    td_ir_value **clones = copy ? td_ir_alloc(copy, sizeof *clones * (size_t)(room + 1)) : NULL;
    const td_ir_value **made = copy ? td_ir_alloc(copy, sizeof *made * (size_t)(room + 1)) : NULL;
    td_ir_node *last = clones && made ? copy->block->last : NULL;
    for (td_ir_node *node = last ? copy->block->first : NULL, *next; node && !copy->failed;
         node = node == last ? NULL : next) {
        next = node->next;
        for (int k = 0; k < node->noutputs; k++) {
            if (node->outputs[k]->type->kind != TD_IR_TENSOR)
                continue;
            td_ir_value *format = td_ir_add_constant(copy->block, TD_STRING("preserve"));
            td_ir_value *inputs[2] = {node->outputs[k], format};
            td_ir_node *clone =
                td_ir_append(copy->block, TD_IR_OPERATOR, 2, inputs, 1, &node->outputs[k]->type);
            if (!clone)
                break;
            clone->op = TD_OP(clone);
            if (next) {
                td_ir_move_before(format->node, next);
                td_ir_move_before(clone, next);
            }
            made[n] = node->outputs[k];
            clones[n++] = clone->outputs[0];
        }
    }
    if (copy && clones)
        td_ir_set_outputs(copy->block, n, clones);
    if (copy && (copy->failed || !clones)) {
        td_ir_graph_release(copy);
        return NULL;
    }
    *values = made;
    return copy;
}

/* A node of a printed graph: the line in which its first value is made. */
static char *line_of(const td_ir_graph *g, const td_ir_value *value) {
    char wanted[128];
    char *text = td_ir_print(g), *line = NULL;
    snprintf(wanted, sizeof wanted, "%%%.100s : ", value->name);
    for (char *at = text; at && *at && !line;) {
        size_t length = strcspn(at, "\n");
        char *found = strstr(at, wanted), *equals = strstr(at, " = ");
        if (found && equals && found < at + length && equals < at + length && found < equals) {
            size_t blank = strspn(at, " ");
            line = td_malloc(length - blank + 1);
            if (line) {
                memcpy(line, at + blank, length - blank);
                line[length - blank] = 0;
            }
        }
        at += length + (at[length] == '\n');
    }
    td_free(text);
    return line;
}

static void tell_node(const td_ir_graph *after, const td_ir_value *value, td_bisect_result *out) {
    td_ir_node *node = value->node;
    out->node = line_of(after, value);
    out->place = node->place;
    snprintf(out->file, sizeof out->file, "%s", node->place.file ? node->place.file : "");
    out->place.file = node->place.file ? out->file : NULL;
}

static int find_name(int n, const td_ir_value *const *values, const char *name) {
    for (int k = 0; k < n; k++)
        if (strcmp(values[k]->name, name) == 0)
            return k;
    return -1;
}

static td_status find_node(const td_ir_graph *before, const td_ir_graph *after,
                           const td_value *inputs, td_generator generator, td_bisect_result *out) {
    const td_ir_value **was = NULL, **is = NULL;
    outcome a = {.values = NULL}, b = {.values = NULL};
    td_ir_graph *old = with_values(before, &was), *now = with_values(after, &is);
    td_status status = old && now ? TD_OK : td_fail(TD_ENOMEM, "out of memory");
    if (status == TD_OK)
        status = run(old, inputs, generator, &a);
    if (status == TD_OK)
        status = run(now, inputs, generator, &b);
    for (int k = 0; status == TD_OK && !a.status && !b.status && k < b.noutputs; k++) {
        int j = find_name(a.noutputs, was, is[k]->name);
        char what[160];
        if (j >= 0 &&
            !same_value(a.values[a.ninputs + j], b.values[b.ninputs + k], what, sizeof what)) {
            tell_node(after, is[k], out);
            snprintf(out->why, sizeof out->why, "%%%.60s, %.150s", is[k]->name, what);
            break;
        }
    }
    clear(&a);
    clear(&b);
    td_ir_graph_release(old);
    td_ir_graph_release(now);
    return status;
}

/* ---- the search ---- */

enum { MOST_PASSES = 128 };

/* One pass more. *differs: it is this one. */
static td_status try_pass(td_ir_graph **current, const td_pass *pass, const td_value *inputs,
                          td_generator generator, const outcome *wanted, td_bisect_result *out) {
    outcome o = {.values = NULL};
    td_ir_graph *before = td_ir_graph_copy(*current);
    td_status status =
        before ? td_pass_run(*current, pass, NULL, NULL) : td_fail(TD_ENOMEM, "out of memory");
    if (status == TD_OK)
        status = run(*current, inputs, generator, &o);
    if (status == TD_OK && !same_outcome(wanted, &o, out->why, sizeof out->why)) {
        out->pass = pass;
        out->before = td_ir_print(before);
        out->after = td_ir_print(*current);
        status = find_node(before, *current, inputs, generator, out);
    }
    clear(&o);
    td_ir_graph_release(before);
    return status;
}

td_status td_bisect(const td_ir_graph *g, const td_value *inputs, int npasses,
                    const td_pass *const *passes, const td_passes_options *options,
                    td_bisect_result *out) {
    const td_pass *all[MOST_PASSES];
    outcome wanted = {.values = NULL};
    td_generator generator = td_generator_get(NULL);
    td_ir_graph *current = td_ir_graph_copy(g);
    td_status status = current ? TD_OK : td_fail(TD_ENOMEM, "out of memory");
    *out = (td_bisect_result){.pass = NULL};
    if (!passes) {
        npasses = td_passes_sequence(options, MOST_PASSES, all);
        npasses = npasses < MOST_PASSES ? npasses : MOST_PASSES;
        passes = all;
    }
    if (status == TD_OK)
        status = run(current, inputs, generator, &wanted);
    for (int k = 0; k < npasses && status == TD_OK && !out->pass; k++) {
        status = try_pass(&current, passes[k], inputs, generator, &wanted, out);
        out->step = out->pass ? k + 1 : 0;
    }
    clear(&wanted);
    td_ir_graph_release(current);
    td_generator_set(NULL, generator);
    if (status)
        td_bisect_result_clear(out);
    return status;
}

void td_bisect_result_clear(td_bisect_result *result) {
    td_free(result->node);
    td_free(result->before);
    td_free(result->after);
    *result = (td_bisect_result){.pass = NULL};
}

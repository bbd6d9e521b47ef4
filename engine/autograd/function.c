/* function.c: calls of functions with a gradient of their own (function.h). A td_function owns its
 * node from the beginning of a call until the outputs take the node over; from then on the node
 * owns the td_function. */
#include "engine/autograd/function.h"

#include "engine/autograd/node.h"
#include "engine/autograd/saved.h"
#include "engine/core/memory.h"

#include <pthread.h>
#include <string.h>

typedef struct saved {
    td_tensor *tensor; /* owned; NULL: nothing, or packed */
    td_packed *packed; /* owned */
    td_edge edge;      /* its history; owned */
    int output;        /* which output it is; -1: none */
    unsigned version;
} saved;

struct td_function {
    const td_function_class *function_class;
    void *data;
    td_node *node;      /* owned until the end, then the other way round */
    td_tensor **inputs; /* owned until the end */
    bool *dirty;        /* by input */
    td_tensor **plain;  /* marked non-differentiable; owned until the end */
    saved *saved;
    td_meta *outputs; /* shape and dtype of each, for zeros; ndim -1: not differentiable */
    int ninputs, nplain, nsaved, noutputs;
    bool records, keeps_missing; /* one input wants a gradient; no zeros for what does not flow */
};

static td_status no_memory(void) {
    return td_fail(TD_ENOMEM, "out of memory for a function's call");
}

/* ---- names ---- */

typedef struct name {
    struct name *next;
    char text[];
} name;

const char *td_function_name(const char *text) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static name *names;
    pthread_mutex_lock(&lock);
    name *n = names;
    while (n && strcmp(n->text, text))
        n = n->next;
    size_t size = strlen(text) + 1;
    if (!n && (n = td_malloc(sizeof *n + size))) {
        memcpy(n->text, text, size);
        n->next = names;
        names = n;
    }
    pthread_mutex_unlock(&lock);
    return n ? n->text : NULL;
}

/* ---- death ---- */

static void drop_saved(td_function *f) {
    for (int k = 0; k < f->nsaved; k++) {
        td_release(f->saved[k].tensor);
        td_packed_free(f->saved[k].packed);
        td_edge_release(&f->saved[k].edge);
    }
    td_free(f->saved);
    f->saved = NULL;
    f->nsaved = 0;
}

/* What is needed until the outputs are there. */
static void drop_call(td_function *f) {
    for (int k = 0; k < f->ninputs && f->inputs; k++)
        td_release(f->inputs[k]);
    for (int k = 0; k < f->nplain; k++)
        td_release(f->plain[k]);
    td_free(f->inputs);
    td_free(f->plain);
    f->inputs = f->plain = NULL;
    f->nplain = 0;
}

static void destroy(void *payload) {
    td_function *f = payload;
    drop_saved(f);
    drop_call(f);
    td_free(f->dirty);
    td_free(f->outputs);
    if (f->function_class->destroy)
        f->function_class->destroy(f->data);
    td_free(f);
}

/* With the reference to its node the function goes, unless others hold the node. */
void td_function_drop(td_function *f) {
    td_node *node = f->node;
    if (node)
        td_node_release(node);
    else
        destroy(f);
}

/* ---- backward ---- */

static td_status materialize(const td_function *f, td_tensor *const *gout, td_tensor **full) {
    td_status status = TD_OK;
    for (int k = 0; k < f->noutputs && status == TD_OK; k++) {
        const td_meta *m = &f->outputs[k];
        full[k] = td_retain(gout[k]);
        if (!full[k] && !f->keeps_missing && m->ndim >= 0)
            status = TD_APPLY(&full[k], zeros, TD_INTS(m->ndim, m->sizes), TD_DTYPE(m->dtype),
                              TD_DEVICE(m->device));
    }
    return status;
}

static td_status apply(void *payload, td_tensor *const *gout, td_tensor **in) {
    td_function *f = payload;
    td_tensor *few[8] = {NULL}, **full = few;
    if (f->noutputs > 8 && !(full = td_calloc((size_t)f->noutputs, sizeof *full)))
        return no_memory();
    td_status status = materialize(f, gout, full);
    if (status == TD_OK)
        status = f->function_class->backward(f, f->data, full, in);
    for (int k = 0; k < f->noutputs; k++)
        td_release(full[k]);
    if (full != few)
        td_free(full);
    return status;
}

/* ---- a call ---- */

static const td_node_class node_class = {
    .name = "FunctionBackward", .apply = apply, .destroy = destroy, .is_function = true};

static td_status hold_inputs(td_function *f, int n, td_tensor *const *inputs) {
    f->inputs = td_calloc((size_t)n + 1, sizeof *f->inputs);
    f->dirty = td_calloc((size_t)n + 1, sizeof *f->dirty);
    if (!f->inputs || !f->dirty)
        return no_memory();
    f->ninputs = n;
    for (int k = 0; k < n; k++) {
        td_tensor *x = f->inputs[k] = td_retain(inputs[k]);
        if (!x || !td_is_recording())
            continue;
        td_status status = td_view_is_stale(x) ? td_view_refresh(x) : TD_OK;
        if (status)
            return status;
        f->records |= x->requires_grad;
    }
    return TD_OK;
}

td_status td_function_begin(const td_function_class *function_class, void *data, int ninputs,
                            td_tensor *const *inputs, td_function **out) {
    *out = NULL;
    td_function *f = td_calloc(1, sizeof *f);
    if (!f) {
        if (function_class->destroy)
            function_class->destroy(data);
        return no_memory();
    }
    f->function_class = function_class;
    f->data = data;
    td_status status = hold_inputs(f, ninputs, inputs);
    if (status == TD_OK && f->records) {
        f->node = td_node_new_custom(&node_class, f, ninputs, inputs, 0, &status);
        if (f->node)
            f->node->name = function_class->name;
        for (int k = 0; f->node && k < ninputs; k++)
            if (inputs[k])
                f->node->slots[k].edge = td_edge_of(inputs[k]);
    }
    if (status)
        td_function_drop(f);
    else
        *out = f;
    return status;
}

bool td_function_needs(const td_function *f, int input) {
    if (input < 0 || !f->records)
        return f->records;
    const td_edge *edge = &f->node->slots[input].edge;
    return edge->node || edge->leaf;
}

td_status td_function_save(td_function *f, int n, td_tensor *const *tensors) {
    drop_saved(f);
    f->saved = td_calloc((size_t)n + 1, sizeof *f->saved);
    if (!f->saved)
        return no_memory();
    f->nsaved = n;
    for (int k = 0; k < n; k++)
        f->saved[k].tensor = td_retain(tensors[k]);
    return TD_OK;
}

static int find(td_tensor *const *among, int n, const td_tensor *x) {
    for (int k = 0; k < n; k++)
        if (among[k] == x)
            return k;
    return -1;
}

td_status td_function_mark_dirty(td_function *f, td_tensor *x) {
    int k = find(f->inputs, f->ninputs, x);
    if (k < 0)
        return td_fail(TD_EVALUE, "mark_dirty: the tensor is no input of the function");
    f->dirty[k] = true;
    return TD_OK;
}

td_status td_function_mark_non_differentiable(td_function *f, td_tensor *x) {
    td_tensor **more = td_realloc(f->plain, ((size_t)f->nplain + 1) * sizeof *more);
    if (!more)
        return no_memory();
    f->plain = more;
    f->plain[f->nplain++] = td_retain(x);
    return TD_OK;
}

void td_function_set_materialize(td_function *f, bool on) {
    f->keeps_missing = !on;
}

/* ---- its end ---- */

static bool is_dirty(const td_function *f, const td_tensor *x) {
    int k = find(f->inputs, f->ninputs, x);
    return k >= 0 && f->dirty[k];
}

static bool is_differentiable(const td_function *f, const td_tensor *x) {
    return x && td_dtype_is_float((td_dtype)x->dtype) && find(f->plain, f->nplain, x) < 0;
}

static td_status check_dirty(const td_function *f, int n, td_tensor *const *outputs) {
    for (int k = 0; k < f->ninputs; k++) {
        const td_tensor *x = f->inputs[k];
        if (!f->dirty[k])
            continue;
        if (find(outputs, n, x) < 0)
            return td_fail(TD_EAUTOGRAD,
                           "input %d was marked dirty and is no output: what is "
                           "written in place must be returned",
                           k + 1);
        const td_tensor *begins = x->base ? x->base : x;
        if (f->records && begins->requires_grad && td_is_leaf(begins))
            return td_fail(TD_EAUTOGRAD, "input %d, a %s that requires grad, is written in place",
                           k + 1, x->base ? "view of a leaf" : "leaf");
    }
    return TD_OK;
}

/* As views do: a leaf that requires grad is looked into itself. */
static void look_into(td_tensor *view, td_tensor *x) {
    bool begins = x->requires_grad && td_is_leaf(x);
    view->base = td_retain(x->base && !begins ? x->base : x);
    view->view_version = td_tensor_version(view);
}

/* Outputs that can't have the node as their history themselves are seen through others. */
static td_status replace_outputs(const td_function *f, int n, td_tensor **outputs) {
    for (int k = 0; k < n; k++) {
        td_tensor *x = outputs[k], *other;
        bool taken = x && (x->requires_grad || find(f->inputs, f->ninputs, x) >= 0 ||
                           find(outputs, k, x) >= 0);
        if (!taken || is_dirty(f, x))
            continue;
        td_status status = td_tensor_alias(x, &other);
        if (status)
            return status;
        look_into(other, x);
        if (!is_differentiable(f, x) && find(f->plain, f->nplain, x) >= 0) {
            status = td_function_mark_non_differentiable((td_function *)f, other);
            if (status) {
                td_release(other);
                return status;
            }
        }
        outputs[k] = other;
        td_release(x);
    }
    return TD_OK;
}

/* Shapes and dtypes of the outputs, and room for their histories. */
static td_status describe(td_function *f, int n, td_tensor *const *outputs) {
    f->outputs = td_calloc((size_t)n + 1, sizeof *f->outputs);
    if (!f->outputs)
        return no_memory();
    f->noutputs = n;
    f->node->nresults = (uint16_t)n;
    for (int k = 0; k < n; k++) {
        td_tensor *x = outputs[k];
        td_meta *m = &f->outputs[k];
        m->ndim = -1;
        if (!is_differentiable(f, x))
            continue;
        if (!td_autograd_get(x))
            return TD_ENOMEM;
        m->dtype = (td_dtype)x->dtype;
        m->device = td_tensor_device(x);
        m->ndim = x->ndim;
        memcpy(m->sizes, x->sizes, sizeof(int64_t) * x->ndim);
    }
    return TD_OK;
}

/* An output, an input as it was given, or a tensor of its own; without what would hold the node. */
static td_status settle(const td_function *f, saved *s, int n, td_tensor *const *given,
                        td_tensor *const *outputs) {
    td_tensor *x = s->tensor;
    s->output = -1;
    if (!x)
        return TD_OK;
    if (x->storage->inference)
        return td_fail_inference();
    s->version = td_tensor_version(x);
    int output = find(given, n, x), input = find(f->inputs, f->ninputs, x);
    if (input >= 0 && !f->dirty[input])
        output = -1;
    if (output >= 0)
        s->output = is_differentiable(f, outputs[output]) ? output : -1;
    else
        s->edge = td_edge_of(x);
    if (s->edge.leaf) {
        if (!td_modes_current.keeper) /* it is what was saved itself */
            td_edge_release(&s->edge);
        return TD_OK;
    }
    td_status status = td_tensor_alias(x, &s->tensor);
    if (status)
        s->tensor = NULL;
    td_release(x);
    return status;
}

static td_status settle_all(td_function *f, int n, td_tensor *const *given,
                            td_tensor *const *outputs) {
    td_status status = TD_OK;
    for (int k = 0; k < f->nsaved && status == TD_OK; k++) {
        saved *s = &f->saved[k];
        status = settle(f, s, n, given, outputs);
        if (status || !s->tensor || !td_modes_current.keeper)
            continue;
        status = td_pack_saved(s->tensor, &s->packed);
        td_release(s->tensor);
        s->tensor = NULL;
    }
    return status;
}

/* The writes through views that dirty inputs are. */
static td_status prepare_writes(const td_function *f, int n, td_tensor *const *outputs,
                                td_write *writes) {
    td_status status = TD_OK;
    for (int k = 0; k < n && status == TD_OK; k++) {
        td_tensor *x = outputs[k];
        if (x)
            status = td_autograd_expect(x, f->node);
        if (status == TD_OK && is_differentiable(f, x) && is_dirty(f, x) && x->base)
            status = td_view_prepare(x, f->node, (uint32_t)k,
                                     (uint32_t)find(f->inputs, f->ninputs, x), &writes[k]);
    }
    return status;
}

static void publish(const td_function *f, int n, td_tensor *const *outputs, td_write *writes) {
    for (int k = 0; k < n; k++) {
        td_tensor *x = outputs[k];
        if (!is_differentiable(f, x)) {
            if (x && is_dirty(f, x))
                td_autograd_forget(x);
        } else if (writes[k].outer) {
            td_view_publish(x, &writes[k]);
        } else {
            td_autograd_attach(x, f->node, (uint32_t)k);
        }
    }
}

static td_status finish(td_function *f, int n, td_tensor **outputs, td_tensor **given,
                        td_write *writes) {
    td_status status = TD_OK;
    for (int k = 0; k < n; k++)
        given[k] = td_retain(outputs[k]);
    TD_TRY(check_dirty(f, n, outputs));
    if (!f->records)
        return TD_OK;
    TD_TRY(replace_outputs(f, n, outputs));
    TD_TRY(describe(f, n, outputs));
    TD_TRY(settle_all(f, n, given, outputs));
    TD_TRY(prepare_writes(f, n, outputs, writes));
    publish(f, n, outputs, writes);
done:
    return status;
}

td_status td_function_end(td_function *f, int n, td_tensor **outputs) {
    td_status status;
    td_tensor **given = td_calloc((size_t)n + 1, sizeof *given);
    td_write *writes = td_calloc((size_t)n + 1, sizeof *writes);
    if (!given || !writes)
        status = no_memory();
    else if (n > UINT16_MAX)
        status = td_fail(TD_EVALUE, "a function has at most %d outputs", UINT16_MAX);
    else
        status = finish(f, n, outputs, given, writes);
    for (int k = 0; k < n && given; k++)
        td_release(given[k]);
    for (int k = 0; k < n && writes; k++)
        td_view_abandon(&writes[k]);
    td_free(given);
    td_free(writes);
    drop_call(f);
    td_function_drop(f);
    return status;
}

/* ---- what it saved ---- */

int td_function_nsaved(const td_function *f) {
    return f->nsaved;
}

int td_function_ninputs(const td_function *f) {
    return f->ninputs;
}

bool td_function_wants(const td_function *f, int input) {
    return td_node_wants(f->node, (uint32_t)input);
}

int td_function_noutputs(const td_function *f) {
    return f->noutputs;
}

td_status td_function_saved(td_function *f, int k, td_tensor **out) {
    const saved *s = &f->saved[k];
    td_tensor *x = NULL;
    *out = NULL;
    if (!s->tensor && !s->packed)
        return TD_OK;
    td_status status =
        s->tensor ? td_check_version(f->node, s->tensor, s->version) : td_unpack(s->packed, &x);
    if (status)
        return status;
    if (!x)
        x = td_retain(s->tensor);
    if (s->output >= 0)
        return td_saved_with_history(x, &(td_edge){.node = f->node, .result = (uint32_t)s->output},
                                     out);
    return td_saved_with_history(x, &s->edge, out);
}

td_tensor *td_function_take_gradient(const td_function *f, td_tensor *const *gout, int k) {
    td_tensor **given = (td_tensor **)(uintptr_t)gout; /* apply's own */
    td_tensor *x = given[k];
    if (!x || !td_node_gives_up(f->node))
        return td_retain(x);
    td_node_drop_gradient(f->node, k);
    given[k] = NULL;
    return x;
}

td_status td_function_take_saved(td_function *f, int k, td_tensor **out) {
    td_status status = td_function_saved(f, k, out);
    if (status || !td_node_gives_up(f->node))
        return status;
    td_release(f->saved[k].tensor);
    f->saved[k].tensor = NULL;
    f->node->released = true;
    return TD_OK;
}

const void *td_function_data(const td_node *node) {
    return ((const td_function *)node->payload)->data;
}

bool td_function_held(const td_node *node, int k, td_tensor **tensor, td_node **history) {
    const td_function *f = node->payload;
    if (!f || k >= f->nsaved)
        return false;
    const saved *s = &f->saved[k];
    *tensor = s->tensor ? s->tensor : s->edge.leaf;
    *history = s->edge.node;
    return true;
}

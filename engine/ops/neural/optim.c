/* optim.c: steps of optimizers: what becomes of a parameter and of its state is a text of formulas,
 * compiled to one program that runs over all parameters in one go, so that each of them, its
 * gradient and its state are read and written once. Which formulas an optimizer has is not known
 * here (lua/optim/steps.lua). */
#include "engine/core/memory.h"
#include "engine/core/modes.h"
#include "engine/ops/pointwise/pointwise.h"
#include "engine/ops/storage_overlap.h"

#include <pthread.h>
#include <string.h>

#define TD_FAMILY "optim"

enum {
    MAX_LISTS = 6, /* parameters, gradients, states */
    MAX_OPERANDS = 24,
    RECIPES = 64 /* kept; a script with all optimizers has some thirty */
};

/* ---- recipes: compiled texts ---- */

/* "param grad buffer lr momentum: buffer = ...; param = ...": names of the lists, then of the
 * numbers, then what the lists become. */
typedef struct recipe {
    int refs;     /* under the lock */
    char *text;   /* as given */
    char *header; /* cut into names */
    const char *names[MAX_OPERANDS];
    int noperands;
    uint32_t written; /* bit per list */
    const td_program *program;
} recipe;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static recipe *kept[RECIPES];
static int newest;

static void free_recipe(recipe *r) {
    td_program_release(r->program);
    td_free(r->text);
    td_free(r->header);
    td_free(r);
}

static void release_recipe(recipe *r) {
    pthread_mutex_lock(&lock);
    bool last = r && --r->refs == 0;
    pthread_mutex_unlock(&lock);
    if (last)
        free_recipe(r);
}

static recipe *find_recipe(const char *text) {
    recipe *found = NULL;
    pthread_mutex_lock(&lock);
    for (int k = 0; k < RECIPES && kept[k] && !found; k++)
        if (!strcmp(kept[k]->text, text))
            found = kept[k];
    if (found)
        found->refs++;
    pthread_mutex_unlock(&lock);
    return found;
}

/* In the place of the one that has been kept for longest. */
static void keep_recipe(recipe *r) {
    pthread_mutex_lock(&lock);
    recipe *former = kept[newest];
    kept[newest] = r;
    newest = (newest + 1) % RECIPES;
    r->refs++;
    bool last = former && --former->refs == 0;
    pthread_mutex_unlock(&lock);
    if (last)
        free_recipe(former);
}

static char *copy_text(const char *text, size_t len) {
    char *copy = td_malloc(len + 1);
    if (copy) {
        memcpy(copy, text, len);
        copy[len] = '\0';
    }
    return copy;
}

static td_status compile_recipe(recipe *r) {
    const char *colon = strchr(r->text, ':');
    r->header = colon ? copy_text(r->text, (size_t)(colon - r->text)) : NULL;
    if (!r->header)
        return colon ? td_fail(TD_ENOMEM, "out of memory")
                     : td_fail(TD_EVALUE, "names and a colon expected");
    for (char *at = r->header; at; r->noperands++) {
        if (r->noperands == MAX_OPERANDS)
            return td_fail(TD_EVALUE, "more than %d names", MAX_OPERANDS);
        r->names[r->noperands] = at;
        at = strchr(at, ' ');
        if (at)
            *at++ = '\0';
    }
    return td_program_compile_updates(colon + 1, r->noperands, r->names, &r->written, &r->program);
}

/* *out is new. */
static td_status get_recipe(const char *text, recipe **out) {
    *out = find_recipe(text);
    if (*out)
        return TD_OK;
    recipe *r = td_calloc(1, sizeof *r);
    if (r)
        r->text = copy_text(text, strlen(text));
    td_status status = r && r->text ? compile_recipe(r) : td_fail(TD_ENOMEM, "out of memory");
    if (status) {
        if (r)
            free_recipe(r);
        return status;
    }
    r->refs = 1;
    keep_recipe(r);
    *out = r;
    return TD_OK;
}

/* ---- the lists of a call ---- */

typedef struct step {
    recipe *recipe;
    int n, nlists; /* parameters; lists: of them, of gradients, of states */
    td_tensor *const *lists[MAX_LISTS];
    int nnumbers;
    const double *numbers;
    td_operand *operands, shared[MAX_OPERANDS];
    td_tensor **outs;
} step;

static td_status check_like(const step *s, int list, int k) {
    const td_tensor *x = s->lists[list][k], *param = s->lists[0][k];
    const char *name = s->recipe->names[list];
    char have[TD_SHAPE_TEXT], want[TD_SHAPE_TEXT];
    if (TD_UNLIKELY(x->layout != TD_STRIDED)) /* sparse gradients will go their own way from here */
        return td_fail(TD_ETYPE, "%s %d is not strided: this optimizer takes no sparse gradients",
                       name, k + 1);
    if (!td_tensor_same_shape(x, param))
        return td_fail(TD_ESHAPE, "%s %d has shape %s, its parameter %s", name, k + 1,
                       td_tensor_shape_text(x, have), td_tensor_shape_text(param, want));
    if (!td_dtype_is_float((td_dtype)x->dtype))
        return td_fail(TD_EDTYPE, "%s %d: floats expected, got %s", name, k + 1,
                       td_dtype_name((td_dtype)x->dtype));
    if (!td_device_same(td_tensor_device(x), td_tensor_device(param)))
        return td_fail(TD_EDEVICE, "%s %d is on %s, its parameter on %s", name, k + 1,
                       td_device_name(td_tensor_device(x)),
                       td_device_name(td_tensor_device(param)));
    return TD_OK;
}

static td_status check_written(const td_tensor *x, const char *name, int k) {
    if (td_grad_enabled() && x->requires_grad)
        return td_fail(TD_EAUTOGRAD,
                       "%s %d requires grad and is written in place: do it under tide.no_grad",
                       name, k + 1);
    if (TD_UNLIKELY(x->storage->inference && !td_modes_current.inference))
        return td_fail(TD_EAUTOGRAD,
                       "%s %d was made in inference_mode and is written outside of it", name,
                       k + 1);
    return td_tensor_overlaps(x)
               ? td_fail(TD_EVALUE,
                         "several elements of %s %d share one place in memory (an "
                         "expanded tensor?)",
                         name, k + 1)
               : TD_OK;
}

static td_status check_lists(const step *s) {
    td_status status = TD_OK;
    for (int k = 0; k < s->n && status == TD_OK; k++)
        for (int list = 0; list < s->nlists && status == TD_OK; list++) {
            status = check_like(s, list, k);
            if (status == TD_OK && s->recipe->written >> list & 1)
                status = check_written(s->lists[list][k], s->recipe->names[list], k);
        }
    return status;
}

/* The lists that were given, and whether they and the numbers are those of the recipe. */
static td_status read_call(const td_call *call, step *s) {
    const td_value *args = call->args;
    s->n = args[1].n;
    for (int k = 1; k <= MAX_LISTS && args[k].kind == TD_KIND_TENSORS; k++) {
        s->lists[s->nlists++] = args[k].tensors;
        if (args[k].n != s->n)
            return td_fail(TD_EVALUE, "%d parameters, but list %d has %d tensors", s->n, k,
                           args[k].n);
    }
    s->numbers = args[MAX_LISTS + 1].floats;
    s->nnumbers = args[MAX_LISTS + 1].n;
    td_status status = get_recipe(args[0].string, &s->recipe);
    if (status)
        return status;
    if (s->nlists + s->nnumbers != s->recipe->noperands || s->recipe->written >> s->nlists)
        return td_fail(TD_EVALUE, "%d lists and %d numbers for a recipe of %d names", s->nlists,
                       s->nnumbers, s->recipe->noperands);
    return check_lists(s);
}

static td_status fill_lists(step *s) {
    const recipe *r = s->recipe;
    int nout = r->program->noutputs;
    s->operands = td_calloc((size_t)s->n * (size_t)s->nlists, sizeof *s->operands);
    s->outs = td_malloc(sizeof *s->outs * (size_t)s->n * (size_t)nout);
    if (!s->operands || !s->outs)
        return td_fail(TD_ENOMEM, "out of memory");
    td_operand *o = s->operands;
    td_tensor **out = s->outs;
    for (int k = 0; k < s->n; k++)
        for (int list = 0; list < s->nlists; list++) {
            (o++)->tensor = s->lists[list][k];
            if (r->written >> list & 1)
                *out++ = s->lists[list][k];
        }
    for (int j = 0; j < s->nnumbers; j++)
        s->shared[j] = (td_operand){.f = s->numbers[j]};
    return TD_OK;
}

/* Do tensors that are written lie in one storage with others? Then lists may not run side by side,
 * and do so one after the other. */
static td_status shares_storage(const step *s, bool *shares) {
    td_storages set;
    int nout = s->recipe->program->noutputs;
    *shares = false;
    td_status status = td_storages_init(&set, s->n * nout);
    if (status)
        return status;
    for (int k = 0; k < s->n * nout; k++)
        *shares |= td_storages_put(&set, s->outs[k]->storage, k / nout) >= 0;
    for (int list = 0; list < s->nlists; list++)
        for (int k = 0; k < s->n && !(s->recipe->written >> list & 1); k++)
            *shares |= td_storages_find(&set, s->lists[list][k]->storage) >= 0;
    td_storages_clear(&set);
    return TD_OK;
}

/* ---- the step ---- */

static bool same_kind(const td_tensor *a, const td_tensor *b) {
    return a->dtype == b->dtype && td_device_same(td_tensor_device(a), td_tensor_device(b));
}

/* Lists of one dtype and device that follow one another run together. */
static td_status run_lists(const step *s, bool apart) {
    const td_program *program = s->recipe->program;
    int nout = program->noutputs;
    td_status status = TD_OK;
    for (int from = 0, to; from < s->n && status == TD_OK; from = to) {
        const td_tensor *p = s->lists[0][from];
        for (to = from + 1; to < s->n && !apart && same_kind(s->lists[0][to], p);)
            to++;
        td_pointwise_plan plan = {.program = program,
                                  .operands = s->operands + from * s->nlists,
                                  .compute = (td_dtype)p->dtype,
                                  .nlists = to - from,
                                  .outs = s->outs + from * nout,
                                  .shared = s->shared,
                                  .nshared = s->nnumbers};
        status = TD_RUN(td_tensor_device(p), pointwise, &plan);
        bool written = status == TD_OK || status == TD_EINTR; /* in part */
        for (int k = from * nout; k < to * nout && written; k++)
            td_tensor_bump_version(s->outs[k]);
    }
    return status;
}

static td_status run_step(td_call *call) {
    step s = {0};
    bool apart = false;
    td_status status = TD_OK;
    TD_TRY(read_call(call, &s));
    if (s.n > 0) {
        TD_TRY(fill_lists(&s));
        TD_TRY(shares_storage(&s, &apart));
        status = run_lists(&s, apart);
    }
done:
    release_recipe(s.recipe);
    td_free(s.operands);
    td_free(s.outs);
    return status;
}

/* ---- a row per optimizer, by which the profiler shows it ---- */

#define STEP(name, title)                                                                          \
    TD_OPERATOR(name##_step) = {                                                                   \
        .schema = "(str recipe, Tensor[] params, Tensor[] grads, Tensor[]? first=nil, "            \
                  "Tensor[]? second=nil, Tensor[]? third=nil, Tensor[]? fourth=nil, *, "           \
                  "number[] numbers) -> nothing",                                                  \
        .doc = "A step of " title ": parameters and states become what the recipe says.",          \
        .run = run_step,                                                                           \
        .flags = TD_OP_INTERNAL | TD_OP_FUNCTION_ONLY | TD_OP_NONDIFF | TD_OP_ANY_LAYOUT,          \
    }

STEP(sgd, "SGD");
STEP(adam, "Adam");
STEP(adamw, "AdamW");
STEP(adamax, "Adamax");
STEP(nadam, "NAdam");
STEP(radam, "RAdam");
STEP(rmsprop, "RMSprop");
STEP(rprop, "Rprop");
STEP(adagrad, "Adagrad");
STEP(adadelta, "Adadelta");

/* hooks.c: lists of hooks, and running them. Registered and removed seldom: one lock for all. */
#include "engine/autograd/node.h"
#include "engine/core/memory.h"

#include <pthread.h>
#include <string.h>

struct td_hook {
    atomic_int refs;
    uint8_t kind;
    uint32_t result;
    const td_hook_class *hook_class;
    void *payload;
    td_hooks *list; /* where it is; NULL: removed, or what it was on is gone */
    td_hook *next;
};

struct td_hooks {
    td_hook *first;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void td_hook_release(td_hook *hook) {
    if (!hook || !td_was_last(&hook->refs))
        return;
    hook->hook_class->destroy(hook->payload);
    td_free(hook);
}

/* ---- lists ---- */

static void add_last(td_hooks *list, td_hook *hook) {
    pthread_mutex_lock(&lock);
    td_hook **at = &list->first;
    while (*at)
        at = &(*at)->next;
    *at = hook;
    hook->list = list;
    pthread_mutex_unlock(&lock);
}

void td_hook_remove(td_hook *hook) {
    pthread_mutex_lock(&lock);
    td_hooks *list = hook->list;
    if (list) {
        td_hook **at = &list->first;
        while (*at != hook)
            at = &(*at)->next;
        *at = hook->next;
        hook->list = NULL;
    }
    pthread_mutex_unlock(&lock);
    if (list)
        td_hook_release(hook);
}

void td_hooks_free(td_hooks *hooks) {
    if (!hooks)
        return;
    pthread_mutex_lock(&lock);
    td_hook *first = hooks->first;
    for (td_hook *hook = first; hook; hook = hook->next)
        hook->list = NULL;
    pthread_mutex_unlock(&lock);
    for (td_hook *next; first; first = next) {
        next = first->next;
        td_hook_release(first);
    }
    td_free(hooks);
}

bool td_hooks_payload(const td_hooks *hooks, int k, const void **payload) {
    pthread_mutex_lock(&lock);
    const td_hook *hook = hooks ? hooks->first : NULL;
    for (; hook && k > 0; k--)
        hook = hook->next;
    if (hook)
        *payload = hook->payload;
    pthread_mutex_unlock(&lock);
    return hook != NULL;
}

td_status td_hooks_add(td_hooks **place, td_hook_kind kind, uint32_t result,
                       const td_hook_class *hook_class, void *payload, td_hook **out) {
    td_hook *hook = place ? td_malloc(sizeof *hook) : NULL;
    if (hook && !*place)
        *place = td_calloc(1, sizeof **place);
    if (hook && *place) {
        *hook = (td_hook){
            .kind = (uint8_t)kind, .result = result, .hook_class = hook_class, .payload = payload};
        atomic_init(&hook->refs, 2);
        add_last(*place, hook);
        *out = hook;
        return TD_OK;
    }
    td_free(hook);
    hook_class->destroy(payload);
    return place ? td_fail(TD_ENOMEM, "out of memory") : td_error_code();
}

/* ---- running ---- */

static bool is_asked(const td_hook *hook, td_hook_kind kind, uint32_t result) {
    return hook->kind == kind && hook->result == result;
}

/* The hooks to run, with a reference to each: they may remove themselves and one another. NULL:
 * none (or, with the count, out of memory). */
static td_hook **snapshot(td_hooks *hooks, td_hook_kind kind, uint32_t result, int *count) {
    td_hook **all = NULL;
    int n = 0;
    pthread_mutex_lock(&lock);
    for (td_hook *hook = hooks->first; hook; hook = hook->next)
        n += is_asked(hook, kind, result);
    if (n)
        all = td_malloc((size_t)n * sizeof *all);
    *count = n;
    n = 0;
    for (td_hook *hook = hooks->first; hook && all; hook = hook->next)
        if (is_asked(hook, kind, result)) {
            atomic_fetch_add_explicit(&hook->refs, 1, memory_order_relaxed);
            all[n++] = hook;
        }
    pthread_mutex_unlock(&lock);
    return all;
}

static bool is_removed(td_hook *hook) {
    pthread_mutex_lock(&lock);
    bool removed = !hook->list;
    pthread_mutex_unlock(&lock);
    return removed;
}

static td_status check_replacement(const td_tensor *old, const td_tensor *now) {
    char a[TD_SHAPE_TEXT], b[TD_SHAPE_TEXT];
    if (!old)
        return td_fail(TD_EVALUE, "a hook gave a gradient of shape %s where none flows",
                       td_tensor_shape_text(now, a));
    if (!td_tensor_same_shape(old, now))
        return td_fail(TD_ESHAPE, "a hook gave a gradient of shape %s in place of one of shape %s",
                       td_tensor_shape_text(now, a), td_tensor_shape_text(old, b));
    if (old->dtype != now->dtype)
        return td_fail(TD_EDTYPE, "a hook gave a %s gradient in place of a %s one",
                       td_dtype_name((td_dtype)now->dtype), td_dtype_name((td_dtype)old->dtype));
    if (!td_device_same(td_tensor_device(old), td_tensor_device(now)))
        return td_fail(TD_EDEVICE, "a hook gave a gradient on %s in place of one on %s",
                       td_device_name(td_tensor_device(now)),
                       td_device_name(td_tensor_device(old)));
    return TD_OK;
}

/* Put what a hook gave in the place of what it saw. */
static td_status replace(int n, td_tensor **values, td_tensor **replacements) {
    td_status status = TD_OK;
    for (int k = 0; k < n; k++) {
        td_tensor *now = replacements[k];
        replacements[k] = NULL;
        if (!now)
            continue;
        if (status == TD_OK)
            status = check_replacement(values[k], now);
        if (status) {
            td_release(now);
            continue;
        }
        td_release(values[k]);
        values[k] = now;
    }
    return status;
}

static td_status run_hook(td_hook *hook, const td_node *node, int n, td_tensor **values,
                          int nothers, td_tensor *const *others) {
    td_tensor *few[8] = {NULL}, **replacements = few;
    if (n > 8 && !(replacements = td_calloc((size_t)n, sizeof *replacements)))
        return td_fail(TD_ENOMEM, "out of memory");
    td_hook_call call = {node, n, values, replacements, nothers, others};
    td_status status = hook->hook_class->call(hook->payload, &call);
    if (status == TD_OK)
        status = replace(n, values, replacements);
    for (int k = 0; k < n; k++)
        td_release(replacements[k]);
    if (replacements != few)
        td_free(replacements);
    return status;
}

td_status td_hooks_run(td_hooks *hooks, const td_node *node, td_hook_kind kind, uint32_t result,
                       int n, td_tensor **values, int nothers, td_tensor *const *others) {
    int count = 0;
    td_hook **all = hooks ? snapshot(hooks, kind, result, &count) : NULL;
    if (!all)
        return count ? td_fail(TD_ENOMEM, "out of memory") : TD_OK;
    td_status status = TD_OK;
    for (int k = 0; k < count; k++) {
        if (status == TD_OK && !is_removed(all[k]))
            status = run_hook(all[k], node, n, values, nothers, others);
        td_hook_release(all[k]);
    }
    td_free(all);
    return status;
}

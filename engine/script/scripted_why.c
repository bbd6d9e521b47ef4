/* scripted_why.c: what a function tells of its specialisations. */
#include "engine/core/memory.h"
#include "engine/script/code.h"
#include "engine/script/special.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A text that grows. */
typedef struct words {
    char *text;
    size_t used, room;
    bool failed;
} words;

TD_PRINTF(2, 3) static void add(words *w, const char *format, ...) {
    char line[600];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    size_t n = strlen(line);
    if (w->used + n + 1 > w->room) {
        size_t room = 2 * (w->used + n) + 256;
        char *text = w->failed ? NULL : td_realloc(w->text, room);
        if (!text) {
            w->failed = true;
            return;
        }
        w->text = text;
        w->room = room;
    }
    memcpy(w->text + w->used, line, n + 1);
    w->used += n;
}

static void add_input(words *w, uint64_t key, const int64_t *sizes) {
    if (!td_key_is_tensor(key)) {
        if (td_key_entries(key))
            add(w, "a list of %d tensors", td_key_entries(key));
        else
            add(w, "%s", (key & 255) == TD_KIND_NIL ? "nil" : "a value");
        return;
    }
    int n = td_key_ndim(key);
    add(w, "%s(", td_ir_dtype_name(td_key_dtype(key)));
    for (int d = 0; d < n; d++) {
        if (sizes[d] == TD_IR_UNKNOWN)
            add(w, "%s*", d ? ", " : "");
        else
            add(w, "%s%lld", d ? ", " : "", (long long)sizes[d]);
    }
    add(w, "%s%s)", td_key_is_followed(key) ? (n ? ", requires_grad" : "requires_grad") : "",
        td_key_is_row_major(key)       ? ""
        : td_key_is_channels_last(key) ? ", channels last"
                                       : ", not row-major");
}

/* An input's keys, of which the first is given, and the sizes that go with them: how many. */
static int count_keys(const uint64_t *keys, int *nsizes) {
    const int n = 1 + td_key_entries(keys[0]);
    *nsizes = 0;
    for (int k = 0; k < n; k++)
        *nsizes += td_key_ndim(keys[k]);
    return n;
}

/* In what it differs from another one. */
static void add_difference(words *w, const td_scripted *f, const td_special *s,
                           const td_special *other) {
    const td_ir_block *block = f->graph->block;
    bool any = false;
    if (s->modes != other->modes) {
        add(w, "; other modes");
        any = true;
    }
    const int64_t *sizes = s->sizes, *others = other->sizes;
    const uint64_t *keys = s->keys, *other_keys = other->keys;
    for (int k = 0; k < f->nlooks; k++) {
        int n, m, nkeys = count_keys(keys, &n), mkeys = count_keys(other_keys, &m);
        bool same = nkeys == mkeys && !memcmp(keys, other_keys, sizeof *keys * (size_t)nkeys) &&
                    (!n || !memcmp(sizes, others, sizeof *sizes * (size_t)n));
        keys += nkeys;
        other_keys += mkeys;
        if (!same) {
            add(w, "%s%%%s", any ? ", " : "; differs in ", block->inputs[f->looks[k]]->name);
            any = true;
        }
        sizes += n;
        others += m;
    }
}

/* What it has saved so far, by the least times of its calls: the first ones run the graph as it was
 * written, for this. */
static void add_saving(words *w, const td_special *s) {
    double written = (double)atomic_load(&s->least_ns[0]);
    double own = (double)atomic_load(&s->least_ns[1]);
    double saved = (written - own) * (double)atomic_load(&s->calls) / 1e6;
    if (written > 0 && own > 0)
        add(w,
            "; %.2f ms %s so far (%.2f µs a call as written, %.2f µs now, the least of those "
            "timed)",
            saved < 0 ? -saved : saved, saved < 0 ? "lost" : "saved", written / 1e3, own / 1e3);
}

/* How far fast kernels were from their operators' bits. */
static void add_measured(words *w, const td_special *s) {
    td_kernel_error error = {.calls = 0};
    if (!td_script_graph(s->script)->fast)
        return;
    td_script_measured(s->script, &error);
    if (!error.calls)
        add(w, "; fast, not measured yet");
    else
        add(w,
            "; fast: at most %.6g ulp from its operators (%.3g of the largest element's)%s, in "
            "%lld runs compared",
            error.ulps, error.scaled, error.others ? ", integers or masks differ" : "",
            (long long)error.calls);
}

static void add_special(words *w, const td_scripted *f, const td_special *s, int number) {
    const int64_t *sizes = s->sizes;
    const uint64_t *keys = s->keys;
    add(w, "%d: (", number);
    for (int k = 0, n; k < f->nlooks; k++) {
        add(w, k ? ", " : "");
        add_input(w, *keys, sizes);
        keys += count_keys(keys, &n);
        sizes += n;
    }
    add(w, "): %lld calls, %.2f ms to make", (long long)atomic_load(&s->calls),
        (double)s->ns / 1e6);
    add_saving(w, s);
    if (s->replaced)
        add(w, "; sizes varied, a later one serves them");
    if (s->failed)
        add(w, "; could not be rewritten, runs as written");
    add_measured(w, s);
    if (s->made)
        add_difference(w, f, s, s->made);
    add(w, "\n");
}

/* Under the lock: how many were made, replaced ones too; the k-th of them. */
static int count(const td_scripted *f) {
    int n = 0;
    for (const td_special *s = f->made; s; s = s->made)
        n++;
    return n;
}

static const td_special *get(const td_scripted *f, int k) {
    const td_special *s = f->made;
    for (int left = count(f) - 1 - k; s && left > 0; left--)
        s = s->made;
    return s;
}

char *td_scripted_why(td_scripted *f) {
    words w = {.text = NULL};
    pthread_mutex_lock(&f->making);
    int n = count(f);
    add(&w, "%s: %d specialisation%s\n", f->name, f->nspecials, f->nspecials == 1 ? "" : "s");
    for (int k = 0; k < n; k++)
        add_special(&w, f, get(f, k), k + 1);
    long long plain = atomic_load(&f->plain_calls);
    if (f->full)
        add(&w, "no more than %d are made: other inputs run the graph as written\n",
            TD_SCRIPTED_MOST);
    if (plain)
        add(&w, "%lld calls ran the graph as written\n", plain);
    char why[200];
    int nsized = 0;
    n = td_gradients_count(f->gradients);
    for (int k = 0; k < n; k++)
        nsized += td_gradient_is_sized(td_gradients_get(f->gradients, k));
    if (n)
        add(&w, "backward is a graph for %d kind%s of inputs", n, n == 1 ? "" : "s");
    if (nsized)
        add(&w, ", %d of them of any sizes", nsized);
    if (n)
        add(&w, "\n");
    if (*td_gradients_why(f->gradients, why, sizeof why))
        add(&w, "backward is recorded call by call: %s\n", why);
    pthread_mutex_unlock(&f->making);
    if (w.failed) {
        td_free(w.text);
        return NULL;
    }
    return w.text;
}

int td_scripted_nspecialisations(td_scripted *f) {
    pthread_mutex_lock(&f->making);
    int n = count(f);
    pthread_mutex_unlock(&f->making);
    return n;
}

void td_scripted_statistics(td_scripted *f, int k, int64_t *calls, int64_t *ns) {
    pthread_mutex_lock(&f->making);
    const td_special *s = k >= 0 && k < count(f) ? get(f, k) : NULL;
    *calls = s ? atomic_load(&s->calls) : 0;
    *ns = s ? s->ns : 0;
    pthread_mutex_unlock(&f->making);
}

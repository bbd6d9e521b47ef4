/* kept_forms.c: forms of tensors, kept for as long as what they are of stays as it is. A storage
 * has the list of its forms for a companion; the version of the storage tells whether they still
 * hold.
 */
#include "engine/ops/make/kept_forms.h"

#include "engine/core/memory.h"
#include "engine/core/modes.h"

#include <pthread.h>
#include <string.h>

enum {
    MOST_FORMS = 1024, /* of a storage */
    OFTEN = 2,         /* asked for so many times of one version, a form is worth making, */
    OFTEN_RECORDED = 4 /* where operators are recorded: most weights are written before that */
};
#define MOST_BYTES ((int64_t)4 << 30)

typedef struct form {
    td_form_key key;
    int asked;       /* times, until it is made */
    td_tensor *made; /* NULL: not yet */
    struct form *next;
} form;

typedef struct forms {
    td_companion companion;
    unsigned version; /* of the storage, of which the forms are */
    int count;
    form *first;
} forms;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* A form has been put into its place (1), or taken from it (-1). */
static void count(const td_tensor *made, int sign) {
    if (made)
        td_memory_count_kept(TD_DEVICE_CPU, sign * (int64_t)made->storage->bytes);
}

/* Takes all forms off, for release_forms once the lock is free: forms are storages too, and may
 * have forms. */
static form *take_forms(forms *f) {
    form *first = f->first;
    for (const form *k = first; k; k = k->next)
        count(k->made, -1);
    f->first = NULL;
    f->count = 0;
    return first;
}

static void release_forms(form *first) {
    for (form *k = first, *next; k; k = next) {
        next = k->next;
        td_release(k->made);
        td_free(k);
    }
}

static void drop(td_companion *self) {
    forms *f = (forms *)self;
    pthread_mutex_lock(&lock);
    form *former = take_forms(f);
    pthread_mutex_unlock(&lock);
    release_forms(former);
    td_free(f);
}

static bool is_of(const form *k, const td_form_key *key) {
    return k->key.kind == key->kind && k->key.data == key->data &&
           !memcmp(k->key.word, key->word, sizeof key->word);
}

/* The storage's forms as it is at this version, for which a list is begun if need be; *former is to
 * be released. NULL: out of memory. */
static forms *forms_of(td_storage *storage, unsigned version, form **former) {
    forms *f = (forms *)storage->companion;
    if (!f && (f = td_calloc(1, sizeof *f))) {
        f->companion.drop = drop;
        storage->companion = &f->companion;
    }
    if (f && (f->version != version || f->count == MOST_FORMS))
        *former = take_forms(f);
    if (f)
        f->version = version;
    return f;
}

static form *find_form(const forms *f, const td_form_key *key) {
    form *k = f ? f->first : NULL;
    while (k && !is_of(k, key))
        k = k->next;
    return k;
}

static form *add_form(forms *f, const td_form_key *key) {
    form *k = td_malloc(sizeof *k);
    if (!k)
        return NULL;
    *k = (form){*key, 0, NULL, f->first};
    f->first = k;
    f->count++;
    return k;
}

/* Puts what was made of the storage at that version into its place, where it still is its. */
static void keep(td_storage *storage, unsigned version, const td_form_key *key, td_tensor *made) {
    pthread_mutex_lock(&lock);
    forms *f = (forms *)storage->companion;
    form *k = f->version == version ? find_form(f, key) : NULL;
    if (k && !k->made) {
        k->made = td_retain(made);
        count(made, 1);
    }
    pthread_mutex_unlock(&lock);
}

td_tensor *td_kept_form(td_storage *storage, const td_form_key *key, td_form_maker make,
                        const void *ctx) {
    unsigned version = atomic_load_explicit(&storage->version, memory_order_acquire);
    int often = td_is_recording() ? OFTEN_RECORDED : OFTEN;
    form *former = NULL;
    pthread_mutex_lock(&lock);
    forms *f = forms_of(storage, version, &former);
    form *k = find_form(f, key);
    if (f && !k)
        k = add_form(f, key);
    td_tensor *made = k && k->made ? td_retain(k->made) : NULL;
    bool makes =
        k && !made && ++k->asked >= often && td_memory_get_stats(TD_DEVICE_CPU).kept < MOST_BYTES;
    pthread_mutex_unlock(&lock);
    release_forms(former);
    if (makes && make(ctx, &made) == TD_OK)
        keep(storage, version, key, made);
    return made;
}

/* kept_panels.c: right sides of products, kept packed for as long as they stay as they are. A
 * storage has the list of its forms for a companion; the version of the storage tells whether they
 * still hold. What a product gives does not depend on whether its right side is kept. */
#include "engine/cpu/product/kept_panels.h"

#include "engine/core/memory.h"
#include "engine/core/modes.h"
#include "engine/core/threads.h"
#include "engine/cpu/isa/isa.h"

#include <pthread.h>

enum { MOST_FORMS = 1024 }; /* of a storage */
#define MOST_BYTES ((int64_t)4 << 30)

/* One right side: how it lies, and its panels. */
typedef struct form {
    td_dtype dtype;
    const char *data;
    int64_t columns, depth, row, column;
    td_tensor *panels; /* NULL: met once */
    struct form *next;
} form;

typedef struct forms {
    td_companion companion;
    unsigned version; /* of the storage, of which the forms are */
    int count;
    form *first;
} forms;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Panels have been put into their place (1), or taken from it (-1). */
static void count(const td_tensor *panels, int sign) {
    if (panels)
        td_memory_count_kept(TD_DEVICE_CPU, sign * (int64_t)panels->storage->bytes);
}

/* Takes all forms off, for release_forms once the lock is free: panels are storages too. */
static form *take_forms(forms *f) {
    form *first = f->first;
    for (const form *k = first; k; k = k->next)
        count(k->panels, -1);
    f->first = NULL;
    f->count = 0;
    return first;
}

static void release_forms(form *first) {
    for (form *k = first, *next; k; k = next) {
        next = k->next;
        td_release(k->panels);
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

static bool is_of(const form *k, td_dtype dtype, const td_product_block *p) {
    return k->data == p->b && k->columns == p->columns && k->depth == p->depth &&
           k->row == p->b_row && k->column == p->b_column && k->dtype == dtype;
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

static form *find_form(const forms *f, td_dtype dtype, const td_product_block *p) {
    form *k = f ? f->first : NULL;
    while (k && !is_of(k, dtype, p))
        k = k->next;
    return k;
}

static void add_form(forms *f, td_dtype dtype, const td_product_block *p) {
    form *k = td_malloc(sizeof *k);
    if (!k)
        return;
    *k = (form){dtype, p->b, p->columns, p->depth, p->b_row, p->b_column, NULL, f->first};
    f->first = k;
    f->count++;
}

/* ---- packing ---- */

typedef struct packing {
    td_dtype dtype;
    const td_product_block *p;
    char *to;
    int64_t width, panel; /* columns, bytes */
} packing;

static void pack_panels(void *ctx, int64_t begin, int64_t end, int worker) {
    const packing *j = ctx;
    (void)worker;
    for (int64_t k = begin; k < end; k++) {
        int64_t column = k * j->width, left = j->p->columns - column;
        td_product_pack(j->dtype, j->p, 0, j->p->depth, column, left < j->width ? left : j->width,
                        j->to + k * j->panel);
    }
}

static td_tensor *pack(td_dtype dtype, const td_product_block *p) {
    const int64_t width = td_cpu->product->tile_bytes / (int64_t)td_dtype_size(dtype);
    const int64_t n = (p->columns + width - 1) / width, numel = n * p->depth * width;
    td_tensor *panels = NULL;
    if (td_tensor_empty(dtype, TD_DEVICE_CPU, 1, &numel, &panels))
        return NULL;
    packing j = {dtype, p, panels->data, width, p->depth * td_cpu->product->tile_bytes};
    if (td_parallel_for(n, p->depth * width, pack_panels, &j)) {
        td_release(panels);
        return NULL;
    }
    return panels;
}

/* Puts panels made of the storage at that version into their place, where it still is theirs. */
static void keep(td_storage *storage, unsigned version, td_dtype dtype, const td_product_block *p,
                 td_tensor *panels) {
    pthread_mutex_lock(&lock);
    forms *f = (forms *)storage->companion;
    form *k = f->version == version ? find_form(f, dtype, p) : NULL;
    if (k && !k->panels) {
        k->panels = td_retain(panels);
        count(panels, 1);
    }
    pthread_mutex_unlock(&lock);
}

td_tensor *td_kept_panels(td_dtype dtype, td_storage *storage, const td_product_block *p) {
    unsigned version = atomic_load_explicit(&storage->version, memory_order_acquire);
    bool keeps = !td_is_recording();
    form *former = NULL;
    pthread_mutex_lock(&lock);
    forms *f = storage->companion || keeps ? forms_of(storage, version, &former) : NULL;
    form *k = find_form(f, dtype, p);
    td_tensor *panels = k && k->panels ? td_retain(k->panels) : NULL;
    bool packs = k && keeps && !panels && td_memory_get_stats(TD_DEVICE_CPU).kept < MOST_BYTES;
    if (f && !k && keeps)
        add_form(f, dtype, p);
    pthread_mutex_unlock(&lock);
    release_forms(former);
    if (packs && (panels = pack(dtype, p)))
        keep(storage, version, dtype, p, panels);
    return panels;
}

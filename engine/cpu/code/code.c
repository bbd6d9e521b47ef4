/* code.c: which programs have code, and the thread that makes it.
 *
 * A table of entries that are only added and never freed, so it is read without a lock: an entry's
 * state says whether its code may be used. One thread takes what waits: code that a file keeps
 * (io/code_cache.h) is loaded, other code is compiled and kept. The thread ends before the
 * compiler's own end at exit. A child made by fork starts a thread of its own; where the compiler
 * was at work when it was made, files alone are used.
 */
#include "engine/cpu/code/code.h"

#include "engine/core/activity.h"
#include "engine/core/jobs/maker.h"
#include "engine/core/memory.h"
#include "engine/core/version.h"
#include "engine/cpu/code/code_names.h"
#include "engine/cpu/code/code_values.h"
#include "engine/cpu/code/llvm.h"
#include "engine/cpu/code/object.h"
#include "engine/cpu/limits.h"
#include "engine/cpu/pointwise/pointwise_job.h"
#include "engine/io/code_cache.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    SLOTS = 8192, /* a power of two */
    ENTRIES = 4096,
    PROBES = 16,
    RUN = 4096, /* additions of an element that a run counts for by itself */
    FORM = 1    /* of code: a change of what it is given makes older files no more found */
};

typedef enum state { COUNTED, WAITING, READY, REFUSED } state;

typedef struct entry {
    td_code_form form;
    uint64_t hash;
    atomic_int state;
    atomic_llong work; /* that the program did, in additions of an element */
    td_code code;
    td_compile_request request; /* that made it wait */
    td_maker_job place;
} entry;

static _Atomic(entry *) slots[SLOTS];

static void make(td_maker_job *queued);
static bool begin_again(td_maker_job *queued);
/* Its lock guards what follows, and where entries are added. */
static td_maker maker = {.name = "tide code", .make = make, .again = begin_again, TD_MAKER_LOCK};
static int nentries;
static bool compiler_lost;

static atomic_int known_when; /* plus 1; 0: not yet */

static td_code_when when_to_make(void) {
    int is = atomic_load_explicit(&known_when, memory_order_relaxed);
    if (TD_UNLIKELY(is == 0)) {
        const char *asked = getenv("TIDE_CODE");
        is = 1 + (!asked                    ? TD_CODE_LATER
                  : !strcmp(asked, "never") ? TD_CODE_NEVER
                  : !strcmp(asked, "now")   ? TD_CODE_NOW
                                            : TD_CODE_LATER);
        atomic_store_explicit(&known_when, is, memory_order_relaxed);
    }
    return (td_code_when)(is - 1);
}

static const char *other_isa;

void td_code_set_isa(const char *name) {
    other_isa = name;
}

static const char *isa(void) {
    return other_isa ? other_isa : td_cpu->name;
}

void td_code_set_when(td_code_when when) {
    atomic_store(&known_when, 1 + (int)when);
}

bool td_code_wanted(int64_t elements) {
    const td_code_when when = when_to_make();
    return when == TD_CODE_LATER ? elements >= TD_LIMIT(POINTWISE_CODE) : when == TD_CODE_NOW;
}

/* ---- what is refused ---- */

enum { REFUSALS = 4096 };
static atomic_uchar
    refusals[REFUSALS]; /* by a part of the hash, the tag of another part; 0: none */

static uint64_t refusal_of(const td_program *p, td_dtype compute, bool rows) {
    uint64_t hash = (p->digest ^ (uint64_t)compute << 1 ^ (uint64_t)rows) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
}

static unsigned char tag_of(uint64_t refusal) {
    return (unsigned char)(refusal >> 20 | 1);
}

bool td_code_is_refused(const td_program *p, td_dtype compute, bool rows) {
    const uint64_t refusal = refusal_of(p, compute, rows);
    return atomic_load_explicit(&refusals[refusal % REFUSALS], memory_order_relaxed) ==
           tag_of(refusal);
}

/* Without the lock, or with it. */
static void refuse(entry *e) {
    const uint64_t refusal = refusal_of(e->form.program, e->form.compute, e->form.rows);
    atomic_store_explicit(&refusals[refusal % REFUSALS], tag_of(refusal), memory_order_relaxed);
    atomic_fetch_add(&td_code_counts.refused, 1);
}

/* ---- the functions that code calls ---- */

#define DEFINE_POWER(name, NAME, type, text, category, alias)                                      \
    static void power_##name(int64_t n, void *out, const void *a, const void *b, const void *c,    \
                             unsigned scalars) {                                                   \
        td_pointwise_fn loop = td_pointwise_loop(TD_PW_pow, TD_##NAME);                            \
        if (scalars == 2)                                                                          \
            loop = td_cheaper_power(TD_##NAME, b, loop);                                           \
        loop(n, out, a, b, c, scalars);                                                            \
    }
TD_DTYPE_TABLE(DEFINE_POWER)
#undef DEFINE_POWER

static const td_pointwise_fn powers[TD_DTYPE_COUNT] = {
#define POWER(name, NAME, type, text, category, alias) [TD_##NAME] = power_##name,
    TD_DTYPE_TABLE(POWER)
#undef POWER
};

static void set_functions(td_code *code, const td_code_text *text) {
    code->calls = text->ncalls > 0;
    for (int k = 0; k < text->ncalls; k++) {
        const td_code_call *call = &text->calls[k];
        td_pointwise_fn loop = NULL;
        td_convert_fn convert = NULL;
        if (call->primitive < 0)
            convert = td_cpu->convert->convert[call->to][call->from];
        else
            loop = call->primitive == TD_PW_pow
                       ? powers[call->from]
                       : td_pointwise_loop(call->primitive, (td_dtype)call->from);
        if (convert)
            memcpy(&code->functions[k], &convert, sizeof convert);
        else
            memcpy(&code->functions[k], &loop, sizeof loop);
    }
}

/* ---- making ---- */

/* What is kept: where the function begins, then the image. */
typedef struct kept {
    uint64_t entry;
    unsigned char image[];
} kept;

static td_code_key key_of(const td_code_text *text) {
    td_code_key key = {{FORM, sizeof(void *)}};
    key = td_code_key_add(key, td_version(), strlen(td_version()));
    key = td_code_key_add(key, isa(), strlen(isa()));
#if defined(__aarch64__)
    key = td_code_key_add(key, "aarch64", 7);
#endif
    return td_code_key_add(key, text->text, text->length);
}

static bool map_code(td_code *code, const td_code_form *form, const kept *k, size_t n) {
    if (n <= sizeof *k || k->entry >= n - sizeof *k)
        return false;
    const unsigned char *pages = td_object_map(k->image, n - sizeof *k);
    if (!pages)
        return false;
    const unsigned char *at = pages + k->entry;
    memcpy(&code->run, &at, sizeof at);
    td_code_announce(form, at, n - sizeof *k - k->entry);
    return true;
}

/* What the compiler makes of a text; NULL: nothing. */
static kept *compile(const td_code_text *text, size_t *n) {
    unsigned char *object;
    td_object_image image = {.bytes = NULL};
    size_t bytes;
    kept *k = NULL;
    if (compiler_lost || td_llvm_compile(text->text, text->length, isa(), &object, &bytes))
        return NULL;
    if (!td_object_join(object, bytes, "kernel", &image)) {
        *n = sizeof *k + image.n;
        k = td_malloc(*n);
        if (k) {
            k->entry = image.entry;
            memcpy(k->image, image.bytes, image.n);
        }
    }
    td_free(image.bytes);
    td_free(object);
    return k;
}

static long long microseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void publish(entry *e, bool made) {
    pthread_mutex_lock(&maker.lock);
    atomic_store_explicit(&e->state, made ? READY : REFUSED, memory_order_release);
    pthread_cond_broadcast(&maker.changed);
    pthread_mutex_unlock(&maker.lock);
}

/* Tell who records that it has been made or refused: "mul mul add". */
static void log_made(const entry *e, uint64_t began_ns, const char *what) {
    char name[200] = "";
    size_t used = 0;
    const td_program *p = e->form.program;
    for (int s = 0; s < p->nsteps && used < sizeof name && began_ns; s++)
        used += (size_t)snprintf(name + used, sizeof name - used, "%s%s", s ? " " : "",
                                 td_primitive_name((td_primitive)p->steps[s].primitive));
    td_compile_end(began_ns, TD_COMPILER_CODE, e->request, what, name);
}

/* Code is used before it is kept. */
static void make_code(entry *e) {
    const long long began = microseconds();
    const uint64_t began_ns = td_compile_begin();
    td_code_text text;
    void *read = NULL;
    size_t n = 0;
    if (td_code_write(&e->form, isa(), &text) || !text.text) {
        log_made(e, began_ns, "refuse code of");
        refuse(e);
        publish(e, false);
        return;
    }
    const td_code_key key = key_of(&text);
    set_functions(&e->code, &text);
    bool loaded = td_code_cache_read("cpu", key, &read, &n);
    kept *k = loaded ? read : compile(&text, &n);
    bool made = k && map_code(&e->code, &e->form, k, n);
    log_made(e, began_ns, !made ? "refuse code of" : loaded ? "read code of" : "compile code of");
    if (made)
        atomic_fetch_add(loaded ? &td_code_counts.loaded : &td_code_counts.compiled, 1);
    else
        refuse(e);
    atomic_fetch_add(&td_code_counts.microseconds, microseconds() - began);
    publish(e, made);
    if (made && !loaded)
        (void)td_code_cache_write("cpu", key, k, n);
    td_free(k);
    td_free(text.text);
}

/* ---- the thread ---- */

/* Exit must not undo what the compiler's library set up while the thread is in it. What is asked
 * for last is done first at exit: once the library is loaded, ending the thread is. While it is
 * being loaded it asks for more and more to be done; but what a thread that exits has of its own
 * goes before all of that, and it is the main thread that exits. */
static void end_at_exit(void) {
    static bool asked;
    if (!asked && td_llvm_version()) {
        asked = true;
        (void)atexit(td_code_stop);
    }
}

#if defined(__GLIBC__)
extern int __cxa_thread_atexit_impl(void (*end)(void *), void *with, void *library);
extern void *__dso_handle;

static void end_with_thread(void *unused) {
    (void)unused;
    td_code_stop();
}

void td_code_start(void) {
    if (gettid() == getpid())
        (void)__cxa_thread_atexit_impl(end_with_thread, NULL, &__dso_handle);
}
#else
void td_code_start(void) {}
#endif

static entry *entry_of(td_maker_job *queued) {
    return (entry *)((char *)queued - offsetof(entry, place));
}

static void make(td_maker_job *queued) {
    make_code(entry_of(queued));
    end_at_exit();
}

/* In a child: nobody will open the compiler's locks. */
static bool begin_again(td_maker_job *queued) {
    compiler_lost = true;
    return atomic_load(&entry_of(queued)->state) == WAITING;
}

/* With the lock held. */
static bool has_maker(void) {
    static bool prepared;
    prepared = prepared || atexit(td_code_stop) == 0;
    return prepared && td_maker_has_thread(&maker);
}

void td_code_stop(void) {
    td_maker_stop(&maker, false);
}

void td_code_finish(void) {
    pthread_mutex_lock(&maker.lock);
    td_maker_finish(&maker);
    pthread_mutex_unlock(&maker.lock);
}

/* ---- the table ---- */

static uint64_t hash_of(const td_code_form *f) {
    uint64_t hash = f->program->digest ^ f->numbers * 0x9e3779b97f4a7c15u;
    hash ^= (uint64_t)f->compute << 8 ^ (uint64_t)f->narrow << 16 ^ (uint64_t)f->rows << 24;
    return hash ^ hash >> 31;
}

static bool is_same_program(const td_program *a, const td_program *b) {
    if (a == b)
        return true;
    if (a->digest != b->digest || a->fast != b->fast || a->nsteps != b->nsteps ||
        a->nloads != b->nloads || a->nconstants != b->nconstants || a->noutputs != b->noutputs ||
        a->nbuffers != b->nbuffers)
        return false;
    for (int k = 0; k < a->nloads; k++)
        if (a->loads[k].dtype != b->loads[k].dtype)
            return false;
    for (int k = 0; k < a->nconstants; k++)
        if (a->constants[k].dtype != b->constants[k].dtype)
            return false;
    for (int k = 0; k < a->noutputs; k++)
        if (a->outputs[k].step != b->outputs[k].step || a->outputs[k].dtype != b->outputs[k].dtype)
            return false;
    for (int s = 0; s < a->nsteps; s++) {
        const td_step *x = &a->steps[s], *y = &b->steps[s];
        if (x->primitive != y->primitive || x->arity != y->arity || x->from != y->from ||
            x->to != y->to || x->dst != y->dst ||
            memcmp(x->src, y->src, sizeof x->src[0] * x->arity) != 0)
            return false;
    }
    return true;
}

static bool is_for(const entry *e, uint64_t hash, const td_code_form *f) {
    return e->hash == hash && e->form.compute == f->compute && e->form.numbers == f->numbers &&
           e->form.narrow == f->narrow && e->form.rows == f->rows &&
           is_same_program(e->form.program, f->program);
}

static entry *find_entry(uint64_t hash, const td_code_form *f) {
    for (uint64_t k = 0; k < PROBES; k++) {
        entry *e = atomic_load_explicit(&slots[(hash + k) % SLOTS], memory_order_acquire);
        if (!e || is_for(e, hash, f))
            return e;
    }
    return NULL;
}

/* With the lock held. NULL: no room. */
static entry *add_entry(uint64_t hash, const td_code_form *f) {
    entry *e = find_entry(hash, f);
    if (e || nentries == ENTRIES)
        return e;
    for (uint64_t k = 0; k < PROBES && !e; k++) {
        _Atomic(entry *) *slot = &slots[(hash + k) % SLOTS];
        if (atomic_load_explicit(slot, memory_order_relaxed))
            continue;
        e = td_calloc(1, sizeof *e);
        if (!e)
            return NULL;
        e->form = *f;
        e->form.program = td_program_retain(f->program);
        e->hash = hash;
        atomic_store_explicit(slot, e, memory_order_release);
        nentries++;
    }
    return e;
}

/* With the lock held. */
static void queue(entry *e) {
    if (atomic_load(&e->state) != COUNTED || !has_maker())
        return;
    atomic_store(&e->state, WAITING);
    e->request = td_compile_request_now();
    td_maker_add(&maker, &e->place);
}

/* Whether a program is worth code is seen once, when it is first found; that takes a few
 * microseconds. With the lock held. */
static void look_at(entry *e) {
    int in_place = 0;
    for (int s = 0; s < e->form.program->nsteps; s++) {
        const td_step *step = &e->form.program->steps[s];
        const td_dtype from = td_dtype_in_call(step->from, e->form.compute),
                       to = td_dtype_in_call(step->to, e->form.compute);
        in_place += td_code_in_place(
            from != to && step->primitive == TD_PW_copy ? -1 : step->primitive, from, to, true);
    }
    bool wanted = in_place > 0 || when_to_make() == TD_CODE_NOW;
    if (!wanted || td_code_write(&e->form, isa(), NULL)) {
        atomic_store(&e->state, REFUSED);
        refuse(e);
    }
}

static const td_code *count_work(entry *e, const td_code_form *form, uint64_t hash,
                                 int64_t elements) {
    const bool now = when_to_make() == TD_CODE_NOW;
    if (e && !now) {
        long long more = elements * form->program->cost + RUN;
        if (atomic_fetch_add_explicit(&e->work, more, memory_order_relaxed) + more <
            TD_LIMIT(POINTWISE_CODE_WORK))
            return NULL;
    }
    if (!now && pthread_mutex_trylock(&maker.lock))
        return NULL; /* another time */
    if (now)
        pthread_mutex_lock(&maker.lock);
    if (!e) {
        e = add_entry(hash, form);
        if (e && atomic_load(&e->state) == COUNTED)
            look_at(e);
    }
    if (e && (now || atomic_load(&e->work) >= TD_LIMIT(POINTWISE_CODE_WORK)))
        queue(e);
    while (now && e && atomic_load(&e->state) == WAITING && has_maker())
        pthread_cond_wait(&maker.changed, &maker.lock);
    pthread_mutex_unlock(&maker.lock);
    return e && atomic_load_explicit(&e->state, memory_order_acquire) == READY ? &e->code : NULL;
}

const td_code *td_code_find(const td_code_form *form, int64_t elements) {
    if (when_to_make() == TD_CODE_NEVER || !__atomic_load_n(&form->program->refs, __ATOMIC_RELAXED))
        return NULL;
    const uint64_t hash = hash_of(form);
    entry *e = find_entry(hash, form);
    state is = e ? (state)atomic_load_explicit(&e->state, memory_order_acquire) : COUNTED;
    const td_code *code = is == READY     ? &e->code
                          : is == COUNTED ? count_work(e, form, hash, elements)
                          : is == WAITING && when_to_make() == TD_CODE_NOW
                              ? count_work(e, form, hash, elements)
                              : NULL;
    if (code) /* of two at once one may be missed, which costs nothing */
        atomic_store_explicit(&td_code_counts.runs,
                              atomic_load_explicit(&td_code_counts.runs, memory_order_relaxed) + 1,
                              memory_order_relaxed);
    return code;
}

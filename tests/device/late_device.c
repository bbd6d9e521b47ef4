/* late_device.c: a device that the CPU plays, to find what a real one would find.
 *
 * Its memory is one file mapped twice: tensors hold addresses in a mapping that nobody may touch,
 * so that a host loop over device data faults, and the CPU's backend works through the other
 * mapping on stand-ins of the tensors. Work is queued and runs late, now and then an item, in an
 * order drawn from a seed among those that share no memory with what was queued before them; what
 * the elements show (an index out of range) is reported by the next download or synchronize.
 * TIDE_LATE_SEED sets the seed, and `late` is the device's name. Which functions of a device were
 * asked for, tell_late_work says.
 */
#include "engine/core/memory.h"
#include "engine/ops/plan/plan.h"
#include "engine/ops/plan/pointwise_geometry.h"
#include "engine/ops/pointwise/pointwise.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { QUEUE = 48, PIECES = 512 };
static const size_t ROOM = (size_t)4 << 30;

static const td_backend *cpu;
static char *hidden, *real; /* the two mappings */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t seed = 1;

static char *seen(const void *p) {
    return real + ((const char *)p - hidden);
}

static unsigned draw(unsigned n) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(seed >> 33) % n;
}

/* ---- the queue ---- */

/* A part of memory that an item reads or writes. */
typedef struct piece {
    const char *from, *to;
    bool written;
} piece;

typedef struct item {
    td_status (*run)(const void *plan);
    void *plan;
    void *block; /* given back when the item's turn comes; then there is no plan */
    td_tensor **owned;
    int nowned, npieces;
    piece pieces[PIECES];
} item;

static item queue[QUEUE];
static int queued;
static td_status failed;
static char message[512];

static bool meet(const item *a, const item *b) {
    for (int i = 0; i < a->npieces; i++)
        for (int j = 0; j < b->npieces; j++)
            if ((a->pieces[i].written || b->pieces[j].written) &&
                a->pieces[i].from < b->pieces[j].to && b->pieces[j].from < a->pieces[i].to)
                return true;
    return false;
}

static void free_block(void *block);

static void finish(item *it) {
    for (int k = 0; k < it->nowned; k++)
        td_release(it->owned[k]);
    td_free(it->owned);
    td_free(it->plan);
}

/* Run an item that does not depend on those before it. */
static void run_one(void) {
    int k = (int)draw((unsigned)queued);
    for (int j = 0; j < k; j++)
        if (meet(&queue[j], &queue[k])) {
            k = j;
            j = -1;
        }
    item it = queue[k];
    memmove(&queue[k], &queue[k + 1], sizeof it * (size_t)(--queued - k));
    if (it.block)
        free_block(it.block);
    else if (it.run(it.plan) && !failed) {
        failed = td_error_code();
        snprintf(message, sizeof message, "%s", td_error_message());
    }
    finish(&it);
}

static td_status drain(void) {
    while (queued)
        run_one();
    if (!failed)
        return TD_OK;
    td_status status = td_fail(failed, "%s", message);
    failed = TD_OK;
    return status;
}

static void enqueue(const item *it) {
    while (queued == QUEUE || (queued && draw(3) == 0))
        run_one();
    queue[queued++] = *it;
}

/* ---- memory: blocks of powers of two ---- */

typedef struct free_block_list {
    void **blocks;
    int n, room;
} free_block_list;

static free_block_list pools[48];
static size_t used;
static uint8_t *class_of; /* by 64 bytes */

static void free_block(void *block) {
    free_block_list *l = &pools[class_of[((char *)block - hidden) / 64]];
    if (l->n == l->room) {
        l->room = l->room ? 2 * l->room : 64;
        l->blocks = realloc(l->blocks, (size_t)l->room * sizeof *l->blocks);
    }
    l->blocks[l->n++] = block;
}

static void *allocate(td_stream stream, size_t bytes, size_t *granted) {
    int c = bytes <= 64 ? 6 : 64 - __builtin_clzll(bytes - 1);
    void *p = NULL;
    (void)stream;
    pthread_mutex_lock(&lock);
    if (c < 40 && !pools[c].n && used + ((size_t)1 << c) > ROOM)
        while (queued)
            run_one();
    if (c < 40 && pools[c].n) {
        p = pools[c].blocks[--pools[c].n];
    } else if (c < 40 && used + ((size_t)1 << c) <= ROOM) {
        p = hidden + used;
        class_of[used / 64] = (uint8_t)c;
        used += (size_t)1 << c;
    }
    pthread_mutex_unlock(&lock);
    *granted = (size_t)1 << c;
    if (p)
        memset(seen(p), 0xA5, bytes); /* what was there does not matter */
    return p;
}

static void release(td_stream stream, void *block, size_t granted) {
    item it = {.block = block, .npieces = 1};
    (void)stream;
    it.pieces[0] = (piece){block, (char *)block + granted, true};
    pthread_mutex_lock(&lock);
    enqueue(&it);
    pthread_mutex_unlock(&lock);
}

static void empty_cache(int index) {
    (void)index;
}

static td_status synchronize(td_stream stream) {
    (void)stream;
    pthread_mutex_lock(&lock);
    td_status status = drain();
    pthread_mutex_unlock(&lock);
    return status;
}

static td_status copy(td_stream stream, void *dst, const void *src, size_t bytes) {
    td_status status = synchronize(stream);
    if (status == TD_OK)
        memcpy(seen(dst), seen(src), bytes);
    return status;
}

static td_status upload(td_stream stream, void *dst, const void *host, size_t bytes) {
    (void)stream;
    pthread_mutex_lock(&lock);
    while (queued)
        run_one();
    pthread_mutex_unlock(&lock);
    memcpy(seen(dst), host, bytes);
    return TD_OK;
}

static td_status download(td_stream stream, void *host, const void *src, size_t bytes) {
    td_status status = synchronize(stream);
    if (status == TD_OK)
        memcpy(host, seen(src), bytes);
    return status;
}

static int count(void) {
    return 2;
}

/* ---- which functions were asked for ---- */

static char work[1024]; /* " NAME NAME " */

static void note(const char *function) {
    char word[64];
    snprintf(word, sizeof word, " %s ", function);
    pthread_mutex_lock(&lock);
    size_t end = strlen(work);
    if (!strstr(work, word))
        snprintf(work + end, sizeof work - end, "%s", word);
    pthread_mutex_unlock(&lock);
}

/* For package.loadlib: those since the last call, in TIDE_LATE_WORK. */
int tell_late_work(void *L);
int tell_late_work(void *L) {
    (void)L;
    setenv("TIDE_LATE_WORK", work, 1);
    work[0] = '\0';
    return 0;
}

/* ---- stand-ins ---- */

static void nothing(void *owner, void *data) {
    (void)owner;
    (void)data;
}

/* A tensor on the host that sees what x holds; those of one storage share theirs. */
static td_status stand_in(item *it, td_tensor *const *given, int k, bool written, td_tensor **out) {
    const td_tensor *x = given[k];
    const td_storage *s = x->storage;
    td_tensor *whole = NULL;
    for (int j = 0; j < k && !whole; j++)
        if (given[j] && given[j]->storage == s)
            whole = it->owned[2 * j];
    int64_t bytes = (int64_t)s->bytes;
    td_status status = TD_OK;
    if (td_tensor_device(x).type == TD_CPU)
        return td_fail(TD_EINTERNAL, "a plan for %s holds a tensor of the host", "late");
    if (whole)
        td_retain(whole);
    else
        status = td_tensor_from_memory(TD_U8, 1, &bytes, seen(s->data), nothing, NULL, &whole);
    int64_t offset = ((char *)x->data - (char *)s->data) / (int64_t)td_tensor_itemsize(x);
    if (status == TD_OK) {
        whole->dtype = x->dtype; /* what it is seen as; its own shape is not read */
        status = td_tensor_view(whole, x->ndim, x->sizes, x->strides, offset, out);
    }
    it->owned[2 * k] = whole;
    if (status)
        return status;
    it->owned[2 * k + 1] = td_retain(*out);
    td_release(*out); /* the item holds it */
    it->pieces[it->npieces++] = (piece){s->data, (const char *)s->data + s->bytes, written};
    return TD_OK;
}

/* Put stand-ins in place of n tensors, of which the first `nwritten` are written. */
static td_status stand_in_all(item *it, int n, td_tensor **tensors, int nwritten) {
    td_tensor **given = td_malloc((size_t)(n + 1) * sizeof *given);
    it->owned = td_calloc((size_t)(2 * n + 1), sizeof *it->owned);
    it->nowned = 2 * n;
    td_status status =
        given && it->owned && n <= PIECES ? TD_OK : td_fail(TD_ENOMEM, "out of memory");
    for (int k = 0; k < n && status == TD_OK; k++)
        given[k] = tensors[k];
    for (int k = 0; k < n && status == TD_OK; k++)
        if (given[k])
            status = stand_in(it, given, k, k < nwritten, &tensors[k]);
    td_free(given);
    return status;
}

static td_status submit(item *it, td_status status) {
    if (status) {
        finish(it);
        return status;
    }
    pthread_mutex_lock(&lock);
    enqueue(it);
    pthread_mutex_unlock(&lock);
    return TD_OK;
}

/* The plans with a fixed number of tensors all begin alike. */
typedef struct any_plan {
    TD_PLAN_HEAD(18, *first);
} any_plan;

static td_status submit_plan(const void *plan, size_t bytes, td_status (*run)(const void *),
                             int ntensors, int nwritten) {
    item it = {.run = run, .plan = td_malloc(bytes)};
    if (!it.plan)
        return td_fail(TD_ENOMEM, "out of memory");
    any_plan *copied = memcpy(it.plan, plan, bytes);
    return submit(&it, stand_in_all(&it, ntensors, copied->tensors, nwritten));
}

/* One runner and one submitter for each of the backend's functions; programs have their own below.
 */
#define PLAY(function, plan, ntensors, nwritten)                                                   \
    static td_status run_##function(const void *given) {                                           \
        return cpu->function(given);                                                               \
    }                                                                                              \
    static td_status play_##function(const struct plan *given) {                                   \
        note(#function);                                                                           \
        return submit_plan(given, sizeof *given, run_##function, ntensors, nwritten);              \
    }
TD_BACKEND_WORK(PLAY)
#undef PLAY

/* Programs have lists: results first, then the operands that are tensors. */
static td_status submit_lists(item *it, int nouts, td_tensor *const *outs, int noperands,
                              const td_operand *given, td_operand *operands, td_tensor **copies) {
    td_tensor **all = td_malloc((size_t)(nouts + noperands + 1) * sizeof *all);
    if (!all)
        return td_fail(TD_ENOMEM, "out of memory");
    memcpy(operands, given, (size_t)noperands * sizeof *operands);
    for (int k = 0; k < nouts; k++)
        all[k] = outs[k];
    for (int k = 0; k < noperands; k++)
        all[nouts + k] = (td_tensor *)given[k].tensor;
    td_status status = stand_in_all(it, nouts + noperands, all, nouts);
    for (int k = 0; k < nouts; k++)
        copies[k] = all[k];
    for (int k = 0; k < noperands; k++)
        operands[k].tensor = all[nouts + k];
    td_free(all);
    return status;
}

static td_status play_program(const td_pointwise_plan *given) {
    note("pointwise");
    int lists = given->nlists ? given->nlists : 1;
    int noperands = lists * given->program->noperands, nouts = lists * given->program->noutputs;
    size_t operands = (size_t)noperands * sizeof(td_operand), outs = (size_t)nouts * sizeof(void *);
    item it = {.run = run_pointwise, .plan = td_malloc(sizeof *given + operands + outs)};
    if (!it.plan)
        return td_fail(TD_ENOMEM, "out of memory");
    td_pointwise_plan *plan = memcpy(it.plan, given, sizeof *given);
    td_operand *copied = (td_operand *)(plan + 1), *all = td_operands_repeated(given);
    td_tensor **results = (td_tensor **)(copied + noperands);
    plan->operands = copied;
    plan->outs = results;
    plan->out = NULL;
    plan->nlists = lists;
    plan->nshared = 0;
    td_status status = all ? submit_lists(&it, nouts, given->nlists ? given->outs : &given->out,
                                          noperands, all, copied, results)
                           : td_fail(TD_ENOMEM, "out of memory");
    td_free(all);
    return submit(&it, status);
}

static td_status play_condition(const td_check_plan *given) {
    note("check");
    int n = given->program->noperands;
    td_tensor *none;
    item it = {.run = run_check, .plan = td_malloc(sizeof *given + (size_t)n * sizeof(td_operand))};
    if (!it.plan)
        return td_fail(TD_ENOMEM, "out of memory");
    td_check_plan *plan = memcpy(it.plan, given, sizeof *given);
    td_operand *copied = (td_operand *)(plan + 1);
    plan->operands = copied;
    return submit(&it, submit_lists(&it, 0, NULL, n, given->operands, copied, &none));
}

/* ---- registration ---- */

static td_backend late = {.name = "late",
                          .count = count,
                          .allocate = allocate,
                          .release = release,
                          .empty_cache = empty_cache,
                          .copy = copy,
                          .upload = upload,
                          .download = download,
                          .synchronize = synchronize,
#define PLAY(function, plan, ntensors, nwritten) .function = play_##function,
                          TD_BACKEND_WORK(PLAY)
#undef PLAY
};

/* For package.loadlib: makes the device known. Where the process may not have so many addresses it
 * says so in TIDE_LATE_LACKS. */
int register_late_device(void *L);
int register_late_device(void *L) {
    (void)L;
    const char *wanted = getenv("TIDE_LATE_SEED");
    int file = memfd_create("late device", 0);
    if (file < 0 || ftruncate(file, (off_t)ROOM))
        return 0;
    seed = wanted ? strtoull(wanted, NULL, 10) : 1;
    hidden = mmap(NULL, ROOM, PROT_NONE, MAP_SHARED, file, 0);
    real = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    class_of = calloc(ROOM / 64, 1);
    cpu = td_backends[TD_CPU];
    late.pointwise = play_program;
    late.check = play_condition;
    if (hidden == MAP_FAILED || real == MAP_FAILED || !class_of)
        setenv("TIDE_LATE_LACKS", "no room for 8 GB of addresses", 1);
    else if (td_backend_register(&late))
        fprintf(stderr, "the late device was refused\n");
    return 0;
}

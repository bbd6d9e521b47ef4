/* onednn.c: oneDNN behind a cache of primitives.
 *
 * A plan is a primitive for given shapes with the layouts it wants and the reorders from and to
 * ours. Plans are found by their description, byte for byte; the cache is bounded and drops what
 * was used longest ago. A plan in use is kept alive by a reference. Scratch memory comes from our
 * allocator, so that one plan may run on several threads at once.
 */
#include "engine/cpu/product/onednn.h"

#include "engine/core/load.h"
#include "engine/core/map.h"
#include "engine/core/memory.h"
#include "engine/core/observer.h"
#include "engine/core/pool.h"
#include "engine/core/signals.h"
#include "engine/core/team.h"
#include "engine/core/tensor.h"
#include "engine/cpu/isa/isa.h"
#include "engine/cpu/limits.h"
#include "engine/cpu/loaded_libraries/loaded_libraries.h"
#include "engine/cpu/loaded_libraries/onednn.h"
#include "engine/cpu/product/kept_panels.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { ON_STACK = 252 }; /* depth of a plain product (stays_on_stack) */
enum { MAX_ARGS = 4, CACHE_SIZE = 512, BUCKETS = 256, KEY_WORDS = 32 };
enum {
    LOAD_ROOM =
        96 << 20, /* the library is half of it; a failing constructor would end the process */
    PLAN_ROOM = 8 << 20,  /* what oneDNN may ask for without a look at the answer */
    HEAP_ROOM = 64 << 20, /* a thread's heap */
    RUN_ROOM = 64 << 10   /* the same, of this thread's heap, while a plan is run */
};

typedef enum plan_kind { MATMUL = 1, CONV, CONV_INPUT, CONV_WEIGHT } plan_kind;

/* What a plan is for; unused words are zero. */
typedef struct plan_key {
    int64_t word[KEY_WORDS];
} plan_key;

typedef struct plan_arg {
    int id; /* DNNL_ARG_... */
    bool output;
    td_dnn_layout *ours, *theirs;
    dnnl_primitive_t reorder; /* NULL where the layouts are the same, */
    td_pairs pairs;           /* or where we pack: deep > 0 then */
} plan_arg;

typedef struct plan {
    atomic_int refs;
    plan_key key;
    dnnl_primitive_t primitive;
    td_dnn_layout *scratch;
    int nargs;
    plan_arg args[MAX_ARGS];
    uint64_t last_use;
    struct plan *next;
} plan;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static plan *buckets[BUCKETS];
static int cached;
static uint64_t clock_now;
static atomic_llong made;

static const td_late_onednn *dnn; /* NULL: not loaded yet */
static dnnl_engine_t engine;
static dnnl_primitive_attr_t attributes; /* of all primitives: scratch memory comes from us */
static int bfloat_gain;                  /* td_dnn_bfloat_gain's, which every product asks for */
static atomic_bool started;
static pthread_key_t stream_key;

static td_status fail_dnn(const char *what, dnnl_status_t code) {
    if (code == dnnl_out_of_memory)
        return td_fail(TD_ENOMEM, "out of memory");
    return td_fail(TD_EINTERNAL, "oneDNN: %s failed with status %d", what, (int)code);
}

#define DNN_TRY(what, expression)                                                                  \
    do {                                                                                           \
        dnnl_status_t code_ = (expression);                                                        \
        if (TD_UNLIKELY(code_ != dnnl_success)) {                                                  \
            status = fail_dnn(what, code_);                                                        \
            goto done;                                                                             \
        }                                                                                          \
    } while (0)

/* ---- engine and streams ---- */

static void stream_free(void *stream) {
    dnn->stream_destroy(stream);
}

/* A child made by fork finds the cache whole. */
static void before_fork(void) {
    pthread_mutex_lock(&lock);
}
static void after_fork(void) {
    pthread_mutex_unlock(&lock);
}

static bool has(dnnl_cpu_isa_t set) {
    return ((int)dnn->get_effective_cpu_isa() & (int)set) == (int)set; /* sets contain others */
}

static int find_bfloat_gain(void) {
    if (has(dnnl_cpu_isa_avx512_core_amx))
        return 8;
    return has(dnnl_cpu_isa_avx512_core_bf16) && td_cpu_pairs_bfloats() ? 2 : 0;
}

static td_status start_locked(void) {
    static td_library library = {
        .name = "oneDNN", .file = "libtide-onednn.so", .table = TD_LATE_ONEDNN, .room = LOAD_ROOM};
    static bool has_key;
    const void *calls;
    td_status status = TD_OK;
    TD_TRY(td_library_load(&library, &calls));
    dnn = calls;
    if (!has_key && pthread_key_create(&stream_key, stream_free)) {
        status = td_fail(TD_ENOMEM, "out of memory");
        goto done;
    }
    has_key = true;
    /* our cache is enough, and a primitive whose making threw would stay in theirs */
    DNN_TRY("setting the cache", dnn->set_primitive_cache_capacity(0));
    DNN_TRY("making the engine", dnn->engine_create(&engine, dnnl_cpu, 0));
    DNN_TRY("making attributes", dnn->primitive_attr_create(&attributes));
    DNN_TRY("setting attributes",
            dnn->primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user));
    pthread_atfork(before_fork, after_fork, after_fork);
    bfloat_gain = find_bfloat_gain();
    atomic_store_explicit(&started, true, memory_order_release);
done:
    return status;
}

/* Load oneDNN and make its engine; what failed for want of memory is tried anew the next time. */
static td_status start(void) {
    static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;
    td_status status = TD_OK;
    if (TD_LIKELY(atomic_load_explicit(&started, memory_order_acquire)))
        return TD_OK;
    pthread_mutex_lock(&starting);
    if (!atomic_load_explicit(&started, memory_order_relaxed)) {
        td_loading loading;
        td_loading_begin(&loading, "oneDNN");
        status = start_locked();
        td_loading_end(&loading);
    }
    pthread_mutex_unlock(&starting);
    return status;
}

static td_status stream_get(dnnl_stream_t *out) {
    *out = pthread_getspecific(stream_key);
    if (*out)
        return TD_OK;
    dnnl_status_t code = dnn->stream_create(out, engine, dnnl_stream_default_flags);
    if (code != dnnl_success)
        return fail_dnn("making a stream", code);
    if (pthread_setspecific(stream_key, *out) == 0)
        return TD_OK;
    dnn->stream_destroy(*out);
    return td_fail(TD_ENOMEM, "out of memory");
}

/* ---- plans ---- */

static void plan_release(plan *p) {
    if (!p || !td_was_last(&p->refs))
        return;
    for (int k = 0; k < p->nargs; k++) {
        if (p->args[k].reorder)
            dnn->primitive_destroy(p->args[k].reorder);
        dnn->layout_destroy(p->args[k].ours);
        dnn->layout_destroy(p->args[k].theirs);
    }
    if (p->primitive)
        dnn->primitive_destroy(p->primitive);
    dnn->layout_destroy(p->scratch);
    td_free(p);
}

static plan **bucket_of(const plan_key *key) {
    return &buckets[td_hash_words(key->word, KEY_WORDS) % BUCKETS];
}

/* The cached plan with a reference for the caller, or NULL. */
static plan *cache_find(const plan_key *key) {
    pthread_mutex_lock(&lock);
    plan *p = *bucket_of(key);
    while (p && memcmp(&p->key, key, sizeof *key) != 0)
        p = p->next;
    if (p) {
        p->last_use = ++clock_now;
        atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&lock);
    return p;
}

static void drop_oldest(void) {
    plan **oldest = NULL;
    for (int b = 0; b < BUCKETS; b++)
        for (plan **p = &buckets[b]; *p; p = &(*p)->next)
            if (!oldest || (*p)->last_use < (*oldest)->last_use)
                oldest = p;
    plan *dropped = *oldest;
    *oldest = dropped->next;
    cached--;
    plan_release(dropped);
}

/* Keep a plan; the cache takes a reference of its own. */
static void cache_keep(plan *p) {
    atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
    pthread_mutex_lock(&lock);
    if (cached == CACHE_SIZE)
        drop_oldest();
    plan **bucket = bucket_of(&p->key);
    p->last_use = ++clock_now;
    p->next = *bucket;
    *bucket = p;
    cached++;
    pthread_mutex_unlock(&lock);
}

/* Has the heap a block that running may cut its small ones from? */
static bool has_heap(void) {
    void *block = td_malloc(RUN_ROOM);
    td_free(block);
    return block != NULL;
}

/* Another thread than the first has a heap of its own, made at a request for a block: at which one
 * can't be told where addresses are short, since it must lie at a multiple of its size. */
static bool has_room_to_plan(void) {
    return has_heap() && td_memory_has_room(PLAN_ROOM + (td_pool_within() ? (size_t)HEAP_ROOM : 0));
}

static td_status plan_new(const plan_key *key, plan **out) {
    *out = has_room_to_plan() ? td_calloc(1, sizeof **out) : NULL;
    if (!*out)
        return td_fail(TD_ENOMEM, "out of memory");
    (*out)->key = *key;
    (*out)->refs = 1;
    return TD_OK;
}

/* An argument in the layout `ours`, which the plan takes over. */
static void add_arg(plan *p, int id, bool output, td_dnn_layout **ours) {
    p->args[p->nargs++] = (plan_arg){.id = id, .output = output, .ours = *ours};
    *ours = NULL;
}

static dnnl_query_t query_of(int id) {
    switch (id) {
    case DNNL_ARG_SRC:
        return dnnl_query_src_md;
    case DNNL_ARG_DST:
        return dnnl_query_dst_md;
    case DNNL_ARG_DIFF_SRC:
        return dnnl_query_diff_src_md;
    case DNNL_ARG_DIFF_DST:
        return dnnl_query_diff_dst_md;
    case DNNL_ARG_DIFF_WEIGHTS:
        return dnnl_query_diff_weights_md;
    default:
        return dnnl_query_weights_md;
    }
}

/* Is theirs the layout of bf16_pack.h? How to pack ours then. */
static bool wants_pairs(const td_dnn_layout *ours, const td_dnn_layout *theirs, td_pairs *pairs) {
    td_dnn_blocks from, to;
    if (!dnn->layout_blocks(ours, &from) || !dnn->layout_blocks(theirs, &to) ||
        to.type != dnnl_bf16 || to.ndims != 2 || to.nblocks != 3 || to.block_dims[0] != 0 ||
        to.block_dims[1] != 1 || to.block_dims[2] != 0 || to.blocks[0] > TD_PAIRS_DEEP ||
        to.blocks[1] > TD_PAIRS_WIDE || to.blocks[2] != 2 || !to.plain)
        return false;
    *pairs = (td_pairs){.rows = from.dims[0],
                        .columns = from.dims[1],
                        .row_stride = from.strides[0],
                        .column_stride = from.strides[1],
                        .deep = to.blocks[0],
                        .wide = to.blocks[1],
                        .down = to.strides[0],
                        .across = to.strides[1]};
    return from.strides[0] == 1 || from.strides[1] == 1;
}

static void destroy_desc(dnnl_primitive_desc_t pd) {
    if (pd)
        dnn->primitive_desc_destroy(pd);
}

static td_status add_reorder(plan_arg *a) {
    dnnl_primitive_desc_t pd = NULL;
    td_status status = TD_OK;
    DNN_TRY("planning a reorder", dnn->plan_reorder(&pd, engine, a->output ? a->theirs : a->ours,
                                                    a->output ? a->ours : a->theirs));
    DNN_TRY("making a reorder", dnn->primitive_create(&a->reorder, pd));
done:
    destroy_desc(pd);
    return status;
}

/* Make the planned primitive and the reorders that its layouts ask for. */
static td_status plan_finish(plan *p, const_dnnl_primitive_desc_t pd) {
    td_status status = TD_OK;
    DNN_TRY("making a primitive", dnn->primitive_create(&p->primitive, pd));
    DNN_TRY("asking for scratch memory",
            dnn->layout_wanted(&p->scratch, pd, dnnl_query_scratchpad_md, 0));
    for (int k = 0; k < p->nargs; k++) {
        plan_arg *a = &p->args[k];
        int which = a->id == DNNL_ARG_BIAS ? 1 : 0;
        DNN_TRY("asking for a layout", dnn->layout_wanted(&a->theirs, pd, query_of(a->id), which));
        bool same = dnn->layout_equal(a->ours, a->theirs);
        if (!same && (a->output || !wants_pairs(a->ours, a->theirs, &a->pairs)))
            TD_TRY(add_reorder(a));
    }
    atomic_fetch_add_explicit(&made, 1, memory_order_relaxed);
done:
    return status;
}

/* ---- running ---- */

typedef struct run_state {
    dnnl_memory_t memory[2 * MAX_ARGS + 1];
    td_tensor *room[MAX_ARGS + 1];
    int nmemory, nroom;
} run_state;

static td_status wrap(run_state *r, const td_dnn_layout *layout, void *data, dnnl_memory_t *out) {
    dnnl_status_t code = dnn->memory_create(out, layout, engine, data);
    if (code != dnnl_success)
        return fail_dnn("wrapping memory", code);
    r->memory[r->nmemory++] = *out;
    return TD_OK;
}

/* Memory of our allocator in a layout of theirs. */
static td_status make_room(run_state *r, const td_dnn_layout *layout, dnnl_memory_t *out) {
    int64_t bytes = (int64_t)dnn->layout_bytes(layout);
    td_status status = td_tensor_empty(TD_U8, TD_DEVICE_CPU, 1, &bytes, &r->room[r->nroom]);
    return status ? status : wrap(r, layout, r->room[r->nroom++]->data, out);
}

static td_status reorder(dnnl_stream_t stream, dnnl_primitive_t primitive, dnnl_memory_t from,
                         dnnl_memory_t to) {
    const dnnl_exec_arg_t args[2] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    dnnl_status_t code = dnn->primitive_execute(primitive, stream, 2, args);
    return code == dnnl_success ? TD_OK : fail_dnn("reordering", code);
}

/* An argument that we pack, as it is kept packed beside its storage: new, or NULL. */
static td_tensor *find_pairs(const plan_arg *a, const void *data, td_storage *storage) {
    return td_kept_pairs(storage, &a->pairs, data, (int64_t)dnn->layout_bytes(a->theirs));
}

/* Run a plan on data in our layouts, in the order of its arguments; `right` is the storage of the
 * one that is packed by us, which may be kept so, or NULL. */
static td_status run_held(const plan *p, void *const *data, td_storage *right) {
    run_state r = {0};
    dnnl_exec_arg_t args[MAX_ARGS + 1];
    dnnl_memory_t ours[MAX_ARGS];
    dnnl_stream_t stream;
    int n = p->nargs;
    td_status status = TD_OK;
    if (!has_heap())
        return td_fail(TD_ENOMEM, "out of memory");
    TD_TRY(stream_get(&stream));
    for (int k = 0; k < n; k++) {
        const plan_arg *a = &p->args[k];
        args[k].arg = a->id;
        TD_TRY(wrap(&r, a->ours, data[k], &ours[k]));
        args[k].memory = ours[k];
        if (!a->reorder && !a->pairs.deep)
            continue;
        td_tensor *kept = a->pairs.deep && right ? find_pairs(a, data[k], right) : NULL;
        if (kept) {
            r.room[r.nroom++] = kept;
            TD_TRY(wrap(&r, a->theirs, kept->data, &args[k].memory));
            continue;
        }
        TD_TRY(make_room(&r, a->theirs, &args[k].memory));
        if (a->pairs.deep)
            td_pack_pairs(&a->pairs, data[k], r.room[r.nroom - 1]->data);
        else if (!a->output)
            TD_TRY(reorder(stream, a->reorder, ours[k], args[k].memory));
    }
    if (dnn->layout_bytes(p->scratch) > 0) {
        args[n].arg = DNNL_ARG_SCRATCHPAD;
        TD_TRY(make_room(&r, p->scratch, &args[n].memory));
        n++;
    }
    DNN_TRY("running", dnn->primitive_execute(p->primitive, stream, n, args));
    for (int k = 0; k < p->nargs; k++)
        if (p->args[k].output && p->args[k].reorder)
            TD_TRY(reorder(stream, p->args[k].reorder, args[k].memory, ours[k]));
    DNN_TRY("waiting", dnn->stream_wait(stream));
done:
    for (int k = 0; k < r.nmemory; k++)
        dnn->memory_destroy(r.memory[k]);
    for (int k = 0; k < r.nroom; k++)
        td_release(r.room[k]);
    return status;
}

/* Some of oneDNN's products use the stack pointer as one register more: it points into the heap
 * then, where a signal's handler would write its frame. */
static td_status plan_run(const plan *p, void *const *data, td_storage *right) {
    sigset_t before;
    td_signals_hold(&before);
    td_status status = run_held(p, data, right);
    td_signals_release(&before);
    return status;
}

typedef td_status (*plan_maker)(const void *what, plan *p);

static td_status run_planned(const plan_key *key, plan_maker make, const void *what,
                             void *const *data, td_storage *right) {
    td_status status = TD_OK;
    plan *p = cache_find(key);
    if (TD_UNLIKELY(!p)) {
        status = plan_new(key, &p);
        if (status)
            return status;
        td_loading loading;
        td_loading_begin(&loading, "oneDNN's kernels");
        status = make(what, p);
        td_loading_end(&loading);
        if (status == TD_OK)
            cache_keep(p);
    }
    if (status == TD_OK)
        status = plan_run(p, data, right);
    plan_release(p);
    return status;
}

/* Plans are made for a number of threads. */
static td_status run(plan_key *key, plan_maker make, const void *what, void *const *data,
                     td_storage *right) {
    td_status status = start();
    if (status)
        return status;
    key->word[KEY_WORDS - 1] = td_team_enter(INT_MAX);
    return run_planned(key, make, what, data, right);
}

static const dnnl_data_type_t types[TD_DTYPE_COUNT] = {[TD_BF16] = dnnl_bf16, [TD_F32] = dnnl_f32};

/* ---- products ---- */

typedef struct matmul_shape {
    dnnl_data_type_t type;
    int64_t batch, m, n, k;
    td_dnn_matrices a, b, c;
    bool bias, packs;
} matmul_shape;

static td_status describe(dnnl_data_type_t type, const td_dnn_matrices *x, int64_t batch,
                          int64_t rows, int64_t columns, td_dnn_layout **out) {
    const int64_t sizes[3] = {batch, rows, columns};
    const int64_t steps[3] = {x->batch_stride, x->row_stride, x->column_stride};
    dnnl_dims_t dims, strides;
    int n = 0;
    for (int d = batch == 1 ? 1 : 0; d < 3; d++) { /* one matrix has two dims */
        dims[n] = sizes[d];
        strides[n++] = steps[d];
    }
    dnnl_status_t code = dnn->layout_create(out, n, dims, type, strides);
    return code == dnnl_success ? TD_OK : fail_dnn("describing a matrix", code);
}

/* Is the right side worth packing as oneDNN wants it? We pack it sooner than oneDNN does on its own
 * way to the product. */
static bool is_worth_packing(const matmul_shape *s) {
    return s->packs && s->type == dnnl_bf16 && s->batch == 1 &&
           s->m >= TD_LIMIT(PRODUCT_PACKED_ROWS) && s->n >= TD_LIMIT(PRODUCT_PACKED_SIDES) &&
           s->k >= TD_LIMIT(PRODUCT_PACKED_SIDES);
}

/* Plan a product whose right side has the layout that oneDNN likes best, if we can pack that; *out
 * stays NULL where we can't. */
static td_status plan_packed(const td_dnn_layout *a, const td_dnn_layout *b,
                             const td_dnn_layout *bias, const td_dnn_layout *c,
                             dnnl_primitive_desc_t *out) {
    dnnl_primitive_desc_t pd = NULL;
    td_dnn_layout *any = NULL, *wanted = NULL;
    td_pairs pairs;
    td_status status = TD_OK;
    DNN_TRY("describing a matrix", dnn->layout_any(&any, b));
    DNN_TRY("planning", dnn->plan_matmul(&pd, engine, attributes, a, any, bias, c));
    DNN_TRY("asking for a layout", dnn->layout_wanted(&wanted, pd, dnnl_query_weights_md, 0));
    if (wants_pairs(b, wanted, &pairs)) {
        *out = pd;
        pd = NULL;
    }
done:
    destroy_desc(pd);
    dnn->layout_destroy(any);
    dnn->layout_destroy(wanted);
    return status;
}

static td_status make_matmul(const void *what, plan *p) {
    const matmul_shape *s = what;
    td_dnn_layout *a = NULL, *b = NULL, *c = NULL, *bias = NULL;
    dnnl_primitive_desc_t pd = NULL;
    td_status status = TD_OK;
    TD_TRY(describe(s->type, &s->a, s->batch, s->m, s->k, &a));
    TD_TRY(describe(s->type, &s->b, s->batch, s->k, s->n, &b));
    TD_TRY(describe(s->type, &s->c, s->batch, s->m, s->n, &c));
    if (s->bias)
        TD_TRY(describe(s->type, &(td_dnn_matrices){NULL, s->n, s->n, 1}, 1, 1, s->n, &bias));
    if (is_worth_packing(s))
        TD_TRY(plan_packed(a, b, bias, c, &pd));
    if (!pd)
        DNN_TRY("planning", dnn->plan_matmul(&pd, engine, attributes, a, b, bias, c));
    add_arg(p, DNNL_ARG_SRC, false, &a);
    add_arg(p, DNNL_ARG_WEIGHTS, false, &b);
    add_arg(p, DNNL_ARG_DST, true, &c);
    if (s->bias)
        add_arg(p, DNNL_ARG_BIAS, false, &bias);
    status = plan_finish(p, pd);
done:
    destroy_desc(pd);
    dnn->layout_destroy(a);
    dnn->layout_destroy(b);
    dnn->layout_destroy(c);
    dnn->layout_destroy(bias);
    return status;
}

int td_dnn_bfloat_gain(void) {
    return start() ? 0 : bfloat_gain;
}

td_status td_dnn_matmul(td_dtype dtype, int64_t batch, int64_t m, int64_t n, int64_t k,
                        td_dnn_matrices a, td_dnn_matrices b, const void *bias, td_dnn_matrices c,
                        bool packs, td_storage *right) {
    dnnl_data_type_t type = types[dtype];
    matmul_shape s = {type, batch, m, n, k, a, b, c, bias != NULL, packs};
    plan_key key = {{MATMUL, type, batch, m, n, k, a.batch_stride, a.row_stride, a.column_stride,
                     b.batch_stride, b.row_stride, b.column_stride, c.batch_stride, c.row_stride,
                     c.column_stride, bias != NULL, packs}};
    void *data[MAX_ARGS] = {a.data, b.data, c.data, (void *)bias};
    return run(&key, make_matmul, &s, data, right);
}

static td_status run_sgemm(const td_gemm *g) {
    const int64_t size = sizeof(float);
    dnnl_status_t code = dnnl_success;
    if (!has_heap())
        return td_fail(TD_ENOMEM, "out of memory");
    for (int64_t i = 0; i < g->batch && code == dnnl_success; i++)
        code = dnn->sgemm(g->ta ? 'T' : 'N', g->tb ? 'T' : 'N', g->m, g->n, g->k, 1,
                          (const float *)(const void *)(g->a + i * g->a_step * size), g->lda,
                          (const float *)(const void *)(g->b + i * g->b_step * size), g->ldb,
                          (float)g->beta, (float *)(void *)(g->c + i * g->c_step * size), g->ldc);
    return code == dnnl_success ? TD_OK : fail_dnn("a product", code);
}

/* The first plain product writes the loops of all, some megabytes, without a look at whether there
 * is room for them. It is a small one, made while nobody else waits for the same. */
static td_status make_sgemm_loops(void) {
    static atomic_bool there;
    static const float zeros[16];
    float c[16];
    td_loading loading;
    td_status status = TD_OK;
    if (TD_LIKELY(atomic_load_explicit(&there, memory_order_acquire)))
        return TD_OK;
    pthread_mutex_lock(&lock);
    td_loading_begin(&loading, "oneDNN's kernels");
    if (!atomic_load_explicit(&there, memory_order_relaxed)) {
        if (!has_room_to_plan())
            status = td_fail(TD_ENOMEM, "out of memory");
        else
            DNN_TRY("a product", dnn->sgemm('N', 'N', 4, 4, 4, 1, zeros, 4, zeros, 4, 0, c, 4));
    }
    atomic_store_explicit(&there, status == TD_OK, memory_order_release);
done:
    td_loading_end(&loading);
    pthread_mutex_unlock(&lock);
    return status;
}

/* Does the stack pointer stay on the stack? Without AVX-512 oneDNN 2.6 keeps an operand of so
 * shallow a product there, and a deeper one's on the heap, by the stack pointer. */
static bool stays_on_stack(const td_gemm *g) {
    const dnnl_version_t *v = dnn->version();
    return g->k <= ON_STACK && v->major == 2 && v->minor == 6 && !has(dnnl_cpu_isa_avx512_core);
}

td_status td_dnn_sgemm_ready(void) {
    td_status status = start();
    return status ? status : make_sgemm_loops();
}

td_status td_dnn_sgemm(const td_gemm *g) {
    td_status status = td_dnn_sgemm_ready();
    sigset_t before;
    if (status)
        return status;
    /* a team's threads take the mask of who makes them, and are kept for other products */
    bool held = td_team_enter(INT_MAX) > 1 || !stays_on_stack(g);
    if (held)
        td_signals_hold(&before);
    status = run_sgemm(g);
    if (held)
        td_signals_release(&before);
    return status;
}

/* ---- convolutions ---- */

enum { CONV_BIAS = 25, CONV_TYPE = 27 }; /* words of the key that makers read */

static plan_key conv_key(plan_kind kind, dnnl_data_type_t type, const td_conv_geometry *s,
                         bool bias) {
    plan_key key = {{kind, s->n, s->c, s->o, s->groups, s->spatial == TD_SPATIAL}};
    const int64_t *const sizes[6] = {s->in, s->kernel, s->out, s->stride, s->padding, s->dilation};
    for (int k = 0; k < 6; k++)
        memcpy(key.word + 6 + TD_SPATIAL * k, sizes[k], sizeof s->in);
    key.word[24] = s->channels_last;
    key.word[CONV_BIAS] = bias;
    key.word[26] = s->weight_last;
    key.word[CONV_TYPE] = type;
    return key;
}

/* How images lie while they are convolved: as they are given, as oneDNN chooses, or with channels
 * last. */
typedef enum conv_way { CONV_AS_GIVEN, CONV_CHOSEN, CONV_TURNED } conv_way;

/* A convolution's layouts: ours, and those that are planned with. */
typedef struct conv_layouts {
    td_dnn_layout *x, *w, *y, *bias;
    td_dnn_layout *any_x, *any_w, *any_y;
} conv_layouts;

static void conv_clear(conv_layouts *l) {
    td_dnn_layout *const all[] = {l->x, l->w, l->y, l->bias, l->any_x, l->any_w, l->any_y};
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
        dnn->layout_destroy(all[k]);
    *l = (conv_layouts){0};
}

/* Row-major, or with the dim of channels, that before the spatial ones, innermost. */
static td_status describe_plain(dnnl_data_type_t type, int ndims, const int64_t *sizes, int spatial,
                                bool last, td_dnn_layout **out) {
    dnnl_dims_t dims, strides;
    int channels = ndims - spatial - 1;
    int64_t stride = last ? sizes[channels] : 1;
    for (int d = ndims - 1; d >= 0; d--) {
        dims[d] = sizes[d];
        strides[d] = stride;
        if (last && d == channels)
            strides[d] = 1;
        else
            stride *= sizes[d];
    }
    dnnl_status_t code = dnn->layout_create(out, ndims, dims, type, strides);
    return code == dnnl_success ? TD_OK : fail_dnn("describing a tensor", code);
}

/* Weights are laid out by oneDNN. */
static td_status conv_describe(const td_conv_geometry *s, conv_way way, dnnl_data_type_t type,
                               dnnl_data_type_t weight_type, bool bias, conv_layouts *l,
                               td_dnn_conv_plan *out) {
    int n = s->spatial == TD_SPATIAL ? TD_SPATIAL : 2,
        first = TD_SPATIAL - n; /* lines are images */
    int64_t x[5] = {s->n, s->c}, y[5] = {s->n, s->o};
    int64_t w[6] = {s->groups, s->o / s->groups, s->c / s->groups};
    int skip = s->groups == 1;
    td_status status = TD_OK;
    memcpy(x + 2, s->in + first, sizeof(int64_t) * (size_t)n);
    memcpy(y + 2, s->out + first, sizeof(int64_t) * (size_t)n);
    memcpy(w + 3, s->kernel + first, sizeof(int64_t) * (size_t)n);
    TD_TRY(describe_plain(type, n + 2, x, n, s->channels_last, &l->x));
    TD_TRY(describe_plain(type, n + 2, y, n, s->channels_last, &l->y));
    TD_TRY(describe_plain(weight_type, n + 3 - skip, w + skip, n, s->weight_last, &l->w));
    if (bias)
        TD_TRY(describe_plain(type, 1, &s->o, 0, false, &l->bias));
    DNN_TRY("describing a tensor", dnn->layout_any(&l->any_w, l->w));
    if (way == CONV_CHOSEN) {
        DNN_TRY("describing a tensor", dnn->layout_any(&l->any_x, l->x));
        DNN_TRY("describing a tensor", dnn->layout_any(&l->any_y, l->y));
    } else if (way == CONV_TURNED) {
        TD_TRY(describe_plain(type, n + 2, x, n, true, &l->any_x));
        TD_TRY(describe_plain(type, n + 2, y, n, true, &l->any_y));
    }
    *out = (td_dnn_conv_plan){.x = way == CONV_AS_GIVEN ? l->x : l->any_x,
                              .y = way == CONV_AS_GIVEN ? l->y : l->any_y,
                              .w = l->any_w,
                              .bias = l->bias};
    for (int k = 0; k < n; k++) {
        int from = first + k;
        out->stride[k] = s->stride[from];
        out->dilation[k] = s->dilation[from] - 1;
        out->padding[k] = s->padding[from];
        out->padding_end[k] = (s->out[from] - 1) * s->stride[from] +
                              s->dilation[from] * (s->kernel[from] - 1) + 1 - s->in[from] -
                              s->padding[from];
    }
done:
    return status;
}

/* Has oneDNN a kernel for what was planned, and not just its reference? */
static bool is_fast(const_dnnl_primitive_desc_t pd) {
    const char *kernel = NULL;
    dnn->primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &kernel);
    return kernel && strncmp(kernel, "ref", 3) != 0;
}

/* A planned convolution or gradient; `hint` is the forward plan, which gradients need. */
typedef struct conv_plan {
    conv_layouts layouts;
    dnnl_primitive_desc_t pd, hint;
} conv_plan;

static void conv_plan_clear(conv_plan *c) {
    destroy_desc(c->pd);
    destroy_desc(c->hint);
    c->pd = c->hint = NULL;
    conv_clear(&c->layouts);
}

static td_status plan_forward(const td_conv_geometry *s, conv_way way, dnnl_data_type_t type,
                              bool bias, conv_layouts *l, dnnl_primitive_desc_t *out) {
    td_dnn_conv_plan described;
    td_status status = TD_OK;
    TD_TRY(conv_describe(s, way, type, type, bias, l, &described));
    DNN_TRY("planning", dnn->plan_conv(out, engine, attributes, &described));
done:
    return status;
}

/* A weight's gradient is float32, whatever the dtype of the images. */
static td_status plan_gradient(const td_conv_geometry *s, conv_way way, dnnl_data_type_t type,
                               bool weight, conv_plan *c) {
    td_dnn_conv_plan described;
    td_status status = TD_OK;
    TD_TRY(plan_forward(s, way, type, false, &c->layouts, &c->hint));
    conv_clear(&c->layouts);
    TD_TRY(conv_describe(s, way, type, weight ? dnnl_f32 : type, false, &c->layouts, &described));
    if (weight)
        DNN_TRY("planning", dnn->plan_conv_weight(&c->pd, engine, attributes, &described, c->hint));
    else
        DNN_TRY("planning", dnn->plan_conv_input(&c->pd, engine, attributes, &described, c->hint));
done:
    return status;
}

static td_status plan_way(const td_conv_geometry *s, plan_kind kind, conv_way way,
                          dnnl_data_type_t type, bool bias, conv_plan *c) {
    return kind == CONV ? plan_forward(s, way, type, bias, &c->layouts, &c->pd)
                        : plan_gradient(s, way, type, kind == CONV_WEIGHT, c);
}

/* oneDNN lays row-major images out in blocks of 16 channels. Where results don't fill them,
 * gradients are of padding for the most part, and those of bfloat16 weights have no kernel but one
 * of products image by image: with channels last both are quicker, but for the weight of a first
 * layer, whose images it takes as they are. */
static conv_way way_of(const td_conv_geometry *s, plan_kind kind, dnnl_data_type_t type) {
    bool first = kind == CONV_WEIGHT && type == dnnl_f32 && s->c < 4;
    if (s->channels_last)
        return CONV_AS_GIVEN;
    return kind != CONV && s->groups == 1 && s->o % 16 != 0 && !first ? CONV_TURNED : CONV_CHOSEN;
}

static td_status make_conv(const void *what, plan *p) {
    const td_conv_geometry *s = what;
    plan_kind kind = (plan_kind)p->key.word[0];
    bool bias = p->key.word[CONV_BIAS];
    dnnl_data_type_t type = (dnnl_data_type_t)p->key.word[CONV_TYPE];
    conv_plan c = {0};
    conv_way way = way_of(s, kind, type);
    td_status status = plan_way(s, kind, way, type, bias, &c);
    if (way != CONV_CHOSEN && status != TD_ENOMEM && (status || !is_fast(c.pd))) {
        conv_plan_clear(&c);
        status = plan_way(s, kind, CONV_CHOSEN, type, bias, &c);
    }
    if (status)
        goto done;
    conv_layouts *l = &c.layouts;
    if (kind == CONV) {
        add_arg(p, DNNL_ARG_SRC, false, &l->x);
        add_arg(p, DNNL_ARG_WEIGHTS, false, &l->w);
        add_arg(p, DNNL_ARG_DST, true, &l->y);
        if (bias)
            add_arg(p, DNNL_ARG_BIAS, false, &l->bias);
    } else if (kind == CONV_INPUT) {
        add_arg(p, DNNL_ARG_DIFF_DST, false, &l->y);
        add_arg(p, DNNL_ARG_WEIGHTS, false, &l->w);
        add_arg(p, DNNL_ARG_DIFF_SRC, true, &l->x);
    } else {
        add_arg(p, DNNL_ARG_DIFF_DST, false, &l->y);
        add_arg(p, DNNL_ARG_SRC, false, &l->x);
        add_arg(p, DNNL_ARG_DIFF_WEIGHTS, true, &l->w);
    }
    status = plan_finish(p, c.pd);
done:
    conv_plan_clear(&c);
    return status;
}

static const plan_kind conv_kinds[] = {
    [TD_CONV_FORWARD] = CONV, [TD_CONV_INPUT] = CONV_INPUT, [TD_CONV_WEIGHT] = CONV_WEIGHT};

td_status td_dnn_conv(td_conv_direction direction, td_dtype dtype, const td_conv_geometry *s,
                      const void *a, const void *b, const void *bias, void *out) {
    bool swap = direction == TD_CONV_WEIGHT; /* oneDNN's order: gradient first */
    plan_key key = conv_key(conv_kinds[direction], types[dtype], s, bias != NULL);
    void *data[MAX_ARGS] = {(void *)(swap ? b : a), (void *)(swap ? a : b), out, (void *)bias};
    return run(&key, make_conv, s, data, NULL);
}

/* ---- what it is ---- */

void td_dnn_version(char *text, size_t size) {
    const dnnl_version_t *v = start() ? NULL : dnn->version();
    if (v)
        snprintf(text, size, "oneDNN %d.%d.%d", v->major, v->minor, v->patch);
    else
        snprintf(text, size, "oneDNN (not loaded)");
}

int64_t td_dnn_primitives_made(void) {
    return made;
}

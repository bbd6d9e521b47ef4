/* fallback.c: work for which there is no kernel yet is done by the CPU: what it reads is brought to
 * the host, and what it wrote is brought back. Slow, and said so once for each function. */
#include "engine/core/memory.h"
#include "engine/core/warn.h"
#include "engine/cuda/cuda.h"
#include "engine/cuda/runtime/activity.h"
#include "engine/ops/language/program.h"

#include <stdatomic.h>
#include <string.h>

/* The part of a storage that a plan's tensors reach, and its copy on the host. */
typedef struct part {
    td_storage *storage;
    char *low, *high;
    td_tensor *host; /* its bytes */
    bool written;
} part;

typedef struct visit {
    td_stream stream;
    int n, nparts;
    td_tensor **given; /* of the plan, NULL among them */
    td_tensor **host;  /* what stands for each */
    part *parts;
} visit;

/* ---- what is read ---- */

static part *part_of(visit *v, td_storage *storage) {
    for (int k = 0; k < v->nparts; k++)
        if (v->parts[k].storage == storage)
            return &v->parts[k];
    return NULL;
}

static void reach(visit *v, const td_tensor *x, bool written) {
    enum { ALIGNED = 64 };
    char *base = x->storage->data, *low = x->data, *high;
    int64_t last = 0;
    for (int d = 0; d < x->ndim; d++)
        last += x->sizes[d] > 0 ? (x->sizes[d] - 1) * x->strides[d] : 0;
    high = low + (x->numel ? (last + 1) * (int64_t)td_tensor_itemsize(x) : 0);
    low -= (low - base) % ALIGNED;
    part *p = part_of(v, x->storage);
    if (!p) {
        p = &v->parts[v->nparts++];
        *p = (part){.storage = x->storage, .low = low, .high = high};
    }
    p->low = low < p->low ? low : p->low;
    p->high = high > p->high ? high : p->high;
    p->written |= written;
}

static td_status fetch(visit *v, part *p) {
    int64_t bytes = p->high - p->low;
    td_status status = td_tensor_empty(TD_U8, TD_DEVICE_CPU, 1, &bytes, &p->host);
    if (status == TD_OK && bytes > 0)
        status = td_backends[TD_CUDA]->download(v->stream, p->host->data, p->low, (size_t)bytes);
    return status;
}

/* A tensor on the host that sees what x holds. */
static td_status stand_in(visit *v, const td_tensor *x, td_tensor **out) {
    part *p = part_of(v, x->storage);
    td_tensor *bytes;
    td_status status = td_tensor_alias(p->host, &bytes);
    if (status != TD_OK)
        return status;
    bytes->dtype = x->dtype; /* what it is seen as; its own shape is not read */
    int64_t offset = ((char *)x->data - p->low) / (int64_t)td_tensor_itemsize(x);
    status = td_tensor_view(bytes, x->ndim, x->sizes, x->strides, offset, out);
    td_release(bytes);
    return status;
}

static td_status come(visit *v, td_stream stream, int n, td_tensor **given, int nwritten) {
    td_status status = TD_OK;
    cudaStream_t unused;
    *v = (visit){.stream = stream,
                 .n = n,
                 .given = given,
                 .host = td_calloc((size_t)n + 1, sizeof(td_tensor *)),
                 .parts = td_calloc((size_t)n + 1, sizeof(part))};
    if (!v->host || !v->parts)
        return td_fail(TD_ENOMEM, "out of memory");
    TD_TRY(td_cuda_begin(stream, n, given, &unused));
    for (int k = 0; k < n; k++)
        if (given[k])
            reach(v, given[k], k < nwritten);
    for (int k = 0; k < v->nparts; k++)
        TD_TRY(fetch(v, &v->parts[k]));
    for (int k = 0; k < n; k++)
        if (given[k])
            TD_TRY(stand_in(v, given[k], &v->host[k]));
done:
    return status;
}

/* ---- what was written ---- */

static td_status go_back(visit *v, td_status status) {
    for (int k = 0; k < v->nparts; k++) {
        part *p = &v->parts[k];
        size_t bytes = (size_t)(p->high - p->low);
        if (status == TD_OK && p->written && bytes > 0)
            status = td_backends[TD_CUDA]->upload(v->stream, p->low, p->host->data, bytes);
    }
    for (int k = 0; v->host && k < v->n; k++)
        td_release(v->host[k]);
    for (int k = 0; k < v->nparts; k++)
        td_release(v->parts[k].host);
    td_free(v->host);
    td_free(v->parts);
    return status;
}

/* ---- plans ---- */

static void say_once(const char *name) {
    enum { NAMES = 64 };
    static _Atomic(const char *) said[NAMES];
    for (int k = 0; k < NAMES; k++) {
        const char *none = NULL;
        if (atomic_load(&said[k]) == name)
            return;
        if (atomic_compare_exchange_strong(&said[k], &none, name)) {
            td_warn("'%s' has no CUDA kernel for this: the CPU does it, and copies go both ways",
                    name);
            return;
        }
        if (none == name)
            return;
    }
}

/* The plans with a fixed number of tensors all begin alike. */
typedef struct any_plan {
    TD_PLAN_HEAD(18, *first);
} any_plan;

td_status td_cuda_fall_back(const char *name, const void *plan, size_t bytes, td_cuda_function run,
                            int ntensors, int nwritten) {
    any_plan *copy = td_malloc(bytes < sizeof *copy ? sizeof *copy : bytes);
    if (!copy)
        return td_fail(TD_ENOMEM, "out of memory");
    memcpy(copy, plan, bytes);
    visit v;
    td_cuda_timed_forget();
    say_once(name);
    td_status status = come(&v, copy->stream, ntensors, copy->tensors, nwritten);
    td_tensor *given[18];
    memcpy(given, copy->tensors, sizeof(td_tensor *) * (size_t)ntensors);
    v.given = given;
    if (status == TD_OK) {
        copy->stream = td_stream_current(TD_DEVICE_CPU);
        memcpy(copy->tensors, v.host, sizeof(td_tensor *) * (size_t)ntensors);
        status = run(copy);
    }
    status = go_back(&v, status);
    td_free(copy);
    return status;
}

/* The tensors of a program's lists, results first, and operands that may be given others. */
typedef struct lists {
    int nouts, noperands;
    td_tensor **all;
    td_operand *operands;
} lists;

static td_status gather(lists *l, int nouts, td_tensor *const *outs, int noperands,
                        const td_operand *operands) {
    *l = (lists){.nouts = nouts, .noperands = noperands};
    l->all = td_malloc(sizeof(td_tensor *) * (size_t)(nouts + noperands + 1));
    l->operands = td_malloc(sizeof(td_operand) * (size_t)(noperands + 1));
    if (!l->all || !l->operands)
        return td_fail(TD_ENOMEM, "out of memory");
    for (int k = 0; k < nouts; k++)
        l->all[k] = outs[k];
    for (int k = 0; k < noperands; k++) {
        l->all[nouts + k] = (td_tensor *)operands[k].tensor;
        l->operands[k] = operands[k];
    }
    return TD_OK;
}

static void take_hosts(lists *l, const visit *v) {
    for (int k = 0; k < l->noperands; k++)
        l->operands[k].tensor = v->host[l->nouts + k];
}

static void drop(lists *l) {
    td_free(l->all);
    td_free(l->operands);
}

td_status td_cuda_fall_back_pointwise(const td_pointwise_plan *plan) {
    int n = plan->nlists ? plan->nlists : 1;
    td_pointwise_plan copy = *plan;
    visit v = {0};
    lists l;
    td_cuda_timed_forget();
    td_status status = gather(&l, n * plan->program->noutputs, plan->outs ? plan->outs : &plan->out,
                              n * plan->program->noperands, plan->operands);
    if (status == TD_OK)
        status = come(&v, plan->stream, l.nouts + l.noperands, l.all, l.nouts);
    if (status == TD_OK) {
        take_hosts(&l, &v);
        copy.stream = td_stream_current(TD_DEVICE_CPU);
        copy.operands = l.operands;
        copy.out = plan->outs ? NULL : v.host[0];
        copy.outs = plan->outs ? v.host : NULL;
        status = td_backends[TD_CPU]->pointwise(&copy);
    }
    status = go_back(&v, status);
    drop(&l);
    return status;
}

td_status td_cuda_fall_back_check(const td_check_plan *plan) {
    td_check_plan copy = *plan;
    visit v = {0};
    lists l;
    td_cuda_timed_forget();
    td_status status = gather(&l, 0, NULL, plan->program->noperands, plan->operands);
    if (status == TD_OK)
        status = come(&v, plan->stream, l.noperands, l.all, 0);
    if (status == TD_OK) {
        take_hosts(&l, &v);
        copy.stream = td_stream_current(TD_DEVICE_CPU);
        copy.operands = l.operands;
        status = td_backends[TD_CPU]->check(&copy);
    }
    status = go_back(&v, status);
    drop(&l);
    return status;
}

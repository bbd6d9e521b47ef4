/* index_plan.c: the plan of indexing with tensors, the dtype in which elements that meet at one
 * place are added up, and copies of what would be read while it is written. */
#include "engine/ops/index/index.h"
#include "engine/ops/make/copy.h"

#include <string.h>

/* The dims that are indexed follow one another? */
static bool adjacent(const td_index_plan *p) {
    for (int k = 1; k < p->nindexed; k++)
        if (p->index_dims[k] != p->index_dims[k - 1] + 1)
            return false;
    return true;
}

static void add_dims(int64_t *to, int *n, const int64_t *from, int count) {
    if (count)
        memcpy(to + *n, from, sizeof(int64_t) * (size_t)count);
    *n += count;
}

td_status td_index_plan_make(const td_tensor *x, td_value indices, td_index_plan *p) {
    memset(p, 0, sizeof *p);
    for (int d = 0; d < indices.n && d < x->ndim; d++) {
        if (!indices.tensors[d])
            continue;
        p->index[p->nindexed] = indices.tensors[d];
        p->from_one |= (uint16_t)((indices.from_one >> d & 1) << p->nindexed);
        p->index_sizes[p->nindexed] = x->sizes[d];
        p->index_strides[p->nindexed] = x->strides[d];
        p->index_dims[p->nindexed++] = d;
    }
    if (p->nindexed == 0)
        return td_fail(TD_EVALUE, "no index tensor given");
    bool in_place = adjacent(p);
    p->before = p->after = 1;
    for (int d = 0; d < x->ndim; d++) {
        if (d < indices.n && indices.tensors[d])
            continue;
        bool first = in_place && d < p->index_dims[0];
        int n = first ? p->nbefore++ : p->nafter++;
        (first ? p->before_sizes : p->after_sizes)[n] = x->sizes[d];
        (first ? p->before_strides : p->after_strides)[n] = x->strides[d];
        *(first ? &p->before : &p->after) *= x->sizes[d];
    }
    const td_tensor *index = p->index[0];
    p->places = index->numel;
    if (p->nbefore + index->ndim + p->nafter > TD_MAX_DIMS)
        return td_fail(TD_ESHAPE, "the result would have %d dims, at most %d are possible",
                       p->nbefore + index->ndim + p->nafter, TD_MAX_DIMS);
    add_dims(p->sizes, &p->ndim, p->before_sizes, p->nbefore);
    add_dims(p->sizes, &p->ndim, index->sizes, index->ndim);
    add_dims(p->sizes, &p->ndim, p->after_sizes, p->nafter);
    return TD_OK;
}

td_dtype td_meeting_dtype(td_dtype dtype, int64_t times, int64_t written, int64_t all) {
    enum { FEW = 32, LARGER = 16, MANY = 1 << 20 };
    if (dtype == TD_F32)
        return times > MANY ? TD_F64 : TD_F32;
    bool narrow = times < 2 || (times <= FEW && all / LARGER > written);
    return (dtype == TD_F16 || dtype == TD_BF16) && !narrow ? TD_F32 : dtype;
}

td_status td_add_meeting(td_add_strided_plan *plan, int64_t times) {
    td_tensor *out = plan->out, *from = plan->x, *written = NULL, *x = NULL;
    const td_device device = td_tensor_device(out);
    td_dtype dtype = td_meeting_dtype((td_dtype)out->dtype, times, from->numel, out->numel);
    td_status status = TD_OK;
    if (dtype != (td_dtype)out->dtype) {
        TD_TRY(td_tensor_empty(dtype, device, out->ndim, out->sizes, &written));
        TD_TRY(td_contiguous_as(from, dtype, &x));
    }
    plan->out = written ? written : out;
    plan->x = x ? x : from;
    TD_TRY(td_fill_int(plan->out, 0));
    TD_TRY(TD_RUN(device, add_strided, plan));
    if (written)
        status = td_copy_into(out, written);
done:
    td_release(written);
    td_release(x);
    return status;
}

td_status td_take_apart(const td_tensor *written, td_tensor **x) {
    td_tensor *old = *x, *copy = NULL;
    if (old->storage != written->storage)
        return TD_OK;
    td_status status =
        td_tensor_empty((td_dtype)old->dtype, td_tensor_device(old), old->ndim, old->sizes, &copy);
    if (status == TD_OK)
        status = td_copy_into(copy, old);
    td_release(old);
    *x = copy;
    return status;
}

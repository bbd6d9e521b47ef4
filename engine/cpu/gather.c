/* gather.c: gather, scatter, places of nonzero elements and the count from 1, on the CPU. */
#include "engine/ops/index.h"

#include "engine/core/threads.h"
#include "engine/ops/copy.h"

#include <string.h>

enum { GRAIN = 16 * 1024 };

/* ---- gather and scatter ---- */

/* `wide` is the tensor reached through the index (x of gather, the result of scatter), `narrow` the
 * other one, which goes along with the index. */
typedef struct walk_job {
    const td_tensor *index; /* row-major */
    char *wide, *narrow;
    const int64_t *wide_strides, *narrow_strides;
    int64_t no_strides[TD_MAX_DIMS];
    int ndim, dim;
    int64_t size, stride; /* of wide along the dim */
    int64_t line, lines;  /* the index's last dim, and the number of those */
    td_dtype dtype;
    enum { GATHER, SCATTER, SCATTER_ADD } what;
    atomic_llong bad; /* one more than the position of an index out of range */
} walk_job;

/* Offset of a line's start, without the indexed dim of the wide tensor. */
static void line_start(const walk_job *j, int64_t line, int64_t *wide, int64_t *narrow) {
    *wide = *narrow = 0;
    for (int d = j->ndim - 2; d >= 0; d--) {
        int64_t at = line % j->index->sizes[d];
        line /= j->index->sizes[d];
        *narrow += at * j->narrow_strides[d];
        if (d != j->dim)
            *wide += at * j->wide_strides[d];
    }
}

#define DEFINE_WALK(type, add)                                                                     \
    static bool walk_##add##_##type(walk_job *j, const int64_t *index, type *wide, type *narrow,   \
                                    int64_t wide_step, int64_t narrow_step, int64_t first) {       \
        for (int64_t k = 0; k < j->line; k++) {                                                    \
            int64_t i = index[k] < 0 ? index[k] + j->size : index[k];                              \
            if (TD_UNLIKELY((uint64_t)i >= (uint64_t)j->size)) {                                   \
                atomic_store_explicit(&j->bad, first + k + 1, memory_order_relaxed);               \
                return false;                                                                      \
            }                                                                                      \
            type *w = &wide[k * wide_step + i * j->stride], *n = &narrow[k * narrow_step];         \
            STEP_##add(w, n, type)                                                                 \
        }                                                                                          \
        return true;                                                                               \
    }
#define STEP_move(w, n, type)                                                                      \
    if (j->what == GATHER)                                                                         \
        *n = *w;                                                                                   \
    else                                                                                           \
        *w = *n;
#define STEP_add(w, n, type) *w = (type)(*w + *n);
#define STEP_or(w, n, type)  *w |= *n;
DEFINE_WALK(uint8_t, move)
DEFINE_WALK(uint32_t, move)
DEFINE_WALK(uint64_t, move)
DEFINE_WALK(float, add)
DEFINE_WALK(double, add)
DEFINE_WALK(int64_t, add)
DEFINE_WALK(int32_t, add)
DEFINE_WALK(uint8_t, add)
DEFINE_WALK(uint8_t, or)

static bool walk_line(walk_job *j, int64_t line) {
    int64_t wide, narrow, first = line * j->line;
    int last = j->ndim - 1;
    const int64_t *index = (const int64_t *)j->index->data + first;
    int64_t wide_step = j->ndim && j->dim != last ? j->wide_strides[last] : 0;
    int64_t narrow_step = j->ndim ? j->narrow_strides[last] : 0;
    line_start(j, line, &wide, &narrow);
#define WALK(type, add)                                                                            \
    walk_##add##_##type(j, index, (type *)j->wide + wide, (type *)j->narrow + narrow, wide_step,   \
                        narrow_step, first)
    if (j->what != SCATTER_ADD) {
        size_t size = td_dtype_size(j->dtype);
        return size == 1   ? WALK(uint8_t, move)
               : size == 4 ? WALK(uint32_t, move)
                           : WALK(uint64_t, move);
    }
    switch (j->dtype) {
    case TD_F32:
        return WALK(float, add);
    case TD_F64:
        return WALK(double, add);
    case TD_I64:
        return WALK(int64_t, add);
    case TD_I32:
        return WALK(int32_t, add);
    case TD_U8:
        return WALK(uint8_t, add);
    default:
        return WALK(uint8_t, or);
    }
#undef WALK
}

static void walk_lines(void *ctx, int64_t begin, int64_t end, int worker) {
    walk_job *j = ctx;
    (void)worker;
    for (int64_t line = begin; line < end; line++)
        if (!walk_line(j, line))
            return;
}

static td_status walk(walk_job *j, const td_tensor *wide, const td_tensor *narrow, int dim,
                      const td_tensor *index) {
    if (index->numel == 0)
        return TD_OK;
    j->index = index;
    j->wide = wide->data;
    j->narrow = narrow->data;
    j->wide_strides = wide->strides;
    j->narrow_strides = narrow->ndim == index->ndim ? narrow->strides : j->no_strides;
    j->ndim = index->ndim;
    j->dim = dim;
    j->size = wide->ndim ? wide->sizes[dim] : 1;
    j->stride = wide->ndim ? wide->strides[dim] : 0;
    j->line = j->ndim ? index->sizes[j->ndim - 1] : 1;
    j->lines = index->numel / j->line;
    j->dtype = (td_dtype)wide->dtype;
    td_status status = TD_OK;
    if (j->what == GATHER)
        status = td_parallel_for(j->lines, 1 + GRAIN / j->line, walk_lines, j);
    else /* places may be named twice: in order, on one thread */
        walk_lines(j, 0, j->lines, 0);
    if (status == TD_OK && j->bad) {
        int64_t i = ((const int64_t *)index->data)[j->bad - 1];
        status = td_fail(TD_EINDEX, "index %lld is out of range for dim %d of size %lld",
                         (long long)(i < 0 ? i : i + 1), dim + 1, (long long)j->size);
    }
    return status;
}

td_status td_cpu_gather(const td_tensor *x, int dim, const td_tensor *index, td_tensor *out) {
    walk_job j = {.what = GATHER};
    return walk(&j, x, out, dim, index);
}

td_status td_cpu_scatter(td_tensor *out, int dim, const td_tensor *index, const td_tensor *src,
                         bool add) {
    walk_job j = {.what = add ? SCATTER_ADD : SCATTER};
    return walk(&j, out, src, dim, index);
}

/* ---- nonzero ---- */

static bool differs_from_zero(td_dtype dtype, const char *p) {
    return td_dtype_is_float(dtype) ? td_load_double(dtype, p) != 0 : td_load_int(dtype, p) != 0;
}

td_status td_cpu_nonzero(const td_tensor *x, td_tensor **out) {
    td_tensor *packed = NULL;
    td_status status = TD_OK;
    int64_t at[TD_MAX_DIMS] = {0}, count = 0;
    TD_TRY(td_contiguous((td_tensor *)x, &packed));
    const char *p = packed->data;
    td_dtype dtype = (td_dtype)x->dtype;
    size_t size = td_tensor_itemsize(x);
    if (dtype == TD_BOOL)
        for (int64_t k = 0; k < x->numel; k++)
            count += p[k] != 0;
    else
        for (int64_t k = 0; k < x->numel; k++)
            count += differs_from_zero(dtype, p + (size_t)k * size);
    int64_t sizes[2] = {count, x->ndim};
    TD_TRY(td_tensor_empty(TD_I64, TD_DEVICE_CPU, 2, sizes, out));
    int64_t *to = (*out)->data;
    for (int64_t k = 0; k < x->numel; k++) {
        if (dtype == TD_BOOL ? p[k] != 0 : differs_from_zero(dtype, p + (size_t)k * size)) {
            memcpy(to, at, sizeof(int64_t) * x->ndim);
            to += x->ndim;
        }
        for (int d = x->ndim - 1; d >= 0; d--) {
            if (++at[d] < x->sizes[d])
                break;
            at[d] = 0;
        }
    }
done:
    td_release(packed);
    return status;
}

/* ---- counting from 1 ---- */

td_status td_cpu_from_one_based(const td_tensor *x, td_tensor *out) {
    int64_t *to = out->data;
    td_convert(TD_I64, to, sizeof *to, (td_dtype)x->dtype, x->data, (int64_t)td_tensor_itemsize(x),
               x->numel);
    for (int64_t k = 0; k < x->numel; k++) {
        if (to[k] == 0)
            return td_fail(TD_EINDEX, "index 0: indices count from 1 (PyTorch's 0 is 1)");
        to[k] -= to[k] > 0;
    }
    return TD_OK;
}

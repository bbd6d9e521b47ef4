/* pointwise_walk.c: lays the tensors of a pointwise plan out for the runner (pointwise.c). */
#include "engine/cpu/pointwise_walk.h"

#include <string.h>

enum {
    LONG_ROW = 256,         /* inner dims from here on are walked row by row */
    STREAM_BYTES = 64 << 20 /* results from here on are not found in a cache again */
};

void td_store_operand(td_dtype dtype, void *p, const td_operand *o) {
    if (o->is_int)
        td_store_int(dtype, p, o->i);
    else
        td_store_double(dtype, p, o->f);
}

/* ---- laying out ---- */

/* The shape that is walked, and strides that say in which order. */
typedef struct frame {
    int ndim;
    int64_t sizes[TD_MAX_DIMS], strides[TD_MAX_DIMS];
} frame;

static void take_frame(frame *f, const td_tensor *x) {
    f->ndim = x->ndim;
    memcpy(f->sizes, x->sizes, sizeof(int64_t) * (size_t)x->ndim);
    memcpy(f->strides, x->strides, sizeof(int64_t) * (size_t)x->ndim);
}

/* Of operands alone: their common shape, walked as the first of them lies that has it. */
static td_status frame_of_operands(frame *f, int n, const td_operand *operands) {
    f->ndim = 0;
    for (int k = 0; k < n; k++) {
        const td_tensor *x = operands[k].tensor;
        td_status status =
            x ? td_broadcast(f->ndim, f->sizes, x->ndim, x->sizes, &f->ndim, f->sizes) : TD_OK;
        if (status)
            return status;
    }
    for (int k = 0; k < n; k++) {
        const td_tensor *x = operands[k].tensor;
        if (x && x->ndim == f->ndim &&
            !memcmp(x->sizes, f->sizes, sizeof(int64_t) * (size_t)f->ndim)) {
            take_frame(f, x);
            return TD_OK;
        }
    }
    if (td_numel(f->ndim, f->sizes) < 0) {
        char text[TD_SHAPE_TEXT];
        return td_fail(TD_ESHAPE, "shape %s has too many elements",
                       td_shape_text(f->ndim, f->sizes, text, sizeof text));
    }
    td_contiguous_strides(f->ndim, f->sizes, f->strides);
    return TD_OK;
}

static td_status choose_frame(frame *f, const td_program *program, const td_operand *operands,
                              td_tensor *const *outs) {
    bool found = false;
    for (int k = 0; k < program->noutputs; k++) {
        if (program->outputs[k].kind != TD_OUTPUT_ELEMENTS) {
            if (outs[k]->numel != 1)
                return td_fail(TD_ESHAPE, "a sum over all elements needs a result of one element");
            continue;
        }
        if (!found)
            take_frame(f, outs[k]);
        else if (outs[k]->ndim != f->ndim ||
                 memcmp(outs[k]->sizes, f->sizes, sizeof(int64_t) * (size_t)f->ndim))
            return td_fail(TD_ESHAPE, "results of one program differ in shape");
        found = true;
    }
    return found ? TD_OK : frame_of_operands(f, program->noperands, operands);
}

/* Order of the walk: strides from large to small, dims of size 1 left out. */
static int order_dims(const frame *f, int *order) {
    int n = 0;
    for (int d = 0; d < f->ndim; d++) {
        if (f->sizes[d] == 1)
            continue;
        int at = n++;
        for (; at > 0 && f->strides[order[at - 1]] < f->strides[d]; at--)
            order[at] = order[at - 1];
        order[at] = d;
    }
    return n;
}

/* Strides in bytes of x seen in the frame, in the order of the walk: 0 where it is broadcast. */
static void set_strides(td_side *side, const td_tensor *x, const frame *f, const int *order,
                        int n) {
    int64_t size = (int64_t)td_tensor_itemsize(x);
    int lead = f->ndim - x->ndim;
    for (int k = 0; k < n; k++) {
        int d = order[k] - lead;
        side->strides[k] = d < 0 || x->sizes[d] == 1 ? 0 : x->strides[d] * size;
    }
    if (n == 0)
        side->strides[0] = size;
}

static bool mergeable(const td_walk *w, int nloads, int nouts, int d) {
    int64_t size = w->sizes[d + 1];
    for (int k = 0; k < nloads; k++)
        if (!w->loads[k].scalar && w->loads[k].strides[d] != w->loads[k].strides[d + 1] * size)
            return false;
    for (int k = 0; k < nouts; k++)
        if (!w->outs[k].scalar && w->outs[k].strides[d] != w->outs[k].strides[d + 1] * size)
            return false;
    return true;
}

static void drop_stride(td_side *side, int d, int ndim) {
    for (int e = d; e < ndim - 1; e++)
        side->strides[e] = side->strides[e + 1];
}

static void merge_dims(td_walk *w, int nloads, int nouts) {
    for (int d = w->ndim - 2; d >= 0; d--) {
        if (!mergeable(w, nloads, nouts, d))
            continue;
        w->sizes[d + 1] *= w->sizes[d];
        for (int e = d; e < w->ndim - 1; e++)
            w->sizes[e] = w->sizes[e + 1];
        for (int k = 0; k < nloads; k++)
            drop_stride(&w->loads[k], d, w->ndim);
        for (int k = 0; k < nouts; k++)
            drop_stride(&w->outs[k], d, w->ndim);
        w->ndim--;
    }
}

static bool lies_dense(const td_walk *w, const td_side *x) {
    int64_t stride = (int64_t)td_dtype_size(x->as);
    if (x->dtype != x->as)
        return false;
    for (int d = w->ndim - 1; d >= 0; d--) {
        if (x->strides[d] != stride)
            return false;
        stride *= w->sizes[d];
    }
    return true;
}

/* Does a step after the one that makes output k read the memory of that output? */
static bool read_later(const td_walk *w, const td_program *program, int k) {
    for (int s = program->outputs[k].step + 1; s < program->nsteps; s++)
        for (int j = 0; j < program->steps[s].arity; j++) {
            int source = program->steps[s].src[j];
            if (source < program->nloads && !w->loads[source].scalar &&
                w->loads[source].data == w->outs[k].data)
                return true;
        }
    return false;
}

/* Along a row a single step reads single elements and runs, and writes a run. */
static bool runs_along_rows(const td_walk *w, int nloads) {
    const td_side *out = &w->outs[0];
    int last = w->ndim - 1;
    for (int k = 0; k < nloads; k++) {
        const td_side *x = &w->loads[k];
        bool run = x->dtype == x->as && x->strides[last] == (int64_t)td_dtype_size(x->as);
        if (!x->scalar && !run && x->strides[last] != 0)
            return false;
    }
    return out->dtype == out->as && out->strides[last] == (int64_t)td_dtype_size(out->as);
}

/* A large result that is not read is better written past the caches, which saves reading it first.
 */
static void choose_streams(td_walk *w, const td_program *program) {
    int64_t bytes = 0;
    w->streams = false;
    for (int k = 0; k < program->noutputs; k++)
        bytes += w->outs[k].dense ? w->numel * (int64_t)td_dtype_size(w->outs[k].as) : 0;
    if (TD_LIKELY(bytes < STREAM_BYTES))
        return;
    for (int k = 0; k < program->noutputs; k++) {
        td_side *x = &w->outs[k];
        x->streamed = x->dense;
        for (int j = 0; j < program->nloads; j++)
            x->streamed &= w->loads[j].data != x->data;
        w->streams |= x->streamed;
    }
    w->direct &= !w->streams;
}

static void note_density(td_walk *w, const td_program *program) {
    w->simple = true;
    for (int k = 0; k < program->nloads; k++) {
        w->loads[k].dense = !w->loads[k].scalar && lies_dense(w, &w->loads[k]);
        w->simple &= w->loads[k].scalar || w->loads[k].dense;
    }
    for (int k = 0; k < program->noutputs; k++) {
        w->outs[k].dense = !w->outs[k].scalar && lies_dense(w, &w->outs[k]);
        w->outs[k].apart = read_later(w, program, k);
        w->simple &= w->outs[k].scalar || w->outs[k].dense;
    }
    w->rows = w->ndim > 1 && w->sizes[w->ndim - 1] >= LONG_ROW;
    w->direct = program->nsteps == 1 && !w->outs[0].scalar &&
                (w->simple || (w->rows && runs_along_rows(w, program->nloads)));
    choose_streams(w, program);
}

/* All but the strides; false where there are none to set. */
static bool init_load(td_side *x, const td_operand *o) {
    const td_tensor *t = o->tensor;
    x->dense = x->apart = x->streamed = false;
    x->scalar = !t || t->numel == 1;
    x->data = t ? t->data : NULL;
    x->dtype = t ? t->dtype : x->as;
    if (!t)
        td_store_operand((td_dtype)x->as, x->value, o);
    else if (x->scalar)
        td_convert((td_dtype)x->as, x->value, 0, (td_dtype)t->dtype, t->data, 0, 1);
    return !x->scalar;
}

static bool init_out(td_side *x, const td_tensor *t, uint8_t kind) {
    x->dense = x->apart = x->streamed = false;
    x->scalar = kind != TD_OUTPUT_ELEMENTS;
    x->data = t->data;
    x->dtype = t->dtype;
    return !x->scalar;
}

bool td_walk_is_flat(const td_program *program, const td_operand *operands,
                     td_tensor *const *outs) {
    for (int k = 0; k < program->noutputs; k++)
        if (program->outputs[k].kind != TD_OUTPUT_ELEMENTS || !outs[k]->contiguous ||
            (k > 0 && !td_tensor_same_shape(outs[k], outs[0])))
            return false;
    for (int k = 0; k < program->nloads; k++) {
        const td_tensor *x = operands[program->loads[k].operand].tensor;
        if (x && x->numel != 1 && (!x->contiguous || !td_tensor_same_shape(x, outs[0])))
            return false;
    }
    return true;
}

/* Tensors of one shape, all row-major, are one dim. */
static void lay_flat(td_walk *w, const td_program *program, const td_operand *operands,
                     td_tensor *const *outs) {
    w->ndim = 1;
    w->numel = w->sizes[0] = outs[0]->numel;
    for (int k = 0; k < program->nloads; k++)
        if (init_load(&w->loads[k], &operands[program->loads[k].operand]))
            w->loads[k].strides[0] = (int64_t)td_dtype_size(w->loads[k].dtype);
    for (int k = 0; k < program->noutputs; k++)
        if (init_out(&w->outs[k], outs[k], TD_OUTPUT_ELEMENTS))
            w->outs[k].strides[0] = (int64_t)td_dtype_size(w->outs[k].dtype);
}

static td_status lay_out(td_walk *w, const td_program *program, const td_operand *operands,
                         td_tensor *const *outs) {
    frame f;
    int order[TD_MAX_DIMS];
    td_status status = choose_frame(&f, program, operands, outs);
    if (status)
        return status;
    int n = order_dims(&f, order);
    w->numel = 1;
    for (int d = 0; d < f.ndim; d++)
        w->numel *= f.sizes[d];
    w->ndim = n > 0 ? n : 1;
    w->sizes[0] = 1;
    for (int k = 0; k < n; k++)
        w->sizes[k] = f.sizes[order[k]];
    for (int k = 0; k < program->nloads; k++) {
        const td_operand *o = &operands[program->loads[k].operand];
        if (init_load(&w->loads[k], o))
            set_strides(&w->loads[k], o->tensor, &f, order, n);
    }
    for (int k = 0; k < program->noutputs; k++)
        if (init_out(&w->outs[k], outs[k], program->outputs[k].kind))
            set_strides(&w->outs[k], outs[k], &f, order, n);
    merge_dims(w, program->nloads, program->noutputs);
    return TD_OK;
}

td_status td_walk_init(td_walk *w, const td_program *program, td_dtype compute,
                       const td_operand *operands, td_tensor *const *outs) {
    for (int k = 0; k < program->nloads; k++)
        w->loads[k].as = (uint8_t)td_dtype_in_call(program->loads[k].dtype, compute);
    for (int k = 0; k < program->noutputs; k++)
        w->outs[k].as = (uint8_t)td_dtype_in_call(program->outputs[k].dtype, compute);
    if (td_walk_is_flat(program, operands, outs)) {
        lay_flat(w, program, operands, outs);
    } else {
        td_status status = lay_out(w, program, operands, outs);
        if (status)
            return status;
    }
    note_density(w, program);
    return TD_OK;
}

/* ---- list after list ---- */

enum { PAIRS = 64 }; /* of an operand and a result, as bits */

static uint64_t aliases_of(const td_walk *w, const td_program *program) {
    uint64_t bits = 0;
    for (int k = 0; k < program->noutputs; k++)
        for (int j = 0; j < program->nloads; j++)
            bits = bits << 1 | (!w->loads[j].scalar && w->loads[j].data == w->outs[k].data);
    return bits;
}

/* The same number, or another tensor of the same dtype; not a single element. */
static bool move_load(td_side *x, const td_operand *o, const td_operand *before) {
    const td_tensor *t = o->tensor;
    if (!t)
        return !before->tensor && o->is_int == before->is_int && o->i == before->i &&
               !memcmp(&o->f, &before->f, sizeof o->f);
    if (x->scalar || t->numel == 1 || t->dtype != x->dtype)
        return false;
    x->data = t->data;
    return true;
}

/* From a flat list to the next one, where they differ in addresses and length alone. */
static bool move_on(td_walk *w, const td_program *program, const td_operand *operands,
                    td_tensor *const *outs) {
    int64_t bytes = outs[0]->numel * 8 * program->noutputs;
    if (!w->flat || w->streams || bytes >= STREAM_BYTES)
        return false;
    for (int k = 0; k < program->nloads; k++) {
        int at = program->loads[k].operand;
        if (!move_load(&w->loads[k], &operands[at], &w->operands[at]))
            return false;
    }
    for (int k = 0; k < program->noutputs; k++) {
        if (outs[k]->dtype != w->outs[k].dtype)
            return false;
        w->outs[k].data = outs[k]->data;
    }
    w->numel = w->sizes[0] = outs[0]->numel;
    w->operands = operands;
    return aliases_of(w, program) == w->aliases;
}

void td_walk_next(td_walk *w, const td_program *program, td_dtype compute,
                  const td_operand *operands, td_tensor *const *outs, bool flat) {
    if (flat && move_on(w, program, operands, outs))
        return;
    td_status known = td_walk_init(w, program, compute, operands, outs);
    (void)known;
    w->flat = flat && program->nloads * program->noutputs <= PAIRS;
    w->operands = operands;
    w->aliases = w->flat ? aliases_of(w, program) : 0;
}

/* ---- moving elements between strided memory and buffers ---- */

#define STRIDED_COPY(type)                                                                         \
    for (int64_t i = 0; i < n; i++, dst += dst_stride, src += src_stride)                          \
        memcpy(dst, src, sizeof(type));

static void copy_run(char *dst, int64_t dst_stride, const char *src, int64_t src_stride, int64_t n,
                     size_t itemsize) {
    if (dst_stride == (int64_t)itemsize && src_stride == (int64_t)itemsize) {
        memcpy(dst, src, (size_t)n * itemsize);
        return;
    }
    switch (itemsize) {
    case 1:
        STRIDED_COPY(uint8_t)
        break;
    case 2:
        STRIDED_COPY(uint16_t)
        break;
    case 4:
        STRIDED_COPY(uint32_t)
        break;
    default:
        STRIDED_COPY(uint64_t)
    }
}

void td_walk_place(const td_walk *w, int64_t at, int64_t *index) {
    for (int d = w->ndim - 1; d >= 0; d--) {
        index[d] = at % w->sizes[d];
        at /= w->sizes[d];
    }
}

static char *address(const td_walk *w, const td_side *x, const int64_t *index) {
    char *data = x->data;
    for (int d = 0; d < w->ndim; d++)
        data += index[d] * x->strides[d];
    return data;
}

char *td_walk_address(const td_walk *w, const td_side *x, int64_t at, const int64_t *index) {
    int64_t size = (int64_t)td_dtype_size(x->as);
    if (x->dense)
        return x->data + at * size;
    if (!w->rows || x->dtype != x->as || x->strides[w->ndim - 1] != size)
        return NULL;
    return address(w, x, index);
}

/* Runs of the inner dim one after the other. */
static void move_block(const td_walk *w, const td_side *x, const int64_t *from, int64_t n,
                       char *buffer, bool gather) {
    size_t itemsize = td_dtype_size(x->dtype);
    int64_t index[TD_MAX_DIMS];
    char *data = address(w, x, from);
    int last = w->ndim - 1;
    memcpy(index, from, sizeof *index * (size_t)w->ndim);
    while (n > 0) {
        int64_t run = w->sizes[last] - index[last];
        if (run > n)
            run = n;
        if (gather)
            copy_run(buffer, (int64_t)itemsize, data, x->strides[last], run, itemsize);
        else
            copy_run(data, x->strides[last], buffer, (int64_t)itemsize, run, itemsize);
        buffer += run * (int64_t)itemsize;
        n -= run;
        data += run * x->strides[last];
        index[last] += run;
        for (int d = last; d > 0 && index[d] == w->sizes[d]; d--) {
            data += x->strides[d - 1] - index[d] * x->strides[d];
            index[d] = 0;
            index[d - 1]++;
        }
    }
}

void td_walk_gather(const td_walk *w, const td_side *x, const int64_t *index, int64_t n,
                    void *buffer) {
    move_block(w, x, index, n, buffer, true);
}

void td_walk_scatter(const td_walk *w, const td_side *x, const int64_t *index, int64_t n,
                     const void *buffer) {
    move_block(w, x, index, n, (char *)buffer, false);
}

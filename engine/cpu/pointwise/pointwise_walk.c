/* pointwise_walk.c: lays the tensors of a pointwise plan out for the runner (pointwise.c). */
#include "engine/cpu/pointwise/pointwise_walk.h"

#include "engine/cpu/isa/isa.h"
#include "engine/cpu/limits.h"

#include <string.h>

void td_store_operand(td_dtype dtype, void *p, const td_operand *o) {
    if (o->is_int)
        td_store_int(dtype, p, o->i);
    else
        td_store_double(dtype, p, o->f);
}

/* ---- laying out ---- */

/* Strides of a side in the order of the walk. */
static void set_strides(td_side *side, const td_tensor *x, const td_frame *f, const int *order,
                        int n) {
    td_frame_strides(f, x, order, n, side->strides);
    if (n == 0)
        side->strides[0] = (int64_t)td_tensor_itemsize(x);
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
        if (x->scalar) /* which has no strides */
            continue;
        bool run = x->dtype == x->as && x->strides[last] == (int64_t)td_dtype_size(x->as);
        if (!run && x->strides[last] != 0)
            return false;
    }
    return out->dtype == out->as && out->strides[last] == (int64_t)td_dtype_size(out->as);
}

/* The same where they lie, not all of them single elements. */
static bool steps_along_rows(const td_walk *w, int nloads) {
    bool run = false;
    for (int k = 0; k < nloads; k++) {
        const td_side *x = &w->loads[k];
        if (!x->scalar && x->dtype != x->as)
            return false;
        run |= !x->scalar && x->strides[w->ndim - 1] != 0;
    }
    return run && runs_along_rows(w, nloads);
}

/* A large result that is not read is better written past the caches, which saves reading it first.
 */
static void choose_streams(td_walk *w, const td_program *program) {
    int64_t bytes = 0;
    w->streams = false;
    for (int k = 0; k < program->noutputs; k++)
        bytes += w->outs[k].dense ? w->numel * (int64_t)td_dtype_size(w->outs[k].as) : 0;
    if (TD_LIKELY(bytes < TD_LIMIT(WALK_STREAM)))
        return;
    for (int k = 0; k < program->noutputs; k++) {
        td_side *x = &w->outs[k];
        x->streamed = x->dense;
        for (int j = 0; j < program->nloads; j++)
            x->streamed &= w->loads[j].data != x->data;
        w->streams |= x->streamed;
    }
    w->direct &= !w->streams;
    w->direct_rows &= !w->streams;
    w->in_place &= !w->streams;
}

static bool copies_bytes(const td_walk *w, const td_program *program) {
    const td_side *x = &w->loads[0], *out = &w->outs[0];
    const int64_t size = (int64_t)td_dtype_size(out->dtype);
    return program->steps[0].primitive == TD_PW_copy && program->nloads == 1 && !x->scalar &&
           x->dtype == out->dtype && x->strides[w->ndim - 1] == size &&
           out->strides[w->ndim - 1] == size;
}

static void note_density(td_walk *w, const td_program *program) {
    bool buffered = false;
    w->simple = true;
    for (int k = 0; k < program->nloads; k++) {
        w->loads[k].dense = !w->loads[k].scalar && lies_dense(w, &w->loads[k]);
        w->simple &= w->loads[k].scalar || w->loads[k].dense;
    }
    for (int k = 0; k < program->noutputs; k++) {
        w->outs[k].dense = !w->outs[k].scalar && lies_dense(w, &w->outs[k]);
        w->outs[k].apart = read_later(w, program, k);
        w->simple &= w->outs[k].scalar || w->outs[k].dense;
        buffered |= w->outs[k].scalar || w->outs[k].apart;
    }
    w->in_place = w->simple && !buffered;
    w->rows = w->ndim > 1 && w->sizes[w->ndim - 1] >= TD_LIMIT(WALK_ROW);
    w->direct = program->nsteps == 1 && !w->outs[0].scalar &&
                (w->simple || (w->rows && runs_along_rows(w, program->nloads)));
    w->direct_rows =
        program->nsteps == 1 && w->ndim > 1 && !w->simple && !w->outs[0].scalar &&
        w->sizes[w->ndim - 1] >=
            (copies_bytes(w, program) ? TD_LIMIT(WALK_COPIED_ROW) : TD_LIMIT(WALK_DIRECT_ROW)) &&
        steps_along_rows(w, program->nloads);
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
    td_frame f;
    int order[TD_MAX_DIMS];
    td_status status = td_frame_choose(&f, program, operands, outs);
    if (status)
        return status;
    int n = td_frame_order(&f, order);
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
    w->flat = false;
    w->moving = ~(uint64_t)0;
    for (int k = 0; k < program->nloads; k++)
        w->loads[k].as = (uint8_t)td_dtype_in_call(program->loads[k].dtype, compute);
    for (int k = 0; k < program->noutputs; k++)
        w->outs[k].as = (uint8_t)td_dtype_in_call(program->outputs[k].dtype, compute);
    if (td_frame_is_flat(program, program->noperands, operands, outs)) {
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

enum { BITS = 64 };

static uint64_t aliases_of(const td_walk *w, const td_program *program) {
    uint64_t bits = 0;
    for (int k = 0; k < program->noutputs; k++)
        for (uint64_t rest = w->moving; rest; rest &= rest - 1)
            bits = bits << 1 | (w->loads[__builtin_ctzll(rest)].data == w->outs[k].data);
    return bits;
}

static bool is_same_number(const td_operand *a, const td_operand *b) {
    return !a->tensor && a->is_int == b->is_int && a->i == b->i &&
           !memcmp(&a->f, &b->f, sizeof a->f);
}

/* Loads that don't move: numbers that the list before had too. */
static bool same_numbers(const td_walk *w, const td_program *program, const td_operand *operands) {
    for (int k = 0; k < program->nloads; k++) {
        int at = program->loads[k].operand;
        if (w->loads[k].scalar && !is_same_number(&operands[at], &w->operands[at]))
            return false;
    }
    return true;
}

/* From a flat list to the next one, where they differ in addresses and length alone. */
static bool move_on(td_walk *w, const td_program *program, const td_operand *operands,
                    td_tensor *const *outs, int nown) {
    int64_t bytes = outs[0]->numel * 8 * program->noutputs;
    if (!w->flat || w->streams || bytes >= TD_LIMIT(WALK_STREAM))
        return false;
    if (nown == program->noperands && !same_numbers(w, program, operands))
        return false;
    for (uint64_t rest = w->moving; rest; rest &= rest - 1) {
        int k = __builtin_ctzll(rest);
        const td_tensor *t = operands[program->loads[k].operand].tensor;
        if (!t || t->numel == 1 || t->dtype != w->loads[k].dtype)
            return false;
        w->loads[k].data = t->data;
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

/* Is this a list of which the next may differ in little: no single elements of tensors? */
static bool know_for_next(td_walk *w, const td_program *program, const td_operand *operands) {
    bool single = false;
    w->moving = 0;
    for (int k = 0; k < program->nloads; k++) {
        w->moving |= (uint64_t)!w->loads[k].scalar << k;
        single |= w->loads[k].scalar && operands[program->loads[k].operand].tensor;
    }
    w->operands = operands;
    w->aliases = aliases_of(w, program);
    return !single;
}

bool td_walk_next(td_walk *w, const td_program *program, td_dtype compute,
                  const td_operand *operands, td_tensor *const *outs, bool flat, int nown) {
    if (flat && move_on(w, program, operands, outs, nown))
        return true;
    td_status known = td_walk_init(w, program, compute, operands, outs);
    (void)known;
    w->flat =
        flat && program->nloads * program->noutputs <= BITS && know_for_next(w, program, operands);
    return false;
}

/* ---- moving elements between strided memory and buffers ---- */

#define STRIDED_COPY(type)                                                                         \
    _Pragma("GCC unroll 4") for (int64_t i = 0; i < n; i++)                                        \
        memcpy(dst + i * dst_stride, src + i * src_stride, sizeof(type));

static void copy_run(char *dst, int64_t dst_stride, const char *src, int64_t src_stride, int64_t n,
                     size_t itemsize) {
    if (dst_stride == (int64_t)itemsize && src_stride == (int64_t)itemsize) {
        memcpy(dst, src, (size_t)n * itemsize);
        return;
    }
    if (dst_stride == (int64_t)itemsize && src_stride == -(int64_t)itemsize) {
        td_cpu->pointwise->reverse(dst, src, n, itemsize);
        return;
    }
    if (dst_stride == (int64_t)itemsize && src_stride > 0) {
        td_cpu->pointwise->every(dst, src, src_stride / dst_stride, n, itemsize);
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

/* How the elements of one side follow each other, the innermost dim first: dims that follow each
 * other in its memory are one, whether or not they are for the others. */
typedef struct course {
    int ndim;
    int64_t sizes[TD_MAX_DIMS], strides[TD_MAX_DIMS], index[TD_MAX_DIMS];
} course;

static course find_course(const td_walk *w, const td_side *x, const int64_t *from) {
    int k = 0, inner = w->ndim - 1;
    course c = {.sizes = {w->sizes[inner]}, .strides = {x->strides[inner]}, .index = {from[inner]}};
    for (int d = w->ndim - 2; d >= 0; d--) {
        if (x->strides[d] == c.strides[k] * c.sizes[k]) {
            c.index[k] += from[d] * c.sizes[k];
            c.sizes[k] *= w->sizes[d];
            continue;
        }
        k++;
        c.sizes[k] = w->sizes[d];
        c.strides[k] = x->strides[d];
        c.index[k] = from[d];
    }
    c.ndim = k + 1;
    return c;
}

/* From data into the buffer or back. */
static void move_run(char *data, int64_t stride, char *buffer, int64_t buffer_stride, int64_t n,
                     size_t itemsize, bool gather) {
    if (gather)
        copy_run(buffer, buffer_stride, data, stride, n, itemsize);
    else
        copy_run(data, stride, buffer, buffer_stride, n, itemsize);
}

/* Short rows lie in boxes: all places of the dims within `along`, so many times along that. */
typedef struct boxes {
    int along;          /* 0: a row is moved as it is */
    int64_t count, box; /* of them; elements of each */
} boxes;

static bool is_repeated(const course *c, bool gather) {
    return gather && c->ndim > 1 && c->strides[1] == 0;
}

/* Those of the next n elements that make runs at least twice as long as smaller ones do. */
static boxes find_boxes(const course *c, int64_t n, bool gather) {
    boxes best = {0};
    if (c->sizes[0] > TD_LIMIT(WALK_COLUMNS) && !is_repeated(c, gather))
        return best;
    int64_t box = 1;
    for (int d = 1; d < c->ndim; d++) {
        box *= c->sizes[d - 1];
        if (c->index[d - 1] != 0 || n < 2 * box || (d > 1 && box > TD_LIMIT(WALK_BOX)))
            break;
        int64_t left = c->sizes[d] - c->index[d], count = n / box < left ? n / box : left;
        if (count >= 2 * best.count)
            best = (boxes){d, count, box};
        if (is_repeated(c, gather))
            break;
    }
    return best;
}

/* One place of a box goes after the other. */
static void move_boxes(const course *c, const boxes *b, char *data, char *buffer, size_t itemsize,
                       bool gather) {
    int64_t item = (int64_t)itemsize, index[TD_MAX_DIMS];
    memset(index, 0, (size_t)b->along * sizeof *index);
    for (int64_t place = 0; place < b->box; place++) {
        move_run(data, c->strides[b->along], buffer + place * item, b->box * item, b->count,
                 itemsize, gather);
        data += c->strides[0];
        index[0]++;
        for (int d = 0; d + 1 < b->along && index[d] == c->sizes[d]; d++) {
            data += c->strides[d + 1] - index[d] * c->strides[d];
            index[d] = 0;
            index[d + 1]++;
        }
    }
}

/* A row that is the same each time. */
static void repeat_row(const course *c, int64_t rows, const char *data, char *buffer,
                       size_t itemsize) {
    int64_t item = (int64_t)itemsize, row = c->sizes[0] * item;
    copy_run(buffer, item, data, c->strides[0], c->sizes[0], itemsize);
    for (int64_t done = 1; done < rows;) {
        int64_t more = done < rows - done ? done : rows - done;
        memcpy(buffer + done * row, buffer, (size_t)(more * row));
        done += more;
    }
}

#define SPREAD(type)                                                                               \
    for (int64_t row = 0; row < rows; row++, data += stride) {                                     \
        typedef type several __attribute__((vector_size(16)));                                     \
        enum { SEVERAL = sizeof(several) / sizeof(type) };                                         \
        const several all = (several){0} + *(const type *)data;                                    \
        int64_t k = 0;                                                                             \
        for (; k + SEVERAL <= n; k += SEVERAL, buffer += sizeof all)                               \
            memcpy(buffer, &all, sizeof all);                                                      \
        for (; k < n; k++, buffer += sizeof(type))                                                 \
            memcpy(buffer, data, sizeof(type));                                                    \
    }

/* Rows of n times an element. */
static void spread_elements(char *buffer, const char *data, int64_t stride, int64_t rows, int64_t n,
                            size_t itemsize) {
    switch (itemsize) {
    case 1:
        SPREAD(uint8_t)
        break;
    case 2:
        SPREAD(uint16_t)
        break;
    case 4:
        SPREAD(uint32_t)
        break;
    default:
        SPREAD(uint64_t)
    }
}

/* Are rows of one element, each of them another, next? So many whole ones of n elements. */
static int64_t spread_rows(const course *c, int64_t n, bool gather) {
    if (!gather || c->ndim < 2 || c->strides[0] != 0 || c->index[0] != 0)
        return 0;
    int64_t left = c->sizes[1] - c->index[1], rows = n / c->sizes[0];
    return rows < left ? rows : left;
}

static void move_block(const td_walk *w, const td_side *x, const int64_t *from, int64_t n,
                       char *buffer, bool gather) {
    size_t itemsize = td_dtype_size(x->dtype);
    char *data = address(w, x, from);
    course c = find_course(w, x, from);
    while (n > 0) {
        int64_t spread = spread_rows(&c, n, gather);
        boxes b = find_boxes(&c, n, gather);
        if (spread > 0) {
            b = (boxes){1, spread, c.sizes[0]};
            spread_elements(buffer, data, c.strides[1], spread, c.sizes[0], itemsize);
        } else if (!b.along) {
            int64_t left = c.sizes[0] - c.index[0];
            b = (boxes){0, left < n ? left : n, 1};
            move_run(data, c.strides[0], buffer, (int64_t)itemsize, b.count, itemsize, gather);
        } else if (is_repeated(&c, gather)) {
            repeat_row(&c, b.count, data, buffer, itemsize);
        } else {
            move_boxes(&c, &b, data, buffer, itemsize, gather);
        }
        int d = b.along;
        c.index[d] += b.count;
        data += b.count * c.strides[d];
        buffer += b.count * b.box * (int64_t)itemsize;
        n -= b.count * b.box;
        for (; d + 1 < c.ndim && c.index[d] == c.sizes[d]; d++) {
            data += c.strides[d + 1] - c.index[d] * c.strides[d];
            c.index[d] = 0;
            c.index[d + 1]++;
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

/* pointwise_rows.c: pointwise steps and chains that read and write elements in place, without a
 * buffer: all of them as one run of memory, or row by row where operands broadcast or have gaps. */
#include "engine/cpu/limits.h"
#include "engine/cpu/pointwise/pointwise_job.h"

#include <stdlib.h>
#include <string.h>

enum {
    PAGE = 4096,              /* bytes, */
    VECTOR = 32,              /* of the C library's loads, */
    COPY_BY_MICROCODE = 2048, /* from which on it does not go by vectors */
};

typedef td_step_code step_code;
typedef td_pointwise_job job;
typedef td_worker_memory worker_memory;

/* ---- all of them ---- */

/* A single step over what lies in the order of the walk: nothing has to be laid out for it. False:
 * it is more than that, and nothing was done. */
static bool run_direct(const job *j, const td_walk *w, int64_t begin, int64_t end) {
    const td_program *p = j->program;
    const step_code *code = &j->code[0];
    const void *src[3] = {NULL, NULL, NULL};
    unsigned scalars = 0;
    if (!w->direct || !w->simple || !code->loop || p->steps[0].primitive == TD_PW_pow)
        return false;
    for (int k = 0; k < code->arity; k++) {
        int reg = code->src[k];
        const td_side *x = reg < p->nloads ? &w->loads[reg] : NULL;
        bool scalar = !x || x->scalar;
        if (!x)
            src[k] = j->constants[reg - p->nloads];
        else
            src[k] = scalar ? (const char *)x->value
                            : x->data + begin * (int64_t)td_dtype_size((td_dtype)x->as);
        scalars |= (unsigned)scalar << k;
    }
    if (scalars == (1u << code->arity) - 1)
        return false;
    char *out = w->outs[0].data + begin * (int64_t)td_dtype_size((td_dtype)w->outs[0].as);
    code->loop(end - begin, out, src[0], src[1], src[2], scalars);
    return true;
}

/* ---- rows ---- */

/* A side that runs or stands still along the inner dim, and how far it goes for each index of a
 * dim.
 */
typedef struct row_side {
    char *p;
    const int64_t *strides;
    int64_t item; /* along a row; 0: a single element */
    int64_t next; /* to the row behind, where that has the same index in all dims but one */
} row_side;

static const int64_t still[TD_MAX_DIMS];

static row_side begin_side(const td_walk *w, const td_side *x, const int64_t *index) {
    return (row_side){td_walk_element(w, x, index), x->strides, x->strides[w->ndim - 1],
                      w->ndim > 1 ? x->strides[w->ndim - 2] : 0};
}

/* From the beginning of a row to that of the next one. */
static inline void next_row(const td_walk *w, int64_t *index, row_side *sides, int n) {
    int d = w->ndim - 2;
    if (d >= 0 && TD_LIKELY(++index[d] < w->sizes[d])) {
        for (int k = 0; k < n; k++)
            sides[k].p += sides[k].next;
        return;
    }
    while (d >= 0) { /* back to this dim's beginning, and one further in the dim before it */
        for (int k = 0; k < n; k++)
            sides[k].p += sides[k].strides[d] * (1 - w->sizes[d]);
        index[d] = 0;
        if (--d < 0 || ++index[d] >= w->sizes[d])
            continue;
        for (int k = 0; k < n; k++)
            sides[k].p += sides[k].strides[d];
        return;
    }
}

/* What is done with a row, or the part of one, of n elements from where the sides are. */
typedef void (*row_fn)(void *ctx, int64_t n, const row_side *sides);

/* Elements [begin, end) row by row, where `sides` stand at the first of them; index: its place. */
static inline __attribute__((always_inline)) void for_rows(const td_walk *w, int64_t begin,
                                                           int64_t end, int64_t *index,
                                                           row_side *sides, int nsides, row_fn each,
                                                           void *ctx) {
    int64_t inner = w->sizes[w->ndim - 1], from = index[w->ndim - 1];
    for (int64_t at = begin, n; at < end; at += n) {
        n = inner - from < end - at ? inner - from : end - at;
        each(ctx, n, sides);
        for (int k = 0; from && k < nsides; k++)
            sides[k].p -= from * sides[k].item;
        from = 0;
        next_row(w, index, sides, nsides);
    }
}

/* A loop of a single step, and its operands: where no side moves, and with what they are as floats.
 */
typedef struct row_step {
    td_pointwise_fn loop;
    td_rows_fn rows; /* or NULL */
    int arity;
    unsigned scalars; /* operands that are single elements along a row, */
    unsigned turning; /* those of them that are another in each row, and narrow */
    const void *src[3];
    td_dtype dtypes[3];
} row_step;

static inline void step_along_row(void *ctx, int64_t n, const row_side *sides) {
    const row_step *s = ctx;
    s->loop(n, sides[0].p, sides[1].p, sides[2].p, sides[3].p, s->scalars);
}

/* Single elements along a row come as floats. */
static inline void narrow_step_along_row(void *ctx, int64_t n, const row_side *sides) {
    row_step *s = ctx;
    float single[3];
    for (int k = 0; k < s->arity; k++) {
        if (s->turning >> k & 1) {
            single[k] = (float)td_load_double(s->dtypes[k], sides[k + 1].p);
            s->src[k] = &single[k];
        } else {
            s->src[k] = sides[k + 1].p;
        }
    }
    s->loop(n, sides[0].p, s->src[0], s->src[1], s->src[2], s->scalars);
}

/* The sides of a single step at an element: what it makes, then what it reads. */
static void begin_step(const job *j, const td_walk *w, const int64_t *index, row_step *s,
                       row_side *sides) {
    const td_program *p = j->program;
    sides[0] = begin_side(w, &w->outs[0], index);
    for (int k = 0; k < 3; k++)
        sides[k + 1] = (row_side){.strides = still};
    for (int k = 0; k < s->arity; k++) {
        int reg = j->code[0].src[k];
        const td_side *x = reg < p->nloads ? &w->loads[reg] : NULL;
        if (!x) {
            sides[k + 1].p = (char *)j->constants[reg - p->nloads];
        } else if (x->scalar) {
            sides[k + 1].p = (char *)x->value;
        } else {
            sides[k + 1] = begin_side(w, x, index);
            s->turning |= (unsigned)(sides[k + 1].item == 0) << k;
            s->dtypes[k] = (td_dtype)x->dtype;
        }
        s->scalars |= (unsigned)(sides[k + 1].item == 0) << k;
    }
}

/* What is done with `rows` whole rows of n elements, each a side's `next` behind the one before. */
typedef void (*rows_fn)(void *ctx, int64_t rows, int64_t n, const row_side *sides);

/* Elements [begin, end) as for_rows, but for whole rows by as many as lie in the dim before. */
static inline __attribute__((always_inline)) void
for_many_rows(const td_walk *w, int64_t begin, int64_t end, int64_t *index, row_side *sides,
              int nsides, row_fn each, rows_fn many, void *ctx) {
    const int before = w->ndim - 2;
    const int64_t inner = w->sizes[w->ndim - 1];
    for (int64_t at = begin, n; at < end; at += n) {
        int64_t from = at == begin ? index[w->ndim - 1] : 0, rows = (end - at) / inner;
        if (from > 0 || rows == 0) { /* part of one */
            n = end - at < inner - from ? end - at : inner - from;
            each(ctx, n, sides);
            for (int k = 0; k < nsides; k++)
                sides[k].p -= sides[k].item * from;
            next_row(w, index, sides, nsides);
            continue;
        }
        if (rows > w->sizes[before] - index[before])
            rows = w->sizes[before] - index[before];
        many(ctx, rows, inner, sides);
        n = rows * inner;
        for (int k = 0; k < nsides; k++)
            sides[k].p += (rows - 1) * sides[k].next;
        index[before] += rows - 1;
        next_row(w, index, sides, nsides);
    }
}

static void step_along_rows(void *ctx, int64_t rows, int64_t n, const row_side *sides) {
    const row_step *s = ctx;
    const td_rows all = {.rows = rows,
                         .n = n,
                         .out = sides[0].p,
                         .a = sides[1].p,
                         .b = sides[2].p,
                         .out_step = sides[0].next,
                         .a_step = sides[1].next,
                         .b_step = sides[2].next,
                         .scalars = s->scalars};
    s->rows(&all);
}

static void copy_along_rows(void *ctx, int64_t rows, int64_t n, const row_side *sides) {
    (void)ctx;
    td_cpu->pointwise->copy_rows(sides[0].p, sides[0].next, sides[1].p, sides[1].next,
                                 n * sides[0].item, rows);
}

/* The C library stores to whole lines of the cache, wherever a row begins. But from 2 KB on its way
 * of copying (glibc up to 2.38 on Zen 3 and 4: rep movsb) takes 20 times as long where a row goes
 * to a few bytes behind its own place in a page, as all rows do that move by one: those go by
 * vectors. */
static void copy_along_row(void *ctx, int64_t n, const row_side *sides) {
    const int64_t bytes = n * sides[0].item, apart = sides[0].p - sides[1].p;
    (void)ctx;
    if (bytes >= COPY_BY_MICROCODE && (apart & (PAGE - 1)) < VECTOR && labs(apart) >= bytes)
        td_cpu->pointwise->copy_rows(sides[0].p, 0, sides[1].p, 0, bytes, 1);
    else
        memmove(sides[0].p, sides[1].p, (size_t)bytes);
}

static bool are_short(const td_walk *w, const row_side *sides) {
    return w->ndim > 1 && w->sizes[w->ndim - 1] * sides[0].item <= TD_SHORT_ROW;
}

static bool are_copied(const job *j, const row_side *sides) {
    return j->program->steps[0].primitive == TD_PW_copy && sides[0].item == sides[1].item &&
           sides[0].item == (int64_t)j->code[0].size;
}

/* The loop over many rows of two operands, of which one at most stands still along them; or NULL.
 */
static td_rows_fn loop_over_rows(const job *j, const row_step *s) {
    const td_dtype dtype = j->compute;
    if (s->arity != 2 || s->scalars == 3 || (dtype != TD_F32 && dtype != TD_F64))
        return NULL;
    return td_cpu->pointwise->rows[j->program->steps[0].primitive][dtype == TD_F64];
}

/* A single step whose operands are runs or single elements along the inner dim. False: it is not
 * that. */
static bool run_rows(const job *j, const td_walk *w, int64_t begin, int64_t end) {
    row_step s = {.loop = j->code[0].loop, .arity = j->code[0].arity};
    row_side sides[4];
    int64_t index[TD_MAX_DIMS];
    if (!w->direct_rows || !s.loop || j->program->steps[0].primitive == TD_PW_pow)
        return false;
    td_walk_place(w, begin, index);
    begin_step(j, w, index, &s, sides);
    s.rows = are_short(w, sides) ? loop_over_rows(j, &s) : NULL;
    if (s.rows)
        for_many_rows(w, begin, end, index, sides, 3, step_along_row, step_along_rows, &s);
    else if (are_short(w, sides) && are_copied(j, sides))
        for_many_rows(w, begin, end, index, sides, 2, step_along_row, copy_along_rows, &s);
    else if (are_copied(j, sides))
        for_rows(w, begin, end, index, sides, 2, copy_along_row, NULL);
    else
        for_rows(w, begin, end, index, sides, s.arity + 1, step_along_row, &s);
    return true;
}

static void turn_along_row(void *ctx, int64_t n, const row_side *sides) {
    (void)ctx;
    td_cpu->pointwise->reverse(sides[0].p, sides[1].p, n, (size_t)sides[0].item);
}

static void turn_along_rows(void *ctx, int64_t rows, int64_t n, const row_side *sides) {
    (void)ctx;
    for (int64_t k = 0; k < rows; k++)
        td_cpu->pointwise->reverse(sides[0].p + k * sides[0].next, sides[1].p + k * sides[1].next,
                                   n, (size_t)sides[0].item);
}

/* A copy that turns inner dims round. False: it is not that. */
static bool run_turned(const job *j, const td_walk *w, int64_t begin, int64_t end) {
    const td_program *p = j->program;
    row_step s = {.arity = 1};
    row_side sides[4];
    int64_t index[TD_MAX_DIMS], size = (int64_t)j->code[0].size;
    if (p->nsteps != 1 || p->steps[0].primitive != TD_PW_copy || p->nloads != 1 || w->ndim < 2 ||
        w->streams || w->loads[0].scalar || w->outs[0].scalar || w->outs[0].apart ||
        w->loads[0].dtype != w->loads[0].as || w->outs[0].dtype != w->outs[0].as ||
        w->sizes[w->ndim - 1] < TD_LIMIT(POINTWISE_TURNED_ROW))
        return false;
    td_walk_place(w, begin, index);
    begin_step(j, w, index, &s, sides);
    if (sides[0].item != size || sides[1].item != -size)
        return false;
    for_many_rows(w, begin, end, index, sides, 2, turn_along_row, turn_along_rows, NULL);
    return true;
}

/* A single step that makes one element for all. False: it is not that. */
static bool run_fill(const job *j, const td_walk *w, int64_t begin, int64_t end) {
    const td_program *p = j->program;
    const step_code *code = &j->code[0];
    const td_side *out = &w->outs[0];
    const void *src[3] = {NULL, NULL, NULL};
    _Alignas(8) unsigned char made[8];
    if (p->nsteps != 1 || !w->simple || out->scalar || out->apart || out->streamed)
        return false;
    for (int k = 0; k < code->arity; k++) {
        int reg = code->src[k];
        if (reg < p->nloads && !w->loads[reg].scalar)
            return false;
        src[k] = reg < p->nloads ? w->loads[reg].value : j->constants[reg - p->nloads];
    }
    td_pointwise_step(j, 0, 1, &(td_cell){.p = made}, src, 0);
    td_cpu->pointwise->repeat(out->data + begin * (int64_t)code->size, made, end - begin,
                              code->size);
    return true;
}

/* ---- 16-bit floats ---- */

/* The loop of a single step whose elements are 16-bit floats of one dtype in memory, as results of
 * a comparison are bools; NULL: it is not that, or they don't run along the inner dim. */
static td_pointwise_fn find_narrow_loop(const job *j, const td_walk *w) {
    const td_program *p = j->program;
    const td_side *out = &w->outs[0];
    td_dtype narrow = TD_BOOL;
    bool run = false, single = p->nconstants > 0;
    if (p->nsteps != 1 || w->streams || out->scalar || out->apart ||
        w->sizes[w->ndim - 1] < TD_LIMIT(POINTWISE_NARROW_ROW))
        return NULL;
    for (int k = 0; k < p->nloads; k++) {
        const td_side *x = &w->loads[k];
        if (x->as != TD_F32)
            return NULL;
        single |= x->scalar || x->strides[w->ndim - 1] == 0;
        if (x->scalar)
            continue;
        if (!td_is_narrow((td_dtype)x->dtype) || (narrow && narrow != x->dtype))
            return NULL;
        narrow = (td_dtype)x->dtype;
        run |= x->strides[w->ndim - 1] == 2;
        if (x->strides[w->ndim - 1] != 2 && x->strides[w->ndim - 1] != 0)
            return NULL;
    }
    if (!run || (out->dtype != narrow && (out->dtype != TD_BOOL || out->as != TD_BOOL)) ||
        (out->dtype == narrow && out->as != TD_F32) ||
        out->strides[w->ndim - 1] != (int64_t)td_dtype_size(out->dtype))
        return NULL;
    int primitive = p->steps[0].primitive;
    td_pointwise_fn signs = single ? NULL : td_cpu->pointwise->signs[primitive];
    return signs ? signs : td_cpu->pointwise->narrow[primitive][narrow == TD_BF16];
}

/* As run_rows. */
static bool run_narrow(const job *j, const td_walk *w, int64_t begin, int64_t end) {
    row_step s = {.loop = find_narrow_loop(j, w), .arity = j->code[0].arity};
    row_side sides[4];
    int64_t index[TD_MAX_DIMS];
    if (!s.loop)
        return false;
    td_walk_place(w, begin, index);
    begin_step(j, w, index, &s, sides);
    for_rows(w, begin, end, index, sides, s.arity + 1, narrow_step_along_row, &s);
    return true;
}

/* ---- chains along rows ---- */

enum { ROW_SIDES = 24 };

typedef struct row_chain {
    const job *job;
    worker_memory *memory;
    uint64_t moving, each; /* loads of the first row, and of each: all but numbers */
} row_chain;

static bool is_run(const td_walk *w, const td_side *x) {
    return x->dtype == x->as && x->strides[w->ndim - 1] == (int64_t)td_dtype_size(x->as);
}

/* Does a chain find each row where it lies, and what is one element for it? */
static bool chains_along_rows(const job *j, const td_walk *w) {
    const td_program *p = j->program;
    const bool calls = j->chain.machine && j->chain.machine->calls;
    if (!td_chain_runs(&j->chain) || w->ndim < 2 || w->simple || w->streams ||
        p->nloads + p->noutputs > ROW_SIDES ||
        w->sizes[w->ndim - 1] < (calls ? TD_LIMIT(WALK_ROW) : TD_LIMIT(POINTWISE_CHAIN_ROW)))
        return false;
    for (int k = 0; k < p->nloads; k++) {
        const td_side *x = &w->loads[k];
        bool single = x->dtype == x->as && x->strides[w->ndim - 1] == 0;
        if (!x->scalar && !single && !is_run(w, x))
            return false;
    }
    for (int k = 0; k < p->noutputs; k++)
        if (w->outs[k].scalar || w->outs[k].apart || !is_run(w, &w->outs[k]))
            return false;
    return true;
}

/* The cells of a row. Sides: of loads, then of outputs. */
static inline void set_cells(const row_chain *r, const row_side *sides) {
    const td_program *p = r->job->program;
    td_cell *cells = r->memory->cells, *outs = cells + p->nloads + p->nconstants;
    for (int k = 0; k < p->nloads; k++) {
        cells[k].p = (unsigned char *)sides[k].p;
        cells[k].next = sides[k].next;
    }
    for (int k = 0; k < p->noutputs; k++) {
        outs[k].p = (unsigned char *)sides[p->nloads + k].p;
        outs[k].next = sides[p->nloads + k].next;
    }
}

static inline void chain_along_row(void *ctx, int64_t n, const row_side *sides) {
    row_chain *r = ctx;
    set_cells(r, sides);
    td_chain_run(&r->job->chain, r->job->program, n, r->memory->cells, r->moving, r->memory->chain);
    r->moving = r->each;
}

static void chain_along_rows(void *ctx, int64_t rows, int64_t n, const row_side *sides) {
    row_chain *r = ctx;
    set_cells(r, sides);
    td_chain_run_rows(&r->job->chain, r->job->program, rows, n, r->memory->cells, r->moving,
                      r->each, r->memory->chain);
    r->moving = r->each;
}

/* A chain whose operands are runs or single elements along the inner dim. False: it is not that. */
static bool run_chain_rows(const job *j, const td_walk *w, int64_t begin, int64_t end,
                           worker_memory *m) {
    const td_program *p = j->program;
    row_side sides[ROW_SIDES];
    int64_t index[TD_MAX_DIMS];
    row_chain r = {.job = j, .memory = m, .moving = ~(uint64_t)0};
    if (!chains_along_rows(j, w))
        return false;
    td_walk_place(w, begin, index);
    for (int k = 0; k < p->nloads; k++) {
        const td_side *x = &w->loads[k];
        sides[k] = x->scalar ? (row_side){.p = (char *)x->value, .strides = still}
                             : begin_side(w, x, index);
        m->cells[k].scalar = sides[k].item == 0;
        r.each |= (uint64_t)!x->scalar << k;
    }
    for (int k = 0; k < p->noutputs; k++)
        sides[p->nloads + k] = begin_side(w, &w->outs[k], index);
    for_many_rows(w, begin, end, index, sides, p->nloads + p->noutputs, chain_along_row,
                  chain_along_rows, &r);
    m->known = false;
    return true;
}

bool td_pointwise_in_place(const job *j, const td_walk *w, int64_t begin, int64_t end,
                           worker_memory *m) {
    return run_direct(j, w, begin, end) || run_rows(j, w, begin, end) ||
           run_turned(j, w, begin, end) || run_narrow(j, w, begin, end) ||
           run_fill(j, w, begin, end) || run_chain_rows(j, w, begin, end, m);
}

/* pointwise.c: runs pointwise programs on the CPU.
 *
 * Elements are taken in blocks (pointwise_walk.h). An operand that lies as the walk goes is read
 * where it is; others (strided, of another dtype) are gathered into a block-sized buffer first.
 * Intermediate results of a program stay in such buffers, in the first-level cache. Several lists
 * of tensors share one parallel loop. Sums are taken over pieces that follow from the shape alone
 * and joined in order, so they do not depend on the number of threads. Knows nothing of gradients.
 */
#include "engine/core/memory.h"
#include "engine/core/threads.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/isa/isa.h"
#include "engine/cpu/limits.h"
#include "engine/cpu/pointwise/chain.h"
#include "engine/cpu/pointwise/pointwise_job.h"
#include "engine/cpu/pointwise/strided_convert.h"
#include "engine/cpu/pointwise/transpose.h"

#include <string.h>

enum {
    BLOCK = TD_WALK_BLOCK,
    BLOCK_BYTES = BLOCK * 8,
    PIECE = 64 * 1024, /* elements that are summed together */
    STACK_BYTES = 24 * BLOCK_BYTES
};

typedef td_step_code step_code;
typedef td_pointwise_job job;
typedef td_worker_memory worker_memory;

/* ---- steps ---- */

/* x + y * z as one loop, which rounds the product as well: half of the loads and stores. Not where
 * the sum takes the buffer of a factor, which may be a single element that is read anew for each
 * vector. */
static void join_product(const job *j, int s) {
    const td_step *product = &j->program->steps[s], *sum = product + 1;
    td_pointwise_fn loop = td_pointwise_loop(TD_PW_muladd, td_dtype_in_call(sum->from, j->compute));
    if (product->primitive != TD_PW_mul || sum->primitive != TD_PW_add ||
        product->from != sum->from || !loop || sum->dst == product->src[0] ||
        sum->dst == product->src[1] || !product->passed)
        return;
    step_code *code = &j->code[s + 1];
    code->src[0] = sum->src[sum->src[0] == product->dst];
    code->src[1] = product->src[0];
    code->src[2] = product->src[1];
    code->arity = 3;
    code->loop = loop;
    j->code[s].joined = true;
}

/* To a 16-bit float that nothing else reads and back to float32 as one loop. It may take the buffer
 * of what it rounds. */
static void join_rounding(const job *j, int s) {
    const td_step *narrow = &j->program->steps[s], *wide = narrow + 1;
    const td_dtype from = td_dtype_in_call(narrow->from, j->compute),
                   to = td_dtype_in_call(narrow->to, j->compute);
    td_convert_fn round = td_cpu->convert->round[to];
    if (narrow->primitive != TD_PW_copy || wide->primitive != TD_PW_copy || !round ||
        from != TD_F32 || td_dtype_in_call(wide->to, j->compute) != from || !narrow->passed)
        return;
    j->code[s + 1].convert = round;
    j->code[s + 1].src[0] = narrow->src[0];
    j->code[s].joined = true;
}

static td_status choose_loops(const job *j) {
    for (int s = 0; s < j->program->nsteps; s++) {
        const td_step *step = &j->program->steps[s];
        td_dtype from = td_dtype_in_call(step->from, j->compute);
        td_dtype to = td_dtype_in_call(step->to, j->compute);
        step_code *code = &j->code[s];
        *code = (step_code){.size = td_dtype_size(to), .arity = step->arity};
        memcpy(code->src, step->src, sizeof code->src);
        if (step->primitive == TD_PW_copy && from != to) {
            code->convert = td_cpu->convert->convert[to][from];
            continue;
        }
        code->loop = td_pointwise_loop(step->primitive, from);
        if (!code->loop)
            return td_cpu_lacks(from);
    }
    for (int s = 0; s + 1 < j->program->nsteps; s++)
        join_product(j, s);
    for (int s = 0; s + 1 < j->program->nsteps; s++)
        join_rounding(j, s);
    return TD_OK;
}

static void run_steps(const job *j, int64_t n, td_cell *cells) {
    const td_program *p = j->program;
    int first = p->nloads + p->nconstants, end = first + p->noutputs;
    for (int s = 0; s < p->nsteps; s++) {
        const td_step *step = &p->steps[s];
        const step_code *code = &j->code[s];
        unsigned scalars = 0, all = (1u << code->arity) - 1;
        const void *src[3] = {NULL, NULL, NULL};
        if (code->joined)
            continue;
        for (int k = 0; k < code->arity; k++) {
            src[k] = cells[code->src[k]].p;
            scalars |= (unsigned)cells[code->src[k]].scalar << k;
        }
        td_cell *dst = &cells[step->dst];
        dst->scalar = scalars == all;
        if (!dst->scalar) {
            td_pointwise_step(j, s, n, dst, src, scalars);
            continue;
        }
        td_pointwise_step(j, s, 1, dst, src, 0);
        if (step->dst >= first && step->dst < end) {
            td_cpu->pointwise->repeat(dst->p, dst->p, n, j->code[s].size);
            dst->scalar = false;
        }
    }
}

/* ---- blocks ---- */

/* Do the elements of each block lie one after the other? */
static bool runs_inside(const td_walk *w, const td_side *x) {
    return x->strides[w->ndim - 1] == (int64_t)td_dtype_size((td_dtype)x->dtype) &&
           (w->rows || w->ndim == 1);
}

/* Only a gathered or converted block is in the worker's memory. */
static void load_block(const td_walk *w, const td_side *x, int64_t at, int64_t n,
                       const int64_t *index, td_cell *c, unsigned char *buffer,
                       unsigned char *raw) {
    int last = w->ndim - 1;
    c->scalar = x->scalar;
    c->p =
        x->scalar ? (unsigned char *)x->value : (unsigned char *)td_walk_address(w, x, at, index);
    if (c->p)
        return;
    c->p = buffer;
    if (w->rows && x->strides[last] == 0) {
        td_walk_gather(w, x, index, 1, raw);
        td_convert((td_dtype)x->as, c->value, 0, (td_dtype)x->dtype, raw, 0, 1);
        c->p = c->value;
        c->scalar = true;
    } else if (x->dtype == x->as) {
        td_walk_gather(w, x, index, n, buffer);
    } else if (runs_inside(w, x)) {
        td_cpu->convert->convert[x->as][x->dtype](n, buffer, td_walk_element(w, x, index));
    } else {
        td_walk_gather(w, x, index, n, raw);
        td_cpu->convert->convert[x->as][x->dtype](n, buffer, raw);
    }
}

static void store_block(const td_walk *w, const td_side *x, int64_t n, const int64_t *index,
                        const unsigned char *made, unsigned char *raw) {
    if (x->dtype != x->as && runs_inside(w, x)) {
        td_cpu->convert->convert[x->dtype][x->as](n, td_walk_element(w, x, index), made);
        return;
    }
    if (x->dtype != x->as) {
        td_cpu->convert->convert[x->dtype][x->as](n, raw, made);
        made = raw;
    }
    td_walk_scatter(w, x, index, n, made);
}

static bool is_copy(const job *j) {
    return j->program->nloads == 1 && j->program->nsteps == 1 &&
           j->program->steps[0].primitive == TD_PW_copy && j->code[0].loop;
}

/* A copy of what does not lie as the walk goes, or is of another dtype, straight to where it does.
 * False: it is not that. */
static bool move_block(const job *j, const td_walk *w, int64_t at, int64_t n,
                       const int64_t *index) {
    const td_side *x = &w->loads[0], *out = &w->outs[0];
    if (w->simple || !is_copy(j) || x->scalar || x->strides[w->ndim - 1] == 0 || out->scalar ||
        out->apart || out->streamed || td_walk_address(w, x, at, index))
        return false;
    char *to = td_walk_address(w, out, at, index);
    if (!to || (x->dtype != x->as && !runs_inside(w, x)))
        return false;
    if (x->dtype == x->as)
        td_walk_gather(w, x, index, n, to);
    else
        td_cpu->convert->convert[x->as][x->dtype](n, to, td_walk_element(w, x, index));
    return true;
}

/* Elements of which some are narrow, all together. */
static void run_narrow_chain(const job *j, const td_walk *w, int64_t at, int64_t n,
                             worker_memory *m) {
    const td_program *p = j->program;
    td_cell *outs = m->cells + p->nloads + p->nconstants;
    for (int k = 0; k < p->nloads; k++) {
        const td_side *x = &w->loads[k];
        m->cells[k].scalar = x->scalar;
        m->cells[k].p =
            (unsigned char *)(x->scalar ? (const char *)x->value : x->data + at * x->strides[0]);
    }
    for (int k = 0; k < p->noutputs; k++)
        outs[k].p = (unsigned char *)w->outs[k].data + at * w->outs[k].strides[0];
    td_chain_run(&j->chain, p, n, m->cells, ~(uint64_t)0, m->chain);
}

static void run_block(const job *j, const td_walk *w, int64_t at, int64_t n, worker_memory *m,
                      td_accumulator *sums) {
    const td_program *p = j->program;
    int64_t index[TD_MAX_DIMS];
    td_cell *cells = m->cells, *outs = cells + p->nloads + p->nconstants;
    uint64_t moving = m->known ? w->moving : ~(uint64_t)0;
    if (!w->simple)
        td_walk_place(w, at, index);
    if (move_block(j, w, at, n, index))
        return;
    if (moving == ~(uint64_t)0)
        for (int k = 0; k < p->nloads; k++)
            load_block(w, &w->loads[k], at, n, index, &cells[k], m->loads + k * BLOCK_BYTES,
                       m->raw);
    else
        for (uint64_t rest = moving; rest; rest &= rest - 1) {
            int k = __builtin_ctzll(rest);
            load_block(w, &w->loads[k], at, n, index, &cells[k], m->loads + k * BLOCK_BYTES,
                       m->raw);
        }
    m->known = true;
    for (int k = 0; k < p->noutputs; k++) {
        const td_side *x = &w->outs[k];
        bool buffered = x->scalar || x->apart || x->streamed;
        outs[k].p = buffered ? NULL : (unsigned char *)td_walk_address(w, x, at, index);
        if (!outs[k].p)
            outs[k].p = m->outs + k * BLOCK_BYTES;
    }
    if (td_chain_runs(&j->chain))
        td_chain_run(&j->chain, p, n, cells, moving, m->chain);
    else
        run_steps(j, n, cells);
    for (int k = 0; k < p->noutputs; k++) {
        const td_side *x = &w->outs[k];
        if (x->scalar)
            td_cpu->reduce->rows[TD_REDUCE_SUM][x->as](&sums[k], outs[k].p, 1, 0, n, 1, NULL);
        else if (outs[k].p != m->outs + k * BLOCK_BYTES)
            continue;
        else if (x->streamed)
            td_cpu->pointwise->stream(x->data + at * (int64_t)td_dtype_size(x->as), outs[k].p,
                                      (size_t)n * td_dtype_size(x->as));
        else if (x->dense)
            memcpy(x->data + at * (int64_t)td_dtype_size(x->as), outs[k].p,
                   (size_t)n * td_dtype_size(x->as));
        else
            store_block(w, x, n, index, outs[k].p, m->raw);
    }
}

static void run_part(const job *j, const td_walk *w, int64_t begin, int64_t end, worker_memory *m,
                     td_accumulator *sums) {
    if (td_pointwise_in_place(j, w, begin, end, m))
        return;
    if (td_chain_runs(&j->chain) && j->chain.narrow.registers) {
        run_narrow_chain(j, w, begin, end - begin, m);
        return;
    }
    int64_t inner = w->sizes[w->ndim - 1];
    for (int64_t at = begin, n; at < end; at += n) {
        n = end - at;
        if (w->rows && inner - at % inner < n)
            n = inner - at % inner;
        if (!w->direct && !(td_chain_runs(&j->chain) && w->in_place) && n > BLOCK)
            n = BLOCK;
        run_block(j, w, at, n, m, sums);
    }
    if (w->streams)
        td_cpu->pointwise->stream_end();
}

/* ---- workers ---- */

static size_t cells_bytes(const td_program *p) {
    int n = p->nloads + p->nconstants + p->noutputs + p->nbuffers;
    return (sizeof(td_cell) * (size_t)n + 63) & ~(size_t)63;
}

static size_t sides_bytes(const td_program *p) {
    return (sizeof(td_side) * (size_t)(p->nloads + p->noutputs) + 63) & ~(size_t)63;
}

static size_t row_bytes(const td_program *p) {
    return (sizeof(td_operand) * (size_t)p->noperands + 63) & ~(size_t)63;
}

static size_t worker_bytes(const job *j) {
    const td_program *p = j->program;
    return cells_bytes(p) + sides_bytes(p) + row_bytes(p) +
           (td_chain_runs(&j->chain) ? td_chain_bytes(p) : 0) +
           (size_t)(p->nloads + p->noutputs + p->nbuffers + 1) * BLOCK_BYTES;
}

static worker_memory share_out(const job *j, unsigned char *bytes) {
    const td_program *p = j->program;
    td_side *sides = (td_side *)(bytes + cells_bytes(p));
    worker_memory m = {.cells = (td_cell *)bytes,
                       .walk = {.loads = sides, .outs = sides + p->nloads},
                       .row = (td_operand *)((unsigned char *)sides + sides_bytes(p)),
                       .loads = (unsigned char *)sides + sides_bytes(p) + row_bytes(p)};
    m.outs = m.loads + (size_t)p->nloads * BLOCK_BYTES;
    m.buffers = m.outs + (size_t)p->noutputs * BLOCK_BYTES;
    m.raw = m.buffers + (size_t)p->nbuffers * BLOCK_BYTES;
    m.chain = m.raw + BLOCK_BYTES;
    if (td_chain_runs(&j->chain))
        td_chain_begin(p, m.chain);
    for (int c = 0; c < p->nconstants; c++) {
        m.cells[p->nloads + c].p = j->constants[c];
        m.cells[p->nloads + c].scalar = true;
    }
    td_cell *buffers = m.cells + p->nloads + p->nconstants + p->noutputs;
    for (int b = 0; b < p->nbuffers; b++)
        buffers[b].p = m.buffers + (size_t)b * BLOCK_BYTES;
    return m;
}

/* The list that item `at` of the loop belongs to. */
static int list_of(const job *j, int64_t at) {
    int low = 0, high = j->nlists - 1;
    while (low < high) {
        int middle = (low + high + 1) / 2;
        if (j->starts[middle] <= at)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static void begin_row(const job *j, td_operand *row) {
    if (j->shared)
        memcpy(row + j->nown, j->shared, sizeof *row * (size_t)(j->program->noperands - j->nown));
}

/* `row`: begun; its own part is filled in where it is needed. */
static const td_operand *operands_of(const job *j, int list, td_operand *row) {
    const td_operand *own = j->operands + (size_t)list * (size_t)j->nown;
    return j->shared ? memcpy(row, own, sizeof *row * (size_t)j->nown) : own;
}

static td_tensor *const *outs_of(const job *j, int list) {
    return j->outs + (size_t)list * (size_t)j->program->noutputs;
}

static const td_walk *walk_of(const job *j, int list, worker_memory *m) {
    if (j->walks)
        return &j->walks[list];
    bool moved = td_walk_next(&m->walk, j->program, j->compute, operands_of(j, list, m->row),
                              outs_of(j, list), j->flat[list], j->nown);
    m->known &= moved;
    return &m->walk;
}

/* The next list's tensors lie elsewhere, where nothing that fetches ahead by itself is yet. */
static void fetch_beginning(const job *j, int list) {
    enum { LINE = 64, LINES = 8 };
    if (list >= j->nlists)
        return;
    const td_operand *operands = j->operands + (size_t)list * (size_t)j->nown;
    for (int k = 0; k < j->nown; k++)
        for (int line = 0; operands[k].tensor && line < LINES; line++)
            __builtin_prefetch((const char *)operands[k].tensor->data + line * LINE);
}

static void run_lists(const job *j, int64_t begin, int64_t end, unsigned char *bytes) {
    worker_memory m = share_out(j, bytes);
    begin_row(j, m.row);
    for (int list = list_of(j, begin); begin < end; list++) {
        int64_t start = j->starts[list], stop = j->starts[list + 1];
        if (stop > end)
            stop = end;
        fetch_beginning(j, list + 1);
        run_part(j, walk_of(j, list, &m), begin - start, stop - start, &m, NULL);
        begin = stop;
    }
}

static void run_pieces(const job *j, int64_t begin, int64_t end, unsigned char *bytes) {
    worker_memory m = share_out(j, bytes);
    for (int64_t piece = begin; piece < end; piece++) {
        int list = list_of(j, piece);
        const td_walk *w = &j->walks[list];
        int64_t from = (piece - j->starts[list]) * PIECE;
        run_part(j, w, from, w->numel - from < PIECE ? w->numel : from + PIECE, &m,
                 j->partial + piece * j->program->noutputs);
    }
}

static void run_range(void *ctx, int64_t begin, int64_t end, int worker) {
    const job *j = ctx;
    _Alignas(64) unsigned char stack[STACK_BYTES];
    unsigned char *bytes = j->heap ? j->heap + (size_t)worker * j->worker_bytes : stack;
    if (j->program->reduces)
        run_pieces(j, begin, end, bytes);
    else
        run_lists(j, begin, end, bytes);
}

/* ---- sums ---- */

static void finish_sums(const job *j, td_tensor *const *outs) {
    const td_program *p = j->program;
    for (int list = 0; list < j->nlists; list++) {
        for (int k = 0; k < p->noutputs; k++) {
            td_output_kind kind = (td_output_kind)p->outputs[k].kind;
            if (kind == TD_OUTPUT_ELEMENTS)
                continue;
            const td_walk *w = &j->walks[list];
            bool floating = td_dtype_is_float((td_dtype)w->outs[k].as);
            td_accumulator sum = {.i = 0};
            for (int64_t piece = j->starts[list]; piece < j->starts[list + 1]; piece++) {
                td_accumulator part = j->partial[piece * p->noutputs + k];
                if (floating)
                    sum.f += part.f;
                else
                    sum.i += part.i;
            }
            td_tensor *out = outs[list * p->noutputs + k];
            if (kind == TD_OUTPUT_MEAN)
                td_store_double((td_dtype)out->dtype, out->data,
                                (floating ? sum.f : (double)sum.i) / (double)w->numel);
            else if (floating)
                td_store_double((td_dtype)out->dtype, out->data, sum.f);
            else
                td_store_int((td_dtype)out->dtype, out->data, sum.i);
        }
    }
}

/* ---- jobs ---- */

/* Room for a job's parts in one block, from the stack where it is small. */
typedef struct arena {
    _Alignas(16) unsigned char stack[12 * 1024];
    unsigned char *at, *heap;
} arena;

static size_t rounded(size_t bytes) {
    return (bytes + 15) & ~(size_t)15;
}

static void *take(arena *a, size_t bytes) {
    void *room = a->at;
    a->at += rounded(bytes);
    return room;
}

static td_status set_up(job *j, arena *a) {
    const td_program *p = j->program;
    bool lazy = j->nlists > 1 && !p->reduces;
    size_t lists = (size_t)j->nlists, sides = (size_t)(p->nloads + p->noutputs);
    size_t walks = lazy ? 1 : lists; /* the one lays lists out to see whether that can be done */
    size_t bytes = rounded(sizeof(step_code) * (size_t)p->nsteps) +
                   rounded(sizeof(td_chain_op) * td_chain_most(p)) +
                   rounded(8 * (size_t)p->nconstants) + rounded(sizeof(td_walk) * walks) +
                   rounded(sizeof(int64_t) * (lists + 1)) + rounded(lists) +
                   rounded(sizeof(td_operand) * (size_t)p->noperands) +
                   rounded(sizeof(td_side) * sides * walks);
    a->heap = NULL;
    a->at = a->stack;
    if (bytes > sizeof a->stack) {
        a->heap = a->at = td_malloc(bytes);
        if (!a->heap)
            return td_fail(TD_ENOMEM, "out of memory for a program of %d steps over %d lists",
                           p->nsteps, j->nlists);
    }
    j->code = take(a, sizeof(step_code) * (size_t)p->nsteps);
    j->chain.code = take(a, sizeof(td_chain_op) * td_chain_most(p));
    j->constants = take(a, 8 * (size_t)p->nconstants);
    j->walks = take(a, sizeof(td_walk) * walks);
    j->starts = take(a, sizeof(int64_t) * (lists + 1));
    j->flat = take(a, lists);
    j->row = take(a, sizeof(td_operand) * (size_t)p->noperands);
    begin_row(j, j->row);
    td_side *side = take(a, sizeof(td_side) * sides * walks);
    for (size_t k = 0; k < walks; k++, side += sides) {
        j->walks[k].loads = side;
        j->walks[k].outs = side + p->nloads;
    }
    for (int c = 0; c < p->nconstants; c++)
        td_store_double(td_dtype_in_call(p->constants[c].dtype, j->compute), j->constants[c],
                        p->constants[c].value);
    return choose_loops(j);
}

/* Items are elements, or pieces of them, each worth a thread. */
static int64_t cost_of_item(const td_program *p) {
    return p->reduces ? TD_GRAIN : p->cost;
}

/* The loads that memory must be asked for: the tensors, where they are too many for the cache. */
static uint64_t find_fetched(const job *j, int64_t elements) {
    const td_program *p = j->program;
    uint64_t tensors = 0;
    int64_t bytes = 0;
    for (int k = 0; k < p->nloads && k < 64; k++) {
        const td_tensor *x = operands_of(j, 0, j->row)[p->loads[k].operand].tensor;
        if (!x || x->numel == 1)
            continue;
        tensors |= (uint64_t)1 << k;
        bytes += elements * (int64_t)td_tensor_itemsize(x);
    }
    return bytes > TD_LIMIT(POINTWISE_CACHED) ? tensors : 0;
}

/* The loads that are one number in every list. */
static uint64_t find_numbers(const job *j) {
    const td_program *p = j->program;
    const td_operand *operands = operands_of(j, 0, j->row);
    uint64_t numbers = 0;
    for (int k = 0; k < p->nloads && k < 64; k++) {
        int at = p->loads[k].operand;
        bool single = !operands[at].tensor || operands[at].tensor->numel == 1;
        numbers |= (uint64_t)(single && (j->nlists == 1 || (j->shared && at >= j->nown))) << k;
    }
    return numbers;
}

/* Notes a side of a register. False: it is neither one element for all nor elements one after the
 * other, as they are computed or 16-bit floats as those noted before. */
static bool note_narrow(const td_side *x, int reg, td_narrow *narrow) {
    if (x->scalar)
        return true;
    if (x->apart || x->streamed || x->strides[0] != (int64_t)td_dtype_size((td_dtype)x->dtype))
        return false;
    if (x->dtype == x->as) {
        narrow->all = false;
        return true;
    }
    if (x->as != TD_F32 || !td_is_narrow((td_dtype)x->dtype) || reg >= 64 ||
        (narrow->registers && narrow->dtype != x->dtype))
        return false;
    narrow->dtype = (td_dtype)x->dtype;
    narrow->registers |= (uint64_t)1 << reg;
    return true;
}

/* The registers whose 16-bit floats a chain takes as they are: of one list whose elements all go
 * along together; else none. */
static td_narrow find_narrow(const job *j) {
    const td_program *p = j->program;
    const td_walk *w = j->walks;
    td_narrow none = {0}, narrow = {.all = true};
    if (j->nlists != 1 || j->compute != TD_F32 || p->reduces || w->ndim != 1)
        return none;
    for (int k = 0; k < p->nloads; k++)
        if (!note_narrow(&w->loads[k], k, &narrow))
            return none;
    for (int k = 0; k < p->noutputs; k++)
        if (w->outs[k].scalar || !note_narrow(&w->outs[k], p->nloads + p->nconstants + k, &narrow))
            return none;
    return narrow;
}

/* Lay the lists out, or see that they can be, and number their items. */
static td_status lay_lists(job *j, int64_t *items) {
    const td_program *p = j->program;
    bool lazy = j->nlists > 1 && !p->reduces;
    int64_t elements = 0;
    *items = 0;
    for (int k = 0; k < j->nlists; k++) {
        j->starts[k] = *items;
        const td_operand *operands = operands_of(j, k, j->row);
        j->flat[k] = lazy && td_frame_is_flat(p, j->nown, operands, outs_of(j, k));
        if (j->flat[k]) {
            *items += outs_of(j, k)[0]->numel;
            elements += outs_of(j, k)[0]->numel;
            continue;
        }
        td_walk *w = &j->walks[lazy ? 0 : k];
        td_status status = td_walk_init(w, p, j->compute, operands, outs_of(j, k));
        if (status)
            return status;
        *items += p->reduces ? (w->numel + PIECE - 1) / PIECE : w->numel;
        elements += w->numel;
    }
    if (p->nsteps > 1 && (elements >= TD_LIMIT(POINTWISE_CHAIN) || td_code_wanted(0)))
        td_chain_make(&j->chain, p, j->compute, find_numbers(j),
                      j->nlists != 1 || j->walks->ndim != 1, elements, find_fetched(j, elements),
                      find_narrow(j));
    j->starts[j->nlists] = *items;
    if (lazy)
        j->walks = NULL;
    return TD_OK;
}

static td_status run_job(job *j) {
    const td_program *p = j->program;
    td_status status = TD_OK;
    int64_t items = 0;
    arena a;
    TD_TRY(set_up(j, &a));
    TD_TRY(lay_lists(j, &items));
    j->worker_bytes = worker_bytes(j);
    j->threads = td_get_num_threads();
    if (j->worker_bytes > STACK_BYTES) {
        j->heap = td_malloc((size_t)j->threads * j->worker_bytes);
        if (!j->heap)
            TD_TRY(td_fail(TD_ENOMEM, "out of memory for the buffers of a program"));
    }
    if (p->reduces) {
        j->partial = td_calloc((size_t)(items * p->noutputs) + 1, sizeof *j->partial);
        if (!j->partial)
            TD_TRY(td_fail(TD_ENOMEM, "out of memory for partial sums"));
    }
    TD_TRY(td_parallel_for_among(j->threads, items, cost_of_item(p), run_range, j));
    if (p->reduces)
        finish_sums(j, j->outs);
done:
    td_free(j->partial);
    td_free(j->heap);
    td_free(a.heap);
    return status;
}

/* ---- operands that overlap results ---- */

/* Single elements are read before anything is written, but for those of one list among several,
 * which is laid out when its turn comes. */
static bool must_copy(const job *j, const td_tensor *x, td_tensor *const *outs) {
    for (int k = 0; x && x->numel > (j->nlists == 1) && k < j->program->noutputs; k++)
        if (td_frame_clashes(x, outs[k]))
            return true;
    return false;
}

/* The first operand of all lists that must be copied; or their number. */
static int find_clash(const job *j) {
    td_tensor *const *outs = j->outs;
    for (int list = 0; list < j->nlists; list++, outs += j->program->noutputs)
        for (int k = list * j->nown; k < (list + 1) * j->nown; k++)
            if (TD_UNLIKELY(must_copy(j, j->operands[k].tensor, outs)))
                return k;
    return j->nlists * j->nown;
}

/* The operands, with copies in place of those from `first` on that overlap results. */
static td_status run_apart(job *j, int first) {
    int n = j->nlists * j->nown;
    td_operand *safe = td_malloc(sizeof *safe * (size_t)n);
    td_tensor **copies = td_calloc((size_t)n, sizeof *copies);
    td_status status = TD_OK;
    if (!safe || !copies)
        TD_TRY(td_fail(TD_ENOMEM, "out of memory for copies of operands"));
    memcpy(safe, j->operands, sizeof *safe * (size_t)n);
    for (int k = first; k < n; k++) {
        const td_tensor *x = safe[k].tensor;
        if (!must_copy(j, x, j->outs + (size_t)(k / j->nown) * j->program->noutputs))
            continue;
        TD_TRY(td_tensor_empty((td_dtype)x->dtype, TD_DEVICE_CPU, x->ndim, x->sizes, &copies[k]));
        TD_TRY(td_cpu_pointwise(&(td_pointwise_plan){.program = td_primitive_program(TD_PW_copy),
                                                     .operands = &safe[k],
                                                     .compute = (td_dtype)x->dtype,
                                                     .out = copies[k]}));
        safe[k].tensor = copies[k];
    }
    j->operands = safe;
    status = run_job(j);
done:
    for (int k = 0; copies && k < n; k++)
        td_release(copies[k]);
    td_free(copies);
    td_free(safe);
    return status;
}

/* ---- the function of the backend ---- */

/* The call that a prompt makes most: one loop, small, everything contiguous and of its dtype.
 * Returns false when it is not that, having done nothing. */
static bool run_small(const td_program *program, const td_operand *operands, td_dtype compute,
                      td_tensor *out) {
    const void *src[3] = {NULL, NULL, NULL};
    _Alignas(8) unsigned char values[3][8];
    unsigned scalars = 0;
    const td_step *step = &program->steps[0];
    td_dtype from = td_dtype_in_call(step->from, compute);
    if (program->nsteps != 1 || !out->contiguous ||
        out->dtype != td_dtype_in_call(step->to, compute) || out->numel > TD_GRAIN / 8 ||
        program->reduces || (step->primitive == TD_PW_copy && step->from != step->to))
        return false;
    for (int k = 0; k < step->arity; k++) {
        if (step->src[k] >= program->nloads)
            return false;
        const td_load *load = &program->loads[step->src[k]];
        td_dtype dtype = td_dtype_in_call(load->dtype, compute);
        const td_operand *o = &operands[load->operand];
        const td_tensor *x = o->tensor;
        if (!x) {
            td_store_operand(dtype, values[k], o);
            src[k] = values[k];
            scalars |= 1u << k;
        } else if (x->dtype != dtype || (x->storage == out->storage && x->data != out->data)) {
            return false;
        } else if (x->numel == out->numel && x->contiguous) {
            src[k] = x->data;
        } else if (x->numel == 1) { /* copied: it may be an element of out */
            memcpy(values[k], x->data, td_dtype_size(dtype));
            src[k] = values[k];
            scalars |= 1u << k;
        } else {
            return false;
        }
    }
    bool fill = scalars == (1u << step->arity) - 1 && out->numel > 1;
    if (out->numel == 1 || fill)
        scalars = 0;
    td_pointwise_fn fn = td_pointwise_loop(step->primitive, from);
    if (fn && step->primitive == TD_PW_pow && scalars == 2)
        fn = td_cheaper_power(from, src[1], fn);
    if (!fn)
        return false;
    fn(fill ? 1 : out->numel, out->data, src[0], src[1], src[2], scalars);
    if (fill)
        td_cpu->pointwise->repeat(out->data, out->data, out->numel,
                                  td_dtype_size((td_dtype)out->dtype));
    return true;
}

td_status td_cpu_pointwise(const td_pointwise_plan *plan) {
    const td_program *program = plan->program;
    const td_operand *operands = plan->operands;
    td_dtype compute = td_program_compute(program, plan->compute);
    td_tensor *out = plan->out, *const *outs = plan->outs ? plan->outs : &out;
    if (out) {
        if (run_small(program, operands, compute, out))
            return TD_OK;
        const td_tensor *source =
            program == td_primitive_program(TD_PW_copy) ? operands[0].tensor : NULL;
        if (source && source->storage != out->storage && td_cpu_is_transpose(out, source))
            return td_cpu_transpose(out, source);
        if (source && source->storage != out->storage && td_cpu_turns_first(out, source))
            return td_cpu_turn_first(out, source);
    }
    bool taken = false;
    td_status status = TD_OK;
    if (program->nsteps > 1 && (!plan->outs || plan->nlists == 1) && !plan->nshared)
        status = td_pointwise_as_code(program, compute, operands, outs, &taken);
    if (taken)
        return status;
    job j = {.program = program,
             .compute = compute,
             .nlists = plan->outs ? plan->nlists : 1,
             .operands = operands,
             .shared = plan->nshared ? plan->shared : NULL,
             .nown = program->noperands - plan->nshared,
             .outs = outs};
    int clash = find_clash(&j);
    if (TD_UNLIKELY(clash < j.nlists * j.nown))
        return run_apart(&j, clash);
    return run_job(&j);
}

/* chain.c: from a program's steps to a chain, and what a chain's loop works on. */
#include "engine/cpu/pointwise/chain.h"

#include "engine/cpu/isa/isa.h"
#include "engine/cpu/limits.h"

#include <string.h>

enum {
    TILE_BYTES = 512, /* at most */
    STEP_MOST = 4     /* operations that a step may take, but for the second store of an output */
};

/* Steps from elements to elements that a chain has: what pointwise_loops.h makes for it. */
static bool is_simple(int primitive, td_dtype compute) {
    enum { FLOATS = 1, WHOLE = 2, BOTH = FLOATS | WHOLE };
    static const uint8_t simple[TD_PRIMITIVES] = {
#define ARITH(name, arity, formula)                         [TD_PW_##name] = BOTH,
#define EITHER(name, arity, float_formula, integer_formula) [TD_PW_##name] = BOTH,
#define FLOAT(name, arity, formula)                         [TD_PW_##name] = FLOATS,
#define INTEGER(name, arity, formula)                       [TD_PW_##name] = WHOLE,
#define PRIMITIVE(name, ...)
#include "engine/ops/language/primitives.def"
#undef PRIMITIVE
        [TD_PW_copy] = BOTH, [TD_PW_sqrt] = FLOATS};
    return simple[primitive] & (td_dtype_is_float(compute) ? FLOATS : WHOLE);
}

static bool is_computed(uint8_t dtype, td_dtype compute) {
    return td_dtype_in_call(dtype, compute) == compute;
}

/* Masks that comparisons make, and that others read, may stand between. */
static bool is_link(const td_step *step, td_dtype compute) {
    bool from = is_computed(step->from, compute), to = is_computed(step->to, compute);
    switch (td_primitive_signature((td_primitive)step->primitive)) {
    case TD_SIGNATURE_COMPARE:
        return from && step->to == TD_BOOL;
    case TD_SIGNATURE_LOGIC:
        return step->from == TD_BOOL && step->to == TD_BOOL;
    case TD_SIGNATURE_SELECT:
        return from && to;
    case TD_SIGNATURE_SAME:
        break;
    }
    if (step->primitive == TD_PW_copy && step->from == TD_BOOL)
        return to;
    return is_simple(step->primitive, compute) && from && to;
}

/* What lies in memory is elements alone. */
bool td_chain_takes(const td_program *p, td_dtype compute) {
    for (int s = 0; s < p->nsteps; s++)
        if (!is_link(&p->steps[s], compute))
            return false;
    for (int k = 0; k < p->nloads; k++)
        if (!is_computed(p->loads[k].dtype, compute))
            return false;
    for (int k = 0; k < p->nconstants; k++)
        if (!is_computed(p->constants[k].dtype, compute))
            return false;
    for (int k = 0; k < p->noutputs; k++)
        if (!is_computed(p->outputs[k].dtype, compute))
            return false;
    return p->nsteps > 1 && td_cpu->pointwise->chain[compute];
}

/* ---- programs that were compiled ---- */

static const td_fused_program *find_fused(uint64_t digest) {
    const td_fused_kernels *all = td_cpu->fused;
    size_t low = 0, high = all->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (all->programs[middle].digest < digest)
            low = middle + 1;
        else
            high = middle;
    }
    return low < all->n && all->programs[low].digest == digest ? &all->programs[low] : NULL;
}

td_fused_fn td_chain_fused(const td_program *p, td_dtype compute, uint64_t numbers,
                           td_narrow narrow) {
    const td_fused_program *found = find_fused(p->digest);
    if (!found || (found->numbers & ~numbers) || (narrow.registers && !narrow.all))
        return NULL;
    return found->loops[narrow.registers ? narrow.dtype : compute];
}

/* ---- making ---- */

static int count_registers(const td_program *p) {
    return p->nloads + p->nconstants + p->noutputs + p->nbuffers;
}

static void emit_choice(td_chain *c, int op, int reg, int other, int third) {
    c->code[c->ncode++] =
        (td_chain_op){(uint16_t)op, (uint16_t)reg, (uint16_t)other, (uint16_t)third};
}

static void emit(td_chain *c, int op, int reg) {
    emit_choice(c, op, reg, 0, 0);
}

/* Does the step that follows take the value from the registers, and no other place read it? */
static bool stays_in_registers(const td_program *p, int s) {
    const td_step *step = &p->steps[s], *next = step + 1;
    return step->passed && !(next->primitive == TD_PW_muladd && next->src[0] == step->dst);
}

/* ---- 16-bit floats ---- */

static bool is_narrow(const td_chain *c, int reg) {
    return reg < 64 && (c->narrow.registers >> reg & 1);
}

static bool is_widened(const td_chain *c, int reg) {
    return c->widened >> reg & 1;
}

/* An operation on narrow memory, in its form for the dtype. */
static void emit_narrow(td_chain *c, int op, int reg) {
    emit_choice(c, op + (c->narrow.dtype == TD_BF16), c->registers + reg, reg, 0);
}

/* What an operation will read from memory stands there as it is computed. */
static void widen(td_chain *c, int reg) {
    if (!is_narrow(c, reg) || is_widened(c, reg))
        return;
    emit_narrow(c, TD_CHAIN_WIDEN_HALVES, reg);
    c->widened |= (uint64_t)1 << reg;
}

static void emit_load(td_chain *c, int reg) {
    if (is_narrow(c, reg) && !is_widened(c, reg))
        emit_narrow(c, TD_CHAIN_LOAD_HALVES, reg);
    else
        emit(c, TD_CHAIN_LOAD, reg);
}

/* Does a step behind step s read the register? */
static bool is_read_behind(const td_program *p, int s, int reg) {
    for (int t = s + 1; t < p->nsteps; t++)
        for (int k = 0; k < p->steps[t].arity; k++)
            if (p->steps[t].src[k] == reg)
                return true;
    return false;
}

static void emit_store(td_chain *c, const td_program *p, int s) {
    int made = p->steps[s].dst;
    bool narrow = is_narrow(c, made);
    if (narrow) {
        emit_narrow(c, TD_CHAIN_STORE_HALVES, made);
        c->widened |= (uint64_t)1 << made;
    }
    if (!narrow || is_read_behind(p, s, made))
        emit(c, TD_CHAIN_STORE, made);
}

/* ---- products and sums ---- */

/* a + b * c, of which b or c may be in the registers. */
static void emit_muladd(td_chain *c, const uint16_t *src, int held) {
    int first = held == src[2] ? 2 : 1;
    widen(c, src[0]);
    widen(c, src[3 - first]);
    if (held != src[first])
        emit_load(c, src[first]);
    emit(c, first == 1 ? TD_PW_mul : TD_CHAIN_SWAPPED + TD_PW_mul, src[3 - first]);
    emit(c, TD_CHAIN_SWAPPED + TD_PW_add, src[0]);
}

/* ---- choices ---- */

/* The same of operands changed round. */
static int turned(int comparison) {
    switch (comparison) {
    case TD_PW_lt:
        return TD_PW_gt;
    case TD_PW_le:
        return TD_PW_ge;
    case TD_PW_gt:
        return TD_PW_lt;
    case TD_PW_ge:
        return TD_PW_le;
    }
    return comparison;
}

/* A choice by a comparison, whose operands or what is chosen may be in the registers. */
static void emit_pick(td_chain *c, const td_step *by, const uint16_t *src, int held) {
    const uint16_t *of = by->src;
    int how = by->primitive;
    for (int k = 0; k < 2; k++) {
        widen(c, of[k]);
        widen(c, src[k + 1]);
    }
    if (held == of[0]) {
        emit_choice(c, TD_CHAIN_PICK + how, of[1], src[1], src[2]);
    } else if (held == of[1]) {
        emit_choice(c, TD_CHAIN_PICK + turned(how), of[0], src[1], src[2]);
    } else if (held == src[1] && held != src[2]) {
        emit_choice(c, TD_CHAIN_PICK_THEN + how, of[0], of[1], src[2]);
    } else if (held == src[2] && held != src[1]) {
        emit_choice(c, TD_CHAIN_PICK_ELSE + how, of[0], of[1], src[1]);
    } else {
        emit_load(c, of[0]);
        emit_choice(c, TD_CHAIN_PICK + how, of[1], src[1], src[2]);
    }
}

/* a where the mask is set, else b, of which one may be in the registers. */
static void emit_where(td_chain *c, const uint16_t *src, int held) {
    widen(c, src[1]);
    widen(c, src[2]);
    if (held == src[1] && held != src[2]) {
        emit_choice(c, TD_CHAIN_THEN, src[0], src[2], 0);
    } else if (held == src[2] && held != src[1]) {
        emit_choice(c, TD_CHAIN_ELSE, src[0], src[1], 0);
    } else {
        if (held != src[0])
            emit(c, TD_CHAIN_LOAD, src[0]);
        emit_choice(c, TD_CHAIN_WHERE, src[1], src[2], 0);
    }
}

/* ---- steps ---- */

/* Step s, where the registers hold the value `held`. */
static void emit_step(td_chain *c, const td_program *p, int s, int held) {
    const td_step *step = &p->steps[s];
    const uint16_t *src = step->src;
    if (step->primitive == TD_PW_where) {
        if (step->by)
            emit_pick(c, &p->steps[step->by - 1], src, held);
        else
            emit_where(c, src, held);
        return;
    }
    if (step->arity == 3) {
        emit_muladd(c, src, held);
        return;
    }
    bool swapped = step->arity == 2 && held == src[1] && held != src[0];
    if (step->arity == 2)
        widen(c, src[!swapped]);
    if (!swapped && held != src[0])
        emit_load(c, src[0]);
    if (step->primitive == TD_PW_copy && step->from == TD_BOOL)
        emit(c, TD_CHAIN_ONE, src[0]);
    else if (step->primitive != TD_PW_copy)
        emit(c, (swapped ? TD_CHAIN_SWAPPED : 0) + step->primitive,
             step->arity == 1 ? src[0] : src[!swapped]);
}

/* Each load may be fetched and widened. */
size_t td_chain_most(const td_program *p) {
    return 2 * (size_t)p->nloads + STEP_MOST * (size_t)p->nsteps + (size_t)p->noutputs + 1;
}

/* The program's code. What is narrow in part goes through buffers, in which it is none; a program
 * that chains don't take must not be told of it then. */
static const td_code *find_code(td_chain *c, const td_program *p, td_dtype compute,
                                uint64_t numbers, bool rows, int64_t elements) {
    const bool narrow = c->narrow.registers != 0;
    const td_code_form form = {.program = p,
                               .compute = compute,
                               .numbers = numbers,
                               .narrow = narrow ? c->narrow.dtype : TD_DTYPE_NONE,
                               .rows = rows};
    if ((narrow && !c->narrow.all) || !td_code_wanted(elements) ||
        td_code_is_refused(p, compute, rows))
        return NULL;
    return td_code_find(&form, elements);
}

void td_chain_make(td_chain *c, const td_program *p, td_dtype compute, uint64_t numbers, bool rows,
                   int64_t elements, uint64_t fetched, td_narrow narrow) {
    c->run = elements >= TD_LIMIT(POINTWISE_CHAIN) && td_chain_takes(p, compute)
                 ? td_cpu->pointwise->chain[compute]
                 : NULL;
    c->fused = c->run ? td_chain_fused(p, compute, numbers, narrow) : NULL;
    c->narrow = narrow;
    c->machine = c->fused ? NULL : find_code(c, p, compute, numbers, rows, elements);
    if (!c->run && !c->machine && narrow.registers) {
        c->narrow = narrow = (td_narrow){0};
        c->machine = find_code(c, p, compute, numbers, rows, elements);
    }
    c->itemsize = td_dtype_size(compute);
    c->ncode = 0;
    c->widened = 0;
    c->registers = count_registers(p);
    if (c->fused || c->machine)
        return;
    for (int r = 0; r < p->nloads && r < 64 && c->run; r++)
        if ((fetched & ~narrow.registers) >> r & 1)
            emit(c, TD_CHAIN_FETCH, r);
    for (int s = 0, held = -1; s < p->nsteps && c->run; s++) {
        if (p->steps[s].waits)
            continue;
        emit_step(c, p, s, held);
        held = p->steps[s].dst;
        if (!stays_in_registers(p, s))
            emit_store(c, p, s);
    }
    emit(c, TD_CHAIN_END, 0);
}

/* ---- running ---- */

/* Of registers, then of loads and outputs that are narrow. */
static int count_places(const td_program *p) {
    return count_registers(p) + p->nloads + p->nconstants + p->noutputs;
}

static size_t places_bytes(const td_program *p) {
    return (sizeof(td_place) * (size_t)count_places(p) + 63) & ~(size_t)63;
}

/* The places, then a tile for each. */
size_t td_chain_bytes(const td_program *p) {
    return places_bytes(p) + (size_t)count_places(p) * TILE_BYTES;
}

void td_chain_begin(const td_program *p, unsigned char *memory) {
    memset(memory, 0, places_bytes(p));
}

/* A tile full of one element; mostly it is that already, from the block before. */
static void fill_tile(td_place *place, unsigned char *tile, const td_chain *c,
                      const unsigned char *element) {
    uint64_t bits = 0;
    memcpy(&bits, element, c->itemsize);
    if (c->itemsize == 4)
        bits |= bits << 32;
    place->at = tile;
    place->moves = 0;
    if (place->full && place->bits == bits)
        return;
    for (size_t k = 0; k < TILE_BYTES; k += 8)
        memcpy(tile + k, &bits, 8);
    place->bits = bits;
    place->full = true;
}

/* The place of a register's elements in memory: its own or, where they are narrow, one behind those
 * of the registers. */
static int memory_of(const td_chain *c, int reg) {
    return is_narrow(c, reg) ? c->registers + reg : reg;
}

/* What is narrow is widened into a tile. */
static void place_elements(const td_chain *c, int reg, unsigned char *at, td_place *places,
                           unsigned char *tiles) {
    places[reg] = (td_place){.at = tiles + reg * TILE_BYTES};
    places[memory_of(c, reg)] = (td_place){.at = at, .moves = ~(uint64_t)0};
}

static void place_source(const td_chain *c, int reg, const td_cell *cells, td_place *places,
                         unsigned char *tiles) {
    if (cells[reg].scalar)
        fill_tile(&places[reg], tiles + reg * TILE_BYTES, c, cells[reg].p);
    else
        place_elements(c, reg, cells[reg].p, places, tiles);
}

static void find_sources(const td_chain *c, const td_program *p, const td_cell *cells,
                         td_place *places, unsigned char *tiles) {
    int first = p->nloads + p->nconstants, end = first + p->noutputs, n = count_registers(p);
    for (int r = 0; r < first; r++)
        place_source(c, r, cells, places, tiles);
    for (int r = end; r < n; r++)
        places[r] = (td_place){.at = tiles + r * TILE_BYTES};
}

static void find_registers(const td_chain *c, const td_program *p, const td_cell *cells,
                           uint64_t moving, td_place *places, unsigned char *tiles) {
    int first = p->nloads + p->nconstants, end = first + p->noutputs;
    if (moving == ~(uint64_t)0)
        find_sources(c, p, cells, places, tiles);
    else
        for (; moving; moving &= moving - 1)
            place_source(c, __builtin_ctzll(moving), cells, places, tiles);
    for (int r = first; r < end; r++)
        place_elements(c, r, cells[r].p, places, tiles);
}

/* What is left behind the whole tiles: on copies; what stands behind them is of no matter. */
static void run_rest(const td_chain *c, const td_program *p, size_t done, size_t rest,
                     const td_cell *cells, td_place *places, unsigned char *tiles) {
    int first = p->nloads + p->nconstants, end = first + p->noutputs;
    for (int r = 0; r < end; r++) {
        bool narrow = is_narrow(c, r);
        td_place *place = &places[memory_of(c, r)];
        unsigned char *tile = tiles + memory_of(c, r) * TILE_BYTES;
        if (!place->moves)
            continue;
        if (r < first)
            memcpy(tile, place->at + (done >> narrow), rest >> narrow);
        *place = (td_place){.at = tile};
    }
    c->run(c->code, 1, places);
    for (int r = first; r < end; r++) {
        bool narrow = is_narrow(c, r);
        memcpy(cells[r].p + (done >> narrow), places[memory_of(c, r)].at, rest >> narrow);
    }
}

/* By the program's own loop or code. Runs lie where other chains have places. */
static void run_fused(const td_chain *c, const td_program *p, int64_t rows, int64_t n,
                      const td_cell *cells, unsigned char *memory) {
    td_run *runs = (td_run *)memory;
    const int first = p->nloads + p->nconstants, end = first + p->noutputs;
    for (int r = 0; r < end; r++) {
        const bool moves = r >= first || !cells[r].scalar; /* which outputs don't say */
        runs[r] = (td_run){cells[r].p, moves ? ~(uint64_t)0 : 0, rows > 1 ? cells[r].next : 0};
    }
    if (c->machine)
        c->machine->run(rows, n, runs, c->machine->functions);
    else
        c->fused(rows, n, runs);
}

void td_chain_run(const td_chain *c, const td_program *p, int64_t n, const td_cell *cells,
                  uint64_t moving, unsigned char *memory) {
    td_place *places = (td_place *)memory;
    unsigned char *tiles = memory + places_bytes(p);
    if (c->fused || c->machine) {
        run_fused(c, p, 1, n, cells, memory);
        return;
    }
    find_registers(c, p, cells, moving, places, tiles);
    size_t bytes = (size_t)n * c->itemsize, tile = td_cpu->pointwise->tile_bytes;
    size_t whole = bytes / tile;
    c->run(c->code, (int64_t)whole, places);
    if (bytes > whole * tile)
        run_rest(c, p, whole * tile, bytes - whole * tile, cells, places, tiles);
}

void td_chain_run_rows(const td_chain *c, const td_program *p, int64_t rows, int64_t n,
                       td_cell *cells, uint64_t moving, uint64_t each, unsigned char *memory) {
    const int first = p->nloads + p->nconstants, end = first + p->noutputs;
    if (c->fused || c->machine) {
        run_fused(c, p, rows, n, cells, memory);
        return;
    }
    for (int64_t row = 0; row < rows; row++, moving = each) {
        td_chain_run(c, p, n, cells, moving, memory);
        for (int r = 0; r < end; r++)
            if (r < p->nloads || r >= first)
                cells[r].p += cells[r].next;
    }
}

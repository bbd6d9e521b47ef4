/* chain.c: from a program's steps to a chain, and what a chain's loop works on. */
#include "engine/cpu/chain.h"

#include "engine/cpu/isa/isa.h"

#include <string.h>

enum {
    TILE_BYTES = 512, /* at most */
    STEP_MOST = 4     /* operations that a step may take */
};

/* Steps from elements to elements that a chain has: what pointwise_loops.h makes for it. */
static bool is_simple(int primitive) {
    static const bool simple[TD_PRIMITIVES] = {
#define ARITH(name, arity, formula)                         [TD_PW_##name] = true,
#define FLOAT(name, arity, formula)                         [TD_PW_##name] = true,
#define EITHER(name, arity, float_formula, integer_formula) [TD_PW_##name] = true,
#define PRIMITIVE(name, ...)
#include "engine/ops/primitives.def"
#undef PRIMITIVE
        [TD_PW_copy] = true, [TD_PW_sqrt] = true};
    return simple[primitive];
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
    return is_simple(step->primitive) && from && to;
}

/* What lies in memory is elements alone. */
static bool is_chain(const td_program *p, td_dtype compute) {
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
    return p->nsteps > 1;
}

/* ---- making ---- */

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

/* a + b * c, of which b or c may be in the registers. */
static void emit_muladd(td_chain *c, const uint16_t *src, int held) {
    int first = held == src[2] ? 2 : 1;
    if (held != src[first])
        emit(c, TD_CHAIN_LOAD, src[first]);
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
    if (held == of[0]) {
        emit_choice(c, TD_CHAIN_PICK + how, of[1], src[1], src[2]);
    } else if (held == of[1]) {
        emit_choice(c, TD_CHAIN_PICK + turned(how), of[0], src[1], src[2]);
    } else if (held == src[1] && held != src[2]) {
        emit_choice(c, TD_CHAIN_PICK_THEN + how, of[0], of[1], src[2]);
    } else if (held == src[2] && held != src[1]) {
        emit_choice(c, TD_CHAIN_PICK_ELSE + how, of[0], of[1], src[1]);
    } else {
        emit(c, TD_CHAIN_LOAD, of[0]);
        emit_choice(c, TD_CHAIN_PICK + how, of[1], src[1], src[2]);
    }
}

/* a where the mask is set, else b, of which one may be in the registers. */
static void emit_where(td_chain *c, const uint16_t *src, int held) {
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
    if (!swapped && held != src[0])
        emit(c, TD_CHAIN_LOAD, src[0]);
    if (step->primitive == TD_PW_copy && step->from == TD_BOOL)
        emit(c, TD_CHAIN_ONE, src[0]);
    else if (step->primitive != TD_PW_copy)
        emit(c, (swapped ? TD_CHAIN_SWAPPED : 0) + step->primitive,
             step->arity == 1 ? src[0] : src[!swapped]);
}

size_t td_chain_most(const td_program *p) {
    return (size_t)p->nloads + STEP_MOST * (size_t)p->nsteps + 1;
}

void td_chain_make(td_chain *c, const td_program *p, td_dtype compute, uint64_t fetched) {
    c->run = is_chain(p, compute) ? td_cpu->pointwise->chain[compute] : NULL;
    c->itemsize = td_dtype_size(compute);
    c->ncode = 0;
    for (int r = 0; r < p->nloads && r < 64 && c->run; r++)
        if (fetched >> r & 1)
            emit(c, TD_CHAIN_FETCH, r);
    for (int s = 0, held = -1; s < p->nsteps && c->run; s++) {
        if (p->steps[s].waits)
            continue;
        emit_step(c, p, s, held);
        held = p->steps[s].dst;
        if (!stays_in_registers(p, s))
            emit(c, TD_CHAIN_STORE, held);
    }
    emit(c, TD_CHAIN_END, 0);
}

/* ---- running ---- */

static int count_registers(const td_program *p) {
    return p->nloads + p->nconstants + p->noutputs + p->nbuffers;
}

static size_t places_bytes(const td_program *p) {
    return (sizeof(td_place) * (size_t)count_registers(p) + 63) & ~(size_t)63;
}

/* The places of the registers, then a tile for each. */
size_t td_chain_bytes(const td_program *p) {
    return places_bytes(p) + (size_t)count_registers(p) * TILE_BYTES;
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

static void find_sources(const td_chain *c, const td_program *p, const td_cell *cells,
                         td_place *places, unsigned char *tiles) {
    int first = p->nloads + p->nconstants, end = first + p->noutputs, n = count_registers(p);
    for (int r = 0; r < first; r++) {
        if (cells[r].scalar)
            fill_tile(&places[r], tiles + r * TILE_BYTES, c, cells[r].p);
        else
            places[r] = (td_place){.at = cells[r].p, .moves = ~(uint64_t)0};
    }
    for (int r = end; r < n; r++)
        places[r] = (td_place){.at = tiles + r * TILE_BYTES};
}

static void find_registers(const td_chain *c, const td_program *p, const td_cell *cells,
                           uint64_t moving, td_place *places, unsigned char *tiles) {
    int first = p->nloads + p->nconstants, end = first + p->noutputs;
    if (moving == ~(uint64_t)0)
        find_sources(c, p, cells, places, tiles);
    else
        for (; moving; moving &= moving - 1) {
            int r = __builtin_ctzll(moving);
            places[r] = (td_place){.at = cells[r].p, .moves = ~(uint64_t)0};
        }
    for (int r = first; r < end; r++)
        places[r] = (td_place){.at = cells[r].p, .moves = ~(uint64_t)0};
}

/* What is left behind the whole tiles: on copies; what stands behind them is of no matter. */
static void run_rest(const td_chain *c, const td_program *p, size_t done, size_t rest,
                     const td_cell *cells, td_place *places, unsigned char *tiles) {
    int first = p->nloads + p->nconstants, end = first + p->noutputs;
    for (int r = 0; r < end; r++) {
        unsigned char *tile = tiles + r * TILE_BYTES;
        if (!places[r].moves)
            continue;
        if (r < first)
            memcpy(tile, places[r].at + done, rest);
        places[r] = (td_place){.at = tile};
    }
    c->run(c->code, 1, places);
    for (int r = first; r < end; r++)
        memcpy(cells[r].p + done, places[r].at, rest);
}

void td_chain_run(const td_chain *c, const td_program *p, int64_t n, const td_cell *cells,
                  uint64_t moving, unsigned char *memory) {
    td_place *places = (td_place *)memory;
    unsigned char *tiles = memory + places_bytes(p);
    find_registers(c, p, cells, moving, places, tiles);
    size_t bytes = (size_t)n * c->itemsize, tile = td_cpu->pointwise->tile_bytes;
    size_t whole = bytes / tile;
    c->run(c->code, (int64_t)whole, places);
    if (bytes > whole * tile)
        run_rest(c, p, whole * tile, bytes - whole * tile, cells, places, tiles);
}

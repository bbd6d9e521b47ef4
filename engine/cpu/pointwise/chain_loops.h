/* chain_loops.h: the loop of chains (engine/cpu/pointwise/chain.h) for one element type.
 *
 * Included once per type by pointwise_loops.h, in whose vocabulary the formulas of primitives.def
 * are. */

/* So many vectors of one value are in registers; what else a step reads comes from memory. */
#define ALL(at, formula)                                                                           \
    at(0, formula) at(1, formula) at(2, formula) at(3, formula) at(4, formula) at(5, formula)      \
        at(6, formula) at(7, formula)
#define ALL2(at, formula, how)                                                                     \
    at(0, formula, how) at(1, formula, how) at(2, formula, how) at(3, formula, how)                \
        at(4, formula, how) at(5, formula, how) at(6, formula, how) at(7, formula, how)
_Static_assert(TD_CHAIN_VECTORS == 8, "as many as ALL names");
#define ZERO(u, none)  V acc##u = {0};
#define LOAD(u, none)  acc##u = OF(load)(x + (u)*N);
#define STORE(u, none) OF(store)(x + (u)*N, acc##u);
#define ONES(u, none)  acc##u = ONE(acc##u);
#define WHERE(u, none) acc##u = SEL(acc##u, OF(load)(x + (u)*N), OF(load)(y + (u)*N));
#define THEN(u, none)  acc##u = SEL(OF(load)(x + (u)*N), acc##u, OF(load)(y + (u)*N));
#define ELSE(u, none)  acc##u = SEL(OF(load)(x + (u)*N), OF(load)(y + (u)*N), acc##u);
/* Where the tile's elements of a register are. */
#define AT(reg)        (T *)(places[reg].at + (offset & places[reg].moves))
#define IS_ONE(reg)    (!places[reg].moves && places[reg].full)
#define FETCH(u, none) __builtin_prefetch((char *)x + TD_CHAIN_AHEAD + (u) * sizeof(V));

/* 16-bit floats. */
#define NARROW_AT(reg)        (void *)(places[reg].at + ((offset >> 1) & places[reg].moves))
#define LOAD_NARROW(u, name)  acc##u = vf_load_##name(h + (u)*N);
#define WIDEN(u, name)        vf_store(y + (u)*N, vf_load_##name(h + (u)*N));
#define STORE_NARROW(u, name) vf_store_##name(h + (u)*N, acc##u);
#define NARROW(NAMES, name, type)                                                                  \
    case TD_CHAIN_LOAD_##NAMES: {                                                                  \
        const type *h = NARROW_AT(c->reg);                                                         \
        ALL(LOAD_NARROW, name)                                                                     \
        continue;                                                                                  \
    }                                                                                              \
    case TD_CHAIN_WIDEN_##NAMES: {                                                                 \
        const type *h = NARROW_AT(c->reg);                                                         \
        T *y = AT(c->other);                                                                       \
        ALL(WIDEN, name)                                                                           \
        continue;                                                                                  \
    }                                                                                              \
    case TD_CHAIN_STORE_##NAMES: {                                                                 \
        type *h = NARROW_AT(c->reg);                                                               \
        ALL(STORE_NARROW, name)                                                                    \
        continue;                                                                                  \
    }

/* Which steps the type has. */
#if FLOATING
#define FLOAT(name, arity, formula) STEP##arity(name, formula)
#define INTEGER(name, arity, formula)
#define EITHER(name, arity, float_formula, integer_formula) STEP##arity(name, float_formula)
#else
#define FLOAT(name, arity, formula)
#define INTEGER(name, arity, formula)                       STEP##arity(name, formula)
#define EITHER(name, arity, float_formula, integer_formula) STEP##arity(name, integer_formula)
#endif

static void NAME(chain)(const td_chain_op *code, int64_t tiles, const td_place *places) {
    ALL(ZERO, )
    for (int64_t tile = 0; tile < tiles; tile++) {
        uint64_t offset = (uint64_t)tile * TD_CHAIN_VECTORS * sizeof(V);
        for (const td_chain_op *c = code; c->op != TD_CHAIN_END; c++) {
            T *x = AT(c->reg);
            switch (c->op) {
            case TD_CHAIN_FETCH:
                ALL(FETCH, )
                continue;
            case TD_CHAIN_ONE:
                ALL(ONES, )
                continue;
#ifdef NARROWS
                NARROW(HALVES, halves, td_half)
                NARROW(BFLOATS, bfloats, td_bfloat)
#endif
#define CHOICE(op, how)                                                                            \
    case op: {                                                                                     \
        const T *y = AT(c->other);                                                                 \
        ALL(how, )                                                                                 \
        continue;                                                                                  \
    }
                CHOICE(TD_CHAIN_WHERE, WHERE)
                CHOICE(TD_CHAIN_THEN, THEN)
                CHOICE(TD_CHAIN_ELSE, ELSE)
            case TD_CHAIN_LOAD:
                ALL(LOAD, )
                continue;
            case TD_CHAIN_STORE:
                ALL(STORE, )
                continue;
#define AT1(u, formula)                                                                            \
    {                                                                                              \
        V a = acc##u;                                                                              \
        acc##u = (formula);                                                                        \
    }
#define AT2(u, formula)                                                                            \
    {                                                                                              \
        V a = acc##u, b = OF(load)(x + (u)*N);                                                     \
        acc##u = (formula);                                                                        \
    }
#define BY_ONE(u, formula)                                                                         \
    {                                                                                              \
        V a = acc##u, b = one;                                                                     \
        acc##u = (formula);                                                                        \
    }
#define SWAPPED(u, formula)                                                                        \
    {                                                                                              \
        V b = acc##u, a = OF(load)(x + (u)*N);                                                     \
        acc##u = (formula);                                                                        \
    }
#define STEP1(name, formula)                                                                       \
    case TD_PW_##name:                                                                             \
        ALL(AT1, formula)                                                                          \
        continue;
#define STEP2(name, formula)                                                                       \
    case TD_PW_##name:                                                                             \
        if (IS_ONE(c->reg)) {                                                                      \
            V one = OF(load)(x);                                                                   \
            ALL(BY_ONE, formula)                                                                   \
            continue;                                                                              \
        }                                                                                          \
        ALL(AT2, formula)                                                                          \
        continue;                                                                                  \
    case TD_CHAIN_SWAPPED + TD_PW_##name:                                                          \
        ALL(SWAPPED, formula)                                                                      \
        continue;
#define PICK(u, name, B)                                                                           \
    acc##u = OF(pick_##name)(acc##u, B(u, x), OF(load)(y + (u)*N), OF(load)(z + (u)*N));
#define PICK_THEN(u, name, B)                                                                      \
    acc##u = OF(pick_##name)(OF(load)(x + (u)*N), B(u, y), acc##u, OF(load)(z + (u)*N));
#define PICK_ELSE(u, name, B)                                                                      \
    acc##u = OF(pick_##name)(OF(load)(x + (u)*N), B(u, y), OF(load)(z + (u)*N), acc##u);
#define EACH(u, p) OF(load)(p + (u)*N)
#define SAME(u, p) one
/* `b`: the comparison's second operand, mostly one number. */
#define PICKED(how, name, b, reg_of_b)                                                             \
    case TD_CHAIN_##how + TD_PW_##name: {                                                          \
        const T *y = AT(c->other), *z = AT(c->third);                                              \
        if (IS_ONE(reg_of_b)) {                                                                    \
            V one = OF(load)(b);                                                                   \
            ALL2(how, name, SAME)                                                                  \
            continue;                                                                              \
        }                                                                                          \
        ALL2(how, name, EACH)                                                                      \
        continue;                                                                                  \
    }
#define STEP3(name, formula) /* two steps here */
#define MASK(formula)        (V)((M)(formula))
#define COMPARE(name, arity, formula)                                                              \
    STEP##arity(name, MASK(formula)) PICKED(PICK, name, x, c->reg)                                 \
        PICKED(PICK_THEN, name, y, c->other) PICKED(PICK_ELSE, name, y, c->other)
#define ARITH(name, arity, formula) STEP##arity(name, formula)
#define COPY(name, arity, formula)
#define LOGIC(name, arity, formula)
#define SELECT(name, arity, formula)
#define MATH(name, arity, formula)
#define SPECIAL(name, arity, formula)
#define LANES(name, arity, lane)
#define DIVIDE(name, arity, float_formula, lane)
#include "engine/ops/language/primitives.def"
#if FLOATING
                STEP1(sqrt, SQRT(a)) /* as dear as a division, no more */
#endif
                STEP2(logical_and, (V)((M)a & (M)b))
                STEP2(logical_or, (V)((M)a | (M)b))
                STEP2(logical_xor, (V)((M)a ^ (M)b))
                STEP1(logical_not, (V)(~(M)a))
            }
            __builtin_unreachable(); /* a step begins sooner where nobody asks for others */
        }
    }
}

#undef ZERO
#undef NARROW_AT
#undef LOAD_NARROW
#undef WIDEN
#undef STORE_NARROW
#undef NARROW
#undef NARROWS
#undef LOAD
#undef STORE
#undef FETCH
#undef ONES
#undef WHERE
#undef THEN
#undef ELSE
#undef CHOICE
#undef PICK
#undef PICK_THEN
#undef PICK_ELSE
#undef PICKED
#undef EACH
#undef SAME
#undef BY_ONE
#undef ALL2
#undef IS_ONE
#undef AT
#undef MASK
#undef AT1
#undef AT2
#undef SWAPPED
#undef ALL
#undef STEP1
#undef STEP2
#undef STEP3

/* pointwise_loops.h: makes the loops of all primitives for one element type.
 *
 * Included once per type by pointwise_kernels.c, with the words of formula_words.h, FLOATING (0 or
 * 1), CHAINS where it has chains, and, for the bytes that are bool too, BYTES. For the 16-bit
 * floats, which are computed as float, T is that, E the type in memory and HALVES the end of the
 * names of its loads and stores; operands that are a single element are floats, and there are loops
 * only for what is about as cheap as a conversion. Two vectors at a time where they are read by
 * pairs, whole vectors next, then one part vector, so that every element goes through the same
 * code. */

#define NAME2(p, n) loop_##p##_##n
#define NAME1(p, n) NAME2(p, n)
#ifdef HALVES
#define NAME(n)              NAME1(HALVES, n)
#define LOADED(p)            CAT1(vf_load, HALVES)(p)
#define LOADED_PART(p, n)    CAT1(CAT1(vf_load, HALVES), part)(p, n)
#define STORED(p, v)         CAT1(vf_store, HALVES)(p, v)
#define STORED_PART(p, v, n) CAT1(CAT1(vf_store, HALVES), part)(p, v, n)
#define LOAD_ONE(p, s, at)   ((s) ? FIRST(p) : CAT1(vf_load_one, HALVES)((p) + (at)))
#define LOAD_OTHER(p, s, at) ((s) ? FIRST(p) : CAT1(vf_load_other, HALVES)((p) + (at)))
#define BY_TWO1(formula)                                                                           \
    for (; i + 2 * N <= n; i += 2 * N) {                                                           \
        V one, other;                                                                              \
        {                                                                                          \
            V a = LOAD_ONE(ap, 0, i);                                                              \
            one = (formula);                                                                       \
        }                                                                                          \
        {                                                                                          \
            V a = LOAD_OTHER(ap, 0, i);                                                            \
            other = (formula);                                                                     \
        }                                                                                          \
        CAT1(vf_store_both, HALVES)(op + i, one, other);                                           \
    }
#define BY_TWO2(sa, sb, formula)                                                                   \
    for (; i + 2 * N <= n; i += 2 * N) {                                                           \
        V one, other;                                                                              \
        {                                                                                          \
            V a = LOAD_ONE(ap, sa, i), b = LOAD_ONE(bp, sb, i);                                    \
            one = (formula);                                                                       \
        }                                                                                          \
        {                                                                                          \
            V a = LOAD_OTHER(ap, sa, i), b = LOAD_OTHER(bp, sb, i);                                \
            other = (formula);                                                                     \
        }                                                                                          \
        CAT1(vf_store_both, HALVES)(op + i, one, other);                                           \
    }
#else
#define BY_TWO1(formula)
#define BY_TWO2(sa, sb, formula)
#define E                    T
#define NAME(n)              NAME1(P, n)
#define LOADED(p)            OF(load)(p)
#define LOADED_PART(p, n)    OF(load_part)(p, n)
#define STORED(p, v)         OF(store)(p, v)
#define STORED_PART(p, v, n) OF(store_part)(p, v, n)
#endif

#define FIRST(p)               OF(set)(*(const T *)(const void *)(p))
#define LOAD_WHOLE(p, s, at)   ((s) ? FIRST(p) : LOADED((p) + (at)))
#define LOAD_PART(p, s, at, n) ((s) ? FIRST(p) : LOADED_PART((p) + (at), (n)))

/* The scalar pattern is constant in each copy of the loop, so that loads of scalars leave it. */
#define LOOP1(formula)                                                                             \
    {                                                                                              \
        (void)bp, (void)cp, (void)scalars;                                                         \
        int64_t i = 0;                                                                             \
        BY_TWO1(formula)                                                                           \
        for (; i + N <= n; i += N) {                                                               \
            V a = LOADED(ap + i);                                                                  \
            STORED(op + i, (formula));                                                             \
        }                                                                                          \
        if (i < n) {                                                                               \
            V a = LOADED_PART(ap + i, n - i);                                                      \
            STORED_PART(op + i, (formula), n - i);                                                 \
        }                                                                                          \
    }
#define PASS2(sa, sb, formula)                                                                     \
    {                                                                                              \
        int64_t i = 0;                                                                             \
        BY_TWO2(sa, sb, formula)                                                                   \
        for (; i + N <= n; i += N) {                                                               \
            V a = LOAD_WHOLE(ap, sa, i), b = LOAD_WHOLE(bp, sb, i);                                \
            STORED(op + i, (formula));                                                             \
        }                                                                                          \
        if (i < n) {                                                                               \
            V a = LOAD_PART(ap, sa, i, n - i), b = LOAD_PART(bp, sb, i, n - i);                    \
            STORED_PART(op + i, (formula), n - i);                                                 \
        }                                                                                          \
    }
#define LOOP2(formula)                                                                             \
    {                                                                                              \
        (void)cp;                                                                                  \
        if (!(scalars & 3))                                                                        \
            PASS2(0, 0, formula)                                                                   \
        else if ((scalars & 3) == 2)                                                               \
            PASS2(0, 1, formula)                                                                   \
        else if ((scalars & 3) == 1)                                                               \
            PASS2(1, 0, formula)                                                                   \
        else                                                                                       \
            PASS2(1, 1, formula)                                                                   \
    }
#define LOOP3(formula)                                                                             \
    {                                                                                              \
        int64_t i = 0;                                                                             \
        bool sa = scalars & 1, sb = scalars & 2, sc = scalars & 4;                                 \
        for (; i + N <= n; i += N) {                                                               \
            V a = LOAD_WHOLE(ap, sa, i), b = LOAD_WHOLE(bp, sb, i), c = LOAD_WHOLE(cp, sc, i);     \
            STORED(op + i, (formula));                                                             \
        }                                                                                          \
        if (i < n) {                                                                               \
            V a = LOAD_PART(ap, sa, i, n - i), b = LOAD_PART(bp, sb, i, n - i),                    \
              c = LOAD_PART(cp, sc, i, n - i);                                                     \
            STORED_PART(op + i, (formula), n - i);                                                 \
        }                                                                                          \
    }
#define DEFINE(name, arity, formula)                                                               \
    static void NAME(name)(int64_t n, void *out, const void *pa, const void *pb, const void *pc,   \
                           unsigned scalars) {                                                     \
        E *op = out;                                                                               \
        const E *ap = pa, *bp = pb, *cp = pc;                                                      \
        LOOP##arity(formula)                                                                       \
    }
/* The comparison of N elements into N bytes. */
#define COMPARE_AT(i, count, A, B, formula)                                                        \
    {                                                                                              \
        V a = A, b = B;                                                                            \
        OF(store_mask)(op + (i), (M)(formula), count);                                             \
    }
#define COMPARE_PASS(sa, sb, formula)                                                              \
    {                                                                                              \
        int64_t i = 0;                                                                             \
        for (; i + N <= n; i += N)                                                                 \
            COMPARE_AT(i, N, LOAD_WHOLE(ap, sa, i), LOAD_WHOLE(bp, sb, i), formula)                \
        if (i < n)                                                                                 \
            COMPARE_AT(i, n - i, LOAD_PART(ap, sa, i, n - i), LOAD_PART(bp, sb, i, n - i),         \
                       formula)                                                                    \
    }
#define DEFINE_COMPARE(name, formula)                                                              \
    static void NAME(name)(int64_t n, void *out, const void *pa, const void *pb, const void *pc,   \
                           unsigned scalars) {                                                     \
        uint8_t *op = out;                                                                         \
        const E *ap = pa, *bp = pb;                                                                \
        (void)pc;                                                                                  \
        if (!(scalars & 3))                                                                        \
            COMPARE_PASS(0, 0, formula)                                                            \
        else if ((scalars & 3) == 2)                                                               \
            COMPARE_PASS(0, 1, formula)                                                            \
        else if ((scalars & 3) == 1)                                                               \
            COMPARE_PASS(1, 0, formula)                                                            \
        else                                                                                       \
            COMPARE_PASS(1, 1, formula)                                                            \
    }
/* a comes as bytes. */
#define DEFINE_SELECT(name, formula)                                                               \
    static void NAME(name)(int64_t n, void *out, const void *pa, const void *pb, const void *pc,   \
                           unsigned scalars) {                                                     \
        E *op = out;                                                                               \
        const uint8_t *ap = pa;                                                                    \
        const E *bp = pb, *cp = pc;                                                                \
        bool sa = scalars & 1, sb = scalars & 2, sc = scalars & 4;                                 \
        int64_t i = 0;                                                                             \
        for (; i + N <= n; i += N) {                                                               \
            M a = sa ? OF(set_mask)(*ap) : OF(load_mask)(ap + i, N);                               \
            V b = LOAD_WHOLE(bp, sb, i), c = LOAD_WHOLE(cp, sc, i);                                \
            STORED(op + i, (formula));                                                             \
        }                                                                                          \
        if (i < n) {                                                                               \
            M a = sa ? OF(set_mask)(*ap) : OF(load_mask)(ap + i, n - i);                           \
            V b = LOAD_PART(bp, sb, i, n - i), c = LOAD_PART(cp, sc, i, n - i);                    \
            STORED_PART(op + i, (formula), n - i);                                                 \
        }                                                                                          \
    }
/* Integer division has no vector form: lane by lane. */
#define DEFINE_LANES(name, arity, expression)                                                      \
    static void NAME(name)(int64_t n, void *out, const void *pa, const void *pb, const void *pc,   \
                           unsigned scalars) {                                                     \
        T *op = out;                                                                               \
        const T *ap = pa, *bp = pb;                                                                \
        (void)pc;                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                          \
            int64_t a = ap[scalars & 1 ? 0 : i], b = bp[scalars & 2 ? 0 : i];                      \
            op[i] = (T)(expression);                                                               \
        }                                                                                          \
    }

#define ARITH(name, arity, formula)   DEFINE(name, arity, formula)
#define COMPARE(name, arity, formula) DEFINE_COMPARE(name, formula)
#ifdef BYTES
#define LOGIC(name, arity, formula) DEFINE(name, arity, formula)
#else
#define LOGIC(name, arity, formula)
#endif
#ifdef HALVES
#define COPY(name, arity, formula)
#define SELECT(name, arity, formula)
#define MATH(name, arity, formula)
#define SPECIAL(name, arity, formula)
#define DIVIDE(name, arity, float_formula, lane)
DEFINE(sqrt, 1, SQRT(a)) /* no dearer than a division */
DEFINE(rsqrt, 1, vf_rsqrt_for_halves(a))
DEFINE(sin, 1, vf_sin_for_halves(a))
DEFINE(cos, 1, vf_cos_for_halves(a))
DEFINE(tan, 1, vf_tan_for_halves(a))
#else
#define COPY(name, arity, formula)   DEFINE(name, arity, formula)
#define SELECT(name, arity, formula) DEFINE_SELECT(name, formula)
#endif
#if FLOATING
#define FLOAT(name, arity, formula) DEFINE(name, arity, formula)
#define INTEGER(name, arity, formula)
#define LANES(name, arity, lane)
#define EITHER(name, arity, float_formula, integer_formula) DEFINE(name, arity, float_formula)
#ifndef HALVES
#define MATH(name, arity, formula)               DEFINE(name, arity, formula)
#define SPECIAL(name, arity, formula)            DEFINE(name, arity, formula)
#define DIVIDE(name, arity, float_formula, lane) DEFINE(name, arity, float_formula)
#endif
#else
#define FLOAT(name, arity, formula)
#define MATH(name, arity, formula)
#define SPECIAL(name, arity, formula)
#define INTEGER(name, arity, formula)                       DEFINE(name, arity, formula)
#define LANES(name, arity, lane)                            DEFINE_LANES(name, arity, lane)
#define EITHER(name, arity, float_formula, integer_formula) DEFINE(name, arity, integer_formula)
#define DIVIDE(name, arity, float_formula, lane)            DEFINE_LANES(name, arity, lane)
#endif
#include "engine/ops/language/primitives.def"

#ifdef CHAINS
#include "engine/cpu/pointwise/chain_loops.h"
#endif

#ifdef HALVES
#undef LOAD_ONE
#undef LOAD_OTHER
#endif
#undef BY_TWO1
#undef BY_TWO2
#undef NAME2
#undef NAME1
#undef NAME
#undef LOADED
#undef LOADED_PART
#undef STORED
#undef STORED_PART
#undef FIRST
#undef LOAD_WHOLE
#undef LOAD_PART
#undef LOOP1
#undef PASS2
#undef LOOP2
#undef LOOP3
#undef COMPARE_AT
#undef COMPARE_PASS
#undef DEFINE_COMPARE
#undef DEFINE_SELECT
#undef DEFINE
#undef DEFINE_LANES
#undef BYTES
#undef HALVES
#undef E
#undef T
#undef V
#undef M
#undef N
#undef P
#undef FLOATING
#undef CHAINS

/* fused_steps.h: the simple primitives as functions of vectors, for one element type.
 *
 * Included once per type by fused_kernels.c, with the words of formula_words.h. */
#define STEP1(type, name, formula)                                                                 \
    static inline type OF(name)(V a) {                                                             \
        return (type)(formula);                                                                    \
    }
#define STEP2(type, name, formula)                                                                 \
    static inline type OF(name)(V a, V b) {                                                        \
        return (type)(formula);                                                                    \
    }
#define STEP3(type, name, formula)                                                                 \
    static inline type OF(name)(V a, V b, V c) {                                                   \
        return (type)(formula);                                                                    \
    }
#define LOGIC1(name, formula)                                                                      \
    static inline M OF(mask_##name)(M a) {                                                         \
        return formula;                                                                            \
    }
#define LOGIC2(name, formula)                                                                      \
    static inline M OF(mask_##name)(M a, M b) {                                                    \
        return formula;                                                                            \
    }
#define ARITH(name, arity, formula) STEP##arity(V, step_##name, formula)
#define FLOAT(name, arity, formula) STEP##arity(V, step_##name, formula)
#define EITHER(name, arity, float_formula, integer_formula)                                        \
    STEP##arity(V, step_##name, float_formula)
#define COMPARE(name, arity, formula) STEP##arity(M, mask_##name, formula)
#define COPY(name, arity, formula)    STEP##arity(V, step_##name, formula)
#define PRIMITIVE(name, arity)
#define LOGIC(name, arity, formula)
#define SELECT(name, arity, formula)
#define MATH(name, arity, formula)
#define SPECIAL(name, arity, formula)
#define INTEGER(name, arity, formula)
#define LANES(name, arity, lane)
#define DIVIDE(name, arity, float_formula, lane)
#include "engine/ops/language/primitives.def"
STEP1(V, step_sqrt, SQRT(a)) /* as dear as a division, no more */
LOGIC2(logical_and, a &b)
LOGIC2(logical_or, a | b)
LOGIC2(logical_xor, a ^ b)
LOGIC1(logical_not, ~a)
#undef PRIMITIVE
#undef STEP1
#undef STEP2
#undef STEP3
#undef LOGIC1
#undef LOGIC2

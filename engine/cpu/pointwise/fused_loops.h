/* fused_loops.h: one loop for each program of fused.def, for one element type.
 *
 * Included once per type by fused_kernels.c, with the words of formula_words.h, NAME(n) for the
 * names of loops, E (the element in memory; T but for 16-bit floats, which are computed as float),
 * ELEMENTS and LOADED, LOADED_PART, STORED and STORED_PART. Of each row whole vectors first, then
 * one part vector. Where LOADED_ONE, LOADED_OTHER and STORED_BOTH are defined, elements go two
 * vectors at a time before. */

/* ---- steps ---- */

#define S1(name, to, a)            const V to = OF(step_##name)(a);
#define S2(name, to, a, b)         const V to = OF(step_##name)(a, b);
#define S3(name, to, a, b, c)      const V to = OF(step_##name)(a, b, c);
#define MASK1(name, to, a)         const M to = OF(mask_##name)(a);
#define MASK2(name, to, a, b)      const M to = OF(mask_##name)(a, b);
#define PICK(name, to, a, b, x, y) const V to = OF(pick_##name)(a, b, x, y);
#define CHOOSE(to, mask, x, y)     const V to = SEL(mask, x, y);
#define ONES(to, mask)             const V to = ONE(mask);

/* ---- loops ---- */

/* What a passage through a program's steps is for. */
#define A_VECTOR     0
#define PART         1
#define ONE_OF_TWO   2
#define OTHER_OF_TWO 3
#ifdef LOADED_ONE
#define BY_TWO(loads, steps, outs)                                                                 \
    for (; i + 2 * N <= n; i += 2 * N) {                                                           \
        {                                                                                          \
            enum { passage = ONE_OF_TWO, count = N };                                              \
            loads steps outs                                                                       \
        }                                                                                          \
        {                                                                                          \
            enum { passage = OTHER_OF_TWO, count = N };                                            \
            loads steps outs                                                                       \
        }                                                                                          \
    }
#else
#define BY_TWO(loads, steps, outs)
#define LOADED_ONE(p)              LOADED(p)
#define LOADED_OTHER(p)            LOADED(p)
#define STORED_BOTH(p, one, other) STORED(p, one)
#endif

/* A register that is one number for all elements. */
#define NUMBER(k) const V r##k = OF(set)(*(const T *)(const void *)runs[k].at);
/* One that mostly is elements. Where it is a number for a row, a vector is filled with that, from
 * which it can be loaded at once. */
#define BEGIN(k)                                                                                   \
    _Alignas(64) T number##k[N];                                                                   \
    const void *from##k = runs[k].at + row * runs[k].next;                                         \
    if (!runs[k].moves) {                                                                          \
        OF(store)(number##k, OF(set)(*(const T *)from##k));                                        \
        from##k = number##k;                                                                       \
    }
#define LOAD(k)                                                                                    \
    const E *p##k = (const E *)from##k + (i & (int64_t)runs[k].moves);                             \
    const V r##k = ELEMENTS(k, (passage == A_VECTOR     ? LOADED(p##k)                             \
                                : passage == PART       ? LOADED_PART(p##k, count)                 \
                                : passage == ONE_OF_TWO ? LOADED_ONE(p##k)                         \
                                                        : LOADED_OTHER(p##k)));
#define OUT(k, value)                                                                              \
    {                                                                                              \
        E *to = (E *)(void *)(runs[k].at + row * runs[k].next) + i;                                \
        if (passage == A_VECTOR)                                                                   \
            STORED(to, value);                                                                     \
        else if (passage == PART)                                                                  \
            STORED_PART(to, value, count);                                                         \
        else if (passage == ONE_OF_TWO)                                                            \
            one[k] = value;                                                                        \
        else                                                                                       \
            STORED_BOTH(to, one[k], value);                                                        \
    }

#define PROGRAM(digest, singles, begin, loads, steps, outs)                                        \
    static void NAME(digest)(int64_t rows, int64_t n, const td_run *restrict runs) {               \
        for (int64_t row = 0; row < rows; row++) {                                                 \
            begin V one[REGISTERS];                                                                \
            int64_t i = 0;                                                                         \
            BY_TWO(loads, steps, outs)                                                             \
            for (; i + N <= n; i += N) {                                                           \
                enum { passage = A_VECTOR, count = N };                                            \
                loads steps outs                                                                   \
            }                                                                                      \
            if (i < n) {                                                                           \
                enum { passage = PART };                                                           \
                const int64_t count = n - i;                                                       \
                loads steps outs                                                                   \
            }                                                                                      \
        }                                                                                          \
    }
#include "engine/cpu/pointwise/fused.def"

#undef S1
#undef S2
#undef S3
#undef MASK1
#undef MASK2
#undef PICK
#undef CHOOSE
#undef ONES
#undef NUMBER
#undef BEGIN
#undef LOAD
#undef A_VECTOR
#undef PART
#undef ONE_OF_TWO
#undef OTHER_OF_TWO
#undef BY_TWO
#undef OUT
#undef PROGRAM
#undef NAME
#undef E
#undef ELEMENTS
#undef LOADED
#undef LOADED_PART
#undef STORED
#undef STORED_PART
#undef LOADED_ONE
#undef LOADED_OTHER
#undef STORED_BOTH

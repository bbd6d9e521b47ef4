/* by_float.h: some loops for each floating type. Included by norm_kernels.c with LOOPS defined, the
 * header of the loops, and by softmax_kernels.c. Includes LOOPS with these defined, and undefines
 * all:
 *
 * - P: a name for the type.
 * - T, C: the type in memory; float or double, in which it is computed.
 * - V, N: a vector of C and its lanes. V is also the prefix of the vector's functions.
 * - LOAD(p), STORE(p, v): N elements at p as a V.
 * - LOAD_PART(p, n), STORE_PART(p, v, n): the first n of them; the rest are zero, or untouched.
 * - GET(x), PUT(x): an element as a C, and back.
 * - NAME(name), VEC(name): the name with P, with V before it.
 * - SPLAT(x): a V of x everywhere.
 */
#define CAT2(a, b) a##_##b
#define CAT1(a, b) CAT2(a, b)
#define NAME(name) CAT1(P, name)
#define VEC(name)  CAT1(V, name)
#define SPLAT(x)   ((V){0} + (C)(x))

/* Those that lie in memory as they are computed. */
#define LOAD(p)             VEC(load)(p)
#define STORE(p, v)         VEC(store)(p, v)
#define LOAD_PART(p, n)     VEC(load_part)(p, n)
#define STORE_PART(p, v, n) VEC(store_part)(p, v, n)
#define GET(x)              (x)
#define PUT(x)              (x)

#define P vf
#define T float
#define C float
#define V vf
#define N VF_N
#include LOOPS
#undef P
#undef T
#undef C
#undef V
#undef N

#define P vd
#define T double
#define C double
#define V vd
#define N VD_N
#include LOOPS
#undef P
#undef T
#undef C
#undef V
#undef N

#undef LOAD
#undef STORE
#undef LOAD_PART
#undef STORE_PART
#undef GET
#undef PUT

/* Those of 16 bits, which are computed as float. */
#define C float
#define V vf
#define N VF_N

#define P                   half
#define T                   td_half
#define LOAD(p)             vf_load_halves(p)
#define STORE(p, v)         vf_store_halves(p, v)
#define LOAD_PART(p, n)     vf_load_halves_part(p, n)
#define STORE_PART(p, v, n) vf_store_halves_part(p, v, n)
#define GET(x)              half_get(x)
#define PUT(x)              td_float_to_half(x)
#include LOOPS
#undef P
#undef T
#undef LOAD
#undef STORE
#undef LOAD_PART
#undef STORE_PART
#undef GET
#undef PUT

#define P                   bfloat
#define T                   td_bfloat
#define LOAD(p)             vf_load_bfloats(p)
#define STORE(p, v)         vf_store_bfloats(p, v)
#define LOAD_PART(p, n)     vf_load_bfloats_part(p, n)
#define STORE_PART(p, v, n) vf_store_bfloats_part(p, v, n)
#define GET(x)              td_bfloat_to_float(x)
#define PUT(x)              td_float_to_bfloat(x)
#include LOOPS
#undef P
#undef T
#undef LOAD
#undef STORE
#undef LOAD_PART
#undef STORE_PART
#undef GET
#undef PUT

#undef C
#undef V
#undef N

#undef SPLAT
#undef VEC
#undef NAME
#undef CAT1
#undef CAT2
#undef LOOPS

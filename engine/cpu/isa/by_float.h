/* by_float.h: some loops for each floating type. Included by norm_kernels.c with LOOPS defined, the
 * header of the loops, and by softmax_kernels.c. Includes LOOPS with these defined, and undefines
 * all: P                    a name for the type T, C                 the type in memory; float or
 * double, in which it is computed V, N                 vector of C and its lanes; V is also the
 * prefix of the vector's functions LOAD, STORE          (p) and (p, v): N elements at p as a V
 *   LOAD_PART, STORE_PART  (p, n) and (p, v, n): the first n of them, the rest zero or untouched
 *   GET, PUT             an element as a C and back
 *   NAME, VEC            (name): with P, with V before it
 *   SPLAT                (x): a V of x everywhere
 */
#define CAT2(a, b) a##_##b
#define CAT1(a, b) CAT2(a, b)
#define NAME(name) CAT1(P, name)
#define VEC(name)  CAT1(V, name)
#define SPLAT(x)   ((V){0} + (C)(x))

#define P                   vf
#define T                   float
#define C                   float
#define V                   vf
#define N                   VF_N
#define LOAD(p)             vf_load(p)
#define STORE(p, v)         vf_store(p, v)
#define LOAD_PART(p, n)     vf_load_part(p, n)
#define STORE_PART(p, v, n) vf_store_part(p, v, n)
#define GET(x)              (x)
#define PUT(x)              (x)
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

#define P                   vd
#define T                   double
#define C                   double
#define V                   vd
#define N                   VD_N
#define LOAD(p)             vd_load(p)
#define STORE(p, v)         vd_store(p, v)
#define LOAD_PART(p, n)     vd_load_part(p, n)
#define STORE_PART(p, v, n) vd_store_part(p, v, n)
#define GET(x)              (x)
#define PUT(x)              (x)
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

#define P                   half
#define T                   td_half
#define C                   float
#define V                   vf
#define N                   VF_N
#define LOAD(p)             vf_load_halves(p)
#define STORE(p, v)         vf_store_halves(p, v)
#define LOAD_PART(p, n)     vf_load_halves_part(p, n)
#define STORE_PART(p, v, n) vf_store_halves_part(p, v, n)
#define GET(x)              half_get(x)
#define PUT(x)              td_float_to_half(x)
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

#define P                   bfloat
#define T                   td_bfloat
#define C                   float
#define V                   vf
#define N                   VF_N
#define LOAD(p)             vf_load_bfloats(p)
#define STORE(p, v)         vf_store_bfloats(p, v)
#define LOAD_PART(p, n)     vf_load_bfloats_part(p, n)
#define STORE_PART(p, v, n) vf_store_bfloats_part(p, v, n)
#define GET(x)              td_bfloat_to_float(x)
#define PUT(x)              td_float_to_bfloat(x)
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

#undef SPLAT
#undef VEC
#undef NAME
#undef CAT1
#undef CAT2
#undef LOOPS

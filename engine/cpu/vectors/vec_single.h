/* vec_single.h: a + b * c of single numbers, fused exactly where the set's vectors fuse it. */
#ifndef TD_CPU_VECTORS_VEC_SINGLE_H
#define TD_CPU_VECTORS_VEC_SINGLE_H

/* a + b * c */
#if defined(TD_ISA_avx512) || defined(TD_ISA_avx2)
#define TD_ADD1_F(a, b, c) __builtin_fmaf(b, c, a)
#define TD_ADD1_D(a, b, c) __builtin_fma(b, c, a)
#else
#define TD_ADD1_F(a, b, c) ((a) + (b) * (c))
#define TD_ADD1_D(a, b, c) ((a) + (b) * (c))
#endif

#endif

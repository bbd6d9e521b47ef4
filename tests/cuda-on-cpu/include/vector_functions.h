/* vector_functions.h: make_float4 and its kin, and make_dim3. */
#ifndef TIDE_PLAYED_VECTOR_FUNCTIONS_H
#define TIDE_PLAYED_VECTOR_FUNCTIONS_H

#include "vector_types.h"

#define TD_PLAYED_MAKE(T, name)                                                                    \
    static inline __attribute__((unused)) name##1 make_##name##1(T x) {                            \
        return name##1 {x};                                                                        \
    }                                                                                              \
    static inline __attribute__((unused)) name##2 make_##name##2(T x, T y) {                       \
        return name##2 {x, y};                                                                     \
    }                                                                                              \
    static inline __attribute__((unused)) name##3 make_##name##3(T x, T y, T z) {                  \
        return name##3 {x, y, z};                                                                  \
    }                                                                                              \
    static inline __attribute__((unused)) name##4 make_##name##4(T x, T y, T z, T w) {             \
        return name##4 {x, y, z, w};                                                               \
    }

TD_PLAYED_MAKE(signed char, char)
TD_PLAYED_MAKE(unsigned char, uchar)
TD_PLAYED_MAKE(short, short)
TD_PLAYED_MAKE(unsigned short, ushort)
TD_PLAYED_MAKE(int, int)
TD_PLAYED_MAKE(unsigned int, uint)
TD_PLAYED_MAKE(float, float)
TD_PLAYED_MAKE(double, double)
TD_PLAYED_MAKE(long, long)
TD_PLAYED_MAKE(unsigned long, ulong)
TD_PLAYED_MAKE(long long, longlong)
TD_PLAYED_MAKE(unsigned long long, ulonglong)
#undef TD_PLAYED_MAKE

#endif

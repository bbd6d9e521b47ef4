/* vector_types.h: the small vectors of CUDA, laid out and aligned as the toolkit does. */
#ifndef TIDE_PLAYED_VECTOR_TYPES_H
#define TIDE_PLAYED_VECTOR_TYPES_H

#define TD_PLAYED_VECTORS(T, name, a2, a4)                                                         \
    typedef struct name##1 {                                                                       \
        T x;                                                                                       \
    }                                                                                              \
    name##1;                                                                                       \
    typedef struct __attribute__((aligned(a2))) name##2 {                                          \
        T x, y;                                                                                    \
    }                                                                                              \
    name##2;                                                                                       \
    typedef struct name##3 {                                                                       \
        T x, y, z;                                                                                 \
    }                                                                                              \
    name##3;                                                                                       \
    typedef struct __attribute__((aligned(a4))) name##4 {                                          \
        T x, y, z, w;                                                                              \
    }                                                                                              \
    name##4;

TD_PLAYED_VECTORS(signed char, char, 2, 4)
TD_PLAYED_VECTORS(unsigned char, uchar, 2, 4)
TD_PLAYED_VECTORS(short, short, 4, 8)
TD_PLAYED_VECTORS(unsigned short, ushort, 4, 8)
TD_PLAYED_VECTORS(int, int, 8, 16)
TD_PLAYED_VECTORS(unsigned int, uint, 8, 16)
TD_PLAYED_VECTORS(float, float, 8, 16)
TD_PLAYED_VECTORS(double, double, 16, 16)
TD_PLAYED_VECTORS(long, long, 16, 16)
TD_PLAYED_VECTORS(unsigned long, ulong, 16, 16)
TD_PLAYED_VECTORS(long long, longlong, 16, 16)
TD_PLAYED_VECTORS(unsigned long long, ulonglong, 16, 16)
#undef TD_PLAYED_VECTORS

typedef struct dim3 {
    unsigned int x, y, z;
#ifdef __cplusplus
    constexpr dim3(unsigned int vx = 1, unsigned int vy = 1, unsigned int vz = 1)
        : x(vx), y(vy), z(vz) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
    constexpr operator uint3() const {
        return uint3{x, y, z};
    }
#endif
} dim3;

#endif

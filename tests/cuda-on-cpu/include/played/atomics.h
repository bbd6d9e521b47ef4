/* atomics.h: CUDA's atomic functions by those of the compiler: blocks run on several threads. */
#ifndef TIDE_PLAYED_ATOMICS_H
#define TIDE_PLAYED_ATOMICS_H

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace td_played {

template <size_t size> struct bits_of;
template <> struct bits_of<2> { typedef uint16_t type; };
template <> struct bits_of<4> { typedef uint32_t type; };
template <> struct bits_of<8> { typedef uint64_t type; };

/* *p = next(*p), in one step for others; the value before. */
template <typename T, typename F> static inline T atomically(T *p, F next) {
    typedef typename bits_of<sizeof(T)>::type bits;
    bits *at = reinterpret_cast<bits *>(p);
    bits seen = __atomic_load_n(at, __ATOMIC_RELAXED), wanted;
    for (;;) {
        T old, value;
        memcpy(static_cast<void *>(&old), &seen, sizeof old);
        value = next(old);
        memcpy(&wanted, static_cast<const void *>(&value), sizeof wanted);
        if (__atomic_compare_exchange_n(at, &seen, wanted, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
            return old;
    }
}

/* Unsigned sums wrap around; signed ones do on a device, too. */
template <typename T> static inline T plus(T a, T b) {
    if constexpr (std::is_integral<T>::value)
        return (T)((std::make_unsigned_t<T>)a + (std::make_unsigned_t<T>)b);
    else
        return a + b;
}

} // namespace td_played

#define TD_PLAYED_ATOMIC(name, T, value)                                                           \
    static inline T name(T *p, T v) {                                                              \
        return td_played::atomically(p, [v](T old) -> T { return value; });                        \
    }
#define TD_PLAYED_ATOMIC_INTEGER(T)                                                                \
    TD_PLAYED_ATOMIC(atomicAdd, T, td_played::plus(old, v))                                        \
    TD_PLAYED_ATOMIC(atomicSub, T, td_played::plus(td_played::plus(old, (T)~v), (T)1))             \
    TD_PLAYED_ATOMIC(atomicMin, T, v < old ? v : old)                                              \
    TD_PLAYED_ATOMIC(atomicMax, T, v > old ? v : old)                                              \
    TD_PLAYED_ATOMIC(atomicAnd, T, old &v)                                                         \
    TD_PLAYED_ATOMIC(atomicOr, T, old | v)                                                         \
    TD_PLAYED_ATOMIC(atomicXor, T, old ^ v)                                                        \
    TD_PLAYED_ATOMIC(atomicExch, T, (void(old), v))                                                \
    static inline T atomicCAS(T *p, T compare, T v) {                                              \
        T seen = compare;                                                                          \
        __atomic_compare_exchange_n(p, &seen, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);       \
        return seen;                                                                               \
    }
TD_PLAYED_ATOMIC_INTEGER(int)
TD_PLAYED_ATOMIC_INTEGER(unsigned)
TD_PLAYED_ATOMIC_INTEGER(long long)
TD_PLAYED_ATOMIC_INTEGER(unsigned long long)
TD_PLAYED_ATOMIC(atomicAdd, float, old + v)
TD_PLAYED_ATOMIC(atomicAdd, double, old + v)
TD_PLAYED_ATOMIC(atomicExch, float, (void(old), v))
TD_PLAYED_ATOMIC(atomicInc, unsigned, old >= v ? 0 : old + 1)
TD_PLAYED_ATOMIC(atomicDec, unsigned, old == 0 || old > v ? v : old - 1)
#undef TD_PLAYED_ATOMIC_INTEGER

static inline unsigned short atomicCAS(unsigned short *p, unsigned short compare,
                                       unsigned short v) {
    unsigned short seen = compare;
    __atomic_compare_exchange_n(p, &seen, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return seen;
}

#endif

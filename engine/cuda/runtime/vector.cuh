/* vector.cuh: several neighbouring elements read or written by one access, and unrolled loops.
 */
#ifndef TD_CUDA_RUNTIME_VECTOR_CUH
#define TD_CUDA_RUNTIME_VECTOR_CUH

#ifndef __CUDACC_RTC__
#include <cuda_runtime.h>
#include <string.h>
#endif

#ifdef __CUDACC__
#define TD_UNROLL    _Pragma("unroll")
#define TD_NO_UNROLL _Pragma("unroll 1")
#else
#define TD_UNROLL
#define TD_NO_UNROLL
#endif

/* Aligned as one access wants it, which takes 16 bytes at most. */
template <typename T, int COUNT = 16 / sizeof(T)>
struct alignas(sizeof(T) * COUNT < 16 ? sizeof(T) * COUNT : 16) td_pack {
    enum { N = COUNT };
    T e[COUNT];
};

/* Its bytes. The compiler cuts accesses of more than four elements, so that those of small elements
 * go by words. */
template <int BYTES> struct alignas(BYTES < 16 ? BYTES : 16) td_words {
    unsigned int w[BYTES / 4];
};

template <typename T, int N> __device__ static inline td_pack<T, N> td_read_pack(const T *p) {
    td_pack<T, N> pack;
    if constexpr (N > 4 && sizeof pack >= 4) {
        td_words<sizeof pack> words = *(const td_words<sizeof pack> *)p;
        memcpy(&pack, &words, sizeof pack);
    } else {
        pack = *(const td_pack<T, N> *)p;
    }
    return pack;
}
template <typename T, int N>
__device__ static inline void td_write_pack(T *p, const td_pack<T, N> &pack) {
    if constexpr (sizeof pack == 16) {
        uint4 words;
        memcpy(&words, &pack, sizeof pack);
        *(uint4 *)p = words;
    } else if constexpr (N > 4 && sizeof pack >= 4) {
        td_words<sizeof pack> words;
        memcpy(&words, &pack, sizeof pack);
        *(td_words<sizeof pack> *)p = words;
    } else {
        *(td_pack<T, N> *)p = pack;
    }
}

/* May vectors be read, or written, from here on? */
template <typename T, int N> __device__ static inline bool td_is_aligned(const T *p) {
    return (unsigned long long)p % alignof(td_pack<T, N>) == 0;
}

#endif

/* compiled.cuh: what programs that are compiled at run time (source.c) are written with. */
#ifndef TD_CUDA_POINTWISE_COMPILED_CUH
#define TD_CUDA_POINTWISE_COMPILED_CUH

/* A number as one of a dtype, rounded to what that holds. */
template <typename T, typename V> __device__ static inline td_wide<T> td_as(V v) {
    return td_widen(td_narrow<T>::of(v));
}

/* A number as the host wrote it into a word. */
union td_word {
    long long i;
    double d;
    float f;
};
template <typename W> __device__ static inline W td_number(long long word);
template <> __device__ inline long long td_number(long long word) {
    return word;
}
template <> __device__ inline double td_number(long long word) {
    td_word w;
    w.i = word;
    return w.d;
}
template <> __device__ inline float td_number(long long word) {
    td_word w;
    w.i = word;
    return w.f;
}

/* ---- what kernels are launched with ---- */

template <int N> struct td_values {
    long long v[N];
};

template <int LISTS, int WORDS> struct td_lists {
    int n, stride;
    unsigned int tiles[LISTS + 1];
    long long words[WORDS];

    /* The list of a tile. */
    __device__ int find(unsigned int tile) const {
        int low = 0, high = n - 1;
        while (low < high) {
            int middle = (low + high + 1) / 2;
            if (tiles[middle] <= tile)
                low = middle;
            else
                high = middle - 1;
        }
        return low;
    }
};

#endif

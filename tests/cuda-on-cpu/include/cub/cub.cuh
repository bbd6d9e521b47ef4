/* cub.cuh: CUB's device-wide functions and a block's and a warp's, by plain loops.
 *
 * A device-wide function is called twice: without temporary storage it says how much it needs, with
 * it the work is queued. The storage is written over when the work runs, so that what shares it
 * shows. Keys of sorts are unsigned integers here. */
#ifndef TIDE_PLAYED_CUB_CUH
#define TIDE_PLAYED_CUB_CUH

#include <algorithm>
#include <cstring>
#include <iterator>
#include <numeric>
#include <type_traits>
#include <vector>

#include "../cuda_runtime.h"

namespace cub {

template <typename T> struct DoubleBuffer {
    T *d_buffers[2];
    int selector;
    DoubleBuffer(T *current, T *other) : d_buffers{current, other}, selector(0) {}
    T *Current() { return d_buffers[selector]; }
    T *Alternate() { return d_buffers[selector ^ 1]; }
};

namespace played {

/* The two calls: `needs` bytes of storage, then the work. */
template <typename F>
cudaError_t call(void *storage, size_t &bytes, size_t needs, const char *name, cudaStream_t stream,
                 F work) {
    needs = needs / 256 * 256 + 256;
    if (!storage) {
        bytes = needs;
        return cudaSuccess;
    }
    if (bytes < needs)
        return cudaErrorInvalidValue;
    return td_played::call(name, stream, [=]() mutable {
        memset(storage, 0xEE, needs);
        work();
    });
}

/* The order of [from, to) by bits [begin, end) of the keys, stable. */
template <typename K>
std::vector<size_t> order(const K *keys, size_t from, size_t to, int begin, int end, bool down) {
    static_assert(std::is_unsigned<K>::value, "keys are unsigned here");
    std::vector<size_t> places(to - from);
    std::iota(places.begin(), places.end(), from);
    int width = end - begin;
    K mask = width >= (int)sizeof(K) * 8 ? (K)~(K)0 : (K)((((K)1) << width) - 1);
    auto digit = [=](size_t k) { return (K)((K)(keys[k] >> begin) & mask); };
    if (width > 0)
        std::stable_sort(places.begin(), places.end(), [&](size_t a, size_t b) {
            return down ? digit(a) > digit(b) : digit(a) < digit(b);
        });
    return places;
}

struct none {};

template <typename K, typename V>
void sort(const K *in, K *out, const V *values, V *values_out, size_t from, size_t to, int begin,
          int end, bool down) {
    std::vector<size_t> places = order(in, from, to, begin, end, down);
    for (size_t k = 0; k < places.size(); k++) {
        out[from + k] = in[places[k]];
        if constexpr (!std::is_same<V, none>::value)
            values_out[from + k] = values[places[k]];
    }
}

template <typename K, typename V, typename N>
cudaError_t sort_all(void *storage, size_t &bytes, const K *in, K *out, const V *values,
                     V *values_out, N n, int begin, int end, bool down, cudaStream_t stream) {
    return call(storage, bytes, (size_t)n * sizeof(K), "cub::DeviceRadixSort", stream, [=] {
        sort(in, out, values, values_out, 0, (size_t)n, begin, end, down);
    });
}

template <typename K, typename V, typename N, typename B, typename E>
cudaError_t sort_segments(void *storage, size_t &bytes, const K *in, K *out, const V *values,
                          V *values_out, N n, N segments, B begins, E ends, int begin, int end,
                          bool down, cudaStream_t stream) {
    return call(storage, bytes, (size_t)n * sizeof(K), "cub::DeviceSegmentedRadixSort", stream, [=] {
        for (N s = 0; s < segments; s++)
            if (begins[s] < ends[s])
                sort(in, out, values, values_out, (size_t)begins[s], (size_t)ends[s], begin, end,
                     down);
    });
}

template <typename Op, typename A, typename B>
using sum_of = std::decay_t<std::invoke_result_t<Op, A, B>>;

template <typename I> using value_of = typename std::iterator_traits<I>::value_type;

struct plus {
    template <typename A, typename B> auto operator()(const A &a, const B &b) const { return a + b; }
};
struct least {
    template <typename T> T operator()(const T &a, const T &b) const { return b < a ? b : a; }
};
struct most {
    template <typename T> T operator()(const T &a, const T &b) const { return a < b ? b : a; }
};

template <typename I, typename O, typename N, typename Op>
void scan_from_first(I in, O out, N n, Op op) {
    using T = sum_of<Op, value_of<I>, value_of<I>>;
    if (n <= 0)
        return;
    T sum = in[0];
    out[0] = sum;
    for (N k = 1; k < n; k++)
        out[k] = sum = op(sum, in[k]);
}

template <typename I, typename O, typename N, typename Op, typename T>
void scan_before(I in, O out, N n, Op op, T first) {
    sum_of<Op, T, value_of<I>> sum = first;
    for (N k = 0; k < n; k++) {
        auto next = op(sum, in[k]); /* in and out may be the same */
        out[k] = sum;
        sum = next;
    }
}

} // namespace played

struct DeviceRadixSort {
    template <typename K, typename V, typename N>
    static cudaError_t SortPairs(void *storage, size_t &bytes, const K *in, K *out, const V *values,
                                 V *values_out, N n, int begin = 0, int end = sizeof(K) * 8,
                                 cudaStream_t stream = 0) {
        return played::sort_all(storage, bytes, in, out, values, values_out, n, begin, end, false,
                                stream);
    }
    template <typename K, typename V, typename N>
    static cudaError_t SortPairsDescending(void *storage, size_t &bytes, const K *in, K *out,
                                           const V *values, V *values_out, N n, int begin = 0,
                                           int end = sizeof(K) * 8, cudaStream_t stream = 0) {
        return played::sort_all(storage, bytes, in, out, values, values_out, n, begin, end, true,
                                stream);
    }
    template <typename K, typename N>
    static cudaError_t SortKeys(void *storage, size_t &bytes, const K *in, K *out, N n,
                                int begin = 0, int end = sizeof(K) * 8, cudaStream_t stream = 0) {
        const played::none *no = nullptr;
        return played::sort_all(storage, bytes, in, out, no, (played::none *)nullptr, n, begin, end,
                                false, stream);
    }
    template <typename K, typename N>
    static cudaError_t SortKeysDescending(void *storage, size_t &bytes, const K *in, K *out, N n,
                                          int begin = 0, int end = sizeof(K) * 8,
                                          cudaStream_t stream = 0) {
        const played::none *no = nullptr;
        return played::sort_all(storage, bytes, in, out, no, (played::none *)nullptr, n, begin, end,
                                true, stream);
    }
    template <typename K, typename V, typename N>
    static cudaError_t SortPairs(void *storage, size_t &bytes, DoubleBuffer<K> &keys,
                                 DoubleBuffer<V> &values, N n, int begin = 0,
                                 int end = sizeof(K) * 8, cudaStream_t stream = 0) {
        cudaError_t error = SortPairs(storage, bytes, keys.Current(), keys.Alternate(),
                                      values.Current(), values.Alternate(), n, begin, end, stream);
        if (storage && !error)
            keys.selector ^= 1, values.selector ^= 1;
        return error;
    }
    template <typename K, typename N>
    static cudaError_t SortKeys(void *storage, size_t &bytes, DoubleBuffer<K> &keys, N n,
                                int begin = 0, int end = sizeof(K) * 8, cudaStream_t stream = 0) {
        cudaError_t error = SortKeys(storage, bytes, (const K *)keys.Current(), keys.Alternate(), n,
                                     begin, end, stream);
        if (storage && !error)
            keys.selector ^= 1;
        return error;
    }
};

struct DeviceSegmentedRadixSort {
    template <typename K, typename V, typename N, typename B, typename E>
    static cudaError_t SortPairs(void *storage, size_t &bytes, const K *in, K *out, const V *values,
                                 V *values_out, N n, N segments, B begins, E ends, int begin = 0,
                                 int end = sizeof(K) * 8, cudaStream_t stream = 0) {
        return played::sort_segments(storage, bytes, in, out, values, values_out, n, segments,
                                     begins, ends, begin, end, false, stream);
    }
    template <typename K, typename V, typename N, typename B, typename E>
    static cudaError_t SortPairsDescending(void *storage, size_t &bytes, const K *in, K *out,
                                           const V *values, V *values_out, N n, N segments,
                                           B begins, E ends, int begin = 0,
                                           int end = sizeof(K) * 8, cudaStream_t stream = 0) {
        return played::sort_segments(storage, bytes, in, out, values, values_out, n, segments,
                                     begins, ends, begin, end, true, stream);
    }
    template <typename K, typename N, typename B, typename E>
    static cudaError_t SortKeys(void *storage, size_t &bytes, const K *in, K *out, N n, N segments,
                                B begins, E ends, int begin = 0, int end = sizeof(K) * 8,
                                cudaStream_t stream = 0) {
        const played::none *no = nullptr;
        return played::sort_segments(storage, bytes, in, out, no, (played::none *)nullptr, n,
                                     segments, begins, ends, begin, end, false, stream);
    }
};

struct DeviceScan {
    template <typename I, typename O, typename Op, typename N>
    static cudaError_t InclusiveScan(void *storage, size_t &bytes, I in, O out, Op op, N n,
                                     cudaStream_t stream = 0) {
        return played::call(storage, bytes, 256, "cub::DeviceScan", stream,
                            [=] { played::scan_from_first(in, out, n, op); });
    }
    template <typename I, typename O, typename Op, typename T, typename N>
    static cudaError_t ExclusiveScan(void *storage, size_t &bytes, I in, O out, Op op, T first, N n,
                                     cudaStream_t stream = 0) {
        return played::call(storage, bytes, 256, "cub::DeviceScan", stream,
                            [=] { played::scan_before(in, out, n, op, first); });
    }
    template <typename I, typename O, typename N>
    static cudaError_t InclusiveSum(void *storage, size_t &bytes, I in, O out, N n,
                                    cudaStream_t stream = 0) {
        return InclusiveScan(storage, bytes, in, out, played::plus(), n, stream);
    }
    template <typename I, typename O, typename N>
    static cudaError_t ExclusiveSum(void *storage, size_t &bytes, I in, O out, N n,
                                    cudaStream_t stream = 0) {
        return ExclusiveScan(storage, bytes, in, out, played::plus(), played::value_of<I>(), n,
                             stream);
    }
};

struct DeviceReduce {
    template <typename I, typename O, typename N, typename Op, typename T>
    static cudaError_t Reduce(void *storage, size_t &bytes, I in, O out, N n, Op op, T first,
                              cudaStream_t stream = 0) {
        return played::call(storage, bytes, 256, "cub::DeviceReduce", stream, [=] {
            played::sum_of<Op, T, played::value_of<I>> sum = first;
            for (N k = 0; k < n; k++)
                sum = op(sum, in[k]);
            *out = sum;
        });
    }
    template <typename I, typename O, typename N>
    static cudaError_t Sum(void *storage, size_t &bytes, I in, O out, N n, cudaStream_t stream = 0) {
        return Reduce(storage, bytes, in, out, n, played::plus(), played::value_of<O>(), stream);
    }
    template <typename I, typename O, typename N>
    static cudaError_t Min(void *storage, size_t &bytes, I in, O out, N n, cudaStream_t stream = 0) {
        using T = played::value_of<I>;
        return Reduce(storage, bytes, in, out, n, played::least(), std::numeric_limits<T>::max(),
                      stream);
    }
    template <typename I, typename O, typename N>
    static cudaError_t Max(void *storage, size_t &bytes, I in, O out, N n, cudaStream_t stream = 0) {
        using T = played::value_of<I>;
        return Reduce(storage, bytes, in, out, n, played::most(), std::numeric_limits<T>::lowest(),
                      stream);
    }
};

struct DeviceSelect {
    template <typename I, typename F, typename O, typename C, typename N>
    static cudaError_t Flagged(void *storage, size_t &bytes, I in, F flags, O out, C count, N n,
                               cudaStream_t stream = 0) {
        return played::call(storage, bytes, 256, "cub::DeviceSelect", stream, [=] {
            N kept = 0;
            for (N k = 0; k < n; k++)
                if (flags[k])
                    out[kept++] = in[k];
            *count = (std::decay_t<decltype(*count)>)kept;
        });
    }
    template <typename I, typename O, typename C, typename N, typename P>
    static cudaError_t If(void *storage, size_t &bytes, I in, O out, C count, N n, P keep,
                          cudaStream_t stream = 0) {
        return played::call(storage, bytes, 256, "cub::DeviceSelect", stream, [=]() mutable {
            N kept = 0;
            for (N k = 0; k < n; k++)
                if (keep(in[k]))
                    out[kept++] = in[k];
            *count = (std::decay_t<decltype(*count)>)kept;
        });
    }
    template <typename I, typename O, typename C, typename N>
    static cudaError_t Unique(void *storage, size_t &bytes, I in, O out, C count, N n,
                              cudaStream_t stream = 0) {
        return played::call(storage, bytes, 256, "cub::DeviceSelect", stream, [=] {
            N kept = 0;
            for (N k = 0; k < n; k++)
                if (k == 0 || !(in[k] == in[k - 1]))
                    out[kept++] = in[k];
            *count = (std::decay_t<decltype(*count)>)kept;
        });
    }
};

struct DeviceRunLengthEncode {
    template <typename I, typename U, typename L, typename C, typename N>
    static cudaError_t Encode(void *storage, size_t &bytes, I in, U unique, L lengths, C count, N n,
                              cudaStream_t stream = 0) {
        return played::call(storage, bytes, 256, "cub::DeviceRunLengthEncode", stream, [=] {
            N runs = 0;
            for (N k = 0; k < n; k++)
                if (k > 0 && in[k] == in[k - 1]) {
                    lengths[runs - 1]++;
                } else {
                    unique[runs] = in[k];
                    lengths[runs++] = 1;
                }
            *count = (std::decay_t<decltype(*count)>)runs;
        });
    }
};

/* ---- within a block or a warp ---- */

enum BlockReduceAlgorithm {
    BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY,
    BLOCK_REDUCE_RAKING,
    BLOCK_REDUCE_WARP_REDUCTIONS
};
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };

namespace played {

static inline int thread_number() {
    return (int)(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
}

template <typename T, int n> struct room {
    alignas(T) unsigned char bytes[n * sizeof(T)];
    T *at(int k) { return reinterpret_cast<T *>(bytes) + k; }
};

} // namespace played

/* The result is the first thread's alone, as it is a device's. */
template <typename T, int X, BlockReduceAlgorithm = BLOCK_REDUCE_WARP_REDUCTIONS, int Y = 1, int Z = 1>
class BlockReduce {
  public:
    typedef played::room<T, X * Y * Z> TempStorage;
    explicit BlockReduce(TempStorage &room) : room_(room) {}
    template <typename Op> T Reduce(T value, Op op, int valid = X * Y * Z) {
        int t = played::thread_number();
        new (room_.at(t)) T(value);
        __syncthreads();
        for (int k = 1; t == 0 && k < valid; k++)
            value = op(value, *room_.at(k));
        return value;
    }
    T Sum(T value, int valid = X * Y * Z) { return Reduce(value, played::plus(), valid); }

  private:
    TempStorage &room_;
};

template <typename T, int X, BlockScanAlgorithm = BLOCK_SCAN_RAKING, int Y = 1, int Z = 1>
class BlockScan {
  public:
    typedef played::room<T, X * Y * Z> TempStorage;
    explicit BlockScan(TempStorage &room) : room_(room) {}
    template <typename Op> void InclusiveScan(T value, T &result, Op op) {
        T all;
        InclusiveScan(value, result, op, all);
    }
    template <typename Op> void InclusiveScan(T value, T &result, Op op, T &all) {
        int t = share(value);
        T sum = *room_.at(0);
        for (int k = 1; k < X * Y * Z; k++) {
            if (k == t + 1)
                result = sum;
            sum = op(sum, *room_.at(k));
        }
        if (t == X * Y * Z - 1)
            result = sum;
        all = sum;
    }
    template <typename Op> void ExclusiveScan(T value, T &result, T first, Op op) {
        int t = share(value);
        result = first;
        for (int k = 0; k < t; k++)
            result = op(result, *room_.at(k));
    }
    void InclusiveSum(T value, T &result) { InclusiveScan(value, result, played::plus()); }
    void InclusiveSum(T value, T &result, T &all) {
        InclusiveScan(value, result, played::plus(), all);
    }
    void ExclusiveSum(T value, T &result) { ExclusiveScan(value, result, T(), played::plus()); }
    void ExclusiveSum(T value, T &result, T &all) {
        ExclusiveSum(value, result);
        all = *room_.at(0);
        for (int k = 1; k < X * Y * Z; k++)
            all = all + *room_.at(k);
    }

  private:
    int share(T value) {
        int t = played::thread_number();
        new (room_.at(t)) T(value);
        __syncthreads();
        return t;
    }
    TempStorage &room_;
};

/* The result is the first lane's alone. */
template <typename T, int lanes = 32> class WarpReduce {
  public:
    typedef played::room<T, lanes> TempStorage;
    explicit WarpReduce(TempStorage &room) : room_(room) {}
    template <typename Op> T Reduce(T value, Op op, int valid = lanes) {
        int lane = played::thread_number() % lanes;
        new (room_.at(lane)) T(value);
        __syncwarp(__activemask());
        for (int k = 1; lane == 0 && k < valid; k++)
            value = op(value, *room_.at(k));
        return value;
    }
    T Sum(T value, int valid = lanes) { return Reduce(value, played::plus(), valid); }

  private:
    TempStorage &room_;
};

} // namespace cub

#endif

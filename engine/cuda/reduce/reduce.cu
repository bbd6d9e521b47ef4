/* reduce.cu: sums, products, extremes, norms and moments over dims.
 *
 * Floats are gathered up in double, integers in int64. Squares and deviations have results of more
 * than one number: squares of float64 are summed in three ranges (Blue, 1978), so that none is
 * lost; deviations come with their own sum, which puts right what the rounding of their center
 * leaves. Powers of float64 are those of elements over the power of two below the largest. */
#include "engine/cuda/reduce/reduction.cuh"
#include "engine/cuda/runtime/elements.cuh"
#include "engine/cuda/runtime/math.cuh"
#include "engine/cuda/runtime/squares.cuh"

/* ---- elements ---- */

/* Elements of one dtype, and such as are converted first; both become a double or an int64, or what
 * else holds them. */
template <typename E, typename Number = td_sum<E>> struct td_plain {
    typedef E T;
    typedef Number N;
    enum { VECTOR = 1 };
    __device__ static E load(const td_cu_fold &f, long long at) { return ((const E *)f.x)[at]; }
    __device__ static N number(const td_cu_fold &, E v) { return (N)td_widen(v); }
};

__device__ static inline void td_number_of(td_slot s, int dtype, double *out) {
    *out = td_slot_kind_of(dtype) == TD_SLOT_DOUBLE ? s.d : (double)s.f;
}
__device__ static inline void td_number_of(td_slot s, int, long long *out) {
    *out = s.i;
}

template <typename Number> struct td_converted {
    typedef td_slot T;
    typedef Number N;
    enum { VECTOR = 0 };
    __device__ static td_slot load(const td_cu_fold &f, long long at) {
        td_slot s = td_load_slot(f.from, (const char *)f.x + at * td_element_size(f.from));
        return td_convert_slot(f.compute, f.from, s);
    }
    __device__ static N number(const td_cu_fold &f, td_slot s) {
        N n;
        td_number_of(s, f.compute, &n);
        return n;
    }
};

/* ---- finishes ---- */

/* Long, and unrolled many times where it is not a function of its own. */
__device__ static __attribute__((noinline)) double td_power(double v, double power) {
    return pow(v, power);
}

__device__ static inline void td_store_number(int dtype, void *out, long long at, double v) {
    td_store_slot(dtype, (char *)out + at * td_element_size(dtype), td_slot_of(dtype, v));
}
__device__ static inline void td_store_number(int dtype, void *out, long long at, long long v) {
    td_store_slot(dtype, (char *)out + at * td_element_size(dtype), td_slot_of(dtype, v));
}

__device__ static inline double td_finish_number(const td_cu_fold &f, double v, long long count) {
    switch (f.finish) {
    case TD_CU_DIVIDE:
        return v / f.param;
    case TD_CU_POWER:
        return f.param == 0.5 ? sqrt(v) : td_power(v, f.param);
    case TD_CU_ALL:
        return v == (double)count;
    case TD_CU_NOT_0:
        return v != 0;
    case TD_CU_STD:
        return sqrt(v / f.param);
    }
    return v; /* as it is */
}
__device__ static inline long long td_finish_number(const td_cu_fold &f, long long v,
                                                    long long count) {
    return f.finish == TD_CU_ALL ? v == count : f.finish == TD_CU_NOT_0 ? v != 0 : v;
}

/* ---- one number for each output ---- */

__device__ static inline double td_start_of(int fold, double) {
    return fold == TD_CU_PROD                           ? 1
           : fold == TD_CU_MAX                          ? -(double)INFINITY
           : fold == TD_CU_MIN || fold == TD_CU_ABS_MIN ? (double)INFINITY
                                                        : 0;
}
__device__ static inline float td_start_of(int fold, float) {
    return (float)td_start_of(fold, 0.0);
}
__device__ static inline long long td_start_of(int fold, long long) {
    const long long most = 0x7fffffffffffffffLL;
    return fold == TD_CU_PROD ? 1 : fold == TD_CU_MAX ? -most - 1 : fold == TD_CU_MIN ? most : 0;
}

/* The fold is asked for once for several elements. */
#define TD_EACH(statement)                                                                         \
    TD_UNROLL                                                                                      \
    for (int e = 0; e < N; e++)                                                                    \
        statement;                                                                                 \
    break;

/* What is folded of elements. */
template <int N, int OUTPUTS>
__device__ static inline void td_map(const td_cu_fold &f, double (&v)[N],
                                     const double (&center)[OUTPUTS]) {
    switch (f.fold) { /* sums, products and extremes: as they are */
    case TD_CU_NANSUM:
        TD_EACH(v[e] = v[e] == v[e] ? v[e] : 0)
    case TD_CU_ABS_SUM:
    case TD_CU_ABS_MAX:
    case TD_CU_ABS_MIN:
        TD_EACH(v[e] = fabs(v[e]))
    case TD_CU_SQUARE_SUM:
        TD_EACH(v[e] *= v[e])
    case TD_CU_NONZERO:
        TD_EACH(v[e] = v[e] != 0)
    case TD_CU_POWER_SUM:
        TD_EACH(v[e] = td_power(fabs(v[e]) * center[e % OUTPUTS], f.power))
    case TD_CU_MEAN:
        TD_EACH(v[e] -= center[e % OUTPUTS])
    }
}
template <int N, int OUTPUTS>
__device__ static inline void td_map(const td_cu_fold &f, long long (&v)[N],
                                     const double (&)[OUTPUTS]) {
    switch (f.fold) {
    case TD_CU_NONZERO:
        TD_EACH(v[e] = v[e] != 0)
    }
}

template <int N, int CHAINS, typename W>
__device__ static inline void td_join(int fold, W (&acc)[CHAINS], const W (&v)[N]) {
    switch (fold) {
    case TD_CU_PROD:
        TD_EACH(acc[e % CHAINS] *= v[e])
    case TD_CU_MAX:
    case TD_CU_ABS_MAX:
        TD_EACH(acc[e % CHAINS] = td_cu_max(acc[e % CHAINS], v[e]))
    case TD_CU_MIN:
    case TD_CU_ABS_MIN:
        TD_EACH(acc[e % CHAINS] = td_cu_min(acc[e % CHAINS], v[e]))
    case TD_CU_SUM:
    case TD_CU_NANSUM:
    case TD_CU_ABS_SUM:
    case TD_CU_SQUARE_SUM:
    case TD_CU_NONZERO:
    case TD_CU_POWER_SUM:
    case TD_CU_MEAN:
        TD_EACH(acc[e % CHAINS] += v[e])
    }
}

/* What makes the power of two below `largest` 1, where powers of that are out of range or near it;
 * else 1. */
__device__ static inline double td_scale_of(double largest, double power) {
    int exponent = largest > 0 && largest <= 0x1.fffffffffffffp1023 ? ilogb(largest) : 0;
    exponent = exponent < -1000 ? -1000 : exponent;
    return fabs(exponent * power) > 900 ? ldexp(1, -exponent) : 1;
}

/* Plain sums and extremes of elements have kernels of their own; the latter stay what they are. */
enum { TD_SUMS, TD_EXTREMES, TD_OTHERS };

template <typename L, int KIND> struct td_number_fold : td_cu_fold {
    typedef typename L::T T;
    typedef T V;
    typedef typename L::N A;
    typedef double C; /* MEAN: the first element; POWER_SUM: the factor of elements */
    enum { VECTOR = L::VECTOR && KIND == TD_OTHERS ? 2 : (int)L::VECTOR };

    __device__ A start() const { return KIND == TD_SUMS ? A(0) : td_start_of(this->fold, A(0)); }
    __device__ C context(const td_output_place &at) const {
        if (KIND != TD_OTHERS || (this->fold != TD_CU_MEAN && this->fold != TD_CU_POWER_SUM))
            return 0;
        if (this->fold == TD_CU_POWER_SUM)
            return centers ? centers[at.number] : 1;
        return (double)L::number(*this, load(0, at.offset, 0));
    }
    __device__ V load(C, long long offset, long long) const { return L::load(*this, offset); }
    template <int CHAINS, int OUTPUTS, int N>
    __device__ void take_pack(A (&acc)[CHAINS], const C (&c)[OUTPUTS], const V (&v)[N]) const {
        A n[N];
        TD_UNROLL
        for (int e = 0; e < N; e++)
            n[e] = L::number(*this, v[e]);
        td_map(*this, n, c);
        td_join(this->fold, acc, n);
    }
    __device__ void take(A &acc, C center, V v, long long) const {
        A n[1] = {L::number(*this, v)};
        C c[1] = {center};
        if constexpr (KIND == TD_OTHERS)
            td_map(*this, n, c);
        acc = join(acc, n[0]);
    }
    __device__ A join(A a, A b) const {
        if (KIND == TD_SUMS)
            return a + b;
        if (KIND == TD_EXTREMES) /* td_cu_max or td_cu_min */
            return a != a || (this->fold == TD_CU_MAX ? a >= b : a <= b) ? a : b;
        A acc[1] = {a}, n[1] = {b};
        td_join(this->fold, acc, n);
        return acc[0];
    }
    __device__ void finish(const td_cu_reduction &s, const td_output_place &at, A acc) const {
        td_sum<A> all = acc;
        if (KIND == TD_OTHERS && this->fold == TD_CU_MEAN)
            centers[at.number] = context(at) + (double)all / (double)s.count;
        else if (KIND == TD_OTHERS && this->fold == TD_CU_POWER_SUM && centers)
            td_store_number(to, out, at.out_offset,
                            td_finish_number(*this, all, s.count) / context(at));
        else
            td_store_number(to, out, at.out_offset, td_finish_number(*this, all, s.count));
    }
};

/* ---- sums of squares around a center ---- */

/* Of float64, whose squares may be out of range. */
template <typename L> struct td_wide_centered_fold : td_cu_fold {
    typedef typename L::T T;
    typedef T V;
    typedef td_cu_squares A;
    typedef double C;
    enum { VECTOR = L::VECTOR };

    __device__ A start() const { return A{{0, 0, 0}, 0}; }
    __device__ C context(const td_output_place &at) const { return centers[at.number]; }
    __device__ V load(C, long long offset, long long) const { return L::load(*this, offset); }
    __device__ void take(A &acc, C center, V v, long long) const {
        td_take_distance(acc, L::number(*this, v) - center);
    }
    __device__ A join(A a, A b) const { return td_join_spreads(a, b); }
    __device__ void finish(const td_cu_reduction &s, const td_output_place &at, A acc) const {
        double scale, sum = td_around_mean(acc, s.count, &scale);
        sum = td_finish_number(*this, sum, s.count) / scale;
        td_store_number(to, out, at.out_offset,
                        static_cast<const td_cu_fold &>(*this).finish == TD_CU_STD ? sum
                                                                                   : sum / scale);
    }
};

template <typename L> struct td_centered_fold : td_cu_fold {
    typedef typename L::T T;
    typedef T V;
    typedef td_cu_pair A;
    typedef double C;
    enum { VECTOR = L::VECTOR };

    __device__ A start() const { return A{0, 0}; }
    __device__ C context(const td_output_place &at) const { return centers[at.number]; }
    __device__ V load(C, long long offset, long long) const { return L::load(*this, offset); }
    __device__ void take(A &acc, C center, V v, long long) const {
        double d = L::number(*this, v) - center;
        acc.a += d * d;
        acc.b += d;
    }
    __device__ A join(A a, A b) const { return A{a.a + b.a, a.b + b.b}; }
    __device__ void finish(const td_cu_reduction &s, const td_output_place &at, A acc) const {
        double sum = s.count > 0 ? acc.a - acc.b / (double)s.count * acc.b : 0;
        sum = sum > 0 || sum != sum ? sum : 0;
        td_store_number(to, out, at.out_offset, td_finish_number(*this, sum, s.count));
    }
};

/* ---- norms, and factors for powers ---- */

/* The largest magnitude, or with negative powers the smallest, as a factor. */
template <typename L> struct td_scale_fold : td_cu_fold {
    typedef typename L::T T;
    typedef T V;
    typedef double A;
    typedef int C;
    enum { VECTOR = L::VECTOR };

    __device__ A start() const { return power < 0 ? (double)INFINITY : 0; }
    __device__ C context(const td_output_place &) const { return 0; }
    __device__ V load(C, long long offset, long long) const { return L::load(*this, offset); }
    __device__ void take(A &acc, C, V v, long long) const {
        acc = join(acc, fabs((double)L::number(*this, v)));
    }
    __device__ A join(A a, A b) const { return power < 0 ? td_cu_min(a, b) : td_cu_max(a, b); }
    __device__ void finish(const td_cu_reduction &, const td_output_place &at, A acc) const {
        centers[at.number] = td_scale_of(acc, power);
    }
};

template <typename L> struct td_norm_fold : td_cu_fold {
    typedef typename L::T T;
    typedef T V;
    typedef td_cu_three A;
    typedef int C;
    enum { VECTOR = L::VECTOR };

    __device__ A start() const { return A{0, 0, 0}; }
    __device__ C context(const td_output_place &) const { return 0; }
    __device__ V load(C, long long offset, long long) const { return L::load(*this, offset); }
    __device__ void take(A &acc, C, V v, long long) const {
        td_take_square(acc, (double)L::number(*this, v));
    }
    __device__ A join(A a, A b) const { return td_adder().join(a, b); }
    __device__ void finish(const td_cu_reduction &, const td_output_place &at, A acc) const {
        double scale, sum = td_join_squares(acc, &scale);
        td_store_number(to, out, at.out_offset, sqrt(sum) / scale);
    }
};

/* ---- launches ---- */

template <typename F>
static cudaError_t td_launch_fold(const td_cu_reduction *s, const td_cu_fold *given, void *partial,
                                  cudaStream_t stream) {
    F f;
    static_cast<td_cu_fold &>(f) = *given;
    return td_run_reduction(s, f, partial, stream);
}

template <typename L>
static cudaError_t td_choose_fold(const td_cu_reduction *s, const td_cu_fold *f, void *partial,
                                  cudaStream_t stream) {
    if (f->fold == TD_CU_SUM)
        return td_launch_fold<td_number_fold<L, TD_SUMS>>(s, f, partial, stream);
    return td_launch_fold<td_number_fold<L, TD_OTHERS>>(s, f, partial, stream);
}

template <typename L>
static cudaError_t td_choose_float_fold(const td_cu_reduction *s, const td_cu_fold *f,
                                        void *partial, cudaStream_t stream) {
    if (f->fold == TD_CU_CENTERED && f->compute != TD_F64)
        return td_launch_fold<td_centered_fold<L>>(s, f, partial, stream);
    return td_choose_fold<L>(s, f, partial, stream);
}

/* What is folded in float64 in a way of its own. */
template <typename L>
static cudaError_t td_choose_wide_fold(const td_cu_reduction *s, const td_cu_fold *f, void *partial,
                                       cudaStream_t stream) {
    return f->fold == TD_CU_NORM ? td_launch_fold<td_norm_fold<L>>(s, f, partial, stream)
           : f->fold == TD_CU_SCALE
               ? td_launch_fold<td_scale_fold<L>>(s, f, partial, stream)
               : td_launch_fold<td_wide_centered_fold<L>>(s, f, partial, stream);
}

cudaError_t td_cu_run_fold(const td_cu_reduction *s, const td_cu_fold *f, void *partial,
                           cudaStream_t stream) {
    bool centered = f->fold == TD_CU_CENTERED && f->compute == TD_F64;
    if (centered || f->fold == TD_CU_NORM || f->fold == TD_CU_SCALE)
        return f->exact && f->from == TD_F64
                   ? td_choose_wide_fold<td_plain<double>>(s, f, partial, stream)
                   : td_choose_wide_fold<td_converted<double>>(s, f, partial, stream);
    if (!f->exact)
        return f->compute >= TD_F16
                   ? td_choose_float_fold<td_converted<double>>(s, f, partial, stream)
                   : td_choose_fold<td_converted<long long>>(s, f, partial, stream);
    if (f->fold == TD_CU_MAX || f->fold == TD_CU_MIN)
        TD_BY_DTYPE(f->from, T,
                    return td_launch_fold<td_number_fold<td_plain<T, td_wide<T>>, TD_EXTREMES>>(
                        s, f, partial, stream))
    switch (f->from) {
        TD_CASE_(TD_BOOL, td_bool, T, return td_choose_fold<td_plain<T>>(s, f, partial, stream))
        TD_CASES_INT_(T, return td_choose_fold<td_plain<T>>(s, f, partial, stream))
        TD_CASES_FLOAT_(T, return td_choose_float_fold<td_plain<T>>(s, f, partial, stream))
    default:
        return cudaErrorInvalidValue;
    }
}

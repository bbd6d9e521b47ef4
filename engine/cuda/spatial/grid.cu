/* grid.cu: images read at the places of a grid. A thread works out what one place sees, as
 * engine/cpu/spatial/grid_loops.h does, to the same places in every case. */
#include "engine/cuda/spatial/grid_code.h"

#include "engine/cuda/runtime/dims.h"
#include "engine/cuda/runtime/elements.cuh"
#include "engine/cuda/runtime/launch.cuh"
#include "engine/cuda/runtime/math.cuh"

enum { TD_GRID_BLOCK = 256 };

static unsigned td_grid_blocks(long long n) {
    return (unsigned)((n + TD_GRID_BLOCK - 1) / TD_GRID_BLOCK);
}

__device__ static inline long long td_grid_thread(void) {
    return (long long)blockIdx.x * TD_GRID_BLOCK + threadIdx.x;
}

/* ---- along a dim ---- */

/* From here on every number is a whole one. */
template <typename T> struct td_grid_limits;
template <> struct td_grid_limits<float> {
    __device__ static float all_whole() { return 8388608.0f; }
};
template <> struct td_grid_limits<double> {
    __device__ static double all_whole() { return 4503599627370496.0; }
};

template <typename T>
__device__ static inline T td_grid_reflect(const td_cu_grid &g, int d, T at, T *turn) {
    T low = (T)(g.aligned ? 0 : -0.5), span = (T)(g.in[d] - (g.aligned ? 1 : 0));
    if (span == 0)
        return 0 * at;
    T x = at - low, far = td_cu_abs(x);
    if (far >= td_grid_limits<T>::all_whole() && far - far == 0)
        far = td_cu_fmod(far, 2 * span);
    T times = td_cu_floor(far / span);
    times = far - times * span < 0 ? times - 1 : times;
    T rest = far - times * span, pairs = times / 2;
    bool odd = pairs != td_cu_floor(pairs);
    if ((x < 0) != odd)
        *turn = -*turn;
    return (odd ? span - rest : rest) + low;
}

template <typename T>
__device__ static inline T td_grid_hold(const td_cu_grid &g, int d, T at, T *turn) {
    T last = (T)(g.in[d] - 1), x = at > 0 ? at : 0;
    if (!(x > 0 && x < last))
        *turn = 0;
    return x < last ? x : last;
}

/* `turn` is multiplied by what that does to a step. */
template <typename T>
__device__ static inline T td_grid_bring_inside(const td_cu_grid &g, int d, T at, T *turn) {
    if (g.reflects)
        at = td_grid_reflect(g, d, at, turn);
    return g.holds ? td_grid_hold(g, d, at, turn) : at;
}

template <typename T> struct td_grid_axis {
    T weight[4], steeper[4]; /* steeper: by one derivative more */
    long long place[4];      /* times the dim's stride; -1: outside */
};

/* A tap's polynomial after so many derivatives: Keys' cubic convolution with a = -3/4. */
template <typename T>
__device__ static inline T td_grid_cubic(int tap, long long order, T scale, T x) {
    const double weights[4][4] = {{-0.75, 1.5, -0.75, 0},
                                  {1.25, -2.25, 0, 1},
                                  {-1.25, 1.5, 0.75, 0},
                                  {0.75, -0.75, 0, 0}};
    double c0 = weights[tap][0], c1 = weights[tap][1], c2 = weights[tap][2], c3 = weights[tap][3];
    T s = 1;
    for (long long k = 0; k < order && k < 4; k++) {
        c3 = c2;
        c2 = 2 * c1;
        c1 = 3 * c0;
        c0 = 0;
        s *= scale;
    }
    return (((x * (T)c0 + (T)c1) * x + (T)c2) * x + (T)c3) * s;
}

/* The weight of a tap, of ALONG, at a fraction from the place below; `step` is what a step of the
 * grid does to it. */
template <typename T, int ALONG>
__device__ static inline T td_grid_weight(int tap, long long order, T step, T x) {
    if (ALONG == 1)
        return (T)(order == 0);
    if (ALONG == 4)
        return td_grid_cubic(tap, order, step, x);
    if (order > 1)
        return 0;
    if (tap == 0)
        return order == 0 ? -x + 1 : -step;
    return order == 0 ? x : step;
}

template <typename T, int ALONG>
__device__ static inline void td_grid_see(const td_cu_grid &g, int d, long long stride, T grid,
                                          td_grid_axis<T> *a) {
    double size = (double)g.in[d];
    T scale = (T)((g.aligned ? size - 1 : size) / 2), turn = 1, ignored = 1;
    T at = (grid + 1) * scale - (T)(g.aligned ? 0 : 0.5), last = (T)(g.in[d] - 1);
    if (ALONG < 4)
        at = td_grid_bring_inside(g, d, at, &turn);
    T low = ALONG == 1 ? td_cu_rint(at) : td_cu_floor(at);
    for (int t = 0; t < ALONG; t++) {
        T x = low + (T)(ALONG == 4 ? t - 1 : t);
        if (ALONG == 4)
            x = td_grid_bring_inside(g, d, x, &ignored);
        long long whole = x >= 0 && x <= last ? (long long)x : -1;
        a->place[t] = whole < 0 ? -1 : (whole < g.in[d] ? whole : g.in[d] - 1) * stride;
        a->weight[t] = td_grid_weight<T, ALONG>(t, g.order[d], turn * scale, at - low);
        a->steeper[t] = td_grid_weight<T, ALONG>(t, g.order[d] + 1, turn * scale, at - low);
    }
}

/* ---- along all ---- */

template <typename T, int N, int ALONG> struct td_grid_place {
    enum { TAPS = N == 2 ? ALONG * ALONG : ALONG * ALONG * ALONG };
    td_grid_axis<T> axis[N];

    __device__ td_grid_place(const td_cu_grid &g, long long image, long long place) {
        const T *grid = (const T *)g.grid + (image * g.places + place) * N;
        long long stride = 1;
        for (int d = N - 1; d >= 0; d--) {
            td_grid_see<T, ALONG>(g, d, stride, grid[N - 1 - d], &axis[d]);
            stride *= g.in[d];
        }
    }
    /* Of tap t along dim d. */
    __device__ static int along(int t, int d) {
        for (int e = 0; e < d; e++)
            t /= ALONG;
        return t % ALONG;
    }
    /* -1: outside. */
    __device__ long long at(int t) const {
        long long sum = 0;
        for (int d = 0; d < N; d++) {
            long long place = axis[d].place[along(t, d)];
            sum = place < 0 || sum < 0 ? -1 : sum + place;
        }
        return sum;
    }
    /* `steeper`: the dim by which one derivative more is taken, or -1. */
    __device__ T share(int t, int steeper) const {
        T product = 1;
        for (int d = 0; d < N; d++) {
            const td_grid_axis<T> &a = axis[d];
            product *= d == steeper ? a.steeper[along(t, d)] : a.weight[along(t, d)];
        }
        return product;
    }
};

template <typename T, int N, int ALONG>
__global__ void td_grid_read_kernel(const __grid_constant__ td_cu_grid g) {
    long long k = td_grid_thread(), place, channel = td_cu_divide(k, g.places, &place);
    if (k >= g.batch * g.channels * g.places)
        return;
    td_grid_place<T, N, ALONG> p(g, channel / g.channels, place);
    const T *x = (const T *)g.x + channel * g.plane;
    T sum = 0;
    for (int t = 0; t < p.TAPS; t++) {
        long long at = p.at(t);
        sum += (at < 0 ? 0 : x[at]) * p.share(t, -1);
    }
    ((T *)g.out)[k] = sum;
}

template <typename T, int N, int ALONG>
__global__ void td_grid_slope_kernel(const __grid_constant__ td_cu_grid g) {
    long long k = td_grid_thread(), place, image = td_cu_divide(k, g.places, &place);
    if (k >= g.batch * g.places)
        return;
    td_grid_place<T, N, ALONG> p(g, image, place);
    double sums[N] = {0};
    for (long long c = 0; c < g.channels; c++) {
        long long channel = image * g.channels + c;
        const T *x = (const T *)g.x + channel * g.plane;
        double y = (double)((const T *)g.gradient)[channel * g.places + place];
        for (int d = 0; d < N; d++) {
            T slope = 0;
            for (int t = 0; t < p.TAPS; t++) {
                long long at = p.at(t);
                slope += (at < 0 ? 0 : x[at]) * p.share(t, d);
            }
            sums[d] += y * (double)slope;
        }
    }
    for (int d = 0; d < N; d++)
        ((T *)g.out)[k * N + N - 1 - d] = (T)sums[d];
}

template <typename T, int N, int ALONG>
__global__ void td_grid_give_kernel(const __grid_constant__ td_cu_grid g, T *given, uint32_t *keys,
                                    uint32_t limit) {
    long long k = td_grid_thread(), place, image = td_cu_divide(k, g.places, &place);
    if (k >= g.batch * g.places)
        return;
    td_grid_place<T, N, ALONG> p(g, image, place);
    for (int t = 0; t < p.TAPS; t++) {
        long long at = p.at(t);
        T share = p.share(t, -1);
        keys[k * p.TAPS + t] = at < 0 ? limit : (uint32_t)(image * g.plane + at);
        for (long long c = 0; c < g.channels; c++) {
            long long from = (image * g.channels + c) * g.places + place;
            given[from * p.TAPS + t] = ((const T *)g.gradient)[from] * share;
        }
    }
}

/* ---- launches ---- */

/* RUN(T, N, ALONG) with the types and numbers of *g. */
#define TD_BY_GRID_TAPS(T, N, g, RUN)                                                              \
    do {                                                                                           \
        if ((g)->along == 1)                                                                       \
            RUN(T, N, 1);                                                                          \
        if ((g)->along == 2)                                                                       \
            RUN(T, N, 2);                                                                          \
        if ((g)->along == 4 && (N) == 2)                                                           \
            RUN(T, 2, 4);                                                                          \
    } while (0)
#define TD_BY_GRID(g, RUN)                                                                         \
    do {                                                                                           \
        if ((g)->dtype == TD_F32 && (g)->n == 2)                                                   \
            TD_BY_GRID_TAPS(float, 2, g, RUN);                                                     \
        if ((g)->dtype == TD_F32 && (g)->n == 3)                                                   \
            TD_BY_GRID_TAPS(float, 3, g, RUN);                                                     \
        if ((g)->dtype == TD_F64 && (g)->n == 2)                                                   \
            TD_BY_GRID_TAPS(double, 2, g, RUN);                                                    \
        if ((g)->dtype == TD_F64 && (g)->n == 3)                                                   \
            TD_BY_GRID_TAPS(double, 3, g, RUN);                                                    \
    } while (0)

cudaError_t td_cu_grid_read(const td_cu_grid *g, cudaStream_t stream) {
    unsigned blocks = td_grid_blocks(g->batch * g->channels * g->places);
#define RUN(T, N, ALONG)                                                                           \
    return TD_LAUNCH((td_grid_read_kernel<T, N, ALONG>), blocks, TD_GRID_BLOCK, stream, *g)
    TD_BY_GRID(g, RUN);
#undef RUN
    return cudaErrorInvalidValue;
}

cudaError_t td_cu_grid_slope(const td_cu_grid *g, cudaStream_t stream) {
    unsigned blocks = td_grid_blocks(g->batch * g->places);
#define RUN(T, N, ALONG)                                                                           \
    return TD_LAUNCH((td_grid_slope_kernel<T, N, ALONG>), blocks, TD_GRID_BLOCK, stream, *g)
    TD_BY_GRID(g, RUN);
#undef RUN
    return cudaErrorInvalidValue;
}

cudaError_t td_cu_grid_give(const td_cu_grid *g, void *given, uint32_t *keys, uint32_t limit,
                            cudaStream_t stream) {
    unsigned blocks = td_grid_blocks(g->batch * g->places);
#define RUN(T, N, ALONG)                                                                           \
    return TD_LAUNCH((td_grid_give_kernel<T, N, ALONG>), blocks, TD_GRID_BLOCK, stream, *g,        \
                     (T *)given, keys, limit)
    TD_BY_GRID(g, RUN);
#undef RUN
    return cudaErrorInvalidValue;
}

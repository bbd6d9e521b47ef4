/* recurrent_back.cu: the way back through a time of a recurrent layer in one launch: the gradient
 * of its state by way of the sums of the time behind it, and the gradients of its own gates. */
#include "engine/cuda/product/recurrent.cuh"

/* ---- cells ----
 *
 * As those of recurrent.cu. `behind` is what comes by way of the sums of the time behind. */

/* The gradient of a gate, to a list. */
template <typename T, typename W>
__device__ static inline void td_give_gate(void *list, int at, W v) {
    ((T *)list)[at] = td_narrow<T>::of(v);
}

template <typename T_, typename S_> struct td_elman_back {
    typedef T_ T;
    typedef S_ S;
    typedef td_wide<S> W;
    enum { GATES = 1 };
    W g, state;
    __device__ void read(const td_cu_recurrent_back &b, const td_cu_cell &c) {
        int at = td_gate_at(b.layer, c, 1, 0);
        g = td_element_or_0<S>(b.g, at);
        state = td_widen(((const S *)b.made)[at]);
    }
    __device__ void make(const td_cu_recurrent_back &b, const td_cu_cell &c, W behind) const {
        W d = g + behind;
        W v = !b.layer.rectified ? d * (1 - state * state) : state <= 0 ? (W)0 : d;
        td_give_gate<T>(b.of_x, td_gate_at(b.layer, c, 1, 0), v);
    }
};

template <typename T_, typename S_> struct td_gru_back {
    typedef T_ T;
    typedef S_ S;
    typedef td_wide<S> W;
    enum { GATES = 3 };
    W g, r, z, n, q, before, beside;
    __device__ void read(const td_cu_recurrent_back &b, const td_cu_cell &c) {
        int at = td_gate_at(b.layer, c, 1, 0);
        const S *gates = (const S *)b.gates;
        g = td_element_or_0<S>(b.g, at);
        r = td_widen(gates[td_gate_at(b.layer, c, 4, 0)]);
        z = td_widen(gates[td_gate_at(b.layer, c, 4, 1)]);
        n = td_widen(gates[td_gate_at(b.layer, c, 4, 2)]);
        q = td_widen(gates[td_gate_at(b.layer, c, 4, 3)]);
        before = td_widen(((const S *)b.before)[at]);
        beside = b.behind ? td_widen(((const S *)b.beside)[at]) : (W)0;
    }
    __device__ void make(const td_cu_recurrent_back &b, const td_cu_cell &c, W behind) const {
        W d = g + behind + beside, dn = d * (1 - z) * (1 - n * n);
        W dr = dn * q * (1 - r), dz = d * (before - n) * z * (1 - z);
        const W of_x[] = {dr, dz, dn}, of_h[] = {dr, dz, dn * r};
        for (int gate = 0; gate < 3; gate++) {
            td_give_gate<T>(b.of_x, td_gate_at(b.layer, c, 3, gate), of_x[gate]);
            td_give_gate<T>(b.of_h, td_gate_at(b.layer, c, 3, gate), of_h[gate]);
        }
        ((S *)b.beside)[td_gate_at(b.layer, c, 1, 0)] = td_narrow<S>::of(d * z);
    }
};

template <typename T_, typename S_> struct td_lstm_back {
    typedef T_ T;
    typedef S_ S;
    typedef td_wide<S> W;
    enum { GATES = 4 };
    W g, given, i, f, u, o, cell, next, beside;
    __device__ void read(const td_cu_recurrent_back &b, const td_cu_cell &c) {
        int at = td_gate_at(b.layer, c, 1, 0);
        const S *gates = (const S *)b.gates;
        g = td_element_or_0<S>(b.g, at);
        given = td_element_or_0<S>(b.given, at);
        i = td_widen(gates[td_gate_at(b.layer, c, 4, 0)]);
        f = td_widen(gates[td_gate_at(b.layer, c, 4, 1)]);
        u = td_widen(gates[td_gate_at(b.layer, c, 4, 2)]);
        o = td_widen(gates[td_gate_at(b.layer, c, 4, 3)]);
        cell = td_widen(((const S *)b.before)[at]);
        next = td_widen(((const S *)b.made)[at]);
        beside = b.behind ? td_widen(((const S *)b.beside)[at]) : (W)0;
    }
    __device__ void make(const td_cu_recurrent_back &b, const td_cu_cell &c, W behind) const {
        W s = g + behind, t = td_cu_tanh(next), d = given + beside + s * o * (1 - t * t);
        const W of_x[] = {d * u * i * (1 - i), d * cell * f * (1 - f), d * i * (1 - u * u),
                          s * t * o * (1 - o)};
        for (int gate = 0; gate < 4; gate++)
            td_give_gate<T>(b.of_x, td_gate_at(b.layer, c, 4, gate), of_x[gate]);
        ((S *)b.beside)[td_gate_at(b.layer, c, 1, 0)] = td_narrow<S>::of(d * f);
    }
};

/* ---- the kernel ---- */

/* Gradients of sums times columns of w. */
template <typename C> struct td_gates_product {
    typedef typename C::T T;
    enum { GATES = 1, ACROSS = 1 };
    const td_cu_recurrent_back &b;
    int first_row, first_unit, depth;
    __device__ td_wide<T> row(int r, int k) const {
        int row = first_row + r;
        if (row >= b.layer.rows || k >= depth)
            return 0;
        return td_widen(((const T *)b.behind)[row * depth + k]);
    }
    __device__ td_wide<T> column(int u, int k) const {
        int unit = first_unit + u;
        if (unit >= b.layer.units || k >= depth)
            return 0;
        return td_widen(((const T *)b.layer.w)[k * b.layer.units + unit]);
    }
};

template <typename C>
__global__ void __launch_bounds__(TD_RECURRENT_BLOCK, 2)
    td_recurrent_back_kernel(const __grid_constant__ td_cu_recurrent_back b) {
    typedef typename C::T T;
    td_cu_cell c = td_my_cell(b.layer);
    C cell = {};
    if (c.finishes && !b.product)
        cell.read(b, c);
    td_wide<T> sum[1] = {0};
    td_gates_product<C> p = {b, (int)blockIdx.y * TD_RECURRENT_ROWS,
                             (int)blockIdx.x * TD_RECURRENT_UNITS, C::GATES * b.layer.units};
    if (b.behind)
        td_sum_gates(p, sum);
    if (!c.finishes)
        return;
    if (b.product)
        ((T *)b.product)[td_gate_at(b.layer, c, 1, 0)] = td_narrow<T>::of(sum[0]);
    else
        cell.make(b, c, (typename C::W)td_rounded<T>(sum[0]));
}

template <typename C>
static cudaError_t td_launch_back(const td_cu_recurrent_back *b, cudaStream_t stream) {
    return TD_LAUNCH_TOGETHER((td_recurrent_back_kernel<C>), td_recurrent_tiles(&b->layer),
                              TD_RECURRENT_BLOCK, stream, *b);
}

template <typename T, typename S>
static cudaError_t td_choose_back(const td_cu_recurrent_back *b, cudaStream_t stream) {
    switch (b->layer.kind) {
    case TD_CU_ELMAN:
        return td_launch_back<td_elman_back<T, S>>(b, stream);
    case TD_CU_GRU:
        return td_launch_back<td_gru_back<T, S>>(b, stream);
    case TD_CU_LSTM:
        return td_launch_back<td_lstm_back<T, S>>(b, stream);
    }
    return cudaErrorInvalidValue;
}

cudaError_t td_cu_run_recurrent_back(const td_cu_recurrent_back *b, cudaStream_t stream) {
    TD_BY_RECURRENT(b->layer, T, S, return (td_choose_back<T, S>(b, stream)))
    return cudaErrorInvalidValue;
}

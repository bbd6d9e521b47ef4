/* recurrent.cu: a time of a recurrent layer in one launch: the product of the state with the
 * weights, and what the cell makes of it. */
#include "engine/cuda/product/recurrent.cuh"

/* ---- cells ----
 *
 * What a cell needs is asked for before the product and lies ready behind it. */

template <typename T_, typename S_> struct td_elman_cell {
    typedef T_ T;
    typedef S_ S;
    typedef td_wide<S> W;
    enum { GATES = 1 };
    W x;
    __device__ void read(const td_cu_recurrent_time &t, const td_cu_cell &c) {
        x = (W)td_widen(((const T *)t.x)[td_gate_at(t.layer, c, 1, 0)]);
    }
    __device__ void make(const td_cu_recurrent_time &t, const td_cu_cell &c, const W *sums) const {
        W v = x + sums[0];
        v = !t.layer.rectified ? td_cu_tanh(v) : v <= 0 ? (W)0 : v;
        ((S *)t.state)[td_gate_at(t.layer, c, 1, 0)] = td_narrow<S>::of(v);
    }
};

template <typename T_, typename S_> struct td_gru_cell {
    typedef T_ T;
    typedef S_ S;
    typedef td_wide<S> W;
    enum { GATES = 3 };
    W x[3], before;
    __device__ void read(const td_cu_recurrent_time &t, const td_cu_cell &c) {
        for (int gate = 0; gate < 3; gate++)
            x[gate] = (W)td_widen(((const T *)t.x)[td_gate_at(t.layer, c, 3, gate)]);
        before = td_widen(((const S *)t.before)[td_gate_at(t.layer, c, 1, 0)]);
    }
    __device__ void make(const td_cu_recurrent_time &t, const td_cu_cell &c, const W *sums) const {
        W r = td_cu_sigmoid(x[0] + sums[0]), z = td_cu_sigmoid(x[1] + sums[1]), q = r * sums[2];
        W n = td_cu_tanh(x[2] + q), state = n + z * (before - n);
        const W kept[] = {r, z, n, q};
        for (int gate = 0; gate < 4; gate++)
            ((S *)t.gates)[td_gate_at(t.layer, c, 4, gate)] = td_narrow<S>::of(kept[gate]);
        ((S *)t.state)[td_gate_at(t.layer, c, 1, 0)] = td_narrow<S>::of(state);
    }
};

template <typename T_, typename S_> struct td_lstm_cell {
    typedef T_ T;
    typedef S_ S;
    typedef td_wide<S> W;
    enum { GATES = 4 };
    W x[4], cell;
    __device__ void read(const td_cu_recurrent_time &t, const td_cu_cell &c) {
        for (int gate = 0; gate < 4; gate++)
            x[gate] = (W)td_widen(((const T *)t.x)[td_gate_at(t.layer, c, 4, gate)]);
        cell = td_widen(((const S *)t.cell_before)[td_gate_at(t.layer, c, 1, 0)]);
    }
    __device__ void make(const td_cu_recurrent_time &t, const td_cu_cell &c, const W *sums) const {
        int at = td_gate_at(t.layer, c, 1, 0);
        W kept[4];
        for (int gate = 0; gate < 4; gate++) {
            W v = td_rounded<S>(x[gate] + sums[gate]);
            kept[gate] = gate == 2 ? td_cu_tanh(v) : td_cu_sigmoid(v);
            ((S *)t.gates)[td_gate_at(t.layer, c, 4, gate)] = td_narrow<S>::of(kept[gate]);
        }
        W next = kept[1] * cell + kept[0] * kept[2];
        ((S *)t.cell)[at] = td_narrow<S>::of(next);
        ((S *)t.state)[at] = td_narrow<S>::of(kept[3] * td_cu_tanh(next));
    }
};

/* ---- the kernel ---- */

/* States, rounded to what they are multiplied in, times rows of w. */
template <typename C> struct td_state_product {
    typedef typename C::T T;
    enum { GATES = C::GATES, ACROSS = 0 };
    const td_cu_recurrent_time &t;
    int first_row, first_unit, depth;
    __device__ td_wide<T> row(int r, int k) const {
        int row = first_row + r, units = t.layer.units;
        if (row >= t.layer.rows || k >= depth)
            return 0;
        return td_widen(
            td_narrow<T>::of(td_widen(((const typename C::S *)t.before)[row * units + k])));
    }
    __device__ td_wide<T> column(int column, int k) const {
        int gate = column / TD_RECURRENT_UNITS, unit = first_unit + column % TD_RECURRENT_UNITS;
        int units = t.layer.units;
        if (unit >= units || k >= depth)
            return 0;
        return td_widen(((const T *)t.layer.w)[(gate * units + unit) * units + k]);
    }
};

template <typename C>
__global__ void __launch_bounds__(TD_RECURRENT_BLOCK, 2)
    td_recurrent_kernel(const __grid_constant__ td_cu_recurrent_time t) {
    typedef typename C::T T;
    td_cu_cell c = td_my_cell(t.layer);
    C cell = {};
    td_wide<T> sums[C::GATES] = {};
    if (c.finishes) {
        cell.read(t, c);
        for (int gate = 0; gate < C::GATES; gate++)
            sums[gate] = td_element_or_0<T>(t.layer.bias, gate * t.layer.units + c.unit);
    }
    td_state_product<C> p = {t, (int)blockIdx.y * TD_RECURRENT_ROWS,
                             (int)blockIdx.x * TD_RECURRENT_UNITS, t.layer.units};
    td_sum_gates(p, sums);
    if (!c.finishes)
        return;
    typename C::W given[C::GATES];
    for (int gate = 0; gate < C::GATES; gate++)
        given[gate] = td_rounded<T>(sums[gate]);
    cell.make(t, c, given);
}

template <typename C>
static cudaError_t td_launch_time(const td_cu_recurrent_time *t, cudaStream_t stream) {
    return TD_LAUNCH_TOGETHER((td_recurrent_kernel<C>), td_recurrent_tiles(&t->layer),
                              TD_RECURRENT_BLOCK, stream, *t);
}

template <typename T, typename S>
static cudaError_t td_choose_cell(const td_cu_recurrent_time *t, cudaStream_t stream) {
    switch (t->layer.kind) {
    case TD_CU_ELMAN:
        return td_launch_time<td_elman_cell<T, S>>(t, stream);
    case TD_CU_GRU:
        return td_launch_time<td_gru_cell<T, S>>(t, stream);
    case TD_CU_LSTM:
        return td_launch_time<td_lstm_cell<T, S>>(t, stream);
    }
    return cudaErrorInvalidValue;
}

cudaError_t td_cu_run_recurrent(const td_cu_recurrent_time *t, cudaStream_t stream) {
    TD_BY_RECURRENT(t->layer, T, S, return (td_choose_cell<T, S>(t, stream)))
    return cudaErrorInvalidValue;
}

/* product.cu: matrix products by our own tiles, for any strides. */
#include "engine/cuda/product/product.cuh"

namespace {
template <bool BYTES, typename T> struct td_factor_of { typedef T type; };
template <typename T> struct td_factor_of<true, T> { typedef signed char type; };

template <bool BYTES> struct td_cu_strided_product : td_cu_product {
    template <typename T> using td_factor = typename td_factor_of<BYTES, T>::type;
    __device__ bool a_by_rows() const { return as_a.row == 1 && as_a.column != 1; }
    __device__ bool b_by_columns() const { return as_b.column == 1 || as_b.row != 1; }
    template <typename T> __device__ td_wide<T> a(long long batch, long long row, long long l) const {
        long long at = batch * as_a.batch + row * as_a.row + l * as_a.column;
        return td_widen(((const td_factor<T> *)td_cu_product::a)[at]);
    }
    template <typename T>
    __device__ td_wide<T> b(long long batch, long long l, long long column) const {
        long long at = batch * as_b.batch + l * as_b.row + column * as_b.column;
        return td_widen(((const td_factor<T> *)td_cu_product::b)[at]);
    }
    template <typename T>
    __device__ void store(long long batch, long long row, long long column,
                          td_product_sum<T> sum) const {
        if (bias)
            sum += (td_product_sum<T>)td_widen(((const T *)bias)[column * bias_step]);
        ((T *)out)[batch * as_out.batch + row * as_out.row + column * as_out.column] =
            td_narrow<T>::of((td_wide<T>)sum);
    }
};
}

cudaError_t td_cu_product_run(const td_cu_product *p, cudaStream_t stream) {
    td_cu_strided_product<true> bytes;
    td_cu_strided_product<false> s;
    static_cast<td_cu_product &>(bytes) = *p;
    static_cast<td_cu_product &>(s) = *p;
    if (p->bytes)
        return td_run_product<int>(bytes, stream);
    TD_BY_NUMBER(p->dtype, T, return td_run_product<T>(s, stream))
    return cudaErrorInvalidValue;
}

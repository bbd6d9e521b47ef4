/* conv.cu: convolutions and their gradients as products, whose factors are looked up in the images:
 * nothing is laid out in columns first. */
#include "engine/cuda/product/product.cuh"

namespace {
/* A place of an image, and a tap of the kernel, of each dim. */
struct td_cu_at {
    long long i[TD_CU_CONV_DIMS];
};

__device__ static inline td_cu_at td_at(long long place, const int64_t *sizes) {
    td_cu_at at;
    long long rest;
    place = td_cu_divide(place, sizes[2], &at.i[2]);
    at.i[0] = td_cu_divide(place, sizes[1], &rest);
    at.i[1] = rest;
    return at;
}

struct td_cu_conv : td_cu_convolution {
    __device__ bool forward() const { return direction == TD_CU_CONV_FORWARD; }
    __device__ bool to_weight() const { return direction == TD_CU_CONV_WEIGHT; }
    /* Rows of images and places, or columns of places, are neighbours but where channels are. */
    __device__ bool a_by_rows() const {
        return to_weight() ? as_y.channel == 1 : forward() ? as_x.channel != 1 : as_y.channel != 1;
    }
    __device__ bool b_by_columns() const {
        return to_weight() ? as_x.channel == 1 : !forward() && as_w.channel == 1;
    }

    /* Of x what a tap sees from a place of y; outside there are zeros. */
    template <typename T>
    __device__ td_wide<T> seen(long long row, long long tap, long long channel) const {
        long long place, at = 0;
        long long image = td_cu_divide(row, places[0] * places[1] * places[2], &place);
        td_cu_at from = td_at(place, places), by = td_at(tap, kernel);
        for (int d = 0; d < TD_CU_CONV_DIMS; d++) {
            long long i = from.i[d] * stride[d] - padding[d] + by.i[d] * dilation[d];
            if (i < 0 || i >= in[d])
                return 0;
            at = at * in[d] + i;
        }
        return td_widen(((const T *)x)[image * as_x.image + at * as_x.place +
                                       channel * as_x.channel]);
    }

    /* Of y's gradient what a place of x was seen in through a tap. */
    template <typename T>
    __device__ td_wide<T> given(long long row, long long tap, long long channel) const {
        long long place, at = 0, rest;
        long long image = td_cu_divide(row, in[0] * in[1] * in[2], &place);
        td_cu_at from = td_at(place, in), by = td_at(tap, kernel);
        for (int d = 0; d < TD_CU_CONV_DIMS; d++) {
            long long i = from.i[d] + padding[d] - by.i[d] * dilation[d];
            if (i < 0)
                return 0;
            i = td_cu_divide(i, stride[d], &rest);
            if (rest != 0 || i >= places[d])
                return 0;
            at = at * places[d] + i;
        }
        return td_widen(((const T *)y)[image * as_y.image + at * as_y.place +
                                       channel * as_y.channel]);
    }

    template <typename T>
    __device__ td_wide<T> weight(long long to, long long tap, long long from) const {
        return td_widen(
            ((const T *)w)[to * as_w.image + tap * as_w.place + from * as_w.channel]);
    }

    template <typename T>
    __device__ td_wide<T> a(long long group, long long row, long long l) const {
        long long channel, place;
        if (to_weight()) {
            long long image = td_cu_divide(l, places[0] * places[1] * places[2], &place);
            return td_widen(((const T *)y)[image * as_y.image + place * as_y.place +
                                           (group * o + row) * as_y.channel]);
        }
        long long tap = td_cu_divide(l, forward() ? c : o, &channel);
        return forward() ? seen<T>(row, tap, group * c + channel)
                         : given<T>(row, tap, group * o + channel);
    }

    template <typename T>
    __device__ td_wide<T> b(long long group, long long l, long long column) const {
        long long channel;
        if (to_weight()) {
            long long tap = td_cu_divide(column, c, &channel);
            return seen<T>(l, tap, group * c + channel);
        }
        long long tap = td_cu_divide(l, forward() ? c : o, &channel);
        return forward() ? weight<T>(group * o + column, tap, channel)
                         : weight<T>(group * o + channel, tap, column);
    }

    template <typename T>
    __device__ void store(long long group, long long row, long long column,
                          td_product_sum<T> sum) const {
        long long channel, place, at;
        if (to_weight()) {
            long long tap = td_cu_divide(column, c, &channel);
            at = (group * o + row) * as_w.image + tap * as_w.place + channel * as_w.channel;
        } else {
            const td_cu_images &as = forward() ? as_y : as_x;
            const int64_t *sizes = forward() ? places : in;
            long long image = td_cu_divide(row, sizes[0] * sizes[1] * sizes[2], &place);
            channel = group * (forward() ? o : c) + column;
            at = image * as.image + place * as.place + channel * as.channel;
            if (bias)
                sum += (td_product_sum<T>)td_widen(((const T *)bias)[channel]);
        }
        ((T *)out)[at] = td_narrow<T>::of((td_wide<T>)sum);
    }
};
}

cudaError_t td_cu_convolution_run(const td_cu_convolution *given, cudaStream_t stream) {
    td_cu_conv c;
    static_cast<td_cu_convolution &>(c) = *given;
    TD_BY_NUMBER(c.dtype, T, return td_run_product<T>(c, stream))
    return cudaErrorInvalidValue;
}

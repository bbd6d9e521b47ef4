/* pieces.h: programs over tensors as a whole and over pieces too short for chains. */
#ifndef TD_TESTS_UNIT_PIECES_H
#define TD_TESTS_UNIT_PIECES_H

#include "engine/ops/pointwise/pointwise.h"
#include "engine/td.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 128 /* too short to be a chain */ };

static inline void must(td_status status) {
    if (status) {
        fprintf(stderr, "%s\n", td_error_message());
        exit(1);
    }
}

/* Zeros of both signs, inf, NaN and ordinary numbers. */
static inline double value(int64_t k) {
    static const double edges[] = {0.0, -0.0, 1.0 / 0.0, -1.0 / 0.0, 0.0 / 0.0, 1e-40, 3e38};
    return k % 11 == 5 ? edges[k / 11 % 7] : (double)((k * 37) % 101 - 50) / 8;
}

/* The same of whole numbers: the least and the greatest, and ordinary ones. */
static inline int64_t whole_value(int64_t k) {
    static const int64_t edges[] = {0, INT64_MIN, INT64_MAX, -1, INT64_MIN + 1, 1};
    return k % 11 == 5 ? edges[k / 11 % 6] : (k * 37) % 101 - 50;
}

static inline td_tensor *fill(td_dtype dtype, int64_t n, int64_t seed) {
    td_tensor *x;
    must(td_tensor_empty(dtype, TD_DEVICE_CPU, 1, &n, &x));
    for (int64_t k = 0; k < n; k++) {
        char *to = (char *)x->data + k * (int64_t)td_dtype_size(dtype);
        if (td_dtype_is_float(dtype))
            td_store_double(dtype, to, value(k + seed));
        else
            td_store_int(dtype, to, whole_value(k + seed));
    }
    return x;
}

static inline td_tensor *piece(td_tensor *x, int64_t from, int64_t n) {
    td_tensor *view;
    int64_t stride = 1;
    must(td_tensor_view(x, 1, &n, &stride, from, &view));
    return view;
}

static inline void run(const td_program *p, td_dtype compute, const td_operand *operands,
                       td_tensor *const *outs) {
    td_pointwise_plan plan = {
        .program = p, .operands = operands, .compute = compute, .nlists = 1, .outs = outs};
    must(TD_RUN(TD_DEVICE_CPU, pointwise, &plan));
}

/* Bit by bit, but for what NaN holds. */
static inline bool is_same(const td_tensor *x, const td_tensor *y) {
    td_dtype dtype = (td_dtype)x->dtype;
    size_t size = td_dtype_size(dtype);
    for (int64_t i = 0; i < x->numel; i++) {
        const char *a = (const char *)x->data + (size_t)i * size;
        const char *b = (const char *)y->data + (size_t)i * size;
        double va = td_load_double(dtype, a), vb = td_load_double(dtype, b);
        if (memcmp(a, b, size) != 0 && !(va != va && vb != vb))
            return false;
    }
    return true;
}

#endif

/* strided_convert.c: runs of elements read and written as another dtype. */
#include "engine/cpu/pointwise/strided_convert.h"

#include "engine/cpu/isa/isa.h"

#include <string.h>

#define MOVE(bytes)                                                                                \
    for (int64_t i = 0; i < n; i++)                                                                \
        memcpy(dst + i * dst_stride * (bytes), src + i * src_stride * (bytes), (size_t)(bytes));

/* Strides in elements of `size` bytes. */
static void move(char *dst, int64_t dst_stride, const char *src, int64_t src_stride, int64_t size,
                 int64_t n) {
    switch (size) { /* copies of a constant size are one instruction */
    case 1:
        MOVE(1)
        break;
    case 2:
        MOVE(2)
        break;
    case 4:
        MOVE(4)
        break;
    case 8:
        MOVE(8)
        break;
    default:
        MOVE(size)
    }
}

void td_block_read(td_dtype to, void *dst, td_dtype from, const void *src, int64_t stride,
                   int64_t n) {
    _Alignas(64) char row[TD_BLOCK * 8];
    int64_t size = (int64_t)td_dtype_size(from), step = (int64_t)td_dtype_size(to);
    td_convert_fn convert = td_cpu->convert->convert[to][from];
    if (stride == 1 || n == 1) {
        convert(n, dst, src);
        return;
    }
    for (int64_t at = 0; at < n; at += TD_BLOCK) {
        int64_t len = n - at < TD_BLOCK ? n - at : TD_BLOCK;
        move(row, 1, (const char *)src + at * stride * size, stride, size, len);
        convert(len, (char *)dst + at * step, row);
    }
}

void td_block_write(td_dtype to, void *dst, int64_t stride, td_dtype from, const void *src,
                    int64_t n) {
    _Alignas(64) char row[TD_BLOCK * 8];
    int64_t size = (int64_t)td_dtype_size(to), step = (int64_t)td_dtype_size(from);
    td_convert_fn convert = td_cpu->convert->convert[to][from];
    if (stride == 1 || n == 1) {
        convert(n, dst, src);
        return;
    }
    for (int64_t at = 0; at < n; at += TD_BLOCK) {
        int64_t len = n - at < TD_BLOCK ? n - at : TD_BLOCK;
        convert(len, row, (const char *)src + at * step);
        move((char *)dst + at * stride * size, stride, row, 1, size, len);
    }
}

td_status td_cpu_lacks(td_dtype dtype) {
    return td_fail(TD_EDTYPE, "not implemented for %s", td_dtype_name(dtype));
}

/* backend.c: the CPU as a backend: the host's memory, and the functions of this folder. */
#include "engine/cpu/cpu.h"

#include "engine/core/allocator.h"

#include <string.h>

static int count(void) {
    return 1;
}

static void *allocate(td_stream stream, size_t bytes, size_t *granted) {
    (void)stream;
    return td_host_allocate(bytes, granted);
}

static void release(td_stream stream, void *block, size_t granted) {
    (void)stream;
    td_host_release(block, granted);
}

static void empty_cache(int index) {
    (void)index;
    td_host_empty_cache();
}

static td_status copy(td_stream stream, void *dst, const void *src, size_t bytes) {
    (void)stream;
    memcpy(dst, src, bytes);
    return TD_OK;
}

static td_status synchronize(td_stream stream) {
    (void)stream;
    return TD_OK;
}

const td_backend td_cpu_backend = {
    .name = "cpu",
    .count = count,
    .allocate = allocate,
    .release = release,
    .empty_cache = empty_cache,
    .copy = copy,
    .upload = copy,
    .download = copy,
    .synchronize = synchronize,
    .pointwise = td_cpu_pointwise,
    .check = td_cpu_check,
    .product = td_cpu_product,
    .convolution = td_cpu_convolution,
    .pool = td_cpu_pool,
    .index_read = td_cpu_index_read,
    .index_write = td_cpu_index_write,
    .gather = td_cpu_gather,
    .scatter = td_cpu_scatter,
    .nonzero = td_cpu_nonzero,
    .draw = td_cpu_draw,
    .permutation = td_cpu_permutation,
    .progression = td_cpu_progression,
    .reduce = td_cpu_reduce,
    .find = td_cpu_find,
    .scan = td_cpu_scan,
    .softmax = td_cpu_softmax,
    .class_weights = td_cpu_class_weights,
    .cross_entropy = td_cpu_cross_entropy,
    .cross_entropy_backward = td_cpu_cross_entropy_backward,
};

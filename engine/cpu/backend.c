/* backend.c: the CPU as a backend: the host's memory, and the functions of this folder. */
#include "engine/cpu/cpu.h"

#include "engine/core/allocator.h"
#include "engine/cpu/code/code.h"
#include "engine/cpu/isa/isa.h"
#include "engine/cpu/product/blas.h"

#include <string.h>

static td_backend_facts describe(int index) {
    (void)index;
    td_backend_facts facts = {.kernels = td_cpu->name, .quick = td_cpu_quick()};
    td_cpu_libraries(facts.libraries, sizeof facts.libraries);
    return facts;
}

static td_status start(void) {
    td_blas_prepare();
    td_code_start();
    return td_cpu_choose();
}

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

static void cache_counts(int index, int64_t *cached, int64_t *system_allocations) {
    (void)index;
    *cached = atomic_load_explicit(&td_host_counters.cached, memory_order_relaxed);
    *system_allocations =
        atomic_load_explicit(&td_host_counters.system_allocations, memory_order_relaxed);
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

const td_backend td_cpu_backend = {.name = "cpu",
                                   .start = start,
                                   .describe = describe,
                                   .count = count,
                                   .allocate = allocate,
                                   .release = release,
                                   .stop = td_code_stop,
                                   .empty_cache = empty_cache,
                                   .cache_counts = cache_counts,
                                   .copy = copy,
                                   .upload = copy,
                                   .download = copy,
                                   .synchronize = synchronize,
                                   .reduce_lists = td_cpu_reduce_lists,
                                   .recurrent = td_cpu_recurrent,
#define TD_CPU_FUNCTION(function, plan, ntensors, nwritten) .function = td_cpu_##function,
                                   TD_BACKEND_WORK(TD_CPU_FUNCTION)
#undef TD_CPU_FUNCTION
};

/* backend.c: CUDA as a backend: memory, copies, and the functions of this folder. */
#include "engine/cuda/cuda.h"
#include "engine/cuda/pointwise/compiled.h"
#include "engine/cuda/runtime/activity.h"

#include "engine/core/backend_module.h"
#include "engine/core/waits.h"

#include <stdio.h>
#include <string.h>

td_status td_cuda_begin(td_stream stream, int ntensors, td_tensor *const *tensors,
                        cudaStream_t *out) {
    for (int k = 0; k < ntensors; k++)
        if (tensors[k])
            td_cuda_use(stream, tensors[k]);
    return td_cuda_enter(stream, out);
}

static td_backend_facts describe(int index) {
    static char kernels[TD_CUDA_DEVICES][96];
    struct cudaDeviceProp facts;
    int runtime = 0;
    if (cudaGetDeviceProperties(&facts, index) != cudaSuccess)
        return (td_backend_facts){"unknown", "", 0};
    (void)cudaRuntimeGetVersion(&runtime);
    snprintf(kernels[index], sizeof kernels[index], "%.48s, sm_%d%d, CUDA %d.%d", facts.name,
             facts.major, facts.minor, runtime / 1000, runtime % 1000 / 10);
    return (td_backend_facts){kernels[index], "", 1 << TD_F16 | 1 << TD_BF16};
}

/* ---- copies ---- */

static td_status copy_bytes(td_stream stream, void *dst, const void *src, size_t bytes,
                            enum cudaMemcpyKind kind) {
    cudaStream_t s;
    td_status status = td_cuda_enter(stream, &s);
    if (status == TD_OK)
        status = td_cuda_use_memory(stream, kind == cudaMemcpyHostToDevice ? dst : src);
    if (status == TD_OK && bytes > 0)
        status = td_cuda_status(cudaMemcpyAsync(dst, src, bytes, kind, s), "copying");
    return status;
}

static td_status copy(td_stream stream, void *dst, const void *src, size_t bytes) {
    return copy_bytes(stream, dst, src, bytes, cudaMemcpyDefault);
}

/* Pageable memory was read, or written, when the runtime returns; pinned memory was not. */
static td_status upload(td_stream stream, void *dst, const void *host, size_t bytes) {
    bool pinned = td_cuda_is_pinned(host);
    td_status status = pinned ? td_tell_wait(stream.device) : TD_OK;
    if (status == TD_OK)
        status = copy_bytes(stream, dst, host, bytes, cudaMemcpyHostToDevice);
    return status == TD_OK && pinned ? td_cuda_synchronize(stream) : status;
}

static td_status download(td_stream stream, void *host, const void *src, size_t bytes) {
    td_status status = td_tell_wait(stream.device);
    if (status == TD_OK)
        status = copy_bytes(stream, host, src, bytes, cudaMemcpyDeviceToHost);
    if (status != TD_OK)
        return status;
    return bytes == 0 || td_cuda_is_pinned(host) ? td_cuda_synchronize(stream)
                                                 : td_cuda_findings(stream);
}

/* ---- the table ---- */

/* What has no kernel of its own. */
#define FALL_BACK(function, plan, ntensors, nwritten)                                              \
    static td_status run_##function(const void *given) {                                           \
        return td_backends[TD_CPU]->function(given);                                               \
    }                                                                                              \
    static td_status fall_back_##function(const struct plan *given) {                              \
        return td_cuda_fall_back(#function, given, sizeof *given, run_##function, ntensors,        \
                                 nwritten);                                                        \
    }
TD_BACKEND_WORK(FALL_BACK)
#undef FALL_BACK

static td_backend backend = {.name = "cuda",
                             .describe = describe,
                             .count = td_cuda_count,
                             .allocate = td_cuda_allocate,
                             .release = td_cuda_release,
                             .stop = td_cuda_stop_compiling,
                             .empty_cache = td_cuda_empty_cache,
                             .cache_counts = td_cuda_cache_counts,
                             .copy = copy,
                             .upload = upload,
                             .download = download,
                             .synchronize = td_cuda_synchronize,
                             .queues = &td_cuda_queues,
#define FALL_BACK(function, plan, ntensors, nwritten) .function = fall_back_##function,
                             TD_BACKEND_WORK(FALL_BACK)
#undef FALL_BACK
};

/* The functions that have kernels. */
static void set_kernels(void) {
    backend.pointwise = td_cuda_pointwise;
    backend.check = td_cuda_check;
    backend.reduce = td_cuda_reduce;
    backend.find = td_cuda_find;
    backend.softmax = td_cuda_softmax;
    backend.index_read = td_cuda_index_read;
    backend.index_write = td_cuda_index_write;
    backend.gather = td_cuda_gather;
    backend.scatter = td_cuda_scatter;
    backend.add_strided = td_cuda_add_strided;
    backend.nonzero = td_cuda_nonzero;
    backend.resample = td_cuda_resample;
    backend.max_pool = td_cuda_max_pool;
    backend.grid = td_cuda_grid;
    backend.product = td_cuda_product;
    backend.recurrent = td_cuda_recurrent;
    backend.recurrent_backward = td_cuda_recurrent_backward;
    backend.convolution = td_cuda_convolution;
    backend.class_weights = td_cuda_class_weights;
    backend.cross_entropy = td_cuda_cross_entropy;
    backend.cross_entropy_backward = td_cuda_cross_entropy_backward;
    backend.nll = td_cuda_nll;
    backend.nll_backward = td_cuda_nll_backward;
    backend.norm = td_cuda_norm;
    backend.norm_backward = td_cuda_norm_backward;
    backend.channel_sums = td_cuda_channel_sums;
    backend.channel_map = td_cuda_channel_map;
    backend.scan = td_cuda_scan;
    backend.sort = td_cuda_sort;
    backend.select = td_cuda_select;
    backend.order_rows = td_cuda_order_rows;
    backend.search = td_cuda_search;
    backend.permutation = td_cuda_permutation;
    backend.factor = td_cuda_factor;
    backend.ctc = td_cuda_ctc;
    backend.ctc_backward = td_cuda_ctc_backward;
    backend.poisson = td_cuda_poisson;
    backend.multinomial = td_cuda_multinomial;
    backend.band = td_cuda_band;
    backend.progression = td_cuda_progression;
    backend.draw = td_cuda_draw;
    backend.quantize = td_cuda_quantize;
    backend.quantized_pack = td_cuda_quantized_pack;
    backend.quantized_linear = td_cuda_quantized_linear;
    backend.quantized_conv = td_cuda_quantized_conv;
    backend.quantized_binary = td_cuda_quantized_binary;
    backend.quantized_lookup = td_cuda_quantized_lookup;
    backend.grouped_linear = td_cuda_grouped_linear;
    backend.pack_rows = td_cuda_pack_rows;
    backend.add_rows = td_cuda_add_rows;
}

bool td_cuda_has_kernel(const char *function) {
#define LOOK(name, plan, ntensors, nwritten)                                                       \
    if (strcmp(function, #name) == 0)                                                              \
        return backend.name != fall_back_##name;
    TD_BACKEND_WORK(LOOK)
#undef LOOK
    return false;
}

const td_backend *td_cuda_module(const char **absence); /* a td_backend_entry */
const td_backend *td_cuda_module(const char **absence) {
    *absence = td_cuda_absence();
    set_kernels();
    td_cuda_time_functions(&backend);
    if (!*absence)
        td_cuda_register_activities();
    return *absence ? NULL : &backend;
}

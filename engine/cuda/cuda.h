/* cuda.h: what the files of this room share: devices, streams, scratch memory, and how work says
 * what only the elements show.
 *
 * Host code is C and speaks the runtime's C interface; kernels are in files of their own (.cu),
 * each behind functions of plain structs (NAME_code.h), so that the toolkit's compiler never sees a
 * tensor. The same sources run in tests/cuda-on-cpu against a runtime that the CPU plays.
 */
#ifndef TD_CUDA_CUDA_H
#define TD_CUDA_CUDA_H

#include "engine/core/tensor.h"
#include "engine/cuda/runtime/report.h"
#include "engine/ops/plan/plan.h"

#include <cuda_runtime_api.h>

/* ---- context.c: devices and streams ---- */

enum {
    TD_CUDA_DEVICES = 16, /* as core/device.c counts them */
    TD_CUDA_STREAMS = 256 /* of a device */
};

/* How many devices there are; 0, with the reason in td_cuda_absence, where there is no driver. */
int td_cuda_count(void);
const char *td_cuda_absence(void);

/* The runtime's answer as a status: OK for cudaSuccess; ENOMEM; EDEVICE, with what was `doing`. A
 * device that met an error of its own stays unusable, which the message says. */
td_status td_cuda_status(cudaError_t error, const char *doing) TD_MUST_CHECK;

/* Make the stream's device current for this thread and hand out the runtime's stream; made at
 * first use. EDEVICE. */
td_status td_cuda_enter(td_stream stream, cudaStream_t *out) TD_MUST_CHECK;

/* The runtime's stream where it has been made; else NULL. */
cudaStream_t td_cuda_known_stream(td_stream stream);

td_status td_cuda_synchronize(td_stream stream) TD_MUST_CHECK;
/* The first finding of work that was waited for. */
td_status td_cuda_findings(td_stream stream) TD_MUST_CHECK;

/* While a stream's work is recorded, other streams' is none of its business. */
void td_cuda_set_recording(td_stream stream, bool recording);
bool td_cuda_is_recording(td_stream stream);
/* Does any stream record? Then there are calls that would spoil it. */
bool td_cuda_records_anything(void);

/* core/queues.h says what these do; the rest of its functions are in queues.c. */
td_status td_cuda_stream_new(int index, bool urgent, uint16_t *id) TD_MUST_CHECK;
void td_cuda_stream_free(td_stream stream);
extern const struct td_queues td_cuda_queues;
bool td_cuda_is_pinned(const void *memory);

/* ---- reports: what only the elements show ---- */

/* Who may find something in a launch that follows: the number that its kernels write down with
 * td_cu_found (report.h), and where. `format` is static and takes the two numbers that the kernel
 * writes, or none. */
td_status td_cuda_report(td_stream stream, td_status code, const char *format,
                         td_cu_report *out) TD_MUST_CHECK;

/* ---- allocator.c: memory ---- */

void *td_cuda_allocate(td_stream stream, size_t bytes, size_t *granted);
void td_cuda_release(td_stream stream, void *block, size_t granted);
void td_cuda_empty_cache(int index);
/* What the cache holds of a device's memory, and requests that it could not serve. */
void td_cuda_cache_counts(int index, int64_t *cached, int64_t *system_allocations);
/* A stream's free blocks belong to a graph that was recorded there (or, taken back, no longer):
 * they are not given back to the runtime. */
void td_cuda_keep_blocks(td_stream stream, bool keep);
/* A block that work on `stream` uses although it belongs to another one: it is not given to anybody
 * before that work is done. */
void td_cuda_use(td_stream stream, const td_tensor *x);

/* Work given to `later` from now on begins when what `earlier` was given so far is done. Fails
 * where the device has failed, as all else does then. */
td_status td_cuda_order(td_stream earlier, td_stream later);
/* Stream `side` was just given a copy into a block of `owner`'s: whatever stream uses the block, or
 * gets it next, begins behind that. */
td_status td_cuda_note_copy(td_stream owner, td_stream side, const void *block,
                            size_t bytes) TD_MUST_CHECK;
/* The same for an address alone: the stream's work to come begins behind such a copy. */
td_status td_cuda_use_memory(td_stream stream, const void *memory) TD_MUST_CHECK;

/* ---- pinned.c: pinned memory, of which core/queues.h says what the functions do ---- */

void *td_cuda_pin(size_t bytes);
void td_cuda_unpin(void *memory);
bool td_cuda_is_read(const void *memory);
td_status td_cuda_upload_later(td_stream stream, void *dst, const void *memory, size_t bytes,
                               bool *done) TD_MUST_CHECK;
void td_cuda_empty_pinned(void); /* what nobody has goes back to the driver */

/* Memory for the length of some launches on a stream, given back in its order. */
typedef struct td_cuda_scratch {
    td_stream stream;
    void *data;
    size_t granted;
} td_cuda_scratch;
td_status td_cuda_scratch_take(td_cuda_scratch *s, td_stream stream, size_t bytes) TD_MUST_CHECK;
void td_cuda_scratch_drop(td_cuda_scratch *s); /* nothing to do where nothing was taken */

/* ---- backend.c ---- */

/* What every work function begins with: the stream's device is current, and the tensors (NULL among
 * them) may be used on it. */
td_status td_cuda_begin(td_stream stream, int ntensors, td_tensor *const *tensors,
                        cudaStream_t *out) TD_MUST_CHECK;

/* Is there a kernel for a work function, or does the CPU do it? */
bool td_cuda_has_kernel(const char *function);

/* ---- fallback.c: what the CPU does instead ---- */

typedef td_status (*td_cuda_function)(const void *plan);
/* Run a plan of `bytes` on the CPU: tensors are brought to the host and those written brought back.
 * Says so once for each function. */
td_status td_cuda_fall_back(const char *name, const void *plan, size_t bytes, td_cuda_function run,
                            int ntensors, int nwritten) TD_MUST_CHECK;
td_status td_cuda_fall_back_pointwise(const td_pointwise_plan *plan) TD_MUST_CHECK;
td_status td_cuda_fall_back_check(const td_check_plan *plan) TD_MUST_CHECK;

/* ---- the work functions that have kernels ---- */

td_status td_cuda_pointwise(const td_pointwise_plan *plan) TD_MUST_CHECK;
td_status td_cuda_check(const td_check_plan *plan) TD_MUST_CHECK;
td_status td_cuda_reduce(const td_reduce_plan *plan) TD_MUST_CHECK;
td_status td_cuda_find(const td_find_plan *plan) TD_MUST_CHECK;
td_status td_cuda_softmax(const td_softmax_plan *plan) TD_MUST_CHECK;
td_status td_cuda_index_read(const td_index_plan *plan) TD_MUST_CHECK;
td_status td_cuda_index_write(const td_index_plan *plan) TD_MUST_CHECK;
td_status td_cuda_gather(const td_gather_plan *plan) TD_MUST_CHECK;
td_status td_cuda_scatter(const td_gather_plan *plan) TD_MUST_CHECK;
td_status td_cuda_add_strided(const td_add_strided_plan *plan) TD_MUST_CHECK;
td_status td_cuda_nonzero(const td_nonzero_plan *plan) TD_MUST_CHECK;
td_status td_cuda_resample(const td_resample_plan *plan) TD_MUST_CHECK;
td_status td_cuda_max_pool(const td_max_pool_plan *plan) TD_MUST_CHECK;
td_status td_cuda_grid(const td_grid_plan *plan) TD_MUST_CHECK;
td_status td_cuda_product(const td_product_plan *plan) TD_MUST_CHECK;
td_status td_cuda_recurrent(const td_recurrent_plan *plan) TD_MUST_CHECK;
td_status td_cuda_recurrent_backward(const td_recurrent_backward_plan *plan) TD_MUST_CHECK;
td_status td_cuda_convolution(const td_convolution_plan *plan) TD_MUST_CHECK;
td_status td_cuda_class_weights(const td_class_weights_plan *plan) TD_MUST_CHECK;
td_status td_cuda_cross_entropy(const td_cross_entropy_plan *plan) TD_MUST_CHECK;
td_status td_cuda_cross_entropy_backward(const td_cross_entropy_backward_plan *plan) TD_MUST_CHECK;
td_status td_cuda_nll(const td_nll_plan *plan) TD_MUST_CHECK;
td_status td_cuda_nll_backward(const td_nll_backward_plan *plan) TD_MUST_CHECK;
td_status td_cuda_norm(const td_norm_plan *plan) TD_MUST_CHECK;
td_status td_cuda_norm_backward(const td_norm_backward_plan *plan) TD_MUST_CHECK;
td_status td_cuda_channel_sums(const td_channel_sums_plan *plan) TD_MUST_CHECK;
td_status td_cuda_channel_map(const td_channel_map_plan *plan) TD_MUST_CHECK;
td_status td_cuda_scan(const td_scan_plan *plan) TD_MUST_CHECK;
td_status td_cuda_sort(const td_sort_plan *plan) TD_MUST_CHECK;
td_status td_cuda_select(const td_select_plan *plan) TD_MUST_CHECK;
td_status td_cuda_order_rows(const td_order_rows_plan *plan) TD_MUST_CHECK;
td_status td_cuda_search(const td_search_plan *plan) TD_MUST_CHECK;
td_status td_cuda_permutation(const td_permutation_plan *plan) TD_MUST_CHECK;
td_status td_cuda_factor(const td_factor_plan *plan) TD_MUST_CHECK;
td_status td_cuda_ctc(const td_ctc_plan *plan) TD_MUST_CHECK;
td_status td_cuda_ctc_backward(const td_ctc_backward_plan *plan) TD_MUST_CHECK;
td_status td_cuda_poisson(const td_poisson_plan *plan) TD_MUST_CHECK;
td_status td_cuda_multinomial(const td_multinomial_plan *plan) TD_MUST_CHECK;
td_status td_cuda_band(const td_band_plan *plan) TD_MUST_CHECK;
td_status td_cuda_progression(const td_progression_plan *plan) TD_MUST_CHECK;
td_status td_cuda_draw(const td_draw_plan *plan) TD_MUST_CHECK;
td_status td_cuda_quantize(const td_quantize_plan *plan) TD_MUST_CHECK;
td_status td_cuda_quantized_pack(const td_quantized_pack_plan *plan) TD_MUST_CHECK;
td_status td_cuda_quantized_linear(const td_quantized_linear_plan *plan) TD_MUST_CHECK;
td_status td_cuda_quantized_conv(const td_quantized_conv_plan *plan) TD_MUST_CHECK;
td_status td_cuda_quantized_binary(const td_quantized_binary_plan *plan) TD_MUST_CHECK;
td_status td_cuda_quantized_lookup(const td_quantized_lookup_plan *plan) TD_MUST_CHECK;
td_status td_cuda_grouped_linear(const td_grouped_linear_plan *plan) TD_MUST_CHECK;
td_status td_cuda_pack_rows(const td_pack_rows_plan *plan) TD_MUST_CHECK;
td_status td_cuda_add_rows(const td_add_rows_plan *plan) TD_MUST_CHECK;

#endif

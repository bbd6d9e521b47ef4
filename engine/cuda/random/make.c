/* make.c: progressions, triangles of matrices, and random draws: the host's side. */
#include "engine/cuda/random/make_code.h"
#include "engine/cuda/reduce/dim_lines.h"
#include "engine/ops/make/random.h"

td_status td_cuda_progression(const td_progression_plan *p) {
    cudaStream_t stream;
    td_status status = td_cuda_begin(p->stream, 1, p->tensors, &stream);
    td_cu_progression run = {.out = p->out->data,
                             .dtype = p->out->dtype,
                             .n = p->out->numel,
                             .integer = p->integer,
                             .anchored = p->anchored,
                             .ifirst = p->ifirst,
                             .istep = p->istep,
                             .first = p->first,
                             .step = p->step,
                             .last = p->last};
    if (status != TD_OK || run.n == 0)
        return status;
    return td_cuda_status(td_cu_run_progression(&run, stream), "making a progression");
}

td_status td_cuda_band(const td_band_plan *p) {
    cudaStream_t stream;
    td_status status = td_cuda_begin(p->stream, 2, p->tensors, &stream);
    td_cu_band b = {.out = p->out->data,
                    .x = p->x->data,
                    .size = (int)td_tensor_itemsize(p->out),
                    .ndim = p->out->ndim,
                    .numel = p->out->numel,
                    .first = p->first,
                    .last = p->last};
    for (int d = 0; d < b.ndim; d++) {
        b.sizes[d] = p->out->sizes[d];
        b.out_strides[d] = p->out->strides[d];
        b.x_strides[d] = p->x->strides[d];
    }
    if (status != TD_OK || b.numel == 0)
        return status;
    return td_cuda_status(td_cu_run_band(&b, stream), "taking a band");
}

/* As many bits as the 16-bit dtypes hold below 1, so that no number of [0, 1) is rounded up to 1.
 */
static const uint32_t unused_bits[TD_DTYPE_COUNT] = {[TD_F16] = 0x1FFFFF, [TD_BF16] = 0xFFFFFF};

td_status td_cuda_draw(const td_draw_plan *p) {
    td_tensor *out = NULL;
    cudaStream_t stream;
    td_status status;
    if (p->out->numel == 0)
        return TD_OK;
    TD_TRY(td_cuda_begin(p->stream, 1, p->tensors, &stream));
    TD_TRY(td_cuda_room_for(p->out, &out));
    td_cu_draw d = {.out = out->data,
                    .dtype = out->dtype,
                    .n = out->numel,
                    .distribution = (int)p->distribution,
                    .words = td_draw_words(p),
                    .mask = ~unused_bits[out->dtype],
                    .a = p->a,
                    .b = p->b,
                    .low = p->low,
                    .count = p->count,
                    .seed = p->seed,
                    .offset = p->offset,
                    .least = p->least,
                    .most = p->most};
    TD_TRY(td_cuda_status(td_cu_run_draw(&d, stream), "drawing"));
    TD_TRY(td_cuda_hand_over(p->out, out));
done:
    td_release(out);
    return status;
}

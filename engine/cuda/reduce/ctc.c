/* ctc.c: the loss over all alignments of a sequence of classes with time, and its gradient. */
#include "engine/cuda/cuda.h"
#include "engine/cuda/reduce/ctc_code.h"
#include "engine/ops/make/copy.h"

/* Row-major forms of log_probs, targets and both lengths. */
static td_status read_inputs(td_cu_ctc *c, td_tensor *const *inputs, td_tensor **own) {
    const td_tensor *log_probs = inputs[0];
    td_status status = td_contiguous_as(inputs[0], TD_F64, &own[0]);
    for (int k = 1; k < 4 && status == TD_OK; k++)
        status = td_contiguous_as(inputs[k], TD_I64, &own[k]);
    if (status != TD_OK)
        return status;
    c->steps = log_probs->sizes[0];
    c->batch = log_probs->sizes[1];
    c->classes = log_probs->sizes[2];
    c->ntargets = inputs[1]->numel;
    c->log_probs = own[0]->data;
    c->targets = own[1]->data;
    c->inputs = own[2]->data;
    c->lengths = own[3]->data;
    return TD_OK;
}

static void release_all(td_tensor **own, int n) {
    for (int k = 0; k < n; k++)
        td_release(own[k]);
}

static td_status check(td_cu_ctc *c, td_stream stream, cudaStream_t s) {
    td_status status = TD_OK;
    TD_TRY(td_cuda_report(stream, TD_EVALUE,
                          "input_lengths: %lld at position %lld is less than 0 or more than there "
                          "are steps",
                          &c->bad_input));
    TD_TRY(td_cuda_report(stream, TD_EVALUE,
                          "target_lengths: %lld at position %lld is less than 0 or more than there "
                          "are targets",
                          &c->bad_length));
    TD_TRY(td_cuda_report(stream, TD_EVALUE,
                          "target_lengths add up to %lld, but there are %lld targets",
                          &c->bad_total));
    TD_TRY(td_cuda_report(stream, TD_EINDEX, "target %lld of sequence %lld is not a class",
                          &c->bad_class));
    status = td_cuda_status(td_cu_ctc_check(c, s), "looking at targets");
done:
    return status;
}

td_status td_cuda_ctc(const td_ctc_plan *p) {
    td_tensor *own[5] = {NULL};
    td_cu_ctc c = {.width = p->width, .blank = p->blank, .joined = p->joined};
    td_cuda_scratch room = {.data = NULL};
    cudaStream_t s;
    td_status status;
    TD_TRY(td_cuda_begin(p->stream, 6, p->tensors, &s));
    TD_TRY(read_inputs(&c, p->tensors + 2, own));
    if (c.batch == 0)
        goto done;
    TD_TRY(td_cuda_scratch_take(&room, p->stream, sizeof(int64_t) * (size_t)c.batch));
    TD_TRY(td_tensor_empty(TD_F64, td_tensor_device(p->loss), 1, &c.batch, &own[4]));
    c.starts = room.data;
    c.loss = own[4]->data;
    c.alpha = p->alpha->data;
    TD_TRY(check(&c, p->stream, s));
    TD_TRY(td_cuda_status(td_cu_ctc_forward(&c, s), "adding up alignments"));
    TD_TRY(td_copy_into(p->loss, own[4]));
done:
    release_all(own, 5);
    td_cuda_scratch_drop(&room);
    return status;
}

/* Room for what sequences keep from step to step. */
static td_status make_room(td_cu_ctc *c, td_cuda_scratch *room, td_stream stream) {
    size_t batch = (size_t)c->batch, row = 2 * (size_t)c->width + 1;
    td_status status = td_cuda_scratch_take(
        room, stream,
        batch * (3 * row * sizeof(double) + ((size_t)c->width + 1) * sizeof(int64_t)));
    if (status != TD_OK)
        return status;
    c->room = room->data;
    c->starts = (int64_t *)(void *)(c->room + 3 * row * batch);
    c->links = c->starts + batch;
    return TD_OK;
}

td_status td_cuda_ctc_backward(const td_ctc_backward_plan *p) {
    td_tensor *own[8] = {NULL};
    td_cu_ctc c = {.width = p->width,
                   .blank = p->blank,
                   .joined = p->joined,
                   .finite = p->finite,
                   .quiet = true};
    td_cuda_scratch room = {.data = NULL};
    cudaStream_t s;
    td_status status;
    TD_TRY(td_cuda_begin(p->stream, 8, p->tensors, &s));
    TD_TRY(read_inputs(&c, p->tensors + 2, own));
    if (c.batch == 0)
        goto done;
    TD_TRY(td_contiguous_as(p->g, TD_F64, &own[4]));
    TD_TRY(td_contiguous_as(p->loss, TD_F64, &own[5]));
    TD_TRY(td_contiguous_as(p->alpha, TD_F64, &own[6]));
    TD_TRY(td_tensor_empty(TD_F64, td_tensor_device(p->dx), 3, p->log_probs->sizes, &own[7]));
    TD_TRY(make_room(&c, &room, p->stream));
    c.g = own[4]->data;
    c.loss = own[5]->data;
    c.alpha = own[6]->data;
    c.dx = own[7]->data;
    TD_TRY(td_cuda_status(td_cu_ctc_check(&c, s), "looking at targets"));
    TD_TRY(td_cuda_status(td_cu_ctc_backward(&c, s), "adding up alignments"));
    TD_TRY(td_copy_into(p->dx, own[7]));
done:
    release_all(own, 8);
    td_cuda_scratch_drop(&room);
    return status;
}

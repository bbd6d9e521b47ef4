/* select.c: one element of the order of each line, their most frequent ones, and places in
 * sequences that are in order. */
#include "engine/cuda/limits.h"
#include "engine/cuda/order/sort.h"
#include "engine/cuda/reduce/dim_lines.h"
#include "engine/ops/make/copy.h"

/* ---- ranks and medians ---- */

static td_status select_on_cpu(const void *plan) {
    return td_backends[TD_CPU]->select(plan);
}

td_status td_cuda_select_room(td_cu_select *select, td_stream stream, td_cuda_scratch *room) {
    int64_t lines = select->of.lines.outer * select->of.lines.inner, n = select->of.lines.n;
    int64_t pieces = lines < TD_LIMIT(SELECT_FULL) ? TD_LIMIT(SELECT_FULL) / lines : 1;
    int64_t most = (n + TD_LIMIT(SELECT_PIECE) - 1) / TD_LIMIT(SELECT_PIECE);
    pieces = pieces < most ? pieces : most;
    select->piece_len = (n + pieces - 1) / pieces;
    select->pieces = (n + select->piece_len - 1) / select->piece_len;
    int64_t counts =
        2 * select->pieces > TD_CU_SELECT_DIGITS ? 2 * select->pieces : TD_CU_SELECT_DIGITS;
    td_status status = td_cuda_scratch_take(
        room, stream, (size_t)lines * (sizeof(td_cu_selected) + (size_t)counts * sizeof(uint32_t)));
    if (status != TD_OK)
        return status;
    select->found = room->data;
    select->counts = (uint32_t *)(void *)(select->found + lines);
    return TD_OK;
}

static td_status select_long(td_cu_select *select, td_stream stream, cudaStream_t s) {
    td_cuda_scratch room;
    td_status status = td_cuda_select_room(select, stream, &room);
    if (status != TD_OK)
        return status;
    status = td_cuda_status(td_cu_select_long(select, s), "selecting");
    td_cuda_scratch_drop(&room);
    return status;
}

/* Lines are sorted into room of their own; what is equal then lies side by side. */
static td_status select_modes(const td_cu_sort *select, td_stream stream, cudaStream_t s) {
    const td_cu_lines *l = &select->lines;
    size_t count = (size_t)(l->outer * l->n * l->inner);
    td_cu_sort sort = *select;
    td_cuda_scratch room;
    td_status status =
        td_cuda_scratch_take(&room, stream, count * (sizeof(int64_t) + (size_t)sort.keys.size));
    if (status != TD_OK)
        return status;
    sort.first = l->n;
    sort.index = room.data;
    sort.values = sort.index + count;
    status = td_cuda_sort_lines(&sort, stream, s);
    if (status == TD_OK)
        status =
            td_cuda_status(td_cu_take_modes(&sort, select->values, select->index, s), "selecting");
    td_cuda_scratch_drop(&room);
    return status;
}

td_status td_cuda_select(const td_select_plan *p) {
    td_cu_lines lines = td_cuda_lines_of(p->x, p->dim);
    td_tensor *x = NULL, *values = NULL, *index = NULL;
    cudaStream_t s;
    td_status status;
    bool mode = p->selection == TD_SELECT_MODE;
    if (mode ? !td_cuda_can_sort(lines.n) || lines.outer * lines.inner > INT32_MAX
             : lines.n > UINT32_MAX || lines.outer * lines.inner > TD_CUDA_SELECT_LINES)
        return td_cuda_fall_back("select", p, sizeof *p, select_on_cpu, 3, 2);
    if (p->values->numel == 0)
        return TD_OK;
    TD_TRY(td_cuda_begin(p->stream, 3, p->tensors, &s));
    TD_TRY(td_contiguous(p->x, &x));
    TD_TRY(td_cuda_room_for(p->values, &values));
    TD_TRY(td_cuda_room_for(p->index, &index));
    td_cu_select select = {.of = {.lines = lines,
                                  .first = 1,
                                  .keys = td_cuda_keys_of((td_dtype)x->dtype, false),
                                  .x = x->data,
                                  .values = values->data,
                                  .index = index ? index->data : NULL},
                           .selection = (int)p->selection,
                           .rank = p->rank};
    if (mode)
        TD_TRY(select_modes(&select.of, p->stream, s));
    else if (lines.n <= TD_CU_SORT_SHORT)
        TD_TRY(td_cuda_status(td_cu_select_short(&select, s), "selecting"));
    else
        TD_TRY(select_long(&select, p->stream, s));
    TD_TRY(td_cuda_hand_over(p->values, values));
    TD_TRY(td_cuda_hand_over(p->index, index));
done:
    td_release(x);
    td_release(values);
    td_release(index);
    return status;
}

/* ---- places in sequences ---- */

td_status td_cuda_search(const td_search_plan *p) {
    const td_tensor *sequence = p->sequence, *values = p->values;
    cudaStream_t stream;
    td_status status;
    TD_TRY(td_cuda_begin(p->stream, 4, p->tensors, &stream));
    td_cu_search s = {.dtype = values->dtype,
                      .sequence = sequence->data,
                      .values = values->data,
                      .sorter = p->sorter ? p->sorter->data : NULL,
                      .out = p->out->data,
                      .n = sequence->sizes[sequence->ndim - 1],
                      .line = sequence->ndim > 1 ? values->sizes[values->ndim - 1] : 0,
                      .count = values->numel,
                      .sorted = p->sorter ? p->sorter->numel : 0,
                      .right = p->right,
                      .narrow = p->out->dtype == TD_I32};
    if (p->sorter)
        TD_TRY(td_cuda_report(p->stream, TD_EINDEX,
                              "sorter: index %lld is out of range for a line of %lld", &s.report));
    status = td_cuda_status(td_cu_run_search(&s, stream), "searching");
done:
    return status;
}

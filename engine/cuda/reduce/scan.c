/* scan.c: running sums and their like along a dim. */
#include "engine/cuda/limits.h"
#include "engine/cuda/reduce/dim_lines.h"
#include "engine/cuda/reduce/scan_code.h"
#include "engine/ops/make/copy.h"

enum {
    MOST_PIECES = 1024,
    TILE = 1024 /* elements that a block takes at once */
};

static void spread(td_cu_scan *s) {
    int64_t lines = s->lines.outer * s->lines.inner, n = s->lines.n, pieces = 1;
    s->alone = n <= TD_LIMIT(SCAN_SHORT) ||
               (lines >= TD_LIMIT(SCAN_LINES) && s->lines.inner >= TD_LIMIT(SCAN_BESIDE));
    if (lines < TD_LIMIT(SCAN_FULL) / 2 && n >= 2 * TD_LIMIT(SCAN_PIECE)) {
        pieces = TD_LIMIT(SCAN_FULL) / lines;
        pieces = pieces < n / TD_LIMIT(SCAN_PIECE) ? pieces : n / TD_LIMIT(SCAN_PIECE);
        pieces = pieces < MOST_PIECES ? pieces : MOST_PIECES;
    }
    s->piece_len = ((n + pieces - 1) / pieces + TILE - 1) / TILE * TILE;
    s->pieces = (n + s->piece_len - 1) / s->piece_len;
}

td_status td_cuda_scan(const td_scan_plan *p) {
    td_tensor *x = NULL, *a = NULL, *out = NULL, *index = NULL;
    td_cuda_scratch totals = {.data = NULL};
    cudaStream_t stream;
    td_status status;
    if (p->out->numel == 0)
        return TD_OK;
    TD_TRY(td_cuda_begin(p->stream, 4, p->tensors, &stream));
    TD_TRY(td_contiguous(p->x, &x));
    if (p->a)
        TD_TRY(td_contiguous(p->a, &a));
    TD_TRY(td_cuda_room_for(p->out, &out));
    TD_TRY(td_cuda_room_for(p->index, &index));
    td_cu_scan s = {.lines = td_cuda_lines_of(x, p->dim),
                    .kind = (int)p->kind,
                    .from = x->dtype,
                    .to = out->dtype,
                    .integers = !td_dtype_is_float((td_dtype)out->dtype),
                    .x = x->data,
                    .a = a ? a->data : NULL,
                    .out = out->data,
                    .index = index ? index->data : NULL};
    spread(&s);
    if (s.pieces > 1)
        TD_TRY(td_cuda_scratch_take(&totals, p->stream,
                                    (size_t)(s.lines.outer * s.lines.inner * s.pieces) *
                                        TD_CU_SCAN_STATE));
    TD_TRY(td_cuda_status(td_cu_run_scan(&s, totals.data, stream), "scanning"));
    TD_TRY(td_cuda_hand_over(p->out, out));
    TD_TRY(td_cuda_hand_over(p->index, index));
done:
    td_release(x);
    td_release(a);
    td_release(out);
    td_release(index);
    td_cuda_scratch_drop(&totals);
    return status;
}

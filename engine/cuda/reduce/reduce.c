/* reduce.c: reductions and places of extremes: shapes, and how they are spread over the device. */
#include "engine/cuda/limits.h"
#include "engine/cuda/reduce/reduction.h"

#include <string.h>

enum {
    MOST_PIECES = 2048,
    BLOCK = 256,
    COLUMNS = 32, /* threads with neighbouring outputs */
    SIDE = 4      /* outputs of such a thread, where elements can be read so */
};

/* ---- shapes ---- */

static void choose_pieces(td_cu_reduction *s) {
    int64_t each = s->by_columns ? COLUMNS * SIDE : BLOCK / s->lanes;
    int64_t blocks = (s->outputs + each - 1) / each;
    int64_t least = s->by_columns ? TD_LIMIT(REDUCE_PIECE_COLUMNS) : TD_LIMIT(REDUCE_PIECE_ROWS);
    int64_t pieces = 1;
    if (blocks < TD_LIMIT(REDUCE_FULL) / 2 && s->count >= 2 * least) {
        pieces = TD_LIMIT(REDUCE_FULL) / blocks;
        pieces = pieces < s->count / least ? pieces : s->count / least;
        pieces = pieces < MOST_PIECES ? pieces : MOST_PIECES;
    }
    s->piece_len = (s->count + pieces - 1) / pieces;
    if (pieces > 1 && !s->by_columns) /* so that a piece begins where 16 bytes begin */
        s->piece_len = (s->piece_len + BLOCK - 1) / BLOCK * BLOCK;
    s->pieces = pieces > 1 ? (s->count + s->piece_len - 1) / s->piece_len : 1;
}

void td_cuda_reduction_spread(td_cu_reduction *s) {
    int64_t stride = s->reduced_strides[s->nreduced - 1];
    s->by_columns =
        s->kept_strides[s->nkept - 1] == 1 && s->outputs > 1 && (stride != 1 || s->count == 1);
    s->lanes = 1;
    while (s->lanes < COLUMNS && s->lanes * TD_LIMIT(REDUCE_EACH) < s->count)
        s->lanes *= 2;
    if (s->count > TD_LIMIT(REDUCE_BLOCK))
        s->lanes = BLOCK;
    choose_pieces(s);
}

td_cu_reduction td_cuda_reduction_of(const td_tensor *x, uint32_t mask, const td_tensor *out) {
    td_reduction r;
    td_cu_reduction s = {.nkept = 0};
    td_reduction_plan(x, mask, out, &r);
    s.nkept = r.nkept;
    s.nreduced = r.nreduced;
    s.outputs = r.outputs;
    s.count = r.count;
    for (int d = 0; d < r.nkept; d++) {
        s.kept_sizes[d] = r.kept_sizes[d];
        s.kept_strides[d] = r.kept_strides[d];
        s.out_strides[d] = r.out_strides[d];
    }
    for (int d = 0; d < r.nreduced; d++) {
        s.reduced_sizes[d] = r.reduced_sizes[d];
        s.reduced_strides[d] = r.reduced_strides[d];
    }
    td_cuda_reduction_spread(&s);
    return s;
}

td_status td_cuda_reduction_room(const td_cu_reduction *s, td_stream stream,
                                 td_cuda_scratch *partial) {
    if (s->pieces == 1)
        return TD_OK;
    return td_cuda_scratch_take(partial, stream, (size_t)(s->pieces * s->outputs) * TD_CU_PARTIAL);
}

/* ---- reduce ---- */

/* Does `compute` hold every number of `from` as it is, and are both summed alike? */
static bool is_exact(td_dtype from, td_dtype compute) {
    return from == compute || (td_dtype_is_float(from) == td_dtype_is_float(compute) &&
                               compute != TD_BOOL && td_dtype_promote(from, compute) == compute);
}

/* Norms of float64, whose squares may be out of range. */
static bool is_wide_norm(const td_reduce_plan *p) {
    return p->reducer == TD_REDUCE_SQUARE_SUM && p->finish == TD_FINISH_POWER && p->param == 0.5 &&
           p->compute == TD_F64;
}

/* p-norms of float64: of powers that may be out of range the root is wanted. */
static bool is_wide_power(const td_reduce_plan *p) {
    return p->reducer == TD_REDUCE_POWER_SUM && p->finish == TD_FINISH_POWER &&
           p->compute == TD_F64;
}

td_status td_cuda_reduce(const td_reduce_plan *p) {
    td_cuda_scratch partial = {.data = NULL}, centers = {.data = NULL};
    td_cu_reduction s;
    cudaStream_t stream;
    td_status status;
    TD_TRY(td_cuda_begin(p->stream, 2, p->tensors, &stream));
    if (p->out->numel == 0)
        goto done;
    s = td_cuda_reduction_of(p->x, p->mask, p->out);
    td_cu_fold f = {.x = p->x->data,
                    .out = p->out->data,
                    .from = p->x->dtype,
                    .compute = p->compute,
                    .to = p->out->dtype,
                    .exact = is_exact((td_dtype)p->x->dtype, p->compute),
                    .fold = is_wide_norm(p) ? TD_CU_NORM : (int)p->reducer,
                    .finish = (int)p->finish,
                    .param = p->param,
                    .power = p->power};
    TD_TRY(td_cuda_reduction_room(&s, p->stream, &partial));
    if (p->reducer == TD_REDUCE_CENTERED || is_wide_power(p)) {
        td_cu_fold first = f;
        TD_TRY(td_cuda_scratch_take(&centers, p->stream, sizeof(double) * (size_t)s.outputs));
        first.fold = p->reducer == TD_REDUCE_CENTERED ? TD_CU_MEAN : TD_CU_SCALE;
        first.centers = f.centers = centers.data;
        if (s.count > 0)
            TD_TRY(td_cuda_status(td_cu_run_fold(&s, &first, partial.data, stream), "averaging"));
        else
            f.centers = NULL;
    }
    TD_TRY(td_cuda_status(td_cu_run_fold(&s, &f, partial.data, stream), "reducing"));
done:
    td_cuda_scratch_drop(&centers);
    td_cuda_scratch_drop(&partial);
    return status;
}

/* ---- find ---- */

/* Over several dims places count in row-major order, which the strides' order may not be. */
static void set_order(td_cu_reduction *s, const td_tensor *x) {
    s->nreduced = 0;
    for (int d = 0; d < x->ndim; d++) {
        int last = s->nreduced - 1;
        if (x->sizes[d] == 1)
            continue;
        if (last >= 0 && s->reduced_strides[last] == x->strides[d] * x->sizes[d]) {
            s->reduced_sizes[last] *= x->sizes[d];
            s->reduced_strides[last] = x->strides[d];
            continue;
        }
        s->reduced_sizes[++last] = x->sizes[d];
        s->reduced_strides[last] = x->strides[d];
        s->nreduced = last + 1;
    }
    if (s->nreduced == 0) {
        s->reduced_sizes[0] = 1;
        s->reduced_strides[0] = 0;
        s->nreduced = 1;
    }
    td_cuda_reduction_spread(s);
}

td_status td_cuda_find(const td_find_plan *p) {
    td_cuda_scratch partial = {.data = NULL};
    td_cu_reduction s;
    cudaStream_t stream;
    td_status status;
    TD_TRY(td_cuda_begin(p->stream, 3, p->tensors, &stream));
    if (p->index->numel == 0)
        goto done;
    s = td_cuda_reduction_of(p->x, p->mask, p->index);
    if (p->mask & (p->mask - 1))
        set_order(&s, p->x);
    td_cu_find f = {.x = p->x->data,
                    .index = p->index->data,
                    .values = p->values ? p->values->data : NULL,
                    .dtype = p->x->dtype,
                    .least = p->least};
    TD_TRY(td_cuda_reduction_room(&s, p->stream, &partial));
    TD_TRY(td_cuda_status(td_cu_run_find(&s, &f, partial.data, stream), "finding extremes"));
done:
    td_cuda_scratch_drop(&partial);
    return status;
}

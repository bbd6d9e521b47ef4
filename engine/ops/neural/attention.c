/* attention.c: scaled dot product attention. Where the scores of all queries with all keys would be
 * many, they are made block of queries by block, forwards and again backwards, so that no N x N
 * matrix is ever there. */
#include "engine/core/memory.h"
#include "engine/ops/rule_helpers.h"

#include <math.h>
#include <string.h>

#define TD_FAMILY "attention"

/* Scores that are made at once; more of them are made in blocks. */
enum { SCORES = 1 << 19, ROWS_LEAST = 16 };

/* ---- checks ---- */

static td_status check_operands(const td_tensor *q, const td_tensor *k, const td_tensor *v) {
    char a[TD_SHAPE_TEXT], b[TD_SHAPE_TEXT], c[TD_SHAPE_TEXT];
    if (q->dtype != k->dtype || q->dtype != v->dtype)
        return td_fail(TD_EDTYPE, "query, key and value must have one dtype, got %s, %s and %s",
                       td_dtype_name((td_dtype)q->dtype), td_dtype_name((td_dtype)k->dtype),
                       td_dtype_name((td_dtype)v->dtype));
    if (q->ndim < 2 || k->ndim < 2 || v->ndim < 2 ||
        q->sizes[q->ndim - 1] != k->sizes[k->ndim - 1] ||
        k->sizes[k->ndim - 2] != v->sizes[v->ndim - 2])
        return td_fail(TD_ESHAPE,
                       "query (..., L, E), key (..., S, E) and value (..., S, Ev) don't fit: "
                       "shapes %s, %s and %s",
                       td_tensor_shape_text(q, a), td_tensor_shape_text(k, b),
                       td_tensor_shape_text(v, c));
    return td_check_float((td_dtype)q->dtype);
}

static td_status check_mask(const td_tensor *mask, const td_tensor *q, bool causal) {
    if (!mask)
        return TD_OK;
    if (causal)
        return td_fail(TD_EVALUE, "give attn_mask or is_causal, not both");
    if (mask->dtype != TD_BOOL && mask->dtype != q->dtype && mask->dtype != TD_F32)
        return td_fail(TD_EDTYPE, "attn_mask must be bool or %s as the query, got %s",
                       td_dtype_name((td_dtype)q->dtype), td_dtype_name((td_dtype)mask->dtype));
    return TD_OK;
}

/* ---- heads that share keys and values ---- */

static td_status check_heads(const td_tensor *q, const td_tensor *x, const char *name) {
    if (q->ndim < 3 || x->ndim < 3)
        return td_fail(TD_ESHAPE, "enable_gqa needs heads: (..., H, L, E)");
    int64_t wanted = q->sizes[q->ndim - 3], own = x->sizes[x->ndim - 3];
    if (own == 0 || wanted % own)
        return td_fail(TD_ESHAPE, "%lld heads of the query can't share %lld of the %s",
                       (long long)wanted, (long long)own, name);
    return TD_OK;
}

/* Replace *x by itself with each head repeated for the query's. */
static td_status repeat_heads(const td_tensor *q, td_tensor **x, const char *name) {
    td_tensor *y = NULL;
    int64_t sizes[TD_MAX_DIMS + 1];
    td_status status = TD_OK;
    TD_TRY(check_heads(q, *x, name));
    int n = (*x)->ndim;
    memcpy(sizes, (*x)->sizes, sizeof(int64_t) * (size_t)(n - 2));
    sizes[n - 2] = q->sizes[q->ndim - 3] / (*x)->sizes[n - 3];
    sizes[n - 1] = (*x)->sizes[n - 2];
    sizes[n] = (*x)->sizes[n - 1];
    if (sizes[n - 2] == 1)
        goto done;
    y = td_retain(*x);
    TD_STEP(&y, unsqueeze, TD_T(y), TD_I(-3));
    TD_STEP(&y, expand, TD_T(y), TD_INTS(n + 1, sizes));
    TD_STEP(x, flatten, TD_T(y), TD_I(n - 3), TD_I(n - 2));
done:
    td_release(y);
    return status;
}

/* ---- blocks of queries ---- */

typedef struct block {
    int64_t first, rows, keys; /* queries from `first` on, which look at the first `keys` keys */
} block;

/* Queries that are worked on at once. */
static int64_t rows_at_once(const td_tensor *q, const td_tensor *k) {
    int64_t batch = 1, keys = k->sizes[k->ndim - 2], other = 1;
    for (int d = 0; d < q->ndim - 2; d++)
        batch *= q->sizes[d];
    for (int d = 0; d < k->ndim - 2; d++)
        other *= k->sizes[d];
    batch = other > batch ? other : batch;
    int64_t row = batch > 0 && keys > 0 ? (keys > SCORES / batch ? SCORES : batch * keys) : 1;
    int64_t rows = SCORES / row;
    return rows < ROWS_LEAST ? ROWS_LEAST : rows;
}

static td_status take_rows(td_tensor *x, int64_t first, int64_t rows, td_tensor **out) {
    return TD_APPLY(out, narrow, TD_T(x), TD_I(-2), TD_I(first), TD_I(rows));
}

/* The part of a mask for a block; of a causal one it is made. NULL where nothing is masked. */
static td_status mask_of(td_tensor *mask, bool causal, const td_tensor *q, const block *b,
                         td_tensor **out) {
    const int64_t sizes[2] = {b->rows, b->keys};
    td_status status = TD_OK;
    if (mask && mask->ndim > 1 && mask->sizes[mask->ndim - 2] > 1)
        return take_rows(mask, b->first, b->rows, out);
    if (mask)
        *out = td_retain(mask);
    if (!causal)
        return TD_OK;
    TD_TRY(
        TD_APPLY(out, ones, TD_INTS(2, sizes), TD_DTYPE(TD_BOOL), TD_DEVICE(td_tensor_device(q))));
    TD_STEP(out, tril, TD_T(*out), TD_I(b->first));
done:
    return status;
}

/* Probabilities of the keys for a block of queries. */
static td_status block_weights(const td_value *a, const block *b, td_tensor *q, td_tensor *k,
                               td_tensor **out) {
    td_tensor *mask = NULL;
    td_status status = TD_OK;
    TD_TRY(mask_of(td_arg_tensor(a[3]), a[4].b, q, b, &mask));
    status = TD_APPLY(out, attention_weights, TD_T(q), TD_T(k), td_tensor_or_nil(mask), a[5],
                      TD_B(mask && !a[4].b));
done:
    td_release(mask);
    return status;
}

static block block_at(const td_value *a, int64_t first, int64_t step) {
    const td_tensor *q = a[0].tensor, *k = a[1].tensor;
    int64_t queries = q->sizes[q->ndim - 2], keys = k->sizes[k->ndim - 2];
    int64_t rows = queries - first < step ? queries - first : step;
    bool fewer = a[4].b && first + rows < keys;
    return (block){first, rows, fewer ? first + rows : keys};
}

/* (query, key, value, mask, causal, scale) */
static td_status run_block(const td_value *a, const block *b, td_tensor **out) {
    td_tensor *q = NULL, *k = NULL, *v = NULL, *p = NULL;
    td_status status = TD_OK;
    TD_TRY(take_rows(a[0].tensor, b->first, b->rows, &q));
    TD_TRY(take_rows(a[1].tensor, 0, b->keys, &k));
    TD_TRY(take_rows(a[2].tensor, 0, b->keys, &v));
    TD_TRY(block_weights(a, b, q, k, &p));
    status = TD_APPLY(out, matmul, TD_T(p), TD_T(v));
done:
    td_release(q);
    td_release(k);
    td_release(v);
    td_release(p);
    return status;
}

static td_status join_blocks(td_tensor **parts, int64_t n, td_tensor **out) {
    return TD_APPLY(out, cat, TD_TENSORS((int32_t)n, parts), TD_I(-2));
}

static td_status new_parts(int64_t queries, int64_t step, int64_t *n, td_tensor ***parts) {
    *n = (queries + step - 1) / step;
    *parts = td_calloc((size_t)*n, sizeof **parts);
    return *parts ? TD_OK : td_fail(TD_ENOMEM, "out of memory");
}

static void free_parts(td_tensor **parts, int64_t n) {
    for (int64_t k = 0; parts && k < n; k++)
        td_release(parts[k]);
    td_free(parts);
}

static td_status run_attention_blocks(td_call *call) {
    const td_value *a = call->args;
    const td_tensor *q = a[0].tensor;
    td_tensor **parts = NULL;
    int64_t step = rows_at_once(q, a[1].tensor), n = 0;
    td_status status = TD_OK;
    TD_TRY(new_parts(q->sizes[q->ndim - 2], step, &n, &parts));
    for (int64_t i = 0; i < n; i++) {
        block b = block_at(a, i * step, step);
        TD_TRY(run_block(a, &b, &parts[i]));
    }
    status = join_blocks(parts, n, &call->out[0]);
done:
    free_parts(parts, n);
    return status;
}

/* ---- and back ---- */

/* *sum += x^T y, of which the first rows may be all that there is. */
static td_status add_product(td_tensor **sum, td_tensor *x, td_tensor *y) {
    td_tensor *more = NULL, *turned = NULL, *rest = NULL;
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(&turned, transpose, TD_T(x), TD_I(-1), TD_I(-2)));
    TD_TRY(TD_APPLY(&more, matmul, TD_T(turned), TD_T(y)));
    if (*sum && (*sum)->sizes[(*sum)->ndim - 2] < more->sizes[more->ndim - 2]) {
        int64_t had = (*sum)->sizes[(*sum)->ndim - 2];
        TD_TRY(take_rows(more, had, more->sizes[more->ndim - 2] - had, &rest));
        TD_STEP(&more, narrow, TD_T(more), TD_I(-2), TD_I(0), TD_I(had));
        TD_STEP(&more, add, TD_T(*sum), TD_T(more));
        TD_STEP(&more, cat, TD_TENSORS(2, ((td_tensor *[]){more, rest})), TD_I(-2));
    } else if (*sum) {
        TD_STEP(&more, add, TD_T(*sum), TD_T(more));
    }
    td_release(*sum);
    *sum = td_retain(more);
done:
    td_release(more);
    td_release(turned);
    td_release(rest);
    return status;
}

/* Gradients of one block: *dq afresh, *dk and *dv with those of the blocks before. */
static td_status back_block(const td_value *a, const block *b, td_tensor *gout, td_tensor **dq,
                            td_tensor **dk, td_tensor **dv) {
    td_tensor *q = NULL, *k = NULL, *v = NULL, *p = NULL, *g = NULL, *s = NULL;
    td_status status = TD_OK;
    TD_TRY(take_rows(a[0].tensor, b->first, b->rows, &q));
    TD_TRY(take_rows(gout, b->first, b->rows, &g));
    TD_TRY(take_rows(a[1].tensor, 0, b->keys, &k));
    TD_TRY(take_rows(a[2].tensor, 0, b->keys, &v));
    TD_TRY(block_weights(a, b, q, k, &p));
    TD_TRY(add_product(dv, p, g));
    TD_STEP(&v, transpose, TD_T(v), TD_I(-1), TD_I(-2));
    TD_TRY(TD_APPLY(&s, matmul, TD_T(g), TD_T(v)));
    TD_STEP(&s, softmax_backward, TD_T(p), TD_T(s), TD_I(-1));
    TD_STEP(&s, mul, TD_T(s), a[5]);
    TD_TRY(TD_APPLY(dq, matmul, TD_T(s), TD_T(k)));
    status = add_product(dk, s, q);
done:
    td_release(q);
    td_release(k);
    td_release(v);
    td_release(p);
    td_release(g);
    td_release(s);
    return status;
}

/* Keys that no query looks at have no gradient; x is the tensor whose rows are to be there. */
static td_status fill_rows(td_tensor **dx, const td_tensor *x) {
    td_tensor *none = NULL;
    int64_t sizes[TD_MAX_DIMS], rows = x->sizes[x->ndim - 2];
    int n = (*dx)->ndim;
    td_status status = TD_OK;
    if ((*dx)->sizes[n - 2] == rows)
        return TD_OK;
    memcpy(sizes, (*dx)->sizes, sizeof(int64_t) * (size_t)n);
    sizes[n - 2] = rows - sizes[n - 2];
    TD_TRY(TD_APPLY(&none, zeros, TD_INTS(n, sizes), TD_DTYPE((td_dtype)x->dtype),
                    TD_DEVICE(td_tensor_device(x))));
    TD_STEP(dx, cat, TD_TENSORS(2, ((td_tensor *[]){*dx, none})), TD_I(-2));
done:
    td_release(none);
    return status;
}

static td_status grad_attention_blocks(td_grad *grad) {
    const td_value *a = grad->args;
    const td_tensor *q = a[0].tensor;
    td_tensor **parts = NULL, *dk = NULL, *dv = NULL;
    int64_t step = rows_at_once(q, a[1].tensor), n = 0;
    td_status status = TD_OK;
    TD_TRY(new_parts(q->sizes[q->ndim - 2], step, &n, &parts));
    for (int64_t i = 0; i < n; i++) {
        block b = block_at(a, i * step, step);
        TD_TRY(back_block(a, &b, grad->gout[0], &parts[i], &dk, &dv));
    }
    TD_TRY(fill_rows(&dk, a[1].tensor));
    TD_TRY(fill_rows(&dv, a[2].tensor));
    TD_TRY(join_blocks(parts, n, &grad->in[0]));
    grad->in[1] = td_retain(dk);
    grad->in[2] = td_retain(dv);
done:
    free_parts(parts, n);
    td_release(dk);
    td_release(dv);
    return status;
}

/* ---- the operator ---- */

/* Are there so many scores that they are made in blocks? Those of a mask that learns, or that are
 * dropped, are kept. */
static bool wants_blocks(const td_value *a, const td_tensor *q, const td_tensor *k) {
    const td_tensor *mask = td_arg_tensor(a[3]);
    return td_arg_double(a[4]) == 0 && !(mask && mask->requires_grad) && q->numel > 0 &&
           k->sizes[k->ndim - 2] > 0 && q->sizes[q->ndim - 2] > rows_at_once(q, k);
}

static td_status attend(td_call *call, td_tensor *k, td_tensor *v, double scale) {
    const td_value *a = call->args;
    td_tensor *q = a[0].tensor, *mask = NULL;
    td_status status = TD_OK;
    if (wants_blocks(a, q, k))
        return TD_APPLY(&call->out[0], attention_blocks, a[0], TD_T(k), TD_T(v), a[3], a[5],
                        TD_F(scale));
    const block whole = {0, q->sizes[q->ndim - 2], k->sizes[k->ndim - 2]};
    TD_TRY(mask_of(td_arg_tensor(a[3]), a[5].b, q, &whole, &mask));
    status = TD_APPLY(&call->out[0], attention_whole, a[0], TD_T(k), TD_T(v),
                      td_tensor_or_nil(mask), TD_F(scale), a[4], TD_B(!a[5].b));
done:
    td_release(mask);
    return status;
}

static td_status run_attention(td_call *call) {
    const td_value *a = call->args;
    td_tensor *q = a[0].tensor, *k = td_retain(a[1].tensor), *v = td_retain(a[2].tensor);
    td_status status = TD_OK;
    TD_TRY(check_operands(q, k, v));
    TD_TRY(check_mask(td_arg_tensor(a[3]), q, a[5].b));
    if (a[7].b) {
        TD_TRY(repeat_heads(q, &k, "key"));
        TD_TRY(repeat_heads(q, &v, "value"));
    }
    double scale = td_is_nil(a[6]) ? 1 / sqrt((double)q->sizes[q->ndim - 1]) : a[6].f;
    status = attend(call, k, v, scale);
done:
    td_release(k);
    td_release(v);
    return status;
}

TD_OPERATOR(scaled_dot_product_attention) = {
    .schema = "(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=nil, "
              "float dropout_p=0, bool is_causal=false, *, float? scale=nil, "
              "bool enable_gqa=false) -> Tensor",
    .doc = "softmax(query key^T scale + mask) value, over the last two dims.",
    .shapes = "query (..., Hq, L, E), key (..., H, S, E), value (..., H, S, Ev), attn_mask to "
              "(..., Hq, L, S) -> (..., Hq, L, Ev) if enable_gqa | query (*, L, E), key (*, S, E), "
              "value (*, S, Ev), attn_mask to (*, L, S) -> (*, L, Ev)",
    .takes = "floating, one dtype; attn_mask bool too",
    .notes = "scale is 1 / sqrt(E) where it is not given. Either attn_mask or is_causal, with "
             "which query i sees keys 1 to i. True in a mask of bool takes part; numbers are added "
             "to the scores. A query that takes part in nothing gives zeros. With enable_gqa Hq is "
             "a multiple of H. dropout_p drops whenever it is over 0: in evaluation give 0.",
    .run = run_attention,
    .autocast = {[TD_CPU] = TD_AUTOCAST_LOWER, [TD_CUDA] = TD_AUTOCAST_LOWER},
    .flags = TD_OP_FUNCTION_ONLY,
};
TD_OPERATOR(attention_weights) = {
    .schema = "(Tensor query, Tensor key, Tensor? mask, float scale, bool dead) -> Tensor",
    .doc = "Probabilities of the keys for each query; all 0 where `dead` and everything is masked.",
    .formula = "s = matmul(widened(query) * scale, transpose(widened(key), -2, -1));"
               "m = if(mask == nil, s, masked_scores(s, mask));"
               "p = if(dead and key.size(key.ndim - 2) > 0, alive_softmax(m), softmax(m, -1));"
               "to(p, query.dtype)",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(alive_softmax) = {
    .schema = "(Tensor scores) -> Tensor",
    .doc = "softmax along the last dim; 0 where all scores are -inf.",
    .formula = "none = amax(detach(scores), -1, keepdim=true) == -inf;"
               "where(none, 0.0, softmax(where(none, 0.0, scores), -1))",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(attention_whole) = {
    .schema = "(Tensor query, Tensor key, Tensor value, Tensor? mask, float scale, "
              "float dropout_p, bool dead) -> Tensor",
    .doc = "Attention with all scores at once.",
    .formula = "p = attention_weights(query, key, mask, scale, if(mask == nil, false, dead));"
               "matmul(if(dropout_p == 0, p, dropout(p, dropout_p)), value)",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(attention_blocks) = {
    .schema = "(Tensor query, Tensor key, Tensor value, Tensor? mask, bool causal, float scale) "
              "-> Tensor",
    .doc = "Attention with the scores of some queries at a time.",
    .run = run_attention_blocks,
    .backward = grad_attention_blocks,
    .saves = "query, key, value, mask",
    .flags = TD_OP_INTERNAL,
};

/* true: taken part in; numbers are added. */
static td_status run_masked_scores(td_call *call) {
    const td_value *a = call->args;
    td_tensor *added = NULL;
    td_status status = TD_OK;
    if (a[1].tensor->dtype == TD_BOOL)
        return TD_APPLY(&call->out[0], where, a[1], a[0], TD_F(-INFINITY));
    TD_TRY(TD_APPLY(&added, to, a[1], TD_DTYPE((td_dtype)a[0].tensor->dtype)));
    status = TD_APPLY(&call->out[0], add, a[0], TD_T(added));
done:
    td_release(added);
    return status;
}
TD_OPERATOR(masked_scores) = {
    .schema = "(Tensor scores, Tensor mask) -> Tensor",
    .doc = "Scores with a mask of truths or of numbers to add.",
    .run = run_masked_scores,
    .flags = TD_OP_INTERNAL,
};

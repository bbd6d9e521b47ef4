/* cublaslt.c: the table of cuBLASLt's calls, in a module of its own. */
#include "engine/cuda/loaded_libraries/cublaslt.h"

#include "engine/core/dtype.h"

#include <cublasLt.h>
#include <string.h>

struct td_lt_way {
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t a, b, out;
    cublasLtMatmulAlgo_t algorithm;
    cudaDataType scale; /* of what products are multiplied by */
    int has_bias;
};

static size_t version(void) {
    return cublasLtGetVersion();
}

static int start(void **handle) {
    return (int)cublasLtCreate((cublasLtHandle_t *)handle);
}

static void drop(td_lt_way *w) {
    if (w->product)
        (void)cublasLtMatmulDescDestroy(w->product);
    if (w->a)
        (void)cublasLtMatrixLayoutDestroy(w->a);
    if (w->b)
        (void)cublasLtMatrixLayoutDestroy(w->b);
    if (w->out)
        (void)cublasLtMatrixLayoutDestroy(w->out);
    memset(w, 0, sizeof *w);
}

/* By the factors' dtype: types of factors and results, in which sums are kept, and of what they are
 * multiplied by. */
static const struct {
    cudaDataType factors, out;
    cublasComputeType_t sums;
    cudaDataType scale;
} types[TD_DTYPE_COUNT] = {[TD_I8] = {CUDA_R_8I, CUDA_R_32I, CUBLAS_COMPUTE_32I, CUDA_R_32I},
                           [TD_F16] = {CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F, CUDA_R_32F},
                           [TD_BF16] = {CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUDA_R_32F},
                           [TD_F32] = {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F},
                           [TD_F64] = {CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, CUDA_R_64F}};

static int set(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t what, const void *value,
               size_t bytes) {
    return (int)cublasLtMatmulDescSetAttribute(d, what, value, bytes);
}

/* A matrix of rows x columns as it lies, which for turned factors is the transpose. */
static int make_layout(cublasLtMatrixLayout_t *to, cudaDataType type, int turned, int64_t rows,
                       int64_t columns, int64_t ld, int32_t batch, int64_t stride) {
    int bad = (int)cublasLtMatrixLayoutCreate(to, type, (uint64_t)(turned ? columns : rows),
                                              (uint64_t)(turned ? rows : columns), ld);
    if (!bad && batch > 1)
        bad = (int)cublasLtMatrixLayoutSetAttribute(*to, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch,
                                                    sizeof batch);
    if (!bad && batch > 1)
        bad = (int)cublasLtMatrixLayoutSetAttribute(
            *to, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride);
    return bad;
}

static int describe(td_lt_way *w, const td_lt_shape *s) {
    cudaDataType type = types[s->dtype].factors;
    cublasOperation_t a = s->a_turned ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t b = s->b_turned ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    int32_t batch = (int32_t)s->batch;
    w->scale = types[s->dtype].scale;
    w->has_bias = s->has_bias;
    int bad = (int)cublasLtMatmulDescCreate(
        &w->product, s->is_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : types[s->dtype].sums, w->scale);
    if (!bad)
        bad = set(w->product, CUBLASLT_MATMUL_DESC_TRANSA, &a, sizeof a);
    if (!bad)
        bad = set(w->product, CUBLASLT_MATMUL_DESC_TRANSB, &b, sizeof b);
    if (!bad && s->has_bias)
        bad = set(w->product, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    if (!bad)
        bad = make_layout(&w->a, type, s->a_turned, s->m, s->k, s->lda, batch, s->a_batch);
    if (!bad)
        bad = make_layout(&w->b, type, s->b_turned, s->k, s->n, s->ldb, batch, s->b_batch);
    if (!bad)
        bad = make_layout(&w->out, types[s->dtype].out, 0, s->m, s->n, s->ldc, batch, s->out_batch);
    return bad;
}

static int prefer(cublasLtMatmulPreference_t p, cublasLtMatmulPreferenceAttributes_t what,
                  const void *value, size_t bytes) {
    return (int)cublasLtMatmulPreferenceSetAttribute(p, what, value, bytes);
}

/* Parts of sums are added in their order, never in place by whoever comes first. */
static int set_preference(cublasLtMatmulPreference_t p, const td_lt_shape *s, size_t workspace) {
    uint32_t schemes =
        CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
    uint32_t a = (uint32_t)s->a_aligned, b = (uint32_t)s->b_aligned, out = (uint32_t)s->out_aligned;
    int bad = prefer(p, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace);
    if (!bad)
        bad = prefer(p, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes, sizeof schemes);
    if (!bad)
        bad = prefer(p, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &a, sizeof a);
    if (!bad)
        bad = prefer(p, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &b, sizeof b);
    if (!bad)
        bad = prefer(p, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &out, sizeof out);
    if (!bad)
        bad = prefer(p, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &out, sizeof out);
    return bad;
}

static int choose(void *handle, const td_lt_shape *s, size_t workspace, td_lt_way *w) {
    cublasLtMatmulPreference_t preference = NULL;
    cublasLtMatmulHeuristicResult_t found;
    int n = 0;
    int bad = describe(w, s);
    if (!bad)
        bad = (int)cublasLtMatmulPreferenceCreate(&preference);
    if (!bad)
        bad = set_preference(preference, s, workspace);
    if (!bad)
        bad = (int)cublasLtMatmulAlgoGetHeuristic(handle, w->product, w->a, w->b, w->out, w->out,
                                                  preference, 1, &found, &n);
    if (preference)
        (void)cublasLtMatmulPreferenceDestroy(preference);
    if (!bad && (n == 0 || found.state != CUBLAS_STATUS_SUCCESS))
        bad = (int)CUBLAS_STATUS_NOT_SUPPORTED;
    if (bad)
        drop(w);
    else
        w->algorithm = found.algo;
    return bad;
}

/* One or zero of that type. */
static const void *number(cudaDataType type, int one) {
    static const float floats[] = {0, 1};
    static const double doubles[] = {0, 1};
    static const int32_t integers[] = {0, 1};
    return type == CUDA_R_64F   ? (const void *)&doubles[one]
           : type == CUDA_R_32I ? (const void *)&integers[one]
                                : &floats[one];
}

static int run(void *handle, td_lt_way *w, const td_lt_call *c) {
    int bad = w->has_bias
                  ? set(w->product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &c->bias, sizeof c->bias)
                  : 0;
    if (bad)
        return bad;
    return (int)cublasLtMatmul(handle, w->product, number(w->scale, 1), c->a, w->a, c->b, w->b,
                               number(w->scale, 0), c->out, w->out, c->out, w->out, &w->algorithm,
                               c->workspace, c->workspace_bytes, c->stream);
}

extern const td_late_cublaslt td_late_cublaslt_calls;
const td_late_cublaslt td_late_cublaslt_calls = {.version = version,
                                                 .start = start,
                                                 .way_bytes = sizeof(td_lt_way),
                                                 .choose = choose,
                                                 .run = run,
                                                 .drop = drop};

/* test_cublas.cpp: products on the played device: layouts, batches, epilogues, types, refusals. */
#include "check_cpp.h"
#include "include/cublasLt.h"
#include "include/cuda_bf16.h"
#include "include/cuda_fp16.h"

#include <vector>

#define CHECK_BLAS(call) CHECK_STR(cublasGetStatusName(call), "CUBLAS_STATUS_SUCCESS")

struct problem {
    cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
    cudaDataType scale = CUDA_R_32F, in = CUDA_R_32F, out = CUDA_R_32F;
    uint64_t m = 2, n = 3, k = 4;
    int32_t transa = CUBLAS_OP_N, transb = CUBLAS_OP_N, order = CUBLASLT_ORDER_COL, batches = 1;
    uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    const void *bias = nullptr;
    double alpha = 1, beta = 0;
    uint64_t ld_over = 0;   /* of leading dims beyond what is needed */
    uint32_t aligned = 256; /* what is said of pointers */
};

template <typename T>
static void set(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t which, T value) {
    CHECK_BLAS(cublasLtMatmulDescSetAttribute(d, which, &value, sizeof value));
}

static cublasLtMatrixLayout_t layout(const problem &p, cudaDataType type, uint64_t rows,
                                     uint64_t cols) {
    cublasLtMatrixLayout_t l;
    int64_t stride = (int64_t)(rows * cols);
    uint64_t ld = (p.order == CUBLASLT_ORDER_ROW ? cols : rows) + p.ld_over;
    CHECK_BLAS(cublasLtMatrixLayoutCreate(&l, type, rows, cols, (int64_t)ld));
    CHECK_BLAS(cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_ORDER, &p.order, 4));
    CHECK_BLAS(
        cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &p.batches, 4));
    CHECK_BLAS(cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                &stride, sizeof stride));
    return l;
}

/* Asks for an algorithm and multiplies, D being C. */
static cublasStatus_t multiply(const problem &p, const void *A, const void *B, void *D) {
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t d;
    cublasLtMatmulPreference_t preference;
    CHECK_BLAS(cublasLtCreate(&handle));
    CHECK_BLAS(cublasLtMatmulDescCreate(&d, p.compute, p.scale));
    CHECK_BLAS(cublasLtMatmulPreferenceCreate(&preference));
    uint64_t most = 1 << 20;
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                         &most, sizeof most);
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                                         &p.aligned, sizeof p.aligned);
    set(d, CUBLASLT_MATMUL_DESC_TRANSA, p.transa);
    set(d, CUBLASLT_MATMUL_DESC_TRANSB, p.transb);
    set(d, CUBLASLT_MATMUL_DESC_EPILOGUE, p.epilogue);
    set(d, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias);
    bool ta = p.transa != CUBLAS_OP_N, tb = p.transb != CUBLAS_OP_N;
    cublasLtMatrixLayout_t a = layout(p, p.in, ta ? p.k : p.m, ta ? p.m : p.k);
    cublasLtMatrixLayout_t b = layout(p, p.in, tb ? p.n : p.k, tb ? p.k : p.n);
    cublasLtMatrixLayout_t c = layout(p, p.out, p.m, p.n);
    cublasLtMatmulHeuristicResult_t result;
    int found;
    cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(handle, d, a, b, c, c, preference, 1, &result, &found);
    if (status == CUBLAS_STATUS_SUCCESS) {
        float alpha = (float)p.alpha, beta = (float)p.beta;
        int32_t whole_alpha = (int32_t)p.alpha, whole_beta = (int32_t)p.beta;
        const void *at = p.scale == CUDA_R_64F   ? (const void *)&p.alpha
                         : p.scale == CUDA_R_32I ? (const void *)&whole_alpha
                                                 : &alpha;
        const void *bt = p.scale == CUDA_R_64F   ? (const void *)&p.beta
                         : p.scale == CUDA_R_32I ? (const void *)&whole_beta
                                                 : &beta;
        void *workspace = device_array<char>(result.workspaceSize);
        CHECK_INT(cublasLtMatmul(handle, d, at, A, a, B, b, bt, D, c, D, c, &result.algo, workspace,
                                 result.workspaceSize - 1, 0),
                  CUBLAS_STATUS_INVALID_VALUE);
        status = cublasLtMatmul(handle, d, at, A, a, B, b, bt, D, c, D, c, &result.algo, workspace,
                                result.workspaceSize, 0);
        cudaFree(workspace);
    }
    for (cublasLtMatrixLayout_t l : {a, b, c})
        cublasLtMatrixLayoutDestroy(l);
    cublasLtMatmulDescDestroy(d);
    cublasLtMatmulPreferenceDestroy(preference);
    cublasLtDestroy(handle);
    return status;
}

TEST(transposes_and_orders_agree) {
    /* A = [1 2; 3 4; 5 6], B = [1 -1; 2 0], in rows: A B = [5 -1; 11 -3; 17 -5] */
    std::vector<double> rows = {5, -1, 11, -3, 17, -5}, columns = {5, 11, 17, -1, -3, -5};
    double *row_a = upload(std::vector<double>{1, 2, 3, 4, 5, 6});
    double *row_b = upload(std::vector<double>{1, -1, 2, 0}), *out = device_array<double>(6);
    problem p;
    p.compute = CUBLAS_COMPUTE_64F;
    p.scale = p.in = p.out = CUDA_R_64F;
    p.m = 3, p.n = 2, p.k = 2;
    p.order = CUBLASLT_ORDER_ROW;
    CHECK_BLAS(multiply(p, row_a, row_b, out));
    CHECK(download(out, 6) == rows);
    p.order = CUBLASLT_ORDER_COL;
    p.transa = p.transb = CUBLAS_OP_T;
    CHECK_BLAS(multiply(p, row_a, row_b, out));
    CHECK(download(out, 6) == columns);
    p.alpha = 2, p.beta = -1;
    CHECK_BLAS(multiply(p, row_a, row_b, out));
    CHECK(download(out, 6) == columns);
    cudaFree(row_a), cudaFree(row_b), cudaFree(out);
}

TEST(batches_have_strides_and_epilogues_follow) {
    float *a = counting<float>(4, 1), *b = upload(std::vector<float>{1, 1, -1, -1});
    float *out = device_array<float>(2), *bias = upload(std::vector<float>{0.5f});
    problem p;
    p.m = p.n = 1, p.k = 2, p.batches = 2;
    p.epilogue = CUBLASLT_EPILOGUE_RELU_BIAS;
    p.bias = bias;
    CHECK_BLAS(multiply(p, a, b, out));
    CHECK(download(out, 2) == (std::vector<float>{3.5f, 0}));
    p.epilogue = CUBLASLT_EPILOGUE_GELU_BIAS;
    p.alpha = -0.5;
    CHECK_BLAS(multiply(p, a, b, out));
    CHECK_CLOSE(read_one(out), -0.15880801, 1e-7); /* gelu(-1), its approximation by tanh */
    cudaFree(a), cudaFree(b), cudaFree(out), cudaFree(bias);
}

TEST(types_compute_as_they_say) {
    problem p;
    p.m = p.n = 1, p.k = 2;
    __half *h = upload(std::vector<__half>{__half(100.0f), __half(200.0f)});
    float *f = device_array<float>(1), *x = upload(std::vector<float>{1.0f + 1e-4f, 0});
    p.in = CUDA_R_16F;
    CHECK_BLAS(multiply(p, h, h, f));
    CHECK_CLOSE(read_one(f), 50000, 0);
    p.in = CUDA_R_32F;
    CHECK_BLAS(multiply(p, x, x, f));
    CHECK_CLOSE(read_one(f), 1.0002, 1e-7);
    p.compute = CUBLAS_COMPUTE_32F_FAST_TF32;
    CHECK_BLAS(multiply(p, x, x, f));
    CHECK_CLOSE(read_one(f), 1, 0);
    signed char *bytes = upload(std::vector<signed char>(64, -128));
    int *sums = device_array<int>(16);
    p.compute = CUBLAS_COMPUTE_32I;
    p.scale = p.out = CUDA_R_32I;
    p.in = CUDA_R_8I;
    p.m = p.n = 4, p.k = 8;
    CHECK_INT(multiply(p, bytes, bytes, sums), CUBLAS_STATUS_NOT_SUPPORTED);
    p.transa = CUBLAS_OP_T;
    CHECK_BLAS(multiply(p, bytes, bytes, sums));
    CHECK_INT(read_one(sums), 8 << 14);
    p.ld_over = 2;
    CHECK_INT(multiply(p, bytes, bytes, sums), CUBLAS_STATUS_NOT_SUPPORTED);
    p.ld_over = 0, p.aligned = 2;
    CHECK_INT(multiply(p, bytes, bytes, sums), CUBLAS_STATUS_NOT_SUPPORTED);
    p.aligned = 4;
    CHECK_BLAS(multiply(p, bytes, bytes, sums));
    p.m = 3;
    CHECK_INT(multiply(p, bytes, bytes, sums), CUBLAS_STATUS_NOT_SUPPORTED);
    p.m = 4, p.in = CUDA_R_64F;
    CHECK_INT(multiply(p, bytes, bytes, sums), CUBLAS_STATUS_NOT_SUPPORTED);
    for (void *q : {(void *)h, (void *)f, (void *)x, (void *)bytes, (void *)sums})
        cudaFree(q);
}

TEST(gemm_works_in_its_stream) {
    cublasHandle_t handle;
    cudaStream_t stream;
    CHECK_BLAS(cublasCreate(&handle));
    CHECK_OK(cudaStreamCreateWithFlags(&stream, cudaStreamDefault));
    CHECK_BLAS(cublasSetStream(handle, stream));
    float *a = counting<float>(4, 1), *out = device_array<float>(4), one = 1, zero = 0;
    td_played_reset_counts();
    CHECK_BLAS(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_T, 2, 2, 2, &one, a, CUDA_R_32F, 2, a,
                            CUDA_R_32F, 2, &zero, out, CUDA_R_32F, 2, CUBLAS_COMPUTE_32F,
                            CUBLAS_GEMM_DEFAULT));
    CHECK_INT(td_played_launches_of("cublasGemmEx"), 1);
    CHECK(download(out, 4) == (std::vector<float>{10, 14, 14, 20}));
    CHECK_INT(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_T, 2, 2, 2, &one, a, CUDA_R_32F, 1, a,
                           CUDA_R_32F, 2, &zero, out, CUDA_R_32F, 2, CUBLAS_COMPUTE_32F,
                           CUBLAS_GEMM_DEFAULT),
              CUBLAS_STATUS_INVALID_VALUE);
    CHECK_BLAS(cublasDestroy(handle));
    cudaStreamDestroy(stream), cudaFree(a), cudaFree(out);
}

int main() {
    RUN(transposes_and_orders_agree);
    RUN(batches_have_strides_and_epilogues_follow);
    RUN(types_compute_as_they_say);
    RUN(gemm_works_in_its_stream);
    return check_finish();
}

/* cublas.cpp: cuBLAS' and cuBLASLt's products by plain loops, which sum up doubles.
 *
 * What the descriptors say is copied when a call is made; matrices are read when its turn comes. A
 * product whose types, layouts or dims the library has no kernels for is NOT_SUPPORTED, as there.
 */
#include "include/cublasLt.h"
#include "include/played/played.h"
#include "library.h"
#include "runtime.h"

#include <atomic>
#include <cmath>

using namespace td_played;

struct cublasContext {
    cudaStream_t stream = nullptr;
    cublasPointerMode_t mode = CUBLAS_POINTER_MODE_HOST;
    cublasMath_t math = CUBLAS_DEFAULT_MATH;
};
struct cublasLtContext {
    int device;
};
struct cublasLtMatmulDescOpaque_t {
    cublasComputeType_t compute;
    cudaDataType scale, bias_type;
    bool has_bias_type;
    int32_t pointer_mode, transa, transb;
    uint32_t epilogue;
    const void *bias;
    int64_t bias_stride;
};
struct cublasLtMatrixLayoutOpaque_t {
    cudaDataType type;
    int32_t order;
    uint64_t rows, cols;
    int64_t ld;
    int32_t batches;
    int64_t stride;
};
struct cublasLtMatmulPreferenceOpaque_t {
    uint64_t workspace;
    uint32_t aligned = 256; /* the least that was said */
};

typedef cublasLtMatmulDescOpaque_t desc;
typedef cublasLtMatrixLayoutOpaque_t layout;

namespace {

constexpr size_t WORKSPACE = 4096;
constexpr uint64_t ALGO = 0x7061; /* the one algorithm there is */

/* A product that waits: D = act(alpha op(A) op(B) + beta C + bias). */
struct product {
    desc d;
    layout a, b, c, out;
    const void *A, *B, *C;
    void *D;
    double alpha, beta;
    const void *alpha_at, *beta_at; /* on the device */
};

size_t place_in(const layout &l, uint64_t row, uint64_t col) {
    return l.order == CUBLASLT_ORDER_ROW ? row * (uint64_t)l.ld + col : col * (uint64_t)l.ld + row;
}

size_t extent(const layout &l) {
    if (!l.rows || !l.cols)
        return 0;
    uint64_t batches = (uint64_t)(l.batches - 1) * (uint64_t)l.stride;
    return (place_in(l, l.rows - 1, l.cols - 1) + 1 + batches) * size_of(l.type);
}

double reduced(cublasComputeType_t compute, double x) {
    return compute == CUBLAS_COMPUTE_32F_FAST_TF32   ? to_tf32(x)
           : compute == CUBLAS_COMPUTE_32F_FAST_16F  ? (double)(float)__half(x)
           : compute == CUBLAS_COMPUTE_32F_FAST_16BF ? (double)(float)__nv_bfloat16(x)
                                                     : x;
}

/* Lines of the summed dim, one after another: [outer][inner]. */
std::vector<double> lines(const layout &l, const void *p, uint64_t batch, bool down_columns,
                          cublasComputeType_t compute) {
    uint64_t outer = down_columns ? l.cols : l.rows, inner = down_columns ? l.rows : l.cols;
    const char *at = (const char *)p + batch * (uint64_t)l.stride * size_of(l.type);
    std::vector<double> values(outer * inner);
    for (uint64_t i = 0; i < outer; i++)
        for (uint64_t j = 0; j < inner; j++) {
            size_t k = down_columns ? place_in(l, j, i) : place_in(l, i, j);
            values[i * inner + j] = reduced(compute, load(l.type, at, k));
        }
    return values;
}

double activate(uint32_t epilogue, double x) {
    if (epilogue & CUBLASLT_EPILOGUE_RELU)
        return x > 0 || std::isnan(x) ? x : 0;
    if (epilogue & CUBLASLT_EPILOGUE_GELU)
        return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
    return x;
}

void run_batch(const product &p, uint64_t batch, double alpha, double beta) {
    std::vector<double> a = lines(p.a, p.A, batch, p.d.transa != CUBLAS_OP_N, p.d.compute);
    std::vector<double> b = lines(p.b, p.B, batch, p.d.transb == CUBLAS_OP_N, p.d.compute);
    uint64_t m = p.out.rows, n = p.out.cols, k = p.d.transa == CUBLAS_OP_N ? p.a.cols : p.a.rows;
    uint64_t offset = batch * (uint64_t)p.out.stride, c_offset = batch * (uint64_t)p.c.stride;
    for (uint64_t i = 0; i < m; i++)
        for (uint64_t j = 0; j < n; j++) {
            double sum = 0;
            for (uint64_t l = 0; l < k; l++)
                sum += a[i * k + l] * b[j * k + l];
            sum *= alpha;
            if (beta != 0)
                sum += beta * load(p.c.type, p.C, c_offset + place_in(p.c, i, j));
            if (p.d.epilogue & CUBLASLT_EPILOGUE_BIAS)
                sum += load(p.d.bias_type, p.d.bias, batch * (uint64_t)p.d.bias_stride + i);
            store(p.out.type, p.D, offset + place_in(p.out, i, j), activate(p.d.epilogue, sum));
        }
}

void run_product(const product &p) {
    double alpha = p.alpha_at ? load(p.d.scale, p.alpha_at, 0) : p.alpha;
    double beta = p.beta_at ? load(p.d.scale, p.beta_at, 0) : p.beta;
    for (int32_t batch = 0; batch < p.out.batches; batch++)
        run_batch(p, (uint64_t)batch, alpha, beta);
}

/* ---- what there are kernels for ---- */

bool is_float_compute(cublasComputeType_t c) {
    return c == CUBLAS_COMPUTE_32F || c == CUBLAS_COMPUTE_32F_PEDANTIC ||
           c == CUBLAS_COMPUTE_32F_FAST_16F || c == CUBLAS_COMPUTE_32F_FAST_16BF ||
           c == CUBLAS_COMPUTE_32F_FAST_TF32;
}

bool types_fit(const desc &d, const layout &a, const layout &b, const layout &out) {
    if (a.type != b.type)
        return false;
    cudaDataType in = a.type, to = out.type;
    if (d.compute == CUBLAS_COMPUTE_64F || d.compute == CUBLAS_COMPUTE_64F_PEDANTIC)
        return d.scale == CUDA_R_64F && in == CUDA_R_64F && to == CUDA_R_64F;
    if (d.compute == CUBLAS_COMPUTE_32I || d.compute == CUBLAS_COMPUTE_32I_PEDANTIC)
        return in == CUDA_R_8I && ((d.scale == CUDA_R_32I && to == CUDA_R_32I) ||
                                   (d.scale == CUDA_R_32F && to == CUDA_R_8I));
    if (d.compute == CUBLAS_COMPUTE_16F || d.compute == CUBLAS_COMPUTE_16F_PEDANTIC)
        return d.scale == CUDA_R_16F && in == CUDA_R_16F && to == CUDA_R_16F;
    if (!is_float_compute(d.compute) || d.scale != CUDA_R_32F)
        return false;
    return in == CUDA_R_32F
               ? to == CUDA_R_32F
               : (in == CUDA_R_16F || in == CUDA_R_16BF) && (to == in || to == CUDA_R_32F);
}

/* Products of bytes: transposed left sides alone, and dims and leading dims in fours. */
bool bytes_fit(const desc &d, const layout &a, const layout &b, const layout &out) {
    return d.transa == CUBLAS_OP_T && d.transb == CUBLAS_OP_N && out.rows % 4 == 0 &&
           a.rows % 4 == 0 && a.ld % 4 == 0 && b.ld % 4 == 0 && out.ld % 4 == 0 &&
           a.order == CUBLASLT_ORDER_COL && b.order == CUBLASLT_ORDER_COL;
}
/* And pointers: a preference says how they are aligned at least. */
constexpr uint32_t BYTES_ALIGNED = 4;

bool ld_fits(const layout &l) {
    return (uint64_t)l.ld >= (l.order == CUBLASLT_ORDER_ROW ? l.cols : l.rows) && l.batches > 0;
}

cublasStatus_t check(const desc &d, const layout &a, const layout &b, const layout &c,
                     const layout &out) {
    uint64_t m = d.transa == CUBLAS_OP_N ? a.rows : a.cols,
             k = d.transa == CUBLAS_OP_N ? a.cols : a.rows;
    uint64_t n = d.transb == CUBLAS_OP_N ? b.cols : b.rows,
             l = d.transb == CUBLAS_OP_N ? b.rows : b.cols;
    bool dims = k == l && m == out.rows && n == out.cols && c.rows == m && c.cols == n;
    if (!dims || !ld_fits(a) || !ld_fits(b) || !ld_fits(c) || !ld_fits(out) ||
        a.batches != out.batches || b.batches != out.batches || c.batches != out.batches)
        return CUBLAS_STATUS_INVALID_VALUE;
    bool known = d.epilogue == CUBLASLT_EPILOGUE_DEFAULT || d.epilogue == CUBLASLT_EPILOGUE_RELU ||
                 d.epilogue == CUBLASLT_EPILOGUE_BIAS ||
                 d.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS ||
                 d.epilogue == CUBLASLT_EPILOGUE_GELU || d.epilogue == CUBLASLT_EPILOGUE_GELU_BIAS;
    if (!known || !types_fit(d, a, b, out) || c.type != out.type || !m || !n ||
        (a.type == CUDA_R_8I && !bytes_fit(d, a, b, out)))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    return CUBLAS_STATUS_SUCCESS;
}

void check_memory(const char *call, const product &p) {
    check_range(call, "A", p.A, extent(p.a));
    check_range(call, "B", p.B, extent(p.b));
    check_range(call, "D", p.D, extent(p.out));
    if (p.alpha_at || p.beta != 0)
        check_range(call, "C", p.C, extent(p.c));
    if (p.d.epilogue & CUBLASLT_EPILOGUE_BIAS)
        check_range(call, "the bias", p.d.bias, p.out.rows * size_of(p.d.bias_type));
    check_aligned(call, "A", p.A, p.a.type == CUDA_R_8I ? BYTES_ALIGNED : size_of(p.a.type));
    check_aligned(call, "B", p.B, p.b.type == CUDA_R_8I ? BYTES_ALIGNED : size_of(p.b.type));
    check_aligned(call, "D", p.D, size_of(p.out.type));
}

cublasStatus_t queue_product(const char *call, product p, const void *alpha, const void *beta,
                             bool on_device, void *workspace, size_t bytes, cudaStream_t stream) {
    p.alpha = on_device ? 0 : load(p.d.scale, alpha, 0);
    p.beta = on_device ? 0 : load(p.d.scale, beta, 0);
    p.alpha_at = on_device ? alpha : nullptr;
    p.beta_at = on_device ? beta : nullptr;
    if (!p.d.has_bias_type)
        p.d.bias_type = p.out.type == CUDA_R_8I ? CUDA_R_32F : p.out.type;
    check_memory(call, p);
    cudaError_t error = enqueue_library(stream, call, [=] {
        if (bytes)
            memset(workspace, 0xEE, bytes);
        run_product(p);
    });
    return error ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}

/* Copies an attribute of the right size. */
template <typename T> cublasStatus_t take(T *to, const void *value, size_t bytes) {
    if (!value || bytes != sizeof *to)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(to, value, sizeof *to);
    return CUBLAS_STATUS_SUCCESS;
}

} // namespace

/* ---- what tests ask ---- */

static std::atomic<int> last_compute{-1};

const char *td_played_compute(void) {
    switch (last_compute) {
    case CUBLAS_COMPUTE_16F:
        return "16F";
    case CUBLAS_COMPUTE_32F:
        return "32F";
    case CUBLAS_COMPUTE_32F_FAST_16F:
        return "32F_FAST_16F";
    case CUBLAS_COMPUTE_32F_FAST_16BF:
        return "32F_FAST_16BF";
    case CUBLAS_COMPUTE_32F_FAST_TF32:
        return "32F_FAST_TF32";
    case CUBLAS_COMPUTE_64F:
        return "64F";
    case CUBLAS_COMPUTE_32I:
        return "32I";
    }
    return last_compute < 0 ? "" : "pedantic";
}

/* ---- statuses ---- */

static const char *const names[] = {"CUBLAS_STATUS_SUCCESS",
                                    "CUBLAS_STATUS_NOT_INITIALIZED",
                                    "?",
                                    "CUBLAS_STATUS_ALLOC_FAILED",
                                    "?",
                                    "?",
                                    "?",
                                    "CUBLAS_STATUS_INVALID_VALUE",
                                    "CUBLAS_STATUS_ARCH_MISMATCH",
                                    "?",
                                    "?",
                                    "CUBLAS_STATUS_MAPPING_ERROR",
                                    "?",
                                    "CUBLAS_STATUS_EXECUTION_FAILED",
                                    "CUBLAS_STATUS_INTERNAL_ERROR",
                                    "CUBLAS_STATUS_NOT_SUPPORTED",
                                    "CUBLAS_STATUS_LICENSE_ERROR"};

const char *cublasGetStatusName(cublasStatus_t status) {
    return (unsigned)status < sizeof names / sizeof *names ? names[status] : "?";
}

const char *cublasGetStatusString(cublasStatus_t status) {
    return cublasGetStatusName(status);
}

const char *cublasLtGetStatusName(cublasStatus_t status) {
    return cublasGetStatusName(status);
}

const char *cublasLtGetStatusString(cublasStatus_t status) {
    return cublasGetStatusName(status);
}

/* ---- cuBLAS ---- */

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle) {
    int device;
    if (cudaGetDevice(&device))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    *handle = new cublasContext;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
    delete handle;
    return handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int *version) {
    (void)handle;
    *version = CUBLAS_VERSION;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
    if (!handle || !is_stream(stream))
        return CUBLAS_STATUS_INVALID_VALUE;
    handle->stream = stream;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t *stream) {
    *stream = handle->stream;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t bytes) {
    check_range("cublasSetWorkspace", "the workspace", workspace, bytes);
    return handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode) {
    handle->mode = mode;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
    handle->math = mode;
    return CUBLAS_STATUS_SUCCESS;
}

static layout layout_of(cudaDataType type, cublasOperation_t op, int rows, int cols, int ld,
                        int batches, long long stride) {
    bool turned = op != CUBLAS_OP_N;
    return {type,
            CUBLASLT_ORDER_COL,
            (uint64_t)(turned ? cols : rows),
            (uint64_t)(turned ? rows : cols),
            ld,
            batches,
            stride};
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transa,
                                          cublasOperation_t transb, int m, int n, int k,
                                          const void *alpha, const void *A, cudaDataType a_type,
                                          int lda, long long a_stride, const void *B,
                                          cudaDataType b_type, int ldb, long long b_stride,
                                          const void *beta, void *C, cudaDataType c_type, int ldc,
                                          long long c_stride, int batches,
                                          cublasComputeType_t compute, cublasGemmAlgo_t algo) {
    (void)algo;
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (m < 0 || n < 0 || k < 0 || batches < 0)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!m || !n || !batches)
        return CUBLAS_STATUS_SUCCESS;
    product p{};
    if (compute == CUBLAS_COMPUTE_32F && handle->math == CUBLAS_TF32_TENSOR_OP_MATH &&
        a_type == CUDA_R_32F)
        compute = CUBLAS_COMPUTE_32F_FAST_TF32;
    bool whole = compute == CUBLAS_COMPUTE_32I || compute == CUBLAS_COMPUTE_32I_PEDANTIC;
    p.d.compute = compute;
    p.d.scale = compute == CUBLAS_COMPUTE_64F || compute == CUBLAS_COMPUTE_64F_PEDANTIC ? CUDA_R_64F
                : compute == CUBLAS_COMPUTE_16F                                         ? CUDA_R_16F
                : whole                                                                 ? CUDA_R_32I
                        : CUDA_R_32F;
    p.d.transa = transa;
    p.d.transb = transb;
    p.d.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    p.a = layout_of(a_type, transa, m, k, lda, batches, a_stride);
    p.b = layout_of(b_type, transb, k, n, ldb, batches, b_stride);
    p.c = p.out = layout_of(c_type, CUBLAS_OP_N, m, n, ldc, batches, c_stride);
    p.A = A, p.B = B, p.C = C, p.D = C;
    if (cublasStatus_t status = check(p.d, p.a, p.b, p.c, p.out))
        return status;
    return queue_product("cublasGemmEx", p, alpha, beta, handle->mode == CUBLAS_POINTER_MODE_DEVICE,
                         nullptr, 0, handle->stream);
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa,
                            cublasOperation_t transb, int m, int n, int k, const void *alpha,
                            const void *A, cudaDataType a_type, int lda, const void *B,
                            cudaDataType b_type, int ldb, const void *beta, void *C,
                            cudaDataType c_type, int ldc, cublasComputeType_t compute,
                            cublasGemmAlgo_t algo) {
    return cublasGemmStridedBatchedEx(handle, transa, transb, m, n, k, alpha, A, a_type, lda, 0, B,
                                      b_type, ldb, 0, beta, C, c_type, ldc, 0, 1, compute, algo);
}

/* ---- cuBLASLt ---- */

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
    int device;
    if (cudaGetDevice(&device))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    *handle = new cublasLtContext{device};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
    delete handle;
    return handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

size_t cublasLtGetVersion(void) {
    return CUBLAS_VERSION;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out, cublasComputeType_t compute,
                                        cudaDataType scale) {
    *out = new desc{};
    (*out)->compute = compute;
    (*out)->scale = scale;
    (*out)->epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d) {
    delete d;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t bytes) {
    int32_t turned;
    switch (attribute) {
    case CUBLASLT_MATMUL_DESC_COMPUTE_TYPE:
        return take(&d->compute, value, bytes);
    case CUBLASLT_MATMUL_DESC_SCALE_TYPE:
        return take(&d->scale, value, bytes);
    case CUBLASLT_MATMUL_DESC_POINTER_MODE:
        return take(&d->pointer_mode, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSA:
        return take(&d->transa, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
        return take(&d->transb, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSC:
        if (cublasStatus_t status = take(&turned, value, bytes))
            return status;
        return turned == CUBLAS_OP_N ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return take(&d->epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        return take(&d->bias, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE:
        return take(&d->bias_stride, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
        d->has_bias_type = true;
        return take(&d->bias_type, value, bytes);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out, cudaDataType type,
                                          uint64_t rows, uint64_t cols, int64_t ld) {
    *out = new layout{type, CUBLASLT_ORDER_COL, rows, cols, ld, 1, 0};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l) {
    delete l;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t l,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void *value, size_t bytes) {
    switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_TYPE:
        return take(&l->type, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_ORDER:
        return take(&l->order, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_ROWS:
        return take(&l->rows, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_COLS:
        return take(&l->cols, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_LD:
        return take(&l->ld, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
        return take(&l->batches, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
        return take(&l->stride, value, bytes);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out) {
    *out = new cublasLtMatmulPreferenceOpaque_t{};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
    delete preference;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t bytes) {
    if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
        return take(&preference->workspace, value, bytes);
    uint32_t any;
    cublasStatus_t status = take(&any, value, bytes);
    bool alignment = attribute >= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES &&
                     attribute <= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES;
    if (status == CUBLAS_STATUS_SUCCESS && alignment && any < preference->aligned)
        preference->aligned = any;
    return status;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t d,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t out,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int *found) {
    *found = 0;
    count_choice();
    if (!handle || !d || !a || !b || !c || !out || !preference || wanted < 1)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (cublasStatus_t status = check(*d, *a, *b, *c, *out))
        return status;
    if (a->type == CUDA_R_8I && preference->aligned < BYTES_ALIGNED)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    *found = 1;
    results[0] = cublasLtMatmulHeuristicResult_t{};
    results[0].workspaceSize = preference->workspace >= WORKSPACE ? WORKSPACE : 0;
    results[0].algo.data[0] = ALGO;
    results[0].algo.data[1] = results[0].workspaceSize;
    results[0].wavesCount = 1;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t d, const void *alpha,
                              const void *A, cublasLtMatrixLayout_t a, const void *B,
                              cublasLtMatrixLayout_t b, const void *beta, const void *C,
                              cublasLtMatrixLayout_t c, void *D, cublasLtMatrixLayout_t out,
                              const cublasLtMatmulAlgo_t *algo, void *workspace,
                              size_t workspace_bytes, cudaStream_t stream) {
    if (!handle || !d || !alpha || !beta || !a || !b || !c || !out || !is_stream(stream))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (cublasStatus_t status = check(*d, *a, *b, *c, *out))
        return status;
    size_t needs = algo ? algo->data[1] : 0;
    if ((algo && algo->data[0] != ALGO) || needs > workspace_bytes)
        return CUBLAS_STATUS_INVALID_VALUE;
    check_range("cublasLtMatmul", "the workspace", workspace, needs);
    last_compute = d->compute;
    product p{};
    p.d = *d, p.a = *a, p.b = *b, p.c = *c, p.out = *out;
    p.A = A, p.B = B, p.C = C, p.D = D;
    return queue_product("cublasLtMatmul", p, alpha, beta,
                         d->pointer_mode == CUBLASLT_POINTER_MODE_DEVICE, workspace, needs, stream);
}

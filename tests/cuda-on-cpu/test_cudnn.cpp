/* test_cudnn.cpp: graphs of a convolution on the played device: values from PyTorch, gradients by
 * the identity <conv(x, w), y> = <x, backward data> = <w, backward filter>, layouts, which engines
 * are listed and what is noted of them, refusals. */
#include "check_cpp.h"
#include "include/cuda_fp16.h"
#include "include/cudnn.h"

#include <cstring>
#include <vector>

#define CHECK_DNN(call) CHECK_STR(cudnnGetErrorString(call), "CUDNN_STATUS_SUCCESS")

typedef std::vector<int64_t> ints;

/* A descriptor, let go of at the end. */
struct made {
    cudnnBackendDescriptor_t d = nullptr;
    explicit made(cudnnBackendDescriptorType_t type) {
        CHECK_DNN(cudnnBackendCreateDescriptor(type, &d));
    }
    made(const made &) = delete;
    made &operator=(const made &) = delete;
    ~made() { CHECK_DNN(cudnnBackendDestroyDescriptor(d)); }
    cudnnStatus_t set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t n,
                      const void *values) {
        return cudnnBackendSetAttribute(d, name, type, n, values);
    }
    template <typename T>
    cudnnStatus_t set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, T value) {
        return set(name, type, 1, &value);
    }
    cudnnStatus_t set(cudnnBackendAttributeName_t name, const ints &values) {
        return set(name, CUDNN_TYPE_INT64, (int64_t)values.size(), values.data());
    }
    cudnnStatus_t set(cudnnBackendAttributeName_t name, const made &part) {
        return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &part.d);
    }
    cudnnStatus_t finalize() { return cudnnBackendFinalize(d); }
};

static size_t product(const ints &dims) {
    size_t n = 1;
    for (int64_t dim : dims)
        n *= (size_t)dim;
    return n;
}

static ints strides_of(const ints &dims, bool channels_last) {
    ints strides(dims.size());
    int64_t at = channels_last ? dims[1] : 1;
    for (size_t k = dims.size() - 1; k > 1; k--) {
        strides[k] = at;
        at *= dims[k];
    }
    strides[1] = channels_last ? 1 : at;
    strides[0] = channels_last ? at : at * dims[1];
    return strides;
}

struct tensor : made {
    tensor(int64_t name, cudnnDataType_t type, const ints &dims, bool channels_last = false,
           int64_t alignment = 16)
        : made(CUDNN_BACKEND_TENSOR_DESCRIPTOR) {
        CHECK_DNN(set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type));
        CHECK_DNN(set(CUDNN_ATTR_TENSOR_DIMENSIONS, dims));
        CHECK_DNN(set(CUDNN_ATTR_TENSOR_STRIDES, strides_of(dims, channels_last)));
        CHECK_DNN(set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, name));
        CHECK_DNN(set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, alignment));
        CHECK_DNN(finalize());
    }
};

struct convolution : made {
    convolution(cudnnDataType_t compute, const ints &pads, const ints &strides,
                const ints &dilations, cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION)
        : made(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR) {
        CHECK_DNN(set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, compute));
        CHECK_DNN(set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, mode));
        CHECK_DNN(set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, (int64_t)pads.size()));
        CHECK_DNN(set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, pads));
        CHECK_DNN(set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, pads));
        CHECK_DNN(set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, strides));
        CHECK_DNN(set(CUDNN_ATTR_CONVOLUTION_DILATIONS, dilations));
        CHECK_DNN(finalize());
    }
};

enum { X = 7, W = 8, Y = 9 };
static const ints names{X, W, Y};

static const struct direction {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t x, w, y, convolution, alpha, beta;
} forward = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
             CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
             CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
             CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
             CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
             CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
             CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
  backward_data = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
  backward_filter = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};

/* An operation that is not final yet. */
struct operation : made {
    operation(const direction &to, const made &x, const made &w, const made &y, const made &c,
              float beta = 0)
        : made(to.type) {
        CHECK_DNN(set(to.x, x));
        CHECK_DNN(set(to.w, w));
        CHECK_DNN(set(to.y, y));
        CHECK_DNN(set(to.convolution, c));
        CHECK_DNN(set(to.alpha, CUDNN_TYPE_DOUBLE, 1.0));
        CHECK_DNN(set(to.beta, CUDNN_TYPE_FLOAT, beta));
    }
};

/* The heuristic's engines for an operation, of which it needs nothing else. */
struct engines {
    cudnnHandle_t handle;
    std::vector<cudnnBackendDescriptor_t> listed;
    explicit engines(operation &o, cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_INSTANT) {
        CHECK_DNN(cudnnCreate(&handle));
        made graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
        made heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
        CHECK_DNN(o.finalize());
        CHECK_DNN(graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle));
        CHECK_DNN(graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, o));
        CHECK_DNN(graph.finalize());
        CHECK_DNN(heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph));
        CHECK_DNN(heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode));
        CHECK_DNN(heuristic.finalize());
        int64_t n = -1, filled = -1;
        CHECK_DNN(cudnnBackendGetAttribute(heuristic.d, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                           CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &n, NULL));
        listed.resize((size_t)n);
        for (auto &d : listed)
            CHECK_DNN(cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &d));
        CHECK_DNN(cudnnBackendGetAttribute(heuristic.d, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                           CUDNN_TYPE_BACKEND_DESCRIPTOR, n, &filled,
                                           listed.data()));
        CHECK_INT(filled, n);
    }
    ~engines() {
        for (auto d : listed)
            cudnnBackendDestroyDescriptor(d);
        cudnnDestroy(handle);
    }
    /* A bit for each note of the k-th. */
    unsigned notes(size_t k) {
        made engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
        cudnnBackendNumericalNote_t all[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
        int64_t n = -1;
        unsigned bits = 0;
        CHECK_DNN(cudnnBackendGetAttribute(listed[k], CUDNN_ATTR_ENGINECFG_ENGINE,
                                           CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n, &engine.d));
        CHECK_DNN(cudnnBackendGetAttribute(engine.d, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                           CUDNN_TYPE_NUMERICAL_NOTE,
                                           CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &n, all));
        for (int64_t j = 0; j < n; j++)
            bits |= 1u << all[j];
        return bits;
    }
    cudnnStatus_t plan(size_t k, made &plan, int64_t *workspace) {
        int64_t n;
        CHECK_DNN(plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle));
        CHECK_DNN(plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                           listed[k]));
        cudnnStatus_t status = plan.finalize();
        CHECK_INT(cudnnBackendGetAttribute(plan.d, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                           CUDNN_TYPE_INT64, 1, &n, workspace),
                  status ? CUDNN_STATUS_NOT_INITIALIZED : CUDNN_STATUS_SUCCESS);
        return status;
    }
    cudnnStatus_t execute(const made &plan, void *x, void *w, void *y, void *workspace) {
        made pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
        void *places[] = {x, w, y};
        CHECK_DNN(pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, names));
        CHECK_DNN(pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3, places));
        CHECK_DNN(pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace));
        CHECK_DNN(pack.finalize());
        return cudnnBackendExecute(handle, plan.d, pack.d);
    }
};

template <typename T> static double dot(const T *a, const T *b, size_t n) {
    std::vector<T> x = download(a, n), y = download(b, n);
    double sum = 0;
    for (size_t k = 0; k < n; k++)
        sum += (double)x[k] * (double)y[k];
    return sum;
}

/* Values that repeat with a period prime to the dims. */
template <typename T> static T *values(size_t n, int period) {
    std::vector<T> v(n);
    for (size_t k = 0; k < n; k++)
        v[k] = (T)((int)(k * 7 % (size_t)period) - period / 2);
    T *p = device_array<T>(n);
    CHECK_OK(cudaMemcpy(p, v.data(), n * sizeof(T), cudaMemcpyHostToDevice));
    return p;
}

/* Runs every engine that starts, and needs no more than a megabyte, on all of the result. */
static int run_all(operation &&o, void *x, void *w, void *y, const void *out, size_t bytes) {
    engines e(o);
    std::vector<char> first(bytes), now(bytes);
    void *workspace = device_array<char>(1 << 20);
    int ran = 0;
    for (size_t k = 0; k < e.listed.size(); k++) {
        made plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
        int64_t needs = -1;
        if (e.plan(k, plan, &needs) || needs > 1 << 20)
            continue;
        if (needs > 0)
            CHECK_INT(e.execute(plan, x, w, y, NULL), CUDNN_STATUS_BAD_PARAM);
        CHECK_DNN(e.execute(plan, x, w, y, workspace));
        CHECK_OK(cudaMemcpy(now.data(), out, bytes, cudaMemcpyDeviceToHost));
        if (ran++ == 0)
            first = now;
        CHECK(now == first); /* small integers, of which no engine rounds any */
    }
    cudaFree(workspace);
    return ran;
}

template <typename T>
static void check_gradients(cudnnDataType_t type, bool last, const ints &x_dims, const ints &w_dims,
                            const ints &y_dims, const ints &pads, const ints &strides,
                            const ints &dilations) {
    cudnnDataType_t compute = type == CUDNN_DATA_DOUBLE ? type : CUDNN_DATA_FLOAT;
    tensor x_desc(X, type, x_dims, last), w_desc(W, type, w_dims, last);
    tensor y_desc(Y, type, y_dims, last);
    convolution conv(compute, pads, strides, dilations);
    size_t nx = product(x_dims), nw = product(w_dims), ny = product(y_dims);
    T *x = values<T>(nx, 5), *w = values<T>(nw, 3), *dy = values<T>(ny, 7);
    T *y = device_array<T>(ny), *dx = device_array<T>(nx), *dw = device_array<T>(nw);
    int engines = type == CUDNN_DATA_FLOAT ? 6 : type == CUDNN_DATA_HALF ? 4 : 2;
    CHECK_INT(run_all({forward, x_desc, w_desc, y_desc, conv}, x, w, y, y, ny * sizeof(T)),
              engines);
    CHECK_INT(run_all({backward_data, x_desc, w_desc, y_desc, conv}, dx, w, dy, dx, nx * sizeof(T)),
              engines);
    CHECK_INT(
        run_all({backward_filter, x_desc, w_desc, y_desc, conv}, x, dw, dy, dw, nw * sizeof(T)),
        engines);
    double through = dot(y, dy, ny);
    CHECK(through != 0);
    CHECK_CLOSE(dot(x, dx, nx), through, 0);
    CHECK_CLOSE(dot(w, dw, nw), through, 0);
    for (void *p : {(void *)x, (void *)w, (void *)y, (void *)dx, (void *)dw, (void *)dy})
        cudaFree(p);
}

TEST(gradients_belong_to_the_convolution) {
    check_gradients<double>(CUDNN_DATA_DOUBLE, false, {2, 4, 7, 6}, {6, 2, 3, 2}, {2, 6, 4, 4},
                            {1, 0}, {2, 1}, {1, 2});
    check_gradients<float>(CUDNN_DATA_FLOAT, true, {2, 3, 5, 5}, {4, 3, 3, 3}, {2, 4, 5, 5}, {1, 1},
                           {1, 1}, {1, 1});
    check_gradients<__half>(CUDNN_DATA_HALF, false, {1, 2, 4, 4}, {2, 1, 2, 2}, {1, 2, 3, 3},
                            {0, 0}, {1, 1}, {1, 1});
    check_gradients<float>(CUDNN_DATA_FLOAT, false, {1, 2, 3, 4, 5}, {3, 2, 2, 3, 2},
                           {1, 3, 3, 2, 4}, {1, 1, 0}, {1, 2, 1}, {2, 1, 1});
}

/* x = arange(9) as 1x1x3x3, w = [[1, 2], [3, 4]], padding 1, stride 2. */
TEST(values_are_those_of_the_definition) {
    float *x = counting<float>(9, 0), *w = counting<float>(4, 1), *y = counting<float>(4, 1);
    tensor x_desc(X, CUDNN_DATA_FLOAT, {1, 1, 3, 3}), w_desc(W, CUDNN_DATA_FLOAT, {1, 1, 2, 2});
    tensor y_desc(Y, CUDNN_DATA_FLOAT, {1, 1, 2, 2});
    auto run = [&](cudnnConvolutionMode_t mode, float beta) {
        convolution conv(CUDNN_DATA_FLOAT, {1, 1}, {2, 2}, {1, 1}, mode);
        operation o(forward, x_desc, w_desc, y_desc, conv, beta);
        engines e(o, CUDNN_HEUR_MODE_FALLBACK);
        CHECK_INT(e.listed.size(), 1);
        made plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
        int64_t needs = -1;
        CHECK_DNN(e.plan(0, plan, &needs));
        CHECK_INT(needs, 0);
        CHECK_DNN(e.execute(plan, x, w, y, NULL));
    };
    run(CUDNN_CROSS_CORRELATION, 2);
    CHECK(download(y, 4) == (std::vector<float>{0 + 2, 11 + 4, 30 + 6, 67 + 8}));
    run(CUDNN_CONVOLUTION, 0);
    CHECK(download(y, 4) == (std::vector<float>{0, 4, 15, 53})); /* the filter turned around */
    CHECK_STR(td_played_convolution(), "FMA 2");
    cudaFree(x), cudaFree(w), cudaFree(y);
}

TEST(engines_are_listed_with_what_is_to_be_known_of_them) {
    const unsigned cores = 1u << CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
    const unsigned unordered = 1u << CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
    const unsigned down = 1u << CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
    const unsigned rough = 1u << CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION;
    auto notes = [](const direction &to, cudnnDataType_t type, int64_t alignment) {
        tensor x(X, type, {1, 2, 4, 4}, false, alignment), w(W, type, {3, 2, 1, 1}, false);
        tensor y(Y, type, {1, 3, 4, 4}, false);
        convolution conv(CUDNN_DATA_FLOAT, {0, 0}, {1, 1}, {1, 1});
        operation o(to, x, w, y, conv);
        engines e(o);
        std::vector<unsigned> all;
        for (size_t k = 0; k < e.listed.size(); k++)
            all.push_back(e.notes(k));
        return all;
    };
    typedef std::vector<unsigned> list;
    CHECK(notes(forward, CUDNN_DATA_FLOAT, 16) == (list{0, 0, cores, cores, down, down, 0, 0}));
    CHECK(notes(backward_filter, CUDNN_DATA_FLOAT, 16) ==
          (list{0, 0, cores | unordered, cores, down | unordered, down, unordered, 0}));
    CHECK(notes(backward_data, CUDNN_DATA_HALF, 16) ==
          (list{0, 0, rough | unordered, rough, cores | unordered, cores}));
    CHECK(notes(forward, CUDNN_DATA_HALF, 8).empty());    /* none reads less than 16 bytes */
    CHECK(notes(forward, CUDNN_DATA_DOUBLE, 16).empty()); /* none sums doubles in floats */
    CHECK(notes(forward, CUDNN_DATA_INT8, 16).empty());
}

TEST(attributes_are_checked) {
    made t(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    int64_t n = -1, alignment = 16;
    CHECK_INT(t.finalize(), CUDNN_STATUS_BAD_PARAM);
    CHECK_INT(t.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_INT64, alignment),
              CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE);
    CHECK_INT(t.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, ints{16, 16}), CUDNN_STATUS_BAD_PARAM);
    CHECK_INT(t.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, NULL),
              CUDNN_STATUS_BAD_PARAM);
    CHECK_INT(t.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, type),
              CUDNN_STATUS_BAD_PARAM);
    CHECK_INT(t.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type), 0);
    CHECK_INT(t.set(CUDNN_ATTR_TENSOR_DIMENSIONS, ints{1, 2, 3, 4}), 0);
    CHECK_INT(t.set(CUDNN_ATTR_TENSOR_STRIDES, ints{24, 12, 4}), 0);
    CHECK_INT(t.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, alignment), 0);
    CHECK_INT(t.finalize(), CUDNN_STATUS_BAD_PARAM); /* fewer strides than dims */
    CHECK_INT(t.set(CUDNN_ATTR_TENSOR_STRIDES, ints{24, 12, 4, 1}), 0);
    CHECK_INT(t.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, (int64_t)2), 0);
    CHECK_INT(t.finalize(), CUDNN_STATUS_BAD_PARAM); /* half an element */
    CHECK_INT(t.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, alignment), 0);
    CHECK_INT(
        cudnnBackendGetAttribute(t.d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 0, &n, NULL),
        CUDNN_STATUS_NOT_INITIALIZED);
    CHECK_INT(t.finalize(), 0);
    CHECK_INT(t.finalize(), CUDNN_STATUS_BAD_PARAM);
    CHECK_INT(t.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, alignment),
              CUDNN_STATUS_BAD_PARAM); /* it is final */
}

TEST(operations_are_checked) {
    tensor x(X, CUDNN_DATA_FLOAT, {1, 4, 5, 5}), w(W, CUDNN_DATA_FLOAT, {6, 2, 2, 2});
    tensor y(Y, CUDNN_DATA_FLOAT, {1, 6, 4, 4}), large(Y, CUDNN_DATA_FLOAT, {1, 6, 5, 4});
    tensor odd(Y, CUDNN_DATA_FLOAT, {1, 5, 4, 4}), deep(Y, CUDNN_DATA_FLOAT, {1, 6, 4, 4, 1});
    convolution conv(CUDNN_DATA_FLOAT, {0, 0}, {1, 1}, {1, 1});
    for (const made *bad : {(made *)&large, (made *)&odd, (made *)&deep, (made *)&conv})
        CHECK_INT(operation(forward, x, w, *bad, conv).finalize(), CUDNN_STATUS_BAD_PARAM);
    CHECK_INT(operation(forward, x, w, y, conv).finalize(), 0);
    made raw(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    CHECK_INT(operation(forward, raw, w, y, conv).finalize(), CUDNN_STATUS_BAD_PARAM);
    made empty(forward.type), plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    CHECK_INT(empty.finalize(), CUDNN_STATUS_BAD_PARAM);
    CHECK_INT(empty.set(forward.x, CUDNN_TYPE_BACKEND_DESCRIPTOR, (void *)NULL),
              CUDNN_STATUS_BAD_PARAM);
    CHECK_INT(plan.finalize(), CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
    made pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    void *places[] = {NULL, NULL};
    CHECK_INT(pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, names), 0);
    CHECK_INT(pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 2, places), 0);
    CHECK_INT(pack.finalize(), CUDNN_STATUS_BAD_PARAM); /* a name without an address */
}

int main() {
    RUN(gradients_belong_to_the_convolution);
    RUN(values_are_those_of_the_definition);
    RUN(engines_are_listed_with_what_is_to_be_known_of_them);
    RUN(attributes_are_checked);
    RUN(operations_are_checked);
    return check_finish();
}

/* cudnn.cpp: cuDNN's graphs of one convolution, or of a gradient of it, by plain loops.
 *
 * A descriptor is a set of attributes, which a table allows, and what they were found to mean when
 * it was finalized; then they can't be set any more. Descriptors share what they hold.
 *
 * Images and filters are gathered into dense doubles, in the order batch, channels, depth, height,
 * width; one walk over all products serves the three of them, which differ in what they add to. */
#include "include/cudnn.h"
#include "library.h"
#include "runtime.h"

#include <atomic>
#include <chrono>
#include <cstring>

using namespace td_played;

constexpr int SPATIAL = 3;

struct cudnnContext {
    cudaStream_t stream = nullptr;
};

namespace {

/* A tensor: dims and strides in five dims, depth being 1 where there is none. */
struct shape {
    cudnnDataType_t type;
    int ndims;
    int64_t dims[2 + SPATIAL], strides[2 + SPATIAL], name, alignment;
};
struct convolution {
    int nspatial;
    int64_t groups, pads[SPATIAL], strides[SPATIAL], dilations[SPATIAL];
    cudnnConvolutionMode_t mode;
    cudnnDataType_t compute;
};
enum direction { FORWARD, BACKWARD_DATA, BACKWARD_FILTER };
struct operation {
    direction to;
    convolution c;
    shape x, w, y;
    double alpha, beta;
};

/* ---- engines ---- */

enum arithmetic { FMA, TF32, HALVES, TENSOR_CORES };

struct engine {
    arithmetic how; /* TF32 and HALVES round factors of float32, HALVES sums of halves */
    int algorithm;
    bool unordered; /* gradients are summed by whoever comes first */
    bool starts;    /* else its plans can't be made */
    size_t workspace;
    int64_t reads; /* so many bytes at once */
};

const engine never_starts = {FMA, 3, false, false, 0, 16};
const engine hungry = {FMA, 4, false, true, (size_t)2 << 30, 16};
const engine last_resort = {FMA, 2, false, true, 0, 1};

/* What a mode of the heuristics lists, the best guess first. The engines with storage are guessed,
 * but slower. */
std::vector<engine> engines_for(const operation &o, cudnnBackendHeurMode_t mode) {
    bool doubles = o.x.type == CUDNN_DATA_DOUBLE;
    bool halves = o.x.type == CUDNN_DATA_HALF || o.x.type == CUDNN_DATA_BFLOAT16;
    bool floats = o.x.type == CUDNN_DATA_FLOAT;
    bool types = o.x.type == o.w.type && o.x.type == o.y.type &&
                 ((doubles && o.c.compute == CUDNN_DATA_DOUBLE) ||
                  ((floats || halves) && o.c.compute == CUDNN_DATA_FLOAT));
    const shape &w = o.w;
    bool last_filter = w.strides[1] == 1 && w.dims[1] > 1 && w.dims[2] * w.dims[3] * w.dims[4] > 1;
    bool last_images = o.x.strides[1] == 1 && o.y.strides[1] == 1;
    std::vector<engine> all, listed;
    if (!types || (last_filter && !last_images))
        return listed;
    if (mode == CUDNN_HEUR_MODE_FALLBACK)
        return {last_resort};
    all = {never_starts, hungry};
    for (arithmetic how : {TF32, HALVES, TENSOR_CORES, FMA}) {
        bool fits = floats ? how != TENSOR_CORES : how == TENSOR_CORES || (halves && how == HALVES);
        if (!fits)
            continue;
        all.push_back({how, 1, o.to != FORWARD, true, 1024, 16});
        all.push_back({how, 0, false, true, 0, 16});
    }
    for (const engine &e : all)
        if (o.x.alignment >= e.reads && o.w.alignment >= e.reads && o.y.alignment >= e.reads)
            listed.push_back(e);
    return listed;
}

std::vector<cudnnBackendNumericalNote_t> notes_of(const operation &o, const engine &e) {
    std::vector<cudnnBackendNumericalNote_t> notes;
    if (e.how == TF32 || e.how == TENSOR_CORES)
        notes.push_back(CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
    if (e.how == HALVES)
        notes.push_back(o.x.type == CUDNN_DATA_FLOAT
                            ? CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS
                            : CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
    if (e.unordered)
        notes.push_back(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
    return notes;
}

/* ---- arithmetic ---- */

cudaDataType type_of(cudnnDataType_t type) {
    switch (type) {
    case CUDNN_DATA_FLOAT:
        return CUDA_R_32F;
    case CUDNN_DATA_DOUBLE:
        return CUDA_R_64F;
    case CUDNN_DATA_HALF:
        return CUDA_R_16F;
    case CUDNN_DATA_INT8:
        return CUDA_R_8I;
    case CUDNN_DATA_INT32:
        return CUDA_R_32I;
    case CUDNN_DATA_BFLOAT16:
        return CUDA_R_16BF;
    }
    return CUDA_R_32F;
}

int64_t count(const shape &s) {
    int64_t n = 1;
    for (int64_t dim : s.dims)
        n *= dim;
    return n;
}

size_t bytes_of(const shape &s) {
    int64_t last = 0;
    for (int k = 0; k < 2 + SPATIAL; k++)
        last += (s.dims[k] - 1) * s.strides[k];
    return (size_t)(last + 1) * size_of(type_of(s.type));
}

/* Calls f(dense index, place in memory) for every element. */
template <typename F> void each(const shape &s, F f) {
    int64_t at[2 + SPATIAL] = {0}, n = count(s);
    for (int64_t k = 0; k < n; k++) {
        int64_t place = 0;
        for (int d = 0; d < 2 + SPATIAL; d++)
            place += at[d] * s.strides[d];
        f((size_t)k, (size_t)place);
        for (int d = 1 + SPATIAL; d >= 0 && ++at[d] == s.dims[d]; d--)
            at[d] = 0;
    }
}

std::vector<double> gather(const engine &e, const shape &s, const void *p) {
    std::vector<double> values((size_t)count(s));
    each(s, [&](size_t k, size_t place) {
        double x = load(type_of(s.type), p, place);
        bool rounds = e.how == HALVES && s.type == CUDNN_DATA_FLOAT;
        values[k] = e.how == TF32 ? to_tf32(x) : rounds ? (double)(__half)(float)x : x;
    });
    return values;
}

void scatter(const shape &s, void *p, const std::vector<double> &values, double alpha,
             double beta) {
    cudaDataType type = type_of(s.type);
    each(s, [&](size_t k, size_t place) {
        double old = beta != 0 ? beta * load(type, p, place) : 0;
        store(type, p, place, alpha * values[k] + old);
    });
}

/* Calls f(x, w, y) with the dense indices of every product, taps that lie in the padding left out.
 */
template <typename F>
void each_product(const convolution &c, const shape &x, const shape &w, const shape &y, F f) {
    int64_t taps = w.dims[2] * w.dims[3] * w.dims[4], outs = y.dims[2] * y.dims[3] * y.dims[4];
    int64_t inner = w.dims[1], share = y.dims[1] / c.groups;
    for (int64_t n = 0; n < y.dims[0]; n++)
        for (int64_t o = 0; o < outs; o++)
            for (int64_t t = 0; t < taps; t++) {
                int64_t in = 0, tap[SPATIAL] = {t / w.dims[4] / w.dims[3],
                                                t / w.dims[4] % w.dims[3], t % w.dims[4]};
                int64_t out[SPATIAL] = {o / y.dims[4] / y.dims[3], o / y.dims[4] % y.dims[3],
                                        o % y.dims[4]};
                bool inside = true;
                for (int d = 0; d < SPATIAL; d++) {
                    int64_t turned =
                        c.mode == CUDNN_CONVOLUTION ? w.dims[2 + d] - 1 - tap[d] : tap[d];
                    int64_t at = out[d] * c.strides[d] - c.pads[d] + turned * c.dilations[d];
                    inside = inside && at >= 0 && at < x.dims[2 + d];
                    in = in * x.dims[2 + d] + at;
                }
                if (!inside)
                    continue;
                int64_t ins = x.dims[2] * x.dims[3] * x.dims[4];
                for (int64_t k = 0; k < y.dims[1]; k++)
                    for (int64_t i = 0; i < inner; i++)
                        f((size_t)((n * x.dims[1] + k / share * inner + i) * ins + in),
                          (size_t)((k * inner + i) * taps + t),
                          (size_t)((n * y.dims[1] + k) * outs + o));
            }
}

const char *const call_names[] = {"cudnnConvolutionForward", "cudnnConvolutionBackwardData",
                                  "cudnnConvolutionBackwardFilter"};

void run(const operation &o, const engine &e, const void *x, const void *w, const void *y) {
    const shape &result = o.to == FORWARD ? o.y : o.to == BACKWARD_DATA ? o.x : o.w;
    const void *out = o.to == FORWARD ? y : o.to == BACKWARD_DATA ? x : w;
    std::vector<double> sums((size_t)count(result)), xs, ws, ys;
    if (o.to != BACKWARD_DATA)
        xs = gather(e, o.x, x);
    if (o.to != BACKWARD_FILTER)
        ws = gather(e, o.w, w);
    if (o.to != FORWARD)
        ys = gather(e, o.y, y);
    auto add = [&](double *sum, double term) {
        *sum += term;
        if (e.how == HALVES) { /* what it is of */
            uint64_t rounded;
            store(type_of(result.type), &rounded, 0, *sum);
            *sum = load(type_of(result.type), &rounded, 0);
        }
    };
    each_product(o.c, o.x, o.w, o.y, [&](size_t i, size_t j, size_t k) {
        if (o.to == FORWARD)
            add(&sums[k], xs[i] * ws[j]);
        else if (o.to == BACKWARD_DATA)
            add(&sums[i], ys[k] * ws[j]);
        else
            add(&sums[j], xs[i] * ys[k]);
    });
    scatter(result, const_cast<void *>(out), sums, o.alpha, o.beta);
}

/* ---- descriptors ---- */

struct content;
typedef std::shared_ptr<content> content_ref;

struct value {
    int64_t count = 0;
    std::vector<char> bytes;
    std::vector<content_ref> parts; /* of descriptors */
};

struct content {
    cudnnBackendDescriptorType_t type;
    bool is_final = false;
    std::map<int, value> values;
    /* what it means, once it is final; of a graph and what is made of it the operation as well */
    shape tensor;
    convolution conv;
    operation op;
    engine what;
    std::vector<engine> listed;
};

struct descriptor {
    content_ref in;
};

struct rule {
    cudnnBackendAttributeName_t name;
    cudnnBackendAttributeType_t type, other; /* either */
    bool is_single, is_needed;
};

#define ONE(name, type)                                                                            \
    { CUDNN_ATTR_##name, CUDNN_TYPE_##type, CUDNN_TYPE_##type, true, true }
#define MANY(name, type)                                                                           \
    { CUDNN_ATTR_##name, CUDNN_TYPE_##type, CUDNN_TYPE_##type, false, true }
#define MAYBE(name, type, other)                                                                   \
    { CUDNN_ATTR_##name, CUDNN_TYPE_##type, CUDNN_TYPE_##other, true, false }

/* What a convolution or a gradient takes. */
#define OPERATION(to, x, w, y)                                                                     \
    {                                                                                              \
        ONE(OPERATION_CONVOLUTION_##to##_##x, BACKEND_DESCRIPTOR),                                 \
            ONE(OPERATION_CONVOLUTION_##to##_##w, BACKEND_DESCRIPTOR),                             \
            ONE(OPERATION_CONVOLUTION_##to##_##y, BACKEND_DESCRIPTOR),                             \
            ONE(OPERATION_CONVOLUTION_##to##_CONV_DESC, BACKEND_DESCRIPTOR),                       \
            MAYBE(OPERATION_CONVOLUTION_##to##_ALPHA, FLOAT, DOUBLE),                              \
            MAYBE(OPERATION_CONVOLUTION_##to##_BETA, FLOAT, DOUBLE),                               \
    }

const std::map<int, std::vector<rule>> rules = {
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR,
     {ONE(TENSOR_DATA_TYPE, DATA_TYPE), MANY(TENSOR_DIMENSIONS, INT64), MANY(TENSOR_STRIDES, INT64),
      ONE(TENSOR_BYTE_ALIGNMENT, INT64), MAYBE(TENSOR_UNIQUE_ID, INT64, INT64)}},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR,
     {ONE(CONVOLUTION_COMP_TYPE, DATA_TYPE), ONE(CONVOLUTION_CONV_MODE, CONVOLUTION_MODE),
      ONE(CONVOLUTION_SPATIAL_DIMS, INT64), MANY(CONVOLUTION_PRE_PADDINGS, INT64),
      MANY(CONVOLUTION_POST_PADDINGS, INT64), MANY(CONVOLUTION_FILTER_STRIDES, INT64),
      MANY(CONVOLUTION_DILATIONS, INT64)}},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, OPERATION(FORWARD, X, W, Y)},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, OPERATION(BWD_DATA, DX, W, DY)},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     OPERATION(BWD_FILTER, X, DW, DY)},
    {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR,
     {ONE(OPERATIONGRAPH_HANDLE, HANDLE), MANY(OPERATIONGRAPH_OPS, BACKEND_DESCRIPTOR)}},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR,
     {ONE(ENGINEHEUR_OPERATION_GRAPH, BACKEND_DESCRIPTOR), ONE(ENGINEHEUR_MODE, HEUR_MODE)}},
    {CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, {}}, /* which heuristics and configurations fill */
    {CUDNN_BACKEND_ENGINE_DESCRIPTOR, {}},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR,
     {ONE(EXECUTION_PLAN_HANDLE, HANDLE), ONE(EXECUTION_PLAN_ENGINE_CONFIG, BACKEND_DESCRIPTOR)}},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR,
     {MANY(VARIANT_PACK_UNIQUE_IDS, INT64), MANY(VARIANT_PACK_DATA_POINTERS, VOID_PTR),
      MAYBE(VARIANT_PACK_WORKSPACE, VOID_PTR, VOID_PTR)}}};

size_t width_of(cudnnBackendAttributeType_t type) {
    switch (type) {
    case CUDNN_TYPE_DATA_TYPE:
    case CUDNN_TYPE_CONVOLUTION_MODE:
    case CUDNN_TYPE_HEUR_MODE:
    case CUDNN_TYPE_NUMERICAL_NOTE:
        return sizeof(int);
    case CUDNN_TYPE_FLOAT:
        return sizeof(float);
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
        return 8;
    }
    return 0;
}

content *content_of(cudnnBackendDescriptor_t d) {
    return d ? static_cast<descriptor *>(d)->in.get() : nullptr;
}

template <typename T> std::vector<T> all_of(const content &c, int name) {
    std::vector<T> all;
    auto found = c.values.find(name);
    if (found == c.values.end())
        return all;
    all.resize((size_t)found->second.count);
    memcpy(all.data(), found->second.bytes.data(), found->second.bytes.size());
    return all;
}

template <typename T> T one_of(const content &c, int name, T otherwise = T()) {
    std::vector<T> all = all_of<T>(c, name);
    return all.empty() ? otherwise : all[0];
}

content &part_of(const content &c, int name) {
    return *c.values.at(name).parts[0];
}

/* ---- what descriptors mean ---- */

cudnnStatus_t finalize_tensor(content &c) {
    shape &s = c.tensor;
    std::vector<int64_t> dims = all_of<int64_t>(c, CUDNN_ATTR_TENSOR_DIMENSIONS);
    std::vector<int64_t> strides = all_of<int64_t>(c, CUDNN_ATTR_TENSOR_STRIDES);
    s.type = one_of<cudnnDataType_t>(c, CUDNN_ATTR_TENSOR_DATA_TYPE);
    s.name = one_of<int64_t>(c, CUDNN_ATTR_TENSOR_UNIQUE_ID);
    s.alignment = one_of<int64_t>(c, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
    s.ndims = (int)dims.size();
    if (dims.size() != strides.size() || dims.size() > CUDNN_DIM_MAX || s.alignment <= 0 ||
        (size_t)s.alignment % size_of(type_of(s.type)) != 0)
        return CUDNN_STATUS_BAD_PARAM;
    if (s.ndims < 4 || s.ndims > 2 + SPATIAL)
        return CUDNN_STATUS_NOT_SUPPORTED;
    for (int k = 0; k < 2 + SPATIAL; k++) {
        int from = k < 2 ? k : k - (2 + SPATIAL - s.ndims);
        bool there = k < 2 || from >= 2;
        s.dims[k] = there ? dims[(size_t)from] : 1;
        s.strides[k] = there ? strides[(size_t)from] : 0;
        if (s.dims[k] <= 0 || s.strides[k] < 0)
            return CUDNN_STATUS_BAD_PARAM;
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t finalize_convolution(content &c) {
    convolution &v = c.conv;
    auto pads = all_of<int64_t>(c, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
    auto behind = all_of<int64_t>(c, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
    auto strides = all_of<int64_t>(c, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
    auto dilations = all_of<int64_t>(c, CUDNN_ATTR_CONVOLUTION_DILATIONS);
    size_t n = (size_t)one_of<int64_t>(c, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);
    v.nspatial = (int)n;
    v.mode = one_of<cudnnConvolutionMode_t>(c, CUDNN_ATTR_CONVOLUTION_CONV_MODE);
    v.compute = one_of<cudnnDataType_t>(c, CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
    if (pads.size() != n || behind.size() != n || strides.size() != n || dilations.size() != n)
        return CUDNN_STATUS_BAD_PARAM;
    if (n < 2 || n > SPATIAL || pads != behind)
        return CUDNN_STATUS_NOT_SUPPORTED;
    for (size_t k = 0; k < SPATIAL; k++) {
        bool there = k >= SPATIAL - n;
        size_t from = k - (SPATIAL - n);
        v.pads[k] = there ? pads[from] : 0;
        v.strides[k] = there ? strides[from] : 1;
        v.dilations[k] = there ? dilations[from] : 1;
        if (v.pads[k] < 0 || v.strides[k] < 1 || v.dilations[k] < 1)
            return CUDNN_STATUS_BAD_PARAM;
    }
    return CUDNN_STATUS_SUCCESS;
}

int64_t out_dim(const convolution &c, const shape &x, const shape &w, int d) {
    int64_t room = x.dims[2 + d] + 2 * c.pads[d] - c.dilations[d] * (w.dims[2 + d] - 1) - 1;
    return room < 0 ? 0 : room / c.strides[d] + 1;
}

double scale_of(const content &c, int name, double otherwise) {
    auto found = c.values.find(name);
    if (found == c.values.end())
        return otherwise;
    bool is_float = found->second.bytes.size() == sizeof(float);
    return load(is_float ? CUDA_R_32F : CUDA_R_64F, found->second.bytes.data(), 0);
}

/* The attributes of an operation are in the order of the rules. */
cudnnStatus_t finalize_operation(content &c) {
    const std::vector<rule> &names = rules.at(c.type);
    operation &o = c.op;
    for (int k = 0; k < 4; k++) {
        content &part = part_of(c, names[(size_t)k].name);
        if (part.type !=
                (k < 3 ? CUDNN_BACKEND_TENSOR_DESCRIPTOR : CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR) ||
            !part.is_final)
            return CUDNN_STATUS_BAD_PARAM;
    }
    o.to = c.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR ? FORWARD
           : c.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR
               ? BACKWARD_DATA
               : BACKWARD_FILTER;
    o.x = part_of(c, names[0].name).tensor;
    o.w = part_of(c, names[1].name).tensor;
    o.y = part_of(c, names[2].name).tensor;
    o.c = part_of(c, names[3].name).conv;
    o.alpha = scale_of(c, names[4].name, 1);
    o.beta = scale_of(c, names[5].name, 0);
    if (o.x.ndims != o.y.ndims || o.x.ndims != o.w.ndims || o.x.ndims != o.c.nspatial + 2)
        return CUDNN_STATUS_BAD_PARAM;
    for (int d = 0; d < SPATIAL; d++)
        if (o.y.dims[2 + d] != out_dim(o.c, o.x, o.w, d))
            return CUDNN_STATUS_BAD_PARAM;
    o.c.groups = o.x.dims[1] / o.w.dims[1];
    bool channels = o.c.groups > 0 && o.x.dims[1] == o.w.dims[1] * o.c.groups &&
                    o.w.dims[0] == o.y.dims[1] && o.y.dims[1] % o.c.groups == 0 &&
                    o.x.dims[0] == o.y.dims[0];
    return channels ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t finalize_graph(content &c) {
    const value &ops = c.values.at(CUDNN_ATTR_OPERATIONGRAPH_OPS);
    if (!one_of<void *>(c, CUDNN_ATTR_OPERATIONGRAPH_HANDLE) || !ops.parts[0]->is_final)
        return CUDNN_STATUS_BAD_PARAM;
    if (ops.count != 1)
        return CUDNN_STATUS_NOT_SUPPORTED;
    c.op = ops.parts[0]->op;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t finalize_heuristic(content &c) {
    content &graph = part_of(c, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    if (graph.type != CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR || !graph.is_final)
        return CUDNN_STATUS_BAD_PARAM;
    count_choice();
    c.op = graph.op;
    c.listed = engines_for(c.op, one_of<cudnnBackendHeurMode_t>(c, CUDNN_ATTR_ENGINEHEUR_MODE));
    return CUDNN_STATUS_SUCCESS;
}

std::atomic<unsigned long long> plans{0};

cudnnStatus_t finalize_plan(content &c) {
    content &configuration = part_of(c, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    if (!one_of<void *>(c, CUDNN_ATTR_EXECUTION_PLAN_HANDLE))
        return CUDNN_STATUS_BAD_PARAM;
    if (configuration.type != CUDNN_BACKEND_ENGINECFG_DESCRIPTOR || !configuration.is_final)
        return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
    plans++;
    c.op = configuration.op;
    c.what = configuration.what;
    return c.what.starts ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
}

cudnnStatus_t finalize_pack(content &c) {
    return c.values[CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS].count ==
                   c.values[CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS].count
               ? CUDNN_STATUS_SUCCESS
               : CUDNN_STATUS_BAD_PARAM;
}

/* Fill descriptors that the caller made with things that are final. */
template <typename T>
cudnnStatus_t fill(const content &from, cudnnBackendDescriptorType_t type,
                   const std::vector<T> &all, int64_t wanted, int64_t *count, void *values) {
    *count = 0;
    if (wanted == 0)
        *count = (int64_t)all.size();
    for (int64_t k = 0; k < wanted && k < (int64_t)all.size(); k++) {
        auto to = static_cast<descriptor *>(static_cast<void **>(values)[k]);
        if (!to || to->in->type != type)
            continue;
        to->in->op = from.op;
        to->in->what = all[(size_t)k];
        to->in->is_final = true;
        ++*count;
    }
    return CUDNN_STATUS_SUCCESS;
}

template <typename T>
cudnnStatus_t copy(const std::vector<T> &all, int64_t wanted, int64_t *count, void *values) {
    int64_t there = (int64_t)all.size();
    *count = wanted == 0 || there < wanted ? there : wanted;
    if (*count > 0 && wanted > 0)
        memcpy(values, all.data(), (size_t)*count * sizeof(T));
    return CUDNN_STATUS_SUCCESS;
}

std::atomic<int> last{-1}; /* what the last convolution was */

/* The address that a pack names. */
void *place_of(const content &pack, const char *call, const char *what, const shape &s) {
    auto names = all_of<int64_t>(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    auto places = all_of<void *>(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    for (size_t k = 0; k < names.size(); k++)
        if (names[k] == s.name) {
            check_range(call, what, places[k], bytes_of(s));
            check_aligned(call, what, places[k], (size_t)s.alignment);
            return places[k];
        }
    return nullptr;
}

} // namespace

const char *td_played_convolution(void) {
    static const char *const names[][5] = {{"FMA 0", "FMA 1", "FMA 2", "FMA 3", "FMA 4"},
                                           {"TF32 0", "TF32 1"},
                                           {"HALVES 0", "HALVES 1"},
                                           {"TENSOR_CORES 0", "TENSOR_CORES 1"}};
    int was = last;
    return was < 0 ? "" : names[was / 5][was % 5];
}

unsigned long long td_played_plans(void) {
    return plans;
}

size_t cudnnGetVersion(void) {
    return CUDNN_VERSION;
}

size_t cudnnGetCudartVersion(void) {
    return CUDART_VERSION;
}

const char *cudnnGetErrorString(cudnnStatus_t status) {
    switch (status) {
    case CUDNN_STATUS_SUCCESS:
        return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_NOT_INITIALIZED:
        return "CUDNN_STATUS_NOT_INITIALIZED";
    case CUDNN_STATUS_BAD_PARAM:
        return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED:
        return "CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED";
    case CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE:
        return "CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE";
    case CUDNN_STATUS_NOT_SUPPORTED:
        return "CUDNN_STATUS_NOT_SUPPORTED";
    case CUDNN_STATUS_INTERNAL_ERROR:
        return "CUDNN_STATUS_INTERNAL_ERROR";
    case CUDNN_STATUS_EXECUTION_FAILED:
        return "CUDNN_STATUS_EXECUTION_FAILED";
    }
    return "CUDNN_STATUS unknown";
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) {
    int device;
    if (cudaGetDevice(&device))
        return CUDNN_STATUS_NOT_INITIALIZED;
    *handle = new cudnnContext{};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
    delete handle;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
    if (!handle || !is_stream(stream))
        return CUDNN_STATUS_BAD_PARAM;
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t *stream) {
    *stream = handle->stream;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t *out) {
    if (!out)
        return CUDNN_STATUS_BAD_PARAM;
    if (!rules.count(type))
        return CUDNN_STATUS_NOT_SUPPORTED;
    auto made = std::make_shared<content>();
    made->type = type;
    *out = new descriptor{made};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t d) {
    delete static_cast<descriptor *>(d);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t n,
                                       const void *values) {
    content *c = content_of(d);
    if (!c || c->is_final || !values || n < 1)
        return CUDNN_STATUS_BAD_PARAM;
    for (const rule &r : rules.at(c->type)) {
        if (r.name != name)
            continue;
        if (type != r.type && type != r.other)
            return CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE;
        if (r.is_single && n != 1)
            return CUDNN_STATUS_BAD_PARAM;
        value v;
        v.count = n;
        auto bytes = static_cast<const char *>(values);
        v.bytes.assign(bytes, bytes + (size_t)n * width_of(type));
        for (int64_t k = 0; type == CUDNN_TYPE_BACKEND_DESCRIPTOR && k < n; k++) {
            auto part = static_cast<descriptor *>(static_cast<void *const *>(values)[k]);
            if (!part)
                return CUDNN_STATUS_BAD_PARAM;
            v.parts.push_back(part->in);
        }
        c->values[name] = v;
        return CUDNN_STATUS_SUCCESS;
    }
    return CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t d) {
    content *c = content_of(d);
    if (!c || c->is_final)
        return CUDNN_STATUS_BAD_PARAM;
    for (const rule &r : rules.at(c->type))
        if (r.is_needed && !c->values.count(r.name))
            return c->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR
                       ? CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED
                       : CUDNN_STATUS_BAD_PARAM;
    static const std::map<int, cudnnStatus_t (*)(content &)> calls = {
        {CUDNN_BACKEND_TENSOR_DESCRIPTOR, finalize_tensor},
        {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, finalize_convolution},
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, finalize_operation},
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, finalize_operation},
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, finalize_operation},
        {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, finalize_graph},
        {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, finalize_heuristic},
        {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, finalize_plan},
        {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, finalize_pack}};
    auto call = calls.find(c->type);
    cudnnStatus_t status = call == calls.end() ? CUDNN_STATUS_NOT_SUPPORTED : call->second(*c);
    c->is_final = status == CUDNN_STATUS_SUCCESS;
    return status;
}

/* Those that are the library's to say; what was set is not read back. */
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t wanted,
                                       int64_t *count, void *values) {
    content *c = content_of(d);
    if (!c || !count || wanted < 0 || (wanted > 0 && !values))
        return CUDNN_STATUS_BAD_PARAM;
    if (!c->is_final)
        return CUDNN_STATUS_NOT_INITIALIZED;
    auto is = [&](cudnnBackendDescriptorType_t of, cudnnBackendAttributeName_t what) {
        return c->type == of && name == what;
    };
    bool results = is(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_RESULTS);
    bool the_engine = is(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, CUDNN_ATTR_ENGINECFG_ENGINE);
    bool notes = is(CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE);
    bool bytes =
        is(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
    if (!results && !the_engine && !notes && !bytes)
        return CUDNN_STATUS_BAD_PARAM;
    if (type != (notes   ? CUDNN_TYPE_NUMERICAL_NOTE
                 : bytes ? CUDNN_TYPE_INT64
                         : CUDNN_TYPE_BACKEND_DESCRIPTOR))
        return CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE;
    if (results)
        return fill(*c, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, c->listed, wanted, count, values);
    if (the_engine)
        return fill(*c, CUDNN_BACKEND_ENGINE_DESCRIPTOR, std::vector<engine>{c->what}, wanted,
                    count, values);
    if (notes)
        return copy(notes_of(c->op, c->what), wanted, count, values);
    return copy(std::vector<int64_t>{(int64_t)c->what.workspace}, wanted, count, values);
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack) {
    content *p = content_of(plan), *v = content_of(pack);
    if (!handle || !p || !v || p->type != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR ||
        v->type != CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)
        return CUDNN_STATUS_BAD_PARAM;
    if (!p->is_final || !v->is_final)
        return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
    operation o = p->op;
    engine e = p->what;
    const char *name = call_names[o.to];
    void *x = place_of(*v, name, "x", o.x), *w = place_of(*v, name, "w", o.w);
    void *y = place_of(*v, name, "y", o.y);
    void *workspace = one_of<void *>(*v, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
    if (!x || !w || !y || (e.workspace && !workspace))
        return CUDNN_STATUS_BAD_PARAM;
    check_range(name, "the workspace", workspace, e.workspace);
    last = (int)e.how * 5 + e.algorithm;
    cudaError_t error = enqueue_library(handle->stream, name, [=] {
        if (e.workspace) {
            memset(workspace, 0xEE, e.workspace);
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
        }
        run(o, e, x, w, y);
    });
    return error ? CUDNN_STATUS_EXECUTION_FAILED : CUDNN_STATUS_SUCCESS;
}

/* language.h: CUDA C++'s words for the host's compiler: a thread's place in grid and block,
 * meetings of a block's or a warp's threads, and launches.
 *
 * A block runs on one thread of the host at a time, so that its shared memory is thread_local. */
#ifndef TIDE_PLAYED_LANGUAGE_H
#define TIDE_PLAYED_LANGUAGE_H

#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "../cuda_runtime_api.h"

#define __global__
#define __device__      __attribute__((unused))
#define __host__        __attribute__((unused))
#define __constant__    __attribute__((unused))
#define __shared__      static thread_local
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))

/* Where the running thread stands. The runtime sets these; kernels read them. */
struct td_played_place {
    uint3 thread, block;
    dim3 block_dim{0, 0, 0}, grid_dim{0, 0, 0};
};
#define threadIdx (td_played_here.thread)
#define blockIdx  (td_played_here.block)
#define blockDim  (td_played_here.block_dim)
#define gridDim   (td_played_here.grid_dim)
constexpr int warpSize = 32;

/* How threads of a block meet, and what the lanes of a warp exchange. */
enum td_played_barrier { TD_PLAYED_SYNC, TD_PLAYED_OR, TD_PLAYED_AND, TD_PLAYED_COUNT };
enum td_played_exchange {
    TD_PLAYED_WARP_SYNC,
    TD_PLAYED_SHFL,
    TD_PLAYED_SHFL_UP,
    TD_PLAYED_SHFL_DOWN,
    TD_PLAYED_SHFL_XOR,
    TD_PLAYED_BALLOT,
    TD_PLAYED_MATCH,
    TD_PLAYED_REDUCE_ADD,
    TD_PLAYED_REDUCE_MIN,
    TD_PLAYED_REDUCE_MAX,
    TD_PLAYED_REDUCE_AND,
    TD_PLAYED_REDUCE_OR,
    TD_PLAYED_REDUCE_XOR
};

/* What kernels call of the runtime. */
struct td_played_calls {
    td_played_place *(*here)(void);
    void *(*shared)(void);
    int (*meet_block)(int what, int value);
    uint64_t (*meet_warp)(int what, unsigned mask, uint64_t value, int by, int width);
    unsigned (*active_mask)(void);
    void (*trap)(const char *why);
};
/* A kernel that was compiled at run time: its name, its parameters' sizes, one thread of it. */
struct td_played_entry {
    const char *name;
    size_t nparameters;
    const size_t *sizes;
    void (*run)(void **args);
};

#ifdef TIDE_PLAYED_COMPILED /* at run time, into an object that gets the runtime's calls when      \
                               loaded */
extern "C" {
__attribute__((visibility("default"))) td_played_calls td_played_table;
}
#define td_played_here (*td_played_table.here())
static inline void *td_played_shared() {
    return td_played_table.shared();
}
static inline int td_played_meet_block(int what, int value) {
    return td_played_table.meet_block(what, value);
}
static inline uint64_t td_played_meet_warp(int what, unsigned mask, uint64_t value, int by,
                                           int width) {
    return td_played_table.meet_warp(what, mask, value, by, width);
}
static inline unsigned td_played_active_mask() {
    return td_played_table.active_mask();
}
[[noreturn]] static inline void td_played_trap(const char *why) {
    td_played_table.trap(why);
    __builtin_unreachable();
}
#else
extern thread_local td_played_place td_played_here;
extern "C" {
/* The block's dynamic shared memory, filled with 0xA5 when the block began. */
void *td_played_shared(void);
/* Meet at a barrier of the block and bring a value; what it means follows from `what`. */
int td_played_meet_block(int what, int value);
/* Meet the lanes of `mask` in a warp and exchange values; `by` is a lane, a distance or a mask. */
uint64_t td_played_meet_warp(int what, unsigned mask, uint64_t value, int by, int width);
unsigned td_played_active_mask(void);
/* End the process: a pointer argument that the device may not follow. */
void td_played_check_pointer(const char *name, int argument, const void *p);
[[noreturn]] void td_played_trap(const char *why);
}
#endif

static inline void __syncthreads() {
    td_played_meet_block(TD_PLAYED_SYNC, 0);
}
static inline int __syncthreads_or(int value) {
    return td_played_meet_block(TD_PLAYED_OR, value);
}
static inline int __syncthreads_and(int value) {
    return td_played_meet_block(TD_PLAYED_AND, value);
}
static inline int __syncthreads_count(int value) {
    return td_played_meet_block(TD_PLAYED_COUNT, value);
}
static inline void __syncwarp(unsigned mask = 0xFFFFFFFFu) {
    td_played_meet_warp(TD_PLAYED_WARP_SYNC, mask, 0, 0, 32);
}
static inline void __threadfence() {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
static inline void __threadfence_block() {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
static inline void __threadfence_system() {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
[[noreturn]] static inline void __trap() {
    td_played_trap("__trap");
}

template <typename T>
static inline T td_played_shuffle(int what, unsigned mask, T value, int by, int width) {
    static_assert(std::is_trivially_copyable<T>::value && sizeof(T) <= 8, "not a value to shuffle");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    bits = td_played_meet_warp(what, mask, bits, by, width);
    memcpy(&value, &bits, sizeof value);
    return value;
}
template <typename T>
static inline T __shfl_sync(unsigned mask, T value, int lane, int width = 32) {
    return td_played_shuffle(TD_PLAYED_SHFL, mask, value, lane, width);
}
template <typename T>
static inline T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32) {
    return td_played_shuffle(TD_PLAYED_SHFL_UP, mask, value, (int)by, width);
}
template <typename T>
static inline T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32) {
    return td_played_shuffle(TD_PLAYED_SHFL_DOWN, mask, value, (int)by, width);
}
template <typename T>
static inline T __shfl_xor_sync(unsigned mask, T value, int by, int width = 32) {
    return td_played_shuffle(TD_PLAYED_SHFL_XOR, mask, value, by, width);
}
static inline unsigned __ballot_sync(unsigned mask, int predicate) {
    return (unsigned)td_played_meet_warp(TD_PLAYED_BALLOT, mask, predicate != 0, 0, 32);
}
static inline int __any_sync(unsigned mask, int predicate) {
    return __ballot_sync(mask, predicate) != 0;
}
static inline int __all_sync(unsigned mask, int predicate) {
    return __ballot_sync(mask, !predicate) == 0;
}
template <typename T> static inline unsigned __match_any_sync(unsigned mask, T value) {
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    return (unsigned)td_played_meet_warp(TD_PLAYED_MATCH, mask, bits, 0, 32);
}
static inline unsigned __activemask() {
    return td_played_active_mask();
}

#define TD_PLAYED_WARP_REDUCE(name, what, T)                                                       \
    static inline T __reduce_##name##_sync(unsigned mask, T value) {                               \
        return (T)td_played_meet_warp(what, mask, (uint64_t)(int64_t)value, 0, 32);                \
    }
TD_PLAYED_WARP_REDUCE(add, TD_PLAYED_REDUCE_ADD, unsigned)
TD_PLAYED_WARP_REDUCE(add, TD_PLAYED_REDUCE_ADD, int)
TD_PLAYED_WARP_REDUCE(min, TD_PLAYED_REDUCE_MIN, unsigned)
TD_PLAYED_WARP_REDUCE(min, TD_PLAYED_REDUCE_MIN, int)
TD_PLAYED_WARP_REDUCE(max, TD_PLAYED_REDUCE_MAX, unsigned)
TD_PLAYED_WARP_REDUCE(max, TD_PLAYED_REDUCE_MAX, int)
TD_PLAYED_WARP_REDUCE(and, TD_PLAYED_REDUCE_AND, unsigned)
TD_PLAYED_WARP_REDUCE(or, TD_PLAYED_REDUCE_OR, unsigned)
TD_PLAYED_WARP_REDUCE(xor, TD_PLAYED_REDUCE_XOR, unsigned)
#undef TD_PLAYED_WARP_REDUCE

template <typename T> static inline T __ldg(const T *p) {
    return *p;
}
template <typename T> static inline T __ldcs(const T *p) {
    return *p;
}
template <typename T> static inline T __ldcg(const T *p) {
    return *p;
}
template <typename T> static inline void __stcs(T *p, T value) {
    *p = value;
}

#ifdef TIDE_PLAYED_COMPILED
namespace td_played {

template <typename... P> struct parameters {
    static constexpr size_t sizes[sizeof...(P) + 1] = {sizeof(P)..., 0};
};

template <auto kernel, typename... P, size_t... k>
void run_entry(void **args, void (*)(P...), std::index_sequence<k...>) {
    kernel(*static_cast<std::decay_t<P> *>(args[k])...);
}

template <typename... P> constexpr size_t count_of(void (*)(P...)) {
    return sizeof...(P);
}

template <typename... P> constexpr const size_t *sizes_of(void (*)(P...)) {
    return parameters<std::decay_t<P>...>::sizes;
}

template <auto kernel> constexpr td_played_entry entry(const char *name) {
    return {name, count_of(kernel), sizes_of(kernel), [](void **args) {
                run_entry<kernel>(args, kernel, std::make_index_sequence<count_of(kernel)>());
            }};
}

} // namespace td_played
#else
namespace td_played {

template <typename... P> struct closure {
    void (*kernel)(P...);
    std::tuple<std::decay_t<P>...> args;
};

template <typename... P> void run_closure(void *p) {
    auto *c = static_cast<closure<P...> *>(p);
    std::apply(c->kernel, c->args);
}

template <typename... P> void destroy_closure(void *p) {
    delete static_cast<closure<P...> *>(p);
}

template <typename T> void check_argument(const char *name, int argument, const T &value) {
    if constexpr (std::is_pointer<T>::value)
        if constexpr (!std::is_function<std::remove_pointer_t<T>>::value)
            td_played_check_pointer(name, argument, value);
}

/* Launch `kernel` with copies of the arguments, converted to its parameters' types. A pointer among
 * them must be NULL or point into memory that the device may use. */
template <typename... P, typename... A>
cudaError_t launch(const char *name, bool together, dim3 grid, dim3 block, size_t shared,
                   cudaStream_t stream, void (*kernel)(P...), A &&...args) {
    static_assert(sizeof...(P) == sizeof...(A), "the kernel takes another number of arguments");
    auto *c = new closure<P...>{kernel, std::tuple<std::decay_t<P>...>(std::forward<A>(args)...)};
    int k = 0;
    std::apply([&](const auto &...value) { (check_argument(name, ++k, value), ...); }, c->args);
    return td_played_launch_function(reinterpret_cast<const void *>(kernel), name,
                                     run_closure<P...>, c, destroy_closure<P...>, grid, block,
                                     shared, stream, together);
}

template <typename F> void run_call(void *p) {
    (*static_cast<F *>(p))();
}

template <typename F> void destroy_call(void *p) {
    delete static_cast<F *>(p);
}

/* Queue a library's call: `work()` may touch the device's memory. */
template <typename F> cudaError_t call(const char *name, cudaStream_t stream, F work) {
    return td_played_call(name, run_call<F>, new F(std::move(work)), destroy_call<F>, stream);
}

} // namespace td_played

/* What the toolkit's header has for C++ besides the C functions. */
template <typename T> static inline cudaError_t cudaMalloc(T **block, size_t bytes) {
    return ::cudaMalloc(reinterpret_cast<void **>(block), bytes);
}
template <typename T> static inline cudaError_t cudaMallocHost(T **block, size_t bytes) {
    return ::cudaMallocHost(reinterpret_cast<void **>(block), bytes);
}
template <typename... P>
static inline cudaError_t cudaFuncSetAttribute(void (*function)(P...), cudaFuncAttribute attribute,
                                               int value) {
    return ::cudaFuncSetAttribute(reinterpret_cast<const void *>(function), attribute, value);
}
template <typename... P>
static inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes,
                                                void (*function)(P...)) {
    return ::cudaFuncGetAttributes(attributes, reinterpret_cast<const void *>(function));
}
template <typename... P>
static inline cudaError_t
cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void (*function)(P...), int block_size,
                                              size_t shared) {
    return ::cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks, reinterpret_cast<const void *>(function), block_size, shared);
}
#endif

#endif

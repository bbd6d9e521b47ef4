/* launch.cuh: how kernels are launched, by nvcc's compiler and by the host's.
 *
 *   TD_LAUNCH(kernel, grid, block, stream, arguments...)           threads that go their own way
 *   TD_LAUNCH_TOGETHER(kernel, grid, block, stream, arguments...)  threads that wait for one another
 *
 * Kernels that synchronise, shuffle or vote are launched together: where the CPU plays the device
 * (tests/cuda-on-cpu), each of their threads has a stack of its own. Templates of several
 * parameters stand in parentheses: TD_LAUNCH((kernel<float, 4>), ...). Both are cudaError_t. */
#ifndef TD_CUDA_RUNTIME_LAUNCH_CUH
#define TD_CUDA_RUNTIME_LAUNCH_CUH

#include <cuda_runtime.h>

#ifdef __CUDACC__
/* One call of the runtime, which <<<>>> makes several of. */
template <typename... P>
static cudaError_t td_cu_launch_as(void (*kernel)(P...), dim3 grid, dim3 block, cudaStream_t stream,
                                   P... parameters) {
    void *pointers[] = {(void *)&parameters...};
    return cudaLaunchKernel((const void *)kernel, grid, block, pointers, 0, stream);
}

template <typename... P, typename... A>
static cudaError_t td_cu_launch(void (*kernel)(P...), dim3 grid, dim3 block, cudaStream_t stream,
                                A... arguments) {
    return td_cu_launch_as<P...>(kernel, grid, block, stream, static_cast<P>(arguments)...);
}
#define TD_LAUNCH(kernel, grid, block, stream, ...)                                                \
    td_cu_launch(kernel, grid, block, stream, __VA_ARGS__)
#define TD_LAUNCH_TOGETHER TD_LAUNCH
#else
#define TD_LAUNCH(kernel, grid, block, stream, ...)                                                \
    td_played::launch(#kernel, false, grid, block, 0, stream, kernel, __VA_ARGS__)
#define TD_LAUNCH_TOGETHER(kernel, grid, block, stream, ...)                                       \
    td_played::launch(#kernel, true, grid, block, 0, stream, kernel, __VA_ARGS__)
#endif

#endif

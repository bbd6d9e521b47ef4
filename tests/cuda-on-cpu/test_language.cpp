/* test_language.cpp: kernels on the played device: places, shared memory, barriers, exchanges
 * within warps, atomics, numbers. */
#include "check_cpp.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <vector>

static __global__ void add(const float *a, const float *b, float *out, int n) {
    int k = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (k < n)
        out[k] = a[k] + b[k];
}

TEST(a_kernel_adds_vectors) {
    const int n = 1000;
    float *a = counting<float>(n, 0), *b = counting<float>(n, 5), *out = device_array<float>(n);
    CHECK_OK(LAUNCH(add, (n + 127) / 128, 128, 0, 0, a, b, out, n));
    std::vector<float> got(n);
    CHECK_OK(cudaMemcpy(got.data(), out, n * sizeof(float), cudaMemcpyDeviceToHost));
    for (int k = 0; k < n; k++)
        CHECK_CLOSE(got[(size_t)k], 2 * k + 5, 0);
    cudaFree(a), cudaFree(b), cudaFree(out);
}

static __global__ void places(int *out) {
    unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    atomicAdd(&out[block * 24 + thread], (int)(block * 1000 + thread));
}

TEST(every_thread_of_every_block_runs_once) {
    int *out = device_array<int>(30 * 24), host[30 * 24];
    CHECK_OK(cudaMemset(out, 0, sizeof host));
    CHECK_OK(LAUNCH(places, dim3(5, 3, 2), dim3(4, 3, 2), 0, 0, out));
    CHECK_OK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
    for (int k = 0; k < 30 * 24; k++)
        CHECK_INT(host[k], k / 24 * 1000 + k % 24);
    cudaFree(out);
}

/* The sum of a block: in warps by shuffles, then through shared memory. */
static __global__ void block_sum(const long long *x, long long *out, int n) {
    __shared__ long long parts[32];
    long long sum = 0;
    for (int k = (int)threadIdx.x; k < n; k += (int)blockDim.x)
        sum += x[(int)blockIdx.x * n + k];
    for (int by = 16; by; by /= 2)
        sum += __shfl_down_sync(0xFFFFFFFFu, sum, (unsigned)by);
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = threadIdx.x < blockDim.x / 32 ? parts[threadIdx.x] : 0;
        for (int by = 16; by; by /= 2)
            sum += __shfl_xor_sync(0xFFFFFFFFu, sum, by);
        if (threadIdx.x == 0)
            out[blockIdx.x] = sum;
    }
}

TEST(a_block_reduces_through_shuffles_and_shared_memory) {
    const int n = 777, blocks = 6;
    long long *x = counting<long long>(n * blocks, 3), *out = device_array<long long>(blocks);
    long long host[blocks];
    for (unsigned threads : {32u, 64u, 256u, 1024u}) {
        CHECK_OK(LAUNCH_TOGETHER(block_sum, blocks, threads, 0, 0, x, out, n));
        CHECK_OK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
        for (long long b = 0; b < blocks; b++)
            CHECK_INT(host[b], n * (3 + b * n) + (long long)n * (n - 1) / 2);
    }
    cudaFree(x), cudaFree(out);
}

/* Reads what another thread wrote: only a barrier makes that right. */
static __global__ void reverse(const int *x, int *out, bool wait) {
    int *tile = static_cast<int *>(td_played_shared());
    tile[threadIdx.x] = x[threadIdx.x];
    if (wait)
        __syncthreads();
    else
        __syncwarp();
    out[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}

TEST(a_missing_barrier_shows) {
    const int n = 128;
    int *x = counting<int>(n, 0), *out = device_array<int>(n), host[n];
    for (int wait = 0; wait < 2; wait++) {
        CHECK_OK(LAUNCH_TOGETHER(reverse, 1, n, n * sizeof(int), 0, x, out, wait));
        CHECK_OK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
        int wrong = 0;
        for (int k = 0; k < n; k++)
            wrong += host[k] != n - 1 - k;
        CHECK(wait ? wrong == 0 : wrong > 0);
    }
    cudaFree(x), cudaFree(out);
}

static __global__ void exchanges(unsigned *out) {
    unsigned lane = threadIdx.x, all = 0xFFFFFFFFu;
    out[lane] = __ballot_sync(all, lane % 3 == 0);
    out[32 + lane] = __shfl_sync(all, lane * 10, 5);
    out[64 + lane] = __shfl_up_sync(all, lane, 2);
    out[96 + lane] = __shfl_down_sync(all, lane, 3, 8);
    out[128 + lane] = (unsigned)(__any_sync(all, lane == 7) + 2 * __all_sync(all, lane < 32) +
                                 4 * __any_sync(all, lane > 31) + 8 * __all_sync(all, lane != 3));
    out[160 + lane] = __reduce_add_sync(all, lane);
    double other = __shfl_xor_sync(all, lane + 0.5, 1);
    out[192 + lane] = (unsigned)(2 * other);
    out[224 + lane] = __match_any_sync(all, lane / 4);
    unsigned count = (unsigned)__syncthreads_count(lane < 5),
             any = (unsigned)__syncthreads_or(lane == 9);
    out[256 + lane] = count * 100 + any * 10 + (unsigned)__syncthreads_and(lane != 9);
}

TEST(lanes_exchange_values) {
    unsigned *out = device_array<unsigned>(288), host[288];
    CHECK_OK(LAUNCH_TOGETHER(exchanges, 1, 32, 0, 0, out));
    CHECK_OK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
    for (unsigned l = 0; l < 32; l++) {
        CHECK_INT(host[l], 0x49249249u);
        CHECK_INT(host[32 + l], 50);
        CHECK_INT(host[64 + l], l < 2 ? l : l - 2);
        CHECK_INT(host[96 + l], l % 8 + 3 < 8 ? l + 3 : l);
        CHECK_INT(host[128 + l], 3);
        CHECK_INT(host[160 + l], 496);
        CHECK_INT(host[192 + l], 2 * (l ^ 1) + 1);
        CHECK_INT(host[224 + l], 0xFu << (l / 4 * 4));
        CHECK_INT(host[256 + l], 510);
    }
    cudaFree(out);
}

/* Threads that have ended are waited for by nobody. */
static __global__ void some_leave(int *out) {
    if (threadIdx.x >= 40)
        return;
    int n = __syncthreads_count(1);
    if (threadIdx.x == 0)
        *out = n;
}

TEST(barriers_count_threads_that_live) {
    int *out = device_array<int>(1);
    CHECK_OK(LAUNCH_TOGETHER(some_leave, 1, 100, 0, 0, out));
    CHECK_INT(read_one(out), 40);
    cudaFree(out);
}

static __global__ void tally(int *i, unsigned *u, unsigned long long *l, float *f, double *d,
                             __half *h) {
    int k = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    atomicAdd(i, 1);
    atomicMax(i + 1, k);
    atomicMin(i + 2, -k);
    atomicSub(i + 3, 2);
    atomicOr(u, 1u << k % 32);
    atomicXor(u + 1, (unsigned)k);
    atomicAdd(l, 1ull << 33);
    atomicAdd(f, 0.5f);
    atomicAdd(d, 0.25);
    if (k < 64)
        atomicAdd(h + k % 2, __half(1.0f));
    int seen = i[4], old;
    while ((old = atomicCAS(i + 4, seen, seen + 3)) != seen)
        seen = old;
}

TEST(atomics_add_up_over_many_blocks) {
    const int n = 64 * 50;
    char *room = device_array<char>(256);
    CHECK_OK(cudaMemset(room, 0, 256));
    auto *i = (int *)room;
    auto *u = (unsigned *)(room + 32);
    auto *l = (unsigned long long *)(room + 64);
    auto *f = (float *)(room + 96);
    auto *d = (double *)(room + 128);
    auto *h = (__half *)(room + 160);
    CHECK_OK(LAUNCH(tally, 50, 64, 0, 0, i, u, l, f, d, h));
    CHECK_INT(read_one(i), n);
    CHECK_INT(read_one(i + 1), n - 1);
    CHECK_INT(read_one(i + 2), 1 - n);
    CHECK_INT(read_one(i + 3), -2 * n);
    CHECK_INT(read_one(i + 4), 3 * n);
    CHECK_INT(read_one(u), 0xFFFFFFFFu);
    unsigned parity = 0;
    for (unsigned k = 0; k < n; k++)
        parity ^= k;
    CHECK_INT(read_one(u + 1), parity);
    CHECK_INT(read_one(l), (long long)n << 33);
    CHECK_CLOSE(read_one(f), n / 2.0, 0);
    CHECK_CLOSE(read_one(d), n / 4.0, 0);
    CHECK_CLOSE(__half2float(read_one(h + 1)), 32, 0);
    cudaFree(room);
}

TEST(limits_are_those_of_a_device) {
    int *out = device_array<int>(1);
    auto launch = [&](dim3 grid, dim3 block, size_t shared) {
        return LAUNCH_TOGETHER(some_leave, grid, block, shared, 0, out);
    };
    CHECK_INT(launch(0, 32, 0), cudaErrorInvalidConfiguration);
    CHECK_INT(cudaGetLastError(), cudaErrorInvalidConfiguration);
    CHECK_INT(cudaGetLastError(), cudaSuccess);
    CHECK_INT(launch(1, 1025, 0), cudaErrorInvalidConfiguration);
    CHECK_INT(launch(1, dim3(1, 1, 65), 0), cudaErrorInvalidConfiguration);
    CHECK_INT(launch(dim3(1, 65536), 32, 0), cudaErrorInvalidConfiguration);
    CHECK_INT(launch(1, 32, 48 * 1024 + 1), cudaErrorInvalidValue);
    cudaFuncAttribute most = cudaFuncAttributeMaxDynamicSharedMemorySize;
    CHECK_INT(cudaFuncSetAttribute(some_leave, most, 228 * 1024), cudaErrorInvalidValue);
    CHECK_OK(cudaFuncSetAttribute(some_leave, most, 227 * 1024));
    CHECK_OK(launch(1, 32, 227 * 1024));
    CHECK_OK(cudaDeviceSynchronize());
    cudaGetLastError();
    cudaFree(out);
}

TEST(small_floats_round_to_nearest_even) {
    CHECK_INT(__half_as_ushort(__half(65519.0f)), 0x7BFF);
    CHECK_INT(__half_as_ushort(__half(65520.0f)), 0x7C00);
    CHECK_INT(__half_as_ushort(__half(-5.9604645e-8f)), 0x8001);
    CHECK_INT(__half_as_ushort(__half(2049.0f)), 0x6800);
    CHECK_INT(__half_as_ushort(__half(2049.0 + 1e-9)), 0x6801); /* not by way of a float */
    CHECK_INT(__bfloat16_as_ushort(__nv_bfloat16(257.0f)), 0x4380);
    CHECK_INT(__bfloat16_as_ushort(__nv_bfloat16(259.0f)), 0x4382);
    for (unsigned bits = 0; bits < 0x10000; bits++) {
        __half h = __ushort_as_half((unsigned short)bits);
        if (!__hisnan(h))
            CHECK_INT(__half_as_ushort(__half((float)h)), bits);
    }
}

TEST(numbers_are_what_a_device_says) {
    CHECK_CLOSE(erfinv(0.5), 0.47693627620446987, 1e-15);
    CHECK_CLOSE(erfinv(-0.999), -2.326753765513525, 1e-13);
    CHECK_CLOSE(erfinv(1e-10), 8.86226925452758e-11, 1e-24);
    CHECK_CLOSE(erfcinv(1e-100), 15.065574702593, 1e-10);
    CHECK_CLOSE(normcdfinv(0.975), 1.959963984540054, 1e-13);
    CHECK_CLOSE(cyl_bessel_i0(3.0), 4.880792585865024, 1e-13);
    CHECK_CLOSE(cyl_bessel_i1(-3.0), -3.953370217402609, 1e-13);
    CHECK_CLOSE(rsqrtf(16), 0.25, 0);
    CHECK_CLOSE(erfcx(30.0), 0.018795888861416751, 1e-15);
    CHECK_INT(__brev(1), 0x80000000u);
    CHECK_INT(__clz(0), 32);
    CHECK_INT(__umulhi(0x80000000u, 6), 3);
    CHECK_INT((long long)__umul64hi(1ull << 63, 6), 3);
    CHECK_INT(__float2int_rn(2.5f), 2);
    CHECK_INT(__float2int_rz(3e10f), 2147483647);
    CHECK_CLOSE(sinpi(1.0), 0, 0);
}

int main() {
    RUN(a_kernel_adds_vectors);
    RUN(every_thread_of_every_block_runs_once);
    RUN(a_block_reduces_through_shuffles_and_shared_memory);
    RUN(a_missing_barrier_shows);
    RUN(lanes_exchange_values);
    RUN(barriers_count_threads_that_live);
    RUN(atomics_add_up_over_many_blocks);
    RUN(limits_are_those_of_a_device);
    RUN(small_floats_round_to_nearest_even);
    RUN(numbers_are_what_a_device_says);
    return check_finish();
}

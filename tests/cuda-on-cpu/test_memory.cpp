/* test_memory.cpp: the played device's memory: limits, failures on demand, ranges of copies, errors
 * that stay. What ends the process is in test_faults.cpp. */
#include "check_cpp.h"

#include <cstdlib>

static __global__ void put(int *p, int value) {
    *p = value;
}

TEST(memory_ends_where_the_device_does) {
    size_t available, total;
    void *a, *b;
    CHECK_OK(cudaMemGetInfo(&available, &total));
    CHECK_INT(total, 64 << 20);
    CHECK_INT(available, total);
    CHECK_OK(cudaMalloc(&a, 48 << 20));
    CHECK_INT(td_played_memory_out(), 48 << 20);
    CHECK_INT(cudaMalloc(&b, 17 << 20), cudaErrorMemoryAllocation);
    CHECK_INT((uintptr_t)b, 0);
    CHECK_INT(cudaGetLastError(), cudaErrorMemoryAllocation);
    CHECK_OK(cudaFree(a));
    CHECK_OK(cudaMalloc(&b, 17 << 20));
    CHECK_OK(cudaFree(b));
    CHECK_INT(td_played_memory_out(), 0);
}

TEST(allocations_fail_on_demand) {
    void *p;
    td_played_fail_malloc(2);
    CHECK_OK(cudaMalloc(&p, 8));
    CHECK_OK(cudaFree(p));
    CHECK_INT(cudaMalloc(&p, 8), cudaErrorMemoryAllocation);
    CHECK_OK(cudaMalloc(&p, 8));
    CHECK_INT((uintptr_t)p % 256, 0);
    CHECK_OK(cudaFree(p));
    CHECK_INT(cudaFree(p), cudaErrorInvalidValue); /* twice */
    CHECK_INT(cudaFree((char *)counting<int>(4, 0) + 4), cudaErrorInvalidValue);
    CHECK_OK(cudaFree(NULL));
    cudaGetLastError();
}

TEST(fresh_memory_holds_a_pattern) {
    float *x = device_array<float>(3);
    float value = read_one(x + 2);
    CHECK(std::isnan(value));
    cudaFree(x);
}

TEST(copies_keep_within_blocks_of_the_right_kind) {
    int host[8] = {0}, *x = device_array<int>(4), *pinned;
    CHECK_OK(cudaMallocHost(&pinned, 4 * sizeof *pinned));
    size_t most = 4 * sizeof *x;
    CHECK_INT(cudaMemcpy(x, host, most + 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    CHECK_INT(cudaMemcpy(x + 1, host, most, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    CHECK_INT(cudaMemcpy(x, host, most, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
    CHECK_INT(cudaMemcpy(host, x, most, cudaMemcpyHostToHost), cudaErrorInvalidValue);
    CHECK_INT(cudaMemcpy(host, pinned, most + 4, cudaMemcpyDefault), cudaErrorInvalidValue);
    CHECK_INT(cudaMemcpy(x, host, most, (cudaMemcpyKind)9), cudaErrorInvalidMemcpyDirection);
    CHECK_INT(cudaMemset(host, 0, 4), cudaErrorInvalidValue);
    CHECK_INT(cudaMemset(x, 0, most + 1), cudaErrorInvalidValue);
    CHECK_OK(cudaMemcpy(x, host, most, cudaMemcpyDefault));
    CHECK_OK(cudaMemcpy(pinned, x, most, cudaMemcpyDefault));
    CHECK_INT(pinned[3], 0);
    cudaGetLastError();
    cudaFree(x), cudaFreeHost(pinned);
}

TEST(an_error_of_the_device_stays_until_reset) {
    int *x = device_array<int>(1), value;
    td_played_fail_next(cudaErrorIllegalAddress);
    CHECK_OK(LAUNCH(put, 1, 1, 0, 0, x, 1)); /* it happens when the kernel runs */
    CHECK_INT(cudaMemcpy(&value, x, sizeof value, cudaMemcpyDeviceToHost), cudaErrorIllegalAddress);
    CHECK_INT(cudaFree(x), cudaErrorIllegalAddress);
    CHECK_INT(LAUNCH(put, 1, 1, 0, 0, x, 1), cudaErrorIllegalAddress);
    CHECK_INT(cudaGetLastError(), cudaErrorIllegalAddress);
    CHECK_INT(cudaGetLastError(), cudaErrorIllegalAddress);
    CHECK_OK(cudaDeviceReset());
    CHECK_OK(cudaGetLastError());
    CHECK_INT(td_played_memory_out(), 0);
    x = counting<int>(1, 3);
    CHECK_INT(read_one(x), 3);
    td_played_fail_next(cudaErrorLaunchOutOfResources);
    CHECK_INT(LAUNCH(put, 1, 1, 0, 0, x, 1), cudaErrorLaunchOutOfResources);
    CHECK_OK(LAUNCH(put, 1, 1, 0, 0, x, 1));
    CHECK_INT(read_one(x), 1);
    cudaGetLastError();
    cudaFree(x);
}

TEST(counts_say_what_was_done) {
    int *x = device_array<int>(4), host[4] = {0};
    td_played_reset_counts();
    cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice);
    cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost);
    cudaMemcpy(x, x + 2, 8, cudaMemcpyDeviceToDevice);
    cudaMemset(x, 0, 4);
    LAUNCH(put, 1, 1, 0, 0, x, 1);
    LAUNCH(put, 1, 1, 0, 0, x, 2);
    cudaDeviceSynchronize();
    td_played_counts c = td_played_get_counts();
    CHECK_INT(c.launches, 2);
    CHECK_INT(td_played_launches_of("put"), 2);
    CHECK_INT(c.to_device, 1);
    CHECK_INT(c.bytes_to_device, 16);
    CHECK_INT(c.to_host, 1);
    CHECK_INT(c.on_device, 1);
    CHECK_INT(c.sets, 1);
    CHECK_INT(c.synchronisations, 2);
    CHECK_INT(c.mallocs, 0);
    cudaFree(x);
}

TEST(errors_have_names) {
    CHECK_STR(cudaGetErrorName(cudaErrorIllegalAddress), "cudaErrorIllegalAddress");
    CHECK_STR(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
    CHECK_STR(cudaGetErrorName((cudaError_t)12345), "unrecognized error code");
}

int main() {
    setenv("TIDE_PLAYED_MEMORY", "64M", 1);
    RUN(memory_ends_where_the_device_does);
    RUN(allocations_fail_on_demand);
    RUN(fresh_memory_holds_a_pattern);
    RUN(copies_keep_within_blocks_of_the_right_kind);
    RUN(an_error_of_the_device_stays_until_reset);
    RUN(counts_say_what_was_done);
    RUN(errors_have_names);
    return check_finish();
}

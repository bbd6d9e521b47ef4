/* test_cupti.cpp: the played CUPTI tells what was queued and what ran, in records as the real
 * one's. */
#include "check_cpp.h"

#include <cstdlib>
#include <cupti.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

static std::vector<CUpti_ActivityAPI> calls;
static std::vector<CUpti_ActivityKernel4> kernels;
static std::vector<CUpti_ActivityMemcpy> copies;
static std::vector<CUpti_ActivityMemcpyPtoP> peer_copies;
static std::vector<CUpti_ActivityMemset> sets;
static size_t buffers, size_of_buffers = 4096;

static void give(uint8_t **buffer, size_t *size, size_t *most) {
    *buffer = static_cast<uint8_t *>(malloc(size_of_buffers));
    *size = size_of_buffers;
    *most = 0;
    buffers++;
}

static void take(CUcontext, uint32_t, uint8_t *buffer, size_t, size_t valid) {
    CUpti_Activity *at = nullptr;
    while (cuptiActivityGetNextRecord(buffer, valid, &at) == CUPTI_SUCCESS) {
        if (at->kind == CUPTI_ACTIVITY_KIND_RUNTIME)
            calls.push_back(*reinterpret_cast<CUpti_ActivityAPI *>(at));
        else if (at->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
            kernels.push_back(*reinterpret_cast<CUpti_ActivityKernel4 *>(at));
        else if (at->kind == CUPTI_ACTIVITY_KIND_MEMCPY)
            copies.push_back(*reinterpret_cast<CUpti_ActivityMemcpy *>(at));
        else if (at->kind == CUPTI_ACTIVITY_KIND_MEMCPY2)
            peer_copies.push_back(*reinterpret_cast<CUpti_ActivityMemcpyPtoP *>(at));
        else if (at->kind == CUPTI_ACTIVITY_KIND_MEMSET)
            sets.push_back(*reinterpret_cast<CUpti_ActivityMemset *>(at));
    }
    free(buffer);
}

static void called_back(void *, CUpti_CallbackDomain, CUpti_CallbackId, const void *) {}

static CUpti_SubscriberHandle subscriber;
static const CUpti_ActivityKind kinds[] = {
    CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
    CUPTI_ACTIVITY_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMSET};

static void begin() {
    calls.clear();
    kernels.clear();
    copies.clear();
    peer_copies.clear();
    sets.clear();
    CHECK_INT(cuptiSubscribe(&subscriber, called_back, nullptr), CUPTI_SUCCESS);
    CHECK_INT(cuptiActivityRegisterCallbacks(give, take), CUPTI_SUCCESS);
    for (CUpti_ActivityKind kind : kinds)
        CHECK_INT(cuptiActivityEnable(kind), CUPTI_SUCCESS);
}

static void end() {
    cudaDeviceSynchronize();
    CHECK_INT(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
    for (CUpti_ActivityKind kind : kinds)
        CHECK_INT(cuptiActivityDisable(kind), CUPTI_SUCCESS);
    CHECK_INT(cuptiUnsubscribe(subscriber), CUPTI_SUCCESS);
}

static void nothing() {}

TEST(kernels_follow_their_calls) {
    cudaStream_t stream;
    uint32_t first = 0, second = 0;
    uint64_t before, after;
    cudaStreamCreate(&stream);
    cuptiGetTimestamp(&before);
    begin();
    for (int k = 0; k < 100; k++)
        td_played::launch("nothing", false, 1, 1, 0, k % 2 ? stream : nullptr, nothing);
    end();
    cuptiGetTimestamp(&after);
    CHECK_INT(kernels.size(), 100);
    CHECK_INT(calls.size(), 100);
    cuptiGetStreamIdEx(nullptr, stream, 0, &second);
    for (const CUpti_ActivityKernel4 &k : kernels) {
        const CUpti_ActivityAPI *asked = nullptr;
        for (const CUpti_ActivityAPI &c : calls)
            asked = c.correlationId == k.correlationId ? &c : asked;
        CHECK(asked && asked->end <= k.start && k.start < k.end);
        CHECK(asked && asked->threadId == (uint32_t)syscall(SYS_gettid));
        CHECK(before < k.start && k.end < after);
        CHECK_STR(k.name, "_Z7nothingv");
        first = k.streamId != second ? k.streamId : first;
    }
    CHECK(first && second && first != second);
    cudaStreamDestroy(stream);
}

TEST(copies_and_sets_tell_bytes_and_directions) {
    char here[100], *there, *beyond;
    cudaMalloc((void **)&there, 200);
    cudaSetDevice(1);
    cudaMalloc((void **)&beyond, 200);
    cudaSetDevice(0);
    begin();
    cudaMemcpy(there, here, 100, cudaMemcpyHostToDevice);
    cudaMemcpy(here, there, 90, cudaMemcpyDeviceToHost);
    cudaMemcpyAsync(there + 100, there, 80, cudaMemcpyDeviceToDevice, nullptr);
    cudaMemcpyPeerAsync(beyond, 1, there, 0, 70, nullptr);
    cudaMemsetAsync(there, 1, 60, nullptr);
    end();
    CHECK_INT(copies.size(), 3);
    for (const CUpti_ActivityMemcpy &c : copies)
        CHECK_INT(c.bytes, c.copyKind == 1 ? 100 : c.copyKind == 2 ? 90 : 80);
    CHECK_INT(peer_copies.size(), 1);
    CHECK_INT(peer_copies.empty() ? 0 : peer_copies[0].bytes, 70);
    CHECK_INT(sets.size(), 1);
    CHECK_INT(sets.empty() ? 0 : sets[0].bytes, 60);
    cudaFree(there);
    cudaFree(beyond);
}

TEST(records_come_in_as_many_buffers_as_they_need) {
    buffers = 0;
    size_of_buffers = 256;
    begin();
    for (int k = 0; k < 50; k++)
        td_played::launch("nothing", false, 1, 1, 0, 0, nothing);
    end();
    CHECK(buffers > 10);
    CHECK_INT(kernels.size(), 50);
    size_of_buffers = 4096;
}

TEST(one_subscribes_and_others_are_refused) {
    CUpti_SubscriberHandle other;
    begin();
    CHECK_INT(cuptiSubscribe(&other, called_back, nullptr),
              CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    end();
    td_played_fail_cupti(35, 0);
    CHECK_INT(cuptiSubscribe(&other, called_back, nullptr), CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
    td_played_fail_cupti(0, CUPTI_ACTIVITY_KIND_MEMSET);
    CHECK_INT(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET), CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
    td_played_fail_cupti(0, 0);
    CHECK_INT(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_MEMSET), CUPTI_ERROR_INVALID_PARAMETER);
}

TEST(nothing_is_told_while_nobody_traces) {
    calls.clear();
    kernels.clear();
    td_played::launch("nothing", false, 1, 1, 0, 0, nothing);
    cudaDeviceSynchronize();
    CHECK_INT(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
    CHECK_INT(calls.size() + kernels.size(), 0);
}

int main() {
    RUN(kernels_follow_their_calls);
    RUN(copies_and_sets_tell_bytes_and_directions);
    RUN(records_come_in_as_many_buffers_as_they_need);
    RUN(one_subscribes_and_others_are_refused);
    RUN(nothing_is_told_while_nobody_traces);
    return check_finish();
}

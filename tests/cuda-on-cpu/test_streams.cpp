/* test_streams.cpp: streams of the played device are late: what nobody waits for has not happened,
 * and a missing dependency gives a wrong value for some seed. */
#include "check_cpp.h"

#include <vector>

static __global__ void put(int *p, int value) {
    *p = value;
}

static __global__ void copy_one(const int *from, int *to) {
    *to = *from;
}

static cudaStream_t new_stream() {
    cudaStream_t s;
    CHECK_OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    return s;
}

/* One stream writes, another reads; is the value right for this seed? */
static bool right(unsigned long long seed, bool with_event) {
    cudaStream_t a = new_stream(), b = new_stream();
    cudaEvent_t done;
    CHECK_OK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    int *x = counting<int>(2, 0);
    cudaDeviceSynchronize();
    td_played_set_seed(seed);
    LAUNCH(put, 1, 1, 0, a, x, 7);
    if (with_event) {
        CHECK_OK(cudaEventRecord(done, a));
        CHECK_OK(cudaStreamWaitEvent(b, done));
    }
    LAUNCH(copy_one, 1, 1, 0, b, x, x + 1);
    CHECK_OK(cudaStreamSynchronize(b));
    bool ok = read_one(x + 1) == 7;
    cudaStreamDestroy(a), cudaStreamDestroy(b), cudaEventDestroy(done), cudaFree(x);
    return ok;
}

TEST(a_missing_event_shows_for_some_seed) {
    int wrong = 0;
    for (unsigned long long seed = 1; seed <= 8; seed++) {
        wrong += !right(seed, false);
        CHECK(right(seed, true));
    }
    CHECK(wrong > 0);
}

TEST(work_waits_until_somebody_waits_for_it) {
    cudaStream_t s = new_stream();
    int *pinned;
    CHECK_OK(cudaMallocHost(&pinned, sizeof *pinned));
    *pinned = 1;
    LAUNCH(put, 1, 1, 0, s, pinned, 2);
    CHECK_INT(*pinned, 1);
    CHECK_OK(cudaStreamSynchronize(s));
    CHECK_INT(*pinned, 2);
    LAUNCH(put, 1, 1, 0, s, pinned, 3);
    int queries = 0;
    while (cudaStreamQuery(s) == cudaErrorNotReady && queries < 1000)
        queries++;
    CHECK(queries < 1000);
    CHECK_INT(*pinned, 3);
    cudaGetLastError();
    cudaStreamDestroy(s), cudaFreeHost(pinned);
}

TEST(a_pinned_buffer_reused_too_early_shows_and_a_pageable_one_does_not) {
    int *pinned, pageable = 5, *x = device_array<int>(2);
    cudaStream_t s = new_stream();
    CHECK_OK(cudaMallocHost(&pinned, sizeof *pinned));
    *pinned = 5;
    CHECK_OK(cudaMemcpyAsync(x, pinned, sizeof *x, cudaMemcpyHostToDevice, s));
    CHECK_OK(cudaMemcpyAsync(x + 1, &pageable, sizeof *x, cudaMemcpyHostToDevice, s));
    *pinned = pageable = 6;
    CHECK_OK(cudaStreamSynchronize(s));
    CHECK_INT(read_one(x), 6);
    CHECK_INT(read_one(x + 1), 5);
    CHECK_OK(cudaMemcpyAsync(&pageable, x, sizeof *x, cudaMemcpyDeviceToHost, s));
    CHECK_INT(pageable, 6); /* a download to pageable memory returns when it is done */
    cudaStreamDestroy(s), cudaFreeHost(pinned), cudaFree(x);
}

TEST(the_default_stream_and_blocking_ones_follow_each_other) {
    for (unsigned long long seed = 1; seed <= 8; seed++) {
        cudaStream_t blocking;
        CHECK_OK(cudaStreamCreateWithFlags(&blocking, cudaStreamDefault));
        int *x = counting<int>(3, 0);
        cudaDeviceSynchronize();
        td_played_set_seed(seed);
        LAUNCH(put, 1, 1, 0, blocking, x, 4);
        LAUNCH(copy_one, 1, 1, 0, 0, x, x + 1);
        LAUNCH(copy_one, 1, 1, 0, blocking, x + 1, x + 2);
        CHECK_OK(cudaStreamSynchronize(blocking));
        CHECK_INT(read_one(x + 2), 4);
        cudaStreamDestroy(blocking), cudaFree(x);
    }
}

TEST(events_tell_time_and_order) {
    cudaEvent_t from, to, untimed;
    int *x = device_array<int>(1);
    CHECK_OK(cudaEventCreate(&from));
    CHECK_OK(cudaEventCreate(&to));
    CHECK_OK(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
    CHECK_OK(cudaEventQuery(from)); /* never recorded: nothing to wait for */
    float ms = -1;
    CHECK_INT(cudaEventElapsedTime(&ms, from, to), cudaErrorInvalidResourceHandle);
    CHECK_OK(cudaEventRecord(from));
    LAUNCH(put, 1, 1, 0, 0, x, 1);
    CHECK_OK(cudaEventRecord(to));
    CHECK_INT(cudaEventElapsedTime(&ms, from, to), cudaErrorNotReady);
    CHECK_OK(cudaEventSynchronize(to));
    CHECK_OK(cudaEventElapsedTime(&ms, from, to));
    CHECK(ms > 0);
    CHECK_INT(cudaEventElapsedTime(&ms, from, untimed), cudaErrorInvalidResourceHandle);
    CHECK_OK(cudaEventDestroy(from));
    CHECK_INT(cudaEventDestroy(from), cudaErrorInvalidResourceHandle);
    cudaGetLastError();
    cudaEventDestroy(to), cudaEventDestroy(untimed), cudaFree(x);
}

static void note(void *data) {
    auto *seen = static_cast<std::vector<int> *>(data);
    int count;
    seen->push_back(cudaGetDeviceCount(&count)); /* CUDA may not be called from here */
}

TEST(host_functions_run_in_their_turn) {
    std::vector<int> seen;
    cudaStream_t s = new_stream();
    CHECK_OK(cudaLaunchHostFunc(s, note, &seen));
    CHECK_INT(seen.size(), 0);
    CHECK_OK(cudaStreamSynchronize(s));
    CHECK_INT(seen.size(), 1);
    CHECK_INT(seen[0], cudaErrorNotPermitted);
    cudaGetLastError();
    cudaStreamDestroy(s);
}

static __global__ void add_to(int *p, int value) {
    *p += value;
}

TEST(graphs_replay_with_the_arguments_they_were_recorded_with) {
    cudaStream_t s = new_stream(), side = new_stream();
    cudaEvent_t fork, join;
    cudaEventCreateWithFlags(&fork, cudaEventDisableTiming);
    cudaEventCreateWithFlags(&join, cudaEventDisableTiming);
    int *x = device_array<int>(3);
    CHECK_OK(cudaMemset(x, 0, 3 * sizeof *x));
    CHECK_OK(cudaDeviceSynchronize());
    CHECK_OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    LAUNCH(add_to, 1, 1, 0, s, x, 1);
    CHECK_OK(cudaEventRecord(fork, s));
    CHECK_OK(cudaStreamWaitEvent(side, fork));
    LAUNCH(copy_one, 1, 1, 0, side, x, x + 1);
    LAUNCH(add_to, 1, 1, 0, side, x + 2, 10);
    CHECK_OK(cudaEventRecord(join, side));
    CHECK_OK(cudaStreamWaitEvent(s, join));
    void *more;
    CHECK_INT(cudaEventQuery(join), cudaErrorCapturedEvent);
    cudaGraph_t graph;
    CHECK_INT(cudaStreamEndCapture(s, &graph), cudaErrorStreamCaptureInvalidated);

    CHECK_OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    LAUNCH(add_to, 1, 1, 0, s, x, 1);
    cudaStreamCaptureMode relaxed = cudaStreamCaptureModeRelaxed;
    CHECK_OK(cudaThreadExchangeStreamCaptureMode(&relaxed));
    CHECK_OK(cudaMalloc(&more, 16)); /* allowed now alone */
    CHECK_OK(cudaThreadExchangeStreamCaptureMode(&relaxed));
    CHECK_OK(cudaEventRecord(fork, s));
    CHECK_OK(cudaStreamWaitEvent(side, fork));
    LAUNCH(copy_one, 1, 1, 0, side, x, x + 1);
    CHECK_OK(cudaEventRecord(join, side));
    LAUNCH(add_to, 1, 1, 0, s, x + 2, 10);
    CHECK_OK(cudaStreamWaitEvent(s, join));
    CHECK_OK(cudaStreamEndCapture(s, &graph));
    CHECK_INT(read_one(x), 0); /* nothing ran */
    cudaGraphExec_t exec;
    CHECK_OK(cudaGraphInstantiate(&exec, graph));
    CHECK_OK(cudaGraphDestroy(graph));
    td_played_reset_counts();
    for (int k = 1; k <= 5; k++) {
        CHECK_OK(cudaGraphLaunch(exec, s));
        if (k % 2 == 0)
            CHECK_OK(cudaStreamSynchronize(s));
    }
    CHECK_OK(cudaStreamSynchronize(s));
    CHECK_INT(td_played_launches_of("add_to"), 10);
    CHECK_INT(read_one(x), 5);
    CHECK_INT(read_one(x + 1), 5);
    CHECK_INT(read_one(x + 2), 50);
    cudaGetLastError();
    CHECK_OK(cudaGraphExecDestroy(exec));
    cudaStreamDestroy(s), cudaStreamDestroy(side), cudaEventDestroy(fork), cudaEventDestroy(join);
    cudaFree(x), cudaFree(more);
}

TEST(captures_refuse_what_cuda_refuses) {
    cudaStream_t s = new_stream(), side = new_stream();
    cudaEvent_t fork;
    cudaGraph_t graph;
    int *x = counting<int>(2, 0), host = 0;
    cudaEventCreateWithFlags(&fork, cudaEventDisableTiming);
    CHECK_INT(cudaStreamBeginCapture(0, cudaStreamCaptureModeGlobal),
              cudaErrorStreamCaptureUnsupported);
    CHECK_OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    CHECK_INT(cudaMemcpyAsync(&host, x, sizeof host, cudaMemcpyDeviceToHost, s),
              cudaErrorStreamCaptureUnsupported);
    CHECK_INT(LAUNCH(put, 1, 1, 0, s, x, 1), cudaErrorStreamCaptureInvalidated);
    CHECK_INT(cudaStreamEndCapture(s, &graph), cudaErrorStreamCaptureInvalidated);

    CHECK_OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    CHECK_OK(cudaEventRecord(fork, s));
    CHECK_OK(cudaStreamWaitEvent(side, fork));
    LAUNCH(put, 1, 1, 0, side, x, 1);
    CHECK_INT(cudaStreamEndCapture(s, &graph), cudaErrorStreamCaptureUnjoined);

    CHECK_OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    void *p;
    CHECK_INT(cudaMalloc(&p, 16), cudaErrorStreamCaptureUnsupported);
    CHECK_INT(cudaStreamEndCapture(s, &graph), cudaErrorStreamCaptureInvalidated);
    CHECK_INT(read_one(x), 0);
    cudaGetLastError();
    cudaStreamDestroy(s), cudaStreamDestroy(side), cudaEventDestroy(fork), cudaFree(x);
}

TEST(two_devices_have_memory_and_streams_of_their_own) {
    int *x = counting<int>(2, 30), *y, count, can;
    cudaStream_t there;
    CHECK_OK(cudaDeviceSynchronize());
    CHECK_OK(cudaGetDeviceCount(&count));
    CHECK_INT(count, 2);
    CHECK_OK(cudaSetDevice(1));
    y = device_array<int>(1);
    there = new_stream();
    CHECK_OK(cudaMemcpyPeerAsync(y, 1, x, 0, sizeof *x, there));
    LAUNCH(add_to, 1, 1, 0, there, y, 1);
    CHECK_OK(cudaStreamSynchronize(there));
    CHECK_INT(read_one(y), 31);
    CHECK_OK(cudaDeviceCanAccessPeer(&can, 1, 0));
    CHECK_INT(can, 1);
    CHECK_OK(cudaDeviceEnablePeerAccess(0, 0));
    LAUNCH(copy_one, 1, 1, 0, there, x + 1, y);
    CHECK_OK(cudaStreamSynchronize(there));
    CHECK_INT(read_one(y), 31);
    CHECK_OK(cudaSetDevice(0));
    CHECK_INT(LAUNCH(put, 1, 1, 0, there, x, 1), cudaErrorInvalidResourceHandle);
    CHECK_INT(cudaSetDevice(2), cudaErrorInvalidDevice);
    cudaPointerAttributes a;
    CHECK_OK(cudaPointerGetAttributes(&a, y));
    CHECK_INT(a.type, cudaMemoryTypeDevice);
    CHECK_INT(a.device, 1);
    cudaGetLastError();
    cudaStreamDestroy(there), cudaFree(x), cudaFree(y);
}

int main() {
    RUN(a_missing_event_shows_for_some_seed);
    RUN(work_waits_until_somebody_waits_for_it);
    RUN(a_pinned_buffer_reused_too_early_shows_and_a_pageable_one_does_not);
    RUN(the_default_stream_and_blocking_ones_follow_each_other);
    RUN(events_tell_time_and_order);
    RUN(host_functions_run_in_their_turn);
    RUN(graphs_replay_with_the_arguments_they_were_recorded_with);
    RUN(captures_refuse_what_cuda_refuses);
    RUN(two_devices_have_memory_and_streams_of_their_own);
    return check_finish();
}

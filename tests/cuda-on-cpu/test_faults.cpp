/* test_faults.cpp: what ends the process on the played device, and the words it says: each in a
 * process of its own, with the CPU's protection keys and without. */
#include "check_cpp.h"

#include <cstdlib>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

static __global__ void meets(int *p) {
    __syncthreads();
    *p = 1;
}
static __global__ void shuffles(int *p) {
    *p = __shfl_sync(0xFFFFFFFFu, 1, 0);
}
static __global__ void parts(int *p) {
    if (threadIdx.x % 2)
        __syncthreads();
    else
        *p = __shfl_sync(0xFFFFFFFFu, 1, 0);
}
static __global__ void writes(int *p, int at) {
    p[at] = 1;
}
static __global__ void reads_shared(int *p, int at) {
    *p = static_cast<volatile int *>(td_played_shared())[at];
}

/* Runs what ends the process; what it wrote to stderr, or "(lived)". */
static std::string last_words(void (*act)()) {
    int ends[2], status;
    if (pipe(ends))
        return "(no pipe)";
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 2);
        act();
        _exit(0);
    }
    close(ends[1]);
    std::string words;
    char piece[512];
    for (ssize_t n; (n = read(ends[0], piece, sizeof piece)) > 0;)
        words.append(piece, (size_t)n);
    close(ends[0]);
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? "(lived) " + words : words;
}

#define CHECK_ENDS(act, words) CHECK_CONTAINS(last_words([] { act; }).c_str(), words)

TEST(a_kernel_that_meets_must_be_launched_so) {
    CHECK_ENDS(LAUNCH(meets, 1, 32, 0, 0, device_array<int>(1));
               cudaDeviceSynchronize(),
               "kernel meets: its threads meet (__syncthreads), but it was launched as one whose");
    CHECK_ENDS(LAUNCH(shuffles, 1, 32, 0, 0, device_array<int>(1));
               cudaDeviceSynchronize(),
               "kernel shuffles: its threads meet (an exchange of a warp)");
}

TEST(threads_that_part_are_named) {
    CHECK_ENDS(
        LAUNCH_TOGETHER(parts, 1, 32, 0, 0, device_array<int>(1));
        cudaDeviceSynchronize(),
        "kernel parts, block (0, 0, 0): its threads wait for ever: 16 at __syncthreads, 16 in");
}

TEST(the_host_may_not_touch_device_memory) {
    CHECK_ENDS(*(volatile int *)counting<int>(8, 0) = 1,
               "the host touched byte 0 of a block of 32");
    CHECK_ENDS(volatile int *p = counting<int>(8, 0); cudaDeviceSynchronize();
               (void)p[3], "the host touched byte 12 of a block of 32 bytes of device memory");
}

TEST(an_overrun_far_past_a_block_faults_at_once) {
    CHECK_ENDS(LAUNCH(writes, 1, 1, 0, 0, device_array<int>(8), 64);
               cudaDeviceSynchronize(),
               "kernel writes touched 224 bytes past the end of a block of 32 bytes");
    CHECK_ENDS(int *p = device_array<int>(8); cudaFree(p); td_played_launch(
                   "writes", [](void *x) { writes((int *)x, 1); }, p, NULL, 1, 1, 0, 0, false);
               cudaDeviceSynchronize(),
               "kernel writes touched byte 4 of a freed block of 32 bytes");
}

TEST(an_overrun_within_the_slack_is_noticed) {
    std::string words = last_words([] {
        int *p = device_array<int>(8);
        LAUNCH(writes, 1, 1, 0, 0, p, 9);
        cudaFree(p);
    });
    bool sanitizer = words.find("AddressSanitizer") != std::string::npos;
    if (!sanitizer)
        CHECK_CONTAINS(words.c_str(), "wrote 4 bytes past the end of a block of 32 bytes");
}

TEST(an_overrun_of_shared_memory_faults) {
    CHECK_ENDS(LAUNCH(reads_shared, 1, 1, 16, 0, device_array<int>(1), 4);
               cudaDeviceSynchronize(), "kernel reads_shared touched");
}

TEST(pointers_of_the_host_are_refused_as_arguments) {
    CHECK_ENDS(static int here; LAUNCH(writes, 1, 1, 0, 0, &here, 0),
                                "kernel writes: argument 1 is no address of device memory");
    CHECK_ENDS(cudaSetDevice(1); int *p = device_array<int>(1); cudaSetDevice(0);
               LAUNCH(writes, 1, 1, 0, 0, p, 0),
               "kernel writes on device 0: argument 1 lies on device 1");
}

static void all() {
    RUN(a_kernel_that_meets_must_be_launched_so);
    RUN(threads_that_part_are_named);
    RUN(the_host_may_not_touch_device_memory);
    RUN(an_overrun_far_past_a_block_faults_at_once);
    RUN(an_overrun_within_the_slack_is_noticed);
    RUN(an_overrun_of_shared_memory_faults);
    RUN(pointers_of_the_host_are_refused_as_arguments);
}

int main() {
    all();
    setenv("TIDE_PLAYED_KEYS", "0", 1);
    all();
    return check_finish();
}

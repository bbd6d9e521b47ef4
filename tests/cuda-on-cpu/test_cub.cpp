/* test_cub.cpp: the played device's CUB: sorts, scans, reductions and selections as queued work,
 * and those of a block and a warp. */
#include "check_cpp.h"

#include <cub/cub.cuh>

#include <vector>

/* Calls twice, as CUB wants it: for the size of the storage, then for the work. */
template <typename F> static void twice(F call) {
    void *storage = nullptr;
    size_t bytes = 0;
    CHECK_OK(call(storage, bytes));
    CHECK(bytes > 0);
    CHECK_OK(cudaMalloc(&storage, bytes));
    CHECK_OK(call(storage, bytes));
    bytes--;
    CHECK_INT(call(storage, bytes), cudaErrorInvalidValue);
    CHECK_OK(cudaDeviceSynchronize());
    cudaFree(storage);
}

TEST(sorts_are_stable_and_keep_to_their_bits) {
    std::vector<uint32_t> keys = {0x31, 0x12, 0x21, 0x11, 0x02};
    uint32_t *in = upload(keys), *out = device_array<uint32_t>(5);
    int *values = counting<int>(5, 0), *moved = device_array<int>(5);
    twice([&](void *s, size_t &n) {
        return cub::DeviceRadixSort::SortPairs(s, n, in, out, values, moved, 5, 0, 4);
    });
    CHECK(download(out, 5) == (std::vector<uint32_t>{0x31, 0x21, 0x11, 0x12, 0x02}));
    CHECK(download(moved, 5) == (std::vector<int>{0, 2, 3, 1, 4}));
    twice([&](void *s, size_t &n) {
        return cub::DeviceRadixSort::SortPairsDescending(s, n, in, out, values, moved, 5, 4, 8);
    });
    CHECK(download(moved, 5) == (std::vector<int>{0, 2, 1, 3, 4}));
    std::vector<uint64_t> wide = {~0ull, 1, 1ull << 63};
    uint64_t *from = upload(wide), *to = device_array<uint64_t>(3);
    twice([&](void *s, size_t &n) { return cub::DeviceRadixSort::SortKeys(s, n, from, to, 3); });
    CHECK(download(to, 3) == (std::vector<uint64_t>{1, 1ull << 63, ~0ull}));
    for (void *p :
         {(void *)in, (void *)out, (void *)values, (void *)moved, (void *)from, (void *)to})
        cudaFree(p);
}

TEST(segments_are_sorted_apart) {
    uint8_t *in = upload(std::vector<uint8_t>{3, 1, 2, 9, 8, 7}), *out = device_array<uint8_t>(6);
    int *values = counting<int>(6, 0), *moved = device_array<int>(6);
    int *bounds = upload(std::vector<int>{0, 3, 3, 6});
    twice([&](void *s, size_t &n) {
        return cub::DeviceSegmentedRadixSort::SortPairs(s, n, in, out, values, moved, 6, 3, bounds,
                                                        bounds + 1);
    });
    CHECK(download(out, 6) == (std::vector<uint8_t>{1, 2, 3, 7, 8, 9}));
    CHECK(download(moved, 6) == (std::vector<int>{1, 2, 0, 5, 4, 3}));
    cudaFree(in), cudaFree(out), cudaFree(values), cudaFree(moved), cudaFree(bounds);
}

TEST(scans_and_reductions_go_in_order) {
    int *in = upload(std::vector<int>{5, 1, 4, 2}), *out = device_array<int>(4);
    auto larger = [](int a, int b) { return a > b ? a : b; };
    twice([&](void *s, size_t &n) { return cub::DeviceScan::ExclusiveSum(s, n, in, out, 4); });
    CHECK(download(out, 4) == (std::vector<int>{0, 5, 6, 10}));
    twice([&](void *s, size_t &n) { return cub::DeviceScan::InclusiveSum(s, n, in, out, 4); });
    CHECK(download(out, 4) == (std::vector<int>{5, 6, 10, 12}));
    twice([&](void *s, size_t &n) {
        return cub::DeviceScan::InclusiveScan(s, n, in + 1, out, larger, 3);
    });
    CHECK_INT(read_one(out + 2), 4);
    twice([&](void *s, size_t &n) { return cub::DeviceReduce::Sum(s, n, in, out, 4); });
    CHECK_INT(read_one(out), 12);
    twice(
        [&](void *s, size_t &n) { return cub::DeviceReduce::Reduce(s, n, in, out, 4, larger, 3); });
    CHECK_INT(read_one(out), 5);
    cudaFree(in), cudaFree(out);
}

TEST(flags_select) {
    int *in = counting<int>(5, 10), *out = device_array<int>(5), *count = device_array<int>(1);
    bool *flags = (bool *)upload(std::vector<char>{1, 0, 0, 1, 1});
    twice([&](void *s, size_t &n) {
        return cub::DeviceSelect::Flagged(s, n, in, flags, out, count, 5);
    });
    CHECK_INT(read_one(count), 3);
    CHECK(download(out, 3) == (std::vector<int>{10, 13, 14}));
    cudaFree(in), cudaFree(out), cudaFree(count), cudaFree(flags);
}

static __global__ void in_blocks(float *out) {
    typedef cub::BlockReduce<float, 64> reduce;
    typedef cub::BlockScan<int, 64> scan;
    typedef cub::WarpReduce<int> warp;
    __shared__ reduce::TempStorage sums;
    __shared__ scan::TempStorage scans;
    __shared__ warp::TempStorage warps[2];
    float total = reduce(sums).Sum((float)threadIdx.x);
    int before, all, part = warp(warps[threadIdx.x / 32]).Sum(1);
    scan(scans).ExclusiveSum(2, before, all);
    if (threadIdx.x == 0)
        out[0] = total, out[1] = (float)part;
    if (threadIdx.x == 63)
        out[2] = (float)before, out[3] = (float)all;
}

TEST(blocks_and_warps_reduce) {
    float *out = device_array<float>(4);
    CHECK_OK(td_played::launch("in_blocks", true, 1, 64, 0, 0, in_blocks, out));
    CHECK(download(out, 4) == (std::vector<float>{2016, 32, 126, 128}));
    cudaFree(out);
}

int main() {
    RUN(sorts_are_stable_and_keep_to_their_bits);
    RUN(segments_are_sorted_apart);
    RUN(scans_and_reductions_go_in_order);
    RUN(flags_select);
    RUN(blocks_and_warps_reduce);
    return check_finish();
}

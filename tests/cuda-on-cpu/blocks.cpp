/* blocks.cpp: launches: their limits, and the blocks of a grid on a pool of the host's threads.
 *
 * Blocks are taken in an order that is a walk around the grid with a step drawn from the seed.
 */
#include "runtime.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>
#include <sys/mman.h>
#include <thread>

thread_local td_played_place td_played_here;

namespace td_played {

/* ---- a block ---- */

thread_local static char *shared_room; /* its end is a page that nobody may touch */
thread_local static char *shared_begin;
constexpr size_t SHARED_ROOM = 232 << 10;

/* Threads that come and go leave no room behind. */
struct room_end {
    ~room_end() {
        if (!shared_room)
            return;
        ASAN_UNPOISON_MEMORY_REGION(shared_room, SHARED_ROOM);
        munmap(shared_room, SHARED_ROOM + 4096);
        shared_room = nullptr;
    }
};

void begin_shared(size_t bytes) {
    static thread_local room_end end;
    (void)end;
    if (!shared_room) {
        void *map = mmap(nullptr, SHARED_ROOM + 4096, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (map == MAP_FAILED)
            die("no memory for a block's shared memory");
        shared_room = (char *)map;
        mprotect(shared_room + SHARED_ROOM, 4096, PROT_NONE);
    }
    ASAN_UNPOISON_MEMORY_REGION(shared_room, SHARED_ROOM);
    shared_begin = shared_room + SHARED_ROOM - (bytes + 15) / 16 * 16;
    memset(shared_begin, 0xA5, bytes);
    ASAN_POISON_MEMORY_REGION(shared_room, (size_t)(shared_begin - shared_room));
    ASAN_POISON_MEMORY_REGION(shared_begin + bytes,
                              (size_t)(shared_room + SHARED_ROOM - shared_begin) - bytes);
}

void set_thread(unsigned k) {
    const dim3 &dims = td_played_here.block_dim;
    td_played_here.thread = {k % dims.x, k / dims.x % dims.y, k / dims.x / dims.y};
}

static void run_block(const launch_shape &launch, uint64_t k, uint64_t seed) {
    const dim3 &grid = launch.grid;
    td_played_here.block = {(unsigned)(k % grid.x), (unsigned)(k / grid.x % grid.y),
                            (unsigned)(k / grid.x / grid.y)};
    begin_shared(launch.shared);
    if (launch.together) {
        run_block_together(launch, seed + k);
        return;
    }
    unsigned n = launch.block.x * launch.block.y * launch.block.z;
    for (unsigned t = 0; t < n; t++) {
        set_thread(t);
        launch.run(launch.closure.get());
    }
}

/* ---- the pool ---- */

struct job {
    const launch_shape *launch = nullptr;
    std::atomic<uint64_t> next{0};
    uint64_t blocks, step, first, seed;
    unsigned devices;
};

struct pool {
    std::mutex lock;
    std::condition_variable wake, left;
    job *open = nullptr;
    uint64_t number = 0; /* of jobs so far */
    int inside = 0;
    int helpers = 0;
};
static pool &P = *new pool;

static void take_blocks(job *j) {
    running_kernel = j->launch->name.c_str();
    td_played_here.block_dim = j->launch->block;
    td_played_here.grid_dim = j->launch->grid;
    for (uint64_t k; (k = j->next.fetch_add(1)) < j->blocks;) {
        uint64_t at = (uint64_t)(((unsigned __int128)k * j->step + j->first) % j->blocks);
        run_block(*j->launch, at, j->seed);
    }
    running_kernel = nullptr;
}

static void help() {
    std::unique_lock<std::mutex> hold(P.lock);
    for (uint64_t seen = 0;;) {
        P.wake.wait(hold, [&] { return P.open && P.number != seen; });
        job *j = P.open;
        seen = P.number;
        P.inside++;
        hold.unlock();
        open_memory_here(j->devices);
        take_blocks(j);
        open_memory_here(0);
        hold.lock();
        if (--P.inside == 0)
            P.left.notify_all();
    }
}

static void begin_helpers() {
    while (P.helpers < S.threads - 1) {
        std::thread(help).detach();
        P.helpers++;
    }
}

/* A step that visits every block once. */
static uint64_t draw_step(uint64_t blocks, dice *turns) {
    for (;;) {
        uint64_t step =
            1 + ((uint64_t)turns->draw(0x7FFFFFFF) << 20 ^ turns->draw(1u << 30)) % blocks;
        if (std::gcd(step, blocks) == 1)
            return step;
    }
}

void run_grid(const launch_shape &launch, uint64_t seed) {
    dice turns{seed * 0x9E3779B97F4A7C15u};
    job j;
    j.launch = &launch;
    j.blocks = (uint64_t)launch.grid.x * launch.grid.y * launch.grid.z;
    j.step = draw_step(j.blocks, &turns);
    j.first = turns.draw((unsigned)std::min<uint64_t>(j.blocks, 0xFFFFFFFF));
    j.seed = seed;
    j.devices = memory_opened();
    if (j.blocks > 1 && S.threads > 1) {
        begin_helpers();
        std::unique_lock<std::mutex> hold(P.lock);
        P.open = &j;
        P.number++;
        P.wake.notify_all();
    }
    take_blocks(&j);
    std::unique_lock<std::mutex> hold(P.lock);
    P.open = nullptr;
    P.left.wait(hold, [] { return P.inside == 0; });
}

/* ---- launches ---- */

static cudaError_t check_shape(const launch_shape &launch, size_t most) {
    const dim3 &g = launch.grid, &b = launch.block;
    bool empty = !g.x || !g.y || !g.z || !b.x || !b.y || !b.z;
    if (empty || g.x > 0x7FFFFFFF || g.y > 65535 || g.z > 65535 || b.x > MAX_THREADS ||
        b.y > MAX_THREADS || b.z > 64 || (uint64_t)b.x * b.y * b.z > MAX_THREADS)
        return cudaErrorInvalidConfiguration;
    return launch.shared > most ? cudaErrorInvalidValue : cudaSuccess;
}

/* A kernel's name as it is written, without the parentheses that keep its commas together. */
static std::string bare(const std::string &name) {
    bool wrapped = name.size() > 1 && name.front() == '(' && name.back() == ')';
    return wrapped ? name.substr(1, name.size() - 2) : name;
}

static size_t shared_most(const void *function) {
    auto found = S.shared_of.find(function);
    return found == S.shared_of.end() ? SHARED_DEFAULT
                                      : std::max(SHARED_DEFAULT, (size_t)found->second);
}

} // namespace td_played

using namespace td_played;

void *td_played_shared(void) {
    return shared_begin;
}

void td_played_trap(const char *why) {
    die("kernel %s, block (%u, %u, %u), thread (%u, %u, %u): %s",
        running_kernel ? running_kernel : "(none)", blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x,
        threadIdx.y, threadIdx.z, why);
}

cudaError_t td_played_launch_function(const void *function, const char *name, void (*run)(void *),
                                      void *closure, void (*destroy)(void *), dim3 grid, dim3 block,
                                      size_t shared, cudaStream_t handle, bool together) {
    auto launch = std::make_shared<launch_shape>();
    *launch = {bare(name),
               run,
               std::shared_ptr<void>(
                   closure, destroy ? destroy : [](void *) {}),
               grid,
               block,
               shared,
               together};
    ENTER_WHOLE
    stream *s = stream_of(handle);
    if (!s || s->device != current_device)
        return answer(cudaErrorInvalidResourceHandle);
    if (cudaError_t error = check_shape(*launch, shared_most(function)))
        return answer(error);
    if (S.fail_next && !is_sticky(S.fail_next)) {
        cudaError_t error = S.fail_next;
        S.fail_next = cudaSuccess;
        return answer(error);
    }
    item it;
    it.kind = work::kernel;
    it.launch = launch;
    if (!s->capturing)
        count_launch(launch->name);
    return answer(enqueue(hold, s, std::move(it)));
}

cudaError_t td_played_launch(const char *name, void (*run)(void *), void *closure,
                             void (*destroy)(void *), dim3 grid, dim3 block, size_t shared,
                             cudaStream_t stream, bool together) {
    return td_played_launch_function(nullptr, name, run, closure, destroy, grid, block, shared,
                                     stream, together);
}

cudaError_t td_played_call(const char *name, void (*run)(void *), void *closure,
                           void (*destroy)(void *), cudaStream_t stream) {
    std::shared_ptr<void> kept(
        closure, destroy ? destroy : [](void *) {});
    return enqueue_library(stream, name, [run, kept] { run(kept.get()); });
}

cudaError_t cudaFuncSetAttribute(const void *function, cudaFuncAttribute attribute, int value) {
    ENTER_WHOLE
    if (!function)
        return answer(cudaErrorInvalidDeviceFunction);
    if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout)
        return answer(value >= -1 && value <= 100 ? cudaSuccess : cudaErrorInvalidValue);
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
        (size_t)value > SHARED_MOST)
        return answer(cudaErrorInvalidValue);
    S.shared_of[function] = value;
    return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *function) {
    ENTER_WHOLE
    if (!function)
        return answer(cudaErrorInvalidDeviceFunction);
    *attributes = cudaFuncAttributes{};
    attributes->maxThreadsPerBlock = MAX_THREADS;
    attributes->numRegs = 32;
    attributes->ptxVersion = attributes->binaryVersion = 90;
    attributes->maxDynamicSharedSizeBytes = (int)shared_most(function);
    attributes->preferredShmemCarveout = -1;
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function,
                                                          int block_size, size_t shared) {
    ENTER_WHOLE
    if (!function || block_size < 1 || block_size > MAX_THREADS)
        return answer(function ? cudaErrorInvalidValue : cudaErrorInvalidDeviceFunction);
    size_t by_threads = 2 * MAX_THREADS / (size_t)block_size;
    size_t by_shared = shared > shared_most(function) ? 0 : (SHARED_MOST + 1024) / (shared + 1024);
    *blocks = (int)std::min({by_threads, by_shared, (size_t)32});
    return cudaSuccess;
}

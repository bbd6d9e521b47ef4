/* runtime.h: what the files of the played runtime share: its state, work that waits, memory.
 *
 * One lock guards everything; functions that the lock must be held for say nothing, those that take
 * it are the C interface, which begins with ENTER. Host functions run without it.
 */
#ifndef TIDE_PLAYED_RUNTIME_H
#define TIDE_PLAYED_RUNTIME_H

#include "include/played/language.h"
#include "include/played/played.h"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define TD_PLAYED_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TD_PLAYED_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define TD_PLAYED_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TD_PLAYED_TSAN 1
#endif
#endif
#ifdef TD_PLAYED_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n)   ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

namespace td_played {

enum { MAX_DEVICES = 8, WARP = 32, MAX_THREADS = 1024 };
constexpr size_t SHARED_DEFAULT = 48 << 10, SHARED_MOST = 227 << 10;

/* Ends the process with one line. */
[[noreturn]] void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- random turns ---- */

struct dice {
    uint64_t state;
    unsigned draw(unsigned n) { /* below n */
        state = state * 6364136223846793005u + 1442695040888963407u;
        return (unsigned)((state >> 32) % n);
    }
};

/* ---- work ---- */

struct stream;

/* What others wait for: it is done when an item of a stream has run. */
struct ticket {
    stream *in; /* valid until it is done */
    int device;
    bool done = false;
    uint64_t nanoseconds = 0;
};
typedef std::shared_ptr<ticket> ticket_ref;

struct launch_shape {
    std::string name;
    void (*run)(void *closure);
    std::shared_ptr<void> closure;
    dim3 grid, block;
    size_t shared;
    bool together;
};

enum class work { nothing, kernel, library, copy, set, host, graph };

struct node;

/* An item of work. `run` does it; waiting for tickets and recording events need none. */
struct item {
    work kind = work::nothing;
    std::function<void()> run;
    std::function<bool()>
        come; /* false as long as it waits for another process; asked in its turn */
    std::shared_ptr<launch_shape> launch;     /* a kernel */
    std::string name;                         /* a library's call */
    std::shared_ptr<std::vector<node>> nodes; /* a graph */
    std::vector<ticket_ref> after;
    ticket_ref done;
    unsigned devices = 0; /* whose memory it may touch, a bit each */
    /* For those who trace: the number of the call that queued it (0: nobody does), and of copies
     * and sets how many bytes, and of copies from where to where, as CUPTI counts. */
    uint32_t number = 0;
    size_t bytes = 0;
    int direction = 0;
};

/* A recorded node of a graph: an item and the earlier nodes that it follows. */
struct node {
    item what;
    std::vector<int> after;
};

struct capture;
typedef std::shared_ptr<capture> capture_ref;

struct stream {
    int device;
    unsigned flags;
    int priority;
    uint32_t number;     /* no two have the same */
    bool closed = false; /* destroyed, but work is left */
    std::deque<item> queue;
    ticket_ref last; /* of what was queued last */
    capture_ref capturing;
    std::vector<int> tail; /* capturing: nodes that the next one follows */
};

struct event {
    int device;
    unsigned flags;
    ticket_ref recorded;  /* NULL: never */
    capture_ref captured; /* recorded in one */
    std::vector<int> tail;
};

struct graph {
    std::vector<node> nodes;
};

struct capture {
    cudaStreamCaptureMode mode;
    std::thread::id thread;
    stream *origin;
    std::vector<stream *> streams;
    std::vector<node> nodes;
    bool invalid = false, ended = false;
};

/* ---- memory ---- */

enum class place { nowhere, host, pinned, device };

struct block {
    char *begin, *map;
    size_t bytes, mapped;
    int device;
    bool pinned;
};

struct device {
    size_t used = 0;
    unsigned peers = 0; /* devices whose memory it may touch, besides its own */
    cudaError_t broken = cudaSuccess;
    stream *legacy = nullptr; /* the default stream */
};

struct state {
    std::mutex lock;
    std::condition_variable progress;
    bool driving = false; /* a thread runs items */
    bool ready = false;
    int ndevices = 2, threads = 2, driver = CUDART_VERSION;
    size_t memory = (size_t)1 << 30;
    dice turns{1};
    uint64_t seed = 1, launched = 0, clock = 0;
    uint32_t born = 6; /* streams */
    device devices[MAX_DEVICES];
    std::vector<stream *> streams; /* in order of birth; closed ones until their work is done */
    std::set<event *> events;
    std::set<graph *> graphs, execs;
    std::vector<capture_ref> captures; /* that go on */
    std::map<uintptr_t, block> blocks;
    std::map<const void *, int> shared_of; /* by function: cudaFuncSetAttribute */
    td_played_counts counts{};
    std::map<std::string, unsigned long long> launches;
    std::vector<std::string> kernels;
    unsigned long long fail_malloc = 0;
    cudaError_t fail_next = cudaSuccess;
};
extern state &S;
extern thread_local int current_device;
extern thread_local cudaError_t last_error;
extern thread_local bool in_host_function;
extern thread_local cudaStreamCaptureMode capture_mode;

/* Reads the environment, once. */
cudaError_t begin();
/* Remembers an error for cudaGetLastError and returns it. */
cudaError_t answer(cudaError_t error);

#define ENTER                                                                                      \
    std::unique_lock<std::mutex> hold(S.lock);                                                     \
    if (cudaError_t begun = begin())                                                               \
        return answer(begun);
#define ENTER_WHOLE                                                                                \
    ENTER                                                                                          \
    if (S.devices[current_device].broken)                                                          \
        return answer(S.devices[current_device].broken);

/* ---- device.cpp ---- */
bool is_sticky(cudaError_t error);
void count_launch(const std::string &name);

/* ---- queue.cpp ---- */
typedef std::unique_lock<std::mutex> held;
stream *new_stream(int device, unsigned flags, int priority);
/* The stream of a handle (0 and 1: the current device's default stream), or NULL. */
stream *stream_of(cudaStream_t handle);
/* Append an item, or record it where the stream captures. */
cudaError_t enqueue(held &hold, stream *s, item what);
/* Advance until the ticket is done (NULL: at once); what its device then says. */
cudaError_t wait_for(held &hold, const ticket_ref &until);
cudaError_t wait_for_device(held &hold, int device);
/* Perhaps advance a little. */
void stir(held &hold);
/* Drop all work of a device. */
void drop_work(int device);

/* ---- capture.cpp ---- */
/* Why a call that captures forbid may not be made, or success. */
cudaError_t forbidden();
cudaError_t record(stream *s, item what);
cudaError_t record_event(stream *s, event *e);
cudaError_t record_wait(stream *s, event *e);
void leave_capture(stream *s);

/* ---- memory.cpp ---- */
/* The block that holds [p, p + bytes), or NULL. */
const block *find_block(const void *p, size_t bytes);
place place_of(const void *p, size_t bytes, int *device);
/* Let the running thread, and those that run blocks, touch these devices' memory alone. */
void open_memory(unsigned devices);
/* The same for a thread of the pool, which sees what open_memory opened. */
void open_memory_here(unsigned devices);
unsigned memory_opened();
void free_device_memory(int device);
void install_fault_handler();
extern thread_local const char *running_kernel;

/* ---- cupti.cpp ---- */
/* A call queues work: its number, 0 where nobody traces. */
uint32_t trace_call();
uint64_t trace_begin();
/* An item has run, since trace_begin. */
void trace_work(const item &it, const stream *s, uint64_t start);

/* ---- blocks.cpp, fibers.cpp ---- */
/* Run all blocks of a launch on the pool's threads. */
void run_grid(const launch_shape &launch, uint64_t seed);
/* Run one block whose threads meet, on fibers of this thread. */
void run_block_together(const launch_shape &launch, uint64_t seed);
void set_thread(unsigned k);
/* Give the block its shared memory. */
void begin_shared(size_t bytes);

/* A library's call as work on a device: `run` reads and writes device memory, and so may `come`
 * (none: it waits for nobody), before it. */
cudaError_t enqueue_library(cudaStream_t handle, const char *name, std::function<void()> run,
                            std::function<bool()> come = nullptr);

} // namespace td_played

#endif

/* memory.cpp: blocks of device and pinned memory, and who may touch them.
 *
 * A block of device memory ends at a page that nobody may touch, begins behind one, and is closed
 * to the host: by the CPU's protection keys, which open it to one thread alone, or else by the
 * pages' protection. Those of a block are opened when work first touches it, and closed behind the
 * work: opening all that there are would cost more than the work. What lies between the block and
 * those pages is poisoned under the address sanitizer and holds a pattern that cudaFree looks at
 * otherwise. A fresh block is full of 0xFF: NaN in every floating dtype. Freed ones stay closed for
 * a while.
 */
#include "runtime.h"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace td_played {

constexpr size_t PAGE = 4096, ALIGN = 256, QUARANTINE = 64;
constexpr unsigned char FRESH = 0xFF, SLACK = 0xC5;
/* Larger blocks are filled at both ends alone, so that they take no memory until they are used. */
constexpr size_t FILL = (size_t)32 << 20;

thread_local const char *running_kernel;
static std::deque<block> quarantine;

/* ---- protection ---- */

enum { KEYS_UNKNOWN, KEYS_NONE, KEYS };
static int have_keys = KEYS_UNKNOWN;
static int keys[MAX_DEVICES];
static unsigned opened;            /* devices whose memory is open to those that work */
static thread_local unsigned mine; /* and to this thread */

static void find_keys() {
    have_keys = KEYS_NONE;
#if defined(PKEY_DISABLE_ACCESS)
    const char *wanted = getenv("TIDE_PLAYED_KEYS");
    if (wanted && *wanted == '0')
        return;
    for (int d = 0; d < S.ndevices; d++)
        if ((keys[d] = pkey_alloc(0, PKEY_DISABLE_ACCESS)) < 0) {
            while (d-- > 0)
                pkey_free(keys[d]);
            return;
        }
    have_keys = KEYS;
#endif
}

void open_memory_here(unsigned devices) {
    mine = devices;
#if defined(PKEY_DISABLE_ACCESS)
    if (have_keys == KEYS)
        for (int d = 0; d < S.ndevices; d++)
            pkey_set(keys[d], devices >> d & 1 ? 0 : PKEY_DISABLE_ACCESS);
#endif
}

unsigned memory_opened() {
    return opened;
}

static size_t inner(const block &b) {
    return b.mapped - 2 * PAGE;
}

static size_t round_up(size_t n, size_t to) {
    return (n + to - 1) / to * to;
}

/* ---- what the fault handler may read: a table without locks ---- */

struct known_block {
    std::atomic<uintptr_t> begin;
    std::atomic<size_t> bytes;
    std::atomic<int> device; /* -1: given back */
    std::atomic<bool> touched;
};
constexpr unsigned KNOWN = 8192;
static known_block known[KNOWN];
static std::atomic<unsigned> nknown;

/* In the place of the oldest that was given back. */
static void know(const block &b) {
    known_block *k = &known[nknown++ % KNOWN];
    for (unsigned tried = 0; k->begin && k->device >= 0 && tried < KNOWN; tried++)
        k = &known[nknown++ % KNOWN];
    k->bytes = b.bytes;
    k->device = b.device;
    k->touched = false;
    k->begin = (uintptr_t)b.begin;
}

static void protect(const known_block &k, int how) {
    uintptr_t page = k.begin / PAGE * PAGE;
    mprotect((void *)page, round_up(k.bytes, PAGE), how);
}

/* Without keys: lets the work of this thread touch the block that it has just failed to touch. */
static bool open_touched(uintptr_t at) {
    for (known_block &k : known) {
        uintptr_t page = k.begin / PAGE * PAGE;
        int device = k.device;
        if (!page || device < 0 || !(mine >> device & 1) || at < page ||
            at >= page + round_up(k.bytes, PAGE))
            continue;
        protect(k, PROT_READ | PROT_WRITE);
        k.touched = true;
        return true;
    }
    return false;
}

static void close_touched() {
    unsigned n = nknown < KNOWN ? nknown.load() : KNOWN;
    for (unsigned k = 0; k < n; k++)
        if (known[k].touched.exchange(false) && known[k].device >= 0)
            protect(known[k], PROT_NONE);
}

void open_memory(unsigned devices) {
    if (devices != opened && have_keys != KEYS)
        close_touched();
    open_memory_here(devices);
    opened = devices;
}

static void forget(const block &b) {
    for (known_block &k : known)
        if (k.begin == (uintptr_t)b.begin && k.device >= 0)
            k.device = -1;
}

static struct sigaction before;

/* Prints with what a signal handler may call. */
static void say(const char *text) {
    if (write(2, text, strlen(text)) < 0)
        return;
}

static void say_number(size_t n) {
    char digits[24], *p = digits + sizeof digits - 1;
    *p = 0;
    do
        *--p = (char)('0' + n % 10);
    while (n /= 10);
    say(p);
}

static const known_block *near(uintptr_t at) {
    const known_block *best = nullptr;
    for (const known_block &k : known) {
        uintptr_t begin = k.begin;
        if (begin && at + PAGE >= begin && at < begin + k.bytes + PAGE &&
            (!best || (k.device >= 0 && at >= begin)))
            best = &k;
    }
    return best;
}

static void on_fault(int number, siginfo_t *info, void *context) {
    uintptr_t at = (uintptr_t)info->si_addr;
    if (have_keys != KEYS && open_touched(at))
        return;
    const known_block *k = near(at);
    if (k || running_kernel) {
        say("played device: ");
        say(running_kernel ? "kernel " : "the host");
        say(running_kernel ? running_kernel : "");
        say(" touched ");
        if (!k) {
            say("memory that is no device's");
        } else {
            uintptr_t begin = k->begin;
            size_t bytes = k->bytes;
            bool behind = at >= begin + bytes, ahead = at < begin;
            say(behind || ahead ? "" : "byte ");
            say_number(behind ? at - begin - bytes : ahead ? begin - at : at - begin);
            say(behind ? " bytes past the end of " : ahead ? " bytes ahead of " : " of ");
            say(k->device < 0 ? "a freed block of " : "a block of ");
            say_number(bytes);
            say(" bytes of device memory");
        }
        say("\n");
    }
    sigaction(SIGSEGV, &before, nullptr); /* and it happens again */
    (void)number;
    (void)context;
}

void install_fault_handler() {
    find_keys();
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &action, &before);
}

/* ---- blocks ---- */

const block *find_block(const void *p, size_t bytes) {
    auto next = S.blocks.upper_bound((uintptr_t)p);
    if (next == S.blocks.begin())
        return nullptr;
    const block &b = std::prev(next)->second;
    size_t offset = (size_t)((const char *)p - b.begin);
    return offset <= b.bytes && bytes <= b.bytes - offset ? &b : nullptr;
}

place place_of(const void *p, size_t bytes, int *device) {
    const block *b = find_block(p, bytes);
    if (b) {
        *device = b->device;
        return b->pinned ? place::pinned : place::device;
    }
    /* A range that only begins in a block, or ends in one, lies nowhere. */
    auto next = S.blocks.lower_bound((uintptr_t)p);
    bool meets = next != S.blocks.end() && next->first < (uintptr_t)p + bytes;
    return find_block(p, 1) || meets ? place::nowhere : place::host;
}

static void paint(const block &b) {
    char *from = b.map + PAGE, *to = from + inner(b), *end = b.begin + b.bytes;
    memset(from, SLACK, (size_t)(b.begin - from));
    memset(end, SLACK, (size_t)(to - end));
    if (b.bytes <= FILL) {
        memset(b.begin, FRESH, b.bytes);
    } else {
        memset(b.begin, FRESH, FILL / 2);
        memset(end - FILL / 2, FRESH, FILL / 2);
    }
    ASAN_POISON_MEMORY_REGION(from, (size_t)(b.begin - from));
    ASAN_POISON_MEMORY_REGION(end, (size_t)(to - end));
}

static bool map_block(block *b) {
    size_t pages = round_up(b->bytes, PAGE);
    b->mapped = pages + 2 * PAGE;
    void *map =
        mmap(nullptr, b->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED)
        return false;
    b->map = (char *)map;
    b->begin = b->map + PAGE + pages - round_up(b->bytes, ALIGN);
    if (b->pinned || have_keys != KEYS) {
        mprotect(b->map + PAGE, pages, PROT_READ | PROT_WRITE);
        paint(*b);
        if (!b->pinned)
            mprotect(b->map + PAGE, pages, PROT_NONE);
    } else {
#if defined(PKEY_DISABLE_ACCESS)
        pkey_mprotect(b->map + PAGE, pages, PROT_READ | PROT_WRITE, keys[b->device]);
#endif
        open_memory_here(1u << b->device);
        paint(*b);
        open_memory_here(0);
    }
    return true;
}

/* The first place where the pattern around a block was written over, or NULL. */
static const char *written(const block &b) {
#ifndef TD_PLAYED_ASAN
    const char *from = b.map + PAGE, *to = from + inner(b), *end = b.begin + b.bytes;
    for (const char *p = from; p < to; p++) {
        if (p == b.begin)
            p = end;
        if (p < to && *(const unsigned char *)p != SLACK)
            return p;
    }
#else
    (void)b;
#endif
    return nullptr;
}

static void check_slack(const block &b) {
    open_memory(1u << b.device);
    const char *p = written(b);
    open_memory(0);
    if (p && p < b.begin)
        die("something wrote %zu bytes ahead of a block of %zu bytes", (size_t)(b.begin - p),
            b.bytes);
    if (p)
        die("something wrote %zu bytes past the end of a block of %zu bytes",
            (size_t)(p - b.begin) - b.bytes, b.bytes);
}

/* Give back a block; it stays closed for a while, so that who still uses it faults. */
static void give_back(const block &b) {
    check_slack(b);
    forget(b);
    ASAN_UNPOISON_MEMORY_REGION(b.map + PAGE, inner(b));
    madvise(b.map + PAGE, inner(b), MADV_DONTNEED);
    mprotect(b.map + PAGE, inner(b), PROT_NONE);
    quarantine.push_back(b);
    if (quarantine.size() > QUARANTINE) {
        munmap(quarantine.front().map, quarantine.front().mapped);
        quarantine.pop_front();
    }
}

void free_device_memory(int device) {
    for (auto it = S.blocks.begin(); it != S.blocks.end();)
        if (!it->second.pinned && it->second.device == device) {
            give_back(it->second);
            it = S.blocks.erase(it);
        } else {
            ++it;
        }
    S.devices[device].used = 0;
}

static cudaError_t allocate(void **out, size_t bytes, bool pinned) {
    *out = nullptr;
    if (!bytes)
        return cudaSuccess;
    device &d = S.devices[current_device];
    size_t cost = round_up(bytes, 512);
    if (!pinned && (cost < bytes || cost > S.memory - d.used))
        return cudaErrorMemoryAllocation;
    block b{};
    b.bytes = bytes;
    b.device = current_device;
    b.pinned = pinned;
    if (bytes > (size_t)1 << 46 || !map_block(&b))
        return cudaErrorMemoryAllocation;
    S.blocks[(uintptr_t)b.begin] = b;
    know(b);
    d.used += pinned ? 0 : cost;
    *out = b.begin;
    return cudaSuccess;
}

static cudaError_t give_back_at(void *p, bool pinned) {
    auto found = S.blocks.find((uintptr_t)p);
    if (found == S.blocks.end() || found->second.pinned != pinned)
        return cudaErrorInvalidValue;
    const block &b = found->second;
    give_back(b);
    if (!pinned)
        S.devices[b.device].used -= round_up(b.bytes, 512);
    S.blocks.erase(found);
    return cudaSuccess;
}

/* All work that may use a block: that of every device, since peers may. */
static cudaError_t wait_for_all(held &hold) {
    S.counts.synchronisations++;
    cudaError_t error = cudaSuccess;
    for (int d = 0; d < S.ndevices; d++)
        if (cudaError_t found = wait_for_device(hold, d); found && !error && d == current_device)
            error = found;
    return error;
}

} // namespace td_played

using namespace td_played;

cudaError_t cudaMalloc(void **block, size_t bytes) {
    ENTER_WHOLE
    if (cudaError_t error = forbidden())
        return answer(error);
    if (S.fail_malloc && --S.fail_malloc == 0)
        return answer(cudaErrorMemoryAllocation);
    S.counts.mallocs++;
    return answer(allocate(block, bytes, false));
}

cudaError_t cudaFree(void *block) {
    ENTER_WHOLE
    if (!block)
        return cudaSuccess;
    if (cudaError_t error = forbidden())
        return answer(error);
    if (cudaError_t error = wait_for_all(hold))
        return answer(error);
    S.counts.frees++;
    return answer(give_back_at(block, false));
}

cudaError_t cudaHostAlloc(void **block, size_t bytes, unsigned int flags) {
    ENTER_WHOLE
    if (flags & ~7u)
        return answer(cudaErrorInvalidValue);
    if (cudaError_t error = forbidden())
        return answer(error);
    S.counts.host_mallocs++;
    return answer(allocate(block, bytes, true));
}

cudaError_t cudaMallocHost(void **block, size_t bytes) {
    return cudaHostAlloc(block, bytes, cudaHostAllocDefault);
}

cudaError_t cudaFreeHost(void *block) {
    ENTER_WHOLE
    if (!block)
        return cudaSuccess;
    if (cudaError_t error = forbidden())
        return answer(error);
    if (cudaError_t error = wait_for_all(hold))
        return answer(error);
    return answer(give_back_at(block, true));
}

cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned int flags) {
    ENTER_WHOLE
    const block *b = find_block(host, 1);
    if (!b || !b->pinned || flags)
        return answer(cudaErrorInvalidValue);
    *device = host;
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *p) {
    ENTER_WHOLE
    *attributes = cudaPointerAttributes{};
    const block *b = find_block(p, 1);
    attributes->type = !b          ? cudaMemoryTypeUnregistered
                       : b->pinned ? cudaMemoryTypeHost
                                   : cudaMemoryTypeDevice;
    attributes->device = b ? b->device : -2;
    attributes->devicePointer = b ? const_cast<void *>(p) : nullptr;
    attributes->hostPointer = !b || b->pinned ? const_cast<void *>(p) : nullptr;
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *total) {
    ENTER_WHOLE
    *total = S.memory;
    *available = S.memory - S.devices[current_device].used;
    return cudaSuccess;
}

void td_played_check_pointer(const char *name, int argument, const void *p) {
    std::unique_lock<std::mutex> hold(S.lock);
    if (!p || begin())
        return;
    const block *b = find_block(p, 0);
    if (!b)
        die("kernel %s: argument %d is no address of device memory or pinned memory", name,
            argument);
    unsigned may = S.devices[current_device].peers | 1u << current_device;
    if (!b->pinned && !(may >> b->device & 1))
        die("kernel %s on device %d: argument %d lies on device %d", name, current_device, argument,
            b->device);
}

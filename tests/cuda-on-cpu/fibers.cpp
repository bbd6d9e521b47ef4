/* fibers.cpp: the threads of a block that meet, as fibers of one thread of the host.
 *
 * A fiber runs until it waits at a barrier, in an exchange of its warp, or ends; then the
 * scheduler, which has the thread's own stack, runs another one that may, drawn from the seed.
 * Threads that have ended are waited for by nobody. When all that are left wait, the block has
 * parted: the process ends with the kernel's name.
 */
#include "runtime.h"

#include <sys/mman.h>
#if !defined(__x86_64__) && !defined(__aarch64__)
#include <ucontext.h>
#endif
#ifdef TD_PLAYED_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef TD_PLAYED_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace td_played {

#if defined(TD_PLAYED_ASAN)
constexpr size_t STACK = 256 << 10;
#else
constexpr size_t STACK = 128 << 10;
#endif
constexpr size_t GUARD = 4096;

/* ---- switching ---- */

#if defined(__x86_64__) || defined(__aarch64__)
struct context {
    void *sp = nullptr;
};
/* Save what a call must preserve on the running stack, note its top in *from, go on at `to`. */
extern "C" void td_played_switch(void **from, void *to);
#if defined(__x86_64__)
asm(R"(
    .text
    .p2align 4
    .globl td_played_switch
    .hidden td_played_switch
    .type td_played_switch, @function
td_played_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size td_played_switch, .-td_played_switch
)");
enum { SAVED = 6, RETURNS_TO = 6, FRAME = 8 }; /* words; behind the address one for alignment */
#else
asm(R"(
    .text
    .p2align 4
    .globl td_played_switch
    .hidden td_played_switch
    .type td_played_switch, %function
td_played_switch:
    sub sp, sp, #160
    stp x19, x20, [sp]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x2, sp
    str x2, [x0]
    mov sp, x1
    ldp x19, x20, [sp]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
    .size td_played_switch, .-td_played_switch
)");
enum { SAVED = 20, RETURNS_TO = 11, FRAME = 20 };
#endif
static void prepare(context *c, char *stack, void (*entry)()) {
    void **top = reinterpret_cast<void **>(stack + STACK) - FRAME;
    for (int k = 0; k < FRAME; k++)
        top[k] = nullptr;
    top[RETURNS_TO] = reinterpret_cast<void *>(entry);
    c->sp = top;
}
static void switch_context(context *from, context *to) {
    td_played_switch(&from->sp, to->sp);
}
#else
typedef ucontext_t context;
static void prepare(context *c, char *stack, void (*entry)()) {
    getcontext(c);
    c->uc_stack.ss_sp = stack;
    c->uc_stack.ss_size = STACK;
    c->uc_link = nullptr;
    makecontext(c, entry, 0);
}
static void switch_context(context *from, context *to) {
    swapcontext(from, to);
}
#endif

enum class at { ready, block, warp, end };

struct fiber {
    context where{};
    char *stack = nullptr;
    void *fake = nullptr; /* the address sanitizer's */
    void *tsan = nullptr;
    at state = at::ready;
    int what = 0, by = 0, width = 0; /* of the meeting it waits in */
    unsigned mask = 0;
    uint64_t value = 0, result = 0;
};

/* A thread's fibers, kept from block to block, and the block that runs. */
struct crew {
    std::vector<fiber *> fibers;
    context scheduler{};
    void *fake = nullptr, *tsan = nullptr;
    const void *bottom = nullptr; /* of the thread's own stack */
    size_t size = 0;
    const launch_shape *launch = nullptr;
    fiber *running = nullptr;
    unsigned n = 0, live = 0, waiting = 0;
    std::vector<unsigned> ready;
    dice turns{0};
};
static thread_local crew *mine;

static void announce(void **save, const void *bottom, size_t size) {
#ifdef TD_PLAYED_ASAN
    __sanitizer_start_switch_fiber(save, bottom, size);
#else
    (void)save, (void)bottom, (void)size;
#endif
}

static void arrive(void *saved, const void **bottom, size_t *size) {
#ifdef TD_PLAYED_ASAN
    __sanitizer_finish_switch_fiber(saved, bottom, size);
#else
    (void)saved, (void)bottom, (void)size;
#endif
}

/* From a fiber to the scheduler, and back when its turn comes. */
static void leave(crew *c, fiber *f) {
    announce(&f->fake, c->bottom, c->size);
#ifdef TD_PLAYED_TSAN
    __tsan_switch_to_fiber(c->tsan, 0);
#endif
    switch_context(&f->where, &c->scheduler);
    arrive(f->fake, &c->bottom, &c->size);
}

static void enter(crew *c, fiber *f) {
    c->running = f;
    announce(&c->fake, f->stack, STACK);
#ifdef TD_PLAYED_TSAN
    c->tsan = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(f->tsan, 0);
#endif
    switch_context(&c->scheduler, &f->where);
    arrive(c->fake, nullptr, nullptr);
    c->running = nullptr;
}

static void live_on_fiber() {
    crew *c = mine;
    fiber *f = c->running;
    arrive(nullptr, &c->bottom, &c->size);
    for (;;) {
        c->launch->run(c->launch->closure.get());
        f->state = at::end;
        leave(c, f);
    }
}

static fiber *new_fiber() {
    void *map = mmap(nullptr, STACK + GUARD, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED)
        die("no memory for a thread's stack");
    mprotect(map, GUARD, PROT_NONE);
    fiber *f = new fiber;
    f->stack = (char *)map + GUARD;
    prepare(&f->where, f->stack, live_on_fiber);
#ifdef TD_PLAYED_TSAN
    f->tsan = __tsan_create_fiber(0);
#endif
    return f;
}

static void end_fiber(fiber *f) {
#ifdef TD_PLAYED_ASAN
    __asan_unpoison_memory_region(f->stack, STACK); /* what is mapped there next begins clean */
#endif
#ifdef TD_PLAYED_TSAN
    __tsan_destroy_fiber(f->tsan);
#endif
    munmap(f->stack - GUARD, STACK + GUARD);
    delete f;
}

/* Threads that come and go, as loaders' workers do, leave no fibers. */
struct crew_end {
    ~crew_end() {
        if (mine)
            for (fiber *f : mine->fibers)
                end_fiber(f);
        delete mine;
        mine = nullptr;
    }
};

static crew *crew_of_thread() {
    static thread_local crew_end end;
    (void)end;
    if (!mine)
        mine = new crew;
    return mine;
}

/* ---- meetings ---- */

static void release(crew *c, unsigned k) {
    c->fibers[k]->state = at::ready;
    c->ready.push_back(k);
}

/* All live threads wait at the barrier: let them go on. */
static void meet_block(crew *c) {
    if (!c->live || c->waiting != c->live)
        return;
    int what = -1, count = 0;
    for (unsigned k = 0; k < c->n; k++) {
        fiber *f = c->fibers[k];
        if (f->state != at::block)
            continue;
        if (what >= 0 && what != f->what)
            die("kernel %s: the threads of a block meet at different kinds of __syncthreads",
                c->launch->name.c_str());
        what = f->what;
        count += f->value != 0;
    }
    int result = what == TD_PLAYED_OR    ? count > 0
                 : what == TD_PLAYED_AND ? count == (int)c->live
                                         : count;
    for (unsigned k = 0; k < c->n; k++)
        if (c->fibers[k]->state == at::block) {
            c->fibers[k]->result = (uint64_t)result;
            release(c, k);
        }
    c->waiting = 0;
}

static uint64_t reduced(int what, uint64_t a, uint64_t b) {
    int64_t x = (int64_t)a, y = (int64_t)b;
    return what == TD_PLAYED_REDUCE_ADD   ? a + b
           : what == TD_PLAYED_REDUCE_MIN ? (uint64_t)(x < y ? x : y)
           : what == TD_PLAYED_REDUCE_MAX ? (uint64_t)(x > y ? x : y)
           : what == TD_PLAYED_REDUCE_AND ? (a & b)
           : what == TD_PLAYED_REDUCE_OR  ? (a | b)
                                          : (a ^ b);
}

/* The lane that a shuffle reads. */
static int source(const fiber &f, int lane) {
    int first = lane & ~(f.width - 1);
    if (f.what == TD_PLAYED_SHFL)
        return first + (f.by & (f.width - 1));
    int src = f.what == TD_PLAYED_SHFL_UP     ? lane - f.by
              : f.what == TD_PLAYED_SHFL_DOWN ? lane + f.by
                                              : lane ^ f.by;
    bool outside = f.what == TD_PLAYED_SHFL_UP ? src < first : src >= first + f.width;
    return outside ? lane : src;
}

/* What an exchange gives a lane; `in` are the lanes that take part. */
static uint64_t exchanged(crew *c, unsigned first, unsigned in, int lane) {
    const fiber &f = *c->fibers[first + (unsigned)lane];
    uint64_t result = 0;
    bool some = false;
    if (f.what >= TD_PLAYED_SHFL && f.what <= TD_PLAYED_SHFL_XOR) {
        int src = source(f, lane);
        bool there = src >= 0 && src < WARP && in >> src & 1;
        return there ? c->fibers[first + (unsigned)src]->value : 0xA5A5A5A5A5A5A5A5u;
    }
    for (unsigned l = 0; l < WARP; l++) {
        if (!(in >> l & 1))
            continue;
        uint64_t value = c->fibers[first + l]->value;
        if (f.what == TD_PLAYED_BALLOT)
            result |= (value & 1) << l;
        else if (f.what == TD_PLAYED_MATCH)
            result |= (uint64_t)(value == f.value) << l;
        else if (f.what >= TD_PLAYED_REDUCE_ADD)
            result = some ? reduced(f.what, result, value) : value;
        some = true;
    }
    return result;
}

/* If all living lanes of the thread's mask wait in the same exchange, let them go on. */
static void meet_warp(crew *c, unsigned k) {
    unsigned first = k / WARP * WARP, in = 0;
    const fiber &f = *c->fibers[k];
    for (unsigned l = 0; l < WARP && first + l < c->n; l++) {
        const fiber &other = *c->fibers[first + l];
        if (!(f.mask >> l & 1) || other.state == at::end)
            continue;
        if (other.state != at::warp || other.mask != f.mask || other.what != f.what)
            return;
        in |= 1u << l;
    }
    for (unsigned l = 0; l < WARP; l++)
        if (in >> l & 1)
            c->fibers[first + l]->result = exchanged(c, first, in, (int)l);
    for (unsigned l = 0; l < WARP; l++)
        if (in >> l & 1)
            release(c, first + l);
}

/* A thread has ended: others may have waited for it alone. */
static void ended(crew *c, unsigned k) {
    c->live--;
    meet_block(c);
    unsigned first = k / WARP * WARP;
    for (unsigned l = first; l < first + WARP && l < c->n; l++)
        if (c->fibers[l]->state == at::warp)
            meet_warp(c, l);
}

[[noreturn]] static void parted(crew *c) {
    unsigned in_warps = 0;
    for (unsigned k = 0; k < c->n; k++)
        in_warps += c->fibers[k]->state == at::warp;
    die("kernel %s, block (%u, %u, %u): its threads wait for ever: %u at __syncthreads, %u in an "
        "exchange of a warp, %u have ended",
        c->launch->name.c_str(), blockIdx.x, blockIdx.y, blockIdx.z, c->waiting, in_warps,
        c->n - c->live);
}

void run_block_together(const launch_shape &launch, uint64_t seed) {
    crew *c = crew_of_thread();
    c->launch = &launch;
    c->turns.state = seed * 0x9E3779B97F4A7C15u + 1;
    c->n = c->live = launch.block.x * launch.block.y * launch.block.z;
    c->waiting = 0;
    c->ready.clear();
    while (c->fibers.size() < c->n)
        c->fibers.push_back(new_fiber());
    for (unsigned k = 0; k < c->n; k++)
        release(c, k);
    while (c->live) {
        if (c->ready.empty())
            parted(c);
        unsigned turn = c->turns.draw((unsigned)c->ready.size()), k = c->ready[turn];
        c->ready[turn] = c->ready.back();
        c->ready.pop_back();
        set_thread(k);
        enter(c, c->fibers[k]);
        if (c->fibers[k]->state == at::end) {
            ended(c, k);
        } else if (c->fibers[k]->state == at::block) {
            c->waiting++;
            meet_block(c);
        } else {
            meet_warp(c, k);
        }
    }
    c->launch = nullptr;
}

/* The fiber that runs, or the end of the process where threads run one after another. */
static fiber *meeting(const char *what) {
    if (mine && mine->running)
        return mine->running;
    die("kernel %s: its threads meet (%s), but it was launched as one whose threads do not",
        running_kernel ? running_kernel : "(none)", what);
}

static unsigned thread_number() {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

} // namespace td_played

using namespace td_played;

int td_played_meet_block(int what, int value) {
    fiber *f = meeting("__syncthreads");
    f->what = what;
    f->value = value != 0;
    f->state = at::block;
    leave(mine, f);
    return (int)f->result;
}

uint64_t td_played_meet_warp(int what, unsigned mask, uint64_t value, int by, int width) {
    fiber *f = meeting("an exchange of a warp");
    unsigned lane = thread_number() % WARP;
    if (!(mask >> lane & 1))
        die("kernel %s: lane %u takes part in an exchange whose mask 0x%08X leaves it out",
            running_kernel, lane, mask);
    if (width < 1 || width > WARP || width & (width - 1))
        die("kernel %s: a shuffle's width is %d, expected a power of two up to 32", running_kernel,
            width);
    f->what = what;
    f->mask = mask;
    f->value = value;
    f->by = by;
    f->width = width;
    f->state = at::warp;
    leave(mine, f);
    return f->result;
}

unsigned td_played_active_mask(void) {
    meeting("__activemask");
    unsigned first = thread_number() / WARP * WARP, mask = 0;
    for (unsigned l = 0; l < WARP && first + l < mine->n; l++)
        mask |= (mine->fibers[first + l]->state != at::end ? 1u : 0u) << l;
    return mask;
}

/* pool.c: workers, and the calls they help with.
 *
 * A call is put up at a post. Workers join it while it is open, and the caller, when it finds
 * nothing left to do, closes it and waits for those that have joined. So a worker that gets no
 * processor holds nobody up: the caller has done its part meanwhile. Worker number k is the same
 * thread in every call, so what it worked on is in its cache still.
 *
 * Who waits does so awake for some microseconds, which saves two switches where calls follow each
 * other closely, and then asleep. A thread whose processor was taken from it while it could have
 * run is not alone there: it goes to sleep at once for a while.
 *
 * A worker that has joined and then loses its processor is waited for, which may take longer than
 * the whole call would have taken alone. So each thread keeps account of what helpers saved its
 * calls and what it waited for them, and calls nobody for a while where that is less than nothing.
 */
#include "engine/core/pool.h"

#include "engine/core/signals.h"
#include "engine/core/status.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* AWAKE_NS: about what going to sleep and being woken costs, so that waiting never costs more than
 * twice the least. SOBER: waits without it after the processor was taken away. */
enum { POSTS = 16, AWAKE_NS = 15000, SOBER = 256, STACK_BYTES = 2 << 20 };

#define OPEN    0x80000000u /* workers may join */
#define WAITING 0x40000000u /* the caller sleeps until the last has left */
#define JOINED  0x0000FFFFu /* how many are at work */

typedef struct post {
    _Alignas(64) atomic_uint state;
    atomic_bool taken;
    atomic_int workers;
    atomic_llong help; /* ns that those who joined were at it */
    td_crew_fn fn;     /* with ctx: written while nobody can join */
    void *ctx;
} post;

typedef enum summons { NONE, CALLED, ASLEEP } summons;

typedef struct worker {
    _Alignas(64) atomic_uint summons;
} worker;

static post posts[POSTS];
static worker workers[TD_POOL_MOST];
static atomic_int started;                 /* workers 1 to `started` exist */
static atomic_int most = TD_POOL_MOST - 1; /* fewer where the system gave no more */
static atomic_int processors = 1;          /* of this process */
static pthread_mutex_t growing = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local bool within;

bool td_pool_within(void) {
    return within;
}

void td_pool_set_processors(int n) {
    atomic_store_explicit(&processors, n, memory_order_relaxed);
}

/* ---- waiting ---- */

static void futex_wait(atomic_uint *word, unsigned value) {
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake(atomic_uint *word) {
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static int64_t clock_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Whether others want this thread's processor: has the system taken it away since the last time? */
typedef struct company {
    long taken_away;
    int sober; /* waits to come that are asleep at once */
} company;
static _Thread_local company others;

static bool look_for_company(void) {
    struct rusage usage;
    if (getrusage(RUSAGE_THREAD, &usage) || usage.ru_nivcsw == others.taken_away)
        return false;
    others.taken_away = usage.ru_nivcsw;
    others.sober = SOBER;
    return true;
}

/* Wait awake, a bounded time, until a word is no longer `value`; whether it came to that. Not at
 * all where others could use the processor. */
static bool wait_awake(atomic_uint *word, unsigned value) {
    if (others.sober > 0) {
        others.sober--;
    } else if (atomic_load_explicit(&started, memory_order_relaxed) <
               atomic_load_explicit(&processors, memory_order_relaxed)) {
        int64_t until = clock_ns() + AWAKE_NS;
        do {
            for (int k = 0; k < 8; k++) {
                if (atomic_load_explicit(word, memory_order_acquire) != value)
                    return true;
                relax();
            }
        } while (clock_ns() < until);
        look_for_company();
    }
    return atomic_load_explicit(word, memory_order_acquire) != value;
}

/* ---- workers ---- */

static void help(post *p, int number) {
    unsigned state = atomic_load(&p->state);
    while (state & OPEN && number < atomic_load_explicit(&p->workers, memory_order_relaxed)) {
        if (!atomic_compare_exchange_weak(&p->state, &state, state + 1))
            continue;
        /* Another call may have come to this post since its workers were read. */
        if (number < atomic_load_explicit(&p->workers, memory_order_relaxed)) {
            int64_t begin = clock_ns();
            p->fn(p->ctx, number);
            atomic_fetch_add_explicit(&p->help, clock_ns() - begin, memory_order_relaxed);
        }
        if (atomic_fetch_sub(&p->state, 1) == (WAITING | 1))
            futex_wake(&p->state);
        return;
    }
}

static void wait_for_call(worker *me) {
    unsigned none = NONE;
    if (wait_awake(&me->summons, NONE) ||
        !atomic_compare_exchange_strong(&me->summons, &none, ASLEEP))
        return;
    while (atomic_load(&me->summons) == ASLEEP)
        futex_wait(&me->summons, ASLEEP);
}

/* The summons is taken before the posts are looked at, and calls are put up before anybody is
 * summoned: a call that this look misses leaves its summons behind. */
static void *work(void *self) {
    worker *me = self;
    int number = (int)(me - workers);
    char name[16];
    snprintf(name, sizeof name, "tide %d", number);
    pthread_setname_np(pthread_self(), name);
    within = true;
    for (;;) {
        atomic_store(&me->summons, NONE);
        for (int k = 0; k < POSTS; k++)
            help(&posts[k], number);
        wait_for_call(me);
    }
    return NULL;
}

static bool start_worker(int number) {
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t before;
    if (pthread_attr_init(&attr))
        return false;
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    td_signals_hold(&before); /* a thread begins with the mask of its maker */
    bool ok = pthread_create(&thread, &attr, work, &workers[number]) == 0;
    td_signals_release(&before);
    pthread_attr_destroy(&attr);
    return ok;
}

/* ---- fork: only the thread that forks is there in the child ---- */

static void before_fork(void) {
    pthread_mutex_lock(&growing);
}

static void after_fork(void) {
    pthread_mutex_unlock(&growing);
}

static void in_child(void) {
    for (int k = 0; k < POSTS; k++) {
        atomic_store(&posts[k].state, 0);
        atomic_store(&posts[k].taken, false);
    }
    atomic_store(&started, 0);
    atomic_store(&most, TD_POOL_MOST - 1);
    pthread_mutex_unlock(&growing);
}

static void grow(int n) {
    static bool watching;
    pthread_mutex_lock(&growing);
    if (!watching)
        watching = pthread_atfork(before_fork, after_fork, in_child) == 0;
    int now = atomic_load(&started);
    while (now < n && start_worker(now + 1))
        atomic_store(&started, ++now);
    if (now < n)
        atomic_store(&most, now);
    pthread_mutex_unlock(&growing);
}

/* ---- what helpers are worth ---- */

/* CREDIT_NS: of what helpers saved, how much counts against waits to come: about as much as waiting
 * for a processor takes. TRIAL_NS: what calls may lose before that is held against them: helpers
 * who sleep take long to come once. REGRET: how many times as long as was lost calls have no
 * helpers, so that losing now and then costs little; from ALONE to ALONE_MOST ticks, twice as long
 * after each loss that no savings came before. */
enum { CREDIT_NS = 1000000, TRIAL_NS = 250000, CALL_NS = 100000, LONG_NS = 500000 };
enum { REGRET = 32, ALONE = 4, ALONE_MOST = 256, UNIT_NS = 64, TICK_BITS = 20 /* 2^20 ns */ };
enum {
    SIZES = 3,
    TIMES = 16 /* kinds of calls by their work, each TIMES that of the one before */
};

/* (Small: a thread's state is.) */
typedef struct account {
    uint32_t alone_until; /* tick; 0: calls may have helpers */
    int16_t balance;      /* saved less lost, from -TRIAL_NS to CREDIT_NS, in UNIT_NS */
    uint16_t doubled;
} account;
static _Thread_local account accounts[SIZES];

static account *account_of(int64_t grains) {
    int size = 0;
    for (; size < SIZES - 1 && grains >= TIMES; grains /= TIMES)
        size++;
    return &accounts[size];
}

/* Ticks go round: the difference says which is later. */
static bool is_alone(account *a) {
    if (TD_LIKELY(!a->alone_until))
        return false;
    if ((int32_t)(a->alone_until - (uint32_t)(clock_ns() >> TICK_BITS)) > 0)
        return true;
    a->alone_until = 0;
    return false;
}

/* A call has come to its end `now`. */
static void settle(account *a, int64_t now, int64_t saved, int64_t lost) {
    int64_t balance = (int64_t)a->balance * UNIT_NS + saved - lost;
    if (balance < -TRIAL_NS) {
        int64_t alone = (ALONE + (-balance * REGRET >> TICK_BITS)) << a->doubled;
        a->balance = 0;
        a->alone_until =
            ((uint32_t)(now >> TICK_BITS) + (uint32_t)(alone < ALONE_MOST ? alone : ALONE_MOST)) |
            1;
        a->doubled = (uint16_t)(a->doubled + (alone < ALONE_MOST));
        return;
    }
    a->balance = (int16_t)((balance < CREDIT_NS ? balance : CREDIT_NS) / UNIT_NS);
    if (balance >= CREDIT_NS)
        a->doubled = 0;
}

/* ---- calls ---- */

static post *take_post(void) {
    for (int k = 0; k < POSTS; k++)
        if (!atomic_load_explicit(&posts[k].taken, memory_order_relaxed) &&
            !atomic_exchange(&posts[k].taken, true))
            return &posts[k];
    return NULL;
}

static void put_up(post *p, int n, td_crew_fn fn, void *ctx) {
    p->fn = fn;
    p->ctx = ctx;
    atomic_store_explicit(&p->workers, n, memory_order_relaxed);
    atomic_store_explicit(&p->help, 0, memory_order_relaxed);
    atomic_store(&p->state, OPEN);
    for (int k = 1; k < n; k++)
        if (atomic_exchange(&workers[k].summons, CALLED) == ASLEEP)
            futex_wake(&workers[k].summons);
}

/* Whether anybody had to be waited for. */
static bool close_post(post *p) {
    unsigned state = atomic_fetch_and(&p->state, ~OPEN) & JOINED;
    bool late = state != 0;
    while (state && wait_awake(&p->state, state))
        state = atomic_load(&p->state);
    if (state) {
        atomic_fetch_or(&p->state, WAITING);
        while ((state = atomic_load(&p->state)) & JOINED)
            futex_wait(&p->state, state);
        atomic_store(&p->state, 0);
    }
    return late;
}

static void run_alone(td_crew_fn fn, void *ctx) {
    within = true;
    fn(ctx, 0);
    within = false;
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* Helpers save what they do while the caller works too, but for times in which the system took its
 * processor away, which look long alone as well. Calling them is lost (though not more than
 * CALL_NS: one that was given the caller's processor for it did the caller's work), and waiting for
 * them. */
static void run_helped(post *p, account *a, int crew, td_crew_fn fn, void *ctx) {
    int64_t begin = clock_ns();
    put_up(p, crew, fn, ctx);
    int64_t called = clock_ns();
    run_alone(fn, ctx);
    int64_t done = clock_ns(), end = close_post(p) ? clock_ns() : done;
    int64_t help = atomic_load_explicit(&p->help, memory_order_relaxed);
    bool known = done - called < LONG_NS || !look_for_company();
    settle(a, end, known ? least(help, (done - called) * (crew - 1)) : 0,
           least(called - begin, CALL_NS) + end - done);
    atomic_store_explicit(&p->taken, false, memory_order_release);
}

void td_pool_run(int n, int64_t grains, td_crew_fn fn, void *ctx) {
    int helpers = n - 1, limit = atomic_load_explicit(&most, memory_order_relaxed);
    account *a = account_of(grains);
    post *p = NULL;
    if (helpers > limit)
        helpers = limit;
    if (is_alone(a))
        helpers = 0;
    if (TD_UNLIKELY(helpers > atomic_load_explicit(&started, memory_order_relaxed)))
        grow(helpers);
    if (helpers > 0)
        p = take_post(); /* none: so many calls at once keep every processor busy */
    if (p)
        run_helped(p, a, helpers + 1, fn, ctx);
    else
        run_alone(fn, ctx);
}

/* allocator.c: the host's caching allocator, which the CPU's backend gives storages their memory
 * from.
 *
 * Fresh pages cost more than the arithmetic done on them (a 40 MB result faults 10,000 times), so
 * blocks that were used stay here, in size classes a quarter apart, and the newest is given first:
 * its pages are warm. Small blocks stop at a per-thread list and never see the lock. Who gives a
 * block back soon (td_modes.brief) is given the newest of all that are large enough, up to four
 * times as large: its lines are still in the processor's cache, and a chain of results of many
 * sizes goes through few blocks.
 *
 * Under the address sanitizer a block lies between guards, and all that was not asked for is
 * poisoned: the guards, what its class adds, and the whole block while it is in the cache.
 */
#include "engine/core/allocator.h"

#include "engine/core/interrupt.h"
#include "engine/core/memory.h"
#include "engine/core/modes.h"
#include "engine/core/observer.h"
#include "engine/core/poison.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- size classes ---- */

enum {
    MIN_SHIFT = 6, /* smallest block: 64 bytes */
    CLASSES = (48 - MIN_SHIFT) * 4,
    THREAD_CLASSES = 10 * 4, /* up to 64 KB in the thread's own lists */
    THREAD_BLOCKS = 8,       /* of each class */
    PAGE_BLOCK = 256 << 10,  /* from here on blocks are mapped, not malloc'ed, */
    HUGE_BLOCK = 4 << 20,    /* from here on each for itself, below side by side in a region */
    REGION = 32 << 20,
    PAGE = 4096,
    HUGE_PAGE = 2 << 20,
    BRIEF_CLASSES = 2 * 4, /* beyond its own that a brief request may take a block of */
    GUARD = TD_SANITIZED ? 64 : 0
};

/* Class of a request: four steps to each power of two. Writes the class's size. */
static int class_of(size_t bytes, size_t *size) {
    if (bytes <= 1u << MIN_SHIFT) {
        *size = 1u << MIN_SHIFT;
        return 0;
    }
    int shift = 63 - __builtin_clzll(bytes - 1); /* bytes in (2^shift, 2^(shift+1)] */
    size_t base = (size_t)1 << shift, step = base >> 2;
    size_t quarter = (bytes - base + step - 1) / step; /* 1..4 */
    *size = base + quarter * step;
    return (shift - MIN_SHIFT) * 4 + (int)quarter;
}

/* ---- the cache ---- */

td_host_counts td_host_counters;

/* The beginning of a block in the cache: under the sanitizer in the guard before it, which its leak
 * check reads. */
typedef struct block {
    struct block *next;
    uint64_t given; /* back, counted; of the shared lists alone */
} block;

typedef struct thread_cache {
    block *head[THREAD_CLASSES];
    uint8_t count[THREAD_CLASSES];
    bool registered, gone;
} thread_cache;

static _Thread_local thread_cache *mine;
static pthread_key_t exit_key;
static pthread_once_t cache_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
static block *cache_head[CLASSES];
static uint64_t cache_given;
static size_t memory_limit; /* what live storages may take together */
static size_t cache_limit;

static void system_free(block *b, size_t size) {
    TD_UNPOISON(b, size + 2 * GUARD);
    if (size >= PAGE_BLOCK)
        munmap(b, size + 2 * GUARD);
    else
        free(b);
}

static char *map(size_t bytes) {
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* Part of a region whose pages are huge: a product that reads a layer's weight once waits for the
 * translation of small pages as long as for what is in them. NULL: there is no room for a region.
 * Each part is unmapped by itself. */
static char *take_from_region(size_t whole) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static char *next;
    static size_t left;
    char *p = NULL;
    whole = (whole + PAGE - 1) / PAGE * PAGE;
    pthread_mutex_lock(&lock);
    if (left < whole && (p = map(REGION + HUGE_PAGE))) {
        const size_t before = -(uintptr_t)p % HUGE_PAGE;
        if (left)
            munmap(next, left);
        if (before)
            munmap(p, before);
        munmap(p + before + REGION, HUGE_PAGE - before);
        next = p + before;
        left = REGION;
        madvise(next, left, MADV_HUGEPAGE);
    }
    p = left < whole ? NULL : next;
    if (p) {
        next += whole;
        left -= whole;
    }
    pthread_mutex_unlock(&lock);
    return p;
}

static block *system_alloc(size_t size) {
    size_t whole = size + 2 * GUARD;
    void *p = NULL;
    if (size < PAGE_BLOCK)
        return posix_memalign(&p, 64, whole) == 0 ? p : NULL;
    if (size < HUGE_BLOCK && (p = take_from_region(whole)))
        return p;
    p = map(whole);
    if (p && size >= HUGE_BLOCK)
        madvise(p, whole, MADV_HUGEPAGE);
    return p;
}

/* Where times are told, pages that the system has not given yet are asked for here, as an event of
 * their own: else whoever writes first is charged with them. Of what is larger perhaps but a part
 * is ever used. */
static void touch(char *p, size_t size) {
    enum { LEAST = 16 * PAGE, PART = 64 << 20, MOST = 1 << 30 };
    td_loading loading;
    if (size < LEAST || size > MOST || !td_loading_is_watched())
        return;
    td_loading_begin(&loading, "first touch of memory");
    for (size_t at = 0; at < size && !td_interrupt_requested(); at += PART) {
        size_t part = size - at < PART ? size - at : PART;
        bool given = false;
#ifdef MADV_POPULATE_WRITE
        given = size >= PAGE_BLOCK && madvise(p + at, part, MADV_POPULATE_WRITE) == 0;
#endif
        for (size_t k = 0; !given && k < part; k += PAGE)
            ((volatile char *)p)[at + k] = 0;
    }
    td_loading_end(&loading);
}

static size_t read_limit_file(const char *path) {
    FILE *f = fopen(path, "r");
    unsigned long long value;
    bool ok = f && fscanf(f, "%llu", &value) == 1;
    if (f)
        fclose(f);
    return ok && value < SIZE_MAX ? (size_t)value : SIZE_MAX;
}

/* The machine's memory, or what its container or ulimit leaves of it: requests beyond are refused
 * at once instead of being promised pages that are not there. */
static size_t machine_memory(void) {
    size_t limit = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
    size_t group = read_limit_file("/sys/fs/cgroup/memory.max");
    struct rlimit space;
    if (group < limit)
        limit = group;
    if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur < limit)
        limit = space.rlim_cur;
    return limit;
}

static void give_to_shared(int c, block *b, size_t size) {
    long long cached = atomic_load_explicit(&td_host_counters.cached, memory_order_relaxed);
    if ((size_t)cached + size > cache_limit) {
        system_free(b, size);
        return;
    }
    atomic_fetch_add_explicit(&td_host_counters.cached, (long long)size, memory_order_relaxed);
    pthread_mutex_lock(&cache_lock);
    b->next = cache_head[c];
    b->given = ++cache_given;
    cache_head[c] = b;
    pthread_mutex_unlock(&cache_lock);
}

static size_t size_of_class(int c) {
    if (c == 0)
        return 1u << MIN_SHIFT;
    size_t base = (size_t)1 << ((c - 1) / 4 + MIN_SHIFT);
    return base + (base >> 2) * (size_t)((c - 1) % 4 + 1);
}

static void empty_thread_cache(thread_cache *t) {
    for (int c = 0; c < THREAD_CLASSES; c++) {
        block *b = t->head[c];
        t->head[c] = NULL;
        t->count[c] = 0;
        while (b) {
            block *next = b->next;
            system_free(b, size_of_class(c));
            b = next;
        }
    }
}

static void on_thread_exit(void *p) {
    empty_thread_cache(p);
    free(p);
    mine = NULL;
}

static void prepare(void) {
    memory_limit = machine_memory();
    cache_limit = memory_limit / 4;
    pthread_key_create(&exit_key, on_thread_exit);
}

static thread_cache *thread_cache_get(void) {
    if (TD_UNLIKELY(!mine)) {
        mine = calloc(1, sizeof *mine);
        if (mine)
            pthread_setspecific(exit_key, mine);
    }
    return mine;
}

void td_host_empty_cache(void) {
    if (mine)
        empty_thread_cache(mine);
    pthread_mutex_lock(&cache_lock);
    for (int c = 0; c < CLASSES; c++)
        while (cache_head[c]) {
            block *b = cache_head[c];
            cache_head[c] = b->next;
            system_free(b, size_of_class(c));
        }
    atomic_store(&td_host_counters.cached, 0);
    pthread_mutex_unlock(&cache_lock);
}

/* The class whose block a request takes from the shared lists. The lock is held. */
static int newest_class(int c) {
    const int end = c + BRIEF_CLASSES < CLASSES ? c + BRIEF_CLASSES : CLASSES - 1;
    int newest = c;
    for (int k = c + 1; td_modes_current.brief && k <= end; k++)
        if (cache_head[k] &&
            (!cache_head[newest] || cache_head[k]->given > cache_head[newest]->given))
            newest = k;
    return newest;
}

/* A block of the class or, perhaps, a larger one; writes the size of its class. */
static block *take_cached(int c, size_t *size) {
    if (c < THREAD_CLASSES) {
        thread_cache *t = thread_cache_get();
        if (t && t->head[c]) {
            block *b = t->head[c];
            t->head[c] = b->next;
            t->count[c]--;
            return b;
        }
    }
    if (!atomic_load_explicit(&td_host_counters.cached, memory_order_relaxed))
        return NULL;
    pthread_mutex_lock(&cache_lock);
    c = newest_class(c);
    block *b = cache_head[c];
    if (b)
        cache_head[c] = b->next;
    pthread_mutex_unlock(&cache_lock);
    if (!b)
        return NULL;
    *size = size_of_class(c);
    atomic_fetch_sub_explicit(&td_host_counters.cached, (long long)*size, memory_order_relaxed);
    return b;
}

/* The memory of a block, of which `bytes` may be touched. */
static void *hand_out(block *b, size_t bytes, size_t size) {
    char *p = (char *)b + GUARD;
    TD_POISON(b + 1, size + 2 * GUARD - sizeof *b);
    TD_UNPOISON(p, bytes < size ? bytes : size);
    return p;
}

void *td_host_allocate(size_t bytes, size_t *granted) {
    pthread_once(&cache_once, prepare);
    if (bytes > (size_t)1 << 46)
        return NULL;
    size_t size;
    int c = class_of(bytes, &size);
    block *b = take_cached(c, &size);
    *granted = size;
    if (b)
        return hand_out(b, bytes, size);
    int64_t live = td_memory_allocated(TD_DEVICE_CPU);
    if ((size_t)live + size > memory_limit)
        return NULL;
    atomic_fetch_add_explicit(&td_host_counters.system_allocations, 1, memory_order_relaxed);
    b = system_alloc(size);
    if (!b) {
        td_host_empty_cache();
        b = system_alloc(size);
    }
    if (b)
        touch((char *)b + GUARD, size);
    return b ? hand_out(b, bytes, size) : NULL;
}

void td_host_release(void *p, size_t granted) {
    size_t size;
    int c = class_of(granted, &size);
    block *b = (block *)((char *)p - GUARD);
    TD_POISON(p, size);
    if (c < THREAD_CLASSES) {
        thread_cache *t = thread_cache_get();
        if (t && t->count[c] < THREAD_BLOCKS) {
            b->next = t->head[c];
            t->head[c] = b;
            t->count[c]++;
            return;
        }
    }
    give_to_shared(c, b, size);
}

/* allocator.c: memory of storages, device by device, and the CPU's caching allocator.
 *
 * Fresh pages cost more than the arithmetic done on them (a 40 MB result faults 10,000 times), so
 * blocks that were used stay here, in size classes a quarter apart, and the newest is given first:
 * its pages are warm. Small blocks stop at a per-thread list and never see the lock.
 */
#include "engine/core/allocator.h"

#include "engine/core/memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define CACHE_BLOCKS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CACHE_BLOCKS 0
#endif
#endif
#ifndef CACHE_BLOCKS
#define CACHE_BLOCKS 1
#endif

/* ---- devices ---- */

typedef struct device_counters {
    atomic_llong allocated, peak, cached, allocations, system_allocations;
} device_counters;

enum { MAX_DEVICES = 16 };
static device_counters counters[TD_DEVICE_TYPES][MAX_DEVICES];
static const td_device_ops *device_ops[TD_DEVICE_TYPES];

static device_counters *counters_of(td_device device) {
    return &counters[device.type][device.index % MAX_DEVICES];
}

/* ---- size classes ---- */

enum {
    MIN_SHIFT = 6, /* smallest block: 64 bytes */
    CLASSES = (48 - MIN_SHIFT) * 4,
    THREAD_CLASSES = 10 * 4, /* up to 64 KB in the thread's own lists */
    THREAD_BLOCKS = 8,       /* of each class */
    PAGE_BLOCK = 1 << 20,    /* from here on blocks are mapped, not malloc'ed */
    HUGE_BLOCK = 4 << 20     /* from here on huge pages are asked for */
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

/* ---- the CPU's cache ---- */

typedef struct block {
    struct block *next;
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
static size_t memory_limit; /* what live storages may take together */
static size_t cache_limit;

static void system_free(void *p, size_t size) {
    if (size >= PAGE_BLOCK)
        munmap(p, size);
    else
        free(p);
}

static void *system_alloc(size_t size) {
    void *p = NULL;
    if (size >= PAGE_BLOCK) {
        p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
            return NULL;
        if (size >= HUGE_BLOCK)
            madvise(p, size, MADV_HUGEPAGE);
        return p;
    }
    return posix_memalign(&p, 64, size) == 0 ? p : NULL;
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
    long long cached = atomic_load_explicit(&counters[TD_CPU][0].cached, memory_order_relaxed);
    if ((size_t)cached + size > cache_limit) {
        system_free(b, size);
        return;
    }
    atomic_fetch_add_explicit(&counters[TD_CPU][0].cached, (long long)size, memory_order_relaxed);
    pthread_mutex_lock(&cache_lock);
    b->next = cache_head[c];
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

static void cpu_empty_cache(int index) {
    (void)index;
    if (mine)
        empty_thread_cache(mine);
    pthread_mutex_lock(&cache_lock);
    for (int c = 0; c < CLASSES; c++)
        while (cache_head[c]) {
            block *b = cache_head[c];
            cache_head[c] = b->next;
            system_free(b, size_of_class(c));
        }
    atomic_store(&counters[TD_CPU][0].cached, 0);
    pthread_mutex_unlock(&cache_lock);
}

static void *take_cached(int c, size_t size) {
    if (c < THREAD_CLASSES) {
        thread_cache *t = thread_cache_get();
        if (t && t->head[c]) {
            block *b = t->head[c];
            t->head[c] = b->next;
            t->count[c]--;
            return b;
        }
    }
    if (!atomic_load_explicit(&counters[TD_CPU][0].cached, memory_order_relaxed))
        return NULL;
    pthread_mutex_lock(&cache_lock);
    block *b = cache_head[c];
    if (b)
        cache_head[c] = b->next;
    pthread_mutex_unlock(&cache_lock);
    if (b)
        atomic_fetch_sub_explicit(&counters[TD_CPU][0].cached, (long long)size,
                                  memory_order_relaxed);
    return b;
}

static void *cpu_allocate(int index, size_t bytes, size_t *granted) {
    (void)index;
    pthread_once(&cache_once, prepare);
    if (bytes > (size_t)1 << 46)
        return NULL;
    size_t size;
    int c = class_of(bytes, &size);
    void *p = CACHE_BLOCKS ? take_cached(c, size) : NULL;
    *granted = size;
    if (p)
        return p;
    long long live = atomic_load_explicit(&counters[TD_CPU][0].allocated, memory_order_relaxed);
    if ((size_t)live + size > memory_limit)
        return NULL;
    atomic_fetch_add_explicit(&counters[TD_CPU][0].system_allocations, 1, memory_order_relaxed);
#if CACHE_BLOCKS
    p = system_alloc(size);
    if (!p) {
        cpu_empty_cache(0);
        p = system_alloc(size);
    }
#else
    *granted = bytes ? bytes : 1; /* exact, so that the sanitizer sees an overrun */
    if (posix_memalign(&p, 64, *granted))
        p = NULL;
#endif
    return p;
}

static void cpu_release(int index, void *p, size_t granted) {
    (void)index;
#if CACHE_BLOCKS
    size_t size;
    int c = class_of(granted, &size);
    if (c < THREAD_CLASSES) {
        thread_cache *t = thread_cache_get();
        if (t && t->count[c] < THREAD_BLOCKS) {
            block *b = p;
            b->next = t->head[c];
            t->head[c] = b;
            t->count[c]++;
            return;
        }
    }
    give_to_shared(c, p, size);
#else
    (void)granted;
    (void)give_to_shared;
    (void)system_alloc;
    free(p);
#endif
}

static int cpu_count(void) {
    return 1;
}

static td_status cpu_copy(td_device to, void *dst, td_device from, const void *src, size_t bytes) {
    (void)to;
    (void)from;
    memcpy(dst, src, bytes);
    return TD_OK;
}

static void cpu_synchronize(int index) {
    (void)index;
}

static const td_device_ops cpu_ops = {
    .name = "cpu",
    .count = cpu_count,
    .allocate = cpu_allocate,
    .release = cpu_release,
    .empty_cache = cpu_empty_cache,
    .copy = cpu_copy,
    .synchronize = cpu_synchronize,
};

/* ---- all devices ---- */

static const td_device_ops *ops_of(td_device_type type) {
    return type == TD_CPU ? &cpu_ops : device_ops[type];
}

const td_device_ops *td_device_get_ops(td_device_type type) {
    return (unsigned)type < TD_DEVICE_TYPES ? ops_of(type) : NULL;
}

td_status td_device_register(td_device_type type, const td_device_ops *ops) {
    if (type == TD_CPU || type >= TD_DEVICE_TYPES)
        return td_fail(TD_EVALUE, "device type %d cannot be registered", (int)type);
    device_ops[type] = ops;
    return TD_OK;
}

td_status td_device_parse(const char *text, td_device *device) {
    const char *names[TD_DEVICE_TYPES] = {"cpu", "cuda"};
    for (int t = 0; t < TD_DEVICE_TYPES; t++) {
        size_t len = strlen(names[t]);
        if (strncmp(text, names[t], len) || (text[len] && text[len] != ':'))
            continue;
        char *end = "";
        long index = text[len] ? strtol(text + len + 1, &end, 10) : 0;
        if (*end || (text[len] && end == text + len + 1) || index < 0)
            break;
        const td_device_ops *ops = ops_of((td_device_type)t);
        if (!ops || index >= ops->count())
            return td_fail(TD_EDEVICE, "device '%s' is not there: this machine has %s", text,
                           ops ? "fewer of its kind"
                               : "no CUDA device, or Tide was built without CUDA");
        *device = (td_device){(uint8_t)t, (uint8_t)index};
        return TD_OK;
    }
    return td_fail(TD_EVALUE, "'%s' is no device: expected \"cpu\", \"cuda\" or \"cuda:N\"", text);
}

const char *td_device_name(td_device device) {
    static const char *const cuda[MAX_DEVICES] = {
        "cuda:0", "cuda:1", "cuda:2",  "cuda:3",  "cuda:4",  "cuda:5",  "cuda:6",  "cuda:7",
        "cuda:8", "cuda:9", "cuda:10", "cuda:11", "cuda:12", "cuda:13", "cuda:14", "cuda:15"};
    return device.type == TD_CPU ? "cpu" : cuda[device.index % MAX_DEVICES];
}

void *td_device_allocate(td_device device, size_t bytes, size_t *granted) {
    const td_device_ops *ops = ops_of(device.type);
    if (!ops || td_memory_should_fail())
        return NULL;
    void *p = ops->allocate(device.index, bytes, granted);
    if (!p)
        return NULL;
    device_counters *c = counters_of(device);
    long long now =
        atomic_fetch_add_explicit(&c->allocated, (long long)*granted, memory_order_relaxed) +
        (long long)*granted;
    atomic_fetch_add_explicit(&c->allocations, 1, memory_order_relaxed);
    long long peak = atomic_load_explicit(&c->peak, memory_order_relaxed);
    while (now > peak && !atomic_compare_exchange_weak_explicit(
                             &c->peak, &peak, now, memory_order_relaxed, memory_order_relaxed))
        ;
    return p;
}

void td_device_release(td_device device, void *p, size_t granted) {
    atomic_fetch_sub_explicit(&counters_of(device)->allocated, (long long)granted,
                              memory_order_relaxed);
    ops_of(device.type)->release(device.index, p, granted);
}

td_memory_stats td_memory_get_stats(td_device device) {
    device_counters *c = counters_of(device);
    return (td_memory_stats){
        .allocated = atomic_load_explicit(&c->allocated, memory_order_relaxed),
        .peak = atomic_load_explicit(&c->peak, memory_order_relaxed),
        .cached = atomic_load_explicit(&c->cached, memory_order_relaxed),
        .allocations = atomic_load_explicit(&c->allocations, memory_order_relaxed),
        .system_allocations = atomic_load_explicit(&c->system_allocations, memory_order_relaxed),
    };
}

int64_t td_memory_allocated(td_device device) {
    return atomic_load_explicit(&counters_of(device)->allocated, memory_order_relaxed);
}

void td_memory_reset_peak(td_device device) {
    device_counters *c = counters_of(device);
    atomic_store(&c->peak, atomic_load(&c->allocated));
}

void td_memory_empty_cache(td_device device) {
    const td_device_ops *ops = ops_of(device.type);
    if (ops)
        ops->empty_cache(device.index);
}

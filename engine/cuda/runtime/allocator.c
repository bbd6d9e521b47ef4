/* allocator.c: device memory, cached by stream.
 *
 * Sizes are rounded up to classes, eight to each power of two. A block that is given back waits in
 * its stream's list of its class: whoever takes it next works in the same stream's order, so nobody
 * waits. Small blocks are cut from large ones of the runtime's. What another stream uses meanwhile
 * is noted, and its owner's stream waits for that work before it goes on.
 */
#include "engine/cuda/cuda.h"

#include "engine/core/memory.h"
#include "engine/core/observer.h"
#include "engine/cuda/limits.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    UNIT = 512,        /* bytes of the smallest block */
    LINEAR = 8 * UNIT, /* up to here every multiple of it is a class */
    CLASSES = 320,
    SLAB = 4 << 20,
    FOREIGN = 1024 /* blocks in use by another stream than theirs, at most */
};

_Static_assert((int)TD_LIMIT(ALLOCATE_SLAB) <= (int)SLAB, "a slab holds what is cut from it");

typedef struct block_list {
    void **blocks;
    int n, room;
    int made; /* blocks of this class and stream that there are */
} block_list;

typedef struct pool {
    block_list lists[CLASSES];
    int graphs; /* recorded on the stream: they work in its free blocks */
    char *slab; /* what is left of the newest */
    size_t left;
} pool;

typedef struct device_memory {
    pool *pools[TD_CUDA_STREAMS];
    int64_t cached, requests;
} device_memory;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static device_memory devices[TD_CUDA_DEVICES];

/* ---- classes ---- */

static int class_of(size_t bytes, size_t *size) {
    if (bytes <= LINEAR) {
        size_t units = bytes ? (bytes + UNIT - 1) / UNIT : 1;
        *size = units * UNIT;
        return (int)units - 1;
    }
    int power = 63 - __builtin_clzll(bytes - 1); /* 2^power < bytes <= 2^(power + 1) */
    size_t step = (size_t)1 << (power - 3), steps = (bytes + step - 1) / step; /* 9 .. 16 */
    *size = steps * step;
    return 7 + (power - 12) * 8 + (int)steps - 8;
}

static size_t size_of(int class) {
    if (class < 8)
        return (size_t)(class + 1) * UNIT;
    return (size_t)((class - 8) % 8 + 9) << ((class - 8) / 8 + 12 - 3);
}

static bool is_cached(void) {
    static int known = -1;
    if (known < 0) {
        const char *off = getenv("TIDE_CUDA_CACHE");
        known = !off || strcmp(off, "0") != 0;
    }
    return known;
}

static bool make_room(block_list *l) {
    if (l->made < l->room)
        return true;
    int room = l->room ? 2 * l->room : 16;
    void **blocks = td_realloc(l->blocks, (size_t)room * sizeof *blocks);
    if (!blocks)
        return false;
    l->blocks = blocks;
    l->room = room;
    return true;
}

/* ---- the runtime's blocks ---- */

/* A stream that records a graph would refuse it otherwise. */
static cudaError_t allocate_relaxed(void **block, size_t bytes) {
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    (void)cudaThreadExchangeStreamCaptureMode(&mode);
    cudaError_t error = cudaMalloc(block, bytes);
    (void)cudaThreadExchangeStreamCaptureMode(&mode);
    return error;
}

static void *from_runtime(device_memory *d, size_t bytes) {
    void *block = NULL;
    td_loading loading; /* the cache has it from now on: no work of who came first */
    d->requests++;
    td_loading_begin(&loading, "device memory");
    cudaError_t error = allocate_relaxed(&block, bytes);
    td_loading_end(&loading);
    if (error == cudaSuccess)
        return block;
    (void)cudaGetLastError(); /* it is told by NULL */
    return NULL;
}

/* Large blocks alone go back: those from slabs stay where they are. */
static void give_back_pool(device_memory *d, pool *p) {
    for (int c = 0; c < CLASSES; c++) {
        block_list *l = &p->lists[c];
        size_t size = size_of(c);
        if (l->n == 0 || size <= TD_LIMIT(ALLOCATE_SLAB))
            continue;
        for (int k = 0; k < l->n; k++)
            (void)cudaFree(l->blocks[k]); /* waits for what uses it */
        d->cached -= (int64_t)size * l->n;
        l->made -= l->n;
        l->n = 0;
    }
}

static void give_back_all(int index) {
    device_memory *d = &devices[index];
    for (int s = 0; s < TD_CUDA_STREAMS; s++)
        if (d->pools[s] && d->pools[s]->graphs == 0)
            give_back_pool(d, d->pools[s]);
}

static void *cut_from_slab(device_memory *d, pool *p, size_t size) {
    if (p->left < size) {
        char *slab = from_runtime(d, SLAB);
        if (!slab)
            return NULL;
        p->slab = slab; /* the rest of the former one is too small to look for */
        p->left = SLAB;
    }
    void *block = p->slab;
    p->slab += size;
    p->left -= size;
    return block;
}

static void *take(device_memory *d, pool *p, int class, size_t size) {
    block_list *l = &p->lists[class];
    if (l->n > 0) {
        d->cached -= (int64_t)size;
        return l->blocks[--l->n];
    }
    if (!make_room(l))
        return NULL;
    void *block =
        size <= TD_LIMIT(ALLOCATE_SLAB) ? cut_from_slab(d, p, size) : from_runtime(d, size);
    l->made += block != NULL;
    return block;
}

void *td_cuda_allocate(td_stream stream, size_t bytes, size_t *granted) {
    cudaStream_t unused;
    if (td_cuda_enter(stream, &unused) != TD_OK || bytes > (size_t)1 << 46)
        return NULL;
    device_memory *d = &devices[stream.device.index];
    size_t size;
    int class = class_of(bytes, &size);
    void *block = NULL;
    *granted = size;
    pthread_mutex_lock(&lock);
    pool **p = &d->pools[stream.id];
    if (!*p)
        *p = td_calloc(1, sizeof **p);
    if (*p && is_cached())
        block = take(d, *p, class, size);
    else if (*p)
        block = from_runtime(d, size);
    if (!block && *p && !td_cuda_is_recording(stream)) {
        give_back_all(stream.device.index);
        block = is_cached() ? take(d, *p, class, size) : from_runtime(d, size);
    }
    pthread_mutex_unlock(&lock);
    return block;
}

void td_cuda_empty_cache(int index) {
    cudaStream_t unused;
    if (td_cuda_enter((td_stream){{TD_CUDA, (uint8_t)index}, 0}, &unused) != TD_OK)
        return;
    pthread_mutex_lock(&lock);
    give_back_all(index);
    pthread_mutex_unlock(&lock);
    td_cuda_empty_pinned();
}

void td_cuda_keep_blocks(td_stream stream, bool keep) {
    pthread_mutex_lock(&lock);
    pool *p = devices[stream.device.index].pools[stream.id];
    if (p)
        p->graphs += keep ? 1 : -1;
    pthread_mutex_unlock(&lock);
}

void td_cuda_cache_counts(int index, int64_t *cached, int64_t *system_allocations) {
    pthread_mutex_lock(&lock);
    *cached = devices[index].cached;
    *system_allocations = devices[index].requests;
    pthread_mutex_unlock(&lock);
}

/* ---- use by other streams ---- */

/* Which streams but its own may still work on a block. */
typedef struct foreign_use {
    const void *block;
    td_stream owner;
    uint64_t streams[TD_CUDA_STREAMS / 64];
    cudaEvent_t written; /* behind a copy into the block, which all wait for; NULL: there is none */
    size_t bytes;        /* of that copy */
} foreign_use;

static foreign_use foreign[FOREIGN];
static int nforeign; /* read without the lock: most programs have one stream */

static foreign_use *find_use(const void *block, int device) {
    for (int k = 0; k < nforeign; k++)
        if (foreign[k].block == block && foreign[k].owner.device.index == device)
            return &foreign[k];
    return NULL;
}

/* An event behind what the stream was given so far. */
static td_status new_event(td_stream stream, cudaEvent_t *event) {
    cudaStream_t s;
    td_status status = td_cuda_enter(stream, &s);
    if (status == TD_OK)
        status = td_cuda_status(cudaEventCreateWithFlags(event, cudaEventDisableTiming),
                                "making an event");
    if (status != TD_OK)
        return status;
    status = td_cuda_status(cudaEventRecord(*event, s), "recording an event");
    if (status != TD_OK)
        (void)cudaEventDestroy(*event);
    return status;
}

static td_status wait_for(td_stream stream, cudaEvent_t event) {
    cudaStream_t s;
    td_status status = td_cuda_enter(stream, &s);
    return status == TD_OK
               ? td_cuda_status(cudaStreamWaitEvent(s, event, 0), "waiting for an event")
               : status;
}

td_status td_cuda_order(td_stream earlier, td_stream later) {
    cudaEvent_t event;
    td_status status = new_event(earlier, &event);
    if (status != TD_OK)
        return status;
    status = wait_for(later, event);
    (void)cudaEventDestroy(event);
    return status;
}

/* The owner waits for all others, which are forgotten. */
static void settle(foreign_use *use) {
    td_stream owner = use->owner;
    for (unsigned s = 0; s < TD_CUDA_STREAMS; s++)
        if (use->streams[s / 64] >> (s % 64) & 1)
            (void)td_cuda_order((td_stream){owner.device, (uint16_t)s}, owner);
    if (use->written) {
        (void)wait_for(owner, use->written);
        (void)cudaEventDestroy(use->written);
    }
    *use = foreign[--nforeign];
}

static foreign_use *use_of(td_stream owner, const void *block) {
    foreign_use *use = find_use(block, owner.device.index);
    if (!use && nforeign == FOREIGN)
        settle(&foreign[0]);
    if (!use) {
        use = &foreign[nforeign++];
        *use = (foreign_use){.block = block, .owner = owner};
    }
    return use;
}

td_status td_cuda_note_copy(td_stream owner, td_stream side, const void *block, size_t bytes) {
    cudaEvent_t event;
    td_status status = new_event(side, &event);
    if (status != TD_OK)
        return status;
    pthread_mutex_lock(&lock);
    foreign_use *use = use_of(owner, block);
    if (use->written)
        (void)cudaEventDestroy(use->written); /* the new one is behind it, in the same stream */
    use->written = event;
    use->bytes = bytes;
    pthread_mutex_unlock(&lock);
    return TD_OK;
}

td_status td_cuda_use_memory(td_stream stream, const void *memory) {
    td_status status = TD_OK;
    const char *at = memory;
    if (TD_LIKELY(__atomic_load_n(&nforeign, __ATOMIC_RELAXED) == 0))
        return TD_OK;
    pthread_mutex_lock(&lock);
    for (int k = 0; k < nforeign && status == TD_OK; k++) {
        const char *block = foreign[k].block;
        if (foreign[k].written && foreign[k].owner.device.index == stream.device.index &&
            at >= block && at < block + foreign[k].bytes)
            status = wait_for(stream, foreign[k].written);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

void td_cuda_use(td_stream stream, const td_tensor *x) {
    const td_storage *s = x->storage;
    if (TD_LIKELY(s->stream == stream.id && __atomic_load_n(&nforeign, __ATOMIC_RELAXED) == 0))
        return;
    td_stream owner = {s->device, s->stream};
    if (td_cuda_is_recording(stream)) /* who replays a graph orders its work */
        return;
    pthread_mutex_lock(&lock);
    if (s->stream != stream.id) {
        (void)td_cuda_order(owner, stream);
        foreign_use *use = use_of(owner, s->data);
        if (use->written)
            (void)wait_for(stream, use->written);
        use->streams[stream.id / 64] |= (uint64_t)1 << (stream.id % 64);
    } else {
        foreign_use *use = find_use(s->data, s->device.index);
        if (use)
            settle(use);
    }
    pthread_mutex_unlock(&lock);
}

void td_cuda_release(td_stream stream, void *block, size_t granted) {
    device_memory *d = &devices[stream.device.index];
    size_t size;
    int class = class_of(granted, &size);
    pthread_mutex_lock(&lock);
    foreign_use *use = nforeign ? find_use(block, stream.device.index) : NULL;
    if (use)
        settle(use);
    if (is_cached()) {
        block_list *l = &d->pools[stream.id]->lists[class];
        l->blocks[l->n++] = block;
        d->cached += (int64_t)size;
    } else {
        cudaStream_t unused;
        if (td_cuda_enter(stream, &unused) == TD_OK)
            (void)cudaFree(block); /* waits for what uses it */
    }
    pthread_mutex_unlock(&lock);
}

/* ---- scratch ---- */

td_status td_cuda_scratch_take(td_cuda_scratch *s, td_stream stream, size_t bytes) {
    s->stream = stream;
    s->data = td_cuda_allocate(stream, bytes, &s->granted);
    return s->data ? TD_OK : td_fail(TD_ENOMEM, "out of memory on the device");
}

void td_cuda_scratch_drop(td_cuda_scratch *s) {
    if (s->data)
        td_cuda_release(s->stream, s->data, s->granted);
    s->data = NULL;
}

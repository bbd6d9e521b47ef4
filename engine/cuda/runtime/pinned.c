/* pinned.c: pinned memory of the host, and copies from it that nobody waits for.
 *
 * Blocks that are given back are kept for the next who asks for as much; the driver takes a
 * millisecond and more for one. A copy goes to a stream of its own, beside the kernels: it follows
 * what the stream was given before, who uses the block on the device waits for it (allocator.c),
 * and the host's block is given to nobody before it was read.
 */
#include "engine/cuda/cuda.h"
#include "engine/cuda/runtime/activity.h"

#include "engine/core/memory.h"

#include <pthread.h>

typedef struct pinned_block {
    char *at;
    size_t bytes;
    bool taken;
    cudaEvent_t read; /* behind the last copy from it; NULL: there was none, or it is done */
    int device;       /* that the copy went to */
} pinned_block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pinned_block *blocks;
static int nblocks, room;
static uint16_t copy_streams[TD_CUDA_DEVICES]; /* 0: not made yet */

/* An eighth of a power of two more at most, so that batches that differ a little share blocks. */
static size_t rounded(size_t bytes) {
    size_t step = 4096;
    while (step * 16 < bytes)
        step *= 2;
    return bytes ? (bytes + step - 1) / step * step : step;
}

/* Have the copies from a block been done? Under the lock. */
static bool is_idle(pinned_block *b) {
    if (b->read && cudaEventQuery(b->read) == cudaErrorNotReady)
        return false;
    if (b->read)
        (void)cudaEventDestroy(b->read);
    b->read = NULL;
    return true;
}

static pinned_block *find(const void *memory) {
    const char *at = memory;
    for (int k = 0; k < nblocks; k++)
        if (at >= blocks[k].at && at < blocks[k].at + blocks[k].bytes)
            return &blocks[k];
    return NULL;
}

static void give_back_idle(void) {
    for (int k = 0; k < nblocks;)
        if (!blocks[k].taken && is_idle(&blocks[k])) {
            (void)cudaFreeHost(blocks[k].at);
            blocks[k] = blocks[--nblocks];
        } else {
            k++;
        }
}

void td_cuda_empty_pinned(void) {
    pthread_mutex_lock(&lock);
    give_back_idle();
    pthread_mutex_unlock(&lock);
}

static bool make_room(void) {
    if (nblocks < room)
        return true;
    int more = room ? 2 * room : 32;
    pinned_block *larger = td_realloc(blocks, (size_t)more * sizeof *larger);
    if (!larger)
        return false;
    blocks = larger;
    room = more;
    return true;
}

static void *from_driver(size_t bytes) {
    void *block = NULL;
    if (cudaHostAlloc(&block, bytes, cudaHostAllocPortable) == cudaSuccess)
        return block;
    (void)cudaGetLastError(); /* it is told by NULL */
    return NULL;
}

static void *take(size_t bytes) {
    for (int k = 0; k < nblocks; k++)
        if (!blocks[k].taken && blocks[k].bytes == bytes && is_idle(&blocks[k])) {
            blocks[k].taken = true;
            return blocks[k].at;
        }
    if (!make_room())
        return NULL;
    void *block = from_driver(bytes);
    if (!block) {
        give_back_idle();
        block = from_driver(bytes);
    }
    if (block)
        blocks[nblocks++] = (pinned_block){.at = block, .bytes = bytes, .taken = true};
    return block;
}

void *td_cuda_pin(size_t bytes) {
    cudaStream_t unused;
    if (bytes > (size_t)1 << 46 || td_cuda_enter((td_stream){{TD_CUDA, 0}, 0}, &unused) != TD_OK)
        return NULL;
    pthread_mutex_lock(&lock);
    void *block = take(rounded(bytes));
    pthread_mutex_unlock(&lock);
    return block;
}

void td_cuda_unpin(void *memory) {
    pthread_mutex_lock(&lock);
    pinned_block *b = find(memory);
    if (b)
        b->taken = false;
    pthread_mutex_unlock(&lock);
}

bool td_cuda_is_read(const void *memory) {
    pthread_mutex_lock(&lock);
    pinned_block *b = find(memory);
    bool idle = !b || is_idle(b);
    pthread_mutex_unlock(&lock);
    return idle;
}

/* ---- copies ---- */

/* Of a device, made at its first copy. Under the lock. */
static td_status copy_stream(td_device device, td_stream *out) {
    uint16_t *id = &copy_streams[device.index];
    td_status status = *id ? TD_OK : td_cuda_stream_new(device.index, false, id);
    *out = (td_stream){device, *id};
    return status;
}

/* The block is not given away before what the stream was given so far is done. Under the lock. */
static td_status mark(pinned_block *b, cudaStream_t s, int device) {
    cudaError_t error = cudaSuccess;
    if (b->read && b->device != device) {
        (void)cudaEventSynchronize(b->read);
        (void)is_idle(b);
    }
    if (!b->read)
        error = cudaEventCreateWithFlags(&b->read, cudaEventDisableTiming);
    b->device = device;
    if (error == cudaSuccess)
        error = cudaEventRecord(b->read, s);
    return td_cuda_status(error, "copying");
}

static td_status copy(td_stream owner, td_stream side, void *dst, pinned_block *b, const void *src,
                      size_t bytes) {
    cudaStream_t s;
    td_cuda_timed timed = {NULL};
    td_status status = td_cuda_order(owner, side);
    if (status == TD_OK)
        status = td_cuda_enter(side, &s);
    if (status != TD_OK)
        return status;
    if (td_cuda_is_timing())
        td_cuda_timed_open(&timed, side);
    status = td_cuda_status(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyHostToDevice, s), "copying");
    td_cuda_timed_close(&timed, TD_ACTIVITY_COPY, "copy to device", (int64_t)bytes);
    if (status != TD_OK)
        return status;
    status = mark(b, s, side.device.index);
    if (status == TD_OK)
        status = td_cuda_note_copy(owner, side, dst, bytes);
    if (status != TD_OK) /* nobody would wait for it */
        (void)cudaStreamSynchronize(s);
    return status;
}

td_status td_cuda_upload_later(td_stream stream, void *dst, const void *memory, size_t bytes,
                               bool *done) {
    td_stream side;
    td_status status = TD_OK;
    *done = false;
    if (td_cuda_is_recording(stream)) /* who replays a graph orders its work */
        return TD_OK;
    pthread_mutex_lock(&lock);
    pinned_block *b = find(memory);
    if (b)
        status = copy_stream(stream.device, &side);
    if (b && status == TD_OK) {
        status = copy(stream, side, dst, b, memory, bytes);
        *done = true;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

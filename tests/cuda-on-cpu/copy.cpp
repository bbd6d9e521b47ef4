/* copy.cpp: copies and memory sets.
 *
 * Pageable host memory is read before an upload returns, and written before a download does; pinned
 * memory is read and written when the copy's turn comes, so that using it too early shows.
 */
#include "runtime.h"

#include <cstring>

namespace td_played {

struct side {
    place where;
    int device = 0;
};

static side side_of(const void *p, size_t bytes) {
    side s;
    s.where = place_of(p, bytes, &s.device);
    return s;
}

static bool on_device(const side &s) {
    return s.where == place::device;
}

/* Does the kind fit what the pointers say? */
static cudaError_t check_kind(const side &dst, const side &src, cudaMemcpyKind kind) {
    if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
        return cudaErrorInvalidMemcpyDirection;
    if (dst.where == place::nowhere || src.where == place::nowhere)
        return cudaErrorInvalidValue;
    if (kind == cudaMemcpyDefault)
        return cudaSuccess;
    bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    bool fits = (to_device ? dst.where != place::host : !on_device(dst)) &&
                (from_device ? src.where != place::host : !on_device(src));
    return fits ? cudaSuccess : cudaErrorInvalidValue;
}

static void count_copy(const side &dst, const side &src, size_t bytes) {
    td_played_counts &c = S.counts;
    if (on_device(dst) && on_device(src)) {
        c.on_device++;
    } else if (on_device(dst)) {
        c.to_device++;
        c.bytes_to_device += bytes;
    } else if (on_device(src)) {
        c.to_host++;
        c.bytes_to_host += bytes;
    } else {
        c.on_host++;
    }
}

/* As CUPTI counts them. */
static int direction_of(const side &dst, const side &src) {
    if (on_device(dst) && on_device(src))
        return dst.device == src.device ? 8 : 10;
    return on_device(dst) ? 1 : on_device(src) ? 2 : 9;
}

static unsigned bit_of(const side &s) {
    return on_device(s) ? 1u << s.device : 0;
}

/* Queue a copy; `waits`: the call returns when it is done, as cudaMemcpy does. */
static cudaError_t copy(held &hold, void *dst, const void *src, size_t bytes, cudaMemcpyKind kind,
                        stream *s, bool waits) {
    side to = side_of(dst, bytes), from = side_of(src, bytes);
    if (cudaError_t error = check_kind(to, from, kind))
        return error;
    bool pageable = to.where == place::host || from.where == place::host;
    if (s->capturing && (pageable || waits)) {
        s->capturing->invalid = true;
        return cudaErrorStreamCaptureUnsupported;
    }
    item it;
    it.kind = work::copy;
    it.devices = bit_of(to) | bit_of(from) | 1u << s->device;
    it.bytes = bytes;
    it.direction = direction_of(to, from);
    if (from.where == place::host) {
        auto staged =
            std::make_shared<std::vector<char>>((const char *)src, (const char *)src + bytes);
        it.run = [=] { memcpy(dst, staged->data(), bytes); };
    } else {
        it.run = [=] { memmove(dst, src, bytes); };
    }
    if (cudaError_t error = enqueue(hold, s, std::move(it)))
        return error;
    count_copy(to, from, bytes);
    bool both_on_device = on_device(to) && on_device(from);
    if (to.where != place::host && (!waits || both_on_device || from.where == place::host))
        return cudaSuccess;
    S.counts.synchronisations++;
    return wait_for(hold, s->last);
}

static cudaError_t set(held &hold, void *dst, int value, size_t bytes, stream *s) {
    side to = side_of(dst, bytes);
    if (to.where != place::device && to.where != place::pinned)
        return cudaErrorInvalidValue;
    item it;
    it.kind = work::set;
    it.devices = bit_of(to) | 1u << s->device;
    it.bytes = bytes;
    it.run = [=] { memset(dst, value, bytes); };
    if (cudaError_t error = enqueue(hold, s, std::move(it)))
        return error;
    S.counts.sets++;
    return cudaSuccess;
}

} // namespace td_played

using namespace td_played;

cudaError_t cudaMemcpy(void *dst, const void *src, size_t bytes, cudaMemcpyKind kind) {
    ENTER_WHOLE
    if (!bytes)
        return cudaSuccess;
    if (cudaError_t error = forbidden())
        return answer(error);
    return answer(copy(hold, dst, src, bytes, kind, S.devices[current_device].legacy, true));
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t handle) {
    ENTER_WHOLE
    stream *s = stream_of(handle);
    if (!s)
        return answer(cudaErrorInvalidResourceHandle);
    if (!bytes)
        return cudaSuccess;
    return answer(copy(hold, dst, src, bytes, kind, s, false));
}

cudaError_t cudaMemcpyPeerAsync(void *dst, int dst_device, const void *src, int src_device,
                                size_t bytes, cudaStream_t handle) {
    ENTER_WHOLE
    stream *s = stream_of(handle);
    if (!s)
        return answer(cudaErrorInvalidResourceHandle);
    if (!bytes)
        return cudaSuccess;
    side to = side_of(dst, bytes), from = side_of(src, bytes);
    if (!on_device(to) || !on_device(from) || to.device != dst_device || from.device != src_device)
        return answer(cudaErrorInvalidValue);
    return answer(copy(hold, dst, src, bytes, cudaMemcpyDeviceToDevice, s, false));
}

cudaError_t cudaMemset(void *dst, int value, size_t bytes) {
    ENTER_WHOLE
    if (!bytes)
        return cudaSuccess;
    if (cudaError_t error = forbidden())
        return answer(error);
    return answer(set(hold, dst, value, bytes, S.devices[current_device].legacy));
}

cudaError_t cudaMemsetAsync(void *dst, int value, size_t bytes, cudaStream_t handle) {
    ENTER_WHOLE
    stream *s = stream_of(handle);
    if (!s)
        return answer(cudaErrorInvalidResourceHandle);
    if (!bytes)
        return cudaSuccess;
    return answer(set(hold, dst, value, bytes, s));
}

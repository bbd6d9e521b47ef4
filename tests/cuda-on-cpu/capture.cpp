/* capture.cpp: streams that record instead of working, and graphs of what they recorded.
 *
 * A node follows the nodes its stream recorded before and those of events it waited for. A graph
 * runs as one item of the stream it is launched into, its nodes in an order drawn from the seed.
 */
#include "runtime.h"

#include <algorithm>

namespace td_played {

cudaError_t forbidden() {
    if (capture_mode == cudaStreamCaptureModeRelaxed)
        return cudaSuccess;
    for (const capture_ref &c : S.captures) {
        bool own = c->thread == std::this_thread::get_id();
        bool everywhere =
            capture_mode == cudaStreamCaptureModeGlobal && c->mode == cudaStreamCaptureModeGlobal;
        if (everywhere || (own && c->mode != cudaStreamCaptureModeRelaxed)) {
            c->invalid = true;
            return cudaErrorStreamCaptureUnsupported;
        }
    }
    return cudaSuccess;
}

cudaError_t record(stream *s, item what) {
    capture &c = *s->capturing;
    if (c.invalid)
        return cudaErrorStreamCaptureInvalidated;
    node n;
    n.what = std::move(what);
    n.after = s->tail;
    s->tail.assign(1, (int)c.nodes.size());
    c.nodes.push_back(std::move(n));
    return cudaSuccess;
}

cudaError_t record_event(stream *s, event *e) {
    if (s->capturing->invalid)
        return cudaErrorStreamCaptureInvalidated;
    e->captured = s->capturing;
    e->tail = s->tail;
    e->recorded = nullptr;
    return cudaSuccess;
}

cudaError_t record_wait(stream *s, event *e) {
    if (!e->captured) {
        if (!e->recorded)
            return cudaSuccess;
        s->capturing->invalid = true;
        return cudaErrorStreamCaptureIsolation;
    }
    capture_ref c = e->captured;
    if (c->ended)
        return cudaErrorCapturedEvent;
    if (s->capturing && s->capturing != c) {
        c->invalid = s->capturing->invalid = true;
        return cudaErrorStreamCaptureMerge;
    }
    if (c->invalid)
        return cudaErrorStreamCaptureInvalidated;
    if (!s->capturing) {
        if (s == S.devices[s->device].legacy)
            return cudaErrorStreamCaptureImplicit;
        s->capturing = c;
        c->streams.push_back(s);
    }
    for (int k : e->tail)
        if (std::find(s->tail.begin(), s->tail.end(), k) == s->tail.end())
            s->tail.push_back(k);
    return cudaSuccess;
}

void leave_capture(stream *s) {
    if (!s->capturing)
        return;
    capture_ref c = s->capturing;
    c->invalid = true;
    c->streams.erase(std::find(c->streams.begin(), c->streams.end(), s));
    s->capturing = nullptr;
    if (c->origin == s) {
        for (stream *other : c->streams)
            other->capturing = nullptr;
        c->ended = true;
        S.captures.erase(std::find(S.captures.begin(), S.captures.end(), c));
    }
}

/* Does every node that a stream recorded lead to the origin's last ones? */
static bool joined(const capture &c) {
    std::vector<bool> reached(c.nodes.size());
    for (int k : c.origin->tail)
        reached[(size_t)k] = true;
    for (size_t k = c.nodes.size(); k-- > 0;)
        if (reached[k])
            for (int before : c.nodes[k].after)
                reached[(size_t)before] = true;
    for (const stream *s : c.streams)
        for (int k : s->tail)
            if (!reached[(size_t)k])
                return false;
    return true;
}

static void end_capture(const capture_ref &c) {
    for (stream *s : c->streams) {
        s->capturing = nullptr;
        s->tail.clear();
    }
    c->ended = true;
    S.captures.erase(std::find(S.captures.begin(), S.captures.end(), c));
}

} // namespace td_played

using namespace td_played;

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
    ENTER_WHOLE
    stream *s = stream_of(handle);
    if (!s)
        return answer(cudaErrorInvalidResourceHandle);
    if (s == S.devices[s->device].legacy)
        return answer(cudaErrorStreamCaptureUnsupported);
    if (s->capturing)
        return answer(cudaErrorIllegalState);
    auto c = std::make_shared<capture>();
    c->mode = mode;
    c->thread = std::this_thread::get_id();
    c->origin = s;
    c->streams.push_back(s);
    s->capturing = c;
    s->tail.clear();
    S.captures.push_back(c);
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t *out) {
    ENTER_WHOLE
    *out = nullptr;
    stream *s = stream_of(handle);
    if (!s)
        return answer(cudaErrorInvalidResourceHandle);
    capture_ref c = s->capturing;
    if (!c)
        return answer(cudaErrorIllegalState);
    if (c->origin != s)
        return answer(cudaErrorStreamCaptureUnmatched);
    if (c->mode != cudaStreamCaptureModeRelaxed && c->thread != std::this_thread::get_id())
        return answer(cudaErrorStreamCaptureWrongThread);
    cudaError_t error = c->invalid   ? cudaErrorStreamCaptureInvalidated
                        : joined(*c) ? cudaSuccess
                                     : cudaErrorStreamCaptureUnjoined;
    end_capture(c);
    if (error)
        return answer(error);
    graph *g = new graph{std::move(c->nodes)};
    S.graphs.insert(g);
    *out = reinterpret_cast<cudaGraph_t>(g);
    return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus *status) {
    ENTER_WHOLE
    stream *s = stream_of(handle);
    if (!s)
        return answer(cudaErrorInvalidResourceHandle);
    *status = !s->capturing           ? cudaStreamCaptureStatusNone
              : s->capturing->invalid ? cudaStreamCaptureStatusInvalidated
                                      : cudaStreamCaptureStatusActive;
    return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *mode) {
    ENTER
    if (*mode > cudaStreamCaptureModeRelaxed)
        return answer(cudaErrorInvalidValue);
    std::swap(*mode, capture_mode);
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t handle,
                                 unsigned long long flags) {
    ENTER_WHOLE
    graph *g = reinterpret_cast<graph *>(handle);
    if (!S.graphs.count(g) || flags & ~15ull)
        return answer(cudaErrorInvalidValue);
    graph *copy = new graph(*g);
    S.execs.insert(copy);
    *exec = reinterpret_cast<cudaGraphExec_t>(copy);
    return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t handle, cudaStream_t stream_handle) {
    ENTER_WHOLE
    bool known = S.execs.count(reinterpret_cast<graph *>(handle)) && stream_of(stream_handle);
    return answer(known ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaGraphGetNodes(cudaGraph_t handle, cudaGraphNode_t *nodes, size_t *count) {
    ENTER_WHOLE
    graph *g = reinterpret_cast<graph *>(handle);
    if (!S.graphs.count(g))
        return answer(cudaErrorInvalidValue);
    if (nodes)
        for (size_t k = 0; k < *count; k++)
            nodes[k] =
                k < g->nodes.size() ? reinterpret_cast<cudaGraphNode_t>(&g->nodes[k]) : nullptr;
    else
        *count = g->nodes.size();
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t handle, cudaStream_t stream_handle) {
    ENTER_WHOLE
    graph *g = reinterpret_cast<graph *>(handle);
    stream *s = stream_of(stream_handle);
    if (!S.execs.count(g) || !s)
        return answer(cudaErrorInvalidValue);
    item it;
    it.kind = work::graph;
    it.nodes = std::make_shared<std::vector<node>>(g->nodes);
    if (cudaError_t error = enqueue(hold, s, std::move(it)))
        return answer(error);
    S.counts.graph_launches++;
    for (const node &n : g->nodes)
        if (n.what.kind == work::kernel || n.what.kind == work::library)
            count_launch(n.what.launch ? n.what.launch->name : n.what.name);
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t handle) {
    ENTER_WHOLE
    graph *g = reinterpret_cast<graph *>(handle);
    if (!S.execs.erase(g))
        return answer(cudaErrorInvalidValue);
    delete g;
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t handle) {
    ENTER_WHOLE
    graph *g = reinterpret_cast<graph *>(handle);
    if (!S.graphs.erase(g))
        return answer(cudaErrorInvalidValue);
    delete g;
    return cudaSuccess;
}

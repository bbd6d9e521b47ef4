/* queue.cpp: streams and events: work waits in its stream's queue and runs when somebody waits for
 * it, in turns drawn from the seed.
 *
 * An item may run when it is the first of its stream and all it comes after is done. What waits
 * draws a manner first: only what it needs, or any stream's turn, or others' work before its own.
 * While an item waits for another process, the other streams go on.
 */
#include "runtime.h"

#include <algorithm>
#include <chrono>
#include <unistd.h>

namespace td_played {

constexpr size_t QUEUE_MOST = 1024;

stream *new_stream(int device, unsigned flags, int priority) {
    stream *s = new stream{};
    s->device = device;
    s->flags = flags;
    s->priority = std::clamp(priority, -5, 0);
    s->number = ++S.born;
    S.streams.push_back(s);
    return s;
}

stream *stream_of(cudaStream_t handle) {
    if (!handle || handle == cudaStreamLegacy)
        return S.devices[current_device].legacy;
    stream *s = reinterpret_cast<stream *>(handle);
    for (stream *known : S.streams)
        if (known == s && !s->closed)
            return s;
    return nullptr;
}

/* ---- running ---- */

static void finish(const ticket_ref &t) {
    using namespace std::chrono;
    uint64_t now = (uint64_t)steady_clock::now().time_since_epoch().count();
    S.clock = std::max(now, S.clock + 1000); /* later than what was before, for elapsed times */
    t->nanoseconds = S.clock;
    t->done = true;
}

static bool is_blocking(const stream *s) {
    return !(s->flags & cudaStreamNonBlocking);
}

static void run_kernel(const item &it, int device) {
    if (is_sticky(S.fail_next)) {
        S.devices[device].broken = S.fail_next;
        S.fail_next = cudaSuccess;
        return;
    }
    run_grid(*it.launch, S.seed + ++S.launched);
}

static void run_item(held &hold, item &it, const stream *s);

/* Run recorded nodes in an order that their edges allow. */
static void run_nodes(held &hold, std::vector<node> &nodes, const stream *s, uint32_t number) {
    int device = s->device;
    std::vector<size_t> left(nodes.size()), ready;
    for (size_t k = 0; k < nodes.size(); k++)
        if (!(left[k] = nodes[k].after.size()))
            ready.push_back(k);
    while (!ready.empty() && !S.devices[device].broken) {
        size_t turn = S.turns.draw((unsigned)ready.size()), k = ready[turn];
        ready.erase(ready.begin() + (ptrdiff_t)turn);
        item copy = nodes[k].what;
        copy.number = number;
        run_item(hold, copy, s);
        for (size_t j = k + 1; j < nodes.size(); j++)
            for (int before : nodes[j].after)
                if ((size_t)before == k && !--left[j])
                    ready.push_back(j);
    }
}

static void run_item(held &hold, item &it, const stream *s) {
    if (it.kind == work::graph) {
        run_nodes(hold, *it.nodes, s, it.number);
    } else if (it.kind == work::host) {
        hold.unlock();
        in_host_function = true;
        it.run();
        in_host_function = false;
        hold.lock();
    } else if (it.kind != work::nothing) {
        uint64_t start = trace_begin();
        open_memory(it.devices);
        if (it.kind == work::kernel)
            run_kernel(it, s->device);
        else
            it.run();
        open_memory(0);
        trace_work(it, s, start);
    }
}

static void reap(stream *s) {
    if (s->closed && s->queue.empty()) {
        S.streams.erase(std::find(S.streams.begin(), S.streams.end(), s));
        delete s;
    }
}

/* Run the first item of a stream. */
static void step(held &hold, stream *s) {
    item it = std::move(s->queue.front());
    int device = s->device;
    s->queue.pop_front();
    if (!S.devices[device].broken)
        run_item(hold, it, s);
    finish(it.done);
    if (S.devices[device].broken)
        drop_work(device);
    else
        reap(s);
    S.progress.notify_all();
}

void drop_work(int device) {
    for (size_t k = S.streams.size(); k-- > 0;) {
        stream *s = S.streams[k];
        if (s->device != device)
            continue;
        for (item &it : s->queue)
            finish(it.done);
        s->queue.clear();
        reap(s);
    }
}

static const ticket_ref *unmet(const item &it) {
    for (const ticket_ref &t : it.after)
        if (!t->done)
            return &t;
    return nullptr;
}

/* The stream whose turn brings a ticket nearer. */
static stream *needed_for(const ticket_ref &until) {
    const ticket_ref *t = &until;
    for (size_t steps = 0; steps < 1u << 20; steps++) {
        stream *s = (*t)->in;
        if (s->queue.empty())
            die("the work that somebody waits for is in no queue");
        t = unmet(s->queue.front());
        if (!t)
            return s;
    }
    die("streams wait for one another for ever");
}

/* Has what the first item of a stream needs of other processes come? */
static bool has_come(stream *s) {
    item &it = s->queue.front();
    if (!it.come)
        return true;
    open_memory(it.devices);
    bool come = it.come();
    open_memory(0);
    return come;
}

static stream *any_ready(const stream *but) {
    std::vector<stream *> ready;
    for (stream *s : S.streams)
        if (s != but && !s->queue.empty() && !unmet(s->queue.front()) && has_come(s))
            ready.push_back(s);
    return ready.empty() ? nullptr : ready[S.turns.draw((unsigned)ready.size())];
}

static void drive(held &hold, const ticket_ref &until) {
    enum { NEEDED, ANY, OTHERS_FIRST, MANNERS };
    unsigned manner = S.turns.draw(MANNERS), naps = 0;
    while (!until->done) {
        stream *own = needed_for(until), *s = own;
        if (manner == ANY)
            s = any_ready(nullptr);
        else if (manner == OTHERS_FIRST && !(s = any_ready(own)))
            s = own;
        if (s && !has_come(s))
            s = any_ready(nullptr);
        if (s) {
            step(hold, s);
            naps = 0;
        } else { /* for another process, to whom other threads of this one may have to say something
                  */
            hold.unlock();
            usleep(20u << std::min(naps++, 5u));
            hold.lock();
        }
    }
}

cudaError_t wait_for(held &hold, const ticket_ref &until) {
    if (!until)
        return cudaSuccess;
    ticket_ref kept = until;
    while (!kept->done) {
        if (S.driving) {
            S.progress.wait(hold);
            continue;
        }
        S.driving = true;
        drive(hold, kept);
        S.driving = false;
        S.progress.notify_all();
    }
    return S.devices[kept->device].broken;
}

cudaError_t wait_for_device(held &hold, int device) {
    std::vector<ticket_ref> last;
    for (stream *s : S.streams)
        if (s->device == device && s->last)
            last.push_back(s->last);
    for (size_t k = last.size(); k > 1; k--)
        std::swap(last[k - 1], last[S.turns.draw((unsigned)k)]);
    for (const ticket_ref &t : last)
        wait_for(hold, t);
    return S.devices[device].broken;
}

/* Has anything been done? */
static bool go_on(held &hold, unsigned steps) {
    bool any = false;
    if (S.driving)
        return false;
    S.driving = true;
    for (stream *s; steps-- && (s = any_ready(nullptr)); any = true)
        step(hold, s);
    S.driving = false;
    S.progress.notify_all();
    return any;
}

void stir(held &hold) {
    go_on(hold, S.turns.draw(4));
}

/* ---- queueing ---- */

/* The default stream follows all blocking streams of its device, and they follow it. */
static void follow_default(stream *s, item *it) {
    stream *legacy = S.devices[s->device].legacy;
    if (s == legacy) {
        for (stream *other : S.streams)
            if (other != s && other->device == s->device && is_blocking(other) && other->last)
                it->after.push_back(other->last);
    } else if (is_blocking(s) && legacy->last) {
        it->after.push_back(legacy->last);
    }
}

/* Work in the default stream would depend on a blocking stream that captures. */
static bool breaks_capture(const stream *s) {
    bool broken = false;
    for (const capture_ref &c : S.captures)
        for (const stream *other : c->streams)
            if (s == S.devices[s->device].legacy && other->device == s->device &&
                is_blocking(other))
                broken = c->invalid = true;
    return broken;
}

cudaError_t enqueue(held &hold, stream *s, item what) {
    if (S.devices[s->device].broken)
        return S.devices[s->device].broken;
    if (!what.devices)
        what.devices = 1u << s->device | S.devices[s->device].peers;
    if (s->capturing)
        return record(s, std::move(what));
    if (breaks_capture(s))
        return cudaErrorStreamCaptureImplicit;
    if (what.kind != work::nothing && what.kind != work::host)
        what.number = trace_call();
    follow_default(s, &what);
    what.done = std::make_shared<ticket>();
    what.done->in = s;
    what.done->device = s->device;
    s->last = what.done;
    s->queue.push_back(std::move(what));
    while (s->queue.size() > QUEUE_MOST && go_on(hold, 64)) {
    }
    return cudaSuccess;
}

cudaError_t enqueue_library(cudaStream_t handle, const char *name, std::function<void()> run,
                            std::function<bool()> come) {
    ENTER_WHOLE
    stream *s = stream_of(handle);
    if (!s)
        return answer(cudaErrorInvalidResourceHandle);
    if (S.fail_next && !is_sticky(S.fail_next)) {
        cudaError_t error = S.fail_next;
        S.fail_next = cudaSuccess;
        return answer(error);
    }
    item it;
    it.kind = work::library;
    it.name = name;
    it.run = std::move(run);
    it.come = std::move(come);
    if (!s->capturing)
        count_launch(name);
    return answer(enqueue(hold, s, std::move(it)));
}

static event *event_of(cudaEvent_t handle) {
    event *e = reinterpret_cast<event *>(handle);
    return S.events.count(e) ? e : nullptr;
}

} // namespace td_played

using namespace td_played;

#define STREAM(handle)                                                                             \
    stream *s = stream_of(handle);                                                                 \
    if (!s)                                                                                        \
        return answer(cudaErrorInvalidResourceHandle);
#define EVENT(handle)                                                                              \
    event *e = event_of(handle);                                                                   \
    if (!e)                                                                                        \
        return answer(cudaErrorInvalidResourceHandle);

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned int flags, int priority) {
    ENTER_WHOLE
    if (flags & ~(unsigned)cudaStreamNonBlocking)
        return answer(cudaErrorInvalidValue);
    *out = reinterpret_cast<cudaStream_t>(new_stream(current_device, flags, priority));
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned int flags) {
    return cudaStreamCreateWithPriority(out, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t *out) {
    return cudaStreamCreateWithPriority(out, cudaStreamDefault, 0);
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
    ENTER_WHOLE
    STREAM(handle)
    if (s == S.devices[s->device].legacy)
        return answer(cudaErrorInvalidResourceHandle);
    leave_capture(s);
    s->closed = true;
    reap(s);
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
    ENTER_WHOLE
    STREAM(handle)
    if (s->capturing) {
        s->capturing->invalid = true;
        return answer(cudaErrorStreamCaptureUnsupported);
    }
    if (cudaError_t error = forbidden())
        return answer(error);
    if (breaks_capture(s))
        return answer(cudaErrorStreamCaptureImplicit);
    S.counts.synchronisations++;
    if (s == S.devices[s->device].legacy) {
        item nothing; /* waits as the default stream's work would */
        if (cudaError_t error = enqueue(hold, s, nothing))
            return answer(error);
    }
    return answer(wait_for(hold, s->last));
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
    ENTER_WHOLE
    STREAM(handle)
    if (s->capturing) {
        s->capturing->invalid = true;
        return answer(cudaErrorStreamCaptureUnsupported);
    }
    if (cudaError_t error = forbidden())
        return answer(error);
    ticket_ref last = s->last;
    stir(hold);
    if (S.devices[current_device].broken)
        return answer(S.devices[current_device].broken);
    return answer(!last || last->done ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaStreamGetPriority(cudaStream_t handle, int *priority) {
    ENTER_WHOLE
    STREAM(handle)
    *priority = s->priority;
    return cudaSuccess;
}

cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned int *flags) {
    ENTER_WHOLE
    STREAM(handle)
    *flags = s->flags;
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event_handle, unsigned int flags) {
    ENTER_WHOLE
    STREAM(handle)
    EVENT(event_handle)
    if (flags)
        return answer(cudaErrorInvalidValue);
    if (s->capturing || e->captured)
        return answer(record_wait(s, e));
    if (!e->recorded || e->recorded->done)
        return cudaSuccess;
    item it;
    it.after.push_back(e->recorded);
    return answer(enqueue(hold, s, std::move(it)));
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t fn, void *data) {
    ENTER_WHOLE
    STREAM(handle)
    if (!fn)
        return answer(cudaErrorInvalidValue);
    item it;
    it.kind = work::host;
    it.run = [fn, data] { fn(data); };
    return answer(enqueue(hold, s, std::move(it)));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned int flags) {
    ENTER_WHOLE
    if (flags & ~(unsigned)(cudaEventBlockingSync | cudaEventDisableTiming))
        return answer(cudaErrorInvalidValue);
    event *e = new event{};
    e->device = current_device;
    e->flags = flags;
    S.events.insert(e);
    *out = reinterpret_cast<cudaEvent_t>(e);
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *out) {
    return cudaEventCreateWithFlags(out, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
    ENTER_WHOLE
    EVENT(handle)
    S.events.erase(e);
    delete e;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream_handle) {
    ENTER_WHOLE
    EVENT(handle)
    STREAM(stream_handle)
    if (e->device != s->device)
        return answer(cudaErrorInvalidResourceHandle);
    if (s->capturing)
        return answer(record_event(s, e));
    item it;
    if (cudaError_t error = enqueue(hold, s, std::move(it)))
        return answer(error);
    S.counts.events++;
    e->recorded = s->last;
    e->captured = nullptr;
    return cudaSuccess;
}

/* What a question about an event that a capture recorded is answered. */
static cudaError_t captured(event *e) {
    if (!e->captured)
        return forbidden();
    e->captured->invalid = true;
    return cudaErrorCapturedEvent;
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
    ENTER_WHOLE
    EVENT(handle)
    if (cudaError_t error = captured(e))
        return answer(error);
    ticket_ref recorded = e->recorded;
    stir(hold);
    if (recorded && S.devices[recorded->device].broken)
        return answer(S.devices[recorded->device].broken);
    return answer(!recorded || recorded->done ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
    ENTER_WHOLE
    EVENT(handle)
    if (cudaError_t error = captured(e))
        return answer(error);
    S.counts.synchronisations++;
    return answer(wait_for(hold, e->recorded));
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end) {
    ENTER_WHOLE
    event *a = event_of(start), *b = event_of(end);
    if (!a || !b || (a->flags | b->flags) & cudaEventDisableTiming || !a->recorded || !b->recorded)
        return answer(cudaErrorInvalidResourceHandle);
    if (!a->recorded->done || !b->recorded->done)
        return answer(cudaErrorNotReady);
    double ns = (double)(int64_t)(b->recorded->nanoseconds - a->recorded->nanoseconds);
    *milliseconds = (float)(ns * 1e-6);
    return cudaSuccess;
}

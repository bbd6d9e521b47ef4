/* cupti.cpp: what a profiler hears of the played device. Records are made when work is queued
 * (calls) and when it has run, and handed over when somebody flushes, newest first: nothing may
 * depend on their order.
 */
#include "include/cupti.h"
#include "runtime.h"

#include <cstdlib>
#include <cstring>
#include <sys/syscall.h>
#include <unistd.h>

using namespace td_played;

namespace {

/* From the monotonic clock's zero to that of this library, which is another. */
constexpr uint64_t EPOCH = 1577836800000000000u;

struct tracer {
    std::mutex lock;
    std::set<int> kinds;
    std::vector<std::string> records; /* their bytes */
    std::set<std::string> names;      /* valid for ever */
    CUpti_BuffersCallbackRequestFunc request = nullptr;
    CUpti_BuffersCallbackCompleteFunc complete = nullptr;
    bool subscribed = false;
    uint32_t numbers = 0;
    int answer = -1; /* of cuptiSubscribe; -1: the environment was not asked yet */
    int refused = 0; /* the kind that may not be recorded */
};
tracer &T = *new tracer;

uint64_t now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return EPOCH + (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

size_t size_of_kind(int kind) {
    switch (kind) {
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        return sizeof(CUpti_ActivityMemcpy);
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
        return sizeof(CUpti_ActivityMemcpyPtoP);
    case CUPTI_ACTIVITY_KIND_MEMSET:
        return sizeof(CUpti_ActivityMemset);
    case CUPTI_ACTIVITY_KIND_RUNTIME:
        return sizeof(CUpti_ActivityAPI);
    default:
        return sizeof(CUpti_ActivityKernel4);
    }
}

template <typename R> void keep(const R &record) {
    if (T.kinds.count(record.kind))
        T.records.emplace_back(reinterpret_cast<const char *>(&record), sizeof record);
}

/* As a compiler writes the name of a function; what has parameters stays as it is. */
std::string mangled(const std::string &name) {
    bool plain = name.find_first_of("<>:(), ") == std::string::npos;
    return plain ? "_Z" + std::to_string(name.size()) + name + "v" : name;
}

void keep_kernel(const item &it, const stream *s, uint64_t start) {
    CUpti_ActivityKernel4 r{};
    r.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    r.start = start;
    r.end = r.completed = now();
    r.deviceId = (uint32_t)s->device;
    r.streamId = s->number;
    r.correlationId = it.number;
    r.name = T.names.insert(mangled(it.launch ? it.launch->name : it.name)).first->c_str();
    keep(r);
}

void keep_copy(const item &it, const stream *s, uint64_t start) {
    CUpti_ActivityMemcpy r{};
    r.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
    r.copyKind = (uint8_t)it.direction;
    r.bytes = it.bytes;
    r.start = start;
    r.end = now();
    r.deviceId = (uint32_t)s->device;
    r.streamId = s->number;
    r.correlationId = it.number;
    keep(r);
}

void keep_peer_copy(const item &it, const stream *s, uint64_t start) {
    CUpti_ActivityMemcpyPtoP r{};
    r.kind = CUPTI_ACTIVITY_KIND_MEMCPY2;
    r.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
    r.bytes = it.bytes;
    r.start = start;
    r.end = now();
    r.deviceId = (uint32_t)s->device;
    r.streamId = s->number;
    r.correlationId = it.number;
    keep(r);
}

void keep_set(const item &it, const stream *s, uint64_t start) {
    CUpti_ActivityMemset r{};
    r.kind = CUPTI_ACTIVITY_KIND_MEMSET;
    r.bytes = it.bytes;
    r.start = start;
    r.end = now();
    r.deviceId = (uint32_t)s->device;
    r.streamId = s->number;
    r.correlationId = it.number;
    keep(r);
}

} // namespace

namespace td_played {

uint32_t trace_call() {
    std::unique_lock<std::mutex> hold(T.lock);
    CUpti_ActivityAPI r{};
    r.kind = CUPTI_ACTIVITY_KIND_RUNTIME;
    r.start = r.end = now();
    r.threadId = (uint32_t)syscall(SYS_gettid);
    r.correlationId = ++T.numbers;
    if (T.kinds.empty())
        return 0;
    keep(r);
    return r.correlationId;
}

uint64_t trace_begin() {
    return now();
}

void trace_work(const item &it, const stream *s, uint64_t start) {
    std::unique_lock<std::mutex> hold(T.lock);
    if (!it.number)
        return;
    if (it.kind == work::kernel || it.kind == work::library)
        keep_kernel(it, s, start);
    else if (it.kind == work::copy && it.direction == CUPTI_ACTIVITY_MEMCPY_KIND_PTOP)
        keep_peer_copy(it, s, start);
    else if (it.kind == work::copy)
        keep_copy(it, s, start);
    else if (it.kind == work::set)
        keep_set(it, s, start);
}

} // namespace td_played

CUptiResult cuptiGetResultString(CUptiResult result, const char **text) {
    *text = result == CUPTI_ERROR_NOT_INITIALIZED ? "CUPTI_ERROR_NOT_INITIALIZED"
            : result == CUPTI_SUCCESS             ? "CUPTI_SUCCESS"
                                                  : nullptr;
    return *text ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc call, void *) {
    std::unique_lock<std::mutex> hold(T.lock);
    const char *setting = getenv("TIDE_PLAYED_CUPTI");
    if (T.answer < 0)
        T.answer = setting ? (int)strtol(setting, nullptr, 10) : 0;
    if (!call)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (T.answer || T.subscribed)
        return T.answer ? (CUptiResult)T.answer : CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    T.subscribed = true;
    *subscriber = reinterpret_cast<CUpti_SubscriberHandle>(&T);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle subscriber) {
    std::unique_lock<std::mutex> hold(T.lock);
    if (!T.subscribed || subscriber != reinterpret_cast<CUpti_SubscriberHandle>(&T))
        return CUPTI_ERROR_INVALID_PARAMETER;
    T.subscribed = false;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType type) {
    return type == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM ? CUPTI_SUCCESS
                                                        : CUPTI_ERROR_INVALID_PARAMETER;
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc requested,
                                           CUpti_BuffersCallbackCompleteFunc completed) {
    std::unique_lock<std::mutex> hold(T.lock);
    T.request = requested;
    T.complete = completed;
    return requested && completed ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
    std::unique_lock<std::mutex> hold(T.lock);
    if (T.refused == (int)kind)
        return CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
    if (!T.request)
        die("cuptiActivityEnable: no callback gives buffers");
    T.kinds.insert(kind);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
    std::unique_lock<std::mutex> hold(T.lock);
    return T.kinds.erase(kind) ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, CUpti_Activity **record) {
    uint8_t *at = buffer;
    if (*record) {
        CUpti_ActivityKind kind;
        memcpy(&kind, *record, sizeof kind);
        at = reinterpret_cast<uint8_t *>(*record) + size_of_kind(kind);
    }
    if (at >= buffer + valid)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = reinterpret_cast<CUpti_Activity *>(at);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushAll(uint32_t) {
    std::unique_lock<std::mutex> hold(T.lock);
    while (!T.records.empty()) {
        uint8_t *buffer = nullptr;
        size_t size = 0, most = 0, used = 0;
        T.request(&buffer, &size, &most);
        if (!buffer || (uintptr_t)buffer % 8)
            die("CUPTI: a buffer of its own, aligned to 8 bytes, expected");
        while (!T.records.empty() && used + T.records.back().size() <= size) {
            memcpy(buffer + used, T.records.back().data(), T.records.back().size());
            used += T.records.back().size();
            T.records.pop_back();
        }
        auto complete = T.complete;
        hold.unlock();
        complete(nullptr, 0, buffer, size, used);
        hold.lock();
    }
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetTimestamp(uint64_t *timestamp) {
    *timestamp = now();
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetStreamIdEx(CUcontext, CUstream handle, uint8_t, uint32_t *id) {
    std::unique_lock<std::mutex> hold(S.lock);
    for (const stream *s : S.streams)
        if (s == reinterpret_cast<const stream *>(handle)) {
            *id = s->number;
            return CUPTI_SUCCESS;
        }
    return CUPTI_ERROR_INVALID_PARAMETER;
}

void td_played_fail_cupti(int result, int kind) {
    std::unique_lock<std::mutex> hold(T.lock);
    T.answer = kind ? 0 : result;
    T.refused = kind;
}

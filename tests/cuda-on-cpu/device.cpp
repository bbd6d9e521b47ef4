/* device.cpp: devices, their facts, errors, counts: what a call of the runtime begins with. */
#include "runtime.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace td_played {

state &S = *new state; /* never ends: the pool's threads outlive static objects */
thread_local int current_device;
thread_local cudaError_t last_error;
thread_local cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;
thread_local bool in_host_function;

void die(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("played device: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    abort();
}

static unsigned long long setting(const char *name, unsigned long long usual) {
    const char *text = getenv(name);
    if (!text || !*text)
        return usual;
    char *end;
    unsigned long long value = strtoull(text, &end, 10);
    const char *units = "KMG", *unit = *end ? strchr(units, *end) : nullptr;
    if (unit && !end[1])
        value <<= 10 * (unit - units + 1);
    else if (*end)
        die("%s is \"%s\", expected a number", name, text);
    return value;
}

static void read_settings() {
    S.seed = setting("TIDE_PLAYED_SEED", 1);
    S.turns.state = S.seed * 0x9E3779B97F4A7C15u;
    S.memory = setting("TIDE_PLAYED_MEMORY", (size_t)1 << 30);
    S.fail_malloc = setting("TIDE_PLAYED_FAIL", 0);
    S.threads = (int)setting("TIDE_PLAYED_THREADS", 2);
    S.ndevices = (int)setting("TIDE_PLAYED_DEVICES", 2);
    S.driver = (int)setting("TIDE_PLAYED_DRIVER", CUDART_VERSION);
    if (S.ndevices > MAX_DEVICES || S.threads < 1 || S.threads > 64)
        die("TIDE_PLAYED_DEVICES is %d, expected 0 to %d, and TIDE_PLAYED_THREADS %d, expected 1 "
            "to 64",
            S.ndevices, MAX_DEVICES, S.threads);
    for (int d = 0; d < S.ndevices; d++)
        S.devices[d].legacy = new_stream(d, cudaStreamDefault, 0);
}

static cudaError_t first_answer;

cudaError_t begin() {
    if (!S.ready) {
        S.ready = true;
        read_settings();
        first_answer = S.driver < CUDART_VERSION ? cudaErrorInsufficientDriver
                       : S.ndevices == 0         ? cudaErrorNoDevice
                                                 : cudaSuccess;
        if (!first_answer)
            install_fault_handler();
    }
    return in_host_function ? cudaErrorNotPermitted : first_answer;
}

cudaError_t answer(cudaError_t error) {
    if (error)
        last_error = error;
    return error;
}

bool is_sticky(cudaError_t error) {
    return error == cudaErrorIllegalAddress || error == cudaErrorAssert ||
           error == cudaErrorLaunchFailure || error == cudaErrorLaunchTimeout ||
           error == cudaErrorHardwareStackError || error == cudaErrorIllegalInstruction ||
           error == cudaErrorMisalignedAddress || error == cudaErrorInvalidAddressSpace ||
           error == cudaErrorInvalidPc || error == cudaErrorECCUncorrectable;
}

void count_launch(const std::string &name) {
    S.counts.launches++;
    auto found = S.launches.find(name);
    if (found == S.launches.end()) {
        S.kernels.push_back(name);
        S.launches[name] = 1;
    } else {
        found->second++;
    }
}

struct error_row {
    cudaError_t error;
    const char *name, *text;
};
#define ROW(error, text)                                                                           \
    { error, #error, text }
static const error_row errors[] = {
    ROW(cudaSuccess, "no error"),
    ROW(cudaErrorInvalidValue, "invalid argument"),
    ROW(cudaErrorMemoryAllocation, "out of memory"),
    ROW(cudaErrorInitializationError, "initialization error"),
    ROW(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    ROW(cudaErrorInvalidDevicePointer, "invalid device pointer"),
    ROW(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    ROW(cudaErrorInsufficientDriver,
        "CUDA driver version is insufficient for CUDA runtime version"),
    ROW(cudaErrorInvalidDeviceFunction, "invalid device function"),
    ROW(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    ROW(cudaErrorInvalidDevice, "invalid device ordinal"),
    ROW(cudaErrorInvalidKernelImage, "device kernel image is invalid"),
    ROW(cudaErrorNoKernelImageForDevice,
        "no kernel image is available for execution on the device"),
    ROW(cudaErrorECCUncorrectable, "uncorrectable ECC error encountered"),
    ROW(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    ROW(cudaErrorSymbolNotFound, "named symbol not found"),
    ROW(cudaErrorNotReady, "device not ready"),
    ROW(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    ROW(cudaErrorLaunchOutOfResources, "too many resources requested for launch"),
    ROW(cudaErrorLaunchTimeout, "the launch timed out and was terminated"),
    ROW(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled"),
    ROW(cudaErrorPeerAccessNotEnabled, "peer access has not been enabled"),
    ROW(cudaErrorAssert, "device-side assert triggered"),
    ROW(cudaErrorHardwareStackError, "hardware stack error"),
    ROW(cudaErrorIllegalInstruction, "an illegal instruction was encountered"),
    ROW(cudaErrorMisalignedAddress, "misaligned address"),
    ROW(cudaErrorInvalidAddressSpace, "operation not supported on global/shared address space"),
    ROW(cudaErrorInvalidPc, "invalid program counter"),
    ROW(cudaErrorLaunchFailure, "unspecified launch failure"),
    ROW(cudaErrorNotPermitted, "operation not permitted"),
    ROW(cudaErrorNotSupported, "operation not supported"),
    ROW(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"),
    ROW(cudaErrorStreamCaptureInvalidated,
        "operation failed due to a previous error during capture"),
    ROW(cudaErrorStreamCaptureMerge,
        "operation would result in a merge of separate capture sequences"),
    ROW(cudaErrorStreamCaptureUnmatched, "capture was not ended in the same stream as it began"),
    ROW(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
    ROW(cudaErrorStreamCaptureIsolation, "dependency created on uncaptured work in another stream"),
    ROW(cudaErrorStreamCaptureImplicit,
        "operation would make the legacy stream depend on a capturing blocking stream"),
    ROW(cudaErrorCapturedEvent,
        "operation not permitted on an event last recorded in a capturing stream"),
    ROW(cudaErrorStreamCaptureWrongThread,
        "attempt to terminate a thread-local capture sequence from another thread"),
    ROW(cudaErrorUnknown, "unknown error"),
};
#undef ROW

static const error_row *row_of(cudaError_t error) {
    for (const error_row &row : errors)
        if (row.error == error)
            return &row;
    return nullptr;
}

static void describe(cudaDeviceProp *p, int device) {
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "Played Device");
    p->uuid.bytes[15] = (char)device;
    p->totalGlobalMem = S.memory;
    p->sharedMemPerBlock = SHARED_DEFAULT;
    p->sharedMemPerBlockOptin = SHARED_MOST;
    p->sharedMemPerMultiprocessor = SHARED_MOST + 1024;
    p->reservedSharedMemPerBlock = 1024;
    p->regsPerBlock = p->regsPerMultiprocessor = 65536;
    p->warpSize = WARP;
    p->maxThreadsPerBlock = MAX_THREADS;
    p->maxThreadsDim[0] = p->maxThreadsDim[1] = MAX_THREADS;
    p->maxThreadsDim[2] = 64;
    p->maxGridSize[0] = 0x7FFFFFFF;
    p->maxGridSize[1] = p->maxGridSize[2] = 65535;
    p->totalConstMem = 65536;
    p->major = 9;
    p->multiProcessorCount = 4;
    p->canMapHostMemory = p->concurrentKernels = p->unifiedAddressing = 1;
    p->pciBusID = device + 1;
    p->asyncEngineCount = 2;
    p->memoryBusWidth = 64;
    p->l2CacheSize = 1 << 20;
    p->maxThreadsPerMultiProcessor = 2 * MAX_THREADS;
    p->streamPrioritiesSupported = 1;
    p->maxBlocksPerMultiProcessor = 32;
}

static cudaError_t attribute_of(const cudaDeviceProp &p, int which, int *value) {
    const struct {
        int which;
        long long value;
    } rows[] = {
        {cudaDevAttrMaxThreadsPerBlock, p.maxThreadsPerBlock},
        {cudaDevAttrMaxBlockDimX, p.maxThreadsDim[0]},
        {cudaDevAttrMaxBlockDimY, p.maxThreadsDim[1]},
        {cudaDevAttrMaxBlockDimZ, p.maxThreadsDim[2]},
        {cudaDevAttrMaxGridDimX, p.maxGridSize[0]},
        {cudaDevAttrMaxGridDimY, p.maxGridSize[1]},
        {cudaDevAttrMaxGridDimZ, p.maxGridSize[2]},
        {cudaDevAttrMaxSharedMemoryPerBlock, (long long)p.sharedMemPerBlock},
        {cudaDevAttrTotalConstantMemory, (long long)p.totalConstMem},
        {cudaDevAttrWarpSize, p.warpSize},
        {cudaDevAttrMaxRegistersPerBlock, p.regsPerBlock},
        {cudaDevAttrClockRate, 1000000},
        {cudaDevAttrMultiProcessorCount, p.multiProcessorCount},
        {cudaDevAttrIntegrated, p.integrated},
        {cudaDevAttrCanMapHostMemory, p.canMapHostMemory},
        {cudaDevAttrComputeMode, 0},
        {cudaDevAttrConcurrentKernels, p.concurrentKernels},
        {cudaDevAttrEccEnabled, p.ECCEnabled},
        {cudaDevAttrPciBusId, p.pciBusID},
        {cudaDevAttrPciDeviceId, p.pciDeviceID},
        {cudaDevAttrPciDomainId, p.pciDomainID},
        {cudaDevAttrMemoryClockRate, 1000000},
        {cudaDevAttrGlobalMemoryBusWidth, p.memoryBusWidth},
        {cudaDevAttrL2CacheSize, p.l2CacheSize},
        {cudaDevAttrMaxThreadsPerMultiProcessor, p.maxThreadsPerMultiProcessor},
        {cudaDevAttrAsyncEngineCount, p.asyncEngineCount},
        {cudaDevAttrUnifiedAddressing, p.unifiedAddressing},
        {cudaDevAttrComputeCapabilityMajor, p.major},
        {cudaDevAttrComputeCapabilityMinor, p.minor},
        {cudaDevAttrStreamPrioritiesSupported, p.streamPrioritiesSupported},
        {cudaDevAttrMaxSharedMemoryPerMultiprocessor, (long long)p.sharedMemPerMultiprocessor},
        {cudaDevAttrMaxRegistersPerMultiprocessor, p.regsPerMultiprocessor},
        {cudaDevAttrManagedMemory, p.managedMemory},
        {cudaDevAttrCooperativeLaunch, p.cooperativeLaunch},
        {cudaDevAttrMaxSharedMemoryPerBlockOptin, (long long)p.sharedMemPerBlockOptin},
        {cudaDevAttrMaxBlocksPerMultiprocessor, p.maxBlocksPerMultiProcessor},
        {cudaDevAttrMemoryPoolsSupported, p.memoryPoolsSupported},
    };
    for (auto &row : rows)
        if (row.which == which) {
            *value = (int)row.value;
            return cudaSuccess;
        }
    return cudaErrorInvalidValue;
}

static bool is_device(int device) {
    return device >= 0 && device < S.ndevices;
}

} // namespace td_played

using namespace td_played;

cudaError_t cudaGetLastError(void) {
    std::unique_lock<std::mutex> hold(S.lock);
    cudaError_t error = last_error;
    last_error = S.ready ? S.devices[current_device].broken : cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError(void) {
    return last_error;
}

const char *cudaGetErrorName(cudaError_t error) {
    const error_row *row = row_of(error);
    return row ? row->name : "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error) {
    const error_row *row = row_of(error);
    return row ? row->text : "unrecognized error code";
}

cudaError_t cudaGetDeviceCount(int *count) {
    *count = 0;
    ENTER
    *count = S.ndevices;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
    ENTER
    if (!is_device(device))
        return answer(cudaErrorInvalidDevice);
    current_device = device;
    return answer(S.devices[device].broken);
}

cudaError_t cudaGetDevice(int *device) {
    ENTER
    *device = current_device;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device) {
    ENTER
    if (!is_device(device))
        return answer(cudaErrorInvalidDevice);
    describe(properties, device);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device) {
    ENTER
    if (!is_device(device))
        return answer(cudaErrorInvalidDevice);
    cudaDeviceProp p;
    describe(&p, device);
    return answer(attribute_of(p, attribute, value));
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int length, int device) {
    ENTER
    if (!is_device(device) || length < 13)
        return answer(is_device(device) ? cudaErrorInvalidValue : cudaErrorInvalidDevice);
    snprintf(id, (size_t)length, "0000:%02x:00.0", device + 1);
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version) {
    std::unique_lock<std::mutex> hold(S.lock);
    begin();
    *version = S.ndevices ? S.driver : 0;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void) {
    ENTER_WHOLE
    for (const capture_ref &c : S.captures)
        if (c->origin->device == current_device) {
            c->invalid = true;
            return answer(cudaErrorStreamCaptureUnsupported);
        }
    S.counts.synchronisations++;
    return answer(wait_for_device(hold, current_device));
}

cudaError_t cudaDeviceReset(void) {
    ENTER
    drop_work(current_device);
    for (size_t k = S.streams.size(); k-- > 0;) {
        stream *s = S.streams[k];
        if (s->device != current_device || s == S.devices[current_device].legacy)
            continue;
        leave_capture(s);
        delete s;
        S.streams.erase(S.streams.begin() + (ptrdiff_t)k);
    }
    free_device_memory(current_device);
    S.devices[current_device].broken = cudaSuccess;
    S.devices[current_device].peers = 0;
    last_error = cudaSuccess;
    return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
    ENTER
    if (!is_device(device) || !is_device(peer))
        return answer(cudaErrorInvalidDevice);
    *can = device != peer;
    return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags) {
    ENTER_WHOLE
    if (!is_device(peer) || peer == current_device || flags)
        return answer(flags ? cudaErrorInvalidValue : cudaErrorInvalidDevice);
    unsigned &peers = S.devices[current_device].peers, bit = 1u << peer;
    if (peers & bit)
        return answer(cudaErrorPeerAccessAlreadyEnabled);
    peers |= bit;
    return cudaSuccess;
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
    ENTER_WHOLE
    unsigned &peers = S.devices[current_device].peers, bit = is_device(peer) ? 1u << peer : 0;
    if (!(peers & bit))
        return answer(cudaErrorPeerAccessNotEnabled);
    peers &= ~bit;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    ENTER
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
}

cudaError_t cudaProfilerStart(void) {
    ENTER
    return cudaSuccess;
}

cudaError_t cudaProfilerStop(void) {
    ENTER
    return cudaSuccess;
}

td_played_counts td_played_get_counts(void) {
    std::unique_lock<std::mutex> hold(S.lock);
    return S.counts;
}

void td_played_reset_counts(void) {
    std::unique_lock<std::mutex> hold(S.lock);
    S.counts = td_played_counts{};
    S.launches.clear();
    S.kernels.clear();
}

unsigned long long td_played_launches_of(const char *kernel) {
    std::unique_lock<std::mutex> hold(S.lock);
    auto found = S.launches.find(kernel);
    return found == S.launches.end() ? 0 : found->second;
}

const char *td_played_kernel(size_t k, unsigned long long *launches) {
    std::unique_lock<std::mutex> hold(S.lock);
    if (k >= S.kernels.size())
        return nullptr;
    *launches = S.launches[S.kernels[k]];
    return S.kernels[k].c_str();
}

void td_played_fail_malloc(unsigned long long n) {
    std::unique_lock<std::mutex> hold(S.lock);
    begin();
    S.fail_malloc = n;
}

void td_played_fail_next(cudaError_t error) {
    std::unique_lock<std::mutex> hold(S.lock);
    S.fail_next = error;
}

void td_played_set_seed(unsigned long long seed) {
    std::unique_lock<std::mutex> hold(S.lock);
    begin();
    S.seed = seed;
    S.turns.state = seed * 0x9E3779B97F4A7C15u;
}

size_t td_played_memory_out(void) {
    std::unique_lock<std::mutex> hold(S.lock);
    size_t out = 0;
    for (const device &d : S.devices)
        out += d.used;
    return out;
}

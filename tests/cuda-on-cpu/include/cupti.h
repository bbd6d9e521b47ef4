/* cupti.h: what is used of CUPTI's activity API, played: calls, kernels, copies and sets as they
 * are queued and run. Numbers and the order of fields are CUPTI's; times count from 2020.
 *
 *   TIDE_PLAYED_CUPTI   what cuptiSubscribe answers (0): 35 without permission, 39 where another
 *                       profiler is attached
 */
#ifndef TIDE_PLAYED_CUPTI_H
#define TIDE_PLAYED_CUPTI_H

#include "cuda_runtime_api.h"

#include <stddef.h>
#include <stdint.h>

#define CUPTIAPI

typedef enum {
    CUPTI_SUCCESS = 0,
    CUPTI_ERROR_INVALID_PARAMETER = 1,
    CUPTI_ERROR_MAX_LIMIT_REACHED = 12,
    CUPTI_ERROR_NOT_INITIALIZED = 15,
    CUPTI_ERROR_INSUFFICIENT_PRIVILEGES = 35,
    CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED = 39,
    CUPTI_ERROR_UNKNOWN = 999
} CUptiResult;

typedef enum {
    CUPTI_ACTIVITY_KIND_MEMCPY = 1,
    CUPTI_ACTIVITY_KIND_MEMSET = 2,
    CUPTI_ACTIVITY_KIND_KERNEL = 3,
    CUPTI_ACTIVITY_KIND_DRIVER = 4,
    CUPTI_ACTIVITY_KIND_RUNTIME = 5,
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL = 10,
    CUPTI_ACTIVITY_KIND_MEMCPY2 = 22
} CUpti_ActivityKind;

enum {
    CUPTI_ACTIVITY_MEMCPY_KIND_HTOD = 1,
    CUPTI_ACTIVITY_MEMCPY_KIND_DTOH = 2,
    CUPTI_ACTIVITY_MEMCPY_KIND_HTOA = 3,
    CUPTI_ACTIVITY_MEMCPY_KIND_ATOH = 4,
    CUPTI_ACTIVITY_MEMCPY_KIND_DTOD = 8,
    CUPTI_ACTIVITY_MEMCPY_KIND_HTOH = 9,
    CUPTI_ACTIVITY_MEMCPY_KIND_PTOP = 10
};

enum { CUPTI_ACTIVITY_FLAG_FLUSH_FORCED = 1 };

typedef enum {
    CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT = 0,
    CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM = 1
} CUpti_ActivityThreadIdType;

typedef struct {
    CUpti_ActivityKind kind;
} CUpti_Activity;

typedef struct {
    CUpti_ActivityKind kind;
    uint32_t cbid;
    uint64_t start, end;
    uint32_t processId, threadId, correlationId, returnValue;
} CUpti_ActivityAPI;

typedef struct {
    CUpti_ActivityKind kind;
    uint64_t start, end, completed;
    uint32_t deviceId, contextId, streamId;
    int32_t gridX, gridY, gridZ, blockX, blockY, blockZ;
    uint32_t correlationId;
    const char *name;
} CUpti_ActivityKernel4;

typedef struct {
    CUpti_ActivityKind kind;
    uint8_t copyKind;
    uint64_t bytes, start, end;
    uint32_t deviceId, contextId, streamId, correlationId;
} CUpti_ActivityMemcpy;

typedef struct {
    CUpti_ActivityKind kind;
    uint8_t copyKind;
    uint64_t bytes, start, end;
    uint32_t deviceId, contextId, streamId;
    uint32_t srcDeviceId, dstDeviceId, correlationId;
} CUpti_ActivityMemcpyPtoP;

typedef struct {
    CUpti_ActivityKind kind;
    uint32_t value;
    uint64_t bytes, start, end;
    uint32_t deviceId, contextId, streamId, correlationId;
} CUpti_ActivityMemset;

typedef struct CUctx_st *CUcontext;
typedef cudaStream_t CUstream;
typedef int CUpti_CallbackDomain;
typedef uint32_t CUpti_CallbackId;
typedef struct CUpti_Subscriber_st *CUpti_SubscriberHandle;
typedef void (*CUpti_CallbackFunc)(void *data, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                   const void *facts);
typedef void (*CUpti_BuffersCallbackRequestFunc)(uint8_t **buffer, size_t *size, size_t *most);
typedef void (*CUpti_BuffersCallbackCompleteFunc)(CUcontext context, uint32_t stream,
                                                  uint8_t *buffer, size_t size, size_t valid);

#ifdef __cplusplus
extern "C" {
#endif

CUptiResult cuptiGetResultString(CUptiResult result, const char **text);
CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc call, void *data);
CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle subscriber);
CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType type);
CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc requested,
                                           CUpti_BuffersCallbackCompleteFunc completed);
CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind);
CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind);
CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, CUpti_Activity **record);
CUptiResult cuptiActivityFlushAll(uint32_t flag);
CUptiResult cuptiGetTimestamp(uint64_t *timestamp);
CUptiResult cuptiGetStreamIdEx(CUcontext context, CUstream stream, uint8_t per_thread,
                               uint32_t *id);

#ifdef __cplusplus
}
#endif
#endif

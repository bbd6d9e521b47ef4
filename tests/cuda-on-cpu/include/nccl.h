/* nccl.h: NCCL as the played device has it: communicators that don't block, between processes of
 * one machine. */
#ifndef TIDE_PLAYED_NCCL_H
#define TIDE_PLAYED_NCCL_H

#include "cuda_runtime_api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ncclComm *ncclComm_t;
typedef struct {
    char internal[128];
} ncclUniqueId;
typedef enum {
    ncclSuccess = 0,
    ncclUnhandledCudaError = 1,
    ncclSystemError = 2,
    ncclInternalError = 3,
    ncclInvalidArgument = 4,
    ncclInvalidUsage = 5,
    ncclRemoteError = 6,
    ncclInProgress = 7
} ncclResult_t;
typedef enum { ncclSum = 0, ncclProd = 1, ncclMax = 2, ncclMin = 3, ncclAvg = 4 } ncclRedOp_t;
typedef enum {
    ncclInt8 = 0,
    ncclUint8 = 1,
    ncclInt32 = 2,
    ncclUint32 = 3,
    ncclInt64 = 4,
    ncclUint64 = 5,
    ncclFloat16 = 6,
    ncclFloat32 = 7,
    ncclFloat64 = 8,
    ncclBfloat16 = 9
} ncclDataType_t;
/* As of 2.14; later ones are longer. */
typedef struct {
    size_t size;
    unsigned int magic, version;
    int blocking;
} ncclConfig_t;

#define PLAYED_NCCL __attribute__((visibility("default")))
PLAYED_NCCL ncclResult_t ncclGetVersion(int *version);
PLAYED_NCCL ncclResult_t ncclGetUniqueId(ncclUniqueId *id);
PLAYED_NCCL ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int n, ncclUniqueId id, int rank,
                                                ncclConfig_t *config);
PLAYED_NCCL ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error);
PLAYED_NCCL ncclResult_t ncclCommAbort(ncclComm_t comm);
PLAYED_NCCL const char *ncclGetErrorString(ncclResult_t result);
PLAYED_NCCL const char *ncclGetLastError(ncclComm_t comm);
PLAYED_NCCL ncclResult_t ncclGroupStart(void);
PLAYED_NCCL ncclResult_t ncclGroupEnd(void);
PLAYED_NCCL ncclResult_t ncclAllReduce(const void *send, void *recv, size_t count,
                                       ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                                       cudaStream_t stream);
PLAYED_NCCL ncclResult_t ncclBroadcast(const void *send, void *recv, size_t count,
                                       ncclDataType_t type, int root, ncclComm_t comm,
                                       cudaStream_t stream);
PLAYED_NCCL ncclResult_t ncclReduce(const void *send, void *recv, size_t count, ncclDataType_t type,
                                    ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream);
PLAYED_NCCL ncclResult_t ncclAllGather(const void *send, void *recv, size_t count,
                                       ncclDataType_t type, ncclComm_t comm, cudaStream_t stream);
PLAYED_NCCL ncclResult_t ncclReduceScatter(const void *send, void *recv, size_t count,
                                           ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                                           cudaStream_t stream);
PLAYED_NCCL ncclResult_t ncclSend(const void *send, size_t count, ncclDataType_t type, int peer,
                                  ncclComm_t comm, cudaStream_t stream);
PLAYED_NCCL ncclResult_t ncclRecv(void *recv, size_t count, ncclDataType_t type, int peer,
                                  ncclComm_t comm, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif

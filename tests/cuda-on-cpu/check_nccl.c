/* check_nccl.c: what the engine declares of NCCL is what a header says: the played device's, and
 * NCCL's own where it is found. Only compiled. */
#include "engine/distributed/nccl_calls.h"

#include <nccl.h>
#include <stddef.h>

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)

SAME(TD_NCCL_I8, ncclInt8);
SAME(TD_NCCL_U8, ncclUint8);
SAME(TD_NCCL_I32, ncclInt32);
SAME(TD_NCCL_U32, ncclUint32);
SAME(TD_NCCL_I64, ncclInt64);
SAME(TD_NCCL_U64, ncclUint64);
SAME(TD_NCCL_F16, ncclFloat16);
SAME(TD_NCCL_F32, ncclFloat32);
SAME(TD_NCCL_F64, ncclFloat64);
SAME(TD_NCCL_BF16, ncclBfloat16);
SAME(TD_NCCL_SUM, ncclSum);
SAME(TD_NCCL_PRODUCT, ncclProd);
SAME(TD_NCCL_MAX, ncclMax);
SAME(TD_NCCL_MIN, ncclMin);
SAME(TD_NCCL_MEAN, ncclAvg);
SAME(TD_NCCL_SUCCESS, ncclSuccess);
SAME(TD_NCCL_IN_PROGRESS, ncclInProgress);
SAME(sizeof(td_nccl_id), sizeof(ncclUniqueId));
SAME(sizeof(int), sizeof(ncclDataType_t));
SAME(sizeof(int), sizeof(ncclRedOp_t));
SAME(sizeof(int), sizeof(ncclResult_t));
SAME(offsetof(td_nccl_config, magic), offsetof(ncclConfig_t, magic));
SAME(offsetof(td_nccl_config, version), offsetof(ncclConfig_t, version));
SAME(offsetof(td_nccl_config, blocking), offsetof(ncclConfig_t, blocking));

/* Parameters in their order: NCCL's types stand for ours, which are passed alike. */
typedef ncclResult_t (*init)(ncclComm_t *, int, ncclUniqueId, int, ncclConfig_t *);
typedef ncclResult_t (*error)(ncclComm_t, ncclResult_t *);
typedef ncclResult_t (*reduce_all)(const void *, void *, size_t, ncclDataType_t, ncclRedOp_t,
                                   ncclComm_t, cudaStream_t);
typedef ncclResult_t (*reduce_to)(const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, int,
                                  ncclComm_t, cudaStream_t);
typedef ncclResult_t (*give_all)(const void *, void *, size_t, ncclDataType_t, int, ncclComm_t,
                                 cudaStream_t);
typedef ncclResult_t (*gather_all)(const void *, void *, size_t, ncclDataType_t, ncclComm_t,
                                   cudaStream_t);
typedef ncclResult_t (*give)(const void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);
typedef ncclResult_t (*take)(void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);

#define TAKES(type, call) _Static_assert(_Generic(&call, type : 1, default : 0), #call)
TAKES(init, ncclCommInitRankConfig);
TAKES(error, ncclCommGetAsyncError);
TAKES(reduce_all, ncclAllReduce);
TAKES(reduce_all, ncclReduceScatter);
TAKES(reduce_to, ncclReduce);
TAKES(give_all, ncclBroadcast);
TAKES(gather_all, ncclAllGather);
TAKES(give, ncclSend);
TAKES(take, ncclRecv);

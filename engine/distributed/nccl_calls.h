/* nccl_calls.h: NCCL's calls, as far as Tide makes them, in a table that is filled when a job first
 * wants it: no header of NCCL's is needed when Tide is built, and any NCCL from 2.14 on does.
 *
 * What is declared here is its binary interface, which NVIDIA keeps: numbers of types and
 * operations, the id that is handed over by value, the beginning of the configuration, whose first
 * member says how much of it there is.
 */
#ifndef TD_DISTRIBUTED_NCCL_CALLS_H
#define TD_DISTRIBUTED_NCCL_CALLS_H

#include "engine/distributed/transport.h"

typedef struct ncclComm td_nccl_comm;

typedef struct td_nccl_id {
    char bytes[128];
} td_nccl_id;

/* The configuration as it was in 2.14, which later ones read as such. */
typedef struct td_nccl_config {
    size_t size;
    unsigned magic, version;
    int blocking; /* 0: calls return at once; how far they are is asked for by async_error */
} td_nccl_config;

enum { TD_NCCL_MAGIC = (int)0xcafebeef, TD_NCCL_CONFIG_VERSION = 21400 };

/* Results: the two that are no errors. */
enum { TD_NCCL_SUCCESS = 0, TD_NCCL_IN_PROGRESS = 7 };

typedef enum td_nccl_type {
    TD_NCCL_I8,
    TD_NCCL_U8,
    TD_NCCL_I32,
    TD_NCCL_U32,
    TD_NCCL_I64,
    TD_NCCL_U64,
    TD_NCCL_F16,
    TD_NCCL_F32,
    TD_NCCL_F64,
    TD_NCCL_BF16
} td_nccl_type;

typedef enum td_nccl_op {
    TD_NCCL_SUM,
    TD_NCCL_PRODUCT,
    TD_NCCL_MAX,
    TD_NCCL_MIN,
    TD_NCCL_MEAN
} td_nccl_op;

/* Member, NCCL's name behind "nccl", result, parameters. Streams are cudaStream_t. */
#define TD_NCCL_TABLE(X)                                                                           \
    X(version, GetVersion, int, (int *version))                                                    \
    X(unique_id, GetUniqueId, int, (td_nccl_id * id))                                              \
    X(init, CommInitRankConfig, int,                                                               \
      (td_nccl_comm * *comm, int n, td_nccl_id id, int rank, td_nccl_config *config))              \
    X(async_error, CommGetAsyncError, int, (td_nccl_comm * comm, int *error))                      \
    X(abort, CommAbort, int, (td_nccl_comm * comm))                                                \
    X(error_text, GetErrorString, const char *, (int result))                                      \
    X(last_error, GetLastError, const char *, (td_nccl_comm * comm))                               \
    X(group_start, GroupStart, int, (void))                                                        \
    X(group_end, GroupEnd, int, (void))                                                            \
    X(all_reduce, AllReduce, int,                                                                  \
      (const void *send, void *recv, size_t count, int type, int op, td_nccl_comm *comm,           \
       void *stream))                                                                              \
    X(broadcast, Broadcast, int,                                                                   \
      (const void *send, void *recv, size_t count, int type, int root, td_nccl_comm *comm,         \
       void *stream))                                                                              \
    X(reduce, Reduce, int,                                                                         \
      (const void *send, void *recv, size_t count, int type, int op, int root, td_nccl_comm *comm, \
       void *stream))                                                                              \
    X(all_gather, AllGather, int,                                                                  \
      (const void *send, void *recv, size_t count, int type, td_nccl_comm *comm, void *stream))    \
    X(reduce_scatter, ReduceScatter, int,                                                          \
      (const void *send, void *recv, size_t count, int type, int op, td_nccl_comm *comm,           \
       void *stream))                                                                              \
    X(send, Send, int,                                                                             \
      (const void *send, size_t count, int type, int peer, td_nccl_comm *comm, void *stream))      \
    X(recv, Recv, int,                                                                             \
      (void *recv, size_t count, int type, int peer, td_nccl_comm *comm, void *stream))

typedef struct td_nccl_calls {
#define TD_NCCL_MEMBER(member, name, result, parameters) result(*member) parameters;
    TD_NCCL_TABLE(TD_NCCL_MEMBER)
#undef TD_NCCL_MEMBER
} td_nccl_calls;

/* The calls of the library that TIDE_NCCL names, else of libnccl.so.2; static, loaded once. NULL,
 * and why in one line. For one thread at a time. */
const td_nccl_calls *td_nccl_load(char why[TD_WHY]);

#endif

/* cupti.h: CUPTI as a table of calls, in a module of its own beside libtide_cuda.so, so that
 * machines without the library run all else. Activities come as records of ours.
 */
#ifndef TD_CUDA_LOADED_LIBRARIES_CUPTI_H
#define TD_CUDA_LOADED_LIBRARIES_CUPTI_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#define TD_LATE_CUPTI "td_late_cupti_calls"

typedef enum td_cupti_kind {
    TD_CUPTI_CALL, /* of the runtime or the driver, on the host */
    TD_CUPTI_KERNEL,
    TD_CUPTI_COPY,
    TD_CUPTI_SET
} td_cupti_kind;

/* Times are the library's, ns. What a call starts bears its number. */
typedef struct td_cupti_record {
    td_cupti_kind kind;
    uint32_t number;
    uint32_t thread;         /* of calls, as the system calls it */
    uint32_t device, stream; /* by the library's count of streams */
    uint64_t start, end, bytes;
    const char *name; /* as the compiler wrote it, or a copy's in words; valid for the call */
} td_cupti_record;

/* On any thread, the library's own too, several at a time. */
typedef void (*td_cupti_fn)(const td_cupti_record *record);

/* Who records: where records go, and memory for the library's buffers, aligned to 8 bytes. */
typedef struct td_cupti_host {
    td_cupti_fn take;
    void *(*allocate)(size_t bytes);
    void (*release)(void *memory);
} td_cupti_host;

typedef struct td_late_cupti {
    /* NULL, or why nothing is recorded: static. */
    const char *(*begin)(const td_cupti_host *host);
    uint64_t (*now)(void);
    /* What has been done by now was taken when this returns. */
    void (*flush)(void);
    void (*end)(void);
    /* The library's number of a stream. */
    uint32_t (*stream_number)(cudaStream_t stream);
} td_late_cupti;

#endif

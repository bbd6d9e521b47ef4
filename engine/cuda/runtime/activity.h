/* activity.h: how the CUDA module reports what its devices did (core/activity.h): by CUPTI's
 * records where the library is there, else by CUDA's events around each function's work (timed.c).
 */
#ifndef TD_CUDA_RUNTIME_ACTIVITY_H
#define TD_CUDA_RUNTIME_ACTIVITY_H

#include "engine/core/activity.h"
#include "engine/core/backend.h"
#include "engine/cuda/cuda.h"

/* Let others hear of it; what this room does is recorded when somebody asks for that. */
void td_cuda_register_activities(void);

/* ---- nvtx.c ---- */

/* NULL: NVTX's headers were not there when this was built. */
extern const td_annotations *const td_cuda_annotations;

/* ---- activity.c, for timed.c ---- */

/* Keep an activity; with a name that is copied. */
void td_cuda_keep_activity(const td_activity *activity);
/* The calling thread as the system calls it, and the monotonic clock. */
uint32_t td_cuda_thread(void);
uint64_t td_cuda_clock(void);

/* ---- timed.c: times by events ---- */

/* Let each function of the table, from here on, ask whether its work is to be timed. */
void td_cuda_time_functions(td_backend *backend);
void td_cuda_timing_begin(void);
/* Keep what has been done by now; `all`: what has not is waited for. */
void td_cuda_timing_drain(bool all);
void td_cuda_timing_end(void);
/* How much work was not timed since the last time, since too much was under way. */
int64_t td_cuda_timing_lost(void);

/* Work on a stream that is being timed, on the stack of who asks for it. */
typedef struct td_cuda_timed {
    struct td_cuda_pair *pair; /* NULL: it is not timed */
} td_cuda_timed;

bool td_cuda_is_timing(void); /* somebody wants times */
void td_cuda_timed_open(td_cuda_timed *timed, td_stream stream);
void td_cuda_timed_close(td_cuda_timed *timed, td_activity_kind kind, const char *name,
                         int64_t bytes);
/* What this thread times now is not a device's work after all, since the CPU does it. */
void td_cuda_timed_forget(void);

#endif

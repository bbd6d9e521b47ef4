/* allocator.h: blocks for storages. What a user sees of it is in device.h. */
#ifndef TD_CORE_ALLOCATOR_H
#define TD_CORE_ALLOCATOR_H

#include "engine/core/device.h"

#include <stdatomic.h>

/* A block of at least `bytes` on the stream's device, aligned to 64 and counted; *granted is what
 * td_device_release must be given. NULL when memory is out, after the device's cache was emptied.
 * Sets no message. */
void *td_device_allocate(td_stream stream, size_t bytes, size_t *granted);
void td_device_release(td_stream stream, void *block, size_t granted);

/* The host's caching allocator, for backends whose memory is the host's. */
void *td_host_allocate(size_t bytes, size_t *granted);
void td_host_release(void *block, size_t granted);
void td_host_empty_cache(void);

/* What the host's cache holds, and requests that it could not serve. */
typedef struct td_host_counts {
    atomic_llong cached, system_allocations;
} td_host_counts;
extern td_host_counts td_host_counters;

#endif

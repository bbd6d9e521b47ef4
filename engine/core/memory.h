/* memory.h: host memory for the engine's own structures and for CPU storages.
 *
 * The only place that calls malloc. Small fixed-size objects come from per-thread free lists, large
 * blocks from a cache that keeps pages warm.
 */
#ifndef TD_CORE_MEMORY_H
#define TD_CORE_MEMORY_H

#include "engine/core/status.h"

/* malloc/realloc/free of the engine. NULL when memory is out (no message is set). */
void *td_malloc(size_t bytes);
void *td_calloc(size_t count, size_t size);
void *td_realloc(void *block, size_t bytes);
void td_free(void *block);
char *td_strdup(const char *text);

/* Objects of up to TD_OBJECT_MAX bytes from this thread's free lists; td_object_free must be
 * given the same size. */
#define TD_OBJECT_MAX 512
void *td_object_alloc(size_t bytes);
void td_object_free(void *object, size_t bytes);

/* Would the system give so many bytes more? For libraries that end the process, or wait for ever,
 * when it doesn't. */
bool td_memory_has_room(size_t bytes);

/* Fault injection for tests: the n-th allocation from now on this thread fails (n = 1 is the next),
 * once; 0 turns it off. Counts every function above and tensor memory. */
void td_memory_fail_after(int64_t n);
/* For allocators: does the switch say that this request fails? Counts it. */
bool td_memory_should_fail(void);

#endif

/* allocator.h: blocks for storages, counted per device. What a user sees of it is in device.h. */
#ifndef TD_CORE_ALLOCATOR_H
#define TD_CORE_ALLOCATOR_H

#include "engine/core/device.h"

/* A block of at least `bytes`, aligned to 64; *granted is what td_device_release must be given.
 * NULL when memory is out, after the device's cache was emptied. Sets no message. */
void *td_device_allocate(td_device device, size_t bytes, size_t *granted);
void td_device_release(td_device device, void *block, size_t granted);

#endif

/* waits.h: who is told when work waits for a device although nobody asked it to. */
#ifndef TD_CORE_WAITS_H
#define TD_CORE_WAITS_H

#include "engine/core/device.h"

/* Hears of each such wait before it begins, on the thread that would wait. What it answers, unless
 * it is OK, becomes the answer of the call, which then does not wait. It must not call operators.
 */
typedef struct td_wait_watcher {
    td_status (*hear)(void *ctx, td_device device);
    void *ctx;
} td_wait_watcher;

/* Let this one hear of the calling thread's waits from now on; {NULL, NULL}: nobody. Returns the
 * former one. */
td_wait_watcher td_set_wait_watcher(td_wait_watcher watcher);

/* For devices: this call is about to wait for the device's work. What is told to wait
 * (td_device_synchronize) says nothing. */
td_status td_tell_wait(td_device device) TD_MUST_CHECK;

#endif

/* activity.c: the sources of activities that devices' modules have registered, by kind of device.
 */
#include "engine/core/activity.h"

#include <stdatomic.h>

static const td_activity_source *_Atomic sources[TD_DEVICE_TYPES];
static void (*_Atomic listener)(td_device_type type);

const td_activity_source *td_activity_source_of(td_device_type type) {
    return atomic_load(&sources[type]);
}

void td_activity_register(td_device_type type, const td_activity_source *source) {
    atomic_store(&sources[type], source);
    void (*appeared)(td_device_type) = atomic_load(&listener);
    if (appeared)
        appeared(type);
}

void td_activity_listen(void (*appeared)(td_device_type type)) {
    atomic_store(&listener, appeared);
}

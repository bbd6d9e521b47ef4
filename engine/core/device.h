/* device.h: devices and streams, by number and by name, and memory statistics. */
#ifndef TD_CORE_DEVICE_H
#define TD_CORE_DEVICE_H

#include "engine/core/status.h"

/* The CPU, CUDA, meta, whose tensors have no elements, and room for kinds that register themselves
 * (core/backend.h). */
typedef enum td_device_type { TD_CPU, TD_CUDA, TD_META, TD_DEVICE_TYPES = 6 } td_device_type;

typedef struct td_device {
    uint8_t type;  /* td_device_type */
    uint8_t index; /* 0 on the CPU; on meta 0, or that of a stand-in */
} td_device;

#define TD_DEVICE_CPU ((td_device){TD_CPU, 0})

static inline bool td_device_same(td_device a, td_device b) {
    return a.type == b.type && a.index == b.index;
}

/* A device of meta beside the first stands for another: what a call on that one would make lies
 * there (meta/meta.h). These are the one for a device, and the device that another stands for;
 * those that stand for none are themselves. */
enum { TD_MAX_DEVICES = 16 }; /* of a kind */
static inline td_device td_device_stand_in(td_device d) {
    if (d.type == TD_META)
        return d;
    return (td_device){TD_META, (uint8_t)(1 + d.type * TD_MAX_DEVICES + d.index)};
}
static inline td_device td_device_real(td_device d) {
    if (d.type != TD_META || d.index == 0)
        return d;
    int place = d.index - 1;
    return (td_device){(uint8_t)(place / TD_MAX_DEVICES), (uint8_t)(place % TD_MAX_DEVICES)};
}

/* Why there is no device of a kind, one line, static; NULL where there is one. Loads the kind's
 * module where it has one (core/backend_module.h). */
const char *td_device_absence(td_device_type type);

/* "cpu", "cuda" (the current one), "cuda:1", "meta"; EVALUE for another text, EDEVICE where no such
 * device is there. */
td_status td_device_parse(const char *text, td_device *device) TD_MUST_CHECK;

/* Printed form, static storage ("cpu", "cuda:0", "meta", ...); of a stand-in what it stands for. */
const char *td_device_name(td_device device);

/* A queue of work on a device; work of one stream is done in order. 0 is there from the start. */
typedef struct td_stream {
    td_device device;
    uint16_t id;
} td_stream;

/* The stream that this thread's work on a kind of device goes to; 0 in a new thread. */
extern _Thread_local uint16_t td_stream_ids[TD_DEVICE_TYPES];
static inline td_stream td_stream_current(td_device device) {
    return (td_stream){device, td_stream_ids[device.type]};
}
/* Returns the former one. */
static inline uint16_t td_stream_set_current(td_stream stream) {
    uint16_t before = td_stream_ids[stream.device.type];
    td_stream_ids[stream.device.type] = stream.id;
    return before;
}

/* Which device of a kind this thread's work goes to when only the kind is named; 0 in a new thread.
 */
extern _Thread_local uint8_t td_device_currents[TD_DEVICE_TYPES];

/* Wait for the current stream of a device; the first error that its work met. */
td_status td_device_synchronize(td_device device) TD_MUST_CHECK;

/* Memory now used by live storages on a device (the Lua bindings' view of pressure), the highest
 * it was, and what the cache holds besides. */
typedef struct td_memory_stats {
    int64_t allocated, peak, cached;
    int64_t kept;               /* of `allocated`: other forms of tensors (td_companion) */
    int64_t allocations;        /* count of requests since the start */
    int64_t system_allocations; /* of these, the ones the cache could not serve */
} td_memory_stats;

td_memory_stats td_memory_get_stats(td_device device);
void td_memory_count_kept(td_device device, int64_t bytes); /* more, or fewer */
int64_t td_memory_allocated(td_device device);              /* the first of these alone: one load */
void td_memory_reset_peak(td_device device);
void td_memory_empty_cache(td_device device);

/* Ends what devices do in threads of their own, such as compiling kernels: for a program that ends,
 * before C's exit destroys what these use. Calls may still be made, which do without. */
void td_devices_stop(void);

#endif

/* device.h: where memory lives and which table of kernels runs. */
#ifndef TD_CORE_DEVICE_H
#define TD_CORE_DEVICE_H

#include "engine/core/status.h"

typedef enum td_device_type { TD_CPU, TD_CUDA, TD_DEVICE_TYPES } td_device_type;

typedef struct td_device {
    uint8_t type;  /* td_device_type */
    uint8_t index; /* 0 on the CPU */
} td_device;

#define TD_DEVICE_CPU ((td_device){TD_CPU, 0})

static inline bool td_device_same(td_device a, td_device b) {
    return a.type == b.type && a.index == b.index;
}

/* "cpu", "cuda", "cuda:1"; EVALUE for another text, EDEVICE where no such device is there. */
td_status td_device_parse(const char *text, td_device *device) TD_MUST_CHECK;

/* Printed form, static storage ("cpu", "cuda:0", ...). */
const char *td_device_name(td_device device);

/* What a device's memory is made of. The CPU's is built in; a device module registers its own
 * with td_device_register when it is loaded. All sizes in bytes. */
typedef struct td_device_ops {
    const char *name;
    int (*count)(void);
    void *(*allocate)(int index, size_t bytes, size_t *granted); /* NULL: out of memory */
    void (*release)(int index, void *block, size_t granted);
    void (*empty_cache)(int index);
    /* Copies; `from` or `to` may be the host. Ordered after what runs on the device. */
    td_status (*copy)(td_device to, void *dst, td_device from, const void *src, size_t bytes);
    void (*synchronize)(int index);
} td_device_ops;

td_status td_device_register(td_device_type type, const td_device_ops *ops);
const td_device_ops *td_device_get_ops(td_device_type type); /* NULL when none is registered */

/* Memory now used by live storages on a device (the Lua bindings' view of pressure), the highest
 * it was, and what the cache holds besides. */
typedef struct td_memory_stats {
    int64_t allocated, peak, cached;
    int64_t allocations;        /* count of requests since the start */
    int64_t system_allocations; /* of these, the ones the cache could not serve */
} td_memory_stats;

td_memory_stats td_memory_get_stats(td_device device);
int64_t td_memory_allocated(td_device device); /* the first of these alone: one load */
void td_memory_reset_peak(td_device device);
void td_memory_empty_cache(td_device device);

#endif

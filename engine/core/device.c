/* device.c: the kinds of devices that there are, their names, and the memory that lives on each. */
#include "engine/core/allocator.h"
#include "engine/core/backend_module.h"
#include "engine/core/memory.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const td_backend *td_backends[TD_DEVICE_TYPES];
/* Written once, when a kind is registered. */
static char names[TD_DEVICE_TYPES][TD_MAX_DEVICES][32];
/* Kinds of which there is one device, so that none has a number in its name. */
static const char *const single[TD_DEVICE_TYPES] = {[TD_CPU] = "cpu", [TD_META] = "meta"};

/* Kinds whose backend is a library that is loaded when somebody asks. */
static struct {
    const td_backend_module *module; /* NULL: kinds that are there from the start, or never */
    pthread_mutex_t lock;
    bool loaded;
    char absence[400];
} modules[TD_DEVICE_TYPES];

/* ---- kinds ---- */

static void name_devices(int type, const char *name) {
    for (int k = 0; k < TD_MAX_DEVICES; k++)
        snprintf(names[type][k], sizeof names[type][k], "%s:%d", name, k);
}

/* The type that is a name's own; -1: none. */
static int type_of_name(const char *name) {
    for (int t = 0; t < TD_DEVICE_TYPES; t++)
        if ((single[t] && !strcmp(name, single[t])) ||
            (modules[t].module && !strcmp(name, modules[t].module->name)))
            return t;
    return -1;
}

td_status td_backend_register(const td_backend *backend) {
    int type = type_of_name(backend->name);
    for (int t = 0; t < TD_DEVICE_TYPES; t++)
        if (td_backends[t] && !strcmp(td_backends[t]->name, backend->name))
            return td_fail(TD_EVALUE, "a device '%s' is registered already", backend->name);
    for (int t = 0; t < TD_DEVICE_TYPES && type < 0; t++)
        if (!td_backends[t] && !single[t] && !modules[t].module)
            type = t;
    if (type < 0)
        return td_fail(TD_EVALUE, "no room for another kind of device beside %d", TD_DEVICE_TYPES);
    td_status status = backend->start ? backend->start() : TD_OK;
    if (status)
        return status;
    name_devices(type, backend->name);
    td_backends[type] = backend;
    return TD_OK;
}

td_status td_backend_lacks(td_device device, const char *function) {
    return td_fail(TD_EDEVICE, "%s can't do this: its backend has no '%s'", td_device_name(device),
                   function);
}

/* ---- modules that are loaded when somebody asks ---- */

void td_backend_module_announce(const td_backend_module *module) {
    if (modules[module->type].module)
        return;
    pthread_mutex_init(&modules[module->type].lock, NULL);
    modules[module->type].module = module;
    name_devices(module->type, module->name);
}

static void load_module(int type) {
    const td_backend_module *module = modules[type].module;
    td_library library = module->library;
    const char *file = getenv(module->variable), *why = NULL;
    const void *entry;
    if (file)
        library.file = file;
    td_status status = td_library_load(&library, &entry);
    if (status == TD_OK) {
        const td_backend *backend = ((td_backend_entry)(uintptr_t)entry)(&why);
        status = backend ? td_backend_register(backend) : TD_OK;
    }
    snprintf(modules[type].absence, sizeof modules[type].absence, "%s",
             status != TD_OK ? td_error_message()
             : why           ? why
                             : "");
}

const char *td_device_absence(td_device_type type) {
    if (!modules[type].module)
        return td_backends[type] ? NULL : "no such kind of device";
    pthread_mutex_lock(&modules[type].lock);
    if (!modules[type].loaded)
        load_module((int)type);
    modules[type].loaded = true;
    pthread_mutex_unlock(&modules[type].lock);
    return td_backends[type] ? NULL : modules[type].absence;
}

static td_status no_such_device(const char *text, int type) {
    const td_backend *backend = td_backends[type];
    if (!backend)
        return td_fail(TD_EDEVICE, "device '%s' is not there: this machine has no %s device (%s)",
                       text, modules[type].module->library.name, modules[type].absence);
    return td_fail(TD_EDEVICE, "device '%s' is not there: this machine has %d of its kind", text,
                   backend->count());
}

td_status td_device_parse(const char *text, td_device *device) {
    for (int t = 0; t < TD_DEVICE_TYPES; t++) {
        const td_backend *backend = td_backends[t];
        const char *name = backend             ? backend->name
                           : modules[t].module ? modules[t].module->name
                                               : "";
        size_t len = strlen(name);
        if (len == 0 || strncmp(text, name, len) || (text[len] && text[len] != ':'))
            continue;
        char *end = "";
        long index = text[len] ? strtol(text + len + 1, &end, 10) : td_device_currents[t];
        if (*end || (text[len] && end == text + len + 1) || index < 0)
            break;
        if (td_device_absence((td_device_type)t) || index >= td_backends[t]->count() ||
            index >= TD_MAX_DEVICES)
            return no_such_device(text, t);
        *device = (td_device){(uint8_t)t, (uint8_t)index};
        return TD_OK;
    }
    return td_fail(TD_EVALUE,
                   "'%s' is no device: expected \"cpu\", \"cuda\", \"cuda:N\" or \"meta\"", text);
}

const char *td_device_name(td_device device) {
    device = td_device_real(device);
    return single[device.type] ? single[device.type]
                               : names[device.type][device.index % TD_MAX_DEVICES];
}

/* ---- streams ---- */

_Thread_local uint16_t td_stream_ids[TD_DEVICE_TYPES];
_Thread_local uint8_t td_device_currents[TD_DEVICE_TYPES];

td_status td_device_synchronize(td_device device) {
    return td_backend_of(device)->synchronize(td_stream_current(device));
}

/* ---- memory ---- */

typedef struct device_counters {
    atomic_llong allocated, peak, kept, allocations;
} device_counters;

static device_counters counters[TD_DEVICE_TYPES][TD_MAX_DEVICES];

static device_counters *counters_of(td_device device) {
    return &counters[device.type][device.index % TD_MAX_DEVICES];
}

void *td_device_allocate(td_stream stream, size_t bytes, size_t *granted) {
    const td_backend *backend = td_backend_of(stream.device);
    if (!backend || td_memory_should_fail())
        return NULL;
    void *p = backend->allocate(stream, bytes, granted);
    if (!p)
        return NULL;
    device_counters *c = counters_of(stream.device);
    long long now =
        atomic_fetch_add_explicit(&c->allocated, (long long)*granted, memory_order_relaxed) +
        (long long)*granted;
    atomic_fetch_add_explicit(&c->allocations, 1, memory_order_relaxed);
    long long peak = atomic_load_explicit(&c->peak, memory_order_relaxed);
    while (now > peak && !atomic_compare_exchange_weak_explicit(
                             &c->peak, &peak, now, memory_order_relaxed, memory_order_relaxed))
        ;
    return p;
}

void td_device_release(td_stream stream, void *p, size_t granted) {
    atomic_fetch_sub_explicit(&counters_of(stream.device)->allocated, (long long)granted,
                              memory_order_relaxed);
    td_backend_of(stream.device)->release(stream, p, granted);
}

void td_memory_count_kept(td_device device, int64_t bytes) {
    atomic_fetch_add_explicit(&counters_of(device)->kept, bytes, memory_order_relaxed);
}

td_memory_stats td_memory_get_stats(td_device device) {
    device_counters *c = counters_of(device);
    const td_backend *backend = td_backend_of(device);
    int64_t cached = 0, requests = 0;
    if (backend && backend->cache_counts)
        backend->cache_counts(device.index, &cached, &requests);
    return (td_memory_stats){
        .allocated = atomic_load_explicit(&c->allocated, memory_order_relaxed),
        .peak = atomic_load_explicit(&c->peak, memory_order_relaxed),
        .cached = cached,
        .kept = atomic_load_explicit(&c->kept, memory_order_relaxed),
        .allocations = atomic_load_explicit(&c->allocations, memory_order_relaxed),
        .system_allocations = requests,
    };
}

int64_t td_memory_allocated(td_device device) {
    return atomic_load_explicit(&counters_of(device)->allocated, memory_order_relaxed);
}

void td_memory_reset_peak(td_device device) {
    device_counters *c = counters_of(device);
    atomic_store(&c->peak, atomic_load(&c->allocated));
}

void td_memory_empty_cache(td_device device) {
    const td_backend *backend = td_backend_of(device);
    if (backend)
        backend->empty_cache(device.index);
}

void td_devices_stop(void) {
    for (int type = 0; type < TD_DEVICE_TYPES; type++)
        if (td_backends[type] && td_backends[type]->stop)
            td_backends[type]->stop();
}

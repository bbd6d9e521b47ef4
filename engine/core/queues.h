/* queues.h: what a device that works asynchronously offers beyond its backend: streams, events,
 * pinned memory of the host, recorded work, and its properties. */
#ifndef TD_CORE_QUEUES_H
#define TD_CORE_QUEUES_H

#include "engine/core/device.h"

typedef struct td_device_properties {
    char name[128];
    int major, minor;    /* compute capability */
    int processors;      /* that share the work */
    int64_t total_bytes; /* of its memory */
    int64_t cache_bytes; /* second level */
    int warp_size, threads_per_processor;
} td_device_properties;

struct td_tensor;
/* A point in a stream's work; the device's own. */
typedef struct td_event td_event;
/* Work that was recorded instead of done, to be given to the device again as a whole. */
typedef struct td_work_graph td_work_graph;

typedef struct td_queues {
    /* Does the device do a work function (core/backend.h) by itself? Else the CPU does it. */
    bool (*has_kernel)(const char *function);
    td_status (*properties)(int index, td_device_properties *out);
    td_status (*memory)(int index, int64_t *free_bytes, int64_t *total_bytes);

    /* A stream besides 0, with more urgent work than others where `urgent` and none was given back
     * before, which is taken first. */
    td_status (*stream_new)(int index, bool urgent, uint16_t *id);
    void (*stream_free)(td_stream stream);
    td_status (*stream_query)(td_stream stream, bool *idle);
    /* For libraries that are given a stream: the device's own handle of it (CUDA: a cudaStream_t);
     * its device becomes the calling thread's current one. NULL: the device has none. */
    td_status (*stream_handle)(td_stream stream, void **out);
    /* A library is about to use a tensor in the stream's order, whatever stream it belongs to: they
     * wait for one another. EVALUE while the stream's work is recorded. */
    td_status (*stream_use)(td_stream stream, const struct td_tensor *x);

    /* Events are made on a device; `timed` ones can tell how long something took. */
    td_status (*event_new)(int index, bool timed, td_event **out);
    void (*event_free)(td_event *event);
    td_status (*event_record)(td_event *event, td_stream stream); /* behind the work so far */
    td_status (*event_wait)(td_event *event, td_stream stream);   /* work to come begins after it */
    td_status (*event_query)(td_event *event, bool *reached);
    td_status (*event_synchronize)(td_event *event);
    td_status (*event_elapsed)(td_event *from, td_event *to, double *milliseconds);

    /* Memory of the host that copies go to and from without waiting. NULL: there is no more. */
    void *(*pin)(size_t bytes);
    void (*unpin)(void *memory);
    bool (*is_pinned)(const void *memory);
    /* Copy from memory that `pin` gave to a new block of the stream's, and return at once: the copy
     * follows what the stream was given so far, beside what it is given from now on; who uses the
     * block waits for it. `unpin` may come before it was read, writing may not: is_read says.
     * *done: false where it can't be so (other memory; work is recorded), and nothing was done. */
    td_status (*upload_later)(td_stream stream, void *dst, const void *memory, size_t bytes,
                              bool *done);
    bool (*is_read)(const void *memory);

    /* Between the two what a stream is given is recorded. Its memory stays the graph's. */
    td_status (*graph_begin)(td_stream stream);
    td_status (*graph_end)(td_stream stream, td_work_graph **out);
    td_status (*graph_launch)(td_work_graph *graph, td_stream stream);
    void (*graph_free)(td_work_graph *graph);
} td_queues;

#endif

/* job.c: entering and leaving the job, groups, and the checks before a transfer goes to the driver.
 */
#include "engine/distributed/job.h"

#include "engine/core/activity.h"
#include "engine/core/backend.h"
#include "engine/core/memory.h"
#include "engine/core/modes.h"
#include "engine/distributed/driver.h"
#include "engine/distributed/engines.h"
#include "engine/distributed/flight.h"
#include "engine/distributed/hub.h"
#include "engine/distributed/launcher.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { TD_GROUP_DEVICES = 16 }; /* as many as there are of a kind */

struct td_group {
    atomic_int refs;
    int rank, size, *members;                    /* members NULL: rank r is the job's rank r */
    uint32_t number, sequence;                   /* 0: all ranks; of the last collective */
    void *handles[2];                            /* the transport's, and that of devices */
    uint8_t ndevices, devices[TD_GROUP_DEVICES]; /* of which the group has had tensors, in order */
};

static td_group all = {.size = 1};
static const td_transport *transport; /* NULL: in no job */
static const td_transport *devices;   /* of tensors on devices; NULL: they can't be sent */
static td_hub *hub;                   /* of rank 0, where nobody else keeps it */
static int local_rank, groups;
enum { TD_ADDRESS_TEXT = 160 };
static char engine[160];

/* ---- the job ---- */

/* What the script's streams wait for belongs into a recording. */
static void wait_for_awaited(void) {
    td_status status = td_driver_settle(true);
    (void)status;
}

static void leave(void) {
    td_activity_log_wait_by(NULL);
    td_watch_close();
    td_hub_close(hub);
    hub = NULL;
    td_driver_close();
    transport = devices = NULL;
    all = (td_group){.size = 1};
}

/* Does the engine know of the processes that the launcher started? */
static td_status check_size(const td_launcher *launcher, int size) {
    if (!launcher->name || size == launcher->size)
        return TD_OK;
    return td_fail(
        TD_EIO,
        "%s started %d processes, but %s knows of %d: start the script with tide-run, or "
        "mpirun of this MPI",
        launcher->name, launcher->size, transport->version(), size);
}

/* The hub's address, from rank 0 to all: that which tide-run has made, or one of rank 0's own. */
static td_status share_address(bool local, char address[TD_ADDRESS_TEXT]) {
    td_status status = TD_OK;
    td_tensor *bytes = NULL;
    td_work *work = NULL;
    const char *given = getenv("TIDE_CONTROL");
    TD_TRY(td_tensor_empty(TD_U8, TD_DEVICE_CPU, 1, (int64_t[]){TD_ADDRESS_TEXT}, &bytes));
    memset(bytes->data, 0, TD_ADDRESS_TEXT);
    if (all.rank == 0 && given && *given)
        snprintf(bytes->data, TD_ADDRESS_TEXT, "%s", given);
    else if (all.rank == 0)
        TD_TRY(td_hub_open(local, bytes->data, &hub));
    td_post post = {.kind = TD_BROADCAST, .recv = bytes};
    TD_TRY(td_post_start(&all, &post, &work));
    TD_TRY(td_work_wait(work));
    memcpy(address, bytes->data, TD_ADDRESS_TEXT);
    address[TD_ADDRESS_TEXT - 1] = '\0';
done:
    td_work_release(work);
    td_release(bytes);
    return status;
}

/* Whoever watches this process from outside hears where the hub is through a pipe. */
static void tell_supervisor(const char *address) {
    const char *text = getenv("TIDE_CONTROL_PIPE");
    char *end = NULL;
    long fd = text && *text ? strtol(text, &end, 10) : -1;
    if (fd > 2 && fd < 1024 && end && *end == '\0' && write((int)fd, address, TD_ADDRESS_TEXT) < 0)
        return; /* then it tells nobody */
}

static td_status begin_watch(const td_launcher *launcher, const td_job_options *options) {
    td_status status = TD_OK;
    char address[TD_ADDRESS_TEXT];
    TD_TRY(share_address(launcher->one_machine, address));
    tell_supervisor(address);
    TD_TRY(td_watch_open(address, all.rank, all.size, options->timeout, options->ended));
    all.sequence = 0;
done:
    return status;
}

td_status td_job_open(const char *name, const td_job_options *options) {
    td_status status = TD_OK;
    td_launcher launcher = td_launcher_find();
    if (transport)
        return td_fail(TD_EVALUE, "this process is in a job already (rank %d of %d)", all.rank,
                       all.size);
    TD_TRY(td_engine_find(name, &launcher, &transport, &devices));
    TD_TRY(td_driver_open(transport, devices, &all.rank, &all.size));
    int n = devices ? snprintf(engine, sizeof engine, "%s: %s, ", devices->name, devices->version())
                    : 0;
    snprintf(engine + n, sizeof engine - (size_t)n, "%s: %s", transport->name,
             transport->version());
    td_activity_log_wait_by(devices ? wait_for_awaited : NULL);
    local_rank = launcher.local_rank < 0 ? 0 : launcher.local_rank;
    td_flight_clear();
    if (transport != &td_transport_single)
        TD_TRY(check_size(&launcher, all.size));
    if (all.size > 1 && !transport->sees_all)
        TD_TRY(begin_watch(&launcher, options));
    return TD_OK;
done:
    leave();
    return status;
}

td_status td_job_close(void) {
    td_status status = TD_OK;
    td_work *work = NULL;
    td_post post = {.kind = TD_SHUTDOWN};
    if (!transport)
        return TD_OK;
    TD_TRY(td_driver_settle(false));
    TD_TRY(td_post_start(&all, &post, &work));
    TD_TRY(td_work_wait(work));
    leave();
done:
    td_work_release(work);
    return status;
}

void td_job_fail(const char *why) {
    if (transport && transport->fail)
        transport->fail(why);
    else if (transport)
        td_watch_leave(why);
}

bool td_job_is_open(void) {
    return transport != NULL;
}

const char *td_job_engine(void) {
    return transport ? engine : "";
}

bool td_job_takes_devices(void) {
    return devices != NULL;
}

int td_job_local_rank(void) {
    return local_rank;
}

td_group *td_job_all(void) {
    return &all;
}

/* ---- groups ---- */

static td_status check_members(int n, const int *ranks) {
    if (n < 1)
        return td_fail(TD_EVALUE, "a group needs a rank");
    for (int k = 0; k < n; k++) {
        if (ranks[k] < 0 || ranks[k] >= all.size)
            return td_fail(TD_EVALUE, "rank %d is not in [0, %d]", ranks[k], all.size - 1);
        if (k && ranks[k] <= ranks[k - 1])
            return td_fail(TD_EVALUE, "ranks of a group rise: %d stands behind %d", ranks[k],
                           ranks[k - 1]);
    }
    return TD_OK;
}

td_status td_group_new(int n, const int *ranks, td_group **out) {
    td_status status = TD_OK;
    td_group *group = NULL;
    *out = NULL;
    int tag = ++groups, rank = -1;
    TD_TRY(check_members(n, ranks));
    for (int k = 0; k < n; k++)
        rank = ranks[k] == all.rank ? k : rank;
    if (rank < 0)
        return TD_OK;
    group = td_calloc(1, sizeof *group);
    if (group)
        group->members = td_malloc((size_t)n * sizeof *group->members);
    if (!group || !group->members)
        TD_TRY(td_fail(TD_ENOMEM, "out of memory"));
    atomic_init(&group->refs, 1);
    group->rank = rank;
    group->number = (uint32_t)tag;
    group->size = n;
    memcpy(group->members, ranks, (size_t)n * sizeof *ranks);
    if (transport)
        TD_TRY(td_driver_group(n, ranks, tag, group->handles));
    *out = group;
    return TD_OK;
done:
    if (group)
        td_free(group->members);
    td_free(group);
    return status;
}

void td_group_release(td_group *group) {
    if (!group || group == &all || !td_was_last(&group->refs))
        return;
    if (group->handles[0] && transport)
        transport->ungroup(group->handles[0]);
    if (group->handles[1] && devices)
        devices->ungroup(group->handles[1]);
    td_free(group->members);
    td_free(group);
}

int td_group_rank(const td_group *group) {
    return group->rank;
}

int td_group_size(const td_group *group) {
    return group->size;
}

int td_group_member(const td_group *group, int rank) {
    return group->members ? group->members[rank] : rank;
}

/* ---- transfers ---- */

static td_status check_tensor(const td_tensor *x) {
    td_device device = td_tensor_device(x);
    if (device.type == TD_META && transport->shapes_do)
        return TD_OK;
    if (device.type != TD_CPU && !(device.type == TD_CUDA && devices))
        return td_fail(TD_EDEVICE, "tensors on %s can't be sent",
                       devices ? td_device_name(device) : "devices without backend = 'nccl'");
    if (!x->contiguous)
        return td_fail(TD_EVALUE, "the tensor is not contiguous");
    return TD_OK;
}

static td_status check_op(td_across op, td_dtype dtype) {
    bool bits = op == TD_ACROSS_BAND || op == TD_ACROSS_BOR || op == TD_ACROSS_BXOR;
    if (td_dtype_is_float(dtype) ? bits : op == TD_ACROSS_MEAN)
        return td_fail(TD_EDTYPE, "op '%s' is not for %s", td_across_names[op],
                       td_dtype_name(dtype));
    return TD_OK;
}

/* Copy counts, or make equal ones of what a tensor holds, and see that they are all of it. */
static td_status fill_counts(int64_t *into, const int64_t *given, int n, const td_tensor *whole) {
    int64_t sum = 0, held = whole ? whole->numel : 0;
    for (int r = 0; r < n; r++) {
        into[r] = given ? given[r] : held / n;
        sum += into[r];
    }
    if (sum != held)
        return td_fail(TD_ESHAPE, "%lld elements can't be shared among %d ranks%s", (long long)held,
                       n, given ? " as it was said" : " evenly");
    return TD_OK;
}

/* Which of its tensors a collective shares out among the ranks, and which it takes or gives whole.
 */
static td_status fill_transfer(const td_group *group, const td_post *post, td_work *work) {
    td_status status = TD_OK;
    td_transfer *t = &work->transfer;
    int n = group->size;
    int64_t *send = work->counts, *recv = work->counts + n;
    const td_tensor *from = post->send, *to = post->recv;
    bool root = post->peer == group->rank;
    t->count = from ? from->numel : to ? to->numel : 0;
    switch (post->kind) {
    case TD_BROADCAST:
        t->count = to->numel;
        break;
    case TD_ALL_REDUCE:
        if (from->numel != to->numel)
            TD_TRY(td_fail(TD_ESHAPE, "result and operand differ in size"));
        break;
    case TD_ALL_GATHER:
        TD_TRY(fill_counts(recv, post->recv_counts, n, to));
        t->recv_counts = recv;
        break;
    case TD_GATHER:
        if (root)
            TD_TRY(fill_counts(recv, post->recv_counts, n, to));
        t->recv_counts = recv;
        break;
    case TD_SCATTER:
        if (root)
            TD_TRY(fill_counts(send, post->send_counts, n, from));
        t->send_counts = send;
        t->count = to->numel;
        break;
    case TD_REDUCE_SCATTER:
        TD_TRY(fill_counts(send, post->send_counts, n, from));
        t->send_counts = send;
        t->count = to->numel;
        if (send[group->rank] != to->numel)
            TD_TRY(td_fail(TD_ESHAPE, "result and share differ in size"));
        break;
    case TD_ALL_TO_ALL:
        TD_TRY(fill_counts(send, post->send_counts, n, from));
        TD_TRY(fill_counts(recv, post->recv_counts, n, to));
        t->send_counts = send;
        t->recv_counts = recv;
        break;
    case TD_BARRIER:
    case TD_SHUTDOWN:
    case TD_SEND:
    case TD_RECV:
    case TD_COLLECTIVES:
        break;
    }
done:
    return status;
}

static td_status check_post(const td_group *group, const td_post *post) {
    td_status status = TD_OK;
    const td_tensor *x = post->send ? post->send : post->recv;
    if (!transport)
        return td_fail(TD_EVALUE, "this process is in no job: tide.distributed.init() comes first");
    if (post->peer < 0 || post->peer >= group->size)
        return td_fail(TD_EVALUE, "rank %d is not in [0, %d]", post->peer, group->size - 1);
    if (post->send)
        TD_TRY(check_tensor(post->send));
    if (post->recv)
        TD_TRY(check_tensor(post->recv));
    if (post->send && post->recv && post->send->dtype != post->recv->dtype)
        return td_fail(TD_EDTYPE, "result and operand differ in dtype");
    if (post->send && post->recv &&
        !td_device_same(td_tensor_device(post->send), td_tensor_device(post->recv)))
        return td_fail(TD_EDEVICE, "result and operand are on different devices");
    if (post->kind == TD_ALL_REDUCE || post->kind == TD_REDUCE_SCATTER)
        TD_TRY(check_op(post->op, x->dtype));
done:
    return status;
}

/* What all ranks must agree on: elements of what none may have more of. */
static int64_t agreed_count(const td_post *post, const td_transfer *t) {
    switch (post->kind) {
    case TD_BROADCAST:
    case TD_ALL_REDUCE:
        return t->count;
    case TD_ALL_GATHER:
        return post->recv->numel;
    case TD_REDUCE_SCATTER:
        return post->send->numel;
    case TD_BARRIER:
    case TD_GATHER:
    case TD_SCATTER:
    case TD_ALL_TO_ALL:
    case TD_SEND:
    case TD_RECV:
    case TD_SHUTDOWN:
    case TD_COLLECTIVES:
        break;
    }
    return -1;
}

/* Which of the devices that the group has had tensors on, from 1; 0: the CPU. Ranks must agree on
 * it, whatever number each has for its own device. */
static uint8_t lane_of(td_group *group, td_device device) {
    int k = 0;
    if (device.type != TD_CUDA)
        return 0;
    while (k < group->ndevices && group->devices[k] != device.index)
        k++;
    if (k == group->ndevices)
        group->devices[group->ndevices++] = device.index;
    return (uint8_t)(k + 1);
}

static uint64_t note(td_group *group, const td_post *post, const td_work *work) {
    td_device device = work->transfer.device;
    const td_tensor *x = post->kind == TD_ALL_GATHER || !post->send ? post->recv : post->send;
    bool pair = post->kind == TD_SEND || post->kind == TD_RECV;
    td_flight_record r = {.group = group->number,
                          .sequence = pair ? 0 : ++group->sequence,
                          .kind = (uint8_t)post->kind,
                          .op = (uint8_t)post->op,
                          .dtype = (uint8_t)work->transfer.dtype,
                          .lane = pair ? device.type == TD_CUDA : lane_of(group, device),
                          .peer = post->peer,
                          .count = agreed_count(post, &work->transfer),
                          .ndim = x ? x->ndim : 0};
    for (int d = 0; x && d < x->ndim && d < TD_FLIGHT_DIMS; d++)
        r.sizes[d] = x->sizes[d];
    snprintf(r.place, sizeof r.place, "%s", post->place ? post->place : "");
    return td_flight_begin(&r);
}

/* How recordings call it, and who asked for it when. */
static void name_work(const td_group *group, const td_post *post, td_work *work) {
    bool pair = post->kind == TD_SEND || post->kind == TD_RECV;
    bool labelled = post->label && *post->label;
    snprintf(work->name, sizeof work->name, "%s%s%s", td_collective_names[post->kind],
             labelled ? " " : "", labelled ? post->label : "");
    work->everywhere = td_collective_number(group->number, pair ? 0 : group->sequence);
    work->group_number = group->number;
    work->thread = (uint32_t)syscall(SYS_gettid);
    work->posted_ns = td_clock_ns();
}

/* NULL where there are none. */
static void *elements_of(const td_tensor *x) {
    return x && td_tensor_device(x).type != TD_META ? x->data : NULL;
}

/* ---- on devices ---- */

static td_status use_tensors(const td_work *work, td_stream stream) {
    const td_queues *queues = work->transfer.queues;
    td_status status = TD_OK;
    if (work->send)
        TD_TRY(queues->stream_use(stream, work->send));
    if (work->recv && work->recv != work->send)
        TD_TRY(queues->stream_use(stream, work->recv));
done:
    return status;
}

/* The transfer follows what the script's stream was given so far. */
static td_status follow_stream(const td_group *group, td_work *work, td_device device) {
    td_status status = TD_OK;
    td_transfer *t = &work->transfer;
    char why[TD_WHY];
    work->transport = devices;
    work->group = group->handles[1];
    t->device = device;
    t->queues = td_backend_of(device)->queues;
    if (!t->queues || !t->queues->stream_use)
        TD_TRY(td_fail(TD_EDEVICE, "tensors on %s can't be sent", td_device_name(device)));
    if (!devices->can(t, group->rank, why))
        TD_TRY(td_fail(TD_EVALUE, "%s", why));
    TD_TRY(use_tensors(work, td_stream_current(device)));
    TD_TRY(t->queues->event_new(device.index, false, &t->ready));
    TD_TRY(t->queues->event_new(device.index, false, &t->done));
    TD_TRY(t->queues->event_record(t->ready, td_stream_current(device)));
done:
    return status;
}

td_status td_post_start(td_group *group, const td_post *post, td_work **out) {
    td_status status = TD_OK;
    td_work *work = NULL;
    *out = NULL;
    const td_tensor *x = post->send ? post->send : post->recv;
    TD_TRY(check_post(group, post));
    TD_TRY(td_settle_pending());
    work = td_work_new(2 * group->size);
    if (!work)
        TD_TRY(td_fail(TD_ENOMEM, "out of memory"));
    work->send = td_retain(post->send);
    work->recv = td_retain(post->recv);
    work->transport = transport;
    work->group = group->handles[0];
    work->transfer = (td_transfer){.kind = post->kind,
                                   .op = post->op,
                                   .dtype = x ? x->dtype : TD_U8,
                                   .peer = post->peer,
                                   .tag = post->tag,
                                   .send = elements_of(post->send),
                                   .recv = elements_of(post->recv)};
    TD_TRY(fill_transfer(group, post, work));
    if (x && td_tensor_device(x).type == TD_CUDA)
        TD_TRY(follow_stream(group, work, td_tensor_device(x)));
    else if (post->op == TD_ACROSS_MEAN && work->transfer.recv)
        work->divisor = group->size;
    if (post->recv)
        td_tensor_bump_version(post->recv);
    work->transfer.number = note(group, post, work);
    name_work(group, post, work);
    td_driver_start(work);
    *out = td_work_retain(work);
done:
    td_work_release(work);
    return status;
}

td_status td_work_wait(td_work *work) {
    td_status status = td_driver_wait(work);
    const td_transfer *t = &work->transfer;
    if (status == TD_EIO)
        td_watch_trouble(work->why);
    if (status == TD_OK && t->queues) {
        td_stream stream = td_stream_current(t->device);
        status = use_tensors(work, stream);
        if (status == TD_OK)
            status = t->queues->event_wait(t->done, stream);
    }
    return status;
}

/* cuda.c: what tide.cuda (lua/cuda.lua) stands on: devices that work by themselves, their streams,
 * events, pinned memory and recorded work. */
#include "lua-bindings/call/function.h"
#include "lua-bindings/modules/modules.h"
#include "lua-bindings/recording/profile.h"
#include "lua-bindings/recording/waits.h"

#include "engine/core/backend.h"
#include "engine/core/queues.h"
#include "engine/core/switches.h"

#include <string.h>

/* ---- devices ---- */

static int push_reason(lua_State *L) {
    lua_pushstring(L, td_device_absence(TD_CUDA)); /* nil where there is a device */
    return 1;
}

static int push_count(lua_State *L) {
    lua_pushinteger(L, td_device_absence(TD_CUDA) ? 0 : td_backends[TD_CUDA]->count());
    return 1;
}

/* The device that a string at `index` names, and what its kind offers. */
static const td_queues *check_device(lua_State *L, int index, td_device *device) {
    const char *text = luaL_checkstring(L, index);
    if (td_device_parse(text, device))
        tide_error(L, "%s", td_error_message());
    const td_queues *queues = td_backend_of(*device)->queues;
    if (!queues)
        tide_error(L, "'%s' has no streams: a CUDA device expected", text);
    return queues;
}

static int push_properties(lua_State *L) {
    td_device device;
    td_device_properties p;
    const td_queues *queues = check_device(L, 1, &device);
    TIDE_CHECK(L, queues->properties(device.index, &p));
    lua_createtable(L, 0, 8);
    lua_pushstring(L, p.name);
    lua_setfield(L, -2, "name");
    const struct {
        const char *name;
        int64_t value;
    } rows[] = {{"major", p.major},
                {"minor", p.minor},
                {"multi_processor_count", p.processors},
                {"total_memory", p.total_bytes},
                {"L2_cache_size", p.cache_bytes},
                {"warp_size", p.warp_size},
                {"max_threads_per_multi_processor", p.threads_per_processor}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        lua_pushinteger(L, rows[k].value);
        lua_setfield(L, -2, rows[k].name);
    }
    return 1;
}

static int push_memory(lua_State *L) {
    td_device device;
    int64_t left, all;
    const td_queues *queues = check_device(L, 1, &device);
    TIDE_CHECK(L, queues->memory(device.index, &left, &all));
    lua_pushinteger(L, left);
    lua_pushinteger(L, all);
    return 2;
}

static int push_current(lua_State *L) {
    lua_pushinteger(L, td_device_currents[TD_CUDA]);
    return 1;
}

static int set_current(lua_State *L) {
    td_device device;
    check_device(L, 1, &device);
    td_device_currents[device.type] = device.index;
    return 0;
}

/* (device, function of core/backend.h) -> name of the device; does it do the function by itself? */
static int has_kernel(lua_State *L) {
    td_device device;
    if (td_device_parse(luaL_checkstring(L, 1), &device))
        return tide_error(L, "%s", td_error_message());
    const td_queues *queues = td_backend_of(device)->queues;
    lua_pushstring(L, td_device_name(device));
    lua_pushboolean(L, !queues || queues->has_kernel(luaL_checkstring(L, 2)));
    return 2;
}

/* ---- streams ---- */

static const char stream_name[] = "tide.Stream", event_name[] = "tide.Event",
                  graph_name[] = "tide.WorkGraph";

typedef struct lua_stream {
    td_stream stream;
    bool owned;
} lua_stream;

static lua_stream *push_stream(lua_State *L, td_stream stream) {
    lua_stream *s = lua_newuserdatauv(L, sizeof *s, 0);
    *s = (lua_stream){.stream = stream};
    luaL_setmetatable(L, stream_name);
    return s;
}

static td_stream check_stream(lua_State *L, int index, const td_queues **queues) {
    const lua_stream *s = luaL_checkudata(L, index, stream_name);
    *queues = td_backend_of(s->stream.device)->queues;
    return s->stream;
}

static int new_stream(lua_State *L) {
    td_device device;
    const td_queues *queues = check_device(L, 1, &device);
    lua_stream *s = push_stream(L, (td_stream){device, 0});
    TIDE_CHECK(L, queues->stream_new(device.index, lua_toboolean(L, 2), &s->stream.id));
    s->owned = true;
    return 1;
}

static int free_stream(lua_State *L) {
    lua_stream *s = luaL_checkudata(L, 1, stream_name);
    if (s->owned)
        td_backend_of(s->stream.device)->queues->stream_free(s->stream);
    s->owned = false;
    return 0;
}

static int current_stream(lua_State *L) {
    td_device device;
    check_device(L, 1, &device);
    push_stream(L, td_stream_current(device));
    return 1;
}

static int default_stream(lua_State *L) {
    td_device device;
    check_device(L, 1, &device);
    push_stream(L, (td_stream){device, 0});
    return 1;
}

/* (stream): it is the current one from here on, on its device. Returns what was current before. */
static int enter_stream(lua_State *L) {
    const td_queues *queues;
    td_stream stream = check_stream(L, 1, &queues), before = td_stream_current(stream.device);
    push_stream(L, before);
    lua_pushinteger(L, td_device_currents[stream.device.type]);
    td_stream_set_current(stream);
    td_device_currents[stream.device.type] = stream.device.index;
    return 2;
}

/* (stream, device): what enter_stream returned holds again. */
static int leave_stream(lua_State *L) {
    const td_queues *queues;
    td_stream stream = check_stream(L, 1, &queues);
    td_stream_set_current(stream);
    td_device_currents[stream.device.type] = (uint8_t)luaL_checkinteger(L, 2);
    return 0;
}

static int query_stream(lua_State *L) {
    const td_queues *queues;
    bool idle = false;
    td_stream stream = check_stream(L, 1, &queues);
    TIDE_CHECK(L, queues->stream_query(stream, &idle));
    lua_pushboolean(L, idle);
    return 1;
}

static int synchronize_stream(lua_State *L) {
    const td_queues *queues;
    td_stream stream = check_stream(L, 1, &queues);
    TIDE_CHECK(L, td_backend_of(stream.device)->synchronize(stream));
    return 0;
}

/* (stream) -> number of the stream, its device */
static int describe_stream(lua_State *L) {
    const td_queues *queues;
    td_stream stream = check_stream(L, 1, &queues);
    lua_pushinteger(L, stream.id);
    lua_pushstring(L, td_device_name(stream.device));
    return 2;
}

/* ---- events ---- */

typedef struct lua_event {
    const td_queues *queues;
    td_event *event;
} lua_event;

static lua_event *check_event(lua_State *L, int index) {
    return luaL_checkudata(L, index, event_name);
}

static int new_event(lua_State *L) {
    td_device device;
    const td_queues *queues = check_device(L, 1, &device);
    lua_event *e = lua_newuserdatauv(L, sizeof *e, 0);
    *e = (lua_event){.queues = queues};
    luaL_setmetatable(L, event_name);
    TIDE_CHECK(L, queues->event_new(device.index, lua_toboolean(L, 2), &e->event));
    return 1;
}

static int free_event(lua_State *L) {
    lua_event *e = check_event(L, 1);
    if (e->event)
        e->queues->event_free(e->event);
    e->event = NULL;
    return 0;
}

static int record_event(lua_State *L) {
    const td_queues *queues;
    lua_event *e = check_event(L, 1);
    TIDE_CHECK(L, e->queues->event_record(e->event, check_stream(L, 2, &queues)));
    return 0;
}

static int wait_for_event(lua_State *L) {
    const td_queues *queues;
    lua_event *e = check_event(L, 1);
    TIDE_CHECK(L, e->queues->event_wait(e->event, check_stream(L, 2, &queues)));
    return 0;
}

static int query_event(lua_State *L) {
    bool reached = false;
    lua_event *e = check_event(L, 1);
    TIDE_CHECK(L, e->queues->event_query(e->event, &reached));
    lua_pushboolean(L, reached);
    return 1;
}

static int synchronize_event(lua_State *L) {
    lua_event *e = check_event(L, 1);
    TIDE_CHECK(L, e->queues->event_synchronize(e->event));
    return 0;
}

static int elapsed_between(lua_State *L) {
    double milliseconds = 0;
    lua_event *from = check_event(L, 1), *to = check_event(L, 2);
    TIDE_CHECK(L, from->queues->event_elapsed(from->event, to->event, &milliseconds));
    lua_pushnumber(L, milliseconds);
    return 1;
}

/* ---- pinned memory ---- */

static void unpin(void *owner, void *data) {
    ((const td_queues *)owner)->unpin(data);
}

/* (tensor of the host, device) -> one like it in pinned memory, whose elements are not written yet
 */
static int pin_memory(lua_State *L) {
    td_device device;
    td_tensor *x = tide_check_tensor(L, 1, "pin_memory");
    const td_queues *queues = check_device(L, 2, &device);
    if (td_tensor_device(x).type != TD_CPU || x->layout != TD_STRIDED)
        return tide_error(L, "pin_memory: a dense tensor on the CPU expected, got one on %s",
                          td_device_name(td_tensor_device(x)));
    tide_handle *handle = tide_push_handle(L);
    x = tide_check_tensor(L, 1, "pin_memory");
    void *data = queues->pin((size_t)x->numel * td_tensor_itemsize(x));
    if (!data)
        return tide_error(L, "pin_memory: out of memory that can be pinned");
    td_status status = td_tensor_from_memory((td_dtype)x->dtype, x->ndim, x->sizes, data, unpin,
                                             (void *)queues, &handle->tensor);
    if (status != TD_OK)
        queues->unpin(data);
    TIDE_CHECK(L, status);
    return 1;
}

static int is_pinned(lua_State *L) {
    const td_tensor *x = tide_check_tensor(L, 1, "is_pinned");
    const td_backend *cuda = td_backends[TD_CUDA];
    lua_pushboolean(L, cuda && cuda->queues && td_tensor_device(x).type == TD_CPU && x->numel > 0 &&
                           cuda->queues->is_pinned(x->data));
    return 1;
}

/* ---- recorded work ---- */

typedef struct lua_work_graph {
    const td_queues *queues;
    td_work_graph *graph;
} lua_work_graph;

static int begin_graph(lua_State *L) {
    const td_queues *queues;
    td_stream stream = check_stream(L, 1, &queues);
    TIDE_CHECK(L, queues->graph_begin(stream));
    return 0;
}

static int end_graph(lua_State *L) {
    const td_queues *queues;
    td_stream stream = check_stream(L, 1, &queues);
    lua_work_graph *g = lua_newuserdatauv(L, sizeof *g, 0);
    *g = (lua_work_graph){.queues = queues};
    luaL_setmetatable(L, graph_name);
    TIDE_CHECK(L, queues->graph_end(stream, &g->graph));
    return 1;
}

static int launch_graph(lua_State *L) {
    const td_queues *queues;
    lua_work_graph *g = luaL_checkudata(L, 1, graph_name);
    TIDE_CHECK(L, g->queues->graph_launch(g->graph, check_stream(L, 2, &queues)));
    return 0;
}

static int free_graph(lua_State *L) {
    lua_work_graph *g = luaL_checkudata(L, 1, graph_name);
    if (g->graph)
        g->queues->graph_free(g->graph);
    g->graph = NULL;
    return 0;
}

/* ---- switches ---- */

/* (name [, on]) -> is it on? Set first where that is given. */
static int device_switch(lua_State *L) {
    static const char *const names[] = {[TD_SWITCH_TF32_PRODUCTS] = "tf32_products",
                                        [TD_SWITCH_TF32_CONVOLUTIONS] = "tf32_convolutions",
                                        [TD_SWITCH_CUDNN] = "cudnn",
                                        [TD_SWITCH_CUDNN_MEASURES] = "cudnn_measures",
                                        [TD_SWITCH_CUDNN_FIXED] = "cudnn_fixed",
                                        [TD_SWITCHES] = NULL};
    td_switch which = (td_switch)luaL_checkoption(L, 1, NULL, names);
    if (!lua_isnoneornil(L, 2))
        td_switch_set(which, lua_toboolean(L, 2));
    lua_pushboolean(L, td_switch_is_on(which));
    return 1;
}

/* ---- NVTX ---- */

const td_annotations *tide_check_annotations(lua_State *L, const char *what) {
    const char *why = td_device_absence(TD_CUDA);
    const td_activity_source *source = why ? NULL : td_activity_source_of(TD_CUDA);
    if (why)
        tide_error(
            L, "%s: there is no CUDA here (%s), and NVTX ranges are for tools beside a CUDA device",
            what, why);
    if (!source || !source->annotations)
        tide_error(L, "%s: CUDA's module was built without NVTX's headers", what);
    return source ? source->annotations : NULL;
}

static int push_range(lua_State *L) {
    const char *name = luaL_checkstring(L, 1);
    lua_pushinteger(L, tide_check_annotations(L, "range_push")->push(name));
    return 1;
}

static int pop_range(lua_State *L) {
    lua_pushinteger(L, tide_check_annotations(L, "range_pop")->pop());
    return 1;
}

static int mark(lua_State *L) {
    const char *name = luaL_checkstring(L, 1);
    tide_check_annotations(L, "mark")->mark(name);
    return 0;
}

/* ---- the table ---- */

static void make_metatable(lua_State *L, const char *name, lua_CFunction gc) {
    luaL_newmetatable(L, name);
    lua_pushcfunction(L, gc);
    lua_setfield(L, -2, "__gc");
    lua_pushstring(L, name);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
}

/* () -> the functions, whose arguments lua/cuda.lua has checked */
static int open_cuda(lua_State *L) {
    static const luaL_Reg functions[] = {{"reason", push_reason},
                                         {"count", push_count},
                                         {"properties", push_properties},
                                         {"memory", push_memory},
                                         {"current", push_current},
                                         {"set_current", set_current},
                                         {"new_stream", new_stream},
                                         {"current_stream", current_stream},
                                         {"default_stream", default_stream},
                                         {"enter_stream", enter_stream},
                                         {"leave_stream", leave_stream},
                                         {"query_stream", query_stream},
                                         {"synchronize_stream", synchronize_stream},
                                         {"describe_stream", describe_stream},
                                         {"new_event", new_event},
                                         {"record_event", record_event},
                                         {"wait_for_event", wait_for_event},
                                         {"query_event", query_event},
                                         {"synchronize_event", synchronize_event},
                                         {"elapsed_between", elapsed_between},
                                         {"pin_memory", pin_memory},
                                         {"is_pinned", is_pinned},
                                         {"begin_graph", begin_graph},
                                         {"end_graph", end_graph},
                                         {"launch_graph", launch_graph},
                                         {"has_kernel", has_kernel},
                                         {"switch", device_switch},
                                         {"watch_waits", tide_watch_waits},
                                         {"push_range", push_range},
                                         {"pop_range", pop_range},
                                         {"mark", mark},
                                         {NULL, NULL}};
    make_metatable(L, stream_name, free_stream);
    make_metatable(L, event_name, free_event);
    make_metatable(L, graph_name, free_graph);
    lua_newtable(L);
    tide_set_functions(L, functions);
    return 1;
}

void tide_open_cuda(lua_State *L) {
    static const luaL_Reg functions[] = {{"_cuda", open_cuda}, {NULL, NULL}};
    tide_set_functions(L, functions);
}

/* modes.c: no_grad, enable_grad, inference_mode and their like: as `local _ <close> =
 * tide.no_grad()` and as `tide.no_grad(fn)`.
 */
#include "lua-bindings/state/modes.h"

#include "lua-bindings/call/function.h"
#include "lua-bindings/call/values.h"
#include "lua-bindings/modules/modules.h"
#include "lua-bindings/recording/origin.h"
#include "lua-bindings/state/mode_stacks.h"
#include "lua-bindings/state/saved_hooks.h"

#include "engine/calls/autocast.h"
#include "engine/core/backend.h"

#include <stdatomic.h>
#include <string.h>

/* ---- functions ---- */

static int finish_run(lua_State *L, int status, lua_KContext index) {
    (void)status;
    return lua_gettop(L) - (int)index;
}

/* Run the function at `index` with the arguments above it under the guard on the top. */
static int run_under(lua_State *L, int index, int nargs) {
    lua_insert(L, index);
    lua_toclose(L, index);
    lua_callk(L, nargs, LUA_MULTRET, index, finish_run);
    return finish_run(L, LUA_OK, index);
}

/* Run the function at `index` with the arguments above it under a mode, or return the guard where
 * there is none. The guard is closed on the way out, by an error too; the function may yield. */
static int enter(lua_State *L, const char *name, int index, tide_mode_apply apply, int64_t value) {
    if (lua_isnoneornil(L, index)) {
        tide_push_mode(L, name, apply, value, NULL);
        return 1;
    }
    int nargs = lua_gettop(L) - index;
    tide_push_mode(L, name, apply, value, NULL);
    return run_under(L, index, nargs);
}

static void apply_grad(td_modes *modes, int64_t enabled) {
    modes->grad_disabled = !enabled;
}

static int no_grad(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    lua_settop(L, f.last);
    return enter(L, f.name, 1, apply_grad, false);
}

static int enable_grad(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    lua_settop(L, f.last);
    return enter(L, f.name, 1, apply_grad, true);
}

/* As `enter`; called without a function it may be a statement. */
static int enter_or_set(lua_State *L, const char *name, int index,
                        void (*apply)(td_modes *, int64_t), int64_t value) {
    bool alone = lua_isnoneornil(L, index);
    int n = enter(L, name, index, apply, value);
    if (alone)
        tide_mode_lasts(L);
    return n;
}

static int set_grad_enabled(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    lua_settop(L, f.last);
    return enter_or_set(L, f.name, 2, apply_grad, f.args[0].b);
}

/* Under inference nothing is recorded, so grad mode is off in it as well. */
static void apply_inference(td_modes *modes, int64_t on) {
    modes->inference = on;
    modes->grad_disabled = on;
}

/* inference_mode([mode] [, fn, ...]) */
static int inference_mode(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    lua_settop(L, f.last);
    return enter(L, f.name, 2, apply_inference, f.args[0].b);
}

static int is_inference_mode(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    lua_pushboolean(L, td_modes_current.inference);
    return 1;
}

/* ---- autocast ---- */

/* All of it in the value of a guard. */
enum { CAST_SLOT = 0, CAST_DTYPE = 8, CAST_UNCACHED = 16, CAST_REGION = 17 };

static void apply_autocast(td_modes *modes, int64_t value) {
    td_autocast_set(modes, value >> CAST_SLOT & 0xFF, (td_dtype)(value >> CAST_DTYPE & 0xFF));
    modes->uncached = value >> CAST_UNCACHED & 1;
    modes->region = (uint32_t)(value >> CAST_REGION);
}

static void end_region(lua_State *L, int64_t value) {
    (void)L;
    td_autocast_region_end((uint32_t)(value >> CAST_REGION));
}

static td_device read_autocast_device(lua_State *L, const char *fname, const char *text) {
    td_device device = {TD_CUDA, 0}; /* scripts name it where there is none, too */
    if (strcmp(text, "cuda") != 0 && td_device_parse(text, &device))
        tide_error(L, "%s: device: \"cpu\" or \"cuda\" expected, got \"%s\"", fname, text);
    return device;
}

static td_dtype read_low_dtype(lua_State *L, td_device device, td_value given, bool enabled) {
    td_dtype dtype = td_is_nil(given) ? device.type == TD_CPU ? TD_BF16 : TD_F16 : given.dtype;
    if (enabled && dtype != TD_BF16 && dtype != TD_F16)
        tide_error(L, "autocast: dtype: tide.bfloat16 or tide.float16 expected, got %s",
                   td_dtype_name(dtype));
    return dtype;
}

/* Once in a process. */
static void warn_of_no_gain(lua_State *L, td_device device, td_dtype dtype) {
    static atomic_bool warned;
    const td_backend *backend = td_backends[device.type];
    if (device.type != TD_CPU || backend->describe(0).quick >> dtype & 1 ||
        atomic_exchange(&warned, true))
        return;
    lua_pushfstring(L,
                    "tide: autocast gains nothing here: this processor has no products of %s that "
                    "are quicker than float32's",
                    td_dtype_name(dtype));
    lua_warning(L, lua_tostring(L, -1), 0);
    lua_pop(L, 1);
}

/* The guard of an autocast; the outermost one keeps casts of weights until it is closed. */
static void push_autocast(lua_State *L, int64_t value) {
    td_modes now = td_get_modes();
    bool outermost = !td_autocast_region_holds(now.region);
    uint32_t number = outermost ? 0 : now.region;
    tide_push_mode(L, "autocast", apply_autocast, value | (int64_t)number << CAST_REGION,
                   outermost ? end_region : NULL);
    if (outermost)
        tide_change_mode(L, value | (int64_t)td_autocast_region_begin() << CAST_REGION);
}

/* autocast([device] [, fn, ...]) */
static int autocast(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    td_device device = read_autocast_device(L, "autocast", f.args[0].string);
    bool enabled = f.args[3].b, cached = f.args[4].b;
    td_dtype dtype = read_low_dtype(L, device, f.args[2], enabled);
    lua_settop(L, f.last);
    if (enabled)
        warn_of_no_gain(L, device, dtype);
    int nargs = lua_gettop(L) - 2;
    bool alone = lua_isnoneornil(L, 2);
    push_autocast(L, td_autocast_slot(device) << CAST_SLOT | (enabled ? dtype : 0) << CAST_DTYPE |
                         !cached << CAST_UNCACHED);
    return alone ? 1 : run_under(L, 2, nargs);
}

static int is_autocast_enabled(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    td_device device = read_autocast_device(L, f.name, f.args[0].string);
    lua_pushboolean(L, td_autocast_dtype(device) != TD_DTYPE_NONE);
    return 1;
}

static int get_autocast_dtype(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    td_device device = read_autocast_device(L, f.name, f.args[0].string);
    td_dtype dtype = td_autocast_dtype(device);
    tide_push_dtype(L, dtype == TD_DTYPE_NONE ? read_low_dtype(L, device, TD_NIL, true) : dtype);
    return 1;
}

static int is_autocast_cache_enabled(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    lua_pushboolean(L, !td_modes_current.uncached);
    return 1;
}

/* ---- anomalies ---- */

enum { ANOMALY_ON = 1, ANOMALY_UNCHECKED = 2 };

static void apply_anomaly(td_modes *modes, int64_t value) {
    modes->anomaly = value & ANOMALY_ON;
    modes->unchecked = value & ANOMALY_UNCHECKED;
}

static int anomaly_value(lua_State *L, bool on, bool check) {
    if (on)
        td_origin_finder_current = (td_origin_finder){tide_find_origin, tide_main_thread(L)};
    return (on ? ANOMALY_ON : 0) | (check ? 0 : ANOMALY_UNCHECKED);
}

static int set_detect_anomaly(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    int value = anomaly_value(L, f.args[0].b, f.args[1].b);
    lua_settop(L, 0);
    return enter_or_set(L, f.name, 1, apply_anomaly, value);
}

static int detect_anomaly(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    lua_settop(L, f.last);
    int value = anomaly_value(L, true, f.args[1].b);
    return enter(L, f.name, 1, apply_anomaly, value);
}

static int is_anomaly_enabled(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    lua_pushboolean(L, td_modes_current.anomaly);
    return 1;
}

/* ---- where new tensors are made ---- */

static void apply_device(td_modes *modes, int64_t value) {
    modes->device = (td_device){(uint8_t)(value >> 8), (uint8_t)value};
}

/* set_default_device(device [, fn, ...]) */
static int set_default_device(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    td_device device = f.args[0].device;
    lua_settop(L, f.last);
    return enter_or_set(L, f.name, 2, apply_device, device.type << 8 | device.index);
}

static int get_default_device(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    lua_pushstring(L, td_device_name(td_modes_current.device));
    return 1;
}

/* ---- keepers of saved tensors ---- */

static void apply_keeper(td_modes *modes, int64_t number) {
    modes->keeping = (uint32_t)number;
    modes->keeper = &tide_keeper;
}

/* saved_tensors_hooks(pack, unpack [, fn, ...]) */
static int saved_tensors_hooks(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    lua_settop(L, f.last);
    int number = tide_keeper_new(L);
    lua_remove(L, 1);
    lua_remove(L, 1);
    bool alone = lua_isnoneornil(L, 1);
    lua_settop(L, alone ? 0 : lua_gettop(L));
    int nargs = lua_gettop(L) - 1;
    tide_push_mode(L, "autograd.saved_tensors_hooks", apply_keeper, number, tide_keeper_end);
    if (alone)
        return 1;
    return run_under(L, 1, nargs);
}

static int is_grad_enabled(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    lua_pushboolean(L, td_grad_enabled());
    return 1;
}

void tide_open_modes(lua_State *L) {
    static const tide_function functions[] = {
        {"no_grad(function? fn=nil, ...) -> any",
         "Run fn without recording for backward; or `local _ <close> = tide.no_grad()` to the end "
         "of the block.",
         no_grad},
        {"enable_grad(function? fn=nil, ...) -> any", "Record again, inside a no_grad.",
         enable_grad},
        {"set_grad_enabled(bool enabled, function? fn=nil, ...) -> any",
         "no_grad or enable_grad, as the flag says.", set_grad_enabled},
        {"set_default_device(device device, function? fn=nil, ...) -> any",
         "Where tensors and layers are made from here on when no device is named: for good as a "
         "statement, while fn runs, or to the end of the block with `local _ <close> =`.",
         set_default_device},
        {"get_default_device() -> str", "Where new tensors are made when no device is named.",
         get_default_device},
        {"is_grad_enabled() -> bool", "Are operators recorded for backward?", is_grad_enabled},
        {"inference_mode(bool mode=true, function? fn=nil, ...) -> any",
         "no_grad whose tensors carry nothing for autograd, neither now nor later: run fn, or "
         "`local "
         "_ <close> = tide.inference_mode()`.",
         inference_mode},
        {"is_inference_mode_enabled() -> bool", "Does inference_mode hold?", is_inference_mode},
        {"autocast(str device=\"cpu\", function? fn=nil, ..., *, dtype? dtype=nil, bool "
         "enabled=true, "
         "bool cache=true) -> any",
         "Run what gains by it (products, convolutions) in bfloat16 or float16 and what needs it "
         "in "
         "float32: tide.autocast(\"cpu\", fn, {dtype = tide.float16}), tide.autocast{fn, dtype = "
         "...}, or "
         "`local _ <close> = tide.autocast{device = \"cpu\"}`.",
         autocast},
        {"is_autocast_enabled(str device=\"cpu\") -> bool", "Does autocast hold for a device?",
         is_autocast_enabled},
        {"get_autocast_dtype(str device=\"cpu\") -> dtype",
         "The low dtype of autocast on a device, where it holds, or what it would be.",
         get_autocast_dtype},
        {"is_autocast_cache_enabled() -> bool",
         "Does autocast keep the casts of weights to the end of its region?",
         is_autocast_cache_enabled},
        {NULL, NULL, NULL},
    };
    tide_open_mode_stacks(L);
    tide_declare(L, functions);
    tide_open_coroutines(L);
}

void tide_open_autograd_modes(lua_State *L) {
    static const tide_function functions[] = {
        {"set_detect_anomaly(bool mode, bool check_nan=true) -> any",
         "From here on calls know their lines, and backward refuses NaN in a gradient, naming the "
         "line of the forward call; until it is closed where `local _ <close>` takes it.",
         set_detect_anomaly},
        {"detect_anomaly(function? fn=nil, ..., *, bool check_nan=true) -> any",
         "The same while fn runs, or with `local _ <close>` to the end of the block.",
         detect_anomaly},
        {"is_anomaly_enabled() -> bool", "Does detect_anomaly hold?", is_anomaly_enabled},
        {"saved_tensors_hooks(function pack, function unpack, function? fn=nil, ...) -> any",
         "While fn runs, or to the end of the block, what calls save for backward is pack(x), any "
         "value; backward asks unpack(value) for x.",
         saved_tensors_hooks},
        {NULL, NULL, NULL},
    };
    tide_declare(L, functions);
}

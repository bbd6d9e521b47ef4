/* modes.c: no_grad, enable_grad, inference_mode and their like: as `local _ <close> =
 * tide.no_grad()` and as `tide.no_grad(fn)`.
 *
 * Each coroutine has a stack of the guards that it opened, in a table with weak keys. A guard
 * changes the modes of its own coroutine alone, whoever closes or collects it, and may be closed
 * out of order: those above it are applied anew to what was below it. coroutines.c switches between
 * stacks. What set_grad_enabled and its like ask for lasts when their guard is collected
 * and not closed, since they are called as statements too.
 */
#include "lua-bindings/modes.h"

#include "lua-bindings/function.h"
#include "lua-bindings/keeper.h"
#include "lua-bindings/modules.h"
#include "lua-bindings/origin.h"
#include "lua-bindings/values.h"

#include "engine/core/backend.h"
#include "engine/ops/autocast.h"

#include <stdatomic.h>
#include <string.h>

static const char *const guard_name = "tide.mode";
static const char stacks_key = 0;

typedef struct tide_mode_stack mode_stack;

/* What is asked of the modes. */
typedef struct ask {
    void (*apply)(td_modes *modes, int64_t value); /* NULL: nothing */
    int64_t value;
} ask;

enum { LASTING_KINDS = 3 }; /* grad mode, anomaly mode, default device */

typedef struct guard {
    struct guard *below, *above;
    mode_stack *stack; /* the guard's user value keeps it */
    td_modes before;   /* modes below this guard */
    ask own;
    ask later[LASTING_KINDS]; /* of guards that stood above it, lasted and are gone */
    void (*end)(lua_State *L, int64_t value); /* when it is closed; NULL: nothing is to be done */
    bool open;
    bool lasts; /* when it is collected, what it asked for holds on */
} guard;

struct tide_mode_stack {
    guard *top;
    td_modes now;
    bool lasting; /* `now` is of guards that were collected */
};

static atomic_int guards_open; /* of all states: while there are none, nobody need look */

/* ---- stacks ---- */

static void push_stacks(lua_State *L) {
    tide_push_weak_table(L, &stacks_key);
}

/* The stack of the coroutine on the top, which is popped, in the table below it; NULL: none. */
static mode_stack *find_stack(lua_State *L) {
    lua_rawget(L, -2);
    mode_stack *stack = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return stack;
}

/* The running coroutine's stack, made where there was none; pushed. */
static mode_stack *push_own_stack(lua_State *L) {
    luaL_checkstack(L, 8, NULL);
    push_stacks(L);
    lua_pushthread(L);
    if (lua_rawget(L, -2) != LUA_TUSERDATA) {
        lua_pop(L, 1);
        *(mode_stack *)lua_newuserdatauv(L, sizeof(mode_stack), 0) = (mode_stack){0};
        lua_pushthread(L);
        lua_pushvalue(L, -2);
        lua_rawset(L, -4);
    }
    lua_replace(L, -2);
    return lua_touserdata(L, -1);
}

static bool has_modes(const mode_stack *stack) {
    return stack->top || stack->lasting;
}

tide_mode_switch tide_modes_enter(lua_State *L, int coroutine) {
    tide_mode_switch before = {.modes = td_get_modes()};
    if (!atomic_load_explicit(&guards_open, memory_order_relaxed) || !lua_checkstack(L, 8))
        return before;
    push_stacks(L);
    lua_pushthread(L);
    mode_stack *own = find_stack(L);
    before.own = own && has_modes(own) ? own : NULL;
    lua_pushvalue(L, coroutine);
    mode_stack *theirs = find_stack(L);
    if (theirs && has_modes(theirs))
        td_set_modes(theirs->now);
    lua_pop(L, 1);
    return before;
}

void tide_modes_leave(tide_mode_switch before) {
    td_set_modes(before.own ? before.own->now : before.modes);
}

tide_mode_switch tide_modes_call(lua_State *L) {
    tide_mode_switch before = {.modes = td_get_modes()};
    if (!atomic_load_explicit(&guards_open, memory_order_relaxed))
        return before;
    push_stacks(L);
    lua_pushthread(L);
    mode_stack *own = find_stack(L);
    lua_pop(L, 1);
    if (!own || !has_modes(own))
        return before;
    before.own = own;
    before.now = own->now;
    own->now = before.modes;
    return before;
}

void tide_modes_called(tide_mode_switch before) {
    if (before.own)
        before.own->now = before.now;
    td_set_modes(before.modes);
}

/* ---- guards ---- */

static int guard_close(lua_State *L);

static void apply_ask(ask a, td_modes *modes) {
    if (a.apply)
        a.apply(modes, a.value);
}

static void apply_guard(const guard *g, td_modes *modes) {
    apply_ask(g->own, modes);
    for (int k = 0; k < LASTING_KINDS; k++)
        apply_ask(g->later[k], modes);
}

/* Let what was asked later hold over a guard: the last word of its kind. */
static void leave_ask(guard *g, ask a) {
    for (int k = 0; a.apply && k < LASTING_KINDS; k++)
        if (!g->later[k].apply || g->later[k].apply == a.apply) {
            g->later[k] = a;
            return;
        }
}

static guard *push_guard(lua_State *L, void (*apply)(td_modes *, int64_t), int64_t value) {
    mode_stack *stack = push_own_stack(L);
    guard *g = lua_newuserdatauv(L, sizeof *g, 1);
    *g = (guard){.stack = stack, .own = {apply, value}};
    lua_insert(L, -2);
    lua_setiuservalue(L, -2, 1);
    luaL_setmetatable(L, guard_name);
    if (!has_modes(stack))
        stack->now = td_get_modes();
    g->before = stack->now;
    g->below = stack->top;
    if (g->below)
        g->below->above = g;
    g->open = true;
    stack->top = g;
    atomic_fetch_add_explicit(&guards_open, 1, memory_order_relaxed);
    apply(&stack->now, value);
    td_set_modes(stack->now);
    return g;
}

/* Take a guard out of its stack; what those above it asked for is applied to what was below it.
 * What was asked after it stays in its place, and what it asked itself if that lasts: over the
 * guard below, or for good. True: for good, so that the stack has modes without a guard. */
static bool take_out(mode_stack *stack, guard *gone, bool lasts) {
    td_modes modes = gone->before;
    ask stays[1 + LASTING_KINDS] = {lasts ? gone->own : (ask){NULL, 0}};
    bool any = false;
    memcpy(stays + 1, gone->later, sizeof gone->later);
    for (int k = 0; k < 1 + LASTING_KINDS; k++) {
        any |= stays[k].apply != NULL;
        apply_ask(stays[k], &modes);
        if (gone->below)
            leave_ask(gone->below, stays[k]);
    }
    if (gone->below)
        gone->below->above = gone->above;
    if (gone->above)
        gone->above->below = gone->below;
    else
        stack->top = gone->below;
    for (guard *g = gone->above; g; g = g->above) {
        g->before = modes;
        apply_guard(g, &modes);
    }
    stack->now = modes;
    return any && !gone->below;
}

/* The same, and the end of it. While some coroutine's modes are of guards that have gone, all are
 * looked for: the first of them goes on to count, for the stack. */
static void let_go(guard *g, bool lasts) {
    mode_stack *stack = g->stack;
    bool for_good = take_out(stack, g, lasts);
    g->open = false;
    if (!for_good || stack->lasting)
        atomic_fetch_sub_explicit(&guards_open, 1, memory_order_relaxed);
    stack->lasting |= for_good;
}

static int guard_gc(lua_State *L) {
    guard *g = luaL_checkudata(L, 1, guard_name);
    if (!g->open || !g->lasts)
        return guard_close(L);
    let_go(g, true);
    return 0;
}

static int guard_close(lua_State *L) {
    guard *g = luaL_checkudata(L, 1, guard_name);
    if (!g->open)
        return 0;
    mode_stack *stack = g->stack;
    if (g->end)
        g->end(L, g->own.value);
    let_go(g, false);
    luaL_checkstack(L, 8, NULL);
    push_stacks(L);
    lua_pushthread(L);
    if (find_stack(L) == stack)
        td_set_modes(stack->now);
    return 0;
}

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
static int enter(lua_State *L, int index, void (*apply)(td_modes *, int64_t), int64_t value) {
    if (lua_isnoneornil(L, index)) {
        push_guard(L, apply, value);
        return 1;
    }
    int nargs = lua_gettop(L) - index;
    push_guard(L, apply, value);
    return run_under(L, index, nargs);
}

static void apply_grad(td_modes *modes, int64_t enabled) {
    modes->grad_disabled = !enabled;
}

static int no_grad(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    lua_settop(L, f.last);
    return enter(L, 1, apply_grad, false);
}

static int enable_grad(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    lua_settop(L, f.last);
    return enter(L, 1, apply_grad, true);
}

/* As `enter`; called without a function it may be a statement. */
static int enter_or_set(lua_State *L, int index, void (*apply)(td_modes *, int64_t),
                        int64_t value) {
    bool alone = lua_isnoneornil(L, index);
    int n = enter(L, index, apply, value);
    if (alone)
        ((guard *)lua_touserdata(L, -1))->lasts = true;
    return n;
}

static int set_grad_enabled(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    lua_settop(L, f.last);
    return enter_or_set(L, 2, apply_grad, f.args[0].b);
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
    return enter(L, 2, apply_inference, f.args[0].b);
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
    modes->cast[value >> CAST_SLOT & 0xFF] = value >> CAST_DTYPE & 0xFF;
    modes->casting = false;
    for (int slot = 0; slot < TD_DEVICE_TYPES; slot++)
        modes->casting |= modes->cast[slot] != 0;
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

static td_dtype read_low_dtype(lua_State *L, td_device device, td_value given) {
    td_dtype dtype = td_is_nil(given) ? device.type == TD_CPU ? TD_BF16 : TD_F16 : given.dtype;
    if (dtype != TD_BF16 && dtype != TD_F16)
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
    guard *g = push_guard(L, apply_autocast, value | (int64_t)number << CAST_REGION);
    if (!outermost)
        return;
    g->end = end_region;
    g->own.value |= (int64_t)td_autocast_region_begin() << CAST_REGION;
    apply_autocast(&g->stack->now, g->own.value);
    td_set_modes(g->stack->now);
}

/* autocast([device] [, fn, ...]) */
static int autocast(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    td_device device = read_autocast_device(L, "autocast", f.args[0].string);
    td_dtype dtype = read_low_dtype(L, device, f.args[2]);
    bool enabled = f.args[3].b, cached = f.args[4].b;
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
    tide_push_dtype(L, dtype == TD_DTYPE_NONE ? read_low_dtype(L, device, TD_NIL) : dtype);
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
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
    if (on)
        td_origin_finder_current = (td_origin_finder){tide_find_origin, lua_tothread(L, -1)};
    lua_pop(L, 1);
    return (on ? ANOMALY_ON : 0) | (check ? 0 : ANOMALY_UNCHECKED);
}

static int set_detect_anomaly(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    int value = anomaly_value(L, f.args[0].b, f.args[1].b);
    lua_settop(L, 0);
    return enter_or_set(L, 1, apply_anomaly, value);
}

static int detect_anomaly(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    lua_settop(L, f.last);
    int value = anomaly_value(L, true, f.args[1].b);
    return enter(L, 1, apply_anomaly, value);
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
    return enter_or_set(L, 2, apply_device, device.type << 8 | device.index);
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
    guard *g = push_guard(L, apply_keeper, number);
    g->end = tide_keeper_end;
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
    luaL_newmetatable(L, guard_name);
    lua_pushcfunction(L, guard_close);
    lua_setfield(L, -2, "__close");
    lua_pushcfunction(L, guard_gc);
    lua_setfield(L, -2, "__gc");
    lua_pushstring(L, guard_name);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
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

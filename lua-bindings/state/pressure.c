/* pressure.c: gauges of tensor memory, and the collections they ask for. */
#include "lua-bindings/state/pressure.h"

#include "engine/core/backend.h"
#include "lua-bindings/state/circles.h"
#include "profiler/recorder.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum {
    LEAST_ROOM = 32 << 20,  /* of a soft maximum above what is alive */
    DEVICE_PACE = 16 << 20, /* of devices whose kernels don't wait for memory */
    MOST_STRETCH = 7,       /* 512 KB become 64 MB */
    MOST_SPREAD = 5,        /* 256 KB become 8 MB */
    OLD = 4,                /* this part of what was made has grown old: more room for the young */
    MOST_PATIENCE = 8,      /* full collections without that, before there is less again */
    SHRINK_STRETCH = 3,     /* this dear: look whether a stack has been deep */
    DEAR = 16,              /* a young collection may take this part of the time since the last */
    CHEAP = 64,             /* and below this part the pace shrinks again */
    DEAR_BYTES = 256,       /* or a nanosecond for so many fresh bytes: 4 us for a megabyte */
    CHEAP_BYTES = 1024,
    HANDLE_NANOSECONDS = 80, /* to sweep a handle and its tensor: due at any pace */
    MINOR_GROWTH = 50        /* percent of Lua's heap between its own young collections */
};

/* ---- pace ---- */

static int64_t cache_pace;
static pthread_once_t cache_once = PTHREAD_ONCE_INIT;

static int64_t read_cache_size(void) {
    long long size = sysconf(_SC_LEVEL2_CACHE_SIZE);
    FILE *f = size > 0 ? NULL : fopen("/sys/devices/system/cpu/cpu0/cache/index2/size", "r");
    if (f) {
        if (fscanf(f, "%lldK", &size) == 1)
            size <<= 10;
        fclose(f);
    }
    return size > 0 ? size : 1 << 20;
}

/* A quarter: as much again is in use by the operands, and the first block beyond the pace is made
 * before it is seen. */
static void find_cache_pace(void) {
    int64_t pace = read_cache_size() / 4;
    cache_pace = pace < 128 << 10 ? 128 << 10 : pace > 1 << 20 ? 1 << 20 : pace;
}

static int64_t pace_of(const tide_pressure *pressure, td_device device) {
    int more = pressure->stretch;
    if (device.type != TD_CPU)
        return (int64_t)DEVICE_PACE << more;
    return cache_pace << (more > pressure->spread ? more : pressure->spread);
}

static int64_t nanoseconds_of(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t nanoseconds(void) {
    return nanoseconds_of(CLOCK_MONOTONIC);
}

/* Stacks, large tables written to and weak tables are walked by every young collection: where that
 * took a good part of the time (nanoseconds) that the work before did, and more than the fresh
 * bytes are worth, there are fewer of them. */
static int stretch_after(int stretch, int64_t worked, int64_t spent, int64_t fresh) {
    if (spent * DEAR > worked && spent * DEAR_BYTES > fresh)
        return stretch < MOST_STRETCH ? stretch + 1 : stretch;
    for (; stretch > 0 && (spent * CHEAP < worked || spent * CHEAP_BYTES < fresh); stretch--) {
        worked /= 2;
        fresh /= 2;
    }
    return stretch;
}

/* A script that holds more at a time than the pace has results that see two young collections: they
 * grow old, and what they leave piles up to the maximum. Bytes that a full collection freed say so,
 * beside those that were made since the last. Where the pace follows from what collections cost,
 * that there are few of them says nothing. */
static void spread_after(tide_pressure *pressure, int64_t made, int64_t freed) {
    if (freed * OLD > made) {
        if (pressure->lowered && pressure->patience < MOST_PATIENCE) /* that was too early */
            pressure->patience *= 2;
        pressure->spread += pressure->spread < MOST_SPREAD;
        pressure->lowered = false;
        pressure->calm = 0;
    } else if (pressure->spread > pressure->stretch && ++pressure->calm >= pressure->patience) {
        if (pressure->lowered)
            pressure->patience = 1;
        pressure->spread--;
        pressure->lowered = true;
        pressure->calm = 0;
    }
}

/* ---- gauges ---- */

static void set_mark(const tide_pressure *pressure, tide_gauge *gauge, int64_t used) {
    int64_t limit = used + pace_of(pressure, gauge->device);
    gauge->mark = used;
    gauge->limit = limit < gauge->maximum ? limit : gauge->maximum;
}

/* After a full collection; `crest`: what may be held again before the next, whatever is held now.
 */
static void reset(const tide_pressure *pressure, tide_gauge *gauge, int64_t crest) {
    int64_t used = td_memory_held(gauge->device), heap = pressure->heap;
    int64_t room = used / 2 > LEAST_ROOM ? used / 2 : LEAST_ROOM;
    room = room > 3 * heap ? room : 3 * heap;
    room = room > crest - used ? room : crest - used;
    gauge->maximum = used + room;
    gauge->room = gauge->left = 8 * room > 256 * heap ? 8 * room : 256 * heap;
    set_mark(pressure, gauge, used);
}

static void reset_all(lua_State *L, tide_pressure *pressure, bool after_backward) {
    pressure->heap = (int64_t)lua_gc(L, LUA_GCCOUNT) * 1024;
    for (int type = 0; type < TD_DEVICE_TYPES; type++)
        for (int index = 0; index < TIDE_GAUGES; index++) {
            tide_gauge *gauge = &pressure->gauges[type][index];
            reset(pressure, gauge, after_backward ? gauge->high : 0);
            if (after_backward) {
                gauge->high = 0;
                gauge->base = td_memory_held(gauge->device);
            }
        }
}

void tide_pressure_open(lua_State *L, tide_pressure *pressure) {
    pthread_once(&cache_once, find_cache_pace);
    *pressure = (tide_pressure){.patience = 4};
    for (int type = 0; type < TD_DEVICE_TYPES; type++)
        for (int index = 0; index < TIDE_GAUGES; index++)
            pressure->gauges[type][index].device = (td_device){(uint8_t)type, (uint8_t)index};
    /* a host that was in this mode keeps its parameters */
    if (lua_gc(L, LUA_GCGEN, 0, 0) == LUA_GCINC)
        lua_gc(L, LUA_GCGEN, MINOR_GROWTH, 0);
    reset_all(L, pressure, false);
}

void tide_pressure_note(tide_pressure *pressure, td_device device) {
    tide_gauge *gauge = &pressure->gauges[device.type][device.index % TIDE_GAUGES];
    int64_t used = td_memory_held(device);
    if (used > gauge->limit)
        pressure->risen = gauge;
    else if (TD_UNLIKELY(used < gauge->mark))
        set_mark(pressure, gauge, used);
}

/* ---- collections ---- */

static void collect_all(lua_State *L, tide_pressure *pressure, bool after_backward) {
    int64_t start = nanoseconds_of(CLOCK_THREAD_CPUTIME_ID); /* whatever else the machine does */
    tide_range range = tide_range_begin(TIDE_EVENT_COLLECT, "full collection");
    bool done = tide_collect_circles(L);
    tide_range_end(range);
    if (!done) /* within a finalizer */
        return;
    int64_t took = nanoseconds_of(CLOCK_THREAD_CPUTIME_ID) - start;
    pressure->cost = took < pressure->took ? took : pressure->took;
    pressure->took = took;
    reset_all(L, pressure, after_backward);
}

void tide_pressure_collect(lua_State *L, tide_pressure *pressure) {
    collect_all(L, pressure, false);
}

/* Devices of a type that may hold memory: this is asked after every backward pass. */
static int gauges_in_use(int type) {
    return type == TD_CPU ? 1 : td_backends[type] && type != TD_META ? TIDE_GAUGES : 0;
}

/* A nanosecond of a collection is worth as many bytes as it is for young ones. */
void tide_pressure_after_backward(lua_State *L, tide_pressure *pressure) {
    bool worth = false;
    for (int type = 0; type < TD_DEVICE_TYPES; type++)
        for (int index = 0; index < gauges_in_use(type); index++) {
            tide_gauge *gauge = &pressure->gauges[type][index];
            int64_t held = td_memory_held(gauge->device);
            if (gauge->base == 0 || held < gauge->base)
                gauge->base = held;
            int64_t grown = held - gauge->base;
            worth |= grown > LEAST_ROOM && grown > held / 4 && grown > pressure->cost * DEAR_BYTES;
        }
    if (worth && lua_gc(L, LUA_GCISRUNNING) > 0)
        collect_all(L, pressure, true);
}

/* In generational mode Lua 5.4 never makes a stack smaller, and walks what once was in use. */
static void shrink_stacks(lua_State *L, tide_pressure *pressure) {
    int mode = lua_gc(L, LUA_GCINC, 0, 0, 0);
    tide_pressure_collect(L, pressure);
    if (mode == LUA_GCGEN)
        lua_gc(L, LUA_GCGEN, 0, 0);
}

/* At the 1st, 4th, 16th, ... young collection that is dear: the longer it lasts, the less likely is
 * a stack that was deep once. */
static bool is_time_to_shrink(tide_pressure *pressure) {
    if (pressure->stretch < SHRINK_STRETCH) {
        pressure->dear = 0;
        pressure->next_shrink = 1;
        return false;
    }
    if (++pressure->dear < pressure->next_shrink)
        return false;
    pressure->next_shrink *= 4;
    return true;
}

/* True when stacks should be looked at. */
static bool collect_young(lua_State *L, tide_pressure *pressure, const size_t *handles,
                          int64_t fresh) {
    int64_t start = nanoseconds(), worked = start - pressure->ended;
    size_t there = *handles, made = there > pressure->handles ? there - pressure->handles : 0;
    tide_range range = tide_range_begin(TIDE_EVENT_COLLECT, "young collection");
    lua_gc(L, LUA_GCSTEP, 0);
    tide_range_end(range);
    pressure->ended = nanoseconds();
    pressure->handles = *handles;
    int64_t spent = pressure->ended - start - HANDLE_NANOSECONDS * (int64_t)made;
    pressure->stretch = stretch_after(pressure->stretch, worked, spent > 0 ? spent : 0, fresh);
    return is_time_to_shrink(pressure);
}

/* Young collections asked for put off Lua's own full ones, which look at its heap. */
static bool heap_has_grown(lua_State *L, const tide_pressure *pressure) {
    return (int64_t)lua_gc(L, LUA_GCCOUNT) * 1024 > 2 * pressure->heap + (4 << 20);
}

void tide_pressure_relieve(lua_State *L, tide_pressure *pressure, const size_t *handles) {
    tide_gauge *gauge = pressure->risen;
    pressure->risen = NULL;
    if (lua_gc(L, LUA_GCISRUNNING) <= 0)
        return;
    int64_t held = td_memory_held(gauge->device), fresh = held - gauge->mark;
    gauge->high = held > gauge->high ? held : gauge->high;
    gauge->left -= fresh;
    bool shrink = collect_young(L, pressure, handles, fresh);
    int64_t used = td_memory_held(gauge->device);
    if (shrink) {
        shrink_stacks(L, pressure);
    } else if (used > gauge->maximum || gauge->left < 0 || heap_has_grown(L, pressure)) {
        int64_t made = gauge->room - gauge->left;
        tide_pressure_collect(L, pressure);
        if (gauge->device.type == TD_CPU)
            spread_after(pressure, made, used - td_memory_held(gauge->device));
    } else {
        set_mark(pressure, gauge, used);
    }
}

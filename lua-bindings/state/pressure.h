/* pressure.h: when Lua's collector runs for the sake of tensors.
 *
 * Lua sees a few dozen bytes of a tensor, so its own pacing would let results pile up for a long
 * time: first out of the caches, then out of memory. Here each device has a gauge. When the tensors
 * there have grown by a pace (a part of the second-level cache), the next new handle is preceded by
 * a young collection: in Lua's generational mode that costs less than a microsecond, looks only at
 * what was made since the last two, and hands the new result a block that is still warm. Tensors
 * that lived longer are old to Lua, and only a full collection finds them dead; one is made when a
 * device holds more than its soft maximum, which leaves room in proportion to what was alive and to
 * what collecting costs, and now and then when much was made since the last, so that the maximum
 * falls again after a large live set has gone. When a backward pass ends, the results of its
 * forward pass are dead, and those that grew old meanwhile wait for that: where they may be worth
 * it, a full collection is made there, and the maximum is what the pass came to, so that the next
 * one, which comes to as much, has none in its midst.
 *
 * What the user asks of collectgarbage holds. A new state is put into generational mode once, when
 * Tide enters it, and never again: under collectgarbage("incremental") the same pacing takes one
 * step of the cycle. While the collector is stopped nothing is collected until memory is out; then
 * everything is. Within a finalizer Lua collects nothing, and neither does this.
 */
#ifndef TIDE_LUA_STATE_PRESSURE_H
#define TIDE_LUA_STATE_PRESSURE_H

#include "engine/td.h"

#include <lua.h>

enum { TIDE_GAUGES = 16 /* devices of a type */ };

/* Bytes of tensors on one device. */
typedef struct tide_gauge {
    td_device device;
    int64_t mark;    /* after the last collection, or less where less was seen since */
    int64_t limit;   /* beyond: collect before the next handle is made */
    int64_t maximum; /* beyond, after a young collection: collect everything */
    int64_t left;    /* what may still be made before everything is collected all the same, */
    int64_t room;    /* and how much that was after the last time */
    int64_t base; /* least that was held when a backward pass ended, or after a collection then */
    int64_t high; /* most that was seen since the last backward pass that ended in one */
} tide_gauge;

typedef struct tide_pressure {
    tide_gauge gauges[TD_DEVICE_TYPES][TIDE_GAUGES];
    tide_gauge *risen; /* beyond its limit; NULL: none is */
    int stretch;       /* paces are doubled so many times where young collections are dear, */
    int spread;        /* or, of the CPU, where much of what is made grows old; */
    int calm;          /* full collections that found little of that, */
    int patience;      /* and how many of them are waited for before the pace is lowered; */
    bool lowered;      /* it was since it last rose */
    int64_t dear;      /* young collections since they became so dear that stacks are looked at */
    int64_t next_shrink;
    int64_t ended;  /* nanoseconds: when the last young collection did */
    size_t handles; /* that were there then */
    int64_t heap;   /* Lua's bytes after the last full collection, */
    int64_t took;   /* and the nanoseconds of the processor that it took, */
    int64_t cost;   /* and of the last two the smaller: one may have met a cold cache */
} tide_pressure;

/* Begin; puts the state into generational mode. */
void tide_pressure_open(lua_State *L, tide_pressure *pressure);

/* A tensor was made on this device: has its gauge risen? */
void tide_pressure_note(tide_pressure *pressure, td_device device);

/* Collect as the gauge that has risen demands; `handles` are now there. May run finalizers. */
void tide_pressure_relieve(lua_State *L, tide_pressure *pressure, const size_t *handles);

/* A backward pass has ended: collect everything where that may free enough. May run finalizers. */
void tide_pressure_after_backward(lua_State *L, tide_pressure *pressure);

/* Collect everything, also while the collector is stopped. */
void tide_pressure_collect(lua_State *L, tide_pressure *pressure);

#endif

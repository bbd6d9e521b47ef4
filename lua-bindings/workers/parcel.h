/* parcel.h: Lua values on their way from one state to another, which runs on another thread.
 *
 * What can travel: nil, booleans, numbers, strings; tables of what can, with their metatables, each
 * once however often it is met; functions written in Lua with their upvalues, and the globals that
 * they name; tensors, which share their storage with the sender's; and what both states have under
 * the same name (the functions, tables and constants of Lua's library, of tide and of modules that
 * require finds), which goes by that name. Everything else is refused in one line that says what it
 * is and how it was reached.
 *
 * A parcel holds no Lua value: it may be unpacked, or freed, on any thread.
 */
#ifndef TIDE_LUA_WORKERS_PARCEL_H
#define TIDE_LUA_WORKERS_PARCEL_H

#include "engine/td.h"

#include <lua.h>

typedef struct tide_parcel {
    unsigned char *bytes;
    size_t size, room;
    td_tensor **tensors; /* references */
    size_t ntensors, tensors_room;
} tide_parcel;

/* Pack the values at stack indices first to top. Raises an error where one can't travel, or memory
 * is out, and leaves nothing in the parcel then. The parcel must be empty ({0}). */
void tide_parcel_pack(lua_State *L, tide_parcel *parcel, int first);

/* Push the values; returns their number. Raises an error where memory is out, or a module is not
 * there. */
int tide_parcel_unpack(lua_State *L, const tide_parcel *parcel);

/* A text alone, packed without a state; false: out of memory. */
bool tide_parcel_text(tide_parcel *parcel, const char *text, size_t len);

/* Let go of what it holds; it is empty again. */
void tide_parcel_free(tide_parcel *parcel);

#endif
